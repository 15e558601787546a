//! `tag`: gives a session a tag, or takes it off, as the SDK does.

use std::ffi::OsString;
use std::io::Write;

use clap::Args;
use unspool_model::tag;
use unspool_show::clean;
use unspool_show::wire::log::TagRow;
use unspool_store::journal::{self, JournalTask};
use unspool_store::resolve::SessionTarget;
use unspool_store::session_in_use::InUseSessions;
use unspool_store::{TranscriptRole, read};

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Arguments of `tag`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool tag 2f72 needs-review
  unspool ls --tag needs-review
  unspool tag 2f72                  remove the tag

A session has at most one tag; a new tag replaces the old one. Appends one line to the
transcript, as the SDK does; nothing else changes. Invisible characters are removed.")]
pub struct TagArgs {
    /// Start of a session id, a title, a path, or `@` for the latest
    pub session: OsString,

    /// The tag (one or more words) [default: remove the current tag]
    #[arg(conflicts_with = "remove")]
    pub tag: Vec<String>,

    /// Remove the tag
    #[arg(long)]
    pub remove: bool,

    /// Show what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Tags a session.
pub fn run(world: &CommandContext, args: &TagArgs) -> Result<(), CommandFailure> {
    let wanted = tag::cleaned(&args.tag.join(" "));
    if wanted.is_empty() && args.tag.iter().any(|word| !word.is_empty()) {
        return Err(CommandFailure::failed("the tag has no visible characters")
            .hint("pass a visible tag, or use --remove to remove the tag"));
    }
    let SessionTarget::Session(file) = world.target(Some(&args.session))? else {
        return Err(CommandFailure::failed("sub-agents have no tag")
            .hint("tag the session that the sub-agent belongs to"));
    };
    let session = read(&file.path, TranscriptRole::Main)?.session;
    let before = session.tag().unwrap_or_default().to_owned();
    let some = |tag: &String| Some(tag.clone()).filter(|tag| !tag.is_empty());
    let mut row = TagRow {
        n: None,
        dry_run: args.dry_run,
        session: file.id.clone(),
        path: file.path.display().to_string(),
        tag: some(&wanted),
        before: some(&before),
    };
    if wanted == before {
        print(world, &row)?;
        world.ui.note("nothing was written");
        return Ok(());
    }
    if let Some(why) = InUseSessions::look(&world.dirs, world.now().0).holder(&file.path) {
        world.ui.note(&format!(
            "{why}: tagging is safe, but the client may write its own tag again"
        ));
    }
    if !args.dry_run {
        let short: String = file.id.chars().take(8).collect();
        let words = match wanted.is_empty() {
            true => format!("remove tag “{before}” from {short}"),
            false => format!("tag {short} “{wanted}”"),
        };
        let mut work = world.begin(JournalTask {
            at: world.now().0,
            operation: "tag".to_owned(),
            words,
            options: args.tag.clone(),
            sources: vec![file.id.clone()],
            path: Some(file.path.clone()),
            roots: journal::roots(&file),
            ..JournalTask::default()
        })?;
        let back = tag::line(&file.id, &before);
        work.append_line(&file.path, &tag::line(&file.id, &wanted), Some(back))?;
        row.n = Some(work.commit()?);
    }
    print(world, &row)?;
    match row.n {
        Some(number) => world.ui.note(&format!("undo with `unspool undo {number}`")),
        None => world.ui.note("dry run: nothing was written"),
    }
    Ok(())
}

fn print(world: &CommandContext, row: &TagRow) -> Result<(), CommandFailure> {
    let mut out = world.ui.out();
    if world.ui.json {
        world.ui.row(&mut out, row)?;
        return Ok(out.flush()?);
    }
    let before = row.before.as_deref().filter(|_| row.before != row.tag);
    let before = before.map_or_else(String::new, |tag| format!(" (was #{tag})"));
    let tag = row.tag.as_deref();
    let tag = tag.map_or_else(|| "untagged".to_owned(), |tag| format!("#{tag}"));
    let verb = if row.dry_run { "would be" } else { "is" };
    let said = format!("{} {verb} {tag}{before}", row.session);
    writeln!(out, "{}", clean::line(&said))?;
    Ok(out.flush()?)
}
