//! JSON as people write it: with comments and commas too many. Read to places, edited by splices.
//!
//! Nothing that is not asked for changes: what stands around an item, who indents how and which
//! comment belongs to what stays as it is.

use std::ops::Range;

use crate::json;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct JsoncNode {
    /// From its first byte to behind its last.
    pub place: Range<usize>,
    /// What it is.
    pub value: JsoncValue,
}

/// What a value is.
#[derive(Clone, Debug)]
pub enum JsoncValue {
    /// Keys and values, in order.
    Object(Vec<JsoncMember>),
    /// Values, in order.
    Array(Vec<JsoncNode>),
    /// A string.
    Text(String),
    /// A number, a truth or null, as it is written.
    Plain(String),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct JsoncMember {
    /// The key.
    pub key: String,
    /// From the first byte of the key to behind the value.
    pub place: Range<usize>,
    /// The value.
    pub node: JsoncNode,
}

/// Why a text is not JSON, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsoncError {
    /// Counts from 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub why: &'static str,
}

impl JsoncError {
    /// Something is wrong with what begins at a byte.
    pub fn at(text: &str, at: usize, why: &'static str) -> JsoncError {
        let before = text.get(..at).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        JsoncError {
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            why,
        }
    }
}

impl JsoncNode {
    /// The members, if it is an object.
    pub fn members(&self) -> Option<&[JsoncMember]> {
        match &self.value {
            JsoncValue::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The items, if it is an array.
    pub fn items(&self) -> Option<&[JsoncNode]> {
        match &self.value {
            JsoncValue::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The value of a key; the last one counts, as for everybody else.
    pub fn get(&self, key: &str) -> Option<&JsoncNode> {
        let mut members = self.members()?.iter().rev();
        members
            .find(|member| member.key == key)
            .map(|member| &member.node)
    }

    /// The text, if it is a string.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            JsoncValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is the word `true`.
    pub fn is_true(&self) -> bool {
        matches!(&self.value, JsoncValue::Plain(word) if word == "true")
    }

    /// Where each item or member stands.
    fn places(&self) -> Vec<Range<usize>> {
        match &self.value {
            JsoncValue::Object(members) => members.iter().map(|one| one.place.clone()).collect(),
            JsoncValue::Array(items) => items.iter().map(|one| one.place.clone()).collect(),
            _ => Vec::new(),
        }
    }
}

/// Reads a text.
pub fn parse(text: &str) -> Result<JsoncNode, JsoncError> {
    let mut reader = JsoncReader { text, at: 0 };
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    let node = reader.value(0)?;
    reader.pass()?;
    if reader.at < text.len() {
        return Err(reader.wrong("unexpected text after the value"));
    }
    Ok(node)
}

/// Settings are not nested deeper.
const DEEPEST: usize = 100;

struct JsoncReader<'a> {
    text: &'a str,
    at: usize,
}

impl JsoncReader<'_> {
    fn wrong(&self, why: &'static str) -> JsoncError {
        JsoncError::at(self.text, self.at, why)
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes over white space and comments.
    fn pass(&mut self) -> Result<(), JsoncError> {
        match passed(self.text, self.at) {
            Ok(at) => self.at = at,
            Err(at) => return Err(JsoncError::at(self.text, at, "unterminated comment")),
        }
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<JsoncNode, JsoncError> {
        if depth > DEEPEST {
            return Err(self.wrong("nested too deeply"));
        }
        self.pass()?;
        let start = self.at;
        let value = match self.next() {
            Some(b'{') => JsoncValue::Object(self.object(depth)?),
            Some(b'[') => JsoncValue::Array(self.array(depth)?),
            Some(b'"') => JsoncValue::Text(self.string()?),
            Some(_) => JsoncValue::Plain(self.word()?),
            None => return Err(self.wrong("expected a value")),
        };
        Ok(JsoncNode {
            place: start..self.at,
            value,
        })
    }

    fn object(&mut self, depth: usize) -> Result<Vec<JsoncMember>, JsoncError> {
        let mut members = Vec::new();
        self.at += 1;
        loop {
            self.pass()?;
            match self.next() {
                Some(b'}') => break,
                Some(b'"') => {}
                _ => return Err(self.wrong("expected a key in quotes")),
            }
            let start = self.at;
            let key = self.string()?;
            self.pass()?;
            if self.next() != Some(b':') {
                return Err(self.wrong("expected a colon"));
            }
            self.at += 1;
            let node = self.value(depth + 1)?;
            members.push(JsoncMember {
                key,
                place: start..node.place.end,
                node,
            });
            if !self.comma(b'}', "expected a comma or a closing brace")? {
                break;
            }
        }
        self.at += 1;
        Ok(members)
    }

    fn array(&mut self, depth: usize) -> Result<Vec<JsoncNode>, JsoncError> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.pass()?;
            if self.next() == Some(b']') {
                break;
            }
            items.push(self.value(depth + 1)?);
            if !self.comma(b']', "expected a comma or a closing bracket")? {
                break;
            }
        }
        self.at += 1;
        Ok(items)
    }

    /// Whether a comma follows, which is taken; else what closes must follow.
    fn comma(&mut self, close: u8, why: &'static str) -> Result<bool, JsoncError> {
        self.pass()?;
        match self.next() {
            Some(b',') => self.at += 1,
            Some(byte) if byte == close => return Ok(false),
            _ => return Err(self.wrong(why)),
        }
        Ok(true)
    }

    fn string(&mut self) -> Result<String, JsoncError> {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(0..0x20) | None => return Err(self.wrong("unterminated string")),
                Some(_) => end += 1,
            }
        }
        let raw = &bytes[self.at..=end];
        if serde_json::from_slice::<serde_json::Value>(raw).is_err() {
            return Err(self.wrong("invalid escape in a string"));
        }
        self.at = end + 1;
        Ok(json::string(raw).into_owned())
    }

