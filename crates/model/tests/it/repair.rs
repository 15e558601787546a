//! Repair: each kind of damage by hand.

use unspool_model::edit::repair::{ConversationIds, RepairedSession};
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ResumeResult};

use crate::make::{reply, result, system, text, user};

/// The repaired file, and what is not as it should be.
pub fn tried(log: &Log) -> (Log, RepairedSession, Vec<String>) {
    let before = Session::from_log(log, TranscriptRole::Main);
    let repair = RepairedSession::of(log, TranscriptRole::Main);
    let mut out = Vec::new();
    repair.each(log, |line| {
        out.extend_from_slice(line.bytes);
        out.push(b'\n');
    });
    let after = Log::new(out);
    let session = Session::from_log(&after, TranscriptRole::Main);
    let problems = repair
        .compare(&ConversationIds::of(&before), &session)
        .into_iter();
    let mut problems: Vec<String> = problems.map(|problem| problem.what).collect();
    let sizes = (repair.written.before, repair.written.after);
    if sizes != (log.as_bytes().len() as u64, after.as_bytes().len() as u64) {
        problems.push(format!("sizes {sizes:?}"));
    }
    let speaks = |profile| {
        matches!(
            messages::messages(&session, &after, profile),
            ResumeResult::Messages(_)
        )
    };
    for profile in ClientProfile::eras_and_strict() {
        let live = messages::live_lines(&session, ClientProfile::Strict);
        let said = live
            .iter()
            .any(|&at| session.records[at as usize].is_conversation());
        if said && speaks(ClientProfile::Strict) && !speaks(profile) {
            problems.push(format!("{} sends nothing", profile.name()));
        }
    }
    let again = RepairedSession::of(&after, TranscriptRole::Main);
    if !again.is_empty() || !again.mended.is_empty() {
        problems.push(format!("mended again: {:?}", again.mended));
    }
    (after, repair, problems)
}

/// The repaired file; fails if anything about it is not as it should be.
pub fn repaired(log: &Log) -> (Log, RepairedSession) {
    let (after, repair, problems) = tried(log);
    let text = |log: &Log| String::from_utf8_lossy(log.as_bytes()).into_owned();
    let context = || format!("{:#?}\n{}=>\n{}", repair.mended, text(log), text(&after));
    assert_eq!(problems, [""; 0], "{}", context());
    (after, repair)
}

fn log(lines: &[impl AsRef<str>]) -> Log {
    let mut text = String::new();
    for line in lines {
        text.push_str(line.as_ref());
        text.push('\n');
    }
    Log::new(text)
}

/// What was mended, and the lines that came of it.
fn mended(log: &Log) -> (Vec<(u32, &'static str)>, Vec<String>) {
    let (after, repair) = repaired(log);
    let done = repair.mended.iter();
    let lines = after.lines();
    (
        done.map(|done| (done.line, done.kind)).collect(),
        lines
            .map(|line| String::from_utf8(line.bytes.to_vec()).unwrap())
            .collect(),
    )
}

fn prompt(uuid: &str, parent: &str, clock: &str, words: &str) -> String {
    user(uuid, parent, clock, &format!("{words:?}"))
}

fn answer(uuid: &str, parent: &str, clock: &str, words: &str) -> String {
    reply(
        uuid,
        parent,
        clock,
        &format!("m-{uuid}"),
        &format!("[{}]", text(words)),
    )
}

/// A session in which nothing is wrong.
fn sound() -> Vec<String> {
    vec![
        prompt("a", "", "10:00:00", "one"),
        answer("b", "a", "10:00:01", "two"),
        prompt("c", "b", "10:00:02", "three"),
        answer("d", "c", "10:00:03", "four"),
    ]
}

fn call(id: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"ls"}}}}"#)
}

/// A compaction that follows the line `before`.
fn compaction(uuid: &str, clock: &str, before: &str) -> String {
    let rest = format!(
        r#","logicalParentUuid":"{before}","content":"Conversation compacted","compactMetadata":{{"trigger":"auto","preTokens":9}}"#
    );
    system(uuid, "", clock, "compact_boundary", &rest)
}

