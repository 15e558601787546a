//! Words: quotes, expansions, substitutions, patterns.

use super::{
    DEEPEST, JOINED, ShellParseResult, ShellParser, ShellWord, ShellWordPart, inner, is_invisible,
    text,
};

impl ShellParser<'_> {
    /// The next word, if one stands here.
    pub(super) fn word(&mut self) -> ShellParseResult<Option<ShellWord>> {
        let start = self.at;
        let mut pieces = Vec::new();
        while let Some(c) = self.peek() {
            match c {
                '<' | '>' if self.second() == Some('(') => {
                    self.at += 2;
                    self.substitution()?;
                    pieces.push(ShellWordPart::Hole { quoted: true });
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some('\n') => return Err(JOINED.to_owned()),
                        Some(escaped) => text(&mut pieces, &escaped.to_string()),
                        None => return Err("ends with a backslash".to_owned()),
                    }
                    self.bump();
                }
                '\'' => {
                    self.at += 1;
                    let Some(len) = self.rest().find('\'') else {
                        return Err("unterminated quote".to_owned());
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
                    pieces.push(ShellWordPart::Hole { quoted: false });
                }
                '*' | '?' | '[' => {
                    self.at += 1;
                    pieces.push(ShellWordPart::Glob(c));
                }
                '{' | '}' if self.looks_at("{}") => {
                    self.at += 2;
                    text(&mut pieces, "{}");
                }
                '{' => {
                    self.at += 1;
                    pieces.push(ShellWordPart::Hole { quoted: false });
                }
                '~' => self.tilde(start, &mut pieces),
                c if c.is_whitespace() || is_invisible(c) => {
                    return Err(format!("unsupported character U+{:04X}", u32::from(c)));
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
        Ok(Some(ShellWord { raw, pieces }))
    }

    /// While a here-document waits for its body, a newline in quotes would be taken for its start.
    pub(super) fn one_line(&self, inside: &str) -> ShellParseResult<()> {
        match self.documents.is_empty() || !inside.contains('\n') {
            true => Ok(()),
            false => Err("a quote spans lines before a here-document".to_owned()),
        }
    }

    pub(super) fn tilde(&mut self, start: usize, pieces: &mut Vec<ShellWordPart>) {
        self.at += 1;
        let before = self.text[..self.at - 1].chars().next_back();
        let is_start = self.at - 1 == start;
        let ends = self.peek().is_none_or(|c| " \t\n;&|()<>/".contains(c));
        match (is_start, ends, before) {
            (true, true, _) => pieces.push(ShellWordPart::Home),
            (true, false, _) | (_, _, Some('=' | ':')) => {
                pieces.push(ShellWordPart::Hole { quoted: false });
            }
            _ => text(pieces, "~"),
        }
    }

    /// Text in which only expansions have a meaning, up to a closing quote or the end.
    pub(super) fn quoted_text(
        &mut self,
        end: Option<char>,
        pieces: &mut Vec<ShellWordPart>,
    ) -> ShellParseResult<()> {
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
                    pieces.push(ShellWordPart::Hole { quoted: true });
                }
                c => {
                    self.bump();
                    text(pieces, c.encode_utf8(&mut [0; 4]));
                }
            }
        }
        match end {
            Some(_) => Err("unterminated quote".to_owned()),
            None => Ok(()),
        }
    }

    pub(super) fn dollar(
        &mut self,
        quoted: bool,
        pieces: &mut Vec<ShellWordPart>,
    ) -> ShellParseResult<()> {
        self.at += 1;
        let hole = ShellWordPart::Hole { quoted };
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
            Some('[') => return Err("arithmetic is not supported".to_owned()),
            Some('\'') if !quoted => self.ansi()?,
            Some('"') if !quoted => return Err("translated strings are not supported".to_owned()),
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
    pub(super) fn sum(&mut self) -> ShellParseResult<()> {
        let rest = self.rest();
        let len = rest
            .find(|c: char| !(c.is_ascii_digit() || " +-*/%".contains(c)))
            .unwrap_or(rest.len());
        self.at += len;
        match self.take("))") {
            true => Ok(()),
            false => Err("arithmetic is not supported".to_owned()),
        }
    }

    /// What stands in `$(…)`, `<(…)` and `>(…)`, with its closing mark.
    pub(super) fn substitution(&mut self) -> ShellParseResult<()> {
        let waiting = std::mem::take(&mut self.documents);
        let from = self.at;
        self.deeper(|parser| parser.list(&[]))?;
        self.no_documents()?;
        if !self.take(")") {
            return Err("missing `)`".to_owned());
        }
        self.documents = waiting;
        self.one_line(&self.text[from..self.at])
    }

    pub(super) fn backquotes(&mut self, in_quotes: bool) -> ShellParseResult<()> {
        self.at += 1;
        let from = self.at;
        let mut inside = String::new();
        loop {
            match self.peek() {
                None => return Err("unterminated backquote".to_owned()),
                Some('`') => break,
                Some('\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(c @ ('$' | '`' | '\\')) => inside.push(c),
                        Some('"') if in_quotes => inside.push('"'),
                        Some(c) => inside.extend(['\\', c]),
                        None => return Err("unterminated backquote".to_owned()),
                    }
                }
                Some(c) => inside.push(c),
            }
            self.bump();
        }
        self.one_line(&self.text[from..self.at])?;
        self.at += 1;
        if self.depth >= DEEPEST {
            return Err("nested too deeply".to_owned());
        }
        let script = inner(&inside, self.depth + 1)?;
        self.absorb(script);
        Ok(())
    }

    /// `$'…'`: its end is found, its text is not needed.
    pub(super) fn ansi(&mut self) -> ShellParseResult<()> {
        self.at += 1;
        let from = self.at;
        loop {
            match self.peek() {
                None => return Err("unterminated quote".to_owned()),
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
    pub(super) fn parameter(&mut self, quoted: bool) -> ShellParseResult<()> {
        let unknown = || Err("this expansion is not supported".to_owned());
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
    pub(super) fn parameter_word(&mut self, quoted: bool) -> ShellParseResult<()> {
        let mut pieces = Vec::new();
        loop {
            match self.peek() {
                None => return Err("unterminated expansion".to_owned()),
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
                    return Err("this expansion is not supported".to_owned());
                }
                Some('<' | '>') if self.second() == Some('(') => {
                    return Err("this expansion is not supported".to_owned());
                }
                Some(_) => self.bump(),
            }
        }
    }
}
