//! Which files there are: sessions, files of sub-agents, and what only looks like one.
//!
//! Walks `projects` of each config folder by names and sizes alone; nothing is opened. What a
//! flat file of a sub-agent belongs to, and whether it is one at all, is only known from its
//! lines: see [`FoundSessionFiles::identify_agents`]. Only regular files count, whatever symbolic links
//! they hide behind; anything else that has the name of a transcript gets one [`FileWarning`].

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use unspool_model::agent_kind::AgentKind;

use crate::error::{FileWarning, StoreError};
use crate::open::{self, FileStamp};
use crate::parallel;
use crate::read_folder::{self, FolderEntry};
use crate::resolve::SessionTarget;
use crate::session_with_agents;

/// What a walk found.
#[derive(Clone, Debug, Default)]
pub struct FoundSessionFiles {
    /// Sessions, in the order of their paths. Some may turn out to hold no conversation.
    pub sessions: Vec<SessionFile>,
    /// Files of sub-agents.
    pub agents: Vec<SubAgentFile>,
    /// Transcripts by name that are not conversations.
    pub others: Vec<NonConversationFile>,
    /// What was passed over.
    pub warnings: Vec<FileWarning>,
}

/// The file of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its id: the name of the file.
    pub id: String,
    /// The name of its folder in `projects`, which all files there share.
    pub folder: Arc<str>,
    /// The config folder it is in; empty for a file outside of any.
    pub config: Arc<Path>,
    /// Its size.
    pub bytes: u64,
    /// When it was last written, in milliseconds since 1970.
    pub modified: i64,
    /// What tells whether it is still as it was.
    pub stamp: FileStamp,
    /// The folder beside it with its sub-agents and tool results, if there is one.
    pub beside: Option<PathBuf>,
}

/// The file of a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubAgentFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its id, without `agent-`.
    pub id: String,
    /// The workflow run in whose folder it stands.
    pub run: Option<Arc<str>>,
    /// The session it belongs to, as its folder says; `None` if only its lines know.
    pub session: Option<String>,
    /// The name of its project's folder, which all files there share.
    pub folder: Arc<str>,
    /// The config folder it is in; empty for a file outside of any.
    pub config: Arc<Path>,
    /// Its size.
    pub bytes: u64,
    /// When it was last written, in milliseconds since 1970.
    pub modified: i64,
    /// What tells whether it is still as it was.
    pub stamp: FileStamp,
}

/// A file with the name of a transcript that is not a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NonConversationFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// What tells whether it is still as it was.
    pub stamp: FileStamp,
    /// Why it does not count.
    pub why: &'static str,
    /// What the client did for itself in it: no conversation, but it cost as much.
    pub helper: Option<AgentKind>,
    /// The session it belongs to, as its folder says.
    pub session: Option<String>,
    /// The name of its project's folder; empty outside of any.
    pub folder: Arc<str>,
    /// The config folder it is in; empty for a file outside of any.
    pub config: Arc<Path>,
}

/// Whether a sub-agent's file with this id is one of the client's own helpers.
pub fn is_helper(id: &str) -> bool {
    AgentKind::of_id(id).is_helper()
}

/// How deep to look below `subagents`.
const DEPTH: usize = 6;

/// Walks all config folders.
///
/// A folder that is not there holds nothing; say so with [`crate::dirs::check`] if somebody
/// named it.
pub fn find(configs: &[PathBuf]) -> FoundSessionFiles {
    let mut walk = FolderWalk::default();
    let mut places = Vec::new();
    let mut roots: Vec<PathBuf> = Vec::new();
    for config in configs {
        let projects = config.join("projects");
        // Two config folders may be one behind a link.
        let root = fs::canonicalize(&projects).unwrap_or_else(|_| projects.clone());
        if !roots.contains(&root) {
            places.extend(walk.projects(config, &projects, &root));
            roots.push(root);
        }
    }
    let mut found = walk.found;
    for part in parallel::map(&places, parallel::threads(), |_| 0, ProjectFolder::walk) {
        found.sessions.extend(part.sessions);
        found.agents.extend(part.agents);
        found.others.extend(part.others);
        found.warnings.extend(part.warnings);
    }
    found.sort();
    found
}

impl FoundSessionFiles {
    fn sort(&mut self) {
        // Comparing paths part by part would take longer than the walk.
        let order = |a: &Path, b: &Path| a.as_os_str().cmp(b.as_os_str());
        self.sessions
            .sort_unstable_by(|a, b| order(&a.path, &b.path));
        self.agents.sort_unstable_by(|a, b| order(&a.path, &b.path));
        self.others.sort_unstable_by(|a, b| order(&a.path, &b.path));
        self.warnings
            .sort_unstable_by(|a, b| order(&a.path, &b.path));
    }

