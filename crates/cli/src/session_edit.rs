//! An edit, from what was asked to what was written: plan, write, prove, note.
//!
//! Everything is prepared beside the files that others see and read again as if for the first
//! time; only what passes becomes visible, and what became visible can be undone.

mod client_session_index;
mod edit_redactor;
mod edit_report;
pub mod edit_verification;
mod merge_sessions;
mod repair_session;
mod side_files;
pub mod staging;

use std::collections::HashSet;
use std::path::PathBuf;

use unspool_model::edit::check::ExpectedResult;
use unspool_model::edit::copy_identity::CopyIdentity;
use unspool_model::edit::redact::Redactor;
use unspool_model::edit::{self, EditPlan, LineRewriter, PlanSettings, RewriteCounts};
use unspool_model::session::{Session, TranscriptRole};
use unspool_show::format;
use unspool_show::wire::edit::{Amounts, CallCounts, CheckRow, EditResult, LineCounts, LostRow};
use unspool_store::copy_side_files::SessionCopyLocation;
use unspool_store::find::SessionFile;
use unspool_store::journal::{self, JournalTask};
use unspool_store::lineage;
use unspool_store::project;
use unspool_store::read::{self, LoadedSession};
use unspool_store::rewrite::rewrite;

use crate::command_context::{ChosenSession, CommandContext};
use crate::edit_options::EditOptions;
use crate::failure::CommandFailure;

use edit_redactor::EditRedactor;
pub use edit_report::print_result;
pub use merge_sessions::merge;
pub use repair_session::repair;
use side_files::SideFileCopier;
use staging::{EditStaging, StagingTarget};

/// What is asked beside the operations themselves.
#[derive(Clone, Debug, Default)]
pub struct EditRequest {
    /// The command, such as `clone`.
    pub operation: &'static str,
    /// What was asked, in words for people.
    pub words: String,
    /// The options that were given.
    pub options: Vec<String>,
    /// The title of the copy.
    pub title: Option<String>,
    /// The directory it moves to.
    pub cwd: Option<PathBuf>,
    /// Lines get new ids.
    pub new_uuids: bool,
    /// Parallel results stay a tree.
    pub keep_tree: bool,
    /// Nothing is written.
    pub dry_run: bool,
}

/// Makes a new session of an old one.
///
/// Parallel calls get one order, which every client reads alike, unless nothing is proved of what
/// came of it: old clients go on from the newest line, and of lines with one time they may take
/// another one then. A copy in which they stay a tree is read as the old session is.
pub fn copy(
    world: &CommandContext,
    mut chosen: ChosenSession,
    order: &EditRequest,
    wishes: &EditOptions,
) -> Result<EditResult, CommandFailure> {
    let file = &chosen.session()?.clone();
    let main = &chosen.family.main;
    if !main.session.is_conversation() {
        let what = format!("`{}` contains no conversation", file.path.display());
        return Err(CommandFailure::failed(what).hint("list sessions with `unspool ls`"));
    }
    let mut plan = EditPlan::new(&main.session);
    let guessed = wishes.write(world, &main.session, &main.source, &mut plan)?;
    let as_it_is = plan.clone();
    plan.note_at_end_only(&main.session);
    let parts = (order, wishes, guessed);
    let mut attempts = vec![(plan.clone(), order.keep_tree, None)];
    if !order.keep_tree {
        attempts.push((plan, true, Some(KEPT_TREE)));
    }
    attempts.push((as_it_is, true, Some(KEPT_NOTES)));
    let mut refused = None;
    for (plan, keep_tree, note) in attempts {
        if refused.is_some() {
            chosen.family.main = read::read(&file.path, TranscriptRole::Main)?;
        }
        let planned = (plan, PlanSettings { keep_tree });
        match written(world, &mut chosen.family.main, file, planned, parts)? {
            CopyAttempt::Proved(result) => {
                if let Some(note) = note {
                    world.ui.note(note);
                }
                return Ok(*result);
            }
            CopyAttempt::Refused(why) => _ = refused.get_or_insert(why),
        }
    }
    Err(refused.unwrap_or_else(|| CommandFailure::failed("no copy could be made")))
}

/// Said where a copy with one order of parallel calls was tried first.
const KEPT_TREE: &str = "parallel calls stay a tree as with `--keep-tree`: in one order, an old client would lose a line";

/// Said where a copy that names its end only at its end was tried first. A line of a kind that
/// clients do not know parts the conversation for them; what an earlier `last-prompt` line names is
/// all that they read then.
const KEPT_NOTES: &str =
    "`last-prompt` lines stay where they are: without them, a client would resume elsewhere";

/// What came of trying to make a copy.
enum CopyAttempt {
    /// Every proof held; it is written unless it was a dry run.
    Proved(Box<EditResult>),
    /// It would not be what was asked; nothing was written.
    Refused(CommandFailure),
}

