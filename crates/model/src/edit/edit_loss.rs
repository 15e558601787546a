//! What the model will no longer see, in words and tokens.

use std::collections::BTreeMap;

/// A kind of loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossKind {
    /// Calls that are gone with their results.
    Calls,
    /// Calls and results that were cut short.
    Cut,
    /// Large results that lost their middle.
    Middles,
    /// Thinking.
    Thinking,
    /// Whole turns.
    Turns,
    /// Lines beside the branch that was kept.
    Branches,
    /// Replies that were written shorter.
    Shortened,
    /// What a summary stands for.
    Summarised,
    /// What was damaged and could not be kept.
    Damaged,
}

impl LossKind {
    fn words(self, count: u64) -> String {
        let many = |one: &str, several: &str| match count {
            1 => format!("1 {one}"),
            _ => format!("{count} {several}"),
        };
        match self {
            LossKind::Calls => many("tool call and its result", "tool calls with their results"),
            LossKind::Cut => many(
                "tool call or result, except its first lines",
                "tool calls and results, except their first lines",
            ),
            LossKind::Middles => many(
                "large result, except its start and end",
                "large results, except their starts and ends",
            ),
            LossKind::Thinking => many("block of thinking", "blocks of thinking"),
            LossKind::Turns => many("turn", "turns"),
            LossKind::Branches => {
                many("line of an abandoned branch", "lines of abandoned branches")
            }
            LossKind::Shortened => many(
                "text, replaced by a shorter one",
                "texts, replaced by shorter ones",
            ),
            LossKind::Summarised => many(
                "line, replaced by a summary",
                "lines, replaced by a summary",
            ),
            LossKind::Damaged => many("damaged line", "damaged lines"),
        }
    }
}

/// One line of what is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditLoss {
    /// What, in words.
    pub what: String,
    /// About how many tokens that is.
    pub tokens: u64,
}

/// What is lost so far.
#[derive(Clone, Debug, Default)]
pub(super) struct LossCounts(BTreeMap<LossKind, (u64, u64)>);

impl LossCounts {
    pub(super) fn add(&mut self, loss: LossKind, count: u64, tokens: u64) {
        let sum = self.0.entry(loss).or_default();
        *sum = (sum.0 + count, sum.1 + tokens);
    }

    pub(super) fn extend(&mut self, other: &LossCounts) {
        for (loss, (count, tokens)) in &other.0 {
            self.add(*loss, *count, *tokens);
        }
    }

    pub(super) fn list(&self) -> Vec<EditLoss> {
        let one = |(loss, (count, tokens)): (&LossKind, &(u64, u64))| EditLoss {
            what: loss.words(*count),
            tokens: *tokens,
        };
        self.0.iter().map(one).collect()
    }
}
