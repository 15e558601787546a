//! `search`: finds text in all sessions.

pub mod ranked;

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use clap::Args;
use unspool_model::find::{CaseMode, MatchSnippet, QueryError, SearchScope, TextQuery};
use unspool_model::text::TextKind;
use unspool_model::time::Time;
use unspool_show::wire::hit::HitRow;
use unspool_show::{ConversationStyle, StyledLine, TextStyle, format, layout};
use unspool_store::resolve::SessionTarget;
use unspool_store::search::{
    self, SearchFile, SearchFileKind, SearchHit, SearchRequest, SearchTimeRange,
};
use unspool_store::{find, parallel, project};

use crate::command_context::CommandContext;
use crate::commands::ls::short;
use crate::failure::CommandFailure;
use crate::secrets;
use crate::time_input;

/// Arguments of `search`.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  unspool search 'connection reset'
  unspool search 'the \"velvet hammer\" clause' --in prompt,reply
  unspool search --regex 'TODO\\((\\w+)\\)' --project webshop --since 7d
  unspool search --files src/main.rs
  unspool search --ranked 'flaky test -windows project:webshop since:30d'
  unspool search panic --json | jq -r '[.session, .line, .snippet] | @tsv'

The query is literal text, quotes and newlines included. Searches the decoded text of prompts,
replies, thinking, tool inputs and results, progress, titles, sub-agents, and tool results stored
in separate files. ANSI colours are ignored. Smart case: the search is case-sensitive only if the
query contains capitals.

With --ranked a line must contain all words of the query. \"Phrases\" go in quotes, -word excludes,
and project: tool: file: since: model: branch: filter, such as project:webshop or
file:\"src/main.rs\"; tool:, branch: and since: filter lines, the others whole sessions. Ignores
case and accents; matches whole words, except in Chinese and Japanese text. Ranked search covers
prompts, replies, titles, thinking, tool inputs and results. It does not cover tool results stored
in separate files, progress, the client's metadata of results, messages of the client to the
model, and words over 64 characters; search without --ranked does.")]
pub struct SearchArgs {
    /// The text to find
    #[arg(allow_hyphen_values = true)]
    pub query: String,

    /// The query is a regular expression
    #[arg(long, short = 'e')]
    pub regex: bool,

    /// Ignore case
    #[arg(long, short, conflicts_with = "case_sensitive")]
    pub ignore_case: bool,

    /// Match case exactly
    #[arg(long, short = 's')]
    pub case_sensitive: bool,

    /// Search only in: prompt, reply, thinking, tool, result, progress, title, other
    #[arg(long = "in", value_name = "PLACES", value_delimiter = ',', value_parser = place)]
    pub places: Vec<TextKind>,

    /// Only sessions of this project (name, directory, or part of one)
    #[arg(long, value_name = "P")]
    pub project: Option<String>,

    /// Only this session, with its sub-agents
    #[arg(long, value_name = "SESSION")]
    pub session: Option<OsString>,

    /// Only lines written since this time, such as `7d`, `24h`, `today` or `2026-01-03`
    #[arg(long, value_name = "T")]
    pub since: Option<String>,

    /// Only lines written until this time (a date includes that whole day)
    #[arg(long, value_name = "T")]
    pub until: Option<String>,

    /// Maximum number of hits, 0 for all [default: 50, all with --json]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,

    /// Lines of text to show around each match
    #[arg(long, short = 'C', value_name = "N", default_value_t = 0)]
    pub context: usize,

    /// Search only file paths in tool inputs
    #[arg(long)]
    pub files: bool,

    /// Rank hits by relevance, using the index [limit: 20]
    #[arg(long, conflicts_with_all = ["regex", "ignore_case", "case_sensitive", "context", "files", "session"])]
    pub ranked: bool,

    /// Don't continue building the index in the background
    #[arg(long, requires = "ranked")]
    pub no_background: bool,
}

pub fn place(name: &str) -> Result<TextKind, String> {
    TextKind::parse(name).ok_or_else(|| {
        let names: Vec<&str> = TextKind::ALL.iter().map(|place| place.name()).collect();
        format!("unknown place: use one or more of {}", names.join(","))
    })
}

/// How many hits a person gets to see unless they ask for more.
const FEW: usize = 50;

/// More lines around a match than this are a conversation: `show` it.
const MOST_CONTEXT: usize = 100;

