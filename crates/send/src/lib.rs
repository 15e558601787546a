//! Sessions as traces: what happened, in the words of Langfuse and OpenTelemetry.
//!
//! Making them is pure, like the model they are made of: no files, no clock, no network.
//! [`spans`] makes a trace of every turn, [`otlp`] puts traces into requests of a size that
//! receivers take. Texts stay in the transcript until a span is written, so a session of any
//! size takes little memory.
//!
//! What was made is brought to a [`target`] by [`deliver`], and what was taken is noted in the
//! [`ledger`]: these two know sockets and one file of ours, and nothing about sessions.
//!
//! Ids come from what the transcript says ([`id`]), so sending again is the same as sending
//! once.

pub mod deliver;
pub mod ledger;
pub mod older_exporter;
pub mod otlp;
pub mod receiver;
pub mod spans;
pub mod target;
pub mod trace_id;
