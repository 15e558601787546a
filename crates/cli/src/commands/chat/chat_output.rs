//! What comes out: the answer, or a stream of JSON lines as scripts of the original expect.

use std::io::Write;
use std::time::Instant;

use clap::ValueEnum;
use serde_json::{Value, json};
use unspool_agent::driver::{QuestionKind, RunUsage, SessionNotice, SessionSetup};
use unspool_agent::slash_commands::CommandTemplate;
use unspool_agent::state_machine::{TurnEndReason, TurnEnding, api_error};
use unspool_agent::transcript_writer::new_id;
use unspool_show::clean;

use super::ChatArgs;
use crate::failure::CommandFailure;
use crate::ui;

/// How the answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ChatOutputFormat {
    /// Plain text
    #[default]
    Text,
    /// One JSON object with the answer, usage and cost
    Json,
    /// One JSON object per event
    StreamJson,
}

/// Prints what happens.
pub struct ChatOutput {
    form: ChatOutputFormat,
    partial: bool,
    session: String,
    init: Value,
    denials: Vec<Value>,
    spent: RunUsage,
    began: Instant,
    /// Time spent waiting for the API.
    waited: std::time::Duration,
    asked: Option<Instant>,
    quiet: bool,
}

impl ChatOutput {
    /// For a session that is about to begin.
    pub fn new(args: &ChatArgs, setup: &SessionSetup, session: &str, variable: &str) -> ChatOutput {
        let init = init(setup, session, variable);
        ChatOutput {
            form: args.output_format,
            partial: args.include_partial_messages,
            session: session.to_owned(),
            init,
            denials: Vec::new(),
            spent: RunUsage::default(),
            began: Instant::now(),
            waited: std::time::Duration::ZERO,
            asked: None,
            quiet: false,
        }
    }

    /// What comes before everything else.
    pub fn begin(&mut self) -> Result<(), CommandFailure> {
        if self.form == ChatOutputFormat::StreamJson {
            line(&self.init)?;
        }
        Ok(())
    }

