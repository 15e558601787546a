//! One question to the Messages API.

use std::time::Duration;

use serde_json::{Value, json};
use unspool_net::error_chain;
use unspool_net::reqwest::StatusCode;
use unspool_net::reqwest::blocking::Client;

use crate::messages_endpoint::{ApiCredential, ApiErrorBody, BASE, MessagesEndpoint};
use crate::{AnswerProvider, AskError, AskStop, ModelAnswer, ModelQuestion};

/// A model behind the Messages API.
#[derive(Clone, Debug)]
pub struct MessagesApi {
    client: Client,
    address: String,
    model: String,
    variable: &'static str,
}

impl MessagesApi {
    /// A model at an address such as [`ANTHROPIC_API`](crate::ANTHROPIC_API).
    pub fn new(base: &str, access: &ApiCredential, model: &str) -> Result<MessagesApi, AskStop> {
        let endpoint = MessagesEndpoint::new(base, access).map_err(|error| AskStop {
            why: error.to_string(),
            hint: error.hint(),
        })?;
        let client = unspool_net::client().default_headers(endpoint.headers);
        let client = client.build().map_err(|error| AskStop {
            why: format!("cannot create the HTTP client: {}", error_chain(&error)),
            hint: "check this system's CA certificates".to_owned(),
        })?;
        Ok(MessagesApi {
            client,
            address: endpoint.address,
            model: model.to_owned(),
            variable: access.variable(),
        })
    }

    fn refused(&self, status: StatusCode, why: String, after: Option<Duration>) -> AskError {
        let code = status.as_u16();
        let variable = self.variable;
        let stop = |why: String, hint: String| AskError::Stop(AskStop { why, hint });
        match code {
            401 | 403 => stop(
                format!("the API rejected {variable} ({code}): {why}"),
                format!("set {variable} to a valid key, or use a command with `--with CMD`"),
            ),
            404 => stop(
                format!("the API does not know `{}` ({code}): {why}", self.model),
                format!("choose another model with `--model`, and check {BASE}"),
            ),
            413 => AskError::Never(format!("too large for the API: {why}")),
            408 | 409 | 425 | 429 | 500.. => AskError::Later {
                why: format!("the API answered {code}: {why}"),
                after,
            },
            400..500 => stop(
                format!("the API rejected the request ({code}): {why}"),
                format!("check that {variable} has access to `{}`", self.model),
            ),
            _ => stop(format!("the API answered {code}"), format!("check {BASE}")),
        }
    }
}

impl AnswerProvider for MessagesApi {
    fn ask(&self, question: &ModelQuestion, timeout: Duration) -> Result<ModelAnswer, AskError> {
        let body = json!({
            "model": self.model,
            "max_tokens": question.limit,
            "messages": [{"role": "user", "content": question.text}],
        });
        let sent = self.client.post(&self.address).timeout(timeout).json(&body);
        let failed = |error: unspool_net::reqwest::Error| AskError::Later {
            why: match error.is_timeout() {
                true => format!("timed out after {:.0} s", timeout.as_secs_f64()),
                false => error_chain(&error.without_url()),
            },
            after: None,
        };
        let response = sent.send().map_err(failed)?;
        let (status, after) = (
            response.status(),
            unspool_net::retry_after(response.headers()),
        );
        let bytes = response.bytes().map_err(failed)?;
        if status != StatusCode::OK {
            let why = ApiErrorBody::read(&bytes).message;
            let why = why.unwrap_or_else(|| "no reason given".to_owned());
            return Err(self.refused(status, why, after));
        }
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        read(&body).ok_or_else(|| AskError::Later {
            why: "the API response is not a message".to_owned(),
            after: None,
        })
    }
}

/// The words of a message, and what they took.
fn read(message: &Value) -> Option<ModelAnswer> {
    let blocks = message["content"].as_array()?;
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    let usage = &message["usage"];
    let count = |name: &str| usage[name].as_u64().unwrap_or(0);
    Some(ModelAnswer {
        text: texts.collect(),
        input: count("input_tokens")
            + count("cache_creation_input_tokens")
            + count("cache_read_input_tokens"),
        output: count("output_tokens"),
    })
}
