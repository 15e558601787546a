//! A session as a document: a page, Markdown, text, or rows for machines.
//!
//! Everything is written as a stream, one turn at a time, so a document can be larger than
//! memory. What a document holds is decided here and by [`DocumentDetail`]; how it looks, by one file
//! per format. Nothing here opens files or knows a terminal.

pub mod html;
pub mod index;
mod json;
mod markdown;
mod ordered_work;
mod text;

use std::collections::HashSet;
use std::io;

use jiff::tz::TimeZone;
use unspool_model::log::TranscriptSource;
use unspool_model::session::Session;
use unspool_model::time::Time;
use unspool_model::view::commits::{self, GitCommit};
use unspool_model::view::transcript::{
    self, AgentTranscripts, ItemBody, TranscriptItem, TranscriptNote, TranscriptPrompt,
};
use unspool_model::view::turns;

use crate::format;
use crate::wire::session::SessionJson;

/// What a session can become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentFormat {
    /// One page for a browser.
    Html,
    /// Markdown.
    Markdown,
    /// Plain text.
    Text,
    /// One JSON object.
    Json,
    /// The lines of the transcript.
    Jsonl,
    /// The array that the Messages API takes.
    Messages,
}

impl DocumentFormat {
    /// Every format.
    pub const ALL: [DocumentFormat; 6] = [
        DocumentFormat::Html,
        DocumentFormat::Markdown,
        DocumentFormat::Text,
        DocumentFormat::Json,
        DocumentFormat::Jsonl,
        DocumentFormat::Messages,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            DocumentFormat::Html => "html",
            DocumentFormat::Markdown => "md",
            DocumentFormat::Text => "txt",
            DocumentFormat::Json => "json",
            DocumentFormat::Jsonl => "jsonl",
            DocumentFormat::Messages => "messages",
        }
    }

    /// How names of its files end.
    pub fn extension(self) -> &'static str {
        match self {
            DocumentFormat::Messages => "messages.json",
            other => other.name(),
        }
    }

    /// Whether a person reads it, so that [`DocumentDetail`] and a limit of characters make sense.
    pub fn is_for_people(self) -> bool {
        matches!(
            self,
            DocumentFormat::Html | DocumentFormat::Markdown | DocumentFormat::Text
        )
    }
}

/// How much of a session a document holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DocumentDetail {
    /// What people typed.
    Prompts,
    /// And what the model answered.
    Minimal,
    /// And what it did: a line for each call, its changes and failures.
    Low,
    /// And all of inputs and results.
    High,
    /// And what it thought, and what the client told it.
    #[default]
    Full,
}

/// What the caller may choose.
#[derive(Clone, Debug)]
pub struct DocumentOptions {
    /// How much.
    pub detail: DocumentDetail,
    /// Longer texts are cut after so many characters.
    pub max_chars: Option<usize>,
    /// The zone that times are shown in.
    pub zone: TimeZone,
}

impl Default for DocumentOptions {
    fn default() -> DocumentOptions {
        DocumentOptions {
            detail: DocumentDetail::Full,
            max_chars: None,
            zone: TimeZone::UTC,
        }
    }
}

/// A session with everything that belongs to it.
#[derive(Clone, Copy)]
pub struct DocumentSource<'a> {
    /// What its lines mean.
    pub session: &'a Session,
    /// Where their texts are.
    pub source: &'a dyn TranscriptSource,
    /// Its sub-agents.
    pub agents: &'a AgentTranscripts<'a>,
    /// What is known about it: title, project, times, cost.
    pub row: &'a SessionJson,
}

/// A line of the list of prompts.
#[derive(Clone, Debug)]
pub struct PromptListEntry {
    /// The number of the turn.
    pub n: usize,
    /// When it began.
    pub at: Option<Time>,
    /// What was asked, on one line.
    pub prompt: String,
    /// Whether the session went on from it.
    pub live: bool,
    /// The commits made in it.
    pub commits: Vec<GitCommit>,
}

/// What stands for a prompt where nobody asked: before the first turn.
const BEFORE: &str = "(before the first prompt)";

/// Most characters of a prompt in the list.
const ENTRY: usize = 160;

/// The list of prompts, with the commits that were made.
pub fn entries(session: &Session, source: &dyn TranscriptSource) -> Vec<PromptListEntry> {
    let mut commits = commits::commits(session, source).into_iter().peekable();
    let rows = turns::outline(session, turns::TurnOptions::default());
    let entry = |row: &turns::TurnRow| {
        let record = &session.records[row.record as usize];
        let prompt = match row.n {
            0 => BEFORE.to_owned(),
            _ => turns::prompt(session, source, record),
        };
        let mut own = Vec::new();
        while let Some(commit) = commits.next_if(|commit| commit.turn <= row.n) {
            own.push(commit);
        }
        PromptListEntry {
            n: row.n,
            at: row.at,
            prompt: brief(&prompt, ENTRY),
            live: row.live,
            commits: own,
        }
    };
    rows.iter().map(entry).collect()
}

