//! Whatever a transcript looks like, what we would send is accepted.
//!
//! Any number of lines or bytes of any recording and of generated sessions, and
//! recordings that were damaged at random, are read with our own rules; the
//! messages, with a new prompt behind them, go to the validator of the testkit,
//! which shares no code with the model. `UNSPOOL_CASES` sets how many cases each
//! test draws; `docs/soak.md` says what long runs found.

use std::panic::{AssertUnwindSafe, catch_unwind};

use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ResumeResult};
use unspool_testkit::random::Random;
use unspool_testkit::{corpus, graph, validator};

fn cases(usually: u64) -> u64 {
    let asked = std::env::var("UNSPOOL_CASES").ok();
    asked.map_or(usually, |text| {
        text.parse().expect("UNSPOOL_CASES is a number")
    })
}

/// The recordings, without those too long to be read thousands of times.
fn recordings() -> Vec<(String, Vec<u8>, TranscriptRole)> {
    let files = corpus::files().into_iter().map(|file| {
        let role = match file.role {
            corpus::Role::Main => TranscriptRole::Main,
            corpus::Role::Agent => TranscriptRole::Agent,
        };
        (file.name(), file.bytes(), role)
    });
    files
        .filter(|(_, bytes, _)| (1..60_000).contains(&bytes.len()))
        .collect()
}

/// Why a log is not fit to be sent, if so.
fn refused(bytes: &[u8], role: TranscriptRole) -> Option<String> {
    let read = || {
        let log = Log::new(bytes);
        let session = Session::from_log(&log, role);
        match messages::messages(&session, &log, ClientProfile::Strict) {
            ResumeResult::Messages(all) => messages::to_json(&all),
            ResumeResult::NoConversation => "[]".to_owned(),
            ResumeResult::Hangs => "ours hangs".to_owned(),
        }
    };
    let Ok(sent) = catch_unwind(AssertUnwindSafe(read)) else {
        return Some("a panic".to_owned());
    };
    let refusals = validator::refusals_with_prompt(&sent, "go on");
    (!refusals.is_empty()).then(|| format!("{refusals:?}\n{sent:.3000}"))
}

fn check(bytes: &[u8], role: TranscriptRole, what: impl std::fmt::Display) {
    if let Some(reason) = refused(bytes, role) {
        let input = String::from_utf8_lossy(bytes);
        panic!("{what}: {reason}\n--- the log\n{input:.6000}");
    }
}

#[test]
fn any_number_of_lines_of_a_recording_can_be_sent() {
    let recordings = recordings();
    let mut left = cases(2_500);
    let mut random = Random::new(2);
    while left > 0 {
        let (name, bytes, role) = random.pick(&recordings);
        let lines = memchr::memchr_iter(b'\n', bytes).count() as u64;
        let count = random.below(lines + 1) as usize;
        let end = memchr::memchr_iter(b'\n', bytes)
            .nth(count)
            .map_or(bytes.len(), |at| at + 1);
        check(
            &bytes[..end],
            *role,
            format_args!("{count} lines of {name}"),
        );
        left -= 1;
    }
}

#[test]
fn any_number_of_bytes_of_a_recording_can_be_sent() {
    let recordings = recordings();
    let mut random = Random::new(3);
    for _ in 0..cases(2_500) {
        let (name, bytes, role) = random.pick(&recordings);
        let end = random.below(bytes.len() as u64 + 1) as usize;
        check(&bytes[..end], *role, format_args!("{end} bytes of {name}"));
    }
}

#[test]
fn any_part_of_a_generated_session_can_be_sent() {
    let mut random = Random::new(4);
    let mut left = cases(8_000);
    for seed in 0.. {
        let lines = graph::session(seed);
        for count in 0..=lines.len() {
            let text = lines[..count].join("\n") + "\n";
            check(
                text.as_bytes(),
                TranscriptRole::Main,
                format_args!("{count} lines of seed {seed}"),
            );
            let end = random.below(text.len() as u64) as usize;
            check(
                &text.as_bytes()[..end],
                TranscriptRole::Main,
                format_args!("{end} bytes of seed {seed}"),
            );
            left = left.saturating_sub(2);
        }
        if left == 0 {
            return;
        }
    }
}

#[test]
fn a_recording_damaged_at_random_can_be_sent() {
    let recordings = recordings();
    for seed in 0..cases(2_500) {
        let mut random = Random::new(seed ^ 0xda3a6e);
        let (name, bytes, role) = random.pick(&recordings);
        let mut lines: Vec<Vec<u8>> = bytes
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        for _ in 0..=random.below(4) {
            damage(&mut lines, &mut random);
        }
        check(
            &lines.concat(),
            *role,
            format_args!("{name} with damage {seed}"),
        );
    }
}

