//! A shell command as the shell will see it: every simple command in it, wherever it stands.
//!
//! This parser knows bash's grammar as far as it can be sure what runs, and refuses the rest
//! with a reason; who asks then treats the command as unknown. It is strict on purpose: what
//! it accepts must mean to bash exactly what it means here. Expansions are holes, because their
//! text is not known before it runs; what runs inside them is found like everything else.

/// Nesting that nobody types.
const DEEPEST: usize = 40;

const JOINED: &str = "a word goes on in the next line";

/// A simple command, an assignment without one, or a redirection of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// `NAME=value` before the program.
    pub assigns: Vec<Assign>,
    /// The program and its arguments; none if only variables or files are set.
    pub words: Vec<Word>,
    /// Files that are opened.
    pub redirects: Vec<Redirect>,
}

/// `NAME=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assign {
    /// The variable.
    pub name: String,
    /// Whether it is set by a loop or the shell itself, for the commands that follow.
    pub lasting: bool,
}

/// A file that is opened for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// Whether it can be written to.
    pub writes: bool,
    /// Which.
    pub target: Word,
}

/// One word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// As it was typed.
    pub raw: String,
    /// As the shell reads it.
    pub pieces: Vec<Piece>,
}

/// A piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
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

impl Word {
    /// The text, if it is known.
    pub fn text(&self) -> Option<String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                _ => return None,
            }
        }
        Some(text)
    }

    /// Whether it can become anything else than what stands there.
    pub fn is_open(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Hole { .. } | Piece::Glob(_)))
    }
}

/// Everything that a command runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// In the order in which they stand.
    pub parts: Vec<Part>,
    /// Functions that it defines. Their bodies are among the parts.
    pub functions: Vec<String>,
}

/// Reads a command, or says why it cannot be understood.
pub fn parse(text: &str) -> Result<Script, String> {
    inner(text, 0)
}

fn inner(text: &str, depth: usize) -> Result<Script, String> {
    let bad = |c: char| (c.is_control() && c != '\t' && c != '\n') || is_hidden(c);
    if let Some(c) = text.chars().find(|&c| bad(c)) {
        return Err(format!("it holds the character U+{:04X}", u32::from(c)));
    }
    let mut parser = Parser {
        text,
        at: 0,
        depth,
        script: Script::default(),
        documents: Vec::new(),
    };
    parser.list(&[])?;
    if parser.at < text.len() {
        return Err(parser.unexpected());
    }
    parser.no_documents()?;
    Ok(parser.script)
}

/// Characters that change what a person sees and not what runs.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

struct Document {
    end: String,
    quoted: bool,
    tabs: bool,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    script: Script,
    documents: Vec<Document>,
}

type Read<T> = Result<T, String>;

/// Words with a meaning of their own where a command begins.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for",
    "select", "function", "in", "{", "}", "!", "[[", "]]", "time", "coproc",
];

