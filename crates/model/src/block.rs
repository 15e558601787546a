//! Pieces of message content: what each one is and where it stands in its line.

use compact_str::CompactString;

use crate::json::{self, JsonCursor, ShortSpan, Span};
use crate::known_names::UnknownNames;
use crate::refused_content::{self, BlockContent, RefusalReason};
use crate::{known_names, tool};

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Text, also when the content is one plain string.
    Text,
    /// Thinking, with its text or only its signature.
    Thinking,
    /// Thinking that only the API can read.
    RedactedThinking,
    /// A tool call.
    ToolUse,
    /// A call of a tool that runs at the API.
    ServerToolUse,
    /// The result of a call.
    ToolResult,
    /// An image.
    Image,
    /// A document, such as a PDF.
    Document,
    /// Anything else; passed on as it is.
    Other,
}

impl BlockKind {
    fn of(name: &str) -> BlockKind {
        match name {
            "text" => BlockKind::Text,
            "thinking" => BlockKind::Thinking,
            "redacted_thinking" => BlockKind::RedactedThinking,
            "tool_use" => BlockKind::ToolUse,
            "server_tool_use" => BlockKind::ServerToolUse,
            "tool_result" => BlockKind::ToolResult,
            "image" => BlockKind::Image,
            "document" => BlockKind::Document,
            _ => BlockKind::Other,
        }
    }

    /// The `type` that blocks of this kind are written with; `None` if it is no known one.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            BlockKind::Text => "text",
            BlockKind::Thinking => "thinking",
            BlockKind::RedactedThinking => "redacted_thinking",
            BlockKind::ToolUse => "tool_use",
            BlockKind::ServerToolUse => "server_tool_use",
            BlockKind::ToolResult => "tool_result",
            BlockKind::Image => "image",
            BlockKind::Document => "document",
            BlockKind::Other => return None,
        })
    }

    /// Whether it holds thinking, readable or not.
    pub fn is_thinking(self) -> bool {
        matches!(self, BlockKind::Thinking | BlockKind::RedactedThinking)
    }
}

/// A block: its kind, its ids, and where it stands. The text stays in the file.
///
/// Small, because a message may have a million of them: most have no names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Equal blocks have equal prints.
    pub print: u64,
    whole: ShortSpan,
    inner: ShortSpan,
    names: Option<Box<BlockNames>>,
    /// What it is.
    pub kind: BlockKind,
    /// A result that reports a failure.
    pub is_error: bool,
    /// Text or thinking without a visible character; a result that holds such a text.
    pub blank: bool,
    /// Why the API refuses it, wherever it stands.
    pub refusal: Option<RefusalReason>,
}

/// What calls, results and blocks of unknown types are called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct BlockNames {
    id: Option<CompactString>,
    tool: Option<CompactString>,
    subject: Option<Box<str>>,
}

impl Block {
    /// The whole block in its line; for plain string content, the string.
    pub fn span(&self) -> Span {
        self.whole.span()
    }

    /// The text, the input or the result inside the block.
    pub fn body(&self) -> Span {
        self.inner.span()
    }

    /// `id` of a call, `tool_use_id` of a result.
    pub fn id(&self) -> Option<&str> {
        self.names.as_ref()?.id.as_deref()
    }

    /// The tool of a call; the `type` of a block nobody has described.
    pub fn tool(&self) -> Option<&str> {
        self.names.as_ref()?.tool.as_deref()
    }

    /// What a call is about, on one line.
    pub fn subject(&self) -> Option<&str> {
        self.names.as_ref()?.subject.as_deref()
    }

    /// The `type` it was written with.
    pub fn name(&self) -> &str {
        match self.kind.name() {
            Some(name) => name,
            None => self.tool().unwrap_or("?"),
        }
    }
}

/// A piece of content, decoded just now or kept by a session.
pub(crate) trait ContentBlock {
    /// What it is.
    fn kind(&self) -> BlockKind;
    /// The text, the input or the result inside it.
    fn body(&self) -> Span;
}

impl ContentBlock for Block {
    fn kind(&self) -> BlockKind {
        self.kind
    }

    fn body(&self) -> Span {
        Block::body(self)
    }
}

