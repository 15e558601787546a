//! A session with the files of its sub-agents.
//!
//! Sub-agents whose lines stand inside the session's own file (1.0) are threads of the
//! session; the model sees to those.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use unspool_model::agent_kind::{asks_to_warm_up, is_reply_alone};
use unspool_model::file_usage::FileUsage;
use unspool_model::id::Id;
use unspool_model::price::Prices;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::agents::agent_origins;
use unspool_model::view::session_usage::{self, SessionFiles, SessionUsage};
use unspool_model::view::turns::TurnRow;
use unspool_model::view::workflow::WorkflowRun;
use unspool_model::view::{agents, check, transcript};

use crate::error::{FileWarning, StoreError};
use crate::find::{self, FoundSessionFiles, NonConversationFile, SessionFile, SubAgentFile};
use crate::open::{self, FileStamp};
use crate::parallel;
use crate::read::{self, LoadedSession, SessionReader};
use crate::side_files::{self, AgentMeta};
use crate::token_scan::{self, TokenScanResult};

/// A session and its sub-agents.
#[derive(Debug)]
pub struct SessionWithAgents {
    /// The session.
    pub main: LoadedSession,
    /// Its sub-agents, in the order of their files.
    pub agents: Vec<LoadedAgent>,
    /// Its workflow runs.
    pub runs: Vec<WorkflowRun>,
    /// What the client's own helpers used.
    pub helpers: Vec<HelperUsage>,
    /// Files that could not be read.
    pub warnings: Vec<FileWarning>,
}

/// A sub-agent with its own file.
#[derive(Debug)]
pub struct LoadedAgent {
    /// Its id, without `agent-`.
    pub id: String,
    /// Its file.
    pub file: PathBuf,
    /// What it did.
    pub loaded: LoadedSession,
    /// What the client noted about it.
    pub meta: Option<AgentMeta>,
    /// The workflow run in whose folder it stands.
    pub run: Option<Arc<str>>,
}

impl SessionWithAgents {
    /// Its sub-agents as the transcript takes them, each with the call that started it.
    pub fn told(&self) -> transcript::AgentTranscripts<'_> {
        let files: Vec<_> = self.agents.iter().map(LoadedAgent::listed).collect();
        let main = &self.main;
        let links = agent_origins::links(&main.session, &main.source, &files, &self.runs);
        let of_run: HashMap<&str, (usize, &WorkflowRun)> = (0..)
            .zip(&self.runs)
            .flat_map(|(at, run)| {
                run.agents
                    .iter()
                    .map(move |agent| (&*agent.agent, (at, run)))
            })
            .collect();
        let all = self.agents.iter().zip(&links.files).map(|(agent, origin)| {
            let run = of_run.get(&*agent.id);
            let origin = run.map_or(*origin, |(at, _)| links.runs[*at].or(*origin));
            let call = origin.map(|origin| {
                let maker = origin.maker.map(|at| &self.agents[at].loaded);
                let session = &maker.unwrap_or(main).session;
                session.call_id(&session.calls[origin.call as usize])
            });
            let file = transcript::AgentTranscript {
                session: &agent.loaded.session,
                source: &agent.loaded.source,
                call: call.or(agent.call()),
                run: run.map(|(_, run)| *run),
            };
            (agent.id.clone(), file)
        });
        all.collect()
    }

    /// The sessions of its sub-agents' files.
    pub fn sessions(&self) -> Vec<&Session> {
        self.agents
            .iter()
            .map(|agent| &agent.loaded.session)
            .collect()
    }
}

/// What one of the client's own helpers used, which compact, suggest prompts and warm up.
#[derive(Clone, Debug)]
pub struct HelperUsage {
    /// Its file.
    pub file: PathBuf,
    /// What the file was when it was read.
    pub stamp: FileStamp,
    /// What it says about tokens.
    pub spending: FileUsage,
}

impl HelperUsage {
    /// A file that turned out to be the client warming up.
    pub fn of(file: &Path, session: &Session) -> Option<HelperUsage> {
        let metadata = open::stat_regular_file(file).ok()?;
        Some(HelperUsage {
            file: file.to_owned(),
            stamp: FileStamp::of(&metadata),
            spending: FileUsage::of(session),
        })
    }
}

