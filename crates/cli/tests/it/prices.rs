//! Prices and costs as a person and a script see them.

use serde_json::Value;
use unspool_testkit::home::Home;

use crate::{ID, home, home_with_session};

const OVERRIDE: &str = ".unspool/prices-override.json";
const UPDATED: &str = ".unspool/prices.json";

fn rows(home: &Home, args: &[&str]) -> Vec<Value> {
    let output = home.output(&[args, &["--json"]].concat());
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {told}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn stderr(home: &Home, args: &[&str], code: i32) -> String {
    let output = home.output(args);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {told}");
    told
}

/// A table in our own form with this price of input for a model.
fn table(model: &str, input: f64) -> String {
    format!(r#"{{"models": {{"{model}": {{"input": {input}, "output": 20}}}}}}"#)
}

/// A machine with a session of one reply by this model: a million tokens of input.
fn paid(model: &str) -> Home {
    let home = home();
    home.session(
        "/home/dev/x",
        ID,
        &format!("you: go\n(model={model}, usage=1000000/0/0/0/0) claude: done"),
    );
    home
}

fn cost(home: &Home) -> Value {
    rows(home, &["ls"]).remove(0)["cost_usd"].clone()
}

#[test]
fn the_list_says_where_its_prices_are_from() {
    let home = home();
    let text = home.run(&["prices"]);
    let opus = text
        .lines()
        .find(|line| line.starts_with("claude-opus-4-5 "));
    let cells: Vec<&str> = opus.unwrap().split_whitespace().collect();
    assert_eq!(
        cells,
        [
            "claude-opus-4-5",
            "5.00",
            "25.00",
            "0.50",
            "6.25",
            "10.00",
            "200k"
        ]
    );
    let (_, remark) = text.split_once("--- stderr\n").unwrap();
    assert!(
        remark.starts_with("Dollars per million tokens") && remark.contains("LiteLLM"),
        "{remark}"
    );
}

#[test]
fn the_list_fits_the_terminal() {
    let mut home = home();
    home.set("COLUMNS", "80");
    let output = home.output(&["prices"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{text}");
}

#[test]
fn a_model_is_shown_with_all_its_terms() {
    let text = home().run(&["prices", "claude-opus-4-8[1m]"]);
    for part in [
        "batch API",
        "fast mode",
        "US-only inference",
        "$0.01 for each web search",
        "`claude-opus-4-8[1m]` uses the price of `claude-opus-4-8`.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_row_says_which_price_a_name_means() {
    let row = rows(&home(), &["prices", "vertex_ai/claude-sonnet-4-5@20250929"]).remove(0);
    assert_eq!(row["model"], "vertex_ai/claude-sonnet-4-5@20250929");
    assert_eq!(row["name"], "claude-sonnet-4-5-20250929");
    assert_eq!(row["cache_write_1h"], 6.0);
    assert_eq!(row["long"]["above"], 200_000);
    assert_eq!(row["long"]["output"], 22.5);
    assert_eq!(row["batch"]["input"], 1.5);
    assert_eq!(row["web_search"], 0.01);
    assert_eq!(row["context_limit"], 200_000);
    assert_eq!(row["origin"], "bundled");
}

#[test]
fn a_part_of_a_name_lists_the_models_that_have_it() {
    let names = rows(&home(), &["prices", "haiku"]);
    assert!(names.len() > 3);
    for row in names {
        assert!(row["name"].as_str().unwrap().contains("haiku"), "{row}");
    }
}

#[test]
fn an_unknown_model_is_nothing_found_with_a_way_out() {
    let home = home();
    let told = stderr(&home, &["prices", "claude-opus-99"], 1);
    assert!(
        told.contains("no price for `claude-opus-99`") && told.contains("prices-override.json"),
        "{told}"
    );
}

#[test]
fn an_update_says_what_is_different_and_holds_from_then_on() {
    let home = paid("claude-opus-4-5");
    assert_eq!(cost(&home), 5.0);
    let models = r#"{"date": "2026-12-24", "source": "the wholesaler", "models": {
        "claude-opus-4-5": {"input": 4, "output": 25},
        "claude-opus-9": {"input": 1, "output": 2}}}"#;
    let file = home.write("new.json", models);
    let file = file.to_str().unwrap();
    let changes = rows(&home, &["prices", "update", "--from", file]);
    let of = |model: &str| {
        let row = changes.iter().find(|row| row["model"] == model);
        row.unwrap_or_else(|| panic!("{model}: {changes:?}"))
    };
    assert_eq!(of("claude-opus-9")["change"], "new");
    assert_eq!(of("claude-opus-9")["before"], Value::Null);
    assert_eq!(of("claude-opus-4-5")["change"], "changed");
    assert_eq!(of("claude-opus-4-5")["before"]["input"], 5.0);
    assert_eq!(of("claude-opus-4-5")["after"]["input"], 4.0);
    assert_eq!(of("claude-opus-4-6")["change"], "gone");
    assert_eq!(cost(&home), 4.0);
    // What is gone keeps its last price.
    let gone = rows(&home, &["prices", "claude-opus-4-6"]).remove(0);
    assert_eq!(
        (&gone["input"], &gone["origin"]),
        (&5.0.into(), &"bundled".into())
    );
    let told = stderr(&home, &["prices"], 0);
    assert!(
        told.contains("2026-12-24") && told.contains("the wholesaler"),
        "{told}"
    );
    // The same once more changes nothing but for what is gone.
    let again = rows(&home, &["prices", "update", "--from", file]);
    assert!(again.iter().all(|row| row["change"] == "gone"), "{again:?}");
}

#[test]
fn litellms_table_is_taken_in_without_losing_what_it_no_longer_lists() {
    let home = home();
    let file = home.write(
        "model_prices.json",
        r#"{"sample_spec": {"input_cost_per_token": "here"},
            "gpt-5": {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6},
            "claude-sonnet-4-5": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.6e-05,
                "cache_read_input_token_cost": 3e-07, "max_input_tokens": 200000}}"#,
    );
    let told = stderr(
        &home,
        &["prices", "update", "--from", file.to_str().unwrap()],
        0,
    );
    assert!(told.contains("1 changed"), "{told}");
    let row = rows(&home, &["prices", "claude-sonnet-4-5"]).remove(0);
    assert_eq!(row["output"], 16.0);
    assert_eq!(row["long"]["input"], 6.0);
    assert_eq!(row["origin"], "updated");
    // The day it was taken in, since the file has none.
    let told = stderr(&home, &["prices"], 0);
    assert!(
        told.contains("2026-01-05") && told.contains("model_prices.json"),
        "{told}"
    );
}

#[cfg(unix)]
#[test]
fn the_updated_table_is_for_nobody_else_to_read() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    let file = home.write("new.json", table("claude-opus-9", 1.0));
    stderr(
        &home,
        &["prices", "update", "--from", file.to_str().unwrap()],
        0,
    );
    let mode = |path: &str| {
        let meta = std::fs::metadata(home.path().join(path)).unwrap();
        meta.permissions().mode() & 0o777
    };
    assert_eq!(mode(UPDATED), 0o600);
    assert_eq!(mode(".unspool"), 0o700);
    let left = std::fs::read_dir(home.unspool_dir()).unwrap().count();
    assert_eq!(left, 1, "temporary files are left");
}

