//! Images and documents by reference: what they are, how large, and their hash.

use serde_json::{Map, Value, json};
use unspool_model::view::content_pieces::MediaPiece;

/// What stands for the data of an image.
pub(super) fn reference(media: &MediaPiece) -> Value {
    let mut out = Map::new();
    out.insert("type".to_owned(), json!(media.kind));
    if let Some(media_type) = &media.media_type {
        out.insert("media_type".to_owned(), json!(media_type));
    }
    if let Some(data) = &media.data {
        let (bytes, hash) = weigh(data);
        out.insert("bytes".to_owned(), json!(bytes));
        out.insert("blake3".to_owned(), json!(hash));
    }
    if let Some(place) = &media.place {
        out.insert("url".to_owned(), json!(place));
    }
    Value::Object(out)
}

/// How many bytes base64 stands for, and their hash. What is no base64 is taken as it is: a
/// document may be plain text.
fn weigh(data: &str) -> (u64, String) {
    let mut hasher = blake3::Hasher::new();
    let mut chunk = Vec::with_capacity(CHUNK);
    let (mut bits, mut held) = (0u32, 0u32);
    for byte in data.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        if byte == b'=' {
            continue;
        }
        let Some(six) = sextet(byte) else {
            return (
                data.len() as u64,
                blake3::hash(data.as_bytes()).to_hex().to_string(),
            );
        };
        bits = bits << 6 | six;
        held += 6;
        if held >= 8 {
            held -= 8;
            chunk.push((bits >> held) as u8);
            if chunk.len() == CHUNK {
                hasher.update(&chunk);
                chunk.clear();
            }
        }
    }
    hasher.update(&chunk);
    (hasher.count(), hasher.finalize().to_hex().to_string())
}

/// How much is decoded at once.
const CHUNK: usize = 16 << 10;

fn sextet(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_and_hash_are_those_of_the_file() {
        for (data, file) in [("QUJD", "ABC"), ("QUI=", "AB"), ("QQ==", "A"), ("", "")] {
            let hash = blake3::hash(file.as_bytes()).to_hex().to_string();
            assert_eq!(weigh(data), (file.len() as u64, hash), "{data}");
        }
        let hash = blake3::hash(b"plain text!").to_hex().to_string();
        assert_eq!(weigh("plain text!"), (11, hash));
    }

    #[test]
    fn no_data_leaves_the_machine() {
        let media = MediaPiece {
            kind: "image",
            media_type: Some("image/png".to_owned()),
            data: Some("QUJD".to_owned()),
            place: None,
        };
        let value = reference(&media);
        assert_eq!(value["bytes"], 3);
        assert!(!value.to_string().contains("QUJD"));
    }
}
