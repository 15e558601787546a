//! Slimming: bookkeeping goes, and what any client sends stays as it is.

use unspool_model::edit::{PlanSettings, slim};
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ResumeResult};
use unspool_testkit::{corpus, graph};

use crate::edit::{edited, mains};

const TREE: PlanSettings = PlanSettings { keep_tree: true };

/// What each client would send.
fn sent(log: &Log) -> Vec<(ClientProfile, String)> {
    let session = Session::from_log(log, TranscriptRole::Main);
    let one = |profile| match messages::messages(&session, log, profile) {
        ResumeResult::Messages(all) => (profile, messages::to_json(&all)),
        ResumeResult::NoConversation => (profile, "none".to_owned()),
        ResumeResult::Hangs => (profile, "hangs".to_owned()),
    };
    ClientProfile::eras_and_strict().map(one).collect()
}

fn check(log: &Log, name: &str) -> (u64, u64) {
    let (after, written, problems) = edited(log, None, TREE, slim::slim);
    assert_eq!(problems, [], "{name}");
    for ((profile, before), (_, after)) in sent(log).into_iter().zip(sent(&after)) {
        assert_eq!(after, before, "{name} as {} reads it", profile.name());
    }
    let (again, written_again, _) = edited(&after, None, TREE, slim::slim);
    assert_eq!(again.as_bytes(), after.as_bytes(), "{name}");
    assert_eq!(written_again.dropped, 0, "{name}");
    (written.before, written.after)
}

#[test]
fn no_client_sends_anything_else_of_a_slim_recording() {
    for (name, log) in mains() {
        check(&log, &name);
    }
}

#[test]
fn no_client_sends_anything_else_of_a_slim_generated_session() {
    for seed in 0..250 {
        let text = graph::healthy(seed).join("\n") + "\n";
        check(&Log::new(text), &format!("seed {seed}"));
    }
}

#[test]
fn recordings_of_the_newest_client_lose_most_of_their_bytes() {
    let files = corpus::files();
    for version in ["2.0.42", "2.0.76", "2.1.29", "2.1.100", "2.1.325"] {
        let (mut before, mut after) = (0, 0);
        let own = |file: &&corpus::File| file.version == version && file.role == corpus::Role::Main;
        for file in files.iter().filter(own) {
            let log = Log::new(file.bytes());
            let (_, written, _) = edited(&log, None, TREE, slim::slim);
            before += written.before;
            after += written.after;
        }
        let percent = 100 - after * 100 / before;
        println!("{version}: {before} to {after} bytes, {percent} % less");
        assert!(version != "2.1.325" || percent >= 65, "{percent}");
    }
}

#[test]
fn a_circle_on_which_old_clients_hang_is_cut() {
    let line = |uuid: &str, parent: &str, second: u32, kind: &str| {
        format!(
            r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","timestamp":"2026-01-03T10:00:0{second}.000Z","message":{{"role":"{kind}","content":[{{"type":"text","text":"{uuid}"}}]}}}}"#
        )
    };
    let nameless =
        line("n", "\"a\"", 1, "user").replace("\"uuid\":\"n\",\"parentUuid\":\"a\",", "");
    for (parent, between) in [("\"d\"", ""), ("\"b\"", ""), ("\"d\"", &*nameless)] {
        let lines = [
            line("a", "null", 0, "user"),
            between.to_owned(),
            line("b", parent, 1, "assistant"),
            line("c", "\"b\"", 2, "user"),
            line("d", "\"c\"", 3, "assistant"),
        ];
        let log = Log::new(lines.join("\n") + "\n");
        assert!(sent(&log).iter().any(|(_, sent)| sent == "hangs"));
        let (after, _, problems) = edited(&log, None, TREE, slim::slim);
        assert_eq!(problems, [], "{parent}");
        if !between.is_empty() {
            continue; // Left to repair, and not refused.
        }
        for (profile, sent) in sent(&after) {
            assert!(
                sent.contains("\"a\"") && sent.contains("\"d\""),
                "{}: {sent}",
                profile.name()
            );
        }
    }
}

#[test]
fn an_empty_title_of_a_person_takes_back_those_before_it() {
    let lines = [
        r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-01-03T10:00:00.000Z","message":{"role":"user","content":"hello"}}"#,
        r#"{"type":"custom-title","customTitle":"first","sessionId":"s"}"#,
        r#"{"type":"custom-title","customTitle":"second","sessionId":"s"}"#,
        r#"{"type":"custom-title","customTitle":" ","sessionId":"s"}"#,
    ];
    let log = Log::new(lines.join("\n") + "\n");
    let (after, ..) = edited(&log, None, TREE, slim::slim);
    let session = Session::from_log(&after, TranscriptRole::Main);
    assert_eq!(session.given_title(), None);
    let text = String::from_utf8_lossy(after.as_bytes()).into_owned();
    assert!(
        !text.contains("first") && !text.contains("second"),
        "{text}"
    );
}
