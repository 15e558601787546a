//! Every needle stands where the truth says, and nowhere else.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{files, tree};

/// All texts of a value, with colours taken out.
fn texts(value: &Value, all: &mut String) {
    match value {
        Value::String(text) => {
            all.push_str(&without_colours(text));
            all.push('\u{0}');
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, all)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, all)),
        _ => {}
    }
}

fn without_colours(text: &str) -> String {
    let mut clean = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        clean.push_str(before);
        let end = after.find('m').map_or(after.len(), |end| end + 1);
        rest = &after[end..];
    }
    clean + rest
}

/// Every line of transcripts and spilled results: file, number, uuid, text.
fn lines(dir: &Path) -> Vec<(PathBuf, u64, Option<String>, String)> {
    let mut all = Vec::new();
    for path in files(dir) {
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            let Ok(value) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let mut found = String::new();
            texts(&value, &mut found);
            let uuid = value["uuid"].as_str().map(str::to_owned);
            all.push((path.clone(), number, uuid, found));
        }
        let spilled = path.with_extension("").join("tool-results");
        for entry in fs::read_dir(spilled).into_iter().flatten() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            for (number, line) in (1..).zip(text.lines()) {
                all.push((path.clone(), number, None, without_colours(line)));
            }
        }
    }
    all
}

#[test]
fn every_needle_stands_in_its_place_and_in_no_other() {
    let (dir, truth) = tree();
    let lines = lines(dir.path());
    assert_eq!(truth.needles.len(), 19);
    for needle in &truth.needles {
        let found: Vec<_> = lines
            .iter()
            .filter(|(_, _, _, text)| text.contains(&needle.text))
            .map(|(path, number, uuid, _)| (path.clone(), *number, uuid.clone()))
            .collect();
        let place = (
            dir.path().join(&needle.path),
            needle.line,
            needle.uuid.clone(),
        );
        assert_eq!(found, [place], "{}", needle.kind);
    }
}
