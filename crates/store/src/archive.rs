//! Copies of sessions that outlive the client's purge: compressed, complete, and read back
//! before anybody relies on them.
//!
//! An archive is a folder in our own data: `manifest.json` (an [`Archive`]) and one zstd file
//! for each file of the session. It appears under its name only when all of it was verified.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::family;
use crate::find::{Found, SessionFile};
use crate::journal::Work;
use crate::open::{self, Stamp};
use crate::side;
use crate::write::{self, Ground, Mark};

/// A session that was put away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Archive {
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
    /// Its files, the transcript last.
    pub files: Vec<Packed>,
}

/// One file in an archive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Packed {
    /// Where it was, below the config folder.
    pub path: PathBuf,
    /// Its compressed copy.
    pub file: String,
    /// What it held.
    pub mark: Mark,
    /// Bytes of the compressed copy.
    pub packed: u64,
    /// When it was last changed, in nanoseconds since 1970.
    pub modified: i64,
}

const MANIFEST: &str = "manifest.json";
/// A good ratio at the speed of a disk.
const LEVEL: i32 = 3;

impl Archive {
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
pub fn list(dir: &Path) -> Vec<Archive> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let manifests = entries.filter_map(|entry| {
        let bytes = fs::read(entry.path().join(MANIFEST)).ok()?;
        let archive: Archive = serde_json::from_slice(&bytes).ok()?;
        (entry.file_name().to_str() == Some(archive.id.as_str())).then_some(archive)
    });
    let mut all: Vec<Archive> = manifests.collect();
    all.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    all
}

/// Whether an archive holds the transcript as it is now.
pub fn is_current(archive: &Archive, session: &SessionFile) -> bool {
    archive.files.last().is_some_and(|last| {
        let same = (last.mark.size, last.modified) == (session.stamp.size, session.stamp.modified);
        archive.session == session.id && same
    })
}

/// All files of a session, the transcript last.
pub fn files(found: &Found, session: &SessionFile) -> Vec<PathBuf> {
    let mut all = Vec::new();
    if let Some(beside) = &session.beside {
        below(beside, &mut all);
    }
    for agent in family::agents_of(found, session) {
        let meta = agent.path.with_extension("meta.json");
        all.extend(
            [agent.path.clone(), meta]
                .into_iter()
                .filter(|path| path.is_file()),
        );
    }
    let side = side::side(session);
    all.extend(side.file_history);
    all.extend(side.todos);
    all.extend(side.tasks);
    all.sort_unstable();
    all.dedup();
    all.push(session.path.clone());
    all
}

fn below(dir: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => below(&entry.path(), all),
            Ok(kind) if kind.is_file() => all.push(entry.path()),
            _ => {}
        }
    }
}

/// Puts a session away. `name` is the name of the archive; nothing of that name may be there.
pub fn make(
    dir: &Path,
    name: &str,
    at: i64,
    title: Option<String>,
    session: &SessionFile,
    files: &[PathBuf],
) -> Result<Archive, Error> {
    let config = home(session);
    let ground = own(dir)?;
    let unfinished = dir.join(format!(".{name}.tmp"));
    let made = pack_all(&ground, &unfinished, &config, files);
    let made = made.and_then(|packed| {
        let archive = Archive {
            id: name.to_owned(),
            session: session.id.clone(),
            files: packed,
            config: std::path::absolute(&config).unwrap_or(config),
            title,
            at,
        };
        let text = serde_json::to_vec_pretty(&archive)
            .map_err(|error| Error::unwritable("write", &unfinished, error.into()))?;
        write::create(&ground, &unfinished.join(MANIFEST), |out| {
            out.write_all(&text)
        })?;
        let (from, to) = (ground.place(&unfinished)?, ground.place(&dir.join(name))?);
        let renamed = from.folder.rename_new(&from.name, &to.folder, &to.name);
        renamed.map_err(|error| Error::unwritable("write", &to.path, error))?;
        to.sync()?;
        Ok(archive)
    });
    if made.is_err() {
        // Ours alone, and of no use.
        let _ = fs::remove_dir_all(&unfinished);
    }
    made
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
fn own(dir: &Path) -> Result<Ground, Error> {
    let mut folders = fs::DirBuilder::new();
    folders.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
    folders
        .create(dir)
        .map_err(|error| Error::unwritable("make", dir, error))?;
    Ground::open([dir])
}

fn pack_all(
    ground: &Ground,
    dir: &Path,
    config: &Path,
    files: &[PathBuf],
) -> Result<Vec<Packed>, Error> {
    let mut all = Vec::new();
    for (at, from) in files.iter().enumerate() {
        let to = dir.join(format!("{at}.zst"));
        let packed = pack(ground, config, from, &to)?;
        verify(&to, &packed)?;
        all.push(packed);
    }
    Ok(all)
}

fn pack(ground: &Ground, config: &Path, from: &Path, to: &Path) -> Result<Packed, Error> {
    let path = from.strip_prefix(config).map_err(|_| {
        Error::refused(
            format!("`{}` is not below `{}`", from.display(), config.display()),
            "name the config folder of the session with `--claude-dir DIR`",
        )
    })?;
    let (file, metadata) = open::open(from)?;
    // What a client adds while we read is not part of it.
    let size = metadata.len();
    let mut source = Read::take(&file, size);
    let copy = write::create(ground, to, |out| {
        let mut encoder = zstd::Encoder::new(out, LEVEL)?;
        encoder.include_checksum(true)?;
        io::copy(&mut source, &mut encoder)?;
        encoder.finish().map(drop)
    })?;
    let (again, _) = open::open(from)?;
    let mark = Mark::of(again.take(size)).map_err(|error| Error::io(from, error))?;
    Ok(Packed {
        path: path.to_owned(),
        file: name(to),
        packed: copy.size,
        modified: Stamp::of(&metadata).modified,
        mark,
    })
}

/// Reads a copy back and compares it with what was read of the original.
fn verify(copy: &Path, packed: &Packed) -> Result<(), Error> {
    let read = unpacked(copy).and_then(Mark::of);
    match read {
        Ok(mark) if mark == packed.mark => Ok(()),
        Ok(_) => Err(damaged(copy, "it holds something else than the original")),
        Err(error) => Err(damaged(copy, &error.to_string())),
    }
}

fn unpacked(copy: &Path) -> io::Result<impl Read> {
    zstd::Decoder::new(File::open(copy)?)
}

fn damaged(copy: &Path, why: &str) -> Error {
    Error::refused(
        format!("the copy `{}` is damaged: {why}", copy.display()),
        "archive the session again",
    )
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Checks that every file of an archive can be read and holds what it should.
pub fn check(dir: &Path, archive: &Archive) -> Result<(), Error> {
    let folder = dir.join(&archive.id);
    let mut files = archive.files.iter();
    files.try_for_each(|packed| verify(&folder.join(&packed.file), packed))
}

/// Prepares to bring everything in an archive back below a config folder. Nothing is
/// overwritten; what is read is checked before it counts.
pub fn restore(dir: &Path, archive: &Archive, config: &Path, work: &mut Work) -> Result<(), Error> {
    let folder = dir.join(&archive.id);
    for packed in &archive.files {
        let copy = folder.join(&packed.file);
        let mut reader = unpacked(&copy).map_err(|error| damaged(&copy, &error.to_string()))?;
        let target = config.join(&packed.path);
        let staged = work.create_at(&target, packed.modified, |out| {
            io::copy(&mut reader, out).map(drop)
        })?;
        if staged.mark != packed.mark {
            return Err(damaged(&copy, "it holds something else than the original"));
        }
    }
    Ok(())
}
