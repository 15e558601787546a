//! All sessions as tables, for questions that nobody foresaw.
//!
//! Rows are made by the model's views, a family at a time: a session with its sub-agents. A
//! family whose files did not change costs nothing; one that changed is made again as a
//! whole and its rows are exchanged at once. Reading goes on while another process writes.

mod counted_messages;
mod rows;
pub mod sql_query;
pub mod sql_views;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use unspool_model::file_usage::FileUsage;
use unspool_model::price::Prices;
use unspool_model::secrets::SecretFinder;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::agents::StartingCalls;
use unspool_model::view::session_usage::{SessionFiles, usage_by_turn};
use unspool_model::view::turns::TurnRow;
use unspool_store::find::NonConversationFile;
use unspool_store::open::FileStamp;
use unspool_store::read::{LoadedSession, SessionReader};
use unspool_store::session_with_agents::{self, LoadedAgent, is_warm_up};
use unspool_store::{
    FileWarning, FoundSessionFiles, SessionFile, SubAgentFile, parallel, project, side_files,
};

use crate::db::{self, CacheNotice, OpenDatabase};
use crate::error::CacheError;
use crate::path_bytes;
use crate::usage_cache::UsageCache;
use counted_messages::price_prints;
use rows::TableRows;
use sql_views::{CALLS, FILES, MESSAGES, SESSIONS, SqlView, TURNS};

/// All sessions as tables.
#[derive(Debug)]
pub struct SessionTables {
    connection: Connection,
    path: PathBuf,
    /// Where it is kept, and which file it is; `None` if in memory only.
    kept: Option<(PathBuf, u64)>,
}

/// What bringing the tables up to date did.
#[derive(Debug, Default)]
pub struct TablesRefresh {
    /// How many sessions were read.
    pub read: usize,
    /// How many are no longer there.
    pub gone: usize,
    /// Files that could not be read.
    pub warnings: Vec<FileWarning>,
    /// Another process was writing, so that not all is up to date.
    pub held_up: bool,
    /// What to tell the person, once.
    pub notice: Option<CacheNotice>,
}

/// Reading some gigabytes takes less.
const PATIENCE: Duration = Duration::from_secs(60);

/// Called with the bytes that are done and the bytes there are.
pub type ByteProgressFn<'a> = &'a mut dyn FnMut(u64, u64);

impl SessionTables {
    /// Opens the tables in a folder of ours. They belong to one set of config folders: give
    /// each its own folder.
    pub fn open(folder: &Path) -> Result<(SessionTables, Option<CacheNotice>), CacheError> {
        let opened = db::open(folder, &sql_views::schema())?;
        Ok(SessionTables::of(folder, opened))
    }

    /// Tables that are gone with the process, where none can be kept.
    pub fn in_memory() -> Result<SessionTables, CacheError> {
        let path = PathBuf::from(":memory:");
        let make = || {
            let connection = Connection::open_in_memory()?;
            connection.execute_batch(sql_views::schema().sql)?;
            Ok(connection)
        };
        let connection = make().map_err(|why| CacheError::sql(&path, why))?;
        Ok(SessionTables {
            connection,
            path,
            kept: None,
        })
    }

    fn of(folder: &Path, opened: OpenDatabase) -> (SessionTables, Option<CacheNotice>) {
        let OpenDatabase {
            connection,
            notice,
            path,
            file,
        } = opened;
        let kept = Some((folder.to_owned(), file));
        let tables = SessionTables {
            connection,
            path,
            kept,
        };
        (tables, notice)
    }

    /// Brings all views up to date with what a walk found and what all files say about
    /// tokens, which also tells whose sub-agents are whose.
    pub fn refresh(
        &mut self,
        found: &FoundSessionFiles,
        spendings: &UsageCache,
        prices: &Prices,
        progress: ByteProgressFn<'_>,
    ) -> Result<TablesRefresh, CacheError> {
        let families = families(found, spendings, prices);
        let mut bring_up = |tables: &mut SessionTables| {
            let _turn = tables.turn(&families)?;
            let mut done = tables.bring_up(&families, progress)?;
            done.held_up |= !tables.count(spendings, prices)?;
            Ok(done)
        };
        match bring_up(self) {
            Err(error) if CacheError::is_damaged(&error) && self.kept.is_some() => {
                let notice = self.renew()?;
                let mut done = bring_up(self)?;
                done.notice = notice;
                Ok(done)
            }
            other => other,
        }
    }

