//! Every file that a session owns, wherever the client keeps it: the one list by which sessions
//! are searched for secrets, redacted, archived, moved, deleted and copied.
//!
//! A session owns its transcript, those of its sub-agents and of the client's own work for it
//! (compaction, suggested prompts, warm-ups), everything in the folder beside its transcript, and
//! what the client keeps under its id elsewhere: copies of files before they were changed, lists
//! of things to do, tasks, what its shells had set, pasted images, its log, its background job
//! and the note of the process that runs it. What the client keeps of many sessions in one file
//! is nobody's: see [`shared`].

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::find::{self, FoundSessionFiles, SessionFile};
use crate::open;
use crate::parallel;
use crate::read_folder;
use crate::session_paths;
use crate::session_with_agents;
use crate::side_files::{self, is_plain_file_name};

/// A file that a session owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub kind: OwnedFileKind,
    /// The session; empty where nobody knows.
    pub session: String,
    /// Its size.
    pub bytes: u64,
}

/// What a file of a session is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnedFileKind {
    /// The session itself: `<session>.jsonl`
    Transcript,
    /// The transcript of the sub-agent with this id, wherever it lies.
    Agent(String),
    /// The transcript of work of the client's own, such as a compaction, with its id.
    Helper(String),
    /// Other JSON lines beside the transcript, such as `journal.jsonl` of a workflow.
    Lines,
    /// A large tool output: `<session>/tool-results/…`
    Output,
    /// A copy of a file before it was changed: `file-history/<session>/…`
    Backup,
    /// The title a person gave: `<session>/custom-title.json`
    Title,
    /// That a person put the session away: `<session>/archived.json`
    Archived,
    /// What the client keeps to resume a long session fast: `<session>/resume-head.jsonl`
    Head,
    /// A list of things to do: `todos/<session>-agent-….json`
    Todo,
    /// Anything else about it: tasks, notes about sub-agents, workflow runs, pasted images.
    Note,
    /// A lock, which says nothing.
    Lock,
    /// Of its background job: `jobs/<job>/…`
    Job,
    /// Of the process that runs it: `sessions/<pid>.json`
    Running,
    /// What the client noted about it for itself: its log, its statistics.
    Log,
}

impl OwnedFileKind {
    /// Whether it is made of JSON lines.
    pub fn is_lines(&self) -> bool {
        self.is_transcript() || matches!(self, OwnedFileKind::Lines | OwnedFileKind::Head)
    }

    /// Whether its lines are those of a conversation.
    pub fn is_transcript(&self) -> bool {
        matches!(
            self,
            OwnedFileKind::Transcript | OwnedFileKind::Agent(_) | OwnedFileKind::Helper(_)
        )
    }
}

/// The folders in which each session has one of its own, and what that holds.
const BY_FOLDER: [(&str, OwnedFileKind); 5] = [
    ("file-history", OwnedFileKind::Backup),
    ("tasks", OwnedFileKind::Note),
    ("session-env", OwnedFileKind::Note),
    ("image-cache", OwnedFileKind::Note),
    ("uploads", OwnedFileKind::Note),
];

/// The folders in which each session has one file, named by its id and this ending.
const BY_FILE: [(&str, &str); 3] = [
    ("debug", ".txt"),
    ("usage-data/session-meta", ".json"),
    ("usage-data/facets", ".json"),
];

const TODOS: &str = "todos";
const JOBS: &str = "jobs";
const RUNNING: &str = "sessions";
/// Marks of the daemon, each named by a job.
const ROUTED: &str = "daemon/gateway-routed";

/// How far down folders are followed.
const DEEP: usize = 8;

