//! Prices: the table, the names it is found by, and what messages cost by it.

use std::collections::BTreeSet;

use unspool_model::log::Log;
use unspool_model::price::{Cost, Origin, Prices, Unpriced};
use unspool_model::session::{Role, Session};
use unspool_model::usage::{self, Terms, Usage};
use unspool_testkit::corpus;

const SONNET: &str = "claude-sonnet-4-5-20250929";

/// What a message costs, in picodollars.
fn cost(model: &str, usage: Usage, terms: Terms) -> Option<u128> {
    let cost = Prices::bundled().cost(model, usage, terms);
    cost.map(|cost| cost.0)
}

fn plain(model: &str, usage: Usage) -> Option<u128> {
    cost(model, usage, Terms::default())
}

fn found(model: &str) -> Option<&'static str> {
    Prices::bundled().find(model).map(|price| &*price.name)
}

fn bad(json: &str) -> String {
    Prices::parse(json).unwrap_err().to_string()
}

#[test]
fn the_bundled_table_can_be_read_and_has_a_date() {
    let prices = Prices::bundled();
    assert!(prices.rows().len() > 80, "{}", prices.rows().len());
    assert_eq!(prices.date().len(), "2026-11-15".len());
    for price in prices.rows() {
        let own = prices.find(&price.name).map(|found| &found.name);
        assert_eq!(own, Some(&price.name));
        let rates = price.rates;
        assert!(rates.input.is_some() && rates.output.is_some());
        assert!(rates.cache_read < rates.input, "{}", price.name);
        assert!(rates.cache_write_5m > rates.input, "{}", price.name);
        let hour = rates.cache_write_1h;
        assert!(
            hour.is_none() || hour > rates.cache_write_5m,
            "{}",
            price.name
        );
        assert!(price.limit.is_some(), "{}", price.name);
    }
}

#[test]
fn every_claude_model_of_the_recordings_has_a_price() {
    let mut models = BTreeSet::new();
    for file in corpus::files() {
        let session = Session::from_log(&Log::new(file.bytes()), Role::Main);
        models.extend(session.models.iter().map(|(name, _)| name.to_owned()));
    }
    assert!(models.len() >= 4, "{models:?}");
    for model in &models {
        let known = cost(model, Usage::default(), Terms::default());
        assert!(known.is_some(), "no price for {model}");
    }
}

#[test]
fn models_of_all_times_have_a_price() {
    for model in [
        "claude-3-5-haiku-20241022",
        "claude-3-7-sonnet-20250219",
        "claude-sonnet-4-20250514",
        "claude-opus-4-20250514",
        "claude-opus-4-1-20250805",
        "claude-opus-4-5-20251101",
        "claude-sonnet-4-5-20250929",
        "claude-haiku-4-5-20251001",
        "claude-opus-4-6",
        "claude-sonnet-4-6",
        "claude-opus-5-5",
    ] {
        assert_eq!(found(model), Some(model));
    }
}

#[test]
fn each_kind_of_token_has_its_own_price() {
    let usage = Usage {
        input: 1_000,
        output: 2_000,
        cache_read: 10_000,
        cache_write_5m: 400,
        cache_write_1h: 300,
    };
    // 0.003 + 0.03 + 0.003 + 0.0015 + 0.0018 dollars
    assert_eq!(plain(SONNET, usage), Some(39_300_000_000));
}

#[test]
fn a_one_hour_write_costs_twice_the_input_and_a_five_minute_write_a_quarter_more() {
    let hour = Usage {
        cache_write_1h: 1_000_000,
        ..Usage::default()
    };
    let minutes = Usage {
        cache_write_5m: 1_000_000,
        ..Usage::default()
    };
    assert_eq!(plain("claude-opus-4-6", hour), Some(10_000_000_000_000));
    assert_eq!(plain("claude-opus-4-6", minutes), Some(6_250_000_000_000));
}

#[test]
fn long_input_starts_after_two_hundred_thousand_tokens() {
    let given = |input: u64| Usage {
        input,
        output: 1_000,
        ..Usage::default()
    };
    // 0.6 + 0.015, then 1.200006 + 0.0225
    assert_eq!(plain(SONNET, given(200_000)), Some(615_000_000_000));
    assert_eq!(plain(SONNET, given(200_001)), Some(1_222_506_000_000));
}

