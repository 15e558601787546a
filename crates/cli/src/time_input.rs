//! Times as people write them: `7d`, `24h`, `2026-01-03`, `today`, RFC 3339.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use unspool_model::time::Time;

use crate::failure::CommandFailure;

/// Reads a time, seen from `now` in `zone`.
pub fn parse(text: &str, now: Time, zone: &TimeZone) -> Result<Time, CommandFailure> {
    let today = now.timestamp().to_zoned(zone.clone()).date();
    let start = |date: Date| {
        let zoned = date.to_zoned(zone.clone()).ok()?;
        Some(Time(zoned.timestamp().as_millisecond()))
    };
    let time = match text {
        "today" => start(today),
        "yesterday" => today.yesterday().ok().and_then(start),
        _ => Time::parse(text)
            .or_else(|| ago(text, now))
            .or_else(|| text.parse().ok().and_then(start)),
    };
    time.ok_or_else(|| {
        CommandFailure::failed(format!("`{text}` is not a time"))
            .hint("use `7d`, `24h`, `2026-01-03`, `today` or `2026-01-03T15:00:00Z`")
    })
}

/// Reads a time up to which something counts: a day counts to its end.
pub fn end(text: &str, now: Time, zone: &TimeZone) -> Result<Time, CommandFailure> {
    let start = parse(text, now, zone)?;
    let is_day = matches!(text, "today" | "yesterday")
        || text.parse::<Date>().is_ok_and(|_| text.len() == 10);
    if !is_day {
        return Ok(start);
    }
    let day = start.timestamp().to_zoned(zone.clone()).date();
    let next = day
        .tomorrow()
        .ok()
        .and_then(|day| day.to_zoned(zone.clone()).ok());
    Ok(next.map_or(start, |next| Time(next.timestamp().as_millisecond())))
}

fn ago(text: &str, now: Time) -> Option<Time> {
    let unit = text.chars().last()?;
    let number: i64 = text[..text.len() - unit.len_utf8()]
        .parse()
        .ok()
        .filter(|number| *number >= 0)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return None,
    };
    Some(Time(
        now.0.checked_sub(number.checked_mul(seconds * 1_000)?)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now = Time::parse("2026-03-10T12:00:00.000Z").unwrap();
        let read = |text: &str| {
            parse(text, now, &TimeZone::UTC)
                .map(|time| time.to_string())
                .ok()
        };
        assert_eq!(read("2d").as_deref(), Some("2026-03-08T12:00:00.000Z"));
        assert_eq!(read("today").as_deref(), Some("2026-03-10T00:00:00.000Z"));
        assert_eq!(
            read("2026-01-03").as_deref(),
            Some("2026-01-03T00:00:00.000Z")
        );
        assert_eq!(
            read("2026-01-03T01:02:03Z").as_deref(),
            Some("2026-01-03T01:02:03.000Z")
        );
        assert_eq!(read("soon"), None);
    }
}
