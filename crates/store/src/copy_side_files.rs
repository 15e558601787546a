//! What goes along when a session is copied: the files that the client keeps about it.
//!
//! Transcripts of sub-agents are not in this list, since their lines name their session and
//! are written anew.

use std::path::{Path, PathBuf};

use crate::find::SessionFile;
use crate::owned_files::{OwnedFile, OwnedFileKind};

/// Where a copy of a session lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCopyLocation {
    /// Its id.
    pub id: String,
    /// The folder of its project.
    pub folder: PathBuf,
    /// The config folder; empty for a file outside of any.
    pub config: PathBuf,
}

impl SessionCopyLocation {
    /// Where a session lives now.
    pub fn of(file: &SessionFile) -> SessionCopyLocation {
        SessionCopyLocation {
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
pub struct SideFileCopy {
    /// The file.
    pub from: PathBuf,
    /// Its copy.
    pub to: PathBuf,
    /// Whether its lines are those of a conversation, which name their session.
    pub is_transcript: bool,
}

/// The files that go along when a session is copied from one home to another, in the order of
/// their paths. The transcript is made anew; the title, the background job and the process are
/// those of the old session, and so is that a person put it away.
pub fn side_file_copies(
    owned: &[OwnedFile],
    from: &SessionCopyLocation,
    to: &SessionCopyLocation,
) -> Vec<SideFileCopy> {
    let along = owned.iter().filter(|one| goes_along(&one.kind));
    let mut all: Vec<SideFileCopy> = along
        .filter_map(|one| {
            Some(SideFileCopy {
                from: one.path.clone(),
                to: place(one, from, to)?,
                is_transcript: one.kind.is_transcript(),
            })
        })
        .collect();
    all.sort_by(|one, other| one.from.cmp(&other.from));
    all
}

fn goes_along(kind: &OwnedFileKind) -> bool {
    match kind {
        OwnedFileKind::Agent(_)
        | OwnedFileKind::Helper(_)
        | OwnedFileKind::Lines
        | OwnedFileKind::Output
        | OwnedFileKind::Backup
        | OwnedFileKind::Todo
        | OwnedFileKind::Note => true,
        OwnedFileKind::Transcript
        | OwnedFileKind::Title
        | OwnedFileKind::Archived
        | OwnedFileKind::Head
        | OwnedFileKind::Lock
        | OwnedFileKind::Job
        | OwnedFileKind::Running
        | OwnedFileKind::Log => false,
    }
}

/// Where a file of a session is when the session is in another home.
fn place(one: &OwnedFile, from: &SessionCopyLocation, to: &SessionCopyLocation) -> Option<PathBuf> {
    if let Ok(within) = one.path.strip_prefix(from.beside()) {
        return Some(to.beside().join(within));
    }
    let name = one.path.file_name()?;
    let is_flat = one.path.parent() == Some(&*from.folder);
    if is_flat || one.kind.is_transcript() {
        // Old clients kept sub-agents among the sessions.
        return Some(to.beside().join("subagents").join(name));
    }
    if from.config.as_os_str().is_empty() || to.config.as_os_str().is_empty() {
        return None;
    }
    let within = one.path.strip_prefix(&from.config).ok()?;
    if one.kind == OwnedFileKind::Todo {
        // They are named by their session and by who has them.
        let name = name.to_str()?.replace(&from.id, &to.id);
        return Some(to.config.join(within.parent()?).join(name));
    }
    let mut parts = within.components();
    let (area, id) = (parts.next()?, parts.next()?);
    let is_own = id.as_os_str() == from.id.as_str();
    let place = to.config.join(area).join(&to.id).join(parts.as_path());
    is_own.then_some(place)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::find;
    use crate::owned_files::OwnedFiles;

    #[test]
    fn what_is_about_the_conversation_goes_along_and_what_is_about_the_session_stays() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in [
            "projects/-p/old.jsonl",
            "projects/-p/agent-a0.jsonl",
            "projects/-p/agent-a0.meta.json",
            "projects/-p/old/tool-results/t.txt",
            "projects/-p/old/subagents/agent-a1.jsonl",
            "projects/-p/old/subagents/agent-a1.meta.json",
            "projects/-p/old/subagents/agent-acompact-1.jsonl",
            "projects/-p/old/subagents/workflows/w1/agent-a2.jsonl",
            "projects/-p/old/subagents/workflows/w1/journal.jsonl",
            "projects/-p/old/workflows/w1.json",
            "projects/-p/old/custom-title.json",
            "projects/-p/old/archived.json",
            "projects/-p/old/resume-head.jsonl",
            "projects/-p/other.jsonl",
            "projects/-p/other/tool-results/t.txt",
            "file-history/old/x@v1",
            "file-history/other/x@v1",
            "todos/old-agent-old.json",
            "todos/old-agent-helper.json",
            "tasks/old/1.json",
            "tasks/old/.lock",
            "session-env/old/env",
            "debug/old.txt",
            "jobs/j1/state.json",
            "sessions/1.json",
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{\"sessionId\":\"old\"}\n").unwrap();
        }
        let found = find(&[root.to_owned()]);
        let old = found.sessions.iter().find(|file| file.id == "old").unwrap();
        let owned = OwnedFiles::new(&found).of(old);
        assert_eq!(owned.len(), 23 - 1, "{owned:#?}");
        let new = SessionCopyLocation {
            id: "new".into(),
            folder: root.join("projects/-q"),
            config: root.into(),
        };
        let all = side_file_copies(&owned, &SessionCopyLocation::of(old), &new);
        let mut to: Vec<_> = all
            .iter()
            .map(|one| one.to.strip_prefix(root).unwrap().display().to_string())
            .collect();
        to.sort();
        assert_eq!(
            to,
            [
                "file-history/new/x@v1",
                "projects/-q/new/subagents/agent-a0.jsonl",
                "projects/-q/new/subagents/agent-a0.meta.json",
                "projects/-q/new/subagents/agent-a1.jsonl",
                "projects/-q/new/subagents/agent-a1.meta.json",
                "projects/-q/new/subagents/agent-acompact-1.jsonl",
                "projects/-q/new/subagents/workflows/w1/agent-a2.jsonl",
                "projects/-q/new/subagents/workflows/w1/journal.jsonl",
                "projects/-q/new/tool-results/t.txt",
                "projects/-q/new/workflows/w1.json",
                "session-env/new/env",
                "tasks/new/1.json",
                "todos/new-agent-helper.json",
                "todos/new-agent-new.json",
            ]
        );
        assert!(all.iter().filter(|one| one.is_transcript).count() == 4);
    }
}
