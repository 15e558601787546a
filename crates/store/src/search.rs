//! Search: all files at once, hits in order.
//!
//! Files are cut into parts; threads take them in order and find what matches, and this
//! thread hands the hits on in the order of the files, so that the first ones are shown
//! while the rest is still being read. Few hits wait at any time, however many there are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use memchr::memmem;
use unspool_model::entry::{self, Entry};
use unspool_model::find::{SearchScope, TextFinder, TextMatch, TextQuery};
use unspool_model::session::TranscriptRole;
use unspool_model::text::TextKind;
use unspool_model::time::Time;

use crate::error::{FileWarning, StoreError};
use crate::find::{FoundSessionFiles, SessionFile, SubAgentFile};
use crate::long_lines;
use crate::open;
use crate::parallel;
use crate::project;
use crate::read::SessionReader;
use crate::scan::{FilePart, OversizedLine, ScannedLines};
use crate::session_with_agents;
use crate::side_files;

/// A file to search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it holds.
    pub holds: SearchFileKind,
    /// The session it belongs to; empty where nobody knows.
    pub session: String,
    /// The name of its project's folder.
    pub folder: Arc<str>,
    /// Its size.
    pub bytes: u64,
    /// When it was last written, in milliseconds since 1970.
    pub modified: i64,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchFileKind {
    /// A session.
    Session,
    /// The sub-agent with this id.
    Agent(String),
    /// The output of a tool that was too long for the transcript.
    Output,
}

/// When hits must have been written.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchTimeRange {
    /// Not before.
    pub since: Option<Time>,
    /// Before.
    pub until: Option<Time>,
}

impl SearchTimeRange {
    fn takes(self, at: Time) -> bool {
        self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
    }

    /// Whether a file may hold such lines. Clocks of two machines may differ by some hours.
    fn takes_file(self, modified: i64) -> bool {
        const DAY: i64 = 86_400_000;
        self.since
            .is_none_or(|since| modified.saturating_add(DAY) >= since.0)
    }
}

/// Something that was found.
#[derive(Clone, Debug)]
pub struct SearchHit {
    /// The line, from 1.
    pub line: u64,
    /// Its id.
    pub uuid: Option<String>,
    /// When it was written.
    pub at: Option<Time>,
    /// The sub-agent it belongs to.
    pub agent: Option<String>,
    /// What matched.
    pub found: TextMatch,
}

/// The files of a session, in the order in which they are searched.
pub fn files(found: &FoundSessionFiles, session: &SessionFile) -> Vec<SearchFile> {
    let agents = session_with_agents::agents_of(found, session);
    let mut all = vec![main(session)];
    all.extend(agents.into_iter().map(|file| agent(file, &session.id)));
    all.extend(outputs(session));
    all
}

/// A sub-agent's file alone.
pub fn agent_search_file(file: &SubAgentFile) -> SearchFile {
    let session = file.session.clone();
    let session = session.or_else(|| session_with_agents::look(file).session);
    agent(file, &session.unwrap_or_default())
}

/// All files, session by session, the one that was written last first. A session that
/// `wanted` refuses is left out with all its files.
pub fn all(
    found: &FoundSessionFiles,
    wanted: impl Fn(&Path, &str) -> bool + Sync,
) -> Vec<SearchFile> {
    // Old versions put the files of sub-agents beside the sessions; only their lines tell.
    let sessions = parallel::map(
        &found.agents,
        parallel::threads(),
        |_| 0,
        |file| match &file.session {
            Some(session) => session.clone(),
            None => session_with_agents::look(file).session.unwrap_or_default(),
        },
    );
    let mut groups: Vec<Vec<SearchFile>> =
        found.sessions.iter().map(|file| vec![main(file)]).collect();
    let keys = found.sessions.iter().enumerate();
    let mut known: HashMap<(&Path, &str, &str), usize> = keys
        .map(|(at, file)| ((&*file.config, &*file.folder, &*file.id), at))
        .collect();
    for (file, session) in found.agents.iter().zip(&sessions) {
        let key = (&*file.config, &*file.folder, &**session);
        let at = *known.entry(key).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[at].push(agent(file, session));
    }
    for (file, group) in found.sessions.iter().zip(&mut groups) {
        group.extend(outputs(file));
    }
    let keep = parallel::map(
        &groups,
        parallel::threads(),
        |_| 0,
        |group| {
            let first = group.first();
            first.is_some_and(|first| wanted(&first.path, &first.folder))
        },
    );
    let mut kept: Vec<Vec<SearchFile>> = groups
        .into_iter()
        .zip(keep)
        .filter_map(|(group, keep)| keep.then_some(group))
        .collect();
    kept.sort_by_key(|group| Reverse(group.iter().map(|source| source.modified).max()));
    kept.into_iter().flatten().collect()
}

