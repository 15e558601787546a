//! What the model will no longer see, in words and tokens.

use std::collections::BTreeMap;

/// A kind of loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loss {
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

impl Loss {
    fn words(self, count: u64) -> String {
        let many = |one: &str, several: &str| match count {
            1 => format!("1 {one}"),
            _ => format!("{count} {several}"),
        };
        match self {
            Loss::Calls => many("tool call and its result", "tool calls with their results"),
            Loss::Cut => many(
                "tool call or result, except its first lines",
                "tool calls and results, except their first lines",
            ),
            Loss::Middles => many(
                "large result, except its start and end",
                "large results, except their starts and ends",
            ),
            Loss::Thinking => many("block of thinking", "blocks of thinking"),
            Loss::Turns => many("turn", "turns"),
            Loss::Branches => many("line of an abandoned branch", "lines of abandoned branches"),
            Loss::Shortened => many(
                "text, replaced by a shorter one",
                "texts, replaced by shorter ones",
            ),
            Loss::Summarised => many(
                "line, replaced by a summary",
                "lines, replaced by a summary",
            ),
            Loss::Damaged => many("damaged line", "damaged lines"),
        }
    }
}

/// One line of what is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// What, in words.
    pub what: String,
    /// About how many tokens that is.
    pub tokens: u64,
}

/// What is lost so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses(BTreeMap<Loss, (u64, u64)>);

impl Losses {
    pub(super) fn add(&mut self, loss: Loss, count: u64, tokens: u64) {
        let sum = self.0.entry(loss).or_default();
        *sum = (sum.0 + count, sum.1 + tokens);
    }

    pub(super) fn extend(&mut self, other: &Losses) {
        for (loss, (count, tokens)) in &other.0 {
            self.add(*loss, *count, *tokens);
        }
    }

    pub(super) fn list(&self) -> Vec<Lost> {
        let one = |(loss, (count, tokens)): (&Loss, &(u64, u64))| Lost {
            what: loss.words(*count),
            tokens: *tokens,
        };
        self.0.iter().map(one).collect()
    }
}
