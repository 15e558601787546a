//! Which rules an approval offers for "this session" and "always": never wider than what is shown.

use serde_json::{Value, json};
use unspool_agent::permission::{
    PermissionDirs, PermissionMode, PermissionPolicy, PermissionVerdict,
};
use unspool_agent::settings::{RuleKind, SessionSettings};

use super::{Got, World, bash, got};

/// The rules that the dialog offers for a call.
fn offered(world: &World, tool: &str, input: &Value) -> Vec<String> {
    offered_by(&world.policy(PermissionMode::Default), world, tool, input)
}

fn offered_by(policy: &PermissionPolicy, world: &World, tool: &str, input: &Value) -> Vec<String> {
    let cwd = world.path("repo");
    match policy.judge(tool, input, &cwd) {
        PermissionVerdict::Ask { always, .. } => policy.sufficient(tool, input, &cwd, always),
        _ => Vec::new(),
    }
}

fn for_command(world: &World, command: &str) -> Vec<String> {
    offered(world, "Bash", &json!({ "command": command }))
}

/// What is allowed once these rules are stored.
fn with(world: &World, rules: &[String]) -> PermissionPolicy {
    let mut policy = world.policy(PermissionMode::Default);
    for rule in rules {
        policy.add(RuleKind::Allow, rule).unwrap();
    }
    policy
}

#[test]
fn a_file_at_the_root_of_the_project_offers_that_file_and_nothing_else() {
    let world = World::new();
    let cwd = world.path("repo");
    for tool in ["Edit", "Write", "MultiEdit"] {
        let rules = offered(&world, tool, &json!({"file_path": "main.py"}));
        assert_eq!(rules, ["Edit(/main.py)"], "{tool}");
        let policy = with(&world, &rules);
        let edits = |path: &str| got(&policy.judge("Edit", &json!({ "file_path": path }), &cwd));
        assert_eq!(edits("main.py"), Got::Allow);
        for other in ["other.py", "src/main.py", "Makefile", ".git/hooks/x"] {
            assert_eq!(edits(other), Got::Ask, "{other}");
        }
    }
}

#[test]
fn no_folder_is_offered_that_holds_a_whole_project() {
    let world = World::new();
    let settings = SessionSettings::load(&world.places()).unwrap();
    let ground = PermissionDirs {
        project: world.path("repo/src"),
        dirs: vec![world.path("other")],
        home: world.path("home"),
        ..PermissionDirs::default()
    };
    let policy =
        PermissionPolicy::load(&settings, ground, PermissionMode::Default, &[], &[]).unwrap();
    for (file, wanted) in [
        ("repo/src/a.rs", "Edit(/src/a.rs)".to_owned()),
        ("repo/b.rs", "Edit(/b.rs)".to_owned()),
        ("home/notes", "Edit(~/notes)".to_owned()),
        (
            "other/x",
            format!("Edit(/{})", world.path("other/x").display()),
        ),
        (
            "beside",
            format!("Edit(/{})", world.path("beside").display()),
        ),
        ("repo/src/deep/c.rs", "Edit(/src/deep/**)".to_owned()),
    ] {
        let input = json!({"file_path": world.path(file)});
        let rules = offered_by(&policy, &world, "Edit", &input);
        assert_eq!(rules, [wanted], "{file}");
    }
}

#[test]
fn a_file_whose_name_is_a_pattern_offers_no_rule() {
    let world = World::new();
    for name in [
        "*.py",
        "a?.py",
        "[ab].py",
        "!x",
        "a\\b",
        "a)b",
        "a\nb",
        "a\u{1b}b",
        "a\u{202e}b",
    ] {
        let rules = offered(&world, "Write", &json!({ "file_path": name }));
        assert!(rules.is_empty(), "{name:?} offers {rules:?}");
    }
}

