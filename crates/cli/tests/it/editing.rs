//! `rename`, `undo`, `log` and `archive` from outside.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use unspool_testkit::home::Home;

use crate::{ID, home, home_with_session};

fn json(home: &Home, args: &[&str]) -> Vec<Value> {
    let mut all = args.to_vec();
    all.push("--json");
    let output = home.output(&all);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn transcript(home: &Home) -> PathBuf {
    home.claude_dir()
        .join("projects/-home-dev-x")
        .join(format!("{ID}.jsonl"))
}

/// Every file below a folder with its content.
fn tree(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(tree(&path));
        } else {
            all.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    all.sort();
    all
}

#[test]
fn a_new_title_is_one_line_at_the_end_and_undo_takes_it_away() {
    let home = home_with_session();
    let before = fs::read_to_string(transcript(&home)).unwrap();
    let rows = json(&home, &["rename", "5e55", "the \"new\" one"]);
    assert_eq!(rows[0]["title"], "the \"new\" one");
    assert_eq!(rows[0]["session"], ID);
    let line = format!(
        "{{\"type\":\"custom-title\",\"customTitle\":\"the \\\"new\\\" one\",\"sessionId\":\"{ID}\"}}\n"
    );
    let after = fs::read_to_string(transcript(&home)).unwrap();
    assert_eq!(after, format!("{before}{line}"));
    assert_eq!(json(&home, &["ls"])[0]["title"], "the \"new\" one");
    let undone = json(&home, &["undo"]);
    assert_eq!(
        (&undone[0]["undoes"], &undone[0]["n"]),
        (&1.into(), &2.into())
    );
    assert_eq!(fs::read_to_string(transcript(&home)).unwrap(), before);
}

#[test]
fn the_log_tells_what_was_done_and_what_was_undone() {
    let home = home_with_session();
    home.run(&["rename", "5e55", "one"]);
    home.run(&["rename", "5e55", "two"]);
    home.run(&["undo"]);
    let rows = json(&home, &["log", "5e55"]);
    let short: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["n"].as_u64(),
                row["operation"].as_str(),
                row["undone"].as_bool(),
            )
        })
        .collect();
    assert_eq!(
        short,
        [
            (Some(1), Some("rename"), Some(false)),
            (Some(2), Some("rename"), Some(true)),
            (Some(3), Some("undo"), Some(false)),
        ]
    );
    assert_eq!(rows[0]["at"], "2026-01-05T12:00:00.000Z");
    assert_eq!(rows[0]["source"], ID);
    assert_eq!(rows[0]["options"][0], "one");
    let listed = home.run(&["undo", "--list"]);
    let first = listed.lines().nth(1).unwrap();
    assert!(
        first.starts_with("3  2026-01-05 12:00  undo 2: rename"),
        "{listed}"
    );
    assert_eq!(json(&home, &["ls"])[0]["title"], "one");
}

#[test]
fn errors_of_undo_say_what_to_do() {
    let home = home_with_session();
    assert_eq!(
        home.run(&["undo"]),
        "--- stderr\nError: there is nothing to undo\nHint: list edits with `unspool undo --list`\n--- status 1\n"
    );
    home.run(&["rename", "5e55", "one"]);
    let changed = fs::read_to_string(transcript(&home)).unwrap() + "{\"type\":\"mode\"}\n";
    fs::write(transcript(&home), changed).unwrap();
    let dry = home.run(&["undo", "--dry-run"]);
    assert!(dry.contains("that reverts it"), "{dry}");
    home.run(&["undo"]);
    // The title it showed before was its first prompt.
    assert_eq!(json(&home, &["ls"])[0]["title"], "fix it");
    let again = home.run(&["undo", "1"]);
    assert!(
        again.contains("edit 1 was already undone by edit 2"),
        "{again}"
    );
}

