//! `agents`: the sub-agents of a session.

use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use unspool_model::price::Cost;
use unspool_model::view::agents;
use unspool_model::view::status::Crew;
use unspool_show::amount;
use unspool_show::table::{Column, Table};
use unspool_show::wire::graph::AgentRow;
use unspool_store::family::Agent;

use crate::failure::Failure;
use crate::world::{Chosen, World};

/// Arguments of `agents`.
#[derive(Debug, Args)]
pub struct AgentsArgs {
    /// Start of a session id, a title, a path, or `@` for the latest [default: @]
    pub session: Option<OsString>,
}

/// The sub-agents of a session, and what each cost.
pub fn rows(world: &World, chosen: &Chosen) -> Vec<(agents::AgentRow, Option<Cost>)> {
    let files = chosen.family.agents.iter().map(Agent::listed);
    let files: Vec<_> = files.collect();
    let main = &chosen.family.main;
    let mut rows = agents::agents(&main.session, &main.source, &files);
    agents::settle(&mut rows, &crew(world, chosen));
    let prices = world.prices();
    let cost = |row: &agents::AgentRow| agents::cost(&main.session, &files, row, &prices);
    let costs: Vec<_> = rows.iter().map(cost).collect();
    rows.into_iter().zip(costs).collect()
}

/// Lists sub-agents.
pub fn run(world: &World, args: &AgentsArgs) -> Result<(), Failure> {
    let chosen = world.view(args.session.as_deref())?;
    let rows = rows(world, &chosen);
    if rows.is_empty() {
        return Err(Failure::nothing("the session has no sub-agents"));
    }
    let mut out = world.ui.out();
    let mut table = Table::new(vec![
        Column::fixed("agent"),
        Column::fixed("type"),
        Column::flexible("sent for", 16),
        Column::fixed("status"),
        Column::number("turns"),
        Column::number("calls"),
        Column::number("tokens"),
        Column::number("cost").optional(),
    ]);
    for (row, cost) in &rows {
        if world.ui.json {
            world.ui.row(&mut out, &AgentRow::new(row, *cost))?;
            continue;
        }
        let name = if row.agent.is_empty() {
            "(no lines left)"
        } else {
            &row.agent
        };
        table.row([
            format!("{}{name}", "  ".repeat(row.depth - 1)),
            row.kind.clone().unwrap_or_default(),
            row.description.clone().unwrap_or_default(),
            row.status.to_owned(),
            row.turns.to_string(),
            row.calls.to_string(),
            amount::tokens(row.usage.total()),
            amount::cost(cost.map(Cost::usd)),
        ]);
    }
    if !world.ui.json {
        table.write(&mut out, &world.ui.style())?;
    }
    Ok(out.flush()?)
}

/// Who is at work.
fn crew(world: &World, chosen: &Chosen) -> Crew {
    let agents = chosen.family.agents.iter();
    let agents: Vec<_> = agents.map(|agent| &agent.loaded.session).collect();
    let signals = world.signals_of(&chosen.target);
    Crew::of(&chosen.family.main.session, &agents, &signals, world.now())
}
