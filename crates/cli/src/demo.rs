//! Bundled recordings, for machines without sessions.
//!
//! Five short sessions of Claude Code 2.1.325, without most of their bookkeeping. They are
//! laid out in a temporary folder, read like any other, and gone when the program ends.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use unspool_model::log::Log;
use unspool_model::session::{Session, TranscriptRole};
use unspool_store::read_folder;

/// The recordings while they are in use.
pub struct DemoSessions {
    dir: PathBuf,
}

impl Drop for DemoSessions {
    fn drop(&mut self) {
        let _ = read_folder::remove_all(&self.dir);
    }
}

impl DemoSessions {
    /// Lays them out.
    pub fn unpack() -> io::Result<DemoSessions> {
        let dir = tempfile::Builder::new().prefix("unspool-demo-").tempdir()?;
        let demo = DemoSessions { dir: dir.keep() };
        for (name, bytes) in FILES {
            let path = demo.dir.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(&path, bytes)?;
            if let Some(last) = Session::from_log(&Log::new(*bytes), TranscriptRole::Main).last {
                // As old as its last line: which session is the latest must not depend on chance.
                let since = Duration::from_millis(last.0.unsigned_abs());
                File::options()
                    .write(true)
                    .open(&path)?
                    .set_modified(UNIX_EPOCH + since)?;
            }
        }
        Ok(demo)
    }

    /// The folder that takes the place of `~/.claude`.
    pub fn path(&self) -> &Path {
        &self.dir
    }
}

/// Every file: its place below the config folder, and its content.
const FILES: &[(&str, &[u8])] = &[
    (
        "projects/-home-dev-2-1-325-s05-write-edit-proj/45b614fd-7cdf-4fdf-9f18-d1e28698e0bb.jsonl",
        include_bytes!(
            "../demo/projects/-home-dev-2-1-325-s05-write-edit-proj/45b614fd-7cdf-4fdf-9f18-d1e28698e0bb.jsonl"
        ),
    ),
    (
        "file-history/45b614fd-7cdf-4fdf-9f18-d1e28698e0bb/8e378de3c98be02b@v2",
        include_bytes!(
            "../demo/file-history/45b614fd-7cdf-4fdf-9f18-d1e28698e0bb/8e378de3c98be02b@v2"
        ),
    ),
    (
        "file-history/45b614fd-7cdf-4fdf-9f18-d1e28698e0bb/f8be9b6cb70dcc59@v1",
        include_bytes!(
            "../demo/file-history/45b614fd-7cdf-4fdf-9f18-d1e28698e0bb/f8be9b6cb70dcc59@v1"
        ),
    ),
    (
        "file-history/45b614fd-7cdf-4fdf-9f18-d1e28698e0bb/f8be9b6cb70dcc59@v2",
        include_bytes!(
            "../demo/file-history/45b614fd-7cdf-4fdf-9f18-d1e28698e0bb/f8be9b6cb70dcc59@v2"
        ),
    ),
    (
        "projects/-home-dev-2-1-325-s08b-agent-two-proj/965cd381-04b3-43c0-b60d-1a20a8b6823f.jsonl",
        include_bytes!(
            "../demo/projects/-home-dev-2-1-325-s08b-agent-two-proj/965cd381-04b3-43c0-b60d-1a20a8b6823f.jsonl"
        ),
    ),
    (
        "projects/-home-dev-2-1-325-s08b-agent-two-proj/965cd381-04b3-43c0-b60d-1a20a8b6823f/subagents/agent-a05082f834bfc1788.jsonl",
        include_bytes!(
            "../demo/projects/-home-dev-2-1-325-s08b-agent-two-proj/965cd381-04b3-43c0-b60d-1a20a8b6823f/subagents/agent-a05082f834bfc1788.jsonl"
        ),
    ),
    (
        "projects/-home-dev-2-1-325-s08b-agent-two-proj/965cd381-04b3-43c0-b60d-1a20a8b6823f/subagents/agent-a05082f834bfc1788.meta.json",
        include_bytes!(
            "../demo/projects/-home-dev-2-1-325-s08b-agent-two-proj/965cd381-04b3-43c0-b60d-1a20a8b6823f/subagents/agent-a05082f834bfc1788.meta.json"
        ),
    ),
    (
        "projects/-home-dev-2-1-325-s08b-agent-two-proj/965cd381-04b3-43c0-b60d-1a20a8b6823f/subagents/agent-a964b51b5335aef69.jsonl",
        include_bytes!(
            "../demo/projects/-home-dev-2-1-325-s08b-agent-two-proj/965cd381-04b3-43c0-b60d-1a20a8b6823f/subagents/agent-a964b51b5335aef69.jsonl"
        ),
    ),
    (
        "projects/-home-dev-2-1-325-s08b-agent-two-proj/965cd381-04b3-43c0-b60d-1a20a8b6823f/subagents/agent-a964b51b5335aef69.meta.json",
        include_bytes!(
            "../demo/projects/-home-dev-2-1-325-s08b-agent-two-proj/965cd381-04b3-43c0-b60d-1a20a8b6823f/subagents/agent-a964b51b5335aef69.meta.json"
        ),
    ),
    (
        "projects/-home-dev-2-1-325-i04-rewind-proj/c3ec006f-13a6-432a-becd-de12a81fa0cf.jsonl",
        include_bytes!(
            "../demo/projects/-home-dev-2-1-325-i04-rewind-proj/c3ec006f-13a6-432a-becd-de12a81fa0cf.jsonl"
        ),
    ),
    (
        "file-history/c3ec006f-13a6-432a-becd-de12a81fa0cf/c72826b966d7e0ad@v2",
        include_bytes!(
            "../demo/file-history/c3ec006f-13a6-432a-becd-de12a81fa0cf/c72826b966d7e0ad@v2"
        ),
    ),
    (
        "projects/-home-dev-2-1-325-s06-errors-proj/1c9b3cd7-c12f-4330-a835-7ad857e26641.jsonl",
        include_bytes!(
            "../demo/projects/-home-dev-2-1-325-s06-errors-proj/1c9b3cd7-c12f-4330-a835-7ad857e26641.jsonl"
        ),
    ),
    (
        "projects/-home-dev-2-1-325-s09-compact-proj/b8809baf-b200-4cd6-943b-5e72e4c92368.jsonl",
        include_bytes!(
            "../demo/projects/-home-dev-2-1-325-s09-compact-proj/b8809baf-b200-4cd6-943b-5e72e4c92368.jsonl"
        ),
    ),
];
