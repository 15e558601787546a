//! Copies of sessions that outlive the client's purge: compressed, complete, and read back
//! before anybody relies on them.
//!
//! An archive is a folder in our own data: `manifest.json` (a [`SessionArchive`]) and one zstd file
//! for each file of the session. It appears under its name only when all of it was verified.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unspool_model::prompt_history;

use crate::atomic_write::{self, ContentHash, WriteRoots};
use crate::client_session_list::{self, ClientSessionList};
use crate::error::StoreError;
use crate::find::SessionFile;
use crate::journal::FileTransaction;
use crate::open::{self, FileStamp};
use crate::own_file;
use crate::owned_files::OwnedFiles;
use crate::read_folder::{self, FolderEntryKind};
use crate::session_paths;
use crate::side_files;

/// A session that was put away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionArchive {
    /// The name of its folder.
    pub id: String,
    /// The session.
    pub session: String,
    /// When it was archived, in milliseconds since 1970.
    pub at: i64,
    /// The title of the session then.
    pub title: Option<String>,
    /// The config folder it came from.
    pub config: PathBuf,
    /// What the client's own list of the project said about it.
    #[serde(default)]
    pub listed: Option<Value>,
    /// Its files, the transcript last.
    pub files: Vec<ArchivedFile>,
}

/// One file in an archive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArchivedFile {
    /// Where it was, below the config folder.
    pub path: PathBuf,
    /// Its compressed copy.
    pub file: String,
    /// What it held.
    pub mark: ContentHash,
    /// Bytes of the compressed copy.
    pub packed: u64,
    /// When it was last changed, in nanoseconds since 1970.
    pub modified: i64,
}

const MANIFEST: &str = "manifest.json";
/// A good ratio at the speed of a disk.
const LEVEL: i32 = 3;

impl SessionArchive {
    /// Bytes of the files as they were.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.mark.size).sum()
    }

    /// Bytes of the archive.
    pub fn packed(&self) -> u64 {
        self.files.iter().map(|file| file.packed).sum()
    }
}

/// All archives in a folder, the oldest first. What is none is passed over.
pub fn list(dir: &Path) -> Vec<SessionArchive> {
    let entries = read_folder::entries(dir).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(FolderEntryKind::is_dir));
    let manifests = folders.filter_map(|entry| {
        let bytes = own_file::read(&entry.path().join(MANIFEST)).ok()?;
        let archive: SessionArchive = serde_json::from_slice(&bytes).ok()?;
        (entry.file_name().to_str() == Some(archive.id.as_str())).then_some(archive)
    });
    let mut all: Vec<SessionArchive> = manifests.collect();
    all.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    all
}

/// Whether an archive holds the transcript as it is now, and so many files of its own.
pub fn is_current(archive: &SessionArchive, session: &SessionFile, files: usize) -> bool {
    let own = archive.files.iter();
    let own = own.filter(|file| !file.path.starts_with(PLANS)).count();
    own == files
        && archive.files.last().is_some_and(|last| {
            let same =
                (last.mark.size, last.modified) == (session.stamp.size, session.stamp.modified);
            archive.session == session.id && same
        })
}

/// A session to be put away.
#[derive(Clone, Debug)]
pub struct ArchiveRequest<'a> {
    /// The name of the archive; nothing of that name may be there.
    pub name: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// Its title.
    pub title: Option<String>,
    /// Its file.
    pub session: &'a SessionFile,
    /// Its plan, if it has one.
    pub plan: Option<PathBuf>,
    /// All its files, see [`files`].
    pub files: &'a [PathBuf],
}

/// All files of a session that are its alone, the transcript last. What could not be brought back,
/// such as its background job, stays where it is.
pub fn files(owned: &OwnedFiles, session: &SessionFile) -> Vec<PathBuf> {
    let home = home(session);
    let all = owned.of(session).into_iter().map(|one| one.path);
    let mut all: Vec<PathBuf> = all
        .filter(|path| {
            let within = path.strip_prefix(&home);
            within.is_ok_and(|within| session_paths::is_file_of(&session.id, within))
        })
        .filter(|path| *path != session.path)
        .collect();
    all.sort_unstable();
    all.push(session.path.clone());
    all
}

/// What stays of a session that is removed with its [`files`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovalLeftovers {
    /// Files that could not be brought back, such as those of its background job.
    pub files: Vec<PathBuf>,
    /// Its prompts in the list that the client keeps of all.
    pub prompts: usize,
}

impl RemovalLeftovers {
    /// What stays of a session that loses these files.
    pub fn of(
        owned: &OwnedFiles,
        session: &SessionFile,
        files: &[PathBuf],
        prompts: &mut PromptCounts,
    ) -> RemovalLeftovers {
        let all = owned.of(session).into_iter().map(|one| one.path);
        RemovalLeftovers {
            files: all.filter(|path| !files.contains(path)).collect(),
            prompts: prompts.of(session),
        }
    }
}

