//! TaskCreate, TaskUpdate, TaskGet, TaskList: the list of tasks, one at a time.

use serde_json::{Map, Value, json};

use super::{choice, object, str_of, text};
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContext, ToolOutcome};

/// The tasks of a session, in the order they were made.
#[derive(Clone, Debug, Default)]
pub struct SessionTasks {
    all: Vec<SessionTask>,
    made: u64,
}

/// One of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionTask {
    /// Its number.
    pub id: String,
    /// What it is, in a few words.
    pub subject: String,
    /// What is to be done.
    pub description: String,
    /// What it is called while it is being done.
    pub active_form: Option<String>,
    /// `pending`, `in_progress` or `completed`.
    pub status: String,
    /// Who does it.
    pub owner: Option<String>,
    /// Tasks that wait for this one.
    pub blocks: Vec<String>,
    /// Tasks this one waits for.
    pub blocked_by: Vec<String>,
    /// Whatever else is known.
    pub metadata: Map<String, Value>,
}

impl SessionTasks {
    /// All of them.
    pub fn all(&self) -> &[SessionTask] {
        &self.all
    }

    fn find(&mut self, id: &str) -> Option<&mut SessionTask> {
        self.all.iter_mut().find(|task| task.id == id)
    }

    /// Those a task still waits for.
    fn waits_for<'a>(&self, task: &'a SessionTask) -> Vec<&'a str> {
        let open = |id: &&String| {
            let one = self.all.iter().find(|task| &&task.id == id);
            one.is_some_and(|task| task.status != "completed")
        };
        task.blocked_by
            .iter()
            .filter(open)
            .map(|id| &**id)
            .collect()
    }
}

/// Makes a task.
#[derive(Debug)]
pub struct TaskCreateTool;

impl BuiltinTool for TaskCreateTool {
    fn name(&self) -> &'static str {
        "TaskCreate"
    }

    fn description(&self) -> String {
        "Puts a task on the list of this session. Use it for work of three steps or more, so that \
         the person sees where you are; not for something you do at once."
            .to_owned()
    }

    fn schema(&self) -> Value {
        object([
            ("subject*", text("What it is, in a few words: an order")),
            ("description*", text("What is to be done")),
            (
                "activeForm",
                text("What it is called while it is being done"),
            ),
            ("metadata", any("Whatever else belongs to it")),
        ])
    }

    fn only_reads(&self, _: &Value) -> bool {
        false
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        let task = scene.host.kept().tasks(|tasks| {
            tasks.made += 1;
            let task = SessionTask {
                id: tasks.made.to_string(),
                subject: str_of(&call.input, "subject").to_owned(),
                description: str_of(&call.input, "description").to_owned(),
                active_form: call.input["activeForm"].as_str().map(str::to_owned),
                status: "pending".to_owned(),
                metadata: metadata(&call.input).cloned().unwrap_or_default(),
                ..SessionTask::default()
            };
            tasks.all.push(task.clone());
            task
        });
        let told = json!({"id": task.id, "subject": task.subject, "description": task.description});
        ToolOutcome::done(
            format!("Task #{} created successfully: {}", task.id, task.subject),
            json!({"task": told}),
        )
    }
}

/// Changes a task.
#[derive(Debug)]
pub struct TaskUpdateTool;

impl BuiltinTool for TaskUpdateTool {
    fn name(&self) -> &'static str {
        "TaskUpdate"
    }

    fn description(&self) -> String {
        "Changes a task: mark it in_progress when you begin and completed when it is really done; \
         `deleted` takes it off the list. Tasks can wait for each other."
            .to_owned()
    }

    fn schema(&self) -> Value {
        let ids = |about: &str| json!({"type": "array", "items": {"type": "string"}, "description": about});
        object([
            ("taskId*", text("The number of the task")),
            ("subject", text("What it is from now on")),
            ("description", text("What is to be done from now on")),
            (
                "activeForm",
                text("What it is called while it is being done"),
            ),
            (
                "status",
                choice(
                    "How far it is",
                    ["pending", "in_progress", "completed", "deleted"],
                ),
            ),
            ("addBlocks", ids("Tasks that wait for this one")),
            ("addBlockedBy", ids("Tasks this one waits for")),
            ("owner", text("Who does it")),
            (
                "metadata",
                any("What else belongs to it; null takes a field away"),
            ),
        ])
    }

    fn only_reads(&self, _: &Value) -> bool {
        false
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        scene.host.kept().tasks(|tasks| update(tasks, &call.input))
    }
}

fn update(tasks: &mut SessionTasks, input: &Value) -> ToolOutcome {
    let id = str_of(input, "taskId").trim_start_matches('#').to_owned();
    let Some(task) = tasks.find(&id) else {
        return missing(&id, true);
    };
    let mut changed = Vec::new();
    let before = task.status.clone();
    let fields = [
        ("subject", &mut task.subject),
        ("description", &mut task.description),
        ("status", &mut task.status),
    ];
    for (name, field) in fields {
        if let Some(new) = input[name].as_str().filter(|new| *new != field.as_str()) {
            new.clone_into(field);
            changed.push(name);
        }
    }
    for (name, field) in [
        ("activeForm", &mut task.active_form),
        ("owner", &mut task.owner),
    ] {
        if let Some(new) = input[name]
            .as_str()
            .filter(|new| Some(*new) != field.as_deref())
        {
            *field = Some(new.to_owned());
            changed.push(name);
        }
    }
    if let Some(more) = metadata(input) {
        for (key, value) in more {
            match value {
                Value::Null => drop(task.metadata.remove(key)),
                value => drop(task.metadata.insert(key.clone(), value.clone())),
            }
        }
        changed.push("metadata");
    }
    let status = task.status.clone();
    changed.extend(connect(tasks, &id, input));
    let mut result = json!({"success": true, "taskId": id, "updatedFields": changed});
    if status != before {
        result["statusChange"] = json!({"from": before, "to": status});
    }
    if status == "deleted" {
        tasks.all.retain(|task| task.id != id);
        return ToolOutcome::done(format!("Deleted task #{id}"), result);
    }
    let what = match changed.is_empty() {
        true => "nothing: it is so already".to_owned(),
        false => changed.join(", "),
    };
    ToolOutcome::done(format!("Updated task #{id} {what}"), result)
}

