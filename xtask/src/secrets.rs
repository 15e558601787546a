//! How well secrets are found: a table of families and forms.

use std::ops::Range;

use unspool_model::edit::redact::Redactor;
use unspool_model::secrets::Secrets;
use unspool_testkit::secrets::{Score, judge};

use crate::Outcome;

/// Draws a labelled set and prints what of it is found. `args`: how many of each family and
/// form, and the seed.
pub fn run(args: &[String]) -> Outcome {
    let number = |at: usize, otherwise: u64| match args.get(at) {
        Some(text) => text.parse().map_err(|_| format!("`{text}` is no number")),
        None => Ok(otherwise),
    };
    let (each, seed) = (number(0, 20)?, number(1, 1)?);
    let redactor = Redactor::new(Secrets::standard().clone(), [1; 32]);
    let find = |line: &[u8]| -> Vec<Range<usize>> {
        let places = redactor.places(line).into_iter();
        places
            .map(|place| place.span.start..place.span.end())
            .collect()
    };
    let score = judge(seed, each as usize, find);
    print(&score);
    Ok(())
}

fn print(score: &Score) {
    let share = |(found, all): (usize, usize)| found as f64 * 100.0 / all.max(1) as f64;
    for (title, sums) in [("family", &score.families), ("form", &score.forms)] {
        println!("{title:<24}  found  of      recall");
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
    println!("{} families", score.families.len());
    println!("recall    {:.2} %", score.recall() * 100.0);
    println!("precision {:.2} %", score.precision() * 100.0);
}
