//! Changing a session: what becomes of each line, and the proof that the result still resumes.
//!
//! An operation looks at a [`Session`] and writes its wishes into a [`Plan`]: this line goes,
//! this block is cut. [`Plan::settle`] then makes the plan whole: calls go with their results,
//! no thinking stays alone, everything that names a line that goes is pointed elsewhere, the
//! live branch reads alike in every client. A [`Pen`] writes the new lines, one after the
//! other, by splicing the old ones; and [`check`] reads what was written as if for the first
//! time and compares it with what was wanted.
//!
//! Nothing here reads or writes files, and lines that nobody wants changed keep every byte.
//!
//! [`Session`]: crate::session::Session

mod ages;
pub mod check;
pub mod compress;
pub mod cut;
pub mod cutter;
mod detour;
pub mod identity;
pub mod lines;
mod links;
mod lost;
pub mod merge;
mod pen;
mod places;
mod plan;
pub mod redact;
pub mod repair;
mod settle;
pub mod slim;
pub mod summary;
pub mod thinking;
pub mod tools;

pub use lost::{Loss, Lost};
pub use pen::{Pen, Written};
pub use plan::{BlockChange, Counts, Plan, Settings};

use crate::session::Session;
use crate::tokens;
use crate::view::messages;
use crate::view::profile::Profile;

/// About how many tokens the conversation takes that a client would send.
pub fn tokens(session: &Session) -> u64 {
    let live = messages::live_lines(session, Profile::Strict);
    let records = live.iter().map(|&at| &session.records[at as usize]);
    let spoken = records.filter(|record| record.is_conversation());
    let blocks = spoken.flat_map(|record| session.blocks_of(record));
    blocks.map(tokens::of_block).sum()
}

/// Why something cannot be done; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why, for a person.
    pub why: String,
}

impl Refused {
    fn new(why: String) -> Refused {
        Refused { why }
    }
}
