//! Secrets out of transcripts: one line in, the same line with placeholders out.
//!
//! A line is not parsed and written again. Its strings are looked at in place, decoded; what
//! is a secret there is found in the raw bytes again, and those bytes alone are replaced. So
//! escapes, order, spaces and numbers of the rest stay as they were written.
//!
//! A placeholder `[REDACTED:rule:hash]` says which secrets were the same: the hash depends on
//! the secret and on a random key, without which nobody can try secrets against it. In the name
//! of a tool it is `REDACTED_rule_hash`, because the API refuses names with other characters.
//!
//! What a client needs to find its way (ids of lines, messages and calls, signatures, sealed
//! thinking) is never touched. That goes by the field it stands in, not by its looks: the same
//! text in a prompt is replaced.

use std::cell::Cell;
use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use siphasher::sip128::{Hasher128, SipHasher24 as SipHasher128};

use crate::json::{self, JsonCursor, QuoteMarks, Span};
use crate::known_names;
use crate::secrets::text_layers::UnwrappedText;
use crate::secrets::{FoundSecret, SecretFinder};

/// Replaces secrets.
#[derive(Clone, Debug)]
pub struct Redactor {
    secrets: SecretFinder,
    /// Without one, placeholders have no hash.
    key: Option<[u8; 32]>,
    /// Whether the copies of files in results are looked at too.
    copies: bool,
}

/// What came of a line or a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactedText {
    /// All of it, with placeholders.
    pub bytes: Vec<u8>,
    /// The rule and the hash of each secret that was replaced.
    pub found: Vec<(String, String)>,
    /// How many of them stood in the thinking of a model, whose signature no longer fits.
    pub thinking: usize,
}

/// A secret in the raw bytes of a line or a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawSecret {
    /// Where it is.
    pub span: Span,
    /// Which rule found it, or the name of the value.
    pub rule: String,
    /// The secret itself, decoded.
    pub secret: String,
    /// Whether a model thought it.
    pub thinking: bool,
    /// The text it stands in.
    pub within: Span,
    /// Whether that text is the name of a tool.
    pub is_tool_name: bool,
}

/// A secret, and how to tell people of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretSnippet {
    /// The secret and where it is.
    pub place: RawSecret,
    /// The placeholder in place of it, with some of the text around it, on one line.
    pub snippet: String,
}

/// Masking may show another secret that was hidden behind the first; this often at most.
const ROUNDS: usize = 16;

/// The API takes no longer name of a tool.
const LONGEST_TOOL_NAME: usize = 128;

/// The rule that finds private keys.
const PRIVATE_KEY: &str = "private-key";

/// Texts up to this length are decoded into memory that is used again.
const KEPT: usize = 4 << 20;

thread_local! {
    /// Memory for the next text: lines are many, and memory for large texts is dear.
    static DECODED: Cell<String> = const { Cell::new(String::new()) };
}

/// What hashes are written in.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// No secret is shorter.
const SHORTEST: usize = 8;

/// Values up to this length are also looked at with the name of their field in front.
const NAMED: usize = 4096;

/// The longest name of a setting that stands in a field of its own.
const LABEL: usize = 80;

/// Strings of this length are worth being told again where they stand twice in a line.
const LONG: usize = 128;

/// So many of a line are remembered.
const REMEMBERED: usize = 8;

impl Redactor {
    /// A redactor for these secrets; equal keys give equal hashes.
    pub fn new(secrets: SecretFinder, key: [u8; 32]) -> Redactor {
        Redactor {
            secrets,
            key: Some(key),
            copies: true,
        }
    }

    /// One for screens: what it puts in place is `[REDACTED:rule]`.
    pub fn masking(secrets: SecretFinder) -> Redactor {
        Redactor {
            secrets,
            key: None,
            copies: true,
        }
    }

    /// One for whoever never shows the copies of whole files that the client keeps beside the
    /// results of reading and editing: those, a third of a transcript, are left as they are.
    pub fn without_copies(self) -> Redactor {
        Redactor {
            copies: false,
            ..self
        }
    }

    /// What it looks for.
    pub fn secrets(&self) -> &SecretFinder {
        &self.secrets
    }

    /// One line of a transcript without its secrets; `None` if it has none.
    pub fn line(&self, line: &[u8]) -> Option<RedactedText> {
        self.rounds(line, |bytes| self.places(bytes))
    }

