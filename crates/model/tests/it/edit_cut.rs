//! Cutting: what stays reads as before, and nothing else becomes live.

use serde_json::Value;
use unspool_model::edit::cut_turns::{self, CutError, CutOptions, CutPoint};
use unspool_model::edit::{EditPlan, PlanSettings};
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::messages::{self, ResumeResult};
use unspool_testkit::random::Random;
use unspool_testkit::{graph, script, validator};

use crate::edit::{edited, mains};
use crate::edit_compose::any_cut;

/// Cuts; `None` if that is refused.
fn cut_log(log: &Log, wanted: &CutOptions, name: &str) -> Option<Log> {
    let mut refused: Option<CutError> = None;
    let (after, _, problems) = edited(log, None, PlanSettings::default(), |session, plan| {
        refused = cut_turns::cut(session, plan, wanted).err();
    });
    if refused.is_some() {
        return None;
    }
    assert_eq!(problems, [], "{name}: {wanted:?}");
    let session = Session::from_log(&after, TranscriptRole::Main);
    let sent = match messages::messages(&session, &after, ClientProfile::Strict) {
        ResumeResult::Messages(all) => messages::to_json(&all),
        other => panic!("{name}: {wanted:?}: {other:?}"),
    };
    let refusals = validator::refusals_with_prompt(&sent, "go on");
    assert_eq!(refusals, Vec::<String>::new(), "{name}: {wanted:?}");
    Some(after)
}

#[test]
fn whatever_goes_of_a_generated_session_the_rest_reads() {
    let mut done = 0;
    for seed in 0..250 {
        let log = Log::new(graph::healthy(seed).join("\n") + "\n");
        let session = Session::from_log(&log, TranscriptRole::Main);
        let mut random = Random::new(seed ^ 0xc07);
        for _ in 0..3 {
            let cut = any_cut(&session, &mut random);
            done += usize::from(cut_log(&log, &cut, &format!("seed {seed}")).is_some());
        }
    }
    assert!(done > 400, "{done}");
}

#[test]
fn whatever_goes_of_a_recording_the_rest_reads() {
    for (nth, (name, log)) in mains().into_iter().enumerate() {
        let session = Session::from_log(&log, TranscriptRole::Main);
        let mut random = Random::new(nth as u64);
        for _ in 0..6 {
            let cut = any_cut(&session, &mut random);
            cut_log(&log, &cut, &name);
        }
    }
}

/// What a cut says when it is made, or refused.
fn cut_script(script: &str, wanted: &CutOptions) -> Result<Log, CutError> {
    let log = Log::new(script::jsonl(script));
    let mut answer = Ok(());
    let (after, _, problems) = edited(&log, None, PlanSettings::default(), |session, plan| {
        answer = cut_turns::cut(session, plan, wanted);
    });
    answer?;
    assert_eq!(problems, []);
    Ok(after)
}

/// The texts that a client would send, one after the other.
fn said(log: &Log, profile: ClientProfile) -> String {
    let session = Session::from_log(log, TranscriptRole::Main);
    let ResumeResult::Messages(all) = messages::messages(&session, log, profile) else {
        return "nothing".to_owned();
    };
    let sent: Value = serde_json::from_str(&messages::to_json(&all)).unwrap();
    let blocks = sent.as_array().unwrap().iter();
    let blocks = blocks.flat_map(|message| message["content"].as_array().unwrap());
    // The client puts a sentence of its own above a summary.
    let texts = blocks.filter_map(|block| block["text"].as_str()?.trim().lines().last());
    texts.collect::<Vec<_>>().join(" ")
}

/// Checks what is left for every client.
fn leaves(script: &str, wanted: &CutOptions, left: &str) -> Log {
    let after = cut_script(script, wanted).unwrap();
    for profile in ClientProfile::eras_and_strict() {
        assert_eq!(said(&after, profile), left, "{}", profile.name());
    }
    after
}

fn until(turn: i64) -> CutOptions {
    CutOptions {
        until: Some(CutPoint::Turn(turn)),
        ..CutOptions::default()
    }
}

fn only(range: &str) -> CutOptions {
    CutOptions {
        turns: vec![range.parse().unwrap()],
        ..CutOptions::default()
    }
}

fn without(turns: &[i64]) -> CutOptions {
    CutOptions {
        without: turns.to_vec(),
        ..CutOptions::default()
    }
}

const FOUR: &str =
    "you: q1\nclaude: a1\nyou: q2\nclaude: a2\nyou: q3\nclaude: a3\nyou: q4\nclaude: a4\n";

