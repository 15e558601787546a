//! Items and turns of a session, as rows.

use std::collections::HashMap;

use unspool_model::session::TranscriptRole;
use unspool_model::view::transcript::outline::TranscriptOutline;
use unspool_model::view::transcript::{self, ItemBody};
use unspool_model::view::turns::{self, TurnRow as Turn};
use unspool_serve::{DashboardError, DashboardResponse, ItemsQuery};
use unspool_show::wire::detail::TurnDetailRow;
use unspool_show::wire::item::{CUT, ItemContext, ItemJson};
use unspool_show::wire::turn::TurnJson;

use super::{DashboardBackend, ITEMS, bad};
use crate::failure::CommandFailure;
use crate::session_cache::{OpenConversation, OpenSession};

/// A session larger than this is first answered from its end, if that is enough.
const LARGE: u64 = 16 << 20;

impl DashboardBackend {
    /// The rows of turns, with their texts.
    pub(super) fn turn_rows(
        &self,
        opened: &OpenSession,
        view: &OpenConversation,
        wanted: &[Turn],
    ) -> Vec<TurnDetailRow> {
        let (session, source) = opened.lines(view);
        let course = view.outline.base().course();
        let first = first_items(&view.outline);
        let used = opened.used(&self.inner.prices);
        let row = |turn: &Turn| {
            let mut turn = turn.clone();
            turns::read_turn_texts(session, source, &mut turn);
            let used = used.get(turn.n).copied().unwrap_or_default();
            TurnDetailRow {
                row: TurnJson::new(session, course, &turn, &used),
                first_item: first.get(&turn.n).copied().unwrap_or(0),
                items: None,
            }
        };
        wanted.iter().map(row).collect()
    }

