//! Content that the API refuses: the one list by which it is sent otherwise (`view::strict_messages`),
//! found (`view::check`) and mended (`edit::repair`). Which names it takes says
//! [`crate::accepted_names`]; that calls and results go together, whoever pairs them.
//!
//! What a block is refused for is known when its line is read, and kept with it. What a message is
//! refused for as a whole, and what a client takes out itself before it sends, is asked of the
//! session: [`in_session`] and [`ContentSender`].

use foldhash::{HashMap, HashMapExt};

use crate::accepted_names;
use crate::block::{self, BlockKind, is_blank_text, result_items};
use crate::entry::LineKind;
use crate::fault::FaultKind;
use crate::json;
use crate::session::{BlockRecord, EntryRecord, Index, Session};
use crate::view::client_profile::{BlankThinkingRule, ClientProfile, ClientRules};

/// Why the API refuses a block or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RefusalReason {
    /// A text without a visible character, by itself or inside a result.
    EmptyText,
    /// Thinking without its text or its signature.
    UnsignedThinking,
    /// The name of a tool, or the id of a call.
    RefusedName,
    /// A call without an id, or whose input is no object.
    BadCall,
    /// A result that names no call, or whose content is something else than texts and media.
    BadResult,
    /// An image or document without its source, or a block the API does not know.
    BadBlock,
    /// A message of nothing.
    EmptyMessage,
    /// A reply of thinking and nothing else.
    ThinkingAlone,
}

impl RefusalReason {
    /// The fault that `check` tells of.
    pub fn fault(self) -> FaultKind {
        match self {
            RefusalReason::EmptyText => FaultKind::EmptyText,
            RefusalReason::UnsignedThinking => FaultKind::UnsignedThinking,
            RefusalReason::RefusedName => FaultKind::RefusedName,
            RefusalReason::BadCall => FaultKind::BadCall,
            RefusalReason::BadResult => FaultKind::BadResult,
            RefusalReason::BadBlock => FaultKind::BadBlock,
            RefusalReason::EmptyMessage => FaultKind::EmptyMessage,
            RefusalReason::ThinkingAlone => FaultKind::ThinkingAlone,
        }
    }

    /// What is refused, for a person.
    pub fn why(self) -> &'static str {
        match self {
            RefusalReason::EmptyText => "the API refuses a text without a visible character",
            RefusalReason::UnsignedThinking => "the API refuses thinking without its signature",
            RefusalReason::RefusedName => {
                "the API refuses the name of a tool or the id of its call"
            }
            RefusalReason::BadCall => {
                "the API refuses a call without an id or with an input that is no object"
            }
            RefusalReason::BadResult => {
                "the API refuses a result that names no call, or holds something else than texts and media"
            }
            RefusalReason::BadBlock => {
                "the API refuses a block that it does not know, or media without their source"
            }
            RefusalReason::EmptyMessage => "the API refuses a message of nothing",
            RefusalReason::ThinkingAlone => "the API refuses a reply of thinking alone",
        }
    }
}

/// What is known of a block when its line is read.
pub(crate) struct BlockContent<'a> {
    /// What it is.
    pub kind: BlockKind,
    /// The `type` it was written with.
    pub name: Option<&'a str>,
    /// Its id, or that of the call it answers.
    pub id: Option<&'a str>,
    /// The tool it calls.
    pub tool: Option<&'a str>,
    /// Its text, input, content or source.
    pub body: &'a [u8],
    /// Its signature, or what is sealed.
    pub seal: &'a [u8],
    /// Whether it is, or holds, a text without a visible character.
    pub blank: bool,
}

/// Blocks that the API knows, beside those with a kind of their own.
const KNOWN: [&str; 7] = [
    "compaction",
    "container_upload",
    "fallback",
    "mcp_tool_use",
    "search_result",
    "tool_addition",
    "tool_reference",
];

