//! A decoded line: the few things the fold needs, read in one pass over the bytes.
//!
//! This file and its neighbours `block`, `input` and `known` are the only ones that know the
//! names in the format. Unknown is normal: a type or field nobody has described is kept,
//! counted and shown; teaching the program a new kind is one variant and one arm here.
//! Payloads stay in the file; an entry says where.

pub mod failure;
pub mod notice;
mod read;
pub mod reply;

use std::borrow::Cow;

use compact_str::CompactString;

use crate::block::{self, Block, BlockKind, ContentBlock};
use crate::entry::failure::ApiFailure;
use crate::entry::notice::agent_named_in;
pub use crate::entry::notice::{AgentClue, ClueSource, TaskNotice};
use crate::fault::{FaultKind, NULL_LINE};
use crate::id::Id;
use crate::json::{self, Span};
use crate::log::{LONGEST_LINE, Line};
use crate::secrets::SecretFinder;
use crate::time::Time;
use crate::usage::{PricingTerms, Usage};
use crate::user_input::{InputKinds, UserInput};

/// What a line is; what it says beside that is its [`LineDetail`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// A prompt, a tool result, or something written for the model.
    User,
    /// A piece of a reply.
    Assistant,
    /// A compaction: what went before is no longer sent.
    CompactBoundary,
    /// A small one: only old tool results were cleared.
    MicroBoundary,
    /// The turn before it is over.
    TurnDuration,
    /// The turn before it is over; hooks ran.
    StopHookSummary,
    /// A slash command that ran in the client.
    LocalCommand,
    /// The API failed; the client may try again.
    ApiError,
    /// Any other system line.
    System,
    /// Something going on, such as the output of a running command. A link of the chain.
    Progress,
    /// Something given to the model beside the prompt. A link of the chain.
    Attachment,
    /// A prompt that was typed while the model worked (2.1.105 and later).
    QueuedCommand,
    /// The queue of prompts changed.
    Queue,
    /// A title for the session whose leaf it names, usually another one.
    Summary,
    /// A title for this session.
    Title,
    /// Which line the conversation goes on from (2.1.200 and later).
    LastPrompt,
    /// The permission mode from here on.
    PermissionMode,
    /// A pull request made in this session.
    PrLink,
    /// Backups of files, for rewinding.
    FileHistory,
    /// Known bookkeeping that needs no more than counting.
    Bookkeeping,
    /// Never seen before.
    Unknown,
}

impl LineKind {
    /// Whether everything before such a line was summarised.
    pub fn is_boundary(self) -> bool {
        self == LineKind::CompactBoundary
    }

    /// Whether such a line tells of a compaction, large or small.
    pub fn compacts(self) -> bool {
        matches!(self, LineKind::CompactBoundary | LineKind::MicroBoundary)
    }

    /// Whether every client has lines of this kind in its chain. Whether progress is a link
    /// differs between them.
    pub fn is_link(self) -> bool {
        match self {
            LineKind::User
            | LineKind::Assistant
            | LineKind::CompactBoundary
            | LineKind::MicroBoundary
            | LineKind::TurnDuration
            | LineKind::StopHookSummary
            | LineKind::LocalCommand
            | LineKind::ApiError
            | LineKind::System
            | LineKind::Attachment
            | LineKind::QueuedCommand => true,
            LineKind::Progress
            | LineKind::Queue
            | LineKind::Summary
            | LineKind::Title
            | LineKind::LastPrompt
            | LineKind::PermissionMode
            | LineKind::PrLink
            | LineKind::FileHistory
            | LineKind::Bookkeeping
            | LineKind::Unknown => false,
        }
    }
}

/// What a line of some kinds says beside what it is. Most lines have none.
#[derive(Clone, Debug, PartialEq)]
pub enum LineDetail {
    /// What a compaction says, of either kind.
    Boundary(Box<CompactBoundary>),
    /// How long the turn took, in milliseconds.
    Duration(u32),
    /// A prompt that was typed while the model worked.
    Queued {
        /// Whether a person typed it.
        human: bool,
        /// What was typed.
        text: CompactString,
    },
    /// What became of the queue of prompts.
    Queue {
        /// How it changed.
        operation: QueueOperation,
        /// What was typed, if the line says.
        text: Option<CompactString>,
    },
    /// A title, usually for another session.
    Summary(Box<SummaryTitle>),
    /// A title for this session.
    Title {
        /// Who gave it.
        source: TitleSource,
        /// The title.
        text: CompactString,
    },
    /// Which line the conversation goes on from.
    LastPrompt {
        /// That line.
        leaf: Option<Id>,
        /// Whether it counts even if the last line descends from it: a rewind.
        explicit: bool,
    },
    /// The address of a pull request.
    PrLink(CompactString),
    /// A tag for this session; empty where it is taken off.
    Tag(CompactString),
}

