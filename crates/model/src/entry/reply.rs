//! What a line says about tokens, without reading the rest of it.
//!
//! For scans over everything: the same fields as [`super::decode`] reads, by the same
//! functions, but content is passed over. A line without [`MARK`] has nothing to say.

use std::borrow::Cow;

use super::read::{MessageHeadRef, copied, message, stated};
use crate::id::Id;
use crate::json::{JsonCursor, JsonError};
use crate::known_names::UnknownNames;
use crate::time::Time;
use crate::usage::{PricingTerms, Usage};

/// Every line that tells tokens holds these bytes; most lines do not.
pub const MARK: &[u8] = b"\"usage\"";

/// A line's part of a reply.
#[derive(Clone, Debug, Default)]
pub struct ReplyLine<'a> {
    head: MessageHeadRef<'a>,
    /// A copy of a sub-agent's message in its parent's progress, not the message itself.
    pub copy: bool,
    /// Marked as belonging to a sub-agent.
    pub sidechain: bool,
    /// Marked as copied from another session.
    pub forked: bool,
    /// The id of the line, where the message may have none.
    pub uuid: Option<Id>,
    /// When it was written.
    pub at: Option<Time>,
    /// Version of the client.
    pub version: Option<Cow<'a, str>>,
}

impl ReplyLine<'_> {
    /// The id of its message.
    pub fn id(&self) -> Option<&str> {
        self.head.id.as_deref()
    }

    /// The model, `<synthetic>` when the client wrote it.
    pub fn model(&self) -> Option<&str> {
        self.head.model.as_deref()
    }

    /// Tokens, if the line says.
    pub fn usage(&self) -> Option<Usage> {
        self.head.usage
    }

    /// What else decides the price.
    pub fn terms(&self) -> PricingTerms {
        self.head.terms
    }

    /// Whether the line says why the model stopped.
    pub fn is_stopped(&self) -> bool {
        self.head.stop.is_some()
    }
}

/// Where a line says it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineOrigin {
    /// Working directory.
    pub cwd: Option<String>,
    /// The session.
    pub session: Option<String>,
    /// The sub-agent.
    pub agent: Option<String>,
}

/// Hands out the replies of a line. What cannot be read has none.
pub fn replies(line: &[u8], mut each: impl FnMut(ReplyLine<'_>)) {
    let mut at = if line.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    // Checked at once, its keys and texts need not be checked one by one.
    let text = simdutf8::basic::from_utf8(line).ok();
    // Usually one object; glued lines hold several.
    while let Ok((reply, end)) = object(line, text, at) {
        if let Some(reply) = reply {
            each(reply);
        }
        at = end;
        if line[at..].iter().all(u8::is_ascii_whitespace) {
            return;
        }
    }
}

/// Where a line says it was written.
pub fn origin(line: &[u8]) -> LineOrigin {
    let mut origin = LineOrigin::default();
    let mut cursor = JsonCursor::new(line);
    // What was read before a line goes wrong still counts.
    let _ = cursor.object(|c, key| {
        let slot = match key {
            "cwd" => &mut origin.cwd,
            "sessionId" => &mut origin.session,
            "agentId" => &mut origin.agent,
            _ => return c.skip().map(drop),
        };
        *slot = c.text()?.map(Into::into);
        Ok(())
    });
    origin
}

fn object<'a>(
    line: &'a [u8],
    text: Option<&'a str>,
    at: usize,
) -> Result<(Option<ReplyLine<'a>>, usize), JsonError> {
    let mut cursor = JsonCursor::within(line, text, at);
    let mut reply = ReplyLine::default();
    let mut inner = None;
    let (mut kind, mut role, mut time, mut cost) = (None, None, None, None);
    let is_object = cursor.object(|c, key| {
        match key {
            "type" => kind = c.text()?,
            "message" => {
                (reply.head, role) = message(c, line, None, &mut UnknownNames::default())?;
            }
            "attachment" | "data" | "progressData" => {
                inner = None;
                c.object(|c, key| {
                    if key == "message" {
                        inner = copied(c, line)?;
                    } else {
                        c.skip()?;
                    }
                    Ok(())
                })?;
            }
            "timestamp" => time = c.text()?,
            // Only messages without an id go by that of their line.
            "uuid" if reply.head.id.is_none() => {
                reply.uuid = c.text()?.map(|text| Id::new(&text));
            }
            "version" => reply.version = c.text()?,
            "costUSD" => cost = stated(c, line)?,
            "isSidechain" => reply.sidechain = c.truth()?,
            "forkedFrom" => reply.forked = c.object(|c, _| c.skip().map(drop))?,
            _ => drop(c.skip()?),
        }
        Ok(())
    })?;
    let end = cursor.position();
    // The time at the top of the line counts before the one inside the message.
    reply.at = match time {
        Some(text) => Time::parse(&text),
        None => reply.head.time,
    };
    let said = kind.or(role);
    let reply = match (said.as_deref(), inner) {
        _ if !is_object => None,
        (Some("assistant"), _) => {
            reply.head.terms.stated = cost;
            Some(reply)
        }
        (_, Some(head)) => Some(ReplyLine {
            head,
            copy: true,
            ..reply
        }),
        _ => None,
    };
    Ok((reply.filter(|reply| reply.head.usage.is_some()), end))
}
