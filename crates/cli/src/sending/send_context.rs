//! What holds for every session, and what is looked at in each before anything of it is sent.
//!
//! A run and a dry run go the same way up to here: they open a session, look for older files
//! that hold its turns, and choose.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use unspool_model::price::Prices;
use unspool_model::session::TranscriptRole;
use unspool_model::time::Time;
use unspool_model::view::turn_completion;
use unspool_send::ledger::SendLedger;
use unspool_send::spans::{
    SessionTurnTraces, TraceFacts, TraceInput, TraceOptions, TraceSubAgent, TurnTrace,
};
use unspool_send::trace_id::{SpanId, TraceId};
use unspool_store::read::{self, SessionReader};
use unspool_store::session_in_use::InUseSessions;
use unspool_store::session_with_agents::SessionWithAgents;
use unspool_store::{SessionFile, StoreError, SubAgentFile};

use super::SendOptions;
use super::resume_point::{self, AgentFileState, ResumePoint};
use super::send_env::{self, environment};
use super::session_copies::{self, CopiedSessionIds, SessionFolder, SessionFolderCache};
use super::turns_to_send::{self, SessionToSend, TraceOwners, TurnTraceSummary, TurnsToSend};
use crate::command_context::CommandContext;
use crate::secrets;

/// What holds for every session.
pub struct SendContext<'a> {
    world: &'a CommandContext,
    wishes: &'a SendOptions,
    /// The sessions that are sent.
    paths: HashSet<&'a Path>,
    /// What is known of the machine.
    pub facts: TraceFacts,
    prices: Cow<'static, Prices>,
    options: TraceOptions<'static>,
    reader: SessionReader,
    folders: SessionFolderCache,
    made: OnceLock<CopiedSessionIds>,
    watch: InUseCheck,
}

/// A session that was read.
pub struct SessionReadToSend {
    folder: Arc<SessionFolder>,
    /// Only what stands behind this was read.
    pub mark: Option<ResumePoint>,
    /// The files of its sub-agents as they were before they were read.
    pub looks: Vec<(PathBuf, AgentFileState)>,
    /// Its lines and those of its sub-agents.
    pub family: SessionWithAgents,
    /// What is told of it beside them.
    pub facts: TraceFacts,
}

/// A session with everything that decides about its turns.
pub struct SessionWithTraces<'a> {
    /// Where it is.
    pub file: &'a SessionFile,
    /// What was read.
    pub read: &'a SessionReadToSend,
    id: Arc<str>,
    /// Its turns.
    pub traces: SessionTurnTraces<'a>,
    /// The same, in short.
    pub heads: Vec<TurnTraceSummary>,
}

/// Turns that older files hold, and the sessions of those.
pub type OlderTurns = Vec<OlderTurn>;

/// A turn that an older file holds.
pub struct OlderTurn {
    trace: TraceId,
    session: Arc<str>,
    /// The spans below its root, and which of them are replies.
    below: Vec<(SpanId, bool)>,
}