#[test]
fn what_the_cache_holds_counts_towards_long_input_but_output_does_not() {
    let mut usage = Usage {
        input: 0,
        output: 0,
        cache_read: 150_000,
        cache_write_5m: 30_000,
        cache_write_1h: 20_000,
    };
    // 0.045 + 0.1125 + 0.12
    assert_eq!(plain(SONNET, usage), Some(277_500_000_000));
    usage.input = 1;
    // 0.000006 + 0.09 + 0.225 + 0.24
    assert_eq!(plain(SONNET, usage), Some(555_006_000_000));
    let written = Usage {
        output: 300_000,
        ..Usage::default()
    };
    assert_eq!(plain(SONNET, written), Some(4_500_000_000_000));
}

#[test]
fn models_with_one_price_have_no_tier() {
    let usage = Usage {
        input: 900_000,
        ..Usage::default()
    };
    assert_eq!(plain("claude-sonnet-4-6", usage), Some(2_700_000_000_000));
}

#[test]
fn batches_cost_half() {
    let usage = Usage {
        input: 1_000,
        output: 1_000,
        cache_read: 1_000,
        cache_write_5m: 1_000,
        cache_write_1h: 1_000,
    };
    let terms = Terms {
        batch: true,
        ..Terms::default()
    };
    // 1.5 + 7.5 + 0.15 + 1.875 + 3 thousandths of a dollar
    assert_eq!(cost(SONNET, usage, terms), Some(14_025_000_000));
}

#[test]
fn every_search_of_the_web_is_charged() {
    let terms = Terms {
        web_searches: 3,
        ..Terms::default()
    };
    let usage = Usage {
        input: 1_000,
        ..Usage::default()
    };
    let haiku = "claude-haiku-4-5-20251001";
    assert_eq!(cost(haiku, usage, terms), Some(31_000_000_000));
}

#[test]
fn fast_and_local_answers_multiply_tokens_but_not_searches() {
    let usage = Usage {
        input: 1_000_000,
        ..Usage::default()
    };
    let terms = Terms {
        web_searches: 1,
        batch: false,
        fast: true,
        us: true,
    };
    // 5 × 2 × 1.1 + 0.01
    assert_eq!(
        cost("claude-opus-4-8", usage, terms),
        Some(11_010_000_000_000)
    );
    let us = Terms {
        us: true,
        ..Terms::default()
    };
    // Sonnet 4.5 costs the same everywhere.
    let small = Usage {
        input: 1_000,
        ..Usage::default()
    };
    assert_eq!(cost(SONNET, small, us), Some(3_000_000_000));
}

#[test]
fn a_price_that_the_table_lacks_is_not_made_up() {
    let fast = Terms {
        fast: true,
        ..Terms::default()
    };
    let hour = Usage {
        cache_write_1h: 1,
        ..Usage::default()
    };
    let prices = Prices::bundled();
    assert_eq!(
        prices.charge(SONNET, Usage::default(), fast),
        Err(Unpriced::Part("the fast mode"))
    );
    let haiku = "claude-3-5-haiku-20241022";
    let lacks = prices.charge(haiku, hour, Terms::default()).unwrap_err();
    assert_eq!(
        lacks.to_string(),
        "no price for one-hour cache writes of this model"
    );
    // It is only a gap where there is something to charge.
    assert_eq!(plain(haiku, Usage::default()), Some(0));
}

#[test]
fn an_unknown_model_has_no_price() {
    for model in [
        "",
        "claude",
        "claude-opus",
        "claude-opus-4-99",
        "claude-sonnet-4-5-mini",
        "claude-opus-4-6-fast",
        "sonnet",
        "opus",
        "glm-4.6",
        "gpt-5",
        "us.anthropic.",
        "claude-opus-99-20991231",
    ] {
        assert_eq!(found(model), None, "{model}");
        assert_eq!(plain(model, Usage::default()), None, "{model}");
    }
}

#[test]
fn what_the_client_wrote_itself_costs_nothing() {
    assert_eq!(plain("<synthetic>", Usage::default()), Some(0));
}