    /// A value of JSON that is no line, such as the input of a call, without its secrets;
    /// `None` if it has none. No field of it is needed to find one's way.
    pub fn value(&self, json: &[u8]) -> Option<RedactedText> {
        self.rounds(json, |bytes| self.places_below(bytes, BracketOwner::Free))
    }

    /// A text that is no transcript without its secrets; `None` if it has none.
    pub fn text(&self, text: &str) -> Option<RedactedText> {
        // Nearly all texts are done here.
        if self.secrets.find(text).is_empty() {
            return None;
        }
        self.file(text.as_bytes())
    }

    /// The same for a file, which may hold bytes that are not UTF-8.
    pub fn file(&self, bytes: &[u8]) -> Option<RedactedText> {
        self.rounds(bytes, |bytes| self.places_of_text(bytes))
    }

    /// What stands in place of a secret.
    pub fn placeholder(&self, rule: &str, secret: &str) -> String {
        match self.key {
            Some(_) => format!("[REDACTED:{rule}:{}]", self.hash(secret)),
            None => format!("[REDACTED:{rule}]"),
        }
    }

    /// What stands in place of a secret that was found here.
    fn placeholder_at(&self, place: &RawSecret) -> String {
        match place.is_tool_name {
            true => self.tool_name_placeholder(place),
            false => self.placeholder(&place.rule, &place.secret),
        }
    }

    /// What stands in place of a secret in the name of a tool: letters, digits, `_` and `-`, and
    /// no longer than such a name may be.
    fn tool_name_placeholder(&self, place: &RawSecret) -> String {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let rule = place.rule.chars();
        let rule: String = rule.map(|c| if is_allowed(c) { c } else { '_' }).collect();
        let hash = self.hash(&place.secret);
        let rest = place.within.len.saturating_sub(place.span.len);
        let parts = |parts: &[&str]| {
            let parts = parts.iter().filter(|part| !part.is_empty());
            parts.copied().collect::<Vec<_>>().join("_")
        };
        let whole = parts(&["REDACTED", &rule, &hash]);
        match rest + whole.len() <= LONGEST_TOOL_NAME {
            true => whole,
            false => parts(&["REDACTED", &hash]),
        }
    }

    /// Six letters that are the same for the same secret; none without a key.
    pub fn hash(&self, secret: &str) -> String {
        let Some(key) = self.key else {
            return String::new();
        };
        let (first, second) = key.split_at(16);
        let half = |key: &[u8]| key.try_into().unwrap_or([0; 16]);
        let mut wide = SipHasher128::new_with_key(&half(first));
        wide.write(secret.as_bytes());
        let mut narrow = SipHasher24::new_with_key(&half(second));
        narrow.write(&wide.finish128().as_bytes());
        let bits = narrow.finish();
        let letter = |place: u32| LETTERS[(bits >> (5 * place) & 31) as usize];
        (0..6).map(|place| char::from(letter(place))).collect()
    }

    /// The secrets of a line of a transcript, to tell people of; in their text as it is if
    /// they are to be revealed.
    pub fn hits(&self, line: &[u8], reveal: bool) -> Vec<SecretSnippet> {
        self.told(line, self.places(line), reveal, |bytes| self.line(bytes))
    }

    /// The same of a text that is no transcript.
    pub fn hits_of_text(&self, bytes: &[u8], reveal: bool) -> Vec<SecretSnippet> {
        let places = self.places_of_text(bytes);
        self.told(bytes, places, reveal, |bytes| self.file(bytes))
    }

    fn told(
        &self,
        bytes: &[u8],
        places: Vec<RawSecret>,
        reveal: bool,
        redact: impl Fn(&[u8]) -> Option<RedactedText>,
    ) -> Vec<SecretSnippet> {
        if places.is_empty() {
            return Vec::new();
        }
        // All secrets are gone before anything is cut out, so that no half of one is shown.
        let masked = if reveal { None } else { redact(bytes) };
        let shown = masked.as_ref().map_or(bytes, |masked| &masked.bytes);
        let grown = |place: &RawSecret| match reveal {
            true => place.span.len,
            false => self.placeholder_at(place).len(),
        };
        let mut grown_by = 0_isize;
        let mut hits = Vec::with_capacity(places.len());
        for place in places {
            let len = grown(&place);
            let start = place.span.start.saturating_add_signed(grown_by);
            grown_by += len as isize - place.span.len as isize;
            let first = start - (place.span.start - place.within.start).min(start);
            let last = place.within.end().saturating_add_signed(grown_by);
            let from = start.saturating_sub(BEFORE).max(first);
            let end = (start + len + BEHIND).min(last.max(start + len));
            let text = shown.get(from..end.min(shown.len())).unwrap_or_default();
            hits.push(SecretSnippet {
                snippet: one_line(text),
                place,
            });
        }
        hits
    }

