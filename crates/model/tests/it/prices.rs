//! Prices: the table, the names it is found by, and what messages cost by it.

use std::collections::{BTreeSet, HashMap};

use unspool_model::log::Log;
use unspool_model::price::{Cost, PriceOrigin, Prices, TokenRate, UnpricedReason};
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::time::Time;
use unspool_model::usage::{PricingTerms, Usage};
use unspool_model::view::agents::{self, SubAgentSession};
use unspool_model::view::session_row;
use unspool_model::view::session_usage::{SessionFiles, session_usage, usage_by_agent};
use unspool_model::view::status::StatusSignals;
use unspool_testkit::corpus;

use crate::make;

const SONNET: &str = "claude-sonnet-4-5-20250929";

/// What a message costs, in picodollars.
fn cost(model: &str, usage: Usage, terms: PricingTerms) -> Option<u128> {
    let cost = Prices::bundled().cost(model, usage, terms);
    cost.map(|cost| cost.0)
}

fn plain(model: &str, usage: Usage) -> Option<u128> {
    cost(model, usage, PricingTerms::default())
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
        assert!(price.limit.is_some(), "{}", price.name);
        // Others have no cache, or one that costs nothing.
        if !price.name.contains("claude") {
            continue;
        }
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
        let session = Session::from_log(&Log::new(file.bytes()), TranscriptRole::Main);
        models.extend(session.models.iter().map(|(name, _)| name.to_owned()));
    }
    assert!(models.len() >= 4, "{models:?}");
    for model in &models {
        let known = cost(model, Usage::default(), PricingTerms::default());
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
    let terms = PricingTerms {
        batch: true,
        ..PricingTerms::default()
    };
    // 1.5 + 7.5 + 0.15 + 1.875 + 3 thousandths of a dollar
    assert_eq!(cost(SONNET, usage, terms), Some(14_025_000_000));
}

#[test]
fn the_shares_of_a_message_are_all_of_its_cost() {
    let usage = Usage {
        input: 1,
        output: 2,
        cache_read: 3,
        cache_write_5m: 4,
        cache_write_1h: 5,
    };
    let terms = PricingTerms {
        web_searches: 2,
        ..PricingTerms::default()
    };
    let price = Prices::bundled().find(SONNET).unwrap();
    let shares = price.shares(usage, terms).unwrap();
    let parts = [
        shares.input,
        shares.output,
        shares.cache_read,
        shares.cache_write_5m,
        shares.cache_write_1h,
        shares.searches,
    ];
    assert_eq!(parts.into_iter().sum::<Cost>(), shares.total);
    assert_eq!(price.charge(usage, terms), Ok(shares.total));
    assert_eq!(shares.output, Cost(2 * 15_000_000));
}

