//! The tables say what the model says, however they came about, and nobody can change them.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use unspool_index::tables::sql_query::{ReadOnlyTables, SqlCell, SqlQueryError, SqlRowSink};
use unspool_index::tables::sql_views::VIEWS;
use unspool_index::tables::{SessionTables, TablesRefresh};
use unspool_index::usage_cache::UsageCache;
use unspool_model::price::Prices;
use unspool_model::time::Time;
use unspool_model::view::status::StatusSignals;
use unspool_model::view::{files, session_row, turns};
use unspool_store::session_with_agents::read_session_with_agents;
use unspool_store::{FoundSessionFiles, find};
use unspool_testkit::random::Random;
use unspool_testkit::script;
use unspool_testkit::tree::{self, Options};

/// An answer as text, a cell behind the other.
#[derive(Default)]
struct Told(Vec<Vec<String>>);

impl SqlRowSink for Told {
    fn columns(&mut self, _: &[&str]) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, cells: &[SqlCell<'_>]) -> io::Result<()> {
        let text = |cell: &SqlCell<'_>| match cell {
            SqlCell::Null => "NULL".to_owned(),
            SqlCell::Integer(number) => number.to_string(),
            SqlCell::Real(number) => format!("{number:?}"),
            SqlCell::Text(text) => text.to_string(),
            SqlCell::Blob(bytes) => format!("{bytes:?}"),
        };
        self.0.push(cells.iter().map(text).collect());
        Ok(())
    }
}

fn ask(asked: &ReadOnlyTables, sql: &str) -> Vec<Vec<String>> {
    let mut told = Told::default();
    let rows = asked.ask(sql, &mut told).unwrap();
    assert_eq!(rows as usize, told.0.len());
    told.0
}

fn number(asked: &ReadOnlyTables, sql: &str) -> u64 {
    ask(asked, sql)[0][0].parse().unwrap()
}

fn found(config: &Path) -> FoundSessionFiles {
    let mut found = find(&[config.to_owned()]);
    found.identify_agents();
    found
}

/// What the program knows before it makes tables.
fn walked(config: &Path) -> (FoundSessionFiles, UsageCache) {
    let found = find(&[config.to_owned()]);
    let mut spendings = UsageCache::open(None, true);
    spendings.update(found.clone());
    (found, spendings)
}

/// Brings tables up to date in all their parts.
fn refresh(tables: &mut SessionTables, config: &Path) -> TablesRefresh {
    let (found, spendings) = walked(config);
    let done = tables
        .refresh(&found, &spendings, Prices::bundled(), &mut |_, _| ())
        .unwrap();
    assert!(!done.held_up);
    done
}

fn fresh(config: &Path) -> ReadOnlyTables {
    let mut tables = SessionTables::in_memory().unwrap();
    refresh(&mut tables, config);
    tables.read_only().unwrap()
}

fn kept(folder: &Path) -> SessionTables {
    let (tables, notice) = SessionTables::open(folder).unwrap();
    assert_eq!(notice, None);
    tables
}

/// Everything in all views, in an order that only depends on it.
fn everything(asked: &ReadOnlyTables) -> Vec<Vec<Vec<String>>> {
    let all = |name: &str| {
        let mut rows = ask(asked, &format!("SELECT * FROM {name}"));
        rows.sort();
        rows
    };
    VIEWS.iter().map(|view| all(view.name)).collect()
}

fn small(seed: u64) -> Options {
    Options {
        seed,
        target_bytes: 150_000,
        sessions: 9,
        ..Options::small()
    }
}

