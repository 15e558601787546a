//! Tests of the finder. Samples are made when the tests run, so that nothing here looks like
//! a secret to anybody who searches the repository.

mod examples;
mod sample;

use proptest::prelude::*;
use unspool_testkit::corpus;
use unspool_testkit::random::Random;

use super::*;
use crate::edit::redact::Redactor;
use sample::{digits, sample};

fn rules() -> &'static SecretRules {
    SecretRules::standard()
}

fn find(text: &str) -> Vec<(&str, &str)> {
    let found = SecretFinder::standard().find(text).into_iter();
    found.map(|one| (&text[one.range], one.rule)).collect()
}

/// What the rules find if each is tried everywhere, without anchors.
fn find_slowly(text: &str) -> Vec<(Range<usize>, usize)> {
    let orders = 0..rules().list.len();
    let starts = orders.flat_map(|order| (0..=text.len()).map(move |start| (order, start)));
    let found = starts.filter_map(|(order, start)| rules().at(order, text, start));
    sorted(found.map(|found| (found.range, found.order)).collect())
}

fn sorted(mut found: Vec<(Range<usize>, usize)>) -> Vec<(Range<usize>, usize)> {
    found.sort_by_key(|(range, order)| (*order, range.start, range.end));
    found.dedup();
    found
}

/// Text of pieces in which secrets are likely, whole, cut and glued.
fn dense(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut text = String::new();
    for _ in 0..random.range(1, 6) {
        let rule = random.pick(&rules().list);
        match random.below(6) {
            0 => text.push_str(random.pick::<String>(&rule.anchors)),
            1 => text.push_str(&random.pick(&rule.anchors).to_ascii_uppercase()),
            2 => text.push_str(random.pick::<&str>(&[
                " = \"",
                ": ",
                "\n",
                "密钥",
                "=",
                "é",
                "'",
                "://a:b@c",
                "[REDACTED:x]",
            ])),
            3 => {
                let piece = sample(&rule.regex.text, &mut random);
                let half = piece.len() / 2;
                text.push_str(piece.get(..half).unwrap_or_default());
            }
            _ => text.push_str(&sample(&rule.regex.text, &mut random)),
        }
        if random.chance(60) {
            text.push(*random.pick(&[' ', '\n', '"', '，', ',', '/']));
        }
    }
    text
}

fn check(text: &str) {
    let secrets = SecretFinder::standard().find(text);
    let mut end = 0;
    for secret in &secrets {
        assert!(
            secret.range.start >= end && !secret.range.is_empty(),
            "{secrets:?} in {text:?}"
        );
        assert!(
            text.get(secret.range.clone()).is_some(),
            "{secrets:?} in {text:?}"
        );
        end = secret.range.end;
    }
    let masked = SecretFinder::standard().mask(text);
    assert_eq!(matches!(masked, Cow::Borrowed(_)), secrets.is_empty());
    assert_eq!(find(&masked), [], "left in {masked:?}, once {text:?}");
    assert_eq!(SecretFinder::standard().has(text), !secrets.is_empty());
}

#[test]
fn every_rule_compiles_and_says_what_it_finds() {
    assert!(rules().list.len() > 240, "{} rules", rules().list.len());
    for rule in &rules().list {
        assert!(
            rule.regex.regex().is_some(),
            "{}: {}",
            rule.id,
            rule.regex.text
        );
        let doubts = rule.not.iter().chain(&rule.not_match).chain(&rule.not_line);
        for pattern in doubts.chain(rules().doubts.patterns()) {
            assert!(pattern.regex().is_some(), "{}: {}", rule.id, pattern.text);
        }
        assert!(
            !rule.about.is_empty() && !rule.anchors.is_empty(),
            "{}",
            rule.id
        );
        for anchor in &rule.anchors {
            assert!(
                anchor.len() >= 3 && *anchor == anchor.to_lowercase(),
                "{}: {anchor}",
                rule.id
            );
        }
    }
}

#[test]
fn every_rule_finds_what_it_describes_whatever_stands_around() {
    let mut random = Random::new(7);
    for (order, rule) in rules().list.iter().enumerate() {
        let mut count = 0;
        for _ in 0..40 {
            let text = format!("密钥 {}\n密钥", sample(&rule.regex.text, &mut random));
            let slow = (0..text.len()).filter_map(|start| rules().at(order, &text, start));
            let slow: Vec<_> = slow.map(|found| found.range).collect();
            let found = rules()
                .find(&text)
                .into_iter()
                .filter(|one| one.order == order);
            let found: Vec<_> = found.map(|found| found.range).collect();
            let is_lost = slow.iter().any(|one| !found.contains(one));
            assert!(!is_lost, "the anchors of {} lose {text:?}", rule.id);
            count += usize::from(!found.is_empty());
        }
        // Some samples are too regular by chance, or hold a word.
        assert!(count >= 12, "{}: only {count} of 40", rule.id);
    }
}

