//! Following files while anything happens to them, against a model of a few lines.
//!
//! Random actions on a few files, as writers, log rotation, editors and people do them; a tail
//! on each file that is polled, started again from its cursor, or from an older one as after a
//! crash. What the model says is due must be handed out, in order, once. Some runs follow in a
//! process of their own, which is killed.
//!
//! `cargo xtask soak tail` does the same a million times.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use unspool_store::follow::{FileCursor, TranscriptTail};

use crate::kit::{Dice, Home};

/// How many actions an ordinary test does.
const ACTIONS: usize = 40_000;
/// After so many a new home is made.
const ROUND: usize = 2_000;
/// So many bytes at the start of a file are like those of no other.
const OWN: usize = 24;
/// How many files there are at once.
const FILES: usize = 4;

fn number(name: &str, usual: usize) -> usize {
    let said = std::env::var(name).ok();
    said.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A file as it is.
#[derive(Clone, Default)]
struct Model {
    text: Vec<u8>,
    /// Which file it is on disk.
    file: usize,
    /// It was renamed: its name leads nowhere.
    away: bool,
    gone: bool,
}

/// What somebody has read of a file.
#[derive(Clone, Default)]
struct Reader {
    /// What was handed out.
    handed: Vec<u8>,
    /// What was read of a line that had not ended.
    partial: Vec<u8>,
    file: usize,
}

impl Reader {
    /// The lines that are due: of the same file those behind what was handed out, of another
    /// one all.
    fn due(&mut self, model: &Model) -> Vec<Vec<u8>> {
        if model.away || model.gone {
            return Vec::new();
        }
        let rest = model.text.strip_prefix(&self.handed[..]);
        let same = rest.is_some_and(|rest| rest.starts_with(&self.partial));
        let nothing = self.handed.is_empty() && self.partial.is_empty();
        let goes_on = nothing || (same && self.file == model.file);
        if !goes_on {
            *self = Reader::default();
        }
        self.file = model.file;
        let new = &model.text[self.handed.len()..];
        let ended = new.iter().rposition(|byte| *byte == b'\n');
        let (ended, partial) = new.split_at(ended.map_or(0, |at| at + 1));
        self.partial = partial.to_vec();
        self.handed.extend_from_slice(ended);
        let mut lines: Vec<Vec<u8>> = ended.split(|byte| *byte == b'\n').map(Vec::from).collect();
        lines.pop();
        lines
    }
}

/// A cursor that was kept, and what was handed out then.
#[derive(Clone, Default)]
struct Kept {
    cursor: FileCursor,
    reader: Reader,
}

struct Stage {
    dice: Dice,
    step: usize,
    files: usize,
    paths: Vec<PathBuf>,
    models: Vec<Model>,
    readers: Vec<Reader>,
    tails: Vec<TranscriptTail>,
    kept: Vec<Kept>,
    seen: [usize; 16],
}

impl Stage {
    fn new(home: &Home, seed: u64, step: usize) -> Stage {
        let paths: Vec<PathBuf> = (0..FILES)
            .map(|at| home.path().join(format!("{at}.jsonl")))
            .collect();
        Stage {
            dice: Dice(seed),
            step,
            files: 1,
            tails: paths.iter().map(|path| TranscriptTail::new(path)).collect(),
            models: vec![
                Model {
                    gone: true,
                    ..Model::default()
                };
                FILES
            ],
            readers: vec![Reader::default(); FILES],
            kept: vec![Kept::default(); FILES],
            paths,
            seen: [0; 16],
        }
    }

    /// Text that is like no other: two files must differ where one is taken for the other.
    fn line(&mut self) -> Vec<u8> {
        let long = match self.dice.below(20) {
            0 => 3_000,
            1 => 400,
            _ => 8,
        };
        let text = "日x".repeat(self.dice.below(long));
        format!("{:010}.{:013} {text}", self.step, self.dice.below(1 << 40)).into_bytes()
    }

    fn act(&mut self) {
        let at = self.dice.below(FILES);
        let action = self.dice.below(24);
        let kind = match action {
            0..=5 => {
                let line = self.line();
                self.append(at, &[&line[..], b"\n"].concat());
                0
            }
            6..=7 => {
                let line = self.line();
                self.append(at, &line);
                1
            }
            8 => {
                // The same bytes under the same number of a file are the same file to anybody:
                // each begins with something of its own.
                if self.models[at].text.len() >= OWN {
                    self.append(at, b"\n");
                }
                2
            }
            9 => {
                // Half of a letter.
                let mut line = self.line();
                line.extend_from_slice(&"日".as_bytes()[..1 + self.dice.below(2)]);
                self.append(at, &line);
                3
            }
            10 => {
                let mut many = Vec::new();
                for _ in 0..self.dice.below(40) {
                    many.extend(self.line());
                    many.push(b'\n');
                    self.step += 1;
                }
                self.append(at, &many);
                4
            }
            11 => {
                self.rename(at);
                5
            }
            12 => {
                self.copy_and_cut(at);
                6
            }
            13 => {
                self.recreate(at);
                7
            }
            14 => {
                self.replace(at);
                8
            }
            15 => {
                self.fork(at);
                9
            }
            16 => {
                self.cut_within(at);
                10
            }
            17 => {
                self.delete(at);
                11
            }
            18 => {
                self.readers[at].partial = Vec::new();
                self.tails[at] = TranscriptTail::resume(&self.paths[at], self.tails[at].cursor());
                12
            }
            19 => {
                self.crash(at);
                13
            }
            20 => {
                self.kept[at] = Kept {
                    cursor: self.tails[at].cursor(),
                    reader: Reader {
                        partial: Vec::new(),
                        ..self.readers[at].clone()
                    },
                };
                14
            }
            // Nothing happens for a while.
            _ => 15,
        };
        self.seen[kind] += 1;
        if self.dice.below(3) > 0 {
            self.poll(at);
        }
    }

    fn poll(&mut self, at: usize) {
        let mut lines = Vec::new();
        let polled = self.tails[at].poll(|line| lines.push(line.bytes.to_vec()));
        let due = self.readers[at].due(&self.models[at]);
        let polled = polled.unwrap();
        assert_eq!(polled.lines as usize, lines.len());
        assert!(
            lines == due,
            "step {}, file {at}: handed out {} lines, due {}\n{:?}\n{:?}",
            self.step,
            lines.len(),
            due.len(),
            lines.first().map(|line| String::from_utf8_lossy(line)),
            due.first().map(|line| String::from_utf8_lossy(line)),
        );
    }

    fn away(&self, at: usize) -> PathBuf {
        self.paths[at].with_extension("away")
    }

    /// Where the file is, whatever its name.
    fn real(&self, at: usize) -> PathBuf {
        match self.models[at].away {
            true => self.away(at),
            false => self.paths[at].clone(),
        }
    }

    fn append(&mut self, at: usize, bytes: &[u8]) {
        let options = File::options().append(true).create(true).clone();
        let mut file = options.open(self.real(at)).unwrap();
        file.write_all(bytes).unwrap();
        self.models[at].text.extend_from_slice(bytes);
        self.models[at].gone = false;
    }

    /// The model of another file in the same place.
    fn anew(&mut self, at: usize, text: Vec<u8>) {
        self.files += 1;
        let file = self.files;
        self.models[at] = Model {
            text,
            file,
            ..Model::default()
        };
    }

    fn rename(&mut self, at: usize) {
        let (name, away) = (self.paths[at].clone(), self.away(at));
        let moved = match self.models[at].away {
            true => fs::rename(away, name),
            false => fs::rename(name, away),
        };
        // There may be nothing to rename.
        if moved.is_ok() {
            self.models[at].away ^= true;
        }
    }

    fn home(&mut self, at: usize) {
        if self.models[at].away {
            self.rename(at);
        }
    }

    /// What rotation does to a file that somebody keeps open.
    fn copy_and_cut(&mut self, at: usize) {
        self.home(at);
        let path = &self.paths[at];
        if fs::copy(path, path.with_extension("1")).is_ok() {
            File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_len(0)
                .unwrap();
            self.models[at].text.clear();
            if self.dice.below(2) == 0 {
                let line = self.line();
                self.append(at, &[&line[..], b"\n"].concat());
            }
        }
    }

    fn recreate(&mut self, at: usize) {
        self.home(at);
        let _ = fs::remove_file(&self.paths[at]);
        let mut text = self.line();
        if self.dice.below(3) > 0 {
            text.push(b'\n');
        }
        fs::write(&self.paths[at], &text).unwrap();
        self.anew(at, text);
    }

    fn replace(&mut self, at: usize) {
        self.home(at);
        let mut text = Vec::new();
        for _ in 0..self.dice.below(5) {
            text.extend(self.line());
            text.push(b'\n');
        }
        let other = self.paths[at].with_extension("new");
        fs::write(&other, &text).unwrap();
        fs::rename(other, &self.paths[at]).unwrap();
        self.anew(at, text);
    }

    /// Another file begins with the same lines.
    fn fork(&mut self, at: usize) {
        let to = (at + 1 + self.dice.below(FILES - 1)) % FILES;
        self.home(at);
        self.home(to);
        if !self.paths[at].exists() {
            return;
        }
        let _ = fs::remove_file(&self.paths[to]);
        fs::copy(&self.paths[at], &self.paths[to]).unwrap();
        let text = self.models[at].text.clone();
        self.anew(to, text);
        // It is followed from its top, as any new file.
        self.tails[to] = TranscriptTail::new(&self.paths[to]);
        self.readers[to] = Reader::default();
        self.kept[to] = Kept::default();
    }

    /// A file that is cut somewhere in what was handed out, and then grows again.
    fn cut_within(&mut self, at: usize) {
        self.home(at);
        let len = self.models[at].text.len();
        if len <= OWN || !self.paths[at].exists() {
            return;
        }
        let keep = match self.dice.below(4) {
            0 => 0,
            _ => OWN + self.dice.below(len - OWN),
        };
        let file = File::options().write(true).open(&self.paths[at]).unwrap();
        file.set_len(keep as u64).unwrap();
        self.models[at].text.truncate(keep);
    }

    fn delete(&mut self, at: usize) {
        self.home(at);
        if fs::remove_file(&self.paths[at]).is_ok() {
            self.anew(at, Vec::new());
            self.models[at].gone = true;
        }
    }

    /// Started again from a cursor that was kept earlier: what came since comes again.
    fn crash(&mut self, at: usize) {
        let kept = self.kept[at].clone();
        self.tails[at] = TranscriptTail::resume(&self.paths[at], kept.cursor);
        self.readers[at] = kept.reader;
    }
}

#[test]
fn whatever_is_done_to_files_every_line_is_handed_out_once() {
    let actions = number("UNSPOOL_ACTIONS", ACTIONS);
    let seed = number("UNSPOOL_SEED", 1) as u64;
    let mut seen = [0; 16];
    let mut step = 0;
    while step < actions {
        let home = Home::new();
        let round = step as u64 / ROUND as u64;
        let mut stage = Stage::new(&home, (seed * 1_000_003 + round) | 1, step);
        for _ in 0..ROUND.min(actions - step) {
            stage.step += 1;
            stage.act();
        }
        (0..FILES).for_each(|at| stage.poll(at));
        for (sum, more) in seen.iter_mut().zip(stage.seen) {
            *sum += more;
        }
        step += ROUND;
    }
    // Every kind of action must have had its turn.
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    println!("{actions} actions, seed {seed}: {seen:?}");
}

/// What the process of a follower has done, kept together with its cursor: how much of its
/// output counts.
const STATE: &str = "UNSPOOL_FOLLOWER";

/// Not a test: the process that is killed. It copies the lines of a file and keeps its place.
#[test]
fn follower() {
    let Ok(dir) = std::env::var(STATE) else {
        return;
    };
    let dir = Path::new(&dir);
    let (cursor, written) = load(dir).unwrap_or_default();
    let mut tail = TranscriptTail::resume(&dir.join("s.jsonl"), cursor);
    let mut out = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(dir.join("out"))
        .unwrap();
    // What was written after the place was kept last is written again.
    out.set_len(written).unwrap();
    let mut written = written;
    std::io::Seek::seek(&mut out, std::io::SeekFrom::Start(written)).unwrap();
    loop {
        let mut lines = Vec::new();
        tail.poll(|line| {
            lines.extend_from_slice(line.bytes);
            lines.push(b'\n');
        })
        .unwrap();
        if lines.is_empty() {
            std::thread::yield_now();
            continue;
        }
        out.write_all(&lines).unwrap();
        written += lines.len() as u64;
        save(dir, tail.cursor(), written);
    }
}

fn save(dir: &Path, cursor: FileCursor, written: u64) {
    let FileCursor {
        identity,
        head,
        last,
        offset,
        lines,
    } = cursor;
    let text = format!("{identity} {head} {last} {offset} {lines} {written}");
    fs::write(dir.join("place.new"), text).unwrap();
    fs::rename(dir.join("place.new"), dir.join("place")).unwrap();
}

fn load(dir: &Path) -> Option<(FileCursor, u64)> {
    let text = fs::read_to_string(dir.join("place")).ok()?;
    let numbers: Vec<u64> = text.split(' ').map(|word| word.parse().unwrap()).collect();
    let [identity, head, last, offset, lines, written] = numbers[..] else {
        return None;
    };
    let cursor = FileCursor {
        identity,
        head,
        last,
        offset,
        lines: lines as u32,
    };
    Some((cursor, written))
}

struct Follower(Child);

impl Follower {
    fn start(dir: &Path) -> Follower {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "follower::follower", "--nocapture"])
            .env(STATE, dir)
            .stdout(Stdio::null())
            .spawn();
        Follower(child.unwrap())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_follower_that_is_killed_again_and_again_hands_out_every_line_once() {
    let kills = number("UNSPOOL_KILLS", 12);
    let home = Home::new();
    let dir = home.path();
    let mut dice = Dice(7 + kills as u64);
    let mut wanted = Vec::new();
    let path = dir.join("s.jsonl");
    fs::write(&path, "").unwrap();
    let mut step = 0;
    for _ in 0..kills {
        let follower = Follower::start(dir);
        let end = std::time::Instant::now()
            + std::time::Duration::from_millis(40 + dice.below(120) as u64);
        while std::time::Instant::now() < end {
            step += 1;
            let mut bytes = format!("{step} {}", "日".repeat(dice.below(300))).into_bytes();
            bytes.push(b'\n');
            let cut = dice.below(bytes.len());
            let mut file = File::options().append(true).open(&path).unwrap();
            file.write_all(&bytes[..cut]).unwrap();
            std::thread::yield_now();
            file.write_all(&bytes[cut..]).unwrap();
            wanted.extend(bytes);
        }
        drop(follower);
    }
    let last = Follower::start(dir);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while load(dir).is_none_or(|(_, written)| written < wanted.len() as u64) {
        assert!(
            std::time::Instant::now() < end,
            "it does not come to the end"
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    drop(last);
    assert!(fs::read(dir.join("out")).unwrap() == wanted);
    println!("{kills} kills, {step} lines, every line once");
}
