//! Finding text, place by place and spelling by spelling.
#![allow(clippy::unwrap_used)]

use super::*;

/// A line for each place, with `@` where the text stands.
const PLACES: [(TextKind, &str); 9] = [
    (
        TextKind::Prompt,
        r#"{"type":"user","uuid":"u","message":{"role":"user","content":"@"}}"#,
    ),
    (
        TextKind::Reply,
        r#"{"type":"assistant","uuid":"u","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"@"}]}}"#,
    ),
    (
        TextKind::Thinking,
        r#"{"type":"assistant","uuid":"u","message":{"id":"m","role":"assistant","content":[{"type":"thinking","thinking":"@","signature":"s"}]}}"#,
    ),
    (
        TextKind::Tool,
        r#"{"type":"assistant","uuid":"u","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"@"}}]}}"#,
    ),
    (
        TextKind::Result,
        r#"{"type":"user","uuid":"u","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"@"}]}]}}"#,
    ),
    (
        TextKind::Result,
        r#"{"type":"user","uuid":"u","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"-"}]},"toolUseResult":{"stdout":"@"}}"#,
    ),
    (
        TextKind::Progress,
        r#"{"type":"progress","uuid":"u","data":{"type":"bash_progress","output":"@"}}"#,
    ),
    (
        TextKind::Title,
        r#"{"type":"summary","summary":"@","leafUuid":"l"}"#,
    ),
    (
        TextKind::Other,
        r#"{"type":"never-seen","uuid":"u","x":["@"]}"#,
    ),
];

/// Queries and how the text may be written in the file.
const SPELLINGS: [(&str, &str); 18] = [
    (
        "the \"velvet hammer\" clause",
        r#"in the \"velvet hammer\" clause, "#,
    ),
    (r"C:\Users\petra\q.txt", r"at C:\\Users\\petra\\q.txt now"),
    ("src/main.rs", r"in src\/main.rs"),
    ("src/main.rs", r"in src/main.rs"),
    ("amber\nviolet", r"amber\nviolet"),
    ("a\tb", r"a\tb"),
    ("a\tb", "a\tb"),
    ("a\tb", r"a\u0009b"),
    ("größe", r"gr\u00f6\u00DFe"),
    ("x😀y", r"x\ud83d\ude00y"),
    ("x😀y", "x😀y"),
    ("x\u{fffd}y", r"x\ud83dy"),
    ("plain", r"pl\u0061in"),
    ("crimsonfalcon", r"crimson\u001b[31mfal\u001b[0mcon"),
    ("crimsonfalcon", "crimson\u{1b}[31mfal\u{1b}]0;t\u{7}con"),
    ("[31mfal", r"crimson\u001b[31mfal"),
    ("\u{1b}[31m", r"crimson\u001b[31mfal"),
    ("猫头鹰", "琥珀色的猫头鹰。"),
];

fn found(query: &TextQuery, line: &[u8]) -> Vec<(TextKind, u32, String)> {
    let mut finder = TextFinder::new(query);
    let mut all = Vec::new();
    finder.candidates(line, |finder, _, line| {
        finder.matches(line, &SearchScope::default(), &mut |_, one| {
            all.push((one.place, one.count, one.snippet.hit));
        });
    });
    all
}

#[test]
fn every_spelling_is_found_in_every_place() {
    for (place, template) in PLACES {
        for (query, written) in SPELLINGS {
            let line = template.replace('@', written);
            for case in [CaseMode::Smart, CaseMode::Exact, CaseMode::Ignore] {
                let query = TextQuery::literal(query, case).unwrap();
                let all = found(&query, line.as_bytes());
                assert_eq!(all.len(), 1, "{query:?} in {line}: {all:?}");
                assert_eq!((all[0].0, all[0].1), (place, 1), "{line}");
            }
            let none = TextQuery::literal("absent", CaseMode::Smart).unwrap();
            assert_eq!(found(&none, line.as_bytes()), []);
        }
    }
}