/// How many prompts of each session the client keeps in its list of all, which is read once.
#[derive(Debug, Default)]
pub struct PromptCounts(HashMap<PathBuf, HashMap<String, usize>>);

impl PromptCounts {
    fn of(&mut self, session: &SessionFile) -> usize {
        let config = session.config.to_path_buf();
        let counts = self.0.entry(config).or_insert_with_key(|config| {
            let mut counts = HashMap::new();
            if config.as_os_str().is_empty() {
                return counts;
            }
            let all = std::fs::read(config.join("history.jsonl")).unwrap_or_default();
            for line in all.split(|byte| *byte == b'\n') {
                let session = prompt_history::session(line);
                *counts.entry(session.unwrap_or_default()).or_default() += 1;
            }
            counts
        });
        counts.get(&session.id).copied().unwrap_or_default()
    }
}

/// Its plan, named by the three words that its lines give. Copies of the session have the same,
/// so it is never taken away and never overwritten.
pub fn plan(session: &SessionFile, words: &str) -> Option<PathBuf> {
    let known = !session.config.as_os_str().is_empty();
    known
        .then(|| side_files::plan(&session.config, words))
        .flatten()
}

const PLANS: &str = "plans";

/// What the client's own list says about a session.
pub fn listed(session: &SessionFile) -> Option<Value> {
    let list =
        ClientSessionList::read(&session.path.with_file_name(client_session_list::NAME), "")?;
    list.entry(&session.id).cloned()
}

/// Puts a session away.
pub fn make(dir: &Path, wanted: ArchiveRequest<'_>) -> Result<SessionArchive, StoreError> {
    let ground = own(dir)?;
    let unfinished = dir.join(format!(".{}.tmp", wanted.name));
    let to = dir.join(&wanted.name);
    let made = pack_all(&wanted, |at, from, config| {
        let copy = unfinished.join(format!("{at}.zst"));
        let packed = pack(config, from, |fill| {
            Ok(atomic_write::create(&ground, &copy, fill)?.size)
        })?;
        verify(&copy, &packed)?;
        Ok(packed)
    });
    let made = made.and_then(|archive| {
        let path = unfinished.join(MANIFEST);
        let failed = |error: io::Error| StoreError::unwritable("write", &path, error);
        let text = serde_json::to_vec_pretty(&archive).map_err(|error| failed(error.into()))?;
        atomic_write::create(&ground, &path, |out| out.write_all(&text))?;
        let again = own_file::read(&path).map_err(failed)?;
        if serde_json::from_slice::<SessionArchive>(&again)
            .ok()
            .as_ref()
            != Some(&archive)
        {
            return Err(damaged(&path, "the written manifest does not match"));
        }
        let (from, to) = (ground.place(&unfinished)?, ground.place(&to)?);
        let renamed = from.folder.rename_new(&from.name, &to.folder, &to.name);
        renamed.map_err(|error| StoreError::unwritable("write", &to.path, error))?;
        to.sync()?;
        Ok(archive)
    });
    if made.is_err() {
        // Ours alone, and of no use.
        let _ = read_folder::remove_all(&unfinished);
    }
    made
}

/// What putting a session away would give, with nothing written.
pub fn preview_archive(wanted: ArchiveRequest<'_>) -> Result<SessionArchive, StoreError> {
    pack_all(&wanted, |_, from, config| {
        pack(config, from, |fill| {
            let mut counted = ByteCountWriter(0);
            fill(&mut counted).map_err(|error| StoreError::io(from, error))?;
            Ok(counted.0)
        })
    })
}

/// Takes everything, and keeps only how much it was.
struct ByteCountWriter(u64);

impl io::Write for ByteCountWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The folder that paths in an archive are below.
fn home(session: &SessionFile) -> PathBuf {
    let known = !session.config.as_os_str().is_empty();
    let folder = session.path.parent().unwrap_or(Path::new("."));
    if known {
        session.config.to_path_buf()
    } else {
        folder.to_owned()
    }
}

/// Opens our folder of archives, and makes it.
fn own(dir: &Path) -> Result<WriteRoots, StoreError> {
    own_file::make_folder(dir).map_err(|error| StoreError::unwritable("make", dir, error))?;
    WriteRoots::open([dir])
}

