//! Sets of lines, and lists of lines by line, in as few bytes as lines allow.
//!
//! A session may have half a million lines and an edit asks about all of them several times;
//! numbers that lie close together need no hashing and hardly any room.

use std::num::NonZeroU32;

use crate::session::Index;

/// Numbers that are marked: one bit for each.
#[derive(Clone, Debug, Default)]
pub struct BitSet {
    bits: Vec<u64>,
}

const BITS: usize = u64::BITS as usize;

impl BitSet {
    /// Marks a number; false if it was marked before.
    pub(crate) fn insert(&mut self, at: Index) -> bool {
        let (word, bit) = place(at);
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        let is_new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        is_new
    }

    /// Whether none is marked.
    pub(crate) fn is_empty(&self) -> bool {
        self.bits.iter().all(|bits| *bits == 0)
    }

    /// Whether a number is marked.
    pub fn contains(&self, at: Index) -> bool {
        let (word, bit) = place(at);
        self.bits.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// All marked numbers, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Index> {
        self.bits.iter().enumerate().flat_map(|(word, &bits)| {
            let all = (0..BITS).filter(move |bit| bits >> bit & 1 == 1);
            all.map(move |bit| (word * BITS + bit) as Index)
        })
    }
}

fn place(at: Index) -> (usize, u64) {
    let at = at as usize;
    (at / BITS, 1 << (at % BITS))
}

impl Extend<Index> for BitSet {
    fn extend<I: IntoIterator<Item = Index>>(&mut self, all: I) {
        for at in all {
            self.insert(at);
        }
    }
}

impl FromIterator<Index> for BitSet {
    fn from_iter<I: IntoIterator<Item = Index>>(all: I) -> BitSet {
        let mut marks = BitSet::default();
        marks.extend(all);
        marks
    }
}

/// A number for some of the numbers: four bytes for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberMap {
    behind: Vec<Option<NonZeroU32>>,
}

impl NumberMap {
    /// Makes room for so many more numbers.
    pub(crate) fn make_room(&mut self, more: impl Fn(usize) -> usize) {
        let _ = self.behind.try_reserve_exact(more(self.behind.len()));
    }

    /// Puts a number under this one.
    pub(crate) fn set(&mut self, at: Index, value: Index) {
        let (at, len) = (at as usize, self.behind.len());
        if at >= self.behind.capacity() {
            // A quarter more instead of twice as much: there are many of these at once.
            self.behind.reserve_exact((at + 1 - len).max(len / 4));
        }
        if at >= len {
            self.behind.resize(at + 1, None);
        }
        self.behind[at] = NonZeroU32::new(value.wrapping_add(1));
    }

    /// Puts a number under this one, or takes away what is there.
    pub(crate) fn put(&mut self, at: Index, value: Option<Index>) {
        match (value, self.behind.get_mut(at as usize)) {
            (Some(value), _) => self.set(at, value),
            (None, Some(behind)) => *behind = None,
            (None, None) => {}
        }
    }

    /// The number under this one.
    pub(crate) fn get(&self, at: Index) -> Option<Index> {
        let behind = self.behind.get(at as usize).copied().flatten()?;
        Some(behind.get() - 1)
    }
}

impl FromIterator<Option<Index>> for NumberMap {
    /// Numbers for all numbers from zero on.
    fn from_iter<I: IntoIterator<Item = Option<Index>>>(all: I) -> NumberMap {
        let all = all.into_iter();
        let behind = all.map(|value| NonZeroU32::new(value?.wrapping_add(1)));
        NumberMap {
            behind: behind.collect(),
        }
    }
}

impl FromIterator<(Index, Index)> for NumberMap {
    fn from_iter<I: IntoIterator<Item = (Index, Index)>>(all: I) -> NumberMap {
        let mut slots = NumberMap::default();
        all.into_iter().for_each(|(at, value)| slots.set(at, value));
        slots
    }
}

/// Lists of numbers, each list under a number.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberLists {
    pairs: Vec<(Index, Index)>,
}

impl NumberLists {
    /// The list under this number, in the order it was given.
    pub(crate) fn get(&self, key: Index) -> impl Iterator<Item = Index> + '_ {
        let start = self.pairs.partition_point(|pair| pair.0 < key);
        let found = self.pairs[start..].iter();
        found
            .take_while(move |pair| pair.0 == key)
            .map(|pair| pair.1)
    }
}

impl FromIterator<(Index, Index)> for NumberLists {
    fn from_iter<I: IntoIterator<Item = (Index, Index)>>(all: I) -> NumberLists {
        let mut pairs: Vec<(Index, Index)> = all.into_iter().collect();
        pairs.sort_by_key(|pair| pair.0);
        NumberLists { pairs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_marked_once_and_found_again() {
        let mut marks = BitSet::default();
        assert!(marks.insert(200) && marks.insert(0) && marks.insert(63) && marks.insert(64));
        assert!(!marks.insert(200) && !marks.contains(199) && !marks.contains(100_000));
        assert_eq!(marks.iter().collect::<Vec<_>>(), [0, 63, 64, 200]);
    }

    #[test]
    fn the_last_number_that_was_put_somewhere_counts() {
        let slots: NumberMap = [(5, 0), (2, 9), (5, 7)].into_iter().collect();
        let all = [5, 2, 0, 6].map(|at| slots.get(at));
        assert_eq!(all, [Some(7), Some(9), None, None]);
    }

    #[test]
    fn a_list_comes_back_in_the_order_it_was_given() {
        let lists: NumberLists = [(7, 3), (2, 9), (7, 1), (2, 9)].into_iter().collect();
        let get = |key| lists.get(key).collect::<Vec<_>>();
        assert_eq!((get(7), get(2), get(3)), (vec![3, 1], vec![9, 9], vec![]));
    }
}
