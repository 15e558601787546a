//! Tokens and cost over all files: each message once, then summed up in groups.
//!
//! The one rule about double counting is in [`UsageLedger::add`]: a message counts once, however
//! many files hold it. Resumed and forked sessions repeat the messages of the one they come
//! from, and a parent's progress lines repeat those of its sub-agents.

mod counted_messages;
pub mod group;
mod ledger;
pub mod period;

pub use counted_messages::CountedMessages;
pub(crate) use ledger::message_key;
pub use ledger::{CountedMessage, FileFacts, LedgerPrices, UsageLedger, is_counted};

use crate::file_usage::{FileUsage, MessageUsage};

/// What became of a message of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountOutcome {
    /// It counts here.
    Counted,
    /// It counts in another file, which held it first.
    Elsewhere,
    /// It is a copy in a parent's progress lines; the sub-agent's own file counts.
    Copy,
    /// The client wrote it itself.
    Synthetic,
}

impl CountOutcome {
    /// What to call it.
    pub fn name(self) -> &'static str {
        match self {
            CountOutcome::Counted => "counted",
            CountOutcome::Elsewhere => "counted in an older file",
            CountOutcome::Copy => "copy of a sub-agent's message",
            CountOutcome::Synthetic => "written by the client",
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
/// [`UsageLedger::fate`] says.
///
/// These are the files of which the ledger was made.
pub fn count_outcomes(
    files: &[&FileUsage],
    ledger: &UsageLedger,
) -> Vec<(u32, u32, CountOutcome, Option<u32>)> {
    let mut all = Vec::new();
    for (file, spending) in (0u32..).zip(files) {
        for (message, spent) in (0u32..).zip(&spending.messages) {
            let (fate, of) = ledger.count_outcome(file, spending, spent);
            all.push((file, message, fate, of));
        }
    }
    all
}

/// The last reply of a session itself that says what it was given: how full its context is.
pub fn context(spending: &FileUsage) -> Option<&MessageUsage> {
    let own = |spent: &&MessageUsage| {
        let marks = spent.marks;
        !(marks.copy || marks.sidechain || marks.synthetic) && spent.usage.context() > 0
    };
    spending.messages.iter().rev().find(own)
}
