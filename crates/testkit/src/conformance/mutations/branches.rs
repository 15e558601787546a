//! Branches, and what decides which of them is live.

use super::{Mutation, mutation};
use crate::conformance::transcript::{Line, Transcript, fresh_uuid};
use serde_json::{Value, json};

pub const ALL: &[Mutation] = &[
    mutation(
        "branch-newer-last",
        "A branch with newer times stands at the end.",
        |t| branch(t, NEWER),
    ),
    mutation(
        "branch-older-last",
        "A branch with older times stands at the end.",
        |t| branch(t, OLDER),
    ),
    mutation(
        "branch-newer-no-last-prompt",
        "A newer branch at the end; no last-prompt lines.",
        |t| {
            drop_last_prompt(t);
            branch(t, NEWER);
        },
    ),
    mutation(
        "branch-older-no-last-prompt",
        "An older branch at the end; no last-prompt lines.",
        |t| {
            drop_last_prompt(t);
            branch(t, OLDER);
        },
    ),
    mutation(
        "branch-newer-named",
        "A newer branch at the end, named by a last-prompt line.",
        |t| {
            branch(t, NEWER);
            name(t, &fresh_uuid(2), None);
        },
    ),
    mutation(
        "branch-older-named",
        "An older branch at the end, named by a last-prompt line.",
        |t| {
            branch(t, OLDER);
            name(t, &fresh_uuid(2), None);
        },
    ),
    mutation(
        "branch-newer-other-named",
        "A newer branch at the end; a last-prompt line names the other.",
        |t| {
            branch(t, NEWER);
            let leaf = t.uuid("A7");
            name(t, &leaf, None);
        },
    ),
    mutation(
        "branch-explicit-other",
        "A newer branch at the end; an explicit last-prompt line names the other.",
        |t| {
            branch(t, NEWER);
            let leaf = t.uuid("A7");
            name(t, &leaf, Some(true));
        },
    ),
    mutation(
        "branch-explicit-zero",
        "A newer branch at the end and an explicit last-prompt line with a zero id.",
        |t| {
            branch(t, NEWER);
            name(t, ZERO, Some(true));
        },
    ),
    mutation(
        "branch-unknown-named",
        "A newer branch at the end; the last-prompt line names an unknown line.",
        |t| {
            branch(t, NEWER);
            name(t, &fresh_uuid(999), None);
        },
    ),
    mutation(
        "branch-newer-mid-file",
        "A newer branch stands in the middle of the file.",
        |t| branch_mid(t, NEWER),
    ),
    mutation(
        "branch-newer-mid-file-no-last-prompt",
        "A newer branch in the middle of the file; no last-prompt lines.",
        |t| {
            drop_last_prompt(t);
            branch_mid(t, NEWER);
        },
    ),
    mutation(
        "branch-older-mid-file",
        "An older branch stands in the middle of the file.",
        |t| branch_mid(t, OLDER),
    ),
    mutation(
        "branch-unanswered",
        "A newer branch at the end is a prompt without an answer.",
        |t| {
            branch(t, NEWER);
            t.lines.pop();
        },
    ),
    mutation(
        "branch-sidechain",
        "A newer branch at the end is a sidechain.",
        |t| {
            branch(t, NEWER);
            for number in [1, 2] {
                let uuid = fresh_uuid(number);
                t.values_mut()
                    .filter(|v| v["uuid"] == uuid)
                    .for_each(|v| v["isSidechain"] = true.into());
            }
        },
    ),
    mutation(
        "leaf-named-ancestor",
        "A last-prompt line names an earlier answer.",
        |t| {
            let leaf = t.uuid("A4");
            name(t, &leaf, None);
        },
    ),
    mutation(
        "leaf-named-ancestor-explicit",
        "An explicit last-prompt line names an earlier answer.",
        |t| {
            let leaf = t.uuid("A4");
            name(t, &leaf, Some(true));
        },
    ),
    mutation(
        "leaf-named-prompt-explicit",
        "An explicit last-prompt line names an earlier prompt.",
        |t| {
            let leaf = t.uuid("U3");
            name(t, &leaf, Some(true));
        },
    ),
    mutation(
        "leaf-named-first-then-zero",
        "A last-prompt line names the first answer, a later one an unknown line.",
        |t| {
            let leaf = t.uuid("A1");
            name(t, &leaf, None);
            name(t, &fresh_uuid(999), None);
        },
    ),
    mutation(
        "leaf-last-prompt-removed",
        "There are no last-prompt lines.",
        drop_last_prompt,
    ),
    mutation(
        "time-tie-last",
        "The last two lines have the same time.",
        |t| {
            let at = t.get("U4")["timestamp"].clone();
            t.set("A7", "timestamp", at);
        },
    ),
    mutation("time-all-equal", "All lines have the same time.", |t| {
        let at = t.get("U1")["timestamp"].clone();
        t.edit_chain(|value| value["timestamp"] = at.clone());
    }),
    mutation("time-reversed", "Times run backwards.", reverse_times),
    mutation(
        "time-first-newest",
        "The first prompt has the newest time.",
        |t| t.set("U1", "timestamp", NEWER),
    ),
    mutation(
        "time-middle-newest",
        "A call in the middle has the newest time.",
        |t| t.set("use:toolu_B1", "timestamp", NEWER),
    ),
    mutation(
        "time-parallel-newest",
        "The first of three parallel results has the newest time.",
        |t| t.set("result:toolu_P1", "timestamp", NEWER),
    ),
    mutation(
        "time-without-milliseconds",
        "The last line's time has no milliseconds.",
        |t| t.set("A7", "timestamp", "2031-01-01T00:00:00Z"),
    ),
    mutation(
        "time-other-zone",
        "The last line's time has an offset that makes it older.",
        |t| t.set("A7", "timestamp", "2026-11-15T19:00:00.000+09:00"),
    ),
    mutation(
        "rewind",
        "A prompt hangs on the second turn, as after a rewind, with its answer.",
        |t| {
            branch(t, NEWER);
            name(t, ZERO, Some(true));
            name(t, &fresh_uuid(2), None);
        },
    ),
];

