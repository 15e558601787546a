//! Which keys answer a question, at which times; all through the state of a conversation.

use proptest::prelude::*;
use serde_json::json;
use unspool_agent::driver::{
    AskingAgent, QuestionAnswer, QuestionKind, SessionCommand, SessionNotice,
};
use unspool_agent::tool::ToolCallRequest;
use unspool_show::StyledLine;

use super::super::chat_screen::{ChatAction, ChatScreen};
use super::super::choice_picker::ChoicePicker;
use super::super::draw;
use super::super::question::FolderSettings;
use super::*;

/// A conversation on a screen, and a clock.
struct Screen {
    chat: ChatScreen,
    acts: Vec<ChatAction>,
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn what(kind: usize) -> (ToolCallRequest, QuestionKind) {
    let (name, input, what) = match kind % 4 {
        0 => {
            let always = vec!["Bash(touch:*)".to_owned()];
            let (why, parts) = (String::new(), Vec::new());
            let what = QuestionKind::Permission { why, always, parts };
            ("Bash", json!({"command": "touch x"}), what)
        }
        1 => ("ExitPlanMode", json!({"plan": "do it"}), QuestionKind::Plan),
        2 => {
            let options = json!([{"label": "A"}, {"label": "B"}]);
            let form = json!({"questions": [{"question": "Q?", "options": options}]});
            ("AskUserQuestion", form, QuestionKind::Question)
        }
        _ => {
            let options = json!([{"label": "A"}, {"label": "B"}]);
            let form = json!({"questions": [
                {"question": "Q?", "options": options, "multiSelect": true}]});
            ("AskUserQuestion", form, QuestionKind::Question)
        }
    };
    let call = ToolCallRequest {
        id: format!("t{kind}"),
        name: name.to_owned(),
        input,
    };
    (call, what)
}

impl Screen {
    fn new() -> Screen {
        let chat = ChatScreen::new(Vec::new(), (80, 24), Instant::now());
        let acts = Vec::new();
        Screen { chat, acts }
    }

    fn ask(&mut self, ask: u64, kind: usize) {
        self.ask_from(ask, kind, None);
    }

    fn ask_from(&mut self, ask: u64, kind: usize, agent: Option<&str>) {
        let (call, what) = what(kind);
        let agent = agent.map(|name| AskingAgent {
            id: name.to_owned(),
            kind: name.to_owned(),
            description: String::new(),
        });
        let notice = SessionNotice::Ask {
            ask,
            call,
            what,
            agent,
        };
        self.chat.notice(notice);
    }

    /// Draws, as the shell does before it listens.
    fn draw(&mut self) -> String {
        let (lines, _) = draw::live(&mut self.chat);
        let at = self.chat.now;
        self.chat.drawn(at);
        let lines: Vec<String> = lines.iter().map(StyledLine::text).collect();
        lines.join("\n")
    }

    fn wait(&mut self, time: u64) {
        self.chat.now += ms(time);
        let acts = self.chat.tick();
        self.acts.extend(acts);
    }

    /// Draws, and lets the moment pass.
    fn settle(&mut self) -> String {
        self.draw();
        self.wait(600);
        self.draw()
    }

    fn press(&mut self, code: KeyCode) {
        let acts = self.chat.key(KeyEvent::new(code, KeyModifiers::NONE));
        self.acts.extend(acts);
    }

    fn types(&mut self, text: &str, gap: u64) {
        self.types_with_pauses(text, gap, gap);
    }

    /// Presses enter, and nothing else for a moment.
    fn choose(&mut self) {
        self.press(KeyCode::Enter);
        self.wait(500);
    }

    /// Presses the keys of a text, with longer pauses once something stands in the editor.
    fn types_with_pauses(&mut self, text: &str, gap: u64, pause: u64) {
        for c in text.chars() {
            self.press(match c {
                '\n' | '\r' => KeyCode::Enter,
                c => KeyCode::Char(c),
            });
            // Who pauses right behind a key on an empty editor has answered.
            match self.chat.editor.text().is_empty() {
                true => self.wait(gap),
                false => self.wait(pause),
            }
            self.draw();
        }
    }

