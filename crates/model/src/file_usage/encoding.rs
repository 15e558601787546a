//! A file's spending as few bytes, and back.
//!
//! Numbers are written seven bits at a time, texts with their length in front. What was
//! damaged or cut on disk reads as nothing; who asked reads the transcript again.

use std::num::NonZeroU64;

use super::{FileUsage, MessageFlags, MessageUsage};
use crate::entry::reply::LineOrigin;
use crate::text_counts::TextCounts;
use crate::time::Time;
use crate::usage::{PricingTerms, Usage};

/// How few bytes a message takes.
const SHORTEST: usize = 13;

/// How long an id usually is.
const USUAL_ID: usize = 28;

/// Raise this when packed bytes mean something else.
pub const FORMAT: u32 = 2;

impl FileUsage {
    /// Writes it down.
    pub fn pack(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.messages.len() * 56);
        let LineOrigin {
            cwd,
            session,
            agent,
        } = &self.origin;
        for text in [cwd, session, agent] {
            number(&mut out, u64::from(text.is_some()));
            words(&mut out, text.as_deref().unwrap_or_default());
        }
        for names in [&self.models, &self.versions] {
            number(&mut out, names.len() as u64);
            names.iter().for_each(|(name, _)| words(&mut out, name));
        }
        number(&mut out, u64::from(self.last.is_some()));
        number(&mut out, self.last.map_or(0, |last| zigzag(last.0)));
        number(&mut out, self.messages.len() as u64);
        for spent in &self.messages {
            self.pack_one(spent, &mut out);
        }
        out
    }

    fn pack_one(&self, spent: &MessageUsage, out: &mut Vec<u8>) {
        words(out, self.id(spent));
        let Usage {
            input,
            output,
            cache_read,
            cache_write_5m,
            cache_write_1h,
        } = spent.usage;
        let terms = spent.terms;
        let marks = spent.marks;
        let flags = [
            marks.copy,
            marks.sidechain,
            marks.forked,
            marks.stopped,
            marks.synthetic,
            terms.batch,
            terms.fast,
            terms.us,
            spent.at.is_some(),
            terms.stated.is_some(),
        ];
        let bits = flags
            .iter()
            .rev()
            .fold(0, |bits, &flag| bits << 1 | u64::from(flag));
        let at = spent.at.map_or(0, |at| zigzag(at.0));
        let index = |name: Option<u32>| name.map_or(0, |name| u64::from(name) + 1);
        let numbers = [
            bits,
            input,
            output,
            cache_read,
            cache_write_5m,
            cache_write_1h,
            u64::from(terms.web_searches),
            at,
            spent.offset,
            u64::from(spent.lines),
            index(spent.model),
            index(spent.version),
        ];
        numbers.iter().for_each(|value| number(out, *value));
        if let Some(stated) = terms.stated {
            number(out, stated.get());
        }
    }

    /// Reads it back; `None` if these are not such bytes.
    pub fn unpack(bytes: &[u8]) -> Option<FileUsage> {
        let mut spending = FileUsage::default();
        spending.refill(bytes)?;
        Some(spending)
    }

    /// The same in the memory that another one took; `None` leaves nothing that counts.
    pub fn refill(&mut self, bytes: &[u8]) -> Option<()> {
        self.messages.clear();
        self.ids.clear();
        self.known.clear();
        (self.models, self.versions) = Default::default();
        let mut input = PackedReader(bytes);
        let mut texts = [None, None, None];
        for text in &mut texts {
            let is_there = input.number()? == 1;
            let words = input.words()?;
            *text = is_there.then(|| words.to_owned());
        }
        let [cwd, session, agent] = texts;
        self.origin = LineOrigin {
            cwd,
            session,
            agent,
        };
        for names in [&mut self.models, &mut self.versions] {
            for _ in 0..input.number()? {
                names.add(input.words()?);
            }
        }
        let has_last = input.number()? == 1;
        let last = unzigzag(input.number()?);
        self.last = has_last.then_some(Time(last));
        let count = input.number()?;
        // As many as can be in what is left, so that a damaged number takes no memory.
        let room = usize::try_from(count).ok()?.min(input.0.len() / SHORTEST);
        self.messages.reserve_exact(room);
        self.ids.reserve_exact(room * USUAL_ID);
        for _ in 0..count {
            let (spent, id) = input.spent(self)?;
            let start = u32::try_from(self.ids.len()).ok()?;
            self.ids.push_str(id);
            self.messages.push(MessageUsage {
                id: (start, id.len() as u32),
                ..spent
            });
        }
        input.0.is_empty().then_some(())
    }
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn words(out: &mut Vec<u8>, text: &str) {
    number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Small numbers stay small, also negative ones.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

struct PackedReader<'a>(&'a [u8]);

impl<'a> PackedReader<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn words(&mut self) -> Option<&'a str> {
        let len = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    fn spent(&mut self, spending: &FileUsage) -> Option<(MessageUsage, &'a str)> {
        let id = self.words()?;
        let mut numbers = [0; 12];
        for slot in &mut numbers {
            *slot = self.number()?;
        }
        let [
            bits,
            input,
            output,
            cache_read,
            write_5m,
            write_1h,
            searches,
            at,
            offset,
            lines,
            model,
            version,
        ] = numbers;
        let flag = |nth: u32| bits >> nth & 1 == 1;
        let stated = match flag(9) {
            true => NonZeroU64::new(self.number()?),
            false => None,
        };
        let index = |value: u64, names: &TextCounts| match value {
            0 => Some(None),
            _ => u32::try_from(value - 1)
                .ok()
                .filter(|&name| (name as usize) < names.len())
                .map(Some),
        };
        let spent = MessageUsage {
            usage: Usage {
                input,
                output,
                cache_read,
                cache_write_5m: write_5m,
                cache_write_1h: write_1h,
            },
            terms: PricingTerms {
                web_searches: u32::try_from(searches).ok()?,
                batch: flag(5),
                fast: flag(6),
                us: flag(7),
                stated,
            },
            at: flag(8).then(|| Time(unzigzag(at))),
            offset,
            lines: u32::try_from(lines).ok()?,
            model: index(model, &spending.models)?,
            version: index(version, &spending.versions)?,
            marks: MessageFlags {
                copy: flag(0),
                sidechain: flag(1),
                forked: flag(2),
                stopped: flag(3),
                synthetic: flag(4),
            },
            id: (0, 0),
        };
        Some((spent, id))
    }
}
