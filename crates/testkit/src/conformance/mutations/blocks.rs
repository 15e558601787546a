//! How blocks are spread over lines, and blocks of unusual content.

use super::{Mutation, mutation};
use crate::conformance::transcript::{Line, Transcript, blocks};
use serde_json::{Value, json};

pub const ALL: &[Mutation] = &[
    mutation(
        "merge-message",
        "The blocks of one message stand in one line, the chain repaired.",
        |t| merge(t, "U3"),
    ),
    mutation(
        "merge-all",
        "The blocks of every message stand in one line, the chain repaired.",
        |t| {
            for prompt in ["U1", "U2", "result:toolu_R1", "U3", "U4"] {
                merge(t, prompt);
            }
        },
    ),
    mutation(
        "merge-results",
        "Three parallel results stand in one line.",
        merge_results,
    ),
    mutation(
        "merge-message-and-results",
        "Three parallel calls in one line, their results in another.",
        |t| {
            merge(t, "U3");
            merge_results(t);
        },
    ),
    mutation("merge-prompts", "Two prompts follow each other.", |t| {
        let line = t.prompt("U3", 1, "second prompt in a row");
        t.insert_in_chain("U3", line);
    }),
    mutation(
        "split-ids",
        "Every assistant line has a message id of its own.",
        |t| {
            let mut n = 0;
            t.edit_chain(|v| {
                if v["type"] == "assistant" {
                    n += 1;
                    v["message"]["id"] = format!("msg_own_{n}").into();
                }
            });
        },
    ),
    mutation(
        "split-ids-parallel",
        "Three parallel calls have message ids of their own.",
        |t| {
            for id in ["P1", "P2", "P3"] {
                t.edit(&format!("use:toolu_{id}"), |v| {
                    v["message"]["id"] = format!("msg_own_{id}").into()
                });
            }
        },
    ),
    mutation(
        "one-id",
        "All assistant lines have the same message id.",
        |t| t.edit_all("assistant", |v| v["message"]["id"] = "msg_one".into()),
    ),
    mutation(
        "id-reused",
        "Two answers far apart have the same message id.",
        |t| {
            let id = t.get("A1")["message"]["id"].clone();
            t.edit("A7", |v| v["message"]["id"] = id);
        },
    ),
    mutation(
        "linear-results",
        "Parallel results hang on each other in a row.",
        linear,
    ),
    mutation(
        "tree-results",
        "Parallel results hang on their own calls.",
        |t| {
            for id in ["P1", "P2", "P3"] {
                let parent = t.uuid(&format!("use:toolu_{id}"));
                t.set(&format!("result:toolu_{id}"), "parentUuid", parent);
            }
        },
    ),
    mutation("text-empty", "An answer is an empty text.", |t| {
        text(t, "A4", "")
    }),
    mutation("text-blank", "An answer is spaces.", |t| {
        text(t, "A4", "  \n ")
    }),
    mutation(
        "text-empty-before-call",
        "The text before a call is empty.",
        |t| text(t, "A2", ""),
    ),
    mutation(
        "text-empty-last",
        "The last answer is an empty text.",
        |t| text(t, "A7", ""),
    ),
    mutation("text-blank-last", "The last answer is spaces.", |t| {
        text(t, "A7", "  ")
    }),
    mutation(
        "text-trailing-space",
        "The last answer ends with spaces.",
        |t| text(t, "A7", "A7 with spaces  \n"),
    ),
    mutation("prompt-empty", "A prompt is the empty string.", |t| {
        t.edit("U3", |v| v["message"]["content"] = "".into())
    }),
    mutation("prompt-blank", "A prompt is spaces.", |t| {
        t.edit("U3", |v| v["message"]["content"] = "  ".into())
    }),
    mutation(
        "prompt-empty-text",
        "A prompt is an empty text block.",
        |t| content(t, "U3", json!([{"type": "text", "text": ""}])),
    ),
    mutation("prompt-no-blocks", "A prompt has no blocks.", |t| {
        content(t, "U3", json!([]))
    }),
    mutation(
        "prompt-blocks",
        "A prompt is an array with two texts.",
        |t| {
            content(
                t,
                "U3",
                json!([{"type": "text", "text": "U3 one"}, {"type": "text", "text": "U3 two"}]),
            )
        },
    ),
    mutation("prompt-null", "A prompt's content is null.", |t| {
        content(t, "U3", Value::Null)
    }),
    mutation("answer-no-blocks", "An answer has no blocks.", |t| {
        content(t, "A4", json!([]))
    }),
    mutation("answer-string", "An answer's content is a string.", |t| {
        content(t, "A4", json!("A4 as string"))
    }),
    mutation(
        "answer-no-blocks-last",
        "The last answer has no blocks.",
        |t| content(t, "A7", json!([])),
    ),
    mutation("thinking-only", "An answer is only thinking.", |t| {
        content(t, "A4", thinking("lone thought"))
    }),
    mutation(
        "thinking-only-last",
        "The last answer is only thinking.",
        |t| content(t, "A7", thinking("lone thought")),
    ),
    mutation(
        "thinking-after-text",
        "Thinking follows the text of an answer.",
        |t| {
            let mut line = t.answer("A4", 1, thinking("late thought"));
            line["message"]["id"] = t.get("A4")["message"]["id"].clone();
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "thinking-after-text-last",
        "Thinking ends the last answer.",
        |t| {
            let mut line = t.answer("A7", 1, thinking("late thought"));
            line["message"]["id"] = t.get("A7")["message"]["id"].clone();
            line["timestamp"] = "2031-01-01T00:00:00.000Z".into();
            t.insert_in_chain("A7", line);
        },
    ),
    mutation("thinking-empty", "A thinking block has no text.", |t| {
        content(t, "T2", thinking(""))
    }),
    mutation(
        "thinking-unsigned",
        "A thinking block has no signature.",
        |t| content(t, "T2", json!([{"type": "thinking", "thinking": "T2"}])),
    ),
    mutation("thinking-redacted", "Thinking is redacted.", |t| {
        content(
            t,
            "T2",
            json!([{"type": "redacted_thinking", "data": "c2VjcmV0"}]),
        )
    }),
    mutation(
        "block-unknown",
        "An answer is a block of unknown type.",
        |t| content(t, "A4", json!([{"type": "novelty", "text": "new kind"}])),
    ),
    mutation(
        "block-server-tool",
        "An answer holds a server tool call and its result.",
        |t| {
            content(
                t,
                "A4",
                json!([
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "text", "text": "A4 found"}]),
            )
        },
    ),
    mutation("image-prompt", "A prompt holds an image.", |t| {
        content(t, "U3", json!([{"type": "text", "text": "U3"}, image()]))
    }),
    mutation("image-prompt-alone", "A prompt is an image.", |t| {
        content(t, "U4", json!([image()]))
    }),
    mutation("image-result", "A result holds an image.", |t| {
        result(t, json!([image()]))
    }),
    mutation(
        "image-result-text",
        "A result holds a text and an image.",
        |t| result(t, json!([{"type": "text", "text": "see"}, image()])),
    ),
    mutation(
        "image-result-error",
        "A failed result holds an image.",
        |t| {
            result(t, json!([{"type": "text", "text": "see"}, image()]));
            t.edit("result:toolu_R1", |v| {
                v["message"]["content"][0]["is_error"] = true.into()
            });
        },
    ),
    mutation("document-prompt", "A prompt holds a document.", |t| {
        content(
            t,
            "U3",
            json!([{"type": "text", "text": "U3"}, {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}]),
        )
    }),
    mutation("result-no-content", "A result has no content.", |t| {
        t.edit("result:toolu_R1", |v| {
            if let Some(b) = v["message"]["content"][0].as_object_mut() {
                b.remove("content");
            }
        })
    }),
    mutation("result-empty", "A result is the empty string.", |t| {
        result(t, json!(""))
    }),
    mutation("result-empty-blocks", "A result has no blocks.", |t| {
        result(t, json!([]))
    }),
    mutation("result-error", "A result is an error.", |t| {
        t.edit("result:toolu_R1", |v| {
            v["message"]["content"][0]["is_error"] = true.into()
        })
    }),
    mutation("input-string", "A call's input is a string of JSON.", |t| {
        t.edit("use:toolu_R1", |v| {
            v["message"]["content"][0]["input"] = "{\"file_path\":\"/x\"}".into()
        })
    }),
    mutation("input-missing", "A call has no input.", |t| {
        t.edit("use:toolu_R1", |v| {
            if let Some(b) = v["message"]["content"][0].as_object_mut() {
                b.remove("input");
            }
        })
    }),
    mutation("tool-unknown", "A call names a tool nobody has.", |t| {
        t.edit("use:toolu_R1", |v| {
            v["message"]["content"][0]["name"] = "mcp__gone__tool".into()
        })
    }),
];

