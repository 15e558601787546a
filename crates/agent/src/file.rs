//! Files of a project as the tools see them: text with its encoding and line endings, written
//! whole or not at all.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use twox_hash::XxHash3_128;

/// A path as the model may write it: relative to where Bash stands, or to the home folder.
///
/// The one way to read it: whoever judges a call has to mean the same file as the tool. Nothing is
/// trimmed or guessed.
pub fn absolute(path: &str, cwd: &Path, home: &Path) -> PathBuf {
    let whole = match path.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => cwd.join(path),
    };
    let mut out = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::CurDir => {}
            // As everybody reads paths; links are followed when the file is opened.
            Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    out
}

/// What a file is found by: where it really is, or will be.
pub fn real(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        if let Ok(real) = fs::canonicalize(&path) {
            return real;
        }
        // A file that is not there yet may be in a folder behind a link, or itself behind one.
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return path;
        };
        let Ok(parent) = fs::canonicalize(parent) else {
            return path;
        };
        let here = parent.join(name);
        match fs::read_link(&here) {
            Ok(target) => path = parent.join(target),
            Err(_) => return here,
        }
    }
    path
}

/// Links that follow each other, at most.
const LINKS: usize = 40;

/// A path as it is told: from `cwd` if it is below.
pub fn relative(path: &Path, cwd: &Path) -> String {
    let inside = path.strip_prefix(cwd).ok();
    let inside = inside.filter(|path| !path.as_os_str().is_empty());
    inside.unwrap_or(path).to_string_lossy().into_owned()
}

/// The hash of a content.
pub fn hash(bytes: &[u8]) -> u128 {
    XxHash3_128::oneshot(bytes)
}

/// Opens a regular file without waiting for whoever would write to a pipe in its place.
pub fn open(path: &Path) -> Result<(File, Metadata), FileReadError> {
    // Opening a device can already do something.
    regular(&fs::metadata(path).map_err(FileReadError::Io)?)?;
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path);
    let file = file.map_err(FileReadError::Io)?;
    let metadata = file.metadata().map_err(FileReadError::Io)?;
    regular(&metadata)?;
    Ok((file, metadata))
}

/// Reads all of a regular file that is no larger than `most`.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, FileReadError> {
    let (file, metadata) = open(path)?;
    if metadata.len() > most {
        return Err(FileReadError::Large(metadata.len()));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    // It may grow while we read.
    let read = file.take(most + 1).read_to_end(&mut bytes);
    read.map_err(FileReadError::Io)?;
    if bytes.len() as u64 > most {
        return Err(FileReadError::Large(bytes.len() as u64));
    }
    Ok(bytes)
}

/// Why a file was not read.
#[derive(Debug)]
pub enum FileReadError {
    /// It is a folder.
    Folder,
    /// It is a pipe or a device, which may have no end.
    Endless,
    /// It is too large.
    Large(u64),
    /// The system says no.
    Io(io::Error),
}

/// Whether it is a file with an end.
pub fn regular(metadata: &Metadata) -> Result<(), FileReadError> {
    match metadata {
        it if it.is_dir() => Err(FileReadError::Folder),
        it if it.is_file() => Ok(()),
        _ => Err(FileReadError::Endless),
    }
}

/// How a text is written as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextEncoding {
    /// As nearly everything is, with a mark in front or without.
    Utf8 {
        /// Whether the mark is there.
        mark: bool,
    },
    /// Two bytes a unit, the smaller one first; always with a mark.
    Utf16Le,
    /// Two bytes a unit, the larger one first; always with a mark.
    Utf16Be,
}

/// How the bytes are written, and those without the mark.
pub fn encoding(bytes: &[u8]) -> (TextEncoding, &[u8]) {
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => (TextEncoding::Utf8 { mark: true }, rest),
        [0xff, 0xfe, rest @ ..] => (TextEncoding::Utf16Le, rest),
        [0xfe, 0xff, rest @ ..] => (TextEncoding::Utf16Be, rest),
        rest => (TextEncoding::Utf8 { mark: false }, rest),
    }
}

impl TextEncoding {
    /// Bytes as UTF-8; whatever is broken in UTF-8 stays as it is.
    pub fn decode(self, rest: &[u8]) -> Vec<u8> {
        let units = |pair: fn([u8; 2]) -> u16| {
            let pairs = rest.chunks_exact(2).map(move |it| pair([it[0], it[1]]));
            let chars = char::decode_utf16(pairs);
            let text: String = chars
                .map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect();
            text.into_bytes()
        };
        match self {
            TextEncoding::Utf8 { .. } => rest.to_vec(),
            TextEncoding::Utf16Le => units(u16::from_le_bytes),
            TextEncoding::Utf16Be => units(u16::from_be_bytes),
        }
    }

