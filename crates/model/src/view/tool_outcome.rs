//! What came of a tool call, as typed facts: counts, exit codes, changes to files.
//!
//! The only place that knows what tools write into their results. One function per tool,
//! one table. Where the structured result is missing (sub-agents' files since 2.1.29 have
//! none), the facts come from the text and the input. How they are worded is decided by
//! whoever shows them.

use serde_json::Value;

use crate::json::{self, JsonCursor};
use crate::user_input;

/// What came of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ToolCallOutcome {
    /// Nothing beyond its text.
    #[default]
    Plain,
    /// A file was read.
    Read {
        /// Lines given to the model.
        lines: u64,
        /// Lines the file has.
        of: Option<u64>,
    },
    /// Something other than text was read: an image, a PDF, a notebook.
    Media(String),
    /// A command ran.
    Ran {
        /// Its exit code, where the transcript tells.
        exit: Option<i64>,
        /// It went on in the background.
        background: bool,
        /// A person or a time limit ended it.
        interrupted: bool,
    },
    /// A search found something.
    Found {
        /// Files.
        files: Option<u64>,
        /// Lines or matches.
        lines: Option<u64>,
        /// There was more.
        cut: bool,
    },
    /// A file was written.
    Wrote {
        /// It is new.
        created: bool,
        /// Its lines.
        lines: u64,
    },
    /// A page was fetched.
    Fetched {
        /// Its size.
        bytes: Option<u64>,
        /// The HTTP status.
        status: Option<u64>,
    },
    /// The web was searched.
    Searched {
        /// Number of results.
        results: u64,
    },
    /// A sub-agent worked.
    Agent(AgentOutcome),
    /// The list of things to do.
    Todos(Vec<TodoItem>),
    /// Questions to the person.
    Asked(Vec<UserQuestion>),
    /// A task changed its state.
    Moved {
        /// What it was.
        from: Option<String>,
        /// What it is.
        to: String,
    },
    /// A plan was proposed.
    Plan(String),
    /// A person or a rule refused the call.
    Refused {
        /// What they said.
        said: Option<String>,
    },
}

/// What a sub-agent did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentOutcome {
    /// Its type, such as `Explore`.
    pub kind: Option<String>,
    /// How many calls it made.
    pub calls: Option<u64>,
    /// How many tokens it took.
    pub tokens: Option<u64>,
    /// How long it worked.
    pub duration_ms: Option<u64>,
    /// It was started and went on in the background.
    pub background: bool,
    /// Its last words.
    pub report: Option<String>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub struct TodoItem {
    /// What.
    pub text: String,
    /// How far.
    pub state: TodoState,
}

/// How far a thing to do is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TodoState {
    /// Not begun.
    Open,
    /// Being done.
    Active,
    /// Done.
    Done,
}

/// A question to the person.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserQuestion {
    /// The question.
    pub text: String,
    /// The answers it offers.
    pub options: Vec<String>,
    /// The answer that was given.
    pub answer: Option<String>,
}

/// How a call changed a file.
#[derive(Clone, Debug, PartialEq)]
pub enum FileChange {
    /// The client's own patch.
    Hunks(Vec<PatchHunk>),
    /// Old and new text; where in the file is not known.
    Replaced(Vec<(String, String)>),
    /// All of a file.
    Written(String),
}

/// A piece of a patch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PatchHunk {
    /// First line in the old file.
    pub old_start: u64,
    /// First line in the new file.
    pub new_start: u64,
    /// Its lines.
    pub lines: Vec<(PatchSign, String)>,
}

/// What happened to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchSign {
    /// Unchanged.
    Same,
    /// Only in the old file.
    Removed,
    /// Only in the new file.
    Added,
}

/// What is known of a call when its outcome is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ToolCallFacts<'a> {
    /// The tool.
    pub name: &'a str,
    /// Its input.
    pub input: &'a Value,
    /// The structured result, or null.
    pub meta: &'a Value,
    /// The text of the result; `None` if there is no result.
    pub text: Option<&'a str>,
    /// The result reports a failure.
    pub is_error: bool,
}

