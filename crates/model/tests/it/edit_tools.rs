//! Tools and thinking: which go, which are cut, and what is said about it.

use serde_json::{Value, json};
use unspool_model::edit::thinking::{self, ThinkingShare};
use unspool_model::edit::tools::{self, KeptToolTurns, PRESETS, StripToolCalls, ToolCallAction};
use unspool_model::edit::{EditLoss, EditPlan, PlanCounts, PlanSettings};
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_testkit::script;

use crate::edit::edited;
use crate::make;

/// What came of an edit.
struct Edited {
    log: Log,
    counts: PlanCounts,
    lost: Vec<EditLoss>,
}

fn edit(log: &Log, wish: impl Fn(&Session, &mut EditPlan)) -> Edited {
    let (after, _, problems) = edited(log, None, PlanSettings::default(), &wish);
    assert_eq!(problems, []);
    let session = Session::from_log(log, TranscriptRole::Main);
    let mut plan = EditPlan::new(&session);
    wish(&session, &mut plan);
    plan.repair_references(&session, PlanSettings::default());
    Edited {
        log: after,
        counts: plan.counts,
        lost: plan.lost(),
    }
}

fn keep(log: &Log, turns: usize, truncate: u8) -> Edited {
    edit(log, |session, plan| {
        tools::keep(session, log, plan, KeptToolTurns { turns, truncate });
    })
}

fn preset(log: &Log, name: &str) -> Edited {
    let wanted = tools::preset_named(name).unwrap();
    edit(log, |session, plan| {
        tools::preset(session, log, plan, wanted)
    })
}

fn strip(log: &Log, percent: u8, mode: ToolCallAction) -> Edited {
    edit(log, |session, plan| {
        tools::strip(session, log, plan, StripToolCalls { percent, mode });
    })
}

fn think(log: &Log, share: ThinkingShare) -> Edited {
    edit(log, |session, plan| thinking::strip(session, plan, share))
}

fn lines(log: &Log) -> Vec<Value> {
    let lines = log.lines();
    lines
        .map(|line| serde_json::from_slice(line.bytes).unwrap())
        .collect()
}

/// Blocks of a type, in all lines.
fn blocks(log: &Log, kind: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for line in lines(log) {
        if let Some(blocks) = line["message"]["content"].as_array() {
            found.extend(blocks.iter().filter(|block| block["type"] == kind).cloned());
        }
    }
    found
}

/// `turns` turns, each with thinking, a call with a long result, and an answer.
fn work(from: usize, turns: usize) -> String {
    let long = "word ".repeat(100);
    let one = |n: usize| {
        format!(
            "you: ask {n}\nthink: about {n}\nclaude: look [Read {n}.rs]\n\
             result: Read {n}.rs {n} {long}\nclaude: done {n}\n"
        )
    };
    (from..from + turns).map(one).collect()
}

fn log(script: &str) -> Log {
    Log::new(script::jsonl(script))
}

/// How many results are there, and how many of them are whole.
fn results(log: &Log) -> (usize, usize) {
    let all = blocks(log, "tool_result");
    let whole = |block: &&Value| block["content"].to_string().len() > 200;
    (all.len(), all.iter().filter(whole).count())
}

#[test]
fn the_presets_are_those_of_the_older_tool() {
    let table = PRESETS
        .iter()
        .map(|(name, keep)| (*name, keep.turns, keep.truncate));
    let table: Vec<_> = table.collect();
    assert_eq!(
        table,
        [
            ("default", 20, 50),
            ("aggressive", 10, 50),
            ("heavy", 10, 80),
            ("extreme", 0, 0)
        ]
    );
    assert_eq!(tools::preset_named("gentle"), None);
}

