//! The client's own list of the sessions of a project, where it keeps one.

use std::fs;

use serde_json::{Value, json};
use unspool_show::wire::edit::EditResult;
use unspool_store::carry::Home;
use unspool_store::find::SessionFile;
use unspool_store::open::Stamp;

use super::bench::Bench;
use crate::failure::Failure;
use crate::world::World;

const NAME: &str = "sessions-index.json";

/// Adds the new session to the list in its folder, if there is one. A list that cannot be
/// read is left alone.
pub fn enter(
    world: &World,
    bench: &mut Bench,
    file: &SessionFile,
    home: &Home,
    result: &EditResult,
) -> Result<(), Failure> {
    let path = home.folder.join(NAME);
    let Ok(metadata) = fs::symlink_metadata(&path) else {
        return Ok(());
    };
    let read = fs::read(&path).ok();
    let index = read.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let Some(mut index) = index.filter(|index| index["entries"].is_array()) else {
        let what = format!("`{}` cannot be read and is left as it is", path.display());
        world.ui.warn(&what);
        return Ok(());
    };
    let old = index["entries"].as_array().into_iter().flatten();
    let old = old
        .into_iter()
        .find(|entry| entry["sessionId"] == file.id.as_str());
    let entry = entry(old, home, result, world);
    if let Some(entries) = index["entries"].as_array_mut() {
        entries.push(entry);
    }
    let text = serde_json::to_string_pretty(&index)?;
    bench.renew(&path, Stamp::of(&metadata), &text)
}

fn entry(old: Option<&Value>, home: &Home, result: &EditResult, world: &World) -> Value {
    let now = world.now();
    let mut entry = old
        .cloned()
        .unwrap_or_else(|| json!({"isSidechain": false}));
    let fields = [
        ("sessionId", json!(home.id)),
        ("fullPath", json!(home.transcript().display().to_string())),
        ("fileMtime", json!(now.0)),
        ("summary", json!(result.title)),
        ("modified", json!(now.to_string())),
    ];
    for (key, value) in fields {
        entry[key] = value;
    }
    entry
}
