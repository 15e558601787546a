//! Tokens and cost over all files: each message once, then summed up in groups.
//!
//! The one rule about double counting is [`count`]: a message counts once, however many
//! files hold it. Resumed and forked sessions repeat the messages of the one they come from,
//! and a parent's progress lines repeat those of its sub-agents.

pub mod group;
pub mod period;

use foldhash::HashMap;

use crate::price::{Cost, Prices};
use crate::spent::{Spending, Spent};
use crate::time::Time;
use crate::usage::{self, Terms, Usage};

/// A message that counts.
#[derive(Clone, Debug)]
pub struct Counted {
    /// The file it counts in: the oldest that holds it.
    pub file: u32,
    /// Its place among the messages of that file.
    pub message: u32,
    /// Its tokens: the maximum of all lines in all files.
    pub usage: Usage,
    /// What else decides its price.
    pub terms: Terms,
    /// The time of its first line.
    pub at: Option<Time>,
    /// How many files hold it.
    pub files: u32,
    /// How many lines told its tokens, in all files.
    pub lines: u32,
    /// Whether any line was written when its tokens were known to the end.
    pub stopped: bool,
}

/// What became of a message of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It counts here.
    Counted,
    /// It counts in another file, which held it first.
    Elsewhere,
    /// It is a copy in a parent's progress lines; the sub-agent's own file counts.
    Copy,
    /// The client wrote it itself.
    Synthetic,
}

impl Fate {
    /// What to call it.
    pub fn name(self) -> &'static str {
        match self {
            Fate::Counted => "counted",
            Fate::Elsewhere => "counted in an older file",
            Fate::Copy => "copy of a sub-agent's message",
            Fate::Synthetic => "written by the client",
        }
    }
}

/// Every message of all files once.
///
/// A sub-agent's own file comes before the copy in its parent's progress lines, which may
/// hold a placeholder. Among files that hold a message themselves, the tokens are the
/// maximum, and it counts in the oldest: the main thread comes before helpers that repeat
/// it (a compaction has a file that begins with the conversation), one that does not say it
/// was forked before one that does, then the one whose last message is earlier, then the
/// order of the files.
pub fn count(files: &[&Spending]) -> Vec<Counted> {
    let total = files.iter().map(|file| file.messages.len()).sum();
    let mut counted: Vec<Counted> = Vec::with_capacity(total);
    let mut known: HashMap<&str, u32> = HashMap::default();
    known.reserve(total);
    for (file, spending) in files.iter().enumerate() {
        for (message, spent) in spending.messages.iter().enumerate() {
            if spent.marks.synthetic {
                continue;
            }
            let next = counted.len() as u32;
            let at = *known.entry(spending.id(spent)).or_insert(next);
            let place = (file as u32, message as u32);
            if at == next {
                counted.push(Counted::new(place, spent));
            } else {
                meet(files, &mut counted[at as usize], place, spent);
            }
        }
    }
    counted
}

impl Counted {
    fn new((file, message): (u32, u32), spent: &Spent) -> Counted {
        Counted {
            file,
            message,
            usage: spent.usage,
            terms: spent.terms,
            at: spent.at,
            files: 1,
            lines: spent.lines,
            stopped: spent.marks.stopped,
        }
    }

    /// The message as the file it counts in tells it.
    pub fn spent<'a>(&self, files: &[&'a Spending]) -> &'a Spent {
        &files[self.file as usize].messages[self.message as usize]
    }

    /// Its model.
    pub fn model<'a>(&self, files: &[&'a Spending]) -> Option<&'a str> {
        files[self.file as usize].model(self.spent(files))
    }

    /// Its price, if its model has one.
    pub fn cost(&self, files: &[&Spending], prices: &Prices) -> Option<Cost> {
        prices.cost(
            self.model(files).unwrap_or_default(),
            self.usage,
            self.terms,
        )
    }

    /// The version that wrote it, if that version may have left its output unfinished.
    ///
    /// Up to 2.1.58 lines were written while the message streamed, and what the output came
    /// to was often never written (2.0.36 to 2.0.42 excepted).
    pub fn floor<'a>(&self, files: &[&'a Spending]) -> Option<&'a str> {
        let version = files[self.file as usize].version(self.spent(files))?;
        (!self.stopped && is_unfinished(version)).then_some(version)
    }
}

/// Whether a version may have left the output of a message unfinished.
fn is_unfinished(version: &str) -> bool {
    let early =
        |numbers: [u32; 3]| numbers <= [2, 1, 58] && !([2, 0, 36]..=[2, 0, 42]).contains(&numbers);
    version_numbers(version).is_some_and(early)
}

/// A version as numbers that compare.
pub fn version_numbers(version: &str) -> Option<[u32; 3]> {
    let mut parts = version.split(['.', '-']);
    let mut next = || parts.next()?.parse().ok();
    Some([next()?, next()?, next()?])
}

/// The same message once more.
fn meet(files: &[&Spending], counted: &mut Counted, place: (u32, u32), spent: &Spent) {
    let before = counted.spent(files);
    let (files_so_far, lines) = (counted.files + 1, counted.lines.saturating_add(spent.lines));
    match (before.marks.copy, spent.marks.copy) {
        (true, false) => *counted = Counted::new(place, spent),
        (false, true) => {}
        _ => {
            counted.usage = counted.usage.max(spent.usage);
            counted.terms = counted.terms.max(spent.terms);
            counted.stopped |= spent.marks.stopped;
            let age = |file: u32, spent: &Spent| {
                let marks = spent.marks;
                let last = files[file as usize].last;
                (marks.sidechain, marks.forked, last, file)
            };
            if age(place.0, spent) < age(counted.file, before) {
                (counted.file, counted.message) = place;
                counted.at = spent.at.or(counted.at);
            }
            counted.at = counted.at.or(spent.at);
        }
    }
    (counted.files, counted.lines) = (files_so_far, lines);
}

/// What became of every message of all files: the file, its place there, its fate, and the
/// counted message it belongs to (none for what the client wrote).
pub fn fates(files: &[&Spending], counted: &[Counted]) -> Vec<(u32, u32, Fate, Option<u32>)> {
    let key = |one: &Counted| files[one.file as usize].id(one.spent(files));
    let places: HashMap<&str, u32> = (0..).zip(counted).map(|(at, one)| (key(one), at)).collect();
    let mut all = Vec::new();
    for (file, spending) in (0u32..).zip(files) {
        for (message, spent) in (0u32..).zip(&spending.messages) {
            let of = places.get(spending.id(spent)).copied();
            let fate = match of.map(|at| &counted[at as usize]) {
                _ if spent.marks.synthetic => Fate::Synthetic,
                Some(one) if (one.file, one.message) == (file, message) => Fate::Counted,
                Some(one) if spent.marks.copy && !one.spent(files).marks.copy => Fate::Copy,
                _ => Fate::Elsewhere,
            };
            all.push((file, message, fate, of.filter(|_| fate != Fate::Synthetic)));
        }
    }
    all
}

/// How full the context of a session is: what its last reply was given, and its model.
pub fn context(spending: &Spending) -> Option<(u64, Option<u64>)> {
    let own = |spent: &&Spent| {
        let marks = spent.marks;
        !(marks.copy || marks.sidechain || marks.synthetic) && spent.usage.context() > 0
    };
    let last = spending.messages.iter().rev().find(own)?;
    let tokens = last.usage.context();
    let limit = spending
        .model(last)
        .and_then(|model| usage::context_limit(model, tokens));
    Some((tokens, limit))
}