fn content(transcript: &mut Transcript, what: &str, content: Value) {
    transcript.edit(what, |value| value["message"]["content"] = content);
}

fn text(transcript: &mut Transcript, what: &str, text: &str) {
    content(transcript, what, json!([{"type": "text", "text": text}]));
}

fn result(transcript: &mut Transcript, content: Value) {
    transcript.edit("result:toolu_R1", |value| {
        value["message"]["content"][0]["content"] = content
    });
}

fn thinking(text: &str) -> Value {
    json!([{"type": "thinking", "thinking": text, "signature": "c2ln"}])
}

/// One pixel.
fn image() -> Value {
    let data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}})
}

/// Moves the blocks of the message after this line into its last line.
fn merge(transcript: &mut Transcript, before: &str) {
    let start = transcript.find(before);
    let after = transcript.values().skip(start + 1);
    let Some(id) = after
        .filter(|v| v["type"] == "assistant")
        .map(|v| v["message"]["id"].clone())
        .next()
    else {
        return;
    };
    let of_message = |v: &Value| v["type"] == "assistant" && v["message"]["id"] == id;
    let all: Vec<Value> = transcript
        .values()
        .filter(|v| of_message(v))
        .flat_map(blocks)
        .collect();
    let Some(last) = transcript
        .values()
        .rfind(|v| of_message(v))
        .map(|v| v["uuid"].clone())
    else {
        return;
    };
    let earlier: Vec<Value> = transcript
        .values()
        .filter(|v| of_message(v))
        .map(|v| v["uuid"].clone())
        .collect();
    // Results that hung on an earlier block now hang on the one line.
    transcript.edit_all("user", |v| {
        if earlier.contains(&v["parentUuid"]) {
            v["parentUuid"] = last.clone();
        }
    });
    transcript.drop_relinked(|v| of_message(v) && v["uuid"] != last);
    for value in transcript.values_mut().filter(|v| v["uuid"] == last) {
        value["message"]["content"] = all.clone().into();
    }
}