#[test]
fn thirty_turns_with_tools_are_split_in_removed_cut_and_kept() {
    let after = preset(&log(&work(1, 30)), "default");
    assert_eq!(results(&after.log), (20, 10));
    assert_eq!(blocks(&after.log, "tool_use").len(), 20);
    let counts = after.counts;
    assert_eq!((counts.calls_removed, counts.calls_truncated), (10, 10));
    assert_eq!(counts.thinking_removed, 30);
    assert!(
        after.lost.iter().all(|lost| lost.tokens > 0),
        "{:?}",
        after.lost
    );
    let said: Vec<_> = after.lost.iter().map(|lost| lost.what.as_str()).collect();
    assert_eq!(
        said,
        [
            "10 tool calls with their results",
            "10 tool calls and results, except their first lines",
            "30 blocks of thinking"
        ]
    );
}

#[test]
fn fewer_turns_than_are_kept_lose_no_call_but_are_cut_all_the_same() {
    let after = keep(&log(&work(1, 5)), 20, 50);
    assert_eq!(results(&after.log), (5, 3));
    assert_eq!(after.counts.calls_removed, 0);
    assert_eq!(blocks(&after.log, "thinking").len(), 5);
}

#[test]
fn extreme_leaves_prompts_and_answers_with_their_parents_linked() {
    let after = preset(&log(&work(1, 4)), "extreme");
    let texts: Vec<String> = lines(&after.log)
        .iter()
        .map(|line| match &line["message"]["content"] {
            Value::String(text) => text.clone(),
            blocks => blocks[0]["text"].as_str().unwrap().to_owned(),
        })
        .collect();
    let wanted = (1..=4).flat_map(|n| [format!("ask {n}"), "look".into(), format!("done {n}")]);
    assert_eq!(texts, wanted.collect::<Vec<_>>());
    let mut before = Value::Null;
    for line in lines(&after.log) {
        assert_eq!(line["parentUuid"], before);
        before = line["uuid"].clone();
        assert_ne!(line["message"]["stop_reason"], "tool_use");
    }
}

#[test]
fn a_share_of_none_or_all_of_the_kept_turns_is_cut() {
    let source = log(&work(1, 4));
    assert_eq!(results(&keep(&source, 4, 0).log), (4, 4));
    assert_eq!(results(&keep(&source, 4, 100).log), (4, 0));
    assert_eq!(keep(&source, 4, 0).log.as_bytes(), source.as_bytes());
}

#[test]
fn repeated_clones_do_not_degrade() {
    let mut text = work(1, 50);
    let mut clone = preset(&log(&text), "default").log;
    for round in 1..=2 {
        assert_eq!(results(&clone).0, 20, "round {round}");
        assert_eq!(turns(&clone), 50 + 30 * (round - 1), "round {round}");
        // The session goes on: thirty more turns behind what the clone holds.
        text = work(1, 50 + 30 * round);
        let grown = log(&text);
        let known = turns(&clone) * 6;
        let more = grown.lines().skip(known);
        let mut bytes = clone.as_bytes().to_vec();
        let mut parent = lines(&clone).last().unwrap()["uuid"].clone();
        for (nth, line) in more.enumerate() {
            let mut line: Value = serde_json::from_slice(line.bytes).unwrap();
            if nth == 0 {
                line["parentUuid"] = parent.take();
            }
            bytes.extend_from_slice(format!("{line}\n").as_bytes());
        }
        clone = preset(&Log::new(bytes), "default").log;
    }
    assert_eq!((results(&clone).0, turns(&clone)), (20, 110));
}

fn turns(log: &Log) -> usize {
    Session::from_log(log, TranscriptRole::Main).turns.len()
}

#[test]
fn a_session_without_tools_is_left_alone_by_a_preset() {
    let source = log("you: hi\nthink: hm\nclaude: hello\nhook: Stop\nyou: bye\nclaude: bye");
    for (name, _) in PRESETS {
        let after = preset(&source, name);
        assert_eq!(after.log.as_bytes(), source.as_bytes(), "{name}");
        assert_eq!((after.counts, after.lost), (PlanCounts::default(), vec![]));
    }
}

