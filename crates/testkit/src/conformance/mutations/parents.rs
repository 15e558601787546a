//! Parents that are broken, null or run in a circle.

use super::{Mutation, mutation};
use crate::conformance::transcript::{Transcript, fresh_uuid};
use serde_json::Value;

pub const ALL: &[Mutation] = &[
    mutation("unchanged", "Nothing is changed.", |_| {}),
    mutation(
        "parent-broken-prompt",
        "The third prompt names an unknown parent.",
        |t| unknown(t, "U3"),
    ),
    mutation(
        "parent-broken-first",
        "The first prompt names an unknown parent.",
        |t| unknown(t, "U1"),
    ),
    mutation(
        "parent-broken-result",
        "A tool result names an unknown parent.",
        |t| unknown(t, "result:toolu_R1"),
    ),
    mutation(
        "parent-broken-block",
        "A block in the middle of a message names an unknown parent.",
        |t| unknown(t, "A2"),
    ),
    mutation(
        "parent-broken-parallel-result",
        "One of three parallel results names an unknown parent.",
        |t| unknown(t, "result:toolu_P2"),
    ),
    mutation(
        "parent-broken-parallel-use",
        "One of three parallel calls names an unknown parent.",
        |t| unknown(t, "use:toolu_P2"),
    ),
    mutation(
        "parent-broken-last",
        "The last answer names an unknown parent.",
        |t| unknown(t, "A7"),
    ),
    mutation(
        "parent-broken-twice",
        "The second and the fourth prompt name unknown parents.",
        |t| {
            unknown(t, "U2");
            unknown(t, "U4");
        },
    ),
    mutation(
        "parent-broken-all",
        "Every line names an unknown parent.",
        |t| t.edit_chain(|value| value["parentUuid"] = fresh_uuid(999).into()),
    ),
    mutation(
        "parent-null-prompt",
        "The third prompt has no parent.",
        |t| t.set("U3", "parentUuid", Value::Null),
    ),
    mutation("parent-null-result", "A tool result has no parent.", |t| {
        t.set("result:toolu_R1", "parentUuid", Value::Null)
    }),
    mutation(
        "parent-null-parallel-use",
        "One of three parallel calls has no parent.",
        |t| t.set("use:toolu_P2", "parentUuid", Value::Null),
    ),
    mutation("parent-null-last", "The last answer has no parent.", |t| {
        t.set("A7", "parentUuid", Value::Null)
    }),
    mutation("parent-null-all", "No line has a parent.", |t| {
        t.edit_chain(|value| value["parentUuid"] = Value::Null)
    }),
    mutation(
        "parent-key-missing",
        "The third prompt lacks the field.",
        |t| {
            t.edit("U3", |value| {
                value
                    .as_object_mut()
                    .map(|fields| fields.remove("parentUuid"));
            })
        },
    ),
    mutation(
        "parent-empty-string",
        "The third prompt names the empty string.",
        |t| t.set("U3", "parentUuid", ""),
    ),
    mutation(
        "parent-skips",
        "The third prompt hangs on the first answer.",
        |t| hang(t, "U3", "A1"),
    ),
    mutation("cycle-self", "The third prompt is its own parent.", |t| {
        hang(t, "U3", "U3")
    }),
    mutation(
        "cycle-pair",
        "The third prompt hangs on its own answer.",
        |t| hang(t, "U3", "A5"),
    ),
    mutation(
        "cycle-whole",
        "The first prompt hangs on the last answer.",
        |t| hang(t, "U1", "A7"),
    ),
    mutation(
        "cycle-tail",
        "The last prompt hangs on its own answer.",
        |t| hang(t, "U4", "A7"),
    ),
    mutation(
        "cycle-aside",
        "Two older lines beside the conversation are each other's parents.",
        |t| {
            let (mut one, mut two) = (
                t.prompt("U1", 1, "aside one"),
                t.prompt("U1", 2, "aside two"),
            );
            one["parentUuid"] = two["uuid"].clone();
            two["parentUuid"] = one["uuid"].clone();
            let at = t.find("U2");
            t.lines
                .insert(at, crate::conformance::transcript::Line::Json(one));
            t.lines
                .insert(at + 1, crate::conformance::transcript::Line::Json(two));
        },
    ),
];

fn unknown(transcript: &mut Transcript, what: &str) {
    transcript.set(what, "parentUuid", fresh_uuid(999));
}

fn hang(transcript: &mut Transcript, child: &str, parent: &str) {
    let parent = transcript.uuid(parent);
    transcript.set(child, "parentUuid", parent);
}
