//! Writes the lines of the new session by splicing those of the old one.
//!
//! Line by line in the order of the file, so that a session of any size takes no more memory
//! than its longest line.

use std::borrow::Cow;
use std::ops::{AddAssign, Range};
use std::sync::Arc;

use super::compress;
use super::copy_identity::CopyIdentity;
use super::id_references::{ReferenceField, places};
use super::inserted_lines;
use super::plan::{BlockChange, EditPlan, LineChange, ResultCopyChange};
use super::replacement_map::ReplacementMap;
use crate::block::BlockKind;
use crate::entry::LineKind;
use crate::id::Id;
use crate::json::{self, JsonCursor, Span};
use crate::log::Line;
use crate::session::{BlockRecord, EntryRecord, Index, Session};

/// What was written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RewriteCounts {
    /// Lines that say what they said; they may belong to another session now.
    pub kept: u64,
    /// Lines in which something was changed.
    pub changed: u64,
    /// Lines that went.
    pub dropped: u64,
    /// Lines that were not there before.
    pub added: u64,
    /// Bytes that were read.
    pub before: u64,
    /// Bytes that were written.
    pub after: u64,
}

impl AddAssign for RewriteCounts {
    fn add_assign(&mut self, other: RewriteCounts) {
        self.kept += other.kept;
        self.changed += other.changed;
        self.dropped += other.dropped;
        self.added += other.added;
        self.before += other.before;
        self.after += other.after;
    }
}

/// Writes lines as a plan wants them.
pub struct LineRewriter<'a> {
    session: &'a Session,
    plan: &'a EditPlan,
    identity: Option<&'a CopyIdentity>,
    /// The records in the order of the file, if that is another than that of their numbers:
    /// one that stands for an earlier one with its id has that one's number.
    order: Option<Arc<[Index]>>,
    /// The next of these.
    next: usize,
    written: RewriteCounts,
}

/// One object of a line: what is to be spliced.
#[derive(Default)]
struct ObjectEdits {
    edits: Vec<(Span, Vec<u8>)>,
    /// Something else than whose line it is has changed.
    changed: bool,
    /// It says nothing without a line that is gone.
    orphaned: bool,
}

