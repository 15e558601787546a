//! What goes along when a session is copied: the files that the client keeps about it.
//!
//! Transcripts of sub-agents are not in this list, since their lines name their session and
//! are written anew.

use std::path::{Path, PathBuf};

use crate::find::SessionFile;
use crate::read_folder;
use crate::side::is_plain;

/// Where a copy of a session lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// Its id.
    pub id: String,
    /// The folder of its project.
    pub folder: PathBuf,
    /// The config folder; empty for a file outside of any.
    pub config: PathBuf,
}

impl Home {
    /// Where a session lives now.
    pub fn of(file: &SessionFile) -> Home {
        Home {
            id: file.id.clone(),
            folder: file.path.parent().unwrap_or(Path::new(".")).to_owned(),
            config: file.config.to_path_buf(),
        }
    }

    /// Its transcript.
    pub fn transcript(&self) -> PathBuf {
        self.folder.join(format!("{}.jsonl", self.id))
    }

    /// The transcript of one of its sub-agents.
    pub fn agent(&self, id: &str) -> PathBuf {
        let name = format!("agent-{id}.jsonl");
        self.beside().join("subagents").join(name)
    }

    /// The folder beside it.
    pub fn beside(&self) -> PathBuf {
        self.folder.join(&self.id)
    }
}

/// A file and where its copy goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The file.
    pub from: PathBuf,
    /// Its copy.
    pub to: PathBuf,
}

/// The files that go along from one home to another, in the order of their names.
pub fn carried(from: &Home, to: &Home) -> Vec<Carried> {
    let mut all = everything(from, to);
    all.retain(|one| !is_agent(&one.from) && !one.from.ends_with("custom-title.json"));
    all
}

/// All files that are kept about a session and are its alone, but for its transcript.
pub fn kept(home: &Home) -> Vec<PathBuf> {
    let all = everything(home, home).into_iter();
    all.map(|one| one.from).collect()
}

/// The same, with where they go; sub-agents and the title too.
fn everything(from: &Home, to: &Home) -> Vec<Carried> {
    let mut all = Vec::new();
    if !is_plain(&from.id) {
        return all;
    }
    tree(&from.beside(), &to.beside(), DEEP, &mut all);
    if !from.config.as_os_str().is_empty() && !to.config.as_os_str().is_empty() {
        for name in ["file-history", "tasks", "session-env"] {
            let (old, new) = (from.config.join(name), to.config.join(name));
            tree(&old.join(&from.id), &new.join(&to.id), DEEP, &mut all);
        }
        todos(from, to, &mut all);
    }
    all.sort_by(|one, other| one.from.cmp(&other.from));
    all
}

/// How far down folders are followed.
const DEEP: usize = 6;

/// Regular files below a folder. Links are not followed: they may lead anywhere.
fn tree(from: &Path, to: &Path, depth: usize, all: &mut Vec<Carried>) {
    for entry in read_folder::entries(from).into_iter().flatten().flatten() {
        let (old, new) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type() {
            Ok(kind) if kind.is_file() && entry.file_name() != ".lock" => {
                all.push(Carried { from: old, to: new });
            }
            Ok(kind) if kind.is_dir() && depth > 0 => tree(&old, &new, depth - 1, all),
            _ => {}
        }
    }
}

/// The transcript of a sub-agent.
fn is_agent(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("agent-") && name.ends_with(".jsonl")
}

/// Lists of things to do are named by their session and by who has them.
fn todos(from: &Home, to: &Home, all: &mut Vec<Carried>) {
    let (old, new) = (from.config.join("todos"), to.config.join("todos"));
    for entry in read_folder::entries(old).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let owner = name.strip_prefix(&format!("{}-agent-", from.id));
        if let (Some(owner), true) = (owner, is_file) {
            let owner = owner.replacen(&from.id, &to.id, 1);
            all.push(Carried {
                from: entry.path(),
                to: new.join(format!("{}-agent-{owner}", to.id)),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn everything_about_a_session_goes_along_under_its_new_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in [
            "projects/-p/old/tool-results/t.txt",
            "projects/-p/old/subagents/agent-a1.jsonl",
            "projects/-p/old/subagents/agent-a1.meta.json",
            "projects/-p/old/custom-title.json",
            "projects/-p/other/tool-results/t.txt",
            "file-history/old/x@v1",
            "file-history/other/x@v1",
            "todos/old-agent-old.json",
            "todos/old-agent-helper.json",
            "tasks/old/1.json",
            "tasks/old/.lock",
            "session-env/old/env",
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let home = |id: &str, folder: &str| Home {
            id: id.into(),
            folder: root.join("projects").join(folder),
            config: root.into(),
        };
        let all = carried(&home("old", "-p"), &home("new", "-q"));
        let to: Vec<_> = all
            .iter()
            .map(|one| one.to.strip_prefix(root).unwrap().display().to_string())
            .collect();
        assert_eq!(
            to,
            [
                "file-history/new/x@v1",
                "projects/-q/new/subagents/agent-a1.meta.json",
                "projects/-q/new/tool-results/t.txt",
                "session-env/new/env",
                "tasks/new/1.json",
                "todos/new-agent-helper.json",
                "todos/new-agent-new.json",
            ]
        );
        assert_eq!(carried(&home("..", "-p"), &home("new", "-q")), []);
        let kept = kept(&home("old", "-p"));
        assert_eq!(kept.len(), all.len() + 2, "{kept:?}");
        assert!(kept.iter().any(|path| path.ends_with("custom-title.json")));
    }
}