#[test]
fn a_file_that_is_no_table_changes_nothing() {
    let home = home();
    for (content, says) in [
        ("{\"models\": {\n  oops", "line 2, column 3"),
        ("[]", "line 1, column"),
        ("{\"name\": \"x\"}", "no price of a Claude model"),
        ("{\"models\": {}}", "no models"),
        (
            "{\"models\": {\"m\": {\"input\": 1, \"out\": 2}}}",
            "unknown field `out`",
        ),
    ] {
        let file = home.write("bad.json", content);
        let told = stderr(
            &home,
            &["prices", "update", "--from", file.to_str().unwrap()],
            2,
        );
        assert!(
            told.contains(says) && told.contains("bad.json"),
            "{content}: {told}"
        );
        assert!(!home.path().join(UPDATED).exists(), "{content}");
    }
    let told = stderr(&home, &["prices", "update", "--from", "/no/such"], 2);
    assert!(told.contains("/no/such"), "{told}");
    stderr(&home, &["prices", "update"], 2);
}

#[test]
fn what_a_person_wrote_goes_before_an_update_and_that_before_the_bundled_table() {
    let home = paid("claude-opus-4-5");
    home.write(UPDATED, table("claude-opus-4-5", 4.0));
    assert_eq!(cost(&home), 4.0);
    home.write(OVERRIDE, table("claude-opus-4-5", 3.0));
    assert_eq!(cost(&home), 3.0);
    let told = stderr(&home, &["prices", "claude-opus-4-5"], 0);
    assert!(told.contains("1 model from "), "{told}");
    let origins = rows(&home, &["prices"]);
    let own = origins.iter().filter(|row| row["origin"] == "override");
    assert_eq!(own.count(), 1);
}

