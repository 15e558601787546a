//! Ranked search: a full-text index over all transcripts.

pub mod query;
pub mod snippet;
pub mod words;
