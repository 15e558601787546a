//! How well secrets are found: recall and precision on labelled sets, and what is found in the
//! files of a folder, with how fast that was.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use unspool_model::edit::redact::Redactor;
use unspool_model::log::Log;
use unspool_model::secrets::SecretFinder;
use unspool_testkit::secrets::{Score, judge, judge_named};

use crate::Outcome;

/// Draws labelled sets and prints what of them is found. `args`: how many of each family and
/// form, the seed, and a folder whose files are looked through.
pub fn run(args: &[String]) -> Outcome {
    let number = |at: usize, otherwise: u64| match args.get(at) {
        Some(text) => text.parse().map_err(|_| format!("`{text}` is no number")),
        None => Ok(otherwise),
    };
    let (each, seed) = (number(0, 20)?, number(1, 1)?);
    let redactor = Redactor::new(SecretFinder::standard().clone(), [1; 32]);
    let find = |line: &[u8]| -> Vec<Range<usize>> {
        let places = redactor.places(line).into_iter();
        places
            .map(|place| place.span.start..place.span.end())
            .collect()
    };
    let vendors = judge(seed, each as usize, find);
    let named = judge_named(seed, each as usize, find);
    print(&vendors, "vendor forms");
    print(&named, "named values");
    for (title, score) in [("vendor forms", &vendors), ("named values", &named)] {
        println!(
            "{title}: {} families, recall {:.2} %, precision {:.2} %",
            score.families.len(),
            score.recall() * 100.0,
            score.precision() * 100.0
        );
    }
    if let Some(folder) = args.get(2) {
        look_through(Path::new(folder), &redactor);
    }
    Ok(())
}

fn print(score: &Score, title: &str) {
    let share = |(found, all): (usize, usize)| found as f64 * 100.0 / all.max(1) as f64;
    for (kind, sums) in [("family", &score.families), ("form", &score.forms)] {
        println!("{:<24}  found  of      recall", format!("{title}, {kind}"));
        for (name, sum) in sums {
            println!(
                "{name:<24} {:>6} {:>5} {:>8.1} %",
                sum.0,
                sum.1,
                share(*sum)
            );
        }
        println!();
    }
    for sample in score.missed.iter().take(40) {
        println!("missed {} {}: {}", sample.family, sample.form, sample.line);
    }
    for (sample, what) in score.wrong.iter().take(40) {
        println!("wrong {} {}: {what}", sample.family, sample.form);
    }
}

/// Larger files are data, not text.
const LARGEST: u64 = 64 << 20;

/// Prints every find of a folder, to be judged by a person, how many there are, and the speed.
fn look_through(folder: &Path, redactor: &Redactor) {
    let (mut bytes, mut finds, mut time) = (0, 0, Duration::ZERO);
    for path in files(folder) {
        let Ok(content) = std::fs::read(&path) else {
            continue;
        };
        // Archives and images hold a zero byte early on.
        if content.iter().take(4096).any(|byte| *byte == 0) {
            continue;
        }
        bytes += content.len();
        let is_transcript = path.extension().is_some_and(|end| end == "jsonl");
        let log = Log::new(content);
        let start = Instant::now();
        let places: Vec<_> = match is_transcript {
            true => {
                let lines = log.lines();
                lines.flat_map(|line| redactor.places(line.bytes)).collect()
            }
            false => redactor.places_of_text(log.as_bytes()),
        };
        time += start.elapsed();
        finds += places.len();
        for place in places {
            println!("{}: {}: {:?}", path.display(), place.rule, place.secret);
        }
    }
    let megabytes = bytes as f64 / 1e6;
    println!(
        "{}: {finds} finds in {megabytes:.0} MB ({:.1} in 51 MB), {:.0} MB/s",
        folder.display(),
        finds as f64 * 51.0 / megabytes.max(0.001),
        megabytes / time.as_secs_f64().max(1e-9)
    );
}

/// All files below a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => folders.push(entry.path()),
                Ok(meta) if meta.is_file() && meta.len() <= LARGEST => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    files
}