impl<'a> SendContext<'a> {
    /// Looks at the surroundings.
    pub fn new(
        world: &'a CommandContext,
        wishes: &'a SendOptions,
        files: &'a [SessionFile],
    ) -> SendContext<'a> {
        SendContext {
            world,
            wishes,
            paths: files.iter().map(|file| &*file.path).collect(),
            facts: send_env::facts(&environment),
            prices: world.prices(),
            options: TraceOptions {
                thinking: wishes.thinking,
                max_chars: wishes.max_chars,
                redact: (!wishes.no_redact).then(secrets::masker),
            },
            reader: SessionReader::default(),
            folders: SessionFolderCache::default(),
            made: OnceLock::new(),
            watch: InUseCheck::default(),
        }
    }

    /// Reads a session with its sub-agents.
    pub fn read(&self, file: &SessionFile) -> Result<SessionReadToSend, StoreError> {
        let folder = self.folders.of(file);
        let looks = folder.agents(file).map(look).collect();
        let family = folder.family(&self.reader, file)?;
        let facts = self.facts_of(file, &family, None);
        Ok(SessionReadToSend {
            folder,
            mark: None,
            looks,
            family,
            facts,
        })
    }

    /// Reads what stands behind a mark, if that can be understood alone.
    pub fn read_rest(&self, file: &SessionFile, mark: ResumePoint) -> Option<SessionReadToSend> {
        let folder = self.folders.of(file);
        let looks = folder.agents(file).map(look).collect();
        let new = |agent: &SubAgentFile| !mark.has(&agent.path);
        let family = folder.rest(&self.reader, file, mark.offset(), new).ok()?;
        let joins = mark.seam().joins(&family.main.session);
        let facts = self.facts_of(file, &family, Some(&mark));
        let read = SessionReadToSend {
            folder,
            mark: Some(mark),
            looks,
            family,
            facts,
        };
        (joins && self.traces(&read).has_own_agents()).then_some(read)
    }

    fn facts_of(
        &self,
        file: &SessionFile,
        family: &SessionWithAgents,
        mark: Option<&ResumePoint>,
    ) -> TraceFacts {
        let title = family.main.session.given_title();
        let title = title.or_else(|| mark?.title.as_deref());
        let title = title.map(|title| match self.options.redact {
            Some(_) => secrets::known().mask(title).into_owned(),
            None => title.to_owned(),
        });
        TraceFacts {
            session: file.id.clone(),
            title,
            ..self.facts.clone()
        }
    }

    fn traces<'r>(&'r self, read: &'r SessionReadToSend) -> SessionTurnTraces<'r> {
        let agents = read.family.agents.iter().map(|agent| TraceSubAgent {
            file: agent.listed(),
            source: &agent.loaded.source,
        });
        let material = TraceInput {
            session: &read.family.main.session,
            source: &read.family.main.source,
            agents: agents.collect(),
            runs: &read.family.runs,
            prices: &self.prices,
        };
        let before = read.mark.as_ref().map_or(0, |mark| mark.turns);
        SessionTurnTraces::new(material, &read.facts, self.options).behind(before)
    }

    /// Looks over its turns.
    pub fn open<'r>(
        &'r self,
        file: &'r SessionFile,
        read: &'r SessionReadToSend,
    ) -> SessionWithTraces<'r> {
        let traces = self.traces(read);
        SessionWithTraces {
            file,
            read,
            id: file.id.as_str().into(),
            heads: turns_to_send::heads(&traces),
            traces,
        }
    }

    /// Turns that older files hold which are not sent now. Nobody need look for them if all
    /// turns are known.
    pub fn older(
        &self,
        opened: &SessionWithTraces<'_>,
        known: impl FnOnce(&[TurnTraceSummary]) -> bool,
    ) -> OlderTurns {
        let mut all = Vec::new();
        if known(&opened.heads) {
            return all;
        }
        let root = match &opened.read.mark {
            Some(mark) => mark.root(),
            None => session_copies::root(&opened.read.family.main.session),
        };
        let made = || self.made.get_or_init(|| CopiedSessionIds::by(self.world));
        let session = &opened.read.family.main.session;
        let origin = session.forked_from.as_ref().map(ToString::to_string);
        let origin = origin.and_then(|id| opened.read.folder.session(&id));
        let mut older = opened.read.folder.older(opened.file, root, made);
        older.extend(origin.filter(|origin| origin.path != opened.file.path));
        older.dedup_by(|a, b| a.path == b.path);
        for other in older {
            // It says itself what is its own.
            if self.paths.contains(&*other.path) {
                continue;
            }
            let Ok(loaded) = read::read(&other.path, TranscriptRole::Main) else {
                continue;
            };
            let material = TraceInput {
                session: &loaded.session,
                source: &loaded.source,
                agents: Vec::new(),
                runs: &[],
                prices: &self.prices,
            };
            let facts = TraceFacts::default();
            let traces = SessionTurnTraces::new(material, &facts, self.options);
            let id: Arc<str> = other.id.as_str().into();
            all.extend(traces.iter().map(|trace| OlderTurn {
                trace: trace.id,
                session: Arc::clone(&id),
                below: turns_to_send::below(&trace).collect(),
            }));
        }
        all
    }

    /// What is to be sent of it. `skip`: nothing, because somebody else is at it.
    pub fn choose(
        &self,
        opened: &mut SessionWithTraces<'_>,
        older: &OlderTurns,
        skip: bool,
        ledger: &SendLedger,
        owners: &mut TraceOwners,
    ) -> TurnsToSend {
        for turn in older {
            owners.older(turn.trace, &turn.session);
            owners.place(turn.trace, turn.below.iter().copied(), ledger);
        }
        turns_to_send::keep_ids(&mut opened.heads, &opened.traces, ledger, owners);
        let view = SessionToSend {
            id: &opened.id,
            session: &opened.read.family.main.session,
            left: self.is_left(opened.file),
            full: self.wishes.full,
            skip,
        };
        let mut choice = turns_to_send::choose(&view, &opened.heads, ledger, owners);
        let before = opened.read.mark.as_ref().map_or(0, |mark| mark.turns);
        choice.already += before as u64;
        choice
    }

    /// How many turns of a session will not wait, counted from its start.
    pub fn settled(&self, opened: &SessionWithTraces<'_>) -> usize {
        turns_to_send::settled(&opened.heads, self.is_left(opened.file))
    }

    /// Whether an open last turn of this session will not go on.
    fn is_left(&self, file: &SessionFile) -> bool {
        let now = self.world.now();
        turn_completion::is_left(self.wishes.ended, Time(file.modified), now, || {
            self.watch.sees(self.world, file)
        })
    }
}

impl SessionWithTraces<'_> {
    /// The turns that were chosen, one after the other, under the session each belongs to.
    pub fn chosen<'s>(
        &'s self,
        choice: &'s TurnsToSend,
    ) -> impl Iterator<Item = (&'s TurnTraceSummary, TurnTrace)> {
        choice.turns.iter().filter_map(|(at, session)| {
            let head = &self.heads[*at];
            let mut trace = head.trace(&self.traces)?;
            trace.session = session.to_string();
            trace.leave_out(&choice.foreign);
            Some((head, trace))
        })
    }
}

fn look(agent: &SubAgentFile) -> (PathBuf, AgentFileState) {
    (agent.path.clone(), resume_point::look(&agent.path))
}

/// Which of the sessions are in use, looked at once and only if somebody asks.
#[derive(Default)]
struct InUseCheck(std::sync::OnceLock<InUseSessions>);

impl InUseCheck {
    fn sees(&self, world: &CommandContext, file: &SessionFile) -> bool {
        let live = self
            .0
            .get_or_init(|| InUseSessions::look(&world.dirs, world.now().0));
        live.why(file).is_some()
    }
}
