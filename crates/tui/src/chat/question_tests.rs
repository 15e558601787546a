//! Questions by themselves: what they show, and what can be chosen when.

use super::*;
use ratatui::crossterm::event::KeyModifiers;
use unspool_agent::permission::PermissionReason;

fn call(name: &str, input: Value) -> ToolCallRequest {
    ToolCallRequest {
        id: "t".to_owned(),
        name: name.to_owned(),
        input,
    }
}

fn asks(call: ToolCallRequest, always: &[&str], parts: Vec<CommandPartFinding>) -> QuestionDialog {
    let what = QuestionKind::Permission {
        why: "no rule allows it".to_owned(),
        always: always.iter().map(|rule| (*rule).to_owned()).collect(),
        parts,
    };
    QuestionDialog::new(1, call, what, None, "/p", ".claude/settings.local.json")
}

fn permission(always: &[&str]) -> QuestionDialog {
    asks(
        call("Bash", json!({"command": "npm test"})),
        always,
        Vec::new(),
    )
}

fn shown(question: &mut QuestionDialog, width: usize, height: usize) -> Vec<String> {
    let (lines, _) = question.draw(width, height, DialogContext::default());
    assert!(lines.len() <= height, "{} rows of {height}", lines.len());
    lines.iter().map(StyledLine::text).collect()
}

fn text(question: &mut QuestionDialog) -> String {
    shown(question, 80, 30).join("\n")
}

fn choose(question: &mut QuestionDialog, letter: char) -> Option<DialogAnswer> {
    let at = question.shortcut(letter)?;
    question.select(at);
    question.choose()
}

#[test]
fn once_for_this_session_and_always_are_three_answers_and_show_their_rule() {
    let rules = vec!["Bash(npm test)".to_owned()];
    let mut question = permission(&["Bash(npm test)"]);
    let text = text(&mut question);
    assert!(text.contains("1 Yes, once"), "{text}");
    assert!(
        text.contains("2 Yes, for this session: Bash(npm test)"),
        "{text}"
    );
    assert!(
        text.contains("3 Yes, always: Bash(npm test) (stored in"),
        "{text}"
    );
    assert!(text.contains(".claude/settings.local.json)"), "{text}");
    assert_eq!(
        choose(&mut question.clone(), '1'),
        Some(QuestionAnswer::Yes.into())
    );
    assert_eq!(
        choose(&mut question.clone(), 'y'),
        Some(QuestionAnswer::Yes.into())
    );
    assert_eq!(
        choose(&mut question.clone(), '2'),
        Some(QuestionAnswer::Always(rules.clone()).into())
    );
    let always = DialogAnswer {
        answer: QuestionAnswer::Always(rules.clone()),
        store: rules,
    };
    assert_eq!(choose(&mut question, '3'), Some(always));
}

#[test]
fn several_rules_stand_below_each_other() {
    let text = text(&mut permission(&["Bash(a:*)", "Bash(b\nc)"]));
    assert!(
        text.contains("2 Yes, for this session:\n│     Bash(a:*)\n│     Bash(b\\x0ac)\n"),
        "{text}"
    );
    assert!(text.contains("3 Yes, always (stored in"), "{text}");
}

#[test]
fn without_a_rule_there_is_only_once_and_no() {
    let text = text(&mut permission(&[]));
    assert!(
        text.contains("1 Yes, once") && text.contains("2 No"),
        "{text}"
    );
    assert!(
        !text.contains("session") && !text.contains("always"),
        "{text}"
    );
}

#[test]
fn no_asks_for_a_reason() {
    let mut question = permission(&[]);
    assert_eq!(choose(&mut question, 'n'), None);
    assert!(question.is_writing());
    let mut press = |code| question.write(KeyEvent::new(code, KeyModifiers::NONE), 60);
    for c in "use 1".chars() {
        assert_eq!(press(KeyCode::Char(c)), None);
    }
    let given = press(KeyCode::Enter);
    assert_eq!(
        given,
        Some(QuestionAnswer::No(Some("use 1".to_owned())).into())
    );
}

#[test]
fn nothing_is_approved_before_it_was_drawn() {
    let mut question = permission(&["Bash(npm test)"]);
    for letter in ['y', '1', '2', '3'] {
        assert_eq!(choose(&mut question, letter), None, "{letter}");
    }
    assert_eq!(question.choose(), None);
    text(&mut question);
    assert_eq!(question.choose(), Some(QuestionAnswer::Yes.into()));
}

#[test]
fn who_asks_and_how_many_wait_is_said() {
    let mut question = permission(&[]);
    assert!(text(&mut question).contains("the main conversation asks"));
    let agent = AskingAgent {
        id: "a1".to_owned(),
        kind: "exp\u{1b}lore".to_owned(),
        description: "look around".to_owned(),
    };
    question.agent = Some(agent);
    let around = DialogContext {
        waiting: 2,
        ..DialogContext::default()
    };
    let (lines, _) = question.draw(80, 30, around);
    let first = lines[0].text();
    assert!(first.contains("2 more questions"), "{first}");
    assert!(
        first.contains("agent exp\\x1blore asks: look around"),
        "{first}"
    );
}

