//! Calls and results find each other by id, and by nothing else.

use unspool_model::graph;

use crate::make::{Read, call, read, reply, result, text, user};

fn body(read: &Read, id: &str) -> String {
    let result = read.call(id).result.as_ref().unwrap();
    read.body(result.record, result.block)
}

#[test]
fn a_result_goes_to_the_call_it_names() {
    let read = read(&[
        reply(
            "a",
            "",
            "10:00:00",
            "m",
            &format!("[{}]", call("t1", "Read", "{}")),
        ),
        reply(
            "b",
            "a",
            "10:00:01",
            "m",
            &format!("[{}]", call("t2", "Bash", r#"{"command":"x"}"#)),
        ),
        user("c", "b", "10:00:02", &result("t2", r#""second""#)),
        user("d", "a", "10:00:03", &result("t1", r#""first""#)),
    ]);
    assert_eq!(body(&read, "t1"), "\"first\"");
    assert_eq!(body(&read, "t2"), "\"second\"");
}

#[test]
fn a_call_without_result_has_none() {
    let read = read(&[reply(
        "a",
        "",
        "10:00:00",
        "m",
        &format!("[{}]", call("t1", "Read", "{}")),
    )]);
    assert!(read.call("t1").result.is_none());
}

#[test]
fn the_result_of_one_call_leaves_the_other_open() {
    let read = read(&[
        reply(
            "a",
            "",
            "10:00:00",
            "m",
            &format!(
                "[{},{}]",
                call("t1", "Read", "{}"),
                call("t2", "Bash", "{}")
            ),
        ),
        user("b", "a", "10:00:01", &result("t1", r#""x""#)),
    ]);
    assert!(read.call("t1").result.is_some());
    assert!(read.call("t2").result.is_none());
}

#[test]
fn only_is_error_true_is_an_error() {
    for (flag, wanted) in [
        (r#","is_error":true"#, true),
        (r#","is_error":false"#, false),
        (r#","is_error":null"#, false),
        ("", false),
    ] {
        let answer =
            format!(r#"[{{"type":"tool_result","tool_use_id":"t1","content":"x"{flag}}}]"#);
        let read = read(&[
            reply(
                "a",
                "",
                "10:00:00",
                "m",
                &format!("[{}]", call("t1", "Read", "{}")),
            ),
            user("b", "a", "10:00:01", &answer),
        ]);
        assert_eq!(
            read.call("t1").result.as_ref().unwrap().is_error,
            wanted,
            "{flag}"
        );
    }
}

#[test]
fn results_of_any_shape_are_kept() {
    for shape in [
        r#""text""#,
        r#""""#,
        "null",
        r#"[{"type":"text","text":"x"}]"#,
        r#"[{"type":"image","source":{"type":"base64","data":"AA=="}}]"#,
        r#"[{"type":"tool_reference","tool_name":"X"}]"#,
        "[]",
    ] {
        let read = read(&[
            reply(
                "a",
                "",
                "10:00:00",
                "m",
                &format!("[{}]", call("t1", "Read", "{}")),
            ),
            user("b", "a", "10:00:01", &result("t1", shape)),
        ]);
        assert_eq!(body(&read, "t1"), shape);
        assert_eq!(read.faults(), []);
    }
}

#[test]
fn structured_results_of_any_shape_are_read_over() {
    for shape in [
        r#""Error: x""#,
        "{}",
        "[]",
        r#"[{"type":"text","text":"x"}]"#,
        "null",
        "5",
    ] {
        let line = user("b", "a", "10:00:01", &result("t1", r#""x""#)).replacen(
            "{\"type\"",
            &format!("{{\"toolUseResult\":{shape},\"type\""),
            1,
        );
        let read = read(&[
            reply(
                "a",
                "",
                "10:00:00",
                "m",
                &format!("[{}]", call("t1", "Read", "{}")),
            ),
            line,
        ]);
        assert!(read.call("t1").result.is_some(), "{shape}");
        assert_eq!(read.faults(), [], "{shape}");
    }
}

#[test]
fn a_result_written_before_its_call_still_finds_it() {
    let read = read(&[
        user("b", "a", "10:00:01", &result("t1", r#""x""#)),
        reply(
            "a",
            "",
            "10:00:00",
            "m",
            &format!("[{}]", call("t1", "Read", "{}")),
        ),
    ]);
    assert_eq!(body(&read, "t1"), "\"x\"");
    assert_eq!(read.session.orphan_results(), []);
}

#[test]
fn a_result_without_call_is_an_orphan_and_opens_no_turn() {
    let read = read(&[user("a", "", "10:00:00", &result("t9", r#""x""#))]);
    assert_eq!(read.session.orphan_results().len(), 1);
    assert_eq!((read.session.turns.len(), read.session.calls.len()), (0, 0));
}

#[test]
fn a_second_result_for_one_call_is_reported_and_the_first_counts() {
    let read = read(&[
        reply(
            "a",
            "",
            "10:00:00",
            "m",
            &format!("[{}]", call("t1", "Read", "{}")),
        ),
        user("b", "a", "10:00:01", &result("t1", r#""first""#)),
        user("c", "b", "10:00:02", &result("t1", r#""second""#)),
    ]);
    assert_eq!(body(&read, "t1"), "\"first\"");
    assert_eq!(read.faults(), [(3, "duplicate_call")]);
}

#[test]
fn parallel_calls_whose_results_hang_on_their_own_lines_are_all_live() {
    // From 2.1.0 on: a walk over parents from the end passes only one of the two results.
    let read = read(&[
        user("p", "", "10:00:00", r#""go""#),
        reply(
            "a",
            "p",
            "10:00:01",
            "m",
            &format!("[{}]", call("t1", "Read", "{}")),
        ),
        reply(
            "b",
            "a",
            "10:00:02",
            "m",
            &format!("[{}]", call("t2", "Read", r#"{"x":1}"#)),
        ),
        user("ra", "a", "10:00:03", &result("t1", r#""1""#)),
        user("rb", "b", "10:00:04", &result("t2", r#""2""#)),
        reply("c", "rb", "10:00:05", "m2", &format!("[{}]", text("done"))),
    ]);
    let links = graph::links(&read.session);
    assert_eq!(links.ancestors(5).count(), 5, "the walk misses one");
    let live = graph::live(&read.session, &links);
    assert!((0..read.session.records.len() as u32).all(|at| live.contains(at)));
    assert_eq!(read.session.turns.len(), 1);
}

#[test]
fn a_task_names_its_agent_through_its_result() {
    let line = user(
        "b",
        "a",
        "10:00:01",
        &result("t1", r#"[{"type":"text","text":"done"}]"#),
    )
    .replacen(
        "{\"type\"",
        r#"{"toolUseResult":{"status":"completed","agentId":"a1b2c3d","totalTokens":5},"type""#,
        1,
    );
    let read = read(&[
        reply(
            "a",
            "",
            "10:00:00",
            "m",
            &format!("[{}]", call("t1", "Task", r#"{"description":"d"}"#)),
        ),
        line,
    ]);
    assert_eq!(read.session.agent_of(read.call("t1")), Some("a1b2c3d"));
}

#[test]
fn several_results_on_one_line_each_find_their_call() {
    let read = read(&[
        reply(
            "a",
            "",
            "10:00:00",
            "m",
            &format!(
                "[{},{}]",
                call("t1", "Read", "{}"),
                call("t2", "Read", "{}")
            ),
        ),
        user(
            "b",
            "a",
            "10:00:01",
            r#"[{"type":"tool_result","tool_use_id":"t2","content":"two"},{"type":"tool_result","tool_use_id":"t1","content":"one"}]"#,
        ),
    ]);
    assert_eq!(body(&read, "t1"), "\"one\"");
    assert_eq!(body(&read, "t2"), "\"two\"");
}
