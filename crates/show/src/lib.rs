//! Turns views of sessions into text and JSON rows, into any writer.
//!
//! Knows how things look, not what they mean: the names in the format stay in the model.
//! Opens no files, prints nothing by itself, and asks no terminal; width, colour and time
//! zone come in a [`Style`].

pub mod amount;
mod call;
pub mod clean;
pub mod diff;
pub mod document;
pub mod layout;
pub mod markdown;
pub mod picture;
pub mod sarif;
pub mod shell_command;
pub mod spark;
pub mod style;
pub mod table;
pub mod terminal_writer;
pub mod text;
pub mod visible;
pub mod wire;

pub use style::{Line, Paint, Style, Tools};
pub use text::{Conversation, conversation};
