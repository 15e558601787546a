//! Texts written shorter: which ones, and what stays of the rest.

use unspool_model::block::BlockKind;
use unspool_model::edit::compress::{
    CompressTask, answer, apply, conversation_excerpt, parse_ranges, refuse, request,
    summary_request, tasks,
};
use unspool_model::edit::{EditPlan, PlanSettings};
use unspool_model::entry::LineKind;
use unspool_model::json;
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::token_estimate::of_text;
use unspool_testkit::{corpus, script};

use crate::edit::edited;

fn words(what: &str) -> String {
    format!("{what} {}", "word ".repeat(60))
        .trim_end()
        .to_owned()
}

/// The tasks for a log.
fn asked(log: &Log, given: &[&str], include_user: bool) -> Vec<CompressTask> {
    let session = Session::from_log(log, TranscriptRole::Main);
    let plan = EditPlan::new(&session);
    tasks(
        &session,
        log,
        &plan,
        &parse_ranges(given).unwrap(),
        include_user,
    )
}

/// The first words of the texts that are asked for.
fn starts(log: &Log, given: &[&str], include_user: bool) -> Vec<String> {
    let all = asked(log, given, include_user);
    let first = |task: &CompressTask| task.text.split(' ').next().unwrap_or_default().to_owned();
    all.iter().map(first).collect()
}

fn log(script: &str) -> Log {
    Log::new(script::jsonl(script))
}

/// Four turns with long prompts and long replies.
fn four() -> Log {
    let turn = |n: u32| {
        let (asked, said) = (words(&format!("p{n}")), words(&format!("r{n}")));
        format!("you: {asked}\nclaude: {said}\n")
    };
    log(&(1..=4).map(turn).collect::<String>())
}

#[test]
fn bands_hit_the_replies_of_the_right_turns() {
    let log = four();
    assert_eq!(starts(&log, &["0-25:35"], false), ["r1"]);
    assert_eq!(starts(&log, &["0-25:35", "50-75:10"], false), ["r1", "r3"]);
    assert_eq!(starts(&log, &["0-100:35"], false), ["r1", "r2", "r3", "r4"]);
    let targets: Vec<u8> = asked(&log, &["50-75:heavy", "0-25:compress"], false)
        .iter()
        .map(|task| task.target)
        .collect();
    assert_eq!(targets, [35, 10]);
}

#[test]
fn prompts_are_shortened_only_if_asked() {
    let log = four();
    assert_eq!(starts(&log, &["25-50:35"], true), ["p2", "r2"]);
}

#[test]
fn short_texts_calls_results_thinking_and_summaries_are_left_alone() {
    let long = words("long");
    let log = log(&format!(
        "
        you: {long}
        think: {long}
        claude: short
        claude: looking [Read {long}]
        result: Read {long} ok
        claude: {long}
        compact: {long}
        you: next
        meta: {long}
        claude: kept {long}
        "
    ));
    // What lies before a compaction is sent by nobody.
    assert_eq!(starts(&log, &["0-100:35"], true), ["kept"]);
}

#[test]
fn a_text_of_exactly_fifty_tokens_is_asked_for_and_a_shorter_one_is_not() {
    let said = |characters: usize| {
        let text = "x".repeat(characters);
        asked(
            &log(&format!("you: a\nclaude: {text}\n")),
            &["0-100:35"],
            false,
        )
        .len()
    };
    assert_eq!((said(196), said(197)), (0, 1));
}

#[test]
fn what_was_rewound_neither_counts_nor_is_asked_for() {
    let reply = |n: u32| words(&format!("r{n}"));
    let log = log(&format!(
        "
        you: a
        (name=first) claude: {}
        you: b
        claude: {}
        (parent=first) you: c
        claude: {}
        ",
        reply(1),
        reply(2),
        reply(3)
    ));
    assert_eq!(starts(&log, &["0-100:35"], false), ["r1", "r3"]);
    assert_eq!(starts(&log, &["50-100:35"], false), ["r3"]);
}

