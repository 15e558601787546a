//! All sessions as tables, for questions that nobody foresaw.
//!
//! Rows are made by the model's views, a family at a time: a session with its sub-agents. A
//! family whose files did not change costs nothing; one that changed is made again as a
//! whole and its rows are exchanged at once. Reading goes on while another process writes.

mod counted;
pub mod query;
mod rows;
pub mod views;

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
use unspool_model::price::Prices;
use unspool_model::secrets::Secrets;
use unspool_model::session::{Role, Session};
use unspool_model::spent::Spending;
use unspool_model::view::agents::StartingCalls;
use unspool_model::view::session_usage::{SessionFiles, usage_by_turn};
use unspool_model::view::turns::TurnRow;
use unspool_store::family::{self, Agent, is_warm_up};
use unspool_store::find::OtherFile;
use unspool_store::open::Stamp;
use unspool_store::read::{Loaded, Reader};
use unspool_store::{AgentFile, Found, SessionFile, Warning, each, project, side};

use crate::db::{self, Notice, Opened};
use crate::error::Error;
use crate::path;
use crate::spending::Spendings;
use counted::price_prints;
use rows::Rows;
use views::{CALLS, FILES, MESSAGES, SESSIONS, TURNS, View};

/// All sessions as tables.
#[derive(Debug)]
pub struct Tables {
    connection: Connection,
    path: PathBuf,
    /// Where it is kept, and which file it is; `None` if in memory only.
    kept: Option<(PathBuf, u64)>,
}

/// What bringing the tables up to date did.
#[derive(Debug, Default)]
pub struct Refreshed {
    /// How many sessions were read.
    pub read: usize,
    /// How many are no longer there.
    pub gone: usize,
    /// Files that could not be read.
    pub warnings: Vec<Warning>,
    /// Another process was writing, so that not all is up to date.
    pub held_up: bool,
    /// What to tell the person, once.
    pub notice: Option<Notice>,
}

/// Reading some gigabytes takes less.
const PATIENCE: Duration = Duration::from_secs(60);

/// Called with the bytes that are done and the bytes there are.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

impl Tables {
    /// Opens the tables in a folder of ours. They belong to one set of config folders: give
    /// each its own folder.
    pub fn open(folder: &Path) -> Result<(Tables, Option<Notice>), Error> {
        let opened = db::open(folder, &views::schema())?;
        Ok(Tables::of(folder, opened))
    }

    /// Tables that are gone with the process, where none can be kept.
    pub fn in_memory() -> Result<Tables, Error> {
        let path = PathBuf::from(":memory:");
        let make = || {
            let connection = Connection::open_in_memory()?;
            connection.execute_batch(views::schema().sql)?;
            Ok(connection)
        };
        let connection = make().map_err(|why| Error::sql(&path, why))?;
        Ok(Tables {
            connection,
            path,
            kept: None,
        })
    }