fn merge_results(transcript: &mut Transcript) {
    let of_turn = |v: &Value| {
        blocks(v).iter().any(|b| {
            b["tool_use_id"]
                .as_str()
                .is_some_and(|id| id.starts_with("toolu_P"))
        })
    };
    let all: Vec<Value> = transcript
        .values()
        .filter(|v| of_turn(v))
        .flat_map(blocks)
        .collect();
    let last = transcript.uuid("result:toolu_P2");
    let parent = transcript.uuid("use:toolu_P3");
    transcript.drop_relinked(|v| of_turn(v) && v["uuid"] != last);
    for value in transcript.values_mut().filter(|v| v["uuid"] == last) {
        value["message"]["content"] = all.clone().into();
        value["parentUuid"] = parent.clone().into();
    }
}

fn linear(transcript: &mut Transcript) {
    let mut parent = transcript.uuid("use:toolu_P3");
    for line in &mut transcript.lines {
        let Line::Json(value) = line else { continue };
        if blocks(value).iter().any(|b| {
            b["tool_use_id"]
                .as_str()
                .is_some_and(|id| id.starts_with("toolu_P"))
        }) {
            value["parentUuid"] = parent.into();
            parent = value["uuid"].as_str().unwrap_or_default().to_owned();
        }
    }
}
