//! What the API refuses: found by `check` where a client would send it, mended by `repair`, and
//! sent otherwise by our own rules, all by one list. The judge of the testkit, which shares no code
//! with it, says what is refused.

use unspool_model::edit::repair::RepairedSession;
use unspool_model::log::{Log, TranscriptSource};
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::check;
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ResumeResult};
use unspool_testkit::validator;

const SAID: &str = r#"{"type":"text","text":"yo"}"#;
const SIGNED: &str = r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#;
const UNSIGNED: &str = r#"{"type":"thinking","thinking":"hm","signature":""}"#;
const CALL: &str = r#"{"type":"tool_use","id":"t1","name":"Read","input":{}}"#;
const RESULT: &str = r#"{"type":"tool_result","tool_use_id":"t1","content":"x"}"#;

/// A prompt, a reply in as many lines as given, what follows it, and a reply of `model`.
fn session(prompt: &str, reply: &[&str], follows: &str, model: &str) -> Log {
    let mut lines = vec![("user", String::new(), prompt.to_owned())];
    for blocks in reply {
        lines.push(("assistant", "m1".to_owned(), format!("[{blocks}]")));
    }
    lines.push(("user", String::new(), follows.to_owned()));
    lines.push(("assistant", "m2".to_owned(), format!("[{SAID}]")));
    let mut text = String::new();
    for (at, (kind, message, content)) in lines.iter().enumerate() {
        let parent = match at {
            0 => "null".to_owned(),
            _ => format!("\"u{}\"", at - 1),
        };
        let about = match *kind {
            "user" => "\"role\":\"user\"".to_owned(),
            _ => format!("\"role\":\"assistant\",\"id\":\"{message}\",\"model\":\"{model}\""),
        };
        text += &format!(
            "{{\"parentUuid\":{parent},\"sessionId\":\"s\",\"version\":\"2.1.325\",\"type\":\"{kind}\",\
             \"uuid\":\"u{at}\",\"timestamp\":\"2026-01-05T08:00:0{at}.000Z\",\
             \"message\":{{{about},\"content\":{content}}}}}\n"
        );
    }
    Log::new(text)
}

fn sent(session: &Session, source: &dyn TranscriptSource, profile: ClientProfile) -> String {
    match messages::messages(session, source, profile) {
        ResumeResult::Messages(all) => messages::to_json(&all),
        other => panic!("{other:?}"),
    }
}

fn refusals(
    session: &Session,
    source: &dyn TranscriptSource,
    profile: ClientProfile,
) -> Vec<String> {
    validator::refusals_with_prompt(&sent(session, source, profile), "go on")
}

fn found(session: &Session, client: ClientProfile) -> Vec<&'static str> {
    let faults = check::faults_beside(session, &Default::default(), client);
    faults.iter().map(|fault| fault.kind.name()).collect()
}