/// Fields of a structured result that hold copies of whole files and of what was printed, and
/// that nothing here reads.
const COPIES: &[&str] = &[
    "originalFile",
    "oldString",
    "newString",
    "stdout",
    "stderr",
    "filenames",
    "oldTodos",
    "prompt",
];

/// The structured result without the copies in it: as good for [`outcome`] and [`change`], and
/// half the work. It was passed over before.
pub(crate) fn lean(raw: &[u8]) -> Value {
    let mut fields = serde_json::Map::new();
    let mut cursor = JsonCursor::new(raw).trusting();
    let read = cursor.object(|c, key| {
        let span = c.skip()?;
        match key {
            "file" => drop(fields.insert(key.to_owned(), lean_file(span.of(raw)))),
            _ if COPIES.contains(&key) => {}
            _ => drop(fields.insert(key.to_owned(), json::value(span.of(raw)))),
        }
        Ok(())
    });
    match read {
        Ok(true) => Value::Object(fields),
        _ => json::value(raw),
    }
}

/// A file that was read: of its content only the end counts if its lines are counted.
fn lean_file(raw: &[u8]) -> Value {
    let mut fields = serde_json::Map::new();
    let mut content: Option<&[u8]> = None;
    let mut cursor = JsonCursor::new(raw).trusting();
    let read = cursor.object(|c, key| {
        let value = c.skip()?.of(raw);
        match key {
            "content" => content = Some(value),
            _ => drop(fields.insert(key.to_owned(), json::value(value))),
        }
        Ok(())
    });
    if !matches!(read, Ok(true)) {
        return json::value(raw);
    }
    let counted = fields.get("numLines").is_some_and(Value::is_u64);
    if let Some(content) = content {
        let value = match content {
            [b'"', inner @ .., b'"'] if counted => Value::from(last_character(inner)),
            _ => json::value(content),
        };
        fields.insert("content".to_owned(), value);
    }
    Value::Object(fields)
}

/// The last characters of a JSON string, given without its quotes.
fn last_character(inner: &[u8]) -> String {
    let escape = memchr::memrchr(b'\\', inner).filter(|at| inner.len() - at <= 6);
    let Some(last) = escape else {
        let ascii = inner.last().filter(|byte| byte.is_ascii());
        return ascii
            .map(|byte| char::from(*byte).to_string())
            .unwrap_or_default();
    };
    // It may be the second of two, which are one.
    let before = inner[..last].iter().rev();
    let odd = before.take_while(|byte| **byte == b'\\').count() % 2;
    json::inner(&inner[last - odd..]).into_owned()
}

