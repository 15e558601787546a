//! Edits that cannot be: named, with what to do, and nothing is written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use unspool_testkit::home::{Home, slug};

use super::{ID, home, home_with_session};

const CWD: &str = "/home/dev/x";

fn tree(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => all.extend(tree(&path)),
            false => drop(all.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    all
}

/// What is said on standard error; it fails, names a way out and leaves sessions as they are.
fn refused(home: &Home, args: &[&str], code: i32) -> String {
    let before = tree(&home.claude_dir());
    let output = home.output(args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert!(said.contains("Error: "), "{args:?}: {said}");
    assert!(said.contains("Hint: "), "{args:?}: {said}");
    assert!(!said.contains("panicked"), "{args:?}: {said}");
    assert_eq!(tree(&home.claude_dir()), before, "{args:?}");
    said
}

#[test]
fn a_session_that_is_not_there() {
    let home = home_with_session();
    for args in [
        &["clone", "ffff"][..],
        &["repair", "ffff"],
        &["redact", "ffff"],
        &["redact", "ffff", "--in-place"],
        &["merge", "ffff", ID],
        &["rename", "ffff", "x"],
        &["archive", "ffff"],
        &["archive", "--restore", "ffff"],
    ] {
        let said = refused(&home, args, 1);
        assert!(said.contains("`ffff`"), "{said}");
    }
    let said = refused(&home, &["move", "/no/such", "/new"], 1);
    assert!(said.contains("`/no/such`"), "{said}");
}

#[test]
fn bands_presets_and_turns_that_are_none() {
    let home = home_with_session();
    for (args, named) in [
        (&["--compress", "50-10:35"][..], "50 must be less than 10"),
        (&["--compress", "0-50"], "`0-50` is not a valid range"),
        (&["--compress", "0-500:35"], "`500`"),
        (
            &["--compress", "0-60:35", "--compress", "50-70:35"],
            "overlap",
        ),
        (&["--preset", "brutal"], "`brutal`"),
        (&["--turns", "9..12"], "9"),
        (&["--turns", "x..y"], "x"),
        (&["--until", "99"], "99"),
        (&["--drop-turn", "0"], "`0`"),
        (&["--summary", "9", "--summary-text", "x"], "9"),
        (&["--branch", "nowhere"], "nowhere"),
        (&["--cwd", "/no/such/place"], "`/no/such/place`"),
    ] {
        let mut all = vec!["clone", ID];
        all.extend(args);
        let said = refused(&home, &all, 2);
        assert!(said.contains(named), "{args:?}: {said}");
    }
}

#[test]
fn a_wish_that_would_leave_nothing() {
    let home = home_with_session();
    let said = refused(
        &home,
        &["clone", ID, "--drop-turn", "1", "--drop-turn", "2"],
        2,
    );
    assert!(said.contains("would be empty"), "{said}");
    // One that has nothing but calls: each goes, and no words are left.
    let home = home_with_session();
    let only = "meta: caveat\nclaude: [Read a.rs]\nresult: Read a.rs ok";
    home.session(CWD, ID, only);
    let output = home.output(&["clone", ID, "--preset", "extreme"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() || said.contains("would be empty") && said.contains("Hint"),
        "{said}"
    );
}

#[test]
fn a_command_that_is_not_there_or_fails() {
    let home = home();
    let long = "word ".repeat(80);
    home.session(
        CWD,
        ID,
        &format!("you: a\nclaude: {long}\nyou: b\nclaude: {long}"),
    );
    let compress = ["clone", ID, "--compress", "0-100:35", "--with"];
    let with = |command: &'static str| [&compress[..], &[command]].concat();
    let said = refused(&home, &with("no-such-command-anywhere"), 2);
    assert!(said.contains("no-such-command-anywhere"), "{said}");
    let summary = [
        "clone",
        ID,
        "--summary",
        "2",
        "--with",
        "no-such-command-anywhere",
    ];
    let said = refused(&home, &summary, 2);
    assert!(said.contains("no-such-command-anywhere"), "{said}");
    let said = refused(
        &home,
        &["clone", ID, "--summary", "2", "--with", "false"],
        2,
    );
    assert!(said.contains("false") || said.contains("summary"), "{said}");
    let said = refused(&home, &with("echo sorry >&2; exit 3"), 2);
    assert!(said.contains("exited with 3: sorry"), "{said}");
    // Without a command and without a key there is nobody to ask.
    let said = refused(&home, &compress[..4], 2);
    assert!(said.contains("ANTHROPIC_API_KEY"), "{said}");
}

#[test]
fn a_session_in_use_is_not_changed_in_place() {
    let home = home_with_session();
    let file = home.claude_dir().join("projects").join(slug(CWD));
    let file = file.join(format!("{ID}.jsonl"));
    let mut text = fs::read_to_string(&file).unwrap() + "null\n";
    text = text.replace(
        "thanks",
        &format!("ghp{}{}", "_0aZ9bY8cX7dW6eV5", "fU4gT3hS2iR1jQ0kP9lO8"),
    );
    fs::write(&file, text).unwrap();
    let pid = std::process::id();
    let running = format!(r#"{{"pid":{pid},"sessionId":"{ID}","status":"busy"}}"#);
    home.write(format!(".claude/sessions/{pid}.json"), running);
    for args in [
        &["repair", ID, "--in-place"][..],
        &["repair", ID, "--in-place", "--dry-run"],
        &["redact", ID, "--in-place"],
        &["redact", ID, "--in-place", "--dry-run"],
        &["move", CWD, "/home/dev/y"],
        &["archive", ID, "--remove"],
    ] {
        let said = refused(&home, args, 2);
        assert!(said.contains("in use"), "{args:?}: {said}");
    }
    assert!(home.output(&["clone", ID]).status.success());
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::process::{Command, Output};

    const EDITS: &[&str] = &[
        "clone 5e55",
        "clone 5e55 --redact",
        "repair 5e55",
        "repair 5e55 --in-place",
        "redact 5e55",
        "redact 5e55 --in-place",
        "merge 7777 8888",
        "move /home/dev/x /home/dev/y",
        "rename 5e55 x",
    ];

    /// Sessions that nobody works on, the first with a fault and a secret.
    fn machine() -> Home {
        let home = home_with_session();
        let folder = home.claude_dir().join("projects").join(slug(CWD));
        for id in ["7777", "8888"] {
            let id = format!("{id}1000-0000-4000-8000-000000000002");
            home.session(CWD, &id, "you: b\nclaude: c");
        }
        let path = folder.join(format!("{ID}.jsonl"));
        let token = format!("ghp{}{}", "_0aZ9bY8cX7dW6eV5", "fU4gT3hS2iR1jQ0kP9lO8");
        let text = fs::read_to_string(&path).unwrap().replace("thanks", &token);
        fs::write(&path, text + "null\n").unwrap();
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let file = fs::File::options().append(true).open(entry.path());
            let hour = std::time::Duration::from_secs(3600);
            if let Ok(file) = file {
                let _ = file.set_modified(std::time::SystemTime::now() - hour);
            }
        }
        home
    }

    /// Runs a shell in a world of its own, in which it may mount; `None` where nobody lets us.
    fn alone(home: &Home, first: &str, args: &str) -> Option<Output> {
        // Seen from outside, what is mounted there is as it was.
        let script = format!(
            "cp -a {0} {0}.before; {first}; {1} {args}; code=$?; rm -f {0}/fill; \
             diff -r {0} {0}.before >&2 || exit 99; exit $code",
            home.claude_dir().display(),
            env!("CARGO_BIN_EXE_unspool")
        );
        let given = home.command();
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &script]).env_clear();
        let variables = given.get_envs();
        command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
        let output = command.output().ok()?;
        let said = String::from_utf8_lossy(&output.stderr);
        (output.status.code() != Some(77) && !said.contains("unshare")).then_some(output)
    }

    fn told(home: &Home, first: &str, args: &str, words: &[&str]) {
        let Some(output) = alone(home, first, args) else {
            return;
        };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args}: {said}");
        assert!(said.contains("Hint: "), "{args}: {said}");
        assert!(
            words.iter().any(|word| said.contains(word)),
            "{args}: {said}"
        );
        assert!(!said.contains("cannot read"), "{args}: {said}");
    }

    #[test]
    fn a_disk_without_room() {
        // A line more may still fit into what the file has.
        for args in EDITS.iter().filter(|args| !args.starts_with("rename")) {
            let home = machine();
            let claude = home.claude_dir();
            // The sessions are on a disk of their own that is full.
            let first = format!(
                "mkdir {1}/full && mount -t tmpfs -o size=256k tmpfs {1}/full && \
                 cp -a {0}/. {1}/full/ && mount --move {1}/full {0} || exit 77; \
                 head -c 900000 /dev/zero > {0}/fill 2>/dev/null",
                claude.display(),
                home.path().display()
            );
            told(&home, &first, args, &["no space left"]);
        }
    }

    #[test]
    fn a_folder_that_is_read_only() {
        for args in EDITS {
            let home = machine();
            let projects = home.claude_dir().join("projects");
            let first = format!(
                "mount --bind {0} {0} && mount -o remount,bind,ro {0} || exit 77",
                projects.display()
            );
            told(&home, &first, args, &["read-only"]);
        }
    }
}
