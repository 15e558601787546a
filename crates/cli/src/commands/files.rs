//! `files`: what a session read and changed.

use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use unspool_model::view::files;
use unspool_show::table::{Column, Table};
use unspool_show::wire::file::FileRow;

use crate::failure::Failure;
use crate::world::World;

/// Arguments of `files`.
#[derive(Debug, Args)]
pub struct FilesArgs {
    /// Start of a session id, a title, a path, or `@` for the latest [default: @]
    pub session: Option<OsString>,
}

/// Lists files.
pub fn run(world: &World, args: &FilesArgs) -> Result<(), Failure> {
    let chosen = world.view(args.session.as_deref())?;
    let main = &chosen.family.main;
    let rows = files::files(&main.session, &main.source);
    if rows.is_empty() {
        return Err(Failure::nothing("the session touched no files"));
    }
    let mut out = world.ui.out();
    let mut table = Table::new(vec![
        Column::path("file", 20),
        Column::number("reads"),
        Column::number("writes"),
        Column::number("edits"),
        Column::number("added"),
        Column::number("removed"),
        Column::number("backups"),
    ]);
    for row in &rows {
        if world.ui.json {
            world.ui.row(&mut out, &FileRow::from(row))?;
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
