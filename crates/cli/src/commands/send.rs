//! `send`: turns as traces, to Langfuse or any receiver of OTLP.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use unspool_model::price::Cost;
use unspool_send::spans::{TraceSpan, TraceSpanKind, TraceSpanLevel, TurnTrace};
use unspool_send::target::TraceTarget;
use unspool_send::trace_id::SpanId;
use unspool_show::wire::send::{SentRow, SpanRow};
use unspool_show::{clean, format};
use unspool_store::SessionFile;
use unspool_store::find::FoundSessionFiles;
use unspool_store::resolve;

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;
use crate::sending::{self, ReceiverKind, SendOptions, SendPreview, SendSummary};
use crate::time_input;

/// Arguments of `send`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool send --to langfuse                   the latest session of this directory
  unspool send --all --to langfuse             all sessions, oldest first; safe to interrupt
  unspool send --since 7d --to otlp --dry-run  show what would be sent

Every turn becomes a trace with its replies, tool calls and sub-agents, at their original times.
Ids derive from the transcript and accepted turns are recorded, so sending is idempotent: only
turns that are new or have grown are sent. Keys, tokens and passwords are masked.
Langfuse: LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY and LANGFUSE_BASE_URL, or the same names with
the prefix CC_. OTLP over HTTP: OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS.")]
pub struct SendArgs {
    /// Start of a session id, a title, a path, or `@` for the latest [default: @]
    pub sessions: Vec<OsString>,

    /// All sessions
    #[arg(long, conflicts_with = "sessions")]
    pub all: bool,

    /// All sessions active since this time, such as `7d`, `24h`, `today` or `2026-01-03`
    #[arg(long, value_name = "T", conflicts_with = "sessions")]
    pub since: Option<String>,

    /// Where to send
    #[arg(long, value_name = "WHOM")]
    pub to: ReceiverKind,

    /// Show what would be sent, and send nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Resend everything
    #[arg(long)]
    pub full: bool,

    /// Include thinking
    #[arg(long)]
    pub thinking: bool,

    /// Truncate texts after N characters
    #[arg(long, value_name = "N")]
    pub max_chars: Option<usize>,

    /// Do not mask keys, tokens and passwords
    #[arg(long)]
    pub no_redact: bool,
}

/// Sends sessions, or shows what would be sent.
pub fn run(world: &CommandContext, args: &SendArgs) -> Result<(), CommandFailure> {
    let target = sending::target(args.to, &sending::environment);
    let wishes = SendOptions {
        full: args.full,
        thinking: args.thinking,
        max_chars: args.max_chars,
        no_redact: args.no_redact,
        ended: false,
        patient: false,
        bar: true,
    };
    if args.dry_run {
        let files = wanted(world, args)?;
        // Nothing is sent, so nothing need be known of where to.
        return dry(world, target.ok().as_ref(), &files, &wishes);
    }
    let target = target?;
    let files = wanted(world, args)?;
    let summary = sending::deliver(world, &target, &files, &wishes)?;
    tell(world, &summary);
    if world.ui.json {
        let mut out = world.ui.out();
        world.ui.row(&mut out, &row(&summary))?;
        out.flush()?;
    } else {
        world.ui.note(&sentence(&summary, "sent"));
    }
    match (summary.turns, summary.refused) {
        (0, 1..) => Err(CommandFailure::failed("the receiver rejected all turns")
            .hint("see the reasons above; no turn was marked as sent")),
        _ => Ok(()),
    }
}

