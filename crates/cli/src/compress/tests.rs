//! Compressing whole sessions, with a real shell and a real server.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::tz::TimeZone;
use unspool_ask::{ApiCredential, AskLimits};
use unspool_model::edit::{EditPlan, LineRewriter, PlanSettings};
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::client_profile::ClientProfile;
use unspool_testkit::api::{Api, Reply};
use unspool_testkit::script;

use super::{CompressOptions, CompressProvider, CompressReport, rules, run, summary};
use crate::app_dirs::AppDirs;
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;
use crate::ui::{ColorChoice, TerminalUi};

fn world(dir: &Path) -> CommandContext {
    CommandContext {
        ui: TerminalUi::new(false, true, false, ColorChoice::Never, TimeZone::UTC),
        own: AppDirs {
            config: dir.into(),
            data: dir.into(),
            cache: dir.into(),
            runtime: dir.into(),
        },
        dirs: Vec::new(),
        home: None,
        named: false,
        here: None,
        profile: ClientProfile::Strict,
        reveal: false,
        demo: None,
    }
}

/// Six turns with long replies.
fn log() -> Log {
    let turn = |n: u32| format!("you: p{n}\nclaude: r{n} {}\n", "word ".repeat(60));
    Log::new(script::jsonl(&(1..=6).map(turn).collect::<String>()))
}

fn options(who: CompressProvider) -> CompressOptions {
    CompressOptions {
        bands: rules::parse_ranges(&["0-50:35"]).unwrap(),
        include_user: false,
        who,
        yes: true,
        dry_run: false,
        patience: AskLimits {
            pause: Duration::from_millis(1),
            timeouts: [Duration::from_secs(10); 3],
            ..AskLimits::default()
        },
    }
}

fn command(line: &str) -> CompressOptions {
    options(CompressProvider::Command(line.into()))
}

fn model(api: &Api) -> CompressOptions {
    options(CompressProvider::Model {
        name: "claude-haiku-4-5".into(),
        base: api.url(),
        access: Some(ApiCredential::Key("k".into())),
    })
}

/// What was reported, and the first word of each reply.
fn compressed(
    dir: &Path,
    options: &CompressOptions,
) -> Result<(CompressReport, Vec<String>), CommandFailure> {
    let log = log();
    let session = Session::from_log(&log, TranscriptRole::Main);
    let mut plan = EditPlan::new(&session);
    let report = run(&world(dir), &session, &log, &mut plan, options)?;
    plan.repair_references(&session, PlanSettings::default());
    let mut pen = LineRewriter::new(&session, &plan, None);
    let mut out = Vec::new();
    log.lines().for_each(|line| pen.line(&line, &mut out));
    let lines = String::from_utf8(out).unwrap();
    let said = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = value["message"]["content"][0]["text"].as_str()?.to_owned();
        text.split(' ').next().map(str::to_owned)
    };
    Ok((report, lines.lines().filter_map(said).collect()))
}

/// Says which reply is asked about.
fn about(request: &unspool_testkit::api::Request) -> String {
    let text = request.body["messages"][0]["content"].as_str().unwrap();
    let at = text.find("\n=====\nr").unwrap();
    text[at + 7..at + 9].to_owned()
}

