//! What a line is, whatever shape it comes in.

use unspool_model::entry::{LineDetail, LineKind};
use unspool_model::time::Time;
use unspool_model::user_input::UserInput;

use crate::make::{block_names, kind_name, only};

fn input(line: &str) -> &'static str {
    only(line).input.name()
}

/// What a user line with this content (JSON) is.
fn content(content: &str) -> &'static str {
    input(&format!(
        r#"{{"type":"user","uuid":"u","message":{{"role":"user","content":{content}}}}}"#
    ))
}

/// What a user line with this text and these further fields is.
fn flagged(text: &str, fields: &str) -> &'static str {
    input(&format!(
        r#"{{"type":"user","uuid":"u",{fields},"message":{{"role":"user","content":"{text}"}}}}"#
    ))
}

#[test]
fn a_prompt_is_a_prompt_as_a_string_and_as_an_array() {
    assert_eq!(content(r#""fix it""#), "prompt");
    assert_eq!(content(r#"[{"type":"text","text":"fix it"}]"#), "prompt");
    assert_eq!(content(r#"["fix it"]"#), "prompt");
}

#[test]
fn an_image_or_a_document_alone_is_a_prompt() {
    assert_eq!(
        content(r#"[{"type":"image","source":{"type":"base64","data":""}}]"#),
        "prompt"
    );
    assert_eq!(
        content(r#"[{"type":"document","source":{"type":"base64","data":""}}]"#),
        "prompt"
    );
}

#[test]
fn a_line_with_any_tool_result_is_a_result() {
    let result = r#"{"type":"tool_result","tool_use_id":"t","content":"x"}"#;
    let text = r#"{"type":"text","text":"and now this"}"#;
    assert_eq!(content(&format!("[{result}]")), "tool_result");
    assert_eq!(content(&format!("[{text},{result}]")), "tool_result");
    assert_eq!(content(&format!("[{result},{text}]")), "tool_result");
    assert_eq!(content(r#""a tool_result in words""#), "prompt");
}

#[test]
fn a_result_stays_a_result_when_it_carries_a_permission_mode() {
    let line = r#"{"type":"user","uuid":"u","permissionMode":"default","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}}"#;
    assert_eq!(input(line), "tool_result");
}

#[test]
fn a_prompt_needs_no_permission_mode() {
    assert_eq!(flagged("go on", r#""parentUuid":"p""#), "prompt");
}

#[test]
fn content_of_any_shape_leaves_the_line_readable() {
    for shape in [
        "null", "{}", "7", "true", "[]", "[null]", "[7]", "\"\"", "[[]]",
    ] {
        assert_eq!(content(shape), "machine", "{shape}");
    }
    for shape in [
        r#"{"type":"user"}"#,
        r#"{"type":"user","message":null}"#,
        r#"{"type":"user","message":"text"}"#,
        r#"{"type":"user","message":{}}"#,
        r#"{"type":"assistant"}"#,
        r#"{"type":"assistant","message":null}"#,
        r#"{"type":"assistant","message":{"content":null}}"#,
    ] {
        let entry = only(shape);
        assert!(
            matches!(entry.kind, LineKind::User | LineKind::Assistant),
            "{shape}"
        );
        assert!(entry.blocks.is_empty(), "{shape}");
    }
}

#[test]
fn mixed_content_keeps_every_block_in_order() {
    let entry = only(
        r#"{"type":"assistant","message":{"role":"assistant","content":["plain",{"type":"thinking","thinking":"","signature":"s"},{"type":"redacted_thinking","data":"x"},null,{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"tool_use","id":"t1","name":"Read","input":{}},{"type":"image","source":{}},{"type":"hologram"}]}}"#,
    );
    assert_eq!(
        block_names(&entry),
        [
            "text",
            "thinking",
            "redacted_thinking",
            "server_tool_use",
            "tool_use",
            "image",
            "hologram"
        ]
    );
}

#[test]
fn an_assistant_line_is_known_by_its_type_or_by_the_role_of_its_message() {
    let typed = only(r#"{"type":"assistant","message":{"content":"x"}}"#);
    let untyped = only(r#"{"message":{"role":"assistant","content":"x"}}"#);
    assert_eq!(typed.kind, LineKind::Assistant);
    assert_eq!(untyped.kind, LineKind::Assistant);
}

#[test]
fn the_type_of_a_line_counts_before_the_role_of_its_message() {
    let entry = only(r#"{"type":"user","message":{"role":"assistant","content":"x"}}"#);
    assert_eq!(entry.kind, LineKind::User);
}

#[test]
fn meta_lines_of_either_role_are_kept_and_open_nothing() {
    let user = only(r#"{"type":"user","isMeta":true,"message":{"role":"user","content":"body"}}"#);
    assert_eq!((user.input, user.meta), (UserInput::Meta, true));
    let reply = only(
        r#"{"type":"assistant","isMeta":true,"message":{"role":"assistant","content":"body"}}"#,
    );
    assert_eq!((reply.kind, reply.meta), (LineKind::Assistant, true));
    let system = only(r#"{"type":"system","subtype":"local_command","isMeta":false}"#);
    assert!(!system.meta);
}

#[test]
fn meta_false_is_the_same_as_no_flag() {
    assert_eq!(flagged("go", r#""isMeta":false"#), "prompt");
}

#[test]
fn what_a_program_wrote_is_never_a_prompt() {
    for text in [
        "<local-command-stdout>Set model</local-command-stdout>",
        "<local-command-stderr>no</local-command-stderr>",
        "<local-command-caveat>x</local-command-caveat>",
        "<task-notification>done</task-notification>",
        "<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>",
        "Caveat: The messages below were generated by the user while running local commands. x",
        "Operation stopped by hook: no",
        "(no content)",
    ] {
        assert_eq!(content(&format!("{text:?}")), "machine", "{text}");
    }
}

#[test]
fn a_persons_acts_are_told_apart() {
    for (text, wanted) in [
        ("<command-name>/clear</command-name>", "command"),
        (
            "<command-message>fix</command-message>\n<command-name>/fix</command-name>",
            "command",
        ),
        ("<bash-input>ls</bash-input>", "shell"),
        ("<user-memory-input>tabs</user-memory-input>", "memory"),
        ("Implement the following plan:\n\n1. x", "plan"),
        ("[Request interrupted by user]", "interrupt"),
        ("[Request interrupted by user for tool use]", "interrupt"),
        (
            "This session is being continued from a previous conversation that ran out of context.",
            "summary",
        ),
    ] {
        assert_eq!(content(&format!("{text:?}")), wanted, "{text}");
    }
}

#[test]
fn wrappers_mean_nothing_in_the_middle_of_a_text() {
    assert_eq!(content(r#""what does <command-name> mean?""#), "prompt");
    assert_eq!(
        content(r#""why does it say [Request interrupted by user]?""#),
        "prompt"
    );
}

#[test]
fn flags_count_before_texts() {
    assert_eq!(flagged("hello", r#""isCompactSummary":true"#), "summary");
    assert_eq!(
        flagged("hello", r#""isVisibleInTranscriptOnly":true"#),
        "machine"
    );
    assert_eq!(
        flagged("hello", r#""origin":{"kind":"task-notification"}"#),
        "machine"
    );
    assert_eq!(flagged("hello", r#""origin":{"kind":"human"}"#), "prompt");
    assert_eq!(flagged("hello", r#""planContent":"1. x""#), "plan");
}

#[test]
fn every_kind_of_line_the_documents_name_has_its_place() {
    for (line, kind) in [
        (
            r#"{"type":"system","subtype":"compact_boundary"}"#,
            "compact",
        ),
        (
            r#"{"type":"system","subtype":"microcompact_boundary"}"#,
            "compact",
        ),
        (
            r#"{"type":"system","subtype":"turn_duration","durationMs":1}"#,
            "duration",
        ),
        (
            r#"{"type":"system","subtype":"stop_hook_summary"}"#,
            "hooks",
        ),
        (r#"{"type":"system","subtype":"local_command"}"#, "local"),
        (r#"{"type":"system","subtype":"api_error"}"#, "api-error"),
        (r#"{"type":"system","subtype":"away_summary"}"#, "system"),
        (r#"{"type":"system","subtype":"brand_new"}"#, "system"),
        (r#"{"type":"system"}"#, "system"),
        (
            r#"{"type":"progress","data":{"type":"brand_new"}}"#,
            "progress",
        ),
        (r#"{"type":"progress","data":{}}"#, "progress"),
        (r#"{"type":"progress"}"#, "progress"),
        (r#"{"type":"progress","data":null}"#, "progress"),
        (r#"{"type":"queue-operation"}"#, "queue"),
        (r#"{"type":"summary"}"#, "summary"),
        (r#"{"type":"file-history-snapshot"}"#, "files"),
        (r#"{"type":"file-history-delta"}"#, "files"),
        (r#"{"type":"pr-link"}"#, "pr"),
        (r#"{"type":"custom-title","customTitle":"T"}"#, "title"),
        (r#"{"type":"ai-title","aiTitle":"T"}"#, "title"),
        (r#"{"type":"agent-name","agentName":"T"}"#, "title"),
        (r#"{"type":"last-prompt"}"#, "last-prompt"),
        (
            r#"{"type":"permission-mode","permissionMode":"plan"}"#,
            "mode",
        ),
        (
            r#"{"type":"attachment","attachment":{"type":"file"}}"#,
            "attachment",
        ),
        (
            r#"{"type":"attachment","attachment":{"type":"queued_command","prompt":"x"}}"#,
            "queued",
        ),
        (r#"{"type":"mode","mode":"x"}"#, "bookkeeping"),
        (r#"{"type":"hologram"}"#, "unknown"),
        (r#"{"type":null}"#, "unknown"),
        (r#"{"type":7}"#, "unknown"),
        (r#"{}"#, "unknown"),
    ] {
        assert_eq!(kind_name(&only(line).kind), kind, "{line}");
    }
}

#[test]
fn a_sidechain_line_keeps_its_kind_and_is_marked() {
    for kind in ["user", "assistant"] {
        let entry = only(&format!(
            r#"{{"type":"{kind}","isSidechain":true,"agentId":"a1","message":{{"role":"{kind}","content":"x"}}}}"#
        ));
        assert!(entry.sidechain);
        assert_eq!(entry.agent.as_deref(), Some("a1"));
        assert_eq!(kind_name(&entry.kind), kind);
    }
}

#[test]
fn the_time_on_top_counts_before_the_one_in_the_message() {
    let at = |line: &str| only(line).at;
    let top = r#""timestamp":"2025-01-15T10:00:05Z""#;
    let inner = r#""timestamp":"2025-01-15T11:11:11Z""#;
    assert_eq!(
        at(&format!(
            r#"{{{top},"message":{{"role":"assistant",{inner}}}}}"#
        )),
        Time::parse("2025-01-15T10:00:05Z")
    );
    assert_eq!(
        at(&format!(r#"{{"message":{{"role":"assistant",{inner}}}}}"#)),
        Time::parse("2025-01-15T11:11:11Z")
    );
    assert_eq!(at(r#"{"message":{"role":"assistant"}}"#), None);
    assert_eq!(
        at(r#"{"timestamp":1736935205,"message":{"role":"assistant"}}"#),
        None
    );
}

#[test]
fn a_reply_without_a_model_has_none() {
    let entry = only(r#"{"type":"assistant","message":{"role":"assistant","content":"x"}}"#);
    assert_eq!(entry.message.model, None);
}

#[test]
fn queue_operations_of_all_four_kinds_are_known() {
    for operation in ["enqueue", "dequeue", "remove", "popAll"] {
        let entry = only(&format!(
            r#"{{"type":"queue-operation","operation":"{operation}","sessionId":"s"}}"#
        ));
        assert_eq!(entry.label, format!("queue-operation/{operation}"));
        assert!(entry.unknown.is_empty());
        assert!(matches!(
            entry.detail,
            Some(LineDetail::Queue { text: None, .. })
        ));
    }
}

#[test]
fn lines_without_uuid_session_or_time_are_whole_lines() {
    let entry = only(r#"{"type":"summary","summary":"S","leafUuid":"l"}"#);
    assert_eq!((entry.uuid, entry.session, entry.at), (None, None, None));
    assert!(entry.unknown.is_empty());
}
