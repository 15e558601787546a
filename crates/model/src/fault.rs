//! What was wrong with a line. Faults are data: they travel beside the session.

use std::collections::BTreeMap;
use std::ops::Deref;

/// The detail of a line that is `null`: some clients stumble over it, over no other value.
pub const NULL_LINE: &str = "null, not an object";

/// Something in the file that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, counted from 1.
    pub line: u32,
    /// What kind of fault.
    pub kind: FaultKind,
    /// What exactly, for a person.
    pub detail: String,
}

/// How many faults of each kind are kept; all are counted. A file may have a million lines that
/// cannot be read, and what is told about them takes far more memory than they do.
pub const MOST_FAULTS: usize = 1_000;

/// Faults in the order they were found: the first [`MOST_FAULTS`] of each kind, and how many there
/// are of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultList {
    kept: Vec<Fault>,
    counts: BTreeMap<FaultKind, usize>,
    null_line: Option<u32>,
    last_line: u32,
}

impl FaultList {
    /// Adds a fault.
    pub fn push(&mut self, fault: Fault) {
        if self.null_line.is_none() && fault.detail == NULL_LINE {
            self.null_line = Some(fault.line);
        }
        self.last_line = self.last_line.max(fault.line);
        let count = self.counts.entry(fault.kind).or_default();
        *count += 1;
        if *count <= MOST_FAULTS {
            self.kept.push(fault);
        }
    }

    /// How many there are in all, kept or not.
    pub fn found(&self) -> usize {
        self.counts.values().sum()
    }

    /// How many there are of each kind, kept or not.
    pub fn counts(&self) -> &BTreeMap<FaultKind, usize> {
        &self.counts
    }

    /// How many of a kind are counted and not kept.
    pub fn left_out(&self, kind: FaultKind) -> usize {
        let count = self.counts.get(&kind).copied().unwrap_or(0);
        count.saturating_sub(MOST_FAULTS)
    }

    /// The kinds of which not all are kept, and how many more there are of each.
    pub fn all_left_out(&self) -> impl Iterator<Item = (FaultKind, usize)> {
        let kinds = self.counts.keys().map(|kind| (*kind, self.left_out(*kind)));
        kinds.filter(|(_, more)| *more > 0)
    }

    /// The first line that is `null`.
    pub(crate) fn null_line(&self) -> Option<u32> {
        self.null_line
    }

    /// The last line with a fault; 0 if there is none.
    pub(crate) fn last_line(&self) -> u32 {
        self.last_line
    }

    /// Puts those that are kept in the order of their lines.
    pub(crate) fn sort(&mut self) {
        self.kept.sort_by_key(|fault| (fault.line, fault.kind));
    }
}

impl Deref for FaultList {
    type Target = [Fault];

    fn deref(&self) -> &[Fault] {
        &self.kept
    }
}

impl IntoIterator for FaultList {
    type Item = Fault;
    type IntoIter = std::vec::IntoIter<Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.into_iter()
    }
}

impl<'a> IntoIterator for &'a FaultList {
    type Item = &'a Fault;
    type IntoIter = std::slice::Iter<'a, Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.iter()
    }
}

impl<const N: usize> PartialEq<[Fault; N]> for FaultList {
    fn eq(&self, other: &[Fault; N]) -> bool {
        self.kept == other
    }
}

/// The kinds of fault, each with the name that scripts see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// The line is not JSON; it is kept and shown, but means nothing.
    Unreadable,
    /// The last line has no newline and is not a whole object: the writer was cut off.
    TornTail,
    /// The last line is whole but has no newline; some clients would write behind it.
    NoFinalNewline,
    /// The line is too long, or made of too many pieces, to be decoded; it is kept as it is.
    TooLong,
    /// JSON, but not an object.
    NotAnObject,
    /// Two or more objects on one line; each is read.
    Glued,
    /// Bytes that are not UTF-8; read with replacement characters.
    NotUtf8,
    /// A raw control character inside a string; clients refuse the line.
    ControlCharacter,
    /// The file begins with a byte order mark.
    ByteOrderMark,
    /// A timestamp that is no time.
    BadTime,
    /// Two lines with one uuid; the later one counts, in the place of the first.
    DuplicateUuid,
    /// The parent stands nowhere in the file.
    MissingParent,
    /// The line is its own ancestor.
    Cycle,
    /// A tool call that never got its result, though the conversation went on.
    CallWithoutResult,
    /// A tool result whose call is not in the file.
    ResultWithoutCall,
    /// Two calls, or two results, with one id.
    DuplicateCall,
    /// The name of a tool or the id of a call that the API refuses.
    RefusedName,
    /// Half a surrogate pair, which the API refuses.
    LoneSurrogate,
    /// A text without a visible character, which the API refuses.
    EmptyText,
    /// The conversation ends with an API error that the client wrote down as a reply.
    ErrorTail,
    /// Thinking without its text or its signature, which the API refuses.
    UnsignedThinking,
    /// A reply of thinking alone, which the API refuses.
    ThinkingAlone,
    /// A message of nothing, which the API refuses.
    EmptyMessage,
    /// A call without an id or with an input that is no object, which the API refuses.
    BadCall,
    /// A result that names no call or holds something else than texts and media.
    BadResult,
    /// A block that the API does not know, or media without their source.
    BadBlock,
}