#[test]
fn a_sound_session_keeps_every_byte() {
    let mut text = sound().join("\r\n");
    text.push_str("\n\n");
    let log = Log::new(text);
    let (after, repair) = repaired(&log);
    assert_eq!(after.as_bytes(), log.as_bytes());
    assert!(repair.is_empty() && repair.mended.is_empty() && repair.lost.is_empty());
}

#[test]
fn a_line_glued_to_a_torn_one_is_found_again() {
    let mut lines = sound();
    let torn = lines[1][..lines[1].len() / 2].to_owned();
    lines[1] = torn + &lines.remove(2);
    let (done, after) = mended(&log(&lines));
    assert_eq!(done, [(2, "missing_parent"), (2, "unreadable")]);
    assert_eq!(after.len(), 3);
    assert_eq!(after[1], prompt("c", "a", "10:00:02", "three"));
    assert_eq!((&after[0], &after[2]), (&sound()[0], &sound()[3]));
}

#[test]
fn a_torn_tail_is_dropped() {
    let mut lines = sound();
    let tail = lines.pop().unwrap();
    let text = lines.join("\n") + "\n" + &tail[..40];
    let (done, after) = mended(&Log::new(text));
    assert_eq!(done, [(4, "torn_tail")]);
    assert_eq!(after, lines);
}

#[test]
fn glued_lines_get_a_line_each() {
    let lines = sound();
    let glued = format!("{}{}\n{}\n{}\n", lines[0], lines[1], lines[2], lines[3]);
    let (done, after) = mended(&Log::new(glued));
    assert_eq!(done, [(1, "glued")]);
    assert_eq!(after, lines);
}

#[test]
fn the_last_line_gets_its_newline_and_the_first_loses_its_mark() {
    let lines = sound();
    let text = format!("\u{feff}{}", lines.join("\n"));
    let (done, after) = mended(&Log::new(text));
    assert_eq!(done, [(1, "byte_order_mark"), (4, "no_final_newline")]);
    assert_eq!(after, lines);
}

#[test]
fn lines_of_zeros_and_values_that_are_no_objects_go() {
    let lines = sound();
    let odd = format!(
        "{}\n\0\0\0\n{}\nnull\n{}\n[1]\n\0\0{}\n",
        lines[0], lines[1], lines[2], lines[3]
    );
    let (done, after) = mended(&Log::new(odd));
    let kinds = ["unreadable", "not_an_object", "not_an_object", "unreadable"];
    assert_eq!(
        done,
        [2, 4, 6, 7].into_iter().zip(kinds).collect::<Vec<_>>()
    );
    assert_eq!(after, lines);
}

#[test]
fn texts_that_clients_refuse_are_written_as_they_read_them() {
    let mut lines = sound();
    lines[0] = lines[0].replace("one", "o\tn\u{1}e");
    lines[1] = lines[1].replace("two", "t\\ud83dwo \\ud83d\\ude00");
    let mut bytes = (lines.join("\n") + "\n").into_bytes();
    let place = bytes.windows(5).position(|five| five == b"three").unwrap();
    bytes[place] = 0xff;
    let (done, after) = mended(&Log::new(bytes));
    assert_eq!(
        done,
        [
            (1, "control_character"),
            (2, "lone_surrogate"),
            (3, "not_utf8")
        ]
    );
    assert!(after[0].contains("o\\tn\\u0001e"), "{}", after[0]);
    assert!(
        after[1].contains("t\\ufffdwo \\ud83d\\ude00"),
        "{}",
        after[1]
    );
    assert!(after[2].contains("\u{fffd}hree"), "{}", after[2]);
    assert_eq!(after[3], lines[3]);
}

#[test]
fn a_parent_that_is_nowhere_becomes_the_line_before() {
    let mut lines = sound();
    lines[2] = prompt("c", "gone", "10:00:02", "three");
    let (done, after) = mended(&log(&lines));
    assert_eq!(done, [(3, "missing_parent")]);
    assert_eq!(after, sound());
}

