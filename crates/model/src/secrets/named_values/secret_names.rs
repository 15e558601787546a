//! What a name says about its value: that it is a password, a secret, a key, or nothing.

use super::joins::{NameJoiner, blanks};

/// How much a name says. More is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NameClass {
    /// `key`, `token`, `auth`: mostly no secret, so the value must look random.
    Weak,
    /// `api_key`, `DEPLOY_TOKEN`: a secret if the value is not plain words.
    Key,
    /// `pass`: a password, or the opposite of a failure.
    Pass,
    /// `client_secret`, `SECRET_KEY`: a secret unless it is the name of one.
    Secret,
    /// `password`, `DB_PASS`: whatever is said there.
    Password,
    /// `passphrase`, `mnemonic`: several words.
    Phrase,
}

/// The literals that every name with a meaning holds one of, in lower case.
pub(in crate::secrets) const ANCHORS: &[&str] = &[
    "pass",
    "pwd",
    "pswd",
    "_pw",
    "pw:",
    "pw=",
    "psk",
    "secret",
    "token",
    "key",
    "credential",
    "creds",
    "_auth",
    "masterauth",
    "auth=",
    "mnemonic",
    "kennwort",
    "contrase",
    "senha",
    "wachtwoord",
    "cookie",
    "authorization",
    "bearer",
    "mot de passe",
    "contraseña",
    "hasło",
    "heslo:",
    "lösenord",
    "şifre",
    "salasana",
    "jelszó",
    "mật khẩu",
    "пароль",
    "Пароль",
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "비밀번호",
    "암호",
];

/// Whether an anchor is a word for passwords that no name in a program has.
pub(super) fn is_foreign(anchor: &[u8]) -> bool {
    // Nearly all that are met are names of programs, and told by their first letter.
    match anchor[0] | 32 {
        b'm' | b'c' | b'h' | b'l' | b'j' => {
            !anchor.is_ascii() || anchor.contains(&b' ') || anchor.ends_with(b":")
        }
        b's' => anchor.len() == b"salasana".len(),
        first => !first.is_ascii(),
    }
}

/// What joins such a word to its value where there is no sign.
pub(super) fn foreign_is(bytes: &[u8], at: usize) -> Option<(NameJoiner, usize)> {
    let from = blanks(bytes, at);
    let rest = &bytes[from..];
    let words = ["是", "为", "は", "это", "—"];
    let word = words
        .into_iter()
        .find(|word| rest.starts_with(word.as_bytes()))?;
    Some((NameJoiner::Is, blanks(bytes, from + word.len())))
}

/// Words that may follow the noun without changing what it is.
const TAILS: &[&str] = &[
    "again",
    "b64",
    "backup",
    "base",
    "base64",
    "confirm",
    "confirmation",
    "current",
    "default",
    "dev",
    "env",
    "hex",
    "live",
    "local",
    "new",
    "old",
    "plain",
    "plaintext",
    "primary",
    "prod",
    "production",
    "raw",
    "ro",
    "rw",
    "secondary",
    "staging",
    "str",
    "string",
    "temp",
    "text",
    "tmp",
    "value",
];

/// A name that begins so is of an action or of a question.
const ACTIONS: &[&str] = &[
    "allow",
    "ask",
    "bad",
    "can",
    "change",
    "check",
    "clear",
    "compare",
    "create",
    "delete",
    "disable",
    "enable",
    "error",
    "find",
    "forgot",
    "forgotten",
    "generate",
    "get",
    "has",
    "hash",
    "hashed",
    "hide",
    "incorrect",
    "invalid",
    "is",
    "label",
    "max",
    "min",
    "missing",
    "need",
    "needs",
    "no",
    "num",
    "parse",
    "prompt",
    "read",
    "remember",
    "require",
    "required",
    "requires",
    "reset",
    "save",
    "send",
    "should",
    "show",
    "toggle",
    "unknown",
    "update",
    "use",
    "validate",
    "verify",
    "with",
    "without",
    "wrong",
];

