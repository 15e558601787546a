//! One damaged line: whole objects found again in it, their text made sound, their shape made
//! one that clients read.

use std::borrow::Cow;

use crate::accepted_names;
use crate::block::{Block, BlockKind, is_blank_text, result_items};
use crate::edit::copy_identity::made;
use crate::entry::{self, Entry, LineKind, ParentId};
use crate::fault::FaultKind;
use crate::id::Id;
use crate::json::{self, JsonCursor, Span};
use crate::refused_content::{self, RefusalReason};

/// A whole object of a line, or something that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineFragment {
    /// An object that reads as a line.
    Object(Span),
    /// A value that is no object.
    Other(Span),
    /// The rest of an object whose writer was cut off, or what is no JSON at all.
    Torn(Span),
    /// Bytes of zeros, as a machine that lost its power leaves them.
    Zeros(Span),
}

/// Takes a line apart. Behind a torn place, objects count again that name their own id and
/// parent, or are bookkeeping that is known: parts of the torn one do neither.
pub(super) fn parts(line: &[u8]) -> Vec<LineFragment> {
    let mut parts = Vec::new();
    let mut at = 3 * usize::from(line.starts_with(BYTE_ORDER_MARK));
    // Each try reads at most to the end of the line; many of them would take for ever.
    let mut budget = line.len().saturating_mul(16) + 4096;
    while at < line.len() {
        let rest = &line[at..];
        let blank = |byte: &&u8| byte.is_ascii_whitespace() || **byte == 0;
        let skipped = rest.iter().take_while(blank).count();
        if rest[..skipped].contains(&0) {
            parts.push(LineFragment::Zeros(Span::new(at, at + skipped)));
        }
        at += skipped;
        if at == line.len() {
            break;
        }
        match JsonCursor::from(line, at).skip() {
            Ok(span) => {
                let is_object = line[span.start] == b'{';
                let part = if is_object {
                    LineFragment::Object
                } else {
                    LineFragment::Other
                };
                parts.push(part(span));
                at = span.end();
            }
            Err(_) => {
                let next = found_again(line, at + 1, &mut budget);
                let end = next.unwrap_or(line.len());
                parts.push(LineFragment::Torn(Span::new(at, end)));
                at = end;
            }
        }
    }
    parts
}

pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Where the next whole line begins that was glued to a torn one.
fn found_again(line: &[u8], from: usize, budget: &mut usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr(b'{', line.get(at..)?)?;
        let mut cursor = JsonCursor::from(line, at);
        let read = cursor.skip();
        let cost = match &read {
            Ok(span) => span.len,
            Err(bad) => bad.at.saturating_sub(at),
        };
        if read.is_ok_and(|span| is_line(span.of(line))) {
            return Some(at);
        }
        *budget = budget.checked_sub(cost + 1)?;
        at += 1;
    }
}

/// Whether an object inside a torn line is a line of its own.
fn is_line(object: &[u8]) -> bool {
    let decoded = entry::decode(object);
    let Some(entry) = decoded.entries.first() else {
        return false;
    };
    let linked = entry.uuid.is_some() && entry.parent != ParentId::Absent;
    let chain =
        entry.kind.is_link() || matches!(entry.kind, LineKind::Progress | LineKind::Unknown);
    linked || (!chain && !entry.untyped)
}

