//! Sub-agents: a session of their own, in a file beside that of their session.

mod background;

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;

use serde_json::{Value, json};
use unspool_model::entry_writer::NewEntry;
use unspool_store::append;

use crate::agent_definitions::AgentDefinition;
use crate::api::model;
use crate::driver::{
    AskingAgent, DriverMessage, SessionCommand, SessionDriver, SessionNotice, SessionSetup,
    SharedSession, SubAgentParent, lock,
};
use crate::permission::PermissionMode;
use crate::state_machine::TurnEndReason;
use crate::stop::StopSignal;
use crate::system_prompt;
use crate::tool::{ToolCallRequest, ToolOutcome};
use crate::tool_call::blocks;
use crate::transcript_writer::{SharedLineFields, TranscriptWriter};

/// The kind that is always there.
const GENERAL: &str = "general-purpose";
/// So often the model of a sub-agent is asked at most.
const TURNS: u32 = 200;

/// Runs a sub-agent: to its end, or beside the conversation.
pub(crate) fn run(
    above: &Arc<SharedSession>,
    call: &ToolCallRequest,
    stop: &StopSignal,
) -> ToolOutcome {
    let field = |name: &str| call.input[name].as_str().filter(|text| !text.is_empty());
    let Some(prompt) = field("prompt") else {
        return ToolOutcome::failed("The sub-agent was given no prompt.");
    };
    let kind = field("subagent_type").unwrap_or(GENERAL);
    let definition = {
        let lore = lock(&above.lore);
        let found = lore.agents.named(kind).cloned();
        if found.is_none() && kind != GENERAL {
            let names = lore.agents.list.iter().map(|one| one.name.as_str());
            let names: Vec<&str> = std::iter::once(GENERAL).chain(names).collect();
            return ToolOutcome::failed(format!(
                "Agent type '{kind}' not found. Available agents: {}",
                names.join(", ")
            ));
        }
        found
    };
    if above.above.is_some() {
        return ToolOutcome::failed("A sub-agent cannot start another one.");
    }
    if call.input.get("isolation").is_some() {
        return ToolOutcome::failed(
            "No worktree can be made for a sub-agent here. Leave `isolation` out; it works in this folder.",
        );
    }
    let id = new_agent();
    let began = Instant::now();
    let (sender, events) = channel();
    let setup = match setup(above, call, &id, kind, definition) {
        Ok(setup) => setup,
        Err(why) => return ToolOutcome::failed(why),
    };
    let agent = AskingAgent {
        id: id.clone(),
        kind: kind.to_owned(),
        description: field("description").unwrap_or_default().to_owned(),
    };
    let driver = SessionDriver::new(
        setup,
        Some(SubAgentParent {
            shared: Arc::clone(above),
            call: call.id.clone(),
            agent,
        }),
        sender.clone(),
        events,
        Box::new(forward(above, call, &id)),
    );
    let submit = SessionCommand::Submit {
        content: prompt.into(),
        context: Vec::new(),
    };
    let _ = sender.send(DriverMessage::Command(submit));
    let _ = sender.send(DriverMessage::Command(SessionCommand::Close));
    let mut worker = SubAgentWorker {
        above: Arc::clone(above),
        driver,
        call: call.clone(),
        id,
        kind: kind.to_owned(),
    };
    if call.input["run_in_background"] == true {
        return background::launch(worker);
    }
    worker.driver.run(Some(stop));
    worker.outcome(began)
}

/// A sub-agent that is ready to work.
struct SubAgentWorker {
    above: Arc<SharedSession>,
    driver: SessionDriver,
    call: ToolCallRequest,
    id: String,
    kind: String,
}

impl SubAgentWorker {
    /// What came of its work.
    fn outcome(&self, began: Instant) -> ToolOutcome {
        finish(&self.driver, &self.call, &self.id, &self.kind, began)
    }
}

/// The result as the session gets it.
fn finish(
    driver: &SessionDriver,
    call: &ToolCallRequest,
    id: &str,
    kind: &str,
    began: Instant,
) -> ToolOutcome {
    let Some(ending) = driver.ending.clone() else {
        return ToolOutcome::failed("The sub-agent failed to run.");
    };
    let text = match &ending.why {
        TurnEndReason::Failed(trouble) if ending.text.is_empty() => {
            return ToolOutcome::failed(format!("The sub-agent failed: {}", trouble.message));
        }
        TurnEndReason::Interrupted => return ToolOutcome::failed("The sub-agent was stopped."),
        _ if ending.text.is_empty() => "The sub-agent ended without a reply.".to_owned(),
        _ => ending.text,
    };
    let spent = lock(&driver.shared.spent).clone();
    let record = lock(&driver.shared.record);
    let (calls, last) = record.session().map_or((0, 0), |session| {
        let last = session
            .messages
            .iter()
            .rfind(|message| message.has_usage() && !message.synthetic);
        (
            session.calls.len(),
            last.map_or(0, |message| session.usage_of(message).total()),
        )
    });
    let content = blocks(&[text]);
    let said = match &content {
        crate::tool::ToolContent::Blocks(blocks) => Value::Array(blocks.clone()),
        crate::tool::ToolContent::Text(text) => Value::from(text.as_str()),
    };
    let result = json!({
        "status": "completed", "prompt": call.input["prompt"], "agentId": id, "agentType": kind,
        "content": said,
        "totalDurationMs": u64::try_from(began.elapsed().as_millis()).unwrap_or(0),
        "totalTokens": last, "totalToolUseCount": calls, "usage": spent.json(),
    });
    let mut outcome = ToolOutcome::done("", result);
    outcome.content = content;
    outcome
}