fn main(file: &SessionFile) -> SearchFile {
    SearchFile {
        path: file.path.clone(),
        holds: SearchFileKind::Session,
        session: file.id.clone(),
        folder: file.folder.clone(),
        bytes: file.bytes,
        modified: file.modified,
    }
}

fn agent(file: &SubAgentFile, session: &str) -> SearchFile {
    SearchFile {
        path: file.path.clone(),
        holds: SearchFileKind::Agent(file.id.clone()),
        session: session.to_owned(),
        folder: file.folder.clone(),
        bytes: file.bytes,
        modified: file.modified,
    }
}

fn outputs(session: &SessionFile) -> impl Iterator<Item = SearchFile> + use<'_> {
    side_files::tool_results(session)
        .into_iter()
        .filter_map(|path| {
            let metadata = open::stat_regular_file(&path).ok()?;
            Some(SearchFile {
                path,
                holds: SearchFileKind::Output,
                session: session.id.clone(),
                folder: session.folder.clone(),
                bytes: metadata.len(),
                modified: open::modified(&metadata),
            })
        })
}

/// The project that a file belongs to: of the first directory its lines name, else the name
/// of its folder. Reads no more than its start.
pub fn project(path: &Path, folder: &str) -> String {
    let named = start(path).and_then(|bytes| {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        lines.find_map(|line| {
            memmem::find(line, b"\"cwd\"")?;
            entry::decode(line)
                .entries
                .into_iter()
                .find_map(|entry| entry.cwd)
        })
    });
    named.map_or_else(
        || folder.to_owned(),
        |cwd| project::project_of(&cwd).to_owned(),
    )
}

fn start(path: &Path) -> Option<Vec<u8>> {
    let (file, _) = open::open(path).ok()?;
    let mut bytes = vec![0; session_with_agents::START as usize];
    let read = open::read_at(&file, &mut bytes, 0).ok()?;
    bytes.truncate(read);
    Some(bytes)
}

/// What to call a session, by its end and its start: clients write titles at the end again
/// and again.
pub fn title(path: &Path) -> Option<String> {
    let reader = SessionReader {
        threads: 1,
        window: END,
        ..SessionReader::default()
    };
    let end = reader
        .read_end(path, TranscriptRole::Main, 1, END)
        .ok()?
        .session;
    let start = || {
        reader
            .read_start(path, TranscriptRole::Main, session_with_agents::START)
            .ok()
    };
    let given = end.given_title().map(str::to_owned);
    given.or_else(|| start()?.session.title(&HashMap::new()))
}

/// How much of a session's end is looked at for its title.
const END: u64 = 256 << 10;

/// What to look for, and where.
#[derive(Clone, Debug)]
pub struct SearchRequest<'a> {
    /// The text.
    pub query: &'a TextQuery,
    /// The places.
    pub scope: &'a SearchScope,
    /// The time.
    pub span: SearchTimeRange,
}

/// How large a part is. Its hits are held at once, so it is smaller than for other scans.
const PART: u64 = 2 << 20;

/// So many hits may wait to be handed on before a thread stops to read ahead.
const WAITING: usize = 2_000;

/// What a thread hands over: the hits of a part, each with the offset of its line.
type SearchPartResult = Result<Vec<(u64, SearchHit)>, StoreError>;

/// Searches `sources` and calls `each` with every hit, in order, until it breaks off. Files
/// that cannot be read are named in the warnings.
pub fn search(
    sources: &[SearchFile],
    what: &SearchRequest<'_>,
    threads: usize,
    mut each: impl FnMut(&SearchFile, SearchHit) -> ControlFlow<()>,
) -> Vec<FileWarning> {
    let parts = parts(sources, what);
    let board = SearchQueue::new(parts.len());
    let mut warnings = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, parts.len().max(1)) {
            scope.spawn(|| {
                let _guard = SearchStopGuard(&board);
                let mut finder = TextFinder::new(what.query);
                while let Some(at) = board.take() {
                    let source = &sources[parts[at].file];
                    board.put(at, look(&mut finder, source, &parts[at], what));
                }
            });
        }
        let mut lines = LineCounter::default();
        for part in &parts {
            let source = &sources[part.file];
            let flow = match board.next() {
                None => ControlFlow::Break(()),
                Some(Ok(hits)) => lines.hand_on(part.file, source, hits, &mut each),
                Some(Err(error)) => {
                    let warning = error.warning(&source.path);
                    if warnings.last() != Some(&warning) {
                        warnings.push(warning);
                    }
                    ControlFlow::Continue(())
                }
            };
            if flow.is_break() {
                board.stop();
                break;
            }
        }
    });
    warnings
}

