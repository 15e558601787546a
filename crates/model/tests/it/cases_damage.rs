//! Lines with missing, odd or torn parts: never a panic, and never the loss of a neighbour.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};
use unspool_model::fault::{Fault, FaultKind};
use unspool_model::log::Log;
use unspool_model::price::Prices;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::time::Time;
use unspool_model::user_input::UserInput;
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::session_usage::SessionFiles;
use unspool_model::view::status::StatusSignals;
use unspool_model::view::turn_selection::TurnSelection;
use unspool_model::view::{
    agents, check, context, files, info, messages, session_row, status, transcript, tree, turns,
};

const NEIGHBOUR: &str = r#"{"type":"user","uuid":"neighbour","parentUuid":null,"message":{"role":"user","content":"still here"}}"#;

/// All lines of all examples, by file.
fn examples() -> Vec<Vec<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/seeds");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .map(|text| text.lines().map(str::to_owned).collect())
        .collect()
}

fn odd_values() -> [Value; 7] {
    [
        Value::Null,
        json!(true),
        json!(-7),
        json!("odd"),
        json!([]),
        json!([null, 1, {"type": 5}]),
        json!({"type": null, "content": {"x": []}}),
    ]
}

/// The object with one of its keys dropped or given an odd value, in every way.
fn variants(line: &Value, at: &[&str]) -> Vec<Value> {
    let pointer: String = at.iter().map(|key| format!("/{key}")).collect();
    let Some(keys) = line.pointer(&pointer).and_then(Value::as_object) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for key in keys.keys() {
        let mut dropped = line.clone();
        let inner = dropped.pointer_mut(&pointer).unwrap();
        inner.as_object_mut().unwrap().shift_remove(key);
        out.push(dropped);
        for odd in odd_values() {
            let mut changed = line.clone();
            changed.pointer_mut(&pointer).unwrap()[key] = odd;
            out.push(changed);
        }
    }
    out
}

/// Asks every view of the session; the answers do not matter here.
fn ask_everything(session: &Session, log: &Log) {
    let now = Time::parse("2026-06-01T00:00:00.000Z").unwrap();
    let rows = turns::turns(session, log, turns::TurnOptions::default());
    status::status(session, &StatusSignals::default(), now);
    session_row::row(
        &SessionFiles::alone(session),
        &HashMap::new(),
        Prices::bundled(),
        &StatusSignals::default(),
        now,
    );
    agents::agents(session, &unspool_model::log::Log::default(), &[], &[]);
    files::files(session, log);
    context::context(session, log, 5);
    check::faults(session);
    check::resumable(session);
    info::info(session);
    tree::tree(session, log, "s", &[]);
    for profile in ClientProfile::eras_and_strict() {
        messages::messages(session, log, profile);
    }
    let items = transcript::transcript(
        session,
        log,
        &transcript::AgentTranscripts::new(),
        &TurnSelection::default(),
    );
    assert!(rows.len() <= items.len());
}

#[test]
fn a_missing_or_odd_field_costs_neither_the_line_nor_its_neighbours() {
    let mut count = 0;
    for lines in examples() {
        for at in 0..lines.len() {
            let line: Value = serde_json::from_str(&lines[at]).unwrap();
            let mut all = variants(&line, &[]);
            all.extend(variants(&line, &["message"]));
            all.extend(variants(&line, &["message", "content", "0"]));
            all.extend(variants(&line, &["message", "usage"]));
            for variant in all {
                let alone = format!("{variant}\n{NEIGHBOUR}\n");
                let session = Session::from_log(&Log::new(alone), TranscriptRole::Main);
                assert_eq!(session.records.len(), 2, "{variant}");
                let time_alone = |fault: &Fault| fault.kind == FaultKind::BadTime;
                assert!(session.faults.iter().all(time_alone), "{variant}");
                assert_eq!(session.records[1].input, UserInput::Prompt);
                // Views are dear; 19 has no common factor with the variants of a field.
                count += 1;
                if count % 19 == 0 {
                    let mut whole = lines.clone();
                    whole[at] = variant.to_string();
                    let log = Log::new(whole.join("\n") + "\n");
                    ask_everything(&Session::from_log(&log, TranscriptRole::Main), &log);
                }
            }
        }
    }
}

#[test]
fn a_line_cut_anywhere_leaves_its_neighbours_whole() {
    for lines in examples() {
        let line = &lines[0];
        for cut in (1..line.len()).step_by(7) {
            let mut bytes = line.as_bytes()[..cut].to_vec();
            bytes.push(b'\n');
            bytes.extend(NEIGHBOUR.bytes());
            bytes.push(b'\n');
            let log = Log::new(bytes);
            let session = Session::from_log(&log, TranscriptRole::Main);
            assert_eq!(session.records.len(), 1, "{line} cut at {cut}");
            assert_eq!(session.faults[0].kind.name(), "unreadable");
            assert_eq!(session.goal.as_deref(), Some("still here"));
        }
    }
}

#[test]
fn lines_in_any_order_give_answers() {
    for lines in examples().iter().filter(|lines| lines.len() > 1) {
        let backwards: Vec<&str> = lines.iter().rev().map(String::as_str).collect();
        let log = Log::new(backwards.join("\n") + "\n");
        let session = Session::from_log(&log, TranscriptRole::Main);
        let forwards = Session::from_log(&Log::new(lines.join("\n") + "\n"), TranscriptRole::Main);
        assert_eq!(session.records.len(), forwards.records.len());
        assert_eq!(session.usage(), forwards.usage());
        assert_eq!(session.calls.len(), forwards.calls.len());
        assert_eq!(
            session.orphan_results().len(),
            forwards.orphan_results().len()
        );
        ask_everything(&session, &log);
    }
}
