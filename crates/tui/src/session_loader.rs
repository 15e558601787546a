//! A session that is open: a thread that reads and lays out, so that drawing never waits.
//!
//! The end of a large file is read alone and shown at once; the whole comes from another
//! thread and takes its place. What was added to the file meanwhile is read on from there.

mod find;
mod page_layout;
mod side_panel;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use jiff::tz::TimeZone;
use unspool_model::log::TranscriptSource;
use unspool_model::price::Prices;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::session_row;
use unspool_model::view::transcript::{AgentLocation, AgentTranscripts, TranscriptReader};
use unspool_model::view::turns::{self, TurnRow};
use unspool_store::find::{SessionFile, SubAgentFile};
use unspool_store::follow::TranscriptTail;
use unspool_store::read::{LoadedSession, SessionReader, TrailingBytes};
use unspool_store::resolve::SessionTarget;
use unspool_store::session_with_agents::{self, HelperUsage, LoadedAgent, SessionWithAgents};
use unspool_store::side_files as notes;

use crate::loader_protocol::{
    ConversationId, LoaderEvent, LoaderRequest, PART, PageRequest, SessionFacts, TurnOutline,
};
use find::{LinePositions, RawLineMatch};

/// A file larger than this is shown from its end first.
const LARGE: u64 = 4 << 20;
/// How many turns of the end are read at first, and how much of the file at most.
const FIRST: (usize, u64) = (3, 8 << 20);

/// How books are read.
#[derive(Clone)]
pub struct LoaderOptions {
    /// How files are read, and what masks secrets.
    pub reader: SessionReader,
    /// The zone that times are shown in.
    pub zone: TimeZone,
    /// What models cost.
    pub prices: Arc<Prices>,
}

/// What a book's thread hears.
pub enum LoaderCommand {
    /// A question.
    Ask(LoaderRequest),
    /// The whole session was read.
    Whole(Box<Result<SessionWithAgents, String>>),
    /// Nobody looks any more.
    Close,
    /// A search found something.
    Found(u64, ConversationId, Vec<RawLineMatch>, bool),
}

/// Opens a book on a thread of its own; `tell` hands on what it says.
pub fn open(
    library: LoaderOptions,
    path: PathBuf,
    tell: impl Fn(LoaderEvent) + Send + 'static,
) -> Sender<LoaderCommand> {
    let (orders, inbox) = channel();
    let own = orders.clone();
    std::thread::spawn(move || {
        let book = SessionLoader {
            library,
            path,
            tell: Box::new(tell),
            orders: own,
            search: Arc::default(),
        };
        let tell = AssertUnwindSafe(&book.tell);
        // A mistake of ours must not leave a screen that never fills.
        if let Err(why) = catch_unwind(AssertUnwindSafe(|| read(&book, inbox))) {
            let why = why.downcast_ref::<String>().cloned();
            let why = why.unwrap_or_else(|| "internal error while reading".to_owned());
            tell(LoaderEvent::Failed(why));
        }
    });
    orders
}

/// What stays while a session is read again.
struct SessionLoader {
    library: LoaderOptions,
    path: PathBuf,
    tell: Box<dyn Fn(LoaderEvent) + Send>,
    orders: Sender<LoaderCommand>,
    /// The number of the search that is wanted; others stop.
    search: Arc<AtomicU64>,
}

/// What changes when it is read on.
struct LoaderState {
    /// The conversations that somebody looks at.
    entered: Vec<ConversationId>,
    revision: u64,
    tails: LoaderTails,
    /// How large the files were when they were last read on.
    sizes: Vec<u64>,
}

/// Where files are read on.
struct LoaderTails {
    main: Option<TranscriptTail>,
    agents: HashMap<String, TranscriptTail>,
}

/// Why a look at a session ends.
enum LoaderWakeReason {
    /// Nobody looks any more.
    Closed,
    /// There may be more.
    Grow,
    /// The whole session is there.
    Whole(Box<SessionWithAgents>),
    /// Another conversation is looked at.
    Enter(ConversationId),
}

