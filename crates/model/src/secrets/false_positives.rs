//! Whether what an expression matched is a secret.
//!
//! Keys are random; words, versions, paths, variables and the ids that transcripts are full
//! of are not.

use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::AhoCorasick;

use super::pattern::{LazyPattern, PatternMatch};
use super::rule::{RuleCertainty, SecretRule};

/// What speaks against any secret.
#[derive(Debug, Default)]
pub(super) struct SecretExceptions {
    allow: Vec<LazyPattern>,
    allow_words: Vec<String>,
    stopwords: Vec<String>,
    search: OnceLock<Option<AhoCorasick>>,
}

/// Values that begin like this are names of things: of messages, calls, requests, models.
const NAMES: &[&str] = &[
    "msg_",
    "toolu_",
    "srvtoolu_",
    "req_",
    "call_",
    "resp_",
    "chatcmpl-",
    "msgbatch_",
    "batch_",
    "file_",
    "file-",
    "run_",
    "thread_",
    "asst_",
    "session_",
    "sess_",
    "cse_",
    "container_",
    "evt_",
    "user_",
    "org-",
    "org_",
    "claude-",
    "gpt-",
    "gemini-",
    "agent-",
    "sha256",
    "sha512",
    "sha1-",
];

/// Names after which even an id or a hash is a secret.
const STRONG: &[&str] = &[
    "secret",
    "password",
    "passwd",
    "apikey",
    "api_key",
    "api-key",
    "api.key",
    "apitoken",
    "api_token",
    "api-token",
    "auth_token",
    "authtoken",
    "access_token",
    "accesstoken",
    "refresh_token",
    "refreshtoken",
    "private_key",
    "privatekey",
    "auth_key",
    "authkey",
    "encryption_key",
    "encryptionkey",
    "access_key",
    "accesskey",
    "credential",
];

impl SecretExceptions {
    pub(super) fn new(
        allow: Vec<LazyPattern>,
        allow_words: Vec<String>,
        stopwords: Vec<String>,
    ) -> SecretExceptions {
        SecretExceptions {
            allow,
            allow_words,
            stopwords,
            search: OnceLock::new(),
        }
    }

    #[cfg(test)]
    pub(super) fn patterns(&self) -> impl Iterator<Item = &LazyPattern> {
        self.allow.iter()
    }

    fn is_allowed(&self, secret: &str) -> bool {
        let has_word = |word: &String| secret.contains(word.as_str());
        self.allow_words.iter().any(has_word)
            || self.allow.iter().any(|pattern| pattern.is_in(secret))
    }

    fn has_stopword(&self, secret: &str) -> bool {
        let search = self.search.get_or_init(|| {
            let mut builder = AhoCorasick::builder();
            builder.ascii_case_insensitive(true);
            builder.build(&self.stopwords).ok()
        });
        search
            .as_ref()
            .is_some_and(|search| search.is_match(secret))
    }
}

/// Where the secret of a match is, if it is one.
pub(super) fn is_secret(
    rule: &SecretRule,
    doubts: &SecretExceptions,
    text: &str,
    hit: &PatternMatch,
) -> Option<Range<usize>> {
    let range = super::whole(text, trim(text.as_bytes(), hit.secret.clone()));
    let secret = &text[range.clone()];
    let is_secret = !secret.is_empty()
        && (!rule.digit || secret.bytes().any(|byte| byte.is_ascii_digit()))
        && (rule.entropy == 0.0 || entropy(secret) > enough(rule, secret))
        && !doubts.is_allowed(secret)
        && !rule.not.iter().any(|pattern| pattern.is_in(secret))
        && is_secret_here(rule, text, hit, secret)
        && !(rule.stopwords && doubts.has_stopword(secret));
    is_secret.then_some(range)
}

/// The entropy that a secret must exceed. Digits of hexadecimal have four bits at most, and
/// thirty-two of them rarely much more than three and a half.
fn enough(rule: &SecretRule, secret: &str) -> f64 {
    if rule.level == RuleCertainty::Generic && is_number(secret) {
        rule.entropy.min(3.0)
    } else {
        rule.entropy
    }
}

