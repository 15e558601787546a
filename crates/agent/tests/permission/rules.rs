//! What each mode, tool and rule does, one sentence each.

use super::*;
use unspool_agent::permission::{offered_rules, rule_editing};
use unspool_agent::settings::{RuleKind, SettingsLayer};

fn edit(policy: &PermissionPolicy, path: &str, cwd: &Path) -> Got {
    let input = json!({"file_path": path, "old_string": "a", "new_string": "b"});
    got(&policy.judge("Edit", &input, cwd))
}

fn read(policy: &PermissionPolicy, path: &str, cwd: &Path) -> Got {
    got(&policy.judge("Read", &json!({ "file_path": path }), cwd))
}

#[test]
fn what_denies_comes_before_what_asks_and_that_before_what_allows() {
    let world = World::new();
    world.rules(json!({
        "allow": ["Bash(git *)"], "ask": ["Bash(git push *)"], "deny": ["Bash(git push --force *)"]}));
    let policy = world.policy(PermissionMode::Default);
    let cwd = world.path("repo");
    assert_eq!(bash(&policy, "git pull", &cwd), Got::Allow);
    assert_eq!(bash(&policy, "git push", &cwd), Got::Ask);
    assert_eq!(bash(&policy, "git push --force", &cwd), Got::Deny);
    // The narrower rule does not win.
    world.rules(json!({"allow": ["Bash(git push origin main)"], "deny": ["Bash(git *)"]}));
    let policy = world.policy(PermissionMode::Default);
    assert_eq!(bash(&policy, "git push origin main", &cwd), Got::Deny);
}

#[test]
fn a_rule_that_might_deny_is_asked_about_even_if_another_allows() {
    let world = World::new();
    world.rules(json!({"allow": ["Bash(git *)", "Bash(echo *)"], "deny": ["Bash(git push *)"]}));
    let cwd = world.path("repo");
    for mode in [PermissionMode::Default, PermissionMode::Bypass] {
        let policy = world.policy(mode);
        assert_eq!(bash(&policy, "git $X origin", &cwd), Got::Ask, "{mode:?}");
        assert_eq!(bash(&policy, "git status $X", &cwd), Got::Allow, "{mode:?}");
        assert_eq!(bash(&policy, "echo $X", &cwd), Got::Allow, "{mode:?}");
    }
}

#[test]
fn files_in_the_project_are_read_without_a_question_and_others_are_not() {
    let world = World::new();
    world.write("other/x", "");
    world.write("repo/src/a.rs", "");
    std::os::unix::fs::symlink(world.path("other/x"), world.path("repo/link")).unwrap();
    let policy = world.policy(PermissionMode::Default);
    let cwd = world.path("repo");
    let inside = world.path("repo/src/a.rs").display().to_string();
    assert_eq!(read(&policy, &inside, &cwd), Got::Allow);
    assert_eq!(read(&policy, "src/a.rs", &cwd), Got::Allow);
    let outside = world.path("other/x").display().to_string();
    for path in [
        outside.as_str(),
        "/etc/passwd",
        "../other/x",
        "link",
        "~/x",
        "",
        "/proc/self/root/etc/passwd",
    ] {
        assert_eq!(read(&policy, path, &cwd), Got::Ask, "{path}");
    }
    let evil = format!("{}-evil/x", world.path("repo").display());
    assert_eq!(read(&policy, &evil, &cwd), Got::Ask);
}

