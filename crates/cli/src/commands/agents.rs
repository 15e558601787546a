//! `agents`: the sub-agents of a session.

use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use unspool_model::agent_kind::AgentKind;
use unspool_model::price::Prices;
use unspool_model::session::Role;
use unspool_model::view::cost::CostSum;
use unspool_model::view::status::{self, Crew};
use unspool_model::view::{agents, cost};
use unspool_show::amount;
use unspool_show::table::{Column, Table};
use unspool_show::wire::graph::AgentRow;
use unspool_store::each;
use unspool_store::family::{self, Agent};
use unspool_store::find::{self, SessionFile};
use unspool_store::read::Reader;
use unspool_store::resolve::Target;

use crate::commands::ls::short;
use crate::failure::Failure;
use crate::world::{Chosen, World};

/// Arguments of `agents`.
#[derive(Debug, Args)]
pub struct AgentsArgs {
    /// Start of a session id, a title, a path, or `@` for the latest [default: @]
    pub session: Option<OsString>,
}

/// The sub-agents and teammates of a session, what the client did for itself, and what each cost.
pub fn rows(world: &World, chosen: &Chosen) -> Vec<(agents::AgentRow, Option<CostSum>)> {
    let helpers = chosen.family.read_helpers(&world.reader());
    let files = chosen.family.agents.iter().chain(&helpers);
    let files: Vec<_> = files.map(Agent::listed).collect();
    let main = &chosen.family.main;
    let mut rows = agents::agents(&main.session, &main.source, &files, &chosen.family.runs);
    agents::settle(&mut rows, &crew(world, chosen));
    let prices = world.prices();
    let cost = |row: &agents::AgentRow| agents::cost(&main.session, &files, row, &prices);
    let costs: Vec<_> = rows.iter().map(cost).collect();
    let mut all: Vec<_> = rows.into_iter().zip(costs).collect();
    all.extend(team(world, chosen, &prices));
    all
}

/// What the lead of a team is called; its lines do not say.
const LEAD: &str = "team-lead";

/// The others of the team of a session: sessions whose lines name the team, whatever the project.
fn team(
    world: &World,
    chosen: &Chosen,
    prices: &Prices,
) -> Vec<(agents::AgentRow, Option<CostSum>)> {
    let (Target::Session(own), Some(team)) = (&chosen.target, &chosen.family.main.session.team)
    else {
        return Vec::new();
    };
    let found = match own.config.as_os_str().is_empty() {
        true => find::around(&own.path),
        false => find::find(&[own.config.to_path_buf()]),
    };
    let others = family::team_sessions(&found, &own.config, team).into_iter();
    let others: Vec<_> = others.filter(|file| file.path != own.path).collect();
    let reader = Reader {
        threads: 1,
        ..world.reader()
    };
    let signals = world.signals();
    let row = |file: &&SessionFile| {
        let session = reader.read(&file.path, Role::Main).ok()?.session;
        let signals = signals.of(&file.config, &file.id);
        let status = status::status(&session, &signals, world.now());
        let cost = cost::cost(&session, &session.messages, prices);
        Some((
            agents::mate(&session, &file.id, LEAD, status.state.name()),
            Some(cost),
        ))
    };
    let mates = each::map(&others, each::threads(), |file| file.bytes, row);
    mates.into_iter().flatten().collect()
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
            short(&row.agent)
        };
        table.row([
            format!("{}{name}", "  ".repeat(row.depth - 1)),
            kind(row),
            sent_for(row),
            row.status.to_owned(),
            row.turns.to_string(),
            row.calls.to_string(),
            amount::tokens(row.usage.total()),
            cost.map_or_else(|| "?".to_owned(), amount::cost_sum),
        ]);
    }
    if !world.ui.json {
        table.write(&mut out, &world.ui.style())?;
    }
    Ok(out.flush()?)
}

/// What kind of agent, or what it is if it is no sub-agent.
fn kind(row: &agents::AgentRow) -> String {
    let role = row.role.name().replace('_', " ");
    match row.role {
        AgentKind::SubAgent | AgentKind::Workflow => row.kind.clone().unwrap_or_default(),
        AgentKind::Teammate => row.kind.clone().unwrap_or(role),
        _ => role,
    }
}

/// What it is called, and what it was sent for.
fn sent_for(row: &agents::AgentRow) -> String {
    let name = [row.phase.as_deref(), row.name.as_deref()];
    let name = match row.role {
        // The phases of a run follow its name.
        AgentKind::Run => row.name.clone().unwrap_or_default(),
        _ => name.into_iter().flatten().collect::<Vec<_>>().join(" · "),
    };
    let about = match row.role {
        AgentKind::Run => row.phase.clone().or(row.description.clone()),
        _ => row.description.clone(),
    };
    let parts = [Some(name).filter(|name| !name.is_empty()), about];
    parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// Who is at work.
fn crew(world: &World, chosen: &Chosen) -> Crew {
    let agents = chosen.family.agents.iter();
    let agents: Vec<_> = agents.map(|agent| &agent.loaded.session).collect();
    let signals = world.signals_of(&chosen.target);
    Crew::of(&chosen.family.main.session, &agents, &signals, world.now())
}
