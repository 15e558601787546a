//! What a Claude Code session is.
//!
//! A transcript is a file of JSON lines. A [`log::Log`] keeps them exactly; a
//! [`session::Session`] is what they mean, grown one line at a time; a [`view`] is what
//! somebody asks of it. No files, no clock, no terminal: reading again goes through
//! [`log::Source`], and the time is an argument.
//!
//! ```
//! use unspool_model::log::Log;
//! use unspool_model::session::{Role, Session};
//! use unspool_model::view::turns::{self, Options};
//!
//! let log = Log::new(concat!(
//!     r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"hi"}}"#, "\n",
//!     r#"{"type":"assistant","uuid":"b","parentUuid":"a","message":{"id":"m","role":"assistant","#,
//!     r#""content":[{"type":"text","text":"hello"}],"usage":{"input_tokens":3,"output_tokens":5}}}"#, "\n",
//! ));
//! let session = Session::from_log(&log, Role::Main);
//! assert_eq!(session.usage().output, 5);
//! let rows = turns::turns(&session, &log, Options::default());
//! assert_eq!((rows[0].prompt.as_str(), rows[0].reply.as_deref()), ("hi", Some("hello")));
//! ```
//!
//! In the order to read them: [`json`], [`log`], [`entry`] (with [`block`], [`input`] and
//! [`known`], the only code that knows the format's names), [`session`], [`graph`], [`view`].

pub mod accepted;
pub mod agent_kind;
pub mod before;
pub mod block;
pub mod edit;
pub mod entry;
pub mod fault;
pub mod find;
pub mod graph;
pub mod history;
pub mod hook;
pub mod id;
pub mod input;
pub mod json;
pub mod jsonc;
pub mod known;
pub mod listed;
pub mod log;
mod marks;
pub mod price;
pub mod refused_content;
pub mod rewind;
pub mod secrets;
pub mod session;
pub mod spent;
pub mod tag;
pub mod tally;
pub mod text;
pub mod time;
pub mod title;
pub mod tokens;
pub mod tool;
pub mod usage;
pub mod view;
pub mod write;
