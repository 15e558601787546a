//! One conversation on the screen: where one is in it, what is folded, what was laid out.
//!
//! Rows are counted only around what is shown: a place is a turn, a part of it and a row of
//! that part, and moving goes from row to row. So it does not matter how long a session is.

use std::collections::{BTreeSet, HashMap, HashSet};

use unspool_model::user_input::UserInput;

use crate::loader_protocol::{
    ConversationId, PART, PageBlock, PageOptions, PageRequest, TurnExcerpt, TurnOutline, TurnPage,
};

/// A row: of the head of a turn (part 0), or of one of its parts (from 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowPosition {
    /// The turn.
    pub turn: usize,
    /// 0 for its head, else the part plus one.
    pub unit: usize,
    /// The row in it.
    pub row: usize,
}

/// What the cursor is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCursor {
    /// The turn.
    pub turn: usize,
    /// 0 for its head, else the part plus one.
    pub unit: usize,
    /// Which block of it.
    pub block: usize,
}

/// A page that was laid out.
#[derive(Clone, Debug)]
struct LaidOutPage {
    page: TurnPage,
    look: PageOptions,
    revision: u64,
}

/// A conversation on the screen.
#[derive(Debug)]
pub struct ConversationView {
    /// Which one.
    pub of: ConversationId,
    /// What it is called.
    pub name: String,
    /// Its turns.
    pub turns: Vec<TurnOutline>,
    /// Whether the turns were told at least once.
    pub known: bool,
    /// Only the end was read so far.
    pub partial: bool,
    revision: u64,
    heads: HashMap<usize, (u64, TurnExcerpt)>,
    pages: HashMap<(usize, usize), LaidOutPage>,
    /// Turns are unfolded unless they are flipped, or the other way round.
    unfolded: bool,
    flipped: HashSet<usize>,
    /// The turn that was unfolded because it is the last.
    last: Option<usize>,
    /// Lines whose blocks are shown whole.
    pub open: BTreeSet<u32>,
    /// The first row on the screen.
    pub top: RowPosition,
    /// What the cursor is on.
    pub cursor: BlockCursor,
    /// Stays at the end.
    pub follow: bool,
    /// The line to go to once its page is there: its turn, its part and its number.
    pub sought: Option<(usize, usize, u32)>,
    /// The text that is looked for in it.
    pub needle: String,
    /// Rows on the screen.
    pub height: usize,
}

/// Most rows that are expected of a part before it is laid out.
const GUESS: usize = 60;
/// How many pages are kept.
const KEPT: usize = 96;

impl ConversationView {
    /// A conversation of which nothing is known yet.
    pub fn new(of: ConversationId, name: String) -> ConversationView {
        ConversationView {
            of,
            name,
            turns: Vec::new(),
            known: false,
            partial: false,
            revision: 0,
            heads: HashMap::new(),
            pages: HashMap::new(),
            unfolded: false,
            flipped: HashSet::new(),
            last: None,
            open: BTreeSet::new(),
            top: RowPosition::default(),
            cursor: BlockCursor::default(),
            follow: true,
            sought: None,
            needle: String::new(),
            height: 20,
        }
    }

    /// Takes the turns as they are now; places stay where they were in the file.
    pub fn take_turns(&mut self, turns: Vec<TurnOutline>, partial: bool, revision: u64) {
        let was_partial = self.partial && !partial;
        let places: HashMap<u64, usize> = turns
            .iter()
            .enumerate()
            .map(|(at, turn)| (turn.offset, at))
            .collect();
        let old = std::mem::replace(&mut self.turns, turns);
        let moved = |at: usize| {
            old.get(at)
                .and_then(|turn| places.get(&turn.offset))
                .copied()
        };
        if self.known {
            let end = self.turns.len().saturating_sub(1);
            self.top.turn = moved(self.top.turn).unwrap_or(end);
            self.cursor.turn = moved(self.cursor.turn).unwrap_or(end);
            self.flipped = self.flipped.iter().filter_map(|&at| moved(at)).collect();
            self.last = self.last.and_then(moved);
            let heads = std::mem::take(&mut self.heads).into_iter();
            self.heads = heads
                .filter_map(|(at, head)| Some((moved(at)?, head)))
                .collect();
            let pages = std::mem::take(&mut self.pages).into_iter();
            self.pages = pages
                .filter_map(|((turn, part), page)| Some(((moved(turn)?, part), page)))
                .collect();
            self.sought = self
                .sought
                .and_then(|(turn, part, line)| Some((moved(turn)?, part, line)));
        }
        if was_partial {
            // Lines were counted from the place where reading began.
            self.open.clear();
        }
        (self.partial, self.revision) = (partial, revision);
        let first = !std::mem::replace(&mut self.known, true);
        self.unfold_last();
        if first || self.follow {
            self.go_end();
        }
        self.hold();
    }

