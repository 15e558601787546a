//! Ids of traces and spans, made of what the transcript says and nothing else.
//!
//! The same turn gives the same ids on every machine and in every copy of the transcript, so
//! that a receiver which keeps one span per id keeps one of each, however often it is sent.
//! No id depends on the id of the session: resumed, forked and cloned files repeat turns
//! under another one.

use std::fmt;

/// The id of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId(pub [u8; 16]);

/// Enough of the id of a trace to tell it from others.
pub type TraceStart = [u8; 8];

/// The id of a span.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId(pub [u8; 8]);

/// What a trace holds, in a few bytes: another digest is another content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceDigest(pub [u8; 16]);

impl TraceId {
    /// The trace of the turn with this seed: the id of its first reply, else the uuid of its
    /// prompt.
    pub fn of(seed: &str) -> TraceId {
        TraceId(first(seed.as_bytes()))
    }

    /// Enough of it to tell it from others.
    pub fn start(self) -> TraceStart {
        let mut start = TraceStart::default();
        start.copy_from_slice(&self.0[..8]);
        start
    }
}

impl SpanId {
    /// The span of a message, call, agent or line with this id.
    pub fn of(id: &str) -> SpanId {
        SpanId(first(id.as_bytes()))
    }
}

/// The first bytes of the hash; all zeros would mean that there is no id.
fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let hash = blake3::hash(bytes);
    let mut out = [0; N];
    out.copy_from_slice(&hash.as_bytes()[..N]);
    if out == [0; N] {
        out[N - 1] = 1;
    }
    out
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

macro_rules! shown {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                hex(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                hex(&self.0, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdParseError;

            fn from_str(text: &str) -> Result<$name, IdParseError> {
                unhex(text).map($name)
            }
        }
    )*};
}

shown!(TraceId, SpanId, TraceDigest);

/// A text that is no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdParseError;

impl fmt::Display for IdParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an id in hexadecimal digits")
    }
}

impl std::error::Error for IdParseError {}

fn unhex<const N: usize>(text: &str) -> Result<[u8; N], IdParseError> {
    let text = text.as_bytes();
    if text.len() != N * 2 {
        return Err(IdParseError);
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(IdParseError);
    let mut out = [0; N];
    for (byte, pair) in out.iter_mut().zip(text.chunks_exact(2)) {
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_start_of_the_hash() {
        let hash = blake3::hash(b"msg_1").to_hex();
        assert_eq!(TraceId::of("msg_1").to_string(), hash[..32]);
        assert_eq!(SpanId::of("msg_1").to_string(), hash[..16]);
    }

    #[test]
    fn ids_are_read_back() {
        let id = TraceId::of("x");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!("12".parse::<SpanId>(), Err(IdParseError));
        assert_eq!("zz00000000000000".parse::<SpanId>(), Err(IdParseError));
    }
}
