//! Sessions that somebody looks at: kept open, and gone on with as they grow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use unspool_model::graph;
use unspool_model::id::Id;
use unspool_model::log::TranscriptSource;
use unspool_model::price::Prices;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::session_usage::SessionUsage;
use unspool_model::view::transcript::AgentTranscripts;
use unspool_model::view::transcript::outline::{self, ItemClass, OutlineBase, TranscriptOutline};
use unspool_model::view::turns::{self, TurnOptions};
use unspool_store::find::{FoundSessionFiles, SessionFile, SubAgentFile};
use unspool_store::growth::{GrowingFile, GrowthResult};
use unspool_store::read::{LoadedSession, SessionReader, TrailingBytes};
use unspool_store::resolve::{self, SessionTarget};
use unspool_store::session_with_agents::{HelperUsage, LoadedAgent, SessionWithAgents};
use unspool_store::{find, session_with_agents, side_files};

use crate::command_context::{ChosenSession, CommandContext};
use crate::failure::CommandFailure;

/// How many sessions are kept open.
const KEPT: usize = 4;

/// How often files of sub-agents are looked at again.
const PAUSE: Duration = Duration::from_millis(500);

/// How often all folders are walked for an id that is not known.
const WALK: Duration = Duration::from_secs(1);

/// All sessions that are open.
#[derive(Default)]
pub struct SessionCache {
    open: Mutex<Vec<Arc<CachedSession>>>,
    files: Mutex<TargetsById>,
}

#[derive(Default)]
struct TargetsById {
    by_id: HashMap<String, SessionTarget>,
    walked: Option<Instant>,
}

/// A session that is open, or about to be.
pub struct CachedSession {
    target: SessionTarget,
    opened: RwLock<Option<OpenSession>>,
}

/// A session with all its sub-agents, as far as the files went.
pub struct OpenSession {
    /// The session.
    pub chosen: ChosenSession,
    main: GrowingFile,
    agents: Vec<GrowingFile>,
    looked: Instant,
    views: Mutex<HashMap<ConversationKey, Arc<OpenConversation>>>,
    /// What each turn used, once somebody asked.
    used: Mutex<Option<Arc<Vec<SessionUsage>>>>,
}

/// Which conversation of a session, and which branch of it.
type ConversationKey = (Option<String>, Option<String>);

/// A conversation, ready to be asked for any part of it.
pub struct OpenConversation {
    /// Which items there are.
    pub outline: TranscriptOutline,
    /// The parts of the branch that was asked for: turns, and what stands before.
    pub parts: Vec<usize>,
    /// Their items, as places in the outline.
    pub all: Vec<u32>,
    /// The same without what was done in between.
    pub replies: Vec<u32>,
    /// The lines they stand on, in order, and their places among all.
    by_line: Vec<(u32, u32)>,
    /// The file it is of: none for the session's own.
    file: Option<usize>,
}

impl SessionCache {
    /// The file of a session; ids are looked up among those that were found, and never become
    /// a path.
    pub fn file(&self, world: &CommandContext, id: &str) -> Result<SessionTarget, CommandFailure> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let known = files.by_id.get(id).is_some_and(is_there);
        if !known && files.walked.is_none_or(|walked| walked.elapsed() >= WALK) {
            files.by_id = by_id(world.found()?);
            files.walked = Some(Instant::now());
        }
        let found = files.by_id.get(id).filter(|target| is_there(target));
        found
            .cloned()
            .ok_or_else(|| CommandFailure::nothing("no such session"))
    }

    /// Does something with a session as it is now.
    pub fn with<T>(
        &self,
        world: &CommandContext,
        id: &str,
        job: impl FnOnce(&OpenSession) -> Result<T, CommandFailure>,
    ) -> Result<T, CommandFailure> {
        let target = self.file(world, id)?;
        let place = self.place(&target);
        place.refresh(world)?;
        let opened = place.read();
        match &*opened {
            Some(opened) => job(opened),
            None => Err(CommandFailure::failed("cannot open the session")),
        }
    }

    /// Whether a session is open already.
    pub fn is_open(&self, target: &SessionTarget) -> bool {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let place = open
            .iter()
            .find(|place| place.target.path() == target.path());
        place.is_some_and(|place| place.opened.try_read().is_ok_and(|opened| opened.is_some()))
    }

    /// The place of a session; the one that nobody looked at for longest goes.
    fn place(&self, target: &SessionTarget) -> Arc<CachedSession> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open
            .iter()
            .position(|place| place.target.path() == target.path());
        let place = match known {
            Some(at) => open.remove(at),
            None => Arc::new(CachedSession {
                target: target.clone(),
                opened: RwLock::new(None),
            }),
        };
        open.insert(0, Arc::clone(&place));
        open.truncate(KEPT);
        place
    }
}

