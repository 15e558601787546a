//! `turns`: one row per turn, or per call.

use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use unspool_model::view::turns::{self, ThreadEnds, TurnOptions};
use unspool_show::format;
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::wire::call::CallRow;
use unspool_show::wire::turn::TurnJson;

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Arguments of `turns`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool turns 2f72
  unspool turns @ --json | jq -r '.prompt'
  unspool turns @ --calls --json | jq 'select(.status==\"error\")'")]
pub struct TurnsArgs {
    /// Start of a session id, a title, a path, or `@` for the latest [default: @]
    pub session: Option<OsString>,

    /// One row per tool call, with its input and result
    #[arg(long)]
    pub calls: bool,

    /// A pause longer than N minutes marks a turn as a resume
    #[arg(long, value_name = "MINUTES", default_value_t = 5)]
    pub gap: u64,
}

/// Lists turns.
pub fn run(world: &CommandContext, args: &TurnsArgs) -> Result<(), CommandFailure> {
    let chosen = world.view(args.session.as_deref())?;
    let main = &chosen.family.main;
    let (session, source) = (&main.session, &main.source);
    let course = ThreadEnds::of(session);
    let mut out = world.ui.out();
    if args.calls {
        let mut table = TextTable::new(vec![
            TableColumn::fixed("call"),
            TableColumn::fixed("tool"),
            TableColumn::flexible("about", 20),
            TableColumn::fixed("status"),
            TableColumn::number("time"),
        ]);
        for index in 0..session.calls.len() {
            if world.ui.json {
                world.ui.row(
                    &mut out,
                    &CallRow::whole(session, source, &course, index as u32),
                )?;
                continue;
            }
            let row = CallRow::brief(session, &course, index as u32);
            let time = row.duration_ms.map_or_else(String::new, format::duration);
            table.row([
                row.id,
                row.name,
                row.subject.unwrap_or_default(),
                row.status,
                time,
            ]);
        }
        if !world.ui.json {
            table.write(&mut out, &world.ui.style())?;
        }
        return Ok(out.flush()?);
    }
    let rows = turns::turns(
        session,
        source,
        TurnOptions {
            gap_ms: args.gap.saturating_mul(60_000),
        },
    );
    let mut table = TextTable::new(vec![
        TableColumn::number("n"),
        TableColumn::fixed("at"),
        TableColumn::flexible("prompt", 16),
        TableColumn::number("calls"),
        TableColumn::number("time"),
        TableColumn::number("out"),
        TableColumn::number("cost").optional(),
        TableColumn::flexible("reply", 16),
    ]);
    let prices = world.prices();
    let used = chosen.family.used_by_turn(&rows, &prices);
    for row in &rows {
        let used = &used[row.n];
        if world.ui.json {
            let row = TurnJson::new(session, &course, row, used);
            world.ui.row(&mut out, &row)?;
            continue;
        }
        let at = row
            .at
            .map_or_else(String::new, |at| format::moment(at, world.ui.zone()));
        let mark = if row.live { "" } else { "(rewound) " };
        let stop = if row.interrupted {
            "(interrupted) "
        } else {
            ""
        };
        table.row([
            row.n.to_string(),
            at,
            format!("{mark}{}", row.prompt),
            row.calls.len().to_string(),
            row.duration_ms.map_or_else(String::new, format::duration),
            format::tokens(used.all().usage.output),
            format::cost_sum(used.all().cost),
            format!("{stop}{}", row.reply.clone().unwrap_or_default()),
        ]);
    }
    if rows.is_empty() {
        return Err(CommandFailure::nothing("the session has no turns"));
    }
    if world.ui.json {
        return Ok(out.flush()?);
    }
    table.write(&mut out, &world.ui.style())?;
    out.flush()?;
    let unpriced = rows.iter().map(|row| used[row.n].all().cost.unpriced).sum();
    format::unpriced(unpriced)
        .iter()
        .for_each(|note| world.ui.note(note));
    Ok(())
}
