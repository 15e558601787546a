//! Every message of all files once.
//!
//! Files are added one after the other, in any order, and need not be kept: what remains of
//! a message is some fifty bytes, so that months of transcripts fit into little memory.

use std::borrow::Cow;
use std::hash::BuildHasher;
use std::num::NonZeroU64;

use foldhash::HashMap;
use hashbrown::HashTable;

use super::counted_messages::CountedMessages;
use super::{CountOutcome, context, is_unfinished};
use crate::entry::reply::LineOrigin;
use crate::file_usage::{FileUsage, MessageFlags, MessageUsage};
use crate::price::{Cost, ModelPrice, Prices};
use crate::session::{Message, Session, TranscriptRole};
use crate::text_counts::TextCounts;
use crate::time::Time;
use crate::usage::{PricingTerms, Usage};

/// A message that counts.
#[derive(Clone, Debug)]
pub struct CountedMessage {
    /// Stands for its id.
    print: u64,
    /// In milliseconds; [`NEVER`] if nobody says.
    at: i64,
    tokens: [u32; 5],
    /// The file it counts in: the oldest that holds it.
    pub file: u32,
    /// The number of its model in [`UsageLedger::models`], plus one.
    model: u16,
    /// The number of its version in [`UsageLedger::versions`], plus one.
    version: u16,
    searches: u16,
    flags: u8,
}

/// The time of a message that has none.
const NEVER: i64 = i64::MIN;

const COPY: u8 = 1;
const SIDECHAIN: u8 = 2;
const FORKED: u8 = 4;
const STOPPED: u8 = 8;
const BATCH: u8 = 16;
const FAST: u8 = 32;
const US: u8 = 64;

/// What a ledger keeps of a file beside its messages.
#[derive(Clone, Debug, Default)]
pub struct FileFacts {
    /// The number of the directory it was written in, in [`UsageLedger::origins`].
    cwd: Option<u32>,
    /// The number of the session that its lines name.
    session: Option<u32>,
    /// The latest time on a message.
    pub last: Option<Time>,
    /// How full its context is: what its last reply was given.
    pub context: Option<u64>,
    /// The number of the model of that reply in [`UsageLedger::models`], plus one.
    context_model: u16,
}

/// The messages that count.
#[derive(Clone, Debug, Default)]
pub struct UsageLedger {
    /// The messages.
    pub counted: CountedMessages,
    /// The files, by their number.
    pub files: Vec<FileFacts>,
    /// Names of models.
    pub models: TextCounts,
    /// Versions of the client.
    pub versions: TextCounts,
    /// Directories and sessions.
    origins: TextCounts,
    places: HashTable<u32>,
    /// What clients said that messages cost, by what stands for their ids.
    stated: HashMap<u64, NonZeroU64>,
}

/// The price of each model of a ledger, so that each is looked up once.
#[derive(Clone, Debug)]
pub struct LedgerPrices<'a>(Vec<Option<&'a ModelPrice>>);

impl UsageLedger {
    /// The messages of these files.
    pub fn of(files: &[&FileUsage]) -> UsageLedger {
        let mut ledger = UsageLedger::default();
        for (file, spending) in (0..).zip(files) {
            ledger.add(file, spending);
        }
        ledger
    }

