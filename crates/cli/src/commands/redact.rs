//! `redact`: secrets out of the files of sessions.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use unspool_model::edit::check::ExpectedResult;
use unspool_model::edit::redact::Redactor;
use unspool_model::edit::{self, EditPlan};
use unspool_model::secrets::SecretFinder;
use unspool_model::session::TranscriptRole;
use unspool_show::clean;
use unspool_show::format;
use unspool_show::wire::edit::{Amounts, CheckRow, EditResult, LineCounts};
use unspool_store::find::{self, SessionFile};
use unspool_store::journal::{self, JournalTask};
use unspool_store::open;
use unspool_store::parallel;
use unspool_store::read::{self, LoadedSession};
use unspool_store::resolve::SessionTarget;
use unspool_store::secret_scan::{
    self, RedactionResult, SecretScanFile, SecretScanFileKind, SecretScanOptions,
};
use unspool_store::session_in_use::InUseSessions;

use crate::command_context::CommandContext;
use crate::commands::clone::TrimArgs;
use crate::commands::index;
use crate::edit_options::{self, EditOptions};
use crate::failure::CommandFailure;
use crate::secrets as known;
use crate::session_edit::staging::{EditStaging, StagingTarget};
use crate::session_edit::{self, EditRequest, edit_verification};

/// Arguments of `redact`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool redact 2f72                       write a copy without secrets
  unspool redact 2f72 --in-place --dry-run  show what would be replaced
  unspool redact 2f72 --in-place            edit the session itself; `unspool undo` reverts it

Each secret becomes [REDACTED:rule:hash]; equal secrets have equal hashes. --in-place edits every
file of the session: transcript, sub-agents, tool results, file backups, notes, its job and log,
and its entries in the prompt history. The originals, secrets included, are kept in unspool's
data folder for undo.")]
pub struct RedactArgs {
    /// Start of a session id, a title, a path, or `@` for the latest
    #[arg(required_unless_present = "all")]
    pub session: Option<OsString>,

    /// All sessions, leftover files of others, and files of many; only in place
    #[arg(long, conflicts_with = "session", requires = "in_place")]
    pub all: bool,

    /// Edit the files in place instead of writing a copy
    #[arg(long)]
    pub in_place: bool,

