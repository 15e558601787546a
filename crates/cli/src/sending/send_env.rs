//! Where to, as the environment says. An empty value counts as not set.

use std::time::Duration;

use clap::ValueEnum;
use unspool_send::otlp::OtlpResource;
use unspool_send::spans::TraceFacts;
use unspool_send::target::{COLLECTOR, LANGFUSE, TargetVariables, TraceTarget, join};

use crate::failure::CommandFailure;

/// Where to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReceiverKind {
    /// Langfuse: LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL
    Langfuse,
    /// Any OTLP/HTTP backend: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS
    Otlp,
}

/// What looks up a variable.
pub type EnvLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The environment of this process.
pub fn environment(name: &str) -> Option<String> {
    let value = std::env::var(name).ok()?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Whether a hook is to send: `TRACE_TO_LANGFUSE` says `true`.
pub fn hook_sending_enabled(variable: EnvLookup<'_>) -> bool {
    is_true(variable, "TRACE_TO_LANGFUSE")
}

/// Whether a hook is to tell more: `CC_LANGFUSE_DEBUG` says `true`.
pub fn hook_debug_enabled(variable: EnvLookup<'_>) -> bool {
    is_true(variable, "CC_LANGFUSE_DEBUG")
}

fn is_true(variable: EnvLookup<'_>, name: &'static str) -> bool {
    set(variable, &[name]).is_some_and(|(_, value)| value.eq_ignore_ascii_case("true"))
}

/// The first of these variables that is set.
fn set(variable: EnvLookup<'_>, names: &[&'static str]) -> Option<(&'static str, String)> {
    names.iter().find_map(|name| {
        let value = variable(name)?.trim().to_owned();
        (!value.is_empty()).then_some((*name, value))
    })
}

/// The target that the environment names.
pub fn target(to: ReceiverKind, variable: EnvLookup<'_>) -> Result<TraceTarget, CommandFailure> {
    let target = match to {
        ReceiverKind::Langfuse => langfuse(variable)?,
        ReceiverKind::Otlp => otlp(variable)?,
    };
    common(target, variable)
}

const PUBLIC: [&str; 2] = ["CC_LANGFUSE_PUBLIC_KEY", "LANGFUSE_PUBLIC_KEY"];
const SECRET: [&str; 2] = ["CC_LANGFUSE_SECRET_KEY", "LANGFUSE_SECRET_KEY"];
const BASE: [&str; 6] = [
    "CC_LANGFUSE_BASE_URL",
    "CC_LANGFUSE_HOST",
    "LANGFUSE_BASE_URL",
    "LANGFUSE_BASEURL",
    "LANGFUSE_HOST",
    "LANGFUSE_URL",
];

fn langfuse(variable: EnvLookup<'_>) -> Result<TraceTarget, CommandFailure> {
    let public = set(variable, &PUBLIC);
    let secret = set(variable, &SECRET);
    let ((name, public), (_, secret)) = match (public, secret) {
        (Some(public), Some(secret)) => (public, secret),
        (public, secret) => {
            let missing: Vec<&str> = [
                ("LANGFUSE_PUBLIC_KEY", public.is_none()),
                ("LANGFUSE_SECRET_KEY", secret.is_none()),
            ]
            .into_iter()
            .filter_map(|(name, missing)| missing.then_some(name))
            .collect();
            let are = if missing.len() > 1 { "are" } else { "is" };
            let what = format!("{} {are} not set", missing.join(" and "));
            return Err(CommandFailure::failed(what).hint(
                "set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY to the keys of a project, and LANGFUSE_BASE_URL unless it is https://cloud.langfuse.com",
            ));
        }
    };
    if public.starts_with("sk-lf-") || secret.starts_with("pk-lf-") {
        return Err(
            CommandFailure::failed("the public and the secret key are swapped")
                .hint("a public key begins with `pk-lf-`, a secret key with `sk-lf-`"),
        );
    }
    let (from, base) = set(variable, &BASE).unwrap_or(("LANGFUSE_BASE_URL", LANGFUSE.to_owned()));
    let keys = if name.starts_with("CC_") {
        "CC_LANGFUSE_PUBLIC_KEY and CC_LANGFUSE_SECRET_KEY"
    } else {
        "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
    };
    let names = TargetVariables {
        address: from,
        keys,
    };
    Ok(TraceTarget::langfuse(&base, &public, &secret, names))
}