    /// Adds the messages of the file with this number.
    ///
    /// A sub-agent's own file comes before the copy in its parent's progress lines, which
    /// may hold a placeholder. Among files that hold a message themselves, the tokens are
    /// the maximum, and it counts in the oldest: the main thread comes before helpers that
    /// repeat it (a compaction has a file that begins with the conversation), one that does
    /// not say it was forked before one that does, then the one whose last message is
    /// earlier, then the order of the files.
    pub fn add(&mut self, file: u32, spending: &FileUsage) {
        let at = file as usize;
        if self.files.len() <= at {
            self.files.resize_with(at + 1, FileFacts::default);
        }
        let LineOrigin { cwd, session, .. } = &spending.origin;
        let (cwd, session) = (cwd.as_deref(), session.as_deref());
        let models = numbers(&mut self.models, &spending.models);
        let versions = numbers(&mut self.versions, &spending.versions);
        let number = |all: &[u16], nth: Option<u32>| {
            let nth = nth.and_then(|nth| all.get(nth as usize));
            nth.copied().unwrap_or(0)
        };
        let context = context(spending);
        self.files[at] = FileFacts {
            cwd: cwd.map(|cwd| self.origins.add(cwd)),
            session: session.map(|session| self.origins.add(session)),
            last: spending.last,
            context: context.map(|last| last.usage.context()),
            context_model: number(&models, context.and_then(|last| last.model)),
        };
        let real = |spent: &&MessageUsage| !spent.marks.synthetic;
        for spent in spending.messages.iter().filter(real) {
            let mut new = CountedMessage::new(print(spending.id(spent)), file, spent);
            new.model = number(&models, spent.model);
            new.version = number(&versions, spent.version);
            self.state(&new, spent.terms);
            self.enter(new);
        }
    }

    /// Adds the messages of a session that was read whole, as the file with this number. The
    /// same counts as if its lines had been scanned.
    pub fn add_session(&mut self, file: u32, session: &Session) {
        let at = file as usize;
        if self.files.len() <= at {
            self.files.resize_with(at + 1, FileFacts::default);
        }
        let own = session.messages.iter().map(|message| (message, false));
        let copies = session.copies.iter().map(|message| (message, true));
        let all = || own.clone().chain(copies.clone());
        self.files[at].last = all().filter_map(|(message, _)| message.last()).max();
        // Most messages are of the model of the one before.
        let mut last: Option<(u32, u16)> = None;
        for (message, copy) in all().filter(|(message, _)| is_counted(message)) {
            let mut new = CountedMessage::of(file, session, message, copy);
            new.model = match (message.model(), last) {
                (None, _) => 0,
                (Some(name), Some((known, model))) if name == known => model,
                (Some(name), _) => {
                    let number = self.models.add(session.text(name)) + 1;
                    let number = u16::try_from(number).unwrap_or(0);
                    last = Some((name, number));
                    number
                }
            };
            self.state(&new, session.terms_of(message));
            self.enter(new);
        }
    }

    /// Notes what a client said that a message cost.
    fn state(&mut self, one: &CountedMessage, terms: PricingTerms) {
        if let Some(stated) = terms.stated {
            let known = self.stated.entry(one.print).or_insert(stated);
            *known = stated.max(*known);
        }
    }

    /// The number of the message that counts for this one of a session.
    pub fn find_message(&self, session: &Session, message: &Message) -> Option<u32> {
        self.find(&message_key(session, message))
    }

