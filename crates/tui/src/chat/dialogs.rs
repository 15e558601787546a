//! Questions wait for their turn here, and here it is decided which keys may answer one.
//!
//! One question is on the screen, the others wait behind it in the order in which they were
//! asked. Somebody who types a prompt must never answer by accident, so a key answers only if
//! nothing stands in the editor, the question has been on the screen for a moment, and nobody
//! typed in that moment. A letter, a digit or enter answers only if no other key follows it within
//! a moment: `y` is an answer, `yes maybe later` is a prompt, and so is a text that begins with an
//! empty line.
//!
//! Time comes in from outside: when a key was pressed, when a question was drawn.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unspool_agent::driver::QuestionAnswer;
use unspool_show::StyledLine;

use super::question::{DialogAnswer, DialogContext, QuestionDialog};

/// So long a question is on the screen before a key answers it, and so long a letter or
/// enter waits for another key behind it.
pub const MOMENT: Duration = Duration::from_millis(500);

/// All questions that are open, and how keys stand to the first of them.
#[derive(Default)]
pub struct DialogQueue {
    open: VecDeque<QuestionDialog>,
    /// Since when the first one is on the screen.
    shown: Option<Instant>,
    /// When something was typed last.
    typed: Option<Instant>,
    /// A letter or enter that chooses, if nothing follows it.
    letter: Option<(KeyEvent, Instant)>,
    /// When a letter or blank marked or scrolled: enter right behind it may be the end of a text.
    marked: Option<Instant>,
}

/// What a key did.
#[derive(Debug, PartialEq)]
pub enum DialogKeyResult {
    /// Something about the question, or nothing.
    Nothing,
    /// These keys are for the editor.
    Editor(Vec<KeyEvent>),
    /// What goes on is to be interrupted.
    Interrupt,
    /// The question of this number was answered.
    Given(u64, DialogAnswer),
    /// These lines are to be printed.
    Print(Vec<StyledLine>),
}

impl DialogQueue {
    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The question on the screen.
    pub fn first(&mut self) -> Option<&mut QuestionDialog> {
        self.open.front_mut()
    }

    /// Whether somebody writes a reason or an answer of their own.
    pub fn is_writing(&self) -> bool {
        self.open.front().is_some_and(QuestionDialog::is_writing)
    }

    /// How things stand around the first question.
    pub fn around(&self, now: Instant, typed: bool) -> DialogContext {
        DialogContext {
            live: self.is_live(now),
            typed,
            chosen: self.letter.is_some(),
            waiting: self.open.len().saturating_sub(1),
        }
    }

    /// A question comes in: it waits behind all others.
    pub fn push(&mut self, question: QuestionDialog) {
        self.open.push_back(question);
    }

    /// A question is no longer asked: what somebody was writing about it.
    pub fn withdraw(&mut self, ask: u64) -> Option<String> {
        self.remove(|question| question.ask == ask)
    }

    /// The turn is over: what the conversation itself asked is no longer asked.
    pub fn withdraw_main(&mut self) -> Option<String> {
        self.remove(QuestionDialog::is_of_main)
    }

    fn remove(&mut self, goes: impl Fn(&QuestionDialog) -> bool) -> Option<String> {
        let first = self.open.front().map(|first| first.ask);
        let unsent = self.open.front().filter(|first| goes(first));
        let unsent = unsent.and_then(QuestionDialog::unsent);
        self.open.retain(|question| !goes(question));
        if self.open.front().map(|first| first.ask) != first {
            self.next();
        }
        unsent
    }

    /// Another question is the first one now: nobody has seen it.
    fn next(&mut self) {
        self.shown = None;
        self.letter = None;
        self.marked = None;
    }

    /// The first question was drawn.
    pub fn drawn(&mut self, at: Instant) {
        if !self.is_empty() {
            self.shown.get_or_insert(at);
        }
    }

    /// Something else is on the screen.
    pub fn hidden(&mut self) {
        self.next();
    }

    /// Something was typed, or pasted, that is no answer.
    pub fn typed(&mut self, at: Instant) {
        self.typed = Some(self.typed.map_or(at, |before| before.max(at)));
    }

    /// The key that waited for another one is no answer: it goes into the editor first.
    pub fn take_letter(&mut self) -> Option<KeyEvent> {
        self.letter.take().map(|(key, _)| key)
    }

    fn is_live(&self, now: Instant) -> bool {
        let quiet = |since: Instant| now.checked_duration_since(since) >= Some(MOMENT);
        self.shown.is_some_and(quiet) && self.typed.is_none_or(quiet)
    }

