//! Beyond this machine: TLS, names, and what must be said to get there.

use std::io::{BufRead, BufReader, Read};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use unspool_net::reqwest::Certificate;
use unspool_net::reqwest::blocking::{Client, Response};
use unspool_testkit::home::Home;

use super::Server;
use crate::{ID, home_with_session};

/// The name in the certificate.
const NAME: &str = "box.example";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/tls")
        .join(name)
}

/// An address of this machine that is not loopback, if it has one. Nothing is sent.
fn outer() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

/// A server with these arguments, and the first line it prints.
fn start(home: &Home, args: &[&str]) -> (Server, String) {
    let mut command = home.command();
    command.args(["serve", "--port", "0"]).args(args);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut link = String::new();
    let out = child.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut link).unwrap();
    let (place, token) = link.trim_end().split_once("/#token=").unwrap();
    let port = place.rsplit_once(':').unwrap().1.parse().unwrap();
    let token = token.to_owned();
    let server = Server { child, port, token };
    (server, link)
}

/// A client that knows who signed, and where the name is.
fn client(address: SocketAddr) -> Client {
    let signer = std::fs::read(fixture("ca.pem")).unwrap();
    unspool_net::client()
        .tls_certs_only([Certificate::from_pem(&signer).unwrap()])
        .resolve(NAME, address)
        .timeout(Duration::from_secs(60))
        .no_proxy()
        .build()
        .unwrap()
}

