//! A file that a person named to be written: `-o PATH`.
//!
//! What stands at the path decides how it is written. Nothing, or a regular file: the new content
//! is written beside it, reaches the disk, and takes its place in one step. A character device or
//! a pipe, also behind a link such as `/dev/stdout`, is opened and written into, because in its
//! place a file would be of no use to anybody. A link to a file or to nothing is refused: whoever
//! put it there would choose what is overwritten. Folders, sockets and disks are refused.

use std::ffi::OsString;
use std::fs::{self, File, FileType};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::atomic_write::{self, FileInFolder};
use crate::disk::{self, OpenFolder};
use crate::error::StoreError;
use crate::open::kind_of;

/// What happens to a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingFilePolicy {
    /// It is replaced.
    Replace,
    /// It is an error.
    Refuse,
}

/// What an output goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum OutputKind {
    /// A file, new or in the place of another one.
    File,
    /// A character device or a pipe.
    Stream,
    /// A descriptor that this process has open already, such as `/dev/stdout`.
    Descriptor(PathBuf),
}

/// An output that is being written. Dropped before [`OutputFile::finish`], a new file leaves
/// nothing behind.
pub struct OutputFile {
    path: PathBuf,
    existing: ExistingFilePolicy,
    written: u64,
    out: BufWriter<File>,
    /// The new file until it has its name; nothing for a device or a pipe.
    staged: Option<StagedOutput>,
}

struct StagedOutput {
    place: FileInFolder,
    temp: OsString,
}

/// So much is written at once.
const BUFFER: usize = 256 << 10;

/// Refuses an output that [`OutputFile::create`] would refuse, before anything is prepared.
pub fn check(path: &Path, existing: ExistingFilePolicy) -> Result<(), StoreError> {
    target(path, existing).map(drop)
}

/// Whether an output replaces nothing: a device, a pipe or an open descriptor.
pub fn is_stream(path: &Path) -> bool {
    matches!(
        target(path, ExistingFilePolicy::Refuse),
        Ok(OutputKind::Stream | OutputKind::Descriptor(_))
    )
}

impl OutputFile {
    /// Opens an output.
    pub fn create(path: &Path, existing: ExistingFilePolicy) -> Result<OutputFile, StoreError> {
        let (file, staged) = match target(path, existing)? {
            OutputKind::File => {
                let (file, staged) = stage(path)?;
                (file, Some(staged))
            }
            OutputKind::Stream => (open_stream(path)?, None),
            OutputKind::Descriptor(descriptor) => (open_descriptor(path, &descriptor)?, None),
        };
        Ok(OutputFile {
            path: path.into(),
            existing,
            written: 0,
            out: BufWriter::with_capacity(BUFFER, file),
            staged,
        })
    }

    /// Brings everything to its place; says how many bytes that were.
    pub fn finish(mut self) -> Result<u64, StoreError> {
        let failed = |error| StoreError::unwritable("write", &self.path, error);
        self.out.flush().map_err(failed)?;
        let Some(staged) = &self.staged else {
            return Ok(self.written);
        };
        disk::sync(self.out.get_ref()).map_err(failed)?;
        match self.existing {
            ExistingFilePolicy::Refuse => staged.place.publish(&staged.temp)?,
            ExistingFilePolicy::Replace => {
                // It may have become something else while we wrote.
                target(&self.path, self.existing)?;
                let renamed = staged.place.folder.rename(&staged.temp, &staged.place.name);
                renamed.map_err(failed)?;
            }
        }
        let synced = staged.place.sync();
        self.staged = None;
        synced.map(|()| self.written)
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let wrote = self.out.write(bytes)?;
        self.written += wrote as u64;
        Ok(wrote)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(staged) = self.staged.take() {
            let _ = staged.place.folder.remove(&staged.temp);
        }
    }
}

/// Writes a whole file at once; see [`OutputFile`].
pub fn write(path: &Path, existing: ExistingFilePolicy, bytes: &[u8]) -> Result<u64, StoreError> {
    let mut out = OutputFile::create(path, existing)?;
    let written = out.write_all(bytes);
    written.map_err(|error| StoreError::unwritable("write", path, error))?;
    out.finish()
}

