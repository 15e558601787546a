//! Secrets in files: `cargo run --release --example secrets -- FILE…`.
//!
//! Transcripts are decoded first, as the rest of the program does; other files are text. Says
//! which rule found what where, and how fast it was. To judge rules by: the secrets are shown.

use std::time::{Duration, Instant};

use serde_json::Value;
use unspool_model::secrets::Secrets;

fn main() -> std::io::Result<()> {
    let start = Instant::now();
    let secrets = Secrets::standard();
    println!("ready in {:?}", start.elapsed());
    let (mut bytes, mut time) = (0, Duration::ZERO);
    for path in std::env::args().skip(1) {
        let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
        let texts = if path.ends_with(".jsonl") {
            decoded(&text)
        } else {
            vec![text]
        };
        for text in &texts {
            let start = Instant::now();
            let found = secrets.find(text);
            time += start.elapsed();
            bytes += text.len();
            for secret in found {
                println!("{path}: {}: {:?}", secret.rule, &text[secret.range]);
            }
        }
    }
    let speed = bytes as f64 / 1e6 / time.as_secs_f64();
    println!("{bytes} bytes in {time:?}: {speed:.0} MB/s");
    Ok(())
}

fn decoded(text: &str) -> Vec<String> {
    let values = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let mut texts = Vec::new();
    values.for_each(|value: Value| strings(value, &mut texts));
    texts
}

fn strings(value: Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.into_iter().for_each(|item| strings(item, texts)),
        Value::Object(fields) => fields
            .into_iter()
            .for_each(|(_, field)| strings(field, texts)),
        _ => {}
    }
}
