//! One way to speak HTTP, for all who do: TLS, redirects, reasons, when to come back.
//!
//! Knows nothing about what is asked or sent, and reads no environment.

use std::error::Error;
use std::sync::Once;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::blocking::{Client, ClientBuilder};
use reqwest::header::{HeaderMap, HeaderName, RETRY_AFTER};
use reqwest::redirect::Policy;

pub use reqwest;

/// How we name ourselves to others.
const NAME: &str = concat!("unspool/", env!("CARGO_PKG_VERSION"));

fn provide() {
    static PROVIDER: Once = Once::new();
    // Fails only if somebody installed one before, which is as good.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}

/// A client that does not block, for answers that come bit by bit; to be set up further.
pub fn streaming() -> reqwest::ClientBuilder {
    provide();
    reqwest::Client::builder()
        .user_agent(NAME)
        .redirect(Policy::none())
}

/// A client to be set up further.
pub fn client() -> ClientBuilder {
    provide();
    Client::builder()
        .user_agent(NAME)
        // A key goes where it was sent, and nowhere else.
        .redirect(Policy::none())
}

/// Whether a text is an address that can be spoken to.
pub fn is_address(text: &str) -> bool {
    let url = reqwest::Url::parse(text);
    url.is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// How long the other side asks to be left alone: so many seconds, or until a time.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let header = |name| headers.get(name)?.to_str().ok();
    let milliseconds = header(HeaderName::from_static("retry-after-ms"));
    if let Some(milliseconds) = milliseconds.and_then(|it| it.trim().parse().ok()) {
        return Some(Duration::from_millis(milliseconds));
    }
    let text = header(RETRY_AFTER)?.trim();
    let seconds = text.parse::<f64>().ok().map(|it| it.clamp(0.0, 1e6));
    seconds
        .map(Duration::from_secs_f64)
        .or_else(|| until(text, Timestamp::now()))
}

fn until(text: &str, now: Timestamp) -> Option<Duration> {
    let then = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let seconds = then.as_second() - now.as_second();
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// An error with all that led to it: the first alone says little.
pub fn error_chain(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        words += &format!(": {cause}");
        next = cause.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_come_back_may_be_a_date() {
        let now: Timestamp = "2026-01-05T10:00:00Z".parse().unwrap();
        let wait = |text: &str| until(text, now).map(|wait| wait.as_secs());
        assert_eq!(wait("Mon, 05 Jan 2026 10:00:07 GMT"), Some(7));
        assert_eq!(wait("Mon, 05 Jan 2026 09:00:00 GMT"), Some(0));
        assert_eq!(wait("soon"), None);
    }

    #[test]
    fn only_http_can_be_spoken() {
        for good in ["http://x", "https://x.y:1/z"] {
            assert!(is_address(good), "{good}");
        }
        for bad in ["", "ftp://x", "not an address", "x.y", "http://"] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
