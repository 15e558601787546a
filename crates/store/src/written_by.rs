//! Which versions of the client wrote the sessions of a tree.

use std::collections::BTreeSet;

use unspool_model::session::TranscriptRole;

use crate::find::FoundSessionFiles;
use crate::parallel;
use crate::read;

/// So much of a file says which version began it: its first lines all do, but for long ones.
const START: u64 = 4_096;

/// The versions that began the sessions; who went on in them is known from the whole file.
pub fn versions(found: &FoundSessionFiles) -> BTreeSet<String> {
    let begun = parallel::map(
        &found.sessions,
        parallel::threads(),
        |_| 0,
        |file| {
            let start = read::read_start(&file.path, TranscriptRole::Main, START).ok()?;
            let (version, _) = start.session.versions.iter().next()?;
            Some(version.to_owned())
        },
    );
    begun.into_iter().flatten().collect()
}
