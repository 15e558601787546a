//! The conversation as items: what is said once, folded, nested or marked.

// A test may stop at the first surprise.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use expect_test::{Expect, expect};
use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::transcript::{
    AgentTranscript, AgentTranscripts, ItemBody, TranscriptItem, transcript,
};
use unspool_model::view::turn_selection::TurnSelection;
use unspool_testkit::script;

fn check(script: &str, expected: Expect) {
    check_bytes(script::jsonl(script), "", &HashMap::new(), expected);
}

fn check_bytes(bytes: Vec<u8>, turns: &str, agents: &AgentTranscripts<'_>, expected: Expect) {
    let log = Log::new(bytes);
    let session = Session::from_log(&log, TranscriptRole::Main);
    let turns = turns.split_whitespace().map(|range| range.parse().unwrap());
    let pick = TurnSelection {
        turns: turns.collect(),
        agents: true,
    };
    let items = transcript(&session, &log, agents, &pick);
    let mut out = String::new();
    write(&items, 0, &mut out);
    expected.assert_eq(&out);
}

fn write(items: &[TranscriptItem], depth: usize, out: &mut String) {
    for item in items {
        out.push_str(&"  ".repeat(depth));
        out.push_str(&line(&item.body));
        out.push('\n');
        if let ItemBody::Call(call) = &item.body
            && let Some(agent) = &call.agent
        {
            write(&agent.items, depth + 1, out);
        }
    }
}

