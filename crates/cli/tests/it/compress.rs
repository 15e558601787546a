//! `clone --compress`, with an API that judges every request as the real one does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unspool_testkit::api::Request;
use unspool_testkit::home::Home;
use unspool_testkit::model::{Answer, Model, Step};

use crate::{ID, home};

const LONG: Duration = Duration::from_secs(60);
/// How many turns the session has; the reply of turn N begins with `rN`.
const TURNS: usize = 5;

/// A session with long replies, in which stands what requests must carry unharmed.
fn machine() -> (Home, PathBuf) {
    let home = home();
    let odd = "\"quotes\" \\ back, ünï, 日本, 👩‍👩‍👧, <tag>, `=====`, {\"text\": \"no answer\"} ";
    let turn = |n: usize| {
        let words = "word ".repeat(60);
        let talk = format!("you: p{n}\nclaude: r{n} {odd}{words}\n");
        talk + "claude: short [Bash ls]\nresult: Bash ls a\nclaude: short\n"
    };
    let script: String = (1..=TURNS).map(turn).collect();
    let file = home.session("/home/dev/work", ID, &script);
    (home, file)
}

/// A whole message of the API that says a text was written shorter.
fn shorter(which: &str) -> Answer {
    let text = json!({"text": format!("short-{which}")}).to_string();
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
        "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 2},
    });
    Answer {
        steps: vec![Step::Send(message.to_string())],
        ..Answer::default()
    }
}

/// Which reply a request is about.
fn about(request: &Request) -> String {
    let text = request.body["messages"][0]["content"].as_str();
    let lines = text.unwrap_or_default().lines();
    let found = lines.filter_map(|line| line.split(' ').next());
    let mut found = found.filter(|word| word.starts_with('r') && word.len() == 2);
    found.next().unwrap_or("?").to_owned()
}

/// How often each reply was asked about.
fn asked(model: &Model) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for request in model.requests() {
        *all.entry(about(&request)).or_default() += 1;
    }
    all
}

fn clone(home: &Home, model: &Model) -> std::process::Command {
    let mut command = home.command();
    command
        .env("ANTHROPIC_API_KEY", "test-key")
        .env("ANTHROPIC_BASE_URL", model.url())
        .args(["clone", ID, "--compress", "0-100:35", "--yes", "--json"]);
    command
}

#[cfg(unix)]
#[test]
fn what_was_typed_before_the_question_does_not_answer_it() {
    let (home, _) = machine();
    let model = Model::start(|_, request| shorter(&about(request))).unwrap();
    let plain = clone(&home, &model);
    // A shell takes the first line; the second waits in the terminal until somebody asks.
    let mut command = home.command();
    let program = plain.get_program().to_owned();
    let mut shell = std::process::Command::new("/bin/sh");
    for (name, value) in plain.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    shell.current_dir(plain.get_current_dir().unwrap());
    let words = plain.get_args().filter(|word| *word != "--yes");
    shell
        .args(["-c", "read first; exec \"$@\"", "sh"])
        .arg(program)
        .args(words);
    let mut terminal = crate::tty::Terminal::of(&shell, 24, 100);
    terminal.press("first\ny\n");
    terminal.shows("Continue? [y/N]");
    terminal.press("n\n");
    terminal.shows("cancelled");
    assert_ne!(terminal.ends(), 0);
    assert!(model.requests().is_empty());
    // Who says yes after the question is heard.
    command.args(["clone", ID, "--compress", "0-100:35"]);
    command
        .env("ANTHROPIC_API_KEY", "test-key")
        .env("ANTHROPIC_BASE_URL", model.url());
    let mut terminal = crate::tty::Terminal::of(&command, 24, 100);
    terminal.shows("Continue? [y/N]");
    terminal.press("y\n");
    assert_eq!(terminal.ends(), 0);
    assert!(!model.requests().is_empty());
}

