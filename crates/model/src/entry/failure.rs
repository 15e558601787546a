//! What a line says about a failure of the API, and when a limit is over.
//!
//! The client has written limits in many ways: a time in seconds behind a bar (1.0), a time of
//! the day with or without its zone, a date before it. What a clock in a zone means is asked of
//! whoever knows zones; nothing here does.

use crate::entry::{HEAD, clip};
use crate::json;
use crate::time::Time;

/// A failure of the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiFailure {
    /// What the client says about it.
    pub text: String,
    /// What kind of failure it is, such as `rate_limit`.
    pub kind: Option<Box<str>>,
    /// Which attempt it was, of how many: the client tries again by itself.
    pub attempt: Option<(u64, u64)>,
    /// When a limit is over.
    pub resets: Option<LimitReset>,
}

/// When a limit is over, as the client says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitReset {
    /// At this time.
    At(Time),
    /// When clocks in a zone show this.
    Clock {
        /// Month and day, if they are named.
        date: Option<(i8, i8)>,
        /// Hour, of 24.
        hour: i8,
        /// Minute.
        minute: i8,
        /// The zone; none is that of the machine.
        zone: Option<Box<str>>,
    },
}

impl ApiFailure {
    /// Reads the object of a line; `said` is what stands in it as a reply.
    pub(super) fn read(bytes: &[u8], said: Option<&str>) -> ApiFailure {
        let text = |path: &[&str]| {
            let raw = json::find(bytes, path)?.of(bytes);
            let is_text = raw.first() == Some(&b'"');
            is_text
                .then(|| json::string(raw).into_owned())
                .filter(|text| !text.trim().is_empty())
        };
        let number =
            |path: &[&str]| json::find(bytes, path).and_then(|span| json::count(span.of(bytes)));
        let words = said
            .map(str::to_owned)
            .or_else(|| text(&["error", "formatted"]))
            .or_else(|| text(&["error", "message"]))
            .or_else(|| text(&["content"]))
            .unwrap_or_default();
        let limits = json::find(bytes, &["error", "rateLimits"]).map(|span| span.of(bytes));
        ApiFailure {
            kind: text(&["error"])
                .or_else(|| text(&["apiError"]))
                .map(Into::into),
            attempt: number(&["retryAttempt"]).zip(number(&["maxRetries"])),
            resets: LimitReset::read(&words).or_else(|| limits.and_then(noted)),
            text: clip(words.trim(), HEAD),
        }
    }
}

/// A time in what the API said about its limits, under any name that speaks of a reset.
fn noted(limits: &[u8]) -> Option<LimitReset> {
    fn within(value: &serde_json::Value) -> Option<LimitReset> {
        let fields = value.as_object()?;
        let named = fields
            .iter()
            .filter(|(key, _)| key.to_ascii_lowercase().contains("reset"));
        let time = |value: &serde_json::Value| match value {
            serde_json::Value::Number(number) => number.as_i64().map(seconds),
            serde_json::Value::String(text) => Time::parse(text),
            _ => None,
        };
        let own = named.filter_map(|(_, value)| time(value)).max();
        own.map(LimitReset::At)
            .or_else(|| fields.values().find_map(within))
    }
    within(&json::value(limits))
}

/// Seconds since 1970, or milliseconds where that would be in some thousand years.
fn seconds(number: i64) -> Time {
    let is_seconds = number < 100_000_000_000;
    Time(if is_seconds { number * 1000 } else { number })
}

impl LimitReset {
    /// Reads what a message says about the end of a limit.
    pub fn read(text: &str) -> Option<LimitReset> {
        let text = text.to_ascii_lowercase();
        if let Some((_, behind)) = text.split_once("limit reached|") {
            let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
            let at = digits.parse().ok().filter(|at| *at > 1_000_000_000)?;
            return Some(LimitReset::At(seconds(at)));
        }
        let (_, behind) = ["resets ", "reset at ", "resets at "]
            .iter()
            .filter_map(|word| text.split_once(word))
            .max_by_key(|(before, _)| before.len())?;
        let behind = behind.trim_start().trim_start_matches("at ");
        clock(behind)
    }

    /// The first such time after `from`. `offset` says how many seconds a zone is ahead of UTC
    /// at a time; `None` names the zone of the machine.
    pub fn after(
        &self,
        from: Time,
        offset: impl Fn(Option<&str>, Time) -> Option<i32>,
    ) -> Option<Time> {
        let (date, hour, minute, zone) = match self {
            LimitReset::At(time) => return Some(*time),
            LimitReset::Clock {
                date,
                hour,
                minute,
                zone,
            } => (*date, *hour, *minute, zone.as_deref()),
        };
        let ahead = |at: Time| match zone {
            Some("utc" | "gmt") => Some(0),
            zone => offset(zone, at).map(i64::from),
        };
        let local = Time(from.0 + ahead(from)? * 1000);
        let today = jiff::tz::TimeZone::UTC.to_datetime(local.timestamp());
        let days = |days: i64| today.date().checked_add(jiff::Span::new().days(days)).ok();
        let next = match date {
            // What was said at ten past about ten is about tomorrow.
            None => [days(0)?, days(1)?],
            Some((month, day)) => {
                let year = today.year();
                let of = |year| jiff::civil::Date::new(year, month, day).ok();
                [of(year)?, of(year + 1)?]
            }
        };
        next.into_iter().find_map(|date| {
            let shown = date.at(hour, minute, 0, 0);
            let shown = jiff::tz::TimeZone::UTC.to_timestamp(shown).ok()?;
            let shown = Time(shown.as_millisecond());
            let at = Time(shown.0 - ahead(Time(shown.0))? * 1000);
            // Where clocks change in between, the first guess is an hour off.
            let at = Time(shown.0 - ahead(at)? * 1000);
            (at > from).then_some(at)
        })
    }
}