fn otlp(variable: EnvLookup<'_>) -> Result<TraceTarget, CommandFailure> {
    let protocol = set(
        variable,
        &[
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
        ],
    );
    if let Some((name, protocol)) = protocol.filter(|(_, value)| value != "http/protobuf") {
        return Err(
            CommandFailure::failed(format!("{name} is `{protocol}`, but only `http/protobuf` is supported"))
                .hint("set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL to `http/protobuf` and OTEL_EXPORTER_OTLP_TRACES_ENDPOINT to the receiver's HTTP endpoint, usually port 4318"),
        );
    }
    let own = set(variable, &["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]);
    let (address, from) = match own {
        Some((from, address)) => (address, from),
        None => {
            let from = "OTEL_EXPORTER_OTLP_ENDPOINT";
            let base = set(variable, &[from]);
            let base = base.map_or_else(|| COLLECTOR.to_owned(), |(_, base)| base);
            (join(&base, "v1/traces"), from)
        }
    };
    let headers = set(
        variable,
        &[
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "OTEL_EXPORTER_OTLP_HEADERS",
        ],
    );
    let (keys, headers) = match headers {
        Some((name, text)) => (name, pairs(&text)),
        None => ("OTEL_EXPORTER_OTLP_HEADERS", Vec::new()),
    };
    let names = TargetVariables {
        address: from,
        keys,
    };
    Ok(TraceTarget::otlp(&address, headers, names))
}

/// What holds for every target.
fn common(mut target: TraceTarget, variable: EnvLookup<'_>) -> Result<TraceTarget, CommandFailure> {
    let timeout = set(
        variable,
        &[
            "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
            "OTEL_EXPORTER_OTLP_TIMEOUT",
        ],
    );
    if let Some((name, text)) = timeout {
        let wrong = || {
            CommandFailure::failed(format!(
                "{name} is `{text}`, which is not a number of milliseconds"
            ))
            .hint("set it to a number such as `10000`, or unset it")
        };
        let milliseconds: u64 = text.parse().map_err(|_| wrong())?;
        if milliseconds == 0 {
            return Err(wrong());
        }
        target.timeout = Duration::from_millis(milliseconds);
    }
    let compression = set(
        variable,
        &[
            "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
            "OTEL_EXPORTER_OTLP_COMPRESSION",
        ],
    );
    if let Some((name, how)) = compression {
        target.gzip = match how.to_ascii_lowercase().as_str() {
            "gzip" => true,
            "none" => false,
            _ => {
                let what = format!("{name} is `{how}`, but only `gzip` and `none` are supported");
                return Err(CommandFailure::failed(what).hint("set it to one of them, or unset it"));
            }
        };
    }
    let certificate = set(
        variable,
        &[
            "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
        ],
    );
    if let Some((name, path)) = certificate {
        let pem = std::fs::read(&path).map_err(|error| {
            CommandFailure::failed(format!("cannot read {name} (`{path}`): {error}"))
                .hint("set it to a PEM file, or unset it")
        })?;
        target.certificate = Some(pem);
    }
    Ok(target)
}

/// `a=1,b=2`, with values as in an address.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let (name, value) = (name.trim(), decoded(value.trim()));
        (!name.is_empty()).then(|| (name.to_owned(), value))
    };
    text.split(',').filter_map(pair).collect()
}

