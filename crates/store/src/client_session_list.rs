//! The client's own list of the sessions of a project, where it keeps one.

use std::io::Read;
use std::path::Path;

use serde_json::{Value, json};
use unspool_model::log::LONGEST_LINE;

use crate::atomic_write::ModifiedTimePolicy;
use crate::error::StoreError;
use crate::journal::FileTransaction;
use crate::open::{self, FileStamp};

/// The name of the list in the folder of a project.
pub const NAME: &str = "sessions-index.json";

/// A list as it is and as it will be.
#[derive(Clone, Debug)]
pub struct ClientSessionList {
    stamp: Option<FileStamp>,
    value: Value,
    changed: bool,
    gone: bool,
}

impl ClientSessionList {
    /// The list with this path; an empty one of this directory where there is none, and `None`
    /// if what is there cannot be read.
    pub fn read(path: &Path, directory: &str) -> Option<ClientSessionList> {
        let (mut file, metadata) = match open::open(path) {
            Ok(opened) => opened,
            Err(_) if path.symlink_metadata().is_ok() => return None,
            Err(_) => {
                return Some(ClientSessionList {
                    stamp: None,
                    value: json!({"version": 1, "entries": [], "originalPath": directory}),
                    changed: false,
                    gone: false,
                });
            }
        };
        // A list of a thousand sessions has less than a megabyte.
        if metadata.len() > LONGEST_LINE as u64 {
            return None;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let value: Value = serde_json::from_slice(&bytes).ok()?;
        value["entries"].is_array().then(|| ClientSessionList {
            stamp: Some(FileStamp::of(&metadata)),
            value,
            changed: false,
            gone: false,
        })
    }

    /// What the file was when it was read, if there is one.
    pub fn stamp(&self) -> Option<FileStamp> {
        self.stamp
    }

    /// The entry of a session.
    pub fn entry(&self, id: &str) -> Option<&Value> {
        let mut entries = self.value["entries"].as_array()?.iter();
        entries.find(|entry| entry["sessionId"] == *id)
    }

    /// Takes the entry of a session away.
    pub fn take(&mut self, id: &str) -> Option<Value> {
        let entries = self.value["entries"].as_array_mut()?;
        let at = entries.iter().position(|entry| entry["sessionId"] == *id)?;
        self.changed = true;
        Some(entries.remove(at))
    }

    /// Everything that is left; the list itself goes. `None` if there was no such file.
    pub fn take_all(&mut self) -> Option<Vec<Value>> {
        self.stamp?;
        self.gone = true;
        self.changed = true;
        let entries = self.value["entries"].as_array_mut()?;
        Some(std::mem::take(entries))
    }

    /// Adds an entry at the end.
    pub fn put(&mut self, entry: Value) {
        if let Some(entries) = self.value["entries"].as_array_mut() {
            entries.push(entry);
            self.changed = true;
        }
    }

    /// Is to be written even if no entry was added or taken.
    pub fn touch(&mut self) {
        self.changed = true;
    }

    /// As it will be written.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(&self.value).unwrap_or_default()
    }

    /// Prepares what has changed.
    pub fn write(&self, work: &mut FileTransaction, path: &Path) -> Result<(), StoreError> {
        let text = self.text();
        let fill = |out: &mut dyn std::io::Write| out.write_all(text.as_bytes());
        match self.stamp {
            Some(_) if self.gone => work.remove(path),
            _ if !self.changed => Ok(()),
            Some(stamp) => work
                .replace(path, stamp, ModifiedTimePolicy::Now, fill)
                .map(drop),
            None => work.create(path, fill).map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn entries_are_found_taken_and_added_and_the_rest_stays_in_its_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        let text = r#"{"version":1,"x":[1,2],"entries":[{"sessionId":"b","z":1,"a":2},{"sessionId":"a"}],"originalPath":"/p"}"#;
        fs::write(&path, text).unwrap();
        let mut list = ClientSessionList::read(&path, "/q").unwrap();
        assert_eq!(list.entry("a"), Some(&json!({"sessionId": "a"})));
        assert!(list.take("a").is_some() && list.take("a").is_none());
        list.put(json!({"sessionId": "c"}));
        let after: String = list.text().split_whitespace().collect();
        assert_eq!(
            after,
            text.replace(r#"{"sessionId":"a"}"#, r#"{"sessionId":"c"}"#)
        );
    }

    #[test]
    fn an_entry_of_another_form_is_kept_and_is_nobodys() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        fs::write(&path, r#"{"entries":[{"a":1}]}"#).unwrap();
        let mut list = ClientSessionList::read(&path, "/q").unwrap();
        assert_eq!(list.entry("a"), None);
        assert_eq!(list.take_all().map(|entries| entries.len()), Some(1));
    }

    #[test]
    fn what_is_no_list_is_none_and_what_is_not_there_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        let list = ClientSessionList::read(&path, "/q").unwrap();
        assert!(list.stamp().is_none() && list.text().contains("\"/q\""));
        for text in ["", "torn {", "[]", r#"{"entries":{}}"#] {
            fs::write(&path, text).unwrap();
            assert!(ClientSessionList::read(&path, "/q").is_none(), "{text}");
        }
    }
}