fn parts(sources: &[SearchFile], what: &SearchRequest<'_>) -> Vec<FilePart> {
    let mut all = Vec::new();
    for (file, source) in sources.iter().enumerate() {
        if !what.span.takes_file(source.modified) {
            continue;
        }
        // The output of a tool is text that may match across lines.
        let step = match source.holds {
            SearchFileKind::Output => u64::MAX,
            SearchFileKind::Session | SearchFileKind::Agent(_) => PART,
        };
        let mut start = 0;
        while start < source.bytes {
            let end = source.bytes.min(start.saturating_add(step));
            all.push(FilePart { file, start, end });
            start = end;
        }
    }
    all
}

fn look(
    finder: &mut TextFinder,
    source: &SearchFile,
    part: &FilePart,
    what: &SearchRequest<'_>,
) -> SearchPartResult {
    let (file, _) = open::open(&source.path)?;
    let mut hits = Vec::new();
    let read = match &source.holds {
        SearchFileKind::Output => output(finder, source, part, what, &file, &mut hits),
        SearchFileKind::Session => transcript(finder, source, part, what, None, &file, &mut hits),
        SearchFileKind::Agent(id) => {
            transcript(finder, source, part, what, Some(id), &file, &mut hits)
        }
    };
    read.map_err(|why| StoreError::io(&source.path, why))?;
    Ok(hits)
}

fn transcript(
    finder: &mut TextFinder,
    source: &SearchFile,
    part: &FilePart,
    what: &SearchRequest<'_>,
    agent: Option<&String>,
    file: &File,
    hits: &mut Vec<(u64, SearchHit)>,
) -> std::io::Result<()> {
    let mut failed = None;
    part.read(file, |stretch| {
        let (offset, piece) = match stretch {
            ScannedLines::Lines(offset, piece) => (offset, piece),
            ScannedLines::Passed(line) => {
                match long_line(finder, source, what, &line, file) {
                    Ok(found) => {
                        hits.extend(found.map(|found| (line.offset, hit(None, agent, found))))
                    }
                    Err(why) => failed = Some(why),
                }
                return;
            }
        };
        finder.candidates(piece, |finder, start, line| {
            finder.matches(line, what.scope, &mut |entry, found| {
                let at = entry.and_then(|entry| entry.at);
                // Titles and notes have no time; the file cannot be older than they are.
                if what.span.takes(at.unwrap_or(Time(source.modified))) {
                    hits.push((offset + start as u64, hit(entry, agent, found)));
                }
            });
        });
    })?;
    failed.map_or(Ok(()), Err)
}

/// The first match in a line that is too long to be held. Nobody knows what stands where in it,
/// so it is looked through as it is written.
fn long_line(
    finder: &TextFinder,
    source: &SearchFile,
    what: &SearchRequest<'_>,
    line: &OversizedLine,
    file: &File,
) -> std::io::Result<Option<TextMatch>> {
    let mut first = None;
    if !what.scope.takes_other() || !what.span.takes(Time(source.modified)) {
        return Ok(first);
    }
    long_lines::filled_windows(file, line, |_, window| {
        let text = String::from_utf8_lossy(window);
        finder.output(&text, 0, what.scope, &mut |_, found| {
            let place = TextKind::Other;
            first.get_or_insert(TextMatch { place, ..found });
        });
        Ok(first.is_none())
    })?;
    Ok(first)
}

fn hit(entry: Option<&Entry>, agent: Option<&String>, found: TextMatch) -> SearchHit {
    let named = || {
        entry
            .and_then(|entry| entry.agent.as_ref())
            .map(ToString::to_string)
    };
    SearchHit {
        line: 0,
        uuid: entry
            .and_then(|entry| entry.uuid.as_ref())
            .map(ToString::to_string),
        at: entry.and_then(|entry| entry.at),
        agent: agent.cloned().or_else(named),
        found,
    }
}

/// How much of what was searched already is looked at again, for matches across pieces.
const OVERLAP: usize = 64 << 10;

