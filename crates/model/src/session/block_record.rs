//! A piece of content as a session keeps it: where it stands, and numbers for its names.

use super::interner::OptionalIndex;
use super::{Index, LineRetention, Session};
use crate::block::{Block, BlockKind, ContentBlock};
use crate::json::{ShortSpan, Span};
use crate::refused_content::RefusalReason;

/// A piece of content; its text stays in the file, its names with the session:
/// [`Session::id_of`], [`Session::tool_of`], [`Session::subject_of`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRecord {
    /// Equal blocks have equal prints.
    pub print: u64,
    whole: ShortSpan,
    inner: ShortSpan,
    name: OptionalIndex,
    tool: OptionalIndex,
    about: OptionalIndex,
    /// What it is.
    pub kind: BlockKind,
    /// A result that reports a failure.
    pub is_error: bool,
    /// Text or thinking without a visible character; a result that holds such a text.
    pub blank: bool,
    /// Why the API refuses it, wherever it stands.
    pub refusal: Option<RefusalReason>,
}

impl BlockRecord {
    /// The whole block in its record; for plain string content, the string.
    pub fn span(&self) -> Span {
        self.whole.span()
    }

    /// The text, the input or the result inside the block.
    pub fn body(&self) -> Span {
        self.inner.span()
    }

    /// The id that pairs calls and results, as a number: equal ids of one session have equal
    /// ones.
    pub fn key(&self) -> Option<Index> {
        self.name.get()
    }

    pub(super) fn tool(&self) -> Option<Index> {
        self.tool.get()
    }

    pub(super) fn about(&self) -> Option<Index> {
        self.about.get()
    }
}

impl ContentBlock for BlockRecord {
    fn kind(&self) -> BlockKind {
        self.kind
    }

    fn body(&self) -> Span {
        self.inner.span()
    }
}

impl Session {
    /// Keeps a block. `start` is where its record begins in its line: spans of blocks count
    /// from the start of the line, those of parts from the record's.
    pub(super) fn keep_block(&mut self, block: &Block, start: usize) {
        let name = block.id().map(|id| self.pool.add(id));
        let tool = block.tool().map(|tool| self.names.add(tool));
        let subject = block.subject();
        let subject = subject.filter(|_| self.keeps == LineRetention::All);
        let about = subject.map(|subject| self.subjects.push(subject));
        self.blocks.push(BlockRecord {
            print: block.print,
            whole: ShortSpan::behind(block.span(), start),
            inner: ShortSpan::behind(block.body(), start),
            name: name.into(),
            tool: tool.into(),
            about: about.into(),
            kind: block.kind,
            is_error: block.is_error,
            blank: block.blank,
            refusal: block.refusal,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_line_stays_small() {
        use crate::entry::LineKind;
        use crate::session::{EntryRecord, Message, ToolCall};
        assert!(
            size_of::<BlockRecord>() <= 40,
            "{}",
            size_of::<BlockRecord>()
        );
        assert!(size_of::<Block>() <= 40, "{}", size_of::<Block>());
        assert!(size_of::<LineKind>() <= 1, "{}", size_of::<LineKind>());
        assert!(
            size_of::<EntryRecord>() <= 72,
            "{}",
            size_of::<EntryRecord>()
        );
        assert!(size_of::<ToolCall>() <= 32, "{}", size_of::<ToolCall>());
        assert!(size_of::<Message>() <= 64, "{}", size_of::<Message>());
    }
}
