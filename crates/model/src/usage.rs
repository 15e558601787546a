//! Tokens, and the one rule about them: lines of one message repeat, they never add up.

use std::num::NonZeroU64;
use std::ops::AddAssign;

/// Tokens of one message, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input that was neither read from nor written to the cache.
    pub input: u64,
    /// What the model wrote.
    pub output: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the five-minute cache; writes without a split count here.
    pub cache_write_5m: u64,
    /// Input written to the one-hour cache.
    pub cache_write_1h: u64,
}

impl Usage {
    /// Field by field the larger one; of cache writes all of them, and those for an hour. A
    /// line may tell only how many there were and the next one how they were split, so the
    /// five-minute ones are the rest.
    ///
    /// The lines of one message repeat its usage, and while it streams they hold a
    /// placeholder for the output (2.0.50 to 2.1.58), so the maximum is the truth.
    #[must_use]
    pub fn max(self, other: Usage) -> Usage {
        let hour = self.cache_write_1h.max(other.cache_write_1h);
        Usage {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cache_read: self.cache_read.max(other.cache_read),
            cache_write_5m: self.writes().max(other.writes()).saturating_sub(hour),
            cache_write_1h: hour,
        }
    }

    fn writes(self) -> u64 {
        self.cache_write_5m.saturating_add(self.cache_write_1h)
    }

    /// Tokens the model was given: what fills its context before it answers.
    pub fn context(self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.writes())
    }

    /// All tokens.
    pub fn total(self) -> u64 {
        self.context().saturating_add(self.output)
    }
}

/// What decides the price of a message beside its tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PricingTerms {
    /// Searches of the web that the model made; each is charged.
    pub web_searches: u32,
    /// Sent through the batch interface.
    pub batch: bool,
    /// Answered in the fast mode.
    pub fast: bool,
    /// Answered in the United States only.
    pub us: bool,
    /// What the client itself said it cost, in picodollars: clients up to 1.0 did. It counts
    /// where no price is known.
    pub stated: Option<NonZeroU64>,
}

impl PricingTerms {
    /// What either of two lines of one message says.
    #[must_use]
    pub fn max(self, other: PricingTerms) -> PricingTerms {
        PricingTerms {
            web_searches: self.web_searches.max(other.web_searches),
            batch: self.batch || other.batch,
            fast: self.fast || other.fast,
            us: self.us || other.us,
            stated: self.stated.max(other.stated),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write_5m = self.cache_write_5m.saturating_add(other.cache_write_5m);
        self.cache_write_1h = self.cache_write_1h.saturating_add(other.cache_write_1h);
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Usage>>(all: I) -> Usage {
        all.fold(Usage::default(), |mut sum, usage| {
            sum += usage;
            sum
        })
    }
}
