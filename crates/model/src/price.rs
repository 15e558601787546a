//! What models cost: a table of prices, and the cost of a message by it.
//!
//! Prices are whole picodollars (10⁻¹² dollars) per token, so a sum of costs is the same in
//! whatever order it is made. A model that is not in the table has no price: nothing is
//! guessed from its family or from the version before it.

mod model_names;
mod other_makers;
mod read;
mod table_update;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, AddAssign};
use std::sync::OnceLock;

use crate::usage::{PricingTerms, Usage};

pub use read::PriceTableError;

/// What the client names as the model of lines it wrote itself.
pub const SYNTHETIC: &str = "<synthetic>";

/// The price of one token, in picodollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenRate(pub u64);

impl TokenRate {
    /// Dollars for a million tokens, as price lists put it.
    pub fn per_million(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// A number to multiply prices with, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceFactor(pub u64);

impl PriceFactor {
    /// Changes nothing.
    pub const ONE: PriceFactor = PriceFactor(1_000_000);

    /// As a plain number.
    pub fn value(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// What tokens cost, by kind; `None` where the table does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenRates {
    /// Input outside the cache.
    pub input: Option<TokenRate>,
    /// What the model writes.
    pub output: Option<TokenRate>,
    /// Input read from the cache.
    pub cache_read: Option<TokenRate>,
    /// Input written to the five-minute cache.
    pub cache_write_5m: Option<TokenRate>,
    /// Input written to the one-hour cache.
    pub cache_write_1h: Option<TokenRate>,
}

/// Prices of a message whose input is long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongInputRates {
    /// They hold for messages that were given more tokens than this.
    pub above: u64,
    /// The prices, of all tokens of such a message.
    pub rates: TokenRates,
    /// The same through the batch interface.
    pub batch: Option<TokenRates>,
}

/// Which table a price is from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PriceOrigin {
    /// The table that comes with the program.
    #[default]
    Bundled,
    /// A newer one that was taken in.
    Updated,
    /// What a person wrote.
    Override,
}

impl PriceOrigin {
    /// Its name in rows and tables.
    pub fn name(self) -> &'static str {
        match self {
            PriceOrigin::Bundled => "bundled",
            PriceOrigin::Updated => "updated",
            PriceOrigin::Override => "override",
        }
    }
}

/// What one model costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelPrice {
    /// Its name in the table.
    pub name: String,
    /// Prices of tokens. Input and output are always there.
    pub rates: TokenRates,
    /// Prices of messages with long input, where they differ.
    pub long: Option<LongInputRates>,
    /// Prices through the batch interface.
    pub batch: Option<TokenRates>,
    /// Picodollars for one search of the web.
    pub web_search: Option<u64>,
    /// How much dearer the fast mode is.
    pub fast: Option<PriceFactor>,
    /// How much dearer answers from the United States only are.
    pub us: Option<PriceFactor>,
    /// Tokens that fit into its context.
    pub limit: Option<u64>,
    /// Where the price is from.
    pub origin: PriceOrigin,
    /// The day of the table it came with; empty if that does not say.
    pub date: String,
    /// Where that table is from; empty if it does not say.
    pub source: String,
}

/// The prices that hold for one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceTier {
    /// What its tokens cost, before the factor.
    pub rates: TokenRates,
    /// What all of it is multiplied with; searches are not.
    pub factor: PriceFactor,
    /// The prices are those for long input.
    pub long: bool,
    /// The prices are those of the batch interface.
    pub batch: bool,
}

/// Why a message has no cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnpricedReason {
    /// The table does not have the model.
    Model,
    /// The table has the model, but not this price of it.
    Part(&'static str),
}

impl fmt::Display for UnpricedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnpricedReason::Model => write!(f, "no price for this model"),
            UnpricedReason::Part(part) => write!(f, "no price for {part} of this model"),
        }
    }
}

/// An amount of money, in picodollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(pub u128);

impl Cost {
    /// What the client said that a message cost.
    pub fn stated(terms: PricingTerms) -> Option<Cost> {
        terms.stated.map(|stated| Cost(u128::from(stated.get())))
    }

    /// In dollars.
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e12
    }
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(all: I) -> Cost {
        all.fold(Cost::default(), Add::add)
    }
}

