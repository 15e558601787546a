//! The trees that are measured on: generated once and kept outside the repository.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use unspool_testkit::tree;

use crate::{generate, needs};

/// What to run it on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tree {
    /// No sessions at all.
    Empty,
    /// 1 GB in about 1,100 files.
    Medium,
    /// 5 GB of the same kind.
    Large,
    /// 10,000 small sessions.
    Many,
    /// One session of 100 MB.
    Tenth,
    /// One session of 1 GB.
    Single,
}

/// The folder with `.claude` in it for a tree, generated if it is not there yet.
pub fn home(which: Tree) -> Result<PathBuf, String> {
    let name = match which {
        Tree::Empty => "empty",
        Tree::Medium => "m",
        Tree::Large => "l",
        Tree::Many => "many",
        Tree::Tenth => "single:100M",
        Tree::Single => "single:1G",
    };
    let edition = tree::EDITION;
    let home = needs::cache_dir().join(format!("tree-{edition}-{}", name.replace(':', "-")));
    if which == Tree::Empty {
        return fs::create_dir_all(home.join(".claude"))
            .map(|()| home)
            .map_err(|error| error.to_string());
    }
    if !home.join("truth.json").exists() {
        // Without its truth it was not finished.
        let _ = fs::remove_dir_all(&home);
        generate::write(&home, &generate::size(name)?)?;
    }
    Ok(home)
}

/// Reads every transcript once, which puts it into the page cache, and then
/// says how long counting its newlines takes: nobody can be much faster.
pub fn floor(home: &Path) -> Result<f64, String> {
    let files = transcripts(&home.join(".claude"))?;
    let mut buffer = vec![0; 1 << 20];
    let mut seconds = f64::MAX;
    for _ in 0..2 {
        let start = Instant::now();
        let mut newlines = 0;
        for path in &files {
            newlines +=
                count(path, &mut buffer).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        // Without a use the count would be optimised away.
        std::hint::black_box(newlines);
        seconds = seconds.min(start.elapsed().as_secs_f64());
    }
    Ok(seconds)
}

fn count(path: &Path, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut file = File::open(path)?;
    let mut newlines = 0;
    loop {
        let length = file.read(buffer)?;
        if length == 0 {
            return Ok(newlines);
        }
        newlines += memchr::memchr_iter(b'\n', &buffer[..length]).count();
    }
}

/// Every transcript below a folder.
pub fn transcripts(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let all = files(dir)?.into_iter();
    let is_transcript = |path: &PathBuf| path.extension().is_some_and(|end| end == "jsonl");
    Ok(all.filter(is_transcript).collect())
}

fn files(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))? {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

/// The largest session.
pub fn largest(home: &Path) -> Result<PathBuf, String> {
    let files = transcripts(&home.join(".claude"))?;
    files
        .into_iter()
        .max_by_key(|path| size(path))
        .ok_or_else(|| format!("no session in {}", home.display()))
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |data| data.len())
}

/// The bytes of all files below a folder.
pub fn bytes(dir: &Path) -> u64 {
    bytes_where(dir, |_| true)
}

/// The bytes of all files below a folder whose names fit.
pub fn bytes_where(dir: &Path, fits: impl Fn(&str) -> bool) -> u64 {
    let fits = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        fits(&name)
    };
    files(dir).map_or(0, |all| {
        all.iter().filter(fits).map(|path| size(path)).sum()
    })
}

/// A tree like another one, whose largest session may be written to: the other files
/// are the same ones under a second name. Gone when dropped; the original never changes.
pub struct Twin {
    pub home: PathBuf,
    largest: PathBuf,
    appended: u64,
}

impl Twin {
    pub fn new(home: &Path) -> Result<Twin, String> {
        let original = largest(home)?;
        let name = format!("twin-{}", std::process::id());
        // In the same file system as the tree, so that names are enough.
        let place = home.with_file_name(name);
        let target = |path: &Path| place.join(path.strip_prefix(home).unwrap_or(path));
        let twin = Twin {
            largest: target(&original),
            home: place.clone(),
            appended: 0,
        };
        let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        for path in files(&home.join(".claude"))? {
            let target = target(&path);
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
            }
            if path == original || fs::hard_link(&path, &target).is_err() {
                fs::copy(&path, &target).map_err(|error| failed(&target, error))?;
            }
        }
        Ok(twin)
    }

    /// Appends one reply with one token of input and two of output to the largest session.
    pub fn append(&mut self) -> Result<(), String> {
        self.appended += 1;
        let nth = self.appended;
        let line = format!(
            r#"{{"parentUuid":null,"isSidechain":false,"cwd":"/home/dev/x","version":"2.1.63","type":"assistant","message":{{"id":"msg_bench_{nth}","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{{"type":"text","text":"one more"}}],"usage":{{"input_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":2}}}},"requestId":"req_bench_{nth}","uuid":"bench-{nth}","timestamp":"2026-11-11T11:11:11.111Z"}}"#
        );
        let file = fs::OpenOptions::new().append(true).open(&self.largest);
        file.and_then(|mut file| writeln!(file, "{line}"))
            .map_err(|error| format!("{}: {error}", self.largest.display()))
    }

    /// How many lines were appended.
    pub fn appended(&self) -> u64 {
        self.appended
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        // Left-overs in the cache harm nobody.
        let _ = fs::remove_dir_all(&self.home);
    }
}
