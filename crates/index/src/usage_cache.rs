//! What all files say about tokens, kept up to date.
//!
//! Files that are as they were are not opened; of those that grew, the new lines are read.
//! Without a folder to keep things in, everything is read and nothing is kept.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use unspool_model::file_usage::{self, FileUsage};
use unspool_model::view::usage::UsageLedger;
use unspool_store::find::FoundSessionFiles;
use unspool_store::parallel;
use unspool_store::token_scan::{TokenScanFile, TokenScanResult, scan_tokens, token_scan_files};

use crate::facts::FileFactCache;
use crate::file_mark::{self, MarkComparison, ReadMark};

/// What all files say about tokens.
#[derive(Debug, Default)]
pub struct UsageCache {
    facts: Option<FileFactCache>,
    /// Whether somebody wants to see the files themselves, or will look again.
    keeps: bool,
    /// Files that are kept in memory, or about to be read on.
    known: HashMap<PathBuf, CachedFileUsage>,
    /// Files in the order in which they were found.
    order: Vec<TokenScanFile>,
    /// Every message once.
    ledger: UsageLedger,
    /// Files that are written down but were not found.
    strays: Vec<PathBuf>,
    /// What a person should know, a line each.
    notes: Vec<String>,
}

#[derive(Debug)]
struct CachedFileUsage {
    /// Up to where it was read; `None` if that is not worth remembering.
    mark: Option<ReadMark>,
    spending: FileUsage,
    /// The same with what stands behind the last newline, if that says anything.
    whole: Option<Box<FileUsage>>,
}

/// What is to be read of a file.
struct UsageReadJob {
    source: usize,
    start: u64,
    end: u64,
    mark: Option<ReadMark>,
}

/// How many bytes are read before what they say is put into the ledger.
const BYTES: u64 = 64 << 20;

/// The same in files, each of which takes some memory however small it is.
const FILES: usize = 256;

impl UsageCache {
    /// Opens what was kept in a folder of ours.
    ///
    /// If that cannot be had, works without, and says so once. `keeps`: what each file says
    /// stays in memory, for [`UsageCache::files`] or for more than one update.
    pub fn open(folder: Option<&Path>, keeps: bool) -> UsageCache {
        let mut all = UsageCache {
            keeps,
            ..UsageCache::default()
        };
        let Some(folder) = folder else { return all };
        match FileFactCache::open(folder, file_usage::FORMAT) {
            Ok((facts, notice)) => {
                all.notes.extend(notice.map(|notice| notice.to_string()));
                all.facts = Some(facts);
            }
            Err(error) => all
                .notes
                .push(format!("{error}; continuing without the cache")),
        }
        all
    }

