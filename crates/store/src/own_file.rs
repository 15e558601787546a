//! Files of our own: in folders that only we write, found as we left them.
//!
//! Whatever somebody put in the place of such a file, opening it neither waits nor leads
//! elsewhere: a pipe, a device, a folder or a link in its place is an error. And a folder of ours
//! that others may write is not used at all, because what stands in it may be theirs.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use crate::error::StoreError;
use crate::open::kind_of;

/// A file of ours that is there, to read.
pub fn open(path: &Path) -> io::Result<File> {
    open_as(path, File::options().read(true))
}

/// A file of ours, made where it is not there, to read and write from its start.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    open_as(path, &mut options)
}

/// A file of ours, made where it is not there, to add to its end and to read.
pub fn append(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).append(true).create(true);
    open_as(path, &mut options)
}

/// A file of ours that must not be there yet.
pub fn create_new(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    open_as(path, &mut options)
}

/// Everything in a file of ours.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Everything in a file of ours that is text.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Everything in a file that a person wrote for us. It may be a link to where they keep it.
pub fn read_settings(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = nonblocking(File::options().read(true)).open(path)?;
    regular(file)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Puts a new content in the place of a file of ours, whole or not at all, for nobody else to
/// read. Makes the folders on the way.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_as(path, bytes, File::sync_all)
}

/// The same without waiting for the disk: after a power cut it may be empty.
pub fn replace_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_as(path, bytes, |_| Ok(()))
}

fn replace_as(
    path: &Path,
    bytes: &[u8],
    sync: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    make_folder(path.parent().unwrap_or(Path::new(".")))?;
    check_regular_file(path)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", crate::atomic_write::token()));
    let temp = path.with_file_name(name);
    let mut file = create_new(&temp)?;
    let done = file
        .write_all(bytes)
        .and_then(|()| sync(&file))
        .and_then(|()| fs::rename(&temp, path));
    if done.is_err() {
        let _ = fs::remove_file(&temp);
    }
    done
}

/// Makes a folder of ours with those on the way.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let mut folders = fs::DirBuilder::new();
    folders.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
    folders.create(path)
}

