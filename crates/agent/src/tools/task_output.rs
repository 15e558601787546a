//! TaskOutput, and BashOutput as older clients called it: what something in the background
//! wrote.

use std::sync::Arc;
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::{Value, json};

use super::{BackgroundTask, number, number_of, object, str_of, text, truth};
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContext, ToolOutcome};

const DEFAULT: u64 = 30_000;
const LONGEST: u64 = 600_000;

/// The tool.
#[derive(Debug)]
pub struct TaskOutputTool;

impl BuiltinTool for TaskOutputTool {
    fn name(&self) -> &'static str {
        "TaskOutput"
    }

    fn description(&self) -> String {
        "Gives what a command or an agent in the background has written, and how it ended. Waits \
         for its end unless `block` is false. You are told of its end anyway: there is no need to \
         ask again and again."
            .to_owned()
    }

    fn schema(&self) -> Value {
        let mut timeout = number("Milliseconds to wait at most; 30000 unless given");
        timeout["minimum"] = json!(0);
        timeout["maximum"] = json!(LONGEST);
        object([
            ("task_id*", text("The id that was given when it began")),
            ("block", truth("Wait for its end; true unless given")),
            ("timeout", timeout),
        ])
    }

    fn only_reads(&self, _: &Value) -> bool {
        true
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        let id = str_of(&call.input, "task_id");
        let Some(task) = scene.host.kept().find(id) else {
            return unknown(id);
        };
        let limit = number_of(&call.input, "timeout").unwrap_or(DEFAULT);
        let block = call.input["block"] != false;
        if block {
            if task.done().is_none() {
                let waits = json!({
                    "type": "waiting_for_task", "taskDescription": task.description(),
                    "taskType": task.kind(),
                });
                scene.host.progress(call, waits);
            }
            wait(&task, Duration::from_millis(limit), scene);
        }
        let retrieved = match (task.done().is_some(), block) {
            (true, _) => "success",
            (false, true) => "timeout",
            (false, false) => "not_ready",
        };
        tell(&*task, retrieved)
    }
}

fn wait(task: &Arc<dyn BackgroundTask>, time: Duration, scene: &ToolContext<'_>) {
    let end = Instant::now() + time;
    while task.done().is_none() && !scene.stop.is_told() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        task.wait(left.min(Duration::from_millis(20)));
    }
}

fn tell(task: &dyn BackgroundTask, retrieved: &str) -> ToolOutcome {
    let done = task.done();
    let status = done.as_ref().map_or("running", |done| done.status);
    let code = done.as_ref().and_then(|done| done.code);
    if done.is_some() {
        // Whoever asked need not be told once more.
        task.told();
    }
    let output = task.output(true);
    let (id, kind) = (task.id(), task.kind());
    let mut parts = vec![
        format!("<retrieval_status>{retrieved}</retrieval_status>"),
        format!("<task_id>{id}</task_id>"),
        format!("<task_type>{kind}</task_type>"),
        format!("<status>{status}</status>"),
    ];
    if let Some(code) = code {
        parts.push(format!("<exit_code>{code}</exit_code>"));
    }
    if !output.trim().is_empty() {
        parts.push(format!("<output>\n{}\n</output>", output.trim_end()));
    }
    let mut told = json!({
        "task_id": id, "task_type": kind, "status": status, "description": task.description(),
        "output": output,
    });
    if let Some(code) = code {
        told["exitCode"] = json!(code);
    }
    ToolOutcome::done(
        parts.join("\n\n"),
        json!({"retrieval_status": retrieved, "task": told}),
    )
}

pub(super) fn unknown(id: &str) -> ToolOutcome {
    ToolOutcome::refused(format!("No task found with ID: {id}"))
}

/// The tool as it was.
#[derive(Debug)]
pub struct BashOutputTool;

impl BuiltinTool for BashOutputTool {
    fn name(&self) -> &'static str {
        "BashOutput"
    }

    fn is_offered(&self) -> bool {
        false
    }

    fn description(&self) -> String {
        "Gives what a shell in the background has written since it was asked last; `filter` keeps \
         only lines that match."
            .to_owned()
    }

    fn schema(&self) -> Value {
        object([
            ("bash_id*", text("The id of the shell")),
            ("filter", text("A regular expression for lines to keep")),
        ])
    }

    fn only_reads(&self, _: &Value) -> bool {
        true
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        let id = str_of(&call.input, "bash_id");
        let Some(task) = scene.host.kept().find(id) else {
            return ToolOutcome::refused(format!("No shell found with ID: {id}"));
        };
        let filter = match call.input["filter"].as_str().map(Regex::new).transpose() {
            Ok(filter) => filter,
            Err(error) => return ToolOutcome::refused(format!("Invalid filter: {error}")),
        };
        let done = task.done();
        let output = task.output(false);
        let keep = |line: &&str| filter.as_ref().is_none_or(|filter| filter.is_match(line));
        let lines: Vec<&str> = output.trim_end().lines().filter(keep).collect();
        let stdout = lines.join("\n");
        let status = done.as_ref().map_or("running", |done| done.status);
        let code = done.and_then(|done| done.code);
        let mut parts = vec![format!("<status>{status}</status>")];
        if let Some(code) = code {
            parts.push(format!("<exit_code>{code}</exit_code>"));
        }
        if !stdout.is_empty() {
            parts.push(format!("<stdout>\n{stdout}\n</stdout>"));
        }
        let now = jiff::Timestamp::now().to_string();
        parts.push(format!("<timestamp>{now}</timestamp>"));
        let result = json!({
            "shellId": id, "command": task.command(), "status": status, "exitCode": code,
            "stdout": stdout, "stderr": "", "stdoutLines": lines.len(), "stderrLines": 0,
            "timestamp": now,
        });
        ToolOutcome::done(parts.join("\n\n"), result)
    }
}
