//! The rules: read from data, and looked for by their anchors.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use serde::Deserialize;

use super::SecretCandidate;
use super::anchors::AnchorSearch;
use super::false_positives::{self, SecretExceptions};
use super::named_values;
use super::pattern::LazyPattern;

const DATA: &str = include_str!("../../data/secrets.json");

/// How far a match may reach if its rule does not say. Bounds what a text made to
/// be slow can cost: an expression without end reads no further.
const REACH: usize = 2048;

/// How sure a rule is of what it found; more is surer.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub(super) enum RuleCertainty {
    /// Something called a key, or a token.
    Generic,
    /// Told by what stands before it: the name of a service, a header, an address.
    Context,
    /// Told by its own form.
    Format,
    /// A known value.
    Value,
}

/// One rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretRule {
    pub(super) id: String,
    pub(super) about: String,
    /// Whose rule it is, and so whose licence applies.
    #[serde(rename = "from")]
    _origin: String,
    pub(super) level: RuleCertainty,
    /// Its first group that took part is the secret, or all of it.
    pub(super) regex: LazyPattern,
    /// Literals, in lower case. Every match has one at its start, or at most `back` bytes
    /// behind it.
    pub(super) anchors: Vec<String>,
    #[serde(default)]
    pub(super) back: usize,
    /// How a token begins that is told even where it sticks to a word: `keyAKIA…`. Written as
    /// it is, for in another case these are words.
    #[serde(default)]
    pub(super) glued: Vec<String>,
    /// The bytes that may follow the anchor; empty for any. Saves trying the expression.
    #[serde(default)]
    then: String,
    /// A byte that every match has behind the anchor, and within how many bytes. Saves trying
    /// the expression behind anchors that ordinary text is full of.
    #[serde(default)]
    near: Option<(char, usize)>,
    #[serde(default)]
    reach: Option<usize>,
    /// Only what is less regular than this is a secret (Shannon, bits per byte).
    #[serde(default)]
    pub(super) entropy: f64,
    /// Only with a digit in it: words have none, random letters and digits do.
    #[serde(default)]
    pub(super) digit: bool,
    /// Not if the secret, the match with the name in front, or the line looks like this.
    #[serde(default)]
    pub(super) not: Vec<LazyPattern>,
    #[serde(default)]
    pub(super) not_match: Vec<LazyPattern>,
    #[serde(default)]
    pub(super) not_line: Vec<LazyPattern>,
    /// Not with an ordinary word in it.
    #[serde(default)]
    pub(super) stopwords: bool,
}

/// The data file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretRuleData {
    #[serde(rename = "source")]
    _source: String,
    allow: Vec<LazyPattern>,
    allow_words: Vec<String>,
    rules: Vec<SecretRule>,
    stopwords: Vec<String>,
}

/// All rules.
#[derive(Debug)]
pub(super) struct SecretRules {
    pub(super) list: Vec<SecretRule>,
    pub(super) doubts: SecretExceptions,
    /// Finds the anchors of all rules in one pass.
    anchors: AnchorSearch,
    /// The rules of each anchor, and what saves trying them.
    trials: Vec<Vec<RuleTrial>>,
    /// Which anchors stand in names that tell a secret.
    is_name: Vec<bool>,
}

/// A rule to try where an anchor stands.
#[derive(Debug)]
struct RuleTrial {
    rule: usize,
    /// No word may go on into the anchor.
    is_word_start: bool,
    /// Unless a token begins there that may stick to a word.
    glued: Vec<String>,
    /// Which bytes may follow it.
    then: Option<Box<[bool; 256]>>,
    /// Which byte must stand behind it, and within how many.
    near: Option<(u8, usize)>,
}