/// Who gave a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TitleSource {
    /// The name of the agent.
    AgentName,
    /// The model.
    Ai,
    /// The person.
    Custom,
}

impl TitleSource {
    /// All, those that count more first.
    pub const ALL: [TitleSource; 3] =
        [TitleSource::Custom, TitleSource::Ai, TitleSource::AgentName];
}

/// What happened to the queue of prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOperation {
    /// One was added at the end.
    Enqueue,
    /// The first became a prompt.
    Dequeue,
    /// One was given to the model on the way.
    Remove,
    /// All were taken back.
    PopAll,
    /// Something nobody has described.
    Other,
}

impl QueueOperation {
    fn of(name: &str) -> QueueOperation {
        match name {
            "enqueue" => QueueOperation::Enqueue,
            "dequeue" => QueueOperation::Dequeue,
            "remove" => QueueOperation::Remove,
            "popAll" => QueueOperation::PopAll,
            _ => QueueOperation::Other,
        }
    }
}

/// A title for another session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummaryTitle {
    /// The title.
    pub text: String,
    /// A line of the session it titles.
    pub leaf: Option<Id>,
}

/// What a compaction line says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompactBoundary {
    /// `manual` or `auto`.
    pub trigger: Option<Box<str>>,
    /// Tokens before.
    pub before: Option<u64>,
    /// Tokens after.
    pub after: Option<u64>,
    /// Lines before the boundary that are still sent, in order.
    pub preserved: Vec<Id>,
    /// The first and last of those lines, where only these are named.
    pub segment: Option<(Id, Id)>,
    /// The line they follow.
    pub anchor: Option<Id>,
}

/// The parent a line names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ParentId {
    /// The line has no such field.
    #[default]
    Absent,
    /// `null`: the line is a root.
    Null,
    /// The line with this id.
    Is(Id),
}

impl ParentId {
    /// The id, if one is named.
    pub fn id(&self) -> Option<&Id> {
        match self {
            ParentId::Is(id) => Some(id),
            ParentId::Absent | ParentId::Null => None,
        }
    }
}

/// The `message` of a line, without its content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageHead {
    /// The id that the lines of one message share.
    pub id: Option<Box<str>>,
    /// The model, `<synthetic>` when the client wrote it.
    pub model: Option<Box<str>>,
    /// Tokens, if the line says.
    pub usage: Option<Usage>,
    /// What else decides the price.
    pub terms: PricingTerms,
    /// Why the model stopped; a hint at most.
    pub stop: Option<CompactString>,
    time: Option<Time>,
}