    fn answers(&self) -> Vec<(u64, QuestionAnswer)> {
        let answer = |act: &ChatAction| match act {
            ChatAction::Tell(SessionCommand::Answer { ask, answer }) => {
                Some((*ask, answer.clone()))
            }
            _ => None,
        };
        self.acts.iter().filter_map(answer).collect()
    }

    fn stored(&self) -> usize {
        let keeps = |act: &&ChatAction| matches!(act, ChatAction::Keep(_));
        self.acts.iter().filter(keeps).count()
    }

    fn sent(&self) -> Vec<&str> {
        let sent = |act: &'_ ChatAction| matches!(act, ChatAction::Typed(_));
        let sent = self.acts.iter().filter(|act| sent(act));
        sent.map(|act| match act {
            ChatAction::Typed(text) => text.as_str(),
            _ => "",
        })
        .collect()
    }
}

#[test]
fn a_letter_answers_when_a_moment_has_passed() {
    let mut screen = Screen::new();
    screen.ask(7, 0);
    let text = screen.settle();
    assert!(text.contains("enter to select"), "{text}");
    screen.press(KeyCode::Char('y'));
    assert_eq!(screen.answers(), []);
    screen.wait(600);
    assert_eq!(screen.answers(), [(7, QuestionAnswer::Yes)]);
    assert_eq!(screen.chat.editor.text(), "");
}

#[test]
fn enter_answers_when_a_moment_has_passed_and_not_before_the_question_was_seen() {
    let mut screen = Screen::new();
    screen.ask(7, 0);
    screen.draw();
    screen.press(KeyCode::Enter);
    screen.wait(499);
    screen.press(KeyCode::Enter);
    assert_eq!(screen.answers(), []);
    screen.wait(600);
    screen.press(KeyCode::Enter);
    screen.wait(499);
    assert_eq!(screen.answers(), []);
    screen.wait(1);
    assert_eq!(screen.answers(), [(7, QuestionAnswer::Yes)]);
}

#[test]
fn a_text_that_begins_with_an_empty_line_is_a_prompt() {
    for text in ["\nyes", "\n\n", "\n\nyes", "\n1\n", "\ry", "\n y"] {
        for gap in [0, 10, 250, 499] {
            let mut screen = Screen::new();
            screen.ask(7, 0);
            screen.settle();
            screen.types(text, gap);
            screen.wait(5_000);
            assert_eq!(screen.answers(), [], "{text:?} every {gap} ms");
        }
    }
}

#[test]
fn a_prompt_that_is_typed_while_a_question_appears_is_a_prompt() {
    for (before, after) in [
        ("yes m", "aybe later"),
        ("hello ", "2 you"),
        ("", "yes maybe later"),
    ] {
        for gap in [1, 80, 250, 450] {
            let mut screen = Screen::new();
            screen.types(before, gap);
            screen.ask(7, 0);
            screen.draw();
            screen.types(after, gap);
            screen.wait(5_000);
            assert_eq!(screen.answers(), [], "{before}|{after} every {gap} ms");
            let text = format!("{before}{after}");
            assert_eq!(screen.chat.editor.text(), text);
            screen.press(KeyCode::Enter);
            screen.wait(5_000);
            assert_eq!((screen.answers().len(), screen.stored()), (0, 0));
            assert_eq!(screen.sent(), [text.as_str()]);
        }
    }
}

#[test]
fn a_key_that_was_pressed_before_the_question_was_drawn_is_for_the_editor() {
    let mut screen = Screen::new();
    let pressed = screen.chat.now;
    screen.ask(7, 0);
    screen.wait(2_000);
    screen.draw();
    screen.wait(2_000);
    // It was read before, and is heard only now.
    let now = std::mem::replace(&mut screen.chat.now, pressed);
    screen.press(KeyCode::Char('y'));
    screen.chat.now = now;
    screen.wait(2_000);
    assert_eq!(screen.answers(), []);
    assert_eq!(screen.chat.editor.text(), "y");
}

#[test]
fn blanks_at_the_end_of_a_long_question_do_not_keep_enter_from_answering() {
    let mut screen = Screen::new();
    let (call, what) = what(1);
    let input = json!({"plan": "step\n".repeat(60)});
    let call = ToolCallRequest { input, ..call };
    let (ask, agent) = (7, None);
    screen.chat.notice(SessionNotice::Ask {
        ask,
        call,
        what,
        agent,
    });
    screen.settle();
    for _ in 0..20 {
        screen.press(KeyCode::Char(' '));
        screen.wait(600);
        screen.draw();
    }
    assert_eq!(screen.chat.editor.text(), "");
    screen.choose();
    assert_eq!(screen.answers().len(), 1);
}

#[test]
fn a_key_for_a_list_does_not_answer_the_question_behind_it() {
    let mut screen = Screen::new();
    screen.chat.pick = Some(ChoicePicker::new("model", "Which?", Vec::new()));
    screen.ask(7, 0);
    screen.settle();
    screen.press(KeyCode::Enter);
    screen.press(KeyCode::Esc);
    assert!(screen.chat.pick.is_none());
    screen.press(KeyCode::Enter);
    screen.draw();
    screen.press(KeyCode::Enter);
    assert_eq!(screen.answers(), []);
    screen.settle();
    screen.choose();
    assert_eq!(screen.answers(), [(7, QuestionAnswer::Yes)]);
}

#[test]
fn pasted_text_answers_nothing() {
    for text in ["y", "1", "2", "yes\n", "\n", "3\n"] {
        let mut screen = Screen::new();
        screen.ask(7, 0);
        screen.settle();
        let acts = screen.chat.paste(text);
        screen.acts.extend(acts);
        screen.wait(2_000);
        assert_eq!(screen.answers(), [], "{text:?}");
    }
}

#[test]
fn a_letter_followed_by_a_paste_is_text() {
    let mut screen = Screen::new();
    screen.ask(7, 0);
    screen.settle();
    screen.press(KeyCode::Char('y'));
    screen.chat.paste("es");
    screen.wait(2_000);
    assert_eq!(screen.answers(), []);
    assert_eq!(screen.chat.editor.text(), "yes");
}

#[test]
fn questions_wait_for_their_turn_and_none_is_lost() {
    let mut screen = Screen::new();
    screen.ask(1, 0);
    screen.ask_from(2, 0, Some("explore"));
    screen.ask(3, 1);
    let text = screen.settle();
    assert!(text.contains("2 more questions"), "{text}");
    assert!(text.contains("the main conversation asks"), "{text}");
    screen.choose();
    let text = screen.settle();
    assert!(text.contains("agent explore asks"), "{text}");
    assert!(text.contains("1 more question"), "{text}");
    screen.choose();
    screen.settle();
    screen.choose();
    let asks: Vec<u64> = screen.answers().iter().map(|(ask, _)| *ask).collect();
    assert_eq!(asks, [1, 2, 3]);
    assert!(screen.chat.dialogs.is_empty());
}

#[test]
fn a_key_for_the_first_question_does_not_answer_the_second() {
    for code in [
        KeyCode::Enter,
        KeyCode::Char('y'),
        KeyCode::Char('2'),
        KeyCode::Esc,
    ] {
        let mut screen = Screen::new();
        screen.ask(1, 0);
        screen.ask_from(2, 0, Some("explore"));
        screen.settle();
        screen.choose();
        // Before it is drawn, and just behind that.
        screen.press(code);
        screen.draw();
        screen.wait(100);
        screen.press(code);
        screen.wait(5_000);
        let asks: Vec<u64> = screen.answers().iter().map(|(ask, _)| *ask).collect();
        assert_eq!(asks, [1], "{code:?}");
    }
}

#[test]
fn the_next_question_of_a_form_needs_a_key_of_its_own() {
    let mut screen = Screen::new();
    let options = json!([{"label": "A"}, {"label": "B"}]);
    let one = json!({"question": "One?", "options": options});
    let two = json!({"question": "Two?", "options": options});
    let call = ToolCallRequest {
        id: "t".to_owned(),
        name: "AskUserQuestion".to_owned(),
        input: json!({"questions": [one, two]}),
    };
    let (what, agent) = (QuestionKind::Question, None);
    screen.chat.notice(SessionNotice::Ask {
        ask: 1,
        call,
        what,
        agent,
    });
    screen.settle();
    screen.choose();
    screen.press(KeyCode::Enter);
    screen.draw();
    screen.wait(100);
    screen.press(KeyCode::Enter);
    screen.wait(5_000);
    assert_eq!(screen.answers(), []);
    screen.choose();
    assert_eq!(screen.answers().len(), 1);
}

#[test]
fn a_question_that_is_withdrawn_disappears_and_the_next_one_is_new() {
    let mut screen = Screen::new();
    screen.ask(1, 0);
    screen.ask(2, 0);
    screen.settle();
    screen.chat.notice(SessionNotice::Withdrawn { ask: 1 });
    screen.press(KeyCode::Enter);
    assert_eq!(screen.answers(), []);
    screen.chat.notice(SessionNotice::Withdrawn { ask: 2 });
    assert!(screen.chat.dialogs.is_empty());
}

#[test]
fn what_was_written_about_a_question_that_is_withdrawn_is_kept() {
    let mut screen = Screen::new();
    screen.ask(1, 0);
    screen.settle();
    screen.press(KeyCode::Char('n'));
    screen.wait(600);
    screen.types("use make", 10);
    screen.chat.notice(SessionNotice::Withdrawn { ask: 1 });
    assert_eq!(screen.chat.editor.text(), "use make");
}

#[test]
fn esc_says_no_and_in_the_first_moment_interrupts() {
    let mut screen = Screen::new();
    screen.chat.notice(SessionNotice::Asking);
    screen.ask(1, 0);
    screen.draw();
    screen.press(KeyCode::Esc);
    assert!(
        matches!(
            screen.acts[..],
            [ChatAction::Tell(SessionCommand::Interrupt)]
        ),
        "{:?}",
        screen.acts
    );
    screen.acts.clear();
    screen.settle();
    screen.press(KeyCode::Esc);
    assert_eq!(screen.answers(), [(1, QuestionAnswer::No(None))]);
}

#[test]
fn a_question_of_an_agent_in_the_background_outlives_the_turn() {
    let mut screen = Screen::new();
    screen.ask(1, 0);
    screen.ask_from(2, 0, Some("explore"));
    let unwritten = SessionNotice::Unwritten {
        why: String::new(),
        hint: String::new(),
    };
    screen.chat.notice(unwritten);
    let text = screen.settle();
    assert!(text.contains("agent explore asks"), "{text}");
    screen.choose();
    assert_eq!(screen.answers(), [(2, QuestionAnswer::Yes)]);
}

#[test]
fn what_stands_below_a_question_is_seen_and_the_question_fits() {
    for height in 4..40 {
        let mut screen = Screen::new();
        screen.chat.size = (40, height);
        screen.ask(1, 0);
        screen.chat.editor.set("typed\nbefore\nthis\nand more");
        let text = screen.draw();
        assert!(text.contains("and more"), "{text}");
        if height < 12 {
            // The rows do not fit, so nothing was seen.
            assert!(!screen.chat.dialogs.first().unwrap().is_seen(), "{text}");
            continue;
        }
        assert!(text.lines().count() < height, "{height}:\n{text}");
        if height >= 16 {
            assert!(text.contains("touch x"), "{text}");
        }
    }
}

#[test]
fn what_is_typed_while_trust_is_asked_does_not_give_it() {
    let settings = FolderSettings {
        folder: "/a".to_owned(),
        settings: vec![("hooks".to_owned(), json!("x"))],
        changed: false,
    };
    let mut dialogs = DialogQueue::default();
    dialogs.push(QuestionDialog::trust(settings));
    let start = Instant::now();
    let mut now = start;
    let (_, _) = dialogs
        .first()
        .unwrap()
        .draw(80, 24, DialogContext::default());
    dialogs.drawn(now);
    let mut editor = String::new();
    for c in "yes please\n".chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            c => KeyCode::Char(c),
        };
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        match dialogs.key(key, now, editor.is_empty(), 80) {
            DialogKeyResult::Editor(keys) => editor.extend(keys.iter().map(|_| c)),
            other => panic!("{other:?}"),
        }
        now += ms(100);
    }
    assert!(!dialogs.is_empty());
}

