//! Every system call fails, in every way, at every point: the files are the old ones or the new
//! ones, and undoing still works.

use crate::disk::test::{FailureMode, with};
use crate::journal::tests::kit::{self, Deed, Home, Relative, relative};

const ENOSPC: i32 = 28;
const EIO: i32 = 5;
const EROFS: i32 = 30;
const EINTR: i32 = 4;

const WAYS: [FailureMode; 9] = [
    FailureMode::Once(ENOSPC),
    FailureMode::Once(EIO),
    FailureMode::Once(EROFS),
    FailureMode::Once(EINTR),
    FailureMode::Always(ENOSPC),
    FailureMode::Always(EIO),
    FailureMode::Short,
    FailureMode::Dead,
    FailureMode::Torn,
];

/// What is done first without faults, and what is then done on a failing disk.
const CASES: [(&str, &[Deed], Deed); 9] = [
    ("clone", &[], kit::clone),
    ("edit", &[], kit::edit),
    ("title", &[], kit::title),
    ("move", &[], kit::moving),
    ("undo clone", &[kit::clone], kit::undo),
    ("undo edit", &[kit::edit], kit::undo),
    ("undo title", &[kit::title], kit::undo),
    ("undo move", &[kit::moving], kit::undo),
    ("redo move", &[kit::moving, kit::undo], kit::redo),
];

fn prepared(before: &[Deed]) -> Home {
    let home = Home::new();
    for deed in before {
        deed(&home).unwrap();
    }
    home
}

fn pictures(before: &[Deed], deed: Deed) -> (Relative, Relative) {
    let home = prepared(before);
    let old = relative(&home);
    deed(&home).unwrap();
    (old, relative(&home))
}

#[test]
fn killed_at_any_call_the_files_are_old_or_new_and_nothing_is_left_behind() {
    let points = strike(&[FailureMode::Dead], 1);
    assert!(points > 1_000, "{points}");
}

#[test]
fn whatever_call_fails_the_files_are_old_or_new() {
    let points = strike(&WAYS, 17);
    assert!(points > 500, "{points}");
}

#[test]
#[ignore = "half a minute: every call, every way"]
fn every_call_fails_in_every_way() {
    let points = strike(&WAYS, 1);
    println!("{points} points");
    assert!(points > 10_000, "{points}");
}

/// Does every deed with every `step`-th call failing; says how often one did.
fn strike(ways: &[FailureMode], step: usize) -> usize {
    let mut points = 0;
    for (name, before, deed) in CASES {
        let (old, new) = pictures(before, deed);
        for (first, &how) in ways.iter().enumerate() {
            for k in (first % step..).step_by(step) {
                let home = prepared(before);
                let noted = home.noted();
                let (result, struck) = with(k, how, || deed(&home));
                if !struck {
                    assert!(result.is_ok(), "{name} {how:?} {k}: {result:?}");
                    break;
                }
                points += 1;
                let shown = format!("{name}, call {k} fails as {how:?}: {result:?}");
                // Before anybody cleans up, an error that is over has left the old files.
                if matches!(how, FailureMode::Once(_)) && result.is_err() {
                    assert_eq!(relative(&home), old, "{shown}");
                }
                home.journal().recover().unwrap();
                let now = relative(&home);
                match &result {
                    Ok(_) => assert_eq!(now, new, "{shown}"),
                    Err(_) if matches!(how, FailureMode::Once(_)) => {
                        assert_eq!(now, old, "{shown}")
                    }
                    Err(_) => assert!(now == old || now == new, "{shown}\n{now:?}"),
                }
                if now == new {
                    assert_eq!(home.noted(), noted + 1, "{shown}");
                    let latest = home.journal().list().unwrap().pop().unwrap();
                    home.undo(Some(latest.entry.number)).unwrap();
                    assert_eq!(relative(&home), old, "undone: {shown}");
                } else {
                    assert_eq!(home.noted(), noted, "{shown}");
                }
            }
        }
    }
    points
}

#[test]
fn an_error_names_the_file_and_says_what_to_do() {
    let mut told = 0;
    for k in 0.. {
        let home = Home::new();
        let (result, struck) = with(k, FailureMode::Once(ENOSPC), || kit::edit(&home));
        if !struck {
            break;
        }
        if let Err(error) = result {
            let text = error.to_string();
            assert!(text.contains("no space left on the disk"), "{text}");
            assert!(text.contains('/'), "{text}");
            assert!(
                error.hint().unwrap().starts_with("free disk space"),
                "{text}"
            );
            told += 1;
        }
    }
    assert!(told > 20, "{told}");
}

#[test]
fn a_crash_during_the_recovery_from_a_crash_is_recovered_from() {
    let mut points = 0;
    for (name, before, deed) in [CASES[1], CASES[2], CASES[3], CASES[7]] {
        let (old, new) = pictures(before, deed);
        for k in (0..).step_by(5) {
            let mut died = false;
            for second in (k % 2..).step_by(2) {
                let home = prepared(before);
                let (_, struck) = with(k, FailureMode::Dead, || deed(&home));
                died = struck;
                let (_, again) = with(second, FailureMode::Dead, || home.journal().recover());
                if !again {
                    break;
                }
                points += 1;
                home.journal().recover().unwrap();
                let now = relative(&home);
                assert!(now == old || now == new, "{name} {k} {second}: {now:?}");
            }
            if !died {
                break;
            }
        }
    }
    assert!(points > 1_000, "{points}");
}
