//! How single things look, one script each.

// A test may stop at the first surprise.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::transcript::transcript;
use unspool_model::view::turn_selection::TurnSelection;
use unspool_show::{ConversationStyle, ConversationWriter, ToolDetail, conversation};
use unspool_testkit::script;

fn text(bytes: Vec<u8>, style: &ConversationStyle) -> String {
    let log = Log::new(bytes);
    let session = Session::from_log(&log, TranscriptRole::Main);
    let pick = TurnSelection {
        agents: true,
        ..TurnSelection::default()
    };
    let items = transcript(&session, &log, &HashMap::new(), &pick);
    let mut out = Vec::new();
    conversation(&mut out, &items, style).unwrap();
    String::from_utf8(out).unwrap()
}

fn check(script: &str, expected: Expect) {
    let style = ConversationStyle {
        width: 60,
        ..ConversationStyle::default()
    };
    expected.assert_eq(&text(script::jsonl(script), &style));
}

/// A call and its result as a client writes them, below a prompt.
fn call(name: &str, input: Value, result: Option<(Value, bool, Value)>) -> Vec<u8> {
    let line = |value: Value| value.to_string();
    let mut lines = vec![
        line(
            json!({"type":"user","uuid":"u1","parentUuid":null,"timestamp":"2026-01-05T10:00:00.000Z","cwd":"/p","message":{"role":"user","content":"go"}}),
        ),
        line(
            json!({"type":"assistant","uuid":"a1","parentUuid":"u1","timestamp":"2026-01-05T10:00:01.000Z","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t1","name":name,"input":input}]}}),
        ),
    ];
    if let Some((content, is_error, meta)) = result {
        lines.push(line(json!({"type":"user","uuid":"r1","parentUuid":"a1","timestamp":"2026-01-05T10:00:04.200Z","toolUseResult":meta,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":content,"is_error":is_error}]}})));
    }
    lines.join("\n").into_bytes()
}

fn check_call(name: &str, input: Value, result: Option<(Value, bool, Value)>, expected: Expect) {
    let style = ConversationStyle {
        width: 60,
        ..ConversationStyle::default()
    };
    let all = text(call(name, input, result), &style);
    // The prompt stays: an expectation loses the indent that all its lines share.
    let start = all.find("❯ go").unwrap();
    expected.assert_eq(&all[start..]);
}

#[test]
fn a_conversation_reads_from_top_to_bottom() {
    check(
        "
        you:    fix it
        claude: looking [Read a.rs] [Read b.rs]
        result: Read a.rs ok
        result: Read b.rs missing!
        think:  hm
        claude: done
        ",
        expect![[r#"
            ── 1 ──────────────────────────── 2026-01-05 10:00 · 5.0s ──
            ❯ fix it

            ● looking

              read       a.rs                             1 line    1.0s
            ✗ read       b.rs                             failed    2.0s
                         │ missing
              ✻ thought for 2 characters

            ● done
        "#]],
    );
}

#[test]
fn results_stand_at_their_calls_whatever_their_order() {
    check(
        "
        you:    both
        claude: [Bash one] [Bash two]
        result: Bash two 2
        result: Bash one 1
        ",
        expect![[r#"
            ── 1 ─────────────────────────────────── 2026-01-05 10:00 ──
            ❯ both

              ran        one                                   1    2.0s
              ran        two                                   2    1.0s
        "#]],
    );
}

#[test]
fn a_subject_is_cut_only_when_it_does_not_fit() {
    let command = |length: usize| json!({"command": "x".repeat(length)});
    let ok = || Some((json!("y"), false, json!({"stdout":"y"})));
    check_call(
        "Bash",
        command(36),
        ok(),
        expect![[r#"
            ❯ go

              ran        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx  y    3.2s
        "#]],
    );
    check_call(
        "Bash",
        command(37),
        ok(),
        expect![[r#"
            ❯ go

              ran        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…  y    3.2s
        "#]],
    );
    check_call(
        "Bash",
        json!({}),
        ok(),
        expect![[r#"
            ❯ go

              ran                                              y    3.2s
        "#]],
    );
    check_call(
        "mcp__tracker__find",
        json!({"query":"q"}),
        ok(),
        expect![[r#"
            ❯ go

              tracker find q                                   y    3.2s
        "#]],
    );
    check_call(
        "Frobnicate",
        json!({"n":1}),
        ok(),
        expect![[r#"
            ❯ go

              Frobnicate                                       y    3.2s
        "#]],
    );
}

#[test]
fn failures_show_five_lines_or_four_and_a_count() {
    let output = |lines: usize| {
        let text: Vec<String> = (1..=lines).map(|n| format!("error {n}")).collect();
        Some((
            json!(format!("Exit code 1\n{}", text.join("\n"))),
            true,
            json!("Error: Exit code 1"),
        ))
    };
    check_call(
        "Bash",
        json!({"command":"make"}),
        output(5),
        expect![[r#"
            ❯ go

            ✗ ran        make                             exit 1    3.2s
                         │ error 1
                         │ error 2
                         │ error 3
                         │ error 4
                         │ error 5
        "#]],
    );
    check_call(
        "Bash",
        json!({"command":"make"}),
        output(6),
        expect![[r#"
            ❯ go

            ✗ ran        make                             exit 1    3.2s
                         │ error 1
                         │ error 2
                         │ error 3
                         │ error 4
                         │ … 2 more lines
        "#]],
    );
    check_call(
        "Bash",
        json!({"command":"make"}),
        Some((json!("   \n"), true, Value::Null)),
        expect![[r#"
            ❯ go

            ✗ ran        make                             failed    3.2s
        "#]],
    );
}

#[test]
fn a_call_without_a_result_says_so() {
    check_call(
        "Bash",
        json!({"command":"sleep 9"}),
        None,
        expect![[r#"
            ❯ go

              ran        sleep 9                   no result yet
        "#]],
    );
    check(
        "
        you:    go
        claude: [Bash sleep 9]
        you:    and now?
        ",
        expect![[r#"
            ── 1 ──────────────────────────── 2026-01-05 10:00 · 1.0s ──
            ❯ go

            ✗ ran        sleep 9                       no result

            ── 2 ────────────────────────────────────────────── 10:00 ──
            ❯ and now?
        "#]],
    );
}

#[test]
fn a_result_beats_progress_and_progress_beats_nothing() {
    let progress = |n: u32, output: &str| {
        let line = json!({"type":"progress","uuid":format!("p{n}"),"parentUuid":"a1","parentToolUseID":"t1","data":{"type":"bash_progress","output":output,"fullOutput":output}});
        format!("\n{line}").into_bytes()
    };
    let mut running = call("Bash", json!({"command":"make"}), None);
    running.extend(progress(1, "10%"));
    running.extend(progress(2, "20%\nlinking"));
    let style = ConversationStyle {
        width: 60,
        ..ConversationStyle::default()
    };
    let shown = text(running, &style);
    assert!(
        shown.contains("no result yet") && shown.contains("│ linking"),
        "{shown}"
    );
    let mut done = call(
        "Bash",
        json!({"command":"make"}),
        Some((json!("built"), false, json!({"stdout":"built"}))),
    );
    done.extend(progress(3, "late"));
    let shown = text(done, &style);
    assert!(
        shown.contains("built") && !shown.contains("late"),
        "{shown}"
    );
}

#[test]
fn a_result_without_its_call_is_shown() {
    let line = json!({"type":"user","uuid":"r","parentUuid":null,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"gone","content":"text of it"}]}});
    let shown = text(line.to_string().into_bytes(), &ConversationStyle::default());
    expect![[r#"
        shown:
          ? a result without its call
            │ text of it
    "#]]
    .assert_eq(&format!("shown:\n{shown}"));
}

#[test]
fn edits_are_shown_as_changes() {
    let input = json!({"file_path":"/p/src/a.rs","old_string":"let a = 1;\nlet b = 2;","new_string":"let a = 1;\nlet b = 3;\nlet c = 4;"});
    check_call(
        "Edit",
        input.clone(),
        Some((json!("ok"), false, Value::Null)),
        expect![[r#"
            ❯ go

              edited     src/a.rs                          +2 −1    3.2s
                         │   let a = 1;
                         │ - let b = 2;
                         │ + let b = 3;
                         │ + let c = 4;
        "#]],
    );
    let patch = json!({"structuredPatch":[{"oldStart":40,"newStart":40,"lines":[" fn f() {","-    a","+    b"," }"]}]});
    check_call(
        "Edit",
        input.clone(),
        Some((json!("ok"), false, patch)),
        expect![[r#"
            ❯ go

              edited     src/a.rs                          +1 −1    3.2s
                         │ 40   fn f() {
                         │ 41 -     a
                         │ 41 +     b
                         │ 42   }
        "#]],
    );
    check_call(
        "Edit",
        input,
        Some((
            json!("<tool_use_error>String to replace not found in file.</tool_use_error>"),
            true,
            json!("Error: x"),
        )),
        expect![[r#"
            ❯ go

            ✗ edited     src/a.rs                         failed    3.2s
                         │ String to replace not found in file.
        "#]],
    );
}

#[test]
fn questions_show_options_and_answers() {
    let input = json!({"questions":[
        {"question":"Which database?","header":"DB","options":[{"label":"SQLite"},{"label":"Postgres"}]},
        {"question":"Anything else?"}]});
    check_call(
        "AskUserQuestion",
        input.clone(),
        None,
        expect![[r#"
            ❯ go

              asked                                no result yet
                         │ Which database?
                         │ SQLite · Postgres
                         │ (no answer)
                         │ Anything else?
                         │ (no answer)
        "#]],
    );
    let answers = json!({"answers":{"Which database?":"SQLite","Anything else?":"no"}});
    check_call(
        "AskUserQuestion",
        input.clone(),
        Some((json!("ok"), false, answers)),
        expect![[r#"
            ❯ go

              asked                                     answered    3.2s
                         │ Which database?
                         │ SQLite · Postgres
                         │ ✓ SQLite
                         │ Anything else?
                         │ ✓ no
        "#]],
    );
    check_call(
        "AskUserQuestion",
        json!({"questions":[]}),
        None,
        expect![[r#"
            ❯ go

              asked                                no result yet
        "#]],
    );
}

#[test]
fn agents_in_the_same_file_nest_below_their_call() {
    check(
        "
        you: look around
        (name=top) claude: sending [Task Find auth code]
        (isSidechain=true,parent=null,name=side) you: Find auth code
        (isSidechain=true,parent=side) claude: in `src/auth.rs` [Bash ls]
        (parent=top) result: Task Find auth code found
        claude: there it is
        ",
        expect![[r#"
            ── 1 ──────────────────────────── 2026-01-05 10:00 · 5.0s ──
            ❯ look around

            ● sending

              sent agent general-purpose “Find auth cod…  1 call    3.0s
                │ ❯ Find auth code
                │
                │ ● in `src/auth.rs`
                │
                │   ran        ls                  no result yet
                └

            ● there it is
        "#]],
    );
}

#[test]
fn compactions_interruptions_and_commands_have_their_own_marks() {
    check(
        "
        you:       start
        claude:    working
        interrupt:
        compact:   30000 -> 5000
        command:   /model opus
        stdout:    Set model to opus
        shell:     ls
        queued:    and the tests too
        error:     529 overloaded
        hook:      PostToolUse:Edit format failed
        ",
        expect![[r#"
            ── 1 ──────────────────────────── 2026-01-05 10:00 · 2.0s ──
            ❯ start

            ● working

              ■ interrupted

            ── compacted 30.0k → 5.0k (auto) ──
            ── 2 ─────────────────────────────────────── 10:00 · 1.0s ──
            ❯ /model opus
                │ Set model to opus

            ── 3 ─────────────────────────────────────── 10:00 · 2.0s ──
            ❯ ! ls

            ❯ and the tests too
              typed while the model was working

            ✗ API error: 529 overloaded
              · 1 note: hook success
        "#]],
    );
}

#[test]
fn a_file_without_a_conversation_shows_nothing() {
    assert_eq!(text(Vec::new(), &ConversationStyle::default()), "");
    let line = json!({"type":"summary","summary":"A title","leafUuid":"x"}).to_string();
    assert_eq!(text(line.into_bytes(), &ConversationStyle::default()), "");
}

#[test]
fn nothing_from_a_transcript_reaches_the_terminal_unclean() {
    let evil = "\u{1b}]52;c;aGk=\u{7}\u{1b}[2J\u{9b}31mA\u{202e}B\u{8}\r\n\u{1b}P0\u{1b}\\\u{0}";
    let bytes = |text: &str| {
        let line = |value: Value| value.to_string() + "\n";
        let mut all = String::new();
        all += &line(
            json!({"type":"user","uuid":"u1","parentUuid":null,"cwd":text,"permissionMode":text,"message":{"role":"user","content":text.to_owned() + "x"}}),
        );
        all += &line(
            json!({"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"id":"m1","role":"assistant","model":text,"content":[
            {"type":"thinking","thinking":text},{"type":"text","text":format!("# {text}\n\n`{text}`\n\n```{text}\n{text}\n```\n\n|{text}|\n|--|\n|{text}|\n\n[{text}](http://{text})")},
            {"type":"tool_use","id":"t1","name":text,"input":{text:text,"query":text}},
            {"type":"tool_use","id":"t2","name":"Edit","input":{"file_path":text,"old_string":text,"new_string":"b"}},
            {"type":"tool_use","id":"t3","name":"Task","input":{"description":text,"subagent_type":text,"prompt":text}},
            {"type":"tool_use","id":"t4","name":"AskUserQuestion","input":{"questions":[{"question":text,"options":[{"label":text}]}]}},
            {"type":"tool_use","id":"t5","name":"TodoWrite","input":{"todos":[{"content":text}]}},
            {"type":text}]}}),
        );
        for (n, is_error) in [(1, true), (2, false), (3, false), (5, false)] {
            all += &line(
                json!({"type":"user","uuid":format!("r{n}"),"parentUuid":"a1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":format!("t{n}"),"content":text,"is_error":is_error}]}}),
            );
        }
        all += &line(json!({"type":text,"uuid":"x","parentUuid":"a1"}));
        all += &line(
            json!({"type":"system","subtype":"api_error","uuid":"e","parentUuid":"a1","error":{"message":text}}),
        );
        all += &line(
            json!({"type":"system","subtype":"local_command","uuid":"l","parentUuid":"a1","content":format!("<command-name>{text}</command-name>")}),
        );
        all += &line(
            json!({"type":"system","subtype":"local_command","uuid":"o","parentUuid":"l","content":format!("<local-command-stdout>{text}</local-command-stdout>")}),
        );
        all += &line(
            json!({"type":"attachment","uuid":"h","parentUuid":"a1","attachment":{"type":"hook_blocking_error","hookName":text,"blockingError":{"blockingError":text,"command":text}}}),
        );
        all.into_bytes()
    };
    for tools in [ToolDetail::Short, ToolDetail::Full] {
        let style = ConversationStyle {
            color: true,
            thinking: true,
            tools,
            ..ConversationStyle::default()
        };
        let shown = text(bytes(evil), &style);
        let mut rest = shown.as_str();
        while let Some((_, behind)) = rest.split_once('\u{1b}') {
            let ours = behind.strip_prefix('[').and_then(|body| {
                let end = body.find(|c: char| !c.is_ascii_digit() && c != ';')?;
                body[end..].starts_with('m').then_some(&body[end..])
            });
            rest = ours.unwrap_or_else(|| panic!("not ours: {behind:?}"));
        }
        let stray = shown
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\u{1b}'));
        assert_eq!(stray, None);
        assert!(!shown.contains(['\u{202e}', '\u{9b}']));
    }
}

#[test]
fn strange_sessions_are_shown_at_any_width_without_harm() {
    for seed in 0..300 {
        let bytes = unspool_testkit::graph::session(seed)
            .join("\n")
            .into_bytes();
        let width = 20 + (seed as usize * 7) % 140;
        for tools in [ToolDetail::None, ToolDetail::Short, ToolDetail::Full] {
            let style = ConversationStyle {
                width,
                tools,
                thinking: true,
                ..ConversationStyle::default()
            };
            let shown = text(bytes.clone(), &style);
            let stray = shown.chars().find(|c| c.is_control() && *c != '\n');
            assert_eq!(stray, None, "seed {seed}");
        }
    }
}

#[test]
fn a_heading_says_what_follows() {
    let style = ConversationStyle {
        width: 40,
        ..ConversationStyle::default()
    };
    let mut conversation = unspool_show::ConversationWriter::new(&style);
    let mut out = Vec::new();
    let facts = [
        "~/src/site".to_owned(),
        String::new(),
        "12 turns".to_owned(),
    ];
    conversation
        .heading(&mut out, "Fix the login bug", &facts)
        .unwrap();
    expect![[r#"
        Fix the login bug
        ~/src/site · 12 turns
    "#]]
    .assert_eq(&String::from_utf8(out).unwrap());
}

#[test]
fn the_lines_for_a_screen_are_those_that_are_written() {
    let script = "
        you:    fix it
        think:  where
        claude: looking [Read a.rs] [Bash ls]
        result: Read a.rs fn main() {}
        result: Bash ls broken!
        claude: **done**
        you:    thanks
        claude: welcome
        ";
    let style = ConversationStyle {
        width: 60,
        ..ConversationStyle::default()
    };
    let log = Log::new(script::jsonl(script));
    let session = Session::from_log(&log, TranscriptRole::Main);
    let items = transcript(&session, &log, &HashMap::new(), &TurnSelection::default());
    let lines = ConversationWriter::new(&style).lines(&items, |_| &style);
    let shown: Vec<String> = lines
        .iter()
        .map(|(_, line)| line.text().trim_end().to_owned())
        .collect();
    let written = text(script::jsonl(script), &style);
    assert_eq!(shown, written.lines().collect::<Vec<_>>());
    // Each line knows what it belongs to, in order.
    assert!(lines.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    assert_eq!(lines.last().unwrap().0, items.len() - 1);
    // One item may be told in another style than the rest.
    let loud = ConversationStyle {
        tools: ToolDetail::Full,
        ..style.clone()
    };
    let open = ConversationWriter::new(&style).lines(&items, |at| match at {
        4 => &loud,
        _ => &style,
    });
    let text: String = open.iter().map(|(_, line)| line.text() + "\n").collect();
    assert_eq!(text.matches("├ result").count(), 1, "{text}");
}
