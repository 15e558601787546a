//! What a prompt, a reply or a result holds, piece by piece and decoded.
//!
//! Images come apart from the text around them, so that those who send text need not send
//! them.

use std::borrow::Cow;

use crate::block::{self, BlockKind};
use crate::json::{self, JsonCursor, Span};
use crate::known_names::UnknownNames;
use crate::log::TranscriptSource;
use crate::session::{BlockRecord, EntryRecord, Message, Session, ToolCall};

/// One piece of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentPiece {
    /// Text.
    Text(String),
    /// What the model thought; empty where only its signature was written.
    Thinking(String),
    /// An image or a document.
    Media(MediaPiece),
    /// Anything else, as JSON.
    Other(String),
}

/// An image or a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaPiece {
    /// `image` or `document`.
    pub kind: &'static str,
    /// Such as `image/png`.
    pub media_type: Option<String>,
    /// Its bytes in base64, if they stand in the line.
    pub data: Option<String>,
    /// Where it is otherwise: an address, or a file of the API.
    pub place: Option<String>,
}

/// The content of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultContent {
    /// It has none.
    Empty,
    /// One text.
    Text(String),
    /// A list of pieces.
    Pieces(Vec<ContentPiece>),
    /// Anything else, as JSON.
    Other(String),
}

/// The pieces of a user line, without results of calls.
pub fn of_line(
    session: &Session,
    source: &dyn TranscriptSource,
    record: &EntryRecord,
) -> Vec<ContentPiece> {
    let bytes = session.bytes_of(source, record);
    let blocks = session.blocks_of(record).iter();
    blocks.filter_map(|part| of_part(part, &bytes)).collect()
}

/// The pieces of a message, without its calls; none of what the client wrote itself.
pub fn of_message(
    session: &Session,
    source: &dyn TranscriptSource,
    message: &Message,
) -> Vec<ContentPiece> {
    let mut pieces = Vec::new();
    if message.synthetic {
        return pieces;
    }
    let mut line: Option<(u32, Cow<'_, [u8]>)> = None;
    for (at, block) in session.content(message) {
        let record = &session.records[at as usize];
        let block = &session.blocks[block as usize];
        if record.is_api_error() || is_call(block.kind) {
            continue;
        }
        if line.as_ref().is_none_or(|(last, _)| *last != at) {
            line = Some((at, session.bytes_of(source, record)));
        }
        if let Some((_, bytes)) = &line {
            pieces.extend(of_part(block, bytes));
        }
    }
    pieces
}

/// The content of a call's result; `None` if there is no result.
pub fn of_result(
    session: &Session,
    source: &dyn TranscriptSource,
    call: &ToolCall,
) -> Option<ResultContent> {
    let result = call.result.as_ref()?;
    let bytes = session.bytes_of(source, &session.records[result.record as usize]);
    let raw = session.blocks[result.block as usize].body().of(&bytes);
    Some(content(raw))
}

fn content(raw: &[u8]) -> ResultContent {
    match raw.first() {
        None => ResultContent::Empty,
        Some(b'n') if raw == b"null" => ResultContent::Empty,
        Some(b'"') => ResultContent::Text(json::string(raw).into_owned()),
        Some(b'[') => {
            match block::read(&mut JsonCursor::new(raw), raw, &mut UnknownNames::default()) {
                Ok(blocks) => {
                    let pieces = blocks
                        .iter()
                        .filter_map(|block| piece(block.kind, block.span(), block.body(), raw));
                    ResultContent::Pieces(pieces.collect())
                }
                Err(_) => ResultContent::Other(json::mended(raw)),
            }
        }
        Some(_) => ResultContent::Other(json::mended(raw)),
    }
}

fn is_call(kind: BlockKind) -> bool {
    matches!(kind, BlockKind::ToolUse | BlockKind::ServerToolUse)
}

fn of_part(part: &BlockRecord, bytes: &[u8]) -> Option<ContentPiece> {
    piece(part.kind, part.span(), part.body(), bytes)
}

fn piece(kind: BlockKind, span: Span, body: Span, bytes: &[u8]) -> Option<ContentPiece> {
    let text = || json::string(body.of(bytes)).into_owned();
    match kind {
        BlockKind::Text => Some(ContentPiece::Text(text())),
        BlockKind::Thinking => Some(ContentPiece::Thinking(text())),
        BlockKind::RedactedThinking => Some(ContentPiece::Thinking(String::new())),
        BlockKind::Image => Some(ContentPiece::Media(media("image", body.of(bytes)))),
        BlockKind::Document => Some(ContentPiece::Media(media("document", body.of(bytes)))),
        BlockKind::ToolUse | BlockKind::ServerToolUse | BlockKind::ToolResult => None,
        BlockKind::Other => Some(ContentPiece::Other(json::mended(span.of(bytes)))),
    }
}

fn media(kind: &'static str, source: &[u8]) -> MediaPiece {
    let text = |key: &str| {
        let span = json::find(source, &[key])?;
        let raw = span.of(source);
        raw.starts_with(b"\"")
            .then(|| json::string(raw).into_owned())
    };
    MediaPiece {
        kind,
        media_type: text("media_type"),
        data: text("data"),
        place: text("url").or_else(|| text("file_id")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use crate::session::TranscriptRole;

    fn read(lines: &[&str]) -> (Session, Log) {
        let log = Log::new(lines.join("\n") + "\n");
        (Session::from_log(&log, TranscriptRole::Main), log)
    }

    #[test]
    fn an_image_in_a_prompt_stands_apart_from_its_text() {
        let (session, log) = read(&[
            r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},{"type":"document","source":{"type":"url","url":"https://x/y.pdf"}}]}}"#,
        ]);
        let pieces = of_line(&session, &log, &session.records[0]);
        assert_eq!(pieces[0], ContentPiece::Text("look".to_owned()));
        let ContentPiece::Media(image) = &pieces[1] else {
            panic!("{pieces:?}")
        };
        assert_eq!(image.media_type.as_deref(), Some("image/png"));
        assert_eq!(image.data.as_deref(), Some("QUJD"));
        let ContentPiece::Media(document) = &pieces[2] else {
            panic!("{pieces:?}")
        };
        assert_eq!(document.place.as_deref(), Some("https://x/y.pdf"));
    }

    #[test]
    fn a_message_is_read_over_its_lines_without_its_calls() {
        let (session, log) = read(&[
            r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}}"#,
            r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"yes"},{"type":"tool_use","id":"t","name":"Read","input":{}}]}}"#,
            r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"t"}]}}"#,
        ]);
        let pieces = of_message(&session, &log, &session.messages[0]);
        assert_eq!(pieces[0], ContentPiece::Thinking("hm".to_owned()));
        assert_eq!(pieces[1], ContentPiece::Text("yes".to_owned()));
        assert!(matches!(&pieces[2], ContentPiece::Other(json) if json.contains("web_search")));
        assert_eq!(pieces.len(), 3);
    }

    #[test]
    fn a_result_is_a_text_a_list_or_nothing() {
        assert_eq!(content(b""), ResultContent::Empty);
        assert_eq!(content(b"null"), ResultContent::Empty);
        assert_eq!(content(br#""a\n""#), ResultContent::Text("a\n".to_owned()));
        let list = content(br#"[{"type":"text","text":"a"},"b"]"#);
        let texts = ["a", "b"].map(|text| ContentPiece::Text(text.to_owned()));
        assert_eq!(list, ResultContent::Pieces(texts.to_vec()));
        assert_eq!(content(b"{}"), ResultContent::Other("{}".to_owned()));
    }
}
