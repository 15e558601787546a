//! Editing: nothing is touched that nobody asked for, and the result still resumes.

use std::path::Path;

use unspool_model::edit::check::{Problem, Wanted};
use unspool_model::edit::identity::Identity;
use unspool_model::edit::{Pen, Plan, Settings, Written, slim};
use unspool_model::log::Log;
use unspool_model::session::{Keeps, Role, Session};
use unspool_testkit::conformance::cases;
use unspool_testkit::corpus;

/// The new bytes, what was written, and what is wrong with it.
pub fn edited(
    log: &Log,
    identity: Option<&Identity>,
    settings: Settings,
    wish: impl FnOnce(&Session, &mut Plan),
) -> (Log, Written, Vec<Problem>) {
    let session = to_edit(log);
    let mut plan = Plan::new(&session);
    wish(&session, &mut plan);
    plan.settle(&session, settings);
    let wanted = Wanted::of(&session, &plan, identity);
    let mut pen = Pen::new(&session, &plan, identity);
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
    let mut session = Session::keeping(Role::Main, Keeps::Structure);
    for line in log.lines() {
        match line.ended {
            true => session.push(&line),
            false => session.push_tail(&line),
        };
    }
    session
}

const TREE: Settings = Settings { keep_tree: true };

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
    let identity = Identity::new("00000000-0000-4000-8000-00000000c10e", []);
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
    let identity = Identity::new("00000000-0000-4000-8000-00000000c10e", []);
    let mut changed = 0;
    for (name, log) in mains() {
        let (_, written, problems) = edited(&log, Some(&identity), Settings::default(), |_, _| ());
        assert_eq!(problems, [], "{name}");
        changed += written.changed;
    }
    assert!(changed > 10, "{changed}");
}

#[test]
fn a_damaged_session_can_be_copied_as_it_is_and_slim() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/corpus");
    let identity = Identity::new("00000000-0000-4000-8000-00000000c10e", []);
    let mut wrong = Vec::new();
    for version in ["2.0.50", "2.1.325"] {
        let cases = cases::of(&corpus, version).unwrap();
        for case in cases.iter().filter(|case| case.name.starts_with("edit/")) {
            let log = Log::new(case.text.clone().into_bytes());
            let own = Some(&identity);
            let (_, _, plain) = edited(&log, own, Settings::default(), |_, _| ());
            let (_, _, slim) = edited(&log, own, Settings::default(), slim::slim);
            if !plain.is_empty() || !slim.is_empty() {
                wrong.push(format!("{version} {}: {plain:?} {slim:?}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn new_ids_are_new_everywhere() {
    let identity = Identity {
        uuids: Some(3),
        ..Identity::new("00000000-0000-4000-8000-00000000c10e", [])
    };
    for (name, log) in mains() {
        let (after, _, problems) = edited(&log, Some(&identity), Settings::default(), |_, _| ());
        assert_eq!(problems, [], "{name}");
        let text = String::from_utf8_lossy(after.as_bytes()).into_owned();
        let session = Session::from_log(&log, Role::Main);
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
        let session = Session::from_log(&log, Role::Main);
        let Some((from, _)) = session.cwds.iter().next() else {
            continue;
        };
        let from = from.split("/.claude/").next().unwrap_or(from).to_owned();
        let identity = Identity::moved(from.clone(), "/else/where");
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
    let identity = Identity::new("00000000-0000-4000-8000-00000000c10e", []);
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
        let (_, _, problems) = edited(&log, None, Settings::default(), |_, _| ());
        assert_eq!(problems, [], "seed {seed}");
    }
}
