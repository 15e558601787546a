//! Findings in the Static Analysis Results Interchange Format, version 2.1.0.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::wire::secret::SecretRow;

/// The document for these findings. Rules are given with what they find; those that are not
/// among them (values of the environment) are added.
pub fn document<'a>(
    version: &str,
    rules: impl Iterator<Item = (&'a str, &'a str)>,
    rows: &[SecretRow],
) -> Value {
    let mut list: Vec<Value> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (id, about) in rules {
        places.insert(id.to_owned(), list.len());
        list.push(rule(id, about));
    }
    let mut results = Vec::with_capacity(rows.len());
    for row in rows {
        let index = *places.entry(row.rule.clone()).or_insert_with(|| {
            list.push(rule(&row.rule, "Value of a variable of the environment"));
            list.len() - 1
        });
        results.push(result(row, index));
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "unspool", "version": version, "rules": list } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(id: &str, about: &str) -> Value {
    json!({
        "id": id,
        "shortDescription": { "text": about },
        "defaultConfiguration": { "level": "error" },
    })
}

fn result(row: &SecretRow, index: usize) -> Value {
    let region = json!({
        "startLine": row.line,
        "startColumn": row.column,
        "endColumn": row.end_column,
        "snippet": { "text": row.snippet },
    });
    let message = format!("{} in {} of session {}", row.rule, row.r#where, row.session);
    json!({
        "ruleId": row.rule,
        "ruleIndex": index,
        "level": "error",
        "message": { "text": message },
        "locations": [{
            "physicalLocation": {
                "artifactLocation": { "uri": uri(&row.path) },
                "region": region,
            },
        }],
        "partialFingerprints": { "secret/v1": row.hash },
    })
}

/// A path as an address.
fn uri(path: &str) -> String {
    let mut uri = String::from("file://");
    let path = path.replace('\\', "/");
    if !path.starts_with('/') {
        uri.push('/');
    }
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' | b':' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_name_their_rule_and_place() {
        let row = |rule: &str| SecretRow {
            session: "s".into(),
            path: "/a b/é.jsonl".into(),
            line: 3,
            column: 5,
            end_column: 9,
            r#where: "prompt".into(),
            rule: rule.into(),
            snippet: "x".into(),
            hash: "abcdef".into(),
            secret: None,
            agent: None,
        };
        let rules = [("one", "One"), ("two", "Two")];
        let document = document("1", rules.into_iter(), &[row("two"), row("MY_KEY")]);
        let run = &document["runs"][0];
        let listed = run["tool"]["driver"]["rules"].as_array().unwrap();
        for (at, result) in run["results"].as_array().unwrap().iter().enumerate() {
            let index = result["ruleIndex"].as_u64().unwrap() as usize;
            assert_eq!(listed[index]["id"], result["ruleId"]);
            assert_eq!(index, at + 1);
        }
        let place = &run["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(
            place["artifactLocation"]["uri"],
            "file:///a%20b/%C3%A9.jsonl"
        );
        assert_eq!(place["region"]["startLine"], 3);
    }
}
