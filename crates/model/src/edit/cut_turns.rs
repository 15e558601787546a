//! Turns and branches that go: only some turns, up to a point, without one, one branch alone.
//!
//! The branch that goes on is never left to chance: where its end goes, what was rewound
//! beside it goes too, and so do the notes of where to go on. A compaction that something
//! kept follows stays, with its summary; one that the cut leaves at the end goes, so that
//! what it summarised is there again.

use std::fmt;

use foldhash::{HashMap, HashMapExt};

use super::plan::EditPlan;
use super::{LossKind, slim};
use crate::entry::{LineDetail, LineKind};
use crate::graph::{self, ParentLinks};
use crate::id::Id;
use crate::session::{Index, Session};
use crate::token_estimate;
use crate::user_input::UserInput;
use crate::view::turn_selection::TurnRange;

/// What stays of a session. Everything, unless something is asked for; all wishes hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutOptions {
    /// Only the branch this line stands on, by its id or the start of it. It goes on from
    /// there, in every client.
    pub branch: Option<String>,
    /// Nothing behind this point.
    pub until: Option<CutPoint>,
    /// Only these turns; empty for all.
    pub turns: Vec<TurnRange>,
    /// Without these turns, which count from 1, or from -1 backwards.
    pub without: Vec<i64>,
}

/// Where a session is to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CutPoint {
    /// With this turn, which counts from 1, or from -1 backwards.
    Turn(i64),
    /// With the message of this line, by its id or the start of it; results included.
    Line(String),
}

/// Why a session cannot be cut so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CutError {
    /// There is no such turn.
    NoTurn {
        /// As it was written.
        turn: String,
        /// How many there are.
        count: u32,
    },
    /// There is no such line in the conversation.
    NoLine {
        /// As it was written.
        id: String,
    },
    /// Several lines begin so.
    Ambiguous {
        /// As it was written.
        id: String,
        /// How many do.
        count: usize,
    },
    /// The point is on another branch than the one that was asked for.
    Elsewhere {
        /// As it was written.
        point: String,
    },
    /// Nothing would be left.
    Nothing,
}

impl fmt::Display for CutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CutError::NoTurn { turn, count } => match count {
                0 => write!(f, "there is no turn {turn}: the session has none"),
                1 => write!(f, "there is no turn {turn}: the session has one"),
                _ => write!(f, "there is no turn {turn}: the session has {count}"),
            },
            CutError::NoLine { id } => write!(f, "no line of the conversation has the id {id}"),
            CutError::Ambiguous { id, count } => {
                write!(f, "{count} lines have an id that begins with {id}")
            }
            CutError::Elsewhere { point } => {
                write!(f, "{point} is not on the requested branch")
            }
            CutError::Nothing => write!(f, "the conversation would be empty"),
        }
    }
}

impl std::error::Error for CutError {}

impl CutError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            CutError::NoTurn { .. } => "`unspool turns` lists the turns with their numbers",
            CutError::NoLine { .. } => "`unspool tree` lists the branches with their ids",
            CutError::Ambiguous { .. } => "use more characters of the id",
            CutError::Elsewhere { .. } => "use only one of the two",
            CutError::Nothing => "keep at least one turn",
        }
    }
}

impl std::str::FromStr for CutPoint {
    type Err = String;

    /// A number of up to six digits is a turn; anything longer is the start of an id.
    fn from_str(text: &str) -> Result<CutPoint, String> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<i64>() {
            Ok(turn) if is_number && turn != 0 && digits.len() <= 6 => Ok(CutPoint::Turn(turn)),
            _ if text.is_empty() || is_number && digits.len() <= 6 => {
                Err(format!("`{text}` is neither a turn nor a line id"))
            }
            _ => Ok(CutPoint::Line(text.to_owned())),
        }
    }
}

impl CutOptions {
    /// Whether all stays.
    pub fn is_empty(&self) -> bool {
        *self == CutOptions::default()
    }
}