fn read(book: &SessionLoader, inbox: Receiver<LoaderCommand>) {
    let mut family = match first(book) {
        Ok(family) => family,
        Err(why) => return (book.tell)(LoaderEvent::Failed(why)),
    };
    let mut state = LoaderState {
        entered: vec![ConversationId::Main],
        revision: 0,
        tails: tails(&family),
        sizes: Vec::new(),
    };
    loop {
        state.revision += 1;
        match look(book, &mut state, &family, &inbox) {
            LoaderWakeReason::Closed => return,
            LoaderWakeReason::Whole(whole) => {
                family = *whole;
                state.tails = tails(&family);
                // What was written while it was read.
                grow(book, &mut state, &mut family);
            }
            LoaderWakeReason::Grow => {
                // Before reading: what comes meanwhile is seen the next time.
                state.sizes = sizes(book, &family);
                if !grow(book, &mut state, &mut family) {
                    match whole(&book.library.reader, &book.path) {
                        Ok(again) => {
                            family = again;
                            state.tails = tails(&family);
                        }
                        Err(why) => return (book.tell)(LoaderEvent::Failed(why)),
                    }
                }
            }
            LoaderWakeReason::Enter(other) => {
                if !state.entered.contains(&other) {
                    state.entered.push(other);
                }
            }
        }
    }
}

fn growing(reader: &SessionReader) -> SessionReader {
    SessionReader {
        ending: TrailingBytes::Growing,
        ..*reader
    }
}

/// What can be shown at once: all of a small session, the end of a large one.
fn first(book: &SessionLoader) -> Result<SessionWithAgents, String> {
    let reader = growing(&book.library.reader);
    let size = std::fs::metadata(&book.path).map(|file| file.len());
    let target = target(&book.path)?;
    if size.is_ok_and(|size| size > LARGE) {
        let (turns, at_most) = FIRST;
        // Enough for most screens, and a quarter of what is read otherwise.
        let quick = SessionReader {
            window: 256 << 10,
            ..reader
        };
        let main = quick
            .read_end(&book.path, target.role(), turns, at_most)
            .map_err(|error| error.to_string())?;
        if main.is_partial() {
            let (orders, path) = (book.orders.clone(), book.path.clone());
            std::thread::spawn(move || {
                let whole = whole(&reader, &path);
                let _ = orders.send(LoaderCommand::Whole(Box::new(whole)));
            });
            return Ok(SessionWithAgents::alone(main));
        }
    }
    whole(&reader, &book.path)
}

fn target(path: &Path) -> Result<SessionTarget, String> {
    unspool_store::find::find_named_file(path).map_err(|error| error.to_string())
}

/// All of a session, with its sub-agents.
fn whole(reader: &SessionReader, path: &Path) -> Result<SessionWithAgents, String> {
    let reader = growing(reader);
    let family = match target(path)? {
        SessionTarget::Session(file) => {
            let mut found = unspool_store::find::find_beside_transcript(&file.path);
            found.identify_agents();
            session_with_agents::read_session_with_agents_by(&reader, &found, &file)
        }
        SessionTarget::Agent(file) => reader
            .read(&file.path, TranscriptRole::Agent)
            .map(SessionWithAgents::alone),
    };
    let mut family = family.map_err(|error| error.to_string())?;
    for agent in &mut family.agents {
        mask(&reader, agent);
    }
    Ok(family)
}

/// What a side file says about an agent is shown, too.
fn mask(reader: &SessionReader, agent: &mut LoadedAgent) {
    let Some(meta) = &mut agent.meta else { return };
    if let (Some(mask), Some(text)) = (reader.mask, &meta.description)
        && let Some(masked) = mask.text(text)
    {
        meta.description = Some(String::from_utf8_lossy(&masked.bytes).into_owned());
    }
}

fn tails(family: &SessionWithAgents) -> LoaderTails {
    let agents = family.agents.iter();
    LoaderTails {
        main: TranscriptTail::after(&family.main).ok(),
        agents: agents
            .filter_map(|agent| {
                Some((agent.id.clone(), TranscriptTail::after(&agent.loaded).ok()?))
            })
            .collect(),
    }
}

/// Reads on; `false` if a file is another one now.
fn grow(book: &SessionLoader, state: &mut LoaderState, family: &mut SessionWithAgents) -> bool {
    let reader = growing(&book.library.reader);
    let main = state.tails.main.as_mut();
    if !main.is_some_and(|tail| follow(tail, &mut family.main, &reader)) {
        return false;
    }
    for agent in &mut family.agents {
        let tail = state.tails.agents.get_mut(&agent.id);
        if !tail.is_some_and(|tail| follow(tail, &mut agent.loaded, &reader)) {
            return false;
        }
    }
    if !family.main.is_partial() {
        join(book, state, family, &reader);
        join_helpers(book, family);
    }
    true
}

fn follow(tail: &mut TranscriptTail, loaded: &mut LoadedSession, reader: &SessionReader) -> bool {
    let mut lines: Vec<(u32, u64, Vec<u8>, u64)> = Vec::new();
    let polled = tail.poll(|line| {
        lines.push((line.number, line.offset, line.bytes.to_vec(), line.omitted));
    });
    match polled {
        Ok(polled) if !polled.restarted => {
            for (number, offset, bytes, omitted) in &lines {
                let line = unspool_model::log::Line {
                    number: *number,
                    offset: *offset,
                    bytes,
                    omitted: *omitted,
                    ended: true,
                };
                loaded.push(&line, reader);
            }
            true
        }
        _ => false,
    }
}

