//! `archive`: compressed, verified copies of sessions, and getting them back.

mod purged_sessions;

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use unspool_model::time::Time;
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::wire::log::ArchiveRow;
use unspool_show::{clean, format};
use unspool_store::archive::{self, SessionArchive};
use unspool_store::find::SessionFile;
use unspool_store::journal::{self, JournalTask};
use unspool_store::owned_files::OwnedFiles;
use unspool_store::resolve::SessionTarget;
use unspool_store::session_in_use::InUseSessions;
use unspool_store::{TranscriptRole, read};

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;
use crate::progress_bar::ProgressBar;
use crate::session_removal;
use crate::time_input;

/// Arguments of `archive`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool archive 2f72              archive a copy of one session
  unspool archive --older-than 20d  before the client deletes sessions older than 30 days
  unspool archive --list
  unspool archive --restore 2f72    restore a session
  unspool archive --purged          list prompts of deleted sessions

A copy contains the transcript with its sub-agents, tool results, file backups, lists and plan,
and is verified after writing. The originals stay unless --remove is given.")]
pub struct ArchiveArgs {
    /// Start of a session id, a title, a path, or `@` for the latest
    pub sessions: Vec<OsString>,

    /// All sessions
    #[arg(long, conflicts_with = "sessions")]
    pub all: bool,

    /// All sessions last written before this time: `20d`, `2026-01-03`
    #[arg(long, value_name = "T", conflicts_with = "sessions")]
    pub older_than: Option<String>,

    /// Keep the originals (the default)
    #[arg(long, conflicts_with = "remove")]
    pub keep: bool,

    /// Remove the originals after verifying the copies (undoable)
    #[arg(long)]
    pub remove: bool,

    /// Show what would be done, and write nothing
    #[arg(long, conflicts_with_all = ["list", "purged"])]
    pub dry_run: bool,

    /// List archived sessions
    #[arg(long, conflicts_with_all = ["sessions", "all", "older_than", "remove"])]
    pub list: bool,

    /// Restore a session from its newest archive, or from this archive id
    #[arg(long, value_name = "ID", conflicts_with_all = ["sessions", "all", "older_than", "remove", "list"])]
    pub restore: Option<String>,

    /// List deleted sessions whose prompts are still known
    #[arg(long, conflicts_with_all = ["sessions", "all", "older_than", "remove", "list", "restore"])]
    pub purged: bool,
}

/// Archives sessions, or gets them back.
pub fn run(world: &CommandContext, args: &ArchiveArgs) -> Result<(), CommandFailure> {
    let dir = world.data("archive");
    if args.list {
        return list(world, &dir);
    }
    if args.purged {
        return purged_sessions::run(world, &dir);
    }
    if let Some(id) = &args.restore {
        return restore(world, &dir, id, args.dry_run);
    }
    let wanted = wanted(world, args)?;
    let live = InUseSessions::look(&world.dirs, world.now().0);
    let known = archive::list(&dir);
    let mut bar = ProgressBar::new(&world.ui, "archiving");
    let all: u64 = wanted.iter().map(|(_, file)| file.bytes).sum();
    let (mut rows, mut done) = (Vec::new(), 0);
    let (mut remains, mut prompts) = (Vec::new(), archive::PromptCounts::default());
    for (owned, file) in &wanted {
        bar.show(done, all);
        done += file.bytes;
        if args.remove {
            let gone = archive::files(owned, file);
            let stays = archive::RemovalLeftovers::of(owned, file, &gone, &mut prompts);
            remains.push((file, stays));
        }
        rows.push(one(world, args, &dir, &known, &live, owned, file)?);
    }
    bar.clear();
    show(world, &rows)?;
    for (file, remains) in &remains {
        session_removal::tell_remains(world, file, remains);
    }
    Ok(())
}

