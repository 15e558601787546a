//! Lines that are gone, with and without a repair of the chain.

use super::{Mutation, mutation};
use crate::conformance::transcript::{Transcript, blocks};
use serde_json::Value;

pub const ALL: &[Mutation] = &[
    mutation(
        "drop-thinking-relinked",
        "Thinking is removed, the chain repaired.",
        |t| t.drop_relinked(|v| has(v, "thinking")),
    ),
    mutation(
        "drop-thinking",
        "Thinking is removed, the chain left broken.",
        |t| t.drop(|v| has(v, "thinking")),
    ),
    mutation(
        "drop-pair-relinked",
        "A call and its result are removed, the chain repaired.",
        |t| t.drop_relinked(|v| names(v, "toolu_R1")),
    ),
    mutation(
        "drop-pair",
        "A call and its result are removed, the chain left broken.",
        |t| t.drop(|v| names(v, "toolu_R1")),
    ),
    mutation(
        "drop-parallel-pair-relinked",
        "One of three parallel pairs is removed, the chain repaired.",
        |t| t.drop_relinked(|v| names(v, "toolu_P2")),
    ),
    mutation(
        "drop-parallel-pair",
        "One of three parallel pairs is removed, the chain left broken.",
        |t| t.drop(|v| names(v, "toolu_P2")),
    ),
    mutation(
        "drop-use-relinked",
        "A call is removed, its result stays, the chain repaired.",
        |t| t.drop_relinked(|v| names(v, "toolu_R1") && has(v, "tool_use")),
    ),
    mutation(
        "drop-use",
        "A call is removed, its result stays, the chain left broken.",
        |t| t.drop(|v| names(v, "toolu_R1") && has(v, "tool_use")),
    ),
    mutation(
        "drop-result-relinked",
        "A result is removed, its call stays, the chain repaired.",
        |t| t.drop_relinked(|v| names(v, "toolu_R1") && has(v, "tool_result")),
    ),
    mutation(
        "drop-result",
        "A result is removed, its call stays, the chain left broken.",
        |t| t.drop(|v| names(v, "toolu_R1") && has(v, "tool_result")),
    ),
    mutation(
        "drop-parallel-result-relinked",
        "One of three parallel results is removed, the chain repaired.",
        |t| t.drop_relinked(|v| names(v, "toolu_P2") && has(v, "tool_result")),
    ),
    mutation(
        "drop-parallel-use-relinked",
        "One of three parallel calls is removed, the chain repaired.",
        |t| t.drop_relinked(|v| names(v, "toolu_P2") && has(v, "tool_use")),
    ),
    mutation(
        "drop-first-relinked",
        "The first prompt is removed, the chain repaired.",
        |t| {
            let own = t.uuid("U1");
            t.drop_relinked(|v| v["uuid"] == own);
        },
    ),
    mutation(
        "drop-first",
        "The first prompt is removed, the chain left broken.",
        |t| {
            let own = t.uuid("U1");
            t.drop(|v| v["uuid"] == own);
        },
    ),
    mutation(
        "drop-prompt-relinked",
        "The third prompt is removed, the chain repaired.",
        |t| {
            let own = t.uuid("U3");
            t.drop_relinked(|v| v["uuid"] == own);
        },
    ),
    mutation(
        "drop-answer-relinked",
        "The answer before the third prompt is removed, the chain repaired.",
        |t| {
            let own = t.uuid("A4");
            t.drop_relinked(|v| v["uuid"] == own);
        },
    ),
    mutation(
        "drop-answer",
        "The answer before the third prompt is removed, the chain left broken.",
        |t| {
            let own = t.uuid("A4");
            t.drop(|v| v["uuid"] == own);
        },
    ),
    mutation("drop-last", "The last answer is removed.", |t| {
        let own = t.uuid("A7");
        t.drop(|v| v["uuid"] == own);
    }),
    mutation(
        "drop-users-relinked",
        "All prompts are removed, the chain repaired.",
        |t| t.drop_relinked(|v| v["type"] == "user" && !has(v, "tool_result")),
    ),
    mutation(
        "drop-assistants-relinked",
        "All answers are removed, the chain repaired.",
        |t| t.drop_relinked(|v| v["type"] == "assistant"),
    ),
    mutation(
        "drop-attachments-relinked",
        "All attachments are removed, the chain repaired.",
        |t| t.drop_relinked(|v| v["type"] == "attachment"),
    ),
    mutation(
        "drop-attachments",
        "All attachments are removed, the chain left broken.",
        |t| t.drop(|v| v["type"] == "attachment"),
    ),
    mutation(
        "drop-snapshots-relinked",
        "Prompt snapshots are removed, the chain repaired.",
        |t| t.drop_relinked(|v| v["attachment"]["type"] == "prompt_snapshot"),
    ),
    mutation(
        "drop-bookkeeping",
        "All lines without a uuid are removed.",
        |t| t.drop(|v| !v["uuid"].is_string()),
    ),
    mutation(
        "end-at-prompt",
        "The file ends after the third prompt.",
        |t| t.cut_after("U3"),
    ),
    mutation(
        "end-at-thinking",
        "The file ends after a thinking block.",
        |t| t.cut_after("T2"),
    ),
    mutation(
        "end-at-text",
        "The file ends after a text that a call should follow.",
        |t| t.cut_after("A2"),
    ),
    mutation("end-at-use", "The file ends after a call.", |t| {
        t.cut_after("use:toolu_R1")
    }),
    mutation("end-at-result", "The file ends after a result.", |t| {
        t.cut_after("result:toolu_R1")
    }),
    mutation(
        "end-at-first-parallel-use",
        "The file ends after the first of three parallel calls.",
        |t| t.cut_after("use:toolu_P1"),
    ),
    mutation(
        "end-at-last-parallel-use",
        "The file ends after the last of three parallel calls.",
        |t| t.cut_after("use:toolu_P3"),
    ),
    mutation(
        "end-at-first-parallel-result",
        "The file ends after the first of three parallel results.",
        |t| t.cut_after("result:toolu_P1"),
    ),
    mutation(
        "end-at-last-parallel-result",
        "The file ends after the last of three parallel results.",
        |t| t.cut_after("result:toolu_P2"),
    ),
    mutation("end-at-first-prompt", "The file holds one prompt.", |t| {
        t.cut_after("U1")
    }),
    mutation(
        "only-bookkeeping",
        "The file holds no line with a uuid.",
        |t| t.drop(|v| v["uuid"].is_string()),
    ),
    mutation(
        "only-attachments",
        "The file holds no user and assistant lines.",
        |t| t.drop(|v| v["type"] == "user" || v["type"] == "assistant"),
    ),
    mutation("empty-file", "The file is empty.", |t: &mut Transcript| {
        t.lines.clear()
    }),
];

fn has(value: &Value, kind: &str) -> bool {
    value["uuid"].is_string() && blocks(value).iter().any(|block| block["type"] == kind)
}

fn names(value: &Value, id: &str) -> bool {
    let names = |block: &Value| block["id"] == id || block["tool_use_id"] == id;
    value["uuid"].is_string() && blocks(value).iter().any(names)
}