/// A text in which clients find nothing to refuse: raw control characters in strings are
/// escaped, bytes that are not UTF-8 and half surrogate pairs become U+FFFD. Says what it did.
pub(super) fn sound<'a>(object: &'a [u8], done: &mut Vec<TextFault>) -> Cow<'a, [u8]> {
    let text = match std::str::from_utf8(object) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            done.push(TextFault::Fault(FaultKind::NotUtf8));
            String::from_utf8_lossy(object)
        }
    };
    let bytes = text.as_bytes();
    let pairs = json::has_lone_surrogate(bytes);
    let mut cursor = JsonCursor::new(bytes);
    let control = cursor.skip().is_ok() && cursor.control;
    if pairs {
        done.push(TextFault::LoneSurrogate);
    }
    if control {
        done.push(TextFault::Fault(FaultKind::ControlCharacter));
    }
    if pairs || control {
        return Cow::Owned(escaped(bytes));
    }
    match text {
        Cow::Borrowed(_) => Cow::Borrowed(object),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// Whether the API refuses a line for something that can be mended in it: the name of a tool, the
/// id of a call, an empty text inside a result, a block in a wrong form.
pub(super) fn is_refused(entry: &Entry) -> bool {
    is_conversation(entry)
        && (has_refused_name(entry) || has_empty_result(entry) || has_bad_block(entry))
}

fn has_bad_block(entry: &Entry) -> bool {
    entry.blocks.iter().any(|block| bad_form(block).is_some())
}

/// Why a block is refused that has another form; what has no id is paired with nothing.
fn bad_form(block: &Block) -> Option<RefusalReason> {
    let refusal = block.refusal?;
    match refusal {
        RefusalReason::BadBlock => Some(refusal),
        RefusalReason::BadCall | RefusalReason::BadResult => block
            .id()
            .is_some_and(|id| !id.is_empty())
            .then_some(refusal),
        _ => None,
    }
}

/// The object with calls, results and other blocks in a form that the API takes, and which of
/// them were in another one; `None` if none was.
pub(super) fn reformed(object: &[u8]) -> Option<(Vec<u8>, Vec<RefusalReason>)> {
    let decoded = entry::decode(object);
    let entry = decoded.entries.first();
    let entry = entry.filter(|entry| is_conversation(entry))?;
    let bad = entry.blocks.iter();
    let bad = bad.filter_map(|block| Some((block.span(), bad_form(block)?)));
    let (edits, why): (Vec<_>, Vec<_>) = bad
        .filter_map(|(span, refusal)| {
            let form = refused_content::accepted_form(span.of(object), refusal)?;
            Some(((span, form), refusal))
        })
        .unzip();
    (!edits.is_empty()).then(|| (json::splice(object, &edits), why))
}

fn is_conversation(entry: &Entry) -> bool {
    matches!(entry.kind, LineKind::User | LineKind::Assistant)
}

fn has_empty_result(entry: &Entry) -> bool {
    let mut blocks = entry.blocks.iter();
    blocks.any(|block| block.kind == BlockKind::ToolResult && block.blank)
}

fn has_refused_name(entry: &Entry) -> bool {
    let refused = |block: &Block| match block.kind {
        BlockKind::ToolUse => {
            let tool = accepted_names::tool_name(block.tool().unwrap_or_default());
            tool.or_else(|| accepted_names::call_id(block.id()?))
                .is_some()
        }
        BlockKind::ToolResult => block.id().and_then(accepted_names::call_id).is_some(),
        _ => false,
    };
    entry.blocks.iter().any(refused)
}

/// The object with results that hold no empty text; `None` if no result does.
pub(super) fn without_empty_texts(object: &[u8]) -> Option<Vec<u8>> {
    let decoded = entry::decode(object);
    let entry = decoded.entries.first();
    let entry = entry.filter(|entry| is_conversation(entry) && has_empty_result(entry))?;
    let results = entry.blocks.iter();
    let results = results.filter(|block| block.kind == BlockKind::ToolResult && block.blank);
    let edits: Vec<(Span, Vec<u8>)> = results
        .map(|block| {
            let items = result_items(block.body().of(object));
            let kept: Vec<&[u8]> = items.filter(|item| !is_blank_text(item)).collect();
            let content = match kept.is_empty() {
                true => b"\"\"".to_vec(),
                false => [&b"["[..], &kept.join(&b','), b"]"].concat(),
            };
            (block.body(), content)
        })
        .collect();
    Some(json::splice(object, &edits))
}

/// What makes a name one that is accepted.
type AcceptedName = fn(&str) -> Option<String>;

/// The object with names that the API accepts; `None` if it has no others. A call and its result
/// are renamed alike.
pub(super) fn renamed(object: &[u8]) -> Option<Vec<u8>> {
    let decoded = entry::decode(object);
    let entry = decoded.entries.first();
    let entry = entry.filter(|entry| is_conversation(entry) && has_refused_name(entry))?;
    let mut edits = Vec::new();
    for block in &entry.blocks {
        let keys: &[(&str, AcceptedName)] = match block.kind {
            BlockKind::ToolUse => &[
                ("id", accepted_names::call_id),
                ("name", accepted_names::tool_name),
            ],
            BlockKind::ToolResult => &[("tool_use_id", accepted_names::call_id)],
            _ => continue,
        };
        let start = block.span().start;
        for (key, accepted) in keys {
            let raw = block.span().of(object);
            match json::find(raw, &[*key]) {
                Some(span) => {
                    let new = accepted(&json::string(span.of(raw)));
                    let place = Span::new(start + span.start, start + span.end());
                    edits.extend(new.map(|new| (place, json::quoted(&new).into_bytes())));
                }
                None if *key == "name" => {
                    let place = Span::new(start + 1, start + 1);
                    let new = accepted("").unwrap_or_default();
                    edits.push((
                        place,
                        format!("\"name\":{},", json::quoted(&new)).into_bytes(),
                    ));
                }
                None => {}
            }
        }
    }
    edits.sort_by_key(|(span, _)| span.start);
    (!edits.is_empty()).then(|| json::splice(object, &edits))
}

/// What was wrong with the text of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextFault {
    Fault(FaultKind),
    LoneSurrogate,
}