/// Prompt, lines of the reply, what follows, and the faults for the newest client.
type Case<'a> = (&'a str, &'a [&'a str], &'a str, &'a [&'a str]);

const HI: &str = "\"hi\"";
const ANSWERED: &str = r#"[{"type":"tool_result","tool_use_id":"t1","content":"x"}]"#;

const CASES: &[Case<'_>] = &[
    (HI, &[SAID], HI, &[]),
    (HI, &[SIGNED, SAID], HI, &[]),
    (HI, &[UNSIGNED, SAID], HI, &["unsigned_thinking"]),
    (
        HI,
        &[r#"{"type":"redacted_thinking"}"#, SAID],
        HI,
        &["unsigned_thinking"],
    ),
    // What the client takes out or fills itself.
    (HI, &[SIGNED], HI, &[]),
    (HI, &[UNSIGNED], HI, &[]),
    (HI, &[""], HI, &[]),
    (HI, &[SAID], "[]", &[]),
    (HI, &[SAID], r#"[{"type":"text","text":" "}]"#, &[]),
    (
        HI,
        &[r#"{"type":"text","text":"\n\n"}"#, SIGNED, CALL],
        ANSWERED,
        &[],
    ),
    (HI, &[r#"{"type":"text","text":""}"#, SIGNED], HI, &[]),
    (
        HI,
        &[
            r#"{"type":"server_tool_use","id":"srv1","name":"web_search","input":{}}"#,
            SAID,
        ],
        HI,
        &[],
    ),
    // What it sends.
    (
        HI,
        &[r#"{"type":"text","text":" "},{"type":"text","text":"yo"}"#],
        HI,
        &["empty_text"],
    ),
    (
        HI,
        &[r#"{"type":"tool_use","id":"t1","name":"Read","input":"{\"a\":1}"}"#],
        ANSWERED,
        &["bad_call"],
    ),
    (
        HI,
        &[r#"{"type":"tool_use","id":"t1","name":"Read","input":null}"#],
        ANSWERED,
        &["bad_call"],
    ),
    (
        HI,
        &[r#"{"type":"tool_use","id":"t1","name":"Read"}"#],
        ANSWERED,
        &["bad_call"],
    ),
    (
        HI,
        &[r#"{"type":"tool_use","id":"t1","name":"","input":{}}"#],
        ANSWERED,
        &["refused_name"],
    ),
    (
        HI,
        &[
            SAID,
            r#"{"type":"tool_use","id":"","name":"Read","input":{}}"#,
        ],
        r#"[{"type":"tool_result","tool_use_id":"","content":"x"}]"#,
        &["bad_call", "bad_result"],
    ),
    (HI, &[r#"{"type":"video","x":1}"#], HI, &["bad_block"]),
    (
        r#"[{"type":"image"},{"type":"text","text":"see"}]"#,
        &[SAID],
        HI,
        &["bad_block"],
    ),
    (
        HI,
        &[CALL],
        r#"[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"image"}]}]"#,
        &["bad_result"],
    ),
    (
        HI,
        &[CALL],
        r#"[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"video"}]}]"#,
        &["bad_result"],
    ),
    (
        HI,
        &[CALL],
        r#"[{"type":"tool_result","tool_use_id":"t1","content":5}]"#,
        &["bad_result"],
    ),
    (
        HI,
        &[CALL],
        r#"[{"type":"tool_result","tool_use_id":"t1","content":null}]"#,
        &["bad_result"],
    ),
    (
        HI,
        &[CALL],
        r#"[{"type":"tool_result","tool_use_id":"t1","content":{"a":1}}]"#,
        &["bad_result"],
    ),
    (
        HI,
        &[CALL],
        r#"[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":""}]}]"#,
        &["empty_text"],
    ),
];

#[test]
fn check_finds_what_the_api_refuses_of_the_newest_client_and_nothing_else() {
    for (prompt, reply, follows, kinds) in CASES {
        let log = session(prompt, reply, follows, "claude-opus-4-5");
        let session = Session::from_log(&log, TranscriptRole::Main);
        assert_eq!(
            found(&session, ClientProfile::NEWEST),
            *kinds,
            "{reply:?} {follows}"
        );
        let refused = refusals(&session, &log, ClientProfile::NEWEST);
        assert_eq!(
            refused.is_empty(),
            kinds.is_empty(),
            "{reply:?} {follows}: {refused:?}"
        );
    }
}

#[test]
fn whatever_is_refused_of_any_client_is_mended_and_sent_otherwise_by_our_own_rules() {
    for (prompt, reply, follows, kinds) in CASES {
        let log = session(prompt, reply, follows, "claude-opus-4-5");
        let before = Session::from_log(&log, TranscriptRole::Main);
        assert_eq!(
            refusals(&before, &log, ClientProfile::Strict),
            [""; 0],
            "{reply:?} {follows}"
        );
        let repair = RepairedSession::of(&log, TranscriptRole::Main);
        let mended: Vec<&str> = repair.mended.iter().map(|one| one.kind).collect();
        for kind in *kinds {
            assert!(mended.contains(kind), "{reply:?} {follows}: {mended:?}");
        }
        assert_eq!(
            found(&repair.session, ClientProfile::NEWEST),
            [""; 0],
            "{reply:?} {follows}"
        );
        let source = repair.source(&log);
        let refused = refusals(&repair.session, &source, ClientProfile::NEWEST);
        assert_eq!(refused, [""; 0], "{reply:?} {follows}");
        // Once more there is nothing to do.
        let text: Vec<u8> = {
            let mut text = Vec::new();
            repair.each(&log, |line| {
                text.extend_from_slice(line.bytes);
                text.push(b'\n');
            });
            text
        };
        assert!(
            RepairedSession::of(&Log::new(text), TranscriptRole::Main).is_empty(),
            "{reply:?} {follows}"
        );
    }
}

#[test]
fn what_an_older_client_would_send_is_a_fault_for_that_client() {
    let blank = r#"{"type":"text","text":"\n\n"}"#;
    for (reply, first, kind) in [
        (&[SIGNED][..], "2.1.7", "thinking_alone"),
        (&[blank, SIGNED, SAID], "2.1.33", "empty_text"),
        (&[&format!("{SIGNED},{blank}")], "2.1.33", "empty_text"),
    ] {
        let log = session(HI, reply, HI, "claude-opus-4-5");
        let session = Session::from_log(&log, TranscriptRole::Main);
        let before = ClientProfile::for_version("2.1.6").unwrap();
        assert_eq!(found(&session, before), [kind], "{reply:?}");
        assert_eq!(
            found(&session, ClientProfile::for_version(first).unwrap()),
            [""; 0],
            "{reply:?}"
        );
    }
}

#[test]
fn thinking_that_another_makers_model_did_not_sign_is_no_fault_where_no_model_of_ours_was_asked() {
    let of = |model: &str| {
        let log = session(HI, &[UNSIGNED, SAID], HI, model);
        let faults = found(
            &Session::from_log(&log, TranscriptRole::Main),
            ClientProfile::NEWEST,
        );
        (
            faults,
            RepairedSession::of(&log, TranscriptRole::Main).is_empty(),
        )
    };
    assert_eq!(of("glm-4.6"), (vec![], true));
    assert_eq!(of("claude-opus-4-5"), (vec!["unsigned_thinking"], false));
}

#[test]
fn an_input_that_was_written_as_text_is_an_object_again() {
    let call = r#"{"type":"tool_use","id":"t1","name":"Read","input":"{\"a\":1}"}"#;
    let log = session(HI, &[call], &format!("[{RESULT}]"), "claude-opus-4-5");
    let text = String::from_utf8(log.as_bytes().to_vec()).unwrap();
    let mut written = String::new();
    RepairedSession::of(&log, TranscriptRole::Main).each(&log, |line| {
        written += std::str::from_utf8(line.bytes).unwrap();
        written.push('\n');
    });
    assert_eq!(written, text.replace(r#""{\"a\":1}""#, r#"{"a":1}"#));
    let read = Session::from_log(&log, TranscriptRole::Main);
    assert!(sent(&read, &log, ClientProfile::Strict).contains(r#"{"a":1}"#));
}
