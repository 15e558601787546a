//! A dry run: goes the way of a run up to the point where something would be sent.

use unspool_send::ledger::{Key, Ledger};
use unspool_send::spans::Trace;
use unspool_send::target::Target;
use unspool_store::SessionFile;

use super::choice::{self, Owners};
use super::setting::Setting;
use super::{Summary, Wishes, older_notes, unusable};
use crate::failure::Failure;
use crate::world::World;

/// What would be sent of a session.
pub struct Sample {
    /// The session.
    pub file: SessionFile,
    /// Its title, or what it began with.
    pub title: Option<String>,
    /// What would be sent.
    pub traces: Vec<Trace>,
}

/// Goes through what would be sent, without sending it.
pub fn sample(
    world: &World,
    target: Option<&Target>,
    files: &[SessionFile],
    wishes: &Wishes,
    each: &mut dyn FnMut(Sample) -> Result<(), Failure>,
) -> Result<Summary, Failure> {
    let key = target.map_or(Key([0; 8]), Target::key);
    let mut ledger = Ledger::open(&world.data("sent"), key).map_err(unusable)?;
    if let Some(target) = target {
        ledger.assume(older_notes(world, target, &ledger));
    }
    let setting = Setting::new(world, wishes, files);
    let mut owners = Owners::default();
    let mut summary = Summary::default();
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
        let older = setting.older(&opened, |heads| choice::are_known(heads, &ledger));
        let choice = setting.choose(&mut opened, &older, false, &ledger, &mut owners);
        summary.count(&choice);
        let traces: Vec<Trace> = opened.chosen(&choice).map(|(_, trace)| trace).collect();
        summary.turns += traces.len() as u64;
        summary.spans += traces.iter().map(|it| it.spans.len() as u64).sum::<u64>();
        let goal = || read.family.main.session.own_title().map(str::to_owned);
        each(Sample {
            file: file.clone(),
            title: read.facts.title.clone().or_else(goal),
            traces,
        })?;
    }
    Ok(summary)
}
