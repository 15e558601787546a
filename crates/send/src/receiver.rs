//! One request and what its answer means.

use std::io::{Read, Write};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use serde_json::Value;
use unspool_net::reqwest::blocking::{Client, Response};
use unspool_net::reqwest::header::{
    CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
};
use unspool_net::reqwest::{self, Certificate};
use unspool_net::{error_chain, is_address};

use crate::target::TraceTarget;

/// Why nothing more need be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryStop {
    /// What went wrong.
    pub why: String,
    /// What to do about it.
    pub hint: String,
}

/// What a receiver says to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverAnswer {
    /// It has it, without so many spans if it says so.
    Taken(Option<LostSpans>),
    /// The request is too large.
    TooLarge(String),
    /// Something in it is wrong.
    Refused(String),
    /// It may work later, not before this time has passed if one is given.
    Later {
        /// What went wrong.
        why: String,
        /// How long to wait.
        after: Option<Duration>,
    },
    /// It will not work.
    Stop(DeliveryStop),
}

/// Spans that a receiver did not take, out of a request that it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostSpans {
    /// How many.
    pub spans: u64,
    /// What it says about them.
    pub why: String,
}

/// Somebody who takes requests.
pub trait TraceReceiver: Sync {
    /// Sends one request, as protobuf, and waits for the answer; with how many bytes went out.
    fn post(&self, body: &[u8]) -> (ReceiverAnswer, u64);
}

/// A receiver behind HTTP.
#[derive(Clone, Debug)]
pub struct HttpReceiver {
    client: Client,
    target: TraceTarget,
}

/// Nobody answers with more than this, and nobody has to be read for longer.
const MOST: u64 = 1 << 20;

/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