#[test]
fn names_are_found_without_what_providers_add() {
    for (model, row) in [
        ("claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("openrouter/anthropic/claude-opus-4.6", "claude-opus-4-6"),
        ("vertex_ai/claude-sonnet-4-5@20250929", SONNET),
        ("claude-sonnet-4-5@20250929", SONNET),
        ("vertex_ai/claude-opus-4-6@default", "claude-opus-4-6"),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", SONNET),
        ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", SONNET),
        ("bedrock/anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-6-v1",
            "us.anthropic.claude-opus-4-6-v1",
        ),
        // A region can cost more, in whatever way the rest is written.
        (
            "us.anthropic.claude-opus-4-6",
            "us.anthropic.claude-opus-4-6-v1",
        ),
        (
            "eu.anthropic.claude-sonnet-4-5-20250929-v1:0[1m]",
            "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
        ),
    ] {
        assert_eq!(found(model), Some(row), "{model}");
    }
}

#[test]
fn a_date_may_be_missing_or_unlisted_but_never_chosen() {
    // Not listed with a date, but without one.
    assert_eq!(
        found("claude-sonnet-4-6-20260217"),
        Some("claude-sonnet-4-6")
    );
    // Listed only with a date.
    assert_eq!(found("claude-sonnet-4"), Some("claude-sonnet-4-20250514"));
    assert_eq!(
        found("claude-3-7-sonnet-latest"),
        Some("claude-3-7-sonnet-20250219")
    );
    // Two dates: which one is not known.
    assert_eq!(found("claude-3-5-sonnet"), None);
}

#[test]
fn a_sum_of_costs_does_not_depend_on_the_order() {
    let costs: Vec<Cost> = (1..2_000u64)
        .map(|n| {
            let usage = Usage {
                input: n * 7,
                output: n * 13 % 997,
                cache_read: n * n,
                ..Usage::default()
            };
            let us = Terms {
                us: n % 3 == 0,
                ..Terms::default()
            };
            Prices::bundled()
                .cost("claude-opus-4-6", usage, us)
                .unwrap()
        })
        .collect();
    let forth: Cost = costs.iter().copied().sum();
    let back: Cost = costs.iter().rev().copied().sum();
    assert_eq!(forth, back);
    assert_eq!(Cost(1_500_000_000_000).usd(), 1.5);
    assert_eq!(Cost(u128::MAX) + Cost(1), Cost(u128::MAX));
}

#[test]
fn the_largest_counts_do_not_overflow() {
    let all = Usage {
        input: u64::MAX,
        output: u64::MAX,
        cache_read: u64::MAX,
        cache_write_5m: u64::MAX,
        cache_write_1h: u64::MAX,
    };
    let terms = Terms {
        web_searches: u32::MAX,
        batch: false,
        fast: true,
        us: true,
    };
    assert!(cost("claude-opus-4-6", all, terms).is_some());
}

#[test]
fn litellms_own_format_is_read() {
    let prices = Prices::parse(
        r#"{
        "sample_spec": {"input_cost_per_token": "a number", "max_input_tokens": "a number"},
        "gpt-x": {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6},
        "claude-by-the-second": {"input_cost_per_second": 0.01},
        "claude-x-1": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05,
            "cache_read_input_token_cost": 3e-07, "cache_creation_input_token_cost": 3.75e-06,
            "cache_creation_input_token_cost_above_1hr": 6e-06,
            "input_cost_per_token_above_200k_tokens": 6e-06,
            "output_cost_per_token_above_200k_tokens": 2.25e-05,
            "cache_creation_input_token_cost_above_1hr_above_200k_tokens": 1.2e-05,
            "input_cost_per_token_batches": 1.5e-06, "output_cost_per_token_batches": 7.5e-06,
            "search_context_cost_per_query": {"search_context_size_medium": 0.01},
            "provider_specific_entry": {"us": 1.1, "fast": 6.0}, "max_input_tokens": 200000}}"#,
    )
    .unwrap();
    assert_eq!(prices.rows().len(), 1);
    let price = prices.find("claude-x-1").unwrap();
    assert_eq!(price.rates.cache_write_5m.unwrap().0, 3_750_000);
    let long = price.long.unwrap();
    assert_eq!(long.above, 200_000);
    assert_eq!(long.rates.output.unwrap().per_million(), 22.5);
    assert_eq!(long.rates.cache_write_1h.unwrap().per_million(), 12.0);
    assert_eq!(long.rates.cache_read, None);
    assert_eq!(price.batch.unwrap().output.unwrap().per_million(), 7.5);
    assert_eq!(price.web_search, Some(10_000_000_000));
    assert_eq!(price.fast.unwrap().value(), 6.0);
    assert_eq!(price.us.unwrap().value(), 1.1);
    assert_eq!(price.limit, Some(200_000));
}