/// A decoded line, or one of several objects on a line.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The object in its line.
    pub span: Span,
    /// What it is.
    pub kind: LineKind,
    /// What it says beside that.
    pub detail: Option<LineDetail>,
    /// `type`, with its subtype behind a slash.
    pub label: Cow<'static, str>,
    /// The id of the line.
    pub uuid: Option<Id>,
    /// The line it follows.
    pub parent: ParentId,
    /// The line a compaction follows.
    pub logical_parent: Option<Id>,
    /// The session the line says it belongs to; the file knows better.
    pub session: Option<Id>,
    /// When it was written.
    pub at: Option<Time>,
    /// A time that could not be read.
    pub bad_time: Option<String>,
    /// Working directory.
    pub cwd: Option<Box<str>>,
    /// Version of the client.
    pub version: Option<CompactString>,
    /// Branch of git.
    pub branch: Option<CompactString>,
    /// Three words that name the session.
    pub slug: Option<CompactString>,
    /// Permission mode of a prompt.
    pub permission_mode: Option<CompactString>,
    /// How the client was started.
    pub entrypoint: Option<CompactString>,
    /// The sub-agent the line belongs to.
    pub agent: Option<CompactString>,
    /// The session this one was forked from.
    pub forked_from: Option<Id>,
    /// The session that asked for a reply, where that is another one: the line was copied.
    pub asked_by: Option<Id>,
    /// The team the line belongs to.
    pub team: Option<CompactString>,
    /// The teammate who wrote it.
    pub member: Option<CompactString>,
    /// What kind of process wrote it.
    pub process: Option<CompactString>,
    /// The call that an inserted line belongs to.
    pub source_call: Option<Box<str>>,
    /// Belongs to a sub-agent.
    pub sidechain: bool,
    /// Written by the program for the model.
    pub meta: bool,
    /// Reports an API error in the form of a reply.
    pub api_error: bool,
    /// Hooks failed or blocked on this line.
    pub trouble: bool,
    /// The line has no `type`; it goes by the role of its message.
    pub untyped: bool,
    /// Its content stands at the top of the line, in no message.
    pub content_on_top: bool,
    /// Where the line comes from, if it says: `human`, `task-notification`, `peer` …
    pub origin: Option<Box<str>>,
    /// The message head.
    pub message: MessageHead,
    /// Pieces of content.
    pub blocks: Vec<Block>,
    /// What a user line is.
    pub input: UserInput,
    /// Kinds of input on a user line.
    pub input_kinds: InputKinds,
    /// The first 500 characters of visible text of a reply or prompt.
    pub head: Option<String>,
    /// The heading of a plan that was handed over, if it stands behind the head.
    pub heading: Option<Box<str>>,
    /// The sub-agent that a tool result names.
    pub result_agent: Option<Box<str>>,
    /// The status that a tool result names.
    pub result_status: Option<Box<str>>,
    /// The task in the background that a tool result names.
    pub result_task: Option<Box<str>>,
    /// The workflow run that a tool result names.
    pub result_run: Option<Box<str>>,
    /// What the line says about which call started which sub-agent, beside its structured result.
    pub clues: Vec<AgentClue>,
    /// What a failure of the API says.
    pub failure: Option<Box<ApiFailure>>,
    /// What a line tells about tasks in the background.
    pub notices: Vec<TaskNotice>,
    /// A copy of a sub-agent's message inside a progress line.
    pub copy: Option<MessageHead>,
    /// Types and fields never seen before, at most [`MOST_UNKNOWN`](crate::known_names::MOST_UNKNOWN).
    pub unknown: Vec<String>,
    /// How many more of them there were.
    pub unknown_others: u32,
}

/// Whether a task in the background with this status is over.
pub(crate) fn is_over(status: &str) -> bool {
    !matches!(
        status,
        "running" | "pending" | "in_progress" | "async_launched"
    )
}

/// What a line holds: usually one entry and no fault.
#[derive(Clone, Debug, Default)]
pub struct DecodedLine {
    /// The objects on the line.
    pub entries: Vec<Entry>,
    /// What was wrong with it.
    pub faults: Vec<(FaultKind, String)>,
}

/// How much visible text of a reply or prompt is kept.
pub const HEAD: usize = 500;

impl DecodedLine {
    /// A line of which nothing was decoded, because of its size.
    pub fn too_long(bytes: u64) -> DecodedLine {
        DecodedLine::refused(format!("{} long; not decoded", rounded(bytes)))
    }

    /// Whether something of this kind is wrong with it.
    pub fn has(&self, kind: FaultKind) -> bool {
        self.faults.iter().any(|(known, _)| *known == kind)
    }

    fn refused(why: String) -> DecodedLine {
        DecodedLine {
            entries: Vec::new(),
            faults: vec![(FaultKind::TooLong, why)],
        }
    }
}

/// A number of bytes for a person: `67.1 MB`, `1.1 GB`.
fn rounded(bytes: u64) -> String {
    let (unit, size) = match bytes {
        0..1_000_000 => ("kB", 1_000),
        1_000_000..1_000_000_000 => ("MB", 1_000_000),
        _ => ("GB", 1_000_000_000),
    };
    format!("{:.1} {unit}", bytes as f64 / f64::from(size))
}

/// Reads a line whose bytes may have been passed over.
pub fn decode_line(line: &Line<'_>) -> DecodedLine {
    match line.is_omitted() {
        true => DecodedLine::too_long(line.length()),
        false => decode(line.bytes),
    }
}

