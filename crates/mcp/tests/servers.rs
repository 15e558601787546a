//! Servers of MCP, real processes and real connections.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use unspool_agent::mcp_tools::{McpServerHealth, McpTools};
use unspool_agent::stop::StopSignal;
use unspool_agent::tool::{ToolCallRequest, ToolContent, ToolOutcome};
use unspool_mcp::McpServers;
use unspool_mcp::config::{McpServerConfig, McpTransport};

const ECHO: &str = env!("CARGO_BIN_EXE_mcp-echo");

fn program(name: &str, args: &[&str]) -> McpServerConfig {
    McpServerConfig {
        name: name.to_owned(),
        way: McpTransport::Program {
            command: ECHO.to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: BTreeMap::new(),
            cwd: "/".into(),
        },
    }
}

fn start(entries: Vec<McpServerConfig>) -> McpServers {
    let servers = McpServers::start(entries, Duration::from_secs(60), |_, _| ()).unwrap();
    servers.wait_until_started(Duration::from_secs(60), &StopSignal::new());
    servers
}

fn call(servers: &McpServers, name: &str, stop: &StopSignal) -> ToolOutcome {
    let call = ToolCallRequest {
        id: "toolu_1".to_owned(),
        name: name.to_owned(),
        input: json!({"text": "hi"}),
    };
    servers.run(&call, stop)
}

fn health(servers: &McpServers, name: &str) -> McpServerHealth {
    let all = servers.servers();
    let found = all.into_iter().find(|server| server.name == name);
    found.unwrap().health
}

#[test]
fn tools_of_a_program_are_listed_over_all_pages_and_called() {
    let servers = start(vec![program("my echo", &[])]);
    assert_eq!(health(&servers, "my echo"), McpServerHealth::Connected);
    let names: Vec<(String, bool)> = servers
        .offers()
        .into_iter()
        .map(|offer| (offer.name, offer.only_reads))
        .collect();
    let named = |tool: &str| format!("mcp__my_echo__{tool}");
    assert_eq!(
        names,
        [
            (named("echo"), true),
            (named("fails"), false),
            (named("hangs"), false),
            (named("exits"), false),
        ]
    );
    let outcome = call(&servers, "mcp__my_echo__echo", &StopSignal::new());
    let text = json!({"type": "text", "text": "echo: hi"});
    assert_eq!(outcome.content, ToolContent::Blocks(vec![text]));
    assert_eq!(outcome.is_error, None);
    let outcome = call(&servers, "mcp__my_echo__fails", &StopSignal::new());
    assert_eq!(outcome.content, ToolContent::Text("it broke".to_owned()));
    assert_eq!(outcome.is_error, Some(true));
}

#[test]
fn a_call_that_hangs_ends_when_it_is_stopped() {
    let servers = start(vec![program("e", &[])]);
    let stop = StopSignal::new();
    let later = stop.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        later.tell();
    });
    let outcome = call(&servers, "mcp__e__hangs", &stop);
    assert_eq!(
        outcome.content,
        ToolContent::Text("mcp__e__hangs was interrupted".to_owned())
    );
}

#[test]
fn a_server_that_does_not_start_says_why_and_the_others_go_on() {
    let missing = McpServerConfig {
        name: "missing".to_owned(),
        way: McpTransport::Program {
            command: "/no/such/program".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: "/".into(),
        },
    };
    let servers = start(vec![
        program("dies", &["--dies"]),
        missing,
        program("e", &[]),
    ]);
    assert_eq!(health(&servers, "e"), McpServerHealth::Connected);
    let why = |name: &str| match health(&servers, name) {
        McpServerHealth::Failed(why) => why,
        other => panic!("{name}: {other:?}"),
    };
    assert!(why("dies").contains("no key was given"), "{}", why("dies"));
    assert!(why("missing").contains("/no/such/program"));
}

#[test]
fn a_server_that_goes_away_fails_the_call_and_not_the_client() {
    let servers = start(vec![program("e", &[])]);
    let outcome = call(&servers, "mcp__e__exits", &StopSignal::new());
    assert_eq!(outcome.is_error, Some(true));
    let outcome = call(&servers, "mcp__e__echo", &StopSignal::new());
    assert_eq!(outcome.is_error, Some(true));
}

#[test]
fn nothing_runs_on_when_the_servers_are_let_go() {
    let servers = start(vec![program("e", &["nothing-runs-on-7541"])]);
    assert_eq!(health(&servers, "e"), McpServerHealth::Connected);
    assert_eq!(running("nothing-runs-on-7541"), 1);
    drop(servers);
    let end = Instant::now() + Duration::from_secs(60);
    while running("nothing-runs-on-7541") > 0 {
        assert!(Instant::now() < end, "it runs on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// How many processes have this argument and have not ended.
fn running(argument: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(argument))
        .count()
}

#[test]
fn tools_behind_an_address_are_called_with_the_headers_given() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("port");
    let mut server = std::process::Command::new(ECHO)
        .arg("--http")
        .arg(&file)
        .spawn()
        .unwrap();
    let port = port(&file);
    let entry = |name: &str, key: &str| McpServerConfig {
        name: name.to_owned(),
        way: McpTransport::Http {
            url: format!("http://127.0.0.1:{port}/mcp"),
            headers: BTreeMap::from([("Authorization".to_owned(), format!("Bearer {key}"))]),
        },
    };
    let servers = start(vec![entry("good", "k"), entry("bad", "wrong")]);
    let (good, bad) = (health(&servers, "good"), health(&servers, "bad"));
    let outcome = call(&servers, "mcp__good__echo", &StopSignal::new());
    drop(servers);
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(
        (good, bad),
        (McpServerHealth::Connected, McpServerHealth::NeedsLogin)
    );
    let text = json!({"type": "text", "text": "echo: hi"});
    assert_eq!(outcome.content, ToolContent::Blocks(vec![text]));
}

fn port(file: &Path) -> u16 {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if let Ok(port) = text.parse() {
            return port;
        }
        assert!(Instant::now() < end, "the server did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
}