#[test]
fn capitals_matter_only_if_the_query_has_some() {
    let line = |text: &str| PLACES[0].1.replace('@', text);
    let finds = |query: &str, case, text: &str| {
        let query = TextQuery::literal(query, case).unwrap();
        !found(&query, line(text).as_bytes()).is_empty()
    };
    assert!(finds("kelvin", CaseMode::Smart, "KELVIN"));
    assert!(!finds("Kelvin", CaseMode::Smart, "KELVIN"));
    assert!(finds("Kelvin", CaseMode::Ignore, "KELVIN"));
    assert!(!finds("kelvin", CaseMode::Exact, "KELVIN"));
    // One character for one: ß is ẞ but never ss, İ is only itself, all three sigmas
    // are one.
    assert!(finds("straße", CaseMode::Smart, "STRAẞE"));
    assert!(!finds("straße", CaseMode::Smart, "strasse"));
    assert!(finds("σοφος", CaseMode::Smart, "ΣΟΦΟΣ") && finds("σοφος", CaseMode::Smart, "σοφος"));
    assert!(finds("σοφοσ", CaseMode::Smart, r"\u03a3ΟΦΟς"));
    assert!(!finds("i", CaseMode::Smart, "İ"));
    assert!(finds("İ", CaseMode::Smart, "İ"));
    let regex = |pattern: &str| {
        let query = TextQuery::regex(pattern, CaseMode::Smart).unwrap();
        !found(&query, line("some WORDS").as_bytes()).is_empty()
    };
    assert!(regex(r"\S\swords") && regex(r"\p{Lu}ords") && !regex(r"Words"));
}

#[test]
fn a_match_does_not_cross_from_one_string_into_another() {
    let line =
        r#"{"type":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}"#;
    for query in ["onetwo", r#"one"}"#, "one\n", "\"two"] {
        let query = TextQuery::literal(query, CaseMode::Exact).unwrap();
        assert_eq!(found(&query, line.as_bytes()), []);
    }
    let any = TextQuery::regex("(?s)one.*two", CaseMode::Exact).unwrap();
    assert_eq!(found(&any, line.as_bytes()), []);
}

#[test]
fn names_and_ids_of_the_format_are_not_found() {
    let line = PLACES[1].1.replace('@', "hello");
    for query in ["assistant", "text", "uuid", "message"] {
        let query = TextQuery::literal(query, CaseMode::Smart).unwrap();
        assert_eq!(found(&query, line.as_bytes()), []);
    }
}

#[test]
fn matches_in_one_place_of_a_line_are_counted_together() {
    let line = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"x yx x"}]},"toolUseResult":{"stdout":"ax"}}"#;
    let query = TextQuery::literal("x", CaseMode::Smart).unwrap();
    assert_eq!(
        found(&query, line.as_bytes()),
        [(TextKind::Result, 4, "x".into())]
    );
}

#[test]
fn expressions_match_decoded_text_line_by_line() {
    let line = PLACES[4]
        .1
        .replace('@', r#"one \"two\"\nthree\t4\n\u0035 C:\\x"#);
    let finds = |pattern: &str| {
        let query = TextQuery::regex(pattern, CaseMode::Smart).unwrap();
        let all = found(&query, line.as_bytes());
        all.into_iter().next().map(|(_, _, hit)| hit)
    };
    assert_eq!(finds(r#"^one "\w+"$"#).as_deref(), Some("one \"two\""));
    assert_eq!(finds(r"^three\s\d$").as_deref(), Some("three\t4"));
    assert_eq!(finds(r"\d\n\d").as_deref(), Some("4\n5"));
    assert_eq!(finds(r"[A-Z]:\\."), Some("C:\\x".into()));
    assert_eq!(finds(r"\bthree\b").as_deref(), Some("three"));
    assert_eq!(finds(r"(?s)one.*x$").map(|hit| hit.len()), Some(24));
    assert_eq!(finds(r"z*"), None, "a match of nothing is no match");
    assert_eq!(finds(r"one.*three"), None);
}

#[test]
fn a_query_that_makes_no_sense_says_where() {
    assert_eq!(
        TextQuery::literal("", CaseMode::Smart).unwrap_err(),
        QueryError::Empty
    );
    assert_eq!(
        TextQuery::regex("", CaseMode::Smart).unwrap_err(),
        QueryError::Empty
    );
    let Err(QueryError::Regex { at, why }) = TextQuery::regex("日本(x", CaseMode::Smart) else {
        panic!("accepted");
    };
    assert_eq!((at, why.as_str()), (2, "unclosed group"));
    let large = TextQuery::regex(r"(\w{200}){200}", CaseMode::Smart).unwrap_err();
    assert_eq!(large, QueryError::TooLarge);
}

#[test]
fn torn_and_glued_lines_are_searched_too() {
    let torn = br#"{"type":"user","message":{"content":"the \"velvet\" h\u00e4mmer C:\Users"#;
    for text in ["\"velvet\" hämmer", "users", "content"] {
        let query = TextQuery::literal(text, CaseMode::Smart).unwrap();
        assert_eq!(found(&query, torn).len(), 1, "{text}");
    }
    let glued = PLACES[0].1.replace('@', "needle").repeat(2);
    let query = TextQuery::literal("needle", CaseMode::Smart).unwrap();
    assert_eq!(found(&query, glued.as_bytes()).len(), 2);
    let broken = [b"{\"type\":\"user\",\"content\":\"a\xff\xfeb \\u0041\"}".as_slice()].concat();
    let query = TextQuery::literal("a\u{fffd}\u{fffd}b A", CaseMode::Exact).unwrap();
    assert_eq!(found(&query, &broken).len(), 1);
}

#[test]
fn only_the_places_that_were_asked_for_are_looked_at() {
    let line = r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"main.rs"},{"type":"tool_use","id":"t","name":"Edit","input":{"file_path":"/x/main.rs","old_string":"main.rs"}}]}}"#;
    let query = TextQuery::literal("main.rs", CaseMode::Smart).unwrap();
    let count = |scope: SearchScope| {
        let mut all = Vec::new();
        TextFinder::new(&query).matches(line.as_bytes(), &scope, &mut |_, one| {
            all.push((one.place, one.count));
        });
        all
    };
    let only = |place| SearchScope {
        places: vec![place],
        ..SearchScope::default()
    };
    assert_eq!(count(only(TextKind::Reply)), [(TextKind::Reply, 1)]);
    assert_eq!(count(only(TextKind::Tool)), [(TextKind::Tool, 2)]);
    assert_eq!(count(only(TextKind::Result)), []);
    let paths = SearchScope {
        paths: true,
        ..SearchScope::default()
    };
    assert_eq!(count(paths), [(TextKind::Tool, 1)]);
}