    fn word(&mut self) -> Result<String, JsoncError> {
        let rest = &self.text[self.at..];
        let part = |char: char| char.is_alphanumeric() || "+-._".contains(char);
        let end = rest.find(|char| !part(char)).unwrap_or(rest.len());
        let word = &rest[..end];
        if serde_json::from_str::<serde_json::Value>(word).is_err() {
            return Err(self.wrong("expected a value"));
        }
        self.at += end;
        Ok(word.to_owned())
    }
}

/// Behind white space and comments; or where a comment begins that has no end.
fn passed(text: &str, mut at: usize) -> Result<usize, usize> {
    let bytes = text.as_bytes();
    loop {
        match bytes.get(at) {
            Some(b' ' | b'\t' | b'\r' | b'\n') => at += 1,
            Some(b'/') => match comment(text, at) {
                Some(end) => at = end,
                None if bytes.get(at + 1) == Some(&b'*') => return Err(at),
                None => return Ok(at),
            },
            _ => return Ok(at),
        }
    }
}

/// Behind the comment that begins here: one of a line ends before its newline.
fn comment(text: &str, at: usize) -> Option<usize> {
    let rest = &text[at..];
    if rest.starts_with("//") {
        return Some(at + rest.find('\n').unwrap_or(rest.len()));
    }
    let inner = rest.strip_prefix("/*")?;
    Some(at + 2 + inner.find("*/")? + 2)
}

/// How a text is laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsoncLayout {
    /// What ends a line.
    newline: &'static str,
    /// What one level is indented by.
    unit: String,
    /// Whether all of it stands on one line.
    flat: bool,
}

impl JsoncLayout {
    /// The layout of a text whose value is `root`.
    pub fn of(text: &str, root: &JsoncNode) -> JsoncLayout {
        let first = root.places().first().map(|place| indent(text, place.start));
        let unit = match first {
            Some(Some(indent)) if !indent.is_empty() => indent.to_owned(),
            _ => "  ".to_owned(),
        };
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let flat = !root.places().is_empty() && !text.trim_end().contains('\n');
        JsoncLayout {
            newline,
            unit,
            flat,
        }
    }

    /// A value as text, whose first line is indented by `indent` already.
    fn write(&self, value: &serde_json::Value, indent: &str, flat: bool) -> String {
        if flat || self.flat {
            return value.to_string();
        }
        let mut out = Vec::new();
        let pretty = serde_json::ser::PrettyFormatter::with_indent(self.unit.as_bytes());
        let mut writer = serde_json::Serializer::with_formatter(&mut out, pretty);
        // Writing to memory does not fail.
        let _ = serde::Serialize::serialize(value, &mut writer);
        let text = String::from_utf8(out).unwrap_or_default();
        text.replace('\n', &format!("{}{indent}", self.newline))
    }
}

/// What stands on the line before this place, if that is only white space.
fn indent(text: &str, at: usize) -> Option<&str> {
    let start = text[..at].rfind('\n')? + 1;
    let before = &text[start..at];
    before.trim().is_empty().then_some(before)
}

/// The white space at the start of the line on which this place is.
fn line_indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start().len()]
}

