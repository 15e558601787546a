//! Markdown of others, kept in its place.
//!
//! Readers of Markdown differ, so nothing is left to their judgement: outside of code, every
//! character that could begin an element, a link, a definition, a formula or an attribute is
//! escaped unless it belongs to something that was understood and is harmless. Links lead to the
//! web or to mail.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::document::html::is_safe;

/// Languages of code blocks that some readers run instead of showing them.
const RUN: &[&str] = &[
    "dataview",
    "dataviewjs",
    "templater",
    "query",
    "button",
    "meta-bind",
    "mermaid",
    "math",
    "latex",
    "tikz",
    "geojson",
    "topojson",
    "stl",
    "plantuml",
    "graphviz",
    "dot",
    "vega",
    "vega-lite",
    "chart",
    "wavedrom",
    "abc",
    "tasks",
    "js-engine",
    "svgbob",
    "markmap",
    "iframe",
    "embed",
];

/// What one change can bring to light is changed in the next round; nobody writes more by chance.
const ROUNDS: usize = 6;

/// The text without what would break out of its place in a document.
pub(super) fn sanitize_markdown(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| {
        !matches!(
            byte,
            b'<' | b'#'
                | b'='
                | b'-'
                | b'`'
                | b'~'
                | b'!'
                | b'%'
                | b':'
                | b'['
                | b'$'
                | b'{'
                | b'\t'
        )
    };
    if text.bytes().all(plain) && !text.contains("    ") {
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
    let mut edits = MarkdownEdits {
        text,
        all: Vec::new(),
        close: None,
        word: (0, None),
    };
    let events = Parser::new_ext(text, options).into_offset_iter();
    // An address that is given at one place would count at all others.
    for (_, definition) in events.reference_definitions().iter() {
        edits.put(definition.span.start, 0, "\\");
    }
    // Quotations and lists that are open, and whether a block of code is.
    let (mut containers, mut in_code) = (0usize, false);
    let mut fences = Vec::new();
    for (event, range) in events {
        match event {
            Event::Html(_) | Event::InlineHtml(_) => edits.escape(range),
            Event::Text(_) if !in_code => edits.text(range),
            Event::Code(_) => edits.one_line(range, containers > 0),
            Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item) => containers += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item) => containers -= 1,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Start(Tag::Link { dest_url, .. }) if !is_safe(&dest_url) => {
                edits.unlink(range.start);
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) => {
                in_code = true;
                match containers {
                    0 => edits.fenced(range),
                    _ => edits.escape(range),
                }
            }
            Event::Start(Tag::Heading { level, .. }) if first => edits.lower(range, level),
            Event::Start(Tag::Image { .. }) => edits.unshow(range),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                in_code = true;
                edits.fence(range.clone(), &info);
                if containers == 0 {
                    fences.push(range);
                }
            }
            _ => {}
        }
    }
    edits.tabs(&fences);
    edits.done()
}

/// Where an address begins in this text, the place of its sign that makes it one.
fn address(text: &[u8]) -> Option<usize> {
    let starts = [
        (&b"http://"[..], 4),
        (b"https://", 5),
        (b"ftp://", 3),
        (b"www.", 3),
    ];
    let begins = |start: &[u8]| {
        let head = text.get(..start.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(start))
    };
    let found = starts.into_iter().find(|(start, _)| begins(start));
    found.map(|(_, sign)| sign)
}

/// What to put where: a place, how many bytes go, and what comes.
struct MarkdownEdits<'a> {
    text: &'a str,
    all: Vec<(usize, usize, String)>,
    /// What closes the last block of code.
    close: Option<String>,
    /// The last word with an address: where it ends, and its last tick, backslash or bracket.
    word: (usize, Option<usize>),
}