/// Settles a plan, writes what comes of it and proves that. The session is not kept.
fn written(
    world: &CommandContext,
    main: &mut LoadedSession,
    file: &SessionFile,
    (mut plan, settings): (EditPlan, PlanSettings),
    (order, wishes, guessed): (&EditRequest, &EditOptions, u64),
) -> Result<CopyAttempt, CommandFailure> {
    let home = home(file, order)?;
    let identity = identity(&main.session, file, order, &home)?;
    plan.repair_references(&main.session, settings);
    let summary = wishes.summarise(world, &main.session, &main.source, &mut plan)?;
    let redactor = wishes.redactor(world, order.dry_run)?;
    let title = title(&main.session, order, CLONE, redactor.as_ref());
    plan.add_titles(&main.session, &identity, &title);
    let mut wanted = ExpectedResult::of(&main.session, &plan, Some(&identity));
    if let Some(summary) = summary {
        let first = identity.line(&summary.first);
        wanted.summarised(&first, [summary.summary]);
    }
    let mut result = outline(world, &main.session, &plan, file, order, &home);
    result.title = Some(title);
    let veil = EditRedactor::new(redactor.as_ref());
    let mut bench = begin(world, file, order, &home)?;
    let along = SideFileCopier {
        world,
        file,
        identity: &identity,
        home: &home,
        veil: &veil,
    };
    result.side_files = along.carry(&mut bench, &mut HashSet::new())?;
    let path = home.transcript();
    let (written, draft) =
        bench.transcript(StagingTarget::New(&path), TranscriptRole::Main, |out| {
            let pen = LineRewriter::new(&main.session, &plan, Some(&identity));
            rewrite(&*main, pen, &|line| veil.line(line), out)
        })?;
    fill(&mut result, written);
    let replaced = veil.replaced();
    wanted.allow_changed_lines(&replaced.changed);
    result.redactions = replaced.found;
    let shares = RemovedShares::of(&main.session, &result);
    // What is wanted is known by now, and the old session may go.
    drop(plan);
    main.session = Session::default();
    let after = draft.read()?.session;
    if let Err(why) = edit_verification::prove(&wanted, &after, &mut result) {
        return Ok(CopyAttempt::Refused(why));
    }
    result
        .checks
        .extend((guessed > 0).then(|| estimate(guessed)));
    client_session_index::add_session(world, &mut bench, file, &home, &after)?;
    result.undo = bench.commit(|task| note(task, &result))?;
    if result.undo.is_some() {
        tell_older_cloner(world, shares, file, &home);
    }
    Ok(CopyAttempt::Proved(Box::new(result)))
}

/// Says that the sizes are no more than a guess: a model would have to be asked.
fn estimate(texts: u64) -> CheckRow {
    let texts = format::count(texts, "text");
    CheckRow {
        name: "estimate".to_owned(),
        ok: true,
        detail: format!("bytes and tokens are estimates: {texts} would be generated by a model"),
    }
}

/// How much of a session went, in percent.
#[derive(Clone, Copy)]
struct RemovedShares {
    tools: u8,
    thinking: u8,
}

impl RemovedShares {
    fn of(session: &Session, result: &EditResult) -> RemovedShares {
        let share = |part: u64, all: usize| (part * 100 / all.max(1) as u64).min(100) as u8;
        let blocks = session.blocks.iter();
        let thinking = blocks.filter(|block| block.kind.is_thinking());
        RemovedShares {
            tools: share(result.calls.removed, session.calls.len()),
            thinking: share(result.thinking_removed, thinking.count()),
        }
    }
}

/// Adds to the lineage file of an older cloner, if there is one.
fn tell_older_cloner(
    world: &CommandContext,
    shares: RemovedShares,
    file: &SessionFile,
    home: &SessionCopyLocation,
) {
    let path = home.transcript();
    let clone = lineage::LineageClone {
        at: &world.now().to_string(),
        target: (&home.id, &path),
        source: (&file.id, &file.path),
        tools: shares.tools,
        thinking: shares.thinking,
    };
    if let Err(error) = lineage::add(&home.config, &clone) {
        world.ui.warn(&error.to_string());
    }
}

/// Where the new session lives.
fn home(file: &SessionFile, order: &EditRequest) -> Result<SessionCopyLocation, CommandFailure> {
    let mut home = SessionCopyLocation {
        id: uuid::Uuid::new_v4().to_string(),
        ..SessionCopyLocation::of(file)
    };
    if let Some(cwd) = &order.cwd {
        let real = real_directory(cwd)?;
        if home.config.as_os_str().is_empty() {
            let what = format!("`{}` is not in a config directory", file.path.display());
            return Err(
                CommandFailure::failed(what).hint("omit `--cwd`, or choose a session by its id")
            );
        }
        home.folder = home.config.join("projects").join(project::slug(&real));
    }
    Ok(home)
}

/// The real path of a directory, which is what the client names folders by.
pub fn real_directory(path: &std::path::Path) -> Result<String, CommandFailure> {
    let real = std::fs::canonicalize(path)
        .ok()
        .filter(|real| real.is_dir())
        .ok_or_else(|| {
            let what = format!("no such directory: `{}`", path.display());
            CommandFailure::failed(what)
                .hint("create it first; the session can only be resumed there")
        })?;
    Ok(real.display().to_string())
}

