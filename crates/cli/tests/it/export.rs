//! `export` from outside.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use unspool_testkit::corpus;

use crate::{ID, home, home_with_session};

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn one_session_goes_to_standard_output_in_every_format() {
    let home = home_with_session();
    for (format, part) in [
        ("html", "<!doctype html>"),
        ("md", "title: \"fix it\""),
        ("txt", "❯ fix it"),
        ("json", "\"rows\":["),
        ("jsonl", "\"uuid\""),
        ("messages", "\"role\""),
    ] {
        let text = home.run(&["export", ID, "--to", format]);
        assert!(text.contains(part), "{format}: {text}");
        assert!(text.contains("fix it"), "{format}: {text}");
        let named = home.run(&["export", ID, "--to", format, "-o", "-"]);
        assert_eq!(named, text, "{format}");
    }
}

#[test]
fn the_lines_of_the_transcript_are_those_of_the_file() {
    let home = home_with_session();
    let path = home.transcript(
        "/home/dev/y",
        "5e551000-0000-4000-8000-00000000000f",
        "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n\n{torn",
    );
    let output = home.output(&["export", path.to_str().unwrap(), "--to", "jsonl"]);
    assert_eq!(output.stdout, fs::read(path).unwrap());
}

#[test]
fn a_file_is_for_nobody_else_and_is_not_replaced_by_accident() {
    let home = home_with_session();
    let page = home.work_dir().join("page.html");
    let name = page.to_str().unwrap();
    // The format is that of the name.
    home.run(&["export", ID, "-o", name]);
    let first = fs::read_to_string(&page).unwrap();
    assert!(first.starts_with("<!doctype html>"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(page.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    let again = home.output(&["export", ID, "-o", name, "--detail", "prompts"]);
    assert_eq!(again.status.code(), Some(2));
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(
        said.contains("already exists") && said.contains("--force"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&page).unwrap(), first);
    home.run(&["export", ID, "-o", name, "--detail", "prompts", "--force"]);
    assert!(fs::read_to_string(&page).unwrap().len() < first.len());
    assert_eq!(files(&home.work_dir()), ["page.html"]);
}

#[test]
fn many_sessions_become_a_folder_with_an_index() {
    let home = home_with_session();
    let other = "5e551000-0000-4000-8000-000000000002";
    home.session("/home/dev/x", other, "you: something | else\nclaude: ok");
    for (format, index) in [
        ("html", Some("index.html")),
        ("md", Some("index.md")),
        ("json", None),
    ] {
        let folder = home.work_dir().join(format);
        let name = folder.to_str().unwrap();
        let rows = home.run(&["export", ID, other, "--to", format, "-o", name, "--json"]);
        let rows: Vec<Value> = rows
            .lines()
            .map(|row| serde_json::from_str(row).unwrap())
            .collect();
        assert_eq!(rows.len(), 2 + usize::from(index.is_some()));
        assert_eq!(rows[0]["format"], format);
        let mut expected = vec![format!("{ID}.{format}"), format!("{other}.{format}")];
        expected.extend(index.map(str::to_owned));
        assert_eq!(files(&folder), expected);
        if let Some(index) = index {
            let index = fs::read_to_string(folder.join(index)).unwrap();
            assert!(index.contains(&format!("{ID}.{format}")), "{index}");
            assert!(
                index.contains("else") && index.contains("2 sessions"),
                "{index}"
            );
            assert!(
                format != "md" || index.contains("something \\| else"),
                "{index}"
            );
        }
    }
    let all = home.work_dir().join("all");
    home.run(&[
        "export",
        "--all",
        "--project",
        "x",
        "--to",
        "md",
        "-o",
        all.to_str().unwrap(),
    ]);
    assert_eq!(files(&all).len(), 3);
    let none = home.output(&[
        "export",
        "--all",
        "--project",
        "nowhere",
        "--to",
        "md",
        "-o",
        all.to_str().unwrap(),
        "--force",
    ]);
    assert_eq!(none.status.code(), Some(1));
}

#[test]
fn secrets_leave_the_machine_only_when_asked() {
    let home = home();
    // As GitHub makes them, put together here so that nobody finds one in this file.
    let secret = ["ghp_x7Qb9ZpLm2", "Rt4VbN8cKd", "3Wf6HsJy1T", "g5Ue0i"].concat();
    home.session(
        "/home/dev/x",
        ID,
        &format!("you: my key is {secret}\nclaude: it is {secret} [Bash echo {secret}]\nresult: Bash echo {secret} {secret}"),
    );
    for format in ["html", "md", "txt", "json", "jsonl", "messages"] {
        let masked = home.run(&["export", ID, "--to", format]);
        assert!(!masked.contains(&secret), "{format}");
        let squeezed = |text: String| text.split_whitespace().collect::<String>();
        let open = squeezed(home.run(&["export", ID, "--to", format, "--no-redact"]));
        assert!(open.contains(&secret), "{format}: {open}");
    }
}

/// Adds a text to every string below, and says which fields it met.
fn add_everywhere(value: &mut Value, text: &str, path: &str, met: &mut BTreeSet<String>) {
    match value {
        // Ids lead to other files; they stay.
        Value::String(_) if path.ends_with("Id") => {}
        Value::String(said) => {
            met.insert(path.to_owned());
            said.push_str(text);
        }
        Value::Array(all) => all
            .iter_mut()
            .for_each(|one| add_everywhere(one, text, path, met)),
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| {
            add_everywhere(value, text, &format!("{path}.{key}"), met);
        }),
        _ => {}
    }
}

#[test]
fn no_document_shows_a_secret_of_what_the_client_keeps_beside_results() {
    let home = home();
    let secret = ["ghp_x7Qb9ZpLm2", "Rt4VbN8cKd", "3Wf6HsJy1T", "g5Ue0i"].concat();
    let mut met = BTreeSet::new();
    for file in corpus::files() {
        if file.role != corpus::Role::Main {
            continue;
        }
        let before = met.len();
        let mut lines = Vec::new();
        for line in String::from_utf8_lossy(&file.bytes()).lines() {
            let Ok(mut value) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let kept = &mut value["toolUseResult"];
            add_everywhere(kept, &format!("\n{secret}\n"), "", &mut met);
            lines.push(value.to_string());
        }
        // Only files with something that no other had.
        if met.len() == before {
            continue;
        }
        let path = home.transcript("/home/dev/x", ID, lines.join("\n") + "\n");
        for format in ["html", "md", "txt"] {
            let masked = home.run(&["export", path.to_str().unwrap(), "--to", format]);
            assert!(!masked.contains(&secret), "{}: {format}", file.name());
        }
    }
    for field in [".originalFile", ".file.content", ".stdout"] {
        assert!(met.contains(field), "{met:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_a_hint() {
    let home = home_with_session();
    let other = "5e551000-0000-4000-8000-000000000002";
    home.session("/home/dev/x", other, "you: a\nclaude: b");
    let inside = home.claude_dir().join("projects/-home-dev-x/new.jsonl");
    let below = home.claude_dir().join("projects/new/");
    for (args, part) in [
        (vec!["export", ID], "no output format"),
        (vec!["export", ID, other, "--to", "md"], "-o DIR/"),
        (
            vec!["export", ID, "--to", "jsonl", "--max-chars", "9"],
            "--max-chars",
        ),
        (
            vec!["export", ID, "--to", "json", "--detail", "low"],
            "--detail",
        ),
        (
            vec!["export", ID, "-o", inside.to_str().unwrap()],
            "Claude Code's projects directory",
        ),
        (
            vec!["export", ID, "--to", "md", "-o", below.to_str().unwrap()],
            "Claude Code's projects directory",
        ),
        (
            vec!["export", ID, "-o", "nowhere/page.html"],
            "nowhere/page.html",
        ),
    ] {
        let output = home.output(&args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    assert!(!inside.exists());
}

#[test]
fn texts_leave_out_thinking_and_notes_unless_asked_and_a_page_folds_them() {
    let home = home();
    home.session(
        "/home/dev/x",
        ID,
        "you: go\nthink: a private thought\nclaude: looking [Read a]\nhook: PostToolUse:Read\nresult: Read a b\nclaude: done\n",
    );
    let told = |args: &[&str]| {
        let text = home.run(&[&["export", ID, "-o", "-", "--to"], args].concat());
        assert!(text.contains("done"), "{args:?}: {text}");
        let thought = text.contains("a private thought");
        let hook = text.contains("PostToolUse:Read");
        assert!(thought || !hook, "{args:?}: {text}");
        thought
    };
    for format in ["md", "txt"] {
        assert!(!told(&[format]), "{format}");
        assert!(!told(&[format, "--detail", "high"]), "{format}");
        assert!(told(&[format, "--detail", "full"]), "{format}");
    }
    assert!(told(&["html"]));
}