/// A quick hash of all bytes, eight at a time.
fn print(bytes: &[u8]) -> u64 {
    let mut sum = bytes.len() as u64;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
        sum = (sum ^ word)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29);
    }
    for &byte in words.remainder() {
        sum = (sum ^ u64::from(byte))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29);
    }
    sum
}

/// Longest subject kept; a command can be a whole script.
const SUBJECT: usize = 240;

/// Why a line is not read whose blocks take more than [`most_memory`].
pub(crate) const TOO_MANY: &str = "too many pieces of content";

/// How many bytes the blocks of a line of so many bytes may take, decoded and kept: far more than
/// any client writes, and together with the line itself less than twice its length and 64 MB.
fn most_memory(line: usize) -> usize {
    line + (24 << 20)
}

impl Block {
    /// About how many bytes it takes: it is held twice while a session takes it in. Calls and
    /// results also stand in the tables that pair them.
    fn memory(&self) -> usize {
        let names = match self.kind {
            _ if self.names.is_none() => 0,
            BlockKind::ToolUse | BlockKind::ServerToolUse => 512,
            _ => 240,
        };
        2 * size_of::<Block>() + names
    }
}

/// Reads `content`: a string, or an array of blocks.
pub(crate) fn read(
    cursor: &mut JsonCursor<'_>,
    line: &[u8],
    unknown: &mut UnknownNames,
) -> Result<Vec<Block>, json::JsonError> {
    let mut blocks = Vec::new();
    let mut left = most_memory(line.len());
    match cursor.peek() {
        Some(b'"') => {
            let span = cursor.skip()?;
            blocks.push(plain_text(span, line));
        }
        _ => {
            cursor.array(|c| {
                if c.peek() == Some(b'"') {
                    let span = c.skip()?;
                    blocks.push(plain_text(span, line));
                } else if let Some(block) = one(c, line, unknown)? {
                    blocks.push(block);
                } else {
                    return Ok(());
                }
                let memory = blocks.last().map_or(0, Block::memory);
                left = left.checked_sub(memory).ok_or(json::JsonError {
                    at: c.position(),
                    why: TOO_MANY,
                })?;
                Ok(())
            })?;
        }
    }
    Ok(blocks)
}

/// A block that stands by itself as JSON.
pub(crate) fn alone(bytes: &[u8]) -> Option<Block> {
    let mut cursor = JsonCursor::new(bytes);
    one(&mut cursor, bytes, &mut UnknownNames::default()).ok()?
}

fn plain_text(span: Span, line: &[u8]) -> Block {
    let place = ShortSpan::behind(span, 0);
    let blank = is_blank(span.of(line));
    Block {
        kind: BlockKind::Text,
        whole: place,
        inner: place,
        names: None,
        is_error: false,
        blank,
        refusal: blank.then_some(RefusalReason::EmptyText),
        print: print(span.of(line)),
    }
}

/// Fields of one block while it is read; `type` may come last.
#[derive(Default)]
struct BlockFields {
    name: Option<CompactString>,
    id: Option<CompactString>,
    result_of: Option<CompactString>,
    tool: Option<CompactString>,
    text: Option<Span>,
    thinking: Option<Span>,
    input: Option<Span>,
    content: Option<Span>,
    source: Option<Span>,
    seal: Option<Span>,
    is_error: bool,
}

fn one(
    cursor: &mut JsonCursor<'_>,
    line: &[u8],
    unknown: &mut UnknownNames,
) -> Result<Option<Block>, json::JsonError> {
    cursor.peek();
    let start = cursor.position();
    let mut parts = BlockFields::default();
    let mut odd = UnknownNames::default();
    let is_object = cursor.object(|c, key| {
        match key {
            "type" => parts.name = c.name()?,
            "id" => parts.id = c.name()?,
            "tool_use_id" => parts.result_of = c.name()?,
            "name" => parts.tool = c.name()?,
            "is_error" => parts.is_error = c.truth()?,
            "text" => parts.text = Some(c.skip()?),
            "thinking" => parts.thinking = Some(c.skip()?),
            "input" => parts.input = Some(c.skip()?),
            "content" => parts.content = Some(c.skip()?),
            "source" => parts.source = Some(c.skip()?),
            // Of one block, only one of them.
            "signature" | "data" => parts.seal = Some(c.skip()?),
            _ => {
                c.skip()?;
                if !known_names::is_block_field(key) {
                    odd.add("", key);
                }
            }
        }
        Ok(())
    })?;
    if !is_object {
        return Ok(None);
    }
    let span = Span::new(start, cursor.position());
    let block = parts.block(span, line);
    if known_names::block(block.name()).is_none() {
        unknown.add("block ", block.name());
    } else if !odd.is_empty() {
        unknown.append(&format!("block {}.", block.name()), odd);
    }
    Ok(Some(block))
}

