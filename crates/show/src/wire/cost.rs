//! Tokens and cost by whose they are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unspool_model::price::Cost;
use unspool_model::view::cost::CostSum;
use unspool_model::view::session_usage::{SessionUsage, UsageTotal};

use crate::wire::session::UsageRow;

/// Usage of some messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageCostRow {
    /// Number of messages.
    pub messages: u64,
    /// Their tokens.
    pub usage: UsageRow,
    /// Their cost; null if any has no known price.
    pub cost_usd: Option<f64>,
    /// Cost of those that have a known price.
    pub cost_usd_known: f64,
    /// Number of those without a known price.
    pub unpriced_messages: u64,
}

impl From<UsageTotal> for UsageCostRow {
    fn from(used: UsageTotal) -> UsageCostRow {
        UsageCostRow {
            messages: used.messages,
            usage: used.usage.into(),
            cost_usd: used.cost.total().map(Cost::usd),
            cost_usd_known: used.cost.known.usd(),
            unpriced_messages: used.cost.unpriced,
        }
    }
}

/// Who used the tokens. Together they are all of `usage` and of the cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsageByOrigin {
    /// The conversation itself.
    pub own: UsageCostRow,
    /// Its sub-agents.
    pub agents: UsageCostRow,
    /// The client's own helpers: compactions, prompt suggestions, warm-ups.
    pub client: UsageCostRow,
}

impl From<&SessionUsage> for UsageByOrigin {
    fn from(used: &SessionUsage) -> UsageByOrigin {
        UsageByOrigin {
            own: used.own.into(),
            agents: used.agents.into(),
            client: used.client.into(),
        }
    }
}

/// The three fields that tell a cost: all of it if that is known, what is known of it, and how
/// many messages have no known price.
pub fn cost_fields(cost: CostSum) -> (Option<f64>, f64, u64) {
    (cost.total().map(Cost::usd), cost.known.usd(), cost.unpriced)
}
