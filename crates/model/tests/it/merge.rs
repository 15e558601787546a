//! Merge: the conversations of several sessions, one after the other.

use unspool_model::edit::LineRewriter;
use unspool_model::edit::merge::{self, MergeSource, SessionMerge};
use unspool_model::edit::repair::RepairedSession;
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ApiBlockKind, ResumeResult};
use unspool_testkit::{corpus, graph};

use crate::make::{call, reply, result, system, text, user};

const NEW: &str = "00000000-0000-4000-8000-0000000003e6";

fn log(lines: &[String]) -> Log {
    let mut text = lines.join("\n");
    text.push('\n');
    Log::new(text)
}

fn sound(log: &Log) -> Log {
    let repair = RepairedSession::of(log, TranscriptRole::Main);
    let mut out = Vec::new();
    repair.each(log, |line| {
        out.extend_from_slice(line.bytes);
        out.push(b'\n');
    });
    Log::new(out)
}

/// One file of several, and what is not as it was wanted.
fn tried(logs: &[&Log]) -> (Log, SessionMerge, Vec<String>) {
    let sessions: Vec<Session> = logs
        .iter()
        .map(|log| Session::from_log(log, TranscriptRole::Main))
        .collect();
    let parts: Vec<MergeSource<'_>> = sessions
        .iter()
        .zip(logs)
        .map(|(session, log)| MergeSource {
            session,
            source: *log,
            id: "old",
        })
        .collect();
    let merge = merge::plan(&parts, NEW, "both").unwrap();
    let mut out = Vec::new();
    for part in &merge.parts {
        let mut pen = LineRewriter::new(&sessions[part.number], &part.plan, Some(&part.identity));
        for line in logs[part.number].lines() {
            pen.line(&line, &mut out);
        }
        pen.end(&mut out);
    }
    let after = Log::new(out);
    let session = Session::from_log(&after, TranscriptRole::Main);
    let problems = merge
        .compare(&session)
        .into_iter()
        .map(|problem| problem.what);
    let problems = problems.collect();
    assert_eq!(session.given_title(), Some("both"));
    (after, merge, problems)
}

fn merged(logs: &[&Log]) -> (Vec<String>, SessionMerge) {
    let (after, merge, problems) = tried(logs);
    let text = |log: &Log| String::from_utf8_lossy(log.as_bytes()).into_owned();
    let all = || {
        logs.iter()
            .map(|log| text(log))
            .collect::<Vec<_>>()
            .join("----\n")
    };
    assert_eq!(
        problems,
        [""; 0],
        "{:?}\n{}====\n{}",
        merge.notes,
        all(),
        text(&after)
    );
    (text(&after).lines().map(str::to_owned).collect(), merge)
}

/// The words of a conversation, in order.
fn words(log: &Log) -> Vec<String> {
    let session = Session::from_log(log, TranscriptRole::Main);
    let ResumeResult::Messages(all) = messages::messages(&session, log, ClientProfile::Strict)
    else {
        return Vec::new();
    };
    let pieces = all.into_iter().flat_map(|message| message.content);
    let said = pieces.filter(|piece| piece.kind == ApiBlockKind::Text && piece.record.is_some());
    said.map(|piece| piece.json.replace("\\n\"", "\""))
        .collect()
}

fn one() -> Vec<String> {
    vec![
        user("a", "", "10:00:00", "\"one\""),
        reply(
            "b",
            "a",
            "10:00:01",
            "m1",
            &format!("[{}]", call("t1", "Bash", "{}")),
        ),
        user("c", "b", "10:00:02", &result("t1", "\"x\"")),
        reply("d", "c", "10:00:03", "m2", &format!("[{}]", text("two"))),
    ]
}

#[test]
fn the_second_session_follows_the_first() {
    let second = vec![
        user("e", "", "11:00:00", "\"three\""),
        reply("f", "e", "11:00:01", "m3", &format!("[{}]", text("four"))),
    ];
    let (lines, merge) = merged(&[&log(&one()), &log(&second)]);
    assert_eq!(lines.len(), 7);
    let own = |line: &str| line.replace("\"sessionId\":\"s\"", &format!("\"sessionId\":\"{NEW}\""));
    assert_eq!(lines[3], own(&one()[3]));
    assert_eq!(lines[4], own(&user("e", "d", "11:00:00", "\"three\"")));
    assert_eq!(lines[5], own(&second[1]));
    assert!(merge.notes.is_empty(), "{:?}", merge.notes);
}

#[test]
fn lines_of_a_fork_stand_once() {
    let mut fork = one();
    fork.pop();
    fork.push(user("e", "c", "10:00:09", "\"forked\""));
    let (lines, merge) = merged(&[&log(&one()), &log(&fork)]);
    assert_eq!(lines.len(), 6);
    assert!(lines[4].contains("forked") && lines[4].contains("\"parentUuid\":\"d\""));
    assert_eq!(
        merge.notes,
        ["old: 3 lines shared with an earlier session are written once"]
    );
}

