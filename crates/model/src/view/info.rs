//! The inventory of a file: what stands in it, and what was never seen before.

use std::collections::BTreeMap;

use crate::block::BlockKind;
use crate::session::Session;

/// What stands in a file.
#[derive(Clone, Debug, Default)]
pub struct TranscriptInfo {
    /// Lines.
    pub lines: u32,
    /// Blank lines.
    pub blank_lines: u32,
    /// Lines by type and subtype.
    pub types: BTreeMap<String, u32>,
    /// Types and fields never seen before, with versions and counts.
    pub unknown: BTreeMap<String, BTreeMap<String, u32>>,
    /// Versions of the client with line counts, in order of appearance.
    pub versions: Vec<(String, u32)>,
    /// Stop reasons of assistant lines' messages.
    pub stop_reasons: BTreeMap<String, u32>,
    /// Content blocks by kind.
    pub blocks: BTreeMap<String, u32>,
    /// Calls by tool.
    pub tools: BTreeMap<String, u32>,
    /// Models.
    pub models: Vec<String>,
}

/// Takes the inventory.
pub fn info(session: &Session) -> TranscriptInfo {
    let mut info = TranscriptInfo {
        lines: session.lines().max(session.faults.last_line()),
        blank_lines: session.blank_lines,
        types: session
            .labels
            .iter()
            .map(|(label, count)| (label.to_owned(), count))
            .collect(),
        unknown: session.unknown.clone(),
        versions: session
            .versions
            .iter()
            .map(|(version, lines)| (version.to_owned(), lines))
            .collect(),
        models: session.models.texts(),
        ..TranscriptInfo::default()
    };
    for message in &session.messages {
        let stop = message.stop().map_or("null", |stop| session.text(stop));
        *info.stop_reasons.entry(stop.to_owned()).or_default() += 1;
    }
    for block in &session.blocks {
        *info
            .blocks
            .entry(session.type_of(block).to_owned())
            .or_default() += 1;
        if block.kind == BlockKind::ToolUse {
            let tool = session.tool_of(block).unwrap_or("?");
            *info.tools.entry(tool.to_owned()).or_default() += 1;
        }
    }
    info
}