/// The ids of the objects of a line, each as its session knows it; `None` for one without an id.
pub fn ids(line: &[u8]) -> Vec<Option<Id>> {
    let entries = decode(line).entries.into_iter();
    entries.map(|entry| entry.uuid).collect()
}

/// Reads a line. Never fails: what cannot be read becomes a fault.
pub fn decode(line: &[u8]) -> DecodedLine {
    if line.len() > LONGEST_LINE {
        return DecodedLine::too_long(line.len() as u64);
    }
    let mut decoded = DecodedLine::default();
    let mut at = 0;
    if line.starts_with(b"\xef\xbb\xbf") {
        at = 3;
        decoded.faults.push((
            FaultKind::ByteOrderMark,
            "the file begins with a byte order mark".into(),
        ));
    }
    let text = simdutf8::basic::from_utf8(line).ok();
    let blank = |rest: &[u8]| rest.iter().all(|byte| byte.is_ascii_whitespace());
    if !blank(&line[at..])
        && line[at..]
            .iter()
            .all(|&byte| byte == 0 || byte.is_ascii_whitespace())
    {
        decoded
            .faults
            .push((FaultKind::Unreadable, "nothing but NUL bytes".into()));
        return decoded;
    }
    while !blank(&line[at..]) {
        match read::object(line, text, at) {
            Ok((entry, end, control)) => {
                if decoded.entries.len() >= most_objects(line.len()) {
                    let why = format!("more than {} objects; not decoded", decoded.entries.len());
                    return DecodedLine::refused(why);
                }
                // Room for one: growing by itself, a list begins with room for four.
                decoded.entries.reserve_exact(1);
                decoded.entries.extend(entry);
                at = end;
                if control && !decoded.has(FaultKind::ControlCharacter) {
                    let why = "a raw control character in a string; clients reject this line";
                    decoded
                        .faults
                        .push((FaultKind::ControlCharacter, why.into()));
                }
            }
            Err(bad) if bad.why == block::TOO_MANY => {
                return DecodedLine::refused(format!("{}; not decoded", bad.why));
            }
            Err(bad) => {
                decoded.faults.push((
                    FaultKind::Unreadable,
                    format!("{} (byte {})", bad.why, bad.at + 1),
                ));
                break;
            }
        }
    }
    judge(line, text.is_some(), &mut decoded);
    decoded
}

/// How many objects a line of so many bytes may have: any number of ordinary ones, and not so
/// many empty ones that they take many times the memory of their line.
fn most_objects(bytes: usize) -> usize {
    /// About what an entry takes.
    const ENTRY: usize = size_of::<Entry>();
    10_000.max(bytes / ENTRY)
}

fn judge(line: &[u8], is_utf8: bool, decoded: &mut DecodedLine) {
    if decoded.entries.len() > 1 {
        let why = format!("{} objects on one line", decoded.entries.len());
        decoded.faults.push((FaultKind::Glued, why));
    }
    let speaks = |entry: &Entry| matches!(entry.kind, LineKind::User | LineKind::Assistant);
    if memchr::memmem::find(line, b"\\ud").is_some()
        && decoded.entries.iter().any(speaks)
        && json::has_lone_surrogate(line)
    {
        let why = "a lone surrogate; the API rejects it";
        decoded.faults.push((FaultKind::LoneSurrogate, why.into()));
    }
    if !is_utf8 && !decoded.entries.is_empty() {
        decoded
            .faults
            .push((FaultKind::NotUtf8, "bytes that are not UTF-8".into()));
    }
    let nothing_read = decoded.entries.is_empty()
        && decoded
            .faults
            .iter()
            .all(|(kind, _)| *kind == FaultKind::ByteOrderMark);
    if nothing_read && !line.iter().all(u8::is_ascii_whitespace) {
        let why = match line.trim_ascii() {
            b"null" => NULL_LINE,
            _ => "JSON, but not an object",
        };
        decoded.faults.push((FaultKind::NotAnObject, why.into()));
    }
    for entry in &mut decoded.entries {
        if let Some(text) = entry.bad_time.take() {
            decoded
                .faults
                .push((FaultKind::BadTime, format!("`{text}` is not a time")));
        }
    }
}

