//! A note as a line: checksum, receiver, what it is, and what it says.

use std::hash::{BuildHasher, Hash, Hasher};
use std::path::PathBuf;
use std::str::FromStr;

use foldhash::fast::FixedState;

use super::{LedgerNote, ReceiverKey};

/// How long the checksum is, in characters.
const CHECK: usize = 8;

/// How long the id of a span is, in characters.
const SPAN: usize = 16;

/// Appends the line of a note. A path that is no text cannot be noted.
pub(super) fn write(out: &mut Vec<u8>, key: ReceiverKey, note: &LedgerNote) {
    let key: String = key.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = |path: &PathBuf| path.to_str().map(escaped);
    let text = match note {
        LedgerNote::Sent {
            trace,
            digest,
            spans,
            session,
        } => Some(format!(
            "{key} sent {trace} {digest} {spans} {}",
            escaped(session)
        )),
        LedgerNote::Held { trace, spans } => {
            let spans: String = spans.iter().map(ToString::to_string).collect();
            Some(format!("{key} held {trace} {spans}"))
        }
        LedgerNote::Before { session, lines } => {
            Some(format!("{key} before {lines} {}", escaped(session)))
        }
        LedgerNote::Adopted => Some(format!("{key} adopted")),
        LedgerNote::Due { path: it, open } => {
            let why = if *open { "open" } else { "failed" };
            path(it).map(|path| format!("{key} due {why} {path}"))
        }
        LedgerNote::Paid { path: it } => path(it).map(|path| format!("{key} paid {path}")),
    };
    if let Some(text) = text {
        out.extend_from_slice(check(text.as_bytes()).as_bytes());
        out.push(b' ');
        out.extend_from_slice(text.as_bytes());
        out.push(b'\n');
    }
}

/// Reads a line without its end; `None` if it is damaged.
pub(super) fn read(line: &[u8]) -> Option<(ReceiverKey, LedgerNote)> {
    let (sum, rest) = line.split_at_checked(CHECK)?;
    let text = rest.strip_prefix(b" ")?;
    if check(text).as_bytes() != sum {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    let (key, text) = text.split_once(' ')?;
    let key = ReceiverKey(u64::from_str_radix(key, 16).ok()?.to_be_bytes());
    let (kind, text) = text.split_once(' ').unwrap_or((text, ""));
    let note = match kind {
        "sent" => {
            let (trace, text) = word(text)?;
            let (digest, text) = word(text)?;
            let (spans, text) = word(text)?;
            LedgerNote::Sent {
                trace,
                digest,
                spans,
                session: plain(text).into(),
            }
        }
        "held" => {
            let (trace, text) = word(text)?;
            let spans = text.as_bytes().chunks(SPAN).map(|span| {
                let span = std::str::from_utf8(span).ok()?;
                span.parse().ok()
            });
            LedgerNote::Held {
                trace,
                spans: spans.collect::<Option<_>>()?,
            }
        }
        "before" => {
            let (lines, text) = word(text)?;
            LedgerNote::Before {
                session: plain(text),
                lines,
            }
        }
        "adopted" => LedgerNote::Adopted,
        "due" => {
            let (why, text): (String, &str) = word(text)?;
            LedgerNote::Due {
                path: plain(text).into(),
                open: why == "open",
            }
        }
        "paid" => LedgerNote::Paid {
            path: plain(text).into(),
        },
        _ => return None,
    };
    Some((key, note))
}

/// What a note is about: a later note about the same thing takes the place of this one.
pub(super) fn thing(key: ReceiverKey, note: &LedgerNote) -> u64 {
    let mut hasher = FixedState::with_seed(0).build_hasher();
    key.hash(&mut hasher);
    match note {
        LedgerNote::Sent { trace, .. } => (0, trace).hash(&mut hasher),
        LedgerNote::Before { session, .. } => (1, session).hash(&mut hasher),
        LedgerNote::Held { trace, .. } => (4, trace).hash(&mut hasher),
        LedgerNote::Adopted => 2.hash(&mut hasher),
        LedgerNote::Due { path, .. } | LedgerNote::Paid { path } => (3, path).hash(&mut hasher),
    }
    hasher.finish()
}

fn word<T: FromStr>(text: &str) -> Option<(T, &str)> {
    let (word, rest) = text.split_once(' ')?;
    Some((word.parse().ok()?, rest))
}

fn check(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..CHECK].to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('\r', "\\r")
}

fn plain(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        out.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    out
}
