//! A shell command as the shell will see it: every simple command in it, wherever it stands.
//!
//! This parser knows bash's grammar as far as it can be sure what runs, and refuses the rest
//! with a reason; who asks then treats the command as unknown. It is strict on purpose: what
//! it accepts must mean to bash exactly what it means here. Expansions are holes, because their
//! text is not known before it runs; what runs inside them is found like everything else.

mod commands;
mod words;

/// Nesting that nobody types.
const DEEPEST: usize = 40;

const JOINED: &str = "a word continues on the next line";

/// A simple command, an assignment without one, or a redirection of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellCommandPart {
    /// `NAME=value` before the program.
    pub assigns: Vec<ShellAssignment>,
    /// The program and its arguments; none if only variables or files are set.
    pub words: Vec<ShellWord>,
    /// Files that are opened.
    pub redirects: Vec<ShellRedirect>,
    /// Words that are no arguments: values of variables, what a loop goes through, here-strings.
    pub values: Vec<ShellWord>,
    /// Whether something may come in: from a pipe, a file, a here-document or a here-string, its
    /// own or that of a group around it.
    pub fed: bool,
}

/// `NAME=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellAssignment {
    /// The variable.
    pub name: String,
    /// Whether it is set by a loop or the shell itself, for the commands that follow.
    pub lasting: bool,
}

/// A file that is opened for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellRedirect {
    /// Whether it can be written to.
    pub writes: bool,
    /// Which.
    pub target: ShellWord,
}

/// One word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellWord {
    /// As it was typed.
    pub raw: String,
    /// As the shell reads it.
    pub pieces: Vec<ShellWordPart>,
}

/// A piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellWordPart {
    /// Text that stays as it is.
    Text(String),
    /// The home folder.
    Home,
    /// Text that is not known yet. Outside quotes it can also be nothing, or several words.
    Hole {
        /// Whether it stands in quotes.
        quoted: bool,
    },
    /// A pattern of file names: `*`, `?`, `[`.
    Glob(char),
}

impl ShellWord {
    /// The text, if it is known.
    pub fn text(&self) -> Option<String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                ShellWordPart::Text(part) => text.push_str(part),
                _ => return None,
            }
        }
        Some(text)
    }

    /// Whether it can become anything else than what stands there.
    pub fn is_open(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, ShellWordPart::Hole { .. } | ShellWordPart::Glob(_)))
    }
}

/// Everything that a command runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellScript {
    /// In the order in which they stand.
    pub parts: Vec<ShellCommandPart>,
    /// Functions that it defines. Their bodies are among the parts.
    pub functions: Vec<String>,
    /// Whether a part may run again after a later one: in loops and functions.
    pub repeats: bool,
    /// Texts of here-documents.
    pub documents: Vec<String>,
}

/// Reads a command, or says why it cannot be understood.
pub fn parse(text: &str) -> Result<ShellScript, String> {
    inner(text, 0)
}

fn inner(text: &str, depth: usize) -> Result<ShellScript, String> {
    let bad = |c: char| (c.is_control() && c != '\t' && c != '\n') || is_hidden(c);
    if let Some(c) = text.chars().find(|&c| bad(c)) {
        return Err(format!("unsupported character U+{:04X}", u32::from(c)));
    }
    let mut parser = ShellParser {
        text,
        at: 0,
        depth,
        script: ShellScript::default(),
        documents: Vec::new(),
    };
    parser.list(&[])?;
    if parser.at < text.len() {
        return Err(parser.unexpected());
    }
    parser.no_documents()?;
    parser.feed_what_inherits();
    Ok(parser.script)
}

/// Characters that change what a person sees and not what runs.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

struct HereDocument {
    end: String,
    quoted: bool,
    tabs: bool,
}

struct ShellParser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    script: ShellScript,
    documents: Vec<HereDocument>,
}

type ShellParseResult<T> = Result<T, String>;

/// Words with a meaning of their own where a command begins.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for",
    "select", "function", "in", "{", "}", "!", "[[", "]]", "time", "coproc",
];

