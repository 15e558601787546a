//! What was wrong with a line. Faults are data: they travel beside the session.

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
}

impl FaultKind {
    /// Every kind, in the order of this list.
    pub const ALL: [FaultKind; 16] = [
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
        }
    }
}
