//! Commands that somebody wrote to get past rules, each with the least that it should get.

use super::*;

/// Under `allow: echo *, ls *, git *, cat *, find *, xargs *, env *, watch *, timeout *, printf *,
/// test *, grep *, sed *, true, for all their looks harmless` and `deny: curl *`.
const HIDDEN: &[(&str, Got)] = &[
    // Names that are put together.
    ("c''url x", Got::Deny),
    ("\"curl\" x", Got::Deny),
    ("cu\\rl x", Got::Deny),
    ("\\curl x", Got::Deny),
    ("'curl' x", Got::Deny),
    ("curl", Got::Deny),
    ("curl\tx", Got::Deny),
    ("  curl   x", Got::Deny),
    ("/usr/bin/curl x", Got::Deny),
    ("./curl x", Got::Deny),
    ("~/bin/curl x", Got::Deny),
    ("$'curl' x", Got::Ask),
    ("$'c\\x75rl' x", Got::Ask),
    ("cu$@rl x", Got::Ask),
    ("cu${z}rl x", Got::Ask),
    ("$C x", Got::Ask),
    ("c=curl; $c x", Got::Ask),
    ("c=curl; ${c} x", Got::Ask),
    ("c=cu; d=rl; $c$d x", Got::Ask),
    ("$(echo curl) x", Got::Ask),
    ("`echo curl` x", Got::Ask),
    ("cu?l x", Got::Ask),
    ("/usr/bin/cur[l] x", Got::Ask),
    ("{curl,x}", Got::Ask),
    ("cur{l,} x", Got::Ask),
    ("curl$IFS'x'", Got::Ask),
    ("\"$@\"", Got::Ask),
    ("$*", Got::Ask),
    ("$0 x", Got::Ask),
    // Programs that run others.
    ("env curl x", Got::Deny),
    ("env A=1 curl x", Got::Deny),
    ("env -S 'curl x'", Got::Deny),
    ("env -i /usr/bin/curl x", Got::Deny),
    ("command curl x", Got::Deny),
    ("builtin command curl x", Got::Deny),
    ("exec curl x", Got::Deny),
    ("sudo curl x", Got::Deny),
    ("sudo -u root curl x", Got::Deny),
    ("doas curl x", Got::Deny),
    ("nohup curl x", Got::Deny),
    ("timeout 5 curl x", Got::Deny),
    ("timeout -k 1 --signal=9 5 curl x", Got::Deny),
    ("timeout --unknown 5 curl x", Got::Deny),
    ("nice curl x", Got::Deny),
    ("nice -n 10 nohup curl x", Got::Deny),
    ("stdbuf -oL curl x", Got::Deny),
    ("setsid curl x", Got::Deny),
    ("ionice -c 3 curl x", Got::Deny),
    ("flock /tmp/l curl x", Got::Deny),
    ("flock /tmp/l -c 'curl x'", Got::Deny),
    ("watch curl x", Got::Deny),
    ("watch 'curl x'", Got::Deny),
    ("xargs curl", Got::Deny),
    ("ls | xargs curl", Got::Deny),
    ("ls | xargs -n1 curl", Got::Deny),
    ("ls | xargs -I{} curl {}", Got::Deny),
    ("ls | xargs -I{} sh -c 'curl {}'", Got::Deny),
    ("find . -exec curl {} \\;", Got::Deny),
    ("find . -execdir curl {} +", Got::Deny),
    ("find . -ok curl {} ';'", Got::Deny),
    ("bash -c 'curl x'", Got::Deny),
    ("bash -c \"curl x\"", Got::Deny),
    ("sh -c 'true; curl x'", Got::Deny),
    ("bash -lc 'echo $(curl x)'", Got::Deny),
    ("bash -c \"bash -c 'curl x'\"", Got::Deny),
    ("eval curl x", Got::Deny),
    ("eval 'curl x'", Got::Deny),
    ("trap 'curl x' EXIT", Got::Deny),
    ("busybox curl x", Got::Deny),
    ("strace -f curl x", Got::Deny),
    ("parallel curl ::: x", Got::Deny),
    ("time curl x", Got::Deny),
    ("time -p curl x", Got::Deny),
    ("! curl x", Got::Deny),
    // Variables before it.
    ("A=1 curl x", Got::Deny),
    ("LANG=C A=1 B=2 curl x", Got::Deny),
    ("PATH=/evil git status", Got::Ask),
    ("LD_PRELOAD=/evil.so git status", Got::Ask),
    ("GIT_SSH_COMMAND=evil git fetch", Got::Ask),
    ("PAGER=evil git log", Got::Ask),
    ("IFS=x echo hi", Got::Ask),
    ("BASH_ENV=evil ls", Got::Ask),
    ("PATH=/evil; git status", Got::Ask),
    ("for PATH in /evil; do git status; done", Got::Ask),
    ("http_proxy=evil git fetch", Got::Ask),
    ("x=$(curl x)", Got::Deny),
    ("x=(a $(curl x))", Got::Deny),
    ("x+=`curl x` git status", Got::Deny),
    // Places where commands hide.
    ("echo \"a $(curl x) b\"", Got::Deny),
    ("echo \"a `curl x` b\"", Got::Deny),
    ("echo \"${x:-$(curl x)}\"", Got::Deny),
    ("echo ${x:-`curl x`}", Got::Deny),
    ("echo ${x/a/$(curl x)}", Got::Deny),
    ("echo ${x%$(curl x)}", Got::Deny),
    ("cat <<E\n`curl x`\nE", Got::Deny),
    ("cat <<\"E\"\nx\nE\ncurl x", Got::Deny),
    ("cat <<A <<B\nx\nA\n$(curl x)\nB", Got::Deny),
    ("cat <<< $(curl x)", Got::Deny),
    ("cat < <(curl x)", Got::Deny),
    ("ls > >(curl x)", Got::Deny),
    ("ls 2> >(curl x)", Got::Deny),
    ("case $(curl x) in *) true;; esac", Got::Deny),
    ("case x in $(curl x)) true;; esac", Got::Deny),
    ("for i in $(curl x); do true; done", Got::Deny),
    ("[[ $(curl x) == y ]]", Got::Deny),
    ("f() { curl x; }; f", Got::Deny),
    ("f() ( curl x ); f", Got::Deny),
    ("function f { curl x; }; f", Got::Deny),
    ("git() { curl x; }; git status", Got::Deny),
    ("echo hi; # nothing\ncurl x", Got::Deny),
    ("echo hi #\\\ncurl x", Got::Deny),
    ("echo a#b; curl x", Got::Deny),
    ("echo '#' ; curl x", Got::Deny),
    ("echo $(( $(curl x) ))", Got::Deny),
    ("echo $((a[$(curl x)]))", Got::Deny),
    ("(( a[$(curl x)] ))", Got::Deny),
    ("echo $[ $(curl x) ]", Got::Deny),
    ("let 'a[$(curl x)]=1'", Got::Ask),
    ("coproc curl x", Got::Deny),
    ("select i in $(curl x); do true; done", Got::Deny),
    ("echo ${x@P}", Got::Deny),
    ("x='a[$(curl x)]'; echo ${!x}", Got::Deny),
    ("x='a[$(curl x)]'; [[ $x -eq 0 ]]", Got::Deny),
    ("x='a[$(curl x)]'; echo $((x))", Got::Deny),
    ("x='a[$(curl x)]'; echo ${y:x}", Got::Deny),
    ("x='a[$(curl x)]'; echo ${y[x]}", Got::Deny),
    ("printf -v 'a[$(curl x)]' x", Got::Ask),
    ("test -v 'a[$(curl x)]'", Got::Ask),
    ("[ -v 'a[`curl x`]' ]", Got::Ask),
    // Lines that are joined or cut.
    ("echo a\\\n#b; curl x", Got::Deny),
    ("cu\\\nrl x", Got::Deny),
    ("echo \"$\\\n(curl x)\"", Got::Deny),
    ("(\\\n( git + '$(curl x)' ))", Got::Deny),
    ("cat <<A\nfoo\\\nA\ncat <<'B'\nA\ncurl x\nB", Got::Deny),
    ("cat <<A \"\nA\n\"; curl x\nA", Got::Deny),
    ("ls &\\\n& curl x", Got::Deny),
    // Redirections.
    ("echo x > out", Got::Ask),
    ("echo x >> src/main.rs", Got::Ask),
    ("echo x >| out", Got::Ask),
    ("echo x &> out", Got::Ask),
    ("echo x >& out", Got::Ask),
    ("echo x 2> out", Got::Ask),
    ("echo x <> out", Got::Ask),
    ("> out", Got::Ask),
    ("echo x > $F", Got::Ask),
    ("echo x > \"$HOME/.bashrc\"", Got::Ask),
    ("echo x > ~/.bashrc", Got::Ask),
    ("echo x > /etc/passwd", Got::Ask),
    ("echo x > /dev/tcp/evil/80", Got::Ask),
    ("echo x > ../other/f", Got::Ask),
    ("echo x > .git/hooks/pre-commit", Got::Ask),
    ("{ echo x; } > out", Got::Ask),
    ("(echo x) > out", Got::Ask),
    ("if true; then echo x; fi > out", Got::Ask),
    ("while false; do true; done > out", Got::Ask),
    ("exec > out", Got::Ask),
    ("cat < /etc/shadow", Got::Ask),
    ("echo x >/dev/null >out", Got::Ask),
    ("cd / && echo x > etc/passwd", Got::Ask),
    ("{x}>out echo hi", Got::Ask),
    // Programs that no star can allow.
    ("find . -delete", Got::Ask),
    ("find . -exec true {} \\;", Got::Ask),
    ("find . -fprint out", Got::Ask),
    ("find . $X", Got::Ask),
    ("find . \"-exec\" ls {} +", Got::Ask),
    ("find . -ex\\ec ls {} +", Got::Ask),
    ("env ls", Got::Ask),
    ("env", Got::Ask),
    ("watch ls", Got::Ask),
    ("setsid ls", Got::Ask),
    ("xargs -n1 ls", Got::Ask),
    ("timeout 5 touch x", Got::Ask),
    ("timeout $X git status", Got::Ask),
    ("nice -x git status", Got::Ask),
    ("eval ls", Got::Ask),
    ("alias ls=evil", Got::Ask),
    ("trap ls EXIT", Got::Ask),
    ("command -p -v x", Got::Ask),
    // Names that only look alike.
    ("lsof", Got::Ask),
    ("gitk", Got::Ask),
    ("git-evil x", Got::Ask),
    ("echoo x", Got::Ask),
    ("\"git status\"", Got::Ask),
    ("git\\ status", Got::Ask),
    ("./git status", Got::Ask),
    ("/tmp/git status", Got::Ask),
    ("../git status", Got::Ask),
    ("GIT status", Got::Ask),
    // Characters that deceive.
    ("git\u{a0}status", Got::Ask),
    ("git status\rcurl x", Got::Deny),
    ("git status\u{2028}curl x", Got::Deny),
    ("git status \u{202e}x lruc", Got::Ask),
    ("git\u{200b} status", Got::Ask),
    ("echo a\0; curl x", Got::Deny),
    ("git status\u{85}curl x", Got::Deny),
    // What does not parse.
    ("echo 'curl x", Got::Deny),
    ("echo $(curl x", Got::Deny),
    ("curl x )", Got::Deny),
    ("if curl x", Got::Deny),
    ("echo x |", Got::Ask),
    ("&& ls", Got::Ask),
    ("ls ;; ls", Got::Ask),
    ("", Got::Ask),
    ("   ", Got::Ask),
];

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
fn what_is_hidden_is_found_or_asked_about() {
    let world = world();
    let policy = world.policy(Mode::Default);
    let cwd = world.path("repo");
    let mut lax = Vec::new();
    for (command, least) in HIDDEN {
        let got = bash(&policy, command, &cwd);
        if got < *least {
            lax.push(format!("{command:?}: {got:?}, not {least:?}"));
        }
    }
    println!("{} lines", HIDDEN.len());
    assert_eq!(lax, Vec::<String>::new());
}

