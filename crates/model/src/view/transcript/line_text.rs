//! What a single line, result or hook says.

use serde_json::Value;

use super::{FailedHook, ItemBody, LoadedMedia, TranscriptNote};
use crate::json;
use crate::log::TranscriptSource;
use crate::session::{EntryRecord, Index, Session};
use crate::tool;
use crate::user_input;

/// The text of a user line.
pub(crate) fn text_of(session: &Session, source: &dyn TranscriptSource, at: Index) -> String {
    let record = &session.records[at as usize];
    let bytes = session.bytes_of(source, record);
    crate::entry::text_of(session.blocks_of(record), &bytes).into_owned()
}

/// The text of a result and the number of its images: a string, or a list of blocks.
pub(crate) fn content(raw: &[u8]) -> (String, usize) {
    let (text, images) = content_with(raw, |_| ());
    (text, images.len())
}

/// The same, with what `take` makes of each image.
pub(super) fn content_with<T>(raw: &[u8], take: impl Fn(&Value) -> T) -> (String, Vec<T>) {
    if raw.first() == Some(&b'"') {
        return (json::string(raw).into_owned(), Vec::new());
    }
    let value = match raw {
        [] => Value::Null,
        _ => json::value(raw),
    };
    let blocks = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for block in blocks {
        match block["type"].as_str() {
            Some("text") => texts.push(block["text"].as_str().unwrap_or_default().to_owned()),
            Some("image" | "document") => images.push(take(block)),
            _ => texts.push(
                block
                    .as_str()
                    .map_or_else(|| block.to_string(), str::to_owned),
            ),
        }
    }
    (texts.join("\n"), images)
}

/// An image or a document.
pub(super) fn media(block: &Value) -> LoadedMedia {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let source = &block["source"];
    // A document may be plain text.
    let plain = source["type"] == "text";
    let data = text(&source["data"]).filter(|_| !plain);
    LoadedMedia {
        kind: text(&block["type"]).unwrap_or_default(),
        media_type: text(&source["media_type"]).unwrap_or_default(),
        place: text(&source["url"])
            .or_else(|| text(&source["file_id"]))
            .or_else(|| text(&source["data"]).filter(|_| plain)),
        data: data.unwrap_or_default(),
    }
}

/// Around what the client tells the model beside a result.
const OPEN: &str = "<system-reminder>";
const CLOSE: &str = "</system-reminder>";

/// What stands before and behind a mark. Results are long and nearly none has one.
fn parted<'t>(text: &'t str, mark: &str) -> Option<(&'t str, &'t str)> {
    let at = memchr::memmem::find(text.as_bytes(), mark.as_bytes())?;
    Some((&text[..at], &text[at + mark.len()..]))
}

/// What [`without_reminders`] leaves out.
pub(super) fn reminders(text: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some((_, behind)) = parted(rest, OPEN) {
        let Some((said, after)) = parted(behind, CLOSE) else {
            break;
        };
        out.push(said.trim());
        rest = after;
    }
    out.join("\n\n")
}