    /// The last turn is open; the one before it closes again if nobody reads it.
    fn unfold_last(&mut self) {
        let Some(end) = self.turns.len().checked_sub(1) else {
            return;
        };
        if self.last == Some(end) {
            return;
        }
        if let Some(before) = self.last.filter(|_| self.follow) {
            self.set_fold(before, false);
        }
        self.set_fold(end, true);
        self.last = Some(end);
    }

    /// Takes a head.
    pub fn take_head(&mut self, turn: usize, revision: u64, head: TurnExcerpt) {
        if turn < self.turns.len() {
            self.heads.insert(turn, (revision, head));
        }
    }

    /// Takes a page.
    pub fn take_page(
        &mut self,
        turn: usize,
        part: usize,
        revision: u64,
        look: PageOptions,
        page: TurnPage,
    ) {
        if turn >= self.turns.len() {
            return;
        }
        if self.pages.len() >= KEPT {
            self.forget();
        }
        let laid = LaidOutPage {
            page,
            look,
            revision,
        };
        // Rows come and go above and below: what the cursor is on stays where it is.
        let place = self.place();
        self.pages.insert((turn, part), laid);
        if self.follow {
            self.go_end();
        } else if let Some(row) = place {
            self.cursor = self.held(self.cursor);
            self.top = self.back(self.span(self.cursor).0, row);
        }
        self.hold();
    }

    /// The row of the screen that the cursor is on, if it is on the screen.
    fn place(&self) -> Option<usize> {
        let first = self.span(self.cursor).0;
        self.shown().position(|spot| spot == first)
    }

    /// Forgets pages that are far from what is shown.
    fn forget(&mut self) {
        let near = |at: usize| at.abs_diff(self.top.turn);
        let mut far: Vec<(usize, usize)> = self.pages.keys().copied().collect();
        far.sort_by_key(|&(turn, part)| {
            let parts = if turn == self.top.turn {
                (part + 1).abs_diff(self.top.unit)
            } else {
                usize::MAX / 2
            };
            (near(turn), parts)
        });
        for key in far.split_off(KEPT / 2) {
            self.pages.remove(&key);
        }
    }

    /// Whether a turn is unfolded.
    pub fn is_unfolded(&self, turn: usize) -> bool {
        self.unfolded != self.flipped.contains(&turn)
    }

    fn set_fold(&mut self, turn: usize, unfolded: bool) {
        if self.is_unfolded(turn) != unfolded && !self.flipped.remove(&turn) {
            self.flipped.insert(turn);
        }
    }

    /// Folds or unfolds the turn under the cursor.
    pub fn fold(&mut self) {
        let turn = self.cursor.turn;
        let unfolded = !self.is_unfolded(turn);
        self.set_fold(turn, unfolded);
        self.follow = false;
        self.go(BlockCursor {
            turn,
            unit: 0,
            block: 0,
        });
    }

    /// Folds all turns, or unfolds all.
    pub fn fold_all(&mut self) {
        self.unfolded = !self.unfolded;
        self.flipped.clear();
        self.follow = false;
        let turn = self.cursor.turn;
        self.top = RowPosition {
            turn,
            ..RowPosition::default()
        };
        self.go(BlockCursor {
            turn,
            unit: 0,
            block: 0,
        });
    }

    /// Whether all turns are unfolded by themselves.
    pub fn all_unfolded(&self) -> bool {
        self.unfolded
    }

    /// The head of a turn, if it was read.
    pub fn head(&self, turn: usize) -> Option<&TurnExcerpt> {
        self.heads.get(&turn).map(|(_, head)| head)
    }

    /// A page, if it was laid out; perhaps in another way than it should be.
    pub fn page(&self, turn: usize, part: usize) -> Option<&TurnPage> {
        self.pages.get(&(turn, part)).map(|laid| &laid.page)
    }

    /// A blank row stands above the head of a turn that is, or follows, an unfolded one.
    pub fn gap(&self, turn: usize) -> usize {
        let open = self.is_unfolded(turn) || turn > 0 && self.is_unfolded(turn - 1);
        usize::from(turn > 0 && open)
    }

