//! A session: turns, folds, sub-agents, searching, following.

use std::io::Write;

use expect_test::expect;
use ratatui::crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use unspool_testkit::script;

use super::Browser;
use crate::loader_protocol::PART;
use crate::message::{AppEffect, AppMessage};

const ID: &str = "5e551000-0000-4000-8000-000000000001";

const SMALL: &str = "
    you:    fix it
    think:  where is it
    claude: looking [Read a.rs] [Task look]
    result: Read a.rs fn main() {}
    result: Task look found
    claude: now [Edit a.rs]
    result: Edit a.rs broken!
    claude: done, **really**
    you:    thanks
    claude: welcome
    you:    日本語で説明してください
    claude: はい、これは日本語の説明です
    ";

fn session(columns: u16, rows: u16) -> Browser {
    let mut browser = Browser::new(columns, rows);
    browser.open(ID, SMALL);
    browser
}

fn long(turns: usize) -> String {
    let turn = |n: usize| format!("you: question {n}\nclaude: answer {n}\\nsecond line {n}\n");
    (1..=turns).map(turn).collect()
}

#[test]
fn a_session_opens_at_its_end_with_the_last_turn_unfolded() {
    let mut browser = session(80, 16);
    expect![[r#"
        x fix it                                                                1.0k  0%
          ▸  1 fix it                                           2026-01-05 10:00 · 7.0s
               Read Task Edit ✗1 ● done, really
          ▸  2 thanks                                                      10:00 · 1.0s
               ● welcome

          ▾  3 ─────────────────────────────────────────────────────────── 10:00 · 1.0s
          ❯ 日本語で説明してください

        ▌ ● はい、これは日本語の説明です





        ? help  Esc back  J turn  Enter open  Tab fold  / find  r re… following 3/3 100%
    "#]]
    .assert_eq(&browser.screen());
}

#[test]
fn an_unfolded_turn_shows_calls_failures_and_markdown() {
    let mut browser = session(80, 26);
    browser.press("g<tab>");
    expect![[r#"
        x fix it                                                                1.0k  0%
        ▌ ▾  1 Read Task Edit ✗1 ────────────────────────────── 2026-01-05 10:00 · 7.0s
          ❯ fix it

            ✻ thought for 11 characters

          ● looking

            read       a.rs                                              1 line    1.0s
            sent agent general-purpose “look”                                      2.0s
                       │ found

          ● now

          ✗ edited     a.rs                                              failed    1.0s
                       │ broken

          ● done, really

          ▸  2 thanks                                                      10:00 · 1.0s
               ● welcome

          ▾  3 ─────────────────────────────────────────────────────────── 10:00 · 1.0s
          ❯ 日本語で説明してください

        ? help  Esc back  J turn  Enter open  Tab fold  / find  r resume  t to… 1/3   0%
    "#]]
    .assert_eq(&browser.screen());
}

#[test]
fn tools_are_shown_not_at_all_in_short_and_in_full() {
    let mut browser = session(80, 40);
    browser.press("g<tab>");
    assert!(browser.screen().contains("read"));
    browser.press("t");
    assert!(browser.screen().contains("fn main()"));
    browser.press("t");
    let none = browser.screen();
    assert!(!none.contains("a.rs") && none.contains("looking"), "{none}");
    browser.press("t");
    assert!(browser.screen().contains("a.rs"));
}

#[test]
fn thinking_is_shown_on_demand() {
    let mut browser = session(80, 40);
    browser.press("g<tab>");
    assert!(!browser.screen().contains("where is it"));
    browser.press("T");
    assert!(browser.screen().contains("where is it"));
}

#[test]
fn blocks_turns_and_prompts_are_walked() {
    let mut browser = session(80, 30);
    let turn = |browser: &Browser| {
        browser
            .app
            .session
            .as_ref()
            .unwrap()
            .level()
            .unwrap()
            .cursor
    };
    browser.press("g");
    assert_eq!((turn(&browser).turn, turn(&browser).unit), (0, 0));
    browser.press("J");
    assert_eq!(turn(&browser).turn, 1);
    browser.press("j");
    assert_eq!(turn(&browser).turn, 2);
    browser.press("j");
    assert_eq!((turn(&browser).turn, turn(&browser).unit), (2, 1));
    browser.press("K");
    assert_eq!((turn(&browser).turn, turn(&browser).unit), (2, 0));
    browser.press("[");
    assert_eq!(turn(&browser).turn, 1);
    browser.press("]");
    assert_eq!(turn(&browser).turn, 2);
    browser.press("k");
    assert_eq!(turn(&browser).turn, 1);
}

#[test]
fn all_turns_fold_and_unfold_at_once() {
    let mut browser = session(80, 40);
    browser.press("a");
    let screen = browser.screen();
    assert_eq!(screen.matches('▾').count(), 3, "{screen}");
    browser.press("a");
    let screen = browser.screen();
    assert_eq!(screen.matches('▸').count(), 3, "{screen}");
}

#[test]
fn enter_shows_a_call_whole_and_short_again() {
    let mut browser = session(80, 40);
    browser.press("g<tab>jjjj");
    assert!(!browser.screen().contains("fn main()"));
    browser.press("<enter>");
    assert!(
        browser.screen().contains("fn main()"),
        "{}",
        browser.screen()
    );
    browser.press("<enter>");
    assert!(!browser.screen().contains("fn main()"));
}

#[test]
fn enter_goes_into_a_sub_agent_and_escape_comes_back() {
    let mut browser = Browser::new(80, 30);
    browser.write_agent(
        ID,
        "a0000001",
        "toolu_0002",
        "you: look around\nclaude: found the culprit",
    );
    browser.open(ID, SMALL);
    browser.press("g<tab>");
    for _ in 0..20 {
        browser.press("j");
        let session = browser.app.session.as_ref().unwrap();
        let level = session.level().unwrap();
        if level.block().is_some_and(|block| block.agent.is_some()) {
            break;
        }
    }
    browser.press("<enter>");
    let screen = browser.screen();
    assert!(screen.contains("› look"), "{screen}");
    assert!(screen.contains("found the culprit"), "{screen}");
    browser.press("<esc>");
    let screen = browser.screen();
    assert!(
        screen.contains("looking") && !screen.contains("culprit"),
        "{screen}"
    );
    browser.press("<esc>");
    assert!(browser.app.session.is_none());
}

#[test]
fn what_is_looked_for_is_opened_and_stepped_through() {
    let mut browser = session(80, 30);
    browser.press("g/main()<enter>");
    let screen = browser.screen();
    assert!(screen.contains("fn main()"), "{screen}");
    assert!(screen.contains("1 of 1"), "{screen}");
    browser.press("/e<enter>");
    let first = browser.app.session.as_ref().unwrap().find.at;
    browser.press("n");
    let find = &browser.app.session.as_ref().unwrap().find;
    assert!(find.hits.len() > 2);
    assert_eq!(find.at, first.map(|at| at + 1));
    browser.press("N");
    assert_eq!(browser.app.session.as_ref().unwrap().find.at, first);
    browser.press("/nowhere to be found<enter>");
    assert!(browser.screen().contains("no matches"));
}

#[test]
fn the_end_is_followed_until_somebody_scrolls_up() {
    let mut browser = Browser::new(60, 12);
    let path = browser.open(ID, &long(30));
    let grow = |n: usize| {
        let all = script::jsonl(&format!("(cwd=/home/dev/x, session={ID})\n{}", long(n)));
        let was = std::fs::metadata(&path).unwrap().len() as usize;
        let mut file = std::fs::File::options().append(true).open(&path).unwrap();
        file.write_all(&all[was..]).unwrap();
    };
    assert!(browser.screen().contains("answer 30"));
    grow(31);
    browser.message(AppMessage::Tick(browser.app.now));
    let screen = browser.screen();
    assert!(
        screen.contains("answer 31") && screen.contains("following"),
        "{screen}"
    );
    browser.press("<pgup>");
    let before = browser.screen();
    assert!(!before.contains("following"));
    grow(32);
    browser.message(AppMessage::Tick(browser.app.now));
    let lines = |screen: &str| {
        screen
            .lines()
            .skip(1)
            .take(10)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let after = browser.screen();
    assert_eq!(lines(&before), lines(&after));
    browser.press("G");
    let screen = browser.screen();
    assert!(
        screen.contains("answer 32") && screen.contains("following"),
        "{screen}"
    );
}

#[test]
fn every_row_is_passed_once_on_the_way_down_and_up() {
    let mut browser = Browser::new(60, 14);
    browser.open(ID, &long(40));
    browser.press("ag");
    let mut seen = Vec::new();
    for _ in 0..400 {
        let screen = browser.screen();
        let lines = screen.lines().filter(|line| line.contains("answer "));
        for line in lines {
            let line = line.trim_matches(['▌', ' ', '●']).to_owned();
            if !seen.contains(&line) {
                seen.push(line);
            }
        }
        browser.press("<c-e>");
        let level = browser.app.session.as_ref().unwrap().level().unwrap();
        if level.follow {
            break;
        }
    }
    let wanted: Vec<String> = (1..=40).map(|n| format!("answer {n}")).collect();
    assert_eq!(seen, wanted);
    browser.press("g");
    assert!(browser.screen().contains("question 1"));
}

#[test]
fn a_turn_of_thousands_of_lines_is_laid_out_in_parts() {
    let calls: String = (0..PART * 5)
        .map(|n| format!("claude: step {n} [Bash {n}]\nresult: Bash {n} out {n}\n"))
        .collect();
    let mut browser = Browser::new(80, 24);
    browser.open(ID, &format!("you: go\n{calls}claude: the end"));
    assert!(browser.screen().contains("the end"));
    let level = browser.app.session.as_ref().unwrap().level().unwrap();
    let parts = level.turns[0].parts;
    assert!(parts > 8);
    let laid = (0..parts)
        .filter(|&part| level.page(0, part).is_some())
        .count();
    assert!(laid <= 4, "{laid} of {parts} parts");
    browser.press("g<pgdn><pgdn>");
    assert!(browser.screen().contains("step "));
}

#[test]
fn sides_stand_beside_on_wide_screens_and_in_front_on_narrow_ones() {
    let mut browser = session(130, 24);
    browser.press("f");
    let screen = browser.screen();
    assert!(
        screen.contains("files") && screen.contains("a.rs") && screen.contains("説明"),
        "{screen}"
    );
    browser.press("u");
    assert!(browser.screen().contains("cache read"));
    browser.press("c");
    assert!(browser.screen().contains("tokens"));
    browser.press("c");
    assert!(browser.app.session.as_ref().unwrap().side.is_none());
    let mut browser = session(80, 24);
    browser.press("u");
    let screen = browser.screen();
    assert!(
        screen.contains("cache read") && !screen.contains("説明"),
        "{screen}"
    );
    browser.press("<esc>");
    assert!(browser.screen().contains("説明"));
}

#[test]
fn the_line_of_the_file_can_be_seen_and_a_block_copied() {
    let mut browser = session(80, 30);
    browser.press("o");
    let screen = browser.screen();
    assert!(
        screen.contains(" of the file") && screen.contains("\"assistant\""),
        "{screen}"
    );
    browser.press("<esc>yb");
    let text = "はい、これは日本語の説明です".to_owned();
    assert_eq!(browser.done.last(), Some(&AppEffect::Copy(text)));
}

#[test]
fn exports_go_to_the_desk() {
    let mut browser = session(80, 30);
    browser.press("em");
    assert!(
        matches!(
            browser.done.last(),
            Some(AppEffect::Export { format: "md", .. })
        ),
        "{:?}",
        browser.done
    );
    browser.message(AppMessage::Exported(Ok("/tmp/x.md".into())));
    assert!(browser.screen().contains("wrote /tmp/x.md"));
    browser.message(AppMessage::Exported(Err("no room".into())));
    assert!(browser.screen().contains("no room"));
}

#[test]
fn the_mouse_points_opens_and_scrolls() {
    let mut browser = session(80, 30);
    let mouse = |kind, row| {
        AppMessage::Mouse(MouseEvent {
            kind,
            column: 5,
            row,
            modifiers: KeyModifiers::NONE,
        })
    };
    let click = MouseEventKind::Down(MouseButton::Left);
    browser.press("g");
    browser.message(mouse(click, 3));
    let cursor = |browser: &Browser| {
        browser
            .app
            .session
            .as_ref()
            .unwrap()
            .level()
            .unwrap()
            .cursor
    };
    assert_eq!(cursor(&browser).turn, 1);
    assert_eq!(browser.screen().matches('▾').count(), 1);
    browser.message(mouse(click, 3));
    assert!(
        browser.screen().contains("● welcome"),
        "{}",
        browser.screen()
    );
    browser.message(mouse(MouseEventKind::ScrollDown, 3));
    browser.message(mouse(MouseEventKind::ScrollUp, 3));
}

#[test]
fn a_file_that_is_gone_says_so() {
    let mut browser = Browser::new(80, 10);
    let path = browser.write(ID, "you: hi");
    std::fs::remove_file(&path).unwrap();
    let effects = crate::update::open(&mut browser.app, path, ID.to_owned());
    browser.act(effects);
    browser.wait();
    assert!(
        browser.screen().contains("cannot read the session"),
        "{}",
        browser.screen()
    );
}

#[test]
fn a_narrow_screen_and_wide_letters_stay_within_the_lines() {
    for columns in [20, 31, 40, 57, 80] {
        let mut browser = session(columns, 24);
        browser.press("a");
        let screen = browser.screen();
        for line in screen.lines() {
            let width = unicode_width::UnicodeWidthStr::width(line);
            assert!(width <= usize::from(columns), "{columns}: {line:?}");
        }
        assert!(screen.contains("日本"), "{screen}");
    }
}

#[test]
fn a_hit_deep_in_a_long_result_is_brought_into_view() {
    let lines: String = (0..300).map(|n| format!("line {n}\\n")).collect();
    let mut browser = Browser::new(80, 24);
    browser.open(
        ID,
        &format!("you: go\nclaude: [Bash x]\nresult: Bash x {lines}needle here\nclaude: end\nyou: b\nclaude: c"),
    );
    browser.press("g/needle<enter>");
    let screen = browser.screen();
    assert!(screen.contains("needle here"), "{screen}");
}

#[test]
fn long_lines_go_on_behind_their_bar() {
    let words = "word ".repeat(60);
    let mut browser = Browser::new(60, 24);
    browser.open(
        ID,
        &format!("you: go\nclaude: [Bash x]\nresult: Bash x {words}"),
    );
    browser.press("t");
    let screen = browser.screen();
    let rows = screen.lines().filter(|line| line.contains("word"));
    assert!(rows.clone().count() > 4, "{screen}");
    assert!(rows.clone().all(|row| row.contains('│')), "{screen}");
}
