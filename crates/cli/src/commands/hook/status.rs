//! `hook status`: where the hook is installed, whether it would send, and what happened last.

use std::fs;
use std::io::Write;

use clap::Args;
use unspool_model::hook_events as events;
use unspool_model::time::Time;
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::wire::hook::{HookEventRow, HookRow, HookSendingRow};
use unspool_show::{clean, format};

use super::hook_settings::{self, HookSettings};
use super::install::{self, HookSettingsFile};
use super::{HookFiles, HookSettingsScope, hook_command, worker};
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Arguments of `hook status`.
#[derive(Debug, Args)]
pub struct HookStatusArgs {
    /// Settings file to look at [default: all]
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<HookSettingsScope>,
}

/// Settings with what was found in them.
type InspectedSettings = (HookSettingsFile, Result<HookSettings, CommandFailure>);

/// Shows it.
pub fn run(world: &CommandContext, args: &HookStatusArgs) -> Result<(), CommandFailure> {
    let mut all: Vec<InspectedSettings> = Vec::new();
    let mut rows = Vec::new();
    for scope in HookSettingsScope::ALL {
        for path in install::paths(world, scope) {
            match HookSettingsFile::read(scope, path.clone()) {
                Ok(file) => {
                    let found = hook_settings::look(file.text());
                    let found = found.map_err(|why| install::wrong(&file.path, &why));
                    all.push((file, found));
                }
                Err(why) => rows.push(row(scope, path.display().to_string(), false, Err(&why))),
            }
        }
    }
    let desk = HookFiles::new(world.own.clone());
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

fn row(
    scope: HookSettingsScope,
    path: String,
    exists: bool,
    found: Result<&HookSettings, &CommandFailure>,
) -> HookRow {
    let known = found.ok();
    let command = known.and_then(|found| found.commands.first().cloned());
    let events = known.map_or_else(Vec::new, |found| found.events.clone());
    let has = |event: &str| events.iter().any(|known| known == event);
    let program = command.as_deref().and_then(hook_command::program);
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

fn told(failure: &CommandFailure) -> Option<String> {
    match failure {
        CommandFailure::Nothing(told) | CommandFailure::Failed(told) => Some(told.message.clone()),
        CommandFailure::Found | CommandFailure::Code(_) | CommandFailure::Closed => None,
    }
}

/// Whether the hook would send: the client adds what its settings say to the environment, the
/// nearest settings last.
fn sending(all: &[InspectedSettings]) -> HookSendingRow {
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
    worker::sending_status(&variable)
}

fn print(world: &CommandContext, rows: &[HookRow]) -> Result<(), CommandFailure> {
    let mut out = world.ui.out();
    if world.ui.json {
        for row in rows {
            world.ui.row(&mut out, row)?;
        }
        return Ok(out.flush()?);
    }
    let mut table = TextTable::new(vec![
        TableColumn::fixed("scope"),
        TableColumn::fixed("hook"),
        TableColumn::path("settings", 20),
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
            let at = Time::parse(&event.at).map(|at| format::moment(at, world.ui.zone()));
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

fn remarks(out: &mut dyn Write, row: &HookRow) -> Result<(), CommandFailure> {
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