/// The text blocks, one below the other.
pub(crate) fn text_of<'a, B: ContentBlock>(blocks: &[B], line: &'a [u8]) -> Cow<'a, str> {
    let mut texts = blocks
        .iter()
        .filter(|block| block.kind() == BlockKind::Text)
        .map(|block| json::string(block.body().of(line)));
    // Nearly always there is one, and it may be long.
    let Some(first) = texts.next() else {
        return Cow::Borrowed("");
    };
    let Some(second) = texts.next() else {
        return first;
    };
    let mut out = first.into_owned();
    for text in std::iter::once(second).chain(texts) {
        // What is empty stands at the start alone.
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&text);
    }
    Cow::Owned(out)
}

/// What stands for a prompt without words.
pub(crate) fn media_note<B: ContentBlock>(blocks: &[B]) -> String {
    let count = |kind| blocks.iter().filter(|block| block.kind() == kind).count();
    match (count(BlockKind::Image), count(BlockKind::Document)) {
        (0, 0) => String::new(),
        (1, 0) => "[image]".to_owned(),
        (0, 1) => "[document]".to_owned(),
        (images, 0) => format!("[{images} images]"),
        (0, documents) => format!("[{documents} documents]"),
        (images, documents) => format!("[{} attachments]", images + documents),
    }
}

/// At most `limit` characters; less where that would cut a secret in two, whose half nobody
/// could recognise later.
pub fn clip(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    match text.char_indices().nth(limit) {
        Some((end, _)) => text[..before_secret(text, end)].to_owned(),
        None => text.to_owned(),
    }
}