#[test]
fn turns_are_kept_by_range_up_to_one_and_without_one() {
    leaves(FOUR, &only("2..3"), "q2 a2 q3 a3");
    leaves(FOUR, &only("-1"), "q4 a4");
    leaves(FOUR, &only("..2"), "q1 a1 q2 a2");
    leaves(FOUR, &until(2), "q1 a1 q2 a2");
    leaves(FOUR, &until(-3), "q1 a1 q2 a2");
    leaves(FOUR, &until(4), "q1 a1 q2 a2 q3 a3 q4 a4");
    leaves(FOUR, &without(&[2]), "q1 a1 q3 a3 q4 a4");
    leaves(FOUR, &without(&[1, -1]), "q2 a2 q3 a3");
}

#[test]
fn wishes_hold_together() {
    let both = CutOptions {
        turns: vec!["2..".parse().unwrap()],
        ..until(3)
    };
    leaves(FOUR, &both, "q2 a2 q3 a3");
    let all = CutOptions {
        without: vec![3],
        ..both
    };
    leaves(FOUR, &all, "q2 a2");
}

#[test]
fn what_cannot_be_cut_is_refused_with_words_and_a_hint() {
    let refused = |wanted: &CutOptions| cut_script(FOUR, wanted).unwrap_err();
    let line = |id: &str| CutOptions {
        until: Some(CutPoint::Line(id.to_owned())),
        ..CutOptions::default()
    };
    for (wanted, words) in [
        (until(9), "there is no turn 9: the session has 4"),
        (until(-5), "there is no turn -5: the session has 4"),
        (only("7.."), "there is no turn 7..: the session has 4"),
        (without(&[0]), "there is no turn 0: the session has 4"),
        (without(&[1, 2, 3, 4]), "the conversation would be empty"),
        (line("ffff"), "no line of the conversation has the id ffff"),
        (line("0000"), "8 lines have an id that begins with 0000"),
    ] {
        let error = refused(&wanted);
        assert_eq!(error.to_string(), words);
        assert!(!error.hint().is_empty());
    }
    let script = format!("{FOUR}(parent={}) you: q5\nclaude: a5\n", script::uuid(4));
    let elsewhere = CutOptions {
        branch: Some(script::uuid(7)),
        ..until(5)
    };
    let error = cut_script(&script, &elsewhere).unwrap_err();
    assert_eq!(error.to_string(), "turn 5 is not on the requested branch");
}

#[test]
fn a_session_is_forked_at_any_message() {
    let at = |n: usize| CutOptions {
        until: Some(script::uuid(n).parse().unwrap()),
        ..CutOptions::default()
    };
    leaves(FOUR, &at(3), "q1 a1 q2");
    leaves(FOUR, &at(4), "q1 a1 q2 a2");
    // A call stays with all calls of its message and with their results.
    let tools = "you: q1\nclaude: look [Read a] [Read b]\nresult: Read b B\nresult: Read a A\n\
                 claude: a1\nyou: q2\nclaude: a2\n";
    for n in 2..=6 {
        let after = leaves(tools, &at(n), "q1 look");
        let session = Session::from_log(&after, TranscriptRole::Main);
        let answered = session.calls.iter().filter(|call| call.result.is_some());
        assert_eq!((session.calls.len(), answered.count()), (2, 2), "line {n}");
    }
}

#[test]
fn a_point_is_a_turn_or_an_id() {
    assert_eq!("3".parse(), Ok(CutPoint::Turn(3)));
    assert_eq!("-1".parse(), Ok(CutPoint::Turn(-1)));
    assert_eq!("5e55".parse(), Ok(CutPoint::Line("5e55".to_owned())));
    assert_eq!(
        "12345678".parse(),
        Ok(CutPoint::Line("12345678".to_owned()))
    );
    assert!("".parse::<CutPoint>().is_err() && "0".parse::<CutPoint>().is_err());
}

fn rewound() -> String {
    format!("{FOUR}(parent={}) you: q5\nclaude: a5\n", script::uuid(4))
}

#[test]
fn one_branch_alone_goes_on_in_every_client() {
    let branch = |n: usize| CutOptions {
        branch: Some(script::uuid(n)),
        ..CutOptions::default()
    };
    // The one that was left, by its last line and by any other.
    leaves(&rewound(), &branch(8), "q1 a1 q2 a2 q3 a3 q4 a4");
    leaves(&rewound(), &branch(5), "q1 a1 q2 a2 q3 a3 q4 a4");
    let live = leaves(&rewound(), &branch(10), "q1 a1 q2 a2 q5 a5");
    assert_eq!(live.lines().count(), 6);
    // What both have in common is on the one that goes on.
    leaves(&rewound(), &branch(2), "q1 a1 q2 a2 q5 a5");
}

