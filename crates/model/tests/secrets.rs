//! The finder of secrets, judged by tokens that were drawn from what their makers say of them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use unspool_model::edit::redact::Redactor;
use unspool_model::secrets::SecretFinder;
use unspool_testkit::secrets::{judge, judge_named};

#[test]
fn tokens_of_all_makers_are_found_in_every_form_and_little_else_is() {
    let redactor = Redactor::new(SecretFinder::standard().clone(), [1; 32]);
    let score = judge(5, 2, |line| {
        let places = redactor.places(line).into_iter();
        places
            .map(|place| place.span.start..place.span.end())
            .collect()
    });
    let (recall, precision) = (score.recall(), score.precision());
    let missed: Vec<_> = score
        .missed
        .iter()
        .map(|one| (one.family, one.form))
        .collect();
    assert!(recall >= 0.98, "{recall}: {missed:?}");
    let wrong: Vec<_> = score
        .wrong
        .iter()
        .map(|(one, what)| (one.family, what))
        .collect();
    assert!(precision >= 0.95, "{precision}: {wrong:?}");
}

#[test]
fn values_that_their_name_tells_are_found_to_their_end_and_little_else_is() {
    let redactor = Redactor::new(SecretFinder::standard().clone(), [1; 32]);
    let score = judge_named(7, 6, |line| {
        let places = redactor.places(line).into_iter();
        places
            .map(|place| place.span.start..place.span.end())
            .collect()
    });
    let (recall, precision) = (score.recall(), score.precision());
    let missed = score.missed.iter().map(|one| (one.family, &one.line));
    let missed: Vec<_> = missed.collect();
    assert!(recall >= 0.95, "{recall}: {missed:#?}");
    let wrong = score.wrong.iter().map(|(one, what)| (one.family, what));
    let wrong: Vec<_> = wrong.collect();
    assert!(precision >= 0.95, "{precision}: {wrong:#?}");
}
