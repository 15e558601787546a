//! Going back: which copies of files bring back the state before a prompt.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::entry::LineKind;
use crate::json;
use crate::log::TranscriptSource;
use crate::session::Session;

/// A file to bring back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewoundFile {
    /// The file; relative to the project where it is inside.
    pub path: String,
    /// The copy that holds it; `None` if there was no such file.
    pub copy: Option<String>,
}

/// The files as they were before a prompt: of each the first copy that was made from then on.
/// `None` if nothing was noted about that prompt.
pub fn files_before(
    session: &Session,
    source: &dyn TranscriptSource,
    prompt: &str,
) -> Option<Vec<RewoundFile>> {
    let mut files: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut found = false;
    for record in &session.records {
        if record.kind != LineKind::FileHistory {
            continue;
        }
        let line = json::value(&session.bytes_of(source, record));
        let of = |value: &Value| value.as_str() == Some(prompt);
        found |= of(&line["snapshot"]["messageId"]) || of(&line["snapshotMessageId"]);
        if !found {
            continue;
        }
        let whole = line["snapshot"]["trackedFileBackups"].as_object();
        let single = line["trackingPath"]
            .as_str()
            .map(|path| (path, &line["backup"]));
        let whole = whole
            .into_iter()
            .flatten()
            .map(|(path, backup)| (path.as_str(), backup));
        for (path, backup) in whole.chain(single) {
            let copy = backup["backupFileName"].as_str().map(str::to_owned);
            files.entry(path.to_owned()).or_insert(copy);
        }
    }
    found.then(|| {
        files
            .into_iter()
            .map(|(path, copy)| RewoundFile { path, copy })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use crate::session::TranscriptRole;

    #[test]
    fn of_each_file_the_first_copy_from_the_prompt_on_counts() {
        let snapshot = |prompt: &str, files: &str| {
            format!(
                r#"{{"type":"file-history-snapshot","messageId":"m","snapshot":{{"messageId":"{prompt}","trackedFileBackups":{{{files}}},"timestamp":"2026-01-01T00:00:00.000Z"}},"isSnapshotUpdate":false}}"#
            )
        };
        let kept = |path: &str, name: &str| {
            format!(r#""{path}":{{"backupFileName":"{name}","version":1}}"#)
        };
        let delta = r#"{"type":"file-history-delta","messageId":"m","snapshotMessageId":"p2","trackingPath":"c","backup":{"backupFileName":null,"version":1}}"#;
        let lines = [
            snapshot("p1", &kept("a", "a@v1")),
            snapshot("p2", &kept("a", "a@v2")),
            delta.to_owned(),
            snapshot(
                "p3",
                &format!("{},{}", kept("a", "a@v3"), kept("b", "b@v1")),
            ),
        ];
        let log = Log::new(lines.join("\n") + "\n");
        let session = Session::from_log(&log, TranscriptRole::Main);
        let files = files_before(&session, &log, "p2").unwrap();
        let told: Vec<(&str, Option<&str>)> = files
            .iter()
            .map(|file| (file.path.as_str(), file.copy.as_deref()))
            .collect();
        assert_eq!(
            told,
            [("a", Some("a@v2")), ("b", Some("b@v1")), ("c", None)]
        );
        assert_eq!(files_before(&session, &log, "none"), None);
    }
}
