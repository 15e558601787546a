//! What a command takes from the world: sessions, the clock, the current directory.

use std::borrow::Cow;
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsStr;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use unspool_model::time::Time;
use unspool_model::view::client_profile::ClientProfile;
use unspool_model::view::status;
use unspool_model::view::workflow::WorkflowRun;
use unspool_show::shell_command;
use unspool_store::dirs;
use unspool_store::find::{self, FoundSessionFiles, SessionFile};
use unspool_store::hook_events::HookEventStore;
use unspool_store::journal::{FileTransaction, Journal, JournalEntry, JournalStep, JournalTask};
use unspool_store::read::SessionReader;
use unspool_store::resolve::{self, SessionTarget};
use unspool_store::session_paths;
use unspool_store::session_with_agents::{self, SessionWithAgents};
use unspool_store::side_files;
use unspool_store::signals::KnownSignals;

use crate::app_dirs::AppDirs;
use crate::demo::DemoSessions;
use crate::failure::CommandFailure;
use crate::secrets;
use crate::ui::TerminalUi;

/// The world as a command sees it.
pub struct CommandContext {
    /// How to speak.
    pub ui: TerminalUi,
    /// Where our own files live.
    pub own: AppDirs,
    /// Where sessions live.
    pub dirs: Vec<PathBuf>,
    /// The home folder, if there is one.
    pub home: Option<PathBuf>,
    /// Whether the person named those places.
    pub named: bool,
    /// The current directory.
    pub here: Option<PathBuf>,
    /// Whose reading rules apply.
    pub profile: ClientProfile,
    /// Whether secrets are shown as they are.
    pub reveal: bool,
    /// The bundled recordings, while they are in use.
    pub demo: Option<DemoSessions>,
}

impl CommandContext {
    /// The file of folders whose settings may act.
    pub fn trusted(&self) -> PathBuf {
        self.own.data.join("trust.json")
    }
}

/// A session that was asked for, with its sub-agents.
pub struct ChosenSession {
    /// What was meant.
    pub target: SessionTarget,
    /// The session and its sub-agents.
    pub family: SessionWithAgents,
}

impl ChosenSession {
    /// The id of the session or sub-agent.
    pub fn id(&self) -> &str {
        match &self.target {
            SessionTarget::Session(file) => &file.id,
            SessionTarget::Agent(file) => &file.id,
        }
    }

    /// The file of the session, to be edited.
    pub fn session(&self) -> Result<&SessionFile, CommandFailure> {
        match &self.target {
            SessionTarget::Session(file) => Ok(file),
            SessionTarget::Agent(_) => Err(CommandFailure::failed(
                "sub-agents cannot be edited on their own",
            )
            .hint("edit the session that the sub-agent belongs to")),
        }
    }

    /// Its file.
    pub fn path(&self) -> String {
        self.target.path().display().to_string()
    }
}

impl CommandContext {
    /// The time, fixed by UNSPOOL_NOW where output must not change.
    pub fn now(&self) -> Time {
        now()
    }

    /// The command that resumes a session, from here: it goes to the directory of the session if
    /// that is another one, and is still there.
    pub fn resume_command(&self, directory: Option<&str>, id: &str) -> String {
        let here = self.here.as_deref();
        let elsewhere = |it: &&str| here != Some(Path::new(it)) && Path::new(it).is_dir();
        shell_command::resume(directory.filter(elsewhere), id)
    }

    /// What hooks noted about sessions.
    pub fn events(&self) -> HookEventStore {
        HookEventStore::open(&self.own.events())
    }

    /// What is known about sessions beside their transcripts.
    pub fn signals(&self) -> KnownSignals {
        // The recordings were not made here.
        let events = self.demo.is_none().then(|| self.events());
        KnownSignals::look(&self.dirs, events.as_ref(), self.now().0)
    }

    /// What is known about one session; nothing about a sub-agent alone.
    pub fn signals_of(&self, target: &SessionTarget) -> status::StatusSignals {
        match target {
            SessionTarget::Session(file) => self.signals().of(&file.config, &file.id),
            SessionTarget::Agent(_) => status::StatusSignals::default(),
        }
    }

    /// All sessions, with one warning for each thing that could not be read.
    pub fn found(&self) -> Result<FoundSessionFiles, CommandFailure> {
        let mut found = self.walked()?;
        found.identify_agents();
        Ok(found)
    }

