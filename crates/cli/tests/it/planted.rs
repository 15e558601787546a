//! A secret in every file that the real client writes: all are found, all are taken out, and what
//! is said then is true.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use unspool_testkit::corpus;
use unspool_testkit::home::Home;

use crate::home;

/// A token as GitHub makes them; each number gives another.
fn token(number: usize) -> String {
    let letters = b"x7Qa9ZpLm2Rt4VbN8cKd3Wf6HsJy1TgU5e0i";
    let mut state = number as u64 + 1;
    let body = (0..36).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(letters[(state >> 33) as usize % letters.len()])
    });
    ["gh", "p_"].concat() + &body.collect::<String>()
}

/// All files below a folder, in order.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => all.push(entry.path()),
            }
        }
    }
    all.sort();
    all
}

/// The content of a file with a secret in it, as the client could have written it.
fn planted(path: &Path, before: &[u8], secret: &str) -> Vec<u8> {
    let text = String::from_utf8_lossy(before);
    let name = path.file_name().unwrap().to_string_lossy();
    let in_projects = path.iter().any(|part| part == "projects");
    match path.extension().and_then(|end| end.to_str()) {
        Some("jsonl") if name == "history.jsonl" => {
            format!("{text}{{\"display\":\"push {secret}\",\"project\":\"/p\"}}\n").into()
        }
        Some("jsonl") if in_projects => format!(
            "{text}{{\"type\":\"queue-operation\",\"operation\":\"enqueue\",\
             \"timestamp\":\"2026-01-05T08:00:00.000Z\",\"content\":\"push {secret}\"}}\n"
        )
        .into(),
        Some("jsonl") => format!("{text}{{\"text\":\"push {secret}\"}}\n").into(),
        Some("json") if name == "sessions-index.json" => {
            let mut list: Value = serde_json::from_slice(before).unwrap();
            list["entries"][0]["firstPrompt"] = format!("push {secret}").into();
            list.to_string().into()
        }
        Some("json") if text.trim_start().starts_with('{') => {
            let rest = text.trim_start()[1..].trim_start();
            let comma = if rest.starts_with('}') { "" } else { "," };
            format!("{{\"planted\":\"push {secret}\"{comma}{rest}").into()
        }
        Some("json") => format!("[{{\"content\":\"push {secret}\"}}]").into(),
        _ => format!("{text}\npush {secret}\n").into(),
    }
}