#[test]
fn tokens_of_a_telling_form_are_found_where_they_stick_to_a_word() {
    let mut random = Random::new(9);
    let rules = rules().list.iter();
    let mut glued = 0;
    for rule in rules.filter(|rule| !rule.glued.is_empty()) {
        for _ in 0..20 {
            let token = sample(&rule.regex.text, &mut random);
            let token = token.trim_matches(|c: char| !c.is_ascii_alphanumeric());
            if !rule.glued.iter().any(|start| token.starts_with(start)) || find(token).is_empty() {
                continue;
            }
            for word in ["key", "my_", "TOKEN_", "token"] {
                let text = format!("see {word}{token} there");
                let masked = SecretFinder::standard().mask(&text).into_owned();
                assert!(!masked.contains(&token[8..]), "{}: {text}", rule.id);
                glued += 1;
            }
        }
    }
    assert!(glued > 500, "{glued}");
    // Behind letters and digits it would be a part of something random.
    let token = sample("AIza[a-z0-9]{35}", &mut random);
    assert_eq!(find(&format!("see 9fQ{token} there")), []);
}

#[test]
fn no_character_that_nobody_sees_splits_a_token() {
    let token = sample("glpat-[a-z0-9]{20}", &mut Random::new(4));
    for unseen in [
        '\u{ad}',
        '\u{34f}',
        '\u{61c}',
        '\u{115f}',
        '\u{1160}',
        '\u{17b4}',
        '\u{180b}',
        '\u{180e}',
        '\u{200b}',
        '\u{200f}',
        '\u{202e}',
        '\u{2060}',
        '\u{2065}',
        '\u{206a}',
        '\u{206f}',
        '\u{3164}',
        '\u{fe00}',
        '\u{fe0f}',
        '\u{feff}',
        '\u{ffa0}',
        '\u{fff0}',
        '\u{fff9}',
        '\u{1bca0}',
        '\u{1d173}',
        '\u{e0001}',
        '\u{e0020}',
        '\u{e01ef}',
    ] {
        let text = format!("x {}{unseen}{unseen}{} y", &token[..9], &token[9..]);
        assert_eq!(
            SecretFinder::standard().mask(&text),
            "x [REDACTED:gitlab-pat] y",
            "{unseen:?}"
        );
    }
    // They choose the look of an emoji, and join the letters of a script.
    let text = "⚠️ password 👩\u{200d}💻 می\u{200c}خواهم";
    assert_eq!(find(text), []);
}

#[test]
fn an_escape_of_addresses_hides_no_token() {
    let token = sample("glpat-[a-z0-9]{20}", &mut Random::new(4));
    let text = format!("open https://x.org/?u={} now", token.replace('-', "%2D"));
    assert_eq!(
        SecretFinder::standard().mask(&text),
        "open https://x.org/?u=[REDACTED:gitlab-pat] now"
    );
    assert_eq!(find("100%2D of %3dx and %d%s"), []);
}

#[test]
fn a_token_has_the_same_rule_wherever_it_stands() {
    let mut random = Random::new(8);
    let formats = rules()
        .list
        .iter()
        .filter(|rule| rule.level == RuleCertainty::Format);
    for rule in formats {
        let text = sample(&rule.regex.text, &mut random);
        let Some(&(token, name)) = find(&text).first() else {
            continue;
        };
        // A signature, a key in an address and the like need what is around them.
        if find(token) != [(token, name)] || token.contains(char::is_whitespace) {
            continue;
        }
        for around in [
            "token: {}",
            "\"api_key\": \"{}\",",
            "Authorization: Bearer {}",
            "x={}&y",
            "({})",
        ] {
            let text = around.replace("{}", token);
            let rules: Vec<_> = find(&text).into_iter().map(|(_, rule)| rule).collect();
            assert_eq!(rules, [name], "{text}");
        }
    }
}

#[test]
fn anchors_lose_nothing() {
    for seed in 0..60 {
        let text = dense(seed);
        // Names are read by code, which has no anchors to lose.
        let is_rule = |found: &SecretCandidate<'_>| found.order < rules().list.len();
        let found = rules().find(&text).into_iter().filter(is_rule);
        let found = sorted(found.map(|found| (found.range, found.order)).collect());
        let slow = find_slowly(&text);
        let lost: Vec<_> = slow.iter().filter(|one| !found.contains(one)).collect();
        let names: Vec<_> = lost
            .iter()
            .map(|(_, order)| &rules().list[*order].id)
            .collect();
        assert_eq!(found, slow, "{names:?} in {text:?}");
    }
}

/// A text as a string of JSON, in one of the many ways to write it.
fn written(text: &str, random: &mut Random) -> String {
    let mut raw = String::new();
    let escapes = *random.pick(&[0, 2, 40]);
    for character in text.chars() {
        let mut units = [0; 2];
        match character {
            '\n' => raw.push_str(r"\n"),
            '/' if random.chance(50) => raw.push_str(r"\/"),
            '"' | '\\' => raw.extend(['\\', character]),
            _ if character < ' ' || random.chance(escapes) => {
                let units = character.encode_utf16(&mut units).iter();
                raw.extend(units.map(|unit| format!("\\u{unit:04x}")));
            }
            _ => raw.push(character),
        }
    }
    raw
}

