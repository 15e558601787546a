//! Images in transcripts: what they really are, whatever is said about them.

/// The bytes of an image in base64, and its type by its first bytes; only types that are
/// nothing but pixels.
pub fn decode(data: &str) -> Option<(&'static str, Vec<u8>)> {
    let bytes = base64(data)?;
    Some((kind(&bytes)?, bytes))
}

/// The type of an image by its first bytes.
pub fn kind(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

/// Bytes in base64; white space counts nothing.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' | b' ' | b'\n' | b'\r' | b'\t' => continue,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_what_its_first_bytes_say() {
        assert_eq!(decode("R0lGODlhAQABAAAAACw=").unwrap().0, "image/gif");
        assert_eq!(decode("iVBORw0KGgoAAAAN").unwrap().0, "image/png");
        assert_eq!(decode("/9j/4AAQ").unwrap().0, "image/jpeg");
        assert_eq!(decode("UklGRgAAAABXRUJQ").unwrap().0, "image/webp");
        // `<svg onload=…`, `<html>`, nothing, and what is no base64.
        for other in ["PHN2ZyBvbmxvYWQ9", "PGh0bWw+", "", "<svg>"] {
            assert_eq!(decode(other), None, "{other}");
        }
    }

    #[test]
    fn base64_is_read_with_and_without_its_end() {
        assert_eq!(base64("aGk=").unwrap(), b"hi");
        assert_eq!(base64("aGk").unwrap(), b"hi");
        assert_eq!(base64("aGVs\nbG8h").unwrap(), b"hello!");
    }
}