/// A text on one line of at most `limit` characters.
pub(crate) fn brief(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
            count += 1;
        }
        for c in word.chars() {
            if count == limit {
                out.push('…');
                return out;
            }
            out.push(c);
            count += 1;
        }
    }
    out
}

/// The start of a text that is too long, and how many characters stand behind it.
pub(crate) fn cut(text: &str, limit: Option<usize>) -> (&str, usize) {
    let Some(limit) = limit.filter(|limit| text.len() > *limit) else {
        return (text, 0);
    };
    match text.char_indices().nth(limit) {
        Some((at, _)) => (&text[..at], text[at..].chars().count()),
        None => (text, 0),
    }
}

/// What says that something was cut.
pub(crate) fn cut_note(left: usize) -> String {
    format!("… {} truncated", format::count(left as u64, "character"))
}

/// Whether a document of this detail shows an item at all.
pub(crate) fn shows(detail: DocumentDetail, item: &TranscriptItem) -> bool {
    match &item.body {
        ItemBody::Turn(_) => true,
        ItemBody::Prompt(_) | ItemBody::Queued { .. } => true,
        ItemBody::Reply { .. } => detail >= DocumentDetail::Minimal,
        ItemBody::Interrupt { .. } | ItemBody::Compaction { .. } => {
            detail >= DocumentDetail::Minimal
        }
        ItemBody::Call(_) | ItemBody::Orphan { .. } => detail >= DocumentDetail::Low,
        ItemBody::ApiError { .. } | ItemBody::Command { .. } => detail >= DocumentDetail::Low,
        ItemBody::Summary { .. } | ItemBody::Hook(_) | ItemBody::Notice { .. } => {
            detail >= DocumentDetail::High
        }
        ItemBody::Unknown { .. } | ItemBody::Fault { .. } => detail >= DocumentDetail::High,
        ItemBody::Thinking { .. } => detail >= DocumentDetail::Full,
        ItemBody::Notes(notes) => detail >= DocumentDetail::Full && notes.iter().any(is_told),
    }
}

/// Whether a note says something; the others only keep books.
pub(crate) fn is_told(note: &TranscriptNote) -> bool {
    note.matters || !note.text.is_empty()
}

/// Writes a session. The lines of the transcript and the array of messages are not documents
/// and are made elsewhere: nothing is written for them.
pub fn write(
    out: &mut dyn io::Write,
    whole: &DocumentSource<'_>,
    format: DocumentFormat,
    options: &DocumentOptions,
) -> io::Result<()> {
    match format {
        DocumentFormat::Html => html::write(out, whole, options),
        DocumentFormat::Markdown => markdown::write(out, whole, options),
        DocumentFormat::Text => text::write(out, whole, options),
        DocumentFormat::Json => json::write(out, whole, options),
        DocumentFormat::Jsonl | DocumentFormat::Messages => Ok(()),
    }
}

/// What was said in a document already, and is said again only where it changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct DocumentContext {
    day: Option<String>,
    mode: Option<String>,
    model: Option<String>,
}

impl DocumentContext {
    /// Whether a day is another than the last one.
    pub(crate) fn is_new_day(&mut self, day: &str) -> bool {
        let is_new = self.day.as_deref() != Some(day);
        if is_new {
            self.day = Some(day.to_owned());
        }
        is_new
    }

    /// The permission mode of a prompt, in words, if it is another than the last one.
    pub(crate) fn new_mode(&mut self, prompt: &TranscriptPrompt, nested: bool) -> Option<String> {
        crate::text::new_mode(prompt, &mut self.mode, nested)
    }

    /// The model of a reply, if it is another than the last one. The first is known from the
    /// head of the document.
    pub(crate) fn new_model<'m>(&mut self, model: Option<&'m str>) -> Option<&'m str> {
        let model = model.filter(|model| self.model.as_deref() != Some(*model))?;
        let last = self.model.replace(model.to_owned());
        last.and(Some(model))
    }

    /// What holds for the conversation of a sub-agent, which has a model of its own; what was
    /// known of the model before.
    pub(crate) fn inside(&mut self) -> Option<String> {
        self.model.take()
    }

    /// Behind it.
    pub(crate) fn outside(&mut self, model: Option<String>) {
        self.model = model;
    }

    /// Takes in what the items of a turn say.
    fn pass(&mut self, items: &[TranscriptItem], options: &DocumentOptions) {
        for item in items.iter().filter(|item| shows(options.detail, item)) {
            match &item.body {
                ItemBody::Turn(_) => {
                    let day = item.at.map(|at| format::day(at, &options.zone));
                    day.map(|day| self.is_new_day(&day));
                }
                ItemBody::Prompt(prompt) => drop(self.new_mode(prompt, false)),
                ItemBody::Reply { model, .. } => drop(self.new_model(model.as_deref())),
                _ => {}
            }
        }
    }
}

