//! Write: a whole file.

use std::path::Path;

use serde_json::{Value, json};

use super::kept::Seen;
use super::{object, str_of, text};
use crate::file::{self, Unread};
use crate::patch;
use crate::tool::{Call, Outcome, Scene, Tool};

/// What the model is told when it knows the file as it is now.
pub(super) const CURRENT: &str =
    " (file state is current in your context — no need to Read it back)";

/// What the model is told when it would write over what it never saw.
pub(super) const UNREAD: &str = "File has not been read yet. Read it first before writing to it.";

/// Files that are larger are not changed by a tool for texts.
pub(super) const LARGEST: u64 = 64 << 20;

/// A content that was replaced is written down if it is no longer than this: otherwise every
/// change to a large file would make the transcript grow by all of it.
const ORIGINAL: usize = 1 << 20;

/// The content that was replaced, as the line of the result tells it.
pub(super) fn original(old: &str) -> Option<&str> {
    (old.len() <= ORIGINAL).then_some(old)
}

/// The tool.
#[derive(Debug)]
pub struct Write;

impl Tool for Write {
    fn name(&self) -> &'static str {
        "Write"
    }

    fn description(&self) -> String {
        "Writes a file: makes it, with the folders it needs, or replaces all of it.\n\n\
         - An existing file must have been read with Read in this conversation first.\n\
         - To change part of a file use Edit, which only sends what changes.\n\
         - Make no documentation files unless you were asked for them."
            .to_owned()
    }

    fn schema(&self) -> Value {
        object([
            ("file_path*", text("The absolute path of the file")),
            ("content*", text("All of its content")),
        ])
    }

    fn only_reads(&self, _: &Value) -> bool {
        false
    }

    fn run(&self, call: &Call, scene: &Scene<'_>) -> Outcome {
        let path = file::absolute(
            str_of(&call.input, "file_path"),
            &scene.cwd,
            scene.host.home(),
        );
        let content = str_of(&call.input, "content");
        let before = match old(&path) {
            Ok(before) => before,
            Err(text) => return Outcome::failed(text),
        };
        if let Some(before) = &before
            && let Some(refused) = unseen(before, &path, scene)
        {
            return refused;
        }
        match store(&path, content, before.as_deref(), scene) {
            Ok(outcome) => outcome,
            Err(error) => Outcome::failed(unwritable(&path, &error)),
        }
    }
}

/// The content a file has now, if there is one.
fn old(path: &Path) -> Result<Option<Vec<u8>>, String> {
    match file::read(path, LARGEST) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Unread::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(other) => Err(cannot("write", path, &other)),
    }
}

fn unseen(before: &[u8], path: &Path, scene: &Scene<'_>) -> Option<Outcome> {
    match scene.host.kept().seen(path) {
        None => Some(Outcome::refused(UNREAD)),
        Some(Seen::Now(hash)) if hash == file::hash(before) => None,
        Some(_) => Some(Outcome::refused(
            "File has been modified since read, either by the user or by a linter. Read it again before attempting to write it.",
        )),
    }
}

fn store(
    path: &Path,
    content: &str,
    before: Option<&[u8]>,
    scene: &Scene<'_>,
) -> std::io::Result<Outcome> {
    scene.host.will_change(path)?;
    let (encoding, old) = match before {
        Some(bytes) => {
            let (encoding, rest) = file::encoding(bytes);
            (encoding, Some(encoding.decode(rest)))
        }
        None => (file::Encoding::Utf8 { mark: false }, None),
    };
    // A file keeps the ends of its lines.
    let windows = old.as_ref().is_some_and(|old| file::is_crlf(old));
    let written = match windows {
        true => file::to_crlf(content),
        false => content.to_owned(),
    };
    let bytes = encoding.encode(written.as_bytes());
    file::write(path, &bytes)?;
    scene.host.kept().saw(path, &bytes);
    let shown = path.display();
    let Some(old) = old else {
        let result = json!({
            "type": "create", "filePath": shown.to_string(), "content": content,
            "structuredPatch": [], "originalFile": null, "userModified": false,
        });
        let text = format!("File created successfully at: {shown}{CURRENT}");
        return Ok(Outcome::done(text, result));
    };
    let old = String::from_utf8_lossy(&old);
    let result = json!({
        "type": "update", "filePath": shown.to_string(), "content": content,
        "structuredPatch": patch::hunks(&old, &written), "originalFile": original(&old),
        "userModified": false,
    });
    let text = format!("The file {shown} has been updated successfully.{CURRENT}");
    Ok(Outcome::done(text, result))
}

/// What to say if the system does not let us write.
pub(super) fn unwritable(path: &Path, error: &std::io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}

/// What to say of a file that is none.
pub(super) fn cannot(act: &str, path: &Path, unread: &Unread) -> String {
    let shown = path.display();
    match unread {
        Unread::Folder => format!("EISDIR: illegal operation on a directory, {act} '{shown}'"),
        Unread::Endless => format!(
            "cannot {act} '{shown}': it is a device or a pipe, which may never come to an end"
        ),
        Unread::Large(size) => format!(
            "cannot {act} {shown}: {} is too large for this tool",
            super::read::size(*size)
        ),
        Unread::Io(error) => format!("cannot {act} {shown}: {error}"),
    }
}
