//! Who may ask at all: decided from the head of a request, before any work.
//!
//! A page of a stranger can make a browser send requests here, and can make its own name mean
//! this machine. So the name in `Host` must be one of ours, whoever asks; a page that asks must
//! be our own (`Origin`); and all data needs the token, or the access key that a login gave for it,
//! in a header. Cookies count for nothing: a browser sends those of one port to every other.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, UPGRADE};
use axum::http::{HeaderMap, HeaderName, Uri, header};

use crate::credentials::ServerCredentials;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRefusal {
    /// It was meant for another machine, or its name was made to mean this one.
    Host,
    /// A page of somebody else asks.
    Origin,
    /// It wants to speak something other than HTTP.
    Upgrade,
    /// Nothing proves that it may ask.
    Token,
}

impl RequestRefusal {
    /// In words, with what to do.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            RequestRefusal::Host => (
                "unknown host name",
                "use the address that `unspool serve` printed",
            ),
            RequestRefusal::Origin => (
                "requests from other origins are not allowed",
                "open the address that `unspool serve` printed",
            ),
            RequestRefusal::Upgrade => ("protocol upgrades are not supported", "use plain HTTP"),
            RequestRefusal::Token => (
                "the token is missing or wrong",
                "open the link that `unspool serve` printed, or send `Authorization: Bearer TOKEN`",
            ),
        }
    }
}

/// The names of this machine and the scheme it speaks.
pub struct RequestGuard {
    scheme: &'static str,
    port: u16,
    names: Vec<String>,
}

static FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

impl RequestGuard {
    /// A guard; `names` are further names of this machine.
    pub fn new(scheme: &'static str, port: u16, names: &[String]) -> RequestGuard {
        RequestGuard {
            scheme,
            port,
            names: names.iter().map(|name| name.to_ascii_lowercase()).collect(),
        }
    }

    /// Whether a request may be looked at. `local` is the address it came in at.
    pub fn lets(
        &self,
        headers: &HeaderMap,
        uri: &Uri,
        local: SocketAddr,
    ) -> Result<(), RequestRefusal> {
        let host = only(headers, &HOST).ok_or(RequestRefusal::Host)?;
        let named = uri.authority().map(|authority| authority.as_str());
        if !self.is_ours(host, local) || named.is_some_and(|named| named != host) {
            return Err(RequestRefusal::Host);
        }
        if headers.contains_key(ORIGIN) {
            let origin = only(headers, &ORIGIN).and_then(|text| {
                let (scheme, host) = text.split_once("://")?;
                (scheme == self.scheme).then_some(host)
            });
            if !origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host)) {
                return Err(RequestRefusal::Origin);
            }
        }
        if headers.contains_key(UPGRADE) {
            return Err(RequestRefusal::Upgrade);
        }
        Ok(())
    }

    /// Whether a request may have data: it shows the token or an access key, in a header that no
    /// page of a stranger can send.
    pub fn proven(
        &self,
        keys: &ServerCredentials,
        headers: &HeaderMap,
    ) -> Result<(), RequestRefusal> {
        self.is_own_page(headers)?;
        match bearer(headers).is_some_and(|token| keys.opens(token)) {
            true => Ok(()),
            false => Err(RequestRefusal::Token),
        }
    }

    /// Whether a browser says that another page asks.
    pub fn is_own_page(&self, headers: &HeaderMap) -> Result<(), RequestRefusal> {
        let mut sites = headers.get_all(&FETCH_SITE).iter();
        match sites.all(|site| site == "same-origin" || site == "none") {
            true => Ok(()),
            false => Err(RequestRefusal::Origin),
        }
    }

    /// Whether this is a name of ours with our port. An address in digits must be the one that
    /// the request came in at: it cannot have been made to mean us by anybody's DNS.
    fn is_ours(&self, host: &str, local: SocketAddr) -> bool {
        let usual = if self.scheme == "https" { 443 } else { 80 };
        let (name, port) = match split(host) {
            Some((name, Some(port))) => (name, port),
            Some((name, None)) => (name, usual),
            None => return false,
        };
        if port != self.port {
            return false;
        }
        if name.eq_ignore_ascii_case("localhost") {
            return local.ip().to_canonical().is_loopback();
        }
        let digits = match name.strip_prefix('[') {
            Some(rest) => rest
                .strip_suffix(']')
                .and_then(|inner| inner.parse().ok())
                .map(IpAddr::V6),
            None => name.parse().ok().map(IpAddr::V4),
        };
        match digits {
            Some(address) => address.to_canonical() == local.ip().to_canonical(),
            None => self.names.iter().any(|own| name.eq_ignore_ascii_case(own)),
        }
    }
}

/// A name and a port; `None` if it is neither.
fn split(host: &str) -> Option<(&str, Option<u16>)> {
    let end = match host.starts_with('[') {
        true => host.find(']')? + 1,
        false => host.find(':').unwrap_or(host.len()),
    };
    let (name, rest) = host.split_at(end);
    if name.is_empty() {
        return None;
    }
    if rest.is_empty() {
        return Some((name, None));
    }
    let digits = rest.strip_prefix(':')?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let port = digits.parse().ok().filter(|_| plain)?;
    Some((name, Some(port)))
}

/// A header that must be there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut all = headers.get_all(name).iter();
    let one = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(one)
}

/// The token in a header.
pub fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let text = only(headers, &AUTHORIZATION)?;
    let (scheme, token) = text.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim().as_bytes())
}

