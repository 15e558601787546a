//! Finds the best rows for a query, and reads again what they say.
//!
//! The score is BM25, more for what people remember (titles, prompts) than for what tools
//! printed, and a little more for what is recent. A session shows its best rows only, so
//! that one does not fill the page.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params_from_iter};
use unspool_model::entry::Entry;
use unspool_model::text::TextKind;
use unspool_model::time::Time;
use unspool_store::{open, parallel, project};

use super::indexed_line::{self, UnansweredCalls};
use super::ranked_query::RankedQuery;
use super::snippet::{self, RankedSnippet};
use super::transcript_table::IndexedTranscript;
use super::{IndexStage, TextIndex};
use crate::error::CacheError;

/// A question to the index.
#[derive(Clone, Debug)]
pub struct RankedSearch<'a> {
    /// What to look for.
    pub query: &'a RankedQuery,
    /// Not older than this.
    pub since: Option<Time>,
    /// Older than this.
    pub until: Option<Time>,
    /// Only texts of these kinds; all if there are none.
    pub places: &'a [TextKind],
    /// The time, for what is recent.
    pub now: Time,
    /// How many hits at most.
    pub limit: usize,
    /// How many hits of one session at most.
    pub per_session: usize,
    /// How many characters of each hit to show.
    pub width: usize,
}

/// A line that was found.
#[derive(Clone, Debug)]
pub struct RankedHit {
    /// The session.
    pub session: String,
    /// The sub-agent, if it is in the file of one.
    pub agent: Option<String>,
    /// The transcript.
    pub path: PathBuf,
    /// The number of the line.
    pub line: u32,
    /// The id of the line.
    pub uuid: Option<String>,
    /// What was found.
    pub place: TextKind,
    /// When it was written.
    pub at: Option<Time>,
    /// The part of the text that shows it.
    pub snippet: RankedSnippet,
    /// How well it fits; larger is better.
    pub score: f64,
    /// The title of the session, or what it was first asked.
    pub title: Option<String>,
    /// The directory of the project.
    pub project: String,
}

/// How many of the newest rows with all words are compared, of dialogue and of the rest.
/// Words that are in more rows than that say little, and the newest of them are wanted.
const COMPARED: [u32; 2] = [2_000, 1_000];

/// A row that was found, before it is read again.
#[derive(Clone, Copy, Debug)]
struct RankedRow {
    file: i64,
    offset: u64,
    line: u32,
    place: TextKind,
    /// In seconds since 1970.
    at: i64,
    score: f64,
    stage: IndexStage,
}

impl TextIndex {
    /// The best hits, those of one session together, the best session first. With filters
    /// only, the newest.
    pub fn query(&self, ask: &RankedSearch<'_>) -> Result<Vec<RankedHit>, CacheError> {
        let known = self.files()?;
        let mut files: HashMap<i64, (&PathBuf, &IndexedTranscript)> = HashMap::new();
        for (path, file) in known.iter() {
            files.insert(file.id, (path, file));
        }
        let Some(filter) = self.sql(|db| filter(db, ask, &files))? else {
            return Ok(Vec::new());
        };
        let rows = match ask.query.expression() {
            Some(words) => self.sql(|db| matching(db, &words, &filter, ask.now))?,
            None => self.sql(|db| newest(db, ask, &filter))?,
        };
        Ok(read(ask, group(ask, rows, &files), &files))
    }
}

/// A condition on rows, in SQL. Only numbers of ours are in it.
#[derive(Debug, Default)]
struct SqlFilter(String);

impl SqlFilter {
    fn any(&mut self, column: &str, ids: &[i64]) {
        let list: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let _ = write!(self.0, " AND doc.{column} IN ({})", list.join(","));
    }
}