impl SecretRules {
    pub(super) fn standard() -> &'static SecretRules {
        static RULES: OnceLock<SecretRules> = OnceLock::new();
        RULES.get_or_init(|| SecretRules::read(DATA))
    }

    /// Rules from data. Data that makes no sense has none; a test sees that ours does.
    fn read(data: &str) -> SecretRules {
        let data: Option<SecretRuleData> = serde_json::from_str(data).ok();
        let (list, doubts) = data.map_or_else(Default::default, |data| {
            let doubts = SecretExceptions::new(data.allow, data.allow_words, data.stopwords);
            (data.rules, doubts)
        });
        let (mut anchors, mut trials) = trials(&list);
        let of_rules: HashSet<&str> = anchors.iter().copied().collect();
        let of_names: HashSet<&str> = named_values::ANCHORS.iter().copied().collect();
        let names = named_values::ANCHORS.iter();
        anchors.extend(names.filter(|name| !of_rules.contains(*name)));
        trials.resize_with(anchors.len(), Vec::new);
        let is_name = anchors.iter().map(|anchor| of_names.contains(anchor));
        SecretRules {
            is_name: is_name.collect(),
            anchors: AnchorSearch::new(anchors.into_iter()),
            list,
            doubts,
            trials,
        }
    }

    /// What all rules find, overlaps and all.
    pub(super) fn find<'s>(&'s self, text: &str) -> Vec<SecretCandidate<'s>> {
        let mut found = Vec::new();
        let bytes = text.as_bytes();
        let mut seen = usize::MAX;
        self.anchors.each(bytes, |anchor, start, end| {
            if self.is_name[anchor] {
                named_values::find(self.list.len(), text, start..end, &mut seen, &mut found);
            }
            let trials = self.trials[anchor].iter();
            for trial in trials.filter(|trial| trial.is_worth_it(bytes, start, end)) {
                self.attempt(trial.rule, text, start, &mut found);
            }
        });
        found
    }

    /// Tries a rule wherever its match could begin, given where an anchor is.
    fn attempt<'s>(
        &'s self,
        order: usize,
        text: &str,
        anchor: usize,
        found: &mut Vec<SecretCandidate<'s>>,
    ) {
        let back = self.list[order].back;
        for start in anchor.saturating_sub(back)..=anchor {
            found.extend(self.at(order, text, start));
        }
    }

    /// What a rule finds exactly here.
    pub(super) fn at<'s>(
        &'s self,
        order: usize,
        text: &str,
        start: usize,
    ) -> Option<SecretCandidate<'s>> {
        let rule = &self.list[order];
        let reach = rule.reach.unwrap_or(REACH);
        let end = text.len().min(start.saturating_add(reach));
        let hit = match rule.regex.at(text, start..end) {
            Some(hit) => hit,
            // Seen without the word that it sticks to.
            None if sticks(&rule.glued, text.as_bytes(), start) => {
                let hit = rule.regex.at(text.get(start..)?, 0..end - start)?;
                hit.moved(start)
            }
            None => return None,
        };
        let range = false_positives::is_secret(rule, &self.doubts, text, &hit)?;
        Some(SecretCandidate {
            size: range.len(),
            hidden: None,
            range,
            name: &rule.id,
            level: rule.level,
            order,
        })
    }
}

impl RuleTrial {
    fn new(order: usize, rule: &SecretRule) -> RuleTrial {
        let regex = rule.regex.text.trim_start_matches("(?i)");
        let then = (!rule.then.is_empty()).then(|| {
            let mut bytes = Box::new([false; 256]);
            for byte in rule.then.bytes() {
                bytes[usize::from(byte)] = true;
            }
            bytes
        });
        RuleTrial {
            rule: order,
            is_word_start: rule.back == 0 && regex.starts_with(r"\b"),
            glued: rule.glued.clone(),
            then,
            near: rule
                .near
                .and_then(|(byte, within)| Some((u8::try_from(byte).ok()?, within))),
        }
    }

    /// A look at the neighbours of the anchor, much cheaper than the expression.
    fn is_worth_it(&self, bytes: &[u8], start: usize, end: usize) -> bool {
        if self.is_word_start
            && start > 0
            && is_word(bytes[start - 1])
            && !sticks(&self.glued, bytes, start)
        {
            return false;
        }
        if let Some((byte, within)) = self.near {
            let rest = &bytes[end..bytes.len().min(end + within)];
            if memchr::memchr(byte, rest).is_none() {
                return false;
            }
        }
        let Some(then) = &self.then else {
            return true;
        };
        bytes.get(end).is_some_and(|byte| then[usize::from(*byte)])
    }
}

/// The longest word that a token may stick to.
const WORD: usize = 24;

/// Whether one of these tokens begins here, behind a word of letters. Behind letters and digits
/// it would be a part of something random.
fn sticks(glued: &[String], bytes: &[u8], start: usize) -> bool {
    let begins = |token: &String| bytes[start..].starts_with(token.as_bytes());
    if !glued.iter().any(begins) {
        return false;
    }
    let before = bytes[..start].iter().rev();
    let word = before.take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'_');
    let length = word.take(WORD + 1).count();
    let is_word_start = start == length || !is_word(bytes[start - length - 1]);
    (1..=WORD).contains(&length) && is_word_start
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The anchors of all rules, each once, and the rules that have it.
fn trials(list: &[SecretRule]) -> (Vec<&str>, Vec<Vec<RuleTrial>>) {
    let mut anchors: Vec<&str> = Vec::new();
    let mut trials: Vec<Vec<RuleTrial>> = Vec::new();
    let mut places = HashMap::new();
    for (order, rule) in list.iter().enumerate() {
        for anchor in &rule.anchors {
            let place = *places.entry(anchor.as_str()).or_insert_with(|| {
                anchors.push(anchor);
                trials.push(Vec::new());
                anchors.len() - 1
            });
            trials[place].push(RuleTrial::new(order, rule));
        }
    }
    (anchors, trials)
}