/// Who owns what below some config folders.
///
/// What lies in folders that sessions share is listed once, so that asking for every session
/// costs no more than there are files.
#[derive(Debug, Default)]
pub struct OwnedFiles {
    /// Transcripts of sub-agents and helpers, by the folder of the project and the session.
    agents: HashMap<(PathBuf, String), Vec<OwnedFile>>,
    /// What lies in shared folders, by the config folder and the session.
    listed: HashMap<(PathBuf, String), Vec<OwnedFile>>,
    /// Sessions that have a transcript, by the config folder and by the folder of the project.
    present: HashSet<(PathBuf, String)>,
    /// The folders of projects, in order.
    projects: Vec<PathBuf>,
}

impl OwnedFiles {
    /// Those of what a walk found.
    pub fn new(found: &FoundSessionFiles) -> OwnedFiles {
        let configs = found.sessions.iter().map(|file| &*file.config);
        OwnedFiles::of_configs(found, configs)
    }

    /// The same, also where no session is left.
    fn of_configs<'a>(
        found: &'a FoundSessionFiles,
        configs: impl Iterator<Item = &'a Path>,
    ) -> OwnedFiles {
        let mut owned = OwnedFiles::default();
        owned.add_agents(found);
        let configs: HashSet<&Path> = configs.filter(|it| !it.as_os_str().is_empty()).collect();
        for config in configs {
            for file in in_shared_folders(config) {
                let key = (config.to_owned(), file.session.clone());
                owned.listed.entry(key).or_default().push(file);
            }
        }
        for file in &found.sessions {
            for folder in [&*file.config, parent(&file.path)] {
                owned.present.insert((folder.to_owned(), file.id.clone()));
            }
        }
        owned
    }

    /// Sub-agents and helpers, which old clients kept among the sessions; there only their lines
    /// tell whose they are.
    fn add_agents(&mut self, found: &FoundSessionFiles) {
        let named = found.agents.iter().map(|agent| {
            let kind = OwnedFileKind::Agent(agent.id.clone());
            (&agent.path, agent.session.as_ref(), kind)
        });
        let others = found.others.iter().filter_map(|other| {
            let id = agent_id(&other.path).filter(|_| other.bytes > 0)?;
            Some((&other.path, None, OwnedFileKind::Helper(id)))
        });
        let all: Vec<_> = named.chain(others).collect();
        let sessions = parallel::map(
            &all,
            parallel::threads(),
            |_| 0,
            |(path, session, _)| match session {
                Some(session) => (*session).clone(),
                None => match folder_of(path).1 {
                    Some(session) => session,
                    None => session_with_agents::first_session(path).unwrap_or_default(),
                },
            },
        );
        for ((path, _, kind), session) in all.into_iter().zip(sessions) {
            let key = (folder_of(path).0, session.clone());
            let group = self.agents.entry(key).or_default();
            let note = path.with_extension("meta.json");
            group.extend(owned(path.clone(), kind, &session));
            if note.is_file() {
                group.extend(owned(note, OwnedFileKind::Note, &session));
            }
        }
    }

    /// All files of a session: its transcript, then by what they are, each in the order of its
    /// path.
    pub fn of(&self, file: &SessionFile) -> Vec<OwnedFile> {
        let mut all = Vec::new();
        all.extend(owned(
            file.path.clone(),
            OwnedFileKind::Transcript,
            &file.id,
        ));
        let project = parent(&file.path).to_owned();
        let agents = self.agents.get(&(project, file.id.clone()));
        all.extend(agents.into_iter().flatten().cloned());
        if let Some(beside) = &file.beside {
            in_session_folder(beside, &file.id, &mut all);
        }
        self.in_config(&file.config, &file.id, &mut all);
        in_order(all)
    }

    /// What the client keeps of a session below a config folder but outside of `projects`.
    fn in_config(&self, config: &Path, session: &str, all: &mut Vec<OwnedFile>) {
        let known = !config.as_os_str().is_empty() && is_plain_file_name(session);
        let (by_folder, by_file) = match known {
            true => (&BY_FOLDER[..], &BY_FILE[..]),
            false => (&[][..], &[][..]),
        };
        for (name, kind) in by_folder {
            tree(&config.join(name).join(session), DEEP, &mut |path| {
                let kind = kind_or_lock(&path, kind.clone());
                all.extend(owned(path, kind, session));
            });
        }
        for (name, end) in by_file {
            let path = config.join(name).join(format!("{session}{end}"));
            if is_regular(&path) {
                all.extend(owned(path, OwnedFileKind::Log, session));
            }
        }
        let listed = self.listed.get(&(config.to_owned(), session.to_owned()));
        all.extend(listed.into_iter().flatten().cloned());
    }
}

