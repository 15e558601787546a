//! WebSearch: a search on the model's side.

use std::time::Instant;

use serde_json::{Value, json};

use super::{object, str_of, text};
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContext, ToolOutcome};

/// The tool.
#[derive(Debug)]
pub struct WebSearchTool;

impl BuiltinTool for WebSearchTool {
    fn name(&self) -> &'static str {
        "WebSearch"
    }

    fn description(&self) -> String {
        "Searches the web and gives titles and addresses with what they say. For what happened \
         lately or is not in the project. Say where you have it from, with links."
            .to_owned()
    }

    fn schema(&self) -> Value {
        let domains = |about: &str| json!({"type": "array", "items": {"type": "string"}, "description": about});
        let mut query = text("What to search for");
        query["minLength"] = json!(2);
        object([
            ("query*", query),
            (
                "allowed_domains",
                domains("Only results from these domains"),
            ),
            ("blocked_domains", domains("No results from these domains")),
        ])
    }

    fn only_reads(&self, _: &Value) -> bool {
        true
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        let began = Instant::now();
        let both = ["allowed_domains", "blocked_domains"].map(|name| call.input.get(name));
        if both.iter().all(|list| list.is_some()) {
            return ToolOutcome::refused(
                "Cannot specify both allowed_domains and blocked_domains in the same request",
            );
        }
        let query = str_of(&call.input, "query");
        let asked = json!({"type": "query_update", "query": query});
        scene.host.progress(call, asked);
        match scene.host.web_search(call) {
            Ok(blocks) => {
                for (query, count) in searched(query, &blocks) {
                    let found = json!({
                        "type": "search_results_received", "resultCount": count, "query": query,
                    });
                    scene.host.progress(call, found);
                }
                tell(query, &blocks, began)
            }
            Err(why) => ToolOutcome::failed(why),
        }
    }
}

/// What was searched for, and how much was found each time.
fn searched<'a>(query: &'a str, blocks: &'a [Value]) -> Vec<(&'a str, usize)> {
    let mut last = query;
    let mut all = Vec::new();
    for block in blocks {
        match block["type"].as_str() {
            Some("server_tool_use") => last = block["input"]["query"].as_str().unwrap_or(query),
            Some("web_search_tool_result") => {
                all.push((last, block["content"].as_array().map_or(0, Vec::len)));
            }
            _ => {}
        }
    }
    all
}

/// What the reply says, and what was found.
fn tell(query: &str, blocks: &[Value], began: Instant) -> ToolOutcome {
    let mut results = Vec::new();
    let mut text = format!("Web search results for query: \"{query}\"\n");
    let mut said = String::new();
    for block in blocks {
        match block["type"].as_str() {
            Some("text") => said += block["text"].as_str().unwrap_or_default(),
            Some("web_search_tool_result") => {
                flush(&mut said, &mut text, &mut results);
                results.push(found(block, &mut text));
            }
            _ => {}
        }
    }
    flush(&mut said, &mut text, &mut results);
    let seconds = began.elapsed().as_secs_f64();
    let result = json!({"query": query, "results": results, "durationSeconds": seconds});
    ToolOutcome::done(text.trim_end(), result)
}

fn flush(said: &mut String, text: &mut String, results: &mut Vec<Value>) {
    if !said.trim().is_empty() {
        *text += &format!("\n{}\n", said.trim());
        results.push(json!(said.trim()));
    }
    said.clear();
}

fn found(block: &Value, text: &mut String) -> Value {
    if let Some(code) = block["content"]["error_code"].as_str() {
        *text += &format!("\nWeb search error: {code}\n");
        return json!(format!("Web search error: {code}"));
    }
    let links = block["content"].as_array().into_iter().flatten();
    let links: Vec<Value> = links
        .filter(|link| link["url"].is_string())
        .map(|link| json!({"title": link["title"], "url": link["url"]}))
        .collect();
    *text += &match links.is_empty() {
        true => "\nNo links found.\n".to_owned(),
        false => format!("\nLinks: {}\n", Value::Array(links.clone())),
    };
    json!({"tool_use_id": block["tool_use_id"], "content": links})
}
