//! How full the context is when a session goes on, and what of it a summary leaves standing.

use std::collections::HashSet;

use crate::block::BlockKind;
use crate::entry::LineKind;
use crate::session::{Index, Session};
use crate::view::client_profile::ClientProfile;
use crate::view::messages;

/// Tokens in the context after the last reply: what it says itself, and an estimate of what
/// stands behind it.
pub fn used_tokens(session: &Session) -> u64 {
    let lines = messages::live_lines(session, ClientProfile::Strict);
    let boundary = boundary(session, &lines);
    let mut behind = 0;
    for &at in lines.iter().rev() {
        let record = &session.records[at as usize];
        let message = record.message().map(|at| &session.messages[at as usize]);
        let counted = message.filter(|message| message.has_usage() && !message.synthetic);
        match counted.map(|message| session.usage_of(message).total()) {
            // What a kept line says of the context was true before the summary.
            Some(tokens @ 1..) if boundary.is_none_or(|boundary| at > boundary) => {
                return behind + tokens;
            }
            _ => behind += tokens_of(session, at),
        }
    }
    behind
}

/// The last lines that can stay said when all before them becomes a summary: they begin with
/// a reply, hold every call of their results, and take no more than `most` tokens. Of a
/// conversation that is small, the last reply stays, if it takes no more than `alone`.
pub fn tail(session: &Session, most: u64, alone: u64) -> Vec<Index> {
    let mut lines = messages::live_lines(session, ClientProfile::Strict);
    if let Some(boundary) = boundary(session, &lines) {
        // Nothing is kept twice: readers that walk the chain would not find it.
        lines.retain(|&at| at > boundary);
    }
    lines.retain(|&at| session.records[at as usize].uuid.is_some());
    let mut size = 0;
    let mut best = None;
    for (place, &at) in lines.iter().enumerate().rev() {
        size += tokens_of(session, at);
        let room = if best.is_none() {
            alone.max(most)
        } else {
            most
        };
        if size > room {
            break;
        }
        if begins_reply(session, at) && is_whole(session, &lines[place..]) {
            best = Some(place);
        }
    }
    best.map_or_else(Vec::new, |place| lines.split_off(place))
}

fn boundary(session: &Session, lines: &[Index]) -> Option<Index> {
    let first = *lines.first()?;
    let kind = &session.records[first as usize].kind;
    (*kind == LineKind::CompactBoundary).then_some(first)
}

fn tokens_of(session: &Session, at: Index) -> u64 {
    (session.records[at as usize].len() / 4) as u64
}

/// Whether a reply of the model begins with this line.
fn begins_reply(session: &Session, at: Index) -> bool {
    let message = session.records[at as usize].message();
    message.is_some_and(|message| {
        let message = &session.messages[message as usize];
        !message.synthetic && message.records.to_vec().iter().min() == Some(&at)
    })
}

/// Whether every result among these lines has its call there.
fn is_whole(session: &Session, lines: &[Index]) -> bool {
    let keys = |kind: BlockKind| {
        let blocks = lines
            .iter()
            .flat_map(|&at| session.blocks_of(&session.records[at as usize]));
        blocks
            .filter(move |block| block.kind == kind)
            .filter_map(|block| block.key())
    };
    let calls: HashSet<Index> = keys(BlockKind::ToolUse).collect();
    keys(BlockKind::ToolResult).all(|key| calls.contains(&key))
}
