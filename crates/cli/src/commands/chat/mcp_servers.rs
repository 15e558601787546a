//! Servers that offer tools: where they are named, and who may start them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use unspool_agent::driver::SessionDirs;
use unspool_agent::mcp_tools::{McpServerHealth, McpTools};
use unspool_agent::settings::SessionSettings;
use unspool_agent::stop::StopSignal;
use unspool_mcp::config::{self, McpServerConfig};
use unspool_mcp::{McpServers, PATIENCE};
use unspool_store::own_file;

use super::ChatArgs;
use crate::failure::CommandFailure;

/// How long a call of a server's tool may take.
const CALL: Duration = Duration::from_secs(600);

/// Starts the servers that the person names and, in a folder they trust, the folder's. Who
/// answers once waits for them; a conversation does not.
pub fn start(
    args: &ChatArgs,
    place: &SessionDirs,
    settings: &SessionSettings,
    env: &[(String, String)],
    variable: &dyn Fn(&str) -> Option<String>,
    notes: &mut Vec<String>,
) -> Result<Option<Arc<dyn McpTools>>, CommandFailure> {
    let mut all: Vec<McpServerConfig> = Vec::new();
    let mut take = |found: (Vec<McpServerConfig>, Vec<config::UnusableMcpServer>),
                    from: &str,
                    notes: &mut Vec<String>| {
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
                CommandFailure::failed(format!("cannot read `{given}`: {why}"))
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
    let servers = McpServers::start(all, CALL, |_, _| ())?;
    if args.print {
        servers.wait_until_started(PATIENCE, &StopSignal::new());
    }
    for server in servers.servers() {
        match server.health {
            McpServerHealth::Failed(why) => {
                notes.push(format!("MCP server {}: {why}", server.name))
            }
            McpServerHealth::NeedsLogin => {
                notes.push(format!("MCP server {} needs authentication", server.name))
            }
            McpServerHealth::Starting | McpServerHealth::Connected => {}
        }
    }
    Ok(Some(Arc::new(servers)))
}

fn text_of(file: &Path) -> Option<String> {
    own_file::read_settings(file).ok()
}

/// What the person's own file names, for this folder first.
fn of_person(place: &SessionDirs) -> Vec<Map<String, Value>> {
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
