//! The tables beside the words: transcripts with their marks, names, and what is covered.

use std::collections::HashMap;
use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Row, params};
use unspool_store::find::FoundSessionFiles;
use unspool_store::follow::FileCursor;
use unspool_store::open::FileStamp;

use super::indexed_line::{UnansweredCalls, masked};
use super::{IndexStage, TextIndex};
use crate::error::CacheError;
use crate::file_mark::{self, MarkComparison, ReadMark};
use crate::path_bytes;

/// A transcript as the walk found it.
#[derive(Clone, Debug)]
pub struct FoundTranscript {
    /// Where it is.
    pub path: PathBuf,
    /// Its session, if the walk knows.
    pub session: Option<String>,
    /// The id of the sub-agent it belongs to.
    pub agent: Option<String>,
    /// The folder of its project.
    pub folder: String,
    /// What the system says about it.
    pub stamp: FileStamp,
}

/// All transcripts of a walk, oldest first: rows of newer ones get higher numbers, and who
/// looks at the newest rows only sees the newest transcripts.
pub fn found_transcripts(found: &FoundSessionFiles) -> Vec<FoundTranscript> {
    let sessions = found.sessions.iter().map(|file| FoundTranscript {
        path: file.path.clone(),
        session: Some(file.id.clone()),
        agent: None,
        folder: file.folder.to_string(),
        stamp: file.stamp,
    });
    let agents = found.agents.iter().map(|file| FoundTranscript {
        path: file.path.clone(),
        session: file.session.clone(),
        agent: Some(file.id.clone()),
        folder: file.folder.to_string(),
        stamp: file.stamp,
    });
    let mut all: Vec<FoundTranscript> = sessions.chain(agents).collect();
    all.sort_by_key(|place| place.stamp.modified);
    all
}

/// What we know of a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexedTranscript {
    /// Its number.
    pub id: i64,
    /// Its session; empty if nothing said so yet.
    pub session: String,
    /// The id of the sub-agent it belongs to.
    pub agent: Option<String>,
    /// The project; its folder's name until a line names a directory.
    pub project: String,
    /// Its title, and how much that counts.
    pub title: Option<(i64, String)>,
    /// Up to where its dialogue is indexed.
    pub said: ReadMark,
    /// Up to where the rest is.
    pub done: ReadMark,
    /// Bytes of text that were indexed in each stage.
    pub text: [u64; 2],
    /// Calls that wait for their results.
    pub calls: UnansweredCalls,
}

impl IndexedTranscript {
    /// One that nothing is known of.
    pub fn new(place: &FoundTranscript) -> IndexedTranscript {
        IndexedTranscript {
            session: place.session.clone().unwrap_or_default(),
            agent: place.agent.clone(),
            project: place.folder.clone(),
            ..IndexedTranscript::default()
        }
    }

    /// Up to where a stage has come.
    pub fn mark(&self, stage: IndexStage) -> &ReadMark {
        match stage {
            IndexStage::Dialogue => &self.said,
            IndexStage::Rest => &self.done,
        }
    }

    /// Notes how far a stage has come.
    pub fn set_mark(&mut self, stage: IndexStage, mark: ReadMark) {
        match stage {
            IndexStage::Dialogue => self.said = mark,
            IndexStage::Rest => self.done = mark,
        }
    }

    /// How many bytes of the transcript a stage has not read yet.
    pub fn behind(&self, stage: IndexStage, stamp: &FileStamp) -> u64 {
        let mark = self.mark(stage);
        match file_mark::compare(mark, stamp) {
            MarkComparison::Same => 0,
            MarkComparison::Grew => stamp.size - mark.offset().min(stamp.size),
            MarkComparison::Other => stamp.size,
        }
    }
}

const FILE: &str = "id, session, agent, project, title, title_rank, said, done, said_text, \
                    done_text, calls, path";

/// All transcripts that are known.
pub fn files(db: &Connection) -> rusqlite::Result<HashMap<PathBuf, IndexedTranscript>> {
    let mut statement = db.prepare(&format!("SELECT {FILE} FROM file"))?;
    let mut rows = statement.query([])?;
    let mut all = HashMap::new();
    while let Some(row) = rows.next()? {
        let name = row
            .get_ref(11)?
            .as_bytes()
            .ok()
            .and_then(path_bytes::from_bytes);
        if let Some(name) = name {
            all.insert(name, file(row)?);
        }
    }
    Ok(all)
}

/// What is known of one of them now.
pub fn load(
    db: &Connection,
    place: &FoundTranscript,
) -> rusqlite::Result<Option<IndexedTranscript>> {
    let sql = format!("SELECT {FILE} FROM file WHERE path = ?");
    let mut statement = db.prepare_cached(&sql)?;
    statement
        .query_row(
            [path_bytes::bytes(&path_bytes::path_without_tokens(
                &place.path,
            ))],
            file,
        )
        .optional()
}

fn file(row: &Row<'_>) -> rusqlite::Result<IndexedTranscript> {
    let title: Option<String> = row.get(4)?;
    let rank: i64 = row.get(5)?;
    let count = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
    Ok(IndexedTranscript {
        id: row.get(0)?,
        session: row.get(1)?,
        agent: row.get(2)?,
        project: row.get(3)?,
        title: title.map(|title| (rank, title)),
        said: mark(row.get_ref(6)?.as_blob().unwrap_or_default()),
        done: mark(row.get_ref(7)?.as_blob().unwrap_or_default()),
        text: [count(8)?, count(9)?],
        calls: UnansweredCalls::from_bytes(row.get_ref(10)?.as_blob().unwrap_or_default()),
    })
}

