//! Calls and results: each call once, each with one result.

use std::collections::BTreeMap;

use foldhash::HashMap;

use super::repair_plan::RepairPlanner;
use crate::block::BlockKind;
use crate::edit::LossKind;
use crate::session::Index;
use crate::view::turns::{CallStatus, ThreadEnds};

/// Where calls and results with one id stand.
#[derive(Default)]
struct CallPositions {
    calls: Vec<(Index, Index)>,
    results: Vec<(Index, Index)>,
}

impl RepairPlanner<'_> {
    pub(super) fn calls(&mut self) {
        let course = ThreadEnds::of(self.session);
        let status = |call| course.status(self.session, call);
        let made = self.session.calls.iter();
        // The first of repeated calls is the one that the session knows.
        let made: HashMap<(Index, Index), CallStatus> = made
            .map(|call| ((call.record, call.block), status(call)))
            .collect();
        for (id, pair) in self.pairs() {
            if id.is_empty() {
                self.remove(&pair.calls, "bad_call", "removed a call without an id");
                let what = "removed a result without a call id";
                self.remove(&pair.results, "bad_result", what);
                continue;
            }
            let Some(call) = self.first(&pair.calls) else {
                let what = format!("removed a result: its call {id} is not in the file");
                self.remove(&pair.results, "result_without_call", &what);
                continue;
            };
            let repeated = |at: &(Index, Index)| self.is_repeated(call, *at);
            let others = pair.calls.iter().copied().filter(|&at| at != call);
            let others: Vec<_> = others.filter(|at| !repeated(at)).collect();
            let what = format!("removed the second of two calls with id {id}");
            self.remove(&others, "duplicate_call", &what);
            match self.first(&pair.results) {
                Some(result) => {
                    let others = pair.results.iter().copied().filter(|&at| at != result);
                    let others: Vec<_> = others.collect();
                    let what = format!("removed the second of two results of the call {id}");
                    self.remove(&others, "duplicate_call", &what);
                }
                None if made.get(&call) == Some(&CallStatus::Missing) => self.answer(call, &id),
                None => {}
            }
        }
    }

    /// Calls and results by id, without those that go.
    fn pairs(&self) -> BTreeMap<Box<str>, CallPositions> {
        let mut pairs: BTreeMap<Box<str>, CallPositions> = BTreeMap::new();
        for (at, record) in self.session.records.iter().enumerate() {
            for block in record.blocks.clone() {
                let place = (at as Index, block);
                if self.plan.is_removed(place.0, block) || record.is_duplicate() {
                    continue;
                }
                let block = &self.session.blocks[block as usize];
                let id = || self.session.id_of(block).unwrap_or_default().into();
                match block.kind {
                    BlockKind::ToolUse => pairs.entry(id()).or_default().calls.push(place),
                    BlockKind::ToolResult => pairs.entry(id()).or_default().results.push(place),
                    _ => {}
                }
            }
        }
        pairs
    }

    /// The first one in the conversation, or else the first one.
    fn first(&self, places: &[(Index, Index)]) -> Option<(Index, Index)> {
        let mut live = places.iter().filter(|(at, _)| self.plan.is_live(*at));
        live.next().or(places.first()).copied()
    }

    /// History that was written again is no second call, where it is on another branch.
    fn is_repeated(&self, (first, one): (Index, Index), (second, other): (Index, Index)) -> bool {
        let print = |block: Index| self.session.blocks[block as usize].print;
        let message = |at: Index| self.record(at).message();
        message(first).is_some()
            && message(first) == message(second)
            && print(one) == print(other)
            && !(self.plan.is_live(first) && self.plan.is_live(second))
    }

    fn remove(&mut self, places: &[(Index, Index)], kind: &'static str, what: &str) {
        for &(at, block) in places {
            self.plan.remove_block(at, block);
            if self.session.blocks[block as usize].kind == BlockKind::ToolResult {
                self.plan.remove_copy(at);
            } else {
                self.plan.counts.calls_removed += 1;
            }
            self.plan
                .lose(self.session, at, LossKind::Damaged, &[block]);
            self.note(at, kind, what);
        }
    }

    /// A call that the conversation went on from without a result gets one that says so.
    fn answer(&mut self, (at, block): (Index, Index), id: &str) {
        if self.record(at).uuid.is_none() {
            let what = format!("removed the call {id}, which has no result");
            self.remove(&[(at, block)], "call_without_result", &what);
            return;
        }
        self.unanswered.push((at, block));
        let what = format!("added a placeholder result to the call {id}");
        self.note(at, "call_without_result", what);
    }
}