/// What no recording has, but clients write.
fn unrecorded(id: &str) -> Vec<(String, String)> {
    let project = "projects/-home-dev-x";
    let beside = format!("{project}/{id}");
    let line = |session: &str| {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"u1\",\"parentUuid\":null,\"isSidechain\":true,\
             \"sessionId\":\"{session}\",\"timestamp\":\"2026-01-05T08:00:00.000Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"hello\"}}}}\n"
        )
    };
    let warm_up = line(id).replace("hello", "Warmup");
    let gone = "5e551000-0000-4000-8000-0000000000ff";
    let own = line(id);
    let files = [
        (
            format!("{project}/{id}.jsonl"),
            own.replace("true", "false"),
        ),
        (format!("{project}/agent-0a0b0c0d.jsonl"), own.clone()),
        (format!("{project}/agent-0a0b0c0d.meta.json"), "{}".into()),
        (format!("{project}/agent-00000001.jsonl"), warm_up.clone()),
        (format!("{project}/agent-acompact-01.jsonl"), own.clone()),
        (format!("{beside}/subagents/agent-a1.jsonl"), own.clone()),
        (
            format!("{beside}/subagents/agent-a1.meta.json"),
            "{}".into(),
        ),
        (format!("{beside}/subagents/agent-a2.jsonl"), warm_up),
        (
            format!("{beside}/subagents/agent-acompact-a3.jsonl"),
            own.clone(),
        ),
        (
            format!("{beside}/subagents/agent-aprompt_suggestion-a4.jsonl"),
            own.clone(),
        ),
        (
            format!("{beside}/subagents/workflows/w1/agent-a5.jsonl"),
            own.clone(),
        ),
        (
            format!("{beside}/subagents/workflows/w1/journal.jsonl"),
            "{\"type\":\"started\",\"agentId\":\"a5\"}\n".into(),
        ),
        (format!("{beside}/workflows/w1.json"), "{}".into()),
        (
            format!("{beside}/tool-results/pdf-1/page.json"),
            "{}".into(),
        ),
        (format!("{beside}/tool-results/t1.txt"), "x".into()),
        (format!("{beside}/custom-title.json"), "{}".into()),
        (format!("{beside}/archived.json"), "{}".into()),
        (format!("{beside}/resume-head.jsonl"), String::new()),
        (format!("{project}/{gone}/tool-results/t1.txt"), "x".into()),
        (
            format!("{project}/{gone}/subagents/agent-a6.jsonl"),
            line(gone),
        ),
        (format!("file-history/{id}/0a@v1"), "x".into()),
        (format!("file-history/{gone}/0a@v1"), "x".into()),
        (format!("todos/{id}-agent-{id}.json"), "[]".into()),
        (format!("todos/{gone}-agent-{gone}.json"), "[]".into()),
        (format!("tasks/{id}/1.json"), "{}".into()),
        (format!("session-env/{id}/hook.sh"), String::new()),
        (format!("image-cache/{id}/1.txt"), String::new()),
        (format!("debug/{id}.txt"), String::new()),
        (format!("debug/{gone}.txt"), String::new()),
        (format!("usage-data/facets/{id}.json"), "{}".into()),
        (
            "jobs/5e551000/state.json".into(),
            format!("{{\"sessionId\":\"{id}\"}}"),
        ),
        ("jobs/5e551000/timeline.jsonl".into(), String::new()),
        ("jobs/0a0b0c0d/state.json".into(), "torn{".into()),
        ("jobs/0a0b0c0d/tmp/out.txt".into(), String::new()),
        (
            "sessions/99999999.json".into(),
            format!("{{\"pid\":99999999,\"sessionId\":\"{id}\"}}"),
        ),
        ("paste-cache/0a1b2c.txt".into(), String::new()),
        ("plans/three-small-words.md".into(), String::new()),
        ("teams/t1/inboxes/lead.json".into(), "[]".into()),
        ("telemetry/1p_failed_events.json".into(), "{}".into()),
        ("usage-data/report.html".into(), String::new()),
        ("projects/stray.jsonl".into(), String::new()),
        (format!("{project}/subagents/notes.jsonl"), String::new()),
        ("daemon.log".into(), String::new()),
        ("daemon/roster.json".into(), "{}".into()),
    ];
    files.into()
}

/// A machine with all recordings, and a secret in every file: the paths of the files and what
/// stands in them.
fn machine() -> (Home, Vec<(PathBuf, String)>) {
    let home = home();
    let mut all: BTreeSet<PathBuf> = BTreeSet::new();
    for scenario in corpus::folders() {
        for part in ["projects", "dot-claude"] {
            let from = scenario.join(part);
            for path in files_below(&from) {
                let mut name = path.strip_prefix(&from).unwrap().to_owned();
                if part == "projects" {
                    name = Path::new("projects").join(name);
                }
                // The process of a recording is none of this machine.
                if name.starts_with("sessions") {
                    name = name.with_file_name(format!("9999{}", all.len()) + ".json");
                }
                let to = home.claude_dir().join(&name);
                if name.ends_with("settings.json") || name.starts_with(".last-cleanup") {
                    continue;
                }
                home.write(Path::new(".claude").join(&name), fs::read(path).unwrap());
                all.insert(to);
            }
        }
    }
    for (name, content) in unrecorded(crate::ID) {
        let path = home.claude_dir().join(&name);
        if !path.exists() {
            home.write(Path::new(".claude").join(&name), content);
        }
        all.insert(path);
    }
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_767_600_000);
    let mut secrets = Vec::new();
    for (number, path) in all.into_iter().enumerate() {
        let secret = token(number);
        let before = fs::read(&path).unwrap();
        fs::write(&path, planted(&path, &before, &secret)).unwrap();
        let file = fs::File::options().append(true).open(&path);
        file.unwrap().set_modified(then).unwrap();
        secrets.push((path, secret));
    }
    (home, secrets)
}

