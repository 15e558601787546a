//! Actions on a session, and the menus that lead to them.

use std::path::PathBuf;

use ratatui::crossterm::event::KeyCode;
use unspool_show::shell_command;
use unspool_show::wire::edit::EditResult;

use crate::app::{
    ActionMenu, ActionMenuChoice, ActionSession, BrowserApp, ScreenOverlay, TrimDialog, TrimStage,
};
use crate::keys::{KeyAction, KeyStroke};
use crate::loader_protocol::LoaderRequest;
use crate::message::{AppEffect, TrimRequest};

fn subject(app: &BrowserApp) -> Option<ActionSession> {
    if let Some(session) = &app.session {
        let row = app.list.session(&session.id);
        let cwd = row.and_then(|row| row.cwd.clone());
        return Some(ActionSession {
            id: session.id.clone(),
            path: session.path.clone(),
            cwd: cwd.or(session.facts.cwd.clone()).map(PathBuf::from),
        });
    }
    let row = app.list.chosen()?;
    Some(ActionSession {
        id: row.id.clone(),
        path: PathBuf::from(&row.path),
        cwd: row.cwd.clone().map(PathBuf::from),
    })
}

pub(super) fn act(app: &mut BrowserApp, action: KeyAction) -> Vec<AppEffect> {
    let Some(subject) = subject(app) else {
        app.note = Some(("no session selected".to_owned(), false));
        return Vec::new();
    };
    match action {
        KeyAction::Resume | KeyAction::Talk => {
            return vec![AppEffect::Resume {
                id: subject.id,
                cwd: subject.cwd,
                talk: action == KeyAction::Talk,
            }];
        }
        KeyAction::Trim => app.overlay = Some(ScreenOverlay::Menu(trim_menu(subject))),
        KeyAction::Export => app.overlay = Some(ScreenOverlay::Menu(export_menu(subject))),
        KeyAction::Copy => {
            let block = app.session.as_ref().and_then(|session| session.level());
            let block = block.is_some_and(|level| level.block().is_some());
            app.overlay = Some(ScreenOverlay::Menu(copy_menu(subject, block)));
        }
        _ => {}
    }
    Vec::new()
}

fn menu(
    title: &'static str,
    subject: ActionSession,
    choices: Vec<(char, String, ActionMenuChoice)>,
) -> ActionMenu {
    ActionMenu {
        title,
        choices,
        at: 0,
        subject,
    }
}

