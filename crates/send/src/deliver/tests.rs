use std::collections::VecDeque;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use unspool_model::log::Log;
use unspool_model::price::Prices;
use unspool_model::session::{Session, TranscriptRole};
use unspool_testkit::script;

use super::*;
use crate::otlp::{OtlpLimits, OtlpPacker, OtlpResource};
use crate::receiver::LostSpans;
use crate::spans::{SessionTurnTraces, TraceFacts, TraceInput, TraceOptions};

/// A receiver that keeps the spans it takes and judges each request by a script.
struct Scripted<F> {
    judge: F,
    kept: Mutex<Vec<Vec<u8>>>,
}

impl<F: Fn(usize, &[Vec<u8>]) -> ReceiverAnswer + Sync> TraceReceiver for Scripted<F> {
    fn post(&self, body: &[u8]) -> (ReceiverAnswer, u64) {
        let request = ExportTraceServiceRequest::decode(body).unwrap();
        let lists = request.resource_spans.iter().flat_map(|it| &it.scope_spans);
        let ids: Vec<Vec<u8>> = lists
            .flat_map(|list| &list.spans)
            .map(|span| span.span_id.clone())
            .collect();
        let mut kept = self.kept.lock().unwrap();
        let answer = (self.judge)(kept.len(), &ids);
        if matches!(answer, ReceiverAnswer::Taken(_)) {
            kept.extend(ids);
        }
        (answer, body.len() as u64)
    }
}

fn scripted<F: Fn(usize, &[Vec<u8>]) -> ReceiverAnswer + Sync>(judge: F) -> Scripted<F> {
    Scripted {
        judge,
        kept: Mutex::default(),
    }
}

fn quick() -> RetryLimits {
    RetryLimits {
        long: Duration::from_millis(400),
        pause: Duration::from_millis(2),
        longest: Duration::from_millis(20),
    }
}

/// A request with a good dozen of spans.
fn batch() -> OtlpRequest {
    let text =
        script::jsonl(&"you: go\nclaude: yes [Read a]\nresult: Read a b\nclaude: done\n".repeat(5));
    let log = Log::new(text);
    let session = Session::from_log(&log, TranscriptRole::Main);
    let (facts, prices) = (TraceFacts::default(), Prices::bundled());
    let material = TraceInput {
        session: &session,
        source: &log,
        agents: Vec::new(),
        runs: &[],
        prices,
    };
    let traces = SessionTurnTraces::new(material, &facts, TraceOptions::default());
    let mut packer = OtlpPacker::new(OtlpLimits::default(), &OtlpResource::default());
    for trace in traces.iter() {
        let full = &mut |_| Err("one request is enough");
        packer.add(&traces, &trace, full).unwrap();
    }
    packer.finish().unwrap()
}

fn ids(batch: &OtlpRequest) -> Vec<Vec<u8>> {
    batch
        .spans()
        .iter()
        .map(|(_, span)| span.0.to_vec())
        .collect()
}

fn later(after: Option<Duration>) -> ReceiverAnswer {
    ReceiverAnswer::Later {
        why: "busy".into(),
        after,
    }
}

#[test]
fn what_fails_for_a_while_is_sent_until_it_is_taken() {
    let batch = batch();
    assert!(batch.spans().len() > 12, "{}", batch.spans().len());
    let answers = Mutex::new(VecDeque::from([later(None), later(None), later(None)]));
    let receiver = scripted(|_, _| {
        let next = answers.lock().unwrap().pop_front();
        next.unwrap_or(ReceiverAnswer::Taken(None))
    });
    let courier = TraceDelivery::new(&receiver, quick());
    let all = ids(&batch);
    assert_eq!(courier.deliver(batch), Ok(vec![]));
    assert_eq!(*receiver.kept.lock().unwrap(), all);
    assert_eq!(courier.counts().1, 4);
}

#[test]
fn a_receiver_that_is_down_is_given_up_and_everybody_stops() {
    let receiver = scripted(|_, _| later(None));
    let courier = TraceDelivery::new(&receiver, quick());
    let stopped = courier.deliver(batch()).unwrap_err();
    assert_eq!(stopped.why, "busy");
    assert!(stopped.hint.contains("nothing is lost"), "{}", stopped.hint);
    let tried = courier.counts().1;
    assert!(tried > 3, "{tried}");
    assert_eq!(courier.deliver(batch()).unwrap_err(), stopped);
    assert_eq!(courier.counts().1, tried);
}

#[test]
fn a_pause_that_is_asked_for_is_kept() {
    let answers = Mutex::new(VecDeque::from([later(Some(Duration::from_millis(120)))]));
    let receiver = scripted(|_, _| {
        let next = answers.lock().unwrap().pop_front();
        next.unwrap_or(ReceiverAnswer::Taken(None))
    });
    let began = Instant::now();
    TraceDelivery::new(&receiver, quick())
        .deliver(batch())
        .unwrap();
    assert!(began.elapsed() >= Duration::from_millis(120));
}

#[test]
fn one_that_asks_for_more_patience_than_there_is_is_not_waited_for() {
    let receiver = scripted(|_, _| later(Some(Duration::from_secs(3_600))));
    let began = Instant::now();
    let stopped = TraceDelivery::new(&receiver, quick())
        .deliver(batch())
        .unwrap_err();
    assert!(stopped.hint.contains("3600 s"), "{}", stopped.hint);
    assert!(began.elapsed() < Duration::from_secs(600));
}