/// Why the API refuses a block by itself.
pub(crate) fn of_block(block: &BlockContent<'_>) -> Option<RefusalReason> {
    let is = |refused: bool, why| refused.then_some(why);
    let no_id = block.id.is_none_or(str::is_empty);
    match block.kind {
        BlockKind::Text => is(block.blank, RefusalReason::EmptyText),
        BlockKind::Thinking => is(
            block.body.first() != Some(&b'"') || !is_filled(block.seal),
            RefusalReason::UnsignedThinking,
        ),
        BlockKind::RedactedThinking => is(!is_filled(block.seal), RefusalReason::UnsignedThinking),
        BlockKind::ToolUse if no_id => Some(RefusalReason::BadCall),
        BlockKind::ToolUse => {
            let names = [block.tool, block.id];
            let mut names = names.into_iter().map(Option::unwrap_or_default);
            let bad = !names.all(accepted_names::is_name);
            let call = is(!is_object(block.body), RefusalReason::BadCall);
            is(bad, RefusalReason::RefusedName).or(call)
        }
        BlockKind::ToolResult if no_id => Some(RefusalReason::BadResult),
        BlockKind::ToolResult => {
            of_result(block.body).or_else(|| is(block.blank, RefusalReason::EmptyText))
        }
        BlockKind::Image | BlockKind::Document => {
            is(!is_object(block.body), RefusalReason::BadBlock)
        }
        // Whether it was answered, whoever pairs it looks.
        BlockKind::ServerToolUse => None,
        BlockKind::Other => is(!is_known(block.name), RefusalReason::BadBlock),
    }
}

fn is_known(name: Option<&str>) -> bool {
    name.is_some_and(|name| KNOWN.contains(&name) || name.ends_with("_tool_result"))
}

/// Why the API refuses the content of a result, other than for an empty text.
fn of_result(content: &[u8]) -> Option<RefusalReason> {
    let is_bad = |item: &[u8]| {
        let field = |name| json::find(item, &[name]).map_or(&b""[..], |span| span.of(item));
        match field("type") {
            b"\"text\"" => !is_blank_text(item) && field("text").first() != Some(&b'"'),
            b"\"image\"" | b"\"document\"" => !is_object(field("source")),
            b"\"search_result\"" | b"\"tool_reference\"" => false,
            _ => true,
        }
    };
    let bad = match content.first() {
        None | Some(b'"') => false,
        Some(b'[') => result_items(content).any(is_bad),
        Some(_) => true,
    };
    bad.then_some(RefusalReason::BadResult)
}

/// Why the API refuses a block, which stands by itself as JSON.
pub(crate) fn of_json(block: &[u8]) -> Option<RefusalReason> {
    block::alone(block)?.refusal
}

fn is_filled(text: &[u8]) -> bool {
    text.first() == Some(&b'"') && text.len() > 2
}

fn is_object(value: &[u8]) -> bool {
    value.first() == Some(&b'{')
}

/// The block in a form that the API takes; `None` where there is none, or where names are all that
/// is wrong.
pub(crate) fn accepted_form(block: &[u8], refusal: RefusalReason) -> Option<Vec<u8>> {
    match refusal {
        RefusalReason::BadCall => {
            let input = json::find(block, &["input"]).map(|span| span.of(block));
            json::with_field(block, "input", &object_of(input))
        }
        RefusalReason::BadResult => Some(result(&json::value(block)).into_bytes()),
        RefusalReason::BadBlock => {
            let note = json::quoted(&note_of(block));
            Some(format!("{{\"type\":\"text\",\"text\":{note}}}").into_bytes())
        }
        RefusalReason::EmptyText
        | RefusalReason::UnsignedThinking
        | RefusalReason::RefusedName
        | RefusalReason::EmptyMessage
        | RefusalReason::ThinkingAlone => None,
    }
}

/// The input of a call as an object: that which a text holds, or one around it.
fn object_of(input: Option<&[u8]>) -> String {
    let Some(raw) = input.filter(|raw| *raw != b"null") else {
        return "{}".to_owned();
    };
    let text = json::value(raw);
    let inner = text.as_str().and_then(|text| {
        let value: serde_json::Value = serde_json::from_str(text).ok()?;
        value.is_object().then(|| value.to_string())
    });
    inner.unwrap_or_else(|| format!("{{\"input\":{}}}", json::mended(raw)))
}

