//! Repair: what is broken in a session is mended, and what was done is told in words.
//!
//! First the lines by themselves ([`RepairReader`]): whole objects are found again in torn lines,
//! glued ones get a line each, what clients would refuse is written as they read it, and of
//! two lines with one id the one that counts stays. Then what the lines say together
//! ([`plan`]): parents, calls and results, empty texts, times, the end of the conversation.
//! Mending one thing may uncover another, so this goes on until nothing is left to do; a
//! second repair changes nothing.
//!
//! What is healthy keeps every byte. The result can be read ([`RepairedSession::source`]) and written
//! ([`RepairedSession::each`]) without ever being in memory as a whole: only lines that changed are.

mod calls;
mod chain;
mod damaged_line;
mod draft_lines;
mod repair_plan;
mod times;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::check::{CONVERSATION, EditProblem, FAULTS};
use super::{EditLoss, RewriteCounts};
use crate::entry::{self, Entry, LineKind};
use crate::fault::{Fault, FaultKind};
use crate::graph;
use crate::id::Id;
use crate::log::{Line, Log, TranscriptSource};
use crate::session::{Index, Session, TranscriptRole};
use crate::user_input::UserInput;
use crate::view::check::faults;
use crate::view::client_profile::ClientProfile;
use crate::view::messages::{self, LiveLines};
pub use chain::NO_RESULT;
pub(super) use chain::preserved;
pub use repair_plan::plan;

use damaged_line::{LineFragment, MissingField, TextFault};
use draft_lines::{DraftLine, DraftLineBody, DraftLines, DraftSource};

/// Something that was mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairedFault {
    /// The line of the old file, from 1.
    pub line: u32,
    /// What kind of damage, in a word that scripts can match.
    pub kind: &'static str,
    /// What was done and why, for a person.
    pub what: String,
}

impl RepairedFault {
    fn new(line: u32, kind: &'static str, what: impl Into<String>) -> RepairedFault {
        RepairedFault {
            line,
            kind,
            what: what.into(),
        }
    }
}

/// Takes in the lines of a file that is to be repaired.
#[derive(Clone, Debug)]
pub struct RepairReader {
    role: TranscriptRole,
    pieces: Vec<Option<DraftLine>>,
    mended: Vec<RepairedFault>,
    /// Where the line with an id stands.
    ids: HashMap<Id, usize>,
    /// The last line of the chain.
    last: Option<Id>,
    lines: u64,
    bytes: u64,
    /// Torn pieces and how many bytes they had.
    torn: (u64, u64),
}

impl RepairReader {
    /// For a file of this kind.
    pub fn new(role: TranscriptRole) -> RepairReader {
        RepairReader {
            role,
            pieces: Vec::new(),
            mended: Vec::new(),
            ids: HashMap::new(),
            last: None,
            lines: 0,
            bytes: 0,
            torn: (0, 0),
        }
    }

    /// Takes in the next line; also what stands behind the last newline.
    pub fn push(&mut self, line: &Line<'_>) {
        self.take(line, line_condition(line));
    }

    /// Takes in a line that was looked at elsewhere, for instance by another thread. Of a line
    /// that is whole, the bytes are not looked at again.
    pub fn take(&mut self, line: &Line<'_>, looked: LineCondition) {
        self.lines += 1;
        self.bytes += line.length() + u64::from(line.ended);
        match looked {
            LineCondition::TooLong => self.pieces.push(Some(DraftLine::kept(line))),
            LineCondition::Blank => {
                self.keep(line, crate::json::Span::new(0, line.bytes.len()), true)
            }
            LineCondition::Whole(id) => {
                self.place(line, id, DraftLine::kept(line));
            }
            LineCondition::Shapeless => {
                let decoded = entry::decode(line.bytes);
                let Some(entry) = decoded.entries.first() else {
                    return self.mend(line);
                };
                let object = entry.span.of(line.bytes);
                // Places inside an object count from its own start.
                let again = (entry.span.start > 0).then(|| entry::decode(object).entries.pop());
                let again = again.flatten();
                let shown = again.as_ref().unwrap_or(entry);
                self.enter(line, entry.span, object, shown, true);
            }
            LineCondition::Damaged => self.mend(line),
        }
    }

