//! Every text on a line, and what it is: a prompt, a reply, the output of a tool …
//!
//! Search and index read transcripts through this walk, so they agree on what is text.
//! Nothing a person could look for is left out: a kind of line or field that nobody has
//! described is [`TextKind::Other`], and so is what can be made out of a torn line. Ids, times,
//! names of types, signatures and the data of images are not text.

use std::borrow::Cow;

use crate::block::{Block, BlockKind};
use crate::entry::{self, Entry, LineDetail, LineKind};
use crate::json::{self, JsonCursor, JsonError, Span};
use crate::user_input::{self, UserLineFacts};
use crate::{known_names, tool};

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextKind {
    /// Typed by a person, or the task that a sub-agent was given.
    Prompt,
    /// Said by the model.
    Reply,
    /// Thought by the model.
    Thinking,
    /// Given to a tool.
    Tool,
    /// Said by a tool.
    Result,
    /// Shown while something ran.
    Progress,
    /// A title of a session.
    Title,
    /// Anything else: written by the program, attached, or not known.
    Other,
}

impl TextKind {
    /// All of them, in the order in which people care.
    pub const ALL: [TextKind; 8] = [
        TextKind::Prompt,
        TextKind::Reply,
        TextKind::Thinking,
        TextKind::Tool,
        TextKind::Result,
        TextKind::Progress,
        TextKind::Title,
        TextKind::Other,
    ];

    /// The name in rows and options.
    pub fn name(self) -> &'static str {
        match self {
            TextKind::Prompt => "prompt",
            TextKind::Reply => "reply",
            TextKind::Thinking => "thinking",
            TextKind::Tool => "tool",
            TextKind::Result => "result",
            TextKind::Progress => "progress",
            TextKind::Title => "title",
            TextKind::Other => "other",
        }
    }

    /// The place with this name.
    pub fn parse(name: &str) -> Option<TextKind> {
        TextKind::ALL.into_iter().find(|place| place.name() == name)
    }
}

/// One string of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineText<'a> {
    /// What it is.
    pub place: TextKind,
    /// What stands between its quotes, still escaped: see [`decode`].
    pub raw: &'a [u8],
    /// Where that begins in the line.
    pub offset: usize,
    /// The tool it was given to.
    pub tool: Option<&'a str>,
    /// The field it stands in, or the field of the list it stands in; empty for plain content
    /// and for fields at the top of a line.
    pub key: &'a str,
}

impl<'a> LineText<'a> {
    /// The text itself.
    pub fn decode(&self) -> Cow<'a, str> {
        decode(self.raw)
    }

    /// Whether it is the path of a file that a call touched.
    pub fn is_path(&self) -> bool {
        self.place == TextKind::Tool && tool::is_path(self.key)
    }
}

/// The text of what stands between the quotes of a JSON string.
pub fn decode(raw: &[u8]) -> Cow<'_, str> {
    json::inner(raw)
}

/// Calls `each` for every text of a line, in order, and gives the line's first entry. `None`
/// if nothing on the line can be read; its texts are given all the same.
pub fn texts<'a>(line: &'a [u8], each: &mut dyn FnMut(LineText<'a>)) -> Option<Entry> {
    let mut entries = objects(line, &mut |_, text| each(text));
    (!entries.is_empty()).then(|| entries.swap_remove(0))
}

/// Like [`texts`], with the entry that each text belongs to: several objects may stand on
/// one line.
pub fn objects<'a>(
    line: &'a [u8],
    each: &mut dyn FnMut(Option<&Entry>, LineText<'a>),
) -> Vec<Entry> {
    let entries = entry::decode(line).entries;
    let mut at = 0;
    for entry in &entries {
        rest(line, at, entry.span.start, &mut |text| each(None, text));
        let mut walk = LineTextWalk {
            line,
            entry,
            each: &mut |text| each(Some(entry), text),
        };
        // The entry was read from these bytes, so they are JSON.
        let _ = walk.top();
        at = entry.span.end();
    }
    rest(line, at, line.len(), &mut |text| each(None, text));
    entries
}

