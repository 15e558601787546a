//! All of the state of a conversation on the screen, and what happens to it.
//!
//! Pure: what is heard comes in, what is to be done comes out. Lines that stay are collected
//! until the next picture.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;
use unspool_agent::api::retry::Trouble;
use unspool_agent::api::told::told;
use unspool_agent::driver::{Command, Notice, Spent};
use unspool_agent::machine::{Ending, Why};
use unspool_agent::permission::Mode;
use unspool_agent::tool::Call;
use unspool_show::{Line, Paint, amount, clean};

use super::dialogs::{DialogQueue, Pressed};
use super::editor::{Did, Editor};
use super::menu::Menu;
use super::pick::{Pick, Picked};
use super::question::{Given, Question};
use super::spoken;
use super::stream::Stream;

/// A second press within this time is meant with the first.
const TWICE: Duration = Duration::from_millis(1500);

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Act {
    /// The session is told this.
    Tell(Command),
    /// Something was typed: a prompt, `/command`, `!command` or `#memory`.
    Typed(String),
    /// Something was chosen from a list of [`Pick::what`].
    Chosen(String, String),
    /// Rules are to be kept for later sessions.
    Keep(Vec<String>),
    /// Names of files are wanted.
    Files,
    /// This is to be looked for in what the choices of a list stand for.
    Search(String),
    /// The prompts of this session are to be listed, to go back to one.
    Prompts,
    /// The program is to sleep.
    Sleep,
    /// The picture is to be drawn anew.
    Redraw,
    /// It is over.
    Quit,
}

/// Something to say to the model.
#[derive(Clone, Debug)]
pub struct Said {
    /// What is shown.
    pub text: String,
    /// What is said.
    pub content: Value,
    /// What only the model hears.
    pub context: Vec<String>,
}

/// A call that runs.
#[derive(Clone, Debug)]
pub struct Running {
    /// The call.
    pub call: Call,
    /// Since when.
    pub since: Instant,
    /// What it said last.
    pub last: String,
}

/// An attempt that is waited for.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Until when.
    pub until: Instant,
    /// What went wrong.
    pub why: String,
}

/// The state.
pub struct Chat {
    /// Where a person types.
    pub editor: Editor,
    /// Columns and rows.
    pub size: (usize, usize),
    /// The time of the last thing that happened.
    pub now: Instant,
    /// Since when a turn runs.
    pub busy: Option<Instant>,
    /// What the model is saying.
    pub stream: Stream,
    /// How much it thought since it last said something.
    pub thought: usize,
    /// Calls that run.
    pub calls: Vec<Running>,
    /// An attempt that is waited for.
    pub waiting: Option<Waiting>,
    /// What is asked.
    pub dialogs: DialogQueue,
    /// Where rules for later sessions are stored.
    pub rules_file: String,
    /// What is chosen from.
    pub pick: Option<Pick>,
    /// What may be typed on.
    pub menu: Option<Menu>,
    /// Prompts that wait.
    pub queue: Vec<String>,
    /// The mode.
    pub mode: Mode,
    /// The model.
    pub model: String,
    /// The variable that gives access.
    pub variable: String,
    /// Where it works: files below are named from here.
    pub place: String,
    /// Tokens in the context, and how many fit.
    pub filled: (u64, u64),
    /// What was spent.
    pub spent: Spent,
    /// A summary is being made.
    pub compacting: bool,
    /// What to press again, and since when.
    pub again: Option<(KeyCode, Instant)>,
    /// Names and explanations of commands.
    pub commands: Vec<(String, String)>,
    /// Files of the project, once they are known.
    pub files: Option<Vec<String>>,
    said: Vec<Line>,
    /// What is said when a command of the person's own is over.
    later: Vec<Said>,
    /// The last thing that was shown is a call.
    called: bool,
}