/// Every session with all its files, and then the files of sessions whose transcript is gone, by
/// session. A file that two sessions of one id could own is the first one's.
pub fn of_all<'a>(
    found: &'a FoundSessionFiles,
    configs: &[PathBuf],
) -> (Vec<(&'a SessionFile, Vec<OwnedFile>)>, Vec<OwnedFile>) {
    let configs = distinct(configs);
    let mut files = OwnedFiles::of_configs(
        found,
        found
            .sessions
            .iter()
            .map(|file| &*file.config)
            .chain(configs.iter().copied()),
    );
    files.projects = configs.iter().flat_map(|it| projects(it)).collect();
    let mut seen = HashSet::new();
    let mut only_once = |mut all: Vec<OwnedFile>| {
        all.retain(|one| seen.insert(one.path.clone()));
        all
    };
    let sessions = found.sessions.iter();
    let each = sessions
        .map(|file| (file, only_once(files.of(file))))
        .collect();
    let gone = only_once(files.gone(&configs));
    (each, gone)
}

impl OwnedFiles {
    /// The files of sessions that have no transcript.
    fn gone(&self, configs: &[&Path]) -> Vec<OwnedFile> {
        let is_gone = |folder: &Path, session: &str| {
            !self
                .present
                .contains(&(folder.to_owned(), session.to_owned()))
        };
        let mut all: Vec<OwnedFile> = Vec::new();
        for ((project, session), group) in &self.agents {
            if is_gone(project, session) {
                all.extend(group.iter().cloned());
            }
        }
        for project in &self.projects {
            for folder in folders(project) {
                let session = side_files::name(&folder);
                if is_gone(project, &session) && session_paths::is_uuid(&session) {
                    in_session_folder(&folder, &session, &mut all);
                }
            }
        }
        for config in configs {
            let mut sessions: HashSet<String> = HashSet::new();
            for (name, _) in BY_FOLDER {
                sessions.extend(
                    folders(&config.join(name))
                        .iter()
                        .map(|it| side_files::name(it)),
                );
            }
            for (name, end) in BY_FILE {
                let names = side_files::files(&config.join(name), 0).into_iter();
                let names =
                    names.filter_map(|it| Some(side_files::name(&it).strip_suffix(end)?.into()));
                sessions.extend(names);
            }
            let listed = self.listed.keys().filter(|(of, _)| of == config);
            sessions.extend(listed.map(|(_, session)| session.clone()));
            for session in sessions.iter().filter(|it| is_gone(config, it)) {
                self.in_config(config, session, &mut all);
            }
        }
        all.sort_by(|a, b| (&a.session, &a.kind, &a.path).cmp(&(&b.session, &b.kind, &b.path)));
        all.dedup_by(|a, b| a.path == b.path);
        all
    }
}

/// A file that is nobody's alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it tells the client what to do. What is in it is found, and never changed by us.
    pub steers: bool,
}

/// Folders with things of many sessions, or of a session that nobody can tell.
const SHARED_FOLDERS: [&str; 5] = ["paste-cache", "plans", "teams", "telemetry", "usage-data"];

/// The same of files.
const SHARED_FILES: [&str; 4] = [
    "daemon.log",
    "daemon.status.json",
    "daemon/roster.json",
    "jobs/pins.json",
];

/// Folders whose files tell the client what to do, or are run by it.
const STEERING_FOLDERS: [&str; 3] = ["shell-snapshots", "backups", "agent-memory"];

/// The client's settings with what it remembers of projects, in old clients also of prompts.
const SETTINGS: &str = ".claude.json";

