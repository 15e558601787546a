//! An error as people see it: what, which, and what next.

use std::fmt::Display;
use std::io;

use unspool_store::Error;

/// How a command ends when it does not end well.
#[derive(Debug)]
pub enum Failure {
    /// Nothing was found: exit code 1.
    Nothing(Told),
    /// Something failed: exit code 2.
    Failed(Told),
    /// A test found something; everything was said already: exit code 1.
    Found,
    /// Somebody stopped us; everything was said already: this exit code.
    Code(u8),
    /// Nobody reads any more: not an error.
    Closed,
}

/// A message and what to do about it.
#[derive(Debug)]
pub struct Told {
    /// What went wrong.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl Failure {
    /// Nothing was found.
    pub fn nothing(message: impl Display) -> Failure {
        Failure::Nothing(Told {
            message: message.to_string(),
            hint: None,
        })
    }

    /// Something failed.
    pub fn failed(message: impl Display) -> Failure {
        Failure::Failed(Told {
            message: message.to_string(),
            hint: None,
        })
    }

    /// Says what to do next.
    pub fn hint(mut self, hint: impl Display) -> Failure {
        if let Failure::Nothing(told) | Failure::Failed(told) = &mut self {
            told.hint = Some(hint.to_string());
        }
        self
    }

    /// Says what it is about, unless the message does.
    pub fn about(mut self, what: impl Display) -> Failure {
        if let Failure::Nothing(told) | Failure::Failed(told) = &mut self {
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
            Failure::Closed => 0,
            Failure::Code(code) => *code,
            Failure::Nothing(_) | Failure::Found => 1,
            Failure::Failed(_) => 2,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::failed(error),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        match error.io_error_kind() {
            Some(io::ErrorKind::BrokenPipe) => Failure::Closed,
            _ => Failure::failed(error),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let hint = error.hint();
        let failure = if error.is_not_found() {
            Failure::nothing(&error)
        } else {
            Failure::failed(&error)
        };
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
