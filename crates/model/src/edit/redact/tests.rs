//! Tests of redaction. Samples are made when the tests run, so that nothing here looks like a
//! secret to anybody who searches the repository.

use memchr::memmem;
use proptest::prelude::*;
use unspool_testkit::corpus;
use unspool_testkit::random::Random;

use super::*;

fn redactor() -> Redactor {
    Redactor::new(SecretFinder::standard().clone(), [7; 32])
}

fn draw(count: usize, from: &[u8], random: &mut Random) -> String {
    (0..count).map(|_| char::from(*random.pick(from))).collect()
}

const DIGITS: &[u8] = b"abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";

fn token(seed: u64) -> String {
    format!("ghp_{}", draw(36, DIGITS, &mut Random::new(seed)))
}

/// A key of Anthropic, which has dashes.
fn key(seed: u64) -> String {
    let body = draw(93, DIGITS, &mut Random::new(seed));
    format!("sk-ant-api03-{body}AA")
}

fn pem(seed: u64) -> String {
    let mut random = Random::new(seed);
    let line = |random: &mut Random| draw(64, DIGITS, random);
    let lines: Vec<String> = (0..8).map(|_| line(&mut random)).collect();
    let (begin, end) = ("-----BEGIN RSA PRIVATE", "-----END RSA PRIVATE");
    format!("{begin} KEY-----\n{}\n{end} KEY-----", lines.join("\n"))
}

/// Redacts `before` + `raw` + `after` and sees that only `raw` was replaced.
#[track_caller]
fn replaces(before: &str, raw: &str, after: &str, rule: &str, secret: &str) {
    let redactor = redactor();
    let line = format!("{before}{raw}{after}");
    let done = redactor.line(line.as_bytes()).unwrap_or_default();
    let hash = redactor.hash(secret);
    let text = String::from_utf8(done.bytes.clone()).unwrap();
    assert_eq!(text, format!("{before}[REDACTED:{rule}:{hash}]{after}"));
    assert_eq!(done.found, [(rule.to_owned(), hash)]);
    assert_eq!(redactor.line(&done.bytes), None);
}

#[track_caller]
fn keeps(line: &str) {
    assert_eq!(redactor().line(line.as_bytes()), None, "{line}");
}

/// The names of the calls in a line.
fn tool_names(line: &[u8]) -> Vec<String> {
    let value: serde_json::Value = serde_json::from_slice(line).unwrap();
    let blocks = value["message"]["content"].as_array().unwrap().iter();
    let names = blocks.map(|block| block["name"].as_str().unwrap().to_owned());
    names.collect()
}