impl BlockFields {
    fn block(self, span: Span, line: &[u8]) -> Block {
        let kind = self.name.as_deref().map_or(BlockKind::Other, BlockKind::of);
        let body = match kind {
            BlockKind::Text => self.text,
            BlockKind::Thinking => self.thinking,
            BlockKind::ToolUse | BlockKind::ServerToolUse => self.input,
            BlockKind::ToolResult => self.content,
            BlockKind::Image | BlockKind::Document => self.source,
            BlockKind::RedactedThinking | BlockKind::Other => None,
        }
        .unwrap_or_default();
        let is_call = matches!(kind, BlockKind::ToolUse | BlockKind::ServerToolUse);
        let subject = self
            .tool
            .as_deref()
            .filter(|_| is_call)
            .and_then(|tool| subject(tool, body.of(line)));
        let tool = match kind {
            BlockKind::ToolUse | BlockKind::ServerToolUse => self.tool,
            BlockKind::Other => self.name,
            _ => None,
        };
        let blank = match kind {
            BlockKind::Text | BlockKind::Thinking => is_blank(body.of(line)),
            BlockKind::ToolResult => result_items(body.of(line)).any(is_blank_text),
            _ => false,
        };
        let id = if kind == BlockKind::ToolResult {
            self.result_of
        } else {
            self.id
        };
        let refusal = refused_content::of_block(&BlockContent {
            kind,
            name: tool.as_deref(),
            id: id.as_deref(),
            tool: tool.as_deref(),
            body: body.of(line),
            seal: self.seal.unwrap_or_default().of(line),
            blank,
        });
        // Only replies are written twice; results and images are large.
        let says = !matches!(
            kind,
            BlockKind::ToolResult | BlockKind::Image | BlockKind::Document
        );
        let print = if says { print(span.of(line)) } else { 0 };
        let named = id.is_some() || tool.is_some();
        let names = named.then(|| Box::new(BlockNames { id, tool, subject }));
        Block {
            kind,
            whole: ShortSpan::behind(span, 0),
            inner: ShortSpan::behind(body, 0),
            names,
            is_error: self.is_error,
            blank,
            refusal,
            print,
        }
    }
}

/// Whether a JSON string has no visible character. Anything but a string has none.
fn is_blank(raw: &[u8]) -> bool {
    let inner = raw
        .strip_prefix(b"\"")
        .and_then(|raw| raw.strip_suffix(b"\""))
        .unwrap_or_default();
    match inner.first() {
        None => true,
        // White space may be written as an escape or in other scripts; decode to be sure.
        Some(b' ' | b'\\' | 0x80..) => json::string(raw).trim().is_empty(),
        Some(_) => false,
    }
}

/// The items of a result's content, where that is a list.
pub(crate) fn result_items(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut items = Vec::new();
    if content.first() == Some(&b'[') {
        let mut cursor = JsonCursor::new(content);
        let read = cursor.array(|c| c.skip().map(|item| items.push(item)));
        if read.is_err() {
            items.clear();
        }
    }
    items.into_iter().map(|item: Span| item.of(content))
}

/// Whether an item of a result's content is a text without a visible character.
pub(crate) fn is_blank_text(item: &[u8]) -> bool {
    let text = || json::find(item, &["text"]).map_or(&b""[..], |span| span.of(item));
    let kind = json::find(item, &["type"]).map(|span| span.of(item));
    kind == Some(b"\"text\"") && is_blank(text())
}

