//! Opens a database of ours, and sees to it that a bad one is never in the way.
//!
//! A database is a cache: one file per concern, so that each can be deleted and none blocks
//! another. A file that is damaged or not ours is set aside as `NAME.aside` and made anew. One
//! of another version is deleted with what was set aside before: it may hold what this version
//! no longer keeps, such as tokens in names. Files are for their owner alone. Several processes
//! may use one file; who makes or replaces it holds `NAME.lock`.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use unspool_store::open::identity;
use unspool_store::own_file;

use crate::error::CacheError;
use crate::network_disk;

/// What is in a database.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseSchema {
    /// The name of its file.
    pub name: &'static str,
    /// Another number means other tables, or the same with another meaning.
    pub version: u32,
    /// What makes the tables in an empty database.
    pub sql: &'static str,
}

/// A database that is ready for use.
#[derive(Debug)]
pub struct OpenDatabase {
    /// To read and write.
    pub connection: Connection,
    /// What to tell the person, once.
    pub notice: Option<CacheNotice>,
    /// Where it is.
    pub path: PathBuf,
    /// Which file it is, for [`renew`].
    pub file: u64,
}

/// A remark about a cache: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheNotice(String);

impl fmt::Display for CacheNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What tells our files from those of other programs: "unsp".
const APPLICATION: i32 = 0x756E_7370;

/// Twice the usual, so that rows of some kilobytes need half the reads.
const PAGE: i64 = 8192;

/// Who waits longer than this for a cache would be faster without it.
const PATIENCE: Duration = Duration::from_millis(250);

/// Making a file anew takes some milliseconds, so this is long.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// Opens a database for reading and writing; makes it if need be.
pub fn open(folder: &Path, schema: &DatabaseSchema) -> Result<OpenDatabase, CacheError> {
    let place = DatabaseFile::new(folder, schema);
    let mut left = AGAIN;
    loop {
        let look = place.look().and_then(|look| match look {
            DatabaseState::Ready(connection) => place.opened(connection, None),
            DatabaseState::Missing
            | DatabaseState::Fresh(_)
            | DatabaseState::Other
            | DatabaseState::Bad(_) => place.make(),
        });
        match look {
            // Another process set a bad file aside while we were about to open it.
            Err(error) if error.is_gone() && left > 0 => left -= 1,
            other => return other,
        }
    }
}

/// How often a file may be taken away while it is opened.
const AGAIN: usize = 20;

/// Opens a database that is there for reading only; `None` if there is none that is ready.
pub fn open_read(folder: &Path, schema: &DatabaseSchema) -> Result<Option<Connection>, CacheError> {
    let place = DatabaseFile::new(folder, schema);
    match place.look_as(OpenFlags::SQLITE_OPEN_READ_ONLY)? {
        DatabaseState::Ready(connection) => Ok(Some(connection)),
        DatabaseState::Missing
        | DatabaseState::Fresh(_)
        | DatabaseState::Other
        | DatabaseState::Bad(_) => Ok(None),
    }
}

/// Sets a database aside that turned out to be damaged while it was used, and makes it anew;
/// `damaged` is which file it was, in case another process was faster. Connections to it are
/// to be closed before.
pub fn renew(
    folder: &Path,
    schema: &DatabaseSchema,
    damaged: u64,
) -> Result<OpenDatabase, CacheError> {
    let place = DatabaseFile::new(folder, schema);
    let lock = place.lock()?;
    let notice = if place.file() == Some(damaged) {
        Some(place.set_aside(DAMAGED)?)
    } else {
        None
    };
    drop(lock);
    let mut opened = open(folder, schema)?;
    opened.notice = notice.or(opened.notice);
    Ok(opened)
}

/// Runs `job` in a transaction that writes. `false`: somebody else was in the way, and
/// nothing was written.
pub fn write(
    connection: &mut Connection,
    path: &Path,
    job: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<bool, CacheError> {
    let run = || {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        job(&transaction)?;
        transaction.commit()
    };
    match run().map_err(|why| CacheError::sql(path, why)) {
        Ok(()) => Ok(true),
        Err(error) if error.is_busy() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Waits until nobody else holds the file beside `path` with this end, and holds it until it
/// is dropped. `None` where the disk knows no locks.
pub fn hold(path: &Path, end: &str, patience: Duration) -> Result<Option<File>, CacheError> {
    let lock = beside(path, end);
    let file = own_file::open_or_create(&lock).map_err(|why| CacheError::place(&lock, why))?;
    let since = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if since.elapsed() > patience => {
                return Err(CacheError::Busy { path: path.into() });
            }
            Err(TryLockError::WouldBlock) => sleep(Duration::from_millis(2)),
        }
    }
}

/// A log of writes larger than this is moved into the database by [`checkpoint_wal`]: who opens it
/// next would read it all.
const LOG: u64 = 1 << 20;

/// To be called after writing much: moves what was written to where it belongs. Small
/// writes wait for the next large one, because moving them means waiting for the disk.
pub fn checkpoint_wal(connection: &Connection, path: &Path) {
    let large = fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > LOG);
    if large {
        // Somebody may be reading; then the next one does it.
        let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }
}

