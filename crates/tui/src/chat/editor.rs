//! Where a person types: several lines, wrapped softly, with a history and an undo.
//!
//! Pure: keys in, text out. The place of the cursor is always between two graphemes, so that
//! an accent or a family of emoji is one step.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A paste longer than this is shown as one short note.
const LONG_PASTE: usize = 800;
/// As is one of more lines than this.
const MANY_LINES: usize = 10;
/// How many steps can be taken back.
const UNDO: usize = 200;

/// What a key did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditorKeyResult {
    /// It is not for the editor.
    Nothing,
    /// It changed the text or the place.
    Changed,
    /// It is to be sent; the editor is empty again.
    Sent(String),
}

/// The text being typed.
#[derive(Clone, Debug, Default)]
pub struct PromptEditor {
    text: String,
    at: usize,
    /// The column that moving up and down tries to keep.
    goal: Option<usize>,
    /// What was cut last.
    cut: String,
    before: Vec<(String, usize)>,
    history: Vec<String>,
    /// Where in the history somebody looks, and what stood here before.
    looking: Option<(usize, String)>,
    /// Long pastes, by the notes that stand for them.
    pastes: Vec<(String, String)>,
    width: usize,
}

/// The text laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorLayout {
    /// Its rows.
    pub rows: Vec<String>,
    /// The row and the column of the cursor.
    pub cursor: (usize, usize),
}

impl PromptEditor {
    /// An editor that knows what was typed before, oldest first.
    pub fn new(history: Vec<String>) -> PromptEditor {
        PromptEditor {
            history,
            width: 80,
            ..PromptEditor::default()
        }
    }

    /// What is typed, notes of long pastes included.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where the cursor stands, in bytes.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Whether nothing is typed.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Puts a text in place of all.
    pub fn set(&mut self, text: &str) {
        self.keep();
        self.text = text.to_owned();
        self.at = self.text.len();
        self.goal = None;
    }

    /// Puts `new` in place of a part of the text, and the cursor behind it.
    pub fn replace(&mut self, part: std::ops::Range<usize>, new: &str) {
        self.keep();
        let start = part.start;
        self.text.replace_range(part, new);
        self.at = start + new.len();
    }

    /// Takes what was pasted. Control codes do not get in; long texts become a note.
    pub fn paste(&mut self, text: &str) {
        let text = tame(text);
        let lines = text.matches('\n').count();
        if text.len() <= LONG_PASTE && lines <= MANY_LINES {
            self.insert(&text);
            return;
        }
        let number = self.pastes.len() + 1;
        let note = match lines {
            0 => format!(
                "[Pasted text #{number}, {} characters]",
                text.chars().count()
            ),
            lines => format!("[Pasted text #{number} +{lines} lines]"),
        };
        self.insert(&note);
        self.pastes.push((note, text));
    }

    /// Takes a key; rows are `width` columns wide.
    pub fn key(&mut self, key: KeyEvent, width: usize) -> EditorKeyResult {
        self.width = width.max(4);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let goal = self.goal.take();
        match key.code {
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => {
                self.insert("\n");
            }
            KeyCode::Enter if self.text[..self.at].ends_with('\\') => {
                self.keep();
                self.text.replace_range(self.at - 1..self.at, "\n");
            }
            KeyCode::Enter => return self.send(),
            KeyCode::Char('j') if control => self.insert("\n"),
            KeyCode::Char(c) if control => return self.control(c),
            KeyCode::Char('b') if alt => self.at = self.word_left(),
            KeyCode::Char('f') if alt => self.at = self.word_right(),
            KeyCode::Char('d') if alt => self.cut_to(self.word_right()),
            KeyCode::Char(_) if alt => return EditorKeyResult::Nothing,
            KeyCode::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Tab => return EditorKeyResult::Nothing,
            KeyCode::Backspace if alt => self.cut_to(self.word_left()),
            KeyCode::Backspace => self.delete(self.left()..self.at),
            KeyCode::Delete => self.delete(self.at..self.right()),
            KeyCode::Left if control || alt => self.at = self.word_left(),
            KeyCode::Right if control || alt => self.at = self.word_right(),
            KeyCode::Left => self.at = self.left(),
            KeyCode::Right => self.at = self.right(),
            KeyCode::Home => self.at = self.line_start(),
            KeyCode::End => self.at = self.line_end(),
            KeyCode::Up => self.up(goal),
            KeyCode::Down => self.down(goal),
            _ => return EditorKeyResult::Nothing,
        }
        EditorKeyResult::Changed
    }

