//! A transcript as a list of lines that can be edited by hand.
//!
//! Lines are found by what they say (`U1`, `toolu_R1`), so that one edit fits
//! recordings of several client versions.

use serde_json::{Value, json};

/// One line of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A JSON value.
    Json(Value),
    /// Any other bytes, without the newline.
    Raw(String),
}

/// The lines of a file, and how the file is written.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// In file order.
    pub lines: Vec<Line>,
    /// Written between lines; `\n` unless an edit says otherwise.
    pub newline: Newline,
    /// Whether the last line ends like the others.
    pub unfinished: bool,
    /// Whether the file starts with a byte order mark.
    pub bom: bool,
}

/// How lines end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Newline {
    /// `\n`
    #[default]
    Unix,
    /// `\r\n`
    Windows,
}

/// Where the types stand that hang in the chain of parents.
const CHAIN: [&str; 4] = ["user", "assistant", "system", "attachment"];

impl Transcript {
    /// Reads the text of a file.
    pub fn parse(text: &str) -> Transcript {
        let lines = text
            .lines()
            .map(|line| match serde_json::from_str(line) {
                Ok(value) => Line::Json(value),
                Err(_) => Line::Raw(line.to_owned()),
            })
            .collect();
        Transcript {
            lines,
            unfinished: !text.is_empty() && !text.ends_with('\n'),
            ..Transcript::default()
        }
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let end = match self.newline {
            Newline::Unix => "\n",
            Newline::Windows => "\r\n",
        };
        let mut text = String::new();
        if self.bom {
            text.push('\u{feff}');
        }
        for line in &self.lines {
            match line {
                Line::Json(value) => text.push_str(&value.to_string()),
                Line::Raw(raw) => text.push_str(raw),
            }
            text.push_str(end);
        }
        if self.unfinished {
            text.truncate(text.trim_end_matches(['\r', '\n']).len());
        }
        text
    }

