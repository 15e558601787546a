//! Talking to a model in the terminal.
//!
//! A state ([`state`]), a picture of it ([`draw`]) and a thin shell ([`run`]). What was said is
//! written once and scrolls away; only the rows at the bottom are drawn again. Questions of a
//! turn, lists to choose from and the editor share those rows.

mod approval_text;
mod chat_painter;
mod chat_screen;
mod choice_picker;
mod completion_menu;
mod dialogs;
mod draw;
mod editor;
mod event_loop;
mod message_lines;
mod paragraph_stream;
mod question;
mod trust_dialog;

pub use chat_screen::ChatPrompt;
pub use choice_picker::{ChoicePicker, PickerChoice};
pub use event_loop::{
    ChatBackend, ChatExit, ChatOptions, CommandReply, NextConversation, TypedAhead,
    restore_terminal, run,
};
pub use question::FolderSettings;
pub use trust_dialog::ask_trust;
