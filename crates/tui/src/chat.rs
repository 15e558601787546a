//! Talking to a model in the terminal.
//!
//! A state ([`state`]), a picture of it ([`draw`]) and a thin shell ([`run`]). What was said is
//! written once and scrolls away; only the rows at the bottom are drawn again. Questions of a
//! turn, lists to choose from and the editor share those rows.

mod approval;
mod dialogs;
mod draw;
mod editor;
mod menu;
mod paint;
mod pick;
mod question;
mod shell;
mod spoken;
mod state;
mod stream;
mod trust;

pub use pick::{Choice, Pick};
pub use question::FolderSettings;
pub use shell::{Ahead, Desk, Left, Next, Setting, Told, give_back, run};
pub use state::Said;
pub use trust::ask_trust;
