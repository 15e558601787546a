//! The list: groups, searching, what is done to a session.

use expect_test::expect;
use unspool_live::LiveChangeKind;
use unspool_show::wire::hit::HitRow;
use unspool_show::wire::session::SessionJson;

use super::{Browser, row};
use crate::message::{AppEffect, AppMessage, TrimRequest};

fn machine(columns: u16, rows: u16) -> Browser {
    let mut browser = Browser::new(columns, rows);
    let rows = vec![
        row(
            "aaaa1111-0000",
            "/home/dev/webshop",
            "Fix the flaky checkout test",
            "idle",
            "2026-01-05T09:00:00.000Z",
        ),
        row(
            "bbbb2222-0000",
            "/home/dev/webshop",
            "Rename the cart module",
            "working",
            "2026-01-05T11:59:30.000Z",
        ),
        row(
            "cccc3333-0000",
            "/home/dev/api",
            "日本語のタイトルを直す",
            "waiting_for_approval",
            "2026-01-05T11:50:00.000Z",
        ),
        row(
            "dddd4444-0000",
            "/home/dev/api",
            "Explain \u{1b}[31mthe\u{1b}[0m queue",
            "waiting_for_input",
            "2026-01-05T11:40:00.000Z",
        ),
    ];
    browser.message(AppMessage::Rows {
        rows,
        scanned: true,
    });
    browser
}

fn hit(session: &str, line: u64, snippet: &str) -> HitRow {
    HitRow {
        session: session.to_owned(),
        path: format!("/p/{session}.jsonl"),
        line,
        uuid: None,
        r#where: "result".to_owned(),
        at: Some("2026-01-05T09:00:00.000Z".to_owned()),
        snippet: snippet.to_owned(),
        matches: 1,
        agent: None,
        project: "/home/dev/webshop".to_owned(),
        score: None,
        title: None,
    }
}

