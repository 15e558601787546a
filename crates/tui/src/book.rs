//! A session that is open: a thread that reads and lays out, so that drawing never waits.
//!
//! The end of a large file is read alone and shown at once; the whole comes from another
//! thread and takes its place. What was added to the file meanwhile is read on from there.

mod find;
mod lay;
mod side;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use jiff::tz::TimeZone;
use unspool_model::log::Source;
use unspool_model::price::Prices;
use unspool_model::session::{Role, Session};
use unspool_model::view::row;
use unspool_model::view::transcript::{Agents, Reading, Started};
use unspool_model::view::turns::{self, TurnRow};
use unspool_store::family::{self, Agent, Family, Helper};
use unspool_store::find::{AgentFile, SessionFile};
use unspool_store::follow::Tail;
use unspool_store::read::{Ending, Loaded, Reader};
use unspool_store::resolve::Target;
use unspool_store::side as notes;

use crate::page::{Ask, Conversation, Facts, PART, Told, Turn, Want};
use find::{Places, Raw};

/// A file larger than this is shown from its end first.
const LARGE: u64 = 4 << 20;
/// How many turns of the end are read at first, and how much of the file at most.
const FIRST: (usize, u64) = (3, 8 << 20);

/// How books are read.
#[derive(Clone)]
pub struct Library {
    /// How files are read, and what masks secrets.
    pub reader: Reader,
    /// The zone that times are shown in.
    pub zone: TimeZone,
    /// What models cost.
    pub prices: Arc<Prices>,
}

/// What a book's thread hears.
pub enum Order {
    /// A question.
    Ask(Ask),
    /// The whole session was read.
    Whole(Box<Result<Family, String>>),
    /// Nobody looks any more.
    Close,
    /// A search found something.
    Found(u64, Conversation, Vec<Raw>, bool),
}

/// Opens a book on a thread of its own; `tell` hands on what it says.
pub fn open(
    library: Library,
    path: PathBuf,
    tell: impl Fn(Told) + Send + 'static,
) -> Sender<Order> {
    let (orders, inbox) = channel();
    let own = orders.clone();
    std::thread::spawn(move || {
        let book = Book {
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
            tell(Told::Failed(why));
        }
    });
    orders
}

/// What stays while a session is read again.
struct Book {
    library: Library,
    path: PathBuf,
    tell: Box<dyn Fn(Told) + Send>,
    orders: Sender<Order>,
    /// The number of the search that is wanted; others stop.
    search: Arc<AtomicU64>,
}

/// What changes when it is read on.
struct State {
    /// The conversations that somebody looks at.
    entered: Vec<Conversation>,
    revision: u64,
    tails: Tails,
    /// How large the files were when they were last read on.
    sizes: Vec<u64>,
}

/// Where files are read on.
struct Tails {
    main: Option<Tail>,
    agents: HashMap<String, Tail>,
}

/// Why a look at a session ends.
enum Why {
    /// Nobody looks any more.
    Closed,
    /// There may be more.
    Grow,
    /// The whole session is there.
    Whole(Box<Family>),
    /// Another conversation is looked at.
    Enter(Conversation),
}

fn read(book: &Book, inbox: Receiver<Order>) {
    let mut family = match first(book) {
        Ok(family) => family,
        Err(why) => return (book.tell)(Told::Failed(why)),
    };
    let mut state = State {
        entered: vec![Conversation::Main],
        revision: 0,
        tails: tails(&family),
        sizes: Vec::new(),
    };
    loop {
        state.revision += 1;
        match look(book, &mut state, &family, &inbox) {
            Why::Closed => return,
            Why::Whole(whole) => {
                family = *whole;
                state.tails = tails(&family);
                // What was written while it was read.
                grow(book, &mut state, &mut family);
            }
            Why::Grow => {
                // Before reading: what comes meanwhile is seen the next time.
                state.sizes = sizes(book, &family);
                if !grow(book, &mut state, &mut family) {
                    match whole(&book.library.reader, &book.path) {
                        Ok(again) => {
                            family = again;
                            state.tails = tails(&family);
                        }
                        Err(why) => return (book.tell)(Told::Failed(why)),
                    }
                }
            }
            Why::Enter(other) => {
                if !state.entered.contains(&other) {
                    state.entered.push(other);
                }
            }
        }
    }
}