/// A database and where it lives.
struct DatabaseFile<'a> {
    folder: &'a Path,
    schema: &'a DatabaseSchema,
    path: PathBuf,
}

/// What stands in the place of a database.
enum DatabaseState {
    Missing,
    /// One without tables: it was begun and never finished.
    Fresh(Connection),
    Ready(Connection),
    /// One of ours of another version.
    Other,
    /// Something else, and why it cannot be used.
    Bad(&'static str),
}

const DAMAGED: &str = "is damaged";
const FOREIGN: &str = "is not an unspool cache";

impl<'a> DatabaseFile<'a> {
    fn new(folder: &'a Path, schema: &'a DatabaseSchema) -> DatabaseFile<'a> {
        DatabaseFile {
            folder,
            schema,
            path: folder.join(schema.name),
        }
    }

    fn look(&self) -> Result<DatabaseState, CacheError> {
        self.look_as(OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    fn look_as(&self, flags: OpenFlags) -> Result<DatabaseState, CacheError> {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(DatabaseState::Missing);
            }
            // SQLite opens these by their names, and would wait for a pipe or follow a link.
            _ => self.plain()?,
        }
        match self.connect(flags) {
            Ok(look) => Ok(look),
            Err(error) => match CacheError::sql(&self.path, error) {
                CacheError::Damaged { .. } => Ok(DatabaseState::Bad(DAMAGED)),
                // It was set aside since we looked.
                CacheError::Sql { .. } if !self.path.exists() => Ok(DatabaseState::Missing),
                error => Err(error),
            },
        }
    }

    /// Refuses what is no regular file where SQLite will open one.
    fn plain(&self) -> Result<(), CacheError> {
        let beside = COMPANIONS.iter().map(|end| beside(&self.path, end));
        for path in std::iter::once(self.path.clone()).chain(beside) {
            own_file::check_regular_file(&path).map_err(|why| CacheError::place(&path, why))?;
        }
        Ok(())
    }

