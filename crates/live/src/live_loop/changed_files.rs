//! Files that change, and what readers found in them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use unspool_show::wire::session::SessionJson;
use unspool_store::find::{self, NonConversationFile, SubAgentFile};
use unspool_store::hook_events;
use unspool_store::resolve::SessionTarget;
use unspool_store::session_with_agents;

use super::{LATELY, LiveLoop, LiveSessionState, MUCH, SMALL, name_of};
use crate::live_rows::SessionPath;
use crate::read_workers::{FinishedRead, ReadExtent, ReadJob, ReadUrgency, SessionReading};
use crate::session_row;

impl LiveLoop {
    pub(super) fn family(&mut self, name: &SessionPath) -> &mut LiveSessionState {
        self.families.entry(Arc::clone(name)).or_default()
    }

    /// The session a sub-agent belongs to, if that is known without opening it.
    pub(super) fn owner(&self, agent: &SubAgentFile) -> Option<SessionPath> {
        match &agent.session {
            Some(session) => Some(name_of(&agent.config, &agent.folder, session)),
            None => self.owners.get(&agent.path).cloned(),
        }
    }

    pub(super) fn adopt(&mut self, name: SessionPath, agent: SubAgentFile) {
        self.owners.insert(agent.path.clone(), Arc::clone(&name));
        self.family(&name).agents.insert(agent.path.clone(), agent);
    }

    /// Looks at a path that somebody hinted at.
    pub(super) fn look_at(&mut self, path: &Path) {
        if path.starts_with(self.setting.events.dir()) {
            return self.told(path);
        }
        let config = self.configs.iter().find(|config| path.starts_with(config));
        let Some(config) = config.cloned() else {
            return;
        };
        if path.starts_with(config.join("sessions")) {
            self.times.registry = Instant::now();
            return;
        }
        match find::at(&config, path) {
            Some(target) => self.note_file(target),
            None => match find::helper_at(&config, path) {
                Some(file) => self.met_helper(file),
                None => self.gone(path),
            },
        }
    }

    /// Takes note of what one of the client's own helpers wrote.
    fn met_helper(&mut self, file: NonConversationFile) {
        let known = self.owners.get(&file.path).cloned();
        let name = known.unwrap_or_else(|| {
            let session = session_with_agents::helper_session(&file).unwrap_or_default();
            name_of(&file.config, &file.folder, &session)
        });
        self.adopt_helper(Arc::clone(&name), file.clone());
        let family = self.family(&name);
        if !family.is_stale() || family.file.is_none() {
            return;
        }
        let Some(fold) = &mut family.fold else {
            return self.wake(&name);
        };
        for read in session_with_agents::read_helpers(&[&file], 1) {
            fold.helpers.insert(read.file, read.spending);
        }
        family.read.insert(file.path, file.stamp);
        family.touched = Some(Instant::now());
        self.show(&name);
    }

    pub(super) fn adopt_helper(&mut self, name: SessionPath, file: NonConversationFile) {
        self.owners.insert(file.path.clone(), Arc::clone(&name));
        self.family(&name).helpers.insert(file.path.clone(), file);
    }

    /// Hooks told something that is not known yet.
    pub(super) fn told(&mut self, path: &Path) {
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(key) = name.and_then(|name| name.strip_suffix(".jsonl")) {
            self.signs.forget(key);
            self.look_again_by(|id| hook_events::key(id) == key);
        }
    }

    /// Takes note of a file as it is now.
    pub(super) fn note_file(&mut self, target: SessionTarget) {
        match target {
            SessionTarget::Session(file) => {
                let name = name_of(&file.config, &file.folder, &file.id);
                self.family(&name).file = Some(file);
                self.changed(&name, None);
            }
            SessionTarget::Agent(file) => {
                let known = self.owner(&file);
                let name = known.unwrap_or_else(|| {
                    let session = session_with_agents::session_of(&file).unwrap_or_default();
                    name_of(&file.config, &file.folder, &session)
                });
                self.adopt(Arc::clone(&name), file.clone());
                self.changed(&name, Some(&file));
            }
        }
    }