/// Whether a file is still there. A link to one counts, as it does wherever sessions are listed.
fn is_there(target: &SessionTarget) -> bool {
    target.path().is_file()
}

/// Sessions and sub-agents by id; of two with the same id, the one written last, and never a copy
/// that goes on in the background instead of its original.
fn by_id(found: FoundSessionFiles) -> HashMap<String, SessionTarget> {
    let mut files = found.sessions;
    files.sort_by_key(|file| file.modified);
    let mut all: HashMap<String, SessionTarget> = HashMap::new();
    for agent in found.agents {
        all.insert(format!("agent-{}", agent.id), SessionTarget::Agent(agent));
    }
    for file in files {
        let is_original = |known: &SessionTarget| match known {
            SessionTarget::Session(known) => !resolve::is_background(known),
            SessionTarget::Agent(_) => false,
        };
        let known = all.get(&file.id);
        if known.is_none_or(|known| !is_original(known) || !resolve::is_background(&file)) {
            all.insert(file.id.clone(), SessionTarget::Session(file));
        }
    }
    all
}

impl CachedSession {
    fn read(&self) -> RwLockReadGuard<'_, Option<OpenSession>> {
        self.opened.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the session, or takes in what was added.
    fn refresh(&self, world: &CommandContext) -> Result<(), CommandFailure> {
        let reader = SessionReader {
            ending: TrailingBytes::Growing,
            ..world.reader()
        };
        let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &mut *opened {
            match known.follow(world, &reader)? {
                GrowthResult::Same => return Ok(()),
                GrowthResult::More => {
                    known.forget();
                    return Ok(());
                }
                GrowthResult::Anew => {}
            }
        }
        *opened = Some(OpenSession::new(world, &reader, self.target.clone())?);
        Ok(())
    }
}

/// A file read so that it can be gone on with, if that is possible.
fn read(
    reader: &SessionReader,
    path: &std::path::Path,
    role: TranscriptRole,
) -> Result<(LoadedSession, GrowingFile), CommandFailure> {
    let loaded = reader.read(path, role)?;
    let growth = GrowingFile::of(&loaded, reader.ending);
    if !growth.is_torn() {
        return Ok((loaded, growth));
    }
    // A last line that has not ended counts as far as it goes.
    let whole = SessionReader {
        ending: TrailingBytes::Final,
        ..*reader
    };
    let loaded = whole.read(path, role)?;
    let growth = GrowingFile::of(&loaded, TrailingBytes::Final);
    Ok((loaded, growth))
}

impl OpenSession {
    fn new(
        world: &CommandContext,
        reader: &SessionReader,
        target: SessionTarget,
    ) -> Result<OpenSession, CommandFailure> {
        let (main, growth) = read(reader, target.path(), target.role())?;
        let family = SessionWithAgents::alone(main);
        let mut opened = OpenSession {
            chosen: ChosenSession { target, family },
            main: growth,
            agents: Vec::new(),
            looked: Instant::now(),
            views: Mutex::default(),
            used: Mutex::default(),
        };
        opened.look_for_agents(world, reader);
        Ok(opened)
    }

