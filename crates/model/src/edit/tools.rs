//! Tool calls and results that go or are made shorter.
//!
//! Turns of the session itself are looked at; the lines of sub-agents are their own sessions.
//! All blocks with one id share one fate, wherever they stand: the newest of their turns
//! decides. Calls that still run are left alone.

use foldhash::{HashMap, HashMapExt, HashSet};

use super::truncate::TextTruncation;
use super::turn_age::TurnAges;
use super::{EditPlan, LossKind, thinking};
use crate::block::BlockKind;
use crate::entry::LineKind;
use crate::json;
use crate::log::TranscriptSource;
use crate::session::{BlockRecord, Index, Session, ToolCall};
use crate::token_estimate;
use crate::user_input::UserInput;
use crate::view::turns::{CallStatus, ThreadEnds};

/// How many of the last turns with tools stay, and how many of these are cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptToolTurns {
    /// So many turns with tools stay; the calls of older ones go.
    pub turns: usize,
    /// Of those that stay, this share in percent, the oldest, is cut short.
    pub truncate: u8,
}

/// The presets that need no file.
pub const PRESETS: &[(&str, KeptToolTurns)] = &[
    ("default", of(20, 50)),
    ("aggressive", of(10, 50)),
    ("heavy", of(10, 80)),
    ("extreme", of(0, 0)),
];

const fn of(turns: usize, truncate: u8) -> KeptToolTurns {
    KeptToolTurns { turns, truncate }
}

/// The preset with this name.
pub fn preset_named(name: &str) -> Option<KeptToolTurns> {
    let found = PRESETS.iter().find(|(known, _)| *known == name);
    found.map(|(_, keep)| *keep)
}

/// What becomes of the calls of the oldest turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripToolCalls {
    /// This share of the turns, the oldest; 100 and more is all.
    pub percent: u8,
    /// What becomes of them.
    pub mode: ToolCallAction,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolCallAction {
    /// It goes, with its result.
    #[default]
    Remove,
    /// Two lines and 120 characters of each text stay.
    Truncate,
}

/// Keeps the calls of the last turns with tools. Nothing happens where there are none.
pub fn keep(
    session: &Session,
    source: &dyn TranscriptSource,
    plan: &mut EditPlan,
    keep: KeptToolTurns,
) {
    let ages = TurnAges::new(session, plan);
    let with_tools = turns_with_tools(session, &ages);
    let kept = keep.turns.min(with_tools.len());
    let cut = kept * usize::from(keep.truncate.min(100)) / 100;
    let first = with_tools.len() - kept;
    let age = |nth: usize| with_tools.get(nth).copied().unwrap_or(u32::MAX);
    let borders = TurnAgeLimits {
        remove: if first == 0 && keep.turns > 0 {
            0
        } else {
            age(first)
        },
        cut: if cut == 0 { 0 } else { age(first + cut) },
    };
    apply(session, source, plan, &ages, borders);
}

/// What a preset does: the calls of the last turns with tools stay, and what else only served
/// the work goes too: thinking, notes of the queue and of progress, and the long results in
/// notifications of tasks. Nothing happens where there are no tools.
pub fn preset(
    session: &Session,
    source: &dyn TranscriptSource,
    plan: &mut EditPlan,
    wanted: KeptToolTurns,
) {
    let own = |at: Index| session.records[at as usize].thread == 0 && !plan.is_dropped(at);
    let mut own = (0..session.records.len() as Index).filter(|&at| own(at));
    if !own.any(|at| has_tools(session, at)) {
        return;
    }
    keep(session, source, plan, wanted);
    thinking::strip(session, plan, thinking::ThinkingShare::All);
    for (at, record) in session.records.iter().enumerate() {
        match record.kind {
            LineKind::Queue | LineKind::Progress => plan.drop(at as Index),
            LineKind::User if record.input == UserInput::Machine => {
                shorten(session, source, plan, at as Index)
            }
            _ => {}
        }
    }
}

/// Lets the calls of the oldest turns go, or cuts them short.
pub fn strip(
    session: &Session,
    source: &dyn TranscriptSource,
    plan: &mut EditPlan,
    strip: StripToolCalls,
) {
    let ages = TurnAges::new(session, plan);
    let behind = ages.behind(strip.percent);
    let borders = match strip.mode {
        ToolCallAction::Remove => TurnAgeLimits {
            remove: behind,
            cut: 0,
        },
        ToolCallAction::Truncate => TurnAgeLimits {
            remove: 0,
            cut: behind,
        },
    };
    apply(session, source, plan, &ages, borders);
}

