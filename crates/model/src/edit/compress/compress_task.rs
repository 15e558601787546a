//! The texts that are worth asking for.

use foldhash::{HashSet, HashSetExt};

use super::{CompressRange, MARK};
use crate::block::BlockKind;
use crate::edit::EditPlan;
use crate::edit::turn_age::TurnAges;
use crate::entry::LineKind;
use crate::json;
use crate::log::TranscriptSource;
use crate::session::{EntryRecord, Index, Session};
use crate::token_estimate;
use crate::user_input::UserInput;
use crate::view::client_profile::ClientProfile;
use crate::view::messages;

/// Texts of fewer tokens than this are not worth asking for.
pub const MINIMUM: u64 = 50;

/// The texts of one line that are to become one shorter text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressTask {
    /// The line.
    pub record: Index,
    /// Its blocks of text, by their numbers in the session. Never empty.
    pub blocks: Vec<Index>,
    /// What they say.
    pub text: String,
    /// To how many percent of what was said first the line is shortened.
    pub target: u8,
    /// To how many percent of the text as it is now: more if it was shortened before.
    pub share: u8,
    /// About how many tokens the text takes now.
    pub tokens: u64,
}

impl CompressTask {
    /// How many characters it should become.
    pub(super) fn wanted(&self) -> usize {
        let all = self.text.chars().count();
        (all * usize::from(self.share)).div_ceil(100).max(1)
    }
}

/// The texts of the turns in these bands, in the order of the conversation: what the model
/// said, and with `include_user` what a person typed. Only what a client would send: neither
/// branches that were left nor what lies before the last compaction. Turns are counted on the
/// branch that goes on, those that the plan removes not among them.
pub fn tasks(
    session: &Session,
    source: &dyn TranscriptSource,
    plan: &EditPlan,
    bands: &[CompressRange],
    include_user: bool,
) -> Vec<CompressTask> {
    let ages = TurnAges::new(session, plan);
    let mut seen = HashSet::new();
    let live = messages::live_lines(session, ClientProfile::Strict).into_iter();
    live.filter(|&at| !plan.is_dropped(at) && seen.insert(at))
        .filter_map(|at| {
            let age = ages.of(at).filter(|_| ages.counts(at))?;
            let (position, turns) = (age.checked_sub(1)? as usize, ages.count as usize);
            let band = bands.iter().find(|band| band.contains(position, turns))?;
            task(session, source, plan, at, band.target, include_user)
        })
        .collect()
}

fn task(
    session: &Session,
    source: &dyn TranscriptSource,
    plan: &EditPlan,
    at: Index,
    target: u8,
    include_user: bool,
) -> Option<CompressTask> {
    let record = &session.records[at as usize];
    let is_reply = is_reply(session, record);
    let is_prompt =
        include_user && record.input == UserInput::Prompt && record.kind == LineKind::User;
    if record.thread != 0 || !(is_reply || is_prompt) {
        return None;
    }
    let bytes = session.bytes_of(source, record);
    let mut blocks = Vec::new();
    let mut texts = Vec::new();
    for number in record.blocks.clone() {
        let block = &session.blocks[number as usize];
        if block.kind != BlockKind::Text || block.blank || plan.change(at, number).is_some() {
            continue;
        }
        let text = json::string(block.body().of(&bytes));
        // What programs put into a prompt is marked up, and means something as it stands.
        if is_reply || !text.trim_start().starts_with('<') {
            blocks.push(number);
            texts.push(text);
        }
    }
    let text = texts.join("\n\n");
    let share = share(mark(&bytes), target)?;
    let tokens = token_estimate::of_text(&text);
    (!blocks.is_empty() && tokens >= MINIMUM).then_some(CompressTask {
        record: at,
        blocks,
        text,
        target,
        share,
        tokens,
    })
}

/// Whether the model said it: neither an error nor the client's own words.
fn is_reply(session: &Session, record: &EntryRecord) -> bool {
    let message = record.message().map(|at| &session.messages[at as usize]);
    record.kind == LineKind::Assistant
        && !record.is_api_error()
        && message.is_none_or(|message| !message.synthetic)
}

/// To how many percent a line was shortened before.
fn mark(bytes: &[u8]) -> Option<u8> {
    let raw = json::find(bytes, &MARK)?;
    let percent = json::count(raw.of(bytes))?;
    u8::try_from(percent)
        .ok()
        .filter(|it| (1..=99).contains(it))
}

/// How much of the text as it is now must stay; `None` if it is short enough.
fn share(before: Option<u8>, target: u8) -> Option<u8> {
    match before {
        None => Some(target),
        Some(before) if before <= target => None,
        Some(before) => {
            let share = u32::from(target) * 100 / u32::from(before);
            Some(share.clamp(1, 99) as u8)
        }
    }
}
