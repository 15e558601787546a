//! The journal against a disk that fails, and against others who write at the same time.

// Helpers outside of test functions may give up as well.
#![allow(clippy::unwrap_used)]

mod faults;
mod kill;
mod kit;
mod links;
mod plain;