/// The text with one more item at the end of an object (with its key) or an array.
pub fn insert(
    text: &str,
    container: &JsoncNode,
    layout: &JsoncLayout,
    key: Option<&str>,
    value: &serde_json::Value,
) -> String {
    let places = container.places();
    let close = container.place.end - 1;
    let item = |indent: &str, flat: bool| {
        let value = layout.write(value, indent, flat);
        match key {
            Some(key) => format!("{}: {value}", json::quoted(key)),
            None => value,
        }
    };
    let Some(last) = places.last() else {
        let inside = &text[container.place.start + 1..close];
        let at = container.place.start + 1 + inside.trim_end().len();
        if layout.flat {
            return splice(text, &[(at..close, item("", true))]);
        }
        let outer = line_indent(text, container.place.start);
        let inner = format!("{outer}{}", layout.unit);
        let newline = layout.newline;
        let item = item(&inner, false);
        let new = format!("{newline}{inner}{item}{newline}{outer}");
        return splice(text, &[(at..close, new)]);
    };
    let comma = comma_after(text, last.end);
    let at = end_of_line_comment(text, comma.map_or(last.end, |comma| comma + 1));
    let new = match indent(text, last.start) {
        Some(indent) => format!("{}{indent}{}", layout.newline, item(indent, false)),
        None => format!(" {}", item("", true)),
    };
    match comma {
        Some(_) => splice(text, &[(at..at, new + ",")]),
        None => splice(text, &[(last.end..last.end, ",".to_owned()), (at..at, new)]),
    }
}

/// The text without one item of an object or an array.
pub fn remove(text: &str, container: &JsoncNode, index: usize) -> String {
    let places = container.places();
    let Some(item) = places.get(index) else {
        return text.to_owned();
    };
    let behind = comma_after(text, item.end);
    let blank = text[..item.start].trim_end().len();
    let alone = indent(text, item.start).is_some();
    let mut cut = blank..item.end;
    // A comment of a line needs the newline behind it.
    let rest = text[behind.map_or(item.end, |comma| comma + 1)..].trim_start_matches([' ', '\t']);
    let is_last_on_line = rest.starts_with(['\n', '\r']);
    if alone && !is_last_on_line && in_line_comment(text, container.place.start + 1, blank) {
        cut.start = item.start;
    }
    let mut edits = Vec::new();
    match behind {
        Some(comma) if index == 0 && !alone => {
            let after = &text[comma + 1..];
            let space = after.len() - after.trim_start_matches([' ', '\t']).len();
            edits.push((item.start..item.end, String::new()));
            edits.push((comma..comma + 1 + space, String::new()));
        }
        Some(comma) => {
            edits.push((cut, String::new()));
            edits.push((comma..comma + 1, String::new()));
        }
        None => {
            if index > 0
                && let Some(comma) = comma_after(text, places[index - 1].end)
            {
                cut.start = cut.start.max(comma + 1);
                edits.push((comma..comma + 1, String::new()));
            }
            edits.push((cut, String::new()));
        }
    }
    let text = splice(text, &edits);
    if places.len() > 1 {
        return text;
    }
    // What is empty is written without a gap.
    let start = container.place.start + 1;
    let gap = text[start..].len() - text[start..].trim_start().len();
    if text[start + gap..].starts_with(['}', ']']) {
        return splice(&text, &[(start..start + gap, String::new())]);
    }
    text
}

/// The text with another value in the place of one.
pub fn replace(text: &str, node: &JsoncNode, value: &serde_json::Value) -> String {
    splice(text, &[(node.place.clone(), value.to_string())])
}

fn splice(text: &str, edits: &[(Range<usize>, String)]) -> String {
    let mut order: Vec<_> = edits.iter().collect();
    order.sort_by_key(|(place, _)| (place.start, place.end));
    let mut out = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for (place, new) in order {
        out.push_str(&text[at..place.start]);
        out.push_str(new);
        at = place.end;
    }
    out + &text[at..]
}

/// Where the comma behind an item is, if there is one.
fn comma_after(text: &str, end: usize) -> Option<usize> {
    let at = passed(text, end).ok()?;
    (text.as_bytes().get(at) == Some(&b',')).then_some(at)
}

/// Behind the comments that follow on the same line.
fn end_of_line_comment(text: &str, at: usize) -> usize {
    let mut end = at;
    loop {
        let rest = &text[end..];
        let start = end + rest.len() - rest.trim_start_matches([' ', '\t']).len();
        match comment(text, start) {
            Some(behind) => end = text[..behind].trim_end_matches('\r').len(),
            None => return end,
        }
    }
}

