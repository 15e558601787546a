//! Recordings of the real client: every transcript it wrote, by version and scenario.
//!
//! They lie beside this file (`corpus/<version>/<scenario>/projects/…`), with
//! the requests that the API received (`requests.jsonl`) where a test compares
//! them. Filling text (`lorem ipsum …`) is shortened. Nothing outside the
//! repository is read, so that every checkout tests the same.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// What a transcript holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A session.
    Main,
    /// A sub-agent of a session.
    Agent,
}

/// One transcript.
#[derive(Clone, Debug)]
pub struct File {
    /// The version of the client that wrote it.
    pub version: String,
    /// What was done, such as `s10_resume_fork`.
    pub scenario: String,
    /// What it holds.
    pub role: Role,
    /// Where it is.
    pub path: PathBuf,
}

impl File {
    /// Its content.
    pub fn bytes(&self) -> Vec<u8> {
        match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) => panic!("{}: {error}", self.path.display()),
        }
    }

    /// `version/scenario/file`, short enough for a message.
    pub fn name(&self) -> String {
        let file = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let short: String = file.chars().take(14).collect();
        format!("{}/{}/{short}", self.version, self.scenario)
    }
}

/// Every transcript, in a fixed order.
pub fn files() -> Vec<File> {
    let mut files = Vec::new();
    for (version, scenario, folder) in scenarios(&root()) {
        for path in transcripts(&folder.join("projects")) {
            let is_agent = path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("agent-"));
            files.push(File {
                version: version.clone(),
                scenario: scenario.clone(),
                role: if is_agent { Role::Agent } else { Role::Main },
                path,
            });
        }
    }
    files
}

/// The folder of every recording, in a fixed order. Beside `projects` some have `dot-claude`: the
/// other files of the client's config folder.
pub fn folders() -> Vec<PathBuf> {
    let all = scenarios(&root()).into_iter();
    all.map(|(_, _, folder)| folder).collect()
}

/// The requests that the API received in a scenario, in order; none if they were not kept.
pub fn requests(version: &str, scenario: &str) -> Vec<Value> {
    let path = root().join(version).join(scenario).join("requests.jsonl");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| match serde_json::from_str(line) {
            Ok(Value::Object(mut request)) => request.remove("body").unwrap_or_default(),
            _ => panic!("{version}/{scenario}: a request that is no object"),
        })
        .collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn scenarios(root: &Path) -> Vec<(String, String, PathBuf)> {
    let mut all = Vec::new();
    for version in entries(root) {
        for scenario in entries(&version) {
            all.push((last(&version), last(&scenario), scenario));
        }
    }
    all
}

fn transcripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder) {
        if path.is_dir() {
            found.extend(transcripts(&path));
        } else if path.extension().is_some_and(|end| end == "jsonl") {
            found.push(path);
        }
    }
    found
}

fn last(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// What is in a folder, in order; nothing if it is none.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = read.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_recordings_of_six_versions_are_there() {
        let files = files();
        let versions: HashSet<&str> = files.iter().map(|file| &*file.version).collect();
        for version in [
            "2.0.42", "2.0.76", "2.1.29", "2.1.100", "2.1.325", "2.1.327",
        ] {
            assert!(versions.contains(version), "{version}");
        }
        let agents = files.iter().filter(|file| file.role == Role::Agent);
        assert!(agents.count() > 10 && files.len() > 400);
        assert!(requests("2.1.325", "s10_resume_fork").len() > 3);
    }
}
