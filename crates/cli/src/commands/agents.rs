//! `agents`: the sub-agents of a session.

use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use unspool_model::agent_kind::AgentKind;
use unspool_model::price::Prices;
use unspool_model::view::agents;
use unspool_model::view::session_usage::{UsageTotal, session_usage, usage_by_agent};
use unspool_model::view::status::{self, RunningWork};
use unspool_show::format;
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::wire::graph::AgentJson;
use unspool_store::find::{self, SessionFile};
use unspool_store::parallel;
use unspool_store::read::SessionReader;
use unspool_store::resolve::SessionTarget;
use unspool_store::session_with_agents;

use crate::command_context::{ChosenSession, CommandContext};
use crate::commands::ls::short;
use crate::failure::CommandFailure;

/// Arguments of `agents`.
#[derive(Debug, Args)]
pub struct AgentsArgs {
    /// Start of a session id, a title, a path, or `@` for the latest [default: @]
    pub session: Option<OsString>,
}

/// The sub-agents and teammates of a session, what the client did for itself, and what each used.
pub fn rows(
    world: &CommandContext,
    chosen: &ChosenSession,
) -> Vec<(agents::AgentRow, Option<UsageTotal>)> {
    let family = &chosen.family;
    let own = family.agents.iter().enumerate();
    let helpers = family.read_helpers(&world.reader());
    let helpers = helpers
        .iter()
        .map(|(at, it)| (family.agents.len() + at, it));
    let (places, files): (Vec<usize>, Vec<_>) = own
        .chain(helpers)
        .map(|(place, agent)| (place, agent.listed()))
        .unzip();
    let main = &family.main;
    let mut rows = agents::agents(&main.session, &main.source, &files, &family.runs);
    agents::mark_running(&mut rows, &crew(world, chosen));
    let prices = world.prices();
    let used = family.used(|files| usage_by_agent(files, &rows, |at| places[at], &prices));
    let mut all: Vec<_> = rows.into_iter().zip(used).collect();
    all.extend(team(world, chosen, &prices));
    all
}

/// What the lead of a team is called; its lines do not say.
const LEAD: &str = "team-lead";

/// The others of the team of a session: sessions whose lines name the team, whatever the project.
/// What each used is what a list of sessions says of it, its own sub-agents included.
fn team(
    world: &CommandContext,
    chosen: &ChosenSession,
    prices: &Prices,
) -> Vec<(agents::AgentRow, Option<UsageTotal>)> {
    let (SessionTarget::Session(own), Some(team)) =
        (&chosen.target, &chosen.family.main.session.team)
    else {
        return Vec::new();
    };
    let mut found = match own.config.as_os_str().is_empty() {
        true => find::find_beside_transcript(&own.path),
        false => find::find(&[own.config.to_path_buf()]),
    };
    found.identify_agents();
    let others = session_with_agents::team_sessions(&found, &own.config, team).into_iter();
    let others: Vec<_> = others.filter(|file| file.path != own.path).collect();
    let reader = SessionReader {
        threads: 1,
        ..world.reader()
    };
    let signals = world.signals();
    let row = |file: &&SessionFile| {
        let family =
            session_with_agents::read_session_with_agents_by(&reader, &found, file).ok()?;
        let session = &family.main.session;
        let signals = signals.of(&file.config, &file.id);
        let status = status::status(session, &signals, world.now());
        let used = family.used(|files| session_usage(files, prices)).all();
        Some((
            agents::teammate_row(session, &file.id, LEAD, status.state.name()),
            Some(used),
        ))
    };
    let mates = parallel::map(&others, parallel::threads(), |file| file.bytes, row);
    mates.into_iter().flatten().collect()
}

/// Lists sub-agents.
pub fn run(world: &CommandContext, args: &AgentsArgs) -> Result<(), CommandFailure> {
    let chosen = world.view(args.session.as_deref())?;
    let rows = rows(world, &chosen);
    if rows.is_empty() {
        return Err(CommandFailure::nothing("the session has no sub-agents"));
    }
    let mut out = world.ui.out();
    let mut table = TextTable::new(vec![
        TableColumn::fixed("agent"),
        TableColumn::fixed("type"),
        TableColumn::flexible("description", 16),
        TableColumn::fixed("status"),
        TableColumn::number("turns"),
        TableColumn::number("calls"),
        TableColumn::number("tokens"),
        TableColumn::number("cost").optional(),
    ]);
    for (row, used) in &rows {
        if world.ui.json {
            world.ui.row(&mut out, &AgentJson::new(row, *used))?;
            continue;
        }
        let name = if row.agent.is_empty() {
            "(empty)"
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
            format::tokens(used.unwrap_or_default().usage.total()),
            used.map_or_else(|| "?".to_owned(), |used| format::cost_sum(used.cost)),
        ]);
    }
    if world.ui.json {
        return Ok(out.flush()?);
    }
    table.write(&mut out, &world.ui.style())?;
    out.flush()?;
    let used = rows.iter().filter_map(|(_, used)| *used);
    let unpriced = used.map(|used| used.cost.unpriced).sum();
    format::unpriced(unpriced)
        .iter()
        .for_each(|note| world.ui.note(note));
    Ok(())
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
fn crew(world: &CommandContext, chosen: &ChosenSession) -> RunningWork {
    let agents = chosen.family.agents.iter();
    let agents: Vec<_> = agents.map(|agent| &agent.loaded.session).collect();
    let signals = world.signals_of(&chosen.target);
    RunningWork::of(&chosen.family.main.session, &agents, &signals, world.now())
}
