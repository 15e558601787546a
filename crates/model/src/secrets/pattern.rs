//! An expression that is compiled when first used.

use std::ops::Range;
use std::sync::OnceLock;

use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};
use serde::Deserialize;

/// The most a compiled expression may take.
const LIMIT: usize = 4 << 20;

/// The most the states met while searching may take, of one expression and thread.
const CACHE: usize = 256 << 10;

/// An expression over bytes. Classes and boundaries are ASCII, as in the program that the
/// rules come from.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
pub(super) struct LazyPattern {
    pub(super) text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl From<String> for LazyPattern {
    fn from(text: String) -> LazyPattern {
        LazyPattern {
            text,
            compiled: OnceLock::new(),
        }
    }
}

impl LazyPattern {
    /// Whether it matches anywhere.
    pub(super) fn is_in(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    /// The match that starts exactly here and reaches no further than that: all of it, and
    /// its first group that took part.
    pub(super) fn at(&self, text: &str, within: Range<usize>) -> Option<PatternMatch> {
        let regex = self.regex()?;
        let input = Input::new(text).range(within).anchored(Anchored::Yes);
        // Most fail, and failing needs no groups.
        regex.search_half(&input)?;
        let mut groups = regex.create_captures();
        regex.search_captures(&input, &mut groups);
        PatternMatch::new(&groups)
    }

    /// None for what does not compile; a test sees that all do.
    pub(super) fn regex(&self) -> Option<&Regex> {
        let compiled = self.compiled.get_or_init(|| compile(&self.text));
        compiled.as_ref()
    }
}

/// A match.
#[derive(Debug)]
pub(super) struct PatternMatch {
    pub(super) all: Range<usize>,
    pub(super) secret: Range<usize>,
}

impl PatternMatch {
    /// The same match in a text that has so much more before it.
    pub(super) fn moved(self, by: usize) -> PatternMatch {
        let moved = |range: Range<usize>| range.start + by..range.end + by;
        PatternMatch {
            all: moved(self.all),
            secret: moved(self.secret),
        }
    }

    fn new(groups: &Captures) -> Option<PatternMatch> {
        let all = groups.get_match()?.range();
        let mut inner = (1..groups.group_len()).filter_map(|group| groups.get_group(group));
        let secret = inner.find(|group| !group.is_empty());
        let secret = secret.map_or(all.clone(), |group| group.range());
        Some(PatternMatch { all, secret })
    }
}

fn compile(text: &str) -> Option<Regex> {
    let config = Regex::config()
        .utf8_empty(false)
        .nfa_size_limit(Some(LIMIT))
        .onepass(false)
        .hybrid_cache_capacity(CACHE);
    let mut builder = Regex::builder();
    builder.configure(config);
    builder.syntax(syntax::Config::new().unicode(false).utf8(false));
    builder.build(text).ok()
}