#[test]
fn what_is_shown_is_masked_and_what_matches_is_not() {
    let token = ["ghp_", "x7Qa9ZpLm2", "Rt4VbN8cKd", "3Wf6HsJy1T", "g5Ue0i"].concat();
    let text = format!("before {token} behind {token} end");
    let shown = |needle: &str, reveal: bool| {
        let query = TextQuery::literal(needle, CaseMode::Exact).unwrap();
        let scope = SearchScope {
            reveal,
            ..SearchScope::default()
        };
        let range = query.matches(&text).next().unwrap();
        let one = scope.shown(&text, range);
        (one.hit.clone(), one.whole())
    };
    let mask = "[REDACTED:github-pat]";
    let masked = format!("before {mask} behind {mask} end");
    for (needle, hit) in [
        ("before", "before"),
        ("behind", "behind"),
        ("end", "end"),
        ("Rt4V", mask),
        (&token, mask),
        (" ghp_x7", &format!(" {mask}")),
        ("0i behind", &format!("{mask} behind")),
    ] {
        assert_eq!(
            shown(needle, false),
            (hit.to_owned(), masked.clone()),
            "{needle}"
        );
        assert_eq!(shown(needle, true), (needle.to_owned(), text.clone()));
    }
}

#[test]
fn a_snippet_is_the_line_of_the_match_cut_where_it_is_long() {
    let cut = |text: &str, range, lines| {
        let one = snippet(text, range, lines);
        (one.before, one.hit, one.after)
    };
    let own =
        |parts: (&str, &str, &str)| (parts.0.to_owned(), parts.1.to_owned(), parts.2.to_owned());
    assert_eq!(cut("a\nb hit c\r\nd", 4..7, 0), own(("b ", "hit", " c")));
    assert_eq!(
        cut("a\nb hit c\nd\ne", 4..7, 1),
        own(("a\nb ", "hit", " c\nd"))
    );
    let long = format!("{}日{}", "é".repeat(500), "ü".repeat(500));
    let one = snippet(&long, 1000..1003, 0);
    assert_eq!(
        (one.before.chars().count(), one.after.chars().count()),
        (101, 101)
    );
    assert!(one.whole().starts_with("…é") && one.whole().ends_with("ü…"));
    assert_eq!(snippet(&long, 0..long.len(), 0).hit.chars().count(), 401);
}

#[test]
fn output_in_a_file_of_its_own_is_searched_across_lines() {
    let query = TextQuery::literal("red\nball", CaseMode::Smart).unwrap();
    let finder = TextFinder::new(&query);
    let mut all = Vec::new();
    let text = "x\n\u{1b}[31mred\u{1b}[0m\nball\nred\nball red\nball";
    finder.output(text, 0, &SearchScope::default(), &mut |line, one| {
        all.push((line, one.count));
    });
    assert_eq!(all, [(1, 1), (3, 1), (4, 1)]);
    all.clear();
    let from = text.rfind("red\nball red").unwrap();
    finder.output(text, from, &SearchScope::default(), &mut |line, one| {
        all.push((line, one.count));
    });
    assert_eq!(all, [(3, 1), (4, 1)]);
}
