//! What a prompt, a reply or a result holds, piece by piece and decoded.
//!
//! Images come apart from the text around them, so that those who send text need not send
//! them.

use std::borrow::Cow;

use crate::block::{self, BlockKind};
use crate::json::{self, Cursor, Span};
use crate::known::UnknownNames;
use crate::log::Source;
use crate::session::{Call, Message, Part, Record, Session};

/// One piece of content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text.
    Text(String),
    /// What the model thought; empty where only its signature was written.
    Thinking(String),
    /// An image or a document.
    Media(Media),
    /// Anything else, as JSON.
    Other(String),
}

/// An image or a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Media {
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
pub enum Content {
    /// It has none.
    Empty,
    /// One text.
    Text(String),
    /// A list of pieces.
    Pieces(Vec<Piece>),
    /// Anything else, as JSON.
    Other(String),
}

/// The pieces of a user line, without results of calls.
pub fn of_line(session: &Session, source: &dyn Source, record: &Record) -> Vec<Piece> {
    let bytes = session.bytes_of(source, record);
    let blocks = session.blocks_of(record).iter();
    blocks.filter_map(|part| of_part(part, &bytes)).collect()
}

/// The pieces of a message, without its calls; none of what the client wrote itself.
pub fn of_message(session: &Session, source: &dyn Source, message: &Message) -> Vec<Piece> {
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
pub fn of_result(session: &Session, source: &dyn Source, call: &Call) -> Option<Content> {
    let result = call.result.as_ref()?;
    let bytes = session.bytes_of(source, &session.records[result.record as usize]);
    let raw = session.blocks[result.block as usize].body().of(&bytes);
    Some(content(raw))
}

fn content(raw: &[u8]) -> Content {
    match raw.first() {
        None => Content::Empty,
        Some(b'n') if raw == b"null" => Content::Empty,
        Some(b'"') => Content::Text(json::string(raw).into_owned()),
        Some(b'[') => match block::read(&mut Cursor::new(raw), raw, &mut UnknownNames::default()) {
            Ok(blocks) => {
                let pieces = blocks
                    .iter()
                    .filter_map(|block| piece(block.kind, block.span(), block.body(), raw));
                Content::Pieces(pieces.collect())
            }
            Err(_) => Content::Other(json::mended(raw)),
        },
        Some(_) => Content::Other(json::mended(raw)),
    }
}

fn is_call(kind: BlockKind) -> bool {
    matches!(kind, BlockKind::ToolUse | BlockKind::ServerToolUse)
}

fn of_part(part: &Part, bytes: &[u8]) -> Option<Piece> {
    piece(part.kind, part.span(), part.body(), bytes)
}

fn piece(kind: BlockKind, span: Span, body: Span, bytes: &[u8]) -> Option<Piece> {
    let text = || json::string(body.of(bytes)).into_owned();
    match kind {
        BlockKind::Text => Some(Piece::Text(text())),
        BlockKind::Thinking => Some(Piece::Thinking(text())),
        BlockKind::RedactedThinking => Some(Piece::Thinking(String::new())),
        BlockKind::Image => Some(Piece::Media(media("image", body.of(bytes)))),
        BlockKind::Document => Some(Piece::Media(media("document", body.of(bytes)))),
        BlockKind::ToolUse | BlockKind::ServerToolUse | BlockKind::ToolResult => None,
        BlockKind::Other => Some(Piece::Other(json::mended(span.of(bytes)))),
    }
}

fn media(kind: &'static str, source: &[u8]) -> Media {
    let text = |key: &str| {
        let span = json::find(source, &[key])?;
        let raw = span.of(source);
        raw.starts_with(b"\"")
            .then(|| json::string(raw).into_owned())
    };
    Media {
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
    use crate::session::Role;

    fn read(lines: &[&str]) -> (Session, Log) {
        let log = Log::new(lines.join("\n") + "\n");
        (Session::from_log(&log, Role::Main), log)
    }

    #[test]
    fn an_image_in_a_prompt_stands_apart_from_its_text() {
        let (session, log) = read(&[
            r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},{"type":"document","source":{"type":"url","url":"https://x/y.pdf"}}]}}"#,
        ]);
        let pieces = of_line(&session, &log, &session.records[0]);
        assert_eq!(pieces[0], Piece::Text("look".to_owned()));
        let Piece::Media(image) = &pieces[1] else {
            panic!("{pieces:?}")
        };
        assert_eq!(image.media_type.as_deref(), Some("image/png"));
        assert_eq!(image.data.as_deref(), Some("QUJD"));
        let Piece::Media(document) = &pieces[2] else {
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
        assert_eq!(pieces[0], Piece::Thinking("hm".to_owned()));
        assert_eq!(pieces[1], Piece::Text("yes".to_owned()));
        assert!(matches!(&pieces[2], Piece::Other(json) if json.contains("web_search")));
        assert_eq!(pieces.len(), 3);
    }

    #[test]
    fn a_result_is_a_text_a_list_or_nothing() {
        assert_eq!(content(b""), Content::Empty);
        assert_eq!(content(b"null"), Content::Empty);
        assert_eq!(content(br#""a\n""#), Content::Text("a\n".to_owned()));
        let list = content(br#"[{"type":"text","text":"a"},"b"]"#);
        let texts = ["a", "b"].map(|text| Piece::Text(text.to_owned()));
        assert_eq!(list, Content::Pieces(texts.to_vec()));
        assert_eq!(content(b"{}"), Content::Other("{}".to_owned()));
    }
}
