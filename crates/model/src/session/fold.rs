//! The fold itself: what one entry does to a session.

use std::hash::BuildHasher;
use std::sync::Arc;

use super::entry_record::{NEVER, RecordContext};
use super::interner::OptionalIndex;
use super::{
    EntryRecord, Index, LineRetention, Message, ParentLink, Session, ShortIndexList, TaskRecord,
    Thread, ToolCall, ToolCallResult, TranscriptRole, Turn, TurnGroup, UnmatchedResult,
};
use crate::block::BlockKind;
use crate::entry::{
    self, ClueSource, Entry, LineDetail, LineKind, MessageHead, ParentId, TaskNotice,
};
use crate::fault::{Fault, FaultKind};
use crate::known_names::{self, MOST_UNKNOWN, OTHERS};
use crate::time::Time;
use crate::tool;
use crate::usage::{PricingTerms, Usage};
use crate::user_input::UserInput;

/// What the objects on a line have in common, and which of them it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectFlags {
    /// The line is not strictly JSON.
    pub(super) refused: bool,
    /// There are several.
    pub(super) glued: bool,
    /// It is not the first.
    pub(super) behind: bool,
}

impl Session {
    /// Takes in one object of a line.
    pub(super) fn enter(&mut self, line: u32, offset: u64, shared: ObjectFlags, entry: &mut Entry) {
        let detail = self.note(entry);
        if entry.input == UserInput::Command && self.answers_a_call(entry) {
            // 2.0.42 writes the skill that the model called like a typed command.
            entry.input = UserInput::Meta;
        }
        let index = self.records.len() as Index;
        let twin = entry.uuid.as_ref().and_then(|id| self.find(id));
        let parent = self.link_to(&mut entry.parent);
        let thread = self.thread_of(entry, parent, index);
        let group = self.group_of(entry, parent, thread, twin.is_some(), index);
        let start = self.blocks.len() as Index;
        for block in &entry.blocks {
            self.keep_block(block, entry.span.start);
        }
        // There may be a million of them, and calls and results come next.
        entry.blocks = Vec::new();
        let label = self.label(&entry.label);
        let mode = entry.permission_mode.as_deref();
        let mode = mode.map(|mode| self.names.add(mode));
        let model = entry.message.model.as_deref();
        let model = model.map(|model| self.names.add(model));
        let voice = match entry.kind {
            LineKind::Assistant => model,
            _ => mode,
        };
        self.logicals
            .extend(entry.logical_parent.take().map(|id| (index, id)));
        let place = RecordContext {
            line,
            offset,
            blocks: start..self.blocks.len() as Index,
            parent,
            thread,
            group,
            detail,
            label,
            voice,
            refused: shared.refused,
            glued: shared.glued,
            behind: shared.behind,
            duplicate: twin.is_some(),
        };
        let record = EntryRecord::new(entry, place);
        if let Some((_, explicit)) = &mut self.last_prompt
            && twin.is_none()
            && thread == 0
            && record.in_chain()
            && record.kind.is_link()
            && record.kind != LineKind::Progress
        {
            *explicit = false;
        }
        // A client forgets what came before a compaction, and this with it.
        if record.kind.is_boundary() && thread == 0 && twin.is_none() {
            self.last_prompt = None;
        }
        self.records.push(record);
        match twin {
            Some(twin) => self.replace(twin, index, entry),
            None => self.settle(index, entry),
        }
    }

