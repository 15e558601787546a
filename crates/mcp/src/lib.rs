//! Tools of MCP servers, over standard input and over HTTP.
//!
//! [`config`] reads which servers there are; [`McpServers`] starts them all at once, each in a
//! process group of its own, and hands their tools on as [`unspool_agent::mcp_tools::McpTools`]. A server that does
//! not start is a message, never a reason not to go on.

pub mod config;
mod connection;
mod tool_result;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Runtime;
use unspool_agent::mcp_tools::{McpServerHealth, McpServerStatus, McpTools, OfferedTool};
use unspool_agent::stop::StopSignal;
use unspool_agent::tool::{ToolCallRequest, ToolOutcome};

use config::McpServerConfig;
use connection::McpSession;

/// How long a server may take to start.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How often a waiting call looks whether it should stop.
const GLANCE: Duration = Duration::from_millis(20);

/// Servers that run.
pub struct McpServers {
    all: Arc<BTreeMap<String, McpServerCell>>,
    runtime: Option<Runtime>,
    /// How long a call may take.
    timeout: Duration,
}

/// What is known of one server.
struct McpServerCell {
    now: Mutex<McpServerState>,
}

struct McpServerState {
    health: McpServerHealth,
    session: Option<Arc<McpSession>>,
    tools: Vec<McpServerTool>,
}

/// A tool: as it is offered, and as its server calls it.
#[derive(Clone)]
struct McpServerTool {
    offer: OfferedTool,
    own: String,
}

impl McpServerCell {
    fn now(&self) -> MutexGuard<'_, McpServerState> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl McpServers {
    /// Starts servers, all at once, and returns at once; `changed` is called when one is up or
    /// has failed. No call takes longer than `timeout`.
    pub fn start(
        entries: Vec<McpServerConfig>,
        timeout: Duration,
        changed: impl Fn(&str, &McpServerHealth) + Send + Sync + 'static,
    ) -> std::io::Result<McpServers> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let place = |entry: &McpServerConfig| {
            let now = Mutex::new(McpServerState {
                health: McpServerHealth::Starting,
                session: None,
                tools: Vec::new(),
            });
            (entry.name.clone(), McpServerCell { now })
        };
        let all: Arc<BTreeMap<String, McpServerCell>> =
            Arc::new(entries.iter().map(place).collect());
        let changed = Arc::new(changed);
        for entry in entries {
            let (all, changed) = (Arc::clone(&all), Arc::clone(&changed));
            runtime.spawn(async move {
                let tried = tokio::time::timeout(PATIENCE, connection::connect(&entry)).await;
                let (health, session) = match tried {
                    Ok(Ok(session)) => (McpServerHealth::Connected, Some(session)),
                    Ok(Err(connection::McpConnectError::Login)) => {
                        (McpServerHealth::NeedsLogin, None)
                    }
                    Ok(Err(connection::McpConnectError::Other(why))) => {
                        (McpServerHealth::Failed(why), None)
                    }
                    Err(_) => {
                        let why = format!("timed out after {} s", PATIENCE.as_secs());
                        (McpServerHealth::Failed(why), None)
                    }
                };
                let Some(place) = all.get(&entry.name) else {
                    return;
                };
                {
                    let mut now = place.now();
                    now.health = health.clone();
                    if let Some(session) = session {
                        now.tools = known(&entry.name, &session.tools);
                        now.session = Some(Arc::new(session));
                    }
                }
                changed(&entry.name, &health);
            });
        }
        Ok(McpServers {
            all,
            runtime: Some(runtime),
            timeout,
        })
    }

    /// Waits until every server is up or has failed, but not longer than `time` and not after
    /// `stop` was told.
    pub fn wait_until_started(&self, time: Duration, stop: &StopSignal) {
        let end = std::time::Instant::now() + time;
        let starting = |place: &McpServerCell| place.now().health == McpServerHealth::Starting;
        while self.all.values().any(starting) && std::time::Instant::now() < end {
            if stop.wait(GLANCE) {
                return;
            }
        }
    }

    fn find(&self, name: &str) -> Option<(&McpServerCell, McpServerTool)> {
        self.all.values().find_map(|place| {
            let known = {
                let now = place.now();
                now.tools.iter().find(|it| it.offer.name == name).cloned()
            };
            known.map(|known| (place, known))
        })
    }
}

