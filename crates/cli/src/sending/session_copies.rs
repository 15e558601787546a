//! Which files repeat turns of others, and which of them is the oldest.
//!
//! A resumed, forked or cloned file begins with the lines of the one it comes from. Which of
//! them is the oldest: one that does not say it was forked comes before one that does, one that
//! this program did not make before one that it did, one that was there when its first reply
//! came before one that was not; then the one whose last line is earlier, then the order of the
//! paths.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use unspool_model::id::Id;
use unspool_model::session::{Message, Session, TranscriptRole};
use unspool_store::read::{self, LoadedSession, SessionReader};
use unspool_store::session_with_agents::{self, SessionWithAgents};
use unspool_store::{
    FoundSessionFiles, SessionFile, StoreError, SubAgentFile, find, open, parallel,
};

use crate::command_context::CommandContext;

/// So much of a file's start tells where its conversation begins.
const START: u64 = 16 << 10;

/// So much of its end tells when it was last written.
const END: u64 = 64 << 10;

/// A file that is made so many milliseconds after its first reply is a copy.
const LATE: i64 = 60_000;

/// Sessions that this program made of others, by their ids.
#[derive(Default)]
pub struct CopiedSessionIds(HashSet<String>);

impl CopiedSessionIds {
    /// Those that the journal knows. Where it cannot be read, none is known.
    pub fn by(world: &CommandContext) -> CopiedSessionIds {
        let list = world.journal().list().unwrap_or_default();
        let made = list.into_iter().filter_map(|one| {
            let task = one.entry.task;
            let other = |made: &String| !task.sources.contains(made);
            task.session.filter(other)
        });
        CopiedSessionIds(made.collect())
    }
}

/// Puts the oldest first.
pub fn oldest_first(world: &CommandContext, files: &mut Vec<SessionFile>) {
    let made = CopiedSessionIds::by(world);
    let ages = parallel::map(files, parallel::threads(), |_| 0, |file| age(file, &made));
    let mut both: Vec<(CopyAge, SessionFile)> = ages.into_iter().zip(files.drain(..)).collect();
    both.sort_by(|(a, x), (b, y)| (a, &x.path).cmp(&(b, &y.path)));
    files.extend(both.into_iter().map(|(_, file)| file));
}

/// Whether it says it was forked, whether this program made it, whether it was made late, and
/// when it was last written.
type CopyAge = (bool, bool, bool, i64);

fn age(file: &SessionFile, made: &CopiedSessionIds) -> CopyAge {
    let small = file.bytes <= START + END;
    let whole = small.then(|| read::read(&file.path, TranscriptRole::Main));
    let (start, end) = match whole {
        Some(whole) => (whole.ok(), None),
        None => (
            answered(file),
            read::read_end(&file.path, TranscriptRole::Main, 1, END).ok(),
        ),
    };
    let forked = |loaded: &LoadedSession| loaded.session.forked_from.is_some();
    let late = |loaded: &LoadedSession| is_late(&file.path, &loaded.session);
    let last = end.as_ref().or(start.as_ref());
    let last = last.and_then(|loaded| loaded.session.last);
    (
        start.as_ref().is_some_and(forked),
        made.0.contains(&file.id),
        start.as_ref().is_some_and(late),
        last.map_or(file.modified, |time| time.0),
    )
}

/// The start of a file, up to its first reply.
fn answered(file: &SessionFile) -> Option<LoadedSession> {
    let mut bytes = START;
    loop {
        let start = read::read_start(&file.path, TranscriptRole::Main, bytes).ok()?;
        if bytes >= file.bytes || !start.session.messages.is_empty() {
            return Some(start);
        }
        bytes = bytes.saturating_mul(16);
    }
}

/// Whether a file was made long after its first reply was written. Not all disks know.
fn is_late(path: &Path, session: &Session) -> bool {
    let mut replies = session.messages.iter();
    let reply = replies.find_map(Message::first);
    let made = open::stat_regular_file(path)
        .ok()
        .and_then(|it| open::made(&it));
    reply
        .zip(made)
        .is_some_and(|(reply, made)| made > reply.0.saturating_add(LATE))
}

/// The first line of a conversation, which copies share.
pub fn root(session: &Session) -> Option<Id> {
    let mut lines = session.records.iter();
    lines
        .find(|record| record.is_conversation() && record.uuid.is_some())
        .and_then(|record| record.uuid.clone())
}

/// The folders of the sessions that are sent, each looked at once.
#[derive(Default)]
pub struct SessionFolderCache(Mutex<HashMap<PathBuf, Arc<SessionFolder>>>);

