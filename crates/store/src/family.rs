//! A session with the files of its sub-agents.
//!
//! Sub-agents whose lines stand inside the session's own file (1.0) are threads of the
//! session; the model sees to those.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use unspool_model::entry::Kind;
use unspool_model::session::{Role, Session};
use unspool_model::view::{agents, transcript};

use crate::each;
use crate::error::{Error, Warning};
use crate::find::{self, AgentFile, Found, SessionFile};
use crate::read::{self, Loaded, Reader};
use crate::side::{self, AgentMeta};

/// A session and its sub-agents.
#[derive(Debug)]
pub struct Family {
    /// The session.
    pub main: Loaded,
    /// Its sub-agents, in the order of their files.
    pub agents: Vec<Agent>,
    /// Files that could not be read.
    pub warnings: Vec<Warning>,
}

/// A sub-agent with its own file.
#[derive(Debug)]
pub struct Agent {
    /// Its id, without `agent-`.
    pub id: String,
    /// Its file.
    pub file: PathBuf,
    /// What it did.
    pub loaded: Loaded,
    /// What the client noted about it.
    pub meta: Option<AgentMeta>,
}

impl Agent {
    /// As the list of sub-agents takes it.
    pub fn listed(&self) -> agents::AgentFile<'_> {
        let meta = self.meta.as_ref();
        agents::AgentFile {
            id: &self.id,
            session: &self.loaded.session,
            kind: meta.and_then(|meta| meta.agent_type.as_deref()),
            description: meta.and_then(|meta| meta.description.as_deref()),
            call: self.call(),
        }
    }

    /// As the transcript takes it.
    pub fn told(&self) -> transcript::AgentFile<'_> {
        transcript::AgentFile {
            session: &self.loaded.session,
            source: &self.loaded.source,
            call: self.call(),
        }
    }

    /// The call that started it, as the client noted.
    fn call(&self) -> Option<&str> {
        let meta = self.meta.as_ref();
        meta.and_then(|meta| meta.tool_use_id.as_deref())
    }
}

/// With more agents than this, their files are not kept open.
pub const OPEN: usize = 100;

/// Reads a session and its sub-agents.
///
/// For a session that the walk did not find they are looked for around it.
pub fn family(found: &Found, session: &SessionFile) -> Result<Family, Error> {
    family_by(&Reader::default(), found, session)
}

/// The same with a reader of one's own.
pub fn family_by(reader: &Reader, found: &Found, session: &SessionFile) -> Result<Family, Error> {
    rest_by(reader, found, session, 0)
}

/// The same of a session that is read only from the line on that begins at `from`.
pub fn rest_by(
    reader: &Reader,
    found: &Found,
    session: &SessionFile,
    from: u64,
) -> Result<Family, Error> {
    let main = reader.read_from(&session.path, Role::Main, from)?;
    let around;
    let walked = found.sessions.iter().any(|file| file.path == session.path);
    let found = if walked {
        found
    } else {
        around = find::around(&session.path);
        &around
    };
    let files = agents_of(found, session);
    let loaded = each::map(
        &files,
        reader.threads,
        |file| file.bytes,
        |file| load(reader, file, files.len() > OPEN),
    );
    let mut family = Family {
        main,
        agents: Vec::new(),
        warnings: Vec::new(),
    };
    for (file, agent) in files.iter().zip(loaded) {
        match agent {
            Ok(agent) if is_warm_up(&agent.loaded.session) => {}
            Ok(agent) => family.agents.push(agent),
            Err(error) => family.warnings.push(error.warning(&file.path)),
        }
    }
    Ok(family)
}

fn load(reader: &Reader, file: &AgentFile, many: bool) -> Result<Agent, Error> {
    let mut loaded = reader.read(&file.path, Role::Agent)?;
    if many {
        loaded.source.release();
    }
    Ok(Agent {
        id: file.id.clone(),
        file: file.path.clone(),
        loaded,
        meta: side::agent_meta(&file.path),
    })
}

/// The files of a session's sub-agents; looks into flat ones whose session is not known.
pub fn agents_of<'a>(found: &'a Found, session: &SessionFile) -> Vec<&'a AgentFile> {
    let near =
        |agent: &&AgentFile| agent.folder == session.folder && agent.config == session.config;
    let near: Vec<_> = found.agents.iter().filter(near).collect();
    let mine = each::map(
        &near,
        each::threads(),
        |_| 0,
        |agent| match &agent.session {
            Some(id) => *id == session.id,
            None => look(agent).session.is_some_and(|id| id == session.id),
        },
    );
    let both = near.into_iter().zip(mine);
    both.filter(|(_, mine)| *mine)
        .map(|(agent, _)| agent)
        .collect()
}

/// The files of all sub-agents by their sessions, once [`Found::identify_agents`] has told
/// which belong to which.
pub fn agents_by_session(found: &Found) -> HashMap<SessionKey<'_>, Vec<&AgentFile>> {
    let mut by_session: HashMap<SessionKey<'_>, Vec<&AgentFile>> = HashMap::new();
    for agent in &found.agents {
        if let Some(session) = &agent.session {
            let key = (&*agent.config, &*agent.folder, session.as_str());
            by_session.entry(key).or_default().push(agent);
        }
    }
    by_session
}

/// What tells a session from all others: its config folder, its project's folder, its id.
pub type SessionKey<'a> = (&'a Path, &'a str, &'a str);

/// What the first lines of a sub-agent's file tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    pub session: Option<String>,
    pub warm_up: bool,
}

/// The session that the file of a sub-agent belongs to, as its folder or its lines say.
pub fn session_of(agent: &AgentFile) -> Option<String> {
    agent.session.clone().or_else(|| look(agent).session)
}

/// How much of a file's start is enough to know what it is.
pub(crate) const START: u64 = 64 << 10;

pub(crate) fn look(agent: &AgentFile) -> Look {
    // A warm-up is short, so a large file in a session's folder has nothing to tell.
    if agent.session.is_some() && agent.bytes > START {
        return Look::default();
    }
    let Ok(start) = read::read_start(&agent.path, Role::Agent, START) else {
        return Look::default();
    };
    let session = start.session.first_session_id.as_ref();
    Look {
        session: session.map(ToString::to_string),
        warm_up: is_warm_up(&start.session),
    }
}

/// Whether a sub-agent's file only holds the client warming up: 2.0 and early 2.1 ask each
/// agent for a word at start. Some of these files hold the reply alone.
pub fn is_warm_up(session: &Session) -> bool {
    let reply_alone = matches!(&session.records[..], [only] if only.kind == Kind::Assistant);
    session.goal.as_deref() == Some("Warmup") || reply_alone
}