    fn mend(&mut self, line: &Line<'_>) {
        let bytes = line.bytes;
        if bytes.starts_with(damaged_line::BYTE_ORDER_MARK) {
            self.note(
                line,
                "byte_order_mark",
                "removed a byte order mark: clients reject the line",
            );
        }
        let parts = damaged_line::parts(bytes);
        let is_object = |part: &&LineFragment| matches!(part, LineFragment::Object(_));
        let found = parts.iter().filter(is_object).count();
        if found > 1 {
            let what = format!("split {found} objects on one line into separate lines");
            self.note(line, "glued", what);
        }
        if found == 1 && parts.len() == 1 && !line.ended {
            self.note(line, "no_final_newline", "added the missing final newline");
        }
        for part in &parts {
            match *part {
                LineFragment::Object(span) => self.object(line, span),
                LineFragment::Other(span) => {
                    let what = match span.of(bytes) {
                        b"null" => "removed a line with null: some clients stop reading there",
                        _ => "removed JSON that is not an object",
                    };
                    self.note(line, "not_an_object", what);
                }
                LineFragment::Zeros(_) => {
                    self.note(line, "unreadable", "removed zero bytes");
                }
                LineFragment::Torn(span) => self.tear(line, span, found > 0),
            }
        }
        if parts.is_empty() && line.ended {
            let whole = crate::json::Span::new(0, 0);
            self.keep(line, whole, false);
        }
    }

    fn tear(&mut self, line: &Line<'_>, span: crate::json::Span, found: bool) {
        self.torn.0 += 1;
        self.torn.1 += span.len as u64;
        let len = span.len;
        let (kind, what) = if !line.ended && span.end() == line.bytes.len() {
            let what = format!("removed a truncated last line of {len} bytes");
            ("torn_tail", what)
        } else if found {
            let what = format!(
                "removed {len} bytes of an incomplete object; kept the complete ones on this line"
            );
            ("unreadable", what)
        } else {
            let what = format!("removed {len} unreadable bytes");
            ("unreadable", what)
        };
        self.note(line, kind, what);
    }

    fn object(&mut self, line: &Line<'_>, span: crate::json::Span) {
        let raw = span.of(line.bytes);
        let mut done = Vec::new();
        let text = damaged_line::sound(raw, &mut done);
        let renamed = damaged_line::renamed(&text);
        if renamed.is_some() {
            let what = "replaced a tool name or call id that the API rejects";
            self.note(line, "refused_name", what);
        }
        let mut changed = renamed.is_some();
        let mut text = renamed.map_or(text, std::borrow::Cow::Owned);
        if let Some(filled) = damaged_line::without_empty_texts(&text) {
            let what = "removed an empty text in a result: the API rejects it";
            self.note(line, FaultKind::EmptyText.name(), what);
            text = filled.into();
            changed = true;
        }
        if let Some((reformed, refusals)) = damaged_line::reformed(&text) {
            for refusal in refusals {
                let what = format!("it was put in another form: {}", refusal.why());
                self.note(line, refusal.fault().name(), what);
            }
            text = reformed.into();
            changed = true;
        }
        for done in &done {
            let (kind, what) = match done {
                TextFault::Fault(FaultKind::NotUtf8) => (
                    "not_utf8",
                    "replaced bytes that are not UTF-8 with replacement characters",
                ),
                TextFault::Fault(_) => (
                    "control_character",
                    "escaped raw control characters in texts: clients reject the line",
                ),
                TextFault::LoneSurrogate => (
                    "lone_surrogate",
                    "replaced a lone surrogate with U+FFFD: the API rejects it",
                ),
            };
            self.note(line, kind, what);
        }
        let decoded = entry::decode(&text);
        let Some(entry) = decoded.entries.first() else {
            return self.tear(line, span, false);
        };
        let kept = done.is_empty() && !changed;
        self.enter(line, span, &text, entry, kept);
    }