    /// Rows of a head or a part.
    fn rows(&self, turn: usize, unit: usize) -> usize {
        match unit.checked_sub(1) {
            None if self.is_unfolded(turn) => self.gap(turn) + 1,
            None => self.gap(turn) + 2,
            Some(part) => match self.page(turn, part) {
                Some(page) => page.rows.len(),
                None => self.guess(turn, part),
            },
        }
    }

    /// About how many rows a part will have that was not laid out yet: enough not to ask for
    /// all parts of a long turn because each could be one row.
    fn guess(&self, turn: usize, part: usize) -> usize {
        let lines = self.turns.get(turn).map_or(0, |turn| turn.lines);
        lines.saturating_sub(part * PART).clamp(1, GUESS)
    }

    fn units(&self, turn: usize) -> usize {
        match self.is_unfolded(turn) {
            true => 1 + self.turns.get(turn).map_or(0, |turn| turn.parts),
            false => 1,
        }
    }

    /// Heads and parts behind this one, in order.
    fn behind(&self, turn: usize, unit: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let step = move |&(turn, unit): &(usize, usize)| match unit + 1 < self.units(turn) {
            true => Some((turn, unit + 1)),
            false => Some((turn + 1, 0)).filter(|&(turn, _)| turn < self.turns.len()),
        };
        std::iter::successors(Some((turn, unit)), step).skip(1)
    }

    /// Heads and parts before this one, the nearest first.
    fn ahead(&self, turn: usize, unit: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let step = move |&(turn, unit): &(usize, usize)| match unit.checked_sub(1) {
            Some(unit) => Some((turn, unit)),
            None => turn.checked_sub(1).map(|turn| (turn, self.units(turn) - 1)),
        };
        std::iter::successors(Some((turn, unit)), step).skip(1)
    }

    /// The row behind, if there is one.
    fn next(&self, spot: RowPosition) -> Option<RowPosition> {
        if spot.row + 1 < self.rows(spot.turn, spot.unit) {
            return Some(RowPosition {
                row: spot.row + 1,
                ..spot
            });
        }
        let mut behind = self.behind(spot.turn, spot.unit);
        let (turn, unit) = behind.find(|&(turn, unit)| self.rows(turn, unit) > 0)?;
        Some(RowPosition { turn, unit, row: 0 })
    }

    /// The row before, if there is one.
    fn previous(&self, spot: RowPosition) -> Option<RowPosition> {
        if spot.row > 0 {
            return Some(RowPosition {
                row: spot.row - 1,
                ..spot
            });
        }
        self.ahead(spot.turn, spot.unit).find_map(|(turn, unit)| {
            let row = self.rows(turn, unit).checked_sub(1)?;
            Some(RowPosition { turn, unit, row })
        })
    }

    /// The place so many rows on, or the last one.
    fn forward(&self, mut spot: RowPosition, rows: usize) -> RowPosition {
        for _ in 0..rows {
            match self.next(spot) {
                Some(next) => spot = next,
                None => break,
            }
        }
        spot
    }

    /// The place so many rows back, or the first one.
    fn back(&self, mut spot: RowPosition, rows: usize) -> RowPosition {
        for _ in 0..rows {
            match self.previous(spot) {
                Some(before) => spot = before,
                None => break,
            }
        }
        spot
    }

    fn last_row(&self) -> RowPosition {
        let Some(turn) = self.turns.len().checked_sub(1) else {
            return RowPosition::default();
        };
        let behind = RowPosition {
            turn: turn + 1,
            unit: 0,
            row: 0,
        };
        self.previous(behind).unwrap_or_default()
    }