/// The condition that the filters of a query are; `None` if nothing can fulfil it.
fn filter(
    db: &Connection,
    ask: &RankedSearch<'_>,
    files: &HashMap<i64, (&PathBuf, &IndexedTranscript)>,
) -> rusqlite::Result<Option<SqlFilter>> {
    let query = ask.query;
    let mut filter = SqlFilter::default();
    if let Some(Time(since)) = ask.since {
        let _ = write!(filter.0, " AND doc.at >= {}", since.div_euclid(1000));
    }
    if let Some(Time(until)) = ask.until {
        let _ = write!(filter.0, " AND doc.at < {}", until.div_euclid(1000));
    }
    if !ask.places.is_empty() {
        let places: Vec<i64> = ask.places.iter().map(|place| *place as i64).collect();
        filter.any("place", &places);
    }
    for (column, wanted) in [("tool", &query.tools), ("branch", &query.branches)] {
        if !wanted.is_empty() {
            let ids = names(db, wanted)?;
            if ids.is_empty() {
                return Ok(None);
            }
            filter.any(column, &ids);
        }
    }
    let sessions = sessions(db, query, files)?;
    let chosen = files.values().filter(|(_, file)| {
        let fits = |wanted: &String| project::project_matches(&file.project, wanted);
        (query.projects.is_empty() || query.projects.iter().any(fits))
            && sessions
                .iter()
                .all(|sessions| sessions.contains(file.session.as_str()))
    });
    let chosen: Vec<i64> = chosen.map(|(_, file)| file.id).collect();
    if chosen.is_empty() {
        return Ok(None);
    }
    if chosen.len() < files.len() {
        filter.any("file", &chosen);
    }
    Ok(Some(filter))
}

/// The numbers of all names that one of these is a part of.
fn names(db: &Connection, wanted: &[String]) -> rusqlite::Result<Vec<i64>> {
    let mut statement = db.prepare_cached("SELECT id, text FROM name")?;
    let mut rows = statement.query([])?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        let text = row.get_ref(1)?.as_str().unwrap_or_default();
        if wanted.iter().any(|wanted| contains(text, wanted)) {
            ids.push(row.get(0)?);
        }
    }
    Ok(ids)
}

/// For each filter that is about whole sessions, those that pass.
fn sessions<'a>(
    db: &Connection,
    query: &RankedQuery,
    files: &HashMap<i64, (&PathBuf, &'a IndexedTranscript)>,
) -> rusqlite::Result<Vec<HashSet<&'a str>>> {
    let mut all = Vec::new();
    let mut add = |sql: &str, wanted: &[String]| -> rusqlite::Result<()> {
        let mut statement = db.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        let mut passing = HashSet::new();
        while let Some(row) = rows.next()? {
            let text = row.get_ref(1)?.as_str().unwrap_or_default();
            if wanted.iter().any(|wanted| contains(text, wanted))
                && let Some((_, file)) = files.get(&row.get(0)?)
            {
                passing.insert(file.session.as_str());
            }
        }
        all.push(passing);
        Ok(())
    };
    if !query.files.is_empty() {
        add("SELECT file, path FROM touched", &query.files)?;
    }
    if !query.models.is_empty() {
        let sql = "SELECT file, text FROM used JOIN name ON name.id = model";
        add(sql, &query.models)?;
    }
    Ok(all)
}

fn contains(text: &str, wanted: &str) -> bool {
    text.to_lowercase().contains(&wanted.to_lowercase())
}

/// The rows that hold all words, with their scores.
fn matching(
    db: &Connection,
    words: &str,
    filter: &SqlFilter,
    now: Time,
) -> rusqlite::Result<Vec<RankedRow>> {
    let mut all = Vec::new();
    for (stage, table) in [(IndexStage::Dialogue, "said"), (IndexStage::Rest, "done")] {
        let sql = format!(
            "SELECT doc.file, doc.offset, doc.line, doc.place, doc.at, bm25({table})
             FROM {table} CROSS JOIN doc ON doc.id = {table}.rowid
             WHERE {table} MATCH ?{} ORDER BY {table}.rowid DESC LIMIT {}",
            filter.0, COMPARED[stage as usize]
        );
        let mut rows = rows(db, &sql, &[words], stage)?;
        for row in &mut rows {
            row.score = score(row, now);
        }
        all.append(&mut rows);
    }
    Ok(all)
}

/// How well a row fits, from what SQLite says, which is less the better.
fn score(row: &RankedRow, now: Time) -> f64 {
    let worth = match row.place {
        TextKind::Title => 3.0,
        TextKind::Prompt => 2.5,
        TextKind::Reply => 1.6,
        TextKind::Tool => 1.1,
        TextKind::Thinking => 1.0,
        TextKind::Result | TextKind::Progress | TextKind::Other => 0.7,
    };
    let days = (now.0 / 1000 - row.at).max(0) as f64 / 86_400.0;
    // Half as much again for today, a quarter for last month.
    let recent = 1.0 + 0.5 / (1.0 + days / 30.0);
    -row.score * worth * recent
}

