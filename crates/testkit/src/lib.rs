//! For tests only: transcripts, homes and trees that are made up but realistic.
//!
//! Together with `unspool-model` the only code that knows the names in the
//! format, because it writes what the client would write. It depends on no
//! other crate of the workspace, so that a misreading there cannot make the
//! test data agree with it.
//!
//! - [`script`] turns a few lines of conversation into a transcript;
//! - [`graph`] draws small strange sessions from a seed;
//! - [`tree`] fills a config directory of any size, and knows the truth about it;
//! - [`corpus`] is what the real client wrote;
//! - [`validator`] refuses what the Messages API would refuse;
//! - [`api`] is a scripted Messages API, and [`conformance`] the cases put to real clients;
//! - [`model`] plays a script as a streaming Messages API, with a strict judge of every request;
//! - [`sink`] is a strict receiver of traces, and one that fails as it is told;
//! - [`soak`] kills a sender again and again, and counts what arrived;
//! - [`permission_corpus`] is shell commands with the least that permissions must say about each;
//! - [`secrets`] draws tokens of many makers, and what only looks like them;
//! - [`home`] is a temporary machine to run the program on;
//! - [`wait`] waits for what other threads and processes do;
//! - [`random`] and [`moment`] are the two things that tests must not take
//!   from the world: chance and time.

pub mod api;
pub mod attacks;
pub mod conformance;
pub mod corpus;
pub mod graph;
pub mod home;
pub mod model;
pub mod moment;
pub mod permission_corpus;
pub mod random;
pub mod script;
pub mod secrets;
pub mod sink;
pub mod soak;
pub mod tree;
pub mod validator;
pub mod wait;
