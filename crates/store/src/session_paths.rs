//! Which files are those of a session, by their paths alone: a list of what is allowed.
//!
//! What we bring back is named by notes that somebody may have changed since. Beside the files of
//! sessions stand those that tell the client what to do: settings, commands, skills, memories.
//! So whatever is not on this list is not written.

use std::path::{Component, Path, PathBuf};

use crate::client_session_list;

/// Whether a path below a config folder, or below the folder of a transcript outside of any, is a
/// file of this session that an archive may bring back. `session-env` is not: the client runs the
/// scripts in it.
pub fn is_file_of(session: &str, path: &Path) -> bool {
    let Some(parts) = plain_parts(path) else {
        return false;
    };
    is_name(session)
        && match parts.as_slice() {
            ["projects", _, rest @ ..] => is_in_project(session, rest),
            [
                "file-history" | "tasks" | "image-cache" | "uploads",
                id,
                rest @ ..,
            ] => *id == session && is_plain(rest),
            ["debug", name] => name.strip_suffix(".txt") == Some(session),
            ["usage-data", _, name] => name.strip_suffix(".json") == Some(session),
            ["todos", name] => {
                let rest = name.strip_prefix(session);
                rest.is_some_and(|rest| rest.starts_with("-agent-") && rest.ends_with(".json"))
            }
            ["plans", name] => name.ends_with(".md"),
            rest => is_in_project(session, rest),
        }
}

/// Whether a path in the folder of a project belongs to this session.
fn is_in_project(session: &str, rest: &[&str]) -> bool {
    match rest {
        [name] => name.strip_suffix(".jsonl") == Some(session) || is_agent(name),
        [id, rest @ ..] => *id == session && is_beside(rest),
        [] => false,
    }
}

/// Names below a folder of the client: some, and none that begins with a dot, as `.git` does.
fn is_plain(rest: &[&str]) -> bool {
    !rest.is_empty() && !rest.iter().any(|name| name.starts_with('.'))
}

/// What the client keeps in the folder of a session.
fn is_beside(rest: &[&str]) -> bool {
    match rest {
        ["custom-title.json" | "archived.json" | "resume-head.jsonl"] => true,
        [folder, rest @ ..] => {
            ["subagents", "tool-results", "workflows"].contains(folder) && is_plain(rest)
        }
        _ => false,
    }
}

/// Folders of a config folder that hold nothing but what the client notes about sessions.
const OF_SESSIONS: [&str; 14] = [
    "file-history",
    "tasks",
    "session-env",
    "todos",
    "plans",
    "jobs",
    "sessions",
    "debug",
    "image-cache",
    "uploads",
    "paste-cache",
    "usage-data",
    "telemetry",
    "teams",
];

/// Whether undoing an edit may write a file: a file of any session, or one in which the client
/// lists them.
pub fn is_of_any_session(path: &Path) -> bool {
    let Some(parts) = absolute_parts(path) else {
        return false;
    };
    let name = parts.last().copied().unwrap_or_default();
    let name = without_aside(name);
    if name.ends_with(".jsonl") || name == client_session_list::NAME {
        return true;
    }
    let rest = |at: usize| &parts[at + 1..];
    // The same words elsewhere are the folders of other people.
    let in_config = |at: usize| {
        let above: PathBuf = path.components().take(at + 1).collect();
        above.join("projects").is_dir()
    };
    parts.iter().enumerate().any(|(at, part)| match *part {
        "projects" => match rest(at) {
            // The folder of a project itself.
            [_] => true,
            [_, id] => is_uuid(id) || is_agent(id),
            [_, id, ..] => {
                let project: PathBuf = path.components().take(at + 3).collect();
                let transcript = || project.join(format!("{id}.jsonl")).is_file();
                // The client gives such names to its sessions, and to no other folder of a project.
                is_uuid(id) || is_in_project(id, &rest(at)[1..]) || transcript()
            }
            [] => false,
        },
        "daemon.log" | "daemon.status.json" => rest(at).is_empty() && in_config(at),
        "daemon" => matches!(rest(at), ["roster.json"] | ["gateway-routed", _]) && in_config(at),
        name if OF_SESSIONS.contains(&name) => !rest(at).is_empty() && in_config(at),
        // Beside a transcript that lies outside of any config folder.
        id => is_uuid(id) && (rest(at).is_empty() || is_beside(rest(at))),
    })
}

/// Whether undoing an edit may give something its old name: whatever stands in the folder of a
/// project goes along when the project moves, under the same name.
pub fn is_move_of_project(from: &Path, to: &Path) -> bool {
    let in_project = |path: &Path| {
        let parts = absolute_parts(path)?;
        match parts.as_slice() {
            [.., "projects", _, name] => Some((*name).to_owned()),
            _ => None,
        }
    };
    let name = in_project(from);
    name.is_some() && name == in_project(to)
}

/// A file that changed since an edit is moved aside under a longer name.
fn without_aside(name: &str) -> &str {
    name.rsplit_once(".changed-").map_or(name, |(name, _)| name)
}

fn is_agent(name: &str) -> bool {
    name.starts_with("agent-") && (name.ends_with(".jsonl") || name.ends_with(".meta.json"))
}

/// Whether a text can be the name of a session.
fn is_name(text: &str) -> bool {
    crate::side_files::is_plain_file_name(text)
        && !text.starts_with('.')
        && !text.chars().any(char::is_control)
}

