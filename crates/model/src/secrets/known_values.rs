//! Literal values that are known to be secret.

use aho_corasick::{AhoCorasick, MatchKind};

use super::SecretCandidate;
use super::rule::RuleCertainty;

/// Shorter ones would be found everywhere.
const SHORTEST: usize = 12;

/// Named values, and a search for all of them at once.
#[derive(Debug)]
pub(super) struct KnownSecretValues {
    pairs: Vec<(String, String)>,
    search: AhoCorasick,
}

impl KnownSecretValues {
    /// None if no value is long enough.
    pub(super) fn new(pairs: impl Iterator<Item = (String, String)>) -> Option<KnownSecretValues> {
        let pairs = pairs.filter(|(_, value)| value.len() >= SHORTEST);
        let pairs: Vec<_> = pairs.map(|(name, value)| (plain(&name), value)).collect();
        let mut builder = AhoCorasick::builder();
        let search = builder
            .match_kind(MatchKind::LeftmostLongest)
            .build(pairs.iter().map(|(_, value)| value));
        let search = search.ok().filter(|_| !pairs.is_empty())?;
        Some(KnownSecretValues { pairs, search })
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (String, String)> {
        self.pairs.iter().cloned()
    }

    pub(super) fn find<'s>(&'s self, text: &str, found: &mut Vec<SecretCandidate<'s>>) {
        for hit in self.search.find_iter(text) {
            let order = hit.pattern().as_usize();
            found.push(SecretCandidate {
                range: hit.range(),
                size: hit.len(),
                hidden: None,
                name: &self.pairs[order].0,
                level: RuleCertainty::Value,
                order,
            });
        }
    }
}

/// A name that can stand in a mask without ending it.
fn plain(name: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name: String = name.chars().filter(|c| keep(*c)).collect();
    if name.is_empty() {
        "value".into()
    } else {
        name
    }
}