    /// Items of a list, given by their places in it.
    pub(super) fn rows(
        &self,
        opened: &OpenSession,
        view: &OpenConversation,
        id: &str,
        ask: &ItemsQuery,
        places: std::ops::Range<usize>,
        cut: Option<usize>,
    ) -> Result<Vec<ItemJson>, CommandFailure> {
        let (session, _) = opened.lines(view);
        let base = format!("/api/sessions/{id}");
        let frame = ItemContext {
            session,
            base: &base,
            agent: ask.agent.as_deref(),
            cut,
        };
        let level = ItemLevel::named(ask.level.as_deref())?;
        let entries: &[u32] = match level {
            ItemLevel::Turns => return Ok(self.heads(opened, view, &frame, places)),
            ItemLevel::Replies => &view.replies,
            ItemLevel::All => &view.all,
        };
        let wanted = &entries[places.clone()];
        let mut rows = Vec::with_capacity(wanted.len());
        for (entry, item) in self.told(opened, view, wanted) {
            let part = view.outline.part_at(entry);
            let turn = view.outline.turn(part);
            let i = places.start + rows.len();
            let mut row = frame.row(&item, i as i64, turn as i64);
            if let ItemBody::Turn(_) = item.body {
                self.head(opened, view, &frame, part, &mut row);
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// Items with their texts: those that stand close to each other are read together.
    pub(super) fn told(
        &self,
        opened: &OpenSession,
        view: &OpenConversation,
        wanted: &[u32],
    ) -> Vec<(usize, transcript::TranscriptItem)> {
        let (session, source) = opened.lines(view);
        let agents = opened.agents();
        let mut all = Vec::new();
        let mut rest = wanted;
        while let Some(&first) = rest.first() {
            let first = first as usize;
            let end = view.outline.range(view.outline.part_at(first)).end;
            let near = |pair: &(usize, &u32)| *pair.1 as usize == first + pair.0;
            let run = rest.iter().enumerate().take_while(near).count();
            let run = run.min(end - first).max(1);
            let items = view
                .outline
                .items(session, source, &agents, first..first + run);
            all.extend((first..).zip(items));
            rest = &rest[run..];
        }
        all
    }

    /// One row for each turn.
    pub(super) fn heads(
        &self,
        opened: &OpenSession,
        view: &OpenConversation,
        frame: &ItemContext<'_>,
        places: std::ops::Range<usize>,
    ) -> Vec<ItemJson> {
        let parts = view.turns().enumerate();
        let wanted = parts.skip(places.start).take(places.len());
        let row = |(i, part): (usize, usize)| {
            let first = view.outline.range(part).start;
            let entry = view.outline.entries().get(first);
            let mut row = ItemJson {
                i: i as i64,
                kind: "turn",
                turn: view.outline.turn(part) as i64,
                line: entry.map_or(0, |entry| entry.line),
                ..ItemJson::default()
            };
            self.head(opened, view, frame, part, &mut row);
            row
        };
        wanted.map(row).collect()
    }

    /// What the head of a turn tells.
    pub(super) fn head(
        &self,
        opened: &OpenSession,
        view: &OpenConversation,
        frame: &ItemContext<'_>,
        part: usize,
        row: &mut ItemJson,
    ) {
        let (session, source) = opened.lines(view);
        let outline = &view.outline;
        let range = outline.range(part);
        row.first_item = view.all.binary_search(&(range.start as u32)).ok();
        row.items = Some(range.len());
        let own = outline.thread() == 0;
        let turn = turns::numbered(outline.base().turns(), outline.turn(part));
        let Some(mut turn) = turn.filter(|_| own).cloned() else {
            return;
        };
        turns::read_turn_texts(session, source, &mut turn);
        let opener = &session.records[turn.record as usize];
        row.uuid = opener.uuid.as_ref().map(ToString::to_string);
        row.at = turn.at.map(|at| at.to_string());
        row.line = opener.line;
        let used = opened.used(&self.inner.prices);
        let used = used.get(turn.n).copied().unwrap_or_default();
        frame.head(row, &turn, outline.base().course(), &used);
    }

    /// The end of a large session at once. Nothing else is begun: reading all of it takes every
    /// processor there is, and whoever asked wants to show something first.
    pub(super) fn quickly(
        &self,
        id: &str,
        ask: &ItemsQuery,
    ) -> Result<Option<DashboardResponse>, DashboardError> {
        let (Some(_), Some(last)) = (ask.quick.filter(|quick| *quick != 0), ask.last) else {
            return Ok(None);
        };
        let own = ask.agent.is_none() && ask.branch.is_none();
        let target = self.inner.desk.file(self.world(), id)?;
        let bytes = std::fs::metadata(target.path()).map_or(0, |metadata| metadata.len());
        if !own || bytes <= LARGE || self.inner.desk.is_open(&target) {
            return Ok(None);
        }
        let level = ItemLevel::named(ask.level.as_deref()).map_err(bad)?;
        let count = last.clamp(1, ITEMS);
        let turns = match level {
            ItemLevel::Turns => count,
            ItemLevel::Replies | ItemLevel::All => 1,
        };
        let world = self.world();
        let reader = world.reader();
        // More than this is not at once any more.
        let main = reader
            .read_end(target.path(), TranscriptRole::Main, turns, 4 << 20)
            .map_err(CommandFailure::from)?;
        let opened = OpenSession::end(target, main);
        let view = opened.view(None, None)?;
        let total = level.count(&view);
        let from = total.saturating_sub(count);
        let mut rows = self.rows(&opened, &view, id, ask, from..total, Some(CUT))?;
        let known = view.outline.base().turns().last();
        let known = known.map_or(0, |turn| turn.n as i64);
        for row in &mut rows {
            row.i -= total as i64;
            row.turn -= known + 1;
            row.first_item = None;
            // Lines are counted from where reading began.
            row.line = 0;
            row.images.clear();
        }
        Ok(Some(
            DashboardResponse::json(&rows)?.with("unspool-partial", 1),
        ))
    }
}

/// How much of a conversation is listed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemLevel {
    Turns,
    Replies,
    All,
}

impl ItemLevel {
    pub(super) fn named(name: Option<&str>) -> Result<ItemLevel, CommandFailure> {
        match name {
            None | Some("all") => Ok(ItemLevel::All),
            Some("replies") => Ok(ItemLevel::Replies),
            Some("turns") => Ok(ItemLevel::Turns),
            Some(other) => Err(CommandFailure::failed(format!("`{other}` is not a level"))
                .hint("use turns, replies or all")),
        }
    }

    pub(super) fn count(self, view: &OpenConversation) -> usize {
        match self {
            ItemLevel::Turns => view.turns().count(),
            ItemLevel::Replies => view.replies.len(),
            ItemLevel::All => view.all.len(),
        }
    }

    /// The place in this list of an item of the list of all, or of the last one before it.
    pub(super) fn place(self, view: &OpenConversation, at: usize) -> usize {
        let Some(&entry) = view.all.get(at) else {
            return 0;
        };
        match self {
            ItemLevel::All => at,
            ItemLevel::Replies => view
                .replies
                .partition_point(|&reply| reply <= entry)
                .saturating_sub(1),
            ItemLevel::Turns => {
                let part = view.outline.part_at(entry as usize);
                view.turns()
                    .take_while(|&one| one <= part)
                    .count()
                    .saturating_sub(1)
            }
        }
    }
}

/// Where the items of each turn begin.
fn first_items(outline: &TranscriptOutline) -> HashMap<usize, usize> {
    let parts = 0..outline.parts();
    parts
        .map(|part| (outline.turn(part), outline.range(part).start))
        .collect()
}

/// The part of a list that is asked for.
pub(super) fn range(
    total: usize,
    from: Option<usize>,
    limit: Option<usize>,
    last: Option<usize>,
    most: usize,
) -> std::ops::Range<usize> {
    let limit = limit.unwrap_or(most).min(most);
    match (from, last) {
        (None, Some(last)) => total.saturating_sub(last.min(most))..total,
        (from, _) => {
            let from = from.unwrap_or(0).min(total);
            from..from.saturating_add(limit).min(total)
        }
    }
}
