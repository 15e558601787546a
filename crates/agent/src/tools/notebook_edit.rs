//! NotebookEdit: a cell of a Jupyter notebook.

use std::path::Path;

use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Value, json};

use super::read::notebook::cell_id;
use super::write::{UNREAD, describe_read_error, describe_write_error};
use super::{choice, fail, object, refuse, str_of, text};
use crate::file::{self, FileReadError};
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContext, ToolOutcome};

const LARGEST: u64 = 64 << 20;

/// The tool.
#[derive(Debug)]
pub struct NotebookEditTool;

impl BuiltinTool for NotebookEditTool {
    fn name(&self) -> &'static str {
        "NotebookEdit"
    }

    fn description(&self) -> String {
        "Changes a cell of a Jupyter notebook (.ipynb): replaces its source, inserts a new cell \
         after it, or deletes it. Read the notebook first: that tells the ids of the cells."
            .to_owned()
    }

    fn schema(&self) -> Value {
        object([
            ("notebook_path*", text("The absolute path of the notebook")),
            (
                "cell_id",
                text(
                    "The cell; with insert, the one before the new cell, or nothing for the start",
                ),
            ),
            ("new_source*", text("The source of the cell")),
            (
                "cell_type",
                choice(
                    "What the cell is; needed to insert one",
                    ["code", "markdown"],
                ),
            ),
            (
                "edit_mode",
                choice("replace unless given", ["replace", "insert", "delete"]),
            ),
        ])
    }

    fn only_reads(&self, _: &Value) -> bool {
        false
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        edit(&call.input, scene).unwrap_or_else(|refused| *refused)
    }
}

fn edit(input: &Value, scene: &ToolContext<'_>) -> Result<ToolOutcome, Box<ToolOutcome>> {
    let given = str_of(input, "notebook_path");
    let path = file::absolute(given, &scene.cwd, scene.host.home());
    if path.extension().is_none_or(|it| it != "ipynb") {
        return Err(refuse(
            "File must be a Jupyter notebook (.ipynb file). For editing other file types, use the Edit tool.",
        ));
    }
    let bytes = file::read(&path, LARGEST).map_err(|unread| match unread {
        FileReadError::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
            refuse("Notebook file does not exist.")
        }
        other => fail(describe_read_error("edit", &path, &other)),
    })?;
    if scene.host.kept().seen(&path).is_none() {
        return Err(refuse(UNREAD));
    }
    let mut notebook: Value =
        serde_json::from_slice(&bytes).map_err(|_| refuse("Notebook is not valid JSON."))?;
    let change = CellChange::of(input, &notebook).map_err(refuse)?;
    let (cell, kind) = change.apply(&mut notebook, str_of(input, "new_source"));
    let updated = written(&notebook, bytes.last() == Some(&b'\n'));
    write(&path, updated.as_bytes(), scene)
        .map_err(|error| fail(describe_write_error(&path, &error)))?;
    let source = str_of(input, "new_source");
    let text = match change.mode {
        CellEditMode::Replace => format!("Updated cell {cell} with {source}"),
        CellEditMode::Insert => format!("Inserted cell {cell} with {source}"),
        CellEditMode::Delete => format!("Deleted cell {cell}"),
    };
    let language = notebook["metadata"]["language_info"]["name"]
        .as_str()
        .unwrap_or("python");
    let result = json!({
        "new_source": source, "cell_type": kind, "language": language,
        "edit_mode": change.mode.name(), "cell_id": cell, "error": "",
        "notebook_path": path.display().to_string(),
        "original_file": String::from_utf8_lossy(&bytes), "updated_file": updated,
    });
    Ok(ToolOutcome::done(text, result))
}

fn write(path: &Path, bytes: &[u8], scene: &ToolContext<'_>) -> std::io::Result<()> {
    scene.host.will_change(path)?;
    file::write(path, bytes)?;
    scene.host.kept().saw(path, bytes);
    Ok(())
}

