//! What was counted in each file, so that only new lines are counted.
//!
//! What the facts of a file are is not known here: they are bytes that somebody makes and
//! understands, under the number of their format.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Row, params};
use unspool_store::follow::FileCursor;

use crate::db::{self, CacheNotice, DatabaseSchema, OpenDatabase};
use crate::error::CacheError;
use crate::file_mark::ReadMark;
use crate::path_bytes;

const SCHEMA: DatabaseSchema = DatabaseSchema {
    name: "usage.db",
    version: 2,
    sql: "CREATE TABLE files (
            path BLOB PRIMARY KEY,
            identity INTEGER NOT NULL,
            size INTEGER NOT NULL,
            modified INTEGER NOT NULL,
            head INTEGER NOT NULL,
            last INTEGER NOT NULL,
            offset INTEGER NOT NULL,
            lines INTEGER NOT NULL,
            facts BLOB NOT NULL
          );",
};

/// The facts of all files.
#[derive(Debug)]
pub struct FileFactCache {
    folder: PathBuf,
    schema: DatabaseSchema,
    /// `None` only while a damaged file is exchanged.
    opened: Option<OpenDatabase>,
    /// What was not told yet.
    notice: Option<CacheNotice>,
}

impl FileFactCache {
    /// Opens the facts in a folder of ours; `format` is the number of what is in the bytes,
    /// and facts of another format are none.
    pub fn open(
        folder: &Path,
        format: u32,
    ) -> Result<(FileFactCache, Option<CacheNotice>), CacheError> {
        let schema = DatabaseSchema {
            version: SCHEMA.version << 20 | format & 0xF_FFFF,
            ..SCHEMA
        };
        let mut opened = db::open(folder, &schema)?;
        let notice = opened.notice.take();
        let facts = FileFactCache {
            folder: folder.into(),
            schema,
            opened: Some(opened),
            notice: None,
        };
        Ok((facts, notice))
    }

    /// Hands out all that is known, file by file. A file of ours that turns out to be damaged
    /// is made anew, which is told: then what was handed out does not count.
    pub fn each(
        &mut self,
        each: impl FnMut(PathBuf, ReadMark, &[u8]),
    ) -> Result<Option<CacheNotice>, CacheError> {
        let opened = self.opened()?;
        match select(&opened.connection, each).map_err(|why| CacheError::sql(&opened.path, why)) {
            Ok(()) => Ok(None),
            Err(error) if error.is_damaged() => self.renew(),
            Err(error) => Err(error),
        }
    }

    /// Keeps what changed and forgets what is gone. `false`: somebody else was writing, and
    /// nothing was kept; the next one who counts will do it. The same with a file that turns
    /// out to be damaged: it is made anew, and [`FileFactCache::notice`] tells.
    pub fn save(
        &mut self,
        changed: &[(PathBuf, ReadMark, Vec<u8>)],
        gone: &[PathBuf],
    ) -> Result<bool, CacheError> {
        if changed.is_empty() && gone.is_empty() {
            return Ok(true);
        }
        let opened = self.opened()?;
        let saved = db::write(&mut opened.connection, &opened.path, |work| {
            delete(work, gone)?;
            insert(work, changed)
        });
        match saved {
            Ok(saved) => {
                db::checkpoint_wal(&opened.connection, &opened.path);
                Ok(saved)
            }
            Err(error) if error.is_damaged() => {
                let notice = self.renew()?;
                self.notice = notice.or(self.notice.take());
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Forgets a file whose facts make no sense.
    pub fn forget(&mut self, path: &Path) -> Result<bool, CacheError> {
        self.save(&[], &[path.into()])
    }

    /// What to tell the person since the last time.
    pub fn notice(&mut self) -> Option<CacheNotice> {
        self.notice.take()
    }

    fn opened(&mut self) -> Result<&mut OpenDatabase, CacheError> {
        if self.opened.is_none() {
            let mut opened = db::open(&self.folder, &self.schema)?;
            self.notice = opened.notice.take().or(self.notice.take());
            self.opened = Some(opened);
        }
        self.opened.as_mut().ok_or_else(|| CacheError::Damaged {
            path: self.folder.join(self.schema.name),
        })
    }

    fn renew(&mut self) -> Result<Option<CacheNotice>, CacheError> {
        // Closed first: the new file must not meet the log of the old one.
        let file = self.opened.take().map(|opened| opened.file);
        let mut opened = db::renew(&self.folder, &self.schema, file.unwrap_or_default())?;
        let notice = opened.notice.take();
        self.opened = Some(opened);
        Ok(notice)
    }
}

fn select(
    connection: &Connection,
    mut each: impl FnMut(PathBuf, ReadMark, &[u8]),
) -> rusqlite::Result<()> {
    let sql = "SELECT path, identity, size, modified, head, last, offset, lines, facts FROM files";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let path = row
            .get_ref(0)?
            .as_bytes()
            .ok()
            .and_then(path_bytes::from_bytes);
        if let Some(path) = path {
            // Read where they stand: all of them together are megabytes.
            let facts = row.get_ref(8)?.as_blob().unwrap_or_default();
            each(path, mark(row, 1)?, facts);
        }
    }
    Ok(())
}

fn mark(row: &Row<'_>, first: usize) -> rusqlite::Result<ReadMark> {
    let number = |at: usize| row.get::<_, i64>(first + at);
    let word = |at: usize| number(at).map(i64::cast_unsigned);
    Ok(ReadMark {
        size: word(1)?,
        modified: number(2)?,
        cursor: FileCursor {
            identity: word(0)?,
            head: word(3)?,
            last: word(4)?,
            offset: word(5)?,
            lines: row.get(first + 6)?,
        },
    })
}

fn insert(
    connection: &Connection,
    changed: &[(PathBuf, ReadMark, Vec<u8>)],
) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let mut statement = connection.prepare(sql)?;
    for (path, mark, blob) in changed {
        // A name that cannot be written down is counted anew each time.
        let path = path_bytes::path_without_tokens(path);
        let Some(path) = path_bytes::bytes(&path) else {
            continue;
        };
        let FileCursor {
            identity,
            head,
            last,
            offset,
            lines,
        } = mark.cursor;
        statement.execute(params![
            path,
            identity.cast_signed(),
            mark.size.cast_signed(),
            mark.modified,
            head.cast_signed(),
            last.cast_signed(),
            offset.cast_signed(),
            lines,
            blob,
        ])?;
    }
    Ok(())
}

fn delete(connection: &Connection, gone: &[PathBuf]) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("DELETE FROM files WHERE path = ?")?;
    for path in gone {
        if let Some(path) = path_bytes::bytes(&path_bytes::path_without_tokens(path)) {
            statement.execute([path])?;
        }
    }
    Ok(())
}