/// The walk over one object.
struct LineTextWalk<'w, 'a> {
    line: &'a [u8],
    entry: &'w Entry,
    each: &'w mut dyn FnMut(LineText<'a>),
}

impl<'a> LineTextWalk<'_, 'a> {
    fn top(&mut self) -> Result<(), JsonError> {
        let said = matches!(self.entry.kind, LineKind::User | LineKind::Assistant);
        let mut cursor = JsonCursor::from(self.line, self.entry.span.start);
        cursor.object(|c, key| {
            if said && key == "message" && c.peek() == Some(b'{') {
                return self.message(c);
            }
            let value = c.skip()?;
            if said && key == "content" {
                self.content(value);
            } else if !known_names::is_mark(key) {
                self.all(value, self.place(key, value), None);
            }
            Ok(())
        })?;
        Ok(())
    }

    fn message(&mut self, c: &mut JsonCursor<'_>) -> Result<(), JsonError> {
        c.object(|c, key| {
            let value = c.skip()?;
            if key == "content" {
                self.content(value);
            } else if !known_names::is_message_field(key) {
                self.all(value, TextKind::Other, None);
            }
            Ok(())
        })?;
        Ok(())
    }

    /// What a field at the top of a line holds.
    fn place(&self, key: &str, value: Span) -> TextKind {
        match &self.entry.kind {
            LineKind::User | LineKind::Assistant if key == "toolUseResult" => TextKind::Result,
            LineKind::Progress => TextKind::Progress,
            LineKind::Summary | LineKind::Title => TextKind::Title,
            LineKind::QueuedCommand if key == "attachment" && self.is_typed() => TextKind::Prompt,
            LineKind::Queue if key == "content" => {
                let text = json::string(value.of(self.line));
                let typed = user_input::classify(&text, UserLineFacts::default()).opens_turn();
                if typed {
                    TextKind::Prompt
                } else {
                    TextKind::Other
                }
            }
            _ => TextKind::Other,
        }
    }

    /// Whether a person typed the prompt that was queued.
    fn is_typed(&self) -> bool {
        matches!(
            self.entry.detail,
            Some(LineDetail::Queued { human: true, .. })
        )
    }

    /// Content of a message: its blocks, and whatever stands between them.
    fn content(&mut self, content: Span) {
        let entry = self.entry;
        let mut at = content.start;
        for block in &entry.blocks {
            if block.span().start >= at && block.span().end() <= content.end() {
                self.all(Span::new(at, block.span().start), TextKind::Other, None);
                self.block(block);
                at = block.span().end();
            }
        }
        self.all(Span::new(at, content.end()), TextKind::Other, None);
    }

    fn block(&mut self, block: &Block) {
        match block.kind {
            BlockKind::Text => self.all(block.span(), self.said(block), None),
            BlockKind::Thinking => self.all(block.span(), TextKind::Thinking, None),
            BlockKind::RedactedThinking => {}
            BlockKind::ToolUse | BlockKind::ServerToolUse => self.call(block),
            BlockKind::ToolResult => self.all(block.span(), TextKind::Result, None),
            BlockKind::Other if block.name().ends_with("tool_result") => {
                self.all(block.span(), TextKind::Result, None);
            }
            BlockKind::Image | BlockKind::Document | BlockKind::Other => {
                self.all(block.span(), TextKind::Other, None);
            }
        }
    }

    /// Whose words a text block holds.
    fn said(&self, block: &Block) -> TextKind {
        if self.entry.kind == LineKind::Assistant {
            // The program speaks in the form of a reply too.
            let program =
                self.entry.api_error || self.entry.message.model.as_deref() == Some("<synthetic>");
            return if program {
                TextKind::Other
            } else {
                TextKind::Reply
            };
        }
        let raw = block.body().of(self.line);
        let wrapped = || {
            raw.get(1) == Some(&b'<') && user_input::stripped(&json::string(raw)).trim().is_empty()
        };
        if self.entry.input.opens_turn() && !wrapped() {
            TextKind::Prompt
        } else {
            TextKind::Other
        }
    }

    fn call(&mut self, block: &Block) {
        let within = block.span().of(self.line);
        let name = json::find(within, &["name"])
            .map(|name| name.of(within))
            .and_then(|raw| raw.strip_prefix(b"\"")?.strip_suffix(b"\""))
            .map(key_text);
        // The names of the client's own tools are on every other line; those of others are
        // worth finding.
        let odd = block.tool().is_some_and(|name| tool::known(name).is_none());
        let line = self.line;
        let mut cursor = JsonCursor::from(line, block.span().start);
        // The block was read from these bytes, so they are JSON.
        let _ = cursor.object(|c, key| {
            let value = c.skip()?;
            match key {
                "input" => self.all(value, TextKind::Tool, name),
                "name" if odd => self.all(value, TextKind::Tool, name),
                _ if known_names::is_block_field(key) => {}
                _ => self.all(value, TextKind::Other, None),
            }
            Ok(())
        });
    }

    /// All texts of a value.
    fn all(&mut self, value: Span, place: TextKind, tool: Option<&'a str>) {
        let line = self.line;
        let queued = matches!(self.entry.kind, LineKind::QueuedCommand);
        strings(
            line,
            value,
            |key, object| is_text(line, place, key, object),
            |key, span| {
                // Of a queued prompt only the prompt was typed.
                let typed = !queued || matches!(key, "prompt" | "text");
                (self.each)(LineText {
                    place: if typed { place } else { TextKind::Other },
                    raw: span.of(line),
                    offset: span.start,
                    tool,
                    key,
                });
            },
        );
    }
}

