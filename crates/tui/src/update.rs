//! What happens to the state, and what is to be done about it.

use std::path::PathBuf;

use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::Position;
use unspool_live::What;
use unspool_show::Tools;
use unspool_show::wire::edit::EditResult;

use crate::app::{App, Beside, Choice, Menu, Opened, Overlay, Stage, Subject, Trimming};
use crate::keys::{self, Action, Place, Stroke};
use crate::level::Level;
use crate::message::{Effect, Message, Trim};
use crate::page::{Ask, Conversation, Side, Told};
use unspool_model::view::transcript::Started;

/// Rows that a turn of the wheel moves.
const WHEEL: isize = 3;
/// Two clicks within so many milliseconds are one.
const DOUBLE: u64 = 400;

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

fn book_says(app: &mut App, book: u64, told: Told) -> Vec<Effect> {
    let Some(session) = app.session.as_mut().filter(|session| session.book == book) else {
        return Vec::new();
    };
    match told {
        Told::Turns {
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
        Told::Head {
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
        Told::Page {
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
        Told::Found { number, hits, done } => {
            found(session, number, hits, done);
            Vec::new()
        }
        Told::Side { side, lines, .. } => {
            if let Some(beside) = session.side.as_mut().filter(|beside| beside.side == side) {
                beside.lines = Some(lines);
            }
            Vec::new()
        }
        Told::Text(text) => {
            app.note = Some(("copied the block".to_owned(), false));
            vec![Effect::Copy(text)]
        }
        Told::Raw { line, lines } => {
            if let Some(Overlay::Raw {
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
        Told::Failed(why) => {
            session.failed = Some(why);
            Vec::new()
        }
    }
}

/// Goes to the place that a hit named.
fn to_goal(session: &mut Opened, told: &Conversation) -> Vec<Effect> {
    let Some((agent, line)) = session.goal.clone() else {
        return Vec::new();
    };
    let of = match agent {
        Some(id) => Conversation::Agent(Started::File(id)),
        None => Conversation::Main,
    };
    if session.level_of(&of).is_none() {
        let name = match &of {
            Conversation::Agent(Started::File(id)) => format!("agent-{id}"),
            _ => String::new(),
        };
        session.stack.push(Level::new(of.clone(), name));
        return vec![Effect::Ask(session.book, Ask::Enter(of))];
    }
    if *told != of {
        return Vec::new();
    }
    session.goal = None;
    session.find.number += 1;
    let number = session.find.number;
    vec![Effect::Ask(session.book, Ask::Locate { number, of, line })]
}

fn found(session: &mut Opened, number: u64, hits: Vec<crate::page::Hit>, done: bool) {
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

fn show_hit(session: &mut Opened, at: usize) {
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

// The list.

fn list_key(app: &mut App, event: &KeyEvent, stroke: Stroke) -> Vec<Effect> {
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

fn search(app: &mut App) -> Vec<Effect> {
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

fn open_chosen(app: &mut App) -> Vec<Effect> {
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

// A session.

fn find_key(app: &mut App, event: &KeyEvent) -> Vec<Effect> {
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
                app.note = Some(("the session is still being read".to_owned(), false));
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

fn session_action(app: &mut App, action: Action) -> Vec<Effect> {
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
                Tools::Short => "tools in short",
                Tools::Full => "tools in full",
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

fn beside(app: &mut App, side: Side) -> Vec<Effect> {
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

fn refresh_side(app: &App) -> Vec<Effect> {
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
fn enter(app: &mut App) -> Vec<Effect> {
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
        app.note = Some(("no line is chosen: open the turn first".to_owned(), false));
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
        app.note = Some(("nothing was found".to_owned(), false));
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

// What is done to a session.

fn subject(app: &App) -> Option<Subject> {
    if let Some(session) = &app.session {
        let row = app.list.session(&session.id);
        let cwd = row.and_then(|row| row.cwd.clone());
        return Some(Subject {
            id: session.id.clone(),
            path: session.path.clone(),
            cwd: cwd.or(session.facts.cwd.clone()).map(PathBuf::from),
        });
    }
    let row = app.list.chosen()?;
    Some(Subject {
        id: row.id.clone(),
        path: PathBuf::from(&row.path),
        cwd: row.cwd.clone().map(PathBuf::from),
    })
}

fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let Some(subject) = subject(app) else {
        app.note = Some(("no session is chosen".to_owned(), false));
        return Vec::new();
    };
    match action {
        Action::Resume | Action::Talk => {
            return vec![Effect::Resume {
                id: subject.id,
                cwd: subject.cwd,
                talk: action == Action::Talk,
            }];
        }
        Action::Trim => app.overlay = Some(Overlay::Menu(trim_menu(subject))),
        Action::Export => app.overlay = Some(Overlay::Menu(export_menu(subject))),
        Action::Copy => {
            let block = app.session.as_ref().and_then(|session| session.level());
            let block = block.is_some_and(|level| level.block().is_some());
            app.overlay = Some(Overlay::Menu(copy_menu(subject, block)));
        }
        _ => {}
    }
    Vec::new()
}

fn menu(title: &'static str, subject: Subject, choices: Vec<(char, String, Choice)>) -> Menu {
    Menu {
        title,
        choices,
        at: 0,
        subject,
    }
}

fn trim_menu(subject: Subject) -> Menu {
    let choice = |key: char, words: &str, preset| (key, words.to_owned(), Choice::Trim(preset));
    let choices = vec![
        choice('d', "default: tools of the last 20 turns", Some("default")),
        choice('a', "aggressive: of the last 10", Some("aggressive")),
        choice('h', "heavy: of the last 10, most cut short", Some("heavy")),
        choice('e', "extreme: no tools", Some("extreme")),
        choice('w', "whole: a copy with everything", None),
    ];
    menu("make a copy", subject, choices)
}

fn export_menu(subject: Subject) -> Menu {
    let choice = |key: char, words: &str, format| (key, words.to_owned(), Choice::Export(format));
    let choices = vec![
        choice('h', "html: a page for a browser", "html"),
        choice('m', "md: Markdown", "md"),
        choice('t', "txt: plain text", "txt"),
        choice('j', "json: one object", "json"),
        choice('l', "jsonl: the lines of the transcript", "jsonl"),
        choice('s', "messages: what a client would send", "messages"),
    ];
    menu("export to a file here", subject, choices)
}

fn copy_menu(subject: Subject, block: bool) -> Menu {
    let resume = format!("claude --resume {}", subject.id);
    let path = subject.path.display().to_string();
    let mut choices = Vec::new();
    if block {
        choices.push((
            'b',
            "the block under the cursor".to_owned(),
            Choice::CopyBlock,
        ));
    }
    let texts = [('i', subject.id.clone()), ('r', resume), ('p', path)];
    choices.extend(texts.map(|(key, text)| (key, text.clone(), Choice::Copy(text))));
    menu("copy", subject, choices)
}

fn overlay_key(app: &mut App, stroke: Stroke) -> Vec<Effect> {
    let leaves = matches!(
        stroke,
        Stroke::Key(KeyCode::Esc) | Stroke::Char('q') | Stroke::Key(KeyCode::Backspace)
    );
    let page = usize::from(app.body().height).saturating_sub(2).max(1);
    match &mut app.overlay {
        None => Vec::new(),
        Some(Overlay::Help { top }) => {
            let leaves = leaves || stroke == Stroke::Char('?');
            if leaves || !scrolled(top, usize::MAX, page, stroke) {
                app.overlay = None;
            }
            Vec::new()
        }
        Some(Overlay::Raw { lines, top, .. }) => {
            let last = lines.as_ref().map_or(0, Vec::len).saturating_sub(page);
            if leaves || stroke == Stroke::Char('o') {
                app.overlay = None;
            } else {
                scrolled(top, last, page, stroke);
            }
            Vec::new()
        }
        Some(Overlay::Menu(menu)) => {
            if leaves {
                app.overlay = None;
                return Vec::new();
            }
            let by_key = match stroke {
                Stroke::Char(char) => menu.choices.iter().position(|choice| choice.0 == char),
                _ => None,
            };
            match (stroke, by_key) {
                (_, Some(at)) => menu.at = at,
                (Stroke::Key(KeyCode::Down) | Stroke::Char('j'), _) => {
                    menu.at = (menu.at + 1).min(menu.choices.len().saturating_sub(1));
                    return Vec::new();
                }
                (Stroke::Key(KeyCode::Up) | Stroke::Char('k'), _) => {
                    menu.at = menu.at.saturating_sub(1);
                    return Vec::new();
                }
                (Stroke::Key(KeyCode::Enter), _) => {}
                _ => return Vec::new(),
            }
            choose(app)
        }
        Some(Overlay::Trim(trimming)) => trim_key(trimming, stroke).unwrap_or_else(|| {
            if leaves || stroke == Stroke::Char('n') {
                app.overlay = None;
            }
            Vec::new()
        }),
    }
}

/// Moves a text; `false` if the key is for something else.
fn scrolled(top: &mut usize, last: usize, page: usize, stroke: Stroke) -> bool {
    *top = match stroke {
        Stroke::Key(KeyCode::Down) | Stroke::Char('j') => *top + 1,
        Stroke::Key(KeyCode::Up) | Stroke::Char('k') => top.saturating_sub(1),
        Stroke::Key(KeyCode::PageDown) | Stroke::Char(' ') => *top + page,
        Stroke::Key(KeyCode::PageUp) | Stroke::Char('b') => top.saturating_sub(page),
        Stroke::Key(KeyCode::Home) | Stroke::Char('g') => 0,
        Stroke::Key(KeyCode::End) | Stroke::Char('G') if last < usize::MAX => last,
        _ => return false,
    }
    .min(last);
    true
}

/// Does what was chosen.
fn choose(app: &mut App) -> Vec<Effect> {
    let Some(Overlay::Menu(menu)) = app.overlay.take() else {
        return Vec::new();
    };
    let Some((_, _, choice)) = menu.choices.into_iter().nth(menu.at) else {
        return Vec::new();
    };
    let subject = menu.subject;
    match choice {
        Choice::Copy(text) => {
            app.note = Some((format!("copied {text}"), false));
            vec![Effect::Copy(text)]
        }
        Choice::CopyBlock => {
            let Some(session) = &app.session else {
                return Vec::new();
            };
            let level = session
                .level()
                .and_then(|level| Some((level, level.block()?)));
            let ask = level.map(|(level, block)| {
                let ask = Ask::Text {
                    of: level.of.clone(),
                    turn: level.cursor.turn,
                    part: level.cursor.unit.saturating_sub(1),
                    item: block.item,
                };
                Effect::Ask(session.book, ask)
            });
            ask.into_iter().collect()
        }
        Choice::Export(format) => {
            app.note = Some((format!("writing {format} …"), false));
            let path = subject.path;
            vec![Effect::Export { path, format }]
        }
        Choice::Trim(preset) => {
            let path = subject.path.clone();
            app.overlay = Some(Overlay::Trim(Trimming {
                subject,
                preset,
                stage: Stage::Planning,
            }));
            vec![Effect::Trim(Trim {
                path,
                preset,
                dry_run: true,
            })]
        }
    }
}

/// What a key does to a copy; `None` if nothing.
fn trim_key(trimming: &mut Trimming, stroke: Stroke) -> Option<Vec<Effect>> {
    let yes = matches!(stroke, Stroke::Key(KeyCode::Enter) | Stroke::Char('y'));
    match &trimming.stage {
        Stage::Planned(_) if yes => {
            trimming.stage = Stage::Writing;
            Some(vec![Effect::Trim(Trim {
                path: trimming.subject.path.clone(),
                preset: trimming.preset,
                dry_run: false,
            })])
        }
        Stage::Done(result) if stroke == Stroke::Char('r') => Some(vec![Effect::Resume {
            id: result.session.clone(),
            cwd: trimming.subject.cwd.clone(),
            talk: false,
        }]),
        // It cannot be stopped half-way, and it says how it ended.
        Stage::Writing => Some(Vec::new()),
        _ => None,
    }
}

fn trimmed(app: &mut App, result: Result<Box<EditResult>, String>) -> Vec<Effect> {
    let Some(Overlay::Trim(trimming)) = &mut app.overlay else {
        return Vec::new();
    };
    trimming.stage = match result {
        Ok(result) if result.dry_run => Stage::Planned(result),
        Ok(result) => Stage::Done(result),
        Err(why) => Stage::Failed(why),
    };
    Vec::new()
}

// The mouse.

fn mouse(app: &mut App, event: &MouseEvent) -> Vec<Effect> {
    let at = Position::new(event.column, event.row);
    match event.kind {
        MouseEventKind::ScrollDown => wheel(app, at, WHEEL),
        MouseEventKind::ScrollUp => wheel(app, at, -WHEEL),
        MouseEventKind::Down(MouseButton::Left) => return click(app, at),
        _ => {}
    }
    Vec::new()
}

fn wheel(app: &mut App, at: Position, rows: isize) {
    let page = usize::from(app.body().height).saturating_sub(2).max(1);
    let beside = app.side_area().is_some_and(|area| area.contains(at));
    match (&mut app.overlay, &mut app.session) {
        (Some(Overlay::Help { top }), _) => *top = top.saturating_add_signed(rows),
        (Some(Overlay::Raw { lines, top, .. }), _) => {
            let last = lines.as_ref().map_or(0, Vec::len).saturating_sub(page);
            *top = top.saturating_add_signed(rows).min(last);
        }
        (Some(_), _) => {}
        (None, Some(session)) => match &mut session.side {
            Some(open) if beside => {
                let last = open.lines.as_ref().map_or(0, Vec::len).saturating_sub(page);
                open.top = open.top.saturating_add_signed(rows).min(last);
            }
            _ => {
                if let Some(level) = session.level_mut() {
                    level.scroll(rows);
                }
            }
        },
        (None, None) => app.list.step(rows.signum()),
    }
}

fn click(app: &mut App, at: Position) -> Vec<Effect> {
    if app.overlay.is_some() {
        app.overlay = None;
        return Vec::new();
    }
    let twice = app
        .click
        .is_some_and(|(x, y, when)| (x, y) == (at.x, at.y) && app.now.since(when) <= DOUBLE);
    app.click = Some((at.x, at.y, app.now));
    let (left, _) = app.halves();
    if !left.contains(at) {
        return Vec::new();
    }
    let row = usize::from(at.y - left.y);
    let Some(session) = &mut app.session else {
        let before = app.list.at();
        let line = app.list.top + row;
        app.list.choose(line);
        return match before == line && app.list.at() == line {
            true => open_chosen(app),
            false => Vec::new(),
        };
    };
    let Some(level) = session.level_mut() else {
        return Vec::new();
    };
    let again = level.point(row);
    let head = level.cursor.unit == 0;
    if (again && head) || twice {
        return enter(app);
    }
    Vec::new()
}
