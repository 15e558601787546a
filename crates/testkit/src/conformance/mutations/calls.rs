//! Calls without results, results without calls, and either of them twice.

use super::{Mutation, mutation};
use crate::conformance::transcript::{Line, Transcript, fresh_uuid};
use serde_json::{Value, json};

pub const ALL: &[Mutation] = &[
    mutation(
        "orphan-result",
        "A result of an unknown call follows an answer.",
        |t| {
            let line = result(t, "A4", 1, "toolu_gone");
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "orphan-result-beside-text",
        "A prompt holds a result of an unknown call and a text.",
        |t| {
            t.edit("U3", |v| v["message"]["content"] = json!([
        {"type": "tool_result", "tool_use_id": "toolu_gone", "content": "lost"}, {"type": "text", "text": "U3 with orphan"}]))
        },
    ),
    mutation(
        "orphan-result-beside-result",
        "A line holds a good result and one of an unknown call.",
        |t| {
            t.edit("result:toolu_R1", |v| if let Some(list) = v["message"]["content"].as_array_mut() {
        list.push(json!({"type": "tool_result", "tool_use_id": "toolu_gone", "content": "lost"})); })
        },
    ),
    mutation(
        "orphan-result-first",
        "The conversation starts with a result of an unknown call.",
        |t| {
            let mut line = result(t, "U1", 1, "toolu_gone");
            line["parentUuid"] = Value::Null;
            let own = line["uuid"].clone();
            t.edit("U1", |v| v["parentUuid"] = own);
            let at = t.find("U1");
            t.lines.insert(at, Line::Json(line));
        },
    ),
    mutation(
        "orphan-result-last",
        "The conversation ends with a result of an unknown call.",
        |t| {
            let mut line = result(t, "A7", 1, "toolu_gone");
            line["timestamp"] = NEWER.into();
            t.push(line);
        },
    ),
    mutation(
        "orphan-use",
        "An answer in the middle holds a call without a result.",
        |t| {
            let line = call(t, "A4", 1, "toolu_new", "own");
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "orphan-use-in-message",
        "The message before a prompt gets a call without a result.",
        |t| {
            let mut line = call(t, "A4", 1, "toolu_new", "own");
            line["message"]["id"] = t.get("A4")["message"]["id"].clone();
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "orphan-use-only",
        "An answer in the middle is only a call without a result.",
        |t| {
            t.edit("A4", |v| v["message"]["content"] = json!([{"type": "tool_use", "id": "toolu_new", "name": "Bash", "input": {"command": "ls"}}]))
        },
    ),
    mutation(
        "orphan-use-last",
        "The last answer holds a call without a result.",
        |t| {
            let mut line = call(t, "A7", 1, "toolu_new", "own");
            line["message"]["id"] = t.get("A7")["message"]["id"].clone();
            line["timestamp"] = NEWER.into();
            t.push(line);
        },
    ),
    mutation(
        "orphan-use-last-alone",
        "The conversation ends with a message that is only a call.",
        |t| {
            let mut line = call(t, "A7", 1, "toolu_new", "own");
            line["timestamp"] = NEWER.into();
            t.push(line);
        },
    ),
    mutation(
        "orphan-use-then-prompt",
        "After a call without a result comes a prompt at the end.",
        |t| {
            let mut line = call(t, "A7", 1, "toolu_new", "own");
            line["timestamp"] = NEWER.into();
            t.push(line);
            let mut prompt = t.prompt("A7", 2, "after the call");
            prompt["parentUuid"] = fresh_uuid(1).into();
            prompt["timestamp"] = "2031-01-01T00:00:02.000Z".into();
            t.push(prompt);
        },
    ),
    mutation(
        "duplicate-pair",
        "A second message repeats a call id, with its result.",
        |t| {
            let one = call(t, "A4", 1, "toolu_R1", "own");
            t.insert_in_chain("A4", one);
            let two = result(t, "A4", 2, "toolu_R1");
            t.insert_after_uuid(&fresh_uuid(1), two);
        },
    ),
    mutation(
        "duplicate-use",
        "A message holds the same call twice.",
        |t| {
            let mut line = t.get("use:toolu_R1").clone();
            line["uuid"] = fresh_uuid(1).into();
            t.insert_in_chain("use:toolu_R1", line);
        },
    ),
    mutation(
        "duplicate-use-other-message",
        "A later message repeats a call without a result.",
        |t| {
            let line = call(t, "A4", 1, "toolu_R1", "own");
            t.insert_in_chain("A4", line);
        },
    ),
    mutation("duplicate-result", "A result stands twice.", |t| {
        let mut line = t.get("result:toolu_R1").clone();
        line["uuid"] = fresh_uuid(1).into();
        line["message"]["content"][0]["content"] = "second result".into();
        t.insert_in_chain("result:toolu_R1", line);
    }),
    mutation(
        "duplicate-result-later",
        "A result stands again after the next answer.",
        |t| {
            let line = result(t, "A4", 1, "toolu_R1");
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "duplicate-uuid",
        "A later line has the uuid of an earlier one and another text.",
        |t| {
            let mut line = t.get("A4").clone();
            line["message"]["content"] = json!([{"type": "text", "text": "A4 again"}]);
            t.push(line);
        },
    ),
    mutation(
        "duplicate-uuid-adjacent",
        "The next line has the same uuid and another text.",
        |t| {
            let mut line = t.get("A4").clone();
            line["message"]["content"] = json!([{"type": "text", "text": "A4 again"}]);
            let at = t.find("A4");
            t.lines.insert(at + 1, Line::Json(line));
        },
    ),
    mutation(
        "duplicate-everything",
        "Every line stands twice, one copy of the file after the other.",
        |t| {
            let copy = t.lines.clone();
            t.lines.extend(copy);
        },
    ),
    mutation(
        "results-reversed",
        "Parallel results stand in reversed order in the file.",
        |t| {
            let (a, b) = (t.find("result:toolu_P1"), t.find("result:toolu_P2"));
            if b < t.lines.len() {
                t.lines.swap(a, b);
            }
        },
    ),
    mutation(
        "result-before-use",
        "A result stands before its call in the chain.",
        result_before_use,
    ),
    mutation("result-late", "A result comes one message too late.", |t| {
        let line = t.get("result:toolu_R1").clone();
        let own = t.uuid("result:toolu_R1");
        t.drop_relinked(|v| v["uuid"] == own);
        t.insert_in_chain("A4", line);
    }),
    mutation(
        "result-with-text",
        "A line holds a result and a text.",
        |t| {
            t.edit("result:toolu_R1", |v| {
                if let Some(list) = v["message"]["content"].as_array_mut() {
                    list.push(json!({"type": "text", "text": "beside the result"}));
                }
            })
        },
    ),
    mutation(
        "text-before-result",
        "A line holds a text and then a result.",
        |t| {
            t.edit("result:toolu_R1", |v| {
                if let Some(list) = v["message"]["content"].as_array_mut() {
                    list.insert(0, json!({"type": "text", "text": "before the result"}));
                }
            })
        },
    ),
    mutation(
        "prompt-between-use-and-result",
        "A prompt stands between a call and its result.",
        |t| {
            let line = t.prompt("use:toolu_R1", 1, "in between");
            t.insert_in_chain("use:toolu_R1", line);
        },
    ),
];

const NEWER: &str = "2031-01-01T00:00:00.000Z";

fn result(transcript: &Transcript, after: &str, number: u32, id: &str) -> Value {
    let mut line = transcript.prompt(after, number, "");
    line["message"]["content"] =
        json!([{"type": "tool_result", "tool_use_id": id, "content": "made result"}]);
    line
}

fn call(transcript: &Transcript, after: &str, number: u32, id: &str, input: &str) -> Value {
    transcript.answer(
        after,
        number,
        json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": input}}]),
    )
}

fn result_before_use(transcript: &mut Transcript) {
    let (call, result) = (
        transcript.uuid("use:toolu_R1"),
        transcript.uuid("result:toolu_R1"),
    );
    let before = transcript.get("use:toolu_R1")["parentUuid"].clone();
    transcript.edit_chain(|v| {
        if v["parentUuid"] == result {
            v["parentUuid"] = call.clone().into();
        }
    });
    transcript.set("use:toolu_R1", "parentUuid", result);
    transcript.set("result:toolu_R1", "parentUuid", before);
    let (a, b) = (
        transcript.find("use:toolu_R1"),
        transcript.find("result:toolu_R1"),
    );
    if b < transcript.lines.len() {
        transcript.lines.swap(a, b);
    }
}
