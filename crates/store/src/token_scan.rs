//! Tokens of many files at once: the scan behind `usage`.
//!
//! What counts how often is for `unspool_model::view::usage` to say.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memrchr;
use unspool_model::file_usage::FileUsage;
use unspool_model::view::usage::UsageLedger;
use unspool_model::view::usage::group::{FileOwner, FileOwners};

use crate::error::StoreError;
use crate::find::FoundSessionFiles;
use crate::open::{self, FileStamp};
use crate::scan::{self, FilePart, ScannedLines};
use crate::{parallel, project};

/// A file that may tell tokens, and what its place says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenScanFile {
    /// The file.
    pub path: PathBuf,
    /// What tells whether it is still as it was.
    pub stamp: FileStamp,
    /// Its session, unless only its lines know.
    pub session: Option<String>,
    /// The sub-agent whose file it is.
    pub agent: Option<String>,
    /// The name of its project's folder, which all files there share.
    pub folder: Arc<str>,
}

/// Every file that may tell tokens: sessions, sub-agents, and also the client's own helpers,
/// such as those that compact or warm up, since they cost as much.
pub fn token_scan_files(found: FoundSessionFiles) -> Vec<TokenScanFile> {
    let count = found.sessions.len() + found.agents.len() + found.others.len();
    let mut all = Vec::with_capacity(count);
    all.extend(found.sessions.into_iter().map(|file| TokenScanFile {
        path: file.path,
        stamp: file.stamp,
        session: Some(file.id),
        agent: None,
        folder: file.folder,
    }));
    all.extend(found.agents.into_iter().map(|file| TokenScanFile {
        path: file.path,
        stamp: file.stamp,
        session: file.session,
        agent: Some(file.id),
        folder: file.folder,
    }));
    let others = found.others.into_iter().filter(|file| file.bytes > 0);
    all.extend(others.map(|file| TokenScanFile {
        stamp: file.stamp,
        session: file.session,
        agent: agent_of(&file.path),
        folder: file.folder,
        path: file.path,
    }));
    all
}

fn agent_of(path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_string_lossy();
    stem.strip_prefix("agent-").map(str::to_owned)
}

/// Where each file belongs: as its place says, else as its lines say.
pub fn places(sources: &[TokenScanFile], ledger: &UsageLedger) -> FileOwners {
    let own = || {
        let all = (0..).zip(sources);
        all.map(|(nth, source)| own_place(source, ledger.origin(nth)))
    };
    let sessions = own().filter(|place| place.agent.is_none());
    let projects: HashMap<&str, &str> = sessions
        .filter_map(|place| Some((place.session?, place.project)))
        .collect();
    // A sub-agent may work elsewhere; what it costs, its session's project costs.
    let project = |place: FileOwner<'_>| {
        let id = place.session.filter(|_| place.agent.is_some())?;
        projects.get(id).copied()
    };
    own()
        .map(|place| FileOwner {
            project: project(place).unwrap_or(place.project),
            ..place
        })
        .collect()
}

fn own_place<'a>(
    source: &'a TokenScanFile,
    (cwd, session): (Option<&'a str>, Option<&'a str>),
) -> FileOwner<'a> {
    FileOwner {
        session: source.session.as_deref().or(session),
        agent: source.agent.as_deref(),
        project: cwd.map_or(&*source.folder, project::project_of),
    }
}

/// What a file says, read from some place on.
#[derive(Clone, Debug, Default)]
pub struct TokenScanResult {
    /// What its ended lines say.
    pub spending: FileUsage,
    /// What stands behind the last newline says, if that is a whole line.
    pub tail: Option<Box<FileUsage>>,
    /// Behind the last newline.
    pub end: u64,
}

/// Reads each file from its offset on, which is the start of a line, to its end.
pub fn scan_tokens(
    files: &[(&Path, u64, u64)],
    threads: usize,
) -> Vec<Result<TokenScanResult, StoreError>> {
    let parts = scan::parts(files.iter().map(|(_, start, end)| (*start, *end)));
    let read = parallel::map(
        &parts,
        threads,
        |part| part.end - part.start,
        |part| gather_part(files[part.file].0, part),
    );
    let mut all: Vec<Result<TokenScanResult, StoreError>> = files
        .iter()
        .map(|(_, start, _)| {
            Ok(TokenScanResult {
                end: *start,
                ..TokenScanResult::default()
            })
        })
        .collect();
    for (part, read) in parts.iter().zip(read) {
        let slot = &mut all[part.file];
        match (slot.as_mut(), read) {
            (Ok(whole), Ok(next)) => whole.append(next),
            (Ok(_), Err(error)) => *slot = Err(error),
            (Err(_), _) => {}
        }
    }
    all
}

impl TokenScanResult {
    fn append(&mut self, next: TokenScanResult) {
        if self.spending.is_empty() {
            self.spending = next.spending;
        } else {
            self.spending.reopen();
            self.spending.append(&next.spending);
            self.spending.shrink_to_fit();
        }
        // The file may have grown since it was cut: then the next part begins behind.
        self.tail = next.tail;
        self.end = self.end.max(next.end);
    }
}

fn gather_part(path: &Path, part: &FilePart) -> Result<TokenScanResult, StoreError> {
    let (file, _) = open::open(path)?;
    let mut gathered = TokenScanResult {
        end: part.start,
        ..TokenScanResult::default()
    };
    let read = part.read(&file, |stretch| {
        let (offset, bytes) = match stretch {
            ScannedLines::Lines(offset, bytes) => (offset, bytes),
            // No reply is as long as that.
            ScannedLines::Passed(line) => {
                if line.ended {
                    gathered.end = line.end();
                }
                return;
            }
        };
        let ended = memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        let (lines, tail) = bytes.split_at(ended);
        gathered.spending.feed(offset, lines);
        if !lines.is_empty() {
            gathered.end = offset + ended as u64;
        }
        if !tail.is_empty() {
            let mut last = FileUsage::default();
            last.feed(offset + ended as u64, tail);
            gathered.tail = (!last.is_empty()).then(|| Box::new(last));
        }
    });
    read.map_err(|why| StoreError::io(path, why))?;
    // Many files are held at once.
    gathered.spending.shrink_to_fit();
    Ok(gathered)
}
