//! Lines as the client writes them, for what an edit has to put in.
//!
//! What does not depend on the edit (directory, branch, version, whose session it is) is
//! taken from a neighbour in the same file, in the order that version of the client uses:
//! up to 2.1.100 in front of the type, later behind the time.

use crate::id::Id;
use crate::json::{self, JsonCursor, Span};
use crate::time::Time;

/// What a line says beside its content, taken from another line.
#[derive(Clone, Debug, Default)]
pub struct LineEnvelope {
    /// Which conversation of the file: raw fields that stand behind the parent.
    thread: String,
    /// Where and by whom it was written: raw fields.
    place: String,
    /// Those stand behind the time.
    place_last: bool,
}

/// Which line is written, and when.
#[derive(Clone, Copy, Debug)]
pub struct LineStamp<'a> {
    /// The id it gets.
    pub uuid: &'a Id,
    /// When it is said to be written.
    pub time: Time,
}

/// Fields that tell the conversation of a line.
const THREAD: &[&str] = &["isSidechain", "agentId"];
/// Fields that tell where a line was written.
const PLACE: &[&str] = &[
    "userType",
    "entrypoint",
    "cwd",
    "sessionId",
    "version",
    "gitBranch",
    "slug",
];

impl LineEnvelope {
    /// The envelope of a line.
    pub fn of(object: &[u8]) -> LineEnvelope {
        let mut envelope = LineEnvelope::default();
        let mut typed = false;
        // A line that cannot be read to its end says less.
        let _ = JsonCursor::new(object).object(|c, key| {
            let span = c.skip()?;
            typed |= key == "type";
            if THREAD.contains(&key) {
                add(&mut envelope.thread, key, span, object);
            } else if PLACE.contains(&key) {
                envelope.place_last |= typed && envelope.place.is_empty();
                add(&mut envelope.place, key, span, object);
            }
            Ok(())
        });
        if envelope.thread.is_empty() {
            envelope.thread = "\"isSidechain\":false,".to_owned();
        }
        envelope
    }

    /// A line: its links, its content and the rest. `head` and `content` end with a comma.
    fn line(&self, head: &str, content: &str, stamp: LineStamp<'_>, tail: &str) -> String {
        let (front, back) = match self.place_last {
            true => ("", self.place.as_str()),
            false => (self.place.as_str(), ""),
        };
        let (thread, uuid) = (&self.thread, json::quoted(&stamp.uuid.to_string()));
        let time = stamp.time;
        let body = format!(
            "{head}{thread}{front}{content}\"uuid\":{uuid},\"timestamp\":\"{time}\",{tail}{back}"
        );
        format!("{{{}}}", body.trim_end_matches(','))
    }
}

fn add(fields: &mut String, key: &str, value: Span, object: &[u8]) {
    let value = json::mended(value.of(object));
    fields.push_str(&format!("\"{key}\":{value},"));
}

fn id(id: Option<&Id>) -> String {
    id.map_or_else(|| "null".to_owned(), |id| json::quoted(&id.to_string()))
}

/// Which line the conversation goes on from: if `explicit`, even if the last line of the file
/// follows it.
pub fn last_prompt(session_id: &str, leaf: &Id, explicit: bool) -> String {
    let (leaf, session) = (id(Some(leaf)), json::quoted(session_id));
    let explicit = if explicit { ",\"explicit\":true" } else { "" };
    format!("{{\"type\":\"last-prompt\",\"leafUuid\":{leaf}{explicit},\"sessionId\":{session}}}")
}

/// A compaction: what stands before is no longer sent. `before` is the line it follows,
/// `tokens` what the model was sent until then.
pub fn compact_boundary(
    envelope: &LineEnvelope,
    stamp: LineStamp<'_>,
    before: Option<&Id>,
    tokens: u64,
) -> String {
    let head = format!("\"parentUuid\":null,\"logicalParentUuid\":{},", id(before));
    let content = "\"type\":\"system\",\"subtype\":\"compact_boundary\",\
         \"content\":\"Conversation compacted\",\"isMeta\":false,";
    let tail = format!(
        "\"level\":\"info\",\"compactMetadata\":{{\"trigger\":\"manual\",\"preTokens\":{tokens}}},"
    );
    envelope.line(&head, content, stamp, &tail)
}

/// The summary behind a compaction.
pub fn compact_summary(
    envelope: &LineEnvelope,
    stamp: LineStamp<'_>,
    boundary: &Id,
    text: &str,
) -> String {
    let head = format!("\"parentUuid\":{},", id(Some(boundary)));
    let content = format!(
        "\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":{}}},\
         \"isVisibleInTranscriptOnly\":true,\"isCompactSummary\":true,",
        json::quoted(text)
    );
    envelope.line(&head, &content, stamp, "")
}