    fn connect(&self, flags: OpenFlags) -> rusqlite::Result<DatabaseState> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        let (application, version) = numbers(&connection)?;
        if (application, version) == (APPLICATION, self.schema.version) {
            self.tune(&connection)?;
            return Ok(DatabaseState::Ready(connection));
        }
        if application == APPLICATION {
            return Ok(DatabaseState::Other);
        }
        let tables = "SELECT count(*) FROM sqlite_schema";
        let tables: i64 = connection.query_row(tables, [], |row| row.get(0))?;
        let fresh = (application, version, tables) == (0, 0, 0);
        Ok(if fresh {
            DatabaseState::Fresh(connection)
        } else {
            DatabaseState::Bad(FOREIGN)
        })
    }

    /// How a connection writes.
    fn tune(&self, connection: &Connection) -> rusqlite::Result<()> {
        let writes = !connection.is_readonly(rusqlite::MAIN_DB)?;
        if writes {
            self.journal(connection)?;
            connection.execute_batch("PRAGMA synchronous=normal")?;
        }
        Ok(())
    }

    /// A write-ahead log lets readers and a writer work at once, but not over a network.
    fn journal(&self, connection: &Connection) -> rusqlite::Result<()> {
        let ask = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0));
        let now = ask("PRAGMA journal_mode")?;
        let remote = network_disk::is_remote(&self.path);
        if !remote && (now == "wal" || ask("PRAGMA journal_mode=wal").is_ok_and(|now| now == "wal"))
        {
            return Ok(());
        }
        // Whoever holds the log now keeps us from leaving it; it works for them, too.
        let _ = ask("PRAGMA journal_mode=truncate");
        Ok(())
    }

    /// Makes the file, unless another process did so while we waited for the lock.
    fn make(&self) -> Result<OpenDatabase, CacheError> {
        own_file::make_folder(self.folder).map_err(|why| CacheError::place(self.folder, why))?;
        let _lock = self.lock()?;
        let (connection, notice) = match self.look()? {
            DatabaseState::Ready(connection) => (connection, None),
            DatabaseState::Fresh(connection) => (self.fill(connection)?, None),
            DatabaseState::Missing => (self.create()?, None),
            DatabaseState::Other => {
                let notice = self.delete_other_version()?;
                (self.create()?, Some(notice))
            }
            DatabaseState::Bad(why) => {
                let notice = self.set_aside(why)?;
                (self.create()?, Some(notice))
            }
        };
        self.opened(connection, notice)
    }

    fn create(&self) -> Result<Connection, CacheError> {
        // Leftovers of a file that somebody deleted are not for the new one.
        for end in COMPANIONS {
            remove(&beside(&self.path, end)).map_err(|why| self.error(why))?;
        }
        own_file::open_or_create(&self.path).map_err(|why| self.error(why))?;
        match self.look()? {
            DatabaseState::Fresh(connection) => self.fill(connection),
            DatabaseState::Ready(connection) => Ok(connection),
            DatabaseState::Missing | DatabaseState::Other | DatabaseState::Bad(_) => {
                Err(CacheError::Busy {
                    path: self.path.clone(),
                })
            }
        }
    }

    fn fill(&self, mut connection: Connection) -> Result<Connection, CacheError> {
        let mut run = || {
            connection.pragma_update(None, "page_size", PAGE)?;
            self.tune(&connection)?;
            let work = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if numbers(&work)? == (0, 0) {
                work.execute_batch(self.schema.sql)?;
                work.pragma_update(None, "user_version", self.schema.version.cast_signed())?;
                work.pragma_update(None, "application_id", APPLICATION)?;
            }
            work.commit()
        };
        run().map_err(|why| CacheError::sql(&self.path, why))?;
        Ok(connection)
    }

    /// The log goes first and what is left of it last: a new file must never meet it.
    fn set_aside(&self, why: &str) -> Result<CacheNotice, CacheError> {
        let aside = beside(&self.path, ".aside");
        let run = || -> io::Result<()> {
            remove(&aside)?;
            for end in COMPANIONS {
                remove(&beside(&aside, end))?;
                rename(&beside(&self.path, end), &beside(&aside, end))?;
            }
            rename(&self.path, &aside)?;
            COMPANIONS
                .iter()
                .try_for_each(|end| remove(&beside(&self.path, end)))
        };
        run().map_err(|why| self.error(why))?;
        Ok(CacheNotice(format!(
            "the cache `{}` {why}: moved to `{}` and rebuilt",
            self.path.display(),
            aside.file_name().unwrap_or_default().display()
        )))
    }

    /// Deletes a cache of another version, and what was set aside before it: all of it can be
    /// made again.
    fn delete_other_version(&self) -> Result<CacheNotice, CacheError> {
        for path in [beside(&self.path, ".aside"), self.path.clone()] {
            for end in COMPANIONS {
                remove(&beside(&path, end)).map_err(|why| self.error(why))?;
            }
            remove(&path).map_err(|why| self.error(why))?;
        }
        Ok(CacheNotice(format!(
            "the cache `{}` has another version: deleted and rebuilt",
            self.path.display()
        )))
    }

    fn opened(
        &self,
        connection: Connection,
        notice: Option<CacheNotice>,
    ) -> Result<OpenDatabase, CacheError> {
        let read_only = connection
            .is_readonly(rusqlite::MAIN_DB)
            .map_err(|why| CacheError::sql(&self.path, why))?;
        if read_only {
            return Err(self.error(io::ErrorKind::PermissionDenied.into()));
        }
        close_to_others(&self.path);
        Ok(OpenDatabase {
            connection,
            notice,
            path: self.path.clone(),
            file: self.file().unwrap_or_default(),
        })
    }

    /// Which file is there now.
    fn file(&self) -> Option<u64> {
        fs::metadata(&self.path).ok().as_ref().map(identity)
    }

    /// Held while a file is made or replaced.
    fn lock(&self) -> Result<Option<File>, CacheError> {
        hold(&self.path, ".lock", LOCK_PATIENCE)
    }

    fn error(&self, why: io::Error) -> CacheError {
        CacheError::place(&self.path, why)
    }
}

/// What SQLite puts beside a database.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

fn numbers(connection: &Connection) -> rusqlite::Result<(i32, u32)> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i32>(0));
    Ok((
        number("PRAGMA application_id")?,
        number("PRAGMA user_version")?.cast_unsigned(),
    ))
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name: OsString = path.into();
    name.push(end);
    name.into()
}

fn remove(path: &Path) -> io::Result<()> {
    absent_is_fine(fs::remove_file(path))
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    absent_is_fine(fs::rename(from, to))
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Takes the rights of others from a file that somebody copied here.
fn close_to_others(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let open = |metadata: &fs::Metadata| metadata.permissions().mode() & 0o077 != 0;
        if !fs::metadata(path).is_ok_and(|metadata| open(&metadata)) {
            return;
        }
        for end in ["", "-wal", "-shm"] {
            // It can still be used if this fails.
            let _ = fs::set_permissions(beside(path, end), fs::Permissions::from_mode(0o600));
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}
