//! Lists of tasks, and the tools that only pass something on.

use serde_json::json;
use unspool_agent::tool_host::ToolHost;

use crate::host::{Session, text};

#[test]
fn tasks_are_made_changed_and_listed() {
    let session = Session::new();
    let outcome = session.call(
        "TaskCreate",
        json!({"subject": "task one", "description": "d1", "activeForm": "Doing one"}),
    );
    assert_eq!(text(&outcome), "Task #1 created successfully: task one");
    assert_eq!(
        outcome.result,
        json!({"task": {"id": "1", "subject": "task one", "description": "d1"}})
    );
    let outcome = session.call(
        "TaskUpdate",
        json!({"taskId": "1", "status": "in_progress"}),
    );
    assert_eq!(text(&outcome), "Updated task #1 status");
    assert_eq!(
        outcome.result,
        json!({"success": true, "taskId": "1", "updatedFields": ["status"],
               "statusChange": {"from": "pending", "to": "in_progress"}})
    );
    session.call("TaskCreate", json!({"subject": "two", "description": "d2"}));
    session.call(
        "TaskUpdate",
        json!({"taskId": "2", "addBlockedBy": ["1"], "owner": "me"}),
    );
    assert_eq!(
        text(&session.call("TaskList", json!({}))),
        "#1 [in_progress] task one\n#2 [pending] two (me) [blocked by #1]"
    );
    assert!(text(&session.call("TaskGet", json!({"taskId": "1"}))).ends_with("Blocks: #2"));
    session.call("TaskUpdate", json!({"taskId": "1", "status": "completed"}));
    assert!(!text(&session.call("TaskList", json!({}))).contains("blocked"));
    session.call("TaskUpdate", json!({"taskId": "1", "status": "deleted"}));
    assert_eq!(
        text(&session.call("TaskList", json!({}))),
        "#2 [pending] two (me)"
    );
    assert_eq!(
        text(&session.call("TaskGet", json!({"taskId": "1"}))),
        "Task not found"
    );
    let outcome = session.call("TaskUpdate", json!({"taskId": "9", "status": "pending"}));
    assert_eq!(outcome.result["success"], false);
}

#[test]
fn the_whole_list_is_replaced_as_older_clients_did() {
    let session = Session::new();
    let todo =
        |status: &str| json!({"content": "first", "status": status, "activeForm": "Doing first"});
    session.call("TodoWrite", json!({"todos": [todo("in_progress")]}));
    let outcome = session.call("TodoWrite", json!({"todos": [todo("completed")]}));
    assert_eq!(
        outcome.result,
        json!({"oldTodos": [todo("in_progress")], "newTodos": [todo("completed")]})
    );
    assert_eq!(session.kept().todos(), [todo("completed")]);
}

#[test]
fn a_skill_is_launched_and_its_text_follows() {
    let session = Session::new();
    let outcome = session.call("Skill", json!({"skill": "labskill", "args": "now"}));
    assert_eq!(text(&outcome), "Launching skill: labskill");
    assert_eq!(
        outcome.result,
        json!({"success": true, "commandName": "labskill"})
    );
    assert_eq!(outcome.also, ["# Lab skill\nnow"]);
    assert!(text(&session.call("Skill", json!({"skill": "no"}))).contains("Unknown skill"));
}

#[test]
fn a_search_gives_links_and_words_in_order() {
    let session = Session::new();
    let outcome = session.call("WebSearch", json!({"query": "what"}));
    assert_eq!(
        text(&outcome),
        "Web search results for query: \"what\"\n\nI look.\n\nLinks: [{\"title\":\"T\",\"url\":\"https://t\"}]\n\nIt is T."
    );
    assert_eq!(outcome.result["results"][1]["tool_use_id"], "s1");
    let both = json!({"query": "what", "allowed_domains": ["a"], "blocked_domains": ["b"]});
    assert!(text(&session.call("WebSearch", both)).contains("Cannot specify both"));
}

#[test]
fn agents_questions_and_plans_are_the_sessions() {
    let session = Session::new();
    let input = json!({"description": "d", "prompt": "go"});
    for name in ["Agent", "Task"] {
        assert_eq!(text(&session.call(name, input.clone())), "agent \"go\"");
    }
    assert_eq!(
        text(&session.call("ExitPlanMode", json!({"plan": "p"}))),
        "agreed"
    );
    let option = json!({"label": "a", "description": "b"});
    let question = json!({"question": "q?", "header": "h", "options": [option, option],
                          "multiSelect": false});
    let outcome = session.call("AskUserQuestion", json!({"questions": [question]}));
    assert_eq!(text(&outcome), "answered");
    let refused = session.call("AskUserQuestion", json!({"questions": []}));
    assert!(text(&refused).contains("InputValidationError"));
}

#[test]
fn nothing_of_this_machine_is_fetched() {
    let session = Session::new();
    for url in [
        "http://localhost:1/",
        "https://127.0.0.1/",
        "http://[::1]/",
        "http://169.254.169.254/latest",
    ] {
        let outcome = session.call("WebFetch", json!({"url": url, "prompt": "?"}));
        assert!(
            text(&outcome).contains("private network"),
            "{url}: {}",
            text(&outcome)
        );
    }
    let outcome = session.call(
        "WebFetch",
        json!({"url": "file:///etc/passwd", "prompt": "?"}),
    );
    assert!(text(&outcome).contains("only http and https"));
}