    fn rounds(
        &self,
        bytes: &[u8],
        places: impl Fn(&[u8]) -> Vec<RawSecret>,
    ) -> Option<RedactedText> {
        let mut redacted: Option<RedactedText> = None;
        for _ in 0..ROUNDS {
            let now = redacted.as_ref().map_or(bytes, |done| &done.bytes);
            let found = places(now);
            if found.is_empty() {
                break;
            }
            let mut edits = Vec::with_capacity(found.len());
            let mut hashes = Vec::with_capacity(found.len());
            let thinking = found.iter().filter(|place| place.thinking).count();
            for place in found {
                let new = self.placeholder_at(&place);
                edits.push((place.span, new.into_bytes()));
                hashes.push((place.rule, self.hash(&place.secret)));
            }
            let bytes = json::splice(now, &edits);
            let done = redacted.get_or_insert_default();
            done.bytes = bytes;
            done.found.extend(hashes);
            done.thinking += thinking;
        }
        redacted
    }

    /// The secrets of a line of a transcript, in order.
    pub fn places(&self, line: &[u8]) -> Vec<RawSecret> {
        self.places_below(line, BracketOwner::Top)
    }

    fn places_below(&self, line: &[u8], top: BracketOwner) -> Vec<RawSecret> {
        let mut walk = LineStringWalk {
            redactor: self,
            top,
            line,
            text: simdutf8::basic::from_utf8(line).ok(),
            frames: Vec::new(),
            places: Vec::new(),
            clean: Vec::new(),
            decoded: DECODED.take(),
            is_user: false,
            is_kept: false,
        };
        let mut at = 0;
        while at < line.len() {
            let sure = walk.places.len();
            match walk.value(at) {
                Some(end) => at = end,
                None => {
                    // Torn: there is no telling what is a string and what is not.
                    walk.places.truncate(sure);
                    let rest = self.places_of_text(&line[at..]);
                    walk.places.extend(rest.into_iter().map(|mut place| {
                        place.span.start += at;
                        place.within.start += at;
                        place
                    }));
                    break;
                }
            }
        }
        if walk.decoded.capacity() <= KEPT {
            DECODED.set(walk.decoded);
        }
        walk.places
    }

    /// The secrets of a text that is no transcript, in order.
    pub fn places_of_text(&self, bytes: &[u8]) -> Vec<RawSecret> {
        let mut places = Vec::new();
        let mut at = 0;
        for chunk in bytes.utf8_chunks() {
            let text = chunk.valid();
            for secret in self.secrets.find(text) {
                places.push(RawSecret {
                    span: Span::new(at + secret.range.start, at + secret.range.end),
                    secret: itself(text, &secret),
                    rule: secret.rule.to_owned(),
                    thinking: false,
                    within: Span::new(at, at + text.len()),
                    is_tool_name: false,
                });
            }
            at += text.len() + chunk.invalid().len();
        }
        places
    }
}

/// How much of the text around a secret is shown.
const BEFORE: usize = 60;
const BEHIND: usize = 40;

