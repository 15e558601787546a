//! Editing: nothing is touched that nobody asked for, and the result still resumes.

use std::path::Path;

use unspool_model::edit::check::{EditProblem, ExpectedResult};
use unspool_model::edit::copy_identity::CopyIdentity;
use unspool_model::edit::{EditPlan, LineRewriter, PlanSettings, RewriteCounts, slim};
use unspool_model::log::Log;
use unspool_model::session::{LineRetention, Session, TranscriptRole};
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages;
use unspool_testkit::conformance::cases;
use unspool_testkit::corpus;

/// The new bytes, what was written, and what is wrong with it.
pub fn edited(
    log: &Log,
    identity: Option<&CopyIdentity>,
    settings: PlanSettings,
    wish: impl FnOnce(&Session, &mut EditPlan),
) -> (Log, RewriteCounts, Vec<EditProblem>) {
    let session = to_edit(log);
    let mut plan = EditPlan::new(&session);
    wish(&session, &mut plan);
    plan.repair_references(&session, settings);
    let wanted = ExpectedResult::of(&session, &plan, identity);
    let mut pen = LineRewriter::new(&session, &plan, identity);
    let mut out = Vec::new();
    for line in log.lines() {
        pen.line(&line, &mut out);
    }
    let written = pen.end(&mut out);
    let after = Log::new(out);
    let problems = wanted.compare(&to_edit(&after));
    (after, written, problems)
}

/// A session as it is read to be edited.
fn to_edit(log: &Log) -> Session {
    let mut session = Session::keeping(TranscriptRole::Main, LineRetention::Structure);
    for line in log.lines() {
        match line.ended {
            true => session.push(&line),
            false => session.push_tail(&line),
        };
    }
    session
}

const TREE: PlanSettings = PlanSettings { keep_tree: true };

pub fn mains() -> Vec<(String, Log)> {
    let files = corpus::files();
    let mains = files.iter().filter(|file| file.role == corpus::Role::Main);
    mains
        .map(|file| (file.name(), Log::new(file.bytes())))
        .collect()
}

#[test]
fn a_plan_without_wishes_keeps_every_byte() {
    for (name, log) in mains() {
        let (after, written, problems) = edited(&log, None, TREE, |_, _| ());
        assert_eq!(problems, [], "{name}");
        let ended = log.as_bytes().ends_with(b"\n") || log.as_bytes().is_empty();
        if ended {
            assert_eq!(after.as_bytes(), log.as_bytes(), "{name}");
            assert_eq!((written.changed, written.dropped), (0, 0), "{name}");
        }
    }
}

#[test]
fn a_copy_differs_in_its_session_id_alone() {
    let identity = CopyIdentity::new("00000000-0000-4000-8000-00000000c10e", []);
    for (name, log) in mains() {
        let (after, written, problems) = edited(&log, Some(&identity), TREE, |_, _| ());
        assert_eq!(problems, [], "{name}");
        assert_eq!(written.changed, 0, "{name}");
        for (old, new) in log.lines().zip(after.lines()) {
            let (old, new) = (without_session(old.bytes), without_session(new.bytes));
            assert_eq!(new, old, "{name}");
        }
        let text = String::from_utf8_lossy(after.as_bytes()).into_owned();
        let own = text.matches(&identity.session).count();
        let lines = text
            .lines()
            .filter(|line| line.contains("\"sessionId\":"))
            .count();
        assert_eq!(own, lines, "{name}");
    }
}

/// A line in which no id of a session stands.
fn without_session(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut parts = text.split("\"sessionId\":\"");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out += part.split_once('"').map_or("", |(_, rest)| rest);
    }
    out
}

#[test]
fn a_straightened_copy_resumes_in_every_client() {
    let identity = CopyIdentity::new("00000000-0000-4000-8000-00000000c10e", []);
    let mut changed = 0;
    for (name, log) in mains() {
        let (_, written, problems) =
            edited(&log, Some(&identity), PlanSettings::default(), |_, _| ());
        assert_eq!(problems, [], "{name}");
        changed += written.changed;
    }
    assert!(changed > 10, "{changed}");
}

