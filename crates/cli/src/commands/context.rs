//! `context`: what fills the context of a session.

use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use unspool_model::view::context::{self, ContextUsage};
use unspool_show::format;
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::wire::file::ContextRow;

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Arguments of `context`.
#[derive(Debug, Args)]
pub struct ContextArgs {
    /// Start of a session id, a title, a path, or `@` for the latest [default: @]
    pub session: Option<OsString>,

    /// Number of largest blocks to list
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub most: usize,
}

/// Shows what fills the context.
pub fn run(world: &CommandContext, args: &ContextArgs) -> Result<(), CommandFailure> {
    let chosen = world.view(args.session.as_deref())?;
    let main = &chosen.family.main;
    let context = context::context(&main.session, &main.source, args.most);
    if context.categories.is_empty() {
        return Err(CommandFailure::nothing("the session has no context"));
    }
    let mut out = world.ui.out();
    if world.ui.json {
        for row in rows(&context) {
            world.ui.row(&mut out, &row)?;
        }
        return Ok(out.flush()?);
    }
    let how = if context.measured {
        "measured at the last reply"
    } else {
        "estimated"
    };
    writeln!(out, "{} tokens, {how}\n", format::tokens(context.tokens))?;
    let mut table = TextTable::new(vec![
        TableColumn::fixed("what"),
        TableColumn::number("tokens"),
        TableColumn::number("share"),
        TableColumn::fixed(""),
        TableColumn::flexible("freed by", 8),
    ]);
    for row in &context.categories {
        table.row([
            row.category.clone(),
            format::tokens(row.tokens),
            percent(row.share),
            bar(row.share),
            row.freed_by
                .map(|option| format!("clone {option}"))
                .unwrap_or_default(),
        ]);
    }
    table.write(&mut out, &world.ui.style())?;
    if !context.largest.is_empty() {
        writeln!(out, "\nlargest blocks")?;
        let mut table = TextTable::new(vec![
            TableColumn::number("tokens"),
            TableColumn::number("share"),
            TableColumn::number("line"),
            TableColumn::fixed("what"),
            TableColumn::flexible("", 16),
        ]);
        for item in &context.largest {
            table.row([
                format::tokens(item.tokens),
                percent(item.share),
                item.line.to_string(),
                item.category.clone(),
                item.label.clone(),
            ]);
        }
        table.write(&mut out, &world.ui.style())?;
    }
    Ok(out.flush()?)
}

/// Categories, then the largest pieces.
pub fn rows(context: &ContextUsage) -> Vec<ContextRow> {
    let categories = context.categories.iter().map(ContextRow::from);
    let pieces = context.largest.iter().map(ContextRow::from);
    categories.chain(pieces).collect()
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn bar(share: f64) -> String {
    let eighths = (share * 20.0 * 8.0).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{part}", "█".repeat(eighths / 8))
}
