//! The client's own list of the sessions of a project, where it keeps one.

use serde_json::{Value, json};
use unspool_model::session::Session;
use unspool_store::client_session_list::{self, ClientSessionList};
use unspool_store::copy_side_files::SessionCopyLocation;
use unspool_store::find::SessionFile;

use super::staging::EditStaging;
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// How many characters of the first prompt the client keeps.
const SHOWN: usize = 100;

/// Adds the new session to the list in its folder, if there is one. A list that cannot be
/// read is left alone. What is noted is taken from what was written, so that nothing stands
/// in it that was cut or redacted.
pub fn add_session(
    world: &CommandContext,
    bench: &mut EditStaging,
    file: &SessionFile,
    home: &SessionCopyLocation,
    after: &Session,
) -> Result<(), CommandFailure> {
    let path = home.folder.join(client_session_list::NAME);
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let Some(mut list) = ClientSessionList::read(&path, "") else {
        let what = format!("skipped `{}`: unreadable", path.display());
        world.ui.warn(&what);
        return Ok(());
    };
    let old = list.entry(&file.id).cloned();
    list.put(entry(old, home, after, world));
    match list.stamp() {
        Some(stamp) => bench.renew(&path, stamp, &list.text()),
        None => Ok(()),
    }
}

/// What the client would note, and what it noted of the source beside that.
fn entry(
    old: Option<Value>,
    home: &SessionCopyLocation,
    after: &Session,
    world: &CommandContext,
) -> Value {
    let now = world.now();
    let first = after.goal.as_deref().unwrap_or("No prompt");
    let spoken = after.records.iter().filter(|it| it.is_conversation());
    let cwd = after.cwds.iter().next().map(|(cwd, _)| cwd);
    let mut entry = old.unwrap_or_else(|| json!({}));
    let fields = [
        ("sessionId", json!(home.id)),
        ("fullPath", json!(home.transcript().display().to_string())),
        ("fileMtime", json!(now.0)),
        (
            "firstPrompt",
            json!(first.chars().take(SHOWN).collect::<String>()),
        ),
        ("summary", json!(after.given_title())),
        ("messageCount", json!(spoken.count())),
        ("created", json!(now.to_string())),
        ("modified", json!(now.to_string())),
        ("projectPath", json!(cwd)),
        ("isSidechain", json!(false)),
    ];
    for (key, value) in fields {
        if !value.is_null() {
            entry[key] = value;
        }
    }
    entry
}
