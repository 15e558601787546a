//! The search that looks at bytes first finds exactly what decoding every line finds.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;

use unspool_model::find::{CaseMode, SearchScope, TextFinder, TextQuery};
use unspool_model::text::{self, TextKind};
use unspool_testkit::corpus;
use unspool_testkit::random::Random;
use unspool_testkit::tree::{self, Options};

/// A line with its texts, as they are and without colours.
struct Read {
    bytes: Vec<u8>,
    texts: Vec<(TextKind, String, String)>,
}

fn read(bytes: &[u8]) -> Read {
    let mut texts = Vec::new();
    text::texts(bytes, &mut |text| {
        let decoded = text.decode().into_owned();
        let plain = text::plain(&decoded).into_owned();
        texts.push((text.place, decoded, plain));
    });
    Read {
        bytes: bytes.to_owned(),
        texts,
    }
}

/// Lines of recordings and of a generated tree, some of them written in other ways.
fn lines(random: &mut Random) -> Vec<Read> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    let files = corpus::files();
    for file in files.iter().step_by(files.len() / 120 + 1) {
        all.extend(
            file.bytes()
                .split(|b| *b == b'\n')
                .take(60)
                .map(<[u8]>::to_vec),
        );
    }
    let dir = tempfile::tempdir().unwrap();
    tree::generate(dir.path(), &Options::small()).unwrap();
    let mut paths = Vec::new();
    walk(dir.path(), &mut paths);
    for path in paths.iter().step_by(paths.len() / 16 + 1) {
        let bytes = std::fs::read(path).unwrap();
        all.extend(bytes.split(|b| *b == b'\n').take(60).map(<[u8]>::to_vec));
    }
    all.retain(|line| !line.is_empty() && line.len() < 50_000);
    let mut more: Vec<Vec<u8>> = Vec::new();
    for line in &all {
        match random.below(8) {
            0 => more.push(line[..line.len() * 2 / 3].to_vec()),
            1 => more.push(escaped(line, random)),
            2 => more.push(coloured(line, random)),
            3 => more.push([&line[..], &line[..]].concat()),
            4 => more.push(
                String::from_utf8_lossy(line)
                    .replace('/', "\\/")
                    .into_bytes(),
            ),
            _ => {}
        }
    }
    all.append(&mut more);
    all.iter().map(|line| read(line)).collect()
}

fn walk(dir: &std::path::Path, paths: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, paths);
        } else if path.extension().is_some_and(|end| end == "jsonl") {
            paths.push(path);
        }
    }
    paths.sort();
}

/// Some letters as `\uXXXX`.
fn escaped(line: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    let mut after_slash = false;
    for &byte in line {
        let plain = byte.is_ascii_lowercase() && !after_slash;
        if plain && random.chance(3) {
            out.extend(format!("\\u{:04x}", byte).bytes());
        } else {
            out.push(byte);
        }
        after_slash = byte == b'\\' && !after_slash;
    }
    out
}

/// Colours at some spaces.
fn coloured(line: &[u8], random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    for &byte in line {
        out.push(byte);
        if byte == b' ' && random.chance(10) {
            let codes = ["\\u001b[1;31m", "\x1b[0m", "\\u001B]0;t\\u0007"];
            let code = random.pick(&codes).as_bytes();
            out.extend_from_slice(code);
        }
    }
    out
}

/// What decoding every line finds.
fn naive(lines: &[Read], query: &TextQuery) -> BTreeSet<(usize, TextKind, u32)> {
    let mut all = BTreeSet::new();
    for (at, line) in lines.iter().enumerate() {
        for place in TextKind::ALL {
            let mut count = 0;
            for (_, decoded, plain) in line.texts.iter().filter(|(here, _, _)| *here == place) {
                let first = query.matches(plain).count();
                count += if first > 0 {
                    first
                } else {
                    query.matches(decoded).count()
                };
            }
            if count > 0 {
                all.insert((at, place, count as u32));
            }
        }
    }
    all
}

