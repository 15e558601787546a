//! Reads tables of prices: our own format, and LiteLLM's.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Value};

use super::other_makers;
use super::{LongInputRates, ModelPrice, PriceFactor, PriceOrigin, Prices, TokenRate, TokenRates};

/// Why a file is no table of prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceTableError {
    /// What is wrong, and with which model.
    pub what: String,
    /// Line and column, from 1, where they are known.
    pub at: Option<(usize, usize)>,
}

impl fmt::Display for PriceTableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "line {line}, column {column}: {}", self.what),
            None => write!(f, "{}", self.what),
        }
    }
}

impl std::error::Error for PriceTableError {}

impl From<serde_json::Error> for PriceTableError {
    fn from(error: serde_json::Error) -> PriceTableError {
        let text = error.to_string();
        let said = text
            .rsplit_once(" at line ")
            .map_or(&*text, |(said, _)| said);
        let what = match error.classify() {
            Category::Eof => "unexpected end of file".to_owned(),
            Category::Syntax | Category::Io => format!("invalid JSON ({said})"),
            Category::Data => mistaken(said).unwrap_or_else(|| said.to_owned()),
        };
        // The first column is 1, but nothing was read yet where a list begins the file.
        let at = (error.line() > 0).then(|| (error.line(), error.column().max(1)));
        PriceTableError { what, at }
    }
}

/// The parser's words about a value of the wrong kind, for people.
fn mistaken(said: &str) -> Option<String> {
    let (found, wanted) = said.strip_prefix("invalid ")?.rsplit_once(", expected ")?;
    let (_, found) = found.split_once(": ")?;
    let found = match found {
        "sequence" => "a list",
        "map" => "an object",
        "null" => "`null`",
        // `integer `3``, `string "3"`: the value says of which kind it is.
        other => other
            .find(['`', '"'])
            .and_then(|at| other.get(at..))
            .unwrap_or(other),
    };
    let wanted = match wanted {
        "f64" => "a number",
        "u64" => "a whole number",
        "a string" => "a text",
        other => other,
    };
    Some(format!("expected {wanted}, found {found}"))
}

fn bad(what: String) -> PriceTableError {
    PriceTableError { what, at: None }
}

pub fn parse(json: &str) -> Result<Prices, PriceTableError> {
    let ModelsObject(PriceFormatProbe { models }) = serde_json::from_str(json)?;
    if models.is_some() {
        ours(json)
    } else {
        litellm(json)
    }
}

/// Something that only an object can be; a list with the same values in order is not.
struct ObjectVisitor<T> {
    wanted: &'static str,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wanted)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
    wanted: &'static str,
) -> Result<T, D::Error> {
    let of = PhantomData;
    from.deserialize_map(ObjectVisitor { wanted, of })
}

/// An object whose fields are models.
struct ModelsObject<T>(T);

/// An object whose fields are prices.
struct PricesObject<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ModelsObject<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ModelsObject<T>, D::Error> {
        object(from, "an object of models").map(ModelsObject)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PricesObject<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<PricesObject<T>, D::Error> {
        object(from, "an object of prices").map(PricesObject)
    }
}

/// Enough of a file to tell the two formats apart.
#[derive(Deserialize)]
struct PriceFormatProbe {
    models: Option<IgnoredAny>,
}

