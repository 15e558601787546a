//! The console client without its screen.
//!
//! A prompt becomes lines of a transcript that Claude Code itself can resume. The machine
//!  is pure: events in, effects out. Its memory is the transcript: what is asked
//! of the model is always made from the lines on disk. Around it stand the model API, the
//! tools, what somebody allows, and the hooks.

pub mod commands;
pub mod definitions;
pub mod front;
pub mod hooks;
pub mod host;
pub mod memory;
pub mod permission;
pub mod sandbox;
pub mod settings;
pub mod stop;
pub mod tool;
pub mod tools;
pub mod trust;