/// `%20` and the like as what they stand for.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// What is known of this machine and this person, for every session.
pub fn facts(variable: EnvLookup<'_>) -> TraceFacts {
    let first = |names: &[&'static str]| set(variable, names).map(|(_, value)| value);
    let environment = first(&[
        "CC_LANGFUSE_TRACING_ENVIRONMENT",
        "LANGFUSE_TRACING_ENVIRONMENT",
    ]);
    TraceFacts {
        host: first(&["HOSTNAME", "COMPUTERNAME"]).or_else(host),
        user: first(&[
            "CC_LANGFUSE_USER_ID",
            "LANGFUSE_USER_ID",
            "USER",
            "USERNAME",
        ]),
        environment,
        release: first(&["CC_LANGFUSE_RELEASE", "LANGFUSE_RELEASE"]),
        ..TraceFacts::default()
    }
}

fn host() -> Option<String> {
    let name = std::fs::read_to_string("/etc/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Who sends, as `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` have it.
pub fn resource(variable: EnvLookup<'_>, host: Option<String>) -> OtlpResource {
    let more = set(variable, &["OTEL_RESOURCE_ATTRIBUTES"]);
    let mut resource = OtlpResource {
        host,
        more: more.map_or_else(Vec::new, |(_, text)| pairs(&text)),
        ..OtlpResource::default()
    };
    if let Some((_, name)) = set(variable, &["OTEL_SERVICE_NAME"]) {
        resource.more.retain(|(key, _)| key != "service.name");
        resource.service = name;
    }
    resource
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(to: ReceiverKind, pairs: &[(&str, &str)]) -> Result<TraceTarget, String> {
        let variable = |name: &str| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        target(to, &variable).map_err(|failure| match failure {
            CommandFailure::Failed(told) => {
                format!("{} / {}", told.message, told.hint.unwrap_or_default())
            }
            other => format!("{other:?}"),
        })
    }

    const KEYS: [(&str, &str); 2] = [
        ("LANGFUSE_PUBLIC_KEY", "pk-lf-1"),
        ("LANGFUSE_SECRET_KEY", "sk-lf-1"),
    ];

    #[test]
    fn the_cloud_is_where_langfuse_is_unless_somebody_says() {
        let address = |more: &[(&str, &str)]| {
            with(ReceiverKind::Langfuse, &[&KEYS, more].concat())
                .unwrap()
                .address
        };
        let at = |base: &str| format!("{base}/api/public/otel/v1/traces");
        assert_eq!(address(&[]), at("https://cloud.langfuse.com"));
        assert_eq!(address(&[("LANGFUSE_HOST", "http://h/")]), at("http://h"));
        assert_eq!(
            address(&[
                ("LANGFUSE_HOST", "http://h"),
                ("LANGFUSE_BASE_URL", "http://b")
            ]),
            at("http://b")
        );
        assert_eq!(
            address(&[
                ("CC_LANGFUSE_BASE_URL", "http://c"),
                ("LANGFUSE_BASE_URL", "http://b")
            ]),
            at("http://c")
        );
        assert_eq!(
            address(&[
                ("CC_LANGFUSE_BASE_URL", " "),
                ("LANGFUSE_BASE_URL", "http://b")
            ]),
            at("http://b")
        );
    }

    #[test]
    fn names_of_this_tool_go_before_the_common_ones_and_empty_ones_do_not_count() {
        let login = |more: &[(&str, &str)]| {
            with(ReceiverKind::Langfuse, &[more, &KEYS].concat())
                .unwrap()
                .login
        };
        let cc = [
            ("CC_LANGFUSE_PUBLIC_KEY", "pk-lf-2"),
            ("CC_LANGFUSE_SECRET_KEY", "sk-lf-2"),
        ];
        assert_eq!(login(&cc), Some(("pk-lf-2".into(), "sk-lf-2".into())));
        let empty = [
            ("CC_LANGFUSE_PUBLIC_KEY", ""),
            ("CC_LANGFUSE_SECRET_KEY", ""),
        ];
        assert_eq!(login(&empty), Some(("pk-lf-1".into(), "sk-lf-1".into())));
    }

    #[test]
    fn missing_and_exchanged_keys_are_named() {
        let told = with(ReceiverKind::Langfuse, &[]).unwrap_err();
        assert!(
            told.starts_with("LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY are not set"),
            "{told}"
        );
        let told = with(ReceiverKind::Langfuse, &KEYS[..1]).unwrap_err();
        assert!(told.starts_with("LANGFUSE_SECRET_KEY is not set"), "{told}");
        let exchanged = [
            ("LANGFUSE_PUBLIC_KEY", "sk-lf-1"),
            ("LANGFUSE_SECRET_KEY", "pk-lf-1"),
        ];
        let told = with(ReceiverKind::Langfuse, &exchanged).unwrap_err();
        assert!(told.contains("swapped"), "{told}");
    }

    #[test]
    fn otlp_is_read_as_its_specification_has_it() {
        let target = with(ReceiverKind::Otlp, &[]).unwrap();
        assert_eq!(target.address, "http://localhost:4318/v1/traces");
        let target = with(
            ReceiverKind::Otlp,
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://o/base/"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x = 1,,=no"),
                ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
                ("OTEL_EXPORTER_OTLP_COMPRESSION", "none"),
            ],
        )
        .unwrap();
        assert_eq!(target.address, "https://o/base/v1/traces");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(target.headers, [pair("api-key", "a b"), pair("x", "1")]);
        assert_eq!(target.timeout, Duration::from_millis(1_500));
        assert!(!target.gzip);
        let own = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://o"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/x"),
        ];
        assert_eq!(
            with(ReceiverKind::Otlp, &own).unwrap().address,
            "https://t/x"
        );
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        let told = |name, value| with(ReceiverKind::Otlp, &[(name, value)]).unwrap_err();
        assert!(told("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc").contains("http/protobuf"));
        assert!(told("OTEL_EXPORTER_OTLP_TIMEOUT", "soon").contains("milliseconds"));
        assert!(told("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd").contains("`gzip`"));
        assert!(told("OTEL_EXPORTER_OTLP_CERTIFICATE", "/no/such").contains("/no/such"));
    }

    #[test]
    fn only_true_is_true() {
        for (value, is) in [
            ("true", true),
            ("TRUE", true),
            (" True ", true),
            ("1", false),
            ("", false),
        ] {
            assert_eq!(
                hook_sending_enabled(&|_: &str| Some(value.to_owned())),
                is,
                "{value}"
            );
        }
    }

    #[test]
    fn a_service_of_ones_own_wins() {
        let variable = |name: &str| match name {
            "OTEL_SERVICE_NAME" => Some("mine".to_owned()),
            "OTEL_RESOURCE_ATTRIBUTES" => Some("service.name=no,team=a%2Cb".to_owned()),
            _ => None,
        };
        let resource = resource(&variable, None);
        assert_eq!(resource.service, "mine");
        assert_eq!(resource.more, [("team".to_owned(), "a,b".to_owned())]);
    }
}
