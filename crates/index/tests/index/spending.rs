//! Tokens of all files, kept up to date.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use unspool_index::usage_cache::UsageCache;
use unspool_model::file_usage::FileUsage;
use unspool_model::view::usage::{CountedMessage, UsageLedger};
use unspool_store::find;
use unspool_testkit::random::Random;
use unspool_testkit::script;

struct Tree {
    dir: tempfile::TempDir,
}

impl Tree {
    fn new() -> Tree {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("claude/projects/-p")).unwrap();
        Tree { dir }
    }

    fn cache(&self) -> PathBuf {
        self.dir.path().join("own")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join("claude/projects/-p").join(name)
    }

    /// What a fresh look gives, with a cache or without.
    fn look(&self, cache: Option<&Path>) -> (Vec<(PathBuf, Vec<u8>)>, Vec<String>) {
        let mut all = UsageCache::open(cache, true);
        all.update(find::find(&[self.dir.path().join("claude")]));
        let notes = all.notes();
        (contents(&all), notes)
    }
}

fn contents(all: &UsageCache) -> Vec<(PathBuf, Vec<u8>)> {
    let pairs = all.sources().iter().zip(all.files());
    pairs
        .map(|(source, file)| (source.path.clone(), file.pack()))
        .collect()
}

/// What a ledger says, whatever the order in which it was told.
fn counted(ledger: &UsageLedger) -> Vec<String> {
    let one = |one: &CountedMessage| {
        let (file, at, model) = (one.file, one.at(), ledger.model(one));
        let marks = one.marks();
        format!("{file} {at:?} {:?} {model:?} {marks:?}", one.usage())
    };
    let mut all: Vec<String> = ledger.counted.iter().map(one).collect();
    all.sort_unstable();
    all
}

fn reply(nth: u64) -> String {
    format!(
        "{{\"type\":\"assistant\",\"uuid\":\"u{nth}\",\"cwd\":\"/p\",\"sessionId\":\"s\",\"timestamp\":\"2026-01-05T10:00:00.{:03}Z\",\"message\":{{\"id\":\"m{}\",\"role\":\"assistant\",\"model\":\"claude-opus-4-5\",\"usage\":{{\"input_tokens\":{nth},\"output_tokens\":3}}}}}}\n",
        nth % 1000,
        nth / 2
    )
}

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn whatever_happens_to_the_files_the_cache_says_what_a_fresh_read_says() {
    for seed in 0..12 {
        let tree = Tree::new();
        let mut random = Random::new(seed);
        let mut nth = 0;
        let mut live = UsageCache::open(None, true);
        for step in 0..40 {
            let path = tree.file(&format!("s{}.jsonl", random.below(3)));
            nth += 1;
            match random.below(8) {
                0 => append(&path, &reply(nth)[..30]),
                1 => append(&path, "\n"),
                2 => drop(fs::remove_file(&path)),
                3 => fs::write(&path, reply(nth)).unwrap(),
                4 => {
                    let other = tree.file("new.tmp");
                    fs::write(&other, reply(nth) + &reply(nth + 100)).unwrap();
                    fs::rename(&other, &path).unwrap();
                }
                5 => {
                    let mut options = OpenOptions::new();
                    options.write(true).create(true).truncate(false);
                    let file = options.open(&path).unwrap();
                    let size = file.metadata().unwrap().len();
                    file.set_len(size / 2).unwrap();
                }
                _ => append(&path, &reply(nth)),
            }
            let (fresh, _) = tree.look(None);
            let (kept, notes) = tree.look(Some(&tree.cache()));
            assert_eq!(kept, fresh, "seed {seed} step {step}");
            assert_eq!(notes, Vec::<String>::new());
            live.update(find::find(&[tree.dir.path().join("claude")]));
            assert_eq!(contents(&live), fresh, "live, seed {seed} step {step}");
            let counted = counted(live.ledger());
            // Who keeps no file in memory counts the same.
            for cache in [None, Some(tree.cache())] {
                let mut passing = UsageCache::open(cache.as_deref(), false);
                passing.update(find::find(&[tree.dir.path().join("claude")]));
                assert_eq!(
                    self::counted(passing.ledger()),
                    counted,
                    "seed {seed} step {step}"
                );
            }
        }
    }
}

