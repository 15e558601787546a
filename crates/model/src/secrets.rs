//! The finder of secrets: keys, tokens and passwords in a text.
//!
//! Pure: a text in, places out. The index leaves out what it finds, screens mask it, editing
//! and sending replace it, and all of them use this one. The rules are data
//! (`data/secrets.json`, most of them from Gitleaks); this code knows no format of any token.
//!
//! One pass over the text looks for the anchors of all rules at once: short literals that
//! every match must hold. Only where an anchor stands is the expression of its rule tried,
//! and only from there, so ordinary text costs little more than the pass. Expressions are
//! compiled when their anchor is first met.
//!
//! A secret may be wrapped: split by terminal codes, escaped as JSON inside a text, or in
//! base64. The lines that have such wrapping are looked at without it too (`layers`).
//!
//! ```
//! use unspool_model::secrets::SecretFinder;
//!
//! let token = format!("ghp{}{}", "_0aZ9bY8cX7dW6eV5", "fU4gT3hS2iR1jQ0kP9lO8");
//! let text = format!("git push https://me:{token}@example.com");
//! let secrets = SecretFinder::standard();
//! assert_eq!(secrets.mask(&text), "git push https://me:[REDACTED:github-pat]@example.com");
//! assert_eq!(secrets.mask("nothing here"), "nothing here");
//! ```

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

mod anchors;
mod false_positives;
mod known_values;
mod named_values;
mod pattern;
mod rule;
pub(crate) mod text_layers;

use known_values::KnownSecretValues;
use rule::{RuleCertainty, SecretRules};

/// What a masked secret begins with; the rule and `]` follow.
const MASK: &str = "[REDACTED:";

/// A place that should not be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSecret<'s> {
    /// Where the secret itself is, without the name in front of it. On character boundaries.
    pub range: Range<usize>,
    /// Which rule found it, or the name of the value.
    pub rule: &'s str,
    /// The secret itself where the text has it in another form: escaped, in base64.
    pub hidden: Option<Box<str>>,
}

/// What to look for.
///
/// Cheap to clone and to share between threads.
#[derive(Clone, Debug)]
pub struct SecretFinder {
    rules: &'static SecretRules,
    values: Option<Arc<KnownSecretValues>>,
    /// Finds that are less sure than this are left out.
    least: RuleCertainty,
}

/// What one rule found, before overlaps are settled.
#[derive(Clone, Debug)]
struct SecretCandidate<'s> {
    range: Range<usize>,
    name: &'s str,
    level: RuleCertainty,
    order: usize,
    /// How long what this rule found is, whatever it was joined with.
    size: usize,
    /// The secret itself where the text has it in another form.
    hidden: Option<Box<str>>,
}

impl SecretFinder {
    /// The rules everybody uses.
    pub fn standard() -> &'static SecretFinder {
        static STANDARD: OnceLock<SecretFinder> = OnceLock::new();
        STANDARD.get_or_init(|| SecretFinder {
            rules: SecretRules::standard(),
            values: None,
            least: RuleCertainty::Generic,
        })
    }

    /// Tokens of known forms alone: what is masked in names of directories, branches, models
    /// and tools, where no word before a value says that it is a secret.
    pub fn forms() -> &'static SecretFinder {
        static FORMS: OnceLock<SecretFinder> = OnceLock::new();
        FORMS.get_or_init(|| SecretFinder::standard().forms_only())
    }

    /// Of these only known forms and known values.
    pub fn forms_only(&self) -> SecretFinder {
        SecretFinder {
            least: RuleCertainty::Format,
            ..self.clone()
        }
    }

    /// These rules, and literal values that are known to be secret, by name: those of the
    /// environment, say. Values under twelve bytes are ignored, because they would be found
    /// everywhere.
    pub fn with_values<N, V>(&self, values: impl IntoIterator<Item = (N, V)>) -> SecretFinder
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        let known = self.values.iter().flat_map(|values| values.pairs());
        let new = values.into_iter();
        let new = new.map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().to_owned()));
        SecretFinder {
            rules: self.rules,
            values: KnownSecretValues::new(known.chain(new)).map(Arc::new),
            least: self.least,
        }
    }

    /// The ids of the rules, and in a few words what each finds.
    pub fn rules(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let list = self.rules.list.iter();
        let list = list.map(|rule| (rule.id.as_str(), rule.about.as_str()));
        list.chain(named_values::RULES)
    }

    /// The secrets of a text, in order, none overlapping another.
    ///
    /// Where several rules find the same place, the most specific one names it, and the
    /// place covers all they found.
    pub fn find<'s>(&'s self, text: &str) -> Vec<FoundSecret<'s>> {
        let mut found = self.flat(text);
        text_layers::find(self, text, &mut found);
        if found.is_empty() {
            return Vec::new();
        }
        found.retain(|one| one.level >= self.least && !is_masked(text, &one.range));
        settle(text, found)
    }

    /// What stands in the text as it is, overlaps and all.
    fn flat<'s>(&'s self, text: &str) -> Vec<SecretCandidate<'s>> {
        let mut found = self.rules.find(text);
        if let Some(values) = &self.values {
            values.find(text, &mut found);
        }
        found
    }

    /// Whether there is any.
    pub fn has(&self, text: &str) -> bool {
        !self.find(text).is_empty()
    }

    /// The text with `[REDACTED:rule]` in place of each secret.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.mask_with(text, |_, rule| mask(rule))
    }

    /// The text with its secrets masked, and where `range` is in it; `None` if there are none.
    /// What begins or ends inside a secret does so with its mask.
    pub fn mask_around(&self, text: &str, range: Range<usize>) -> Option<(String, Range<usize>)> {
        let mut moved = range;
        let mut follow = |secrets: &[FoundSecret<'_>]| moved = after_masking(secrets, &moved);
        match self.mask_following(text, |_, rule| mask(rule), &mut follow) {
            Cow::Owned(masked) => Some((masked, moved)),
            Cow::Borrowed(_) => None,
        }
    }

    /// The text with something else in place of each secret, given the secret and its rule.
    ///
    /// What is put in place should begin with `[REDACTED:` and end with `]`, or it may be
    /// taken for a secret again.
    pub fn mask_with<'a>(
        &self,
        text: &'a str,
        place: impl FnMut(&str, &str) -> String,
    ) -> Cow<'a, str> {
        self.mask_following(text, place, &mut |_| ())
    }

    /// The same, telling which secrets are about to be masked.
    fn mask_following<'a>(
        &self,
        text: &'a str,
        mut place: impl FnMut(&str, &str) -> String,
        follow: &mut dyn FnMut(&[FoundSecret<'_>]),
    ) -> Cow<'a, str> {
        let mut masked = Cow::Borrowed(text);
        // Once more, because a secret can hide behind the one in front of it: it ends the
        // word that the other begins.
        for _ in 0..16 {
            let found = self.find(&masked);
            if found.is_empty() {
                break;
            }
            follow(&found);
            masked = Cow::Owned(replace(&masked, &found, &mut place));
        }
        masked
    }
}