    fn control(&mut self, c: char) -> EditorKeyResult {
        match c {
            'a' => self.at = self.line_start(),
            'e' => self.at = self.line_end(),
            'b' => self.at = self.left(),
            'f' => self.at = self.right(),
            'h' => self.delete(self.left()..self.at),
            'd' if self.is_empty() => return EditorKeyResult::Nothing,
            'd' => self.delete(self.at..self.right()),
            'k' => match self.line_end() {
                end if end == self.at => self.cut_to(self.right()),
                end => self.cut_to(end),
            },
            'u' => match self.line_start() {
                start if start == self.at => self.cut_to(self.left()),
                start => self.cut_to(start),
            },
            'w' => self.cut_to(self.word_left()),
            'y' => {
                let cut = self.cut.clone();
                self.insert(&cut);
            }
            'p' => self.older(),
            'n' => self.newer(),
            // Terminals send Ctrl-_ as one of these.
            '_' | '7' => self.undo(),
            _ => return EditorKeyResult::Nothing,
        }
        EditorKeyResult::Changed
    }

    fn send(&mut self) -> EditorKeyResult {
        if self.text.trim().is_empty() {
            return EditorKeyResult::Nothing;
        }
        let mut text = std::mem::take(&mut self.text);
        for (note, paste) in std::mem::take(&mut self.pastes) {
            text = text.replacen(&note, &paste, 1);
        }
        if self.history.last() != Some(&text) {
            self.history.push(text.clone());
        }
        *self = PromptEditor {
            history: std::mem::take(&mut self.history),
            cut: std::mem::take(&mut self.cut),
            width: self.width,
            ..PromptEditor::default()
        };
        EditorKeyResult::Sent(text)
    }

    fn keep(&mut self) {
        if self.before.len() == UNDO {
            self.before.remove(0);
        }
        self.before.push((self.text.clone(), self.at));
    }

    fn undo(&mut self) {
        if let Some((text, at)) = self.before.pop() {
            (self.text, self.at) = (text, at);
        }
    }

    fn insert(&mut self, text: &str) {
        // Letters of one word are taken back together.
        let word = text.chars().all(char::is_alphanumeric);
        let before = self.text[..self.at].chars().next_back();
        if !word || !before.is_some_and(char::is_alphanumeric) {
            self.keep();
        }
        self.text.insert_str(self.at, text);
        self.at += text.len();
    }

    fn delete(&mut self, part: std::ops::Range<usize>) {
        if part.is_empty() {
            return;
        }
        self.keep();
        self.at = part.start;
        self.text.replace_range(part, "");
    }

    fn cut_to(&mut self, to: usize) {
        let part = self.at.min(to)..self.at.max(to);
        if !part.is_empty() {
            self.cut = self.text[part.clone()].to_owned();
            self.delete(part);
        }
    }

    fn left(&self) -> usize {
        let before = self.text[..self.at].grapheme_indices(true).next_back();
        before.map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        let next = self.text[self.at..].graphemes(true).next();
        self.at + next.map_or(0, str::len)
    }

    fn word_left(&self) -> usize {
        let mut words = self.text[..self.at].unicode_word_indices();
        words.next_back().map_or(0, |(at, _)| at)
    }

    fn word_right(&self) -> usize {
        let mut words = self.text[self.at..].unicode_word_indices();
        let word = words.next();
        word.map_or(self.text.len(), |(at, word)| self.at + at + word.len())
    }

    fn line_start(&self) -> usize {
        self.text[..self.at].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let rest = self.text[self.at..].find('\n');
        rest.map_or(self.text.len(), |at| self.at + at)
    }

    fn up(&mut self, goal: Option<usize>) {
        let (rows, row, column) = self.stand();
        let goal = goal.unwrap_or(column);
        match row.checked_sub(1).and_then(|above| rows.get(above)) {
            Some(above) => {
                self.at = above.place(&self.text, goal);
                self.goal = Some(goal);
            }
            None => self.older(),
        }
    }

    fn down(&mut self, goal: Option<usize>) {
        let (rows, row, column) = self.stand();
        let goal = goal.unwrap_or(column);
        match rows.get(row + 1) {
            Some(below) => {
                self.at = below.place(&self.text, goal);
                self.goal = Some(goal);
            }
            None => self.newer(),
        }
    }

    fn older(&mut self) {
        let (at, draft) = match self.looking.take() {
            Some((at, draft)) => (at, draft),
            None => (self.history.len(), self.text.clone()),
        };
        let older = at.saturating_sub(1);
        if let Some(text) = self.history.get(older) {
            self.text = text.clone();
            self.at = self.text.len();
            self.looking = Some((older, draft));
        }
    }