/// What every answer says about how it may be used.
pub const ALWAYS: [(HeaderName, &str); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), microphone=(), geolocation=()",
    ),
];

/// What the page may do: nothing but what we serve.
pub const PAGE: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; manifest-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// What data may do: nothing.
pub const DATA: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    fn lets(pairs: &[(&str, &str)], local: &str) -> Result<(), RequestRefusal> {
        let guard = RequestGuard::new("http", 7717, &["box.example".to_owned()]);
        let local = local.parse().unwrap();
        guard.lets(&headers(pairs), &Uri::from_static("/api/sessions"), local)
    }

    #[test]
    fn only_our_own_names_with_our_port_are_answered() {
        let four = "127.0.0.1:7717";
        for good in [
            "127.0.0.1:7717",
            "localhost:7717",
            "LOCALHOST:7717",
            "box.example:7717",
        ] {
            assert_eq!(lets(&[("host", good)], four), Ok(()), "{good}");
        }
        assert_eq!(lets(&[("host", "[::1]:7717")], "[::1]:7717"), Ok(()));
        for bad in [
            "evil.com",
            "evil.com:7717",
            "127.0.0.1.evil.com:7717",
            "localhost.:7717",
            "localhost.evil.com:7717",
            "127.0.0.1",
            "localhost",
            "127.0.0.1:7718",
            "127.0.0.1:",
            "127.0.0.1:+7717",
            "127.0.0.1:07717x",
            "127.1:7717",
            "0x7f000001:7717",
            "2130706433:7717",
            "[::1]",
            "[::1]:7717",
            "[::ffff:127.0.0.2]:7717",
            "0.0.0.0:7717",
            "user@127.0.0.1:7717",
            "127.0.0.1:7717@evil.com",
            "",
            ":7717",
        ] {
            assert_eq!(
                lets(&[("host", bad)], four),
                Err(RequestRefusal::Host),
                "{bad}"
            );
        }
        assert_eq!(lets(&[], four), Err(RequestRefusal::Host));
        let twice = [("host", "127.0.0.1:7717"), ("host", "127.0.0.1:7717")];
        assert_eq!(lets(&twice, four), Err(RequestRefusal::Host));
    }

    #[test]
    fn a_request_that_names_another_machine_in_its_first_line_is_refused() {
        let guard = RequestGuard::new("http", 7717, &[]);
        let headers = headers(&[("host", "127.0.0.1:7717")]);
        let local = "127.0.0.1:7717".parse().unwrap();
        let uri = Uri::from_static("http://evil.com/api");
        assert_eq!(guard.lets(&headers, &uri, local), Err(RequestRefusal::Host));
        let uri = Uri::from_static("http://127.0.0.1:7717/api");
        assert_eq!(guard.lets(&headers, &uri, local), Ok(()));
    }

    #[test]
    fn only_our_own_page_may_ask() {
        let ask = |origin: &str| {
            lets(
                &[("host", "127.0.0.1:7717"), ("origin", origin)],
                "127.0.0.1:7717",
            )
        };
        assert_eq!(ask("http://127.0.0.1:7717"), Ok(()));
        for bad in [
            "null",
            "",
            "http://evil.com",
            "https://127.0.0.1:7717",
            "http://127.0.0.1:7718",
            "http://127.0.0.1",
            "http://localhost:7717",
            "http://127.0.0.1:7717.evil.com",
            "file://",
        ] {
            assert_eq!(ask(bad), Err(RequestRefusal::Origin), "{bad}");
        }
        let upgrade = [("host", "127.0.0.1:7717"), ("upgrade", "websocket")];
        assert_eq!(
            lets(&upgrade, "127.0.0.1:7717"),
            Err(RequestRefusal::Upgrade)
        );
    }

    #[test]
    fn data_needs_the_token_or_an_access_key_in_a_header() {
        let guard = RequestGuard::new("http", 7717, &[]);
        let keys = ServerCredentials::new().unwrap();
        let here = IpAddr::from([127, 0, 0, 1]);
        let login = keys.login(keys.token().as_bytes(), here, || false);
        let crate::credentials::LoginOutcome::Access(key) = login.unwrap() else {
            panic!("no key");
        };
        let get = |pairs: &[(&str, &str)]| guard.proven(&keys, &headers(pairs));
        let token = format!("Bearer {}", keys.token());
        let access = format!("Bearer {key}");
        assert_eq!(get(&[("authorization", &token)]), Ok(()));
        assert_eq!(get(&[("authorization", &access)]), Ok(()));
        assert_eq!(get(&[]), Err(RequestRefusal::Token));
        assert_eq!(
            get(&[("authorization", keys.token())]),
            Err(RequestRefusal::Token)
        );
        assert_eq!(
            get(&[("authorization", "Bearer ")]),
            Err(RequestRefusal::Token)
        );
        let twice = [("authorization", token.as_str()), ("authorization", &token)];
        assert_eq!(get(&twice), Err(RequestRefusal::Token));
        for value in [keys.token(), key.as_str()] {
            for name in [
                "unspool-7717",
                "token",
                "unspool",
                "session",
                "authorization",
            ] {
                let cookie = format!("a=b; {name}={value}; c=d");
                assert_eq!(
                    get(&[("cookie", &cookie)]),
                    Err(RequestRefusal::Token),
                    "{name}"
                );
            }
        }
        for site in ["cross-site", "same-site", ""] {
            let cross = [("authorization", token.as_str()), ("sec-fetch-site", site)];
            assert_eq!(get(&cross), Err(RequestRefusal::Origin), "{site}");
        }
    }
}
