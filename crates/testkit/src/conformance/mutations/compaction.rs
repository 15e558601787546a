//! Boundaries, summaries and messages kept across them.

use super::{Mutation, mutation};
use crate::conformance::transcript::{Line, Transcript, fresh_uuid};
use serde_json::{Value, json};

pub const ALL: &[Mutation] = &[
    mutation(
        "compact",
        "A boundary and a summary stand before the third prompt.",
        |t| compact(t, Value::Null),
    ),
    mutation(
        "compact-preserved",
        "The boundary keeps the end of the second turn.",
        |t| {
            let kept = kept(t, &["A4"]);
            compact(t, kept);
        },
    ),
    mutation(
        "compact-preserved-turn",
        "The boundary keeps the whole second turn.",
        |t| {
            let kept = kept(
                t,
                &[
                    "U2",
                    "T2",
                    "A2",
                    "use:toolu_R1",
                    "result:toolu_R1",
                    "T3",
                    "A3",
                    "use:toolu_B1",
                    "result:toolu_B1",
                    "A4",
                ],
            );
            compact(t, kept);
        },
    ),
    mutation(
        "compact-preserved-gap",
        "The boundary keeps the second prompt and its last answer.",
        |t| {
            let kept = kept(t, &["U2", "A4"]);
            compact(t, kept);
        },
    ),
    mutation(
        "compact-preserved-unknown",
        "The boundary keeps one known and one unknown line.",
        |t| {
            let mut kept = kept(t, &["A4"]);
            add(&mut kept, &fresh_uuid(999));
            compact(t, kept);
        },
    ),
    mutation(
        "compact-preserved-all-unknown",
        "The boundary keeps a line that is not there.",
        |t| {
            let mut kept = kept(t, &[]);
            add(&mut kept, &fresh_uuid(999));
            compact(t, kept);
        },
    ),
    mutation(
        "compact-preserved-result-only",
        "The boundary keeps a result without its call.",
        |t| {
            let kept = kept(t, &["result:toolu_B1", "A4"]);
            compact(t, kept);
        },
    ),
    mutation(
        "compact-preserved-other-anchor",
        "The kept lines are anchored at the boundary itself.",
        |t| {
            let mut kept = kept(t, &["A4"]);
            for part in ["preservedSegment", "preservedMessages"] {
                kept[part]["anchorUuid"] = fresh_uuid(1).into();
            }
            compact(t, kept);
        },
    ),
    mutation(
        "compact-preserved-unknown-anchor",
        "The kept lines have an unknown anchor.",
        |t| {
            let mut kept = kept(t, &["A4"]);
            for part in ["preservedSegment", "preservedMessages"] {
                kept[part]["anchorUuid"] = fresh_uuid(998).into();
            }
            compact(t, kept);
        },
    ),
    mutation(
        "compact-segment-only",
        "The boundary has a preserved segment and no list.",
        |t| {
            let mut kept = kept(t, &["A3", "use:toolu_B1", "result:toolu_B1", "A4"]);
            if let Some(fields) = kept.as_object_mut() {
                fields.remove("preservedMessages");
            }
            compact(t, kept);
        },
    ),
    mutation(
        "compact-list-only",
        "The boundary has a preserved list and no segment.",
        |t| {
            let mut kept = kept(t, &["A4"]);
            if let Some(fields) = kept.as_object_mut() {
                fields.remove("preservedSegment");
            }
            compact(t, kept);
        },
    ),
    mutation("compact-no-summary", "A boundary without a summary.", |t| {
        compact(t, Value::Null);
        let own = fresh_uuid(2);
        t.drop_relinked(|v| v["uuid"] == own);
    }),
    mutation(
        "compact-parent-kept",
        "The boundary hangs on the line before it.",
        |t| {
            compact(t, Value::Null);
            let parent = t.uuid("A4");
            for value in t
                .values_mut()
                .filter(|v| v["subtype"] == "compact_boundary")
            {
                value["parentUuid"] = parent.clone().into();
            }
        },
    ),
    mutation(
        "compact-unlinked",
        "A boundary and a summary, but the third prompt hangs on the old answer.",
        |t| {
            compact(t, Value::Null);
            let parent = t.uuid("A4");
            t.set("U3", "parentUuid", parent);
        },
    ),
    mutation(
        "compact-last",
        "A boundary and a summary end the file.",
        |t| {
            t.cut_after("A4");
            compact(t, Value::Null);
        },
    ),
    mutation(
        "compact-twice",
        "Two boundaries with their summaries.",
        |t| {
            compact(t, Value::Null);
            compact_at(t, "U4", 3, Value::Null);
        },
    ),
    mutation(
        "compact-no-metadata",
        "The boundary has no metadata.",
        |t| {
            compact(t, Value::Null);
            for value in t
                .values_mut()
                .filter(|v| v["subtype"] == "compact_boundary")
            {
                if let Some(f) = value.as_object_mut() {
                    f.remove("compactMetadata");
                }
            }
        },
    ),
    mutation(
        "microcompact",
        "A microcompact boundary stands in the chain.",
        |t| {
            let mut line = t.like("A4", 1, "system");
            line["subtype"] = "microcompact_boundary".into();
            line["content"] = "Context microcompacted".into();
            line["microcompactMetadata"] = json!({"trigger": "auto", "preTokens": 9, "tokensSaved": 1, "compactedToolIds": ["toolu_R1"], "clearedAttachmentUUIDs": []});
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "summary-line",
        "A summary line names the last answer.",
        |t| {
            let leaf = t.uuid("A7");
            t.push(json!({"type": "summary", "summary": "a title", "leafUuid": leaf}));
        },
    ),
    mutation(
        "summary-line-first",
        "A summary line stands first and names an unknown line.",
        |t| {
            t.lines.insert(
                0,
                Line::Json(
                    json!({"type": "summary", "summary": "a title", "leafUuid": fresh_uuid(999)}),
                ),
            )
        },
    ),
    mutation(
        "summary-flag-alone",
        "A prompt is flagged as a summary.",
        |t| {
            t.edit("U3", |v| {
                v["isCompactSummary"] = true.into();
                v["isVisibleInTranscriptOnly"] = true.into();
            })
        },
    ),
];

fn compact(transcript: &mut Transcript, extra: Value) {
    compact_at(transcript, "U3", 1, extra);
}

/// Puts a boundary (uuid `number`) and a summary (`number + 1`) before a prompt.
fn compact_at(transcript: &mut Transcript, prompt: &str, number: u32, extra: Value) {
    let before = if prompt == "U3" { "A4" } else { "A6" };
    let mut boundary = transcript.like(before, number, "system");
    boundary["logicalParentUuid"] = boundary["parentUuid"].take();
    boundary["subtype"] = "compact_boundary".into();
    boundary["content"] = "Conversation compacted".into();
    boundary["isMeta"] = false.into();
    boundary["level"] = "info".into();
    boundary["compactMetadata"] = json!({"trigger": "manual", "preTokens": 100});
    for (field, value) in extra.as_object().into_iter().flatten() {
        boundary["compactMetadata"][field] = value.clone();
    }
    let mut summary = transcript.prompt(before, number + 1, &format!("the summary {number}"));
    summary["parentUuid"] = boundary["uuid"].clone();
    summary["isCompactSummary"] = true.into();
    summary["isVisibleInTranscriptOnly"] = true.into();
    let own = summary["uuid"].clone();
    let at = transcript.find(prompt);
    transcript.edit(prompt, |value| value["parentUuid"] = own);
    transcript
        .lines
        .splice(at..at, [boundary, summary].map(Line::Json));
}

/// The metadata that keeps these lines after the summary.
fn kept(transcript: &Transcript, lines: &[&str]) -> Value {
    let uuids: Vec<String> = lines.iter().map(|what| transcript.uuid(what)).collect();
    let anchor = fresh_uuid(2);
    json!({
        "preservedSegment": {"headUuid": uuids.first(), "anchorUuid": anchor, "tailUuid": uuids.last()},
        "preservedMessages": {"anchorUuid": anchor, "uuids": uuids, "allUuids": uuids},
    })
}

fn add(kept: &mut Value, uuid: &str) {
    for list in ["uuids", "allUuids"] {
        if let Some(list) = kept["preservedMessages"][list].as_array_mut() {
            list.push(uuid.into());
        }
    }
    if kept["preservedSegment"]["headUuid"].is_null() {
        kept["preservedSegment"]["headUuid"] = uuid.into();
        kept["preservedSegment"]["tailUuid"] = uuid.into();
    }
}