/// What is said where a block stood.
pub(crate) fn note_of(block: &[u8]) -> String {
    let kind = json::find(block, &["type"]).map(|span| json::string(span.of(block)));
    let kind = kind.filter(|kind| !kind.is_empty());
    format!("[{} block]", kind.as_deref().unwrap_or("unknown"))
}

fn has_source(value: &serde_json::Value) -> bool {
    value.get("source").is_some_and(|source| source.is_object())
}

/// A result whose content is a string, or texts, images and documents without empty ones.
pub(crate) fn result(value: &serde_json::Value) -> String {
    let mut out = serde_json::Map::new();
    out.insert("type".into(), "tool_result".into());
    out.insert(
        "tool_use_id".into(),
        value.get("tool_use_id").cloned().unwrap_or_default(),
    );
    match value.get("content") {
        Some(serde_json::Value::String(text)) => {
            drop(out.insert("content".into(), text.as_str().into()))
        }
        Some(serde_json::Value::Array(items)) => {
            let kept: Vec<_> = items.iter().filter_map(result_item).collect();
            out.insert("content".into(), kept.into());
        }
        Some(serde_json::Value::Null) | None => {}
        Some(other) => drop(out.insert("content".into(), other.to_string().into())),
    }
    if value.get("is_error") == Some(&true.into()) {
        out.insert("is_error".into(), true.into());
    }
    serde_json::Value::Object(out).to_string()
}

fn result_item(item: &serde_json::Value) -> Option<serde_json::Value> {
    let kind = item
        .get("type")
        .and_then(|kind| kind.as_str())
        .unwrap_or_default();
    match kind {
        "text" => {
            let text = item.get("text")?.as_str()?;
            (!text.trim().is_empty()).then(|| serde_json::json!({"type": "text", "text": text}))
        }
        "image" | "document" if has_source(item) => Some(item.clone()),
        _ => {
            let text = item.to_string();
            Some(serde_json::json!({"type": "text", "text": text}))
        }
    }
}

/// Something in a session that the API refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RefusedContent {
    /// The line.
    pub record: Index,
    /// The block, unless it is the line or its message as a whole.
    pub block: Option<Index>,
    /// Why.
    pub refusal: RefusalReason,
}

/// Everything that the API would refuse of the lines of a conversation, in their order.
pub(crate) fn in_session(session: &Session) -> Vec<RefusedContent> {
    let mut all = Vec::new();
    for (at, record) in session.records.iter().enumerate() {
        // What the client says of a failed request it does not send.
        if !record.is_conversation() || record.is_api_error() {
            continue;
        }
        let record_at = at as Index;
        let refused = |block, refusal| RefusedContent {
            record: record_at,
            block,
            refusal,
        };
        if record.blocks.is_empty() {
            all.push(refused(None, RefusalReason::EmptyMessage));
        }
        for block in record.blocks.clone() {
            let refusal = session.blocks[block as usize].refusal;
            all.extend(refusal.map(|refusal| refused(Some(block), refusal)));
        }
    }
    let alone = session.messages.iter().filter_map(|message| {
        let lines = message.records.iter();
        let mut blocks = lines.flat_map(|&at| session.blocks_of(&session.records[at as usize]));
        let first = blocks.next()?.kind.is_thinking();
        let alone = first && blocks.all(|block| block.kind.is_thinking());
        alone.then_some(RefusedContent {
            record: *message.records.first()?,
            block: None,
            refusal: RefusalReason::ThinkingAlone,
        })
    });
    all.extend(alone);
    all.sort_by_key(|refused| refused.record);
    all
}

/// A client that sends a session, and what it takes out of it before it does.
pub(crate) struct ContentSender<'a> {
    session: &'a Session,
    rules: ClientRules,
    /// Whether a message says something beside thinking and blank texts.
    speaking: HashMap<Index, bool>,
    is_foreign: Option<bool>,
}