/// The newest rows that pass the filters: prompts, or calls if those are asked for.
fn newest(
    db: &Connection,
    ask: &RankedSearch<'_>,
    filter: &SqlFilter,
) -> rusqlite::Result<Vec<RankedRow>> {
    let about_calls = !ask.query.tools.is_empty() || !ask.query.files.is_empty();
    let place = if about_calls {
        TextKind::Tool
    } else {
        TextKind::Prompt
    };
    let place = if ask.places.is_empty() {
        format!(" AND doc.place = {}", place as i64)
    } else {
        String::new()
    };
    let sql = format!(
        "SELECT file, offset, line, place, at, 0.0 FROM doc WHERE 1 {}{place}
         ORDER BY at DESC, id DESC LIMIT {}",
        filter.0, 3_000
    );
    let mut rows = rows(db, &sql, &[], IndexStage::Dialogue)?;
    for row in &mut rows {
        if matches!(row.place, TextKind::Thinking | TextKind::Result) {
            row.stage = IndexStage::Rest;
        }
        // Newer is better, as a number that is read like a score: days before now, negated.
        row.score = (row.at - ask.now.0 / 1000) as f64 / 86_400.0;
    }
    Ok(rows)
}

fn rows(
    db: &Connection,
    sql: &str,
    words: &[&str],
    stage: IndexStage,
) -> rusqlite::Result<Vec<RankedRow>> {
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query(params_from_iter(words))?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let place = usize::try_from(row.get::<_, i64>(3)?).unwrap_or_default();
        all.push(RankedRow {
            file: row.get(0)?,
            offset: row.get::<_, i64>(1)?.cast_unsigned(),
            line: row.get(2)?,
            place: TextKind::ALL.get(place).copied().unwrap_or(TextKind::Other),
            at: row.get(4)?,
            score: row.get(5)?,
            stage,
        });
    }
    Ok(all)
}

/// The order in which rows are shown: the best of each session together. A line counts
/// once, however many of its rows were found.
fn group(
    ask: &RankedSearch<'_>,
    mut rows: Vec<RankedRow>,
    files: &HashMap<i64, (&PathBuf, &IndexedTranscript)>,
) -> Vec<RankedRow> {
    rows.sort_by(|a, b| {
        let newer = || (b.at, b.file, b.offset).cmp(&(a.at, a.file, a.offset));
        b.score.total_cmp(&a.score).then_with(newer)
    });
    let mut seen = HashSet::new();
    let mut place: HashMap<&str, usize> = HashMap::new();
    let mut sessions: Vec<Vec<RankedRow>> = Vec::new();
    // More sessions than hits are wanted, because some rows may turn out to be copies.
    let enough = ask.limit.saturating_mul(3).saturating_add(20);
    for row in rows {
        let Some((_, file)) = files.get(&row.file) else {
            continue;
        };
        if !seen.insert((row.file, row.offset)) {
            continue;
        }
        let at = *place.entry(&file.session).or_insert_with(|| {
            sessions.push(Vec::new());
            sessions.len() - 1
        });
        if at < enough && sessions[at].len() < SPARE * ask.per_session {
            sessions[at].push(row);
        }
    }
    sessions.into_iter().flatten().collect()
}

/// For each hit of a session that is shown, some more are kept in case it is a copy.
const SPARE: usize = 4;

