//! Which addresses may be fetched.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use unspool_net::reqwest::Url;

/// What is allowed. Tests speak to this machine without TLS; nobody else does.
#[derive(Clone, Copy, Debug)]
pub struct AddressRules {
    upgrade: bool,
    may: fn(IpAddr) -> bool,
}

impl AddressRules {
    /// Only what everybody can reach, and only over TLS.
    pub const PUBLIC: AddressRules = AddressRules {
        upgrade: true,
        may: is_public,
    };

    #[cfg(test)]
    pub const ANY: AddressRules = AddressRules {
        upgrade: false,
        may: |_| true,
    };

    /// An address as it is fetched, or why it is not.
    pub fn address(self, text: &str) -> Result<Url, String> {
        let text = text.trim();
        let mut url = Url::parse(text)
            .map_err(|error| format!("Invalid URL \"{text}\": {error}. Give the whole address."))?;
        if text.len() > 2_000 {
            return Err("Invalid URL: it is longer than 2000 characters".to_owned());
        }
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(format!(
                "Invalid URL \"{text}\": only http and https can be fetched"
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("Invalid URL: it holds a user name or a password".to_owned());
        }
        if self.upgrade && url.scheme() == "http" && url.set_scheme("https").is_err() {
            return Err(format!("Invalid URL \"{text}\""));
        }
        url.set_fragment(None);
        Ok(url)
    }

    /// Where a host is, if all of that may be spoken to. The connection goes to these addresses
    /// and to no others, whatever the name means a moment later.
    pub fn resolve(self, url: &Url) -> Result<Vec<SocketAddr>, String> {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(443);
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let found = (bare, port).to_socket_addrs();
        let found: Vec<SocketAddr> = found
            .map_err(|error| format!("cannot find {host}: {error}"))?
            .collect();
        match found.iter().find(|address| !(self.may)(address.ip())) {
            Some(address) => Err(format!(
                "{host} is not fetched: {} is an address inside a private network or of this machine. Use Bash if you have to reach it.",
                address.ip()
            )),
            None if found.is_empty() => Err(format!("cannot find {host}")),
            None => Ok(found),
        }
    }
}

/// Whether a page has only moved within its site.
pub fn is_same_site(one: &Url, two: &Url) -> bool {
    let bare = |url: &Url| {
        let host = url.host_str().unwrap_or_default();
        host.strip_prefix("www.").unwrap_or(host).to_owned()
    };
    one.scheme() == two.scheme()
        && one.port_or_known_default() == two.port_or_known_default()
        && bare(one) == bare(two)
}

/// Whether everybody can reach it.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = matches!(
        (a, b, c),
        (0, ..)
            | (100, 64..=127, _)
            | (192, 0, 0)
            | (192, 88, 99)
            | (198, 18..=19, _)
            | (240..=255, ..)
    );
    !(special
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inside) = address.to_ipv4_mapped() {
        return is_public_v4(inside);
    }
    let parts = address.segments();
    let v4 = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // What translators and tunnels make of the older kind.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        // Tunnels, documentation, ranges without a use.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x64, 0xff9b, ..] => false,
        // What is given out to the world so far.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_private_is_public() {
        for private in [
            "127.0.0.1",
            "127.9.9.9",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "100.127.1.1",
            "192.0.0.8",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "::127.0.0.1",
            "fec0::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "::ffff:8.8.8.8",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn names_and_numbers_of_this_machine_are_refused_in_every_spelling() {
        for url in [
            "http://localhost/x",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://[::1]:8080/",
            "http://0/",
            "http://[::ffff:127.0.0.1]/",
        ] {
            let url = AddressRules::PUBLIC.address(url).unwrap();
            let refused = AddressRules::PUBLIC.resolve(&url).unwrap_err();
            assert!(refused.contains("private network"), "{url}: {refused}");
        }
    }

    #[test]
    fn an_address_becomes_one_with_tls_and_without_secrets() {
        let address = |text| AddressRules::PUBLIC.address(text).map(String::from);
        assert_eq!(address("http://a.b/c#d"), Ok("https://a.b/c".into()));
        for bad in ["ftp://a", "file:///etc/passwd", "x", "https://u:p@a.b", ""] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_same_site_is_the_same_host_with_or_without_www() {
        let same = |one: &str, two: &str| {
            is_same_site(&Url::parse(one).unwrap(), &Url::parse(two).unwrap())
        };
        assert!(same("https://a.b/x", "https://www.a.b/y"));
        assert!(!same("https://a.b/x", "https://c.a.b/x"));
        assert!(!same("https://a.b/x", "http://a.b/x"));
        assert!(!same("https://a.b/x", "https://a.b:8443/x"));
        assert!(!same("https://a.b", "https://a.b.evil"));
    }
}
