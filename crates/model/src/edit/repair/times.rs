//! Times: every line of the chain has one, between those of its neighbours.

use super::repair_plan::RepairPlanner;
use crate::session::Index;
use crate::time::Time;

/// Where time begins in a file without any: as good as any other day.
const START: Time = Time(1_735_689_600_000);
/// No session was written before 1970 or will be after 3000; such a time would make a line
/// the newest for ever.
const SANE: std::ops::Range<i64> = 0..32_503_680_000_000;

impl RepairPlanner<'_> {
    pub(super) fn times(&mut self) {
        let mut before: Option<Time> = None;
        let mut waiting: Vec<Index> = Vec::new();
        for (at, record) in self.session.records.iter().enumerate() {
            let at = at as Index;
            let sane = record.at().filter(|time| SANE.contains(&time.0));
            let wants =
                record.in_chain() && sane.is_none() || self.session.bad_times.contains(record.line);
            if wants && !self.plan.is_dropped(at) {
                waiting.push(at);
            } else if let Some(time) = sane.filter(|_| record.in_chain()) {
                self.fill(before, Some(time), &mut waiting);
                before = Some(time);
            }
        }
        self.fill(before, None, &mut waiting);
    }

    /// Gives times to lines between two that have one.
    fn fill(&mut self, before: Option<Time>, behind: Option<Time>, waiting: &mut Vec<Index>) {
        let count = waiting.len() as i64;
        for (nth, at) in waiting.drain(..).enumerate() {
            let nth = nth as i64 + 1;
            let time = match (before, behind) {
                (Some(before), Some(behind)) if behind.0 - before.0 > count => {
                    Time(before.0 + (behind.0 - before.0) * nth / (count + 1))
                }
                (Some(before), _) => Time(before.0 + nth),
                (None, Some(behind)) => Time((behind.0 - (count + 1 - nth)).max(0)),
                (None, None) => Time(START.0 + nth * 1_000),
            };
            let had = self.record(at).at().is_some();
            self.set_time(at, time);
            let what = format!("set its timestamp to {time}, between those of its neighbours");
            self.note(at, if had { "bad_time" } else { "no_time" }, what);
        }
    }
}
