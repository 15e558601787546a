//! What else the client keeps about a session: files it wrote beside it, and what they say.
//!
//! Only lists and small notes; nothing here is needed to read a session. Notes are read
//! leniently: a field that is missing or of another type is simply not there.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;
use unspool_model::view::workflow::WorkflowRun;

use crate::find::SessionFile;
use crate::open;
use crate::read_folder;

/// Files that belong to a session, each list in the order of its names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideFiles {
    /// Large tool outputs: `<session>/tool-results/…`
    pub tool_results: Vec<PathBuf>,
    /// Copies of files before they were changed: `file-history/<session>/…`
    pub file_history: Vec<PathBuf>,
    /// Todo lists of the session and its agents: `todos/<session>-agent-….json`
    pub todos: Vec<PathBuf>,
    /// Tasks: `tasks/<session>/….json`
    pub tasks: Vec<PathBuf>,
    /// The title a person gave: `<session>/custom-title.json`
    pub custom_title: Option<PathBuf>,
}

/// Lists the files that belong to a session.
pub fn list_side_files(file: &SessionFile) -> SideFiles {
    let beside = |name: &str| file.beside.as_ref().map(|dir| dir.join(name));
    let config = |name: &str| {
        let known = !file.config.as_os_str().is_empty() && is_plain_file_name(&file.id);
        known.then(|| file.config.join(name))
    };
    let own = format!("{}-agent-", file.id);
    let mut todos = config("todos").map_or_else(Vec::new, |dir| files(&dir, 0));
    todos.retain(|path| name(path).starts_with(&own));
    let mut tasks = config("tasks").map_or_else(Vec::new, |dir| files(&dir.join(&file.id), 0));
    tasks.retain(|path| path.extension().is_some_and(|end| end == "json"));
    SideFiles {
        tool_results: tool_results(file),
        file_history: backups_of(file),
        todos,
        tasks,
        custom_title: beside("custom-title.json").filter(|path| path.is_file()),
    }
}

/// Copies of files before a session changed them.
fn backups_of(file: &SessionFile) -> Vec<PathBuf> {
    let known = !file.config.as_os_str().is_empty() && is_plain_file_name(&file.id);
    let folder = known.then(|| file.config.join("file-history").join(&file.id));
    folder.map_or_else(Vec::new, |folder| files(&folder, 0))
}

/// Only the large tool outputs of a session.
pub fn tool_results(file: &SessionFile) -> Vec<PathBuf> {
    let dir = file.beside.as_ref().map(|dir| dir.join("tool-results"));
    dir.map_or_else(Vec::new, |dir| files(&dir, 1))
}

/// The plan of a session (2.1), named by the three words that the session's lines give.
pub fn plan(config: &Path, words: &str) -> Option<PathBuf> {
    let path = config.join("plans").join(format!("{words}.md"));
    (is_plain_file_name(words) && path.is_file()).then_some(path)
}

/// Whether a text from a transcript or file name stays in its folder when made into a path.
pub(crate) fn is_plain_file_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(['/', '\\']) && text != "." && text != ".."
}

/// Regular files in a folder and `depth` folders below it.
pub(crate) fn files(dir: &Path, depth: usize) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in read_folder::entries(dir).into_iter().flatten().flatten() {
        let kind = entry.file_type();
        match kind {
            Ok(kind) if kind.is_file() => all.push(entry.path()),
            Ok(kind) if kind.is_dir() && depth > 0 => {
                all.extend(files(&entry.path(), depth - 1));
            }
            _ => {}
        }
    }
    all.sort_unstable();
    all
}

/// A running client, as `sessions/<pid>.json` tells (2.1.139 and later).
///
/// The file stays behind when the client is killed, so whether the process lives is another
/// question.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningClient {
    /// The process.
    pub pid: u32,
    /// The session it works on.
    pub session: Option<String>,
    /// `idle`, `busy` or `waiting`.
    pub status: Option<String>,
    /// Where it runs.
    pub cwd: Option<String>,
    /// When the file was last written, in milliseconds since 1970.
    pub modified: i64,
    /// Everything the file says.
    pub all: Value,
}

/// The clients that a config folder says are running.
pub fn registry(config: &Path) -> Vec<RunningClient> {
    let entries = files(&config.join("sessions"), 0);
    entries.iter().filter_map(|path| running(path)).collect()
}

fn running(path: &Path) -> Option<RunningClient> {
    let named = path.file_stem()?.to_str()?.parse().ok();
    let all = json(path)?;
    let pid = all["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    Some(RunningClient {
        pid: pid.or(named)?,
        session: text(&all, "sessionId"),
        status: text(&all, "status"),
        cwd: text(&all, "cwd"),
        modified: fs::metadata(path).map_or(0, |metadata| open::modified(&metadata)),
        all,
    })
}

