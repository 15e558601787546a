//! Markdown as safe HTML.
//!
//! The parser's events are written tag by tag from our own literals. Raw HTML stands in the
//! page as text. Links go to the web or to mail and nowhere else; images become links, so
//! nothing is requested.

use std::io;

use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd,
    TextMergeStream,
};

use super::code;
use super::escape::HtmlWriter;

/// Writes Markdown.
pub(crate) fn markdown(html: &mut HtmlWriter<'_>, text: &str) -> io::Result<()> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut prose = ProseWriter {
        html,
        links: Vec::new(),
        code: None,
        columns: Vec::new(),
        column: 0,
        head: false,
    };
    for event in TextMergeStream::new(Parser::new_ext(text, options)) {
        prose.take(event)?;
    }
    Ok(())
}

/// Writes text as it was typed, with its addresses as links.
pub(crate) fn typed(html: &mut HtmlWriter<'_>, text: &str) -> io::Result<()> {
    let mut rest = text;
    while let Some(at) = address(rest) {
        html.text(&rest[..at])?;
        let end = at + length(&rest[at..]);
        let url = &rest[at..end];
        if open_link(html, url)? {
            html.text(url)?;
            html.raw("</a>")?;
        } else {
            html.text(url)?;
        }
        rest = &rest[end..];
    }
    html.text(rest)
}

/// Where an address begins.
fn address(text: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text[from..].find("http").map(|at| from + at) {
        let rest = &text[at..];
        let scheme = ["https://", "http://"]
            .iter()
            .find(|scheme| rest.starts_with(*scheme));
        let inside = text[..at]
            .chars()
            .next_back()
            .is_some_and(|c| c.is_alphanumeric());
        if let Some(scheme) = scheme
            && !inside
            && rest[scheme.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '[')
        {
            return Some(at);
        }
        from = at + 4;
    }
    None
}

/// How long the address at the start of a text is.
fn length(text: &str) -> usize {
    let ends = |c: char| {
        c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"' | '`' | '|' | '\\' | '^')
    };
    let url = &text[..text.find(ends).unwrap_or(text.len())];
    let mut url = url.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', '_']);
    // A bracket that was opened before the address does not belong to it.
    for (open, close) in [('(', ')'), ('[', ']'), ('{', '}')] {
        while url.ends_with(close) && url.matches(close).count() > url.matches(open).count() {
            url = &url[..url.len() - 1];
        }
    }
    url.len()
}

/// Opens a link, if it goes somewhere a page may lead to.
fn open_link(html: &mut HtmlWriter<'_>, url: &str) -> io::Result<bool> {
    if !is_safe(url) {
        return Ok(false);
    }
    html.raw("<a rel=\"noopener noreferrer\" href=\"")?;
    html.text(url)?;
    html.raw("\">")?;
    Ok(true)
}

/// Whether a page may lead there: to the web or to mail.
pub(crate) fn is_safe(url: &str) -> bool {
    let schemes = ["https://", "http://", "mailto:"];
    let fits = |scheme: &&str| {
        let start = url.get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    schemes.iter().any(fits) && !url.contains(|c: char| c.is_control())
}

struct ProseWriter<'h, 'w, 'e> {
    html: &'h mut HtmlWriter<'w>,
    /// Open links; `None` where the address was refused.
    links: Vec<Option<CowStr<'e>>>,
    /// The language of the code block that is open.
    code: Option<CowStr<'e>>,
    columns: Vec<Alignment>,
    column: usize,
    head: bool,
}

