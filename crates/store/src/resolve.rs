//! Which session a person means.
//!
//! An argument is the start of an id, a title, a path, `@` for the latest session of the
//! current directory or `@N` for the N-th latest. Latest goes by the time the file was last
//! written, which costs nothing to know and is also how the client continues a session.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use unspool_model::id::Id;
use unspool_model::session::{Session, TranscriptRole};

use crate::error::{SessionCandidate, StoreError};
use crate::find::{self, FoundSessionFiles, SessionFile, SubAgentFile};
use crate::parallel;
use crate::project::{path_comparison_key, project_of, slug};
use crate::read::{self, LoadedSession, SessionReader};
use crate::session_with_agents::START;

/// What an argument means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedSession {
    /// The file.
    pub target: SessionTarget,
    /// What the person should know about the choice.
    pub note: Option<String>,
}

/// A session, or one of its sub-agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionTarget {
    /// A session.
    Session(SessionFile),
    /// A sub-agent.
    Agent(SubAgentFile),
}

impl SessionTarget {
    /// Its file.
    pub fn path(&self) -> &Path {
        match self {
            SessionTarget::Session(file) => &file.path,
            SessionTarget::Agent(file) => &file.path,
        }
    }

    /// How to read it.
    pub fn role(&self) -> TranscriptRole {
        match self {
            SessionTarget::Session(_) => TranscriptRole::Main,
            SessionTarget::Agent(_) => TranscriptRole::Agent,
        }
    }
}

/// So many characters of an id are enough to mean it.
const SHORTEST: usize = 4;

/// Finds what `argument` means; `here` is the current directory.
pub fn resolve(
    found: &FoundSessionFiles,
    argument: &str,
    here: Option<&Path>,
) -> Result<ResolvedSession, StoreError> {
    if let Some(number) = argument.strip_prefix('@') {
        return latest(found, argument, number, here);
    }
    let target = match by_path(found, argument)? {
        Some(target) => target,
        None => match by_id(found, argument)? {
            Some(target) => target,
            None => by_title(found, argument)?,
        },
    };
    Ok(ResolvedSession { target, note: None })
}

/// The session of this very directory that was last written, if there is one. Looks only into
/// files that may be it.
pub fn latest_in_directory<'a>(
    found: &'a FoundSessionFiles,
    here: &Path,
) -> Option<&'a SessionFile> {
    let files = newest_first(found);
    let mut places = spellings(here).into_iter();
    places.find_map(|place| {
        let near = files.iter().filter(|file| may_belong(&file.folder, &place));
        let mut mine = near.filter(|file| {
            let at = project_at_start(file);
            at.is_some_and(|at| at.is(&place) && !is_copy(&at, file, &files))
        });
        mine.next().copied()
    })
}

/// Sessions by the time they were last written, newest first.
pub fn newest_first(found: &FoundSessionFiles) -> Vec<&SessionFile> {
    let mut files: Vec<_> = found.sessions.iter().collect();
    files.sort_by_key(|file| Reverse(file.modified));
    files
}

fn by_path(found: &FoundSessionFiles, argument: &str) -> Result<Option<SessionTarget>, StoreError> {
    let path = Path::new(argument);
    let named = argument.ends_with(".jsonl");
    let exists = argument.contains(['/', '\\']) && path.exists();
    if !named && !exists {
        return Ok(None);
    }
    let real = std::fs::canonicalize(path).map_err(|why| StoreError::io(path, why))?;
    let is_it =
        |other: &Path| other == path || std::fs::canonicalize(other).is_ok_and(|o| o == real);
    // Only files of that name need to be compared.
    let name = real.file_name();
    let session = found
        .sessions
        .iter()
        .filter(|file| file.path.file_name() == name);
    if let Some(file) = session.into_iter().find(|file| is_it(&file.path)) {
        return Ok(Some(SessionTarget::Session(file.clone())));
    }
    let agent = found
        .agents
        .iter()
        .filter(|file| file.path.file_name() == name);
    if let Some(file) = agent.into_iter().find(|file| is_it(&file.path)) {
        return Ok(Some(SessionTarget::Agent(file.clone())));
    }
    find::find_named_file(path).map(Some)
}

fn by_id(found: &FoundSessionFiles, argument: &str) -> Result<Option<SessionTarget>, StoreError> {
    let sessions = fitting(&found.sessions, argument, |file| &file.id);
    let agent = argument.strip_prefix("agent-").unwrap_or(argument);
    let agents = fitting(&found.agents, agent, |file| &file.id);
    match (&sessions[..], &agents[..]) {
        ([], []) => Ok(None),
        ([file], _) => Ok(Some(SessionTarget::Session((*file).clone()))),
        ([], [file]) => Ok(Some(SessionTarget::Agent((*file).clone()))),
        ([], _) => Err(ambiguous(argument, agents.into_iter().map(agent_candidate))),
        _ => one(argument, sessions).map(Some),
    }
}

