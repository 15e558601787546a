//! Secrets in the files of sessions: which files hold them, and where.
//!
//! Every file that a session owns is looked at (see [`crate::owned_files`]), its lines in the list of
//! prompts that the client keeps for all sessions and in that of the sessions of its project, and
//! its plan; of all sessions also what is nobody's: pasted texts, plans, mail of agent teams, what
//! the client's daemon writes, and what tells the client what to do, which is never changed.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::{memchr, memchr_iter, memrchr};
use unspool_model::edit::redact::{RedactedText, Redactor, SecretSnippet as Found};
use unspool_model::id::Id;
use unspool_model::log::LONGEST_LINE;
use unspool_model::session::TranscriptRole;
use unspool_model::session_index::{self, IndexedSessionText};
use unspool_model::{entry, json, prompt_history, text};

use crate::client_session_list;
use crate::error::{FileWarning, StoreError};
use crate::find::{self, SessionFile};
use crate::line_buffers::{LineBuffer, LineBufferReader, NextLines};
use crate::long_lines;
use crate::open;
use crate::owned_files::{self, OwnedFile, OwnedFileKind, OwnedFiles};
use crate::parallel;
use crate::read;
use crate::scan::{self, FilePart, OversizedLine, ScannedLines};
use crate::search;
use crate::side_files;

/// A file that may hold secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretScanFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it holds.
    pub holds: SecretScanFileKind,
    /// The session it belongs to; empty where it belongs to none or to many.
    pub session: String,
    /// Its size.
    pub bytes: u64,
}

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretScanFileKind {
    /// A session.
    Session,
    /// The sub-agent with this id.
    Agent(String),
    /// The output of a tool.
    Output,
    /// A file as it was before it was changed.
    Backup,
    /// What the client notes beside a transcript: things to do, tasks, sub-agents, a shell.
    Note,
    /// What tells the client what to do: its settings, memories of a project, what its shells
    /// begin with. It is looked at and never changed.
    Settings,
    /// JSON lines that are no conversation, such as those of a workflow.
    Lines,
    /// Prompts of all sessions; only those of one session count if it is named.
    Prompts {
        /// The session.
        only: Option<String>,
    },
    /// The client's own list of the sessions of a project, with what was said first in each;
    /// only the entry of one session counts if it is named.
    List {
        /// The session.
        only: Option<String>,
    },
}

impl SecretScanFileKind {
    /// Whether it is made of JSON lines.
    pub fn is_lines(&self) -> bool {
        !matches!(
            self,
            SecretScanFileKind::Output
                | SecretScanFileKind::Backup
                | SecretScanFileKind::Note
                | SecretScanFileKind::Settings
                | SecretScanFileKind::List { .. }
        )
    }
}

/// A secret in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretHit {
    /// The session, as far as anybody knows.
    pub session: String,
    /// The line, from 1.
    pub line: u64,
    /// The character of the line it begins with, from 1.
    pub column: u64,
    /// The character behind its last.
    pub end_column: u64,
    /// What it stands in: `prompt`, `reply`, `result` …
    pub place: &'static str,
    /// Which rule found it.
    pub rule: String,
    /// The hash in its placeholder.
    pub hash: String,
    /// The secret itself, decoded.
    pub secret: String,
    /// The placeholder, and some of the text around it.
    pub snippet: String,
}

/// The files of a session.
pub fn of_session(found: &find::FoundSessionFiles, file: &SessionFile) -> Vec<SecretScanFile> {
    let owned = OwnedFiles::new(found).of(file);
    let mut all: Vec<SecretScanFile> = owned.into_iter().filter_map(known).collect();
    all.extend(plan(file));
    let only = Some(file.id.clone());
    all.extend(prompts(&file.config, only.clone()));
    let folder = file.path.parent();
    all.extend(folder.and_then(|folder| list_in(folder, only)));
    all
}

/// The plan of a session, which its lines name. Copies of the session name the same one.
fn plan(file: &SessionFile) -> Option<SecretScanFile> {
    if file.config.as_os_str().is_empty() {
        return None;
    }
    let start = read::read_start(&file.path, TranscriptRole::Main, PLAN_NAMED_BY).ok()?;
    let path = side_files::plan(&file.config, start.session.slug.as_deref()?)?;
    plain_file(path, SecretScanFileKind::Note, &file.id)
}