/// Cuts the middle out of results with more bytes than this; what was called stays.
pub fn results_over(
    session: &Session,
    source: &dyn TranscriptSource,
    plan: &mut EditPlan,
    bytes: usize,
) {
    let cutter = TextTruncation::Over(bytes);
    for (at, record) in session.records.iter().enumerate() {
        let at = at as Index;
        if plan.is_dropped(at) {
            continue;
        }
        for block in record.blocks.clone() {
            let large = &session.blocks[block as usize];
            if large.kind != BlockKind::ToolResult || large.body().len <= bytes {
                continue;
            }
            if cut(session, source, plan, (at, block), cutter) {
                plan.cut_copy(at, cutter);
            }
        }
    }
}

/// Where zones end, as ages: calls younger than both stay.
#[derive(Clone, Copy, Debug)]
struct TurnAgeLimits {
    /// Older calls go.
    remove: u32,
    /// Older calls are cut short, if they do not go.
    cut: u32,
}

/// What becomes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BlockAction {
    Goes,
    Short,
    Stays,
}

impl TurnAgeLimits {
    fn fate(self, age: u32) -> BlockAction {
        if age < self.remove {
            BlockAction::Goes
        } else if age < self.cut {
            BlockAction::Short
        } else {
            BlockAction::Stays
        }
    }
}

/// Whether a block is a call or a result of any kind.
fn is_tool(session: &Session, block: &BlockRecord) -> bool {
    is_call(block) || block.kind == BlockKind::ToolResult || is_server_result(session, block)
}

fn is_call(block: &BlockRecord) -> bool {
    matches!(block.kind, BlockKind::ToolUse | BlockKind::ServerToolUse)
}

/// Whether a block belongs to a tool that runs at the API.
fn is_server(session: &Session, block: &BlockRecord) -> bool {
    block.kind == BlockKind::ServerToolUse || is_server_result(session, block)
}

/// Results of tools that run at the API stand beside their calls, as `web_search_tool_result`.
fn is_server_result(session: &Session, block: &BlockRecord) -> bool {
    let ends = |name: &str| name.ends_with("_tool_result");
    block.kind == BlockKind::Other && session.tool_of(block).is_some_and(ends)
}

fn has_tools(session: &Session, at: Index) -> bool {
    let blocks = session.blocks_of(&session.records[at as usize]);
    blocks.iter().any(|block| is_tool(session, block))
}

/// The ages of the turns that hold calls or results, oldest first.
fn turns_with_tools(session: &Session, ages: &TurnAges) -> Vec<u32> {
    let all = 0..session.records.len() as Index;
    let with = all.filter(|&at| ages.counts(at) && has_tools(session, at));
    let mut with: Vec<u32> = with.filter_map(|at| ages.of(at)).collect();
    with.sort_unstable();
    with.dedup();
    with
}

fn apply(
    session: &Session,
    source: &dyn TranscriptSource,
    plan: &mut EditPlan,
    ages: &TurnAges,
    borders: TurnAgeLimits,
) {
    let fates = fates(session, ages, borders);
    let mut short: HashSet<Index> = HashSet::default();
    for (at, record) in session.records.iter().enumerate() {
        let at = at as Index;
        let Some(age) = ages.of(at) else { continue };
        for number in record.blocks.clone() {
            let block = &session.blocks[number as usize];
            let id = own_id(session, block);
            let fate = id.and_then(|id| fates.get(&id).copied());
            match fate.unwrap_or_else(|| borders.fate(age)) {
                _ if !is_tool(session, block) => {}
                BlockAction::Goes => remove(session, plan, at, number),
                // What the API ran is sealed: it stays whole or goes.
                BlockAction::Short if is_server(session, block) => {}
                BlockAction::Short => {
                    let cut = cut(session, source, plan, (at, number), TextTruncation::Start);
                    let copied = || has_long_copy(session, source, at);
                    if cut || block.kind == BlockKind::ToolResult && copied() {
                        short.extend(id);
                    }
                }
                BlockAction::Stays => {}
            }
        }
    }
    forget_copies(session, plan, &short);
}

/// The copy of a result for the screen says all that was cut from the call or the result.
fn forget_copies(session: &Session, plan: &mut EditPlan, short: &HashSet<Index>) {
    for (at, record) in session.records.iter().enumerate() {
        let blocks = session.blocks_of(record).iter();
        let mut results = blocks.filter(|block| block.kind == BlockKind::ToolResult);
        let is_short =
            |block: &BlockRecord| own_id(session, block).is_some_and(|id| short.contains(&id));
        if !short.is_empty() && results.any(is_short) && !plan.is_dropped(at as Index) {
            plan.remove_copy(at as Index);
        }
    }
}