fn target(path: &Path, existing: ExistingFilePolicy) -> Result<OutputKind, StoreError> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // The system would say of `missing/` that it is no folder.
            let folder = path.to_string_lossy().ends_with(std::path::MAIN_SEPARATOR);
            return match folder {
                true => Err(is_no_file(path, "a folder")),
                false => Ok(OutputKind::File),
            };
        }
        Err(error) => return Err(StoreError::unwritable("write", path, error)),
    };
    if !metadata.is_symlink() {
        return match metadata.is_file() {
            true if existing == ExistingFilePolicy::Refuse => Err(exists(path)),
            true => Ok(OutputKind::File),
            false => stream(path, metadata.file_type()),
        };
    }
    if let Some(descriptor) = descriptor(path) {
        return Ok(OutputKind::Descriptor(descriptor));
    }
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Err(linked(path, "a symlink to another file")),
        Ok(metadata) => stream(path, metadata.file_type()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(linked(path, "a symlink to a file that does not exist"))
        }
        Err(_) => Err(linked(path, "a broken symlink")),
    }
}

fn stream(path: &Path, kind: FileType) -> Result<OutputKind, StoreError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_char_device() || kind.is_fifo() {
            return Ok(OutputKind::Stream);
        }
        if kind.is_block_device() {
            return Err(is_no_file(path, "a disk"));
        }
    }
    Err(is_no_file(path, kind_of(kind)))
}

fn exists(path: &Path) -> StoreError {
    StoreError::refused(
        format!("`{}` already exists", path.display()),
        "overwrite it with `--force`, or use another file",
    )
}

fn is_no_file(path: &Path, what: &str) -> StoreError {
    StoreError::refused(
        format!("`{}` is {what}: refusing to write to it", path.display()),
        "use a regular file or an unused name",
    )
}

fn linked(path: &Path, what: &str) -> StoreError {
    let to = fs::read_link(path).unwrap_or_default();
    StoreError::refused(
        format!(
            "`{}` is {what} (`{}`): refusing to write through it",
            path.display(),
            to.display()
        ),
        "use the symlink's target, or remove the symlink",
    )
}

/// The descriptor of this process that a path stands for. Followed link by link, because behind
/// the last one may be a regular file that must be added to and not replaced.
fn descriptor(path: &Path) -> Option<PathBuf> {
    /// More links than any system follows.
    const LINKS: usize = 40;
    let mut path = std::path::absolute(path).ok()?;
    for _ in 0..LINKS {
        let folder = fs::canonicalize(path.parent()?).ok()?;
        path = folder.join(path.file_name()?);
        let is_number = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()));
        // Those of other processes are files and pipes of theirs, and opened as such.
        let own = Path::new("/proc").join(std::process::id().to_string());
        let of_process = folder.starts_with(own) && folder.ends_with("fd");
        if is_number && (of_process || folder == Path::new("/dev/fd")) {
            return Some(path);
        }
        path = folder.join(fs::read_link(&path).ok()?);
    }
    None
}

fn stage(path: &Path) -> Result<(File, StagedOutput), StoreError> {
    let failed = |error| StoreError::unwritable("write", path, error);
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = OpenFolder::open(parent.unwrap_or(Path::new("."))).map_err(failed)?;
    let name = path.file_name();
    let name = name.ok_or_else(|| is_no_file(path, "not a file name"))?;
    let temp = OsString::from(format!(".unspool-{}.tmp", atomic_write::token()));
    let file = folder.create(&temp).map_err(failed)?;
    let place = FileInFolder {
        folder,
        name: name.to_owned(),
        path: path.into(),
    };
    Ok((file, StagedOutput { place, temp }))
}

#[cfg(unix)]
use unix::{open_descriptor, open_stream};

#[cfg(unix)]
mod unix {
    //! Opening what is no regular file.

    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    use std::path::Path;
    use std::time::{Duration, Instant};