#[test]
fn a_file_is_judged_as_the_tools_will_open_it() {
    let world = World::new();
    world.rules(json!({"allow": ["Read(~/**)"], "deny": ["Read(//etc/**)"]}));
    fs::create_dir_all(world.path("repo/src/deep")).unwrap();
    std::os::unix::fs::symlink(world.path("repo/src/deep"), world.path("repo/link")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", world.path("repo/evil")).unwrap();
    let policy = world.policy(PermissionMode::AcceptEdits);
    let cwd = world.path("repo");
    // To the system `link/../evil` is `src/evil`; the tools read it as text first.
    for path in ["link/../evil", "evil", "/etc/./passwd", "//etc/passwd"] {
        assert_eq!(read(&policy, path, &cwd), Got::Deny, "{path:?}");
        assert_ne!(edit(&policy, path, &cwd), Got::Allow, "{path:?}");
    }
    assert!(policy.hides(&cwd.join("evil")));
}

#[test]
fn a_search_that_leads_out_of_the_project_is_asked_about() {
    let world = World::new();
    let policy = world.policy(PermissionMode::Default);
    let cwd = world.path("repo");
    let glob = |pattern: &str| got(&policy.judge("Glob", &json!({ "pattern": pattern }), &cwd));
    assert_eq!(glob("**/*.rs"), Got::Allow);
    for pattern in ["/etc/*", "../**", "~/*", "src/../../x*", "*/../../x"] {
        assert_eq!(glob(pattern), Got::Ask, "{pattern}");
    }
    let grep = |path: &str| {
        let input = json!({"pattern": "x", "path": path});
        got(&policy.judge("Grep", &input, &cwd))
    };
    assert_eq!((grep("src"), grep("/etc")), (Got::Allow, Got::Ask));
}

#[test]
fn a_file_whose_reading_is_denied_is_hidden_from_searches_and_commands() {
    let world = World::new();
    world.rules(json!({"allow": ["Bash(cat *)", "Bash(grep *)", "Edit"], "deny": ["Read(.env)", "Read(/secrets/**)", "Read(~/.ssh/**)"]}));
    // The rules are the user's: a single slash is the folder of the user's file.
    world.write(
        "repo/.claude/settings.json",
        r#"{"permissions": {"deny": ["Read(/secrets/**)"]}}"#,
    );
    world.write("repo/.env", "");
    std::os::unix::fs::symlink(world.path("repo/.env"), world.path("repo/plain")).unwrap();
    let policy = world.policy(PermissionMode::Bypass);
    let cwd = world.path("repo");
    for path in [
        ".env",
        "src/.env",
        "secrets/key",
        "~/.ssh/id",
        "plain",
        "./src/../.env",
    ] {
        assert_eq!(read(&policy, path, &cwd), Got::Deny, "{path}");
        assert!(
            policy.hides(&cwd.join(path.replace('~', &world.path("home").display().to_string()))),
            "{path}"
        );
        assert_eq!(
            bash(&policy, &format!("cat {path}"), &cwd),
            Got::Deny,
            "{path}"
        );
        assert_eq!(
            bash(&policy, &format!("grep x < {path}"), &cwd),
            Got::Deny,
            "{path}"
        );
    }
    assert_eq!(bash(&policy, "cat .e*", &cwd), Got::Ask);
    assert_eq!(bash(&policy, "cat $X", &cwd), Got::Ask);
    assert_eq!(bash(&policy, "cd src && cat ../.env", &cwd), Got::Deny);
    assert_eq!(bash(&policy, "cat README.md", &cwd), Got::Allow);
    assert!(!policy.hides(&world.path("repo/README.md")));
}

#[test]
fn editing_is_asked_about_and_accepted_only_within_the_project() {
    let world = World::new();
    world.write("other/x", "");
    std::os::unix::fs::symlink(world.path("other"), world.path("repo/out")).unwrap();
    let cwd = world.path("repo");
    assert_eq!(
        edit(&world.policy(PermissionMode::Default), "src/a.rs", &cwd),
        Got::Ask
    );
    let policy = world.policy(PermissionMode::AcceptEdits);
    assert_eq!(edit(&policy, "src/a.rs", &cwd), Got::Allow);
    let outside = world.path("other/x").display().to_string();
    for path in [
        outside.as_str(),
        "../other/x",
        "out/x",
        "~/x",
        "/etc/passwd",
    ] {
        assert_eq!(edit(&policy, path, &cwd), Got::Ask, "{path}");
    }
    for tool in ["Write", "MultiEdit"] {
        let verdict = policy.judge(tool, &json!({"file_path": "new"}), &cwd);
        assert_eq!(got(&verdict), Got::Allow, "{tool}");
    }
    let verdict = policy.judge("NotebookEdit", &json!({"notebook_path": "n.ipynb"}), &cwd);
    assert_eq!(got(&verdict), Got::Allow);
}

#[test]
fn more_folders_belong_to_the_project_if_somebody_adds_them() {
    let world = World::new();
    let cwd = world.path("repo");
    let outside = world.path("other/x").display().to_string();
    let mut policy = world.policy(PermissionMode::AcceptEdits);
    assert_eq!(edit(&policy, &outside, &cwd), Got::Ask);
    policy.add_dir(&world.path("other"));
    assert_eq!(edit(&policy, &outside, &cwd), Got::Allow);
    assert_eq!(read(&policy, &outside, &cwd), Got::Allow);
}

#[test]
fn protected_files_are_asked_about_whatever_rules_and_modes_say_but_bypass() {
    let world = World::new();
    world
        .rules(json!({"allow": ["Edit", "Edit(**)", "Bash(tee *)", "Bash(echo *)", "Bash(cp *)"]}));
    let cwd = world.path("repo");
    for path in [
        ".git/config",
        ".claude/settings.json",
        ".mcp.json",
        ".vscode/tasks.json",
        "sub/.git/hooks/x",
        ".bashrc",
        ".husky/pre-commit",
    ] {
        for mode in [PermissionMode::Default, PermissionMode::AcceptEdits] {
            let policy = world.policy(mode);
            assert_eq!(edit(&policy, path, &cwd), Got::Ask, "{mode:?} {path}");
            assert_eq!(
                bash(&policy, &format!("echo x > {path}"), &cwd),
                Got::Ask,
                "{path}"
            );
            assert_eq!(
                bash(&policy, &format!("tee {path}"), &cwd),
                Got::Ask,
                "{path}"
            );
            assert_eq!(
                bash(&policy, &format!("cp x {path}"), &cwd),
                Got::Ask,
                "{path}"
            );
        }
        assert_eq!(
            edit(&world.policy(PermissionMode::Bypass), path, &cwd),
            Got::Allow,
            "{path}"
        );
        assert_eq!(
            edit(&world.policy(PermissionMode::DontAsk), path, &cwd),
            Got::Deny,
            "{path}"
        );
    }
    assert_eq!(
        edit(
            &world.policy(PermissionMode::Default),
            ".claude/commands/x.md",
            &cwd
        ),
        Got::Allow
    );
    let steering = world.path("config/projects/x").display().to_string();
    assert_eq!(
        edit(&world.policy(PermissionMode::AcceptEdits), &steering, &cwd),
        Got::Ask
    );
}

#[test]
fn plan_mode_lets_nothing_be_changed() {
    let world = World::new();
    world.rules(json!({"allow": ["Edit", "Write", "Bash(git *)", "Bash(ls *)", "Bash(touch *)", "Bash(sed *)", "mcp__x"]}));
    let policy = world.policy(PermissionMode::Plan);
    let cwd = world.path("repo");
    assert_eq!(edit(&policy, "src/a.rs", &cwd), Got::Deny);
    for command in [
        "touch x",
        "git commit -m x",
        "git status > out",
        "git log --output=x",
        "sed -i s/a/b/ x",
        "ls; touch x",
        "ls $(touch x)",
    ] {
        assert_eq!(bash(&policy, command, &cwd), Got::Deny, "{command}");
    }
    for command in ["ls -la", "git status", "git log -n 3 | ls", "cd src && ls"] {
        assert_eq!(bash(&policy, command, &cwd), Got::Allow, "{command}");
    }
    assert_eq!(bash(&policy, "cat README.md", &cwd), Got::Ask);
    assert_eq!(read(&policy, "src/a.rs", &cwd), Got::Allow);
    let tool = |name: &str| got(&policy.judge(name, &json!({}), &cwd));
    assert_eq!(
        (tool("mcp__x__y"), tool("ExitPlanMode"), tool("TodoWrite")),
        (Got::Deny, Got::Allow, Got::Allow)
    );
}

#[test]
fn what_would_be_asked_is_denied_when_nobody_wants_questions() {
    let world = World::new();
    world.rules(json!({"allow": ["Bash(ls *)"], "ask": ["Bash(ls secret)"]}));
    let policy = world.policy(PermissionMode::DontAsk);
    let cwd = world.path("repo");
    assert_eq!(bash(&policy, "ls", &cwd), Got::Allow);
    assert_eq!(bash(&policy, "ls secret", &cwd), Got::Deny);
    assert_eq!(bash(&policy, "touch x", &cwd), Got::Deny);
    assert_eq!(bash(&policy, "rm -rf /", &cwd), Got::Deny);
    assert_eq!(edit(&policy, "src/a.rs", &cwd), Got::Deny);
    assert_eq!(read(&policy, "src/a.rs", &cwd), Got::Allow);
}

#[test]
fn bypass_asks_nothing_but_what_a_rule_or_a_guard_wants() {
    let world = World::new();
    world.rules(
        json!({"ask": ["Bash(git push *)"], "deny": ["Bash(curl *)", "WebFetch(domain:evil.org)"]}),
    );
    let policy = world.policy(PermissionMode::Bypass);
    let cwd = world.path("repo");
    assert_eq!(bash(&policy, "touch x > /tmp/y && $X", &cwd), Got::Ask);
    assert_eq!(bash(&policy, "touch x > /tmp/y", &cwd), Got::Allow);
    assert_eq!(bash(&policy, "git push", &cwd), Got::Ask);
    assert_eq!(bash(&policy, "curl x", &cwd), Got::Deny);
    assert_eq!(bash(&policy, "echo 'open", &cwd), Got::Deny);
    assert_eq!(bash(&policy, "((x))", &cwd), Got::Ask);
    assert_eq!(edit(&policy, "/etc/x", &cwd), Got::Allow);
}

#[test]
fn accepting_edits_covers_small_commands_within_the_project_and_redirections() {
    let world = World::new();
    world.rules(json!({"allow": ["Bash(echo *)"]}));
    let policy = world.policy(PermissionMode::AcceptEdits);
    let cwd = world.path("repo");
    for command in [
        "mkdir -p a/b",
        "touch x y",
        "cp a b",
        "mv a b",
        "echo x > out",
        "mkdir a && touch a/x",
    ] {
        assert_eq!(bash(&policy, command, &cwd), Got::Allow, "{command}");
    }
    for command in [
        "mkdir ../x",
        "touch ~/x",
        "cp -r a b",
        "cp a .git/hooks/x",
        "mv a $B",
        "touch *",
        "rm x",
        "cp a /etc",
        "echo x > /tmp/y",
        "cd / && touch x",
    ] {
        assert_eq!(bash(&policy, command, &cwd), Got::Ask, "{command}");
    }
}

#[test]
fn what_a_rule_or_a_guard_wants_asked_only_a_person_can_answer() {
    let world = World::new();
    world.rules(json!({"ask": ["Bash(git push *)"]}));
    let policy = world.policy(PermissionMode::Default);
    let cwd = world.path("repo");
    let is_firm = |command: &str| match policy.judge("Bash", &json!({ "command": command }), &cwd) {
        PermissionVerdict::Ask { why, .. } => why.firm,
        _ => panic!("{command}"),
    };
    assert!(is_firm("git push") && is_firm("rm -rf /") && is_firm("echo 'open"));
    assert!(!is_firm("touch x"));
}

#[test]
fn leaving_the_sandbox_is_asked_about_in_every_mode() {
    let world = World::new();
    world.rules(json!({"allow": ["Bash(ls *)"]}));
    let mut policy = world.policy(PermissionMode::Bypass);
    let cwd = world.path("repo");
    let input = json!({"command": "ls", "dangerouslyDisableSandbox": true});
    assert_eq!(got(&policy.judge("Bash", &input, &cwd)), Got::Allow);
    policy.set_fenced(true);
    assert_eq!(got(&policy.judge("Bash", &input, &cwd)), Got::Ask);
    assert_eq!(bash(&policy, "ls", &cwd), Got::Allow);
}

#[test]
fn a_bare_rule_that_denies_takes_the_tool_away() {
    let world = World::new();
    world.rules(json!({"deny": ["WebFetch", "Bash(*)", "mcp__git", "Edit", "Read(.env)"]}));
    let policy = world.policy(PermissionMode::Bypass);
    for tool in ["WebFetch", "Bash", "mcp__git__push", "Edit", "Write"] {
        assert!(!policy.offers(tool), "{tool}");
    }
    for tool in ["Read", "Grep", "WebSearch", "mcp__github__push"] {
        assert!(policy.offers(tool), "{tool}");
    }
    assert_eq!(bash(&policy, "ls", &world.path("repo")), Got::Deny);
}

#[test]
fn pages_agents_and_servers_follow_their_rules() {
    let world = World::new();
    world.rules(json!({
        "allow": ["WebFetch(domain:docs.rs)", "mcp__git__status"],
        "deny": ["Agent(wild)", "WebFetch(domain:evil.org)"]}));
    let policy = world.policy(PermissionMode::Default);
    let cwd = world.path("repo");
    let judge = |tool: &str, input: Value| got(&policy.judge(tool, &input, &cwd));
    assert_eq!(
        judge(
            "WebFetch",
            json!({"url": "https://docs.rs/x", "prompt": ""})
        ),
        Got::Allow
    );
    assert_eq!(
        judge(
            "WebFetch",
            json!({"url": "https://docs.rs.evil.com/", "prompt": ""})
        ),
        Got::Ask
    );
    assert_eq!(
        judge(
            "WebFetch",
            json!({"url": "https://EVIL.org./", "prompt": ""})
        ),
        Got::Deny
    );
    assert_eq!(
        judge(
            "WebFetch",
            json!({"url": "https://a@evil.org/", "prompt": ""})
        ),
        Got::Deny
    );
    assert_eq!(judge("Agent", json!({"subagent_type": "wild"})), Got::Deny);
    assert_eq!(judge("Task", json!({"subagent_type": "wild"})), Got::Deny);
    assert_eq!(judge("Agent", json!({"subagent_type": "tame"})), Got::Allow);
    assert_eq!(judge("mcp__git__status", json!({})), Got::Allow);
    assert_eq!(judge("mcp__git__push", json!({})), Got::Ask);
    assert_eq!(judge("SomethingNew", json!({})), Got::Ask);
}

#[test]
fn the_model_is_told_what_users_of_the_original_expect() {
    let world = World::new();
    world.rules(json!({"deny": ["Bash(curl *)", "Read(.env)"]}));
    let policy = world.policy(PermissionMode::Default);
    let cwd = world.path("repo");
    let text = |tool: &str, input: Value| match policy.judge(tool, &input, &cwd) {
        PermissionVerdict::Deny { text, .. } | PermissionVerdict::Ask { text, .. } => text,
        PermissionVerdict::Allow { .. } => String::new(),
    };
    assert_eq!(
        text("Bash", json!({"command": "curl x"})),
        "Permission to use Bash with command curl x has been denied."
    );
    assert!(text("Read", json!({"file_path": ".env"})).starts_with(
        "<tool_use_error>File is in a directory that is denied by your permission settings."
    ));
    assert_eq!(
        text("Write", json!({"file_path": "/p/x", "content": ""})),
        "Claude requested permissions to write to /p/x, but you haven't granted it yet."
    );
}

#[test]
fn a_verdict_names_the_rule_with_its_file_and_line() {
    let world = World::new();
    world.write(
        "config/settings.json",
        "{\n  \"permissions\": {\n    \"deny\": [\n      \"Bash(wget *)\",\n      \"Bash(curl *)\"\n    ]\n  }\n}\n",
    );
    let policy = world.policy(PermissionMode::Default);
    let told = policy.explain("ls && curl x", &world.path("repo"));
    let PermissionVerdict::Deny { by, .. } = &told.verdict else {
        panic!("{told:?}");
    };
    let (rule, source) = by.rule.as_ref().unwrap();
    assert_eq!(
        (rule.as_str(), source.line, source.scope),
        ("Bash(curl *)", 5, SettingsLayer::User)
    );
    let place = format!("{}:5", world.path("config/settings.json").display());
    assert!(
        by.to_string().ends_with(&format!("Bash(curl *) ({place})")),
        "{by}"
    );
    assert_eq!(told.steps.len(), 2);
}

#[test]
fn flags_add_rules_and_an_answer_adds_one_for_the_session() {
    let world = World::new();
    let settings = SessionSettings::load(&world.places()).unwrap();
    let (allowed, denied) = (
        vec!["Bash(ls *)".to_owned()],
        vec!["Bash(ls secret)".to_owned()],
    );
    let mut policy = PermissionPolicy::load(
        &settings,
        world.ground(),
        PermissionMode::Default,
        &allowed,
        &denied,
    )
    .unwrap();
    let cwd = world.path("repo");
    assert_eq!(bash(&policy, "ls", &cwd), Got::Allow);
    assert_eq!(bash(&policy, "ls secret", &cwd), Got::Deny);
    assert_eq!(bash(&policy, "touch x", &cwd), Got::Ask);
    policy.add(RuleKind::Allow, "Bash(touch:*)").unwrap();
    assert_eq!(bash(&policy, "touch x", &cwd), Got::Allow);
    assert!(policy.add(RuleKind::Allow, "nonsense(").is_err());
    let wider = policy.with(&["Bash(git add:*)".to_owned()]);
    assert_eq!(bash(&wider, "git add x", &cwd), Got::Allow);
    assert_eq!(bash(&policy, "git add x", &cwd), Got::Ask);
}

#[test]
fn always_offers_rules_that_would_have_allowed_the_same_and_never_wide_ones_for_open_programs() {
    let world = World::new();
    let cwd = world.path("repo");
    let offered = |command: &str| -> Vec<String> {
        match world.policy(PermissionMode::Default).judge(
            "Bash",
            &json!({ "command": command }),
            &cwd,
        ) {
            PermissionVerdict::Ask { always, .. } => always,
            _ => Vec::new(),
        }
    };
    assert_eq!(
        offered("git commit -m x && ls"),
        ["Bash(git commit:*)", "Bash(ls:*)"]
    );
    assert_eq!(offered("npm run build -- x"), ["Bash(npm run build:*)"]);
    assert_eq!(offered("timeout 5 cargo test"), ["Bash(cargo test:*)"]);
    assert_eq!(offered("python3 -c 'x'"), ["Bash(python3 -c 'x')"]);
    assert_eq!(offered("bash run.sh"), ["Bash(bash run.sh)"]);
    assert_eq!(offered("./run.sh a"), ["Bash(./run.sh a)"]);
    assert_eq!(offered("rm -rf build"), ["Bash(rm -rf build)"]);
    assert_eq!(offered("rm *.o"), Vec::<String>::new());
    assert_eq!(offered("$X y"), Vec::<String>::new());
    assert_eq!(offered("git -c x=y log"), Vec::<String>::new());
    assert_eq!(offered("rm -rf /"), Vec::<String>::new());
    for command in [
        "git commit -m x && ls",
        "npm run build",
        "python3 -c 'x'",
        "./run.sh a",
        "timeout 5 cargo test",
    ] {
        let mut policy = world.policy(PermissionMode::Default);
        for rule in offered(command) {
            policy.add(RuleKind::Allow, &rule).unwrap();
        }
        assert_eq!(bash(&policy, command, &cwd), Got::Allow, "{command}");
    }
    let file = world.policy(PermissionMode::Default).judge(
        "Edit",
        &json!({"file_path": "src/a.rs"}),
        &cwd,
    );
    let PermissionVerdict::Ask { always, .. } = file else {
        panic!()
    };
    assert_eq!(always, ["Edit(/src/**)"]);
    let mut policy = world.policy(PermissionMode::Default);
    policy.add(RuleKind::Allow, &always[0]).unwrap();
    assert_eq!(edit(&policy, "src/deep/b.rs", &cwd), Got::Allow);
}

#[test]
fn always_is_written_at_the_top_of_the_tree_and_keeps_every_other_byte() {
    let world = World::new();
    let rules = vec!["Bash(ls:*)".to_owned(), "Bash(git add:*)".to_owned()];
    let path = offered_rules::store(&rules, &world.path("repo/src")).unwrap();
    assert_eq!(path, world.path("repo/.claude/settings.local.json"));
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!({"permissions": {"allow": rules}})
    );
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let old = "{\n\t// mine\n\t\"env\": {\"A\": \"1\"},\n\t\"permissions\": {\n\t\t\"deny\": [\"Bash(x)\"],\n\t\t\"allow\": [\n\t\t\t\"Read\" // why\n\t\t]\n\t}\n}\n";
    fs::write(&path, old).unwrap();
    offered_rules::store(&rules[..1], &world.path("repo")).unwrap();
    let new = fs::read_to_string(&path).unwrap();
    assert_eq!(
        new,
        old.replace(
            "\"Read\" // why\n",
            "\"Read\", // why\n\t\t\t\"Bash(ls:*)\"\n"
        )
    );
    offered_rules::store(&rules[..1], &world.path("repo")).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), new);
}