fn damage(lines: &mut Vec<Vec<u8>>, random: &mut Random) {
    if lines.is_empty() {
        return;
    }
    let at = random.below(lines.len() as u64) as usize;
    let to = random.below(lines.len() as u64) as usize;
    match random.below(7) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(to, lines[at].clone()),
        2 => lines.swap(at, to),
        3 => lines.rotate_left(at),
        4 => {
            let keep = random.below(lines[at].len() as u64 + 1) as usize;
            lines[at].truncate(keep);
        }
        5 => {
            for _ in 0..=random.below(8) {
                let place = random.below(lines[at].len() as u64) as usize;
                if let Some(byte) = lines[at].get_mut(place) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
        _ => swap_words(&mut lines[at], random),
    }
}

/// Damage that leaves the line readable: one word of the format in the place of another.
fn swap_words(line: &mut Vec<u8>, random: &mut Random) {
    const WORDS: &[&str] = &[
        "\"user\"",
        "\"assistant\"",
        "\"text\"",
        "\"tool_use\"",
        "\"tool_result\"",
        "\"thinking\"",
        "\"signature\"",
        "\"tool_use_id\"",
        "\"id\"",
        "\"content\"",
        "null",
        "true",
        "\"\"",
    ];
    let text = String::from_utf8_lossy(line).into_owned();
    let (old, new) = (*random.pick(WORDS), *random.pick(WORDS));
    let places: Vec<usize> = text.match_indices(old).map(|(at, _)| at).collect();
    if !places.is_empty() {
        let at = *random.pick(&places);
        let swapped = format!("{}{new}{}", &text[..at], &text[at + old.len()..]);
        *line = swapped.into_bytes();
    }
}

#[test]
fn thinking_without_its_text_is_not_sent() {
    let log = unspool_testkit::script::jsonl("you: hi\nthink: hm\nclaude: hello\nyou: go on");
    let log = String::from_utf8(log).unwrap();
    let without = log.replace("\"thinking\":\"hm\"", "\"other\":\"hm\"");
    assert_ne!(log, without);
    check(
        without.as_bytes(),
        TranscriptRole::Main,
        "thinking without text",
    );
}

/// A conversation in which a tool and its call have these names.
fn with_names(tool: &str, id: &str) -> Vec<u8> {
    let log = unspool_testkit::script::jsonl(
        "you: hi\nclaude: look [Read a.rs]\nresult: Read a.rs fn main\nclaude: done\nyou: go on",
    );
    let text = String::from_utf8(log).unwrap();
    let start = text.find("\"toolu_").unwrap() + 1;
    let end = start + text[start..].find('"').unwrap();
    let old = text[start..end].to_owned();
    let text = text.replace(&old, id);
    text.replace("\"name\":\"Read\"", &format!("\"name\":\"{tool}\""))
        .into_bytes()
}

#[test]
fn names_that_the_api_refuses_are_found_sent_otherwise_and_mended() {
    let long = "mcp__server__".to_owned() + &"x".repeat(200);
    for (tool, id) in [
        (&*long, "toolu_1"),
        ("mcp server.look up", "toolu_1"),
        ("", "toolu_1"),
        ("Read", "functions.Read:0"),
        ("Read", "call 1\u{fc}"),
    ] {
        let bytes = with_names(tool, id);
        check(&bytes, TranscriptRole::Main, format_args!("{tool} {id}"));
        let log = Log::new(bytes);
        let session = Session::from_log(&log, TranscriptRole::Main);
        let kinds = |session: &Session| -> Vec<&str> {
            let faults = unspool_model::view::check::faults(session);
            faults.iter().map(|fault| fault.kind.name()).collect()
        };
        assert_eq!(kinds(&session), ["refused_name"], "{tool} {id}");
        let sent = match messages::messages(&session, &log, ClientProfile::Strict) {
            ResumeResult::Messages(all) => messages::to_json(&all),
            _ => String::new(),
        };
        assert!(sent.contains("fn main"), "{tool} {id}: {sent}");
        let repair = unspool_model::edit::repair::RepairedSession::of(&log, TranscriptRole::Main);
        assert!(!repair.mended.is_empty());
        assert!(repair.mended.iter().all(|one| one.kind == "refused_name"));
        assert!(kinds(&repair.session).is_empty(), "{tool} {id}");
        let source = repair.source(&log);
        match messages::messages(&repair.session, &source, ClientProfile::NEWEST) {
            ResumeResult::Messages(all) => {
                let sent = messages::to_json(&all);
                let refusals = validator::refusals_with_prompt(&sent, "go on");
                assert!(refusals.is_empty(), "{tool} {id}: {refusals:?}");
                assert!(sent.contains("fn main"), "{tool} {id}: {sent}");
            }
            other => panic!("{tool} {id}: {other:?}"),
        }
    }
}

#[test]
fn half_a_pair_and_an_empty_text_are_found_and_mended() {
    let log = unspool_testkit::script::jsonl("you: hi\nclaude: one two\nclaude: three\nyou: go on");
    let text = String::from_utf8(log).unwrap();
    for (old, new, kind) in [
        ("one two", "one \\ud83d two", "lone_surrogate"),
        // Alone in its line, clients leave it out.
        (
            r#"{"type":"text","text":"one two"}"#,
            r#"{"type":"text","text":" \n"},{"type":"text","text":"one"}"#,
            "empty_text",
        ),
    ] {
        let log = Log::new(text.replace(old, new));
        let session = Session::from_log(&log, TranscriptRole::Main);
        let faults = unspool_model::view::check::faults(&session);
        let kinds: Vec<_> = faults.iter().map(|fault| fault.kind.name()).collect();
        assert_eq!(kinds, [kind]);
        let repair = unspool_model::edit::repair::RepairedSession::of(&log, TranscriptRole::Main);
        let left = unspool_model::view::check::faults(&repair.session);
        assert!(left.is_empty() && !repair.is_empty(), "{kind}");
    }
}

#[test]
fn an_empty_text_inside_a_result_is_found_and_mended_and_the_rest_of_the_result_stays() {
    let blank = r#"{"type":"text","text":" \n"}"#;
    let said = r#"{"text":"fn main","type":"text"}"#;
    for (content, mended) in [
        (format!("[{blank},{said},{blank}]"), format!("[{said}]")),
        (format!("[{blank}]"), r#""""#.to_owned()),
    ] {
        let log = unspool_testkit::script::jsonl(
            "you: hi\nclaude: look [Read a]\nresult: Read a NOTHING\nclaude: done\nyou: go on",
        );
        let text = String::from_utf8(log).unwrap();
        let plain = r#""content":"NOTHING"}]"#;
        assert!(text.contains(plain), "{text}");
        let old = text.replace(plain, &format!(r#""content":{content}}}]"#));
        let log = Log::new(old);
        let session = Session::from_log(&log, TranscriptRole::Main);
        let faults = unspool_model::view::check::faults(&session);
        let kinds: Vec<_> = faults.iter().map(|fault| fault.kind.name()).collect();
        assert_eq!(kinds, ["empty_text"]);
        let repair = unspool_model::edit::repair::RepairedSession::of(&log, TranscriptRole::Main);
        let mut written = String::new();
        repair.each(&log, |line| {
            written += std::str::from_utf8(line.bytes).unwrap();
            written.push('\n');
        });
        let wanted = text.replace(plain, &format!(r#""content":{mended}}}]"#));
        assert_eq!(written, wanted);
        assert!(unspool_model::view::check::faults(&repair.session).is_empty());
    }
}

#[test]
fn an_api_error_at_the_end_is_found_and_one_that_the_conversation_passed_is_not() {
    let failed = |script: &str| {
        let text = String::from_utf8(unspool_testkit::script::jsonl(script)).unwrap();
        let mark = r#"{"isApiErrorMessage":true,"#;
        let lines = text
            .lines()
            .map(|line| match line.contains("API Error: 529") {
                true => line.replacen('{', mark, 1) + "\n",
                false => line.to_owned() + "\n",
            });
        Log::new(lines.collect::<String>())
    };
    let kinds = |log: &Log| {
        let session = Session::from_log(log, TranscriptRole::Main);
        let faults = unspool_model::view::check::faults(&session);
        let kinds = faults.iter().map(|fault| fault.kind.name());
        kinds.collect::<Vec<_>>()
    };
    let ended = failed("you: hi\nclaude: one\nyou: again\nclaude: API Error: 529");
    assert_eq!(kinds(&ended), ["error_tail"]);
    let repair = unspool_model::edit::repair::RepairedSession::of(&ended, TranscriptRole::Main);
    assert!(unspool_model::view::check::faults(&repair.session).is_empty());
    let passed = failed("you: hi\nclaude: API Error: 529\nyou: again\nclaude: one");
    assert_eq!(kinds(&passed), [""; 0]);
}
