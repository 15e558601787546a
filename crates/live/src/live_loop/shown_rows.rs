//! What is shown, and what stays folded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use unspool_model::time::Time;
use unspool_model::view::usage::period;
use unspool_show::wire::session::SessionJson;
use unspool_store::hook_events::RecordedHookEvent;

use super::{BLIND_POLL, FOLDED, LiveLoop, LiveSessionState, QUIET, WEIGHT};
use crate::live_rows::SessionPath;
use crate::read_workers::{self, ReadExtent, ReadUrgency};
use crate::session_row;

impl LiveLoop {
    pub(super) fn put(&mut self, name: &SessionPath, row: SessionJson, grown: bool) {
        if self.board.put(name, row, grown) {
            self.unsaved.insert(Arc::clone(name));
        }
    }

    pub(super) fn set_changes(&mut self, name: &SessionPath, changes: Option<Time>) {
        if let Some(family) = self.families.get_mut(name) {
            family.changes = changes;
        }
        match changes {
            Some(_) => drop(self.restless.insert(Arc::clone(name))),
            None => drop(self.restless.remove(name)),
        }
    }

    /// Shows a folded session as it is now, or soon: a large one takes its time, and lines come
    /// faster than anybody looks.
    pub(super) fn show(&mut self, name: &SessionPath) {
        let now = Instant::now();
        let Some(family) = self.families.get_mut(name) else {
            return;
        };
        if let Some(next) = family.next.filter(|next| *next > now) {
            self.late.insert((next, Arc::clone(name)));
            return;
        }
        let (time, setting) = ((self.setting.clock)(), &self.setting);
        let seen = family.look(&self.signs, |parts| {
            let row = session_row::row(parts, setting, time);
            // When exactly is found out when somebody has time for it.
            let changes = parts.is_restless(time).then_some(time);
            (row, changes, parts.session.is_used())
        });
        let Some((row, changes, is_conversation)) = seen else {
            return;
        };
        let took = now.elapsed();
        family.next = Some(now + (took * 5).clamp(Duration::from_millis(2), BLIND_POLL));
        let grown = std::mem::take(&mut family.grown);
        self.set_changes(name, changes);
        match is_conversation {
            true => self.put(name, row, grown),
            false => self.board.remove(name),
        }
    }

    /// What time alone changes.
    pub(super) fn tick(&mut self, now: Instant) {
        let time = (self.setting.clock)();
        if !self.day.contains(&time) {
            self.begin_day(time);
        }
        for name in self.restless.clone() {
            let Some(family) = self.families.get(&name) else {
                self.restless.remove(&name);
                continue;
            };
            let folded = family.fold.is_some();
            match family.changes.filter(|at| *at <= time) {
                Some(_) if folded => self.pass(&name, time),
                Some(_) => self.look_again(&name),
                None => {}
            }
        }
        self.release_idle(now);
    }

    /// At midnight, what rows tell of a day is of another one.
    fn begin_day(&mut self, time: Time) {
        self.day = period::around(time, &self.setting.zone);
        for (name, row) in self.board.all() {
            match self.folded.contains(&name) {
                true => self.show(&name),
                false => self.put(
                    &name,
                    session_row::row_on_day((*row).clone(), &self.day),
                    false,
                ),
            }
        }
    }

    /// Shows a folded session if time alone has changed what it is doing, and finds out when
    /// that will be next.
    pub(super) fn pass(&mut self, name: &SessionPath, time: Time) {
        let Some(family) = self.families.get_mut(name) else {
            return;
        };
        let seen = family.look(&self.signs, |parts| {
            (parts.state(time), parts.changes(time))
        });
        let Some((state, changes)) = seen else {
            return;
        };
        let shown = self.board.get(name);
        if shown.is_some_and(|row| row.status != state.name()) {
            self.show(name);
        }
        self.set_changes(name, changes);
    }

    /// Finds out what a session does about which something else is known now.
    pub(super) fn look_again(&mut self, name: &SessionPath) {
        let Some(family) = self.families.get_mut(name) else {
            return;
        };
        family.signals = None;
        if family.fold.is_some() {
            self.show(name);
        } else if family.busy == 0 {
            self.read(name, ReadUrgency::Now, ReadExtent::Ends);
        }
    }

    /// Looks again at the sessions with this id.
    pub(super) fn look_again_by(&mut self, fits: impl Fn(&str) -> bool) {
        let same =
            |family: &LiveSessionState| family.file.as_ref().is_some_and(|file| fits(&file.id));
        let names = self.families.iter().filter(|(_, family)| same(family));
        let names: Vec<SessionPath> = names.map(|(name, _)| Arc::clone(name)).collect();
        for name in names {
            self.look_again(&name);
        }
    }

    /// Asks the registry, and whether the processes in it live.
    pub(super) fn ask_registry(&mut self) {
        let changed = self.signs.renew((self.setting.clock)().0);
        if !changed.is_empty() {
            self.look_again_by(|id| changed.iter().any(|one| one == id));
        }
    }

    /// Lets go of what has been quiet for long, and ends lines that nobody will end.
    pub(super) fn release_idle(&mut self, now: Instant) {
        let time = (self.setting.clock)().0;
        let mut quiet = Vec::new();
        for name in &self.folded {
            let Some(family) = self.families.get(name) else {
                continue;
            };
            let since = family.touched.map_or(QUIET, |at| now.duration_since(at));
            let torn = family.fold.as_ref().zip(family.file.as_ref());
            let torn = torn.is_some_and(|(fold, file)| {
                fold.main.offset() < file.bytes && time - file.modified > read_workers::TORN
            });
            if torn || since >= QUIET && family.changes.is_none() {
                quiet.push((Arc::clone(name), torn));
            }
        }
        for (name, torn) in quiet {
            self.unfold(&name);
            if torn {
                self.read(&name, ReadUrgency::Changed, ReadExtent::Whole);
            }
        }
    }

    pub(super) fn unfold(&mut self, name: &SessionPath) {
        self.folded.remove(name);
        if let Some(family) = self.families.get_mut(name) {
            family.fold = None;
        }
    }

    /// Keeps what is folded within bounds; the latest stays, whatever its size.
    pub(super) fn evict(&mut self) {
        let mut held: Vec<_> = self
            .folded
            .iter()
            .filter_map(|name| {
                let family = self.families.get(name)?;
                let weight = family.fold.as_ref()?.weight();
                Some((family.touched, Arc::clone(name), weight))
            })
            .collect();
        held.sort();
        let mut weight: u64 = held.iter().map(|(_, _, weight)| weight).sum();
        let mut count = held.len();
        for (_, name, own) in held {
            if count <= 1 || (count <= FOLDED && weight <= WEIGHT) {
                break;
            }
            self.unfold(&name);
            (count, weight) = (count - 1, weight - own);
        }
    }

    pub(super) fn poll_folded(&mut self) {
        for name in &self.folded {
            if let Some(family) = self.families.get(name) {
                let paths = family.stamps().map(|(path, _)| path.clone());
                self.hinted.extend(paths);
            }
        }
        for path in std::mem::take(&mut self.hinted) {
            self.look_at(&path);
        }
    }

    pub(super) fn hook(&mut self, noted: &RecordedHookEvent) {
        self.signs.hear(noted);
        if let Some(path) = noted.transcript.clone() {
            // What it tells of may be written already, and shown with it.
            self.look_at(&path);
        }
        self.look_again_by(|id| id == noted.session);
    }
}
