//! A summary in place of everything before a turn.

use unspool_model::edit::check::ExpectedResult;
use unspool_model::edit::{EditPlan, LineRewriter, PlanSettings, summary};
use unspool_model::log::Log;
use unspool_model::session::{Index, Session, TranscriptRole};
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages;
use unspool_model::view::turns::{TurnOptions, outline};
use unspool_testkit::{corpus, graph};

use crate::edit::edited;
use crate::make::{reply, text, user};

const WORDS: &str = "What was said before, in short.";

/// The file with a summary before this record; `None` if it was refused.
fn summarised(log: &Log, first: Index) -> Option<(Log, Vec<String>)> {
    let session = Session::from_log(log, TranscriptRole::Main);
    let mut plan = EditPlan::new(&session);
    plan.repair_references(&session, PlanSettings::default());
    let put = summary::put(&mut plan, &session, log, first, WORDS).ok()?;
    let mut wanted = ExpectedResult::of(&session, &plan, None);
    wanted.summarised(&put.first, [put.summary.clone()]);
    let mut pen = LineRewriter::new(&session, &plan, None);
    let mut out = Vec::new();
    for line in log.lines() {
        pen.line(&line, &mut out);
    }
    pen.end(&mut out);
    let after = Log::new(out);
    let now = Session::from_log(&after, TranscriptRole::Main);
    let problems = wanted.compare(&now).into_iter();
    let mut problems: Vec<String> = problems.map(|problem| problem.what).collect();
    let spoken = |session: &Session, profile| {
        let lines = messages::live_lines(session, profile).into_iter();
        let said = lines.filter(|&at| session.records[at as usize].is_conversation());
        said.filter_map(|at| session.records[at as usize].uuid.clone())
            .collect::<Vec<_>>()
    };
    let mut kept = spoken(&session, ClientProfile::Strict);
    let from = kept.iter().position(|id| *id == put.first).unwrap();
    kept.splice(..from, [put.summary]);
    if spoken(&now, ClientProfile::Strict) != kept {
        problems.push("strict differs".into());
    }
    Some((after, problems))
}

/// Each turn of the conversation in turn.
fn check(log: &Log, name: &str) -> usize {
    let session = Session::from_log(log, TranscriptRole::Main);
    // What parallel calls need before anything is summarised is tested elsewhere.
    let (_, _, problems) = edited(log, None, PlanSettings::default(), |_, _| ());
    let mut done = 0;
    if !problems.is_empty() {
        return 0;
    }
    for row in outline(&session, TurnOptions::default()) {
        if let Some((_, problems)) = summarised(log, row.record) {
            assert_eq!(problems, [""; 0], "{name} turn {}", row.n);
            done += 1;
        }
    }
    done
}

#[test]
fn what_stands_before_a_turn_is_a_compaction() {
    let lines = [
        user("a", "", "10:00:00", "\"one\""),
        reply("b", "a", "10:00:01", "m1", &format!("[{}]", text("two"))),
        user("c", "b", "10:00:02", "\"three\""),
        reply("d", "c", "10:00:03", "m2", &format!("[{}]", text("four"))),
    ];
    let log = Log::new(lines.join("\n") + "\n");
    let (after, problems) = summarised(&log, 2).unwrap();
    assert_eq!(problems, [""; 0]);
    let text = String::from_utf8(after.as_bytes().to_vec()).unwrap();
    let after: Vec<&str> = text.lines().collect();
    assert_eq!(after[..2], lines[..2]);
    assert!(
        after[2].contains("\"compact_boundary\"")
            && after[2].contains("\"logicalParentUuid\":\"b\"")
    );
    assert!(after[3].contains(WORDS) && after[3].contains("\"isCompactSummary\":true"));
    assert!(after[4].contains("three") && !after[4].contains("\"parentUuid\":\"b\""));
    assert_eq!(after[5], lines[3]);
    let log = Log::new(text);
    let session = Session::from_log(&log, TranscriptRole::Main);
    for profile in ClientProfile::eras_and_strict() {
        let messages::ResumeResult::Messages(sent) = messages::messages(&session, &log, profile)
        else {
            panic!("{profile:?}");
        };
        let json = messages::to_json(&sent);
        assert!(
            json.contains(WORDS) && json.contains("three") && json.contains("four"),
            "{json}"
        );
        assert!(!json.contains("one") && !json.contains("two"), "{json}");
    }
    assert!(summarised(&log, 0).is_none());
}

#[test]
fn every_turn_of_random_sessions_can_begin_behind_a_summary() {
    let mut done = 0;
    for seed in 0..300 {
        let log = Log::new(graph::healthy(seed).join("\n") + "\n");
        done += check(&log, &format!("seed {seed}"));
    }
    assert!(done > 200, "{done}");
}

#[test]
fn every_turn_of_a_recording_can_begin_behind_a_summary() {
    let mut done = 0;
    for file in corpus::files()
        .iter()
        .filter(|file| file.role == corpus::Role::Main)
    {
        done += check(&Log::new(file.bytes()), &file.name());
    }
    assert!(done > 50, "{done}");
}

/// The recordings in which a program took the conversation back, each as it stood after every
/// line from the rewind on.
fn rewound() -> Vec<(String, Log)> {
    let files = corpus::files();
    let files = files.iter().filter(|file| {
        let is_rewind = file.scenario.contains("rewind_sdk");
        file.role == corpus::Role::Main && is_rewind
    });
    let logs = files.flat_map(|file| {
        let text = String::from_utf8(file.bytes()).unwrap();
        let from = text.find(r#""rewound":true"#).unwrap();
        let ends = text.match_indices('\n').filter(move |(at, _)| *at > from);
        let ends: Vec<usize> = ends.map(|(at, _)| at + 1).collect();
        let name = file.name();
        ends.into_iter()
            .map(move |end| (format!("{name} up to {end}"), Log::new(&text[..end])))
    });
    logs.collect()
}

#[test]
fn every_live_turn_after_a_rewind_by_a_program_can_begin_behind_a_summary() {
    let mut done = 0;
    for (name, log) in rewound() {
        let session = Session::from_log(&log, TranscriptRole::Main);
        let live = messages::live_lines(&session, ClientProfile::Strict);
        let opens = |record: &Index| live.contains(record);
        let turns: Vec<Index> = session.turns.iter().map(|turn| turn.record).collect();
        for turn in turns.into_iter().filter(opens).skip(1) {
            let (_, problems) = summarised(&log, turn).unwrap_or_else(|| panic!("{name} {turn}"));
            assert_eq!(problems, [""; 0], "{name}");
            done += 1;
        }
    }
    assert!(done > 30, "{done}");
}