    /// Takes in an object; `kept` if it has the bytes that stand at `span`.
    fn enter(
        &mut self,
        line: &Line<'_>,
        span: crate::json::Span,
        object: &[u8],
        entry: &Entry,
        kept: bool,
    ) {
        let nameless = entry.uuid.is_none() && entry.kind.is_link();
        if nameless && !matches!(entry.kind, LineKind::User | LineKind::Assistant) {
            let what = "removed a metadata line without an id: clients treat it as the end";
            self.note(line, "no_uuid", what);
            return;
        }
        let salt = self.lines ^ (self.pieces.len() as u64) << 32;
        let shaped = is_shapeless(entry)
            .then(|| damaged_line::shaped(object, entry, self.last.as_ref(), salt))
            .flatten();
        let body = match (&shaped, kept) {
            (Some((bytes, _)), _) => DraftLineBody::New(bytes.as_slice().into()),
            (None, false) => DraftLineBody::New(object.into()),
            (None, true) => DraftLineBody::Kept {
                offset: line.offset + span.start as u64,
                len: span.len,
            },
        };
        for shape in shaped.iter().flat_map(|(_, shapes)| shapes) {
            self.note_shape(line, *shape);
        }
        let again = shaped.as_ref().map(|(bytes, _)| entry::decode(bytes));
        let id = match &again {
            Some(again) => again.entries.first().and_then(|entry| entry.uuid.clone()),
            None => entry.uuid.clone(),
        };
        let is_kept = matches!(body, DraftLineBody::Kept { .. });
        let blank = line.bytes.len() == span.len || is_alone(line.bytes, span);
        let (body, whole) = if is_kept && blank && line.ended {
            let (offset, len) = (line.offset, line.bytes.len());
            (DraftLineBody::Kept { offset, len }, true)
        } else {
            (body, false)
        };
        self.place(
            line,
            id,
            DraftLine {
                line: line.number,
                body,
                whole,
            },
        );
    }

    /// A later line with the same id counts in the place of the first.
    fn place(&mut self, line: &Line<'_>, id: Option<Id>, mut piece: DraftLine) {
        let Some(id) = id else {
            return self.pieces.push(Some(piece));
        };
        self.last = Some(id.clone());
        match self.ids.get(&id) {
            Some(&first) => {
                let before = self.pieces[first].as_ref().map_or(0, |piece| piece.line);
                let what = format!(
                    "moved it to line {before}, which has the same id and which it replaces"
                );
                piece.whole = false;
                self.pieces[first] = Some(piece);
                self.note(line, "duplicate_uuid", what);
            }
            None => {
                self.ids.insert(id, self.pieces.len());
                self.pieces.push(Some(piece));
            }
        }
    }

    fn keep(&mut self, line: &Line<'_>, span: crate::json::Span, whole: bool) {
        self.pieces.push(Some(DraftLine {
            line: line.number,
            body: DraftLineBody::Kept {
                offset: line.offset + span.start as u64,
                len: span.len,
            },
            whole: whole && line.ended,
        }));
    }

    fn note_shape(&mut self, line: &Line<'_>, shape: MissingField) {
        let (kind, what) = match shape {
            MissingField::Type => ("no_type", "added the missing type, from the line's role"),
            MissingField::Id => (
                "no_uuid",
                "added a missing id: clients keep only one line without an id",
            ),
            MissingField::Message => ("no_message", "moved top-level content into a message"),
            MissingField::Blocks => (
                "bare_text",
                "converted content into a list of blocks: some clients fail on it",
            ),
        };
        self.note(line, kind, what);
    }

    fn note(&mut self, line: &Line<'_>, kind: &'static str, what: impl Into<String>) {
        self.mended
            .push(RepairedFault::new(line.number, kind, what));
    }

    /// Whether every line is as it was, so that all of them mean what they meant.
    fn is_sound(&self) -> bool {
        let mut pieces = self.pieces.iter();
        self.mended.is_empty() && pieces.all(|piece| piece.as_ref().is_some_and(|it| it.whole))
    }

    /// Mends what the lines say together. `source` is the file that the lines came from,
    /// `known` what they mean, if that is known.
    pub fn finish(
        mut self,
        source: &dyn TranscriptSource,
        known: Option<Session>,
    ) -> RepairedSession {
        let known = known.filter(|_| self.is_sound());
        self.ids = HashMap::new();
        let mut mended = self.mended;
        let pieces: Vec<DraftLine> = self.pieces.into_iter().flatten().collect();
        let mut sheet = DraftLines::new(pieces);
        let mut session = known.unwrap_or_else(|| sheet.session(source, self.role));
        let spoken = spoken(&session);
        let mut gone = HashSet::new();
        let mut losses = super::edit_loss::LossCounts::default();
        if self.torn.0 > 0 {
            losses.add(
                super::LossKind::Damaged,
                self.torn.0,
                self.torn.1.div_ceil(4),
            );
        }
        for _ in 0..ROUNDS {
            let view = DraftSource {
                sheet: &sheet,
                source,
            };
            let (plan, done) = plan(&session, &view);
            if plan.is_idle() {
                break;
            }
            let Some(next) = sheet.rewritten(source, &session, &plan) else {
                break;
            };
            mended.extend(done.into_iter().map(|done| RepairedFault {
                line: sheet.origin(done.line),
                ..done
            }));
            losses.extend(plan.losses());
            let dropped = plan.dropped();
            gone.extend(dropped.filter_map(|at| session.records[at as usize].uuid.clone()));
            sheet = next;
            drop((plan, std::mem::take(&mut session)));
            session = sheet.session(source, self.role);
        }
        mended.sort_by(|a, b| (a.line, a.kind).cmp(&(b.line, b.kind)));
        RepairedSession {
            session,
            mended,
            lost: losses.list(),
            written: sheet.written(self.lines, self.bytes),
            spoken,
            gone,
            sheet,
        }
    }
}