#[test]
fn ids_that_mean_something_else_get_new_ones_everywhere() {
    let second: Vec<String> = one()
        .iter()
        .map(|line| line.replace("T10:", "T11:").replace("one", "uno"))
        .collect();
    let (lines, merge) = merged(&[&log(&one()), &log(&second)]);
    assert_eq!(lines.len(), 9);
    let text = lines.join("\n");
    for id in [
        "\"uuid\":\"a\"",
        "\"uuid\":\"b\"",
        "\"id\":\"t1\"",
        "\"tool_use_id\":\"t1\"",
        "\"id\":\"m2\"",
    ] {
        assert_eq!(text.matches(id).count(), 1, "{id}\n{text}");
    }
    assert_eq!(merge.notes, ["7 duplicate ids were replaced"]);
}

#[test]
fn a_compaction_of_a_later_session_cuts_nothing_off() {
    let boundary = r#","logicalParentUuid":"x","content":"Conversation compacted","compactMetadata":{"trigger":"auto","preTokens":9}"#;
    let second = vec![
        user("x", "", "11:00:00", "\"long ago\""),
        system("y", "", "11:00:01", "compact_boundary", boundary),
        user("z", "y", "11:00:02", "\"summary of it\""),
        reply("w", "z", "11:00:03", "m9", &format!("[{}]", text("on"))),
    ];
    let (lines, _) = merged(&[&log(&one()), &log(&second)]);
    let text = lines.join("\n");
    assert!(!text.contains("long ago") && !text.contains("compact_boundary"));
    assert!(text.contains("summary of it"));
    // The first session keeps its own.
    let (lines, _) = merged(&[&log(&second), &log(&one())]);
    assert!(lines.join("\n").contains("long ago"));
}

#[test]
fn a_call_that_still_ran_gets_a_result_before_the_next_session() {
    let mut first = one();
    first.truncate(2);
    let second = vec![user("e", "", "09:00:00", "\"earlier\"")];
    let (lines, _) = merged(&[&log(&first), &log(&second)]);
    assert!(lines[2].contains("unspool repair") && lines[2].contains("10:00:01.001"));
    assert!(
        lines[3].contains("2026-01-03T10:00:01.002Z"),
        "{}",
        lines[3]
    );
}

#[test]
fn a_damaged_session_is_refused() {
    let mut bad = one();
    bad[3] = bad[3].replace("\"parentUuid\":\"c\"", "\"parentUuid\":\"gone\"");
    let logs = [log(&one()), log(&bad)];
    let sessions: Vec<Session> = logs
        .iter()
        .map(|log| Session::from_log(log, TranscriptRole::Main))
        .collect();
    let parts: Vec<MergeSource<'_>> = sessions
        .iter()
        .zip(&logs)
        .map(|(session, log)| MergeSource {
            session,
            source: log,
            id: "it",
        })
        .collect();
    let why = merge::plan(&parts, NEW, "t").unwrap_err().why;
    assert_eq!(
        why,
        "it is damaged on line 4 (missing_parent); repair it first"
    );
    assert!(merge::plan(&parts[..1], NEW, "t").is_err());
}

#[test]
fn random_sessions_are_one_behind_the_other() {
    for seed in 0..250 {
        let logs: Vec<Log> = (0..2 + seed % 2)
            .map(|n| sound(&log(&graph::healthy(seed * 3 + n))))
            .filter(|log| Session::from_log(log, TranscriptRole::Main).is_conversation())
            .collect();
        let all: Vec<&Log> = logs.iter().collect();
        if all.len() < 2 {
            continue;
        }
        let (after, _, problems) = tried(&all);
        assert_eq!(problems, [""; 0], "{seed}");
        let parts: Vec<String> = all.iter().flat_map(|log| words(log)).collect();
        assert_eq!(words(&after), parts, "{seed}");
    }
}

#[test]
fn recordings_of_one_scenario_become_one() {
    let files = corpus::files();
    let mut by_scenario: std::collections::BTreeMap<(String, String), Vec<Log>> =
        Default::default();
    for file in files.iter().filter(|file| file.role == corpus::Role::Main) {
        let log = sound(&Log::new(file.bytes()));
        if Session::from_log(&log, TranscriptRole::Main).is_conversation() {
            by_scenario
                .entry((file.version.clone(), file.scenario.clone()))
                .or_default()
                .push(log);
        }
    }
    let mut merged = 0;
    for (name, logs) in by_scenario.iter().filter(|(_, logs)| logs.len() > 1) {
        let all: Vec<&Log> = logs.iter().collect();
        let (_, _, problems) = tried(&all);
        assert_eq!(problems, [""; 0], "{name:?}");
        merged += 1;
    }
    assert!(merged > 3, "{merged}");
}

#[test]
fn a_session_that_a_program_took_back_is_merged_as_it_goes_on() {
    let other = log(&one());
    let mut done = 0;
    for file in corpus::files() {
        if file.role != corpus::Role::Main || !file.scenario.contains("rewind_sdk") {
            continue;
        }
        let text = String::from_utf8(file.bytes()).unwrap();
        let from = text.find(r#""rewound":true"#).unwrap();
        let ends = text.match_indices('\n').filter(|(at, _)| *at > from);
        for (end, _) in ends {
            let rewound = Log::new(&text[..=end]);
            if words(&rewound).is_empty() {
                continue;
            }
            for logs in [[&rewound, &other], [&other, &rewound]] {
                let (after, _, problems) = tried(&logs);
                assert_eq!(problems, [""; 0], "{} {end}", file.name());
                assert_eq!(
                    words(&after),
                    logs.map(words).concat(),
                    "{} {end}",
                    file.name()
                );
                done += 1;
            }
        }
    }
    assert!(done > 60, "{done}");
}
