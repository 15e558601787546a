//! Names of models, and what each accepts.

use serde_json::{Value, json};
use unspool_model::price::Prices;

/// How much a model should think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkingMode {
    /// As the model is best used.
    #[default]
    Auto,
    /// Not at all, if that can be said.
    Off,
    /// Up to so many tokens.
    Budget(u64),
}

/// The families that can be named without a version.
pub const FAMILIES: [&str; 5] = ["opus", "sonnet", "haiku", "fable", "mythos"];

/// The model that a name means: `sonnet` is the newest of its family, anything else is itself.
pub fn named(name: &str, prices: &Prices) -> String {
    let name = name.trim();
    let (plain, long) = match name.strip_suffix("[1m]") {
        Some(plain) => (plain, "[1m]"),
        None => (name, ""),
    };
    let family = match plain.to_ascii_lowercase().as_str() {
        "" | "default" => "sonnet".to_owned(),
        other => other.to_owned(),
    };
    if !FAMILIES.contains(&family.as_str()) {
        return name.to_owned();
    }
    match newest(&family, prices) {
        Some(newest) => newest + long,
        None => name.to_owned(),
    }
}

/// The newest model of a family in the table of prices, under its short name.
fn newest(family: &str, prices: &Prices) -> Option<String> {
    let rows = prices.rows();
    let of_family = rows.filter(|row| row.name.starts_with(&format!("claude-{family}-")));
    let dated = of_family.filter_map(|row| Some((version(&row.name)?, row.name.clone())));
    let newest = dated.max_by(|(a, long), (b, short)| a.cmp(b).then(short.len().cmp(&long.len())));
    newest.map(|(_, name)| name)
}

/// The small, fast model for side questions.
pub fn small(prices: &Prices) -> String {
    named("haiku", prices)
}

/// The version in a name: `claude-opus-4-5-20251101` is 4.5.
pub fn version(name: &str) -> Option<(u32, u32)> {
    let name = name.split('[').next().unwrap_or(name);
    let numbers = name.split(['-', '@', '.', '_']).filter_map(|part| {
        let short = part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        short.then(|| part.parse().ok())?
    });
    let mut numbers = numbers;
    let major = numbers.next()?;
    Some((major, numbers.next().unwrap_or(0)))
}

fn is_of(name: &str, family: &str) -> bool {
    name.contains(family)
}

/// Whether a model thinks as it sees fit, or has to be told how much.
pub fn adapts(name: &str) -> bool {
    is_of(name, "fable") || is_of(name, "mythos") || version(name).is_some_and(|it| it >= (4, 6))
}

/// Whether a model can be given a budget.
fn takes_budget(name: &str) -> bool {
    version(name).is_some_and(|it| ((3, 7)..(4, 7)).contains(&it)) && !is_of(name, "fable")
}

/// `thinking` of the request, if there is anything to say. A model is never sent a kind it
/// does not know.
pub fn thinking(name: &str, wish: ThinkingMode, most: u64) -> Option<Value> {
    match wish {
        ThinkingMode::Auto if adapts(name) => Some(json!({"type": "adaptive"})),
        ThinkingMode::Auto | ThinkingMode::Off => None,
        ThinkingMode::Budget(tokens) if takes_budget(name) => {
            let budget = tokens.max(1024).min(most.saturating_sub(1));
            (budget >= 1024).then(|| json!({"type": "enabled", "budget_tokens": budget}))
        }
        ThinkingMode::Budget(_) if adapts(name) => Some(json!({"type": "adaptive"})),
        ThinkingMode::Budget(_) => None,
    }
}

/// Whether a model can be told how hard to try.
pub fn takes_effort(name: &str) -> bool {
    adapts(name) || (is_of(name, "opus") && version(name) == Some((4, 5)))
}

/// How many tokens an answer may take.
pub fn most_output(name: &str) -> u64 {
    match version(name) {
        Some(old) if old < (3, 5) => 4_096,
        Some(old) if old < (3, 7) => 8_192,
        Some(old) if old < (4, 5) && is_of(name, "opus") => 32_000,
        Some(_) => 32_000,
        None => 8_192,
    }
}

