//! Keys in an open session.

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use unspool_show::ToolDetail;

use super::loader_events::show_hit;
use super::menus::act;
use super::{close, typed};
use crate::app::{BrowserApp, ScreenOverlay, SidePanel};
use crate::conversation_view::ConversationView;
use crate::keys::KeyAction;
use crate::loader_protocol::{ConversationId, LoaderRequest, SidePanelKind};
use crate::message::AppEffect;

pub(super) fn find_key(app: &mut BrowserApp, event: &KeyEvent) -> Vec<AppEffect> {
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
            let ask = LoaderRequest::Find {
                number: session.find.number,
                of: level.of.clone(),
                query: session.find.query.clone(),
            };
            return vec![AppEffect::Ask(session.book, ask)];
        }
        _ => {}
    }
    Vec::new()
}

pub(super) fn session_action(app: &mut BrowserApp, action: KeyAction) -> Vec<AppEffect> {
    // What stands over the conversation is moved first.
    if app.side_area().is_some() && app.halves().1.is_none() && scroll_side(app, action) {
        return Vec::new();
    }
    match action {
        KeyAction::Quit => return vec![AppEffect::Quit],
        KeyAction::Back => return back(app),
        KeyAction::Help => app.overlay = Some(ScreenOverlay::Help { top: 0 }),
        KeyAction::Context => return beside(app, SidePanelKind::Context),
        KeyAction::Usage => return beside(app, SidePanelKind::Usage),
        KeyAction::Files => return beside(app, SidePanelKind::Files),
        KeyAction::Raw => return raw(app),
        KeyAction::Open => return enter(app),
        KeyAction::Resume
        | KeyAction::Talk
        | KeyAction::Trim
        | KeyAction::Export
        | KeyAction::Copy => {
            return act(app, action);
        }
        KeyAction::NextHit => return next_hit(app, true),
        KeyAction::PreviousHit => return next_hit(app, false),
        _ => {}
    }
    let Some(session) = &mut app.session else {
        return Vec::new();
    };
    match action {
        KeyAction::Tools => {
            session.tools = match session.tools {
                ToolDetail::None => ToolDetail::Short,
                ToolDetail::Short => ToolDetail::Full,
                ToolDetail::Full => ToolDetail::None,
            };
            let how = match session.tools {
                ToolDetail::None => "no tools",
                ToolDetail::Short => "tools short",
                ToolDetail::Full => "tools full",
            };
            app.note = Some((how.to_owned(), false));
        }
        KeyAction::Thinking => {
            session.thinking = !session.thinking;
            let how = if session.thinking {
                "with thinking"
            } else {
                "without thinking"
            };
            app.note = Some((how.to_owned(), false));
        }
        KeyAction::Find => {
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

fn walk(level: &mut ConversationView, action: KeyAction) {
    let page = level.height.saturating_sub(2).max(1);
    match action {
        KeyAction::Down => level.down(),
        KeyAction::Up => level.up(),
        KeyAction::LineDown => level.scroll(1),
        KeyAction::LineUp => level.scroll(-1),
        KeyAction::PageDown => level.page_down(page),
        KeyAction::PageUp => level.scroll(-(page as isize)),
        KeyAction::HalfDown => level.page_down(page / 2),
        KeyAction::HalfUp => level.scroll(-(page as isize / 2)),
        KeyAction::Start => level.go_start(),
        KeyAction::End => level.go_end(),
        KeyAction::NextTurn => level.next_turn(),
        KeyAction::PreviousTurn => level.previous_turn(),
        KeyAction::NextPrompt => level.go_prompt(true),
        KeyAction::PreviousPrompt => level.go_prompt(false),
        KeyAction::Fold => level.fold(),
        KeyAction::FoldAll => level.fold_all(),
        KeyAction::Follow if level.follow => level.follow = false,
        KeyAction::Follow => level.go_end(),
        _ => {}
    }
}

/// One step back: what stands beside, the sub-agent, the session.
fn back(app: &mut BrowserApp) -> Vec<AppEffect> {
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

pub(super) fn beside(app: &mut BrowserApp, side: SidePanelKind) -> Vec<AppEffect> {
    let Some(session) = &mut app.session else {
        return Vec::new();
    };
    session.asked = None;
    if session.side.as_ref().is_some_and(|open| open.side == side) {
        session.side = None;
        return Vec::new();
    }
    session.side = Some(SidePanel {
        side,
        lines: None,
        top: 0,
    });
    refresh_side(app)
}

pub(super) fn refresh_side(app: &BrowserApp) -> Vec<AppEffect> {
    let Some(session) = &app.session else {
        return Vec::new();
    };
    let width = app.side_width();
    let ask = session.side.as_ref().zip(session.level());
    let ask = ask.map(|(beside, level)| {
        let ask = LoaderRequest::Side {
            side: beside.side,
            of: level.of.clone(),
            width,
        };
        AppEffect::Ask(session.book, ask)
    });
    ask.into_iter().collect()
}

/// Moves what stands over the conversation; `false` if the key is for something else.
fn scroll_side(app: &mut BrowserApp, action: KeyAction) -> bool {
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
        KeyAction::Down | KeyAction::LineDown => beside.top + 1,
        KeyAction::Up | KeyAction::LineUp => beside.top.saturating_sub(1),
        KeyAction::PageDown | KeyAction::HalfDown => beside.top + height,
        KeyAction::PageUp | KeyAction::HalfUp => beside.top.saturating_sub(height),
        KeyAction::Start => 0,
        KeyAction::End => last,
        _ => return false,
    }
    .min(last);
    true
}

/// Opens what is under the cursor: a turn, a sub-agent, or all of a block.
pub(super) fn enter(app: &mut BrowserApp) -> Vec<AppEffect> {
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
        let of = ConversationId::Agent(started);
        if session.stack.iter().any(|level| level.of == of) {
            return Vec::new();
        }
        session.stack.push(ConversationView::new(of.clone(), name));
        return vec![AppEffect::Ask(book, LoaderRequest::Enter(of))];
    }
    if block.opens {
        level.toggle();
    }
    Vec::new()
}

fn raw(app: &mut BrowserApp) -> Vec<AppEffect> {
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
    let ask = LoaderRequest::Raw {
        of: level.of.clone(),
        line,
        width,
    };
    let effect = AppEffect::Ask(session.book, ask);
    app.overlay = Some(ScreenOverlay::Raw {
        line,
        lines: None,
        top: 0,
    });
    vec![effect]
}

fn next_hit(app: &mut BrowserApp, forward: bool) -> Vec<AppEffect> {
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