    /// Takes a key that was pressed at `now`. `empty`: nothing stands in the editor.
    pub fn key(
        &mut self,
        key: KeyEvent,
        now: Instant,
        empty: bool,
        width: usize,
    ) -> DialogKeyResult {
        let live = self.is_live(now);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let Some(first) = self.open.front_mut() else {
            return DialogKeyResult::Editor(vec![key]);
        };
        let ask = first.ask;
        let stops = key.code == KeyCode::Esc || (control && key.code == KeyCode::Char('c'));
        let writing = first.is_writing();
        if writing {
            if key.code == KeyCode::Esc {
                first.stop_writing();
                return DialogKeyResult::Nothing;
            }
            if !stops {
                let given = first.write(key, width);
                self.typed(now);
                return self.given(ask, given);
            }
        }
        if stops {
            // Meant for something that stood there before: this question is not answered.
            if !live && !writing && self.letter.is_none() {
                return DialogKeyResult::Interrupt;
            }
            return self.given(ask, Some(QuestionAnswer::No(None).into()));
        }
        match key.code {
            KeyCode::PageDown | KeyCode::PageUp => {
                first.moves(key.code);
                return DialogKeyResult::Nothing;
            }
            KeyCode::Char('o') if control => return DialogKeyResult::Print(first.print(width)),
            KeyCode::BackTab => return DialogKeyResult::Nothing,
            _ => {}
        }
        let arrow = matches!(key.code, KeyCode::Up | KeyCode::Down | KeyCode::Tab);
        if !empty || (!live && self.letter.is_none()) {
            // An arrow on a question that has just appeared is no text.
            if empty && arrow {
                return DialogKeyResult::Nothing;
            }
            return self.for_editor(key, now);
        }
        if arrow {
            self.letter = None;
            first.moves(key.code);
            return DialogKeyResult::Nothing;
        }
        if self.letter.is_some() {
            return self.for_editor(key, now);
        }
        let plain = !key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter if self.marked.is_some_and(|at| now < at + MOMENT) => {
                DialogKeyResult::Nothing
            }
            // Before the end was seen it chooses nothing, also not when that is seen right after.
            KeyCode::Enter if plain && !first.can_choose() => DialogKeyResult::Nothing,
            KeyCode::Enter if plain => {
                self.letter = Some((key, now));
                DialogKeyResult::Nothing
            }
            KeyCode::Char(' ') if plain && first.moves(key.code) => {
                self.marked = Some(now);
                DialogKeyResult::Nothing
            }
            KeyCode::Char(c) if plain => match first.shortcut(c) {
                // Marks can be taken back: nothing is answered by them.
                Some(at) if first.takes_several() => {
                    first.mark(at);
                    self.marked = Some(now);
                    DialogKeyResult::Nothing
                }
                Some(at) => {
                    first.select(at);
                    self.letter = Some((key, now));
                    DialogKeyResult::Nothing
                }
                None => self.for_editor(key, now),
            },
            _ => self.for_editor(key, now),
        }
    }

    fn for_editor(&mut self, key: KeyEvent, now: Instant) -> DialogKeyResult {
        self.typed(now);
        let mut keys: Vec<KeyEvent> = self.take_letter().into_iter().collect();
        keys.push(key);
        DialogKeyResult::Editor(keys)
    }

    /// Time has passed: a letter or enter that nothing followed chooses now.
    pub fn tick(&mut self, now: Instant) -> DialogKeyResult {
        let Some((_, at)) = self.letter else {
            return DialogKeyResult::Nothing;
        };
        if now.checked_duration_since(at) < Some(MOMENT) {
            return DialogKeyResult::Nothing;
        }
        self.letter = None;
        let Some(first) = self.open.front_mut() else {
            return DialogKeyResult::Nothing;
        };
        let (ask, given) = (first.ask, first.choose());
        self.given(ask, given)
    }

    fn given(&mut self, ask: u64, given: Option<DialogAnswer>) -> DialogKeyResult {
        let Some(given) = given else {
            // The next of several questions may have taken its place.
            if self.open.front().is_some_and(QuestionDialog::is_new) {
                self.next();
            }
            return DialogKeyResult::Nothing;
        };
        self.open.retain(|question| question.ask != ask);
        self.next();
        DialogKeyResult::Given(ask, given)
    }
}

#[cfg(test)]
#[path = "dialogs_tests.rs"]
mod tests;
