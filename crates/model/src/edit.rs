//! Changing a session: what becomes of each line, and the proof that the result still resumes.
//!
//! An operation looks at a [`Session`] and writes its wishes into an [`EditPlan`]: this line goes,
//! this block is cut. [`EditPlan::settle`] then makes the plan whole: calls go with their results,
//! no thinking stays alone, everything that names a line that goes is pointed elsewhere, the
//! live branch reads alike in every client. A [`LineRewriter`] writes the new lines, one after the
//! other, by splicing the old ones; and [`check`] reads what was written as if for the first
//! time and compares it with what was wanted.
//!
//! Nothing here reads or writes files, and lines that nobody wants changed keep every byte.
//!
//! [`Session`]: crate::session::Session

pub mod check;
pub mod compress;
pub mod copy_identity;
pub mod cut_turns;
mod edit_loss;
mod id_references;
pub mod inserted_lines;
mod line_rewriter;
pub mod merge;
mod plan;
pub mod redact;
mod relink;
pub mod repair;
mod repair_references;
mod replacement_map;
pub mod slim;
pub mod summary;
pub mod thinking;
pub mod tools;
pub mod truncate;
mod turn_age;

pub use edit_loss::{EditLoss, LossKind};
pub use line_rewriter::{LineRewriter, RewriteCounts};
pub use plan::{BlockChange, EditPlan, PlanCounts, PlanSettings};

use crate::session::Session;
use crate::token_estimate;
use crate::view::client_profile::ClientProfile;
use crate::view::messages;

/// About how many tokens the conversation takes that a client would send.
pub fn tokens(session: &Session) -> u64 {
    let live = messages::live_lines(session, ClientProfile::Strict);
    let records = live.iter().map(|&at| &session.records[at as usize]);
    let spoken = records.filter(|record| record.is_conversation());
    let blocks = spoken.flat_map(|record| session.blocks_of(record));
    blocks.map(token_estimate::of_block).sum()
}

/// Why something cannot be done; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditError {
    /// Why, for a person.
    pub why: String,
}

impl EditError {
    fn new(why: String) -> EditError {
        EditError { why }
    }
}