/// Sub-agents that were started since.
fn join(
    book: &SessionLoader,
    state: &mut LoaderState,
    family: &mut SessionWithAgents,
    reader: &SessionReader,
) {
    for path in agent_files(&book.path) {
        if family.agents.iter().any(|agent| agent.file == path) {
            continue;
        }
        let Ok(SessionTarget::Agent(SubAgentFile { id, run, .. })) = target(&path) else {
            continue;
        };
        if unspool_store::find::is_helper(&id) {
            continue;
        }
        let Ok(loaded) = reader.read(&path, TranscriptRole::Agent) else {
            continue;
        };
        let sessions = std::iter::once(&family.main.session).chain(family.sessions());
        if session_with_agents::is_warm_up(&path, &loaded.session, sessions) {
            if family.helpers.iter().all(|helper| helper.file != path) {
                family
                    .helpers
                    .extend(HelperUsage::of(&path, &loaded.session));
            }
            continue;
        }
        if let Ok(tail) = TranscriptTail::after(&loaded) {
            state.tails.agents.insert(id.clone(), tail);
        }
        let mut agent = LoadedAgent {
            meta: notes::agent_meta(&path),
            id,
            file: path,
            loaded,
            run,
        };
        mask(reader, &mut agent);
        family.agents.push(agent);
    }
}

/// What the client's own helpers used since.
fn join_helpers(book: &SessionLoader, family: &mut SessionWithAgents) {
    let Ok(SessionTarget::Session(file)) = target(&book.path) else {
        return;
    };
    let around = unspool_store::find::find_beside_transcript(&file.path);
    for helper in session_with_agents::helpers_of(&around, &file) {
        family.renew_helper(helper);
    }
}

/// Files of sub-agents in the session's own folder.
fn agent_files(session: &Path) -> Vec<PathBuf> {
    let folder = session.with_extension("").join("subagents");
    let entries = unspool_store::read_folder::entries(folder)
        .into_iter()
        .flatten()
        .flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .collect()
}

/// How large the files of a session are now, those of new sub-agents too. A line that is not
/// ended yet is no reason to read again and again.
fn sizes(book: &SessionLoader, family: &SessionWithAgents) -> Vec<u64> {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    let mut sizes = vec![size(&book.path)];
    if !family.main.is_partial() {
        sizes.extend(family.agents.iter().map(|agent| size(&agent.file)));
        sizes.extend(family.helpers.iter().map(|helper| size(&helper.file)));
        sizes.push(agent_files(&book.path).len() as u64);
    }
    sizes
}

/// Answers questions about a session until it has to be read on.
fn look(
    book: &SessionLoader,
    state: &mut LoaderState,
    family: &SessionWithAgents,
    inbox: &Receiver<LoaderCommand>,
) -> LoaderWakeReason {
    let agents: AgentTranscripts<'_> = family.told();
    let mut shown = LoaderSession::new(book, family, &agents, state.revision);
    for of in &state.entered {
        shown.turns(of);
    }
    let mut want: Option<PageRequest> = None;
    loop {
        let order = match &want {
            None => inbox.recv().map_err(|_| TryRecvError::Disconnected),
            Some(_) => inbox.try_recv(),
        };
        match order {
            Err(TryRecvError::Disconnected) => return LoaderWakeReason::Closed,
            Err(TryRecvError::Empty) => want = want.and_then(|want| shown.serve(want)),
            Ok(LoaderCommand::Close) => {
                book.search.store(u64::MAX, Ordering::Relaxed);
                return LoaderWakeReason::Closed;
            }
            Ok(LoaderCommand::Whole(whole)) => match *whole {
                Ok(family) => return LoaderWakeReason::Whole(Box::new(family)),
                Err(why) => (book.tell)(LoaderEvent::Failed(why)),
            },
            Ok(LoaderCommand::Found(number, of, hits, done)) => {
                shown.found(number, &of, &hits, done)
            }
            Ok(LoaderCommand::Ask(LoaderRequest::Pages(next))) => want = Some(next),
            Ok(LoaderCommand::Ask(LoaderRequest::Enter(other))) => {
                return LoaderWakeReason::Enter(other);
            }
            Ok(LoaderCommand::Ask(LoaderRequest::Grow)) => {
                if sizes(book, family) != state.sizes {
                    return LoaderWakeReason::Grow;
                }
            }
            Ok(LoaderCommand::Ask(ask)) => shown.answer(ask),
        }
    }
}