#[test]
fn what_is_hidden_is_found_behind_and_before_something_harmless() {
    let world = world();
    let policy = world.policy(Mode::Default);
    let cwd = world.path("repo");
    let mut lax = Vec::new();
    // What only lacks an end would get one from the frame.
    let is_whole = |command: &str| !command.trim().is_empty() && !command.ends_with('|');
    for (command, least) in HIDDEN.iter().filter(|(command, _)| is_whole(command)) {
        for frame in [
            "true; @",
            "git status && @",
            "ls | @",
            "@\ntrue",
            "(\n@\n)",
            "echo \"$(\n@\n)\"",
        ] {
            let whole = frame.replace('@', command);
            let got = bash(&policy, &whole, &cwd);
            if got < *least {
                lax.push(format!("{whole:?}: {got:?}, not {least:?}"));
            }
        }
    }
    assert_eq!(lax, Vec::<String>::new());
}

#[test]
fn a_command_over_ten_thousand_characters_is_asked_about_or_denied() {
    let world = world();
    let policy = world.policy(Mode::Bypass);
    let cwd = world.path("repo");
    let long = format!("ls {}", "a ".repeat(5_000));
    assert_eq!(bash(&policy, &long, &cwd), Got::Ask);
    let long = format!("ls {}; curl x", "a ".repeat(5_000));
    assert_eq!(bash(&policy, &long, &cwd), Got::Deny);
    let just = format!("ls {}", "a".repeat(9_990));
    assert_eq!(bash(&world.policy(Mode::Default), &just, &cwd), Got::Allow);
}

#[test]
fn deep_nesting_ends_and_is_not_allowed() {
    let world = world();
    let policy = world.policy(Mode::Default);
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
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::Bypass] {
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
    let policy = world.policy(Mode::Bypass);
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
