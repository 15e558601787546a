//! What goes along with a session that becomes another one: its sub-agents, whose lines name
//! it, and the files beside it.
//!
//! Sub-agents are many and small. Several are read and rewritten at once, and none is kept; a
//! large one is rewritten on its own, by all cores.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use unspool_model::agent_kind::asks_to_warm_up;
use unspool_model::edit::copy_identity::CopyIdentity;
use unspool_model::edit::{EditPlan, LineRewriter};
use unspool_model::session::TranscriptRole;
use unspool_store::StoreError;
use unspool_store::copy_side_files::{self, SessionCopyLocation, SideFileCopy};
use unspool_store::find::{self, SessionFile};
use unspool_store::owned_files::OwnedFiles;
use unspool_store::parallel;
use unspool_store::read::{LoadedSession, SessionReader};
use unspool_store::rewrite::{rewrite, rewrite_on};

use super::edit_redactor::EditRedactor;
use super::staging::{EditStaging, StagingTarget};
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Whose files go where.
pub struct SideFileCopier<'a> {
    pub world: &'a CommandContext,
    /// The old session.
    pub file: &'a SessionFile,
    pub identity: &'a CopyIdentity,
    /// Where the new one lives.
    pub home: &'a SessionCopyLocation,
    pub veil: &'a EditRedactor<'a>,
}

/// Larger sub-agents are not held in memory.
const SMALL: u64 = 1 << 20;

/// What became of a sub-agent on the way.
enum AgentCopyOutcome {
    Done(Vec<u8>),
    Large(Box<LoadedSession>),
    /// It only woke the client up: there is nothing in it.
    Nothing,
    /// It cannot be read; nor could it be in the old session.
    Unread(StoreError),
    /// It could, and then no more.
    Failed(StoreError),
}

impl SideFileCopier<'_> {
    /// Carries everything that another session did not bring under the same name, and says how
    /// much.
    pub fn carry(
        &self,
        bench: &mut EditStaging,
        taken: &mut HashSet<PathBuf>,
    ) -> Result<u64, CommandFailure> {
        let before = taken.len();
        let found = find::find_beside_transcript(&self.file.path);
        let owned = OwnedFiles::new(&found).of(self.file);
        let all = copy_side_files::side_file_copies(
            &owned,
            &SessionCopyLocation::of(self.file),
            self.home,
        );
        let (transcripts, rest): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|one| one.is_transcript);
        let mut left = transcripts.iter();
        parallel::in_order(
            parallel::threads(),
            || Ok(left.next()),
            |one| (one, self.agent(&one.from)),
            |(one, agent)| self.put(bench, taken, one, agent),
        )?;
        for one in rest {
            if !taken.insert(one.to.clone()) {
                continue;
            }
            match self.veil.file(&one.from)? {
                Some(bytes) => {
                    bench.put(StagingTarget::New(&one.to), |out| out.write_all(&bytes))?
                }
                None => bench.copy(&one.from, &one.to)?,
            }
        }
        Ok((taken.len() - before) as u64)
    }

    /// Reads a sub-agent, and rewrites it at once if it is small.
    fn agent(&self, path: &Path) -> AgentCopyOutcome {
        let reader = SessionReader {
            threads: 1,
            ..SessionReader::to_edit()
        };
        let loaded = match reader.read(path, TranscriptRole::Agent) {
            Ok(loaded) => loaded,
            Err(error) => return AgentCopyOutcome::Unread(error),
        };
        if asks_to_warm_up(&loaded.session) {
            return AgentCopyOutcome::Nothing;
        }
        if loaded.bytes > SMALL {
            return AgentCopyOutcome::Large(Box::new(loaded));
        }
        let mut bytes = Vec::with_capacity(loaded.bytes as usize);
        let plan = EditPlan::new(&loaded.session);
        let pen = LineRewriter::new(&loaded.session, &plan, Some(self.identity));
        match rewrite_on(1, &loaded, pen, &|line| self.veil.line(line), &mut bytes) {
            Ok(_) => AgentCopyOutcome::Done(bytes),
            Err(why) => AgentCopyOutcome::Failed(StoreError::io(path, why)),
        }
    }

    fn put(
        &self,
        bench: &mut EditStaging,
        taken: &mut HashSet<PathBuf>,
        one: &SideFileCopy,
        agent: AgentCopyOutcome,
    ) -> Result<(), CommandFailure> {
        match agent {
            AgentCopyOutcome::Nothing => {}
            AgentCopyOutcome::Failed(error) => return Err(error.into()),
            AgentCopyOutcome::Unread(error) => {
                let warning = error.warning(&one.from);
                self.world.ui.warn(&warning.to_string());
            }
            _ if !taken.insert(one.to.clone()) => {}
            AgentCopyOutcome::Done(bytes) => {
                bench.put(StagingTarget::New(&one.to), |out| out.write_all(&bytes))?
            }
            AgentCopyOutcome::Large(loaded) => bench.put(StagingTarget::New(&one.to), |out| {
                let plan = EditPlan::new(&loaded.session);
                let pen = LineRewriter::new(&loaded.session, &plan, Some(self.identity));
                rewrite(&loaded, pen, &|line| self.veil.line(line), out).map(drop)
            })?,
        }
        Ok(())
    }
}