#[test]
fn a_long_command_is_approved_only_after_its_end_was_seen() {
    let lines: Vec<String> = (0..90).map(|line| format!("echo {line}")).collect();
    let mut question = asks(
        call("Bash", json!({"command": lines.join("\n")})),
        &[],
        Vec::new(),
    );
    let mut all = String::new();
    for _ in 0..40 {
        let rows = shown(&mut question, 60, 20).join("\n");
        all += &rows;
        if question.is_seen() {
            break;
        }
        assert!(rows.contains("more of"), "{rows}");
        assert_eq!(question.choose(), None);
        assert_eq!(question.shortcut('y'), None);
        assert_eq!(question.shortcut('1'), None);
        assert!(question.shortcut('n').is_some());
        question.moves(KeyCode::PageDown);
    }
    for line in &lines {
        assert!(
            all.contains(&format!("{line}\n")) || all.contains(line),
            "{line} was not shown"
        );
    }
    assert_eq!(question.choose(), Some(QuestionAnswer::Yes.into()));
}

#[test]
fn keys_that_are_faster_than_pictures_jump_over_nothing() {
    let content: String = (0..200).map(|line| format!("number {line};\n")).collect();
    let write = call(
        "Write",
        json!({"file_path": "/p/a.txt", "content": content}),
    );
    let mut question = asks(write, &[], Vec::new());
    let mut all = shown(&mut question, 60, 20).join("\n");
    for _ in 0..3 {
        for _ in 0..100 {
            question.moves(KeyCode::PageDown);
        }
        all += &shown(&mut question, 60, 20).join("\n");
    }
    assert!(!question.is_seen());
    assert_eq!(question.choose(), None);
    while !question.is_seen() {
        question.moves(KeyCode::PageDown);
        all += &shown(&mut question, 60, 20).join("\n");
    }
    for line in 0..200 {
        assert!(all.contains(&format!("number {line};")), "{line}");
    }
}

#[test]
fn what_is_printed_in_full_is_seen() {
    let content = "x\n".repeat(200);
    let write = call(
        "Write",
        json!({"file_path": "/p/a.txt", "content": content}),
    );
    let mut question = asks(write, &[], Vec::new());
    shown(&mut question, 60, 20);
    assert!(!question.is_seen());
    let printed = question.print(60);
    assert!(printed.len() > 200);
    assert_eq!(question.choose(), Some(QuestionAnswer::Yes.into()));
}

#[test]
fn a_window_that_is_too_small_approves_nothing() {
    let mut question = permission(&["Bash(npm test)"]);
    for height in 0..6 {
        let (lines, _) = question.draw(30, height, DialogContext::default());
        assert!(lines.len() <= height.max(6));
    }
    assert_eq!(question.choose(), None);
    for width in 0..30 {
        question.draw(width, 40, DialogContext::default());
        assert_eq!(question.choose(), None, "{width} columns");
    }
}

#[test]
fn no_row_is_wider_than_the_window() {
    let step = |part: String| CommandPartFinding {
        part,
        what: "asks",
        why: PermissionReason {
            text: String::new(),
            rule: None,
            firm: false,
        },
    };
    let command = format!("echo {}\u{e0041}日本{}", "x".repeat(200), "語".repeat(50));
    let parts = vec![step(command.clone()), step("y".repeat(90))];
    let input =
        json!({"command": command, "a\u{1b}long_name_of_a_field": command, "b": {"c": command}});
    let long = "z\u{1b}".repeat(300);
    let input_of_write =
        json!({"file_path": long.clone(), "content": format!("{long}\n").repeat(20)});
    for width in 30..90 {
        for call in [
            call("Bash", input.clone()),
            call("Write", input_of_write.clone()),
        ] {
            let mut question = asks(call, &[&long], parts.clone());
            let (lines, _) = question.draw(width, 1_000_000, DialogContext::default());
            assert!(question.is_seen());
            let wide = lines.iter().find(|line| line.width() > width);
            assert_eq!(wide.map(StyledLine::text), None, "{width} columns");
        }
    }
}

#[test]
fn a_rule_too_long_for_the_options_is_seen_with_the_text() {
    let rule = format!("Bash(python3 -c '{}END')", "x".repeat(900));
    let mut question = permission(&[&rule]);
    let mut all = String::new();
    for _ in 0..60 {
        let rows = shown(&mut question, 60, 14);
        all += &rows
            .iter()
            .map(|row| row.trim_start_matches("│ "))
            .collect::<String>();
        if question.is_seen() {
            break;
        }
        question.moves(KeyCode::PageDown);
    }
    assert!(question.is_seen());
    assert!(all.contains("END')"), "{all}");
}

#[test]
fn every_part_of_a_command_is_listed() {
    let step = |part: &str, what| CommandPartFinding {
        part: part.to_owned(),
        what,
        why: PermissionReason {
            text: String::new(),
            rule: None,
            firm: false,
        },
    };
    let parts = vec![
        step("ls -la", "allowed"),
        step("touch HID\u{202e}DEN", "asks"),
    ];
    let mut question = asks(
        call("Bash", json!({"command": "ls -la $(touch x)"})),
        &[],
        parts,
    );
    let text = text(&mut question);
    assert!(text.contains("It runs 2 commands:"), "{text}");
    assert!(text.contains("allowed  ls -la"), "{text}");
    assert!(text.contains("asks     touch HID\\u202eDEN"), "{text}");
}

