//! Whether a value that is called a secret is one, and not a variable, a type, a call, a word
//! on a form or a place where a secret should go.

mod words;

use super::super::false_positives::{entropy, is_identifier, is_known_id, is_number};
use super::secret_names::NameClass;
use words::{ABOUT, PLACEHOLDERS, SENTENCE, WORDS};

/// A value, and what is known of the place it stands in.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueEvidence<'a> {
    pub(super) name: &'a str,
    pub(super) class: NameClass,
    pub(super) value: &'a str,
    /// Between quotes or tags.
    pub(super) is_quoted: bool,
    /// Written as shells, `.env` files and flags do, where a bare word is a text.
    pub(super) is_literal: bool,
    /// The only thing behind its name on a line of its own, as in YAML.
    pub(super) is_setting: bool,
    /// The place leaves no doubt that a key stands there: a header, a flag, a query.
    pub(super) is_outright: bool,
}

impl ValueEvidence<'_> {
    /// Whether it is a secret.
    pub(super) fn is_secret(&self) -> bool {
        if self.value.is_empty() {
            return false;
        }
        // What ends a piece of a program is no part of the value.
        if !self.is_quoted && !self.is_literal && !self.is_setting {
            let marks = [',', ';', ')', ':', '}', ']', '.'];
            let core = ValueEvidence {
                value: self.value.trim_end_matches(marks),
                ..*self
            };
            return core.is_secret_itself();
        }
        self.is_secret_itself()
    }

    fn is_secret_itself(&self) -> bool {
        let value = self.value;
        // `(FW=2, PW=2).`: what ends a sentence does not make a value longer.
        let core = match self.is_quoted {
            true => value,
            false => value.trim_end_matches([',', ';', ')', '.']),
        };
        if value.len() < 3
            || core.chars().nth(1).is_none()
            || self.is_reference()
            || is_placeholder(value)
        {
            return false;
        }
        if !self.is_quoted {
            let core = value.trim_end_matches([',', ';', ')', ':', '}', ']']);
            if WORDS.contains(&&*core.to_ascii_lowercase()) || self.is_code() {
                return false;
            }
        }
        match self.class {
            NameClass::Password | NameClass::Phrase => self.is_password(),
            NameClass::Pass => {
                let is_word = !has_evidence(value) || is_digits(value);
                self.is_password() && !is_word && !value.contains(' ')
            }
            NameClass::Secret => self.is_secret_value(),
            NameClass::Key => self.is_key(8, 2.5),
            NameClass::Weak => self.is_key(12, 3.0) && (self.is_outright || !is_number(value)),
        }
    }

    /// Whether it stands for a value that is elsewhere: `$NAME`, `%s`, `{{ x }}`, `<name>`.
    fn is_reference(&self) -> bool {
        let value = self.value;
        let bytes = value.as_bytes();
        let is_name = |text: &str| {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-[]'\"".contains(&byte);
            !text.is_empty() && text.bytes().all(is_name)
        };
        let ends = |start: char, end: char| value.starts_with(start) && value.ends_with(end);
        let holds = [
            "${",
            "#{",
            "{{",
            "$(",
            "%{",
            "<%",
            "{%",
            "%(",
            "\\(",
            "$[",
            "[REDACTED",
        ];
        let dollar = value.strip_prefix('$').is_some_and(|name| {
            let first = name.bytes().next();
            is_name(name) && first.is_some_and(|byte| !byte.is_ascii_digit())
        });
        let formats = ["%s", "%d", "%v", "{}", "%q", "%r"];
        // A bare `$name` is one, whatever follows it.
        let variable = !self.is_quoted && bytes[0] == b'$' && {
            let next = bytes
                .get(1)
                .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
            next && !(self.is_literal && symbols(value) > 1 && digits(value) > 0)
        };
        dollar
            || variable
            || digits(value) == 0 && formats.iter().any(|format| value.contains(format))
            || ends('<', '>')
            || ends('{', '}')
            || ends('[', ']')
            || ends('(', ')')
            || ends('%', '%')
            || ends('@', '@')
            || ends('_', '_')
            || bytes[0] == b'%' && bytes.len() <= 3
            || value.starts_with("!") && self.is_setting && is_name(&value[1..])
            || holds.iter().any(|mark| value.contains(mark))
            || value.contains("://")
            || value.starts_with("data:")
            // Where it is: `--secret id=npm,src=.npmrc`.
            || value.starts_with("id=")
            || value.starts_with("!!") && value[2..].bytes().all(|byte| byte.is_ascii_lowercase())
            || [
                "env.", "env:", "env/", "vault:", "secret/", "secrets/", "op://", "ref+", "ENC[",
            ]
            .iter()
            .any(|start| value.starts_with(start))
            || self.is_path()
    }

    fn is_path(&self) -> bool {
        let value = self.value;
        let starts = ["/", "./", "../", "~/", "~\\", "C:\\"];
        let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/._- \\~:@{}*".contains(&byte);
        starts.iter().any(|start| value.starts_with(start))
            && value.bytes().all(is_path)
            && (value.len() < 30 || is_identifier(value))
    }

    /// Whether a bare value is a piece of a program: a call, a field, a type.
    fn is_code(&self) -> bool {
        let value = self.value.trim_end_matches([',', ';', ')', '{', '}']);
        if value.len() < 3 {
            return true;
        }
        let starts = [
            "process.",
            "os.",
            "self.",
            "this.",
            "config.",
            "args.",
            "secrets.",
            "settings.",
            "request.",
            "req.",
            "new",
            "System.",
            "getenv",
            "ENV",
            "&",
            "*",
            "function",
            "lambda",
            "async",
            "await",
            "[",
            "{",
            "(",
            "=",
            "-",
            "\"",
            "'",
            "`",
            "/*",
            "//",
            "<",
            "|",
            "?",
            ".",
            ",",
            ":",
            ";",
            "!",
        ];
        let bytes = value.as_bytes();
        let name = bytes
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"_.:$?!&*>-".contains(byte))
            .count();
        let is_call = name > 0
            && matches!(bytes.get(name), Some(b'(' | b'[' | b'<' | b'{'))
            && (!self.is_literal
                || value.ends_with([')', ']', '>', '}'])
                || self.value.contains("()"));
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_field = |mark: &str| {
            let mut parts = value.split(mark);
            let is_part = |part: &str| {
                let first = part.bytes().next();
                first.is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
                    && part.bytes().all(is_word)
                    && digits(part) <= 2
            };
            value.contains(mark) && parts.all(is_part)
        };
        !self.is_literal && starts.iter().any(|start| value.starts_with(start))
            || is_call
            || is_field(".") && !self.is_literal
            || is_field("::")
            || is_field("->")
            || value.contains("=>")
    }

    fn is_password(&self) -> bool {
        let value = self.value.trim();
        if value.contains(' ') {
            return (self.is_quoted || self.is_setting)
                && is_phrase(value, self.class, self.is_quoted);
        }
        if is_digits(value) {
            let least = if self.is_quoted || self.is_literal {
                4
            } else {
                6
            };
            let is_given = self.is_quoted || self.is_literal || self.is_setting;
            return is_given && value.len() >= least;
        }
        if has_evidence(value) {
            return self.is_told_apart();
        }
        if is_joined_phrase(value) {
            return true;
        }
        // Letters alone, perhaps with marks between words: a word.
        let is_given = self.is_quoted || self.is_literal || self.is_setting && !self.is_cased();
        is_given && value.len() >= 4 && !self.is_capitalised() && self.is_unusual()
    }

    /// Digits and marks alone do not make a secret: names in code have them.
    fn is_told_apart(&self) -> bool {
        let value = self.value.trim_end_matches([',', ';']);
        let lower = value.to_ascii_lowercase();
        // `required|min:8` says what a password must be.
        let first = lower.split(['|', ':', ',']).next().unwrap_or_default();
        if WORDS.contains(&first) || is_known_id(value) {
            return false;
        }
        let symbols = symbols(value);
        if self.is_quoted || self.is_literal || symbols > 0 && !self.is_code() {
            // `password1` is a password, `user_password_1` a name.
            let is_about = ABOUT.iter().any(|about| lower.contains(about));
            return !(is_about && symbols == 0 && value.contains(['_', '-', '.', '/']));
        }
        // A bare name with a digit, on a line of its own or in a sentence.
        let is_about = ABOUT.iter().any(|about| lower.contains(about));
        !is_about && value.len() >= 6
    }

    /// `Passwort`, `Contraseña`: a word on a form.
    fn is_capitalised(&self) -> bool {
        let mut bytes = self.value.bytes();
        let first = bytes.next().is_some_and(|byte| byte.is_ascii_uppercase());
        !self.value.is_ascii() || first && bytes.all(|byte| !byte.is_ascii_uppercase())
    }

    /// `newValue`, `NewType`: a name in code.
    fn is_cased(&self) -> bool {
        self.value.bytes().any(|byte| byte.is_ascii_uppercase())
    }

    /// A word that is neither a type, nor a state, nor about passwords.
    fn is_unusual(&self) -> bool {
        let value = self.value.trim_end_matches([',', ';', '.', ':', ')']);
        let lower = value.to_ascii_lowercase();
        let mut parts = lower.split(['_', '-', '.', '/', '|', '[', ']', '<', '>']);
        let name = self.name.to_ascii_lowercase();
        let is_word = |word: &str| word.is_empty() || WORDS.contains(&word);
        !parts.all(is_word)
            && !ABOUT.iter().any(|about| lower.contains(about))
            && !name.contains(&*lower)
            && !value.contains(['|', '<', '[', '/', '.'])
            // CONSTANTS and names of files.
            && (self.is_literal || !value.contains('_'))
    }

    fn is_secret_value(&self) -> bool {
        let value = self.value;
        if value.contains(' ') {
            let words = value.split_whitespace().count();
            return self.is_quoted && words >= 4 && is_phrase(value, self.class, true);
        }
        if is_known_id(value) {
            return false;
        }
        if is_digits(value) {
            return self.is_quoted && value.len() >= 6;
        }
        if is_joined_phrase(value) || self.is_simple(6) {
            return true;
        }
        let is_given = self.is_quoted || self.is_literal || self.is_setting;
        let random = is_random(value) && (is_given || value.len() >= 8);
        let lower = value.to_ascii_lowercase();
        let is_about = ABOUT.iter().any(|about| lower.contains(about));
        let is_marked = symbols(value) > 0 && value.len() >= 6 && !is_listlike(value);
        (random || (is_marked && !is_about)) && value.len() >= 5 && !WORDS.contains(&&*lower)
            || is_long_word(value)
    }

    /// Letters and digits that somebody chose, in quotes or in a shell: `winter2024`.
    fn is_simple(&self, least: usize) -> bool {
        let value = self.value;
        let lower = value.to_ascii_lowercase();
        (self.is_quoted || self.is_literal)
            && value.len() >= least
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && digits(value) > 0
            && digits(value) < value.len()
            && !WORDS.contains(&&*lower)
            && !ABOUT.iter().any(|about| lower.contains(about))
            && !is_number(value)
    }

    /// Marks and digits as in a password that was to be a good one: `Tr0ub4dor&3`.
    fn is_strong(&self) -> bool {
        let value = self.value;
        let marks = value
            .bytes()
            .filter(|byte| b"!@#$%^&*~?+".contains(byte))
            .count();
        let is_mixed = marks >= 2 || value.bytes().any(|byte| byte.is_ascii_uppercase());
        (self.is_quoted || self.is_literal)
            && value.len() >= 8
            && marks > 0
            && is_mixed
            && digits(value) > 0
            && value.bytes().any(|byte| byte.is_ascii_alphabetic())
            && !value.contains(['/', ' ', '(', '{', '[', '<', '=', '"', '\'', ',', ';', '\\'])
    }

    /// Letters and digits that are neither words, nor an id, nor a version.
    fn is_chosen(&self) -> bool {
        let value = self.value.trim_end_matches([',', ';', ')']);
        let lower = value.to_ascii_lowercase();
        let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
        value.len() >= 7
            && digits(value) > 0
            && letters > 0
            && value.bytes().all(|byte| byte.is_ascii_graphic())
            && !value.contains(['/', '(', '{', '[', '<', '"', '\\'])
            && !(is_number(value) && value.contains('-'))
            && !is_known_id(value)
            && !is_date_or_version(value)
            && !WORDS.contains(&&*lower)
            && (is_random(value) || !ABOUT.iter().any(|about| lower.contains(about)))
    }

    fn is_key(&self, least: usize, bits: f64) -> bool {
        if self.is_outright && self.is_chosen() {
            return true;
        }
        if self.class == NameClass::Key && (self.is_quoted || self.is_setting) && self.is_chosen() {
            let has = |is: fn(&u8) -> bool| self.value.bytes().any(|byte| is(&byte));
            let is_mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
            let is_plain = self.value.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if is_plain && !is_number(self.value) || is_mixed || symbols(self.value) > 0 {
                return true;
            }
        }
        let is_constant = !self.name.bytes().any(|byte| byte.is_ascii_lowercase());
        if self.is_strong() || self.class == NameClass::Key && is_constant && self.is_simple(6) {
            return true;
        }
        let value = self.value.trim_end_matches([',', ';', '.', ')', ']', '}']);
        let is_given = self.is_quoted || self.is_literal || self.is_setting;
        let is_part =
            |byte: u8| byte.is_ascii_alphanumeric() || b"_-./+=~:$!@#%^&*".contains(&byte);
        let is_long = value.len() >= 24 && self.class > NameClass::Weak;
        (is_given || is_long)
            && value.len() >= least
            && value.bytes().all(is_part)
            && !is_known_id(value)
            && !is_digits(value)
            && (is_random(value) || is_long_word(value))
            && entropy(value) >= bits
            && !is_date_or_version(value)
    }
}

