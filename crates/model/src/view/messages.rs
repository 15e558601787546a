//! The Messages-API array that a client would send when it resumes the session.
//!
//! First the chain: which lines are live, in which order (`client`, and `own` for our own
//! rules; `walk` and `siblings` are steps of it). Then the messages: what each line says
//! (`speech`), what of it is sent (`assemble`), which lines are one message (`join`), calls
//! and results brought together (`pair`). Reminders that the client makes anew on every start are not part of the
//! conversation and are left out.

mod ancestor_walk;
mod assemble;
mod call_pairing;
mod client_lines;
pub(crate) mod line_content;
mod message_joining;
mod own_lines;
mod parallel_calls;

use crate::block::BlockKind;
use crate::entry::LineKind;
use crate::graph;
use crate::json;
use crate::log::TranscriptSource;
use crate::session::{BlockRecord, Index, Session};
use crate::view::client_profile::{ClientProfile, ClientRules};
use crate::view::strict_messages;

/// What resuming would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumeResult {
    /// These messages would be sent ahead of the next prompt.
    Messages(Vec<ApiMessage>),
    /// The client would say that there is no conversation.
    NoConversation,
    /// The client would never come back.
    Hangs,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRole {
    /// The person, and the tools.
    User,
    /// The model.
    Assistant,
}

impl MessageRole {
    /// The role on the wire.
    pub fn name(self) -> &'static str {
        match self {
            MessageRole::User => "user",
            MessageRole::Assistant => "assistant",
        }
    }
}

/// One message of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiMessage {
    /// Who speaks.
    pub role: MessageRole,
    /// Its blocks, in order.
    pub content: Vec<ApiBlock>,
}

/// What a block of the request is, as far as the rules ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiBlockKind {
    /// Text.
    Text,
    /// Thinking, readable or not.
    Thinking,
    /// A call.
    Call,
    /// A result.
    Result,
    /// Anything else.
    Other,
}

/// One block of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiBlock {
    /// What it is.
    pub kind: ApiBlockKind,
    /// The call it makes or answers.
    pub call: Option<Box<str>>,
    /// Text without a visible character.
    pub blank: bool,
    /// Text of no length.
    pub empty: bool,
    /// The content was this one string, not a list of blocks.
    pub bare: bool,
    /// A result that reports a failure.
    pub is_error: bool,
    /// The block as JSON.
    pub json: String,
    /// The line it comes from; `None` for what the client puts in.
    pub record: Option<Index>,
}

/// The messages that the client of `profile` would send.
pub fn messages(
    session: &Session,
    source: &dyn TranscriptSource,
    profile: ClientProfile,
) -> ResumeResult {
    let rules = profile.rules();
    match outcome(session, profile) {
        LiveLines::Lines(lines) if profile == ClientProfile::Strict => {
            let drafts = assemble::assemble_own(session, source, &lines, &rules);
            let accepted = strict_messages::accepted(drafts);
            // The API takes no empty request.
            if accepted.is_empty() {
                ResumeResult::NoConversation
            } else {
                ResumeResult::Messages(accepted)
            }
        }
        outcome => of_client(session, source, outcome, &rules),
    }
}

/// The messages that a client with these rules would send.
pub fn by_rules(
    session: &Session,
    source: &dyn TranscriptSource,
    rules: &ClientRules,
) -> ResumeResult {
    let outcome = client_lines::chain(session, rules, None);
    of_client(session, source, outcome, rules)
}

fn of_client(
    session: &Session,
    source: &dyn TranscriptSource,
    outcome: LiveLines,
    rules: &ClientRules,
) -> ResumeResult {
    match outcome {
        LiveLines::Lines(lines) if rules.brittle && lacks_content(session, source, &lines) => {
            ResumeResult::NoConversation
        }
        LiveLines::Lines(lines)
            if rules.refuses_string_replies && has_string_reply(session, &lines) =>
        {
            ResumeResult::NoConversation
        }
        LiveLines::Lines(lines) => {
            ResumeResult::Messages(assemble::assemble(session, source, &lines, rules))
        }
        LiveLines::None => ResumeResult::NoConversation,
        LiveLines::Hangs => ResumeResult::Hangs,
    }
}

/// Whether one of the lines has no content.
fn lacks_content(session: &Session, source: &dyn TranscriptSource, lines: &[Index]) -> bool {
    lines.iter().any(|&at| {
        let record = &session.records[at as usize];
        let speaks = matches!(record.kind, LineKind::User | LineKind::Assistant);
        speaks && session.blocks_of(record).is_empty() && {
            let bytes = session.bytes_of(source, record);
            let content = json::find(&bytes, &["message", "content"]);
            content.is_none_or(|span| !matches!(span.of(&bytes).first(), Some(b'[' | b'"')))
        }
    })
}

/// Whether one of the lines is a reply that is one string.
fn has_string_reply(session: &Session, lines: &[Index]) -> bool {
    lines.iter().any(|&at| {
        let record = &session.records[at as usize];
        let first = session.blocks_of(record).first();
        let is_string =
            |block: &BlockRecord| block.kind == BlockKind::Text && block.span() == block.body();
        record.kind == LineKind::Assistant && first.is_some_and(is_string)
    })
}

/// The lines a client would build its messages from, or why there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveLines {
    /// These lines, in the order they are read.
    Lines(Vec<Index>),
    /// It would find no conversation.
    None,
    /// It would never come back.
    Hangs,
}

impl LiveLines {
    /// The lines; none where there is no conversation.
    pub fn lines(self) -> Vec<Index> {
        match self {
            LiveLines::Lines(lines) => lines,
            LiveLines::None | LiveLines::Hangs => Vec::new(),
        }
    }
}

/// What the client of `profile` would make of the lines.
pub fn outcome(session: &Session, profile: ClientProfile) -> LiveLines {
    match profile {
        ClientProfile::Strict => own_lines::chain(session),
        client => client_lines::chain(session, &client.rules(), None),
    }
}

/// The lines that the client of `profile` would build its messages from if the conversation
/// went on from `leaf`.
pub(crate) fn lines_from(session: &Session, profile: ClientProfile, leaf: Index) -> Vec<Index> {
    let outcome = match profile {
        ClientProfile::Strict => own_lines::from(session, &graph::links(session), leaf),
        client => client_lines::chain(session, &client.rules(), Some(leaf)),
    };
    outcome.lines()
}

/// The lines that our own rules would build messages from if lines had these links and the
/// conversation went on from `leaf`.
pub(crate) fn lines_by(session: &Session, links: &graph::ParentLinks, leaf: Index) -> Vec<Index> {
    own_lines::from(session, links, leaf).lines()
}

/// The lines that the client of `profile` would build its messages from, in order.
pub fn live_lines(session: &Session, profile: ClientProfile) -> Vec<Index> {
    outcome(session, profile).lines()
}

/// The array as JSON text.
pub fn to_json(messages: &[ApiMessage]) -> String {
    let mut out = String::from("[");
    for (at, message) in messages.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str("{\"role\":\"");
        out.push_str(message.role.name());
        out.push_str("\",\"content\":[");
        for (at, piece) in message.content.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(&piece.json);
        }
        out.push_str("]}");
    }
    out.push(']');
    out
}
