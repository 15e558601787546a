//! Secrets that are replaced on the way from file to file.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use foldhash::HashSet;
use unspool_model::edit::redact::Redactor;
use unspool_model::id::Id;
use unspool_model::json;

use crate::failure::Failure;

/// Replaces secrets, if anybody asked, and remembers where.
pub struct Veil<'a> {
    redactor: Option<&'a Redactor>,
    replaced: Mutex<Replaced>,
}

/// What was replaced.
#[derive(Debug, Default)]
pub struct Replaced {
    /// How many secrets.
    pub found: u64,
    /// The lines in which they stood.
    pub changed: HashSet<Option<Id>>,
}

impl<'a> Veil<'a> {
    /// One that replaces what this redactor finds; nothing without one.
    pub fn new(redactor: Option<&'a Redactor>) -> Veil<'a> {
        Veil {
            redactor,
            replaced: Mutex::default(),
        }
    }

    /// What was replaced, once all is done.
    pub fn replaced(self) -> Replaced {
        let replaced = self.replaced.into_inner();
        replaced.unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, found: usize, line: Option<Option<Id>>) {
        let replaced = self.replaced.lock();
        let mut replaced = replaced.unwrap_or_else(PoisonError::into_inner);
        replaced.found += found as u64;
        replaced.changed.extend(line);
    }

    /// A line of a transcript without its secrets; `None` if it stays as it is.
    pub fn line(&self, line: &[u8]) -> Option<Vec<u8>> {
        let redacted = self.redactor?.line(line)?;
        let uuid = json::find(line, &["uuid"]).map(|span| json::string(span.of(line)));
        let uuid = uuid.map(|uuid| Id::new(&uuid));
        self.note(redacted.found.len(), Some(uuid));
        Some(redacted.bytes)
    }

    /// A file beside a transcript without its secrets; `None` if it stays as it is.
    pub fn file(&self, path: &Path) -> Result<Option<Vec<u8>>, Failure> {
        let Some(redactor) = self.redactor else {
            return Ok(None);
        };
        let bytes = fs::read(path).map_err(|why| unspool_store::Error::io(path, why))?;
        let redacted = redactor.file(&bytes);
        if let Some(redacted) = &redacted {
            self.note(redacted.found.len(), None);
        }
        Ok(redacted.map(|redacted| redacted.bytes))
    }
}
