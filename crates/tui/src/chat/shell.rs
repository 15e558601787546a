//! Joins a conversation to the terminal and to the session: one loop over one channel.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event, KeyEventKind};
use unspool_agent::driver::{Command, Notice};
use unspool_agent::permission::Mode;
use unspool_show::Paint;

use super::draw;
use super::editor::Editor;
use super::paint::Painter;
use super::pick::{Choice, Pick};
use super::state::{Act, Chat, Said};
use super::trust;
use crate::input::{self, Heard, Keys};
use crate::term;

/// While something turns.
const FRAME: Duration = Duration::from_millis(125);
/// After a key, before what is typed is looked for.
const PAUSE: Duration = Duration::from_millis(120);
/// While nothing happens.
const REST: Duration = Duration::from_secs(30);

/// What comes next when a conversation ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing.
    Leave,
    /// A new session.
    New,
    /// Another session, by its id.
    Resume(String),
}

/// How a conversation was left.
pub struct Left {
    /// What comes next.
    pub next: Next,
    /// What was typed for it already.
    pub ahead: Ahead,
}

/// What was typed before there was a conversation to take it.
#[derive(Default)]
pub struct Ahead {
    editor: Option<Editor>,
    events: Vec<Event>,
}

impl Ahead {
    /// Keys that nobody has seen yet.
    pub(super) fn of(events: Vec<Event>) -> Ahead {
        let editor = None;
        Ahead { editor, events }
    }

    /// The same, with what was typed before it.
    fn behind(mut self, before: Ahead) -> Ahead {
        self.events.splice(0..0, before.events);
        self
    }
}

/// What is done with something that was typed or chosen.
pub enum Told {
    /// Something is shown, with Markdown in it.
    Say(String),
    /// A command was answered without the model; the session keeps it.
    Answered {
        /// The command, with its slash.
        command: String,
        /// The answer, with Markdown in it.
        output: String,
    },
    /// Something is wrong.
    Fail(String),
    /// The session is told this.
    Do(Vec<Command>),
    /// Something was done: it is shown, and the session is told.
    Done(String, Vec<Command>),
    /// The session is asked.
    Submit(Said),
    /// Something is to be chosen.
    Pick(Pick),
    /// It is over.
    Go(Next),
}

/// Who answers commands; may take its time, on a thread of its own.
pub trait Desk: Send + Sync {
    /// Names and explanations of commands.
    fn commands(&self) -> Vec<(String, String)>;

    /// Files of the project, from its root.
    fn files(&self) -> Vec<String>;

    /// What becomes of something that was typed.
    fn typed(&self, text: &str) -> Told;

    /// Whether something that is typed may end this conversation: keys behind it are for the
    /// next one.
    fn leaves(&self, text: &str) -> bool;

    /// What becomes of a choice from a [`Pick`].
    fn chosen(&self, what: &str, value: &str) -> Told;

    /// Sessions that hold a text, with the place where it stands; ends early when they are no
    /// longer wanted.
    fn search(&self, typed: &str, wanted: &dyn Fn() -> bool) -> Vec<Choice>;

    /// The prompts to go back to.
    fn prompts(&self) -> Told;

    /// Keeps rules for later sessions: what to say about it.
    fn keep(&self, rules: &[String]) -> Result<String, String>;
}

/// What a conversation is given.
pub struct Setting {
    /// Who answers commands.
    pub desk: Arc<dyn Desk>,
    /// Tells the session something; false if it is over.
    pub tell: Box<dyn Fn(Command) -> bool + Send>,
    /// What the session tells.
    pub notices: Receiver<Notice>,
    /// What was typed before.
    pub history: Vec<String>,
    /// What stands above everything.
    pub greeting: Vec<(Paint, String)>,
    /// The mode it begins in.
    pub mode: Mode,
    /// The model it begins with.
    pub model: String,
    /// The variable that gives access.
    pub variable: String,
    /// Where it works.
    pub place: String,
    /// Where rules for later sessions are stored.
    pub rules_file: String,
    /// Use colours.
    pub color: bool,
    /// What is said first, without being typed.
    pub first: Option<String>,
    /// What was typed ahead.
    pub ahead: Ahead,
}

