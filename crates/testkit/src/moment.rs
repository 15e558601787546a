//! Times as transcripts write them. No clock: a time is a number you give.

/// 2026-01-05T10:00:00.000Z, a Monday: where made-up sessions begin.
pub const START: u64 = 1_767_607_200_000;

/// Milliseconds since 1970 in the form `2026-01-05T10:00:00.000Z`.
pub fn rfc3339(millis: u64) -> String {
    let mut text = [0; 24];
    write(millis, &mut text);
    text.iter().map(|&byte| byte as char).collect()
}

/// The same into a buffer, for generators that write millions of them.
pub fn write(millis: u64, text: &mut [u8; 24]) {
    let (year, month, day) = date(millis / 86_400_000);
    let second = millis / 1000 % 86_400;
    text.copy_from_slice(b"0000-00-00T00:00:00.000Z");
    digits(&mut text[0..4], year);
    digits(&mut text[5..7], month);
    digits(&mut text[8..10], day);
    digits(&mut text[11..13], second / 3600);
    digits(&mut text[14..16], second / 60 % 60);
    digits(&mut text[17..19], second % 60);
    digits(&mut text[20..23], millis % 1000);
}

fn digits(text: &mut [u8], mut value: u64) {
    for place in text.iter_mut().rev() {
        *place = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// The civil date of a day counted from 1970-01-01.
fn date(day: u64) -> (u64, u64, u64) {
    // Years are counted from March, so that the leap day comes last.
    let day = day + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let in_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (year + era * 400 + next, month, in_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_a_monday_morning() {
        assert_eq!(rfc3339(START), "2026-01-05T10:00:00.000Z");
    }

    #[test]
    fn leap_days_and_year_ends_are_right() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(rfc3339(1_735_689_599_999), "2024-12-31T23:59:59.999Z");
    }
}