    /// The price of each model.
    pub fn prices<'a>(&self, prices: &'a Prices) -> LedgerPrices<'a> {
        let models = self.models.iter();
        LedgerPrices(models.map(|(model, _)| prices.find(model)).collect())
    }

    /// What a message costs: by its price, else as its client said; `None` if neither is known.
    pub fn charge(&self, one: &CountedMessage, prices: &LedgerPrices<'_>) -> Option<Cost> {
        let price = || prices.0.get(one.model()? as usize).copied().flatten();
        let known = price().and_then(|price| price.charge(one.usage(), one.terms()).ok());
        known.or_else(|| {
            let stated = self.stated.get(&one.print)?;
            Some(Cost(u128::from(stated.get())))
        })
    }

    /// How full the context of a file is, and how much fits.
    pub fn context(&self, file: u32, prices: &Prices) -> Option<(u64, Option<u64>)> {
        let facts = self.files.get(file as usize)?;
        let tokens = facts.context?;
        let model = facts.context_model.checked_sub(1);
        let model = model.map(|model| self.models.get(u32::from(model)));
        Some((tokens, model.and_then(|model| prices.limit(model, tokens))))
    }

    fn enter(&mut self, new: CountedMessage) {
        let UsageLedger {
            counted,
            files,
            places,
            ..
        } = self;
        let same = |&at: &u32| counted[at].print == new.print;
        if let Some(&at) = places.find(new.print, same) {
            counted[at].meet(new, files);
            return;
        }
        let at = counted.len() as u32;
        places.insert_unique(new.print, at, |&at| counted[at].print);
        counted.push(new);
    }

    /// The directory that a file was written in, and its session, as its lines say.
    pub fn origin(&self, file: u32) -> (Option<&str>, Option<&str>) {
        let facts = self.files.get(file as usize);
        let name = |number: Option<u32>| number.map(|number| self.origins.get(number));
        facts.map_or((None, None), |facts| (name(facts.cwd), name(facts.session)))
    }

    /// The number of the message with this id, if it counts.
    pub fn find(&self, id: &str) -> Option<u32> {
        let print = print(id);
        let same = |&at: &u32| self.counted[at].print == print;
        self.places.find(print, same).copied()
    }

    /// What became of a message of this file, and the number of the counted message it
    /// belongs to (none for what the client wrote).
    pub fn count_outcome(
        &self,
        file: u32,
        spending: &FileUsage,
        spent: &MessageUsage,
    ) -> (CountOutcome, Option<u32>) {
        if spent.marks.synthetic {
            return (CountOutcome::Synthetic, None);
        }
        let of = self.find(spending.id(spent));
        let fate = match of.map(|at| &self.counted[at]) {
            // A file holds a message once itself, and once as a copy.
            Some(one) if one.file == file && one.has(COPY) == spent.marks.copy => {
                CountOutcome::Counted
            }
            Some(one) if spent.marks.copy && !one.has(COPY) => CountOutcome::Copy,
            _ => CountOutcome::Elsewhere,
        };
        (fate, of)
    }

    /// The model of a message.
    pub fn model(&self, one: &CountedMessage) -> Option<&str> {
        one.model().map(|model| self.models.get(model))
    }

    /// The version that wrote a message, if that version may have left its output unfinished.
    ///
    /// Up to 2.1.58 lines were written while the message streamed, and what the output came
    /// to was often never written (2.0.36 to 2.0.42 excepted).
    pub fn floor(&self, one: &CountedMessage) -> Option<&str> {
        let version = self.versions.get(one.version().filter(|_| !one.stopped())?);
        is_unfinished(version).then_some(version)
    }
}

impl CountedMessage {
    fn new(print: u64, file: u32, spent: &MessageUsage) -> CountedMessage {
        let flags = [
            (COPY, spent.marks.copy),
            (SIDECHAIN, spent.marks.sidechain),
            (FORKED, spent.marks.forked),
            (STOPPED, spent.marks.stopped),
            (BATCH, spent.terms.batch),
            (FAST, spent.terms.fast),
            (US, spent.terms.us),
        ];
        CountedMessage {
            print,
            at: spent.at.map_or(NEVER, |at| at.0),
            tokens: packed(spent.usage),
            file,
            model: 0,
            version: 0,
            searches: u16::try_from(spent.terms.web_searches).unwrap_or(u16::MAX),
            flags: flags.iter().map(|(bit, is)| bit * u8::from(*is)).sum(),
        }
    }

    /// A message of a session that was read whole.
    fn of(file: u32, session: &Session, message: &Message, copy: bool) -> CountedMessage {
        let inside = session.role() == TranscriptRole::Agent || message.thread != 0;
        let terms = session.terms_of(message);
        let flags = [
            (COPY, copy),
            (SIDECHAIN, inside && !copy),
            (FORKED, session.forked_from.is_some()),
            (STOPPED, message.stop().is_some()),
            (BATCH, terms.batch),
            (FAST, terms.fast),
            (US, terms.us),
        ];
        CountedMessage {
            print: print(&message_key(session, message)),
            at: message.first().map_or(NEVER, |at| at.0),
            tokens: packed(session.usage_of(message)),
            file,
            model: 0,
            version: 0,
            searches: u16::try_from(terms.web_searches).unwrap_or(u16::MAX),
            flags: flags.iter().map(|(bit, is)| bit * u8::from(*is)).sum(),
        }
    }

