//! The transcript of a session: a new one, one to go on with, a copy, or one that nobody keeps.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use unspool_agent::driver::SessionDirs;
use unspool_agent::transcript_writer::{SharedLineFields, TranscriptWriter, new_id};
use unspool_model::entry_writer::slug;
use unspool_show::shell_command;
use unspool_store::project;
use unspool_store::read_folder;
use unspool_store::resolve::{self, SessionTarget};

use super::ChatArgs;
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// A session that nobody keeps: its files are removed when it is over.
pub struct TemporarySession {
    folder: PathBuf,
    /// Copies of files that it changed.
    copies: PathBuf,
}

impl Drop for TemporarySession {
    fn drop(&mut self) {
        let _ = read_folder::remove_all(&self.folder);
        let _ = read_folder::remove_all(&self.copies);
    }
}

/// The id of a session that begins.
pub(super) fn session_id(args: &ChatArgs) -> Result<String, CommandFailure> {
    let Some(id) = &args.session_id else {
        return Ok(new_id());
    };
    let id = uuid::Uuid::parse_str(id).map_err(|_| {
        CommandFailure::failed(format!("`{id}` is not a uuid"))
            .hint("omit `--session-id` to generate one")
    })?;
    Ok(id.to_string())
}

/// Where a session is that nobody keeps.
pub(super) fn temporary_session(
    args: &ChatArgs,
    place: &SessionDirs,
    id: &str,
) -> Result<Option<TemporarySession>, CommandFailure> {
    if !args.no_session_persistence {
        return Ok(None);
    }
    Ok(Some(TemporarySession {
        folder: tempfile::TempDir::with_prefix("unspool-chat-")?.keep(),
        copies: place.config.join("file-history").join(id),
    }))
}

/// The transcript: a new one, one to go on with, or a copy of one. One that nobody keeps goes on
/// in a copy.
pub(super) fn record(
    world: &CommandContext,
    args: &ChatArgs,
    place: &SessionDirs,
    id: &str,
    passing: Option<&TemporarySession>,
) -> Result<TranscriptWriter, CommandFailure> {
    let folder = match passing {
        Some(passing) => passing.folder.clone(),
        None => place
            .config
            .join("projects")
            .join(project::slug(&place.project.display().to_string())),
    };
    let id = id.to_owned();
    let copies = args.fork_session || passing.is_some();
    let face = |session: String| SharedLineFields {
        slug: Some(slug(words_of(&session))),
        session,
        version: format!(
            "unspool-{}.{}",
            env!("CARGO_PKG_VERSION_MAJOR"),
            env!("CARGO_PKG_VERSION_MINOR")
        ),
        entrypoint: if args.print { "sdk-cli" } else { "cli" }.to_owned(),
        agent: None,
    };
    let source = match (&args.resume, args.go_on) {
        (Some(session), _) => Some(resumed(world, session)?),
        (None, true) => Some(latest(world, &place.project)?),
        (None, false) => None,
    };
    let new = folder.join(format!("{id}.jsonl"));
    let occupied = || {
        CommandFailure::failed(format!("session {id} already exists")).hint(format!(
            "resume it with `{}`",
            shell_command::chat(None, &id)
        ))
    };
    match source {
        None if new.exists() => Err(occupied()),
        None => Ok(TranscriptWriter::new(
            &new,
            face(id),
            &place.project,
            args.durable,
        )),
        Some(_) if copies && new.exists() => Err(occupied()),
        Some((path, _)) if copies => {
            let mut copy =
                TranscriptWriter::new(&new, face(id.clone()), &place.project, args.durable);
            copy.copy_from(&path)?;
            Ok(TranscriptWriter::resume(
                &new,
                face(id),
                &place.project,
                args.durable,
            )?)
        }
        Some((path, id)) => Ok(TranscriptWriter::resume(
            &path,
            face(id),
            &place.project,
            args.durable,
        )?),
    }
}

/// A number that an id stands for.
fn words_of(id: &str) -> u64 {
    let digits: String = id
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(15)
        .collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}

fn resumed(world: &CommandContext, session: &OsStr) -> Result<(PathBuf, String), CommandFailure> {
    match world.target(Some(session))? {
        SessionTarget::Session(file) => Ok((file.path, file.id)),
        SessionTarget::Agent(_) => Err(CommandFailure::failed(
            "sub-agent sessions cannot be resumed",
        )
        .hint("resume the session that started the sub-agent")),
    }
}

fn latest(world: &CommandContext, here: &Path) -> Result<(PathBuf, String), CommandFailure> {
    let found = world.found()?;
    let file = resolve::latest_in_directory(&found, here).ok_or_else(|| {
        CommandFailure::nothing("this directory has no session to continue")
            .hint("omit `--continue` to start a session, or name one with `--resume`")
    })?;
    Ok((file.path.clone(), file.id.clone()))
}
