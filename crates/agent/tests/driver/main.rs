//! A session at work, in process: what a front end asks for and is told.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod agents;
mod compaction;
mod cuts;
mod desk;
mod git_hooks;
mod hooks;
#[cfg(target_os = "linux")]
mod interrupts;
mod lines;
mod talk;
