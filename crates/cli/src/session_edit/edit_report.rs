//! What a person reads about an edit.

use std::io::Write;

use unspool_show::wire::edit::EditResult;
use unspool_show::{clean, format};

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// How many things that were mended are listed.
const SHOWN: usize = 20;

/// Prints the result.
pub fn print_result(world: &CommandContext, result: &EditResult) -> Result<(), CommandFailure> {
    let mut shown = result.clone();
    world.mask_in(&mut shown.title);
    let result = &shown;
    let mut out = world.ui.out();
    if world.ui.json {
        world.ui.row(&mut out, result)?;
        return Ok(out.flush()?);
    }
    let done = match (result.dry_run, result.session == result.source) {
        (true, true) => "would change",
        (true, false) => "would create",
        (false, true) => "changed",
        (false, false) => "created",
    };
    let title = result.title.as_deref().unwrap_or_default();
    writeln!(out, "{done} {}  {}", result.session, clean::text(title))?;
    let lines = result.lines;
    let mut counts = format!("{} kept", format::grouped(lines.kept));
    for (count, what) in [
        (lines.changed, "changed"),
        (lines.dropped, "dropped"),
        (lines.added, "added"),
    ] {
        if count > 0 {
            counts += &format!(", {} {what}", format::grouped(count));
        }
    }
    writeln!(out, "  lines   {counts}")?;
    let bytes = result.bytes;
    writeln!(
        out,
        "  bytes   {} → {}{}",
        format::bytes(bytes.before),
        format::bytes(bytes.after),
        percent(bytes.before, bytes.after)
    )?;
    let tokens = result.tokens;
    writeln!(
        out,
        "  tokens  about {} → {}{}",
        format::tokens(tokens.before),
        format::tokens(tokens.after),
        percent(tokens.before, tokens.after)
    )?;
    for mended in result.mended.iter().take(SHOWN) {
        let what = clean::text(&mended.what);
        writeln!(out, "  repair  line {}: {what}", mended.line)?;
    }
    if let Some(more) = result
        .mended
        .len()
        .checked_sub(SHOWN)
        .filter(|more| *more > 0)
    {
        writeln!(out, "          and {more} more; `--json` lists all")?;
    }
    for lost in &result.lost {
        let tokens = format::tokens(lost.tokens);
        writeln!(
            out,
            "  lost    {}, about {tokens} tokens",
            clean::text(&lost.what)
        )?;
    }
    let redacted = format::count(result.redactions, "secret");
    if result.redactions > 0 {
        writeln!(out, "  masked  {redacted}")?;
    }
    for check in &result.checks {
        let head = match check.name.as_str() {
            "faults" => "faults",
            "estimate" => "about ",
            _ => continue,
        };
        writeln!(out, "  {head}  {}", clean::text(&check.detail))?;
    }
    let clients: Vec<&str> = result
        .checks
        .iter()
        .filter(|check| check.ok && check.detail.starts_with("resumes"))
        .map(|check| check.name.as_str())
        .collect();
    writeln!(out, "  resumes in {}", clients.join(", "))?;
    if !result.dry_run {
        writeln!(out, "\n{}", result.resume)?;
    }
    if let Some(number) = result.undo {
        world.ui.note(&format!("undo with `unspool undo {number}`"));
    }
    Ok(out.flush()?)
}

fn percent(before: u64, after: u64) -> String {
    if before == 0 || before == after {
        return String::new();
    }
    let change = (after as f64 - before as f64) / before as f64 * 100.0;
    let sign = if change < 0.0 { "−" } else { "+" };
    format!(" ({sign}{:.0} %)", change.abs())
}
