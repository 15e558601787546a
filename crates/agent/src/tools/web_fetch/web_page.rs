//! Fetching a page and making text of it.

use std::io::Read;
use std::time::Duration;

use htmd::HtmlToMarkdown;
use unspool_net::reqwest::blocking::Response;
use unspool_net::reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use unspool_net::reqwest::{StatusCode, Url};

use super::address::{AddressRules, is_same_site};

/// A page may take this much.
const LARGEST: u64 = 10 << 20;

const TIME: Duration = Duration::from_secs(60);

const MOVES: usize = 10;

/// Pages that are nested deeper lose their form, not their words.
const DEPTH: usize = 2_000;

/// A page as text.
#[derive(Debug)]
pub struct WebPage {
    pub text: String,
    pub bytes: usize,
    pub code: u16,
    pub status: &'static str,
}

/// What came of it.
#[derive(Debug)]
pub enum WebFetchResult {
    /// The page.
    Page(WebPage),
    /// It is on another host now.
    Moved { to: String, code: u16 },
}

pub fn fetch(mut url: Url, rules: AddressRules) -> Result<WebFetchResult, String> {
    for _ in 0..MOVES {
        let response = get(&url, rules)?;
        let Some(to) = moved(&response, &url) else {
            return page(response, &url).map(WebFetchResult::Page);
        };
        // Where it moves to is an address like the first one.
        let to = rules.address(to.as_str())?;
        let code = response.status().as_u16();
        if !is_same_site(&url, &to) {
            return Ok(WebFetchResult::Moved {
                to: to.to_string(),
                code,
            });
        }
        url = to;
    }
    Err(format!("too many redirects at {url}"))
}

fn get(url: &Url, rules: AddressRules) -> Result<Response, String> {
    let addresses = rules.resolve(url)?;
    let host = url.host_str().unwrap_or_default();
    let client = unspool_net::client()
        // Through a proxy nobody knows where it goes.
        .no_proxy()
        .resolve_to_addrs(host, &addresses)
        .connect_timeout(Duration::from_secs(15))
        .timeout(TIME)
        .build()
        .map_err(|error| unspool_net::error_chain(&error))?;
    let accept = "text/markdown, text/html, text/plain;q=0.9, */*;q=0.5";
    let sent = client.get(url.clone()).header(ACCEPT, accept).send();
    sent.map_err(|error| format!("cannot fetch {url}: {}", unspool_net::error_chain(&error)))
}

fn moved(response: &Response, from: &Url) -> Option<Url> {
    if !response.status().is_redirection() {
        return None;
    }
    let to = response.headers().get(LOCATION)?.to_str().ok()?;
    from.join(to).ok()
}

fn page(response: Response, url: &Url) -> Result<WebPage, String> {
    let status = response.status();
    if !status.is_success() {
        return Err(format!(
            "Request failed with status code {} ({}): {url}",
            status.as_u16(),
            status_text(status.as_u16())
        ));
    }
    let header = response.headers().get(CONTENT_TYPE);
    let kind = header
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or("text/html");
    let kind = kind.to_ascii_lowercase();
    let mut bytes = Vec::new();
    let read = response.take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("cannot fetch {url}: {error}"))?;
    if bytes.len() as u64 > LARGEST {
        let most = crate::tools::read::size(LARGEST);
        return Err(format!(
            "cannot fetch {url}: the page takes more than {most}"
        ));
    }
    let text = text(&bytes, &kind).ok_or(format!(
        "cannot read {url}: {kind} is not text. Use Bash with curl to save it to a file."
    ))?;
    Ok(WebPage {
        text,
        bytes: bytes.len(),
        code: status.as_u16(),
        status: status_text(status.as_u16()),
    })
}

/// What a status is called.
pub fn status_text(code: u16) -> &'static str {
    let status = StatusCode::from_u16(code).ok();
    status.and_then(|it| it.canonical_reason()).unwrap_or("")
}

/// The words of a page; nothing if it has none.
fn text(bytes: &[u8], kind: &str) -> Option<String> {
    let (name, options) = kind.split_once(';').unwrap_or((kind, ""));
    let name = name.trim();
    let words = name.starts_with("text/")
        || ["json", "xml", "javascript", "yaml", "toml", "x-sh"]
            .iter()
            .any(|end| name.ends_with(end));
    if !words {
        return None;
    }
    let charset = options.split(';').find_map(|option| {
        let (name, value) = option.split_once('=')?;
        (name.trim() == "charset").then(|| value.trim().trim_matches('"'))
    });
    let label = charset.unwrap_or("utf-8").as_bytes();
    let encoding = encoding_rs::Encoding::for_label(label).unwrap_or(encoding_rs::UTF_8);
    let (text, _, _) = encoding.decode(bytes);
    match name.contains("html") {
        true => Some(markdown(&text)),
        false => Some(text.into_owned()),
    }
}