/// Packs file by file.
fn pack_all(
    wanted: &ArchiveRequest<'_>,
    mut pack: impl FnMut(usize, &Path, &Path) -> Result<ArchivedFile, StoreError>,
) -> Result<SessionArchive, StoreError> {
    let config = home(wanted.session);
    let mut files = Vec::new();
    for (at, from) in wanted.plan.iter().chain(wanted.files).enumerate() {
        let packed = pack(at, from, &config)?;
        files.push(ArchivedFile {
            file: format!("{at}.zst"),
            ..packed
        });
    }
    Ok(SessionArchive {
        id: wanted.name.clone(),
        session: wanted.session.id.clone(),
        at: wanted.at,
        title: wanted.title.clone(),
        config: std::path::absolute(&config).unwrap_or(config),
        listed: listed(wanted.session),
        files,
    })
}

/// What fills a file.
type ContentWriterFn<'a> = &'a mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>;

/// Packs a file; `put` writes the copy somewhere and says how large it is.
fn pack(
    config: &Path,
    from: &Path,
    put: impl FnOnce(ContentWriterFn<'_>) -> Result<u64, StoreError>,
) -> Result<ArchivedFile, StoreError> {
    let path = from.strip_prefix(config).map_err(|_| {
        StoreError::refused(
            format!("`{}` is not in `{}`", from.display(), config.display()),
            "set the session's config directory with `--claude-dir DIR`",
        )
    })?;
    let (file, metadata) = open::open(from)?;
    // What a client adds while we read is not part of it.
    let size = metadata.len();
    let mut source = Read::take(&file, size);
    let packed = put(&mut |out| {
        let mut encoder = zstd::Encoder::new(out, LEVEL)?;
        encoder.include_checksum(true)?;
        io::copy(&mut source, &mut encoder)?;
        encoder.finish().map(drop)
    })?;
    let (again, _) = open::open(from)?;
    let mark = ContentHash::of(again.take(size)).map_err(|error| StoreError::io(from, error))?;
    Ok(ArchivedFile {
        path: path.to_owned(),
        file: String::new(),
        modified: FileStamp::of(&metadata).modified,
        packed,
        mark,
    })
}

/// Reads a copy back and compares it with what was read of the original.
fn verify(copy: &Path, packed: &ArchivedFile) -> Result<(), StoreError> {
    let most = packed.mark.size.saturating_add(1);
    let read = unpacked(copy).and_then(|reader| ContentHash::of(reader.take(most)));
    match read {
        Ok(mark) if mark == packed.mark => Ok(()),
        Ok(_) => Err(damaged(copy, "its content differs from the original")),
        Err(error) => Err(damaged(copy, &error.to_string())),
    }
}

fn unpacked(copy: &Path) -> io::Result<impl Read> {
    zstd::Decoder::new(own_file::open(copy)?)
}

fn damaged(copy: &Path, why: &str) -> StoreError {
    StoreError::refused(
        format!("the copy `{}` is damaged: {why}", copy.display()),
        "archive the session again",
    )
}

/// Checks that every file of an archive can be read and holds what it should.
pub fn check(dir: &Path, archive: &SessionArchive) -> Result<(), StoreError> {
    let folder = dir.join(&archive.id);
    let mut files = archive.files.iter();
    files.try_for_each(|packed| verify(&folder.join(copy_name(archive, packed)?), packed))
}

/// The copy of a file in its archive, which is named as [`pack_all`] names it.
fn copy_name<'a>(
    archive: &SessionArchive,
    packed: &'a ArchivedFile,
) -> Result<&'a str, StoreError> {
    let number = packed.file.strip_suffix(".zst");
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    match number.is_some_and(is_number) {
        true => Ok(&packed.file),
        false => Err(changed(archive, &packed.file, "not in the archive")),
    }
}

/// Refuses an archive that names anything but the files of its session. The manifest is only a
/// file: somebody may have changed it since, or given it to us.
fn only_its_session(archive: &SessionArchive) -> Result<(), StoreError> {
    for packed in &archive.files {
        copy_name(archive, packed)?;
        if !session_paths::is_file_of(&archive.session, &packed.path) {
            let name = packed.path.display().to_string();
            return Err(changed(archive, &name, "not a session file"));
        }
    }
    let transcript = format!("{}.jsonl", archive.session);
    let last = archive.files.last().map(|last| &last.path);
    let is_last = last.and_then(|last| last.file_name()) == Some(OsStr::new(&transcript));
    let Some(folder) = last.and_then(|last| last.parent()).filter(|_| is_last) else {
        return Err(changed(archive, &transcript, "not its last file"));
    };
    let elsewhere = archive
        .files
        .iter()
        .find(|packed| packed.path.starts_with("projects") && !packed.path.starts_with(folder));
    match elsewhere {
        None => Ok(()),
        Some(packed) => {
            let name = packed.path.display().to_string();
            Err(changed(archive, &name, "in the folder of another project"))
        }
    }
}