fn escaped(object: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len() + 16);
    let (mut inside, mut at) = (false, 0);
    while let Some(&byte) = object.get(at) {
        let mut used = 1;
        match byte {
            b'"' => {
                inside = !inside;
                out.push(byte);
            }
            b'\\' => {
                let (character, len) = json::escape(&object[at..]);
                used = len.clamp(1, object.len() - at);
                let lone = used == 6 && character == char::REPLACEMENT_CHARACTER;
                out.extend_from_slice(if lone {
                    b"\\ufffd"
                } else {
                    &object[at..at + used]
                });
            }
            0..0x20 if inside => out.extend_from_slice(&escape_of(byte)),
            _ => out.push(byte),
        }
        at += used;
    }
    out
}

fn escape_of(byte: u8) -> Vec<u8> {
    let quoted = json::quoted(&char::from(byte).to_string()).into_bytes();
    quoted[1..quoted.len() - 1].to_vec()
}

/// What an object lacks to be read by clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingField {
    /// It had no type.
    Type,
    /// It had no id.
    Id,
    /// Its content stood at the top of the line.
    Message,
    /// Its content was no list of blocks.
    Blocks,
}

/// The object in a shape that clients read, and what was done to it. `last` is the line of
/// the chain before it, `salt` makes new ids differ.
pub(super) fn shaped(
    object: &[u8],
    entry: &Entry,
    last: Option<&Id>,
    salt: u64,
) -> Option<(Vec<u8>, Vec<MissingField>)> {
    let mut done = Vec::new();
    let mut now: Cow<'_, [u8]> = Cow::Borrowed(object);
    if !matches!(entry.kind, LineKind::User | LineKind::Assistant) {
        return None;
    }
    let set = |now: &mut Cow<'_, [u8]>, key: &str, value: &str| {
        if let Some(new) = json::with_field(now, key, value) {
            *now = Cow::Owned(new);
        }
    };
    let role = match entry.kind {
        LineKind::User => "user",
        _ => "assistant",
    };
    if let Some(blocks) = listed(object, entry) {
        now = Cow::Owned(blocks);
        done.push(MissingField::Blocks);
    }
    if !entry.blocks.is_empty() && !has_message(&now) {
        let content = json::find(&now, &["content"]).map(|span| json::mended(span.of(&now)));
        let content = content.unwrap_or_else(|| "[]".to_owned());
        let message = format!("{{\"role\":\"{role}\",\"content\":{content}}}");
        set(&mut now, "message", &message);
        done.push(MissingField::Message);
    }
    if entry.untyped {
        set(&mut now, "type", &json::quoted(role));
        if let (Some(at), None) = (entry.at, json::find(object, &["timestamp"])) {
            set(&mut now, "timestamp", &json::quoted(&at.to_string()));
        }
        done.push(MissingField::Type);
    }
    if entry.uuid.is_none() {
        let id = made(salt, &Id::new(&format!("line of {} bytes", object.len())));
        set(&mut now, "uuid", &json::quoted(&id.to_string()));
        if entry.parent == ParentId::Absent {
            let parent = last.map_or_else(|| "null".into(), |id| json::quoted(&id.to_string()));
            set(&mut now, "parentUuid", &parent);
        }
        done.push(MissingField::Id);
    }
    (!done.is_empty()).then(|| (now.into_owned(), done))
}