/// Where the client keeps things of many sessions in one file, or things whose session nobody
/// can tell: pasted texts, plans, the mail of agent teams, what its daemon writes, what it has to
/// say about its use; and what tells it what to do: memories of projects, what its shells begin
/// with, its settings and their backups. The list of prompts and the lists of sessions are read
/// by those who know their lines.
pub fn shared(config: &Path) -> Vec<SharedFile> {
    let mut all = Vec::new();
    let below = |folder: PathBuf, steers, all: &mut Vec<SharedFile>| {
        tree(&folder, DEEP, &mut |path| {
            all.push(SharedFile { path, steers });
        });
    };
    for name in SHARED_FOLDERS {
        below(config.join(name), false, &mut all);
    }
    for name in STEERING_FOLDERS {
        below(config.join(name), true, &mut all);
    }
    for project in projects(config) {
        below(project.join("memory"), true, &mut all);
    }
    // What is known to be a session's is listed with it.
    all.retain(|file| {
        !BY_FILE
            .iter()
            .any(|(name, _)| file.path.starts_with(config.join(name)))
    });
    let single = SHARED_FILES.map(|name| (config.join(name), false));
    // Where nobody named a folder, the settings stand beside it.
    let beside = config.file_name().filter(|name| *name == ".claude");
    let settings = [
        Some(config.join(SETTINGS)),
        beside.map(|_| config.with_file_name(SETTINGS)),
    ];
    let settings = settings.into_iter().flatten().map(|path| (path, true));
    let single = single.into_iter().chain(settings);
    all.extend(
        single
            .filter(|(path, _)| is_regular(path))
            .map(|(path, steers)| SharedFile { path, steers }),
    );
    all.sort_unstable();
    all
}

/// Transcripts among those of a walk that are no session's: with names that no client gives, or
/// where no client puts them.
pub fn stray<'a>(
    found: &'a FoundSessionFiles,
    configs: &'a [PathBuf],
) -> impl Iterator<Item = PathBuf> + 'a {
    let named = found
        .others
        .iter()
        .filter(|other| agent_id(&other.path).is_none());
    let named = named.map(|other| other.path.clone());
    let above = distinct(configs).into_iter();
    let above = above.flat_map(|config| side_files::files(&config.join("projects"), 0));
    named
        .chain(above)
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
}

/// The folders of projects below a config folder, in order.
pub fn projects(config: &Path) -> Vec<PathBuf> {
    folders(&config.join("projects"))
}

/// Config folders, each once however many links lead to it.
pub fn distinct(configs: &[PathBuf]) -> Vec<&Path> {
    let mut seen = HashSet::new();
    let mut all: Vec<&Path> = configs.iter().map(PathBuf::as_path).collect();
    all.retain(|config| {
        let real = std::fs::canonicalize(config).unwrap_or_else(|_| config.to_path_buf());
        seen.insert(real)
    });
    all
}

/// The transcript first, then by what they are, each file once.
fn in_order(mut all: Vec<OwnedFile>) -> Vec<OwnedFile> {
    // What the walk knows of a file comes before what its place says.
    let mut seen = HashSet::new();
    all.retain(|one| seen.insert(one.path.clone()));
    all.sort_by(|a, b| (&a.kind, &a.path).cmp(&(&b.kind, &b.path)));
    all
}

/// Everything in the folder beside a transcript.
fn in_session_folder(folder: &Path, session: &str, all: &mut Vec<OwnedFile>) {
    tree(folder, DEEP, &mut |path| {
        let kind = beside(&path, folder);
        all.extend(owned(path, kind, session));
    });
}

