//! `files`: what a session read and changed.

use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use unspool_model::view::files;
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::wire::file::FileJson;

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Arguments of `files`.
#[derive(Debug, Args)]
pub struct FilesArgs {
    /// Start of a session id, a title, a path, or `@` for the latest [default: @]
    pub session: Option<OsString>,
}

/// Lists files.
pub fn run(world: &CommandContext, args: &FilesArgs) -> Result<(), CommandFailure> {
    let chosen = world.view(args.session.as_deref())?;
    let main = &chosen.family.main;
    let rows = files::files(&main.session, &main.source);
    if rows.is_empty() {
        return Err(CommandFailure::nothing("the session touched no files"));
    }
    let mut out = world.ui.out();
    let mut table = TextTable::new(vec![
        TableColumn::path("file", 20),
        TableColumn::number("reads"),
        TableColumn::number("writes"),
        TableColumn::number("edits"),
        TableColumn::number("added"),
        TableColumn::number("removed"),
        TableColumn::number("backups"),
    ]);
    for row in &rows {
        if world.ui.json {
            world.ui.row(&mut out, &FileJson::from(row))?;
            continue;
        }
        let numbers = [
            row.reads,
            row.writes,
            row.edits,
            row.added,
            row.removed,
            row.versions,
        ];
        let cells =
            std::iter::once(row.path.clone()).chain(numbers.iter().map(|number| match number {
                0 => "·".to_owned(),
                number => number.to_string(),
            }));
        table.row(cells);
    }
    if !world.ui.json {
        table.write(&mut out, &world.ui.style())?;
    }
    Ok(out.flush()?)
}
