//! The console client without its screen.
//!
//! A prompt becomes lines of a transcript that Claude Code itself can resume. The machine
//! is pure: events in, effects out. Its memory is the transcript: what is asked
//! of the model is always made from the lines on disk. Around it stand the model API, the
//! tools, what somebody allows, and the hooks.

pub mod api;
mod call;
pub mod commands;
mod compact;
pub mod definitions;
pub mod driver;
pub mod file;
pub mod folder_files;
pub mod front;
pub mod history;
pub mod hooks;
pub mod host;
pub mod machine;
pub mod memory;
pub mod more;
mod patch;
pub mod permission;
pub mod process;
pub mod record;
pub mod request;
pub mod sandbox;
pub mod schema;
pub mod settings;
pub mod stop;
mod sub;
pub mod tool;
pub mod tools;
pub mod trust;
pub mod words;