    /// Prints what there is to print about something that happened.
    pub fn take(&mut self, notice: &SessionNotice) -> Result<(), CommandFailure> {
        match notice {
            SessionNotice::Asking => self.asked = Some(Instant::now()),
            SessionNotice::Usage { spent, .. } => {
                self.spent = spent.clone();
                if let Some(asked) = self.asked.take() {
                    self.waited += asked.elapsed();
                }
            }
            SessionNotice::Denied { call, asked, .. } => {
                let denial = json!({"tool_name": call.name, "tool_use_id": call.id, "tool_input": call.input});
                self.denials.push(denial.clone());
                // Whoever said no need not be told.
                if !asked {
                    let mut told = denial;
                    told["type"] = "system".into();
                    told["subtype"] = "permission_denied".into();
                    self.say(told)?;
                }
            }
            SessionNotice::Warn(text) if !self.quiet => {
                ui::say(&format!("Warning: {}", clean::text(text)));
            }
            SessionNotice::Retry {
                tries,
                most,
                wait,
                status,
                error,
                message,
            } => {
                if self.form == ChatOutputFormat::Text {
                    let seconds = wait.as_secs_f64();
                    let why = status.map_or_else(
                        || clean::text(message).into_owned(),
                        |status| status.to_string(),
                    );
                    ui::say(&format!(
                        "API error ({why}); retrying in {seconds:.1} s ({tries} of {most})"
                    ));
                }
                self.say(json!({
                    "type": "system", "subtype": "api_retry", "attempt": tries, "max_retries": most,
                    "retry_delay_ms": u64::try_from(wait.as_millis()).unwrap_or(0),
                    "error_status": status,
                    "error": if error.is_empty() { message } else { error },
                }))?;
            }
            SessionNotice::Raw(event) if self.partial => {
                self.say(
                    json!({"type": "stream_event", "event": event, "parent_tool_use_id": null}),
                )?;
            }
            SessionNotice::Line { json, uuid, agent }
                if self.form == ChatOutputFormat::StreamJson =>
            {
                if let Some(told) = retold(json, uuid, agent.as_deref()) {
                    self.say(told)?;
                }
            }
            SessionNotice::Ask {
                ask,
                call,
                what,
                agent,
            } => {
                let suggestions = match what {
                    QuestionKind::Permission { always, .. } if !always.is_empty() => {
                        json!([suggestion(always)])
                    }
                    _ => json!([]),
                };
                let mut request = json!({
                    "subtype": "can_use_tool", "tool_name": call.name, "input": call.input,
                    "tool_use_id": call.id, "permission_suggestions": suggestions,
                });
                if let Some(agent) = agent {
                    request["agent_id"] = agent.id.as_str().into();
                }
                self.say(json!({
                    "type": "control_request", "request_id": format!("ask-{ask}"),
                    "request": request,
                }))?;
            }
            // Whoever asks a person for us can take the question back.
            SessionNotice::Withdrawn { ask } => self.say(json!({
                "type": "control_cancel_request", "request_id": format!("ask-{ask}"),
            }))?,
            SessionNotice::Ended { ending, .. } => self.end(ending)?,
            SessionNotice::Unwritten { why, .. } => {
                let mut result = self.about("error_during_execution", true, 0);
                result["errors"] = json!([why]);
                if self.form != ChatOutputFormat::Text {
                    line(&result)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// One more line of the stream, if that is the form.
    fn say(&self, mut value: Value) -> Result<(), CommandFailure> {
        if self.form != ChatOutputFormat::StreamJson {
            return Ok(());
        }
        value["session_id"] = self.session.as_str().into();
        if value.get("uuid").is_none() {
            value["uuid"] = new_id().into();
        }
        line(&value)
    }

    fn end(&mut self, ending: &TurnEnding) -> Result<(), CommandFailure> {
        if self.form == ChatOutputFormat::Text {
            let text = ending.text.trim_end();
            if !text.is_empty() {
                let mut out = ui::data();
                // A person need not see the escapes of what a program would get.
                let text = match ui::is_terminal() {
                    true => clean::text(text),
                    false => text.into(),
                };
                writeln!(out, "{text}")?;
                out.flush()?;
            }
            return Ok(());
        }
        line(&self.result(ending))
    }

    fn result(&self, ending: &TurnEnding) -> Value {
        let (subtype, is_error) = match &ending.why {
            TurnEndReason::Done | TurnEndReason::Compacted => ("success", false),
            TurnEndReason::Failed(_)
            | TurnEndReason::Refused(_)
            | TurnEndReason::TooLong
            | TurnEndReason::NotCompacted(_) => ("success", true),
            TurnEndReason::MaxTurns => ("error_max_turns", true),
            TurnEndReason::Budget => ("error_max_budget_usd", true),
            TurnEndReason::Interrupted | TurnEndReason::Hook(_) => ("error_during_execution", true),
        };
        let mut result = self.about(subtype, is_error, ending.turns);
        if subtype == "success" {
            result["result"] = match &ending.why {
                TurnEndReason::Failed(trouble) => api_error(trouble),
                TurnEndReason::Refused(_) => "The model declined to answer.".to_owned(),
                TurnEndReason::TooLong => "The response exceeded the context window.".to_owned(),
                TurnEndReason::NotCompacted(why) => why.clone(),
                _ => ending.text.clone(),
            }
            .into();
        }
        result
    }

    /// What every result tells.
    fn about(&self, subtype: &str, is_error: bool, turns: u32) -> Value {
        let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(0);
        let mut result = json!({
            "type": "result", "subtype": subtype, "is_error": is_error,
            "duration_ms": ms(self.began.elapsed()), "duration_api_ms": ms(self.waited),
            "num_turns": turns,
        });
        result["session_id"] = self.session.as_str().into();
        result["total_cost_usd"] = self.spent.usd.into();
        if self.spent.unpriced_messages > 0 {
            // The client's own field stays a number: what is known of the cost.
            result["cost_usd"] = Value::Null;
            result["cost_usd_known"] = self.spent.usd.into();
            result["unpriced_messages"] = self.spent.unpriced_messages.into();
        }
        result["usage"] = self.spent.json();
        let models = self.spent.models.iter().map(|(name, (usage, usd))| {
            let of_model = json!({
                "inputTokens": usage.input, "outputTokens": usage.output,
                "cacheReadInputTokens": usage.cache_read,
                "cacheCreationInputTokens": usage.cache_write_5m + usage.cache_write_1h,
                "costUSD": usd,
            });
            (name.clone(), of_model)
        });
        result["modelUsage"] = Value::Object(models.collect());
        result["permission_denials"] = self.denials.clone().into();
        result["uuid"] = new_id().into();
        result
    }
}

/// What a session begins with.
fn init(setup: &SessionSetup, session: &str, variable: &str) -> Value {
    let tools = setup.frame.tools.iter().map(|tool| &tool["name"]);
    let servers = setup.more.as_ref().map(|more| more.servers());
    let servers = servers.iter().flatten();
    let servers =
        servers.map(|server| json!({"name": server.name, "status": server.health.name()}));
    let agents = setup.lore.agents.list.iter().map(|agent| &agent.name);
    let general = "general-purpose".to_owned();
    let commands = &setup.lore.commands.list;
    let names = |wanted: fn(&CommandTemplate) -> bool| {
        let wanted = commands.iter().filter(move |command| wanted(command));
        wanted.map(|command| &command.name).collect::<Vec<_>>()
    };
    json!({
        "type": "system", "subtype": "init",
        "cwd": setup.place.project, "session_id": session, "tools": tools.collect::<Vec<_>>(),
        "mcp_servers": servers.collect::<Vec<_>>(), "model": setup.frame.model,
        "permissionMode": setup.policy.mode().name(),
        "slash_commands": names(|command| command.for_person),
        "apiKeySource": variable, "output_style": "default",
        "agents": std::iter::once(&general).chain(agents).collect::<Vec<_>>(),
        "skills": names(|command| command.for_model), "plugins": [],
        "unspool_version": env!("CARGO_PKG_VERSION"), "uuid": new_id(),
    })
}

/// Rules that would save a question, as scripts of the original expect them.
fn suggestion(rules: &[String]) -> Value {
    let rules = rules.iter().map(|rule| {
        let inside = rule.strip_suffix(')').and_then(|rule| rule.split_once('('));
        match inside {
            Some((tool, content)) => json!({"toolName": tool, "ruleContent": content}),
            None => json!({"toolName": rule}),
        }
    });
    json!({
        "type": "addRules", "behavior": "allow", "destination": "localSettings",
        "rules": rules.collect::<Vec<_>>(),
    })
}

/// A line of the transcript as the stream tells it. Blocks come one by one, before it is known
/// why the message stops.
fn retold(json: &str, uuid: &str, agent: Option<&str>) -> Option<Value> {
    let mut entry: Value = serde_json::from_str(json).ok()?;
    if entry["type"] == "assistant" {
        entry["message"]["stop_reason"] = Value::Null;
    }
    let told = |kind: &str| json!({"type": kind, "message": entry["message"], "parent_tool_use_id": agent, "uuid": uuid});
    match entry["type"].as_str()? {
        "assistant" => Some(told("assistant")),
        "user" => {
            let result = entry["message"]["content"].get(0)?;
            (result["type"] == "tool_result").then(|| {
                let mut told = told("user");
                told["tool_use_result"] = entry["toolUseResult"].clone();
                told
            })
        }
        "system" if entry["subtype"] == "compact_boundary" => {
            let about = &entry["compactMetadata"];
            Some(json!({
                "type": "system", "subtype": "compact_boundary", "uuid": uuid,
                "compact_metadata": {"trigger": about["trigger"], "pre_tokens": about["preTokens"]},
            }))
        }
        _ => None,
    }
}

/// Answers whoever controls us.
pub fn respond(request: &str, answer: Result<Value, String>) {
    let response = match answer {
        Ok(response) => {
            json!({"subtype": "success", "request_id": request, "response": response})
        }
        Err(error) => json!({"subtype": "error", "request_id": request, "error": error}),
    };
    // Whoever does not read does not want to know.
    let _ = line(&json!({"type": "control_response", "response": response}));
}

fn line(value: &Value) -> Result<(), CommandFailure> {
    let mut out = ui::data();
    writeln!(out, "{value}")?;
    out.flush()?;
    Ok(())
}
