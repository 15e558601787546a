//! Finds text in a conversation, and where on the screen it stands.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use unspool_model::find::{CaseMode, SearchScope, TextQuery};
use unspool_model::text::TextKind;
use unspool_store::parallel;
use unspool_store::search::{self, SearchRequest, SearchTimeRange};

use super::{LoaderCommand, LoaderConversation, LoaderSession, source_of};
use crate::loader_protocol::{ConversationId, FindHit, LoaderEvent, PART};

/// A line of the file that matches.
pub struct RawLineMatch {
    line: u32,
    thinking: bool,
}

impl RawLineMatch {
    /// A line of which nothing else is known.
    pub fn line(line: u32) -> RawLineMatch {
        RawLineMatch {
            line,
            thinking: false,
        }
    }
}

/// Most hits of a search.
const MOST: usize = 10_000;
/// So many hits are handed on at once.
const BATCH: usize = 64;

impl LoaderSession<'_> {
    /// Starts a search on a thread of its own; a later one stops it.
    pub(super) fn find(&mut self, number: u64, of: ConversationId, query: &str) {
        let wanted = Arc::clone(&self.book.search);
        wanted.store(number, Ordering::Relaxed);
        let source = source_of(self.book, self.family, &of);
        let (Some(source), Ok(query)) = (source, TextQuery::literal(query, CaseMode::Smart)) else {
            return self.tell(LoaderEvent::Found {
                number,
                hits: Vec::new(),
                done: true,
            });
        };
        let orders = self.book.orders.clone();
        std::thread::spawn(move || {
            let scope = SearchScope::default();
            let what = SearchRequest {
                query: &query,
                scope: &scope,
                span: SearchTimeRange::default(),
            };
            let (mut batch, mut count) = (Vec::new(), 0);
            search::search(&[source], &what, parallel::threads(), |_, hit| {
                batch.push(RawLineMatch {
                    line: u32::try_from(hit.line).unwrap_or(u32::MAX),
                    thinking: hit.found.place == TextKind::Thinking,
                });
                count += 1;
                if batch.len() >= BATCH {
                    let hits = std::mem::take(&mut batch);
                    let _ = orders.send(LoaderCommand::Found(number, of.clone(), hits, false));
                }
                match count < MOST && wanted.load(Ordering::Relaxed) == number {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            let _ = orders.send(LoaderCommand::Found(number, of, batch, true));
        });
    }

    /// Tells where on the screen hits stand. What is not shown anywhere is left out.
    pub(super) fn found(
        &mut self,
        number: u64,
        of: &ConversationId,
        raw: &[RawLineMatch],
        done: bool,
    ) {
        if !self.places.contains_key(of) {
            let Some(places) = self.reading(of).map(LinePositions::of) else {
                return;
            };
            self.places.insert(of.clone(), places);
        }
        let Some(places) = self.places.get(of) else {
            return;
        };
        let hits = raw.iter().filter_map(|raw| places.hit(raw)).collect();
        self.tell(LoaderEvent::Found { number, hits, done });
    }
}

/// Where each line of the file is shown.
pub struct LinePositions {
    /// By line: the turn and the place in it.
    lines: HashMap<u32, (usize, usize)>,
    /// By the line of a result: that of its call.
    calls: HashMap<u32, u32>,
}

impl LinePositions {
    fn of(told: &LoaderConversation<'_>) -> LinePositions {
        let record = |at: u32| &told.session.records[at as usize];
        let mut lines = HashMap::new();
        for (turn, _) in told.reading.turn_extents().enumerate() {
            for (place, &at) in told.reading.records(turn).iter().enumerate() {
                lines.entry(record(at).line).or_insert((turn, place));
            }
        }
        let calls = told.session.calls.iter().filter_map(|call| {
            let result = call.result.as_ref()?;
            Some((record(result.record).line, record(call.record).line))
        });
        LinePositions {
            lines,
            calls: calls.collect(),
        }
    }

    fn hit(&self, raw: &RawLineMatch) -> Option<FindHit> {
        let line = self.calls.get(&raw.line).copied().unwrap_or(raw.line);
        let &(turn, place) = self.lines.get(&line)?;
        Some(FindHit {
            turn,
            part: place / PART,
            line,
            thinking: raw.thinking,
        })
    }
}