/// The session of the process that a note in `sessions` is about.
pub(crate) fn session_of_process(path: &Path) -> Option<String> {
    text(&json(path)?, "sessionId")
}

/// The session of a background job (2.1.327), as the note in its folder says.
pub(crate) fn session_of_job(folder: &Path) -> Option<String> {
    let all = json(&folder.join("state.json"))?;
    text(&all, "sessionId").or_else(|| text(&all, "resumeSessionId"))
}

/// What the client noted about a sub-agent (2.1.100 and later).
#[derive(Clone, Debug, PartialEq)]
pub struct AgentMeta {
    /// Its type, such as `Explore`.
    pub agent_type: Option<String>,
    /// What it was asked to do, in a few words.
    pub description: Option<String>,
    /// The call that started it.
    pub tool_use_id: Option<String>,
    /// Everything the file says.
    pub all: Value,
}

/// What stands in the `.meta.json` beside the file of a sub-agent.
pub fn agent_meta(agent: &Path) -> Option<AgentMeta> {
    let all = json(&agent.with_extension("meta.json"))?;
    Some(AgentMeta {
        agent_type: text(&all, "agentType"),
        description: text(&all, "description"),
        tool_use_id: text(&all, "toolUseId"),
        all,
    })
}

/// The workflow runs of a session: those with a folder of sub-agents
/// (`subagents/workflows/<run>/journal.jsonl`), and those that only left a report
/// (`workflows/<run>.json`).
pub fn runs(file: &SessionFile) -> Vec<WorkflowRun> {
    let Some(beside) = &file.beside else {
        return Vec::new();
    };
    let folders = beside.join("subagents").join("workflows");
    let reports = beside.join("workflows");
    let mut ids: BTreeSet<String> = BTreeSet::new();
    for entry in read_folder::entries(&folders)
        .into_iter()
        .flatten()
        .flatten()
    {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            ids.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    for path in files(&reports, 0) {
        let id = name(&path).strip_suffix(".json").map(str::to_owned);
        ids.extend(id);
    }
    let run = |id: String| {
        let report = bytes(&reports.join(format!("{id}.json")));
        let journal = bytes(&folders.join(&id).join("journal.jsonl"));
        WorkflowRun::read(&id, report.as_deref(), journal.as_deref())
    };
    ids.into_iter().map(run).collect()
}

/// A session in the background, as `jobs/<id>/state.json` tells (2.1.139 and later).
#[derive(Clone, Debug, PartialEq)]
pub struct BackgroundJobState {
    /// The name of its folder: the start of the session's id.
    pub id: String,
    /// The session.
    pub session: Option<String>,
    /// `working`, `stopped`, `done` …
    pub state: Option<String>,
    /// What it is at, in a few words.
    pub detail: Option<String>,
    /// What it was asked to do.
    pub intent: Option<String>,
    /// Where it runs.
    pub cwd: Option<String>,
    /// When it was created, as the file says.
    pub created: Option<String>,
    /// When its state was last written, as the file says.
    pub updated: Option<String>,
    /// The last thing that its timeline tells.
    pub last: Option<String>,
    /// Whether the daemon still lists it among those it runs.
    pub listed: bool,
}

/// The sessions in the background that a config folder knows.
pub fn jobs(config: &Path) -> Vec<BackgroundJobState> {
    let folder = config.join("jobs");
    let mut all = Vec::new();
    let entries = read_folder::entries(&folder);
    for entry in entries.into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.extend(job(&entry.path()));
        }
    }
    let roster = json(&config.join("daemon").join("roster.json")).unwrap_or_default();
    for (id, worker) in roster["workers"].as_object().into_iter().flatten() {
        let session = text(worker, "sessionId");
        let is_it = |job: &&mut BackgroundJobState| {
            job.id == *id || session.is_some() && job.session.as_deref() == session.as_deref()
        };
        match all.iter_mut().find(is_it) {
            Some(job) => job.listed = true,
            // The daemon knows it before anything is written about it.
            None => all.push(worker_alone(id, worker)),
        }
    }
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all
}

/// What the daemon's list says about one of those it runs.
fn worker_alone(id: &str, worker: &Value) -> BackgroundJobState {
    BackgroundJobState {
        id: id.to_owned(),
        session: text(worker, "sessionId").or_else(|| text(worker, "resumeSessionId")),
        state: text(worker, "state"),
        detail: None,
        intent: text(worker, "intent").filter(|intent| !intent.trim().is_empty()),
        cwd: text(worker, "cwd"),
        created: text(worker, "createdAt").or_else(|| text(worker, "startedAt")),
        updated: text(worker, "updatedAt"),
        last: None,
        listed: true,
    }
}