/// What a message costs, by what it is paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostShares {
    /// Input outside the cache.
    pub input: Cost,
    /// What the model wrote.
    pub output: Cost,
    /// Input read from the cache.
    pub cache_read: Cost,
    /// Input written to the five-minute cache.
    pub cache_write_5m: Cost,
    /// Input written to the one-hour cache.
    pub cache_write_1h: Cost,
    /// Searches of the web.
    pub searches: Cost,
    /// All of it.
    pub total: Cost,
}

/// A table of prices.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    date: String,
    source: String,
    foreign: bool,
    /// Names of rows that could not be read as a price of tokens.
    priceless: Vec<String>,
    rows: BTreeMap<String, ModelPrice>,
    /// Names of rows by what is left of a name without its provider's additions.
    keys: BTreeMap<String, String>,
    /// Rows of models with a fast mode, as gateways name it: with `-fast` at the end.
    fast: BTreeMap<String, ModelPrice>,
}

impl Prices {
    /// The table that comes with the program.
    pub fn bundled() -> &'static Prices {
        static TABLE: OnceLock<Prices> = OnceLock::new();
        // A test parses the file; if it were broken, every model would be unknown.
        TABLE.get_or_init(|| Prices::parse(include_str!("../data/prices.json")).unwrap_or_default())
    }

    /// Reads a table: ours, or the one that LiteLLM publishes, of which the rows of Claude
    /// models are taken.
    ///
    /// Ours has dollars per million tokens:
    ///
    /// ```
    /// use unspool_model::price::Prices;
    ///
    /// let prices = Prices::parse(r#"{"date": "2026-01-31", "models": {"claude-x-1": {
    ///     "input": 3, "output": 15, "cache_read": 0.3, "cache_write_5m": 3.75, "cache_write_1h": 6,
    ///     "long": {"above": 200000, "input": 6, "output": 22.5},
    ///     "batch": {"input": 1.5, "output": 7.5},
    ///     "web_search": 0.01, "fast": 6, "us": 1.1, "limit": 200000
    /// }}}"#)?;
    /// assert_eq!(prices.date(), "2026-01-31");
    /// # Ok::<(), unspool_model::price::PriceTableError>(())
    /// ```
    ///
    /// `input` and `output` are needed, everything else may be left out. `web_search` is
    /// dollars for one search, `fast` and `us` are factors, `limit` is tokens. A model that
    /// came with another table has a `date` and `source` of its own.
    pub fn parse(json: &str) -> Result<Prices, PriceTableError> {
        read::parse(json)
    }

    /// A table of these rows; a later one of the same name stands in the place of an earlier.
    /// Rows that do not say where they are from are from here.
    pub fn new(date: &str, source: &str, rows: impl IntoIterator<Item = ModelPrice>) -> Prices {
        let either = |own: String, other: &str| match own.is_empty() {
            true => other.to_owned(),
            false => own,
        };
        let rows = rows.into_iter().map(|row| ModelPrice {
            date: either(row.date, date),
            source: either(row.source, source),
            ..row
        });
        Prices::gathered(date, source, rows)
    }

    /// A table of rows that were in others before.
    fn gathered(date: &str, source: &str, rows: impl IntoIterator<Item = ModelPrice>) -> Prices {
        let rows: BTreeMap<String, ModelPrice> = rows
            .into_iter()
            .map(|price| (price.name.clone(), price))
            .collect();
        Prices {
            date: date.to_owned(),
            source: source.to_owned(),
            foreign: false,
            priceless: Vec::new(),
            keys: model_names::keys(rows.keys()),
            fast: rows.values().filter_map(ModelPrice::in_fast_mode).collect(),
            rows,
        }
    }

    /// The same table, all of it from there.
    #[must_use]
    pub fn marked(mut self, origin: PriceOrigin) -> Prices {
        for price in self.rows.values_mut() {
            price.origin = origin;
        }
        self
    }

    /// This table with the rows of another in the place of its own. Models that only this
    /// one has stay: sessions of models that are gone have a price too.
    #[must_use]
    pub fn merged(&self, over: Prices) -> Prices {
        let either = |new: String, old: &str| if new.is_empty() { old.to_owned() } else { new };
        let date = either(over.date, &self.date);
        let source = either(over.source, &self.source);
        let own = self.rows.values().cloned();
        Prices::gathered(&date, &source, own.chain(over.rows.into_values()))
    }

    /// A newer table that LiteLLM publishes, with what only this one has: models that are
    /// retired, and terms that were withdrawn.
    #[must_use]
    pub fn renewed(&self, newest: &Prices) -> Prices {
        table_update::renewed(newest, self)
    }

    /// The rows of a newer table that LiteLLM publishes, as they stand in the place of the
    /// rows here: without those that are of no use, and with terms that were withdrawn.
    ///
    /// A row without prices of the cache keeps those of before if its input and output cost
    /// what they did; else they are unknown, since they belonged to another price.
    #[must_use]
    pub fn renewal(&self, newest: &Prices) -> Prices {
        table_update::renewal(newest, self)
    }

    /// Names of the rows of `newest` that are of no effect in this table, which took it in.
    pub fn unused<'a>(&self, newest: &'a Prices) -> Vec<&'a str> {
        table_update::unused(newest, self)
    }

    /// The day of the table; empty if it does not say.
    pub fn date(&self) -> &str {
        &self.date
    }

    /// Where it is from; empty if it does not say.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether it was read from LiteLLM's format.
    pub fn is_litellm(&self) -> bool {
        self.foreign
    }

    /// All rows by name.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &ModelPrice> {
        self.rows.values()
    }

    /// The row of exactly this name.
    pub fn row(&self, name: &str) -> Option<&ModelPrice> {
        self.rows.get(name)
    }

    /// The price of a model as transcripts name it.
    ///
    /// A name that is not in the table is looked for without what providers add to it
    /// (`us.anthropic.…-v1:0`, `vertex_ai/…@20250929`, `…[1m]`), then without its date, then
    /// as the short name of rows with a date, if they all cost the same. Then without what only
    /// says how the model was asked (`-thinking`, `-fast`, which costs what the fast mode does),
    /// and with its version before or behind its family (`claude-4.5-sonnet`). Nothing else: an
    /// unknown model is `None`, and so is a region of a cloud whose price is not listed where
    /// others' are.
    pub fn find(&self, model: &str) -> Option<&ModelPrice> {
        self.listed(model).or_else(|| {
            if let Some(plain) = model_names::without(model, "-fast") {
                return self.fast.get(&self.listed_otherwise(&plain)?.name);
            }
            self.listed_otherwise(model)
        })
    }

    fn listed_otherwise(&self, model: &str) -> Option<&ModelPrice> {
        let thinking = model_names::without(model, "-thinking");
        let model = thinking.as_deref().unwrap_or(model);
        let other = || self.listed(&model_names::reordered(model)?);
        self.listed(model).or_else(other)
    }

    fn listed(&self, model: &str) -> Option<&ModelPrice> {
        self.row(model)
            .or_else(|| self.row(model_names::find(&self.keys, model)?))
            .or_else(|| {
                let mut dated = model_names::dated(&self.keys, model);
                let last = self.row(dated.pop()?)?;
                let terms = |row: &ModelPrice| (row.rates, row.long, row.batch);
                let mut others = dated.into_iter().filter_map(|name| self.row(name));
                others.all(|row| terms(row) == terms(last)).then_some(last)
            })
    }

    /// What a message costs; `None` if the table does not say.
    pub fn cost(&self, model: &str, usage: Usage, terms: PricingTerms) -> Option<Cost> {
        self.charge(model, usage, terms).ok()
    }

    /// What a message costs, or why that is not known.
    pub fn charge(
        &self,
        model: &str,
        usage: Usage,
        terms: PricingTerms,
    ) -> Result<Cost, UnpricedReason> {
        if model == SYNTHETIC {
            return Ok(Cost::default());
        }
        let price = self.find(model).ok_or(UnpricedReason::Model)?;
        price.charge(usage, terms)
    }

    /// How many tokens fit into the context of a model.
    ///
    /// More than that were seen in a session only where the long context was switched on,
    /// which the name says (`[1m]`) on some lines and not on others.
    pub fn limit(&self, model: &str, seen: u64) -> Option<u64> {
        let listed = self.find(model).and_then(|price| price.limit);
        // A new model is not in the table yet; all that the name says is whose it is.
        let usual = listed.or_else(|| model.contains("claude").then_some(200_000))?;
        let long = model.contains("[1m]") || seen > usual;
        Some(if long { usual.max(1_000_000) } else { usual })
    }

    /// The table in our own format, one line per model.
    pub fn to_json(&self) -> String {
        write::json(self)
    }
}

