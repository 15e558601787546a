//! Tokens and cost over all files: each message once, then summed up in groups.
//!
//! The one rule about double counting is in [`Ledger::add`]: a message counts once, however
//! many files hold it. Resumed and forked sessions repeat the messages of the one they come
//! from, and a parent's progress lines repeat those of its sub-agents.

pub mod group;
mod ledger;
mod messages;
pub mod period;

pub(crate) use ledger::message_key;
pub use ledger::{Counted, FileFacts, Ledger, ModelPrices, is_counted};
pub use messages::Messages;

use crate::spent::{Spending, Spent};

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

/// What became of every message of all files: the file, its place there, and what
/// [`Ledger::fate`] says.
///
/// These are the files of which the ledger was made.
pub fn fates(files: &[&Spending], ledger: &Ledger) -> Vec<(u32, u32, Fate, Option<u32>)> {
    let mut all = Vec::new();
    for (file, spending) in (0u32..).zip(files) {
        for (message, spent) in (0u32..).zip(&spending.messages) {
            let (fate, of) = ledger.fate(file, spending, spent);
            all.push((file, message, fate, of));
        }
    }
    all
}

/// The last reply of a session itself that says what it was given: how full its context is.
pub fn context(spending: &Spending) -> Option<&Spent> {
    let own = |spent: &&Spent| {
        let marks = spent.marks;
        !(marks.copy || marks.sidechain || marks.synthetic) && spent.usage.context() > 0
    };
    spending.messages.iter().rev().find(own)
}