/// A failed result of a call that the line `source` makes, behind the line `parent`.
pub fn tool_result(
    envelope: &LineEnvelope,
    stamp: LineStamp<'_>,
    parent: &Id,
    (call, source): (&str, &Id),
    text: &str,
) -> String {
    let head = format!("\"parentUuid\":{},", id(Some(parent)));
    let (said, call) = (json::quoted(text), json::quoted(call));
    let content = format!(
        "\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\
         \"content\":{said},\"is_error\":true,\"tool_use_id\":{call}}}]}},"
    );
    let copy = json::quoted(&format!("Error: {text}"));
    let source = id(Some(source));
    let tail = format!("\"toolUseResult\":{copy},\"sourceToolAssistantUUID\":{source},");
    envelope.line(&head, &content, stamp, &tail)
}

/// A title for the session that has this line, as clients before 2.1.45 show it.
pub fn summary(title: &str, leaf: &str) -> String {
    let (title, leaf) = (json::quoted(title), json::quoted(leaf));
    format!("{{\"type\":\"summary\",\"summary\":{title},\"leafUuid\":{leaf}}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{self, LineDetail, LineKind};
    use crate::title;

    const OLD: &str = r#"{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/a b","sessionId":"s","version":"2.1.45","gitBranch":"main","type":"user","message":{},"uuid":"u","timestamp":"t"}"#;
    const NEW: &str = r#"{"parentUuid":null,"isSidechain":true,"agentId":"a1","type":"user","message":{},"uuid":"u","timestamp":"t","userType":"external","entrypoint":"cli","cwd":"/a b","sessionId":"s","version":"2.1.325","gitBranch":"main","slug":"x-y"}"#;

    fn keys(line: &str) -> Vec<String> {
        let mut keys = Vec::new();
        JsonCursor::new(line.as_bytes())
            .object(|c, key| {
                keys.push(key.to_owned());
                c.skip().map(drop)
            })
            .unwrap();
        keys
    }

    #[test]
    fn fields_stand_in_the_order_of_the_version_that_wrote_the_file() {
        let id = Id::new("n");
        let stamp = LineStamp {
            uuid: &id,
            time: Time(0),
        };
        let line = |model: &str| {
            compact_boundary(&LineEnvelope::of(model.as_bytes()), stamp, Some(&id), 7)
        };
        assert_eq!(
            keys(&line(OLD)).join(" "),
            "parentUuid logicalParentUuid isSidechain userType cwd sessionId version gitBranch \
             type subtype content isMeta uuid timestamp level compactMetadata"
        );
        assert_eq!(
            keys(&line(NEW)).join(" "),
            "parentUuid logicalParentUuid isSidechain agentId type subtype content isMeta uuid \
             timestamp level compactMetadata userType entrypoint cwd sessionId version gitBranch \
             slug"
        );
    }

    #[test]
    fn a_result_of_ours_is_read_as_the_failed_result_of_its_call() {
        let (id, parent) = (Id::new("n"), Id::new("p"));
        let stamp = LineStamp {
            uuid: &id,
            time: Time(1_000),
        };
        let envelope = LineEnvelope::of(NEW.as_bytes());
        let line = tool_result(
            &envelope,
            stamp,
            &parent,
            ("toolu_1", &parent),
            "it \"broke\"",
        );
        let decoded = entry::decode(line.as_bytes());
        assert!(decoded.faults.is_empty() && decoded.entries.len() == 1);
        let entry = &decoded.entries[0];
        assert_eq!(entry.kind, LineKind::User);
        assert_eq!(entry.parent.id(), Some(&parent));
        assert_eq!(entry.at, Some(Time(1_000)));
        assert!(
            entry.sidechain && entry.unknown.is_empty(),
            "{:?}",
            entry.unknown
        );
        let block = &entry.blocks[0];
        assert_eq!((block.id(), block.is_error), (Some("toolu_1"), true));
    }

    #[test]
    fn a_summary_and_a_title_are_read_as_such() {
        let (id, boundary) = (Id::new("n"), Id::new("b"));
        let stamp = LineStamp {
            uuid: &id,
            time: Time(1_000),
        };
        let line = compact_summary(&LineEnvelope::of(b"{}"), stamp, &boundary, "said\nbefore");
        let entry = entry::decode(line.as_bytes()).entries.remove(0);
        assert_eq!(entry.kind, LineKind::User);
        assert!(!entry.input.opens_turn() && !entry.sidechain);
        let title = entry::decode(title::line("s", "a \"b\"").as_bytes());
        assert!(
            matches!(&title.entries[0].detail, Some(LineDetail::Title { text, .. }) if text.as_str() == "a \"b\"")
        );
        let leaf = entry::decode(last_prompt("s", &id, false).as_bytes());
        assert!(
            matches!(&leaf.entries[0].detail, Some(LineDetail::LastPrompt { leaf: Some(leaf), explicit: false }) if *leaf == id)
        );
    }
}
