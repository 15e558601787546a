//! Joins the state to the world: one loop over one channel, everything slow on other threads.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::Event;
use unspool_live::LiveSubscription;
use unspool_model::time::Time;
use unspool_show::shell_command;
use unspool_show::wire::hit::HitRow;

use crate::app::BrowserApp;
use crate::backend::BrowserBackend;
use crate::input::{self, KeyListener, TerminalInput};
use crate::message::{AppEffect, AppMessage};
use crate::session_loader::{self, LoaderCommand, LoaderOptions};
use crate::terminal::BrowserTerminal;
use crate::update::{open, settle, update};

/// What the browser is given.
pub struct BrowserOptions {
    /// All sessions and what becomes of them; called again if that ends.
    pub join: Box<dyn Fn() -> LiveSubscription + Send>,
    /// How sessions are read.
    pub library: LoaderOptions,
    /// Who does what commands do.
    pub desk: Arc<dyn BrowserBackend>,
    /// The session to begin with: its file and id.
    pub first: Option<(PathBuf, String)>,
    /// What stands above everything.
    pub banner: Option<String>,
    /// Use colours.
    pub color: bool,
    /// The clock.
    pub clock: fn() -> Time,
    /// The program that resumes sessions.
    pub client: String,
    /// Our own program, which can go on with them, too.
    pub own: String,
    /// Fails when this many frames were drawn: for tests of how that ends.
    pub fails_at: Option<u64>,
}

/// What the loop hears.
pub enum BrowserEvent {
    /// Something for the state.
    Message(AppMessage),
    /// The program is to sleep.
    Sleep,
    /// It was called back.
    Awake,
    /// It is to end.
    End,
}

/// Between two looks at the clock.
const TICK: Duration = Duration::from_secs(1);
/// So many messages are taken in before the next picture.
const BATCH: usize = 4_000;

/// Runs the browser until somebody leaves it.
pub fn run(setting: BrowserOptions) -> io::Result<()> {
    let (to, inbox) = channel();
    let mut screen = BrowserTerminal::new()?;
    let size = screen.size()?;
    let zone = setting.library.zone.clone();
    let mut app = BrowserApp::new(size, (setting.clock)(), zone, setting.color);
    app.banner.clone_from(&setting.banner);
    input::signals(teller(&to))?;
    let BrowserOptions {
        join,
        library,
        desk,
        first,
        clock,
        client,
        own,
        fails_at,
        ..
    } = setting;
    let mut hands = AppEffectRunner {
        library,
        searches: searcher(Arc::clone(&desk), to.clone()),
        desk,
        client,
        own,
        books: HashMap::new(),
        keys: KeyListener::listen(teller(&to)),
        to: to.clone(),
    };
    let begin = match first {
        Some((path, id)) => open(&mut app, path, id),
        None => Vec::new(),
    };
    for effect in begin {
        let _ = hands.act(&mut app, &mut screen, effect)?;
    }
    follow(join, to);
    BrowserEventLoop {
        inbox,
        clock,
        next: Instant::now() + TICK,
        frames: 0,
        fails_at,
    }
    .run(&mut app, &mut screen, &mut hands)
}

/// Hands on what is heard.
fn teller(to: &Sender<BrowserEvent>) -> impl Fn(TerminalInput) -> bool + Send + 'static {
    let to = to.clone();
    move |heard| match heard {
        TerminalInput::Event(event) => match message(event) {
            Some(message) => to.send(BrowserEvent::Message(message)).is_ok(),
            None => true,
        },
        TerminalInput::Sleep => to.send(BrowserEvent::Sleep).is_ok(),
        TerminalInput::Awake => to.send(BrowserEvent::Awake).is_ok(),
        TerminalInput::End => to.send(BrowserEvent::End).is_ok(),
    }
}

fn message(event: Event) -> Option<AppMessage> {
    match event {
        Event::Key(key) => Some(AppMessage::Key(key)),
        Event::Mouse(mouse) => Some(AppMessage::Mouse(mouse)),
        Event::Paste(text) => Some(AppMessage::Paste(text)),
        Event::Resize(columns, rows) => Some(AppMessage::Resize(columns, rows)),
        Event::FocusGained | Event::FocusLost => None,
    }
}

struct BrowserEventLoop {
    inbox: Receiver<BrowserEvent>,
    clock: fn() -> Time,
    next: Instant,
    frames: u64,
    fails_at: Option<u64>,
}