    /// Its tokens: the maximum of all lines in all files.
    pub fn usage(&self) -> Usage {
        let [input, output, cache_read, cache_write_5m, cache_write_1h] =
            self.tokens.map(u64::from);
        Usage {
            input,
            output,
            cache_read,
            cache_write_5m,
            cache_write_1h,
        }
    }

    /// What else decides its price.
    pub fn terms(&self) -> PricingTerms {
        PricingTerms {
            web_searches: u32::from(self.searches),
            batch: self.has(BATCH),
            fast: self.has(FAST),
            us: self.has(US),
            stated: None,
        }
    }

    /// The time of its first line.
    pub fn at(&self) -> Option<Time> {
        (self.at != NEVER).then_some(Time(self.at))
    }

    /// What is true of it.
    pub fn marks(&self) -> MessageFlags {
        MessageFlags {
            copy: self.has(COPY),
            sidechain: self.has(SIDECHAIN),
            forked: self.has(FORKED),
            stopped: self.has(STOPPED),
            synthetic: false,
        }
    }

    /// Whether any line was written when its tokens were known to the end.
    pub fn stopped(&self) -> bool {
        self.has(STOPPED)
    }

    /// The number of its model.
    pub fn model(&self) -> Option<u32> {
        self.model.checked_sub(1).map(u32::from)
    }

    /// The number of the version of the client.
    pub fn version(&self) -> Option<u32> {
        self.version.checked_sub(1).map(u32::from)
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The same message once more.
    fn meet(&mut self, other: CountedMessage, files: &[FileFacts]) {
        match (self.has(COPY), other.has(COPY)) {
            (true, false) => *self = other,
            (false, true) => {}
            _ => self.join(&other, files),
        }
    }

    fn join(&mut self, other: &CountedMessage, files: &[FileFacts]) {
        let age = |one: &CountedMessage| {
            let last = files[one.file as usize].last;
            (one.has(SIDECHAIN), one.has(FORKED), last, one.file)
        };
        let is_older = age(other) < age(self);
        let said = (STOPPED | BATCH | FAST | US) & (self.flags | other.flags);
        let tokens = packed(self.usage().max(other.usage()));
        let searches = self.searches.max(other.searches);
        let younger = if is_older {
            std::mem::replace(self, other.clone())
        } else {
            other.clone()
        };
        if self.at == NEVER {
            self.at = younger.at;
        }
        self.flags |= said;
        (self.tokens, self.searches) = (tokens, searches);
    }
}

/// Whether a message of a session can count: it says how many tokens it took, and a model wrote
/// it.
pub fn is_counted(message: &Message) -> bool {
    message.has_usage() && !message.synthetic
}

/// What a message is known by: its id, else that of its line, else where it stands.
pub(crate) fn message_key<'a>(session: &'a Session, message: &'a Message) -> Cow<'a, str> {
    if let Some(id) = session.message_id(message) {
        return Cow::Borrowed(id);
    }
    let record = message
        .records
        .first()
        .map(|&at| &session.records[at as usize]);
    match record.and_then(|record| record.uuid.as_ref()) {
        Some(uuid) => Cow::Owned(uuid.to_string()),
        None => {
            let offset = record.map_or(0, |record| record.offset);
            Cow::Owned(crate::file_usage::nameless(
                offset,
                message.first(),
                session.usage_of(message),
            ))
        }
    }
}

/// Tokens of one message. None has four thousand million.
fn packed(usage: Usage) -> [u32; 5] {
    let Usage {
        input,
        output,
        cache_read,
        cache_write_5m,
        cache_write_1h,
    } = usage;
    [input, output, cache_read, cache_write_5m, cache_write_1h]
        .map(|count| u32::try_from(count).unwrap_or(u32::MAX))
}

/// The numbers, plus one, that the names of a file have among all.
fn numbers(all: &mut TextCounts, names: &TextCounts) -> Vec<u16> {
    let number = |(name, _): (&str, u32)| u16::try_from(all.add(name) + 1).unwrap_or(0);
    names.iter().map(number).collect()
}

/// Stands for an id. That two of a million share one happens once in some ten million times.
fn print(id: &str) -> u64 {
    foldhash::quality::FixedState::default().hash_one(id.as_bytes())
}
