//! Asks whether a folder is trusted, before there is a conversation.
//!
//! It is the same dialog as for a call: all of it has to be seen, and what is typed for the
//! conversation that follows does not answer it but goes there.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event, KeyEventKind};
use unspool_agent::driver::QuestionAnswer;
use unspool_show::StyledLine;

use super::chat_painter::ChatPainter;
use super::dialogs::{DialogKeyResult, DialogQueue};
use super::editor::PromptEditor;
use super::event_loop::{TypedAhead, size};
use super::question::{FolderSettings, QuestionDialog};
use crate::input::{self, KeyListener, TerminalInput};
use crate::terminal;

/// Between two pictures.
const FRAME: Duration = Duration::from_millis(125);

/// Keys for the conversation that follows. There is one terminal, and so one of these.
static TYPED: Mutex<Vec<Event>> = Mutex::new(Vec::new());

/// What was typed while somebody was asked, for the conversation that follows.
pub(super) fn typed_meanwhile() -> TypedAhead {
    let mut typed = TYPED.lock().unwrap_or_else(PoisonError::into_inner);
    TypedAhead::of(std::mem::take(&mut *typed))
}

/// Shows what the settings of a folder would do, and asks whether they may.
pub fn ask_trust(settings: FolderSettings, color: bool) -> io::Result<bool> {
    terminal::restore_terminal_on_panic();
    terminal::take()?;
    let trusted = ask(settings, color);
    terminal::restore_terminal();
    trusted
}

fn ask(settings: FolderSettings, color: bool) -> io::Result<bool> {
    let (to, inbox) = channel();
    let teller = || {
        let to = to.clone();
        move |heard: TerminalInput| to.send((heard, Instant::now())).is_ok()
    };
    input::signals(teller())?;
    let keys = KeyListener::listen(teller());
    let mut size = size()?;
    let mut painter = ChatPainter::new(io::stdout(), color, size);
    let mut asked = TrustDialog {
        dialogs: DialogQueue::default(),
        editor: PromptEditor::new(Vec::new()),
        events: Vec::new(),
    };
    asked.dialogs.push(QuestionDialog::trust(settings));
    let trusted = loop {
        let now = super::event_loop::size()?;
        if now != size {
            size = now;
            painter.resize(size);
        }
        let (live, cursor) = asked.draw(size, Instant::now());
        painter.draw(&[], &live, cursor)?;
        asked.dialogs.drawn(Instant::now());
        let first = match inbox.recv_timeout(FRAME) {
            Ok(first) => Some(first),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break false,
        };
        let now = Instant::now();
        let rest: Vec<(TerminalInput, Instant)> = inbox.try_iter().collect();
        let mut answer = None;
        for (heard, at) in first.into_iter().chain(rest) {
            match heard {
                // What was pressed behind the answer is for the conversation.
                TerminalInput::Event(event) if answer.is_some() => asked.events.push(event),
                TerminalInput::Event(event) => match asked.hear(event, at, size.0) {
                    DialogKeyResult::Given(_, given) => {
                        answer = Some(given.answer == QuestionAnswer::Yes)
                    }
                    DialogKeyResult::Print(lines) => painter.draw(&lines, &[], None)?,
                    _ => {}
                },
                TerminalInput::Awake => painter.leave()?,
                TerminalInput::Sleep => {
                    painter.leave()?;
                    asked.dialogs.hidden();
                    terminal::restore_terminal();
                    keys.aside(input::sleep);
                    terminal::take()?;
                }
                TerminalInput::End => answer = Some(false),
            }
        }
        if answer.is_none()
            && let DialogKeyResult::Given(_, given) = asked.dialogs.tick(now)
        {
            answer = Some(given.answer == QuestionAnswer::Yes);
        }
        if let Some(answer) = answer {
            break answer;
        }
    };
    painter.leave()?;
    drop(keys);
    let late = inbox.try_iter().filter_map(|(heard, _)| match heard {
        TerminalInput::Event(event) => Some(event),
        _ => None,
    });
    asked.events.extend(late);
    let mut typed = TYPED.lock().unwrap_or_else(PoisonError::into_inner);
    typed.append(&mut asked.events);
    Ok(trusted)
}

/// The question, and what is typed meanwhile.
struct TrustDialog {
    dialogs: DialogQueue,
    editor: PromptEditor,
    events: Vec<Event>,
}

impl TrustDialog {
    fn draw(
        &mut self,
        (width, height): (usize, usize),
        now: Instant,
    ) -> (Vec<StyledLine>, Option<(usize, usize)>) {
        let width = width.max(10);
        let laid = self.editor.lay(width.saturating_sub(2));
        let row = laid.rows.get(laid.cursor.0).cloned().unwrap_or_default();
        let typed = !self.editor.text().trim().is_empty();
        let around = self.dialogs.around(now, typed);
        let Some(question) = self.dialogs.first() else {
            return (Vec::new(), None);
        };
        let (mut lines, _) = question.draw(width, height.saturating_sub(2), around);
        let cursor = (lines.len(), laid.cursor.1 + 2);
        let mark = StyledLine::of(unspool_show::TextStyle::PROMPT, "> ");
        lines.push(mark.with(unspool_show::TextStyle::PLAIN, &row));
        (lines, Some(cursor))
    }

    fn hear(&mut self, event: Event, at: Instant, width: usize) -> DialogKeyResult {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let empty = self.editor.text().trim().is_empty();
                let pressed = self.dialogs.key(key, at, empty, width);
                if let DialogKeyResult::Editor(keys) = &pressed {
                    for key in keys {
                        self.editor.key(*key, width);
                        self.events.push(Event::Key(*key));
                    }
                }
                // There is nothing to interrupt: somebody wants no part of it.
                pressed
            }
            Event::Paste(text) => {
                if let Some(key) = self.dialogs.take_letter() {
                    self.editor.key(key, width);
                    self.events.push(Event::Key(key));
                }
                self.dialogs.typed(at);
                self.editor.paste(&text);
                self.events.push(Event::Paste(text));
                DialogKeyResult::Nothing
            }
            _ => DialogKeyResult::Nothing,
        }
    }
}