/// Whether a value says that a secret should go there.
fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let bytes = lower.as_bytes();
    let same = bytes.iter().all(|byte| *byte == bytes[0]);
    let is_mark = |byte: &u8| b"*.x-_?#0".contains(byte);
    let words = lower.split(|c: char| !c.is_ascii_alphabetic());
    let mut words = words.filter(|word| !word.is_empty());
    same || bytes.iter().all(is_mark)
        || [
            "...",
            "…",
            "****",
            "xxxx",
            "••",
            "changeme",
            "1234567890abcdef",
            "abcdefgh",
        ]
        .iter()
        .any(|part| lower.contains(part))
        || words.any(|word| PLACEHOLDERS.contains(&word))
        || lower.starts_with("my")
            && ABOUT.iter().any(|about| lower[2..].contains(about))
            && symbols(value) == 0
        || lower.starts_with("test")
        || lower.starts_with("your")
}

/// Whether several words are a phrase that somebody chose, and not a sentence.
fn is_phrase(value: &str, class: NameClass, is_quoted: bool) -> bool {
    let lower = value.to_ascii_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let is_sentence = words.iter().any(|word| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        SENTENCE.contains(&word) || words.len() < 4 && WORDS.contains(&word)
    });
    let is_about = ABOUT.iter().any(|about| lower.contains(about)) && digits(value) == 0;
    let has_marks = digits(value) > 0 || symbols(value) > 1;
    let is_code =
        value.contains(['(', '{', '<', '=', '`', '"']) && symbols(value) < 4 && digits(value) == 0;
    let enough = match class {
        NameClass::Phrase => words.len() >= 2,
        _ => words.len() >= 3 || has_marks,
    };
    let is_program =
        !is_quoted && value.contains(['(', ')', '{', '[', '<', '=', '*', '"', '\'', '`']);
    !is_about
        && !is_code
        && !is_program
        && value.len() >= 8
        && words.len() <= 24
        && (enough && !is_sentence
            || class == NameClass::Phrase && words.len() >= 4 && !is_sentence
            || symbols(value) >= 2 && digits(value) >= 1 && words.len() <= 3)
}