/// The sessions that are asked for, each with what says whose files are whose.
fn wanted(
    world: &CommandContext,
    args: &ArchiveArgs,
) -> Result<Vec<(Rc<OwnedFiles>, SessionFile)>, CommandFailure> {
    if args.all || args.older_than.is_some() {
        let zone = world.ui.zone();
        let before = args.older_than.as_ref();
        let before = before.map(|text| time_input::parse(text, world.now(), zone));
        let before = before.transpose()?.map_or(i64::MAX, |time| time.0);
        let found = world.walked()?;
        if found.sessions.is_empty() {
            return Err(world.no_sessions());
        }
        let owned = Rc::new(OwnedFiles::new(&found));
        let old = found.sessions.iter().filter(|file| file.modified < before);
        let wanted: Vec<_> = old.map(|file| (Rc::clone(&owned), file.clone())).collect();
        if wanted.is_empty() {
            return Err(CommandFailure::nothing("no session is older than that"));
        }
        return Ok(wanted);
    }
    let latest = [OsString::from("@")];
    let named = if args.sessions.is_empty() {
        &latest[..]
    } else {
        &args.sessions
    };
    let mut wanted = Vec::new();
    for session in named {
        match world.target(Some(session))? {
            SessionTarget::Session(file) => {
                let found = unspool_store::find::find_beside_transcript(&file.path);
                wanted.push((Rc::new(OwnedFiles::new(&found)), file));
            }
            SessionTarget::Agent(_) => {
                return Err(
                    CommandFailure::failed("sub-agents cannot be archived on their own")
                        .hint("archive the session that the sub-agent belongs to"),
                );
            }
        }
    }
    Ok(wanted)
}

fn one(
    world: &CommandContext,
    args: &ArchiveArgs,
    dir: &Path,
    known: &[SessionArchive],
    live: &InUseSessions,
    owned: &OwnedFiles,
    file: &SessionFile,
) -> Result<ArchiveRow, CommandFailure> {
    if args.remove
        && let Some(why) = live.why(file)
    {
        let id = &file.id;
        return Err(CommandFailure::failed(format!("{id} is in use: {why}"))
            .hint("archive it without --remove, or close the session first"));
    }
    let files = archive::files(owned, file);
    let current = known.iter().rev().find(|one| {
        // A copy that is to be all that is left is checked again.
        let is_all = || one.listed == archive::listed(file) && archive::check(dir, one).is_ok();
        archive::is_current(one, file, files.len()) && (!args.remove || is_all())
    });
    let made = match current {
        Some(archive) => archive.clone(),
        None => {
            let session = read(&file.path, TranscriptRole::Main)?.session;
            let slug = session.slug.as_deref();
            let now = world.now();
            let wanted = archive::ArchiveRequest {
                name: free_name(dir, &file.id, now),
                at: now.0,
                title: session.given_title().map(str::to_owned),
                session: file,
                plan: slug.and_then(|words| archive::plan(file, words)),
                files: &files,
            };
            match args.dry_run {
                true => archive::preview_archive(wanted)?,
                false => archive::make(dir, wanted)?,
            }
        }
    };
    let number = match args.remove && !args.dry_run {
        true => Some(remove(world, file, &files)?),
        false => None,
    };
    Ok(ArchiveRow {
        removed: args.remove,
        dry_run: args.dry_run,
        n: number,
        ..row(dir, &made)
    })
}

fn free_name(dir: &Path, session: &str, now: Time) -> String {
    let stamp = now.timestamp().strftime("%Y%m%dT%H%M%SZ").to_string();
    let first = format!("{session}-{stamp}");
    let mut name = first.clone();
    let mut more = 1;
    while fs::symlink_metadata(dir.join(&name)).is_ok() {
        more += 1;
        name = format!("{first}-{more}");
    }
    name
}

fn remove(
    world: &CommandContext,
    file: &SessionFile,
    files: &[PathBuf],
) -> Result<u64, CommandFailure> {
    let short: String = file.id.chars().take(8).collect();
    let mut work = world.begin(JournalTask {
        at: world.now().0,
        operation: "archive".to_owned(),
        words: format!("archive {short} and remove the original"),
        options: vec!["--remove".to_owned()],
        sources: vec![file.id.clone()],
        path: Some(file.path.clone()),
        roots: journal::roots(file),
        ..JournalTask::default()
    })?;
    session_removal::remove(&mut work, file, files)?;
    Ok(work.commit()?)
}