impl McpTools for McpServers {
    fn offers(&self) -> Vec<OfferedTool> {
        let tools = self
            .all
            .values()
            .flat_map(|place| place.now().tools.clone());
        tools.map(|known| known.offer).collect()
    }

    fn servers(&self) -> Vec<McpServerStatus> {
        let all = self.all.iter().map(|(name, place)| {
            let now = place.now();
            McpServerStatus {
                name: name.clone(),
                health: now.health.clone(),
                tools: now.tools.len(),
            }
        });
        all.collect()
    }

    fn run(&self, call: &ToolCallRequest, stop: &StopSignal) -> ToolOutcome {
        let Some((place, known)) = self.find(&call.name) else {
            return ToolOutcome::refused(format!("Error: No such tool available: {}", call.name));
        };
        let (Some(session), Some(runtime)) = (place.now().session.clone(), &self.runtime) else {
            return ToolOutcome::failed(format!(
                "the MCP server of {} is not connected",
                call.name
            ));
        };
        let (input, own) = (call.input.clone(), known.own);
        let running = runtime.spawn(async move { session.call(&own, input).await });
        let end = std::time::Instant::now() + self.timeout;
        while !running.is_finished() {
            if stop.wait(GLANCE) {
                // Dropping the request tells the server that nobody waits for it.
                running.abort();
                return ToolOutcome::failed(format!("{} was interrupted", call.name));
            }
            if std::time::Instant::now() >= end {
                running.abort();
                let after = self.timeout.as_secs();
                return ToolOutcome::failed(format!("{} timed out after {after} s", call.name));
            }
        }
        match runtime.block_on(running) {
            Ok(Ok(answer)) => tool_result::outcome(answer),
            Ok(Err(why)) => {
                if why.is_gone {
                    place.now().health = McpServerHealth::Failed(why.text.clone());
                }
                ToolOutcome::failed(format!("MCP error: {}", why.text))
            }
            Err(_) => ToolOutcome::failed(format!("{} failed: the connection closed", call.name)),
        }
    }
}

impl Drop for McpServers {
    fn drop(&mut self) {
        // Sessions end their processes when they go; a server that hangs is not waited for.
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        for place in self.all.values() {
            let session = place.now().session.take();
            if let Some(session) = session {
                runtime.block_on(async move { session.close().await });
            }
        }
        runtime.shutdown_timeout(Duration::from_millis(500));
    }
}

/// The tools of a server by their full names. Two that would be called the same get numbers.
fn known(server: &str, tools: &[Value]) -> Vec<McpServerTool> {
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    let each = tools.iter().filter_map(|tool| {
        let own = tool.get("name")?.as_str()?.to_owned();
        let mut name = full_name(server, &own);
        let before = taken.entry(name.clone()).or_default();
        *before += 1;
        if *before > 1 {
            let end = format!("_{before}");
            name.truncate(LONGEST - end.len());
            name.push_str(&end);
        }
        let text = |field: &str| tool.get(field).and_then(Value::as_str);
        let hint = tool.pointer("/annotations/readOnlyHint");
        Some(McpServerTool {
            offer: OfferedTool {
                name,
                description: text("description").unwrap_or_default().to_owned(),
                schema: tool.get("inputSchema").cloned().unwrap_or_default(),
                only_reads: hint.and_then(Value::as_bool).unwrap_or(false),
            },
            own,
        })
    });
    each.collect()
}

/// The longest name of a tool that the API takes.
const LONGEST: usize = 128;

/// The name of a server's tool for the model and for rules.
fn full_name(server: &str, tool: &str) -> String {
    let fit = |text: &str| -> String {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        text.chars()
            .map(|c| if allowed(c) { c } else { '_' })
            .collect()
    };
    let mut name = format!("mcp__{}__{}", fit(server), fit(tool));
    name.truncate(LONGEST);
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_holds_only_what_the_api_takes() {
        assert_eq!(full_name("my server.x", "do/it"), "mcp__my_server_x__do_it");
        assert_eq!(full_name("a", &"ü".repeat(300)).len(), LONGEST);
    }

    #[test]
    fn two_tools_never_have_one_name() {
        let tools = [
            json!({"name": "a.b"}),
            json!({"name": "a_b"}),
            json!({"title": "none"}),
        ];
        let names: Vec<String> = known("s", &tools)
            .into_iter()
            .map(|known| known.offer.name)
            .collect();
        assert_eq!(names, ["mcp__s__a_b", "mcp__s__a_b_2"]);
    }
}