#[test]
fn every_search_of_the_web_is_charged() {
    let terms = PricingTerms {
        web_searches: 3,
        ..PricingTerms::default()
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
    let terms = PricingTerms {
        web_searches: 1,
        batch: false,
        fast: true,
        us: true,
        stated: None,
    };
    // 5 × 2 × 1.1 + 0.01
    assert_eq!(
        cost("claude-opus-4-8", usage, terms),
        Some(11_010_000_000_000)
    );
    let us = PricingTerms {
        us: true,
        ..PricingTerms::default()
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
    let fast = PricingTerms {
        fast: true,
        ..PricingTerms::default()
    };
    let hour = Usage {
        cache_write_1h: 1,
        ..Usage::default()
    };
    let prices = Prices::bundled();
    assert_eq!(
        prices.charge(SONNET, Usage::default(), fast),
        Err(UnpricedReason::Part("the fast mode"))
    );
    let haiku = "claude-3-5-haiku-20241022";
    let lacks = prices
        .charge(haiku, hour, PricingTerms::default())
        .unwrap_err();
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
        "claude-opus-4-1-fast",
        "sonnet",
        "opus",
        "glm-99",
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
fn a_region_without_a_price_is_unknown_where_other_regions_cost_more() {
    // Listed for us and eu, at more than the maker takes.
    assert_eq!(found("jp.anthropic.claude-opus-4-6-v1"), None);
    assert_eq!(found("apac.anthropic.claude-opus-4-5"), None);
    let dated = "us.anthropic.claude-opus-4-5-20251101-v1:0";
    assert_eq!(found("us.anthropic.claude-opus-4-5"), Some(dated));
    assert_eq!(
        found("global.anthropic.claude-opus-4-6-v1"),
        Some("claude-opus-4-6")
    );
    // The same everywhere.
    let sonnet = "us.anthropic.claude-sonnet-4-20250514-v1:0";
    assert_eq!(found(sonnet), Some("claude-sonnet-4-20250514"));
    let haiku = "eu.anthropic.claude-3-5-haiku-20241022-v1:0";
    assert_eq!(found(haiku), Some("claude-3-5-haiku-20241022"));
}

#[test]
fn a_date_may_be_missing_or_unlisted_but_is_not_chosen_where_it_matters() {
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
    // Two dates: if both cost the same, it does not matter which one is meant.
    assert_eq!(
        found("claude-3-5-sonnet"),
        Some("claude-3-5-sonnet-20241022")
    );
    let two = r#"{"models": {"claude-x-20990101": {"input": 1, "output": 2},
        "claude-x-20990202": {"input": 1, "output": 3}}}"#;
    assert!(Prices::parse(two).unwrap().find("claude-x").is_none());
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
            let us = PricingTerms {
                us: n % 3 == 0,
                ..PricingTerms::default()
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
    let terms = PricingTerms {
        web_searches: u32::MAX,
        batch: false,
        fast: true,
        us: true,
        stated: None,
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
    let own = Prices::parse(own).unwrap().marked(PriceOrigin::Override);
    let prices = Prices::bundled().merged(own);
    assert_eq!(prices.date(), Prices::bundled().date());
    let million = Usage {
        input: 1_000_000,
        ..Usage::default()
    };
    let usd = |model: &str| Some(prices.cost(model, million, PricingTerms::default())?.usd());
    assert_eq!(usd("claude-opus-4-6"), Some(4.0));
    assert_eq!(usd("claude-opus-4-6[1m]"), Some(4.0));
    assert_eq!(usd("glm-4.6"), Some(0.6));
    assert_eq!(usd("claude-opus-4-5"), Some(5.0));
    let origin = |model: &str| prices.find(model).unwrap().origin;
    assert_eq!(origin("glm-4.6"), PriceOrigin::Override);
    assert_eq!(origin("claude-opus-4-5"), PriceOrigin::Bundled);
}

#[test]
fn a_wrong_table_says_where_and_what() {
    assert_eq!(
        bad("{\"models\": {\n \"m\": {\"input\": 1, \"output\": 2, \"cache_reed\": 1}}}"),
        "line 2, column 44: unknown field `cache_reed`, expected one of `input`, `output`, `cache_read`, `cache_write_5m`, `cache_write_1h`, `long`, `batch`, `web_search`, `fast`, `us`, `limit`, `date`, `source`"
    );
    assert!(bad("{\"models\": {\"m\": {\"input\": 1}}}").contains("missing field `output`"));
    assert!(
        bad("{\"models\": {\"m\": {\"input\": -1, \"output\": 1}}}")
            .contains("-1 is not a valid price")
    );
    assert!(bad("{\"models\": ").starts_with("line 1, column "));
    assert_eq!(
        bad("{\"name\": \"left-pad\"}"),
        "it contains no price of a Claude model"
    );
    assert!(bad("[]").starts_with("line 1, column "));
    assert_eq!(
        bad("{\"claude-x\": {\"input_cost_per_token\": \"three\"}}"),
        "`claude-x`: \"three\" is not a valid value of `input_cost_per_token`"
    );
}

#[test]
fn models_of_other_makers_are_found_however_gateways_write_them() {
    for (named, row) in [
        ("glm-4.6", "glm-4.6"),
        ("GLM-4.6", "glm-4.6"),
        ("z-ai/glm-4.6", "glm-4.6"),
        ("zai-org/GLM-4.6", "glm-4.6"),
        ("glm-4.5-air", "glm-4.5-air"),
        ("deepseek-chat", "deepseek-chat"),
        ("deepseek/deepseek-chat", "deepseek-chat"),
        ("kimi-k2-0905-preview", "kimi-k2-0905-preview"),
        ("kimi-k2-thinking", "kimi-k2-thinking"),
        ("kimi-k2.5", "kimi-k2.5"),
        ("MiniMax-M2", "minimax-m2"),
        ("qwen3.7-max", "qwen3.7-max"),
    ] {
        assert_eq!(found(named), Some(row), "{named}");
    }
    // A part of a name is no name.
    for unknown in [
        "glm",
        "kimi",
        "glm-99",
        "z-ai/glm-4.5-air:free",
        "my-glm-4.6",
        // A version of another maker is a model of its own, not a provider's revision.
        "deepseek",
        "deepseek-v4",
        "deepseek-v5",
        "deepseek-v3.1",
        "deepseek/deepseek-v3-1",
    ] {
        assert_eq!(found(unknown), None, "{unknown}");
    }
}

#[test]
fn the_small_models_of_z_ai_have_prices_of_the_cache_and_what_nobody_publishes_is_missing() {
    let read = |model| Prices::bundled().find(model).unwrap().rates.cache_read;
    assert_eq!(read("glm-4.5").map(TokenRate::per_million), Some(0.11));
    assert_eq!(read("glm-4.5-air").map(TokenRate::per_million), Some(0.03));
    assert_eq!(read("glm-4.5-x"), None);
}

#[test]
fn other_ways_to_write_the_name_of_a_claude_model_are_understood() {
    for (named, row) in [
        ("claude-opus-4-5-thinking", "claude-opus-4-5"),
        ("claude-sonnet-4-5-20250929-thinking", SONNET),
        ("claude-opus-4-6-thinking[1m]", "claude-opus-4-6"),
        ("anthropic/claude-4.5-sonnet", "claude-sonnet-4-5"),
        ("claude-4-sonnet-20250514", "claude-sonnet-4-20250514"),
        ("claude-4-opus", "claude-opus-4-20250514"),
        ("claude-opus-4-0", "claude-opus-4-20250514"),
        ("claude-sonnet-3-7", "claude-3-7-sonnet-20250219"),
        ("claude-3.5-sonnet", "claude-3-5-sonnet-20241022"),
        ("claude-haiku-3.5", "claude-3-5-haiku-20241022"),
    ] {
        assert_eq!(found(named), Some(row), "{named}");
    }
    for unknown in [
        "claude-4-9-opus",
        "claude-opus-9-0",
        "claude-thinking",
        "-thinking",
        "claude-sonnet-4-5-slow",
    ] {
        assert_eq!(found(unknown), None, "{unknown}");
    }
}

#[test]
fn a_name_that_ends_in_fast_costs_what_the_fast_mode_does() {
    let usage = Usage {
        input: 1_000,
        output: 10,
        ..Usage::default()
    };
    let fast = PricingTerms {
        fast: true,
        ..PricingTerms::default()
    };
    let by_mode = cost("claude-opus-4-6", usage, fast).unwrap();
    assert!(by_mode > plain("claude-opus-4-6", usage).unwrap());
    assert_eq!(plain("claude-opus-4-6-fast", usage), Some(by_mode));
    assert_eq!(
        cost("claude-opus-4-6-fast", usage, fast),
        Some(by_mode),
        "once"
    );
    // A model without a fast mode has no price for one.
    assert_eq!(plain("claude-3-7-sonnet-fast", usage), None);
}

#[test]
fn rows_of_other_makers_are_taken_in_from_a_newer_table() {
    let newer = r#"{"claude-x-1": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6},
        "zai/GLM-9": {"input_cost_per_token": 3e-6, "output_cost_per_token": 4e-6},
        "novita/zai-org/glm-9": {"input_cost_per_token": 9e-6, "output_cost_per_token": 9e-6}}"#;
    let newer = Prices::parse(newer).unwrap();
    let table = Prices::bundled().merged(Prices::bundled().renewal(&newer));
    let input = |name| table.find(name).and_then(|row| row.rates.input);
    assert_eq!(input("glm-9").map(|rate| rate.0), Some(3_000_000));
    assert!(input("glm-4.6").is_some(), "what is no longer listed stays");
}

#[test]
fn the_context_is_as_large_as_the_table_says() {
    assert_eq!(Prices::bundled().limit(SONNET, 0), Some(200_000));
    assert_eq!(Prices::bundled().limit(SONNET, 200_001), Some(1_000_000));
    let sonnet = "claude-sonnet-4-5[1m]";
    assert_eq!(Prices::bundled().limit(sonnet, 0), Some(1_000_000));
    assert_eq!(
        Prices::bundled().limit("claude-opus-5-5", 0),
        Some(1_000_000)
    );
    // Not in the table: the usual size, as long as nothing larger is seen.
    assert_eq!(Prices::bundled().limit("claude-new-9", 0), Some(200_000));
    assert_eq!(
        Prices::bundled().limit("claude-new-9", 200_001),
        Some(1_000_000)
    );
    assert_eq!(Prices::bundled().limit("glm-4.6", 0), Some(200_000));
    assert_eq!(Prices::bundled().limit("nobody-knows-1", 0), None);
}

/// A session of one prompt and these replies: model and usage.
fn session(replies: &[(&str, &str)]) -> make::Read {
    let mut lines = vec![make::user("a", "", "10:00:00", r#""go""#)];
    for (at, (model, usage)) in replies.iter().enumerate() {
        let id = format!("m{at}");
        let text = format!("[{}]", make::text("x"));
        let line = make::reply(&format!("r{at}"), "a", "10:00:01", &id, &text)
            .replace("claude-opus-4-5", model)
            .replace(r#"{"input_tokens":10,"output_tokens":5}"#, usage);
        // Written twice, as clients do; paid once.
        lines.extend([line.clone(), line.replace("\"uuid\":\"r", "\"uuid\":\"s")]);
    }
    make::read(&lines)
}

fn total(read: &make::Read, agents: &[&Session]) -> Option<f64> {
    let files = SessionFiles {
        agents,
        ..SessionFiles::alone(&read.session)
    };
    let used = session_usage(&files, Prices::bundled()).all();
    used.cost.total().map(Cost::usd)
}

const MILLION: &str = r#"{"input_tokens":1000000,"output_tokens":0}"#;

#[test]
fn a_session_costs_what_its_messages_cost_each_by_its_own_model() {
    let read = session(&[
        ("claude-opus-4-5", MILLION),
        ("claude-haiku-4-5-20251001", MILLION),
        (
            "claude-opus-4-6",
            r#"{"input_tokens":0,"output_tokens":0,"inference_geo":"us","cache_creation_input_tokens":1000000,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":1000000},"server_tool_use":{"web_search_requests":2}}"#,
        ),
    ]);
    // 5 + 1 + 10 × 1.1 + 2 × 0.01
    assert_eq!(total(&read, &[]), Some(17.02));
}

#[test]
fn two_short_messages_are_not_one_long_one() {
    let half = r#"{"input_tokens":150000,"output_tokens":0}"#;
    let read = session(&[(SONNET, half), (SONNET, half)]);
    assert_eq!(total(&read, &[]), Some(0.9));
}

#[test]
fn sub_agents_are_paid_by_their_session_once() {
    let main = session(&[("claude-opus-4-5", MILLION)]);
    let agent = session(&[
        // The same message as in the main session, and one of its own.
        ("claude-opus-4-5", MILLION),
        ("claude-haiku-4-5-20251001", MILLION),
    ]);
    assert_eq!(total(&main, &[&agent.session]), Some(6.0));
}

#[test]
fn one_message_without_a_price_leaves_the_sum_unknown() {
    let read = session(&[("claude-opus-4-5", MILLION), ("claude-opus-99", MILLION)]);
    assert_eq!(total(&read, &[]), None);
    let main = session(&[]);
    assert_eq!(total(&main, &[&read.session]), None);
}

#[test]
fn a_session_without_replies_costs_nothing_and_so_does_what_the_client_wrote() {
    assert_eq!(total(&session(&[]), &[]), Some(0.0));
    let read = session(&[("<synthetic>", r#"{"input_tokens":0,"output_tokens":0}"#)]);
    assert_eq!(total(&read, &[]), Some(0.0));
}

#[test]
fn the_limit_of_a_row_is_that_of_the_prices_in_use() {
    let own = r#"{"models": {"nobody-knows-1": {"input": 1, "output": 2, "limit": 128000}}}"#;
    let own = Prices::bundled().merged(Prices::parse(own).unwrap());
    let read = session(&[(
        "nobody-knows-1",
        r#"{"input_tokens":64000,"output_tokens":0}"#,
    )]);
    let row = |prices| {
        session_row::row(
            &SessionFiles::alone(&read.session),
            &HashMap::new(),
            prices,
            &StatusSignals::default(),
            Time(0),
        )
    };
    assert_eq!(row(&own).context_limit, Some(128_000));
    assert_eq!(row(&own).context_tokens, Some(64_000));
    assert_eq!(
        row(&own).used.all().cost.total(),
        Some(Cost(64_000_000_000))
    );
    assert_eq!(row(Prices::bundled()).context_limit, None);
    assert_eq!(row(Prices::bundled()).used.all().cost.total(), None);
}

#[test]
fn an_agent_of_which_only_the_call_is_left_has_no_cost() {
    let sent = make::call("t1", "Task", r#"{"description":"Find it"}"#);
    let main = make::read(&[
        make::user("a", "", "10:00:00", r#""go""#),
        make::reply("b", "a", "10:00:01", "m", &format!("[{sent}]")),
    ]);
    let found = session(&[("claude-opus-4-5", MILLION)]);
    let file = SubAgentSession::new("q", &found.session);
    let files = [file];
    let rows = agents::agents(&main.session, &main.log, &files, &[]);
    let agents = [&found.session];
    let all = SessionFiles {
        agents: &agents,
        ..SessionFiles::alone(&main.session)
    };
    let used = usage_by_agent(&all, &rows, |at| at, Prices::bundled());
    let mut costs: Vec<Option<f64>> = used
        .into_iter()
        .map(|used| used.and_then(|used| used.cost.total()).map(Cost::usd))
        .collect();
    costs.sort_by(|a, b| a.partial_cmp(b).unwrap());
    assert_eq!(costs, [None, Some(5.0)]);
}

#[test]
fn an_agent_inside_the_file_is_paid_by_its_own_thread() {
    let side = |line: String| line.replace("\"isSidechain\":false", "\"isSidechain\":true");
    let text = format!("[{}]", make::text("x"));
    let haiku = make::reply("d", "c", "10:00:03", "m2", &text)
        .replace("claude-opus-4-5", "claude-haiku-4-5-20251001");
    let main = make::read(&[
        make::user("a", "", "10:00:00", r#""go""#),
        make::reply("b", "a", "10:00:01", "m1", &text),
        side(make::user("c", "", "10:00:02", r#""find""#)),
        side(haiku),
    ]);
    let rows = agents::agents(&main.session, &main.log, &[], &[]);
    assert_eq!(rows.len(), 1, "{rows:?}");
    let files = SessionFiles::alone(&main.session);
    let used = usage_by_agent(&files, &rows, |at| at, Prices::bundled());
    // 10 × 1 + 5 × 5 millionths of a dollar
    assert_eq!(used[0].unwrap().cost.total(), Some(Cost(35_000_000)));
}

/// LiteLLM's table with these fields for each model.
fn litellm(models: &[(&str, &str)]) -> Prices {
    let base = r#""input_cost_per_token": 3e-6, "output_cost_per_token": 15e-6, "cache_read_input_token_cost": 3e-7"#;
    let rows: Vec<String> = models
        .iter()
        .map(|(name, more)| format!("\"{name}\": {{{base}{more}}}"))
        .collect();
    Prices::parse(&format!("{{{}}}", rows.join(","))).unwrap()
}

#[test]
fn a_newer_table_does_not_lose_what_was_paid_before() {
    let long = r#", "max_input_tokens": 200000, "input_cost_per_token_above_200k_tokens": 6e-6, "output_cost_per_token_above_200k_tokens": 22.5e-6"#;
    let fast = r#", "max_input_tokens": 1000000, "provider_specific_entry": {"fast": 6.0}"#;
    let search = r#", "search_context_cost_per_query": {"search_context_size_medium": 0.01}"#;
    let earlier = litellm(&[("claude-a", long), ("claude-b", fast), ("claude-old", "")]);
    let newest = litellm(&[
        ("claude-a", r#", "max_input_tokens": 200000"#),
        ("claude-b", r#", "max_input_tokens": 1000000"#),
        ("claude-c", search),
    ]);
    let table = earlier.renewed(&newest);
    let row = |name: &str| table.row(name).unwrap();
    assert_eq!(row("claude-a").long.unwrap().above, 200_000);
    assert_eq!(row("claude-b").fast.unwrap().value(), 6.0);
    assert_eq!(row("claude-old").rates, row("claude-a").rates);
    assert!(
        table
            .rows()
            .all(|row| row.web_search == Some(10_000_000_000))
    );
}

#[test]
fn a_newer_table_ends_a_tier_where_long_input_still_exists() {
    let long = r#", "max_input_tokens": 1000000, "input_cost_per_token_above_200k_tokens": 6e-6, "output_cost_per_token_above_200k_tokens": 22.5e-6"#;
    let earlier = litellm(&[("claude-a", long)]);
    let newest = litellm(&[("claude-a", r#", "max_input_tokens": 1000000"#)]);
    assert_eq!(earlier.renewed(&newest).row("claude-a").unwrap().long, None);
}

#[test]
fn rows_of_clouds_are_kept_where_they_differ() {
    let newest = litellm(&[
        ("claude-a", ""),
        ("anthropic.claude-a-v1:0", ""),
        ("vertex_ai/claude-a", ""),
        ("deepinfra/claude-a", ""),
        (
            "eu.anthropic.claude-a-v1:0",
            r#", "cache_creation_input_token_cost": 4e-6"#,
        ),
        ("us.anthropic.claude-never-there", ""),
    ]);
    let table = Prices::default().renewed(&newest);
    let names: Vec<&str> = table.rows().map(|row| &*row.name).collect();
    assert_eq!(names, ["claude-a", "eu.anthropic.claude-a-v1:0"]);
}

#[test]
fn a_row_keeps_the_day_and_source_of_its_table_when_tables_are_merged_and_written() {
    let table = |date: &str, model: &str| {
        let json = format!(
            r#"{{"date": "{date}", "source": "list of {date}", "models": {{"{model}": {{"input": 1, "output": 2}}}}}}"#
        );
        Prices::parse(&json).unwrap()
    };
    let both = table("2026-01-01", "claude-a").merged(table("2026-02-02", "claude-b"));
    let again = Prices::parse(&both.to_json()).unwrap();
    assert!(both.rows().eq(again.rows()));
    let from = |name: &str| {
        let row = again.row(name).unwrap();
        (row.date.clone(), row.source.clone())
    };
    let said = |date: &str| (date.to_owned(), format!("list of {date}"));
    assert_eq!(from("claude-a"), said("2026-01-01"));
    assert_eq!(from("claude-b"), said("2026-02-02"));
    assert_eq!(again.date(), "2026-02-02");
}

#[test]
fn a_clouds_row_that_is_now_as_the_makers_takes_the_place_of_the_one_that_was_not() {
    let dearer = r#", "cache_creation_input_token_cost": 4e-6"#;
    let cloud = "eu.anthropic.claude-a-v1:0";
    let earlier = litellm(&[("claude-a", ""), (cloud, dearer)]);
    let newest = litellm(&[("claude-a", ""), (cloud, ""), ("vertex_ai/claude-a", "")]);
    let renewal = earlier.renewal(&newest);
    let names: Vec<&str> = renewal.rows().map(|row| &*row.name).collect();
    assert_eq!(names, ["claude-a", cloud]);
    let after = earlier.merged(renewal);
    assert_eq!(after.row(cloud).unwrap().rates.cache_write_5m, None);
    assert!(after.unused(&newest).is_empty());
}

#[test]
fn a_row_without_prices_of_the_cache_keeps_them_only_where_input_costs_the_same() {
    let bare = |input: &str| {
        let json = format!(
            r#"{{"claude-a": {{"input_cost_per_token": {input}, "output_cost_per_token": 15e-6}}}}"#
        );
        Prices::parse(&json).unwrap()
    };
    let long = r#", "max_input_tokens": 200000, "input_cost_per_token_above_200k_tokens": 6e-6, "output_cost_per_token_above_200k_tokens": 22.5e-6"#;
    let earlier = litellm(&[("claude-a", long)]);
    let row = |input: &str| {
        earlier
            .renewal(&bare(input))
            .row("claude-a")
            .cloned()
            .unwrap()
    };
    assert_eq!(
        Some(&row("3e-6").rates),
        earlier.row("claude-a").map(|row| &row.rates)
    );
    assert!(row("3e-6").long.is_some());
    let other = row("2e-6");
    assert_eq!(other.rates.input.unwrap().per_million(), 2.0);
    assert_eq!(other.rates.cache_read, None);
    assert_eq!(other.long, None);
    assert_eq!(other.limit, Some(200_000));
}
