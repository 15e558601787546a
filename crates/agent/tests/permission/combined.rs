//! Thousands of commands, put together from parts whose answer is written down by hand.
//!
//! What a whole command should get follows from its parts alone: denied if one is, else asked
//! about if one is, else allowed. Nothing here looks at how the program comes to its verdict.

use super::*;

/// Commands and what each should get alone under [`rules`].
const PARTS: &[(&str, Got)] = &[
    ("git status", Got::Allow),
    ("git status --short src", Got::Allow),
    ("git log -n 5 -- src", Got::Allow),
    ("ls -la", Got::Allow),
    ("echo 'a; b && c | d'", Got::Allow),
    ("npm run test -- --watch=false", Got::Allow),
    ("npm run build", Got::Allow),
    ("git commit -m x", Got::Ask),
    ("npm run builder", Got::Ask),
    ("lsof -i", Got::Ask),
    ("touch new", Got::Ask),
    ("git push origin main", Got::Ask),
    ("curl https://example.com", Got::Deny),
    ("rm -rf build", Got::Deny),
];

/// Ways to put two commands together so that both run or may run. `@` and `%` are the two.
const FRAMES: &[&str] = &[
    "@ && %",
    "@ || %",
    "@; %",
    "@ | %",
    "@ |& %",
    "@ & %",
    "@\n%",
    "@ &&\n%",
    "@ # comment\n%",
    "(@; %)",
    "(@) && (%)",
    "{ @; %; }",
    "! @ || %",
    "if @; then %; fi",
    "if true; then @; elif @; then true; else %; fi",
    "for i in 1 2; do @; %; done",
    "while @; do %; done",
    "until @; do %; done",
    "case x in x) @ ;; *) % ;; esac",
    "echo $(@; %)",
    "echo \"$(@; %)\"",
    "echo `@; %`",
    "echo x$(@)y\"z$(%)\"",
    "ls <(@) <(%)",
    "@ | ls <(%)",
    "ls <<E\n$(@)\nE\n%",
    "ls <<'E'\n$(none) `none`\nE\n@; %",
    "ls <<-E\n\t$(@; %)\n\tE",
    "echo ${x:-$(@; %)}",
    "[[ -n $(@) ]] && %",
    "time @; %",
    "timeout 5 @; nohup %",
    "nice -n 5 @ && stdbuf -oL %",
    "LANG=C @; NO_COLOR=1 %",
    "@ > /dev/null 2>&1; % 2> /dev/null",
    "x=$(@); %",
    "echo $(echo $(echo $(@; %)))",
    "cd src && @ && %",
    "@ \\\n && %",
    "function g { @; }; %",
];

fn rules() -> Value {
    json!({
        "allow": ["Bash(git status:*)", "Bash(git log *)", "Bash(ls *)", "Bash(echo *)",
                  "Bash(npm run test:*)", "Bash(npm run build)"],
        "ask": ["Bash(git push *)"],
        "deny": ["Bash(curl *)", "Bash(rm -rf:*)"]
    })
}

fn all() -> Vec<(String, Got)> {
    let mut all: Vec<(String, Got)> = PARTS
        .iter()
        .map(|(part, want)| ((*part).to_owned(), *want))
        .collect();
    for frame in FRAMES {
        for (one, want) in PARTS {
            for (other, want_other) in PARTS {
                let command = frame.replace('@', one).replace('%', other);
                let want = *want.max(want_other);
                // Git in another folder than the one we stand in is asked about.
                let goes = frame.starts_with("cd ") && command.contains("git ");
                all.push((command, if goes { want.max(Got::Ask) } else { want }));
            }
        }
    }
    // More parts than anybody counts.
    for (part, want) in PARTS {
        let long = "echo x; ".repeat(60) + part;
        all.push((long, *want));
    }
    all
}

#[test]
fn no_command_is_allowed_that_should_be_asked_about_and_none_asked_about_that_is_denied() {
    let world = World::new();
    world.rules(rules());
    let policy = world.policy(PermissionMode::Default);
    let cwd = world.path("repo");
    let all = all();
    let mut lax = Vec::new();
    let mut strict = Vec::new();
    for (command, want) in &all {
        let got = bash(&policy, command, &cwd);
        if got < *want {
            lax.push(format!("{command:?}: {got:?}, not {want:?}"));
        }
        if got > *want {
            strict.push(format!("{command:?}: {got:?}, not {want:?}"));
        }
    }
    println!(
        "{} commands, {} stricter than needed",
        all.len(),
        strict.len()
    );
    assert!(all.len() > 7_000, "{}", all.len());
    assert_eq!(lax, Vec::<String>::new());
    assert_eq!(strict, Vec::<String>::new());
}

#[test]
fn nothing_that_is_denied_runs_in_any_mode() {
    let world = World::new();
    world.rules(rules());
    let cwd = world.path("repo");
    for mode in [
        PermissionMode::AcceptEdits,
        PermissionMode::Plan,
        PermissionMode::DontAsk,
        PermissionMode::Bypass,
    ] {
        let policy = world.policy(mode);
        for (command, _) in all().iter().filter(|(_, want)| *want == Got::Deny) {
            assert_eq!(
                bash(&policy, command, &cwd),
                Got::Deny,
                "{mode:?} {command:?}"
            );
        }
    }
}

#[test]
fn without_rules_every_command_that_does_something_is_asked_about() {
    let world = World::new();
    let policy = world.policy(PermissionMode::Default);
    let cwd = world.path("repo");
    for (command, _) in all() {
        assert_eq!(bash(&policy, &command, &cwd), Got::Ask, "{command:?}");
    }
}