#[test]
fn a_broken_file_of_ones_own_is_an_error_for_prices_and_one_warning_elsewhere() {
    let home = paid("claude-opus-4-5");
    home.write(UPDATED, table("claude-opus-4-5", 4.0));
    home.write(OVERRIDE, "{\"models\": {\"a\": 1}}");
    let told = stderr(&home, &["prices"], 2);
    assert!(
        told.contains("prices-override.json: line 1, column ") && told.contains("\nHint: "),
        "{told}"
    );
    let told = stderr(&home, &["ls"], 0);
    assert_eq!(told.matches("Warning: ").count(), 1, "{told}");
    assert!(told.contains("prices-override.json"), "{told}");
    assert_eq!(cost(&home), 4.0);
    home.write(UPDATED, [0xff, 0xfe]);
    home.write(OVERRIDE, table("claude-opus-9", 1.0));
    assert!(stderr(&home, &["prices"], 2).contains("/prices.json"));
    assert_eq!(cost(&home), 5.0);
}

#[test]
fn sessions_turns_and_agents_have_the_same_cost() {
    let home = home_with_session();
    let agent = "you: look\n(id=msg_own) claude: found";
    home.agent("/home/dev/x", ID, "a0000001", agent);
    // A reply of these sessions: 10 × 3 + 20 × 15 + 1,000 × 0.3 millionths of a dollar.
    let close = |value: &Value, replies: f64| {
        let cost = value.as_f64().unwrap_or(f64::NAN);
        (cost - replies * 0.000_63).abs() < 1e-12
    };
    let turns = rows(&home, &["turns", ID]);
    let messages: Vec<f64> = turns
        .iter()
        .map(|turn| turn["messages"].as_f64().unwrap())
        .collect();
    for (turn, messages) in turns.iter().zip(&messages) {
        let own = &turn["used_by"]["own"]["cost_usd"];
        assert!(close(own, *messages), "{turn}");
    }
    let all: f64 = turns
        .iter()
        .filter_map(|turn| turn["cost_usd"].as_f64())
        .sum();
    assert!(
        close(&all.into(), messages.iter().sum::<f64>() + 1.0),
        "{turns:?}"
    );
    let agent = rows(&home, &["agents", ID]).remove(0);
    assert!(close(&agent["cost_usd"], 1.0), "{agent}");
    let session = rows(&home, &["ls"]).remove(0);
    let all = messages.iter().sum::<f64>() + 1.0;
    assert!(close(&session["cost_usd"], all), "{session}");
}

#[test]
fn an_unknown_model_makes_costs_null_and_a_question_mark() {
    let home = paid("nobody-knows-1");
    assert_eq!(cost(&home), Value::Null);
    assert_eq!(rows(&home, &["turns", ID])[0]["cost_usd"], Value::Null);
    let text = home.run(&["ls"]);
    assert!(text.lines().nth(1).unwrap().contains(" ?  "), "{text}");
    let told = stderr(&home, &["ls"], 0);
    assert_eq!(
        told,
        "1 message without a known price is not in the cost; `unspool usage model` names the models\n"
    );
}