    /// Only the end of a session, for a first look.
    pub fn end(target: SessionTarget, main: LoadedSession) -> OpenSession {
        let growth = GrowingFile::of(&main, TrailingBytes::Final);
        let family = SessionWithAgents::alone(main);
        OpenSession {
            chosen: ChosenSession { target, family },
            main: growth,
            agents: Vec::new(),
            looked: Instant::now(),
            views: Mutex::default(),
            used: Mutex::default(),
        }
    }

    fn follow(
        &mut self,
        world: &CommandContext,
        reader: &SessionReader,
    ) -> Result<GrowthResult, CommandFailure> {
        let grown = self.main.follow(reader, &mut self.chosen.family.main)?;
        match grown {
            GrowthResult::Anew => return Ok(GrowthResult::Anew),
            GrowthResult::Same if self.looked.elapsed() < PAUSE => return Ok(GrowthResult::Same),
            GrowthResult::More | GrowthResult::Same => {}
        }
        // A compaction and a sub-agent in the background write while the session itself waits.
        let mut any = match self.look_for_agents(world, reader) {
            true => GrowthResult::More,
            false => grown,
        };
        self.looked = Instant::now();
        let agents = self.chosen.family.agents.iter_mut().zip(&mut self.agents);
        for (agent, growth) in agents {
            match growth.follow(reader, &mut agent.loaded) {
                Ok(GrowthResult::Same) | Err(_) => {}
                Ok(GrowthResult::More) => any = GrowthResult::More,
                Ok(GrowthResult::Anew) => {
                    if let Ok((loaded, new)) = read(reader, &agent.file, TranscriptRole::Agent) {
                        (agent.loaded, *growth) = (loaded, new);
                        any = GrowthResult::More;
                    }
                }
            }
        }
        Ok(any)
    }

    /// Takes in sub-agents that were not there before, and helpers as they are now; whether there
    /// was anything new.
    fn look_for_agents(&mut self, world: &CommandContext, reader: &SessionReader) -> bool {
        let SessionTarget::Session(file) = &self.chosen.target else {
            return false;
        };
        let mut any = false;
        let file: &SessionFile = file;
        let mut around = find::find_beside_transcript(&file.path);
        around.identify_agents();
        for helper in session_with_agents::helpers_of(&around, file) {
            any |= self.chosen.family.renew_helper(helper);
        }
        let known = &self.chosen.family.agents;
        // A warm-up is one as long as it does not grow.
        let helpers = &mut self.chosen.family.helpers;
        let mut is_new = |agent: &&SubAgentFile| {
            let at = helpers.iter().position(|one| one.file == agent.path);
            if at.is_some_and(|at| helpers[at].stamp == agent.stamp) {
                return false;
            }
            at.map(|at| helpers.remove(at));
            known.iter().all(|one| one.file != agent.path)
        };
        let new = session_with_agents::agents_of(&around, file).into_iter();
        let new: Vec<_> = new.filter(|agent| is_new(agent)).collect();
        let many = known.len() + new.len() > session_with_agents::OPEN;
        self.chosen.family.runs = world.runs(file);
        for agent in new {
            let Ok((mut loaded, growth)) = read(reader, &agent.path, TranscriptRole::Agent) else {
                continue;
            };
            let known = &self.chosen.family;
            let sessions = std::iter::once(&known.main.session).chain(known.sessions());
            if session_with_agents::is_warm_up(&agent.path, &loaded.session, sessions) {
                let helper = HelperUsage::of(&agent.path, &loaded.session);
                self.chosen.family.helpers.extend(helper);
                any = true;
                continue;
            }
            any = true;
            if many {
                loaded.source.release();
            }
            let mut meta = side_files::agent_meta(&agent.path);
            if let Some(meta) = &mut meta {
                world.mask_in(&mut meta.description);
            }
            self.chosen.family.agents.push(LoadedAgent {
                id: agent.id.clone(),
                file: agent.path.clone(),
                loaded,
                meta,
                run: agent.run.clone(),
            });
            self.agents.push(growth);
        }
        any
    }

