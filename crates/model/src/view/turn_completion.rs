//! When a turn may be told to others as a whole.
//!
//! A turn that is over may. One that goes on waits, unless its session was left: then what was
//! said is all there is. A prompt that nobody answered waits even then, because the id of its
//! trace is that of its first answer.

use crate::time::Time;

/// A session that nobody wrote to for longer, in milliseconds, was left.
pub const QUIET: i64 = 60 * 60 * 1_000;

/// How far a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnProgress {
    /// Nothing more is to be expected.
    pub over: bool,
    /// A model answered.
    pub answered: bool,
}

impl TurnProgress {
    /// Whether it may be told, given whether its session was left.
    pub fn is_ready(self, left: bool) -> bool {
        self.over || (left && self.answered)
    }

    /// Whether it may be told once its session was left, and not before.
    pub fn is_owed(self) -> bool {
        !self.over && self.answered
    }
}

/// Whether a session that was last written to then has been quiet for long.
pub fn is_quiet(written: Time, now: Time) -> bool {
    now.0.saturating_sub(written.0) > QUIET
}

/// Whether a session was left, so that its last turn will not go on: somebody said so, or it is
/// quiet and no client has it open. Clients are asked only if it matters.
pub fn is_left(told: bool, written: Time, now: Time, in_use: impl FnOnce() -> bool) -> bool {
    told || (is_quiet(written, now) && !in_use())
}

/// Whether there may be something new to tell of a session that had something left: a turn that
/// was open can go when the session is quiet, and whatever a receiver missed at once.
pub fn is_due(open: bool, written: Time, now: Time) -> bool {
    !open || is_quiet(written, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: Time = Time(1_000_000_000_000);

    fn after(milliseconds: i64) -> Time {
        Time(THEN.0 + milliseconds)
    }

    fn turn(over: bool, answered: bool) -> TurnProgress {
        TurnProgress { over, answered }
    }

    #[test]
    fn a_turn_that_is_over_goes_at_once_also_without_an_answer() {
        assert!(turn(true, true).is_ready(false));
        assert!(turn(true, false).is_ready(false));
        assert!(!turn(true, true).is_owed());
    }

    #[test]
    fn an_open_turn_goes_when_its_session_was_left() {
        assert!(!turn(false, true).is_ready(false));
        assert!(turn(false, true).is_ready(true));
        assert!(turn(false, true).is_owed());
    }

    #[test]
    fn a_prompt_without_an_answer_waits_for_one_however_long() {
        assert!(!turn(false, false).is_ready(true));
        assert!(
            !turn(false, false).is_owed(),
            "nobody need come back for it"
        );
    }

    #[test]
    fn a_session_is_left_after_an_hour_and_not_in_it() {
        let left = |now| is_left(false, THEN, now, || false);
        assert!(!left(after(0)) && !left(after(QUIET)));
        assert!(left(after(QUIET + 1)));
    }

    #[test]
    fn a_session_that_a_client_has_open_is_not_left() {
        assert!(!is_left(false, THEN, after(24 * QUIET), || true));
    }

    #[test]
    fn whoever_says_that_a_session_ended_is_believed_and_nobody_is_asked() {
        assert!(is_left(true, THEN, THEN, || unreachable!()));
        assert!(!is_left(false, THEN, THEN, || unreachable!()));
    }

    #[test]
    fn a_clock_that_was_set_back_leaves_no_session() {
        assert!(!is_left(false, THEN, after(-24 * QUIET), || false));
        assert!(!is_left(false, Time(i64::MAX), Time(i64::MIN), || false));
    }

    #[test]
    fn what_a_receiver_missed_is_due_at_once_and_an_open_turn_after_an_hour() {
        assert!(is_due(false, THEN, THEN));
        assert!(!is_due(true, THEN, after(QUIET)));
        assert!(is_due(true, THEN, after(QUIET + 1)));
    }
}