/// `3pm`, `8:20pm (Asia/Singapore)`, `Oct 9, 5pm (UTC)`, `Oct 9 at 17:00`.
fn clock(text: &str) -> Option<LimitReset> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let zone = text
        .split_once('(')
        .and_then(|(_, behind)| behind.split_once(')'))
        .map(|(zone, _)| zone.trim())
        .filter(|zone| !zone.is_empty());
    let words = text.split('(').next().unwrap_or_default();
    let words = words
        .split(['·', '∙', '•', '\n', '.'])
        .next()
        .unwrap_or_default();
    let words: Vec<&str> = words
        .split([' ', ','])
        .filter(|word| !word.is_empty() && *word != "at")
        .collect();
    let month = words
        .first()
        .and_then(|word| MONTHS.iter().position(|month| word.starts_with(month)));
    let (date, rest) = match month {
        Some(month) => {
            let day: i8 = words.get(1)?.parse().ok()?;
            (Some((month as i8 + 1, day)), &words[2..])
        }
        None => (None, &words[..]),
    };
    let time: String = rest.concat();
    let half = time.find(['a', 'p']);
    let figures = &time[..half.unwrap_or(time.len())];
    let (hour, minute) = figures.split_once(':').unwrap_or((figures, "0"));
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match half.map(|at| &time[at..]) {
        Some(half) if half.starts_with("pm") && hour < 12 => hour + 12,
        Some(half) if half.starts_with("am") && hour == 12 => 0,
        Some(half) if half.starts_with("am") || half.starts_with("pm") => hour,
        // A number alone is no time.
        None if figures.contains(':') => hour,
        _ => return None,
    };
    let valid = (0..24).contains(&hour) && (0..60).contains(&minute);
    valid.then(|| LimitReset::Clock {
        date,
        hour,
        minute,
        zone: zone.map(Into::into),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Time {
        Time::parse(text).unwrap()
    }

    fn after(text: &str, from: &str) -> Option<String> {
        let offset = |zone: Option<&str>, _: Time| match zone {
            Some("europe/berlin") => Some(3_600),
            Some("asia/singapore") => Some(8 * 3_600),
            Some(_) => None,
            None => Some(-5 * 3_600),
        };
        let reset = LimitReset::read(text)?.after(at(from), offset)?;
        Some(reset.to_string())
    }

    #[test]
    fn every_way_to_say_when_a_limit_is_over_is_read() {
        let noon = "2026-01-03T12:00:00.000Z";
        for (text, expected) in [
            (
                "Claude AI usage limit reached|1767452400",
                "2026-01-03T15:00:00.000Z",
            ),
            (
                "You've hit your limit · resets 3pm (UTC)",
                "2026-01-03T15:00:00.000Z",
            ),
            (
                "You've hit your session limit · resets 8:20pm (Asia/Singapore)",
                "2026-01-03T12:20:00.000Z",
            ),
            (
                "5-hour limit reached ∙ resets 3pm",
                "2026-01-03T20:00:00.000Z",
            ),
            (
                "5-hour limit reached ∙ resets 12am\n/upgrade",
                "2026-01-04T05:00:00.000Z",
            ),
            (
                "Weekly limit reached ∙ resets Jan 9, 5pm (Europe/Berlin)",
                "2026-01-09T16:00:00.000Z",
            ),
            (
                "Weekly limit reached ∙ resets Jan 2 at 5pm (UTC)",
                "2027-01-02T17:00:00.000Z",
            ),
            (
                "Claude usage limit reached. Your limit will reset at 3pm (Europe/Berlin).",
                "2026-01-03T14:00:00.000Z",
            ),
            (
                "Session limit reached ∙ resets 5:00 PM",
                "2026-01-03T22:00:00.000Z",
            ),
            (
                "limit · resets 21:30 (UTC) · progress saved",
                "2026-01-03T21:30:00.000Z",
            ),
        ] {
            assert_eq!(after(text, noon).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_time_that_has_passed_today_is_tomorrows() {
        let text = "You've hit your limit · resets 9am (UTC)";
        assert_eq!(
            after(text, "2026-01-03T09:00:00.000Z").as_deref(),
            Some("2026-01-04T09:00:00.000Z")
        );
    }

    #[test]
    fn what_says_no_time_has_none() {
        for text in [
            "API Error: 529 overloaded",
            "Weekly limit reached",
            "resets soon",
            "resets 3",
            "resets 25:00 (UTC)",
            "resets Feb 30, 3pm (UTC)",
            "limit reached|12",
            "You've hit your limit · resets 3pm (Nowhere/Else)",
        ] {
            assert_eq!(after(text, "2026-01-03T12:00:00.000Z"), None, "{text}");
        }
    }

    #[test]
    fn a_retry_says_what_failed_and_how_often() {
        let line = br#"{"type":"system","subtype":"api_error","error":{"message":"429 {}","formatted":"429 slow down","rateLimits":{"five_hour":{"resetsAt":1767452400}}},"retryAttempt":2,"maxRetries":10}"#;
        let failure = ApiFailure::read(line, None);
        assert_eq!(failure.text, "429 slow down");
        assert_eq!(failure.attempt, Some((2, 10)));
        assert_eq!(
            failure.resets,
            Some(LimitReset::At(at("2026-01-03T15:00:00.000Z")))
        );
        let line = br#"{"type":"assistant","error":"rate_limit","isApiErrorMessage":true}"#;
        let failure = ApiFailure::read(line, Some("You've hit your limit"));
        assert_eq!(failure.kind.as_deref(), Some("rate_limit"));
        assert_eq!((failure.attempt, failure.resets), (None, None));
    }
}
