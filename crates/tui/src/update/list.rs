//! Keys in the list of sessions.

use std::path::PathBuf;

use ratatui::crossterm::event::KeyEvent;

use super::menus::act;
use super::{open, typed};
use crate::app::{BrowserApp, ScreenOverlay};
use crate::keys::{self, KeyAction, KeyContext, KeyStroke};
use crate::message::AppEffect;

pub(super) fn list_key(
    app: &mut BrowserApp,
    event: &KeyEvent,
    stroke: KeyStroke,
) -> Vec<AppEffect> {
    let blank = app.list.query.is_empty() && !app.list.typing;
    let action = keys::action(KeyContext::List, stroke);
    match (typed(event), action) {
        (Some(_), Some(action)) if blank => list_action(app, action),
        (Some(char), _) => {
            app.list.query.push(char);
            search(app)
        }
        (None, Some(action)) => list_action(app, action),
        (None, None) => Vec::new(),
    }
}

pub(super) fn search(app: &mut BrowserApp) -> Vec<AppEffect> {
    app.list.typing = true;
    let number = app.list.ask();
    vec![AppEffect::Search {
        number,
        query: app.list.query.trim().to_owned(),
    }]
}

fn list_action(app: &mut BrowserApp, action: KeyAction) -> Vec<AppEffect> {
    let page = usize::from(app.body().height).saturating_sub(2) as isize;
    let list = &mut app.list;
    match action {
        KeyAction::Down => list.step(1),
        KeyAction::Up => list.step(-1),
        KeyAction::PageDown => list.step(page),
        KeyAction::PageUp => list.step(-page),
        KeyAction::Start => list.step(isize::MIN / 2),
        KeyAction::End => list.step(isize::MAX / 2),
        KeyAction::Find => list.typing = true,
        KeyAction::Erase => {
            if list.query.pop().is_none() {
                list.typing = false;
                return Vec::new();
            }
            return search(app);
        }
        KeyAction::EraseWord => {
            let kept = list.query.trim_end();
            let end = kept.rfind(' ').map_or(0, |at| at + 1);
            list.query.truncate(end);
            return search(app);
        }
        KeyAction::EraseAll => {
            list.query.clear();
            return search(app);
        }
        KeyAction::Preview => app.preview = !app.preview,
        KeyAction::Open => return open_chosen(app),
        KeyAction::Help => app.overlay = Some(ScreenOverlay::Help { top: 0 }),
        KeyAction::Quit => return vec![AppEffect::Quit],
        KeyAction::Back => {
            if list.query.is_empty() && !list.typing {
                return vec![AppEffect::Quit];
            }
            list.query.clear();
            let effects = search(app);
            app.list.typing = false;
            return effects;
        }
        KeyAction::Resume
        | KeyAction::Talk
        | KeyAction::Trim
        | KeyAction::Export
        | KeyAction::Copy => {
            return act(app, action);
        }
        _ => {}
    }
    Vec::new()
}

pub(super) fn open_chosen(app: &mut BrowserApp) -> Vec<AppEffect> {
    let hit = app.list.hit().cloned();
    let row = app.list.chosen().cloned();
    let (path, id) = match (&row, &hit) {
        (Some(row), _) => (PathBuf::from(&row.path), row.id.clone()),
        (None, Some(hit)) => (PathBuf::from(&hit.path), hit.session.clone()),
        (None, None) => return Vec::new(),
    };
    let effects = open(app, path, id);
    if let (Some(hit), Some(session)) = (hit, &mut app.session) {
        // The output of a tool in a file of its own has no line in the transcript.
        let own = hit.path.ends_with(".jsonl");
        let line = u32::try_from(hit.line).unwrap_or(u32::MAX);
        session.goal = own.then_some((hit.agent.filter(|_| row.is_some()), line));
        session.find.query = app.list.query.trim().to_owned();
        if let Some(level) = session.level_mut() {
            level.follow = false;
        }
    }
    effects
}