/// A session to look into.
struct LoaderSession<'a> {
    book: &'a SessionLoader,
    family: &'a SessionWithAgents,
    agents: &'a AgentTranscripts<'a>,
    revision: u64,
    readings: HashMap<ConversationId, LoaderConversation<'a>>,
    places: HashMap<ConversationId, LinePositions>,
}

/// A conversation to look into.
struct LoaderConversation<'a> {
    reading: TranscriptReader<'a>,
    session: &'a Session,
    source: &'a dyn TranscriptSource,
    /// The turns without their texts; none for a sub-agent inside the file.
    rows: Vec<TurnRow>,
}

impl<'a> LoaderSession<'a> {
    fn new(
        book: &'a SessionLoader,
        family: &'a SessionWithAgents,
        agents: &'a AgentTranscripts<'a>,
        revision: u64,
    ) -> Self {
        LoaderSession {
            book,
            family,
            agents,
            revision,
            readings: HashMap::new(),
            places: HashMap::new(),
        }
    }

    fn tell(&self, told: LoaderEvent) {
        (self.book.tell)(told);
    }

    /// The conversation, read for the first time or again; `None` if there is no such agent.
    fn reading(&mut self, of: &ConversationId) -> Option<&LoaderConversation<'a>> {
        if !self.readings.contains_key(of) {
            let made = self.make(of)?;
            self.readings.insert(of.clone(), made);
        }
        self.readings.get(of)
    }

    fn make(&mut self, of: &ConversationId) -> Option<LoaderConversation<'a>> {
        let main = &self.family.main;
        let (session, source): (&'a Session, &'a dyn TranscriptSource) = match of {
            ConversationId::Agent(AgentLocation::File(id)) => {
                let agent = self.family.agents.iter().find(|agent| agent.id == *id)?;
                (&agent.loaded.session, &agent.loaded.source)
            }
            _ => (&main.session, &main.source),
        };
        let (reading, rows) = match of {
            ConversationId::Agent(AgentLocation::Thread(thread)) => {
                let whole = &self.reading(&ConversationId::Main)?.reading;
                (whole.thread(*thread), Vec::new())
            }
            _ => (
                TranscriptReader::new(session, source, self.agents),
                turns::outline(session, turns::TurnOptions::default()),
            ),
        };
        Some(LoaderConversation {
            reading,
            session,
            source,
            rows,
        })
    }

    /// Tells the turns of a conversation.
    fn turns(&mut self, of: &ConversationId) {
        let facts = self.facts();
        let (partial, revision) = (self.family.main.is_partial(), self.revision);
        let Some(told) = self.reading(of) else { return };
        let turns = outline(told, partial);
        self.tell(LoaderEvent::Turns {
            of: of.clone(),
            turns,
            partial,
            revision,
            facts,
        });
    }

    fn facts(&self) -> SessionFacts {
        let session = &self.family.main.session;
        let last = session.messages.iter().rev();
        let mut said = last.filter(|message| !message.synthetic && message.thread == 0);
        let model = said.find_map(|message| message.model());
        let model = model.map(|model| session.text(model).to_owned());
        let limit = |tokens: u64| {
            let model = model.as_deref()?;
            self.book.library.prices.limit(model, tokens)
        };
        let context = session_row::context_tokens(session).map(|tokens| (tokens, limit(tokens)));
        SessionFacts {
            title: session.title(&HashMap::new()),
            cwd: session.cwds.iter().next().map(|(cwd, _)| cwd.to_owned()),
            branch: session.branch.clone(),
            context,
            model,
            faults: session.faults.found(),
        }
    }

    /// Lays out one page of those that are wanted; what is left of them.
    fn serve(&mut self, mut want: PageRequest) -> Option<PageRequest> {
        if let Some(turn) = want.heads.pop() {
            if let Some(head) = self
                .reading(&want.of)
                .map(|told| page_layout::head(told, turn))
            {
                self.tell(LoaderEvent::Head {
                    of: want.of.clone(),
                    revision: self.revision,
                    turn,
                    head,
                });
            }
            return Some(want);
        }
        let (turn, part) = want.parts.pop()?;
        let zone = self.book.library.zone.clone();
        let laid = self.reading(&want.of);
        if let Some(page) = laid.map(|told| page_layout::page(told, turn, part, &want.look, zone)) {
            self.tell(LoaderEvent::Page {
                of: want.of.clone(),
                revision: self.revision,
                turn,
                part,
                look: want.look.clone(),
                page,
            });
        }
        Some(want)
    }

    fn answer(&mut self, ask: LoaderRequest) {
        match ask {
            LoaderRequest::Find { number, of, query } => self.find(number, of, &query),
            LoaderRequest::Locate { number, of, line } => {
                self.found(number, &of, &[RawLineMatch::line(line)], true);
            }
            LoaderRequest::Side { side, of, width } => {
                let lines = side_panel::lines(self, side, &of, width);
                self.tell(LoaderEvent::Side { side, of, lines });
            }
            LoaderRequest::Text {
                of,
                turn,
                part,
                item,
            } => {
                let told = self.reading(&of);
                if let Some(text) = told.and_then(|told| page_layout::text(told, turn, part, item))
                {
                    self.tell(LoaderEvent::Text(text));
                }
            }
            LoaderRequest::Raw { of, line, width } => {
                let told = self.reading(&of);
                if let Some(lines) = told.map(|told| page_layout::raw(told, line, width)) {
                    self.tell(LoaderEvent::Raw { line, lines });
                }
            }
            LoaderRequest::Pages(_) | LoaderRequest::Enter(_) | LoaderRequest::Grow => {}
        }
    }
}

