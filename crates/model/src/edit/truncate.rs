//! Texts made shorter without a model: their first lines, or their start and end.

use std::borrow::Cow;

use crate::json::{self, JsonCursor, Span};

/// How to make a text shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextTruncation {
    /// The first two lines, of these the first 120 characters, and `...`.
    Start,
    /// Texts of more bytes than this keep their start and end, with a note of what went.
    Over(usize),
}

const LINES: usize = 2;
const CHARACTERS: usize = 120;
const ENDS: &str = "...";

impl TextTruncation {
    /// The shorter text; `None` if it is short enough.
    pub fn text(self, text: &str) -> Option<String> {
        match self {
            TextTruncation::Start => start(text),
            TextTruncation::Over(limit) => middle(text, limit),
        }
    }

    /// A JSON value in which every text is made shorter; `None` if all are short enough.
    /// Keys, numbers and the order of things stay. An image inside a result becomes a note.
    pub fn value(self, raw: &[u8]) -> Option<Vec<u8>> {
        let mut edits = Vec::new();
        let mut cursor = JsonCursor::new(raw);
        self.walk(raw, &mut cursor, &mut edits, DEEPEST).ok()?;
        (!edits.is_empty()).then(|| json::splice(raw, &edits))
    }

    fn walk(
        self,
        raw: &[u8],
        c: &mut JsonCursor<'_>,
        edits: &mut Vec<(Span, Vec<u8>)>,
        left: usize,
    ) -> Result<(), json::JsonError> {
        match c.peek() {
            Some(b'"') => {
                let span = c.skip()?;
                let text: Cow<'_, str> = json::string(span.of(raw));
                if let Some(short) = self.text(&text) {
                    edits.push((span, json::quoted(&short).into_bytes()));
                }
                Ok(())
            }
            Some(b'{') if left > 0 => {
                let start = c.position();
                let mut inside = Vec::new();
                let mut is_media = false;
                c.object(|c, key| {
                    if key == "type" {
                        let kind = c.text()?;
                        is_media |= matches!(kind.as_deref(), Some("image" | "document"));
                        return Ok(());
                    }
                    self.walk(raw, c, &mut inside, left - 1)
                })?;
                let span = Span::new(start, c.position());
                if is_media && self == TextTruncation::Start {
                    let note = r#"{"type":"text","text":"[image removed]"}"#;
                    edits.push((span, note.into()));
                } else if !is_media {
                    edits.append(&mut inside);
                }
                Ok(())
            }
            Some(b'[') if left > 0 => c.array(|c| self.walk(raw, c, edits, left - 1)).map(drop),
            _ => c.skip().map(drop),
        }
    }
}

/// What is nested deeper than this is left as it is.
const DEEPEST: usize = 60;

fn start(text: &str) -> Option<String> {
    let lines = text.split('\n').take(LINES);
    let end = lines.map(|line| line.len() + 1).sum::<usize>() - 1;
    let first = &text[..end];
    let kept = first
        .char_indices()
        .nth(CHARACTERS)
        .map_or(first, |(end, _)| &first[..end]);
    if kept.len() == text.len() || is_cut(text, kept) {
        return None;
    }
    Some(format!("{}{ENDS}", kept.trim_end()))
}

/// Whether a text is only longer by what an earlier cut put at its end, so that cutting
/// again changes nothing.
fn is_cut(text: &str, kept: &str) -> bool {
    text.strip_suffix(ENDS)
        .is_some_and(|before| before.len() <= kept.len() && kept.starts_with(before))
}

/// How the note of what went begins.
const NOTE: &str = "\n[… ";

fn middle(text: &str, limit: usize) -> Option<String> {
    if text.len() <= limit || text.contains(NOTE) && text.len() <= limit + 64 {
        return None;
    }
    let floor = |mut at: usize| {
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    // Two thirds of the start: what a command says first tells most.
    let head = floor(limit * 2 / 3);
    let tail = floor(text.len() - (limit - limit * 2 / 3)).max(head);
    let gone = &text[head..tail];
    let lines = gone.matches('\n').count();
    let note = format!("{NOTE}{} bytes, {lines} lines removed …]\n", gone.len());
    (note.len() < gone.len()).then(|| format!("{}{note}{}", &text[..head], &text[tail..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_lines_of_a_hundred_and_twenty_characters_stay_as_they_are() {
        let cut = |text: &str| TextTruncation::Start.text(text);
        assert_eq!(cut("one\ntwo"), None);
        assert_eq!(cut(&"x".repeat(120)), None);
        assert_eq!(cut("one\ntwo\nthree").as_deref(), Some("one\ntwo..."));
        assert_eq!(cut("one \n\nthree").as_deref(), Some("one..."));
        assert_eq!(cut(&"é".repeat(121)), Some("é".repeat(120) + "..."));
        assert_eq!(cut(""), None);
    }

    #[test]
    fn cutting_again_changes_nothing() {
        for text in [
            "one\ntwo\nthree",
            &"é".repeat(500),
            "a\nb\nc\nd",
            &"word ".repeat(60),
        ] {
            let once = TextTruncation::Start.text(text).unwrap();
            assert_eq!(TextTruncation::Start.text(&once), None, "{once}");
            let long = text.repeat(300);
            let once = TextTruncation::Over(400).text(&long).unwrap();
            assert_eq!(TextTruncation::Over(400).text(&once), None, "{once}");
        }
    }

    #[test]
    fn a_large_text_keeps_its_start_and_end_and_says_what_went() {
        let text = format!("first\n{}last", "middle\n".repeat(1000));
        let short = TextTruncation::Over(100).text(&text).unwrap();
        assert!(short.starts_with("first\nmiddle") && short.ends_with("last"));
        assert!(
            short.contains("lines removed") && short.len() < 200,
            "{short}"
        );
    }

    #[test]
    fn texts_in_any_depth_are_cut_and_nothing_else_is_touched() {
        let long = "x".repeat(200);
        let short = format!("{}...", "x".repeat(120));
        let raw = format!(r#"{{"a": 1.0,"b":[null,"{long}",{{"c":"{long}","k":2e3}}],"d":"ok"}}"#);
        let wanted =
            format!(r#"{{"a": 1.0,"b":[null,"{short}",{{"c":"{short}","k":2e3}}],"d":"ok"}}"#);
        let cut = TextTruncation::Start.value(raw.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(cut).unwrap(), wanted);
        assert_eq!(TextTruncation::Start.value(br#"{"a":"short"}"#), None);
        let image = br#"[{"type":"image","source":{"type":"base64","data":"AAAA"}}]"#;
        let cut = TextTruncation::Start.value(image).unwrap();
        assert_eq!(cut, br#"[{"type":"text","text":"[image removed]"}]"#);
    }
}