#[test]
fn a_rule_is_taken_out_of_its_list_and_every_other_byte_stays() {
    let old = "{\n\t// mine\n\t\"permissions\": {\n\t\t\"deny\": [\"Bash(x)\", \"Edit\"],\n\t\t\"allow\": [\n\t\t\t\"Edit\",\n\t\t\t\"Read\" // why\n\t\t]\n\t}\n}\n";
    let new = rule_editing::removed(old, RuleKind::Deny, "Edit").unwrap();
    assert_eq!(new, old.replace("\"Bash(x)\", \"Edit\"", "\"Bash(x)\""));
    let new = rule_editing::removed(old, RuleKind::Allow, "Edit").unwrap();
    assert!(
        new.contains("\"Bash(x)\", \"Edit\"") && new.contains("\"Read\" // why"),
        "{new}"
    );
    assert!(!new.contains("\t\t\t\"Edit\""), "{new}");
    assert_eq!(
        rule_editing::removed(old, RuleKind::Ask, "Edit").unwrap(),
        old
    );
    assert!(rule_editing::removed("{broken", RuleKind::Ask, "Edit").is_err());
    let both = rule_editing::added("", RuleKind::Ask, &["Edit".to_owned()]).unwrap();
    let both = rule_editing::added(&both, RuleKind::Deny, &["Bash".to_owned()]).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&both).unwrap(),
        json!({"permissions": {"ask": ["Edit"], "deny": ["Bash"]}})
    );
}

