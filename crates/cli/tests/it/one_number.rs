//! Tokens and cost of a session are one number, through whichever door they are asked for.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use unspool_testkit::home::Home;

use crate::counting::{machine, rows};
use crate::home;

const KINDS: [&str; 5] = [
    "input",
    "output",
    "cache_read",
    "cache_write_5m",
    "cache_write_1h",
];

/// Tokens by kind, what is known of the cost in hundredths of a cent, messages without a price.
type Figures = ([u64; 5], i64, u64);

fn cents(value: &Value) -> i64 {
    (value.as_f64().unwrap() * 1e4).round() as i64
}

/// The figures of a row; `usage` is where its tokens are.
fn figures(row: &Value, usage: &Value) -> Figures {
    let tokens = KINDS.map(|kind| {
        usage[kind]
            .as_u64()
            .unwrap_or_else(|| panic!("{kind}: {row}"))
    });
    let unpriced = row["unpriced_messages"].as_u64().unwrap();
    assert_eq!(row["cost_usd"].is_null(), unpriced > 0, "{row}");
    let known = cents(&row["cost_usd_known"]);
    if unpriced == 0 {
        assert_eq!(cents(&row["cost_usd"]), known, "{row}");
    }
    (tokens, known, unpriced)
}

fn sum(all: impl Iterator<Item = Figures>) -> Figures {
    all.fold(Figures::default(), |mut sum, (tokens, known, unpriced)| {
        for (slot, count) in sum.0.iter_mut().zip(tokens) {
            *slot += count;
        }
        (sum.0, sum.1 + known, sum.2 + unpriced)
    })
}

/// Rounded turn by turn, a sum may be off by as many hundredths of a cent.
fn is_near(one: &Figures, other: &Figures, turns: usize) -> bool {
    one.0 == other.0 && one.2 == other.2 && (one.1 - other.1).unsigned_abs() <= turns as u64 + 1
}

const SQL_TURNS: &str = "SELECT input, output, cache_read, cache_write_5m, cache_write_1h, cost_usd, \
     cost_usd_known, unpriced_messages FROM turns";