#[test]
fn other_machines_speak_tls_by_a_name_that_was_given() {
    let home = home_with_session();
    let (cert, key) = (fixture("cert.pem"), fixture("key.pem"));
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let args = ["--listen", "0.0.0.0", "--allow-remote", "--host", NAME];
    let tls = ["--tls-cert", cert, "--tls-key", key];
    let (server, link) = start(&home, &[&args[..], &tls[..]].concat());
    assert!(link.starts_with("https://127.0.0.1:"), "{link}");
    // A machine without a network still has itself.
    let address = outer().unwrap_or(IpAddr::from([127, 0, 0, 1]));
    let client = client(SocketAddr::new(address, server.port));
    let at = |name: &str, path: &str| format!("https://{name}:{}{path}", server.port);
    let get = |url: String| client.get(url).bearer_auth(&server.token).send();

    let page = client.get(at(NAME, "/")).send().unwrap();
    assert_eq!(page.status(), 200);
    let refused = client.get(at(NAME, "/api/sessions")).send().unwrap();
    assert_eq!(refused.status(), 403);
    let rows: Vec<Value> = get(at(NAME, "/api/sessions")).unwrap().json().unwrap();
    assert_eq!(rows[0]["id"], ID);
    // A stream goes the same way.
    let mut events = get(at(NAME, "/api/events")).unwrap();
    assert!(first_event(&mut events).contains(ID));

    // A login by that name gives a key, and leaves nothing in the browser by itself.
    let login = client
        .post(at(NAME, "/api/login"))
        .header("origin", at(NAME, ""))
        .body(format!(r#"{{"token":"{}"}}"#, server.token))
        .send()
        .unwrap();
    assert_eq!(login.status(), 200);
    assert!(!login.headers().contains_key("set-cookie"));
    let key: Value = login.json().unwrap();
    let key = key["token"].as_str().unwrap();
    let asked = client.get(at(NAME, "/api/sessions")).bearer_auth(key);
    assert_eq!(asked.send().unwrap().status(), 200);

    // By the address in digits it is this machine; any other name is a stranger's.
    let digits = get(at("127.0.0.1", "/api/sessions")).unwrap();
    assert_eq!(digits.status(), 200);
    let foreign = client
        .get(at(NAME, "/api/sessions"))
        .bearer_auth(&server.token)
        .header("host", format!("evil.example:{}", server.port))
        .send()
        .unwrap();
    assert_eq!(foreign.status(), 403);

    // Without TLS nobody is understood, and who knows no signer does not believe us.
    assert!(!server.get("/api/sessions").head.contains(" 200 "));
    let plain = unspool_net::client().no_proxy().build().unwrap();
    assert!(plain.get(at("127.0.0.1", "/")).send().is_err());
}

/// The first event of a stream that says something.
fn first_event(stream: &mut Response) -> String {
    let (mut all, mut part) = (String::new(), [0; 4096]);
    while !all.contains("data:") || !all.ends_with("\n\n") {
        let read = stream.read(&mut part).unwrap();
        assert!(read > 0, "{all}");
        all.push_str(&String::from_utf8_lossy(&part[..read]));
    }
    all
}

#[test]
fn whoever_wants_to_be_reached_must_say_so_and_is_warned() {
    let home = home_with_session();
    let output = home.output(&["serve", "--port", "0", "--listen", "0.0.0.0"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("--allow-remote"), "{error}");

    let mut command = home.command();
    command.args(["serve", "--port", "0", "--listen", "0.0.0.0"]);
    command.arg("--allow-remote").stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut warned = String::new();
    let err = child.stderr.take().unwrap();
    BufReader::new(err).read_line(&mut warned).unwrap();
    let _ = child.kill();
    let _ = child.wait();
    assert!(warned.contains("--tls-cert"), "{warned}");
}

#[test]
fn a_certificate_that_is_none_is_named() {
    let home = home_with_session();
    let wrong = home.write("wrong.pem", "not a certificate");
    let key = fixture("key.pem");
    let output = home.output(&[
        "serve",
        "--port",
        "0",
        "--tls-cert",
        wrong.to_str().unwrap(),
        "--tls-key",
        key.to_str().unwrap(),
    ]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(error.contains("wrong.pem"), "{error}");
}

/// A program of this name, first on the path, that writes down what it is given, each word with
/// an end of its own.
#[cfg(unix)]
pub fn recorder(home: &Home, name: &str) -> (String, PathBuf) {
    use std::os::unix::fs::PermissionsExt;

    let record = home.path().join(format!("{name}.words"));
    let script = format!(
        "#!/bin/sh\nprintf '%s\\0' \"$@\" > '{0}.new' && mv '{0}.new' '{0}'\n",
        record.display()
    );
    let program = home.write(format!("programs/{name}"), script);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let before = std::env::var("PATH").unwrap_or_default();
    let folder = program.parent().unwrap().display().to_string();
    (format!("{folder}:{before}"), record)
}

#[cfg(target_os = "linux")]
#[test]
fn the_browser_is_opened_with_a_link_that_works_once() {
    let home = home_with_session();
    let (path, record) = recorder(&home, "xdg-open");
    let mut command = home.command();
    command.args(["serve", "--port", "0", "--open"]);
    let mut child = command
        .env("PATH", path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut link = String::new();
    let out = child.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut link).unwrap();
    let (place, token) = link.trim_end().split_once("/#token=").unwrap();
    let server = Server {
        child,
        port: place.rsplit_once(':').unwrap().1.parse().unwrap(),
        token: token.to_owned(),
    };
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while !record.exists() {
        assert!(std::time::Instant::now() < end, "nothing was opened");
        std::thread::sleep(Duration::from_millis(20));
    }
    let words = std::fs::read_to_string(record).unwrap();
    let opened = words.strip_suffix('\0').unwrap();
    let ticket = opened.strip_prefix(&format!("{place}/#token=")).unwrap();
    assert_ne!(ticket, server.token);
    let login = || {
        let body = format!(r#"{{"token":"{ticket}"}}"#);
        server.ask("POST", "/api/login", &[("origin", place)], &body)
    };
    let key = login();
    assert_eq!(key.status, 200);
    assert_eq!(login().status, 403);
    let status = |token: &str| {
        let bearer = format!("Bearer {token}");
        let with = [("authorization", bearer.as_str())];
        server.ask("GET", "/api/sessions", &with, "").status
    };
    assert_eq!(status(key.json()["token"].as_str().unwrap()), 200);
    // As a token it opens nothing.
    assert_eq!(status(ticket), 403);
}