#[test]
fn a_link_to_the_users_own_settings_is_followed_and_stays_a_link() {
    let world = World::new();
    world.write("dotfiles/settings.json", "{}\n");
    let link = world.path("config/settings.json");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(world.path("dotfiles/settings.json"), &link).unwrap();
    let rules = ["Bash(ls:*)".to_owned()];
    let add = |old: &str| rule_editing::added(old, RuleKind::Allow, &rules);
    assert!(rule_editing::change(&link, SettingsLayer::User, add).unwrap());
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let text = fs::read_to_string(world.path("dotfiles/settings.json")).unwrap();
    assert!(text.contains("Bash(ls:*)"), "{text}");
    assert!(!rule_editing::change(&link, SettingsLayer::User, add).unwrap());
}

#[test]
fn always_does_not_write_into_a_broken_file_or_through_a_link() {
    let world = World::new();
    let rules = vec!["Bash(ls:*)".to_owned()];
    world.write("repo/.claude/settings.local.json", "{broken");
    let failed = offered_rules::store(&rules, &world.path("repo")).unwrap_err();
    assert!(failed.contains("settings.local.json: line 1"), "{failed}");
    fs::remove_file(world.path("repo/.claude/settings.local.json")).unwrap();
    world.write("other/victim", "{}");
    std::os::unix::fs::symlink(
        world.path("other/victim"),
        world.path("repo/.claude/settings.local.json"),
    )
    .unwrap();
    assert!(offered_rules::store(&rules, &world.path("repo")).is_err());
    assert_eq!(
        fs::read_to_string(world.path("other/victim")).unwrap(),
        "{}"
    );
}

