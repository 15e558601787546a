//! `clone` as people and scripts see it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use unspool_testkit::home::{Home, slug};

use super::{ID, home_with_session};

const CWD: &str = "/home/dev/x";

fn cloned(home: &Home, args: &[&str]) -> Value {
    let mut all = vec!["clone", ID, "--json"];
    all.extend(args);
    let output = home.output(&all);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(home: &Home, args: &[&str]) -> String {
    let mut all = vec!["clone", ID];
    all.extend(args);
    let output = home.output(&all);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn folder(home: &Home) -> PathBuf {
    home.claude_dir().join("projects").join(slug(CWD))
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn all_files(dir: &Path) -> BTreeSet<PathBuf> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(all_files(&entry.path())),
            false => drop(all.insert(entry.path())),
        }
    }
    all
}

#[test]
fn a_plain_copy_says_the_same_under_another_id() {
    let home = home_with_session();
    let source = folder(&home).join(format!("{ID}.jsonl"));
    let before = fs::read(&source).unwrap();
    let result = cloned(&home, &["--keep-tree"]);
    let new = result["session"].as_str().unwrap();
    assert_ne!(new, ID);
    assert_eq!(result["resume"], format!("claude --resume {new}"));
    let path = PathBuf::from(result["path"].as_str().unwrap());
    assert_eq!(path, folder(&home).join(format!("{new}.jsonl")));
    assert_eq!(fs::read(&source).unwrap(), before, "the source was touched");
    let (old, copy) = (lines(&source), lines(&path));
    assert_eq!(copy.len(), old.len() + 2);
    for (old, mut new_line) in old.iter().zip(copy[1..].iter().cloned()) {
        assert_eq!(new_line["sessionId"], new);
        new_line["sessionId"] = old["sessionId"].clone();
        // Which line it is a copy of is all that is new.
        let from = new_line.as_object_mut().unwrap().remove("forkedFrom");
        let copied = serde_json::json!({"sessionId": ID, "messageUuid": old["uuid"]});
        assert_eq!(from, old["uuid"].is_string().then_some(copied));
        assert_eq!(&new_line, old);
    }
    assert_eq!(copy[0]["type"], "summary");
    assert_eq!(copy[copy.len() - 1]["customTitle"], "Clone: fix it");
    assert_eq!(result["lines"]["changed"], 0);
    assert_eq!(result["lines"]["dropped"], 0);
    assert_eq!(result["lines"]["kept"], old.len());
    assert_eq!(result["bytes"]["before"], before.len());
    assert_eq!(result["bytes"]["after"], fs::metadata(&path).unwrap().len());
}

#[test]
fn everything_beside_a_session_comes_along() {
    let home = home_with_session();
    let beside = format!(".claude/projects/{}/{ID}", slug(CWD));
    for name in [
        format!("{beside}/tool-results/toolu_1.txt"),
        format!("{beside}/subagents/agent-a0000001.meta.json"),
        format!(".claude/file-history/{ID}/abc@v1"),
        format!(".claude/todos/{ID}-agent-{ID}.json"),
        format!(".claude/tasks/{ID}/1.json"),
        format!(".claude/session-env/{ID}/env"),
    ] {
        home.write(&name, "{}");
    }
    let index = format!(".claude/projects/{}/sessions-index.json", slug(CWD));
    let index = home.write(
        index,
        r#"{"version":1,"entries":[],"originalPath":"/home/dev/x"}"#,
    );
    let before = all_files(&home.claude_dir());
    let result = cloned(&home, &[]);
    let new = result["session"].as_str().unwrap();
    let after = all_files(&home.claude_dir());
    let made: Vec<String> = after
        .difference(&before)
        .map(|path| path.strip_prefix(home.claude_dir()).unwrap())
        .map(|path| path.display().to_string().replace(new, "NEW"))
        .map(|path| path.replace(&slug(CWD), "P"))
        .collect();
    assert_eq!(
        made,
        [
            "file-history/NEW/abc@v1",
            "projects/P/NEW/subagents/agent-a0000001.jsonl",
            "projects/P/NEW/subagents/agent-a0000001.meta.json",
            "projects/P/NEW/tool-results/toolu_1.txt",
            "projects/P/NEW.jsonl",
            "session-env/NEW/env",
            "tasks/NEW/1.json",
            "todos/NEW-agent-NEW.json",
        ]
    );
    assert_eq!(result["side_files"], 7);
    let agent = folder(&home)
        .join(new)
        .join("subagents/agent-a0000001.jsonl");
    assert!(lines(&agent).iter().all(|line| line["sessionId"] == new));
    let index: Value = serde_json::from_slice(&fs::read(index).unwrap()).unwrap();
    assert_eq!(index["entries"][0]["sessionId"], new);
}