fn markdown(html: &str) -> String {
    if depth(html) > DEPTH {
        return stripped(html);
    }
    let skipped = vec![
        "script", "style", "noscript", "svg", "template", "iframe", "head",
    ];
    let converter = HtmlToMarkdown::builder().skip_tags(skipped).build();
    converter.convert(html).unwrap_or_else(|_| stripped(html))
}

/// How deep elements stand in each other, at most.
fn depth(html: &str) -> usize {
    const EMPTY: [&str; 14] = [
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source",
        "track", "wbr", "!",
    ];
    let (mut now, mut most) = (0usize, 0usize);
    for piece in html.split('<').skip(1) {
        let name: String = piece
            .chars()
            .take_while(|char| char.is_ascii_alphanumeric() || matches!(char, '/' | '!'))
            .take(12)
            .collect();
        let name = name.to_ascii_lowercase();
        if name.starts_with('/') {
            now = now.saturating_sub(1);
        } else if !name.is_empty() && !name.starts_with('!') && !EMPTY.contains(&&*name) {
            now += 1;
            most = most.max(now);
        }
    }
    most
}

/// The words between the tags.
fn stripped(html: &str) -> String {
    let mut out = String::new();
    for piece in html.split('<') {
        let words = piece.split_once('>').map_or("", |(_, words)| words);
        if !words.trim().is_empty() {
            out += words.trim();
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    /// Answers each connection with the next of these.
    fn server(answers: Vec<String>) -> (u16, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = std::thread::spawn(move || {
            let mut asked = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                asked.push(lines.next().unwrap().unwrap());
                while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
                // Who has heard enough may hang up.
                let _ = stream.write_all(answer.as_bytes());
            }
            asked
        });
        (port, serving)
    }

    fn answer(head: &str, body: &str) -> String {
        let length = body.len();
        format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
    }

    fn get(port: u16, path: &str) -> Result<WebFetchResult, String> {
        let url = Url::parse(&format!("http://127.0.0.1:{port}{path}")).unwrap();
        fetch(url, AddressRules::ANY)
    }

    #[test]
    fn a_page_becomes_markdown() {
        let html = "<html><head><title>no</title></head><body><h1>Yes</h1><script>no</script><p>a <b>b</b></p></body></html>";
        let (port, serving) = server(vec![answer("200 OK\r\ncontent-type: text/html", html)]);
        let Ok(WebFetchResult::Page(page)) = get(port, "/x") else {
            panic!("no page");
        };
        assert_eq!(page.text.trim(), "# Yes\n\na **b**");
        assert_eq!(
            (page.code, page.status, page.bytes),
            (200, "OK", html.len())
        );
        assert_eq!(serving.join().unwrap(), ["GET /x HTTP/1.1"]);
    }

    #[test]
    fn a_move_within_the_site_is_followed_and_one_to_another_host_is_told() {
        let (port, serving) = server(vec![
            answer("302 Found\r\nlocation: /there", ""),
            answer("301 Moved\r\nlocation: https://other.example/z", ""),
        ]);
        let Ok(WebFetchResult::Moved { to, code }) = get(port, "/here") else {
            panic!("not moved");
        };
        assert_eq!((&*to, code), ("https://other.example/z", 301));
        let (port, serving_file) = server(vec![answer("302 Found\r\nlocation: file:///etc/x", "")]);
        assert!(get(port, "/").unwrap_err().contains("only http and https"));
        serving_file.join().unwrap();
        assert_eq!(
            serving.join().unwrap(),
            ["GET /here HTTP/1.1", "GET /there HTTP/1.1"]
        );
    }

    #[test]
    fn a_page_that_moves_on_and_on_ends() {
        let hop = answer("302 Found\r\nlocation: /again", "");
        let (port, serving) = server(vec![hop; MOVES]);
        assert!(
            get(port, "/")
                .unwrap_err()
                .starts_with("too many redirects")
        );
        serving.join().unwrap();
    }

    #[test]
    fn what_is_too_large_or_no_text_or_an_error_is_told() {
        let large = "x".repeat(LARGEST as usize + 1);
        let (port, serving) = server(vec![
            answer("200 OK\r\ncontent-type: text/plain", &large),
            answer("200 OK\r\ncontent-type: application/zip", "PK"),
            answer("404 Not Found", "gone"),
        ]);
        assert!(get(port, "/").unwrap_err().contains("more than 10MB"));
        assert!(
            get(port, "/")
                .unwrap_err()
                .contains("application/zip is not text")
        );
        assert!(
            get(port, "/")
                .unwrap_err()
                .contains("status code 404 (Not Found)")
        );
        serving.join().unwrap();
    }

    #[test]
    fn old_encodings_are_read() {
        assert_eq!(
            text(b"caf\xe9", "text/plain; charset=ISO-8859-1").as_deref(),
            Some("café")
        );
        assert_eq!(
            text("café".as_bytes(), "text/plain").as_deref(),
            Some("café")
        );
    }

    #[test]
    fn hostile_nesting_keeps_its_words() {
        let html = format!(
            "{}deep{}",
            "<div>".repeat(200_000),
            "</div>".repeat(200_000)
        );
        assert_eq!(markdown(&html).trim(), "deep");
    }
}