#[test]
fn every_mode_has_its_name_and_manual_and_auto_are_the_default() {
    for name in [
        "default",
        "acceptEdits",
        "plan",
        "dontAsk",
        "bypassPermissions",
    ] {
        assert_eq!(PermissionMode::read(name).unwrap().0.name(), name);
    }
    assert_eq!(
        PermissionMode::read("manual"),
        Some((PermissionMode::Default, None))
    );
    let (mode, note) = PermissionMode::read("auto").unwrap();
    assert!(mode == PermissionMode::Default && note.is_some());
    assert_eq!(PermissionMode::read("yolo"), None);
    assert!(
        !PermissionMode::Plan.is_restored()
            && !PermissionMode::Bypass.is_restored()
            && PermissionMode::AcceptEdits.is_restored()
    );
}

#[test]
fn git_after_a_change_of_directory_asks_and_offers_no_rule_that_would_not_help() {
    let world = World::new();
    world.rules(json!({"allow": ["Bash(git status)", "Bash(git log:*)", "Bash(ls:*)"]}));
    for name in ["HEAD", "objects/x", "refs/x"] {
        world.write(&format!("repo/.git/{name}"), "");
        world.write(&format!("repo/docs/theme/{name}"), "");
    }
    let policy = world.policy(PermissionMode::Default);
    let asked = |command: &str, cwd: &str| match policy.judge(
        "Bash",
        &json!({ "command": command }),
        &world.path(cwd),
    ) {
        PermissionVerdict::Ask { why, always, .. } => Some((why.text, always)),
        _ => None,
    };
    let (why, always) = asked("cd docs/theme && git status", "repo").unwrap();
    assert!(why.contains("change of directory"), "{why}");
    assert_eq!(always, Vec::<String>::new());
    // The directory stays for the next call.
    let (why, always) = asked("git status", "repo/docs/theme").unwrap();
    assert!(why.contains("is a bare repository"), "{why}");
    assert_eq!(always, Vec::<String>::new());
    for (command, cwd) in [
        ("git status", "repo"),
        ("git status", "repo/src"),
        ("git log -n 3", "repo/src"),
        ("cd docs && ls", "repo"),
    ] {
        assert_eq!(asked(command, cwd), None, "{command} in {cwd}");
    }
    let root = world.path("repo").display().to_string();
    assert_eq!(asked(&format!("cd {root} && git status"), "repo/src"), None);
}