/// What stands in one folder.
pub struct SessionFolder {
    found: FoundSessionFiles,
    agents: HashMap<String, Vec<usize>>,
    /// Files by the first line of their conversation.
    roots: OnceLock<HashMap<Id, Vec<usize>>>,
}

impl SessionFolderCache {
    /// The folder of a session.
    pub fn of(&self, file: &SessionFile) -> Arc<SessionFolder> {
        let dir = file.path.parent().unwrap_or(Path::new("")).to_owned();
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = known().get(&dir) {
            return Arc::clone(folder);
        }
        // Two who look at once do no harm.
        let folder = Arc::new(SessionFolder::look(&file.path));
        known().insert(dir, Arc::clone(&folder));
        folder
    }
}

impl SessionFolder {
    fn look(path: &Path) -> SessionFolder {
        let mut found = find::find_beside_transcript(path);
        found.identify_agents();
        let mut agents: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, agent) in found.agents.iter().enumerate() {
            if let Some(session) = &agent.session {
                agents.entry(session.clone()).or_default().push(at);
            }
        }
        SessionFolder {
            found,
            agents,
            roots: OnceLock::new(),
        }
    }

    /// The files of the sub-agents of a session.
    pub fn agents(&self, file: &SessionFile) -> impl Iterator<Item = &SubAgentFile> {
        let places = self.agents.get(&file.id);
        let places = places.into_iter().flatten();
        places.map(|&at| &self.found.agents[at])
    }

    /// The session with this id.
    pub fn session(&self, id: &str) -> Option<&SessionFile> {
        self.found.sessions.iter().find(|file| file.id == id)
    }

    /// A session with its sub-agents.
    pub fn family(
        &self,
        reader: &SessionReader,
        file: &SessionFile,
    ) -> Result<SessionWithAgents, StoreError> {
        self.rest(reader, file, 0, |_| true)
    }

    /// What stands in a session from a place on, with some of its sub-agents.
    pub fn rest(
        &self,
        reader: &SessionReader,
        file: &SessionFile,
        from: u64,
        with: impl Fn(&SubAgentFile) -> bool,
    ) -> Result<SessionWithAgents, StoreError> {
        let mine = |agent: &SubAgentFile| SubAgentFile {
            // As the caller has them, whichever way it came to the file.
            folder: Arc::clone(&file.folder),
            config: Arc::clone(&file.config),
            ..agent.clone()
        };
        let agents = self.agents(file).filter(|agent| with(agent));
        let found = FoundSessionFiles {
            sessions: vec![file.clone()],
            agents: agents.map(mine).collect(),
            ..FoundSessionFiles::default()
        };
        session_with_agents::read_session_with_agents_from(reader, &found, file, from)
    }

    /// Older files with the conversation that begins with this line, the oldest first. What
    /// this program made is asked for only if there are others.
    pub fn older<'m>(
        &self,
        file: &SessionFile,
        root: Option<Id>,
        made: impl FnOnce() -> &'m CopiedSessionIds,
    ) -> Vec<&SessionFile> {
        let Some(root) = root else {
            return Vec::new();
        };
        let roots = self.roots.get_or_init(|| self.roots());
        let copies = roots.get(&root).map_or(&[][..], Vec::as_slice);
        let others = copies.iter().map(|&at| &self.found.sessions[at]);
        let others: Vec<&SessionFile> = others.filter(|other| other.path != file.path).collect();
        if others.is_empty() {
            return others;
        }
        let made = made();
        let own = (age(file, made), &file.path);
        let mut older: Vec<(CopyAge, &SessionFile)> = others
            .into_iter()
            .map(|other| (age(other, made), other))
            .collect();
        older.retain(|(age, other)| (*age, &other.path) < own);
        older.sort_by(|(a, x), (b, y)| (a, &x.path).cmp(&(b, &y.path)));
        older.into_iter().map(|(_, file)| file).collect()
    }

    fn roots(&self) -> HashMap<Id, Vec<usize>> {
        let files = &self.found.sessions;
        let looked = parallel::map(
            files,
            parallel::threads(),
            |_| 0,
            |file| {
                let start = read::read_start(&file.path, TranscriptRole::Main, START);
                start.ok().and_then(|start| root(&start.session))
            },
        );
        let mut roots: HashMap<Id, Vec<usize>> = HashMap::new();
        for (at, root) in looked.into_iter().enumerate() {
            if let Some(root) = root {
                roots.entry(root).or_default().push(at);
            }
        }
        roots
    }
}