#[test]
fn a_secret_in_any_file_of_the_client_is_found_and_taken_out() {
    let (home, secrets) = machine();
    assert!(secrets.len() > 500, "{}", secrets.len());
    let output = home.output(&["scan", "--all", "--json", "--reveal"]);
    assert_eq!(output.status.code(), Some(1));
    let found: BTreeSet<(String, String)> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            (text("path"), text("secret"))
        })
        .collect();
    let missed: Vec<_> = secrets
        .iter()
        .filter(|(path, secret)| !found.contains(&(path.display().to_string(), secret.clone())))
        .map(|(path, _)| path)
        .collect();
    assert!(missed.is_empty(), "not found in {missed:#?}");

    let output = home.output(&["redact", "--all", "--in-place"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let left: Vec<_> = secrets
        .iter()
        .filter(|(path, secret)| {
            let now = fs::read(path).unwrap();
            String::from_utf8_lossy(&now).contains(secret)
        })
        .map(|(path, _)| path)
        .collect();
    assert!(left.is_empty(), "left in {left:#?}: {said}");
    let output = home.output(&["scan", "--all"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no secrets in"));
}

#[test]
fn what_was_taken_out_of_any_file_can_be_put_back() {
    let home = home();
    for (name, content) in unrecorded(crate::ID) {
        home.write(Path::new(".claude").join(&name), content);
    }
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_767_600_000);
    let all = files_below(&home.claude_dir());
    for (number, path) in all.iter().enumerate() {
        let before = fs::read(path).unwrap();
        fs::write(path, planted(path, &before, &token(number))).unwrap();
        let file = fs::File::options().append(true).open(path);
        file.unwrap().set_modified(then).unwrap();
    }
    let before: Vec<_> = all.iter().map(|path| fs::read(path).unwrap()).collect();
    let output = home.output(&["redact", crate::ID, "--in-place"]);
    assert_eq!(output.status.code(), Some(0));
    let output = home.output(&["redact", "--all", "--in-place"]);
    assert_eq!(output.status.code(), Some(0));
    for _ in 0..2 {
        let output = home.output(&["undo"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
    }
    for (path, before) in all.iter().zip(before) {
        assert_eq!(fs::read(path).unwrap(), before, "{}", path.display());
    }
}

#[test]
fn redacting_one_session_leaves_nothing_in_its_files() {
    let (home, secrets) = machine();
    let output = home.output(&["redact", crate::ID, "--in-place"]);
    assert_eq!(output.status.code(), Some(0));
    let own = |path: &Path| {
        let text = path.display().to_string();
        let is_own = text.contains(crate::ID)
            || text.contains("/-home-dev-x/agent-")
            || text.contains("jobs/5e551000")
            || text.contains("sessions/99999999");
        is_own && !text.contains("0000000000ff")
    };
    let mut count = 0;
    for (path, secret) in secrets.iter().filter(|(path, _)| own(path)) {
        let now = fs::read(path).unwrap();
        let text = String::from_utf8_lossy(&now).into_owned();
        assert!(!text.contains(secret), "{}", path.display());
        count += 1;
    }
    assert!(count > 25, "{count}");
    assert_eq!(home.output(&["scan", crate::ID]).status.code(), Some(0));
}

#[test]
fn a_secret_in_what_tells_the_client_what_to_do_is_found_named_and_left_there() {
    let home = crate::home_with_session();
    let files = [
        ".claude/projects/-home-dev-x/memory/MEMORY.md",
        ".claude/shell-snapshots/snapshot-bash-1.sh",
        ".claude/.claude.json",
        ".claude.json",
        ".claude/backups/.claude.json.backup.1",
    ];
    let secrets: Vec<(PathBuf, String)> = files
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let secret = token(number);
            home.write(name, format!("{{\"history\":[\"push {secret}\"]}}"));
            (home.path().join(name), secret)
        })
        .collect();
    let output = home.output(&["scan", "--all"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    for (path, _) in &secrets {
        assert!(said.contains(&path.display().to_string()), "{said}");
    }
    assert!(
        said.contains("goes by 5 files") && !said.contains("take them out"),
        "{said}"
    );
    let output = home.output(&["redact", "--all", "--in-place"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("but in 5 files"), "{said}");
    for (path, secret) in &secrets {
        assert!(said.contains(&path.display().to_string()), "{said}");
        assert!(fs::read_to_string(path).unwrap().contains(secret));
    }
}
