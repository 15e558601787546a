//! A long list of messages that is never moved.
//!
//! A vector that grows is copied to where there is room for twice as many, and what it leaves
//! behind is of little use for anything else.

use std::ops::{Index, IndexMut};

use super::CountedMessage;

/// Messages, by their number.
#[derive(Clone, Debug, Default)]
pub struct CountedMessages {
    /// Each but the last is full.
    chunks: Vec<Vec<CountedMessage>>,
}

/// How many messages a chunk has room for.
const CHUNK: usize = 1024;

impl CountedMessages {
    pub(super) fn push(&mut self, one: CountedMessage) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(one),
            _ => {
                let mut next = Vec::with_capacity(CHUNK);
                next.push(one);
                self.chunks.push(next);
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        let last = self.chunks.last().map_or(0, Vec::len);
        self.chunks.len().saturating_sub(1) * CHUNK + last
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// All of them in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &CountedMessage> {
        self.chunks.iter().flatten()
    }
}

impl Index<u32> for CountedMessages {
    type Output = CountedMessage;

    fn index(&self, at: u32) -> &CountedMessage {
        let at = at as usize;
        &self.chunks[at / CHUNK][at % CHUNK]
    }
}

impl IndexMut<u32> for CountedMessages {
    fn index_mut(&mut self, at: u32) -> &mut CountedMessage {
        let at = at as usize;
        &mut self.chunks[at / CHUNK][at % CHUNK]
    }
}
