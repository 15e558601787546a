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

/// What one change can bring to light is changed in the next round; nobody writes more by chance.
const ROUNDS: usize = 6;

/// The text without what would break out of its place in a document.
pub(super) fn tame(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| {
        !matches!(
            byte,
            b'<' | b'#' | b'=' | b'-' | b'`' | b'~' | b'!' | b'%' | b':'
        )
    };
    if text.bytes().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut tamed = Cow::Borrowed(text);
    for round in 0..ROUNDS {
        match changed(&tamed, round == 0) {
            None => return tamed,
            Some(new) => tamed = Cow::Owned(new),
        }
    }
    // A riddle: shown as it is.
    let fence = "`".repeat(super::longest(text, b'`').max(2) + 1);
    Cow::Owned(format!("{fence}text\n{text}\n{fence}"))
}

/// The text after one round; `None` if there is nothing to change.
fn changed(text: &str, first: bool) -> Option<String> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut edits = Edits {
        text,
        all: Vec::new(),
        close: None,
    };
    let events = Parser::new_ext(text, options).into_offset_iter();
    // An address that is given at one place would count at all others.
    for (_, definition) in events.reference_definitions().iter() {
        edits.put(definition.span.start, 0, "\\");
    }
    for (event, range) in events {
        match event {
            Event::Html(_) | Event::InlineHtml(_) => edits.escape(range),
            Event::Start(Tag::Heading { level, .. }) if first => edits.lower(range, level),
            Event::Start(Tag::Image { .. }) => edits.unshow(range),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                edits.fence(range, &info);
            }
            _ => {}
        }
    }
    edits.done()
}

/// What to put where: a place, how many bytes go, and what comes.
struct Edits<'a> {
    text: &'a str,
    all: Vec<(usize, usize, String)>,
    /// What closes the last block of code.
    close: Option<String>,
}

impl Edits<'_> {
    fn put(&mut self, at: usize, gone: usize, instead: &str) {
        self.all.push((at, gone, instead.to_owned()));
    }

    /// Raw HTML becomes text.
    fn escape(&mut self, range: Range<usize>) {
        for (place, _) in self.text[range.clone()].match_indices('<') {
            self.put(range.start + place, 1, "&lt;");
        }
    }

    /// Turns are headings of the second level; what stands in them goes below.
    fn lower(&mut self, range: Range<usize>, level: HeadingLevel) {
        let heading = &self.text[range.clone()];
        let marks = heading.bytes().take_while(|byte| *byte == b'#').count();
        let wanted = "#".repeat((level as usize + 2).min(6));
        if marks > 0 {
            return self.put(range.start, marks, &wanted);
        }
        // Underlined: the line below goes, and marks come before.
        let heading = heading.trim_end();
        let Some(line) = heading.rfind('\n') else {
            return;
        };
        if !heading[..line].contains('\n') {
            self.put(range.start, 0, &format!("{wanted} "));
            self.put(range.start + line, heading.len() - line, "");
        }
    }

    /// An image becomes a link to it: nothing is loaded by looking.
    fn unshow(&mut self, range: Range<usize>) {
        if self.text[range.clone()].starts_with('!') {
            self.put(range.start, 1, "");
        }
    }

    /// A block that is run is shown instead; one that is not closed is closed.
    fn fence(&mut self, range: Range<usize>, info: &str) {
        let block = &self.text[range.clone()];
        let mark = block.chars().next().unwrap_or('`');
        let ticks = block.chars().take_while(|c| *c == mark).count();
        let word = info.split_whitespace().next().unwrap_or_default();
        if RUN.iter().any(|run| word.eq_ignore_ascii_case(run)) {
            self.put(range.start + ticks, 0, "text ");
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

    fn done(mut self) -> Option<String> {
        if self.all.is_empty() && self.close.is_none() {
            return None;
        }
        self.all.sort_by_key(|(at, ..)| *at);
        let mut out = String::with_capacity(self.text.len() + 64);
        let mut from = 0;
        for (at, gone, instead) in &self.all {
            if *at >= from {
                out.push_str(&self.text[from..*at]);
                out.push_str(instead);
                from = at + gone;
            }
        }
        out.push_str(&self.text[from..]);
        if let Some(close) = self.close {
            if !out.ends_with('\n') {
                out.push('\n');
            }
            out.push_str(&close);
        }
        Some(out)
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
    fn what_is_within_other_things_is_changed_too() {
        assert_eq!(tame("[![a](b)](c)"), "[[a](b)](c)");
        assert_eq!(
            tame("[x]: https://a.example\n\n![x]"),
            "\\[x]: https://a.example\n\n[x]"
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
