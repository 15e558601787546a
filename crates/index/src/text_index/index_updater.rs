//! Brings the index up to date, stage by stage.
//!
//! A transaction holds rows and the mark behind the last line they are from, so a process
//! that is killed loses at most one transaction and never counts a line twice. Several
//! processes may do this at once: each reads the mark again when it has the right to write.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior, params};
use unspool_model::time::Time;
use unspool_store::find::FoundSessionFiles;
use unspool_store::follow::CursorBytes;
use unspool_store::project;
use unspool_store::scan::{FilePart, ScannedLines};

use super::indexed_line::{self, IndexedLine};
use super::transcript_table::{self, FoundTranscript, IndexedTranscript, NameNumbers};
use super::{TextIndex, word_splitting};
use crate::db;
use crate::error::CacheError;
use crate::file_mark::{self, MarkComparison, ReadMark, UnreadFile};
use crate::path_bytes;

/// Which part of the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexStage {
    /// Prompts, replies, titles, commands, paths.
    Dialogue = 0,
    /// Thinking, what tools were given, what they said.
    Rest = 1,
}

impl IndexStage {
    /// Both, in the order in which they are read.
    pub const BOTH: [IndexStage; 2] = [IndexStage::Dialogue, IndexStage::Rest];

    /// The table of its words.
    fn insert(self) -> &'static str {
        match self {
            IndexStage::Dialogue => "INSERT INTO said (rowid, body) VALUES (?, ?)",
            IndexStage::Rest => "INSERT INTO done (rowid, body) VALUES (?, ?)",
        }
    }
}

/// How far a stage has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexProgress {
    /// Bytes of transcripts that were read.
    pub done: u64,
    /// Bytes that were to be read.
    pub all: u64,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexRunEnd {
    /// All that was found is indexed.
    UpToDate,
    /// Somebody else was writing; what there was to do is not all done.
    Busy,
    /// The caller did not want to go on.
    Stopped,
}

/// How much text goes into one transaction: large enough for SQLite to make few, large
/// pieces of it.
pub(super) const BATCH: u64 = 8 << 20;

/// And how many bytes of transcripts: those without text take time, too.
const READ: u64 = 64 << 20;

/// How long a transaction may take before others get their turn.
const TURN: Duration = Duration::from_millis(1500);

/// How much of a transcript is read at once.
const STEP: u64 = 2 << 20;

impl TextIndex {
    /// Indexes the dialogue of all that was found and forgets what is gone. Says now and
    /// then how far it is; goes on as long as `progress` wants.
    pub fn refresh_dialogue(
        &mut self,
        found: &FoundSessionFiles,
        progress: &mut dyn FnMut(IndexProgress) -> bool,
    ) -> Result<IndexRunEnd, CacheError> {
        let places = transcript_table::found_transcripts(found);
        let known = self.files()?;
        let gone = gone(&places, &known, found);
        if !gone.is_empty() && !self.forget(&gone)? {
            return Ok(IndexRunEnd::Busy);
        }
        self.advance(&places, &known, IndexStage::Dialogue, progress)
    }

    /// Indexes the rest in transactions of some megabytes, as long as `progress` wants.
    pub fn build_rest(
        &mut self,
        found: &FoundSessionFiles,
        progress: &mut dyn FnMut(IndexProgress) -> bool,
    ) -> Result<IndexRunEnd, CacheError> {
        let places = transcript_table::found_transcripts(found);
        let known = self.files()?;
        self.advance(&places, &known, IndexStage::Rest, progress)
    }

    fn advance(
        &mut self,
        places: &[FoundTranscript],
        known: &HashMap<PathBuf, IndexedTranscript>,
        stage: IndexStage,
        progress: &mut dyn FnMut(IndexProgress) -> bool,
    ) -> Result<IndexRunEnd, CacheError> {
        let none = IndexedTranscript::default();
        let mut behind: Vec<(&FoundTranscript, u64)> = Vec::new();
        for place in places {
            let file = known
                .get(&*path_bytes::path_without_tokens(&place.path))
                .unwrap_or(&none);
            let left = file.behind(stage, &place.stamp);
            if left > 0 {
                behind.push((place, left));
            }
        }
        let mut at = IndexProgress {
            all: behind.iter().map(|(_, left)| left).sum(),
            ..IndexProgress::default()
        };
        let mut next = 0;
        let mut wrote = false;
        while next < behind.len() {
            if !progress(at) {
                return Ok(IndexRunEnd::Stopped);
            }
            match self.batch(&behind[next..], stage)? {
                Some(batch) => {
                    next += batch.finished;
                    at.done = (at.done + batch.read).min(at.all);
                    wrote = true;
                }
                None => return Ok(IndexRunEnd::Busy),
            }
        }
        if wrote {
            db::checkpoint_wal(&self.opened.connection, &self.opened.path);
        }
        progress(at);
        Ok(IndexRunEnd::UpToDate)
    }

