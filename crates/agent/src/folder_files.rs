//! Files that a folder brings along, such as `CLAUDE.md`, commands and settings: opened so that no
//! symbolic link leads out of the folder.
//!
//! Whoever made a repository can name any file of this machine in a link. Links are followed, but
//! what they lead to has to be inside. Where a path really leads is asked first; then every part
//! of that path is opened from the part above it, and none of them as a link, so that nobody can
//! exchange one in between. A second name of the same file (a hard link) looks like any other
//! file and cannot be told from it.
//!
//! Pipes and devices are not opened, and no more is read than somebody wants.

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::settings;

/// Why a file is left out.
#[derive(Debug)]
pub enum SkippedFileReason {
    /// There is none.
    Absent,
    /// A link leads out of the folder.
    Outside,
    /// It is a folder, a pipe or a device.
    NotAFile,
    /// It is longer than this many bytes.
    TooLong(u64),
    /// It is not text.
    NotText,
    /// The system says no.
    Io(io::Error),
}

impl fmt::Display for SkippedFileReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkippedFileReason::Absent => out.write_str("no such file"),
            SkippedFileReason::Outside => out.write_str("symlink leads outside the project"),
            SkippedFileReason::NotAFile => out.write_str("not a regular file"),
            SkippedFileReason::TooLong(most) => write!(out, "larger than {most} bytes"),
            SkippedFileReason::NotText => out.write_str("not UTF-8"),
            SkippedFileReason::Io(error) => error.fmt(out),
        }
    }
}

impl From<io::Error> for SkippedFileReason {
    fn from(error: io::Error) -> SkippedFileReason {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => SkippedFileReason::Absent,
            _ => SkippedFileReason::Io(error),
        }
    }
}

impl From<rustix::io::Errno> for SkippedFileReason {
    fn from(error: rustix::io::Errno) -> SkippedFileReason {
        io::Error::from(error).into()
    }
}

/// The folder that links of a project have to stay in: the top of its working tree. Where that is
/// the home folder or one above it, it is the folder itself: somebody who keeps their home under
/// git did not make all of it part of what they unpacked there.
pub fn boundary(project: &Path, home: &Path) -> PathBuf {
    let root = settings::root(project);
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match real(home).starts_with(real(&root)) {
        true => project.to_owned(),
        false => root,
    }
}

/// Opens a regular file. `within` is the folder that links may not leave; without one they may
/// lead anywhere.
pub fn open(path: &Path, within: Option<&Path>) -> Result<(File, Metadata), SkippedFileReason> {
    let real = fs::canonicalize(path)?;
    // Opening a device can already do something.
    if !fs::symlink_metadata(&real)?.is_file() {
        return Err(match is_inside(&real, within)? {
            true => SkippedFileReason::NotAFile,
            false => SkippedFileReason::Outside,
        });
    }
    let file = match within {
        None => openat(CWD, &real, FILE, Mode::empty())?,
        Some(folder) => open_below(&fs::canonicalize(folder)?, &real)?,
    };
    let file = File::from(file);
    let about = file.metadata()?;
    match about.is_file() {
        true => Ok((file, about)),
        false => Err(SkippedFileReason::NotAFile),
    }
}

/// A folder on the way: it need not be one that we may list.
#[cfg(any(target_os = "linux", target_os = "android"))]
const ON_THE_WAY: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const ON_THE_WAY: OFlags = OFlags::RDONLY;

const FOLDER: OFlags = ON_THE_WAY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A pipe that took the place of a file would not let us go.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a file part by part from a folder; both are real paths.
fn open_below(folder: &Path, real: &Path) -> Result<OwnedFd, SkippedFileReason> {
    let Ok(below) = real.strip_prefix(folder) else {
        return Err(SkippedFileReason::Outside);
    };
    let mut at = openat(CWD, folder, FOLDER, Mode::empty())?;
    let mut parts = below.components().peekable();
    while let Some(part) = parts.next() {
        let flags = match parts.peek() {
            Some(_) => FOLDER,
            None => FILE,
        };
        at = openat(&at, part.as_os_str(), flags, Mode::empty())?;
    }
    Ok(at)
}

fn is_inside(real: &Path, within: Option<&Path>) -> Result<bool, SkippedFileReason> {
    match within {
        None => Ok(true),
        Some(folder) => Ok(real.starts_with(fs::canonicalize(folder)?)),
    }
}

/// Whether a path, as it is now, leads out of a folder. What is not there leads nowhere.
pub fn leaves(path: &Path, within: &Path) -> bool {
    match (fs::canonicalize(path), fs::canonicalize(within)) {
        (Ok(path), Ok(within)) => !path.starts_with(within),
        _ => false,
    }
}