fn identity(
    session: &Session,
    file: &SessionFile,
    order: &EditRequest,
    home: &SessionCopyLocation,
) -> Result<CopyIdentity, CommandFailure> {
    let said = session.first_session_id.as_ref().map(ToString::to_string);
    let old = std::iter::once(file.id.clone()).chain(said);
    let mut identity = CopyIdentity::new(home.id.clone(), old);
    if let Some(cwd) = &order.cwd {
        // The directory it was started in, from which it may have gone to others.
        let named = |(cwd, _): &(&str, u32)| project::slug(cwd) == *file.folder;
        let from = session.cwds.iter().find(named);
        let from = from.or_else(|| session.cwds.iter().next());
        let from = from.map_or_else(String::new, |(cwd, _)| cwd.to_owned());
        identity.cwd = Some((from, real_directory(cwd)?));
    }
    identity.fork_of = Some(file.id.clone());
    identity.uuids = order
        .new_uuids
        .then(|| uuid::Uuid::new_v4().as_u64_pair().0);
    Ok(identity)
}

/// How many characters of the old title stand in the new one.
const SHOWN: usize = 60;

const CLONE: &str = "Clone: ";

fn title(
    session: &Session,
    order: &EditRequest,
    mark: &str,
    redactor: Option<&Redactor>,
) -> String {
    if let Some(title) = &order.title {
        return title.clone();
    }
    let old = session.own_title();
    let old = old.unwrap_or_default().trim_start_matches(mark);
    let line = old.lines().next().unwrap_or_default();
    // Before it is cut: of a secret that is cut, no rule knows the rest.
    let clean = redactor.and_then(|redactor| redactor.text(line));
    let clean = clean.map(|clean| String::from_utf8_lossy(&clean.bytes).into_owned());
    let line = clean.as_deref().unwrap_or(line);
    let short: String = line.chars().take(SHOWN).collect();
    let more = short.len() < line.len() || old.lines().nth(1).is_some();
    let ends = if more { "…" } else { "" };
    format!("{mark}{short}{ends}")
}

/// The directory that an edited session is resumed in.
fn directory(session: &Session, order: &EditRequest) -> Option<String> {
    let moved = order
        .cwd
        .as_deref()
        .and_then(|cwd| real_directory(cwd).ok());
    moved.or_else(|| session.cwds.iter().next().map(|(cwd, _)| cwd.to_owned()))
}

/// What is known before anything is written.
fn outline(
    world: &CommandContext,
    session: &Session,
    plan: &EditPlan,
    file: &SessionFile,
    order: &EditRequest,
    home: &SessionCopyLocation,
) -> EditResult {
    let lost = plan.lost().into_iter();
    let directory = directory(session, order);
    EditResult {
        operation: order.operation.to_owned(),
        source: file.id.clone(),
        session: home.id.clone(),
        path: home.transcript().display().to_string(),
        resume: world.resume_command(directory.as_deref(), &home.id),
        dry_run: order.dry_run,
        tokens: Amounts {
            before: edit::tokens(session),
            after: 0,
        },
        calls: CallCounts {
            removed: plan.counts.calls_removed,
            truncated: plan.counts.calls_truncated,
        },
        thinking_removed: plan.counts.thinking_removed,
        lost: lost
            .map(|lost| LostRow {
                what: lost.what,
                tokens: lost.tokens,
            })
            .collect(),
        ..EditResult::default()
    }
}

fn fill(result: &mut EditResult, written: RewriteCounts) {
    result.lines = LineCounts {
        kept: written.kept,
        changed: written.changed,
        dropped: written.dropped,
        added: written.added,
    };
    result.bytes = Amounts {
        before: written.before,
        after: written.after,
    };
}

fn begin(
    world: &CommandContext,
    file: &SessionFile,
    order: &EditRequest,
    home: &SessionCopyLocation,
) -> Result<EditStaging, CommandFailure> {
    let mut roots = journal::roots(file);
    // A folder that is made for it is no root: an undo removes it.
    roots.extend(home.folder.exists().then(|| home.folder.clone()));
    let task = JournalTask {
        at: world.now().0,
        operation: order.operation.to_owned(),
        words: order.words.clone(),
        options: order.options.clone(),
        sources: vec![file.id.clone()],
        session: Some(home.id.clone()),
        path: Some(home.transcript()),
        roots,
        ..JournalTask::default()
    };
    EditStaging::new(world, task, order.dry_run)
}

/// Notes amounts for the log.
pub fn note(task: &mut JournalTask, result: &EditResult) {
    let change = |amounts: Amounts| journal::AmountChange {
        before: amounts.before,
        after: amounts.after,
    };
    let lines = result.lines;
    task.bytes = Some(change(result.bytes));
    task.tokens = Some(change(result.tokens));
    task.lines = Some(journal::AmountChange {
        before: lines.kept + lines.changed + lines.dropped,
        after: lines.kept + lines.changed + lines.added,
    });
}