    /// Looks into the files of sub-agents where only the lines tell: which session a flat
    /// one belongs to, and which are no sub-agents but the client warming up, as far as their
    /// first lines tell.
    ///
    /// Who reads all agents anyway need not call this: see [`crate::session_with_agents::is_warm_up`] and
    /// `first_session_id` of the session.
    pub fn identify_agents(&mut self) {
        let flat = self.others.iter_mut();
        for file in flat.filter(|file| file.helper.is_some() && file.session.is_none()) {
            let session = session_with_agents::helper_session(file).map(|id| id.into_owned());
            file.session = session;
        }
        let agents = std::mem::take(&mut self.agents);
        let looked = parallel::map(
            &agents,
            parallel::threads(),
            |_| 0,
            session_with_agents::look,
        );
        for (mut agent, look) in agents.into_iter().zip(looked) {
            if look.warm_up {
                self.others.push(NonConversationFile {
                    path: agent.path,
                    bytes: agent.bytes,
                    stamp: agent.stamp,
                    why: AgentKind::WarmUp.why(),
                    helper: Some(AgentKind::WarmUp),
                    session: agent.session.or(look.session),
                    folder: agent.folder,
                    config: agent.config,
                });
                continue;
            }
            agent.session = agent.session.or(look.session);
            self.agents.push(agent);
        }
        self.sort();
    }
}

/// A project's folder.
struct ProjectFolder {
    config: Arc<Path>,
    /// The real path of `projects`.
    root: PathBuf,
    dir: PathBuf,
    folder: Arc<str>,
}

impl ProjectFolder {
    fn walk(&self) -> FoundSessionFiles {
        let mut walk = FolderWalk::default();
        walk.project(self);
        walk.found
    }
}

#[derive(Default)]
struct FolderWalk {
    found: FoundSessionFiles,
}

impl FolderWalk {
    fn projects(&mut self, config: &Path, projects: &Path, root: &Path) -> Vec<ProjectFolder> {
        let config: Arc<Path> = config.into();
        let mut places = Vec::new();
        for entry in self.list(projects) {
            match self.look(&entry, root) {
                WalkEntry::Folder(dir) => places.push(ProjectFolder {
                    config: Arc::clone(&config),
                    root: root.into(),
                    folder: name(&dir).into(),
                    dir,
                }),
                WalkEntry::Transcript(path, metadata) => {
                    self.other(path, &metadata, "not in a project directory");
                }
                WalkEntry::Nothing => {}
            }
        }
        places
    }

    fn project(&mut self, place: &ProjectFolder) {
        let mut folders = Vec::new();
        for entry in self.list(&place.dir) {
            match self.look(&entry, &place.root) {
                WalkEntry::Folder(dir) => folders.push(dir),
                WalkEntry::Transcript(path, metadata) => self.file(place, path, &metadata),
                WalkEntry::Nothing => {}
            }
        }
        if folders.is_empty() {
            return;
        }
        let sessions = self.found.sessions.iter().enumerate();
        let ids: HashMap<String, usize> =
            sessions.map(|(at, file)| (file.id.clone(), at)).collect();
        for folder in folders {
            self.folder(place, folder, &ids);
        }
    }

    fn file(&mut self, place: &ProjectFolder, path: PathBuf, metadata: &Metadata) {
        let id = stem(&path);
        if id.starts_with("agent-") {
            self.agent(place, path, None, metadata);
        } else if metadata.len() == 0 {
            self.other(path, metadata, "empty");
        } else {
            self.found.sessions.push(SessionFile {
                id,
                folder: Arc::clone(&place.folder),
                config: Arc::clone(&place.config),
                bytes: metadata.len(),
                modified: open::modified(metadata),
                stamp: FileStamp::of(metadata),
                beside: None,
                path,
            });
        }
    }

    /// A folder beside the sessions: usually named after one of them.
    fn folder(&mut self, place: &ProjectFolder, folder: PathBuf, ids: &HashMap<String, usize>) {
        let name = name(&folder);
        if name == "subagents" {
            return self.agents(place, &folder, None, DEPTH);
        }
        let inner = folder.join("subagents");
        if let Some(&at) = ids.get(&name) {
            self.found.sessions[at].beside = Some(folder);
        }
        self.agents(place, &inner, Some(&name), DEPTH);
    }

    fn agents(&mut self, place: &ProjectFolder, dir: &Path, session: Option<&str>, depth: usize) {
        for entry in self.list(dir) {
            match self.look(&entry, &place.root) {
                WalkEntry::Folder(dir) if depth > 0 => self.agents(place, &dir, session, depth - 1),
                WalkEntry::Transcript(path, metadata) => {
                    self.agent(place, path, session, &metadata);
                }
                WalkEntry::Folder(_) | WalkEntry::Nothing => {}
            }
        }
    }