/// What to say about a file that is left out: which one, and why. A link that leaves is named
/// itself, whatever was looked for behind it. Nothing is said where there is no file.
pub fn describe_skipped_file(
    path: &Path,
    within: Option<&Path>,
    why: &SkippedFileReason,
) -> Option<(PathBuf, String)> {
    match (why, within) {
        (SkippedFileReason::Absent, _) => None,
        (SkippedFileReason::Outside, Some(within)) => {
            let below = path.strip_prefix(within).map(Path::components);
            let mut link = within.to_path_buf();
            let parts = below.into_iter().flatten();
            let found = parts
                .map(|part| {
                    link.push(part);
                    link.clone()
                })
                .find(|link| leaves(link, within));
            let link = found.unwrap_or_else(|| path.to_path_buf());
            let why = "skipped: symlink leads outside the project";
            Some((link, why.to_owned()))
        }
        (why, _) => Some((path.to_path_buf(), format!("skipped: {why}"))),
    }
}

/// All of a file that is no longer than `most`.
pub fn read(path: &Path, within: Option<&Path>, most: u64) -> Result<Vec<u8>, SkippedFileReason> {
    let (file, about) = open(path, within)?;
    if about.len() > most {
        return Err(SkippedFileReason::TooLong(most));
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    file.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(SkippedFileReason::TooLong(most)),
        false => Ok(bytes),
    }
}

/// The same as text.
pub fn read_text(
    path: &Path,
    within: Option<&Path>,
    most: u64,
) -> Result<String, SkippedFileReason> {
    let bytes = read(path, within, most)?;
    String::from_utf8(bytes).map_err(|_| SkippedFileReason::NotText)
}