fn restore(
    world: &CommandContext,
    dir: &Path,
    id: &str,
    dry_run: bool,
) -> Result<(), CommandFailure> {
    let all = archive::list(dir);
    let mut meant = all.iter().filter(|one| one.id.starts_with(id));
    let Some(newest) = meant.next_back() else {
        return Err(
            CommandFailure::nothing(format!("no archive starts with `{id}`"))
                .hint("list archives with `unspool archive --list`"),
        );
    };
    if let Some(other) = meant.find(|one| one.session != newest.session) {
        return Err(CommandFailure::failed(format!(
            "`{id}` is ambiguous: {} or {}",
            newest.session, other.session
        ))
        .hint("use more characters of the id"));
    }
    let config = goal(world, newest)?;
    let short: String = newest.session.chars().take(8).collect();
    let transcript = newest.files.last().map(|file| config.join(&file.path));
    let number = match dry_run {
        true => {
            archive::could_restore(dir, newest, &config)?;
            None
        }
        false => {
            let mut work = world.begin(JournalTask {
                at: world.now().0,
                operation: "archive".to_owned(),
                words: format!("restore {short} from its archive"),
                options: vec!["--restore".to_owned(), newest.id.clone()],
                sources: vec![newest.session.clone()],
                path: transcript.clone(),
                roots: vec![config.clone(), config.join("projects")],
                ..JournalTask::default()
            })?;
            archive::restore(dir, newest, &config, &mut work)?;
            Some(work.commit()?)
        }
    };
    let mut row = ArchiveRow {
        n: number,
        dry_run,
        ..row(dir, newest)
    };
    if let Some(path) = transcript {
        row.path = path.display().to_string();
    }
    let mut out = world.ui.out();
    if world.ui.json {
        world.ui.row(&mut out, &row)?;
        return Ok(out.flush()?);
    }
    writeln!(
        out,
        "{} {}: {} in {}",
        clean::line(&newest.session),
        if dry_run {
            "would be restored"
        } else {
            "is restored"
        },
        format::count(row.files as u64, "file"),
        clean::line(&config.display().to_string())
    )?;
    out.flush()?;
    world.ui.note(&match number {
        Some(number) => format!("undo with `unspool undo {number}`"),
        None => "dry run: nothing was written".to_owned(),
    });
    Ok(())
}

/// Where an archive is brought back to: where it came from, unless that is gone or another place
/// is named. What an archive says about it counts only if it is a place that sessions live in.
fn goal(world: &CommandContext, archive: &SessionArchive) -> Result<PathBuf, CommandFailure> {
    let real = |dir: &Path| fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let theirs = real(&archive.config);
    let is_known = || world.dirs.iter().any(|dir| real(dir) == theirs);
    match world.dirs.first() {
        Some(first) if world.named || !archive.config.is_dir() => Ok(first.clone()),
        _ if is_known() => Ok(archive.config.clone()),
        _ => Err(CommandFailure::failed(format!(
            "{} was archived from {}, which is not a config directory in use",
            archive.session,
            archive.config.display()
        ))
        .hint("name the config directory to restore it to with `--claude-dir DIR`")),
    }
}

fn list(world: &CommandContext, dir: &Path) -> Result<(), CommandFailure> {
    let mut all = archive::list(dir);
    all.reverse();
    if all.is_empty() {
        return Err(CommandFailure::nothing("no sessions are archived")
            .hint("archive sessions with `unspool archive --older-than 20d`"));
    }
    let rows: Vec<ArchiveRow> = all.iter().map(|one| row(dir, one)).collect();
    show(world, &rows)
}

fn show(world: &CommandContext, rows: &[ArchiveRow]) -> Result<(), CommandFailure> {
    let mut out = world.ui.out();
    let mut table = TextTable::new(vec![
        TableColumn::fixed("session"),
        TableColumn::fixed("archived"),
        TableColumn::flexible("title", 12),
        TableColumn::number("files"),
        TableColumn::number("bytes"),
        TableColumn::number("packed"),
    ]);
    for row in rows {
        if world.ui.json {
            world.ui.row(&mut out, row)?;
            continue;
        }
        let at = Time::parse(&row.at).map(|time| format::moment(time, world.ui.zone()));
        table.row([
            row.session.clone(),
            at.unwrap_or_default(),
            row.title.clone().unwrap_or_default(),
            row.files.to_string(),
            format::bytes(row.bytes),
            format::bytes(row.packed),
        ]);
    }
    if !world.ui.json {
        table.write(&mut out, &world.ui.style())?;
    }
    out.flush()?;
    for (row, number) in rows.iter().filter_map(|row| Some((row, row.n?))) {
        world.ui.note(&format!(
            "removed {}; undo with `unspool undo {number}`",
            row.session
        ));
    }
    if rows.iter().any(|row| row.dry_run) {
        world.ui.note("dry run: nothing was written");
    }
    Ok(())
}

fn row(dir: &Path, archive: &SessionArchive) -> ArchiveRow {
    let transcript = archive.files.last();
    let path = transcript.map(|file| archive.config.join(&file.path));
    ArchiveRow {
        id: archive.id.clone(),
        session: archive.session.clone(),
        title: archive.title.clone(),
        at: Time(archive.at).to_string(),
        path: path.map_or_else(String::new, |path| path.display().to_string()),
        archive: dir.join(&archive.id).display().to_string(),
        files: archive.files.len(),
        bytes: archive.bytes(),
        packed: archive.packed(),
        removed: false,
        dry_run: false,
        n: None,
    }
}
