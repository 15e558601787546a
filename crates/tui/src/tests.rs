//! The browser as people see it: keys in, pictures out.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod list;
mod session;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unspool_model::price::Prices;
use unspool_model::time::Time;
use unspool_show::wire::session::SessionJson;
use unspool_store::read::SessionReader;
use unspool_testkit::script;

use crate::app::BrowserApp;
use crate::loader_protocol::{ConversationId, LoaderEvent, LoaderRequest};
use crate::message::{AppEffect, AppMessage};
use crate::session_loader::{self, LoaderCommand, LoaderOptions};
use crate::update::{open, settle, update};

/// A browser without a terminal: books are real, everything else is noted.
pub struct Browser {
    pub app: BrowserApp,
    pub done: Vec<AppEffect>,
    dir: tempfile::TempDir,
    book: Option<(u64, Sender<LoaderCommand>)>,
    told: Receiver<(u64, LoaderEvent)>,
    tell: Sender<(u64, LoaderEvent)>,
    /// Searches that are not done.
    finds: usize,
}

impl Browser {
    pub fn new(columns: u16, rows: u16) -> Browser {
        let now = Time::parse("2026-01-05T12:00:00.000Z").unwrap();
        let (tell, told) = channel();
        Browser {
            app: BrowserApp::new((columns, rows), now, TimeZone::UTC, true),
            done: Vec::new(),
            dir: tempfile::tempdir().unwrap(),
            book: None,
            told,
            tell,
            finds: 0,
        }
    }

    /// Writes a session and says where.
    pub fn write(&self, id: &str, lines: &str) -> PathBuf {
        let path = self.dir.path().join(format!("{id}.jsonl"));
        let script = format!("(cwd=/home/dev/x, session={id})\n{lines}");
        std::fs::write(&path, script::jsonl(&script)).unwrap();
        path
    }

    /// Writes a sub-agent of a session.
    pub fn write_agent(&self, id: &str, agent: &str, call: &str, lines: &str) {
        let folder = self.dir.path().join(id).join("subagents");
        std::fs::create_dir_all(&folder).unwrap();
        let script = format!("(cwd=/home/dev/x, session={id}, agent={agent})\n{lines}");
        let name = folder.join(format!("agent-{agent}"));
        std::fs::write(name.with_extension("jsonl"), script::jsonl(&script)).unwrap();
        let meta = format!(
            r#"{{"agentType":"general-purpose","description":"look","toolUseId":"{call}"}}"#
        );
        std::fs::write(name.with_extension("meta.json"), meta).unwrap();
    }

    /// Opens a session and waits until it stands.
    pub fn open(&mut self, id: &str, lines: &str) -> PathBuf {
        let path = self.write(id, lines);
        let effects = open(&mut self.app, path.clone(), id.to_owned());
        self.act(effects);
        self.wait();
        path
    }

    fn act(&mut self, effects: Vec<AppEffect>) {
        for effect in effects {
            match effect {
                AppEffect::Open { book, path } => {
                    let library = LoaderOptions {
                        reader: SessionReader::default(),
                        zone: TimeZone::UTC,
                        prices: Arc::new(Prices::bundled().clone()),
                    };
                    let tell = self.tell.clone();
                    let orders = session_loader::open(library, path, move |told| {
                        let _ = tell.send((book, told));
                    });
                    self.book = Some((book, orders));
                }
                AppEffect::Ask(book, ask) => {
                    let Some((_, orders)) = self.book.as_ref().filter(|open| open.0 == book) else {
                        continue;
                    };
                    self.finds += usize::from(matches!(
                        ask,
                        LoaderRequest::Find { .. } | LoaderRequest::Locate { .. }
                    ));
                    let _ = orders.send(LoaderCommand::Ask(ask));
                }
                AppEffect::Close(_) => self.book = None,
                other => self.done.push(other),
            }
        }
    }

