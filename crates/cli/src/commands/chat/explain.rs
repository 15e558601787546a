//! `chat --explain-permission`: what would happen to a command, and which rule says so.

use unspool_agent::permission::Verdict;
use unspool_show::clean;

use super::{ChatArgs, place, policy, settings};
use crate::failure::Failure;
use crate::world::World;

/// Says whether a command would be allowed.
pub fn run(world: &World, args: &ChatArgs, command: &str) -> Result<(), Failure> {
    let mut notes = Vec::new();
    let place = place(world, args)?;
    let settings = settings(world, args, &place, &mut notes)?;
    let policy = policy(world, args, &place, &settings, &mut notes)?;
    notes.iter().for_each(|note| world.ui.note(note));
    let told = policy.explain(command, &place.project);
    let (word, why) = match &told.verdict {
        Verdict::Allow { by } => ("allowed", by),
        Verdict::Ask { why, .. } => ("asks", why),
        Verdict::Deny { by, .. } => ("denied", by),
    };
    println!("{word}: {}", clean::text(&why.to_string()));
    println!("mode: {}", told.mode);
    for step in &told.steps {
        let line = format!("  {} {}: {}", step.what, step.part, step.why);
        println!("{}", clean::text(&line));
    }
    if let Verdict::Ask { always, .. } = &told.verdict {
        for rule in always {
            println!("  would be saved by: {}", clean::text(rule));
        }
    }
    Ok(())
}
