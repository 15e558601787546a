//! Files that a session read and changed, and how to get one back.
//!
//! Two histories exist: backups that the client made before a turn changed a file
//! (`file-history-*` lines, contents beside the session), and the calls themselves. This view
//! only plans; the store reads backups.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::entry::LineKind;
use crate::json;
use crate::log::TranscriptSource;
use crate::session::{Index, Session, ToolCall};
use crate::tool::{self, FileAccess};
use crate::view::turns;

/// What happened to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileRow {
    /// Its path as the tools were given it.
    pub path: String,
    /// How often it was read.
    pub reads: usize,
    /// How often it was written as a whole.
    pub writes: usize,
    /// How often a part was changed.
    pub edits: usize,
    /// Lines added, where the transcript says.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
    /// Backups the client keeps of it.
    pub versions: usize,
}

/// The files of a session, in the order they were first touched. Calls that failed touched
/// nothing.
pub fn files(session: &Session, source: &dyn TranscriptSource) -> Vec<FileRow> {
    let mut rows: Vec<FileRow> = Vec::new();
    let mut place: BTreeMap<String, usize> = BTreeMap::new();
    for call in &session.calls {
        let touch = tool::touch(session.text(call.tool));
        let done = call.result.as_ref().is_some_and(|result| !result.is_error);
        let Some(path) = (touch != FileAccess::None && done)
            .then(|| path(session, source, call))
            .flatten()
        else {
            continue;
        };
        let at = *place.entry(path.clone()).or_insert(rows.len());
        if at == rows.len() {
            rows.push(FileRow {
                path,
                ..FileRow::default()
            });
        }
        count(session, source, call, touch, &mut rows[at]);
    }
    for backup in backups(session, source) {
        let same = rows
            .iter_mut()
            .find(|row| names_same(&row.path, &backup.path));
        if let (Some(row), true) = (same, backup.file.is_some()) {
            row.versions = row.versions.max(backup.version);
        }
    }
    rows
}

fn count(
    session: &Session,
    source: &dyn TranscriptSource,
    call: &ToolCall,
    touch: FileAccess,
    row: &mut FileRow,
) {
    match touch {
        FileAccess::None => {}
        FileAccess::Read => row.reads += 1,
        FileAccess::Write => row.writes += 1,
        FileAccess::Edit => row.edits += 1,
    }
    if matches!(touch, FileAccess::Write | FileAccess::Edit) {
        let (added, removed) = changed_lines(
            &result_meta(session, source, call),
            &input(session, source, call),
        );
        row.added += added;
        row.removed += removed;
    }
}

/// Lines that a change added and removed.
pub fn changed_lines(meta: &Value, input: &Value) -> (usize, usize) {
    let hunks = meta["structuredPatch"]
        .as_array()
        .filter(|hunks| !hunks.is_empty());
    if let Some(hunks) = hunks {
        let lines = hunks
            .iter()
            .filter_map(|hunk| hunk["lines"].as_array())
            .flatten()
            .filter_map(Value::as_str);
        return lines.fold((0, 0), |(added, removed), line| {
            match line.as_bytes().first() {
                Some(b'+') => (added + 1, removed),
                Some(b'-') => (added, removed + 1),
                _ => (added, removed),
            }
        });
    }
    if let Some(edits) = input["edits"].as_array() {
        let counts = edits.iter().map(|edit| changed_lines(&Value::Null, edit));
        return counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    }
    let lines = |field: &str| input[field].as_str().map_or(0, |text| text.lines().count());
    (lines("content") + lines("new_string"), lines("old_string"))
}

/// The input of a call.
pub fn input(session: &Session, source: &dyn TranscriptSource, call: &ToolCall) -> Value {
    let record = &session.records[call.record as usize];
    let bytes = session.bytes_of(source, record);
    json::value(session.blocks[call.block as usize].body().of(&bytes))
}

/// What the client noted about the result of a call (`toolUseResult`).
pub fn result_meta(session: &Session, source: &dyn TranscriptSource, call: &ToolCall) -> Value {
    let Some(result) = &call.result else {
        return Value::Null;
    };
    let bytes = session.bytes_of(source, &session.records[result.record as usize]);
    json::find(&bytes, &["toolUseResult"]).map_or(Value::Null, |span| json::value(span.of(&bytes)))
}

