//! All files, now and then; and rows that are kept.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use unspool_store::find::{self, FoundSessionFiles};
use unspool_store::hook_events;

use super::{BLIND_SCAN, LiveLoop, LiveSessionState, LoopMessage, SCAN, name_of};
use crate::live_rows::{LiveRows, SessionPath};
use crate::snapshot::{SnapshotFileStamp, SnapshotSession};

impl LiveLoop {
    pub(super) fn scan(&mut self) {
        let limits = if self.blind { BLIND_SCAN } else { SCAN };
        // Set again when it is known how long it took.
        self.times.scan = Instant::now() + limits[1];
        if std::mem::replace(&mut self.scanning, true) {
            return;
        }
        if let Some(watch) = &self.watch {
            watch.again();
        }
        let (tell, dirs) = (self.tell.clone(), self.setting.dirs.clone());
        std::thread::spawn(move || {
            let began = Instant::now();
            let found = find::find(&dirs);
            let _ = tell.send(LoopMessage::Found(found, began.elapsed()));
        });
    }

    pub(super) fn found(&mut self, found: FoundSessionFiles, took: Duration) {
        self.scanning = false;
        let limits = if self.blind { BLIND_SCAN } else { SCAN };
        // Looking must not take more than a few thousandths of the time.
        self.times.scan = Instant::now() + (took * 400).clamp(limits[0], limits[1]);
        let mut seen: HashSet<&Path> = HashSet::new();
        let mut changed: Vec<&Path> = Vec::new();
        let mut unknown = Vec::new();
        for file in &found.sessions {
            seen.insert(&file.path);
            let name = name_of(&file.config, &file.folder, &file.id);
            let family = self.families.get(&name);
            let known = family.and_then(|family| family.file.as_ref());
            if known.is_none_or(|known| known.stamp != file.stamp) {
                changed.push(&file.path);
            }
        }
        for agent in &found.agents {
            seen.insert(&agent.path);
            let name = self.owners.get(&agent.path);
            let family = name.and_then(|name| self.families.get(name));
            let known = family.and_then(|family| family.agents.get(&agent.path));
            match known {
                Some(known) if known.stamp == agent.stamp => {}
                None if agent.session.is_none() => unknown.push(agent.clone()),
                _ => changed.push(&agent.path),
            }
        }
        for helper in found.others.iter().filter(|file| file.helper.is_some()) {
            seen.insert(&helper.path);
            let name = self.owners.get(&helper.path);
            let family = name.and_then(|name| self.families.get(name));
            let known = family.and_then(|family| family.helpers.get(&helper.path));
            if known.is_none_or(|known| known.stamp != helper.stamp) {
                changed.push(&helper.path);
            }
        }
        let known = self.families.values().flat_map(LiveSessionState::stamps);
        let lost = known
            .map(|(path, _)| path)
            .filter(|path| !seen.contains(path.as_path()));
        let lost: Vec<PathBuf> = lost.cloned().collect();
        self.hinted.extend(lost);
        self.hinted.extend(changed.into_iter().map(Path::to_owned));
        let told = self.signs.retell();
        if !told.is_empty() {
            self.look_again_by(|id| told.contains(&hook_events::key(id)));
        }
        if !unknown.is_empty() && !self.asking {
            self.ask_owners(unknown);
        }
        for path in std::mem::take(&mut self.hinted) {
            self.look_at(&path);
        }
    }

    pub(super) fn save(&mut self) {
        let Some(shelf) = &mut self.shelf else {
            self.unsaved.clear();
            return;
        };
        if self.unsaved.is_empty() {
            return;
        }
        let (families, board) = (&self.families, &self.board);
        let changed: Vec<SnapshotSession> = std::mem::take(&mut self.unsaved)
            .iter()
            .filter_map(|name| kept(name, families.get(name)?, board))
            .collect();
        let all = || {
            let all = families.iter();
            all.filter_map(|(name, family)| kept(name, family, board))
        };
        if let Err(why) = shelf.save(&changed, families.len(), all) {
            self.board
                .note(format!("cannot save the session cache: {why}"));
        }
    }
}

/// What is kept of a session; nothing while it was not read whole.
fn kept(
    name: &SessionPath,
    family: &LiveSessionState,
    board: &LiveRows,
) -> Option<SnapshotSession> {
    if !family.whole {
        return None;
    }
    let row = board.get(name).map(|row| (*row).clone());
    if row.as_ref().is_some_and(|row| row.partial) {
        return None;
    }
    let files = family.read.iter();
    Some(SnapshotSession {
        path: name.to_string(),
        files: files
            .map(|(path, stamp)| SnapshotFileStamp::new(path, *stamp))
            .collect(),
        row,
        changes: family.changes.map(|at| at.0),
        given: family.given.clone(),
    })
}