    /// Reads what is new in the files that were found, and keeps it.
    pub fn update(&mut self, found: FoundSessionFiles) {
        let is_first = self.order.is_empty();
        self.order = token_scan_files(found);
        self.ledger = UsageLedger::default();
        let mut done = vec![false; self.order.len()];
        if is_first {
            self.load(&mut done);
        }
        for (nth, source) in self.order.iter().enumerate() {
            if let Some(kept) = self.known.get(&source.path)
                && kept.mark.is_some_and(|mark| is_current(&mark, source))
            {
                self.ledger.add(nth as u32, kept.all());
                done[nth] = true;
            }
        }
        let todo: Vec<usize> = (0..done.len()).filter(|&nth| !done[nth]).collect();
        let mut rest = todo.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(self.batch(rest));
            self.work(self.jobs(now));
            rest = later;
        }
        self.forget();
    }

    /// How many of these files are read before what they say is put into the ledger.
    fn batch(&self, files: &[usize]) -> usize {
        let mut bytes = 0;
        let fits = |nth: &&usize| {
            let TokenScanFile { path, stamp, .. } = &self.order[**nth];
            let mark = self.known.get(path).and_then(|kept| kept.mark);
            let known = mark.map_or(0, |mark| mark.offset());
            bytes += stamp.size.saturating_sub(known);
            bytes <= BYTES
        };
        let many = files.iter().take(FILES).take_while(fits).count();
        many.max(1)
    }

    /// Takes in what is written down. What is as it was goes straight into the ledger.
    fn load(&mut self, done: &mut [bool]) {
        let Some(facts) = &mut self.facts else { return };
        let (order, keeps) = (&self.order, self.keeps);
        let numbers = order.iter().enumerate();
        let numbers: foldhash::HashMap<&[u8], usize> = numbers
            .map(|(nth, source)| (source.path.as_os_str().as_encoded_bytes(), nth))
            .collect();
        let (ledger, known, strays) = (&mut self.ledger, &mut self.known, &mut self.strays);
        let mut one = FileUsage::default();
        let loaded = facts.each(|path, mark, bytes| {
            let Some(&nth) = numbers.get(path.as_os_str().as_encoded_bytes()) else {
                strays.push(path);
                return;
            };
            if keeps || !is_current(&mark, &order[nth]) {
                let kept = FileUsage::unpack(bytes).map(|spending| CachedFileUsage {
                    mark: Some(mark),
                    spending,
                    whole: None,
                });
                known.extend(kept.map(|kept| (path, kept)));
            } else if one.refill(bytes).is_some() {
                ledger.add(nth as u32, &one);
                done[nth] = true;
            }
        });
        let note = match loaded {
            Ok(None) => return,
            Ok(Some(notice)) => Some(notice.to_string()),
            Err(error) => {
                self.facts = None;
                // Somebody else may be busy with it; what is not known is read.
                (!error.is_busy()).then(|| format!("{error}; continuing without the cache"))
            }
        };
        self.notes.extend(note);
        self.ledger = UsageLedger::default();
        self.known.clear();
        self.strays.clear();
        done.fill(false);
    }

    /// What is to be read of these files.
    fn jobs(&self, files: &[usize]) -> Vec<UsageReadJob> {
        let (known, order) = (&self.known, &self.order);
        let keeps = self.keeps || self.facts.is_some();
        let job = |&nth: &usize| {
            let source = &order[nth];
            let mark = known.get(&source.path).and_then(|kept| kept.mark);
            job(nth, source, mark, keeps)
        };
        // Only who keeps looks into the files.
        let threads = if keeps { parallel::threads() } else { 1 };
        parallel::map(files, threads, |_| 0, job)
    }

    /// Reads, and keeps what was read.
    fn work(&mut self, jobs: Vec<UsageReadJob>) {
        let files: Vec<(&Path, u64, u64)> = jobs
            .iter()
            .map(|job| (self.order[job.source].path.as_path(), job.start, job.end))
            .collect();
        let read = scan_tokens(&files, parallel::threads());
        let mut rows = Vec::new();
        for (job, read) in jobs.into_iter().zip(read) {
            match read {
                Ok(gathered) => rows.extend(self.take(&job, gathered)),
                Err(error) => {
                    self.notes.push(error.to_string());
                    self.known.remove(&self.order[job.source].path);
                }
            }
        }
        self.save(&rows, &[]);
    }

    /// Takes in what was read, and says what is to be written down of it.
    fn take(
        &mut self,
        job: &UsageReadJob,
        gathered: TokenScanResult,
    ) -> Option<(PathBuf, ReadMark, Vec<u8>)> {
        let TokenScanFile { path, .. } = &self.order[job.source];
        let mark = job.mark.filter(|mark| mark.offset() == gathered.end);
        let before = self.known.remove(path).filter(|_| job.start > 0);
        let is_new = before.as_ref().and_then(|kept| kept.mark) != mark;
        let mut spending = gathered.spending;
        if let Some(CachedFileUsage {
            spending: mut earlier,
            ..
        }) = before
        {
            if !spending.is_empty() {
                earlier.reopen();
                earlier.append(&spending);
                earlier.shrink_to_fit();
            }
            spending = earlier;
        }
        let whole = gathered.tail.map(|tail| {
            let mut whole = spending.clone();
            whole.reopen();
            whole.append(&tail);
            Box::new(whole)
        });
        let kept = CachedFileUsage {
            mark,
            spending,
            whole,
        };
        self.ledger.add(job.source as u32, kept.all());
        let is_written = is_new && self.facts.is_some();
        let row = mark.filter(|_| is_written);
        let row = row.map(|mark| (path.clone(), mark, kept.spending.pack()));
        if self.keeps {
            self.known.insert(path.clone(), kept);
        }
        row
    }

    /// Forgets the files that are gone.
    fn forget(&mut self) {
        let mut gone = std::mem::take(&mut self.strays);
        if self.keeps {
            let found: HashSet<&Path> = self
                .order
                .iter()
                .map(|source| source.path.as_path())
                .collect();
            let lost = self
                .known
                .keys()
                .filter(|path| !found.contains(path.as_path()));
            gone.extend(lost.cloned());
        }
        // Files that were not found may belong to another folder that was asked for before.
        gone.retain(|path| !path.exists());
        gone.iter().for_each(|path| drop(self.known.remove(path)));
        self.save(&[], &gone);
    }

    fn save(&mut self, rows: &[(PathBuf, ReadMark, Vec<u8>)], gone: &[PathBuf]) {
        let Some(facts) = &mut self.facts else { return };
        // What could not be kept is read again the next time.
        let saved = facts.save(rows, gone);
        let notice = facts.notice();
        self.notes.extend(notice.map(|notice| notice.to_string()));
        if let Err(error) = saved {
            self.notes
                .push(format!("{error}; continuing without the cache"));
            self.facts = None;
        }
    }

    /// What a person should know since the last time, a line each.
    pub fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Every message once. Files have the numbers of [`UsageCache::sources`].
    pub fn ledger(&self) -> &UsageLedger {
        &self.ledger
    }

    /// The files in the order in which they were found.
    pub fn sources(&self) -> &[TokenScanFile] {
        &self.order
    }

    /// What each file says, in the same order; nothing if it could not be read, or if this
    /// one does not keep.
    pub fn files(&self) -> Vec<&FileUsage> {
        static NOTHING: LazyLock<FileUsage> = LazyLock::new(FileUsage::default);
        let files = self.order.iter();
        files
            .map(|source| {
                self.known
                    .get(&source.path)
                    .map_or(&*NOTHING, CachedFileUsage::all)
            })
            .collect()
    }
}

impl CachedFileUsage {
    fn all(&self) -> &FileUsage {
        self.whole.as_deref().unwrap_or(&self.spending)
    }
}

/// Whether a file is as it was, to its last byte.
fn is_current(mark: &ReadMark, source: &TokenScanFile) -> bool {
    file_mark::compare(mark, &source.stamp) == MarkComparison::Same && mark.size == mark.offset()
}

/// What is to be read of a file. A mark is only taken by who keeps it.
fn job(nth: usize, source: &TokenScanFile, known: Option<ReadMark>, keeps: bool) -> UsageReadJob {
    let TokenScanFile { path, stamp, .. } = source;
    let whole = |start: u64, end: u64, mark: Option<ReadMark>| UsageReadJob {
        source: nth,
        start,
        end,
        mark,
    };
    match known {
        Some(mark) if file_mark::compare(&mark, stamp) == MarkComparison::Same => {
            whole(mark.offset(), mark.size, Some(mark))
        }
        None if !keeps => whole(0, stamp.size, None),
        _ => match file_mark::open_unread(path, known.as_ref()) {
            Ok(news) => whole(news.start, news.mark.size, Some(news.mark)),
            // Reading it will tell why.
            Err(_) => whole(0, stamp.size, None),
        },
    }
}