impl SessionWithAgents {
    /// Puts what turned out to be the client warming up among its helpers.
    fn set_warm_ups_apart(&mut self, files: &[&SubAgentFile]) {
        let agents = self.sessions();
        let sessions = || std::iter::once(&self.main.session).chain(agents.iter().copied());
        let is_warm_up =
            |agent: &LoadedAgent| is_warm_up(&agent.file, &agent.loaded.session, sessions());
        let apart: HashSet<PathBuf> = self
            .agents
            .iter()
            .filter(|agent| is_warm_up(agent))
            .map(|agent| agent.file.clone())
            .collect();
        let warm_ups = self
            .agents
            .extract_if(.., |agent| apart.contains(&agent.file));
        let helpers = warm_ups.filter_map(|agent| {
            let file = files.iter().find(|file| file.path == agent.file)?;
            Some(HelperUsage {
                file: agent.file,
                stamp: file.stamp,
                spending: FileUsage::of(&agent.loaded.session),
            })
        });
        self.helpers.extend(helpers);
    }

    /// Reads the file of a helper, if it is not known as it is; whether it was read.
    pub fn renew_helper(&mut self, file: &NonConversationFile) -> bool {
        let known = self.helpers.iter().position(|one| one.file == file.path);
        if known.is_some_and(|at| self.helpers[at].stamp == file.stamp) {
            return false;
        }
        for helper in read_helpers(&[file], 1) {
            match known {
                Some(at) => self.helpers[at] = helper,
                None => self.helpers.push(helper),
            }
        }
        true
    }

    /// A session alone.
    pub fn alone(main: LoadedSession) -> SessionWithAgents {
        SessionWithAgents {
            main,
            agents: Vec::new(),
            runs: Vec::new(),
            helpers: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The files of the client's own helpers, read so that each can be listed with what it did,
    /// each with its place among the helpers: one that cannot be read any more is left out.
    pub fn read_helpers(&self, reader: &SessionReader) -> Vec<(usize, LoadedAgent)> {
        let read = parallel::map(
            &self.helpers,
            reader.threads,
            |helper| helper.stamp.size,
            |helper| {
                let stem = helper.file.file_stem()?.to_string_lossy();
                let id = stem.strip_prefix("agent-")?.to_owned();
                Some(LoadedAgent {
                    id,
                    file: helper.file.clone(),
                    loaded: reader.read(&helper.file, TranscriptRole::Agent).ok()?,
                    meta: None,
                    run: None,
                })
            },
        );
        let read = read.into_iter().enumerate();
        read.filter_map(|(at, agent)| Some((at, agent?))).collect()
    }

    /// Answers a question about everything that tells what the session used.
    pub fn used<T>(&self, ask: impl FnOnce(&SessionFiles<'_>) -> T) -> T {
        let agents: Vec<&Session> = self.agents.iter().map(|one| &one.loaded.session).collect();
        let helpers: Vec<&FileUsage> = self.helpers.iter().map(|one| &one.spending).collect();
        ask(&SessionFiles {
            session: &self.main.session,
            agents: &agents,
            helpers: &helpers,
        })
    }

    /// What each turn used; in front of them what was used before the first one.
    pub fn used_by_turn(&self, turns: &[TurnRow], prices: &Prices) -> Vec<SessionUsage> {
        let SessionWithAgents {
            main, agents, runs, ..
        } = self;
        self.used(|files| used_by_turn(files, main, agents, runs, turns, prices))
    }
}

/// What each turn of a session used, by its number.
pub fn used_by_turn(
    files: &SessionFiles<'_>,
    main: &LoadedSession,
    agents: &[LoadedAgent],
    runs: &[WorkflowRun],
    turns: &[TurnRow],
    prices: &Prices,
) -> Vec<SessionUsage> {
    let listed: Vec<agents::SubAgentSession<'_>> = agents.iter().map(LoadedAgent::listed).collect();
    let calls = agents::starting_calls(&main.session, &main.source, &listed, runs);
    session_usage::usage_by_turn(files, &calls, turns, prices)
}

/// Reads what helpers used. What cannot be read is no reason to lose its session.
pub fn read_helpers(files: &[&NonConversationFile], threads: usize) -> Vec<HelperUsage> {
    let parts: Vec<(&Path, u64, u64)> = files
        .iter()
        .map(|file| (&*file.path, 0, file.stamp.size))
        .collect();
    let read = token_scan::scan_tokens(&parts, threads);
    let helper = |(file, read): (&&NonConversationFile, Result<TokenScanResult, StoreError>)| {
        let mut gathered = read.ok()?;
        if let Some(tail) = gathered.tail {
            gathered.spending.reopen();
            gathered.spending.append(&tail);
            gathered.spending.shrink_to_fit();
        }
        Some(HelperUsage {
            file: file.path.clone(),
            stamp: file.stamp,
            spending: gathered.spending,
        })
    };
    files.iter().zip(read).filter_map(helper).collect()
}

/// The files of the client's own helpers that belong to a session.
pub fn helpers_of<'a>(
    found: &'a FoundSessionFiles,
    session: &SessionFile,
) -> Vec<&'a NonConversationFile> {
    let near = |file: &&NonConversationFile| {
        file.helper.is_some() && file.folder == session.folder && file.config == session.config
    };
    let near = found.others.iter().filter(near);
    near.filter(|file| helper_session(file).is_some_and(|id| id == session.id))
        .collect()
}

/// The files of the client's own helpers by their sessions.
pub fn helpers_by_session(
    found: &FoundSessionFiles,
) -> HashMap<SessionKey<'_>, Vec<&NonConversationFile>> {
    let helpers = found.others.iter().filter(|file| file.helper.is_some());
    let mut by_session: HashMap<SessionKey<'_>, Vec<&NonConversationFile>> = HashMap::new();
    for (file, session) in helpers.filter_map(|file| Some((file, file.session.as_deref()?))) {
        let key = (&*file.config, &*file.folder, session);
        by_session.entry(key).or_default().push(file);
    }
    by_session
}

