//! Asks a model for text: the Messages API, or any command.
//!
//! Many questions at once, each tried several times, the answers in the order of the
//! questions. What is asked and what counts as an answer is the caller's business; this crate
//! knows nothing about sessions, keeps nothing on disk and prints nothing.

mod many_questions;
mod messages_api;
mod messages_endpoint;
mod shell;

pub use many_questions::{AskLimits, ModelQuestion, ask};
pub use messages_api::MessagesApi;
pub use messages_endpoint::{
    ANTHROPIC_API, ApiCredential, ApiErrorBody, EndpointError, MessagesEndpoint,
};
pub use shell::ShellProvider;

use std::time::Duration;

/// Somebody who can be asked.
pub trait AnswerProvider: Sync {
    /// Asks one question and waits for the answer, but no longer than this.
    fn ask(&self, question: &ModelQuestion, timeout: Duration) -> Result<ModelAnswer, AskError>;
}

/// What was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelAnswer {
    /// The words.
    pub text: String,
    /// Tokens that were read, as far as it is told.
    pub input: u64,
    /// Tokens that were written, as far as it is told.
    pub output: u64,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AskError {
    /// It may work later, not before this time has passed if one is given.
    Later {
        /// What went wrong.
        why: String,
        /// How long to wait.
        after: Option<Duration>,
    },
    /// This question will not be answered.
    Never(String),
    /// No question will be answered.
    Stop(AskStop),
}

/// Why nobody need be asked any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskStop {
    /// What went wrong.
    pub why: String,
    /// What to do about it.
    pub hint: String,
}
