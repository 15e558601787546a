//! The order of lines and the bytes between them.

use super::{Mutation, mutation};
use crate::conformance::transcript::{Line, Newline, Transcript};

pub const ALL: &[Mutation] = &[
    mutation("order-reversed", "Lines stand in reversed order.", |t| {
        t.lines.reverse()
    }),
    mutation(
        "order-reversed-no-last-prompt",
        "Lines in reversed order, no last-prompt lines.",
        |t| {
            drop_last_prompt(t);
            t.lines.reverse();
        },
    ),
    mutation("order-shuffled", "Lines are shuffled.", |t| shuffle(t, 7)),
    mutation(
        "order-shuffled-no-last-prompt",
        "Lines are shuffled, no last-prompt lines.",
        |t| {
            drop_last_prompt(t);
            shuffle(t, 11);
        },
    ),
    mutation(
        "order-shuffled-last-prompt-last",
        "Lines are shuffled, the last-prompt line stays last.",
        |t| {
            let last = t.values().rfind(|v| v["type"] == "last-prompt").cloned();
            drop_last_prompt(t);
            shuffle(t, 13);
            if let Some(last) = last {
                t.push(last);
            }
        },
    ),
    mutation("order-first-last", "The first prompt stands last.", |t| {
        let at = t.find("U1");
        if at < t.lines.len() {
            let line = t.lines.remove(at);
            t.lines.push(line);
        }
    }),
    mutation(
        "order-answer-before-prompt",
        "An answer stands before its prompt.",
        |t| {
            let (a, b) = (t.find("U4"), t.find("A7"));
            if b < t.lines.len() {
                t.lines.swap(a, b);
            }
        },
    ),
    mutation("no-final-newline", "The last line has no newline.", |t| {
        t.unfinished = true
    }),
    mutation(
        "windows-newlines",
        "Lines end with a carriage return too.",
        |t| t.newline = Newline::Windows,
    ),
    mutation(
        "byte-order-mark",
        "The file starts with a byte order mark.",
        |t| t.bom = true,
    ),
    mutation("blank-lines", "Blank lines stand between the lines.", |t| {
        t.lines = t
            .lines
            .drain(..)
            .flat_map(|line| [line, Line::Raw(String::new())])
            .collect()
    }),
    mutation(
        "torn-last",
        "The last chain line is cut in the middle.",
        |t| tear(t, "A7"),
    ),
    mutation(
        "torn-middle",
        "A line in the middle is cut in the middle.",
        |t| tear(t, "A4"),
    ),
    mutation("garbage", "A line in the middle is no JSON.", |t| {
        let at = t.find("U3");
        t.lines.insert(at, Line::Raw("not json {".to_owned()));
    }),
    mutation(
        "nul-bytes",
        "A line of zero bytes stands in the middle.",
        |t| {
            let at = t.find("U3");
            t.lines.insert(at, Line::Raw("\0\0\0\0".to_owned()));
        },
    ),
    mutation("glued", "Two objects stand on one line.", glue),
    mutation("json-array", "A line is an array.", |t| {
        let at = t.find("U3");
        t.lines.insert(at, Line::Raw("[1,2]".to_owned()));
    }),
    mutation("json-null", "A line is null.", |t| {
        let at = t.find("U3");
        t.lines.insert(at, Line::Raw("null".to_owned()));
    }),
    mutation("indented", "Lines have spaces before and after.", |t| {
        t.lines = t
            .lines
            .iter()
            .map(|line| match line {
                Line::Json(v) => Line::Raw(format!("  {v}  ")),
                Line::Raw(raw) => Line::Raw(raw.clone()),
            })
            .collect()
    }),
    mutation(
        "lone-surrogate",
        "A text holds half of a surrogate pair.",
        |t| {
            let at = t.find("A4");
            if let Some(Line::Json(v)) = t.lines.get(at) {
                let raw = v.to_string().replace("\"A4\"", "\"A4 \\ud83d end\"");
                t.lines[at] = Line::Raw(raw);
            }
        },
    ),
    mutation(
        "control-characters",
        "A text holds control characters.",
        |t| {
            t.edit("A4", |v| {
                v["message"]["content"][0]["text"] = "A4 \u{1b}[31mred\u{1b}[0m \u{7} end".into()
            })
        },
    ),
];

fn drop_last_prompt(transcript: &mut Transcript) {
    transcript.drop(|value| value["type"] == "last-prompt");
}

/// The same order on every machine.
fn shuffle(transcript: &mut Transcript, seed: u64) {
    let mut state = seed;
    for at in (1..transcript.lines.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(state >> 33).unwrap_or(0) % (at + 1);
        transcript.lines.swap(at, other);
    }
}

fn tear(transcript: &mut Transcript, what: &str) {
    let at = transcript.find(what);
    if let Some(Line::Json(value)) = transcript.lines.get(at) {
        let mut raw = value.to_string();
        raw.truncate(raw.len() / 2);
        transcript.lines[at] = Line::Raw(raw);
    }
}

fn glue(transcript: &mut Transcript) {
    let at = transcript.find("A4");
    if let (Some(Line::Json(one)), Some(Line::Json(two))) =
        (transcript.lines.get(at), transcript.lines.get(at + 1))
    {
        let raw = format!("{one}{two}");
        transcript.lines.splice(at..at + 2, [Line::Raw(raw)]);
    }
}