/// What a line by itself is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineCondition {
    /// It holds nothing.
    Blank,
    /// One object that every client reads, with its id.
    Whole(Option<Id>),
    /// One object that clients would not read as it is.
    Shapeless,
    /// Nobody looks into a line of this size; it is kept as it is.
    TooLong,
    /// Anything else.
    Damaged,
}

/// Looks at a line by itself.
pub fn line_condition(line: &Line<'_>) -> LineCondition {
    let mut decoded = entry::decode_line(line);
    if decoded.has(FaultKind::TooLong) {
        return LineCondition::TooLong;
    }
    let mut faults = decoded.faults.iter();
    let sound = faults.all(|(kind, _)| *kind == FaultKind::BadTime);
    match decoded.entries.as_mut_slice() {
        _ if !sound => LineCondition::Damaged,
        [] => LineCondition::Blank,
        [entry] if damaged_line::is_refused(entry) => LineCondition::Damaged,
        [entry] if line.ended && !crate::json::has_lone_surrogate(line.bytes) => {
            let nameless = entry.uuid.is_none() && entry.kind.is_link();
            match nameless || is_shapeless(entry) || !is_alone(line.bytes, entry.span) {
                true => LineCondition::Shapeless,
                false => LineCondition::Whole(entry.uuid.take()),
            }
        }
        _ => LineCondition::Damaged,
    }
}

/// Mending uncovers more to mend, but not for long: twice is the most that was ever seen.
const ROUNDS: usize = 8;

/// Whether clients would not read an object as it is.
fn is_shapeless(entry: &Entry) -> bool {
    let bare = |block: &crate::block::Block| block.span() == block.body() && block.span().len > 0;
    matches!(entry.kind, LineKind::User | LineKind::Assistant)
        && (entry.untyped
            || entry.uuid.is_none()
            || entry.blocks.iter().any(bare)
            || entry.blocks.is_empty()
            || entry.content_on_top)
}

/// Whether an object has its line for itself.
fn is_alone(line: &[u8], span: crate::json::Span) -> bool {
    let blank = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_whitespace);
    blank(&line[..span.start]) && blank(&line[span.end()..])
}

/// A repaired session.
#[derive(Clone, Debug)]
pub struct RepairedSession {
    /// What it means now.
    pub session: Session,
    /// What was done, by line.
    pub mended: Vec<RepairedFault>,
    /// What the model will no longer see.
    pub lost: Vec<EditLoss>,
    /// What became of the lines.
    pub written: RewriteCounts,
    /// The conversation once all lines could be read.
    spoken: Vec<(Id, bool)>,
    /// Lines that were taken out.
    gone: HashSet<Id>,
    sheet: DraftLines,
}

impl RepairedSession {
    /// Repairs a file in memory.
    pub fn of(log: &Log, role: TranscriptRole) -> RepairedSession {
        let mut reading = RepairReader::new(role);
        for line in log.lines() {
            reading.push(&line);
        }
        reading.finish(log, None)
    }

    /// Whether there was nothing to do.
    pub fn is_empty(&self) -> bool {
        self.written.changed + self.written.dropped + self.written.added == 0
    }