/// The session that the file of a helper belongs to, as its folder or its lines say.
pub fn helper_session(file: &NonConversationFile) -> Option<Cow<'_, str>> {
    match &file.session {
        Some(session) => Some(Cow::Borrowed(session)),
        None => first_session(&file.path).map(Cow::Owned),
    }
}

impl LoadedAgent {
    /// As the list of sub-agents takes it.
    pub fn listed(&self) -> agents::SubAgentSession<'_> {
        let meta = self.meta.as_ref();
        agents::SubAgentSession {
            id: &self.id,
            session: &self.loaded.session,
            source: Some(&self.loaded.source),
            kind: meta.and_then(|meta| meta.agent_type.as_deref()),
            description: meta.and_then(|meta| meta.description.as_deref()),
            call: self.call(),
            run: self.run.as_deref(),
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
pub fn read_session_with_agents(
    found: &FoundSessionFiles,
    session: &SessionFile,
) -> Result<SessionWithAgents, StoreError> {
    read_session_with_agents_by(&SessionReader::default(), found, session)
}

/// The same with a reader of one's own.
pub fn read_session_with_agents_by(
    reader: &SessionReader,
    found: &FoundSessionFiles,
    session: &SessionFile,
) -> Result<SessionWithAgents, StoreError> {
    read_session_with_agents_from(reader, found, session, 0)
}

/// The same of a session that is read only from the line on that begins at `from`.
pub fn read_session_with_agents_from(
    reader: &SessionReader,
    found: &FoundSessionFiles,
    session: &SessionFile,
    from: u64,
) -> Result<SessionWithAgents, StoreError> {
    let main = reader.read_from(&session.path, TranscriptRole::Main, from)?;
    let around;
    let walked = found.sessions.iter().any(|file| file.path == session.path);
    let found = if walked {
        found
    } else {
        around = find::find_beside_transcript(&session.path);
        &around
    };
    let files = agents_of(found, session);
    let loaded = parallel::map(
        &files,
        reader.threads,
        |file| file.bytes,
        |file| load(reader, file, files.len() > OPEN),
    );
    let mut family = SessionWithAgents {
        runs: side_files::runs(session),
        helpers: read_helpers(&helpers_of(found, session), reader.threads),
        ..SessionWithAgents::alone(main)
    };
    for (file, agent) in files.iter().zip(loaded) {
        match agent {
            Ok(agent) => family.agents.push(agent),
            Err(error) => family.warnings.push(error.warning(&file.path)),
        }
    }
    family.set_warm_ups_apart(&files);
    Ok(family)
}

/// Whether the file of a sub-agent only holds the client warming up: it asks for that, or it holds
/// one reply and nobody names it, neither a session, a sub-agent, a note nor a workflow run.
pub fn is_warm_up<'a>(
    path: &Path,
    agent: &Session,
    makers: impl IntoIterator<Item = &'a Session>,
) -> bool {
    if asks_to_warm_up(agent) || !is_reply_alone(agent) {
        return asks_to_warm_up(agent);
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let id = stem.strip_prefix("agent-").unwrap_or(&stem);
    let is_named = makers.into_iter().any(|maker| maker.names_agent(id));
    let is_noted = || side_files::agent_meta(path).is_some_and(|meta| meta.tool_use_id.is_some());
    !is_named && find::run_of(path).is_none() && !is_noted()
}

fn load(
    reader: &SessionReader,
    file: &SubAgentFile,
    many: bool,
) -> Result<LoadedAgent, StoreError> {
    let mut loaded = reader.read(&file.path, TranscriptRole::Agent)?;
    if many {
        loaded.source.release();
    }
    Ok(LoadedAgent {
        id: file.id.clone(),
        file: file.path.clone(),
        loaded,
        meta: side_files::agent_meta(&file.path),
        run: file.run.clone(),
    })
}

/// The files of a session's sub-agents; looks into flat ones whose session is not known.
pub fn agents_of<'a>(found: &'a FoundSessionFiles, session: &SessionFile) -> Vec<&'a SubAgentFile> {
    let near =
        |agent: &&SubAgentFile| agent.folder == session.folder && agent.config == session.config;
    let near: Vec<_> = found.agents.iter().filter(near).collect();
    let mine = parallel::map(
        &near,
        parallel::threads(),
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

/// The files of all sub-agents by their sessions, once [`FoundSessionFiles::identify_agents`] has told
/// which belong to which.
pub fn agents_by_session(found: &FoundSessionFiles) -> HashMap<SessionKey<'_>, Vec<&SubAgentFile>> {
    let mut by_session: HashMap<SessionKey<'_>, Vec<&SubAgentFile>> = HashMap::new();
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
pub(crate) struct AgentFileStart {
    pub session: Option<String>,
    pub warm_up: bool,
}

/// The session that the file of a sub-agent belongs to, as its folder or its lines say.
pub fn session_of(agent: &SubAgentFile) -> Option<String> {
    agent.session.clone().or_else(|| look(agent).session)
}

/// The session that the first lines of a sub-agent's file name.
pub(crate) fn first_session(path: &Path) -> Option<String> {
    let start = read::read_start(path, TranscriptRole::Agent, START).ok()?;
    start
        .session
        .first_session_id
        .as_ref()
        .map(ToString::to_string)
}

/// How much of a file's start is enough to know what it is.
pub(crate) const START: u64 = 64 << 10;

pub(crate) fn look(agent: &SubAgentFile) -> AgentFileStart {
    // A warm-up is short, so a large file in a session's folder has nothing to tell.
    if agent.session.is_some() && agent.bytes > START {
        return AgentFileStart::default();
    }
    let Ok(start) = read::read_start(&agent.path, TranscriptRole::Agent, START) else {
        return AgentFileStart::default();
    };
    let session = start.session.first_session_id.as_ref();
    AgentFileStart {
        session: session.map(ToString::to_string),
        warm_up: asks_to_warm_up(&start.session),
    }
}

/// The parents that the lines of a sub-agent or a teammate name and that stand in another file of
/// their session or team: a forked sub-agent follows the lines of its session, a teammate those of
/// the agent that called it. Nothing is read where no parent is missing.
pub fn parents_beside(found: &FoundSessionFiles, path: &Path, session: &Session) -> HashSet<Id> {
    let own = found.agents.iter().find(|agent| agent.path == path);
    if own.is_none() && session.team.is_none() {
        return HashSet::new();
    }
    let mut missing: HashSet<Id> = check::missing_parents(session).into_iter().collect();
    let mut elsewhere = HashSet::new();
    let mut look = |files: Vec<(&Path, TranscriptRole)>| {
        for (beside, role) in files {
            if missing.is_empty() {
                break;
            }
            let Ok(loaded) = SessionReader::to_edit().read(beside, role) else {
                continue;
            };
            let there = missing.extract_if(|id| loaded.session.find(id).is_some());
            elsewhere.extend(there);
        }
        missing.is_empty()
    };
    if look(Vec::new()) || look(beside(found, path, own, session)) {
        return elsewhere;
    }
    // Teammates may work in folders of their own.
    if let Some((team, config)) = session.team.as_deref().zip(config_of(found, path, own)) {
        let all = find::find(&[config.to_owned()]);
        let mates = team_sessions(&all, config, team).into_iter();
        let mates = mates.filter(|file| file.path != path);
        look(
            mates
                .map(|file| (&*file.path, TranscriptRole::Main))
                .collect(),
        );
    }
    elsewhere
}

/// The config folder that a file is in, if it is in one.
fn config_of<'a>(
    found: &'a FoundSessionFiles,
    path: &Path,
    own: Option<&'a SubAgentFile>,
) -> Option<&'a Path> {
    let session = || found.sessions.iter().find(|file| file.path == path);
    let config = own.map(|agent| &*agent.config);
    let config = config.or_else(|| session().map(|file| &*file.config));
    config.filter(|config| !config.as_os_str().is_empty())
}