fn one_line(raw: &[u8]) -> String {
    let text = json::inner(raw);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// The secret as it would be used.
fn itself(text: &str, secret: &FoundSecret<'_>) -> String {
    match &secret.hidden {
        Some(hidden) => hidden.to_string(),
        None => text[secret.range.clone()].to_owned(),
    }
}

/// Fields whose values people see, and that no line is found by.
const SHOWN: [&str; 8] = [
    "cwd",
    "gitBranch",
    "model",
    "permissionMode",
    "slug",
    "stop_reason",
    "stop_sequence",
    "version",
];

/// Fields that say of which kind something is, or how it came about. Their values are words, and
/// the program names those that it does not know.
const KINDS: [&str; 14] = [
    "effort",
    "entrypoint",
    "level",
    "madeBy",
    "mode",
    "operation",
    "origin",
    "promptSource",
    "querySource",
    "requestedModel",
    "role",
    "sessionKind",
    "subtype",
    "type",
];

/// No token of a known form is shorter. Most kinds are, and need not be looked at.
const TOKEN: usize = 20;

/// What an open bracket belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BracketOwner {
    /// A line.
    Top,
    /// Its message.
    Message,
    /// The list of its blocks.
    Content,
    /// One of them.
    Block,
    /// What the client kept beside a result, in a line whose result is shown instead.
    Kept,
    /// The file in it.
    File,
    /// Anything else: whatever a person or a tool put there.
    Free,
}

/// An open bracket.
#[derive(Clone, Copy, Debug)]
struct OpenBracket {
    level: BracketOwner,
    is_object: bool,
    start: usize,
    /// The field whose value comes next, without quotes.
    key: Span,
    /// What its field `name` or `key` says, if it has passed.
    label: Option<Span>,
    /// A private key has begun in this list, and has not ended.
    is_key: bool,
    /// Whether its field `name` is that of a tool, once somebody asked.
    names_tool: Option<bool>,
}

/// The walk over the strings of one line.
struct LineStringWalk<'a> {
    redactor: &'a Redactor,
    /// What the outermost bracket belongs to.
    top: BracketOwner,
    line: &'a [u8],
    /// The same, if all of it is UTF-8.
    text: Option<&'a str>,
    frames: Vec<OpenBracket>,
    places: Vec<RawSecret>,
    /// Long strings of the line that hold nothing: results stand there twice.
    clean: Vec<Span>,
    /// The string that was passed last, if escapes had to be taken out of it.
    decoded: String,
    /// Whether the line is one of a user, going by what was passed of it.
    is_user: bool,
    /// Whether what was kept beside its result is not looked at.
    is_kept: bool,
}

/// A line with more open brackets than this is looked at as if it were torn.
const DEEPEST: usize = 10_000;

