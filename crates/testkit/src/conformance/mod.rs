//! What it takes to compare a reader of transcripts with the real client.
//!
//! [`mutations`] makes the cases, [`reduce`] brings both sides to one form.
//! Running the client is not done here but by `cargo xtask conformance`.

pub mod bases;
pub mod cases;
pub mod misses;
pub mod mutations;
pub mod observation;
pub mod prepared;
pub mod probes;
pub mod reduce;
pub mod transcript;
