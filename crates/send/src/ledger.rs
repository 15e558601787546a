//! What receivers have said yes to: one file that only grows, and is written anew when most
//! of it is old.
//!
//! Every line carries its own checksum. Writers hold a lock, add whole lines and wait until
//! they are on disk; whatever stands behind the last newline is what a killed writer left, and
//! is cut off by the next one. A line that is damaged is passed over: its turn is sent again
//! under the same ids, which changes nothing at the receiver. No clock is involved.
//!
//! A line says one thing about one receiver ([`ReceiverKey`]): a turn was taken, an older exporter had
//! sent so many lines of a session, a session still has something to send.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod ledger_line;

use foldhash::{HashMap, HashSet};
use unspool_model::secrets::SecretFinder;
use unspool_store::own_file;

use crate::trace_id::{SpanId, TraceDigest, TraceId, TraceStart};

/// A receiver, in a few bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReceiverKey(pub [u8; 8]);

/// Something to be noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerNote {
    /// A turn was taken.
    Sent {
        /// Its trace.
        trace: TraceId,
        /// What it held.
        digest: TraceDigest,
        /// How many spans it had.
        spans: u32,
        /// The session it was sent under.
        session: Arc<str>,
    },
    /// These spans stand in the trace of a turn, below its root: other files may hold the same
    /// messages in turns of other traces, and be sent by another run.
    Held {
        /// Its trace.
        trace: TraceId,
        /// Its spans.
        spans: Vec<SpanId>,
    },
    /// So many lines of a session were sent by an older exporter.
    Before {
        /// The session.
        session: String,
        /// The number of its last line that was sent.
        lines: u32,
    },
    /// What older exporters noted was taken over.
    Adopted,
    /// The session in this file has something left to send.
    Due {
        /// Its transcript.
        path: PathBuf,
        /// Its last turn was not over. Else the receiver could not be reached.
        open: bool,
    },
    /// It has not any more.
    Paid {
        /// Its transcript.
        path: PathBuf,
    },
}

/// Whether a note names a file by a path that holds a token. Such a note is not written: the
/// next event of the session says again that something is left to send.
fn has_token(note: &LedgerNote) -> bool {
    match note {
        LedgerNote::Due { path, .. } | LedgerNote::Paid { path } => {
            SecretFinder::forms().has(&path.to_string_lossy())
        }
        _ => false,
    }
}

/// What is known of a turn that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentTurn {
    /// The session it was sent under.
    pub session: Arc<str>,
    /// The largest number of spans it was sent with.
    pub spans: u32,
    /// The contents it was sent with, the latest last.
    digests: Vec<TraceDigest>,
}

impl SentTurn {
    /// Whether it was sent with this content.
    pub fn has(&self, digest: TraceDigest) -> bool {
        self.digests.contains(&digest)
    }
}

/// So many contents of a turn are remembered: those of a file and of its copies.
const CONTENTS: usize = 4;

/// Why the ledger cannot be used.
#[derive(Debug)]
pub struct LedgerError {
    /// What was tried.
    doing: &'static str,
    path: PathBuf,
    why: io::Error,
}

impl std::fmt::Display for LedgerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "cannot {} `{}`: {}",
            self.doing,
            self.path.display(),
            self.why
        )
    }
}

impl std::error::Error for LedgerError {}

impl LedgerError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self.why.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free disk space and retry: nothing is lost, and turns that were received \
                 are sent again under the same ids"
            }
            io::ErrorKind::Unsupported => "update unspool, or remove the file",
            _ => "check that the directory is writable",
        }
    }
}

/// What one receiver has.
#[derive(Debug)]
pub struct SendLedger {
    path: PathBuf,
    lock: PathBuf,
    key: ReceiverKey,
    /// Which writing of the file was read, and how far.
    generation: u64,
    end: u64,
    sent: HashMap<TraceId, SentTurn>,
    /// The trace that a span was sent in first.
    holders: HashMap<SpanId, TraceStart>,
    before: HashMap<String, u32>,
    adopted: bool,
    due: BTreeMap<PathBuf, bool>,
    /// Lines in the file, and different things they are about.
    lines: usize,
    things: HashSet<u64>,
    /// Lines that could not be read.
    damaged: usize,
    /// Whether the file has lines that would not be written now: those of an older program,
    /// about a path that holds a token.
    has_tokens: bool,
}

