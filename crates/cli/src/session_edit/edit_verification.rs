//! Whether what was written is what was wanted.

use std::io::{self, Write};

use unspool_model::edit;
use unspool_model::edit::check::{CONVERSATION, EditProblem, ExpectedResult, FAULTS, NOTHING};
use unspool_model::log::LineSplitter;
use unspool_model::session::{LineRetention, Session, TranscriptRole};
use unspool_show::wire::edit::{CheckRow, EditResult};

use super::staging::WrittenTranscript;
use crate::failure::CommandFailure;

/// A session that is read while it is written, for when it is written nowhere.
#[derive(Debug)]
pub struct TranscriptFold {
    splitter: LineSplitter,
    session: Session,
    bytes: u64,
}

impl TranscriptFold {
    /// An empty one.
    pub fn new(role: TranscriptRole) -> TranscriptFold {
        TranscriptFold {
            splitter: LineSplitter::default(),
            session: Session::keeping(role, LineRetention::Structure),
            bytes: 0,
        }
    }

    /// The session, once all is written.
    pub fn made(mut self) -> WrittenTranscript {
        if let Some(tail) = self.splitter.tail() {
            self.session.push_tail(&tail);
        }
        WrittenTranscript {
            session: self.session,
            bytes: self.bytes,
        }
    }
}

impl Write for TranscriptFold {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let session = &mut self.session;
        self.splitter.feed(bytes, |line| {
            session.push(&line);
        });
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compares, and fills in what was found; fails if anything is not as it was wanted.
pub fn prove(
    wanted: &ExpectedResult,
    after: &Session,
    result: &mut EditResult,
) -> Result<(), CommandFailure> {
    result.tokens.after = edit::tokens(after);
    let problems = wanted.compare(after);
    result.checks = rows(wanted, &problems);
    refused(&problems)
}

/// Fails if there is a problem, and names the first.
pub fn refused(problems: &[EditProblem]) -> Result<(), CommandFailure> {
    match problems.first() {
        None => Ok(()),
        Some(first) => {
            let more = match problems.len() - 1 {
                0 => String::new(),
                more => format!(" ({more} more)"),
            };
            let what = format!(
                "the result would differ from what was requested: {}{more}; nothing was written",
                first.what
            );
            let hint = match &*first.about {
                NOTHING => {
                    "remove less, for example with another preset; `--dry-run` shows how much"
                }
                _ => "check the session with `unspool check`; fix faults with `unspool repair`",
            };
            Err(CommandFailure::failed(what).hint(hint))
        }
    }
}

fn rows(wanted: &ExpectedResult, problems: &[EditProblem]) -> Vec<CheckRow> {
    let row = |name: &str, fine: String| {
        let wrong = problems.iter().find(|problem| problem.about == name);
        CheckRow {
            name: name.to_owned(),
            ok: wrong.is_none(),
            detail: wrong.map_or(fine, |problem| problem.what.clone()),
        }
    };
    let known: Vec<String> = wanted
        .known_faults()
        .iter()
        .map(|(kind, count)| format!("{count} {}", kind.name()))
        .collect();
    let faults = match known.is_empty() {
        true => "none".to_owned(),
        false => format!("no new ones; already in the source: {}", known.join(", ")),
    };
    let same = "unchanged except for the requested edits".to_owned();
    let mut rows = vec![row(FAULTS, faults), row(CONVERSATION, same)];
    for (client, resumes, lost) in wanted.lost_before() {
        rows.push(row(
            &client,
            match (resumes, lost) {
                (false, _) => "cannot resume it, and could not resume the source either".to_owned(),
                (true, 0) => "resumes it".to_owned(),
                (true, lost) => format!("resumes it; already lost {lost} lines of the source"),
            },
        ));
    }
    rows.push(CheckRow {
        name: "usage".to_owned(),
        ok: true,
        detail: "recorded token counts of replies are unchanged".to_owned(),
    });
    rows
}
