//! The Messages-API array that a client would send when it resumes the session.
//!
//! First the chain: which lines are live, in which order (`client`, and `own` for our own
//! rules; `walk` and `siblings` are steps of it). Then the messages: what each line says
//! (`speech`), what of it is sent (`assemble`), which lines are one message (`join`), calls
//! and results brought together (`pair`). Reminders that the client makes anew on every start are not part of the
//! conversation and are left out.

mod assemble;
mod client;
mod join;
mod own;
mod pair;
mod siblings;
pub(crate) mod speech;
mod walk;

use crate::block::BlockKind;
use crate::entry::Kind;
use crate::graph;
use crate::json;
use crate::log::Source;
use crate::session::{Index, Part, Session};
use crate::view::profile::{Profile, Rules};
use crate::view::strict;

/// What resuming would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// These messages would be sent ahead of the next prompt.
    Messages(Vec<ApiMessage>),
    /// The client would say that there is no conversation.
    NoConversation,
    /// The client would never come back.
    Hangs,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The person, and the tools.
    User,
    /// The model.
    Assistant,
}

impl Speaker {
    /// The role on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
        }
    }
}

/// One message of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiMessage {
    /// Who speaks.
    pub role: Speaker,
    /// Its blocks, in order.
    pub content: Vec<Piece>,
}

/// What a block of the request is, as far as the rules ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
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
pub struct Piece {
    /// What it is.
    pub kind: PieceKind,
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
pub fn messages(session: &Session, source: &dyn Source, profile: Profile) -> Resume {
    let rules = profile.rules();
    match outcome(session, profile) {
        Outcome::Lines(lines) if profile == Profile::Strict => {
            let drafts = assemble::assemble_own(session, source, &lines, &rules);
            let accepted = strict::accepted(drafts);
            // The API takes no empty request.
            if accepted.is_empty() {
                Resume::NoConversation
            } else {
                Resume::Messages(accepted)
            }
        }
        outcome => of_client(session, source, outcome, &rules),
    }
}

/// The messages that a client with these rules would send.
pub fn by_rules(session: &Session, source: &dyn Source, rules: &Rules) -> Resume {
    let outcome = client::chain(session, rules, None);
    of_client(session, source, outcome, rules)
}

fn of_client(session: &Session, source: &dyn Source, outcome: Outcome, rules: &Rules) -> Resume {
    match outcome {
        Outcome::Lines(lines) if rules.brittle && lacks_content(session, source, &lines) => {
            Resume::NoConversation
        }
        Outcome::Lines(lines)
            if rules.refuses_string_replies && has_string_reply(session, &lines) =>
        {
            Resume::NoConversation
        }
        Outcome::Lines(lines) => {
            Resume::Messages(assemble::assemble(session, source, &lines, rules))
        }
        Outcome::None => Resume::NoConversation,
        Outcome::Hangs => Resume::Hangs,
    }
}

/// Whether one of the lines has no content.
fn lacks_content(session: &Session, source: &dyn Source, lines: &[Index]) -> bool {
    lines.iter().any(|&at| {
        let record = &session.records[at as usize];
        let speaks = matches!(record.kind, Kind::User | Kind::Assistant);
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
            |block: &Part| block.kind == BlockKind::Text && block.span() == block.body();
        record.kind == Kind::Assistant && first.is_some_and(is_string)
    })
}

/// The lines a client would build its messages from, or why there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// These lines, in the order they are read.
    Lines(Vec<Index>),
    /// It would find no conversation.
    None,
    /// It would never come back.
    Hangs,
}

impl Outcome {
    /// The lines; none where there is no conversation.
    pub fn lines(self) -> Vec<Index> {
        match self {
            Outcome::Lines(lines) => lines,
            Outcome::None | Outcome::Hangs => Vec::new(),
        }
    }
}

/// What the client of `profile` would make of the lines.
pub fn outcome(session: &Session, profile: Profile) -> Outcome {
    match profile {
        Profile::Strict => own::chain(session),
        client => client::chain(session, &client.rules(), None),
    }
}

/// The lines that the client of `profile` would build its messages from if the conversation
/// went on from `leaf`.
pub(crate) fn lines_from(session: &Session, profile: Profile, leaf: Index) -> Vec<Index> {
    let outcome = match profile {
        Profile::Strict => own::from(session, &graph::links(session), leaf),
        client => client::chain(session, &client.rules(), Some(leaf)),
    };
    outcome.lines()
}

/// The lines that our own rules would build messages from if lines had these links and the
/// conversation went on from `leaf`.
pub(crate) fn lines_by(session: &Session, links: &graph::Links, leaf: Index) -> Vec<Index> {
    own::from(session, links, leaf).lines()
}

/// The lines that the client of `profile` would build its messages from, in order.
pub fn live_lines(session: &Session, profile: Profile) -> Vec<Index> {
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