impl HttpReceiver {
    /// Makes ready to send. Nothing is sent yet.
    pub fn new(target: TraceTarget) -> Result<HttpReceiver, DeliveryStop> {
        if !is_address(&target.address) {
            return Err(DeliveryStop {
                why: format!("`{}` is not a URL", address_without_login(&target.address)),
                hint: format!(
                    "set {} to a URL such as `https://host`, or unset it",
                    target.names.address
                ),
            });
        }
        let bad = |name: &str| DeliveryStop {
            why: format!("the header `{name}` is invalid"),
            hint: format!(
                "check {} for line breaks and special characters",
                target.names.keys
            ),
        };
        let mut headers = HeaderMap::new();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-protobuf"),
        );
        for (name, value) in &target.headers {
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad(name))?;
            let mut value = HeaderValue::from_str(value).map_err(|_| bad(name))?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        if target.gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let mut builder = unspool_net::client()
            .default_headers(headers)
            .timeout(target.timeout)
            .connect_timeout(CONNECT.min(target.timeout));
        if let Some(pem) = &target.certificate {
            let certificates = Certificate::from_pem_bundle(pem).map_err(|error| DeliveryStop {
                why: format!("cannot read the certificate: {}", error_chain(&error)),
                hint: "set OTEL_EXPORTER_OTLP_CERTIFICATE to a PEM file".to_owned(),
            })?;
            builder = builder.tls_certs_merge(certificates);
        }
        let client = builder.build().map_err(|error| DeliveryStop {
            why: format!("cannot create the HTTP client: {}", error_chain(&error)),
            hint: "check this system's CA certificates".to_owned(),
        })?;
        Ok(HttpReceiver { client, target })
    }

    fn failed(&self, error: reqwest::Error) -> ReceiverAnswer {
        let is_timeout = error.is_timeout();
        let why = error_chain(&error.without_url());
        let TraceTarget { address, names, .. } = &self.target;
        let place = host(address);
        let stop = |why: String, hint: String| ReceiverAnswer::Stop(DeliveryStop { why, hint });
        let has = |words: &[&str]| words.iter().any(|word| why.contains(word));
        if is_timeout {
            let seconds = self.target.timeout.as_secs_f64();
            return ReceiverAnswer::Later {
                why: format!("{place} timed out after {seconds:.0} s"),
                after: None,
            };
        }
        if has(&["dns error", "failed to lookup", "name resolution"]) {
            return stop(
                format!("cannot resolve host `{place}`: {why}"),
                format!("check {} and the network connection", names.address),
            );
        }
        if has(&[
            "certificate",
            "UnknownIssuer",
            "TLS",
            "tls",
            "HandshakeFailure",
            "InvalidContentType",
        ]) {
            return stop(
                format!("TLS error with {place}: {why}"),
                format!(
                    "check whether {} should begin with `http://` or `https://`; for a private CA set OTEL_EXPORTER_OTLP_CERTIFICATE to its file",
                    names.address
                ),
            );
        }
        ReceiverAnswer::Later {
            why: format!("cannot reach {place} ({}): {why}", names.address),
            after: None,
        }
    }

    fn answered(&self, response: Response) -> ReceiverAnswer {
        let code = response.status().as_u16();
        let after = unspool_net::retry_after(response.headers());
        let header = |name: HeaderName| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        let moved = header(LOCATION);
        let kind = header(CONTENT_TYPE).unwrap_or_default();
        let mut body = Vec::new();
        if let Err(error) = response.take(MOST).read_to_end(&mut body) {
            // It may have been taken or not; under the same ids it can be sent again.
            return ReceiverAnswer::Later {
                why: format!("the response was cut off: {error}"),
                after,
            };
        }
        self.judge(code, &kind, moved.as_deref(), &body, after)
    }

    /// What an answer means.
    fn judge(
        &self,
        code: u16,
        kind: &str,
        moved: Option<&str>,
        body: &[u8],
        after: Option<Duration>,
    ) -> ReceiverAnswer {
        let TraceTarget { name, names, .. } = &self.target;
        let address = &address_without_login(&self.target.address);
        let stop = |why: String, hint: String| ReceiverAnswer::Stop(DeliveryStop { why, hint });
        let no_receiver = || {
            stop(
                format!("{address} does not accept traces: it answered {code} with a web page"),
                format!("correct the endpoint in {}", names.address),
            )
        };
        let reason = reason(kind, body);
        match code {
            200..300 if kind.starts_with("text/html") => no_receiver(),
            200..300 => ReceiverAnswer::Taken(lost(kind, body)),
            300..400 => stop(
                format!("{address} has moved to {}", moved.unwrap_or("another address")),
                format!("set {} to the new address", names.address),
            ),
            401 | 403 => stop(
                format!("{name} rejected the keys ({code}){reason}"),
                format!("set {} to the keys of the project at {}", names.keys, host(address)),
            ),
            404 | 405 | 410 => stop(
                format!("{address} does not accept traces ({code}){reason}"),
                format!(
                    "correct the endpoint in {}; Langfuse accepts OTLP traces since 3.22",
                    names.address
                ),
            ),
            413 => ReceiverAnswer::TooLarge(format!("too large{reason}")),
            400 | 422 => ReceiverAnswer::Refused(format!("{name} answered {code}{reason}")),
            408 | 409 | 425 | 429 | 500.. => ReceiverAnswer::Later {
                why: format!("{name} answered {code}{reason}"),
                after,
            },
            415 => stop(
                format!("{name} does not support the request's format (415){reason}"),
                "set OTEL_EXPORTER_OTLP_COMPRESSION to `none`, and check that it accepts OTLP as protobuf".to_owned(),
            ),
            _ => stop(
                format!("{name} rejected the request ({code}){reason}"),
                format!("check {} and {}", names.address, names.keys),
            ),
        }
    }
}