    /// A later line with the same uuid counts in the place of the earlier one: they change
    /// places, and the earlier one is kept as the duplicate.
    fn replace(&mut self, twin: Index, index: Index, entry: &Entry) {
        let (line, first) = (
            self.records[index as usize].line,
            self.records[twin as usize].line,
        );
        let detail = format!("line {first} has the same uuid");
        self.faults.push(Fault {
            line,
            kind: FaultKind::DuplicateUuid,
            detail,
        });
        self.move_calls(twin, index);
        if let Some(message) = self.records[twin as usize].message() {
            self.crowd(message, self.records[index as usize].blocks.start);
        }
        self.records.swap(twin as usize, index as usize);
        let logical = (self.logicals.remove(&twin), self.logicals.remove(&index));
        self.logicals.extend(logical.0.map(|id| (index, id)));
        self.logicals.extend(logical.1.map(|id| (twin, id)));
        let (before, behind) = self.records.split_at_mut(index as usize);
        let (now, old) = (&mut before[twin as usize], &mut behind[0]);
        std::mem::swap(&mut now.group, &mut old.group);
        std::mem::swap(&mut now.thread, &mut old.thread);
        now.set_duplicate(false);
        old.set_duplicate(true);
        let id = entry.message.id.as_deref();
        let id = id.map(|id| self.pool.find(id));
        let replies = now.kind == LineKind::Assistant;
        let same_message = old.message().filter(|_| replies).is_some_and(|at| {
            let name = self.messages[at as usize].name.get();
            id.map_or(name.is_none(), |id| id.is_some() && id == name)
        });
        match old.message().filter(|_| same_message) {
            Some(at) => {
                now.aside = Some(at).into();
                self.charge(at, &entry.message);
                self.messages[at as usize].add(None, None, entry.at);
            }
            // Another message under the same uuid: what the first one cost was still spent.
            None if replies => {
                let earlier = old.message();
                self.merge(twin, &entry.message);
                if let Some(at) = earlier {
                    let lines = &mut self.messages[at as usize].records;
                    lines
                        .iter_mut()
                        .filter(|line| **line == twin)
                        .for_each(|line| *line = index);
                }
            }
            None => {}
        }
        self.pair(twin, entry);
        self.describe(twin, entry.head.clone(), entry.heading.clone());
    }

    /// Calls and results of a line go with its bytes.
    fn move_calls(&mut self, from: Index, to: Index) {
        for at in self.records[from as usize].blocks.clone() {
            let id = self.blocks[at as usize].key();
            let Some(call) = id.and_then(|id| self.call_ids.get(id)) else {
                continue;
            };
            let call = &mut self.calls[call as usize];
            if call.block == at {
                call.record = to;
            }
            if let Some(result) = call.result.as_mut().filter(|result| result.block == at) {
                result.record = to;
            }
        }
    }

    /// Places a new record among messages, calls and turns.
    fn settle(&mut self, index: Index, entry: &mut Entry) {
        if let Some(id) = &self.records[index as usize].uuid {
            let waiting = if self.waiting.is_empty() {
                None
            } else {
                self.waiting.remove(id)
            };
            let (records, hasher) = (&self.records, &self.hasher);
            // Only records with an id are ever entered.
            let hash = |at: &Index| {
                let id = records[*at as usize].uuid.as_ref();
                id.map_or(0, |id| hasher.hash_one(id))
            };
            self.ids.insert_unique(hash(&index), index, hash);
            for group in waiting.unwrap_or_default() {
                self.link(group, self.records[index as usize].group);
            }
        }
        if self.records[index as usize].kind == LineKind::Assistant {
            self.merge(index, &entry.message);
        }
        self.pair(index, entry);
        self.keep_clues(entry);
        let repeats = self.keeps == LineRetention::All;
        if let Some(copy) = entry.copy.as_ref().filter(|_| repeats) {
            self.copy(copy, entry.source_call.take(), entry.at);
        }
        self.background(index, entry);
        self.describe(index, entry.head.take(), entry.heading.take());
    }

    /// Keeps which call started which sub-agent, as the most reliable line says.
    fn keep_clues(&mut self, entry: &mut Entry) {
        for clue in std::mem::take(&mut entry.clues) {
            // Any result may quote the words that end the result of a sub-agent.
            let quoted = || {
                let call = self.find_call(&clue.call);
                let tool = call.map(|call| self.names.get(self.calls[call as usize].tool));
                !tool.is_some_and(tool::is_agent)
            };
            let known = self.clues.get(&clue.agent);
            let better = known.is_none_or(|(from, _)| clue.from < *from);
            if better && (clue.from != ClueSource::ResultText || !quoted()) {
                self.clues.insert(clue.agent, (clue.from, clue.call));
            }
        }
    }

    /// What a line tells about the background, and about failures of the API.
    fn background(&mut self, index: Index, entry: &mut Entry) {
        if self.records[index as usize].thread != 0 {
            return;
        }
        if let Some(failure) = entry.failure.take() {
            self.keep_failure_text(&failure.text);
            self.failure = Some((index, *failure));
        }
        let notices = std::mem::take(&mut entry.notices).into_iter();
        for notice in notices.filter(TaskNotice::is_over) {
            self.end_task(&notice.task);
        }
    }

    fn end_task(&mut self, id: &str) {
        if let Some(&at) = self.task_ids.get(id) {
            self.tasks[at as usize].over = true;
        }
    }

