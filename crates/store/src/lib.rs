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
pub mod archive;
pub mod before;
pub mod carry;
pub mod dirs;
mod disk;
pub mod each;
pub mod error;
pub mod events;
pub mod family;
pub mod find;
pub mod follow;
pub mod growth;
pub mod journal;
pub mod lineage;
pub mod list;
pub mod live;
pub mod long_lines;
pub mod open;
pub mod output_file;
pub mod own_file;
pub mod owned;
mod pieces;
pub mod project;
pub mod read;
pub mod read_folder;
pub mod rehome;
pub mod resolve;
pub mod rewrite;
pub mod scan;
pub mod search;
pub mod secrets;
pub mod session_paths;
pub mod settle;
pub mod side;
pub mod signals;
pub mod spent;
pub mod trail;
pub mod watch;
pub mod write;
pub mod written_by;

pub use error::{Error, Warning};
pub use find::{AgentFile, Found, OtherFile, SessionFile, find};
pub use read::{Loaded, read, read_end};
pub use unspool_model::session::Role;