/// What the client tells the model beside a result is not part of the result.
pub(super) fn without_reminders(text: &str) -> String {
    if parted(text, OPEN).is_none() {
        return text.trim_end().to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = parted(rest, OPEN) {
        let Some((_, after)) = parted(behind, CLOSE) else {
            break;
        };
        out.push_str(before);
        rest = after;
    }
    out.push_str(rest);
    out.trim_end().to_owned()
}

/// Tools of MCP servers are named `mcp__server__tool`.
pub(super) fn verb(name: &str) -> String {
    match name
        .strip_prefix("mcp__")
        .and_then(|rest| rest.split_once("__"))
    {
        Some((server, tool)) => format!("{server} {tool}"),
        None => tool::verb(name).to_owned(),
    }
}

pub(super) fn compaction(session: &Session, record: &EntryRecord) -> ItemBody {
    let boundary = session.boundary_of(record);
    let trigger = boundary.and_then(|boundary| boundary.trigger.as_deref());
    ItemBody::Compaction {
        micro: !record.kind.is_boundary(),
        trigger: trigger.map(str::to_owned),
        before: boundary.and_then(|boundary| boundary.before),
        after: boundary.and_then(|boundary| boundary.after),
    }
}

pub(crate) fn api_error(bytes: &[u8]) -> ItemBody {
    let text = |path: &[&str]| json::find(bytes, path).map(|span| json::string(span.of(bytes)));
    let number =
        |path: &[&str]| json::find(bytes, path).and_then(|span| json::count(span.of(bytes)));
    let said = text(&["error", "formatted"])
        .or_else(|| text(&["error", "message"]))
        .or_else(|| text(&["content"]));
    ItemBody::ApiError {
        text: said.unwrap_or_default().into_owned(),
        attempt: number(&["retryAttempt"]).zip(number(&["maxRetries"])),
    }
}

pub(crate) fn attached_hook(bytes: &[u8]) -> FailedHook {
    let value =
        json::find(bytes, &["attachment"]).map_or(Value::Null, |span| json::value(span.of(bytes)));
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let error = &value["blockingError"];
    let output = text(&error["blockingError"])
        .or_else(|| text(error))
        .or_else(|| text(&value["stderr"]))
        .or_else(|| text(&value["content"]))
        .or_else(|| text(&value["message"]));
    FailedHook {
        event: text(&value["hookName"])
            .or_else(|| text(&value["hookEvent"]))
            .unwrap_or_default(),
        command: text(&error["command"]).or_else(|| text(&value["command"])),
        blocked: value["type"] != "hook_non_blocking_error",
        output: output.unwrap_or_default().trim().to_owned(),
    }
}

pub(crate) fn stop_hook(bytes: &[u8]) -> FailedHook {
    let value = json::value(bytes);
    let errors = value["hookErrors"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let errors: Vec<&str> = errors.iter().filter_map(Value::as_str).collect();
    let stopped = value["preventedContinuation"] == true;
    let reason = value["stopReason"]
        .as_str()
        .filter(|reason| !reason.is_empty());
    FailedHook {
        event: "Stop".to_owned(),
        command: value["hookInfos"][0]["command"].as_str().map(str::to_owned),
        blocked: stopped,
        output: match reason.filter(|_| errors.is_empty()) {
            Some(reason) => reason.to_owned(),
            None => errors.join("\n").trim().to_owned(),
        },
    }
}

/// What a line written by the program for the model is about, and whether that matters.
pub(super) fn meta_label(text: &str) -> (&'static str, bool) {
    let known = [
        ("Stop hook feedback", "hook feedback", true),
        ("<local-command-caveat>", "caveat", false),
        ("Caveat:", "caveat", false),
        ("Base directory for this skill", "skill", true),
        ("[Image: ", "image source", false),
        ("Continue from where you left off", "continue", false),
    ];
    let found = known.iter().find(|(start, ..)| text.starts_with(start));
    found.map_or(("note for the model", true), |(_, label, matters)| {
        (label, *matters)
    })
}

/// What a program wrote into a user line.
pub(super) fn machine(text: &str) -> ItemBody {
    let outputs = [
        ("local-command-stdout", false),
        ("local-command-stderr", true),
        ("bash-stdout", false),
        ("bash-stderr", true),
    ];
    let found: Vec<(&str, bool)> = outputs
        .iter()
        .filter_map(|&(tag, is_error)| Some((user_input::tagged(text, tag)?.trim(), is_error)))
        .collect();
    if !found.is_empty() {
        let texts: Vec<&str> = found
            .iter()
            .map(|(text, _)| *text)
            .filter(|text| !text.is_empty())
            .collect();
        let silent = found
            .iter()
            .all(|(text, is_error)| *is_error || text.is_empty());
        return ItemBody::Command {
            command: None,
            is_error: silent
                && found
                    .iter()
                    .any(|(text, is_error)| *is_error && !text.is_empty()),
            output: texts.join("\n"),
        };
    }
    let summary =
        user_input::tagged(text, "summary").or_else(|| user_input::tagged(text, "status"));
    let text = summary.unwrap_or(text).trim();
    if text.is_empty() || text == "(no content)" {
        return ItemBody::Notes(vec![TranscriptNote {
            label: "empty line".to_owned(),
            count: 1,
            matters: false,
            text: String::new(),
        }]);
    }
    ItemBody::Notice {
        text: text.to_owned(),
    }
}