/// Who waits for whom is written down at both.
fn connect(tasks: &mut SessionTasks, id: &str, input: &Value) -> Vec<&'static str> {
    let mut changed = Vec::new();
    for name in ["addBlocks", "addBlockedBy"] {
        let others = input[name].as_array().into_iter().flatten();
        let others: Vec<&str> = others.filter_map(Value::as_str).collect();
        for other in others.into_iter().filter(|other| *other != id) {
            let (first, then) = match name {
                "addBlocks" => (id, other),
                _ => (other, id),
            };
            if tasks.find(first).is_none() || tasks.find(then).is_none() {
                continue;
            }
            if let Some(task) = tasks.find(first) {
                push(&mut task.blocks, then);
            }
            if let Some(task) = tasks.find(then) {
                push(&mut task.blocked_by, first);
            }
            push_name(&mut changed, name);
        }
    }
    changed
}

fn push(ids: &mut Vec<String>, id: &str) {
    if !ids.iter().any(|one| one == id) {
        ids.push(id.to_owned());
    }
}

fn push_name(names: &mut Vec<&'static str>, name: &'static str) {
    let name = match name {
        "addBlocks" => "blocks",
        _ => "blockedBy",
    };
    if !names.contains(&name) {
        names.push(name);
    }
}

fn missing(id: &str, updating: bool) -> ToolOutcome {
    let result = match updating {
        true => {
            json!({"success": false, "taskId": id, "updatedFields": [], "error": "Task not found"})
        }
        false => json!({"task": null}),
    };
    ToolOutcome::done("Task not found", result)
}

/// Shows a task.
#[derive(Debug)]
pub struct TaskGetTool;

impl BuiltinTool for TaskGetTool {
    fn name(&self) -> &'static str {
        "TaskGet"
    }

    fn description(&self) -> String {
        "Shows a task of this session with its description and what it waits for.".to_owned()
    }

    fn schema(&self) -> Value {
        object([("taskId*", text("The number of the task"))])
    }

    fn only_reads(&self, _: &Value) -> bool {
        true
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        let id = str_of(&call.input, "taskId").trim_start_matches('#');
        let task = scene.host.kept().tasks(|tasks| tasks.find(id).cloned());
        let Some(task) = task else {
            return missing(id, false);
        };
        let mut text = format!(
            "Task #{}: {}\nStatus: {}\nDescription: {}",
            task.id, task.subject, task.status, task.description
        );
        for (word, ids) in [("Blocked by", &task.blocked_by), ("Blocks", &task.blocks)] {
            if !ids.is_empty() {
                text += &format!("\n{word}: {}", listed(ids));
            }
        }
        let told = json!({
            "id": task.id, "subject": task.subject, "description": task.description,
            "status": task.status, "blocks": task.blocks, "blockedBy": task.blocked_by,
        });
        ToolOutcome::done(text, json!({"task": told}))
    }
}

/// Lists the tasks.
#[derive(Debug)]
pub struct TaskListTool;

impl BuiltinTool for TaskListTool {
    fn name(&self) -> &'static str {
        "TaskList"
    }

    fn description(&self) -> String {
        "Lists the tasks of this session: how far each is, and what it waits for.".to_owned()
    }

    fn schema(&self) -> Value {
        object([])
    }

    fn only_reads(&self, _: &Value) -> bool {
        true
    }

    fn run(&self, _: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        let tasks = scene.host.kept().tasks(|tasks| tasks.clone());
        let mut lines = Vec::new();
        let mut told = Vec::new();
        for task in tasks.all() {
            let waits = tasks.waits_for(task);
            let mut line = format!("#{} [{}] {}", task.id, task.status, task.subject);
            if let Some(owner) = &task.owner {
                line += &format!(" ({owner})");
            }
            if !waits.is_empty() {
                line += &format!(" [blocked by {}]", listed(&waits));
            }
            lines.push(line);
            let mut one = json!({
                "id": task.id, "subject": task.subject, "status": task.status,
                "blockedBy": waits,
            });
            if let Some(owner) = &task.owner {
                one["owner"] = json!(owner);
            }
            told.push(one);
        }
        let text = match lines.is_empty() {
            true => "No tasks found".to_owned(),
            false => lines.join("\n"),
        };
        ToolOutcome::done(text, json!({"tasks": told}))
    }
}

fn listed(ids: &[impl AsRef<str>]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("#{}", id.as_ref())).collect();
    ids.join(", ")
}

fn metadata(input: &Value) -> Option<&Map<String, Value>> {
    input["metadata"].as_object()
}

/// An object that may hold anything.
fn any(about: &str) -> Value {
    json!({"type": "object", "additionalProperties": true, "description": about})
}
