//! `search --ranked`: the best hits first, by the index of words.

use std::io::Write;
use std::time::Duration;

use unspool_index::text_index::{
    IndexRunEnd, IndexStage, IndexStatus, RankedHit, RankedQuery, RankedSearch, TextIndex,
    indexed_line,
};
use unspool_model::time::Time;
use unspool_show::wire::hit::HitRow;
use unspool_show::{StyledLine, TextStyle, format, layout};
use unspool_store::find::FoundSessionFiles;
use unspool_store::project;

use super::SearchArgs;
use crate::background_indexing;
use crate::command_context::CommandContext;
use crate::commands::index;
use crate::commands::ls::short;
use crate::failure::CommandFailure;
use crate::progress_bar::ProgressBar;

/// How many hits are shown unless somebody asks for more.
const FEW: usize = 20;

/// How many of one session.
const PER_SESSION: usize = 3;

/// How many characters of a hit machines get.
const WIDTH: usize = 200;

/// How long a person waits for another process that writes.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Finds words.
pub fn run(world: &CommandContext, args: &SearchArgs) -> Result<(), CommandFailure> {
    let style = world.ui.style();
    let width = if world.ui.json {
        WIDTH
    } else {
        style.columns().saturating_sub(22).clamp(40, WIDTH)
    };
    let (hits, status) = seek(world, args, width)?;
    show(world, world.now(), &hits)?;
    tell(world, &status, args.no_background);
    if hits.is_empty() {
        let hint = if status.behind[IndexStage::Rest as usize] > 0 {
            "the index is incomplete: search without `--ranked`, or retry later"
        } else {
            "only whole words match: try fewer or other words, or search without `--ranked`"
        };
        return Err(
            CommandFailure::nothing(format!("nothing found for `{}`", args.query)).hint(hint),
        );
    }
    Ok(())
}

/// The hits as rows, and whether something is not indexed yet.
pub fn rows(
    world: &CommandContext,
    args: &SearchArgs,
) -> Result<(Vec<HitRow>, bool), CommandFailure> {
    let (hits, status) = seek(world, args, WIDTH)?;
    tell(world, &status, args.no_background);
    let behind = status.behind[IndexStage::Rest as usize] > 0;
    Ok((hits.iter().map(row).collect(), behind))
}

fn seek(
    world: &CommandContext,
    args: &SearchArgs,
    width: usize,
) -> Result<(Vec<RankedHit>, IndexStatus), CommandFailure> {
    let query = query(args)?;
    let span = super::span(world, query.since.as_deref(), args.until.as_deref())?;
    let ask = RankedSearch {
        query: &query,
        since: span.since,
        until: span.until,
        places: &args.places,
        now: world.now(),
        limit: match args.limit {
            Some(0) => usize::MAX,
            Some(limit) => limit,
            None => FEW,
        },
        per_session: PER_SESSION,
        width,
    };
    // What is shown is masked; getting ready for that takes as long as finding it.
    std::thread::spawn(indexed_line::prepare_secret_rules);
    let found = world.walked()?;
    if found.sessions.is_empty() && found.agents.is_empty() {
        return Err(world.no_sessions());
    }
    let mut text = up_to_date(world, &found)?;
    let mut hits = text.query(&ask);
    // Its words are read only now.
    if hits
        .as_ref()
        .is_err_and(unspool_index::CacheError::is_damaged)
    {
        drop(index::renew(world, text)?);
        text = up_to_date(world, &found)?;
        hits = text.query(&ask);
    }
    let hits = hits.map_err(CommandFailure::failed)?;
    let status = text.status(&found).map_err(CommandFailure::failed)?;
    Ok((hits, status))
}

/// The query with what the options add to it.
fn query(args: &SearchArgs) -> Result<RankedQuery, CommandFailure> {
    let mut query = RankedQuery::parse(&args.query)
        .map_err(|wrong| CommandFailure::failed(&wrong.message).hint(&wrong.hint))?;
    query.projects.extend(args.project.clone());
    if let Some(since) = &args.since {
        if query.since.is_some() {
            return Err(
                CommandFailure::failed("`--since` and `since:` are both given")
                    .hint("use only one of them"),
            );
        }
        query.since = Some(since.clone());
    }
    Ok(query)
}

/// The index, with all dialogue that is there now.
fn up_to_date(
    world: &CommandContext,
    found: &FoundSessionFiles,
) -> Result<TextIndex, CommandFailure> {
    let mut text = index::open(world)?;
    text.be_patient(PATIENCE).map_err(CommandFailure::failed)?;
    let mut refreshed = dialogue(world, &mut text, found);
    if refreshed
        .as_ref()
        .is_err_and(unspool_index::CacheError::is_damaged)
    {
        text = index::renew(world, text)?;
        refreshed = dialogue(world, &mut text, found);
    }
    if refreshed.map_err(CommandFailure::failed)? == IndexRunEnd::Busy {
        world
            .ui
            .note("another unspool process is writing the index: the newest hits may be missing");
    }
    Ok(text)
}

