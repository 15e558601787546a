//! An error as people see it: what, which, and what next.

use std::fmt::Display;
use std::io;

use unspool_store::StoreError;

/// How a command ends when it does not end well.
#[derive(Debug)]
pub enum CommandFailure {
    /// Nothing was found: exit code 1.
    Nothing(FailureMessage),
    /// Something failed: exit code 2.
    Failed(FailureMessage),
    /// A test found something; everything was said already: exit code 1.
    Found,
    /// Somebody stopped us; everything was said already: this exit code.
    Code(u8),
    /// Nobody reads any more: not an error.
    Closed,
}

/// A message and what to do about it.
#[derive(Debug)]
pub struct FailureMessage {
    /// What went wrong.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl CommandFailure {
    /// Nothing was found.
    pub fn nothing(message: impl Display) -> CommandFailure {
        CommandFailure::Nothing(FailureMessage {
            message: message.to_string(),
            hint: None,
        })
    }

    /// Something failed.
    pub fn failed(message: impl Display) -> CommandFailure {
        CommandFailure::Failed(FailureMessage {
            message: message.to_string(),
            hint: None,
        })
    }

    /// Says what to do next.
    pub fn hint(mut self, hint: impl Display) -> CommandFailure {
        if let CommandFailure::Nothing(told) | CommandFailure::Failed(told) = &mut self {
            told.hint = Some(hint.to_string());
        }
        self
    }

    /// Says what it is about, unless the message does.
    pub fn about(mut self, what: impl Display) -> CommandFailure {
        if let CommandFailure::Nothing(told) | CommandFailure::Failed(told) = &mut self {
            let what = what.to_string();
            if !told.message.contains(&what) {
                told.message = format!("{what}: {}", told.message);
            }
        }
        self
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            CommandFailure::Closed => 0,
            CommandFailure::Code(code) => *code,
            CommandFailure::Nothing(_) | CommandFailure::Found => 1,
            CommandFailure::Failed(_) => 2,
        }
    }
}

impl From<io::Error> for CommandFailure {
    fn from(error: io::Error) -> CommandFailure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CommandFailure::Closed,
            _ => CommandFailure::failed(error),
        }
    }
}

impl From<serde_json::Error> for CommandFailure {
    fn from(error: serde_json::Error) -> CommandFailure {
        match error.io_error_kind() {
            Some(io::ErrorKind::BrokenPipe) => CommandFailure::Closed,
            _ => CommandFailure::failed(error),
        }
    }
}

impl From<StoreError> for CommandFailure {
    fn from(error: StoreError) -> CommandFailure {
        let hint = error.hint();
        let failure = if error.is_not_found() {
            CommandFailure::nothing(&error)
        } else {
            CommandFailure::failed(&error)
        };
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