    /// Facts about the session as a whole that any line may carry. Gives the place of what the
    /// line says beside what it is.
    fn note(&mut self, entry: &mut Entry) -> OptionalIndex {
        if let Some(at) = entry.at {
            self.first = Some(self.first.map_or(at, |first| first.min(at)));
            self.last = Some(self.last.map_or(at, |last| last.max(at)));
        }
        if let Some(version) = entry.version.take() {
            self.version = Some(self.versions.add(&version));
        }
        for what in std::mem::take(&mut entry.unknown) {
            self.note_unknown(what, 1);
        }
        if entry.unknown_others > 0 {
            self.note_unknown(OTHERS.to_owned(), entry.unknown_others);
        }
        if let Some(cwd) = entry.cwd.take() {
            self.cwds.add(&cwd);
        }
        let own = self.role == TranscriptRole::Agent || !entry.sidechain;
        if own {
            self.note_own(entry);
        }
        match entry.detail.take() {
            None | Some(LineDetail::Summary(_) | LineDetail::PrLink(_) | LineDetail::Tag(_)) => {
                OptionalIndex::default()
            }
            Some(detail) => {
                let at = self.details.len() as Index;
                if own && entry.kind == LineKind::Title {
                    self.titles.push(at);
                }
                self.details.push(detail);
                Some(at).into()
            }
        }
    }

    /// Counts a type or field never seen before.
    fn note_unknown(&mut self, mut what: String, times: u32) {
        if self.unknown.len() >= MOST_UNKNOWN && !self.unknown.contains_key(&what) {
            what = OTHERS.to_owned();
        }
        // Lines without a version were written by the one before.
        let version = self.version.map_or("?", |at| self.versions.get(at));
        let versions = self.unknown.entry(what).or_default();
        if let Some(count) = versions.get_mut(version) {
            *count = count.saturating_add(times);
            return;
        }
        let full = versions.len() >= MOST_UNKNOWN;
        let version = if full { OTHERS } else { version };
        let count = versions.entry(version.to_owned()).or_default();
        *count = count.saturating_add(times);
    }

