//! One connection to one server.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use process_wrap::tokio::{CommandWrap, KillOnDrop, ProcessGroup};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation,
};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ServiceExt};
use serde_json::Value;
use tokio::io::AsyncReadExt;

use crate::config::{McpServerConfig, McpTransport};

/// How much of what a server complains about is kept.
const COMPLAINTS: usize = 4096;

/// Why there is no connection.
pub enum McpConnectError {
    /// The server wants somebody to log in.
    Login,
    /// Anything else, for a person.
    Other(String),
}

/// Why a call came to nothing.
pub struct McpCallError {
    /// For the model and the person.
    pub text: String,
    /// The server is no longer there.
    pub is_gone: bool,
}

/// A server that answers.
pub struct McpSession {
    service: RunningService<RoleClient, McpClientInfo>,
    /// Its tools, as it told them.
    pub tools: Vec<Value>,
}

/// Who we are.
struct McpClientInfo;

impl ClientHandler for McpClientInfo {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("unspool", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
    }
}

/// Connects and asks for the tools.
pub async fn connect(entry: &McpServerConfig) -> Result<McpSession, McpConnectError> {
    let service = match &entry.way {
        McpTransport::Program { .. } => program(entry).await?,
        McpTransport::Http { url, headers } => {
            let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
            for (name, value) in headers {
                let parts = (name.parse::<HeaderName>(), value.parse::<HeaderValue>());
                let (Ok(name), Ok(value)) = parts else {
                    let why = format!("invalid header {name:?}");
                    return Err(McpConnectError::Other(why));
                };
                config.custom_headers.insert(name, value);
            }
            let client = unspool_net::streaming()
                .build()
                .map_err(|error| McpConnectError::Other(unspool_net::error_chain(&error)))?;
            let transport = StreamableHttpClientTransport::with_client(client, config);
            McpClientInfo
                .serve(transport)
                .await
                .map_err(|error| trouble(&error, ""))?
        }
    };
    let tools = service
        .list_all_tools()
        .await
        .map_err(|error| McpConnectError::Other(unspool_net::error_chain(&error)))?;
    let tools = tools
        .iter()
        .filter_map(|tool| serde_json::to_value(tool).ok())
        .collect();
    Ok(McpSession { service, tools })
}

async fn program(
    entry: &McpServerConfig,
) -> Result<RunningService<RoleClient, McpClientInfo>, McpConnectError> {
    let McpTransport::Program {
        command,
        args,
        env,
        cwd,
    } = &entry.way
    else {
        return Err(McpConnectError::Other("no program".to_owned()));
    };
    let mut start = CommandWrap::with_new(command, |start| {
        start.args(args).envs(env).current_dir(cwd);
    });
    // A group of its own: Ctrl-C is ours to hear, and what it started goes with it.
    start.wrap(ProcessGroup::leader()).wrap(KillOnDrop);
    let (child, errors) = TokioChildProcess::builder(start)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| McpConnectError::Other(format!("cannot start {command:?}: {error}")))?;
    let complaints = Arc::new(Mutex::new(Vec::new()));
    if let Some(mut errors) = errors {
        let complaints = Arc::clone(&complaints);
        tokio::spawn(async move {
            let mut buffer = [0; 1024];
            while let Ok(count @ 1..) = errors.read(&mut buffer).await {
                let mut kept = complaints.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&buffer[..count]);
                let over = kept.len().saturating_sub(COMPLAINTS);
                kept.drain(..over);
            }
        });
    }
    match McpClientInfo.serve(child).await {
        Ok(service) => Ok(service),
        Err(error) => {
            // What it said last may still be on its way.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let said = complaints.lock().unwrap_or_else(PoisonError::into_inner);
            let said = String::from_utf8_lossy(&said).trim().to_owned();
            Err(trouble(&error, &said))
        }
    }
}

fn trouble(error: &(dyn std::error::Error + 'static), said: &str) -> McpConnectError {
    let text = unspool_net::error_chain(error);
    let asks = ["401", "Auth required", "auth required"];
    if asks.iter().any(|sign| text.contains(sign)) {
        return McpConnectError::Login;
    }
    McpConnectError::Other(match said {
        "" => text,
        said => format!("{text}; stderr: {said}"),
    })
}

impl McpSession {
    /// Calls a tool.
    pub async fn call(&self, tool: &str, input: Value) -> Result<CallToolResult, McpCallError> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        if let Value::Object(input) = input {
            params.arguments = Some(input);
        }
        self.service.call_tool(params).await.map_err(|error| {
            let is_gone = matches!(error, ServiceError::TransportClosed);
            let text = match error {
                ServiceError::McpError(error) => format!("{} ({})", error.message, error.code.0),
                error => unspool_net::error_chain(&error),
            };
            McpCallError { text, is_gone }
        })
    }

    /// Says goodbye, without waiting long.
    pub async fn close(self: Arc<McpSession>) {
        if let Ok(mut session) = Arc::try_unwrap(self).map_err(drop) {
            let soon = Duration::from_millis(300);
            let _ = session.service.close_with_timeout(soon).await;
        }
    }
}
