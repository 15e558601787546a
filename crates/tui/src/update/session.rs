//! Keys in an open session.

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use unspool_show::Tools;

use super::book::show_hit;
use super::menus::act;
use super::{close, typed};
use crate::app::{App, Beside, Overlay};
use crate::keys::Action;
use crate::level::Level;
use crate::message::Effect;
use crate::page::{Ask, Conversation, Side};

pub(super) fn find_key(app: &mut App, event: &KeyEvent) -> Vec<Effect> {
    let Some(session) = &mut app.session else {
        return Vec::new();
    };
    let find = &mut session.find;
    match (event.code, typed(event)) {
        (_, Some(char)) => find.query.push(char),
        (KeyCode::Char('w'), _) => {
            let end = find.query.trim_end().rfind(' ').map_or(0, |at| at + 1);
            find.query.truncate(end);
        }
        (KeyCode::Char('u'), _) => find.query.clear(),
        (KeyCode::Backspace, _) => find.typing = find.query.pop().is_some(),
        (KeyCode::Esc, _) => {
            find.typing = false;
            find.query.clear();
            find.hits.clear();
            find.at = None;
        }
        (KeyCode::Enter, _) => {
            find.typing = false;
            find.hits.clear();
            find.at = None;
            find.number += 1;
            find.searching = !find.query.is_empty();
            let Some(level) = session.stack.last().filter(|_| session.find.searching) else {
                return Vec::new();
            };
            if level.partial {
                app.note = Some(("the session is still loading".to_owned(), false));
                session.find.searching = false;
                return Vec::new();
            }
            let ask = Ask::Find {
                number: session.find.number,
                of: level.of.clone(),
                query: session.find.query.clone(),
            };
            return vec![Effect::Ask(session.book, ask)];
        }
        _ => {}
    }
    Vec::new()
}

pub(super) fn session_action(app: &mut App, action: Action) -> Vec<Effect> {
    // What stands over the conversation is moved first.
    if app.side_area().is_some() && app.halves().1.is_none() && scroll_side(app, action) {
        return Vec::new();
    }
    match action {
        Action::Quit => return vec![Effect::Quit],
        Action::Back => return back(app),
        Action::Help => app.overlay = Some(Overlay::Help { top: 0 }),
        Action::Context => return beside(app, Side::Context),
        Action::Usage => return beside(app, Side::Usage),
        Action::Files => return beside(app, Side::Files),
        Action::Raw => return raw(app),
        Action::Open => return enter(app),
        Action::Resume | Action::Talk | Action::Trim | Action::Export | Action::Copy => {
            return act(app, action);
        }
        Action::NextHit => return next_hit(app, true),
        Action::PreviousHit => return next_hit(app, false),
        _ => {}
    }
    let Some(session) = &mut app.session else {
        return Vec::new();
    };
    match action {
        Action::Tools => {
            session.tools = match session.tools {
                Tools::None => Tools::Short,
                Tools::Short => Tools::Full,
                Tools::Full => Tools::None,
            };
            let how = match session.tools {
                Tools::None => "no tools",
                Tools::Short => "tools short",
                Tools::Full => "tools full",
            };
            app.note = Some((how.to_owned(), false));
        }
        Action::Thinking => {
            session.thinking = !session.thinking;
            let how = if session.thinking {
                "with thinking"
            } else {
                "without thinking"
            };
            app.note = Some((how.to_owned(), false));
        }
        Action::Find => {
            session.find.typing = true;
            session.find.query.clear();
        }
        other => {
            if let Some(level) = session.level_mut() {
                walk(level, other);
            }
        }
    }
    Vec::new()
}

fn walk(level: &mut Level, action: Action) {
    let page = level.height.saturating_sub(2).max(1);
    match action {
        Action::Down => level.down(),
        Action::Up => level.up(),
        Action::LineDown => level.scroll(1),
        Action::LineUp => level.scroll(-1),
        Action::PageDown => level.page_down(page),
        Action::PageUp => level.scroll(-(page as isize)),
        Action::HalfDown => level.page_down(page / 2),
        Action::HalfUp => level.scroll(-(page as isize / 2)),
        Action::Start => level.go_start(),
        Action::End => level.go_end(),
        Action::NextTurn => level.next_turn(),
        Action::PreviousTurn => level.previous_turn(),
        Action::NextPrompt => level.go_prompt(true),
        Action::PreviousPrompt => level.go_prompt(false),
        Action::Fold => level.fold(),
        Action::FoldAll => level.fold_all(),
        Action::Follow if level.follow => level.follow = false,
        Action::Follow => level.go_end(),
        _ => {}
    }
}