/// What stands in place of a secret.
fn mask(rule: &str) -> String {
    format!("{MASK}{rule}]")
}

/// Where a stretch of text is once these secrets are masked.
fn after_masking(secrets: &[FoundSecret<'_>], range: &Range<usize>) -> Range<usize> {
    let (mut start, mut end) = (range.start, range.end);
    // From behind, so that the places before are still as they were.
    for secret in secrets.iter().rev() {
        let length = mask(secret.rule).len();
        let Range {
            start: from,
            end: to,
        } = secret.range.clone();
        start = match start {
            before if before < from => before,
            inside if inside < to => from,
            behind => behind - (to - from) + length,
        };
        end = match end {
            before if before <= from => before,
            inside if inside <= to => from + length,
            behind => behind - (to - from) + length,
        };
    }
    start..end
}

fn replace(
    text: &str,
    secrets: &[FoundSecret<'_>],
    place: &mut impl FnMut(&str, &str) -> String,
) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut done = 0;
    for secret in secrets {
        masked.push_str(&text[done..secret.range.start]);
        masked.push_str(&place(&text[secret.range.clone()], secret.rule));
        done = secret.range.end;
    }
    masked.push_str(&text[done..]);
    masked
}

/// Whether a place lies in something already masked.
fn is_masked(text: &str, range: &Range<usize>) -> bool {
    let bytes = text.as_bytes();
    let near = range.start.saturating_sub(200)..text.len().min(range.start + MASK.len());
    let Some(at) = memchr::memmem::rfind(&bytes[near.clone()], MASK.as_bytes()) else {
        return false;
    };
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(byte);
    let rule = near.start + at + MASK.len();
    let end = rule + bytes[rule..].iter().take_while(is_name).count();
    bytes.get(end) == Some(&b']') && range.end <= end + 1
}

/// Joins what overlaps, and lets the most specific rule name it.
fn settle<'s>(text: &str, mut found: Vec<SecretCandidate<'s>>) -> Vec<FoundSecret<'s>> {
    found.sort_by_key(|one| (one.range.start, one.range.end));
    let mut settled: Vec<SecretCandidate<'s>> = Vec::with_capacity(found.len());
    for one in found {
        match settled.last_mut() {
            Some(last) if one.range.start < last.range.end => last.join(one),
            _ => settled.push(one),
        }
    }
    let secrets = settled.into_iter().map(|one| FoundSecret {
        range: whole(text, one.range),
        rule: one.name,
        hidden: one.hidden,
    });
    secrets.collect()
}

impl<'s> SecretCandidate<'s> {
    fn join(&mut self, other: SecretCandidate<'s>) {
        let range = self.range.start..self.range.end.max(other.range.end);
        if other.rank() > self.rank() {
            *self = other;
        }
        self.range = range;
    }

    /// More specific is more; of equals the longer, then the one listed first.
    fn rank(&self) -> (RuleCertainty, usize, std::cmp::Reverse<usize>) {
        (self.level, self.size, std::cmp::Reverse(self.order))
    }
}

/// A range widened to whole characters: expressions see bytes.
fn whole(text: &str, range: Range<usize>) -> Range<usize> {
    let (mut start, mut end) = (range.start, range.end);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

#[cfg(test)]
mod tests;
