//! Takes a session away with everything that is its alone. The journal keeps copies of all files
//! until they are old, so that it can be brought back.

use std::path::{Path, PathBuf};

use unspool_show::format;
use unspool_store::archive::RemovalLeftovers;
use unspool_store::client_session_list::{self, ClientSessionList};
use unspool_store::find::SessionFile;
use unspool_store::journal::FileTransaction;

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Removes these files of a session, the folders that are its alone, and what the client's own
/// list says about it.
pub fn remove(
    work: &mut FileTransaction,
    file: &SessionFile,
    files: &[PathBuf],
) -> Result<(), CommandFailure> {
    let list = file.path.with_file_name(client_session_list::NAME);
    if let Some(mut entries) = ClientSessionList::read(&list, "")
        && entries.take(&file.id).is_some()
    {
        entries.write(work, &list)?;
    }
    for path in files {
        work.remove(path)?;
    }
    for folder in folders(file, files) {
        work.remove_folder(&folder)?;
    }
    Ok(())
}

/// Says what stays of a session, whose prompts may be in it.
pub fn tell_remains(world: &CommandContext, file: &SessionFile, remains: &RemovalLeftovers) {
    let mut all = Vec::new();
    if let Some(first) = remains.files.first() {
        let folder = first.parent().unwrap_or(first).display();
        let more = match remains.files.len() {
            1 => first.display().to_string(),
            count => format!(
                "{} in {folder} and below",
                format::count(count as u64, "file")
            ),
        };
        all.push(more);
    }
    if remains.prompts > 0 {
        let prompts = format::count(remains.prompts as u64, "prompt");
        all.push(format!(
            "{prompts} in {}",
            file.config.join("history.jsonl").display()
        ));
    }
    if !all.is_empty() {
        let what = all.join(", ");
        world
            .ui
            .note(&format!("{} stays otherwise: {what}", file.id));
    }
}

/// Folders that are the session's alone, the deepest first.
fn folders(file: &SessionFile, files: &[PathBuf]) -> Vec<PathBuf> {
    let owned = |path: &&Path| {
        let mut parts = path.components();
        parts.any(|part| part.as_os_str() == file.id.as_str())
    };
    let mut folders: Vec<PathBuf> = files
        .iter()
        .flat_map(|path| path.ancestors().skip(1).take_while(owned))
        .map(Path::to_owned)
        .collect();
    folders.sort_unstable_by_key(|path| std::cmp::Reverse(path.components().count()));
    folders.dedup();
    folders
}