/// Whether a text is an id as the client makes them.
pub(crate) fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let parts: Vec<&str> = text.split('-').collect();
    parts.len() == lengths.len()
        && parts.iter().zip(lengths).all(|(part, length)| {
            part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
}

/// The names of a relative path, if it has nothing else.
fn plain_parts(path: &Path) -> Option<Vec<&str>> {
    let parts = path.components().map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    parts
        .collect::<Option<Vec<_>>>()
        .filter(|it| !it.is_empty())
}

/// The names of an absolute path, if it has nothing else behind its root.
fn absolute_parts(path: &Path) -> Option<Vec<&str>> {
    if !path.is_absolute() {
        return None;
    }
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_str()),
        Component::RootDir | Component::Prefix(_) => None,
        Component::CurDir | Component::ParentDir => Some(None),
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "5e551000-0000-4000-8000-000000000001";

    #[test]
    fn the_files_of_a_session_are_known_by_their_paths() {
        for path in [
            "projects/-p/ID.jsonl",
            "projects/-p/agent-a1.jsonl",
            "projects/-p/agent-a1.meta.json",
            "projects/-p/ID/subagents/agent-a1.jsonl",
            "projects/-p/ID/subagents/workflows/w1/agent-a1.jsonl",
            "projects/-p/ID/tool-results/t.txt",
            "projects/-p/ID/custom-title.json",
            "file-history/ID/x@v1",
            "todos/ID-agent-ID.json",
            "tasks/ID/1.json",
            "image-cache/ID/1.png",
            "debug/ID.txt",
            "usage-data/facets/ID.json",
            "projects/-p/ID/archived.json",
            "projects/-p/ID/resume-head.jsonl",
            "plans/three-small-words.md",
            "ID.jsonl",
            "ID/tool-results/t.txt",
        ] {
            let path = path.replace("ID", ID);
            assert!(is_file_of(ID, Path::new(&path)), "{path}");
        }
        for path in [
            "projects/-p/old.jsonl",
            "projects/-p/old/tool-results/t.txt",
        ] {
            assert!(is_file_of("old", Path::new(path)), "{path}");
        }
    }

    #[test]
    fn what_tells_the_client_what_to_do_is_no_file_of_a_session_whatever_it_is_called() {
        for (session, path) in [
            (ID, "settings.json"),
            (ID, "commands/x.md"),
            (ID, "Projects/-p/ID.jsonl"),
            // They tell the client's daemon what to run.
            (ID, "jobs/5e551000/state.json"),
            // The client sources them before every command of the session.
            (ID, "session-env/ID/hook-0.sh"),
            (ID, "projects/-p/ID/something-new"),
            (ID, "projects/-p/ID/.claude/settings.json"),
            (ID, "projects/-p/ID/tool-results/.git/config"),
            (ID, "uploads/ID/.git/config"),
            (ID, "sessions/1.json"),
            (ID, "projects/-p/../../settings.json"),
            (ID, "./settings.json"),
            (ID, "/ID.jsonl"),
            (ID, ""),
            (ID, "projects/-p/id.jsonl"),
            ("commands", "commands/x.md"),
            ("memory", "projects/-p/memory/MEMORY.md"),
            ("skills", "skills/x/SKILL.md"),
            ("..", "../subagents/x"),
            ("", ".jsonl"),
            (".x", ".x.jsonl"),
        ] {
            let path = path.replace("ID", ID);
            assert!(!is_file_of(session, Path::new(&path)), "{session} {path}");
        }
    }

    #[test]
    fn undoing_may_write_files_of_sessions_only() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("projects")).unwrap();
        let is = |path: &str| is_of_any_session(&dir.path().join(path.replace("ID", ID)));
        for path in [
            "projects/-p/ID.jsonl",
            "projects/-p/ID.jsonl.changed-3",
            "projects/-p/sessions-index.json",
            "projects/-p",
            "projects/-p/ID",
            "projects/-p/ID/tool-results/t.txt",
            "projects/-p/ID/something-new",
            "session-env/ID/env",
            "projects/-p/old/subagents/agent-a.meta.json",
            "file-history/ID/x@v1",
            "todos/ID-agent-ID.json",
            "plans/x.md",
            "history.jsonl",
            "projects/-p/agent-a1.meta.json",
            "jobs/5e551000/state.json",
            "sessions/1.json",
            "daemon/roster.json",
            "daemon.log",
            "paste-cache/0a1b.txt",
        ] {
            assert!(is(path), "{path}");
        }
        for path in [
            "settings.json",
            "commands/x.md",
            "skills/x/SKILL.md",
            "projects/-p/memory/MEMORY.md",
            "projects/-p/named/odd.json",
            "projects/-p/../../settings.json",
            ".bashrc",
            "daemon/other.json",
            "elsewhere/tasks/run.sh",
        ] {
            assert!(!is(path), "{path}");
        }
        assert!(!is_of_any_session(Path::new("relative.jsonl")));
        // A session with a name of its own is known by its transcript.
        std::fs::create_dir(dir.path().join("projects/-p")).unwrap();
        std::fs::write(dir.path().join("projects/-p/named.jsonl"), "").unwrap();
        assert!(is("projects/-p/named/odd.json"));
    }
}