/// The first line, up to the generation.
const HEAD: &str = "unspool sent ";

/// The version of the file.
const VERSION: u32 = 1;

/// A file with fewer lines is never written anew.
const FEW: usize = 2_000;

impl SendLedger {
    /// Reads what is known about a receiver; the file need not exist yet.
    pub fn open(folder: &Path, key: ReceiverKey) -> Result<SendLedger, LedgerError> {
        let mut ledger = SendLedger {
            path: folder.join("ledger"),
            lock: folder.join("ledger.lock"),
            key,
            generation: 0,
            end: 0,
            sent: HashMap::default(),
            holders: HashMap::default(),
            before: HashMap::default(),
            adopted: false,
            due: BTreeMap::new(),
            lines: 0,
            things: HashSet::default(),
            damaged: 0,
            has_tokens: false,
        };
        if !folder.exists() {
            return Ok(ledger);
        }
        let _lock = ledger.lock()?;
        ledger.read()?;
        let is_old = ledger.lines > FEW && ledger.lines > ledger.things.len() * 2;
        if is_old || ledger.has_tokens {
            ledger.rewrite()?;
        }
        Ok(ledger)
    }

    /// Takes in what others have noted meanwhile.
    pub fn refresh(&mut self) -> Result<(), LedgerError> {
        if !self.path.exists() {
            return Ok(());
        }
        let _lock = self.lock()?;
        self.read()
    }

    /// What is known of a turn.
    pub fn sent(&self, trace: TraceId) -> Option<&SentTurn> {
        self.sent.get(&trace)
    }

    /// The trace that a span was sent in.
    pub fn holder(&self, span: SpanId) -> Option<TraceStart> {
        self.holders.get(&span).copied()
    }

