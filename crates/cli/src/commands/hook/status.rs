//! `hook status`: where the hook is installed, whether it would send, and what happened last.

use std::fs;
use std::io::Write;

use clap::Args;
use unspool_model::hook as events;
use unspool_model::time::Time;
use unspool_show::table::{Column, Table};
use unspool_show::wire::hook::{HookEventRow, HookRow, HookSendingRow};
use unspool_show::{amount, clean};

use super::install::{self, File};
use super::settings::{self, Found};
use super::{Desk, Scope, shell, worker};
use crate::failure::Failure;
use crate::world::World;

/// Arguments of `hook status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Settings file to look at [default: all]
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<Scope>,
}

/// Settings with what was found in them.
type Looked = (File, Result<Found, Failure>);

/// Shows it.
pub fn run(world: &World, args: &StatusArgs) -> Result<(), Failure> {
    let mut all: Vec<Looked> = Vec::new();
    let mut rows = Vec::new();
    for scope in Scope::ALL {
        for path in install::paths(world, scope) {
            match File::read(scope, path.clone()) {
                Ok(file) => {
                    let found = settings::look(file.text());
                    let found = found.map_err(|why| install::wrong(&file.path, &why));
                    all.push((file, found));
                }
                Err(why) => rows.push(row(scope, path.display().to_string(), false, Err(&why))),
            }
        }
    }
    let desk = Desk::new(world.own.clone());
    let sending = sending(&all);
    rows.extend(all.iter().map(|(file, found)| {
        let path = file.path.display().to_string();
        row(file.scope, path, file.exists(), found.as_ref())
    }));
    rows.retain(|row| args.scope.is_none_or(|only| row.scope == only.name()));
    let last = desk
        .events
        .all()
        .into_iter()
        .next()
        .map(|noted| HookEventRow {
            at: Time(noted.at).to_string(),
            session: noted.session,
            event: noted.event,
            tool: noted.tool,
            subject: noted.subject.map(|text| world.masked(&text).into_owned()),
            message: noted.message.map(|text| world.masked(&text).into_owned()),
            cwd: noted.cwd.map(|path| path.display().to_string()),
        });
    for row in &mut rows {
        row.sending = sending.clone();
        row.last_event = last.clone();
        row.last_log = desk.log.last();
        row.log = desk.log.path().display().to_string();
    }
    print(world, &rows)
}

fn row(scope: Scope, path: String, exists: bool, found: Result<&Found, &Failure>) -> HookRow {
    let known = found.ok();
    let command = known.and_then(|found| found.commands.first().cloned());
    let events = known.map_or_else(Vec::new, |found| found.events.clone());
    let has = |event: &str| events.iter().any(|known| known == event);
    let program = command.as_deref().and_then(shell::program);
    HookRow {
        scope: scope.name().to_owned(),
        path,
        exists,
        installed: !events.is_empty(),
        export: events::EXPORT.iter().all(|event| has(event)),
        live: events::LIVE[..4].iter().all(|(event, _)| has(event)),
        program_found: program
            .map(|path| path.components().count() == 1 || fs::metadata(path).is_ok()),
        command,
        other_exporters: known.map_or_else(Vec::new, |found| found.exporters.clone()),
        disabled: known.is_some_and(|found| found.disabled),
        error: found.err().and_then(told),
        events,
        sending: HookSendingRow::default(),
        last_event: None,
        last_log: None,
        log: String::new(),
    }
}

fn told(failure: &Failure) -> Option<String> {
    match failure {
        Failure::Nothing(told) | Failure::Failed(told) => Some(told.message.clone()),
        Failure::Found | Failure::Code(_) | Failure::Closed => None,
    }
}

/// Whether the hook would send: the client adds what its settings say to the environment, the
/// nearest settings last.
fn sending(all: &[Looked]) -> HookSendingRow {
    let from_settings = |name: &str| {
        let mut found = all
            .iter()
            .rev()
            .filter_map(|(_, found)| found.as_ref().ok());
        found.find_map(|found| {
            let mut env = found.env.iter().rev();
            env.find(|(key, _)| key == name)
                .map(|(_, value)| value.clone())
        })
    };
    let variable = |name: &str| {
        let value = from_settings(name).or_else(|| std::env::var(name).ok());
        value.filter(|value| !value.is_empty())
    };
    worker::outlook(&variable)
}

fn print(world: &World, rows: &[HookRow]) -> Result<(), Failure> {
    let mut out = world.ui.out();
    if world.ui.json {
        for row in rows {
            world.ui.row(&mut out, row)?;
        }
        return Ok(out.flush()?);
    }
    let mut table = Table::new(vec![
        Column::fixed("scope"),
        Column::fixed("hook"),
        Column::path("settings", 20),
    ]);
    for row in rows {
        table.row([row.scope.as_str(), what(row), &clean::line(&row.path)]);
    }
    table.write(&mut out, &world.ui.style())?;
    writeln!(out)?;
    for row in rows {
        remarks(&mut out, row)?;
    }
    if let Some(row) = rows.first() {
        let state = if row.sending.ready { "on" } else { "off" };
        writeln!(
            out,
            "sending     {state}: {}",
            clean::line(&row.sending.why)
        )?;
        let event = row.last_event.as_ref().map(|event| {
            let about = event.tool.as_deref().map(|tool| format!(" ({tool})"));
            let at = Time::parse(&event.at).map(|at| amount::moment(at, world.ui.zone()));
            format!(
                "{} {}{} of {}",
                at.unwrap_or_default(),
                event.event,
                about.unwrap_or_default(),
                event.session
            )
        });
        let nothing = "none yet".to_owned();
        writeln!(
            out,
            "last event  {}",
            clean::line(&event.unwrap_or_else(|| nothing.clone()))
        )?;
        let log = row.last_log.clone().unwrap_or(nothing);
        writeln!(out, "last log    {}", clean::line(&log))?;
        writeln!(out, "log         {}", clean::line(&row.log))?;
    }
    Ok(out.flush()?)
}

fn what(row: &HookRow) -> &'static str {
    match (row.error.is_some(), row.installed) {
        (true, _) => "?",
        (false, false) => "-",
        _ if row.disabled => "disabled",
        _ if row.export && row.live => "export, live",
        _ if row.export => "export",
        _ if row.live => "live",
        _ => "partial",
    }
}

fn remarks(out: &mut dyn Write, row: &HookRow) -> Result<(), Failure> {
    let scope = &row.scope;
    if let Some(error) = &row.error {
        writeln!(out, "{scope}: {}", clean::line(error))?;
    }
    if row.program_found == Some(false) {
        let command = row.command.as_deref().unwrap_or_default();
        writeln!(
            out,
            "{scope}: `{}` no longer exists; run `unspool hook install` again",
            clean::line(command)
        )?;
    }
    if row.installed && !row.export && !row.live {
        writeln!(
            out,
            "{scope}: installed only for {}; run `unspool hook install` again",
            clean::line(&row.events.join(", "))
        )?;
    }
    for other in &row.other_exporters {
        let other = clean::line(other);
        writeln!(out, "{scope}: `{other}` also sends to Langfuse")?;
    }
    Ok(())
}
