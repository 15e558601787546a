//! A session that stays open while its file grows.
//!
//! What was read before is not read again: new lines are pushed onto the session. A file that
//! is another one now, or whose last line had not ended, is to be read anew.

use std::fs;

use crate::error::StoreError;
use crate::follow::TranscriptTail;
use crate::open::FileStamp;
use crate::read::{LoadedSession, SessionReader, TrailingBytes};

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthResult {
    /// It is as it was.
    Same,
    /// Lines were added, and taken in.
    More,
    /// It must be read anew.
    Anew,
}

/// Where a file was read to.
#[derive(Debug)]
pub struct GrowingFile {
    /// Goes on there; none if what was read cannot be gone on from.
    tail: Option<TranscriptTail>,
    stamp: FileStamp,
    /// Whether a line stands at the end that has not ended.
    torn: bool,
}

impl GrowingFile {
    /// Of a file that was read whole. Read with [`TrailingBytes::Growing`] it can be gone on from.
    pub fn of(loaded: &LoadedSession, ending: TrailingBytes) -> GrowingFile {
        let stamp = fs::metadata(loaded.source.path()).map(|metadata| FileStamp::of(&metadata));
        let stamp = stamp.unwrap_or_default();
        let follows = ending == TrailingBytes::Growing && !loaded.is_partial();
        GrowingFile {
            tail: follows
                .then(|| TranscriptTail::after(loaded).ok())
                .flatten(),
            // Whatever was added meanwhile is not as it was.
            torn: loaded.bytes != stamp.size,
            stamp,
        }
    }

    /// Whether a line stands at the end that has not ended.
    pub fn is_torn(&self) -> bool {
        self.torn
    }

    /// Takes in what was added.
    pub fn follow(
        &mut self,
        reader: &SessionReader,
        loaded: &mut LoadedSession,
    ) -> Result<GrowthResult, StoreError> {
        let now = match fs::metadata(loaded.source.path()) {
            Ok(metadata) => FileStamp::of(&metadata),
            // It is gone, and what was read of it stays.
            Err(_) => return Ok(GrowthResult::Same),
        };
        if now == self.stamp {
            // Nobody went on with the line: it is as whole as it will be.
            return Ok(match self.torn {
                true => GrowthResult::Anew,
                false => GrowthResult::Same,
            });
        }
        let Some(tail) = &mut self.tail else {
            return Ok(GrowthResult::Anew);
        };
        let polled = tail.poll(|line| loaded.push(&line, reader))?;
        if polled.restarted {
            return Ok(GrowthResult::Anew);
        }
        let cursor = tail.cursor();
        (loaded.bytes, loaded.lines) = (cursor.offset, cursor.lines);
        self.torn = cursor.offset < now.size;
        self.stamp = now;
        Ok(match polled.lines {
            0 => GrowthResult::Same,
            _ => GrowthResult::More,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::path::Path;
    use unspool_model::session::TranscriptRole;

    fn line(n: usize) -> String {
        format!(
            r#"{{"type":"user","uuid":"00000000-0000-4000-8000-{n:012}","timestamp":"2026-01-05T10:00:00.000Z","message":{{"role":"user","content":"say {n}"}}}}"#
        )
    }

    fn add(path: &Path, text: &str) {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn what_is_added_is_taken_in_and_the_rest_is_not_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        add(&path, &format!("{}\n", line(1)));
        let reader = SessionReader {
            ending: TrailingBytes::Growing,
            ..SessionReader::default()
        };
        let mut loaded = reader.read(&path, TranscriptRole::Main).unwrap();
        let mut growth = GrowingFile::of(&loaded, TrailingBytes::Growing);
        assert_eq!(
            growth.follow(&reader, &mut loaded).unwrap(),
            GrowthResult::Same
        );
        add(&path, &format!("{}\n{}\n", line(2), line(3)));
        assert_eq!(
            growth.follow(&reader, &mut loaded).unwrap(),
            GrowthResult::More
        );
        assert_eq!(loaded.session.turns.len(), 3);
        assert_eq!(loaded.lines, 3);
        add(&path, &line(4));
        assert_eq!(
            growth.follow(&reader, &mut loaded).unwrap(),
            GrowthResult::Same
        );
        assert_eq!(
            growth.follow(&reader, &mut loaded).unwrap(),
            GrowthResult::Anew,
            "nobody ends the line"
        );
        std::fs::write(&path, format!("{}\n", line(9))).unwrap();
        assert_eq!(
            growth.follow(&reader, &mut loaded).unwrap(),
            GrowthResult::Anew
        );
    }
}
