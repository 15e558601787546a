//! Where traces go: an address, what opens it, and what names it in the ledger.
//!
//! Plain data. Who reads the environment fills it in, and says in [`TargetVariables`] which variables it
//! was made of, so that an error can name what to set.

use std::fmt;
use std::time::Duration;

use crate::ledger::ReceiverKey;

/// Where Langfuse is unless somebody says otherwise.
pub const LANGFUSE: &str = "https://cloud.langfuse.com";

/// Where a collector on this machine listens.
pub const COLLECTOR: &str = "http://localhost:4318";

/// A receiver of traces.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceTarget {
    /// What it is called, for people.
    pub name: &'static str,
    /// The whole address of its traces.
    pub address: String,
    /// Name and password.
    pub login: Option<(String, String)>,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// How long an answer may take.
    pub timeout: Duration,
    /// Whether requests are compressed.
    pub gzip: bool,
    /// Certificates to trust beside those of the system, as PEM.
    pub certificate: Option<Vec<u8>>,
    /// What to name in errors.
    pub names: TargetVariables,
}

/// Which variables a target was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetVariables {
    /// Where the address is from.
    pub address: &'static str,
    /// Where the keys are from.
    pub keys: &'static str,
}

impl TraceTarget {
    /// A project of Langfuse, by its keys.
    pub fn langfuse(base: &str, public: &str, secret: &str, names: TargetVariables) -> TraceTarget {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        TraceTarget {
            name: "Langfuse",
            address: join(base, "api/public/otel/v1/traces"),
            login: Some((public.to_owned(), secret.to_owned())),
            headers: vec![
                header("x-langfuse-sdk-name", "unspool"),
                header("x-langfuse-sdk-version", env!("CARGO_PKG_VERSION")),
                header("x-langfuse-public-key", public),
                // Without it, what was sent is shown some ten minutes later.
                header("x-langfuse-ingestion-version", "4"),
            ],
            timeout: Duration::from_secs(30),
            gzip: true,
            certificate: None,
            names,
        }
    }

    /// Any receiver of OTLP over HTTP, by the whole address of its traces.
    pub fn otlp(
        address: &str,
        headers: Vec<(String, String)>,
        names: TargetVariables,
    ) -> TraceTarget {
        TraceTarget {
            name: "the receiver",
            address: address.trim().to_owned(),
            login: None,
            headers,
            timeout: Duration::from_secs(30),
            gzip: true,
            certificate: None,
            names,
        }
    }

    /// What stands for it in the ledger: its address, and what tells one project there from
    /// another. Never what opens it: for Langfuse, the public key alone.
    pub fn key(&self) -> ReceiverKey {
        let mut hash = blake3::Hasher::new();
        let mut add = |text: &str| {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        add(&self.address);
        match &self.login {
            Some((public, _)) => add(public),
            None => {
                let mut headers: Vec<_> = self.headers.iter().collect();
                headers.sort_unstable();
                for (name, value) in headers {
                    add(&name.to_ascii_lowercase());
                    add(value);
                }
            }
        }
        let mut key = [0; 8];
        key.copy_from_slice(&hash.finalize().as_bytes()[..8]);
        ReceiverKey(key)
    }
}

// Written by hand, so that no log ever holds a key.
impl fmt::Debug for TraceTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// An address below another.
pub fn join(base: &str, path: &str) -> String {
    format!("{}/{path}", base.trim().trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: TargetVariables = TargetVariables {
        address: "LANGFUSE_BASE_URL",
        keys: "LANGFUSE_PUBLIC_KEY",
    };

    #[test]
    fn langfuse_is_spoken_to_below_its_base() {
        let target = TraceTarget::langfuse("https://x.y/ ", "pk", "sk", NAMES);
        assert_eq!(target.address, "https://x.y/api/public/otel/v1/traces");
        assert!(!format!("{target:?}").contains("sk"));
    }

    #[test]
    fn another_project_or_address_is_another_target_and_another_secret_is_not() {
        let key = |base, public, secret| TraceTarget::langfuse(base, public, secret, NAMES).key();
        assert_eq!(key("http://a", "p", "s"), key("http://a/", "p", "t"));
        assert_ne!(key("http://a", "p", "s"), key("http://a", "q", "s"));
        assert_ne!(key("http://a", "p", "s"), key("http://b", "p", "s"));
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let otlp = |headers| TraceTarget::otlp("http://a", headers, NAMES).key();
        let (x, y) = (header("x", "1"), header("y", "1"));
        assert_eq!(otlp(vec![x.clone(), y.clone()]), otlp(vec![y, x.clone()]));
        assert_ne!(otlp(vec![x]), otlp(vec![]));
    }
}