#[test]
fn an_archived_session_comes_back_byte_for_byte() {
    let home = home_with_session();
    let config = home.claude_dir();
    home.write(format!(".claude/file-history/{ID}/abc@v1"), "old content");
    home.write(format!(".claude/todos/{ID}-agent-{ID}.json"), "[]");
    let beside = format!(".claude/projects/-home-dev-x/{ID}/tool-results/t.txt");
    home.write(beside, "\u{1b}[31m result");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let file = fs::File::options()
        .append(true)
        .open(transcript(&home))
        .unwrap();
    file.set_modified(old).unwrap();
    // Held open for writing it would be in use.
    drop(file);
    let before = tree(&config);
    let rows = json(&home, &["archive", "5e55", "--remove"]);
    assert_eq!(rows[0]["removed"], true, "{rows:?}");
    assert_eq!(
        rows[0]["files"].as_u64(),
        Some(before.len() as u64),
        "{before:?}"
    );
    assert_eq!(tree(&config), []);
    assert_eq!(json(&home, &["archive", "--list"])[0]["session"], ID);
    let told = home.run(&["archive", "--restore", "5e55"]);
    assert!(told.contains("is restored"), "{told}");
    assert_eq!(tree(&config), before);
    let modified = fs::metadata(transcript(&home)).unwrap().modified().unwrap();
    assert_eq!(modified, old);
    let again = home.run(&["archive", "--restore", "5e55"]);
    assert!(
        again.contains("already exists: refusing to overwrite it"),
        "{again}"
    );
    assert_eq!(tree(&config), before);
    home.run(&["undo"]);
    assert_eq!(tree(&config), []);
    home.run(&["undo"]);
    assert_eq!(tree(&config), before);
}

#[test]
fn an_archive_holds_what_a_clone_carries_and_the_plan_and_the_place_on_the_list() {
    let home = home();
    home.session(
        "/home/dev/x",
        ID,
        "(slug=three-nice-words, version=2.1.45) you: plan it\nclaude: done",
    );
    for name in [
        format!("session-env/{ID}/env"),
        format!("tasks/{ID}/1.json"),
        format!("projects/-home-dev-x/{ID}/custom-title.json"),
        "plans/three-nice-words.md".to_owned(),
        "plans/other-nice-words.md".to_owned(),
    ] {
        home.write(format!(".claude/{name}"), format!("{{}} {name}"));
    }
    let entry = serde_json::json!({"sessionId": ID, "fullPath": "x", "summary": "as it was"});
    let others = serde_json::json!({"sessionId": "other", "summary": "stays"});
    let index = home.write(
        ".claude/projects/-home-dev-x/sessions-index.json",
        serde_json::json!({"version": 1, "entries": [entry, others]}).to_string(),
    );
    let file = fs::File::options().append(true).open(transcript(&home));
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
    file.unwrap().set_modified(long_ago).unwrap();
    let before = tree(&home.claude_dir());
    let rows = json(&home, &["archive", ID, "--remove"]);
    // What the client runs before commands stays where it is: no archive brings it back.
    assert_eq!(rows[0]["files"], 4, "{rows:?}");
    let entries = || -> Vec<Value> {
        let list: Value = serde_json::from_slice(&fs::read(&index).unwrap()).unwrap();
        list["entries"].as_array().unwrap().clone()
    };
    assert_eq!(entries(), std::slice::from_ref(&others));
    let left: Vec<PathBuf> = tree(&home.claude_dir())
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    // A plan may be that of a copy as well.
    assert_eq!(left.len(), 4, "{left:?}");
    home.run(&["undo"]);
    assert_eq!(tree(&home.claude_dir()), before);
    home.run(&["archive", ID, "--remove"]);
    fs::remove_file(home.claude_dir().join("plans/three-nice-words.md")).unwrap();
    let told = home.run(&["archive", "--restore", ID]);
    assert!(told.contains("is restored: 4 files"), "{told}");
    let mut expected = entry.clone();
    expected["fullPath"] = transcript(&home).display().to_string().into();
    assert_eq!(entries(), [others, expected]);
    let without_index = |all: Vec<(PathBuf, Vec<u8>)>| -> Vec<(PathBuf, Vec<u8>)> {
        all.into_iter().filter(|(path, _)| *path != index).collect()
    };
    assert_eq!(
        without_index(tree(&home.claude_dir())),
        without_index(before)
    );
}