fn path(session: &Session, source: &dyn TranscriptSource, call: &ToolCall) -> Option<String> {
    let input = input(session, source, call);
    let keys = tool::known(session.text(call.tool))?.subject;
    keys.iter()
        .find_map(|key| input[*key].as_str())
        .map(str::to_owned)
}

/// One backup, or the note that the file did not exist.
#[derive(Clone, Debug)]
struct BackupVersion {
    /// The prompt at which the file was like this.
    prompt: String,
    path: String,
    file: Option<String>,
    version: usize,
}

fn backups(session: &Session, source: &dyn TranscriptSource) -> Vec<BackupVersion> {
    let mut out = Vec::new();
    for record in session
        .records
        .iter()
        .filter(|record| record.kind == LineKind::FileHistory)
    {
        let line = json::value(&session.bytes_of(source, record));
        if let Some(tracked) = line["snapshot"]["trackedFileBackups"].as_object() {
            let prompt = text(&line["snapshot"]["messageId"]);
            out.extend(
                tracked
                    .iter()
                    .map(|(path, backup)| one_backup(&prompt, path, backup)),
            );
        } else if line["trackingPath"].is_string() {
            let prompt = text(&line["snapshotMessageId"]);
            out.push(one_backup(
                &prompt,
                &text(&line["trackingPath"]),
                &line["backup"],
            ));
        }
    }
    out
}

