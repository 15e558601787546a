//! How far a long session was sent, so that the next event need not read all of it again.
//!
//! A mark is a place in the transcript before which the receiver has everything. It is kept
//! beside the ledger, and holds what the end of the file does not say. It is believed only if
//! the ledger still knows the turn before it, the file goes on from the same bytes, the
//! sub-agents of the turns before are as they were, and what stands behind it stands alone
//! ([`unspool_model::view::split_point`]). In any other case the whole session is read, as it is when
//! it ends, and by everybody but the hook.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use unspool_model::id::Id;
use unspool_model::secrets::SecretFinder;
use unspool_model::view::split_point::{self, SplitPoint};
use unspool_send::ledger::{ReceiverKey, SendLedger};
use unspool_send::trace_id::TraceId;
use unspool_store::SessionFile;
use unspool_store::follow::{CursorBytes, FileCursor};
use unspool_store::hook_events;
use unspool_store::open::{self, FileStamp};
use unspool_store::{own_file, read_folder};

use super::send_context::SessionWithTraces;
use super::session_copies;

/// Less than this is read sooner than it is remembered.
pub const LARGE: u64 = 256 << 10;

/// A mark that nobody needed for so long is forgotten.
const KEPT_FOR: Duration = Duration::from_secs(30 * 86_400);

/// Raise this when marks of before mean something else.
const VERSION: u32 = 2;

/// A place in a transcript before which everything was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumePoint {
    version: u32,
    path: PathBuf,
    /// The file on its disk, and the hashes of its first bytes and of those before the place.
    file: (u64, u64, u64),
    offset: u64,
    lines: u32,
    /// How many turns stand before it.
    pub turns: usize,
    follows: Option<String>,
    /// The title that the session had.
    pub title: Option<String>,
    attached: bool,
    awaited: Vec<String>,
    /// The first line of the conversation.
    root: Option<String>,
    /// The trace of the turn before it.
    last: String,
    /// Files of the sub-agents before it, as they were.
    agents: Vec<(PathBuf, AgentFileState)>,
}

/// What a file was, and its side file: the disk, the size, the time.
pub type AgentFileState = [(u64, u64, i64); 2];

/// What the file of a sub-agent is at this moment.
pub fn look(agent: &Path) -> AgentFileState {
    [agent, &agent.with_extension("meta.json")].map(|path| {
        let stamp = open::stat_regular_file(path).map(|metadata| FileStamp::of(&metadata));
        let stamp = stamp.unwrap_or_default();
        (stamp.identity, stamp.size, stamp.modified)
    })
}

impl ResumePoint {
    /// Where the rest of the file begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The place as the model knows it.
    pub fn seam(&self) -> SplitPoint {
        SplitPoint {
            turns: self.turns,
            offset: self.offset,
            lines: self.lines,
            follows: self.follows.as_deref().map(Id::from),
            title: self.title.clone(),
            attached: self.attached,
            awaited: self
                .awaited
                .iter()
                .map(|id| Id::from(id.as_str()))
                .collect(),
        }
    }

    /// The first line of the conversation.
    pub fn root(&self) -> Option<Id> {
        self.root.as_deref().map(Id::from)
    }

    /// Whether a sub-agent stands before it.
    pub fn has(&self, agent: &Path) -> bool {
        self.agents.iter().any(|(path, _)| path == agent)
    }

    /// Whether the sub-agents before it are as they were.
    pub fn holds_for_agents(&self) -> bool {
        self.agents.iter().all(|(path, then)| look(path) == *then)
    }

    /// Whether the file goes on from the bytes that were read.
    fn holds(&self, file: &SessionFile) -> bool {
        let (identity, head, last) = self.file;
        let then = FileCursor {
            identity,
            head,
            last,
            offset: self.offset,
            lines: self.lines,
        };
        self.path == file.path && cursor(&file.path, self.offset, self.lines) == Some(then)
    }