    /// Waits for another process that reads the same files to be done: then nothing is left
    /// to read. Nobody waits who has nothing to write.
    fn turn(&self, families: &[IndexedSession<'_>]) -> Result<Option<File>, CacheError> {
        let known = known(&self.connection).map_err(|why| CacheError::sql(&self.path, why))?;
        let current = families.len() == known.len() && families.iter().all(|it| it.is_in(&known));
        if current || self.kept.is_none() {
            return Ok(None);
        }
        match db::hold(&self.path, ".turn", PATIENCE) {
            // What can be written meanwhile is.
            Err(error) if error.is_busy() => Ok(None),
            other => other,
        }
    }

    fn renew(&mut self) -> Result<Option<CacheNotice>, CacheError> {
        let Some((folder, file)) = self.kept.take() else {
            return Ok(None);
        };
        // Closed first: the new file must not meet the log of the old one.
        *self = SessionTables::in_memory()?;
        let opened = db::renew(&folder, &sql_views::schema(), file)?;
        let (tables, notice) = SessionTables::of(&folder, opened);
        *self = tables;
        Ok(notice)
    }

    fn bring_up(
        &mut self,
        families: &[IndexedSession<'_>],
        progress: ByteProgressFn<'_>,
    ) -> Result<TablesRefresh, CacheError> {
        let mut done = TablesRefresh::default();
        match self.write(families, progress, &mut done) {
            Ok(()) => {}
            Err(why) => {
                let _ = self.connection.execute_batch("ROLLBACK");
                match CacheError::sql(&self.path, why) {
                    error if error.is_busy() => done.held_up = true,
                    error => return Err(error),
                }
            }
        }
        db::checkpoint_wal(&self.connection, &self.path);
        Ok(done)
    }

    fn write(
        &self,
        families: &[IndexedSession<'_>],
        progress: ByteProgressFn<'_>,
        done: &mut TablesRefresh,
    ) -> rusqlite::Result<()> {
        let known = known(&self.connection)?;
        let mut pen = TablesWriter::new(&self.connection);
        let kept: Vec<_> = families
            .iter()
            .map(|family| path_bytes::path_without_tokens(family.path()))
            .collect();
        let there: HashSet<&[u8]> = kept
            .iter()
            .filter_map(|path| path_bytes::bytes(path))
            .collect();
        for (path, family) in &known {
            if !there.contains(path.as_slice()) {
                pen.remove(family.id)?;
                done.gone += 1;
            }
        }
        let news = families.iter().filter(|family| !family.is_in(&known));
        let news: Vec<&IndexedSession<'_>> = news.collect();
        fold_all(&news, progress, &mut pen, done)?;
        // Titles that other files give may have changed for those without one of their own.
        let titles = pen.titles()?;
        let stale = pen.untitled_before(titles.print)?;
        let again: Vec<&IndexedSession<'_>> = families
            .iter()
            .filter(|family| {
                let kept = path_bytes::path_without_tokens(family.path());
                path_bytes::bytes(&kept).is_some_and(|path| stale.contains(path))
            })
            .collect();
        fold_all(&again, &mut |_, _| (), &mut pen, done)?;
        pen.entitle(&titles)?;
        pen.commit()
    }
}

/// A family as the database knows it.
struct StoredSession {
    id: i64,
    print: i64,
}

fn known(connection: &Connection) -> rusqlite::Result<HashMap<Vec<u8>, StoredSession>> {
    let mut statement = connection.prepare("SELECT path, id, print FROM families")?;
    let rows = statement.query_map([], |row| {
        let known = StoredSession {
            id: row.get(1)?,
            print: row.get(2)?,
        };
        Ok((row.get(0)?, known))
    })?;
    rows.collect()
}

/// A session with its sub-agents, or a sub-agent whose session is gone.
struct IndexedSession<'a> {
    main: Option<&'a SessionFile>,
    agents: Vec<&'a SubAgentFile>,
    /// The client's own helpers, and what they used.
    helpers: Vec<(&'a NonConversationFile, &'a FileUsage)>,
    /// The id of the session.
    session: &'a str,
    prices: &'a Prices,
    /// Changes with the prices of its models.
    price_print: u64,
}

fn families<'a>(
    found: &'a FoundSessionFiles,
    spendings: &'a UsageCache,
    prices: &'a Prices,
) -> Vec<IndexedSession<'a>> {
    let prints = price_prints(spendings.ledger(), prices);
    let spent_by_path: HashMap<&Path, &'a FileUsage> = spendings
        .sources()
        .iter()
        .zip(spendings.files())
        .map(|(source, spent)| (&*source.path, spent))
        .collect();
    type HelperFileUsages<'a> = Vec<(&'a NonConversationFile, &'a FileUsage)>;
    let make = |main: Option<&'a SessionFile>,
                agents: Vec<&'a SubAgentFile>,
                helpers: HelperFileUsages<'a>,
                session: &'a str| {
        let mut family = IndexedSession {
            main,
            agents,
            helpers,
            session,
            prices,
            price_print: 0,
        };
        let spent = family
            .files()
            .filter_map(|(path, _)| spent_by_path.get(path));
        let names = spent.flat_map(|spent| spent.models.iter());
        // A set: the order in which models appear changes nothing.
        let names: BTreeSet<&str> = names.map(|(model, _)| model).collect();
        let prints: Vec<_> = names.iter().map(|name| prints.get(name)).collect();
        family.price_print = hash(&prints).cast_unsigned();
        family
    };
    let mut by_session: HashMap<(&Path, &str, &str), Vec<&SubAgentFile>> = HashMap::new();
    for agent in &found.agents {
        // A flat file's place does not say whose it is; its lines do.
        let session = agent.session.as_deref();
        let said = || spent_by_path.get(&*agent.path)?.origin.session.as_deref();
        let session = session.or_else(said);
        let key = (&*agent.config, &*agent.folder, session.unwrap_or_default());
        by_session.entry(key).or_default().push(agent);
    }
    let mut helpers: HashMap<(&Path, &str, &str), HelperFileUsages<'a>> = HashMap::new();
    for file in found.others.iter().filter(|file| file.helper.is_some()) {
        let Some(spent) = spent_by_path.get(&*file.path) else {
            continue;
        };
        let said = spent.origin.session.as_deref();
        let session = file.session.as_deref().or(said);
        let key = (&*file.config, &*file.folder, session.unwrap_or_default());
        helpers.entry(key).or_default().push((file, spent));
    }
    let mut all = Vec::with_capacity(found.sessions.len());
    for file in &found.sessions {
        let key = (&*file.config, &*file.folder, &*file.id);
        let agents = by_session.remove(&key).unwrap_or_default();
        let helpers = helpers.remove(&key).unwrap_or_default();
        all.push(make(Some(file), agents, helpers, &file.id));
    }
    for ((_, _, session), orphans) in by_session {
        let orphans = orphans.into_iter();
        all.extend(orphans.map(|agent| make(None, vec![agent], Vec::new(), session)));
    }
    all
}

