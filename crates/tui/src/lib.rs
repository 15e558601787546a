//! The terminal browser.
//!
//! A pure core and a thin shell. [`App`] is all of the state; [`update`] takes a [`Message`]
//! in and says what is to be done ([`Effect`]); [`draw`] makes a picture of it. The shell
//! ([`run`]) waits for keys, news and answers, draws once after each batch, and never reads a
//! file: sessions are read and laid out by books on threads of their own, page by page.

mod app;
mod book;
pub mod chat;
mod desk;
mod draw;
mod input;
mod keys;
mod level;
mod list;
mod message;
mod page;
mod paint;
mod shell;
mod term;
#[cfg(test)]
mod tests;
mod update;

pub use app::App;
pub use book::{Library, Order, open as open_book};
pub use desk::Desk;
pub use draw::draw;
pub use message::{Effect, Message, Trim};
pub use page::{Ask, Told};
pub use shell::{Setting, run};
pub use update::{open, settle, update};