fn dialogue(
    world: &CommandContext,
    text: &mut TextIndex,
    found: &FoundSessionFiles,
) -> Result<IndexRunEnd, unspool_index::CacheError> {
    let mut bar = ProgressBar::new(&world.ui, "indexing dialogue");
    text.refresh_dialogue(found, &mut |at| {
        bar.show(at.done, at.all);
        true
    })
}

/// Says what is not indexed yet, and sees to it.
fn tell(world: &CommandContext, status: &IndexStatus, no_background: bool) {
    let rest = IndexStage::Rest as usize;
    if status.behind[rest] == 0 {
        return;
    }
    let done = status.bytes.saturating_sub(status.behind[rest]);
    let text = format!(
        "thinking and tool results of {} in {} are not indexed yet ({} % done; finish with `unspool index build`)",
        format::bytes(status.behind[rest]),
        format::count(status.behind_files[rest], "file"),
        done * 100 / status.bytes.max(1)
    );
    world.ui.note(&text);
    if !no_background && background_indexing::start(world) {
        world.ui.detail("continuing in the background");
    }
}

fn show(world: &CommandContext, now: Time, hits: &[RankedHit]) -> Result<(), CommandFailure> {
    let mut out = world.ui.out();
    let mut session = None;
    for hit in hits {
        if world.ui.json {
            world.ui.row(&mut out, &row(hit))?;
            continue;
        }
        if session != Some(&hit.session) {
            if session.is_some() {
                writeln!(out)?;
            }
            session = Some(&hit.session);
            head(world, now, hit, &mut out)?;
        }
        line(world, hit, &mut out)?;
    }
    out.flush()?;
    if let (false, Some(hit)) = (world.ui.json, hits.first()) {
        let file = match &hit.agent {
            Some(agent) => format!("agent-{agent}"),
            None => short(&hit.session).to_owned(),
        };
        world.ui.note(&format!(
            "show a hit (here the first) with `unspool show {file} --line {}`",
            hit.line
        ));
    }
    Ok(())
}

/// The session, above its hits.
fn head(
    world: &CommandContext,
    now: Time,
    hit: &RankedHit,
    out: &mut dyn Write,
) -> Result<(), CommandFailure> {
    let style = world.ui.style();
    let age = hit
        .at
        .map_or_else(String::new, |at| format::age(now.since(at)));
    let head = StyledLine::of(TextStyle::HEADING, short(&hit.session))
        .with(TextStyle::DIM, &format!("  {age}  "))
        .with(TextStyle::VERB, project::project_name(&hit.project))
        .with(TextStyle::PLAIN, "  ")
        .with(TextStyle::BOLD, hit.title.as_deref().unwrap_or_default());
    Ok(layout::cut(&head, style.columns()).write(out, style.color)?)
}

fn line(
    world: &CommandContext,
    hit: &RankedHit,
    out: &mut dyn Write,
) -> Result<(), CommandFailure> {
    let style = world.ui.style();
    let mut line = StyledLine::of(TextStyle::PLAIN, "  ");
    if let Some(agent) = &hit.agent {
        line.push(TextStyle::WARN, &format!("agent-{agent} "));
    }
    line.push(TextStyle::PLAIN, &format!("line {:<5} ", hit.line));
    line.push(TextStyle::DIM, &format!("{:<8} ", hit.place.name()));
    let text = &hit.snippet.text;
    let mut at = 0;
    for mark in &hit.snippet.marks {
        line.push(TextStyle::PLAIN, &text[at..mark.start]);
        line.push(TextStyle::HIT, &text[mark.clone()]);
        at = mark.end;
    }
    line.push(TextStyle::PLAIN, &text[at..]);
    Ok(layout::cut(&line, style.columns()).write(out, style.color)?)
}

fn row(hit: &RankedHit) -> HitRow {
    HitRow {
        session: hit.session.clone(),
        path: hit.path.display().to_string(),
        line: hit.line.into(),
        uuid: hit.uuid.clone(),
        r#where: hit.place.name().to_owned(),
        at: hit.at.map(|at| at.to_string()),
        snippet: hit.snippet.text.clone(),
        matches: hit.snippet.count,
        agent: hit.agent.clone(),
        project: hit.project.clone(),
        score: Some((hit.score * 1000.0).round() / 1000.0),
        title: hit.title.clone(),
    }
}
