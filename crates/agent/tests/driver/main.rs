//! A session at work, in process: what a front end asks for and is told.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cuts;
mod desk;
#[cfg(target_os = "linux")]
mod interrupts;
mod talk;