#[test]
fn the_tables_say_what_the_views_of_the_model_say() {
    let dir = tempfile::tempdir().unwrap();
    tree::generate(dir.path(), &Options::small()).unwrap();
    let asked = fresh(dir.path());
    let found = found(dir.path());
    let mut sessions = 0;
    for file in &found.sessions {
        let family = read_session_with_agents(&found, file).unwrap();
        let main = &family.main.session;
        if !main.is_conversation() {
            continue;
        }
        sessions += 1;
        let titles = HashMap::new();
        let signals = StatusSignals::default();
        let row = family
            .used(|files| session_row::row(files, &titles, Prices::bundled(), &signals, Time(0)));
        let told = ask(
            &asked,
            &format!(
                "SELECT turns, messages, calls, agents, input, output, cache_read,
                        cache_write_5m, cache_write_1h, compactions, coalesce(context_tokens, 0)
                 FROM sessions WHERE path = '{}'",
                file.path.display()
            ),
        );
        let usage = row.used.all().usage;
        let expected = [
            row.turns as u64,
            row.messages as u64,
            row.calls as u64,
            row.agents as u64,
            usage.input,
            usage.output,
            usage.cache_read,
            usage.cache_write_5m,
            usage.cache_write_1h,
            row.compactions as u64,
            row.context_tokens.unwrap_or(0),
        ];
        assert_eq!(told, [expected.map(|number| number.to_string())]);
        let path = file.path.display();
        let sql = format!("SELECT cost_usd FROM sessions WHERE path = '{path}'");
        let cost = row
            .used
            .all()
            .cost
            .total()
            .map_or("NULL".to_owned(), |cost| format!("{:?}", cost.usd()));
        assert_eq!(ask(&asked, &sql), [[cost]]);
        let mut all = vec![(None, &family.main)];
        let loaded = family.agents.iter();
        all.extend(loaded.map(|agent| (Some(agent.id.as_str()), &agent.loaded)));
        for (agent, loaded) in all {
            let whose = agent.map_or("agent IS NULL".to_owned(), |id| format!("agent = '{id}'"));
            let count = |what: &str, from: &str| {
                let sql = format!(
                    "SELECT {what} FROM {from} WHERE session = '{}' AND {whose}",
                    file.id
                );
                number(&asked, &sql)
            };
            let session = &loaded.session;
            let options = turns::TurnOptions::default();
            let turns = turns::turns(session, &loaded.source, options);
            assert_eq!(count("count(*)", "turns"), turns.len() as u64);
            let replies = session.messages.iter().filter(|one| one.thread == 0);
            assert_eq!(
                count("coalesce(sum(role = 'assistant'), 0)", "messages"),
                replies.count() as u64
            );
            let thread = |call: &&unspool_model::session::ToolCall| {
                session.records[call.record as usize].thread == 0
            };
            let calls = session.calls.iter().filter(thread);
            assert_eq!(count("count(*)", "calls"), calls.count() as u64);
            let files = files::files(session, &loaded.source);
            let edits: usize = files.iter().map(|file| file.edits).sum();
            assert_eq!(count("count(*)", "files"), files.len() as u64);
            assert_eq!(count("coalesce(sum(edits), 0)", "files"), edits as u64);
        }
    }
    assert_eq!(number(&asked, "SELECT count(*) FROM sessions"), sessions);
    assert!(sessions > 20);
}

#[test]
fn usage_holds_every_message_that_counts_once() {
    let dir = tempfile::tempdir().unwrap();
    tree::generate(dir.path(), &Options::small()).unwrap();
    let asked = fresh(dir.path());
    let (_, spendings) = walked(dir.path());
    let counted = &spendings.ledger().counted;
    let sum: u64 = counted.iter().map(|one| one.usage().total()).sum();
    let sql =
        "SELECT sum(input + output + cache_read + cache_write_5m + cache_write_1h) FROM usage";
    assert_eq!(number(&asked, sql), sum);
    let rows = number(&asked, "SELECT count(*) FROM usage");
    assert_eq!(rows, counted.len() as u64);
    assert_eq!(number(&asked, "SELECT count(DISTINCT id) FROM usage"), rows);
    let unknown = "SELECT count(*) FROM usage WHERE cost_usd = 0 AND output > 0";
    assert_eq!(number(&asked, unknown), 0, "an unknown price is no price");
}