const NEWER: &str = "2031-01-01T00:00:00.000Z";
const OLDER: &str = "2021-01-01T00:00:00.000Z";
const ZERO: &str = "00000000-0000-0000-0000-000000000000";

/// Two lines that hang on the end of the second turn.
fn made(transcript: &Transcript, time: &str) -> [Value; 2] {
    let mut prompt = transcript.prompt("A4", 1, "branch prompt");
    let mut answer = transcript.answer("A4", 2, json!([{"type": "text", "text": "branch answer"}]));
    answer["parentUuid"] = prompt["uuid"].clone();
    prompt["timestamp"] = time.into();
    answer["timestamp"] = time.replace(":00.000Z", ":01.000Z").into();
    [prompt, answer]
}

fn branch(transcript: &mut Transcript, time: &str) {
    let lines = made(transcript, time);
    transcript.lines.extend(lines.map(Line::Json));
}

fn branch_mid(transcript: &mut Transcript, time: &str) {
    let lines = made(transcript, time);
    let at = transcript.find("U3");
    transcript.lines.splice(at..at, lines.map(Line::Json));
}

fn name(transcript: &mut Transcript, leaf: &str, explicit: Option<bool>) {
    let session = transcript.get("U1")["sessionId"].clone();
    let mut line =
        json!({"type": "last-prompt", "lastPrompt": "U4", "leafUuid": leaf, "sessionId": session});
    if let Some(explicit) = explicit {
        line["explicit"] = explicit.into();
    }
    transcript.push(line);
}

fn drop_last_prompt(transcript: &mut Transcript) {
    transcript.drop(|value| value["type"] == "last-prompt");
}

fn reverse_times(transcript: &mut Transcript) {
    let times = transcript.values().filter_map(|v| v["timestamp"].as_str());
    let mut times: Vec<String> = times.map(str::to_owned).collect();
    times.sort();
    for value in transcript
        .values_mut()
        .filter(|v| v["timestamp"].is_string())
    {
        value["timestamp"] = times.pop().into();
    }
}
