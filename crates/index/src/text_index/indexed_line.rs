//! What of a line is indexed, and as what.
//!
//! Dialogue is what was typed and said, titles, and what calls are about: commands and
//! paths. The rest is thinking, all that tools were given, and what they said. What is only
//! shown while something runs, what the program writes for the model, and the second copy of
//! a result beside the message are left out; the exact search finds them.

use std::borrow::Cow;
use std::collections::VecDeque;

use unspool_model::block::{Block, BlockKind};
use unspool_model::entry::{Entry, LineDetail, LineKind};
use unspool_model::secrets::SecretFinder;
use unspool_model::text::{self, TextKind};
use unspool_model::tool;

use super::IndexStage;

/// One row of the index: what one line holds of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedText {
    /// What it is.
    pub place: TextKind,
    /// The tool it was given to or said by.
    pub tool: Option<Box<str>>,
    /// The texts, one below the other.
    pub text: String,
}

/// What a line gives.
#[derive(Debug, Default)]
pub struct IndexedLine {
    /// Its rows; in the stage of dialogue only those of dialogue.
    pub rows: Vec<IndexedText>,
    /// Paths that its calls touched.
    pub paths: Vec<String>,
    /// What else it says.
    pub entry: Option<Entry>,
}

/// Calls whose results have not come yet: a result does not name its tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnansweredCalls(VecDeque<(Box<str>, Box<str>)>);

/// More calls than this do not wait at once.
const WAITING: usize = 256;

/// Reads a line for a stage. Only paths are masked yet: see [`IndexedLine::mask`].
pub fn read(line: &[u8], stage: IndexStage, calls: &mut UnansweredCalls) -> IndexedLine {
    let mut out = IndexedLine::default();
    if !may_have(stage, line) {
        return out;
    }
    let mut beside = Vec::new();
    let mut entries = text::objects(line, &mut |entry, text| {
        let Some(entry) = entry else {
            return;
        };
        let result = || result_block(entry, text.offset);
        match (stage, text.place) {
            (IndexStage::Dialogue, TextKind::Prompt | TextKind::Reply | TextKind::Title) => {
                out.add(text.place, None, &text);
            }
            (IndexStage::Dialogue, TextKind::Tool) => {
                if text.is_path() {
                    out.paths.push(masked(&text.decode()).into_owned());
                }
                if text.tool.is_some_and(|tool| is_subject(tool, text.key)) {
                    out.add(text.place, text.tool, &text);
                }
            }
            (IndexStage::Rest, TextKind::Thinking) => out.add(text.place, None, &text),
            (IndexStage::Rest, TextKind::Tool) => out.add(text.place, text.tool, &text),
            (IndexStage::Rest, TextKind::Result) => match result() {
                Some(call) => out.add(text.place, calls.tool(call), &text),
                None => beside.push(text),
            },
            _ => {}
        }
    });
    if !out.rows.iter().any(|row| row.place == TextKind::Result) {
        let tool = entries.first().and_then(|entry| {
            let mut ids = entry.blocks.iter().filter_map(|block| block.id());
            ids.find_map(|id| calls.tool(id).map(Box::<str>::from))
        });
        for text in beside {
            out.add(TextKind::Result, tool.as_deref(), &text);
        }
    }
    if stage == IndexStage::Rest {
        entries.iter().for_each(|entry| calls.take(entry));
    }
    if !entries.is_empty() {
        out.entry = Some(entries.swap_remove(0));
    }
    out
}

impl IndexedLine {
    fn add(&mut self, place: TextKind, tool: Option<&str>, text: &text::LineText<'_>) {
        let decoded = text.decode();
        let plain = text::plain(&decoded);
        let same = |row: &&mut IndexedText| row.place == place && row.tool.as_deref() == tool;
        match self.rows.iter_mut().find(same) {
            Some(row) => {
                row.text.push('\n');
                row.text.push_str(&plain);
            }
            None => self.rows.push(IndexedText {
                place,
                tool: tool.map(Box::from),
                text: plain.into_owned(),
            }),
        }
    }

    /// Masks the secrets in all rows, each as a whole: a secret may be told by what stands
    /// before it. Nothing may be kept of a line before this.
    pub fn mask(&mut self) {
        for row in &mut self.rows {
            if let Cow::Owned(masked) = masked(&row.text) {
                row.text = masked;
            }
        }
        self.rows.retain(|row| !row.text.trim().is_empty());
    }

