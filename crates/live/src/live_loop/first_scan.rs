//! The first look: what is known from the last time, then the newest, then everything.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use unspool_model::time::Time;
use unspool_show::wire::session::SessionJson;
use unspool_store::find::{self, FoundSessionFiles, SubAgentFile};
use unspool_store::parallel;
use unspool_store::session_with_agents;
use unspool_store::watch::{FolderWatch, WatchEvent, WatchRoot, WatchRootKind};

use super::{AWAITED, LiveLoop, LiveSessionState, LoopMessage, NEWEST, SMALL, name_of};
use crate::LiveEvent;
use crate::live_rows::SessionPath;
use crate::read_workers::{ReadExtent, ReadUrgency};
use crate::session_row;
use crate::snapshot::{SnapshotFile, SnapshotSession};

impl LiveLoop {
    pub(super) fn begin(&mut self) {
        let mut shelf = self.shelf.take();
        let dirs = self.setting.dirs.clone();
        let (found, kept) = std::thread::scope(|scope| {
            let kept = scope.spawn(|| shelf.as_mut().map(SnapshotFile::load).unwrap_or_default());
            let found = find::find(&dirs);
            (found, kept.join().unwrap_or_default())
        });
        self.shelf = shelf;
        let unknown = self.place(found, &kept);
        let stale = self.restore(kept);
        self.doubt();
        self.read_newest(stale);
        self.start_watch();
        match unknown.is_empty() {
            true => self.read_backlog(),
            false => self.ask_owners(unknown),
        }
        self.announce_scanned();
    }

    /// Puts files where they belong; gives sub-agents whose session only their lines know.
    pub(super) fn place(
        &mut self,
        found: FoundSessionFiles,
        kept: &HashMap<String, SnapshotSession>,
    ) -> Vec<SubAgentFile> {
        for (session, kept) in kept {
            let name: SessionPath = session.as_str().into();
            for mark in &kept.files {
                let name = Arc::clone(&name);
                self.owners.insert(mark.0.clone(), name);
            }
        }
        for file in found.sessions {
            let name = name_of(&file.config, &file.folder, &file.id);
            self.owners.remove(&file.path);
            self.family(&name).file = Some(file);
        }
        let (mut unknown, mut known) = (Vec::new(), HashSet::new());
        for agent in found.agents {
            match self.owner(&agent) {
                Some(name) => {
                    known.insert(agent.path.clone());
                    self.adopt(name, agent);
                }
                None => unknown.push(agent),
            }
        }
        for file in found
            .others
            .into_iter()
            .filter(|file| file.helper.is_some())
        {
            let owner = match &file.session {
                Some(session) => Some(name_of(&file.config, &file.folder, session)),
                None => self.owners.get(&file.path).cloned(),
            };
            match owner {
                Some(name) => {
                    known.insert(file.path.clone());
                    self.adopt_helper(name, file);
                }
                // Its lines know.
                None => drop(self.hinted.insert(file.path)),
            }
        }
        self.owners.retain(|path, _| known.contains(path));
        unknown
    }

    /// Puts rows on the board that are still right; gives the sessions to read, newest first.
    pub(super) fn restore(
        &mut self,
        mut kept: HashMap<String, SnapshotSession>,
    ) -> Vec<SessionPath> {
        let mut stale = Vec::new();
        for (name, family) in &mut self.families {
            if family.file.is_none() {
                continue;
            }
            let Some(kept) = kept.remove(&**name) else {
                stale.push(Arc::clone(name));
                continue;
            };
            for (leaf, title) in &kept.given {
                self.titles.insert(*leaf, title.clone());
            }
            let marks = kept.files.iter();
            let marks: BTreeMap<_, _> = marks.map(|mark| (mark.0.clone(), mark.stamp())).collect();
            family.given = kept.given;
            if marks.len() != family.agents.len() + family.helpers.len() + 1
                || family
                    .stamps()
                    .any(|(path, stamp)| marks.get(path) != Some(&stamp))
            {
                stale.push(Arc::clone(name));
                continue;
            }
            (family.read, family.whole) = (marks, true);
            if let Some(row) = kept.row {
                self.board
                    .put(name, session_row::row_on_day(row, &self.day), false);
                family.changes = kept.changes.map(Time);
                if kept.changes.is_some() {
                    self.restless.insert(Arc::clone(name));
                }
            }
        }
        let modified = |name: &SessionPath| {
            self.families
                .get(name)
                .map_or(0, LiveSessionState::modified)
        };
        stale.sort_by_cached_key(|name| std::cmp::Reverse(modified(name)));
        stale
    }

    /// Looks again at sessions whose rows are from another time and may not hold any more: in
    /// which something went on, or about which something is known beside their files.
    fn doubt(&mut self) {
        let now = (self.setting.clock)().0;
        let names = self.families.iter().filter(|(name, family)| {
            let id = family.file.as_ref().map(|file| &file.id);
            let row = self.board.get(name);
            row.is_some_and(|row| !matches!(row.status.as_str(), "idle" | "ended"))
                || id.is_some_and(|id| self.signs.is_news(id, now))
        });
        let names: Vec<SessionPath> = names.map(|(name, _)| Arc::clone(name)).collect();
        for name in names {
            if self.board.get(&name).is_some() {
                self.look_again(&name);
            }
        }
    }

