//! The cases of one client version: recorded sessions and edited copies.

use super::transcript::fresh_uuid;
use super::{bases, mutations};
use std::io;
use std::path::Path;

/// One file to resume.
pub struct Case {
    /// `session/…`, `edit/…` or `file/…`.
    pub name: String,
    /// What was changed, as a sentence.
    pub what: String,
    /// The recording it comes from, relative to the corpus.
    pub source: String,
    /// The session id, which is the name of the file.
    pub session: String,
    /// The bytes of the file.
    pub text: String,
}

/// All cases of a version.
pub fn of(corpus: &Path, version: &str) -> io::Result<Vec<Case>> {
    let files = bases::sessions(corpus, version);
    let mut cases: Vec<Case> = files
        .iter()
        .map(|file| session(corpus, file))
        .collect::<io::Result<_>>()?;
    cases.append(&mut edits(corpus, version)?);
    Ok(cases)
}

/// A file by itself, resumed under an id of its own.
pub fn given(file: &Path) -> io::Result<Case> {
    Ok(Case {
        name: format!("file/{}", stem(file)),
        what: "A given file.".to_owned(),
        source: file.to_string_lossy().into_owned(),
        session: fresh_uuid(0),
        text: std::fs::read_to_string(file)?,
    })
}

fn session(corpus: &Path, file: &Path) -> io::Result<Case> {
    let source = source(corpus, file);
    let session = stem(file);
    let scenario: Vec<&str> = source.split('/').take(2).collect();
    let short = session.get(..8).unwrap_or(&session);
    Ok(Case {
        name: format!("session/{}/{short}", scenario.join("/")),
        what: "A recorded session as it is.".to_owned(),
        text: bases::load(file)?.text(),
        session,
        source,
    })
}

fn edits(corpus: &Path, version: &str) -> io::Result<Vec<Case>> {
    let Some(file) = bases::base(corpus, version) else {
        let words = format!("no recordings for {version} in {}", corpus.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, words));
    };
    let base = bases::load(&file)?;
    let cases = mutations::all().into_iter().map(|mutation| {
        let mut transcript = base.clone();
        (mutation.apply)(&mut transcript);
        Case {
            name: format!("edit/{}", mutation.name),
            what: mutation.what.to_owned(),
            source: source(corpus, &file),
            session: stem(&file),
            text: transcript.text(),
        }
    });
    Ok(cases.collect())
}

fn source(corpus: &Path, file: &Path) -> String {
    let relative = file.strip_prefix(corpus).unwrap_or(file);
    relative.to_string_lossy().into_owned()
}

fn stem(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