impl IndexedSession<'_> {
    /// What it is known by: its first file.
    fn path(&self) -> &Path {
        let first = self.agents.first().map(|agent| agent.path.as_path());
        let main = self.main.map(|file| file.path.as_path());
        main.or(first).unwrap_or(Path::new(""))
    }

    fn bytes(&self) -> u64 {
        let main = self.main.map_or(0, |file| file.bytes);
        main + self.agents.iter().map(|agent| agent.bytes).sum::<u64>()
    }

    fn files(&self) -> impl Iterator<Item = (&Path, FileStamp)> {
        let main = self.main.iter().map(|file| (&*file.path, file.stamp));
        let agents = self.agents.iter();
        let helpers = self.helpers.iter();
        main.chain(agents.map(|agent| (&*agent.path, agent.stamp)))
            .chain(helpers.map(|(file, _)| (&*file.path, file.stamp)))
    }

    /// Whether it is known as it is.
    fn is_in(&self, known: &HashMap<Vec<u8>, StoredSession>) -> bool {
        let kept = path_bytes::path_without_tokens(self.path());
        let known = path_bytes::bytes(&kept).and_then(|path| known.get(path));
        known.is_some_and(|known| known.print == self.print())
    }

    /// Changes when one of its files or prices does.
    fn print(&self) -> i64 {
        let mut hasher = DefaultHasher::new();
        self.price_print.hash(&mut hasher);
        for (path, stamp) in self.files() {
            path.as_os_str().hash(&mut hasher);
            (stamp.identity, stamp.size, stamp.modified).hash(&mut hasher);
        }
        hasher.finish().cast_signed()
    }

    fn fold(&self) -> FoldedSession {
        let mut folded = FoldedSession::default();
        let main = self
            .main
            .and_then(|file| folded.read(&file.path, TranscriptRole::Main));
        folded.lost = self.main.is_some() && main.is_none();
        let read = self.agents.iter().filter_map(|agent| {
            Some(LoadedAgent {
                id: agent.id.clone(),
                loaded: folded.read(&agent.path, TranscriptRole::Agent)?,
                file: agent.path.clone(),
                meta: side_files::agent_meta(&agent.path),
                run: agent.run.clone(),
            })
        });
        let read: Vec<LoadedAgent> = read.collect();
        let apart: Vec<bool> = read
            .iter()
            .map(|agent| {
                let agents = read.iter().map(|one| &one.loaded.session);
                let all = main.iter().map(|main| &main.session).chain(agents);
                is_warm_up(&agent.file, &agent.loaded.session, all)
            })
            .collect();
        let (mut warm_ups, mut agents) = (Vec::new(), Vec::new());
        for (one, apart) in read.into_iter().zip(apart) {
            match apart {
                true => warm_ups.push(one),
                false => agents.push(one),
            }
        }
        let warm_ups = warm_ups.iter();
        let warm_ups: Vec<FileUsage> = warm_ups
            .map(|agent| FileUsage::of(&agent.loaded.session))
            .collect();
        folded.session = self.session.to_owned();
        let sessions: Vec<&Session> = agents.iter().map(|one| &one.loaded.session).collect();
        if let (Some(file), Some(main)) = (self.main, &main) {
            if !main.session.is_used() {
                return folded;
            }
            folded.project = project::project(&main.session, &file.folder).to_owned();
            folded.titles(&main.session);
            let helpers = self.helpers.iter().map(|(_, spent)| *spent);
            let helpers: Vec<&FileUsage> = helpers.chain(&warm_ups).collect();
            let files = SessionFiles {
                session: &main.session,
                agents: &sessions,
                helpers: &helpers,
            };
            folded.rows.sessions = rows::session(file, &files, self.prices);
            let used = |turns: &[TurnRow]| {
                session_with_agents::used_by_turn(
                    &files,
                    main,
                    &agents,
                    &side_files::runs(file),
                    turns,
                    self.prices,
                )
            };
            rows::file(&mut folded.rows, main, None, Some(&used));
        } else if let (Some(file), Some(agent)) = (self.agents.first(), agents.first()) {
            folded.project = project::project(sessions[0], &file.folder).to_owned();
            let used = |turns: &[TurnRow]| {
                let files = SessionFiles::alone(sessions[0]);
                usage_by_turn(&files, &StartingCalls::default(), turns, self.prices)
            };
            rows::file(
                &mut folded.rows,
                &agent.loaded,
                Some(&agent.id),
                Some(&used),
            );
            return folded;
        }
        for agent in &agents {
            rows::file(&mut folded.rows, &agent.loaded, Some(&agent.id), None);
        }
        folded
    }
}