#[test]
fn where_the_end_goes_what_was_rewound_goes_too() {
    let after = leaves(&rewound(), &without(&[5]), "q1 a1 q2 a2");
    assert_eq!(after.lines().count(), 4);
    leaves(&rewound(), &until(2), "q1 a1 q2 a2");
    // A turn that was rewound can be gone back to.
    leaves(&rewound(), &until(3), "q1 a1 q2 a2 q3 a3");
    // While the end stays, so does what was rewound.
    let after = leaves(&rewound(), &without(&[1]), "q2 a2 q5 a5");
    assert_eq!(after.lines().count(), 8);
}

#[test]
fn a_note_of_where_to_go_on_does_not_survive_the_line_it_names() {
    let note = |n: usize| {
        format!(
            r#"raw: {{"type":"last-prompt","lastPrompt":"q","leafUuid":"{}","sessionId":"s"}}"#,
            script::uuid(n)
        )
    };
    let script = format!("{FOUR}{}\n", note(8));
    let after = leaves(&script, &until(2), "q1 a1 q2 a2");
    assert_eq!(after.lines().count(), 4);
    let script = format!("{}\n{FOUR}{}\n", note(2), note(8));
    let after = leaves(&script, &without(&[1]), "q2 a2 q3 a3 q4 a4");
    let text = String::from_utf8_lossy(after.as_bytes()).into_owned();
    assert_eq!(text.matches("last-prompt").count(), 1);
}

/// Four turns, the second and the third parted by a compaction.
const COMPACTED: &str = "(version=2.1.100)\nyou: q1\nclaude: a1\nyou: q2\nclaude: a2\ncompact: 100 -> 5\n\
                         summary: so far\nyou: q3\nclaude: a3\nyou: q4\nclaude: a4\n";

#[test]
fn a_compaction_stays_while_something_follows_it() {
    leaves(COMPACTED, &without(&[2]), "so far q3 a3 q4 a4");
    leaves(COMPACTED, &without(&[3]), "so far q4 a4");
    leaves(COMPACTED, &only("4.."), "so far q4 a4");
    leaves(COMPACTED, &until(3), "so far q3 a3");
}

#[test]
fn what_a_compaction_summarised_is_there_again_when_the_cut_is_before_it() {
    leaves(COMPACTED, &until(2), "q1 a1 q2 a2");
    leaves(COMPACTED, &until(1), "q1 a1");
    leaves(COMPACTED, &only("..2"), "q1 a1 q2 a2");
    leaves(COMPACTED, &without(&[3, 4]), "q1 a1 q2 a2");
}

#[test]
fn a_compaction_within_a_turn_belongs_to_it() {
    let script = "you: q1\nclaude: a1\nyou: q2\nclaude: b2\ncompact: 100 -> 5\nsummary: so far\n\
                  claude: a2\nyou: q3\nclaude: a3\n";
    leaves(script, &until(2), "so far a2");
    leaves(script, &until(1), "q1 a1");
    leaves(script, &without(&[2]), "so far q3 a3");
}

#[test]
fn lines_that_a_compaction_kept_go_with_their_turn() {
    let script = COMPACTED.replace("compact:", "(keep=2) compact:");
    let newest =
        |wanted: &CutOptions| said(&cut_script(&script, wanted).unwrap(), ClientProfile::NEWEST);
    assert_eq!(newest(&without(&[4])), "so far q2 a2 q3 a3");
    assert_eq!(newest(&without(&[2])), "so far q3 a3 q4 a4");
    assert_eq!(newest(&without(&[1])), "so far q2 a2 q3 a3 q4 a4");
}

#[test]
fn what_is_lost_is_said_once() {
    let log = Log::new(script::jsonl(&rewound()));
    let session = Session::from_log(&log, TranscriptRole::Main);
    let lost = |wanted: &CutOptions| {
        let mut plan = EditPlan::new(&session);
        cut_turns::cut(&session, &mut plan, wanted).unwrap();
        let lost = plan.lost();
        lost.into_iter().map(|lost| lost.what).collect::<Vec<_>>()
    };
    assert_eq!(lost(&until(1)), ["2 turns"]);
    // What was rewound is nothing the model would have seen.
    assert_eq!(lost(&without(&[3])), Vec::<String>::new());
    let other = CutOptions {
        branch: Some(script::uuid(8)),
        ..CutOptions::default()
    };
    assert_eq!(lost(&other), ["2 lines of abandoned branches"]);
}