fn growing(reader: &Reader) -> Reader {
    Reader {
        ending: Ending::Growing,
        ..*reader
    }
}

/// What can be shown at once: all of a small session, the end of a large one.
fn first(book: &Book) -> Result<Family, String> {
    let reader = growing(&book.library.reader);
    let size = std::fs::metadata(&book.path).map(|file| file.len());
    let target = target(&book.path)?;
    if size.is_ok_and(|size| size > LARGE) {
        let (turns, at_most) = FIRST;
        // Enough for most screens, and a quarter of what is read otherwise.
        let quick = Reader {
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
                let _ = orders.send(Order::Whole(Box::new(whole)));
            });
            return Ok(Family::alone(main));
        }
    }
    whole(&reader, &book.path)
}

fn target(path: &Path) -> Result<Target, String> {
    unspool_store::find::single(path).map_err(|error| error.to_string())
}

/// All of a session, with its sub-agents.
fn whole(reader: &Reader, path: &Path) -> Result<Family, String> {
    let reader = growing(reader);
    let family = match target(path)? {
        Target::Session(file) => {
            let mut found = unspool_store::find::around(&file.path);
            found.identify_agents();
            family::family_by(&reader, &found, &file)
        }
        Target::Agent(file) => reader.read(&file.path, Role::Agent).map(Family::alone),
    };
    let mut family = family.map_err(|error| error.to_string())?;
    for agent in &mut family.agents {
        mask(&reader, agent);
    }
    Ok(family)
}

/// What a side file says about an agent is shown, too.
fn mask(reader: &Reader, agent: &mut Agent) {
    let Some(meta) = &mut agent.meta else { return };
    if let (Some(mask), Some(text)) = (reader.mask, &meta.description)
        && let Some(masked) = mask.text(text)
    {
        meta.description = Some(String::from_utf8_lossy(&masked.bytes).into_owned());
    }
}

fn tails(family: &Family) -> Tails {
    let agents = family.agents.iter();
    Tails {
        main: Tail::after(&family.main).ok(),
        agents: agents
            .filter_map(|agent| Some((agent.id.clone(), Tail::after(&agent.loaded).ok()?)))
            .collect(),
    }
}

