//! What a Claude Code session is.
//!
//! A transcript is a file of JSON lines. A [`log::Log`] keeps them exactly; a
//! [`session::Session`] is what they mean, grown one line at a time; a [`view`] is what
//! somebody asks of it. No files, no clock, no terminal: reading again goes through
//! [`log::TranscriptSource`], and the time is an argument.
//!
//! ```
//! use unspool_model::log::Log;
//! use unspool_model::session::{Session, TranscriptRole};
//! use unspool_model::view::turns::{self, TurnOptions};
//!
//! let log = Log::new(concat!(
//!     r#"{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"hi"}}"#, "\n",
//!     r#"{"type":"assistant","uuid":"b","parentUuid":"a","message":{"id":"m","role":"assistant","#,
//!     r#""content":[{"type":"text","text":"hello"}],"usage":{"input_tokens":3,"output_tokens":5}}}"#, "\n",
//! ));
//! let session = Session::from_log(&log, TranscriptRole::Main);
//! assert_eq!(session.usage().output, 5);
//! let rows = turns::turns(&session, &log, TurnOptions::default());
//! assert_eq!((rows[0].prompt.as_str(), rows[0].reply.as_deref()), ("hi", Some("hello")));
//! ```
//!
//! In the order to read them: [`json`], [`log`], [`entry`] (with [`block`], [`input`] and
//! [`known`], the only code that knows the format's names), [`session`], [`graph`], [`view`].

pub mod accepted_names;
pub mod agent_kind;
mod bitset;
pub mod block;
pub mod continued_from;
pub mod edit;
pub mod entry;
pub mod entry_writer;
pub mod fault;
pub mod file_usage;
pub mod find;
pub mod graph;
pub mod hook_events;
pub mod id;
pub mod json;
pub mod jsonc;
pub mod known_names;
pub mod log;
pub mod price;
pub mod prompt_history;
pub mod refused_content;
pub mod rewind;
pub mod secrets;
pub mod session;
pub mod session_index;
pub mod tag;
pub mod text;
pub mod text_counts;
pub mod time;
pub mod title;
pub mod token_estimate;
pub mod tool;
pub mod usage;
pub mod user_input;
pub mod view;
