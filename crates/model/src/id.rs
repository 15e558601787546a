//! Names of lines: almost always a uuid, sometimes not, never to be relied on.

mod uuid_byte;

use std::cmp::Ordering;
use std::fmt;

use uuid_byte::UuidNinthByte;

/// The id of a line or session.
///
/// A lower-case uuid, which nearly all of them are, takes sixteen bytes and no heap; any other
/// text is kept as it is, so that ids of other programs and of hand-made files work alike.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Id(IdRepr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum IdRepr {
    Uuid(PackedUuid),
    // Twice boxed, so that the rare kind makes the common one no larger.
    Text(Box<Box<str>>),
}

/// A uuid of the form that everybody writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PackedUuid {
    ninth: UuidNinthByte,
    start: [u8; NINTH],
    end: [u8; 7],
}

/// The place of the byte that tells the form of a uuid.
const NINTH: usize = 8;

impl PackedUuid {
    fn new(bytes: [u8; 16]) -> Option<PackedUuid> {
        let (mut start, mut end) = ([0; NINTH], [0; 7]);
        start.copy_from_slice(&bytes[..NINTH]);
        end.copy_from_slice(&bytes[NINTH + 1..]);
        let ninth = UuidNinthByte::new(bytes[NINTH])?;
        Some(PackedUuid { ninth, start, end })
    }

    fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..NINTH].copy_from_slice(&self.start);
        bytes[NINTH] = self.ninth.byte();
        bytes[NINTH + 1..].copy_from_slice(&self.end);
        bytes
    }
}

impl Ord for Id {
    fn cmp(&self, other: &Id) -> Ordering {
        match (&self.0, &other.0) {
            (IdRepr::Uuid(one), IdRepr::Uuid(other)) => one.bytes().cmp(&other.bytes()),
            (IdRepr::Text(one), IdRepr::Text(other)) => one.cmp(other),
            (IdRepr::Uuid(_), IdRepr::Text(_)) => Ordering::Less,
            (IdRepr::Text(_), IdRepr::Uuid(_)) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Id {
    fn partial_cmp(&self, other: &Id) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

const DASHES: [usize; 4] = [8, 13, 18, 23];

/// Where the two digits of each byte begin.
const DIGITS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

impl Id {
    /// The id with this text.
    pub fn new(text: &str) -> Id {
        let uuid = packed(text).and_then(PackedUuid::new);
        Id(uuid.map_or_else(|| IdRepr::Text(Box::new(text.into())), IdRepr::Uuid))
    }

    /// Whether it is a uuid of zeros, which 2.1.325 writes for "before the first line".
    pub fn is_zero(&self) -> bool {
        matches!(&self.0, IdRepr::Text(text) if &***text == ZERO)
    }
}

const ZERO: &str = "00000000-0000-0000-0000-000000000000";

impl From<&str> for Id {
    fn from(text: &str) -> Id {
        Id::new(text)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            IdRepr::Text(text) => f.write_str(text),
            IdRepr::Uuid(uuid) => {
                let bytes = uuid.bytes();
                let mut text = [b'-'; 36];
                let places = (0..36).filter(|at| !DASHES.contains(at));
                for (at, nibble) in places.zip(0..32) {
                    let byte = bytes[nibble / 2];
                    let digit = if nibble % 2 == 0 {
                        byte >> 4
                    } else {
                        byte & 15
                    };
                    text[at] = b"0123456789abcdef"[usize::from(digit)];
                }
                f.write_str(std::str::from_utf8(&text).unwrap_or_default())
            }
        }
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn packed(text: &str) -> Option<[u8; 16]> {
    let text: &[u8; 36] = text.as_bytes().try_into().ok()?;
    if DASHES.iter().any(|&at| text[at] != b'-') {
        return None;
    }
    let mut bytes = [0u8; 16];
    let mut bad = 0;
    for (byte, at) in bytes.iter_mut().zip(DIGITS) {
        let digit = |at: usize| NIBBLES[usize::from(text[at])];
        let (high, low) = (digit(at), digit(at + 1));
        bad |= high | low;
        *byte = high << 4 | low & 15;
    }
    (bad & 16 == 0).then_some(bytes)
}

/// The value of each hexadecimal digit; 16 for anything else. Upper case would come back as
/// lower case, so it stays text.
const NIBBLES: [u8; 256] = {
    let mut table = [16; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit as usize] as usize] = digit;
        digit += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_comes_back_as_it_was_written() {
        let texts = [
            "2f723639-cb3c-465d-8642-02ad42cb3466",
            "2F723639-cb3c-465d-8642-02ad42cb3466",
            "aaa-111",
            "",
            ZERO,
            "2f723639-cb3c-465d-c642-02ad42cb3466",
            "2f723639-cb3c-465d-7642-02ad42cb3466",
        ];
        for text in texts {
            assert_eq!(Id::new(text).to_string(), text);
        }
        for odd in [
            "2f7236-9-cb3c-465d-8642-02ad42cb3466",
            "-f723639-cb3c-465d-8642-02ad42cb346-",
            "2f723639-cb3c-465d-8642-02ad42cb346g",
        ] {
            assert_eq!(Id::new(odd).to_string(), odd);
        }
        // A dash anywhere else, two of them too.
        let uuid = texts[0].as_bytes();
        for (one, other) in (0..uuid.len()).flat_map(|one| (0..=one).map(move |other| (one, other)))
        {
            let mut text = uuid.to_vec();
            (text[one], text[other]) = (b'-', b'-');
            let text = String::from_utf8(text).unwrap();
            assert_eq!(Id::new(&text).to_string(), text);
        }
        for ninth in 0..=255u8 {
            let text = format!("2f723639-cb3c-465d-{ninth:02x}42-02ad42cb3466");
            assert_eq!(Id::new(&text).to_string(), text);
        }
        assert_eq!((size_of::<Id>(), size_of::<Option<Id>>()), (16, 16));
        assert!(Id::new(texts[4]).is_zero() && !Id::new(texts[0]).is_zero());
    }
}