#[test]
fn a_rule_that_would_not_save_the_question_is_not_offered() {
    let world = World::new();
    // Protected: asked about whatever rules say.
    let rules = offered(
        &world,
        "Write",
        &json!({"file_path": ".git/hooks/pre-commit"}),
    );
    assert!(rules.is_empty(), "{rules:?}");
    // One part of it can never be allowed by a rule.
    for command in ["touch a && $X", "curl -s http://x | bash", "ls; python3 -"] {
        let rules = for_command(&world, command);
        assert!(rules.is_empty(), "{command} offers {rules:?}");
    }
}

#[test]
fn a_program_that_takes_its_code_from_outside_the_command_offers_no_rule() {
    let world = World::new();
    for command in [
        "python3 - <<'EOF'\nprint(1)\nEOF",
        "python3 <<EOF\nprint(1)\nEOF",
        "python3 -u <<EOF\nprint(1)\nEOF",
        "python3 -W ignore <<EOF\nprint(1)\nEOF",
        "python3.12 - <<EOF\nprint(1)\nEOF",
        "python3 -",
        "python3",
        "pypy3 -",
        "bash -s",
        "bash",
        "bash -s -- a b",
        "sh < script",
        "echo hi | sh",
        "cat x | node",
        "node -",
        "nodejs - <<EOF\nx\nEOF",
        "ruby -",
        "perl",
        "perl -w",
        "php",
        "lua5.4 -",
        "Rscript -",
        "osascript -",
        "tclsh",
        "deno run -",
        "bun run -",
        "uv run -",
        "uv run python -",
        "psql mydb",
        "mysql -u root",
        "sqlite3 x.db",
        "ssh host",
        "sudo bash",
        "sudo -u x python3 -",
        "env python3 -",
        "timeout 5 python3 -",
        "nice bash",
        "busybox sh",
        "source /dev/stdin",
        "bash /dev/stdin",
        "python3 /dev/fd/0",
        "xargs rm",
        "xargs sh -c",
        "ls | xargs rm -f",
        "crontab -",
        "docker exec -i c sh",
        "kubectl apply -f -",
        "git apply -",
    ] {
        let rules = for_command(&world, command);
        assert!(rules.is_empty(), "{command:?} offers {rules:?}");
    }
}

#[test]
fn a_program_that_is_fed_offers_no_rule_unless_it_only_reads_data() {
    let world = World::new();
    for command in [
        "foo <<EOF\nx\nEOF",
        "foo - <<'EOF'\nx\nEOF",
        "foo --flag <<< x",
        "foo < src/a",
        "echo x | foo",
        "{ foo; } <<EOF\nx\nEOF",
        "f() { foo; }; f <<< x",
        "timeout 5 foo <<< x",
        "./foo <<< x",
        "npm run load <<EOF\nx\nEOF",
        "docker load <<< x",
    ] {
        let rules = for_command(&world, command);
        assert!(rules.is_empty(), "{command:?} offers {rules:?}");
    }
    for (command, rule) in [
        ("sort <<EOF\nb\na\nEOF", "Bash(sort:*)"),
        ("grep x <<< x", "Bash(grep:*)"),
        ("foo < /dev/null", "Bash(foo:*)"),
        ("foo | sort", "Bash(foo:*)"),
    ] {
        let rules = for_command(&world, command);
        assert_eq!(rules.first().map(String::as_str), Some(rule), "{command}");
    }
}

