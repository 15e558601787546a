//! What to do when the API fails: a table, without a clock.

use std::time::Duration;

/// How it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiErrorKind {
    /// It answered with this status.
    Status(u16),
    /// It said so in the middle of a stream, such as `overloaded_error`.
    Event(String),
    /// No connection came about.
    Connect,
    /// The other side is not who it should be.
    Certificate,
    /// The stream ended too early.
    Cut,
    /// Nothing came for too long.
    Silent,
}

/// A try that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// How.
    pub kind: ApiErrorKind,
    /// The type of error the API names.
    pub error: String,
    /// What was said about it.
    pub message: String,
    /// The id of the request.
    pub request: Option<Box<str>>,
    /// How long the API asks to be left alone.
    pub after: Option<Duration>,
    /// Whether the API says that trying again makes sense.
    pub again: Option<bool>,
    /// How many blocks had ended.
    pub finished: usize,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Wait, then try again.
    Wait(Duration),
    /// Blocks had ended: what there is stays.
    Keep,
    /// It makes no sense to try again.
    GiveUp,
}

/// So often a request is repeated.
pub const MOST: u32 = 10;
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(8);
/// Whoever asks for a longer pause has no room today.
const PATIENCE: Duration = Duration::from_secs(1800);

impl ApiError {
    /// A failure that is told in one sentence.
    pub fn new(kind: ApiErrorKind, message: impl Into<String>) -> ApiError {
        ApiError {
            kind,
            error: String::new(),
            message: message.into(),
            request: None,
            after: None,
            again: None,
            finished: 0,
        }
    }

    /// The status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        match &self.kind {
            ApiErrorKind::Status(status) => Some(*status),
            ApiErrorKind::Event(name) => Some(match name.as_str() {
                "overloaded_error" => 529,
                "rate_limit_error" => 429,
                "timeout_error" => 504,
                "invalid_request_error" => 400,
                _ => 500,
            }),
            _ => None,
        }
    }

    /// Nothing is left of what may be spent; time does not help.
    fn is_spent(&self) -> bool {
        let said = self.message.to_ascii_lowercase();
        let marks = [
            "spend",
            "credit balance",
            "usage limit",
            "monthly limit",
            "billing",
        ];
        self.status() == Some(429)
            && self.after.is_none()
            && marks.iter().any(|mark| said.contains(mark))
    }

    /// What to do after so many tries (from 1). `most` is how often one may be repeated, and
    /// `chance` between 0 and 1 keeps clients from coming back all at once.
    pub fn next(&self, tries: u32, most: u32, chance: f64) -> RetryDecision {
        if self.finished > 0 {
            return RetryDecision::Keep;
        }
        let sensible = match (self.again, &self.kind) {
            (Some(again), ApiErrorKind::Status(_)) => again,
            (_, ApiErrorKind::Certificate) => false,
            (_, ApiErrorKind::Connect | ApiErrorKind::Cut | ApiErrorKind::Silent) => true,
            (_, ApiErrorKind::Status(_) | ApiErrorKind::Event(_)) => {
                let status = self.status().unwrap_or_default();
                matches!(status, 408 | 409 | 429 | 500..) && !self.is_spent()
            }
        };
        if !sensible || tries > most || self.after.is_some_and(|after| after > PATIENCE) {
            return RetryDecision::GiveUp;
        }
        RetryDecision::Wait(self.after.unwrap_or_else(|| pause(tries, chance)))
    }
}

fn pause(tries: u32, chance: f64) -> Duration {
    let doubled = FIRST * 2_u32.pow(tries.saturating_sub(1).min(10));
    doubled
        .min(LONGEST)
        .mul_f64(1.0 - 0.25 * chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16) -> ApiError {
        ApiError::new(ApiErrorKind::Status(status), "")
    }

    fn wait(ms: u64) -> RetryDecision {
        RetryDecision::Wait(Duration::from_millis(ms))
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for again in [408, 409, 429, 500, 502, 503, 504, 529] {
            assert_eq!(status(again).next(1, MOST, 0.0), wait(500), "{again}");
        }
        for never in [400, 401, 402, 403, 404, 413, 422] {
            assert_eq!(
                status(never).next(1, MOST, 0.0),
                RetryDecision::GiveUp,
                "{never}"
            );
        }
        for kind in [
            ApiErrorKind::Connect,
            ApiErrorKind::Cut,
            ApiErrorKind::Silent,
        ] {
            assert_eq!(ApiError::new(kind, "").next(1, MOST, 0.0), wait(500));
        }
        assert_eq!(
            ApiError::new(ApiErrorKind::Certificate, "").next(1, MOST, 0.0),
            RetryDecision::GiveUp
        );
        let event =
            |name: &str| ApiError::new(ApiErrorKind::Event(name.into()), "").next(1, MOST, 0.0);
        assert_eq!(event("overloaded_error"), wait(500));
        assert_eq!(event("api_error"), wait(500));
        assert_eq!(event("invalid_request_error"), RetryDecision::GiveUp);
    }

    #[test]
    fn pauses_double_up_to_eight_seconds_and_ten_times() {
        let mut clock = Duration::ZERO;
        let mut pauses = Vec::new();
        for tries in 1.. {
            match status(529).next(tries, MOST, 0.0) {
                RetryDecision::Wait(pause) => {
                    clock += pause;
                    pauses.push(pause.as_millis());
                }
                RetryDecision::GiveUp => break,
                RetryDecision::Keep => unreachable!(),
            }
        }
        assert_eq!(
            pauses,
            [500, 1000, 2000, 4000, 8000, 8000, 8000, 8000, 8000, 8000]
        );
        assert_eq!(clock, Duration::from_millis(55_500));
        assert_eq!(status(529).next(1, MOST, 1.0), wait(375));
    }

    #[test]
    fn what_the_api_asks_for_goes_before_the_table() {
        let mut limited = status(429);
        limited.after = Some(Duration::from_secs(2));
        assert_eq!(limited.next(3, MOST, 1.0), wait(2000));
        limited.after = Some(Duration::from_secs(7200));
        assert_eq!(limited.next(1, MOST, 0.0), RetryDecision::GiveUp);
        let mut told = status(500);
        told.again = Some(false);
        assert_eq!(told.next(1, MOST, 0.0), RetryDecision::GiveUp);
        let mut told = status(400);
        told.again = Some(true);
        assert_eq!(told.next(1, MOST, 0.0), wait(500));
    }

    #[test]
    fn a_spent_budget_is_not_tried_again() {
        let mut spent = status(429);
        spent.message = "You have reached your specified API usage limits: monthly limit".into();
        assert_eq!(spent.next(1, MOST, 0.0), RetryDecision::GiveUp);
    }

    #[test]
    fn what_had_ended_is_kept_and_nothing_is_asked_twice() {
        for kind in [
            ApiErrorKind::Cut,
            ApiErrorKind::Silent,
            ApiErrorKind::Event("overloaded_error".into()),
        ] {
            let mut cut = ApiError::new(kind, "");
            cut.finished = 1;
            assert_eq!(cut.next(1, MOST, 0.0), RetryDecision::Keep);
        }
    }
}
