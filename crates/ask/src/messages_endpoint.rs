//! Where the Messages API is, who may ask it, and what its refusals say: the same for one question
//! and for a conversation that is streamed.

use serde_json::Value;
use unspool_net::reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};

/// Where the API is unless somebody says otherwise.
pub const ANTHROPIC_API: &str = "https://api.anthropic.com";
/// The version of the API that we speak.
const VERSION: &str = "2023-06-01";
const KEY: &str = "ANTHROPIC_API_KEY";
const TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";
/// The variable that says where the API is.
pub(crate) const BASE: &str = "ANTHROPIC_BASE_URL";

/// What gives access, and which variable it is from.
#[derive(Clone)]
pub enum ApiCredential {
    /// `ANTHROPIC_API_KEY`.
    Key(String),
    /// `ANTHROPIC_AUTH_TOKEN`.
    Token(String),
}

// Written by hand, so that no log ever holds a key.
impl std::fmt::Debug for ApiCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.variable())
    }
}

impl ApiCredential {
    /// What the variables of the environment give; the key goes before the token.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<ApiCredential> {
        let set = |name: &str| {
            let value = variable(name)?.trim().to_owned();
            Some(value).filter(|value| !value.is_empty())
        };
        let key = set(KEY).map(ApiCredential::Key);
        key.or_else(|| set(TOKEN).map(ApiCredential::Token))
    }

    /// The variable it is from.
    pub fn variable(&self) -> &'static str {
        match self {
            ApiCredential::Key(_) => KEY,
            ApiCredential::Token(_) => TOKEN,
        }
    }

    fn header(&self) -> (HeaderName, String) {
        match self {
            ApiCredential::Key(key) => (HeaderName::from_static("x-api-key"), key.clone()),
            ApiCredential::Token(token) => (AUTHORIZATION, format!("Bearer {token}")),
        }
    }
}

/// The address of the Messages API and the headers of every request to it.
#[derive(Clone, Debug)]
pub struct MessagesEndpoint {
    /// Where messages are posted.
    pub address: String,
    /// The key, the version and the kind of content.
    pub headers: HeaderMap,
}

/// Why nothing can be asked there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointError {
    /// The base is no address.
    Address(String),
    /// What this variable gives cannot be sent.
    Key(&'static str),
}

impl std::fmt::Display for EndpointError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EndpointError::Address(base) => write!(f, "`{base}` is not a URL ({BASE})"),
            EndpointError::Key(variable) => {
                write!(f, "{variable} contains invalid characters")
            }
        }
    }
}

impl EndpointError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            EndpointError::Address(_) => {
                format!("set {BASE} to a URL such as {ANTHROPIC_API}, or unset it")
            }
            EndpointError::Key(_) => "set it without quotes and line breaks".to_owned(),
        }
    }
}

impl MessagesEndpoint {
    /// The API at an address such as [`ANTHROPIC_API`].
    pub fn new(base: &str, access: &ApiCredential) -> Result<MessagesEndpoint, EndpointError> {
        let address = format!("{}/v1/messages", base.trim().trim_end_matches('/'));
        if !unspool_net::is_address(&address) {
            return Err(EndpointError::Address(base.to_owned()));
        }
        let (name, value) = access.header();
        let value = HeaderValue::from_str(&value);
        let mut value = value.map_err(|_| EndpointError::Key(access.variable()))?;
        value.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(name, value);
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(MessagesEndpoint { address, headers })
    }
}

/// What the body of a refusal says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiErrorBody {
    /// The type of error, such as `overloaded_error`; empty if it names none.
    pub kind: String,
    /// What it says; `None` if it is no error of the API's, such as the page of a proxy.
    pub message: Option<String>,
}

impl ApiErrorBody {
    /// Reads it, whatever it is.
    pub fn read(body: &[u8]) -> ApiErrorBody {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |field: &str| body["error"][field].as_str().map(str::to_owned);
        ApiErrorBody {
            kind: text("type").unwrap_or_default(),
            message: text("message"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_before_a_token_and_empty_ones_do_not_count() {
        let access = |key: &'static str, token: &'static str| {
            let variable = move |name: &str| match name {
                "ANTHROPIC_API_KEY" => Some(key.to_owned()),
                "ANTHROPIC_AUTH_TOKEN" => Some(token.to_owned()),
                _ => None,
            };
            ApiCredential::from_variables(variable).map(|access| format!("{access:?}"))
        };
        assert_eq!(access("k", "t").as_deref(), Some("ANTHROPIC_API_KEY"));
        assert_eq!(access(" ", "t").as_deref(), Some("ANTHROPIC_AUTH_TOKEN"));
        assert_eq!(access("", ""), None);
    }

    #[test]
    fn an_address_that_is_none_and_a_key_that_is_none_are_named() {
        let access = ApiCredential::Key("k".into());
        for base in ["", "ftp://x", "not an address"] {
            let error = MessagesEndpoint::new(base, &access)
                .unwrap_err()
                .to_string();
            assert!(error.contains(&format!("`{base}`")), "{error}");
        }
        let access = ApiCredential::Token("a\nb".into());
        let error = MessagesEndpoint::new(ANTHROPIC_API, &access).unwrap_err();
        assert_eq!(error, EndpointError::Key("ANTHROPIC_AUTH_TOKEN"));
    }

    #[test]
    fn what_a_refusal_says_is_read_and_a_page_of_a_proxy_says_nothing() {
        let body = br#"{"type":"error","error":{"type":"overloaded_error","message":"later"}}"#;
        let read = ApiErrorBody::read(body);
        assert_eq!(
            (&*read.kind, read.message.as_deref()),
            ("overloaded_error", Some("later"))
        );
        assert_eq!(ApiErrorBody::read(b"<html>"), ApiErrorBody::default());
    }
}