impl<'a> ContentSender<'a> {
    /// The client with these rules; for our own, the newest.
    pub fn new(session: &'a Session, profile: ClientProfile) -> ContentSender<'a> {
        let profile = match profile {
            ClientProfile::Strict => ClientProfile::NEWEST,
            client => client,
        };
        ContentSender {
            session,
            rules: profile.rules(),
            speaking: HashMap::new(),
            is_foreign: None,
        }
    }

    /// Whether something that is refused would be sent.
    pub fn sends(&mut self, refused: &RefusedContent) -> bool {
        let record = &self.session.records[refused.record as usize];
        let block = refused.block;
        let block = block.map(|block| &self.session.blocks[block as usize]);
        let is_reply = record.kind == LineKind::Assistant;
        match refused.refusal {
            RefusalReason::EmptyMessage if is_reply => !self.rules.fills_empty,
            RefusalReason::EmptyMessage => self.rules.sends_empty,
            RefusalReason::ThinkingAlone => !self.rules.drops_thinking_alone,
            RefusalReason::EmptyText => match block {
                Some(block) if block.kind == BlockKind::Text && is_reply => {
                    self.sends_blank(record)
                }
                Some(block) if block.kind == BlockKind::Text => {
                    let is_bare = block.span() == block.body();
                    is_bare || !self.rules.marks_empty
                }
                _ => true,
            },
            RefusalReason::UnsignedThinking => {
                let goes = self.rules.drops_thinking_alone && !self.speaks(record);
                !goes && !self.is_foreign()
            }
            RefusalReason::BadBlock => {
                let is_fallback = block.is_some_and(|block| {
                    block.kind == BlockKind::Other
                        && self.session.tool_of(block) == Some("fallback")
                });
                !(is_fallback && self.rules.drops_fallbacks)
            }
            RefusalReason::RefusedName | RefusalReason::BadCall | RefusalReason::BadResult => true,
        }
    }

    /// Whether a blank text in a line of a reply is sent.
    fn sends_blank(&mut self, record: &EntryRecord) -> bool {
        let blank = |block: &BlockRecord| block.kind == BlockKind::Text && block.blank;
        let blocks = self.session.blocks_of(record);
        if !self.rules.drops_blank {
            return true;
        }
        if blocks.iter().all(blank) {
            let empty = |block: &BlockRecord| block.body().len <= 2;
            return self.rules.keeps_blank && blocks.iter().all(empty) && self.speaks(record);
        }
        let drops = self.rules.blank_thinking != BlankThinkingRule::Sent;
        !drops || self.speaks(record)
    }

    /// Whether the message of a line says something beside thinking and blank texts.
    fn speaks(&mut self, record: &EntryRecord) -> bool {
        let session = self.session;
        let Some(at) = record.message() else {
            return says(session, record);
        };
        *self.speaking.entry(at).or_insert_with(|| {
            let mut lines = session.messages[at as usize].records.iter();
            lines.any(|&line| says(session, &session.records[line as usize]))
        })
    }

    /// Whether no model of Anthropic's was ever asked: who answers then does not sign.
    pub fn is_foreign(&mut self) -> bool {
        let session = self.session;
        *self.is_foreign.get_or_insert_with(|| {
            let models = session.records.iter().filter_map(EntryRecord::model);
            let mut models = models
                .map(|model| session.text(model))
                .filter(|name| !name.is_empty() && *name != "<synthetic>")
                .peekable();
            let own = ["claude", "opus", "sonnet", "haiku", "fable"];
            models.peek().is_some() && models.all(|name| !own.iter().any(|it| name.contains(it)))
        })
    }
}

fn says(session: &Session, record: &EntryRecord) -> bool {
    let mut blocks = session.blocks_of(record).iter();
    blocks.any(|block| {
        let is_blank = block.kind == BlockKind::Text && block.blank;
        !block.kind.is_thinking() && !is_blank
    })
}
