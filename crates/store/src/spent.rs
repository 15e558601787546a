//! Tokens of many files at once: the scan behind `usage`.
//!
//! What counts how often is for `unspool_model::view::usage` to say.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memrchr;
use unspool_model::spent::Spending;
use unspool_model::view::usage::Ledger;
use unspool_model::view::usage::group::{Place, Places};

use crate::error::Error;
use crate::find::Found;
use crate::open::{self, Stamp};
use crate::scan::{self, Part, Stretch};
use crate::{each, project};

/// A file that may tell tokens, and what its place says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file.
    pub path: PathBuf,
    /// What tells whether it is still as it was.
    pub stamp: Stamp,
    /// Its session, unless only its lines know.
    pub session: Option<String>,
    /// The sub-agent whose file it is.
    pub agent: Option<String>,
    /// The name of its project's folder, which all files there share.
    pub folder: Arc<str>,
}

/// Every file that may tell tokens: sessions, sub-agents, and also the client's own helpers,
/// such as those that compact or warm up, since they cost as much.
pub fn sources(found: Found) -> Vec<Source> {
    let count = found.sessions.len() + found.agents.len() + found.others.len();
    let mut all = Vec::with_capacity(count);
    all.extend(found.sessions.into_iter().map(|file| Source {
        path: file.path,
        stamp: file.stamp,
        session: Some(file.id),
        agent: None,
        folder: file.folder,
    }));
    all.extend(found.agents.into_iter().map(|file| Source {
        path: file.path,
        stamp: file.stamp,
        session: file.session,
        agent: Some(file.id),
        folder: file.folder,
    }));
    let others = found.others.into_iter().filter(|file| file.bytes > 0);
    all.extend(others.map(|file| Source {
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
pub fn places(sources: &[Source], ledger: &Ledger) -> Places {
    let own = || {
        let all = (0..).zip(sources);
        all.map(|(nth, source)| own_place(source, ledger.origin(nth)))
    };
    let sessions = own().filter(|place| place.agent.is_none());
    let projects: HashMap<&str, &str> = sessions
        .filter_map(|place| Some((place.session?, place.project)))
        .collect();
    // A sub-agent may work elsewhere; what it costs, its session's project costs.
    let project = |place: Place<'_>| {
        let id = place.session.filter(|_| place.agent.is_some())?;
        projects.get(id).copied()
    };
    own()
        .map(|place| Place {
            project: project(place).unwrap_or(place.project),
            ..place
        })
        .collect()
}

fn own_place<'a>(
    source: &'a Source,
    (cwd, session): (Option<&'a str>, Option<&'a str>),
) -> Place<'a> {
    Place {
        session: source.session.as_deref().or(session),
        agent: source.agent.as_deref(),
        project: cwd.map_or(&*source.folder, project::project_of),
    }
}

/// What a file says, read from some place on.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// What its ended lines say.
    pub spending: Spending,
    /// What stands behind the last newline says, if that is a whole line.
    pub tail: Option<Box<Spending>>,
    /// Behind the last newline.
    pub end: u64,
}

/// Reads each file from its offset on, which is the start of a line, to its end.
pub fn gather(files: &[(&Path, u64, u64)], threads: usize) -> Vec<Result<Gathered, Error>> {
    let parts = scan::parts(files.iter().map(|(_, start, end)| (*start, *end)));
    let read = each::map(
        &parts,
        threads,
        |part| part.end - part.start,
        |part| gather_part(files[part.file].0, part),
    );
    let mut all: Vec<Result<Gathered, Error>> = files
        .iter()
        .map(|(_, start, _)| {
            Ok(Gathered {
                end: *start,
                ..Gathered::default()
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

impl Gathered {
    fn append(&mut self, next: Gathered) {
        if self.spending.is_empty() {
            self.spending = next.spending;
        } else {
            self.spending.reopen();
            self.spending.append(&next.spending);
            self.spending.settle();
        }
        // The file may have grown since it was cut: then the next part begins behind.
        self.tail = next.tail;
        self.end = self.end.max(next.end);
    }
}

fn gather_part(path: &Path, part: &Part) -> Result<Gathered, Error> {
    let (file, _) = open::open(path)?;
    let mut gathered = Gathered {
        end: part.start,
        ..Gathered::default()
    };
    let read = part.read(&file, |stretch| {
        let (offset, bytes) = match stretch {
            Stretch::Lines(offset, bytes) => (offset, bytes),
            // No reply is as long as that.
            Stretch::Passed(line) => {
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
            let mut last = Spending::default();
            last.feed(offset + ended as u64, tail);
            gathered.tail = (!last.is_empty()).then(|| Box::new(last));
        }
    });
    read.map_err(|why| Error::io(path, why))?;
    // Many files are held at once.
    gathered.spending.settle();
    Ok(gathered)
}