impl MarkdownEdits<'_> {
    fn put(&mut self, at: usize, gone: usize, instead: &str) {
        self.all.push((at, gone, instead.to_owned()));
    }

    /// Whether backslashes before a place escape what stands there.
    fn is_escaped(&self, at: usize) -> bool {
        let before = self.text.as_bytes()[..at].iter().rev();
        before.take_while(|byte| **byte == b'\\').count() % 2 == 1
    }

    /// Code within a line stays on one line: some readers begin a table in the middle of it, and
    /// what was code is then text. An end of line means a blank there anyway.
    fn one_line(&mut self, range: Range<usize>, in_container: bool) {
        let bytes = self.text.as_bytes();
        let mut at = range.start;
        while at < range.end {
            let is_end = |byte: u8| matches!(byte, b'\n' | b'\r');
            if !is_end(bytes[at]) {
                at += 1;
                continue;
            }
            let gone = |byte: &&u8| {
                is_end(**byte) || matches!(**byte, b' ' | b'\t') || (in_container && **byte == b'>')
            };
            let length = bytes[at..range.end].iter().take_while(gone).count();
            self.put(at, length, " ");
            at += length;
        }
    }

    /// Text: what a reader might take for more than text is escaped.
    fn text(&mut self, range: Range<usize>) {
        // A character that was written as an entity.
        if self.text[range.clone()].starts_with('&') {
            return;
        }
        for at in range {
            let (byte, behind) = (self.text.as_bytes()[at], self.text.as_bytes().get(at + 1));
            let means = match (byte, behind) {
                (b'<', behind) => !behind.is_none_or(|it| {
                    it.is_ascii_whitespace() || it.is_ascii_digit() || *it == b'='
                }),
                (b'$' | b'{', _) => true,
                (b'%', behind) => behind == Some(&b'%') || self.text[..at].ends_with('%'),
                (b'[', Some(b'^' | b'[')) | (b'!', Some(b'[')) | (b']', Some(b'(' | b':')) => true,
                (b'[', _) => self.text[..at].ends_with('['),
                _ => false,
            };
            match (means, byte, self.is_escaped(at)) {
                // A reader may lose the backslash before it; an entity stays one.
                (true, b'<', true) => self.put(at - 1, 2, "&lt;"),
                (true, b'<', false) => self.put(at, 1, "&lt;"),
                (true, _, false) => self.put(at, 0, "\\"),
                _ => {}
            }
            if matches!(byte | 0x20, b'h' | b'f' | b'w')
                && let Some(sign) = address(&self.text.as_bytes()[at..])
                && self.swallows(at)
            {
                self.put(at + sign, 0, "\\");
            }
        }
    }

    /// Whether the word that goes on here holds a tick, a backslash or a bracket: some readers
    /// make links of addresses before they look for code and escapes, and swallow these.
    fn swallows(&mut self, at: usize) -> bool {
        if at >= self.word.0 {
            let rest = &self.text.as_bytes()[at..];
            let ends = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'<';
            let end = rest.iter().position(ends).unwrap_or(rest.len());
            let means = |byte: &u8| matches!(byte, b'`' | b'\\' | b'[');
            let last = rest[..end].iter().rposition(means);
            self.word = (at + end, last.map(|last| at + last));
        }
        self.word.1.is_some_and(|last| last >= at)
    }

    /// A link to where a document may not lead becomes text.
    fn unlink(&mut self, at: usize) {
        match self.text[at..].starts_with('<') {
            true => self.put(at, 1, "&lt;"),
            false => self.put(at, 0, "\\"),
        }
    }

    /// Whether a block is code by its indentation depends on what stands around it, and readers
    /// count differently: fences say it clearly.
    fn fenced(&mut self, range: Range<usize>) {
        let start = self.text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        let block = self.text[start..range.end].trim_end();
        let end = start + block.len();
        let fence = "`".repeat(super::longest(block, b'`').max(2) + 1);
        self.put(start, 0, &format!("{fence}text\n"));
        self.put(end, 0, &format!("\n{fence}"));
    }

    /// A tab reaches less far within a quotation: what it means must not depend on that. Code
    /// between fences that stand alone keeps its tabs.
    fn tabs(&mut self, fences: &[Range<usize>]) {
        let text = self.text;
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let start = at;
            at += line.len();
            let is_lead = |c: char| " \t>*+-.)".contains(c) || c.is_ascii_digit();
            let lead = line.find(|c| !is_lead(c)).unwrap_or(line.len());
            if !line[..lead].contains('\t') {
                continue;
            }
            let fenced = fences
                .get(fences.partition_point(|fence| fence.end <= start))
                .is_some_and(|fence| fence.start <= start);
            if fenced && !line[lead..].starts_with(['`', '~']) {
                continue;
            }
            let mut column = 0;
            for (place, c) in line[..lead].char_indices() {
                let width = if c == '\t' { 4 - column % 4 } else { 1 };
                if c == '\t' {
                    self.put(start + place, 1, &" ".repeat(width));
                }
                column += width;
            }
        }
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
        // Braces hold attributes, and languages that some readers run.
        let is_odd = info.contains(|c: char| !c.is_alphanumeric() && !"+#._-:=, ".contains(c));
        if is_odd && info.starts_with("text ") {
            // Shown already.
        } else if is_odd || RUN.iter().any(|run| word.eq_ignore_ascii_case(run)) {
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
        // What is put in comes before what takes the place of something.
        self.all.sort_by_key(|(at, gone, _)| (*at, *gone));
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
        assert_eq!(
            sanitize_markdown("a <b>c</b> `<d>`"),
            "a &lt;b>c&lt;/b> `<d>`"
        );
        assert_eq!(sanitize_markdown("<!-- x -->\n\ny"), "&lt;!-- x -->\n\ny");
        assert_eq!(sanitize_markdown("```\n<x>\n```"), "```\n<x>\n```");
        assert_eq!(
            sanitize_markdown("1 < 2 and <https://a.example>"),
            "1 < 2 and <https://a.example>"
        );
    }

    #[test]
    fn code_within_a_line_stays_on_one_line() {
        let table = "a `| <img src=x> |\n|---|\n| <script> |` b";
        assert_eq!(
            sanitize_markdown(table),
            "a `| <img src=x> | |---| | <script> |` b"
        );
    }

    #[test]
    fn headings_go_below_those_of_turns() {
        assert_eq!(
            sanitize_markdown("# a\n\n### b\n\n###### c"),
            "### a\n\n##### b\n\n###### c"
        );
        assert_eq!(sanitize_markdown("a\n===\n\nb"), "### a\n\nb");
        assert_eq!(sanitize_markdown("a\n---\nb"), "#### a\nb");
        assert_eq!(sanitize_markdown("```\n# a\n```\n#b"), "```\n# a\n```\n#b");
    }

    #[test]
    fn images_become_links() {
        assert_eq!(
            sanitize_markdown("![a](https://a.example/x.png)!"),
            "[a](https://a.example/x.png)!"
        );
    }

    #[test]
    fn what_is_within_other_things_is_changed_too() {
        assert_eq!(
            sanitize_markdown("[![a](https://b)](https://c)"),
            "\\[[a](https://b)\\](https://c)"
        );
        assert_eq!(
            sanitize_markdown("[x]: https://a.example\n\n![x]"),
            "\\[x\\]: https://a.example\n\n[x]"
        );
    }

    #[test]
    fn code_that_is_open_is_closed_and_code_that_runs_is_shown() {
        assert_eq!(sanitize_markdown("a\n```rust\nb"), "a\n```rust\nb\n```");
        assert_eq!(sanitize_markdown("~~~~\nb\n```"), "~~~~\nb\n```\n~~~~");
        assert_eq!(
            sanitize_markdown("```dataviewjs\nx\n```"),
            "```text dataviewjs\nx\n```"
        );
        assert_eq!(sanitize_markdown("```sh\nx\n```\n"), "```sh\nx\n```\n");
        assert_eq!(sanitize_markdown("```"), "```\n```");
    }

    #[test]
    fn links_lead_to_the_web_or_nowhere() {
        for there in [
            "[a](https://b.example)",
            "<mailto:a@b.example>",
            "[a](HTTP://b.example \"t\")",
        ] {
            assert_eq!(sanitize_markdown(there), there);
        }
        for nowhere in [
            "[a](javascript:x())",
            "[a](java&#115;cript:x())",
            "[a](JavaScript&#58;x())",
            "[a](<javascript:x()>)",
            "[a](data:text/html,x)",
            "[a](file:///etc/passwd)",
            "[a](src/main.rs)",
            "[a](//b.example)",
        ] {
            assert_eq!(
                sanitize_markdown(nowhere),
                format!("\\{}", nowhere.replace("](", "\\](").replace("<", "&lt;"))
            );
        }
        assert_eq!(sanitize_markdown("<javascript:x()>"), "&lt;javascript:x()>");
        assert_eq!(
            sanitize_markdown("[a](java\tscript:x())"),
            "[a\\](java\tscript:x())"
        );
    }

    #[test]
    fn what_other_readers_understand_is_text() {
        assert_eq!(
            sanitize_markdown("costs $5 and $$x$$"),
            "costs \\$5 and \\$\\$x\\$\\$"
        );
        assert_eq!(sanitize_markdown("a{: onclick=x}"), "a\\{: onclick=x}");
        assert_eq!(
            sanitize_markdown("![[x]] [[y]] %%z%% <% w %>"),
            "\\!\\[\\[x]] \\[\\[y]] \\%\\%z\\%\\% &lt;% w %>"
        );
        assert_eq!(sanitize_markdown("[^1]: x"), "\\[^1\\]: x");
        assert_eq!(sanitize_markdown(r"\$ \{ \<b>"), r"\$ \{ &lt;b>");
        assert_eq!(sanitize_markdown("`$x {y} <b>`"), "`$x {y} <b>`");
        assert_eq!(sanitize_markdown("é<é␀b $日"), "é&lt;é␀b \\$日");
    }

    #[test]
    fn an_address_swallows_no_code_and_no_escape() {
        assert_eq!(
            sanitize_markdown("https://a.example/`<b>`"),
            r"https\://a.example/`<b>`"
        );
        assert_eq!(
            sanitize_markdown(r"WWW.a.example/\[x]"),
            r"WWW\.a.example/\[x]"
        );
        let plain = "see https://a.example/x?y=1 and `<b>`";
        assert_eq!(sanitize_markdown(plain), plain);
    }

    #[test]
    fn code_that_runs_elsewhere_is_shown() {
        for info in ["mermaid", "Mermaid", "{r}", "{.python onclick=x}", "math"] {
            let tamed = sanitize_markdown(&format!("```{info}\nx\n```")).into_owned();
            assert_eq!(tamed, format!("```text {info}\nx\n```"));
        }
        for info in ["rust", "c++", "c#", "objective-c", "js title=a.js"] {
            let text = format!("```{info}\nx\n```");
            assert_eq!(sanitize_markdown(&text), text);
        }
    }

    #[test]
    fn code_by_indentation_gets_fences() {
        assert_eq!(
            sanitize_markdown("a\n\n    <b>\n\n    c\n\nd"),
            "a\n\n```text\n    <b>\n\n    c\n```\n\nd"
        );
        assert_eq!(sanitize_markdown("- a\n\n      <b>"), "- a\n\n      &lt;b>");
    }

    #[test]
    fn a_tab_means_the_same_within_a_quotation() {
        let open = "```\n<b>\n\t```\n<script>\n```";
        assert_eq!(sanitize_markdown(open), "```\n<b>\n    ```\n<script>\n```");
        let make = "```make\nall:\n\tcc\n```";
        assert_eq!(sanitize_markdown(make), make);
        assert!(!sanitize_markdown("10. ```\n\t<script>").contains('\t'));
    }
}
