//! Durations, sizes, counts and times in words.

use jiff::tz::TimeZone;
use unspool_model::price::Cost;
use unspool_model::time::Time;
use unspool_model::view::cost::CostSum;

/// `850ms`, `3.2s`, `1m 28s`, `2h 05m`, `3d 04h`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0 if ms == 0 => "0s".to_owned(),
        0 => format!("{ms}ms"),
        1..60 => {
            let tenths = ms / 100;
            format!("{}.{}s", tenths / 10, tenths % 10)
        }
        60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// `999`, `30.0k`, `1.2M`.
pub fn tokens(count: u64) -> String {
    scaled(
        count,
        &[
            ("", 1),
            ("k", 1_000),
            ("M", 1_000_000),
            ("G", 1_000_000_000),
        ],
    )
}

/// `999 B`, `30.0 kB`, `1.2 MB`.
pub fn bytes(count: u64) -> String {
    scaled(
        count,
        &[
            (" B", 1),
            (" kB", 1_000),
            (" MB", 1_000_000),
            (" GB", 1_000_000_000),
        ],
    )
}

fn scaled(count: u64, units: &[(&str, u64)]) -> String {
    // 999,950 would round to "1000.0k".
    let fits = |size: u64| size == 1 || count >= size - size / 20_000;
    let (unit, size) = units
        .iter()
        .rev()
        .find(|(_, size)| fits(*size))
        .copied()
        .unwrap_or(("", 1));
    if size == 1 {
        return format!("{count}{unit}");
    }
    let tenths = (u128::from(count) * 10 + u128::from(size) / 2) / u128::from(size);
    format!("{}.{}{unit}", tenths / 10, tenths % 10)
}

/// `$0.00`, `<$0.01`, `$12.34`, `$1,234.56`.
pub fn dollars(usd: f64) -> String {
    if usd > 0.0 && usd < 0.01 {
        return "<$0.01".to_owned();
    }
    let text = format!("{usd:.2}");
    let (whole, cents) = text.split_once('.').unwrap_or((&text, "00"));
    let whole = grouped(whole.parse().unwrap_or(u64::MAX));
    format!("${whole}.{cents}")
}

/// A cost that may not be known.
pub fn cost(usd: Option<f64>) -> String {
    usd.map_or_else(|| "?".to_owned(), dollars)
}

/// A cost of which only a part may be known: `$1.20`, `≥ $1.20`, or `?` where nothing is known.
pub fn cost_at_least(usd: Option<f64>, known: Option<f64>) -> String {
    match (usd, known) {
        (Some(usd), _) => dollars(usd),
        // Less than a cent is at least nothing.
        (None, Some(known)) if known > 0.0 && known < 0.01 => "≥ $0.00".to_owned(),
        (None, Some(known)) if known > 0.0 => format!("≥ {}", dollars(known)),
        (None, _) => "?".to_owned(),
    }
}

/// The same with how many messages have no price: `≥ $1.20 (3 messages without a price)`.
pub fn cost_told(usd: Option<f64>, known: Option<f64>, unpriced: u64) -> String {
    let cost = cost_at_least(usd, known);
    match unpriced {
        0 => cost,
        _ => format!("{cost} ({} without a price)", count(unpriced, "message")),
    }
}

/// What to say below a list of costs of which some messages have no price.
pub fn unpriced(messages: u64) -> Option<String> {
    let verb = if messages == 1 { "is" } else { "are" };
    (messages > 0).then(|| {
        format!(
            "{} without a known price {verb} not in the cost; `unspool usage model` names the models",
            count(messages, "message")
        )
    })
}

/// What messages cost together.
pub fn cost_sum(sum: CostSum) -> String {
    cost_at_least(sum.total().map(Cost::usd), Some(sum.known.usd()))
}

/// `1 line`, `2 lines`.
pub fn count(number: u64, one: &str) -> String {
    let many = match one {
        "match" => "matches",
        "reply" => "replies",
        _ => "",
    };
    match (number, many) {
        (1, _) => format!("1 {one}"),
        (_, "") => format!("{} {one}s", grouped(number)),
        (_, many) => format!("{} {many}", grouped(number)),
    }
}

/// `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `84.1k 42%`: tokens, and how much of the limit they fill.
pub fn fullness(count: u64, limit: Option<u64>) -> String {
    match limit.filter(|limit| *limit > 0) {
        Some(limit) => {
            let percent = u128::from(count) * 100 / u128::from(limit);
            format!("{} {percent:>2}%", tokens(count))
        }
        None => tokens(count),
    }
}

/// `14:02`.
pub fn clock(time: Time, zone: &TimeZone) -> String {
    time.timestamp()
        .to_zoned(zone.clone())
        .strftime("%H:%M")
        .to_string()
}

/// `2026-11-15`.
pub fn day(time: Time, zone: &TimeZone) -> String {
    time.timestamp()
        .to_zoned(zone.clone())
        .strftime("%Y-%m-%d")
        .to_string()
}

/// `2026-11-15 14:02`.
pub fn moment(time: Time, zone: &TimeZone) -> String {
    format!("{} {}", day(time, zone), clock(time, zone))
}

/// How long ago, in one unit: `now`, `5m`, `3h`, `12d`.
pub fn age(ms: u64) -> String {
    let minutes = ms / 60_000;
    match minutes {
        0 => "now".to_owned(),
        1..60 => format!("{minutes}m"),
        60..1_440 => format!("{}h", minutes / 60),
        _ => format!("{}d", minutes / 1_440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_parts_at_most() {
        for (ms, text) in [
            (0, "0s"),
            (850, "850ms"),
            (1_000, "1.0s"),
            (3_249, "3.2s"),
            (59_000, "59.0s"),
            (59_999, "59.9s"),
            (60_000, "1m 00s"),
            (88_947, "1m 28s"),
            (3_600_000, "1h 00m"),
            (7_500_000, "2h 05m"),
            (100_800_000, "1d 04h"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }

    #[test]
    fn large_numbers_get_a_unit() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (30_000, "30.0k"),
            (999_949, "999.9k"),
            (999_950, "1.0M"),
            (1_240_000, "1.2M"),
        ] {
            assert_eq!(tokens(count), text);
        }
        assert_eq!(
            (bytes(12), bytes(2_048)),
            ("12 B".to_owned(), "2.0 kB".to_owned())
        );
        assert_eq!(tokens(u64::MAX), "18446744073.7G");
    }

    #[test]
    fn amounts_of_money_have_two_places_and_a_little_is_not_nothing() {
        for (usd, text) in [
            (0.0, "$0.00"),
            (0.0001, "<$0.01"),
            (0.01, "$0.01"),
            (12.345_678, "$12.35"),
            (999.994, "$999.99"),
            (1_234.5, "$1,234.50"),
            (1_234_567.0, "$1,234,567.00"),
        ] {
            assert_eq!(dollars(usd), text);
        }
        assert_eq!(
            (grouped(999), grouped(1_000)),
            ("999".into(), "1,000".into())
        );
    }

    #[test]
    fn fullness_is_tokens_and_their_share_of_the_limit() {
        assert_eq!(fullness(84_100, Some(200_000)), "84.1k 42%");
        assert_eq!(fullness(84_100, None), "84.1k");
    }

    #[test]
    fn counts_agree_with_their_noun() {
        assert_eq!(count(1, "line"), "1 line");
        assert_eq!(count(0, "line"), "0 lines");
        assert_eq!(count(2, "match"), "2 matches");
    }
}
