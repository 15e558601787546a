//! Ranked search: a full-text index over all transcripts, in one file `text.db`.
//!
//! It is built in two stages. Dialogue (prompts, replies, titles, commands, paths) is little
//! and read first, so that it can be searched at once. The rest (thinking, what tools were
//! given and said) follows in transactions of some megabytes. Each stage has its own mark in
//! each transcript, kept together with the rows, so that it goes on where it was stopped
//! at any moment.
//!
//! The index holds words and their places, never the text, and words only after secrets
//! were masked; what is shown is read again from the transcript. In reading order: [`words`],
//! [`query`], [`line`] (what is indexed of a line), [`feed`] (the stages), [`rank`].

pub mod index_updater;
pub mod indexed_line;
pub mod ranked_query;
pub mod ranked_search;
pub mod snippet;
mod transcript_table;
pub mod word_splitting;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::db::{self, CacheNotice, DatabaseSchema, OpenDatabase};
use crate::error::CacheError;

pub use index_updater::{IndexProgress, IndexRunEnd, IndexStage};
pub use ranked_query::{RankedQuery, RankedQueryError};
pub use ranked_search::{RankedHit, RankedSearch};
pub use transcript_table::IndexStatus;

/// The index.
#[derive(Debug)]
pub struct TextIndex {
    opened: OpenDatabase,
    names: transcript_table::NameNumbers,
    /// How much text goes into one transaction.
    batch: u64,
    /// What is known of all transcripts, once it was asked for; forgotten with every write.
    files: OnceCell<KnownTranscripts>,
}

/// Transcripts by their paths.
type KnownTranscripts = Arc<HashMap<PathBuf, transcript_table::IndexedTranscript>>;

/// What `said` and `done` have in common: no content, so that no text is stored twice, and
/// rows can be deleted all the same.
macro_rules! words_of {
    ($name:literal) => {
        concat!(
            "CREATE VIRTUAL TABLE ",
            $name,
            " USING fts5(body, content='', contentless_delete=1, ",
            "tokenize='unicode61 remove_diacritics 2');"
        )
    };
}

const SCHEMA: DatabaseSchema = DatabaseSchema {
    name: NAME,
    version: 2,
    sql: concat!(
        words_of!("said"),
        words_of!("done"),
        "CREATE TABLE doc (
            id INTEGER PRIMARY KEY,
            file INTEGER NOT NULL,
            offset INTEGER NOT NULL,
            line INTEGER NOT NULL,
            place INTEGER NOT NULL,
            at INTEGER NOT NULL,
            tool INTEGER,
            branch INTEGER
        );
        CREATE TABLE file (
            id INTEGER PRIMARY KEY,
            path BLOB NOT NULL UNIQUE,
            session TEXT NOT NULL,
            agent TEXT,
            project TEXT NOT NULL,
            title TEXT,
            title_rank INTEGER NOT NULL,
            said BLOB NOT NULL,
            done BLOB NOT NULL,
            said_text INTEGER NOT NULL,
            done_text INTEGER NOT NULL,
            calls BLOB NOT NULL
        );
        CREATE TABLE name (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
        CREATE TABLE touched (
            file INTEGER NOT NULL, path TEXT NOT NULL, PRIMARY KEY (file, path)
        ) WITHOUT ROWID;
        CREATE TABLE used (
            file INTEGER NOT NULL, model INTEGER NOT NULL, PRIMARY KEY (file, model)
        ) WITHOUT ROWID;"
    ),
};

/// The name of the file.
pub const NAME: &str = "text.db";

impl TextIndex {
    /// Opens the index in a folder of ours; makes an empty one if need be.
    pub fn open(folder: &Path) -> Result<(TextIndex, Option<CacheNotice>), CacheError> {
        Ok(TextIndex::of(db::open(folder, &SCHEMA)?))
    }

    fn of(mut opened: OpenDatabase) -> (TextIndex, Option<CacheNotice>) {
        let notice = opened.notice.take();
        let text = TextIndex {
            opened,
            names: transcript_table::NameNumbers::default(),
            batch: index_updater::BATCH,
            files: OnceCell::new(),
        };
        // A few megabytes of pages make the difference between reading the inner pages of
        // the index once and for every row.
        let _ = text.sql(|db| db.execute_batch("PRAGMA cache_size=-8000"));
        (text, notice)
    }

    /// The same after it turned out to be damaged: set aside and made anew.
    pub fn renew(self, folder: &Path) -> Result<(TextIndex, Option<CacheNotice>), CacheError> {
        let file = self.opened.file;
        drop(self);
        Ok(TextIndex::of(db::renew(folder, &SCHEMA, file)?))
    }

    /// Where it is.
    pub fn path(&self) -> &PathBuf {
        &self.opened.path
    }

    /// Waits so long for others who write.
    pub fn be_patient(&self, patience: std::time::Duration) -> Result<(), CacheError> {
        self.sql(|db| db.busy_timeout(patience))
    }

    /// Puts about so many bytes of text into one transaction. It bounds what a kill loses
    /// and how long others wait.
    pub fn batch_of(&mut self, bytes: u64) {
        self.batch = bytes.max(1);
    }

    /// What is known of all transcripts.
    fn files(&self) -> Result<KnownTranscripts, CacheError> {
        if let Some(known) = self.files.get() {
            return Ok(known.clone());
        }
        let known = Arc::new(self.sql(transcript_table::files)?);
        Ok(self.files.get_or_init(|| known).clone())
    }

    fn sql<T>(
        &self,
        job: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<T, CacheError> {
        job(&self.opened.connection).map_err(|why| CacheError::sql(&self.opened.path, why))
    }
}
