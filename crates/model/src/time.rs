//! Points in time as transcripts write them: milliseconds, UTC.

use std::fmt;

use jiff::Timestamp;

/// Milliseconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(pub i64);

impl Time {
    /// Reads RFC 3339, as every line has it; `None` for anything else.
    pub fn parse(text: &str) -> Option<Time> {
        plain(text.as_bytes()).or_else(|| {
            let time: Timestamp = text.parse().ok()?;
            Some(Time(time.as_millisecond()))
        })
    }

    /// Milliseconds from `earlier` to here, never negative: clocks go backwards.
    pub fn since(self, earlier: Time) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// The same instant for calendars and zones.
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_millisecond(self.0).unwrap_or_default()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.timestamp())
    }
}

/// `2026-01-03T15:44:58.325Z`, the one form Claude Code writes, without a calendar library.
fn plain(text: &[u8]) -> Option<Time> {
    let shape = text.len() == 24
        && text[23] == b'Z'
        && [
            (4, b'-'),
            (7, b'-'),
            (10, b'T'),
            (13, b':'),
            (16, b':'),
            (19, b'.'),
        ]
        .iter()
        .all(|&(at, byte)| text[at] == byte);
    if !shape {
        return None;
    }
    let number = |from: usize, to: usize| {
        text[from..to].iter().try_fold(0i64, |sum, digit| {
            digit
                .is_ascii_digit()
                .then(|| sum * 10 + i64::from(digit - b'0'))
        })
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let valid = (1..=12).contains(&month)
        && (1..=28).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    // Ends of months are left to the calendar library.
    if !valid {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(Time(seconds * 1_000 + number(20, 23)?))
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar (years from March on).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_way_agrees_with_the_calendar() {
        for text in [
            "1970-01-01T00:00:00.000Z",
            "2026-01-03T15:44:58.325Z",
            "2024-02-28T23:59:59.999Z",
            "2000-03-01T12:00:00.001Z",
            "1969-12-27T00:00:00.500Z",
        ] {
            let calendar: Timestamp = text.parse().unwrap();
            assert_eq!(
                plain(text.as_bytes()),
                Some(Time(calendar.as_millisecond())),
                "{text}"
            );
            assert_eq!(Time::parse(text).unwrap().to_string(), text);
        }
        assert!(Time::parse("2024-02-29T00:00:00.000Z").is_some());
        assert!(Time::parse("2023-02-29T00:00:00.000Z").is_none());
        assert!(Time::parse("2026-01-03T15:44:58Z").is_some());
        assert!(Time::parse("yesterday").is_none());
    }

    #[test]
    fn durations_are_never_negative() {
        assert_eq!(Time(5).since(Time(9)), 0);
        assert_eq!(Time(9).since(Time(5)), 4);
    }
}
