//! Git where a repository among the files names programs, and what denies git in other spellings.

use super::{Family, Least, PermissionCase};

/// Commands of git that a rule allows.
const LOOKING: &[&str] = &[
    "git status",
    "git status --short",
    "git status -sb",
    "git log -n 3 --oneline",
    "git diff --stat",
    "git diff HEAD",
    "git show --stat HEAD",
    "git branch -a",
    "git ls-files -m",
    "git describe --always",
    "git stash list",
    "git add README.md",
    "git rev-parse HEAD",
    "git blame README.md",
];

/// Ways to have it run elsewhere. `@` is the command, `%` what stands behind `git `.
const ELSEWHERE: &[&str] = &[
    "cd docs/theme && @",
    "cd docs/theme; @",
    "cd docs/theme || true; @",
    "cd docs/theme\n@",
    "cd ./docs/theme && @",
    "cd docs//theme/ && @",
    "cd 'docs/theme' && @",
    "cd do\"cs/th\"eme && @",
    "cd src/../docs/theme && @",
    "cd docs && cd theme && @",
    "cd docs && cd ./theme/tree && @",
    "(cd docs/theme && @)",
    "{ cd docs/theme; @; }",
    "cd docs/theme && true && @",
    "cd docs/theme && echo $(@)",
    "cd docs/theme && echo \"`@`\"",
    "echo $(cd docs/theme && @)",
    "if cd docs/theme; then @; fi",
    "for i in 1; do cd docs/theme; @; done",
    "for i in 1 2; do @; cd docs/theme; done",
    "while @; do cd docs/theme; done",
    "f() { @; }; cd docs/theme; f",
    "f() { cd docs/theme; }; f; @",
    "builtin cd docs/theme && @",
    "command cd docs/theme && @",
    "cd -P docs/theme && @",
    "cd -- docs/theme && @",
    "cd docs/them? && @",
    "cd $D && @",
    "cd \"$PWD/docs/theme\" && @",
    "pushd docs/theme && @",
    "pushd docs/theme > /dev/null; @; popd",
    "cd vendor/lib && @",
    "cd pkg/linked && @",
    "cd vendor && cd lib && timeout 5 @",
    "cd docs/theme && nice -n 5 @",
    "cd docs/theme && LANG=C @",
    "cd .. && @",
    "cd ~ && @",
    "cd && @",
    "git -C docs/theme %",
    "git -C docs -C theme %",
    "git -C ./vendor/lib %",
    "git '-C' docs/theme %",
    "git -C \"docs/theme\" --no-pager %",
    "git --no-pager -C docs/theme %",
    "git -C $D %",
    "git --git-dir=docs/theme %",
    "git --git-dir docs/theme %",
    "git --git-dir=docs/theme --work-tree=. %",
    "git '--git-dir=docs/theme' %",
    "git --work-tree=docs/theme %",
    "git --bare %",
    "git -c core.fsmonitor=../trap %",
    "git -c core.pager=../trap -p %",
    "git -c alias.status='!../trap' %",
    "git --config-env=core.fsmonitor=HOME %",
    "git --exec-path=docs %",
    "git --exec-path docs %",
    "GIT_DIR=docs/theme @",
    "GIT_DIR=docs/theme GIT_WORK_TREE=. @",
    "GIT_CONFIG_GLOBAL=docs/theme/config @",
    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0=../trap @",
    "GIT_EXTERNAL_DIFF=../trap @",
    "GIT_EXEC_PATH=docs @",
    "export GIT_DIR=docs/theme; @",
    "export GIT_DIR=docs/theme && @",
    "declare -x GIT_DIR=docs/theme; @",
    "env GIT_DIR=docs/theme @",
    "read GIT_DIR <<< docs/theme; export GIT_DIR; @",
];

/// Folders that stay from an earlier call.
const STAYING: &[&str] = &["docs/theme", "docs/theme/tree", "vendor/lib", "pkg/linked"];

/// What stays allowed.
const FINE: &[&str] = &[
    "@",
    "@; @",
    "cd . && @",
    "timeout 5 @",
    "LANG=C @",
    "@ | cat",
    "true && @",
];

/// `git push` and `git commit --amend`, in other words.
const DENIED: &[&str] = &[
    "push",
    "push origin main",
    "push --force",
    "commit --amend",
    "commit --amend -m x",
];

