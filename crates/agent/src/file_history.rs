//! Copies of files before they are changed, so that every change can be taken back.
//!
//! As the original keeps them: `file-history/<session>/<name>@v<n>` in the config folder, and
//! lines in the transcript that say which copy is which. Links are not followed, and files that
//! are no plain files are left alone.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_128;
use unspool_model::entry_writer::{NewEntry, NewFileBackup};
use unspool_model::rewind::RewoundFile;
use unspool_model::time::Time;
use unspool_store::{append, own_file};

/// So many bytes of a file are copied at most.
const LARGEST: u64 = 64 << 20;

/// The copies of one session.
#[derive(Debug)]
pub struct FileHistory {
    folder: PathBuf,
    project: PathBuf,
    prompt: Option<(String, Time)>,
    kept: BTreeMap<PathBuf, FileBackup>,
}

#[derive(Clone, Debug)]
struct FileBackup {
    name: Option<String>,
    version: u32,
    time: Time,
    print: Option<u64>,
    /// Whether the copy is from before what the current prompt did.
    current: bool,
}

impl FileHistory {
    /// The copies of a session, kept in `folder`.
    pub fn new(folder: PathBuf, project: &Path) -> FileHistory {
        FileHistory {
            folder,
            project: project.to_owned(),
            prompt: None,
            kept: BTreeMap::new(),
        }
    }

    /// A new prompt: files that changed since are copied anew. The line to write.
    pub fn begin(&mut self, prompt: &str, time: Time) -> NewEntry {
        self.prompt = Some((prompt.to_owned(), time));
        let paths: Vec<PathBuf> = self.kept.keys().cloned().collect();
        for path in paths {
            let now = read(&path).ok().flatten().map(|bytes| print(&bytes));
            let same = self.kept.get(&path).is_some_and(|kept| kept.print == now);
            match self.kept.get_mut(&path) {
                Some(kept) if same => kept.current = true,
                // A copy that fails here is tried again before the file is changed.
                _ => match self.copy(&path, time) {
                    Ok(_) => {}
                    Err(_) => drop(self.kept.remove(&path)),
                },
            }
        }
        self.entry(prompt, prompt, time, false)
    }

    /// A file is about to be changed: it is copied, once for each prompt. The line to write.
    pub fn change(
        &mut self,
        path: &Path,
        message: &str,
        now: Time,
    ) -> io::Result<Option<NewEntry>> {
        let Some((prompt, since)) = self.prompt.clone() else {
            return Ok(None);
        };
        if self.kept.get(path).is_some_and(|kept| kept.current) {
            return Ok(None);
        }
        if !self.copy(path, now)? {
            return Ok(None);
        }
        Ok(Some(self.entry(message, &prompt, since, true)))
    }

    /// Brings files back as they were; what could not be brought back, and why.
    pub fn restore(&self, files: &[RewoundFile]) -> Vec<String> {
        let failed = files.iter().filter_map(|file| {
            let path = self.project.join(&file.path);
            let done = self.bring_back(&path, file.copy.as_deref());
            done.err().map(|why| format!("{}: {why}", path.display()))
        });
        failed.collect()
    }