impl<'a> LineRewriter<'a> {
    /// A pen for these lines; without an identity they stay those of the same session.
    pub fn new(
        session: &'a Session,
        plan: &'a EditPlan,
        identity: Option<&'a CopyIdentity>,
    ) -> LineRewriter<'a> {
        let sorted = session.records.is_sorted_by_key(|record| record.offset);
        let order = (!sorted).then(|| {
            let mut order: Vec<Index> = (0..session.records.len() as Index).collect();
            order.sort_unstable_by_key(|&at| session.records[at as usize].offset);
            order.into()
        });
        LineRewriter {
            session,
            plan,
            identity,
            order,
            next: 0,
            written: RewriteCounts::default(),
        }
    }

    /// Another pen for the same lines, from the one with this number on. What it writes is what
    /// one pen for all would write there.
    #[must_use]
    pub fn from_line(&self, line: u32) -> LineRewriter<'a> {
        let records = &self.session.records;
        let next = match &self.order {
            Some(order) => order.partition_point(|&at| records[at as usize].line < line),
            None => records.partition_point(|record| record.line < line),
        };
        LineRewriter {
            order: self.order.clone(),
            next,
            written: RewriteCounts::default(),
            ..*self
        }
    }

    /// The nth record of the file.
    fn nth(&self, nth: usize) -> Option<Index> {
        match &self.order {
            Some(order) => order.get(nth).copied(),
            None => (nth < self.session.records.len()).then_some(nth as Index),
        }
    }

    /// Takes the next line of the old file and adds what becomes of it to `out`, newline
    /// included.
    ///
    /// A line that is too long stays as it is, and nothing is added for it: who writes copies
    /// it, and ends it with a newline.
    pub fn line(&mut self, line: &Line<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        self.written.before += line.length() + u64::from(line.ended);
        if line.is_omitted() {
            self.written.kept += 1;
            self.written.after += line.length() + 1;
            return;
        }
        let first = self.next;
        while let Some(at) = self.nth(self.next)
            && self.session.records[at as usize].line == line.number
        {
            self.insert(at, out);
            self.next += 1;
        }
        if first == self.next {
            self.strange(line, out);
        } else {
            self.objects(first..self.next, line, out);
        }
        self.written.after += (out.len() - start) as u64;
    }

    /// What was written so far.
    pub fn written(&self) -> RewriteCounts {
        self.written
    }

    /// Adds what comes behind the last line.
    pub fn end(&mut self, out: &mut Vec<u8>) -> RewriteCounts {
        let start = out.len();
        self.insert(self.session.records.len() as Index, out);
        if let Some((None, leaf)) = &self.plan.note {
            out.extend_from_slice(&self.note(leaf));
            self.written.added += 1;
        }
        self.written.after += (out.len() - start) as u64;
        self.written
    }

    /// A new line that says where to go on.
    fn note(&self, leaf: &Id) -> Vec<u8> {
        let leaf = self.renamed(leaf).unwrap_or_else(|| leaf.clone());
        let own = self
            .session
            .first_session_id
            .as_ref()
            .map(ToString::to_string);
        let session = self
            .identity
            .map(|identity| identity.session.clone())
            .or(own);
        let session = session.unwrap_or_default();
        (inserted_lines::last_prompt(&session, &leaf, true) + "\n").into_bytes()
    }

    fn insert(&mut self, before: Index, out: &mut Vec<u8>) {
        for line in self.plan.inserted.get(&before).into_iter().flatten() {
            let mut draft = ObjectEdits::default();
            let object = line.as_bytes();
            let _ = places(object, |place, span| {
                // A line of ours has its own name already, and names what stays.
                if place != ReferenceField::Own {
                    self.place(place, span, object, None, &mut draft);
                }
            });
            json::splice_into(out, object, &draft.edits);
            out.push(b'\n');
            self.written.added += 1;
        }
    }

    /// A line without an object: kept as it is, unless its writer was cut off.
    fn strange(&mut self, line: &Line<'_>, out: &mut Vec<u8>) {
        if !line.ended {
            self.written.dropped += 1;
            return;
        }
        self.written.kept += 1;
        out.extend_from_slice(line.bytes);
        out.push(b'\n');
    }

    fn objects(&mut self, records: Range<usize>, line: &Line<'_>, out: &mut Vec<u8>) {
        let many = records.len();
        let mut edits = Vec::new();
        // A last line that lacked its newline gets one.
        let (mut changed, mut gone) = (!line.ended, 0);
        for at in records.filter_map(|nth| self.nth(nth)) {
            let record = &self.session.records[at as usize];
            let start = (record.offset - line.offset) as usize;
            let span = Span::new(start, start + record.len());
            let draft = self.draft(at, record, span.of(line.bytes));
            if self.plan.is_dropped(at) || draft.orphaned {
                gone += 1;
                edits.push((span, Vec::new()));
                continue;
            }
            changed |= draft.changed;
            let moved = draft.edits.into_iter().map(|(place, new)| {
                let start = place.start + span.start;
                (Span::new(start, start + place.len), new)
            });
            edits.extend(moved);
        }
        if gone == many {
            self.written.dropped += 1;
            return;
        }
        if changed || gone > 0 {
            self.written.changed += 1;
        } else {
            self.written.kept += 1;
        }
        if edits.is_empty() {
            out.extend_from_slice(line.bytes);
        } else {
            json::splice_into(out, line.bytes, &edits);
        }
        out.push(b'\n');
    }

    fn draft(&self, at: Index, record: &EntryRecord, object: &[u8]) -> ObjectEdits {
        let mut draft = ObjectEdits::default();
        if self.plan.is_dropped(at) {
            return draft;
        }
        let change = self.plan.whole_change(self.session, at);
        let change = change.as_deref();
        let leaf = self.plan.note.as_ref().filter(|note| note.0 == Some(at));
        if let Some((_, leaf)) = leaf {
            self.explicit(leaf, object, &mut draft);
        }
        self.calls(record, object, &mut draft);
        // What cannot be read to its end is left as it is.
        let fork = self.fork_of(record);
        let (mut parent, mut time, mut forked) = (false, false, false);
        let _ = places(object, |place, span| {
            parent |= place == ReferenceField::Parent;
            time |= place == ReferenceField::Time;
            if let (ReferenceField::Fork, Some(value)) = (place, &fork) {
                forked = true;
                // What stood within goes with it.
                let within = |edit: &Span| edit.start >= span.start && edit.end() <= span.end();
                draft.edits.retain(|(edit, _)| !within(edit));
                return draft.edits.push((span, value.clone().into_bytes()));
            }
            if place != ReferenceField::Leaf || leaf.is_none() {
                self.place(place, span, object, change, &mut draft);
            }
        });
        if let Some(value) = fork.filter(|_| !forked) {
            draft.append(object, "forkedFrom", &value);
        }
        if let Some(change) = change {
            if let (false, Some(value)) = (parent, self.parent_value(change)) {
                draft.add(object, "parentUuid", &value);
            }
            if let Some(at) = change.time.filter(|_| !time) {
                draft.add(object, "timestamp", &quoted(&at.to_string()));
            }
            self.content(record, object, change, &mut draft);
            if let Some(percent) = change.mark {
                draft.mark(object, percent);
            }
        }
        draft
    }

    /// Lets a line say where to go on, whatever comes behind it.
    fn explicit(&self, leaf: &Id, object: &[u8], draft: &mut ObjectEdits) {
        let leaf = self.renamed(leaf).unwrap_or_else(|| leaf.clone());
        let wishes = [
            ("leafUuid", json::quoted(&leaf.to_string())),
            ("explicit", "true".to_owned()),
        ];
        let mut more = String::new();
        for (key, new) in wishes {
            match json::find(object, &[key]) {
                Some(span) => draft.change(span, new.into_bytes()),
                None => more += &format!(",{}:{new}", json::quoted(key)),
            }
        }
        if !more.is_empty() {
            let end = object.trim_ascii_end().len().saturating_sub(1);
            draft.change(Span::new(end, end), more.into_bytes());
        }
    }

    fn place(
        &self,
        place: ReferenceField,
        span: Span,
        object: &[u8],
        change: Option<&LineChange>,
        draft: &mut ObjectEdits,
    ) {
        let raw = span.of(object);
        let text = || (raw.first() == Some(&b'"')).then(|| json::string(raw));
        match place {
            ReferenceField::Own => {
                if let (Some(identity), Some(old)) = (self.renames(), text()) {
                    draft.name(span, &identity.line(&Id::new(&old)));
                }
            }
            ReferenceField::Parent => self.parent(span, raw, change, draft),
            ReferenceField::Line | ReferenceField::Leaf => {
                if let Some(old) = text() {
                    self.other(place, span, &Id::new(&old), &self.plan.redirect, draft);
                }
            }
            ReferenceField::Anchor => {
                // Beside the conversation it moved nothing, and must not begin to.
                let Some(old) = text().map(|old| Id::new(&old)) else {
                    return;
                };
                let sent = |at: Index| self.plan.is_sent(at);
                if self.session.find(&old).is_some_and(sent) {
                    self.other(ReferenceField::Line, span, &old, &self.plan.redirect, draft);
                } else if let Some(new) = self.renamed(&old) {
                    draft.name(span, &new);
                }
            }
            ReferenceField::Backup => {
                if let Some(old) = text() {
                    self.other(place, span, &Id::new(&old), &self.plan.history, draft);
                }
            }
            ReferenceField::First | ReferenceField::Last | ReferenceField::List => {
                self.kept(place, span, raw, draft)
            }
            ReferenceField::Session => {
                if let (Some(identity), Some(old)) = (self.other_session(), text())
                    && old != identity.session
                {
                    draft.edits.push((span, quoted(&identity.session)));
                }
            }
            ReferenceField::SomeSession => {
                if let (Some(identity), Some(old)) = (self.other_session(), text())
                    && identity.is_old(&old)
                {
                    draft.edits.push((span, quoted(&identity.session)));
                }
            }
            ReferenceField::Directory => {
                let moved = text().and_then(|old| self.identity?.directory(&old));
                if let Some(moved) = moved {
                    draft.edits.push((span, quoted(&moved)));
                }
            }
            ReferenceField::Side => {
                if change.is_some_and(|change| change.own) && raw == b"true" {
                    draft.change(span, b"false".to_vec());
                }
            }
            ReferenceField::Time => {
                if let Some(time) = change.and_then(|change| change.time) {
                    draft.change(span, quoted(&time.to_string()));
                }
            }
            ReferenceField::Stop => {
                if change.is_some_and(|change| change.ends_turn) && raw == b"\"tool_use\"" {
                    draft.change(span, quoted("end_turn"));
                }
            }
            ReferenceField::Content | ReferenceField::Fork => {}
            ReferenceField::Message | ReferenceField::Call => {
                let taken = self.identity.map(|identity| &identity.taken);
                let taken = taken.map(|taken| match place {
                    ReferenceField::Message => &taken.messages,
                    _ => &taken.calls,
                });
                let new = taken.and_then(|taken| taken.get(&*text()?));
                if let Some(new) = new {
                    draft.edits.push((span, quoted(new)));
                }
            }
            ReferenceField::Copy => match change.and_then(|change| change.copy) {
                Some(ResultCopyChange::Remove) => {
                    let whole = field(object, "toolUseResult", span);
                    let new = if whole == span {
                        b"null".to_vec()
                    } else {
                        Vec::new()
                    };
                    draft.change(whole, new);
                }
                Some(ResultCopyChange::Cut(cutter)) => {
                    if let Some(short) = cutter.value(raw) {
                        draft.change(span, short);
                    }
                }
                None => {}
            },
        }
    }

    /// What a line says about the one it is a copy of, if lines are to say so: those of the
    /// chain do, and no others.
    fn fork_of(&self, record: &EntryRecord) -> Option<String> {
        let source = self.identity?.fork_of.as_ref()?;
        let uuid = record.uuid.as_ref()?;
        let is_link = record.kind.is_link() || record.kind == LineKind::Progress;
        is_link.then(|| {
            let (source, uuid) = (json::quoted(source), json::quoted(&uuid.to_string()));
            format!(r#"{{"sessionId":{source},"messageUuid":{uuid}}}"#)
        })
    }

    /// Who gives the session another id, if anybody does.
    fn other_session(&self) -> Option<&'a CopyIdentity> {
        self.identity
            .filter(|identity| !identity.session.is_empty())
    }

    /// Who gives lines new names, if anybody does.
    fn renames(&self) -> Option<&'a CopyIdentity> {
        self.identity.filter(|identity| identity.renames())
    }

    /// The name a line of this session has in the new one.
    fn renamed(&self, id: &Id) -> Option<Id> {
        let identity = self.renames()?;
        self.session.find(id).map(|_| identity.line(id))
    }

    fn parent(&self, span: Span, raw: &[u8], change: Option<&LineChange>, draft: &mut ObjectEdits) {
        if let Some(value) = change.and_then(|change| self.parent_value(change)) {
            draft.change(span, value);
            return;
        }
        if raw.first() == Some(&b'"') {
            let old = Id::new(&json::string(raw));
            if let Some(new) = self.renamed(&old) {
                draft.name(span, &new);
            }
        }
    }

    /// The parent that a line is to have, if it is to have another.
    fn parent_value(&self, change: &LineChange) -> Option<Vec<u8>> {
        let wanted = change.parent.as_ref()?;
        let name = |id: &Id| match change.parent_named {
            true => id.clone(),
            false => self.renamed(id).unwrap_or_else(|| id.clone()),
        };
        let new = wanted.as_ref().map(name);
        Some(new.map_or_else(|| b"null".to_vec(), |id| quoted(&id.to_string())))
    }

    /// A place that names another line.
    fn other(
        &self,
        place: ReferenceField,
        span: Span,
        old: &Id,
        redirect: &ReplacementMap,
        draft: &mut ObjectEdits,
    ) {
        match redirect.get(self.session, old) {
            Some(Some(new)) => {
                let new = self.renamed(new).unwrap_or_else(|| new.clone());
                draft.change(span, quoted(&new.to_string()));
            }
            Some(None) if place == ReferenceField::Line => draft.change(span, b"null".to_vec()),
            Some(None) => draft.orphaned = true,
            None => {
                if let Some(new) = self.renamed(old) {
                    draft.name(span, &new);
                }
            }
        }
    }

    /// Lines that a compaction kept: those that went are no longer among them.
    fn kept(&self, place: ReferenceField, span: Span, raw: &[u8], draft: &mut ObjectEdits) {
        let gone = |id: &Id| self.plan.redirect.get(self.session, id).is_some();
        if place == ReferenceField::List {
            let mut ids = Vec::new();
            let mut cursor = JsonCursor::new(raw);
            let _ = cursor.array(|c| {
                ids.extend(c.text()?.map(|text| Id::new(&text)));
                Ok(())
            });
            let left: Vec<&Id> = ids.iter().filter(|id| !gone(id)).collect();
            let names: Vec<String> = left
                .iter()
                .map(|id| self.renamed(id).unwrap_or_else(|| (*id).clone()))
                .map(|id| json::quoted(&id.to_string()))
                .collect();
            let new = format!("[{}]", names.join(",")).into_bytes();
            if left.len() < ids.len() {
                draft.change(span, new);
            } else if self.renames().is_some() {
                draft.edits.push((span, new));
            }
            return;
        }
        let old = Id::new(&json::string(raw));
        let towards = if place == ReferenceField::First {
            1
        } else {
            -1
        };
        match gone(&old).then(|| self.plan.neighbour(self.session, &old, towards)) {
            Some(new) => {
                let new = new.map_or_else(String::new, |id| {
                    self.renamed(&id).unwrap_or(id).to_string()
                });
                draft.change(span, quoted(&new));
            }
            None => {
                if let Some(new) = self.renamed(&old) {
                    draft.name(span, &new);
                }
            }
        }
    }

    /// Calls and results whose ids are taken.
    fn calls(&self, record: &EntryRecord, object: &[u8], draft: &mut ObjectEdits) {
        let Some(taken) = self.identity.map(|identity| &identity.taken.calls) else {
            return;
        };
        for block in self
            .session
            .blocks_of(record)
            .iter()
            .filter(|_| !taken.is_empty())
        {
            let Some(new) = self.session.id_of(block).and_then(|id| taken.get(id)) else {
                continue;
            };
            let key = match block.kind {
                BlockKind::ToolResult => "tool_use_id",
                _ => "id",
            };
            if let Some(span) = json::find(block.span().of(object), &[key]) {
                let start = block.span().start + span.start;
                draft
                    .edits
                    .push((Span::new(start, start + span.len), quoted(new)));
            }
        }
    }

    /// Blocks that go or say something else.
    fn content(
        &self,
        record: &EntryRecord,
        object: &[u8],
        change: &LineChange,
        draft: &mut ObjectEdits,
    ) {
        if change.blocks.is_empty() {
            return;
        }
        let blocks = || record.blocks.clone().zip(self.session.blocks_of(record));
        let goes = |at: &Index| change.blocks.get(at) == Some(&BlockChange::Remove);
        let removes = blocks().any(|(at, _)| goes(&at));
        let mut left: Vec<Cow<'_, [u8]>> = Vec::new();
        for (at, block) in blocks() {
            let new = match change.blocks.get(&at) {
                Some(BlockChange::Remove) => continue,
                Some(BlockChange::Cut(cutter)) => {
                    let body = block.body().of(object);
                    cutter.value(body).map(|new| (block.body(), new))
                }
                Some(BlockChange::Say(text)) => Some((block.body(), quoted(text))),
                None => None,
            };
            match (new, removes) {
                (Some((span, new)), false) => draft.change(span, new),
                (Some((span, new)), true) => left.push(within(block, object, span, new).into()),
                (None, true) => left.push(block.span().of(object).into()),
                (None, false) => {}
            }
        }
        if removes && let Some(span) = json::find(object, &["message", "content"]) {
            let mut new = vec![b'['];
            new.extend_from_slice(&left.join(&b","[..]));
            new.push(b']');
            draft.change(span, new);
        }
    }
}

