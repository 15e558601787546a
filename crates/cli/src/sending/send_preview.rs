//! A dry run: goes the way of a run up to the point where something would be sent.

use unspool_send::ledger::{ReceiverKey, SendLedger};
use unspool_send::spans::TurnTrace;
use unspool_send::target::TraceTarget;
use unspool_store::SessionFile;

use super::send_context::SendContext;
use super::turns_to_send::{self, TraceOwners};
use super::{SendOptions, SendSummary, older_notes, unusable};
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// What would be sent of a session.
pub struct SendPreview {
    /// The session.
    pub file: SessionFile,
    /// Its title, or what it began with.
    pub title: Option<String>,
    /// What would be sent.
    pub traces: Vec<TurnTrace>,
}

/// Goes through what would be sent, without sending it.
pub fn preview_send(
    world: &CommandContext,
    target: Option<&TraceTarget>,
    files: &[SessionFile],
    wishes: &SendOptions,
    each: &mut dyn FnMut(SendPreview) -> Result<(), CommandFailure>,
) -> Result<SendSummary, CommandFailure> {
    let key = target.map_or(ReceiverKey([0; 8]), TraceTarget::key);
    let mut ledger = SendLedger::open(&world.data("sent"), key).map_err(unusable)?;
    if let Some(target) = target {
        ledger.assume(older_notes(world, target, &ledger));
    }
    let setting = SendContext::new(world, wishes, files);
    let mut owners = TraceOwners::default();
    let mut summary = SendSummary::default();
    for file in files {
        let read = match setting.read(file) {
            Ok(read) => read,
            Err(error) => {
                summary.warnings.push(error.to_string());
                continue;
            }
        };
        let warnings = read.family.warnings.iter().map(ToString::to_string);
        summary.warnings.extend(warnings);
        let mut opened = setting.open(file, &read);
        let older = setting.older(&opened, |heads| turns_to_send::are_known(heads, &ledger));
        let choice = setting.choose(&mut opened, &older, false, &ledger, &mut owners);
        summary.count(&choice);
        let traces: Vec<TurnTrace> = opened.chosen(&choice).map(|(_, trace)| trace).collect();
        summary.turns += traces.len() as u64;
        summary.spans += traces.iter().map(|it| it.spans.len() as u64).sum::<u64>();
        let goal = || read.family.main.session.own_title().map(str::to_owned);
        each(SendPreview {
            file: file.clone(),
            title: read.facts.title.clone().or_else(goal),
            traces,
        })?;
    }
    Ok(summary)
}
