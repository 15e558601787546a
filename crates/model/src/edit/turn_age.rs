//! How old the lines of a conversation are, in turns.
//!
//! Operations that treat the old part of a session otherwise than the new one count turns of
//! the branch that goes on. What was rewound is as old as the turn before it, so that it
//! neither shifts the count nor is treated otherwise than its neighbours; nor does what a person
//! did without asking the model anything, such as `/model`.

use super::plan::EditPlan;
use crate::bitset::{BitSet, NumberMap};
use crate::session::{Index, Session};
use crate::user_input::UserInput;

/// The age of each line: 0 before the first turn, then the number of its turn.
pub(super) struct TurnAges {
    of: NumberMap,
    /// Lines of turns that go on; others were rewound.
    live: BitSet,
    /// How many turns there are.
    pub(super) count: u32,
}

impl TurnAges {
    /// Counts the turns that stay. Lines of sub-agents and lines that go have no age.
    pub(super) fn new(session: &Session, plan: &EditPlan) -> TurnAges {
        let mut count = 0;
        let turns = session.turn_finder();
        let replies = session.messages.iter().filter(|it| !it.synthetic);
        let lines = replies.filter_map(|it| it.records.first());
        let answered = lines.filter_map(|&line| turns.of(&session.records[line as usize]));
        let answered: BitSet = answered.collect();
        let mut age_of_turn = vec![(0, false); session.turns.len()];
        for ((at, turn), age) in (0..).zip(&session.turns).zip(&mut age_of_turn) {
            let stays = turn.thread == 0 && !plan.is_dropped(turn.record);
            let live = stays && plan.is_live(turn.record);
            let input = session.records[turn.record as usize].input;
            let asks =
                matches!(input, UserInput::Prompt | UserInput::Plan) || answered.contains(at);
            count += u32::from(live && asks);
            *age = (count, live);
        }
        let mut live = BitSet::default();
        let of = (0..).zip(&session.records).map(|(at, record)| {
            let stays = record.thread == 0 && !plan.is_dropped(at);
            let turn = turns.of(record);
            let (age, is_live) = turn.map_or((0, true), |turn| age_of_turn[turn as usize]);
            if stays && is_live {
                live.insert(at);
            }
            stays.then_some(age)
        });
        let of: NumberMap = of.collect();
        TurnAges { of, live, count }
    }

    /// The age of a line.
    pub(super) fn of(&self, record: Index) -> Option<u32> {
        self.of.get(record)
    }

    /// Whether the line belongs to a turn that goes on, or to none.
    pub(super) fn counts(&self, record: Index) -> bool {
        self.live.contains(record)
    }

    /// The first age behind the oldest `percent` of the turns.
    pub(super) fn behind(&self, percent: u8) -> u32 {
        match percent {
            0 => 0,
            100.. => u32::MAX,
            _ => match u64::from(self.count) * u64::from(percent) / 100 {
                0 => 0,
                turns => turns as u32 + 1,
            },
        }
    }
}