/// Keys that open nothing.
const PLAIN_KEYS: &[&str] = &[
    "arrow",
    "attr",
    "bucket",
    "cache",
    "candidate",
    "class",
    "column",
    "composite",
    "config",
    "context",
    "css",
    "data",
    "dedupe",
    "dict",
    "dictionary",
    "entry",
    "error",
    "event",
    "extra",
    "feature",
    "field",
    "file",
    "first",
    "flag",
    "foreign",
    "group",
    "hash",
    "header",
    "hot",
    "i18n",
    "idempotency",
    "idx",
    "image",
    "index",
    "item",
    "job",
    "join",
    "json",
    "keyboard",
    "known",
    "label",
    "last",
    "locale",
    "lookup",
    "map",
    "menu",
    "message",
    "meta",
    "metadata",
    "name",
    "natural",
    "nav",
    "next",
    "node",
    "object",
    "option",
    "order",
    "param",
    "parent",
    "partition",
    "path",
    "prefix",
    "press",
    "prev",
    "primary",
    "prop",
    "property",
    "pub",
    "public",
    "query",
    "record",
    "registry",
    "result",
    "route",
    "routing",
    "row",
    "schema",
    "sequence",
    "settings",
    "shortcut",
    "site",
    "sort",
    "state",
    "style",
    "tab",
    "tag",
    "term",
    "theme",
    "topic",
    "translation",
    "type",
    "unique",
    "url",
    "widget",
    "x",
    "y",
];

/// Keys that open something.
const SECRET_KEYS: &[&str] = &[
    "access",
    "account",
    "admin",
    "aes",
    "api",
    "app",
    "application",
    "auth",
    "bot",
    "cipher",
    "client",
    "consumer",
    "credential",
    "crypt",
    "crypto",
    "decryption",
    "deploy",
    "device",
    "enc",
    "encrypt",
    "encryption",
    "hmac",
    "integration",
    "jwe",
    "jwk",
    "jwt",
    "licence",
    "license",
    "master",
    "mcp",
    "preshared",
    "priv",
    "private",
    "root",
    "server",
    "service",
    "session",
    "shared",
    "sign",
    "signature",
    "signing",
    "ssh",
    "ssl",
    "storage",
    "stream",
    "subscription",
    "tls",
    "webhook",
    "write",
];

/// Tokens that open nothing: places in a list, pieces of a text, counts.
const PLAIN_TOKENS: &[&str] = &[
    "bos",
    "cancel",
    "cancellation",
    "continuation",
    "csrf",
    "current",
    "cursor",
    "delimiter",
    "end",
    "eof",
    "eos",
    "first",
    "ident",
    "identifier",
    "input",
    "keyword",
    "last",
    "lex",
    "literal",
    "mask",
    "next",
    "number",
    "operator",
    "output",
    "pad",
    "page",
    "pagination",
    "peek",
    "per",
    "prev",
    "previous",
    "prompt",
    "punct",
    "reserved",
    "resume",
    "separator",
    "special",
    "start",
    "stop",
    "string",
    "sync",
    "syntax",
    "total",
    "unk",
    "unknown",
    "whitespace",
    "xsrf",
    "public",
];

/// What a word may end with when it is written without a mark between the words.
const JOINED: &[(&str, NameClass)] = &[
    ("password", NameClass::Password),
    ("passwd", NameClass::Password),
    ("passwrd", NameClass::Password),
    ("passphrase", NameClass::Phrase),
    ("passcode", NameClass::Password),
    ("passwort", NameClass::Password),
    ("kennwort", NameClass::Password),
    ("wachtwoord", NameClass::Password),
    ("senha", NameClass::Password),
    ("contrasena", NameClass::Password),
    ("pswd", NameClass::Password),
    ("pwd", NameClass::Password),
    ("psk", NameClass::Password),
    ("mnemonic", NameClass::Phrase),
    ("secretkey", NameClass::Secret),
    ("privatekey", NameClass::Key),
    ("accesskey", NameClass::Key),
    ("masterkey", NameClass::Key),
    ("signingkey", NameClass::Key),
    ("encryptionkey", NameClass::Key),
    ("licensekey", NameClass::Key),
    ("accountkey", NameClass::Key),
    ("apikey", NameClass::Key),
    ("authkey", NameClass::Key),
    ("authtoken", NameClass::Key),
    ("accesstoken", NameClass::Key),
    ("refreshtoken", NameClass::Key),
    ("apitoken", NameClass::Key),
    ("bottoken", NameClass::Key),
    ("sessiontoken", NameClass::Key),
    ("secret", NameClass::Secret),
    ("credential", NameClass::Key),
    ("credentials", NameClass::Key),
    ("creds", NameClass::Key),
    ("masterauth", NameClass::Password),
    ("passord", NameClass::Password),
    ("authorization", NameClass::Key),
    ("bearer", NameClass::Key),
];

