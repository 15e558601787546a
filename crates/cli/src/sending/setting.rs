//! What holds for every session, and what is looked at in each before anything of it is sent.
//!
//! A run and a dry run go the same way up to here: they open a session, look for older files
//! that hold its turns, and choose.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use unspool_model::price::Prices;
use unspool_model::session::Role;
use unspool_model::time::Time;
use unspool_model::view::ready;
use unspool_send::id::{SpanId, TraceId};
use unspool_send::ledger::Ledger;
use unspool_send::spans::{Facts, Material, Options, SubAgent, Trace, Traces};
use unspool_store::family::Family;
use unspool_store::live::Live;
use unspool_store::read::{self, Reader};
use unspool_store::{AgentFile, Error, SessionFile};

use super::Wishes;
use super::choice::{self, Choice, Head, Owners, View};
use super::mark::{self, Look, Mark};
use super::near::{self, Folder, Folders, Made};
use super::place::{self, environment};
use crate::secrets;
use crate::world::World;

/// What holds for every session.
pub struct Setting<'a> {
    world: &'a World,
    wishes: &'a Wishes,
    /// The sessions that are sent.
    paths: HashSet<&'a Path>,
    /// What is known of the machine.
    pub facts: Facts,
    prices: Cow<'static, Prices>,
    options: Options<'static>,
    reader: Reader,
    folders: Folders,
    made: OnceLock<Made>,
    watch: Watch,
}

/// A session that was read.
pub struct Read {
    folder: Arc<Folder>,
    /// Only what stands behind this was read.
    pub mark: Option<Mark>,
    /// The files of its sub-agents as they were before they were read.
    pub looks: Vec<(PathBuf, Look)>,
    /// Its lines and those of its sub-agents.
    pub family: Family,
    /// What is told of it beside them.
    pub facts: Facts,
}

/// A session with everything that decides about its turns.
pub struct Opened<'a> {
    /// Where it is.
    pub file: &'a SessionFile,
    /// What was read.
    pub read: &'a Read,
    id: Arc<str>,
    /// Its turns.
    pub traces: Traces<'a>,
    /// The same, in short.
    pub heads: Vec<Head>,
}

/// Turns that older files hold, and the sessions of those.
pub type Older = Vec<OlderTurn>;

/// A turn that an older file holds.
pub struct OlderTurn {
    trace: TraceId,
    session: Arc<str>,
    /// The spans below its root, and which of them are replies.
    below: Vec<(SpanId, bool)>,
}

