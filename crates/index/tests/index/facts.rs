//! The facts of files: kept, replaced, forgotten, and never in the way.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use unspool_index::facts::FileFactCache;
use unspool_index::file_mark::ReadMark;

use super::{Kept, load};

fn facts(folder: &Path) -> FileFactCache {
    let (facts, notice) = FileFactCache::open(folder, 1).unwrap();
    assert_eq!(notice, None);
    facts
}

fn mark(n: u64) -> ReadMark {
    let mut mark = ReadMark {
        size: n,
        modified: -1,
        ..ReadMark::default()
    };
    mark.cursor.identity = u64::MAX;
    mark.cursor.head = 1 << 63;
    mark.cursor.last = n;
    mark.cursor.offset = n;
    mark.cursor.lines = u32::MAX;
    mark
}

fn row(n: u64, text: &str) -> (PathBuf, ReadMark, Vec<u8>) {
    (format!("/p/{n}.jsonl").into(), mark(n), text.into())
}

fn all(facts: &mut FileFactCache) -> HashMap<PathBuf, Kept> {
    load(facts).0
}

#[test]
fn facts_come_back_as_they_were_given() {
    let dir = tempfile::tempdir().unwrap();
    let mut facts = facts(dir.path());
    assert!(facts.save(&[row(1, "one"), row(2, "")], &[]).unwrap());
    let known = all(&mut facts);
    let one = Kept {
        mark: mark(1),
        blob: b"one".to_vec(),
    };
    assert_eq!(known[Path::new("/p/1.jsonl")], one);
    assert_eq!(known[Path::new("/p/2.jsonl")].blob, b"");
    assert!(
        facts
            .save(&[row(1, "eins")], &["/p/2.jsonl".into()])
            .unwrap()
    );
    let known = all(&mut facts);
    assert_eq!(known.len(), 1);
    assert_eq!(known[Path::new("/p/1.jsonl")].blob, b"eins");
    assert!(facts.forget(Path::new("/p/1.jsonl")).unwrap());
    assert!(all(&mut facts).is_empty());
}

#[cfg(unix)]
#[test]
fn a_name_need_not_be_text() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    let mut facts = facts(dir.path());
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(b"/p/\xff\n.jsonl"));
    facts
        .save(&[(path.clone(), mark(1), vec![7])], &[])
        .unwrap();
    assert!(all(&mut facts).contains_key(&path));
}

#[test]
fn facts_of_another_format_are_none() {
    let dir = tempfile::tempdir().unwrap();
    facts(dir.path()).save(&[row(1, "one")], &[]).unwrap();
    let (mut newer, notice) = FileFactCache::open(dir.path(), 2).unwrap();
    assert!(notice.unwrap().to_string().contains("another version"));
    assert!(all(&mut newer).is_empty());
}

#[test]
fn writers_at_once_lose_nothing_and_never_fail() {
    let dir = tempfile::tempdir().unwrap();
    let work = |writer: u64| {
        let mut facts = facts(dir.path());
        for n in 0..25 {
            let row = row(writer * 100 + n, &"x".repeat(3000));
            while !facts.save(std::slice::from_ref(&row), &[]).unwrap() {}
            assert!(all(&mut facts).contains_key(&row.0));
        }
    };
    std::thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || work(writer));
        }
    });
    assert_eq!(all(&mut facts(dir.path())).len(), 100);
}

#[test]
fn a_writer_who_is_held_up_gives_up_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut facts = facts(dir.path());
    let other = rusqlite::Connection::open(dir.path().join("usage.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(!facts.save(&[row(1, "one")], &[]).unwrap());
    assert!(all(&mut facts).is_empty(), "reading is not held up");
    other.execute_batch("COMMIT").unwrap();
    assert!(facts.save(&[row(1, "one")], &[]).unwrap());
}

/// Damage that shows only when the rows are read.
#[cfg(unix)]
fn damage(folder: &Path) {
    let path = folder.join("usage.db");
    let size = fs::metadata(&path).unwrap().len();
    let file = File::options().write(true).open(&path).unwrap();
    const PAGE: u64 = 8192;
    let noise = [0xA5; 512];
    for page in 1..size / PAGE {
        std::os::unix::fs::FileExt::write_at(&file, &noise, page * PAGE).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn damage_that_shows_late_is_set_aside_too() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Vec<_> = (0..800).map(|n| row(n, &"x".repeat(2000))).collect();
    assert!(facts(dir.path()).save(&rows, &[]).unwrap());
    damage(dir.path());
    let mut facts = facts(dir.path());
    let (known, notice) = load(&mut facts);
    assert!(known.is_empty());
    assert!(notice.unwrap().to_string().contains("is damaged"));
    assert!(facts.save(&rows, &[]).unwrap());
    assert_eq!(load(&mut facts).0.len(), 800);
    assert!(dir.path().join("usage.db.aside").exists());
}

#[cfg(unix)]
#[test]
fn damage_that_shows_while_saving_is_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let rows: Vec<_> = (0..800).map(|n| row(n, &"x".repeat(2000))).collect();
    assert!(facts(dir.path()).save(&rows, &[]).unwrap());
    damage(dir.path());
    let mut facts = facts(dir.path());
    assert!(!facts.save(&rows, &[]).unwrap());
    assert!(facts.notice().unwrap().to_string().contains("is damaged"));
    assert!(facts.save(&rows, &[]).unwrap());
    assert!(facts.notice().is_none());
}

/// Versions of before kept names as they were, tokens and all.
#[test]
fn caches_from_before_names_were_masked_are_made_anew() {
    type Open = fn(&Path) -> Option<String>;
    let caches: [(&str, u32, u32, Open); 3] = [
        (
            "usage.db",
            0,
            1 << 20 | unspool_model::file_usage::FORMAT,
            |dir| {
                let format = unspool_model::file_usage::FORMAT;
                let (_, notice) = FileFactCache::open(dir, format).unwrap();
                notice.map(|told| told.to_string())
            },
        ),
        ("text.db", 0, 1, |dir| {
            let (_, notice) = unspool_index::text_index::TextIndex::open(dir).unwrap();
            notice.map(|told| told.to_string())
        }),
        // The rest of its number stands for the columns.
        ("tables.db", 0xFF_FFFF, 1 << 24, |dir| {
            let (_, notice) = unspool_index::tables::SessionTables::open(dir).unwrap();
            notice.map(|told| told.to_string())
        }),
    ];
    for (name, same, old, open) in caches {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(open(dir.path()), None, "{name}");
        let db = rusqlite::Connection::open(dir.path().join(name)).unwrap();
        let sql = "PRAGMA user_version";
        let now: u32 = db.query_row(sql, [], |row| row.get(0)).unwrap();
        let old = now & same | old;
        db.pragma_update(None, "user_version", old).unwrap();
        drop(db);
        let told = open(dir.path()).unwrap_or_default();
        assert!(told.contains("has another version"), "{name}: {told:?}");
        assert_eq!(open(dir.path()), None, "{name}");
    }
}