    /// The number of a label.
    fn label(&mut self, label: &str) -> u16 {
        let is_new = || known_names::label(label).is_none() && self.labels.find(label).is_none();
        let full = self.labels.len() >= MOST_UNKNOWN && is_new();
        let at = self.labels.add(if full { "…" } else { label });
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    fn note_own(&mut self, entry: &mut Entry) {
        keep(&mut self.branch, entry.branch.as_deref());
        keep(&mut self.slug, entry.slug.as_deref());
        keep(&mut self.entrypoint, entry.entrypoint.as_deref());
        keep(&mut self.permission_mode, entry.permission_mode.as_deref());
        if self.role == TranscriptRole::Agent && self.agent.is_none() {
            self.agent = entry.agent.as_deref().map(Into::into);
        }
        if self.first_session_id.is_none() {
            self.first_session_id = entry.session.clone();
        }
        self.note_process(entry);
        match &mut entry.detail {
            Some(LineDetail::Summary(summary)) => {
                let text = std::mem::take(&mut summary.text);
                self.summaries.push((text, summary.leaf.take()));
            }
            Some(LineDetail::PrLink(url)) => drop(self.pr_links.add(url)),
            Some(LineDetail::Tag(tag)) => self.tag = Some(tag.trim().to_owned()),
            _ if entry.label == "ended-by-model" => self.ended_by_model = true,
            Some(LineDetail::LastPrompt { leaf, explicit }) => {
                self.last_prompt = Some((leaf.clone(), *explicit))
            }
            _ => {}
        }
    }

    /// Where the lines come from: another session, a team, a process in the background.
    fn note_process(&mut self, entry: &mut Entry) {
        let told = entry.forked_from.take();
        self.tells_origin |= told.is_some();
        // Whoever asked for a copied reply is where the copy comes from, unless a line says so.
        let asked = entry.asked_by.take().filter(|_| !self.tells_origin);
        let asked = asked.filter(|asked| entry.session.as_ref() != Some(asked));
        self.forked_from = told.or(asked).or(self.forked_from.take());
        if entry.kind != LineKind::Title {
            keep_name(&mut self.team, entry.team.as_deref());
            let member = entry.member.as_deref().filter(|_| entry.team.is_some());
            keep_name(&mut self.member, member);
        }
        keep_name(&mut self.process, entry.process.as_deref());
    }

    fn answers_a_call(&self, entry: &Entry) -> bool {
        let parent = entry.parent.id().and_then(|id| self.find(id));
        parent.is_some_and(|at| self.records[at as usize].input == UserInput::Results)
    }

    /// The parent of an entry: where it stands, or its id if it is not there yet.
    fn link_to(&mut self, parent: &mut ParentId) -> ParentLink {
        match std::mem::take(parent) {
            ParentId::Absent => ParentLink::Absent,
            ParentId::Null => ParentLink::Null,
            ParentId::Is(id) => match self.find(&id) {
                Some(at) => ParentLink::At(at),
                None => {
                    self.strays.push(id);
                    ParentLink::Named(self.strays.len() as Index - 1)
                }
            },
        }
    }

    fn thread_of(&mut self, entry: &Entry, parent: ParentLink, index: Index) -> Index {
        if self.role == TranscriptRole::Agent || !entry.sidechain {
            return 0;
        }
        if let Some(agent) = &entry.agent {
            if let Some(&thread) = self.thread_ids.get(agent.as_str()) {
                return thread;
            }
            let thread = self.new_thread(index);
            self.threads[thread as usize].agent = Some(agent.as_str().into());
            self.thread_ids.insert(agent.as_str().into(), thread);
            return thread;
        }
        // 1.0 wrote the lines of sub-agents between those of the session, without a name.
        match parent {
            ParentLink::At(at) if self.records[at as usize].thread > 0 => {
                self.records[at as usize].thread
            }
            _ => self.new_thread(index),
        }
    }

    fn new_thread(&mut self, root: Index) -> Index {
        self.threads.push(Thread {
            root: Some(root),
            ..Thread::default()
        });
        self.threads.len() as Index - 1
    }

    /// Which turn the line belongs to, as a group; opens the turn if it opens one.
    fn group_of(
        &mut self,
        entry: &Entry,
        parent: ParentLink,
        thread: Index,
        duplicate: bool,
        index: Index,
    ) -> Index {
        let opens = entry.input.opens_turn() && entry.kind == LineKind::User && !duplicate;
        if opens {
            let turn = self.turns.len() as Index;
            self.turns.push(Turn {
                record: index,
                thread,
            });
            let group = self.new_group(Some(turn));
            let own = &mut self.threads[thread as usize];
            own.turns += 1;
            own.group = Some(group);
            return group;
        }
        let current = self.threads[thread as usize].group;
        match (parent, current) {
            (ParentLink::At(at), _) if self.records[at as usize].thread == thread => {
                self.records[at as usize].group
            }
            (ParentLink::Named(stray), _) if entry.uuid.is_some() => {
                let parent = self.strays[stray as usize].clone();
                let group = self.new_group(current.and_then(|group| self.turn_of_group(group)));
                self.waiting.entry(parent).or_default().push(group);
                group
            }
            (_, Some(current)) => current,
            _ => {
                let group = self.new_group(None);
                self.threads[thread as usize].group = Some(group);
                group
            }
        }
    }

    fn new_group(&mut self, turn: Option<Index>) -> Index {
        self.groups.push(TurnGroup { turn, link: None });
        self.groups.len() as Index - 1
    }

    fn link(&mut self, group: Index, to: Index) {
        // A cycle of parents must not become a cycle of groups.
        if self.root_group(to) != group {
            self.groups[group as usize].link = Some(to);
        }
    }

    fn root_group(&self, mut group: Index) -> Index {
        while let Some(next) = self.groups[group as usize].link {
            group = next;
        }
        group
    }

    fn turn_of_group(&self, group: Index) -> Option<Index> {
        self.groups[self.root_group(group) as usize].turn
    }

    /// The turn that each record belongs to, by record.
    pub fn turns_by_record(&self) -> Vec<Option<Index>> {
        let turns = self.turn_finder();
        let records = self.records.iter();
        records.map(|record| turns.of(record)).collect()
    }

    /// Finds the turn of any record.
    pub fn turn_finder(&self) -> TurnFinder {
        let mut known: Vec<Option<Option<Index>>> = vec![None; self.groups.len()];
        let mut path = Vec::new();
        for group in 0..self.groups.len() {
            let mut at = group;
            let turn = loop {
                if let Some(turn) = known[at] {
                    break turn;
                }
                path.push(at);
                match self.groups[at].link {
                    Some(next) => at = next as usize,
                    None => break self.groups[at].turn,
                }
            };
            for at in path.drain(..) {
                known[at] = Some(turn);
            }
        }
        TurnFinder(known.into_iter().map(Option::flatten).collect())
    }

    /// Adds a line to its message.
    fn merge(&mut self, index: Index, head: &MessageHead) {
        let id = head.id.as_deref().map(|id| self.pool.add(id));
        let known = id.and_then(|id| self.message_ids.get(id));
        let at = known.unwrap_or_else(|| {
            let thread = self.records[index as usize].thread;
            self.messages.push(Message::new(id.into(), thread));
            let at = self.messages.len() as Index - 1;
            if let Some(id) = id {
                self.message_ids.set(id, at);
            }
            at
        });
        let model = head.model.as_deref().map(|model| self.names.add(model));
        let stop = head.stop.as_deref().map(|stop| self.names.add(stop));
        let synthetic = head.model.as_deref() == Some("<synthetic>");
        if let Some(model) = head.model.as_deref().filter(|_| !synthetic) {
            self.models.add(model);
        }
        let record = &mut self.records[index as usize];
        record.aside = Some(at).into();
        let time = record.at();
        let message = &mut self.messages[at as usize];
        message.add(model, stop, time);
        message.synthetic = synthetic;
        message.records.push(index);
        self.charge(at, head);
    }

    /// The lines of one message repeat its usage, so take it; never add it.
    fn charge(&mut self, message: Index, head: &MessageHead) {
        if let Some(usage) = head.usage.filter(|_| self.keeps == LineRetention::All) {
            let place = &mut self.messages[message as usize].spent;
            charge(&mut self.spent, place, (usage, head.terms));
        }
    }

    /// Keeps a message that a progress line repeats from a sub-agent's file.
    fn copy(&mut self, head: &MessageHead, call: Option<Box<str>>, at: Option<Time>) {
        let id = head.id.as_deref().map(|id| self.pool.add(id));
        let known = id.and_then(|id| self.copy_ids.get(&id).copied());
        let index = known.unwrap_or_else(|| {
            self.copies.push(Message::new(id.into(), 0));
            self.copy_calls.push(call);
            let index = self.copies.len() as Index - 1;
            self.copy_ids.extend(id.map(|id| (id, index)));
            index
        });
        let model = head.model.as_deref().map(|model| self.names.add(model));
        let copy = &mut self.copies[index as usize];
        copy.add(model, None, at);
        copy.synthetic = head.model.as_deref() == Some("<synthetic>");
        if let Some(usage) = head.usage {
            charge(&mut self.spent, &mut copy.spent, (usage, head.terms));
        }
    }

    /// Pairs calls with results, whichever comes first.
    fn pair(&mut self, index: Index, entry: &Entry) {
        let agent = entry.result_agent.as_deref().map(Arc::<str>::from);
        let task = entry.result_task.as_deref().map(Arc::<str>::from);
        let run = entry.result_run.as_deref().map(Arc::<str>::from);
        for at in self.records[index as usize].blocks.clone() {
            match self.blocks[at as usize].kind {
                BlockKind::ToolUse | BlockKind::ServerToolUse => self.call(index, at),
                BlockKind::ToolResult => {
                    let launched = entry.result_status.as_deref() == Some("async_launched");
                    let status = entry.result_status.as_deref();
                    self.result(UnmatchedResult {
                        record: index,
                        block: at,
                        agent: agent.clone(),
                        launched,
                        task: task.clone(),
                        run: run.clone(),
                        over: status.is_some_and(entry::is_over),
                    });
                }
                _ => {}
            }
        }
    }

    fn call(&mut self, record: Index, at: Index) {
        let block = &self.blocks[at as usize];
        let (id, print) = (block.key(), block.print);
        let tool = block.tool().unwrap_or_else(|| self.names.add(""));
        let (line, message) = {
            let record = &self.records[record as usize];
            (record.line, record.message())
        };
        // History that was written again calls nothing.
        if message.is_some_and(|message| self.was_called(message, at, print)) {
            return;
        }
        let call = ToolCall {
            tool,
            record,
            block: at,
            result: None,
            agent: OptionalIndex::default(),
            launched: false,
        };
        self.calls.push(call);
        let Some(id) = id else { return };
        let earlier = self.call_ids.get(id);
        self.call_ids.set(id, self.calls.len() as Index - 1);
        if earlier.is_some() {
            let id = self.pool.get(id);
            let detail = format!("an earlier call has the same id {id}");
            self.faults.push(Fault {
                line,
                kind: FaultKind::DuplicateCall,
                detail,
            });
        }
        for answer in self.early_results.remove(&Some(id)).unwrap_or_default() {
            self.result(answer);
        }
    }

    /// Whether a message has a call with this print in front of a block.
    fn was_called(&mut self, message: Index, block: Index, print: u64) -> bool {
        if !self.crowded.contains(message) && self.has_much(message) {
            self.crowd(message, block);
        }
        if self.crowded.contains(message) {
            return !self.call_prints.insert((message, print));
        }
        let mut calls = self.calls_before(message, block);
        calls.any(|at| self.blocks[at as usize].print == print)
    }

    /// Whether a message has many lines or blocks.
    fn has_much(&self, message: Index) -> bool {
        let lines = &self.messages[message as usize].records;
        let blocks = lines
            .iter()
            .map(|&line| self.records[line as usize].blocks.len());
        lines.len() > LOOKED_THROUGH || blocks.sum::<usize>() > BLOCKS_LOOKED_THROUGH
    }

    /// From here on a set knows what a message called: looking through all its lines for each
    /// of them would take ever longer, and lines that were replaced are no longer its own.
    fn crowd(&mut self, message: Index, before: Index) {
        if self.crowded.insert(message) {
            let calls = self.calls_before(message, before);
            let prints = calls.map(|at| (message, self.blocks[at as usize].print));
            let prints: Vec<(Index, u64)> = prints.collect();
            self.call_prints.extend(prints);
        }
    }

    /// The calls of a message in front of a block.
    fn calls_before(&self, message: Index, block: Index) -> impl Iterator<Item = Index> + '_ {
        let lines = self.messages[message as usize].records.iter();
        let blocks = lines.flat_map(|&line| self.records[line as usize].blocks.clone());
        let earlier = blocks.filter(move |&at| at < block);
        earlier.filter(|&at| {
            let kind = self.blocks[at as usize].kind;
            matches!(kind, BlockKind::ToolUse | BlockKind::ServerToolUse)
        })
    }

