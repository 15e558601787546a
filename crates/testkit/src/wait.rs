//! Waiting for what other threads and processes do: asked again and again, never a fixed time.

use std::time::{Duration, Instant};

/// How long is waited on a machine with much else to do, before something counts as not happening.
pub const LONG: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(5);

/// Waits until it is so.
///
/// # Panics
///
/// If it does not happen.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let done = wait_for(|| is_so().then_some(()));
    assert!(done.is_some(), "waited in vain: {what}");
}

/// Waits for something to be there; `None` if it does not come.
pub fn wait_for<T>(mut found: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + LONG;
    loop {
        let there = found();
        if there.is_some() || Instant::now() >= end {
            return there;
        }
        std::thread::sleep(STEP);
    }
}
