//! What happens to the state, and what is to be done about it.

mod list;
mod loader_events;
mod menus;
mod mouse;
mod session;

use std::path::PathBuf;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use unspool_live::LiveChangeKind;

use crate::app::{BrowserApp, SessionScreen};
use crate::keys::{self, KeyAction, KeyContext, KeyStroke};
use crate::loader_protocol::LoaderRequest;
use crate::message::{AppEffect, AppMessage};
use list::{list_key, search};
use loader_events::apply_loader_event;
use menus::{overlay_key, trimmed};
use mouse::mouse;
use session::{find_key, refresh_side, session_action};

/// Takes a message in.
pub fn update(app: &mut BrowserApp, message: AppMessage) -> Vec<AppEffect> {
    match message {
        AppMessage::Key(event) if event.kind != KeyEventKind::Release => key(app, &event),
        AppMessage::Key(_) => Vec::new(),
        AppMessage::Mouse(event) => mouse(app, &event),
        AppMessage::Paste(text) => paste(app, &text),
        AppMessage::Resize(columns, rows) => {
            app.size = (columns, rows);
            app.session
                .iter_mut()
                .for_each(|session| session.asked = None);
            refresh_side(app)
        }
        AppMessage::Tick(now) => {
            app.now = now;
            grow(app)
        }
        AppMessage::Rows { rows, scanned } => {
            app.list.fill(rows, scanned);
            Vec::new()
        }
        AppMessage::News(what) => news(app, what),
        AppMessage::Book(book, told) => apply_loader_event(app, book, told),
        AppMessage::Hits { number, hits, done } => {
            app.list.found(number, hits, done);
            Vec::new()
        }
        AppMessage::Trimmed(result) => trimmed(app, result),
        AppMessage::Exported(result) => {
            app.note = Some(match result {
                Ok(path) => (format!("wrote {}", path.display()), false),
                Err(why) => (why, true),
            });
            Vec::new()
        }
        AppMessage::Resumed(result) => {
            app.note = result.err().map(|why| (why, true));
            grow(app)
        }
    }
}

/// Puts everything in its place after messages, and asks for what is missing on the screen.
pub fn settle(app: &mut BrowserApp) -> Vec<AppEffect> {
    let (left, _) = app.halves();
    let height = usize::from(left.height);
    let width = app.text_width();
    let Some(session) = &mut app.session else {
        app.list.arrange(height);
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
    let ask = want.map(|want| AppEffect::Ask(session.book, LoaderRequest::Pages(want)));
    ask.into_iter().collect()
}

/// Opens a session.
pub fn open(app: &mut BrowserApp, path: PathBuf, id: String) -> Vec<AppEffect> {
    let mut effects = close(app);
    app.books += 1;
    app.session = Some(SessionScreen::new(app.books, path.clone(), id));
    app.note = None;
    effects.push(AppEffect::Open {
        book: app.books,
        path,
    });
    effects
}

fn close(app: &mut BrowserApp) -> Vec<AppEffect> {
    let closed = app.session.take();
    closed
        .map(|session| AppEffect::Close(session.book))
        .into_iter()
        .collect()
}

fn grow(app: &BrowserApp) -> Vec<AppEffect> {
    let session = app.session.iter();
    session
        .map(|session| AppEffect::Ask(session.book, LoaderRequest::Grow))
        .collect()
}

fn news(app: &mut BrowserApp, what: LiveChangeKind) -> Vec<AppEffect> {
    let grown = match &what {
        LiveChangeKind::Session { row, grown, .. } if *grown => Some(row.id.clone()),
        _ => None,
    };
    app.list.news(what);
    let open = app.session.as_ref().map(|session| session.id.clone());
    if grown.is_some() && grown == open {
        return grow(app);
    }
    Vec::new()
}

fn key(app: &mut BrowserApp, event: &KeyEvent) -> Vec<AppEffect> {
    let stroke = KeyStroke::of(event);
    app.note = None;
    match keys::action(KeyContext::Any, stroke) {
        Some(KeyAction::Quit) => return vec![AppEffect::Quit],
        Some(KeyAction::Suspend) => return vec![AppEffect::Suspend],
        _ => {}
    }
    if app.overlay.is_some() {
        return overlay_key(app, stroke);
    }
    match &mut app.session {
        Some(session) if session.find.typing => find_key(app, event),
        Some(_) => match keys::action(KeyContext::Session, stroke) {
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

fn paste(app: &mut BrowserApp, text: &str) -> Vec<AppEffect> {
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