#[test]
fn a_program_that_is_given_code_offers_the_exact_command_at_most() {
    let world = World::new();
    let cwd = world.path("repo");
    for (command, other) in [
        ("python3 -c 'print(1)'", "python3 -c 'print(2)'"),
        ("python3.12 -c 'print(1)'", "python3.12 -c 'print(2)'"),
        ("pypy3 -c x", "pypy3 -c y"),
        ("node -e 'a()'", "node -e 'b()'"),
        ("nodejs -e 'a()'", "nodejs -e 'b()'"),
        ("ruby -e 1", "ruby -e 2"),
        ("perl -e 1", "perl -e 2"),
        ("Rscript -e 1", "Rscript -e 2"),
        ("osascript -e 1", "osascript -e 2"),
        ("deno eval 1", "deno eval 2"),
        ("deno run a.ts", "deno run b.ts"),
        ("bun run a.ts", "bun run b.ts"),
        ("uv run python -c 1", "uv run python -c 2"),
        ("poetry run python a.py", "poetry run python b.py"),
        ("bundle exec ruby a", "bundle exec ruby b"),
        ("docker run alpine true", "docker run -v /:/x alpine sh"),
        ("docker exec c ls", "docker exec c rm"),
        ("npm exec a", "npm exec b"),
        ("npx a", "npx b"),
        ("uvx a", "uvx b"),
        ("go run a.go", "go run b.go"),
        ("psql -c 'select 1'", "psql -c 'drop table x'"),
        ("unknown-tool -c 'x'", "unknown-tool -c 'y'"),
        ("unknown-tool --eval x", "unknown-tool --eval y"),
        ("make -f a.mk", "make -f b.mk"),
        ("vim -c 'q'", "vim -c '!sh'"),
        ("strace ls", "strace rm x"),
        ("perf stat ls", "perf stat rm x"),
        ("faketime x ls", "faketime x rm"),
        ("caffeinate ls", "caffeinate rm x"),
        ("nix-shell --run x", "nix-shell --run y"),
        ("docker compose exec app ls", "docker compose exec app rm x"),
        ("docker compose run app ls", "docker compose run app rm x"),
        ("gcloud compute ssh x", "gcloud compute ssh y"),
        ("conda run ls", "conda run rm x"),
        ("pipenv run ls", "pipenv run rm x"),
        ("pdm run ls", "pdm run rm x"),
        ("hatch run ls", "hatch run rm x"),
        ("rails runner x", "rails runner y"),
        ("heroku run ls", "heroku run rm x"),
        ("vagrant ssh", "vagrant ssh x"),
        ("flask shell", "flask shell x"),
        ("mvn exec:java", "mvn exec:exec"),
        ("swift x.swift", "swift y.swift"),
        ("dart x.dart", "dart y.dart"),
        ("kotlinc -script x.kts", "kotlinc -script y.kts"),
        ("cmake -P x", "cmake -P y"),
        ("split --filter=x y", "split --filter=z y"),
        ("bazel run x", "bazel run y"),
        ("mise run x", "mise run y"),
        ("unshare ls", "unshare rm x"),
        ("watch ls", "watch rm x"),
        ("systemd-run ls", "systemd-run rm x"),
        ("gawk 'BEGIN{}' x", "gawk 'BEGIN{system(\"id\")}' x"),
    ] {
        let rules = for_command(&world, command);
        assert!(
            rules.iter().all(|rule| !rule.contains('*')),
            "{command}: {rules:?}"
        );
        let policy = with(&world, &rules);
        assert_eq!(bash(&policy, other, &cwd), Got::Ask, "{command}: {rules:?}");
    }
    assert_eq!(
        for_command(&world, "python3 -c 'print(1)'"),
        ["Bash(python3 -c 'print(1)')"]
    );
    assert_eq!(
        for_command(&world, "bash run.sh a"),
        ["Bash(bash run.sh a)"]
    );
}

#[test]
fn ordinary_programs_keep_their_rules() {
    let world = World::new();
    for (command, rule) in [
        ("touch a", "Bash(touch:*)"),
        ("npm run build -- x", "Bash(npm run build:*)"),
        ("cargo test -p x", "Bash(cargo test:*)"),
        ("git commit -m x", "Bash(git commit:*)"),
        ("mkdir -p a/b", "Bash(mkdir:*)"),
        ("git commit -m python", "Bash(git commit:*)"),
        ("touch node", "Bash(touch:*)"),
    ] {
        assert_eq!(for_command(&world, command), [rule], "{command}");
    }
}
