//! What we remember about transcripts, so that asking again is instant.
//!
//! Everything in here is a cache: it can be deleted at any time and is made again from the
//! transcripts. This crate is the only one that sees SQLite.
//!
//! In reading order: [`db`] opens a file of ours and sees to it that a bad one is never in
//! the way, [`keep`] tells what is new in a transcript since we last looked, [`facts`] keeps
//! what was counted per file, [`tables`] are all sessions as tables, for SQL, [`text`] finds
//! words.

pub mod db;
pub mod error;
pub mod facts;
pub mod file_mark;
mod network_disk;
mod path_bytes;
pub mod tables;
pub mod text_index;
pub mod usage_cache;

pub use db::{CacheNotice, DatabaseSchema};
pub use error::CacheError;