/// A moment of a script.
#[derive(Clone, Debug)]
enum Happens {
    Ask(usize, bool),
    Withdraw(u64),
    Draw,
    Wait(u64),
    Text(String, u64, u64),
    Paste(String),
}

fn happens() -> impl Strategy<Value = Happens> {
    // Texts of one character are answers where they stand alone; all others are prompts.
    let words = prop_oneof![
        Just("yes maybe later".to_owned()),
        Just("yes".to_owned()),
        Just("yy".to_owned()),
        Just("12".to_owned()),
        Just("hello 2 you".to_owned()),
        Just("y\n".to_owned()),
        Just("1\n".to_owned()),
        Just("3 3\n".to_owned()),
        Just("yes\n".to_owned()),
        Just("2 of them\n\n".to_owned()),
        Just("\nyes".to_owned()),
        Just("\n\n".to_owned()),
        Just("\n1\n".to_owned()),
        Just("1\n2\ny es".to_owned()),
        "[ -~]{2,12}\n?",
        "\n[ -~\n]{1,12}",
        "[ -~]{2,6}\n{1,3}[ -~]{2,6}",
    ];
    let gap = 0..MOMENT.as_millis() as u64;
    let pasted = prop_oneof![words.clone(), Just("y".to_owned()), Just("\n".to_owned())];
    prop_oneof![
        3 => (0..4_usize, any::<bool>()).prop_map(|(kind, agent)| Happens::Ask(kind, agent)),
        1 => (1..6_u64).prop_map(Happens::Withdraw),
        3 => Just(Happens::Draw),
        3 => (0..3_000_u64).prop_map(Happens::Wait),
        6 => (words, gap, 0..1_500_u64)
            .prop_map(|(text, gap, pause)| Happens::Text(text, gap, pause)),
        2 => pasted.prop_map(Happens::Paste),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn no_text_typed_at_any_moment_of_any_script_answers_anything(
        script in proptest::collection::vec(happens(), 1..14)
    ) {
        let mut screen = Screen::new();
        let mut asks = 0;
        for step in script {
            match step {
                Happens::Ask(kind, agent) => {
                    asks += 1;
                    screen.ask_from(asks, kind, agent.then_some("explore"));
                }
                Happens::Withdraw(ask) => screen.chat.notice(SessionNotice::Withdrawn { ask }),
                Happens::Draw => drop(screen.draw()),
                Happens::Wait(time) => screen.wait(time),
                Happens::Text(text, gap, pause) => screen.types_with_pauses(&text, gap, pause),
                Happens::Paste(text) => {
                    let acts = screen.chat.paste(&text);
                    screen.acts.extend(acts);
                }
            }
        }
        screen.wait(10_000);
        prop_assert_eq!(screen.answers(), []);
        prop_assert_eq!(screen.stored(), 0);
    }
}