/// What reading a family gives.
#[derive(Default)]
struct FoldedSession {
    rows: TableRows,
    session: String,
    project: String,
    /// Its own file could not be read: what is known of it stays.
    lost: bool,
    /// Titles that its lines give to lines of other files.
    given: Vec<(i64, String)>,
    /// Its lines, if it has no title of its own.
    untitled: Option<Vec<i64>>,
    warnings: Vec<FileWarning>,
}

impl FoldedSession {
    fn read(&mut self, path: &Path, role: TranscriptRole) -> Option<LoadedSession> {
        let reader = SessionReader {
            threads: 1,
            ..SessionReader::default()
        };
        let read = reader.read(path, role);
        read.map_err(|error| self.warnings.push(error.warning(path)))
            .ok()
    }

    fn titles(&mut self, session: &Session) {
        let given = session.foreign_titles();
        self.given = given
            .map(|(leaf, title)| (hash(leaf), rows::short(title)))
            .collect();
        let untitled = session.given_title().is_none();
        self.untitled = untitled.then(|| session.ids().map(hash).collect());
    }
}

fn hash(what: &impl Hash) -> i64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish().cast_signed()
}

/// Reads families on all cores, largest first, and writes them down as they come.
fn fold_all(
    families: &[&IndexedSession<'_>],
    progress: ByteProgressFn<'_>,
    pen: &mut TablesWriter<'_>,
    done: &mut TablesRefresh,
) -> rusqlite::Result<()> {
    let mut order: Vec<usize> = (0..families.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(families[at].bytes()));
    let total: u64 = families.iter().map(|family| family.bytes()).sum();
    let next = AtomicUsize::new(0);
    let workers = parallel::threads().min(families.len());
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel(workers);
        for _ in 0..workers {
            let (send, order, next) = (send.clone(), &order, &next);
            scope.spawn(move || {
                while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if send.send((at, families[at].fold())).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let mut bytes = 0;
        for (at, mut folded) in receive {
            let family = families[at];
            done.warnings.append(&mut folded.warnings);
            pen.put(family, folded)?;
            done.read += 1;
            bytes += family.bytes();
            progress(bytes, total);
        }
        Ok(())
    })
}

/// Writes families down, some megabytes of transcripts at a time, so that what was done
/// stays done.
struct TablesWriter<'a> {
    connection: &'a Connection,
    open: bool,
    bytes: u64,
    /// Families without a title of their own, and their lines.
    untitled: Vec<(i64, Vec<i64>)>,
}

/// How much is written at once.
const BATCH: u64 = 256 << 20;

/// The titles that files give to lines of others.
struct CrossFileTitles {
    by_leaf: HashMap<i64, String>,
    print: i64,
}

impl<'a> TablesWriter<'a> {
    fn new(connection: &'a Connection) -> TablesWriter<'a> {
        TablesWriter {
            connection,
            open: false,
            bytes: 0,
            untitled: Vec::new(),
        }
    }

    fn begin(&mut self) -> rusqlite::Result<()> {
        if !self.open {
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
            self.open = true;
        }
        Ok(())
    }

    fn commit(&mut self) -> rusqlite::Result<()> {
        if self.open {
            self.connection.execute_batch("COMMIT")?;
            self.open = false;
            self.bytes = 0;
        }
        Ok(())
    }

    fn run(&self, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<usize> {
        self.connection.prepare_cached(sql)?.execute(values)
    }

    fn remove(&mut self, family: i64) -> rusqlite::Result<()> {
        self.begin()?;
        self.clear(family)?;
        self.run("DELETE FROM families WHERE id = ?", [family])?;
        Ok(())
    }

    fn clear(&self, family: i64) -> rusqlite::Result<()> {
        for view in [&SESSIONS, &TURNS, &MESSAGES, &CALLS, &FILES] {
            let sql = format!("DELETE FROM {}_rows WHERE family = ?", view.name);
            self.run(&sql, [family])?;
        }
        self.run("DELETE FROM given WHERE family = ?", [family])?;
        Ok(())
    }

    fn put(&mut self, family: &IndexedSession<'_>, folded: FoldedSession) -> rusqlite::Result<()> {
        let kept = path_bytes::path_without_tokens(family.path());
        let Some(path) = path_bytes::bytes(&kept).filter(|_| !folded.lost) else {
            return Ok(());
        };
        self.begin()?;
        // One with a file that could not be read is tried again.
        let print = family.print() ^ i64::from(!folded.warnings.is_empty());
        let id = self.family(path)?;
        self.clear(id)?;
        // Until its title is settled, it counts as made with others.
        let titles = folded.untitled.as_ref().map(|_| 0);
        let sql = "INSERT OR REPLACE INTO families VALUES (?, ?, ?, ?, ?, ?)";
        let FoldedSession {
            session, project, ..
        } = &folded;
        let project = SecretFinder::forms().mask(project);
        self.run(sql, params![id, path, print, titles, session, project])?;
        let TableRows {
            sessions,
            turns,
            messages,
            calls,
            files,
        } = folded.rows;
        for (view, cells) in [
            (&SESSIONS, sessions),
            (&TURNS, turns),
            (&MESSAGES, messages),
            (&CALLS, calls),
            (&FILES, files),
        ] {
            insert(self.connection, view, id, &cells)?;
        }
        for (leaf, title) in folded.given {
            self.run(
                "INSERT INTO given VALUES (?, ?, ?)",
                params![id, leaf, SecretFinder::forms().mask(&title)],
            )?;
        }
        self.untitled
            .extend(folded.untitled.map(|lines| (id, lines)));
        self.bytes += family.bytes();
        if self.bytes > BATCH {
            self.commit()?;
        }
        Ok(())
    }

    /// The number of a family, or the next free one.
    fn family(&self, path: &[u8]) -> rusqlite::Result<i64> {
        let sql = "SELECT id FROM families WHERE path = ?";
        let mut statement = self.connection.prepare_cached(sql)?;
        let known = statement.query_row([path], |row| row.get(0)).optional()?;
        let next = "SELECT coalesce(max(id), 0) + 1 FROM families";
        match known {
            Some(id) => Ok(id),
            None => self.connection.query_row(next, [], |row| row.get(0)),
        }
    }

    fn titles(&self) -> rusqlite::Result<CrossFileTitles> {
        let sql = "SELECT leaf, title FROM given ORDER BY leaf, title";
        let mut statement = self.connection.prepare(sql)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let all: Vec<(i64, String)> = rows.collect::<rusqlite::Result<_>>()?;
        Ok(CrossFileTitles {
            print: hash(&all),
            by_leaf: all.into_iter().collect(),
        })
    }

    /// Families whose title was made when other files gave other titles.
    fn untitled_before(&self, titles: i64) -> rusqlite::Result<HashSet<Vec<u8>>> {
        let just_made: HashSet<i64> = self.untitled.iter().map(|(family, _)| *family).collect();
        let sql = "SELECT id, path FROM families WHERE titles <> ?";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([titles])?;
        let mut stale = HashSet::new();
        while let Some(row) = rows.next()? {
            if !just_made.contains(&row.get(0)?) {
                stale.insert(row.get(1)?);
            }
        }
        Ok(stale)
    }

    /// Gives the titles of other files to those without one of their own.
    fn entitle(&mut self, titles: &CrossFileTitles) -> rusqlite::Result<()> {
        for (family, mut lines) in std::mem::take(&mut self.untitled) {
            self.begin()?;
            let sql = "UPDATE families SET titles = ? WHERE id = ?";
            self.run(sql, [titles.print, family])?;
            if titles.by_leaf.is_empty() {
                continue;
            }
            // The order of lines in a session is that of a hash map.
            lines.sort_unstable();
            if let Some(title) = lines.iter().find_map(|line| titles.by_leaf.get(line)) {
                let sql = "UPDATE sessions_rows SET title = ? WHERE family = ?";
                self.run(sql, params![title, family])?;
            }
        }
        Ok(())
    }
}

fn insert(
    connection: &Connection,
    view: &SqlView,
    family: i64,
    cells: &[Value],
) -> rusqlite::Result<()> {
    let width = view.stored().count();
    let mut statement = connection.prepare_cached(&view.insert())?;
    for (place, row) in (0..).zip(cells.chunks_exact(width)) {
        let start = [Value::Integer(family), Value::Integer(place)];
        // Names of directories, branches, models and tools may hold a token, too.
        let row = row.iter().map(|cell| match cell {
            Value::Text(text) => match SecretFinder::forms().mask(text) {
                Cow::Owned(masked) => Cow::Owned(Value::Text(masked)),
                Cow::Borrowed(_) => Cow::Borrowed(cell),
            },
            _ => Cow::Borrowed(cell),
        });
        let row: Vec<Cow<'_, Value>> = row.collect();
        let cells = row.iter().map(|cell| &**cell);
        statement.execute(params_from_iter(start.iter().chain(cells)))?;
    }
    Ok(())
}