    fn result(&mut self, answer: UnmatchedResult) {
        let block = &self.blocks[answer.block as usize];
        let is_error = block.is_error;
        let id = block.key();
        let Some(at) = id.and_then(|id| self.call_ids.get(id)) else {
            // Room for one: growing by itself, a list begins with room for four.
            let early = self.early_results.entry(id).or_default();
            early.reserve_exact(usize::from(early.is_empty()));
            early.push(answer);
            return;
        };
        let record = &self.records[answer.record as usize];
        let (line, uuid) = (record.line, &record.uuid);
        let call = &mut self.calls[at as usize];
        // A line that is written again under its uuid answers nothing new.
        let same = |given: &ToolCallResult| {
            uuid.is_some() && self.records[given.record as usize].uuid == *uuid
        };
        if call.result.as_ref().is_none_or(same) {
            call.result = Some(ToolCallResult {
                record: answer.record,
                block: answer.block,
                is_error,
            });
            if let Some(agent) = answer.agent {
                call.agent = Some(self.agents.push(&agent)).into();
            }
            call.launched = answer.launched;
            if let Some(run) = answer.run {
                self.runs.entry(Box::from(&*run)).or_insert(at);
            }
            self.result_of_task(at, answer.record, answer.task, answer.over);
        } else {
            let id = id.map_or("", |id| self.pool.get(id));
            let detail = format!("the call {id} already has a result");
            self.faults.push(Fault {
                line,
                kind: FaultKind::DuplicateCall,
                detail,
            });
        }
    }

