//! The sessions that a transcript goes on from, as files beside it.
//!
//! What names them is a rule of the model (see `unspool_model::continued_from`); here the file is read
//! through and the names become files that exist. A name from a transcript never leads to another
//! folder. Whoever asks again and again keeps a [`ContinuationCache`]: then only what was added is read.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;
use unspool_model::continued_from;

use crate::error::StoreError;
use crate::open::{self, FileStamp};
use crate::scan::{self, ScannedLines};
use crate::side_files::is_plain_file_name;

/// Not more than so many are looked for; a chain of sessions is shorter.
const MOST: usize = 32;

/// So many bytes before the end of what was read tell whether it is still the same file.
const MARK: u64 = 4 << 10;

/// Less than this is read sooner than it is remembered.
const LARGE: u64 = 1 << 20;

/// What was read of transcripts, to go on from there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContinuationCache {
    seen: BTreeMap<PathBuf, ContinuationScan>,
    dealt: BTreeMap<PathBuf, (u64, u64, i64)>,
    with: String,
}

/// How far one was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ContinuationScan {
    /// The file on its disk.
    identity: u64,
    /// All lines that begin before this were read; it is the start of a line.
    end: u64,
    /// Stands for the bytes before.
    mark: u64,
    /// The sessions that they name.
    names: Vec<String>,
}

impl ContinuationCache {
    /// The transcripts of sessions before the one at `path`, in the order in which it names
    /// them, and those before these: the oldest first.
    pub fn chain(&mut self, path: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut open = vec![path.to_owned()];
        while let Some(next) = open.pop() {
            for before in self.direct(&next).unwrap_or_default() {
                if before != path && !found.contains(&before) && found.len() < MOST {
                    found.push(before.clone());
                    open.push(before);
                }
            }
        }
        found.reverse();
        // What is not in the chain any more need not be remembered.
        self.seen
            .retain(|known, _| known == path || found.contains(known));
        self.dealt.retain(|known, _| found.contains(known));
        found
    }

    /// The transcripts beside this one that it names.
    pub fn direct(&mut self, path: &Path) -> Result<Vec<PathBuf>, StoreError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let (file, metadata) = open::open(path)?;
        let seen = self.seen.entry(path.to_owned()).or_default();
        let read = seen.go_on(path, &file, &metadata);
        read.map_err(|error| StoreError::io(path, error))?;
        let files = seen.names.iter().filter(|name| is_plain_file_name(name));
        let files = files.map(|name| folder.join(format!("{name}.jsonl")));
        Ok(files
            .filter(|file| open::stat_regular_file(file).is_ok())
            .collect())
    }

    /// Whether it saves more than reading it costs.
    pub fn is_worth_keeping(&self) -> bool {
        let read: u64 = self.seen.values().map(|seen| seen.end).sum();
        !self.dealt.is_empty() || read > LARGE
    }

    /// Whether a transcript is as it was when somebody dealt with it, together with `with`.
    pub fn is_processed(&self, path: &Path, with: &str) -> bool {
        self.with == with
            && open::stat_regular_file(path).is_ok_and(|metadata| {
                self.dealt.get(path) == Some(&stamp(&metadata)) && metadata.len() > 0
            })
    }

    /// Remembers that somebody dealt with it, as it was then.
    pub fn mark_processed(&mut self, path: &Path, then: &Metadata, with: &str) {
        if self.with != with {
            self.dealt.clear();
            with.clone_into(&mut self.with);
        }
        self.dealt.insert(path.to_owned(), stamp(then));
    }
}

fn stamp(metadata: &Metadata) -> (u64, u64, i64) {
    let FileStamp {
        identity,
        size,
        modified,
    } = FileStamp::of(metadata);
    (identity, size, modified)
}

impl ContinuationScan {
    /// Reads on from where reading ended, or from the start of another file.
    fn go_on(&mut self, path: &Path, file: &File, metadata: &Metadata) -> io::Result<()> {
        let identity = open::identity(metadata);
        let same = self.identity == identity
            && self.end <= metadata.len()
            && self.mark == mark(file, self.end)?;
        if !same {
            *self = ContinuationScan {
                identity,
                ..ContinuationScan::default()
            };
        }
        let own = path.file_stem().unwrap_or_default().to_string_lossy();
        let names = &mut self.names;
        let mut end = self.end;
        for part in scan::parts([(self.end, metadata.len())]) {
            part.read(file, |stretch| {
                let (offset, piece) = match stretch {
                    ScannedLines::Lines(offset, piece) => (offset, piece),
                    ScannedLines::Passed(line) => {
                        if line.ended {
                            end = line.end();
                        }
                        return;
                    }
                };
                for line in piece.split(|byte| *byte == b'\n') {
                    continued_from::previous_sessions(line, &own, &mut |name| {
                        if names.len() < MOST && !names.iter().any(|known| known == name) {
                            names.push(name.to_owned());
                        }
                    });
                }
                // A line that is not complete is read again.
                let whole = memchr::memrchr(b'\n', piece).map_or(0, |at| at + 1);
                if whole > 0 {
                    end = offset + whole as u64;
                }
            })?;
        }
        self.end = end;
        self.mark = mark(file, end)?;
        Ok(())
    }
}

