//! Sessions as traces: what happened, in the words of Langfuse and OpenTelemetry.
//!
//! Pure, like the model it reads: no files, no clock, no network. [`spans`] makes a trace of
//! every turn, [`otlp`] puts traces into requests of a size that receivers take. Texts stay in
//! the transcript until a span is written, so a session of any size takes little memory.
//!
//! Ids come from what the transcript says ([`id`]), so sending again is the same as sending
//! once.

pub mod before;
pub mod id;
pub mod ledger;
pub mod otlp;
pub mod spans;
pub mod target;
