//! Takes a session away with everything that is its alone. The journal keeps copies of all files
//! until they are old, so that it can be brought back.

use std::path::{Path, PathBuf};

use unspool_store::find::SessionFile;
use unspool_store::journal::Work;
use unspool_store::list::{self, List};

use crate::failure::Failure;

/// Removes these files of a session, the folders that are its alone, and what the client's own
/// list says about it.
pub fn remove(work: &mut Work, file: &SessionFile, files: &[PathBuf]) -> Result<(), Failure> {
    let list = file.path.with_file_name(list::NAME);
    if let Some(mut entries) = List::read(&list, "")
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