/// The fate of each id: the newest turn in which it is called decides.
fn fates(
    session: &Session,
    ages: &TurnAges,
    borders: TurnAgeLimits,
) -> HashMap<Index, BlockAction> {
    let mut fates = HashMap::new();
    for (at, record) in session.records.iter().enumerate() {
        let Some(age) = ages.of(at as Index) else {
            continue;
        };
        let calls = session.blocks_of(record).iter();
        for block in calls.filter(|block| block.kind == BlockKind::ToolUse) {
            if let Some(id) = own_id(session, block) {
                let known = fates.entry(id).or_insert(BlockAction::Goes);
                *known = borders.fate(age).max(*known);
            }
        }
    }
    let course = ThreadEnds::of(session);
    let runs = |call: &&ToolCall| course.status(session, call) == CallStatus::Running;
    for call in session.calls.iter().filter(runs) {
        let block = &session.blocks[call.block as usize];
        fates.extend(block.key().map(|id| (id, BlockAction::Stays)));
    }
    fates
}

/// The id that pairs a call of the client with its result, as a number.
fn own_id(session: &Session, block: &BlockRecord) -> Option<Index> {
    let own = matches!(block.kind, BlockKind::ToolUse | BlockKind::ToolResult);
    let named = || session.id_of(block).is_some_and(|id| !id.is_empty());
    block.key().filter(|_| own && named())
}

fn remove(session: &Session, plan: &mut EditPlan, at: Index, number: Index) {
    if plan.is_removed(at, number) {
        return;
    }
    let block = &session.blocks[number as usize];
    plan.remove_block(at, number);
    let answers = block.kind == BlockKind::ToolResult;
    if answers {
        plan.remove_copy(at);
    }
    if plan.is_sent(at) {
        let call = session.id_of(block).and_then(|id| session.find_call(id));
        let call = call.filter(|_| own_id(session, block).is_some());
        let alone = !answers && !is_server_result(session, block) || answers && call.is_none();
        plan.lose_tokens(
            LossKind::Calls,
            u64::from(alone),
            token_estimate::of_block(block),
        );
    }
}

/// Cuts a block, if that makes it shorter; says whether it does.
fn cut(
    session: &Session,
    source: &dyn TranscriptSource,
    plan: &mut EditPlan,
    (at, number): (Index, Index),
    cutter: TextTruncation,
) -> bool {
    if plan.is_removed(at, number) || plan.change(at, number).is_some() {
        return false;
    }
    let bytes = session.bytes_of(source, &session.records[at as usize]);
    let body = session.blocks[number as usize].body().of(&bytes);
    let Some(new) = cutter.value(body) else {
        return false;
    };
    plan.cut_block(at, number, cutter);
    if plan.is_sent(at) {
        let loss = match cutter {
            TextTruncation::Start => LossKind::Cut,
            TextTruncation::Over(_) => LossKind::Middles,
        };
        let gone = body.len().saturating_sub(new.len());
        plan.lose_tokens(loss, 1, token_estimate::of_bytes(gone));
    }
    true
}

/// Whether the copy of a result for the screen holds more than a cut result would.
fn has_long_copy(session: &Session, source: &dyn TranscriptSource, at: Index) -> bool {
    let bytes = session.bytes_of(source, &session.records[at as usize]);
    let copy = json::find(&bytes, &["toolUseResult"]);
    copy.is_some_and(|span| TextTruncation::Start.value(span.of(&bytes)).is_some())
}

/// How a notification of a task is told from other text, and where its result stands.
const NOTIFICATION: &str = "<task-notification>";
const RESULT: (&str, &str) = ("<result>", "</result>");

/// So many characters of the result in a notification stay, with a note.
const RESULT_CHARACTERS: usize = 150;
const NOTE: &str = " (remaining content truncated)";

/// Cuts the result in a notification of a task.
fn shorten(session: &Session, source: &dyn TranscriptSource, plan: &mut EditPlan, at: Index) {
    let record = &session.records[at as usize];
    let bytes = session.bytes_of(source, record);
    for number in record.blocks.clone() {
        let block = &session.blocks[number as usize];
        if block.kind != BlockKind::Text || plan.is_removed(at, number) {
            continue;
        }
        let text = json::string(block.body().of(&bytes));
        if let Some(short) = shortened(&text) {
            let gone = text.len().saturating_sub(short.len());
            plan.say(at, number, &short);
            if plan.is_sent(at) {
                plan.lose_tokens(LossKind::Cut, 1, token_estimate::of_bytes(gone));
            }
        }
    }
}

/// The notification with its result cut; `None` if it is none, or short enough.
fn shortened(text: &str) -> Option<String> {
    if !text.trim_start().starts_with(NOTIFICATION) {
        return None;
    }
    let start = text.find(RESULT.0)? + RESULT.0.len();
    let end = text.rfind(RESULT.1).filter(|end| *end >= start)?;
    let body = &text[start..end];
    let cut = body.char_indices().nth(RESULT_CHARACTERS)?.0;
    let (head, rest) = body.split_at(cut);
    // Two ways to say that it was cut would be one too many.
    (rest.len() > NOTE.len()).then(|| format!("{}{head}{NOTE}{}", &text[..start], &text[end..]))
}