/// A block with something else in one of its places.
fn within(block: &BlockRecord, object: &[u8], span: Span, new: Vec<u8>) -> Vec<u8> {
    let bytes = block.span().of(object);
    // A plain string among blocks is its own text.
    if block.kind == BlockKind::Text && block.span() == span {
        return new;
    }
    let start = span.start - block.span().start;
    json::splice(bytes, &[(Span::new(start, start + span.len), new)])
}

impl ObjectEdits {
    /// Whose line it is, told otherwise.
    fn name(&mut self, span: Span, id: &Id) {
        self.edits.push((span, quoted(&id.to_string())));
    }

    /// A field that the line lacks, in front of all others.
    fn add(&mut self, object: &[u8], key: &str, value: &[u8]) {
        let Some(open) = object.iter().position(|&byte| byte == b'{') else {
            return;
        };
        let mut new = format!("\"{key}\":").into_bytes();
        new.extend_from_slice(value);
        if object[open + 1..].trim_ascii_start().first() != Some(&b'}') {
            new.push(b',');
        }
        let place = Span::new(open + 1, open + 1);
        // Fields that are added to one place stand side by side: splicing takes both.
        self.change(place, new);
    }

    /// A field about whose line it is, behind all others.
    fn append(&mut self, object: &[u8], key: &str, value: &str) {
        let Some(close) = object.iter().rposition(|&byte| byte == b'}') else {
            return;
        };
        let new = format!(",{}:{value}", json::quoted(key));
        self.edits.push((Span::new(close, close), new.into_bytes()));
    }

