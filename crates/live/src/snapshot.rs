//! Rows that are kept over restarts, so that only what changed is read again.
//!
//! One file that only grows, a line per session that changed; of several lines about one
//! session the last counts. When most of it is out of date it is written anew, whole or not at
//! all. It is a cache: it may be deleted at any time, and a line that makes no sense is passed
//! over. Two loops that write to it at once do no harm.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use unspool_model::secrets::SecretFinder;
use unspool_show::wire::session::SessionJson;
use unspool_store::open::FileStamp;
use unspool_store::own_file;

/// What is kept of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotSession {
    /// Its file.
    pub path: String,
    /// All files of it, and what they were.
    pub files: Vec<SnapshotFileStamp>,
    /// Its row; none if it is no conversation.
    pub row: Option<SessionJson>,
    /// When time alone changes its state, in milliseconds since 1970.
    pub changes: Option<i64>,
    /// Titles that it gives to other sessions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<(u64, String)>,
}

/// What a file was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotFileStamp(pub PathBuf, pub u64, pub u64, pub i64);

impl SnapshotFileStamp {
    /// The mark of a file.
    pub fn new(path: &Path, stamp: FileStamp) -> SnapshotFileStamp {
        SnapshotFileStamp(path.into(), stamp.identity, stamp.size, stamp.modified)
    }

    /// What the file was.
    pub fn stamp(&self) -> FileStamp {
        FileStamp {
            identity: self.1,
            size: self.2,
            modified: self.3,
        }
    }
}

/// What rows depend on besides their files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SnapshotHeader {
    unspool: String,
    terms: u64,
}

/// The form of the lines; another number, and what was kept is not read.
const FORM: &str = concat!(env!("CARGO_PKG_VERSION"), "/5");

/// The file of rows.
#[derive(Debug)]
pub struct SnapshotFile {
    path: PathBuf,
    head: SnapshotHeader,
    /// Lines in the file, about.
    lines: usize,
    /// Whether the last line was never ended.
    torn: bool,
    file: Option<File>,
}

/// More lines than this, and half of them out of date: time to write anew.
const FEW: usize = 1_000;

impl SnapshotFile {
    /// The file at a path; `terms` stands for all that rows depend on besides their files.
    pub fn new(path: &Path, terms: u64) -> SnapshotFile {
        SnapshotFile {
            path: path.into(),
            head: SnapshotHeader {
                unspool: FORM.to_owned(),
                terms,
            },
            lines: 0,
            torn: false,
            file: None,
        }
    }

    /// What was kept, by the paths of sessions; nothing if it was kept under other terms.
    pub fn load(&mut self) -> HashMap<String, SnapshotSession> {
        let mut all = HashMap::new();
        let Ok(file) = own_file::open(&self.path) else {
            return all;
        };
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let mut line = Vec::new();
        let mut next = |line: &mut Vec<u8>| {
            line.clear();
            reader.read_until(b'\n', line).unwrap_or(0) > 0
        };
        if !next(&mut line)
            || serde_json::from_slice::<SnapshotHeader>(&line)
                .ok()
                .as_ref()
                != Some(&self.head)
        {
            let _ = fs::remove_file(&self.path);
            return all;
        }
        while next(&mut line) {
            self.lines += 1;
            self.torn = !line.ends_with(b"\n");
            if let Ok(kept) = serde_json::from_slice::<SnapshotSession>(&line) {
                all.insert(kept.path.clone(), kept);
            }
        }
        all
    }

    /// Keeps what changed. `all` gives everything there is, for when the file is written anew.
    pub fn save<'a, I: Iterator<Item = SnapshotSession>>(
        &mut self,
        changed: &[SnapshotSession],
        sessions: usize,
        all: impl FnOnce() -> I + 'a,
    ) -> io::Result<()> {
        let many = self.lines + changed.len();
        if many > FEW && many > sessions * 2 {
            return self.rewrite(all());
        }
        let mut bytes = Vec::new();
        if self.file.is_none() {
            let file = open(&self.path)?;
            if file.metadata()?.len() == 0 {
                push(&mut bytes, &self.head);
            } else if self.torn {
                bytes.push(b'\n');
            }
            self.file = Some(file);
        }
        for kept in changed.iter().filter(|kept| may_keep(kept)) {
            push(&mut bytes, kept);
        }
        if let Some(file) = &mut self.file {
            // In one call, so that lines of two writers are not mixed.
            file.write_all(&bytes)?;
        }
        self.lines = many;
        Ok(())
    }

    fn rewrite(&mut self, all: impl Iterator<Item = SnapshotSession>) -> io::Result<()> {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{}", std::process::id()));
        let staged = PathBuf::from(name);
        let _ = fs::remove_file(&staged);
        let mut lines = 0;
        let mut out = io::BufWriter::new(open(&staged)?);
        let mut bytes = Vec::new();
        push(&mut bytes, &self.head);
        for kept in all.filter(may_keep) {
            push(&mut bytes, &kept);
            lines += 1;
            out.write_all(&bytes)?;
            bytes.clear();
        }
        out.write_all(&bytes)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        fs::rename(&staged, &self.path)?;
        (self.lines, self.file) = (lines, Some(file));
        Ok(())
    }
}

/// Whether a session may be kept: one whose paths hold a token is read again each time.
fn may_keep(kept: &SnapshotSession) -> bool {
    let has = |path: &Path| SecretFinder::forms().has(&path.to_string_lossy());
    !has(Path::new(&kept.path)) && !kept.files.iter().any(|mark| has(&mark.0))
}

fn push(bytes: &mut Vec<u8>, line: &impl Serialize) {
    let before = bytes.len();
    if serde_json::to_writer(&mut *bytes, line).is_err() {
        bytes.truncate(before);
        return;
    }
    bytes.push(b'\n');
}

/// Opens a file of ours to add to it, for nobody else to read.
fn open(path: &Path) -> io::Result<File> {
    let folder = path.parent().unwrap_or(Path::new("."));
    own_file::make_folder(folder)?;
    own_file::append(path)
}