impl<'a> Parser<'a> {
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
            Some(c) => format!("`{c}` stands where nothing like it should"),
            None => "it ends too early".to_owned(),
        }
    }

    fn no_documents(&self) -> Read<()> {
        match self.documents.is_empty() {
            true => Ok(()),
            false => Err("a here-document has no body".to_owned()),
        }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("it is nested too deeply".to_owned());
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
    fn newline(&mut self) -> Read<bool> {
        if !self.take("\n") {
            return Ok(false);
        }
        for document in std::mem::take(&mut self.documents) {
            self.document(&document)?;
        }
        Ok(true)
    }

    fn newlines(&mut self) -> Read<()> {
        loop {
            self.blanks();
            if !self.newline()? {
                return Ok(());
            }
        }
    }

    fn document(&mut self, document: &Document) -> Read<()> {
        let mut body = String::new();
        loop {
            let rest = self.rest();
            if rest.is_empty() {
                return Err("a here-document has no end".to_owned());
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
        if document.quoted {
            return Ok(());
        }
        let mut inside = Parser {
            text: &body,
            at: 0,
            depth: self.depth,
            script: Script::default(),
            documents: Vec::new(),
        };
        inside.quoted_text(None, &mut Vec::new())?;
        self.absorb(inside.script);
        Ok(())
    }

    fn absorb(&mut self, script: Script) {
        self.script.parts.extend(script.parts);
        self.script.functions.extend(script.functions);
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

    fn expect(&mut self, word: &str) -> Read<()> {
        match self.keyword(word) {
            true => Ok(()),
            false => Err(format!("`{word}` is missing")),
        }
    }

    /// Commands, up to one of these words, a closing mark, or the end.
    fn list(&mut self, ends: &[&str]) -> Read<usize> {
        let mut count = 0;
        loop {
            self.newlines()?;
            if self.at == self.text.len()
                || self.looks_at(")")
                || self.looks_at(";;")
                || self.looks_at(";&")
                || ends.contains(&self.bare())
            {
                return Ok(count);
            }
            self.and_or()?;
            count += 1;
            self.blanks();
            let is_case = self.looks_at(";;") || self.looks_at(";&");
            let more = !is_case && (self.take(";") || (!self.looks_at("&&") && self.take("&")))
                || self.newline()?;
            if !more {
                return Ok(count);
            }
        }
    }

    /// A list that must hold something.
    fn some(&mut self, ends: &[&str]) -> Read<()> {
        match self.list(ends)? {
            0 => Err("a command is missing".to_owned()),
            _ => Ok(()),
        }
    }

    fn and_or(&mut self) -> Read<()> {
        loop {
            self.pipeline()?;
            self.blanks();
            if !self.take("&&") && !self.take("||") {
                return Ok(());
            }
            self.newlines()?;
        }
    }

    fn pipeline(&mut self) -> Read<()> {
        // Only before the first command `time` and `!` are the shell's own words.
        let mut is_first = true;
        loop {
            self.blanks();
            if is_first && self.keyword("time") {
                self.blanks();
                if self.keyword("-p") {
                    self.blanks();
                }
                if self.bare().starts_with('-') {
                    return Err("`time` has an option that the shell passes on".to_owned());
                }
                if self.bare().is_empty() && !self.looks_at("(") {
                    return Err("`time` has no command".to_owned());
                }
            }
            self.blanks();
            while is_first && self.keyword("!") {
                self.blanks();
            }
            is_first = false;
            self.deeper(Self::command)?;
            self.blanks();
            if self.looks_at("||") || !(self.take("|&") || self.take("|")) {
                return Ok(());
            }
            self.newlines()?;
        }
    }

    fn command(&mut self) -> Read<()> {
        if self.looks_at("((") {
            return Err("arithmetic is not looked into".to_owned());
        }
        if self.take("(") {
            self.some(&[])?;
            if !self.take(")") {
                return Err("`)` is missing".to_owned());
            }
            return self.redirects_only();
        }
        match self.bare() {
            "{" => {
                self.at += 1;
                self.some(&["}"])?;
                self.expect("}")?;
                self.redirects_only()
            }
            "if" => self.conditional(),
            "while" | "until" => {
                self.at += self.bare().len();
                self.some(&["do"])?;
                self.body()
            }
            "for" | "select" => self.each(),
            "case" => self.case(),
            "[[" => self.test(),
            "function" => {
                self.at += "function".len();
                self.blanks();
                let name = self.bare().to_owned();
                self.at += name.len();
                self.blanks();
                if self.take("(") && !self.take(")") {
                    return Err(self.unexpected());
                }
                self.function(&name)
            }
            word if RESERVED.contains(&word) => Err(format!("`{word}` is not looked into here")),
            _ => self.simple(),
        }
    }

    fn conditional(&mut self) -> Read<()> {
        self.expect("if")?;
        loop {
            self.some(&["then"])?;
            self.expect("then")?;
            self.some(&["elif", "else", "fi"])?;
            if self.keyword("elif") {
                continue;
            }
            if self.keyword("else") {
                self.some(&["fi"])?;
            }
            self.expect("fi")?;
            return self.redirects_only();
        }
    }

    fn body(&mut self) -> Read<()> {
        self.expect("do")?;
        self.some(&["done"])?;
        self.expect("done")?;
        self.redirects_only()
    }

    fn each(&mut self) -> Read<()> {
        self.at += self.bare().len();
        self.blanks();
        if self.looks_at("((") {
            return Err("arithmetic is not looked into".to_owned());
        }
        let name = self.bare().to_owned();
        if !is_name(&name) {
            return Err("a loop has no plain variable".to_owned());
        }
        self.at += name.len();
        let mut part = Part::default();
        part.assigns.push(Assign {
            name,
            lasting: true,
        });
        self.script.parts.push(part);
        self.newlines()?;
        if self.keyword("in") {
            loop {
                self.blanks();
                if self.newline()? || (!self.looks_at(";;") && self.take(";")) {
                    break;
                }
                match self.word()? {
                    Some(_) => {}
                    None => return Err(self.unexpected()),
                }
            }
        } else {
            self.take(";");
        }
        self.newlines()?;
        self.body()
    }

    fn case(&mut self) -> Read<()> {
        self.expect("case")?;
        self.blanks();
        if self.word()?.is_none() {
            return Err(self.unexpected());
        }
        self.newlines()?;
        self.expect("in")?;
        loop {
            self.newlines()?;
            if self.keyword("esac") {
                return self.redirects_only();
            }
            self.take("(");
            loop {
                self.blanks();
                if self.word()?.is_none() {
                    return Err(self.unexpected());
                }
                self.blanks();
                if !self.take("|") {
                    break;
                }
            }
            if !self.take(")") {
                return Err("a case has no `)`".to_owned());
            }
            self.list(&["esac"])?;
            self.newlines()?;
            if self.take(";;&") || self.take(";;") || self.take(";&") {
                continue;
            }
            self.expect("esac")?;
            return self.redirects_only();
        }
    }

    /// `[[ … ]]`: only words and what joins them.
    fn test(&mut self) -> Read<()> {
        self.expect("[[")?;
        loop {
            self.newlines()?;
            match self.bare() {
                "]]" => {
                    self.at += 2;
                    return self.redirects_only();
                }
                // These calculate, and a variable can hold a command in an index.
                "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v" | "-R" | "=~" => {
                    return Err("a test is not looked into".to_owned());
                }
                _ => {}
            }
            if self.take("&&") || self.take("||") || self.take("(") || self.take(")") {
                continue;
            }
            if !self.looks_at("<(") && !self.looks_at(">(") && (self.take("<") || self.take(">")) {
                continue;
            }
            if self.word()?.is_none() {
                return Err(self.unexpected());
            }
        }
    }

    fn function(&mut self, name: &str) -> Read<()> {
        let is_plain = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.:".contains(c));
        if name.is_empty() || !is_plain || RESERVED.contains(&name) {
            return Err("a function has no plain name".to_owned());
        }
        self.script.functions.push(name.to_owned());
        self.newlines()?;
        let is_group = self.looks_at("(") && !self.looks_at("((");
        let starts = ["{", "if", "for", "while", "until", "case", "select", "[["];
        if !is_group && !starts.contains(&self.bare()) {
            return Err("a function has no body".to_owned());
        }
        self.deeper(Self::command)
    }

    /// What may follow a group.
    fn redirects_only(&mut self) -> Read<()> {
        let mut part = Part::default();
        loop {
            self.blanks();
            if !self.redirect(&mut part)? {
                break;
            }
        }
        if !part.redirects.is_empty() {
            self.script.parts.push(part);
        }
        let follows = self.peek().is_none_or(|c| " \t\n;&|)".contains(c));
        match follows {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    fn simple(&mut self) -> Read<()> {
        let mut part = Part::default();
        let start = self.script.parts.len();
        loop {
            self.blanks();
            if self.redirect(&mut part)? {
                continue;
            }
            if part.words.is_empty()
                && let Some(assign) = self.assign()?
            {
                part.assigns.push(assign);
                continue;
            }
            let Some(word) = self.word()? else { break };
            let is_first = part.words.is_empty();
            if is_first && part.assigns.is_empty() && part.redirects.is_empty() {
                self.blanks();
                if self.looks_at("(") {
                    self.at += 1;
                    self.blanks();
                    if !self.take(")") {
                        return Err("`(` stands behind a word".to_owned());
                    }
                    return self.function(&word.raw);
                }
            }
            part.words.push(word);
        }
        if self.looks_at("(") {
            return Err("`(` stands behind a word".to_owned());
        }
        if part == Part::default() {
            return Err(self.unexpected());
        }
        if part.words.is_empty() {
            for assign in &mut part.assigns {
                assign.lasting = true;
            }
        }
        // What stands inside a command is found after the command itself.
        self.script.parts.insert(start, part);
        Ok(())
    }

    /// `NAME=value`, `NAME+=value`, `NAME=(…)`.
    fn assign(&mut self) -> Read<Option<Assign>> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        let name = &rest[..end];
        if !is_name(name) {
            return Ok(None);
        }
        let behind = &rest[end..];
        if behind.starts_with('[') && behind.contains("]=") {
            return Err("an index is not looked into".to_owned());
        }
        let sign = match () {
            () if behind.starts_with("+=") => 2,
            () if behind.starts_with('=') => 1,
            () => return Ok(None),
        };
        self.at += end + sign;
        if self.take("(") {
            loop {
                self.newlines()?;
                if self.take(")") {
                    break;
                }
                if self.looks_at("[") {
                    return Err("an index is not looked into".to_owned());
                }
                if self.word()?.is_none() {
                    return Err(self.unexpected());
                }
            }
        } else {
            self.word()?;
        }
        Ok(Some(Assign {
            name: name.to_owned(),
            lasting: false,
        }))
    }

    /// Takes a redirection, if one stands here.
    fn redirect(&mut self, part: &mut Part) -> Read<bool> {
        let rest = self.rest();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let behind = &rest[digits..];
        let is_process = behind.starts_with("<(") || behind.starts_with(">(");
        if (is_process && digits == 0) || (digits > 0 && !behind.starts_with(['<', '>'])) {
            return Ok(false);
        }
        if behind.starts_with('{') && digits == 0 {
            let close = rest.find('}').map(|close| &rest[close + 1..]);
            let name = rest[1..].split('}').next().unwrap_or_default();
            if is_name(name) && close.is_some_and(|after| after.starts_with(['<', '>'])) {
                return Err("a file is opened under a variable".to_owned());
            }
        }
        let signs = [
            "&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", ">>", ">|", ">&", "<", ">",
        ];
        let Some(sign) = signs.iter().find(|sign| behind.starts_with(**sign)) else {
            return Ok(false);
        };
        if sign.starts_with('&') && digits > 0 {
            return Ok(false);
        }
        self.at += digits + sign.len();
        self.blanks();
        if sign.starts_with("<<") && *sign != "<<<" {
            return self.here(*sign == "<<-").map(|()| true);
        }
        let Some(target) = self.word()? else {
            return Err("a redirection has no target".to_owned());
        };
        match *sign {
            "<<<" => return Ok(true),
            "<&" | ">&" => {
                let known = target.text().unwrap_or_default();
                let number = known.strip_suffix('-').unwrap_or(&known);
                if !known.is_empty() && number.chars().all(|c| c.is_ascii_digit()) {
                    return Ok(true);
                }
                if *sign == "<&" || digits > 0 {
                    return Err("a file number is not known".to_owned());
                }
            }
            _ => {}
        }
        part.redirects.push(Redirect {
            writes: *sign != "<",
            target,
        });
        Ok(true)
    }

    fn here(&mut self, tabs: bool) -> Read<()> {
        let start = self.at;
        let before = self.script.parts.len();
        let Some(word) = self.word()? else {
            return Err("a here-document has no name".to_owned());
        };
        let raw = &self.text[start..self.at];
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let inner = raw.trim_matches(['\'', '"']);
        let quoted = match raw.len() - inner.len() {
            0 => raw.starts_with('\\'),
            2 => true,
            _ => return Err("the name of a here-document is not plain".to_owned()),
        };
        let inner = inner.strip_prefix('\\').unwrap_or(inner);
        if inner.is_empty() || !inner.chars().all(is_plain) || self.script.parts.len() != before {
            return Err("the name of a here-document is not plain".to_owned());
        }
        let Some(end) = word.text() else {
            return Err("the name of a here-document is not plain".to_owned());
        };
        self.documents.push(Document { end, quoted, tabs });
        Ok(())
    }

    /// The next word, if one stands here.
    fn word(&mut self) -> Read<Option<Word>> {
        let start = self.at;
        let mut pieces = Vec::new();
        while let Some(c) = self.peek() {
            match c {
                '<' | '>' if self.second() == Some('(') => {
                    self.at += 2;
                    self.substitution()?;
                    pieces.push(Piece::Hole { quoted: true });
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some('\n') => return Err(JOINED.to_owned()),
                        Some(escaped) => text(&mut pieces, &escaped.to_string()),
                        None => return Err("it ends in a backslash".to_owned()),
                    }
                    self.bump();
                }
                '\'' => {
                    self.at += 1;
                    let Some(len) = self.rest().find('\'') else {
                        return Err("a quote has no end".to_owned());
                    };
                    let inside = &self.rest()[..len];
                    self.one_line(inside)?;
                    text(&mut pieces, inside);
                    self.at += len + 1;
                }
                '"' => {
                    self.at += 1;
                    let from = self.at;
                    // Quotes with nothing inside are a word all the same.
                    text(&mut pieces, "");
                    self.deeper(|parser| parser.quoted_text(Some('"'), &mut pieces))?;
                    self.one_line(&self.text[from..self.at])?;
                }
                '$' => self.dollar(false, &mut pieces)?,
                '`' => {
                    self.backquotes(false)?;
                    pieces.push(Piece::Hole { quoted: false });
                }
                '*' | '?' | '[' => {
                    self.at += 1;
                    pieces.push(Piece::Glob(c));
                }
                '{' | '}' if self.looks_at("{}") => {
                    self.at += 2;
                    text(&mut pieces, "{}");
                }
                '{' => {
                    self.at += 1;
                    pieces.push(Piece::Hole { quoted: false });
                }
                '~' => self.tilde(start, &mut pieces),
                c if c.is_whitespace() || is_invisible(c) => {
                    return Err(format!("it holds the character U+{:04X}", u32::from(c)));
                }
                c => {
                    self.bump();
                    text(&mut pieces, c.encode_utf8(&mut [0; 4]));
                }
            }
        }
        if self.at == start {
            return Ok(None);
        }
        let raw = self.text[start..self.at].to_owned();
        Ok(Some(Word { raw, pieces }))
    }

    /// While a here-document waits for its body, a newline in quotes would be taken for its start.
    fn one_line(&self, inside: &str) -> Read<()> {
        match self.documents.is_empty() || !inside.contains('\n') {
            true => Ok(()),
            false => Err("a here-document waits while a quote goes on".to_owned()),
        }
    }

    fn tilde(&mut self, start: usize, pieces: &mut Vec<Piece>) {
        self.at += 1;
        let before = self.text[..self.at - 1].chars().next_back();
        let is_start = self.at - 1 == start;
        let ends = self.peek().is_none_or(|c| " \t\n;&|()<>/".contains(c));
        match (is_start, ends, before) {
            (true, true, _) => pieces.push(Piece::Home),
            (true, false, _) | (_, _, Some('=' | ':')) => {
                pieces.push(Piece::Hole { quoted: false });
            }
            _ => text(pieces, "~"),
        }
    }

    /// Text in which only expansions have a meaning, up to a closing quote or the end.
    fn quoted_text(&mut self, end: Option<char>, pieces: &mut Vec<Piece>) -> Read<()> {
        while let Some(c) = self.peek() {
            match c {
                c if Some(c) == end => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some('\n') => return Err(JOINED.to_owned()),
                        Some(c @ ('$' | '`' | '"' | '\\')) => {
                            self.at += 1;
                            text(pieces, c.encode_utf8(&mut [0; 4]));
                        }
                        _ => text(pieces, "\\"),
                    }
                }
                '$' => self.dollar(true, pieces)?,
                '`' => {
                    self.backquotes(end.is_some())?;
                    pieces.push(Piece::Hole { quoted: true });
                }
                c => {
                    self.bump();
                    text(pieces, c.encode_utf8(&mut [0; 4]));
                }
            }
        }
        match end {
            Some(_) => Err("a quote has no end".to_owned()),
            None => Ok(()),
        }
    }

    fn dollar(&mut self, quoted: bool, pieces: &mut Vec<Piece>) -> Read<()> {
        self.at += 1;
        let hole = Piece::Hole { quoted };
        match self.peek() {
            Some('(') if self.second() == Some('(') => {
                self.at += 2;
                self.sum()?;
            }
            Some('(') => {
                self.at += 1;
                self.substitution()?;
            }
            Some('{') => {
                self.at += 1;
                self.deeper(|parser| parser.parameter(quoted))?;
            }
            Some('[') => return Err("arithmetic is not looked into".to_owned()),
            Some('\'') if !quoted => self.ansi()?,
            Some('"') if !quoted => return Err("a translated text is not known".to_owned()),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let rest = self.rest();
                let len = rest
                    .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                    .unwrap_or(rest.len());
                self.at += len;
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => self.at += 1,
            _ => {
                text(pieces, "$");
                return Ok(());
            }
        }
        pieces.push(hole);
        Ok(())
    }

    /// `$((…))`: only numbers, because a name can hold an index that runs something.
    fn sum(&mut self) -> Read<()> {
        let rest = self.rest();
        let len = rest
            .find(|c: char| !(c.is_ascii_digit() || " +-*/%".contains(c)))
            .unwrap_or(rest.len());
        self.at += len;
        match self.take("))") {
            true => Ok(()),
            false => Err("arithmetic is not looked into".to_owned()),
        }
    }

    /// What stands in `$(…)`, `<(…)` and `>(…)`, with its closing mark.
    fn substitution(&mut self) -> Read<()> {
        let waiting = std::mem::take(&mut self.documents);
        let from = self.at;
        self.deeper(|parser| parser.list(&[]))?;
        self.no_documents()?;
        if !self.take(")") {
            return Err("`)` is missing".to_owned());
        }
        self.documents = waiting;
        self.one_line(&self.text[from..self.at])
    }

    fn backquotes(&mut self, in_quotes: bool) -> Read<()> {
        self.at += 1;
        let from = self.at;
        let mut inside = String::new();
        loop {
            match self.peek() {
                None => return Err("a backquote has no end".to_owned()),
                Some('`') => break,
                Some('\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(c @ ('$' | '`' | '\\')) => inside.push(c),
                        Some('"') if in_quotes => inside.push('"'),
                        Some(c) => inside.extend(['\\', c]),
                        None => return Err("a backquote has no end".to_owned()),
                    }
                }
                Some(c) => inside.push(c),
            }
            self.bump();
        }
        self.one_line(&self.text[from..self.at])?;
        self.at += 1;
        if self.depth >= DEEPEST {
            return Err("it is nested too deeply".to_owned());
        }
        let script = inner(&inside, self.depth + 1)?;
        self.absorb(script);
        Ok(())
    }

    /// `$'…'`: its end is found, its text is not needed.
    fn ansi(&mut self) -> Read<()> {
        self.at += 1;
        let from = self.at;
        loop {
            match self.peek() {
                None => return Err("a quote has no end".to_owned()),
                Some('\\') => self.at += 1,
                Some('\'') => break,
                Some(_) => {}
            }
            self.bump();
        }
        self.one_line(&self.text[from..self.at])?;
        self.at += 1;
        Ok(())
    }

    /// `${…}`, in the forms that only look something up.
    fn parameter(&mut self, quoted: bool) -> Read<()> {
        let unknown = || Err("an expansion is not looked into".to_owned());
        if self.looks_at("#") && !self.looks_at("#}") {
            self.at += 1;
        }
        let rest = self.rest();
        let len = match rest.chars().next() {
            Some(c) if "@*#?$!-".contains(c) => 1,
            _ => rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                .unwrap_or(rest.len()),
        };
        if len == 0 || self.looks_at("!") {
            return unknown();
        }
        self.at += len;
        if self.take("[") {
            let rest = self.rest();
            let end = rest.find(']').unwrap_or(0);
            let index = &rest[..end];
            let is_number = !index.is_empty() && index.chars().all(|c| c.is_ascii_digit());
            if !is_number && index != "@" && index != "*" {
                return unknown();
            }
            self.at += end + 1;
        }
        if self.take("}") {
            return Ok(());
        }
        let signs = [
            ":-", ":+", ":?", "-", "+", "?", "##", "#", "%%", "%", "//", "/", "^^", "^", ",,", ",",
        ];
        if !signs.iter().any(|sign| self.take(sign)) {
            return unknown();
        }
        self.parameter_word(quoted)
    }

    /// The text behind the sign of an expansion, up to its closing brace.
    fn parameter_word(&mut self, quoted: bool) -> Read<()> {
        let mut pieces = Vec::new();
        loop {
            match self.peek() {
                None => return Err("an expansion has no end".to_owned()),
                Some('}') => {
                    self.at += 1;
                    return Ok(());
                }
                Some('\\') => {
                    self.at += 1;
                    if self.looks_at("\n") {
                        return Err(JOINED.to_owned());
                    }
                    self.bump();
                }
                Some('$') => self.dollar(quoted, &mut pieces)?,
                Some('`') => self.backquotes(quoted)?,
                // Quotes inside quotes mean different things to different shells.
                Some('\'' | '"' | '{' | '\n') => {
                    return Err("an expansion is not looked into".to_owned());
                }
                Some('<' | '>') if self.second() == Some('(') => {
                    return Err("an expansion is not looked into".to_owned());
                }
                Some(_) => self.bump(),
            }
        }
    }
}

fn text(pieces: &mut Vec<Piece>, more: &str) {
    match pieces.last_mut() {
        Some(Piece::Text(last)) => last.push_str(more),
        _ => pieces.push(Piece::Text(more.to_owned())),
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
