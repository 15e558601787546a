//! A database is ready for use whatever stood in its place.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use unspool_index::db::{self, DatabaseSchema};
use unspool_testkit::random::Random;

const SCHEMA: DatabaseSchema = DatabaseSchema {
    name: "things.db",
    version: 3,
    sql: "CREATE TABLE things (n INTEGER PRIMARY KEY, what TEXT);",
};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn put(connection: &Connection, n: i64) {
    let sql = "INSERT INTO things VALUES (?, 'thing')";
    connection.execute(sql, [n]).unwrap();
}

fn count(connection: &Connection) -> i64 {
    let sql = "SELECT count(*) FROM things";
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn what_was_written_is_there_the_next_time() {
    let dir = folder();
    let inner = dir.path().join("deep/er");
    let opened = db::open(&inner, &SCHEMA).unwrap();
    assert_eq!(opened.notice, None);
    put(&opened.connection, 1);
    drop(opened);
    let opened = db::open(&inner, &SCHEMA).unwrap();
    assert_eq!((opened.notice, count(&opened.connection)), (None, 1));
    let read = db::open_read(&inner, &SCHEMA).unwrap().unwrap();
    assert_eq!(count(&read), 1);
    assert!(read.execute("DELETE FROM things", []).is_err());
}

#[test]
fn a_log_of_writes_is_used_and_a_large_one_is_emptied() {
    let dir = folder();
    let opened = db::open(dir.path(), &SCHEMA).unwrap();
    let sql = "PRAGMA journal_mode";
    let mode: String = opened
        .connection
        .query_row(sql, [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
    let log = dir.path().join("things.db-wal");
    let text = "x".repeat(2 << 20);
    let sql = "INSERT INTO things VALUES (1, ?)";
    opened.connection.execute(sql, [&text]).unwrap();
    assert!(fs::metadata(&log).unwrap().len() > 2 << 20);
    db::checkpoint_wal(&opened.connection, &opened.path);
    assert_eq!(fs::metadata(&log).unwrap().len(), 0);
}

/// What may stand in the place of a database, and what is said about it.
fn bad_ones(path: &Path) -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let mut random = Random::new(7);
    let noise = (0..9000).map(|_| random.next() as u8).collect();
    let good = fs::read(path).unwrap();
    let mut headless = good.clone();
    headless[..100].fill(0);
    vec![
        ("noise", noise, "is damaged"),
        ("text", b"not a database".repeat(99), "is damaged"),
        ("cut", good[..good.len() / 2].to_vec(), "is damaged"),
        ("headless", headless, "is damaged"),
        (
            "foreign",
            made("CREATE TABLE bookmarks (x)"),
            "is not an unspool cache",
        ),
        (
            "named",
            made("PRAGMA application_id=7"),
            "is not an unspool cache",
        ),
    ]
}

fn made(sql: &str) -> Vec<u8> {
    let dir = folder();
    let path = dir.path().join("x.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(sql).unwrap();
    drop(connection);
    fs::read(path).unwrap()
}

/// A database whose pages are all in its file.
fn good(dir: &Path) {
    let opened = db::open(dir, &SCHEMA).unwrap();
    for n in 0..2000 {
        put(&opened.connection, n);
    }
    let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
    opened.connection.query_row(sql, [], |_| Ok(())).unwrap();
}

#[test]
fn a_bad_file_is_set_aside_and_made_anew() {
    let dir = folder();
    let path = dir.path().join(SCHEMA.name);
    good(dir.path());
    for (name, bytes, why) in bad_ones(&path) {
        // With a log, its newer pages would hide the damage for now.
        let _ = fs::remove_file(dir.path().join("things.db-wal"));
        fs::write(&path, &bytes).unwrap();
        assert!(db::open_read(dir.path(), &SCHEMA).unwrap().is_none());
        let opened = db::open(dir.path(), &SCHEMA).unwrap();
        let notice = opened.notice.unwrap().to_string();
        assert!(notice.contains(why), "{name}: {notice}");
        assert!(notice.contains("things.db.aside"), "{notice}");
        assert_eq!(notice.lines().count(), 1);
        put(&opened.connection, 1);
        assert_eq!(count(&opened.connection), 1, "{name}");
        let aside = fs::read(dir.path().join("things.db.aside")).unwrap();
        assert!(aside == bytes, "{name}: the latest one is kept");
        drop(opened.connection);
        let again = db::open(dir.path(), &SCHEMA).unwrap();
        assert_eq!((again.notice, count(&again.connection)), (None, 1));
    }
}

/// Older versions kept what this one masks, so nothing of them may stay on the disk.
#[test]
fn a_file_of_another_version_is_deleted_with_what_was_set_aside() {
    for version in [2, 4] {
        let dir = folder();
        let older = DatabaseSchema { version, ..SCHEMA };
        let opened = db::open(dir.path(), &older).unwrap();
        let sql = "INSERT INTO things VALUES (1, 'walrus-in-a-name')";
        opened.connection.execute(sql, []).unwrap();
        drop(opened);
        assert!(holds(dir.path(), "walrus-in-a-name"), "it was written");
        for name in ["things.db.aside", "things.db.aside-wal"] {
            fs::write(dir.path().join(name), "walrus-in-a-name").unwrap();
        }
        assert!(db::open_read(dir.path(), &SCHEMA).unwrap().is_none());
        let opened = db::open(dir.path(), &SCHEMA).unwrap();
        let notice = opened.notice.unwrap().to_string();
        assert!(notice.contains("has another version"), "{notice}");
        assert_eq!(notice.lines().count(), 1);
        assert_eq!(count(&opened.connection), 0);
        put(&opened.connection, 1);
        assert!(!holds(dir.path(), "walrus-in-a-name"));
        drop(opened.connection);
        let again = db::open(dir.path(), &SCHEMA).unwrap();
        assert_eq!((again.notice, count(&again.connection)), (None, 1));
    }
}

/// Whether a file of a folder holds a text.
fn holds(folder: &Path, text: &str) -> bool {
    let files = fs::read_dir(folder).unwrap();
    let mut bytes = files.map(|file| fs::read(file.unwrap().path()).unwrap());
    bytes.any(|bytes| {
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    })
}

#[test]
fn a_file_that_was_begun_and_not_finished_is_finished() {
    let dir = folder();
    fs::write(dir.path().join(SCHEMA.name), "").unwrap();
    let opened = db::open(dir.path(), &SCHEMA).unwrap();
    assert_eq!((opened.notice, count(&opened.connection)), (None, 0));
}

#[test]
fn the_log_of_a_file_that_was_deleted_is_not_for_the_new_one() {
    let dir = folder();
    let opened = db::open(dir.path(), &SCHEMA).unwrap();
    put(&opened.connection, 1);
    drop(opened);
    assert!(dir.path().join("things.db-wal").exists());
    fs::remove_file(dir.path().join(SCHEMA.name)).unwrap();
    let opened = db::open(dir.path(), &SCHEMA).unwrap();
    assert_eq!((opened.notice, count(&opened.connection)), (None, 0));
}

#[test]
fn a_file_that_turns_out_to_be_damaged_is_renewed_once() {
    let dir = folder();
    good(dir.path());
    let first = db::open(dir.path(), &SCHEMA).unwrap();
    let second = db::open(dir.path(), &SCHEMA).unwrap();
    let (file, same) = (first.file, second.file);
    assert_eq!(file, same);
    drop((first, second));
    let renewed = db::renew(dir.path(), &SCHEMA, file).unwrap();
    assert!(renewed.notice.unwrap().to_string().contains("is damaged"));
    put(&renewed.connection, 1);
    let late = db::renew(dir.path(), &SCHEMA, same).unwrap();
    assert_eq!((late.notice, count(&late.connection)), (None, 1));
}

#[test]
fn many_may_open_a_new_or_bad_file_at_once() {
    for round in 0..12 {
        let dir = folder();
        if round % 2 == 1 {
            fs::write(dir.path().join(SCHEMA.name), "bad".repeat(3000)).unwrap();
        }
        let work = |n: i64| {
            let mut opened = db::open(dir.path(), &SCHEMA).unwrap();
            let path = opened.path.clone();
            let job = |work: &Connection| {
                work.execute("INSERT INTO things VALUES (?, '')", [n])
                    .map(drop)
            };
            while !db::write(&mut opened.connection, &path, job).unwrap() {}
            opened.notice.is_some()
        };
        let told = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|n| scope.spawn(move || work(n))).collect();
            let told = all.into_iter().map(|one| one.join().unwrap());
            told.filter(|told| *told).count()
        });
        assert_eq!(told, round % 2, "one of them tells");
        let opened = db::open(dir.path(), &SCHEMA).unwrap();
        assert_eq!(count(&opened.connection), 8, "round {round}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_to_go_on_without() {
    let dir = folder();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = db::open(&file.join("in"), &SCHEMA).unwrap_err();
    assert!(error.to_string().starts_with("cannot write the cache `"));
    fs::create_dir(dir.path().join(SCHEMA.name)).unwrap();
    let error = db::open(dir.path(), &SCHEMA).unwrap_err();
    assert!(
        error.to_string().ends_with("it is a folder, not a file"),
        "{error}"
    );
    assert!(!error.is_busy() && !error.is_damaged());
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_nobody_may_write_to_is_an_error_to_go_on_without() {
    let error = db::open(Path::new("/proc/self/unspool"), &SCHEMA).unwrap_err();
    assert!(error.to_string().contains("/proc/self/unspool"), "{error}");
}

#[cfg(unix)]
#[test]
fn files_and_folders_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = folder();
    let inner = dir.path().join("ours");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let opened = db::open(&inner, &SCHEMA).unwrap();
    put(&opened.connection, 1);
    assert_eq!(mode(&inner), 0o700);
    let names = |dir: &Path| -> Vec<_> {
        let entries = fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    assert_eq!(names(&inner).len(), 4, "{:?}", names(&inner));
    for path in names(&inner) {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    drop(opened);
    let path = inner.join(SCHEMA.name);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    db::open(&inner, &SCHEMA).unwrap();
    assert_eq!(mode(&path), 0o600, "a copy is closed to others again");
}