impl LineStringWalk<'_> {
    /// Looks at the value that begins here, and says where it ends; `None` if it is torn.
    fn value(&mut self, start: usize) -> Option<usize> {
        self.frames.clear();
        let mut at = start;
        while let Some(&byte) = self.line.get(at) {
            match byte {
                b'"' => {
                    at = self.string(at)?;
                    if self.frames.is_empty() {
                        return Some(at);
                    }
                    continue;
                }
                // Nobody nests so deep, and each bracket is remembered while it is open.
                b'{' | b'[' if self.frames.len() >= DEEPEST => return None,
                b'{' | b'[' => self.open(byte == b'{', at),
                b'}' | b']' => {
                    self.frames.pop()?;
                    if self.frames.is_empty() {
                        return Some(at + 1);
                    }
                }
                b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' | b'+' | b'-' | b'.' => {}
                b'0'..=b'9' | b'E' => {}
                // The letters of `true`, `false` and `null`; `e` of numbers is among them.
                b't' | b'r' | b'u' | b'e' | b'f' | b'a' | b'l' | b's' | b'n' => {}
                _ => return None,
            }
            at += 1;
        }
        self.frames.is_empty().then_some(at)
    }

    fn open(&mut self, is_object: bool, start: usize) {
        let level = match self.frames.last() {
            None => self.top,
            Some(above) => {
                let key = above.key.of(self.line);
                match (above.level, is_object) {
                    (BracketOwner::Top, true) if key == b"message" => BracketOwner::Message,
                    (BracketOwner::Message, false) if key == b"content" => BracketOwner::Content,
                    (BracketOwner::Content, true) => BracketOwner::Block,
                    (BracketOwner::Top, true) if key == b"toolUseResult" && self.is_kept => {
                        BracketOwner::Kept
                    }
                    (BracketOwner::Kept, true) if key == b"file" => BracketOwner::File,
                    _ => BracketOwner::Free,
                }
            }
        };
        self.is_kept |= level == BracketOwner::Message && self.is_user && !self.redactor.copies;
        self.frames.push(OpenBracket {
            level,
            is_object,
            start,
            key: Span::default(),
            label: None,
            is_key: false,
            names_tool: None,
        });
    }

    /// Takes a string, and says where it ends.
    fn string(&mut self, at: usize) -> Option<usize> {
        if let Some(frame) = self.copy() {
            frame.key = Span::default();
            let mut cursor = JsonCursor::from(self.line, at).trusting();
            return cursor.skip().ok().map(|span| span.end());
        }
        let again = self.again(at + 1);
        let inner = match again {
            Some(inner) => inner,
            None => Span::new(at + 1, self.pass(at + 1)?),
        };
        let end = inner.end() + 1;
        let mut after = JsonCursor::from(self.line, end);
        let is_key =
            self.frames.last().is_some_and(|frame| frame.is_object) && after.peek() == Some(b':');
        if is_key {
            if let Some(frame) = self.frames.last_mut() {
                frame.key = inner;
            }
            // Names of fields are short; what is not may be data.
            if inner.len > 2 * SHORTEST && again.is_none() {
                self.look(inner, None);
            }
            return Some(after.position() + 1);
        }
        if self.goes_on(inner) {
            return Some(end);
        }
        if let [top] = self.frames.as_slice()
            && top.key.of(self.line) == b"type"
        {
            self.is_user = inner.of(self.line) == b"user";
            if self.is_kept && !self.is_user {
                // It says so twice, and not the same: then all of it is looked at.
                return None;
            }
        }
        if inner.len <= LABEL
            && let Some(frame) = self.frames.last_mut()
            && frame.is_object
        {
            let key = frame.key.of(self.line);
            if key.eq_ignore_ascii_case(b"name") || key.eq_ignore_ascii_case(b"key") {
                frame.label = Some(inner);
            }
        }
        let name = if inner.len < SHORTEST {
            self.name()
        } else {
            None
        };
        if (inner.len >= SHORTEST || name.is_some() && inner.len > 2) && !self.is_mark(inner.len) {
            match (self.name(), again) {
                (None, Some(_)) => {}
                (None, None) => {
                    let found = self.look(inner, None);
                    self.remember(inner, found);
                }
                (name, again) => {
                    // It was not decoded.
                    if again.is_some() {
                        self.pass(inner.start)?;
                    }
                    self.look(inner, name);
                }
            }
        }
        Some(end)
    }

    /// Where we are, if the value that comes next is a copy of a file that is not shown.
    fn copy(&mut self) -> Option<&mut OpenBracket> {
        let frame = self.frames.last_mut().filter(|_| self.is_kept)?;
        let is_copy = match frame.level {
            BracketOwner::Kept => frame.key.of(self.line) == b"originalFile",
            BracketOwner::File => frame.key.of(self.line) == b"content",
            _ => false,
        };
        is_copy.then_some(frame)
    }

    /// The string that begins here, if it was looked at before and holds nothing.
    fn again(&self, start: usize) -> Option<Span> {
        let rest = &self.line[start..];
        let same = |one: &&Span| {
            let text = one.of(self.line);
            rest.get(text.len()) == Some(&b'"') && rest.starts_with(text)
        };
        let one = self.clean.iter().find(same)?;
        Some(Span::new(start, start + one.len))
    }

    /// Remembers a string that holds nothing, if looking at it again would take longer.
    fn remember(&mut self, inner: Span, found: bool) {
        if !found && inner.len >= LONG && self.clean.len() < REMEMBERED {
            self.clean.push(inner);
        }
    }

    /// Passes over what stands between two quotes, says where it ends, and decodes it on the
    /// way; `None` if it is torn.
    fn pass(&mut self, start: usize) -> Option<usize> {
        self.decoded.clear();
        let mut done = start;
        let mut marks = QuoteMarks::from(self.line, start);
        let mut at = marks.next(start)?;
        while self.line[at] != b'"' {
            let rest = &self.line[at..];
            // Nearly all escapes are these.
            let (character, used) = match rest.get(1)? {
                b'n' => ('\n', 2),
                b'"' => ('"', 2),
                _ => {
                    json::escape_len(rest)?;
                    json::escape(rest)
                }
            };
            if let Some(text) = self.text {
                self.decoded.push_str(&text[done..at]);
                self.decoded.push(character);
            }
            done = at + used;
            at = marks.next(done)?;
        }
        if done > start
            && let Some(text) = self.text
        {
            self.decoded.push_str(&text[done..at]);
        }
        Some(at)
    }

    /// Patches are lists of lines: a private key that begins in one goes on in the next.
    /// Whether this is such a line; then all of it but the sign of the patch is secret.
    fn goes_on(&mut self, inner: Span) -> bool {
        let raw = inner.of(self.line);
        let Some(frame) = self.frames.last_mut().filter(|frame| !frame.is_object) else {
            return false;
        };
        if !frame.is_key {
            let begins = raw.len() < 100
                && raw.windows(11).any(|part| part == b"-----BEGIN ")
                && raw.windows(11).any(|part| part == b"PRIVATE KEY");
            frame.is_key = begins && !raw.windows(9).any(|part| part == b"-----END ");
            return false;
        }
        let sign = usize::from(matches!(raw.first(), Some(b'+' | b'-' | b' ')));
        let body = &raw[sign..];
        let is_body = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=:,- ".contains(byte);
        let ends = body.starts_with(b"-----END ");
        frame.is_key = !ends && body.iter().all(is_body);
        if (!frame.is_key && !ends) || body.is_empty() {
            return false;
        }
        self.places.push(RawSecret {
            span: Span::new(inner.start + sign, inner.end()),
            secret: String::from_utf8_lossy(body).into_owned(),
            rule: PRIVATE_KEY.to_owned(),
            thinking: false,
            within: inner,
            is_tool_name: false,
        });
        true
    }

    /// Whether the value that comes next, of this length, is something a client finds its way by.
    fn is_mark(&self, len: usize) -> bool {
        let Some(frame) = self.frames.last().filter(|frame| frame.is_object) else {
            return false;
        };
        let key = match self.text {
            Some(text) => text.get(frame.key.start..frame.key.end()),
            None => std::str::from_utf8(frame.key.of(self.line)).ok(),
        };
        let Some(key) = key else {
            return false;
        };
        if len >= TOKEN && KINDS.contains(&key) {
            return false;
        }
        match frame.level {
            BracketOwner::Top => known_names::is_mark(key) && !SHOWN.contains(&key),
            BracketOwner::Message => {
                let is_field = key != "content" && known_names::is_message_field(key);
                is_field && !SHOWN.contains(&key)
            }
            BracketOwner::Block => match key {
                "id" | "tool_use_id" | "signature" | "type" => true,
                "data" => {
                    let block = &self.line[frame.start..];
                    json::find(block, &["type"])
                        .is_some_and(|kind| kind.of(block) == b"\"redacted_thinking\"")
                }
                _ => false,
            },
            BracketOwner::Content
            | BracketOwner::Kept
            | BracketOwner::File
            | BracketOwner::Free => false,
        }
    }

    /// Whether the value that comes next is the name of a tool: of one that is called, at any
    /// depth, or of one that another block refers to.
    fn is_tool_name(&mut self) -> bool {
        let Some(frame) = self.frames.last_mut().filter(|frame| frame.is_object) else {
            return false;
        };
        match frame.key.of(self.line) {
            b"tool_name" | b"toolName" => true,
            b"name" => *frame.names_tool.get_or_insert_with(|| {
                let object = &self.line[frame.start..];
                let kind = json::find(object, &["type"]).map(|kind| kind.of(object));
                kind.is_some_and(|kind| {
                    kind.ends_with(b"tool_use\"") || kind == b"\"tool_reference\""
                })
            }),
            _ => false,
        }
    }

    /// The field that the next value stands in, if its name makes a secret of it.
    fn name(&self) -> Option<Span> {
        let frame = self.frames.iter().rev().find(|frame| frame.is_object)?;
        let mut name = frame.key.of(self.line).windows(3);
        // The beginnings of key, token, secret, password, auth, credential, cookie and the like.
        let is_secretive = name.any(|three| {
            let three = [three[0] | 32, three[1] | 32, three[2] | 32];
            matches!(
                &three,
                b"key" | b"tok" | b"sec" | b"pas" | b"aut" | b"cre" | b"coo" | b"pwd" | b"psk"
            )
        });
        // `"name": "DB_PASSWORD", "value": "…"`: the name is a value itself.
        let is_value = || frame.key.of(self.line).eq_ignore_ascii_case(b"value");
        match frame.label {
            Some(label) if is_value() => Some(label),
            _ => is_secretive.then_some(frame.key),
        }
    }

    /// Finds the secrets between two quotes; whether there are any.
    fn look(&mut self, inner: Span, name: Option<Span>) -> bool {
        let Some(text) = self.text else {
            let (mut at, mut found) = (inner.start, false);
            for chunk in inner.of(self.line).utf8_chunks() {
                let text = json::inner(chunk.valid().as_bytes());
                found |= self.chunk(at, chunk.valid(), &text, name);
                at += chunk.valid().len() + chunk.invalid().len();
            }
            return found;
        };
        let raw = text.get(inner.start..inner.end()).unwrap_or_default();
        if self.decoded.is_empty() {
            return self.chunk(inner.start, raw, raw, name);
        }
        let text = std::mem::take(&mut self.decoded);
        let found = self.chunk(inner.start, raw, &text, name);
        self.decoded = text;
        found
    }

    /// Finds the secrets of a text, which is written like this; whether there are any.
    fn chunk(&mut self, start: usize, raw: &str, text: &str, name: Option<Span>) -> bool {
        let secrets = &self.redactor.secrets;
        let name = name.filter(|_| raw.len() <= NAMED).map(|name| {
            let name = json::inner(name.of(self.line));
            format!("\"{name}\": \"")
        });
        let found = find(secrets, text, name.as_deref());
        if found.is_empty() {
            return false;
        }
        let view = UnwrappedText::unescaped(raw);
        self.add(start, text, found, |range| view.source(range));
        true
    }

    fn add(
        &mut self,
        start: usize,
        text: &str,
        found: Vec<FoundSecret<'_>>,
        source: impl Fn(std::ops::Range<usize>) -> std::ops::Range<usize>,
    ) {
        if found.is_empty() {
            return;
        }
        let thinking = self.frames.last().is_some_and(|frame| {
            frame.level == BracketOwner::Block && frame.key.of(self.line) == b"thinking"
        });
        let is_tool_name = self.is_tool_name();
        for secret in found {
            let raw = source(secret.range.clone());
            let within = Span::new(start, start + source(0..text.len()).end);
            if self.is_link(text, &secret) {
                continue;
            }
            self.places.push(RawSecret {
                span: Span::new(start + raw.start, start + raw.end),
                secret: itself(text, &secret),
                rule: secret.rule.to_owned(),
                thinking,
                within,
                is_tool_name,
            });
        }
    }

    /// Whether a value is nothing but the id of a line, a message or a call, in a field for
    /// ids outside of what a tool was given or said: a known value may happen to be one.
    fn is_link(&self, text: &str, secret: &FoundSecret<'_>) -> bool {
        let [top, ..] = self.frames.as_slice() else {
            return false;
        };
        let Some(frame) = self.frames.last().filter(|frame| frame.is_object) else {
            return false;
        };
        if secret.range != (0..text.len()) || top.key.of(self.line) == b"toolUseResult" {
            return false;
        }
        let is_given = self
            .frames
            .iter()
            .any(|frame| frame.level == BracketOwner::Block);
        let key = frame.key.of(self.line);
        let is_id = [b"Id".as_slice(), b"ID", b"_id", b"uuid", b"Uuid", b"UUID"]
            .iter()
            .any(|end| key.ends_with(end));
        !is_given && is_id && is_reference(text)
    }
}

/// What a text holds, given what stands in front of it.
fn find<'s>(secrets: &'s SecretFinder, text: &str, before: Option<&str>) -> Vec<FoundSecret<'s>> {
    let Some(before) = before else {
        return secrets.find(text);
    };
    let named = format!("{before}{text}\"");
    let mut found = secrets.find(&named);
    found.retain_mut(|secret| {
        let start = secret.range.start.max(before.len());
        let end = secret.range.end.min(named.len() - 1);
        secret.range = start.saturating_sub(before.len())..end.saturating_sub(before.len());
        start < end
    });
    found
}

/// Whether a text is a UUID, or an id as the API gives them.
fn is_reference(text: &str) -> bool {
    let is_uuid = text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    let starts = ["msg_", "toolu_", "srvtoolu_", "req_"];
    is_uuid || starts.iter().any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests;