/// Refuses what is no regular file; nothing there is fine. For files that others open for us.
pub fn check_regular_file(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(metadata) if metadata.is_symlink() => Err(is_link()),
        Ok(metadata) => Err(is_else(kind_of(metadata.file_type()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn open_as(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // Opening a pipe or a device can already do something, and so can a link to one.
    check_regular_file(path)?;
    let file = nofollow(options).open(path)?;
    regular(file)
}

/// It may have been exchanged since it was looked at.
fn regular(file: File) -> io::Result<File> {
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok(file),
        false => Err(is_else(kind_of(metadata.file_type()))),
    }
}

fn is_link() -> io::Error {
    io::Error::other("refusing to follow a symlink")
}

fn is_else(what: &str) -> io::Error {
    io::Error::other(format!("it is {what}, not a file"))
}

#[cfg(unix)]
fn nofollow(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.mode(0o600).custom_flags(flags.bits().cast_signed())
}

#[cfg(unix)]
fn nonblocking(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed())
}

#[cfg(not(unix))]
fn nofollow(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(not(unix))]
fn nonblocking(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Refuses a folder of ours that others may write, and those directly in it. A folder that is
/// not there is fine.
#[cfg(unix)]
pub fn check_folder(folder: &Path) -> Result<(), StoreError> {
    use crate::read_folder::FolderEntryKind;
    // Folders may be links to where a person keeps them; what counts is where they lead.
    let metadata = match fs::metadata(folder) {
        Ok(metadata) => metadata,
        Err(_) => return Ok(()),
    };
    if !metadata.is_dir() {
        return Ok(());
    }
    // A link that another user made could lead anywhere; what root set up is the machine's.
    if let Ok(link) = fs::symlink_metadata(folder)
        && link.is_symlink()
        && std::os::unix::fs::MetadataExt::uid(&link) != 0
    {
        owned(folder, &link)?;
    }
    ours_alone(folder, &metadata)?;
    for entry in crate::read_folder::entries(folder).into_iter().flatten() {
        let Ok(entry) = entry else { continue };
        let folder = |kind: FolderEntryKind| kind.is_dir() || kind.is_symlink();
        if entry.file_type().is_ok_and(folder)
            && let Ok(metadata) = fs::metadata(entry.path())
            && metadata.is_dir()
        {
            ours_alone(&entry.path(), &metadata)?;
        }
    }
    Ok(())
}

/// Folders are guarded by the system there.
#[cfg(not(unix))]
pub fn check_folder(_: &Path) -> Result<(), StoreError> {
    Ok(())
}

#[cfg(unix)]
fn owned(folder: &Path, metadata: &fs::Metadata) -> Result<(), StoreError> {
    let me = rustix::process::geteuid().as_raw();
    if std::os::unix::fs::MetadataExt::uid(metadata) == me {
        return Ok(());
    }
    Err(StoreError::refused(
        format!(
            "refusing to use `{}`: it belongs to another user",
            folder.display()
        ),
        "run unspool as its owner, take ownership with `chown`, or set UNSPOOL_HOME to a directory of yours",
    ))
}

#[cfg(unix)]
fn ours_alone(folder: &Path, metadata: &fs::Metadata) -> Result<(), StoreError> {
    use std::os::unix::fs::MetadataExt;
    owned(folder, metadata)?;
    let me = rustix::process::geteuid().as_raw();
    // On systems that open new folders to the group, that group has only its user in it.
    let group_is_me = metadata.gid() == me && me != 0;
    let others = if group_is_me { 0o002 } else { 0o022 };
    if metadata.mode() & others == 0 {
        return Ok(());
    }
    Err(StoreError::refused(
        format!(
            "refusing to use `{}`: other users can write to it",
            folder.display()
        ),
        "check its contents, then remove write access with `chmod go-w`",
    ))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    }

    #[test]
    fn a_pipe_a_link_and_a_folder_in_place_of_a_file_are_errors_and_nobody_waits() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("victim"), "mine").unwrap();
        pipe(&at("pipe"));
        symlink("victim", at("link")).unwrap();
        symlink("missing", at("dangling")).unwrap();
        symlink("pipe", at("to-pipe")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        for name in ["pipe", "link", "dangling", "to-pipe", "folder"] {
            let path = at(name);
            for file in [
                open(&path),
                open_or_create(&path),
                append(&path),
                create_new(&path),
            ] {
                assert!(file.is_err(), "{name}");
            }
            assert!(replace(&path, b"x").is_err(), "{name}");
        }
        assert_eq!(fs::read(at("victim")).unwrap(), b"mine");
        assert!(!at("missing").exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 6);
    }

    #[test]
    fn what_a_person_wrote_may_be_a_link_but_no_pipe() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("kept"), "text").unwrap();
        symlink("kept", at("link")).unwrap();
        assert_eq!(read_settings(&at("link")).unwrap(), "text");
        pipe(&at("pipe"));
        symlink("pipe", at("to-pipe")).unwrap();
        assert!(read_settings(&at("pipe")).is_err());
        assert!(read_settings(&at("to-pipe")).is_err());
    }

    #[test]
    fn a_file_of_ours_is_replaced_whole_for_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er/file");
        replace(&path, b"one").unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(read_to_string(&path).unwrap(), "two");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused_and_so_is_one_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let (outer, inner) = (dir.path().join("ours"), dir.path().join("ours/undo"));
        check_folder(&outer).unwrap();
        fs::create_dir_all(&inner).unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&outer, 0o755);
        set(&inner, 0o700);
        check_folder(&outer).unwrap();
        for mode in [0o777, 0o702, 0o1777] {
            for path in [&outer, &inner] {
                set(path, mode);
                let error = check_folder(&outer).unwrap_err();
                assert!(
                    error.to_string().contains("other users can write"),
                    "{error}"
                );
                assert!(error.to_string().contains(&path.display().to_string()));
                set(path, 0o700);
            }
        }
        let elsewhere = dir.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        set(&elsewhere, 0o777);
        symlink(&elsewhere, outer.join("archive")).unwrap();
        check_folder(&outer).unwrap_err();
    }
}
