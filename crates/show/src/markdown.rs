//! Markdown as the model writes it, laid out for a terminal.
//!
//! Structure is shown, nothing is lost: code keeps its lines and is not wrapped, tables are
//! fitted, addresses stand behind their text. Line breaks stay where the author put them.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::clean;
use crate::layout::{behind, untabbed, wrap};
use crate::style::{StyledLine, TextStyle};
use crate::table;

/// The text in lines of at most `width` columns; only code may be wider.
pub fn lines(text: &str, width: usize) -> Vec<StyledLine> {
    let text = clean::text(text);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = MarkdownLayout::new(width);
    for event in Parser::new_ext(&text, options) {
        page.take(event);
    }
    page.end_paragraph();
    while page.lines.last().is_some_and(StyledLine::is_empty) {
        page.lines.pop();
    }
    page.lines
}

/// A list or quotation that following lines stand in.
enum MarkdownContainer {
    List { next: Option<u64> },
    Item { mark: Option<String>, indent: usize },
    Quote,
}

struct MarkdownLayout {
    width: usize,
    lines: Vec<StyledLine>,
    line: StyledLine,
    paint: Vec<TextStyle>,
    frames: Vec<MarkdownContainer>,
    link: Option<(String, usize)>,
    code: Option<String>,
    table: Option<MarkdownTable>,
    /// A blank line is due before the next paragraph.
    gap: bool,
}

#[derive(Default)]
struct MarkdownTable {
    right: Vec<bool>,
    rows: Vec<Vec<StyledLine>>,
}