#[test]
fn a_last_line_without_a_newline_counts_and_is_not_remembered() {
    let tree = Tree::new();
    let path = tree.file("s.jsonl");
    append(&path, &reply(2));
    append(&path, reply(4).trim_end());
    let messages = |spendings: &UsageCache| {
        spendings
            .files()
            .iter()
            .map(|file: &&FileUsage| UsageLedger::of(&[file]).counted.len())
            .sum::<usize>()
    };
    for _ in 0..2 {
        let mut all = UsageCache::open(Some(&tree.cache()), true);
        all.update(find::find(&[tree.dir.path().join("claude")]));
        assert_eq!(messages(&all), 2);
    }
    append(&path, "\n");
    append(&path, &reply(6));
    let mut all = UsageCache::open(Some(&tree.cache()), true);
    all.update(find::find(&[tree.dir.path().join("claude")]));
    assert_eq!(messages(&all), 3);
}

#[test]
fn a_damaged_cache_is_told_once_and_made_anew() {
    let tree = Tree::new();
    append(&tree.file("s.jsonl"), &reply(2));
    let (fresh, _) = tree.look(Some(&tree.cache()));
    // With its log, SQLite could mend the file by itself.
    let _ = fs::remove_file(tree.cache().join("usage.db-wal"));
    fs::write(
        tree.cache().join("usage.db"),
        "this is no database, but long enough to look at",
    )
    .unwrap();
    let (again, notes) = tree.look(Some(&tree.cache()));
    assert_eq!((again, notes.len()), (fresh.clone(), 1), "{notes:?}");
    let (last, notes) = tree.look(Some(&tree.cache()));
    assert_eq!((last, notes.len()), (fresh, 0));
}

#[test]
fn damage_that_shows_only_when_something_is_kept_is_told() {
    let tree = Tree::new();
    append(&tree.file("s.jsonl"), &reply(2));
    tree.look(Some(&tree.cache()));
    // The third page is the order of paths, which nobody needs to read all rows.
    let path = tree.cache().join("usage.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
    db.query_row(sql, [], |_| Ok(())).unwrap();
    drop(db);
    let mut bytes = fs::read(&path).unwrap();
    bytes[2 * 8192..3 * 8192].fill(0xA5);
    fs::write(&path, bytes).unwrap();
    let mut all = UsageCache::open(Some(&tree.cache()), true);
    assert_eq!(all.notes(), Vec::<String>::new());
    append(&tree.file("t.jsonl"), &reply(4));
    all.update(find::find(&[tree.dir.path().join("claude")]));
    let notes = all.notes();
    assert!(
        notes.len() == 1 && notes[0].contains("moved to"),
        "{notes:?}"
    );
    let (_, notes) = tree.look(Some(&tree.cache()));
    assert_eq!(notes, Vec::<String>::new());
}

#[test]
fn two_at_once_count_the_same() {
    let tree = Tree::new();
    for nth in 0..20 {
        append(&tree.file(&format!("s{nth}.jsonl")), &reply(nth * 2));
    }
    let (fresh, _) = tree.look(None);
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| tree.look(Some(&tree.cache()))))
            .collect();
        for job in jobs {
            let (seen, notes) = job.join().unwrap();
            assert_eq!(seen, fresh);
            assert_eq!(notes, Vec::<String>::new());
        }
    });
}

#[test]
fn a_folder_that_cannot_be_had_is_told_and_everything_is_counted() {
    let tree = Tree::new();
    append(&tree.file("s.jsonl"), &reply(2));
    fs::write(tree.cache(), "a file where the folder should be").unwrap();
    let (seen, notes) = tree.look(Some(&tree.cache()));
    assert_eq!(seen.len(), 1);
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[test]
fn helpers_of_the_client_cost_too() {
    let tree = Tree::new();
    append(&tree.file("s.jsonl"), &reply(2));
    fs::create_dir_all(tree.file("s/subagents")).unwrap();
    let script = script::jsonl("you: sum up\nclaude: summary\n");
    fs::write(tree.file("s/subagents/agent-acompact-1.jsonl"), script).unwrap();
    let (seen, _) = tree.look(None);
    assert_eq!(seen.len(), 2);
}