    fn bring_back(&self, path: &Path, copy: Option<&str>) -> Result<(), String> {
        let told = |error: io::Error| error.to_string();
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(told(error)),
            Ok(metadata) if !metadata.is_file() => {
                return Err("no longer a regular file".to_owned());
            }
            Ok(metadata) if links(&metadata) > 1 => {
                return Err("it has hard links, which would change too".to_owned());
            }
            Ok(_) => {}
        }
        let Some(copy) = copy else {
            return match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(told(error)),
                _ => Ok(()),
            };
        };
        if copy.contains(['/', '\\']) {
            return Err(format!("`{copy}` is not a valid backup name"));
        }
        let bytes = own_file::read(&self.folder.join(copy))
            .map_err(|_| "its backup is missing".to_owned())?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(told)?;
        }
        std::fs::write(path, bytes).map_err(told)
    }

    /// Copies a file; false if it is none that can be.
    fn copy(&mut self, path: &Path, time: Time) -> io::Result<bool> {
        let version = self.kept.get(path).map_or(1, |kept| kept.version + 1);
        let bytes = match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
            Ok(metadata) if !metadata.is_file() || metadata.len() > LARGEST => return Ok(false),
            Ok(_) => Some(own_file::read(path)?),
        };
        let hash = print(path.as_os_str().as_encoded_bytes());
        let mut kept = FileBackup {
            name: None,
            version,
            time,
            print: bytes.as_deref().map(print),
            current: true,
        };
        if let Some(bytes) = bytes {
            // After a resume the numbers go on behind those that are there.
            while self
                .folder
                .join(format!("{hash:016x}@v{}", kept.version))
                .exists()
            {
                kept.version += 1;
            }
            let name = format!("{hash:016x}@v{}", kept.version);
            append::put(&self.folder.join(&name), &bytes).map_err(io::Error::other)?;
            kept.name = Some(name);
        }
        self.kept.insert(path.to_owned(), kept);
        Ok(true)
    }

    fn entry(&self, message: &str, prompt: &str, since: Time, update: bool) -> NewEntry {
        let files = self.kept.iter().map(|(path, kept)| {
            let inside = path.strip_prefix(&self.project).unwrap_or(path);
            NewFileBackup {
                path: inside.display().to_string(),
                name: kept.name.clone(),
                version: kept.version,
                time: kept.time,
            }
        });
        NewEntry::Snapshot {
            message: message.to_owned(),
            prompt: prompt.to_owned(),
            since,
            files: files.collect(),
            update,
        }
    }
}

/// How many names a file has.
fn links(metadata: &std::fs::Metadata) -> u64 {
    #[cfg(unix)]
    {
        std::os::unix::fs::MetadataExt::nlink(metadata)
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        1
    }
}

/// Tells whether bytes are still the same.
fn print(bytes: &[u8]) -> u64 {
    (XxHash3_128::oneshot(bytes) & u128::from(u64::MAX)) as u64
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let metadata = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    if !metadata.is_file() || metadata.len() > LARGEST {
        return Ok(None);
    }
    own_file::read(path).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_copied_once_for_each_prompt_and_only_if_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        let copies = folder.path().join("copies");
        std::fs::write(&file, "one").unwrap();
        let mut history = FileHistory::new(copies.clone(), folder.path());
        history.begin("p1", Time(1));
        assert!(history.change(&file, "m", Time(2)).unwrap().is_some());
        std::fs::write(&file, "two").unwrap();
        assert!(history.change(&file, "m", Time(3)).unwrap().is_none());
        history.begin("p2", Time(4));
        history.begin("p3", Time(5));
        let mut kept: Vec<String> = std::fs::read_dir(&copies)
            .unwrap()
            .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
            .collect();
        kept.sort();
        assert_eq!(kept, ["one", "two"]);
    }

    #[test]
    fn a_file_that_is_not_there_is_noted_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = FileHistory::new(folder.path().join("copies"), folder.path());
        history.begin("p", Time(1));
        let entry = history
            .change(&folder.path().join("new.txt"), "m", Time(2))
            .unwrap();
        let Some(NewEntry::Snapshot { files, update, .. }) = entry else {
            panic!("{entry:?}");
        };
        assert!(update);
        assert_eq!((files[0].path.as_str(), &files[0].name), ("new.txt", &None));
    }

    #[test]
    fn files_come_back_and_new_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        std::fs::write(&old, "before").unwrap();
        let mut history = FileHistory::new(folder.path().join("copies"), folder.path());
        history.begin("p", Time(1));
        history.change(&old, "m", Time(2)).unwrap();
        let Some(NewEntry::Snapshot { files, .. }) = history.change(&new, "m", Time(3)).unwrap()
        else {
            panic!("no line");
        };
        std::fs::write(&old, "after").unwrap();
        std::fs::write(&new, "new").unwrap();
        let back = files.into_iter().map(|file| RewoundFile {
            path: file.path,
            copy: file.name,
        });
        let mut back: Vec<RewoundFile> = back.collect();
        assert_eq!(history.restore(&back), [""; 0]);
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "before");
        assert!(!new.exists());
        back[0].copy = Some("../evil".into());
        assert_eq!(history.restore(&back[..1]).len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
        let mut history = FileHistory::new(folder.path().join("copies"), folder.path());
        history.begin("p", Time(1));
        assert!(history.change(&link, "m", Time(2)).unwrap().is_none());
    }
}