type OutcomeReader = fn(&ToolCallFacts<'_>) -> ToolCallOutcome;

/// Which function reads the results of which tool.
const TABLE: &[(&str, OutcomeReader)] = &[
    ("Read", read),
    ("NotebookRead", read),
    ("Bash", ran),
    ("PowerShell", ran),
    ("BashOutput", ran),
    ("TaskOutput", ran),
    ("Glob", found),
    ("Grep", found),
    ("LS", listed),
    ("Write", wrote),
    ("WebFetch", fetched),
    ("WebSearch", searched),
    ("Task", agent),
    ("Agent", agent),
    ("TodoWrite", todos),
    ("TaskUpdate", moved),
    ("AskUserQuestion", asked),
    ("ExitPlanMode", plan),
];

/// What came of a call.
pub fn outcome(facts: &ToolCallFacts<'_>) -> ToolCallOutcome {
    if let Some(refused) = refused(facts) {
        return refused;
    }
    let reader = TABLE.iter().find(|(name, _)| *name == facts.name);
    reader.map_or(ToolCallOutcome::Plain, |(_, read)| read(facts))
}

/// How the call changed a file; `None` if it did not, or failed.
pub fn change(facts: &ToolCallFacts<'_>) -> Option<FileChange> {
    if facts.is_error || facts.text.is_none() || facts.meta.is_string() {
        return None;
    }
    let hunks = hunks(&facts.meta["structuredPatch"]);
    if !hunks.is_empty() {
        return Some(FileChange::Hunks(hunks));
    }
    match facts.name {
        "Edit" | "NotebookEdit" => {
            replaced(facts.input).map(|pair| FileChange::Replaced(vec![pair]))
        }
        "MultiEdit" => {
            let edits = facts.input["edits"].as_array()?;
            Some(FileChange::Replaced(
                edits.iter().filter_map(replaced).collect(),
            ))
        }
        "Write" => string(&facts.input["content"])
            .or_else(|| string(&facts.meta["content"]))
            .map(FileChange::Written),
        _ => None,
    }
}

fn replaced(input: &Value) -> Option<(String, String)> {
    let new = string(&input["new_string"]).or_else(|| string(&input["new_source"]))?;
    Some((string(&input["old_string"]).unwrap_or_default(), new))
}

fn hunks(patch: &Value) -> Vec<PatchHunk> {
    let all = patch.as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(hunk).collect()
}

fn hunk(value: &Value) -> PatchHunk {
    let lines = value["lines"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let line = |line: &str| match line.chars().next() {
        Some('+') => (PatchSign::Added, line[1..].to_owned()),
        Some('-') => (PatchSign::Removed, line[1..].to_owned()),
        Some(' ') => (PatchSign::Same, line[1..].to_owned()),
        _ => (PatchSign::Same, line.to_owned()),
    };
    PatchHunk {
        old_start: value["oldStart"].as_u64().unwrap_or(1),
        new_start: value["newStart"].as_u64().unwrap_or(1),
        // "\ No newline at end of file" is about the file, not a line of it.
        lines: lines
            .iter()
            .filter_map(Value::as_str)
            .filter(|text| !text.starts_with('\\'))
            .map(line)
            .collect(),
    }
}

fn string(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn line_count(text: &str) -> u64 {
    text.lines().count() as u64
}

fn refused(facts: &ToolCallFacts<'_>) -> Option<ToolCallOutcome> {
    let text = facts.text.filter(|_| facts.is_error)?;
    let refused = [
        "The user doesn't want to proceed with this tool use",
        "The user doesn't want to take this action right now",
    ];
    if !refused.iter().any(|start| text.starts_with(start)) {
        return None;
    }
    let said = ["the user said:", "reason for the rejection:"]
        .iter()
        .find_map(|mark| text.split_once(mark))
        .map(|(_, said)| said.trim().to_owned())
        .filter(|said| !said.is_empty());
    Some(ToolCallOutcome::Refused { said })
}

fn read(facts: &ToolCallFacts<'_>) -> ToolCallOutcome {
    let file = &facts.meta["file"];
    match facts.meta["type"].as_str() {
        Some("text") => ToolCallOutcome::Read {
            lines: shown_lines(file),
            of: file["totalLines"].as_u64(),
        },
        Some("file_unchanged") => ToolCallOutcome::Media("unchanged".to_owned()),
        Some(other) => ToolCallOutcome::Media(other.replace('_', " ")),
        None if facts.is_error => ToolCallOutcome::Plain,
        None => facts
            .text
            .map_or(ToolCallOutcome::Plain, |text| ToolCallOutcome::Read {
                lines: numbered_lines(text),
                of: None,
            }),
    }
}

/// The client counts the empty piece behind the last newline as a line; people do not.
fn shown_lines(file: &Value) -> u64 {
    let counted = file["numLines"].as_u64();
    let content = file["content"].as_str();
    match (counted, content) {
        (Some(counted), Some(content)) if content.ends_with('\n') => counted.saturating_sub(1),
        (Some(counted), _) => counted,
        (None, content) => content.map_or(0, line_count),
    }
}

/// Lines of a `Read` result, which numbers them: `     1→text` or `1\ttext`.
fn numbered_lines(text: &str) -> u64 {
    let numbered = |line: &&str| {
        let rest = line
            .trim_start()
            .trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < line.trim_start().len() && (rest.starts_with('→') || rest.starts_with('\t'))
    };
    let last_is_empty = |line: &str| line.ends_with('→') || line.ends_with('\t');
    let lines: Vec<&str> = text.lines().filter(numbered).collect();
    let ghost = lines.last().is_some_and(|line| last_is_empty(line));
    (lines.len() as u64).saturating_sub(u64::from(ghost && lines.len() > 1))
}

fn ran(facts: &ToolCallFacts<'_>) -> ToolCallOutcome {
    let text = facts.text.unwrap_or_default();
    let meta = facts.meta;
    let written = text
        .trim_start_matches("Error: ")
        .strip_prefix("Exit code ")
        .and_then(|rest| rest.lines().next()?.trim().parse().ok());
    let zero = (facts.text.is_some() && !facts.is_error && meta.is_object()).then_some(0);
    let background = meta["backgroundTaskId"].is_string() || meta["backgroundedByUser"] == true;
    let interrupted = meta["interrupted"] == true;
    let exit = meta["exitCode"].as_i64().or(written).or(zero);
    ToolCallOutcome::Ran {
        exit: exit.filter(|_| !background && !interrupted),
        background,
        interrupted,
    }
}

fn found(facts: &ToolCallFacts<'_>) -> ToolCallOutcome {
    let meta = facts.meta;
    if facts.is_error || facts.text.is_none() {
        return ToolCallOutcome::Plain;
    }
    if !meta.is_object() {
        let text = facts.text.unwrap_or_default();
        let none = text.starts_with("No files found") || text.starts_with("No matches found");
        let lines = if none { 0 } else { line_count(text) };
        return ToolCallOutcome::Found {
            files: None,
            lines: Some(lines),
            cut: false,
        };
    }
    let content = meta["mode"] == "content";
    let matches = meta["numMatches"].as_u64().or(meta["numLines"].as_u64());
    let files = meta["totalFiles"].as_u64().or(meta["numFiles"].as_u64());
    ToolCallOutcome::Found {
        files: files.filter(|files| !content || *files > 0),
        lines: matches,
        cut: meta["truncated"] == true,
    }
}

fn listed(facts: &ToolCallFacts<'_>) -> ToolCallOutcome {
    match facts.text.filter(|_| !facts.is_error) {
        Some(text) => ToolCallOutcome::Found {
            files: None,
            lines: Some(line_count(text)),
            cut: false,
        },
        None => ToolCallOutcome::Plain,
    }
}

fn wrote(facts: &ToolCallFacts<'_>) -> ToolCallOutcome {
    if facts.is_error || facts.text.is_none() {
        return ToolCallOutcome::Plain;
    }
    let says_new = facts.text.is_some_and(|text| text.contains("created"));
    ToolCallOutcome::Wrote {
        created: facts.meta["type"]
            .as_str()
            .map_or(says_new, |kind| kind == "create"),
        lines: facts.input["content"].as_str().map_or(0, line_count),
    }
}

fn fetched(facts: &ToolCallFacts<'_>) -> ToolCallOutcome {
    ToolCallOutcome::Fetched {
        bytes: facts.meta["bytes"].as_u64(),
        status: facts.meta["code"].as_u64(),
    }
}

fn searched(facts: &ToolCallFacts<'_>) -> ToolCallOutcome {
    let results = facts.meta["results"].as_array().map(Vec::as_slice);
    let hits = |part: &Value| part["content"].as_array().map_or(0, Vec::len) as u64;
    match results {
        Some(parts) => ToolCallOutcome::Searched {
            results: parts.iter().map(hits).sum(),
        },
        None => ToolCallOutcome::Plain,
    }
}

fn agent(facts: &ToolCallFacts<'_>) -> ToolCallOutcome {
    let meta = facts.meta;
    let kind = string(&meta["agentType"]).or_else(|| string(&facts.input["subagent_type"]));
    let background = meta["status"] == "async_launched" || meta["isAsync"] == true;
    let parts = meta["content"].as_array().map(Vec::as_slice);
    let texts = |parts: &[Value]| {
        let own = |text: &&str| !text.starts_with("<tools-used-before-summary>");
        let texts: Vec<&str> = parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect();
        texts.into_iter().filter(own).collect::<Vec<_>>().join("\n")
    };
    let told = facts.text.filter(|_| !background && !facts.is_error);
    ToolCallOutcome::Agent(AgentOutcome {
        kind,
        calls: meta["totalToolUseCount"].as_u64(),
        tokens: meta["totalTokens"].as_u64(),
        duration_ms: meta["totalDurationMs"].as_u64(),
        background,
        report: parts
            .map(texts)
            .or_else(|| told.map(str::to_owned))
            .filter(|text| !text.trim().is_empty()),
    })
}

fn todos(facts: &ToolCallFacts<'_>) -> ToolCallOutcome {
    let list = facts.input["todos"].as_array().map(Vec::as_slice);
    let todo = |item: &Value| TodoItem {
        text: string(&item["content"])
            .or_else(|| string(&item["subject"]))
            .unwrap_or_default(),
        state: match item["status"].as_str() {
            Some("completed") => TodoState::Done,
            Some("in_progress") => TodoState::Active,
            _ => TodoState::Open,
        },
    };
    match list.filter(|_| !facts.is_error) {
        Some(list) => ToolCallOutcome::Todos(list.iter().map(todo).collect()),
        None => ToolCallOutcome::Plain,
    }
}

fn moved(facts: &ToolCallFacts<'_>) -> ToolCallOutcome {
    let change = &facts.meta["statusChange"];
    let to = string(&change["to"]).or_else(|| string(&facts.input["status"]));
    match to.filter(|_| !facts.is_error) {
        Some(to) => ToolCallOutcome::Moved {
            from: string(&change["from"]),
            to,
        },
        None => ToolCallOutcome::Plain,
    }
}

fn asked(facts: &ToolCallFacts<'_>) -> ToolCallOutcome {
    let list = facts.input["questions"].as_array().map(Vec::as_slice);
    let question = |item: &Value| {
        let text = string(&item["question"]).unwrap_or_default();
        let options = item["options"].as_array().map(Vec::as_slice);
        UserQuestion {
            options: options
                .unwrap_or_default()
                .iter()
                .filter_map(|option| string(&option["label"]).or_else(|| string(option)))
                .collect(),
            answer: answer(&facts.meta["answers"][&text]),
            text,
        }
    };
    let list = list.unwrap_or_default();
    ToolCallOutcome::Asked(list.iter().map(question).collect())
}

/// Answers to questions with several choices are lists.
fn answer(value: &Value) -> Option<String> {
    let several = value.as_array().map(|all| {
        let texts: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
        texts.join(", ")
    });
    string(value).or(several)
}

fn plan(facts: &ToolCallFacts<'_>) -> ToolCallOutcome {
    let plan = string(&facts.input["plan"]).or_else(|| string(&facts.meta["plan"]));
    plan.map_or(ToolCallOutcome::Plain, ToolCallOutcome::Plan)
}

/// The text of a failure without the wrappers the client puts around it.
pub fn failure(text: &str) -> &str {
    let text = user_input::tagged(text, "tool_use_error").unwrap_or(text);
    text.strip_prefix("Error: ").unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_lean_file_says_how_many_lines_it_has(content in "[a\\\\né/]{0,4}", counted in any::<bool>(), escaped in any::<bool>()) {
            let mut raw = json!({"file": {"content": content, "numLines": 3, "totalLines": 4}}).to_string();
            if !counted {
                raw = raw.replace("numLines", "n");
            }
            if escaped {
                raw = raw.replace("\\n", "\\u000a");
            }
            let whole = json::value(raw.as_bytes());
            let lean = lean(raw.as_bytes());
            prop_assert_eq!(shown_lines(&lean["file"]), shown_lines(&whole["file"]));
            prop_assert_eq!(&lean["file"]["totalLines"], &whole["file"]["totalLines"]);
        }
    }

    use serde_json::json;

    fn of(
        name: &str,
        input: Value,
        meta: Value,
        text: Option<&str>,
        is_error: bool,
    ) -> ToolCallOutcome {
        outcome(&ToolCallFacts {
            name,
            input: &input,
            meta: &meta,
            text,
            is_error,
        })
    }

    #[test]
    fn a_file_has_as_many_lines_as_people_count() {
        let meta = json!({"type":"text","file":{"content":"a\nb\n","numLines":3,"totalLines":3}});
        let lines = |outcome| match outcome {
            ToolCallOutcome::Read { lines, .. } => lines,
            other => panic!("{other:?}"),
        };
        assert_eq!(lines(of("Read", json!({}), meta, Some(""), false)), 2);
        let text = "     1→a\n     2→b\n     3→\n<system-reminder>x</system-reminder>";
        assert_eq!(
            lines(of("Read", json!({}), Value::Null, Some(text), false)),
            2
        );
        assert_eq!(
            lines(of("Read", json!({}), Value::Null, Some("1\tx"), false)),
            1
        );
    }

    #[test]
    fn exit_codes_come_from_wherever_the_client_wrote_them() {
        let exit = |meta: Value, text: &str, is_error| match of(
            "Bash",
            json!({}),
            meta,
            Some(text),
            is_error,
        ) {
            ToolCallOutcome::Ran { exit, .. } => exit,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            exit(json!("Error: Exit code 3\nx"), "Exit code 3\nx", true),
            Some(3)
        );
        assert_eq!(exit(Value::Null, "Exit code 101\nx", true), Some(101));
        assert_eq!(exit(json!({"stdout":"x"}), "x", false), Some(0));
        assert_eq!(exit(Value::Null, "x", false), None);
        assert_eq!(exit(json!({"interrupted":true}), "x", false), None);
    }

    #[test]
    fn questions_keep_their_options_and_answers() {
        let input = json!({"questions":[
            {"question":"Which?","options":[{"label":"A"},{"label":"B"}]},
            {"question":"Free?"}]});
        let answered = of(
            "AskUserQuestion",
            input.clone(),
            json!({"answers":{"Which?":"B"}}),
            Some("x"),
            false,
        );
        let ToolCallOutcome::Asked(questions) = answered else {
            panic!()
        };
        assert_eq!(questions[0].options, ["A", "B"]);
        assert_eq!(questions[0].answer.as_deref(), Some("B"));
        assert_eq!(
            (questions[1].options.len(), &questions[1].answer),
            (0, &None)
        );
        let ToolCallOutcome::Asked(pending) =
            of("AskUserQuestion", input, Value::Null, None, false)
        else {
            panic!()
        };
        assert!(pending.iter().all(|question| question.answer.is_none()));
    }

    #[test]
    fn a_refusal_keeps_what_the_person_said() {
        let text =
            "The user doesn't want to proceed with this tool use. … the user said:\nuse tabs";
        assert_eq!(
            of("Write", json!({}), Value::Null, Some(text), true),
            ToolCallOutcome::Refused {
                said: Some("use tabs".into())
            }
        );
    }

    #[test]
    fn a_failed_edit_changes_nothing() {
        let input = json!({"old_string":"a","new_string":"b"});
        let facts = |meta, is_error| ToolCallFacts {
            name: "Edit",
            input: &input,
            meta,
            text: Some("x"),
            is_error,
        };
        assert_eq!(change(&facts(&Value::Null, true)), None);
        let failed = json!("Error: x");
        assert_eq!(change(&facts(&failed, false)), None);
        let pairs = vec![("a".to_owned(), "b".to_owned())];
        assert_eq!(
            change(&facts(&Value::Null, false)),
            Some(FileChange::Replaced(pairs))
        );
        let patch = json!({"structuredPatch":[{"oldStart":4,"newStart":5,"lines":[" x","-a","+b","\\ No newline at end of file"]}]});
        let Some(FileChange::Hunks(hunks)) = change(&facts(&patch, false)) else {
            panic!()
        };
        assert_eq!(
            (hunks[0].old_start, hunks[0].new_start, hunks[0].lines.len()),
            (4, 5, 3)
        );
    }
}
