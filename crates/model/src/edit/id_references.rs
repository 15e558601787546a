//! Where a line names other lines, its session and its directory.
//!
//! The only list of such places: who renames or removes lines asks here what has to follow.

use crate::json::{JsonCursor, JsonError, Span};

/// What stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReferenceField {
    /// The id of the line itself.
    Own,
    /// The line it follows.
    Parent,
    /// Another line; what names it is nothing without it.
    Line,
    /// A line that may be unknown here: a title names the leaf of another session.
    Leaf,
    /// The line that a backup of a file belongs to.
    Backup,
    /// The line behind which a compaction puts what it kept.
    Anchor,
    /// The first line that a compaction kept.
    First,
    /// The last line that a compaction kept.
    Last,
    /// A list of lines that a compaction kept.
    List,
    /// Its session.
    Session,
    /// A session, which may be another one.
    SomeSession,
    /// Its directory.
    Directory,
    /// Whether it belongs to a sub-agent.
    Side,
    /// When it was written.
    Time,
    /// Why the model stopped.
    Stop,
    /// The content of its message.
    Content,
    /// The id of its message.
    Message,
    /// A call it belongs to.
    Call,
    /// The copy of a tool result for the screen.
    Copy,
    /// All that a line says about the one it is a copy of, behind the places in it.
    Fork,
}

/// Hands out the places of an object, in the order they stand. Where a key stands twice the
/// last one counts, as in `JSON.parse`, but both are handed out.
///
/// The object is one that was read before.
pub(super) fn places(
    object: &[u8],
    mut each: impl FnMut(ReferenceField, Span),
) -> Result<(), JsonError> {
    let mut cursor = JsonCursor::new(object).trusting();
    let mut is_backup = false;
    let mut message_ids = Vec::new();
    cursor.object(|c, key| {
        let place = match key {
            "type" => {
                let kind = c.text()?;
                is_backup = kind.is_some_and(|kind| kind.starts_with("file-history"));
                return Ok(());
            }
            "uuid" => ReferenceField::Own,
            "parentUuid" => ReferenceField::Parent,
            "logicalParentUuid"
            | "sourceToolAssistantUUID"
            | "interruptedMessageUuid"
            | "cutUuid"
            | "turnAttributionKey" => ReferenceField::Line,
            "leafUuid" => ReferenceField::Leaf,
            "messageId" | "snapshotMessageId" => {
                message_ids.push(c.skip()?);
                return Ok(());
            }
            "sessionId" => ReferenceField::Session,
            "session_id" | "requestSessionId" => ReferenceField::SomeSession,
            "cwd" => ReferenceField::Directory,
            "isSidechain" => ReferenceField::Side,
            "timestamp" => ReferenceField::Time,
            "toolUseID" | "parentToolUseID" | "sourceToolUseID" => ReferenceField::Call,
            "toolUseResult" => ReferenceField::Copy,
            "message" => return message(c, &mut each),
            "snapshot" => {
                return c
                    .object(|c, key| {
                        let span = c.skip()?;
                        if key == "messageId" {
                            message_ids.push(span);
                        }
                        Ok(())
                    })
                    .map(drop);
            }
            "forkedFrom" => {
                c.peek();
                let start = c.position();
                fork(c, &mut each)?;
                each(ReferenceField::Fork, Span::new(start, c.position()));
                return Ok(());
            }
            "worktreeSession" => {
                return c
                    .object(|c, key| {
                        let span = c.skip()?;
                        match key {
                            "sessionId" => each(ReferenceField::SomeSession, span),
                            "originalCwd" | "preEnterOriginalCwd" | "worktreePath" => {
                                each(ReferenceField::Directory, span);
                            }
                            _ => {}
                        }
                        Ok(())
                    })
                    .map(drop);
            }
            "compactMetadata" | "microcompactMetadata" => return compaction(c, &mut each),
            _ => return c.skip().map(drop),
        };
        each(place, c.skip()?);
        Ok(())
    })?;
    for span in message_ids {
        each(
            if is_backup {
                ReferenceField::Backup
            } else {
                ReferenceField::Line
            },
            span,
        );
    }
    Ok(())
}

fn message(
    c: &mut JsonCursor<'_>,
    each: &mut impl FnMut(ReferenceField, Span),
) -> Result<(), JsonError> {
    c.object(|c, key| {
        let span = c.skip()?;
        match key {
            "id" => each(ReferenceField::Message, span),
            "content" => each(ReferenceField::Content, span),
            "stop_reason" => each(ReferenceField::Stop, span),
            _ => {}
        }
        Ok(())
    })
    .map(drop)
}

fn fork(
    c: &mut JsonCursor<'_>,
    each: &mut impl FnMut(ReferenceField, Span),
) -> Result<(), JsonError> {
    c.object(|c, key| {
        let span = c.skip()?;
        match key {
            "sessionId" => each(ReferenceField::SomeSession, span),
            "messageUuid" => each(ReferenceField::Leaf, span),
            _ => {}
        }
        Ok(())
    })
    .map(drop)
}

fn compaction(
    c: &mut JsonCursor<'_>,
    each: &mut impl FnMut(ReferenceField, Span),
) -> Result<(), JsonError> {
    c.object(|c, key| match key {
        "preservedSegment" | "preservedMessages" => c
            .object(|c, key| {
                let span = c.skip()?;
                match key {
                    "headUuid" => each(ReferenceField::First, span),
                    "tailUuid" => each(ReferenceField::Last, span),
                    "anchorUuid" => each(ReferenceField::Anchor, span),
                    "uuids" | "allUuids" => each(ReferenceField::List, span),
                    _ => {}
                }
                Ok(())
            })
            .map(drop),
        _ => c.skip().map(drop),
    })
    .map(drop)
}
