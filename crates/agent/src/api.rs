//! The model's side: the Messages API, streamed.
//!
//! In reading order: [`sse`] makes events of bytes, [`message`] makes blocks of events, [`retry`]
//! says what to do about trouble, [`model`] knows names and what they accept, [`client`] speaks
//! HTTP and puts them together. Nothing here knows sessions.

pub mod client;
pub mod message;
pub mod model;
pub mod retry;
pub mod sse;
pub mod told;

pub use client::{Ask, Client, Item};
pub use message::{Block, Message};
pub use retry::Trouble;