/// What a file in the folder beside a transcript is.
fn beside(path: &Path, folder: &Path) -> OwnedFileKind {
    let within = path.strip_prefix(folder).unwrap_or(path);
    if within.starts_with("tool-results") {
        return OwnedFileKind::Output;
    }
    match within.to_str() {
        Some("custom-title.json") => return OwnedFileKind::Title,
        Some("archived.json") => return OwnedFileKind::Archived,
        Some("resume-head.jsonl") => return OwnedFileKind::Head,
        _ => {}
    }
    let below_agents = within.starts_with("subagents");
    match agent_id(path) {
        Some(id) if below_agents && find::is_helper(&id) => OwnedFileKind::Helper(id),
        Some(id) if below_agents => OwnedFileKind::Agent(id),
        _ if path.extension().is_some_and(|end| end == "jsonl") => OwnedFileKind::Lines,
        _ => kind_or_lock(path, OwnedFileKind::Note),
    }
}

fn kind_or_lock(path: &Path, kind: OwnedFileKind) -> OwnedFileKind {
    match side_files::name(path).as_str() {
        ".lock" => OwnedFileKind::Lock,
        _ => kind,
    }
}

/// What lies in folders of a config folder that sessions share, each with its session.
fn in_shared_folders(config: &Path) -> Vec<OwnedFile> {
    let mut all = Vec::new();
    for path in side_files::files(&config.join(TODOS), 0) {
        let name = side_files::name(&path);
        let session = name
            .split_once("-agent-")
            .map_or("", |(session, _)| session);
        all.extend(owned(path, OwnedFileKind::Todo, session));
    }
    for folder in folders(&config.join(JOBS)) {
        let job = side_files::name(&folder);
        let session = side_files::session_of_job(&folder).unwrap_or_default();
        tree(&folder, DEEP, &mut |path| {
            all.extend(owned(path, OwnedFileKind::Job, &session));
        });
        let routed = config.join(ROUTED).join(&job);
        if is_regular(&routed) {
            all.extend(owned(routed, OwnedFileKind::Job, &session));
        }
    }
    for path in side_files::files(&config.join(RUNNING), 0) {
        let session = side_files::session_of_process(&path).unwrap_or_default();
        all.extend(owned(path, OwnedFileKind::Running, &session));
    }
    all
}

fn owned(path: PathBuf, kind: OwnedFileKind, session: &str) -> Option<OwnedFile> {
    let bytes = open::stat_regular_file(&path).ok()?.len();
    Some(OwnedFile {
        path,
        kind,
        session: session.to_owned(),
        bytes,
    })
}

/// The id in the name of a transcript of a sub-agent or helper.
fn agent_id(path: &Path) -> Option<String> {
    let name = side_files::name(path);
    let id = name.strip_prefix("agent-")?.strip_suffix(".jsonl")?;
    Some(id.to_owned())
}

/// The folder of the project that the transcript of a sub-agent lies in, and its session, if
/// the folder says.
fn folder_of(path: &Path) -> (PathBuf, Option<String>) {
    let above: Vec<&Path> = path.ancestors().skip(1).collect();
    let agents = above
        .iter()
        .position(|folder| folder.ends_with("subagents"));
    let Some(at) = agents else {
        return (parent(path).to_owned(), None);
    };
    let within = parent(above[at]);
    // `<project>/subagents` or `<project>/<session>/subagents`.
    let in_session = session_paths::is_uuid(&side_files::name(within))
        || within.with_extension("jsonl").is_file();
    match in_session {
        true => (parent(within).to_owned(), Some(side_files::name(within))),
        false => (within.to_owned(), None),
    }
}

fn parent(path: &Path) -> &Path {
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

fn is_regular(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| it.is_file())
}

/// Folders in a folder, in order. Links are not followed.
fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = read_folder::entries(dir).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut all: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    all.sort_unstable();
    all
}

/// Regular files below a folder. Links are not followed: they may lead anywhere.
fn tree(folder: &Path, depth: usize, each: &mut dyn FnMut(PathBuf)) {
    for entry in read_folder::entries(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_file() => each(entry.path()),
            Ok(kind) if kind.is_dir() && depth > 0 => tree(&entry.path(), depth - 1, each),
            _ => {}
        }
    }
}