    /// What each turn of the session's own conversation used, by its number.
    pub fn used(&self, prices: &Prices) -> Arc<Vec<SessionUsage>> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || {
            let turns = turns::outline(&self.chosen.family.main.session, TurnOptions::default());
            Arc::new(self.chosen.family.used_by_turn(&turns, prices))
        };
        Arc::clone(used.get_or_insert_with(made))
    }

    fn forget(&mut self) {
        let used = self.used.get_mut();
        *used.unwrap_or_else(PoisonError::into_inner) = None;
        let views = self.views.get_mut();
        views.unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The sub-agents as the transcript takes them.
    pub fn agents(&self) -> AgentTranscripts<'_> {
        self.chosen.family.told()
    }

    /// A conversation of the session: its own or a sub-agent's, all of it or one branch.
    pub fn view(
        &self,
        agent: Option<&str>,
        branch: Option<&str>,
    ) -> Result<Arc<OpenConversation>, CommandFailure> {
        let wanted = (agent.map(str::to_owned), branch.map(str::to_owned));
        let mut views: MutexGuard<'_, _> =
            self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = views.get(&wanted) {
            return Ok(Arc::clone(view));
        }
        let view = Arc::new(self.look(agent, branch)?);
        if views.len() >= VIEWS {
            views.clear();
        }
        views.insert(wanted, Arc::clone(&view));
        Ok(view)
    }

    fn look(
        &self,
        agent: Option<&str>,
        branch: Option<&str>,
    ) -> Result<OpenConversation, CommandFailure> {
        let (file, thread) = self.named(agent)?;
        let (session, source) = self.file(file);
        let base = OutlineBase::of(session);
        let outline = TranscriptOutline::of(session, source, &base, thread);
        let parts = match branch {
            None => (0..outline.parts()).collect(),
            Some(leaf) => on_branch(session, &outline, leaf)?,
        };
        Ok(OpenConversation::new(outline, parts, file))
    }

    /// The file and the thread in it that an agent names.
    fn named(&self, agent: Option<&str>) -> Result<(Option<usize>, u32), CommandFailure> {
        let Some(key) = agent else {
            return Ok((None, 0));
        };
        let key = key.strip_prefix("agent-").unwrap_or(key);
        let files = &self.chosen.family.agents;
        if let Some(at) = files.iter().position(|agent| agent.id == key) {
            return Ok((Some(at), 0));
        }
        let thread = outline::thread(&self.chosen.family.main.session, key);
        let thread = thread.ok_or_else(|| CommandFailure::nothing("no such sub-agent"))?;
        Ok((None, thread))
    }

    /// The lines that a view is of.
    pub fn lines(&self, view: &OpenConversation) -> (&Session, &dyn TranscriptSource) {
        self.file(view.file)
    }

    /// The lines of the session, or of the sub-agent that is named.
    pub fn lines_of(
        &self,
        agent: Option<&str>,
    ) -> Result<(&Session, &dyn TranscriptSource), CommandFailure> {
        Ok(self.file(self.named(agent)?.0))
    }

    fn file(&self, at: Option<usize>) -> (&Session, &dyn TranscriptSource) {
        let family = &self.chosen.family;
        let loaded = at.map_or(&family.main, |at| &family.agents[at].loaded);
        (&loaded.session, &loaded.source)
    }

    /// Where the file of a view is.
    pub fn path(&self, agent: Option<&str>) -> Result<std::path::PathBuf, CommandFailure> {
        let family = &self.chosen.family;
        Ok(match self.named(agent)?.0 {
            Some(at) => family.agents[at].file.clone(),
            None => self.chosen.target.path().to_owned(),
        })
    }
}

