//! Whatever happens to a file, reading on gives what reading anew gives.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use unspool_index::facts::FileFactCache;
use unspool_index::file_mark::{MarkComparison, ReadMark, compare, open_unread};
use unspool_store::open::{self, FileStamp};
use unspool_testkit::random::Random;

use super::{Kept, load};

fn stamp(path: &Path) -> FileStamp {
    FileStamp::of(&fs::metadata(path).unwrap())
}

/// The whole lines of a file.
fn lines(path: &Path) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    bytes.truncate(memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1));
    bytes
}

/// How a file was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    Nothing,
    On,
    Anew,
}

/// Brings what is kept of a file up to date; the kept bytes are the lines themselves.
fn update(path: &Path, kept: &mut Option<Kept>) -> Did {
    let mark = kept.as_ref().map(|kept| kept.mark);
    if mark.is_some_and(|mark| compare(&mark, &stamp(path)) == MarkComparison::Same) {
        return Did::Nothing;
    }
    let news = open_unread(path, mark.as_ref()).unwrap();
    let mut bytes = vec![0; (news.mark.offset() - news.start) as usize];
    let read = open::read_at(&news.file, &mut bytes, news.start).unwrap();
    assert_eq!(read, bytes.len());
    let old = kept.take().filter(|_| news.goes_on());
    let mut blob = old.map_or(Vec::new(), |kept| kept.blob);
    assert_eq!(
        news.lines as usize,
        memchr::memchr_iter(b'\n', &blob).count()
    );
    blob.extend(bytes);
    let mut mark = news.mark;
    mark.cursor.lines = memchr::memchr_iter(b'\n', &blob).count() as u32;
    *kept = Some(Kept { mark, blob });
    if news.goes_on() { Did::On } else { Did::Anew }
}

/// A clock that never stands still, so that no two changes fall into one tick.
struct Clock(u64);

impl Clock {
    fn touch(&mut self, path: &Path) {
        self.0 += 1;
        let time =
            SystemTime::UNIX_EPOCH + Duration::from_nanos(1_700_000_000_000_000_000 + self.0);
        let file = File::options().append(true).open(path).unwrap();
        file.set_modified(time).unwrap();
    }
}

fn append(path: &Path, text: &str) {
    let mut file = File::options().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Something happens to a file.
fn happen(path: &Path, random: &mut Random, step: usize) {
    let line = format!("{step} {}", "日x".repeat(random.below(700) as usize));
    let size = fs::metadata(path).unwrap().len();
    match random.below(10) {
        0..=2 => append(path, &format!("{line}\n")),
        3 => append(path, &line),
        4 => append(path, &format!("{line}\n{line}\n{line}")),
        5 => append(path, "\n"),
        6 => fs::write(path, format!("new {line}\n")).unwrap(),
        7 => {
            let other = path.with_extension("new");
            fs::write(&other, format!("other {line}\n")).unwrap();
            fs::rename(other, path).unwrap();
        }
        8 => {
            // The inode is often given to the next file.
            fs::remove_file(path).unwrap();
            fs::write(path, format!("again {line}\n{line}\n")).unwrap();
        }
        _ => {
            let file = File::options().write(true).open(path).unwrap();
            file.set_len(random.below(size + 1)).unwrap();
        }
    }
}

/// One byte in the middle becomes another one.
fn same_size(path: &Path, random: &mut Random) {
    let mut bytes = fs::read(path).unwrap();
    let at = random.below(bytes.len() as u64) as usize;
    if let Some(byte) = bytes.get_mut(at).filter(|byte| **byte != b'\n') {
        *byte = b'#';
    }
    let mut file = File::options().write(true).open(path).unwrap();
    file.write_all(&bytes).unwrap();
}

#[test]
fn any_sequence_of_changes_gives_what_a_fresh_read_gives() {
    for seed in 1..30 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        fs::write(&path, "").unwrap();
        let mut random = Random::new(seed * 7919);
        let mut clock = Clock(seed);
        let mut kept = None;
        for step in 0..150 {
            if random.chance(10) {
                // Between two looks a file must not change in its middle and grow, too: only
                // its ends are remembered.
                update(&path, &mut kept);
                same_size(&path, &mut random);
                clock.touch(&path);
                update(&path, &mut kept);
            }
            happen(&path, &mut random, step);
            clock.touch(&path);
            if random.chance(70) {
                update(&path, &mut kept);
                let kept = kept.as_ref().unwrap();
                assert!(kept.blob == lines(&path), "seed {seed} step {step}");
                assert_eq!(kept.mark.offset() as usize, kept.blob.len());
            }
        }
    }
}

