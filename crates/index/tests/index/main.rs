//! What the caches promise, against real files.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod db;
mod facts;
mod keep;
mod spending;
mod tables;
mod text;