    /// How many turns were sent.
    pub fn len(&self) -> usize {
        self.sent.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// How many lines of a session an older exporter had sent.
    pub fn before(&self, session: &str) -> u32 {
        self.before.get(session).copied().unwrap_or(0)
    }

    /// Whether what older exporters noted was taken over.
    pub fn adopted(&self) -> bool {
        self.adopted
    }

    /// Sessions with something left to send, and whether that is a turn that was not over.
    pub fn due(&self) -> impl Iterator<Item = (&Path, bool)> {
        self.due.iter().map(|(path, open)| (path.as_path(), *open))
    }

    /// How many lines of the file were damaged and passed over.
    pub fn damaged(&self) -> usize {
        self.damaged
    }

    /// Notes these things, all of them or none, and returns when they are on disk.
    pub fn note(&mut self, notes: &[LedgerNote]) -> Result<(), LedgerError> {
        if notes.is_empty() {
            return Ok(());
        }
        self.make_folder()?;
        let _lock = self.lock()?;
        self.read()?;
        let mut bytes = Vec::new();
        if self.end == 0 {
            bytes.extend_from_slice(head(self.generation).as_bytes());
        }
        for note in notes.iter().filter(|note| !has_token(note)) {
            ledger_line::write(&mut bytes, self.key, note);
        }
        let path = self.path.clone();
        self.append(&bytes).map_err(|why| LedgerError {
            doing: "write",
            path,
            why,
        })?;
        self.end += bytes.len() as u64;
        for note in notes {
            self.take(self.key, note.clone());
        }
        Ok(())
    }

    /// Takes these things for noted without writing them: for those who only look.
    pub fn assume(&mut self, notes: Vec<LedgerNote>) {
        for note in notes {
            self.take(self.key, note);
        }
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.append_to(own_file::open_or_create(&self.path)?, bytes)
    }

    fn append_to(&self, mut file: File, bytes: &[u8]) -> io::Result<()> {
        // What a killed writer left is no line.
        if file.metadata()?.len() > self.end {
            file.set_len(self.end)?;
        }
        file.seek(SeekFrom::End(0))?;
        let written = file.write_all(bytes).and_then(|()| file.sync_data());
        if written.is_err() {
            // Or half of it would be taken for noted.
            let _ = file.set_len(self.end);
        }
        written?;
        if self.end == 0 {
            sync_folder(&self.path);
        }
        Ok(())
    }

    /// Reads on from where reading ended, or all of it when the file was written anew.
    fn read(&mut self) -> Result<(), LedgerError> {
        let path = self.path.clone();
        let failed = |why| LedgerError {
            doing: "read",
            path: path.clone(),
            why,
        };
        let mut file = match own_file::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.forget(0);
                return Ok(());
            }
            Err(error) => return Err(failed(error)),
        };
        let (generation, start) = match self.head(&mut file).map_err(failed)? {
            Some(head) => head,
            None => {
                self.forget(0);
                return Ok(());
            }
        };
        let size = file.metadata().map_err(failed)?.len();
        if generation != self.generation || size < self.end || self.end < start {
            self.forget(generation);
            self.end = start;
        }
        file.seek(SeekFrom::Start(self.end)).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
        for line in bytes[..whole].split_inclusive(|byte| *byte == b'\n') {
            match ledger_line::read(&line[..line.len() - 1]) {
                Some((key, note)) => {
                    self.has_tokens |= has_token(&note);
                    self.take(key, note);
                }
                None => self.damaged += 1,
            }
        }
        self.end += whole as u64;
        Ok(())
    }

    /// The generation and the length of the first line. `None`: it is not there yet. A file
    /// that is something else is moved away.
    fn head(&self, file: &mut File) -> io::Result<Option<(u64, u64)>> {
        let mut start = Vec::new();
        file.take(64).read_to_end(&mut start)?;
        let Some(end) = memchr::memchr(b'\n', &start) else {
            if head(0).as_bytes().starts_with(&start) {
                return Ok(None);
            }
            return self.move_away().map(|()| None);
        };
        let text = std::str::from_utf8(&start[..end]).unwrap_or_default();
        let mut words = text.strip_prefix(HEAD).unwrap_or_default().split(' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        match (number(), number()) {
            (Some(version), Some(generation)) if version <= u64::from(VERSION) => {
                Ok(Some((generation, end as u64 + 1)))
            }
            (Some(version), _) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("it was written by a newer unspool (version {version})"),
            )),
            _ => self.move_away().map(|()| None),
        }
    }

    /// Beginning anew loses nothing: all ids stay the same.
    fn move_away(&self) -> io::Result<()> {
        fs::rename(&self.path, self.path.with_extension("damaged"))
    }

    fn forget(&mut self, generation: u64) {
        self.generation = generation;
        self.end = 0;
        self.sent.clear();
        self.holders.clear();
        self.before.clear();
        self.adopted = false;
        self.due.clear();
        self.lines = 0;
        self.things.clear();
        self.damaged = 0;
        self.has_tokens = false;
    }

    fn take(&mut self, key: ReceiverKey, note: LedgerNote) {
        self.lines += 1;
        self.things.insert(ledger_line::thing(key, &note));
        if key != self.key {
            return;
        }
        match note {
            LedgerNote::Sent {
                trace,
                digest,
                spans,
                session,
            } => {
                let sent = self.sent.entry(trace).or_insert_with(|| SentTurn {
                    session,
                    spans: 0,
                    digests: Vec::with_capacity(1),
                });
                sent.spans = sent.spans.max(spans);
                sent.digests.retain(|known| *known != digest);
                if sent.digests.len() == CONTENTS {
                    sent.digests.remove(0);
                }
                sent.digests.push(digest);
            }
            LedgerNote::Held { trace, spans } => {
                let start = trace.start();
                for span in spans {
                    self.holders.entry(span).or_insert(start);
                }
            }
            LedgerNote::Before { session, lines } => drop(self.before.insert(session, lines)),
            LedgerNote::Adopted => self.adopted = true,
            LedgerNote::Due { path, open } => drop(self.due.insert(path, open)),
            LedgerNote::Paid { path } => drop(self.due.remove(&path)),
        }
    }

    /// Writes the file anew, without what is old. Under the lock.
    fn rewrite(&mut self) -> Result<(), LedgerError> {
        let path = self.path.clone();
        self.try_rewrite().map_err(|why| LedgerError {
            doing: "write",
            path,
            why,
        })?;
        // Debts that are no longer written are still known to this process.
        let unwritten = |path: &&PathBuf| SecretFinder::forms().has(&path.to_string_lossy());
        let due = self.due.iter().filter(|(path, _)| unwritten(path));
        let due: Vec<_> = due.map(|(path, open)| (path.clone(), *open)).collect();
        self.read()?;
        self.due.extend(due);
        Ok(())
    }

    fn try_rewrite(&self) -> io::Result<()> {
        let bytes = own_file::read(&self.path)?;
        let start = memchr::memchr(b'\n', &bytes).map_or(0, |at| at + 1);
        let lines = bytes[start..].split_inclusive(|byte| *byte == b'\n');
        let read = |line: &[u8]| ledger_line::read(line.strip_suffix(b"\n")?);
        // From the end, because the last word about a thing is the one that counts.
        let mut seen: HashMap<u64, usize> = HashMap::default();
        let mut kept: Vec<&[u8]> = Vec::new();
        for line in lines.rev() {
            let Some((key, note)) = read(line) else {
                continue;
            };
            let times = seen.entry(ledger_line::thing(key, &note)).or_default();
            *times += 1;
            let most = match note {
                LedgerNote::Sent { .. } | LedgerNote::Held { .. } => CONTENTS,
                LedgerNote::Paid { .. } => 0,
                _ => 1,
            };
            // A debt that was paid later is none.
            if *times <= most && !has_token(&note) {
                kept.push(line);
            }
        }
        let temp = self.path.with_extension("new");
        let mut out = own_file::open_or_create(&temp)?;
        out.set_len(0)?;
        let mut text = head(self.generation + 1).into_bytes();
        kept.iter()
            .rev()
            .for_each(|line| text.extend_from_slice(line));
        out.write_all(&text)?;
        out.sync_all()?;
        fs::rename(&temp, &self.path)?;
        sync_folder(&self.path);
        Ok(())
    }

    fn make_folder(&self) -> Result<(), LedgerError> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        own_file::make_folder(folder).map_err(|why| LedgerError {
            doing: "make",
            path: folder.to_owned(),
            why,
        })
    }

    fn lock(&self) -> Result<File, LedgerError> {
        lock(&self.lock).map_err(|why| LedgerError {
            doing: "lock",
            path: self.lock.clone(),
            why,
        })
    }
}