/// The turns of a conversation without their texts.
fn outline(told: &LoaderConversation<'_>, partial: bool) -> Vec<TurnOutline> {
    let stretches: Vec<_> = told.reading.turn_extents().collect();
    let last = stretches.last().map_or(0, |stretch| stretch.turn) as i64;
    let turn = |(at, stretch): (usize, &unspool_model::view::transcript::TurnExtent)| {
        let first = told.reading.records(at).first().copied();
        let first = first.map(|at| &told.session.records[at as usize]);
        let row = turns::numbered(&told.rows, stretch.turn);
        let n = stretch.turn as i64;
        TurnOutline {
            // Where only the end was read, turns are counted from there.
            n: if partial && n > 0 { n - last - 1 } else { n },
            offset: first.map_or(0, |record| record.offset),
            kind: first.map(|record| record.input).unwrap_or_default(),
            at: first.and_then(|record| record.at()),
            duration_ms: row.and_then(|row| row.duration_ms),
            live: row.is_none_or(|row| row.live),
            over: row.is_none_or(|row| row.over),
            interrupted: row.is_some_and(|row| row.interrupted),
            compacted: row.is_some_and(|row| row.compacted),
            tools: row.map(|row| tools(told, row)).unwrap_or_default(),
            failed: row.map_or(0, |row| failed(told, row)),
            agents: row.map_or(0, |row| {
                turns::agents(told.session, &row.calls).len() as u32
            }),
            lines: stretch.lines,
            parts: stretch.lines.div_ceil(PART).max(1),
        }
    };
    stretches.iter().enumerate().map(turn).collect()
}

/// Tools by how often they were called.
fn tools(told: &LoaderConversation<'_>, row: &TurnRow) -> Vec<(String, u32)> {
    let mut tools: Vec<(String, u32)> = Vec::new();
    for &call in &row.calls {
        let name = told.session.text(told.session.calls[call as usize].tool);
        // Tools of other servers bear the name of their server.
        let short = name.rsplit("__").next().unwrap_or(name);
        match tools.iter_mut().find(|(known, _)| known == short) {
            Some((_, count)) => *count += 1,
            None => tools.push((short.to_owned(), 1)),
        }
    }
    tools.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    tools
}

fn failed(told: &LoaderConversation<'_>, row: &TurnRow) -> u32 {
    let calls = row.calls.iter().map(|&at| &told.session.calls[at as usize]);
    let failed = calls.filter(|call| call.result.as_ref().is_some_and(|result| result.is_error));
    failed.count() as u32
}

/// The file of a conversation, to be searched.
fn source_of(
    book: &SessionLoader,
    family: &SessionWithAgents,
    of: &ConversationId,
) -> Option<unspool_store::search::SearchFile> {
    if let ConversationId::Agent(AgentLocation::File(id)) = of {
        let agent = family.agents.iter().find(|agent| agent.id == *id)?;
        let SessionTarget::Agent(file) = target(&agent.file).ok()? else {
            return None;
        };
        return Some(unspool_store::search::agent_search_file(&file));
    }
    match target(&book.path).ok()? {
        SessionTarget::Session(file) => session_source(&file),
        SessionTarget::Agent(file) => Some(unspool_store::search::agent_search_file(&file)),
    }
}

fn session_source(file: &SessionFile) -> Option<unspool_store::search::SearchFile> {
    let none = unspool_store::find::FoundSessionFiles::default();
    let files = unspool_store::search::files(&none, file);
    files.into_iter().next()
}