    /// Forgets a file that is not there.
    pub(super) fn gone(&mut self, path: &Path) {
        if std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
            return;
        }
        if let Some(name) = self.owners.remove(path) {
            let family = self.family(&name);
            family.agents.remove(path);
            family.helpers.remove(path);
            family.read.remove(path);
            if let Some(fold) = &mut family.fold {
                fold.agents.remove(path);
                fold.helpers.remove(path);
            }
            self.show(&name);
            return;
        }
        let name: SessionPath = path.display().to_string().into();
        let is_session =
            |family: &LiveSessionState| family.file.as_ref().is_some_and(|file| file.path == path);
        if self.families.get(&name).is_some_and(is_session) {
            self.drop_session(&name);
        } else if path.extension().is_none_or(|end| end != "jsonl") {
            self.gone_below(path);
        }
    }

    /// Forgets all files of a folder that is not there.
    pub(super) fn gone_below(&mut self, dir: &Path) {
        if std::fs::symlink_metadata(dir).is_ok() {
            return;
        }
        let files = self.families.values().flat_map(LiveSessionState::stamps);
        let below: Vec<PathBuf> = files
            .map(|(path, _)| path)
            .filter(|path| path.starts_with(dir))
            .cloned()
            .collect();
        for path in below {
            self.look_at(&path);
        }
    }

    pub(super) fn drop_session(&mut self, name: &SessionPath) {
        let family = self.family(name);
        if let Some(file) = family.file.take() {
            family.read.remove(&file.path);
        }
        (family.fold, family.changes, family.whole) = (None, None, false);
        if family.agents.is_empty() && family.helpers.is_empty() && family.busy == 0 {
            self.families.remove(name);
        }
        self.folded.remove(name);
        self.restless.remove(name);
        self.board.remove(name);
        self.done(name);
    }

    /// Reads on in a session of which a file may have changed.
    pub(super) fn changed(&mut self, name: &SessionPath, agent: Option<&SubAgentFile>) {
        let mask = self.setting.mask;
        let Some(family) = self.families.get_mut(name) else {
            return;
        };
        let Some(main) = &family.file else {
            return;
        };
        if !family.is_stale() {
            return;
        }
        family.touched = Some(Instant::now());
        let (path, stamp) = match agent {
            Some(agent) => (agent.path.clone(), agent.stamp),
            None => (main.path.clone(), main.stamp),
        };
        let Some(fold) = &mut family.fold else {
            return self.wake(name);
        };
        let follow = match agent {
            Some(agent) => fold.agents.get(&agent.path),
            None => Some(&fold.main),
        };
        let offset = follow.map_or(0, |follow| follow.offset());
        if stamp.size.saturating_sub(offset) > MUCH || stamp.size < offset {
            self.unfold(name);
            return self.wake(name);
        }
        match fold.poll(agent, mask) {
            Ok(polled) => {
                let bytes = main.bytes;
                family.read.insert(path, stamp);
                family.grown |= polled.lines > 0;
                // What it holds may have been read before it was known how large it is.
                let other = |row: Arc<SessionJson>| row.bytes != bytes;
                let resized = self.board.get(name).is_some_and(other);
                if polled.lines > 0 || polled.restarted || resized {
                    self.show(name);
                }
            }
            Err(_) => {
                self.unfold(name);
                self.wake(name);
            }
        }
    }

    /// Reads a session that was at rest and has changed.
    pub(super) fn wake(&mut self, name: &SessionPath) {
        let Some(family) = self.families.get(name).filter(|family| family.busy == 0) else {
            return;
        };
        if family.bytes() > SMALL {
            self.read(name, ReadUrgency::Now, ReadExtent::Ends);
            self.read(name, ReadUrgency::Changed, ReadExtent::Whole);
        } else {
            self.read(name, ReadUrgency::Now, ReadExtent::Whole);
        }
    }

    pub(super) fn read(&mut self, name: &SessionPath, urgency: ReadUrgency, extent: ReadExtent) {
        let now = (self.setting.clock)().0;
        let Some(family) = self.families.get_mut(name) else {
            return;
        };
        let Some(file) = &family.file else {
            return;
        };
        family.busy += 1;
        let lately = now - family.modified() < LATELY;
        self.workers.add(ReadJob {
            urgency,
            name: Arc::clone(name),
            file: file.clone(),
            agents: family.agents.values().cloned().collect(),
            helpers: family.helpers.values().cloned().collect(),
            extent,
            hold: lately && extent == ReadExtent::Whole,
        });
    }

    /// Takes in what a reader found.
    pub(super) fn got(&mut self, read: FinishedRead) {
        let FinishedRead {
            name,
            extent,
            found,
        } = read;
        self.awaited.remove(&name);
        if self.awaited.is_empty() {
            self.board.set_ready();
        }
        let Some(family) = self.families.get_mut(&name) else {
            return self.done(&name);
        };
        family.busy = family.busy.saturating_sub(1);
        if family.file.is_none() {
            return self.done(&name);
        }
        match (found, extent) {
            (Ok(got), ReadExtent::Ends) => self.got_ends(&name, *got),
            (Ok(got), ReadExtent::Whole) => self.got_whole(&name, *got),
            (Err(why), _) => {
                // Not tried again before the file changes.
                family.read = family
                    .stamps()
                    .map(|(path, stamp)| (path.clone(), stamp))
                    .collect();
                self.board.note(why);
            }
        }
        if extent == ReadExtent::Whole {
            self.done(&name);
        }
        self.catch_up(&name);
    }

    pub(super) fn done(&mut self, name: &SessionPath) {
        if self.backlog.remove(name) {
            self.announce_scanned();
        }
    }

    pub(super) fn got_ends(&mut self, name: &SessionPath, got: SessionReading) {
        let Some(row) = got.row else {
            return;
        };
        let known = self.families.get(name).is_some_and(|family| family.whole);
        let row = match self.board.get(name).filter(|_| known) {
            Some(old) => session_row::row_from_new_end(&old, row, &self.day),
            None => session_row::row_on_day(row, &self.day),
        };
        self.set_changes(name, got.changes);
        // What was read whole meanwhile knows more.
        if self
            .families
            .get(name)
            .is_some_and(|family| family.fold.is_none())
        {
            self.put(name, row, true);
        }
    }

    pub(super) fn got_whole(&mut self, name: &SessionPath, got: SessionReading) {
        for (leaf, title) in &got.given {
            self.titles.insert(*leaf, title.clone());
        }
        let Some(family) = self.families.get_mut(name) else {
            return;
        };
        (family.read, family.given, family.whole) = (got.stamps, got.given, true);
        family.signals = None;
        family.fold = got.fold.map(Box::new);
        match &mut family.fold {
            Some(fold) => {
                fold.title = family.title.clone();
                family.touched.get_or_insert_with(Instant::now);
                self.folded.insert(Arc::clone(name));
            }
            None => drop(self.folded.remove(name)),
        }
        self.unsaved.insert(Arc::clone(name));
        let Some(row) = got.row else {
            self.set_changes(name, None);
            self.board.remove(name);
            return;
        };
        let given = family.title.clone().filter(|_| !got.untitled.is_empty());
        let title = given.or(row.title);
        let row = SessionJson { title, ..row };
        self.set_changes(name, got.changes);
        self.put(name, row, true);
        if !got.untitled.is_empty() {
            match self.scanned {
                true => self.apply_foreign_title(name, &got.untitled),
                false => drop(self.untitled.insert(Arc::clone(name), got.untitled)),
            }
        }
        self.evict();
    }

    /// Reads on in files that changed while they were read.
    pub(super) fn catch_up(&mut self, name: &SessionPath) {
        let Some(family) = self.families.get(name) else {
            return;
        };
        if family.busy > 0 || self.backlog.contains(name) {
            return;
        }
        let stale = family.stamps();
        let stale = stale.filter(|(path, stamp)| family.read.get(*path) != Some(stamp));
        let stale: Vec<PathBuf> = stale.map(|(path, _)| path.clone()).collect();
        self.hinted.extend(stale);
    }
}