/// Whether a value is several words with a mark between them: `copper-falcon-walnut`.
pub(super) fn is_joined_phrase(value: &str) -> bool {
    let value = value.trim_end_matches([',', '.', ';']);
    let words: Vec<&str> = value.split(['-', '.', '_']).collect();
    let is_word = |word: &&str| {
        let is_letters = word.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_plain =
            SENTENCE.contains(word) || WORDS.contains(word) || PLACEHOLDERS.contains(word);
        word.len() >= 3
            && is_letters
            && !is_plain
            && !ABOUT.iter().any(|about| word.contains(about))
    };
    words.len() >= 4 && value.contains('-') && words.iter().all(is_word)
}

/// Whether letters of one kind are not all there is.
fn has_evidence(value: &str) -> bool {
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    digits(value) > 0 && letters > 0 || symbols(value) > 0 || is_mixed(value)
}

/// Letters of both cases in no order that a name in code would have.
fn is_mixed(value: &str) -> bool {
    value.len() >= 8
        && !is_identifier(value)
        && value.bytes().any(|b| b.is_ascii_lowercase())
        && value.bytes().any(|b| b.is_ascii_uppercase())
}

fn digits(value: &str) -> usize {
    value.bytes().filter(u8::is_ascii_digit).count()
}

fn is_digits(value: &str) -> bool {
    value
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b".,_:-+/ ".contains(&byte))
}

