//! Whose lines they are: the ids and the directory that a copy of a session gets.

use std::hash::{BuildHasher, Hasher};

use foldhash::HashMap;

use crate::id::Id;

/// What a copy is called, and where it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyIdentity {
    /// The id of the new session; empty where it keeps its own.
    pub session: String,
    /// Ids that the lines may call the old session by: the name of its file, and others.
    pub old: Vec<String>,
    /// The directory it moves to: `(from, to)`. Directories below move along.
    pub cwd: Option<(String, String)>,
    /// Lines get new ids, made from this number.
    pub uuids: Option<u64>,
    /// Single ids that are taken and get others.
    pub taken: RenamedIds,
    /// The session whose lines these are copies of; each line then says so, as those of the
    /// client's own forks do.
    pub fork_of: Option<String>,
}

/// Ids that mean something else where lines go, and what they become.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenamedIds {
    /// Ids of lines.
    pub lines: HashMap<Id, Id>,
    /// Ids of calls.
    pub calls: HashMap<Box<str>, Box<str>>,
    /// Ids of messages.
    pub messages: HashMap<Box<str>, Box<str>>,
}

impl CopyIdentity {
    /// A session that only gets another id.
    pub fn new(session: impl Into<String>, old: impl IntoIterator<Item = String>) -> CopyIdentity {
        CopyIdentity {
            session: session.into(),
            old: old.into_iter().collect(),
            cwd: None,
            uuids: None,
            taken: RenamedIds::default(),
            fork_of: None,
        }
    }

    /// The same session in another directory.
    pub fn moved(from: impl Into<String>, to: impl Into<String>) -> CopyIdentity {
        CopyIdentity {
            cwd: Some((from.into(), to.into())),
            ..CopyIdentity::new("", [])
        }
    }

    /// Whether a text is an id of the old session.
    pub fn is_old(&self, id: &str) -> bool {
        self.old.iter().any(|old| old == id)
    }

    /// The new id of a line of the session.
    pub fn line(&self, old: &Id) -> Id {
        match (self.taken.lines.get(old), self.uuids) {
            (Some(new), _) => new.clone(),
            (None, Some(seed)) => made(seed, old),
            (None, None) => old.clone(),
        }
    }

    /// Whether lines get other ids.
    pub fn renames(&self) -> bool {
        self.uuids.is_some() || !self.taken.lines.is_empty()
    }

    /// Where a directory is after the move; `None` if it does not move.
    pub fn directory(&self, old: &str) -> Option<String> {
        let (from, to) = self.cwd.as_ref()?;
        let from = from.trim_end_matches(['/', '\\']);
        let rest = old.strip_prefix(from)?;
        let below = rest.is_empty() || rest.starts_with(['/', '\\']);
        let moved = format!("{}{rest}", to.trim_end_matches(['/', '\\']));
        (below && moved != old).then_some(moved)
    }
}

/// A uuid that only this number and this id make.
pub(super) fn made(seed: u64, old: &Id) -> Id {
    let half = |salt: u64| {
        let state = foldhash::quality::FixedState::with_seed(seed ^ salt);
        let mut hasher = state.build_hasher();
        hasher.write(old.to_string().as_bytes());
        hasher.finish()
    };
    let mut bits = u128::from(half(1)) << 64 | u128::from(half(2));
    // Version 4, as the client writes them.
    bits = bits & !(0xF << 76) | 4 << 76;
    bits = bits & !(0b11 << 62) | 0b10 << 62;
    let hex = format!("{bits:032x}");
    Id::new(&format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_id_depends_on_the_old_one_and_on_nothing_else() {
        let identity = CopyIdentity {
            uuids: Some(7),
            ..CopyIdentity::new("s", [])
        };
        let (one, other) = (Id::new("a"), Id::new("b"));
        assert_eq!(identity.line(&one), identity.line(&one));
        assert_ne!(identity.line(&one), identity.line(&other));
        let text = identity.line(&one).to_string();
        assert_eq!((text.len(), &text[14..15]), (36, "4"));
    }

    #[test]
    fn only_a_directory_and_what_is_below_it_moves() {
        let identity = CopyIdentity {
            cwd: Some(("/a/b".into(), "/c".into())),
            ..CopyIdentity::new("s", [])
        };
        assert_eq!(identity.directory("/a/b").as_deref(), Some("/c"));
        assert_eq!(identity.directory("/a/b/x").as_deref(), Some("/c/x"));
        assert_eq!(identity.directory("/a/bc"), None);
        assert_eq!(identity.directory("/a"), None);
    }
}