impl<'a> Setting<'a> {
    /// Looks at the surroundings.
    pub fn new(world: &'a World, wishes: &'a Wishes, files: &'a [SessionFile]) -> Setting<'a> {
        Setting {
            world,
            wishes,
            paths: files.iter().map(|file| &*file.path).collect(),
            facts: place::facts(&environment),
            prices: world.prices(),
            options: Options {
                thinking: wishes.thinking,
                max_chars: wishes.max_chars,
                redact: (!wishes.no_redact).then(secrets::masker),
            },
            reader: Reader::default(),
            folders: Folders::default(),
            made: OnceLock::new(),
            watch: Watch::default(),
        }
    }

    /// Reads a session with its sub-agents.
    pub fn read(&self, file: &SessionFile) -> Result<Read, Error> {
        let folder = self.folders.of(file);
        let looks = folder.agents(file).map(look).collect();
        let family = folder.family(&self.reader, file)?;
        let facts = self.facts_of(file, &family, None);
        Ok(Read {
            folder,
            mark: None,
            looks,
            family,
            facts,
        })
    }

    /// Reads what stands behind a mark, if that can be understood alone.
    pub fn read_rest(&self, file: &SessionFile, mark: Mark) -> Option<Read> {
        let folder = self.folders.of(file);
        let looks = folder.agents(file).map(look).collect();
        let new = |agent: &AgentFile| !mark.has(&agent.path);
        let family = folder.rest(&self.reader, file, mark.offset(), new).ok()?;
        let joins = mark.seam().joins(&family.main.session);
        let facts = self.facts_of(file, &family, Some(&mark));
        let read = Read {
            folder,
            mark: Some(mark),
            looks,
            family,
            facts,
        };
        (joins && self.traces(&read).has_own_agents()).then_some(read)
    }

    fn facts_of(&self, file: &SessionFile, family: &Family, mark: Option<&Mark>) -> Facts {
        let title = family.main.session.given_title();
        let title = title.or_else(|| mark?.title.as_deref());
        let title = title.map(|title| match self.options.redact {
            Some(_) => secrets::known().mask(title).into_owned(),
            None => title.to_owned(),
        });
        Facts {
            session: file.id.clone(),
            title,
            ..self.facts.clone()
        }
    }

    fn traces<'r>(&'r self, read: &'r Read) -> Traces<'r> {
        let agents = read.family.agents.iter().map(|agent| SubAgent {
            file: agent.listed(),
            source: &agent.loaded.source,
        });
        let material = Material {
            session: &read.family.main.session,
            source: &read.family.main.source,
            agents: agents.collect(),
            runs: &read.family.runs,
            prices: &self.prices,
        };
        let before = read.mark.as_ref().map_or(0, |mark| mark.turns);
        Traces::new(material, &read.facts, self.options).behind(before)
    }

    /// Looks over its turns.
    pub fn open<'r>(&'r self, file: &'r SessionFile, read: &'r Read) -> Opened<'r> {
        let traces = self.traces(read);
        Opened {
            file,
            read,
            id: file.id.as_str().into(),
            heads: choice::heads(&traces),
            traces,
        }
    }

    /// Turns that older files hold which are not sent now. Nobody need look for them if all
    /// turns are known.
    pub fn older(&self, opened: &Opened<'_>, known: impl FnOnce(&[Head]) -> bool) -> Older {
        let mut all = Vec::new();
        if known(&opened.heads) {
            return all;
        }
        let root = match &opened.read.mark {
            Some(mark) => mark.root(),
            None => near::root(&opened.read.family.main.session),
        };
        let made = || self.made.get_or_init(|| Made::by(self.world));
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
            let Ok(loaded) = read::read(&other.path, Role::Main) else {
                continue;
            };
            let material = Material {
                session: &loaded.session,
                source: &loaded.source,
                agents: Vec::new(),
                runs: &[],
                prices: &self.prices,
            };
            let facts = Facts::default();
            let traces = Traces::new(material, &facts, self.options);
            let id: Arc<str> = other.id.as_str().into();
            all.extend(traces.iter().map(|trace| OlderTurn {
                trace: trace.id,
                session: Arc::clone(&id),
                below: choice::below(&trace).collect(),
            }));
        }
        all
    }

    /// What is to be sent of it. `skip`: nothing, because somebody else is at it.
    pub fn choose(
        &self,
        opened: &mut Opened<'_>,
        older: &Older,
        skip: bool,
        ledger: &Ledger,
        owners: &mut Owners,
    ) -> Choice {
        for turn in older {
            owners.older(turn.trace, &turn.session);
            owners.place(turn.trace, turn.below.iter().copied(), ledger);
        }
        choice::keep_ids(&mut opened.heads, &opened.traces, ledger, owners);
        let view = View {
            id: &opened.id,
            session: &opened.read.family.main.session,
            left: self.is_left(opened.file),
            full: self.wishes.full,
            skip,
        };
        let mut choice = choice::choose(&view, &opened.heads, ledger, owners);
        let before = opened.read.mark.as_ref().map_or(0, |mark| mark.turns);
        choice.already += before as u64;
        choice
    }

    /// How many turns of a session will not wait, counted from its start.
    pub fn settled(&self, opened: &Opened<'_>) -> usize {
        choice::settled(&opened.heads, self.is_left(opened.file))
    }

    /// Whether an open last turn of this session will not go on.
    fn is_left(&self, file: &SessionFile) -> bool {
        let now = self.world.now();
        ready::is_left(self.wishes.ended, Time(file.modified), now, || {
            self.watch.sees(self.world, file)
        })
    }
}

impl Opened<'_> {
    /// The turns that were chosen, one after the other, under the session each belongs to.
    pub fn chosen<'s>(&'s self, choice: &'s Choice) -> impl Iterator<Item = (&'s Head, Trace)> {
        choice.turns.iter().filter_map(|(at, session)| {
            let head = &self.heads[*at];
            let mut trace = head.trace(&self.traces)?;
            trace.session = session.to_string();
            trace.leave_out(&choice.foreign);
            Some((head, trace))
        })
    }
}

fn look(agent: &AgentFile) -> (PathBuf, Look) {
    (agent.path.clone(), mark::look(&agent.path))
}

/// Which of the sessions are in use, looked at once and only if somebody asks.
#[derive(Default)]
struct Watch(std::sync::OnceLock<Live>);

impl Watch {
    fn sees(&self, world: &World, file: &SessionFile) -> bool {
        let live = self
            .0
            .get_or_init(|| Live::look(&world.dirs, world.now().0));
        live.why(file).is_some()
    }
}