#[test]
fn a_table_is_written_as_it_is_read() {
    let bundled = Prices::bundled();
    let again = Prices::parse(&bundled.to_json()).unwrap();
    assert_eq!(bundled.to_json(), again.to_json());
    assert!(bundled.rows().eq(again.rows()));
    assert_eq!(bundled.date(), again.date());
}

#[test]
fn a_row_of_ones_own_stands_in_the_place_of_the_tables() {
    let own = r#"{"models": {"claude-opus-4-6": {"input": 4, "output": 20}, "glm-4.6": {"input": 0.6, "output": 2.2}}}"#;
    let own = Prices::parse(own).unwrap().marked(Origin::Override);
    let prices = Prices::bundled().merged(own);
    assert_eq!(prices.date(), Prices::bundled().date());
    let million = Usage {
        input: 1_000_000,
        ..Usage::default()
    };
    let usd = |model: &str| Some(prices.cost(model, million, Terms::default())?.usd());
    assert_eq!(usd("claude-opus-4-6"), Some(4.0));
    assert_eq!(usd("claude-opus-4-6[1m]"), Some(4.0));
    assert_eq!(usd("glm-4.6"), Some(0.6));
    assert_eq!(usd("claude-opus-4-5"), Some(5.0));
    let origin = |model: &str| prices.find(model).unwrap().origin;
    assert_eq!(origin("glm-4.6"), Origin::Override);
    assert_eq!(origin("claude-opus-4-5"), Origin::Bundled);
}

#[test]
fn a_wrong_table_says_where_and_what() {
    assert_eq!(
        bad("{\"models\": {\n \"m\": {\"input\": 1, \"output\": 2, \"cache_reed\": 1}}}"),
        "line 2, column 44: unknown field `cache_reed`, expected one of `input`, `output`, `cache_read`, `cache_write_5m`, `cache_write_1h`, `long`, `batch`, `web_search`, `fast`, `us`, `limit`"
    );
    assert!(bad("{\"models\": {\"m\": {\"input\": 1}}}").contains("missing field `output`"));
    assert!(
        bad("{\"models\": {\"m\": {\"input\": -1, \"output\": 1}}}").contains("-1 is no price")
    );
    assert!(bad("{\"models\": ").starts_with("line 1, column "));
    assert_eq!(
        bad("{\"name\": \"left-pad\"}"),
        "it has no price of a Claude model"
    );
    assert!(bad("[]").starts_with("line 1, column "));
    assert_eq!(
        bad("{\"claude-x\": {\"input_cost_per_token\": \"three\"}}"),
        "`claude-x`: \"three\" is no value of `input_cost_per_token`"
    );
}

#[test]
fn the_context_is_as_large_as_the_table_says() {
    assert_eq!(usage::context_limit(SONNET, 0), Some(200_000));
    assert_eq!(usage::context_limit(SONNET, 200_001), Some(1_000_000));
    let sonnet = "claude-sonnet-4-5[1m]";
    assert_eq!(usage::context_limit(sonnet, 0), Some(1_000_000));
    assert_eq!(usage::context_limit("claude-opus-5-5", 0), Some(1_000_000));
    // Not in the table: the usual size, as long as nothing larger is seen.
    assert_eq!(usage::context_limit("claude-new-9", 0), Some(200_000));
    assert_eq!(
        usage::context_limit("claude-new-9", 200_001),
        Some(1_000_000)
    );
    assert_eq!(usage::context_limit("glm-4.6", 0), None);
}
