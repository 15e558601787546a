//! Which turns somebody asked for: `3`, `5..`, `..4`, `2..4`, `-1` for the last.
//!
//! Both ends count. Turns are numbered from 1, and 0 is what was said before the first one;
//! negative numbers count from the end.

use std::str::FromStr;

use crate::session::Session;
use crate::view::turns;

/// One range of turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnRange {
    /// The first turn; `None` for the start.
    pub from: Option<i64>,
    /// The last turn; `None` for the end.
    pub to: Option<i64>,
}

impl TurnRange {
    /// Whether turn `n` of `count` is in it.
    pub fn contains(&self, n: u32, count: u32) -> bool {
        let count = i64::from(count);
        let place = |bound: i64| {
            if bound < 0 { count + 1 + bound } else { bound }
        };
        let n = i64::from(n);
        self.from.is_none_or(|from| n >= place(from)) && self.to.is_none_or(|to| n <= place(to))
    }
}

impl FromStr for TurnRange {
    type Err = String;

    fn from_str(text: &str) -> Result<TurnRange, String> {
        let bound = |part: &str| -> Result<Option<i64>, String> {
            if part.is_empty() {
                return Ok(None);
            }
            let number = part.parse::<i64>().ok();
            number
                .map(Some)
                .ok_or_else(|| format!("`{text}` is not a turn: use `3`, `5..`, `..4` or `-1`"))
        };
        let range = match text.split_once("..") {
            Some((from, to)) => TurnRange {
                from: bound(from)?,
                to: bound(to)?,
            },
            None => TurnRange {
                from: bound(text)?,
                to: bound(text)?,
            },
        };
        if range.from.is_none() && text != ".." && range.to.is_none() {
            return Err("missing turn: use `3`, `5..`, `..4` or `-1`".to_owned());
        }
        Ok(range)
    }
}

/// What to show of a session.
#[derive(Clone, Debug, Default)]
pub struct TurnSelection {
    /// Only these turns; empty for all.
    pub turns: Vec<TurnRange>,
    /// Open the conversations of sub-agents under their calls.
    pub agents: bool,
}

impl TurnSelection {
    /// Whether turn `n` of `count` was asked for.
    pub fn takes(&self, n: u32, count: u32) -> bool {
        self.turns.is_empty() || self.turns.iter().any(|range| range.contains(n, count))
    }

    /// Whether lines of no turn were asked for.
    pub fn takes_rest(&self) -> bool {
        self.turns.is_empty()
    }
}

/// Where a line of the file stands in the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversationPosition {
    /// The turn, from 1; 0 is what was said before the first one, and `None` stands for lines
    /// before the first one where nothing was said.
    pub turn: Option<u32>,
    /// The line under which it is shown: for a result, that of its call.
    pub line: u32,
}

/// Finds line `line` of the file in the conversation. Lines that are no part of it are shown
/// where they stand in the file. `None` if there is no such line.
pub fn conversation_position(session: &Session, line: u32) -> Option<ConversationPosition> {
    if line == 0 || line > session.lines() {
        return None;
    }
    let turn_of = session.turns_by_record();
    let own = |at: u32| session.turns[at as usize].thread == 0;
    let end = session
        .records
        .partition_point(|record| record.line <= line);
    let mut before = turn_of[..end].iter().rev().flatten();
    let turn = before.find(|at| own(**at)).map(|at| {
        let turns = session.turns[..=*at as usize].iter();
        turns.filter(|turn| turn.thread == 0).count() as u32
    });
    let turn = turn.or_else(|| turns::has_work_before(session).then_some(0));
    let record = |at: u32| &session.records[at as usize];
    let answered = session.calls.iter().find(|call| {
        let result = call.result.as_ref();
        result.is_some_and(|result| record(result.record).line == line)
    });
    let line = answered.map_or(line, |call| record(call.record).line);
    Some(ConversationPosition { turn, line })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> Vec<u32> {
        let range: TurnRange = text.parse().unwrap();
        (1..=5).filter(|&n| range.contains(n, 5)).collect()
    }

    #[test]
    fn ranges_include_both_ends_and_count_from_the_end() {
        assert_eq!(taken("3"), [3]);
        assert_eq!(taken("4.."), [4, 5]);
        assert_eq!(taken("..2"), [1, 2]);
        assert_eq!(taken("2..4"), [2, 3, 4]);
        assert_eq!(taken("-1"), [5]);
        assert_eq!(taken("-2.."), [4, 5]);
        assert_eq!(taken(".."), [1, 2, 3, 4, 5]);
        assert!("0".parse::<TurnRange>().unwrap().contains(0, 5) && taken("0").is_empty());
        assert!(taken("9").is_empty() && taken("4..2").is_empty());
    }

    #[test]
    fn what_is_no_turn_is_refused_with_a_hint() {
        for text in ["", "x", "1..y", "1.5"] {
            let error = text.parse::<TurnRange>().unwrap_err();
            assert!(error.contains("`5..`"), "{text}: {error}");
        }
    }
}
