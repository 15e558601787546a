//! `scan`: keys, tokens and passwords in the files of sessions.

use std::ffi::OsString;
use std::io::Write;
use std::sync::Mutex;

use clap::Args;
use unspool_show::format;
use unspool_show::layout;
use unspool_show::sarif;
use unspool_show::style::{StyledLine, TextStyle};
use unspool_show::wire::secret::SecretRow;
use unspool_store::find;
use unspool_store::parallel;
use unspool_store::resolve::SessionTarget;
use unspool_store::secret_scan::{
    self, SecretHit, SecretScanFile, SecretScanFileKind, SecretScanOptions,
};

use crate::command_context::CommandContext;
use crate::commands::ls::short;
use crate::failure::CommandFailure;
use crate::progress_bar::ProgressBar;
use crate::secrets as known;

/// Arguments of `scan`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool scan 2f72
  unspool scan --all --json | jq -r .rule | sort | uniq -c
  unspool scan --all --sarif > secrets.sarif

Scans every file of a session: transcripts, sub-agents, tool results, copies of changed
files, notes, jobs, logs and prompts; with --all also memories of projects, snapshots of shells,
and the client's settings with their backups, which are never redacted; and for the values of variables whose names contain KEY, TOKEN, SECRET or PASS.
Equal hashes are equal secrets. Secrets themselves are shown only with --reveal.
Exit code 0: clean; 1: something was found. `unspool redact` takes them out.")]
pub struct ScanArgs {
    /// Start of a session id, a title, a path, or `@` for the latest [default: @]
    pub session: Option<OsString>,

    /// All sessions
    #[arg(long, conflicts_with = "session")]
    pub all: bool,

    /// Print a SARIF 2.1.0 document
    #[arg(long, conflicts_with = "json")]
    pub sarif: bool,
}

/// Looks for secrets.
pub fn run(world: &CommandContext, args: &ScanArgs) -> Result<(), CommandFailure> {
    let sources = match args.all {
        true => everything(world)?,
        false => one(world, args)?,
    };
    let redactor = known::redactor(&world.own.config, false).map_err(|error| {
        CommandFailure::failed(format!("cannot use the placeholder key: {error}"))
            .hint("set UNSPOOL_HOME to use another directory for unspool's files")
    })?;
    let total = sources.iter().map(|source| source.bytes).sum();
    let bar = Mutex::new(ProgressBar::new(&world.ui, "scanning"));
    let progress = |done| {
        if let Ok(mut bar) = bar.try_lock() {
            bar.show(done, total);
        }
    };
    let how = SecretScanOptions {
        redactor: &redactor,
        reveal: world.reveal,
        threads: parallel::threads(),
        progress: &progress,
    };
    let (hits, warnings) = secret_scan::scan(&sources, &how);
    if let Ok(mut bar) = bar.lock() {
        bar.clear();
    }
    for warning in &warnings {
        world.ui.warn(&warning.to_string());
    }
    let found = sources.iter().zip(hits);
    let found: Vec<(&SecretScanFile, Vec<SecretHit>)> =
        found.filter(|(_, hits)| !hits.is_empty()).collect();
    if args.sarif || world.ui.json {
        machine(world, args, &found)?;
    } else {
        people(world, &found, total, warnings.len())?;
    }
    if found.is_empty() {
        Ok(())
    } else {
        Err(CommandFailure::Found)
    }
}

/// The files of the session that was asked for.
pub fn one(world: &CommandContext, args: &ScanArgs) -> Result<Vec<SecretScanFile>, CommandFailure> {
    Ok(match world.target(args.session.as_deref())? {
        SessionTarget::Session(file) => {
            secret_scan::of_session(&find::find_beside_transcript(&file.path), &file)
        }
        SessionTarget::Agent(file) => secret_scan::of_agent(&file),
    })
}