#[test]
fn a_circle_is_cut() {
    let mut lines = sound();
    lines[0] = prompt("a", "d", "10:00:00", "one");
    let (done, after) = mended(&log(&lines));
    assert_eq!(done, [(1, "cycle")]);
    assert_eq!(after, sound());
}

#[test]
fn of_two_lines_with_one_id_the_later_stays_in_the_place_of_the_first() {
    let mut lines = sound();
    lines.insert(2, answer("b", "a", "10:00:01", "two, better"));
    let (done, after) = mended(&log(&lines));
    assert_eq!(done, [(3, "duplicate_uuid")]);
    let mut wanted = sound();
    wanted[1] = answer("b", "a", "10:00:01", "two, better");
    assert_eq!(after, wanted);
}

#[test]
fn times_that_are_missing_or_wrong_lie_between_those_beside() {
    let mut lines = sound();
    lines[1] = lines[1].replace(r#""timestamp":"2026-01-03T10:00:01.000Z","#, "");
    lines[2] = lines[2].replace("2026-01-03T10:00:02.000Z", "soon");
    let (done, after) = mended(&log(&lines));
    assert_eq!(done, [(2, "no_time"), (3, "no_time")]);
    assert!(
        after[1].starts_with(r#"{"timestamp":"2026-01-03T10:00:01.000Z","type""#),
        "{}",
        after[1]
    );
    assert_eq!(after[2], sound()[2]);
    lines[3] = lines[3].replace("2026", "9026");
    let (done, after) = mended(&log(&lines));
    assert_eq!(done[2], (4, "bad_time"));
    assert!(
        after[3].contains("2026-01-03T10:00:00.003Z"),
        "{}",
        after[3]
    );
}

#[test]
fn a_call_without_a_result_gets_one_that_says_so() {
    let lines = [
        prompt("a", "", "10:00:00", "one"),
        reply("b", "a", "10:00:01", "m", &format!("[{}]", call("t1"))),
        reply("b2", "b", "10:00:02", "m", &format!("[{}]", call("t2"))),
        user("r", "b2", "10:00:03", &result("t2", "\"x\"")),
        answer("d", "r", "10:00:04", "on"),
    ];
    let (done, after) = mended(&log(&lines));
    assert_eq!(done, [(2, "call_without_result")]);
    assert_eq!(after.len(), 6);
    assert!(after[3].contains(r#""tool_use_id":"t1""#) && after[3].contains("unspool repair"));
    assert!(after[3].contains(r#""parentUuid":"b2""#) && after[3].contains(r#""sessionId":"s""#));
    for (old, new) in [(0, 0), (1, 1), (2, 2), (4, 5)] {
        assert_eq!(after[new], lines[old]);
    }
}

#[test]
fn a_call_that_still_runs_stays_as_it_is() {
    let lines = [
        prompt("a", "", "10:00:00", "one"),
        reply("b", "a", "10:00:01", "m", &format!("[{}]", call("t1"))),
    ];
    let (done, after) = mended(&log(&lines));
    assert_eq!(done, []);
    assert_eq!(after, lines);
}

#[test]
fn a_result_without_its_call_goes() {
    let mut lines = sound();
    lines[2] = user("c", "b", "10:00:02", &result("t9", "\"x\""));
    let (done, after) = mended(&log(&lines));
    assert_eq!(done, [(3, "result_without_call")]);
    assert_eq!(after.len(), 3);
    assert_eq!(after[2], answer("d", "b", "10:00:03", "four"));
}

#[test]
fn a_second_pair_with_the_same_id_goes() {
    let pair = |n: u32, parent: &str| {
        let clock = |second: u32| format!("10:00:{:02}", n * 10 + second);
        let (c, r) = (format!("c{n}"), format!("r{n}"));
        [
            reply(
                &c,
                parent,
                &clock(1),
                &format!("m{n}"),
                &format!("[{},{}]", text("now"), call("t1")),
            ),
            user(&r, &c, &clock(2), &result("t1", "\"x\"")),
        ]
    };
    let mut lines = vec![prompt("a", "", "10:00:00", "one")];
    lines.extend(pair(1, "a"));
    lines.extend(pair(2, "r1"));
    lines.push(prompt("z", "r2", "10:00:50", "end"));
    let (done, after) = mended(&log(&lines));
    assert_eq!(done, [(4, "duplicate_call"), (5, "duplicate_call")]);
    assert_eq!(after[..3], lines[..3]);
    assert_eq!(after.len(), 5);
    assert!(
        after[3].contains("now") && !after[3].contains("tool_use"),
        "{}",
        after[3]
    );
    assert_eq!(after[4], prompt("z", "c2", "10:00:50", "end"));
}

#[test]
fn empty_texts_and_thinking_that_the_api_refuses_go() {
    let thought = r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#;
    let unsigned = r#"{"type":"thinking","thinking":"hm","signature":""}"#;
    let lines = [
        prompt("a", "", "10:00:00", "one"),
        reply("b", "a", "10:00:01", "m1", &format!("[{thought}]")),
        reply(
            "c",
            "b",
            "10:00:02",
            "m2",
            &format!("[{unsigned},{}]", text("two")),
        ),
        reply("d", "c", "10:00:03", "m2", &format!("[{}]", text(" "))),
        prompt("e", "d", "10:00:04", ""),
        answer("f", "e", "10:00:05", "three"),
    ];
    let (done, after) = mended(&log(&lines));
    let kinds = [
        "thinking_alone",
        "unsigned_thinking",
        "empty_text",
        "empty_text",
    ];
    assert_eq!(done, (2..).zip(kinds).collect::<Vec<_>>());
    let wanted = [
        lines[0].clone(),
        reply("c", "a", "10:00:02", "m2", &format!("[{}]", text("two"))),
        answer("f", "c", "10:00:05", "three"),
    ];
    assert_eq!(after, wanted);
}

#[test]
fn parallel_results_become_a_chain() {
    let lines = [
        prompt("a", "", "10:00:00", "one"),
        reply("b", "a", "10:00:01", "m", &format!("[{}]", call("t1"))),
        reply("c", "b", "10:00:02", "m", &format!("[{}]", call("t2"))),
        user("r1", "b", "10:00:03", &result("t1", "\"x\"")),
        user("r2", "c", "10:00:04", &result("t2", "\"y\"")),
        answer("d", "r2", "10:00:05", "on"),
    ];
    let (done, after) = mended(&log(&lines));
    assert_eq!(done, [(4, "parallel_results"), (5, "parallel_results")]);
    assert_eq!(
        after[3],
        user("r1", "c", "10:00:03", &result("t1", "\"x\""))
    );
    assert_eq!(
        after[4],
        user("r2", "r1", "10:00:04", &result("t2", "\"y\""))
    );
}

#[test]
fn a_conversation_does_not_begin_behind_its_own_results() {
    let lines = [
        user("r1", "", "10:00:00", &result("t1", "\"x\"")),
        answer("d", "r1", "10:00:01", "aside"),
        reply("b", "d", "10:00:02", "m", &format!("[{}]", call("t1"))),
        reply("c", "", "10:00:03", "m", &format!("[{}]", call("t2"))),
        user("r2", "c", "10:00:04", &result("t2", "\"y\"")),
    ];
    let (done, after) = mended(&log(&lines));
    assert_eq!(
        done,
        [
            (1, "parallel_results"),
            (3, "cycle"),
            (4, "parallel_results"),
            (5, "parallel_results")
        ]
    );
    let wanted = [
        user("r1", "c", "10:00:00", &result("t1", "\"x\"")),
        lines[1].clone(),
        reply("b", "", "10:00:02", "m", &format!("[{}]", call("t1"))),
        reply("c", "b", "10:00:03", "m", &format!("[{}]", call("t2"))),
        user("r2", "r1", "10:00:04", &result("t2", "\"y\"")),
    ];
    assert_eq!(after, wanted);
}

#[test]
fn where_to_go_on_is_the_end_of_the_conversation_as_it_will_be() {
    let lines = [
        reply("b", "", "10:00:00", "m", &format!("[{}]", text("one"))),
        answer("d", "b", "10:00:01", "two"),
        prompt("e", "d", "10:00:02", "three"),
        reply("c", "e", "10:00:03", "m", &format!("[{}]", call("t1"))),
        user("r", "c", "10:00:04", &result("t1", "\"x\"")),
        prompt("f", "c", "10:00:05", "rewound"),
        prompt("g", "c", "10:00:06", ""),
    ];
    let (_, after) = mended(&log(&lines));
    assert_eq!(after.len(), 7);
    assert!(after[6].contains(r#""leafUuid":"e""#), "{}", after[6]);
}

#[test]
fn where_to_go_on_is_said_where_only_a_compaction_leads_to_it() {
    let part = |uuid: &str, parent: &str, clock: &str, words: &str| {
        reply(uuid, parent, clock, "m", &format!("[{}]", text(words)))
    };
    let lines = [
        prompt("x", "d", "10:00:00", "aside"),
        compaction("s", "10:00:01", "gone"),
        part("b", "s", "10:00:02", "one"),
        answer("d", "b", "10:00:03", "two"),
        part("b2", "b", "10:00:04", "three"),
        part("c", "d", "10:00:05", "four"),
    ];
    let (_, after) = mended(&log(&lines));
    assert_eq!(after.len(), 7);
    assert!(after[6].contains(r#""leafUuid":"d""#), "{}", after[6]);
}

#[test]
fn what_the_client_said_at_the_end_goes() {
    let own = answer("e", "d", "10:00:04", "No response requested.")
        .replace("claude-opus-4-5", "<synthetic>");
    let error = answer("f", "e", "10:00:05", "API Error: 500").replace(
        r#""isSidechain""#,
        r#""isApiErrorMessage":true,"isSidechain""#,
    );
    let mut lines = sound();
    lines.extend([own, error]);
    let (done, after) = mended(&log(&lines));
    assert_eq!(done, [(5, "error_tail"), (6, "error_tail")]);
    assert_eq!(after, sound());
}

#[test]
fn a_compaction_without_a_summary_goes() {
    let mut lines = sound();
    lines.push(compaction("x", "10:00:04", "d"));
    let (done, after) = mended(&log(&lines));
    assert_eq!(done, [(5, "no_summary")]);
    assert_eq!(after, sound());
}

#[test]
fn a_compaction_at_the_end_may_also_be_the_beginning() {
    let lines = [
        prompt("a", "s", "10:00:01", "summary"),
        prompt("c", "", "10:00:02", "aside"),
        prompt("d", "a", "10:00:03", ""),
        compaction("s", "10:00:00", "gone"),
    ];
    let (_, after) = mended(&log(&lines));
    assert_eq!(after.len(), 4);
    assert!(after[3].contains(r#""leafUuid":"a""#), "{}", after[3]);
}

#[test]
fn a_line_without_an_id_gets_one() {
    let mut lines = sound();
    lines[3] = lines[3].replace(r#""uuid":"d","parentUuid":"c","#, "");
    let (done, after) = mended(&log(&lines));
    assert_eq!(done, [(4, "no_uuid")]);
    assert!(after[3].contains(r#""parentUuid":"c""#) && after[3].contains(r#""uuid":""#));
    let (_, again) = mended(&log(&lines));
    assert_eq!(after, again);
}

#[test]
fn a_reply_that_is_one_string_becomes_a_block() {
    let mut lines = sound();
    lines[1] = reply("b", "a", "10:00:01", "m-b", "\"two\"");
    let (done, after) = mended(&log(&lines));
    assert_eq!(done, [(2, "bare_text")]);
    assert_eq!(after, sound());
}
