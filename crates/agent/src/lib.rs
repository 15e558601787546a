//! The console client without its screen.
//!
//! A prompt becomes lines of a transcript that Claude Code itself can resume. The machine
//! is pure: events in, effects out. Its memory is the transcript: what is asked
//! of the model is always made from the lines on disk. Around it stand the model API, the
//! tools, what somebody allows, and the hooks.

pub mod agent_definitions;
pub mod api;
mod compaction;
pub mod driver;
pub mod file;
pub mod file_history;
pub mod folder_files;
pub mod front_matter;
pub mod hooks;
pub mod mcp_tools;
pub mod memory;
mod patch;
pub mod permission;
pub mod process;
pub mod request;
pub mod sandbox;
pub mod schema;
pub mod settings;
pub mod slash_commands;
pub mod state_machine;
pub mod stop;
mod sub_agents;
pub mod system_prompt;
pub mod tool;
mod tool_call;
pub mod tool_host;
pub mod tools;
pub mod transcript_writer;
pub mod trust;