impl TokenRates {
    fn times(self, factor: PriceFactor) -> TokenRates {
        let times = |rate: Option<TokenRate>| {
            let rate = u128::from(rate?.0) * u128::from(factor.0) / u128::from(PriceFactor::ONE.0);
            u64::try_from(rate).ok().map(TokenRate)
        };
        TokenRates {
            input: times(self.input),
            output: times(self.output),
            cache_read: times(self.cache_read),
            cache_write_5m: times(self.cache_write_5m),
            cache_write_1h: times(self.cache_write_1h),
        }
    }
}

impl ModelPrice {
    /// The same model where the fast mode is part of its name.
    fn in_fast_mode(&self) -> Option<(String, ModelPrice)> {
        let factor = self.fast?;
        let fast = ModelPrice {
            rates: self.rates.times(factor),
            long: self.long.map(|long| LongInputRates {
                rates: long.rates.times(factor),
                batch: None,
                ..long
            }),
            batch: None,
            // What it is called says it already.
            fast: Some(PriceFactor::ONE),
            ..self.clone()
        };
        Some((self.name.clone(), fast))
    }

    /// The prices that hold for a message.
    pub fn tier(&self, usage: Usage, terms: PricingTerms) -> Result<PriceTier, UnpricedReason> {
        let long = self
            .long
            .as_ref()
            .filter(|long| usage.context() > long.above);
        let (plain, batch) = match long {
            Some(long) => (long.rates, long.batch),
            None => (self.rates, self.batch),
        };
        let rates = if terms.batch {
            batch.ok_or(UnpricedReason::Part("batches"))?
        } else {
            plain
        };
        let fast = if terms.fast {
            self.fast.ok_or(UnpricedReason::Part("the fast mode"))?
        } else {
            PriceFactor::ONE
        };
        // Models without a factor cost the same everywhere.
        let us = self.us.filter(|_| terms.us).unwrap_or(PriceFactor::ONE);
        Ok(PriceTier {
            rates,
            factor: PriceFactor(fast.0.saturating_mul(us.0) / PriceFactor::ONE.0),
            long: long.is_some(),
            batch: terms.batch,
        })
    }