/// Writes down what is known of a transcript; gives its number.
pub fn save(
    db: &Connection,
    place: &FoundTranscript,
    file: &IndexedTranscript,
) -> rusqlite::Result<i64> {
    let sql = "INSERT OR REPLACE INTO file (id, path, session, agent, project, title,
               title_rank, said, done, said_text, done_text, calls)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let (rank, title) = file.title.clone().unzip();
    db.prepare_cached(sql)?.execute(params![
        (file.id > 0).then_some(file.id),
        path_bytes::bytes(&path_bytes::path_without_tokens(&place.path)),
        file.session,
        file.agent,
        masked(&file.project),
        title,
        rank.unwrap_or_default(),
        mark_bytes(&file.said),
        mark_bytes(&file.done),
        file.text[0].cast_signed(),
        file.text[1].cast_signed(),
        file.calls.to_bytes(),
    ])?;
    Ok(if file.id > 0 {
        file.id
    } else {
        db.last_insert_rowid()
    })
}

/// Forgets the rows of transcripts, all at once: rows are not ordered by transcript, so this
/// looks at every one of them.
pub fn clear(db: &Connection, ids: &[i64]) -> rusqlite::Result<()> {
    // Numbers of ours, so that nothing but numbers is in the statements.
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let ids = ids.join(",");
    for table in ["said", "done"] {
        let rows = format!("SELECT id FROM doc WHERE file IN ({ids})");
        db.execute(&format!("DELETE FROM {table} WHERE rowid IN ({rows})"), [])?;
    }
    for table in ["doc", "touched", "used"] {
        db.execute(&format!("DELETE FROM {table} WHERE file IN ({ids})"), [])?;
    }
    Ok(())
}

/// Forgets transcripts.
pub fn forget(db: &Connection, ids: &[i64]) -> rusqlite::Result<()> {
    // A statement has a largest size.
    for some in ids.chunks(10_000) {
        clear(db, some)?;
    }
    let mut statement = db.prepare("DELETE FROM file WHERE id = ?")?;
    ids.iter()
        .try_for_each(|id| statement.execute([id]).map(drop))
}

fn mark_bytes(mark: &ReadMark) -> Vec<u8> {
    let FileCursor {
        identity,
        head,
        last,
        offset,
        lines,
    } = mark.cursor;
    let words = [
        identity,
        head,
        last,
        offset,
        u64::from(lines),
        mark.size,
        mark.modified.cast_unsigned(),
    ];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Bytes that make no sense are no mark.
fn mark(bytes: &[u8]) -> ReadMark {
    let mut words = [0; 7];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes.try_into().map_or(0, u64::from_le_bytes);
    }
    let [identity, head, last, offset, lines, size, modified] = words;
    ReadMark {
        cursor: FileCursor {
            identity,
            head,
            last,
            offset,
            lines: u32::try_from(lines).unwrap_or_default(),
        },
        size,
        modified: modified.cast_signed(),
    }
}

/// Names of tools, branches and models by their numbers, as far as they were asked for.
#[derive(Debug, Default)]
pub struct NameNumbers(HashMap<Box<str>, i64>);

impl NameNumbers {
    /// The number of a name, which is given one if it has none.
    pub fn number(&mut self, db: &Connection, name: &str) -> rusqlite::Result<i64> {
        if let Some(id) = self.0.get(name) {
            return Ok(*id);
        }
        let spoken = name;
        let name = &*masked(name);
        let known = db
            .prepare_cached("SELECT id FROM name WHERE text = ?")?
            .query_row([name], |row| row.get(0))
            .optional()?;
        let id = match known {
            Some(id) => id,
            None => {
                db.prepare_cached("INSERT INTO name (text) VALUES (?)")?
                    .execute([name])?;
                db.last_insert_rowid()
            }
        };
        self.0.insert(spoken.into(), id);
        Ok(id)
    }

    /// Forgets them: what was numbered in a transaction that failed has no number.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// What is in the index, and what is not yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexStatus {
    /// Transcripts that were found.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// For dialogue and for the rest: bytes that are not indexed yet.
    pub behind: [u64; 2],
    /// And in how many transcripts they are.
    pub behind_files: [u64; 2],
    /// For both: bytes of text that are indexed.
    pub text: [u64; 2],
    /// How large the index is on disk.
    pub size: u64,
}

impl TextIndex {
    /// What is in the index, seen from what is there.
    pub fn status(&self, found: &FoundSessionFiles) -> Result<IndexStatus, CacheError> {
        let known = self.files()?;
        let mut status = IndexStatus {
            size: self.size(),
            ..IndexStatus::default()
        };
        for place in found_transcripts(found) {
            status.files += 1;
            status.bytes += place.stamp.size;
            let none = IndexedTranscript::default();
            let file = known
                .get(&*path_bytes::path_without_tokens(&place.path))
                .unwrap_or(&none);
            for stage in IndexStage::BOTH {
                let behind = file.behind(stage, &place.stamp);
                status.behind[stage as usize] += behind;
                status.behind_files[stage as usize] += u64::from(behind > 0);
                status.text[stage as usize] += file.text[stage as usize];
            }
        }
        Ok(status)
    }

    /// How large the index is on disk, with what SQLite keeps beside it.
    fn size(&self) -> u64 {
        let beside = |end: &str| {
            let mut name = self.path().clone().into_os_string();
            name.push(end);
            std::fs::metadata(name).map_or(0, |metadata| metadata.len())
        };
        beside("") + beside("-wal")
    }
}