/// The sessions of a team in a config folder, whatever the project: those whose lines name it at
/// their start or at their end, for a team may begin late in a session.
pub fn team_sessions<'a>(
    found: &'a FoundSessionFiles,
    config: &Path,
    team: &str,
) -> Vec<&'a SessionFile> {
    let near = found.sessions.iter().filter(|file| &*file.config == config);
    let near: Vec<&SessionFile> = near.collect();
    let named = parallel::map(
        &near,
        parallel::threads(),
        |_| 0,
        |file| names_team(file, team),
    );
    let both = near.into_iter().zip(named);
    both.filter_map(|(file, is_mate)| is_mate.then_some(file))
        .collect()
}

fn names_team(file: &SessionFile, team: &str) -> bool {
    let is_of = |session: &Session| session.team.as_deref() == Some(team);
    let ends: &[u64] = match file.bytes > START {
        true => &[0, file.bytes - START],
        false => &[0],
    };
    // Few sessions have a team, and looking for the word takes less than reading lines.
    let mut marked = ends.iter().filter(|from| has_team_mark(&file.path, **from));
    marked.any(|from| {
        let read = match from {
            0 => read::read_start(&file.path, TranscriptRole::Main, START),
            from => SessionReader::default().read_from(&file.path, TranscriptRole::Main, *from),
        };
        read.is_ok_and(|read| is_of(&read.session))
    })
}