fn made(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The first words of all long replies of a session.
fn replies(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let said = lines.filter_map(|line: Value| {
        let own = line["type"] == "assistant";
        let text = line["message"]["content"][0]["text"].as_str()?.to_owned();
        own.then(|| text.split(' ').next().map(str::to_owned))?
    });
    said.filter(|word| word != "short").collect()
}

fn all_shorter() -> Vec<String> {
    (1..=TURNS).map(|n| format!("short-r{n}")).collect()
}

#[test]
fn every_request_is_one_that_the_api_accepts_and_whoever_stumbles_is_asked_again() {
    let (home, file) = machine();
    let before = std::fs::read(&file).unwrap();
    let seen = Mutex::new(BTreeMap::<String, usize>::new());
    let model = Model::start(move |_, request| {
        let which = about(request);
        let mut seen = seen.lock().unwrap();
        let times = seen.entry(which.clone()).or_default();
        *times += 1;
        match (which.as_str(), *times) {
            ("r1", 1) => Answer::fails("429 Too Many Requests", "rate_limit_error", "slowly")
                .header("retry-after-ms", "1"),
            ("r2", 1) => Answer::fails("529 Overloaded", "overloaded_error", "later"),
            ("r3", 1) => shorter("r3").cut(40),
            // Not what was asked for; said again, it is.
            ("r4", 1) => Answer {
                steps: vec![Step::Send(
                    "{\"type\":\"message\",\"content\":[]}".to_owned(),
                )],
                ..Answer::default()
            },
            _ => shorter(&which),
        }
    })
    .unwrap();
    let row = made(&clone(&home, &model).output().unwrap());
    assert_eq!(model.refusals(), Vec::<String>::new());
    let times = [("r1", 2), ("r2", 2), ("r3", 2), ("r4", 2), ("r5", 1)];
    let times = times.map(|(which, times)| (which.to_owned(), times));
    assert_eq!(asked(&model), BTreeMap::from(times));
    let result = Path::new(row["path"].as_str().unwrap());
    assert_eq!(replies(result), all_shorter());
    assert_eq!(
        std::fs::read(&file).unwrap(),
        before,
        "the source is as it was"
    );
}

#[test]
fn a_text_that_cannot_be_had_stays_and_a_key_that_is_refused_makes_nothing() {
    let (home, file) = machine();
    let model = Model::start(|_, request| match about(request).as_str() {
        "r2" => Answer::fails("413 Too Large", "request_too_large", "too much"),
        which => shorter(which),
    })
    .unwrap();
    let output = clone(&home, &model).output().unwrap();
    let row = made(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("1 of 5 texts were not shortened"), "{said}");
    let mut wanted = all_shorter();
    wanted[1] = "r2".to_owned();
    assert_eq!(replies(Path::new(row["path"].as_str().unwrap())), wanted);
    assert_eq!(model.refusals(), Vec::<String>::new());

    let (home, other) = machine();
    let model = Model::start(|_, _| {
        Answer::fails(
            "401 Unauthorized",
            "authentication_error",
            "invalid x-api-key",
        )
    })
    .unwrap();
    let output = clone(&home, &model).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("ANTHROPIC_API_KEY"),
        "{said}"
    );
    let files = std::fs::read_dir(other.parent().unwrap()).unwrap();
    assert_eq!(files.count(), 1, "nothing was made");
    assert!(file.exists());
}

#[cfg(unix)]
#[test]
fn what_was_killed_goes_on_with_what_is_missing() {
    let (home, _) = machine();
    let model = Model::start(|_, request| {
        let which = about(request);
        let mut answer = shorter(&which);
        if !["r1", "r2"].contains(&which.as_str()) {
            answer.steps.insert(0, Step::Gate("rest"));
        }
        answer
    })
    .unwrap();
    let mut command = clone(&home, &model);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    assert!(model.asked(TURNS, LONG), "all are asked at once");
    let end = Instant::now() + LONG;
    while kept(&home.unspool_dir()) < 2 {
        assert!(Instant::now() < end, "answers are kept as they come");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    model.open("rest");
    let output = clone(&home, &model).output().unwrap();
    let row = made(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("2 cached"), "{said}");
    assert_eq!(
        replies(Path::new(row["path"].as_str().unwrap())),
        all_shorter()
    );
    let times = asked(&model);
    assert_eq!((times["r1"], times["r2"], times["r3"]), (1, 1, 2));
    assert_eq!(model.refusals(), Vec::<String>::new());
}

/// How many answers are kept below a folder.
#[cfg(unix)]
fn kept(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let count = |path: PathBuf| match path.is_dir() {
        true => kept(&path),
        false => {
            let inside = path
                .parent()
                .is_some_and(|above| above.ends_with("compress"));
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let whole = name.len() == 32 && name.chars().all(|c| c.is_ascii_hexdigit());
            usize::from(inside && whole)
        }
    };
    entries.map(|entry| count(entry.path())).sum()
}
