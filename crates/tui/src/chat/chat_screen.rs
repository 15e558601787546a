//! All of the state of a conversation on the screen, and what happens to it.
//!
//! Pure: what is heard comes in, what is to be done comes out. Lines that stay are collected
//! until the next picture.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;
use unspool_agent::api::api_error_text::describe_api_error;
use unspool_agent::api::retry::ApiError;
use unspool_agent::driver::{RunUsage, SessionCommand, SessionNotice};
use unspool_agent::permission::PermissionMode;
use unspool_agent::state_machine::{TurnEndReason, TurnEnding};
use unspool_agent::tool::ToolCallRequest;
use unspool_show::{StyledLine, TextStyle, clean, format};

use super::choice_picker::{ChoicePicker, PickerKeyResult};
use super::completion_menu::CompletionMenu;
use super::dialogs::{DialogKeyResult, DialogQueue};
use super::editor::{EditorKeyResult, PromptEditor};
use super::message_lines;
use super::paragraph_stream::ParagraphStream;
use super::question::{DialogAnswer, QuestionDialog};

/// A second press within this time is meant with the first.
const TWICE: Duration = Duration::from_millis(1500);

/// What is to be done.
#[derive(Clone, Debug)]
pub enum ChatAction {
    /// The session is told this.
    Tell(SessionCommand),
    /// Something was typed: a prompt, `/command`, `!command` or `#memory`.
    Typed(String),
    /// Something was chosen from a list of [`ChoicePicker::what`].
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
pub struct ChatPrompt {
    /// What is shown.
    pub text: String,
    /// What is said.
    pub content: Value,
    /// What only the model hears.
    pub context: Vec<String>,
}

/// A call that runs.
#[derive(Clone, Debug)]
pub struct ActiveCall {
    /// The call.
    pub call: ToolCallRequest,
    /// Since when.
    pub since: Instant,
    /// What it said last.
    pub last: String,
}

/// An attempt that is waited for.
#[derive(Clone, Debug)]
pub struct RetryWait {
    /// Until when.
    pub until: Instant,
    /// What went wrong.
    pub why: String,
}

/// The state.
pub struct ChatScreen {
    /// Where a person types.
    pub editor: PromptEditor,
    /// Columns and rows.
    pub size: (usize, usize),
    /// The time of the last thing that happened.
    pub now: Instant,
    /// Since when a turn runs.
    pub busy: Option<Instant>,
    /// What the model is saying.
    pub stream: ParagraphStream,
    /// How much it thought since it last said something.
    pub thought: usize,
    /// Calls that run.
    pub calls: Vec<ActiveCall>,
    /// An attempt that is waited for.
    pub waiting: Option<RetryWait>,
    /// What is asked.
    pub dialogs: DialogQueue,
    /// Where rules for later sessions are stored.
    pub rules_file: String,
    /// What is chosen from.
    pub pick: Option<ChoicePicker>,
    /// What may be typed on.
    pub menu: Option<CompletionMenu>,
    /// Prompts that wait.
    pub queue: Vec<String>,
    /// The mode.
    pub mode: PermissionMode,
    /// The model.
    pub model: String,
    /// The variable that gives access.
    pub variable: String,
    /// Where it works: files below are named from here.
    pub place: String,
    /// Tokens in the context, and how many fit.
    pub filled: (u64, u64),
    /// What was spent.
    pub spent: RunUsage,
    /// A summary is being made.
    pub compacting: bool,
    /// What to press again, and since when.
    pub again: Option<(KeyCode, Instant)>,
    /// Names and explanations of commands.
    pub commands: Vec<(String, String)>,
    /// Files of the project, once they are known.
    pub files: Option<Vec<String>>,
    said: Vec<StyledLine>,
    /// What is said when a command of the person's own is over.
    later: Vec<ChatPrompt>,
    /// The last thing that was shown is a call.
    called: bool,
}

impl ChatScreen {
    /// A conversation that begins.
    pub fn new(history: Vec<String>, size: (usize, usize), now: Instant) -> ChatScreen {
        ChatScreen {
            editor: PromptEditor::new(history),
            size,
            now,
            busy: None,
            stream: ParagraphStream::default(),
            thought: 0,
            calls: Vec::new(),
            waiting: None,
            dialogs: DialogQueue::default(),
            rules_file: String::new(),
            pick: None,
            menu: None,
            queue: Vec::new(),
            mode: PermissionMode::Default,
            model: String::new(),
            variable: String::new(),
            place: String::new(),
            filled: (0, 0),
            spent: RunUsage::default(),
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
    pub fn take_said(&mut self) -> Vec<StyledLine> {
        std::mem::take(&mut self.said)
    }

    /// Adds lines that stay.
    pub fn say(&mut self, lines: Vec<StyledLine>) {
        self.said.extend(lines);
    }

    /// Adds a remark.
    pub fn note(&mut self, paint: TextStyle, text: &str) {
        let lines = message_lines::note(paint, text, self.width());
        self.say(lines);
    }

    /// Adds a text with Markdown in it.
    pub fn tell(&mut self, text: &str) {
        let mut lines = message_lines::text(text, self.width());
        if std::mem::take(&mut self.called) {
            lines.insert(0, StyledLine::new());
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
    pub fn paste(&mut self, text: &str) -> Vec<ChatAction> {
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
    pub fn tick(&mut self) -> Vec<ChatAction> {
        let pressed = self.dialogs.tick(self.now);
        self.pressed(pressed)
    }

    fn pressed(&mut self, pressed: DialogKeyResult) -> Vec<ChatAction> {
        match pressed {
            DialogKeyResult::Nothing => Vec::new(),
            DialogKeyResult::Editor(keys) => {
                let keys = keys.into_iter();
                keys.flat_map(|key| self.type_key(key)).collect()
            }
            DialogKeyResult::Interrupt if self.working().is_some() => self.interrupt(),
            DialogKeyResult::Interrupt => Vec::new(),
            DialogKeyResult::Given(ask, given) => answered(ask, given),
            DialogKeyResult::Print(lines) => {
                self.say(lines);
                Vec::new()
            }
        }
    }

    fn look_for(&mut self) -> Vec<ChatAction> {
        let wanted = self.pick.as_mut().and_then(ChoicePicker::wants);
        wanted.map(ChatAction::Search).into_iter().collect()
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Vec<ChatAction> {
        let again = self.again.take().filter(|(_, at)| self.now - *at < TWICE);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('z') {
            return vec![ChatAction::Sleep];
        }
        if control && key.code == KeyCode::Char('l') {
            return vec![ChatAction::Redraw];
        }
        if let Some(pick) = &mut self.pick {
            let what = pick.what.clone();
            return match pick.key(key) {
                PickerKeyResult::Open => self.look_for(),
                PickerKeyResult::Left => {
                    self.pick = None;
                    Vec::new()
                }
                PickerKeyResult::This(value) => {
                    self.pick = None;
                    vec![ChatAction::Chosen(what, value)]
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
            KeyCode::Char('d') if control && self.editor.is_empty() => vec![ChatAction::Quit],
            KeyCode::BackTab => {
                // A second press comes before the session has heard of the first.
                self.mode = next(self.mode);
                vec![ChatAction::Tell(SessionCommand::Mode(self.mode))]
            }
            _ => self.type_key(key),
        }
    }

    fn type_key(&mut self, key: KeyEvent) -> Vec<ChatAction> {
        match self.editor.key(key, self.size.0.saturating_sub(2)) {
            EditorKeyResult::Sent(text) => {
                self.menu = None;
                vec![ChatAction::Typed(text)]
            }
            EditorKeyResult::Changed => self.offer(),
            EditorKeyResult::Nothing => Vec::new(),
        }
    }

    /// Keys for the menu: none of them, if it is not for it.
    fn menu_key(&mut self, key: KeyEvent) -> Option<Vec<ChatAction>> {
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
        if let Some((part, text)) = self.menu.as_ref().and_then(CompletionMenu::choice) {
            self.editor.replace(part, &text);
        }
    }

    /// Shows what may be typed on.
    fn offer(&mut self) -> Vec<ChatAction> {
        let before = self.menu.take();
        // A question needs the rows.
        if !self.dialogs.is_empty() {
            return Vec::new();
        }
        let wants = CompletionMenu::wants(self.editor.text(), self.editor.at());
        let Some(wants) = wants else {
            return Vec::new();
        };
        let files = match (&self.files, wants.is_file()) {
            (None, true) => return vec![ChatAction::Files],
            (files, _) => files.as_deref().unwrap_or_default(),
        };
        self.menu = CompletionMenu::new(wants, &self.commands, files, before.as_ref());
        Vec::new()
    }

    /// Files of the project are known now.
    pub fn files(&mut self, files: Vec<String>) {
        self.files = Some(files);
        self.offer();
    }

    fn interrupt(&mut self) -> Vec<ChatAction> {
        if !std::mem::take(&mut self.later).is_empty() {
            self.unsaid();
        }
        vec![ChatAction::Tell(SessionCommand::Interrupt)]
    }

    fn escape(&mut self, again: Option<KeyCode>) -> Vec<ChatAction> {
        if self.working().is_some() {
            return self.interrupt();
        }
        let twice = again == Some(KeyCode::Esc);
        match (self.editor.is_empty(), twice) {
            (true, true) => return vec![ChatAction::Prompts],
            (false, true) => self.editor.set(""),
            (_, false) => self.again = Some((KeyCode::Esc, self.now)),
        }
        Vec::new()
    }

    fn break_off(&mut self, again: Option<KeyCode>) -> Vec<ChatAction> {
        if self.working().is_some() {
            return self.interrupt();
        }
        if !self.editor.is_empty() {
            self.editor.set("");
            return Vec::new();
        }
        let code = KeyCode::Char('c');
        if again == Some(code) {
            return vec![ChatAction::Quit];
        }
        self.again = Some((code, self.now));
        Vec::new()
    }

    /// A prompt goes out: it is shown at once, or waits for the turn. It stays here while a
    /// command of the person's own runs.
    pub fn submitted(&mut self, said: ChatPrompt) -> Option<ChatPrompt> {
        if self.working().is_some() {
            self.queue.push(said.text.clone());
            if self.busy.is_none() {
                self.later.push(said);
                return None;
            }
            return Some(said);
        }
        let lines = message_lines::prompt(&said.text, self.width());
        self.say(lines);
        self.busy = Some(self.now);
        Some(said)
    }

    /// What waited for a command that is over now.
    pub fn released(&mut self) -> Vec<ChatPrompt> {
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
    pub fn notice(&mut self, notice: SessionNotice) {
        match notice {
            SessionNotice::Line { agent: None, .. } => self.flush(),
            SessionNotice::Line { .. } | SessionNotice::Raw(_) | SessionNotice::Closed => {}
            SessionNotice::Text(more) => {
                self.waiting = None;
                self.thought = 0;
                if let Some(over) = self.stream.push(&more) {
                    self.tell(&over);
                }
            }
            SessionNotice::Thinking(more) => {
                self.waiting = None;
                self.thought += more.chars().count();
            }
            SessionNotice::Retry {
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
                self.waiting = Some(RetryWait { until, why });
            }
            SessionNotice::Asking => {
                self.waiting = None;
                self.thought = 0;
                self.busy.get_or_insert(self.now);
            }
            SessionNotice::Usage {
                filled,
                window,
                spent,
            } => {
                self.filled = (filled, window);
                self.spent = spent;
            }
            SessionNotice::CallBegan(call) => {
                self.flush();
                self.calls.push(ActiveCall {
                    call,
                    since: self.now,
                    last: String::new(),
                });
            }
            SessionNotice::Progress { call, data } => self.progress(&call, &data),
            SessionNotice::CallEnded { call, outcome } => {
                self.calls.retain(|running| running.call.id != call.id);
                let lines = message_lines::call(&call, &outcome, &self.place, self.width());
                self.say(lines);
                self.called = true;
            }
            // Who said no knows it; the call itself says the rest.
            SessionNotice::Denied { asked: true, .. } => {}
            SessionNotice::Denied { call, why, .. } => {
                self.calls.retain(|running| running.call.id != call.id);
                let head =
                    message_lines::head(&call, (TextStyle::ERROR, "✗"), &self.place, self.width());
                self.say(vec![head]);
                self.note(TextStyle::DIM, &format!("  denied: {why}"));
            }
            SessionNotice::Ask {
                ask,
                call,
                what,
                agent,
            } => {
                self.flush();
                self.menu = None;
                let (place, file) = (&self.place, &self.rules_file);
                let question = QuestionDialog::new(ask, call, what, agent, place, file);
                self.dialogs.push(question);
            }
            SessionNotice::Withdrawn { ask } => {
                let unsent = self.dialogs.withdraw(ask);
                self.keep_unsent(unsent);
            }
            SessionNotice::Queued(count) => self.queued(count),
            SessionNotice::Compacting { .. } => {
                self.compacting = true;
                self.busy.get_or_insert(self.now);
            }
            SessionNotice::Mode(mode) => self.mode = mode,
            SessionNotice::Model(model) => self.model = model,
            SessionNotice::Rewound {
                prompt,
                files,
                conversation,
            } => {
                let what = match (files, conversation) {
                    (true, true) => "rewound the conversation and the files to before this prompt",
                    (true, false) => "rewound the files to before this prompt",
                    (false, _) => "rewound the conversation to before this prompt",
                };
                self.note(TextStyle::WARN, what);
                if conversation {
                    self.editor.set(&prompt);
                }
            }
            SessionNotice::Cold(cold) => self.note(TextStyle::WARN, &cold.to_string()),
            SessionNotice::Warn(text) => self.note(TextStyle::WARN, &text),
            SessionNotice::Ended { ending, time } => self.ended(&ending, time),
            SessionNotice::Unwritten { why, hint } => {
                self.flush();
                self.note(
                    TextStyle::ERROR,
                    &format!("cannot write the session: {why}"),
                );
                self.note(TextStyle::DIM, &hint);
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
            self.note(TextStyle::DIM, "(the response was cut off; retrying)");
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
            let lines = message_lines::prompt(&text, self.width());
            self.say(lines);
        }
    }

    fn ended(&mut self, ending: &TurnEnding, time: Duration) {
        self.flush();
        self.rest();
        match &ending.why {
            TurnEndReason::Done => {
                let time = format::duration(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
                self.note(TextStyle::DIM, &format!("· {time}"));
            }
            TurnEndReason::Interrupted => {
                self.note(TextStyle::WARN, "interrupted; say what to do instead")
            }
            TurnEndReason::MaxTurns => self.note(TextStyle::WARN, "stopped: reached --max-turns"),
            TurnEndReason::Budget => {
                self.note(TextStyle::WARN, "stopped: reached --max-budget-usd")
            }
            TurnEndReason::Refused(_) => self.note(
                TextStyle::WARN,
                "the model declined; rephrase, or use /rewind",
            ),
            TurnEndReason::Failed(trouble) => {
                let what = describe_api_error(trouble, &self.model, &self.variable);
                self.note(TextStyle::ERROR, &what);
                self.note(TextStyle::DIM, &way_on(trouble, &self.variable));
            }
            TurnEndReason::Hook(why) => {
                self.note(TextStyle::WARN, &format!("stopped by a hook: {why}"))
            }
            TurnEndReason::TooLong => {
                self.note(
                    TextStyle::ERROR,
                    "the conversation exceeds the context window: use /compact",
                );
            }
            TurnEndReason::Compacted => self.note(TextStyle::DIM, "the conversation was compacted"),
            TurnEndReason::NotCompacted(why) => {
                self.note(TextStyle::ERROR, &format!("compaction failed: {why}"));
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

fn answered(ask: u64, given: DialogAnswer) -> Vec<ChatAction> {
    let DialogAnswer { answer, store } = given;
    let mut acts = vec![ChatAction::Tell(SessionCommand::Answer { ask, answer })];
    if !store.is_empty() {
        acts.push(ChatAction::Keep(store));
    }
    acts
}

/// What can be done here about a failure of the API.
fn way_on(trouble: &ApiError, variable: &str) -> String {
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
fn next(mode: PermissionMode) -> PermissionMode {
    match mode {
        PermissionMode::Default => PermissionMode::AcceptEdits,
        PermissionMode::AcceptEdits => PermissionMode::Plan,
        PermissionMode::Plan | PermissionMode::DontAsk | PermissionMode::Bypass => {
            PermissionMode::Default
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat() -> ChatScreen {
        ChatScreen::new(Vec::new(), (80, 24), Instant::now())
    }

    fn press(chat: &mut ChatScreen, code: KeyCode) -> Vec<ChatAction> {
        chat.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn own(chat: &mut ChatScreen) -> ToolCallRequest {
        let call = ToolCallRequest {
            id: "shell-1".to_owned(),
            name: "Bash".to_owned(),
            input: serde_json::json!({"command": "sleep 9"}),
        };
        chat.notice(SessionNotice::CallBegan(call.clone()));
        call
    }

    fn said(text: &str) -> ChatPrompt {
        ChatPrompt {
            text: text.to_owned(),
            content: text.into(),
            context: Vec::new(),
        }
    }

    #[test]
    fn two_quick_presses_lead_two_modes_on() {
        let mut chat = chat();
        let acts = [KeyCode::BackTab; 2].map(|code| press(&mut chat, code));
        let mode = |acts: &[ChatAction]| match acts {
            [ChatAction::Tell(SessionCommand::Mode(mode))] => *mode,
            other => panic!("{other:?}"),
        };
        assert_eq!(mode(&acts[0]), PermissionMode::AcceptEdits);
        assert_eq!(mode(&acts[1]), PermissionMode::Plan);
    }

    #[test]
    fn esc_stops_a_command_of_the_person_and_gives_back_what_waited_for_it() {
        let mut chat = chat();
        own(&mut chat);
        assert!(chat.submitted(said("later")).is_none());
        let acts = press(&mut chat, KeyCode::Esc);
        assert!(
            matches!(acts[..], [ChatAction::Tell(SessionCommand::Interrupt)]),
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
        let outcome = unspool_agent::tool::ToolOutcome::done("over", serde_json::json!({}));
        chat.notice(SessionNotice::CallEnded { call, outcome });
        let released: Vec<String> = chat.released().into_iter().map(|it| it.text).collect();
        assert_eq!(released, ["later"]);
    }

    #[test]
    fn what_could_not_be_written_is_told_below_what_was_said() {
        let mut chat = chat();
        chat.notice(SessionNotice::Text("half an answer".to_owned()));
        chat.notice(SessionNotice::Unwritten {
            why: "no room".to_owned(),
            hint: "make some".to_owned(),
        });
        let lines: Vec<String> = chat.take_said().iter().map(StyledLine::text).collect();
        let at = |text: &str| lines.iter().position(|line| line.contains(text));
        assert!(at("half an answer") < at("no room"), "{lines:?}");
    }
}