    /// Takes in what books say until nothing is missing on the screen, and no question is open.
    pub fn wait(&mut self) {
        let start = std::time::Instant::now();
        loop {
            let effects = settle(&mut self.app);
            self.act(effects);
            // A question whose answer comes after all others that were asked before.
            let last = LoaderRequest::Raw {
                of: ConversationId::Main,
                line: u32::MAX,
                width: 20,
            };
            let sent = self
                .book
                .as_ref()
                .map(|(_, orders)| orders.send(LoaderCommand::Ask(last)));
            if !matches!(sent, Some(Ok(()))) {
                self.drain();
                return;
            }
            let news = self.until_answered();
            let missing = self
                .app
                .session
                .as_ref()
                .is_some_and(|open| open.asked.is_some());
            if !news && self.finds == 0 && !missing {
                return;
            }
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "it never settles"
            );
        }
    }

    /// Whether anything else was said before the last answer.
    fn until_answered(&mut self) -> bool {
        let mut news = false;
        loop {
            let Ok((book, told)) = self.told.recv_timeout(Duration::from_secs(30)) else {
                panic!("the book says nothing");
            };
            match told {
                LoaderEvent::Raw { line: u32::MAX, .. } => return news,
                LoaderEvent::Failed(_) => {
                    self.take(book, told);
                    self.book = None;
                    return true;
                }
                told => {
                    news = true;
                    self.take(book, told);
                }
            }
        }
    }

    fn drain(&mut self) {
        while let Ok((book, told)) = self.told.try_recv() {
            self.take(book, told);
        }
    }

    fn take(&mut self, book: u64, told: LoaderEvent) {
        if matches!(told, LoaderEvent::Found { done: true, .. }) {
            self.finds = self.finds.saturating_sub(1);
        }
        let effects = update(&mut self.app, AppMessage::Book(book, told));
        self.act(effects);
    }

    pub fn message(&mut self, message: AppMessage) {
        let effects = update(&mut self.app, message);
        self.act(effects);
        self.wait();
    }

    /// Presses keys: characters, or names in angle brackets.
    pub fn press(&mut self, keys: &str) {
        let mut rest = keys;
        while let Some(first) = rest.chars().next() {
            let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
            let event = match named {
                Some((name, behind)) => {
                    rest = behind;
                    named_key(name)
                }
                None => {
                    rest = &rest[first.len_utf8()..];
                    KeyEvent::new(KeyCode::Char(first), KeyModifiers::NONE)
                }
            };
            self.message(AppMessage::Key(event));
        }
    }

    /// What is on the screen, without blanks at the ends of lines.
    pub fn screen(&mut self) -> String {
        self.wait();
        let (columns, rows) = self.app.size;
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        terminal
            .draw(|frame| crate::draw::draw(&self.app, frame))
            .unwrap();
        let buffer = terminal.backend().buffer();
        let mut text = String::new();
        for y in 0..rows {
            let mut line = String::new();
            let mut x = 0;
            while x < columns {
                let symbol = buffer.cell((x, y)).unwrap().symbol();
                line.push_str(symbol);
                x += unicode_width::UnicodeWidthStr::width(symbol).max(1) as u16;
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn named_key(name: &str) -> KeyEvent {
    let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
    match name {
        "enter" => plain(KeyCode::Enter),
        "esc" => plain(KeyCode::Esc),
        "tab" => plain(KeyCode::Tab),
        "back" => plain(KeyCode::Backspace),
        "up" => plain(KeyCode::Up),
        "down" => plain(KeyCode::Down),
        "home" => plain(KeyCode::Home),
        "end" => plain(KeyCode::End),
        "pgup" => plain(KeyCode::PageUp),
        "pgdn" => plain(KeyCode::PageDown),
        _ => {
            let char = name.strip_prefix("c-").unwrap().chars().next().unwrap();
            KeyEvent::new(KeyCode::Char(char), KeyModifiers::CONTROL)
        }
    }
}

/// A row as `live` would give it.
pub fn row(id: &str, project: &str, title: &str, status: &str, last: &str) -> Arc<SessionJson> {
    use std::collections::HashMap;
    use unspool_model::session::{Session, TranscriptRole};
    use unspool_show::wire::session::SessionFileInfo;
    let session = Session::new(TranscriptRole::Main);
    let now = Time::parse("2026-01-05T12:00:00.000Z").unwrap();
    let empty = unspool_model::view::session_row::row(
        &unspool_model::view::session_usage::SessionFiles::alone(&session),
        &HashMap::new(),
        Prices::bundled(),
        &unspool_model::view::status::StatusSignals::default(),
        now,
    );
    let place = SessionFileInfo {
        id: id.to_owned(),
        path: format!("/p/{id}.jsonl"),
        project: project.to_owned(),
        ..SessionFileInfo::default()
    };
    Arc::new(SessionJson {
        title: Some(title.to_owned()),
        goal: Some(title.to_owned()),
        recent_output: Some("All done.".to_owned()),
        status: status.to_owned(),
        status_sure: true,
        last: Some(last.to_owned()),
        status_since: Some(last.to_owned()),
        cwd: Some(project.to_owned()),
        git_branch: Some("main".to_owned()),
        model: Some("claude-opus-5".to_owned()),
        cost_usd: Some(1.25),
        context_tokens: Some(84_100),
        context_limit: Some(200_000),
        turns: 3,
        calls: 12,
        ..SessionJson::new(&session, empty, place)
    })
}
