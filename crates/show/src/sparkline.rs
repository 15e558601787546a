//! A row of numbers as a row of small bars.

/// One bar per number, the largest as high as a line; nothing stays empty.
pub fn spark(numbers: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = numbers.iter().copied().max().unwrap_or(0);
    let bar = |number: &u64| match number {
        0 => ' ',
        _ => {
            let step = u128::from(*number) * 8 / u128::from(most);
            BARS[(step as usize).clamp(1, 8) - 1]
        }
    };
    numbers.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_full_and_the_least_is_still_there() {
        assert_eq!(spark(&[0, 1, 50, 100]), " ▁▄█");
        assert_eq!(spark(&[u64::MAX, 1]), "█▁");
        assert_eq!(spark(&[]), "");
        assert_eq!(spark(&[0, 0]), "  ");
    }
}