/// Lets go what was not asked for. Call it before operations that count turns.
pub fn cut(session: &Session, plan: &mut EditPlan, wanted: &CutOptions) -> Result<(), CutError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let links = graph::links(session);
    let live = || graph::live_leaf(session, &links);
    let now = plan.end.or_else(live).ok_or(CutError::Nothing)?;
    let mut shape = CutContext::new(session, &links, now);
    shape.now = shape.message_end(now);
    let mut kept = shape.kept_turns(wanted)?;
    // Turns that went before stay away.
    for (turn, kept) in session.turns.iter().zip(&mut kept) {
        *kept &= !plan.is_dropped(turn.record);
    }
    let end = shape.end(plan, wanted, &kept)?;
    let way = shape.way(end);
    let alone = shape.stands_alone(&kept, end, wanted);
    let goes = shape.goes(&kept, end, &way, alone);
    let left = |at: usize| {
        let stays = !goes[at] && !plan.is_dropped(at as Index);
        way[at] && stays && session.records[at].is_conversation()
    };
    if !(0..goes.len()).any(left) {
        return Err(CutError::Nothing);
    }
    shape.lose(plan, &goes, wanted.branch.is_some());
    for at in (0..goes.len()).filter(|&at| goes[at]) {
        plan.drop(at as Index);
    }
    if alone {
        plan.go_on_from(session, end);
    }
    Ok(())
}

/// What has to be known of a session to cut it.
struct CutContext<'a> {
    session: &'a Session,
    links: &'a ParentLinks,
    /// The line it goes on from.
    now: Index,
    /// The turn of each line, unless it is of a sub-agent.
    turn_of: Vec<Option<Index>>,
    /// Turns of the session itself; turn `n` is the one before place `n`.
    own: Vec<Index>,
}