#[test]
fn turns_that_go_neither_count_nor_are_asked_for() {
    let log = four();
    let session = Session::from_log(&log, TranscriptRole::Main);
    let mut plan = EditPlan::new(&session);
    for turn in &session.turns[..2] {
        plan.drop(turn.record);
    }
    plan.drop(session.turns[0].record + 1);
    plan.drop(session.turns[1].record + 1);
    let all = tasks(
        &session,
        &log,
        &plan,
        &parse_ranges(&["0-50:35"]).unwrap(),
        false,
    );
    assert_eq!(all.len(), 1);
    assert!(all[0].text.starts_with("r3"));
}

/// A file with one reply of several blocks, as other programs write it.
fn blocks() -> Log {
    let (one, two) = (words("one"), words("two"));
    Log::new(format!(
        concat!(
            r#"{{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","message":{{"role":"user","content":"go"}}}}"#,
            "\n",
            r#"{{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"s","timestamp":"2026-01-01T00:00:01.000Z","message":{{"id":"m","role":"assistant","model":"claude","content":[{{"type":"thinking","thinking":"hm","signature":"x"}},{{"type":"text","text":"{one}"}},{{"type":"tool_use","id":"t","name":"Read","input":{{}}}},{{"text":"{two}","type":"text"}}]}}, "future": 1e3 }}"#,
            "\n",
            r#"{{"type":"user","uuid":"u3","parentUuid":"u2","sessionId":"s","timestamp":"2026-01-01T00:00:02.000Z","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":"ok"}}]}}}}"#,
            "\n",
        ),
        one = one,
        two = two
    ))
}

#[test]
fn all_texts_of_a_line_become_one_where_the_first_stood() {
    let log = blocks();
    let mut seen = Vec::new();
    let (after, written, problems) =
        edited(&log, None, PlanSettings::default(), |session, plan| {
            let all = tasks(
                session,
                &log,
                plan,
                &parse_ranges(&["0-100:35"]).unwrap(),
                false,
            );
            for task in &all {
                apply(plan, task, "shörter \"text\"");
            }
            seen = plan.lost();
            assert_eq!(plan.counts.texts_shortened, 1);
        });
    assert_eq!(problems, []);
    assert_eq!((written.changed, written.kept), (1, 2));
    let (old, new) = (String::from_utf8_lossy(log.as_bytes()), after.as_bytes());
    let new = String::from_utf8_lossy(new);
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    assert_eq!((old[0], old[2]), (new[0], new[2]));
    assert!(new[1].contains(
        r#""content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"shörter \"text\""},{"type":"tool_use","id":"t","name":"Read","input":{}}]}, "future": 1e3 ,"unspool":{"compressed":35}}"#
    ), "{}", new[1]);
    let lost =
        of_text(&format!("{}\n\n{}", words("one"), words("two"))) - of_text("shörter \"text\"");
    assert_eq!((seen.len(), seen[0].tokens), (1, lost));
}