#[test]
fn what_is_too_large_goes_in_pieces_and_in_order() {
    let receiver = scripted(|_, ids: &[Vec<u8>]| match ids.len() {
        0..=3 => ReceiverAnswer::Taken(None),
        _ => ReceiverAnswer::TooLarge("413".into()),
    });
    let batch = batch();
    let all = ids(&batch);
    assert_eq!(
        TraceDelivery::new(&receiver, quick()).deliver(batch),
        Ok(vec![])
    );
    assert_eq!(*receiver.kept.lock().unwrap(), all);
}

#[test]
fn a_span_that_is_refused_is_found_and_the_rest_goes_on() {
    let batch = batch();
    let all = ids(&batch);
    for bad in [0, 5, all.len() - 1] {
        let receiver = scripted(|_, ids: &[Vec<u8>]| match ids.contains(&all[bad]) {
            true => ReceiverAnswer::Refused("bad span".into()),
            false => ReceiverAnswer::Taken(None),
        });
        let courier = TraceDelivery::new(&receiver, quick());
        let rejected = courier.deliver(batch.clone()).unwrap();
        assert_eq!(rejected.len(), 1);
        assert_eq!(rejected[0].spans, [batch.spans()[bad]]);
        let mut rest = all.clone();
        rest.remove(bad);
        assert_eq!(*receiver.kept.lock().unwrap(), rest);
        let tries = courier.counts().1;
        assert!(tries < 12, "{tries} requests to find one of {}", all.len());
    }
}

#[test]
fn many_bad_spans_are_the_spans_if_a_request_without_any_is_taken() {
    let receiver = scripted(|_, ids: &[Vec<u8>]| match ids.is_empty() {
        true => ReceiverAnswer::Taken(None),
        false => ReceiverAnswer::Refused("no".into()),
    });
    let batch = batch();
    let rejected = TraceDelivery::new(&receiver, quick())
        .deliver(batch.clone())
        .unwrap();
    assert_eq!(rejected.len(), batch.spans().len());
}

#[test]
fn a_receiver_that_takes_nothing_at_all_is_given_up_soon() {
    let receiver = scripted(|_, _| ReceiverAnswer::Refused("no".into()));
    let courier = TraceDelivery::new(&receiver, quick());
    let stopped = courier.deliver(batch()).unwrap_err();
    assert!(
        stopped.why.contains("rejects everything"),
        "{}",
        stopped.why
    );
    assert!(courier.counts().1 < 20);
}

#[test]
fn a_receiver_that_takes_nothing_is_found_out_by_a_single_span() {
    let receiver = scripted(|_, _| ReceiverAnswer::Refused("no".into()));
    let (mut one, _) = batch().split().unwrap();
    while let Ok((first, _)) = one.clone().split() {
        one = first;
    }
    let stopped = TraceDelivery::new(&receiver, quick())
        .deliver(one)
        .unwrap_err();
    assert!(stopped.why.contains("rejects everything"), "{stopped:?}");
}

#[test]
fn a_bad_span_in_front_is_found_though_requests_without_any_are_refused() {
    let batch = batch();
    let bad = ids(&batch)[0].clone();
    let receiver = scripted(
        |_, ids: &[Vec<u8>]| match ids.is_empty() || ids.contains(&bad) {
            true => ReceiverAnswer::Refused("no".into()),
            false => ReceiverAnswer::Taken(None),
        },
    );
    let rejected = TraceDelivery::new(&receiver, quick()).deliver(batch.clone());
    assert_eq!(rejected.unwrap()[0].spans, [batch.spans()[0]]);
}

#[test]
fn which_spans_were_lost_is_known_if_all_were() {
    let batch = batch();
    let receiver = scripted(|_, ids: &[Vec<u8>]| {
        ReceiverAnswer::Taken(Some(LostSpans {
            spans: ids.len() as u64,
            why: "none".into(),
        }))
    });
    let courier = TraceDelivery::new(&receiver, quick());
    let rejected = courier.deliver(batch.clone()).unwrap();
    assert_eq!(rejected[0].spans, batch.spans());
}

#[test]
fn spans_lost_out_of_a_taken_request_are_told_and_not_sent_again() {
    let receiver = scripted(|_, _| {
        ReceiverAnswer::Taken(Some(LostSpans {
            spans: 2,
            why: "too old".into(),
        }))
    });
    let courier = TraceDelivery::new(&receiver, quick());
    let rejected = courier.deliver(batch()).unwrap();
    assert_eq!(
        (rejected[0].count, rejected[0].why.as_str()),
        (2, "too old")
    );
    assert_eq!(rejected[0].spans, []);
    assert_eq!(courier.counts().1, 1);
}

#[test]
fn pauses_differ_and_are_not_longer_than_said() {
    let pause = Duration::from_secs(1);
    let some: Vec<Duration> = (0..50).map(|_| shaken(pause)).collect();
    assert!(some.iter().all(|it| *it >= pause / 2 && *it <= pause));
    assert!(some.iter().any(|it| *it != some[0]));
}