/// Our own format. A name it does not know is an error, since the price that was meant
/// would be missing without a word.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    #[serde(default)]
    date: String,
    #[serde(default)]
    source: String,
    models: ModelsObject<BTreeMap<String, PricesObject<PriceTableRow>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTableRow {
    input: DollarsPerMillion,
    output: DollarsPerMillion,
    cache_read: Option<DollarsPerMillion>,
    cache_write_5m: Option<DollarsPerMillion>,
    cache_write_1h: Option<DollarsPerMillion>,
    long: Option<PricesObject<LongPriceRow>>,
    batch: Option<PricesObject<PerMillionRates>>,
    web_search: Option<DollarAmount>,
    fast: Option<PriceMultiplier>,
    us: Option<PriceMultiplier>,
    limit: Option<u64>,
    #[serde(default)]
    date: String,
    #[serde(default)]
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LongPriceRow {
    above: u64,
    input: DollarsPerMillion,
    output: DollarsPerMillion,
    cache_read: Option<DollarsPerMillion>,
    cache_write_5m: Option<DollarsPerMillion>,
    cache_write_1h: Option<DollarsPerMillion>,
    batch: Option<PricesObject<PerMillionRates>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PerMillionRates {
    input: DollarsPerMillion,
    output: DollarsPerMillion,
    cache_read: Option<DollarsPerMillion>,
    cache_write_5m: Option<DollarsPerMillion>,
    cache_write_1h: Option<DollarsPerMillion>,
}

impl PerMillionRates {
    fn rates(self) -> TokenRates {
        TokenRates {
            input: Some(self.input.0),
            output: Some(self.output.0),
            cache_read: self.cache_read.map(|rate| rate.0),
            cache_write_5m: self.cache_write_5m.map(|rate| rate.0),
            cache_write_1h: self.cache_write_1h.map(|rate| rate.0),
        }
    }
}

struct DollarsPerMillion(TokenRate);
struct DollarAmount(u64);
struct PriceMultiplier(PriceFactor);

impl<'de> Deserialize<'de> for DollarsPerMillion {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<DollarsPerMillion, D::Error> {
        let dollars = f64::deserialize(from)?;
        let rate = scaled(dollars, 1e6).ok_or_else(|| not_a_price::<D>(dollars))?;
        Ok(DollarsPerMillion(TokenRate(rate)))
    }
}

impl<'de> Deserialize<'de> for DollarAmount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<DollarAmount, D::Error> {
        let dollars = f64::deserialize(from)?;
        let price = scaled(dollars, 1e12).ok_or_else(|| not_a_price::<D>(dollars))?;
        Ok(DollarAmount(price))
    }
}

impl<'de> Deserialize<'de> for PriceMultiplier {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<PriceMultiplier, D::Error> {
        let times = f64::deserialize(from)?;
        let factor = scaled(times, 1e6).filter(|&factor| factor > 0);
        let factor =
            factor.ok_or_else(|| D::Error::custom(format!("{times} is not a valid factor")))?;
        Ok(PriceMultiplier(PriceFactor(factor)))
    }
}

fn not_a_price<'de, D: Deserializer<'de>>(number: f64) -> D::Error {
    D::Error::custom(format!("{number} is not a valid price"))
}

/// A number in smaller units; `None` if it is negative, or so large that it is a mistake.
fn scaled(number: f64, by: f64) -> Option<u64> {
    let scaled = (number * by).round();
    (0.0..1e15).contains(&scaled).then_some(scaled as u64)
}

fn ours(json: &str) -> Result<Prices, PriceTableError> {
    let table: PriceTable = serde_json::from_str(json)?;
    let ModelsObject(rows) = table.models;
    let rows = rows
        .into_iter()
        .map(|(name, PricesObject(row))| row.price(name));
    Ok(Prices::new(&table.date, &table.source, rows))
}

impl PriceTableRow {
    fn price(self, name: String) -> ModelPrice {
        let rates = PerMillionRates {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write_5m: self.cache_write_5m,
            cache_write_1h: self.cache_write_1h,
        };
        ModelPrice {
            name,
            rates: rates.rates(),
            long: self.long.map(|PricesObject(long)| long.long()),
            batch: self.batch.map(|PricesObject(batch)| batch.rates()),
            web_search: self.web_search.map(|price| price.0),
            fast: self.fast.map(|times| times.0),
            us: self.us.map(|times| times.0),
            limit: self.limit,
            origin: PriceOrigin::default(),
            date: self.date,
            source: self.source,
        }
    }
}

impl LongPriceRow {
    fn long(self) -> LongInputRates {
        let rates = PerMillionRates {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write_5m: self.cache_write_5m,
            cache_write_1h: self.cache_write_1h,
        };
        LongInputRates {
            above: self.above,
            rates: rates.rates(),
            batch: self.batch.map(|PricesObject(batch)| batch.rates()),
        }
    }
}

/// LiteLLM's format: dollars per token, a field per kind, tier and interface. It says of
/// some models what they cost by the second, or nothing at all; of those only the names are
/// kept.
fn litellm(json: &str) -> Result<Prices, PriceTableError> {
    let LiteLlmTable(models) = serde_json::from_str(json)?;
    let mut rows = Vec::new();
    let mut priceless = Vec::new();
    for (name, PricesObject(fields)) in models {
        match litellm_row(&name, &fields)? {
            Some(row) => rows.push(row),
            None => priceless.push(name),
        }
    }
    if rows.is_empty() {
        return Err(bad("it contains no price of a Claude model".to_owned()));
    }
    Ok(Prices {
        foreign: true,
        priceless,
        ..Prices::new("", "", rows)
    })
}

/// The rows of a LiteLLM table whose names are those of Claude models, or of models of other
/// makers that people use through Claude Code.
struct LiteLlmTable(BTreeMap<String, PricesObject<Map<String, Value>>>);

impl<'de> Deserialize<'de> for LiteLlmTable {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<LiteLlmTable, D::Error> {
        struct LiteLlmVisitor;

        impl<'de> Visitor<'de> for LiteLlmVisitor {
            type Value = LiteLlmTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an object of models")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LiteLlmTable, A::Error> {
                let mut rows = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name.contains("claude") || other_makers::own_name(&name).is_some() {
                        rows.insert(name, map.next_value()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(LiteLlmTable(rows))
            }
        }

        from.deserialize_map(LiteLlmVisitor)
    }
}

fn litellm_row(
    name: &str,
    fields: &Map<String, Value>,
) -> Result<Option<ModelPrice>, PriceTableError> {
    let row = LiteLlmFields { name, fields };
    let rates = row.rates("", "")?;
    if rates.input.is_none() || rates.output.is_none() {
        return Ok(None);
    }
    let batch = row.batch("", rates)?;
    let long = match row.above() {
        Some(above) => row.long(above)?,
        None => None,
    };
    let extra = |key: &str| fields.get("provider_specific_entry")?.get(key);
    let search = fields
        .get("search_context_cost_per_query")
        .and_then(|prices| prices.get("search_context_size_medium"));
    Ok(Some(ModelPrice {
        rates,
        long,
        batch,
        web_search: row.number("search_context_cost_per_query", search, 1e12)?,
        fast: row.number("fast", extra("fast"), 1e6)?.map(PriceFactor),
        us: row.number("us", extra("us"), 1e6)?.map(PriceFactor),
        limit: fields.get("max_input_tokens").and_then(Value::as_u64),
        origin: PriceOrigin::default(),
        name: other_makers::own_name(name).unwrap_or_else(|| name.to_owned()),
        date: String::new(),
        source: String::new(),
    }))
}

/// The fields of one model in LiteLLM's table.
struct LiteLlmFields<'a> {
    name: &'a str,
    fields: &'a Map<String, Value>,
}

impl LiteLlmFields<'_> {
    /// The prices of one tier (`_above_200k_tokens`) and interface (`_batches`).
    fn rates(&self, tier: &str, interface: &str) -> Result<TokenRates, PriceTableError> {
        let rate = |kind: &str| self.rate(&format!("{kind}{tier}{interface}"));
        Ok(TokenRates {
            input: rate("input_cost_per_token")?,
            output: rate("output_cost_per_token")?,
            cache_read: rate("cache_read_input_token_cost")?,
            cache_write_5m: rate("cache_creation_input_token_cost")?,
            cache_write_1h: rate("cache_creation_input_token_cost_above_1hr")?,
        })
    }

    fn batch(&self, tier: &str, plain: TokenRates) -> Result<Option<TokenRates>, PriceTableError> {
        let listed = self.rates(tier, "_batches")?;
        let (Some(input), Some(_)) = (listed.input, listed.output) else {
            return Ok(None);
        };
        // The table has no field for one-hour writes in batches; the maker takes the same
        // share off everything that goes through that interface.
        let share = |rate: TokenRate| {
            let whole = plain.input.filter(|whole| whole.0 > 0)?;
            let scaled = u128::from(rate.0) * u128::from(input.0) / u128::from(whole.0);
            u64::try_from(scaled).ok().map(TokenRate)
        };
        Ok(Some(TokenRates {
            cache_write_1h: listed.cache_write_1h.or_else(|| {
                let hour = listed.cache_write_5m.and(plain.cache_write_1h);
                hour.and_then(share)
            }),
            ..listed
        }))
    }

    /// From how many thousand tokens on the input is long.
    fn above(&self) -> Option<u64> {
        self.fields.keys().find_map(|key| {
            let tier = key.strip_prefix("input_cost_per_token_above_")?;
            tier.strip_suffix("k_tokens")?.parse().ok()
        })
    }

    fn long(&self, thousands: u64) -> Result<Option<LongInputRates>, PriceTableError> {
        let tier = format!("_above_{thousands}k_tokens");
        let rates = self.rates(&tier, "")?;
        if rates.input.is_none() || rates.output.is_none() {
            return Ok(None);
        }
        Ok(Some(LongInputRates {
            above: thousands.saturating_mul(1_000),
            rates,
            batch: self.batch(&tier, rates)?,
        }))
    }

    fn rate(&self, key: &str) -> Result<Option<TokenRate>, PriceTableError> {
        let rate = self.number(key, self.fields.get(key), 1e12)?;
        Ok(rate.map(TokenRate))
    }

    fn number(
        &self,
        key: &str,
        value: Option<&Value>,
        by: f64,
    ) -> Result<Option<u64>, PriceTableError> {
        match value {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let number = value.as_f64().and_then(|number| scaled(number, by));
                let wrong = || {
                    bad(format!(
                        "`{}`: {value} is not a valid value of `{key}`",
                        self.name
                    ))
                };
                number.map(Some).ok_or_else(wrong)
            }
        }
    }
}
