//! Lines of the other kinds inside the chain.

use super::{Mutation, mutation};
use crate::conformance::transcript::Transcript;
use serde_json::{Value, json};

pub const ALL: &[Mutation] = &[
    mutation("meta-prompt", "A prompt is a meta line.", |t| {
        t.set("U3", "isMeta", true)
    }),
    mutation("meta-added", "A meta line follows a prompt.", |t| {
        let mut line = t.prompt("U3", 1, "meta text");
        line["isMeta"] = true.into();
        t.insert_in_chain("U3", line);
    }),
    mutation("meta-first", "The first prompt is a meta line.", |t| {
        t.set("U1", "isMeta", true)
    }),
    mutation(
        "transcript-only",
        "A prompt is only for the transcript.",
        |t| t.set("U3", "isVisibleInTranscriptOnly", true),
    ),
    mutation(
        "local-command",
        "The output of a local command stands in the chain.",
        |t| {
            let line = system(
                t,
                "local_command",
                "<local-command-stdout>\u{1b}[1mshown\u{1b}[0m output</local-command-stdout>",
            );
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "local-command-last",
        "The output of a local command ends the conversation.",
        |t| {
            let mut line = system(
                t,
                "local_command",
                "<local-command-stdout>last output</local-command-stdout>",
            );
            line["parentUuid"] = t.uuid("A7").into();
            line["timestamp"] = NEWER.into();
            t.push(line);
        },
    ),
    mutation(
        "local-command-empty",
        "The output of a local command is empty.",
        |t| {
            let line = system(t, "local_command", "");
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "local-command-user",
        "A local command and its output are user lines.",
        |t| {
            let one = t.prompt("A4", 1, "<command-name>/cost</command-name>\n<command-message>cost</command-message>\n<command-args></command-args>");
            t.insert_in_chain("A4", one);
        },
    ),
    mutation(
        "local-stdout-user",
        "A user line holds the output of a local command.",
        |t| {
            let one = t.prompt(
                "A4",
                1,
                "<local-command-stdout>shown output</local-command-stdout>",
            );
            t.insert_in_chain("A4", one);
        },
    ),
    mutation(
        "turn-duration",
        "A turn_duration line stands in the chain.",
        |t| {
            let mut line = system(t, "turn_duration", "");
            line["durationMs"] = 5.into();
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "turn-duration-last",
        "A turn_duration line ends the conversation.",
        |t| {
            let mut line = system(t, "turn_duration", "");
            line["durationMs"] = 5.into();
            line["parentUuid"] = t.uuid("A7").into();
            line["timestamp"] = NEWER.into();
            t.push(line);
        },
    ),
    mutation(
        "stop-hook-summary",
        "A stop_hook_summary line stands in the chain.",
        |t| {
            let line = system(t, "stop_hook_summary", "");
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "informational",
        "An informational line stands in the chain.",
        |t| {
            let line = system(t, "informational", "for your information");
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "system-unknown",
        "A system line of unknown subtype stands in the chain.",
        |t| {
            let line = system(t, "novelty", "something new");
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "api-error-system",
        "A system api_error line stands in the chain.",
        |t| {
            let mut line = system(t, "api_error", "");
            line["error"] = json!({"status": 529});
            line["retryAttempt"] = 1.into();
            t.insert_in_chain("U3", line);
        },
    ),
    mutation(
        "api-error-answer",
        "An API error stands as an answer in the middle.",
        |t| {
            let line = api_error(t, "A4");
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "api-error-last",
        "An API error ends the conversation.",
        |t| {
            let mut line = api_error(t, "A7");
            line["timestamp"] = NEWER.into();
            t.push(line);
        },
    ),
    mutation(
        "api-error-after-prompt",
        "An API error is the only answer to the last prompt.",
        |t| {
            let own = t.uuid("A7");
            t.drop(|v| v["uuid"] == own);
            let mut line = api_error(t, "U4");
            line["timestamp"] = NEWER.into();
            t.push(line);
        },
    ),
    mutation(
        "synthetic-middle",
        "A synthetic answer stands in the middle.",
        |t| {
            let line = synthetic(t, "A4");
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "synthetic-after-prompt",
        "A synthetic answer follows a prompt in the middle, another prompt follows.",
        |t| {
            let line = synthetic(t, "U3");
            t.insert_in_chain("U3", line);
        },
    ),
    mutation(
        "synthetic-last",
        "A synthetic answer ends the conversation.",
        |t| {
            let own = t.uuid("A7");
            t.drop(|v| v["uuid"] == own);
            let mut line = synthetic(t, "U4");
            line["timestamp"] = NEWER.into();
            t.push(line);
        },
    ),
    mutation(
        "no-content-answer",
        "An answer is the placeholder for nothing.",
        |t| {
            t.edit("A4", |v| {
                v["message"]["content"] = json!([{"type": "text", "text": "(no content)"}])
            })
        },
    ),
    mutation("interrupt", "The user interrupted the third turn.", |t| {
        let line = t.prompt("A6", 1, "[Request interrupted by user]");
        t.insert_in_chain("A6", line);
    }),
    mutation(
        "interrupt-last",
        "The user interrupted the last turn.",
        |t| {
            let mut line = t.prompt("A7", 1, "x");
            line["message"]["content"] =
                json!([{"type": "text", "text": "[Request interrupted by user]"}]);
            line["timestamp"] = NEWER.into();
            t.push(line);
        },
    ),
    mutation(
        "sidechain-inside",
        "A sidechain line stands in the chain.",
        |t| t.set("A4", "isSidechain", true),
    ),
    mutation("sidechain-all", "Every line is a sidechain line.", |t| {
        t.edit_chain(|v| v["isSidechain"] = true.into())
    }),
    mutation(
        "type-unknown",
        "A line of unknown type stands in the chain.",
        |t| {
            let line = t.like("A4", 1, "novelty");
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "type-unknown-last",
        "A line of unknown type ends the conversation.",
        |t| {
            let mut line = t.like("A7", 1, "novelty");
            line["timestamp"] = NEWER.into();
            t.push(line);
        },
    ),
    mutation("progress", "A progress line stands in the chain.", |t| {
        let mut line = t.like("A4", 1, "progress");
        line["data"] = json!({"type": "hook_progress", "hookEvent": "Stop"});
        t.insert_in_chain("A4", line);
    }),
    mutation(
        "progress-last",
        "A progress line ends the conversation.",
        |t| {
            let mut line = t.like("A7", 1, "progress");
            line["data"] = json!({"type": "hook_progress", "hookEvent": "Stop"});
            line["timestamp"] = NEWER.into();
            t.push(line);
        },
    ),
    mutation(
        "queued-command",
        "A prompt typed while the model worked stands in the chain.",
        |t| {
            let line = attachment(
                t,
                json!({"type": "queued_command", "prompt": "typed meanwhile", "commandMode": "prompt", "humanTurn": true, "origin": {"kind": "human"}}),
                None,
            );
            t.insert_in_chain("result:toolu_B1", line);
        },
    ),
    mutation(
        "queued-command-rendered",
        "The same with the text that was sent.",
        |t| {
            let line = attachment(
                t,
                json!({"type": "queued_command", "prompt": "typed meanwhile", "commandMode": "prompt", "humanTurn": true, "origin": {"kind": "human"}}),
                Some((
                    "<system-reminder>\nthe user typed: typed meanwhile\n</system-reminder>",
                    "system",
                )),
            );
            t.insert_in_chain("result:toolu_B1", line);
        },
    ),
    mutation(
        "queued-command-user-role",
        "The same, sent in the role of the user.",
        |t| {
            let line = attachment(
                t,
                json!({"type": "queued_command", "prompt": "typed meanwhile", "commandMode": "prompt", "humanTurn": true, "origin": {"kind": "human"}}),
                Some((
                    "<system-reminder>\nthe user typed: typed meanwhile\n</system-reminder>",
                    "user",
                )),
            );
            t.insert_in_chain("result:toolu_B1", line);
        },
    ),
    mutation(
        "attachment-rendered-system",
        "An unknown attachment with a stored system text stands after a prompt.",
        |t| {
            let line = attachment(
                t,
                json!({"type": "novelty"}),
                Some(("stored words for the model", "system")),
            );
            t.insert_in_chain("U3", line);
        },
    ),
    mutation(
        "attachment-rendered-user",
        "An unknown attachment with a stored user text stands after a prompt.",
        |t| {
            let line = attachment(
                t,
                json!({"type": "novelty"}),
                Some(("stored words for the model", "user")),
            );
            t.insert_in_chain("U3", line);
        },
    ),
    mutation(
        "attachment-after-result-system",
        "A stored system text stands after a tool result.",
        |t| {
            let line = attachment(
                t,
                json!({"type": "task_reminder", "content": [], "itemCount": 0}),
                Some((
                    "<system-reminder>\nstored words\n</system-reminder>",
                    "system",
                )),
            );
            t.insert_in_chain("result:toolu_R1", line);
        },
    ),
    mutation(
        "attachment-after-result-user",
        "A stored user text stands after a tool result.",
        |t| {
            let line = attachment(
                t,
                json!({"type": "task_reminder", "content": [], "itemCount": 0}),
                Some((
                    "<system-reminder>\nstored words\n</system-reminder>",
                    "user",
                )),
            );
            t.insert_in_chain("result:toolu_R1", line);
        },
    ),
    mutation(
        "attachment-after-answer-system",
        "A stored system text stands after an answer.",
        |t| {
            let line = attachment(
                t,
                json!({"type": "hook_additional_context", "content": ["from a hook"], "hookName": "Stop", "hookEvent": "Stop", "toolUseID": "x"}),
                Some((
                    "<system-reminder>\nstored words\n</system-reminder>",
                    "system",
                )),
            );
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "attachment-after-answer-user",
        "A stored user text stands after an answer.",
        |t| {
            let line = attachment(
                t,
                json!({"type": "hook_additional_context", "content": ["from a hook"], "hookName": "Stop", "hookEvent": "Stop", "toolUseID": "x"}),
                Some((
                    "<system-reminder>\nstored words\n</system-reminder>",
                    "user",
                )),
            );
            t.insert_in_chain("A4", line);
        },
    ),
    mutation(
        "attachment-hook-context",
        "A hook's context without a stored text stands after a prompt.",
        |t| {
            let line = attachment(
                t,
                json!({"type": "hook_additional_context", "content": ["from a hook"], "hookName": "UserPromptSubmit", "hookEvent": "UserPromptSubmit", "toolUseID": "x"}),
                None,
            );
            t.insert_in_chain("U3", line);
        },
    ),
    mutation(
        "attachment-file",
        "A file without a stored text stands after a prompt.",
        |t| {
            let line = attachment(
                t,
                json!({"type": "file", "filename": "/home/dev/a.txt", "content": {"type": "text", "file": {"filePath": "/home/dev/a.txt", "content": "file words", "numLines": 1, "startLine": 1, "totalLines": 1}}, "displayPath": "a.txt"}),
                None,
            );
            t.insert_in_chain("U3", line);
        },
    ),
    mutation(
        "attachment-not-rendered",
        "Stored texts are removed from all attachments.",
        |t| {
            t.edit_all("attachment", |v| {
                if let Some(f) = v.as_object_mut() {
                    f.remove("rendered");
                    f.remove("renderedRole");
                }
            })
        },
    ),
    mutation(
        "attachment-all-user-role",
        "All stored texts are in the role of the user.",
        |t| {
            t.edit_all("attachment", |v| {
                if v["rendered"].is_array() {
                    v["renderedRole"] = "user".into();
                }
            })
        },
    ),
    mutation("attachment-no-role", "Stored texts have no role.", |t| {
        t.edit_all("attachment", |v| {
            if let Some(f) = v.as_object_mut() {
                f.remove("renderedRole");
            }
        })
    }),
    mutation(
        "attachment-last",
        "A stored text ends the conversation.",
        |t| {
            let mut line = attachment(
                t,
                json!({"type": "task_reminder", "content": [], "itemCount": 0}),
                Some((
                    "<system-reminder>\nstored words\n</system-reminder>",
                    "system",
                )),
            );
            line["parentUuid"] = t.uuid("A7").into();
            line["timestamp"] = NEWER.into();
            t.push(line);
        },
    ),
    mutation(
        "task-notification",
        "A prompt is the notice of a finished task.",
        |t| {
            t.edit("U3", |v| {
                v["message"]["content"] =
                    "<task-notification>\n<task-id>a1</task-id>\n</task-notification>".into();
                v["origin"] = json!({"kind": "task-notification"});
            })
        },
    ),
    mutation(
        "task-notification-no-origin",
        "The same without its origin.",
        |t| {
            t.edit("U3", |v| {
                v["message"]["content"] =
                    "<task-notification>\n<task-id>a1</task-id>\n</task-notification>".into();
                if let Some(f) = v.as_object_mut() {
                    f.remove("origin");
                }
            })
        },
    ),
    mutation(
        "origin-other",
        "A prompt has an origin nobody knows.",
        |t| t.set("U3", "origin", json!({"kind": "novelty"})),
    ),
];

const NEWER: &str = "2031-01-01T00:00:00.000Z";

fn system(transcript: &Transcript, subtype: &str, content: &str) -> Value {
    let mut line = transcript.like("A4", 1, "system");
    line["subtype"] = subtype.into();
    line["content"] = content.into();
    line["level"] = "info".into();
    line["isMeta"] = false.into();
    line
}

fn attachment(transcript: &Transcript, attachment: Value, rendered: Option<(&str, &str)>) -> Value {
    let mut line = transcript.like("A4", 1, "attachment");
    line["attachment"] = attachment;
    if let Some((text, role)) = rendered {
        line["rendered"] = json!([{"content": text}]);
        line["renderedRole"] = role.into();
    }
    line
}

fn synthetic(transcript: &Transcript, after: &str) -> Value {
    let mut line = transcript.answer(
        after,
        1,
        json!([{"type": "text", "text": "No response requested."}]),
    );
    line["message"]["model"] = "<synthetic>".into();
    line
}

fn api_error(transcript: &Transcript, after: &str) -> Value {
    let mut line = transcript.answer(
        after,
        1,
        json!([{"type": "text", "text": "API Error: made for a test"}]),
    );
    line["message"]["model"] = "<synthetic>".into();
    line["isApiErrorMessage"] = true.into();
    line
}