#[test]
fn archiving_leaves_the_originals_and_does_not_repeat_itself() {
    let home = home_with_session();
    let before = tree(&home.claude_dir());
    home.run(&["archive", "--all"]);
    home.run(&["archive", "--all", "--keep"]);
    assert_eq!(json(&home, &["archive", "--list"]).len(), 1);
    assert_eq!(tree(&home.claude_dir()), before);
    home.run(&["rename", "5e55", "grown"]);
    home.run(&["archive", "--all"]);
    assert_eq!(json(&home, &["archive", "--list"]).len(), 2);
    let none = home.run(&["archive", "--older-than", "2000-01-01"]);
    assert!(none.contains("no session is older than that"), "{none}");
}

#[test]
fn a_damaged_archive_is_noticed_and_nothing_comes_back() {
    let home = home_with_session();
    let row = json(&home, &["archive", "5e55"]).remove(0);
    let folder = PathBuf::from(row["archive"].as_str().unwrap());
    let copies = tree(&folder)
        .into_iter()
        .filter(|(path, _)| path.extension().is_some_and(|end| end == "zst"));
    for (path, mut bytes) in copies {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        fs::write(path, bytes).unwrap();
    }
    fs::remove_dir_all(home.claude_dir().join("projects")).unwrap();
    let told = home.run(&["archive", "--restore", "5e55"]);
    assert!(told.contains("--- status 2"), "{told}");
    assert_eq!(tree(&home.claude_dir()), []);
}

/// Names in an archive of a session that no session has.
const STRANGE: &[&str] = &[
    "settings.json",
    "settings.local.json",
    "commands/evil.md",
    "skills/evil/SKILL.md",
    "agents/evil.md",
    "plugins/evil.json",
    "CLAUDE.md",
    "Projects/-home-dev-x/x.jsonl",
    "projects/../settings.json",
    "projects/-home-dev-x/../../settings.json",
    "./settings.json",
    "../outside",
    "projects/-home-dev-x/memory/MEMORY.md",
    "projects/-home-dev-x/CLAUDE.md",
    "projects/-home-dev-x/sessions-index.json",
    "projects/-home-dev-x/agent-x.md",
    "projects/settings.json",
    "file-history/another/x@v1",
    "todos/another-agent-x.json",
    "tasks/evil.md",
    "plans/deep/er.md",
    "plans/evil.sh",
    // That of another session.
    "plans/three-other-words.md",
    "projects/-home-other/agent-x.jsonl",
    "projects/-home-dev-x/5e551000-0000-4000-8000-000000000001/anything.json",
    "projects/-home-dev-x/5e551000-0000-4000-8000-000000000001/tool-results/.git/config",
    // The client sources it before every command of the session.
    "session-env/5e551000-0000-4000-8000-000000000001/hook-0.sh",
    "uploads/5e551000-0000-4000-8000-000000000001/.git/config",
    "history.jsonl",
    "/tmp/unspool-absolute",
    "",
];

#[test]
fn an_archive_brings_back_a_session_and_nothing_else() {
    for name in STRANGE {
        let home = home_with_session();
        let row = json(&home, &["archive", "5e55", "--remove"]).remove(0);
        let manifest = PathBuf::from(row["archive"].as_str().unwrap()).join("manifest.json");
        let mut value: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
        value["files"][0]["path"] = (*name).into();
        fs::write(&manifest, value.to_string()).unwrap();
        let before = tree(home.path());
        for args in [
            &["archive", "--restore", "5e55", "--dry-run"][..],
            &["archive", "--restore", "5e55"],
        ] {
            let output = home.output(args);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{name}: {told}");
            assert!(told.contains("nothing was restored"), "{name}: {told}");
        }
        let after = tree(home.path());
        let is_lock = |path: &Path| path.ends_with("undo/lock");
        let new: Vec<_> = after.iter().filter(|one| !before.contains(one)).collect();
        assert!(new.iter().all(|(path, _)| is_lock(path)), "{name}: {new:?}");
    }
}

