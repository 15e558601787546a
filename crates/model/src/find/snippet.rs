//! What is shown of a match.

use std::ops::Range;

use crate::secrets::SecretFinder;

/// A match and the text around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchSnippet {
    /// What stands before it.
    pub before: String,
    /// What matched.
    pub hit: String,
    /// What stands behind it.
    pub after: String,
}

impl MatchSnippet {
    /// All of it.
    pub fn whole(&self) -> String {
        format!("{}{}{}", self.before, self.hit, self.after)
    }
}

/// How many characters are shown before and behind a match.
const AROUND: usize = 100;

/// How many characters of a match are shown.
const LONGEST: usize = 400;

/// The match at `range` with the rest of its line and `lines` more on each side. Long lines
/// are cut. Every text that search shows is made here.
pub fn snippet(text: &str, range: Range<usize>, lines: usize) -> MatchSnippet {
    let room = room(lines);
    let (before, hit, after) = (
        &text[..range.start],
        &text[range.clone()],
        &text[range.end..],
    );
    let start = memchr::memrchr_iter(b'\n', before.as_bytes()).nth(lines);
    let kept = &before[start.map_or(0, |at| at + 1)..];
    let first = kept.char_indices().rev().take(room).last();
    let first = first.map_or(0, |(at, _)| at);
    let cut = if first > 0 { "…" } else { "" };
    let end = memchr::memchr_iter(b'\n', after.as_bytes()).nth(lines);
    let rest = &after[..end.unwrap_or(after.len())];
    MatchSnippet {
        before: format!("{cut}{}", &kept[first..]),
        hit: clipped(hit, LONGEST),
        after: clipped(rest.strip_suffix('\r').unwrap_or(rest), room),
    }
}

/// How many characters are shown on each side of a match.
fn room(lines: usize) -> usize {
    AROUND.saturating_mul(lines.saturating_add(1))
}

/// How far before what is shown a secret may begin, and how far behind it may end. Most are
/// shorter; looking through whole outputs for every match would take longer than the search.
const REACH: usize = 4096;

/// The match at `range` as [`snippet`] has it, with secrets masked. A match inside a secret
/// becomes the mask.
pub fn masked_snippet(
    secrets: &SecretFinder,
    text: &str,
    range: Range<usize>,
    lines: usize,
) -> MatchSnippet {
    let reach = REACH.saturating_add(room(lines).saturating_mul(4));
    let start = text.floor_char_boundary(range.start.saturating_sub(reach));
    let end = text.ceil_char_boundary(range.end.saturating_add(reach).min(text.len()));
    let near = range.start - start..range.end - start;
    match secrets.mask_around(&text[start..end], near) {
        Some((masked, range)) => snippet(&masked, range, lines),
        None => snippet(text, range, lines),
    }
}

fn clipped(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
