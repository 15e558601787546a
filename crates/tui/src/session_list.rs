//! The list of sessions: those that need somebody first; and what a search leaves of it.

use std::collections::HashMap;
use std::sync::Arc;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use unspool_live::LiveChangeKind;
use unspool_model::view::status::AttentionNeed;
use unspool_show::wire::hit::HitRow;
use unspool_show::wire::session::SessionJson;

/// The groups, in their order.
const GROUPS: [AttentionNeed; 4] = [
    AttentionNeed::You,
    AttentionNeed::Working,
    AttentionNeed::Turn,
    AttentionNeed::Rest,
];

/// The heading of a group.
fn title(need: AttentionNeed) -> &'static str {
    match need {
        AttentionNeed::Rest => "idle",
        other => other.name(),
    }
}

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListEntry {
    /// A heading, and how many stand below it.
    Title(String, usize),
    /// A session, by its place among the rows.
    Session(usize),
    /// Something that was found, by its place among the hits.
    Hit(usize),
}

impl ListEntry {
    fn can_be_chosen(&self) -> bool {
        !matches!(self, ListEntry::Title(..))
    }
}

/// What is chosen; it stays so while lines move.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ListSelection {
    Session(String),
    Hit(usize),
}

/// The list.
#[derive(Debug, Default)]
pub struct SessionList {
    /// Every session, in no order.
    rows: Vec<Arc<SessionJson>>,
    places: HashMap<String, usize>,
    /// Whether all files were looked at.
    pub scanned: bool,
    /// What is typed.
    pub query: String,
    /// Whether somebody types, so that letters are letters.
    pub typing: bool,
    /// What a search through everything found.
    pub hits: Vec<HitRow>,
    /// Whether it still looks.
    pub searching: bool,
    /// What was wrong with it.
    pub trouble: Option<String>,
    /// The number of the search.
    pub number: u64,
    /// Its lines.
    entries: Vec<ListEntry>,
    chosen: Option<ListSelection>,
    /// Where the choice stands among the lines.
    at: usize,
    /// The first line that is shown.
    pub top: usize,
    stale: bool,
    /// Whether somebody moved; until then the first line is chosen.
    moved: bool,
}

impl SessionList {
    /// Takes all rows at once.
    pub fn fill(&mut self, rows: Vec<Arc<SessionJson>>, scanned: bool) {
        self.scanned = scanned;
        for row in rows {
            self.put(row);
        }
    }

    /// Takes a change.
    pub fn news(&mut self, what: LiveChangeKind) {
        match what {
            LiveChangeKind::Session { row, .. } => self.put(row),
            LiveChangeKind::Removed { id } => self.remove(&id),
            LiveChangeKind::Scanned => self.scanned = true,
        }
        self.stale = true;
    }

    fn put(&mut self, row: Arc<SessionJson>) {
        // Sub-agents stand in their sessions.
        if row.is_subagent || row.not_a_session.is_some() {
            return;
        }
        self.stale = true;
        match self.places.get(&row.id) {
            Some(&at) => self.rows[at] = row,
            None => {
                self.places.insert(row.id.clone(), self.rows.len());
                self.rows.push(row);
            }
        }
    }

    fn remove(&mut self, id: &str) {
        let Some(at) = self.places.remove(id) else {
            return;
        };
        self.rows.swap_remove(at);
        if let Some(moved) = self.rows.get(at) {
            self.places.insert(moved.id.clone(), at);
        }
    }

    /// How many sessions there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A session by its id.
    pub fn session(&self, id: &str) -> Option<&Arc<SessionJson>> {
        self.places.get(id).map(|&at| &self.rows[at])
    }

    /// A session by its place.
    pub fn row(&self, at: usize) -> Option<&Arc<SessionJson>> {
        self.rows.get(at)
    }

    /// Its lines.
    pub fn entries(&self) -> &[ListEntry] {
        &self.entries
    }

    /// Where the choice stands.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The session that is chosen, be it through a hit.
    pub fn chosen(&self) -> Option<&Arc<SessionJson>> {
        match self.entries.get(self.at)? {
            ListEntry::Session(at) => self.rows.get(*at),
            ListEntry::Hit(at) => self.session(&self.hits.get(*at)?.session),
            ListEntry::Title(..) => None,
        }
    }

    /// The hit that is chosen.
    pub fn hit(&self) -> Option<&HitRow> {
        match self.entries.get(self.at)? {
            ListEntry::Hit(at) => self.hits.get(*at),
            _ => None,
        }
    }

    /// How many sessions need what.
    pub fn counts(&self) -> [(AttentionNeed, usize); 3] {
        let count = |need| {
            let rows = self.rows.iter();
            (need, rows.filter(|row| row.need() == need).count())
        };
        [
            AttentionNeed::You,
            AttentionNeed::Working,
            AttentionNeed::Turn,
        ]
        .map(count)
    }

    /// The search changed: what was found before is void.
    pub fn ask(&mut self) -> u64 {
        self.number += 1;
        self.hits.clear();
        self.trouble = None;
        self.searching = !self.query.trim().is_empty();
        self.chosen = None;
        self.moved = false;
        self.top = 0;
        self.stale = true;
        self.number
    }

