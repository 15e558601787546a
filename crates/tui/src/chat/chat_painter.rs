//! The terminal as a conversation: what was said stays and scrolls away, and only the few
//! rows at the bottom are drawn again.
//!
//! Nothing above the live rows is ever touched, so a person can scroll and select while the
//! model speaks. Each change is one write, in a synchronised update where the terminal knows
//! those: no flicker.

use std::io::{self, Write};

use unspool_show::StyledLine;

/// Where the cursor is to stand in the live rows.
pub type CursorPosition = Option<(usize, usize)>;

/// Draws.
pub struct ChatPainter<W> {
    out: W,
    color: bool,
    /// Widths of the live rows as they stand, and the row of the cursor.
    live: Vec<usize>,
    cursor: usize,
    width: usize,
    height: usize,
}

impl<W: Write> ChatPainter<W> {
    /// A painter of a terminal of this size.
    pub fn new(out: W, color: bool, (width, height): (usize, usize)) -> ChatPainter<W> {
        ChatPainter {
            out,
            color,
            live: Vec::new(),
            cursor: 0,
            width: width.max(1),
            height: height.max(1),
        }
    }

    /// The terminal has another size now. What stands in the live rows was wrapped anew by
    /// the terminal.
    pub fn resize(&mut self, (width, height): (usize, usize)) {
        (self.width, self.height) = (width.max(1), height.max(1));
    }

    /// How many live rows there may be.
    pub fn room(&self) -> usize {
        self.height.saturating_sub(1).max(1)
    }

    /// Adds lines that stay, and draws the live rows below them.
    pub fn draw(
        &mut self,
        said: &[StyledLine],
        live: &[StyledLine],
        cursor: CursorPosition,
    ) -> io::Result<()> {
        let mut frame: Vec<u8> = Vec::with_capacity(1024);
        frame.extend_from_slice(b"\x1b[?2026h\x1b[?25l");
        self.rise(&mut frame)?;
        for line in said {
            line.put(&mut frame, self.color)?;
            frame.extend_from_slice(b"\x1b[K\r\n");
        }
        let skipped = live.len().saturating_sub(self.room());
        let live = &live[skipped..];
        for (at, line) in live.iter().enumerate() {
            if at > 0 {
                frame.extend_from_slice(b"\r\n");
            }
            let line = unspool_show::layout::cut(line, self.width);
            line.put(&mut frame, self.color)?;
            frame.extend_from_slice(b"\x1b[K");
        }
        // What stood further down is no longer wanted.
        frame.extend_from_slice(b"\x1b[J");
        self.live = live
            .iter()
            .map(|line| line.width().min(self.width))
            .collect();
        self.cursor = live.len().saturating_sub(1);
        let cursor = cursor.and_then(|(row, column)| Some((row.checked_sub(skipped)?, column)));
        if let Some((row, column)) = cursor.filter(|(row, _)| *row < live.len()) {
            let up = self.cursor - row;
            if up > 0 {
                write!(frame, "\x1b[{up}A")?;
            }
            write!(frame, "\x1b[{}G\x1b[?25h", column + 1)?;
            self.cursor = row;
        }
        frame.extend_from_slice(b"\x1b[?2026l");
        self.out.write_all(&frame)?;
        self.out.flush()
    }

    /// Leaves the live rows and shows the cursor, so that something else may write.
    pub fn leave(&mut self) -> io::Result<()> {
        let mut frame = Vec::new();
        self.rise(&mut frame)?;
        frame.extend_from_slice(b"\x1b[J\x1b[?25h");
        (self.live, self.cursor) = (Vec::new(), 0);
        self.out.write_all(&frame)?;
        self.out.flush()
    }

    /// Goes to the first column of the first live row.
    fn rise(&self, frame: &mut Vec<u8>) -> io::Result<()> {
        let above = self.live.iter().take(self.cursor);
        // A row that the terminal wrapped takes several.
        let up: usize = above.map(|width| width.max(&1).div_ceil(self.width)).sum();
        frame.push(b'\r');
        if up > 0 {
            write!(frame, "\x1b[{up}A")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unspool_show::TextStyle;

    fn line(text: &str) -> StyledLine {
        StyledLine::of(TextStyle::default(), text)
    }

    fn painter() -> ChatPainter<Vec<u8>> {
        ChatPainter::new(Vec::new(), false, (20, 6))
    }

    fn screen(painter: &ChatPainter<Vec<u8>>) -> vt100::Parser {
        let mut screen = vt100::Parser::new(6, 20, 100);
        screen.process(&painter.out);
        screen
    }

    #[test]
    fn what_was_said_stays_above_and_the_live_rows_are_drawn_again() {
        let mut painter = painter();
        painter
            .draw(
                &[line("hello")],
                &[line("working 1"), line("> ")],
                Some((1, 2)),
            )
            .unwrap();
        painter
            .draw(&[], &[line("working 2"), line("> a")], Some((1, 3)))
            .unwrap();
        painter
            .draw(&[line("answer")], &[line("> a")], Some((0, 3)))
            .unwrap();
        let screen = screen(&painter);
        assert_eq!(screen.screen().contents(), "hello\nanswer\n> a");
        assert_eq!(screen.screen().cursor_position(), (2, 3));
    }

    #[test]
    fn nothing_above_the_live_rows_is_written_again() {
        let mut painter = painter();
        painter
            .draw(&[line("hello")], &[line("> ")], Some((0, 2)))
            .unwrap();
        let before = painter.out.len();
        painter.draw(&[], &[line("> x")], Some((0, 3))).unwrap();
        let bytes = String::from_utf8_lossy(&painter.out[before..]).into_owned();
        assert!(!bytes.contains("hello"), "{bytes:?}");
        assert!(
            !bytes.contains("\x1b[2J") && !bytes.contains("\x1b[H"),
            "{bytes:?}"
        );
    }

    #[test]
    fn long_talk_scrolls_and_loses_no_line() {
        let mut painter = painter();
        for number in 0..50 {
            let said = line(&format!("line {number}"));
            painter
                .draw(&[said], &[line("status"), line("> ")], Some((1, 2)))
                .unwrap();
        }
        let mut screen = screen(&painter);
        screen.screen_mut().set_scrollback(100);
        assert!(screen.screen().contents().starts_with("line 0\nline 1\n"));
        screen.screen_mut().set_scrollback(0);
        assert_eq!(
            screen.screen().contents(),
            "line 46\nline 47\nline 48\nline 49\nstatus\n>"
        );
    }

    #[test]
    fn more_live_rows_than_fit_show_their_end() {
        let mut painter = painter();
        let rows: Vec<StyledLine> = (0..9).map(|row| line(&format!("row {row}"))).collect();
        painter.draw(&[], &rows, Some((8, 0))).unwrap();
        assert_eq!(
            screen(&painter).screen().contents(),
            "row 4\nrow 5\nrow 6\nrow 7\nrow 8"
        );
    }

    #[test]
    fn leaving_wipes_the_live_rows_only() {
        let mut painter = painter();
        painter
            .draw(&[line("hello")], &[line("a"), line("b")], None)
            .unwrap();
        painter.leave().unwrap();
        assert_eq!(screen(&painter).screen().contents(), "hello");
    }
}
