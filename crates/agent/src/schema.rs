//! Whether an input is as the schema of its tool says, and what to say if it is not.
//!
//! Knows the part of JSON schema that our tools use. The model is told in words; the line says
//! it as the original's own library does.

use serde_json::{Map, Value, json};

use crate::tool::{BuiltinTool, ToolOutcome};

/// Checks the input of a call. Numbers and truths written as texts are taken for what they
/// mean.
pub fn check(
    tool: &dyn BuiltinTool,
    name: &str,
    input: &mut Value,
) -> Result<(), Box<ToolOutcome>> {
    let mut faults = Vec::new();
    look(&tool.schema(), input, &mut Vec::new(), &mut faults);
    if faults.is_empty() {
        return Ok(());
    }
    Err(Box::new(refusal(name, &faults)))
}

fn refusal(name: &str, faults: &[SchemaFault]) -> ToolOutcome {
    let mut ranked: Vec<&SchemaFault> = faults.iter().collect();
    ranked.sort_by_key(|fault| fault.rank);
    let lines: Vec<&str> = ranked.iter().map(|fault| &*fault.words).collect();
    let issue = if lines.len() > 1 { "issues" } else { "issue" };
    let words = format!(
        "InputValidationError: {name} failed due to the following {issue}:\n{}",
        lines.join("\n")
    );
    let issues: Vec<Value> = faults.iter().map(|fault| fault.issue.clone()).collect();
    let issues = serde_json::to_string_pretty(&issues).unwrap_or_default();
    ToolOutcome {
        result: Value::String(format!("InputValidationError: {issues}")),
        ..ToolOutcome::refused(words)
    }
}

#[derive(Debug)]
struct SchemaFault {
    rank: u8,
    words: String,
    issue: Value,
}

#[derive(Clone, Debug)]
enum SchemaPathStep {
    Key(String),
    At(usize),
}

fn path(steps: &[SchemaPathStep]) -> Value {
    let step = |step: &SchemaPathStep| match step {
        SchemaPathStep::Key(key) => json!(key),
        SchemaPathStep::At(at) => json!(at),
    };
    steps.iter().map(step).collect()
}

fn words(steps: &[SchemaPathStep]) -> String {
    let mut words = String::new();
    for step in steps {
        match step {
            SchemaPathStep::Key(key) if words.is_empty() => words += key,
            SchemaPathStep::Key(key) => words += &format!(".{key}"),
            SchemaPathStep::At(at) => words += &format!("[{at}]"),
        }
    }
    words
}

fn look(
    schema: &Value,
    value: &mut Value,
    steps: &mut Vec<SchemaPathStep>,
    faults: &mut Vec<SchemaFault>,
) {
    let Some(expected) = schema["type"].as_str() else {
        return;
    };
    mean(expected, value);
    if !is(expected, value) {
        faults.push(wrong_type(expected, Some(value), steps));
        return;
    }
    if let Some(words_of) = out_of_bounds(schema, value) {
        faults.push(other(steps, &words_of, json!({"code": "custom"})));
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        faults.push(no_choice(choices, steps));
    }
    match value {
        Value::Object(fields) => look_inside(schema, fields, steps, faults),
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                steps.push(SchemaPathStep::At(at));
                look(&schema["items"], item, steps, faults);
                steps.pop();
            }
        }
        _ => {}
    }
}

fn look_inside(
    schema: &Value,
    fields: &mut Map<String, Value>,
    steps: &mut Vec<SchemaPathStep>,
    faults: &mut Vec<SchemaFault>,
) {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let required = schema["required"].as_array();
    let is_required = |key: &str| required.is_some_and(|it| it.iter().any(|name| name == key));
    for (key, property) in properties {
        steps.push(SchemaPathStep::Key(key.clone()));
        match fields.get_mut(key) {
            Some(value) => look(property, value, steps, faults),
            None if is_required(key) => {
                let expected = property["type"].as_str().unwrap_or("unknown");
                faults.push(wrong_type(expected, None, steps));
            }
            None => {}
        }
        steps.pop();
    }
    if schema["additionalProperties"] == false {
        let strange = fields.keys().filter(|key| !properties.contains_key(*key));
        let strange: Vec<&String> = strange.collect();
        faults.extend(unexpected(&strange, steps));
    }
}

/// A number or a truth in quotes becomes what it says.
fn mean(expected: &str, value: &mut Value) {
    let Value::String(text) = value else { return };
    let meant = match (expected, &**text) {
        ("boolean", "true") => json!(true),
        ("boolean", "false") => json!(false),
        ("number" | "integer", text) => match text.parse::<i64>() {
            Ok(number) => json!(number),
            Err(_) => return,
        },
        _ => return,
    };
    *value = meant;
}

fn is(expected: &str, value: &Value) -> bool {
    match expected {
        "integer" => value.is_u64() || value.is_i64() || value.as_f64().is_some_and(whole),
        other => name_of(value) == other,
    }
}