#[test]
fn what_is_written_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let home = home_with_session();
    let result = cloned(&home, &[]);
    let path = result["path"].as_str().unwrap();
    let mode = fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_dry_run_says_the_same_and_writes_nothing() {
    let home = home_with_session();
    let before = all_files(home.path());
    let dry = cloned(&home, &["--preset", "extreme", "--dry-run"]);
    assert_eq!(all_files(home.path()), before);
    let wet = cloned(&home, &["--preset", "extreme"]);
    for field in [
        "lines",
        "tokens",
        "calls",
        "thinking_removed",
        "lost",
        "checks",
    ] {
        assert_eq!(dry[field], wet[field], "{field}");
    }
    assert_eq!(dry["bytes"]["after"], wet["bytes"]["after"]);
    assert_eq!(
        (&dry["dry_run"], &wet["dry_run"]),
        (&true.into(), &false.into())
    );
    assert_eq!(wet["calls"]["removed"], 3);
    assert!(wet["lost"][0]["tokens"].as_u64().unwrap() > 0);
}

#[test]
fn an_index_that_cannot_be_read_is_left_alone() {
    let home = home_with_session();
    let index = format!(".claude/projects/{}/sessions-index.json", slug(CWD));
    let index = home.write(index, "torn {");
    let output = home.output(&["clone", ID]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("sessions-index.json"));
    assert_eq!(fs::read_to_string(index).unwrap(), "torn {");
}