#[test]
fn a_damaged_session_can_be_copied_as_it_is_and_slim() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/corpus");
    let identity = CopyIdentity::new("00000000-0000-4000-8000-00000000c10e", []);
    let mut wrong = Vec::new();
    for version in ["2.0.50", "2.1.325"] {
        let cases = cases::of(&corpus, version).unwrap();
        for case in cases.iter().filter(|case| case.name.starts_with("edit/")) {
            let log = Log::new(case.text.clone().into_bytes());
            let own = Some(&identity);
            let (_, _, plain) = edited(&log, own, PlanSettings::default(), |_, _| ());
            let (_, _, slim) = edited(&log, own, PlanSettings::default(), slim::slim);
            if !plain.is_empty() || !slim.is_empty() {
                wrong.push(format!("{version} {}: {plain:?} {slim:?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn new_ids_are_new_everywhere() {
    let identity = CopyIdentity {
        uuids: Some(3),
        ..CopyIdentity::new("00000000-0000-4000-8000-00000000c10e", [])
    };
    for (name, log) in mains() {
        let (after, _, problems) =
            edited(&log, Some(&identity), PlanSettings::default(), |_, _| ());
        assert_eq!(problems, [], "{name}");
        let text = String::from_utf8_lossy(after.as_bytes()).into_owned();
        let session = Session::from_log(&log, TranscriptRole::Main);
        let all: Vec<_> = session
            .records
            .iter()
            .filter_map(|it| it.uuid.clone())
            .collect();
        let left = all
            .iter()
            .filter(|id| text.contains(&format!("\"{id}\"")))
            .count();
        assert_eq!(left, 0, "{name}");
    }
}

#[test]
fn a_moved_session_keeps_everything_but_its_directory() {
    let mut worktrees = 0;
    for (name, log) in mains() {
        let session = Session::from_log(&log, TranscriptRole::Main);
        let Some((from, _)) = session.cwds.iter().next() else {
            continue;
        };
        let from = from.split("/.claude/").next().unwrap_or(from).to_owned();
        let identity = CopyIdentity::moved(from.clone(), "/else/where");
        let (after, written, problems) = edited(&log, Some(&identity), TREE, |_, _| ());
        assert_eq!(problems, [], "{name}");
        assert_eq!((written.changed, written.dropped), (0, 0), "{name}");
        let text = |log: &Log| String::from_utf8_lossy(log.as_bytes()).into_owned();
        let mut expected = text(&log);
        for key in ["cwd", "originalCwd", "preEnterOriginalCwd", "worktreePath"] {
            for end in ["\"", "/"] {
                expected = expected.replace(
                    &format!("\"{key}\":\"{from}{end}"),
                    &format!("\"{key}\":\"/else/where{end}"),
                );
            }
        }
        let after = text(&after);
        for (new, old) in after.lines().zip(expected.lines()) {
            // Attachments name directories for the model, as it was told them.
            if !old.contains("\"type\":\"attachment\"") {
                assert_eq!(new, old, "{name}");
            }
        }
        worktrees += after.matches("\"worktreePath\":\"/else/where/").count();
    }
    assert!(worktrees > 0);
}

#[test]
fn a_line_that_was_written_twice_keeps_no_line_behind_it_from_being_renamed() {
    let identity = CopyIdentity::new("00000000-0000-4000-8000-00000000c10e", []);
    let (_, log) = mains().swap_remove(3);
    let text = String::from_utf8(log.as_bytes().to_vec()).unwrap();
    let twice = text.lines().find(|line| line.contains("\"uuid\"")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(lines.len() / 2, twice);
    let log = Log::new(lines.join("\n") + "\n");
    let (after, _, problems) = edited(&log, Some(&identity), TREE, |_, _| ());
    assert_eq!(problems, []);
    let text = String::from_utf8_lossy(after.as_bytes()).into_owned();
    let named = text.lines().filter(|line| line.contains("\"sessionId\":"));
    assert!(named.clone().count() > 3);
    assert!(
        named
            .into_iter()
            .all(|line| line.contains(&identity.session))
    );
}

/// Sessions of every shape, as a client could have written them. Of those that are named, the
/// first three have an end that shares its time with what hangs below it, the others a note of
/// where to go on that names a line amid parallel calls with a fork in them.
#[test]
fn a_straightened_copy_of_any_session_resumes_in_every_client() {
    let known = [395, 2786, 3001, 1727, 3685, 3781];
    for seed in known.into_iter().chain(0..300) {
        let log = Log::new(unspool_testkit::graph::healthy(seed).join("\n") + "\n");
        let (_, _, problems) = edited(&log, None, PlanSettings::default(), |_, _| ());
        assert_eq!(problems, [], "seed {seed}");
    }
}

/// Two calls with a line of a running tool between them, their results in the other order, and
/// what follows hanging on the first: clients that do not know such lines lose nothing more.
#[test]
fn calls_with_the_progress_of_a_tool_between_them_can_be_copied() {
    let line = |kind: &str, id: &str, parent: &str, second: u32, rest: &str| {
        let parent = match parent {
            "" => "null".to_owned(),
            parent => format!("\"{parent}\""),
        };
        format!(
            r#"{{"type":"{kind}","uuid":"{id}","parentUuid":{parent},"isSidechain":false,"sessionId":"s","version":"2.1.45","timestamp":"2026-01-05T08:00:{second:02}.000Z",{rest}}}"#
        ) + "\n"
    };
    let said = |content: &str| format!(r#""message":{{"role":"user","content":{content}}}"#);
    let reply = |id: &str, block: &str| {
        format!(
            r#""message":{{"id":"{id}","role":"assistant","type":"message","model":"m","content":[{block}],"usage":{{"input_tokens":1,"output_tokens":1}}}}"#
        )
    };
    let call =
        |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{{}}}}"#);
    let result = |id: &str| {
        said(&format!(
            r#"[{{"type":"tool_result","tool_use_id":"{id}","content":"done"}}]"#
        ))
    };
    let progress = r#""data":{"type":"hook_progress"},"toolUseID":"t1","parentToolUseID":"t1""#;
    for other in ["progress", "from-the-future"] {
        let text = [
            line("user", "u1", "", 1, &said("\"do both\"")),
            line("assistant", "a1", "u1", 2, &reply("m1", &call("t1"))),
            line(other, "p1", "a1", 3, progress),
            line("assistant", "a2", "p1", 4, &reply("m1", &call("t2"))),
            line("user", "r2", "a2", 5, &result("t2")),
            line("user", "r1", "a1", 6, &result("t1")),
            line(
                "assistant",
                "a3",
                "r1",
                7,
                &reply("m2", r#"{"type":"text","text":"both done"}"#),
            ),
        ];
        let log = Log::new(text.concat());
        let (after, _, problems) = edited(&log, None, PlanSettings::default(), |_, _| ());
        assert_eq!(problems, [], "{other}");
        let session = Session::from_log(&after, TranscriptRole::Main);
        let lost = unspool_model::view::check::resumable(&session);
        let lost: Vec<_> = lost.iter().filter(|client| client.lost > 0).collect();
        assert!(lost.is_empty(), "{other}: {lost:?}");
    }
}

/// Sessions of every shape in which other lines stand between calls and between results.
#[test]
fn a_straightened_copy_of_a_session_with_lines_between_its_calls_resumes_in_every_client() {
    let mut wrong = Vec::new();
    for seed in 0..500 {
        let log = Log::new(unspool_testkit::graph::busy(seed).join("\n") + "\n");
        let (_, _, problems) = edited(&log, None, PlanSettings::default(), |_, _| ());
        if let Some(first) = problems.first() {
            wrong.push(format!("seed {seed}: {}", first.what));
        }
    }
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
}

/// What a copy falls back to that cannot be proved in one order.
#[test]
fn a_copy_whose_calls_stay_a_tree_resumes_as_its_source_though_the_last_lines_have_one_time() {
    let mut wrong = Vec::new();
    for seed in 0..300 {
        let mut lines = unspool_testkit::graph::busy(seed);
        let from = lines.len().saturating_sub(2 + seed as usize % 5);
        for line in &mut lines[from..] {
            let time = line.find("\"timestamp\":\"").map(|at| at + 13);
            if let Some(at) = time {
                line.replace_range(at..at + 24, "2026-06-01T00:00:00.000Z");
            }
        }
        let log = Log::new(lines.join("\n") + "\n");
        let (_, _, problems) = edited(&log, None, PlanSettings { keep_tree: true }, |_, _| ());
        if let Some(first) = problems.first() {
            wrong.push(format!("seed {seed}: {}", first.what));
        }
    }
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
}

#[test]
fn what_is_said_of_a_refused_copy_is_always_the_same() {
    let log = Log::new(unspool_testkit::graph::healthy(5).join("\n") + "\n");
    let session = to_edit(&log);
    let wanted = ExpectedResult::of(&session, &EditPlan::new(&session), None);
    // Half of the session: many lines are lost to every client.
    let half = log.as_bytes().len() / 2;
    let cut = Log::new(log.as_bytes()[..half].to_vec());
    let said = || wanted.compare(&to_edit(&cut));
    let first = said();
    assert!(!first.is_empty());
    for _ in 0..20 {
        let session = to_edit(&log);
        let again = ExpectedResult::of(&session, &EditPlan::new(&session), None);
        assert_eq!(again.compare(&to_edit(&cut)), first);
    }
    assert_eq!(said(), first);
}

/// Whether the newest client reads less than we do: it knows no way past a line of an unknown kind.
fn is_parted(session: &Session) -> bool {
    let read = |profile| messages::live_lines(session, profile).len();
    read(ClientProfile::NEWEST) < read(ClientProfile::Strict)
}

#[test]
fn in_a_copy_only_the_end_says_where_to_go_on() {
    let mut tried = 0;
    for seed in 0..300 {
        let log = Log::new(unspool_testkit::graph::healthy(seed).join("\n") + "\n");
        let wish = |session: &Session, plan: &mut EditPlan| plan.note_at_end_only(session);
        let (after, _, problems) = edited(&log, None, PlanSettings::default(), wish);
        if is_parted(&to_edit(&log)) {
            continue;
        }
        tried += 1;
        assert_eq!(problems, [], "seed {seed}");
        let text = String::from_utf8_lossy(after.as_bytes()).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let is_note = |line: &&&str| line.contains("\"type\":\"last-prompt\"");
        assert!(lines.iter().filter(is_note).count() <= 1, "seed {seed}");
        let note = lines.iter().position(|line| is_note(&line));
        let chain = lines.iter().rposition(|line| line.contains("\"uuid\":"));
        assert!(note.is_none_or(|note| Some(note) > chain), "seed {seed}");
    }
    assert!(tried > 100, "{tried}");
}