fn setup(
    above: &Arc<SharedSession>,
    call: &ToolCallRequest,
    id: &str,
    kind: &str,
    definition: Option<AgentDefinition>,
) -> Result<SessionSetup, String> {
    let folder = above.beside.join("subagents");
    let meta = json!({
        "agentType": kind, "description": call.input["description"], "toolUseId": call.id,
        "spawnDepth": 1,
    });
    let meta_path = folder.join(format!("agent-{id}.meta.json"));
    append::put(&meta_path, meta.to_string().as_bytes()).map_err(|error| error.to_string())?;
    let cwd = lock(&above.cwd).clone();
    let face = {
        let record = lock(&above.record);
        SharedLineFields {
            agent: Some(id.to_owned()),
            ..record.face().clone()
        }
    };
    let record =
        TranscriptWriter::new(&folder.join(format!("agent-{id}.jsonl")), face, &cwd, false);
    let mut frame = lock(&above.frame).clone();
    let mut policy = lock(&above.policy).clone();
    let mut turns = TURNS;
    if let Some(definition) = definition {
        if let Some(name) = definition.model.filter(|name| name != "inherit") {
            frame.model = model::named(&name, &above.prices);
        }
        // An agent of the folder may be pulled after somebody trusted it: it gets no more than
        // whoever starts it.
        let narrows = |mode: &PermissionMode| mode.allows_no_more_than(policy.mode());
        let mode = definition
            .mode
            .filter(|mode| !definition.of_folder || narrows(mode));
        if let Some(mode) = mode {
            policy.set_mode(mode)?;
        }
        turns = definition.max_turns.unwrap_or(TURNS).min(TURNS);
        let named = |names: &[String], tool: &Value| {
            names
                .iter()
                .any(|name| tool["name"] == name.split('(').next().unwrap_or(name).trim())
        };
        if let Some(names) = &definition.tools {
            frame.tools.retain(|tool| named(names, tool));
        }
        frame
            .tools
            .retain(|tool| !named(&definition.disallowed, tool));
        if let Some(first) = frame.system.first_mut() {
            *first = definition.prompt;
        }
    }
    if let Some(name) = call.input["model"]
        .as_str()
        .filter(|name| *name != "inherit")
    {
        frame.model = model::named(name, &above.prices);
    }
    if let Some(effort) = call.input["effort"].as_str() {
        frame.effort = Some(effort.to_owned());
    }
    frame
        .system
        .insert(1.min(frame.system.len()), system_prompt::AGENT.to_owned());
    frame
        .tools
        .retain(|tool| !matches!(tool["name"].as_str(), Some("Agent" | "Task")));
    Ok(SessionSetup {
        client: above.client.clone(),
        record,
        frame,
        policy,
        hooks: above.hooks.clone(),
        place: above.place.clone(),
        kept: Arc::clone(&above.kept),
        lore: lock(&above.lore).clone(),
        more: above.more.clone(),
        env: above.env.clone(),
        fence: above.fence.clone(),
        turns: Some(turns),
        budget: None,
        prices: Arc::clone(&above.prices),
        compacts: true,
        asks: above.asks,
        history: None,
        source: None,
        begins: "startup",
        stays: false,
    })
}

/// What the session is told of its sub-agent.
fn forward(
    above: &Arc<SharedSession>,
    call: &ToolCallRequest,
    id: &str,
) -> impl FnMut(SessionNotice) + Send + use<> {
    let prompt = call.input["prompt"].clone();
    let (above, call, id) = (Arc::clone(above), call.id.clone(), id.to_owned());
    let mut calls = 0;
    move |notice| match notice {
        SessionNotice::CallBegan(inner) => {
            calls += 1;
            let data = json!({
                "type": "agent_progress", "agentId": id, "toolUses": calls,
                "tool": inner.name, "input": inner.input,
            });
            let call = call.clone();
            above.send(DriverMessage::Tell(SessionNotice::Progress { call, data }));
        }
        told @ (SessionNotice::Denied { .. }
        | SessionNotice::Warn(_)
        | SessionNotice::Retry { .. }) => {
            above.send(DriverMessage::Tell(told));
        }
        SessionNotice::Line { json, uuid, .. } => {
            if let Some(data) = progress(&json, &id, &prompt) {
                // What cannot be noted is shown all the same.
                let _ = above.add(NewEntry::Progress {
                    data,
                    call: call.clone(),
                    id: format!("agent_{call}"),
                });
            }
            above.send(DriverMessage::Tell(SessionNotice::Line {
                json,
                uuid,
                agent: Some(call.clone()),
            }));
        }
        _ => {}
    }
}

/// What the session notes of a line of its sub-agent: what the model said there. Its tokens
/// and the results of its calls stand in its own file only.
fn progress(line: &str, id: &str, prompt: &Value) -> Option<Value> {
    let line: Value = serde_json::from_str(line).ok()?;
    let message = &line["message"];
    if line["type"] != "assistant" || message["model"] == "<synthetic>" {
        return None;
    }
    Some(json!({
        "message": {
            "type": "assistant", "timestamp": line["timestamp"], "uuid": line["uuid"],
            "requestId": line["requestId"],
            "message": {
                "id": message["id"], "type": "message", "role": "assistant",
                "model": message["model"], "content": message["content"],
            },
        },
        "normalizedMessages": [], "type": "agent_progress", "prompt": prompt, "agentId": id,
    }))
}

fn new_agent() -> String {
    let id = crate::transcript_writer::new_id().replace('-', "");
    format!("a{}", &id[..16])
}
