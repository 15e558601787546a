//! What all files say about tokens, kept up to date.
//!
//! Files that are as they were are not opened; of those that grew, the new lines are read.
//! Without a folder to keep things in, everything is read and nothing is kept.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use unspool_model::spent::{self, Spending};
use unspool_store::each;
use unspool_store::find::Found;
use unspool_store::spent::{Gathered, Source, gather, sources};

use crate::facts::Facts;
use crate::keep::{self, Known, Mark};

/// What all files say about tokens.
#[derive(Debug, Default)]
pub struct Spendings {
    facts: Option<Facts>,
    /// Whether files will be looked at again, so that it pays to mark how far they were read.
    again: bool,
    known: HashMap<PathBuf, Kept>,
    /// Files in the order in which they were found.
    order: Vec<Source>,
    /// What a person should know, a line each.
    notes: Vec<String>,
}

#[derive(Debug)]
struct Kept {
    /// Up to where it was read; `None` if that is not worth remembering.
    mark: Option<Mark>,
    spending: Spending,
    /// The same with what stands behind the last newline, if that says anything.
    whole: Option<Box<Spending>>,
}

/// What is to be read of a file.
struct Job {
    source: usize,
    start: u64,
    end: u64,
    mark: Option<Mark>,
}

impl Spendings {
    /// Opens what was kept in a folder of ours.
    ///
    /// If that cannot be had, works without, and says so once. `again`: this one will be
    /// updated more than once.
    pub fn open(folder: Option<&Path>, again: bool) -> Spendings {
        let mut all = Spendings {
            again,
            ..Spendings::default()
        };
        let Some(folder) = folder else { return all };
        match Facts::open(folder, spent::FORMAT) {
            Ok((mut facts, notice)) => {
                all.notes.extend(notice.map(|notice| notice.to_string()));
                match facts.load(kept) {
                    Ok((rows, notice)) => {
                        all.notes.extend(notice.map(|notice| notice.to_string()));
                        all.known = rows;
                        all.facts = Some(facts);
                    }
                    // Somebody else is busy with it; what is not known is read.
                    Err(error) if error.is_busy() => {}
                    Err(error) => all.notes.push(format!("{error}; counting without it")),
                }
            }
            Err(error) => all.notes.push(format!("{error}; counting without it")),
        }
        all
    }

    /// Reads what is new in the files that were found, and keeps it.
    pub fn update(&mut self, found: &Found) {
        self.order = sources(found);
        let jobs = self.jobs();
        let files: Vec<(&Path, u64, u64)> = jobs
            .iter()
            .map(|job| (self.order[job.source].path.as_path(), job.start, job.end))
            .collect();
        let read = gather(&files, each::threads());
        let mut changed = Vec::new();
        for (job, read) in jobs.into_iter().zip(read) {
            match read {
                Ok(gathered) => changed.extend(self.take(&job, gathered)),
                Err(error) => {
                    self.notes.push(error.to_string());
                    self.known.remove(&self.order[job.source].path);
                }
            }
        }
        self.keep(&changed);
    }

    /// What is to be read.
    fn jobs(&self) -> Vec<Job> {
        let (known, keeps) = (&self.known, self.again || self.facts.is_some());
        let sources: Vec<(usize, &Source)> = self.order.iter().enumerate().collect();
        let job = |&(nth, source): &(usize, &Source)| {
            let mark = known.get(&source.path).and_then(|kept| kept.mark);
            job(nth, source, mark, keeps)
        };
        let jobs = each::map(&sources, each::threads(), |_| 0, job);
        jobs.into_iter().flatten().collect()
    }

    /// Takes in what was read, and says what is to be kept of it.
    fn take(&mut self, job: &Job, gathered: Gathered) -> Option<PathBuf> {
        let Source { path, .. } = &self.order[job.source];
        let mark = job.mark.filter(|mark| mark.offset() == gathered.end);
        let before = self.known.remove(path).filter(|_| job.start > 0);
        let is_new = before.as_ref().and_then(|kept| kept.mark) != mark;
        let mut spending = gathered.spending;
        if let Some(Kept {
            spending: mut earlier,
            ..
        }) = before
        {
            if !spending.is_empty() {
                earlier.reopen();
                earlier.append(&spending);
                earlier.settle();
            }
            spending = earlier;
        }
        let whole = gathered.tail.map(|tail| {
            let mut whole = spending.clone();
            whole.reopen();
            whole.append(&tail);
            Box::new(whole)
        });
        let kept = Kept {
            mark,
            spending,
            whole,
        };
        self.known.insert(path.clone(), kept);
        (is_new && mark.is_some()).then(|| path.clone())
    }

    fn keep(&mut self, changed: &[PathBuf]) {
        let Some(facts) = &mut self.facts else { return };
        let rows: Vec<(PathBuf, Mark, Vec<u8>)> = changed
            .iter()
            .filter_map(|path| {
                let kept = self.known.get(path)?;
                Some((path.clone(), kept.mark?, kept.spending.pack()))
            })
            .collect();
        let found: HashSet<&Path> = self
            .order
            .iter()
            .map(|source| source.path.as_path())
            .collect();
        // Files that were not found may belong to another folder that was asked for before.
        let gone: Vec<PathBuf> = self
            .known
            .keys()
            .filter(|path| !found.contains(path.as_path()) && !path.exists())
            .cloned()
            .collect();
        // What could not be kept is read again the next time.
        let saved = facts.save(&rows, &gone);
        let notice = facts.notice();
        self.notes.extend(notice.map(|notice| notice.to_string()));
        if let Err(error) = saved {
            self.notes.push(format!("{error}; counting without it"));
            self.facts = None;
        }
        gone.iter().for_each(|path| drop(self.known.remove(path)));
    }

    /// What a person should know since the last time, a line each.
    pub fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Every file and what it says, in the order in which they were found.
    pub fn files(&self) -> (Vec<&Source>, Vec<&Spending>) {
        let files = self.order.iter();
        files
            .filter_map(|source| Some((source, self.known.get(&source.path)?.all())))
            .unzip()
    }
}

impl Kept {
    fn all(&self) -> &Spending {
        self.whole.as_deref().unwrap_or(&self.spending)
    }
}

/// What is to be read of a file, if anything. A mark is only taken by who keeps it.
fn job(nth: usize, source: &Source, known: Option<Mark>, keeps: bool) -> Option<Job> {
    let Source { path, stamp, .. } = source;
    let whole = |start: u64, end: u64, mark: Option<Mark>| Job {
        source: nth,
        start,
        end,
        mark,
    };
    match known {
        Some(mark) if keep::compare(&mark, stamp) == Known::Same => {
            let unended = mark.size > mark.offset();
            unended.then(|| whole(mark.offset(), mark.size, Some(mark)))
        }
        None if !keeps => Some(whole(0, stamp.size, None)),
        _ => Some(match keep::news(path, known.as_ref()) {
            Ok(news) => whole(news.start, news.mark.size, Some(news.mark)),
            // Reading it will tell why.
            Err(_) => whole(0, stamp.size, None),
        }),
    }
}

/// What was kept about a file, if it can be read.
fn kept(mark: Mark, bytes: &[u8]) -> Option<Kept> {
    Some(Kept {
        mark: Some(mark),
        spending: Spending::unpack(bytes)?,
        whole: None,
    })
}