#[test]
fn the_list_of_sessions_shows_how_full_the_context_is_and_fits() {
    let mut home = home();
    home.session(
        "/home/dev/a-project-with-quite-a-long-name",
        ID,
        "you: a question that is long enough to be cut in a narrow terminal, surely\n\
         (usage=100/10/84000/0/0) claude: done",
    );
    let wide = home.run(&["ls"]);
    assert!(wide.contains("84.1k 42%  $0.03  "), "{wide}");
    home.set("COLUMNS", "80");
    let text = home.run(&["ls"]);
    assert!(text.contains("84.1k 42%"), "{text}");
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{text}");
    home.set("COLUMNS", "70");
    let narrow = home.run(&["ls"]);
    assert!(
        narrow.contains("84.1k 42%") && !narrow.contains("cost"),
        "{narrow}"
    );
}

/// Takes in a table of this content and gives back what was said about it.
fn update(home: &Home, name: &str, content: &str) -> String {
    let file = home.write(name, content);
    stderr(
        home,
        &["prices", "update", "--from", file.to_str().unwrap()],
        0,
    )
}

fn row(home: &Home, model: &str) -> Value {
    rows(home, &["prices", model]).remove(0)
}

#[test]
fn a_row_of_litellm_without_a_price_of_the_cache_is_taken_in() {
    let home = home();
    let bare = |input: &str, output: &str| {
        format!(
            r#"{{"input_cost_per_token": {input}, "output_cost_per_token": {output}, "litellm_provider": "anthropic", "mode": "chat"}}"#
        )
    };
    let told = update(
        &home,
        "bare.json",
        &format!(
            r#"{{"claude-opus-4-6": {}, "claude-opus-4-5": {}, "claude-brandnew-9": {}}}"#,
            bare("1e-6", "2e-6"),
            bare("5e-6", "25e-6"),
            bare("3e-6", "4e-6"),
        ),
    );
    assert!(told.contains("1 new, 1 changed"), "{told}");
    assert!(!told.contains("ignored"), "{told}");
    let changed = row(&home, "claude-opus-4-6");
    assert_eq!(
        (&changed["input"], &changed["output"]),
        (&1.0.into(), &2.0.into())
    );
    // The last price of the cache belongs to another price of input.
    assert_eq!(changed["cache_read"], Value::Null);
    assert_eq!(changed["context_limit"], 1_000_000);
    // Nothing speaks against what was known here.
    assert_eq!(row(&home, "claude-opus-4-5")["cache_read"], 0.5);
    let new = row(&home, "claude-brandnew-9");
    assert_eq!((&new["input"], &new["output"]), (&3.0.into(), &4.0.into()));
    assert_eq!(new["cache_read"], Value::Null);
}

#[test]
fn rows_of_litellm_that_are_not_used_are_named() {
    let home = home();
    let priced = r#"{"input_cost_per_token": 7e-6, "output_cost_per_token": 8e-6}"#;
    let told = update(
        &home,
        "some.json",
        &format!(
            r#"{{"claude-brandnew-9": {priced}, "gpt-5": {priced},
                "anthropic.claude-brandnew-9-v1:0": {priced},
                "claude-by-the-second": {{"input_cost_per_second": 1}},
                "deepinfra/claude-elsewhere": {priced},
                "claude-other-latest": {priced},
                "us.anthropic.claude-never-there": {priced}}}"#
        ),
    );
    assert!(
        told.contains(
            "ignored 4 rows of Claude models: claude-by-the-second, claude-other-latest, \
             deepinfra/claude-elsewhere and 1 more"
        ),
        "{told}"
    );
}