impl FaultKind {
    /// Every kind, in the order of this list.
    pub const ALL: [FaultKind; 26] = [
        FaultKind::Unreadable,
        FaultKind::TornTail,
        FaultKind::NoFinalNewline,
        FaultKind::TooLong,
        FaultKind::NotAnObject,
        FaultKind::Glued,
        FaultKind::NotUtf8,
        FaultKind::ControlCharacter,
        FaultKind::ByteOrderMark,
        FaultKind::BadTime,
        FaultKind::DuplicateUuid,
        FaultKind::MissingParent,
        FaultKind::Cycle,
        FaultKind::CallWithoutResult,
        FaultKind::ResultWithoutCall,
        FaultKind::DuplicateCall,
        FaultKind::RefusedName,
        FaultKind::LoneSurrogate,
        FaultKind::EmptyText,
        FaultKind::ErrorTail,
        FaultKind::UnsignedThinking,
        FaultKind::ThinkingAlone,
        FaultKind::EmptyMessage,
        FaultKind::BadCall,
        FaultKind::BadResult,
        FaultKind::BadBlock,
    ];

    /// The name in `--json` rows.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Unreadable => "unreadable",
            FaultKind::TornTail => "torn_tail",
            FaultKind::NoFinalNewline => "no_final_newline",
            FaultKind::TooLong => "too_long",
            FaultKind::NotAnObject => "not_an_object",
            FaultKind::Glued => "glued",
            FaultKind::NotUtf8 => "not_utf8",
            FaultKind::ControlCharacter => "control_character",
            FaultKind::ByteOrderMark => "byte_order_mark",
            FaultKind::BadTime => "bad_time",
            FaultKind::DuplicateUuid => "duplicate_uuid",
            FaultKind::MissingParent => "missing_parent",
            FaultKind::Cycle => "cycle",
            FaultKind::CallWithoutResult => "call_without_result",
            FaultKind::ResultWithoutCall => "result_without_call",
            FaultKind::DuplicateCall => "duplicate_call",
            FaultKind::RefusedName => "refused_name",
            FaultKind::LoneSurrogate => "lone_surrogate",
            FaultKind::EmptyText => "empty_text",
            FaultKind::ErrorTail => "error_tail",
            FaultKind::UnsignedThinking => "unsigned_thinking",
            FaultKind::ThinkingAlone => "thinking_alone",
            FaultKind::EmptyMessage => "empty_message",
            FaultKind::BadCall => "bad_call",
            FaultKind::BadResult => "bad_result",
            FaultKind::BadBlock => "bad_block",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_faults_the_first_of_each_kind_are_kept_and_all_are_counted() {
        let mut faults = FaultList::default();
        let mut push = |line: usize, kind, detail: &str| {
            faults.push(Fault {
                line: line as u32,
                kind,
                detail: detail.to_owned(),
            });
        };
        for line in 1..=MOST_FAULTS + 500 {
            push(line, FaultKind::NotAnObject, "JSON, but not an object");
        }
        push(2_000, FaultKind::NotAnObject, NULL_LINE);
        push(2_001, FaultKind::BadTime, "`soon` is not a time");
        assert_eq!(faults.len(), MOST_FAULTS + 1);
        assert_eq!(faults.found(), MOST_FAULTS + 502);
        let more: Vec<_> = faults.all_left_out().collect();
        assert_eq!(more, [(FaultKind::NotAnObject, 501)]);
        assert_eq!(faults.last().map(|fault| fault.line), Some(2_001));
        assert_eq!(
            (faults.null_line(), faults.last_line()),
            (Some(2_000), 2_001)
        );
    }
}