    /// A field of ours, in place of an earlier one or behind all others.
    fn mark(&mut self, object: &[u8], percent: u8) {
        let [ours, key] = compress::MARK;
        if let Some(span) = json::find(object, &[ours]) {
            let old = span.of(object);
            let new = json::with_field(old, key, &percent.to_string());
            self.change(span, new.unwrap_or_else(|| old.to_vec()));
        } else if let Some(close) = object.iter().rposition(|byte| *byte == b'}') {
            let new = format!(",\"{ours}\":{{\"{key}\":{percent}}}");
            self.change(Span::new(close, close), new.into_bytes());
        }
    }

    fn change(&mut self, span: Span, new: Vec<u8>) {
        self.changed = true;
        self.edits.push((span, new));
    }
}

fn quoted(text: &str) -> Vec<u8> {
    json::quoted(text).into_bytes()
}

/// A field with its key and one comma, given where its value stands. Only the value if the
/// key is written in a way that cannot be told.
fn field(object: &[u8], key: &str, value: Span) -> Span {
    let before = object[..value.start].trim_ascii_end();
    let name = format!("\"{key}\"");
    let key_end = before.strip_suffix(b":").map(<[u8]>::trim_ascii_end);
    let Some(rest) = key_end.and_then(|keys| keys.strip_suffix(name.as_bytes())) else {
        return value;
    };
    let behind = &object[value.end()..];
    let blank = behind.len() - behind.trim_ascii_start().len();
    if behind.trim_ascii_start().first() == Some(&b',') {
        return Span::new(rest.len(), value.end() + blank + 1);
    }
    let start = rest.trim_ascii_end();
    Span::new(start.strip_suffix(b",").unwrap_or(start).len(), value.end())
}