    /// Takes hits of the search with this number.
    pub fn found(&mut self, number: u64, hits: Vec<HitRow>, done: Option<Result<(), String>>) {
        if number != self.number {
            return;
        }
        self.hits.extend(hits);
        if let Some(done) = done {
            self.searching = false;
            self.trouble = done.err();
        }
        self.stale = true;
    }

    /// Moves the choice by so many lines.
    pub fn step(&mut self, by: isize) {
        let choosable: Vec<usize> = (0..self.entries.len())
            .filter(|&at| self.entries[at].can_be_chosen())
            .collect();
        if choosable.is_empty() {
            return;
        }
        let now = choosable.iter().position(|&at| at == self.at).unwrap_or(0);
        let next = now.saturating_add_signed(by).min(choosable.len() - 1);
        self.choose(choosable[next]);
    }

    /// Chooses a line, if it can be.
    pub fn choose(&mut self, at: usize) {
        self.chosen = match self.entries.get(at) {
            Some(ListEntry::Session(row)) => {
                Some(ListSelection::Session(self.rows[*row].id.clone()))
            }
            Some(ListEntry::Hit(hit)) => Some(ListSelection::Hit(*hit)),
            _ => return,
        };
        self.at = at;
        self.moved = true;
    }

    /// Puts everything in order again, and keeps the choice in view.
    pub fn arrange(&mut self, height: usize) {
        if self.stale {
            self.stale = false;
            self.entries = self.arranged();
            self.find_choice();
        }
        let height = height.max(1);
        // A heading above the first line is shown with it.
        let first = if self.at <= 1 { 0 } else { self.at };
        self.top = self
            .top
            .min(first)
            .max((self.at + 1).saturating_sub(height));
        self.top = self.top.min(self.entries.len().saturating_sub(height));
    }

    fn find_choice(&mut self) {
        let wanted = self.chosen.as_ref().filter(|_| self.moved);
        let place = wanted.and_then(|wanted| {
            self.entries.iter().position(|entry| match (entry, wanted) {
                (ListEntry::Session(at), ListSelection::Session(id)) => self.rows[*at].id == *id,
                (ListEntry::Hit(at), ListSelection::Hit(hit)) => at == hit,
                _ => false,
            })
        });
        let first = || self.entries.iter().position(ListEntry::can_be_chosen);
        self.at = place.or_else(first).unwrap_or(0);
    }

    fn arranged(&self) -> Vec<ListEntry> {
        if self.query.trim().is_empty() {
            return self.by_need();
        }
        let fitting = self.fitting();
        let mut entries = Vec::new();
        if !fitting.is_empty() {
            entries.push(ListEntry::Title("sessions".to_owned(), fitting.len()));
            entries.extend(fitting.into_iter().map(ListEntry::Session));
        }
        if !self.hits.is_empty() {
            entries.push(ListEntry::Title(
                "in conversations".to_owned(),
                self.hits.len(),
            ));
            entries.extend((0..self.hits.len()).map(ListEntry::Hit));
        }
        entries
    }

    fn by_need(&self) -> Vec<ListEntry> {
        let mut groups = GROUPS.map(|need| (need, Vec::new()));
        for (at, row) in self.rows.iter().enumerate() {
            let need = row.need();
            let group = groups.iter_mut().find(|(one, _)| *one == need);
            group.into_iter().for_each(|(_, group)| group.push(at));
        }
        let mut entries = Vec::with_capacity(self.rows.len() + GROUPS.len());
        for (need, mut group) in groups {
            if group.is_empty() {
                continue;
            }
            group.sort_by(|&a, &b| {
                let (a, b) = (&self.rows[a], &self.rows[b]);
                b.last.cmp(&a.last).then_with(|| a.id.cmp(&b.id))
            });
            entries.push(ListEntry::Title(title(need).to_owned(), group.len()));
            entries.extend(group.into_iter().map(ListEntry::Session));
        }
        entries
    }

    /// Sessions that the query means, the best first.
    fn fitting(&self) -> Vec<usize> {
        let pattern = Pattern::parse(&self.query, CaseMatching::Smart, Normalization::Smart);
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut buffer = Vec::new();
        let mut scored: Vec<(u32, usize)> = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let text = searched(row);
            let score = pattern.score(Utf32Str::new(&text, &mut buffer), &mut matcher);
            // Letters that are merely somewhere in a long text mean nothing.
            let floor = 12 * self.query.chars().filter(|c| !c.is_whitespace()).count() as u32;
            scored.extend(
                score
                    .filter(|score| *score >= floor)
                    .map(|score| (score, at)),
            );
        }
        scored.sort_by(|a, b| {
            let last = |at: usize| &self.rows[at].last;
            b.0.cmp(&a.0).then_with(|| last(b.1).cmp(last(a.1)))
        });
        scored.into_iter().map(|(_, at)| at).collect()
    }
}

/// What a query is compared with.
fn searched(row: &SessionJson) -> String {
    let parts = [
        row.title.as_deref(),
        Some(unspool_store::project::project_name(&row.project)),
        Some(row.id.as_str()),
        row.git_branch.as_deref(),
        row.goal.as_deref(),
        row.slug.as_deref(),
        row.tag.as_deref(),
    ];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    parts.join(" ").chars().take(400).collect()
}