fn one_backup(prompt: &str, path: &str, backup: &Value) -> BackupVersion {
    BackupVersion {
        prompt: prompt.to_owned(),
        path: path.to_owned(),
        file: backup["backupFileName"].as_str().map(str::to_owned),
        version: backup["version"].as_u64().unwrap_or(0) as usize,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Whether two paths name one file; backups are named from the working directory.
pub fn names_same(path: &str, other: &str) -> bool {
    let (long, short) = if path.len() >= other.len() {
        (path, other)
    } else {
        (other, path)
    };
    long.strip_suffix(short).is_some_and(|rest| {
        rest.is_empty() || rest.ends_with(['/', '\\']) || short.starts_with(['/', '\\'])
    })
}

/// How to get a file back as it was after a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileRestore {
    /// Copy this backup of the client's.
    Backup {
        /// Its name in `file-history/<session>/`.
        file: String,
        /// The turn before which the client made it.
        before_turn: usize,
    },
    /// Copy this backup and make these changes to it.
    BackupAndReplay {
        /// Its name in `file-history/<session>/`.
        file: String,
        /// The turn before which the client made it.
        before_turn: usize,
        /// The changes.
        steps: Vec<FileEditStep>,
    },
    /// The file did not exist.
    Absent,
    /// The content as the calls left it.
    Replayed {
        /// The content.
        content: String,
        /// How many calls were replayed.
        calls: usize,
    },
    /// The transcript does not tell.
    Unknown {
        /// Why not.
        why: String,
    },
}

/// A change to a file, as a call made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEditStep(Value);

/// The text after these changes; `None` where one does not fit.
pub fn replay_on(base: &str, steps: &[FileEditStep]) -> Option<String> {
    steps.iter().try_fold(
        base.to_owned(),
        |text, FileEditStep(input)| match input["content"].as_str() {
            Some(content) => Some(content.to_owned()),
            None => edited(&text, input),
        },
    )
}

/// Plans how to get `path` back as it was when turn `n` (from 1) was over.
pub fn restore(
    session: &Session,
    source: &dyn TranscriptSource,
    path: &str,
    n: usize,
) -> Vec<FileRestore> {
    let turns = turns::outline(session, turns::TurnOptions::default());
    let opener = |turn: &turns::TurnRow| {
        session.records[turn.record as usize]
            .uuid
            .as_ref()
            .map(ToString::to_string)
    };
    let number: BTreeMap<String, usize> = turns
        .iter()
        .filter_map(|turn| Some((opener(turn)?, turn.n)))
        .collect();
    let mut plans = Vec::new();
    let mut known: Vec<(usize, BackupVersion)> = backups(session, source)
        .into_iter()
        .filter(|backup| names_same(path, &backup.path))
        .filter_map(|backup| Some((*number.get(&backup.prompt)?, backup)))
        .collect();
    known.sort_by_key(|(turn, _)| *turn);
    // What a later turn found before it changed the file is what this turn left.
    if let Some((turn, backup)) = known.iter().find(|(turn, _)| *turn > n) {
        plans.push(match &backup.file {
            Some(file) => FileRestore::Backup {
                file: file.clone(),
                before_turn: *turn,
            },
            None => FileRestore::Absent,
        });
    }
    let calls_from = |first: usize| {
        let wanted = turns
            .iter()
            .filter(move |turn| turn.n >= first && turn.n <= n);
        wanted
            .flat_map(|turn| turn.calls.iter().copied())
            .collect::<Vec<Index>>()
    };
    if let Some((
        turn,
        BackupVersion {
            file: Some(file), ..
        },
    )) = known.iter().rev().find(|(turn, _)| *turn <= n)
    {
        let steps = changes(session, source, path, &calls_from(*turn));
        plans.push(FileRestore::BackupAndReplay {
            file: file.clone(),
            before_turn: *turn,
            steps,
        });
    }
    plans.push(replay(session, source, path, &calls_from(1)));
    plans
}

/// The changes that these calls made to the file.
fn changes(
    session: &Session,
    source: &dyn TranscriptSource,
    path: &str,
    calls: &[Index],
) -> Vec<FileEditStep> {
    let calls = calls.iter().map(|&index| &session.calls[index as usize]);
    let own = calls.filter(|call| {
        let changes = matches!(
            tool::touch(session.text(call.tool)),
            FileAccess::Write | FileAccess::Edit
        );
        let done = call.result.as_ref().is_some_and(|result| !result.is_error);
        changes
            && done
            && self::path(session, source, call).is_some_and(|own| names_same(path, &own))
    });
    own.map(|call| FileEditStep(input(session, source, call)))
        .collect()
}

/// Follows the calls that changed the file; each change starts from what the client noted as
/// the original, where it did.
fn replay(
    session: &Session,
    source: &dyn TranscriptSource,
    path: &str,
    calls: &[Index],
) -> FileRestore {
    let mut content: Option<String> = None;
    let mut replayed = 0;
    let mut broken = None;
    for &index in calls {
        let call = &session.calls[index as usize];
        let touch = tool::touch(session.text(call.tool));
        let done = call.result.as_ref().is_some_and(|result| !result.is_error);
        let own = self::path(session, source, call).is_some_and(|own| names_same(path, &own));
        if touch == FileAccess::None || !done || !own {
            continue;
        }
        let (input, meta) = (
            input(session, source, call),
            result_meta(session, source, call),
        );
        match touch {
            FileAccess::Read => content = content.or_else(|| whole_file(&meta)),
            FileAccess::Write => content = input["content"].as_str().map(str::to_owned),
            FileAccess::Edit | FileAccess::None => {
                let before = meta["originalFile"]
                    .as_str()
                    .map(str::to_owned)
                    .or(content.take());
                content = before.and_then(|before| edited(&before, &input));
                let line = session.records[call.record as usize].line;
                broken = content.is_none().then(|| {
                    format!(
                        "the edit on line {line} does not apply to the known content of the file"
                    )
                });
            }
        }
        replayed += usize::from(touch != FileAccess::Read);
    }
    match content {
        Some(content) => FileRestore::Replayed {
            content,
            calls: replayed,
        },
        None => FileRestore::Unknown {
            why: broken.unwrap_or_else(|| {
                "no call up to that turn wrote or read the whole file".to_owned()
            }),
        },
    }
}

fn whole_file(meta: &Value) -> Option<String> {
    let file = &meta["file"];
    let whole =
        file["startLine"].as_u64().unwrap_or(1) <= 1 && file["numLines"] == file["totalLines"];
    file["content"]
        .as_str()
        .filter(|_| whole)
        .map(str::to_owned)
}

/// Applies the edit or edits of an input; `None` where they do not fit.
fn edited(before: &str, input: &Value) -> Option<String> {
    if let Some(edits) = input["edits"].as_array() {
        return edits
            .iter()
            .try_fold(before.to_owned(), |text, edit| edited(&text, edit));
    }
    let (old, new) = (input["old_string"].as_str()?, input["new_string"].as_str()?);
    if old.is_empty() {
        return Some(new.to_owned());
    }
    if !before.contains(old) {
        return None;
    }
    let all = input["replace_all"].as_bool().unwrap_or(false);
    Some(if all {
        before.replace(old, new)
    } else {
        before.replacen(old, new, 1)
    })
}