    fn agent(
        &mut self,
        place: &ProjectFolder,
        path: PathBuf,
        session: Option<&str>,
        meta: &Metadata,
    ) {
        let stem = stem(&path);
        let Some(id) = stem.strip_prefix("agent-") else {
            return self.other(path, meta, "not a sub-agent's file name");
        };
        let kind = AgentKind::of_id(id);
        if kind.is_helper() {
            return self.found.others.push(NonConversationFile {
                path,
                bytes: meta.len(),
                stamp: FileStamp::of(meta),
                why: kind.why(),
                helper: Some(kind),
                session: session.map(str::to_owned),
                folder: Arc::clone(&place.folder),
                config: Arc::clone(&place.config),
            });
        }
        if meta.len() == 0 {
            return self.other(path, meta, "empty");
        }
        let run = run_of(&path);
        self.found.agents.push(SubAgentFile {
            run,
            id: id.to_owned(),
            session: session.map(str::to_owned),
            folder: Arc::clone(&place.folder),
            config: Arc::clone(&place.config),
            bytes: meta.len(),
            modified: open::modified(meta),
            stamp: FileStamp::of(meta),
            path,
        });
    }

    fn other(&mut self, path: PathBuf, metadata: &Metadata, why: &'static str) {
        self.found.others.push(NonConversationFile {
            path,
            bytes: metadata.len(),
            stamp: FileStamp::of(metadata),
            why,
            helper: None,
            session: None,
            folder: Arc::default(),
            config: Path::new("").into(),
        });
    }

    fn warn(&mut self, path: PathBuf, why: impl Into<String>) {
        self.found.warnings.push(FileWarning {
            path,
            why: why.into(),
        });
    }

    /// What stands in a folder; nothing if it is not there.
    fn list(&mut self, dir: &Path) -> Vec<FolderEntry> {
        let entries = match read_folder::entries(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => {
                self.warn(dir.into(), reason(&error));
                return Vec::new();
            }
        };
        let mut all = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) => all.push(entry),
                Err(error) => self.warn(dir.into(), reason(&error)),
            }
        }
        all
    }

    /// What an entry is; warns about what it should not be.
    fn look(&mut self, entry: &FolderEntry, root: &Path) -> WalkEntry {
        let path = entry.path();
        match thing(entry, path.clone(), root) {
            Ok(thing) => thing,
            // It vanished since it was listed; a link to nowhere stays.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
                WalkEntry::Nothing
            }
            Err(error) => {
                self.warn(path, reason(&error));
                WalkEntry::Nothing
            }
        }
    }
}

/// What an entry of a folder is to us.
enum WalkEntry {
    Folder(PathBuf),
    /// A regular file with the name of a transcript.
    Transcript(PathBuf, Metadata),
    Nothing,
}

/// Asks the system as little as possible: most entries need no call or one.
fn thing(entry: &FolderEntry, path: PathBuf, root: &Path) -> io::Result<WalkEntry> {
    let kind = entry.file_type()?;
    if kind.is_symlink() {
        return linked(path, root);
    }
    if kind.is_dir() && !is_transcript(&path) {
        return Ok(WalkEntry::Folder(path));
    }
    if !is_transcript(&path) {
        return Ok(WalkEntry::Nothing);
    }
    if !kind.is_file() {
        return Err(unlike(entry.metadata()?.file_type()));
    }
    Ok(WalkEntry::Transcript(path, entry.metadata()?))
}

fn linked(path: PathBuf, root: &Path) -> io::Result<WalkEntry> {
    let metadata = fs::metadata(&path)?;
    if metadata.is_dir() && !is_transcript(&path) {
        return linked_folder(path, root);
    }
    if !is_transcript(&path) {
        return Ok(WalkEntry::Nothing);
    }
    if !metadata.is_file() {
        return Err(unlike(metadata.file_type()));
    }
    Ok(WalkEntry::Transcript(path, metadata))
}

fn linked_folder(path: PathBuf, root: &Path) -> io::Result<WalkEntry> {
    let target = fs::canonicalize(&path)?;
    let above = path.parent().map(fs::canonicalize).transpose()?;
    if above.is_some_and(|above| above.starts_with(&target)) {
        return Err(io::Error::other("a symlink to a parent directory"));
    }
    // What is behind a link within `projects` is found where it really is.
    let listed = target.starts_with(root);
    Ok(if listed {
        WalkEntry::Nothing
    } else {
        WalkEntry::Folder(path)
    })
}

