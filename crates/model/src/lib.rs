//! What a Claude Code session is.
pub mod block;
pub mod entry;
pub mod fault;
pub mod graph;
pub mod id;
pub mod input;
pub mod json;
pub mod known;
pub mod log;
pub mod session;
pub mod tally;
pub mod time;
pub mod tool;
pub mod usage;
pub mod view;
