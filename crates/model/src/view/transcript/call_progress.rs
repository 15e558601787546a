//! What calls without a result printed last.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use crate::entry::LineKind;
use crate::json;
use crate::log::TranscriptSource;
use crate::session::{EntryRecord, Index, Session, ToolCall};

/// The last line of progress that printed something, of each call without a result.
///
/// Read when first asked for, in one pass: a session can have as many running calls as lines.
#[derive(Default)]
pub(super) struct CallProgress {
    last: OnceLock<HashMap<String, Index>>,
}

impl CallProgress {
    /// The last thing a call printed.
    pub(super) fn of(
        &self,
        session: &Session,
        source: &dyn TranscriptSource,
        call: &ToolCall,
    ) -> String {
        let last = self.last.get_or_init(|| last(session, source));
        let line = last
            .get(session.call_id(call))
            .filter(|line| **line >= call.record);
        let line = line.map(|line| session.bytes_of(source, &session.records[*line as usize]));
        line.and_then(|bytes| output(&bytes)).unwrap_or_default()
    }
}

fn last(session: &Session, source: &dyn TranscriptSource) -> HashMap<String, Index> {
    let mut last: HashMap<String, Index> = HashMap::new();
    let running = session.calls.iter().filter(|call| call.result.is_none());
    last.extend(running.map(|call| (session.call_id(call).to_owned(), 0)));
    let is_progress = |(_, record): &(usize, &EntryRecord)| record.kind == LineKind::Progress;
    for (at, record) in session.records.iter().enumerate().filter(is_progress) {
        let bytes = session.bytes_of(source, record);
        let Some(call) = text(&bytes, &["parentToolUseID"]) else {
            continue;
        };
        if let Some(line) = last.get_mut(&*call)
            && output(&bytes).is_some()
        {
            *line = at as Index;
        }
    }
    last
}

/// What a line of progress printed, if that is anything.
fn output(bytes: &[u8]) -> Option<String> {
    let output = text(bytes, &["data", "fullOutput"]).or_else(|| text(bytes, &["data", "output"]));
    let output = output.filter(|output| !output.trim().is_empty());
    output.map(Cow::into_owned)
}

fn text<'a>(bytes: &'a [u8], path: &[&str]) -> Option<Cow<'a, str>> {
    json::find(bytes, path).map(|span| json::string(span.of(bytes)))
}