/// Refuses a plan that the transcript in the archive does not name: it may be that of any session.
fn only_its_plan(dir: &Path, archive: &SessionArchive) -> Result<(), StoreError> {
    let plans = archive.files.iter();
    for plan in plans.filter(|packed| packed.path.starts_with(PLANS)) {
        let name = plan.path.file_stem().unwrap_or_default();
        let is_named = match archive.files.last() {
            Some(transcript) => {
                let copy = dir.join(&archive.id).join(copy_name(archive, transcript)?);
                let slug = format!("\"slug\":\"{}\"", name.to_string_lossy());
                holds(&copy, &slug).map_err(|error| damaged(&copy, &error.to_string()))?
            }
            None => false,
        };
        if !is_named {
            let name = plan.path.display().to_string();
            return Err(changed(archive, &name, "no plan of its session"));
        }
    }
    Ok(())
}

/// Whether a copy holds a text, which has no end of a line in it.
fn holds(copy: &Path, text: &str) -> io::Result<bool> {
    let finder = memchr::memmem::Finder::new(text);
    let mut reader = unpacked(copy)?;
    let mut window = Vec::new();
    let mut piece = vec![0; 256 << 10];
    loop {
        let read = reader.read(&mut piece)?;
        if read == 0 {
            return Ok(false);
        }
        window.extend_from_slice(&piece[..read]);
        if finder.find(&window).is_some() {
            return Ok(true);
        }
        // What may be the beginning of it stays.
        window.drain(..window.len().saturating_sub(text.len()));
    }
}

fn changed(archive: &SessionArchive, name: &str, what: &str) -> StoreError {
    StoreError::refused(
        format!(
            "the archive `{}` names `{name}`, which is {what}: nothing was restored",
            archive.id
        ),
        "its manifest.json was modified; use another archive of the session",
    )
}

/// Prepares to bring everything in an archive back below a config folder. Nothing is
/// overwritten; what is read is checked before it counts. A plan that is there already stays.
pub fn restore(
    dir: &Path,
    archive: &SessionArchive,
    config: &Path,
    work: &mut FileTransaction,
) -> Result<(), StoreError> {
    only_its_session(archive)?;
    only_its_plan(dir, archive)?;
    let folder = dir.join(&archive.id);
    for packed in &archive.files {
        let target = config.join(&packed.path);
        if is_there(packed, &target)? {
            continue;
        }
        let copy = folder.join(&packed.file);
        let reader = unpacked(&copy).map_err(|error| damaged(&copy, &error.to_string()))?;
        // One more than there should be: more than that never needs to be unpacked.
        let mut reader = reader.take(packed.mark.size.saturating_add(1));
        let staged = work.create_at(&target, packed.modified, |out| {
            io::copy(&mut reader, out).map(drop)
        })?;
        if staged.mark != packed.mark {
            return Err(damaged(&copy, "its content differs from the original"));
        }
    }
    relist(archive, config, work)
}

/// Whether bringing everything back would work, with nothing written.
pub fn could_restore(
    dir: &Path,
    archive: &SessionArchive,
    config: &Path,
) -> Result<(), StoreError> {
    only_its_session(archive)?;
    only_its_plan(dir, archive)?;
    check(dir, archive)?;
    for packed in &archive.files {
        is_there(packed, &config.join(&packed.path))?;
    }
    Ok(())
}

/// Whether a file need not be brought back; an error if something else is in its way.
fn is_there(packed: &ArchivedFile, target: &Path) -> Result<bool, StoreError> {
    match target.symlink_metadata() {
        Err(_) => Ok(false),
        Ok(_) if packed.path.starts_with(PLANS) => Ok(true),
        Ok(_) => Err(atomic_write::exists(target)),
    }
}

/// Puts a session on the client's list again; the list says more than we know, if it still
/// names the session or cannot be read.
fn relist(
    archive: &SessionArchive,
    config: &Path,
    work: &mut FileTransaction,
) -> Result<(), StoreError> {
    let transcript = archive.files.last().map(|last| config.join(&last.path));
    let (Some(entry), Some(transcript)) = (&archive.listed, transcript) else {
        return Ok(());
    };
    let path = transcript.with_file_name(client_session_list::NAME);
    let project = entry["projectPath"].as_str().unwrap_or_default();
    let Some(mut list) = ClientSessionList::read(&path, project) else {
        return Ok(());
    };
    if list.entry(&archive.session).is_some() {
        return Ok(());
    }
    if !entry.is_object() {
        return Ok(());
    }
    let mut entry = entry.clone();
    entry["sessionId"] = archive.session.clone().into();
    entry["fullPath"] = transcript.display().to_string().into();
    list.put(entry);
    list.write(work, &path)
}
