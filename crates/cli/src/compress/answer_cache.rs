//! Answers that are kept, so that nothing is asked twice.
//!
//! In our cache folder, one file for each answer, named by who was asked what. Only we can
//! read them, and after some days they go.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use unspool_store::{own_file, read_folder};

use super::CompressProvider;
use crate::command_context::CommandContext;

/// The answers of one who is asked.
pub struct AnswerCache {
    folder: PathBuf,
    who: String,
}

/// How long an answer is kept.
const DAYS: u64 = 7;

impl AnswerCache {
    /// What is kept of the answers of this one; old ones of all go.
    pub fn of(world: &CommandContext, who: &CompressProvider) -> AnswerCache {
        let kept = AnswerCache {
            folder: world.own.cache.join("compress"),
            who: who.name().to_owned(),
        };
        kept.prune(SystemTime::now());
        kept
    }

    /// What was answered to this.
    pub fn get(&self, request: &str) -> Option<String> {
        own_file::read_to_string(&self.path(request)).ok()
    }

    /// Keeps an answer. Failing to is no failure: it would be asked for again.
    pub fn put(&self, request: &str, answer: &str) {
        let _ = own_file::replace(&self.path(request), answer.as_bytes());
    }

    fn path(&self, request: &str) -> PathBuf {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, &self.who, request).hash(&mut hasher);
            hasher.finish()
        };
        self.folder
            .join(format!("{:016x}{:016x}", half(1), half(2)))
    }

    fn prune(&self, now: SystemTime) {
        for entry in read_folder::entries(&self.folder)
            .into_iter()
            .flatten()
            .flatten()
        {
            let written = entry.metadata().and_then(|metadata| metadata.modified());
            let age = written.ok().and_then(|then| now.duration_since(then).ok());
            if age.is_some_and(|age| age > Duration::from_secs(DAYS * 86_400)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_kept_by_who_was_asked_what_and_go_after_some_days() {
        let dir = tempfile::tempdir().unwrap();
        let kept = |who: &str| AnswerCache {
            folder: dir.path().join("compress"),
            who: who.to_owned(),
        };
        kept("a").put("question", "answer");
        assert_eq!(kept("a").get("question").as_deref(), Some("answer"));
        assert_eq!(kept("a").get("another"), None);
        assert_eq!(kept("b").get("question"), None);
        kept("a").prune(SystemTime::now() + Duration::from_secs(6 * 86_400));
        assert!(kept("a").get("question").is_some());
        kept("a").prune(SystemTime::now() + Duration::from_secs(8 * 86_400));
        assert_eq!(kept("a").get("question"), None);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_read_them() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let kept = AnswerCache {
            folder: dir.path().join("compress"),
            who: "w".into(),
        };
        kept.put("q", "a");
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(kept.path("q")), 0o600);
        assert_eq!(mode(kept.folder.clone()), 0o700);
    }
}
