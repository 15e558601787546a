//! A small MCP server for tests: JSON lines on standard input, or HTTP with `--http PORTFILE`.

use std::io::{BufRead, BufReader, Read, Write};

use serde_json::{Value, json};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("--http") => http(args.get(1).map(String::as_str)),
        Some("--dies") => {
            eprintln!("no key was given");
            std::process::exit(3);
        }
        Some("--silent") => std::thread::sleep(std::time::Duration::from_secs(600)),
        _ => lines(),
    }
}

fn lines() {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        if let Some(answer) = answer(&message)
            && (writeln!(out, "{answer}").is_err() || out.flush().is_err())
        {
            return;
        }
    }
}

/// One request at a time, each on a connection of its own.
fn http(port_file: Option<&str>) {
    let Ok(listener) = std::net::TcpListener::bind("127.0.0.1:0") else {
        return;
    };
    if let (Ok(addr), Some(file)) = (listener.local_addr(), port_file) {
        let _ = std::fs::write(file, addr.port().to_string());
    }
    for stream in listener.incoming().map_while(Result::ok) {
        let Ok(mut out) = stream.try_clone() else {
            continue;
        };
        let mut reader = BufReader::new(stream);
        let (mut head, mut length, mut key) = (String::new(), 0, false);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) < 3 {
                break;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            key |= lower.trim() == "authorization: bearer k";
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        let _ = reader.read_exact(&mut body);
        let message = serde_json::from_slice::<Value>(&body).unwrap_or_default();
        let text = match (key, head.starts_with("POST"), answer(&message)) {
            (false, _, _) => "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
            (_, false, _) => "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
            (_, _, None) => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_owned(),
            (_, _, Some(answer)) => {
                let body = answer.to_string();
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
            }
        };
        let _ = out.write_all(text.as_bytes());
    }
}

fn answer(message: &Value) -> Option<Value> {
    let id = message.get("id")?.clone();
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": message.pointer("/params/protocolVersion")?,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "echo", "version": "1"},
        }),
        "tools/list" => match message.pointer("/params/cursor").and_then(Value::as_str) {
            None => json!({"tools": [tool("echo", true)], "nextCursor": "2"}),
            Some(_) => {
                json!({"tools": [tool("fails", false), tool("hangs", false), tool("exits", false)]})
            }
        },
        "tools/call" => {
            let text = message
                .pointer("/params/arguments/text")
                .and_then(Value::as_str);
            match message.pointer("/params/name")?.as_str()? {
                "echo" => {
                    json!({"content": [{"type": "text", "text": format!("echo: {}", text?)}]})
                }
                "fails" => {
                    json!({"content": [{"type": "text", "text": "it broke"}], "isError": true})
                }
                "exits" => std::process::exit(0),
                _ => return None,
            }
        }
        _ => {
            let error = json!({"code": -32601, "message": "not known here"});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn tool(name: &str, reads: bool) -> Value {
    json!({
        "name": name,
        "description": format!("does {name}"),
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "annotations": {"readOnlyHint": reads},
    })
}