const SPELLINGS: &[&str] = &[
    "git %",
    "git -C . %",
    "git -C \"$PWD\" %",
    "git -C $D %",
    "git --no-pager %",
    "git -P %",
    "git -p %",
    "git --paginate %",
    "git --git-dir=.git %",
    "git --git-dir .git %",
    "git --git-dir=.git --work-tree=. %",
    "git --work-tree . %",
    "git -c user.name=x %",
    "git -c user.name=x -c a.b=c %",
    "git --no-optional-locks %",
    "git --no-replace-objects %",
    "git --literal-pathspecs --no-pager %",
    "git --namespace x %",
    "git --namespace=x -C . %",
    "git --exec-path=/usr/lib/git-core %",
    "git --bare %",
    "git --config-env=a.b=HOME %",
    "git --attr-source=HEAD %",
    "git '-C' . %",
    "\"git\" -C . %",
    "/usr/bin/git -C . %",
    "g\\it --no-pager %",
    "timeout 5 git -C . %",
    "nice git --no-pager %",
    "command git -C . %",
    "sudo git -C . %",
    "env git --no-pager %",
    "env A=1 git -c a.b=c %",
    "xargs git -C . %",
    "sh -c 'git -C . %'",
    "bash -c \"git --no-pager %\"",
    "true && git -C . %",
    "echo $(git -C . %)",
    "cd src && git -C .. %",
    "X=1 git --no-pager %",
];

/// The same for programs whose options nobody lists: what may be the value of one is asked about.
const OTHERS: &[(&str, Least)] = &[
    ("npm publish", Least::Deny),
    ("npm --silent publish", Least::Deny),
    ("npm --silent --no-color publish x", Least::Deny),
    ("npm --prefix=x publish", Least::Deny),
    ("npm --prefix x publish", Least::Ask),
    ("cargo +nightly publish", Least::Deny),
    ("cargo --locked publish", Least::Deny),
    ("cargo --color never publish", Least::Ask),
    ("sudo cargo +nightly publish", Least::Deny),
    ("kubectl -n prod delete pod x", Least::Ask),
    ("kubectl --namespace=prod delete pod x", Least::Deny),
    ("npm --silent run test", Least::Allow),
    ("cargo +nightly test", Least::Allow),
];

pub(super) fn cases() -> Vec<PermissionCase> {
    let allow = [
        "Bash(git:*)",
        "Bash(git status)",
        "Bash(echo:*)",
        "Bash(cat:*)",
        "Bash(true)",
        "Bash(export:*)",
        "Bash(declare:*)",
        "Bash(read:*)",
        "Bash(pushd:*)",
        "Bash(popd:*)",
        "Bash(env:*)",
        "Bash(cd:*)",
    ];
    let mut family = Family::new("git elsewhere", &allow, &[]);
    for command in LOOKING {
        let behind = &command["git ".len()..];
        for way in ELSEWHERE {
            let whole = way.replace('@', command).replace('%', behind);
            family.add("", Least::Ask, whole);
        }
        for cwd in STAYING {
            family.add(cwd, Least::Ask, *command);
            family.add(cwd, Least::Ask, format!("true; {command} | cat"));
        }
    }
    let mut all = family.cases;
    let mut fine = Family::new("git in the project", &allow, &[]);
    for command in LOOKING {
        for way in FINE {
            fine.add("", Least::Allow, way.replace('@', command));
        }
        fine.add("src", Least::Allow, *command);
    }
    all.extend(fine.cases);
    let mut denied = Family::new(
        "git denied",
        &["Bash"],
        &["Bash(git push:*)", "Bash(git commit --amend:*)"],
    );
    for command in DENIED {
        for way in SPELLINGS {
            denied.add("", Least::Deny, way.replace('%', command));
        }
        for way in ["git $X %", "git -c alias.x=push x %", "git --no-pager $X"] {
            denied.add("", Least::Ask, way.replace('%', command));
        }
    }
    all.extend(denied.cases);
    let mut others = Family::new(
        "commands denied",
        &["Bash"],
        &[
            "Bash(npm publish:*)",
            "Bash(cargo publish:*)",
            "Bash(kubectl delete:*)",
        ],
    );
    for (command, least) in OTHERS {
        others.add("", *least, *command);
    }
    all.extend(others.cases);
    all
}
