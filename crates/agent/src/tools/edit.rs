//! Edit: an exact piece of a file becomes another.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::tool_state::SeenFile;
use super::write::{CURRENT, LARGEST, UNREAD, describe_read_error, describe_write_error, original};
use super::{fail, object, refuse, str_of, text, truth};
use crate::file::{self, FileReadError};
use crate::patch;
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContext, ToolOutcome};

/// The tool.
#[derive(Debug)]
pub struct EditTool;

impl BuiltinTool for EditTool {
    fn name(&self) -> &'static str {
        "Edit"
    }

    fn description(&self) -> String {
        "Replaces an exact piece of text in a file.\n\n\
         - Read the file first in this conversation.\n\
         - `old_string` must be the text as it stands in the file, white space included, without \
           the line numbers that Read puts in front.\n\
         - It must occur once: take in more of the lines around it, or set `replace_all` to \
           change every occurrence, for example to rename something.\n\
         - An empty `old_string` makes a new file of `new_string`."
            .to_owned()
    }

    fn schema(&self) -> Value {
        let mut all = truth("Change every occurrence (false unless given)");
        all["default"] = json!(false);
        object([
            ("file_path*", text("The absolute path of the file")),
            ("old_string*", text("The text to replace")),
            (
                "new_string*",
                text("What it becomes; must differ from old_string"),
            ),
            ("replace_all", all),
        ])
    }

    fn only_reads(&self, _: &Value) -> bool {
        false
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        let edit = TextReplacement {
            path: file::absolute(
                str_of(&call.input, "file_path"),
                &scene.cwd,
                scene.host.home(),
            ),
            old: str_of(&call.input, "old_string"),
            new: str_of(&call.input, "new_string"),
            all: call.input["replace_all"] == true,
        };
        edit.apply(scene).unwrap_or_else(|refused| *refused)
    }
}

struct TextReplacement<'a> {
    path: PathBuf,
    old: &'a str,
    new: &'a str,
    all: bool,
}

impl TextReplacement<'_> {
    fn apply(&self, scene: &ToolContext<'_>) -> Result<ToolOutcome, Box<ToolOutcome>> {
        if self.old == self.new {
            return Err(refuse(
                "No changes to make: old_string and new_string are exactly the same.",
            ));
        }
        let bytes = match file::read(&self.path, LARGEST) {
            Ok(bytes) => bytes,
            Err(FileReadError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                return self.create(scene);
            }
            Err(other) => return Err(fail(describe_read_error("edit", &self.path, &other))),
        };
        let known = scene.host.kept().seen(&self.path);
        let known = known.ok_or_else(|| refuse(UNREAD))?;
        // The model may not know the rest of the file; what it quotes is all that counts.
        let current = known == SeenFile::Now(file::hash(&bytes));
        let (encoding, rest) = file::encoding(&bytes);
        let text = encoding.decode(rest);
        let (changed, new) = self.replaced(&text)?;
        let write = || {
            scene.host.will_change(&self.path)?;
            let bytes = encoding.encode(&changed);
            file::write(&self.path, &bytes)?;
            if current {
                scene.host.kept().saw(&self.path, &bytes);
            }
            Ok(())
        };
        write().map_err(|error| fail(describe_write_error(&self.path, &error)))?;
        Ok(self.outcome(&text, &changed, &new, current))
    }

    fn outcome(&self, old: &[u8], changed: &[u8], new: &str, current: bool) -> ToolOutcome {
        let (old, changed) = (
            String::from_utf8_lossy(old),
            String::from_utf8_lossy(changed),
        );
        let shown = self.path.display().to_string();
        let mut result = json!({
            "filePath": shown, "oldString": self.old, "newString": new, "originalFile": original(&old),
            "structuredPatch": patch::hunks(&old, &changed), "userModified": false,
            "replaceAll": self.all,
        });
        if !current {
            result["contentNotInModelContext"] = json!(true);
        }
        let all = match self.all {
            true => " All occurrences were successfully replaced.",
            false => "",
        };
        let known = if current { CURRENT } else { "" };
        let text = format!("The file {shown} has been updated successfully.{all}{known}");
        ToolOutcome::done(text, result)
    }

    /// The whole text with the piece replaced, and what was put there.
    fn replaced(&self, text: &[u8]) -> Result<(Vec<u8>, String), Box<ToolOutcome>> {
        if self.old.is_empty() {
            let created = "Cannot create new file - file already exists.";
            return match text.is_empty() {
                true => Ok((self.new.as_bytes().to_vec(), self.new.to_owned())),
                false => Err(refuse(created)),
            };
        }
        let as_is = (self.old.to_owned(), self.new.to_owned());
        let windows = (file::to_crlf(self.old), file::to_crlf(self.new));
        // Lines end as in the file; where it has both kinds, as what is quoted.
        let tries = match file::is_crlf(text) {
            true => [windows, as_is],
            false => [as_is, windows],
        };
        for (old, new) in tries {
            let mut found = memchr_all(text, old.as_bytes());
            let Some(first) = found.next() else { continue };
            if !self.all {
                let more = found.count();
                if more > 0 {
                    return Err(self.several(more + 1));
                }
                return Ok((splice(text, &[first], old.len(), &new), new));
            }
            let places: Vec<usize> = std::iter::once(first).chain(found).collect();
            return Ok((splice(text, &places, old.len(), &new), new));
        }
        Err(refuse(format!(
            "String to replace not found in file.\nString: {}",
            self.old
        )))
    }

    fn several(&self, count: usize) -> Box<ToolOutcome> {
        refuse(format!(
            "Found {count} matches of the string to replace, but replace_all is false. To replace all occurrences, set replace_all to true. To replace only one occurrence, please provide more context to uniquely identify the instance.\nString: {}",
            self.old
        ))
    }

    fn create(&self, scene: &ToolContext<'_>) -> Result<ToolOutcome, Box<ToolOutcome>> {
        if !self.old.is_empty() {
            return Err(refuse(super::read::missing(scene)));
        }
        let write = || {
            scene.host.will_change(&self.path)?;
            file::write(&self.path, self.new.as_bytes())
        };
        write().map_err(|error| fail(describe_write_error(&self.path, &error)))?;
        scene.host.kept().saw(&self.path, self.new.as_bytes());
        Ok(self.outcome(b"", self.new.as_bytes(), self.new, true))
    }
}

/// Every place of a piece, none inside another.
fn memchr_all<'a>(text: &'a [u8], piece: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    memchr::memmem::find_iter(text, piece)
}

fn splice(text: &[u8], places: &[usize], len: usize, new: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + places.len() * new.len());
    let mut at = 0;
    for place in places {
        out.extend(&text[at..*place]);
        out.extend(new.as_bytes());
        at = place + len;
    }
    out.extend(&text[at..]);
    out
}