/// Reads on; `false` if a file is another one now.
fn grow(book: &Book, state: &mut State, family: &mut Family) -> bool {
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

fn follow(tail: &mut Tail, loaded: &mut Loaded, reader: &Reader) -> bool {
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
fn join(book: &Book, state: &mut State, family: &mut Family, reader: &Reader) {
    for path in agent_files(&book.path) {
        if family.agents.iter().any(|agent| agent.file == path) {
            continue;
        }
        let Ok(Target::Agent(AgentFile { id, run, .. })) = target(&path) else {
            continue;
        };
        if unspool_store::find::is_helper(&id) {
            continue;
        }
        let Ok(loaded) = reader.read(&path, Role::Agent) else {
            continue;
        };
        let sessions = std::iter::once(&family.main.session).chain(family.sessions());
        if family::is_warm_up(&path, &loaded.session, sessions) {
            if family.helpers.iter().all(|helper| helper.file != path) {
                family.helpers.extend(Helper::of(&path, &loaded.session));
            }
            continue;
        }
        if let Ok(tail) = Tail::after(&loaded) {
            state.tails.agents.insert(id.clone(), tail);
        }
        let mut agent = Agent {
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
fn join_helpers(book: &Book, family: &mut Family) {
    let Ok(Target::Session(file)) = target(&book.path) else {
        return;
    };
    let around = unspool_store::find::around(&file.path);
    for helper in family::helpers_of(&around, &file) {
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
fn sizes(book: &Book, family: &Family) -> Vec<u64> {
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
fn look(book: &Book, state: &mut State, family: &Family, inbox: &Receiver<Order>) -> Why {
    let agents: Agents<'_> = family.told();
    let mut shown = Shown::new(book, family, &agents, state.revision);
    for of in &state.entered {
        shown.turns(of);
    }
    let mut want: Option<Want> = None;
    loop {
        let order = match &want {
            None => inbox.recv().map_err(|_| TryRecvError::Disconnected),
            Some(_) => inbox.try_recv(),
        };
        match order {
            Err(TryRecvError::Disconnected) => return Why::Closed,
            Err(TryRecvError::Empty) => want = want.and_then(|want| shown.serve(want)),
            Ok(Order::Close) => {
                book.search.store(u64::MAX, Ordering::Relaxed);
                return Why::Closed;
            }
            Ok(Order::Whole(whole)) => match *whole {
                Ok(family) => return Why::Whole(Box::new(family)),
                Err(why) => (book.tell)(Told::Failed(why)),
            },
            Ok(Order::Found(number, of, hits, done)) => shown.found(number, &of, &hits, done),
            Ok(Order::Ask(Ask::Pages(next))) => want = Some(next),
            Ok(Order::Ask(Ask::Enter(other))) => return Why::Enter(other),
            Ok(Order::Ask(Ask::Grow)) => {
                if sizes(book, family) != state.sizes {
                    return Why::Grow;
                }
            }
            Ok(Order::Ask(ask)) => shown.answer(ask),
        }
    }
}

/// A session to look into.
struct Shown<'a> {
    book: &'a Book,
    family: &'a Family,
    agents: &'a Agents<'a>,
    revision: u64,
    readings: HashMap<Conversation, Open<'a>>,
    places: HashMap<Conversation, Places>,
}

/// A conversation to look into.
struct Open<'a> {
    reading: Reading<'a>,
    session: &'a Session,
    source: &'a dyn Source,
    /// The turns without their texts; none for a sub-agent inside the file.
    rows: Vec<TurnRow>,
}

impl<'a> Shown<'a> {
    fn new(book: &'a Book, family: &'a Family, agents: &'a Agents<'a>, revision: u64) -> Self {
        Shown {
            book,
            family,
            agents,
            revision,
            readings: HashMap::new(),
            places: HashMap::new(),
        }
    }

    fn tell(&self, told: Told) {
        (self.book.tell)(told);
    }

    /// The conversation, read for the first time or again; `None` if there is no such agent.
    fn reading(&mut self, of: &Conversation) -> Option<&Open<'a>> {
        if !self.readings.contains_key(of) {
            let made = self.make(of)?;
            self.readings.insert(of.clone(), made);
        }
        self.readings.get(of)
    }

    fn make(&mut self, of: &Conversation) -> Option<Open<'a>> {
        let main = &self.family.main;
        let (session, source): (&'a Session, &'a dyn Source) = match of {
            Conversation::Agent(Started::File(id)) => {
                let agent = self.family.agents.iter().find(|agent| agent.id == *id)?;
                (&agent.loaded.session, &agent.loaded.source)
            }
            _ => (&main.session, &main.source),
        };
        let (reading, rows) = match of {
            Conversation::Agent(Started::Thread(thread)) => {
                let whole = &self.reading(&Conversation::Main)?.reading;
                (whole.thread(*thread), Vec::new())
            }
            _ => (
                Reading::new(session, source, self.agents),
                turns::outline(session, turns::Options::default()),
            ),
        };
        Some(Open {
            reading,
            session,
            source,
            rows,
        })
    }

    /// Tells the turns of a conversation.
    fn turns(&mut self, of: &Conversation) {
        let facts = self.facts();
        let (partial, revision) = (self.family.main.is_partial(), self.revision);
        let Some(told) = self.reading(of) else { return };
        let turns = outline(told, partial);
        self.tell(Told::Turns {
            of: of.clone(),
            turns,
            partial,
            revision,
            facts,
        });
    }

    fn facts(&self) -> Facts {
        let session = &self.family.main.session;
        let last = session.messages.iter().rev();
        let mut said = last.filter(|message| !message.synthetic && message.thread == 0);
        let model = said.find_map(|message| message.model());
        let model = model.map(|model| session.text(model).to_owned());
        let limit = |tokens: u64| {
            let model = model.as_deref()?;
            self.book.library.prices.limit(model, tokens)
        };
        let context = row::context_tokens(session).map(|tokens| (tokens, limit(tokens)));
        Facts {
            title: session.title(&HashMap::new()),
            cwd: session.cwds.iter().next().map(|(cwd, _)| cwd.to_owned()),
            branch: session.branch.clone(),
            context,
            model,
            faults: session.faults.found(),
        }
    }

    /// Lays out one page of those that are wanted; what is left of them.
    fn serve(&mut self, mut want: Want) -> Option<Want> {
        if let Some(turn) = want.heads.pop() {
            if let Some(head) = self.reading(&want.of).map(|told| lay::head(told, turn)) {
                self.tell(Told::Head {
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
        if let Some(page) = laid.map(|told| lay::page(told, turn, part, &want.look, zone)) {
            self.tell(Told::Page {
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

    fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Find { number, of, query } => self.find(number, of, &query),
            Ask::Locate { number, of, line } => {
                self.found(number, &of, &[Raw::line(line)], true);
            }
            Ask::Side { side, of, width } => {
                let lines = side::lines(self, side, &of, width);
                self.tell(Told::Side { side, of, lines });
            }
            Ask::Text {
                of,
                turn,
                part,
                item,
            } => {
                let told = self.reading(&of);
                if let Some(text) = told.and_then(|told| lay::text(told, turn, part, item)) {
                    self.tell(Told::Text(text));
                }
            }
            Ask::Raw { of, line, width } => {
                let told = self.reading(&of);
                if let Some(lines) = told.map(|told| lay::raw(told, line, width)) {
                    self.tell(Told::Raw { line, lines });
                }
            }
            Ask::Pages(_) | Ask::Enter(_) | Ask::Grow => {}
        }
    }
}

/// The turns of a conversation without their texts.
fn outline(told: &Open<'_>, partial: bool) -> Vec<Turn> {
    let stretches: Vec<_> = told.reading.stretches().collect();
    let last = stretches.last().map_or(0, |stretch| stretch.turn) as i64;
    let turn = |(at, stretch): (usize, &unspool_model::view::transcript::Stretch)| {
        let first = told.reading.records(at).first().copied();
        let first = first.map(|at| &told.session.records[at as usize]);
        let row = turns::numbered(&told.rows, stretch.turn);
        let n = stretch.turn as i64;
        Turn {
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
fn tools(told: &Open<'_>, row: &TurnRow) -> Vec<(String, u32)> {
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

fn failed(told: &Open<'_>, row: &TurnRow) -> u32 {
    let calls = row.calls.iter().map(|&at| &told.session.calls[at as usize]);
    let failed = calls.filter(|call| call.result.as_ref().is_some_and(|result| result.is_error));
    failed.count() as u32
}

/// The file of a conversation, to be searched.
fn source_of(
    book: &Book,
    family: &Family,
    of: &Conversation,
) -> Option<unspool_store::search::Source> {
    if let Conversation::Agent(Started::File(id)) = of {
        let agent = family.agents.iter().find(|agent| agent.id == *id)?;
        let Target::Agent(file) = target(&agent.file).ok()? else {
            return None;
        };
        return Some(unspool_store::search::alone(&file));
    }
    match target(&book.path).ok()? {
        Target::Session(file) => session_source(&file),
        Target::Agent(file) => Some(unspool_store::search::alone(&file)),
    }
}

fn session_source(file: &SessionFile) -> Option<unspool_store::search::Source> {
    let none = unspool_store::find::Found::default();
    let files = unspool_store::search::files(&none, file);
    files.into_iter().next()
}
