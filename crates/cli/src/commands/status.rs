//! `status`: what is going on, on one line for prompts and status bars.

use std::io::Write;

use clap::Args;
use unspool_model::view::status::AttentionNeed;
use unspool_show::clean;
use unspool_show::wire::live::{StatusRow, WaitingSessionRow};
use unspool_show::wire::session::SessionJson;

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;
use crate::live;

/// Arguments of `status`.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  unspool status                 2 need you · 3 working
  set -g status-right '#(unspool status)'     in tmux
  PS1='$(unspool status) \\$ '                  in a shell

Asks the daemon if it is running; otherwise reads the ends of files written in the last 24 hours.")]
pub struct StatusArgs {}

/// Says what is going on.
pub fn run(world: &CommandContext, _: &StatusArgs) -> Result<(), CommandFailure> {
    let row = sum(&live::active(world));
    let mut out = world.ui.out();
    match world.ui.json {
        true => world.ui.row(&mut out, &row)?,
        false => writeln!(out, "{}", clean::line(&row.line))?,
    }
    Ok(out.flush()?)
}

/// What is going on in these sessions.
pub fn sum<'a>(rows: impl IntoIterator<Item = &'a SessionJson> + Clone) -> StatusRow {
    let of = |need: AttentionNeed| {
        rows.clone()
            .into_iter()
            .filter(move |row| row.need() == need)
    };
    let (need_you, your_turn) = (
        of(AttentionNeed::You).count(),
        of(AttentionNeed::Turn).count(),
    );
    let working = of(AttentionNeed::Working).count();
    let longest = |need| of(need).min_by(|a, b| a.status_since.cmp(&b.status_since));
    let first = longest(AttentionNeed::You).or_else(|| longest(AttentionNeed::Turn));
    StatusRow {
        line: line(need_you, your_turn, working),
        need_you,
        your_turn,
        working,
        agents_working: rows.into_iter().map(|row| row.agents_working).sum(),
        first: first.map(need),
    }
}

fn need(row: &SessionJson) -> WaitingSessionRow {
    WaitingSessionRow {
        id: row.id.clone(),
        title: row.title.clone(),
        project: row.project.clone(),
        status: row.status.clone(),
        since: row.status_since.clone(),
        what: what(row),
    }
}

/// What a session waits for, in words.
pub fn what(row: &SessionJson) -> Option<String> {
    let tool = row.pending_tool.as_ref().map(|tool| match &tool.subject {
        Some(subject) => format!("{} {subject}", tool.name),
        None => tool.name.clone(),
    });
    row.question.clone().or(tool).or_else(|| row.error.clone())
}

fn line(need_you: usize, your_turn: usize, working: usize) -> String {
    let counts = [
        (AttentionNeed::You, need_you),
        (AttentionNeed::Turn, your_turn),
        (AttentionNeed::Working, working),
    ];
    let some = counts.into_iter().filter(|(_, count)| *count > 0);
    let parts: Vec<String> = some.map(|(need, count)| need.counted(count)).collect();
    match parts.is_empty() {
        true => "idle".to_owned(),
        false => parts.join(" · "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_only_what_there_is() {
        assert_eq!(line(0, 0, 0), "idle");
        assert_eq!(line(1, 0, 0), "1 needs you");
        assert_eq!(line(2, 0, 3), "2 need you · 3 working");
        assert_eq!(line(0, 4, 1), "4 your turn · 1 working");
    }
}
