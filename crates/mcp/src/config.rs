//! Which servers there are: `mcpServers` of a file, as the client writes it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};

/// A server to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerConfig {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub way: McpTransport,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpTransport {
    /// A program that speaks over its standard input and output.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables it gets on top of ours.
        env: BTreeMap<String, String>,
        /// Where it runs.
        cwd: PathBuf,
    },
    /// An address.
    Http {
        /// The address.
        url: String,
        /// Headers of each request.
        headers: BTreeMap<String, String>,
    },
}

impl McpServerConfig {
    /// The same with these variables for its program, where it names none itself.
    pub fn with_env(mut self, more: &[(String, String)]) -> McpServerConfig {
        if let McpTransport::Program { env, .. } = &mut self.way {
            for (name, value) in more {
                env.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        self
    }
}

/// An entry that cannot be taken, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableMcpServer {
    /// The name of the server; empty if the whole text is meant.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
}

impl std::fmt::Display for UnusableMcpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name.as_str() {
            "" => f.write_str(&self.why),
            name => write!(f, "MCP server {name}: {}", self.why),
        }
    }
}

/// The servers of a text such as `.mcp.json`: `{"mcpServers": {NAME: {…}}}`. `variable` gives
/// the value of an environment variable; programs run in `cwd`.
pub fn read(
    text: &str,
    cwd: &std::path::Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> (Vec<McpServerConfig>, Vec<UnusableMcpServer>) {
    let whole = |why: String| {
        let name = String::new();
        (Vec::new(), vec![UnusableMcpServer { name, why }])
    };
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return whole(error.to_string()),
    };
    let Some(servers) = value.get("mcpServers").and_then(Value::as_object) else {
        return whole("missing object \"mcpServers\"".to_owned());
    };
    of(servers, cwd, variable)
}

/// The servers of an object `{NAME: {…}}`.
pub fn of(
    servers: &Map<String, Value>,
    cwd: &std::path::Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> (Vec<McpServerConfig>, Vec<UnusableMcpServer>) {
    let (mut entries, mut unusable) = (Vec::new(), Vec::new());
    for (name, server) in servers {
        match way(server, cwd, variable) {
            Ok(way) => entries.push(McpServerConfig {
                name: name.clone(),
                way,
            }),
            Err(why) => unusable.push(UnusableMcpServer {
                name: name.clone(),
                why,
            }),
        }
    }
    (entries, unusable)
}

fn way(
    server: &Value,
    cwd: &std::path::Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<McpTransport, String> {
    let text = |field: &str| server.get(field).and_then(Value::as_str);
    let table = |field: &str| -> Result<BTreeMap<String, String>, String> {
        let Some(table) = server.get(field).and_then(Value::as_object) else {
            return Ok(BTreeMap::new());
        };
        let each = table.iter().map(|(key, value)| {
            let value = value
                .as_str()
                .ok_or_else(|| format!("{field}.{key} must be a string"))?;
            Ok((key.clone(), expand(value, variable)?))
        });
        each.collect()
    };
    let kind = text("type").unwrap_or(match server.get("url") {
        Some(_) => "http",
        None => "stdio",
    });
    match kind {
        "stdio" => {
            let command = text("command").ok_or("missing \"command\"")?;
            let empty = Vec::new();
            let args = server.get("args").and_then(Value::as_array);
            let args = args.unwrap_or(&empty).iter().map(|arg| {
                let arg = arg.as_str().ok_or("arguments must be strings")?;
                expand(arg, variable)
            });
            Ok(McpTransport::Program {
                command: expand(command, variable)?,
                args: args.collect::<Result<_, String>>()?,
                env: table("env")?,
                cwd: cwd.to_owned(),
            })
        }
        "http" | "streamable-http" => {
            let url = expand(text("url").ok_or("missing \"url\"")?, variable)?;
            if !url.starts_with("http://") && !url.starts_with("https://") {
                return Err(format!("{url:?} is not an HTTP URL"));
            }
            Ok(McpTransport::Http {
                url,
                headers: table("headers")?,
            })
        }
        "sse" => Err(
            "the \"sse\" transport is no longer supported; use the server's \"http\" URL"
                .to_owned(),
        ),
        other => Err(format!("unknown type {other:?}; use stdio or http")),
    }
}

/// Puts values in place of `${NAME}` and `${NAME:-otherwise}`.
fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let Some(end) = rest[at..].find('}') else {
            break;
        };
        out.push_str(&rest[..at]);
        let inside = &rest[at + 2..at + end];
        let (name, otherwise) = match inside.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (inside, None),
        };
        match variable(name).filter(|value| !value.is_empty() || otherwise.is_none()) {
            Some(value) => out.push_str(&value),
            None => out.push_str(otherwise.ok_or_else(|| {
                format!("the variable {name} is not set; set it, or use ${{{name}:-value}}")
            })?),
        }
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn variable(name: &str) -> Option<String> {
        (name == "KEY").then(|| "k".to_owned())
    }

    fn taken(text: &str) -> (Vec<McpServerConfig>, Vec<String>) {
        let (entries, unusable) = read(text, Path::new("/p"), &variable);
        (entries, unusable.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn programs_and_addresses_are_read_and_variables_put_in() {
        let (entries, unusable) = taken(
            r#"{"mcpServers": {
                "a": {"command": "run", "args": ["${KEY}", "${NO:-else}"], "env": {"T": "x${KEY}y"}},
                "b": {"type": "http", "url": "https://h/${KEY}", "headers": {"A": "Bearer ${KEY}"}},
                "c": {"url": "http://h"}}}"#,
        );
        assert!(unusable.is_empty(), "{unusable:?}");
        assert_eq!(
            entries[0].way,
            McpTransport::Program {
                command: "run".to_owned(),
                args: vec!["k".to_owned(), "else".to_owned()],
                env: BTreeMap::from([("T".to_owned(), "xky".to_owned())]),
                cwd: "/p".into(),
            }
        );
        assert_eq!(
            entries[1].way,
            McpTransport::Http {
                url: "https://h/k".to_owned(),
                headers: BTreeMap::from([("A".to_owned(), "Bearer k".to_owned())]),
            }
        );
        assert!(matches!(&entries[2].way, McpTransport::Http { url, .. } if url == "http://h"));
    }

    #[test]
    fn one_bad_server_does_not_take_the_others_with_it() {
        let (entries, unusable) = taken(
            r#"{"mcpServers": {"good": {"command": "x"}, "bad": {"args": []}, "lost": {"command": "${NO}"},
                "old": {"type": "sse", "url": "http://x"}, "odd": {"type": "ws"}, "file": {"url": "file:///x"}}}"#,
        );
        assert_eq!(entries.len(), 1);
        assert_eq!(unusable.len(), 5);
        assert!(unusable[0].contains("bad") && unusable[0].contains("command"));
        assert!(unusable[1].contains("NO is not set"), "{unusable:?}");
    }

    #[test]
    fn a_text_that_is_no_json_says_where() {
        let (entries, unusable) = taken("{\n  nonsense");
        assert!(entries.is_empty());
        assert!(unusable[0].contains("line 2"), "{unusable:?}");
        assert!(taken("{}").1[0].contains("mcpServers"));
    }

    #[test]
    fn what_looks_like_a_variable_and_ends_nowhere_stays() {
        assert_eq!(expand("a${b", &variable), Ok("a${b".to_owned()));
        assert_eq!(expand("$KEY {KEY}", &variable), Ok("$KEY {KEY}".to_owned()));
    }
}
