//! The same turn has the same ids, wherever and whenever it is told.

use unspool_send::spans::{TraceSpanKind, TurnTrace};
use unspool_send::trace_id::{SpanId, TraceId};
use unspool_testkit::{corpus, script};

use crate::tell::{Told, span};

const TALK: &str = "you: fix it
     claude: looking [Read a.rs]
     result: Read a.rs ok
     claude: done";

fn ids(trace: &TurnTrace) -> Vec<SpanId> {
    trace.spans.iter().map(|span| span.id).collect()
}

#[test]
fn ids_are_hashes_of_what_the_transcript_names() {
    let trace = Told::script(TALK).only();
    assert_eq!(trace.id, TraceId::of("msg_0001"));
    assert_eq!(trace.spans[1].id, SpanId::of("msg_0001"));
    assert_eq!(span(&trace, "Read").id, SpanId::of("toolu_0001"));
    assert_eq!(trace.prompt, Some(script::uuid(1)));
}

#[test]
fn calls_that_a_service_counts_anew_in_every_session_differ_and_copies_of_them_do_not() {
    let counted = |message: &str| {
        let text = script::lines(TALK)
            .join("\n")
            .replace("toolu_0001", "Read:0");
        let trace = Told::bytes(text.replace("msg_0001", message)).only();
        assert_eq!(span(&trace, "Read").origin.as_deref(), Some("Read:0"));
        span(&trace, "Read").id
    };
    assert_ne!(counted("msg_a"), counted("msg_b"));
    assert_eq!(counted("msg_a"), counted("msg_a"));
}

#[test]
fn a_turn_keeps_its_first_id_for_whoever_asks_for_it() {
    let answered = Told::script(TALK);
    let asked = Told::script("you: fix it\nyou: two\nclaude: 2");
    let first = &asked.all()[0];
    let trace = answered.only();
    assert_eq!(trace.unanswered, Some(first.id));
    let kept = answered.traces().turn_unanswered(1).unwrap();
    assert_eq!((kept.id, kept.unanswered), (first.id, None));
    assert_eq!(kept.spans[0].id, first.spans[0].id, "the root too");
    assert_eq!(ids(&kept)[1..], ids(&trace)[1..]);
    assert_eq!(first.unanswered, None);
}

#[test]
fn a_turn_without_a_reply_goes_by_the_uuid_of_its_prompt() {
    let trace = &Told::script("you: one\nyou: two\nclaude: 2").all()[0];
    assert_eq!(trace.id, TraceId::of(&script::uuid(1)));
}

#[test]
fn turns_that_name_nothing_still_differ() {
    let told = Told::lines(&[
        r#"{"type":"user","content":"one"}"#,
        r#"{"message":{"role":"assistant","content":"1"}}"#,
        r#"{"type":"user","content":"two"}"#,
        r#"{"message":{"role":"assistant","content":"2"}}"#,
    ]);
    let all = told.all();
    assert_eq!(all.len(), 2);
    assert_ne!(all[0].id, all[1].id);
    assert_ne!(all[0].spans[1].id, all[1].spans[1].id);
    assert_eq!(all[0].spans.len(), 2);
}

#[test]
fn another_session_id_changes_no_id_and_no_digest() {
    let told = Told::script(TALK);
    let copy = Told::script(&format!("(session=other,forkedFrom=x)\n{TALK}"));
    assert_eq!(told.only().id, copy.only().id);
    assert_eq!(ids(&told.only()), ids(&copy.only()));
    assert_eq!(told.only().digest, copy.only().digest);
}

#[test]
fn a_turn_that_grew_has_the_same_ids_and_another_digest() {
    let lines = script::lines(TALK);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut last: Option<TurnTrace> = None;
    for end in 2..=lines.len() {
        let trace = Told::lines(&lines[..end]).only();
        if let Some(last) = last {
            assert_eq!(trace.id, last.id);
            assert_eq!(ids(&trace)[..last.spans.len()], ids(&last));
            assert_ne!(trace.digest, last.digest, "{end}");
        }
        last = Some(trace);
    }
}

#[test]
fn turns_that_follow_change_nothing() {
    let one = Told::script(TALK).only();
    let two = Told::script(&format!("{TALK}\nyou: more\nclaude: sure"))
        .all()
        .remove(0);
    assert_eq!((one.id, one.digest), (two.id, two.digest));
}

#[test]
fn a_longer_result_is_another_digest() {
    let one = Told::script(TALK).only();
    let two = Told::script(&TALK.replace("a.rs ok", "a.rs ok, and more")).only();
    assert_eq!(one.id, two.id);
    assert_ne!(one.digest, two.digest);
}

#[test]
fn a_fork_does_not_make_a_second_trace_of_the_turns_it_repeats() {
    let mut repeated = 0;
    let mut known: std::collections::HashMap<TraceId, (String, Vec<SpanId>)> = Default::default();
    for file in corpus::files() {
        let fork = file.scenario == "s10_resume_fork" && file.role == corpus::Role::Main;
        if !fork || !file.path.to_string_lossy().contains("testkit") {
            continue;
        }
        let told = Told::bytes(file.bytes());
        let traces = told.traces();
        for trace in traces.iter() {
            let reply = traces.read(&trace.spans[0].output);
            let reply = reply.object().unwrap_or_default().into_owned();
            let now = (reply, ids(&trace));
            match known.get(&trace.id) {
                Some(before) => {
                    repeated += 1;
                    assert_eq!(*before, now, "{}", file.name());
                }
                None => drop(known.insert(trace.id, now)),
            }
        }
    }
    assert!(repeated >= 5, "{repeated}");
}

#[test]
fn no_two_spans_of_all_recordings_share_an_id_unless_they_are_the_same() {
    let mut known: std::collections::HashMap<SpanId, (TraceSpanKind, Option<String>)> =
        Default::default();
    for file in corpus::files() {
        if file.role != corpus::Role::Main {
            continue;
        }
        for trace in Told::bytes(file.bytes()).all() {
            for span in trace.spans {
                let now = (span.kind, span.origin);
                let before = known.entry(span.id).or_insert_with(|| now.clone());
                assert_eq!(*before, now, "{}", file.name());
            }
        }
    }
}
