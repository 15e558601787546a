//! For tests only: a scripted Messages API and the conformance cases.

pub mod api;
pub mod conformance;