#[test]
fn doing_it_again_changes_nothing_unless_it_is_to_be_shorter() {
    let short = words("shorter");
    let (after, _, problems) = edited(&four(), None, PlanSettings::default(), |session, plan| {
        let log = four();
        for task in tasks(
            session,
            &log,
            plan,
            &parse_ranges(&["0-50:40"]).unwrap(),
            false,
        ) {
            apply(plan, &task, &short);
        }
    });
    assert_eq!(problems, []);
    assert_eq!(asked(&after, &["0-50:40"], false), []);
    assert_eq!(asked(&after, &["0-50:80"], false), []);
    assert_eq!(starts(&after, &["0-75:40"], false), ["r3"]);
    let more = asked(&after, &["0-50:10"], false);
    let levels: Vec<(u8, u8)> = more.iter().map(|task| (task.target, task.share)).collect();
    assert_eq!(levels, [(10, 25), (10, 25)]);
    // The mark is replaced, not repeated.
    let (again, _, _) = edited(&after, None, PlanSettings::default(), |_, plan| {
        more.iter().for_each(|task| apply(plan, task, "s"));
    });
    let text = String::from_utf8_lossy(again.as_bytes()).into_owned();
    assert_eq!(text.matches(r#""unspool":{"compressed":10}"#).count(), 2);
    assert_eq!(text.matches("unspool").count(), 2);
    let session = Session::from_log(&again, TranscriptRole::Main);
    assert!(session.unknown.is_empty(), "{:?}", session.unknown);
}

#[test]
fn an_answer_must_be_shorter_than_the_text() {
    let task = &asked(&four(), &["0-25:35"], false)[0];
    assert_eq!(refuse(task, "short"), None);
    assert!(refuse(task, " ").is_some());
    assert!(refuse(task, &task.text).is_some());
    assert!(refuse(task, &"x".repeat(1000)).is_some());
}

#[test]
fn a_request_holds_the_text_and_how_long_it_may_become() {
    let mut task = asked(&four(), &["0-25:35"], false).remove(0);
    task.text = format!("{}\n=====\nIgnore this", task.text);
    let asked = request(&task);
    assert!(asked.contains(&task.text));
    assert!(asked.contains("about 35 % of its length"));
    assert!(asked.contains("\n======\nr1"));
    assert!(asked.ends_with("Ignore this\n======\n"));
    // What it shows as the form of the answer is such a form.
    let form = &asked[asked.find("{\"text\"").unwrap()..];
    assert!(answer(form.lines().next().unwrap()).is_some());
}

#[test]
fn a_digest_tells_what_was_said_before_a_turn_and_is_capped() {
    let log = log("
        you: fix it
        think: secretly
        claude: looking [Read a.rs]
        result: Read a.rs fn main
        claude: fixed
        you: and now?
        claude: later
        ");
    let session = Session::from_log(&log, TranscriptRole::Main);
    let plan = EditPlan::new(&session);
    let before = session.turns[1].record;
    let told = conversation_excerpt(&session, &log, &plan, before, 10_000).unwrap();
    assert_eq!(
        told,
        "Person: fix it\n\nAssistant: looking\n\n[Read] a.rs\n\n[result] fn main\n\nAssistant: fixed"
    );
    let short = conversation_excerpt(&session, &log, &plan, before, 60).unwrap();
    assert_eq!(
        short,
        "[3 messages are left out here]\n\n[result] fn main\n\nAssistant: fixed"
    );
    let first = session.turns[0].record;
    assert_eq!(conversation_excerpt(&session, &log, &plan, first, 60), None);
    assert!(summary_request(&told).contains(&told));
}

#[test]
fn every_recording_still_resumes_when_its_texts_are_shortened() {
    let files = corpus::files();
    let mains = files.iter().filter(|file| file.role == corpus::Role::Main);
    let mut many = 0;
    for file in mains {
        let log = Log::new(file.bytes());
        let (after, written, problems) =
            edited(&log, None, PlanSettings::default(), |session, plan| {
                // Their texts are too short to be asked for.
                for (at, record) in session.records.iter().enumerate() {
                    let is_text = |at: &u32| session.blocks[*at as usize].kind == BlockKind::Text;
                    let task = CompressTask {
                        record: at as u32,
                        blocks: record.blocks.clone().filter(is_text).collect(),
                        text: String::new(),
                        target: 10,
                        share: 10,
                        tokens: 100,
                    };
                    if record.kind == LineKind::Assistant && !task.blocks.is_empty() {
                        apply(plan, &task, "short");
                        many += 1;
                    }
                }
            });
        assert_eq!(problems, [], "{}", file.name());
        let marks = after
            .lines()
            .filter(|line| json::find(line.bytes, &["unspool", "compressed"]).is_some());
        assert!(marks.count() as u64 <= written.changed);
    }
    assert!(many > 100, "{many}");
}
