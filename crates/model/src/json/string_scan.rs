//! The bytes that mean something inside a string of JSON: quotes, backslashes and control
//! characters, looked for in many bytes at once.
//!
//! Output of tools is full of `\n`, so strings are many short stretches between escapes. A
//! block of 64 bytes becomes a few numbers of 64 bits, one bit for each byte, and where a
//! string ends is arithmetic on those, however many escapes stand before it.

use wide::u8x16;

/// How many bytes are looked at together.
const BLOCK: usize = 64;

/// So many times sixteen bytes are looked at first: most strings are names, ids and times.
const SHORT: usize = 3;

/// Where passing over a string came to a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StringStop {
    /// At its closing quote.
    Quote(usize),
    /// At an escape that is not one of the common ones, and has to be looked at.
    Escape(usize),
    /// At the last bytes, which are looked at one by one.
    Rest(usize),
}

/// Passes over the inside of a string from `at` on; sets `control` if a control character
/// stands in it as it is. In a string that is known to be one only its end is looked for.
pub(super) fn pass<const KNOWN: bool>(
    bytes: &[u8],
    mut at: usize,
    control: &mut bool,
) -> StringStop {
    for _ in 0..SHORT {
        let Some(few) = bytes.get(at..).and_then(<[u8]>::first_chunk::<16>) else {
            return StringStop::Rest(at);
        };
        match specials(few).trailing_zeros() as usize {
            found @ 0..16 if few[found] == b'"' => return StringStop::Quote(at + found),
            found @ 0..16 => {
                at += found;
                break;
            }
            _ => at += few.len(),
        }
    }
    while let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
        let special = if KNOWN { 1 } else { bits(block, is_special) };
        if special == 0 {
            at += BLOCK;
            continue;
        }
        let slash = bits(block, |sixteen| sixteen.simd_eq(u8x16::splat(b'\\')));
        let quote = bits(block, |sixteen| sixteen.simd_eq(u8x16::splat(b'"')));
        let (escapes, escaped) = escapes(slash);
        let ends = quote & !escaped;
        if !KNOWN {
            let inside = below(ends);
            let mut rare = escaped & inside;
            if rare != 0 {
                rare &= !bits(block, is_common_escape);
            }
            *control |= special & inside & below(rare) & !slash & !quote != 0;
            if rare != 0 {
                return StringStop::Escape(at + rare.trailing_zeros() as usize - 1);
            }
        }
        if ends != 0 {
            return StringStop::Quote(at + ends.trailing_zeros() as usize);
        }
        // An escape that begins with the last byte is looked at with the next ones.
        at += BLOCK - (escapes >> (BLOCK - 1)) as usize;
    }
    StringStop::Rest(at)
}

/// How many bytes stand before the next quote, backslash or control character.
pub(super) fn plain(bytes: &[u8]) -> usize {
    let (sixteens, rest) = bytes.as_chunks();
    let mut at = 0;
    for few in sixteens {
        let found = specials(few);
        if found != 0 {
            return at + found.trailing_zeros() as usize;
        }
        at += few.len();
    }
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    at + rest.iter().position(special).unwrap_or(rest.len())
}

/// The quotes and backslashes of a text, one after the other.
pub(crate) struct QuoteMarks<'a> {
    bytes: &'a [u8],
    /// Where the block begins, and which of its marks were not handed out.
    block: usize,
    found: u64,
}

