//! Write: a whole file.

use std::path::Path;

use serde_json::{Value, json};

use super::tool_state::SeenFile;
use super::{object, str_of, text};
use crate::file::{self, FileReadError};
use crate::patch;
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContext, ToolOutcome};

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
pub struct WriteTool;

impl BuiltinTool for WriteTool {
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

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        let path = file::absolute(
            str_of(&call.input, "file_path"),
            &scene.cwd,
            scene.host.home(),
        );
        let content = str_of(&call.input, "content");
        let before = match old(&path) {
            Ok(before) => before,
            Err(text) => return ToolOutcome::failed(text),
        };
        if let Some(before) = &before
            && let Some(refused) = unseen(before, &path, scene)
        {
            return refused;
        }
        match store(&path, content, before.as_deref(), scene) {
            Ok(outcome) => outcome,
            Err(error) => ToolOutcome::failed(describe_write_error(&path, &error)),
        }
    }
}

/// The content a file has now, if there is one.
fn old(path: &Path) -> Result<Option<Vec<u8>>, String> {
    match file::read(path, LARGEST) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(FileReadError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(other) => Err(describe_read_error("write", path, &other)),
    }
}

fn unseen(before: &[u8], path: &Path, scene: &ToolContext<'_>) -> Option<ToolOutcome> {
    match scene.host.kept().seen(path) {
        None => Some(ToolOutcome::refused(UNREAD)),
        Some(SeenFile::Now(hash)) if hash == file::hash(before) => None,
        Some(_) => Some(ToolOutcome::refused(
            "File has been modified since read, either by the user or by a linter. Read it again before attempting to write it.",
        )),
    }
}

fn store(
    path: &Path,
    content: &str,
    before: Option<&[u8]>,
    scene: &ToolContext<'_>,
) -> std::io::Result<ToolOutcome> {
    scene.host.will_change(path)?;
    let (encoding, old) = match before {
        Some(bytes) => {
            let (encoding, rest) = file::encoding(bytes);
            (encoding, Some(encoding.decode(rest)))
        }
        None => (file::TextEncoding::Utf8 { mark: false }, None),
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
        return Ok(ToolOutcome::done(text, result));
    };
    let old = String::from_utf8_lossy(&old);
    let result = json!({
        "type": "update", "filePath": shown.to_string(), "content": content,
        "structuredPatch": patch::hunks(&old, &written), "originalFile": original(&old),
        "userModified": false,
    });
    let text = format!("The file {shown} has been updated successfully.{CURRENT}");
    Ok(ToolOutcome::done(text, result))
}

/// What to say if the system does not let us write.
pub(super) fn describe_write_error(path: &Path, error: &std::io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}

/// What to say of a file that is none.
pub(super) fn describe_read_error(act: &str, path: &Path, unread: &FileReadError) -> String {
    let shown = path.display();
    match unread {
        FileReadError::Folder => {
            format!("EISDIR: illegal operation on a directory, {act} '{shown}'")
        }
        FileReadError::Endless => format!(
            "cannot {act} '{shown}': it is a device or a pipe, which may never come to an end"
        ),
        FileReadError::Large(size) => format!(
            "cannot {act} {shown}: {} is too large for this tool",
            super::read::size(*size)
        ),
        FileReadError::Io(error) => format!("cannot {act} {shown}: {error}"),
    }
}