/// Files whose id is `start`, else those whose id begins with it.
fn fitting<'a, T>(files: &'a [T], start: &str, id: impl Fn(&T) -> &String) -> Vec<&'a T> {
    let exact: Vec<_> = files.iter().filter(|file| id(file) == start).collect();
    if !exact.is_empty() || start.chars().count() < SHORTEST {
        return exact;
    }
    let begins = |id: &str| {
        let head = id.get(..start.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(start))
    };
    files.iter().filter(|file| begins(id(file))).collect()
}

/// What a file says about itself when looking for a title.
struct FileTitles {
    own: Option<String>,
    /// Titles it gives to lines of other files.
    given: Vec<(Id, String)>,
}

fn by_title(found: &FoundSessionFiles, argument: &str) -> Result<SessionTarget, StoreError> {
    let wanted = argument.trim().trim_matches('"');
    if wanted.is_empty() {
        return Err(not_found(found, argument));
    }
    let titles = fold_all(found, |session| FileTitles {
        own: session.title(&Default::default()),
        given: session
            .foreign_titles()
            .map(|(leaf, title)| (leaf.clone(), title.to_owned()))
            .collect(),
    });
    let same = |title: &str| title.trim() == wanted;
    let alike = |title: &str| title.trim().to_lowercase() == wanted.to_lowercase();
    for fits in [&same as &dyn Fn(&str) -> bool, &alike] {
        let own = |titles: &Option<FileTitles>| {
            let own = titles.as_ref().and_then(|titles| titles.own.as_deref());
            own.is_some_and(fits)
        };
        let fitting = |(file, titles)| own(titles).then_some(file);
        let files: Vec<_> = found
            .sessions
            .iter()
            .zip(&titles)
            .filter_map(fitting)
            .collect();
        if !files.is_empty() {
            return one(argument, files);
        }
    }
    by_given_title(found, argument, &titles, alike)
}

/// A `summary` line titles a session in another file by naming one of its lines.
fn by_given_title(
    found: &FoundSessionFiles,
    argument: &str,
    titles: &[Option<FileTitles>],
    fits: impl Fn(&str) -> bool,
) -> Result<SessionTarget, StoreError> {
    let given = titles.iter().flatten().flat_map(|titles| &titles.given);
    let leaves: Vec<_> = given
        .filter(|(_, title)| fits(title))
        .map(|(leaf, _)| leaf)
        .collect();
    if leaves.is_empty() {
        return Err(not_found(found, argument));
    }
    let holds = fold_all(found, |session| {
        leaves.iter().any(|leaf| session.find(leaf).is_some())
    });
    let files = found.sessions.iter().zip(holds);
    let files: Vec<_> = files
        .filter_map(|(file, holds)| (holds == Some(true)).then_some(file))
        .collect();
    match files.is_empty() {
        true => Err(not_found(found, argument)),
        false => one(argument, files),
    }
}

fn fold_all<R: Send>(
    found: &FoundSessionFiles,
    job: impl Fn(&Session) -> R + Sync,
) -> Vec<Option<R>> {
    let reader = SessionReader::default();
    parallel::map(
        &found.sessions,
        reader.threads,
        |file| file.bytes,
        |file| {
            let loaded = reader.read(&file.path, TranscriptRole::Main).ok()?;
            Some(job(&loaded.session))
        },
    )
}

/// The only one of them, not counting copies that the client made to go on in the background.
fn one(argument: &str, files: Vec<&SessionFile>) -> Result<SessionTarget, StoreError> {
    match originals(&files)[..] {
        [file] => Ok(SessionTarget::Session(file.clone())),
        _ => Err(ambiguous(argument, files.into_iter().map(candidate))),
    }
}

/// Of several files that somebody may mean, those that were not written in the background; all of
/// them, if they all were.
fn originals<'a>(files: &[&'a SessionFile]) -> Vec<&'a SessionFile> {
    if files.len() < 2 {
        return files.to_vec();
    }
    let apart = |file: &&&SessionFile| !is_background(file);
    let originals: Vec<_> = files.iter().filter(apart).copied().collect();
    match originals.is_empty() {
        true => files.to_vec(),
        false => originals,
    }
}

/// Whether a session was written by a process in the background, as its start says, or its end: a
/// copy begins with the lines of its original, which may be many and say nothing of that.
pub fn is_background(file: &SessionFile) -> bool {
    let start = read::read_start(&file.path, TranscriptRole::Main, START);
    start.is_ok_and(|start| is_by_background(&start)) || ends_in_background(file)
}

