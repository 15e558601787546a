//! `chat --explain-permission`: what would happen to a command, and which rule says so.

use std::io::Write;

use serde_json::json;
use unspool_agent::permission::explain::{CommandPartFinding, PermissionExplanation};
use unspool_agent::permission::{PermissionReason, PermissionVerdict};
use unspool_show::visible;
use unspool_show::wire::permission::{PermissionPart, PermissionRow};

use super::ChatArgs;
use super::workspace::{place, policy, settings};
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Says whether a command would be allowed.
pub fn run(world: &CommandContext, args: &ChatArgs, command: &str) -> Result<(), CommandFailure> {
    let mut notes = Vec::new();
    let place = place(world, args)?;
    let settings = settings(world, args, &place, &mut notes)?;
    let policy = policy(world, args, &place, &settings, &mut notes)?;
    notes.iter().for_each(|note| world.ui.note(note));
    let mut told = policy.explain(command, &place.project);
    if let PermissionVerdict::Ask { always, .. } = &mut told.verdict {
        let input = json!({ "command": command });
        let rules = std::mem::take(always);
        *always = policy.sufficient("Bash", &input, &place.project, rules);
    }
    let mut out = world.ui.out();
    if world.ui.json {
        world.ui.row(&mut out, &row(command, &told))?;
    } else {
        out.write_all(text(command, &told).as_bytes())?;
    }
    Ok(out.flush()?)
}

/// The word for a verdict, and what is behind it.
fn verdict(told: &PermissionExplanation) -> (&'static str, &PermissionReason) {
    match &told.verdict {
        PermissionVerdict::Allow { by } => ("allow", by),
        PermissionVerdict::Ask { why, .. } => ("ask", why),
        PermissionVerdict::Deny { by, .. } => ("deny", by),
    }
}

/// For people: the verdict, the parts below each other, what "always" would add.
fn text(command: &str, told: &PermissionExplanation) -> String {
    let (word, why) = verdict(told);
    let shown = |text: &str| visible::escaped_line(text).into_owned();
    let mut text = format!("{word}: {}\nmode: {}\n", shown(&why.to_string()), told.mode);
    // What could not be taken apart, or holds what is not seen, is shown as it is.
    if told.steps.is_empty() || visible::count(command) > 0 {
        text += &format!("command: {}\n", shown(command));
    }
    let parts: Vec<String> = told.steps.iter().map(|step| shown(&step.part)).collect();
    let longest = parts.iter().map(|part| part.chars().count());
    let width = longest.max().unwrap_or(0).min(40);
    for (step, part) in told.steps.iter().zip(&parts) {
        let why = shown(&step.why.to_string());
        text += &format!("  {:<6} {part:<width$}  {why}\n", short(step));
    }
    if let PermissionVerdict::Ask { always, .. } = &told.verdict {
        for rule in always {
            text += &format!("always would add {}\n", shown(rule));
        }
    }
    text
}

fn short(step: &CommandPartFinding) -> &'static str {
    match step.what {
        "allowed" => "allow",
        _ => "ask",
    }
}

fn row(command: &str, told: &PermissionExplanation) -> PermissionRow {
    let (word, why) = verdict(told);
    let (rule, path, line) = place_of(why);
    let always = match &told.verdict {
        PermissionVerdict::Ask { always, .. } => always.clone(),
        PermissionVerdict::Allow { .. } | PermissionVerdict::Deny { .. } => Vec::new(),
    };
    let part = |step: &CommandPartFinding| {
        let (rule, path, line) = place_of(&step.why);
        PermissionPart {
            part: step.part.clone(),
            verdict: short(step).to_owned(),
            reason: step.why.text.clone(),
            rule,
            path,
            line,
        }
    };
    PermissionRow {
        command: command.to_owned(),
        mode: told.mode.to_owned(),
        verdict: word.to_owned(),
        reason: why.text.clone(),
        rule,
        path,
        line,
        parts: told.steps.iter().map(part).collect(),
        always,
    }
}

/// The rule, its file and its line.
fn place_of(why: &PermissionReason) -> (Option<String>, Option<String>, Option<usize>) {
    let Some((rule, source)) = &why.rule else {
        return (None, None, None);
    };
    let path = source.path.as_ref().map(|path| path.display().to_string());
    let line = (source.line > 0).then_some(source.line);
    (Some(rule.clone()), path, line)
}
