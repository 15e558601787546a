//! The tools as a session runs them: with files, processes and a host around them.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod bash;
mod corpus;
mod driver;
mod files;
mod host;
mod lists;
mod search;