#[test]
fn other_prices_make_other_costs() {
    let (dir, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    tree::generate(dir.path(), &small(5)).unwrap();
    let (found, spendings) = walked(dir.path());
    let none = Prices::new("2026-01-01", "a test", []);
    // What needed no model cost nothing, whatever the prices.
    let sums =
        "SELECT count(nullif(s.cost_usd, 0)), (SELECT count(nullif(cost_usd, 0)) FROM turns),
                       (SELECT count(nullif(cost_usd, 0)) FROM usage) FROM sessions s";
    for (prices, known) in [(Prices::bundled(), true), (&none, false)] {
        let mut tables = kept(own.path());
        let mut refresh = || {
            tables
                .refresh(&found, &spendings, prices, &mut |_, _| ())
                .unwrap()
                .read
        };
        assert!(refresh() > 3);
        assert_eq!(refresh(), 0);
        let told = ask(&tables.read_only().unwrap(), sums);
        let some = told[0].iter().map(|count| count != "0");
        assert!(some.eq([known; 3]), "{told:?}");
    }
}

#[test]
fn what_did_not_change_is_not_read_again() {
    let (dir, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    tree::generate(dir.path(), &small(3)).unwrap();
    let first = refresh(&mut kept(own.path()), dir.path());
    assert!(first.read > 5 && first.warnings.is_empty());
    assert_eq!(refresh(&mut kept(own.path()), dir.path()).read, 0);
    let path = found(dir.path()).sessions[2].path.clone();
    append(&path, &script::jsonl("you: and now?\nclaude: now this"));
    assert_eq!(refresh(&mut kept(own.path()), dir.path()).read, 1);
    let asked = kept(own.path()).read_only().unwrap();
    let sql = "SELECT reply FROM turns WHERE prompt = 'and now?'";
    assert_eq!(ask(&asked, sql), [["now this"]]);
    fs::remove_file(&path).unwrap();
    let done = refresh(&mut kept(own.path()), dir.path());
    assert_eq!(done.gone, 1);
    let sql = "SELECT reply FROM turns WHERE prompt = 'and now?'";
    let asked = kept(own.path()).read_only().unwrap();
    assert!(ask(&asked, sql).is_empty());
}

fn append(path: &Path, bytes: &[u8]) {
    let mut file = File::options().append(true).open(path).unwrap();
    file.write_all(bytes).unwrap();
}

/// Something happens to a tree.
fn happen(config: &Path, random: &mut Random, step: u64) {
    let found = found(config);
    let mut paths: Vec<PathBuf> = found
        .sessions
        .iter()
        .map(|file| file.path.clone())
        .collect();
    paths.extend(found.agents.iter().map(|agent| agent.path.clone()));
    let path = random.pick(&paths).clone();
    let text =
        format!("you: step {step}\nclaude: done [Read {step}.rs]\nresult: Read {step}.rs ok");
    let lines = script::jsonl(&text);
    match random.below(8) {
        0..=2 => append(&path, &lines),
        3 => append(&path, &lines[..lines.len() / 2]),
        4 => {
            let size = fs::metadata(&path).unwrap().len();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_len(random.below(size)).unwrap();
        }
        5 => fs::remove_file(&path).unwrap(),
        6 => {
            // A copy under another name, as a fork has it.
            let copy = path.with_file_name(format!("0000{step:04}-0000-4000-8000-0000.jsonl"));
            fs::copy(&path, copy).unwrap();
        }
        _ => {
            // A title for a line of another file, as clients before 2.0 gave them.
            let uuid = first_uuid(&path);
            let line = format!(
                "{{\"type\":\"summary\",\"summary\":\"Named by step {step}\",\"leafUuid\":\"{uuid}\"}}\n"
            );
            let other: &PathBuf = random.pick(&paths);
            append(other, line.as_bytes());
        }
    }
}

fn first_uuid(path: &Path) -> String {
    let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    let (_, rest) = text.split_once("\"uuid\":\"").unwrap_or(("", ""));
    rest.chars().take_while(|one| *one != '"').collect()
}

#[test]
fn bringing_up_to_date_gives_what_building_anew_gives() {
    for seed in 1..4 {
        let (dir, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        tree::generate(dir.path(), &small(seed)).unwrap();
        let mut random = Random::new(seed);
        for step in 0..12 {
            let mut tables = kept(own.path());
            refresh(&mut tables, dir.path());
            let now = everything(&tables.read_only().unwrap());
            let anew = everything(&fresh(dir.path()));
            for (view, (now, anew)) in VIEWS.iter().zip(now.iter().zip(&anew)) {
                for (now, anew) in now.iter().zip(anew) {
                    assert_eq!(now, anew, "{} seed {seed} step {step}", view.name);
                }
                assert_eq!(now.len(), anew.len(), "{} seed {seed}", view.name);
            }
            for _ in 0..=random.below(3) {
                happen(dir.path(), &mut random, step);
            }
        }
    }
}

#[test]
fn of_several_at_once_one_reads_and_all_end_with_all_of_it() {
    let (dir, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    tree::generate(dir.path(), &small(8)).unwrap();
    let read = std::thread::scope(|scope| {
        let one = || refresh(&mut kept(own.path()), dir.path()).read;
        let all = [scope.spawn(one), scope.spawn(one), scope.spawn(one)];
        all.map(|one| one.join().unwrap())
    });
    let mut tables = kept(own.path());
    assert_eq!(refresh(&mut tables, dir.path()).read, 0);
    let now = everything(&tables.read_only().unwrap());
    assert_eq!(now, everything(&fresh(dir.path())));
    assert_eq!(read.iter().filter(|read| **read > 0).count(), 1, "{read:?}");
}

#[test]
fn nobody_can_write() {
    let own = tempfile::tempdir().unwrap();
    let inner = own.path().join("inner.db");
    let inner = inner.display();
    let on_disk = kept(own.path()).read_only().unwrap();
    let in_memory = SessionTables::in_memory().unwrap().read_only().unwrap();
    for sql in [
        "INSERT INTO families VALUES (1, x'', 1, 1, '', '')",
        "UPDATE turns_rows SET n = 1",
        "UPDATE sessions SET title = ''",
        "DELETE FROM calls_rows",
        "DROP VIEW sessions",
        "CREATE TABLE t (x)",
        "CREATE TEMP TABLE t (x)",
        "CREATE TEMP VIEW v AS SELECT 1",
        &format!("ATTACH '{inner}' AS other"),
        "DETACH main",
        "PRAGMA writable_schema = 1",
        "PRAGMA query_only = 0",
        "PRAGMA user_version = 7",
        "PRAGMA journal_mode = delete",
        "VACUUM",
        &format!("VACUUM INTO '{inner}'"),
        "REINDEX",
        "ANALYZE",
        "BEGIN IMMEDIATE",
        "SAVEPOINT s",
        "WITH x AS (SELECT 1) INSERT INTO given SELECT 1, 1, 1 FROM x",
        "INSERT INTO given VALUES (1, 1, 1) RETURNING leaf",
    ] {
        for asked in [&on_disk, &in_memory] {
            let refused = asked.ask(sql, &mut Told::default()).unwrap_err();
            assert!(matches!(refused, SqlQueryError::Writes), "{sql}: {refused}");
        }
        assert!(
            matches!(ReadOnlyTables::check(sql), Err(SqlQueryError::Writes)),
            "{sql}"
        );
    }
    assert!(!fs::exists(own.path().join("inner.db")).unwrap());
    let error = on_disk.ask("SELECT load_extension('x')", &mut Told::default());
    assert!(error.unwrap_err().to_string().contains("load_extension"));
}

#[test]
fn a_question_is_one_statement_without_gaps() {
    let asked = SessionTables::in_memory().unwrap().read_only().unwrap();
    let refused = |sql: &str| asked.ask(sql, &mut Told::default()).unwrap_err();
    assert!(matches!(
        refused("SELECT 1; SELECT 2"),
        SqlQueryError::Several
    ));
    assert!(matches!(
        refused("SELECT 1; DROP TABLE x"),
        SqlQueryError::Several
    ));
    assert!(matches!(refused(" -- nothing"), SqlQueryError::Empty));
    assert!(matches!(refused("SELECT ?"), SqlQueryError::Open));
    assert!(matches!(
        refused("SELECT 1, nope FROM sessions"),
        SqlQueryError::Sql { at: Some(10), .. }
    ));
    assert_eq!(ask(&asked, "SELECT 1; -- end"), [["1"]]);
    let recursive = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3)
                     SELECT sum(x) FROM c";
    assert_eq!(ask(&asked, recursive), [["6"]]);
    let columns = ask(&asked, "SELECT name FROM pragma_table_info('usage')");
    assert_eq!(columns[0], ["session"]);
}

#[test]
fn no_secret_gets_into_the_tables() {
    let (dir, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let secret = ["ghp_", "k3Jd82mXq0ZpL7vTn5RbY1sWc9EuHa4GfQ6o"].concat();
    let far = "x ".repeat(230);
    let text = format!(
        "you: use {secret} here\nclaude: {far} {secret} as you say [Bash curl -H {secret}]\n\
         result: Bash ok\nclaude: it was {secret}\ntitle: about {secret}"
    );
    let project = dir.path().join("projects/-p");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("s.jsonl"), script::jsonl(&text)).unwrap();
    let mut tables = kept(own.path());
    assert_eq!(refresh(&mut tables, dir.path()).read, 1);
    let asked = tables.read_only().unwrap();
    let prompt = ask(&asked, "SELECT prompt FROM turns");
    assert!(prompt[0][0].starts_with("use [REDACTED"), "{prompt:?}");
    for entry in fs::read_dir(own.path()).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(&secret[..20]));
    }
}

#[test]
fn texts_are_cut_and_times_are_text() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("projects/-p");
    fs::create_dir_all(&project).unwrap();
    let text = format!("you: {}\nclaude: ok", "日".repeat(900));
    fs::write(project.join("s.jsonl"), script::jsonl(&text)).unwrap();
    let asked = fresh(dir.path());
    assert_eq!(number(&asked, "SELECT length(prompt) FROM turns"), 500);
    let at = &ask(&asked, "SELECT at FROM turns")[0][0];
    assert_eq!(Time::parse(at).unwrap().to_string(), *at);
}
