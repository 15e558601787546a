//! What the thread that reads a session tells, taken into the state.

use unspool_model::view::transcript::AgentLocation;

use super::session::refresh_side;
use crate::app::{BrowserApp, ScreenOverlay, SessionScreen};
use crate::conversation_view::ConversationView;
use crate::loader_protocol::{ConversationId, LoaderEvent, LoaderRequest};
use crate::message::AppEffect;

pub(super) fn apply_loader_event(
    app: &mut BrowserApp,
    book: u64,
    told: LoaderEvent,
) -> Vec<AppEffect> {
    let Some(session) = app.session.as_mut().filter(|session| session.book == book) else {
        return Vec::new();
    };
    match told {
        LoaderEvent::Turns {
            of,
            turns,
            partial,
            revision,
            facts,
        } => {
            session.facts = facts;
            session.failed = None;
            if let Some(level) = session.level_of(&of) {
                level.take_turns(turns, partial, revision);
            }
            session.asked = None;
            let mut effects = if partial {
                Vec::new()
            } else {
                to_goal(session, &of)
            };
            // What stands beside it is of the whole session.
            effects.extend(refresh_side(app));
            effects
        }
        LoaderEvent::Head {
            of,
            revision,
            turn,
            head,
        } => {
            if let Some(level) = session.level_of(&of) {
                level.take_head(turn, revision, head);
            }
            Vec::new()
        }
        LoaderEvent::Page {
            of,
            revision,
            turn,
            part,
            look,
            page,
        } => {
            if let Some(level) = session.level_of(&of) {
                level.take_page(turn, part, revision, look, page);
            }
            Vec::new()
        }
        LoaderEvent::Found { number, hits, done } => {
            found(session, number, hits, done);
            Vec::new()
        }
        LoaderEvent::Side { side, lines, .. } => {
            if let Some(beside) = session.side.as_mut().filter(|beside| beside.side == side) {
                beside.lines = Some(lines);
            }
            Vec::new()
        }
        LoaderEvent::Text(text) => {
            app.note = Some(("block copied".to_owned(), false));
            vec![AppEffect::Copy(text)]
        }
        LoaderEvent::Raw { line, lines } => {
            if let Some(ScreenOverlay::Raw {
                line: wanted,
                lines: slot,
                ..
            }) = &mut app.overlay
                && *wanted == line
            {
                *slot = Some(lines);
            }
            Vec::new()
        }
        LoaderEvent::Failed(why) => {
            session.failed = Some(why);
            Vec::new()
        }
    }
}

/// Goes to the place that a hit named.
fn to_goal(session: &mut SessionScreen, told: &ConversationId) -> Vec<AppEffect> {
    let Some((agent, line)) = session.goal.clone() else {
        return Vec::new();
    };
    let of = match agent {
        Some(id) => ConversationId::Agent(AgentLocation::File(id)),
        None => ConversationId::Main,
    };
    if session.level_of(&of).is_none() {
        let name = match &of {
            ConversationId::Agent(AgentLocation::File(id)) => format!("agent-{id}"),
            _ => String::new(),
        };
        session.stack.push(ConversationView::new(of.clone(), name));
        return vec![AppEffect::Ask(session.book, LoaderRequest::Enter(of))];
    }
    if *told != of {
        return Vec::new();
    }
    session.goal = None;
    session.find.number += 1;
    let number = session.find.number;
    vec![AppEffect::Ask(
        session.book,
        LoaderRequest::Locate { number, of, line },
    )]
}

pub(super) fn found(
    session: &mut SessionScreen,
    number: u64,
    hits: Vec<crate::loader_protocol::FindHit>,
    done: bool,
) {
    if number != session.find.number {
        return;
    }
    session.find.hits.extend(hits);
    session.find.searching &= !done;
    if session.find.at.is_none() && !session.find.hits.is_empty() && !session.find.typing {
        // From here on, not from the start.
        let here = session.level().map_or(0, |level| level.cursor.turn);
        let next = session.find.hits.iter().position(|hit| hit.turn >= here);
        if next.is_some() || done {
            show_hit(session, next.unwrap_or(0));
        }
    }
}

pub(super) fn show_hit(session: &mut SessionScreen, at: usize) {
    let Some(hit) = session.find.hits.get(at).cloned() else {
        return;
    };
    session.find.at = Some(at);
    session.thinking |= hit.thinking;
    session.asked = None;
    let needle = session.find.query.clone();
    if let Some(level) = session.level_mut() {
        level.needle = needle;
        level.seek(hit.turn, hit.part, hit.line);
    }
}