    /// Like [`CommandContext::found`], by names alone: for those who read all files anyway.
    pub fn walked(&self) -> Result<FoundSessionFiles, CommandFailure> {
        if self.dirs.is_empty() {
            return Err(self.no_home());
        }
        let (mut present, mut absent) = (Vec::new(), Vec::new());
        for dir in &self.dirs {
            match dirs::check(dir) {
                Ok(()) => present.push(dir.clone()),
                Err(error) => absent.push(error),
            }
        }
        if self.named {
            match absent.first() {
                // One folder of several that is gone is no reason to show nothing.
                Some(_) if !present.is_empty() => absent
                    .iter()
                    .for_each(|error| self.ui.warn(&error.to_string())),
                Some(error) => {
                    let hint = error
                        .hint()
                        .unwrap_or("use another directory with `--claude-dir DIR`");
                    return Err(CommandFailure::failed(error).hint(hint));
                }
                None => {}
            }
        }
        let found = find::find(&present);
        for warning in &found.warnings {
            self.ui.warn(&warning.to_string());
        }
        self.ui.detail(&format!(
            "{} sessions, {} sub-agents and {} other files in {}",
            found.sessions.len(),
            found.agents.len(),
            found.others.len(),
            places(&present)
        ));
        Ok(found)
    }

    /// The session that `argument` means; the latest of this directory without one.
    pub fn choose(&self, argument: Option<&OsStr>) -> Result<ChosenSession, CommandFailure> {
        let target = self.target(argument)?;
        self.load(target)
    }

    /// What `argument` means, without reading it.
    pub fn target(&self, argument: Option<&OsStr>) -> Result<SessionTarget, CommandFailure> {
        let argument = argument.unwrap_or(OsStr::new("@"));
        let Some(argument) = argument.to_str() else {
            // Only a path can be something else than text.
            return Ok(find::find_named_file(Path::new(argument))?);
        };
        let found = if is_path(argument) {
            FoundSessionFiles::default()
        } else {
            self.found()?
        };
        if found.sessions.is_empty() && found.agents.is_empty() && !is_path(argument) {
            return Err(self.no_sessions());
        }
        let resolved = resolve::resolve(&found, argument, self.here.as_deref())?;
        if let Some(note) = resolved.note {
            self.ui.note(&note);
        }
        Ok(resolved.target)
    }

    /// Like [`CommandContext::choose`], to be shown: without secrets unless they are asked for.
    pub fn view(&self, argument: Option<&OsStr>) -> Result<ChosenSession, CommandFailure> {
        let target = self.target(argument)?;
        self.look(target)
    }

    /// Reads a session and its sub-agents, to be shown.
    pub fn look(&self, target: SessionTarget) -> Result<ChosenSession, CommandFailure> {
        self.look_by(&self.reader(), target)
    }

    /// The same, with a reader of one's own.
    pub fn look_by(
        &self,
        reader: &SessionReader,
        target: SessionTarget,
    ) -> Result<ChosenSession, CommandFailure> {
        let mut chosen = self.family_of(reader, target)?;
        let metas = chosen.family.agents.iter_mut();
        for meta in metas.filter_map(|agent| agent.meta.as_mut()) {
            self.mask_in(&mut meta.description);
        }
        self.mask_runs(&mut chosen.family.runs);
        Ok(chosen)
    }

    /// The workflow runs of a session, to be shown: without secrets unless they are asked for.
    pub fn runs(&self, file: &SessionFile) -> Vec<WorkflowRun> {
        let mut runs = side_files::runs(file);
        self.mask_runs(&mut runs);
        runs
    }

    fn mask_runs(&self, runs: &mut [WorkflowRun]) {
        for text in runs.iter_mut().flat_map(WorkflowRun::texts) {
            if let Cow::Owned(masked) = self.masked(text) {
                *text = masked;
            }
        }
    }

    /// A reader for what is to be shown.
    pub fn reader(&self) -> SessionReader {
        SessionReader {
            mask: (!self.reveal).then(secrets::masker),
            ..SessionReader::default()
        }
    }

