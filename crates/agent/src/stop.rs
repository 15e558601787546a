//! Stopping: one flag that whoever works looks at, and can wait on.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Told once, seen by all its clones.
#[derive(Clone, Debug, Default)]
pub struct StopSignal {
    told: Arc<(Mutex<bool>, Condvar)>,
}

impl StopSignal {
    /// Nobody said stop yet.
    pub fn new() -> StopSignal {
        StopSignal::default()
    }

    /// Says stop. Everybody who waits wakes up.
    pub fn tell(&self) {
        let (told, wake) = &*self.told;
        *told.lock().unwrap_or_else(PoisonError::into_inner) = true;
        wake.notify_all();
    }

    /// Whether somebody said stop.
    pub fn is_told(&self) -> bool {
        *self.told.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for it, at most so long; whether it was said.
    pub fn wait(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        let (told, wake) = &*self.told;
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        while !*told {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            told = match wake.wait_timeout(told, left) {
                Ok((told, _)) => told,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        *told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_wakes_when_stop_is_said() {
        let stop = StopSignal::new();
        let other = stop.clone();
        let waiting = std::thread::spawn(move || other.wait(Duration::from_secs(60)));
        stop.tell();
        assert!(waiting.join().unwrap_or(false));
        assert!(stop.is_told());
    }

    #[test]
    fn waiting_ends_when_the_time_is_over() {
        assert!(!StopSignal::new().wait(Duration::from_millis(1)));
    }
}
