//! Interpreters that run what comes in: a rule with their exact words shows nothing of that code.

use super::{Family, Least, PermissionCase};

/// Words that an exact rule names, and whether the program runs its input under them.
const RUNS_INPUT: &[&str] = &[
    "python3 -",
    "python3",
    "python3.12 -",
    "python3 -u -",
    "python3 -E -s",
    "python3 /dev/stdin",
    "python3 /dev/fd/0",
    "bash",
    "bash -s",
    "bash -s -- a",
    "bash -e -u",
    "bash -p -s",
    "bash /dev/stdin",
    "bash -x /dev/fd/3",
    "sh",
    "sh -e",
    "zsh",
    "dash -",
    "node",
    "node -",
    "node -r ./x",
    "perl",
    "perl -",
    "perl -w",
    "ruby -",
    "ruby -r json",
    "php",
    "lua -",
    "tclsh",
    "deno run -",
    "uv run python -",
    "source /dev/stdin",
    ". /dev/stdin",
    "awk -f -",
    "make -f -",
    "psql mydb",
    "sqlite3 x.db",
    "timeout 5 python3 -",
    "nice bash",
    "sudo bash",
    "env python3 -",
];

/// `@` is the program. The code does nothing, but nobody saw it.
const FEEDS: &[&str] = &[
    "@ <<'EOF'\n1\nEOF",
    "@ <<EOF\n1\nEOF",
    "@ <<-\\EOF\n\t1\n\tEOF",
    "@ <<< 1",
    "@ 0<<< '1'",
    "@ 3<<EOF 0<&3\n1\nEOF",
    "@ < src/main.rs",
    "<<EOF @\n1\nEOF",
    "echo 1 | @",
    "echo 1 |& @",
    "cat src/main.rs | @",
    "echo 1 | { @; }",
    "echo 1 | ( true; @ )",
    "{ @; } <<EOF\n1\nEOF",
    "( @ ) <<< 1",
    "if true; then @; fi <<< 1",
    "for i in 1; do @; done <<EOF\n1\nEOF",
    "while true; do @; break; done < src/main.rs",
    "f() { @; }; echo 1 | f",
    "f() { @; }; f <<< 1",
    "echo 1 | echo \"$(@)\"",
    "exec < src/main.rs; @",
];

/// Words under which the same programs run what the words say, and their input is data.
const SHOWS_CODE: &[&str] = &[
    "bash ./nothing.sh",
    "bash -e ./nothing.sh",
    "bash -c true",
    "bash -lc true",
    "python3 nothing.py",
    "python3 -c 1",
    "python3 -m json.tool",
    "perl -pe s/a/b/",
    "node nothing.js",
    "node -e 1",
    "sort -",
    "cat -",
    "grep -c 1",
];

pub(super) fn cases() -> Vec<PermissionCase> {
    let fill = |form: &str, program: &str| form.replace('@', program);
    let basic = ["Bash(cat:*)", "Bash(echo:*)", "Bash(exec)"];
    let mut all = Vec::new();
    for program in RUNS_INPUT {
        let exact = format!("Bash({program})");
        let mut rules = basic.to_vec();
        rules.push(&exact);
        let mut family = Family::new("code from stdin", &rules, &[]);
        for form in FEEDS {
            family.add("", Least::Ask, fill(form, program));
        }
        all.extend(family.cases);
    }
    let exact: Vec<String> = SHOWS_CODE.iter().map(|it| format!("Bash({it})")).collect();
    let mut rules = basic.to_vec();
    rules.extend(exact.iter().map(String::as_str));
    let mut family = Family::new("data from stdin", &rules, &[]);
    for program in SHOWS_CODE {
        for form in [
            "@ <<< 1",
            "@ <<'EOF'\n1\nEOF",
            "echo 1 | @",
            "@ < src/main.rs",
        ] {
            family.add("", Least::Allow, fill(form, program));
        }
    }
    all.extend(family.cases);
    // Who wrote a star for an interpreter, or the whole command, wanted it.
    let rules = [
        "Bash(echo:*)",
        "Bash(python3:*)",
        "Bash(bash -s:*)",
        "Bash(node <<< 1)",
        "Bash(echo 1 | perl)",
        "Bash(ruby)",
        "Bash(lua < /dev/null)",
    ];
    let mut family = Family::new("code from stdin by will", &rules, &[]);
    for command in [
        "python3 - <<'EOF'\n1\nEOF",
        "python3 <<< 1",
        "echo 1 | python3 -",
        "echo true | bash -s",
        "node <<< 1",
        "echo 1 | perl",
        "ruby",
        "ruby < /dev/null",
    ] {
        family.add("", Least::Allow, command);
    }
    for command in [
        "node <<< 2",
        "echo 2 | perl",
        "ruby <<< 1",
        "echo true | bash",
    ] {
        family.add("", Least::Ask, command);
    }
    all.extend(family.cases);
    all
}