    /// The values of the lines that are JSON.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> {
        self.lines.iter().filter_map(|line| match line {
            Line::Json(value) => Some(value),
            Line::Raw(_) => None,
        })
    }

    /// The same, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.lines.iter_mut().filter_map(|line| match line {
            Line::Json(value) => Some(value),
            Line::Raw(_) => None,
        })
    }

    /// The place of the line that says this, or the end if there is none.
    pub fn find(&self, what: &str) -> usize {
        let says = |line: &Line| matches!(line, Line::Json(value) if says(value, what));
        self.lines.iter().position(says).unwrap_or(self.lines.len())
    }

    /// Whether a line says this.
    pub fn has(&self, what: &str) -> bool {
        self.find(what) < self.lines.len()
    }

    /// The line that says this.
    pub fn get(&self, what: &str) -> &Value {
        match self.lines.get(self.find(what)) {
            Some(Line::Json(value)) => value,
            _ => &Value::Null,
        }
    }

    /// Changes the line that says this, if there is one.
    pub fn edit(&mut self, what: &str, change: impl FnOnce(&mut Value)) {
        let at = self.find(what);
        if let Some(Line::Json(value)) = self.lines.get_mut(at) {
            change(value);
        }
    }

    /// Sets one top-level field of the line that says this.
    pub fn set(&mut self, what: &str, field: &str, to: impl Into<Value>) {
        let to = to.into();
        self.edit(what, |value| value[field] = to);
    }

    /// Changes every line of a type.
    pub fn edit_all(&mut self, kind: &str, change: impl Fn(&mut Value)) {
        self.values_mut()
            .filter(|value| value["type"] == kind)
            .for_each(change);
    }

    /// Changes every line of the chain.
    pub fn edit_chain(&mut self, change: impl FnMut(&mut Value)) {
        self.values_mut()
            .filter(|value| in_chain(value))
            .for_each(change);
    }

    /// The uuid of the line that says this.
    pub fn uuid(&self, what: &str) -> String {
        self.get(what)["uuid"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Removes the lines that pass and leaves their children behind.
    pub fn drop(&mut self, passes: impl Fn(&Value) -> bool) {
        self.lines
            .retain(|line| !matches!(line, Line::Json(value) if passes(value)));
    }

    /// Removes the lines that pass and hangs their children on their parents.
    pub fn drop_relinked(&mut self, passes: impl Fn(&Value) -> bool) {
        let gone: Vec<(Value, Value)> = self
            .values()
            .filter(|value| passes(value) && value["uuid"].is_string())
            .map(|value| (value["uuid"].clone(), value["parentUuid"].clone()))
            .collect();
        self.drop(passes);
        for value in self.values_mut() {
            for field in ["parentUuid", "leafUuid"] {
                while let Some((_, parent)) = gone.iter().find(|(uuid, _)| *uuid == value[field]) {
                    value[field] = parent.clone();
                }
            }
        }
    }

    /// Removes every line after the one that says this.
    pub fn cut_after(&mut self, what: &str) {
        let at = self.find(what);
        self.lines.truncate(at + 1);
    }

    /// Puts a line after the one that says this and moves its children to the new line.
    pub fn insert_in_chain(&mut self, after: &str, mut line: Value) {
        let at = self.find(after);
        let parent = self.get(after)["uuid"].clone();
        let own = line["uuid"].clone();
        self.edit_chain(|value| {
            if value["parentUuid"] == parent {
                value["parentUuid"] = own.clone();
            }
        });
        line["parentUuid"] = parent;
        let at = (at + 1).min(self.lines.len());
        self.lines.insert(at, Line::Json(line));
    }

    /// The same below a line that is known by its uuid.
    pub fn insert_after_uuid(&mut self, after: &str, mut line: Value) {
        let own = line["uuid"].clone();
        self.edit_chain(|value| {
            if value["parentUuid"] == after {
                value["parentUuid"] = own.clone();
            }
        });
        line["parentUuid"] = after.into();
        let is_after = |line: &Line| matches!(line, Line::Json(value) if value["uuid"] == after);
        let at = self.lines.iter().position(is_after);
        let at = at.map_or(self.lines.len(), |at| at + 1);
        self.lines.insert(at, Line::Json(line));
    }

    /// Adds a line at the end.
    pub fn push(&mut self, line: Value) {
        self.lines.push(Line::Json(line));
    }

    /// A new line with the envelope of the line that says this.
    pub fn like(&self, what: &str, number: u32, kind: &str) -> Value {
        let model = self.get(what);
        let mut line = json!({"parentUuid": model["uuid"], "isSidechain": false});
        for field in ["userType", "cwd", "sessionId", "version", "gitBranch"] {
            if !model[field].is_null() {
                line[field] = model[field].clone();
            }
        }
        line["type"] = kind.into();
        line["uuid"] = fresh_uuid(number).into();
        line["timestamp"] = model["timestamp"].clone();
        line
    }

    /// A new prompt below the line that says this.
    pub fn prompt(&self, what: &str, number: u32, text: &str) -> Value {
        let mut line = self.like(what, number, "user");
        line["message"] = json!({"role": "user", "content": text});
        line
    }

    /// A new answer below the line that says this.
    pub fn answer(&self, what: &str, number: u32, blocks: Value) -> Value {
        let mut line = self.like(what, number, "assistant");
        let models = self.values().map(|value| &value["message"]["model"]);
        let model = models
            .rev()
            .find(|model| model.is_string() && *model != "<synthetic>");
        line["message"] = json!({
            "id": format!("msg_made_{number}"), "type": "message", "role": "assistant",
            "model": model, "content": blocks, "stop_reason": "end_turn",
            "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
        });
        line
    }
}

/// A uuid that no recording has.
pub fn fresh_uuid(number: u32) -> String {
    format!("c0ffee00-0000-4000-8000-{number:012}")
}

/// Whether a line is of a type that stands in the chain of parents.
pub fn in_chain(value: &Value) -> bool {
    value["uuid"].is_string() && CHAIN.iter().any(|kind| value["type"] == *kind)
}

/// The blocks of a line; a string counts as one text.
pub fn blocks(value: &Value) -> Vec<Value> {
    match &value["message"]["content"] {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    }
}

/// `U1`: a prompt or text; `T1`: thinking; `use:ID`, `result:ID`: a call and its result.
fn says(value: &Value, what: &str) -> bool {
    if !in_chain(value) {
        return false;
    }
    blocks(value).iter().any(|block| {
        let kind = block["type"].as_str().unwrap_or_default();
        match (what.split_once(':'), kind) {
            (Some(("use", id)), "tool_use") => block["id"] == id,
            (Some(("result", id)), "tool_result") => block["tool_use_id"] == id,
            (None, "text") => block["text"] == what,
            (None, "thinking") => block["thinking"] == what,
            _ => false,
        }
    })
}
