//! Ids, times, models and other fields that are missing or odd.

use super::{Mutation, mutation};
use crate::conformance::transcript::{Transcript, in_chain};
use serde_json::{Value, json};

pub const ALL: &[Mutation] = &[
    mutation("uuid-missing-answer", "An answer has no uuid.", |t| {
        t.edit("A4", |v| remove(v, "uuid"))
    }),
    mutation("uuid-missing-last", "The last answer has no uuid.", |t| {
        t.edit("A7", |v| remove(v, "uuid"))
    }),
    mutation("uuid-missing-all", "No line has a uuid.", |t| {
        t.edit_chain(|v| remove(v, "uuid"))
    }),
    mutation("uuid-short", "Uuids are short words.", short_uuids),
    mutation(
        "message-id-missing-all",
        "No answer has a message id.",
        |t| t.edit_all("assistant", |v| remove(&mut v["message"], "id")),
    ),
    mutation(
        "message-id-missing-one",
        "One answer has no message id.",
        |t| t.edit("A4", |v| remove(&mut v["message"], "id")),
    ),
    mutation(
        "message-id-missing-parallel",
        "Three parallel calls have no message id.",
        |t| {
            for id in ["P1", "P2", "P3"] {
                t.edit(&format!("use:toolu_{id}"), |v| {
                    remove(&mut v["message"], "id")
                });
            }
        },
    ),
    mutation("message-id-null", "Message ids are null.", |t| {
        t.edit_all("assistant", |v| v["message"]["id"] = Value::Null)
    }),
    mutation("request-id-missing", "No answer has a request id.", |t| {
        t.edit_all("assistant", |v| remove(v, "requestId"))
    }),
    mutation("time-missing-all", "No line has a time.", |t| {
        t.edit_chain(|v| remove(v, "timestamp"))
    }),
    mutation("time-missing-last", "The last answer has no time.", |t| {
        t.edit("A7", |v| remove(v, "timestamp"))
    }),
    mutation(
        "time-missing-middle",
        "An answer in the middle has no time.",
        |t| t.edit("A4", |v| remove(v, "timestamp")),
    ),
    mutation("time-missing-first", "The first prompt has no time.", |t| {
        t.edit("U1", |v| remove(v, "timestamp"))
    }),
    mutation("time-missing-prompts", "No user line has a time.", |t| {
        t.edit_all("user", |v| remove(v, "timestamp"))
    }),
    mutation(
        "time-missing-answers",
        "No assistant line has a time.",
        |t| t.edit_all("assistant", |v| remove(v, "timestamp")),
    ),
    mutation(
        "time-invalid-last",
        "The last answer's time is no time.",
        |t| t.set("A7", "timestamp", "yesterday"),
    ),
    mutation("time-number", "The last answer's time is a number.", |t| {
        t.set("A7", "timestamp", 1_900_000_000_000_u64)
    }),
    mutation("model-missing-all", "No answer has a model.", |t| {
        t.edit_all("assistant", |v| remove(&mut v["message"], "model"))
    }),
    mutation("model-missing-one", "A thinking line has no model.", |t| {
        t.edit("T2", |v| remove(&mut v["message"], "model"))
    }),
    mutation("model-other-all", "Every answer has another model.", |t| {
        t.edit_all("assistant", |v| {
            v["message"]["model"] = "claude-haiku-4-5-20251001".into()
        })
    }),
    mutation(
        "model-other-early",
        "The first turns have another model.",
        |t| {
            for what in ["T1", "A1", "T2", "A2", "use:toolu_R1"] {
                t.edit(what, |v| {
                    v["message"]["model"] = "claude-haiku-4-5-20251001".into()
                });
            }
        },
    ),
    mutation(
        "model-other-last",
        "The last answer has another model.",
        |t| {
            t.edit("A7", |v| {
                v["message"]["model"] = "claude-haiku-4-5-20251001".into()
            })
        },
    ),
    mutation(
        "model-unknown-last",
        "The last answer has a model nobody knows.",
        |t| t.edit("A7", |v| v["message"]["model"] = "claude-unheard-of".into()),
    ),
    mutation("session-missing", "No line has a session id.", |t| {
        t.values_mut().for_each(|v| remove(v, "sessionId"))
    }),
    mutation("session-other", "Lines carry another session id.", |t| {
        t.values_mut().for_each(|v| {
            if v["sessionId"].is_string() {
                v["sessionId"] = "c0ffee00-0000-4000-8000-00000000abcd".into();
            }
        })
    }),
    mutation(
        "session-mixed",
        "The first turns carry another session id.",
        |t| {
            let mut seen = false;
            t.values_mut().for_each(|v| {
                seen |= v["message"]["content"] == "U3";
                if !seen && v["sessionId"].is_string() {
                    v["sessionId"] = "c0ffee00-0000-4000-8000-00000000abcd".into();
                }
            });
        },
    ),
    mutation("type-missing", "An answer has no type.", |t| {
        t.edit("A4", |v| remove(v, "type"))
    }),
    mutation("role-missing", "An answer has no role.", |t| {
        t.edit("A4", |v| remove(&mut v["message"], "role"))
    }),
    mutation("role-wrong", "An answer's role is user.", |t| {
        t.edit("A4", |v| v["message"]["role"] = "user".into())
    }),
    mutation("message-missing", "A prompt has no message.", |t| {
        t.edit("U3", |v| remove(v, "message"))
    }),
    mutation(
        "six-fields",
        "Lines have only the six needed fields.",
        |t| {
            t.drop_relinked(|v| !(v["type"] == "user" || v["type"] == "assistant") || !in_chain(v));
            t.edit_chain(six);
        },
    ),
    mutation(
        "sidechain-missing",
        "No line says whether it is a sidechain.",
        |t| t.edit_chain(|v| remove(v, "isSidechain")),
    ),
    mutation(
        "version-old",
        "Lines say that an old client wrote them.",
        |t| t.edit_chain(|v| v["version"] = "1.0.20".into()),
    ),
    mutation("cwd-other", "Lines name another directory.", |t| {
        t.edit_chain(|v| v["cwd"] = "/somewhere/else".into())
    }),
    mutation("stop-reason-null", "Every stop reason is null.", |t| {
        t.edit_all("assistant", |v| v["message"]["stop_reason"] = Value::Null)
    }),
    mutation("usage-missing", "No answer has a usage.", |t| {
        t.edit_all("assistant", |v| remove(&mut v["message"], "usage"))
    }),
    mutation("unknown-fields", "Lines have fields nobody knows.", |t| {
        t.edit_chain(|v| {
            v["novelty"] = json!({"a": [1, 2]});
        })
    }),
    mutation(
        "tool-use-result-missing",
        "No result has its details.",
        |t| {
            t.edit_all("user", |v| {
                remove(v, "toolUseResult");
                remove(v, "sourceToolAssistantUUID");
            })
        },
    ),
];

fn remove(value: &mut Value, field: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.remove(field);
    }
}

fn six(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        let needed = [
            "type",
            "parentUuid",
            "uuid",
            "sessionId",
            "timestamp",
            "message",
        ];
        fields.retain(|name, _| needed.contains(&name.as_str()));
    }
}

fn short_uuids(transcript: &mut Transcript) {
    for value in transcript.values_mut() {
        for field in ["uuid", "parentUuid", "leafUuid"] {
            if let Some(uuid) = value[field].as_str() {
                value[field] = format!("id-{}", uuid.get(..4).unwrap_or(uuid)).into();
            }
        }
    }
}
