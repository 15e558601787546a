//! The fold and the views on generated sessions: the totals against the truth
//! of a tree, and strange graphs against what must hold for any session.

use std::collections::HashMap;
use std::path::Path;

use unspool_model::fault::FaultKind;
use unspool_model::graph;
use unspool_model::log::{LineSplitter, Log};
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::usage::Usage;
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{ApiBlockKind, ApiMessage, MessageRole, ResumeResult};
use unspool_model::view::{check, messages, session_row, turns};
use unspool_testkit::tree::{self, Options, SessionTruth, Truth};

fn log(dir: &Path, truth: &SessionTruth) -> Log {
    Log::new(std::fs::read(dir.join(&truth.path)).unwrap())
}

fn tree() -> (tempfile::TempDir, Truth) {
    let dir = tempfile::tempdir().unwrap();
    let truth = tree::generate(dir.path(), &Options::small()).unwrap();
    (dir, truth)
}

fn tokens(usage: Usage) -> tree::Usage {
    tree::Usage {
        input: usage.input,
        output: usage.output,
        cache_read: usage.cache_read,
        cache_write_5m: usage.cache_write_5m,
        cache_write_1h: usage.cache_write_1h,
    }
}

#[test]
fn the_fold_finds_what_is_true_of_each_session() {
    let (dir, truth) = tree();
    for truth in &truth.sessions {
        let session = Session::from_log(&log(dir.path(), truth), TranscriptRole::Main);
        let name = &truth.path;
        let own = session
            .messages
            .iter()
            .filter(|message| message.thread == 0 && !message.synthetic);
        let mut usage = Usage::default();
        own.clone()
            .for_each(|message| usage += session.usage_of(message));
        assert_eq!(
            (own.count() as u64, tokens(usage)),
            (truth.messages, truth.usage),
            "{name}"
        );
        let calls = session
            .calls
            .iter()
            .filter(|call| session.records[call.record as usize].thread == 0);
        assert_eq!(calls.clone().count() as u64, truth.calls, "{name}");
        assert_eq!(
            calls.filter(|call| call.result.is_some()).count() as u64,
            truth.results,
            "{name}"
        );
        assert_eq!(u64::from(session.threads[0].turns), truth.turns, "{name}");
        assert_eq!(
            session_row::compactions(&session) as u64,
            truth.compactions,
            "{name}"
        );
        let title = session.title(&HashMap::new());
        match &truth.title {
            Some(expected) => assert_eq!(title.as_ref(), Some(expected), "{name}"),
            None => {
                assert!(title.is_some_and(|title| {
                    truth.first_prompt.starts_with(title.trim_end_matches('…'))
                }))
            }
        }
    }
}

#[test]
fn a_generated_tree_has_no_faults_but_its_torn_tails() {
    let (dir, truth) = tree();
    for truth in &truth.sessions {
        let session = Session::from_log(&log(dir.path(), truth), TranscriptRole::Main);
        let kinds: Vec<FaultKind> = session.faults.iter().map(|fault| fault.kind).collect();
        let expected = vec![FaultKind::TornTail; truth.torn as usize];
        assert_eq!(kinds, expected, "{}", truth.path);
    }
}

#[test]
fn any_graph_is_read_and_every_line_has_one_place() {
    for seed in 0..500 {
        let text = unspool_testkit::graph::session(seed).join("\n") + "\n";
        let log = Log::new(text);
        let session = Session::from_log(&log, TranscriptRole::Main);
        let links = graph::links(&session);
        assert!(!graph::has_cycle(&links), "seed {seed}");
        let mut order = links.order.to_vec();
        order.sort_unstable();
        order.dedup();
        assert_eq!(order.len(), links.order.len(), "seed {seed}");
        for profile in [
            ClientProfile::client("2.0.50"),
            ClientProfile::client("2.1.45"),
            ClientProfile::client("2.1.100"),
            ClientProfile::client("2.1.200"),
            ClientProfile::client("2.1.325"),
            ClientProfile::Strict,
        ] {
            messages::messages(&session, &log, profile);
        }
        check::faults(&session);
        turns::turns(&session, &log, turns::TurnOptions::default());
    }
}

