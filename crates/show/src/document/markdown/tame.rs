//! Markdown of others, kept in its place.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag};

/// Languages of code blocks that some readers run instead of showing them.
const RUN: &[&str] = &[
    "dataview",
    "dataviewjs",
    "templater",
    "query",
    "button",
    "meta-bind",
];

/// The text without what would break out of its place in a document.
pub(super) fn tame(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| !matches!(byte, b'<' | b'#' | b'=' | b'-' | b'`' | b'~' | b'!' | b'%');
    if text.bytes().all(plain) {
        return Cow::Borrowed(text);
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut out = Taming::new(text);
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Html(_) | Event::InlineHtml(_) => out.escape(range),
            Event::Start(Tag::Heading { level, .. }) => out.lower(range, level),
            Event::Start(Tag::Image { .. }) => out.unshow(range),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                out.fence(range, &info);
            }
            _ => {}
        }
    }
    out.done()
}

/// A text and what to put where. Places only grow.
struct Taming<'a> {
    text: &'a str,
    out: String,
    from: usize,
    /// The line below a heading, which is to go.
    under: Option<Range<usize>>,
    /// What closes the last block of code.
    close: Option<String>,
}

impl<'a> Taming<'a> {
    fn new(text: &'a str) -> Taming<'a> {
        Taming {
            text,
            out: String::new(),
            from: 0,
            under: None,
            close: None,
        }
    }

    fn put(&mut self, range: Range<usize>, instead: &str) {
        if let Some(under) = self.under.take_if(|under| under.start < range.start) {
            self.out.push_str(&self.text[self.from..under.start]);
            self.from = under.end;
        }
        if range.start < self.from {
            return;
        }
        self.out.push_str(&self.text[self.from..range.start]);
        self.out.push_str(instead);
        self.from = range.end;
    }

    /// Raw HTML becomes text.
    fn escape(&mut self, range: Range<usize>) {
        let at = range.start;
        for (place, _) in self.text[range].match_indices('<') {
            self.put(at + place..at + place + 1, "&lt;");
        }
    }

    /// Turns are headings of the second level; what stands in them goes below.
    fn lower(&mut self, range: Range<usize>, level: HeadingLevel) {
        let marks = self.text[range.start..]
            .bytes()
            .take_while(|byte| *byte == b'#')
            .count();
        if marks > 0 {
            let wanted = (level as usize + 2).min(6);
            self.put(range.start..range.start + marks, &"#".repeat(wanted));
            return;
        }
        // Underlined: the line below goes, and marks come before.
        let heading = self.text[range.clone()].trim_end();
        let Some(line) = heading.rfind('\n') else {
            return;
        };
        let start = range.start;
        let wanted = "#".repeat(level as usize + 2);
        let one_line = !heading[..line].contains('\n');
        if one_line {
            self.put(start..start, &format!("{wanted} "));
            self.under = Some(start + line..start + heading.len());
        }
    }

    /// An image becomes a link to it: nothing is loaded by looking.
    fn unshow(&mut self, range: Range<usize>) {
        if self.text[range.clone()].starts_with('!') {
            self.put(range.start..range.start + 1, "");
        }
    }

    /// A block that is run is shown instead; one that is not closed is closed.
    fn fence(&mut self, range: Range<usize>, info: &str) {
        let block = &self.text[range.clone()];
        let mark = block.chars().next().unwrap_or('`');
        let ticks = block.chars().take_while(|c| *c == mark).count();
        let word = info.split_whitespace().next().unwrap_or_default();
        if RUN.iter().any(|run| word.eq_ignore_ascii_case(run)) {
            let at = range.start + ticks;
            self.put(at..at, "text ");
        }
        let last = block.trim_end().rsplit('\n').next().unwrap_or_default();
        let last = last.trim_matches([' ', '>', '\t']);
        let closed = block.trim_end().contains('\n')
            && last.chars().count() >= ticks
            && last.chars().all(|c| c == mark);
        if !closed && range.end >= self.text.trim_end().len() {
            self.close = Some(mark.to_string().repeat(ticks));
        }
    }

    fn done(mut self) -> Cow<'a, str> {
        let end = self.text.len();
        self.put(end..end, "");
        if self.out == self.text && self.close.is_none() {
            return Cow::Borrowed(self.text);
        }
        if let Some(close) = self.close {
            if !self.out.ends_with('\n') {
                self.out.push('\n');
            }
            self.out.push_str(&close);
        }
        Cow::Owned(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_html_becomes_text_and_code_stays() {
        assert_eq!(tame("a <b>c</b> `<d>`"), "a &lt;b>c&lt;/b> `<d>`");
        assert_eq!(tame("<!-- x -->\n\ny"), "&lt;!-- x -->\n\ny");
        assert_eq!(tame("```\n<x>\n```"), "```\n<x>\n```");
        assert_eq!(
            tame("1 < 2 and <https://a.example>"),
            "1 < 2 and <https://a.example>"
        );
    }

    #[test]
    fn headings_go_below_those_of_turns() {
        assert_eq!(
            tame("# a\n\n### b\n\n###### c"),
            "### a\n\n##### b\n\n###### c"
        );
        assert_eq!(tame("a\n===\n\nb"), "### a\n\nb");
        assert_eq!(tame("a\n---\nb"), "#### a\nb");
        assert_eq!(tame("```\n# a\n```\n#b"), "```\n# a\n```\n#b");
    }

    #[test]
    fn images_become_links() {
        assert_eq!(
            tame("![a](https://a.example/x.png)!"),
            "[a](https://a.example/x.png)!"
        );
    }

    #[test]
    fn code_that_is_open_is_closed_and_code_that_runs_is_shown() {
        assert_eq!(tame("a\n```rust\nb"), "a\n```rust\nb\n```");
        assert_eq!(tame("~~~~\nb\n```"), "~~~~\nb\n```\n~~~~");
        assert_eq!(tame("```dataviewjs\nx\n```"), "```text dataviewjs\nx\n```");
        assert_eq!(tame("```sh\nx\n```\n"), "```sh\nx\n```\n");
        assert_eq!(tame("```"), "```\n```");
    }
}