#[test]
fn the_command_and_the_reason_stand_in_the_question() {
    let text = text(&mut permission(&[]));
    assert!(
        text.contains("npm test") && text.contains("no rule allows it"),
        "{text}"
    );
}

#[test]
fn a_long_change_leaves_room_for_the_reason_and_says_how_much_follows() {
    let content = "x\n".repeat(60);
    let write = call(
        "Write",
        json!({"file_path": "/p/a.txt", "content": content}),
    );
    let rows = shown(&mut asks(write, &[], Vec::new()), 60, 20).join("\n");
    assert!(rows.contains("no rule allows it"), "{rows}");
    assert!(rows.contains("more of 63 lines"), "{rows}");
}

#[test]
fn control_characters_of_names_labels_plans_and_settings_are_seen() {
    let mut tool = asks(
        call("mcp__s__t\u{202e}x", json!({})),
        &["mcp__s__t\u{202e}x"],
        Vec::new(),
    );
    let shown = text(&mut tool);
    assert!(shown.contains("mcp__s__t\\u202ex wants to run"), "{shown}");
    assert!(shown.contains("session: mcp__s__t\\u202ex"), "{shown}");
    let form = json!({"questions": [{"question": "Wh\u{1b}[8mich?", "options": [
        {"label": "A\u{200b}", "description": "d\u{9b}2J"}]}]});
    let mut form = QuestionDialog::new(
        1,
        call("AskUserQuestion", form),
        QuestionKind::Question,
        None,
        "",
        "",
    );
    let shown = text(&mut form);
    for wanted in ["Wh\\x1b[8mich?", "A\\u200b", "d\\x9b2J"] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    let plan = call("ExitPlanMode", json!({"plan": "do\u{1b}]0;rm\u{7}"}));
    let mut plan = QuestionDialog::new(1, plan, QuestionKind::Plan, None, "", "");
    assert!(text(&mut plan).contains("do\\x1b]0;rm\\x07"));
    let mut trust = QuestionDialog::trust(FolderSettings {
        folder: "/a\u{202e}b".to_owned(),
        settings: vec![("hooks".to_owned(), json!({"Stop": "x\u{1b}[2K\u{2066}y"}))],
        changed: false,
    });
    let shown = text(&mut trust);
    assert!(shown.contains("/a\\u202eb"), "{shown}");
    assert!(
        shown.contains("\\u2066y") && !shown.contains('\u{1b}'),
        "{shown}"
    );
}

#[test]
fn a_long_plan_and_many_settings_have_to_be_seen_to_their_end() {
    let plan = call("ExitPlanMode", json!({"plan": "step\n".repeat(100)}));
    let mut plan = QuestionDialog::new(1, plan, QuestionKind::Plan, None, "", "");
    let settings = (0..100).map(|at| (format!("hook {at}"), json!("touch x")));
    let mut trust = QuestionDialog::trust(FolderSettings {
        folder: "/a".to_owned(),
        settings: settings.collect(),
        changed: false,
    });
    for (question, letter) in [(&mut plan, '1'), (&mut trust, 'y')] {
        shown(question, 60, 20);
        assert_eq!(question.shortcut(letter), None);
        for _ in 0..100 {
            question.moves(KeyCode::PageDown);
            shown(question, 60, 20);
        }
        assert!(question.shortcut(letter).is_some());
    }
}

#[test]
fn enter_does_not_trust_a_folder() {
    let mut trust = QuestionDialog::trust(FolderSettings::default());
    text(&mut trust);
    assert_eq!(trust.choose(), Some(QuestionAnswer::No(None).into()));
    assert_eq!(choose(&mut trust, 'y'), Some(QuestionAnswer::Yes.into()));
}

#[test]
fn every_question_of_a_form_gets_its_answer() {
    let form = json!({"questions": [
        {"question": "Which?", "options": [{"label": "A", "description": ""}, {"label": "B", "description": "b"}]},
        {"question": "What?", "multiSelect": true, "options": [{"label": "C"}, {"label": "D"}]},
        {"question": "Else?", "options": [{"label": "E"}]},
    ]});
    let call = call("AskUserQuestion", form);
    let mut question = QuestionDialog::new(1, call, QuestionKind::Question, None, "", "");
    text(&mut question);
    assert_eq!(choose(&mut question, '2'), None);
    text(&mut question);
    question.mark(1);
    question.mark(0);
    assert_eq!(question.choose(), None);
    text(&mut question);
    assert_eq!(choose(&mut question, '2'), None);
    let mut press = |code| question.write(KeyEvent::new(code, KeyModifiers::NONE), 60);
    press(KeyCode::Char('x'));
    let wanted = json!({"Which?": "B", "What?": "C, D", "Else?": "x"});
    assert_eq!(
        press(KeyCode::Enter),
        Some(QuestionAnswer::Value(wanted).into())
    );
}
