//! What people ask of a session: plain data, computed by pure functions.

pub mod messages;
pub mod profile;
mod strict;