/// Whether the field `key` of the object at `object` holds text.
fn is_text(line: &[u8], place: TextKind, key: &str, object: usize) -> bool {
    match (place, key) {
        // A tool may call its parameters what it likes.
        (TextKind::Tool, _) => true,
        (_, "type" | "signature" | "base64" | "tool_use_id") => false,
        (_, "data") => !is_binary(&line[object..]),
        (TextKind::Result, _) => true,
        _ => !known_names::is_mark(key),
    }
}

/// Whether the object that begins here holds its data as base64: images and documents do.
fn is_binary(object: &[u8]) -> bool {
    let field = |name| json::find(object, &[name]).map(|span| json::string(span.of(object)));
    let mime = field("media_type").or_else(|| field("mimeType"));
    mime.is_some() && field("type").as_deref() != Some("text")
}

/// Calls `each` with the field and the inside of every string in `value`, without recursion.
/// Fields that `wanted` refuses, given with the start of their object, are passed over.
fn strings<'a>(
    line: &'a [u8],
    value: Span,
    wanted: impl Fn(&str, usize) -> bool,
    mut each: impl FnMut(&'a str, Span),
) {
    let mut open: Vec<(&'a str, usize)> = Vec::new();
    let mut key = "";
    let mut at = value.start;
    while at < value.end() {
        match line[at] {
            b'{' | b'[' => open.push((key, at)),
            b'}' | b']' => key = open.pop().map_or("", |(key, _)| key),
            b'"' => {
                let Ok(string) = JsonCursor::from(line, at).skip() else {
                    return;
                };
                at = string.end();
                let inner = Span::new(string.start + 1, at - 1);
                let mut after = JsonCursor::from(line, at);
                if after.peek() != Some(b':') {
                    each(key, inner);
                    continue;
                }
                key = key_text(inner.of(line));
                at = after.position() + 1;
                let object = open.last().map_or(value.start, |(_, start)| *start);
                if !wanted(key, object) {
                    let Ok(passed) = JsonCursor::from(line, at).skip() else {
                        return;
                    };
                    at = passed.end();
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
}

/// Names have no escapes; one that has is no name we know.
fn key_text(raw: &[u8]) -> &str {
    std::str::from_utf8(raw).unwrap_or_default()
}

/// What can be made out of bytes that are no object: the stretches between quotes, cut where
/// an escape makes no sense, so that each of them decodes as a string does.
fn rest<'a>(line: &'a [u8], start: usize, end: usize, each: &mut dyn FnMut(LineText<'a>)) {
    let mut from = start;
    let mut at = start;
    let mut give = |from: usize, to: usize| {
        let raw = &line[from..to];
        if !raw.iter().all(|byte| is_filling(*byte)) {
            each(LineText {
                place: TextKind::Other,
                raw,
                offset: from,
                tool: None,
                key: "",
            });
        }
    };
    while let Some(found) = memchr::memchr2(b'"', b'\\', &line[at..end]) {
        at += found;
        let used = if line[at] == b'"' {
            None
        } else {
            json::escape_len(&line[at..end])
        };
        match used {
            Some(used) => at += used,
            None => {
                give(from, at);
                at += 1;
                from = at;
            }
        }
    }
    give(from, end);
}

/// What stands between the strings of JSON.
fn is_filling(byte: u8) -> bool {
    byte <= b' ' || matches!(byte, b'{' | b'}' | b'[' | b']' | b':' | b',')
}

/// The text without the sequences by which programs colour and move what they print.
///
/// A sequence that does not end only loses its introducer, so that nothing is hidden.
pub fn plain(text: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(ESCAPE, text.as_bytes()) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    let mut rest = &text[first..];
    loop {
        rest = &rest[sequence(rest.as_bytes())..];
        match memchr::memchr(ESCAPE, rest.as_bytes()) {
            Some(next) => {
                out.push_str(&rest[..next]);
                rest = &rest[next..];
            }
            None => {
                out.push_str(rest);
                return Cow::Owned(out);
            }
        }
    }
}

/// The character that begins a sequence.
pub const ESCAPE: u8 = 0x1b;

/// The length of the sequence that begins here. All its bytes are ASCII but those of titles
/// and links, whose end is.
pub(crate) fn sequence(bytes: &[u8]) -> usize {
    let run = |from: usize, low: u8, high: u8| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest
            .iter()
            .take_while(|byte| (low..high).contains(byte))
            .count()
    };
    let closed = |at: usize, low: u8| {
        at + usize::from(bytes.get(at).is_some_and(|byte| (low..0x7f).contains(byte)))
    };
    match bytes.get(1) {
        Some(b'[') => closed(run(2, 0x20, 0x40), 0x40),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => 2 + titled(&bytes[2..]),
        Some(0x20..0x30) => closed(run(2, 0x20, 0x30), 0x30),
        Some(0x30..0x7f) => 2,
        _ => 1,
    }
}

/// The length of a title or a link with its end, nothing if it does not end on its line.
fn titled(body: &[u8]) -> usize {
    let ends = |at: usize| match &body[at..] {
        [7, ..] => Some(at + 1),
        [ESCAPE, b'\\', ..] | [0xc2, 0x9c, ..] => Some(at + 2),
        [ESCAPE | b'\n' | 0x18 | 0x1a, ..] => Some(0),
        _ => None,
    };
    (0..body.len()).find_map(ends).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every text of a line as `place key: text`.
    fn found(line: &str) -> Vec<String> {
        bytes(line.as_bytes())
    }

    fn bytes(line: &[u8]) -> Vec<String> {
        let mut all = Vec::new();
        texts(line, &mut |text| {
            assert_eq!(&line[text.offset..][..text.raw.len()], text.raw);
            let (place, key) = (text.place.name(), text.key);
            all.push(format!("{place} {key}: {}", plain(&text.decode())));
        });
        all
    }

    #[test]
    fn every_place_has_a_name_that_is_read_back() {
        for place in TextKind::ALL {
            assert_eq!(TextKind::parse(place.name()), Some(place));
        }
        assert_eq!(TextKind::parse("Prompt"), None);
    }

    #[test]
    fn what_a_person_typed_is_a_prompt_and_what_the_program_wrote_is_not() {
        let user = |rest: &str| {
            found(&format!(
                r#"{{"type":"user","uuid":"u","cwd":"/p","message":{{"role":"user","content":{rest}}}}}"#
            ))
        };
        assert_eq!(user(r#""hi""#), ["prompt : hi"]);
        assert_eq!(
            user(
                r#"[{"type":"text","text":"<system-reminder>x</system-reminder>"},{"type":"text","text":"do it"}]"#
            ),
            [
                "other text: <system-reminder>x</system-reminder>",
                "prompt text: do it"
            ]
        );
        assert_eq!(
            user(r#""<command-name>/clear</command-name>""#),
            ["prompt : <command-name>/clear</command-name>"]
        );
        assert_eq!(
            user(r#""<task-notification>done""#),
            ["other : <task-notification>done"]
        );
        assert_eq!(
            user(r#""caveat"},"isMeta":true,"x":{"y":1"#),
            ["other : caveat"]
        );
        assert_eq!(
            user(r#""so far"},"isCompactSummary":true,"x":{"y":1"#),
            ["other : so far"]
        );
    }

    #[test]
    fn replies_thinking_and_calls_are_told_apart_and_signatures_left_out() {
        let line = r#"{"type":"assistant","uuid":"u","requestId":"r","message":{"model":"claude","id":"m","role":"assistant","stop_reason":"end_turn","usage":{"service_tier":"standard"},"content":[
            {"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"redacted_thinking","data":"c2ln"},
            {"type":"text","text":"said"},
            {"type":"tool_use","id":"t","name":"Edit","input":{"file_path":"/a","edits":[{"old":"b","type":"c"}],"n":1}},
            {"type":"tool_use","id":"t","input":{"query":"q"},"name":"mcp__x__find"}]}}"#;
        let line = line.replace('\n', "");
        assert_eq!(
            found(&line),
            [
                "thinking thinking: hm",
                "reply text: said",
                "tool file_path: /a",
                "tool old: b",
                "tool type: c",
                "tool query: q",
                "tool : mcp__x__find"
            ]
        );
        let mut tools = Vec::new();
        texts(line.as_bytes(), &mut |text| {
            tools.extend(text.tool.map(|tool| (tool, text.is_path())));
        });
        assert_eq!(tools[0], ("Edit", true));
        assert_eq!(tools[3], ("mcp__x__find", false));
    }

    #[test]
    fn the_program_speaking_as_the_model_is_no_reply() {
        let line = r#"{"type":"assistant","message":{"model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"API Error"}]}}"#;
        assert_eq!(found(line), ["other text: API Error"]);
    }

    #[test]
    fn results_are_found_in_the_message_and_beside_it_but_images_are_not_text() {
        let line = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"out"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]},{"type":"tool_result","tool_use_id":"t","content":"plain"}]},"toolUseResult":{"type":"text","stdout":"more","file":{"base64":"aGk=","type":"image/png"},"blob":{"data":"aGk=","mimeType":"image/png"},"data":"kept"}}"#;
        assert_eq!(
            found(line),
            [
                "result text: out",
                "result media_type: image/png",
                "result content: plain",
                "result stdout: more",
                "result mimeType: image/png",
                "result data: kept"
            ]
        );
    }

    #[test]
    fn progress_titles_and_queued_prompts_have_their_places() {
        let cases = [
            (
                r#"{"type":"progress","data":{"type":"bash_progress","output":"o"},"toolUseID":"t","uuid":"u"}"#,
                "progress output: o",
            ),
            (
                r#"{"type":"progress","data":{"type":"agent_progress","message":{"type":"assistant","uuid":"u","timestamp":"t","message":{"role":"assistant","model":"m","id":"i","content":[{"type":"text","text":"copied"}],"usage":{"service_tier":"s"}}},"agentId":"a"}}"#,
                "progress text: copied",
            ),
            (
                r#"{"type":"summary","summary":"s","leafUuid":"l"}"#,
                "title : s",
            ),
            (
                r#"{"type":"custom-title","customTitle":"c","sessionId":"l"}"#,
                "title : c",
            ),
            (
                r#"{"type":"queue-operation","operation":"enqueue","content":"typed","sessionId":"s"}"#,
                "prompt : typed",
            ),
            (
                r#"{"type":"queue-operation","operation":"enqueue","content":"<task-notification>"}"#,
                "other : <task-notification>",
            ),
            (
                r#"{"type":"attachment","attachment":{"type":"queued_command","prompt":"typed","commandMode":"prompt"}}"#,
                "prompt prompt: typed",
            ),
            (
                r#"{"type":"system","subtype":"informational","content":"c","level":"info"}"#,
                "other : c",
            ),
            (
                r#"{"type":"never-seen","uuid":"u","thing":{"deep":[["x"]]}}"#,
                "other deep: x",
            ),
            (r#"["a list"]"#, "other : a list"),
        ];
        for (line, text) in cases {
            let found = found(line);
            assert!(found.iter().any(|one| one == text), "{line}: {found:?}");
            let marks = found
                .iter()
                .filter(|one| one.ends_with(": u") || one.ends_with(": t"));
            assert_eq!(marks.count(), 0, "{line}: {found:?}");
        }
    }

    #[test]
    fn every_spelling_of_a_character_decodes() {
        let line = br#"{"type":"user","message":{"role":"user","content":"say \"hi\" C:\\x\/y \u00fc \ud83d\ude00 \ud83d \u001b[31mred\u001b[0m\n\u65e5\u672c"}}"#;
        let text = "prompt : say \"hi\" C:\\x/y ü 😀 \u{fffd} red\n日本";
        assert_eq!(bytes(line), [text]);
        let ends_with_quote = r#"{"type":"user","content":"so he said \"no\""}"#;
        assert_eq!(found(ends_with_quote), ["prompt : so he said \"no\""]);
    }

    #[test]
    fn a_torn_line_gives_what_can_be_made_out_and_glued_lines_give_both() {
        let torn = r#"{"type":"user","message":{"role":"user","content":"half a \"sen\u00fc C:\Users \u00"#;
        let all = found(torn);
        assert!(
            all.contains(&"other : half a \"senü C:".to_owned()),
            "{all:?}"
        );
        assert!(all.contains(&"other : Users ".to_owned()), "{all:?}");
        assert_eq!(found("plain words"), ["other : plain words"]);
        assert_eq!(found("\0\0\0"), [""; 0]);
        let glued = r#"{"type":"user","uuid":"a","content":"one"}{"type":"user","uuid":"b","content":"two"} tail"#;
        assert_eq!(
            found(glued),
            ["prompt : one", "prompt : two", "other :  tail"]
        );
        let mut ids = Vec::new();
        objects(glued.as_bytes(), &mut |entry, _| {
            ids.push(
                entry
                    .and_then(|entry| entry.uuid.as_ref())
                    .map(ToString::to_string),
            );
        });
        assert_eq!(ids, [Some("a".into()), Some("b".into()), None]);
    }

    #[test]
    fn hostile_nesting_is_walked_without_recursion() {
        let deep = 100_000;
        let line = format!(
            r#"{{"type":"user","toolUseResult":{}"x"{}}}"#,
            "[".repeat(deep),
            "]".repeat(deep)
        );
        assert_eq!(found(&line), ["result : x"]);
    }

    #[test]
    fn sequences_of_all_families_are_taken_out_and_nothing_else() {
        for family in [
            "\u{1b}[31m",
            "\u{1b}[1;2;3H",
            "\u{1b}[?1049h",
            "\u{1b}]0;títle\u{7}",
            "\u{1b}]8;;http://x\u{1b}\\",
            "\u{1b}]1337;x\u{9c}",
            "\u{1b}Pq#0\u{1b}\\",
            "\u{1b}(B",
            "\u{1b}7",
        ] {
            assert_eq!(plain(&format!("日{family}b{family}")), "日b", "{family:?}");
        }
        assert_eq!(plain("\u{1b}]0;rm\nnext"), "0;rm\nnext");
        assert_eq!(plain("end\u{1b}"), "end");
        assert_eq!(plain("\u{1b}é\u{1b}[é"), "éé");
        assert!(matches!(plain("[31m"), Cow::Borrowed(_)));
    }
}
