//! Waits until a client has written down what it said.
//!
//! Clients tell hooks that a turn is over before the end of it is in the transcript, and write a
//! few lines more once the hooks are done. So whoever wants the whole turn waits: for the reply,
//! if it is known, and then until nothing is written any more. Never for long: what comes later
//! is read the next time.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use unspool_model::log::LineSplitter;
use unspool_model::text::{self, TextKind};

use crate::open::{self, FileStamp};

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
pub struct FlushWaitLimits {
    /// Nothing may be written for so long.
    pub quiet: Duration,
    /// Not longer than this in all.
    pub limit: Duration,
    /// How often to look.
    pub step: Duration,
}

impl Default for FlushWaitLimits {
    fn default() -> FlushWaitLimits {
        FlushWaitLimits {
            quiet: Duration::from_millis(400),
            limit: Duration::from_secs(6),
            step: Duration::from_millis(40),
        }
    }
}

/// How waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushOutcome {
    /// The reply is in the file, and nothing is written any more.
    Said,
    /// Nothing is written any more; no reply was to be waited for.
    Quiet,
    /// The limit was reached first.
    Impatient,
    /// There is no such file.
    Missing,
}

/// Of a file that is large, so much of the end is searched for the reply.
const END: u64 = 4 << 20;

/// Waits until `said` stands in the file, if it is given, and until the file is quiet.
///
/// `said` may be only the beginning of what was said.
pub fn wait(path: &Path, said: Option<&str>, patience: &FlushWaitLimits) -> FlushOutcome {
    let began = Instant::now();
    let mut search = said.map(ReplySearch::new);
    let mut last: Option<FileStamp> = None;
    let mut quiet_since = began;
    loop {
        let stamp = std::fs::metadata(path).ok().map(|it| FileStamp::of(&it));
        if stamp != last {
            (last, quiet_since) = (stamp, Instant::now());
            if let Some(search) = &mut search {
                search.look(path);
            }
        }
        let found = search.as_ref().is_none_or(|search| search.found);
        let is_quiet = quiet_since.elapsed() >= patience.quiet;
        if stamp.is_some() && found && is_quiet {
            return match said {
                Some(_) => FlushOutcome::Said,
                None => FlushOutcome::Quiet,
            };
        }
        if began.elapsed() >= patience.limit {
            return match stamp {
                Some(_) => FlushOutcome::Impatient,
                None => FlushOutcome::Missing,
            };
        }
        thread::sleep(patience.step);
    }
}

/// Looks for a reply in a file that grows; each line is read once.
struct ReplySearch {
    said: String,
    found: bool,
    /// How far the file was read.
    offset: Option<u64>,
    splitter: LineSplitter,
}

impl ReplySearch {
    fn new(said: &str) -> ReplySearch {
        ReplySearch {
            said: squeezed(said),
            found: false,
            offset: None,
            splitter: LineSplitter::default(),
        }
    }

    fn look(&mut self, path: &Path) {
        let Ok((file, metadata)) = open::open(path) else {
            return;
        };
        let size = metadata.len();
        let start = match self.offset {
            Some(offset) if offset <= size => offset,
            // Not seen yet, or cut off since.
            _ => {
                self.splitter = LineSplitter::default();
                size.saturating_sub(END)
            }
        };
        self.offset = Some(self.read(&file, start, size));
    }

    fn read(&mut self, file: &File, start: u64, end: u64) -> u64 {
        let mut buffer = vec![0; 256 << 10];
        let mut at = start;
        let (said, mut found) = (&self.said, self.found);
        while at < end {
            let Ok(read @ 1..) = open::read_at(file, &mut buffer, at) else {
                break;
            };
            self.splitter.feed(&buffer[..read], |line| {
                found = found || holds(line.bytes, said);
            });
            at += read as u64;
        }
        self.found = found;
        at
    }
}

/// Whether a line holds a reply that begins as this text does, or that this text ends with:
/// what was said may be several blocks, each on a line of its own.
fn holds(line: &[u8], said: &str) -> bool {
    if said.is_empty() {
        return true;
    }
    let mut found = false;
    text::texts(line, &mut |text| {
        if !found && text.place == TextKind::Reply {
            let reply = squeezed(&text.decode());
            found = !reply.is_empty() && (reply.starts_with(said) || said.ends_with(&reply));
        }
    });
    found
}

/// Without white space, which is not always told as it is written.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const FAST: FlushWaitLimits = FlushWaitLimits {
        quiet: Duration::from_millis(60),
        limit: Duration::from_secs(20),
        step: Duration::from_millis(5),
    };

    fn line(text: &str) -> String {
        let text = serde_json::Value::from(text);
        format!(
            r#"{{"type":"assistant","message":{{"id":"m","role":"assistant","content":[{{"type":"text","text":{text}}}]}}}}"#
        ) + "\n"
    }

    #[test]
    fn a_reply_that_is_there_is_found_however_it_is_escaped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, line("über\n\n“that” 😀")).unwrap();
        assert_eq!(
            wait(&path, Some(" über\n“that” 😀"), &FAST),
            FlushOutcome::Said
        );
        let escaped = line("§").replace('§', r"\u00fcber \ud83d\ude00");
        std::fs::write(&path, escaped).unwrap();
        assert_eq!(wait(&path, Some("über 😀"), &FAST), FlushOutcome::Said);
    }

    #[test]
    fn a_reply_that_comes_late_and_in_pieces_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, line("working on it")).unwrap();
        let late = line("the end");
        let writer = {
            let path = path.clone();
            thread::spawn(move || {
                let mut file = File::options().append(true).open(path).unwrap();
                for piece in late.as_bytes().chunks(late.len() / 3 + 1) {
                    thread::sleep(Duration::from_millis(150));
                    file.write_all(piece).unwrap();
                }
            })
        };
        // Longer than nothing was written: quiet alone would not have been enough.
        assert_eq!(wait(&path, Some("the end"), &FAST), FlushOutcome::Said);
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(written.ends_with(&line("the end")), "{written}");
        writer.join().unwrap();
    }

    #[test]
    fn without_a_reply_to_wait_for_quiet_is_enough() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, line("x")).unwrap();
        assert_eq!(wait(&path, None, &FAST), FlushOutcome::Quiet);
    }

    #[test]
    fn it_gives_up_on_what_never_comes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let short = FlushWaitLimits {
            limit: Duration::from_millis(100),
            ..FAST
        };
        assert_eq!(wait(&path, Some("x"), &short), FlushOutcome::Missing);
        std::fs::write(&path, line("y")).unwrap();
        assert_eq!(wait(&path, Some("x"), &short), FlushOutcome::Impatient);
        assert_eq!(wait(dir.path(), Some("x"), &short), FlushOutcome::Impatient);
    }

    #[test]
    fn what_a_person_or_a_tool_said_is_no_reply() {
        let user = r#"{"type":"user","message":{"role":"user","content":"the end"}}"#;
        assert!(!holds(user.as_bytes(), "theend"));
        assert!(holds(line("the end").as_bytes(), "theend"));
        // Only the beginning of a long reply is told, or the last block of several is found.
        assert!(holds(line("the end of it").as_bytes(), "theend"));
        assert!(holds(line("the end").as_bytes(), "firsttheend"));
        assert!(!holds(line("another").as_bytes(), "theend"));
    }
}