/// Whether the word that names a team stands in a piece of a file that begins here.
fn has_team_mark(path: &Path, from: u64) -> bool {
    let Ok((mut file, _)) = open::open(path) else {
        return false;
    };
    let mut bytes = Vec::new();
    let read = file
        .seek(SeekFrom::Start(from))
        .and_then(|_| file.take(START).read_to_end(&mut bytes));
    read.is_ok() && memchr::memmem::find(&bytes, b"\"teamName\"").is_some()
}

/// The other files of a sub-agent's session, then those of a session's team.
fn beside<'a>(
    found: &'a FoundSessionFiles,
    path: &Path,
    own: Option<&SubAgentFile>,
    session: &Session,
) -> Vec<(&'a Path, TranscriptRole)> {
    let folder = own.map(|agent| &agent.folder).or_else(|| {
        let mut sessions = found.sessions.iter();
        sessions
            .find(|file| file.path == path)
            .map(|file| &file.folder)
    });
    let id = own.and_then(|agent| agent.session.as_deref());
    let is_mate = |file: &&SessionFile| {
        let start = read::read_start(&file.path, TranscriptRole::Main, START);
        start.is_ok_and(|start| start.session.team == session.team)
    };
    let near = found
        .sessions
        .iter()
        .filter(|file| Some(&file.folder) == folder);
    let near: Vec<&SessionFile> = near.collect();
    let mine = near.iter().filter(|file| Some(&*file.id) == id);
    let team = near.iter().filter(|_| session.team.is_some());
    let team = team.filter(|file| Some(&*file.id) != id && is_mate(file));
    let sessions: Vec<&SessionFile> = mine.chain(team).copied().collect();
    let agents = found.agents.iter().filter(|agent| {
        let is_of = |file: &&SessionFile| agent.session.as_deref() == Some(&*file.id);
        Some(&agent.folder) == folder && sessions.iter().any(is_of)
    });
    let sessions = sessions
        .iter()
        .map(|file| (&*file.path, TranscriptRole::Main));
    let agents = agents.map(|agent| (&*agent.path, TranscriptRole::Agent));
    sessions
        .chain(agents)
        .filter(|(other, _)| *other != path)
        .collect()
}