/// Asks every door about every session; hands back what lists say.
fn agree(home: &Home) -> HashMap<String, Value> {
    let listed: HashMap<String, Value> = rows(home, &["ls"])
        .into_iter()
        .map(|row| (row["id"].as_str().unwrap().to_owned(), row))
        .collect();
    let sql = "SELECT id, input, output, cache_read, cache_write_5m, cache_write_1h, cost_usd, \
               cost_usd_known, unpriced_messages FROM sessions";
    let tables: HashMap<String, Figures> = rows(home, &["sql", sql])
        .into_iter()
        .map(|row| (row["id"].as_str().unwrap().to_owned(), figures(&row, &row)))
        .collect();
    let counted: HashMap<String, Figures> = rows(home, &["usage", "session"])
        .into_iter()
        .map(|row| {
            let id = row["session"].as_str().unwrap().to_owned();
            (id, figures(&row, &row))
        })
        .collect();
    // `usage` counts a message in one session, however many hold it.
    let mut holders: BTreeMap<String, HashSet<String>> = BTreeMap::new();
    for row in rows(
        home,
        &[
            "sql",
            "SELECT DISTINCT session, id FROM messages WHERE id NOT NULL",
        ],
    ) {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        holders
            .entry(text("id"))
            .or_default()
            .insert(text("session"));
    }
    let shared = holders.into_values().filter(|sessions| sessions.len() > 1);
    let shared: HashSet<String> = shared.flatten().collect();
    for (id, row) in &listed {
        let expected = figures(row, &row["usage"]);
        assert_eq!(tables[id], expected, "sql: {id}");
        let none = Figures::default();
        if !shared.contains(id) {
            let counted = counted.get(id).unwrap_or(&none);
            assert_eq!(counted, &expected, "usage session: {id}");
        }
        let by = &row["used_by"];
        let parts = ["own", "agents", "client"].map(|part| figures(&by[part], &by[part]["usage"]));
        assert!(is_near(&sum(parts.into_iter()), &expected, 3), "{row}");
        let info = &rows(home, &["info", id])[0];
        assert_eq!(figures(info, &info["usage"]), expected, "info: {id}");
        let output = home.output(&["turns", id, "--json"]);
        let turns: Vec<Value> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        // A session in which nobody typed and nobody answered has no turns.
        if !turns.is_empty() {
            let all = sum(turns.iter().map(|turn| figures(turn, &turn["usage"])));
            assert!(
                is_near(&all, &expected, turns.len()),
                "turns: {id} {all:?} {expected:?}"
            );
        }
        let told: Vec<Figures> = turns.iter().map(|it| figures(it, &it["usage"])).collect();
        if !turns.is_empty() {
            let query = format!("{SQL_TURNS} WHERE session = '{id}' AND agent IS NULL ORDER BY n");
            let rows = rows(home, &["sql", &query]);
            let kept: Vec<Figures> = rows.iter().map(|it| figures(it, it)).collect();
            assert_eq!(kept, told, "sql turns: {id}");
            let query = format!("SELECT sum(output) AS output FROM turns WHERE session = '{id}'");
            let all = self::rows(home, &["sql", &query]);
            assert_eq!(all[0]["output"], row["usage"]["output"], "sql turns: {id}");
        }
        let output = home.output(&["agents", id, "--json"]);
        let agents = String::from_utf8(output.stdout).unwrap();
        let agents: Vec<Value> = agents
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .filter(|one: &Value| one["kind"] != "teammate")
            .filter(|one| !one["cost_usd_known"].is_null())
            .collect();
        let by = ["agents", "client"].map(|part| figures(&by[part], &by[part]["usage"]));
        let rows = agents.iter().map(|one| figures(one, &one["usage"]));
        let (rows, by) = (sum(rows), sum(by.into_iter()));
        assert!(
            is_near(&rows, &by, agents.len() + 2),
            "agents: {id} {rows:?} {by:?}"
        );
        let text = home.run(&["export", id, "--to", "md", "-o", "-"]);
        let line = text.lines().find_map(|line| {
            let known = line.strip_prefix("cost_usd_known: ");
            known.or_else(|| line.strip_prefix("cost_usd: "))
        });
        let told = line.unwrap().parse::<f64>().unwrap();
        assert_eq!((told * 1e4).round() as i64, expected.1, "export: {id}");
    }
    listed
}

#[test]
fn every_door_tells_the_same_of_every_generated_session() {
    for (seed, sessions, bytes) in [(21, 12, 900_000), (22, 10, 3_000_000)] {
        let (home, _) = machine(seed, sessions, bytes);
        agree(&home);
    }
}

#[test]
fn every_door_tells_the_same_of_every_recording() {
    let home = home();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/corpus");
    let recordings = fs::read_dir(corpus.join("2.1.325")).unwrap();
    for recording in recordings.flatten() {
        copy(
            &recording.path().join("projects"),
            &home.claude_dir().join("projects"),
        );
    }
    assert!(agree(&home).len() > 10);
}