impl BrowserEventLoop {
    fn run(
        mut self,
        app: &mut BrowserApp,
        screen: &mut BrowserTerminal,
        hands: &mut AppEffectRunner,
    ) -> io::Result<()> {
        loop {
            for effect in settle(app) {
                let _ = hands.act(app, screen, effect)?;
            }
            screen.draw(app)?;
            self.frames += 1;
            assert!(
                self.fails_at.is_none_or(|at| self.frames < at),
                "a failure that was asked for"
            );
            for happening in self.wait() {
                let effects = match happening {
                    BrowserEvent::End => return Ok(()),
                    BrowserEvent::Sleep => vec![AppEffect::Suspend],
                    BrowserEvent::Awake => {
                        screen.again()?;
                        let (columns, rows) = screen.size()?;
                        update(app, AppMessage::Resize(columns, rows))
                    }
                    BrowserEvent::Message(message) => {
                        app.now = (self.clock)();
                        update(app, message)
                    }
                };
                for effect in effects {
                    if hands.act(app, screen, effect)?.is_break() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// What happened; at least that time passed.
    fn wait(&mut self) -> Vec<BrowserEvent> {
        let left = self.next.saturating_duration_since(Instant::now());
        let mut all = match self.inbox.recv_timeout(left) {
            Ok(first) => vec![first],
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => return vec![BrowserEvent::End],
        };
        all.extend(self.inbox.try_iter().take(BATCH));
        if Instant::now() >= self.next {
            self.next = Instant::now() + TICK;
            all.push(BrowserEvent::Message(AppMessage::Tick((self.clock)())));
        }
        all
    }
}

/// Hands on what becomes of sessions.
fn follow(join: Box<dyn Fn() -> LiveSubscription + Send>, to: Sender<BrowserEvent>) {
    std::thread::spawn(move || {
        loop {
            let joined = join();
            let rows = AppMessage::Rows {
                rows: joined.rows,
                scanned: joined.scanned,
            };
            if to.send(BrowserEvent::Message(rows)).is_err() {
                return;
            }
            for news in joined.news {
                let news = AppMessage::News(news.what);
                if to.send(BrowserEvent::Message(news)).is_err() {
                    return;
                }
            }
            std::thread::sleep(TICK);
        }
    });
}

/// A search waits so long for the next key.
const PAUSE: Duration = Duration::from_millis(80);
/// Hits that are shown of a search.
const MOST: usize = 300;
/// Hits that are shown of one session; the rest is found in it.
const EACH: usize = 5;
/// How often hits are handed on.
const EVERY: Duration = Duration::from_millis(60);

/// Where searches are sent, and the number of the one that counts.
struct SearchSender {
    queries: Sender<(u64, String)>,
    wanted: Arc<AtomicU64>,
}

/// Searches one query after the other; a new one stops the one before.
fn searcher(desk: Arc<dyn BrowserBackend>, to: Sender<BrowserEvent>) -> SearchSender {
    let (queries, inbox) = channel::<(u64, String)>();
    let wanted = Arc::new(AtomicU64::new(0));
    let current = Arc::clone(&wanted);
    std::thread::spawn(move || {
        while let Ok((number, query)) = inbox.recv() {
            std::thread::sleep(PAUSE);
            if current.load(Ordering::SeqCst) != number || query.is_empty() {
                continue;
            }
            search(&*desk, &to, &current, number, &query);
        }
    });
    SearchSender { queries, wanted }
}

fn search(
    desk: &dyn BrowserBackend,
    to: &Sender<BrowserEvent>,
    wanted: &AtomicU64,
    number: u64,
    query: &str,
) {
    let send = |hits: Vec<HitRow>, done| {
        let message = AppMessage::Hits { number, hits, done };
        let _ = to.send(BrowserEvent::Message(message));
    };
    let mut batch: Vec<HitRow> = Vec::new();
    let mut of_session: HashMap<String, usize> = HashMap::new();
    let (mut count, mut sent) = (0, Instant::now());
    let done = desk.search(query, &mut |hit| {
        let known = of_session.entry(hit.session.clone()).or_default();
        *known += 1;
        if *known <= EACH {
            batch.push(hit);
            count += 1;
        }
        if sent.elapsed() >= EVERY {
            sent = Instant::now();
            send(std::mem::take(&mut batch), None);
        }
        match count < MOST && wanted.load(Ordering::SeqCst) == number {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    send(batch, Some(done));
}

/// Does what the state wants done.
struct AppEffectRunner {
    library: LoaderOptions,
    desk: Arc<dyn BrowserBackend>,
    client: String,
    own: String,
    books: HashMap<u64, Sender<LoaderCommand>>,
    keys: KeyListener,
    searches: SearchSender,
    to: Sender<BrowserEvent>,
}

impl AppEffectRunner {
    fn act(
        &mut self,
        app: &mut BrowserApp,
        screen: &mut BrowserTerminal,
        effect: AppEffect,
    ) -> io::Result<ControlFlow<()>> {
        match effect {
            AppEffect::Quit => return Ok(ControlFlow::Break(())),
            AppEffect::Suspend => {
                let keys = &self.keys;
                screen.aside(|| keys.aside(input::sleep))?;
                let (columns, rows) = screen.size()?;
                update(app, AppMessage::Resize(columns, rows));
            }
            AppEffect::Open { book, path } => {
                let to = self.to.clone();
                let orders = session_loader::open(self.library.clone(), path, move |told| {
                    let _ = to.send(BrowserEvent::Message(AppMessage::Book(book, told)));
                });
                self.books.insert(book, orders);
            }
            AppEffect::Close(book) => {
                if let Some(orders) = self.books.remove(&book) {
                    let _ = orders.send(LoaderCommand::Close);
                }
            }
            AppEffect::Ask(book, ask) => {
                if let Some(orders) = self.books.get(&book) {
                    let _ = orders.send(LoaderCommand::Ask(ask));
                }
            }
            AppEffect::Search { number, query } => {
                self.searches.wanted.store(number, Ordering::SeqCst);
                let _ = self.searches.queries.send((number, query));
            }
            AppEffect::Copy(text) => {
                if !screen.copy(&text)? {
                    let why = "too long for the clipboard: export to a file instead".to_owned();
                    app.note = Some((why, true));
                }
            }
            AppEffect::Trim(trim) => {
                let desk = Arc::clone(&self.desk);
                self.aside(move || {
                    let result = desk.trim(&trim.path, trim.preset, trim.dry_run);
                    AppMessage::Trimmed(result.map(Box::new))
                });
            }
            AppEffect::Export { path, format } => {
                let desk = Arc::clone(&self.desk);
                self.aside(move || AppMessage::Exported(desk.export(&path, format)));
            }
            AppEffect::Resume { id, cwd, talk } => {
                let result = self.resume(screen, &id, cwd, talk)?;
                let (columns, rows) = screen.size()?;
                update(app, AppMessage::Resize(columns, rows));
                let _ = self
                    .to
                    .send(BrowserEvent::Message(AppMessage::Resumed(result)));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Runs a job on a thread of its own and hands on what comes of it.
    fn aside(&self, job: impl FnOnce() -> AppMessage + Send + 'static) {
        let to = self.to.clone();
        std::thread::spawn(move || {
            let _ = to.send(BrowserEvent::Message(job()));
        });
    }

    /// Runs the client on the terminal, and comes back when it ends.
    fn resume(
        &self,
        screen: &mut BrowserTerminal,
        id: &str,
        cwd: Option<PathBuf>,
        talk: bool,
    ) -> io::Result<Result<(), String>> {
        if let Some(dir) = cwd.as_ref().filter(|dir| !dir.is_dir()) {
            let why = format!(
                "its directory `{}` no longer exists; clone it into another with `unspool clone --cwd DIR`",
                dir.display()
            );
            return Ok(Err(why));
        }
        let client = if talk { &self.own } else { &self.client };
        let mut command = Command::new(client);
        if talk {
            command.arg("chat");
        }
        command.args(shell_command::resume_arguments(id));
        if let Some(dir) = cwd {
            command.current_dir(dir);
        }
        let keys = &self.keys;
        screen.aside(|| {
            keys.aside(|| {
                let ended = command.status();
                input::other_program_ended();
                match ended {
                    Ok(status) if status.success() => Ok(()),
                    Ok(status) => Err(format!("`{client}` exited with {status}")),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        Err(format!("cannot find `{client}`"))
                    }
                    Err(error) => Err(format!("`{client}`: {error}")),
                }
            })
        })
    }
}
