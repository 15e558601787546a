//! `restore`: a file as it was after a turn.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use unspool_model::view::files::{self, FileRestore};
use unspool_store::open;
use unspool_store::output_file::{self, ExistingFilePolicy};
use unspool_store::resolve::SessionTarget;
use unspool_store::side_files;

use crate::command_context::{ChosenSession, CommandContext};
use crate::failure::CommandFailure;
use crate::ui;

/// Arguments of `restore`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool restore src/main.rs --at 3            print it as of the end of turn 3
  unspool restore src/main.rs --at 3 -o old.rs  write it to a file
  unspool restore a.txt --at 1 --session 2f72   from session 2f72 instead of the latest

Uses the client's own file backups if there are any; otherwise replays the session's tool calls.
Standard error says which of the two was used.")]
pub struct RestoreArgs {
    /// The file, or the end of its path
    pub path: String,

    /// Restore the file as of the end of this turn; `-1` is the last
    #[arg(long, value_name = "TURN", allow_hyphen_values = true)]
    pub at: i64,

    /// Start of a session id, a title, a path, or `@` for the latest
    #[arg(long, value_name = "SESSION")]
    pub session: Option<OsString>,

    /// Write to this file instead of standard output; it must not exist
    #[arg(short, long, value_name = "F")]
    pub output: Option<PathBuf>,
}

/// Gets a file back.
pub fn run(world: &CommandContext, args: &RestoreArgs) -> Result<(), CommandFailure> {
    let chosen = world.choose(args.session.as_deref())?;
    let main = &chosen.family.main;
    let turns = main
        .session
        .turns
        .iter()
        .filter(|turn| turn.thread == 0)
        .count() as i64;
    let turn = if args.at < 0 {
        turns + 1 + args.at
    } else {
        args.at
    };
    if turn < 1 || turn > turns {
        return Err(CommandFailure::failed(format!(
            "there is no turn {}: the session has {turns}",
            args.at
        ))
        .hint("list turns with `unspool turns`"));
    }
    let plans = files::restore(&main.session, &main.source, &args.path, turn as usize);
    let mut why = String::new();
    for plan in plans {
        match content(&chosen, plan) {
            Ok((content, how)) => {
                write(args.output.as_deref(), &content)?;
                world
                    .ui
                    .note(&format!("restored {} as of turn {turn}: {how}", args.path));
                return Ok(());
            }
            Err(reason) => why = reason,
        }
    }
    Err(CommandFailure::nothing(format!(
        "cannot restore {} as of turn {turn}: {why}",
        args.path
    ))
    .hint("list the session's files with `unspool files`"))
}

/// The content, and where it comes from.
fn content(chosen: &ChosenSession, plan: FileRestore) -> Result<(Vec<u8>, String), String> {
    match plan {
        FileRestore::Backup { file, before_turn } => Ok((
            backup(chosen, &file)?,
            format!("from the client's backup before turn {before_turn}"),
        )),
        FileRestore::BackupAndReplay {
            file,
            before_turn,
            steps,
        } => {
            let base = String::from_utf8(backup(chosen, &file)?)
                .map_err(|_| "the backup is not a text file".to_owned())?;
            let text = files::replay_on(&base, &steps)
                .ok_or("the session's edits do not apply to the backup")?;
            let how = format!(
                "from the client's backup before turn {before_turn} and {} later edits",
                steps.len()
            );
            Ok((text.into_bytes(), how))
        }
        FileRestore::Absent => Err("the file did not exist at that turn".to_owned()),
        FileRestore::Replayed { content, calls } => {
            let how = match calls {
                0 => "from the content that the session read".to_owned(),
                1 => "replayed 1 tool call".to_owned(),
                calls => format!("replayed {calls} tool calls"),
            };
            Ok((content.into_bytes(), how))
        }
        FileRestore::Unknown { why } => Err(why),
    }
}

fn backup(chosen: &ChosenSession, file: &str) -> Result<Vec<u8>, String> {
    let SessionTarget::Session(session) = &chosen.target else {
        return Err("sub-agents have no backups".to_owned());
    };
    let backups = side_files::list_side_files(session).file_history;
    let path = backups
        .iter()
        .find(|path| path.file_name().is_some_and(|name| name == file));
    let path = path.ok_or_else(|| format!("the backup {file} no longer exists"))?;
    let mut bytes = Vec::new();
    let (mut file, _) = open::open(path).map_err(|error| error.to_string())?;
    let read = file.read_to_end(&mut bytes);
    read.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(bytes)
}

fn write(output: Option<&Path>, content: &[u8]) -> Result<(), CommandFailure> {
    let Some(path) = output else {
        let mut out = ui::data();
        out.write_all(content)?;
        return Ok(out.flush()?);
    };
    output_file::write(path, ExistingFilePolicy::Refuse, content).map_err(|error| {
        // There is no `--force` here.
        let free = path.symlink_metadata().is_err();
        match free || output_file::is_stream(path) {
            true => CommandFailure::from(error),
            false => CommandFailure::failed(error).hint("choose a file that does not exist"),
        }
    })?;
    Ok(())
}
