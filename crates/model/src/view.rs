//! What people ask of a session: plain data, computed by pure functions.
//!
//! A view never opens a file: texts come from a [`crate::log::Source`], the time is an
//! argument.

pub mod agents;
pub mod check;
pub mod commits;
pub mod context;
pub mod cost;
pub mod events;
pub mod files;
pub mod info;
pub mod messages;
pub mod outcome;
pub mod pick;
pub mod pieces;
pub mod profile;
pub mod queue;
pub mod ready;
pub mod room;
pub mod row;
pub mod seam;
pub mod session_usage;
pub mod status;
mod strict;
pub mod timing;
pub mod transcript;
pub mod tree;
pub mod turns;
pub mod usage;
pub mod workflow;
