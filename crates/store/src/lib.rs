//! Where sessions live: find, read, follow.
//!
//! In reading order: [`dirs`] says where to look, [`find`] walks there, [`read`] folds a file
//! into a session, [`each`] does that for many files at once, [`scan`] looks for little in all of
//! them, [`search`] finds text in them, [`resolve`] finds the one a
//! person means, [`family`] adds its sub-agents, [`side`] what else lies beside it, [`owned`] every file that is its own and
//! [`follow`] reads on while it grows, when [`watch`] says so; [`live`] tells who works on it. [`journal`] changes files
//! so that it can be undone, by [`write`]; [`long_lines`] looks into lines that are too long to be held; [`archive`] keeps copies of them. [`events`] keeps what
//! hooks tell, [`settle`] waits for what they announce, [`before`] finds the session before.
//!
//! This crate knows folders and file names. It does not know what a line means (see
//! `unspool-model`), reads neither the environment nor the clock, and prints nothing. What
//! writes sessions in it goes through [`write`], what a person asked to be written somewhere
//! through [`output_file`], and our own files through [`own_file`].

pub mod append;
pub mod append_log;
pub mod archive;
pub mod atomic_write;
pub mod client_session_list;
pub mod continued_from;
pub mod copy_side_files;
pub mod dirs;
mod disk;
pub mod error;
pub mod find;
pub mod follow;
pub mod growth;
pub mod hook_events;
pub mod journal;
mod line_buffers;
pub mod lineage;
pub mod long_lines;
pub mod move_sessions;
pub mod open;
pub mod output_file;
pub mod own_file;
pub mod owned_files;
pub mod parallel;
pub mod project;
pub mod read;
pub mod read_folder;
pub mod resolve;
pub mod rewrite;
pub mod scan;
pub mod search;
pub mod secret_scan;
pub mod session_in_use;
pub mod session_paths;
pub mod session_with_agents;
pub mod side_files;
pub mod signals;
pub mod token_scan;
pub mod wait_for_flush;
pub mod watch;
pub mod written_by;

pub use error::{FileWarning, StoreError};
pub use find::{FoundSessionFiles, NonConversationFile, SessionFile, SubAgentFile, find};
pub use read::{LoadedSession, read, read_end};
pub use unspool_model::session::TranscriptRole;
