//! The sessions that a transcript goes on from, as files beside it.
//!
//! What names them is a rule of the model (see `unspool_model::before`); here the file is read
//! through and the names become files that exist. A name from a transcript never leads to another
//! folder.

use std::path::{Path, PathBuf};

use unspool_model::before;

use crate::error::Error;
use crate::open;
use crate::scan;
use crate::side::is_plain;

/// Not more than so many are looked for; a chain of sessions is shorter.
const MOST: usize = 32;

/// The transcripts of sessions before the one at `path`, in the order in which it names them,
/// and those before these: the oldest first.
pub fn chain(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(next) = open.pop() {
        for before in direct(&next).unwrap_or_default() {
            if before != path && !found.contains(&before) && found.len() < MOST {
                found.push(before.clone());
                open.push(before);
            }
        }
    }
    found.reverse();
    found
}

/// The transcripts beside this one that it names.
pub fn direct(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let own = path.file_stem().unwrap_or_default().to_string_lossy();
    let folder = path.parent().unwrap_or(Path::new("."));
    let (file, metadata) = open::open(path)?;
    let mut names: Vec<String> = Vec::new();
    for part in scan::parts([(0, metadata.len())]) {
        let read = part.read(&file, |_, piece| {
            for line in piece.split(|byte| *byte == b'\n') {
                before::named(line, &own, &mut |name| {
                    if names.len() < MOST && !names.iter().any(|known| known == name) {
                        names.push(name.to_owned());
                    }
                });
            }
        });
        read.map_err(|error| Error::io(path, error))?;
    }
    let files = names.iter().filter(|name| is_plain(name));
    let files = files.map(|name| folder.join(format!("{name}.jsonl")));
    Ok(files.filter(|file| open::look(file).is_ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn line(session: &str) -> String {
        format!(
            r#"{{"type":"user","sessionId":"{session}","message":{{"role":"user","content":"x"}}}}"#
        ) + "\n"
    }

    #[test]
    fn a_session_named_on_any_line_is_found_if_its_file_stands_beside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new.jsonl");
        fs::write(dir.path().join("old.jsonl"), line("old")).unwrap();
        fs::write(dir.path().join("up.jsonl"), line("up")).unwrap();
        let below = dir.path().join("below");
        fs::create_dir(&below).unwrap();
        let text = line("new") + &line("gone") + &line("new") + &line("old") + &line("old");
        fs::write(&path, text).unwrap();
        assert_eq!(direct(&path).unwrap(), [dir.path().join("old.jsonl")]);
        let inside = below.join("new.jsonl");
        fs::write(&inside, line("../up") + &line("..") + &line("/etc/passwd")).unwrap();
        assert!(direct(&inside).unwrap().is_empty());
    }

    #[test]
    fn a_chain_is_followed_to_its_start_and_a_circle_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(format!("{name}.jsonl"));
        fs::write(path("c"), line("b") + &line("c")).unwrap();
        fs::write(path("b"), line("a") + &line("b")).unwrap();
        fs::write(path("a"), line("a")).unwrap();
        assert_eq!(chain(&path("c")), [path("a"), path("b")]);
        fs::write(path("a"), line("c") + &line("a")).unwrap();
        assert_eq!(chain(&path("c")), [path("a"), path("b")]);
        assert!(chain(&path("none")).is_empty());
    }
}