    pub(super) fn read_newest(&mut self, stale: Vec<SessionPath>) {
        for (at, name) in stale.iter().enumerate().take(NEWEST) {
            if at < AWAITED {
                self.awaited.insert(Arc::clone(name));
            }
            let small = self
                .families
                .get(name)
                .is_some_and(|family| family.bytes() <= SMALL);
            if small {
                self.read(name, ReadUrgency::First, ReadExtent::Whole);
            } else {
                self.read(name, ReadUrgency::First, ReadExtent::Ends);
            }
        }
        self.backlog = stale.into_iter().collect();
        if self.awaited.is_empty() {
            self.board.set_ready();
        }
    }

    pub(super) fn read_backlog(&mut self) {
        for name in self.backlog.clone() {
            let begun = |family: &LiveSessionState| family.busy > 0 && family.bytes() <= SMALL;
            if !self.families.get(&name).is_some_and(begun) {
                self.read(&name, ReadUrgency::Backlog, ReadExtent::Whole);
            }
        }
    }

    /// Looks into files of sub-agents for the session they belong to.
    pub(super) fn ask_owners(&mut self, agents: Vec<SubAgentFile>) {
        self.asking = true;
        let tell = self.tell.clone();
        std::thread::spawn(move || {
            let owners = parallel::map(
                &agents,
                parallel::threads(),
                |_| 0,
                session_with_agents::session_of,
            );
            let _ = tell.send(LoopMessage::Owners(
                agents.into_iter().zip(owners).collect(),
            ));
        });
    }

    pub(super) fn owned(&mut self, owners: Vec<(SubAgentFile, Option<String>)>) {
        let first = std::mem::take(&mut self.asking) && !self.scanned;
        for (agent, session) in owners {
            // A file whose session is not known is not asked again before it changes.
            let session = session.unwrap_or_default();
            let name = name_of(&agent.config, &agent.folder, &session);
            self.adopt(Arc::clone(&name), agent);
            if first {
                if self
                    .families
                    .get(&name)
                    .is_some_and(|family| family.file.is_some())
                {
                    self.backlog.insert(name);
                }
            } else {
                self.changed(&name, None);
            }
        }
        if first {
            self.read_backlog();
            self.announce_scanned();
        }
    }

    /// Says so when everything was looked at.
    pub(super) fn announce_scanned(&mut self) {
        if self.scanned || self.asking || !self.backlog.is_empty() {
            return;
        }
        self.scanned = true;
        for (name, ids) in std::mem::take(&mut self.untitled) {
            self.apply_foreign_title(&name, &ids);
        }
        self.board.set_ready();
        self.board.set_scanned();
    }

    /// Gives a session the title that another file has for it.
    pub(super) fn apply_foreign_title(&mut self, name: &SessionPath, ids: &[u64]) {
        let title = ids.iter().find_map(|id| self.titles.get(id));
        let (Some(title), Some(family)) = (title.cloned(), self.families.get_mut(name)) else {
            return;
        };
        if let Some(fold) = &mut family.fold {
            fold.title = Some(title.clone());
        }
        family.title = Some(title.clone());
        if let Some(row) = self.board.get(name) {
            let title = Some(title);
            let row = SessionJson {
                title,
                ..(*row).clone()
            };
            self.put(name, row, false);
        }
    }

    pub(super) fn start_watch(&mut self) {
        let mut roots = Vec::new();
        for config in &self.configs {
            let root = |name: &str, kind| WatchRoot {
                dir: config.join(name),
                kind,
            };
            roots.push(root("projects", WatchRootKind::Projects));
            roots.push(root("sessions", WatchRootKind::Flat));
        }
        let events = self.setting.events.dir();
        // Our own folder, which the first hook would make: so it can be watched before.
        let mut folders = std::fs::DirBuilder::new();
        folders.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
        if self.shelf.is_some() {
            let _ = folders.create(events);
        }
        roots.push(WatchRoot {
            dir: events.to_owned(),
            kind: WatchRootKind::Flat,
        });
        if !self.setting.watch {
            self.blind = true;
            return;
        }
        let tell = self.tell.clone();
        let watch = FolderWatch::start(roots, move |seen| {
            let _ = tell.send(match seen {
                WatchEvent::At(path) => LoopMessage::Event(LiveEvent::Hint(path)),
                WatchEvent::Lost => LoopMessage::Event(LiveEvent::Rescan),
                WatchEvent::Blind { root, why } => LoopMessage::Blind(root, why),
            });
        });
        match watch {
            Ok(watch) => self.watch = Some(watch),
            Err(why) => {
                self.blind = true;
                self.board
                    .note(format!("polling files instead of watching them: {why}"));
            }
        }
    }
}