impl MarkdownLayout {
    fn new(width: usize) -> MarkdownLayout {
        MarkdownLayout {
            width,
            lines: Vec::new(),
            line: StyledLine::new(),
            paint: vec![TextStyle::PLAIN],
            frames: Vec::new(),
            link: None,
            code: None,
            table: None,
            gap: false,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => {
                let paint = TextStyle {
                    bold: self.current().bold,
                    ..TextStyle::CODE
                };
                // Marks stay without colour, too; they are part of what was written.
                self.line.push(paint, &format!("`{text}`"));
            }
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            Event::Html(text) | Event::InlineHtml(text) => self.html(&text),
            Event::FootnoteReference(text) => self.text(&format!("[{text}]")),
            Event::SoftBreak | Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.begin_block();
                let columns = self.room().min(40);
                self.line.push(TextStyle::DIM, &"─".repeat(columns));
                self.end_paragraph();
            }
            Event::TaskListMarker(done) => self.text(if done { "☑ " } else { "☐ " }),
        }
    }

    fn current(&self) -> TextStyle {
        self.paint.last().copied().unwrap_or_default()
    }

    fn text(&mut self, text: &str) {
        if let Some(code) = &mut self.code {
            code.push_str(text);
            return;
        }
        let paint = self.current();
        self.line.push(paint, text);
    }

    fn html(&mut self, text: &str) {
        for (at, line) in text.lines().enumerate() {
            if at > 0 {
                self.end_line();
            }
            let paint = self.current();
            self.line.push(paint, line);
        }
        if text.ends_with('\n') {
            self.end_line();
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                self.paint.push(TextStyle::HEADING);
                if level == HeadingLevel::H1 || level == HeadingLevel::H2 {
                    let mark = if level == HeadingLevel::H1 {
                        "# "
                    } else {
                        "## "
                    };
                    self.line.push(TextStyle::DIM, mark);
                }
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.frames.push(MarkdownContainer::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                self.code = Some(String::new());
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.trim().is_empty()
                {
                    let label = format!("┌ {}", language.trim());
                    self.flush(&StyledLine::of(TextStyle::DIM, &label), false);
                }
            }
            Tag::List(next) => {
                let inner = self
                    .frames
                    .iter()
                    .any(|frame| matches!(frame, MarkdownContainer::Item { .. }));
                if inner {
                    self.end_line_if_any();
                } else {
                    self.begin_block();
                }
                self.frames.push(MarkdownContainer::List { next });
            }
            Tag::Item => self.start_item(),
            Tag::Emphasis => self.restyle(|paint| paint.italic = true),
            Tag::Strong => self.restyle(|paint| paint.bold = true),
            Tag::Strikethrough => self.restyle(|paint| paint.strike = true),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some((dest_url.into_string(), self.line.text().len()));
                self.restyle(|paint| paint.underline = true);
            }
            Tag::Table(columns) => {
                self.begin_block();
                let right = columns
                    .iter()
                    .map(|column| *column == Alignment::Right)
                    .collect();
                self.table = Some(MarkdownTable {
                    right,
                    rows: Vec::new(),
                });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::TableCell
            | Tag::FootnoteDefinition(_)
            | Tag::MetadataBlock(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript => {}
        }
    }

    fn restyle(&mut self, change: impl FnOnce(&mut TextStyle)) {
        let mut paint = self.current();
        change(&mut paint);
        self.paint.push(paint);
    }

    fn start_item(&mut self) {
        self.end_line_if_any();
        let mark = match self.frames.last_mut() {
            Some(MarkdownContainer::List { next: Some(number) }) => {
                let mark = format!("{number}. ");
                *number += 1;
                mark
            }
            _ => "• ".to_owned(),
        };
        let indent = mark.chars().count();
        self.frames.push(MarkdownContainer::Item {
            mark: Some(mark),
            indent,
        });
        self.gap = false;
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_paragraph(),
            TagEnd::Heading(_) => {
                self.paint.pop();
                self.end_paragraph();
            }
            TagEnd::BlockQuote(_) => {
                self.end_paragraph();
                self.frames.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.end_line_if_any();
                self.frames.pop();
                self.gap = true;
            }
            TagEnd::Item => {
                self.end_line_if_any();
                if matches!(
                    self.frames.last(),
                    Some(MarkdownContainer::Item { mark: Some(_), .. })
                ) {
                    self.flush(&StyledLine::new(), true); // An item without text.
                }
                self.frames.pop();
                self.gap = false;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.paint.pop()),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::FootnoteDefinition
            | TagEnd::MetadataBlock(_)
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript => {}
        }
    }

    fn end_link(&mut self) {
        self.paint.pop();
        let Some((address, start)) = self.link.take() else {
            return;
        };
        let text = self.line.text();
        let shown = text.get(start..).unwrap_or_default();
        if !address.is_empty() && shown != address && format!("mailto:{shown}") != address {
            self.line.push(TextStyle::DIM, &format!(" ({address})"));
        }
    }

    fn end_code(&mut self) {
        let code = self.code.take().unwrap_or_default();
        for line in code.lines() {
            let line = StyledLine::of(TextStyle::DIM, "│ ").with(TextStyle::PLAIN, &untabbed(line));
            self.flush(&line, false);
        }
        self.gap = true;
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else {
            return;
        };
        for line in table::fitted(&table.rows, &table.right, self.room()) {
            self.flush(&line, false);
        }
        self.gap = true;
    }

    fn begin_block(&mut self) {
        // Text of a list item without blank lines has no paragraph of its own.
        self.end_line_if_any();
        let at_mark = matches!(
            self.frames.last(),
            Some(MarkdownContainer::Item { mark: Some(_), .. })
        );
        if self.gap && !at_mark {
            let blank = self.prefix();
            self.lines.push(if blank.text().trim().is_empty() {
                StyledLine::new()
            } else {
                blank
            });
        }
        self.gap = false;
    }

    fn end_paragraph(&mut self) {
        self.end_line_if_any();
        self.gap = true;
    }

    fn end_line_if_any(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if self.gap {
            self.gap = false;
            self.lines.push(StyledLine::new());
        }
        self.flush(&line, true);
    }

    fn room(&self) -> usize {
        self.width.saturating_sub(self.indent()).max(8)
    }

    fn indent(&self) -> usize {
        let columns = |frame: &MarkdownContainer| match frame {
            MarkdownContainer::List { .. } => 0,
            MarkdownContainer::Item { indent, .. } => *indent,
            MarkdownContainer::Quote => 2,
        };
        self.frames.iter().map(columns).sum()
    }

    fn flush(&mut self, line: &StyledLine, wrapping: bool) {
        let pieces = if wrapping {
            wrap(line, self.room())
        } else {
            vec![line.clone()]
        };
        for piece in pieces {
            let prefix = self.prefix();
            self.lines.push(behind(&prefix, &piece));
        }
    }

    /// What stands before a line; the mark of an item only before its first.
    fn prefix(&mut self) -> StyledLine {
        let mut prefix = StyledLine::new();
        for frame in &mut self.frames {
            match frame {
                MarkdownContainer::List { .. } => {}
                MarkdownContainer::Quote => prefix.push(TextStyle::DIM, "▏ "),
                MarkdownContainer::Item { mark, indent } => match mark.take() {
                    Some(mark) => prefix.push(TextStyle::DIM, &mark),
                    None => prefix.push(TextStyle::PLAIN, &" ".repeat(*indent)),
                },
            }
        }
        prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, width: usize, expected: Expect) {
        let lines = lines(text, width);
        let texts: Vec<String> = lines
            .iter()
            .map(|line| line.text().trim_end().to_owned())
            .collect();
        expected.assert_eq(&texts.join("\n"));
    }

    #[test]
    fn structure_is_visible_without_colour() {
        check(
            "# Title\n\nSome *text* with `code` and **weight**.\n\n- one\n- two\n  - deep\n\n1. first\n2. second\n\n> said\n> twice\n\n---\n\nend",
            60,
            expect![[r#"
                # Title

                Some text with `code` and weight.

                • one
                • two
                  • deep

                1. first
                2. second

                ▏ said
                ▏ twice

                ────────────────────────────────────────

                end"#]],
        );
    }

    #[test]
    fn code_keeps_its_lines_however_long() {
        check(
            "Look:\n\n```rust\nfn main() {\n\tprintln!(\"a long line that is not wrapped\");\n}\n```\nafter",
            20,
            expect![[r#"
                Look:

                ┌ rust
                │ fn main() {
                │     println!("a long line that is not wrapped");
                │ }

                after"#]],
        );
    }

    #[test]
    fn lists_keep_their_indent_when_wrapped_and_hold_paragraphs() {
        check(
            "1. a first item that is long enough to wrap\n\n   with a second paragraph\n2. b\n\n- [x] done\n- [ ] open",
            24,
            expect![[r#"
                1. a first item that is
                   long enough to wrap

                   with a second
                   paragraph
                2. b

                • ☑ done
                • ☐ open"#]],
        );
    }

    #[test]
    fn addresses_stand_behind_their_text() {
        check(
            "See [the docs](https://x.y/z) and <https://a.b>.",
            80,
            expect!["See the docs (https://x.y/z) and https://a.b."],
        );
    }

    #[test]
    fn tables_are_fitted() {
        check(
            "| name | value |\n|---|--:|\n| a | 1 |\n| a longer name that has to be cut somewhere | 22 |",
            30,
            expect![[r#"
                name                     value
                ──────────────────────────────
                a                            1
                a longer name that has      22
                to be cut somewhere"#]],
        );
    }

    #[test]
    fn html_and_stray_marks_are_shown_as_written() {
        check(
            "a <b>x</b> *.rs __init__ 2 * 3 * 4\n<div>\nx",
            80,
            expect![[r#"
                a <b>x</b> *.rs init 2 * 3 * 4

                <div>
                x"#]],
        );
    }

    #[test]
    fn no_escape_survives() {
        for line in lines(
            "# \u{1b}]0;x\u{7}a\n\n`\u{1b}[2J`\n\n```\n\u{9b}31m\n```\n\n&#27;[31m",
            40,
        ) {
            assert!(
                !line.text().contains(|c: char| c.is_control()),
                "{:?}",
                line.text()
            );
        }
    }
}
