//! Commands that somebody wrote to get past rules or to break the judge. Most stand in the corpus
//! (`unspool_testkit::permission_corpus`); here is what needs more than one line.

use super::*;

fn world() -> World {
    let world = World::new();
    let allow: Vec<String> = [
        "echo", "ls", "git", "cat", "find", "xargs", "env", "watch", "timeout", "printf", "test",
        "[", "grep", "true", "setsid", "nice", "command", "eval", "alias", "trap", "let", "exec",
        "x", "for", "if", "case",
    ]
    .iter()
    .map(|name| format!("Bash({name} *)"))
    .collect();
    world.rules(json!({"allow": allow, "deny": ["Bash(curl *)"]}));
    world
}

#[test]
fn a_command_over_ten_thousand_characters_is_asked_about_or_denied() {
    let world = world();
    let policy = world.policy(PermissionMode::Bypass);
    let cwd = world.path("repo");
    let long = format!("ls {}", "a ".repeat(5_000));
    assert_eq!(bash(&policy, &long, &cwd), Got::Ask);
    let long = format!("ls {}; curl x", "a ".repeat(5_000));
    assert_eq!(bash(&policy, &long, &cwd), Got::Deny);
    let just = format!("ls {}", "a".repeat(9_990));
    assert_eq!(
        bash(&world.policy(PermissionMode::Default), &just, &cwd),
        Got::Allow
    );
}

#[test]
fn deep_nesting_ends_and_is_not_allowed() {
    let world = world();
    let policy = world.policy(PermissionMode::Default);
    let cwd = world.path("repo");
    for (open, close) in [
        ("$(", ")"),
        ("(", ")"),
        ("{ ", "; }"),
        ("\"$(", ")\""),
        ("<(", ")"),
        ("${x:-", "}"),
    ] {
        let text = format!("echo {}ls{}", open.repeat(900), close.repeat(900));
        assert_ne!(bash(&policy, &text, &cwd), Got::Allow, "{open}");
    }
}

#[test]
fn removing_what_matters_is_asked_about_in_every_mode_and_past_every_rule() {
    let world = World::new();
    world.rules(json!({"allow": ["Bash", "Bash(rm *)", "Bash(find *)"]}));
    let cwd = world.path("repo/src");
    let home = world.path("home").display().to_string();
    let root = world.path("repo").display().to_string();
    let commands = [
        "rm -rf /",
        "rm -rf /*",
        "rm -rf ~",
        "rm -rf ~/",
        "rm -rf ~/*",
        "rm -rf .",
        "rm -rf ./",
        "rm -rf ..",
        "rm -rf ../..",
        "rm -rf *",
        "rm -rf ./*",
        "rm -rf ../*",
        "rm -rf \"$X\"/*",
        "rm -rf $X",
        "rm -rf $X/",
        "rm -rf ${X}/build",
        "rm -rf \"$(pwd)\"",
        "rm -rf /etc",
        "rm -rf /usr/*",
        "rm -rf /home",
        "rm -rf //",
        "rm -rf /./",
        "rm -rf /tmp/../",
        "rm -r --no-preserve-root /",
        "/bin/rm -rf /",
        "\\rm -rf /",
        "sudo rm -rf /",
        "env rm -rf /",
        "timeout 5 rm -rf /",
        "xargs rm -rf /",
        "bash -c 'rm -rf /'",
        "bash -c 'rm -rf ~'",
        "rmdir /",
        "rmdir ..",
        "cd / && rm -rf *",
        "cd .. && rm -rf .",
        "cd $X && rm -rf build",
        "true; rm -rf /",
        "echo $(rm -rf /)",
        "rm -rf -- /",
        "rm -rf build / ",
        "find / -delete",
        "find ~ -delete",
        "find / -name x -exec rm {} +",
        "f() { rm -rf /; }; f",
        "rm -rf \"/\"",
        "rm -rf '/'",
        "rm -rf /{a,b}",
        "rm -rf ~root",
        "rm '-rf' /",
        "rm -rf $'/'",
    ];
    let own = [
        format!("rm -rf {home}"),
        format!("rm -rf {root}"),
        format!("rm -rf {root}/src"),
    ];
    for mode in [
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::Bypass,
    ] {
        let policy = world.policy(mode);
        for command in commands
            .iter()
            .copied()
            .chain(own.iter().map(String::as_str))
        {
            assert_eq!(
                bash(&policy, command, &cwd),
                Got::Ask,
                "{mode:?} {command:?}"
            );
        }
    }
    let policy = world.policy(PermissionMode::Bypass);
    for command in [
        "rm -rf build",
        "rm -rf build/*",
        "rm *.tmp",
        "rm -rf ./target",
        "rmdir old",
        "rm -f x.o y.o",
    ] {
        assert_eq!(bash(&policy, command, &cwd), Got::Allow, "{command:?}");
    }
}

#[test]
fn many_changes_of_directory_around_many_shells_end_soon() {
    let world = world();
    let policy = world.policy(PermissionMode::Default);
    let cwd = world.path("repo");
    let moves = |from: char| -> String { (0..8).map(|n| format!("cd {from}{n}; ")).collect() };
    let mut command = format!("{}curl x", moves('a'));
    for from in ['b', 'c', 'd'] {
        let inner = command.replace('\\', "\\\\").replace('"', "\\\"");
        command = format!("{}bash -c \"{inner}\"", moves(from));
    }
    // Each level alone stands in many folders; they must not multiply.
    assert_eq!(bash(&policy, &command, &cwd), Got::Deny);
}