    /// Hands out the lines of the repaired file, each without its newline. `source` is the
    /// old file. Of a line that is too long no bytes are handed out: it is copied from where
    /// [`RepairedSession::kept_at`] says.
    pub fn each(&self, source: &dyn TranscriptSource, each: impl FnMut(&Line<'_>)) {
        self.sheet.each(source, each);
    }

    /// Where a line of the repaired file stands in the old one, if it is the same there.
    pub fn kept_at(&self, line: &Line<'_>) -> Option<u64> {
        let at = (line.number as usize).checked_sub(1)?;
        match self.sheet.pieces.get(at)?.body {
            DraftLineBody::Kept { offset, .. } => Some(offset),
            DraftLineBody::Spliced(_) | DraftLineBody::New(_) => None,
        }
    }

    /// Where the bytes of [`RepairedSession::session`] can be read. `source` is the old file.
    pub fn source<'a>(&'a self, source: &'a dyn TranscriptSource) -> impl TranscriptSource + 'a {
        DraftSource {
            sheet: &self.sheet,
            source,
        }
    }

    /// What is not as it should be: `before` is what the old file said, `after` what was
    /// written, read as if for the first time.
    ///
    /// Lines that were found again may make the conversation longer, or show that it is
    /// another one than was guessed without them. Every line that is in it with them and was
    /// not taken out on purpose is there, in the same order; and every line that was in it
    /// without them is in the file.
    pub fn compare(&self, before: &ConversationIds, after: &Session) -> Vec<EditProblem> {
        let mut problems: Vec<EditProblem> = Vec::new();
        // Nobody mends what nobody looks into.
        let mendable = |fault: &Fault| fault.kind != FaultKind::TooLong;
        for fault in faults(after).into_iter().filter(mendable) {
            let (line, kind, detail) = (fault.line, fault.kind.name(), fault.detail);
            problems.push(EditProblem {
                about: FAULTS.into(),
                what: format!("line {line} would still have a fault: {kind} ({detail})"),
            });
        }
        let now = spoken(after);
        let there: HashSet<&Id> = now.iter().map(|(id, _)| id).collect();
        let mut left = now.iter();
        for (id, follows) in &self.spoken {
            if self.gone.contains(id) {
                continue;
            }
            let stays = match follows {
                true => there.contains(id),
                false => left.any(|(other, _)| other == id),
            };
            if !stays {
                problems.push(EditProblem {
                    about: CONVERSATION.into(),
                    what: format!("the line {id} would no longer be where it was"),
                });
                break;
            }
        }
        let lost = |id: &Id| !self.gone.contains(id) && after.find(id).is_none();
        if let Some(id) = before.0.iter().find(|id| lost(id)) {
            problems.push(EditProblem {
                about: CONVERSATION.into(),
                what: format!("the line {id} would be lost"),
            });
        }
        problems.extend(clients(after));
        problems
    }
}

/// The lines of a conversation, which is all that a comparison needs of an old session.
#[derive(Clone, Debug)]
pub struct ConversationIds(Vec<Id>);

impl ConversationIds {
    /// What a session says.
    pub fn of(session: &Session) -> ConversationIds {
        ConversationIds(spoken(session).into_iter().map(|(id, _)| id).collect())
    }
}

/// Lines of the conversation in order, and whether they follow others wherever those are:
/// results their calls, the lines of a message its first.
fn spoken(session: &Session) -> Vec<(Id, bool)> {
    let live = messages::live_lines(session, ClientProfile::Strict);
    let mut begun = HashSet::new();
    let mut lines = Vec::new();
    for record in live.into_iter().map(|at| &session.records[at as usize]) {
        let follows = record.input == UserInput::Results
            || record
                .message()
                .is_some_and(|message| !begun.insert(message));
        let id = record.uuid.clone().filter(|_| record.is_conversation());
        lines.extend(id.map(|id| (id, follows)));
    }
    lines
}

/// What clients would not resume, or lose though it could be kept.
pub(super) fn clients(session: &Session) -> Vec<EditProblem> {
    let live = messages::live_lines(session, ClientProfile::Strict);
    let said = |at: &&Index| session.records[**at as usize].is_conversation();
    let kept = chain::preserved(session, &graph::links(session), &live);
    let mut problems = Vec::new();
    if !live.iter().any(|at| said(&at)) {
        return problems;
    }
    let clients = ClientProfile::that_matter(session).into_iter();
    for profile in clients.chain([ClientProfile::Strict]) {
        let name = profile.name();
        let LiveLines::Lines(lines) = messages::outcome(session, profile) else {
            let what = format!("{name} would not resume it");
            let about = name.into();
            problems.push(EditProblem { about, what });
            continue;
        };
        let sent: HashSet<Index> = lines.into_iter().collect();
        let mut lost = live.iter().filter(said);
        if let Some(at) = lost.find(|at| !sent.contains(at) && !kept.contains(at)) {
            let line = session.records[*at as usize].line;
            let what = format!("{name} would lose line {line}");
            let about = name.into();
            problems.push(EditProblem { about, what });
        }
    }
    problems
}
