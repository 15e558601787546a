//! Blocks stay, also when they are empty, and say what they are about.

use unspool_model::block::BlockKind;

use crate::make::{only, read, reply, user};

fn content(json: &str) -> Vec<(BlockKind, bool)> {
    let entry = only(&format!(
        r#"{{"type":"assistant","message":{{"id":"m","role":"assistant","content":{json}}}}}"#
    ));
    entry
        .blocks
        .iter()
        .map(|block| (block.kind, block.blank))
        .collect()
}

#[test]
fn empty_texts_and_thinking_are_kept_as_blank_blocks() {
    assert_eq!(content(r#""""#), [(BlockKind::Text, true)]);
    assert_eq!(
        content(r#"[{"type":"text","text":""}]"#),
        [(BlockKind::Text, true)]
    );
    assert_eq!(content(r#"[{"type":"text"}]"#), [(BlockKind::Text, true)]);
    assert_eq!(
        content(r#"[{"type":"thinking","thinking":"","signature":"s"}]"#),
        [(BlockKind::Thinking, true)]
    );
    assert_eq!(
        content(r#"[{"type":"text","text":" \n "}]"#),
        [(BlockKind::Text, true)]
    );
}

#[test]
fn an_empty_message_keeps_its_place_in_the_chain() {
    let read = read(&[
        user("a", "", "10:00:00", r#""go""#),
        reply("b", "a", "10:00:01", "m1", "[]"),
        reply(
            "c",
            "b",
            "10:00:02",
            "m2",
            r#"[{"type":"text","text":"done"}]"#,
        ),
    ]);
    let links = unspool_model::graph::links(&read.session);
    assert_eq!(links.ancestors(2).collect::<Vec<_>>(), [2, 1, 0]);
    assert_eq!(read.session.messages.len(), 2);
    assert!(
        read.session
            .turns_by_record()
            .iter()
            .all(|turn| *turn == Some(0))
    );
}

#[test]
fn a_call_without_id_name_or_input_is_still_a_call() {
    for block in [
        r#"[{"type":"tool_use"}]"#,
        r#"[{"type":"tool_use","name":"Read"}]"#,
        r#"[{"type":"tool_use","id":"t","name":"Read","input":null}]"#,
    ] {
        let read = read(&[reply("a", "", "10:00:00", "m", block)]);
        assert_eq!(read.session.calls.len(), 1, "{block}");
        assert_eq!(
            read.session.subject(&read.session.calls[0]),
            None,
            "{block}"
        );
    }
}

#[test]
fn a_reply_of_calls_alone_stays_in_its_turn() {
    let read = read(&[
        user("a", "", "10:00:00", r#""go""#),
        reply(
            "b",
            "a",
            "10:00:01",
            "m",
            r#"[{"type":"tool_use","id":"t","name":"Read","input":{}}]"#,
        ),
        user(
            "c",
            "b",
            "10:00:02",
            r#"[{"type":"tool_result","tool_use_id":"t","content":""}]"#,
        ),
        reply("d", "c", "10:00:03", "m2", r#"[{"type":"text","text":""}]"#),
    ]);
    assert_eq!(read.session.turns.len(), 1);
    assert!(
        read.session
            .turns_by_record()
            .iter()
            .all(|turn| *turn == Some(0))
    );
}

#[test]
fn an_empty_text_is_no_output() {
    let read = read(&[
        reply(
            "a",
            "",
            "10:00:00",
            "m1",
            r#"[{"type":"text","text":"visible"}]"#,
        ),
        reply(
            "b",
            "a",
            "10:00:01",
            "m2",
            r#"[{"type":"text","text":"  "}]"#,
        ),
    ]);
    assert_eq!(read.session.recent_output.as_deref(), Some("visible"));
}

#[test]
fn the_subject_of_a_shell_command_is_the_command() {
    let subject = |input: &str| {
        let block = format!(r#"[{{"type":"tool_use","id":"t","name":"Bash","input":{input}}}]"#);
        let read = read(&[reply("a", "", "10:00:00", "m", &block)]);
        let subject = read.session.subject(&read.session.calls[0]);
        subject.map(String::from)
    };
    assert_eq!(
        subject(r#"{"description":"List files","command":"ls"}"#).as_deref(),
        Some("ls")
    );
    assert_eq!(
        subject(r#"{"description":"List files"}"#).as_deref(),
        Some("List files")
    );
    assert_eq!(subject("{}"), None);
}

#[test]
fn calls_of_every_tool_the_documents_name_say_what_they_are_about() {
    for (tool, input, wanted) in [
        (
            "Read",
            r#"{"file_path":"/a/b.rs","offset":1,"limit":2}"#,
            "/a/b.rs",
        ),
        ("Write", r#"{"file_path":"/a","content":"x"}"#, "/a"),
        (
            "Edit",
            r#"{"old_string":"x","new_string":"y","file_path":"/a","replace_all":true}"#,
            "/a",
        ),
        (
            "NotebookEdit",
            r#"{"notebook_path":"/n.ipynb"}"#,
            "/n.ipynb",
        ),
        (
            "Bash",
            r#"{"command":"ls","description":"d","timeout":5}"#,
            "ls",
        ),
        ("Glob", r#"{"pattern":"*.rs","path":"/a"}"#, "*.rs"),
        (
            "Grep",
            r#"{"pattern":"x","path":"/a","glob":"*","output_mode":"count"}"#,
            "x",
        ),
        (
            "Task",
            r#"{"description":"Find","subagent_type":"x","prompt":"p"}"#,
            "Find",
        ),
        (
            "Agent",
            r#"{"description":"Find","subagent_type":"x","prompt":"p"}"#,
            "Find",
        ),
        ("TodoWrite", r#"{"todos":[{"content":"c"}]}"#, "1 items"),
        ("WebSearch", r#"{"query":"q"}"#, "q"),
        (
            "WebFetch",
            r#"{"url":"https://x","prompt":"p"}"#,
            "https://x",
        ),
    ] {
        let block = format!(r#"[{{"type":"tool_use","id":"t","name":"{tool}","input":{input}}}]"#);
        let read = read(&[reply("a", "", "10:00:00", "m", &block)]);
        assert_eq!(
            read.session.subject(&read.session.calls[0]),
            Some(wanted),
            "{tool}"
        );
    }
}
