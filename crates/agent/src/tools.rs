//! The tools: one file and one entry of [`ALL`] each.

pub mod agent;
pub mod ask_user_question;
pub mod bash;
pub mod edit;
pub mod exit_plan_mode;
pub mod glob;
pub mod grep;
pub mod notebook_edit;
pub mod read;
pub mod skill;
pub mod task_list;
pub mod task_output;
pub mod task_stop;
pub mod todo_write;
mod tool_state;
pub mod web_fetch;
pub mod web_search;
pub mod write;

use serde_json::{Map, Value, json};

use crate::schema;
use crate::tool::{BuiltinTool, ToolOutcome};

pub use tool_state::{BackgroundExit, BackgroundTask, ToolState};

/// Every tool, in the order they are offered.
pub static ALL: &[&dyn BuiltinTool] = &[
    &agent::AgentTool,
    &bash::BashTool,
    &glob::GlobTool,
    &grep::GrepTool,
    &read::ReadTool,
    &edit::EditTool,
    &write::WriteTool,
    &notebook_edit::NotebookEditTool,
    &web_fetch::WebFetchTool,
    &web_search::WebSearchTool,
    &todo_write::TodoWriteTool,
    &task_list::TaskCreateTool,
    &task_list::TaskUpdateTool,
    &task_list::TaskGetTool,
    &task_list::TaskListTool,
    &task_output::TaskOutputTool,
    &task_output::BashOutputTool,
    &task_stop::TaskStopTool,
    &task_stop::KillShellTool,
    &skill::SkillTool,
    &ask_user_question::AskUserQuestionTool,
    &exit_plan_mode::ExitPlanModeTool,
];

/// The tool of a name, new or old.
pub fn named(name: &str) -> Option<&'static dyn BuiltinTool> {
    let tool = ALL
        .iter()
        .find(|tool| tool.name() == name || tool.old_names().contains(&name));
    tool.copied()
}

/// The tool of a call whose input it can take; otherwise what to answer. To be asked before
/// anybody is asked for permission.
pub fn check(name: &str, input: &mut Value) -> Result<&'static dyn BuiltinTool, Box<ToolOutcome>> {
    let tool = named(name).ok_or_else(|| Box::new(unknown(name)))?;
    schema::check(tool, name, input)?;
    Ok(tool)
}

/// What to answer to a call of a tool that is not there.
pub fn unknown(name: &str) -> ToolOutcome {
    let text = format!("Error: No such tool available: {name}");
    ToolOutcome {
        result: Value::String(text.clone()),
        ..ToolOutcome::refused(text)
    }
}

/// The answer of a step that found the input unfit.
fn refuse(text: impl Into<String>) -> Box<ToolOutcome> {
    Box::new(ToolOutcome::refused(text))
}

/// The answer of a step that did not work.
fn fail(text: impl Into<String>) -> Box<ToolOutcome> {
    Box::new(ToolOutcome::failed(text))
}

/// An object schema: fields with a `*` behind their name are required.
fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, field) in fields {
        let bare = name.trim_end_matches('*');
        if bare != name {
            required.push(bare.to_owned());
        }
        properties.insert(bare.to_owned(), field);
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    schema
}

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

fn number(about: &str) -> Value {
    json!({"type": "integer", "description": about})
}

fn truth(about: &str) -> Value {
    json!({"type": "boolean", "description": about})
}

fn choice<const N: usize>(about: &str, choices: [&str; N]) -> Value {
    json!({"type": "string", "enum": choices.to_vec(), "description": about})
}

/// A text of an input that has passed its schema.
fn str_of<'a>(input: &'a Value, name: &str) -> &'a str {
    input[name].as_str().unwrap_or_default()
}

/// A whole number of an input, which may be written as `3.0`.
fn number_of(input: &Value, name: &str) -> Option<u64> {
    let value = input.get(name)?;
    let float = value.as_f64().filter(|it| *it >= 0.0);
    value.as_u64().or(float.map(|it| it as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_that_can_run_has_a_descriptor() {
        for tool in ALL {
            for name in std::iter::once(&tool.name()).chain(tool.old_names()) {
                assert!(unspool_model::tool::known(name).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn no_name_stands_for_two_tools() {
        let mut seen = std::collections::HashSet::new();
        for tool in ALL {
            for name in std::iter::once(&tool.name()).chain(tool.old_names()) {
                assert!(seen.insert(*name), "{name}");
            }
        }
    }

    #[test]
    fn every_schema_is_closed_and_every_field_is_described() {
        fn look(name: &str, schema: &Value) {
            match schema["type"].as_str() {
                // What may hold anything says so.
                Some("object") if schema["additionalProperties"] == true => {}
                Some("object") => {
                    assert_eq!(schema["additionalProperties"], false, "{name}");
                    let properties = schema["properties"].as_object().unwrap();
                    for required in schema["required"].as_array().into_iter().flatten() {
                        assert!(
                            properties.contains_key(required.as_str().unwrap()),
                            "{name}"
                        );
                    }
                    for (key, property) in properties {
                        assert!(property["description"].is_string(), "{name}.{key}");
                        look(&format!("{name}.{key}"), property);
                    }
                }
                Some("array") => look(&format!("{name}[]"), &schema["items"]),
                Some("string" | "integer" | "number" | "boolean") => {}
                other => panic!("{name}: {other:?}"),
            }
        }
        for tool in ALL {
            look(tool.name(), &tool.schema());
            assert!(tool.description().len() > 40, "{}", tool.name());
        }
    }

    #[test]
    fn a_tool_that_is_not_there_is_told_as_the_original_tells_it() {
        let Err(outcome) = check("NoSuchTool", &mut json!({"foo": 1})) else {
            panic!("found");
        };
        assert_eq!(
            outcome.content,
            crate::tool::ToolContent::Text(
                "<tool_use_error>Error: No such tool available: NoSuchTool</tool_use_error>".into()
            )
        );
        assert_eq!(outcome.result, "Error: No such tool available: NoSuchTool");
    }
}
