//! What an older exporter noted: how many lines of each session it had sent.
//!
//! `cc-langfuse` keeps `{"<session>": {"last_line": 12, "turn_count": 3, "updated": "…"}}` in
//! one file and throws all of it away if any entry is wrong. Here a wrong entry is passed over.

use serde_json::Value;

/// Its name below a config folder of Claude Code.
pub const FILE: &str = "state/cc-langfuse_state.json";

/// Sessions and how many of their lines were sent, as the file has them.
pub fn read(bytes: &[u8]) -> Vec<(String, u32)> {
    let Ok(Value::Object(sessions)) = serde_json::from_slice(bytes) else {
        return Vec::new();
    };
    let lines = |(session, entry): (String, Value)| {
        let lines = entry.get("last_line")?.as_u64()?;
        let known = u32::try_from(lines).ok()?;
        // A name with a space or a line break is none that a client gives.
        let plain = !session.is_empty() && !session.contains(char::is_whitespace);
        plain.then_some((session, known))
    };
    sessions.into_iter().filter_map(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_known_by_session() {
        let file =
            br#"{"a":{"last_line":12,"turn_count":3,"updated":"2026-01-01T00:00:00Z"},"b":{"last_line":0}}"#;
        assert_eq!(read(file), [("a".to_owned(), 12), ("b".to_owned(), 0)]);
    }

    #[test]
    fn a_wrong_entry_does_not_spoil_the_others() {
        let file = br#"{"a":{"turn_count":3},"b":{"last_line":"7"},"c":[],"d":{"last_line":-1},"e e":{"last_line":1},"f":{"last_line":5}}"#;
        assert_eq!(read(file), [("f".to_owned(), 5)]);
    }

    #[test]
    fn what_is_no_such_file_says_nothing() {
        for bytes in [&b""[..], b"[]", b"null", b"{\"a\":", b"\xff\xfe"] {
            assert_eq!(read(bytes), []);
        }
    }
}
