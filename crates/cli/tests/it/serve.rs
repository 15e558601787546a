//! `serve`, asked as a browser, a script and a stranger would.

mod answers;
mod doors;
mod masked_names;
mod remote;
mod stream;

#[cfg(unix)]
pub use remote::recorder;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use unspool_testkit::home::Home;

/// A server that ends with the test.
struct Server {
    child: Child,
    port: u16,
    token: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What came back.
struct Answered {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!(
                "{error}: {} {}",
                self.status,
                String::from_utf8_lossy(&self.body)
            )
        })
    }

    /// The value of a header.
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl Server {
    fn start(home: &Home, args: &[&str]) -> Server {
        Server::started(home.command(), args)
    }

    fn started(mut command: Command, args: &[&str]) -> Server {
        command.args(["serve", "--port", "0"]).args(args);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = child.stdout.take().unwrap();
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).unwrap();
        let rest = line.strip_prefix("http://127.0.0.1:").unwrap();
        let (port, token) = rest.trim_end().split_once("/#token=").unwrap();
        let server = Server {
            child,
            port: port.parse().unwrap(),
            token: token.to_owned(),
        };
        server.until_scanned();
        server
    }

    fn until_scanned(&self) {
        let began = Instant::now();
        while self.get("/api/health").json()["scanned"] != true {
            assert!(began.elapsed() < Duration::from_secs(60), "never scanned");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream
    }

    /// Sends bytes as they are and reads the answer to its end.
    fn raw(&self, request: &str) -> Answered {
        let mut stream = self.connect();
        // Who is turned away at once hears nothing, which is an answer too.
        let _ = stream.write_all(request.as_bytes());
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        answered(&all)
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if headers.iter().all(|(name, _)| *name != "host") {
            request.push_str(&format!("host: 127.0.0.1:{}\r\n", self.port));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            request.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        self.raw(&format!("{request}\r\n{body}"))
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    fn get(&self, path: &str) -> Answered {
        self.ask("GET", path, &[("authorization", &self.bearer())], "")
    }

    fn rows(&self, path: &str) -> Vec<Value> {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.json());
        answer.json().as_array().unwrap().clone()
    }
}

fn answered(all: &[u8]) -> Answered {
    let end = all.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or(all.len());
    let head = String::from_utf8_lossy(&all[..end]).into_owned();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let body = all.get(end + 4..).unwrap_or_default().to_vec();
    let chunked = head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked");
    Answered {
        status: status.unwrap_or(0),
        body: if chunked { whole(&body) } else { body },
        head,
    }
}

/// A body that came in parts.
fn whole(mut parts: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = parts.windows(2).position(|two| two == b"\r\n") {
        let size = String::from_utf8_lossy(&parts[..end]).into_owned();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        body.extend_from_slice(&parts[end + 2..end + 2 + size]);
        parts = &parts[end + 4 + size..];
    }
    body
}

/// The rows that a command prints.
fn printed(home: &Home, args: &[&str]) -> Vec<Value> {
    let output = home.output(args);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
