//! A Jupyter notebook as cells.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{FileReadError, LARGEST, size};
use crate::file;
use crate::tool::{ToolContext, ToolOutcome};

/// A notebook with pictures in it may be large; what the model is told may not.
const FILE: u64 = 64 << 20;

/// What is told of one text output.
const OUTPUT: usize = 10_000;

pub fn read(path: &Path, scene: &ToolContext<'_>) -> Result<ToolOutcome, FileReadError> {
    let bytes = file::read(path, FILE)?;
    let shown = path.display().to_string();
    let Ok(notebook) = serde_json::from_slice::<Value>(&bytes) else {
        return Ok(ToolOutcome::failed(format!(
            "cannot read {shown}: not a notebook, or a broken one"
        )));
    };
    let language = notebook["metadata"]["language_info"]["name"]
        .as_str()
        .unwrap_or("python");
    let none = Vec::new();
    let cells = notebook["cells"].as_array().unwrap_or(&none);
    let mut blocks = NotebookBlocks::default();
    let mut listed = Vec::new();
    for (at, cell) in cells.iter().enumerate() {
        listed.push(tell(cell, at, language, &mut blocks));
    }
    if blocks.size > LARGEST as usize {
        return Ok(ToolOutcome::failed(format!(
            "Notebook content ({}) exceeds maximum allowed size ({}). Use Bash with jq to read single cells: jq '.cells[0]' '{shown}'",
            size(blocks.size as u64),
            size(LARGEST)
        )));
    }
    scene.host.kept().saw(path, &bytes);
    let file = json!({"filePath": shown, "cells": listed});
    Ok(ToolOutcome::blocks(
        blocks.done(),
        json!({"type": "notebook", "file": file}),
    ))
}

/// Texts that follow each other are one block.
#[derive(Default)]
struct NotebookBlocks {
    all: Vec<Value>,
    text: String,
    size: usize,
}

impl NotebookBlocks {
    fn text(&mut self, text: &str) {
        self.size += text.len();
        self.text += text;
    }

    fn image(&mut self, kind: &str, data: &str) {
        self.size += 4_000;
        self.flush();
        let source = json!({"type": "base64", "data": data, "media_type": kind});
        self.all.push(json!({"type": "image", "source": source}));
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.all.push(json!({"type": "text", "text": text}));
        }
    }

    fn done(mut self) -> Vec<Value> {
        self.flush();
        if self.all.is_empty() {
            self.text("<system-reminder>Warning: the notebook has no cells.</system-reminder>");
            self.flush();
        }
        self.all
    }
}

fn tell(cell: &Value, at: usize, language: &str, blocks: &mut NotebookBlocks) -> Value {
    let id = cell_id(cell, at);
    let kind = cell["cell_type"].as_str().unwrap_or("code");
    let source = joined(&cell["source"]);
    let mut listed = Map::new();
    listed.insert("cellType".into(), json!(kind));
    listed.insert("source".into(), json!(source));
    let mut head = String::new();
    if kind == "code" {
        if let Some(count) = cell["execution_count"].as_u64() {
            listed.insert("execution_count".into(), json!(count));
        }
        listed.insert("language".into(), json!(language));
        if language != "python" {
            head = format!("<language>{language}</language>");
        }
    } else {
        head = format!("<cell_type>{kind}</cell_type>");
    }
    listed.insert("cell_id".into(), json!(id));
    blocks.text(&format!(
        "<cell id=\"{id}\">{head}{source}</cell id=\"{id}\">\n"
    ));
    let outputs = cell["outputs"].as_array().into_iter().flatten();
    let outputs: Vec<Value> = outputs.map(|output| output_of(output, blocks)).collect();
    if !outputs.is_empty() {
        listed.insert("outputs".into(), json!(outputs));
    }
    Value::Object(listed)
}

/// The id of a cell; old notebooks have none, so it is their place.
pub fn cell_id(cell: &Value, at: usize) -> String {
    let id = cell["id"].as_str().filter(|id| !id.is_empty());
    id.map_or_else(|| format!("cell-{at}"), str::to_owned)
}

fn output_of(output: &Value, blocks: &mut NotebookBlocks) -> Value {
    let kind = output["output_type"].as_str().unwrap_or("stream");
    let text = match kind {
        "stream" => joined(&output["text"]),
        "error" => format!(
            "{}: {}\n{}",
            output["ename"].as_str().unwrap_or_default(),
            output["evalue"].as_str().unwrap_or_default(),
            lines(&output["traceback"])
        ),
        _ => joined(&output["data"]["text/plain"]),
    };
    let text = cut(text);
    let mut told = json!({"output_type": kind});
    if !text.is_empty() {
        blocks.text(&format!("{}\n", text.trim_end_matches('\n')));
        told["text"] = json!(text);
    }
    for kind in ["image/png", "image/jpeg"] {
        if let Some(data) = output["data"].get(kind) {
            let data: String = joined(data).split_whitespace().collect();
            blocks.image(kind, &data);
            told["image"] = json!({"image_data": data, "media_type": kind});
            break;
        }
    }
    told
}

fn cut(mut text: String) -> String {
    if text.len() > OUTPUT {
        let more = text.len() - OUTPUT;
        text.truncate(text.floor_char_boundary(OUTPUT));
        text += &format!("\n… {more} more bytes");
    }
    text
}

/// The lines of a traceback have no newlines.
fn lines(text: &Value) -> String {
    let lines = text.as_array().into_iter().flatten();
    let lines: Vec<&str> = lines.filter_map(Value::as_str).collect();
    lines.join("\n")
}

/// Texts in notebooks may be lists of lines.
fn joined(text: &Value) -> String {
    match text {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}