/// What the loop hears.
enum Happening {
    /// And when: keys are judged by the time at which they were pressed.
    Heard(Heard, Instant),
    Notice(Notice),
    Over,
    Files(Vec<String>),
    Found(String, Vec<Choice>),
    Told(Told),
    Kept(Result<String, String>),
}

/// Runs a conversation until somebody leaves it. The terminal stays ours if another one comes
/// next, so that keys in between are neither echoed nor altered: see [`give_back`].
pub fn run(setting: Setting) -> io::Result<Left> {
    term::give_back_on_panic();
    term::take()?;
    let done = begin(setting);
    if !matches!(&done, Ok(left) if left.next != Next::Leave) {
        term::give_back();
    }
    done
}

/// Gives the terminal back, if it is ours.
pub fn give_back() {
    term::give_back();
}

fn begin(setting: Setting) -> io::Result<Left> {
    let (to, inbox) = channel();
    let size = size()?;
    let mut chat = Chat::new(setting.history, size, Instant::now());
    chat.mode = setting.mode;
    chat.model = setting.model;
    chat.variable = setting.variable;
    chat.place = setting.place;
    chat.rules_file = setting.rules_file;
    chat.commands = setting.desk.commands();
    for (paint, text) in &setting.greeting {
        chat.note(*paint, text);
    }
    chat.note(Paint::PLAIN, "\n");
    let Ahead { editor, events } = setting.ahead.behind(trust::typed_meanwhile());
    chat.editor = editor.unwrap_or(chat.editor);
    for event in events {
        // The inbox is there: nothing is lost.
        let _ = to.send(Happening::Heard(Heard::Event(event), Instant::now()));
    }
    let teller = |to: &Sender<Happening>| {
        let to = to.clone();
        move |heard| to.send(Happening::Heard(heard, Instant::now())).is_ok()
    };
    input::signals(teller(&to))?;
    let keys = Keys::listen(teller(&to));
    hear(setting.notices, to.clone());
    let mut hands = Hands {
        painter: Painter::new(io::stdout(), setting.color, size),
        desk: setting.desk,
        tell: setting.tell,
        prompts: in_order(to.clone()),
        held: None,
        searches: Arc::default(),
        keys,
        to,
    };
    if let Some(first) = setting.first {
        hands.typed(&first);
    }
    loop {
        // A frame for another size than the terminal has would wrap, and rows would be counted
        // wrong from then on; the event about it may come later.
        let now = self::size()?;
        if now != chat.size {
            chat.size = now;
            hands.painter.resize(now);
        }
        let said = chat.take_said();
        let (live, cursor) = draw::live(&mut chat);
        hands.painter.draw(&said, &live, cursor)?;
        chat.drawn(Instant::now());
        let waits = chat.working().is_some() || !chat.dialogs.is_empty();
        let pause = if waits || chat.again.is_some() {
            FRAME
        } else {
            REST
        };
        let first = match inbox.recv_timeout(pause) {
            Ok(first) => Some(first),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        chat.now = Instant::now();
        if chat
            .again
            .is_some_and(|(_, at)| chat.now - at > Duration::from_millis(1500))
        {
            chat.again = None;
        }
        let rest: Vec<Happening> = inbox.try_iter().take(4_000).collect();
        let now = chat.now;
        let mut all = first.into_iter().chain(rest);
        while let Some(happening) = all.next() {
            chat.now = match &happening {
                Happening::Heard(_, at) => *at,
                _ => now,
            };
            if let Some(next) = hands.happen(&mut chat, happening)? {
                hands.painter.draw(&chat.take_said(), &[], None)?;
                hands.painter.leave()?;
                let late = hands.end(all, &inbox);
                let editor = Some(chat.editor);
                return Ok(Left {
                    next,
                    ahead: Ahead {
                        editor,
                        events: late,
                    },
                });
            }
        }
        chat.now = now;
        for act in chat.tick() {
            hands.act(&mut chat, act)?;
        }
    }
    hands.painter.leave()?;
    Ok(Left {
        next: Next::Leave,
        ahead: Ahead::default(),
    })
}

/// Does jobs one after the other: what was typed first is said first.
fn in_order(to: Sender<Happening>) -> Sender<Job> {
    let (jobs, waiting) = channel::<Job>();
    std::thread::spawn(move || {
        for job in waiting {
            if to.send(job()).is_err() {
                return;
            }
        }
    });
    jobs
}

type Job = Box<dyn FnOnce() -> Happening + Send>;

pub(super) fn size() -> io::Result<(usize, usize)> {
    let (columns, rows) = ratatui::crossterm::terminal::size()?;
    Ok((usize::from(columns), usize::from(rows)))
}

fn hear(notices: Receiver<Notice>, to: Sender<Happening>) {
    std::thread::spawn(move || {
        for notice in notices {
            if to.send(Happening::Notice(notice)).is_err() {
                return;
            }
        }
        let _ = to.send(Happening::Over);
    });
}

struct Hands {
    painter: Painter<io::Stdout>,
    desk: Arc<dyn Desk>,
    tell: Box<dyn Fn(Command) -> bool + Send>,
    prompts: Sender<Job>,
    /// Keys that came while it was open whether they are for this conversation.
    held: Option<Vec<(Event, Instant)>>,
    keys: Keys,
    /// Counts searches: only the latest is wanted.
    searches: Arc<AtomicU64>,
    to: Sender<Happening>,
}

impl Hands {
    /// Nothing is taken from the terminal any more: keys that nobody has seen yet.
    fn end(
        self,
        batch: impl Iterator<Item = Happening>,
        inbox: &Receiver<Happening>,
    ) -> Vec<Event> {
        drop(self.keys);
        let late = batch.chain(inbox.try_iter());
        let late = late.filter_map(|happening| match happening {
            Happening::Heard(Heard::Event(event), _) => Some(event),
            _ => None,
        });
        let held = self.held.into_iter().flatten().map(|(event, _)| event);
        held.chain(late).collect()
    }

    fn happen(&mut self, chat: &mut Chat, happening: Happening) -> io::Result<Option<Next>> {
        let acts = match happening {
            Happening::Heard(Heard::Event(event @ (Event::Key(_) | Event::Paste(_))), at)
                if self.held.is_some() =>
            {
                self.held.get_or_insert_default().push((event, at));
                Vec::new()
            }
            Happening::Heard(Heard::Event(event), _) => match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => chat.key(key),
                Event::Paste(text) => chat.paste(&text),
                _ => Vec::new(),
            },
            Happening::Heard(Heard::Sleep, _) => vec![Act::Sleep],
            Happening::Heard(Heard::Awake, _) => vec![Act::Redraw],
            Happening::Heard(Heard::End, _) | Happening::Over => return Ok(Some(Next::Leave)),
            Happening::Notice(notice) => {
                chat.notice(notice);
                for said in chat.released() {
                    self.submit(chat, said);
                }
                Vec::new()
            }
            Happening::Files(files) => {
                chat.files(files);
                Vec::new()
            }
            Happening::Found(typed, found) => {
                if let Some(pick) = &mut chat.pick {
                    pick.found(&typed, found);
                }
                Vec::new()
            }
            Happening::Kept(kept) => {
                match kept {
                    Ok(text) => chat.note(Paint::DIM, &text),
                    Err(why) => chat.note(Paint::ERROR, &why),
                }
                Vec::new()
            }
            Happening::Told(told) => {
                let next = self.told(chat, told);
                if next.is_none() {
                    for (event, at) in self.held.take().into_iter().flatten() {
                        let _ = self.to.send(Happening::Heard(Heard::Event(event), at));
                    }
                }
                return Ok(next);
            }
        };
        for act in acts {
            if let Some(next) = self.act(chat, act)? {
                return Ok(Some(next));
            }
        }
        Ok(None)
    }

    fn act(&mut self, chat: &mut Chat, act: Act) -> io::Result<Option<Next>> {
        match act {
            Act::Tell(command) => self.order(chat, command),
            Act::Typed(text) => self.typed(&text),
            Act::Chosen(what, value) => {
                self.aside(move |desk| Happening::Told(desk.chosen(&what, &value)));
            }
            Act::Prompts => self.aside(|desk| Happening::Told(desk.prompts())),
            Act::Search(typed) => self.search(typed),
            Act::Files => self.aside(|desk| Happening::Files(desk.files())),
            Act::Keep(rules) => self.aside(move |desk| Happening::Kept(desk.keep(&rules))),
            Act::Redraw => self.painter.leave()?,
            Act::Sleep => {
                self.painter.leave()?;
                chat.dialogs.hidden();
                term::give_back();
                self.keys.aside(input::sleep);
                term::take()?;
            }
            Act::Quit => return Ok(Some(Next::Leave)),
        }
        Ok(None)
    }

    fn order(&self, chat: &mut Chat, command: Command) {
        if !(self.tell)(command) {
            chat.note(Paint::ERROR, "the session has ended");
        }
    }

    fn typed(&mut self, text: &str) {
        if self.desk.leaves(text) {
            self.held = Some(Vec::new());
        }
        let text = text.to_owned();
        // Commands may take long; prompts do not, and keep their order.
        if text.starts_with('/') {
            return self.aside(move |desk| Happening::Told(desk.typed(&text)));
        }
        let desk = Arc::clone(&self.desk);
        let job = Box::new(move || Happening::Told(desk.typed(&text)));
        // The thread behind it lives as long as this.
        let _ = self.prompts.send(job);
    }

    fn search(&self, typed: String) {
        let number = self.searches.fetch_add(1, Ordering::SeqCst) + 1;
        let current = Arc::clone(&self.searches);
        self.aside(move |desk| {
            // Whoever goes on typing wants something else.
            std::thread::sleep(PAUSE);
            let wanted = || current.load(Ordering::SeqCst) == number;
            let found = match wanted() {
                true => desk.search(&typed, &wanted),
                false => Vec::new(),
            };
            Happening::Found(typed, found)
        });
    }

    fn submit(&self, chat: &mut Chat, said: Said) {
        let Some(said) = chat.submitted(said) else {
            return;
        };
        let Said {
            content, context, ..
        } = said;
        self.order(chat, Command::Submit { content, context });
    }

    fn aside(&self, job: impl FnOnce(&dyn Desk) -> Happening + Send + 'static) {
        let (desk, to) = (Arc::clone(&self.desk), self.to.clone());
        std::thread::spawn(move || {
            let _ = to.send(job(&*desk));
        });
    }

    fn told(&self, chat: &mut Chat, told: Told) -> Option<Next> {
        match told {
            Told::Say(text) => chat.tell(&text),
            Told::Answered { command, output } => {
                chat.tell(&output);
                self.order(chat, Command::Local { command, output });
            }
            Told::Fail(why) => chat.note(Paint::ERROR, &why),
            Told::Do(commands) => {
                for command in commands {
                    self.order(chat, command);
                }
            }
            Told::Done(text, commands) => {
                for command in commands {
                    self.order(chat, command);
                }
                chat.tell(&text);
            }
            Told::Submit(said) => self.submit(chat, said),
            Told::Pick(pick) => chat.pick = Some(pick),
            Told::Go(next) => return Some(next),
        }
        None
    }
}
