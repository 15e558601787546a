//! `rename`: gives a session another title, which the client shows as well.

use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use unspool_model::title;
use unspool_show::clean;
use unspool_show::wire::log::TitleRow;
use unspool_store::atomic_write::ModifiedTimePolicy;
use unspool_store::find::SessionFile;
use unspool_store::journal::{self, JournalTask};
use unspool_store::open::{self, FileStamp};
use unspool_store::resolve::SessionTarget;
use unspool_store::session_in_use::InUseSessions;
use unspool_store::{TranscriptRole, read, side_files};

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Arguments of `rename`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool rename 2f72 \"the parser, second try\"
  unspool rename @ \"release 1.4\" && unspool undo

Appends one line to the transcript, as the client does; nothing else changes. This is safe while
a client is running the session, but the client may write its own title again.")]
pub struct RenameArgs {
    /// Start of a session id, a title, a path, or `@` for the latest
    pub session: OsString,

    /// The new title
    pub title: String,

    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// The first prompt in place of a title, cut to what a list shows.
const SHOWN: usize = 100;

/// Renames a session.
pub fn run(world: &CommandContext, args: &RenameArgs) -> Result<(), CommandFailure> {
    let title = args.title.trim();
    if title.is_empty() {
        return Err(CommandFailure::failed("the title is empty").hint("pass a non-empty title"));
    }
    let SessionTarget::Session(file) = world.target(Some(&args.session))? else {
        return Err(CommandFailure::failed("sub-agents have no title")
            .hint("rename the session that the sub-agent belongs to"));
    };
    let session = read(&file.path, TranscriptRole::Main)?.session;
    let before = session.given_title().map(str::to_owned);
    let shown = || {
        let goal = session.goal.as_deref()?;
        Some(goal.chars().take(SHOWN).collect::<String>())
    };
    let back = before.clone().or_else(shown);
    if let Some(why) = InUseSessions::look(&world.dirs, world.now().0).holder(&file.path) {
        world.ui.note(&format!(
            "{why}: renaming is safe, but the client may write its own title again"
        ));
    }
    let number = match args.dry_run {
        true => None,
        false => Some(write(world, &file, title, back)?),
    };
    let row = TitleRow {
        n: number,
        dry_run: args.dry_run,
        session: file.id.clone(),
        path: file.path.display().to_string(),
        title: title.to_owned(),
        before,
    };
    print(world, &row)
}

fn write(
    world: &CommandContext,
    file: &SessionFile,
    title: &str,
    back: Option<String>,
) -> Result<u64, CommandFailure> {
    let short: String = file.id.chars().take(8).collect();
    let mut work = world.begin(JournalTask {
        at: world.now().0,
        operation: "rename".to_owned(),
        words: format!("rename {short} to “{title}”"),
        options: vec![title.to_owned()],
        sources: vec![file.id.clone()],
        path: Some(file.path.clone()),
        roots: journal::roots(file),
        ..JournalTask::default()
    })?;
    // Newer clients keep the title here as well; where there is none, the line is enough.
    if let Some(note) = side_files::list_side_files(file).custom_title {
        let (_, metadata) = open::open(&note)?;
        let text = title::note(title);
        work.replace(
            &note,
            FileStamp::of(&metadata),
            ModifiedTimePolicy::Now,
            |out| out.write_all(text.as_bytes()),
        )?;
    }
    let back = back.map(|old| title::line(&file.id, &old));
    work.append_line(&file.path, &title::line(&file.id, title), back)?;
    Ok(work.commit()?)
}

fn print(world: &CommandContext, row: &TitleRow) -> Result<(), CommandFailure> {
    let mut out = world.ui.out();
    if world.ui.json {
        world.ui.row(&mut out, row)?;
        return Ok(out.flush()?);
    }
    let before = match &row.before {
        Some(title) => format!(" (was “{}”)", clean::line(title)),
        None => String::new(),
    };
    let title = clean::line(&row.title);
    let session = clean::line(&row.session);
    let Some(number) = row.n else {
        writeln!(out, "would rename {session} to “{title}”{before}")?;
        out.flush()?;
        world.ui.note("dry run: nothing was written");
        return Ok(());
    };
    writeln!(out, "renamed {session} to “{title}”{before}")?;
    out.flush()?;
    world.ui.note(&format!("undo with `unspool undo {number}`"));
    Ok(())
}
