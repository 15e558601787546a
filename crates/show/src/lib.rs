//! Turns views of sessions into text and JSON rows, into any writer.
//!
//! Knows how things look, not what they mean: the names in the format stay in the model.
//! Opens no files, prints nothing by itself, and asks no terminal; width, colour and time
//! zone come in a [`ConversationStyle`].

pub mod clean;
pub mod diff;
pub mod document;
pub mod format;
pub mod image_type;
pub mod layout;
pub mod markdown;
pub mod sarif;
pub mod shell_command;
pub mod sparkline;
pub mod style;
pub mod table;
pub mod terminal_writer;
pub mod text;
mod tool_call;
pub mod visible;
pub mod wire;

pub use style::{ConversationStyle, StyledLine, TextStyle, ToolDetail};
pub use text::{ConversationWriter, conversation};