#[test]
fn a_price_keeps_the_date_and_source_it_came_with() {
    let home = home();
    let bundled = row(&home, "claude-opus-4-6");
    update(&home, "ok.json", &table("claude-new-9", 1.0));
    update(
        &home,
        "later.json",
        r#"{"date": "2027-02-03", "models": {"claude-new-10": {"input": 1, "output": 2}}}"#,
    );
    assert_eq!(row(&home, "claude-opus-4-6"), bundled);
    assert!(bundled["source"].as_str().unwrap().starts_with("LiteLLM "));
    let told = stderr(&home, &["prices", "claude-opus-4-6"], 0);
    assert!(
        told.contains("LiteLLM") && !told.contains(".json"),
        "{told}"
    );
    let first = row(&home, "claude-new-9");
    assert_eq!(
        (&first["date"], &first["source"]),
        (&"2026-01-05".into(), &"ok.json".into())
    );
    let told = stderr(&home, &["prices", "claude-new-9"], 0);
    assert!(told.contains("as of 2026-01-05 from ok.json"), "{told}");
    let second = row(&home, "claude-new-10");
    assert_eq!(
        (&second["date"], &second["source"]),
        (&"2027-02-03".into(), &"later.json".into())
    );
    let told = stderr(&home, &["prices"], 0);
    assert!(
        told.contains("1 model as of 2026-01-05 from ok.json")
            && told.contains("1 model as of 2027-02-03 from later.json"),
        "{told}"
    );
}

#[test]
fn a_price_of_ones_own_does_not_claim_the_date_of_a_table() {
    let home = home();
    home.write(OVERRIDE, table("claude-opus-4-6", 1.0));
    let own = row(&home, "claude-opus-4-6");
    assert_eq!(own["date"], Value::Null);
    let source = own["source"].as_str().unwrap();
    assert!(source.ends_with("prices-override.json"), "{source}");
}

#[test]
fn an_update_keeps_what_the_update_before_it_brought() {
    let home = home();
    update(&home, "first.json", &table("claude-new-9", 1.0));
    update(&home, "second.json", &table("claude-opus-4-6", 2.0));
    assert_eq!(row(&home, "claude-new-9")["input"], 1.0);
    assert_eq!(row(&home, "claude-opus-4-6")["input"], 2.0);
    update(
        &home,
        "third.json",
        r#"{"claude-opus-4-5": {"input_cost_per_token": 3e-6, "output_cost_per_token": 4e-6}}"#,
    );
    assert_eq!(row(&home, "claude-new-9")["input"], 1.0);
    assert_eq!(row(&home, "claude-new-9")["source"], "first.json");
    assert_eq!(row(&home, "claude-opus-4-6")["input"], 2.0);
    assert_eq!(row(&home, "claude-opus-4-5")["input"], 3.0);
}

#[test]
fn what_is_wrong_with_a_table_is_said_in_words() {
    let home = home();
    for (content, says) in [
        (
            "[]",
            "bad.json: line 1, column 1: expected an object of models, found a list",
        ),
        (
            "\n 17",
            "bad.json: line 2, column 3: expected an object of models, found `17`",
        ),
        (
            "{\"models\": []}",
            "expected an object of models, found a list",
        ),
        (
            "{\"models\": {\"m\": [1, 2]}}",
            "expected an object of prices, found a list",
        ),
        (
            "{\"models\": {\"m\": {\"input\": \"3\", \"output\": 2}}}",
            "expected a number, found \"3\"",
        ),
        (
            "{\"claude-x\": 3}",
            "expected an object of prices, found `3`",
        ),
        ("{\"models\": {", "unexpected end of file"),
        ("", "unexpected end of file"),
        (
            "{\"models\": {\n  oops",
            "line 2, column 3: invalid JSON (key must be a string)",
        ),
    ] {
        let file = home.write("bad.json", content);
        let told = stderr(
            &home,
            &["prices", "update", "--from", file.to_str().unwrap()],
            2,
        );
        assert!(told.contains(says), "{content}: {told}");
        assert!(!told.contains("struct"), "{content}: {told}");
    }
}

#[test]
fn a_file_of_prices_that_cannot_exist_is_no_warning() {
    let mut home = paid("claude-opus-4-5");
    let file = home.write("not-a-folder", "x");
    home.set("UNSPOOL_HOME", file.to_str().unwrap());
    let told = stderr(&home, &["ls"], 0);
    assert!(!told.contains("prices"), "{told}");
    assert_eq!(row(&home, "claude-opus-4-5")["input"], 5.0);
}
