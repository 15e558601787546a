//! Literal values that are known to be secret.

use aho_corasick::{AhoCorasick, MatchKind};

use super::Found;
use super::rule::Level;

/// Shorter ones would be found everywhere.
const SHORTEST: usize = 12;

/// Named values, and a search for all of them at once.
#[derive(Debug)]
pub(super) struct Values {
    pairs: Vec<(String, String)>,
    search: AhoCorasick,
    /// Finds of each value what looks the same in all layers; `None` if there is nothing.
    plain: Option<AhoCorasick>,
}

impl Values {
    /// None if no value is long enough.
    pub(super) fn new(pairs: impl Iterator<Item = (String, String)>) -> Option<Values> {
        let pairs = pairs.filter(|(_, value)| value.len() >= SHORTEST);
        let pairs: Vec<_> = pairs.map(|(name, value)| (plain(&name), value)).collect();
        let mut builder = AhoCorasick::builder();
        let search = builder
            .match_kind(MatchKind::LeftmostLongest)
            .build(pairs.iter().map(|(_, value)| value));
        let search = search.ok().filter(|_| !pairs.is_empty())?;
        let parts = pairs.iter().map(|(_, value)| unescaped(value));
        let parts: Option<Vec<&str>> = parts.collect();
        let plain = parts.and_then(|parts| AhoCorasick::new(parts).ok());
        Some(Values {
            pairs,
            search,
            plain,
        })
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (String, String)> {
        self.pairs.iter().cloned()
    }

    /// Notes where a value may be, in any layer; says whether that can be told at all.
    pub(super) fn suspects(&self, bytes: &[u8], places: &mut Vec<usize>) -> bool {
        let Some(plain) = &self.plain else {
            return false;
        };
        places.extend(plain.find_iter(bytes).map(|hit| hit.start()));
        true
    }

    pub(super) fn find<'s>(&'s self, text: &str, found: &mut Vec<Found<'s>>) {
        for hit in self.search.find_iter(text) {
            let order = hit.pattern().as_usize();
            found.push(Found {
                range: hit.range(),
                size: hit.len(),
                hidden: None,
                name: &self.pairs[order].0,
                level: Level::Value,
                order,
            });
        }
    }
}

/// The longest part of a value that has no character which is written as an escape.
fn unescaped(value: &str) -> Option<&str> {
    let parts = value.split(|c: char| c.is_control() || matches!(c, '"' | '\\'));
    let longest = parts.max_by_key(|part| part.len())?;
    (longest.len() >= SHORTEST / 2).then_some(longest)
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