impl<'a> QuoteMarks<'a> {
    /// Those from `at` on.
    pub(crate) fn from(bytes: &'a [u8], at: usize) -> QuoteMarks<'a> {
        let mut marks = QuoteMarks {
            bytes,
            block: at,
            found: 0,
        };
        marks.look();
        marks
    }

    /// Where the next one is that stands at `at` or behind it; `at` never goes back.
    pub(crate) fn next(&mut self, at: usize) -> Option<usize> {
        match at - self.block {
            passed @ 0..BLOCK => self.found = self.found >> passed << passed,
            _ => {
                self.block = at;
                self.look();
            }
        }
        while self.found == 0 {
            self.block += BLOCK;
            if self.block >= self.bytes.len() {
                return None;
            }
            self.look();
        }
        Some(self.block + self.found.trailing_zeros() as usize)
    }

    fn look(&mut self) {
        let rest = self.bytes.get(self.block..).unwrap_or_default();
        let is_mark = |sixteen: u8x16| {
            sixteen.simd_eq(u8x16::splat(b'"')) | sixteen.simd_eq(u8x16::splat(b'\\'))
        };
        self.found = match rest.first_chunk::<BLOCK>() {
            Some(block) => bits(block, is_mark),
            None => {
                let mut block = [0; BLOCK];
                block[..rest.len()].copy_from_slice(rest);
                bits(&block, is_mark)
            }
        };
    }
}

/// A bit for each byte of a block of which `is` says all ones.
fn bits(block: &[u8; BLOCK], is: impl Fn(u8x16) -> u8x16) -> u64 {
    let (sixteens, _) = block.as_chunks();
    let mut bits = 0;
    for (place, sixteen) in sixteens.iter().enumerate() {
        bits |= u64::from(is(u8x16::new(*sixteen)).to_bitmask()) << (16 * place);
    }
    bits
}

/// The bits below the lowest one; all if there is none.
fn below(bits: u64) -> u64 {
    bits.wrapping_sub(1) & !bits
}

/// A bit for each special byte.
fn specials(sixteen: &[u8; 16]) -> u32 {
    is_special(u8x16::new(*sixteen)).to_bitmask()
}

fn is_special(sixteen: u8x16) -> u8x16 {
    let is_control = sixteen.min(u8x16::splat(0x1f)).simd_eq(sixteen);
    sixteen.simd_eq(u8x16::splat(b'"')) | sixteen.simd_eq(u8x16::splat(b'\\')) | is_control
}

/// What follows the backslash of nearly all escapes.
fn is_common_escape(sixteen: u8x16) -> u8x16 {
    let is = |byte: u8| sixteen.simd_eq(u8x16::splat(byte));
    is(b'n') | is(b'"') | is(b'\\') | is(b't') | is(b'r')
}

/// Which backslashes begin an escape, and which bytes are escaped by them, in a block that
/// does not begin with an escaped byte.
///
/// In a row of backslashes every other one begins an escape. Taking the row from a number in
/// which every other bit is set lets the borrow run to its end, and leaves those.
fn escapes(slashes: u64) -> (u64, u64) {
    const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let codes = (slashes << 1 | ODD).wrapping_sub(slashes) ^ ODD;
    (codes & slashes, codes ^ slashes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same, one byte after the other.
    fn slow(bytes: &[u8], mut at: usize, control: &mut bool) -> Option<StringStop> {
        loop {
            match (bytes.get(at)?, bytes.get(at + 1)) {
                (b'"', _) => return Some(StringStop::Quote(at)),
                (b'\\', Some(b'n' | b'"' | b'\\' | b't' | b'r')) => at += 2,
                (b'\\', Some(_)) => return Some(StringStop::Escape(at)),
                (b'\\', None) => return None,
                (0..0x20, _) => {
                    *control = true;
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    proptest! {
        #[test]
        fn a_string_ends_where_looking_at_each_byte_says(
            text in r#"([a-z ]{0,40}|\\{1,70}|\\["ntr]|\\u0041|"|[ä\t\x00]){0,24}"#,
            start in 0usize..8,
        ) {
            let bytes = text.as_bytes();
            let start = start.min(bytes.len());
            let (mut control, mut seen) = (false, false);
            let stop = pass::<false>(bytes, start, &mut control);
            let known = slow(bytes, start, &mut seen);
            match stop {
                StringStop::Rest(at) => {
                    // What was passed is neither the end nor the middle of an escape.
                    prop_assert!(at + BLOCK > bytes.len());
                    let mut behind = false;
                    prop_assert_eq!(slow(bytes, at, &mut behind), known);
                    prop_assert_eq!(control | behind, seen);
                }
                _ => {
                    prop_assert_eq!(Some(stop), known);
                    prop_assert_eq!(control, seen);
                }
            }
        }

        #[test]
        fn the_end_of_a_known_string_is_the_same(text in r#"([a-z ]{0,40}|(\\\\){1,40}|\\["ntru]|[ä\t]){0,24}"#) {
            let whole = format!("{text}\"{}", " ".repeat(BLOCK));
            let end = pass::<true>(whole.as_bytes(), 0, &mut false);
            prop_assert_eq!(end, StringStop::Quote(text.len()));
        }

        #[test]
        fn marks_are_the_quotes_and_backslashes(text in r#"([a-zä]{0,90}|["\\]{1,3}){0,12}"#, step in 1usize..80) {
            let bytes = text.as_bytes();
            let mut marks = QuoteMarks::from(bytes, 0);
            let mut at = 0;
            while at < bytes.len() {
                let next = bytes[at..].iter().position(|byte| b"\"\\".contains(byte));
                prop_assert_eq!(marks.next(at), next.map(|next| at + next));
                at = next.map_or(bytes.len(), |next| at + next + step);
            }
        }
    }

    #[test]
    fn a_plain_stretch_ends_at_the_first_special_byte() {
        let slow = |bytes: &[u8]| {
            let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
            bytes.iter().position(special).unwrap_or(bytes.len())
        };
        for length in 0..40 {
            for at in 0..=length {
                for byte in 0..=255 {
                    let mut bytes = vec![b'!'; length];
                    bytes
                        .iter_mut()
                        .skip(at)
                        .take(1)
                        .for_each(|place| *place = byte);
                    bytes
                        .iter_mut()
                        .skip(at + 1)
                        .step_by(2)
                        .for_each(|place| *place = 0x1f);
                    assert_eq!(plain(&bytes), slow(&bytes), "{bytes:?}");
                }
            }
        }
    }
}