#[test]
fn a_line_has_the_secrets_of_its_texts_however_they_are_written() {
    let redactor = Redactor::masking(SecretFinder::standard().clone());
    for seed in 0..600 {
        let text = dense(seed);
        let raw = written(&text, &mut Random::new(seed));
        let line = format!(r#"{{"x": "{raw}", "n": 1}}"#);
        let places = redactor.places(line.as_bytes());
        let places = places.iter().map(|place| {
            let raw = place.span.of(line.as_bytes());
            (crate::json::inner(raw).into_owned(), place.rule.as_str())
        });
        let places: Vec<_> = places.collect();
        let found = find(&text).into_iter();
        let found: Vec<_> = found.map(|(text, rule)| (text.to_owned(), rule)).collect();
        assert_eq!(places, found, "{text:?} as {line}");
    }
}

#[test]
fn ranges_are_valid_and_masks_hold_in_text_full_of_secrets() {
    for seed in 0..600 {
        check(&dense(seed));
    }
}

proptest! {
    #[test]
    fn ranges_are_valid_and_masks_hold_in_any_text(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn text_like_assignments_is_no_trouble(text in "((api|KEY|token|secret|://|Bearer |密)[ :=\"'@]{0,3}[a-z0-9A-Z+/_.-]{0,40}[\n \"@]?){0,4}") {
        check(&text);
    }
}

#[test]
fn recordings_of_the_client_hold_no_secret() {
    let mut texts = 0;
    for file in corpus::files() {
        let bytes = file.bytes();
        for line in String::from_utf8_lossy(&bytes).lines() {
            let Ok(value) = serde_json::from_str(line) else {
                continue;
            };
            each_string(&value, &mut |text| {
                texts += 1;
                assert_eq!(find(text), [], "{}", file.name());
            });
        }
    }
    assert!(texts > 10_000, "{texts} texts");
}

fn each_string(value: &serde_json::Value, call: &mut impl FnMut(&str)) {
    match value {
        serde_json::Value::String(text) => call(text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| each_string(item, call)),
        serde_json::Value::Object(fields) => {
            fields.values().for_each(|field| each_string(field, call))
        }
        _ => {}
    }
}

#[test]
fn known_values_are_found_by_name_and_short_ones_are_not() {
    let value = "correct horse battery";
    let secrets = SecretFinder::standard().with_values([("DB_PASS", value), ("SHORT", "hunter2")]);
    let text = format!("login with {value}, or hunter2");
    assert_eq!(
        secrets.mask(&text),
        "login with [REDACTED:DB_PASS], or hunter2"
    );
    let more = secrets.with_values([("a]b", "another long value")]);
    let text = format!("{value} another long value");
    assert_eq!(more.mask(&text), "[REDACTED:DB_PASS] [REDACTED:ab]");
    assert!(!SecretFinder::standard().has(&text));
    assert!(!secrets.with_values([("", "")]).has("anything"));
}

#[test]
fn a_known_value_names_what_a_rule_finds_too() {
    let token = format!("ghp_{}", digits(36, &mut Random::new(1)));
    let secrets = SecretFinder::standard().with_values([("GH_TOKEN", &token)]);
    assert_eq!(secrets.mask(&token), "[REDACTED:GH_TOKEN]");
}

#[test]
fn other_placeholders_can_be_put_in_place() {
    let token = format!("ghp_{}", digits(36, &mut Random::new(2)));
    let text = format!("<{token}> and <{token}>");
    let mut seen = Vec::new();
    let masked = SecretFinder::standard().mask_with(&text, |secret, rule| {
        seen.push(secret.to_owned());
        format!("[REDACTED:{rule}:{}]", secret.len())
    });
    assert_eq!(
        masked,
        "<[REDACTED:github-pat:40]> and <[REDACTED:github-pat:40]>"
    );
    assert_eq!(seen, [token.clone(), token]);
}

#[test]
fn entropy_is_that_of_shannon() {
    for (text, bits) in [
        ("", 0.0),
        ("aaaa", 0.0),
        ("abab", 1.0),
        ("abcd", 2.0),
        ("0123456789abcdef", 4.0),
    ] {
        assert!(
            (false_positives::entropy(text) - bits).abs() < 1e-9,
            "{text}"
        );
    }
}

#[test]
fn masking_around_a_place_masks_all_that_masking_does_and_keeps_the_place() {
    let token = ["ghp_", "x7Qa9ZpLm2", "Rt4VbN8cKd", "3Wf6HsJy1T", "g5Ue0i"].concat();
    let secrets = SecretFinder::standard();
    for text in [
        format!("a {token} b MARK c {token} d"),
        format!("{token}{token} MARK {token}"),
        format!("password={token} MARK https://me:{token}@example.com"),
    ] {
        let at = text.find("MARK").unwrap();
        let (masked, range) = secrets.mask_around(&text, at..at + 4).unwrap();
        assert_eq!(masked, secrets.mask(&text));
        assert_eq!(&masked[range], "MARK");
    }
    assert_eq!(secrets.mask_around("nothing here", 0..3), None);
}