/// The files of all sessions.
pub fn everything(world: &CommandContext) -> Result<Vec<SecretScanFile>, CommandFailure> {
    let found = world.walked()?;
    let sources = secret_scan::of_all(&found, &world.dirs);
    if sources.is_empty() {
        return Err(world.no_sessions());
    }
    Ok(sources)
}

fn row(world: &CommandContext, source: &SecretScanFile, hit: &SecretHit) -> SecretRow {
    SecretRow {
        session: hit.session.clone(),
        path: source.path.display().to_string(),
        line: hit.line,
        column: hit.column,
        end_column: hit.end_column,
        r#where: hit.place.to_owned(),
        rule: hit.rule.clone(),
        snippet: hit.snippet.clone(),
        hash: hit.hash.clone(),
        secret: world.reveal.then(|| hit.secret.clone()),
        agent: match &source.holds {
            SecretScanFileKind::Agent(id) => Some(id.clone()),
            _ => None,
        },
    }
}

fn machine(
    world: &CommandContext,
    args: &ScanArgs,
    found: &[(&SecretScanFile, Vec<SecretHit>)],
) -> Result<(), CommandFailure> {
    let rows = found
        .iter()
        .flat_map(|(source, hits)| hits.iter().map(|hit| row(world, source, hit)));
    let mut out = world.ui.out();
    if args.sarif {
        let rows: Vec<SecretRow> = rows.collect();
        let rules = known::known().rules();
        let document = sarif::document(env!("CARGO_PKG_VERSION"), rules, &rows);
        serde_json::to_writer_pretty(&mut out, &document)?;
        writeln!(out)?;
    } else {
        for row in rows {
            world.ui.row(&mut out, &row)?;
        }
    }
    Ok(out.flush()?)
}

fn people(
    world: &CommandContext,
    found: &[(&SecretScanFile, Vec<SecretHit>)],
    total: u64,
    unread: usize,
) -> Result<(), CommandFailure> {
    let style = world.ui.style();
    let mut out = world.ui.out();
    for (source, hits) in found {
        let mut head = StyledLine::new();
        if !source.session.is_empty() {
            head.push(TextStyle::HEADING, &format!("{}  ", short(&source.session)));
        }
        head.push(TextStyle::PLAIN, &source.path.display().to_string());
        head.write(&mut out, style.color)?;
        for hit in hits {
            let line = StyledLine::of(TextStyle::PLAIN, &format!("  line {:<5} ", hit.line))
                .with(TextStyle::DIM, &format!("{:<8} ", hit.place))
                .with(TextStyle::WARN, &hit.rule)
                .with(TextStyle::DIM, &format!(" {}  ", hit.hash))
                .with(TextStyle::PLAIN, &hit.snippet);
            layout::cut(&line, style.columns()).write(&mut out, style.color)?;
        }
    }
    out.flush()?;
    let count: usize = found.iter().map(|(_, hits)| hits.len()).sum();
    if count == 0 {
        let unread = match unread {
            0 => String::new(),
            count => format!(
                " read; {} could not be read",
                format::count(count as u64, "file")
            ),
        };
        let looked = format::bytes(total);
        world.ui.note(&format!("no secrets in {looked}{unread}"));
        return Ok(());
    }
    let mut hashes: Vec<&str> = found
        .iter()
        .flat_map(|(_, hits)| hits.iter().map(|hit| hit.hash.as_str()))
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    let is_settings = |(source, _): &&(&SecretScanFile, Vec<SecretHit>)| {
        source.holds == SecretScanFileKind::Settings
    };
    let settings = found.iter().filter(is_settings).count();
    let next = match settings < found.len() {
        true => ": take them out with `unspool redact`",
        false => "",
    };
    world.ui.note(&format!(
        "{}, {} different, in {}{next}",
        format::count(count as u64, "secret"),
        hashes.len(),
        format::count(found.len() as u64, "file"),
    ));
    if settings > 0 {
        world.ui.note(&format!(
            "Claude Code goes by {} of these, which `redact` leaves as they are: change them there",
            format::count(settings as u64, "file"),
        ));
    }
    Ok(())
}
