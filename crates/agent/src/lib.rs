//! The console client without its screen.
//!
//! A prompt becomes lines of a transcript that Claude Code itself can resume. The machine
//! is pure: events in, effects out. Its memory is the transcript: what is asked
//! of the model is always made from the lines on disk. Around it stand the model API, the
//! tools, what somebody allows, and the hooks.

pub mod api;
pub mod host;
pub mod more;
pub mod stop;
pub mod tool;
pub mod tools;