/// Reads the lines again, until there are enough hits: as many at once as may be shown.
fn read(
    ask: &RankedSearch<'_>,
    mut rows: Vec<RankedRow>,
    files: &HashMap<i64, (&PathBuf, &IndexedTranscript)>,
) -> Vec<RankedHit> {
    let terms = ask.query.marks();
    let mut hits: Vec<RankedHit> = Vec::new();
    let mut shown: HashMap<&str, usize> = HashMap::new();
    let mut seen: HashSet<(String, TextKind)> = HashSet::new();
    while hits.len() < ask.limit {
        // What cannot be shown now may be later, if one of those before it is a copy.
        let (mut now, mut later) = (Vec::new(), Vec::new());
        let mut planned = shown.clone();
        for row in rows {
            let Some(&(path, file)) = files.get(&row.file) else {
                continue;
            };
            let count = planned.entry(&file.session).or_default();
            if hits.len() + now.len() < ask.limit && *count < ask.per_session {
                *count += 1;
                now.push((row, path, file));
            } else if shown.get(file.session.as_str()) < Some(&ask.per_session) {
                later.push(row);
            }
        }
        if now.is_empty() {
            break;
        }
        let job = |(row, path, file): &(RankedRow, &PathBuf, &IndexedTranscript)| {
            hit(ask, row, path, file, &terms)
        };
        let read = parallel::map(&now, parallel::threads(), |_| 0, job);
        for ((_, _, file), hit) in now.iter().zip(read) {
            // Resumed and forked sessions begin with copies of the same lines.
            let new = |hit: &RankedHit| match &hit.uuid {
                Some(uuid) => seen.insert((uuid.clone(), hit.place)),
                None => true,
            };
            if let Some(hit) = hit.filter(new) {
                *shown.entry(&file.session).or_default() += 1;
                hits.push(hit);
            }
        }
        rows = later;
    }
    together(hits)
}

/// Hits of one session one after the other, in the order of the first of each.
fn together(mut hits: Vec<RankedHit>) -> Vec<RankedHit> {
    let mut first: HashMap<String, usize> = HashMap::new();
    for (at, hit) in hits.iter().enumerate() {
        first.entry(hit.session.clone()).or_insert(at);
    }
    hits.sort_by_key(|hit| first.get(&hit.session).copied());
    hits
}

fn hit(
    ask: &RankedSearch<'_>,
    row: &RankedRow,
    path: &Path,
    file: &IndexedTranscript,
    terms: &[Vec<String>],
) -> Option<RankedHit> {
    let bytes = line_at(path, row.offset)?;
    let mut read = indexed_line::read(&bytes, row.stage, &mut UnansweredCalls::default());
    if ask.query.expression().is_none() && !touches(&read.paths, &ask.query.files) {
        return None;
    }
    let texts = read.rows.iter().filter(|text| text.place == row.place);
    // Several calls on one line are several rows; the one with most of the words is meant.
    let snippet = texts
        .map(|text| snippet::cut_masked(&text.text, terms, ask.width, indexed_line::masked))
        .max_by_key(|snippet| snippet.marks.len())?;
    let entry: Option<Entry> = read.entry.take();
    let said = |entry: &Entry| (entry.uuid.as_ref().map(ToString::to_string), entry.at);
    let (uuid, at) = entry.as_ref().map(said).unwrap_or_default();
    Some(RankedHit {
        session: file.session.clone(),
        agent: file.agent.clone(),
        path: path.to_owned(),
        line: row.line,
        uuid,
        place: row.place,
        at,
        snippet,
        score: row.score,
        title: file.title.as_ref().map(|(_, title)| title.clone()),
        project: file.project.clone(),
    })
}

fn touches(paths: &[String], wanted: &[String]) -> bool {
    wanted.is_empty()
        || paths
            .iter()
            .any(|path| wanted.iter().any(|wanted| contains(path, wanted)))
}

/// The line that begins at an offset; `None` if none does any more.
fn line_at(path: &Path, offset: u64) -> Option<Vec<u8>> {
    let (file, metadata) = open::open(path).ok()?;
    let left = usize::try_from(metadata.len().checked_sub(offset)?).ok()?;
    // One byte more in front: it must be the end of the line before.
    let before = usize::from(offset > 0);
    let start = offset - before as u64;
    let mut bytes = Vec::new();
    let mut want = 16 << 10;
    loop {
        let have = bytes.len();
        bytes.resize(want.min(left + before), 0);
        let read = open::read_at(&file, &mut bytes[have..], start + have as u64).ok()?;
        bytes.truncate(have + read);
        if before == 1 && bytes.first() != Some(&b'\n') {
            return None;
        }
        let from = have.max(before);
        if let Some(end) = memchr::memchr(b'\n', bytes.get(from..)?) {
            bytes.truncate(from + end);
            bytes.drain(..before);
            return Some(bytes);
        }
        if read == 0 || bytes.len() >= left + before {
            return None;
        }
        want *= 4;
    }
}