#[test]
fn the_same_holds_for_many_files_through_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("own");
    let mut random = Random::new(5);
    let mut clock = Clock(0);
    let paths: Vec<PathBuf> = (0..9).map(|n| dir.path().join(format!("{n}"))).collect();
    paths.iter().for_each(|path| fs::write(path, "").unwrap());
    for step in 0..60 {
        for _ in 0..random.below(6) {
            let path = random.pick(&paths);
            happen(path, &mut random.fork(), step);
            clock.touch(path);
        }
        let (mut facts, notice) = FileFactCache::open(&own, 1).unwrap();
        assert_eq!(notice, None);
        let (mut known, _) = load(&mut facts);
        let mut changed = Vec::new();
        for path in &paths {
            let mut kept = known.remove(path);
            if update(path, &mut kept) != Did::Nothing {
                let kept = kept.clone().unwrap();
                changed.push((path.clone(), kept.mark, kept.blob));
            }
            assert!(kept.unwrap().blob == lines(path), "step {step}");
        }
        assert!(known.is_empty());
        assert!(facts.save(&changed, &[]).unwrap());
    }
}

/// A file of some kilobytes and what is kept of it.
fn read_once() -> (tempfile::TempDir, PathBuf, Option<Kept>, Clock) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, format!("{}\n", "line ".repeat(40)).repeat(40)).unwrap();
    let mut clock = Clock(0);
    clock.touch(&path);
    let mut kept = None;
    assert_eq!(update(&path, &mut kept), Did::Anew);
    (dir, path, kept, clock)
}

#[test]
fn a_file_that_did_not_change_is_not_read() {
    let (_dir, path, mut kept, _) = read_once();
    assert_eq!(update(&path, &mut kept), Did::Nothing);
}

#[test]
fn a_file_that_grew_is_read_on() {
    let (_dir, path, mut kept, mut clock) = read_once();
    append(&path, "more\nhalf a li");
    clock.touch(&path);
    assert_eq!(update(&path, &mut kept), Did::On);
    let mark = kept.as_ref().unwrap().mark;
    assert_eq!(mark.size - mark.offset(), 9, "half a line is not covered");
    append(&path, "ne\n");
    clock.touch(&path);
    assert_eq!(update(&path, &mut kept), Did::On);
    assert!(kept.unwrap().blob == lines(&path));
}

#[test]
fn a_line_that_comes_to_its_end_elsewhere_is_read_as_it_is() {
    let (_dir, path, mut kept, mut clock) = read_once();
    append(&path, "half a line");
    clock.touch(&path);
    update(&path, &mut kept);
    // A client that was killed wrote half a line; the next one cuts it off and goes on.
    let end = lines(&path).len() as u64;
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(end).unwrap();
    append(&path, "another line, and longer\n");
    clock.touch(&path);
    assert_eq!(update(&path, &mut kept), Did::On);
    assert!(kept.unwrap().blob == lines(&path));
}

#[test]
fn a_change_in_the_middle_that_keeps_the_size_is_read_anew() {
    let (_dir, path, mut kept, mut clock) = read_once();
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    clock.touch(&path);
    assert_eq!(update(&path, &mut kept), Did::Anew);
    assert!(kept.unwrap().blob == lines(&path));
}

#[test]
fn a_mark_of_a_file_that_only_looks_alike_does_not_hold() {
    let (_dir, path, kept, _) = read_once();
    let mark = kept.unwrap().mark;
    let file = File::open(&path).unwrap();
    assert!(mark.holds(&file).unwrap());
    let mut other = mark;
    other.cursor.offset -= 1;
    assert!(!other.holds(&file).unwrap());
    fs::write(&path, "x".repeat(mark.size as usize + 1)).unwrap();
    assert!(!mark.holds(&file).unwrap());
}

#[test]
fn a_stamp_is_compared_in_all_its_parts() {
    let mut mark = ReadMark {
        size: 100,
        modified: 5,
        ..ReadMark::default()
    };
    mark.cursor.identity = 9;
    let was = mark.stamp();
    let now = |change: fn(&mut FileStamp)| {
        let mut stamp = was;
        change(&mut stamp);
        compare(&mark, &stamp)
    };
    assert_eq!(now(|_| ()), MarkComparison::Same);
    assert_eq!(now(|stamp| stamp.size = 101), MarkComparison::Grew);
    assert_eq!(now(|stamp| stamp.size = 99), MarkComparison::Other);
    assert_eq!(now(|stamp| stamp.modified = 6), MarkComparison::Other);
    assert_eq!(now(|stamp| stamp.modified = 4), MarkComparison::Other);
    let elsewhere = |stamp: &mut FileStamp| {
        *stamp = FileStamp {
            identity: 8,
            size: 101,
            ..*stamp
        }
    };
    assert_eq!(now(elsewhere), MarkComparison::Other);
}