    /// What the result of a call means for tasks in the background.
    fn result_of_task(&mut self, at: Index, record: Index, task: Option<Arc<str>>, over: bool) {
        let (record, call) = (&self.records[record as usize], &self.calls[at as usize]);
        if record.thread != 0 {
            return;
        }
        let agent = self.agent_of(call).filter(|_| call.launched);
        let agent = agent.map(Arc::<str>::from);
        let is_agent = agent.is_some();
        if let Some(id) = agent.or(task) {
            let since = record.at();
            let id = Box::<str>::from(&*id);
            self.task_ids.insert(id.clone(), self.tasks.len() as Index);
            self.tasks.push(TaskRecord {
                id,
                call: at,
                agent: is_agent,
                since,
                over: false,
            });
            return;
        }
        let failed = call.result.as_ref().is_some_and(|result| result.is_error);
        let ends = match self.names.get(call.tool) {
            "KillShell" | "KillBash" | "TaskStop" => !failed,
            "BashOutput" | "TaskOutput" => over && !failed,
            _ => false,
        };
        if ends && let Some(id) = self.subject(call).map(Box::<str>::from) {
            self.end_task(&id);
        }
    }
}

/// The turn of each record, as long as no line is taken in.
#[derive(Clone, Debug)]
pub struct TurnFinder(Vec<Option<Index>>);