    /// A text to be shown: without secrets unless they are asked for.
    pub fn masked<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.reveal {
            return Cow::Borrowed(text);
        }
        secrets::known().mask(text)
    }

    /// The same, in place.
    pub fn mask_in(&self, text: &mut Option<String>) {
        let masked = text.as_deref().map(|text| self.masked(text));
        if let Some(Cow::Owned(masked)) = masked {
            *text = Some(masked);
        }
    }

    /// Reads a session as it is, to be edited. Its sub-agents are read one by one when it is
    /// their turn: a session may have a thousand.
    pub fn load(&self, target: SessionTarget) -> Result<ChosenSession, CommandFailure> {
        let family =
            SessionWithAgents::alone(SessionReader::to_edit().read(target.path(), target.role())?);
        Ok(ChosenSession { target, family })
    }

    fn family_of(
        &self,
        reader: &SessionReader,
        target: SessionTarget,
    ) -> Result<ChosenSession, CommandFailure> {
        let family = match &target {
            SessionTarget::Session(file) => {
                let found = self.found_around(&file.path)?;
                session_with_agents::read_session_with_agents_by(reader, &found, file)?
            }
            SessionTarget::Agent(file) => {
                SessionWithAgents::alone(reader.read(&file.path, target.role())?)
            }
        };
        for warning in &family.warnings {
            self.ui.warn(&warning.to_string());
        }
        Ok(ChosenSession { target, family })
    }

    /// Sub-agents stand beside their session, wherever that is.
    pub fn found_around(&self, path: &Path) -> Result<FoundSessionFiles, CommandFailure> {
        let mut found = find::find_beside_transcript(path);
        found.identify_agents();
        Ok(found)
    }

    /// Where a cache of this kind is. Each set of config folders has its own, so that asking
    /// about one does not throw away what was read of another.
    pub fn shelf(&self, kind: &str) -> PathBuf {
        if let Some(demo) = &self.demo {
            return demo.path().join(kind);
        }
        let mut hasher = DefaultHasher::new();
        for dir in &self.dirs {
            let real = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.clone());
            real.as_os_str().hash(&mut hasher);
        }
        let name = format!("{:016x}", hasher.finish());
        self.own.cache.join(kind).join(name)
    }

    /// Where edits are noted.
    pub fn journal(&self) -> Journal {
        Journal::open(&self.data("undo")).only(is_undoable)
    }

    /// Begins an edit, and tells what was found of one that a crash left.
    pub fn begin(&self, task: JournalTask) -> Result<FileTransaction, CommandFailure> {
        let work = self.journal().begin(task)?;
        work.notes().iter().for_each(|note| self.ui.note(note));
        Ok(work)
    }

    /// Where we keep what must not be lost. What is done to the recordings goes with them.
    pub fn data(&self, kind: &str) -> PathBuf {
        let demo = self.demo.as_ref().map(|demo| demo.path().join(kind));
        demo.unwrap_or_else(|| self.own.data.join(kind))
    }

    /// Nobody says where sessions and settings are.
    pub fn no_home(&self) -> CommandFailure {
        CommandFailure::failed("no home directory: neither HOME nor the user account defines one")
            .hint("set HOME or CLAUDE_CONFIG_DIR, or use `--claude-dir DIR`")
    }

    /// There is nothing to read on this machine.
    pub fn no_sessions(&self) -> CommandFailure {
        CommandFailure::nothing(format!("no sessions in {}", places(&self.dirs)))
            .hint("try `--demo` for the bundled recordings, or use `--claude-dir DIR`")
    }
}

/// The time, fixed by UNSPOOL_NOW where output must not change.
pub fn now() -> Time {
    let fixed = std::env::var("UNSPOOL_NOW")
        .ok()
        .and_then(|text| Time::parse(&text));
    fixed.unwrap_or_else(|| Time(Timestamp::now().as_millisecond()))
}

/// What undoing an edit may touch: files of sessions, and the settings that the hook is put into.
fn is_undoable(entry: &JournalEntry, step: &JournalStep) -> bool {
    let path = step.path();
    let is_settings = || {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let operations = ["hook install", "hook uninstall", "undo"];
        operations.contains(&entry.task.operation.as_str())
            && name.contains("settings")
            && name.ends_with(".json")
    };
    match step {
        JournalStep::Moved { to, .. } if session_paths::is_move_of_project(path, to) => true,
        JournalStep::Moved { to, .. } if !session_paths::is_of_any_session(to) => false,
        // Only folders that are empty go.
        JournalStep::Emptied { .. } => true,
        _ => session_paths::is_of_any_session(path) || is_settings(),
    }
}

fn places(dirs: &[PathBuf]) -> String {
    let names: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    names.join(", ")
}

fn is_path(argument: &str) -> bool {
    argument.ends_with(".jsonl") || (argument.contains(['/', '\\']) && Path::new(argument).exists())
}
