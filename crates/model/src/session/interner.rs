//! Texts that a session holds once, each named by a number.
//!
//! The id of a call stands on the call, on its result and in the list of calls; a number for
//! it takes four bytes, and all texts lie behind each other in one piece of memory.

use std::hash::BuildHasher;
use std::num::NonZeroU32;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::Index;

/// An index that may be missing, in four bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OptionalIndex(Option<NonZeroU32>);

impl OptionalIndex {
    pub(super) fn get(self) -> Option<Index> {
        self.0.map(|number| number.get() - 1)
    }
}

impl From<Option<Index>> for OptionalIndex {
    fn from(index: Option<Index>) -> OptionalIndex {
        OptionalIndex(index.and_then(|index| NonZeroU32::new(index.wrapping_add(1))))
    }
}

/// Texts one behind the other.
#[derive(Clone, Debug, Default)]
pub(super) struct TextArena {
    all: String,
    ends: Vec<u64>,
}

impl TextArena {
    /// Makes room for so many more texts and bytes.
    pub(super) fn make_room(&mut self, more: impl Fn(usize) -> usize) {
        let _ = self.all.try_reserve_exact(more(self.all.len()));
        let _ = self.ends.try_reserve_exact(more(self.ends.len()));
    }

    /// Keeps a text and gives its number.
    pub(super) fn push(&mut self, text: &str) -> Index {
        self.all.push_str(text);
        self.ends.push(self.all.len() as u64);
        self.ends.len() as Index - 1
    }

    /// The text with this number; empty if there is none.
    pub(super) fn get(&self, at: Index) -> &str {
        let at = at as usize;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before));
        let start = start.map_or(0, |start| *start as usize);
        let end = self.ends.get(at).map_or(start, |end| *end as usize);
        self.all.get(start..end).unwrap_or_default()
    }
}

/// Distinct texts.
#[derive(Clone, Debug, Default)]
pub(super) struct TextInterner {
    texts: TextArena,
    index: HashTable<Index>,
    hasher: RandomState,
}

impl TextInterner {
    /// Makes room for so many more texts.
    pub(super) fn make_room(&mut self, more: impl Fn(usize) -> usize) {
        self.texts.make_room(more);
    }

    /// The number of a text, which is kept if it is new.
    pub(super) fn add(&mut self, text: &str) -> Index {
        if let Some(known) = self.find(text) {
            return known;
        }
        let at = self.texts.push(text);
        let (texts, hasher) = (&self.texts, &self.hasher);
        let hash = |&at: &Index| hasher.hash_one(texts.get(at));
        self.index.insert_unique(hash(&at), at, hash);
        at
    }

    /// The number of a text that is kept.
    pub(super) fn find(&self, text: &str) -> Option<Index> {
        let same = |&at: &Index| self.texts.get(at) == text;
        self.index.find(self.hasher.hash_one(text), same).copied()
    }

    /// The text with this number; empty if there is none.
    pub(super) fn get(&self, at: Index) -> &str {
        self.texts.get(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_number_and_comes_back() {
        let mut pool = TextInterner::default();
        let texts = ["", "toolu_1", "äöü", "toolu_2"];
        let numbers: Vec<Index> = texts.iter().map(|text| pool.add(text)).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        for (text, number) in texts.iter().zip(numbers) {
            assert_eq!((pool.add(text), pool.get(number)), (number, *text));
            assert_eq!(pool.find(text), Some(number));
        }
        assert_eq!((pool.find("toolu_3"), pool.get(9)), (None, ""));
    }

    #[test]
    fn a_slot_holds_an_index_or_nothing_in_four_bytes() {
        assert_eq!(size_of::<OptionalIndex>(), 4);
        for index in [None, Some(0), Some(7)] {
            assert_eq!(OptionalIndex::from(index).get(), index);
        }
    }
}