fn failed<T: std::fmt::Debug>(result: Result<T, CommandFailure>) -> String {
    match result {
        Err(CommandFailure::Failed(told)) => {
            format!("{} ({})", told.message, told.hint.unwrap_or_default())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_command_shortens_the_older_half() {
    let dir = tempfile::tempdir().unwrap();
    let line = r#"grep -o '^r[0-9]' | sed 's/.*/{"text":"short-&"}/'"#;
    let (report, replies) = compressed(dir.path(), &command(line)).unwrap();
    let expected = ["short-r1", "short-r2", "short-r3", "r4", "r5", "r6"];
    assert_eq!(replies, expected);
    assert_eq!((report.texts, report.shortened, report.failed), (3, 3, 0));
    assert_eq!(report.after, 6);
    assert!(report.before > 200);
    // What it prints is the text, also where that ends like an answer of a model.
    let line = r#"head -c 2; echo ' {"text":"no"}'"#;
    let (_, replies) = compressed(dir.path(), &command(line)).unwrap();
    assert_eq!(replies[0], "r1");
    let (report, replies) = compressed(dir.path(), &command("head -c 2 | tr r s")).unwrap();
    assert_eq!(replies[..4], ["s1", "s2", "s3", "r4"]);
    assert_eq!((report.shortened, report.failed), (3, 0));
}

#[test]
fn what_fails_leaves_the_text_as_it_was_and_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    for (line, why) in [
        ("echo sorry >&2; exit 1", "exited with 1: sorry"),
        ("cat > /dev/null", "empty"),
        ("cat", "not shorter"),
        (
            "printf '{\"text\":\"'; yes long | head -c 2000 | tr -d '\\n'; echo '\"}'",
            "not shorter",
        ),
    ] {
        let (report, replies) = compressed(dir.path(), &command(line)).unwrap();
        assert_eq!(replies, ["r1", "r2", "r3", "r4", "r5", "r6"], "{line}");
        assert_eq!((report.shortened, report.failed), (0, 3), "{line}");
        assert!(report.why.clone().unwrap().contains(why), "{report:?}");
    }
}

#[test]
fn the_api_is_asked_and_one_that_stumbles_is_asked_again() {
    let stumbled = AtomicUsize::new(0);
    let api = Api::replying(move |request| {
        let which = about(request);
        if which == "r2" && stumbled.fetch_add(1, Ordering::SeqCst) == 0 {
            return Reply::Fails("529 Overloaded", Vec::new(), "later".into());
        }
        // The first is the last to be answered.
        let wait = if which == "r1" { 150 } else { 0 };
        let text = format!("{{\"text\": \"short-{which}\"}}");
        Reply::Late(Duration::from_millis(wait), text)
    })
    .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (report, replies) = compressed(dir.path(), &model(&api)).unwrap();
    let expected = ["short-r1", "short-r2", "short-r3", "r4", "r5", "r6"];
    assert_eq!(replies, expected);
    assert_eq!((report.shortened, report.failed), (3, 0));
    assert_eq!((report.spent.input, report.spent.output), (30, 3));
    assert_eq!(api.requests().len(), 4);
}

#[test]
fn what_was_broken_off_goes_on_with_what_is_missing() {
    let asked = AtomicUsize::new(0);
    let api = Api::replying(move |request| {
        let which = about(request);
        // The key expires after two answers.
        match asked.fetch_add(1, Ordering::SeqCst) {
            2 => Reply::Fails("401 Unauthorized", Vec::new(), "expired".into()),
            _ => Reply::Text(format!("{{\"text\": \"short-{which}\"}}")),
        }
    })
    .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut options = model(&api);
    options.patience.at_once = 1;
    let why = failed(compressed(dir.path(), &options));
    assert!(why.contains("ANTHROPIC_API_KEY (401): expired"), "{why}");
    assert_eq!(api.requests().len(), 3);
    let (report, replies) = compressed(dir.path(), &options).unwrap();
    assert_eq!(replies[..3], ["short-r1", "short-r2", "short-r3"]);
    assert_eq!((report.shortened, report.kept), (3, 2));
    assert_eq!(api.requests().len(), 4);
    let (report, _) = compressed(dir.path(), &options).unwrap();
    assert_eq!((report.kept, api.requests().len()), (3, 4));
}

#[test]
fn a_dry_run_asks_nobody() {
    let api = Api::start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut options = model(&api);
    options.dry_run = true;
    options.yes = false;
    let (report, replies) = compressed(dir.path(), &options).unwrap();
    // What stands for the answers is as long as they should be.
    assert_eq!((report.texts, report.guessed), (3, 3));
    assert!(report.after * 2 < report.before, "{report:?}");
    assert_eq!(replies[0], "r1");
    assert_eq!(api.requests().len(), 0);
}

#[test]
fn without_a_person_who_agrees_nothing_is_sent_to_the_api() {
    let api = Api::start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut options = model(&api);
    options.yes = false;
    let why = failed(compressed(dir.path(), &options));
    assert!(why.contains("--yes"), "{why}");
    assert_eq!(api.requests().len(), 0);
}

#[test]
fn without_a_key_the_variables_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let who = CompressProvider::Model {
        name: "m".into(),
        base: "http://127.0.0.1:9".into(),
        access: None,
    };
    let why = failed(compressed(dir.path(), &options(who)));
    assert!(why.contains("ANTHROPIC_API_KEY"), "{why}");
    assert!(why.contains("--with"), "{why}");
}

#[test]
fn a_summary_is_asked_for_once() {
    let dir = tempfile::tempdir().unwrap();
    let count = dir.path().join("count");
    let line = format!(
        "echo x >> {}; grep -c 'Assistant: r' | sed 's/.*/{{\"text\":\"& replies\"}}/'",
        count.display()
    );
    let log = log();
    let session = Session::from_log(&log, TranscriptRole::Main);
    let plan = EditPlan::new(&session);
    for _ in 0..2 {
        let text = summary(
            &world(dir.path()),
            &session,
            &log,
            &plan,
            session.turns[4].record,
            &command(&line),
        );
        assert_eq!(text.unwrap(), "4 replies");
    }
    assert_eq!(std::fs::read_to_string(count).unwrap(), "x\n");
    let first = session.turns[0].record;
    let none = summary(
        &world(dir.path()),
        &session,
        &log,
        &plan,
        first,
        &command("cat"),
    );
    assert!(failed(none).contains("nothing to summarize"));
}

#[test]
fn an_estimate_counts_tokens_and_knows_the_price() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path());
    let log = log();
    let session = Session::from_log(&log, TranscriptRole::Main);
    let plan = EditPlan::new(&session);
    let tasks = rules::tasks(
        &session,
        &log,
        &plan,
        &rules::parse_ranges(&["0-50:10"]).unwrap(),
        false,
    );
    let requests: Vec<String> = tasks.iter().map(rules::request).collect();
    let estimate = super::CompressEstimate::of(tasks.iter().zip(&requests));
    let usage = estimate.usage();
    assert_eq!(usage.output, 3 * (8 + 10));
    let expected = (usage.input as f64 + 5.0 * usage.output as f64) / 1e6;
    let who = |name: &str| CompressProvider::Model {
        name: name.into(),
        base: String::new(),
        access: None,
    };
    let price = estimate.price(&world, &who("claude-haiku-4-5")).unwrap();
    assert!((price - expected).abs() < 1e-9, "{price} {expected}");
    let words = estimate.words(&world, &who("claude-haiku-4-5"));
    assert!(words.ends_with(", less than $0.01"), "{words}");
    assert_eq!(estimate.price(&world, &who("nobody")), None);
    let words = estimate.words(&world, &who("nobody"));
    assert!(words.contains("unknown price"), "{words}");
}
