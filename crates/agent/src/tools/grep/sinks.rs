//! What becomes of matches.

use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

/// Longer lines are not shown.
const COLUMNS: usize = 500;

/// Whether there is one.
#[derive(Debug)]
pub struct AnyMatchSink(pub bool);

impl Sink for AnyMatchSink {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, _: &SinkMatch<'_>) -> io::Result<bool> {
        self.0 = true;
        Ok(false)
    }
}

/// How many there are, several on a line too.
#[derive(Debug)]
pub struct MatchCountSink<'a> {
    pub matcher: &'a RegexMatcher,
    pub count: u64,
}

impl Sink for MatchCountSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let mut count = 0;
        let _ = self.matcher.find_iter(found.bytes(), |_| {
            count += 1;
            true
        });
        self.count += count.max(1);
        Ok(true)
    }
}

/// The lines, as `rg` writes them.
#[derive(Debug, Default)]
pub struct MatchLines {
    pub numbers: bool,
    pub only: bool,
    pub skip: usize,
    pub most: usize,
    pub bytes: usize,
    pub out: Vec<String>,
    /// Whether lines were left out because they are too many bytes.
    pub is_cut: bool,
    name: Option<String>,
    size: usize,
    /// Something was written of this file, or of any.
    here: bool,
    any: bool,
}

impl MatchLines {
    /// The next file, with the name that stands before its lines.
    pub fn next(&mut self, name: Option<String>) {
        self.name = name;
        self.here = false;
    }

    pub fn is_full(&self) -> bool {
        self.out.len() >= self.most || self.is_cut
    }

    pub fn sink<'a>(&'a mut self, matcher: &'a RegexMatcher) -> MatchLinesSink<'a> {
        MatchLinesSink {
            lines: self,
            matcher,
        }
    }

    fn put(&mut self, line: String) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        if self.size + line.len() > self.bytes {
            self.is_cut = true;
        }
        if !self.is_full() {
            self.size += line.len();
            self.out.push(line);
        }
    }

    fn line(&mut self, bytes: &[u8], number: Option<u64>, sign: char) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let mut line = String::new();
        if let Some(name) = &self.name {
            line += name;
            line.push(sign);
        }
        if let Some(number) = number.filter(|_| self.numbers) {
            line += &number.to_string();
            line.push(sign);
        }
        match text.len() > COLUMNS {
            true if sign == ':' => line += "[Omitted long matching line]",
            true => line += "[Omitted long context line]",
            false => line += text,
        }
        self.here = true;
        self.any = true;
        self.put(line);
    }
}

/// Writes one file's lines.
#[derive(Debug)]
pub struct MatchLinesSink<'a> {
    lines: &'a mut MatchLines,
    matcher: &'a RegexMatcher,
}

impl Sink for MatchLinesSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.between(searcher);
        let first = found.line_number();
        if self.lines.only {
            let mut pieces = Vec::new();
            let bytes = found.bytes();
            let _ = self.matcher.find_iter(bytes, |piece| {
                pieces.push(piece);
                true
            });
            for piece in pieces {
                self.lines.line(&bytes[piece], first, ':');
            }
            return Ok(!self.lines.is_full());
        }
        for (at, line) in found.lines().enumerate() {
            let number = first.map(|first| first + at as u64);
            self.lines.line(line, number, ':');
        }
        Ok(!self.lines.is_full())
    }

    fn context(&mut self, searcher: &Searcher, found: &SinkContext<'_>) -> io::Result<bool> {
        if matches!(found.kind(), SinkContextKind::Before) {
            self.between(searcher);
        }
        self.lines.line(found.bytes(), found.line_number(), '-');
        Ok(!self.lines.is_full())
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.lines.put("--".to_owned());
        Ok(!self.lines.is_full())
    }
}

impl MatchLinesSink<'_> {
    /// Groups of lines of two files are parted as those of one.
    fn between(&mut self, searcher: &Searcher) {
        let around = searcher.before_context() + searcher.after_context() > 0;
        if around && self.lines.any && !self.lines.here {
            self.lines.put("--".to_owned());
        }
    }
}