/// What may stand before `pass` in one word.
const OF_PASS: &[&str] = &[
    "account",
    "admin",
    "api",
    "app",
    "auth",
    "basic",
    "become",
    "bind",
    "client",
    "db",
    "deststore",
    "elastic",
    "es",
    "ftp",
    "http",
    "imap",
    "kafka",
    "key",
    "keystore",
    "ldap",
    "login",
    "mail",
    "master",
    "mongo",
    "my",
    "mysql",
    "pg",
    "pop",
    "proxy",
    "rabbit",
    "rabbitmq",
    "redis",
    "require",
    "root",
    "server",
    "smtp",
    "sql",
    "srcstore",
    "store",
    "sudo",
    "trust",
    "truststore",
    "user",
    "vpn",
    "web",
    "wifi",
];

/// Words before `pass` that make it a pass over something.
const PASSES: &[&str] = &[
    "all",
    "analysis",
    "at",
    "by",
    "codegen",
    "compiler",
    "did",
    "first",
    "function",
    "ir",
    "last",
    "lint",
    "llvm",
    "loop",
    "module",
    "must",
    "n",
    "next",
    "one",
    "opt",
    "optimization",
    "optimizer",
    "per",
    "prev",
    "render",
    "second",
    "shader",
    "should",
    "single",
    "test",
    "tests",
    "this",
    "to",
    "transform",
    "two",
    "will",
    "band",
    "low",
    "high",
    "multi",
    "ask",
];

/// What a name says; `None` for the names of everything else.
pub(super) fn class_of(name: &str) -> Option<NameClass> {
    let words = NameWords::new(name);
    let mut list = [""; MOST];
    for (at, word) in list.iter_mut().enumerate().take(words.count) {
        *word = words.get(at);
    }
    let mut words = &list[..words.count];
    while let [before @ .., last] = words {
        let is_tail = TAILS.contains(last) || last.bytes().all(|byte| byte.is_ascii_digit());
        if !is_tail || before.is_empty() {
            break;
        }
        words = before;
    }
    let (last, before) = words.split_last()?;
    if before.first().is_some_and(|first| ACTIONS.contains(first)) {
        return None;
    }
    let has = |list: &[&str]| before.iter().any(|word| list.contains(word));
    match *last {
        "pass" if has(PASSES) => None,
        "pass" if before.is_empty() => Some(NameClass::Pass),
        "pass" => Some(NameClass::Password),
        "pw" => Some(match before.is_empty() {
            true => NameClass::Pass,
            false => NameClass::Password,
        }),
        "phrase" if has(&["pass", "seed", "recovery"]) => Some(NameClass::Phrase),
        "word" | "code" | "wd" if before.last() == Some(&"pass") => Some(NameClass::Password),
        "key" if has(&["secret"]) => Some(NameClass::Secret),
        "key" if has(PLAIN_KEYS) && !has(SECRET_KEYS) => None,
        "key" if has(&["public", "pub", "primary", "foreign", "cache"]) => None,
        "key" if has(SECRET_KEYS) => Some(NameClass::Key),
        "key" => Some(NameClass::Weak),
        "token" if has(PLAIN_TOKENS) => None,
        "token" if before.is_empty() => Some(NameClass::Weak),
        "token" => Some(NameClass::Key),
        "auth" => Some(NameClass::Weak),
        "secret" if has(&["k8s", "kubernetes", "pull", "tls", "docker"]) => None,
        word => joined(word),
    }
}

