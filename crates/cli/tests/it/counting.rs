//! `usage` against the truth of generated trees: every total to the token, and none of
//! the usual mistakes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use serde_json::Value;
use unspool_testkit::home::Home;
use unspool_testkit::tree::{self, Count, Options, Truth, Usage};

use crate::home;

/// Three seeds, three sizes.
const TREES: &[(u64, usize, u64)] = &[(11, 20, 900_000), (12, 30, 1_500_000), (13, 60, 3_000_000)];

/// A machine with a generated tree.
pub fn machine(seed: u64, sessions: usize, target_bytes: u64) -> (Home, Truth) {
    let home = home();
    let options = Options {
        seed,
        sessions,
        target_bytes,
        ..Options::small()
    };
    let truth = tree::generate(&home.claude_dir(), &options).unwrap();
    (home, truth)
}

/// The rows of a command that succeeds.
pub fn rows(home: &Home, args: &[&str]) -> Vec<Value> {
    let mut all = args.to_vec();
    all.push("--json");
    let output = home.output(&all);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {stderr}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Messages and tokens of a row.
type Figures = (u64, Usage);

fn figures(row: &Value) -> Figures {
    let get = |name: &str| {
        row[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name}: {row}"))
    };
    let usage = Usage {
        input: get("input"),
        output: get("output"),
        cache_read: get("cache_read"),
        cache_write_5m: get("cache_write_5m"),
        cache_write_1h: get("cache_write_1h"),
    };
    (get("messages"), usage)
}

fn of(count: &Count) -> Figures {
    (count.messages, count.usage)
}

/// The rows by their keys.
fn by(rows: &[Value], keys: &[&str]) -> BTreeMap<Vec<String>, Figures> {
    let text = |row: &Value, key: &str| {
        let text = row[key].as_str();
        text.unwrap_or_else(|| panic!("{key}: {row}")).to_owned()
    };
    let mut all = BTreeMap::new();
    for row in rows {
        let name: Vec<String> = keys.iter().map(|key| text(row, key)).collect();
        let before = all.insert(name, figures(row));
        assert_eq!(before, None, "two rows of one group: {row}");
    }
    all
}

fn sum(rows: &[Value]) -> Figures {
    let (mut messages, mut usage) = (0, Usage::default());
    for (count, tokens) in rows.iter().map(figures) {
        messages += count;
        usage += tokens;
    }
    (messages, usage)
}

fn check_groups(home: &Home, truth: &Truth) {
    let days = rows(home, &["usage", "day", "--by", "model"]);
    let expected: BTreeMap<Vec<String>, Figures> = truth
        .days
        .iter()
        .map(|((day, model), count)| (vec![day.clone(), model.clone()], of(count)))
        .collect();
    assert_eq!(by(&days, &["day", "model"]), expected);

    let named = |counts: &BTreeMap<String, Count>| -> BTreeMap<Vec<String>, Figures> {
        let row = |(name, count): (&String, &Count)| (vec![name.clone()], of(count));
        counts.iter().map(row).collect()
    };
    let models = rows(home, &["usage", "model"]);
    assert_eq!(by(&models, &["model"]), named(&truth.models));
    let projects = rows(home, &["usage", "project"]);
    assert_eq!(by(&projects, &["project"]), named(&truth.projects));

    let mut whole = BTreeMap::new();
    for session in &truth.sessions {
        let mut count = session.counted;
        count += session.counted_agents;
        // A copy to which nothing was added has nothing of its own.
        if count.messages > 0 {
            whole.insert(vec![session.id.clone()], of(&count));
        }
    }
    let sessions = rows(home, &["usage", "session"]);
    assert_eq!(by(&sessions, &["session"]), whole);
}

fn check_totals(home: &Home, truth: &Truth) {
    for per in [
        "day", "week", "month", "session", "project", "model", "block",
    ] {
        let total = sum(&rows(home, &["usage", per]));
        assert_eq!(total, (truth.messages, truth.usage), "{per}");
        for mistake in &truth.mistakes {
            assert_ne!(total.1, mistake.usage, "{per}: {}", mistake.name);
        }
    }
}

#[test]
fn every_total_is_the_truth_to_the_token() {
    for &(seed, sessions, bytes) in TREES {
        let (home, truth) = machine(seed, sessions, bytes);
        check_groups(&home, &truth);
    }
}

#[test]
fn no_usual_mistake_is_made() {
    for &(seed, sessions, bytes) in TREES {
        let (home, truth) = machine(seed, sessions, bytes);
        check_totals(&home, &truth);
    }
}

#[test]
fn sub_agents_can_be_told_from_their_session() {
    // Large enough for compactions, whose requests have files of their own.
    let (home, truth) = machine(1, 30, 4_000_000);
    let mut parts: BTreeMap<(String, bool), Figures> = BTreeMap::new();
    for row in rows(&home, &["usage", "session", "--own"]) {
        let session = row["session"].as_str().unwrap().to_owned();
        let is_agent = row["is_subagent"].as_bool().unwrap();
        let (messages, usage) = figures(&row);
        let part = parts.entry((session, is_agent)).or_default();
        part.0 += messages;
        part.1 += usage;
    }
    let mut expected = BTreeMap::new();
    for session in &truth.sessions {
        for (is_agent, count) in [(false, &session.counted), (true, &session.counted_agents)] {
            if count.messages > 0 {
                expected.insert((session.id.clone(), is_agent), of(count));
            }
        }
    }
    assert!(truth.sessions.iter().any(|session| session.compactions > 0));
    assert_eq!(parts, expected);
}

#[test]
fn what_is_remembered_changes_no_total() {
    let (home, truth) = machine(21, 20, 1_000_000);
    let args = ["usage", "day", "--by", "model"];
    let fresh = rows(&home, &["usage", "day", "--by", "model", "--no-cache"]);
    assert_eq!(sum(&fresh), (truth.messages, truth.usage));
    assert_eq!(rows(&home, &args), fresh);
    assert_eq!(rows(&home, &args), fresh);
}

/// A line of the model.
pub fn line(id: &str, model: &str, at: &str, output: u64) -> String {
    format!(
        r#"{{"parentUuid":null,"isSidechain":false,"cwd":"/home/dev/x","sessionId":"s","version":"2.1.63","type":"assistant","message":{{"id":"{id}","type":"message","role":"assistant","model":"{model}","content":[{{"type":"text","text":"hi"}}],"usage":{{"input_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":{output}}}}},"uuid":"{id}-{output}","timestamp":"{at}"}}
"#
    )
}

fn append(path: &PathBuf, text: &str) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_is_appended_counts_at_once_and_once() {
    let (home, truth) = machine(22, 20, 1_000_000);
    let args = ["usage", "model"];
    rows(&home, &args);
    let session = truth.sessions.iter().find(|session| session.torn == 0);
    let path = home.claude_dir().join(&session.unwrap().path);
    let model = "claude-opus-4-6";
    let day = "2026-02-01T10:00:00.000Z";
    let plus = |messages, input, output| {
        let usage = Usage {
            input,
            output,
            ..Usage::default()
        };
        let mut all = truth.usage;
        all += usage;
        (truth.messages + messages, all)
    };
    append(&path, &line("msg_new", model, day, 7));
    assert_eq!(sum(&rows(&home, &args)), plus(1, 1, 7));
    // The rest of the same message, in two pieces.
    let rest = line("msg_new", model, day, 500);
    append(&path, &rest[..200]);
    assert_eq!(sum(&rows(&home, &args)), plus(1, 1, 7));
    append(&path, &rest[200..]);
    assert_eq!(sum(&rows(&home, &args)), plus(1, 1, 500));
    // The same message in another file.
    let other = path.with_file_name("0ddba110-0000-4000-8000-000000000001.jsonl");
    fs::write(&other, line("msg_new", model, day, 500)).unwrap();
    assert_eq!(sum(&rows(&home, &args)), plus(1, 1, 500));
    // A file that becomes another one.
    fs::write(&other, line("msg_other", model, day, 40)).unwrap();
    assert_eq!(sum(&rows(&home, &args)), plus(2, 2, 540));
    fs::remove_file(&other).unwrap();
    assert_eq!(sum(&rows(&home, &args)), plus(1, 1, 500));
}

const ID: &str = "c0de1000-0000-4000-8000-000000000001";
const MODEL: &str = "claude-opus-4-6";

#[test]
fn lines_that_are_broken_cost_only_themselves() {
    let home = home();
    let at = "2026-02-01T10:00:00.000Z";
    let good = |id: &str, output| line(id, MODEL, at, output);
    let torn = good("msg_torn", 1000);
    let torn = &torn[..torn.len() - 60];
    let glued = good("msg_b", 2);
    let text = [
        &good("msg_a", 1),
        torn,
        "\n",
        glued.trim_end(),
        &good("msg_c", 4),
        "not json \"usage\":{\"output_tokens\":5000}\n",
        "\u{0}\u{0}\u{0}\n",
        "[1, {\"usage\":{\"output_tokens\":5000}}]\n",
        &good("msg_d", 8),
        torn,
    ]
    .concat();
    home.transcript("/home/dev/x", ID, text);
    let all = rows(&home, &["usage", "day"]);
    let (messages, usage) = sum(&all);
    assert_eq!((messages, usage.input, usage.output), (4, 4, 15), "{all:?}");
}

#[test]
fn a_wrong_clock_moves_a_message_to_another_day_and_loses_none() {
    let mut home = home();
    home.set("UNSPOOL_NOW", "2026-03-01T00:00:00.000Z");
    let times = [
        "2026-02-02T10:00:00.000Z",
        "2026-02-01T23:00:00.000Z",
        "2099-12-31T23:59:59.999Z",
        "1970-01-01T00:00:00.000Z",
        "2026-02-02T10:00:01.000Z",
    ];
    let text: String = (0..)
        .zip(times)
        .map(|(nth, at)| line(&format!("msg_{nth}"), MODEL, at, 1))
        .collect();
    home.transcript(
        "/home/dev/x",
        ID,
        text + &line("msg_x", MODEL, "yesterday-ish", 1),
    );
    let all = rows(&home, &["usage", "day"]);
    assert_eq!(sum(&all).0, 6, "{all:?}");
    let days: Vec<(&str, u64)> = all
        .iter()
        .filter_map(|row| Some((row["day"].as_str()?, row["messages"].as_u64()?)))
        .collect();
    for expected in [
        ("1970-01-01", 1),
        ("2026-02-01", 1),
        ("2026-02-02", 2),
        ("2099-12-31", 1),
    ] {
        assert!(days.contains(&expected), "{expected:?}: {days:?}");
    }
    // The one without a readable time is in a row of its own, never dropped.
    let is_date = |day: &str| day.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    let dated = days.iter().filter(|(day, _)| is_date(day));
    assert_eq!(
        dated.map(|(_, messages)| messages).sum::<u64>(),
        5,
        "{days:?}"
    );
}

#[test]
fn the_file_of_a_sub_agent_counts_before_the_copies_in_its_parent() {
    let home = home();
    let at = "2026-02-01T10:00:00.000Z";
    let copy = |id: &str, output| {
        let message = line(id, MODEL, at, output);
        let message = message.trim_end();
        format!(
            r#"{{"type":"progress","data":{{"type":"agent_progress","agentId":"a1","message":{message}}},"uuid":"p-{id}-{output}","timestamp":"{at}","sessionId":"{ID}","cwd":"/home/dev/x"}}
"#
        )
    };
    let text = [
        line("msg_main", MODEL, at, 1),
        copy("msg_agent", 3),
        copy("msg_lost", 50),
    ];
    home.transcript("/home/dev/x", ID, text.concat());
    let agent = line("msg_agent", MODEL, at, 900);
    home.write(
        format!(".claude/projects/-home-dev-x/{ID}/subagents/agent-a1.jsonl"),
        agent.replace(
            r#""isSidechain":false"#,
            r#""isSidechain":true,"agentId":"a1""#,
        ),
    );
    // Of `msg_lost` nothing is left but the copy.
    let all = rows(&home, &["usage", "session"]);
    assert_eq!(all.len(), 1, "{all:?}");
    let (messages, usage) = sum(&all);
    assert_eq!((messages, usage.output), (3, 951));
}

#[test]
fn trees_without_usage_say_so() {
    let check = |home: &Home, what: &str| {
        for per in ["day", "session", "block"] {
            let output = home.output(&["usage", per, "--json"]);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{what}: {stderr}");
            assert!(output.stdout.is_empty(), "{what}");
            assert!(!stderr.trim().is_empty(), "{what}");
        }
    };
    let empty = home();
    fs::create_dir_all(empty.claude_dir()).unwrap();
    check(&empty, "nothing at all");
    fs::create_dir_all(empty.claude_dir().join("projects/-home-dev-x")).unwrap();
    check(&empty, "an empty folder");
    empty.transcript("/home/dev/x", ID, "");
    check(&empty, "an empty file");
    empty.session("/home/dev/x", ID, "you: hi");
    check(&empty, "no reply");
}

#[test]
fn a_model_costs_its_tokens_times_their_prices_and_an_unknown_one_is_unknown() {
    let (home, truth) = machine(23, 30, 1_500_000);
    let mut unknown = 0;
    for row in rows(&home, &["usage", "model"]) {
        let model = row["model"].as_str().unwrap();
        let count = &truth.models[model];
        if model == "in-house-coder-70b" {
            assert!(row["cost_usd"].is_null(), "{row}");
            unknown += 1;
            continue;
        }
        let price = &rows(&home, &["prices", model])[0];
        let dollars = |name: &str, tokens: u64| {
            let rate = price[name].as_f64();
            rate.unwrap_or_else(|| panic!("{name}: {price}")) * tokens as f64 / 1e6
        };
        let usage = count.usage;
        let common = dollars("input", usage.input)
            + dollars("output", usage.output)
            + dollars("cache_read", usage.cache_read)
            + dollars("cache_write_5m", usage.cache_write_5m)
            + dollars("web_search", count.web_searches) * 1e6;
        let right = common + dollars("cache_write_1h", usage.cache_write_1h);
        let mistaken = common + dollars("cache_write_5m", usage.cache_write_1h);
        let cost = row["cost_usd"].as_f64().unwrap_or_else(|| panic!("{row}"));
        let is_near = |other: f64| (cost - other).abs() < 1e-6;
        assert!(is_near(right), "{model}: {cost} instead of {right}");
        assert!(usage.cache_write_1h > 0 && !is_near(mistaken), "{model}");
    }
    assert_eq!(unknown, 1);
}
