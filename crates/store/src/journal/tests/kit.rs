//! A small config folder, what is done to it, and what it looks like.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::atomic_write::ModifiedTimePolicy;
use crate::error::StoreError;
use crate::journal::{FileTransaction, Journal, JournalTask, UndoOptions, UndoPreview};
use crate::open::FileStamp;

/// A folder in memory where the system has one: these tests wait for the disk some thousand
/// times.
pub fn temp() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

pub struct Home {
    root: PathBuf,
    // Removes the folder in the end, if it is ours.
    _dir: Option<tempfile::TempDir>,
}

/// What stands in a folder: kind, permissions and content by path.
pub type Picture = BTreeMap<PathBuf, (u32, Option<Vec<u8>>)>;

impl Home {
    /// A session with side files, one of them for others to read, and one transcript without a
    /// newline at its end.
    pub fn new() -> Home {
        let dir = temp();
        let home = Home {
            root: dir.path().to_owned(),
            _dir: Some(dir),
        };
        home.write("projects/-p/s1.jsonl", "{\"a\":1}\n{\"b\":2}\n");
        home.write("projects/-p/s1/tool-results/t1.txt", "result\n");
        home.write(
            "projects/-p/s1/custom-title.json",
            "{\"customTitle\":\"x\"}",
        );
        home.write("projects/-p/s2.jsonl", "{\"torn\":");
        home.write("todos/s1.json", "[]");
        let mode = fs::Permissions::from_mode(0o644);
        fs::set_permissions(home.at("projects/-p/s1.jsonl"), mode).unwrap();
        home
    }

    /// The home of another process.
    pub fn of(root: &Path) -> Home {
        Home {
            root: root.to_owned(),
            _dir: None,
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.root.join("claude").join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap()
    }

    pub fn stamp(&self, name: &str) -> FileStamp {
        let metadata = fs::metadata(self.at(name));
        metadata.map_or_else(
            |_| FileStamp::default(),
            |metadata| FileStamp::of(&metadata),
        )
    }

    pub fn undo_dir(&self) -> PathBuf {
        self.root.join("own/undo")
    }

    pub fn journal(&self) -> Journal {
        // A process that another test starts holds our files for a moment.
        Journal::open(&self.undo_dir()).wait(Duration::from_millis(500))
    }

    pub fn task(&self, operation: &str) -> JournalTask {
        JournalTask {
            at: 1_000,
            operation: operation.to_owned(),
            words: format!("{operation} s1"),
            sources: vec!["s1".to_owned()],
            roots: vec![self.at("")],
            ..JournalTask::default()
        }
    }

    pub fn begin(&self, operation: &str) -> Result<FileTransaction, StoreError> {
        self.journal().begin(self.task(operation))
    }

    pub fn undo(&self, number: Option<u64>) -> Result<(u64, UndoPreview), StoreError> {
        self.undo_as(number, false)
    }

    pub fn undo_as(
        &self,
        number: Option<u64>,
        force: bool,
    ) -> Result<(u64, UndoPreview), StoreError> {
        let how = UndoOptions {
            at: 2_000,
            force,
            in_use: &|_| None,
        };
        self.journal().undo(number, &how)
    }

    pub fn picture(&self) -> Picture {
        let mut picture = Picture::new();
        look(&self.at(""), &mut picture);
        picture
    }

    /// How many works are noted, done or not.
    pub fn noted(&self) -> usize {
        let entries = fs::read_dir(self.undo_dir()).into_iter().flatten();
        entries
            .filter(|entry| entry.as_ref().unwrap().file_type().unwrap().is_dir())
            .count()
    }
}

fn look(dir: &Path, picture: &mut Picture) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        let mode = metadata.permissions().mode() & 0o7777;
        if metadata.is_dir() {
            look(&path, picture);
            picture.insert(path, (0, None));
        } else {
            let bytes = fs::read(&path).unwrap();
            picture.insert(path, (mode, Some(bytes)));
        }
    }
}

/// Something that is done to a home.
pub type Deed = fn(&Home) -> Result<u64, StoreError>;

pub fn clone(home: &Home) -> Result<u64, StoreError> {
    let mut work = home.begin("clone")?;
    work.copy(
        &home.at("projects/-p/s1/tool-results/t1.txt"),
        &home.at("projects/-p/s9/tool-results/t1.txt"),
    )?;
    work.create(&home.at("todos/s9.json"), |out| out.write_all(b"[]"))?;
    work.create(&home.at("projects/-p/s9.jsonl"), |out| {
        out.write_all(b"{\"a\":9}\n")?;
        out.write_all(b"{\"b\":9}\n")
    })?;
    work.commit()
}

pub fn edit(home: &Home) -> Result<u64, StoreError> {
    let mut work = home.begin("redact")?;
    for (name, text) in [
        ("projects/-p/s1/tool-results/t1.txt", "[REDACTED]\n"),
        ("projects/-p/s1.jsonl", "{\"a\":0}\n"),
    ] {
        work.replace(
            &home.at(name),
            home.stamp(name),
            ModifiedTimePolicy::Keep,
            |out| out.write_all(text.as_bytes()),
        )?;
    }
    work.commit()
}

pub fn title(home: &Home) -> Result<u64, StoreError> {
    let mut work = home.begin("rename")?;
    let name = "projects/-p/s1/custom-title.json";
    work.replace(
        &home.at(name),
        home.stamp(name),
        ModifiedTimePolicy::Now,
        |out| out.write_all(b"{\"customTitle\":\"y\"}"),
    )?;
    let old = Some("{\"title\":\"x\"}".to_owned());
    work.append_line(&home.at("projects/-p/s2.jsonl"), "{\"title\":\"y\"}", old)?;
    work.commit()
}

pub fn moving(home: &Home) -> Result<u64, StoreError> {
    let mut work = home.begin("move")?;
    let (old, new) = (home.at("projects/-p/s1"), home.at("projects/-q/s1"));
    work.rename(&old.join("tool-results"), &new.join("tool-results"))?;
    let title = "custom-title.json";
    work.rename(&old.join(title), &new.join(title))?;
    work.remove_folder(&old)?;
    work.create(&home.at("projects/-q/s1.jsonl"), |out| {
        out.write_all(b"{\"cwd\":\"q\"}\n")
    })?;
    work.remove(&home.at("projects/-p/s1.jsonl"))?;
    work.commit()
}

pub fn undo(home: &Home) -> Result<u64, StoreError> {
    home.undo(None).map(|(number, _)| number)
}

pub fn redo(home: &Home) -> Result<u64, StoreError> {
    home.undo(Some(2)).map(|(number, _)| number)
}

/// What stands in a home, by paths below it.
pub type Relative = Vec<(String, (u32, Option<Vec<u8>>))>;

/// Homes have different paths; what is in them is compared.
pub fn relative(home: &Home) -> Relative {
    let short = |path: &Path| {
        let path = path.strip_prefix(&home.root).unwrap();
        path.display().to_string()
    };
    let picture = home.picture().into_iter();
    picture.map(|(path, what)| (short(&path), what)).collect()
}