    /// The title that the line gives its session, and how much it counts.
    ///
    /// A summary at the top of a file is that of another session: clients of 1.0 put there
    /// what the earlier ones of a project were about. `begun` says that lines came before.
    pub fn title(&self, begun: bool) -> Option<(i64, Cow<'_, str>)> {
        let entry = self.entry.as_ref()?;
        let (rank, text) = match &entry.detail {
            Some(LineDetail::Summary(summary)) if begun => (1, summary.text.as_str()),
            Some(LineDetail::Title { source, text }) => (2 + *source as i64, text.as_str()),
            _ => {
                let prompt = self.rows.iter().find(|row| row.place == TextKind::Prompt);
                // Masked as a whole, then cut.
                return prompt.map(|row| (0, first_words(&masked(&row.text)).to_owned().into()));
            }
        };
        Some((rank, masked(text)))
    }

    /// Whether the line is a title of another session.
    pub fn is_foreign(&self, begun: bool) -> bool {
        let summary = |entry: &Entry| matches!(entry.kind, LineKind::Summary);
        !begun && self.entry.as_ref().is_some_and(summary)
    }
}

impl UnansweredCalls {
    fn tool(&self, call: &str) -> Option<&str> {
        let mut newest = self.0.iter().rev();
        newest
            .find(|(id, _)| &**id == call)
            .map(|(_, tool)| &**tool)
    }

    /// Takes in the calls of an entry, and forgets those whose results it holds.
    fn take(&mut self, entry: &Entry) {
        for block in &entry.blocks {
            let (Some(id), tool) = (block.id(), block.tool()) else {
                continue;
            };
            match (block.kind, tool) {
                (BlockKind::ToolUse | BlockKind::ServerToolUse, Some(tool)) => {
                    self.0.push_back((id.into(), masked(tool).into()));
                    if self.0.len() > WAITING {
                        self.0.pop_front();
                    }
                }
                (BlockKind::ToolResult, _) => self.0.retain(|(known, _)| &**known != id),
                _ => {}
            }
        }
    }

    /// As bytes, to go on later.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in self.0.iter().flat_map(|(id, tool)| [id, tool]) {
            bytes.extend_from_slice(word.replace('\0', " ").as_bytes());
            bytes.push(0);
        }
        bytes
    }

    /// From those bytes.
    pub fn from_bytes(bytes: &[u8]) -> UnansweredCalls {
        let text = String::from_utf8_lossy(bytes);
        let words: Vec<&str> = text.split_terminator('\0').collect();
        let pairs = words.chunks_exact(2);
        UnansweredCalls(pairs.map(|pair| (pair[0].into(), pair[1].into())).collect())
    }
}

/// The one place where text is masked before anything is made of it.
pub fn masked(text: &str) -> Cow<'_, str> {
    SecretFinder::standard().mask(text)
}

/// Makes the rules for secrets ready, which takes some milliseconds: who will need them can
/// have it done beside something else.
pub fn prepare_secret_rules() {
    masked("api_key = 'x1y2z3a4b5c6d7e8'");
}

/// The id of the call whose result holds this place of the line.
fn result_block(entry: &Entry, offset: usize) -> Option<&str> {
    // Blocks stand in the order of the line, and there may be a million of them.
    let behind = |block: &Block| block.span().end() <= offset;
    let at = entry.blocks.partition_point(behind);
    let block = entry.blocks.get(at);
    let block = block.filter(|block| block.span().start <= offset)?;
    Some(block.id().unwrap_or_default())
}

/// Whether a parameter says what a call is about; all of a tool that nobody has described.
fn is_subject(name: &str, key: &str) -> bool {
    match tool::known(name) {
        Some(tool) => tool::is_path(key) || tool.subject.contains(&key),
        None => true,
    }
}

/// Whether a line may hold what a stage wants, judged without reading it: most bytes of a
/// transcript are results and copies of them.
///
/// A quote inside a string is escaped, so these marks are only found outside; where one is
/// missing because the line is written in another way, the line is read.
fn may_have(stage: IndexStage, line: &[u8]) -> bool {
    const START: usize = 2 << 10;
    let start = &line[..line.len().min(START)];
    let begins = |mark: &str| memchr::memmem::find(start, mark.as_bytes()).is_some();
    if begins(r#""type":"progress""#) || begins(r#""type":"file-history-snapshot""#) {
        return false;
    }
    // A result beside which somebody typed has a block of text.
    let result = || begins(r#""tool_use_id":""#) && begins(r#""type":"user""#);
    let text = || memchr::memmem::find(line, br#""type":"text""#).is_some();
    stage == IndexStage::Rest || !result() || text()
}

/// Enough of a prompt to tell sessions apart.
fn first_words(text: &str) -> &str {
    let line = text.trim_start().lines().next().unwrap_or_default();
    let end = line
        .char_indices()
        .nth(120)
        .map_or(line.len(), |(at, _)| at);
    &line[..end]
}