/// How many tokens fit into its context.
pub fn window(name: &str, seen: u64, prices: &Prices) -> u64 {
    prices.limit(name, seen).unwrap_or(200_000)
}

/// The name as the API knows it: without what only says how much context there is.
pub fn plain(name: &str) -> &str {
    name.split('[').next().unwrap_or(name)
}

/// Whether what `said` thought may be sent to `asked`.
pub fn is_same(said: &str, asked: &str) -> bool {
    let (said, asked) = (plain(said), plain(asked));
    let undated = |name: &str| {
        let cut = name.rsplit_once('-');
        let dated = cut
            .filter(|(_, date)| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()));
        dated.map_or(name, |(name, _)| name).to_owned()
    };
    undated(said) == undated(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_means_its_newest_model() {
        let named = |name: &str| super::named(name, Prices::bundled());
        assert!(named("opus").starts_with("claude-opus-"));
        assert_eq!(
            version(&named("opus")).max(Some((5, 5))),
            version(&named("opus"))
        );
        assert!(named("sonnet[1m]").ends_with("[1m]"));
        assert_eq!(named("default"), named("sonnet"));
        assert_eq!(named("claude-x-1"), "claude-x-1");
        assert_eq!(named("gpt-none"), "gpt-none");
    }

    #[test]
    fn a_family_means_the_newest_model_of_the_prices_in_use() {
        let newer = r#"{"models": {"claude-haiku-77-1": {"input": 1, "output": 2}}}"#;
        let prices = Prices::bundled().merged(Prices::parse(newer).unwrap());
        assert_eq!(super::named("haiku", &prices), "claude-haiku-77-1");
        assert_eq!(super::small(&prices), "claude-haiku-77-1");
    }

    #[test]
    fn versions_are_read_from_every_form_of_name() {
        for (name, expected) in [
            ("claude-opus-4-5-20251101", (4, 5)),
            ("claude-sonnet-4-20250514", (4, 0)),
            ("claude-3-7-sonnet-20250219", (3, 7)),
            ("claude-opus-5-5[1m]", (5, 5)),
            ("claude-fable-5", (5, 0)),
        ] {
            assert_eq!(version(name), Some(expected), "{name}");
        }
        assert_eq!(version("local"), None);
    }

    #[test]
    fn no_model_is_sent_a_kind_of_thinking_it_refuses() {
        let kind = |name: &str, wish| {
            let thinking = thinking(name, wish, 32_000);
            thinking.map(|thinking| thinking["type"].as_str().unwrap().to_owned())
        };
        assert_eq!(kind("claude-sonnet-4-5", ThinkingMode::Auto), None);
        assert_eq!(
            kind("claude-sonnet-4-5", ThinkingMode::Budget(2000)).as_deref(),
            Some("enabled")
        );
        for newer in [
            "claude-opus-4-6",
            "claude-opus-4-7",
            "claude-opus-5-5",
            "claude-mythos-5",
        ] {
            assert_eq!(
                kind(newer, ThinkingMode::Auto).as_deref(),
                Some("adaptive"),
                "{newer}"
            );
        }
        assert_eq!(
            kind("claude-opus-4-7", ThinkingMode::Budget(9000)).as_deref(),
            Some("adaptive")
        );
        assert_eq!(kind("claude-mythos-5", ThinkingMode::Off), None);
        assert_eq!(
            kind("claude-3-5-haiku-20241022", ThinkingMode::Budget(9000)),
            None
        );
    }

    #[test]
    fn a_budget_leaves_room_for_the_answer() {
        let budget = |most| thinking("claude-sonnet-4-5", ThinkingMode::Budget(50_000), most);
        assert_eq!(budget(8_192).unwrap()["budget_tokens"], 8_191);
        assert_eq!(budget(1_000), None);
    }

    #[test]
    fn a_date_makes_no_other_model() {
        assert!(is_same("claude-opus-4-5-20251101", "claude-opus-4-5"));
        assert!(is_same("claude-opus-4-5", "claude-opus-4-5[1m]"));
        assert!(!is_same("claude-opus-4-5", "claude-opus-4-6"));
    }
}
