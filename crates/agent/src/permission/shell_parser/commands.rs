//! Commands and what joins them: lists, pipelines, loops, assignments, redirections.

use super::{
    HereDocument, RESERVED, ShellAssignment, ShellCommandPart, ShellParseResult, ShellParser,
    ShellRedirect, ShellWord, is_name,
};

impl ShellParser<'_> {
    /// Commands, up to one of these words, a closing mark, or the end.
    pub(super) fn list(&mut self, ends: &[&str]) -> ShellParseResult<usize> {
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
    pub(super) fn some(&mut self, ends: &[&str]) -> ShellParseResult<()> {
        match self.list(ends)? {
            0 => Err("missing command".to_owned()),
            _ => Ok(()),
        }
    }

    pub(super) fn and_or(&mut self) -> ShellParseResult<()> {
        loop {
            self.pipeline()?;
            self.blanks();
            if !self.take("&&") && !self.take("||") {
                return Ok(());
            }
            self.newlines()?;
        }
    }

    pub(super) fn pipeline(&mut self) -> ShellParseResult<()> {
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
                    return Err("`time` has an unknown option".to_owned());
                }
                if self.bare().is_empty() && !self.looks_at("(") {
                    return Err("`time` has no command".to_owned());
                }
            }
            self.blanks();
            while is_first && self.keyword("!") {
                self.blanks();
            }
            let start = self.script.parts.len();
            self.deeper(Self::command)?;
            // What a group is given, each command in it may read.
            let is_group = |part: &ShellCommandPart| part.words.is_empty() && part.fed;
            if !is_first || self.script.parts[start..].iter().any(is_group) {
                self.feed(start);
            }
            is_first = false;
            self.blanks();
            if self.looks_at("||") || !(self.take("|&") || self.take("|")) {
                return Ok(());
            }
            self.newlines()?;
        }
    }

    pub(super) fn command(&mut self) -> ShellParseResult<()> {
        if self.looks_at("((") {
            return Err("arithmetic is not supported".to_owned());
        }
        if self.take("(") {
            self.some(&[])?;
            if !self.take(")") {
                return Err("missing `)`".to_owned());
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
                self.script.repeats = true;
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
            word if RESERVED.contains(&word) => Err(format!("`{word}` is not supported here")),
            _ => self.simple(),
        }
    }

    pub(super) fn conditional(&mut self) -> ShellParseResult<()> {
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

    pub(super) fn body(&mut self) -> ShellParseResult<()> {
        self.expect("do")?;
        self.some(&["done"])?;
        self.expect("done")?;
        self.redirects_only()
    }

    pub(super) fn each(&mut self) -> ShellParseResult<()> {
        self.at += self.bare().len();
        self.blanks();
        if self.looks_at("((") {
            return Err("arithmetic is not supported".to_owned());
        }
        let name = self.bare().to_owned();
        if !is_name(&name) {
            return Err("a loop variable is not a plain name".to_owned());
        }
        self.at += name.len();
        let mut part = ShellCommandPart::default();
        part.assigns.push(ShellAssignment {
            name,
            lasting: true,
        });
        self.script.repeats = true;
        let place = self.script.parts.len();
        self.script.parts.push(part);
        self.newlines()?;
        if self.keyword("in") {
            loop {
                self.blanks();
                if self.newline()? || (!self.looks_at(";;") && self.take(";")) {
                    break;
                }
                match self.word()? {
                    Some(word) => self.script.parts[place].values.push(word),
                    None => return Err(self.unexpected()),
                }
            }
        } else {
            self.take(";");
        }
        self.newlines()?;
        self.body()
    }

    pub(super) fn case(&mut self) -> ShellParseResult<()> {
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
    pub(super) fn test(&mut self) -> ShellParseResult<()> {
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
                    return Err("this test is not supported".to_owned());
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

    pub(super) fn function(&mut self, name: &str) -> ShellParseResult<()> {
        let is_plain = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.:".contains(c));
        if name.is_empty() || !is_plain || RESERVED.contains(&name) {
            return Err("a function name is not plain".to_owned());
        }
        self.script.functions.push(name.to_owned());
        self.script.repeats = true;
        self.newlines()?;
        let is_group = self.looks_at("(") && !self.looks_at("((");
        let starts = ["{", "if", "for", "while", "until", "case", "select", "[["];
        if !is_group && !starts.contains(&self.bare()) {
            return Err("a function has no body".to_owned());
        }
        self.deeper(Self::command)
    }

    /// What may follow a group.
    pub(super) fn redirects_only(&mut self) -> ShellParseResult<()> {
        let mut part = ShellCommandPart::default();
        loop {
            self.blanks();
            if !self.redirect(&mut part)? {
                break;
            }
        }
        if part != ShellCommandPart::default() {
            self.script.parts.push(part);
        }
        let follows = self.peek().is_none_or(|c| " \t\n;&|)".contains(c));
        match follows {
            true => Ok(()),
            false => Err(self.unexpected()),
        }
    }

    pub(super) fn simple(&mut self) -> ShellParseResult<()> {
        let mut part = ShellCommandPart::default();
        let start = self.script.parts.len();
        loop {
            self.blanks();
            if self.redirect(&mut part)? {
                continue;
            }
            if part.words.is_empty()
                && let Some(assign) = self.assign(&mut part.values)?
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
                        return Err("unexpected `(` after a word".to_owned());
                    }
                    return self.function(&word.raw);
                }
            }
            part.words.push(word);
        }
        if self.looks_at("(") {
            return Err("unexpected `(` after a word".to_owned());
        }
        if part == ShellCommandPart::default() {
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
    pub(super) fn assign(
        &mut self,
        values: &mut Vec<ShellWord>,
    ) -> ShellParseResult<Option<ShellAssignment>> {
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
            return Err("array indexes are not supported".to_owned());
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
                    return Err("array indexes are not supported".to_owned());
                }
                match self.word()? {
                    Some(word) => values.push(word),
                    None => return Err(self.unexpected()),
                }
            }
        } else {
            values.extend(self.word()?);
        }
        Ok(Some(ShellAssignment {
            name: name.to_owned(),
            lasting: false,
        }))
    }

    /// Takes a redirection, if one stands here.
    pub(super) fn redirect(&mut self, part: &mut ShellCommandPart) -> ShellParseResult<bool> {
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
                return Err("a redirection uses a variable as file descriptor".to_owned());
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
            part.fed = true;
            return self.here(*sign == "<<-").map(|()| true);
        }
        let Some(target) = self.word()? else {
            return Err("a redirection has no target".to_owned());
        };
        part.fed |= sign.starts_with('<') && target.raw != "/dev/null";
        match *sign {
            "<<<" => {
                part.values.push(target);
                return Ok(true);
            }
            "<&" | ">&" => {
                let known = target.text().unwrap_or_default();
                let number = known.strip_suffix('-').unwrap_or(&known);
                if !known.is_empty() && number.chars().all(|c| c.is_ascii_digit()) {
                    return Ok(true);
                }
                if *sign == "<&" || digits > 0 {
                    return Err("unknown file descriptor".to_owned());
                }
            }
            _ => {}
        }
        part.redirects.push(ShellRedirect {
            writes: *sign != "<",
            target,
        });
        Ok(true)
    }

    pub(super) fn here(&mut self, tabs: bool) -> ShellParseResult<()> {
        let start = self.at;
        let before = self.script.parts.len();
        let Some(word) = self.word()? else {
            return Err("a here-document has no delimiter".to_owned());
        };
        let raw = &self.text[start..self.at];
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let inner = raw.trim_matches(['\'', '"']);
        let quoted = match raw.len() - inner.len() {
            0 => raw.starts_with('\\'),
            2 => true,
            _ => return Err("the delimiter of a here-document is not a plain word".to_owned()),
        };
        let inner = inner.strip_prefix('\\').unwrap_or(inner);
        if inner.is_empty() || !inner.chars().all(is_plain) || self.script.parts.len() != before {
            return Err("the delimiter of a here-document is not a plain word".to_owned());
        }
        let Some(end) = word.text() else {
            return Err("the delimiter of a here-document is not a plain word".to_owned());
        };
        self.documents.push(HereDocument { end, quoted, tabs });
        Ok(())
    }
}