#[test]
fn an_archive_whose_session_has_a_strange_name_brings_nothing_back() {
    for id in [
        "commands", "skills", "memory", "..", "", "a/b", ".hidden", "agents",
    ] {
        let home = home_with_session();
        let row = json(&home, &["archive", "5e55", "--remove"]).remove(0);
        let manifest = PathBuf::from(row["archive"].as_str().unwrap()).join("manifest.json");
        let text = fs::read_to_string(&manifest).unwrap();
        let mut value: Value = serde_json::from_str(&text).unwrap();
        value["session"] = id.into();
        for (name, file) in [(format!("{id}/evil.md"), 0), (format!("{id}.jsonl"), 1)] {
            value["files"][file]["path"] = name.into();
        }
        let last = value["files"].as_array().unwrap().len() - 1;
        value["files"][last]["path"] = format!("{id}.jsonl").into();
        fs::write(&manifest, value.to_string()).unwrap();
        let output = home.output(&["archive", "--restore", "5e55"]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{id}: {told}");
        assert_eq!(tree(&home.claude_dir()), [], "{id}");
    }
}

#[test]
fn copies_outside_of_the_archive_are_not_read() {
    let home = home_with_session();
    let row = json(&home, &["archive", "5e55", "--remove"]).remove(0);
    let folder = PathBuf::from(row["archive"].as_str().unwrap());
    let manifest = folder.join("manifest.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let copy = value["files"][0]["file"].as_str().unwrap().to_owned();
    fs::rename(folder.join(&copy), home.path().join("elsewhere.zst")).unwrap();
    for name in [
        home.path().join("elsewhere.zst").display().to_string(),
        "../../../elsewhere.zst".to_owned(),
    ] {
        value["files"][0]["file"] = name.clone().into();
        fs::write(&manifest, value.to_string()).unwrap();
        let output = home.output(&["archive", "--restore", "5e55"]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert_eq!(tree(&home.claude_dir()), []);
    }
    #[cfg(unix)]
    {
        value["files"][0]["file"] = copy.clone().into();
        fs::write(&manifest, value.to_string()).unwrap();
        std::os::unix::fs::symlink(home.path().join("elsewhere.zst"), folder.join(&copy)).unwrap();
        let output = home.output(&["archive", "--restore", "5e55"]);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(tree(&home.claude_dir()), []);
    }
}

#[test]
fn undo_touches_no_file_that_is_none_of_a_session() {
    for name in [
        ".claude/commands/evil.md",
        ".claude/skills/evil/SKILL.md",
        ".claude/CLAUDE.md",
        ".claude/projects/-home-dev-x/memory/MEMORY.md",
        ".bashrc",
        "project/.git/hooks/pre-commit",
    ] {
        let home = home_with_session();
        home.output(&["rename", "5e55", "one"]);
        let entry = home.unspool_dir().join("undo/000001/entry.json");
        let mut value: Value = serde_json::from_slice(&fs::read(&entry).unwrap()).unwrap();
        let kept = entry.with_file_name("0");
        fs::write(&kept, "echo evil").unwrap();
        let mark = unspool_store::atomic_write::ContentHash::of(&b"echo evil"[..]).unwrap();
        value["roots"] = serde_json::json!([home.path()]);
        value["steps"] = serde_json::json!([{
            "step": "removed",
            "path": home.path().join(name),
            "before": {"file": "0", "mark": mark, "mode": 0o755, "modified": 0},
        }]);
        fs::write(&entry, value.to_string()).unwrap();
        for args in [&["undo", "--dry-run"][..], &["undo"], &["undo", "--force"]] {
            let output = home.output(args);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{name}: {told}");
        }
        assert!(!home.path().join(name).exists(), "{name}");
    }
}

#[test]
fn a_session_in_use_is_not_removed() {
    let mut home = home_with_session();
    let now = json(&home, &["ls"]);
    assert_eq!(now.len(), 1);
    let modified = fs::metadata(transcript(&home)).unwrap().modified().unwrap();
    let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap();
    let soon = jiff::Timestamp::from_second(since.as_secs() as i64 + 10).unwrap();
    home.set("UNSPOOL_NOW", &soon.to_string());
    let told = home.run(&["archive", "5e55", "--remove"]);
    assert!(told.contains("is in use: written"), "{told}");
    assert!(transcript(&home).exists());
}

#[test]
fn prompts_of_sessions_that_are_gone_are_listed() {
    let home = home_with_session();
    let line = |id: &str, text: &str| {
        format!(
            "{{\"display\":\"{text}\",\"pastedContents\":{{}},\"timestamp\":1767000000000,\"project\":\"/p\",\"sessionId\":\"{id}\"}}\n"
        )
    };
    let text = line(ID, "here")
        + &line("gone-1", "lost \\u001b[31m one")
        + "torn{\n"
        + &line("gone-1", "two");
    home.write(".claude/history.jsonl", text);
    let rows = json(&home, &["archive", "--purged"]);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["session"], "gone-1");
    assert_eq!(rows[0]["prompts"][1]["text"], "two");
    let shown = home.run(&["archive", "--purged"]);
    assert!(
        shown.contains("lost") && !shown.contains('\u{1b}'),
        "{shown}"
    );
}

#[test]
fn what_is_done_to_the_recordings_leaves_nothing() {
    let home = home();
    let told = home.run(&["--demo", "archive", "--all", "--json"]);
    assert!(told.contains("\"packed\""), "{told}");
    assert_eq!(tree(&home.unspool_dir()), []);
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::process::Command;

    /// Runs the program in a shell that sets something up first.
    fn after(home: &Home, first: &str, args: &str) -> (String, bool) {
        let program = env!("CARGO_BIN_EXE_unspool");
        let mut shell = Command::new("sh");
        let given = home.command();
        let variables = given.get_envs();
        shell.env_clear();
        shell.envs(variables.filter_map(|(name, value)| Some((name, value?))));
        let script = format!("{first}; exec {program} {args}");
        let output = shell.args(["-c", &script]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (text, output.status.success())
    }

    fn modes(dir: &Path, all: &mut Vec<(PathBuf, u32)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let mode = fs::metadata(&path).unwrap().mode() & 0o7777;
            if path.is_dir() {
                modes(&path, all);
            }
            all.push((path, mode));
        }
    }

    #[test]
    fn our_files_are_for_nobody_else_whatever_the_umask() {
        for umask in ["000", "077"] {
            let home = home_with_session();
            for args in ["rename 5e55 x", "archive 5e55"] {
                let (told, done) = after(&home, &format!("umask {umask}"), args);
                assert!(done, "{told}");
            }
            let mut all = Vec::new();
            modes(&home.unspool_dir(), &mut all);
            assert!(all.len() > 5, "{all:?}");
            for (path, mode) in all {
                let expected = if path.is_dir() { 0o700 } else { 0o600 };
                assert_eq!(mode, expected, "umask {umask}: {}", path.display());
            }
            fs::remove_dir_all(home.claude_dir().join("projects")).unwrap();
            fs::create_dir_all(home.claude_dir()).unwrap();
            let (told, done) = after(&home, &format!("umask {umask}"), "archive --restore 5e55");
            assert!(done, "{told}");
            let mode = fs::metadata(transcript(&home)).unwrap().mode() & 0o7777;
            assert_eq!(mode, 0o600);
        }
    }

    #[test]
    fn a_full_disk_is_told_and_the_transcript_stays_as_it_was() {
        let home = home_with_session();
        let before = fs::read(transcript(&home)).unwrap();
        let full = home.path().join("full");
        fs::create_dir_all(&full).unwrap();
        // A disk of our own, in a world of our own; not every system lets us.
        let mount = format!(
            "mount -t tmpfs -o size=64k tmpfs {0} || exit 77; head -c 100000 /dev/zero > {0}/fill; export UNSPOOL_HOME={0}/own",
            full.display()
        );
        let script = format!(
            "{mount}; exec {} rename 5e55 x",
            env!("CARGO_BIN_EXE_unspool")
        );
        let given = home.command();
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &script]).env_clear();
        command.envs(
            given
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let Ok(output) = command.output() else {
            return;
        };
        let told = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(77) || told.contains("unshare") {
            return;
        }
        assert!(told.contains("no space left on the disk"), "{told}");
        assert!(told.contains("Hint: free disk space"), "{told}");
        assert_eq!(fs::read(transcript(&home)).unwrap(), before);
    }

    #[test]
    fn a_folder_for_everybody_is_refused_with_a_reason() {
        let home = home_with_session();
        let folder = transcript(&home).parent().unwrap().to_owned();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let told = home.run(&["rename", "5e55", "x"]);
        assert!(
            told.contains("is world-writable: refusing to write to it"),
            "{told}"
        );
        assert!(told.contains("Hint: take ownership"), "{told}");
    }
}

#[test]
fn a_tag_is_one_line_at_the_end_and_is_shown_found_and_taken_off() {
    let home = home_with_session();
    let before = fs::read_to_string(transcript(&home)).unwrap();
    let rows = json(&home, &["tag", "5e55", "needs\u{200b}", "review"]);
    assert_eq!(rows[0]["tag"], "needs review");
    let line = format!("{{\"type\":\"tag\",\"tag\":\"needs review\",\"sessionId\":\"{ID}\"}}\n");
    let after = fs::read_to_string(transcript(&home)).unwrap();
    assert_eq!(after, format!("{before}{line}"));
    assert_eq!(json(&home, &["ls"])[0]["tag"], "needs review");
    assert_eq!(json(&home, &["ls", "--tag", "needs review"]).len(), 1);
    assert_eq!(json(&home, &["info", "5e55"])[0]["tag"], "needs review");
    assert_eq!(
        json(&home, &["sql", "select tag from sessions"])[0]["tag"],
        "needs review"
    );
    assert!(home.run(&["ls"]).contains("#needs review fix it"));
    assert!(
        home.run(&["ls", "--tag", "other"])
            .contains("no session matches")
    );
    // The same again changes nothing.
    assert!(
        home.run(&["tag", "5e55", "needs", "review"])
            .contains("nothing was written")
    );
    assert_eq!(fs::read_to_string(transcript(&home)).unwrap(), after);
    let rows = json(&home, &["tag", "5e55"]);
    assert_eq!(
        (&rows[0]["tag"], &rows[0]["before"]),
        (&Value::Null, &"needs review".into())
    );
    assert!(json(&home, &["ls"])[0].get("tag").is_none());
    home.run(&["undo"]);
    assert_eq!(fs::read_to_string(transcript(&home)).unwrap(), after);
    home.run(&["undo", "1"]);
    assert_eq!(fs::read_to_string(transcript(&home)).unwrap(), before);
    assert!(
        home.run(&["tag", "5e55", "\u{200b}"])
            .contains("--- status 2")
    );
}

#[test]
fn a_deleted_session_goes_with_all_its_files_and_undo_brings_it_back() {
    let home = home_with_session();
    let claude = home.claude_dir();
    home.write(format!(".claude/file-history/{ID}/abc@v1"), "old");
    home.write(format!(".claude/todos/{ID}-agent-{ID}.json"), "[]");
    let hour = std::time::Duration::from_secs(3600);
    let then = std::time::SystemTime::now() - hour;
    for (path, _) in tree(&claude) {
        fs::File::options()
            .append(true)
            .open(path)
            .unwrap()
            .set_modified(then)
            .unwrap();
    }
    let before = tree(&claude);
    let dry = home.run(&["delete", "5e55", "--dry-run"]);
    assert!(
        dry.contains("would be deleted") && dry.contains("abc@v1"),
        "{dry}"
    );
    assert_eq!(tree(&claude), before);
    assert!(home.run(&["delete"]).contains("--- status 2"));
    assert!(
        home.run(&["delete", "--list"])
            .contains("the trash is empty")
    );
    let said = home.run(&["delete", "5e55"]);
    assert!(
        said.contains("is deleted") && said.contains("unspool undo 1"),
        "{said}"
    );
    assert!(
        tree(&claude)
            .iter()
            .all(|(path, _)| !path.display().to_string().contains(ID))
    );
    let listed = json(&home, &["delete", "--list"]);
    assert_eq!(
        (&listed[0]["session"], &listed[0]["title"]),
        (&ID.into(), &"fix it".into())
    );
    assert!(listed[0]["files"].as_array().unwrap().len() > 3);
    home.run(&["undo"]);
    assert_eq!(tree(&claude), before);
    assert!(
        home.run(&["delete", "--list"])
            .contains("the trash is empty")
    );
    // What undo wrote a moment ago is not in use for that.
    for (path, _) in tree(&claude) {
        fs::File::options()
            .append(true)
            .open(path)
            .unwrap()
            .set_modified(then)
            .unwrap();
    }
    home.run(&["delete", "5e55"]);
    let gone = json(&home, &["delete", "--empty"]);
    assert_eq!((gone.len(), &gone[0]["emptied"]), (1, &true.into()));
    assert!(
        home.run(&["delete", "--list"])
            .contains("the trash is empty")
    );
    let undone = home.run(&["undo"]);
    assert!(undone.contains("were pruned"), "{undone}");
}

#[test]
fn a_session_in_use_is_not_deleted() {
    let home = home_with_session();
    let before = tree(&home.claude_dir());
    let written = fs::File::options()
        .append(true)
        .open(transcript(&home))
        .unwrap();
    written.set_modified(std::time::SystemTime::now()).unwrap();
    let said = home.run(&["delete", "5e55"]);
    assert!(
        said.contains("is in use") && said.contains("--- status 2"),
        "{said}"
    );
    assert_eq!(tree(&home.claude_dir()), before);
}

#[test]
fn lines_of_a_clone_say_which_line_they_are_a_copy_of() {
    let home = home_with_session();
    let lines = |text: &str| -> Vec<Value> {
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let old = lines(&fs::read_to_string(transcript(&home)).unwrap());
    for args in [&["clone", "5e55"][..], &["clone", "5e55", "--new-uuids"]] {
        let made = json(&home, args);
        let path = made[0]["path"].as_str().unwrap();
        let new = lines(&fs::read_to_string(path).unwrap());
        let copies = new
            .iter()
            .filter(|line| line["parentUuid"] != Value::Null || line["uuid"].is_string());
        let names: Vec<&Value> = copies.map(|line| &line["forkedFrom"]).collect();
        assert!(names.len() > 5);
        for (line, from) in old
            .iter()
            .filter(|line| line["uuid"].is_string())
            .zip(names)
        {
            assert_eq!(from["sessionId"], ID);
            assert_eq!(from["messageUuid"], line["uuid"]);
        }
        assert!(
            new.iter()
                .all(|line| line["uuid"].is_string() || line.get("forkedFrom").is_none())
        );
        let listed = json(&home, &["ls"]);
        let row = listed
            .iter()
            .find(|row| row["id"] == made[0]["session"])
            .unwrap();
        assert_eq!(row["forked_from"], ID);
        // A clone of it says so in turn.
        let again = json(&home, &["clone", made[0]["session"].as_str().unwrap()]);
        let text = fs::read_to_string(again[0]["path"].as_str().unwrap()).unwrap();
        let first = lines(&text)
            .into_iter()
            .find(|line| line["uuid"].is_string())
            .unwrap();
        assert_eq!(first["forkedFrom"]["sessionId"], made[0]["session"]);
        assert_eq!(
            text.matches("forkedFrom").count(),
            old.iter().filter(|line| line["uuid"].is_string()).count()
        );
    }
}

#[test]
fn whoever_removes_a_session_is_told_what_stays_of_it() {
    let home = home_with_session();
    home.write(
        ".claude/jobs/5e551000/state.json",
        format!("{{\"sessionId\":\"{ID}\"}}"),
    );
    home.write(
        ".claude/history.jsonl",
        format!("{{\"display\":\"hi\",\"sessionId\":\"{ID}\"}}\n{{\"display\":\"ho\",\"sessionId\":\"x\"}}\n"),
    );
    for args in [
        &["delete", ID, "--dry-run"][..],
        &["archive", ID, "--remove", "--dry-run"],
        &["delete", ID],
    ] {
        let said = home.run(args);
        assert!(said.contains("jobs/5e551000/state.json"), "{said}");
        assert!(said.contains("1 prompt in"), "{said}");
    }
}