/// Every line of a session names its plan, so one of the first does.
const PLAN_NAMED_BY: u64 = 1 << 20;

/// Every session with the files that are its alone, and then everything else: files of sessions
/// that are gone, and what is nobody's.
pub fn of_each<'a>(
    found: &'a find::FoundSessionFiles,
    configs: &[PathBuf],
) -> (
    Vec<(&'a SessionFile, Vec<SecretScanFile>)>,
    Vec<SecretScanFile>,
) {
    let (each, gone) = owned_files::of_all(found, configs);
    let sources = |owned: Vec<OwnedFile>| owned.into_iter().filter_map(known).collect();
    let each = each.into_iter().map(|(file, owned)| (file, sources(owned)));
    let each = each.collect();
    let mut rest: Vec<SecretScanFile> = sources(gone);
    for config in owned_files::distinct(configs) {
        let shared = owned_files::shared(config).into_iter();
        rest.extend(shared.filter_map(|file| {
            let holds = match file.steers {
                true => SecretScanFileKind::Settings,
                false => SecretScanFileKind::Note,
            };
            plain_file(file.path, holds, "")
        }));
        rest.extend(prompts(config, None));
    }
    let stray = owned_files::stray(found, configs);
    rest.extend(stray.filter_map(|path| plain_file(path, SecretScanFileKind::Lines, "")));
    let folders = found.sessions.iter().filter_map(|file| file.path.parent());
    let projects = configs
        .iter()
        .flat_map(|config| owned_files::projects(config));
    let folders: BTreeSet<PathBuf> = folders.map(Path::to_owned).chain(projects).collect();
    rest.extend(folders.iter().filter_map(|folder| list_in(folder, None)));
    // What a session owns is listed with it.
    let each: Vec<(&SessionFile, Vec<SecretScanFile>)> = each;
    let owned = each.iter().flat_map(|(_, sources)| sources);
    let mut seen: HashSet<PathBuf> = owned.map(|source| source.path.clone()).collect();
    rest.retain(|source| seen.insert(source.path.clone()));
    (each, rest)
}

/// The file of a sub-agent.
pub fn of_agent(file: &find::SubAgentFile) -> Vec<SecretScanFile> {
    let source = search::agent_search_file(file);
    vec![SecretScanFile {
        path: source.path,
        holds: SecretScanFileKind::Agent(file.id.clone()),
        session: source.session,
        bytes: source.bytes,
    }]
}

/// The files of all sessions below these config folders, those that were written last first, also
/// of those whose transcript is gone.
pub fn of_all(found: &find::FoundSessionFiles, configs: &[PathBuf]) -> Vec<SecretScanFile> {
    let (mut each, rest) = of_each(found, configs);
    each.sort_by_key(|(file, _)| Reverse(file.modified));
    let each = each.into_iter().flat_map(|(_, sources)| sources);
    each.chain(rest).collect()
}

/// A file of a session, unless it says nothing.
fn known(owned: OwnedFile) -> Option<SecretScanFile> {
    let is_lines = owned.path.extension().is_some_and(|end| end == "jsonl");
    let holds = match owned.kind {
        OwnedFileKind::Transcript => SecretScanFileKind::Session,
        OwnedFileKind::Agent(id) | OwnedFileKind::Helper(id) => SecretScanFileKind::Agent(id),
        OwnedFileKind::Output => SecretScanFileKind::Output,
        OwnedFileKind::Backup => SecretScanFileKind::Backup,
        OwnedFileKind::Lines | OwnedFileKind::Head => SecretScanFileKind::Lines,
        OwnedFileKind::Job if is_lines => SecretScanFileKind::Lines,
        OwnedFileKind::Title
        | OwnedFileKind::Archived
        | OwnedFileKind::Todo
        | OwnedFileKind::Note
        | OwnedFileKind::Job
        | OwnedFileKind::Running
        | OwnedFileKind::Log => SecretScanFileKind::Note,
        OwnedFileKind::Lock => return None,
    };
    Some(SecretScanFile {
        path: owned.path,
        holds,
        session: owned.session,
        bytes: owned.bytes,
    })
}

fn plain_file(path: PathBuf, holds: SecretScanFileKind, session: &str) -> Option<SecretScanFile> {
    let bytes = open::stat_regular_file(&path).ok()?.len();
    Some(SecretScanFile {
        path,
        holds,
        session: session.to_owned(),
        bytes,
    })
}

fn prompts(config: &Path, only: Option<String>) -> Option<SecretScanFile> {
    if config.as_os_str().is_empty() {
        return None;
    }
    let path = config.join("history.jsonl");
    let bytes = open::stat_regular_file(&path).ok()?.len();
    Some(SecretScanFile {
        path,
        session: only.clone().unwrap_or_default(),
        holds: SecretScanFileKind::Prompts { only },
        bytes,
    })
}

fn list_in(folder: &Path, only: Option<String>) -> Option<SecretScanFile> {
    let path = folder.join(client_session_list::NAME);
    let bytes = open::stat_regular_file(&path).ok()?.len();
    Some(SecretScanFile {
        path,
        session: only.clone().unwrap_or_default(),
        holds: SecretScanFileKind::List { only },
        bytes,
    })
}

/// The texts of a list of sessions, or those of one session.
fn texts_of(list: &[u8], only: Option<&String>) -> Vec<IndexedSessionText> {
    let mut texts = session_index::texts(list);
    texts.retain(|one| only.is_none_or(|only| one.session == *only));
    texts
}

/// A list of sessions without secrets in the texts of one of them, or of all.
fn redact_list(redactor: &Redactor, list: &[u8], only: Option<&String>) -> Option<RedactedText> {
    let mut edits = Vec::new();
    let mut redacted = RedactedText::default();
    for one in texts_of(list, only) {
        if let Some(done) = redactor.value(one.text.of(list)) {
            redacted.found.extend(done.found);
            edits.push((one.text, done.bytes));
        }
    }
    redacted.bytes = json::splice(list, &edits);
    (!edits.is_empty()).then_some(redacted)
}

/// What became of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactionResult {
    /// Lines that are as they were.
    pub kept: u64,
    /// Lines that lost a secret.
    pub changed: u64,
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
    /// Secrets that were replaced.
    pub secrets: u64,
    /// How many of them stood in the thinking of a model.
    pub thinking: u64,
    /// How many a second look still finds in what was written.
    pub left: u64,
    /// The ids of the lines that lost one, as far as they have one.
    pub lines: Vec<Option<Id>>,
}

