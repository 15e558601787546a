//! `log`: what was done to sessions, and what came out of it.

use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use unspool_model::time::Time;
use unspool_show::format;
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::wire::log::{AmountChangeRow, LogRow};
use unspool_store::journal::{AmountChange, ListedJournalEntry};
use unspool_store::resolve::SessionTarget;

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Arguments of `log`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool log
  unspool log 2f72 --json | jq -r '[.n, .operation, .source, .session] | @tsv'

Newest last. Edits with a number can be undone with `unspool undo N`.")]
pub struct LogArgs {
    /// Only edits of this session, even if it no longer exists
    pub session: Option<OsString>,
}

/// Lists what was done.
pub fn run(world: &CommandContext, args: &LogArgs) -> Result<(), CommandFailure> {
    let mut list = world.journal().list()?;
    if let Some(session) = &args.session {
        let id = meant(world, session, &list)?;
        list.retain(|one| about(one, &id));
    }
    if list.is_empty() {
        return Err(CommandFailure::nothing("no edits yet")
            .hint("edits such as `unspool rename` are recorded here"));
    }
    let mut out = world.ui.out();
    if world.ui.json {
        for one in &list {
            world.ui.row(&mut out, &row(one))?;
        }
        return Ok(out.flush()?);
    }
    table(world, &list).write(&mut out, &world.ui.style())?;
    Ok(out.flush()?)
}

/// The id that is meant: of a session that is there, or of one that is only known here.
fn meant(
    world: &CommandContext,
    session: &OsString,
    list: &[ListedJournalEntry],
) -> Result<String, CommandFailure> {
    let known = session.to_str().filter(|text| text.len() >= 4);
    if let Some(start) = known
        && list.iter().any(|one| about(one, start))
    {
        return Ok(start.to_owned());
    }
    Ok(match world.target(Some(session))? {
        SessionTarget::Session(file) => file.id,
        SessionTarget::Agent(file) => file.id,
    })
}

fn about(one: &ListedJournalEntry, start: &str) -> bool {
    let task = &one.entry.task;
    let mut ids = task.sources.iter().chain(&task.session);
    ids.any(|id| id.starts_with(start))
}

/// What was done, as a table.
pub fn table(world: &CommandContext, list: &[ListedJournalEntry]) -> TextTable {
    let sized = list.iter().any(|one| one.entry.task.bytes.is_some());
    let mut columns = vec![
        TableColumn::number("n"),
        TableColumn::fixed("when"),
        TableColumn::flexible("what", 20),
        TableColumn::fixed("undone").optional(),
    ];
    columns.extend(sized.then(|| TableColumn::number("bytes").optional()));
    let mut table = TextTable::new(columns);
    for one in list {
        let entry = &one.entry;
        let bytes = entry.task.bytes.map(|bytes| {
            format!(
                "{} → {}",
                format::bytes(bytes.before),
                format::bytes(bytes.after)
            )
        });
        let undone = one.undone_by.map(|by| format!("by {by}"));
        let mut cells = vec![
            entry.number.to_string(),
            format::moment(Time(entry.task.at), world.ui.zone()),
            entry.task.words.clone(),
            undone.unwrap_or_default(),
        ];
        cells.extend(sized.then(|| bytes.unwrap_or_default()));
        table.row(cells);
    }
    table
}

/// The row of what was done.
pub fn row(one: &ListedJournalEntry) -> LogRow {
    let (entry, task) = (&one.entry, &one.entry.task);
    let change = |change: AmountChange| AmountChangeRow {
        before: change.before,
        after: change.after,
    };
    let source = task.sources.first().cloned();
    LogRow {
        n: entry.number,
        at: Time(task.at).to_string(),
        operation: task.operation.clone(),
        words: task.words.clone(),
        session: task.session.clone().or_else(|| source.clone()),
        source,
        sources: task.sources.clone(),
        path: task.path.as_ref().map(|path| path.display().to_string()),
        options: task.options.clone(),
        lines: task.lines.map(change),
        bytes: task.bytes.map(change),
        tokens: task.tokens.map(change),
        undoes: entry.undoes,
        undone: one.undone_by.is_some(),
        undone_by: one.undone_by,
    }
}
