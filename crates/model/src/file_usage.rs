//! What one file says about tokens: every message once, in the order they appear.
//!
//! This is all that reports about usage need of a file, some fifty bytes per message. It is
//! gathered line by line or piece by piece, and can be written down and read back, so that a
//! file that was read once need not be read again. Which of several files that hold the same
//! message counts is not decided here: see [`crate::view::usage`].

mod encoding;

pub use encoding::FORMAT;

use std::borrow::Cow;
use std::hash::BuildHasher;

use foldhash::HashMap;

use crate::entry::reply::{self, LineOrigin, ReplyLine};
use crate::secrets::SecretFinder;
use crate::session::{Session, TranscriptRole};
use crate::text_counts::TextCounts;
use crate::time::Time;
use crate::usage::{PricingTerms, Usage};
use crate::view::usage::message_key;

/// A message as one file tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageUsage {
    /// Tokens: of all its lines the maximum.
    pub usage: Usage,
    /// What else decides the price.
    pub terms: PricingTerms,
    /// The time of its first line.
    pub at: Option<Time>,
    /// Where its first line begins.
    pub offset: u64,
    /// How many lines told its tokens.
    pub lines: u32,
    /// The model, in [`FileUsage::models`].
    pub model: Option<u32>,
    /// The version of the client, in [`FileUsage::versions`].
    pub version: Option<u32>,
    /// What is true of it.
    pub marks: MessageFlags,
    id: (u32, u32),
}

/// What is true of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageFlags {
    /// A copy in the progress lines of a parent, not the message itself.
    pub copy: bool,
    /// It belongs to a sub-agent inside a session's file.
    pub sidechain: bool,
    /// A line says that it was copied from another session.
    pub forked: bool,
    /// A line says why the model stopped, so its tokens are final.
    pub stopped: bool,
    /// Written by the client itself; counts nothing.
    pub synthetic: bool,
}

/// All messages of one file.
#[derive(Clone, Debug, Default)]
pub struct FileUsage {
    /// The messages.
    pub messages: Vec<MessageUsage>,
    /// Names of models.
    pub models: TextCounts,
    /// Versions of the client.
    pub versions: TextCounts,
    /// Where it was written, as its first lines say.
    pub origin: LineOrigin,
    /// The latest time on a message.
    pub last: Option<Time>,
    ids: String,
    /// Where a message is, by a hash of its id and whether it is a copy.
    known: HashMap<u64, u32>,
}

impl PartialEq for FileUsage {
    fn eq(&self, other: &FileUsage) -> bool {
        self.pack() == other.pack()
    }
}

impl FileUsage {
    /// Takes in the next lines of the file, of which the first begins at `offset`.
    pub fn feed(&mut self, offset: u64, lines: &[u8]) {
        self.place(lines);
        let mark = memchr::memmem::Finder::new(reply::MARK);
        let mut at = 0;
        while let Some(hit) = mark.find(&lines[at..]) {
            let hit = at + hit;
            let start = memchr::memrchr(b'\n', &lines[at..hit]).map_or(at, |end| at + end + 1);
            let end = memchr::memchr(b'\n', &lines[hit..]).map_or(lines.len(), |end| hit + end);
            let place = offset + start as u64;
            reply::replies(&lines[start..end], |reply| self.take(place, &reply));
            at = end;
        }
    }

    /// Looks at the first lines for where they were written.
    fn place(&mut self, lines: &[u8]) {
        let mut rest = lines;
        // Bookkeeping may stand in front of the first line that says.
        for _ in 0..FIRST {
            if rest.is_empty() || self.origin.cwd.is_some() && self.origin.session.is_some() {
                return;
            }
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            let mut origin = reply::origin(&rest[..end]);
            mask_name(&mut origin.cwd);
            self.origin.or(origin);
            rest = &rest[end..];
        }
    }

    fn take(&mut self, offset: u64, reply: &ReplyLine<'_>) {
        let Some(usage) = reply.usage() else {
            return;
        };
        let id = match (reply.id(), &reply.uuid) {
            (Some(id), _) => Cow::Borrowed(id),
            // Some gateways give no id. The line's own is the same in all copies of it.
            (None, Some(uuid)) => Cow::Owned(uuid.to_string()),
            // Only a copy of the whole file has the same there.
            (None, None) => Cow::Owned(nameless(offset, reply.at, usage)),
        };
        let model = reply.model();
        let new = MessageUsage {
            usage,
            terms: reply.terms(),
            at: reply.at,
            offset,
            lines: 1,
            model: model.map(|model| self.models.add(&SecretFinder::forms().mask(model))),
            version: reply
                .version
                .as_deref()
                .map(|version| self.versions.add(version)),
            marks: MessageFlags {
                copy: reply.copy,
                sidechain: reply.sidechain,
                forked: reply.forked,
                stopped: reply.is_stopped(),
                synthetic: model == Some("<synthetic>"),
            },
            id: (0, 0),
        };
        self.enter(new, &id);
    }