    /// What a message costs, or which price the table lacks for it.
    pub fn charge(&self, usage: Usage, terms: PricingTerms) -> Result<Cost, UnpricedReason> {
        self.shares(usage, terms).map(|shares| shares.total)
    }

    /// What a message costs, by what it is paid for.
    pub fn shares(&self, usage: Usage, terms: PricingTerms) -> Result<CostShares, UnpricedReason> {
        let tier = self.tier(usage, terms)?;
        let rates = &tier.rates;
        let part = |count: u64, rate: Option<TokenRate>, what| match (count, rate) {
            (0, _) => Ok(0),
            (_, None) => Err(UnpricedReason::Part(what)),
            (count, Some(rate)) => Ok(u128::from(count) * u128::from(rate.0)),
        };
        let parts = [
            part(usage.input, rates.input, "input")?,
            part(usage.output, rates.output, "output")?,
            part(usage.cache_read, rates.cache_read, "cache reads")?,
            part(
                usage.cache_write_5m,
                rates.cache_write_5m,
                "five-minute cache writes",
            )?,
            part(
                usage.cache_write_1h,
                rates.cache_write_1h,
                "one-hour cache writes",
            )?,
        ];
        let scaled = |tokens: u128| {
            tokens.saturating_mul(u128::from(tier.factor.0)) / u128::from(PriceFactor::ONE.0)
        };
        let tokens = parts
            .iter()
            .fold(0, |sum: u128, part| sum.saturating_add(*part));
        let searches = match (terms.web_searches, self.web_search) {
            (0, _) => 0,
            (_, None) => return Err(UnpricedReason::Part("web searches")),
            (count, Some(each)) => u128::from(count) * u128::from(each),
        };
        let [input, output, cache_read, cache_write_5m, cache_write_1h] =
            parts.map(|part| Cost(scaled(part)));
        Ok(CostShares {
            input,
            output,
            cache_read,
            cache_write_5m,
            cache_write_1h,
            searches: Cost(searches),
            total: Cost(scaled(tokens).saturating_add(searches)),
        })
    }
}