    fn of(folder: &Path, opened: Opened) -> (Tables, Option<Notice>) {
        let Opened {
            connection,
            notice,
            path,
            file,
        } = opened;
        let kept = Some((folder.to_owned(), file));
        let tables = Tables {
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
        found: &Found,
        spendings: &Spendings,
        prices: &Prices,
        progress: Progress<'_>,
    ) -> Result<Refreshed, Error> {
        let families = families(found, spendings, prices);
        let mut bring_up = |tables: &mut Tables| {
            let _turn = tables.turn(&families)?;
            let mut done = tables.bring_up(&families, progress)?;
            done.held_up |= !tables.count(spendings, prices)?;
            Ok(done)
        };
        match bring_up(self) {
            Err(error) if Error::is_damaged(&error) && self.kept.is_some() => {
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
    fn turn(&self, families: &[Family<'_>]) -> Result<Option<File>, Error> {
        let known = known(&self.connection).map_err(|why| Error::sql(&self.path, why))?;
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

    fn renew(&mut self) -> Result<Option<Notice>, Error> {
        let Some((folder, file)) = self.kept.take() else {
            return Ok(None);
        };
        // Closed first: the new file must not meet the log of the old one.
        *self = Tables::in_memory()?;
        let opened = db::renew(&folder, &views::schema(), file)?;
        let (tables, notice) = Tables::of(&folder, opened);
        *self = tables;
        Ok(notice)
    }

    fn bring_up(
        &mut self,
        families: &[Family<'_>],
        progress: Progress<'_>,
    ) -> Result<Refreshed, Error> {
        let mut done = Refreshed::default();
        match self.write(families, progress, &mut done) {
            Ok(()) => {}
            Err(why) => {
                let _ = self.connection.execute_batch("ROLLBACK");
                match Error::sql(&self.path, why) {
                    error if error.is_busy() => done.held_up = true,
                    error => return Err(error),
                }
            }
        }
        db::settle(&self.connection, &self.path);
        Ok(done)
    }

    fn write(
        &self,
        families: &[Family<'_>],
        progress: Progress<'_>,
        done: &mut Refreshed,
    ) -> rusqlite::Result<()> {
        let known = known(&self.connection)?;
        let mut pen = Pen::new(&self.connection);
        let kept: Vec<_> = families
            .iter()
            .map(|family| path::kept(family.path()))
            .collect();
        let there: HashSet<&[u8]> = kept.iter().filter_map(|path| path::bytes(path)).collect();
        for (path, family) in &known {
            if !there.contains(path.as_slice()) {
                pen.remove(family.id)?;
                done.gone += 1;
            }
        }
        let news = families.iter().filter(|family| !family.is_in(&known));
        let news: Vec<&Family<'_>> = news.collect();
        fold_all(&news, progress, &mut pen, done)?;
        // Titles that other files give may have changed for those without one of their own.
        let titles = pen.titles()?;
        let stale = pen.untitled_before(titles.print)?;
        let again: Vec<&Family<'_>> = families
            .iter()
            .filter(|family| {
                let kept = path::kept(family.path());
                path::bytes(&kept).is_some_and(|path| stale.contains(path))
            })
            .collect();
        fold_all(&again, &mut |_, _| (), &mut pen, done)?;
        pen.entitle(&titles)?;
        pen.commit()
    }
}

/// A family as the database knows it.
struct Known {
    id: i64,
    print: i64,
}

fn known(connection: &Connection) -> rusqlite::Result<HashMap<Vec<u8>, Known>> {
    let mut statement = connection.prepare("SELECT path, id, print FROM families")?;
    let rows = statement.query_map([], |row| {
        let known = Known {
            id: row.get(1)?,
            print: row.get(2)?,
        };
        Ok((row.get(0)?, known))
    })?;
    rows.collect()
}

/// A session with its sub-agents, or a sub-agent whose session is gone.
struct Family<'a> {
    main: Option<&'a SessionFile>,
    agents: Vec<&'a AgentFile>,
    /// The client's own helpers, and what they used.
    helpers: Vec<(&'a OtherFile, &'a Spending)>,
    /// The id of the session.
    session: &'a str,
    prices: &'a Prices,
    /// Changes with the prices of its models.
    price_print: u64,
}

fn families<'a>(found: &'a Found, spendings: &'a Spendings, prices: &'a Prices) -> Vec<Family<'a>> {
    let prints = price_prints(spendings.ledger(), prices);
    let spent_by_path: HashMap<&Path, &'a Spending> = spendings
        .sources()
        .iter()
        .zip(spendings.files())
        .map(|(source, spent)| (&*source.path, spent))
        .collect();
    type Helpers<'a> = Vec<(&'a OtherFile, &'a Spending)>;
    let make = |main: Option<&'a SessionFile>,
                agents: Vec<&'a AgentFile>,
                helpers: Helpers<'a>,
                session: &'a str| {
        let mut family = Family {
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
    let mut by_session: HashMap<(&Path, &str, &str), Vec<&AgentFile>> = HashMap::new();
    for agent in &found.agents {
        // A flat file's place does not say whose it is; its lines do.
        let session = agent.session.as_deref();
        let said = || spent_by_path.get(&*agent.path)?.origin.session.as_deref();
        let session = session.or_else(said);
        let key = (&*agent.config, &*agent.folder, session.unwrap_or_default());
        by_session.entry(key).or_default().push(agent);
    }
    let mut helpers: HashMap<(&Path, &str, &str), Helpers<'a>> = HashMap::new();
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

impl Family<'_> {
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

    fn files(&self) -> impl Iterator<Item = (&Path, Stamp)> {
        let main = self.main.iter().map(|file| (&*file.path, file.stamp));
        let agents = self.agents.iter();
        let helpers = self.helpers.iter();
        main.chain(agents.map(|agent| (&*agent.path, agent.stamp)))
            .chain(helpers.map(|(file, _)| (&*file.path, file.stamp)))
    }

    /// Whether it is known as it is.
    fn is_in(&self, known: &HashMap<Vec<u8>, Known>) -> bool {
        let kept = path::kept(self.path());
        let known = path::bytes(&kept).and_then(|path| known.get(path));
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

    fn fold(&self) -> Folded {
        let mut folded = Folded::default();
        let main = self
            .main
            .and_then(|file| folded.read(&file.path, Role::Main));
        folded.lost = self.main.is_some() && main.is_none();
        let read = self.agents.iter().filter_map(|agent| {
            Some(Agent {
                id: agent.id.clone(),
                loaded: folded.read(&agent.path, Role::Agent)?,
                file: agent.path.clone(),
                meta: side::agent_meta(&agent.path),
                run: agent.run.clone(),
            })
        });
        let read: Vec<Agent> = read.collect();
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
        let warm_ups: Vec<Spending> = warm_ups
            .map(|agent| Spending::of(&agent.loaded.session))
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
            let helpers: Vec<&Spending> = helpers.chain(&warm_ups).collect();
            let files = SessionFiles {
                session: &main.session,
                agents: &sessions,
                helpers: &helpers,
            };
            folded.rows.sessions = rows::session(file, &files, self.prices);
            let used = |turns: &[TurnRow]| {
                family::used_by_turn(&files, main, &agents, &side::runs(file), turns, self.prices)
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
struct Folded {
    rows: Rows,
    session: String,
    project: String,
    /// Its own file could not be read: what is known of it stays.
    lost: bool,
    /// Titles that its lines give to lines of other files.
    given: Vec<(i64, String)>,
    /// Its lines, if it has no title of its own.
    untitled: Option<Vec<i64>>,
    warnings: Vec<Warning>,
}

impl Folded {
    fn read(&mut self, path: &Path, role: Role) -> Option<Loaded> {
        let reader = Reader {
            threads: 1,
            ..Reader::default()
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
    families: &[&Family<'_>],
    progress: Progress<'_>,
    pen: &mut Pen<'_>,
    done: &mut Refreshed,
) -> rusqlite::Result<()> {
    let mut order: Vec<usize> = (0..families.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(families[at].bytes()));
    let total: u64 = families.iter().map(|family| family.bytes()).sum();
    let next = AtomicUsize::new(0);
    let workers = each::threads().min(families.len());
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
struct Pen<'a> {
    connection: &'a Connection,
    open: bool,
    bytes: u64,
    /// Families without a title of their own, and their lines.
    untitled: Vec<(i64, Vec<i64>)>,
}

/// How much is written at once.
const BATCH: u64 = 256 << 20;

/// The titles that files give to lines of others.
struct Titles {
    by_leaf: HashMap<i64, String>,
    print: i64,
}

impl<'a> Pen<'a> {
    fn new(connection: &'a Connection) -> Pen<'a> {
        Pen {
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

    fn put(&mut self, family: &Family<'_>, folded: Folded) -> rusqlite::Result<()> {
        let kept = path::kept(family.path());
        let Some(path) = path::bytes(&kept).filter(|_| !folded.lost) else {
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
        let Folded {
            session, project, ..
        } = &folded;
        let project = Secrets::forms().mask(project);
        self.run(sql, params![id, path, print, titles, session, project])?;
        let Rows {
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
                params![id, leaf, Secrets::forms().mask(&title)],
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

    fn titles(&self) -> rusqlite::Result<Titles> {
        let sql = "SELECT leaf, title FROM given ORDER BY leaf, title";
        let mut statement = self.connection.prepare(sql)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let all: Vec<(i64, String)> = rows.collect::<rusqlite::Result<_>>()?;
        Ok(Titles {
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
    fn entitle(&mut self, titles: &Titles) -> rusqlite::Result<()> {
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
    view: &View,
    family: i64,
    cells: &[Value],
) -> rusqlite::Result<()> {
    let width = view.stored().count();
    let mut statement = connection.prepare_cached(&view.insert())?;
    for (place, row) in (0..).zip(cells.chunks_exact(width)) {
        let start = [Value::Integer(family), Value::Integer(place)];
        // Names of directories, branches, models and tools may hold a token, too.
        let row = row.iter().map(|cell| match cell {
            Value::Text(text) => match Secrets::forms().mask(text) {
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