/// Whether what stands around it speaks for a secret.
fn is_secret_here(rule: &SecretRule, text: &str, hit: &PatternMatch, secret: &str) -> bool {
    if rule.level != RuleCertainty::Generic {
        return true;
    }
    let named = super::whole(text, name(text.as_bytes(), hit.all.start)..hit.all.end);
    let name = &text[named.start..hit.secret.start.max(named.start)];
    let named = &text[named];
    let line = line(text, hit.all.clone());
    !is_name(secret, name)
        && !rule.not_match.iter().any(|pattern| pattern.is_in(named))
        && !rule.not_line.iter().any(|pattern| pattern.is_in(line))
}

/// Whether a value is an id, a hash or a name in code, and not called a secret outright.
fn is_name(secret: &str, name: &str) -> bool {
    if is_known_id(secret) {
        return true;
    }
    // What follows a comma is the next thing in a list.
    let name = name.to_ascii_lowercase();
    let is_strong = !name.contains(',') && STRONG.iter().any(|strong| name.contains(strong));
    !is_strong && (is_number(secret) || is_identifier(secret))
}

/// Whether a value is the name of a message, a call, a model and the like.
pub(super) fn is_known_id(secret: &str) -> bool {
    NAMES.iter().any(|start| secret.starts_with(start))
}

/// Whether a value is made of words, as `win32api.RegEnumKey` is: few digits, and long runs
/// of letters of one case.
pub(super) fn is_identifier(secret: &str) -> bool {
    let bytes = secret.as_bytes();
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let starts_word = |pair: &[u8]| {
        let is_letter = pair[1].is_ascii_alphabetic();
        is_letter && (!pair[0].is_ascii_alphabetic() || is_hump(pair))
    };
    let starts_digits = |pair: &[u8]| is_digit(&pair[1]) && !is_digit(&pair[0]);
    let letters = bytes
        .iter()
        .filter(|byte| byte.is_ascii_alphabetic())
        .count();
    let words = 1 + bytes.windows(2).filter(|pair| starts_word(pair)).count();
    let numbers = bytes.windows(2).filter(|pair| starts_digits(pair)).count();
    // Random letters of both cases have words of less than three.
    let length = if secret.contains('.') { 6 } else { 7 };
    numbers <= 2 && letters * 2 >= words * length
}

fn is_hump(pair: &[u8]) -> bool {
    pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase()
}

/// Whether a value is a UUID, a hash in hexadecimal, or a plain number.
pub(super) fn is_number(secret: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    secret.bytes().all(is_part)
}

/// Where the name begins whose end the match begins with: `aws_secret_` before `key`.
fn name(bytes: &[u8], at: usize) -> usize {
    let from = at.saturating_sub(50);
    let before = bytes[from..at].iter().rev();
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    at - before.take_while(is_name).count()
}

/// The line, or lines, around a match; only its neighbourhood if it is long.
fn line(text: &str, range: Range<usize>) -> &str {
    let bytes = text.as_bytes();
    let from = range.start.saturating_sub(1000);
    let until = text.len().min(range.end + 1000);
    let start = memchr::memrchr(b'\n', &bytes[from..range.start]).map_or(from, |at| from + at + 1);
    let end = memchr::memchr(b'\n', &bytes[range.end..until]).map_or(until, |at| range.end + at);
    &text[super::whole(text, start..end)]
}

fn trim(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let inner = &bytes[range.clone()];
    let start = range.start + (inner.len() - inner.trim_ascii_start().len());
    let end = start + inner.trim_ascii().len();
    start..end
}

/// Shannon's entropy in bits per byte: 0 for `aaaa`, 4 for random hexadecimal.
pub(super) fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let total = text.len() as f64;
    let seen = counts.iter().filter(|count| **count > 0);
    seen.map(|count| f64::from(*count) / total)
        .map(|share| -share * share.log2())
        .sum()
}
