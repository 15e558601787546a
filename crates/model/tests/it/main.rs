//! Tests of the model from outside: what a reader of a transcript may rely on.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod make;
mod seeds;