    /// The rows on the screen, from the top.
    pub fn shown(&self) -> impl Iterator<Item = RowPosition> + '_ {
        let first = (!self.turns.is_empty()).then_some(self.top);
        std::iter::successors(first, |spot| self.next(*spot)).take(self.height)
    }

    /// Puts the place within what there is: pages come and go.
    fn hold(&mut self) {
        let Some(end) = self.turns.len().checked_sub(1) else {
            return;
        };
        let top = &mut self.top;
        top.turn = top.turn.min(end);
        let units = self.units(self.top.turn);
        self.top.unit = self.top.unit.min(units - 1);
        let rows = self.rows(self.top.turn, self.top.unit);
        self.top.row = self.top.row.min(rows.saturating_sub(1));
        // No blank rows below the end while there is something above.
        let bottom = self.back(self.last_row(), self.height.saturating_sub(1));
        self.top = self.top.min(bottom);
        self.cursor = self.held(self.cursor);
        self.reach();
    }

    fn held(&self, mut cursor: BlockCursor) -> BlockCursor {
        cursor.turn = cursor.turn.min(self.turns.len().saturating_sub(1));
        if cursor.unit >= self.units(cursor.turn) {
            (cursor.unit, cursor.block) = (0, 0);
        }
        // A page that is not there yet may have any number of blocks.
        let laid = cursor.unit.checked_sub(1);
        if let Some(page) = laid.and_then(|part| self.page(cursor.turn, part)) {
            cursor.block = cursor.block.min(page.blocks.len().saturating_sub(1));
        } else if cursor.unit == 0 {
            cursor.block = 0;
        }
        cursor
    }

    /// Goes to a line that was looked for, once its page is there.
    fn reach(&mut self) {
        let Some((turn, part, line)) = self.sought else {
            return;
        };
        let Some(laid) = self.pages.get(&(turn, part)) else {
            return;
        };
        if laid.revision < self.revision || laid.look.open != self.open {
            return;
        }
        let blocks = laid.page.blocks.iter();
        let mut place = blocks.enumerate().filter(|(_, block)| block.line <= line);
        let block = place.next_back().map_or(0, |(at, _)| at);
        let row = self.row_of_needle(&laid.page, block);
        self.sought = None;
        self.follow = false;
        self.cursor = BlockCursor {
            turn,
            unit: part + 1,
            block,
        };
        let start = self.span(self.cursor).0;
        let row = row.unwrap_or(start.row);
        self.top = self.back(RowPosition { row, ..start }, self.height / 4);
    }

    /// The row of a block that holds what is looked for.
    fn row_of_needle(&self, page: &TurnPage, block: usize) -> Option<usize> {
        let rows = page.blocks.get(block)?.rows.clone();
        let needle = self.needle.to_lowercase();
        let holds = |row: &usize| {
            let text = page.rows[*row].text().to_lowercase();
            !needle.is_empty() && text.contains(&needle)
        };
        rows.clone().find(holds)
    }

    /// First and last row of a block.
    fn span(&self, cursor: BlockCursor) -> (RowPosition, RowPosition) {
        let BlockCursor { turn, unit, block } = cursor;
        let spot = |row| RowPosition { turn, unit, row };
        let Some(part) = unit.checked_sub(1) else {
            let rows = self.rows(turn, 0);
            return (spot(self.gap(turn).min(rows - 1)), spot(rows - 1));
        };
        let blocks = self.page(turn, part).map(|page| &page.blocks);
        match blocks.and_then(|blocks| blocks.get(block)) {
            Some(block) => (spot(block.rows.start), spot(block.rows.end - 1)),
            // From below one comes to the end of what is not there yet.
            None if block > 0 => {
                let last = spot(self.rows(turn, unit).saturating_sub(1));
                (last, last)
            }
            None => (spot(0), spot(0)),
        }
    }

    /// The block under the cursor.
    pub fn block(&self) -> Option<&PageBlock> {
        let part = self.cursor.unit.checked_sub(1)?;
        self.page(self.cursor.turn, part)?
            .blocks
            .get(self.cursor.block)
    }

    /// What stands at a row.
    pub fn cursor_at(&self, spot: RowPosition) -> BlockCursor {
        let block = spot.unit.checked_sub(1).map_or(0, |part| {
            let page = self.page(spot.turn, part);
            let blocks = page.map_or(&[][..], |page| &page.blocks);
            let before = blocks.iter().filter(|block| block.rows.start <= spot.row);
            before.count().saturating_sub(1)
        });
        BlockCursor {
            turn: spot.turn,
            unit: spot.unit,
            block,
        }
    }

    /// Whether the cursor is on the block at this row.
    pub fn is_at_cursor(&self, spot: RowPosition) -> bool {
        let (first, last) = self.span(self.cursor);
        (first..=last).contains(&spot)
    }

    /// The block behind the cursor, if there is one.
    fn next_block(&self, cursor: BlockCursor) -> Option<BlockCursor> {
        let blocks = |turn: usize, unit: usize| match unit.checked_sub(1) {
            None => 1,
            Some(part) => self.page(turn, part).map_or(1, |page| page.blocks.len()),
        };
        if cursor.block.saturating_add(1) < blocks(cursor.turn, cursor.unit) {
            return Some(BlockCursor {
                block: cursor.block + 1,
                ..cursor
            });
        }
        let mut behind = self.behind(cursor.turn, cursor.unit);
        let (turn, unit) = behind.find(|&(turn, unit)| blocks(turn, unit) > 0)?;
        Some(BlockCursor {
            turn,
            unit,
            block: 0,
        })
    }

    fn previous_block(&self, cursor: BlockCursor) -> Option<BlockCursor> {
        if cursor.block > 0 && cursor.block < usize::MAX {
            return Some(BlockCursor {
                block: cursor.block - 1,
                ..cursor
            });
        }
        self.ahead(cursor.turn, cursor.unit)
            .find_map(|(turn, unit)| {
                let block = match unit.checked_sub(1) {
                    None => 0,
                    Some(part) => match self.page(turn, part) {
                        Some(page) => page.blocks.len().checked_sub(1)?,
                        None => usize::MAX,
                    },
                };
                Some(BlockCursor { turn, unit, block })
            })
    }

    /// Puts the cursor somewhere and brings it into view.
    fn go(&mut self, cursor: BlockCursor) {
        self.cursor = self.held(cursor);
        let (first, last) = self.span(self.cursor);
        if first < self.top {
            // The start of what is above; its end if it is longer than the screen.
            let fits = self.back(last, self.height.saturating_sub(1)) <= first;
            self.top = if fits {
                first
            } else {
                self.back(last, self.height.saturating_sub(1))
            };
        } else if self.forward(self.top, self.height.saturating_sub(1)) < last {
            let lowest = self.back(last, self.height.saturating_sub(1));
            self.top = lowest.min(first);
        }
        self.top = self.with_gap(self.top);
        self.hold();
    }

    /// The first turn begins at its head, not below it.
    fn with_gap(&self, top: RowPosition) -> RowPosition {
        match top {
            RowPosition { unit: 0, row, .. } if row <= 1 => RowPosition { row: 0, ..top },
            other => other,
        }
    }

    /// The next block; a long one is first read to its end.
    pub fn down(&mut self) {
        let end = self.forward(self.top, self.height.saturating_sub(1));
        let (_, last) = self.span(self.cursor);
        if last > end {
            return self.scroll(3);
        }
        match self.next_block(self.cursor) {
            Some(next) => self.go(next),
            None => self.go_end(),
        }
        self.settle_follow();
    }

    /// The block before; a long one is first read to its start.
    pub fn up(&mut self) {
        self.follow = false;
        let (first, _) = self.span(self.cursor);
        if first < self.top {
            return self.scroll(-3);
        }
        if let Some(before) = self.previous_block(self.cursor) {
            self.go(before);
        }
    }

    /// Moves the screen; the cursor stays in view.
    pub fn scroll(&mut self, rows: isize) {
        if rows < 0 {
            self.follow = false;
        }
        self.top = match rows < 0 {
            true => self.back(self.top, rows.unsigned_abs()),
            false => self.forward(self.top, rows.unsigned_abs()),
        };
        self.hold();
        let end = self.forward(self.top, self.height.saturating_sub(1));
        let (first, last) = self.span(self.cursor);
        if last < self.top {
            self.cursor = self.held(self.cursor_at(self.top));
        } else if first > end {
            self.cursor = self.held(self.cursor_at(end));
        }
        self.settle_follow();
    }

    /// A page on: the cursor goes along.
    pub fn page_down(&mut self, rows: usize) {
        self.scroll(rows as isize);
        let end = self.forward(self.top, self.height.saturating_sub(1));
        if end == self.last_row() {
            self.cursor = self.held(self.cursor_at(end));
        }
        self.settle_follow();
    }

    /// At the very end one follows it again.
    fn settle_follow(&mut self) {
        if !self.follow && self.next_block(self.cursor).is_none() && self.sought.is_none() {
            let end = self.forward(self.top, self.height.saturating_sub(1));
            self.follow = end == self.last_row();
        }
    }

    /// The end, which is followed from now on.
    pub fn go_end(&mut self) {
        let end = self.last_row();
        self.top = self.back(end, self.height.saturating_sub(1));
        self.cursor = self.held(self.cursor_at(end));
        self.follow = true;
    }

    /// The start.
    pub fn go_start(&mut self) {
        self.follow = false;
        self.top = RowPosition::default();
        self.cursor = BlockCursor::default();
        self.hold();
    }

    /// A turn, at the top of the screen if there is enough below it.
    fn go_turn(&mut self, turn: usize) {
        self.follow = false;
        self.top = RowPosition {
            turn,
            ..RowPosition::default()
        };
        self.cursor = BlockCursor {
            turn,
            ..BlockCursor::default()
        };
        self.hold();
    }

    /// The next turn.
    pub fn next_turn(&mut self) {
        if self.cursor.turn + 1 < self.turns.len() {
            self.go_turn(self.cursor.turn + 1);
        }
    }

    /// The head of this turn, or the turn before.
    pub fn previous_turn(&mut self) {
        let here = self.cursor.unit > 0;
        let turn = self.cursor.turn.saturating_sub(usize::from(!here));
        self.go_turn(turn);
    }

    /// The next or last turn that a person began with words.
    pub fn go_prompt(&mut self, forward: bool) {
        let typed = |&at: &usize| {
            let kind = self.turns.get(at).map(|turn| turn.kind);
            kind == Some(UserInput::Prompt)
        };
        let here = self.cursor.turn;
        let found = if forward {
            (here + 1..self.turns.len()).find(typed)
        } else {
            (0..here).rev().find(typed)
        };
        if let Some(turn) = found {
            self.go_turn(turn);
        }
    }

    /// Points at what stands at a row of the screen; `true` if it was pointed at before.
    pub fn point(&mut self, row: usize) -> bool {
        let Some(spot) = self.shown().nth(row) else {
            return false;
        };
        let cursor = self.held(self.cursor_at(spot));
        let same = cursor == self.cursor;
        self.cursor = cursor;
        self.follow = false;
        same
    }

    /// Shows the block under the cursor whole, or short again.
    pub fn toggle(&mut self) {
        let Some(line) = self.block().map(|block| block.line) else {
            return;
        };
        if !self.open.remove(&line) {
            self.open.insert(line);
        }
        self.follow = false;
    }

    /// Goes to a line of the file, which is shown whole.
    pub fn seek(&mut self, turn: usize, part: usize, line: u32) {
        if turn >= self.turns.len() {
            return;
        }
        self.set_fold(turn, true);
        self.open.insert(line);
        self.follow = false;
        self.sought = Some((turn, part, line));
        self.top = RowPosition {
            turn,
            unit: (part + 1).min(self.units(turn) - 1),
            row: 0,
        };
        self.cursor = self.held(BlockCursor {
            turn,
            unit: part + 1,
            block: 0,
        });
        self.hold();
    }

    /// Which pages are missing, or laid out in another way than they should be: those on the
    /// screen, and around it.
    pub fn want(&self, look: &PageOptions) -> Option<PageRequest> {
        let mut heads: Vec<usize> = Vec::new();
        let mut parts: Vec<(usize, usize)> = Vec::new();
        let mut near = |spot: RowPosition| match spot.unit.checked_sub(1) {
            None => {
                let fresh = self.heads.get(&spot.turn);
                let is_last = spot.turn + 1 == self.turns.len();
                let good = fresh.is_some_and(|(at, _)| *at == self.revision || !is_last);
                if !good && !heads.contains(&spot.turn) {
                    heads.push(spot.turn);
                }
            }
            Some(part) => {
                let laid = self.pages.get(&(spot.turn, part));
                let good =
                    laid.is_some_and(|laid| laid.revision == self.revision && laid.look == *look);
                if !good && !parts.contains(&(spot.turn, part)) {
                    parts.push((spot.turn, part));
                }
            }
        };
        if let Some((turn, part, _)) = self.sought {
            near(RowPosition {
                turn,
                unit: part + 1,
                row: 0,
            });
        }
        self.shown().for_each(&mut near);
        // What a key may bring next.
        let above = std::iter::successors(Some(self.top), |spot| self.previous(*spot));
        above.take(self.height).for_each(&mut near);
        let end = self.forward(self.top, self.height);
        let below = std::iter::successors(Some(end), |spot| self.next(*spot));
        below.take(self.height).for_each(&mut near);
        if heads.is_empty() && parts.is_empty() || self.turns.is_empty() {
            return None;
        }
        // The book takes them from the back.
        heads.reverse();
        parts.reverse();
        Some(PageRequest {
            of: self.of.clone(),
            look: look.clone(),
            heads,
            parts,
        })
    }

    /// Another size of the screen.
    pub fn resize(&mut self, height: usize) {
        let height = height.max(1);
        if self.height != height {
            self.height = height;
            if self.follow {
                self.go_end();
            }
            self.hold();
        }
    }

    /// Where one is, from 0 to 1.
    pub fn share(&self) -> f64 {
        let end = self.forward(self.top, self.height.saturating_sub(1));
        if end == self.last_row() {
            return 1.0;
        }
        self.top.turn as f64 / self.turns.len().max(1) as f64
    }
}