/// What stands for the bytes before an offset.
fn mark(file: &File, end: u64) -> io::Result<u64> {
    let start = end.saturating_sub(MARK);
    let mut bytes = vec![0; (end - start) as usize];
    let read = open::read_at(file, &mut bytes, start)?;
    // Half of it is enough to notice, and any reader of JSON can take it.
    Ok(XxHash3_128::oneshot(&bytes[..read]) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn line(session: &str) -> String {
        format!(
            r#"{{"type":"user","sessionId":"{session}","message":{{"role":"user","content":"x"}}}}"#
        ) + "\n"
    }

    #[test]
    fn a_session_named_on_any_line_is_found_if_its_file_stands_beside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new.jsonl");
        fs::write(dir.path().join("old.jsonl"), line("old")).unwrap();
        fs::write(dir.path().join("up.jsonl"), line("up")).unwrap();
        let below = dir.path().join("below");
        fs::create_dir(&below).unwrap();
        let text = line("new") + &line("gone") + &line("new") + &line("old") + &line("old");
        fs::write(&path, text).unwrap();
        assert_eq!(direct(&path).unwrap(), [dir.path().join("old.jsonl")]);
        let inside = below.join("new.jsonl");
        fs::write(&inside, line("../up") + &line("..") + &line("/etc/passwd")).unwrap();
        assert!(direct(&inside).unwrap().is_empty());
    }

    fn direct(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
        ContinuationCache::default().direct(path)
    }

    fn chain(path: &Path) -> Vec<PathBuf> {
        ContinuationCache::default().chain(path)
    }

    #[test]
    fn whoever_remembers_reads_only_what_was_added() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(format!("{name}.jsonl"));
        for old in ["one", "two", "other"] {
            fs::write(path(old), line(old)).unwrap();
        }
        let mut memory = ContinuationCache::default();
        let start = line("new") + &line("one") + &line("new").repeat(200);
        fs::write(path("new"), &start).unwrap();
        assert_eq!(memory.direct(&path("new")).unwrap(), [path("one")]);
        assert_eq!(memory.seen[&path("new")].end, start.len() as u64);
        // Had it been read again, this would have been found: the file was changed far before
        // its end, which no client does.
        let changed = start.replacen("\"one\"", "\"two\"", 1);
        let half = &line("other")[..20];
        fs::write(path("new"), changed.clone() + half).unwrap();
        assert_eq!(memory.direct(&path("new")).unwrap(), [path("one")]);
        // Half a line counts when it is whole.
        fs::write(path("new"), changed + &line("other")).unwrap();
        let both = [path("one"), path("other")];
        assert_eq!(memory.direct(&path("new")).unwrap(), both);
        let text = serde_json::to_string(&memory).unwrap();
        assert_eq!(
            serde_json::from_str::<ContinuationCache>(&text).unwrap(),
            memory
        );
    }

    #[test]
    fn a_file_that_was_written_anew_is_read_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(format!("{name}.jsonl"));
        for old in ["one", "two"] {
            fs::write(path(old), line(old)).unwrap();
        }
        let mut memory = ContinuationCache::default();
        fs::write(path("new"), line("one") + &line("new")).unwrap();
        assert_eq!(memory.chain(&path("new")), [path("one")]);
        fs::write(path("new"), line("new") + &line("two") + &line("new")).unwrap();
        assert_eq!(memory.chain(&path("new")), [path("two")]);
        fs::write(path("new"), line("new")).unwrap();
        assert!(memory.chain(&path("new")).is_empty(), "it is shorter");
        assert_eq!(memory.seen.len(), 1, "what is not needed is forgotten");
    }

    #[test]
    fn what_was_dealt_with_counts_until_it_changes_or_somebody_else_asks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("old.jsonl");
        fs::write(&path, line("old")).unwrap();
        let mut memory = ContinuationCache::default();
        assert!(!memory.is_processed(&path, "a"));
        let then = fs::metadata(&path).unwrap();
        memory.mark_processed(&path, &then, "a");
        assert!(memory.is_processed(&path, "a") && !memory.is_processed(&path, "b"));
        fs::write(&path, line("old") + &line("old")).unwrap();
        assert!(!memory.is_processed(&path, "a"));
    }

    #[test]
    fn a_chain_is_followed_to_its_start_and_a_circle_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(format!("{name}.jsonl"));
        fs::write(path("c"), line("b") + &line("c")).unwrap();
        fs::write(path("b"), line("a") + &line("b")).unwrap();
        fs::write(path("a"), line("a")).unwrap();
        assert_eq!(chain(&path("c")), [path("a"), path("b")]);
        fs::write(path("a"), line("c") + &line("a")).unwrap();
        assert_eq!(chain(&path("c")), [path("a"), path("b")]);
        assert!(chain(&path("none")).is_empty());
    }
}