/// Marks that names and words have none of.
fn symbols(value: &str) -> usize {
    let is_mark = |byte: &u8| byte.is_ascii_punctuation() && !b"_-.,;:/'".contains(byte);
    value.bytes().filter(is_mark).count()
}

fn is_listlike(value: &str) -> bool {
    value.contains(['|', '<', '>', '{', '(', '[', '"']) && digits(value) == 0
}

/// Whether letters and digits are mixed as chance does it, not as `config-v2` is.
fn is_random(value: &str) -> bool {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 1,
        b'a'..=b'z' => 2,
        b'A'..=b'Z' => 3,
        _ => 4,
    };
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    let count = digits(value);
    let changes = value.as_bytes().windows(2);
    let changes = changes
        .filter(|pair| kind(pair[0]) != kind(pair[1]) && kind(pair[0]) != 4 && kind(pair[1]) != 4);
    let changes = changes.count();
    let is_hex = is_number(value) && value.len() >= 16;
    let has_upper = value.bytes().any(|byte| byte.is_ascii_uppercase());
    let has_lower = value.bytes().any(|byte| byte.is_ascii_lowercase());
    let is_alphanumeric = value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_long = value.len() >= 24 && is_alphanumeric && has_upper && has_lower;
    is_long && count > 0
        || letters > 0 && count > 0 && (changes >= 3 || count >= 3) && !is_identifier(value)
        || is_hex && letters > 0
        || letters > 0
            && symbols(value) >= 2
            && value.len() >= 8
            && !value.contains(['(', '<', '{', '"'])
}

/// Letters without digits that are too long and too mixed to be words.
fn is_long_word(value: &str) -> bool {
    value.len() >= 20
        && is_mixed(value)
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte))
}

fn is_date_or_version(value: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || b".-:TZ+v".contains(&byte);
    value.bytes().all(is_part)
}
