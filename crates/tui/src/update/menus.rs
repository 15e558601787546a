//! Actions on a session, and the menus that lead to them.

use std::path::PathBuf;

use ratatui::crossterm::event::KeyCode;
use unspool_show::shell_command;
use unspool_show::wire::edit::EditResult;

use crate::app::{App, Choice, Menu, Overlay, Stage, Subject, Trimming};
use crate::keys::{Action, Stroke};
use crate::message::{Effect, Trim};
use crate::page::Ask;

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

pub(super) fn act(app: &mut App, action: Action) -> Vec<Effect> {
    let Some(subject) = subject(app) else {
        app.note = Some(("no session selected".to_owned(), false));
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
        choice(
            'd',
            "default: keep tool calls of the last 20 turns",
            Some("default"),
        ),
        choice(
            'a',
            "aggressive: keep those of the last 10 turns",
            Some("aggressive"),
        ),
        choice('h', "heavy: last 10 turns, most truncated", Some("heavy")),
        choice('e', "extreme: remove all tool calls", Some("extreme")),
        choice('w', "whole: complete copy", None),
    ];
    menu("clone", subject, choices)
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
    menu("export to the current directory", subject, choices)
}

fn copy_menu(subject: Subject, block: bool) -> Menu {
    let directory = subject.cwd.as_ref().filter(|it| it.is_dir());
    let directory = directory.and_then(|it| it.to_str());
    let resume = shell_command::resume(directory, &subject.id);
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

pub(super) fn overlay_key(app: &mut App, stroke: Stroke) -> Vec<Effect> {
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

pub(super) fn trimmed(app: &mut App, result: Result<Box<EditResult>, String>) -> Vec<Effect> {
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
