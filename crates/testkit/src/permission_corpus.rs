//! Shell commands with the least that permissions must say about each: one place for all of them.
//!
//! [`cases`] gives them; nothing here looks at how the program comes to a verdict, which follows from
//! the family a command was made for. [`CorpusProject::plant`] makes the folder they are meant for, full of
//! traps: whatever runs one leaves [`CorpusProject::marker`] behind. So a case can be judged, and what is
//! allowed can be run in a real shell (only where [`PermissionCase::may_run`] says so: some would
//! destroy a machine).

mod disguised;
mod files;
mod folders;
mod git;
mod guard;
mod hidden;
mod options;
mod stdin_code;
mod variables;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What permissions must say at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Least {
    /// It may run; asking would be too strict.
    Allow,
    /// A person must be asked.
    Ask,
    /// It must not run.
    Deny,
}

/// Rules that a family of cases is judged under.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorpusRules {
    /// `permissions.allow`.
    pub allow: Vec<String>,
    /// `permissions.deny`.
    pub deny: Vec<String>,
}

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionCase {
    /// What it tries.
    pub family: &'static str,
    /// The rules.
    pub rules: CorpusRules,
    /// The mode it is judged in.
    pub mode: &'static str,
    /// Where it runs, from the project.
    pub cwd: &'static str,
    /// The command.
    pub command: String,
    /// What it must get at least.
    pub least: Least,
}

impl PermissionCase {
    /// Whether the command may be given to a real shell in a throwaway folder if permissions
    /// allow it. Never those that destroy a machine, whatever anybody allows.
    pub fn may_run(&self) -> bool {
        self.mode != BYPASS && self.family != guard::FAMILY
    }
}

/// The mode in which nothing is asked but what cannot be undone.
const BYPASS: &str = "bypassPermissions";

/// All cases, without doubles.
pub fn cases() -> Vec<PermissionCase> {
    let mut all = Vec::new();
    all.extend(hidden::cases());
    all.extend(git::cases());
    all.extend(options::cases());
    all.extend(variables::cases());
    all.extend(files::cases());
    all.extend(guard::cases());
    all.extend(stdin_code::cases());
    all.extend(disguised::cases());
    all.extend(folders::cases());
    let mut seen = std::collections::HashSet::new();
    all.retain(|case| seen.insert((case.family, case.mode, case.cwd, case.command.clone())));
    all
}

/// Makes cases of one family.
struct Family {
    name: &'static str,
    allow: Vec<String>,
    deny: Vec<String>,
    mode: &'static str,
    cases: Vec<PermissionCase>,
}

impl Family {
    fn new(name: &'static str, allow: &[&str], deny: &[&str]) -> Family {
        let owned = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
        Family {
            name,
            allow: owned(allow),
            deny: owned(deny),
            mode: "default",
            cases: Vec::new(),
        }
    }

    fn add(&mut self, cwd: &'static str, least: Least, command: impl Into<String>) {
        self.cases.push(PermissionCase {
            family: self.name,
            rules: CorpusRules {
                allow: self.allow.clone(),
                deny: self.deny.clone(),
            },
            mode: self.mode,
            cwd,
            command: command.into(),
            least,
        });
    }
}

/// The folder that the cases are meant for.
#[derive(Clone, Debug)]
pub struct CorpusProject {
    /// Everything; only this may change.
    pub root: PathBuf,
}

impl CorpusProject {
    /// The project.
    pub fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// The home folder.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The file that a trap leaves behind.
    pub fn marker(&self) -> PathBuf {
        self.root.join("trapped")
    }

    /// Fills an empty folder: a project with its own repository, others among its files, secrets, and
    /// files that are called like options. `root` must be absolute and without links.
    pub fn plant(root: &Path) -> io::Result<CorpusProject> {
        let it = CorpusProject {
            root: root.to_path_buf(),
        };
        let project = it.project();
        for folder in [
            "src",
            "secrets",
            "names",
            "pkg/linked",
            ".claude",
            ".vscode",
            "carried/deep",
            "plain",
            "theirs/.vscode",
            "theirs/part",
        ] {
            fs::create_dir_all(project.join(folder))?;
        }
        for folder in ["home", "outside"] {
            fs::create_dir_all(root.join(folder))?;
        }
        let trap = it.write_trap()?;
        git_directory(&project.join(".git"), "bare = false\n")?;
        let hostile = |worktree: &str| {
            format!(
                "bare = false\n\tworktree = {worktree}\n\tfsmonitor = {trap}\n\thooksPath = {trap}.d\n"
            )
        };
        git_directory(&project.join("docs/theme"), &hostile("tree"))?;
        fs::create_dir_all(project.join("docs/theme/tree"))?;
        git_directory(&project.join("vendor/lib/.git"), &hostile(".."))?;
        fs::write(
            project.join("pkg/linked/.git"),
            "gitdir: ../../docs/theme\n",
        )?;
        for (name, text) in [
            (".env", "KEY=secret\n"),
            ("secrets/key", "secret\n"),
            ("README.md", "text\n"),
            ("src/main.rs", "fn main() {}\n"),
            ("a.txt", "b\na\n"),
            (".claude/settings.json", "{}\n"),
            (".vscode/tasks.json", "{}\n"),
            ("names/-exec", ""),
            ("names/-delete", ""),
            ("names/--output=written", ""),
            ("names/-owritten", ""),
            ("names/a.txt", "x\n"),
            ("config", "[core]\n"),
            ("settings.json", "{}\n"),
            ("theirs/.vscode/tasks.json", "{}\n"),
            ("theirs/part/config", "[core]\n"),
            ("plain/a.c", ""),
        ] {
            fs::write(project.join(name), text)?;
        }
        it.plant_links()?;
        Ok(it)
    }

    /// Links as a repository can ship them, to files that programs take orders from.
    fn plant_links(&self) -> io::Result<()> {
        #[cfg(unix)]
        for (name, target) in [
            ("carried/config", "../.git/config"),
            ("carried/settings.json", "../.claude/settings.json"),
            ("carried/a.txt", "../../outside/x"),
            ("carried/deep/config", "../../.git/config"),
            ("carried/part", "../.git"),
            ("carried/xaa", "../.git/config"),
            ("carried/xx00", "../.git/config"),
            ("carried/pre-commit", "../.git/hooks/pre-commit"),
        ] {
            std::os::unix::fs::symlink(target, self.project().join(name))?;
        }
        Ok(())
    }

    /// A program that leaves the marker.
    fn write_trap(&self) -> io::Result<String> {
        let path = self.root.join("trap");
        let text = format!(
            "#!/bin/sh\necho \"$0 $*\" >> '{}'\n",
            self.marker().display()
        );
        let hooks = self.root.join("trap.d");
        fs::create_dir_all(&hooks)?;
        let names = [
            "post-index-change",
            "pre-commit",
            "post-checkout",
            "reference-transaction",
        ];
        let mut files = vec![path.clone()];
        files.extend(names.map(|name| hooks.join(name)));
        for file in files {
            fs::write(&file, &text)?;
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
            }
        }
        Ok(path.display().to_string())
    }
}

fn git_directory(at: &Path, core: &str) -> io::Result<()> {
    for folder in ["objects/info", "objects/pack", "refs/heads", "hooks"] {
        fs::create_dir_all(at.join(folder))?;
    }
    fs::write(at.join("HEAD"), "ref: refs/heads/main\n")?;
    let config = format!("[core]\n\trepositoryformatversion = 0\n\t{core}");
    fs::write(at.join("config"), config)
}