fn trim_menu(subject: ActionSession) -> ActionMenu {
    let choice =
        |key: char, words: &str, preset| (key, words.to_owned(), ActionMenuChoice::Trim(preset));
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

fn export_menu(subject: ActionSession) -> ActionMenu {
    let choice =
        |key: char, words: &str, format| (key, words.to_owned(), ActionMenuChoice::Export(format));
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

fn copy_menu(subject: ActionSession, block: bool) -> ActionMenu {
    let directory = subject.cwd.as_ref().filter(|it| it.is_dir());
    let directory = directory.and_then(|it| it.to_str());
    let resume = shell_command::resume(directory, &subject.id);
    let path = subject.path.display().to_string();
    let mut choices = Vec::new();
    if block {
        choices.push((
            'b',
            "the block under the cursor".to_owned(),
            ActionMenuChoice::CopyBlock,
        ));
    }
    let texts = [('i', subject.id.clone()), ('r', resume), ('p', path)];
    choices.extend(texts.map(|(key, text)| (key, text.clone(), ActionMenuChoice::Copy(text))));
    menu("copy", subject, choices)
}

pub(super) fn overlay_key(app: &mut BrowserApp, stroke: KeyStroke) -> Vec<AppEffect> {
    let leaves = matches!(
        stroke,
        KeyStroke::Key(KeyCode::Esc) | KeyStroke::Char('q') | KeyStroke::Key(KeyCode::Backspace)
    );
    let page = usize::from(app.body().height).saturating_sub(2).max(1);
    match &mut app.overlay {
        None => Vec::new(),
        Some(ScreenOverlay::Help { top }) => {
            let leaves = leaves || stroke == KeyStroke::Char('?');
            if leaves || !scrolled(top, usize::MAX, page, stroke) {
                app.overlay = None;
            }
            Vec::new()
        }
        Some(ScreenOverlay::Raw { lines, top, .. }) => {
            let last = lines.as_ref().map_or(0, Vec::len).saturating_sub(page);
            if leaves || stroke == KeyStroke::Char('o') {
                app.overlay = None;
            } else {
                scrolled(top, last, page, stroke);
            }
            Vec::new()
        }
        Some(ScreenOverlay::Menu(menu)) => {
            if leaves {
                app.overlay = None;
                return Vec::new();
            }
            let by_key = match stroke {
                KeyStroke::Char(char) => menu.choices.iter().position(|choice| choice.0 == char),
                _ => None,
            };
            match (stroke, by_key) {
                (_, Some(at)) => menu.at = at,
                (KeyStroke::Key(KeyCode::Down) | KeyStroke::Char('j'), _) => {
                    menu.at = (menu.at + 1).min(menu.choices.len().saturating_sub(1));
                    return Vec::new();
                }
                (KeyStroke::Key(KeyCode::Up) | KeyStroke::Char('k'), _) => {
                    menu.at = menu.at.saturating_sub(1);
                    return Vec::new();
                }
                (KeyStroke::Key(KeyCode::Enter), _) => {}
                _ => return Vec::new(),
            }
            choose(app)
        }
        Some(ScreenOverlay::Trim(trimming)) => trim_key(trimming, stroke).unwrap_or_else(|| {
            if leaves || stroke == KeyStroke::Char('n') {
                app.overlay = None;
            }
            Vec::new()
        }),
    }
}

/// Moves a text; `false` if the key is for something else.
fn scrolled(top: &mut usize, last: usize, page: usize, stroke: KeyStroke) -> bool {
    *top = match stroke {
        KeyStroke::Key(KeyCode::Down) | KeyStroke::Char('j') => *top + 1,
        KeyStroke::Key(KeyCode::Up) | KeyStroke::Char('k') => top.saturating_sub(1),
        KeyStroke::Key(KeyCode::PageDown) | KeyStroke::Char(' ') => *top + page,
        KeyStroke::Key(KeyCode::PageUp) | KeyStroke::Char('b') => top.saturating_sub(page),
        KeyStroke::Key(KeyCode::Home) | KeyStroke::Char('g') => 0,
        KeyStroke::Key(KeyCode::End) | KeyStroke::Char('G') if last < usize::MAX => last,
        _ => return false,
    }
    .min(last);
    true
}

/// Does what was chosen.
fn choose(app: &mut BrowserApp) -> Vec<AppEffect> {
    let Some(ScreenOverlay::Menu(menu)) = app.overlay.take() else {
        return Vec::new();
    };
    let Some((_, _, choice)) = menu.choices.into_iter().nth(menu.at) else {
        return Vec::new();
    };
    let subject = menu.subject;
    match choice {
        ActionMenuChoice::Copy(text) => {
            app.note = Some((format!("copied {text}"), false));
            vec![AppEffect::Copy(text)]
        }
        ActionMenuChoice::CopyBlock => {
            let Some(session) = &app.session else {
                return Vec::new();
            };
            let level = session
                .level()
                .and_then(|level| Some((level, level.block()?)));
            let ask = level.map(|(level, block)| {
                let ask = LoaderRequest::Text {
                    of: level.of.clone(),
                    turn: level.cursor.turn,
                    part: level.cursor.unit.saturating_sub(1),
                    item: block.item,
                };
                AppEffect::Ask(session.book, ask)
            });
            ask.into_iter().collect()
        }
        ActionMenuChoice::Export(format) => {
            app.note = Some((format!("writing {format} …"), false));
            let path = subject.path;
            vec![AppEffect::Export { path, format }]
        }
        ActionMenuChoice::Trim(preset) => {
            let path = subject.path.clone();
            app.overlay = Some(ScreenOverlay::Trim(TrimDialog {
                subject,
                preset,
                stage: TrimStage::Planning,
            }));
            vec![AppEffect::Trim(TrimRequest {
                path,
                preset,
                dry_run: true,
            })]
        }
    }
}

/// What a key does to a copy; `None` if nothing.
fn trim_key(trimming: &mut TrimDialog, stroke: KeyStroke) -> Option<Vec<AppEffect>> {
    let yes = matches!(
        stroke,
        KeyStroke::Key(KeyCode::Enter) | KeyStroke::Char('y')
    );
    match &trimming.stage {
        TrimStage::Planned(_) if yes => {
            trimming.stage = TrimStage::Writing;
            Some(vec![AppEffect::Trim(TrimRequest {
                path: trimming.subject.path.clone(),
                preset: trimming.preset,
                dry_run: false,
            })])
        }
        TrimStage::Done(result) if stroke == KeyStroke::Char('r') => {
            Some(vec![AppEffect::Resume {
                id: result.session.clone(),
                cwd: trimming.subject.cwd.clone(),
                talk: false,
            }])
        }
        // It cannot be stopped half-way, and it says how it ended.
        TrimStage::Writing => Some(Vec::new()),
        _ => None,
    }
}

pub(super) fn trimmed(
    app: &mut BrowserApp,
    result: Result<Box<EditResult>, String>,
) -> Vec<AppEffect> {
    let Some(ScreenOverlay::Trim(trimming)) = &mut app.overlay else {
        return Vec::new();
    };
    trimming.stage = match result {
        Ok(result) if result.dry_run => TrimStage::Planned(result),
        Ok(result) => TrimStage::Done(result),
        Err(why) => TrimStage::Failed(why),
    };
    Vec::new()
}