    /// One transaction over the first of these transcripts. `None`: somebody else was
    /// writing for too long.
    fn batch(
        &mut self,
        behind: &[(&FoundTranscript, u64)],
        stage: IndexStage,
    ) -> Result<Option<IndexBatch>, CacheError> {
        let mut batch = IndexBatch {
            most: self.batch,
            ..IndexBatch::default()
        };
        let names = &mut self.names;
        let path = &self.opened.path;
        let mut run = || {
            let work = self
                .opened
                .connection
                .transaction_with_behavior(TransactionBehavior::Immediate)?;
            let since = Instant::now();
            for (place, _) in behind {
                let mut feed = IndexUpdater {
                    db: &work,
                    names,
                    batch: &mut batch,
                    since,
                };
                if !feed.transcript(place, stage)? {
                    break;
                }
                batch.finished += 1;
                if batch.is_full(since) {
                    break;
                }
            }
            work.commit()
        };
        self.files = OnceCell::new();
        match run().map_err(|why| CacheError::sql(path, why)) {
            Ok(()) => Ok(Some(batch)),
            Err(error) => {
                self.names.clear();
                if error.is_busy() {
                    Ok(None)
                } else {
                    Err(error)
                }
            }
        }
    }

    fn forget(&mut self, gone: &[i64]) -> Result<bool, CacheError> {
        self.files = OnceCell::new();
        db::write(&mut self.opened.connection, &self.opened.path, |work| {
            transcript_table::forget(work, gone)
        })
    }
}

/// Transcripts that are no longer there. What could not be looked at is not gone.
fn gone(
    places: &[FoundTranscript],
    known: &HashMap<PathBuf, IndexedTranscript>,
    found: &FoundSessionFiles,
) -> Vec<i64> {
    let present: HashSet<_> = places
        .iter()
        .map(|place| path_bytes::path_without_tokens(&place.path))
        .collect();
    let unseen = |path: &PathBuf| {
        let hidden = |warning: &unspool_store::FileWarning| path.starts_with(&warning.path);
        !present.contains(path.as_path()) && !found.warnings.iter().any(hidden)
    };
    let gone = known.iter().filter(|(path, _)| unseen(path));
    gone.map(|(_, file)| file.id).collect()
}

/// What one transaction did.
#[derive(Debug, Default)]
struct IndexBatch {
    /// Transcripts that need no more.
    finished: usize,
    read: u64,
    text: u64,
    /// How much text it may hold.
    most: u64,
}

impl IndexBatch {
    fn is_full(&self, since: Instant) -> bool {
        self.text >= self.most || self.read >= READ || since.elapsed() >= TURN
    }
}

struct IndexUpdater<'a> {
    db: &'a Connection,
    names: &'a mut NameNumbers,
    batch: &'a mut IndexBatch,
    since: Instant,
}