fn job(folder: &Path) -> Option<BackgroundJobState> {
    let state = json(&folder.join("state.json"))?;
    let timeline = bytes(&folder.join("timeline.jsonl")).unwrap_or_default();
    let mut lines = timeline.split(|byte| *byte == b'\n').rev();
    let last = lines.find_map(|line| {
        let line: Value = serde_json::from_slice(line).ok()?;
        text(&line, "text").filter(|text| !text.trim().is_empty())
    });
    Some(BackgroundJobState {
        id: name(folder),
        session: text(&state, "sessionId").or_else(|| text(&state, "resumeSessionId")),
        state: text(&state, "state"),
        detail: text(&state, "detail").filter(|detail| !detail.trim().is_empty()),
        intent: text(&state, "intent").filter(|intent| !intent.trim().is_empty()),
        cwd: text(&state, "cwd"),
        created: text(&state, "createdAt"),
        updated: text(&state, "updatedAt"),
        last,
        listed: false,
    })
}

/// Notes are small; what is larger than this is something else.
const LARGEST: u64 = 16 << 20;

fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&bytes(path)?).ok()
}

fn bytes(path: &Path) -> Option<Vec<u8>> {
    let (file, _) = open::open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn text(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(str::to_owned)
}

/// The last part of a path, as text.
pub(crate) fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn what_belongs_to_a_session_is_found_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in [
            "projects/-p/s1.jsonl",
            "projects/-p/s1/tool-results/t1.txt",
            "projects/-p/s1/tool-results/pdf-1/page.json",
            "projects/-p/s1/custom-title.json",
            "projects/-p/s2/tool-results/t2.txt",
            "file-history/s1/abc@v1",
            "file-history/s2/abc@v1",
            "todos/s1-agent-s1.json",
            "todos/s2-agent-s2.json",
            "tasks/s1/1.json",
            "tasks/s1/.lock",
        ] {
            write(root, name, "{}\n");
        }
        let found = find(&[root.to_owned()]);
        let side = list_side_files(&found.sessions[0]);
        let names = |paths: &[PathBuf]| paths.iter().map(|path| name(path)).collect::<Vec<_>>();
        assert_eq!(names(&side.tool_results), ["page.json", "t1.txt"]);
        assert_eq!(names(&side.file_history), ["abc@v1"]);
        assert_eq!(names(&side.todos), ["s1-agent-s1.json"]);
        assert_eq!(names(&side.tasks), ["1.json"]);
        assert!(side.custom_title.is_some());
    }

    #[test]
    fn words_from_a_transcript_never_lead_out_of_their_folder() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root, "plans/three-nice-words.md", "plan");
        write(root, "secret.md", "x");
        assert!(plan(root, "three-nice-words").is_some());
        assert_eq!(plan(root, "../secret"), None);
        write(root, "projects/-p/...jsonl", "{}\n");
        write(root, "tasks/1/2.json", "{}");
        write(root, "top.json", "{}");
        let found = find(&[root.to_owned()]);
        assert_eq!(found.sessions[0].id, "..");
        assert_eq!(list_side_files(&found.sessions[0]), SideFiles::default());
    }

    #[test]
    fn the_registry_is_read_leniently() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let full = r#"{"pid":7,"sessionId":"s1","status":"busy","cwd":"/p","new":[1]}"#;
        write(root, "sessions/7.json", full);
        write(root, "sessions/8.json", r#"{"status":5}"#);
        write(root, "sessions/9.json", "torn{");
        write(root, "sessions/readme.txt", "hello");
        let running = registry(root);
        let short: Vec<_> = running
            .iter()
            .map(|one| (one.pid, one.session.as_deref(), one.status.as_deref()))
            .collect();
        assert_eq!(short, [(7, Some("s1"), Some("busy")), (8, None, None)]);
    }

    #[test]
    fn notes_about_agents_and_the_index_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let meta = r#"{"agentType":"Explore","toolUseId":"t1"}"#;
        write(root, "agent-a1.meta.json", meta);
        let meta = agent_meta(&root.join("agent-a1.jsonl")).unwrap();
        assert_eq!(meta.agent_type.as_deref(), Some("Explore"));
        assert_eq!(
            (meta.tool_use_id.as_deref(), meta.description),
            (Some("t1"), None)
        );
        assert_eq!(agent_meta(&root.join("agent-a2.jsonl")), None);
    }
}