/// Whether the text up to here, which begins outside of any, ends in a comment of a line.
fn in_line_comment(text: &str, from: usize, to: usize) -> bool {
    let line = text[from..to].rfind('\n').map_or(from, |at| from + at + 1);
    // In a string two slashes may stand as well; then a newline too many is kept.
    text[line..to].contains("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_commas_too_many_are_read() {
        let text =
            "\u{feff}// top\n{ /* a */ \"a\": [1, 2,], // b\n \"b\\n\": {\"c\": null,},\n}\n// end";
        let root = parse(text).unwrap();
        assert_eq!(root.members().unwrap().len(), 2);
        assert_eq!(root.get("a").unwrap().items().unwrap().len(), 2);
        assert!(root.get("b\n").unwrap().get("c").is_some());
    }

    #[test]
    fn what_is_no_json_is_named_with_its_line() {
        let wrong = |text: &str| {
            let wrong = parse(text).unwrap_err();
            (wrong.line, wrong.column, wrong.why)
        };
        assert_eq!(wrong(""), (1, 1, "expected a value"));
        assert_eq!(
            wrong("{\n  \"a\": 1\n  \"b\": 2\n}"),
            (3, 3, "expected a comma or a closing brace")
        );
        assert_eq!(wrong("{\"ä\": tru}"), (1, 7, "expected a value"));
        assert_eq!(wrong("{\n/* x"), (2, 1, "unterminated comment"));
        assert_eq!(wrong("{\"a\": \"b\n\"}"), (1, 7, "unterminated string"));
        assert_eq!(wrong("{} x"), (1, 4, "unexpected text after the value"));
        assert_eq!(wrong("{a: 1}"), (1, 2, "expected a key in quotes"));
        assert_eq!(wrong("{\"a\":}"), (1, 6, "expected a value"));
        assert_eq!(
            wrong("{\"a\": \"\\x\"}"),
            (1, 7, "invalid escape in a string")
        );
        assert_eq!(wrong(&"[".repeat(200)).2, "nested too deeply");
        assert!(parse("[\"unended\\").is_err());
    }

    fn added(text: &str) -> String {
        let root = parse(text).unwrap();
        let layout = JsoncLayout::of(text, &root);
        let key = root.members().map(|_| "new");
        insert(text, &root, &layout, key, &serde_json::json!([1]))
    }

    #[test]
    fn an_item_goes_to_the_end_and_out_again_without_a_trace() {
        for (text, expected) in [
            ("{}", "{\n  \"new\": [\n    1\n  ]\n}"),
            (
                "{\n    \"a\": 1\n}\n",
                "{\n    \"a\": 1,\n    \"new\": [\n        1\n    ]\n}\n",
            ),
            ("{\"a\":1}", "{\"a\":1, \"new\": [1]}"),
            (
                "{\n\t\"a\": 1, // x\n}",
                "{\n\t\"a\": 1, // x\n\t\"new\": [\n\t\t1\n\t],\n}",
            ),
            (
                "{\n  \"a\": 1 // x\n  // y\n}",
                "{\n  \"a\": 1, // x\n  \"new\": [\n    1\n  ]\n  // y\n}",
            ),
            ("[2]", "[2, [1]]"),
            ("[2, ]", "[2, [1], ]"),
            (
                "{\r\n  \"a\": 1\r\n}",
                "{\r\n  \"a\": 1,\r\n  \"new\": [\r\n    1\r\n  ]\r\n}",
            ),
            (
                "{\r\n  \"a\": 1 // x\r\n}",
                "{\r\n  \"a\": 1, // x\r\n  \"new\": [\r\n    1\r\n  ]\r\n}",
            ),
        ] {
            let new = added(text);
            assert_eq!(new, expected);
            let root = parse(&new).unwrap();
            assert_eq!(remove(&new, &root, root.places().len() - 1), text);
        }
    }

    #[test]
    fn an_item_can_be_taken_out_of_anywhere() {
        for (text, index, expected) in [
            ("[1, 2, 3]", 0, "[2, 3]"),
            ("[1, 2, 3]", 1, "[1, 3]"),
            ("[1, 2, 3]", 2, "[1, 2]"),
            ("[1]", 0, "[]"),
            ("[ 1, ]", 0, "[]"),
            ("[\n  1,\n  2\n]", 0, "[\n  2\n]"),
            (
                "[\n  1, // one\n  2 // two\n]",
                1,
                "[\n  1 // one\n   // two\n]",
            ),
            ("[\n  // first\n  1,\n  2\n]", 0, "[\n  // first\n  2\n]"),
            ("[1 // one\n, 2]", 1, "[1 // one\n]"),
            ("[1, // one\n 2]", 1, "[1 // one\n ]"),
            ("{\"a\": /* c */ 1}", 0, "{}"),
        ] {
            let root = parse(text).unwrap();
            let new = remove(text, &root, index);
            assert_eq!(new, expected);
            assert!(parse(&new).is_ok(), "{new}");
        }
    }
}
