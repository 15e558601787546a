//! Where in a text a secret could be, before anything of it is unwrapped.
//!
//! Taking escapes, terminal codes and base64 off a text costs more than looking for anchors in
//! it, and nearly no text holds a secret. But what is unwrapped can be foreseen: an escape
//! stands for one character, and no anchor has a character that is written as an escape. So an
//! anchor that is found in any layer stands in the raw bytes as it is, and one pass over these
//! says where it is worth to look. Exceptions are told apart: what can stand for any character
//! (`\u0041`, `\/`), codes of terminals, which can split an anchor, and text in base64.
//!
//! This may suspect too much, never too little; a test holds it against looking everywhere.

use std::ops::Range;

use memchr::memchr_iter;

use crate::json;
use crate::text::ESCAPE;

/// Places near which there may be a secret, in order.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    places: Vec<usize>,
    /// There is no telling where.
    anywhere: bool,
}

impl Suspects {
    /// No place is above suspicion.
    pub(super) fn anywhere() -> Suspects {
        Suspects {
            places: Vec::new(),
            anywhere: true,
        }
    }

    pub(super) fn new(mut places: Vec<usize>) -> Suspects {
        places.sort_unstable();
        Suspects {
            places,
            anywhere: false,
        }
    }

    /// Whether there can be no secret.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty() && !self.anywhere
    }

    /// Whether there may be a secret in this part of the text.
    pub(crate) fn are_in(&self, range: Range<usize>) -> bool {
        let first = self.places.partition_point(|place| *place < range.start);
        let is_inside = |place: &usize| *place < range.end;
        self.anywhere || self.places.get(first).is_some_and(is_inside)
    }
}

/// The places where something may stand for any character, or for nothing at all.
pub(super) fn disguises(bytes: &[u8], places: &mut Vec<usize>) {
    for at in memchr_iter(b'\\', bytes) {
        let is_any = match bytes.get(at + 1) {
            Some(b'/') => true,
            Some(b'u') => json::escape_len(&bytes[at..]).is_some(),
            _ => false,
        };
        if is_any {
            places.push(at);
        }
    }
    places.extend(memchr_iter(ESCAPE, bytes));
}