/// Writes a file, which is open, without its secrets. Lines that have none keep every byte,
/// and of the list of prompts so do those of other sessions.
pub fn rewrite(
    source: &SecretScanFile,
    file: &File,
    redactor: &Redactor,
    out: &mut dyn Write,
) -> io::Result<RedactionResult> {
    let mut done = RedactionResult::default();
    if !source.holds.is_lines() {
        let metadata = file.metadata()?;
        if metadata.len() > LONGEST_LINE as u64 {
            done.add_long(source, redactor, file, &whole_file(&metadata), out)?;
            return Ok(done);
        }
        let mut bytes = Vec::new();
        let mut file = file;
        if file.read_to_end(&mut bytes)? > 0 {
            done.add(source, redactor, &bytes, out)?;
        }
        return Ok(done);
    }
    let mut pieces = LineBufferReader::new(file, 0, file.metadata()?.len(), 1 << 20);
    let mut piece = LineBuffer::default();
    while let Some(next) = pieces.next(&mut piece)? {
        match next {
            NextLines::Lines(_) => {
                for line in piece.bytes().split_inclusive(|byte| *byte == b'\n') {
                    done.add(source, redactor, line, out)?;
                }
            }
            NextLines::Passed(line) => done.add_long(source, redactor, file, &line, out)?,
        }
    }
    Ok(done)
}