fn line(body: &ItemBody) -> String {
    match body {
        ItemBody::Turn(head) => {
            let rewound = if head.live { "" } else { " rewound" };
            format!("turn {} {}{rewound}", head.n, head.kind.name())
        }
        ItemBody::Prompt(prompt) => format!("prompt {:?} {:?}", prompt.text, prompt.kinds.names()),
        ItemBody::Call(call) => format!(
            "call {} {:?} {} {:?}",
            call.verb,
            call.subject.as_deref().unwrap_or_default(),
            call.status.name(),
            call.text
        ),
        ItemBody::Notes(notes) => {
            let label = |note: &unspool_model::view::transcript::TranscriptNote| {
                format!("{}×{}", note.label, note.count)
            };
            let labels: Vec<String> = notes.iter().map(label).collect();
            format!("notes {}", labels.join(" "))
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn bookkeeping_is_folded_and_what_the_client_wrote_is_no_reply() {
    check(
        "
        you:    hi
        title:  A title
        hook:   PostToolUse:Read
        hook:   PostToolUse:Read
        meta:   Caveat: nothing
        (model=<synthetic>) claude: No response requested.
        claude: hello
        ",
        expect![[r#"
            turn 1 prompt
            prompt "hi" ["text"]
            notes custom title×1 hook success×2 caveat×1 synthetic reply×1
            Reply { text: "hello", model: Some("claude-sonnet-4-5-20250929") }
        "#]],
    );
}

#[test]
fn a_block_that_was_written_twice_is_shown_once() {
    check(
        r#"
        you:    hi
        raw: {"type":"assistant","uuid":"a","parentUuid":"00000000-0000-4000-8000-000000000001","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"hello"},{"type":"tool_use","id":"t","name":"Read","input":{}}]}}
        raw: {"type":"user","uuid":"r","parentUuid":"a","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}}
        raw: {"type":"assistant","uuid":"b","parentUuid":"r","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"hello"},{"type":"tool_use","id":"t","name":"Read","input":{}}]}}
        "#,
        expect![[r#"
            turn 1 prompt
            prompt "hi" ["text"]
            Reply { text: "hello", model: None }
            call read "" ok "ok"
        "#]],
    );
}

#[test]
fn rewound_turns_are_marked() {
    check(
        "
        (name=a) you:    one
        (name=b) claude: first
        you:    wrong way
        claude: oops
        (parent=b) you: right way
        claude: good
        ",
        expect![[r#"
            turn 1 prompt
            prompt "one" ["text"]
            Reply { text: "first", model: Some("claude-sonnet-4-5-20250929") }
            turn 2 prompt rewound
            prompt "wrong way" ["text"]
            Reply { text: "oops", model: Some("claude-sonnet-4-5-20250929") }
            turn 3 prompt
            prompt "right way" ["text"]
            Reply { text: "good", model: Some("claude-sonnet-4-5-20250929") }
        "#]],
    );
}

#[test]
fn lines_nobody_can_read_or_has_seen_before_are_shown() {
    check(
        r#"
        you:    hi
        raw:    {"type":"brand-new","uuid":"x1","parentUuid":null}
        raw:    {"broken
        claude: hello
        "#,
        expect![[r#"
            turn 1 prompt
            prompt "hi" ["text"]
            Unknown { label: "brand-new" }
            Fault { detail: "line 3: unexpected end inside a string (byte 2)" }
            Reply { text: "hello", model: Some("claude-sonnet-4-5-20250929") }
        "#]],
    );
}

#[test]
fn prompts_lose_their_wrappers_and_keep_their_kinds() {
    check(
        r"
        you:     <ide_opened_file>a.rs</ide_opened_file>\nexplain
        command: /review now
        shell:   ls
        image:
        ",
        expect![[r#"
            turn 1 prompt
            prompt "explain" ["text", "ide_opened_file"]
            turn 2 command
            prompt "/review now" ["command"]
            turn 3 shell
            prompt "! ls" ["text"]
            turn 4 prompt
            prompt "" ["image"]
        "#]],
    );
}

#[test]
fn only_the_picked_turns_come() {
    let script = "
        you: one
        claude: a
        you: two
        claude: b
        you: three
        claude: c
        ";
    check_bytes(
        script::jsonl(script),
        "1 -1",
        &HashMap::new(),
        expect![[r#"
            turn 1 prompt
            prompt "one" ["text"]
            Reply { text: "a", model: Some("claude-sonnet-4-5-20250929") }
            turn 3 prompt
            prompt "three" ["text"]
            Reply { text: "c", model: Some("claude-sonnet-4-5-20250929") }
        "#]],
    );
}

#[test]
fn an_agents_file_nests_below_its_call_by_id_or_by_side_file() {
    let inner = Log::new(script::jsonl(
        "
        (isSidechain=true) you: look
        (isSidechain=true) claude: seen
        ",
    ));
    let session = Session::from_log(&inner, TranscriptRole::Agent);
    let log = AgentTranscript {
        session: &session,
        source: &inner,
        call: Some("toolu_0001"),
        run: None,
    };
    let agents = HashMap::from([("a1".to_owned(), log)]);
    let script = "
        you: go
        claude: [Task look]
        result: Task look done
        ";
    check_bytes(
        script::jsonl(script),
        "",
        &agents,
        expect![[r#"
        turn 1 prompt
        prompt "go" ["text"]
        call sent agent "look" ok "done"
          prompt "look" ["text"]
          Reply { text: "seen", model: Some("claude-sonnet-4-5-20250929") }
    "#]],
    );
}

#[test]
fn an_agent_that_calls_itself_ends() {
    let log = Log::new(script::jsonl(
        "
        you: go
        claude: [Task go]
        ",
    ));
    let session = Session::from_log(&log, TranscriptRole::Agent);
    let source = AgentTranscript {
        session: &session,
        source: &log,
        call: Some("toolu_0001"),
        run: None,
    };
    let agents = HashMap::from([("a1".to_owned(), source)]);
    let script = "
        you: go
        claude: [Task go]
        ";
    check_bytes(
        script::jsonl(script),
        "",
        &agents,
        expect![[r#"
        turn 1 prompt
        prompt "go" ["text"]
        call sent agent "go" running ""
          prompt "go" ["text"]
          call sent agent "go" running ""
    "#]],
    );
}
