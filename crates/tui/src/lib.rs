//! The terminal browser.
//!
//! A pure core and a thin shell. [`BrowserApp`] is all of the state; [`update`] takes an [`AppMessage`]
//! in and says what is to be done ([`AppEffect`]); [`draw`] makes a picture of it. The shell
//! ([`run`]) waits for keys, news and answers, draws once after each batch, and never reads a
//! file: sessions are read and laid out by books on threads of their own, page by page.

mod app;
mod backend;
pub mod chat;
mod conversation_view;
mod draw;
mod event_loop;
mod input;
mod keys;
mod line_painting;
mod loader_protocol;
mod message;
mod session_list;
mod session_loader;
mod terminal;
#[cfg(test)]
mod tests;
mod update;

pub use app::BrowserApp;
pub use backend::BrowserBackend;
pub use draw::draw;
pub use event_loop::{BrowserOptions, run};
pub use loader_protocol::{LoaderEvent, LoaderRequest};
pub use message::{AppEffect, AppMessage, TrimRequest};
pub use session_loader::{LoaderCommand, LoaderOptions, open as open_book};
pub use update::{open, settle, update};