impl RedactionResult {
    /// Writes a line with its newline, or a whole file, without its secrets.
    fn add(
        &mut self,
        source: &SecretScanFile,
        redactor: &Redactor,
        bytes: &[u8],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let redacted = match &source.holds {
            SecretScanFileKind::Prompts { only: Some(only) }
                if prompt_history::session(bytes).as_ref() != Some(only) =>
            {
                None
            }
            SecretScanFileKind::Output
            | SecretScanFileKind::Backup
            | SecretScanFileKind::Note
            | SecretScanFileKind::Settings => redactor.file(bytes),
            SecretScanFileKind::List { only } => redact_list(redactor, bytes, only.as_ref()),
            _ => redactor.line(bytes),
        };
        let new = redacted.as_ref().map_or(bytes, |redacted| &redacted.bytes);
        out.write_all(new)?;
        self.before += bytes.len() as u64;
        self.after += new.len() as u64;
        match redacted {
            Some(redacted) => {
                self.changed += 1;
                self.secrets += redacted.found.len() as u64;
                self.thinking += redacted.thinking as u64;
                self.left += left(source, redactor, &redacted.bytes);
                self.lines.extend(entry::ids(bytes));
            }
            None => self.kept += 1,
        }
        Ok(())
    }

    /// The same for a line that is too long to be held.
    fn add_long(
        &mut self,
        source: &SecretScanFile,
        redactor: &Redactor,
        file: &File,
        line: &OversizedLine,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let foreign = matches!(&source.holds, SecretScanFileKind::Prompts { only: Some(_) });
        let (mut secrets, mut left) = (0, 0);
        let replace = |window: &[u8]| {
            let redacted = redactor.file(window).filter(|_| !foreign)?;
            secrets += redacted.found.len() as u64;
            left += redactor.places_of_text(&redacted.bytes).len() as u64;
            Some(redacted.bytes)
        };
        let replaced = long_lines::rewrite(file, line, replace, out)?;
        if line.ended {
            out.write_all(b"\n")?;
        }
        self.before += line.length + u64::from(line.ended);
        self.after += replaced.bytes + u64::from(line.ended);
        self.secrets += secrets;
        self.left += left;
        match replaced.windows {
            0 => self.kept += 1,
            _ => {
                self.changed += 1;
                self.lines.push(None);
            }
        }
        Ok(())
    }
}

/// How many secrets a second look finds.
fn left(source: &SecretScanFile, redactor: &Redactor, bytes: &[u8]) -> u64 {
    let places = match &source.holds {
        SecretScanFileKind::List { only } => {
            let again = redact_list(redactor, bytes, only.as_ref());
            return again.map_or(0, |again| again.found.len() as u64);
        }
        SecretScanFileKind::Output
        | SecretScanFileKind::Backup
        | SecretScanFileKind::Note
        | SecretScanFileKind::Settings => redactor.places_of_text(bytes),
        SecretScanFileKind::Session
        | SecretScanFileKind::Agent(_)
        | SecretScanFileKind::Lines
        | SecretScanFileKind::Prompts { .. } => redactor.places(bytes),
    };
    places.len() as u64
}

/// How to look.
pub struct SecretScanOptions<'a> {
    /// What finds them.
    pub redactor: &'a Redactor,
    /// Show them in their text.
    pub reveal: bool,
    /// How many threads.
    pub threads: usize,
    /// Is told how many bytes are done.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

/// What a part of a file gave: how many lines it has, and what was found.
type SecretScanPartResult = Result<(u64, Vec<SecretHit>), StoreError>;

/// Looks into all files. What was found in each, in order, and files that cannot be read.
pub fn scan(
    sources: &[SecretScanFile],
    how: &SecretScanOptions<'_>,
) -> (Vec<Vec<SecretHit>>, Vec<FileWarning>) {
    let mut parts = Vec::new();
    for (file, source) in sources.iter().enumerate() {
        match source.holds.is_lines() {
            true => parts.extend(
                scan::parts([(0, source.bytes)])
                    .into_iter()
                    .map(|part| FilePart { file, ..part }),
            ),
            false => parts.push(FilePart {
                file,
                start: 0,
                end: source.bytes,
            }),
        }
    }
    let done = AtomicU64::new(0);
    let looked = parallel::map(
        &parts,
        how.threads,
        |part| part.end - part.start,
        |part| {
            let looked = look(&sources[part.file], part, how);
            let size = part.end - part.start;
            (how.progress)(done.fetch_add(size, Ordering::Relaxed) + size);
            looked
        },
    );
    let mut all: Vec<Vec<SecretHit>> = sources.iter().map(|_| Vec::new()).collect();
    let mut warnings = Vec::new();
    let (mut file, mut before) = (usize::MAX, 0);
    for (part, looked) in parts.iter().zip(looked) {
        if part.file != file {
            (file, before) = (part.file, 0);
        }
        match looked {
            Ok((lines, hits)) => {
                all[file].extend(hits.into_iter().map(|hit| SecretHit {
                    line: hit.line + before,
                    ..hit
                }));
                before += lines;
            }
            Err(error) => {
                let warning = error.warning(&sources[file].path);
                if warnings.last() != Some(&warning) {
                    warnings.push(warning);
                }
            }
        }
    }
    (all, warnings)
}

