//! What happens to the state, and what is to be done about it.

mod book;
mod list;
mod menus;
mod mouse;
mod session;

use std::path::PathBuf;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use unspool_live::What;

use crate::app::{App, Opened};
use crate::keys::{self, Action, Place, Stroke};
use crate::message::{Effect, Message};
use crate::page::Ask;
use book::book_says;
use list::{list_key, search};
use menus::{overlay_key, trimmed};
use mouse::mouse;
use session::{find_key, refresh_side, session_action};

/// Takes a message in.
pub fn update(app: &mut App, message: Message) -> Vec<Effect> {
    match message {
        Message::Key(event) if event.kind != KeyEventKind::Release => key(app, &event),
        Message::Key(_) => Vec::new(),
        Message::Mouse(event) => mouse(app, &event),
        Message::Paste(text) => paste(app, &text),
        Message::Resize(columns, rows) => {
            app.size = (columns, rows);
            app.session
                .iter_mut()
                .for_each(|session| session.asked = None);
            refresh_side(app)
        }
        Message::Tick(now) => {
            app.now = now;
            grow(app)
        }
        Message::Rows { rows, scanned } => {
            app.list.fill(rows, scanned);
            Vec::new()
        }
        Message::News(what) => news(app, what),
        Message::Book(book, told) => book_says(app, book, told),
        Message::Hits { number, hits, done } => {
            app.list.found(number, hits, done);
            Vec::new()
        }
        Message::Trimmed(result) => trimmed(app, result),
        Message::Exported(result) => {
            app.note = Some(match result {
                Ok(path) => (format!("wrote {}", path.display()), false),
                Err(why) => (why, true),
            });
            Vec::new()
        }
        Message::Resumed(result) => {
            app.note = result.err().map(|why| (why, true));
            grow(app)
        }
    }
}

/// Puts everything in its place after messages, and asks for what is missing on the screen.
pub fn settle(app: &mut App) -> Vec<Effect> {
    let (left, _) = app.halves();
    let height = usize::from(left.height);
    let width = app.text_width();
    let Some(session) = &mut app.session else {
        app.list.settle(height);
        return Vec::new();
    };
    let look = session.look(width);
    let Some(level) = session.level_mut() else {
        return Vec::new();
    };
    level.resize(height);
    let want = level.want(&look);
    if want == session.asked {
        return Vec::new();
    }
    session.asked = want.clone();
    let ask = want.map(|want| Effect::Ask(session.book, Ask::Pages(want)));
    ask.into_iter().collect()
}

/// Opens a session.
pub fn open(app: &mut App, path: PathBuf, id: String) -> Vec<Effect> {
    let mut effects = close(app);
    app.books += 1;
    app.session = Some(Opened::new(app.books, path.clone(), id));
    app.note = None;
    effects.push(Effect::Open {
        book: app.books,
        path,
    });
    effects
}

fn close(app: &mut App) -> Vec<Effect> {
    let closed = app.session.take();
    closed
        .map(|session| Effect::Close(session.book))
        .into_iter()
        .collect()
}

fn grow(app: &App) -> Vec<Effect> {
    let session = app.session.iter();
    session
        .map(|session| Effect::Ask(session.book, Ask::Grow))
        .collect()
}

fn news(app: &mut App, what: What) -> Vec<Effect> {
    let grown = match &what {
        What::Session { row, grown, .. } if *grown => Some(row.id.clone()),
        _ => None,
    };
    app.list.news(what);
    let open = app.session.as_ref().map(|session| session.id.clone());
    if grown.is_some() && grown == open {
        return grow(app);
    }
    Vec::new()
}

fn key(app: &mut App, event: &KeyEvent) -> Vec<Effect> {
    let stroke = Stroke::of(event);
    app.note = None;
    match keys::action(Place::Any, stroke) {
        Some(Action::Quit) => return vec![Effect::Quit],
        Some(Action::Suspend) => return vec![Effect::Suspend],
        _ => {}
    }
    if app.overlay.is_some() {
        return overlay_key(app, stroke);
    }
    match &mut app.session {
        Some(session) if session.find.typing => find_key(app, event),
        Some(_) => match keys::action(Place::Session, stroke) {
            Some(action) => session_action(app, action),
            None => Vec::new(),
        },
        None => list_key(app, event, stroke),
    }
}

fn typed(event: &KeyEvent) -> Option<char> {
    let command = KeyModifiers::CONTROL | KeyModifiers::ALT;
    match event.code {
        KeyCode::Char(char) if !event.modifiers.intersects(command) => Some(char),
        _ => None,
    }
}

fn paste(app: &mut App, text: &str) -> Vec<Effect> {
    let text = unspool_show::clean::line(text);
    match &mut app.session {
        Some(session) if session.find.typing => {
            session.find.query.push_str(&text);
            Vec::new()
        }
        Some(_) => Vec::new(),
        None if app.overlay.is_some() => Vec::new(),
        None => {
            app.list.query.push_str(&text);
            search(app)
        }
    }
}