/// How many conversations of a session are kept ready.
const VIEWS: usize = 32;

/// The parts of a conversation that lead to a line.
fn on_branch(
    session: &Session,
    outline: &TranscriptOutline,
    leaf: &str,
) -> Result<Vec<usize>, CommandFailure> {
    let leaf = session.find(&Id::from(leaf));
    let leaf = leaf.ok_or_else(|| CommandFailure::nothing("no such branch"))?;
    let live = graph::branch(session, &graph::links(session), Some(leaf));
    let rows = outline.base().turns();
    let stays = |part: &usize| match outline.turn(*part) {
        0 => true,
        n => turns::numbered(rows, n).is_some_and(|turn| live.contains(turn.record)),
    };
    Ok((0..outline.parts()).filter(stays).collect())
}

impl OpenConversation {
    fn new(outline: TranscriptOutline, parts: Vec<usize>, file: Option<usize>) -> OpenConversation {
        let entries = parts.iter().flat_map(|&part| outline.range(part));
        let all: Vec<u32> = entries.map(|at| at as u32).collect();
        let said = |at: &u32| {
            use ItemClass::{Compaction, Mark, Prompt, Reply, Turn};
            let class = outline.entries()[*at as usize].class;
            matches!(class, Turn | Prompt | Reply | Compaction | Mark)
        };
        let replies = all.iter().copied().filter(said).collect();
        let line = |at: &u32| outline.entries()[*at as usize].line;
        let mut by_line: Vec<(u32, u32)> = all.iter().map(line).zip(0..).collect();
        by_line.sort_unstable();
        OpenConversation {
            parts,
            all,
            replies,
            by_line,
            outline,
            file,
        }
    }

    /// The parts that a list of turns shows: what stands before the first one only if
    /// somebody said something there.
    pub fn turns(&self) -> impl Iterator<Item = usize> + '_ {
        let entries = self.outline.entries();
        let says = move |part: usize| {
            let range = self.outline.range(part);
            entries[range]
                .iter()
                .any(|entry| !matches!(entry.class, ItemClass::Note | ItemClass::Mark))
        };
        let parts = self.parts.iter().copied();
        parts.filter(move |&part| self.outline.turn(part) > 0 || says(part))
    }

    /// Whether an entry of the outline is among its items.
    pub fn shows(&self, entry: u32) -> bool {
        let part = self.outline.part_at(entry as usize);
        self.parts.binary_search(&part).is_ok()
    }

    /// The item that shows a line of the file: the last one that begins at it or before it.
    pub fn at_line(&self, session: &Session, line: u32) -> usize {
        let from = session.records.partition_point(|record| record.line < line);
        let on_line = session.records.get(from).filter(|one| one.line == line);
        // A result stands at its call.
        let call = on_line.and_then(|record| {
            let mut blocks = session.blocks_of(record).iter();
            let id = blocks.find_map(|block| session.id_of(block))?;
            let call = &session.calls[session.find_call(id)? as usize];
            Some(session.records[call.record as usize].line)
        });
        let line = call.map_or(line, |call| call.min(line));
        let behind = self.by_line.partition_point(|&(one, _)| one <= line);
        let best = behind.checked_sub(1).map_or(0, |at| self.by_line[at].0);
        let from = self.by_line.partition_point(|&(one, _)| one < best);
        let on_line = self.by_line[from..].iter();
        let mut fits = on_line.take_while(|&&(one, _)| one == best);
        let first = fits.next();
        let is_head = |at: u32| {
            let entry = self.all[at as usize];
            self.outline.entries()[entry as usize].class == ItemClass::Turn
        };
        match first {
            Some(&(_, at)) if is_head(at) => fits.next().or(first),
            _ => first,
        }
        .map_or(0, |&(_, at)| at as usize)
    }
}