fn joined(word: &str) -> Option<NameClass> {
    let action = |word: &str| {
        let starts = [
            "forgot", "reset", "change", "show", "no", "has", "is", "get",
        ];
        starts.contains(&word)
    };
    for (end, class) in JOINED {
        if let Some(before) = word.strip_suffix(end) {
            return (!action(before)).then_some(*class);
        }
    }
    let before = word.strip_suffix("pass")?;
    OF_PASS.contains(&before).then_some(NameClass::Password)
}

/// The longest name that is read.
pub(super) const LONGEST: usize = 80;

/// So many words of a name are told apart.
const MOST: usize = 16;

/// The words of a name, in lower case: at marks, and where a capital follows a small letter.
/// Digits behind a word are left out. Names are many, so this needs no memory of its own.
struct NameWords {
    text: [u8; LONGEST],
    words: [(u8, u8); MOST],
    count: usize,
}

impl NameWords {
    fn new(name: &str) -> NameWords {
        let mut words = NameWords {
            text: [0; LONGEST],
            words: [(0, 0); MOST],
            count: 0,
        };
        let bytes = name.as_bytes();
        // The end of a name says what it is.
        let bytes = &bytes[bytes.len().saturating_sub(LONGEST)..];
        let mut start = 0;
        for (at, byte) in bytes.iter().enumerate() {
            words.text[at] = byte.to_ascii_lowercase();
            let before = at.checked_sub(1).map(|at| bytes[at]);
            let next = bytes.get(at + 1);
            let is_hump = byte.is_ascii_uppercase()
                && before.is_some_and(|before| {
                    before.is_ascii_lowercase()
                        || before.is_ascii_uppercase() && next.is_some_and(u8::is_ascii_lowercase)
                });
            let is_mark = !byte.is_ascii_alphanumeric();
            if is_hump || is_mark {
                words.push(start, at);
                start = at + usize::from(is_mark);
            }
        }
        words.push(start, bytes.len());
        words
    }

    fn push(&mut self, start: usize, end: usize) {
        if start >= end {
            return;
        }
        let word = &self.text[start..end];
        let digits = word.iter().rev().take_while(|byte| byte.is_ascii_digit());
        let digits = digits.count();
        let is_whole = digits == word.len() || matches!(word, b"base64" | b"b64" | b"i18n");
        let end = if is_whole { end } else { end - digits };
        if self.count == MOST {
            self.words.copy_within(1.., 0);
            self.count -= 1;
        }
        self.words[self.count] = (start as u8, end as u8);
        self.count += 1;
    }

    fn get(&self, at: usize) -> &str {
        let (start, end) = self.words[at];
        let word = &self.text[usize::from(start)..usize::from(end)];
        std::str::from_utf8(word).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_told_from_names_of_other_things() {
        use NameClass::*;
        for (name, class) in [
            ("password", Some(Password)),
            ("DB_PASS", Some(Password)),
            ("dbPass", Some(Password)),
            ("spring.datasource.password", Some(Password)),
            ("PGPASSWORD", Some(Password)),
            ("requirepass", Some(Password)),
            ("storepass", Some(Password)),
            ("password2", Some(Password)),
            ("DB_PASSWORD_PROD", Some(Password)),
            ("passPhrase", Some(Phrase)),
            ("secret_key_base", Some(Secret)),
            ("SECRET_KEY", Some(Secret)),
            ("clientSecret", Some(Secret)),
            ("RAILS_MASTER_KEY", Some(Key)),
            ("api-key", Some(Key)),
            ("GITHUB_TOKEN", Some(Key)),
            ("authToken", Some(Key)),
            ("key", Some(Weak)),
            ("token", Some(Weak)),
            ("pass", Some(Pass)),
            ("monkey", None),
            ("keyboard", None),
            ("primary_key", None),
            ("publicKey", None),
            ("max_tokens", None),
            ("nextToken", None),
            ("password_hash", None),
            ("passwordLength", None),
            ("token_type", None),
            ("secretName", None),
            ("bypass", None),
            ("reset_password", None),
            ("is_secret", None),
            ("render_pass", None),
        ] {
            assert_eq!(class_of(name), class, "{name}");
        }
    }
}