impl TraceReceiver for HttpReceiver {
    fn post(&self, body: &[u8]) -> (ReceiverAnswer, u64) {
        let body = match self.target.gzip.then(|| gzip(body)) {
            Some(Ok(small)) => small,
            // Writing to memory does not fail; if it did, nothing was sent.
            Some(Err(error)) => {
                let why = format!("cannot compress: {error}");
                let hint = "set OTEL_EXPORTER_OTLP_COMPRESSION to `none`".to_owned();
                return (ReceiverAnswer::Stop(DeliveryStop { why, hint }), 0);
            }
            None => body.to_vec(),
        };
        let bytes = body.len() as u64;
        let mut request = self.client.post(&self.target.address).body(body);
        if let Some((name, password)) = &self.target.login {
            request = request.basic_auth(name, Some(password));
        }
        let answer = match request.send() {
            Ok(response) => self.answered(response),
            Err(error) => self.failed(error),
        };
        (answer, bytes)
    }
}

fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let room = Vec::with_capacity(body.len() / 3);
    let mut encoder = GzEncoder::new(room, Compression::fast());
    encoder.write_all(body)?;
    encoder.finish()
}

/// An address for people: without the name and the password that may stand in it.
pub fn address_without_login(address: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(address) else {
        return address.to_owned();
    };
    // Fails only where there can be none.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

/// The host of an address, for people.
fn host(address: &str) -> String {
    let url = reqwest::Url::parse(address).ok();
    let name = url.as_ref().and_then(|url| url.host_str());
    let port = url.as_ref().and_then(reqwest::Url::port);
    match (name, port) {
        (Some(name), Some(port)) => format!("{name}:{port}"),
        (Some(name), None) => name.to_owned(),
        _ => address.to_owned(),
    }
}

/// What a receiver says about a failure, as a short end of a sentence.
fn reason(kind: &str, body: &[u8]) -> String {
    let said = if kind.starts_with("text/html") {
        None
    } else if kind.contains("protobuf") {
        GoogleRpcStatus::decode(body)
            .ok()
            .map(|status| status.message)
    } else {
        let json = serde_json::from_slice::<Value>(body).unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let fields = [
            &json["message"],
            &json["error"]["message"],
            &json["error"],
            &json["detail"],
        ];
        let named = fields.into_iter().find_map(text);
        named.or_else(|| Some(String::from_utf8_lossy(body).into_owned()))
    };
    let said = said.unwrap_or_default();
    let words: Vec<&str> = said.split_whitespace().collect();
    let short: String = words.join(" ").chars().take(300).collect();
    if short.is_empty() {
        short
    } else {
        format!(": {short}")
    }
}

/// `google.rpc.Status`, which OTLP answers with when it fails.
#[derive(Clone, PartialEq, Message)]
struct GoogleRpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// Spans that were not taken, as the answer to a request that was taken says.
fn lost(kind: &str, body: &[u8]) -> Option<LostSpans> {
    let lost = if kind.contains("json") {
        let json: Value = serde_json::from_slice(body).ok()?;
        lost_json(&json)
    } else {
        let answer = ExportTraceServiceResponse::decode(body).ok()?;
        let partial = answer.partial_success?;
        LostSpans {
            spans: u64::try_from(partial.rejected_spans).unwrap_or(0),
            why: partial.error_message,
        }
    };
    // Words without a number are advice, and no loss.
    (lost.spans > 0).then_some(lost)
}

/// OTLP as JSON, or the list of errors of a 207.
fn lost_json(json: &Value) -> LostSpans {
    let partial = &json["partialSuccess"];
    let number = &partial["rejectedSpans"];
    let spans = number
        .as_u64()
        .or_else(|| number.as_str()?.parse().ok())
        .unwrap_or(0);
    let errors = json["errors"].as_array().map_or(&[][..], Vec::as_slice);
    let message = partial["errorMessage"].as_str();
    let first = errors.first().and_then(|error| {
        let words = error["message"]
            .as_str()
            .or_else(|| error["error"].as_str());
        words.or_else(|| error.as_str())
    });
    LostSpans {
        spans: spans.max(errors.len() as u64),
        why: message.or(first).unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;

    use super::*;
    use crate::target::TargetVariables;

    fn http() -> HttpReceiver {
        let names = TargetVariables {
            address: "ADDRESS",
            keys: "KEYS",
        };
        HttpReceiver::new(TraceTarget::langfuse("http://h:1", "pk", "sk", names)).unwrap()
    }

    fn judged(code: u16, kind: &str, body: &[u8]) -> ReceiverAnswer {
        http().judge(code, kind, Some("http://new"), body, None)
    }

    #[test]
    fn each_answer_has_its_meaning() {
        assert_eq!(judged(200, "", b""), ReceiverAnswer::Taken(None));
        assert_eq!(
            judged(202, "application/json", b"{}"),
            ReceiverAnswer::Taken(None)
        );
        for code in [408, 429, 500, 502, 503, 504, 599] {
            assert!(
                matches!(judged(code, "", b""), ReceiverAnswer::Later { .. }),
                "{code}"
            );
        }
        for code in [301, 307, 401, 402, 403, 404, 405, 415, 451] {
            assert!(
                matches!(judged(code, "", b""), ReceiverAnswer::Stop(_)),
                "{code}"
            );
        }
        assert!(matches!(judged(413, "", b""), ReceiverAnswer::TooLarge(_)));
        assert!(matches!(judged(400, "", b""), ReceiverAnswer::Refused(_)));
        // A page is no receiver, however friendly.
        let page = judged(200, "text/html; charset=utf-8", b"<html>hello");
        assert!(matches!(page, ReceiverAnswer::Stop(_)));
    }

    #[test]
    fn an_error_says_what_to_set() {
        let told = |code| match judged(code, "application/json", br#"{"message":"no such key"}"#) {
            ReceiverAnswer::Stop(stopped) => (stopped.why, stopped.hint),
            other => panic!("{other:?}"),
        };
        let (why, hint) = told(401);
        assert_eq!(why, "Langfuse rejected the keys (401): no such key");
        assert_eq!(hint, "set KEYS to the keys of the project at h:1");
        assert!(told(404).1.contains("ADDRESS"));
        assert!(told(308).0.contains("http://new"));
    }

    #[test]
    fn a_password_in_an_address_is_not_told() {
        assert_eq!(
            address_without_login("https://me:secret@h:1/v1/traces"),
            "https://h:1/v1/traces"
        );
        assert_eq!(address_without_login("no address"), "no address");
    }

    #[test]
    fn losses_are_told_in_both_forms() {
        let answer = |rejected_spans, error_message: &str| ExportTraceServiceResponse {
            partial_success: Some(ExportTracePartialSuccess {
                rejected_spans,
                error_message: error_message.to_owned(),
            }),
        };
        let lost = |spans, why: &str| {
            let why = why.to_owned();
            ReceiverAnswer::Taken(Some(LostSpans { spans, why }))
        };
        let bytes = answer(2, "no name").encode_to_vec();
        assert_eq!(
            judged(200, "application/x-protobuf", &bytes),
            lost(2, "no name")
        );
        let advice = answer(0, "be kind").encode_to_vec();
        assert_eq!(
            judged(200, "application/x-protobuf", &advice),
            ReceiverAnswer::Taken(None)
        );
        let json = br#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"old"}}"#;
        assert_eq!(judged(200, "application/json", json), lost(3, "old"));
        let many =
            br#"{"successes":[{"id":"a"}],"errors":[{"id":"b","status":400,"message":"bad"}]}"#;
        assert_eq!(judged(207, "application/json", many), lost(1, "bad"));
    }

    #[test]
    fn a_reason_is_one_short_line() {
        assert_eq!(reason("text/plain", b"a\n b"), ": a b");
        assert_eq!(reason("text/html", b"<p>"), "");
        assert_eq!(
            reason("application/json", br#"{"error":{"message":"m"}}"#),
            ": m"
        );
        assert!(reason("", &[b'x'; 9_999]).len() < 400);
    }
}