impl Chat {
    /// A conversation that begins.
    pub fn new(history: Vec<String>, size: (usize, usize), now: Instant) -> Chat {
        Chat {
            editor: Editor::new(history),
            size,
            now,
            busy: None,
            stream: Stream::default(),
            thought: 0,
            calls: Vec::new(),
            waiting: None,
            dialogs: DialogQueue::default(),
            rules_file: String::new(),
            pick: None,
            menu: None,
            queue: Vec::new(),
            mode: Mode::Default,
            model: String::new(),
            variable: String::new(),
            place: String::new(),
            filled: (0, 0),
            spent: Spent::default(),
            compacting: false,
            again: None,
            commands: Vec::new(),
            files: None,
            said: Vec::new(),
            later: Vec::new(),
            called: false,
        }
    }

    /// Lines that stay and have not been drawn.
    pub fn take_said(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.said)
    }

    /// Adds lines that stay.
    pub fn say(&mut self, lines: Vec<Line>) {
        self.said.extend(lines);
    }

    /// Adds a remark.
    pub fn note(&mut self, paint: Paint, text: &str) {
        let lines = spoken::note(paint, text, self.width());
        self.say(lines);
    }

    /// Adds a text with Markdown in it.
    pub fn tell(&mut self, text: &str) {
        let mut lines = spoken::text(text, self.width());
        if std::mem::take(&mut self.called) {
            lines.insert(0, Line::new());
        }
        self.say(lines);
    }

    /// Since when something goes on: a turn, or a command of the person's own.
    pub fn working(&self) -> Option<Instant> {
        let first = self.calls.first().map(|running| running.since);
        self.busy.or(first)
    }

    /// Columns for text.
    pub fn width(&self) -> usize {
        self.size.0.saturating_sub(1).clamp(10, 120)
    }

    /// Takes what was pasted.
    pub fn paste(&mut self, text: &str) -> Vec<Act> {
        if let Some(pick) = &mut self.pick {
            pick.paste(text);
            return self.look_for();
        }
        let letter = self.dialogs.take_letter();
        self.dialogs.typed(self.now);
        match self.dialogs.first().filter(|first| first.is_writing()) {
            Some(question) => question.paste(text),
            None => {
                let mut acts = letter.map_or_else(Vec::new, |key| self.type_key(key));
                self.editor.paste(text);
                acts.extend(self.offer());
                return acts;
            }
        }
        Vec::new()
    }

    /// What is asked was drawn, unless something else is on the screen.
    pub fn drawn(&mut self, at: Instant) {
        match self.pick {
            Some(_) => self.dialogs.hidden(),
            None => self.dialogs.drawn(at),
        }
    }

    /// Time has passed, and everything that was pressed until now has been heard.
    pub fn tick(&mut self) -> Vec<Act> {
        let pressed = self.dialogs.tick(self.now);
        self.pressed(pressed)
    }

    fn pressed(&mut self, pressed: Pressed) -> Vec<Act> {
        match pressed {
            Pressed::Nothing => Vec::new(),
            Pressed::Editor(keys) => {
                let keys = keys.into_iter();
                keys.flat_map(|key| self.type_key(key)).collect()
            }
            Pressed::Interrupt if self.working().is_some() => self.interrupt(),
            Pressed::Interrupt => Vec::new(),
            Pressed::Given(ask, given) => answered(ask, given),
            Pressed::Print(lines) => {
                self.say(lines);
                Vec::new()
            }
        }
    }

    fn look_for(&mut self) -> Vec<Act> {
        let wanted = self.pick.as_mut().and_then(Pick::wants);
        wanted.map(Act::Search).into_iter().collect()
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Vec<Act> {
        let again = self.again.take().filter(|(_, at)| self.now - *at < TWICE);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('z') {
            return vec![Act::Sleep];
        }
        if control && key.code == KeyCode::Char('l') {
            return vec![Act::Redraw];
        }
        if let Some(pick) = &mut self.pick {
            let what = pick.what.clone();
            return match pick.key(key) {
                Picked::Open => self.look_for(),
                Picked::Left => {
                    self.pick = None;
                    Vec::new()
                }
                Picked::This(value) => {
                    self.pick = None;
                    vec![Act::Chosen(what, value)]
                }
            };
        }
        if !self.dialogs.is_empty() {
            // Blanks are not seen, and cannot be sent.
            let (empty, width) = (self.editor.text().trim().is_empty(), self.width());
            let pressed = self.dialogs.key(key, self.now, empty, width);
            return self.pressed(pressed);
        }
        self.dialogs.typed(self.now);
        if let Some(acts) = self.menu_key(key) {
            return acts;
        }
        match key.code {
            KeyCode::Esc => self.escape(again.map(|(code, _)| code)),
            KeyCode::Char('c') if control => self.break_off(again.map(|(code, _)| code)),
            KeyCode::Char('d') if control && self.editor.is_empty() => vec![Act::Quit],
            KeyCode::BackTab => {
                // A second press comes before the session has heard of the first.
                self.mode = next(self.mode);
                vec![Act::Tell(Command::Mode(self.mode))]
            }
            _ => self.type_key(key),
        }
    }

    fn type_key(&mut self, key: KeyEvent) -> Vec<Act> {
        match self.editor.key(key, self.size.0.saturating_sub(2)) {
            Did::Sent(text) => {
                self.menu = None;
                vec![Act::Typed(text)]
            }
            Did::Changed => self.offer(),
            Did::Nothing => Vec::new(),
        }
    }

    /// Keys for the menu: none of them, if it is not for it.
    fn menu_key(&mut self, key: KeyEvent) -> Option<Vec<Act>> {
        let menu = self.menu.as_mut()?;
        match key.code {
            KeyCode::Up => menu.up(),
            KeyCode::Down => menu.down(),
            KeyCode::Esc => self.menu = None,
            KeyCode::Tab => {
                self.complete();
                return Some(self.offer());
            }
            // A command that is chosen is meant; a file is part of a longer text.
            KeyCode::Enter if menu.is_command() => {
                self.complete();
                self.menu = None;
                return Some(self.type_key(key));
            }
            KeyCode::Enter => {
                self.complete();
                self.menu = None;
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    fn complete(&mut self) {
        if let Some((part, text)) = self.menu.as_ref().and_then(Menu::choice) {
            self.editor.replace(part, &text);
        }
    }

    /// Shows what may be typed on.
    fn offer(&mut self) -> Vec<Act> {
        let before = self.menu.take();
        // A question needs the rows.
        if !self.dialogs.is_empty() {
            return Vec::new();
        }
        let wants = Menu::wants(self.editor.text(), self.editor.at());
        let Some(wants) = wants else {
            return Vec::new();
        };
        let files = match (&self.files, wants.is_file()) {
            (None, true) => return vec![Act::Files],
            (files, _) => files.as_deref().unwrap_or_default(),
        };
        self.menu = Menu::new(wants, &self.commands, files, before.as_ref());
        Vec::new()
    }

    /// Files of the project are known now.
    pub fn files(&mut self, files: Vec<String>) {
        self.files = Some(files);
        self.offer();
    }

    fn interrupt(&mut self) -> Vec<Act> {
        if !std::mem::take(&mut self.later).is_empty() {
            self.unsaid();
        }
        vec![Act::Tell(Command::Interrupt)]
    }

    fn escape(&mut self, again: Option<KeyCode>) -> Vec<Act> {
        if self.working().is_some() {
            return self.interrupt();
        }
        let twice = again == Some(KeyCode::Esc);
        match (self.editor.is_empty(), twice) {
            (true, true) => return vec![Act::Prompts],
            (false, true) => self.editor.set(""),
            (_, false) => self.again = Some((KeyCode::Esc, self.now)),
        }
        Vec::new()
    }

    fn break_off(&mut self, again: Option<KeyCode>) -> Vec<Act> {
        if self.working().is_some() {
            return self.interrupt();
        }
        if !self.editor.is_empty() {
            self.editor.set("");
            return Vec::new();
        }
        let code = KeyCode::Char('c');
        if again == Some(code) {
            return vec![Act::Quit];
        }
        self.again = Some((code, self.now));
        Vec::new()
    }

    /// A prompt goes out: it is shown at once, or waits for the turn. It stays here while a
    /// command of the person's own runs.
    pub fn submitted(&mut self, said: Said) -> Option<Said> {
        if self.working().is_some() {
            self.queue.push(said.text.clone());
            if self.busy.is_none() {
                self.later.push(said);
                return None;
            }
            return Some(said);
        }
        let lines = spoken::prompt(&said.text, self.width());
        self.say(lines);
        self.busy = Some(self.now);
        Some(said)
    }

    /// What waited for a command that is over now.
    pub fn released(&mut self) -> Vec<Said> {
        if self.later.is_empty() || self.working().is_some() {
            return Vec::new();
        }
        self.queue.clear();
        std::mem::take(&mut self.later)
    }

    /// What waits and is not said any more is not lost.
    fn unsaid(&mut self) {
        let mut unsaid: Vec<String> = self.queue.drain(..).collect();
        unsaid.extend(Some(self.editor.text().to_owned()).filter(|text| !text.is_empty()));
        self.editor.set(&unsaid.join("\n"));
    }

    /// Takes what the session tells.
    pub fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Line { agent: None, .. } => self.flush(),
            Notice::Line { .. } | Notice::Raw(_) | Notice::Closed => {}
            Notice::Text(more) => {
                self.waiting = None;
                self.thought = 0;
                if let Some(over) = self.stream.push(&more) {
                    self.tell(&over);
                }
            }
            Notice::Thinking(more) => {
                self.waiting = None;
                self.thought += more.chars().count();
            }
            Notice::Retry {
                tries,
                most,
                wait,
                error,
                message,
                ..
            } => {
                self.broken_off();
                let said = if message.is_empty() { error } else { message };
                let why = format!("{} (attempt {tries} of {most})", clean::line(&said));
                let until = self.now + wait;
                self.waiting = Some(Waiting { until, why });
            }
            Notice::Asking => {
                self.waiting = None;
                self.thought = 0;
                self.busy.get_or_insert(self.now);
            }
            Notice::Usage {
                filled,
                window,
                spent,
            } => {
                self.filled = (filled, window);
                self.spent = spent;
            }
            Notice::CallBegan(call) => {
                self.flush();
                self.calls.push(Running {
                    call,
                    since: self.now,
                    last: String::new(),
                });
            }
            Notice::Progress { call, data } => self.progress(&call, &data),
            Notice::CallEnded { call, outcome } => {
                self.calls.retain(|running| running.call.id != call.id);
                let lines = spoken::call(&call, &outcome, &self.place, self.width());
                self.say(lines);
                self.called = true;
            }
            // Who said no knows it; the call itself says the rest.
            Notice::Denied { asked: true, .. } => {}
            Notice::Denied { call, why, .. } => {
                self.calls.retain(|running| running.call.id != call.id);
                let head = spoken::head(&call, (Paint::ERROR, "✗"), &self.place, self.width());
                self.say(vec![head]);
                self.note(Paint::DIM, &format!("  denied: {why}"));
            }
            Notice::Ask {
                ask,
                call,
                what,
                agent,
            } => {
                self.flush();
                self.menu = None;
                let (place, file) = (&self.place, &self.rules_file);
                let question = Question::new(ask, call, what, agent, place, file);
                self.dialogs.push(question);
            }
            Notice::Withdrawn { ask } => {
                let unsent = self.dialogs.withdraw(ask);
                self.keep_unsent(unsent);
            }
            Notice::Queued(count) => self.queued(count),
            Notice::Compacting { .. } => {
                self.compacting = true;
                self.busy.get_or_insert(self.now);
            }
            Notice::Mode(mode) => self.mode = mode,
            Notice::Model(model) => self.model = model,
            Notice::Rewound {
                prompt,
                files,
                conversation,
            } => {
                let what = match (files, conversation) {
                    (true, true) => "rewound the conversation and the files to before this prompt",
                    (true, false) => "rewound the files to before this prompt",
                    (false, _) => "rewound the conversation to before this prompt",
                };
                self.note(Paint::WARN, what);
                if conversation {
                    self.editor.set(&prompt);
                }
            }
            Notice::Cold(cold) => self.note(Paint::WARN, &cold.to_string()),
            Notice::Warn(text) => self.note(Paint::WARN, &text),
            Notice::Ended { ending, time } => self.ended(&ending, time),
            Notice::Unwritten { why, hint } => {
                self.flush();
                self.note(Paint::ERROR, &format!("cannot write the session: {why}"));
                self.note(Paint::DIM, &hint);
                self.rest();
            }
        }
    }

    /// What was said is over.
    fn flush(&mut self) {
        if let Some(over) = self.stream.end_all() {
            self.tell(&over);
        }
    }

    fn broken_off(&mut self) {
        if self.stream.end_all().is_some() {
            self.note(Paint::DIM, "(the response was cut off; retrying)");
        }
    }

    fn progress(&mut self, call: &str, data: &Value) {
        let text = ["output", "fullOutput", "message", "text"];
        let text = text.iter().find_map(|field| data.get(field)?.as_str());
        let last = text.and_then(|text| text.trim_end().lines().last());
        let running = self.calls.iter_mut().find(|it| it.call.id == call);
        if let (Some(running), Some(last)) = (running, last) {
            running.last = clean::line(last).into_owned();
        }
    }

    fn queued(&mut self, count: usize) {
        // Those that no longer wait were said: the oldest first.
        let over = self.queue.len().saturating_sub(count);
        let said: Vec<String> = self.queue.drain(..over).collect();
        self.flush();
        for text in said {
            let lines = spoken::prompt(&text, self.width());
            self.say(lines);
        }
    }

    fn ended(&mut self, ending: &Ending, time: Duration) {
        self.flush();
        self.rest();
        match &ending.why {
            Why::Done => {
                let time = amount::duration(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
                self.note(Paint::DIM, &format!("· {time}"));
            }
            Why::Interrupted => self.note(Paint::WARN, "interrupted; say what to do instead"),
            Why::MaxTurns => self.note(Paint::WARN, "stopped: reached --max-turns"),
            Why::Budget => self.note(Paint::WARN, "stopped: reached --max-budget-usd"),
            Why::Refused(_) => {
                self.note(Paint::WARN, "the model declined; rephrase, or use /rewind")
            }
            Why::Failed(trouble) => {
                let what = told(trouble, &self.model, &self.variable);
                self.note(Paint::ERROR, &what);
                self.note(Paint::DIM, &way_on(trouble, &self.variable));
            }
            Why::Hook(why) => self.note(Paint::WARN, &format!("stopped by a hook: {why}")),
            Why::TooLong => {
                self.note(
                    Paint::ERROR,
                    "the conversation exceeds the context window: use /compact",
                );
            }
            Why::Compacted => self.note(Paint::DIM, "the conversation was compacted"),
            Why::NotCompacted(why) => {
                self.note(Paint::ERROR, &format!("compaction failed: {why}"));
            }
        }
        if !ending.unsaid.is_empty() {
            self.unsaid();
        }
    }

    /// What somebody wrote about a question that is no longer asked is not lost.
    fn keep_unsent(&mut self, unsent: Option<String>) {
        if let Some(unsent) = unsent {
            let text = format!("{}{unsent}", self.editor.text());
            self.editor.set(&text);
        }
    }

    fn rest(&mut self) {
        self.busy = None;
        self.waiting = None;
        // A sub-agent that works in the background may still ask.
        let unsent = self.dialogs.withdraw_main();
        self.keep_unsent(unsent);
        self.compacting = false;
        self.thought = 0;
        self.calls.clear();
    }
}

fn answered(ask: u64, given: Given) -> Vec<Act> {
    let Given { answer, store } = given;
    let mut acts = vec![Act::Tell(Command::Answer { ask, answer })];
    if !store.is_empty() {
        acts.push(Act::Keep(store));
    }
    acts
}

/// What can be done here about a failure of the API.
fn way_on(trouble: &Trouble, variable: &str) -> String {
    let way = match trouble.status() {
        Some(401 | 403) => {
            format!("quit, set {variable} to a valid key, and resume with --continue")
        }
        Some(404) => "choose another model with /model, then say \"continue\"".to_owned(),
        Some(402) => "check the account's billing, then say \"continue\"".to_owned(),
        Some(400 | 413) => "use /compact to shorten it, or /rewind".to_owned(),
        Some(_) => "wait, then say \"continue\"".to_owned(),
        None => "check the network and ANTHROPIC_BASE_URL, then say \"continue\"".to_owned(),
    };
    format!("the conversation was saved: {way}")
}

/// The mode that Shift-Tab leads to.
fn next(mode: Mode) -> Mode {
    match mode {
        Mode::Default => Mode::AcceptEdits,
        Mode::AcceptEdits => Mode::Plan,
        Mode::Plan | Mode::DontAsk | Mode::Bypass => Mode::Default,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat() -> Chat {
        Chat::new(Vec::new(), (80, 24), Instant::now())
    }

    fn press(chat: &mut Chat, code: KeyCode) -> Vec<Act> {
        chat.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn own(chat: &mut Chat) -> Call {
        let call = Call {
            id: "shell-1".to_owned(),
            name: "Bash".to_owned(),
            input: serde_json::json!({"command": "sleep 9"}),
        };
        chat.notice(Notice::CallBegan(call.clone()));
        call
    }

    fn said(text: &str) -> Said {
        Said {
            text: text.to_owned(),
            content: text.into(),
            context: Vec::new(),
        }
    }

    #[test]
    fn two_quick_presses_lead_two_modes_on() {
        let mut chat = chat();
        let acts = [KeyCode::BackTab; 2].map(|code| press(&mut chat, code));
        let mode = |acts: &[Act]| match acts {
            [Act::Tell(Command::Mode(mode))] => *mode,
            other => panic!("{other:?}"),
        };
        assert_eq!(mode(&acts[0]), Mode::AcceptEdits);
        assert_eq!(mode(&acts[1]), Mode::Plan);
    }

    #[test]
    fn esc_stops_a_command_of_the_person_and_gives_back_what_waited_for_it() {
        let mut chat = chat();
        own(&mut chat);
        assert!(chat.submitted(said("later")).is_none());
        let acts = press(&mut chat, KeyCode::Esc);
        assert!(
            matches!(acts[..], [Act::Tell(Command::Interrupt)]),
            "{acts:?}"
        );
        assert_eq!(chat.editor.text(), "later");
        assert!(chat.queue.is_empty() && chat.released().is_empty());
    }

    #[test]
    fn what_waits_for_a_command_of_the_person_is_said_when_it_is_over() {
        let mut chat = chat();
        let call = own(&mut chat);
        chat.submitted(said("later"));
        assert!(chat.released().is_empty());
        let outcome = unspool_agent::tool::Outcome::done("over", serde_json::json!({}));
        chat.notice(Notice::CallEnded { call, outcome });
        let released: Vec<String> = chat.released().into_iter().map(|it| it.text).collect();
        assert_eq!(released, ["later"]);
    }

    #[test]
    fn what_could_not_be_written_is_told_below_what_was_said() {
        let mut chat = chat();
        chat.notice(Notice::Text("half an answer".to_owned()));
        chat.notice(Notice::Unwritten {
            why: "no room".to_owned(),
            hint: "make some".to_owned(),
        });
        let lines: Vec<String> = chat.take_said().iter().map(Line::text).collect();
        let at = |text: &str| lines.iter().position(|line| line.contains(text));
        assert!(at("half an answer") < at("no room"), "{lines:?}");
    }
}