/// The sessions that are asked for, the oldest first.
fn wanted(world: &CommandContext, args: &SendArgs) -> Result<Vec<SessionFile>, CommandFailure> {
    if args.all || args.since.is_some() {
        let since = args.since.as_deref();
        let since = since.map(|text| time_input::parse(text, world.now(), world.ui.zone()));
        let since = since.transpose()?;
        let found = world.found()?;
        if args.all {
            name_orphans(world, &found);
        }
        let mut files = found.sessions;
        if files.is_empty() {
            return Err(world.no_sessions());
        }
        files.retain(|file| since.is_none_or(|since| file.modified >= since.0));
        if files.is_empty() {
            return Err(CommandFailure::nothing("no session was active since then")
                .hint("list all sessions with `unspool ls`"));
        }
        sending::oldest_first(world, &mut files);
        return Ok(files);
    }
    let latest = [OsString::from("@")];
    let named = if args.sessions.is_empty() {
        &latest[..]
    } else {
        &args.sessions
    };
    let mut files = Vec::new();
    for session in named {
        match world.target(Some(session))? {
            resolve::SessionTarget::Session(file) => files.push(file),
            resolve::SessionTarget::Agent(_) => {
                return Err(
                    CommandFailure::failed("sub-agents cannot be sent on their own")
                        .hint("send the session that the sub-agent belongs to"),
                );
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    sending::oldest_first(world, &mut files);
    Ok(files)
}

/// Says which sub-agents cannot be sent because their sessions are gone.
fn name_orphans(world: &CommandContext, found: &FoundSessionFiles) {
    let sessions = found.sessions.iter();
    let sessions: HashSet<(&str, &str)> = sessions.map(|file| (&*file.folder, &*file.id)).collect();
    let orphans = found.agents.iter().filter(|agent| {
        let session = agent.session.as_deref().unwrap_or_default();
        !sessions.contains(&(&*agent.folder, session))
    });
    let names: Vec<String> = orphans.map(|agent| format!("agent-{}", agent.id)).collect();
    const NAMED: usize = 20;
    let more = names.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("{more} more"));
    let named = names.iter().take(NAMED).cloned().chain(more);
    if !names.is_empty() {
        let named = named.collect::<Vec<_>>().join(", ");
        let count = format::count(names.len() as u64, "sub-agent");
        world.ui.warn(&format!(
            "skipped {count} whose sessions were deleted ({named})"
        ));
    }
}

/// What went wrong on the side.
fn tell(world: &CommandContext, summary: &SendSummary) {
    for warning in &summary.warnings {
        world.ui.warn(warning);
    }
    const SHOWN: usize = 10;
    for rejected in summary.rejected.iter().take(SHOWN) {
        world.ui.warn(&format!("rejected: {rejected}"));
    }
    if let Some(more) = summary
        .rejected
        .len()
        .checked_sub(SHOWN)
        .filter(|more| *more > 0)
    {
        world.ui.warn(&format!("rejected: {more} more"));
    }
}

fn row(summary: &SendSummary) -> SentRow {
    SentRow {
        sessions: summary.sessions,
        turns: summary.turns,
        spans: summary.spans,
        bytes: summary.bytes,
        requests: summary.requests,
        already: summary.already,
        elsewhere: summary.elsewhere,
        waiting: summary.waiting,
        refused: summary.refused,
        rejected: summary.rejected.clone(),
    }
}

/// `3 turns with 20 spans of 2 sessions sent (12 KB); 5 turns were sent before`.
fn sentence(summary: &SendSummary, done: &str) -> String {
    let mut parts = Vec::new();
    if summary.turns > 0 {
        let bytes = match summary.bytes {
            0 => String::new(),
            bytes => format!(" ({})", format::bytes(bytes)),
        };
        parts.push(format!(
            "{} with {} of {} {done}{bytes}",
            format::count(summary.turns, "turn"),
            format::count(summary.spans, "span"),
            format::count(summary.sessions, "session"),
        ));
    } else {
        parts.push("nothing new to send".to_owned());
    }
    let also = [
        (summary.already, "already sent"),
        (summary.elsewhere, "copied from an older session"),
        (summary.waiting, "unfinished"),
        (summary.refused, "rejected, will be retried next time"),
    ];
    for (turns, what) in also.into_iter().filter(|(turns, _)| *turns > 0) {
        parts.push(format!("{} {what}", format::count(turns, "turn")));
    }
    parts.join("; ")
}

fn dry(
    world: &CommandContext,
    target: Option<&TraceTarget>,
    files: &[SessionFile],
    wishes: &SendOptions,
) -> Result<(), CommandFailure> {
    let mut out = world.ui.out();
    let summary = sending::preview_send(world, target, files, wishes, &mut |sample| {
        if world.ui.json {
            return rows(world, &mut out, &sample);
        }
        tree(world, &mut out, &sample)
    })?;
    out.flush()?;
    tell(world, &summary);
    if target.is_none() {
        world
            .ui
            .note("No keys are set, so every turn counts as not yet sent.");
    }
    world.ui.note(&sentence(&summary, "would be sent"));
    Ok(())
}

fn rows(
    world: &CommandContext,
    out: &mut dyn Write,
    sample: &SendPreview,
) -> Result<(), CommandFailure> {
    for trace in &sample.traces {
        for span in &trace.spans {
            world.ui.row(out, &span_row(trace, span))?;
        }
    }
    Ok(())
}

fn span_row(trace: &TurnTrace, span: &TraceSpan) -> SpanRow {
    SpanRow {
        session: trace.session.clone(),
        turn: trace.n,
        trace: trace.id.to_string(),
        span: span.id.to_string(),
        parent: span.parent.map(|parent| parent.to_string()),
        kind: span.kind.name().to_owned(),
        name: span.name.clone(),
        start: span.start.map(|at| at.to_string()),
        end: span.end.map(|at| at.to_string()),
        level: span.level.name().to_owned(),
        usage: span.usage.map(Into::into),
        cost_usd: span.cost.as_ref().map(|cost| Cost::usd(cost.total)),
    }
}

fn tree(
    world: &CommandContext,
    out: &mut dyn Write,
    sample: &SendPreview,
) -> Result<(), CommandFailure> {
    if sample.traces.is_empty() {
        return Ok(());
    }
    let title = sample.title.as_deref().unwrap_or_default();
    let title = world.masked(title);
    let short: String = clean::line(&title).chars().take(60).collect();
    writeln!(out, "{}  {short}", clean::line(&sample.file.id))?;
    for trace in &sample.traces {
        let mut depths: HashMap<SpanId, usize> = HashMap::new();
        for span in &trace.spans {
            let above = span.parent.and_then(|parent| depths.get(&parent));
            let depth = above.map_or(1, |above| above + 1);
            depths.insert(span.id, depth);
            writeln!(out, "{}", line(world, span, depth))?;
        }
    }
    Ok(())
}

/// `    Read  12:00:03  1.2 s  ERROR`.
fn line(world: &CommandContext, span: &TraceSpan, depth: usize) -> String {
    let mark = match span.kind {
        TraceSpanKind::Event => "· ",
        _ => "",
    };
    let mut words = vec![format!("{mark}{}", clean::line(&span.name))];
    let zone = world.ui.zone();
    let when = |at| match span.parent {
        None => format::moment(at, zone),
        Some(_) => format::clock(at, zone),
    };
    words.extend(span.start.map(when));
    if let (Some(start), Some(end)) = (span.start, span.end)
        && end > start
    {
        words.push(format::duration((end.0 - start.0).unsigned_abs()));
    }
    if let Some(usage) = span.usage {
        words.push(format!("{} tokens", format::tokens(usage.total())));
    }
    if let Some(cost) = &span.cost {
        words.push(format::dollars(cost.total.usd()));
    }
    if span.level >= TraceSpanLevel::Warning {
        words.push(span.level.name().to_owned());
    }
    format!("{}{}", "  ".repeat(depth), words.join("  "))
}
