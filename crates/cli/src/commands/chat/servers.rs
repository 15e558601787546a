//! Servers that offer tools: where they are named, and who may start them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use unspool_agent::driver::Place;
use unspool_agent::more::{Health, More};
use unspool_agent::settings::Settings;
use unspool_agent::stop::Stop;
use unspool_mcp::config::{self, Entry};
use unspool_mcp::{PATIENCE, Servers};
use unspool_store::own_file;

use super::ChatArgs;
use crate::failure::Failure;

/// How long a call of a server's tool may take.
const CALL: Duration = Duration::from_secs(600);

/// Starts the servers that the person names and, in a folder they trust, the folder's. Who
/// answers once waits for them; a conversation does not.
pub fn start(
    args: &ChatArgs,
    place: &Place,
    settings: &Settings,
    env: &[(String, String)],
    variable: &dyn Fn(&str) -> Option<String>,
    notes: &mut Vec<String>,
) -> Result<Option<Arc<dyn More>>, Failure> {
    let mut all: Vec<Entry> = Vec::new();
    let mut take =
        |found: (Vec<Entry>, Vec<config::Unusable>), from: &str, notes: &mut Vec<String>| {
            for entry in found.0 {
                // The first who names a server says what it is.
                if !all.iter().any(|known| known.name == entry.name) {
                    all.push(entry.with_env(env));
                }
            }
            notes.extend(found.1.iter().map(|why| format!("{from}: {why}")));
        };
    for given in &args.mcp_config {
        let text = match given.trim_start().starts_with('{') {
            true => given.clone(),
            false => std::fs::read_to_string(given).map_err(|why| {
                Failure::failed(format!("cannot read `{given}`: {why}"))
                    .hint("`--mcp-config` takes a file or inline JSON")
            })?,
        };
        take(
            config::read(&text, &place.project, variable),
            "--mcp-config",
            notes,
        );
    }
    if !args.strict_mcp_config && !args.bare {
        for servers in of_person(place) {
            take(
                config::of(&servers, &place.project, variable),
                ".claude.json",
                notes,
            );
        }
        let file = place.project.join(".mcp.json");
        if let Some(text) = settings.server_file(&file) {
            take(
                config::read(text, &place.project, variable),
                &file.display().to_string(),
                notes,
            );
        }
    }
    if all.is_empty() {
        return Ok(None);
    }
    let servers = Servers::start(all, CALL, |_, _| ())?;
    if args.print {
        servers.settle(PATIENCE, &Stop::new());
    }
    for server in servers.servers() {
        match server.health {
            Health::Failed(why) => notes.push(format!("MCP server {}: {why}", server.name)),
            Health::NeedsLogin => {
                notes.push(format!("MCP server {} needs authentication", server.name))
            }
            Health::Starting | Health::Connected => {}
        }
    }
    Ok(Some(Arc::new(servers)))
}

fn text_of(file: &Path) -> Option<String> {
    own_file::read_settings(file).ok()
}

/// What the person's own file names, for this folder first.
fn of_person(place: &Place) -> Vec<Map<String, Value>> {
    let inside = place.config.join(".claude.json");
    let beside = place.home.join(".claude.json");
    let text = text_of(&inside).or_else(|| text_of(&beside));
    let Some(value) = text.and_then(|text| serde_json::from_str::<Value>(&text).ok()) else {
        return Vec::new();
    };
    let project = place.project.display().to_string();
    let here = value.get("projects").and_then(|all| all.get(&project));
    [here, Some(&value)]
        .into_iter()
        .flatten()
        .filter_map(|it| it.get("mcpServers")?.as_object().cloned())
        .collect()
}