impl<'a> CutContext<'a> {
    fn new(session: &'a Session, links: &'a ParentLinks, now: Index) -> CutContext<'a> {
        let turns = session.turns.iter().enumerate();
        let own = turns.filter(|(_, turn)| turn.thread == 0);
        let own: Vec<Index> = own.map(|(at, _)| at as Index).collect();
        let mut turn_of = session.turns_by_record();
        for (record, turn) in session.records.iter().zip(&mut turn_of) {
            *turn = turn.filter(|_| record.thread == 0);
        }
        CutContext {
            session,
            links,
            now,
            turn_of,
            own,
        }
    }

    /// A turn by the number that people give it.
    fn turn(&self, number: i64) -> Result<Index, CutError> {
        let count = self.own.len() as i64;
        let place = if number < 0 {
            count + number
        } else {
            number - 1
        };
        let place = usize::try_from(place).ok();
        let found = place.and_then(|place| self.own.get(place));
        found.copied().ok_or_else(|| CutError::NoTurn {
            turn: number.to_string(),
            count: count as u32,
        })
    }

    /// Which turns stay, by turn.
    fn kept_turns(&self, wanted: &CutOptions) -> Result<Vec<bool>, CutError> {
        let count = self.own.len() as u32;
        let mut kept = vec![true; self.session.turns.len()];
        for (&turn, n) in self.own.iter().zip(1..) {
            let mut ranges = wanted.turns.iter();
            kept[turn as usize] =
                wanted.turns.is_empty() || ranges.any(|range| range.contains(n, count));
        }
        if !self.own.iter().any(|&turn| kept[turn as usize]) && !wanted.turns.is_empty() {
            let asked: Vec<String> = wanted.turns.iter().map(written).collect();
            return Err(CutError::NoTurn {
                turn: asked.join(", "),
                count,
            });
        }
        for &number in &wanted.without {
            kept[self.turn(number)? as usize] = false;
        }
        Ok(kept)
    }

    /// The line that a text means.
    fn line(&self, text: &str) -> Result<Index, CutError> {
        let own = |at: &Index| {
            let record = &self.session.records[*at as usize];
            record.thread == 0 && record.in_chain()
        };
        if let Some(at) = self.session.find(&Id::new(text)).filter(own) {
            return Ok(at);
        }
        let begins = |at: &Index| {
            let id = self.session.records[*at as usize].uuid.as_ref();
            id.is_some_and(|id| id.to_string().starts_with(text))
        };
        let all = self.links.order.iter().copied().filter(own);
        let found: Vec<Index> = all.filter(begins).collect();
        match found[..] {
            [at] => Ok(at),
            [] => Err(CutError::NoLine {
                id: text.to_owned(),
            }),
            _ => Err(CutError::Ambiguous {
                id: text.to_owned(),
                count: found.len(),
            }),
        }
    }

    /// The line itself, or the one above it that every client could go on from.
    fn solid(&self, line: Index) -> Index {
        let is_solid = |at: &Index| {
            let kind = &self.session.records[*at as usize].kind;
            !matches!(kind, LineKind::Progress | LineKind::Unknown)
        };
        self.links.ancestors(line).find(is_solid).unwrap_or(line)
    }

    /// The last line of the message that a line belongs to, results of its calls included.
    fn message_end(&self, line: Index) -> Index {
        let mut family = vec![false; self.session.records.len()];
        self.family(line, &mut family);
        let own = |at: &Index| family[*at as usize];
        let mut lines = self.links.order.iter().rev().copied();
        lines.find(own).unwrap_or(line)
    }

    /// The line that the session goes on from when it is cut.
    fn end(&self, plan: &EditPlan, wanted: &CutOptions, kept: &[bool]) -> Result<Index, CutError> {
        let mut end = self.now;
        if let Some(id) = &wanted.branch {
            end = self.tip(plan, self.line(id)?);
        }
        let branch = self.way(end);
        if let Some(until) = &wanted.until {
            let point = match until {
                CutPoint::Turn(number) => self.last_of(self.turn(*number)?, &branch),
                CutPoint::Line(id) => self.solid(self.line(id)?),
            };
            if wanted.branch.is_some() && !branch[point as usize] {
                let point = match until {
                    CutPoint::Turn(number) => format!("turn {number}"),
                    CutPoint::Line(id) => format!("the line {id}"),
                };
                return Err(CutError::Elsewhere { point });
            }
            end = point;
        }
        let stays = |turn: &Index| kept[*turn as usize];
        if self.turn_of[end as usize].is_some_and(|turn| !stays(&turn)) {
            let way = self.way(end);
            let opener = |turn: Index| self.session.turns[turn as usize].record;
            let on_way = |turn: &Index| stays(turn) && way[opener(*turn) as usize];
            let free = wanted.branch.is_none() && wanted.until.is_none();
            let mut turns = self.own.iter().rev().copied();
            let last = turns.clone().find(on_way);
            let last = last.or_else(|| turns.find(stays).filter(|_| free));
            end = self.last_of(last.ok_or(CutError::Nothing)?, &way);
        }
        Ok(self.message_end(end))
    }

    /// The last line of a turn, on this way if it is on it. Without a compaction at its very
    /// end, which would take its place.
    fn last_of(&self, turn: Index, way: &[bool]) -> Index {
        let opener = self.session.turns[turn as usize].record;
        let on_way = way[opener as usize];
        let is_last = |at: &&Index| {
            let record = &self.session.records[**at as usize];
            self.turn_of[**at as usize] == Some(turn)
                && way[**at as usize] == on_way
                && !matches!(record.kind, LineKind::Progress | LineKind::Unknown)
        };
        let mut end = *self
            .links
            .order
            .iter()
            .rev()
            .find(is_last)
            .unwrap_or(&opener);
        while end != self.now && end != opener {
            let Some(boundary) = self.compaction_at_end(end) else {
                break;
            };
            let before = self.links.order.iter().rev().filter(|at| **at < boundary);
            end = *before.clone().find(is_last).unwrap_or(&opener);
        }
        end
    }

    /// The compaction that a line follows without a reply in between, in the same turn.
    fn compaction_at_end(&self, end: Index) -> Option<Index> {
        let turn = self.turn_of[end as usize];
        for at in self.links.ancestors(end) {
            let record = &self.session.records[at as usize];
            if record.kind == LineKind::Assistant || self.turn_of[at as usize] != turn {
                return None;
            }
            if record.kind.is_boundary() {
                return Some(at);
            }
        }
        None
    }

    /// The end of the branch that a line stands on: the one that goes on, if it does, or else
    /// the last line written behind it.
    fn tip(&self, plan: &EditPlan, line: Index) -> Index {
        if plan.is_live(line) && self.way(self.now)[line as usize] {
            return self.now;
        }
        let mut below = vec![false; self.session.records.len()];
        self.family(line, &mut below);
        let mut children: HashMap<Index, Vec<Index>> = HashMap::new();
        for &at in self.links.order.iter() {
            if let Some(parent) = self.links.above(at) {
                children.entry(parent).or_default().push(at);
            }
        }
        let marked = |at: &Index| below[*at as usize];
        let mut open: Vec<Index> = (0..below.len() as Index).filter(marked).collect();
        let mut tip = line;
        while let Some(at) = open.pop() {
            tip = tip.max(self.solid(at));
            open.extend(children.remove(&at).into_iter().flatten());
        }
        tip
    }

    /// Marks the lines of a message and the results of its calls, given one of them.
    fn family(&self, line: Index, marked: &mut [bool]) {
        marked[line as usize] = true;
        let answered = self.session.calls.iter().find(|call| {
            let result = call.result.as_ref();
            result.is_some_and(|result| result.record == line)
        });
        let own = answered.map_or(line, |call| call.record);
        if let Some(message) = self.session.records[own as usize].message() {
            let message = &self.session.messages[message as usize];
            for &at in &message.records {
                marked[at as usize] = true;
            }
        }
        self.answers(marked);
    }

    /// Marks the results of calls that are marked.
    fn answers(&self, marked: &mut [bool]) {
        for call in &self.session.calls {
            if let Some(result) = &call.result {
                marked[result.record as usize] |= marked[call.record as usize];
            }
        }
    }

    /// The lines that lead to `end`, through compactions: with the siblings of parallel calls,
    /// and with what only hangs beside them.
    fn way(&self, end: Index) -> Vec<bool> {
        let mut way = vec![false; self.session.records.len()];
        self.family(end, &mut way);
        let last = way.clone();
        let mut heads: Vec<Index> = (0..way.len() as Index)
            .filter(|&at| way[at as usize])
            .collect();
        let mut seen = vec![false; way.len()];
        while let Some(at) = heads.pop() {
            if std::mem::replace(&mut seen[at as usize], true) {
                continue;
            }
            way[at as usize] = true;
            heads.extend(
                self.links
                    .above(at)
                    .or_else(|| graph::before(self.session, self.links, at)),
            );
        }
        for message in &self.session.messages {
            if message.records.iter().any(|&at| way[at as usize]) {
                for &at in &message.records {
                    way[at as usize] = true;
                }
            }
        }
        self.answers(&mut way);
        for &at in self.links.order.iter() {
            let record = &self.session.records[at as usize];
            let beside = !record.is_conversation() && !record.kind.is_boundary();
            let hangs = match self.links.above(at) {
                Some(parent) => way[parent as usize] && !last[parent as usize],
                None => at < end,
            };
            way[at as usize] |= beside && hangs;
        }
        way
    }

    /// Whether only the way to `end` may stay, as another branch could take its place. That is
    /// so too where a note says from which line to go on: without what is behind it, the note
    /// would mean something else.
    fn stands_alone(&self, kept: &[bool], end: Index, wanted: &CutOptions) -> bool {
        let own = |at: &Index| self.session.records[*at as usize].thread == 0;
        let last = self.links.order.iter().rev().copied().find(own);
        let some_go = self.own.iter().any(|&turn| !kept[turn as usize]);
        wanted.branch.is_some() || end != self.now || some_go && last != Some(self.now)
    }

    /// Which lines go.
    fn goes(&self, kept: &[bool], end: Index, way: &[bool], alone: bool) -> Vec<bool> {
        let records = &self.session.records;
        let moves = end != self.now;
        let turn_goes = |at: usize| self.turn_of[at].is_some_and(|turn| !kept[turn as usize]);
        let mut goes = vec![false; records.len()];
        for (at, record) in records.iter().enumerate() {
            let in_chain = record.in_chain() || graph::is_nameless(record);
            goes[at] = if record.thread != 0 || record.is_duplicate() {
                false
            } else if in_chain {
                let sums_up =
                    way[at] && (record.kind.is_boundary() || record.input == UserInput::Summary);
                alone && !way[at] || turn_goes(at) && !sums_up
            } else {
                let of_turn = matches!(record.kind, LineKind::Queue)
                    || slim::is_of_turn(self.session, record);
                of_turn && (turn_goes(at) || moves && at > end as usize)
            };
        }
        self.follow(&mut goes);
        self.forget_leaves(&mut goes, alone);
        goes
    }

    /// Lines that go with others: those of sub-agents with the lines that started them, and
    /// earlier versions of a line with the one that counts.
    fn follow(&self, goes: &mut [bool]) {
        let mut thread_goes = vec![false; self.session.threads.len()];
        let mut before = false;
        for (at, record) in self.session.records.iter().enumerate() {
            if record.thread == 0 {
                if record.is_conversation() && !record.is_duplicate() {
                    before = goes[at];
                }
                continue;
            }
            let thread = record.thread as usize;
            if self.session.threads[thread].root == Some(at as Index) {
                thread_goes[thread] = before;
            }
            goes[at] = thread_goes[thread];
        }
        for (at, record) in self.session.records.iter().enumerate() {
            let twin = record.uuid.as_ref().filter(|_| record.is_duplicate());
            if let Some(twin) = twin.and_then(|id| self.session.find(id)) {
                goes[at] = goes[twin as usize];
            }
        }
    }

    /// Notes of where to go on that name lines which go; all of them if the end is another.
    fn forget_leaves(&self, goes: &mut [bool], all: bool) {
        let records = &self.session.records;
        let named = |at: usize| match self.session.detail_of(&records[at]) {
            Some(LineDetail::LastPrompt { leaf, .. }) => {
                Some(leaf.as_ref().and_then(|id| self.session.find(id)))
            }
            _ => None,
        };
        let notes: Vec<usize> = (0..records.len())
            .filter(|&at| named(at).is_some())
            .collect();
        let stale =
            |at: usize, goes: &[bool]| named(at).flatten().is_some_and(|leaf| goes[leaf as usize]);
        let all = all || notes.last().is_some_and(|&at| stale(at, goes));
        for at in notes {
            goes[at] = all || stale(at, goes);
        }
    }

    /// Says what the model will no longer see.
    fn lose(&self, plan: &mut EditPlan, goes: &[bool], alone: bool) {
        let mut turns: Vec<Option<Index>> = Vec::new();
        let (mut lines, mut sum) = (0, 0);
        for (at, record) in self.session.records.iter().enumerate() {
            if goes[at] && plan.is_sent(at as Index) && record.is_conversation() {
                lines += 1;
                sum += self
                    .session
                    .blocks_of(record)
                    .iter()
                    .map(token_estimate::of_block)
                    .sum::<u64>();
                turns.push(self.turn_of[at]);
            }
        }
        turns.sort_unstable();
        turns.dedup();
        match (lines, alone) {
            (0, _) => {}
            (_, true) => plan.lose_tokens(LossKind::Branches, lines, sum),
            (_, false) => plan.lose_tokens(LossKind::Turns, turns.len() as u64, sum),
        }
    }
}

/// A range as it is typed.
fn written(range: &TurnRange) -> String {
    let bound = |bound: Option<i64>| bound.map(|bound| bound.to_string()).unwrap_or_default();
    match (range.from, range.to) {
        (from, to) if from == to => bound(from),
        (from, to) => format!("{}..{}", bound(from), bound(to)),
    }
}