/// What the search finds.
fn quick(file: &[u8], starts: &[usize], query: &TextQuery) -> BTreeSet<(usize, TextKind, u32)> {
    let mut all: BTreeSet<(usize, TextKind, u32)> = BTreeSet::new();
    let mut finder = TextFinder::new(query);
    finder.candidates(file, |finder, start, bytes| {
        let at = starts.binary_search(&start).expect("a line begins here");
        finder.matches(bytes, &SearchScope::default(), &mut |_, one| {
            // Objects glued together are hits of their own; the naive search adds them up.
            let before = all
                .iter()
                .find(|(line, place, _)| (*line, *place) == (at, one.place));
            let known = before.copied().unwrap_or((at, one.place, 0));
            all.remove(&known);
            all.insert((at, one.place, known.2 + one.count));
        });
    });
    all
}

/// A piece of some text, sometimes with other capitals.
fn piece(lines: &[Read], random: &mut Random) -> Option<String> {
    let line = random.pick(lines);
    if line.texts.is_empty() {
        return None;
    }
    let (_, decoded, plain) = random.pick(&line.texts);
    let text = if random.chance(80) { plain } else { decoded };
    let chars: Vec<char> = text.chars().collect();
    if chars.is_empty() {
        return None;
    }
    let start = random.below(chars.len() as u64) as usize;
    let len = 1 + random.below(24) as usize;
    let part: String = chars[start..].iter().take(len).collect();
    Some(match random.below(4) {
        0 => part.to_uppercase(),
        1 => part.to_lowercase(),
        _ => part,
    })
}

/// An expression that matches a piece of text and more.
fn pattern(text: &str, random: &mut Random) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match random.below(12) {
            0 => out.push('.'),
            1 if c.is_alphanumeric() => out.push_str(r"\w"),
            2 if c.is_alphanumeric() => out.push_str(r"\w+?"),
            3 => out.push_str("(?s:.)"),
            4 if c.is_whitespace() => out.push_str(r"\s*"),
            5 => out.push_str(r"[^a-f]"),
            6 => out.push_str("x?"),
            _ => out.push_str(&escape(c)),
        }
    }
    match random.below(6) {
        0 => format!(r"\b{out}"),
        1 => format!("(?:{out}|zzz)"),
        2 => format!("^.*{out}"),
        _ => out,
    }
}

fn escape(c: char) -> String {
    if c.is_alphanumeric() || c.is_whitespace() || c.is_control() || !c.is_ascii() {
        c.to_string()
    } else {
        format!("\\{c}")
    }
}

#[test]
fn looking_at_bytes_first_finds_exactly_what_decoding_everything_finds() {
    let mut random = Random::new(7);
    let lines = lines(&mut random);
    assert!(lines.len() > 1_000, "{} lines", lines.len());
    let mut file = Vec::new();
    let mut starts = Vec::new();
    for line in &lines {
        starts.push(file.len());
        file.extend_from_slice(&line.bytes);
        file.push(b'\n');
    }
    let mut found = 0;
    for round in 0..150 {
        let Some(text) = piece(&lines, &mut random) else {
            continue;
        };
        let case = *random.pick(&[CaseMode::Smart, CaseMode::Exact, CaseMode::Ignore]);
        let query = if round % 3 == 0 {
            TextQuery::regex(&pattern(&text, &mut random), case)
        } else {
            TextQuery::literal(&text, case)
        };
        let query = query.unwrap_or_else(|bad| panic!("{text:?}: {bad:?}"));
        let (naive, quick) = (naive(&lines, &query), quick(&file, &starts, &query));
        found += naive.len();
        let missed: Vec<_> = naive.symmetric_difference(&quick).take(3).collect();
        assert!(missed.is_empty(), "{text:?} {query:?}: {missed:?}");
    }
    assert!(found > 1_000, "{found} hits");
}
