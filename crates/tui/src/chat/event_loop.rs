//! Joins a conversation to the terminal and to the session: one loop over one channel.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event, KeyEventKind};
use unspool_agent::driver::{SessionCommand, SessionNotice};
use unspool_agent::permission::PermissionMode;
use unspool_show::TextStyle;

use super::chat_painter::ChatPainter;
use super::chat_screen::{ChatAction, ChatPrompt, ChatScreen};
use super::choice_picker::{ChoicePicker, PickerChoice};
use super::draw;
use super::editor::PromptEditor;
use super::trust_dialog;
use crate::input::{self, KeyListener, TerminalInput};
use crate::terminal;

/// While something turns.
const FRAME: Duration = Duration::from_millis(125);
/// After a key, before what is typed is looked for.
const PAUSE: Duration = Duration::from_millis(120);
/// While nothing happens.
const REST: Duration = Duration::from_secs(30);

/// What comes next when a conversation ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextConversation {
    /// Nothing.
    Leave,
    /// A new session.
    New,
    /// Another session, by its id.
    Resume(String),
}

/// How a conversation was left.
pub struct ChatExit {
    /// What comes next.
    pub next: NextConversation,
    /// What was typed for it already.
    pub ahead: TypedAhead,
}

/// What was typed before there was a conversation to take it.
#[derive(Default)]
pub struct TypedAhead {
    editor: Option<PromptEditor>,
    events: Vec<Event>,
}

impl TypedAhead {
    /// Keys that nobody has seen yet.
    pub(super) fn of(events: Vec<Event>) -> TypedAhead {
        let editor = None;
        TypedAhead { editor, events }
    }

    /// The same, with what was typed before it.
    fn behind(mut self, before: TypedAhead) -> TypedAhead {
        self.events.splice(0..0, before.events);
        self
    }
}

/// What is done with something that was typed or chosen.
pub enum CommandReply {
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
    Do(Vec<SessionCommand>),
    /// Something was done: it is shown, and the session is told.
    Done(String, Vec<SessionCommand>),
    /// The session is asked.
    Submit(ChatPrompt),
    /// Something is to be chosen.
    Pick(ChoicePicker),
    /// It is over.
    Go(NextConversation),
}

/// Who answers commands; may take its time, on a thread of its own.
pub trait ChatBackend: Send + Sync {
    /// Names and explanations of commands.
    fn commands(&self) -> Vec<(String, String)>;

    /// Files of the project, from its root.
    fn files(&self) -> Vec<String>;

    /// What becomes of something that was typed.
    fn typed(&self, text: &str) -> CommandReply;

    /// Whether something that is typed may end this conversation: keys behind it are for the
    /// next one.
    fn leaves(&self, text: &str) -> bool;

    /// What becomes of a choice from a [`ChoicePicker`].
    fn chosen(&self, what: &str, value: &str) -> CommandReply;

    /// Sessions that hold a text, with the place where it stands; ends early when they are no
    /// longer wanted.
    fn search(&self, typed: &str, wanted: &dyn Fn() -> bool) -> Vec<PickerChoice>;

    /// The prompts to go back to.
    fn prompts(&self) -> CommandReply;

    /// Keeps rules for later sessions: what to say about it.
    fn keep(&self, rules: &[String]) -> Result<String, String>;
}

/// What a conversation is given.
pub struct ChatOptions {
    /// Who answers commands.
    pub desk: Arc<dyn ChatBackend>,
    /// Tells the session something; false if it is over.
    pub tell: Box<dyn Fn(SessionCommand) -> bool + Send>,
    /// What the session tells.
    pub notices: Receiver<SessionNotice>,
    /// What was typed before.
    pub history: Vec<String>,
    /// What stands above everything.
    pub greeting: Vec<(TextStyle, String)>,
    /// The mode it begins in.
    pub mode: PermissionMode,
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
    pub ahead: TypedAhead,
}

/// What the loop hears.
enum ChatEvent {
    /// And when: keys are judged by the time at which they were pressed.
    Heard(TerminalInput, Instant),
    Notice(SessionNotice),
    Over,
    Files(Vec<String>),
    Found(String, Vec<PickerChoice>),
    Told(CommandReply),
    Kept(Result<String, String>),
}

/// Runs a conversation until somebody leaves it. The terminal stays ours if another one comes
/// next, so that keys in between are neither echoed nor altered: see [`restore_terminal`].
pub fn run(setting: ChatOptions) -> io::Result<ChatExit> {
    terminal::restore_terminal_on_panic();
    terminal::take()?;
    let done = begin(setting);
    if !matches!(&done, Ok(left) if left.next != NextConversation::Leave) {
        terminal::restore_terminal();
    }
    done
}

/// Gives the terminal back, if it is ours.
pub fn restore_terminal() {
    terminal::restore_terminal();
}