impl IndexUpdater<'_> {
    /// Reads a transcript on; whether its end was reached.
    fn transcript(&mut self, place: &FoundTranscript, stage: IndexStage) -> rusqlite::Result<bool> {
        // Somebody else may have come further since the walk.
        let mut file = transcript_table::load(self.db, place)?
            .unwrap_or_else(|| IndexedTranscript::new(place));
        if file_mark::compare(file.mark(stage), &place.stamp) == MarkComparison::Same {
            return Ok(true);
        }
        // One that vanished or cannot be read is for the next walk to tell about.
        let Ok(mut news) = file_mark::open_unread(&place.path, Some(file.mark(stage))) else {
            return Ok(true);
        };
        if !news.goes_on() {
            let other = IndexStage::BOTH[1 - stage as usize];
            let kept = *file.mark(other);
            // The other stage may have begun with this very file.
            let holds = kept.offset() == 0
                || (file_mark::compare(&kept, &news.mark.stamp()) != MarkComparison::Other
                    && kept.holds(&news.file).unwrap_or(false));
            let fresh = file.mark(stage).offset() == 0;
            if file.id > 0 && !(fresh && holds) {
                transcript_table::clear(self.db, &[file.id])?;
                file = IndexedTranscript {
                    id: file.id,
                    ..IndexedTranscript::new(place)
                };
            }
        }
        if file.id == 0 {
            file.id = transcript_table::save(self.db, place, &file)?;
        }
        let finished = self.lines(&mut file, &mut news, stage)?;
        transcript_table::save(self.db, place, &file)?;
        Ok(finished)
    }

    fn lines(
        &mut self,
        file: &mut IndexedTranscript,
        news: &mut UnreadFile,
        stage: IndexStage,
    ) -> rusqlite::Result<bool> {
        let end = news.mark.offset();
        let mut at = news.start;
        let mut lines = news.lines;
        let mut time = news.mark.modified / 1_000_000_000;
        while at < end {
            if self.batch.is_full(self.since) {
                // The mark says that the file was as large as what was read of it.
                file.set_mark(stage, partial(news, at, lines));
                return Ok(false);
            }
            let part = FilePart {
                file: 0,
                start: at,
                end: end.min(at + STEP.min(self.batch.most)),
            };
            let mut failed = None;
            let read = part.read(&news.file, |stretch| {
                let (offset, bytes) = match stretch {
                    ScannedLines::Lines(offset, bytes) => (offset, bytes),
                    ScannedLines::Passed(_) => {
                        lines += 1;
                        return;
                    }
                };
                let mut from = 0;
                while let Some(line) = next_line(bytes, from) {
                    if failed.is_some() {
                        return;
                    }
                    lines += 1;
                    let here = LinePosition {
                        offset: offset + from as u64,
                        line: lines,
                    };
                    from += line.len() + 1;
                    if let Err(why) = self.line(file, line, here, stage, &mut time) {
                        failed = Some(why);
                    }
                }
            });
            if let Some(why) = failed {
                return Err(why);
            }
            // A file that cannot be read on is tried again when it changes.
            let Ok(read) = read else {
                break;
            };
            self.batch.read += read.saturating_sub(at);
            if read <= at {
                break;
            }
            at = read;
        }
        news.mark.cursor.lines = lines;
        file.set_mark(stage, news.mark);
        Ok(true)
    }

    fn line(
        &mut self,
        file: &mut IndexedTranscript,
        bytes: &[u8],
        here: LinePosition,
        stage: IndexStage,
        time: &mut i64,
    ) -> rusqlite::Result<()> {
        let mut line = indexed_line::read(bytes, stage, &mut file.calls);
        line.mask();
        let begun = file.title.is_some();
        if let Some(entry) = &line.entry {
            if let Some(Time(at)) = entry.at {
                *time = at / 1000;
            }
            if stage == IndexStage::Dialogue {
                self.facts(file, &line, begun)?;
            }
        }
        if line.is_foreign(begun) {
            return Ok(());
        }
        let branch = match line.entry.as_ref().and_then(|entry| entry.branch.as_ref()) {
            Some(branch) if !line.rows.is_empty() => Some(self.names.number(self.db, branch)?),
            _ => None,
        };
        for row in &line.rows {
            self.row(file, row, here, stage, *time, branch)?;
        }
        Ok(())
    }

    fn row(
        &mut self,
        file: &mut IndexedTranscript,
        row: &indexed_line::IndexedText,
        here: LinePosition,
        stage: IndexStage,
        time: i64,
        branch: Option<i64>,
    ) -> rusqlite::Result<()> {
        let tool = match &row.tool {
            Some(tool) => Some(self.names.number(self.db, tool)?),
            None => None,
        };
        let mut split = String::with_capacity(row.text.len() + row.text.len() / 8);
        word_splitting::split(&row.text, &mut split);
        self.db
            .prepare_cached(
                "INSERT INTO doc (file, offset, line, place, at, tool, branch)
                 VALUES (?, ?, ?, ?, ?, ?, ?)",
            )?
            .execute(params![
                file.id,
                here.offset.cast_signed(),
                here.line,
                row.place as i64,
                time,
                tool,
                branch
            ])?;
        let id = self.db.last_insert_rowid();
        self.db
            .prepare_cached(stage.insert())?
            .execute(params![id, split])?;
        let text = row.text.len() as u64;
        file.text[stage as usize] += text;
        self.batch.text += text;
        Ok(())
    }

    /// What a line says about its transcript.
    fn facts(
        &mut self,
        file: &mut IndexedTranscript,
        line: &IndexedLine,
        begun: bool,
    ) -> rusqlite::Result<()> {
        let Some(entry) = &line.entry else {
            return Ok(());
        };
        if let (true, Some(session)) = (file.session.is_empty(), &entry.session) {
            file.session = session.to_string();
        }
        // Only the first directory counts; a project's folder is no path.
        let unnamed = !file.project.contains(['/', '\\']);
        if let (true, Some(cwd)) = (unnamed, &entry.cwd) {
            file.project = indexed_line::masked(project::project_of(cwd)).into_owned();
        }
        if let Some((rank, title)) = line.title(begun) {
            let better = |(old, _): &(i64, String)| rank > 0 && rank >= *old;
            if file.title.as_ref().is_none_or(better) {
                file.title = Some((rank, title.into_owned()));
            }
        }
        if let Some(model) = &entry.message.model {
            let model = self.names.number(self.db, model)?;
            let sql = "INSERT OR IGNORE INTO used (file, model) VALUES (?, ?)";
            self.db.prepare_cached(sql)?.execute([file.id, model])?;
        }
        for path in &line.paths {
            let sql = "INSERT OR IGNORE INTO touched (file, path) VALUES (?, ?)";
            self.db
                .prepare_cached(sql)?
                .execute(params![file.id, path])?;
        }
        Ok(())
    }
}

/// Where a line stands.
#[derive(Clone, Copy)]
struct LinePosition {
    offset: u64,
    line: u32,
}

/// A mark in the middle of a file: as if the file ended there.
fn partial(news: &UnreadFile, at: u64, lines: u32) -> ReadMark {
    let identity = news.mark.cursor.identity;
    let prints = CursorBytes::read(&news.file, at).unwrap_or_default();
    ReadMark {
        cursor: prints.cursor(identity, at, lines),
        size: at,
        modified: 0,
    }
}

/// The line that begins here, without its newline.
fn next_line(bytes: &[u8], from: usize) -> Option<&[u8]> {
    let rest = bytes.get(from..).filter(|rest| !rest.is_empty())?;
    let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    Some(&rest[..end])
}
