//! A session at work, in process: what a front end asks for and is told.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod agents;
mod compaction;
mod desk;
mod hooks;
mod lines;
mod talk;
