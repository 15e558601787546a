//! The client of the API against a model that plays a script.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Map, Value, json};
use unspool_agent::api::client::{ApiRetryPolicy, MessagesClient, MessagesRequest, StreamItem};
use unspool_agent::api::model::ThinkingMode;
use unspool_agent::api::retry::ApiErrorKind;
use unspool_agent::stop::StopSignal;
use unspool_ask::ApiCredential;
use unspool_testkit::model::{Answer, Model, Step, call, text, thinking};

const LONG: Duration = Duration::from_secs(60);

fn client(model: &Model, retries: u32) -> MessagesClient {
    patient(model, retries, LONG)
}

fn patient(model: &Model, retries: u32, idle: Duration) -> MessagesClient {
    let patience = ApiRetryPolicy {
        retries,
        idle,
        begin: LONG,
    };
    MessagesClient::new(&model.url(), &ApiCredential::Key("k".into()), patience).unwrap()
}

fn ask(words: &str) -> MessagesRequest {
    MessagesRequest {
        model: "claude-sonnet-4-5".into(),
        most: 32_000,
        thinking: ThinkingMode::Budget(4_000),
        effort: None,
        system: vec![json!({"type": "text", "text": "be brief"})],
        tools: vec![],
        messages: json!([{"role": "user", "content": words}]).to_string(),
        more: Map::new(),
        betas: vec![],
    }
}

/// Everything that came back.
fn items(client: &MessagesClient, ask: MessagesRequest) -> Vec<StreamItem> {
    let (sender, items) = channel();
    let running = client.start(ask, move |item| drop(sender.send(item)));
    let mut all = Vec::new();
    while let Ok(item) = items.recv_timeout(LONG) {
        let over = matches!(
            item,
            StreamItem::Ended(..) | StreamItem::Cut(_) | StreamItem::Failed(_)
        );
        if !matches!(item, StreamItem::Raw(_)) {
            all.push(item);
        }
        if over {
            break;
        }
    }
    drop(running);
    all
}

fn blocks(items: &[StreamItem]) -> Vec<Value> {
    let ended = items.iter().filter_map(|item| match item {
        StreamItem::Block(block, _) => Some(block.json.clone()),
        _ => None,
    });
    ended.collect()
}

#[test]
fn an_answer_comes_back_block_by_block() {
    let said = [
        thinking("so so"),
        text("words"),
        call("t1", "Read", json!({"a": [1, "ü"]})),
    ];
    let model = Model::playing(vec![Answer::blocks(&said)]).unwrap();
    let all = items(&client(&model, 0), ask("hi"));
    assert_eq!(blocks(&all), said);
    let Some(StreamItem::Ended(message, request)) = all.last() else {
        panic!("{all:?}");
    };
    assert_eq!(message.stop.as_deref(), Some("tool_use"));
    assert_eq!(message.usage["output_tokens"], 30);
    assert_eq!(request.as_deref(), Some("req_test_0001"));
    assert_eq!(model.refusals(), [""; 0]);
}

#[test]
fn cut_at_any_byte_no_half_block_counts_and_nothing_ends_well() {
    let said = [
        thinking("so"),
        text("words"),
        call("t1", "Read", json!({"a": 1})),
    ];
    let whole = Answer::blocks(&said);
    let length = whole.len();
    let model = Model::start(move |at, _| Answer::blocks(&said).cut(at + 1)).unwrap();
    let client = client(&model, 0);
    let known = [
        thinking("so"),
        text("words"),
        call("t1", "Read", json!({"a": 1})),
    ];
    for at in 1..length - 1 {
        let all = items(&client, ask("hi"));
        let ended = blocks(&all);
        assert_eq!(ended[..], known[..ended.len()], "cut at {at}");
        match all.last() {
            Some(StreamItem::Cut(trouble)) => assert_eq!(trouble.finished, ended.len()),
            Some(StreamItem::Failed(trouble)) => {
                assert_eq!((ended.len(), trouble.finished), (0, 0), "cut at {at}");
            }
            // The last event is whole, only the empty line behind it is not.
            other => panic!("cut at {at}: {other:?}"),
        }
    }
}

#[test]
fn silence_is_noticed_and_pings_are_none() {
    let wait = |ms| Step::Wait(Duration::from_millis(ms));
    let pinging = Answer::text("late")
        .before(1, wait(1_800))
        .before(3, wait(1_800))
        .before(5, wait(1_800));
    let silent = Answer::text("never").before(1, Step::Gate("never"));
    let model = Model::playing(vec![silent, pinging]).unwrap();
    // Three pauses are longer than this, each alone is much shorter.
    let idle = Duration::from_secs(5);
    let all = items(&patient(&model, 1, idle), ask("hi"));
    assert!(
        matches!(&all[1], StreamItem::Retry { trouble, .. } if trouble.kind == ApiErrorKind::Silent),
        "{all:?}"
    );
    assert_eq!(blocks(&all), [text("late")]);
}

#[test]
fn an_error_in_the_stream_is_a_failure() {
    let failing = |blocks: &[Value]| {
        let mut events = unspool_testkit::model::events(blocks, "end_turn", 5);
        events.truncate(events.len() - 2);
        events.push(
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
        );
        Answer::events(&events)
    };
    let model = Model::playing(vec![failing(&[]), failing(&[text("kept")])]).unwrap();
    let all = items(&client(&model, 1), ask("hi"));
    assert!(all.iter().any(
        |item| matches!(item, StreamItem::Retry { trouble, .. } if trouble.status() == Some(529))
    ));
    assert!(
        matches!(all.last(), Some(StreamItem::Cut(trouble)) if trouble.finished == 1),
        "{all:?}"
    );
}

#[test]
fn too_little_room_is_asked_again_with_less() {
    let model = Model::start(|_, request| match request.body["max_tokens"].as_u64() {
        Some(32_000) => Answer::fails(
            "400 Bad Request",
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again",
        ),
        _ => Answer::text("fits"),
    })
    .unwrap();
    let all = items(&client(&model, 0), ask("hi"));
    assert_eq!(blocks(&all), [text("fits")]);
    let second = &model.requests()[1].body;
    assert_eq!(second["max_tokens"], 9_000);
    assert!(second["thinking"]["budget_tokens"].as_u64().unwrap() < 9_000);
}

#[test]
fn dropping_a_request_ends_it() {
    let model = Model::playing(vec![Answer::text("x").before(3, Step::Gate("never"))]).unwrap();
    let (sender, items) = channel();
    let running = client(&model, 0).start(ask("hi"), move |item| drop(sender.send(item)));
    assert!(model.reached("never", LONG));
    drop(running);
    // The gate was never opened, and still nobody is left who could say something.
    let over = loop {
        match items.recv_timeout(LONG) {
            Ok(_) => {}
            Err(over) => break over,
        }
    };
    assert_eq!(over, RecvTimeoutError::Disconnected);
}

#[test]
fn whoever_waits_for_all_of_it_can_be_stopped() {
    let model = Model::playing(vec![Answer::text("x").before(3, Step::Gate("never"))]).unwrap();
    let client = client(&model, 0);
    let stop = StopSignal::new();
    let other = stop.clone();
    let waiting = std::thread::spawn(move || client.collect(ask("hi"), &other));
    assert!(model.reached("never", LONG));
    stop.tell();
    assert!(waiting.join().unwrap().is_err());
}