#[test]
fn sessions_stand_in_groups_by_what_they_need() {
    let mut browser = machine(80, 12);
    expect![[r#"
        ❯ type to search              1 needs you · 1 working · 1 your turn · 4 sessions
        needs you  1 ───────────────────────────────────────────────────────────────────
         !  10m  api          日本語のタイトルを直す       84.1k 42%    $1.25  needs you
        working  1 ─────────────────────────────────────────────────────────────────────
         ●  now  webshop      Rename the cart module       84.1k 42%    $1.25  working
        your turn  1 ───────────────────────────────────────────────────────────────────
         ◆  20m  api          Explain the queue            84.1k 42%    $1.25  your turn
        idle  1 ────────────────────────────────────────────────────────────────────────
         ·   3h  webshop      Fix the flaky checkout t…    84.1k 42%    $1.25  idle


        Enter open  ^R resume  ^T trim  ^E export  ^Y copy  q quit  ? help
    "#]]
    .assert_eq(&browser.screen());
}

#[test]
fn a_wide_screen_shows_what_is_chosen() {
    let mut browser = machine(130, 22);
    browser.press("<down>");
    expect![[r#"
        ❯ type to search                                                                1 needs you · 1 working · 1 your turn · 4 sessions
        needs you  1 ──────────────────────────────────────────────────────────────── │ Rename the cart module
         !  10m  api          日本語のタイトルを直す    84.1k 42%    $1.25  needs you │ /home/dev/webshop
        working  1 ────────────────────────────────────────────────────────────────── │ main · claude-opus-5 · 3 turns · 12 calls · $1.25
         ●  now  webshop      Rename the cart module    84.1k 42%    $1.25  working   │ ██████▊········· 84.1k 42%
        your turn  1 ──────────────────────────────────────────────────────────────── │
         ◆  20m  api          Explain the queue         84.1k 42%    $1.25  your turn │ ● working for 30.0s, says the transcript
        idle  1 ───────────────────────────────────────────────────────────────────── │
         ·   3h  webshop      Fix the flaky checkou…    84.1k 42%    $1.25  idle      │ first prompt
                                                                                      │ Rename the cart module
                                                                                      │
                                                                                      │ last reply
                                                                                      │ All done.
                                                                                      │
                                                                                      │ bbbb2222-0000
                                                                                      │
                                                                                      │
                                                                                      │
                                                                                      │
                                                                                      │
                                                                                      │
        Enter open  ^R resume  ^T trim  ^E export  ^Y copy  q quit  ? help
    "#]].assert_eq(&browser.screen());
    browser.press("<tab>");
    assert!(!browser.screen().contains("says the"));
}

#[test]
fn a_tag_stands_behind_the_title_and_is_searched() {
    let mut browser = Browser::new(80, 12);
    let tagged = |id: &str, title: &str, tag: Option<&str>| {
        let row = row(
            id,
            "/home/dev/api",
            title,
            "idle",
            "2026-01-05T09:00:00.000Z",
        );
        let tag = tag.map(str::to_owned);
        std::sync::Arc::new(SessionJson {
            tag,
            ..(*row).clone()
        })
    };
    browser.message(AppMessage::Rows {
        rows: vec![
            tagged("aaaa1111-0000", "One", Some("re\u{1b}[31mlease")),
            tagged("bbbb2222-0000", "Two", None),
        ],
        scanned: true,
    });
    let screen = browser.screen();
    assert!(
        screen.contains("One  #re") && !screen.contains('\u{1b}'),
        "{screen}"
    );
    browser.press("lease");
    let screen = browser.screen();
    assert!(
        screen.contains("One") && !screen.contains("Two"),
        "{screen}"
    );
}

#[test]
fn a_narrow_screen_leaves_out_numbers() {
    let mut browser = machine(44, 10);
    let screen = browser.screen();
    assert!(
        screen.contains("needs you") && !screen.contains('$'),
        "{screen}"
    );
    let mut browser = machine(12, 4);
    assert!(browser.screen().contains("too small"));
}

#[test]
fn typing_searches_sessions_and_everything_that_was_said() {
    let mut browser = machine(80, 12);
    browser.press("cart");
    let wanted = AppEffect::Search {
        number: 4,
        query: "cart".to_owned(),
    };
    assert_eq!(browser.done.last(), Some(&wanted));
    browser.message(AppMessage::Hits {
        number: 3,
        hits: vec![hit("aaaa1111-0000", 9, "of an older question")],
        done: Some(Ok(())),
    });
    browser.message(AppMessage::Hits {
        number: 4,
        hits: vec![hit(
            "aaaa1111-0000",
            12,
            "the long way to the shopping cart that was asked for",
        )],
        done: Some(Ok(())),
    });
    expect![[r#"
        ❯ cart▏                       1 needs you · 1 working · 1 your turn · 4 sessions
        sessions  1 ────────────────────────────────────────────────────────────────────
         ●  now  webshop      Rename the cart module       84.1k 42%    $1.25  working
        in conversations  1 ────────────────────────────────────────────────────────────
             3h  webshop      result   …to the shopping cart that was asked for






        Enter open  ↓ next  ^R resume  Esc clear
    "#]]
    .assert_eq(&browser.screen());
    // A hit opens its session at its line.
    browser.press("<down>");
    assert_eq!(browser.app.list.hit().unwrap().line, 12);
}

#[test]
fn escape_clears_the_search_and_then_leaves() {
    let mut browser = machine(80, 12);
    browser.press("zzz<esc>");
    assert!(browser.app.list.query.is_empty());
    assert!(!browser.done.contains(&AppEffect::Quit));
    browser.press("<esc>");
    assert_eq!(browser.done.last(), Some(&AppEffect::Quit));
}

#[test]
fn q_leaves_unless_a_search_is_typed() {
    let mut browser = machine(80, 12);
    browser.press("/q");
    assert_eq!(browser.app.list.query, "q");
    let mut browser = machine(80, 12);
    browser.press("q");
    assert_eq!(browser.done, [AppEffect::Quit]);
}

#[test]
fn the_choice_stays_on_its_session_while_others_move() {
    let mut browser = machine(80, 12);
    browser.press("<down><down>");
    assert_eq!(browser.app.list.chosen().unwrap().id, "dddd4444-0000");
    let changed = row(
        "aaaa1111-0000",
        "/home/dev/webshop",
        "Fix the flaky checkout test",
        "working",
        "2026-01-05T11:59:59.000Z",
    );
    browser.message(AppMessage::News(LiveChangeKind::Session {
        row: changed,
        before: Some("idle".to_owned()),
        grown: true,
    }));
    assert_eq!(browser.app.list.chosen().unwrap().id, "dddd4444-0000");
    browser.message(AppMessage::News(LiveChangeKind::Removed {
        id: "dddd4444-0000".to_owned(),
    }));
    assert_eq!(browser.app.list.len(), 3);
    assert!(!browser.screen().contains("queue"));
}

#[test]
fn a_session_is_resumed_where_it_runs() {
    let mut browser = machine(80, 12);
    browser.press("<c-r>");
    let wanted = AppEffect::Resume {
        id: "cccc3333-0000".to_owned(),
        cwd: Some("/home/dev/api".into()),
        talk: false,
    };
    assert_eq!(browser.done, [wanted]);
}

#[test]
fn a_copy_is_shown_before_it_is_made() {
    use unspool_show::wire::edit::{Amounts, EditResult};
    let mut browser = machine(80, 20);
    browser.press("<c-t>h");
    let trim = |dry_run| {
        AppEffect::Trim(TrimRequest {
            path: "/p/cccc3333-0000.jsonl".into(),
            preset: Some("heavy"),
            dry_run,
        })
    };
    assert_eq!(browser.done, [trim(true)]);
    let result = EditResult {
        title: Some("Clone: x".to_owned()),
        dry_run: true,
        session: "eeee".to_owned(),
        resume: "claude --resume eeee".to_owned(),
        tokens: Amounts {
            before: 120_000,
            after: 40_000,
        },
        ..EditResult::default()
    };
    browser.message(AppMessage::Trimmed(Ok(Box::new(result.clone()))));
    let screen = browser.screen();
    assert!(screen.contains("120.0k → 40.0k (−67 %)"), "{screen}");
    assert!(screen.contains("would create") && screen.contains("Enter create"));
    browser.press("<enter>");
    assert_eq!(browser.done.last(), Some(&trim(false)));
    let done = EditResult {
        dry_run: false,
        undo: Some(7),
        ..result
    };
    browser.message(AppMessage::Trimmed(Ok(Box::new(done))));
    let screen = browser.screen();
    assert!(screen.contains("claude --resume eeee") && screen.contains("unspool undo 7"));
    browser.press("r");
    assert!(matches!(browser.done.last(), Some(AppEffect::Resume { id, .. }) if id == "eeee"));
    browser.press("<esc>");
    assert!(browser.app.overlay.is_none());
}

#[test]
fn what_is_copied_is_chosen_from_a_menu() {
    let mut browser = machine(80, 12);
    browser.press("<c-y>r");
    let text = "claude --resume cccc3333-0000".to_owned();
    assert_eq!(browser.done, [AppEffect::Copy(text)]);
    browser.press("<c-y><down><enter>");
    let text = "claude --resume cccc3333-0000".to_owned();
    assert_eq!(browser.done.last(), Some(&AppEffect::Copy(text)));
}

#[test]
fn the_help_lists_every_key_of_the_table() {
    let mut browser = machine(120, 50);
    browser.press("?");
    let screen = browser.screen();
    for binding in crate::keys::TABLE {
        assert!(
            screen.contains(binding.words),
            "{}: {screen}",
            binding.words
        );
    }
    browser.press("x");
    assert!(browser.app.overlay.is_none() && browser.app.list.query.is_empty());
}
