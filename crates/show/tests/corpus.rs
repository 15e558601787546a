//! What people see of recorded sessions, at 80 and 120 columns.
//!
//! `UPDATE_EXPECT=1 cargo test -p unspool-show` writes the snapshots anew; look at them.

// A test may stop at the first surprise.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::transcript::{AgentTranscript, transcript};
use unspool_model::view::turn_selection::TurnSelection;
use unspool_show::{ConversationStyle, ToolDetail, conversation};

const SESSIONS: &[&str] = &[
    "2.0.42/s04_parallel",
    "2.0.76/i01_reject",
    "2.0.76/s05_write_edit",
    "2.1.29/i02_queue",
    "2.1.29/s08b_agent_two",
    "2.1.29/i06_commands",
    "2.1.100/s09_compact",
    "2.1.325/s09_compact",
    "2.1.325/s20_base",
    "2.1.325/s12_hooks",
    "2.1.325/i04_rewind",
    "2.1.325/s06_errors",
    "2.1.325/i05_plan",
];

/// A file in memory, read.
struct Opened {
    log: Log,
    session: Session,
    id: String,
    call: Option<String>,
}

fn open(path: &Path, role: TranscriptRole) -> Opened {
    let log = Log::new(std::fs::read(path).unwrap());
    let session = Session::from_log(&log, role);
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let meta = std::fs::read(path.with_extension("meta.json")).unwrap_or_default();
    let meta: serde_json::Value = serde_json::from_slice(&meta).unwrap_or_default();
    Opened {
        log,
        session,
        id: name.trim_start_matches("agent-").to_owned(),
        call: meta["toolUseId"].as_str().map(str::to_owned),
    }
}

fn jsonl(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .collect();
    paths.sort();
    paths
}

fn shown(scenario: &str, style: &ConversationStyle, pick: &TurnSelection) -> String {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/corpus");
    let projects = corpus.join(scenario).join("projects");
    let project = std::fs::read_dir(projects)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    // Beside the session stand stray files of the client; it is the largest.
    let name = |path: &PathBuf| {
        path.file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("agent-")
    };
    let sessions = jsonl(&project).into_iter().filter(|path| !name(path));
    let path = sessions
        .max_by_key(|path| path.metadata().unwrap().len())
        .unwrap();
    let main = open(&path, TranscriptRole::Main);
    let files: Vec<Opened> = jsonl(&path.with_extension("").join("subagents"))
        .iter()
        .map(|path| open(path, TranscriptRole::Agent))
        .collect();
    let mut agents = HashMap::new();
    for file in &files {
        let log = AgentTranscript {
            session: &file.session,
            source: &file.log,
            call: file.call.as_deref(),
            run: None,
        };
        agents.insert(file.id.clone(), log);
    }
    let items = transcript(&main.session, &main.log, &agents, pick);
    let mut out = Vec::new();
    conversation(&mut out, &items, style).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn recorded_sessions_look_as_they_did() {
    for scenario in SESSIONS {
        for width in [80, 120] {
            let style = ConversationStyle {
                width,
                ..ConversationStyle::default()
            };
            let text = shown(scenario, &style, &TurnSelection::default());
            for line in text.lines() {
                assert!(
                    unicode_width::UnicodeWidthStr::width(line) <= width,
                    "{scenario}: {line}"
                );
            }
            let name = scenario.replace('/', "-");
            expect_file![format!("snapshots/{name}-{width}.txt")].assert_eq(&text);
        }
    }
}

#[test]
fn agents_open_below_their_calls() {
    let pick = TurnSelection {
        agents: true,
        ..TurnSelection::default()
    };
    let text = shown(
        "2.1.29/s08b_agent_two",
        &ConversationStyle::default(),
        &pick,
    );
    expect_file!["snapshots/agents.txt"].assert_eq(&text);
}

#[test]
fn everything_can_be_shown_in_full() {
    let style = ConversationStyle {
        tools: ToolDetail::Full,
        thinking: true,
        ..ConversationStyle::default()
    };
    let text = shown("2.0.42/s04_parallel", &style, &TurnSelection::default());
    expect_file!["snapshots/full.txt"].assert_eq(&text);
}

#[test]
fn colours_say_nothing_that_the_text_does_not() {
    let plain = shown(
        "2.0.76/s05_write_edit",
        &ConversationStyle::default(),
        &TurnSelection::default(),
    );
    let style = ConversationStyle {
        color: true,
        ..ConversationStyle::default()
    };
    let coloured = shown("2.0.76/s05_write_edit", &style, &TurnSelection::default());
    assert_eq!(unspool_show::clean::text(&coloured), plain);
    expect_file!["snapshots/colour.txt"].assert_eq(&coloured.replace('\u{1b}', "␛"));
}

#[test]
fn the_last_turn_is_shown_without_the_others() {
    let pick = TurnSelection {
        turns: vec!["-1".parse().unwrap()],
        agents: false,
    };
    let text = shown("2.1.325/s20_base", &ConversationStyle::default(), &pick);
    assert!(
        text.starts_with("── 4 ──") && text.contains("❯ U4") && !text.contains("U3"),
        "{text}"
    );
}