/// A session as a page or as Markdown: what stands before and behind its turns is written at
/// once, turns are made apart from each other.
pub(crate) trait DocumentWriter: Sync {
    /// What stands before the conversation.
    fn begin(&self, out: &mut dyn io::Write, whole: &DocumentSource<'_>) -> io::Result<()>;
    /// A turn, or what stands before the first one.
    fn part(
        &self,
        out: &mut dyn io::Write,
        items: &[TranscriptItem],
        known: DocumentContext,
    ) -> io::Result<()>;
    /// A sub-agent that stands under no call.
    fn loose(
        &self,
        out: &mut dyn io::Write,
        name: &str,
        items: &[TranscriptItem],
        known: &mut DocumentContext,
    ) -> io::Result<()>;
    /// What stands behind the conversation.
    fn end(&self, out: &mut dyn io::Write) -> io::Result<()>;
}

/// Writes all parts of a session, one after the other.
pub(crate) fn write_pages(
    out: &mut dyn io::Write,
    whole: &DocumentSource<'_>,
    pages: &dyn DocumentWriter,
    options: &DocumentOptions,
) -> io::Result<()> {
    pages.begin(out, whole)?;
    let making = TurnRendering {
        turns: DocumentTurns::of(whole),
        pages,
        options,
    };
    let mut shown = HashSet::new();
    let count = making.turns.0.len();
    let mut known = ordered_work::in_order(
        &making,
        count,
        DocumentContext::default(),
        |(written, agents)| {
            shown.extend(agents);
            out.write_all(&written?)
        },
    )?;
    whole.loose(options.detail, &shown, |name, items| {
        pages.loose(out, name, items, &mut known)
    })?;
    pages.end(out)
}

impl DocumentSource<'_> {
    /// The sub-agents that stand under no call, if documents of this detail have them.
    fn loose(
        &self,
        detail: DocumentDetail,
        shown: &HashSet<String>,
        mut write: impl FnMut(&str, &[TranscriptItem]) -> io::Result<()>,
    ) -> io::Result<()> {
        if detail < DocumentDetail::Low {
            return Ok(());
        }
        let mut loose = transcript::loose(self.session, self.source, self.agents, shown);
        loose.try_for_each(|(name, items)| write(&name, &items))
    }
}

/// The turns of a session, each with the keys of the sub-agents that stand in it.
struct DocumentTurns<'a>(transcript::TranscriptTurns<'a>);

type DocumentTurn = (Vec<TranscriptItem>, HashSet<String>);

impl<'a> DocumentTurns<'a> {
    fn of(whole: &DocumentSource<'a>) -> DocumentTurns<'a> {
        let DocumentSource {
            session,
            source,
            agents,
            ..
        } = *whole;
        DocumentTurns(transcript::whole(session, source, agents))
    }

    fn turn(&self, at: usize) -> DocumentTurn {
        let items = self.0.turn(at);
        let mut shown = HashSet::new();
        note_agents(&items, &mut shown);
        (items, shown)
    }
}

/// Turns for those who write them as they are read.
impl ordered_work::OrderedWork for DocumentTurns<'_> {
    type Read = DocumentTurn;
    type Known = ();
    type Made = DocumentTurn;

    fn read(&self, at: usize) -> DocumentTurn {
        self.turn(at)
    }

    fn pass(&self, (): &mut (), _: &DocumentTurn) {}

    fn make(&self, turn: DocumentTurn, (): ()) -> DocumentTurn {
        turn
    }
}

/// Turns on their way into a document.
struct TurnRendering<'a> {
    turns: DocumentTurns<'a>,
    pages: &'a dyn DocumentWriter,
    options: &'a DocumentOptions,
}

impl ordered_work::OrderedWork for TurnRendering<'_> {
    type Read = DocumentTurn;
    type Known = DocumentContext;
    type Made = (io::Result<Vec<u8>>, HashSet<String>);

    fn read(&self, at: usize) -> DocumentTurn {
        self.turns.turn(at)
    }

    fn pass(&self, known: &mut DocumentContext, (items, _): &DocumentTurn) {
        known.pass(items, self.options);
    }

    fn make(&self, (items, shown): DocumentTurn, known: DocumentContext) -> Self::Made {
        let mut out = Vec::new();
        let written = self.pages.part(&mut out, &items, known);
        (written.map(|()| out), shown)
    }
}

/// Notes which sub-agents stand under a call.
fn note_agents(items: &[TranscriptItem], shown: &mut HashSet<String>) {
    for item in items {
        let ItemBody::Call(call) = &item.body else {
            continue;
        };
        if let Some(agent) = call.agent.as_ref().filter(|agent| !agent.items.is_empty()) {
            shown.extend(agent.keys().map(str::to_owned));
            note_agents(&agent.items, shown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character_and_the_rest_is_counted() {
        assert_eq!(cut("äöü", Some(2)), ("äö", 1));
        assert_eq!(cut("äöü", Some(3)), ("äöü", 0));
        assert_eq!(cut("äöü", None), ("äöü", 0));
        assert_eq!(cut("abc", Some(0)), ("", 3));
        assert_eq!(cut_note(1), "… 1 character truncated");
    }

    #[test]
    fn a_prompt_in_the_list_is_one_short_line() {
        assert_eq!(brief(" a\n b\t c ", 10), "a b c");
        assert_eq!(brief("abcdef", 3), "abc…");
        assert_eq!(brief("ab cd", 3), "ab …");
    }
}