fn copy(from: &Path, to: &Path) {
    let Ok(entries) = fs::read_dir(from) else {
        return;
    };
    fs::create_dir_all(to).unwrap();
    for entry in entries.flatten() {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

const ID: &str = "0ee00000-0000-4000-8000-000000000001";

/// A session with a sub-agent, a compaction, a suggestion, a warm-up, and a message without a
/// price.
fn mixed() -> Home {
    let home = home();
    home.session(
        "/home/dev/x",
        ID,
        "you: a\n(usage=10/20/0/0/0) claude: b [Task Look]\nresult: Task ok\n(usage=1/2/0/0/0, model=nobody-knows-1) claude: c\n",
    );
    home.agent(
        "/home/dev/x",
        ID,
        "a1",
        "you: look\n(usage=5/300/0/0/0, id=msg_agent) claude: found\n",
    );
    let helper = |name: &str, id: &str| {
        let text = format!("you: go\n(usage=100/7/0/0/0, id={id}, isSidechain=true) claude: d\n");
        home.agent("/home/dev/x", ID, name, &text);
    };
    helper("acompact-1", "msg_compact");
    helper("aprompt_suggestion-1", "msg_suggest");
    let text = "you: Warmup\n(usage=100/7/0/0/0, id=msg_warm) claude: ready\n";
    home.agent("/home/dev/x", ID, "a2", text);
    home
}

#[test]
fn what_the_client_did_for_itself_is_in_every_number_and_told_apart() {
    let home = mixed();
    let listed = agree(&home);
    let row = &listed[ID];
    assert_eq!(row["usage"]["output"], 20 + 2 + 300 + 3 * 7);
    assert_eq!(row["used_by"]["own"]["usage"]["output"], 22);
    assert_eq!(row["used_by"]["agents"]["usage"]["output"], 300);
    assert_eq!(row["used_by"]["client"]["messages"], 3);
    assert_eq!(row["agents"], 1, "helpers are no sub-agents");
}

#[test]
fn a_message_without_a_price_does_not_hide_what_the_others_cost() {
    let home = mixed();
    let row = &rows(&home, &["usage", "month"])[0];
    assert_eq!(row["cost_usd"], Value::Null);
    assert_eq!(row["unpriced_messages"], 1);
    assert!(row["cost_usd_known"].as_f64().unwrap() > 0.0);
    for args in [
        &["usage", "month"][..],
        &["usage", "session"],
        &["ls"],
        &["turns", ID],
        &["info", ID],
    ] {
        let text = home.run(args);
        assert!(text.contains("≥ $"), "{args:?}: {text}");
    }
    home.agent(
        "/home/dev/x",
        ID,
        "a3",
        "you: go\n(model=nobody-knows-2, id=msg_far) claude: d\n(model=nobody-knows-2, id=msg_off) claude: e\n",
    );
    for (args, told) in [
        (
            &["ls"][..],
            "3 messages without a known price are not in the cost",
        ),
        (
            &["turns", ID],
            "3 messages without a known price are not in the cost",
        ),
        (
            &["agents", ID],
            "2 messages without a known price are not in the cost",
        ),
    ] {
        let text = home.run(args);
        assert!(text.contains(told), "{args:?}: {text}");
    }
    fs::remove_file(home.claude_dir().join(format!(
        "projects/-home-dev-x/{ID}/subagents/agent-a3.jsonl"
    )))
    .unwrap();
    let text = home.run(&["export", ID, "--to", "html", "-o", "-"]);
    assert!(text.contains("≥ "), "a page says that it is not all");
    let text = home.run(&["export", ID, "--to", "md", "-o", "-"]);
    assert!(text.contains("unpriced_messages: 1\n"), "{text}");
}

/// A session whose compaction and whose forked sub-agent begin with its conversation.
fn repeated() -> Home {
    let home = home();
    let own = "you: a\n(usage=10/20/0/0/0, id=msg_own) claude: b [Task Look]\nresult: Task ok\n";
    home.session("/home/dev/x", ID, own);
    let agent = |name: &str, id: &str, output: u32| {
        let text = format!(
            "{own}you: more\n(usage=5/{output}/0/0/0, id={id}, isSidechain=true) claude: c\n"
        );
        home.agent("/home/dev/x", ID, name, &text);
    };
    agent("acompact-1", "msg_compact", 7);
    agent("a1", "msg_agent", 300);
    home
}

#[test]
fn what_an_agent_repeats_of_its_session_is_not_its_own() {
    let home = repeated();
    let listed = agree(&home);
    assert_eq!(listed[ID]["usage"]["output"], 20 + 7 + 300);
    let outputs = |rows: Vec<Value>, id: &str| -> BTreeMap<String, u64> {
        let named = rows.into_iter().map(|row| {
            let name = row[id].as_str().unwrap_or_default().to_owned();
            (name, row["usage"]["output"].as_u64().unwrap_or(0))
        });
        named.collect()
    };
    let agents = outputs(rows(&home, &["agents", ID]), "agent");
    assert_eq!((agents["acompact-1"], agents["a1"]), (7, 300));
    let listed = outputs(rows(&home, &["ls", "--agents"]), "id");
    assert_eq!(listed["agent-a1"], 300);
    let counted = rows(&home, &["usage", "session", "--own"]);
    for row in counted.iter().filter(|row| !row["agent"].is_null()) {
        let agent = row["agent"].as_str().unwrap();
        assert_eq!(row["output"], agents[agent], "{row}");
    }
}
