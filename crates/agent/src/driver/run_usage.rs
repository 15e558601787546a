//! What a run has taken: tokens and money, by model.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use unspool_model::price::Prices;
use unspool_model::usage::{PricingTerms, Usage};

/// What a run has taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunUsage {
    /// All tokens.
    pub usage: Usage,
    /// Dollars, as far as prices are known.
    pub usd: f64,
    /// How many answers have no known price.
    pub unpriced_messages: u64,
    /// Searches of the web.
    pub searches: u64,
    /// The same by model.
    pub models: BTreeMap<String, (Usage, f64)>,
    /// Models without a price.
    pub unpriced: Vec<String>,
}

impl RunUsage {
    /// Adds an answer, at these prices.
    pub fn add(&mut self, model: &str, usage: &Map<String, Value>, prices: &Prices) {
        let (tokens, searches) = read(usage);
        self.usage += tokens;
        self.searches += searches;
        let is = |key: &str, value: &str| usage.get(key).and_then(Value::as_str) == Some(value);
        let terms = PricingTerms {
            web_searches: u32::try_from(searches).unwrap_or(u32::MAX),
            batch: is("service_tier", "batch"),
            fast: is("speed", "fast"),
            us: is("inference_geo", "us"),
            ..PricingTerms::default()
        };
        let cost = prices.cost(model, tokens, terms);
        if cost.is_none() {
            self.unpriced_messages += 1;
            if !self.unpriced.iter().any(|name| name == model) {
                self.unpriced.push(model.to_owned());
            }
        }
        let usd = cost.map_or(0.0, |cost| cost.usd());
        self.usd += usd;
        let of_model = self.models.entry(model.to_owned()).or_default();
        of_model.0 += tokens;
        of_model.1 += usd;
    }

    /// Dollars; `None` if an answer has no known price.
    pub fn cost(&self) -> Option<f64> {
        (self.unpriced_messages == 0).then_some(self.usd)
    }

    /// Whether so many dollars are spent, or may be: what has no price may cost anything.
    pub fn reaches(&self, most: f64) -> bool {
        self.usd >= most || self.unpriced_messages > 0
    }

    /// `usage` as the API writes it.
    pub fn json(&self) -> Value {
        usage_json(self.usage)
    }
}

/// Tokens as the API writes them.
pub fn usage_json(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write_5m + usage.cache_write_1h,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
        "cache_creation": {
            "ephemeral_1h_input_tokens": usage.cache_write_1h,
            "ephemeral_5m_input_tokens": usage.cache_write_5m,
        },
    })
}

fn read(usage: &Map<String, Value>) -> (Usage, u64) {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    let split = usage.get("cache_creation");
    let hour = split
        .and_then(|split| split["ephemeral_1h_input_tokens"].as_u64())
        .unwrap_or(0);
    let tools = usage.get("server_tool_use");
    let searches = tools
        .and_then(|tools| tools["web_search_requests"].as_u64())
        .unwrap_or(0);
    let tokens = Usage {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cache_read: count("cache_read_input_tokens"),
        cache_write_5m: count("cache_creation_input_tokens").saturating_sub(hour),
        cache_write_1h: hour,
    };
    (tokens, searches)
}
