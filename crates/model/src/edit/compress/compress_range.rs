//! Which turns, and how short their texts become.

use std::fmt;

/// A part of the conversation: turns from one percentage to another, and how much of their
/// texts stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CompressRange {
    /// The first percent of the turns.
    pub start: u8,
    /// The percent that is no longer part of it.
    pub end: u8,
    /// The percent of each text that stays.
    pub target: u8,
}

/// What is wrong with a band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressRangeError(String);

impl fmt::Display for CompressRangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CompressRangeError {}

/// Names for usual targets.
const LEVELS: [(&str, u8); 3] = [("compress", 35), ("heavy", 10), ("heavy-compress", 10)];

impl CompressRange {
    /// Reads `START-END:TARGET`, such as `0-50:35` or `0-50:heavy`.
    pub fn parse(text: &str) -> Result<CompressRange, CompressRangeError> {
        let bad = |why: &str| CompressRangeError(format!("`{text}` is not a valid range: {why}"));
        let (range, level) = text
            .split_once(':')
            .ok_or_else(|| bad("use a form such as `0-50:35`, with a target after the colon"))?;
        let (start, end) = range
            .split_once('-')
            .ok_or_else(|| bad("it must begin with a percentage range, such as `0-50`"))?;
        let percent = |text: &str| {
            let number = text.trim().trim_end_matches('%').parse::<u8>().ok();
            let number = number.filter(|number| *number <= 100);
            number.ok_or_else(|| bad(&format!("`{text}` is not a percentage from 0 to 100")))
        };
        let (start, end) = (percent(start)?, percent(end)?);
        if start >= end {
            return Err(bad(&format!("{start} must be less than {end}")));
        }
        let level = level.trim();
        let named = LEVELS.iter().find(|(name, _)| *name == level);
        let target = match named {
            Some((_, target)) => *target,
            None => percent(level).ok().filter(|it| (1..=99).contains(it)).ok_or_else(|| {
                bad("its target must be 1 to 99 (percent of text to keep), `compress` (35) or `heavy` (10)")
            })?,
        };
        Ok(CompressRange { start, end, target })
    }

    /// Whether the turn with this number (from 0) of so many is part of it.
    pub fn contains(self, turn: usize, turns: usize) -> bool {
        let position = turn * 100;
        usize::from(self.start) * turns <= position && position < usize::from(self.end) * turns
    }
}

impl fmt::Display for CompressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}:{}", self.start, self.end, self.target)
    }
}

/// Reads several bands, in order; they must not overlap.
pub fn parse_ranges<T: AsRef<str>>(texts: &[T]) -> Result<Vec<CompressRange>, CompressRangeError> {
    let read: Result<Vec<CompressRange>, CompressRangeError> = texts
        .iter()
        .map(|text| CompressRange::parse(text.as_ref()))
        .collect();
    let mut all = read?;
    all.sort_unstable();
    for pair in all.windows(2) {
        if pair[1].start < pair[0].end {
            let (one, other) = (pair[0], pair[1]);
            let why = format!("the ranges `{one}` and `{other}` overlap");
            return Err(CompressRangeError(why));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_is_a_range_of_percent_and_a_target() {
        let band = |start, end, target| Ok(CompressRange { start, end, target });
        assert_eq!(CompressRange::parse("0-50:35"), band(0, 50, 35));
        assert_eq!(CompressRange::parse("0%-100%:1"), band(0, 100, 1));
        assert_eq!(CompressRange::parse("25-75:compress"), band(25, 75, 35));
        assert_eq!(CompressRange::parse("25-75:heavy"), band(25, 75, 10));
    }

    #[test]
    fn what_is_no_band_is_named_with_the_reason() {
        for (text, why) in [
            ("0-50", "colon"),
            ("50:35", "range"),
            ("a-50:35", "`a`"),
            ("0-101:35", "`101`"),
            ("50-50:35", "50 must be less than 50"),
            ("60-50:35", "60 must be less than 50"),
            ("0-50:0", "1 to 99"),
            ("0-50:100", "1 to 99"),
            ("0-50:tiny", "1 to 99"),
            ("", "colon"),
        ] {
            let error = CompressRange::parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn bands_may_touch_but_not_overlap() {
        assert_eq!(parse_ranges(&["50-75:10", "0-50:35"]).unwrap()[0].start, 0);
        let error = parse_ranges(&["0-51:35", "50-75:10"])
            .unwrap_err()
            .to_string();
        assert_eq!(error, "the ranges `0-51:35` and `50-75:10` overlap");
        assert_eq!(parse_ranges::<&str>(&[]), Ok(Vec::new()));
    }

    #[test]
    fn a_turn_belongs_to_the_band_its_position_falls_into() {
        let hit = |text: &str, turns: usize| -> Vec<usize> {
            let band = CompressRange::parse(text).unwrap();
            (0..turns).filter(|&at| band.contains(at, turns)).collect()
        };
        assert_eq!(hit("0-25:35", 4), [0]);
        assert_eq!(hit("50-75:35", 4), [2]);
        assert_eq!(hit("0-50:35", 3), [0, 1]);
        assert_eq!(hit("0-1:35", 1), [0]);
        assert_eq!(hit("1-100:35", 1), [0; 0]);
        assert_eq!(hit("0-100:35", 3), [0, 1, 2]);
        assert_eq!(hit("33-34:35", 3), [1]);
    }
}