    /// UTF-8 as bytes of the file, mark and all.
    pub fn encode(self, text: &[u8]) -> Vec<u8> {
        let units = |mark: [u8; 2], pair: fn(u16) -> [u8; 2]| {
            let text = String::from_utf8_lossy(text);
            let units = text.encode_utf16().flat_map(pair);
            mark.into_iter().chain(units).collect()
        };
        match self {
            TextEncoding::Utf8 { mark: false } => text.to_vec(),
            TextEncoding::Utf8 { mark: true } => [&[0xef, 0xbb, 0xbf], text].concat(),
            TextEncoding::Utf16Le => units([0xff, 0xfe], u16::to_le_bytes),
            TextEncoding::Utf16Be => units([0xfe, 0xff], u16::to_be_bytes),
        }
    }
}

/// Whether most lines end as on Windows.
pub fn is_crlf(text: &[u8]) -> bool {
    let (mut all, mut with) = (0usize, 0usize);
    for (at, byte) in text.iter().enumerate() {
        if *byte == b'\n' {
            all += 1;
            with += usize::from(at > 0 && text[at - 1] == b'\r');
        }
    }
    with * 2 > all
}

/// Line ends as on Windows; those that are so already stay.
pub fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Writes all of a file, or nothing: under another name first, which then takes its place. A
/// link stays a link, and what it points to is written; the mode stays.
///
/// What has several names or belongs to somebody else is written in place, because a new file
/// would not be the same one.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let real = real(path);
    if fs::symlink_metadata(&real).is_ok_and(|it| it.is_symlink()) {
        return Err(io::Error::other("symlink loop"));
    }
    let parent = real.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent)?;
    let before = fs::metadata(&real).ok();
    if let Some(before) = &before {
        if !before.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        if is_shared(before) {
            return in_place(&real, bytes);
        }
        // A file that may not be written is not replaced either.
        drop(OpenOptions::new().write(true).open(&real)?);
    }
    match beside(parent, bytes, before.as_ref()) {
        Ok(beside) => fs::rename(&beside, &real).inspect_err(|_| {
            let _ = fs::remove_file(&beside);
        }),
        // A folder that takes no new files may hold one that can be written.
        Err(error) if before.is_some() && error.kind() == io::ErrorKind::PermissionDenied => {
            in_place(&real, bytes)
        }
        Err(error) => Err(error),
    }
}

fn in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(bytes)
}

fn beside(folder: &Path, bytes: &[u8], before: Option<&Metadata>) -> io::Result<PathBuf> {
    let mut name = [0; 8];
    getrandom::fill(&mut name).map_err(io::Error::other)?;
    let path = folder.join(format!(".unspool-{:016x}", u64::from_ne_bytes(name)));
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    if before.is_some() {
        // Nobody reads it before it has the mode of the old one.
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let mut file = options.write(true).create_new(true).open(&path)?;
    let done = (|| {
        file.write_all(bytes)?;
        if let Some(before) = before {
            file.set_permissions(before.permissions())?;
        }
        file.sync_all()
    })();
    if let Err(error) = done {
        let _ = fs::remove_file(&path);
        return Err(error);
    }
    Ok(path)
}

#[cfg(unix)]
fn is_shared(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.nlink() > 1 || metadata.uid() != rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_shared(_: &Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_people_read_them() {
        let read = |path| absolute(path, Path::new("/a/b"), Path::new("/home/x"));
        assert_eq!(read("c/../d"), Path::new("/a/b/d"));
        assert_eq!(read("../../../../d"), Path::new("/d"));
        assert_eq!(read("~/d"), Path::new("/home/x/d"));
        assert_eq!(read("~//etc/x"), Path::new("/home/x/etc/x"));
        assert_eq!(read(" /d"), Path::new("/a/b/ /d"));
        assert_eq!(read("~root/x"), Path::new("/a/b/~root/x"));
    }

    #[test]
    fn text_goes_through_every_encoding_unchanged() {
        for encoded in [
            TextEncoding::Utf8 { mark: false },
            TextEncoding::Utf8 { mark: true },
            TextEncoding::Utf16Le,
            TextEncoding::Utf16Be,
        ] {
            let bytes = encoded.encode("a€😀\r\n".as_bytes());
            let (found, rest) = encoding(&bytes);
            assert_eq!(found, encoded);
            assert_eq!(found.decode(rest), "a€😀\r\n".as_bytes());
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_a_mode_stays_a_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
        let mode = fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_nothing_yet_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("target", &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(folder.path().join("target")).unwrap(), b"new");
        let around = folder.path().join("around");
        std::os::unix::fs::symlink("around", &around).unwrap();
        assert!(write(&around, b"new").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_with_two_names_keeps_both() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        fs::write(&one, "old").unwrap();
        fs::hard_link(&one, &two).unwrap();
        write(&one, b"new").unwrap();
        assert_eq!(fs::read(&two).unwrap(), b"new");
    }

    #[test]
    fn most_lines_decide() {
        assert!(is_crlf(b"a\r\nb\r\nc\n") && !is_crlf(b"a\r\nb\nc\n") && !is_crlf(b"a"));
        assert_eq!(to_crlf("a\nb\r\nc"), "a\r\nb\r\nc");
    }
}