fn look(
    source: &SecretScanFile,
    part: &FilePart,
    how: &SecretScanOptions<'_>,
) -> SecretScanPartResult {
    let (file, metadata) = open::open(&source.path)?;
    let mut hits = Vec::new();
    if !source.holds.is_lines() && metadata.len() > LONGEST_LINE as u64 {
        let read = large_file(source, &whole_file(&metadata), &file, how, &mut hits);
        read.map_err(|why| StoreError::io(&source.path, why))?;
        return Ok((0, hits));
    }
    if !source.holds.is_lines() {
        let size = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        let mut bytes = vec![0; size];
        let read = open::read_at(&file, &mut bytes, 0);
        let read = read.map_err(|why| StoreError::io(&source.path, why))?;
        bytes.truncate(read);
        plain(source, &bytes, how, &mut hits);
        return Ok((0, hits));
    }
    let mut lines = 0;
    let mut failed = None;
    let read = part.read(&file, |stretch| {
        let bytes = match stretch {
            ScannedLines::Lines(_, bytes) => bytes,
            ScannedLines::Passed(passed) => {
                lines += 1;
                failed = long_line(source, lines, &passed, &file, how, &mut hits).err();
                return;
            }
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = memchr(b'\n', rest);
            lines += 1;
            line(
                source,
                lines,
                &rest[..end.unwrap_or(rest.len())],
                how,
                &mut hits,
            );
            rest = end.map_or(&[], |end| &rest[end + 1..]);
        }
    });
    let read = read.and_then(|_| failed.map_or(Ok(()), Err));
    read.map_err(|why| StoreError::io(&source.path, why))?;
    Ok((lines, hits))
}

/// A file that is too large to be held, as one line.
fn whole_file(metadata: &Metadata) -> OversizedLine {
    OversizedLine {
        offset: 0,
        length: metadata.len(),
        ended: false,
    }
}

/// Looks through a file beside a transcript that is too large to be held.
fn large_file(
    source: &SecretScanFile,
    whole: &OversizedLine,
    file: &File,
    how: &SecretScanOptions<'_>,
    hits: &mut Vec<SecretHit>,
) -> io::Result<()> {
    let (mut lines, mut column) = (0, 0);
    long_lines::filled_windows(file, whole, |_, window| {
        let mut ruler = LineColumnCounter {
            line: lines,
            column,
            at: 0,
        };
        for one in how.redactor.hits_of_text(window, how.reveal) {
            ruler.move_to(window, one.place.span.start);
            let at = (ruler.line + 1, ruler.column);
            hits.push(hit(one, window, at, "other", (&source.session, how)));
        }
        ruler.move_to(window, window.len());
        (lines, column) = (ruler.line, ruler.column);
        Ok(true)
    })
}

/// Looks through a line that is too long to be held, as if it were plain text.
fn long_line(
    source: &SecretScanFile,
    number: u64,
    passed: &OversizedLine,
    file: &File,
    how: &SecretScanOptions<'_>,
    hits: &mut Vec<SecretHit>,
) -> io::Result<()> {
    // Whose prompt it is cannot be told.
    if let SecretScanFileKind::Prompts { only: Some(_) } = &source.holds {
        return Ok(());
    }
    // Columns count bytes here: to count characters, all of it would have to be read.
    long_lines::filled_windows(file, passed, |start, window| {
        for one in how.redactor.hits_of_text(window, how.reveal) {
            let at = (number, start + one.place.span.start as u64);
            hits.push(hit(one, window, at, "other", (&source.session, how)));
        }
        Ok(true)
    })
}

