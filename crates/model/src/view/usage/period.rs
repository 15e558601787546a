//! Stretches of time that usage is summed up in: days, weeks, months, windows of five hours.

use std::ops::Range;

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;

use crate::time::Time;

/// The local day of a moment.
pub fn day(at: Time, zone: &TimeZone) -> Date {
    zone.to_datetime(at.timestamp()).date()
}

/// From when to when the local day of a moment lasts.
pub fn around(at: Time, zone: &TimeZone) -> Range<Time> {
    let begins = |day: Date| {
        let zoned = day.to_zoned(zone.clone()).ok()?;
        Some(Time(zoned.timestamp().as_millisecond()))
    };
    let today = day(at, zone);
    let start = begins(today).unwrap_or(at);
    let end = today.tomorrow().ok().and_then(begins);
    start..end.unwrap_or(Time(i64::MAX))
}

/// The first day of the week that a day is in, where weeks begin on `start`.
pub fn week(day: Date, start: Weekday) -> Date {
    let back = i64::from(day.weekday().since(start));
    day.checked_sub(back.days()).unwrap_or(day)
}

/// The first of the month that a day is in.
pub fn month(day: Date) -> Date {
    day.first_of_month()
}

/// How long a window of the plans' limits lasts.
pub const WINDOW: i64 = 5 * HOUR;

const HOUR: i64 = 3_600_000;

/// Which window each moment falls into, as the start of the window; moments in any order.
///
/// A window begins at the full hour (UTC) of its first message and lasts five hours. The
/// next one begins with the first message after it, or with one after five hours of rest.
pub fn windows(moments: &[Time]) -> Vec<Time> {
    let mut order: Vec<usize> = (0..moments.len()).collect();
    order.sort_by_key(|&at| moments[at]);
    let mut starts = vec![Time(0); moments.len()];
    let mut open: Option<(Time, Time)> = None;
    for at in order {
        let now = moments[at];
        let start = match open {
            Some((start, last)) if now.0 - start.0 <= WINDOW && now.0 - last.0 <= WINDOW => start,
            _ => Time(now.0.div_euclid(HOUR) * HOUR),
        };
        open = Some((start, now));
        starts[at] = start;
    }
    starts
}
