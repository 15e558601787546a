//! Secrets that are replaced on the way from file to file.

use std::fs;
use std::path::Path;

use foldhash::HashSet;
use unspool_model::edit::redact::Redactor;
use unspool_model::id::Id;
use unspool_model::json;

use crate::failure::Failure;

/// Replaces secrets, if anybody asked, and remembers where.
pub struct Veil<'a> {
    redactor: Option<&'a Redactor>,
    /// How many were replaced.
    pub found: u64,
    /// The lines in which they stood.
    pub changed: HashSet<Option<Id>>,
}

impl<'a> Veil<'a> {
    /// One that replaces what this redactor finds; nothing without one.
    pub fn new(redactor: Option<&'a Redactor>) -> Veil<'a> {
        Veil {
            redactor,
            found: 0,
            changed: HashSet::default(),
        }
    }

    /// A line of a transcript without its secrets; `None` if it stays as it is.
    pub fn line(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let redacted = self.redactor?.line(line)?;
        self.found += redacted.found.len() as u64;
        let uuid = json::find(line, &["uuid"]).map(|span| json::string(span.of(line)));
        self.changed.insert(uuid.map(|uuid| Id::new(&uuid)));
        Some(redacted.bytes)
    }

    /// A file beside a transcript without its secrets; `None` if it stays as it is.
    pub fn file(&mut self, path: &Path) -> Result<Option<Vec<u8>>, Failure> {
        let Some(redactor) = self.redactor else {
            return Ok(None);
        };
        let bytes = fs::read(path).map_err(|why| unspool_store::Error::io(path, why))?;
        let redacted = redactor.file(&bytes);
        self.found += redacted
            .as_ref()
            .map_or(0, |redacted| redacted.found.len() as u64);
        Ok(redacted.map(|redacted| redacted.bytes))
    }
}