fn unlike(kind: fs::FileType) -> io::Error {
    io::Error::other(format!("{}, not a file", open::kind_of(kind)))
}

/// The workflow run whose folder a file stands in: `subagents/workflows/<run>/`.
pub(crate) fn run_of(path: &Path) -> Option<Arc<str>> {
    let folder = path.parent()?;
    let is_run = folder.parent()?.ends_with("subagents/workflows");
    is_run.then(|| name(folder).into())
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "a broken symlink".to_owned(),
        io::ErrorKind::PermissionDenied => "no permission to read it".to_owned(),
        _ => error.to_string(),
    }
}

fn is_transcript(path: &Path) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    text.ends_with(b".jsonl") && !text.ends_with(b"/.jsonl")
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The file at a path below `projects` of a config folder, as a walk would find it there;
/// nothing if it would not, or if it is gone.
pub fn at(config: &Arc<Path>, path: &Path) -> Option<SessionTarget> {
    let FoundSessionFiles {
        mut sessions,
        mut agents,
        ..
    } = found_at(config, path)?;
    if let Some(session) = sessions.first_mut() {
        let beside = path.with_extension("");
        session.beside = beside.is_dir().then_some(beside);
    }
    let session = sessions.pop().map(SessionTarget::Session);
    session.or_else(|| agents.pop().map(SessionTarget::Agent))
}

/// The file of one of the client's own helpers at a path, as a walk would find it there.
pub fn helper_at(config: &Arc<Path>, path: &Path) -> Option<NonConversationFile> {
    let found = found_at(config, path)?.others.pop();
    found.filter(|file| file.helper.is_some())
}

fn found_at(config: &Arc<Path>, path: &Path) -> Option<FoundSessionFiles> {
    let projects = config.join("projects");
    let inner = path.strip_prefix(&projects).ok()?;
    let parts: Vec<_> = inner.components().map(|part| part.as_os_str()).collect();
    let [folder, middle @ .., _] = &parts[..] else {
        return None;
    };
    let metadata = fs::metadata(path).ok().filter(Metadata::is_file)?;
    if !is_transcript(path) || middle.len() > DEPTH + 2 {
        return None;
    }
    let place = ProjectFolder {
        config: Arc::clone(config),
        dir: projects.join(folder),
        root: projects,
        folder: folder.to_string_lossy().into(),
    };
    let mut walk = FolderWalk::default();
    match middle {
        [] => walk.file(&place, path.into(), &metadata),
        [agents, ..] if *agents == "subagents" => walk.agent(&place, path.into(), None, &metadata),
        [session, agents, ..] if *agents == "subagents" => {
            let session = session.to_string_lossy();
            walk.agent(&place, path.into(), Some(&session), &metadata);
        }
        _ => return None,
    }
    Some(walk.found)
}

/// Everything in the folder of a transcript, as if it were a project's folder: the files of
/// its sub-agents stand there.
pub fn find_beside_transcript(path: &Path) -> FoundSessionFiles {
    let dir = path
        .parent()
        .filter(|dir| !dir.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let root = fs::canonicalize(dir).unwrap_or_else(|_| dir.into());
    let folder = name(dir).into();
    let mut found = ProjectFolder {
        config: config_of(path),
        root,
        dir: dir.into(),
        folder,
    }
    .walk();
    // Warnings about neighbours belong to those who asked for them.
    found.warnings.clear();
    found.sort();
    found
}

/// The config folder of a transcript that stands where the client puts them.
fn config_of(path: &Path) -> Arc<Path> {
    let projects = path
        .parent()
        .and_then(Path::parent)
        .filter(|dir| dir.ends_with("projects"));
    let config = projects.and_then(Path::parent);
    config.unwrap_or(Path::new("")).into()
}

/// A file that somebody named by its path, wherever it is.
pub fn find_named_file(path: &Path) -> Result<SessionTarget, StoreError> {
    let metadata = open::stat_regular_file(path)?;
    let stem = stem(path);
    let folder: Arc<str> = path.parent().map(name).unwrap_or_default().into();
    let (bytes, modified) = (metadata.len(), open::modified(&metadata));
    let stamp = FileStamp::of(&metadata);
    if let Some(id) = stem.strip_prefix("agent-") {
        let run = run_of(path);
        return Ok(SessionTarget::Agent(SubAgentFile {
            run,
            path: path.into(),
            id: id.to_owned(),
            session: None,
            folder,
            config: config_of(path),
            bytes,
            modified,
            stamp,
        }));
    }
    let beside = path.with_extension("");
    Ok(SessionTarget::Session(SessionFile {
        path: path.into(),
        id: stem,
        folder,
        config: config_of(path),
        bytes,
        modified,
        stamp,
        beside: beside.is_dir().then_some(beside),
    }))
}
