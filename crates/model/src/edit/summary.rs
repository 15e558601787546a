//! Everything before a turn becomes one summary, as a compaction of the client's own does it.
//!
//! The older lines stay in the file before the boundary, where every client leaves them out;
//! the summary and the turns behind it are what is sent.

use foldhash::HashSet;

use super::copy_identity::made;
use super::inserted_lines::{self, LineEnvelope, LineStamp};
use super::plan::EditPlan;
use super::repair::preserved;
use super::{EditError, LossKind};
use crate::entry::LineDetail;
use crate::graph;
use crate::id::Id;
use crate::log::TranscriptSource;
use crate::session::{Index, Session};
use crate::time::Time;
use crate::token_estimate;
use crate::view::client_profile::ClientProfile;
use crate::view::messages;

/// The lines that were put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryLines {
    /// The compaction.
    pub boundary: Id,
    /// What is said instead of all before it.
    pub summary: Id,
    /// The first line that is kept behind it; give it to
    /// [`Wanted::summarised`](super::check::ExpectedResult::summarised).
    pub first: Id,
}

/// Without it the model would take the summary for something that the person says now.
const LEAD: &str = "The beginning of this conversation was replaced by this summary. What follows goes on from there.";

/// Lets `text` stand for everything before the turn that the record `first` opens.
///
/// Call it when the plan is settled: it says what the first line that stays follows.
pub fn put(
    plan: &mut EditPlan,
    session: &Session,
    source: &dyn TranscriptSource,
    first: Index,
    text: &str,
) -> Result<SummaryLines, EditError> {
    let live = messages::live_lines(session, ClientProfile::Strict);
    let Some(place) = live.iter().position(|&at| at == first) else {
        let line = session.records.get(first as usize).map_or(0, |it| it.line);
        return Err(EditError::new(format!(
            "the turn on line {line} is not sent to the model"
        )));
    };
    if preserved(session, &graph::links(session), &live).contains(&first) {
        return Err(EditError::new(
            "a later compaction kept this turn; choose a turn after that compaction".to_owned(),
        ));
    }
    let stays = |at: &Index| !plan.is_dropped(*at) && session.records[*at as usize].in_chain();
    let before: Vec<Index> = live[..place].iter().copied().filter(stays).collect();
    let said = |at: &&Index| session.records[**at as usize].is_conversation();
    if !before.iter().any(|at| said(&at)) {
        return Err(EditError::new(
            "there is nothing before this turn".to_owned(),
        ));
    }
    let Some(first) = live[place..].iter().copied().find(stays) else {
        return Err(EditError::new("this turn was removed".to_owned()));
    };
    let record = &session.records[first as usize];
    let own = record.uuid.clone().unwrap_or_else(|| Id::new(""));
    let (boundary, summary) = (fresh(session, 1, &own), fresh(session, 2, &own));
    let planned = plan.changes.get(&first).and_then(|change| change.time);
    let time = planned.or(record.at()).unwrap_or(Time(2));
    let at = |earlier: i64| Time((time.0 - earlier).max(0));
    let envelope = LineEnvelope::of(&session.bytes_of(source, record));
    let blocks = before
        .iter()
        .filter(said)
        .flat_map(|&at| session.records[at as usize].blocks.clone());
    let sum: u64 = blocks
        .map(|block| token_estimate::of_block(&session.blocks[block as usize]))
        .sum();
    let follows = before
        .iter()
        .rev()
        .find_map(|&at| session.records[at as usize].uuid.clone());
    let stamp = |uuid, time| LineStamp { uuid, time };
    let line =
        inserted_lines::compact_boundary(&envelope, stamp(&boundary, at(2)), follows.as_ref(), sum);
    plan.insert(first, line);
    let text = format!("{LEAD}\n\n{}", text.trim());
    let line = inserted_lines::compact_summary(&envelope, stamp(&summary, at(1)), &boundary, &text);
    plan.insert(first, line);
    plan.set_parent(first, Some(summary.clone()));
    let count = before.iter().filter(said).count() as u64;
    plan.lose_tokens(LossKind::Summarised, count, sum);
    unlead(plan, session, &live[place..]);
    Ok(SummaryLines {
        boundary,
        summary,
        first: own,
    })
}

/// A line that says that the conversation goes on from before the summary would take it
/// back there.
fn unlead(plan: &mut EditPlan, session: &Session, kept: &[Index]) {
    let kept: HashSet<Index> = kept.iter().copied().collect();
    for (at, record) in session.records.iter().enumerate() {
        if let Some(LineDetail::LastPrompt {
            leaf: Some(leaf), ..
        }) = session.detail_of(record)
            && session.find(leaf).is_some_and(|leaf| !kept.contains(&leaf))
        {
            plan.drop(at as Index);
        }
    }
}

fn fresh(session: &Session, salt: u64, own: &Id) -> Id {
    let mut seed = salt << 32;
    loop {
        let id = made(seed, own);
        if session.find(&id).is_none() {
            return id;
        }
        seed += 1;
    }
}