#[test]
fn what_we_would_send_obeys_the_rules_of_the_api() {
    for seed in 0..500 {
        let text = unspool_testkit::graph::session(seed).join("\n") + "\n";
        let log = Log::new(text);
        let session = Session::from_log(&log, TranscriptRole::Main);
        let ResumeResult::Messages(messages) =
            messages::messages(&session, &log, ClientProfile::Strict)
        else {
            continue;
        };
        let first = messages.first().map(|message| message.role);
        assert_ne!(first, Some(MessageRole::Assistant), "seed {seed}");
        for pair in messages.windows(2) {
            let calls = ids(&pair[0], ApiBlockKind::Call);
            assert_eq!(calls, ids(&pair[1], ApiBlockKind::Result), "seed {seed}");
        }
        for message in &messages {
            assert!(!message.content.is_empty(), "seed {seed}");
        }
    }
}

fn ids(message: &ApiMessage, kind: ApiBlockKind) -> Vec<&str> {
    let pieces = message.content.iter().filter(|piece| piece.kind == kind);
    let mut ids: Vec<&str> = pieces.filter_map(|piece| piece.call.as_deref()).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn a_session_is_the_same_however_its_bytes_are_cut() {
    for seed in 0..60 {
        let text = unspool_testkit::graph::session(seed).join("\n") + "\n";
        let whole = Session::from_log(&Log::new(text.clone()), TranscriptRole::Main);
        for size in [1, 7, 1000] {
            let mut session = Session::new(TranscriptRole::Main);
            let mut splitter = LineSplitter::default();
            for piece in text.as_bytes().chunks(size) {
                splitter.feed(piece, |line| {
                    session.push(&line);
                });
            }
            assert_eq!(
                format!("{:?}", session.records),
                format!("{:?}", whole.records),
                "seed {seed}"
            );
            assert_eq!(session.usage(), whole.usage(), "seed {seed}");
        }
    }
}

/// One of every kind of line that a script can write.
const EVERYTHING: &str = "
    you:    fix it
    think:  where
    claude: looking [Read a.rs] [Bash ls] [Task look]
    hook:   PreToolUse:Bash
    result: Read a.rs ok
    queued: and that
    result: Bash ls broken!
    result: Task look found
    agent a1: look
    (agent=a1) claude: found
    claude: done
    duration: 5500
    meta:   note
    command: /model opus
    shell:  ls
    stdout: a.rs
    image:  see
    interrupt:
    error:  API Error: overloaded
    (keep=2) compact: 30000 -> 5000
    summary: so far
    you:    go on
    title:  Mine
    ai-title: Its
    last-prompt: go on
";

#[test]
fn scripts_are_read_without_faults_or_surprises() {
    for version in ["2.0.42", "2.0.76", "2.1.45", "2.1.100", "2.1.325"] {
        let script = format!("(version={version})\n{EVERYTHING}");
        let session = Session::from_log(
            &Log::new(unspool_testkit::script::jsonl(&script)),
            TranscriptRole::Main,
        );
        assert_eq!(session.faults, [], "{version}");
        assert!(
            session.unknown.is_empty(),
            "{version}: {:?}",
            session.unknown
        );
        assert_eq!(session.orphan_results(), [], "{version}");
    }
}

#[test]
fn generated_trees_hold_nothing_unknown() {
    let (dir, truth) = tree();
    for truth in &truth.sessions {
        let session = Session::from_log(&log(dir.path(), truth), TranscriptRole::Main);
        assert!(
            session.unknown.is_empty(),
            "{}: {:?}",
            truth.path,
            session.unknown
        );
    }
}