    /// Show what would be done, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Takes secrets out.
pub fn run(world: &CommandContext, args: &RedactArgs) -> Result<(), CommandFailure> {
    if !args.in_place {
        return copy(world, args);
    }
    let redactor = known::redactor(&world.own.config, args.dry_run).map_err(|error| {
        CommandFailure::failed(format!("cannot use the placeholder key: {error}"))
            .hint("set UNSPOOL_HOME to use another directory for unspool's files")
    })?;
    let jobs = match args.all {
        true => everything(world)?,
        false => vec![one(world, args)?],
    };
    let live = InUseSessions::look(&world.dirs, world.now().0);
    let mut results = Vec::new();
    let mut left = RedactLeftOut::default();
    for job in &jobs {
        let why = job.file.as_ref().and_then(|file| live.why(file));
        if let (Some(why), false) = (&why, args.all) {
            return Err(
                CommandFailure::failed(format!("{} is in use: {why}", job.name()))
                    .hint("close the session first, or make a copy without `--in-place`"),
            );
        }
        match redact(world, args, &redactor, (job, why), &mut left) {
            Ok(result) => results.extend(result),
            Err(CommandFailure::Nothing(told) | CommandFailure::Failed(told)) if args.all => {
                let name = job.name();
                world
                    .ui
                    .warn(&format!("{name} is left as it is: {}", told.message));
                left.refused.push(name);
            }
            Err(failure) => return Err(failure),
        }
    }
    tell(world, &results, &left)
}

/// What was asked for and could not be done. Each file was named when it was come upon.
#[derive(Debug, Default)]
struct RedactLeftOut {
    /// Sessions that hold secrets and that somebody works on.
    in_use: u64,
    /// Files that hold secrets and that a link leads to.
    linked: u64,
    /// Files that hold secrets and that tell the client what to do, which we do not change.
    settings: u64,
    /// Files that could not be read.
    unread: u64,
    /// Whose files could not be changed.
    refused: Vec<String>,
    /// Bytes that were looked at and hold no secrets.
    clean: u64,
}

impl RedactLeftOut {
    /// What it is, unless there is nothing.
    fn words(&self) -> Option<String> {
        let some = |count: u64, noun: &str, what: &str| {
            (count > 0).then(|| format!("{} {what}", format::count(count, noun)))
        };
        let refused = match self.refused.as_slice() {
            [] => None,
            [name] => Some(format!("{name} could not be changed")),
            [_, others @ ..] => some(others.len() as u64 + 1, "session", "could not be changed"),
        };
        let all = [
            some(self.in_use, "session", "with secrets in use"),
            some(self.linked, "file", "with secrets behind a link"),
            some(self.unread, "file", "that could not be read"),
            refused,
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// Without `--in-place` it is `clone --redact`.
fn copy(world: &CommandContext, args: &RedactArgs) -> Result<(), CommandFailure> {
    let trims = TrimArgs {
        redact: true,
        ..TrimArgs::default()
    };
    let wishes = EditOptions::new(world, &trims)?;
    let chosen = world.choose(args.session.as_deref())?;
    let order = EditRequest {
        operation: "redact",
        words: wishes.words(),
        options: edit_options::typed(),
        dry_run: args.dry_run,
        ..EditRequest::default()
    };
    let result = session_edit::copy(world, chosen, &order, &wishes)?;
    session_edit::print_result(world, &result)
}

/// The files of a session, or files that belong to none.
struct RedactJob {
    file: Option<SessionFile>,
    /// The transcript is the last, so that it changes last.
    sources: Vec<SecretScanFile>,
}

impl RedactJob {
    fn name(&self) -> String {
        match &self.file {
            Some(file) => format!("session {}", file.id),
            None => "files that belong to no session".to_owned(),
        }
    }
}

fn one(world: &CommandContext, args: &RedactArgs) -> Result<RedactJob, CommandFailure> {
    match world.target(args.session.as_deref())? {
        SessionTarget::Session(file) => {
            let sources = secret_scan::of_session(&find::find_beside_transcript(&file.path), &file);
            Ok(job(file, sources))
        }
        SessionTarget::Agent(file) => Err(CommandFailure::failed(format!(
            "sub-agent agent-{} cannot be redacted on its own",
            file.id
        ))
        .hint("redact its session, which includes its sub-agents")),
    }
}

fn job(file: SessionFile, mut sources: Vec<SecretScanFile>) -> RedactJob {
    sources.reverse();
    RedactJob {
        file: Some(file),
        sources,
    }
}

/// Every session with its files, and then all that is left: files of sessions that are gone, and
/// what is nobody's, such as the list of prompts.
fn everything(world: &CommandContext) -> Result<Vec<RedactJob>, CommandFailure> {
    let found = world.walked()?;
    let (each, rest) = secret_scan::of_each(&found, &world.dirs);
    let each = each.into_iter();
    let mut jobs: Vec<RedactJob> = each.map(|(file, all)| job(file.clone(), all)).collect();
    jobs.push(RedactJob {
        file: None,
        sources: rest,
    });
    if jobs.iter().all(|job| job.sources.is_empty()) {
        return Err(world.no_sessions());
    }
    Ok(jobs)
}

/// Redacts the files of a job, unless it is in use; nothing if there are no secrets in them.
fn redact(
    world: &CommandContext,
    args: &RedactArgs,
    redactor: &Redactor,
    (job, in_use): (&RedactJob, Option<String>),
    left: &mut RedactLeftOut,
) -> Result<Option<EditResult>, CommandFailure> {
    let how = SecretScanOptions {
        redactor,
        reveal: false,
        threads: parallel::threads(),
        progress: &|_| (),
    };
    let (hits, warnings) = secret_scan::scan(&job.sources, &how);
    for warning in &warnings {
        world.ui.warn(&warning.to_string());
    }
    left.unread += warnings.len() as u64;
    let found = job.sources.iter().zip(&hits);
    let unread = |path: &Path| warnings.iter().any(|warning| warning.path == path);
    let clean = found
        .clone()
        .filter(|(source, hits)| hits.is_empty() && !unread(&source.path));
    left.clean += clean.map(|(source, _)| source.bytes).sum::<u64>();
    let mut sources: Vec<&SecretScanFile> = found
        .filter(|(_, hits)| !hits.is_empty())
        .map(|(source, _)| source)
        .collect();
    sources.retain(|source| {
        let is_settings = source.holds == SecretScanFileKind::Settings;
        if is_settings {
            let path = source.path.display();
            world.ui.warn(&format!(
                "{path} holds secrets and is left as it is: Claude Code goes by it; change it there"
            ));
            left.settings += 1;
        }
        !is_settings
    });
    // Nothing is written through links, and a note must not be in the way of the rest.
    let task = task(world, args, job);
    sources.retain(|source| {
        let is_note = matches!(
            source.holds,
            SecretScanFileKind::Note | SecretScanFileKind::Lines
        );
        let linked = is_note && is_linked(&source.path, &task.roots);
        if linked {
            let path = source.path.display();
            let what =
                format!("{path} contains secrets but was not edited: it is behind a symlink");
            world.ui.warn(&what);
            left.linked += 1;
        }
        !linked
    });
    if sources.is_empty() {
        return Ok(None);
    }
    if let Some(why) = in_use {
        let name = job.name();
        world
            .ui
            .warn(&format!("{name} holds secrets and is left as it is: {why}"));
        left.in_use += 1;
        return Ok(None);
    }
    let mut result = EditResult {
        operation: "redact".to_owned(),
        dry_run: args.dry_run,
        ..EditResult::default()
    };
    if let Some(file) = &job.file {
        result.source.clone_from(&file.id);
        result.session.clone_from(&file.id);
        result.path = file.path.display().to_string();
        let main = read::read(&file.path, TranscriptRole::Main)?;
        let directory = main.session.cwds.iter().next().map(|(cwd, _)| cwd);
        result.resume = world.resume_command(directory, &file.id);
        untouched(&mut result, &main);
    }
    let mut bench = EditStaging::new(world, task, args.dry_run)?;
    let mut checks = Vec::new();
    let mut thinking = 0;
    for source in sources {
        let done = replace(&mut bench, source, redactor, &mut result)
            .map_err(|why| why.about(source.path.display()))?;
        result.redactions += done.secrets;
        thinking += done.thinking;
        checks.push(is_clean(source, &done));
    }
    checks.extend((thinking > 0).then(|| broken_seals(thinking)));
    if let Some(bad) = checks.iter().find(|check| !check.ok) {
        let what = format!("{}: {}: nothing was written", job.name(), bad.detail);
        return Err(CommandFailure::failed(what).hint("list the secrets with `unspool scan`"));
    }
    result.checks.extend(checks);
    result.undo = bench.commit(|task| session_edit::note(task, &result))?;
    if result.undo.is_some() {
        forget(world, &hits.concat())?;
    }
    Ok(Some(result))
}

/// Whether a link stands on the way to a file, below the folders that may be written to.
fn is_linked(path: &Path, roots: &[PathBuf]) -> bool {
    let is_root = |folder: &&Path| roots.iter().any(|root| root == folder);
    let mut above = path
        .ancestors()
        .skip(1)
        .take_while(|folder| !is_root(folder));
    above.any(Path::is_symlink)
}

/// What is said of a transcript that stays as it is.
fn untouched(result: &mut EditResult, main: &LoadedSession) {
    result.lines.kept = u64::from(main.lines);
    result.bytes = amounts(main.bytes, main.bytes);
    let tokens = edit::tokens(&main.session);
    result.tokens = amounts(tokens, tokens);
}

/// Puts a file without its secrets in place of the file; a transcript must still say what it
/// said, and be read by every client as it was.
fn replace(
    bench: &mut EditStaging,
    source: &SecretScanFile,
    redactor: &Redactor,
    result: &mut EditResult,
) -> Result<RedactionResult, CommandFailure> {
    let (file, metadata) = open::open(&source.path)?;
    let spot = StagingTarget::Over(&source.path, open::FileStamp::of(&metadata));
    let role = match source.holds {
        SecretScanFileKind::Session => TranscriptRole::Main,
        SecretScanFileKind::Agent(_) => TranscriptRole::Agent,
        SecretScanFileKind::Output
        | SecretScanFileKind::Backup
        | SecretScanFileKind::Note
        | SecretScanFileKind::Settings
        | SecretScanFileKind::Lines
        | SecretScanFileKind::Prompts { .. }
        | SecretScanFileKind::List { .. } => {
            let mut done = RedactionResult::default();
            bench.put(spot, |out| {
                done = secret_scan::rewrite(source, &file, redactor, out)?;
                Ok(())
            })?;
            result.side_files += 1;
            return Ok(done);
        }
    };
    let before = read::read(&source.path, role)?.session;
    let mut wanted = ExpectedResult::of(&before, &EditPlan::new(&before), None);
    // As large as the file: not needed while the new one is read.
    drop(before);
    let (done, draft) = bench.transcript(spot, role, |out| {
        secret_scan::rewrite(source, &file, redactor, out)
    })?;
    let after = draft.read()?;
    wanted.allow_changed_lines(&done.lines);
    if role == TranscriptRole::Agent {
        result.side_files += 1;
        edit_verification::refused(&wanted.compare(&after.session))?;
        return Ok(done);
    }
    result.lines = LineCounts {
        kept: done.kept,
        changed: done.changed,
        ..LineCounts::default()
    };
    result.bytes = amounts(done.before, done.after);
    edit_verification::prove(&wanted, &after.session, result)?;
    Ok(done)
}

fn broken_seals(thinking: u64) -> CheckRow {
    CheckRow {
        name: "thinking".to_owned(),
        ok: true,
        detail: format!(
            "{} replaced in thinking, which invalidates its signature: use `clone --strip-thinking` if the API rejects it",
            format::count(thinking, "secret")
        ),
    }
}

fn amounts(before: u64, after: u64) -> Amounts {
    Amounts { before, after }
}

fn task(world: &CommandContext, args: &RedactArgs, job: &RedactJob) -> JournalTask {
    let mut task = JournalTask {
        at: world.now().0,
        operation: "redact".to_owned(),
        words: format!("redact {} --in-place", job.name()),
        options: vec!["--in-place".to_owned()],
        ..JournalTask::default()
    };
    if args.all {
        task.options.push("--all".to_owned());
    }
    match &job.file {
        Some(file) => {
            task.sources = vec![file.id.clone()];
            task.path = Some(file.path.clone());
            task.roots = journal::roots(file);
        }
        None => task.roots.clone_from(&world.dirs),
    }
    task
}

/// Whether a second look at what was written finds nothing.
fn is_clean(source: &SecretScanFile, done: &RedactionResult) -> CheckRow {
    let path = source.path.display();
    CheckRow {
        name: "secrets".to_owned(),
        ok: done.left == 0,
        detail: match done.left {
            0 => format!("no secrets are left in {path}"),
            left => format!("{} are left in {path}", format::count(left, "secret")),
        },
    }
}

/// Our index masks what the rules find before it keeps anything; values of the environment it
/// does not know, so it goes if one of them was replaced.
fn forget(world: &CommandContext, hits: &[secret_scan::SecretHit]) -> Result<(), CommandFailure> {
    let rules: HashSet<&str> = SecretFinder::standard().rules().map(|(id, _)| id).collect();
    if hits.iter().all(|hit| rules.contains(hit.rule.as_str())) {
        return Ok(());
    }
    index::drop_all(world)
}

/// Tells of every result, and of what is left; that nothing was found only if all was looked at.
fn tell(
    world: &CommandContext,
    results: &[EditResult],
    left: &RedactLeftOut,
) -> Result<(), CommandFailure> {
    let (words, clean) = (left.words(), format::bytes(left.clean));
    if results.is_empty() && words.is_none() {
        let what = match left.settings {
            0 => format!("no secrets in {clean}"),
            count => format!(
                "no secrets in {clean}, but in {}, which are not redacted",
                format::count(count, "file") + " of Claude Code's settings"
            ),
        };
        return Err(CommandFailure::nothing(what));
    }
    let mut out = world.ui.out();
    for result in results {
        if world.ui.json {
            world.ui.row(&mut out, result)?;
        } else {
            print(&mut out, result)?;
        }
    }
    out.flush()?;
    if results.iter().any(|result| result.undo.is_some()) {
        let folder = world.data("undo");
        world.ui.note(&format!(
            "the original files, secrets included, are kept in {} for `unspool undo`",
            folder.display()
        ));
    }
    match words {
        None => Ok(()),
        Some(words) => {
            let what = format!("not everything is redacted: {words}");
            let again = "run it again once what is warned of above is dealt with";
            Err(CommandFailure::failed(what).hint(match left.clean {
                0 => again.to_owned(),
                _ => format!("the other {clean} hold no secrets; {again}"),
            }))
        }
    }
}

fn print(out: &mut dyn Write, result: &EditResult) -> Result<(), CommandFailure> {
    let name = match result.session.as_str() {
        "" => "files that belong to no session",
        session => session,
    };
    let would = if result.dry_run { "would be " } else { "" };
    writeln!(
        out,
        "{}: {} {would}replaced, {} changed, {}",
        clean::line(name),
        format::count(result.redactions, "secret"),
        format::count(result.lines.changed, "line"),
        format::count(result.side_files, "file") + " besides the transcript",
    )?;
    if let Some(undo) = result.undo {
        writeln!(out, "  undo with `unspool undo {undo}`")?;
    }
    for check in result
        .checks
        .iter()
        .filter(|check| check.name == "thinking")
    {
        writeln!(out, "  {}", clean::line(&check.detail))?;
    }
    Ok(())
}
