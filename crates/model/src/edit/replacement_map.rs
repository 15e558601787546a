//! Which line stands for one that goes: four bytes for each line, since most may go.

use crate::id::Id;
use crate::session::{Index, Session};

/// For each line that goes: the one that stands for it now, if any does.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplacementMap(Vec<u32>);

/// The line is where it was.
const STAYS: u32 = 0;
/// It goes, and nothing stands for it.
const NOWHERE: u32 = 1;

impl ReplacementMap {
    /// Lets a line stand for one that goes.
    pub(super) fn set(&mut self, at: Index, now: Option<Index>) {
        let at = at as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, STAYS);
        }
        self.0[at] = now.map_or(NOWHERE, |now| now + 2);
    }

    /// Forgets that a line goes.
    pub(super) fn forget(&mut self, at: Index) {
        if let Some(place) = self.0.get_mut(at as usize) {
            *place = STAYS;
        }
    }

    /// Which line stands for the one with this id: `None` if it is where it was,
    /// `Some(None)` if there is none.
    pub(super) fn get<'a>(&self, session: &'a Session, id: &Id) -> Option<Option<&'a Id>> {
        let at = session.find(id)? as usize;
        match self.0.get(at).copied().unwrap_or(STAYS) {
            STAYS => None,
            NOWHERE => Some(None),
            now => Some(session.records[now as usize - 2].uuid.as_ref()),
        }
    }
}
