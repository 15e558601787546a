//! Distinct texts in the order they were first met, and how often each was.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// A list of distinct texts with counts; a text is named by its index.
#[derive(Clone, Debug, Default)]
pub struct TextCounts {
    items: Vec<(Box<str>, u32)>,
    /// The index of each text, so that it is held once.
    index: HashTable<u32>,
    hasher: RandomState,
    last: usize,
    /// How many bytes all of them have.
    bytes: usize,
}

/// What stands for all texts for which there is no room.
pub const OTHERS: &str = "…";

/// How many distinct texts are kept, and how many bytes of them: whoever writes names writes
/// some dozens. The rest is counted together, under [`OTHERS`].
const MOST_TEXTS: usize = 65_000;
const MOST_BYTES: usize = 8 << 20;

impl TextCounts {
    /// Counts a text and gives its index.
    pub fn add(&mut self, text: &str) -> u32 {
        // Lines mostly repeat what the line before said.
        if let Some((known, count)) = self.items.get_mut(self.last)
            && &**known == text
        {
            *count += 1;
            return self.last as u32;
        }
        let at = self
            .find(text)
            .unwrap_or_else(|| self.enter_or_others(text));
        self.items[at as usize].1 += 1;
        self.last = at as usize;
        at
    }

    fn enter_or_others(&mut self, text: &str) -> u32 {
        let fits = self.items.len() < MOST_TEXTS && self.bytes + text.len() <= MOST_BYTES;
        if fits {
            return self.enter(text);
        }
        self.find(OTHERS).unwrap_or_else(|| self.enter(OTHERS))
    }

    fn enter(&mut self, text: &str) -> u32 {
        self.bytes += text.len();
        let at = self.items.len() as u32;
        self.items.push((text.into(), 0));
        let (items, hasher) = (&self.items, &self.hasher);
        let hash = |&at: &u32| hasher.hash_one(&*items[at as usize].0);
        self.index.insert_unique(hash(&at), at, hash);
        at
    }

    /// The index of a text that was counted.
    pub fn find(&self, text: &str) -> Option<u32> {
        let same = |&at: &u32| &*self.items[at as usize].0 == text;
        self.index.find(self.hasher.hash_one(text), same).copied()
    }

    /// The text with this index; empty if there is none.
    pub fn get(&self, at: u32) -> &str {
        self.items.get(at as usize).map_or("", |(text, _)| text)
    }

    /// The texts in the order they were first met, with their counts.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, u32)> {
        self.items.iter().map(|(text, count)| (&**text, *count))
    }

    /// The texts alone.
    pub fn texts(&self) -> Vec<String> {
        self.iter().map(|(text, _)| text.to_owned()).collect()
    }

    /// How many distinct texts.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_texts_the_rest_is_counted_together() {
        let mut tally = TextCounts::default();
        for number in 0..MOST_TEXTS + 500 {
            tally.add(&number.to_string());
        }
        assert_eq!(tally.len(), MOST_TEXTS + 1);
        assert_eq!(tally.iter().last(), Some((OTHERS, 500)));
        assert_eq!(tally.add("7"), 7);
        let mut tally = TextCounts::default();
        let long = "x".repeat(MOST_BYTES);
        assert_eq!(
            (tally.add(&long), tally.add("y"), tally.add("z")),
            (0, 1, 1)
        );
        assert_eq!(tally.get(1), OTHERS);
    }
}
