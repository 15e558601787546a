//! `info`: the inventory of a session.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::session_usage::session_usage;
use unspool_model::view::{check, info};
use unspool_show::clean;
use unspool_show::format;
use unspool_show::wire::check::InfoRow;
use unspool_show::wire::cost::UsageCostRow;
use unspool_show::wire::session::UsageRow;
use unspool_store::resolve::SessionTarget;
use unspool_store::session_with_agents;
use unspool_store::side_files;

use crate::command_context::{ChosenSession, CommandContext};
use crate::failure::CommandFailure;

/// Arguments of `info`.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// Start of a session id, a title, a path, or `@` for the latest [default: @]
    pub session: Option<OsString>,
}

/// Takes the inventory.
pub fn run(world: &CommandContext, args: &InfoArgs) -> Result<(), CommandFailure> {
    let chosen = world.view(args.session.as_deref())?;
    let main = &chosen.family.main;
    let path = chosen.target.path();
    let found = world.found_around(path)?;
    let elsewhere = session_with_agents::parents_beside(&found, path, &main.session);
    let faults = check::faults_beside(&main.session, &elsewhere, ClientProfile::NEWEST);
    let prices = world.prices();
    let used = chosen.family.used(|files| session_usage(files, &prices));
    let mut row = InfoRow::new(
        chosen.id(),
        &chosen.path(),
        main.bytes,
        info::info(&main.session),
        &used,
        &faults,
    );
    row.lines = row.lines.max(main.lines);
    row.side_files = side_files(&chosen);
    row.tag = main.session.tag().map(str::to_owned);
    world.mask_in(&mut row.tag);
    let mut out = world.ui.out();
    if world.ui.json {
        world.ui.row(&mut out, &row)?;
    } else {
        print(&mut out, &row)?;
    }
    Ok(out.flush()?)
}

fn side_files(chosen: &ChosenSession) -> BTreeMap<String, Vec<String>> {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |kind: &str, paths: Vec<PathBuf>| {
        if !paths.is_empty() {
            files.insert(
                kind.to_owned(),
                paths
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect(),
            );
        }
    };
    if let SessionTarget::Session(file) = &chosen.target {
        let side = side_files::list_side_files(file);
        add("tool_results", side.tool_results);
        add("file_history", side.file_history);
        add("todos", side.todos);
        add("tasks", side.tasks);
        add("custom_title", side.custom_title.into_iter().collect());
    }
    add(
        "agents",
        chosen
            .family
            .agents
            .iter()
            .map(|agent| agent.file.clone())
            .collect(),
    );
    files
}

fn print(out: &mut dyn Write, row: &InfoRow) -> Result<(), CommandFailure> {
    writeln!(out, "session   {}", clean::line(&row.session))?;
    writeln!(out, "file      {}", clean::line(&row.path))?;
    if let Some(tag) = &row.tag {
        writeln!(out, "tag       {}", clean::line(tag))?;
    }
    writeln!(
        out,
        "size      {} in {} lines",
        format::bytes(row.bytes),
        row.lines
    )?;
    counts(out, "types", &row.types)?;
    counts(out, "blocks", &row.blocks)?;
    counts(out, "tools", &row.tools)?;
    counts(out, "stops", &row.stop_reasons)?;
    let versions: BTreeMap<String, u32> = row
        .versions
        .iter()
        .map(|row| (row.version.clone(), row.lines))
        .collect();
    counts(out, "versions", &versions)?;
    writeln!(out, "models    {}", clean::line(&row.models.join(", ")))?;
    used(out, row)?;
    for (kind, files) in &row.side_files {
        writeln!(
            out,
            "{:<10}{}",
            kind.replace('_', " "),
            format::count(files.len() as u64, "file")
        )?;
    }
    for fault in &row.faults {
        writeln!(
            out,
            "fault     line {}: {} ({})",
            fault.line,
            clean::line(&fault.detail),
            fault.kind
        )?;
    }
    more_faults(out, "fault     and", &row.faults_left_out)?;
    drift(out, &row.unknown)
}

/// Tokens and cost, and whose they are where they are not all its own.
fn used(out: &mut dyn Write, row: &InfoRow) -> Result<(), CommandFailure> {
    let told = |used: &UsageCostRow| {
        let UsageRow {
            input,
            output,
            cache_read,
            cache_write_5m,
            cache_write_1h,
        } = used.usage;
        let tokens = input + output + cache_read + cache_write_5m + cache_write_1h;
        let known = Some(used.cost_usd_known);
        let cost = format::cost_told(used.cost_usd, known, used.unpriced_messages);
        format!("{} tokens, {cost}", format::tokens(tokens))
    };
    let by = &row.used_by;
    let all = UsageCostRow {
        messages: by.own.messages + by.agents.messages + by.client.messages,
        usage: row.usage,
        cost_usd: row.cost_usd,
        cost_usd_known: row.cost_usd_known,
        unpriced_messages: row.unpriced_messages,
    };
    writeln!(out, "usage     {}", told(&all))?;
    if by.agents.messages > 0 {
        writeln!(out, "          sub-agents {}", told(&by.agents))?;
    }
    if by.client.messages > 0 {
        writeln!(out, "          client {}", told(&by.client))?;
    }
    Ok(())
}

/// Says how many faults were not told, by kind.
pub(super) fn more_faults(
    out: &mut dyn Write,
    start: &str,
    left_out: &BTreeMap<String, usize>,
) -> Result<(), CommandFailure> {
    for (kind, more) in left_out {
        writeln!(out, "{start} {more} more ({kind})")?;
    }
    Ok(())
}

fn counts(
    out: &mut dyn Write,
    title: &str,
    counts: &BTreeMap<String, u32>,
) -> Result<(), CommandFailure> {
    let mut sorted: Vec<_> = counts.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    for (at, (name, count)) in sorted.into_iter().enumerate() {
        let title = if at == 0 { title } else { "" };
        writeln!(out, "{title:<10}{count:>6}  {}", clean::line(name))?;
    }
    Ok(())
}

/// What was never seen before: a new release of the client, most likely.
pub fn drift(
    out: &mut dyn Write,
    unknown: &BTreeMap<String, BTreeMap<String, u32>>,
) -> Result<(), CommandFailure> {
    for (at, (what, versions)) in unknown.iter().enumerate() {
        let title = if at == 0 { "new" } else { "" };
        let versions: Vec<String> = versions
            .iter()
            .map(|(version, count)| format!("{version} ×{count}"))
            .collect();
        writeln!(
            out,
            "{title:<10}{} (unknown; {})",
            clean::line(what),
            clean::line(&versions.join(", "))
        )?;
    }
    Ok(())
}
