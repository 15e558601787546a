//! Builtins that set variables, which change what runs next as `PATH=` does.

use super::{Family, Least, PermissionCase};

const NAMES: &[&str] = &[
    "PATH",
    "IFS",
    "BASH_ENV",
    "ENV",
    "LD_PRELOAD",
    "GIT_DIR",
    "GIT_SSH_COMMAND",
    "PROMPT_COMMAND",
    "HOME",
    "PAGER",
    "CDPATH",
];

/// `@` is the name.
const SETS: &[&str] = &[
    "@=x; git status",
    "@=x git status",
    "@+=x; git status",
    "@=(x); git status",
    "printf -v @ x; git status",
    "printf -v@ x; git status",
    "printf -v '@' x; git status",
    "printf '-v' @ x; git status",
    "printf \"-v\" \"@\" %s x; git status",
    "read @; git status",
    "read -r @ <<< x; git status",
    "read -p ask @; git status",
    "read -t 1 -n 1 @; git status",
    "read line @ <<< 'a b'; git status",
    "read -a @ <<< x; git status",
    "read -ra @ <<< x; git status",
    "read -a@ <<< x; git status",
    "mapfile @ <<< x; git status",
    "mapfile -t @ <<< x; git status",
    "mapfile -n 1 -t @ <<< x; git status",
    "readarray @ <<< x; git status",
    "getopts a @; git status",
    "getopts :a: @ -a x; git status",
    "declare @=x; git status",
    "declare -g @=x; git status",
    "declare -x @=x; git status",
    "declare -r @; git status",
    "declare -n r=@; r=x; git status",
    "typeset @=x; git status",
    "typeset -x @; git status",
    "f() { local @=x; git status; }; f",
    "f() { local -x @=x; git status; }; f",
    "export @=x; git status",
    "export @; git status",
    "export LANG=C @=x; git status",
    "readonly @=x; git status",
    "let @=1; git status",
    "let '@=1'; git status",
    "((@=1)); git status",
    "(( @ = 1 )) && git status",
    "for ((@=0; @<1; @++)); do git status; done",
    "wait -p @; git status",
    "wait -n -p @ 1; git status",
    "coproc @ { git status; }; git status",
    "for @ in x; do git status; done",
    "select @ in x; do git status; done",
    "echo ${@:=x}; git status",
    "echo ${@=x}; git status",
    ": ${@:=x}; git status",
    ": \"${@:=x}\"; git status",
    "echo $((@=1)); git status",
    "unset @; git status",
    "unset -v @; git status",
    "unset x @; git status",
    "exec {@}>/dev/null; git status",
    "git status {@}>/dev/null",
    "builtin printf -v @ x; git status",
    "command export @=x; git status",
    "builtin read @; git status",
];

/// Tables of the shell itself.
const TABLES: &[&str] = &[
    "printf -v 'BASH_CMDS[git]' /tmp/x; git status",
    "printf -v BASH_CMDS[git] /tmp/x; git status",
    "read 'BASH_CMDS[git]' <<< /tmp/x; git status",
    "declare 'BASH_CMDS[git]=/tmp/x'; git status",
    "declare -A BASH_CMDS=([git]=/tmp/x); git status",
    "BASH_CMDS[git]=/tmp/x; git status",
    "BASH_ALIASES[git]=/tmp/x; git status",
    "printf -v 'BASH_ALIASES[git]' /tmp/x; git status",
    "unset 'BASH_CMDS[git]'; git status",
    "unset -f git; git status",
    "export -f git; git status",
    "declare -i x='a[$(./x)]'; git status",
    "printf -v 'a[$(./x)]' y",
    "x=PATH; read $x; git status",
    "x=PATH; printf -v $x y; git status",
    "x=PATH; printf -v \"$x\" y; git status",
    "x=-v; printf $x PATH y; git status",
    "x=-v; printf \"$x\" PATH y; git status",
    "x=PATH=y; export $x; git status",
    "x=PATH=y; declare \"$x\"; git status",
    "x=PATH; unset $x; git status",
];

/// What stays allowed.
const FINE: &[&str] = &[
    "x=1; git status",
    "read -r line; git status",
    "read line <<< x; echo \"$line\"",
    "mapfile -t lines <<< x; git status",
    "printf '%s' PATH; git status",
    "printf -v out %s x; echo \"$out\"",
    "declare -a parts; git status",
    "declare name=x; git status",
    "export LANG=C; git status",
    "readonly name=x; git status",
    "unset name; git status",
    "for i in 1 2; do git status; done",
    "while read -r line; do echo \"$line\"; done < a.txt",
];

pub(super) fn cases() -> Vec<PermissionCase> {
    let allow: Vec<String> = [
        "git",
        "printf",
        "read",
        "mapfile",
        "readarray",
        "getopts",
        "declare",
        "typeset",
        "local",
        "export",
        "readonly",
        "let",
        "wait",
        "unset",
        "exec",
        "echo",
        "builtin",
        "command",
    ]
    .iter()
    .map(|name| format!("Bash({name}:*)"))
    .collect();
    let allow: Vec<&str> = allow.iter().map(String::as_str).collect();
    let mut family = Family::new("variables", &allow, &[]);
    for name in NAMES {
        for way in SETS {
            family.add("", Least::Ask, way.replace('@', name));
        }
    }
    for command in TABLES {
        family.add("", Least::Ask, *command);
    }
    let mut fine = Family::new("variables of nobody", &allow, &[]);
    for command in FINE {
        fine.add("", Least::Allow, *command);
    }
    family.cases.extend(fine.cases);
    family.cases
}
