//! Secrets that are replaced on the way from file to file.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use foldhash::HashSet;
use unspool_model::edit::redact::Redactor;
use unspool_model::entry;
use unspool_model::id::Id;

use crate::failure::CommandFailure;

/// Replaces secrets, if anybody asked, and remembers where.
pub struct EditRedactor<'a> {
    redactor: Option<&'a Redactor>,
    replaced: Mutex<ReplacedSecrets>,
}

/// What was replaced.
#[derive(Debug, Default)]
pub struct ReplacedSecrets {
    /// How many secrets.
    pub found: u64,
    /// The lines in which they stood.
    pub changed: HashSet<Option<Id>>,
}

impl<'a> EditRedactor<'a> {
    /// One that replaces what this redactor finds; nothing without one.
    pub fn new(redactor: Option<&'a Redactor>) -> EditRedactor<'a> {
        EditRedactor {
            redactor,
            replaced: Mutex::default(),
        }
    }

    /// What was replaced, once all is done.
    pub fn replaced(self) -> ReplacedSecrets {
        let replaced = self.replaced.into_inner();
        replaced.unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, found: usize, lines: Vec<Option<Id>>) {
        let replaced = self.replaced.lock();
        let mut replaced = replaced.unwrap_or_else(PoisonError::into_inner);
        replaced.found += found as u64;
        replaced.changed.extend(lines);
    }

    /// A line of a transcript without its secrets; `None` if it stays as it is.
    pub fn line(&self, line: &[u8]) -> Option<Vec<u8>> {
        let redacted = self.redactor?.line(line)?;
        self.note(redacted.found.len(), entry::ids(line));
        Some(redacted.bytes)
    }

    /// A file beside a transcript without its secrets; `None` if it stays as it is.
    pub fn file(&self, path: &Path) -> Result<Option<Vec<u8>>, CommandFailure> {
        let Some(redactor) = self.redactor else {
            return Ok(None);
        };
        let bytes = fs::read(path).map_err(|why| unspool_store::StoreError::io(path, why))?;
        let redacted = redactor.file(&bytes);
        if let Some(redacted) = &redacted {
            self.note(redacted.found.len(), Vec::new());
        }
        Ok(redacted.map(|redacted| redacted.bytes))
    }
}
