//! `sql`: SQL over all sessions.

mod result_writer;

use std::io::{Read, Write};

use clap::Args;
use serde::Serialize;
use unspool_index::tables::SessionTables;
use unspool_index::tables::sql_query::{ReadOnlyTables, SqlQueryError};
use unspool_index::tables::sql_views::VIEWS;
use unspool_index::usage_cache::UsageCache;
use unspool_show::format;
use unspool_show::style::{StyledLine, TextStyle};

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;
use crate::progress_bar::ProgressBar;
use result_writer::SqlOutputFormat;

/// Arguments of `sql`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool sql 'SELECT title, turns, last FROM sessions ORDER BY last DESC LIMIT 10'
  unspool sql 'SELECT name, count(*) FROM calls GROUP BY name ORDER BY 2 DESC'
  unspool sql --csv 'SELECT day, sum(cost_usd) FROM usage GROUP BY day'
  unspool sql --excel 'SELECT * FROM sessions' > sessions.csv
  unspool sql --schema         show views and columns
  unspool sql - < query.sql    read the query from standard input

Updates the tables first, reading only sessions that changed. Queries are read-only. Times are
text in UTC; secrets in texts are masked. Exit code 0 even without rows; 2 for an invalid query.")]
pub struct SqlArgs {
    /// One SELECT statement; `-` reads it from standard input
    #[arg(required_unless_present = "schema")]
    pub query: Option<String>,

    /// Print the views and their columns
    #[arg(long, conflicts_with_all = ["query", "csv", "excel"])]
    pub schema: bool,

    /// Print CSV with a header line
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,

    /// Print CSV for spreadsheets, with formulas neutralized
    #[arg(
        long,
        conflicts_with = "json",
        long_help = "Print CSV for spreadsheets, with formulas neutralized\n\nLike --csv, but prefixes texts that begin with = + - @, a tab or a carriage return with an apostrophe. Numbers stay numbers."
    )]
    pub excel: bool,
}

/// Answers a question.
pub fn run(world: &CommandContext, args: &SqlArgs) -> Result<(), CommandFailure> {
    let Some(query) = &args.query else {
        return schema(world);
    };
    let query = match query.as_str() {
        "-" => from_stdin()?,
        _ => query.clone(),
    };
    // A mistake is told before anything is read.
    ReadOnlyTables::check(&query).map_err(|why| refused(&query, why))?;
    let asked = up_to_date(world)?;
    let form = match (world.ui.json, args.csv, args.excel) {
        (true, ..) => SqlOutputFormat::Json,
        (_, _, true) => SqlOutputFormat::Excel,
        (_, true, _) => SqlOutputFormat::Csv,
        _ => SqlOutputFormat::Table,
    };
    let style = world.ui.style();
    let out = match form {
        SqlOutputFormat::Table => world.ui.out(),
        SqlOutputFormat::Json | SqlOutputFormat::Csv | SqlOutputFormat::Excel => world.ui.data(),
    };
    let mut answer = result_writer::SqlResultWriter::new(form, out, &style);
    let rows = asked
        .ask(&query, &mut answer)
        .map_err(|why| refused(&query, why))?;
    answer.finish()?;
    if form == SqlOutputFormat::Table && world.ui.is_terminal() {
        world.ui.note(&format::count(rows, "row"));
    }
    Ok(())
}

fn from_stdin() -> Result<String, CommandFailure> {
    let mut query = String::new();
    let read = std::io::stdin().read_to_string(&mut query);
    read.map_err(|why| CommandFailure::failed(format!("cannot read the query: {why}")))?;
    Ok(query)
}

/// The tables, brought up to date.
fn up_to_date(world: &CommandContext) -> Result<ReadOnlyTables, CommandFailure> {
    let found = world.walked()?;
    if found.sessions.is_empty() && found.agents.is_empty() && found.others.is_empty() {
        return Err(world.no_sessions());
    }
    let kept = world.demo.is_none();
    let mut spendings = UsageCache::open(kept.then_some(world.own.cache.as_path()), true);
    spendings.update(found.clone());
    for note in spendings.notes() {
        world.ui.warn(&note);
    }
    let mut tables = open(world, kept)?;
    let mut bar = ProgressBar::new(&world.ui, "reading sessions");
    let prices = world.prices();
    let done = tables.refresh(&found, &spendings, &prices, &mut |done, all| {
        bar.show(done, all);
    });
    bar.clear();
    let done = done.map_err(CommandFailure::failed)?;
    let notices = done.notice.iter().map(ToString::to_string);
    let warnings = done.warnings.iter().map(ToString::to_string);
    notices
        .chain(warnings)
        .for_each(|text| world.ui.warn(&text));
    if done.held_up {
        world.ui.note(
            "another unspool process is updating the tables: the newest sessions may be missing",
        );
    }
    world.ui.detail(&format!(
        "{} read, {} deleted",
        format::count(done.read as u64, "session"),
        done.gone
    ));
    tables.read_only().map_err(CommandFailure::failed)
}

