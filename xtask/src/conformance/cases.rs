//! The cases of one client version: recorded sessions and edited copies.

use super::Problem;
use super::options::Options;
use std::path::Path;
use unspool_testkit::conformance::transcript::fresh_uuid;
use unspool_testkit::conformance::{bases, mutations};

/// One file to resume.
pub struct Case {
    /// `session/…` or `edit/…`.
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

/// All cases of a version whose names match.
pub fn of(options: &Options, version: &str) -> Result<Vec<Case>, Problem> {
    if !options.files.is_empty() {
        return options.files.iter().map(|file| given(file)).collect();
    }
    let mut cases = sessions(options, version)?;
    cases.append(&mut edits(options, version)?);
    if let Some(only) = &options.only {
        cases.retain(|case| case.name.contains(only.as_str()));
    }
    Ok(cases)
}

/// A file named on the command line, resumed under an id of its own.
fn given(file: &Path) -> Result<Case, Problem> {
    Ok(Case {
        name: format!("file/{}", stem(file)),
        what: "A given file.".to_owned(),
        source: file.to_string_lossy().into_owned(),
        session: fresh_uuid(0),
        text: std::fs::read_to_string(file)?,
    })
}

fn sessions(options: &Options, version: &str) -> Result<Vec<Case>, Problem> {
    let files = bases::sessions(&options.corpus, version);
    files.iter().map(|file| session(options, file)).collect()
}

fn session(options: &Options, file: &Path) -> Result<Case, Problem> {
    let source = source(options, file);
    let session = stem(file);
    let mut parts = source.split('/');
    let (recorded, scenario) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let short = session.get(..8).unwrap_or(&session);
    Ok(Case {
        name: format!("session/{recorded}/{scenario}/{short}"),
        what: "A recorded session as it is.".to_owned(),
        text: bases::load(file)?.text(),
        session,
        source,
    })
}

fn edits(options: &Options, version: &str) -> Result<Vec<Case>, Problem> {
    let Some(file) = bases::base(&options.corpus, version) else {
        return Err(format!(
            "no recordings for {version} in {}",
            options.corpus.display()
        )
        .into());
    };
    let base = bases::load(&file)?;
    let cases = mutations::all().into_iter().map(|mutation| {
        let mut transcript = base.clone();
        (mutation.apply)(&mut transcript);
        Case {
            name: format!("edit/{}", mutation.name),
            what: mutation.what.to_owned(),
            source: source(options, &file),
            session: stem(&file),
            text: transcript.text(),
        }
    });
    Ok(cases.collect())
}

fn source(options: &Options, file: &Path) -> String {
    let relative = file.strip_prefix(&options.corpus).unwrap_or(file);
    relative.to_string_lossy().into_owned()
}

fn stem(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