#[test]
fn a_session_that_is_being_written_can_be_copied() {
    let home = home_with_session();
    let source = folder(&home).join(format!("{ID}.jsonl"));
    let mut bytes = fs::read(&source).unwrap();
    bytes.extend_from_slice(br#"{"type":"assistant","uuid":"half"#);
    fs::write(&source, &bytes).unwrap();
    let result = cloned(&home, &[]);
    let path = PathBuf::from(result["path"].as_str().unwrap());
    assert!(!fs::read_to_string(&path).unwrap().contains("half"));
    assert_eq!(result["lines"]["dropped"], 1);
    assert_eq!(fs::read(&source).unwrap(), bytes);
}

#[test]
fn a_copy_can_live_in_another_project() {
    let home = home_with_session();
    let there = home.path().join("other place");
    fs::create_dir(&there).unwrap();
    let real = fs::canonicalize(&there).unwrap().display().to_string();
    let result = cloned(&home, &["--cwd", &there.display().to_string()]);
    let path = PathBuf::from(result["path"].as_str().unwrap());
    let folder = home.claude_dir().join("projects").join(slug(&real));
    assert_eq!(path.parent(), Some(folder.as_path()));
    let said: Vec<Value> = lines(&path)
        .into_iter()
        .filter(|line| line["cwd"].is_string())
        .collect();
    assert!(said.len() > 5 && said.iter().all(|line| line["cwd"] == real.as_str()));
    let gone = refused(&home, &["--cwd", "/no/such/place"]);
    assert!(
        gone.contains("/no/such/place") && gone.contains("Hint"),
        "{gone}"
    );
}

#[test]
fn new_ids_leave_no_old_one_behind() {
    let home = home_with_session();
    let source = lines(&folder(&home).join(format!("{ID}.jsonl")));
    let result = cloned(&home, &["--new-uuids"]);
    let mut copy = lines(Path::new(result["path"].as_str().unwrap()));
    for line in &mut copy {
        line.as_object_mut().unwrap().remove("forkedFrom");
    }
    let text = serde_json::to_string(&copy).unwrap();
    for old in source.iter().filter_map(|line| line["uuid"].as_str()) {
        assert!(!text.contains(old), "{old}");
    }
}

#[test]
fn mistakes_are_named_and_nothing_is_written() {
    let home = home_with_session();
    let before = all_files(&home.claude_dir());
    let preset = refused(&home, &["--preset", "brutal"]);
    assert!(
        preset.contains("`brutal`") && preset.contains("aggressive"),
        "{preset}"
    );
    let turn = refused(&home, &["--until", "99"]);
    assert!(turn.contains("99"), "{turn}");
    let drop = refused(&home, &["--drop-turn", "zero"]);
    assert!(drop.contains("`zero`"), "{drop}");
    let nothing = refused(&home, &["--turns", "7.."]);
    assert!(nothing.contains("Error"), "{nothing}");
    let unknown = home.output(&["clone", "ffff"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert_eq!(all_files(&home.claude_dir()), before);
}

#[test]
fn own_presets_come_from_the_settings() {
    let home = home_with_session();
    home.write(".unspool/config.toml", "[presets.mine]\nkeep = 0\n");
    let result = cloned(&home, &["--preset", "mine"]);
    assert_eq!(result["calls"]["removed"], 3);
    home.write(".unspool/config.toml", "[presets.mine]\nkeep = -3\n");
    let wrong = refused(&home, &["--preset", "mine"]);
    assert!(wrong.contains("config.toml"), "{wrong}");
}

#[test]
fn what_a_person_reads_says_what_is_lost_and_how_to_go_on() {
    let home = home_with_session();
    let text = home.run(&["clone", ID, "--preset", "extreme"]);
    for word in [
        "created ",
        "lines",
        "tokens",
        "3 tool calls with their results",
        "claude --resume ",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn the_lineage_file_of_an_older_cloner_is_kept_up_if_it_is_there() {
    let home = home_with_session();
    let log = home.claude_dir().join("clone-lineage.log");
    cloned(&home, &[]);
    assert!(!log.exists());
    home.write(".claude/clone-lineage.log", "");
    let result = cloned(&home, &["--preset", "extreme"]);
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains(result["session"].as_str().unwrap()) && text.contains(ID));
    assert!(
        text.contains("toolRemoval=100% thinkingRemoval=100%"),
        "{text}"
    );
}

/// A call, progress of it, its result, and a reply that follows the progress, in the same
/// millisecond as the result: in one order, clients that go on from the newest line lose one.
const TIE: &str = r#"{"parentUuid":null,"sessionId":"ID","cwd":"/home/dev/x","version":"2.1.220","type":"user","uuid":"u","timestamp":"2026-01-05T08:00:20.000Z","message":{"role":"user","content":"go"}}
{"parentUuid":"u","sessionId":"ID","version":"2.1.220","type":"assistant","uuid":"a","timestamp":"2026-01-05T08:00:22.000Z","message":{"id":"m1","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"x"}}]}}
{"parentUuid":"a","sessionId":"ID","version":"2.1.220","type":"progress","uuid":"p","timestamp":"2026-01-05T08:00:26.000Z","data":{"type":"hook_progress","hookEvent":"PreToolUse"},"toolUseID":"t1","parentToolUseID":"t1"}
{"parentUuid":"a","sessionId":"ID","version":"2.1.220","type":"user","uuid":"r","timestamp":"2026-01-05T08:00:28.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"done"}]},"sourceToolAssistantUUID":"a"}
{"parentUuid":"p","sessionId":"ID","version":"2.1.220","type":"assistant","uuid":"b","timestamp":"2026-01-05T08:00:28.000Z","message":{"id":"m2","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"final"}]}}
"#;

#[test]
fn a_healthy_session_whose_last_lines_have_one_time_is_copied_with_its_tree() {
    let home = home_with_session();
    fs::write(
        folder(&home).join(format!("{ID}.jsonl")),
        TIE.replace("ID", ID),
    )
    .unwrap();
    let notes: Vec<String> = (0..3)
        .map(|_| {
            let output = home.output(&["clone", ID, "--dry-run"]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{said}");
            said
        })
        .collect();
    assert!(notes[0].contains("stay a tree"), "{}", notes[0]);
    assert!(notes.iter().all(|said| *said == notes[0]), "{notes:?}");
    let result = cloned(&home, &[]);
    let copy = lines(Path::new(result["path"].as_str().unwrap()));
    let parents: Vec<&Value> = copy
        .iter()
        .filter_map(|line| line.get("parentUuid"))
        .collect();
    assert_eq!(
        parents,
        [
            &Value::Null,
            &"u".into(),
            &"a".into(),
            &"a".into(),
            &"p".into()
        ]
    );
}
