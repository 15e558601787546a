//! Small files of ours that only grow: a log, a list of events.
//!
//! Many processes add to the same file at once, each a whole line in one call, so lines are never
//! mixed and nobody waits. A file that has become too large is put aside under a second name, in
//! place of what was put aside before: what is kept is bounded. Nothing waits until it is on
//! disk: after a power cut the last lines may be missing, which is all right for what is kept
//! here.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::open::{self, FileStamp};
use crate::own_file;

/// A file that only grows.
#[derive(Clone, Debug)]
pub struct AppendLog {
    path: PathBuf,
    most: u64,
}

impl AppendLog {
    /// The file at a path, which is made when something is added; put aside when it is larger
    /// than `most` bytes.
    pub fn new(path: PathBuf, most: u64) -> AppendLog {
        AppendLog { path, most }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the older part is.
    pub fn older(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".1");
        name.into()
    }

    /// Adds one line, which must hold no newline.
    pub fn add(&self, line: &str) -> io::Result<()> {
        let mut file = self.open()?;
        if file.metadata()?.len() > self.most && self.put_aside(&file) {
            file = self.open()?;
        }
        let mut bytes = Vec::with_capacity(line.len() + 2);
        // Half a line of somebody who had no more room on the disk.
        if !ends_with_newline(&mut file)? {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        file.write_all(&bytes)
    }

    fn open(&self) -> io::Result<File> {
        match own_file::append(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                own_file::make_folder(self.path.parent().unwrap_or(Path::new(".")))?;
                own_file::append(&self.path)
            }
            other => other,
        }
    }

    /// Whether the file has another name now. Of several that try, one does it: the file that
    /// is open is locked, and must still be the one that has the name.
    fn put_aside(&self, file: &File) -> bool {
        let same = || {
            let (open, named) = (file.metadata()?, fs::metadata(&self.path)?);
            io::Result::Ok(FileStamp::of(&open).identity == FileStamp::of(&named).identity)
        };
        file.try_lock().is_ok()
            && same().unwrap_or(false)
            && fs::rename(&self.path, self.older()).is_ok()
    }

    /// The last lines, oldest first: those in the last `most` bytes of both parts.
    pub fn last(&self, most: u64) -> io::Result<Vec<String>> {
        let mut lines = Vec::new();
        for path in [self.older(), self.path.clone()] {
            match tail(&path, most) {
                Ok(text) => lines.extend(text.lines().map(str::to_owned)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        lines.retain(|line| !line.is_empty());
        Ok(lines)
    }
}

fn ends_with_newline(file: &mut File) -> io::Result<bool> {
    let size = file.metadata()?.len();
    let mut last = [b'\n'];
    if size > 0 {
        open::read_at(file, &mut last, size - 1)?;
    }
    Ok(last == [b'\n'])
}

/// The end of a file, without the line that is cut at its start.
fn tail(path: &Path, most: u64) -> io::Result<String> {
    let mut file = own_file::open(path)?;
    let size = file.metadata()?.len();
    let start = size.saturating_sub(most);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if start == 0 {
        return Ok(text);
    }
    let first = text.find('\n').map_or(text.len(), |end| end + 1);
    Ok(text[first..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trail(dir: &Path, most: u64) -> AppendLog {
        AppendLog::new(dir.join("deep/er/log"), most)
    }

    #[test]
    fn lines_come_back_in_order_and_the_last_ones_when_there_are_many() {
        let dir = tempfile::tempdir().unwrap();
        let trail = trail(dir.path(), 1 << 20);
        assert_eq!(trail.last(100).unwrap(), [""; 0]);
        for n in 0..100 {
            trail.add(&format!("line {n}")).unwrap();
        }
        assert_eq!(trail.last(1 << 20).unwrap().len(), 100);
        assert_eq!(trail.last(20).unwrap(), ["line 98", "line 99"]);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let trail = trail(dir.path(), 1 << 20);
        trail.add("x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(trail.path()), 0o600);
        assert_eq!(mode(trail.path().parent().unwrap()), 0o700);
    }

    #[test]
    fn a_file_that_is_too_large_is_put_aside_and_what_is_kept_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let trail = trail(dir.path(), 1000);
        for n in 0..1000 {
            trail.add(&format!("line {n:04}")).unwrap();
        }
        let size = |path: &Path| fs::metadata(path).unwrap().len();
        assert!(size(trail.path()) <= 1010);
        assert!((1001..1020).contains(&size(&trail.older())));
        let lines = trail.last(1 << 20).unwrap();
        assert_eq!(lines.last().unwrap(), "line 0999");
        let numbers: Vec<u32> = lines
            .iter()
            .map(|line| line[5..].parse().unwrap())
            .collect();
        assert!(
            numbers.windows(2).all(|two| two[0] + 1 == two[1]),
            "none is missing between"
        );
    }

    #[test]
    fn half_a_line_does_not_spoil_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let trail = trail(dir.path(), 1000);
        trail.add("one").unwrap();
        fs::write(trail.path(), "one\nhal").unwrap();
        trail.add("two").unwrap();
        assert_eq!(trail.last(1000).unwrap(), ["one", "hal", "two"]);
    }

    #[test]
    fn many_writers_at_once_lose_no_line_of_what_is_kept_and_mix_none() {
        let dir = tempfile::tempdir().unwrap();
        let trail = trail(dir.path(), 1 << 20);
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let trail = &trail;
                scope.spawn(move || {
                    for n in 0..200 {
                        trail
                            .add(&format!("{writer} {n} {}", "x".repeat(100)))
                            .unwrap();
                    }
                });
            }
        });
        let lines = trail.last(1 << 20).unwrap();
        assert_eq!(lines.len(), 1600);
        assert!(lines.iter().all(|line| line.ends_with(&"x".repeat(100))));
    }

    #[test]
    fn many_writers_at_once_put_a_file_aside_once() {
        let dir = tempfile::tempdir().unwrap();
        let trail = trail(dir.path(), 4000);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                let trail = &trail;
                scope.spawn(move || {
                    for _ in 0..500 {
                        trail.add(&"y".repeat(99)).unwrap();
                    }
                });
            }
        });
        // Were a fresh file put aside by a writer who came late, this one would be short.
        let older = fs::metadata(trail.older()).unwrap().len();
        assert!(older > 4000, "{older}");
        let lines = trail.last(1 << 20).unwrap();
        assert!(lines.iter().all(|line| line.len() == 99));
    }
}