impl<'e> ProseWriter<'_, '_, 'e> {
    fn take(&mut self, event: Event<'e>) -> io::Result<()> {
        match event {
            Event::Start(tag) => self.open(tag),
            Event::End(tag) => self.close(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => {
                self.html.raw("<code>")?;
                self.html.text(&text)?;
                self.html.raw("</code>")
            }
            // Raw HTML is shown, not used.
            Event::Html(text) | Event::InlineHtml(text) => self.html.text(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.html.text(&text),
            Event::FootnoteReference(text) => self.html.text(&text),
            Event::SoftBreak | Event::HardBreak => self.html.raw("<br>\n"),
            Event::Rule => self.html.raw("<hr>\n"),
            Event::TaskListMarker(done) => self.html.raw(if done { "☑ " } else { "☐ " }),
        }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        match &self.code {
            Some(language) if &**language == "diff" || &**language == "patch" => {
                diff(self.html, text)
            }
            Some(language) => {
                let name = language.split([' ', ',', '{']).next().unwrap_or_default();
                code::write(self.html, name, text)
            }
            None if !self.links.is_empty() => self.html.text(text),
            None => typed(self.html, text),
        }
    }

    fn open(&mut self, tag: Tag<'e>) -> io::Result<()> {
        match tag {
            Tag::Paragraph => self.html.raw("<p>"),
            Tag::Heading { level, .. } => self.html.raw(heading(level).0),
            Tag::BlockQuote(_) => self.html.raw("<blockquote>"),
            Tag::CodeBlock(kind) => self.open_code(kind),
            Tag::List(None) => self.html.raw("<ul>\n"),
            Tag::List(Some(1)) => self.html.raw("<ol>\n"),
            Tag::List(Some(start)) => {
                self.html.raw("<ol start=\"")?;
                self.html.text(&start.to_string())?;
                self.html.raw("\">\n")
            }
            Tag::Item => self.html.raw("<li>"),
            Tag::Table(columns) => {
                self.columns = columns;
                self.html.raw("<div class=\"wide\"><table>")
            }
            Tag::TableHead => {
                (self.head, self.column) = (true, 0);
                self.html.raw("<thead><tr>")
            }
            Tag::TableRow => {
                self.column = 0;
                self.html.raw("<tr>")
            }
            Tag::TableCell => {
                let side = self.columns.get(self.column).copied();
                self.column += 1;
                self.html.raw(match (self.head, side) {
                    (true, Some(Alignment::Right)) => "<th class=\"r\">",
                    (true, Some(Alignment::Center)) => "<th class=\"c\">",
                    (true, _) => "<th>",
                    (false, Some(Alignment::Right)) => "<td class=\"r\">",
                    (false, Some(Alignment::Center)) => "<td class=\"c\">",
                    (false, _) => "<td>",
                })
            }
            Tag::Emphasis => self.html.raw("<em>"),
            Tag::Strong => self.html.raw("<strong>"),
            Tag::Strikethrough => self.html.raw("<s>"),
            Tag::Link { dest_url, .. } => {
                let safe = open_link(self.html, &dest_url)?;
                self.links.push((!safe).then_some(dest_url));
                Ok(())
            }
            Tag::Image { dest_url, .. } => {
                self.html.raw("<span class=\"pic\">")?;
                let safe = open_link(self.html, &dest_url)?;
                self.links.push((!safe).then_some(dest_url));
                Ok(())
            }
            Tag::HtmlBlock => self.html.raw("<p>"),
            _ => Ok(()),
        }
    }

    fn open_code(&mut self, kind: CodeBlockKind<'e>) -> io::Result<()> {
        let language = match kind {
            CodeBlockKind::Fenced(info) => info,
            CodeBlockKind::Indented => CowStr::Borrowed(""),
        };
        let word = language.split([' ', ',', '{']).next().unwrap_or_default();
        self.html.raw("<pre")?;
        if !word.is_empty() {
            self.html.raw(" data-lang=\"")?;
            self.html.text(word)?;
            self.html.raw("\"")?;
        }
        self.html.raw("><code>")?;
        self.code = Some(language);
        Ok(())
    }

    fn close(&mut self, tag: TagEnd) -> io::Result<()> {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.html.raw("</p>\n"),
            TagEnd::Heading(level) => self.html.raw(heading(level).1),
            TagEnd::BlockQuote(_) => self.html.raw("</blockquote>\n"),
            TagEnd::CodeBlock => {
                self.code = None;
                self.html.raw("</code></pre>\n")
            }
            TagEnd::List(true) => self.html.raw("</ol>\n"),
            TagEnd::List(false) => self.html.raw("</ul>\n"),
            TagEnd::Item => self.html.raw("</li>\n"),
            TagEnd::Table => self.html.raw("</tbody></table></div>\n"),
            TagEnd::TableHead => {
                self.head = false;
                self.html.raw("</tr></thead><tbody>\n")
            }
            TagEnd::TableRow => self.html.raw("</tr>\n"),
            TagEnd::TableCell => self.html.raw(if self.head { "</th>" } else { "</td>" }),
            TagEnd::Emphasis => self.html.raw("</em>"),
            TagEnd::Strong => self.html.raw("</strong>"),
            TagEnd::Strikethrough => self.html.raw("</s>"),
            TagEnd::Link => self.close_link(),
            TagEnd::Image => {
                self.close_link()?;
                self.html.raw("</span>")
            }
            _ => Ok(()),
        }
    }

    /// A refused address stands behind its text, so that nobody is led to believe it is gone.
    fn close_link(&mut self) -> io::Result<()> {
        match self.links.pop().flatten() {
            None => self.html.raw("</a>"),
            Some(url) if url.is_empty() => Ok(()),
            Some(url) => {
                self.html.raw(" <code class=\"url\">")?;
                self.html.text(&url)?;
                self.html.raw("</code>")
            }
        }
    }
}

/// Turns are headings of the second level, so those of a reply are below.
fn heading(level: HeadingLevel) -> (&'static str, &'static str) {
    match level {
        HeadingLevel::H1 | HeadingLevel::H2 => ("<h3>", "</h3>\n"),
        HeadingLevel::H3 => ("<h4>", "</h4>\n"),
        HeadingLevel::H4 => ("<h5>", "</h5>\n"),
        HeadingLevel::H5 | HeadingLevel::H6 => ("<h6>", "</h6>\n"),
    }
}

/// A patch somebody wrote as code.
fn diff(html: &mut HtmlWriter<'_>, text: &str) -> io::Result<()> {
    for line in text.split_inclusive('\n') {
        let class = match line.as_bytes() {
            [b'+', ..] => "<span class=\"add\">",
            [b'-', ..] => "<span class=\"del\">",
            _ => {
                html.text(line)?;
                continue;
            }
        };
        html.raw(class)?;
        html.text(line)?;
        html.raw("</span>")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: &str) -> String {
        let mut page = Vec::new();
        let mut html = HtmlWriter::new(&mut page);
        markdown(&mut html, text).unwrap();
        html.flush().unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn structure_becomes_tags() {
        assert_eq!(
            html("# a\n\nb *c* **d** `e`"),
            "<h3>a</h3>\n<p>b <em>c</em> <strong>d</strong> <code>e</code></p>\n"
        );
        assert_eq!(
            html("```rust\nfn <T>\n```"),
            "<pre data-lang=\"rust\"><code><span class=\"hk\">fn</span> &lt;T&gt;\n</code></pre>\n"
        );
        assert_eq!(
            html("- [x] a\n- b"),
            "<ul>\n<li>☑ a</li>\n<li>b</li>\n</ul>\n"
        );
        assert!(html("|a|b|\n|-|-:|\n|1|2|").contains("<td>1</td><td class=\"r\">2</td>"));
        assert_eq!(
            html("```diff\n+a\n b\n```"),
            "<pre data-lang=\"diff\"><code><span class=\"add\">+a\n</span> b\n</code></pre>\n"
        );
    }

    #[test]
    fn raw_html_is_text() {
        assert_eq!(html("a <b>x</b>"), "<p>a &lt;b&gt;x&lt;/b&gt;</p>\n");
        assert_eq!(
            html("<script>alert(1)</script>"),
            "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n"
        );
        assert_eq!(html("&lt;script&gt;"), "<p>&lt;script&gt;</p>\n");
    }

    #[test]
    fn links_lead_to_the_web_or_nowhere() {
        let link = "<a rel=\"noopener noreferrer\" href=\"https://a.example/?b&amp;c\">x</a>";
        assert_eq!(
            html("[x](https://a.example/?b&c)"),
            format!("<p>{link}</p>\n")
        );
        for bad in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "file:///etc/passwd",
            "//evil.example",
            "&#106;avascript:x",
        ] {
            let page = html(&format!("[x]({bad})"));
            assert!(!page.contains("href"), "{page}");
        }
        assert!(!html("[x](<java\nscript:x>) <javascript:x>").contains("href"));
        assert!(html("<https://a.example>").contains("href=\"https://a.example\""));
    }

    #[test]
    fn images_are_links_and_are_never_loaded() {
        let page = html("![alt](https://a.example/x.png)");
        assert!(
            page.contains("href=\"https://a.example/x.png\">alt</a>"),
            "{page}"
        );
        assert!(!html("![a](x.png) ![b](data:image/svg+xml,x)").contains("<img"));
    }

    #[test]
    fn bare_addresses_are_links_without_what_ends_the_sentence() {
        let page = html("see https://a.example/b_c_d(e). Or (http://x.example/y), xhttp://no");
        assert!(
            page.contains("href=\"https://a.example/b_c_d(e)\""),
            "{page}"
        );
        assert!(page.contains("href=\"http://x.example/y\""), "{page}");
        assert_eq!(page.matches("href").count(), 2);
        assert_eq!(html("`https://a.example`").matches("href").count(), 0);
    }
}
