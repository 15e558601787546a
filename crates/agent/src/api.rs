//! The model's side: the Messages API, streamed.
//!
//! In reading order: [`sse`] makes events of bytes, [`message`] makes blocks of events, [`retry`]
//! says what to do about trouble, [`model`] knows names and what they accept, [`client`] speaks
//! HTTP and puts them together. Nothing here knows sessions.

pub mod api_error_text;
pub mod client;
pub mod message;
pub mod model;
pub mod retry;
pub mod sse;

pub use client::{MessagesClient, MessagesRequest, StreamItem};
pub use message::{StreamedBlock, StreamedMessage};
pub use retry::ApiError;