#[test]
fn an_option_that_writes_is_judged_like_a_redirection() {
    let world = World::new();
    world.rules(json!({
        "allow": ["Bash(sort:*)", "Bash(git log:*)", "Edit(./out/**)"],
        "deny": ["Edit(./kept/**)"]}));
    let cwd = world.path("repo");
    let policy = world.policy(PermissionMode::Default);
    for (command, want) in [
        ("sort a", Got::Allow),
        ("sort -o out/x a", Got::Allow),
        ("git log --output=out/x", Got::Allow),
        ("sort -o src/x a", Got::Ask),
        ("git log --output=.git/config", Got::Ask),
        ("sort -o ../other/x a", Got::Ask),
        ("sort -o kept/x a", Got::Deny),
        ("git log --outp kept/x", Got::Deny),
    ] {
        assert_eq!(bash(&policy, command, &cwd), want, "{command}");
    }
    let policy = world.policy(PermissionMode::AcceptEdits);
    assert_eq!(bash(&policy, "sort -o src/x a", &cwd), Got::Allow);
    assert_eq!(bash(&policy, "sort -o .git/config a", &cwd), Got::Ask);
    let policy = world.policy(PermissionMode::Plan);
    assert_eq!(bash(&policy, "sort -o out/x a", &cwd), Got::Deny);
}

#[test]
fn modes_are_ordered_by_what_they_let_run() {
    let narrow_to_wide = [
        PermissionMode::Plan,
        PermissionMode::DontAsk,
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::Bypass,
    ];
    for (at, mode) in narrow_to_wide.into_iter().enumerate() {
        for (other_at, other) in narrow_to_wide.into_iter().enumerate() {
            let fits = mode.allows_no_more_than(other);
            assert_eq!(fits, at <= other_at, "{mode:?} in {other:?}");
        }
    }
}