/// Finds text.
pub fn run(world: &CommandContext, args: &SearchArgs) -> Result<(), CommandFailure> {
    if args.ranked {
        return ranked::run(world, args);
    }
    let limit = match (args.limit, world.ui.json) {
        (Some(0), _) | (None, true) => usize::MAX,
        (Some(limit), _) => limit,
        (None, false) => FEW,
    };
    let mut shown = HitPrinter::new(world, limit, args.context > 0);
    let mut failed = None;
    seek(world, args, |source, hit| match shown.hit(source, hit) {
        Ok(flow) => flow,
        Err(failure) => {
            failed = Some(failure);
            ControlFlow::Break(())
        }
    })?;
    if let Some(failure) = failed {
        return Err(failure);
    }
    if shown.hits == 0 {
        return Err(nothing(args));
    }
    shown.end()
}

/// The hits as rows, at most `limit`.
pub fn rows(
    world: &CommandContext,
    args: &SearchArgs,
    limit: usize,
) -> Result<Vec<HitRow>, CommandFailure> {
    let mut rows = Vec::new();
    let mut projects = ProjectNames::default();
    seek(world, args, |source, hit| {
        rows.push(projects.row(source, &hit));
        match rows.len() < limit {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    Ok(rows)
}

/// Hands out hits until somebody has enough.
fn seek(
    world: &CommandContext,
    args: &SearchArgs,
    each: impl FnMut(&SearchFile, SearchHit) -> ControlFlow<()>,
) -> Result<(), CommandFailure> {
    let query = query(args)?;
    let scope = SearchScope {
        places: args.places.clone(),
        paths: args.files,
        around: args.context.min(MOST_CONTEXT),
        reveal: world.reveal,
        secrets: (!world.reveal).then(|| secrets::known().clone()),
    };
    let span = span(world, args.since.as_deref(), args.until.as_deref())?;
    let sources = sources(world, args)?;
    let what = SearchRequest {
        query: &query,
        scope: &scope,
        span,
    };
    let warnings = search::search(&sources, &what, parallel::threads(), each);
    for warning in warnings {
        world.ui.warn(&warning.to_string());
    }
    Ok(())
}

/// Hands on every hit of a text as a row, newest sessions first, until `each` has enough: for
/// screens.
pub fn stream(
    world: &CommandContext,
    text: &str,
    each: &mut dyn FnMut(HitRow) -> ControlFlow<()>,
) -> Result<(), CommandFailure> {
    let args = SearchArgs {
        query: text.to_owned(),
        ..SearchArgs::default()
    };
    let mut projects = ProjectNames::default();
    seek(world, &args, |source, hit| each(projects.row(source, &hit)))
}

fn query(args: &SearchArgs) -> Result<TextQuery, CommandFailure> {
    let case = match (args.ignore_case, args.case_sensitive) {
        (true, _) => CaseMode::Ignore,
        (_, true) => CaseMode::Exact,
        _ => CaseMode::Smart,
    };
    let query = if args.regex {
        TextQuery::regex(&args.query, case)
    } else {
        TextQuery::literal(&args.query, case)
    };
    query.map_err(|bad| match bad {
        QueryError::Empty => {
            CommandFailure::failed("the query is empty").hint("pass the text to search for")
        }
        QueryError::TooLarge => CommandFailure::failed("the regular expression is too large")
            .hint("use smaller repetitions"),
        QueryError::Regex { at, why } => CommandFailure::failed(format!(
            "`{}` is not a valid regular expression: {why} at character {}",
            args.query,
            at + 1
        ))
        .hint(format!(
            "here:\n  {}\n  {}^\nto search for this literal text, omit `--regex`",
            args.query.replace('\n', " "),
            " ".repeat(at)
        )),
    })
}

fn span(
    world: &CommandContext,
    since: Option<&str>,
    until: Option<&str>,
) -> Result<SearchTimeRange, CommandFailure> {
    let (now, zone) = (world.now(), world.ui.zone());
    let since = since.map(|text| time_input::parse(text, now, zone));
    let until = until.map(|text| time_input::end(text, now, zone));
    Ok(SearchTimeRange {
        since: since.transpose()?,
        until: until.transpose()?,
    })
}

/// The files to search, in the order in which hits are shown.
fn sources(world: &CommandContext, args: &SearchArgs) -> Result<Vec<SearchFile>, CommandFailure> {
    let fits = |path: &Path, folder: &str| match &args.project {
        Some(wanted) => project::project_matches(&search::project(path, folder), wanted),
        None => true,
    };
    if let Some(session) = &args.session {
        let sources = match world.target(Some(session))? {
            SessionTarget::Session(file) => {
                search::files(&find::find_beside_transcript(&file.path), &file)
            }
            SessionTarget::Agent(file) => vec![search::agent_search_file(&file)],
        };
        let first = sources.first();
        return match first {
            Some(first) if !fits(&first.path, &first.folder) => Err(nothing(args)),
            _ => Ok(sources),
        };
    }
    let found = world.walked()?;
    if found.sessions.is_empty() && found.agents.is_empty() {
        return Err(world.no_sessions());
    }
    Ok(search::all(&found, fits))
}

fn nothing(args: &SearchArgs) -> CommandFailure {
    let capitals = !args.ignore_case && args.query.chars().any(char::is_uppercase);
    let narrowed = !args.places.is_empty()
        || args.files
        || args.session.is_some()
        || args.project.is_some()
        || args.since.is_some()
        || args.until.is_some();
    let hint = if args.query.starts_with("--") {
        "this was taken as the query: `unspool search --help` lists the options"
    } else if capitals || args.case_sensitive {
        "the search was case-sensitive: add `--ignore-case`"
    } else if narrowed {
        "omit the options that narrow the search"
    } else {
        "try a shorter query, or a pattern with `--regex`"
    };
    CommandFailure::nothing(format!("nothing found for `{}`", args.query)).hint(hint)
}

/// What has been shown so far.
struct HitPrinter<'a> {
    world: &'a CommandContext,
    style: ConversationStyle,
    out: Box<dyn Write>,
    limit: usize,
    hits: usize,
    /// Sessions with hits beyond the limit are only counted.
    sessions: usize,
    session: Option<String>,
    projects: ProjectNames,
    now: Time,
    /// Whether lines around a match were asked for.
    around: bool,
    /// How to open the first hit.
    open: Option<String>,
}

impl<'a> HitPrinter<'a> {
    fn new(world: &'a CommandContext, limit: usize, around: bool) -> HitPrinter<'a> {
        HitPrinter {
            world,
            style: world.ui.style(),
            out: Box::new(world.ui.out()),
            limit,
            hits: 0,
            sessions: 0,
            session: None,
            projects: ProjectNames::default(),
            now: world.now(),
            around,
            open: None,
        }
    }

    fn hit(
        &mut self,
        source: &SearchFile,
        hit: SearchHit,
    ) -> Result<ControlFlow<()>, CommandFailure> {
        self.hits += 1;
        let first = self.session.as_ref() != Some(&source.session);
        if first {
            self.sessions += 1;
            self.session = Some(source.session.clone());
        }
        if self.world.ui.json {
            self.row(source, &hit)?;
            // Nobody is told how many more there are.
            return Ok(if self.hits >= self.limit {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            });
        }
        if self.hits <= self.limit {
            if first {
                self.head(source, &hit)?;
            }
            self.line(source, &hit)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn row(&mut self, source: &SearchFile, hit: &SearchHit) -> Result<(), CommandFailure> {
        let row = self.projects.row(source, hit);
        self.world.ui.row(&mut self.out, &row)
    }

    /// The session, above its hits.
    fn head(&mut self, source: &SearchFile, hit: &SearchHit) -> Result<(), CommandFailure> {
        if self.hits > 1 {
            StyledLine::new().write(&mut self.out, false)?;
        }
        let at = hit.at.unwrap_or(Time(source.modified));
        let project = self.projects.of(source);
        let mut title = session_file(source).and_then(|path| search::title(&path));
        self.world.mask_in(&mut title);
        let head = StyledLine::of(TextStyle::HEADING, short(&source.session))
            .with(
                TextStyle::DIM,
                &format!("  {}  ", format::age(self.now.since(at))),
            )
            .with(TextStyle::VERB, project::project_name(&project))
            .with(TextStyle::PLAIN, "  ")
            .with(TextStyle::BOLD, &title.unwrap_or_default());
        layout::cut(&head, self.style.columns()).write(&mut self.out, self.style.color)?;
        Ok(())
    }

    fn line(&mut self, source: &SearchFile, hit: &SearchHit) -> Result<(), CommandFailure> {
        if self.open.is_none() {
            self.open = Some(open(source, hit));
        }
        let mut head = StyledLine::of(TextStyle::PLAIN, "  ");
        match &source.holds {
            SearchFileKind::Session => {}
            SearchFileKind::Agent(id) => head.push(TextStyle::WARN, &format!("agent-{id} ")),
            SearchFileKind::Output => {
                let name = source.path.file_name().unwrap_or_default();
                head.push(TextStyle::WARN, &format!("{} ", name.to_string_lossy()));
            }
        }
        head.push(TextStyle::PLAIN, &format!("line {:<5} ", hit.line));
        head.push(TextStyle::DIM, &format!("{:<8} ", hit.found.place.name()));
        let columns = self.style.columns();
        let lines = match hit.found.snippet.whole().contains('\n') {
            // Where somebody asked for lines, they stand below.
            true if self.around => {
                head.write(&mut self.out, self.style.color)?;
                below(&hit.found.snippet)
            }
            _ => {
                let room = columns.saturating_sub(head.width());
                head.append(&beside(&hit.found.snippet, room));
                vec![head]
            }
        };
        for line in lines {
            layout::cut(&line, columns).write(&mut self.out, self.style.color)?;
        }
        Ok(())
    }

    fn end(mut self) -> Result<(), CommandFailure> {
        self.out.flush()?;
        let ui = &self.world.ui;
        if ui.json {
            return Ok(());
        }
        if self.hits > self.limit {
            ui.note(&format!(
                "{} more, {} in {} in total: raise `--limit`, or narrow the search with `--in`, `--project` or `--since`",
                self.hits - self.limit,
                format::count(self.hits as u64, "hit"),
                format::count(self.sessions as u64, "session"),
            ));
        }
        if let Some(open) = &self.open {
            ui.note(&format!("show a hit (here the first) with `{open}`"));
        }
        Ok(())
    }
}

/// The projects of sessions, as far as they were asked for.
#[derive(Default)]
struct ProjectNames {
    known: HashMap<String, String>,
}

impl ProjectNames {
    /// A hit for machines.
    fn row(&mut self, source: &SearchFile, hit: &SearchHit) -> HitRow {
        HitRow {
            session: source.session.clone(),
            path: source.path.display().to_string(),
            line: hit.line,
            uuid: hit.uuid.clone(),
            r#where: hit.found.place.name().to_owned(),
            at: hit.at.map(|at| at.to_string()),
            snippet: hit.found.snippet.whole(),
            matches: hit.found.count,
            agent: hit.agent.clone(),
            project: self.of(source),
            score: None,
            title: None,
        }
    }

    /// The project of the session: its file tells, and where that is gone the sub-agent's.
    fn of(&mut self, source: &SearchFile) -> String {
        let known = self.known.entry(source.session.clone());
        let path = || session_file(source).unwrap_or_else(|| source.path.clone());
        known
            .or_insert_with(|| search::project(&path(), &source.folder))
            .clone()
    }
}

/// The session's own file, as far as the place of this one tells.
fn session_file(source: &SearchFile) -> Option<std::path::PathBuf> {
    if source.holds == SearchFileKind::Session {
        return Some(source.path.clone());
    }
    let name = format!("{}.jsonl", source.session);
    let mut above = source.path.ancestors().skip(1);
    above.find_map(|dir| Some(dir.join(&name)).filter(|path| path.is_file()))
}

/// The command that shows a hit.
fn open(source: &SearchFile, hit: &SearchHit) -> String {
    let line = hit.line;
    match &source.holds {
        SearchFileKind::Session => format!("unspool show {} --line {line}", short(&source.session)),
        SearchFileKind::Agent(id) => format!("unspool show agent-{id} --line {line}"),
        // It is text as it stands, and no line of a transcript.
        SearchFileKind::Output => format!("less +{line} {}", for_shell(&source.path)),
    }
}

/// A path as one argument for a shell.
fn for_shell(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |char: char| char.is_alphanumeric() || "/._-+:@%,=".contains(char);
    if text.chars().all(plain) {
        return text;
    }
    if cfg!(windows) {
        return format!("\"{text}\"");
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A match on one line, cut so that it is in view.
fn beside(snippet: &MatchSnippet, room: usize) -> StyledLine {
    let hit = StyledLine::of(TextStyle::HIT, &snippet.hit);
    let before = room.saturating_sub(hit.width()) / 3;
    let kept: Vec<char> = snippet.before.chars().collect();
    let from = kept.len().saturating_sub(before.max(8));
    let cut = if from > 0 { "…" } else { "" };
    let start: String = kept[from..].iter().collect();
    let mut line = StyledLine::of(TextStyle::PLAIN, cut).with(TextStyle::PLAIN, start.trim_start());
    line.append(&hit);
    line.push(TextStyle::PLAIN, &snippet.after);
    line
}

/// A match with the lines around it, each on its own.
fn below(snippet: &MatchSnippet) -> Vec<StyledLine> {
    let mut lines = vec![StyledLine::of(TextStyle::PLAIN, "    ")];
    let parts = [
        (TextStyle::PLAIN, &snippet.before),
        (TextStyle::HIT, &snippet.hit),
        (TextStyle::PLAIN, &snippet.after),
    ];
    for (paint, text) in parts {
        for (at, part) in layout::untabbed(text).split('\n').enumerate() {
            if at > 0 {
                lines.push(StyledLine::of(TextStyle::PLAIN, "    "));
            }
            if let Some(line) = lines.last_mut() {
                line.push(paint, part);
            }
        }
    }
    lines
}