#[test]
fn only_a_preset_lets_thinking_and_notes_of_the_work_go() {
    let notes = r#"raw: {"type":"queue-operation","operation":"enqueue","timestamp":"2026-01-03T10:00:00.000Z","sessionId":"s","content":"x"}"#;
    let source = log(&format!(
        "(version=2.1.45)\n{}{notes}\nhook: Stop\n",
        work(1, 2)
    ));
    let kinds = |log: &Log| -> Vec<String> {
        let all = lines(log).into_iter();
        let all = all.map(|line| line["type"].as_str().unwrap().to_owned());
        all.filter(|kind| !matches!(kind.as_str(), "user" | "assistant"))
            .collect()
    };
    assert_eq!(kinds(&source), ["queue-operation", "progress"]);
    assert_eq!(kinds(&keep(&source, 0, 0).log), kinds(&source));
    assert_eq!(blocks(&keep(&source, 1, 0).log, "thinking").len(), 2);
    assert!(kinds(&preset(&source, "extreme").log).is_empty());
    assert!(blocks(&preset(&source, "default").log, "thinking").is_empty());
}

#[test]
fn the_result_in_a_notification_is_cut_by_a_preset() {
    let long = "é".repeat(400);
    let text = format!("<task-notification>\\n<result>{long}</result>\\n</task-notification>");
    let source = log(&format!(
        "{}meta: note\nyou: {text}\nclaude: ok\n",
        work(1, 1)
    ));
    let after = preset(&source, "default");
    let said = lines(&after.log).into_iter().filter_map(|line| {
        let text = line["message"]["content"].as_str()?.to_owned();
        text.contains("task-notification").then_some(text)
    });
    let said: Vec<String> = said.collect();
    let wanted = format!(
        "<result>{} (remaining content truncated)</result>",
        "é".repeat(150)
    );
    assert!(said[0].contains(&wanted), "{said:?}");
    let again = preset(&after.log, "default");
    assert_eq!(again.log.as_bytes(), after.log.as_bytes());
    let bare = keep(&source, 20, 50);
    assert!(String::from_utf8_lossy(bare.log.as_bytes()).contains(&long));
}

#[test]
fn the_copy_of_a_result_goes_where_anything_of_it_goes() {
    let mut text = String::new();
    for line in lines(&log(&work(1, 3))) {
        let mut line = line;
        if line["message"]["content"][0]["type"] == "tool_result" {
            line["toolUseResult"] = json!({"stdout": "copy ".repeat(2_000)});
        }
        text += &format!("{line}\n");
    }
    let source = Log::new(text);
    let copies = |log: &Log| {
        lines(log)
            .iter()
            .filter(|line| line["toolUseResult"] != Value::Null)
            .count()
    };
    assert_eq!(copies(&source), 3);
    let after = keep(&source, 2, 50);
    assert_eq!((copies(&after.log), results(&after.log)), (1, (2, 1)));
    assert!(after.log.as_bytes().len() < source.as_bytes().len() / 2);
    assert_eq!(copies(&strip(&source, 100, ToolCallAction::Remove).log), 0);
    assert_eq!(
        copies(&strip(&source, 100, ToolCallAction::Truncate).log),
        0
    );
}

#[test]
fn a_short_result_with_a_long_copy_loses_the_copy_when_it_is_cut() {
    let mut text = String::new();
    for mut line in lines(&log(
        "you: a\nclaude: b [Edit x]\nresult: Edit x ok\nclaude: c",
    )) {
        if line["message"]["content"][0]["type"] == "tool_result" {
            line["toolUseResult"] = json!({"originalFile": "line\n".repeat(500)});
        }
        text += &format!("{line}\n");
    }
    let after = strip(&Log::new(text), 100, ToolCallAction::Truncate);
    assert!(!String::from_utf8_lossy(after.log.as_bytes()).contains("toolUseResult"));
    assert_eq!(blocks(&after.log, "tool_result")[0]["content"], "ok");
}