fn has_message(object: &[u8]) -> bool {
    json::find(object, &["message"]).is_some_and(|span| span.of(object).first() == Some(&b'{'))
}

/// The object with texts that stand bare in place of blocks made blocks. A prompt may be one
/// string; a reply may not.
fn listed(object: &[u8], entry: &Entry) -> Option<Vec<u8>> {
    let plain = |block: &&crate::block::Block| {
        block.kind == BlockKind::Text && block.span() == block.body() && block.span().len > 0
    };
    let content = [&["message", "content"][..], &["content"]];
    let whole = content.iter().find_map(|path| json::find(object, path))?;
    let mut edits = Vec::new();
    for block in entry.blocks.iter().filter(plain) {
        let raw = String::from_utf8_lossy(block.span().of(object));
        let text = format!("{{\"type\":\"text\",\"text\":{raw}}}");
        if block.span() != whole {
            edits.push((block.span(), text.into_bytes()));
        } else if entry.kind == LineKind::Assistant {
            edits.push((block.span(), format!("[{text}]").into_bytes()));
        }
    }
    (!edits.is_empty()).then(|| json::splice(object, &edits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(line: &str) -> String {
        let name = |part: &LineFragment| match part {
            LineFragment::Object(_) => 'o',
            LineFragment::Other(_) => 'v',
            LineFragment::Torn(_) => 't',
            LineFragment::Zeros(_) => '0',
        };
        parts(line.as_bytes()).iter().map(name).collect()
    }

    #[test]
    fn a_line_glued_to_a_torn_one_is_found_again() {
        let line = r#"{"parentUuid":"a","uuid":"b","type":"user","message":{"role":"user","content":"x"}}"#;
        let torn = |end: usize| format!("{}{line}", &line[..end]);
        for end in 1..line.len() {
            assert_eq!(kinds(&torn(end)), "to", "{end}");
        }
        assert_eq!(kinds(&format!("{line}{line} null")), "oov");
        assert_eq!(kinds(&format!("\0\0{line}")), "0o");
        assert_eq!(kinds(&format!("{line}rest")), "ot");
    }

    #[test]
    fn a_piece_of_a_torn_line_is_no_line() {
        for torn in [
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"x"}"#,
            r#"{"type":"progress","data":{"message":{"type":"user","uuid":"x","message":{"role":"user","content":"y"}}"#,
            r#"{"a":{"b":{"c":{}}}"#,
        ] {
            assert_eq!(kinds(torn), "t", "{torn}");
        }
    }

    #[test]
    fn many_open_braces_take_no_time() {
        let line = "{".repeat(300_000);
        assert_eq!(kinds(&line), "t");
        let line = "{\"a\":[".repeat(100_000);
        assert_eq!(kinds(&line), "t");
    }

    #[test]
    fn control_characters_are_escaped_and_halves_of_pairs_replaced() {
        let mut done = Vec::new();
        let object = b"{\t\"a\":\"x\ty\x01\",\"b\":\"\\ud83d \\ud83d\\ude00\\\\\"}";
        let new = sound(object, &mut done);
        assert_eq!(
            String::from_utf8_lossy(&new),
            "{\t\"a\":\"x\\ty\\u0001\",\"b\":\"\\ufffd \\ud83d\\ude00\\\\\"}"
        );
        assert_eq!(done.len(), 2);
        assert!(matches!(
            sound(b"{\"a\":\"b\"}", &mut done),
            Cow::Borrowed(_)
        ));
    }
}
