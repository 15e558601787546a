//! Sessions as traces: what is told of a turn, and how it goes over the wire.

#![allow(clippy::unwrap_used)]

mod tell;

mod ids;
mod seam;
mod seed;
mod tree;
mod whole;
mod wire;
