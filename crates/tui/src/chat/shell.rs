//! Joins a conversation to the terminal and to the session: one loop over one channel.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event, KeyEventKind};
use serde_json::Value;
use unspool_agent::driver::{Command, Notice};
use unspool_agent::permission::Mode;
use unspool_show::Paint;

use super::draw;
use super::paint::Painter;
use super::pick::Pick;
use super::state::{Act, Chat};
use crate::input::{self, Heard, Keys};
use crate::term;

/// While something turns.
const FRAME: Duration = Duration::from_millis(125);
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
    /// The session is asked, with texts for the model alone.
    Submit {
        /// What is shown.
        text: String,
        /// What is said.
        content: Value,
        /// What only the model hears.
        context: Vec<String>,
    },
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

    /// What becomes of a choice from a [`Pick`].
    fn chosen(&self, what: &str, value: &str) -> Told;

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
    pub greeting: String,
    /// The mode it begins in.
    pub mode: Mode,
    /// The model it begins with.
    pub model: String,
    /// Use colours.
    pub color: bool,
    /// What is said first, without being typed.
    pub first: Option<String>,
}

/// What the loop hears.
enum Happening {
    Heard(Heard),
    Notice(Notice),
    Over,
    Files(Vec<String>),
    Told(Told),
    Kept(Result<String, String>),
}

/// Runs a conversation until somebody leaves it.
pub fn run(setting: Setting) -> io::Result<Next> {
    term::give_back_on_panic();
    term::take()?;
    let done = begin(setting);
    term::give_back();
    done
}

fn begin(setting: Setting) -> io::Result<Next> {
    let (to, inbox) = channel();
    let size = size()?;
    let mut chat = Chat::new(setting.history, size, Instant::now());
    chat.mode = setting.mode;
    chat.model = setting.model;
    chat.commands = setting.desk.commands();
    chat.tell(&setting.greeting);
    let teller = |to: &Sender<Happening>| {
        let to = to.clone();
        move |heard| to.send(Happening::Heard(heard)).is_ok()
    };
    input::signals(teller(&to))?;
    let keys = Keys::listen(teller(&to));
    hear(setting.notices, to.clone());
    let mut hands = Hands {
        painter: Painter::new(io::stdout(), setting.color, size),
        desk: setting.desk,
        tell: setting.tell,
        keys,
        to,
    };
    if let Some(first) = setting.first {
        hands.typed(&first);
    }
    let mut next = Next::Leave;
    loop {
        let said = chat.take_said();
        let (live, cursor) = draw::live(&mut chat);
        hands.painter.draw(&said, &live, cursor)?;
        let pause = if chat.busy.is_some() || chat.again.is_some() {
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
        for happening in first.into_iter().chain(rest) {
            if let Some(end) = hands.happen(&mut chat, happening)? {
                next = end;
                hands.painter.draw(&chat.take_said(), &[], None)?;
                hands.painter.leave()?;
                return Ok(next);
            }
        }
    }
    hands.painter.leave()?;
    Ok(next)
}

fn size() -> io::Result<(usize, usize)> {
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
    keys: Keys,
    to: Sender<Happening>,
}

impl Hands {
    fn happen(&mut self, chat: &mut Chat, happening: Happening) -> io::Result<Option<Next>> {
        let acts = match happening {
            Happening::Heard(Heard::Event(event)) => match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => chat.key(key),
                Event::Paste(text) => chat.paste(&text),
                Event::Resize(columns, rows) => {
                    chat.size = (usize::from(columns), usize::from(rows));
                    self.painter.resize(chat.size);
                    Vec::new()
                }
                _ => Vec::new(),
            },
            Happening::Heard(Heard::Sleep) => vec![Act::Sleep],
            Happening::Heard(Heard::Awake) => vec![Act::Redraw],
            Happening::Heard(Heard::End) | Happening::Over => return Ok(Some(Next::Leave)),
            Happening::Notice(notice) => {
                chat.notice(notice);
                Vec::new()
            }
            Happening::Files(files) => {
                chat.files(files);
                Vec::new()
            }
            Happening::Kept(kept) => {
                match kept {
                    Ok(text) => chat.note(Paint::DIM, &text),
                    Err(why) => chat.note(Paint::ERROR, &why),
                }
                Vec::new()
            }
            Happening::Told(told) => return Ok(self.told(chat, told)),
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
            Act::Files => self.aside(|desk| Happening::Files(desk.files())),
            Act::Keep(rules) => self.aside(move |desk| Happening::Kept(desk.keep(&rules))),
            Act::Redraw => self.painter.leave()?,
            Act::Sleep => {
                self.painter.leave()?;
                term::give_back();
                self.keys.aside(input::sleep);
                term::take()?;
                chat.size = size()?;
                self.painter.resize(chat.size);
            }
            Act::Quit => return Ok(Some(Next::Leave)),
        }
        Ok(None)
    }

    fn order(&self, chat: &mut Chat, command: Command) {
        if !(self.tell)(command) {
            chat.note(Paint::ERROR, "the session is over");
        }
    }

    fn typed(&self, text: &str) {
        let text = text.to_owned();
        self.aside(move |desk| Happening::Told(desk.typed(&text)));
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
            Told::Submit {
                text,
                content,
                context,
            } => {
                chat.submitted(&text);
                self.order(chat, Command::Submit { content, context });
            }
            Told::Pick(pick) => chat.pick = Some(pick),
            Told::Go(next) => return Some(next),
        }
        None
    }
}
