//! What the client itself notes about sessions and their directories: the list of a folder,
//! and the history of prompts.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use unspool_model::json;

use super::SessionMove;
use crate::atomic_write::ModifiedTimePolicy;
use crate::client_session_list::{self, ClientSessionList};
use crate::error::StoreError;
use crate::journal::FileTransaction;
use crate::open::{self, FileStamp};
use crate::owned_files::{OwnedFileKind, OwnedFiles};

/// Takes the sessions from the lists of their old folders and puts them on those of the new.
/// The list of a folder that is emptied goes there as a whole. Lists that cannot be read stay
/// as they are, and are named.
pub fn lists(
    work: &mut FileTransaction,
    movers: &[SessionMove],
    emptied: &[(PathBuf, PathBuf)],
) -> Result<Vec<String>, StoreError> {
    let mut books = TouchedSessionLists::default();
    for mover in movers {
        let old = mover.file.path.with_file_name(client_session_list::NAME);
        let new = mover.home.folder.join(client_session_list::NAME);
        books.open(&old, mover);
        books.open(&new, mover);
        let entry = books.list(&old).and_then(|list| list.take(&mover.file.id));
        if let (Some(entry), Some(list)) = (entry, books.list(&new)) {
            list.put(moved(entry, mover, &mover.home.transcript()));
        }
    }
    for (folder, goal) in emptied {
        let mover = movers.iter().find(|mover| mover.home.folder == *goal);
        let old = books
            .list(&folder.join(client_session_list::NAME))
            .map(ClientSessionList::take_all);
        let (Some(mover), Some(rest)) = (mover, old.flatten()) else {
            continue;
        };
        // What it still names are sessions whose files are gone.
        if let Some(list) = books.list(&goal.join(client_session_list::NAME)) {
            for entry in rest {
                let name = entry["sessionId"].as_str().unwrap_or_default();
                let path = goal.join(format!("{name}.jsonl"));
                list.put(moved(entry, mover, &path));
            }
            list.touch();
        }
    }
    for (path, list) in books.lists {
        list.map_or(Ok(()), |list| list.write(work, &path))?;
    }
    Ok(books.notes)
}

/// An entry that names another place.
fn moved(mut entry: Value, mover: &SessionMove, path: &Path) -> Value {
    entry["fullPath"] = json!(path.display().to_string());
    let project = entry["projectPath"].as_str();
    let project = project.and_then(|project| mover.identity.directory(project));
    if let Some(project) = project {
        entry["projectPath"] = json!(project);
    }
    entry
}

/// All lists that are touched, by their paths; `None` for those that cannot be read.
#[derive(Default)]
struct TouchedSessionLists {
    lists: BTreeMap<PathBuf, Option<ClientSessionList>>,
    notes: Vec<String>,
}

impl TouchedSessionLists {
    fn open(&mut self, path: &Path, mover: &SessionMove) {
        if !self.lists.contains_key(path) {
            let list = ClientSessionList::read(path, &mover.to);
            if list.is_none() {
                let path = path.display();
                self.notes.push(format!("skipped `{path}`: unreadable"));
            }
            self.lists.insert(path.to_owned(), list);
        }
    }

    fn list(&mut self, path: &Path) -> Option<&mut ClientSessionList> {
        self.lists.get_mut(path)?.as_mut()
    }
}

/// Points the prompts of the directory in each history to where it is now. Lines of other
/// projects, and all else in these lines, keep every byte.
pub fn histories(work: &mut FileTransaction, movers: &[SessionMove]) -> Result<(), StoreError> {
    let configs: BTreeSet<&Path> = movers.iter().map(|mover| &*mover.file.config).collect();
    for config in configs {
        let path = config.join("history.jsonl");
        let Ok((mut file, metadata)) = open::open(&path) else {
            continue;
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(|error| StoreError::io(&path, error))?;
        if let Some(new) = repointed(&bytes, movers) {
            let stamp = FileStamp::of(&metadata);
            work.replace(&path, stamp, ModifiedTimePolicy::Keep, |out| {
                out.write_all(&new)
            })?;
        }
    }
    Ok(())
}

/// Tells background jobs where their sessions go on, so that the client finds them there.
pub fn jobs(
    work: &mut FileTransaction,
    owned: &OwnedFiles,
    movers: &[SessionMove],
) -> Result<(), StoreError> {
    for mover in movers {
        let all = owned.of(&mover.file).into_iter();
        let notes = all.filter(|one| one.kind == OwnedFileKind::Job);
        for note in notes.filter(|one| one.path.ends_with("state.json")) {
            let Ok((mut file, metadata)) = open::open(&note.path) else {
                continue;
            };
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)
                .map_err(|error| StoreError::io(&note.path, error))?;
            if let Some(new) = job(&bytes, mover) {
                let stamp = FileStamp::of(&metadata);
                work.replace(&note.path, stamp, ModifiedTimePolicy::Keep, |out| {
                    out.write_all(&new)
                })?;
            }
        }
    }
    Ok(())
}

/// What is noted of a job, with other places; `None` if nothing changes.
fn job(bytes: &[u8], mover: &SessionMove) -> Option<Vec<u8>> {
    let old = mover.file.path.display().to_string();
    let new = mover.home.transcript().display().to_string();
    let edit = |key: &str, moved: &dyn Fn(&str) -> Option<String>| {
        let span = json::find(bytes, &[key])?;
        let moved = moved(&json::string(span.of(bytes)))?;
        Some((span, json::quoted(&moved).into_bytes()))
    };
    let mut edits: Vec<_> = [
        edit("cwd", &|cwd| mover.identity.directory(cwd)),
        edit("linkScanPath", &|path| (path == old).then(|| new.clone())),
    ]
    .into_iter()
    .flatten()
    .collect();
    edits.sort_by_key(|(span, _)| span.start);
    (!edits.is_empty()).then(|| json::splice(bytes, &edits))
}

/// The history with other directories; `None` if nothing changes.
fn repointed(bytes: &[u8], movers: &[SessionMove]) -> Option<Vec<u8>> {
    let mut identities: Vec<_> = movers.iter().map(|mover| &mover.identity).collect();
    identities.dedup();
    let mut out = Vec::with_capacity(bytes.len());
    let mut changed = false;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let span = json::find(line, &["project"]);
        let moved = span.and_then(|span| {
            let project = json::string(span.of(line));
            let moved = identities.iter().find_map(|it| it.directory(&project))?;
            Some((span, json::quoted(&moved).into_bytes()))
        });
        match moved {
            Some(edit) => {
                changed = true;
                out.extend_from_slice(&json::splice(line, &[edit]));
            }
            None => out.extend_from_slice(line),
        }
    }
    changed.then_some(out)
}