/// What a call is about, from its input.
pub(crate) fn subject(tool: &str, input: &[u8]) -> Option<Box<str>> {
    let mut best: Option<(usize, Span)> = None;
    let mut cursor = JsonCursor::new(input);
    let scanned = cursor.object(|c, key| {
        let rank = tool::rank(tool, key);
        c.peek();
        let is_text = input.get(c.position()) == Some(&b'"');
        let is_list = input.get(c.position()) == Some(&b'[');
        let span = c.skip()?;
        let better = rank.is_some_and(|rank| best.is_none_or(|(other, _)| rank < other));
        if better && (is_text || (is_list && tool::known(tool).is_some())) {
            best = rank.map(|rank| (rank, span));
        }
        Ok(())
    });
    scanned.ok()?;
    let raw = best?.1.of(input);
    let text = if raw.first() == Some(&b'[') {
        list_subject(raw)
    } else {
        json::string_head(raw, SUBJECT)
    };
    let text = one_line(&text);
    (!text.is_empty()).then(|| text.into())
}

/// Lists are todos and questions: their number, or the first question.
fn list_subject(raw: &[u8]) -> String {
    let first = json::find(raw, &["0", "question"]);
    if let Some(question) = first {
        return json::string_head(question.of(raw), SUBJECT);
    }
    let mut items = 0;
    let counted = JsonCursor::new(raw).array(|c| {
        items += 1;
        c.skip().map(drop)
    });
    if counted.is_err() {
        String::new()
    } else {
        format!("{items} items")
    }
}

/// Text on one line: runs of white space become one space.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(content: &str) -> Vec<Block> {
        let mut unknown = UnknownNames::default();
        read(
            &mut JsonCursor::new(content.as_bytes()),
            content.as_bytes(),
            &mut unknown,
        )
        .unwrap()
    }

    #[test]
    fn string_content_is_one_text_block() {
        let read = blocks(r#""hello""#);
        assert_eq!(
            (read.len(), read[0].kind, read[0].blank),
            (1, BlockKind::Text, false)
        );
    }

    #[test]
    fn empty_blocks_are_kept() {
        let read = blocks(
            r#"[{"type":"text","text":""},{"type":"thinking","thinking":"","signature":"s"},{"type":"tool_use","id":"t","name":"X","input":{}}]"#,
        );
        assert_eq!(read.len(), 3);
        assert!(read[0].blank && read[1].blank);
    }

    #[test]
    fn a_call_says_what_it_is_about() {
        let about = |name: &str, input: &str| {
            let content =
                format!(r#"[{{"type":"tool_use","id":"t","name":"{name}","input":{input}}}]"#);
            blocks(&content)[0].subject().map(String::from)
        };
        assert_eq!(
            about("Read", r#"{"limit":5,"file_path":"/a/b.rs"}"#).as_deref(),
            Some("/a/b.rs")
        );
        assert_eq!(
            about("Bash", r#"{"description":"List","command":"ls\n -l"}"#).as_deref(),
            Some("ls -l")
        );
        assert_eq!(
            about("Task", r#"{"prompt":"long","description":"Find it"}"#).as_deref(),
            Some("Find it")
        );
        assert_eq!(
            about("TodoWrite", r#"{"todos":[{},{}]}"#).as_deref(),
            Some("2 items")
        );
        assert_eq!(
            about(
                "AskUserQuestion",
                r#"{"questions":[{"question":"Which?"}]}"#
            )
            .as_deref(),
            Some("Which?")
        );
        assert_eq!(
            about("mcp__x__find", r#"{"n":1,"query":"q"}"#).as_deref(),
            Some("q")
        );
        assert_eq!(about("Read", "{}"), None);
    }

    #[test]
    fn whitespace_in_any_spelling_is_blank() {
        for (raw, blank) in [
            (r#""""#, true),
            (r#"" \n\t""#, true),
            (r#""\u00a0""#, true),
            (r#""　""#, true),
            (r#""\n x""#, false),
            ("null", true),
        ] {
            assert_eq!(is_blank(raw.as_bytes()), blank, "{raw}");
        }
    }
}