    /// The mark behind the turns of a session that are settled, once everything that was
    /// chosen of them is taken. `looks` are the sub-agents as they were before they were read.
    fn next(
        opened: &SessionWithTraces<'_>,
        settled: usize,
        looks: &[(PathBuf, AgentFileState)],
    ) -> Option<ResumePoint> {
        let (file, base) = (opened.file, opened.read.mark.as_ref());
        let before = base.map_or(0, |base| base.turns);
        let session = &opened.read.family.main.session;
        let seam = split_point::last(session, settled.checked_sub(before)?)?;
        let turns = before + seam.turns;
        let last = opened.heads.iter().find(|head| head.n == turns)?;
        let lines = base.map_or(0, |base| base.lines) + seam.lines;
        let cursor = cursor(&file.path, seam.offset, lines)?;
        let open: Vec<usize> = opened
            .heads
            .iter()
            .filter(|head| head.n > turns)
            .flat_map(|head| opened.traces.agents_in(head.n))
            .collect();
        let files = opened.read.family.agents.iter().enumerate();
        let files = files.filter(|(at, _)| !open.contains(at));
        let mut agents: Vec<(PathBuf, AgentFileState)> =
            base.map_or_else(Vec::new, |base| base.agents.clone());
        for (_, agent) in files {
            let then = looks.iter().find(|(path, _)| *path == agent.file)?;
            agents.push(then.clone());
        }
        let lost = base.map_or_else(Vec::new, |base| base.awaited.clone());
        let awaited = seam.awaited.iter().map(ToString::to_string);
        // The first prompt behind a mark follows a line before it, which is not lost.
        let known = base.and_then(|base| base.follows.clone());
        let awaited = awaited.filter(|id| Some(id) != known.as_ref());
        let root = || session_copies::root(session).map(|root| root.to_string());
        Some(ResumePoint {
            version: VERSION,
            path: file.path.clone(),
            file: (cursor.identity, cursor.head, cursor.last),
            offset: seam.offset,
            lines,
            turns,
            follows: seam.follows.map(|id| id.to_string()),
            title: seam.title.or_else(|| base?.title.clone()),
            attached: seam.attached || base.is_some_and(|base| base.attached),
            awaited: lost.into_iter().chain(awaited).collect(),
            root: base.map_or_else(root, |base| base.root.clone()),
            last: last.id.to_string(),
            agents,
        })
    }
}

fn cursor(path: &Path, offset: u64, lines: u32) -> Option<FileCursor> {
    let (file, metadata) = open::open(path).ok()?;
    if metadata.len() < offset {
        return None;
    }
    let prints = CursorBytes::read(&file, offset).ok()?;
    Some(prints.cursor(open::identity(&metadata), offset, lines))
}

/// The marks of one receiver.
pub struct ResumePointStore {
    folder: PathBuf,
    key: ReceiverKey,
    /// Smaller sessions have none.
    from: u64,
}

impl ResumePointStore {
    /// Those beside a ledger, for sessions of at least so many bytes.
    pub fn new(sent: &Path, key: ReceiverKey, from: u64) -> ResumePointStore {
        ResumePointStore {
            folder: sent.join("marks"),
            key,
            from,
        }
    }

    /// The mark that a session may have once everything that was chosen of it is taken, if it
    /// is another than before; so many of its turns do not wait.
    pub fn next(&self, opened: &SessionWithTraces<'_>, settled: usize) -> Option<ResumePoint> {
        let next = (opened.file.bytes >= self.from)
            .then(|| ResumePoint::next(opened, settled, &opened.read.looks))?;
        next.filter(|next| opened.read.mark.as_ref() != Some(next))
    }

    fn path(&self, file: &SessionFile) -> PathBuf {
        let receiver = u64::from_be_bytes(self.key.0);
        let name = format!("{receiver:016x}-{}.json", hook_events::key(&file.id));
        self.folder.join(name)
    }

    /// The mark of a session, if it still holds.
    pub fn find(&self, file: &SessionFile, ledger: &SendLedger) -> Option<ResumePoint> {
        if file.bytes < self.from || ledger.damaged() > 0 || ledger.before(&file.id) > 0 {
            return None;
        }
        let path = self.path(file);
        let mark: ResumePoint = serde_json::from_slice(&own_file::read(&path).ok()?).ok()?;
        if mark.version < VERSION {
            // It may hold a token.
            let _ = fs::remove_file(path);
        }
        let last: TraceId = mark.last.parse().ok()?;
        let holds = mark.version == VERSION
            && ledger.sent(last).is_some()
            && mark.holds(file)
            && mark.holds_for_agents();
        holds.then_some(mark)
    }

    /// Keeps it for the next event. If that fails, the next one is only slower. One that holds
    /// a token, in a path or in the title, is not kept.
    pub fn keep(&self, file: &SessionFile, mark: &ResumePoint) {
        let Ok(text) = serde_json::to_string(mark) else {
            return;
        };
        let path = self.path(file);
        let _ = match SecretFinder::standard().has(&text) {
            true => fs::remove_file(path),
            false => own_file::replace(&path, text.as_bytes()),
        };
    }

    /// Forgets those that nobody needed for long.
    pub fn prune(sent: &Path, now: SystemTime) {
        let entries = read_folder::entries(sent.join("marks"))
            .into_iter()
            .flatten();
        for entry in entries.flatten() {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            let age = modified.map(|at| now.duration_since(at).unwrap_or_default());
            if age.is_ok_and(|age| age > KEPT_FOR) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}