/// Where to cut: here, or at the start of the secret that reaches beyond this.
fn before_secret(text: &str, end: usize) -> usize {
    /// Words are shorter, secrets longer.
    const WORD: usize = 12;
    /// How much of the text around the cut is looked at.
    const AROUND: usize = 2048;
    let bytes = text.as_bytes();
    let before = bytes[..end].iter().rev();
    let before = before
        .take(AROUND)
        .take_while(|byte| byte.is_ascii_graphic())
        .count();
    let behind = bytes[end..].iter();
    let behind = behind
        .take(AROUND)
        .take_while(|byte| byte.is_ascii_graphic())
        .count();
    if behind == 0 || before + behind < WORD {
        return end;
    }
    let mut start = end.saturating_sub(AROUND);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let mut until = text.len().min(end + AROUND);
    while !text.is_char_boundary(until) {
        until -= 1;
    }
    let secrets = SecretFinder::standard().find(&text[start..until]);
    let ranges = secrets
        .into_iter()
        .map(|secret| start + secret.range.start..start + secret.range.end);
    ranges
        .filter(|range| range.start < end && range.end > end)
        .map(|range| range.start)
        .min()
        .unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_cut_in_two() {
        let token = format!("ghp_{}", "x7Qa9ZpLm2Rt4VbN8cKd3Wf6HsJy1Tg5Ue0i");
        let text = format!("use {token} now");
        assert_eq!(clip(&text, 20), "use ");
        assert_eq!(clip(&text, 44), format!("use {token}"));
        assert_eq!(clip(&text, 3), "use");
        assert_eq!(clip(&"a".repeat(300), 200), "a".repeat(200));
    }

    fn only(line: &str) -> Entry {
        let mut decoded = decode(line.as_bytes());
        assert_eq!(decoded.entries.len(), 1, "{:?}", decoded.faults);
        decoded.entries.remove(0)
    }

    fn faults(line: &[u8]) -> Vec<&'static str> {
        decode(line)
            .faults
            .iter()
            .map(|(kind, _)| kind.name())
            .collect()
    }

    #[test]
    fn a_line_without_a_type_goes_by_the_role_of_its_message() {
        let entry = only(
            r#"{"message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"hi"}],"timestamp":"2025-01-15T10:00:05Z"}}"#,
        );
        assert_eq!(
            (entry.kind, entry.head.as_deref()),
            (LineKind::Assistant, Some("hi"))
        );
        assert_eq!(entry.at, Time::parse("2025-01-15T10:00:05Z"));
    }

    #[test]
    fn content_at_the_top_of_a_line_is_read() {
        let entry = only(
            r#"{"sessionId":"abc-123","type":"user","timestamp":"2025-01-15T10:00:00Z","content":"hello"}"#,
        );
        assert_eq!(
            (entry.input, entry.head.as_deref()),
            (UserInput::Prompt, Some("hello"))
        );
        let result = only(
            r#"{"type":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}"#,
        );
        assert_eq!(result.input, UserInput::Results);
    }

    #[test]
    fn content_inside_the_message_counts_before_content_at_the_top() {
        let entry = only(
            r#"{"type":"user","content":"outer","message":{"role":"user","content":"inner"}}"#,
        );
        assert_eq!(entry.head.as_deref(), Some("inner"));
    }

    #[test]
    fn the_last_of_two_equal_keys_counts() {
        let entry = only(
            r#"{"type":"user","uuid":"a","uuid":"b","message":{"role":"user","content":"x"}}"#,
        );
        assert_eq!(entry.uuid, Some(Id::new("b")));
    }

    #[test]
    fn a_field_of_the_wrong_type_is_no_reason_to_lose_the_line() {
        let entry = only(
            r#"{"type":"assistant","uuid":5,"timestamp":1e999,"message":{"id":[],"content":{"a":1},"usage":"x"}}"#,
        );
        assert_eq!(
            (entry.uuid, entry.at, entry.message.usage),
            (None, None, None)
        );
    }

    #[test]
    fn unreadable_lines_are_faults_with_a_reason() {
        assert_eq!(faults(b"{\"a\":"), ["unreadable"]);
        assert_eq!(faults(b"// comment"), ["unreadable"]);
        assert_eq!(faults(b"\0\0\0"), ["unreadable"]);
        assert_eq!(faults(b"[1]"), ["not_an_object"]);
        assert_eq!(faults(b"  \r"), Vec::<&str>::new());
        assert_eq!(
            faults(b"{\"type\":\"user\",\"x\":\"\x01\"}"),
            ["control_character"]
        );
        assert_eq!(
            faults(b"{\"type\":\"user\",\"cwd\":\"\xff\"}"),
            ["not_utf8"]
        );
        assert_eq!(
            faults(b"{\"type\":\"mode\",\"timestamp\":\"soon\"}"),
            ["bad_time"]
        );
    }

    #[test]
    fn two_objects_on_one_line_are_both_read() {
        let decoded = decode(br#"{"type":"user","message":{"role":"user","content":"x"}}{"type":"summary","summary":"S","leafUuid":"l"}"#);
        assert_eq!(decoded.entries.len(), 2);
        assert_eq!(decoded.faults[0].0, FaultKind::Glued);
        assert!(
            matches!(&decoded.entries[1].detail, Some(LineDetail::Summary(summary)) if summary.text == "S")
        );
    }

    #[test]
    fn a_byte_order_mark_and_a_carriage_return_do_not_hide_the_line() {
        let decoded = decode("\u{feff}{\"type\":\"mode\"}\r".as_bytes());
        assert_eq!((decoded.entries.len(), decoded.faults.len()), (1, 1));
    }

    #[test]
    fn cache_writes_without_a_split_count_as_five_minutes() {
        let usage = |json: &str| {
            only(&format!(
                r#"{{"type":"assistant","message":{{"role":"assistant","usage":{json}}}}}"#
            ))
            .message
            .usage
            .unwrap()
        };
        assert_eq!(
            usage(r#"{"cache_creation_input_tokens":7}"#).cache_write_5m,
            7
        );
        let split = usage(
            r#"{"cache_creation_input_tokens":7,"cache_creation":{"ephemeral_1h_input_tokens":5,"ephemeral_5m_input_tokens":2}}"#,
        );
        assert_eq!((split.cache_write_5m, split.cache_write_1h), (2, 5));
    }

    #[test]
    fn of_very_many_unknown_names_the_rest_is_counted() {
        let fields: String = (0..5000).map(|n| format!(r#""k{n}":1,"#)).collect();
        let long = "l".repeat(10_000);
        for line in [
            format!(r#"{{{fields}"type":"user"}}"#),
            format!(r#"{{"type":"user","message":{{{fields}"role":"user"}}}}"#),
            format!(r#"{{"type":"user","message":{{"content":[{{{fields}"type":"text"}}]}}}}"#),
        ] {
            let entry = only(&line);
            assert_eq!((entry.unknown.len(), entry.unknown_others), (1000, 4000));
        }
        let entry = only(&format!(r#"{{"type":"user","{long}":1}}"#));
        assert!(entry.unknown[0].len() < 300, "{}", entry.unknown[0].len());
    }

    #[test]
    fn a_text_that_was_spread_into_its_characters_is_one_unknown_name() {
        let text: String = (0..14_000).map(|n| format!(r#""{n}":"x","#)).collect();
        let entry = only(&format!(
            r#"{{"type":"user","message":{{{text}"role":"user"}}}}"#
        ));
        assert_eq!(entry.unknown, ["field message.<number>"]);
        assert_eq!(entry.unknown_others, 0);
    }

    #[test]
    fn a_line_above_the_limit_is_not_decoded_and_says_how_long_it_is() {
        let mut line = vec![b' '; LONGEST_LINE + 1];
        line[0] = b'{';
        let decoded = decode(&line);
        let why = "68.2 MB long; not decoded".to_owned();
        assert_eq!(decoded.faults, [(FaultKind::TooLong, why)]);
        assert_eq!(
            DecodedLine::too_long(1 << 30).faults[0].1,
            "1.1 GB long; not decoded"
        );
    }

    #[test]
    fn a_line_of_very_many_objects_or_blocks_is_not_decoded() {
        let glued = "{}".repeat(20_000);
        assert_eq!(faults(glued.as_bytes()), ["too_long"]);
        assert_eq!(faults("{}".repeat(5_000).as_bytes()), ["glued"]);
        let said = |blocks: &str| {
            format!(r#"{{"type":"assistant","message":{{"content":[{blocks}{{}}]}}}}"#)
        };
        assert_eq!(
            faults(said(&"{},".repeat(1_000_000)).as_bytes()),
            ["too_long"]
        );
        let text = r#"{"type":"text","text":"a"},"#;
        let entry = only(&said(&text.repeat(400_000)));
        assert_eq!(entry.blocks.len(), 400_001);
    }

    #[test]
    fn a_name_of_many_kilobytes_is_none() {
        let long = "n".repeat(5_000);
        let entry = only(&format!(
            r#"{{"type":"user","uuid":"{long}","cwd":"{long}","agentId":"{long}","sessionId":"s"}}"#
        ));
        assert_eq!((entry.uuid, entry.cwd, entry.agent), (None, None, None));
        assert_eq!(entry.session, Some(Id::new("s")));
    }

    #[test]
    fn what_was_never_seen_is_named() {
        let entry = only(r#"{"type":"hologram","beam":1}"#);
        assert_eq!(
            (entry.kind, entry.unknown),
            (
                LineKind::Unknown,
                vec!["field beam".to_owned(), "type hologram".to_owned()]
            )
        );
        for (line, name) in [
            (
                r#"{"type":"file-history-snapshot","snapshot":{"messageId":"a","hasUntrackedChanges":true,"beam":1}}"#,
                "field snapshot.beam",
            ),
            (
                r#"{"type":"attachment","attachment":{"type":"file","filename":"a","beam":{"x":1}}}"#,
                "field attachment.beam",
            ),
            (
                r#"{"type":"assistant","message":{"usage":{"input_tokens":1,"beam":1},"service_tier":"x"}}"#,
                "field message.usage.beam",
            ),
            (
                r#"{"type":"assistant","message":{"usage":{"server_tool_use":{"beam":1}}}}"#,
                "field message.usage.server_tool_use.beam",
            ),
            (
                r#"{"type":"system","subtype":"compact_boundary","compactMetadata":{"preTokens":1,"beam":1}}"#,
                "field compactMetadata.beam",
            ),
            (
                r#"{"type":"user","origin":{"kind":"human","beam":1},"toolUseResult":{"any":1}}"#,
                "field origin.beam",
            ),
        ] {
            assert_eq!(only(line).unknown, [name]);
        }
        let entry = only(r#"{"type":"system","subtype":"new_thing"}"#);
        assert_eq!(entry.unknown, ["type system/new_thing"]);
        let entry = only(
            r#"{"type":"assistant","message":{"content":[{"type":"song","x":1},{"type":"text","text":"a","tune":2}]}}"#,
        );
        assert_eq!(entry.unknown, ["block song", "block text.tune"]);
    }
}
