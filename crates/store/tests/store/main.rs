//! The store against real folders and files.

// Helpers outside of test functions may give up as well.
#![allow(clippy::unwrap_used)]

mod cutting;
mod follower;
mod kit;
mod long_lines;
mod meaning;
mod tail;
mod walk;
