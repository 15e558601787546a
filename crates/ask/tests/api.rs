//! The Messages API, as a server on this machine plays it.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use unspool_ask::{ApiCredential, AskLimits, MessagesApi, ModelQuestion, ask};
use unspool_testkit::api::{Api as Server, Reply};

/// Longer than anything takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

type Answers = Vec<Result<String, String>>;

fn question(text: &str) -> ModelQuestion {
    ModelQuestion {
        text: text.to_owned(),
        tokens: 10,
        limit: 77,
        ..ModelQuestion::default()
    }
}

/// Pauses shortly, but gives the server all the time a busy machine needs.
fn quick() -> AskLimits {
    AskLimits {
        pause: Duration::from_millis(1),
        timeouts: [LONG; 3],
        ..AskLimits::default()
    }
}

fn asked(server: &Server, access: &ApiCredential, texts: &[&str]) -> Result<Answers, String> {
    asked_with(&quick(), server, access, texts)
}

fn asked_with(
    patience: &AskLimits,
    server: &Server,
    access: &ApiCredential,
    texts: &[&str],
) -> Result<Answers, String> {
    let api = MessagesApi::new(&server.url(), access, "claude-test").unwrap();
    let questions: Vec<ModelQuestion> = texts.iter().map(|text| question(text)).collect();
    let accept = |_: usize, text: &str| Ok(text.to_owned());
    ask(&api, &questions, patience, &accept, &mut |_, _| ())
        .map(|(answers, _)| answers)
        .map_err(|stopped| format!("{} ({})", stopped.why, stopped.hint))
}

fn key() -> ApiCredential {
    ApiCredential::Key("sk-test".into())
}

/// Does one thing the first time, then says `fine`.
fn first(reply: Reply) -> Server {
    let asked = AtomicUsize::new(0);
    Server::replying(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => reply.clone(),
        _ => Reply::Text("fine".into()),
    })
    .unwrap()
}

fn fails(status: &'static str) -> Reply {
    Reply::Fails(status, Vec::new(), "because".into())
}

#[test]
fn a_question_is_one_plain_message_with_the_key_in_its_header() {
    let server = Server::start().unwrap();
    assert_eq!(
        asked(&server, &key(), &["hello"]).unwrap(),
        [Ok("pong".into())]
    );
    let requests = server.requests();
    let request = &requests[0];
    assert!(request.is_message());
    assert_eq!(
        request.body,
        serde_json::json!({"model": "claude-test", "max_tokens": 77,
            "messages": [{"role": "user", "content": "hello"}]})
    );
    assert_eq!(request.header("x-api-key"), Some("sk-test"));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(request.header("authorization"), None);
    let agent = request.header("user-agent").unwrap();
    assert!(agent.starts_with("unspool/"), "{agent}");
    asked(&server, &ApiCredential::Token("tok".into()), &["hello"]).unwrap();
    let last = server.requests().pop().unwrap();
    assert_eq!(last.header("authorization"), Some("Bearer tok"));
    assert_eq!(last.header("x-api-key"), None);
}

#[test]
fn what_passes_is_tried_again() {
    for reply in [
        fails("429 Too Many Requests"),
        fails("500 Internal Server Error"),
        fails("529 Overloaded"),
        Reply::HangsUp,
    ] {
        let what = format!("{reply:?}");
        let server = first(reply);
        let answers = asked(&server, &key(), &["x"]).unwrap();
        assert_eq!(answers, [Ok("fine".into())], "{what}");
        assert_eq!(server.requests().len(), 2, "{what}");
    }
}

#[test]
fn what_takes_too_long_is_tried_again() {
    let server = first(Reply::Late(Duration::from_secs(2), "late".into()));
    let mut patience = quick();
    patience.timeouts[0] = Duration::from_millis(400);
    let answers = asked_with(&patience, &server, &key(), &["x"]).unwrap();
    assert_eq!(answers, [Ok("fine".into())]);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn the_pause_that_the_api_asks_for_is_kept() {
    for (name, value) in [("retry-after", "1"), ("retry-after-ms", "900")] {
        let headers = vec![(name, value.to_owned())];
        let server = first(Reply::Fails("429 Too Many", headers, "slow".into()));
        let began = Instant::now();
        assert_eq!(asked(&server, &key(), &["x"]).unwrap(), [Ok("fine".into())]);
        assert!(began.elapsed() >= Duration::from_millis(900), "{name}");
    }
}

#[test]
fn after_four_attempts_the_reason_is_told() {
    let server = Server::replying(|_| fails("503 Service Unavailable")).unwrap();
    let answers = asked(&server, &key(), &["x"]).unwrap();
    assert_eq!(answers, [Err("the API answered 503: because".into())]);
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn what_will_not_pass_ends_everything_and_names_the_variable() {
    for (status, words) in [
        (
            "401 Unauthorized",
            "rejected ANTHROPIC_API_KEY (401): because",
        ),
        ("400 Bad Request", "rejected the request (400): because"),
        ("404 Not Found", "does not know `claude-test`"),
        ("302 Found", "ANTHROPIC_BASE_URL"),
    ] {
        let server = Server::replying(move |_| fails(status)).unwrap();
        let why = asked(&server, &key(), &["x"]).unwrap_err();
        assert!(why.contains(words), "{why}");
        assert!(!why.contains("sk-test"), "{why}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_text_that_is_too_large_fails_alone() {
    let server =
        Server::replying(
            |request| match request.body["messages"][0]["content"].as_str() {
                Some("large") => fails("413 Too Large"),
                other => Reply::Text(other.unwrap_or_default().to_owned()),
            },
        )
        .unwrap();
    let answers = asked(&server, &key(), &["a", "large", "b"]).unwrap();
    assert_eq!(answers[0], Ok("a".into()));
    assert!(answers[1].is_err());
    assert_eq!(answers[2], Ok("b".into()));
}

#[test]
fn a_server_that_is_not_there_is_said_to_be_so() {
    let api = MessagesApi::new("http://127.0.0.1:9", &key(), "m").unwrap();
    let accept = |_: usize, text: &str| Ok(text.to_owned());
    let (answers, _) = ask(&api, &[question("x")], &quick(), &accept, &mut |_, _| ()).unwrap();
    let why = answers[0].as_ref().unwrap_err();
    assert!(why.to_lowercase().contains("connect"), "{why}");
}
