//! The books of a tree: what its lines say about tokens, entered while they are written.
//!
//! A message is entered once, where it was first said; a line is entered again in
//! every file it stands in. From both follow the truth and what a reader finds
//! that makes one of the usual mistakes.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use super::truth::{Count, Mistake, Usage};

/// What the lines of one file say, or of all files.
#[derive(Clone, Copy, Default)]
pub struct Sheet {
    /// Every line of the model, summed.
    pub lines: Usage,
    /// Those of them that name no request.
    pub bare_lines: Usage,
    /// Every copy inside an `agent_progress` line, summed.
    pub copies: Usage,
    /// Every message once for each file it stands in.
    pub messages: Usage,
}

impl AddAssign for Sheet {
    fn add_assign(&mut self, other: Sheet) {
        self.lines += other.lines;
        self.bare_lines += other.bare_lines;
        self.copies += other.copies;
        self.messages += other.messages;
    }
}

/// A message that was written completely.
pub struct Said {
    /// The day of its first line, in UTC.
    pub day: String,
    /// Who said it.
    pub model: &'static str,
    /// Field by field the largest of its lines.
    pub usage: Usage,
    /// What its first line shows.
    pub first: Usage,
    /// Searches of the web.
    pub web_searches: u64,
    /// Whether its lines name no request.
    pub is_bare: bool,
    /// Whether its output is only known to be at least this.
    pub is_floor: bool,
}

impl Said {
    /// It as a count of one.
    pub fn count(&self) -> Count {
        Count {
            messages: 1,
            usage: self.usage,
            web_searches: self.web_searches,
            floor_messages: u64::from(self.is_floor),
        }
    }
}

/// All books of a tree.
#[derive(Default)]
pub struct Books {
    /// All files together.
    pub sheet: Sheet,
    /// By day and model.
    pub days: BTreeMap<(String, &'static str), Count>,
    total: Count,
    first: Usage,
    bare: Usage,
    /// Messages that stand in files of sub-agents only.
    pub in_agent_files: Usage,
    /// What is lost when copies in `agent_progress` lines win over the agent's own file.
    pub lost_to_copies: Usage,
}

impl Books {
    /// Enters a message.
    pub fn enter(&mut self, said: &Said) {
        let count = said.count();
        *self.days.entry((said.day.clone(), said.model)).or_default() += count;
        self.total += count;
        self.first += said.first;
        if said.is_bare {
            self.bare += said.usage;
        }
    }

    /// Every message once.
    pub fn total(&self) -> Count {
        self.total
    }

    /// By model.
    pub fn models(&self) -> BTreeMap<String, Count> {
        let mut models: BTreeMap<String, Count> = BTreeMap::new();
        for ((_, model), count) in &self.days {
            *models.entry((*model).to_owned()).or_default() += *count;
        }
        models
    }

    /// What usual mistakes make of the tree.
    pub fn mistakes(&self) -> Vec<Mistake> {
        let total = self.total.usage;
        let plus = |mut sum: Usage, other: Usage| {
            sum += other;
            sum
        };
        let hours = Usage {
            cache_write_5m: total.cache_write_5m + total.cache_write_1h,
            cache_write_1h: 0,
            ..total
        };
        let without = |other: Usage| total.minus(other);
        [
            ("every line is summed", self.sheet.lines),
            (
                "every line is summed, agent_progress too",
                plus(self.sheet.lines, self.sheet.copies),
            ),
            ("the first line of a message wins", self.first),
            (
                "files of sub-agents are left out",
                without(self.in_agent_files),
            ),
            ("messages are counted once per file", self.sheet.messages),
            (
                "agent_progress wins over the file of the sub-agent",
                without(self.lost_to_copies),
            ),
            (
                "messages without a request are summed by line",
                plus(without(self.bare), self.sheet.bare_lines),
            ),
            ("one-hour cache writes count as five-minute writes", hours),
        ]
        .map(|(name, usage)| Mistake { name, usage })
        .into()
    }
}