/// Adds to the end of a file, which is made if it is not there. A link may not leave `within`.
pub fn append(path: &Path, within: &Path, bytes: &[u8]) -> Result<(), SkippedFileReason> {
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        // A link to nothing would make a file wherever it leads.
        Err(_) if fs::symlink_metadata(path).is_ok() => return Err(SkippedFileReason::Outside),
        Err(_) => {
            let folder = path.parent().unwrap_or(Path::new("/"));
            let name = path.file_name().ok_or(SkippedFileReason::NotAFile)?;
            fs::canonicalize(folder)?.join(name)
        }
    };
    if !is_inside(&real, Some(within))? {
        return Err(SkippedFileReason::Outside);
    }
    if fs::symlink_metadata(&real).is_ok_and(|about| !about.is_file()) {
        return Err(SkippedFileReason::NotAFile);
    }
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(CWD, &real, flags, Mode::from_raw_mode(0o666))?);
    file.write_all(bytes)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct FolderFilesFixture {
        temp: tempfile::TempDir,
    }

    impl FolderFilesFixture {
        fn new() -> FolderFilesFixture {
            let temp = tempfile::tempdir().unwrap();
            fs::create_dir_all(temp.path().join("project/deep")).unwrap();
            fs::create_dir_all(temp.path().join("outside")).unwrap();
            fs::write(temp.path().join("outside/secret"), "secret").unwrap();
            fs::write(temp.path().join("project/deep/inside"), "inside").unwrap();
            FolderFilesFixture { temp }
        }

        fn project(&self, name: &str) -> PathBuf {
            self.temp.path().join("project").join(name)
        }

        fn read(&self, name: &str) -> Result<String, SkippedFileReason> {
            read_text(&self.project(name), Some(&self.project("")), 100)
        }
    }

    #[test]
    fn a_link_is_followed_as_long_as_it_stays_inside() {
        let folders = FolderFilesFixture::new();
        let absolute = folders.project("deep/inside");
        symlink("deep/inside", folders.project("relative")).unwrap();
        symlink(absolute, folders.project("absolute")).unwrap();
        symlink("../project/deep", folders.project("around")).unwrap();
        for name in ["deep/inside", "relative", "absolute", "around/inside"] {
            assert_eq!(folders.read(name).unwrap(), "inside", "{name}");
        }
    }

    #[test]
    fn a_link_that_leaves_is_not_read_however_it_does() {
        let folders = FolderFilesFixture::new();
        let outside = folders.temp.path().join("outside");
        symlink(outside.join("secret"), folders.project("absolute")).unwrap();
        symlink("../outside/secret", folders.project("relative")).unwrap();
        symlink("relative", folders.project("chain")).unwrap();
        symlink(&outside, folders.project("folder")).unwrap();
        symlink("/dev/zero", folders.project("device")).unwrap();
        let names = ["absolute", "relative", "chain", "folder/secret", "device"];
        for name in names.into_iter().chain(["../outside/secret"]) {
            let left_out = folders.read(name).unwrap_err();
            assert!(
                matches!(left_out, SkippedFileReason::Outside),
                "{name}: {left_out}"
            );
        }
        let free = read_text(&folders.project("absolute"), None, 100);
        assert_eq!(free.unwrap(), "secret");
    }

    #[test]
    fn a_folder_with_a_similar_name_is_outside() {
        let folders = FolderFilesFixture::new();
        fs::create_dir(folders.temp.path().join("project-evil")).unwrap();
        fs::write(folders.temp.path().join("project-evil/x"), "x").unwrap();
        symlink("../project-evil/x", folders.project("x")).unwrap();
        assert!(matches!(folders.read("x"), Err(SkippedFileReason::Outside)));
    }

    #[test]
    fn what_took_the_place_of_a_part_is_not_followed() {
        let folders = FolderFilesFixture::new();
        let real = fs::canonicalize(folders.project("deep/inside")).unwrap();
        let root = fs::canonicalize(folders.project("")).unwrap();
        assert!(open_below(&root, &real).is_ok());
        // Somebody exchanges a part after it was looked at.
        fs::rename(folders.project("deep"), folders.project("old")).unwrap();
        symlink("../outside", folders.project("deep")).unwrap();
        fs::write(folders.temp.path().join("outside/inside"), "secret").unwrap();
        assert!(open_below(&root, &real).is_err());
        fs::remove_file(folders.project("deep")).unwrap();
        fs::create_dir(folders.project("deep")).unwrap();
        symlink("../../outside/secret", folders.project("deep/inside")).unwrap();
        assert!(open_below(&root, &real).is_err());
    }

    #[test]
    fn pipes_folders_and_long_files_are_left_out() {
        let folders = FolderFilesFixture::new();
        let pipe = folders.project("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        assert!(matches!(
            folders.read("pipe"),
            Err(SkippedFileReason::NotAFile)
        ));
        assert!(matches!(
            folders.read("deep"),
            Err(SkippedFileReason::NotAFile)
        ));
        assert!(matches!(
            folders.read("nothing"),
            Err(SkippedFileReason::Absent)
        ));
        assert!(matches!(
            folders.read("deep/inside/x"),
            Err(SkippedFileReason::Absent)
        ));
        fs::write(folders.project("long"), [b'x'; 101]).unwrap();
        assert!(matches!(
            folders.read("long"),
            Err(SkippedFileReason::TooLong(100))
        ));
        fs::write(folders.project("long"), [b'x'; 100]).unwrap();
        assert_eq!(folders.read("long").unwrap().len(), 100);
        fs::write(folders.project("bytes"), [0xff]).unwrap();
        assert!(matches!(
            folders.read("bytes"),
            Err(SkippedFileReason::NotText)
        ));
    }

    #[test]
    fn nothing_is_added_to_a_file_outside() {
        let folders = FolderFilesFixture::new();
        let root = folders.project("");
        symlink("../outside/secret", folders.project("link")).unwrap();
        symlink("../outside/new", folders.project("dangling")).unwrap();
        for name in ["link", "dangling"] {
            let added = append(&folders.project(name), &root, b"more");
            assert!(matches!(added, Err(SkippedFileReason::Outside)), "{name}");
        }
        let outside = folders.temp.path().join("outside");
        assert_eq!(fs::read(outside.join("secret")).unwrap(), b"secret");
        assert!(!outside.join("new").exists());
        symlink("deep/inside", folders.project("stays")).unwrap();
        append(&folders.project("stays"), &root, b"+").unwrap();
        append(&folders.project("new"), &root, b"+").unwrap();
        assert_eq!(folders.read("deep/inside").unwrap(), "inside+");
        assert_eq!(folders.read("new").unwrap(), "+");
    }

    #[test]
    fn a_home_under_git_is_no_boundary_for_what_lies_in_it() {
        let temp = tempfile::tempdir().unwrap();
        let path = |name: &str| temp.path().join(name);
        fs::create_dir_all(path("home/.git")).unwrap();
        fs::create_dir_all(path("home/src/unpacked/deep")).unwrap();
        let of = |name: &str| boundary(&path(name), &path("home"));
        assert_eq!(of("home/src/unpacked"), path("home/src/unpacked"));
        assert_eq!(of("home"), path("home"));
        fs::create_dir_all(path("home/src/unpacked/.git")).unwrap();
        assert_eq!(of("home/src/unpacked/deep"), path("home/src/unpacked"));
    }
}