fn line(
    source: &SecretScanFile,
    number: u64,
    bytes: &[u8],
    how: &SecretScanOptions<'_>,
    hits: &mut Vec<SecretHit>,
) {
    let found = how.redactor.hits(bytes, how.reveal);
    if found.is_empty() {
        return;
    }
    let mut session = source.session.clone();
    if let SecretScanFileKind::Prompts { only } = &source.holds {
        session = prompt_history::session(bytes).unwrap_or_default();
        if only.as_ref().is_some_and(|only| *only != session) {
            return;
        }
    }
    let places = places(source, bytes);
    let mut ruler = LineColumnCounter::default();
    for one in found {
        let at = one.place.span.start;
        let place = places.iter().find(|(range, _)| range.contains(&at));
        let place = place.map_or("other", |(_, name)| name);
        ruler.move_to(bytes, at);
        hits.push(hit(
            one,
            bytes,
            (number, ruler.column),
            place,
            (&session, how),
        ));
    }
}

/// What the places of a line are.
fn places(source: &SecretScanFile, line: &[u8]) -> Vec<(Range<usize>, &'static str)> {
    if let SecretScanFileKind::Prompts { .. } = source.holds {
        return vec![(0..line.len(), "prompt")];
    }
    let mut places = Vec::new();
    text::texts(line, &mut |text| {
        let range = text.offset..text.offset + text.raw.len();
        places.push((range, text.place.name()));
    });
    places
}

fn in_list(
    only: Option<&String>,
    bytes: &[u8],
    how: &SecretScanOptions<'_>,
    hits: &mut Vec<SecretHit>,
) {
    let mut ruler = LineColumnCounter::default();
    for one in texts_of(bytes, only) {
        for mut found in how.redactor.hits(one.text.of(bytes), how.reveal) {
            found.place.span.start += one.text.start;
            ruler.move_to(bytes, found.place.span.start);
            let at = (ruler.line + 1, ruler.column);
            hits.push(hit(found, bytes, at, "prompt", (&one.session, how)));
        }
    }
}

fn plain(
    source: &SecretScanFile,
    bytes: &[u8],
    how: &SecretScanOptions<'_>,
    hits: &mut Vec<SecretHit>,
) {
    if let SecretScanFileKind::List { only } = &source.holds {
        return in_list(only.as_ref(), bytes, how, hits);
    }
    let place = match source.holds {
        SecretScanFileKind::Backup => "file",
        SecretScanFileKind::Note => "note",
        _ => "result",
    };
    let mut ruler = LineColumnCounter::default();
    for one in how.redactor.hits_of_text(bytes, how.reveal) {
        ruler.move_to(bytes, one.place.span.start);
        let at = (ruler.line + 1, ruler.column);
        hits.push(hit(one, bytes, at, place, (&source.session, how)));
    }
}

/// Counts lines and characters on the way through a text.
#[derive(Default)]
struct LineColumnCounter {
    at: usize,
    line: u64,
    column: u64,
}

impl LineColumnCounter {
    fn move_to(&mut self, bytes: &[u8], at: usize) {
        let passed = bytes.get(self.at..at).unwrap_or_default();
        self.line += memchr_iter(b'\n', passed).count() as u64;
        let rest = match memrchr(b'\n', passed) {
            Some(newline) => {
                self.column = 0;
                &passed[newline + 1..]
            }
            None => passed,
        };
        self.column += characters(rest);
        self.at = at.max(self.at);
    }
}

fn characters(bytes: &[u8]) -> u64 {
    String::from_utf8_lossy(bytes).chars().count() as u64
}

fn hit(
    found: Found,
    bytes: &[u8],
    (line, column): (u64, u64),
    place: &'static str,
    (session, how): (&str, &SecretScanOptions<'_>),
) -> SecretHit {
    // A secret of many lines ends where its first line does.
    let first = found
        .place
        .span
        .of(bytes)
        .split(|byte| *byte == b'\n')
        .next();
    SecretHit {
        session: session.to_owned(),
        line,
        column: column + 1,
        end_column: column + 1 + characters(first.unwrap_or_default()),
        place,
        hash: how.redactor.hash(&found.place.secret),
        rule: found.place.rule,
        secret: found.place.secret,
        snippet: found.snippet,
    }
}
