//! Thinking that goes.
//!
//! Whole turns lose it or keep it: the API takes a turn without its thinking, but not one in
//! which some of it was changed. A share of less than all never reaches the last turn, so one
//! that is still going on keeps what the model needs to go on.

use super::turn_age::TurnAges;
use super::{EditPlan, LossKind};
use crate::session::{Index, Session};

/// How much of it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingShare {
    /// All of it.
    All,
    /// That of the oldest turns, in percent of the turns; 100 and more is all.
    Oldest(u8),
}

/// Lets the thinking of the session itself go. Signatures of what stays are not touched.
pub fn strip(session: &Session, plan: &mut EditPlan, share: ThinkingShare) {
    let ages = TurnAges::new(session, plan);
    let behind = match share {
        ThinkingShare::All => u32::MAX,
        ThinkingShare::Oldest(percent) => ages.behind(percent),
    };
    for (at, record) in session.records.iter().enumerate() {
        let at = at as Index;
        if ages.of(at).is_none_or(|age| age >= behind) {
            continue;
        }
        for number in record.blocks.clone() {
            let is_thinking = session.blocks[number as usize].kind.is_thinking();
            if is_thinking && !plan.is_removed(at, number) {
                plan.remove_block(at, number);
                plan.lose(session, at, LossKind::Thinking, &[number]);
            }
        }
    }
}
