//! The tools that stand in transcripts: what to call them and what a call is about.
//!
//! One list, used by every screen, picker and index. A tool that is not in it works too: its
//! name is its verb, and its subject is the first short text of its input.

/// How a call of a tool is shown.
#[derive(Debug)]
pub struct Tool {
    /// The name in the transcript.
    pub name: &'static str,
    /// What it did, in one word.
    pub verb: &'static str,
    /// The input fields that say what a call is about; the first one present counts.
    pub subject: &'static [&'static str],
    /// What it does to files.
    pub touch: FileAccess,
}

/// What a tool does to the file its input names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// Nothing.
    None,
    /// Reads it.
    Read,
    /// Writes all of it.
    Write,
    /// Changes a part of it.
    Edit,
}

const fn tool(name: &'static str, verb: &'static str, subject: &'static [&'static str]) -> Tool {
    Tool {
        name,
        verb,
        subject,
        touch: FileAccess::None,
    }
}

const fn file_tool(
    name: &'static str,
    verb: &'static str,
    subject: &'static [&'static str],
    touch: FileAccess,
) -> Tool {
    Tool {
        name,
        verb,
        subject,
        touch,
    }
}

/// Every tool we know, by name.
pub const ALL: &[Tool] = &[
    file_tool("Read", "read", &["file_path", "path"], FileAccess::Read),
    file_tool("Write", "wrote", &["file_path", "path"], FileAccess::Write),
    file_tool("Edit", "edited", &["file_path", "path"], FileAccess::Edit),
    file_tool("MultiEdit", "edited", &["file_path"], FileAccess::Edit),
    file_tool(
        "NotebookEdit",
        "edited",
        &["notebook_path"],
        FileAccess::Edit,
    ),
    file_tool("NotebookRead", "read", &["notebook_path"], FileAccess::Read),
    tool("Bash", "ran", &["command", "description"]),
    tool("PowerShell", "ran", &["command", "description"]),
    tool("BashOutput", "read output of", &["bash_id"]),
    tool("TaskOutput", "read output of", &["task_id"]),
    tool("KillShell", "killed", &["shell_id"]),
    tool("KillBash", "killed", &["shell_id"]),
    tool("TaskStop", "stopped", &["task_id", "shell_id"]),
    tool("Glob", "listed", &["pattern"]),
    tool("Grep", "searched", &["pattern"]),
    tool("LS", "listed", &["path"]),
    tool("LSP", "asked", &["operation", "filePath"]),
    tool("Task", "sent agent", &["description", "subagent_type"]),
    tool("Agent", "sent agent", &["description", "subagent_type"]),
    tool(
        "Workflow",
        "ran workflow",
        &["name", "description", "scriptPath"],
    ),
    tool("SendMessage", "wrote to", &["to", "recipient"]),
    tool("TodoWrite", "planned", &["todos"]),
    tool("TaskCreate", "planned", &["subject", "description"]),
    tool("TaskUpdate", "updated task", &["taskId", "subject"]),
    tool("TaskGet", "looked at task", &["taskId"]),
    tool("TaskList", "listed tasks", &[]),
    tool("WebSearch", "searched the web for", &["query"]),
    tool("WebFetch", "fetched", &["url"]),
    tool("Skill", "used skill", &["skill", "command", "name"]),
    tool("SlashCommand", "ran", &["command"]),
    tool("AskUserQuestion", "asked", &["questions"]),
    tool("EnterPlanMode", "began planning", &[]),
    tool("ExitPlanMode", "proposed a plan", &["plan"]),
    tool("ToolSearch", "looked for tools", &["query"]),
    tool("EnterWorktree", "entered worktree", &["name"]),
    tool("ExitWorktree", "left worktree", &["action"]),
    tool("ListMcpResourcesTool", "listed resources of", &["server"]),
    tool("ReadMcpResourceTool", "read resource", &["uri"]),
    tool("StructuredOutput", "answered", &[]),
    tool("Monitor", "watched", &["description", "command"]),
    tool("CronCreate", "scheduled", &["cron", "prompt"]),
    tool("CronDelete", "unscheduled", &["id"]),
    tool("CronList", "listed schedules", &[]),
];

/// The descriptor of a tool by its name.
pub fn known(name: &str) -> Option<&'static Tool> {
    ALL.iter().find(|tool| tool.name == name)
}

/// What a call of the tool did, in a word or two; the name itself for tools we do not know.
pub fn verb(name: &str) -> &str {
    known(name).map_or(name, |tool| tool.verb)
}

/// What the tool does to files.
pub fn touch(name: &str) -> FileAccess {
    known(name).map_or(FileAccess::None, |tool| tool.touch)
}

/// Whether an input field of this name holds the path of a file, whatever the tool.
pub fn is_path(field: &str) -> bool {
    matches!(field, "file_path" | "filePath" | "notebook_path" | "path")
}

/// Whether the tool starts a sub-agent.
pub fn is_agent(name: &str) -> bool {
    matches!(name, "Task" | "Agent")
}

/// Whether the tool starts a workflow run, which starts many.
pub fn is_workflow(name: &str) -> bool {
    name == "Workflow"
}

/// How well an input field says what a call is about; smaller is better, `None` not at all.
pub(crate) fn rank(name: &str, field: &str) -> Option<usize> {
    match known(name) {
        Some(tool) => tool.subject.iter().position(|key| *key == field),
        // Any text will do for a tool nobody has described.
        None => Some(
            if matches!(field, "query" | "path" | "url" | "name" | "command") {
                0
            } else {
                1
            },
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_stands_in_the_list_once() {
        for tool in ALL {
            assert_eq!(
                ALL.iter().filter(|other| other.name == tool.name).count(),
                1,
                "{}",
                tool.name
            );
        }
        assert_eq!((verb("Read"), verb("mcp__x__y")), ("read", "mcp__x__y"));
    }
}
