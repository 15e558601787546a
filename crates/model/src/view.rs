//! What people ask of a session: plain data, computed by pure functions.
//!
//! A view never opens a file: texts come from a [`crate::log::TranscriptSource`], the time is an
//! argument.

pub mod agents;
pub mod check;
pub mod client_profile;
pub mod commits;
pub mod content_pieces;
pub mod context;
pub mod context_window;
pub mod cost;
pub mod events;
pub mod files;
pub mod info;
pub mod messages;
pub mod prompt_queue;
pub mod request_times;
pub mod session_row;
pub mod session_usage;
pub mod split_point;
pub mod status;
mod strict_messages;
pub mod tool_outcome;
pub mod transcript;
pub mod tree;
pub mod turn_completion;
pub mod turn_selection;
pub mod turns;
pub mod usage;
pub mod workflow;
