//! Files that come to lie in a folder, where links in it lead, and folders that nobody knows.

use super::{Family, Least, PermissionCase};

/// Copies over a link in the folder `carried`.
const ARRIVING: &[&str] = &[
    "cp config carried",
    "cp config ./carried/",
    "cp config carried/.",
    "cp ./config carried",
    "cp theirs/part/config carried",
    "cp README.md config carried",
    "cp config carried/config",
    "cp config carried/deep",
    "cp settings.json carried",
    "cp a.txt carried",
    "cp config carried/../carried",
    "cd src && cp ../config ../carried",
    "cd carried && cp ../config .",
    "cd carried && cp ../config deep",
    "cp src/../config carried",
];

/// More of them, with options and other programs.
const ARRIVING_ELSE: &[&str] = &[
    "cp -t carried config",
    "cp -tcarried config",
    "cp --target-directory=carried config",
    "cp --target-directory carried config",
    "cp -f config carried",
    "cp -r theirs/part/. carried",
    "cp -a theirs/part/. carried/part",
    "cp -r theirs/. .",
    "cp -a theirs/.vscode .",
    "cp -rT theirs .",
    "cp $X carried",
    "cp confi? carried",
    "cp theirs/part/* carried",
    "install config carried",
    "install -m 644 config carried",
    "install -t carried config",
    "rsync config carried",
    "rsync -a theirs/part/ carried",
    "rsync -a theirs/ .",
    "rsync -a --inplace config carried/",
    "scp h:config carried",
    "scp h:x/config carried",
    "tee carried/config",
    "touch carried/config",
    "dd if=a.txt of=carried/config",
    "sort -o carried/config a.txt",
    "split a.txt carried/x",
    "cd carried && split ../a.txt",
    "csplit -f carried/xx a.txt 1",
    "cd carried && csplit ../a.txt 1",
    "truncate -s 0 carried/config",
    "cat a.txt > carried/config",
    "mv theirs/.vscode .",
    "ln -s .git g && cp config g",
    "ln -s .git/config config2 && cp a.txt config2",
];

/// Folders that hold what programs take orders from, or that nobody knows.
const UNKNOWN: &[&str] = &[
    "cd -P .git/hooks && tee pre-commit",
    "cd -P .git && cp ../config config",
    "cd -L .git && tee config",
    "cd -e -P .git && tee config",
    "cd -- .git && tee config",
    "cd -P -- .git/hooks && touch pre-commit",
    "cd ./.g*; tee config",
    "cd .gi?; tee config",
    "cd $X; tee config",
    "cd \"$X\" && cp a.txt config",
    "cd $(git rev-parse --git-dir) && tee config",
    "cd \"$OLDPWD\"; tee config",
    "cd -; tee config",
    "cd src docs; tee config",
    "pushd .git; tee config",
    "pushd .git > /dev/null && cp ../config config",
    "pushd .git/hooks && tee pre-commit < a.txt",
    "pushd -n .git; pushd; tee config",
    "pushd +1; tee config",
    "pushd $X; tee config",
    "popd; tee config",
    "pushd src; pushd ../.git; tee config",
    "pushd src; tee ../.git/config",
    "cd -P src; tee ../.git/config",
    "cd $X; cp a.txt ../.git/config",
    "cd -P src; sort -o ../.git/config x",
    "pushd .claude; tee settings.json",
    "builtin cd -P .git && tee config",
    "command cd -P .git && tee config",
    "command pushd .git && tee config",
    "for d in .git; do cd $d; tee config; done",
    "while cd ..; do tee config; done",
    "cd -P .git; touch config",
    "cd -P .git; install ../config config",
    "cd $X; dd if=a of=config",
    "cd $X; mv a.txt config",
    "cd $X; tar xf a.tar",
    "cd $X; somebody config",
];

/// What stays allowed.
const FINE: &[&str] = &[
    "cp a.txt plain",
    "cp a.txt b.txt",
    "cp README.md a.txt src",
    "cp a.txt src/b.txt",
    "mv a.txt plain",
    "mkdir -p plain/x/y",
    "touch plain/new.txt",
    "touch carried/new.txt",
];

const FINE_WITH_RULES: &[&str] = &[
    "cp -r src plain",
    "cp -a src/. plain",
    "cp -t plain a.txt",
    "install -m 755 a.txt plain",
    "rsync -a src/ plain",
    "split a.txt plain/x",
    "tee plain/config",
    "cd src && tee out.txt",
    "cd -P src && tee out.txt",
    "cd -- src && touch out.txt",
    "pushd src > /dev/null && tee out.txt",
    "pushd src && touch out.txt && popd",
    "(cd src && cp main.rs ../plain)",
    "cd $X; cat a.txt",
    "cd $X; ls",
];

pub(super) fn cases() -> Vec<PermissionCase> {
    let mut edits = Family::new("files that arrive", &[], &[]);
    edits.mode = "acceptEdits";
    for command in ARRIVING {
        edits.add("", Least::Ask, *command);
    }
    for command in FINE {
        edits.add("", Least::Allow, *command);
    }
    let programs = [
        "cp", "mv", "install", "rsync", "scp", "tee", "touch", "dd", "sort", "split", "csplit",
        "truncate", "ln", "cat", "ls", "cd", "pushd", "popd", "git", "builtin", "command", "tar",
        "somebody",
    ];
    let allow: Vec<String> = programs
        .iter()
        .map(|name| format!("Bash({name}:*)"))
        .collect();
    let allow: Vec<&str> = allow.iter().map(String::as_str).collect();
    let mut rules = Family::new("folders", &allow, &[]);
    for command in ARRIVING.iter().chain(ARRIVING_ELSE).chain(UNKNOWN) {
        rules.add("", Least::Ask, *command);
    }
    for command in FINE_WITH_RULES {
        rules.add("", Least::Allow, *command);
    }
    edits.cases.extend(rules.cases);
    edits.cases
}
