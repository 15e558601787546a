//! Rows of `prices`.

use schemars::JsonSchema;
use serde::Serialize;
use unspool_model::price::{LongInputRates, ModelPrice, TokenRate, TokenRates};

/// Prices of a model.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PriceRow {
    /// The requested model; without one, the same as `name`.
    pub model: String,
    /// Its name in the table.
    pub name: String,
    /// Dollars per million uncached input tokens.
    pub input: Option<f64>,
    /// Dollars per million output tokens.
    pub output: Option<f64>,
    /// Dollars per million tokens read from the cache; null if unknown.
    pub cache_read: Option<f64>,
    /// Dollars per million tokens written to the five-minute cache.
    pub cache_write_5m: Option<f64>,
    /// Dollars per million tokens written to the one-hour cache.
    pub cache_write_1h: Option<f64>,
    /// Prices of messages with long input; null if they are the same.
    pub long: Option<LongInputPriceRow>,
    /// Prices of the batch API; null if unknown.
    pub batch: Option<RatesRow>,
    /// Dollars per web search.
    pub web_search: Option<f64>,
    /// Price factor of fast mode; null if there is none.
    pub fast: Option<f64>,
    /// Price factor of US-only inference; null if it costs the same.
    pub us: Option<f64>,
    /// Size of its context window in tokens.
    pub context_limit: Option<u64>,
    /// `bundled`, `updated` or `override`.
    pub origin: String,
    /// Date of the price table; null if unknown.
    pub date: Option<String>,
    /// Source of the price table; null if unknown.
    pub source: Option<String>,
}

/// Prices of messages with long input.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LongInputPriceRow {
    /// They apply to messages with more input tokens than this.
    pub above: u64,
    /// The prices.
    #[serde(flatten)]
    pub rates: RatesRow,
    /// Prices of the batch API.
    pub batch: Option<RatesRow>,
}

/// Dollars per million tokens, by kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RatesRow {
    /// Uncached input.
    pub input: Option<f64>,
    /// Output.
    pub output: Option<f64>,
    /// Read from the cache.
    pub cache_read: Option<f64>,
    /// Written to the five-minute cache.
    pub cache_write_5m: Option<f64>,
    /// Written to the one-hour cache.
    pub cache_write_1h: Option<f64>,
}

/// A price change of one model.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PriceChangeRow {
    /// `new`, `changed` or `gone` (missing in the new table; keeps its last price).
    pub change: String,
    /// The model.
    pub model: String,
    /// Its previous prices; null for new models.
    pub before: Option<PriceRow>,
    /// Its new prices; null for models that are gone.
    pub after: Option<PriceRow>,
}

impl PriceRow {
    /// The row of a price, found for this model.
    pub fn new(model: &str, price: &ModelPrice) -> PriceRow {
        let said = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let rates = RatesRow::from(&price.rates);
        PriceRow {
            model: model.to_owned(),
            name: price.name.clone(),
            input: rates.input,
            output: rates.output,
            cache_read: rates.cache_read,
            cache_write_5m: rates.cache_write_5m,
            cache_write_1h: rates.cache_write_1h,
            long: price.long.as_ref().map(LongInputPriceRow::from),
            batch: price.batch.as_ref().map(RatesRow::from),
            web_search: price.web_search.map(|each| each as f64 / 1e12),
            fast: price.fast.map(|factor| factor.value()),
            us: price.us.map(|factor| factor.value()),
            context_limit: price.limit,
            origin: price.origin.name().to_owned(),
            date: said(&price.date),
            source: said(&price.source),
        }
    }
}

impl From<&LongInputRates> for LongInputPriceRow {
    fn from(long: &LongInputRates) -> LongInputPriceRow {
        LongInputPriceRow {
            above: long.above,
            rates: RatesRow::from(&long.rates),
            batch: long.batch.as_ref().map(RatesRow::from),
        }
    }
}

impl From<&TokenRates> for RatesRow {
    fn from(rates: &TokenRates) -> RatesRow {
        let dollars = |rate: Option<TokenRate>| rate.map(TokenRate::per_million);
        RatesRow {
            input: dollars(rates.input),
            output: dollars(rates.output),
            cache_read: dollars(rates.cache_read),
            cache_write_5m: dollars(rates.cache_write_5m),
            cache_write_1h: dollars(rates.cache_write_1h),
        }
    }
}