fn whole(number: f64) -> bool {
    number.fract() == 0.0
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn wrong_type(expected: &str, value: Option<&Value>, steps: &[SchemaPathStep]) -> SchemaFault {
    let name = words(steps);
    let expected = if expected == "integer" {
        "number"
    } else {
        expected
    };
    let received = value.map_or("undefined", name_of);
    let issue = json!({
        "expected": expected,
        "code": "invalid_type",
        "path": path(steps),
        "message": format!("Invalid input: expected {expected}, received {received}"),
    });
    match value {
        None => SchemaFault {
            rank: 0,
            words: format!("The required parameter `{name}` is missing"),
            issue,
        },
        Some(_) => SchemaFault {
            rank: 2,
            words: format!(
                "The parameter `{name}` type is expected as `{expected}` but provided as `{received}`"
            ),
            issue,
        },
    }
}

fn unexpected(keys: &[&String], steps: &[SchemaPathStep]) -> Option<SchemaFault> {
    let quoted: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
    let lines: Vec<String> = keys
        .iter()
        .map(|key| {
            let mut steps = steps.to_vec();
            steps.push(SchemaPathStep::Key((*key).clone()));
            let name = words(&steps);
            format!("An unexpected parameter `{name}` was provided")
        })
        .collect();
    let many = if keys.len() > 1 { "keys" } else { "key" };
    let issue = json!({
        "code": "unrecognized_keys",
        "keys": keys,
        "path": path(steps),
        "message": format!("Unrecognized {many}: {}", quoted.join(", ")),
    });
    (!keys.is_empty()).then(|| SchemaFault {
        rank: 1,
        words: lines.join("\n"),
        issue,
    })
}

fn no_choice(choices: &[Value], steps: &[SchemaPathStep]) -> SchemaFault {
    let quoted: Vec<String> = choices.iter().map(Value::to_string).collect();
    let says = format!("Invalid option: expected one of {}", quoted.join("|"));
    let issue = json!({"code": "invalid_value", "values": choices});
    other(steps, &says, issue)
}

fn other(steps: &[SchemaPathStep], says: &str, mut issue: Value) -> SchemaFault {
    let name = words(steps);
    issue["path"] = path(steps);
    issue["message"] = json!(says);
    SchemaFault {
        rank: 3,
        words: format!("The parameter `{name}` is not valid: {says}"),
        issue,
    }
}

fn out_of_bounds(schema: &Value, value: &Value) -> Option<String> {
    let bound = |name: &str| schema[name].as_f64();
    let (kind, size) = match value {
        Value::Number(number) => ("number", number.as_f64()?),
        Value::Array(items) => ("array", items.len() as f64),
        Value::String(text) => ("string", text.chars().count() as f64),
        _ => return None,
    };
    let (least, most) = match kind {
        "number" => ("minimum", "maximum"),
        "array" => ("minItems", "maxItems"),
        _ => ("minLength", "maxLength"),
    };
    if let Some(bound) = bound(least).filter(|bound| size < *bound) {
        return Some(format!("Too small: expected {kind} to be >={bound}"));
    }
    if let Some(bound) = bound("exclusiveMinimum").filter(|bound| size <= *bound) {
        return Some(format!("Too small: expected {kind} to be >{bound}"));
    }
    let bound = bound(most).filter(|bound| size > *bound)?;
    Some(format!("Too big: expected {kind} to be <={bound}"))
}

#[cfg(test)]
mod tests {
    use crate::tool::ToolContent;

    use super::*;

    fn told(name: &str, mut input: Value) -> (String, String) {
        let tool = crate::tools::named(name).unwrap();
        let outcome = check(tool, name, &mut input).unwrap_err();
        let ToolContent::Text(text) = outcome.content else {
            panic!("no text");
        };
        (text, outcome.result.as_str().unwrap().to_owned())
    }

    #[test]
    fn a_wrong_input_is_told_as_the_original_tells_it() {
        let (text, result) = told("Read", json!({"wrong_arg": 1}));
        assert_eq!(
            text,
            "<tool_use_error>InputValidationError: Read failed due to the following issues:\nThe required parameter `file_path` is missing\nAn unexpected parameter `wrong_arg` was provided</tool_use_error>"
        );
        assert_eq!(
            result,
            "InputValidationError: [\n  {\n    \"expected\": \"string\",\n    \"code\": \"invalid_type\",\n    \"path\": [\n      \"file_path\"\n    ],\n    \"message\": \"Invalid input: expected string, received undefined\"\n  },\n  {\n    \"code\": \"unrecognized_keys\",\n    \"keys\": [\n      \"wrong_arg\"\n    ],\n    \"path\": [],\n    \"message\": \"Unrecognized key: \\\"wrong_arg\\\"\"\n  }\n]"
        );
    }

    #[test]
    fn types_choices_and_bounds_are_checked_inside_too() {
        let (text, _) = told("Read", json!({"file_path": 5}));
        assert!(text.contains("failed due to the following issue:\nThe parameter `file_path` type is expected as `string` but provided as `number`"));
        let todo = json!({"content": "x", "status": "later", "activeForm": "y", "more": 1});
        let (text, _) = told("TodoWrite", json!({"todos": [todo]}));
        assert!(text.contains("An unexpected parameter `todos[0].more` was provided"));
        assert!(text.contains("`todos[0].status`") && text.contains("\"in_progress\""));
        let (text, _) = told("Bash", json!({"command": "x", "timeout": 600_001}));
        assert!(text.contains("<=600000"), "{text}");
        let (text, _) = told("Read", json!({"file_path": "x", "limit": 0}));
        assert!(text.contains(">0"), "{text}");
    }

    #[test]
    fn numbers_and_truths_in_quotes_are_meant_as_such() {
        let mut input = json!({"command": "x", "timeout": "5000", "run_in_background": "true"});
        let tool = crate::tools::named("Bash").unwrap();
        assert_eq!(check(tool, "Bash", &mut input), Ok(()));
        assert_eq!(
            input,
            json!({"command": "x", "timeout": 5000, "run_in_background": true})
        );
    }
}