fn begin(setting: ChatOptions) -> io::Result<ChatExit> {
    let (to, inbox) = channel();
    let size = size()?;
    let mut chat = ChatScreen::new(setting.history, size, Instant::now());
    chat.mode = setting.mode;
    chat.model = setting.model;
    chat.variable = setting.variable;
    chat.place = setting.place;
    chat.rules_file = setting.rules_file;
    chat.commands = setting.desk.commands();
    for (paint, text) in &setting.greeting {
        chat.note(*paint, text);
    }
    chat.note(TextStyle::PLAIN, "\n");
    let TypedAhead { editor, events } = setting.ahead.behind(trust_dialog::typed_meanwhile());
    chat.editor = editor.unwrap_or(chat.editor);
    for event in events {
        // The inbox is there: nothing is lost.
        let _ = to.send(ChatEvent::Heard(
            TerminalInput::Event(event),
            Instant::now(),
        ));
    }
    let teller = |to: &Sender<ChatEvent>| {
        let to = to.clone();
        move |heard| to.send(ChatEvent::Heard(heard, Instant::now())).is_ok()
    };
    input::signals(teller(&to))?;
    let keys = KeyListener::listen(teller(&to));
    hear(setting.notices, to.clone());
    let mut hands = ChatActionRunner {
        painter: ChatPainter::new(io::stdout(), setting.color, size),
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
        let rest: Vec<ChatEvent> = inbox.try_iter().take(4_000).collect();
        let now = chat.now;
        let mut all = first.into_iter().chain(rest);
        while let Some(happening) = all.next() {
            chat.now = match &happening {
                ChatEvent::Heard(_, at) => *at,
                _ => now,
            };
            if let Some(next) = hands.happen(&mut chat, happening)? {
                hands.painter.draw(&chat.take_said(), &[], None)?;
                hands.painter.leave()?;
                let late = hands.end(all, &inbox);
                let editor = Some(chat.editor);
                return Ok(ChatExit {
                    next,
                    ahead: TypedAhead {
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
    Ok(ChatExit {
        next: NextConversation::Leave,
        ahead: TypedAhead::default(),
    })
}

/// Does jobs one after the other: what was typed first is said first.
fn in_order(to: Sender<ChatEvent>) -> Sender<ChatJob> {
    let (jobs, waiting) = channel::<ChatJob>();
    std::thread::spawn(move || {
        for job in waiting {
            if to.send(job()).is_err() {
                return;
            }
        }
    });
    jobs
}

type ChatJob = Box<dyn FnOnce() -> ChatEvent + Send>;

pub(super) fn size() -> io::Result<(usize, usize)> {
    let (columns, rows) = ratatui::crossterm::terminal::size()?;
    Ok((usize::from(columns), usize::from(rows)))
}

fn hear(notices: Receiver<SessionNotice>, to: Sender<ChatEvent>) {
    std::thread::spawn(move || {
        for notice in notices {
            if to.send(ChatEvent::Notice(notice)).is_err() {
                return;
            }
        }
        let _ = to.send(ChatEvent::Over);
    });
}

struct ChatActionRunner {
    painter: ChatPainter<io::Stdout>,
    desk: Arc<dyn ChatBackend>,
    tell: Box<dyn Fn(SessionCommand) -> bool + Send>,
    prompts: Sender<ChatJob>,
    /// Keys that came while it was open whether they are for this conversation.
    held: Option<Vec<(Event, Instant)>>,
    keys: KeyListener,
    /// Counts searches: only the latest is wanted.
    searches: Arc<AtomicU64>,
    to: Sender<ChatEvent>,
}

impl ChatActionRunner {
    /// Nothing is taken from the terminal any more: keys that nobody has seen yet.
    fn end(
        self,
        batch: impl Iterator<Item = ChatEvent>,
        inbox: &Receiver<ChatEvent>,
    ) -> Vec<Event> {
        drop(self.keys);
        let late = batch.chain(inbox.try_iter());
        let late = late.filter_map(|happening| match happening {
            ChatEvent::Heard(TerminalInput::Event(event), _) => Some(event),
            _ => None,
        });
        let held = self.held.into_iter().flatten().map(|(event, _)| event);
        held.chain(late).collect()
    }

    fn happen(
        &mut self,
        chat: &mut ChatScreen,
        happening: ChatEvent,
    ) -> io::Result<Option<NextConversation>> {
        let acts = match happening {
            ChatEvent::Heard(
                TerminalInput::Event(event @ (Event::Key(_) | Event::Paste(_))),
                at,
            ) if self.held.is_some() => {
                self.held.get_or_insert_default().push((event, at));
                Vec::new()
            }
            ChatEvent::Heard(TerminalInput::Event(event), _) => match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => chat.key(key),
                Event::Paste(text) => chat.paste(&text),
                _ => Vec::new(),
            },
            ChatEvent::Heard(TerminalInput::Sleep, _) => vec![ChatAction::Sleep],
            ChatEvent::Heard(TerminalInput::Awake, _) => vec![ChatAction::Redraw],
            ChatEvent::Heard(TerminalInput::End, _) | ChatEvent::Over => {
                return Ok(Some(NextConversation::Leave));
            }
            ChatEvent::Notice(notice) => {
                chat.notice(notice);
                for said in chat.released() {
                    self.submit(chat, said);
                }
                Vec::new()
            }
            ChatEvent::Files(files) => {
                chat.files(files);
                Vec::new()
            }
            ChatEvent::Found(typed, found) => {
                if let Some(pick) = &mut chat.pick {
                    pick.found(&typed, found);
                }
                Vec::new()
            }
            ChatEvent::Kept(kept) => {
                match kept {
                    Ok(text) => chat.note(TextStyle::DIM, &text),
                    Err(why) => chat.note(TextStyle::ERROR, &why),
                }
                Vec::new()
            }
            ChatEvent::Told(told) => {
                let next = self.told(chat, told);
                if next.is_none() {
                    for (event, at) in self.held.take().into_iter().flatten() {
                        let _ = self
                            .to
                            .send(ChatEvent::Heard(TerminalInput::Event(event), at));
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

    fn act(
        &mut self,
        chat: &mut ChatScreen,
        act: ChatAction,
    ) -> io::Result<Option<NextConversation>> {
        match act {
            ChatAction::Tell(command) => self.order(chat, command),
            ChatAction::Typed(text) => self.typed(&text),
            ChatAction::Chosen(what, value) => {
                self.aside(move |desk| ChatEvent::Told(desk.chosen(&what, &value)));
            }
            ChatAction::Prompts => self.aside(|desk| ChatEvent::Told(desk.prompts())),
            ChatAction::Search(typed) => self.search(typed),
            ChatAction::Files => self.aside(|desk| ChatEvent::Files(desk.files())),
            ChatAction::Keep(rules) => self.aside(move |desk| ChatEvent::Kept(desk.keep(&rules))),
            ChatAction::Redraw => self.painter.leave()?,
            ChatAction::Sleep => {
                self.painter.leave()?;
                chat.dialogs.hidden();
                terminal::restore_terminal();
                self.keys.aside(input::sleep);
                terminal::take()?;
            }
            ChatAction::Quit => return Ok(Some(NextConversation::Leave)),
        }
        Ok(None)
    }

    fn order(&self, chat: &mut ChatScreen, command: SessionCommand) {
        if !(self.tell)(command) {
            chat.note(TextStyle::ERROR, "the session has ended");
        }
    }

    fn typed(&mut self, text: &str) {
        if self.desk.leaves(text) {
            self.held = Some(Vec::new());
        }
        let text = text.to_owned();
        // Commands may take long; prompts do not, and keep their order.
        if text.starts_with('/') {
            return self.aside(move |desk| ChatEvent::Told(desk.typed(&text)));
        }
        let desk = Arc::clone(&self.desk);
        let job = Box::new(move || ChatEvent::Told(desk.typed(&text)));
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
            ChatEvent::Found(typed, found)
        });
    }

    fn submit(&self, chat: &mut ChatScreen, said: ChatPrompt) {
        let Some(said) = chat.submitted(said) else {
            return;
        };
        let ChatPrompt {
            content, context, ..
        } = said;
        self.order(chat, SessionCommand::Submit { content, context });
    }

    fn aside(&self, job: impl FnOnce(&dyn ChatBackend) -> ChatEvent + Send + 'static) {
        let (desk, to) = (Arc::clone(&self.desk), self.to.clone());
        std::thread::spawn(move || {
            let _ = to.send(job(&*desk));
        });
    }

    fn told(&self, chat: &mut ChatScreen, told: CommandReply) -> Option<NextConversation> {
        match told {
            CommandReply::Say(text) => chat.tell(&text),
            CommandReply::Answered { command, output } => {
                chat.tell(&output);
                self.order(chat, SessionCommand::Local { command, output });
            }
            CommandReply::Fail(why) => chat.note(TextStyle::ERROR, &why),
            CommandReply::Do(commands) => {
                for command in commands {
                    self.order(chat, command);
                }
            }
            CommandReply::Done(text, commands) => {
                for command in commands {
                    self.order(chat, command);
                }
                chat.tell(&text);
            }
            CommandReply::Submit(said) => self.submit(chat, said),
            CommandReply::Pick(pick) => chat.pick = Some(pick),
            CommandReply::Go(next) => return Some(next),
        }
        None
    }
}
