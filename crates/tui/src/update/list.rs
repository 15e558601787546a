//! Keys in the list of sessions.

use std::path::PathBuf;

use ratatui::crossterm::event::KeyEvent;

use super::menus::act;
use super::{open, typed};
use crate::app::{App, Overlay};
use crate::keys::{self, Action, Place, Stroke};
use crate::message::Effect;

pub(super) fn list_key(app: &mut App, event: &KeyEvent, stroke: Stroke) -> Vec<Effect> {
    let blank = app.list.query.is_empty() && !app.list.typing;
    let action = keys::action(Place::List, stroke);
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

pub(super) fn search(app: &mut App) -> Vec<Effect> {
    app.list.typing = true;
    let number = app.list.ask();
    vec![Effect::Search {
        number,
        query: app.list.query.trim().to_owned(),
    }]
}

fn list_action(app: &mut App, action: Action) -> Vec<Effect> {
    let page = usize::from(app.body().height).saturating_sub(2) as isize;
    let list = &mut app.list;
    match action {
        Action::Down => list.step(1),
        Action::Up => list.step(-1),
        Action::PageDown => list.step(page),
        Action::PageUp => list.step(-page),
        Action::Start => list.step(isize::MIN / 2),
        Action::End => list.step(isize::MAX / 2),
        Action::Find => list.typing = true,
        Action::Erase => {
            if list.query.pop().is_none() {
                list.typing = false;
                return Vec::new();
            }
            return search(app);
        }
        Action::EraseWord => {
            let kept = list.query.trim_end();
            let end = kept.rfind(' ').map_or(0, |at| at + 1);
            list.query.truncate(end);
            return search(app);
        }
        Action::EraseAll => {
            list.query.clear();
            return search(app);
        }
        Action::Preview => app.preview = !app.preview,
        Action::Open => return open_chosen(app),
        Action::Help => app.overlay = Some(Overlay::Help { top: 0 }),
        Action::Quit => return vec![Effect::Quit],
        Action::Back => {
            if list.query.is_empty() && !list.typing {
                return vec![Effect::Quit];
            }
            list.query.clear();
            let effects = search(app);
            app.list.typing = false;
            return effects;
        }
        Action::Resume | Action::Talk | Action::Trim | Action::Export | Action::Copy => {
            return act(app, action);
        }
        _ => {}
    }
    Vec::new()
}

pub(super) fn open_chosen(app: &mut App) -> Vec<Effect> {
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
