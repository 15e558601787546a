//! What asking would take, before anybody is asked.

use unspool_model::edit::compress::CompressTask;
use unspool_model::usage::{PricingTerms, Usage};
use unspool_show::format;

use super::CompressProvider;
use crate::command_context::CommandContext;

/// About how much would be sent and said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompressEstimate {
    /// How many questions.
    pub questions: u64,
    /// Each question by itself: a long one may have another price.
    each: Vec<Usage>,
}

/// What stands around an answer.
const FORM: u64 = 10;

/// About how long a summary becomes.
const SUMMARY: u64 = 1_500;

impl CompressEstimate {
    /// For these tasks and what is asked for each.
    pub fn of<'a>(asked: impl Iterator<Item = (&'a CompressTask, &'a String)>) -> CompressEstimate {
        let one = |(task, request): (&CompressTask, &String)| Usage {
            input: unspool_model::token_estimate::of_text(request),
            output: (task.tokens * u64::from(task.share)).div_ceil(100) + FORM,
            ..Usage::default()
        };
        CompressEstimate::sum(asked.map(one).collect())
    }

    /// For one summary.
    pub fn of_summary(request: &str) -> CompressEstimate {
        CompressEstimate::sum(vec![Usage {
            input: unspool_model::token_estimate::of_text(request),
            output: SUMMARY,
            ..Usage::default()
        }])
    }

    fn sum(each: Vec<Usage>) -> CompressEstimate {
        CompressEstimate {
            questions: each.len() as u64,
            each,
        }
    }

    /// Tokens of all questions.
    pub fn usage(&self) -> Usage {
        let mut all = Usage::default();
        self.each.iter().for_each(|usage| all += *usage);
        all
    }

    /// The price in dollars; `None` if it is not known.
    pub fn price(&self, world: &CommandContext, who: &CompressProvider) -> Option<f64> {
        let CompressProvider::Model { name, .. } = who else {
            return None;
        };
        let prices = world.prices();
        let costs = self
            .each
            .iter()
            .map(|usage| prices.cost(name, *usage, PricingTerms::default()));
        costs.map(|cost| cost.map(|cost| cost.usd())).sum()
    }

    /// In words: how much, of whom, for how much.
    pub fn words(&self, world: &CommandContext, who: &CompressProvider) -> String {
        let usage = self.usage();
        let (sent, said) = (format::tokens(usage.input), format::tokens(usage.output));
        let many = format::count(self.questions, "request");
        let whom = match who {
            CompressProvider::Command(line) => format!("`{line}`"),
            CompressProvider::Model { name, .. } => name.clone(),
        };
        let price = match (who, self.price(world, who)) {
            (CompressProvider::Command(_), _) => String::new(),
            (_, Some(usd)) => format!(", {}", about(usd)),
            (_, None) => ", unknown price".to_owned(),
        };
        format!("{many} to {whom}, about {sent} input and {said} output tokens{price}")
    }
}

fn about(usd: f64) -> String {
    let dollars = format::dollars(usd);
    match dollars.strip_prefix('<') {
        Some(most) => format!("less than {most}"),
        None => format!("about {dollars}"),
    }
}