#[test]
fn results_that_are_lists_are_cut_too() {
    let long = "x".repeat(5_000);
    let content = format!(
        r#"[{{"type":"text","text":"{long}"}},{{"type":"image","source":{{"type":"base64","data":"AA"}}}}]"#
    );
    let source = make::read(&[
        make::user("u1", "", "10:00:00", r#""hi""#),
        make::reply(
            "a1",
            "u1",
            "10:00:01",
            "m1",
            &format!("[{}]", make::call("t1", "Task", r#"{"prompt":"p"}"#)),
        ),
        make::user("r1", "a1", "10:00:02", &make::result("t1", &content)),
        make::reply(
            "a2",
            "r1",
            "10:00:03",
            "m2",
            &format!("[{}]", make::text("ok")),
        ),
    ]);
    let after = strip(&source.log, 100, ToolCallAction::Truncate);
    let cut = &blocks(&after.log, "tool_result")[0]["content"];
    assert_eq!(cut[0]["text"].as_str().unwrap().len(), 123);
    assert_eq!(cut[1]["text"], "[image removed]");
    assert_eq!(after.counts.calls_truncated, 1);
}

#[test]
fn what_asked_the_model_nothing_is_no_turn_of_a_share() {
    let command = |name: &str| format!("you: <command-name>/{name}</command-name>\n");
    let nothing = "(model=<synthetic>) claude: No response requested.\n";
    let turn = "you: go\nclaude: [Read a]\nresult: Read a b\nclaude: done\n";
    let source = script::jsonl(&format!(
        "{}{nothing}{}{}",
        command("model"),
        command("fast"),
        turn.repeat(4)
    ));
    let after = strip(&Log::new(source), 50, ToolCallAction::Remove);
    assert_eq!(results(&after.log).0, 2);
}

#[test]
fn the_oldest_share_of_turns_is_stripped() {
    let source = log(&work(1, 4));
    assert_eq!(
        results(&strip(&source, 50, ToolCallAction::Remove).log),
        (2, 2)
    );
    assert_eq!(
        results(&strip(&source, 74, ToolCallAction::Remove).log),
        (2, 2)
    );
    assert_eq!(
        results(&strip(&source, 50, ToolCallAction::Truncate).log),
        (4, 2)
    );
    assert_eq!(
        results(&strip(&source, 100, ToolCallAction::Remove).log),
        (0, 0)
    );
    assert_eq!(
        results(&strip(&source, 250, ToolCallAction::Remove).log),
        (0, 0)
    );
    let none = strip(&source, 0, ToolCallAction::Remove);
    assert_eq!(none.log.as_bytes(), source.as_bytes());
    let left = blocks(&strip(&source, 50, ToolCallAction::Remove).log, "tool_use");
    assert_eq!(left[0]["input"]["file_path"], "3.rs");
}

#[test]
fn command_echoes_and_interrupts_are_no_turns() {
    // One prompt and its echoes were five turns to the older tool, so half of them held it.
    let echoes = "meta: caveat\nstdout: Set model\ninterrupt:\n";
    let source = log(&format!("{}{echoes}{echoes}", work(1, 2)));
    assert_eq!(
        results(&strip(&source, 50, ToolCallAction::Remove).log),
        (1, 1)
    );
}

#[test]
fn what_was_rewound_does_not_count() {
    let text = format!(
        "{}(parent=00000000-0000-4000-8000-000000000005) you: instead\nclaude: so [Read z.rs]\nresult: Read z.rs z\nclaude: there\n",
        work(1, 3)
    );
    let source = log(&text);
    // Turns 2 and 3 are left: half of the two that count is the first.
    let after = strip(&source, 50, ToolCallAction::Remove);
    let subjects = blocks(&after.log, "tool_use");
    assert!(
        subjects
            .iter()
            .all(|call| call["input"]["file_path"] != "1.rs")
    );
    assert!(
        subjects
            .iter()
            .any(|call| call["input"]["file_path"] == "z.rs")
    );
}

#[test]
fn tools_and_thinking_are_counted_apart() {
    let source = log(&work(1, 4));
    let after = edit(&source, |session, plan| {
        let half = StripToolCalls {
            percent: 50,
            mode: ToolCallAction::Remove,
        };
        tools::strip(session, &source, plan, half);
        thinking::strip(session, plan, ThinkingShare::Oldest(75));
    });
    assert_eq!(results(&after.log).0, 2);
    assert_eq!(blocks(&after.log, "thinking").len(), 1);
    assert_eq!(
        (after.counts.calls_removed, after.counts.thinking_removed),
        (2, 3)
    );
}

#[test]
fn an_orphan_result_makes_a_turn_one_with_tools_and_goes_with_it() {
    let source = make::read(&[
        make::user("u1", "", "10:00:00", r#""hi""#),
        make::user("r1", "u1", "10:00:02", &make::result("nowhere", r#""x""#)),
        make::reply(
            "a2",
            "r1",
            "10:00:03",
            "m2",
            &format!("[{}]", make::text("ok")),
        ),
        make::user("u2", "a2", "10:00:04", r#""and""#),
        make::reply(
            "a3",
            "u2",
            "10:00:05",
            "m3",
            &format!("[{}]", make::call("t1", "Read", "{}")),
        ),
        make::user("r2", "a3", "10:00:06", &make::result("t1", r#""y""#)),
        make::reply(
            "a4",
            "r2",
            "10:00:07",
            "m4",
            &format!("[{}]", make::text("fine")),
        ),
    ]);
    assert_eq!(results(&keep(&source.log, 2, 0).log).0, 2);
    assert_eq!(results(&keep(&source.log, 1, 0).log).0, 1);
    assert_eq!(results(&keep(&source.log, 0, 0).log).0, 0);
}

#[test]
fn a_call_without_an_id_goes_by_its_type() {
    let nameless = r#"{"type":"tool_use","name":"Read","input":{}}"#;
    let source = make::read(&[
        make::user("u1", "", "10:00:00", r#""hi""#),
        make::reply(
            "a1",
            "u1",
            "10:00:01",
            "m1",
            &format!("[{},{nameless}]", make::text("look")),
        ),
        make::user("u2", "a1", "10:00:04", r#""and""#),
        make::reply(
            "a3",
            "u2",
            "10:00:05",
            "m3",
            &format!("[{}]", make::text("fine")),
        ),
    ]);
    let after = keep(&source.log, 0, 0);
    assert!(blocks(&after.log, "tool_use").is_empty());
    assert_eq!(blocks(&after.log, "text").len(), 2);
    assert_eq!(after.counts.calls_removed, 1);
}

#[test]
fn tools_of_the_api_go_with_their_results_and_are_never_cut() {
    let long = "x".repeat(500);
    let call = format!(
        r#"{{"type":"server_tool_use","id":"s1","name":"web_search","input":{{"query":"{long}"}}}}"#
    );
    let result = format!(
        r#"{{"type":"web_search_tool_result","tool_use_id":"s1","content":[{{"encrypted_content":"{long}"}}]}}"#
    );
    let content = format!(
        "[{},{call},{result},{}]",
        make::text("look"),
        make::text("found")
    );
    let source = make::read(&[
        make::user("u1", "", "10:00:00", r#""hi""#),
        make::reply("a1", "u1", "10:00:01", "m1", &content),
    ]);
    let cut = strip(&source.log, 100, ToolCallAction::Truncate);
    assert_eq!(cut.log.as_bytes(), source.log.as_bytes());
    let gone = strip(&source.log, 100, ToolCallAction::Remove);
    let left = lines(&gone.log)[1]["message"]["content"].clone();
    let kinds: Vec<_> = left
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].clone())
        .collect();
    assert_eq!(kinds, ["text", "text"]);
    assert_eq!(gone.counts.calls_removed, 1);
}

#[test]
fn a_call_that_still_runs_is_left() {
    let source = log(&format!(
        "{}you: go\nclaude: run [Bash sleep]\n",
        work(1, 1)
    ));
    let after = preset(&source, "extreme");
    let calls = blocks(&after.log, "tool_use");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["input"]["command"], "sleep");
}

#[test]
fn only_results_larger_than_asked_lose_their_middles() {
    let small = "s".repeat(900);
    let large = format!("first {} last", "m".repeat(20_000));
    let text = format!(
        "you: go\nclaude: run [Bash {large}] [Read b]\nresult: Bash {large} {large}\nresult: Read b {small}\nclaude: ok"
    );
    let source = log(&text);
    let after = edit(&source, |session, plan| {
        tools::results_over(session, &source, plan, 1_000)
    });
    let left = blocks(&after.log, "tool_result");
    let texts: Vec<&str> = left
        .iter()
        .map(|block| block["content"].as_str().unwrap())
        .collect();
    assert!(texts[0].starts_with("first mmm") && texts[0].ends_with("mmm last"));
    assert!(texts[0].contains("bytes, 0 lines removed") && texts[0].len() < 1_100);
    assert_eq!(texts[1], small);
    assert_eq!(blocks(&after.log, "tool_use"), blocks(&source, "tool_use"));
    assert_eq!(after.counts.calls_truncated, 1);
    assert_eq!(
        after.lost[0].what,
        "1 large result, except its start and end"
    );
    assert!(
        (4_000..6_000).contains(&after.lost[0].tokens),
        "{:?}",
        after.lost
    );
}

#[test]
fn a_share_of_thinking_goes_with_the_oldest_turns() {
    let source = log(&work(1, 4));
    let after = think(&source, ThinkingShare::Oldest(75));
    let left = blocks(&after.log, "thinking");
    assert_eq!(left, blocks(&source, "thinking")[3..]);
    assert_eq!(
        blocks(&think(&source, ThinkingShare::All).log, "thinking").len(),
        0
    );
    assert_eq!(
        think(&source, ThinkingShare::Oldest(0)).log.as_bytes(),
        source.as_bytes()
    );
    assert_eq!(results(&think(&source, ThinkingShare::All).log), (4, 4));
}

#[test]
fn the_turn_that_goes_on_keeps_its_thinking_unless_all_is_asked_for() {
    let source = log(&format!(
        "{}you: go\nthink: hm\nclaude: run [Bash x]\nresult: Bash x y\n",
        work(1, 1)
    ));
    assert_eq!(
        blocks(&think(&source, ThinkingShare::Oldest(99)).log, "thinking").len(),
        1
    );
    assert_eq!(
        blocks(&think(&source, ThinkingShare::All).log, "thinking").len(),
        0
    );
}

#[test]
fn thinking_that_no_one_can_read_goes_too() {
    let hidden = r#"{"type":"redacted_thinking","data":"QUJD"}"#;
    let source = make::read(&[
        make::user("u1", "", "10:00:00", r#""hi""#),
        make::reply(
            "a1",
            "u1",
            "10:00:01",
            "m1",
            &format!("[{hidden},{}]", make::text("ok")),
        ),
    ]);
    let after = think(&source.log, ThinkingShare::All);
    assert_eq!(after.counts.thinking_removed, 1);
    assert!(!String::from_utf8_lossy(after.log.as_bytes()).contains("redacted"));
}

#[test]
fn no_message_of_thinking_alone_is_left() {
    let source = log("you: a\nthink: hm\nclaude: [Read a]\nresult: Read a b\nclaude: c");
    let after = keep(&source, 0, 0);
    let kinds: Vec<Value> = lines(&after.log)
        .iter()
        .map(|line| line["type"].clone())
        .collect();
    assert_eq!(kinds, ["user", "assistant"]);
    assert_eq!(after.counts.thinking_removed, 1);
}

#[test]
fn a_line_that_cannot_be_read_does_not_stop_anything() {
    let source = log(&format!(
        "{}raw: {{\"type\":\n{}torn: {{\"type\":\"us",
        work(1, 2),
        "you: x\nclaude: y\n"
    ));
    let after = preset(&source, "extreme");
    assert_eq!(results(&after.log_lossy()).0, 0);
}

impl Edited {
    /// The lines that can be read.
    fn log_lossy(&self) -> Log {
        let readable = |line: &[u8]| serde_json::from_slice::<Value>(line).is_ok();
        let lines = self.log.lines().filter(|line| readable(line.bytes));
        Log::new(
            lines
                .flat_map(|line| [line.bytes, b"\n"].concat())
                .collect::<Vec<u8>>(),
        )
    }
}