/// As Jupyter writes it: one space a level.
fn written(notebook: &Value, newline: bool) -> String {
    let mut bytes = Vec::new();
    let format = PrettyFormatter::with_indent(b" ");
    let mut out = serde_json::Serializer::with_formatter(&mut bytes, format);
    // A value that was read can be written.
    let _ = notebook.serialize(&mut out);
    if newline {
        bytes.push(b'\n');
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CellEditMode {
    Replace,
    Insert,
    Delete,
}

impl CellEditMode {
    fn name(self) -> &'static str {
        match self {
            CellEditMode::Replace => "replace",
            CellEditMode::Insert => "insert",
            CellEditMode::Delete => "delete",
        }
    }
}

struct CellChange {
    mode: CellEditMode,
    /// The cell, or where the new one goes.
    at: usize,
    kind: Option<String>,
}

impl CellChange {
    fn of(input: &Value, notebook: &Value) -> Result<CellChange, String> {
        let mode = match input["edit_mode"].as_str() {
            Some("insert") => CellEditMode::Insert,
            Some("delete") => CellEditMode::Delete,
            _ => CellEditMode::Replace,
        };
        let kind = input["cell_type"].as_str().map(str::to_owned);
        if mode == CellEditMode::Insert && kind.is_none() {
            return Err("Cell type is required when using edit_mode=insert.".to_owned());
        }
        let cells = notebook["cells"].as_array();
        let cells = cells.ok_or("The notebook has no list of cells.")?;
        let at = match input["cell_id"].as_str() {
            Some(id) => {
                let found = (0..cells.len()).find(|at| cell_id(&cells[*at], *at) == id);
                let found = found.or_else(|| place(id).filter(|at| *at < cells.len()));
                let found = found.ok_or(format!("Cell with ID \"{id}\" not found in notebook."))?;
                found + usize::from(mode == CellEditMode::Insert)
            }
            None if mode == CellEditMode::Insert => 0,
            None => {
                return Err("Cell ID must be specified when not inserting a new cell.".to_owned());
            }
        };
        Ok(CellChange { mode, at, kind })
    }

    /// Changes the notebook; the id and the kind of the cell.
    fn apply(&self, notebook: &mut Value, source: &str) -> (String, String) {
        let format = (
            notebook["nbformat"].as_u64().unwrap_or(4),
            notebook["nbformat_minor"].as_u64().unwrap_or(0),
        );
        let Some(cells) = notebook["cells"].as_array_mut() else {
            return (String::new(), String::new());
        };
        let kind_of = |cell: &Value| cell["cell_type"].as_str().unwrap_or("code").to_owned();
        match self.mode {
            CellEditMode::Delete => {
                let id = cell_id(&cells[self.at], self.at);
                let cell = cells.remove(self.at);
                (id, kind_of(&cell))
            }
            CellEditMode::Insert => {
                let kind = self.kind.clone().unwrap_or_else(|| "code".to_owned());
                cells.insert(self.at, fresh(&kind, source, format >= (4, 5)));
                (cell_id(&cells[self.at], self.at), kind)
            }
            CellEditMode::Replace => {
                let cell = &mut cells[self.at];
                cell["source"] = json!(source);
                if let Some(kind) = &self.kind {
                    cell["cell_type"] = json!(kind);
                }
                let kind = kind_of(cell);
                if let Some(fields) = cell.as_object_mut() {
                    settle(fields, &kind);
                }
                (cell_id(cell, self.at), kind)
            }
        }
    }
}

/// What a cell showed belongs to the source it had; only code has outputs.
fn settle(fields: &mut Map<String, Value>, kind: &str) {
    if kind == "code" {
        fields.insert("execution_count".to_owned(), Value::Null);
        fields.insert("outputs".to_owned(), json!([]));
    } else {
        fields.shift_remove("execution_count");
        fields.shift_remove("outputs");
    }
}

fn fresh(kind: &str, source: &str, with_id: bool) -> Value {
    let mut fields = Map::new();
    fields.insert("cell_type".to_owned(), json!(kind));
    if with_id {
        let mut bytes = [0; 4];
        // Without an id the cell is found by its place.
        if getrandom::fill(&mut bytes).is_ok() {
            let id = format!("{:08x}", u32::from_ne_bytes(bytes));
            fields.insert("id".to_owned(), json!(id));
        }
    }
    fields.insert("metadata".to_owned(), json!({}));
    fields.insert("source".to_owned(), json!(source));
    settle(&mut fields, kind);
    Value::Object(fields)
}

/// Cells without an id are called by their place.
fn place(id: &str) -> Option<usize> {
    id.strip_prefix("cell-")?.parse().ok()
}