impl<'a> ShellParser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    fn looks_at(&self, start: &str) -> bool {
        self.rest().starts_with(start)
    }

    fn take(&mut self, start: &str) -> bool {
        let is_here = self.looks_at(start);
        if is_here {
            self.at += start.len();
        }
        is_here
    }

    fn bump(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }

    fn unexpected(&self) -> String {
        match self.peek() {
            Some(c) => format!("unexpected `{c}`"),
            None => "unexpected end".to_owned(),
        }
    }

    /// A function gets what is given to its call, and after `exec` everything gets what it was
    /// given; which part that is, is not followed.
    fn feed_what_inherits(&mut self) {
        let is_exec = |part: &ShellCommandPart| {
            let mut words = part.words.iter();
            words.any(|word| word.text().as_deref() == Some("exec"))
        };
        let script = &mut self.script;
        let mut fed = script.parts.iter().filter(|part| part.fed);
        let inherits = match script.functions.is_empty() {
            true => fed.any(is_exec),
            false => fed.next().is_some(),
        };
        if inherits {
            self.feed(0);
        }
    }

    /// Says that all parts from one on may be fed.
    fn feed(&mut self, from: usize) {
        let parts = self.script.parts.iter_mut();
        parts.skip(from).for_each(|part| part.fed = true);
    }

    fn no_documents(&self) -> ShellParseResult<()> {
        match self.documents.is_empty() {
            true => Ok(()),
            false => Err("a here-document has no body".to_owned()),
        }
    }

    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> ShellParseResult<T>,
    ) -> ShellParseResult<T> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("nested too deeply".to_owned());
        }
        let read = read(self)?;
        self.depth -= 1;
        Ok(read)
    }

    /// Passes over blanks, comments and lines that go on; not over newlines.
    fn blanks(&mut self) {
        loop {
            if self.take(" ") || self.take("\t") {
                continue;
            }
            let before = self.text[..self.at].chars().next_back();
            // A line that goes on elsewhere would join what stands around it to something new.
            if before.is_none_or(|c| " \t\n".contains(c)) && self.take("\\\n") {
                continue;
            }
            let begins = before.is_none_or(|c| " \t\n;&|()<>".contains(c));
            if self.looks_at("#") && begins {
                let rest = self.rest();
                self.at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            return;
        }
    }

    /// Takes a newline, and the here-documents that begin behind it.
    fn newline(&mut self) -> ShellParseResult<bool> {
        if !self.take("\n") {
            return Ok(false);
        }
        for document in std::mem::take(&mut self.documents) {
            self.document(&document)?;
        }
        Ok(true)
    }

    fn newlines(&mut self) -> ShellParseResult<()> {
        loop {
            self.blanks();
            if !self.newline()? {
                return Ok(());
            }
        }
    }

    fn document(&mut self, document: &HereDocument) -> ShellParseResult<()> {
        let mut body = String::new();
        loop {
            let rest = self.rest();
            if rest.is_empty() {
                return Err("unterminated here-document".to_owned());
            }
            let (line, len) = match rest.find('\n') {
                Some(end) => (&rest[..end], end + 1),
                None => (rest, rest.len()),
            };
            self.at += len;
            let bare = match document.tabs {
                true => line.trim_start_matches('\t'),
                false => line,
            };
            if bare == document.end {
                break;
            }
            body.push_str(line);
            body.push('\n');
        }
        self.script.documents.push(body.clone());
        if document.quoted {
            return Ok(());
        }
        let mut inside = ShellParser {
            text: &body,
            at: 0,
            depth: self.depth,
            script: ShellScript::default(),
            documents: Vec::new(),
        };
        inside.quoted_text(None, &mut Vec::new())?;
        self.absorb(inside.script);
        Ok(())
    }

    fn absorb(&mut self, script: ShellScript) {
        self.script.parts.extend(script.parts);
        self.script.functions.extend(script.functions);
        self.script.repeats |= script.repeats;
        self.script.documents.extend(script.documents);
    }

    /// The bare word that stands here, if it is one without any quoting.
    fn bare(&self) -> &'a str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| " \t\n;&|()<>".contains(c))
            .unwrap_or(rest.len());
        &rest[..end]
    }

    fn keyword(&mut self, word: &str) -> bool {
        let is_here = self.bare() == word;
        if is_here {
            self.at += word.len();
        }
        is_here
    }

    fn expect(&mut self, word: &str) -> ShellParseResult<()> {
        match self.keyword(word) {
            true => Ok(()),
            false => Err(format!("missing `{word}`")),
        }
    }
}

fn text(pieces: &mut Vec<ShellWordPart>, more: &str) {
    match pieces.last_mut() {
        Some(ShellWordPart::Text(last)) => last.push_str(more),
        _ => pieces.push(ShellWordPart::Text(more.to_owned())),
    }
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    let starts = chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    starts && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Characters that take no room.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}