fn is_by_background(loaded: &LoadedSession) -> bool {
    loaded.session.process.as_deref() == Some(BACKGROUND)
}

/// Whether the end of a session was written by a process in the background, where its start is not
/// all of it.
fn ends_in_background(file: &SessionFile) -> bool {
    if file.bytes <= START {
        return false;
    }
    let end = read::read_end(&file.path, TranscriptRole::Main, 1, START);
    end.is_ok_and(|end| is_by_background(&end))
}

/// What lines of a process in the background call it.
const BACKGROUND: &str = "bg";

fn not_found(found: &FoundSessionFiles, argument: &str) -> StoreError {
    let lower = argument.to_lowercase();
    let too_short = argument.chars().count() < SHORTEST
        && !argument.is_empty()
        && found
            .sessions
            .iter()
            .any(|file| file.id.to_lowercase().starts_with(&lower));
    let like_an_id = argument.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let what = if too_short {
        format!("`{argument}` is too short; use at least {SHORTEST} characters of the id")
    } else if like_an_id {
        format!("no session starts with `{argument}`")
    } else {
        format!("no session has the id or title `{argument}`")
    };
    StoreError::NotFound { what }
}

fn ambiguous(argument: &str, candidates: impl Iterator<Item = SessionCandidate>) -> StoreError {
    let mut candidates: Vec<_> = candidates.collect();
    candidates.sort_by_key(|candidate| Reverse(candidate.modified));
    StoreError::Ambiguous {
        argument: argument.into(),
        candidates,
    }
}

fn candidate(file: &SessionFile) -> SessionCandidate {
    SessionCandidate {
        id: file.id.clone(),
        title: title_at_start(&file.path, TranscriptRole::Main),
        modified: file.modified,
        path: file.path.clone(),
    }
}

fn agent_candidate(file: &SubAgentFile) -> SessionCandidate {
    SessionCandidate {
        id: format!("agent-{}", file.id),
        title: title_at_start(&file.path, TranscriptRole::Agent),
        modified: file.modified,
        path: file.path.clone(),
    }
}

fn title_at_start(path: &Path, role: TranscriptRole) -> Option<String> {
    let start = read::read_start(path, role, START).ok()?;
    start.session.title(&Default::default())
}

fn latest(
    found: &FoundSessionFiles,
    argument: &str,
    number: &str,
    here: Option<&Path>,
) -> Result<ResolvedSession, StoreError> {
    let number = match number {
        "" => Some(1),
        number => number.parse().ok().filter(|&number| number > 0),
    };
    let Some(number) = number else {
        let what = format!("`{argument}` is invalid: use `@N` with N from 1");
        return Err(StoreError::NotFound { what });
    };
    let files = newest_first(found);
    let (mine, note) = of_directory(&files, here, number);
    match mine.get(number - 1) {
        Some(file) => Ok(ResolvedSession {
            target: SessionTarget::Session((*file).clone()),
            note,
        }),
        None => Err(StoreError::NotFound {
            what: match mine.len() {
                0 => "there are no sessions".to_owned(),
                1 => format!("no `{argument}`: only 1 session found"),
                many => format!("no `{argument}`: only {many} sessions found"),
            },
        }),
    }
}

/// Up to `number` sessions of the directory; of the nearest one above it that has any; of
/// all.
fn of_directory<'a>(
    files: &[&'a SessionFile],
    here: Option<&Path>,
    number: usize,
) -> (Vec<&'a SessionFile>, Option<String>) {
    let places = here.map(spellings).unwrap_or_default();
    for place in &places {
        // Sessions usually lie in the folder that is named after their directory.
        let near = files.iter().filter(|file| may_belong(&file.folder, place));
        let mine = near.filter(|file| {
            let at = project_at_start(file);
            at.is_some_and(|at| at.is(place) && !is_copy(&at, file, files))
        });
        let mine: Vec<_> = mine.take(number).copied().collect();
        if !mine.is_empty() {
            return (mine, None);
        }
    }
    let projects = parallel::map(
        files,
        parallel::threads(),
        |_| 0,
        |file| project_at_start(file),
    );
    let mut all: Vec<_> = files.iter().copied().zip(projects).collect();
    leave_out_copies(&mut all);
    let above = |place: &PathBuf| place.ancestors().map(Path::to_owned).collect::<Vec<_>>();
    for (steps, dir) in places
        .iter()
        .flat_map(|place| above(place).into_iter().enumerate())
    {
        let mine = all
            .iter()
            .filter(|(_, at)| at.as_ref().is_some_and(|at| at.is(&dir)));
        let mine: Vec<_> = mine.map(|(file, _)| *file).collect();
        if !mine.is_empty() {
            let note = format!(
                "this directory has no sessions; using those of `{}`",
                dir.display()
            );
            return (mine, (steps > 0).then_some(note));
        }
    }
    let talks = all.iter().filter(|(_, project)| project.is_some());
    let note =
        here.map(|_| "this directory has no sessions; using those of all directories".to_owned());
    (talks.map(|(file, _)| *file).collect(), note)
}