#[test]
fn a_tool_name_without_its_token_is_still_one_that_the_api_takes() {
    let is_taken = |name: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        (1..=128).contains(&name.len()) && name.bytes().all(is_part)
    };
    let (one, two) = (token(1), key(2));
    let named = SecretFinder::standard().with_values([("my key.€".repeat(30), "walrus-otter-77")]);
    for redactor in [
        Redactor::new(named.clone(), [7; 32]),
        Redactor::masking(named),
    ] {
        let names = [
            format!("mcp__{one}__look"),
            format!("mcp__{one}__push"),
            two.clone(),
            format!("mcp__{two}"),
            format!("mcp__walrus-otter-77__{}", "x".repeat(105)),
        ];
        let calls = names.each_ref().map(|name| {
            format!(r#"{{"id":"t","name":"{name}","input":{{"a":"{one}"}},"type":"tool_use"}}"#)
        });
        let calls = calls.join(",");
        let line = format!(r#"{{"type":"assistant","message":{{"content":[{calls}]}}}}"#);
        let done = redactor.line(line.as_bytes()).unwrap();
        let text = String::from_utf8(done.bytes.clone()).unwrap();
        assert!(!text.contains(&one) && !text.contains(&two), "{text}");
        assert!(text.contains(r#"{"a":"[REDACTED:github-pat"#), "{text}");
        let new = tool_names(&done.bytes);
        for name in &new {
            assert!(is_taken(name) && name.contains("REDACTED"), "{name}");
        }
        assert!(new[0].starts_with("mcp__REDACTED_github-pat"), "{}", new[0]);
        assert_eq!(new[0].replace("__look", "__push"), new[1]);
        assert_eq!(format!("mcp__{}", new[2]), new[3]);
        assert_eq!(redactor.line(&done.bytes), None, "{text}");
        let snippets: Vec<_> = redactor.hits(line.as_bytes(), false);
        assert!(
            snippets[0].snippet.starts_with("mcp__REDACTED_"),
            "{snippets:?}"
        );
    }
}

#[test]
fn a_reference_to_a_tool_is_redacted_as_its_name_is() {
    let token = token(1);
    let name = |line: &str, field: &str| {
        let done = redactor().line(line.as_bytes()).unwrap();
        let text = String::from_utf8(done.bytes).unwrap();
        let (_, rest) = text.rsplit_once(&format!("\"{field}\":\"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let call = format!(
        r#"{{"message":{{"content":[{{"type":"tool_use","id":"t","input":{{}},"name":"mcp__{token}__x"}}]}}}}"#
    );
    let reference = format!(
        r#"{{"message":{{"content":[{{"type":"tool_result","content":[{{"type":"tool_reference","tool_name":"mcp__{token}__x"}}]}}]}}}}"#
    );
    assert_eq!(name(&call, "name"), name(&reference, "tool_name"));
    // The name of anything else is text.
    let other = format!(r#"{{"message":{{"content":[{{"type":"x","name":"{token}"}}]}}}}"#);
    assert!(name(&other, "name").starts_with("[REDACTED:"));
}

#[test]
fn names_lose_tokens_on_screens_and_in_files() {
    let secret = token(1);
    let masks = Redactor::masking(SecretFinder::standard().clone());
    for field in ["cwd", "gitBranch", "permissionMode", "slug", "version"] {
        let line = format!(r#"{{"type":"user","{field}":"/x/{secret}"}}"#);
        let redacted = redactor().line(line.as_bytes()).unwrap_or_default();
        assert!(redacted.bytes.ends_with(b"]\"}"), "{field}");
        let masked = masks.line(line.as_bytes()).unwrap_or_default();
        assert!(
            memmem::find(&masked.bytes, secret.as_bytes()).is_none(),
            "{field}"
        );
    }
    for field in ["model", "stop_reason"] {
        let line = format!(r#"{{"type":"assistant","message":{{"{field}":"{secret}"}}}}"#);
        assert!(redactor().line(line.as_bytes()).is_some(), "{field}");
        assert!(masks.line(line.as_bytes()).is_some(), "{field}");
    }
    // Lines and calls are found by these.
    let ids = format!(r#"{{"uuid":"{secret}","message":{{"id":"{secret}"}}}}"#);
    assert_eq!(masks.line(ids.as_bytes()), None);
}

#[test]
fn short_values_are_found_by_their_field_and_by_the_name_beside_them() {
    for (before, after) in [
        (
            r#"{"message":{"content":[{"type":"tool_use","input":{"password":""#,
            r#""}}]}}"#,
        ),
        (
            r#"{"toolUseResult":{"env":[{"name":"DB_PASSWORD","value":""#,
            r#""}]}}"#,
        ),
        (r#"{"toolUseResult":{"db_pwd":""#, r#"","port":5432}}"#),
    ] {
        let line = format!("{before}hunter2{after}");
        let done = redactor().line(line.as_bytes()).unwrap_or_default();
        let text = String::from_utf8(done.bytes).unwrap();
        assert!(
            !text.contains("hunter2") && text.starts_with(before),
            "{line}: {text}"
        );
    }
    keeps(r#"{"toolUseResult":{"env":[{"name":"LOG_LEVEL","value":"debug7"}]}}"#);
}

#[test]
fn copies_of_files_beside_results_are_left_out_only_for_those_who_never_show_them() {
    let secret = token(1);
    let line = |head: &str, kept: &str| {
        format!(
            r#"{{{head}"toolUseResult":{kept},"content":"{secret}","file":{{"content":"{secret}"}}}}"#
        )
    };
    let user = r#""type":"user","message":{"role":"user","content":[]},"#;
    let read =
        format!(r#"{{"file":{{"content":"{secret}\\","filePath":"{secret}"}},"x":"{secret}"}}"#);
    let edit = format!(
        r#"{{"originalFile":"{secret}\"","originalfile":"{secret}","content":"{secret}"}}"#
    );
    let all = redactor();
    let few = redactor().without_copies();
    for kept in [&read, &edit] {
        let line = line(user, kept);
        assert_eq!(all.places(line.as_bytes()).len(), 5, "{line}");
        assert_eq!(few.places(line.as_bytes()).len(), 4, "{line}");
    }
    // Anything else than a line whose result is shown instead is looked at as a whole.
    for head in [
        "",
        r#""type":"user","#,
        r#""type":"other","message":{},"#,
        r#""message":{},"type":"user","#,
    ] {
        let line = line(head, &edit);
        assert_eq!(few.places(line.as_bytes()).len(), 5, "{line}");
    }
    let line = line(user, &edit).replace("}}", r#"},"type":"other"}"#);
    assert_eq!(few.places(line.as_bytes()).len(), 5, "{line}");
}

/// A user line around a raw piece of a string.
fn user(inner: &str) -> (String, String) {
    let head = r#"{"type":"user", "uuid":"u1","n":1.0e3,"x":"\u0041\/","message":{"role":"user","content":[{"type":"text","text":"#;
    (format!("{head}\"{inner}"), r#""}]}, "k":[ ]}"#.to_owned())
}

#[test]
fn only_the_bytes_of_the_secret_are_replaced() {
    let token = token(1);
    let (before, after) = user(r"caf\u00e9 \ud83d\ude00 is ");
    let after = format!(r#", \"said\"\/\u0041{after}"#);
    replaces(&before, &token, &after, "github-pat", &token);
}

#[test]
fn escapes_inside_a_secret_do_not_hide_it() {
    let key = key(2);
    let (before, after) = user("use ");
    let escaped = key.replacen('-', "\\u002d", 2);
    replaces(&before, &escaped, &after, "anthropic-api-key", &key);
    let mut secret = draw(38, DIGITS, &mut Random::new(20));
    secret.insert(9, '/');
    secret.insert(20, '/');
    let (before, after) = user("aws_secret_access_key = ");
    let raw = secret.replace('/', "\\/");
    replaces(&before, &raw, &after, "aws-secret-access-key", &secret);
}

#[test]
fn private_keys_go_with_all_their_lines() {
    let pem = pem(3);
    let (before, after) = user("key:\\n");
    let raw = pem.replace('\n', "\\n");
    replaces(
        &before,
        &raw,
        &format!("\\nend{after}"),
        "private-key",
        &pem,
    );
    let redacted = redactor().text(&format!("a\n{pem}\nb\n")).unwrap();
    let text = String::from_utf8(redacted.bytes).unwrap();
    let hash = redactor().hash(&pem);
    assert_eq!(text, format!("a\n[REDACTED:private-key:{hash}]\nb\n"));
}

#[test]
fn json_inside_strings_is_looked_into() {
    let key = key(4);
    let inner = format!(r#"{{"a":"\n{}","b":"x"}}"#, key.replace('-', "\\u002d"));
    let twice = json::quoted(&inner);
    let raw = key.replace('-', "\\\\u002d");
    let (left, right) = twice.split_once(&raw).unwrap();
    replaces(left, &raw, right, "anthropic-api-key", &key);
    // Three times, with a name that is escaped as well.
    let value = draw(32, DIGITS, &mut Random::new(5));
    let inner = format!(r#"{{"db_password": "{value}"}}"#);
    let line = json::quoted(&json::quoted(&json::quoted(&inner)));
    let done = redactor().line(line.as_bytes()).unwrap();
    let text = String::from_utf8(done.bytes).unwrap();
    assert!(!text.contains(&value), "{text}");
    assert_eq!(
        text,
        line.replace(
            &value,
            &text[text.find('[').unwrap()..=text.find(']').unwrap()]
        )
    );
}

#[test]
fn terminal_codes_do_not_split_a_secret() {
    let token = token(6);
    let (head, tail) = token.split_at(10);
    let raw = format!("{head}\\u001b[1m\\u001b[31m{tail}");
    let (before, after) = user("\\u001b[32m");
    replaces(
        &before,
        &raw,
        &format!("\\u001b[0m{after}"),
        "github-pat",
        &token,
    );
}

fn base64(text: &[u8], width: usize) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in text.chunks(3) {
        let mut word = [0; 4];
        word[1..=three.len()].copy_from_slice(three);
        let word = u32::from_be_bytes(word);
        for place in 0..4 {
            if place <= three.len() {
                let digit = word >> (18 - 6 * place) & 63;
                out.push(char::from(ALPHABET[digit as usize]));
            } else {
                out.push('=');
            }
        }
    }
    let lines: Vec<&[u8]> = out.as_bytes().chunks(width).collect();
    String::from_utf8(lines.join(&b'\n')).unwrap()
}

#[test]
fn base64_that_holds_a_secret_goes_as_a_whole() {
    let token = token(7);
    let file = format!("# settings\nUSER=me\nGITHUB_TOKEN={token}\nEDITOR=vi\n");
    for width in [10_000, 76, 64] {
        let packed = base64(file.as_bytes(), width);
        let (before, after) = user("base64 .env\\n");
        let raw = packed.replace('\n', "\\n");
        replaces(
            &before,
            &raw,
            &format!("\\n$ {after}"),
            "github-pat",
            &token,
        );
    }
    // In JSON inside of the string, line breaks are escaped twice.
    let raw = base64(file.as_bytes(), 76).replace('\n', "\\\\n");
    let (before, after) = user(r#"{\"content\":\""#);
    replaces(
        &before,
        &raw,
        &format!("\\\"}}{after}"),
        "github-pat",
        &token,
    );
    let (before, after) = user("");
    keeps(&format!(
        "{before}{}{after}",
        base64("just some text ".repeat(9).as_bytes(), 76)
    ));
}

#[test]
fn what_a_client_finds_its_way_by_stays_and_the_same_text_elsewhere_goes() {
    let token = token(8);
    let seal = base64(format!("GITHUB_TOKEN={token} and more").as_bytes(), 1000);
    let line = |text: &str| {
        format!(
            concat!(
                r#"{{"parentUuid":"{0}","sessionId":"{0}","requestId":"{0}","uuid":"{0}","type":"assistant","#,
                r#""message":{{"id":"{0}","role":"assistant","content":[{{"type":"thinking","thinking":"","signature":"{0}"}},"#,
                r#"{{"data":"{1}","type":"redacted_thinking"}},{{"type":"tool_use","id":"{0}","input":{{"id":"{2}"}}}},"#,
                r#"{{"type":"tool_result","tool_use_id":"{0}","content":"{2}"}}]}}}}"#
            ),
            token, seal, text
        )
    };
    let done = redactor().line(line(&token).as_bytes()).unwrap();
    let place = redactor().placeholder("github-pat", &token);
    assert_eq!(String::from_utf8(done.bytes).unwrap(), line(&place));
    assert_eq!(done.found.len(), 2);
    keeps(&line("nothing"));
}

#[test]
fn a_known_value_that_is_an_id_goes_from_texts_and_stays_in_links() {
    let id = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
    let secrets = SecretFinder::standard().with_values([("MY_KEY", id)]);
    let redactor = Redactor::new(secrets, [7; 32]);
    let line = |text: &str| {
        format!(
            r#"{{"uuid":"{id}","snapshot":{{"messageId":"{id}"}},"compactMetadata":{{"preservedSegment":{{"headUuid":"{id}"}}}},"toolUseResult":{{"id":"{text}"}},"message":{{"content":"it is {text}"}}}}"#
        )
    };
    let done = redactor.line(line(id).as_bytes()).unwrap();
    let place = redactor.placeholder("MY_KEY", id);
    assert_eq!(String::from_utf8(done.bytes).unwrap(), line(&place));
}

#[test]
fn the_name_of_a_field_makes_its_value_a_secret() {
    let value = draw(24, DIGITS, &mut Random::new(9));
    let before = r#"{"type":"user","toolUseResult":{"env":{"db_password":""#;
    let done = redactor()
        .line(format!("{before}{value}\"}}}}}}").as_bytes())
        .unwrap();
    let text = String::from_utf8(done.bytes).unwrap();
    assert!(text.starts_with(before) && !text.contains(&value), "{text}");
    keeps(
        r#"{"type":"user","toolUseResult":{"promptTokens":"three hundred","key":"ArrowDown","tokenizer":"bpe"}}"#,
    );
}

#[test]
fn keys_of_objects_may_be_secrets_too() {
    let token = token(10);
    replaces(r#"{"m":{""#, &token, r#"":1}}"#, "github-pat", &token);
}

#[test]
fn thinking_that_lost_a_secret_is_counted() {
    let token = token(11);
    let line = format!(
        r#"{{"type":"assistant","message":{{"content":[{{"type":"thinking","thinking":"use {token} here","signature":"c2ln"}}]}}}}"#
    );
    assert_eq!(redactor().line(line.as_bytes()).unwrap().thinking, 1);
}

#[test]
fn torn_and_glued_lines_and_bytes_that_are_no_text_are_redacted() {
    let token = token(12);
    let lines: [Vec<u8>; 5] = [
        format!(r#"{{"type":"user","message":{{"content":"half {token} of"#).into_bytes(),
        format!(r#"f {token} of it"}},"uuid":"x"}}"#).into_bytes(),
        format!(r#"{{"a":"b"}}{{"c":"{token}"}} tail {token}"#).into_bytes(),
        [
            b"{\"a\":\"\xff\xfe ".as_slice(),
            token.as_bytes(),
            b" \xff\"}",
        ]
        .concat(),
        [b"\xff ".as_slice(), token.as_bytes(), b" \\u00"].concat(),
    ];
    for line in lines {
        let done = redactor().line(&line).unwrap();
        let place = redactor().placeholder("github-pat", &token);
        let text = replaced(&line, token.as_bytes(), place.as_bytes());
        assert_eq!(done.bytes, text, "{}", String::from_utf8_lossy(&line));
        assert_eq!(redactor().line(&done.bytes), None);
    }
}

/// All of `old` in `bytes` replaced by `new`.
fn replaced(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let spans = memmem::find_iter(bytes, old);
    let edits: Vec<_> = spans
        .map(|at| (Span::new(at, at + old.len()), new.to_vec()))
        .collect();
    json::splice(bytes, &edits)
}

#[test]
fn equal_secrets_have_equal_placeholders_and_other_keys_other_ones() {
    let (one, two) = (token(13), token(14));
    let redactor = redactor();
    assert_eq!(redactor.hash(&one), redactor.hash(&one));
    assert_ne!(redactor.hash(&one), redactor.hash(&two));
    let other = Redactor::new(SecretFinder::standard().clone(), [8; 32]);
    assert_ne!(redactor.hash(&one), other.hash(&one));
    assert_eq!(redactor.hash(&one).len(), 6);
}

#[test]
fn recordings_of_the_client_stay_as_they_are() {
    let redactor = redactor();
    for file in corpus::files() {
        for line in file.bytes().split(|byte| *byte == b'\n') {
            assert_eq!(redactor.line(line), None, "{}", file.name());
        }
    }
}

/// A line in which secrets of many forms stand in many places.
fn crowded(seed: u64) -> String {
    let mut random = Random::new(seed);
    let value = |random: &mut Random| {
        let secret = match random.below(5) {
            0 => token(random.next()),
            1 => key(random.next()),
            2 => pem(random.next()),
            3 => format!("password={}", draw(20, DIGITS, random)),
            _ => format!("https://u:{}@h.example", draw(16, DIGITS, random)),
        };
        let around = ["", " ", "\n", "\"", "é", "x=", "密", "\u{1b}[1m", "\\", ":"];
        let text = format!("{}{secret}{}", random.pick(&around), random.pick(&around));
        match random.below(6) {
            0 => base64(format!("some text: {text}\n").as_bytes(), 76),
            1 => json::quoted(&json::quoted(&text)),
            2 => json::quoted(&text),
            3 if text.len() > 30 => {
                let mut cut = 12;
                while !text.is_char_boundary(cut) {
                    cut += 1;
                }
                format!("{}\u{1b}[31m{}", &text[..cut], &text[cut..])
            }
            _ => text,
        }
    };
    let mut parts = Vec::new();
    for _ in 0..random.range(1, 5) {
        let text: String = (0..random.range(1, 4))
            .map(|_| value(&mut random))
            .collect();
        let name = *random.pick(&["text", "api_key", "note", "old\\u002dkey"]);
        parts.push(format!("\"{name}\":{}", json::quoted(&text)));
    }
    let line = format!("{{{}}}", parts.join(","));
    if random.chance(10) {
        let mut cut = random.below(line.len() as u64) as usize;
        while !line.is_char_boundary(cut) {
            cut -= 1;
        }
        return line[..cut].to_owned();
    }
    line
}

#[test]
fn after_redaction_nothing_is_found_and_lines_stay_json() {
    let redactor = redactor();
    for seed in 0..500 {
        let line = crowded(seed);
        let Some(done) = redactor.line(line.as_bytes()) else {
            continue;
        };
        let text = String::from_utf8(done.bytes.clone()).unwrap();
        assert_eq!(redactor.places(&done.bytes), [], "{line}\n{text}");
        let before: Result<serde_json::Value, _> = serde_json::from_str(&line);
        let after: Result<serde_json::Value, _> = serde_json::from_str(&text);
        assert_eq!(before.is_ok(), after.is_ok(), "{line}\n{text}");
    }
}

proptest! {
    #[test]
    fn any_line_is_redacted_once_and_for_all(text in any::<String>(), seed in 0u64..1000) {
        let line = format!("{text}{}", crowded(seed));
        let done = redactor().line(line.as_bytes());
        if let Some(done) = done {
            prop_assert_eq!(redactor().places(&done.bytes), []);
        }
    }
}

#[test]
fn private_keys_in_the_lines_of_a_patch_go_line_by_line() {
    let pem = pem(21);
    let lines: Vec<String> = pem.lines().map(|line| format!("\"+{line}\"")).collect();
    let patch = format!(
        r#"{{"toolUseResult":{{"structuredPatch":[{{"lines":[" before",{},"+after it",{}]}}]}}}}"#,
        lines.join(","),
        r#""-Zm9v""#
    );
    let done = redactor().line(patch.as_bytes()).unwrap();
    let text = String::from_utf8(done.bytes.clone()).unwrap();
    for line in pem.lines().skip(1) {
        assert!(!text.contains(line), "{text}");
    }
    assert!(
        text.contains(r#"KEY-----","+[REDACTED:private-key:"#),
        "{text}"
    );
    assert!(text.contains(r#"]","+after it","-Zm9v"]"#), "{text}");
    assert_eq!(redactor().line(&done.bytes), None);
}

#[test]
fn snippets_show_the_surroundings_and_never_a_secret() {
    let (one, two) = (token(30), key(31));
    let line = format!(r#"{{"a":"before","b":"first\n{one} and {two} behind","c":"after"}}"#);
    let hits = redactor().hits(line.as_bytes(), false);
    let first = redactor().placeholder("github-pat", &one);
    let second = redactor().placeholder("anthropic-api-key", &two);
    let snippets: Vec<_> = hits.iter().map(|hit| hit.snippet.as_str()).collect();
    assert!(
        snippets[0].starts_with(&format!("first {first} and [REDACTED:")),
        "{snippets:?}"
    );
    assert!(
        snippets[1].ends_with(&format!("and {second} behind")),
        "{snippets:?}"
    );
    for snippet in snippets {
        assert!(
            !snippet.contains(&one[..10]) && !snippet.contains("after"),
            "{snippet}"
        );
    }
    let hits = redactor().hits(line.as_bytes(), true);
    assert!(hits[0].snippet.contains(&one));
}

#[test]
fn a_long_text_that_stands_twice_is_looked_at_again_where_its_name_makes_a_secret_of_it() {
    let value = draw(140, DIGITS, &mut Random::new(5));
    keeps(&format!(r#"{{"type":"user","a":"{value}","b":"{value}"}}"#));
    let (before, after) = (
        format!(r#"{{"type":"user","a":"{value}","api_key":""#),
        "\"}",
    );
    replaces(&before, &value, after, "generic-api-key", &value);
}

#[test]
fn texts_that_begin_or_go_on_alike_are_all_looked_at() {
    let plain = "lines of a file\\nand more of it ".repeat(8);
    let token = token(6);
    let (before, after) = (format!(r#"{{"a":"{plain}","b":"{plain}"#), r#""}"#);
    replaces(&before, &token, after, "github-pat", &token);
    let before = format!(r#"{{"a":"{plain}","b":"{plain}","c":["{plain}","#);
    let before = format!("{before}\"{} ", &plain[..plain.len() - 1]);
    replaces(&before, &token, r#""]}"#, "github-pat", &token);
}