    use rustix::fs::OFlags;
    use rustix::io::Errno;

    use crate::error::StoreError;

    /// So long a pipe may take to be read: whoever reads it may be started a moment after us.
    const READER_STARTS: Duration = Duration::from_secs(2);

    fn flags(flags: OFlags) -> i32 {
        flags.bits().cast_signed()
    }

    /// Opens a device or a pipe, and never makes a file.
    pub(super) fn open_stream(path: &Path) -> Result<File, StoreError> {
        let failed = |error| StoreError::unwritable("write to", path, error);
        let mut options = OpenOptions::new();
        options
            .write(true)
            .custom_flags(flags(OFlags::NOCTTY | OFlags::NONBLOCK));
        let began = Instant::now();
        let file = loop {
            match options.open(path) {
                Err(error) if is(&error, Errno::NXIO) && began.elapsed() < READER_STARTS => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(error) if is(&error, Errno::NXIO) => {
                    return Err(StoreError::refused(
                        format!("no process reads the pipe `{}`", path.display()),
                        "start the reader first",
                    ));
                }
                other => break other.map_err(failed)?,
            }
        };
        let kind = file.metadata().map_err(failed)?.file_type();
        if !kind.is_char_device() && !kind.is_fifo() {
            return Err(super::is_no_file(path, "something else now"));
        }
        // Only opening must not wait; a reader may be slower than we are.
        let now = rustix::fs::fcntl_getfl(&file).map_err(|error| failed(error.into()))?;
        rustix::fs::fcntl_setfl(&file, now - OFlags::NONBLOCK)
            .map_err(|error| failed(error.into()))?;
        Ok(file)
    }

    /// Opens a descriptor of ours once more. A file behind it is added to: the shell that opened
    /// it has decided about what was in it.
    pub(super) fn open_descriptor(path: &Path, descriptor: &Path) -> Result<File, StoreError> {
        use std::os::fd::AsFd;
        let failed = |error| StoreError::unwritable("write to", path, error);
        let number = descriptor.file_name().and_then(|name| name.to_str());
        // These need not be opened again, which not everything that they may be allows.
        let again = match number {
            Some("1") => Some(io::stdout().as_fd().try_clone_to_owned()),
            Some("2") => Some(io::stderr().as_fd().try_clone_to_owned()),
            _ => None,
        };
        if let Some(again) = again {
            return again.map(File::from).map_err(failed);
        }
        let mut options = OpenOptions::new();
        options.append(true).custom_flags(flags(OFlags::NOCTTY));
        options.open(descriptor).map_err(failed)
    }

    fn is(error: &io::Error, errno: Errno) -> bool {
        error.raw_os_error() == Some(errno.raw_os_error())
    }
}

#[cfg(not(unix))]
fn open_stream(path: &Path) -> Result<File, StoreError> {
    let opened = File::options().write(true).open(path);
    opened.map_err(|error| StoreError::unwritable("write to", path, error))
}

