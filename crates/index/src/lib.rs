//! What we remember about transcripts, so that asking again is instant.
//!
//! Everything in here is a cache: it can be deleted at any time and is made again from the
//! transcripts. This crate is the only one that sees SQLite.

pub mod text;