fn output(
    finder: &mut TextFinder,
    source: &SearchFile,
    part: &FilePart,
    what: &SearchRequest<'_>,
    file: &File,
    hits: &mut Vec<(u64, SearchHit)>,
) -> std::io::Result<()> {
    if !what.scope.takes_output() || !what.span.takes(Time(source.modified)) {
        return Ok(());
    }
    let mut tail = String::new();
    let mut line = 1;
    let mut failed = None;
    part.read(file, |stretch| {
        // Output without a line end for so long is no text; each part of it is looked at alone.
        let piece = match stretch {
            ScannedLines::Lines(_, piece) => piece,
            ScannedLines::Passed(passed) => {
                tail.clear();
                match long_line(finder, source, what, &passed, file) {
                    Ok(found) => {
                        hits.extend(found.map(|found| (0, output_hit(source, line, found))))
                    }
                    Err(why) => failed = Some(why),
                }
                line += 1;
                return;
            }
        };
        let from = tail.len();
        let mut text = std::mem::take(&mut tail);
        text.push_str(&String::from_utf8_lossy(piece));
        finder.output(&text, from, what.scope, &mut |at, found| {
            hits.push((0, output_hit(source, line + at as u64, found)));
        });
        let near = text.floor_char_boundary(text.len().saturating_sub(OVERLAP));
        let start = text[near..]
            .find('\n')
            .map_or(text.len(), |found| near + found + 1);
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[..start]).count() as u64;
        tail = text.split_off(start);
    })?;
    failed.map_or(Ok(()), Err)
}

fn output_hit(source: &SearchFile, line: u64, found: TextMatch) -> SearchHit {
    SearchHit {
        line,
        uuid: None,
        at: Some(Time(source.modified)),
        agent: None,
        found,
    }
}

/// Counts lines, only of files that have hits and each byte once.
#[derive(Default)]
struct LineCounter {
    /// Which file, how far it was counted, and how many lines ended before that.
    counted: Option<(usize, File, u64, u64)>,
}

impl LineCounter {
    fn hand_on(
        &mut self,
        file: usize,
        source: &SearchFile,
        hits: Vec<(u64, SearchHit)>,
        each: &mut impl FnMut(&SearchFile, SearchHit) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for (offset, mut hit) in hits {
            if source.holds != SearchFileKind::Output {
                hit.line = self.line(file, source, offset);
            }
            each(source, hit)?;
        }
        ControlFlow::Continue(())
    }

    fn line(&mut self, file: usize, source: &SearchFile, offset: u64) -> u64 {
        if self
            .counted
            .as_ref()
            .is_none_or(|counted| counted.0 != file)
        {
            let opened = open::open(&source.path).ok();
            self.counted = opened.map(|(opened, _)| (file, opened, 0, 0));
        }
        let Some((_, opened, at, lines)) = &mut self.counted else {
            return 0;
        };
        *lines += open::count_lines(opened, *at, offset).unwrap_or(0);
        *at = offset;
        *lines + 1
    }
}

/// Where threads take parts and put what they found.
struct SearchQueue {
    state: Mutex<SearchQueueState>,
    /// Something was put.
    done: Condvar,
    /// There is room again.
    room: Condvar,
    parts: usize,
}

#[derive(Default)]
struct SearchQueueState {
    taken: usize,
    handed: usize,
    done: BTreeMap<usize, SearchPartResult>,
    waiting: usize,
    stopped: bool,
}

impl SearchQueue {
    fn new(parts: usize) -> SearchQueue {
        SearchQueue {
            state: Mutex::default(),
            done: Condvar::new(),
            room: Condvar::new(),
            parts,
        }
    }

    fn lock(&self) -> MutexGuard<'_, SearchQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next part, as soon as there is room for its hits.
    fn take(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.stopped || state.taken == self.parts {
                return None;
            }
            if state.waiting <= WAITING || state.taken == state.handed {
                state.taken += 1;
                return Some(state.taken - 1);
            }
            state = self
                .room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn put(&self, at: usize, part: SearchPartResult) {
        let mut state = self.lock();
        state.waiting += part.as_ref().map_or(0, Vec::len);
        state.done.insert(at, part);
        if at == state.handed {
            self.done.notify_one();
        }
    }

    /// What was found in the part that is due; `None` if a thread failed.
    fn next(&self) -> Option<SearchPartResult> {
        let mut state = self.lock();
        loop {
            let due = state.handed;
            if let Some(part) = state.done.remove(&due) {
                state.handed += 1;
                state.waiting -= part.as_ref().map_or(0, Vec::len);
                self.room.notify_all();
                return Some(part);
            }
            if state.stopped {
                return None;
            }
            state = self
                .done
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn stop(&self) {
        self.lock().stopped = true;
        self.room.notify_all();
        self.done.notify_all();
    }
}

/// Stops everything if its thread panics, so that nobody waits for it.
struct SearchStopGuard<'a>(&'a SearchQueue);

impl Drop for SearchStopGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}