    fn enter(&mut self, mut new: MessageUsage, id: &str) {
        self.last = self.last.max(new.at);
        let mut print = print(id, new.marks.copy);
        // Two ids with one hash stand side by side.
        while let Some(&at) = self.known.get(&print) {
            let known = &self.messages[at as usize];
            if known.marks.copy == new.marks.copy && self.id(known) == id {
                self.messages[at as usize].merge(&new);
                return;
            }
            print = print.wrapping_add(1);
        }
        self.known.insert(print, self.messages.len() as u32);
        new.id = (self.ids.len() as u32, id.len() as u32);
        self.ids.push_str(id);
        self.messages.push(new);
    }

    /// What a session that was read whole says.
    pub fn of(session: &Session) -> FileUsage {
        let mut spending = FileUsage::default();
        let own = session.messages.iter().map(|message| (message, false));
        let copies = session.copies.iter().map(|message| (message, true));
        for (message, copy) in own.chain(copies).filter(|(one, _)| one.has_usage()) {
            let record = message.records.first();
            let model = message.model().map(|model| session.text(model));
            let new = MessageUsage {
                usage: session.usage_of(message),
                terms: session.terms_of(message),
                at: message.first(),
                offset: record.map_or(0, |&at| session.records[at as usize].offset),
                lines: message.records.len() as u32,
                model: model.map(|model| spending.models.add(model)),
                version: None,
                marks: MessageFlags {
                    copy,
                    sidechain: session.role() == TranscriptRole::Agent || message.thread != 0,
                    forked: session.forked_from.is_some(),
                    stopped: message.stop().is_some(),
                    synthetic: message.synthetic,
                },
                id: (0, 0),
            };
            let key = message_key(session, message);
            spending.enter(new, &key);
            spending.last = spending.last.max(message.last());
        }
        spending.shrink_to_fit();
        spending
    }

    /// Adds what later lines of the same file said.
    pub fn append(&mut self, later: &FileUsage) {
        self.origin.or(later.origin.clone());
        self.last = self.last.max(later.last);
        for spent in &later.messages {
            let model = spent
                .model
                .map(|model| self.models.add(later.models.get(model)));
            let version = spent
                .version
                .map(|version| self.versions.add(later.versions.get(version)));
            let new = MessageUsage {
                model,
                version,
                ..spent.clone()
            };
            self.enter(new, later.id(spent));
        }
    }

    /// The id of a message; that of its line where it has none.
    pub fn id(&self, spent: &MessageUsage) -> &str {
        let (start, len) = (spent.id.0 as usize, spent.id.1 as usize);
        self.ids.get(start..start + len).unwrap_or_default()
    }

    /// The model of a message.
    pub fn model(&self, spent: &MessageUsage) -> Option<&str> {
        spent.model.map(|model| self.models.get(model))
    }

    /// The version of the client that wrote a message.
    pub fn version(&self, spent: &MessageUsage) -> Option<&str> {
        spent.version.map(|version| self.versions.get(version))
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.origin == LineOrigin::default()
    }

    /// Gives back the memory that only growing needs.
    pub fn shrink_to_fit(&mut self) {
        self.known = HashMap::default();
        self.messages.shrink_to_fit();
        self.ids.shrink_to_fit();
    }

    /// Prepares for more lines after [`FileUsage::settle`] or [`FileUsage::unpack`].
    pub fn reopen(&mut self) {
        let mut known = HashMap::default();
        known.reserve(self.messages.len());
        for (at, spent) in self.messages.iter().enumerate() {
            let mut print = print(self.id(spent), spent.marks.copy);
            while known.contains_key(&print) {
                print = print.wrapping_add(1);
            }
            known.insert(print, at as u32);
        }
        self.known = known;
    }
}

/// What stands for a message of which neither the model nor the client gave an id.
pub(crate) fn nameless(offset: u64, at: Option<Time>, usage: Usage) -> String {
    format!("{offset} {at:?} {usage:?}")
}

/// Takes tokens out of a name that is kept.
fn mask_name<T: AsRef<str> + From<String>>(name: &mut Option<T>) {
    if let Some(text) = name
        && let Cow::Owned(masked) = SecretFinder::forms().mask(text.as_ref())
    {
        *name = Some(masked.into());
    }
}

/// How many lines of a piece are asked where they were written.
const FIRST: usize = 64;

impl LineOrigin {
    fn or(&mut self, other: LineOrigin) {
        let LineOrigin {
            cwd,
            session,
            agent,
        } = other;
        self.cwd = self.cwd.take().or(cwd);
        self.session = self.session.take().or(session);
        self.agent = self.agent.take().or(agent);
    }
}

impl MessageUsage {
    /// Another line of the same message: it repeats the tokens, it does not add to them.
    fn merge(&mut self, other: &MessageUsage) {
        self.usage = self.usage.max(other.usage);
        self.terms = self.terms.max(other.terms);
        self.at = self.at.or(other.at);
        self.lines = self.lines.saturating_add(other.lines);
        self.model = other.model.or(self.model);
        self.version = self.version.or(other.version);
        self.marks.sidechain |= other.marks.sidechain;
        self.marks.forked |= other.marks.forked;
        self.marks.stopped |= other.marks.stopped;
        // As the last line has it.
        self.marks.synthetic = other.marks.synthetic;
    }
}

fn print(id: &str, copy: bool) -> u64 {
    foldhash::fast::FixedState::default().hash_one((id, copy))
}