/// One step back: what stands beside, the sub-agent, the session.
fn back(app: &mut App) -> Vec<Effect> {
    let Some(session) = &mut app.session else {
        return Vec::new();
    };
    if session.side.take().is_some() {
        session.asked = None;
        return Vec::new();
    }
    if session.stack.len() > 1 {
        session.stack.pop();
        session.asked = None;
        return Vec::new();
    }
    close(app)
}

pub(super) fn beside(app: &mut App, side: Side) -> Vec<Effect> {
    let Some(session) = &mut app.session else {
        return Vec::new();
    };
    session.asked = None;
    if session.side.as_ref().is_some_and(|open| open.side == side) {
        session.side = None;
        return Vec::new();
    }
    session.side = Some(Beside {
        side,
        lines: None,
        top: 0,
    });
    refresh_side(app)
}

pub(super) fn refresh_side(app: &App) -> Vec<Effect> {
    let Some(session) = &app.session else {
        return Vec::new();
    };
    let width = app.side_width();
    let ask = session.side.as_ref().zip(session.level());
    let ask = ask.map(|(beside, level)| {
        let ask = Ask::Side {
            side: beside.side,
            of: level.of.clone(),
            width,
        };
        Effect::Ask(session.book, ask)
    });
    ask.into_iter().collect()
}

/// Moves what stands over the conversation; `false` if the key is for something else.
fn scroll_side(app: &mut App, action: Action) -> bool {
    let height = usize::from(app.body().height).saturating_sub(2).max(1);
    let Some(beside) = app
        .session
        .as_mut()
        .and_then(|session| session.side.as_mut())
    else {
        return false;
    };
    let last = beside
        .lines
        .as_ref()
        .map_or(0, Vec::len)
        .saturating_sub(height);
    beside.top = match action {
        Action::Down | Action::LineDown => beside.top + 1,
        Action::Up | Action::LineUp => beside.top.saturating_sub(1),
        Action::PageDown | Action::HalfDown => beside.top + height,
        Action::PageUp | Action::HalfUp => beside.top.saturating_sub(height),
        Action::Start => 0,
        Action::End => last,
        _ => return false,
    }
    .min(last);
    true
}

/// Opens what is under the cursor: a turn, a sub-agent, or all of a block.
pub(super) fn enter(app: &mut App) -> Vec<Effect> {
    let Some(session) = &mut app.session else {
        return Vec::new();
    };
    let book = session.book;
    session.asked = None;
    let Some(level) = session.level_mut() else {
        return Vec::new();
    };
    if level.cursor.unit == 0 {
        level.fold();
        return Vec::new();
    }
    let Some(block) = level.block() else {
        return Vec::new();
    };
    if let Some((started, name)) = block.agent.clone() {
        let of = Conversation::Agent(started);
        if session.stack.iter().any(|level| level.of == of) {
            return Vec::new();
        }
        session.stack.push(Level::new(of.clone(), name));
        return vec![Effect::Ask(book, Ask::Enter(of))];
    }
    if block.opens {
        level.toggle();
    }
    Vec::new()
}

fn raw(app: &mut App) -> Vec<Effect> {
    let width = usize::from(app.size.0).saturating_sub(4).max(20);
    let Some(session) = &app.session else {
        return Vec::new();
    };
    let Some((level, block)) = session
        .level()
        .and_then(|level| Some((level, level.block()?)))
    else {
        app.note = Some(("no line selected: open the turn first".to_owned(), false));
        return Vec::new();
    };
    let line = block.line;
    let ask = Ask::Raw {
        of: level.of.clone(),
        line,
        width,
    };
    let effect = Effect::Ask(session.book, ask);
    app.overlay = Some(Overlay::Raw {
        line,
        lines: None,
        top: 0,
    });
    vec![effect]
}

fn next_hit(app: &mut App, forward: bool) -> Vec<Effect> {
    let Some(session) = &mut app.session else {
        return Vec::new();
    };
    let count = session.find.hits.len();
    if count == 0 {
        if !session.find.query.is_empty() && !session.find.searching && session.find.at.is_none() {
            // The query came with the session, from the list.
            session.find.typing = true;
            return find_key(app, &KeyEvent::from(KeyCode::Enter));
        }
        app.note = Some(("no matches".to_owned(), false));
        return Vec::new();
    }
    let at = match (session.find.at, forward) {
        (None, true) => 0,
        (None, false) => count - 1,
        (Some(at), true) => (at + 1) % count,
        (Some(at), false) => (at + count - 1) % count,
    };
    show_hit(session, at);
    app.note = Some((format!("hit {} of {count}", at + 1), false));
    Vec::new()
}