/// The right to send a session to a receiver; gone when dropped, or when the process is.
#[derive(Debug)]
pub struct SendClaim {
    _file: File,
    /// Which of the locks it is.
    pub slot: u8,
}

impl SendClaim {
    /// The lock of a session. Sessions may share one.
    pub fn slot(key: ReceiverKey, session: &str) -> u8 {
        let mut hash = blake3::Hasher::new();
        hash.update(&key.0);
        hash.update(session.as_bytes());
        hash.finalize().as_bytes()[0]
    }

    /// Takes it if nobody has it.
    pub fn attempt(folder: &Path, slot: u8) -> Result<Option<SendClaim>, LedgerError> {
        SendClaim::take(folder, slot, |file| match file.try_lock() {
            Ok(()) => Ok(true),
            Err(fs::TryLockError::WouldBlock) => Ok(false),
            Err(fs::TryLockError::Error(error)) => unlockable(error).map(|()| true),
        })
    }

    /// Waits for it.
    pub fn wait(folder: &Path, slot: u8) -> Result<SendClaim, LedgerError> {
        loop {
            let claim = SendClaim::take(folder, slot, |file| {
                file.lock().or_else(unlockable).map(|()| true)
            })?;
            if let Some(claim) = claim {
                return Ok(claim);
            }
        }
    }

    fn take(
        folder: &Path,
        slot: u8,
        lock: impl FnOnce(&File) -> io::Result<bool>,
    ) -> Result<Option<SendClaim>, LedgerError> {
        let folder = folder.join("locks");
        let path = folder.join(format!("{slot:02x}"));
        let taken = || {
            own_file::make_folder(&folder)?;
            let file = own_file::open_or_create(&path)?;
            let held = lock(&file)?;
            Ok(held.then_some(SendClaim { _file: file, slot }))
        };
        taken().map_err(|why| LedgerError {
            doing: "lock",
            path: path.clone(),
            why,
        })
    }
}

/// Where the disk knows no locks, two at once send some things twice, which changes nothing.
fn unlockable(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    }
}

fn lock(path: &Path) -> io::Result<File> {
    let file = own_file::open_or_create(path)?;
    file.lock().or_else(unlockable)?;
    Ok(file)
}

fn head(generation: u64) -> String {
    format!("{HEAD}{VERSION} {generation}\n")
}

/// So that a new name is still there after the power failed. Not every system can.
fn sync_folder(path: &Path) {
    let folder = path.parent().unwrap_or(Path::new("."));
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

#[cfg(test)]
mod tests;
