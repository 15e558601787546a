//! The Messages API.

use std::time::Duration;

use serde_json::{Value, json};
use unspool_net::causes;
use unspool_net::reqwest::StatusCode;
use unspool_net::reqwest::blocking::Client;
use unspool_net::reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::{Provider, Question, Refusal, Said, Stopped};

/// What gives access, and which variable it is from.
#[derive(Clone)]
pub enum Access {
    /// `ANTHROPIC_API_KEY`.
    Key(String),
    /// `ANTHROPIC_AUTH_TOKEN`.
    Token(String),
}

// Written by hand, so that no log ever holds a key.
impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.variable())
    }
}

impl Access {
    /// What the variables of the environment give; the key goes before the token.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Access> {
        let set = |name: &str| {
            let value = variable(name)?.trim().to_owned();
            Some(value).filter(|value| !value.is_empty())
        };
        let key = set(KEY).map(Access::Key);
        key.or_else(|| set(TOKEN).map(Access::Token))
    }

    /// The variable it is from.
    pub fn variable(&self) -> &'static str {
        match self {
            Access::Key(_) => KEY,
            Access::Token(_) => TOKEN,
        }
    }

    /// The header that carries it.
    pub fn header(&self) -> (HeaderName, String) {
        match self {
            Access::Key(key) => (HeaderName::from_static("x-api-key"), key.clone()),
            Access::Token(token) => (AUTHORIZATION, format!("Bearer {token}")),
        }
    }
}

const KEY: &str = "ANTHROPIC_API_KEY";
const TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";
const BASE: &str = "ANTHROPIC_BASE_URL";
/// The version of the API that we speak.
pub const VERSION: &str = "2023-06-01";

/// A model behind the Messages API.
#[derive(Clone, Debug)]
pub struct Api {
    client: Client,
    address: String,
    model: String,
    variable: &'static str,
}

impl Api {
    /// Where the API is unless somebody says otherwise.
    pub const BASE: &str = "https://api.anthropic.com";

    /// A model at an address such as [`Api::BASE`].
    pub fn new(base: &str, access: &Access, model: &str) -> Result<Api, Stopped> {
        let (name, value) = access.header();
        let mut value = HeaderValue::from_str(&value).map_err(|_| Stopped {
            why: format!("{} holds characters that no key has", access.variable()),
            hint: "set it again, without quotes and line breaks".to_owned(),
        })?;
        value.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(name, value);
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        let client = unspool_net::client().default_headers(headers).build();
        let client = client.map_err(|error| Stopped {
            why: format!("no connection can be made: {}", causes(&error)),
            hint: "see whether this system has its certificates".to_owned(),
        })?;
        let address = format!("{}/v1/messages", base.trim().trim_end_matches('/'));
        if !unspool_net::is_address(&address) {
            return Err(bad_base(base));
        }
        Ok(Api {
            client,
            address,
            model: model.to_owned(),
            variable: access.variable(),
        })
    }

    fn refused(&self, status: StatusCode, why: String, after: Option<Duration>) -> Refusal {
        let code = status.as_u16();
        let variable = self.variable;
        let stop = |why: String, hint: String| Refusal::Stop(Stopped { why, hint });
        match code {
            401 | 403 => stop(
                format!("the API does not accept {variable} ({code}): {why}"),
                format!(
                    "set {variable} to a key that is valid, or name a command with `--with CMD`"
                ),
            ),
            404 => stop(
                format!("the API does not know `{}` ({code}): {why}", self.model),
                format!("name another model with `--model`, and see whether {BASE} is right"),
            ),
            413 => Refusal::Never(format!("too large for the API: {why}")),
            408 | 409 | 425 | 429 | 500.. => Refusal::Later {
                why: format!("the API answered {code}: {why}"),
                after,
            },
            400..500 => stop(
                format!("the API refused the request ({code}): {why}"),
                format!("see whether {variable} may use `{}`", self.model),
            ),
            _ => stop(
                format!("the API answered {code}"),
                format!("see whether {BASE} is right"),
            ),
        }
    }
}

impl Provider for Api {
    fn ask(&self, question: &Question, timeout: Duration) -> Result<Said, Refusal> {
        let body = json!({
            "model": self.model,
            "max_tokens": question.limit,
            "messages": [{"role": "user", "content": question.text}],
        });
        let sent = self.client.post(&self.address).timeout(timeout).json(&body);
        let failed = |error: unspool_net::reqwest::Error| Refusal::Later {
            why: match error.is_timeout() {
                true => format!("no answer within {:.0} s", timeout.as_secs_f64()),
                false => causes(&error.without_url()),
            },
            after: None,
        };
        let response = sent.send().map_err(failed)?;
        let (status, after) = (response.status(), unspool_net::after(response.headers()));
        let bytes = response.bytes().map_err(failed)?;
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if status != StatusCode::OK {
            let why = body["error"]["message"]
                .as_str()
                .unwrap_or("no reason given");
            return Err(self.refused(status, why.to_owned(), after));
        }
        read(&body).ok_or_else(|| Refusal::Later {
            why: "the API answered something that is no message".to_owned(),
            after: None,
        })
    }
}

fn bad_base(base: &str) -> Stopped {
    Stopped {
        why: format!("`{base}` is no address"),
        hint: format!("set {BASE} to one such as {}, or leave it out", Api::BASE),
    }
}

/// The words of a message, and what they took.
fn read(message: &Value) -> Option<Said> {
    let blocks = message["content"].as_array()?;
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    let usage = &message["usage"];
    let count = |name: &str| usage[name].as_u64().unwrap_or(0);
    Some(Said {
        text: texts.collect(),
        input: count("input_tokens")
            + count("cache_creation_input_tokens")
            + count("cache_read_input_tokens"),
        output: count("output_tokens"),
    })
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
            Access::from_variables(variable).map(|access| format!("{access:?}"))
        };
        assert_eq!(access("k", "t").as_deref(), Some("ANTHROPIC_API_KEY"));
        assert_eq!(access(" ", "t").as_deref(), Some("ANTHROPIC_AUTH_TOKEN"));
        assert_eq!(access("", ""), None);
    }

    #[test]
    fn an_address_that_is_none_is_named() {
        let access = Access::Key("k".into());
        for base in ["", "ftp://x", "not an address"] {
            let error = Api::new(base, &access, "m").unwrap_err();
            assert!(error.why.contains(&format!("`{base}`")), "{}", error.why);
        }
        let error = Api::new(Api::BASE, &Access::Token("a\nb".into()), "m").unwrap_err();
        assert!(error.why.contains("ANTHROPIC_AUTH_TOKEN"), "{}", error.why);
    }
}
