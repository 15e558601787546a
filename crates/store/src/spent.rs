//! Tokens of many files at once: the scan behind `usage`.
//!
//! What counts how often is for `unspool_model::view::usage` to say.

use std::path::Path;

use memchr::memrchr;
use unspool_model::spent::Spending;

use crate::error::Error;
use crate::scan::{self, Part};
use crate::{each, open};

/// What a file says, read from some place on.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// What its ended lines say.
    pub spending: Spending,
    /// What stands behind the last newline says, if that is a whole line.
    pub tail: Option<Spending>,
    /// Behind the last newline.
    pub end: u64,
}

/// Reads each file from its offset on, which is the start of a line, to its end.
pub fn gather(files: &[(&Path, u64, u64)], threads: usize) -> Vec<Result<Gathered, Error>> {
    let parts = scan::parts(files.iter().map(|(_, start, end)| (*start, *end)));
    let read = each::map(
        &parts,
        threads,
        |part| part.end - part.start,
        |part| gather_part(files[part.file].0, part),
    );
    let mut all: Vec<Result<Gathered, Error>> = files
        .iter()
        .map(|(_, start, _)| {
            Ok(Gathered {
                end: *start,
                ..Gathered::default()
            })
        })
        .collect();
    for (part, read) in parts.iter().zip(read) {
        let slot = &mut all[part.file];
        match (slot.as_mut(), read) {
            (Ok(whole), Ok(next)) => whole.append(next),
            (Ok(_), Err(error)) => *slot = Err(error),
            (Err(_), _) => {}
        }
    }
    for gathered in all.iter_mut().flatten() {
        gathered.spending.settle();
    }
    all
}

impl Gathered {
    fn append(&mut self, next: Gathered) {
        if self.spending.is_empty() {
            self.spending = next.spending;
        } else {
            self.spending.append(&next.spending);
        }
        // The file may have grown since it was cut: then the next part begins behind.
        self.tail = next.tail;
        self.end = self.end.max(next.end);
    }
}

fn gather_part(path: &Path, part: &Part) -> Result<Gathered, Error> {
    let (file, _) = open::open(path)?;
    let mut gathered = Gathered {
        end: part.start,
        ..Gathered::default()
    };
    let read = part.read(&file, |offset, bytes| {
        let ended = memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        let (lines, tail) = bytes.split_at(ended);
        gathered.spending.feed(offset, lines);
        if !lines.is_empty() {
            gathered.end = offset + ended as u64;
        }
        if !tail.is_empty() {
            let mut last = Spending::default();
            last.feed(offset + ended as u64, tail);
            gathered.tail = (!last.is_empty()).then_some(last);
        }
    });
    read.map_err(|why| Error::io(path, why))?;
    Ok(gathered)
}
