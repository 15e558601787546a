//! Makes a plan whole: what must go together goes together.

use super::plan::{BlockChange, EditPlan, PlanCounts, PlanSettings};
use super::relink;
use crate::block::BlockKind;
use crate::session::{Index, Message, Session};

impl EditPlan {
    /// Makes the plan whole. Call it once, when all operations have had their say.
    ///
    /// Calls and results go together; a line without blocks goes; a message of which only
    /// thinking is left goes; one that lost its calls ends the turn; and whatever names a
    /// line that goes is pointed elsewhere.
    pub fn repair_references(&mut self, session: &Session, settings: PlanSettings) {
        pair(self, session);
        self.repair_paired_references(session, settings);
    }

    /// The same for a plan that takes calls and results apart as it should.
    pub(super) fn repair_paired_references(&mut self, session: &Session, settings: PlanSettings) {
        empty(self, session);
        for message in &session.messages {
            unthink(self, session, message);
            end_turn(self, session, message);
        }
        empty(self, session);
        self.counts = counts(self, session);
        relink::relink(self, session, settings);
        self.forget_dropped();
    }
}

/// A call goes with its result, a result with its call.
fn pair(plan: &mut EditPlan, session: &Session) {
    for call in &session.calls {
        let Some(result) = &call.result else { continue };
        let there = plan.is_removed(call.record, call.block);
        let here = plan.is_removed(result.record, result.block);
        if there && !here {
            plan.remove_block(result.record, result.block);
            plan.remove_copy(result.record);
        } else if here && !there {
            plan.remove_block(call.record, call.block);
        }
    }
}

/// A line all of whose blocks go, goes.
fn empty(plan: &mut EditPlan, session: &Session) {
    for at in 0..session.records.len() as Index {
        let blocks = session.records[at as usize].blocks.clone();
        if !blocks.is_empty() && blocks.clone().all(|block| plan.is_removed(at, block)) {
            plan.drop(at);
        }
    }
}

/// The blocks of a message that stay.
fn left<'a>(
    plan: &'a EditPlan,
    session: &'a Session,
    message: &'a Message,
) -> impl Iterator<Item = (Index, Index)> + 'a {
    message.records.iter().flat_map(move |&record| {
        let blocks = session.records[record as usize].blocks.clone();
        blocks
            .filter(move |&block| !plan.is_removed(record, block))
            .map(move |block| (record, block))
    })
}

/// Whether the plan takes something from a message.
fn is_touched(plan: &EditPlan, session: &Session, message: &Message) -> bool {
    let touched = |at: &Index| plan.is_touched(session, *at);
    message.records.iter().any(touched)
}

/// Thinking without what was thought about is refused by the API.
fn unthink(plan: &mut EditPlan, session: &Session, message: &Message) {
    if !is_touched(plan, session, message) {
        return;
    }
    let kind = |block: Index| session.blocks[block as usize].kind;
    let rest: Vec<(Index, Index)> = left(plan, session, message).collect();
    if rest.iter().all(|&(_, block)| kind(block).is_thinking()) {
        for (record, block) in rest {
            plan.remove_block(record, block);
        }
    }
}

/// A message that no longer calls did not stop to call.
fn end_turn(plan: &mut EditPlan, session: &Session, message: &Message) {
    if !is_touched(plan, session, message) {
        return;
    }
    let calls = |block: Index| session.blocks[block as usize].kind == BlockKind::ToolUse;
    let all = message.records.iter();
    let mut all = all.flat_map(|&record| session.records[record as usize].blocks.clone());
    let still = left(plan, session, message).any(|(_, block)| calls(block));
    if all.any(calls) && !still {
        for &record in &message.records {
            if !plan.is_dropped(record) {
                plan.end_turn(record);
            }
        }
    }
}

/// What goes and what is cut, each call once.
fn counts(plan: &EditPlan, session: &Session) -> PlanCounts {
    let mut counts = PlanCounts::default();
    for call in &session.calls {
        let is_cut =
            |record, block| matches!(plan.change(record, block), Some(BlockChange::Cut(_)));
        let result = call.result.as_ref();
        if plan.is_removed(call.record, call.block) {
            counts.calls_removed += 1;
        } else if is_cut(call.record, call.block)
            || result.is_some_and(|result| is_cut(result.record, result.block))
        {
            counts.calls_truncated += 1;
        }
    }
    for (at, record) in session.records.iter().enumerate() {
        let blocks = record.blocks.clone();
        let thinks = |block: &Index| session.blocks[*block as usize].kind.is_thinking();
        let gone = blocks.filter(|block| thinks(block) && plan.is_removed(at as Index, *block));
        counts.thinking_removed += gone.count() as u64;
    }
    counts
}
