//! A session and its sub-agents, folded, and read on while their files grow.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use unspool_model::edit::redact::Redactor;
use unspool_model::log::Line;
use unspool_model::session::{Role, Session};
use unspool_model::spent::Spending;
use unspool_model::view::status::Signals;
use unspool_store::error::Error;
use unspool_store::family::is_warm_up;
use unspool_store::find::{AgentFile, SessionFile};
use unspool_store::follow::{Polled, Tail};
use unspool_store::read::{Ending, Loaded, Reader};

use crate::row::Parts;

/// About how many bytes a line takes when it is folded.
const PER_RECORD: u64 = 450;

/// A file that is folded and followed.
#[derive(Debug)]
pub struct Follow {
    tail: Tail,
    /// What its lines mean.
    pub session: Session,
}

impl Follow {
    /// A file that was read so far as its lines have ended.
    pub fn after(loaded: Loaded) -> Result<Follow, Error> {
        Ok(Follow {
            tail: Tail::after(&loaded)?,
            session: loaded.session,
        })
    }

    /// A file from its top.
    fn new(path: &Path, role: Role) -> Follow {
        Follow {
            tail: Tail::new(path),
            session: Session::new(role),
        }
    }

    /// Takes in what has been written since.
    pub fn poll(&mut self, mask: Option<&Redactor>) -> Result<Polled, Error> {
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
pub struct Fold {
    /// The session.
    pub main: Follow,
    /// Its sub-agents by their files.
    pub agents: BTreeMap<PathBuf, Follow>,
    /// What the client's own helpers used, by their files.
    pub helpers: BTreeMap<PathBuf, Spending>,
    /// The title that another file gives it, if it has none of its own.
    pub title: Option<String>,
}

impl Fold {
    /// What somebody wants to know of all of it together.
    pub fn look<T>(
        &self,
        file: &SessionFile,
        signals: &Signals,
        ask: impl FnOnce(&Parts<'_>) -> T,
    ) -> T {
        let warm_ups = self.agents.iter().filter(|one| self.is_warm_up(one));
        let warm_ups: Vec<Spending> = warm_ups
            .map(|(_, agent)| Spending::of(&agent.session))
            .collect();
        let helpers: Vec<&Spending> = self.helpers.values().chain(&warm_ups).collect();
        ask(&Parts {
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
        agent: Option<&AgentFile>,
        mask: Option<&Redactor>,
    ) -> Result<Polled, Error> {
        let Some(file) = agent else {
            return self.main.poll(mask);
        };
        let agent = self
            .agents
            .entry(file.path.clone())
            .or_insert_with(|| Follow::new(&file.path, Role::Agent));
        agent.poll(mask)
    }

    /// Its sub-agents, without those that are only the client warming up.
    pub fn agents(&self) -> Vec<&Session> {
        let agents = self.agents.iter().filter(|one| !self.is_warm_up(one));
        agents.map(|(_, agent)| &agent.session).collect()
    }

    fn is_warm_up(&self, (path, agent): &(&PathBuf, &Follow)) -> bool {
        let agents = self.agents.values().map(|agent| &agent.session);
        let sessions = std::iter::once(&self.main.session).chain(agents);
        is_warm_up(path, &agent.session, sessions)
    }
}

/// A reader for files that are to be followed, or that are at rest.
pub fn reader(mask: Option<&'static Redactor>, ending: Ending, threads: usize) -> Reader {
    Reader {
        threads,
        ending,
        mask,
        ..Reader::default()
    }
}