impl TurnFinder {
    /// The turn that a record belongs to.
    pub fn of(&self, record: &EntryRecord) -> Option<Index> {
        self.0[record.group as usize]
    }
}

/// Up to so many lines of a message are looked through for each of its calls.
const LOOKED_THROUGH: usize = 8;

/// Up to so many blocks of a message, likewise.
const BLOCKS_LOOKED_THROUGH: usize = 64;

impl Message {
    fn new(name: OptionalIndex, thread: Index) -> Message {
        Message {
            name,
            thread,
            records: ShortIndexList::default(),
            model: OptionalIndex::default(),
            stop: OptionalIndex::default(),
            spent: OptionalIndex::default(),
            synthetic: false,
            first: NEVER,
            last: NEVER,
        }
    }

    fn add(&mut self, model: Option<Index>, stop: Option<Index>, at: Option<Time>) {
        self.model = model.or(self.model.get()).into();
        self.stop = stop.or(self.stop.get()).into();
        let at = at.map_or(NEVER, |at| at.0);
        if self.first == NEVER {
            self.first = at;
        }
        self.last = self.last.max(at);
    }
}

/// Notes what a message cost, in its place.
fn charge(
    all: &mut Vec<(Usage, PricingTerms)>,
    place: &mut OptionalIndex,
    now: (Usage, PricingTerms),
) {
    match place.get() {
        Some(at) => {
            let known = &mut all[at as usize];
            *known = (known.0.max(now.0), known.1.max(now.1));
        }
        None => {
            *place = Some(all.len() as Index).into();
            all.push(now);
        }
    }
}

/// The first value counts.
fn keep_name(slot: &mut Option<Box<str>>, value: Option<&str>) {
    if let (None, Some(value)) = (&slot, value.filter(|value| !value.is_empty())) {
        *slot = Some(value.into());
    }
}

/// The last value counts; nearly always it is the one before.
fn keep(slot: &mut Option<String>, value: Option<&str>) {
    if let Some(value) = value
        && slot.as_deref() != Some(value)
    {
        *slot = Some(value.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;

    fn reply(uuid: &str, calls: std::ops::Range<u32>) -> String {
        let calls = calls.map(|n| {
            format!(
                r#"{{"type":"tool_use","id":"t{n}","name":"Bash","input":{{"command":"{n}"}}}}"#
            )
        });
        let calls: Vec<String> = calls.collect();
        let calls = calls.join(",");
        format!(
            r#"{{"type":"assistant","uuid":"{uuid}","message":{{"id":"m","role":"assistant","content":[{calls}]}}}}"#
        ) + "\n"
    }

    #[test]
    fn a_message_of_many_calls_keeps_them_in_a_set_and_each_counts_once() {
        let many = 3 * BLOCKS_LOOKED_THROUGH as u32;
        let text = reply("a", 0..many) + &reply("b", many - 5..many + 5);
        let session = Session::from_log(&Log::new(text), TranscriptRole::Main);
        assert_eq!(session.calls.len() as u32, many + 5);
        assert!(session.crowded.contains(0));
        let text = reply("a", 0..9) + &reply("b", 5..12);
        let session = Session::from_log(&Log::new(text), TranscriptRole::Main);
        assert_eq!(session.calls.len(), 12);
        assert!(!session.crowded.contains(0));
    }

    #[test]
    fn of_many_lines_with_a_bad_time_each_is_known() {
        let text = "{\"type\":\"mode\",\"timestamp\":\"soon\"}\n".repeat(1_500);
        let session = Session::from_log(&Log::new(text), TranscriptRole::Main);
        assert_eq!(
            (session.faults.len(), session.faults.found()),
            (1_000, 1_500)
        );
        assert_eq!(session.bad_times.iter().count(), 1_500);
    }
}