    fn newer(&mut self) {
        let Some((at, draft)) = self.looking.take() else {
            return;
        };
        match self.history.get(at + 1) {
            Some(text) => {
                self.text = text.clone();
                self.looking = Some((at + 1, draft));
            }
            None => self.text = draft,
        }
        self.at = self.text.len();
    }

    fn stand(&self) -> (Vec<EditorRow>, usize, usize) {
        let rows = rows(&self.text, self.width);
        // At the seam of two rows the cursor stands at the start of the second.
        let row = rows.iter().rposition(|row| row.start <= self.at);
        let row = row.unwrap_or(0);
        let column = rows
            .get(row)
            .map_or(0, |it| wide(&self.text[it.start..self.at]));
        (rows, row, column)
    }

    /// The text in rows of `width` columns.
    pub fn lay(&mut self, width: usize) -> EditorLayout {
        self.width = width.max(4);
        let (rows, row, column) = self.stand();
        let shown = |row: &EditorRow| show(&self.text[row.start..row.end]);
        EditorLayout {
            rows: rows.iter().map(shown).collect(),
            cursor: (row, column),
        }
    }
}

/// A row on the screen: a part of the text, without its newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EditorRow {
    start: usize,
    end: usize,
}

impl EditorRow {
    /// The place in the text that is nearest to a column.
    fn place(&self, text: &str, goal: usize) -> usize {
        let mut column = 0;
        for (at, grapheme) in text[self.start..self.end].grapheme_indices(true) {
            column += wide(grapheme);
            if column > goal {
                return self.start + at;
            }
        }
        self.end
    }
}

fn rows(text: &str, width: usize) -> Vec<EditorRow> {
    let mut all = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        let end = start + line.len();
        let (mut from, mut columns) = (start, 0);
        for (at, grapheme) in line.grapheme_indices(true) {
            let wide = wide(grapheme);
            // The last column stays free for the cursor.
            if columns + wide >= width && columns > 0 {
                all.push(EditorRow {
                    start: from,
                    end: start + at,
                });
                (from, columns) = (start + at, 0);
            }
            columns += wide;
        }
        all.push(EditorRow { start: from, end });
        start = end + 1;
    }
    all
}

/// Columns of a text as it is shown.
fn wide(text: &str) -> usize {
    text.split('\t').map(UnicodeWidthStr::width).sum::<usize>()
        + TAB.len() * text.matches('\t').count()
}

const TAB: &str = "    ";

fn show(text: &str) -> String {
    text.replace('\t', TAB)
}

