//! What goes along with a session that becomes another one: its sub-agents, whose lines name
//! it, and the files beside it.
//!
//! Sub-agents are many and small. Several are read and rewritten at once, and none is kept; a
//! large one is rewritten on its own, by all cores.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use unspool_model::agent_kind::asks_to_warm_up;
use unspool_model::edit::identity::Identity;
use unspool_model::edit::{Pen, Plan};
use unspool_model::session::Role;
use unspool_store::Error;
use unspool_store::carry::{self, Carried, Home};
use unspool_store::each;
use unspool_store::find::{self, SessionFile};
use unspool_store::owned::OwnedFiles;
use unspool_store::read::{Loaded, Reader};
use unspool_store::rewrite::{rewrite, rewrite_on};

use super::bench::{Bench, Spot};
use super::veil::Veil;
use crate::failure::Failure;
use crate::world::World;

/// Whose files go where.
pub struct Along<'a> {
    pub world: &'a World,
    /// The old session.
    pub file: &'a SessionFile,
    pub identity: &'a Identity,
    /// Where the new one lives.
    pub home: &'a Home,
    pub veil: &'a Veil<'a>,
}

/// Larger sub-agents are not held in memory.
const SMALL: u64 = 1 << 20;

/// What became of a sub-agent on the way.
enum Agent {
    Done(Vec<u8>),
    Large(Box<Loaded>),
    /// It only woke the client up: there is nothing in it.
    Nothing,
    /// It cannot be read; nor could it be in the old session.
    Unread(Error),
    /// It could, and then no more.
    Failed(Error),
}

impl Along<'_> {
    /// Carries everything that another session did not bring under the same name, and says how
    /// much.
    pub fn carry(&self, bench: &mut Bench, taken: &mut HashSet<PathBuf>) -> Result<u64, Failure> {
        let before = taken.len();
        let found = find::around(&self.file.path);
        let owned = OwnedFiles::new(&found).of(self.file);
        let all = carry::carried(&owned, &Home::of(self.file), self.home);
        let (transcripts, rest): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|one| one.is_transcript);
        let mut left = transcripts.iter();
        each::in_order(
            each::threads(),
            || Ok(left.next()),
            |one| (one, self.agent(&one.from)),
            |(one, agent)| self.put(bench, taken, one, agent),
        )?;
        for one in rest {
            if !taken.insert(one.to.clone()) {
                continue;
            }
            match self.veil.file(&one.from)? {
                Some(bytes) => bench.put(Spot::New(&one.to), |out| out.write_all(&bytes))?,
                None => bench.copy(&one.from, &one.to)?,
            }
        }
        Ok((taken.len() - before) as u64)
    }

    /// Reads a sub-agent, and rewrites it at once if it is small.
    fn agent(&self, path: &Path) -> Agent {
        let reader = Reader {
            threads: 1,
            ..Reader::to_edit()
        };
        let loaded = match reader.read(path, Role::Agent) {
            Ok(loaded) => loaded,
            Err(error) => return Agent::Unread(error),
        };
        if asks_to_warm_up(&loaded.session) {
            return Agent::Nothing;
        }
        if loaded.bytes > SMALL {
            return Agent::Large(Box::new(loaded));
        }
        let mut bytes = Vec::with_capacity(loaded.bytes as usize);
        let plan = Plan::new(&loaded.session);
        let pen = Pen::new(&loaded.session, &plan, Some(self.identity));
        match rewrite_on(1, &loaded, pen, &|line| self.veil.line(line), &mut bytes) {
            Ok(_) => Agent::Done(bytes),
            Err(why) => Agent::Failed(Error::io(path, why)),
        }
    }

    fn put(
        &self,
        bench: &mut Bench,
        taken: &mut HashSet<PathBuf>,
        one: &Carried,
        agent: Agent,
    ) -> Result<(), Failure> {
        match agent {
            Agent::Nothing => {}
            Agent::Failed(error) => return Err(error.into()),
            Agent::Unread(error) => {
                let warning = error.warning(&one.from);
                self.world.ui.warn(&warning.to_string());
            }
            _ if !taken.insert(one.to.clone()) => {}
            Agent::Done(bytes) => bench.put(Spot::New(&one.to), |out| out.write_all(&bytes))?,
            Agent::Large(loaded) => bench.put(Spot::New(&one.to), |out| {
                let plan = Plan::new(&loaded.session);
                let pen = Pen::new(&loaded.session, &plan, Some(self.identity));
                rewrite(&loaded, pen, &|line| self.veil.line(line), out).map(drop)
            })?,
        }
        Ok(())
    }
}
