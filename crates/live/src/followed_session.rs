//! A session and its sub-agents, folded, and read on while their files grow.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use unspool_model::edit::redact::Redactor;
use unspool_model::file_usage::FileUsage;
use unspool_model::log::Line;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::status::StatusSignals;
use unspool_store::error::StoreError;
use unspool_store::find::{SessionFile, SubAgentFile};
use unspool_store::follow::{PollResult, TranscriptTail};
use unspool_store::read::{LoadedSession, SessionReader, TrailingBytes};
use unspool_store::session_with_agents::is_warm_up;

use crate::session_row::SessionRowParts;

/// About how many bytes a line takes when it is folded.
const PER_RECORD: u64 = 450;

/// A file that is folded and followed.
#[derive(Debug)]
pub struct FollowedFile {
    tail: TranscriptTail,
    /// What its lines mean.
    pub session: Session,
}

impl FollowedFile {
    /// A file that was read so far as its lines have ended.
    pub fn after(loaded: LoadedSession) -> Result<FollowedFile, StoreError> {
        Ok(FollowedFile {
            tail: TranscriptTail::after(&loaded)?,
            session: loaded.session,
        })
    }

    /// A file from its top.
    fn new(path: &Path, role: TranscriptRole) -> FollowedFile {
        FollowedFile {
            tail: TranscriptTail::new(path),
            session: Session::new(role),
        }
    }

    /// Takes in what has been written since.
    pub fn poll(&mut self, mask: Option<&Redactor>) -> Result<PollResult, StoreError> {
        let role = self.session.role();
        let session = &mut self.session;
        let polled = self.tail.poll(|line| {
            // The top of a file that is another one now.
            if line.number == 1 {
                *session = Session::new(role);
            }
            push(session, &line, mask);
        })?;
        if polled.restarted && polled.lines == 0 {
            *session = Session::new(role);
        }
        Ok(polled)
    }

    /// Behind the last line that ended.
    pub fn offset(&self) -> u64 {
        self.tail.cursor().offset
    }

    fn weight(&self) -> u64 {
        self.session.records.len() as u64 * PER_RECORD
    }
}

/// Folds a line, without its secrets if they are to be masked.
fn push(session: &mut Session, line: &Line<'_>, mask: Option<&Redactor>) {
    match mask.and_then(|mask| mask.line(line.bytes)) {
        Some(masked) => {
            let bytes = masked.bytes.as_slice();
            session.push(&Line { bytes, ..*line })
        }
        None => session.push(line),
    };
}

/// A session with its sub-agents.
#[derive(Debug)]
pub struct FollowedSession {
    /// The session.
    pub main: FollowedFile,
    /// Its sub-agents by their files.
    pub agents: BTreeMap<PathBuf, FollowedFile>,
    /// What the client's own helpers used, by their files.
    pub helpers: BTreeMap<PathBuf, FileUsage>,
    /// The title that another file gives it, if it has none of its own.
    pub title: Option<String>,
}

impl FollowedSession {
    /// What somebody wants to know of all of it together.
    pub fn look<T>(
        &self,
        file: &SessionFile,
        signals: &StatusSignals,
        ask: impl FnOnce(&SessionRowParts<'_>) -> T,
    ) -> T {
        let warm_ups = self.agents.iter().filter(|one| self.is_warm_up(one));
        let warm_ups: Vec<FileUsage> = warm_ups
            .map(|(_, agent)| FileUsage::of(&agent.session))
            .collect();
        let helpers: Vec<&FileUsage> = self.helpers.values().chain(&warm_ups).collect();
        ask(&SessionRowParts {
            file,
            session: &self.main.session,
            agents: &self.agents(),
            helpers: &helpers,
            title: self.title.as_deref(),
            signals,
        })
    }

    /// About how many bytes it takes.
    pub fn weight(&self) -> u64 {
        let agents = self.agents.values().map(|agent| agent.weight());
        self.main.weight() + agents.sum::<u64>()
    }

    /// Reads on in one of its files, `None`: its own.
    pub fn poll(
        &mut self,
        agent: Option<&SubAgentFile>,
        mask: Option<&Redactor>,
    ) -> Result<PollResult, StoreError> {
        let Some(file) = agent else {
            return self.main.poll(mask);
        };
        let agent = self
            .agents
            .entry(file.path.clone())
            .or_insert_with(|| FollowedFile::new(&file.path, TranscriptRole::Agent));
        agent.poll(mask)
    }

    /// Its sub-agents, without those that are only the client warming up.
    pub fn agents(&self) -> Vec<&Session> {
        let agents = self.agents.iter().filter(|one| !self.is_warm_up(one));
        agents.map(|(_, agent)| &agent.session).collect()
    }

    fn is_warm_up(&self, (path, agent): &(&PathBuf, &FollowedFile)) -> bool {
        let agents = self.agents.values().map(|agent| &agent.session);
        let sessions = std::iter::once(&self.main.session).chain(agents);
        is_warm_up(path, &agent.session, sessions)
    }
}

/// A reader for files that are to be followed, or that are at rest.
pub fn reader(
    mask: Option<&'static Redactor>,
    ending: TrailingBytes,
    threads: usize,
) -> SessionReader {
    SessionReader {
        threads,
        ending,
        mask,
        ..SessionReader::default()
    }
}
