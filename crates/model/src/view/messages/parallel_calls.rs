//! What parallel calls left beside the chain: it is a line, they were a tree.

use foldhash::{HashMap, HashMapExt};

use crate::bitset::{BitSet, NumberLists, NumberMap};
use crate::session::Index;
use crate::view::client_profile::SiblingsRule;
use crate::view::messages::client_lines::ClientLines;

/// The chain with the lines beside it: lines of the same messages, and results of their calls.
/// Nothing if the client fails at putting them in order.
pub(super) fn restored(lines: &ClientLines<'_>, chain: Vec<Index>) -> Option<Vec<Index>> {
    let families = ParallelCallLines::of(lines);
    let places: NumberMap = chain.iter().copied().zip(0..).collect();
    let mut present: BitSet = chain.iter().copied().collect();
    let mut done = BitSet::default();
    let mut before: HashMap<usize, Vec<Index>> = HashMap::new();
    let mut peaks = None;
    for (place, &at) in chain.iter().enumerate() {
        let Some(message) = lines
            .record(at)
            .message()
            .filter(|&message| done.insert(message))
        else {
            continue;
        };
        let (members, results) = families.get(message);
        let behind_last = |family: &[Index]| {
            let on_chain = family.iter().filter_map(|&line| places.get(line));
            on_chain.max().map_or(place + 1, |last| last as usize + 1)
        };
        let end = behind_last(&members);
        let mut missing = |family: &[Index]| -> Vec<Index> {
            let beside = family.iter().copied();
            beside.filter(|&line| present.insert(line)).collect()
        };
        let (mut calls, mut answers) = (missing(&members), missing(&results));
        if calls.is_empty() && answers.is_empty() {
            continue;
        }
        if lines.rules.siblings == SiblingsRule::AfterMessage {
            for group in [&mut calls, &mut answers] {
                let timeless = |&line: &Index| lines.record(line).at().is_none();
                if lines.rules.needs_result_times && group.len() > 1 && group.iter().any(timeless) {
                    return None;
                }
                group.sort_by_key(|&line| (lines.record(line).at(), line));
            }
            let all = before.entry(end).or_default();
            all.extend(calls.into_iter().chain(answers));
            continue;
        }
        let end = end.max(behind_last(&results));
        let peaks = peaks.get_or_insert_with(|| MaxTree::of(&chain));
        for line in calls.into_iter().chain(answers) {
            let later = peaks.first_above(place + 1, line);
            let target = later.map_or(end, |later| later.min(end));
            before.entry(target).or_default().push(line);
        }
    }
    if lines.rules.siblings == SiblingsRule::InFileOrder {
        before.values_mut().for_each(|group| group.sort_unstable());
    }
    let mut out = Vec::with_capacity(chain.len());
    for place in 0..=chain.len() {
        out.extend(before.remove(&place).unwrap_or_default());
        out.extend(chain.get(place));
    }
    Some(out)
}

/// The lines of the message that a result answers, and all results of its calls.
pub(super) fn family(lines: &ClientLines<'_>, line: Index) -> Vec<Index> {
    let call = lines.followed(lines.record(line));
    let call = call.filter(|_| lines.is_result(line));
    let message = call.and_then(|call| lines.record(call).message());
    message.map_or_else(Vec::new, |message| {
        let (mut members, results) = ParallelCallLines::of(lines).get(message);
        members.extend(results);
        members
    })
}

/// Which lines make a message, and which results follow a line.
struct ParallelCallLines {
    members: NumberLists,
    results: NumberLists,
}

impl ParallelCallLines {
    fn of(lines: &ClientLines<'_>) -> ParallelCallLines {
        let (mut members, mut results) = (Vec::new(), Vec::new());
        for &at in &lines.order {
            let record = lines.record(at);
            let named = |message: &Index| {
                let message = &lines.session.messages[*message as usize];
                lines.session.message_id(message).is_some()
            };
            if let Some(message) = record.message().filter(named) {
                members.push((message, at));
            } else if lines.is_result(at)
                && let Some(call) = lines.followed(record)
            {
                results.push((call, at));
            }
        }
        ParallelCallLines {
            members: members.into_iter().collect(),
            results: results.into_iter().collect(),
        }
    }

    /// The lines of a message, and the results that follow any of them.
    fn get(&self, message: Index) -> (Vec<Index>, Vec<Index>) {
        let members: Vec<Index> = self.members.get(message).collect();
        let results = members.iter().flat_map(|&line| self.results.get(line));
        let results = results.collect();
        (members, results)
    }
}

/// A tree of maxima: finds the next larger line without looking at all of them.
struct MaxTree {
    leaves: usize,
    highest: Vec<u64>,
}

impl MaxTree {
    fn of(chain: &[Index]) -> MaxTree {
        let leaves = chain.len().next_power_of_two();
        let mut highest = vec![0; 2 * leaves];
        for (place, &at) in chain.iter().enumerate() {
            highest[leaves + place] = u64::from(at) + 1;
        }
        for node in (1..leaves).rev() {
            highest[node] = highest[2 * node].max(highest[2 * node + 1]);
        }
        MaxTree { leaves, highest }
    }

    /// The first place from `from` on with a line behind `line` in the file.
    fn first_above(&self, from: usize, line: Index) -> Option<usize> {
        let wanted = u64::from(line) + 1;
        let mut node = self.leaves + from;
        if from >= self.leaves {
            return None;
        }
        while self.highest[node] <= wanted {
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < self.leaves {
            node *= 2;
            if self.highest[node] <= wanted {
                node += 1;
            }
        }
        Some(node - self.leaves)
    }
}