/// The directory as given and, if a link hides it, as it really is.
fn spellings(here: &Path) -> Vec<PathBuf> {
    let mut all = vec![here.to_owned()];
    let real = std::fs::canonicalize(here).ok();
    all.extend(real.filter(|real| real != here));
    all
}

/// Whether a folder may hold sessions of a directory or of its worktrees.
fn may_belong(folder: &str, dir: &Path) -> bool {
    let own = slug(&dir.to_string_lossy());
    let Some(head) = folder.get(..own.len()) else {
        return false;
    };
    // Only drive letters differ in case, and a mistake here costs one look into a file.
    let rest = &folder[own.len()..];
    head.eq_ignore_ascii_case(&own) && (rest.is_empty() || rest.starts_with("--claude-worktrees-"))
}

/// Whether a session is a copy that was made to go on in the background, and its original is
/// there: who asks for the latest means that one.
fn is_copy(at: &SessionOrigin, file: &SessionFile, files: &[&SessionFile]) -> bool {
    let background = at.background || ends_in_background(file);
    let Some(root) = at.root.as_ref().filter(|_| background) else {
        return false;
    };
    let near = files.iter().filter(|other| other.folder == file.folder);
    let mut others = near.filter(|other| other.path != file.path);
    others.any(|other| {
        let at = project_at_start(other);
        let begins_alike = |at: &SessionOrigin| !at.background && at.root.as_ref() == Some(root);
        at.is_some_and(|at| begins_alike(&at)) && !ends_in_background(other)
    })
}

/// Leaves out the copies among all sessions. The end of one is read only where another begins
/// with the same line.
fn leave_out_copies(all: &mut Vec<(&SessionFile, Option<SessionOrigin>)>) {
    let key = |file: &SessionFile, at: &Option<SessionOrigin>| {
        let root = at.as_ref()?.root.clone()?;
        Some((Arc::clone(&file.folder), root))
    };
    let mut alike: HashMap<(Arc<str>, Id), usize> = HashMap::new();
    for key in all.iter().filter_map(|(file, at)| key(file, at)) {
        *alike.entry(key).or_default() += 1;
    }
    alike.retain(|_, files| *files > 1);
    for (file, at) in all.iter_mut() {
        let has_twin = key(file, at).is_some_and(|key| alike.contains_key(&key));
        if let Some(at) = at.as_mut().filter(|at| has_twin && !at.background) {
            at.background = ends_in_background(file);
        }
    }
    let is_background = |at: &Option<SessionOrigin>| at.as_ref().is_some_and(|at| at.background);
    let originals = all.iter().filter(|(_, at)| !is_background(at));
    let originals: HashSet<_> = originals.filter_map(|(file, at)| key(file, at)).collect();
    all.retain(|(file, at)| {
        let key = key(file, at).filter(|_| is_background(at));
        key.is_none_or(|key| !originals.contains(&key))
    });
}

/// Where a session belongs, as the start of its file tells.
struct SessionOrigin {
    /// The id of its first line.
    root: Option<Id>,
    /// Whether it was written in the background.
    background: bool,
    /// Where it began.
    cwd: Option<String>,
    folder: String,
}

impl SessionOrigin {
    fn is(&self, dir: &Path) -> bool {
        let dir = dir.to_string_lossy();
        match &self.cwd {
            Some(cwd) => {
                path_comparison_key(cwd) == path_comparison_key(&dir)
                    || path_comparison_key(project_of(cwd)) == path_comparison_key(&dir)
            }
            None => self.folder == slug(&dir),
        }
    }
}

/// `None` if the file holds no conversation.
fn project_at_start(file: &SessionFile) -> Option<SessionOrigin> {
    let start = read::read_start(&file.path, TranscriptRole::Main, START).ok()?;
    let whole = start.bytes >= file.bytes;
    if whole && !start.session.is_used() {
        return None;
    }
    let first = start.session.cwds.iter().next();
    let mut lines = start.session.records.iter();
    let root = lines.find(|record| record.is_conversation() && record.uuid.is_some());
    Some(SessionOrigin {
        root: root.and_then(|record| record.uuid.clone()),
        background: is_by_background(&start),
        cwd: first.map(|(cwd, _)| cwd.to_owned()),
        folder: file.folder.to_string(),
    })
}
