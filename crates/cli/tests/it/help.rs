//! The help, word for word: a changed word shows up in review.

use expect_test::expect_file;

use crate::home;

const COMMANDS: &[&str] = &[
    "ls", "show", "turns", "info", "messages", "tree", "agents", "files", "restore", "context",
    "check", "clone", "export", "send", "repair", "merge", "redact", "scan", "move", "rename",
    "tag", "delete", "archive", "undo", "log", "hook", "search", "usage", "prices", "sql", "index",
    "schema", "status", "watch", "daemon", "serve", "chat",
];

#[test]
fn every_command_has_help_with_a_purpose() {
    let home = home();
    let list = home.run(&["--help"]);
    for command in COMMANDS {
        let help = home.run(&[*command, "--help"]);
        let first = help.lines().next().unwrap_or_default();
        assert!(first.len() > 15 && first.len() < 80, "{command}: {first}");
        assert!(help.contains("Usage: unspool"), "{command}: {help}");
        assert!(
            list.contains(&format!("  {command} ")),
            "{command} is not in the list"
        );
    }
}

#[test]
fn the_help_lists_every_command_that_is_tested_here() {
    let list = home().run(&["--help"]);
    let (_, commands) = list.split_once("Read sessions:\n").unwrap();
    let (commands, _) = commands.split_once("Options:\n").unwrap();
    let rows = commands.lines().filter(|line| line.starts_with("  "));
    let names = rows.filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.filter(|name| *name != "help").collect();
    assert_eq!(names.len(), COMMANDS.len(), "{names:?}");
}

#[test]
fn the_help_is_as_it_was() {
    let home = home();
    let mut text = home.run(&["--help"]);
    for command in COMMANDS {
        text.push_str(&format!("\n\n######## {command}\n\n"));
        text.push_str(&home.run(&[*command, "--help"]));
    }
    expect_file!["help.txt"].assert_eq(&text);
}