#[cfg(not(unix))]
fn open_descriptor(path: &Path, _: &Path) -> Result<File, StoreError> {
    open_stream(path)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    }

    #[test]
    fn a_file_is_new_for_its_owner_alone_or_replaced_only_when_asked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        assert_eq!(write(&path, ExistingFilePolicy::Refuse, b"one").unwrap(), 3);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let error = write(&path, ExistingFilePolicy::Refuse, b"two").unwrap_err();
        assert!(error.hint().unwrap().contains("--force"), "{error}");
        write(&path, ExistingFilePolicy::Replace, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_output_that_is_given_up_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut out =
            OutputFile::create(&dir.path().join("out"), ExistingFilePolicy::Refuse).unwrap();
        out.write_all(b"half").unwrap();
        drop(out);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_pipe_is_written_into_and_stays_a_pipe() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        pipe(&path);
        for existing in [ExistingFilePolicy::Refuse, ExistingFilePolicy::Replace] {
            let reader = {
                let path = path.clone();
                std::thread::spawn(move || {
                    let mut text = String::new();
                    File::open(path).unwrap().read_to_string(&mut text).unwrap();
                    text
                })
            };
            let much = "x".repeat(300_000);
            write(&path, existing, much.as_bytes()).unwrap();
            assert_eq!(reader.join().unwrap(), much);
            assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_written_to_a_descriptor_of_another_process_reaches_that_process() {
        let mut other = std::process::Command::new("sleep")
            .arg("600")
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let path = PathBuf::from(format!("/proc/{}/fd/1", other.id()));
        assert!(is_stream(&path));
        write(&path, ExistingFilePolicy::Refuse, b"for them").unwrap();
        other.kill().unwrap();
        other.wait().unwrap();
        let mut text = String::new();
        other.stdout.unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "for them");
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        pipe(&path);
        let error = write(&path, ExistingFilePolicy::Replace, b"x").unwrap_err();
        assert!(error.to_string().starts_with("no process reads"), "{error}");
        assert!(!error.hint().unwrap().contains("--force"));
    }

    #[test]
    fn a_device_is_written_into_and_stays_a_device_also_behind_links() {
        let dir = tempfile::tempdir().unwrap();
        let device = dir.path().join("null");
        let made = std::process::Command::new("mknod")
            .arg(&device)
            .args(["c", "1", "3"])
            .output()
            .unwrap();
        // Only the administrator makes devices, and not every disk has them.
        let opens = File::options().write(true).open(&device).is_ok();
        let device = match made.status.success() && opens {
            true => device,
            false => return,
        };
        let before = fs::metadata(&device).unwrap().ino();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        symlink(&device, &one).unwrap();
        symlink("one", &two).unwrap();
        for path in [&device, &one, &two] {
            for existing in [ExistingFilePolicy::Refuse, ExistingFilePolicy::Replace] {
                assert_eq!(write(path, existing, b"gone").unwrap(), 4);
            }
        }
        let after = fs::symlink_metadata(&device).unwrap();
        assert!(after.file_type().is_char_device() && after.ino() == before);
        assert!(one.is_symlink() && two.is_symlink());
    }

    #[test]
    fn links_to_files_to_nothing_and_in_a_circle_are_refused_and_stay() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "mine").unwrap();
        fs::create_dir(at("folder")).unwrap();
        for (link, to) in [
            ("to-file", "file"),
            ("to-link", "to-file"),
            ("to-nothing", "missing"),
            ("circle", "circle"),
            ("to-folder", "folder"),
        ] {
            symlink(to, at(link)).unwrap();
            for existing in [ExistingFilePolicy::Refuse, ExistingFilePolicy::Replace] {
                let error = write(&at(link), existing, b"x").unwrap_err();
                assert!(
                    error.to_string().contains("refusing to write"),
                    "{link}: {error}"
                );
                assert!(!error.hint().unwrap().contains("--force"), "{link}");
            }
            assert!(at(link).is_symlink(), "{link}");
        }
        assert_eq!(fs::read(at("file")).unwrap(), b"mine");
        assert!(!at("missing").exists());
    }

    #[test]
    fn a_folder_and_a_socket_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        for path in [dir.path(), &socket, &dir.path().join("new/")] {
            let error = write(path, ExistingFilePolicy::Replace, b"x").unwrap_err();
            assert!(!error.hint().unwrap().contains("--force"), "{error}");
        }
        assert!(fs::metadata(&socket).unwrap().file_type().is_socket());
    }

    #[test]
    fn a_file_behind_a_descriptor_is_added_to() {
        use std::os::fd::AsRawFd;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut file = File::options();
        let mut file = file.append(true).create(true).open(&path).unwrap();
        file.write_all(b"before\n").unwrap();
        let named = PathBuf::from(format!("/dev/fd/{}", file.as_raw_fd()));
        let linked = dir.path().join("link");
        symlink(&named, &linked).unwrap();
        write(&named, ExistingFilePolicy::Refuse, b"one\n").unwrap();
        write(&linked, ExistingFilePolicy::Replace, b"two\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"before\none\ntwo\n");
    }
}