/// Where nothing can be kept, everything is read.
fn open(world: &CommandContext, kept: bool) -> Result<SessionTables, CommandFailure> {
    if kept {
        match SessionTables::open(&world.shelf("sql")) {
            Ok((tables, notice)) => {
                if let Some(notice) = notice {
                    world.ui.warn(&notice.to_string());
                }
                return Ok(tables);
            }
            Err(error) => world
                .ui
                .warn(&format!("{error}; reading all sessions without it")),
        }
    }
    SessionTables::in_memory().map_err(CommandFailure::failed)
}

/// What is wrong with a query, and where.
fn refused(query: &str, why: SqlQueryError) -> CommandFailure {
    let hint = "see the views and their columns with `unspool sql --schema`";
    match why {
        SqlQueryError::Io(error) => error.into(),
        SqlQueryError::Empty => CommandFailure::failed(why).hint(hint),
        SqlQueryError::Open => CommandFailure::failed(why).hint("put the values into the query"),
        SqlQueryError::Several => CommandFailure::failed(why).hint("run one statement at a time"),
        SqlQueryError::Writes => CommandFailure::failed(why)
            .hint("only SELECT is allowed: the tables are generated from transcripts"),
        SqlQueryError::Sql { message, at } => {
            let place = at.map_or_else(String::new, |at| place(query, at));
            CommandFailure::failed(format!("{message}{place}")).hint(hint)
        }
    }
}

/// The line of the query and a mark below the place.
fn place(query: &str, at: usize) -> String {
    let Some(before) = query.get(..at) else {
        return String::new();
    };
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = query[start..].lines().next().unwrap_or_default();
    let column = StyledLine::of(TextStyle::PLAIN, &query[start..at]).width();
    format!("\n  {line}\n  {}^", " ".repeat(column))
}

/// A view, for machines.
#[derive(Serialize)]
struct SqlViewRow {
    view: &'static str,
    about: &'static str,
    columns: Vec<SqlColumnRow>,
}

/// A column of a view, for machines.
#[derive(Serialize)]
struct SqlColumnRow {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    about: &'static str,
}

fn schema(world: &CommandContext) -> Result<(), CommandFailure> {
    let mut out = world.ui.out();
    let color = world.ui.style().color;
    for view in VIEWS {
        if world.ui.json {
            let columns = view.columns.iter().map(|column| SqlColumnRow {
                name: column.name,
                kind: column.kind.name(),
                about: column.about,
            });
            let row = SqlViewRow {
                view: view.name,
                about: view.about,
                columns: columns.collect(),
            };
            world.ui.row(&mut out, &row)?;
            continue;
        }
        let mut head = StyledLine::of(TextStyle::BOLD, view.name);
        head.push(TextStyle::PLAIN, &format!(": {}", view.about));
        head.write(&mut out, color)?;
        for column in view.columns {
            let (name, kind) = (column.name, column.kind.name());
            let mut line = StyledLine::of(TextStyle::PLAIN, &format!("  {name:<16}"));
            line.push(TextStyle::DIM, &format!("{kind:<9}"));
            line.push(TextStyle::PLAIN, column.about);
            line.write(&mut out, color)?;
        }
        writeln!(out)?;
    }
    if !world.ui.json {
        out.write_all(ADVICE.as_bytes())?;
    }
    Ok(out.flush()?)
}

const ADVICE: &str = "\
Times are text such as 2026-01-03T15:44:58.325Z (UTC) and sort chronologically.
substr(at, 1, 10) is the UTC day, date(at, 'localtime') the local day; usage has the local day in
its column day.

Cost of each project this month:
  SELECT project, round(sum(cost_usd), 2) AS usd FROM usage
  WHERE at >= date('now', 'start of month') GROUP BY project ORDER BY usd DESC

Failed calls by tool:
  SELECT name, count(*) AS calls, sum(status = 'error') AS failed FROM calls
  GROUP BY name ORDER BY failed DESC

Files changed by the most sessions:
  SELECT path, count(DISTINCT session) AS sessions, sum(added) AS added FROM files
  WHERE edits + writes > 0 GROUP BY path ORDER BY sessions DESC LIMIT 20
";