/// A pasted text with plain newlines and without control codes.
fn tame(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text = unspool_show::clean::text(&text).into_owned();
    let trimmed = text.trim_end_matches('\n');
    match text.contains('\n') && trimmed.contains('\n') {
        true => text,
        // A single line with its end is that line.
        false => trimmed.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(editor: &mut PromptEditor, text: &str) {
        for c in text.chars() {
            press(editor, KeyCode::Char(c), KeyModifiers::NONE);
        }
    }

    fn press(editor: &mut PromptEditor, code: KeyCode, with: KeyModifiers) -> EditorKeyResult {
        editor.key(KeyEvent::new(code, with), 20)
    }

    fn plain(editor: &mut PromptEditor, code: KeyCode) -> EditorKeyResult {
        press(editor, code, KeyModifiers::NONE)
    }

    fn control(editor: &mut PromptEditor, c: char) -> EditorKeyResult {
        press(editor, KeyCode::Char(c), KeyModifiers::CONTROL)
    }

    #[test]
    fn enter_sends_and_leaves_an_empty_editor() {
        let mut editor = PromptEditor::new(Vec::new());
        assert_eq!(plain(&mut editor, KeyCode::Enter), EditorKeyResult::Nothing);
        typed(&mut editor, "hello");
        assert_eq!(
            plain(&mut editor, KeyCode::Enter),
            EditorKeyResult::Sent("hello".to_owned())
        );
        assert!(editor.is_empty());
    }

    #[test]
    fn alt_enter_ctrl_j_and_a_backslash_begin_a_new_line() {
        let mut editor = PromptEditor::new(Vec::new());
        typed(&mut editor, "a");
        press(&mut editor, KeyCode::Enter, KeyModifiers::ALT);
        typed(&mut editor, "b");
        control(&mut editor, 'j');
        typed(&mut editor, "c\\");
        plain(&mut editor, KeyCode::Enter);
        typed(&mut editor, "d");
        assert_eq!(editor.text(), "a\nb\nc\nd");
    }

    #[test]
    fn an_accent_and_a_family_are_one_step() {
        let mut editor = PromptEditor::new(Vec::new());
        editor.paste("e\u{301}👨‍👩‍👧x");
        plain(&mut editor, KeyCode::Left);
        plain(&mut editor, KeyCode::Backspace);
        assert_eq!(editor.text(), "e\u{301}x");
        plain(&mut editor, KeyCode::Backspace);
        assert_eq!(editor.text(), "x");
    }

    #[test]
    fn wide_characters_wrap_before_the_edge() {
        let mut editor = PromptEditor::new(Vec::new());
        editor.paste("日本語日本語日本語日本語");
        let laid = editor.lay(9);
        assert_eq!(laid.rows, ["日本語日", "本語日本", "語日本語"]);
        assert_eq!(laid.cursor, (2, 8));
    }

    #[test]
    fn up_and_down_keep_the_column_and_then_walk_the_history() {
        let mut editor = PromptEditor::new(vec!["first".to_owned(), "second".to_owned()]);
        editor.paste("long line\nab\nlong line");
        plain(&mut editor, KeyCode::Left);
        plain(&mut editor, KeyCode::Up);
        assert_eq!(editor.lay(20).cursor, (1, 2));
        plain(&mut editor, KeyCode::Up);
        assert_eq!(editor.lay(20).cursor, (0, 8));
        plain(&mut editor, KeyCode::Up);
        assert_eq!(editor.text(), "second");
        plain(&mut editor, KeyCode::Up);
        plain(&mut editor, KeyCode::Up);
        assert_eq!(editor.text(), "first");
        plain(&mut editor, KeyCode::Down);
        plain(&mut editor, KeyCode::Down);
        assert_eq!(editor.text(), "long line\nab\nlong line");
    }

    #[test]
    fn what_is_cut_can_be_put_elsewhere_and_all_can_be_undone() {
        let mut editor = PromptEditor::new(Vec::new());
        typed(&mut editor, "one two");
        control(&mut editor, 'w');
        assert_eq!(editor.text(), "one ");
        control(&mut editor, 'a');
        control(&mut editor, 'y');
        assert_eq!(editor.text(), "twoone ");
        for _ in 0..20 {
            control(&mut editor, '_');
        }
        assert_eq!(editor.text(), "");
    }

    #[test]
    fn a_long_paste_is_a_note_until_it_is_sent() {
        let mut editor = PromptEditor::new(Vec::new());
        typed(&mut editor, "look: ");
        let long = "line\n".repeat(40);
        editor.paste(&long);
        assert_eq!(editor.text(), "look: [Pasted text #1 +40 lines]");
        let sent = plain(&mut editor, KeyCode::Enter);
        assert_eq!(sent, EditorKeyResult::Sent(format!("look: {long}")));
    }

    #[test]
    fn pasted_control_codes_do_not_get_in() {
        let mut editor = PromptEditor::new(Vec::new());
        editor.paste("a\x1b[31mb\r\nc\x07");
        assert!(
            !editor.text().contains(['\x1b', '\x07', '\r']),
            "{:?}",
            editor.text()
        );
        assert!(editor.text().contains('\n'));
    }

    #[test]
    fn no_key_ever_breaks_the_text() {
        use KeyCode::{Backspace, Char, Delete, Down, End, Enter, Home, Left, Right, Up};
        let codes = [
            Backspace,
            Delete,
            Left,
            Right,
            Up,
            Down,
            Home,
            End,
            Enter,
            Char('ä'),
            Char('日'),
            Char(' '),
            Char('w'),
            Char('u'),
            Char('k'),
            Char('y'),
            Char('_'),
            Char('d'),
        ];
        let with = [KeyModifiers::NONE, KeyModifiers::CONTROL, KeyModifiers::ALT];
        let mut editor = PromptEditor::new(vec!["e\u{301} x\n👨‍👩‍👧".to_owned()]);
        let mut number: u64 = 7;
        for _ in 0..20_000 {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let pick = (number >> 33) as usize;
            let key = KeyEvent::new(codes[pick % codes.len()], with[pick / 64 % 3]);
            editor.key(key, 4 + pick % 30);
            assert!(editor.text.is_char_boundary(editor.at));
            let laid = editor.lay(4 + pick % 30);
            assert!(laid.cursor.0 < laid.rows.len());
        }
    }
}
