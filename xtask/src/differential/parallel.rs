//! The two ways in which parallel calls are put back otherwise: in another order, and with
//! results that hang elsewhere in the tree.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::neutral;

/// What is known of the lines of a file, by uuid.
pub struct Facts {
    lines: HashMap<String, Value>,
}

impl Facts {
    /// Of a file.
    pub fn of(bytes: &[u8]) -> Facts {
        let lines = neutral::parse(bytes);
        let last = neutral::by_uuid(&lines);
        let line = |(uuid, at): (String, usize)| (uuid, lines[at].clone());
        Facts {
            lines: last.into_iter().map(line).collect(),
        }
    }

    /// How the two lists differ, if it is only in these ways.
    pub fn compare(&self, ours: &[String], theirs: &[String]) -> Option<Vec<&'static str>> {
        if ours == theirs {
            return Some(Vec::new());
        }
        let open = self.open_calls(ours);
        let had: HashSet<&String> = ours.iter().collect();
        let answers = |uuid: &&String| {
            let ids = self.ids(uuid, "tool_result", "tool_use_id");
            !had.contains(uuid) && ids.iter().any(|id| open.contains(id))
        };
        let elsewhere = theirs.iter().filter(answers).count();
        let rest: Vec<String> = theirs.iter().filter(|u| !answers(u)).cloned().collect();
        if self.unordered(ours) != self.unordered(&rest) {
            return None;
        }
        let mut reasons = Vec::new();
        if elsewhere > 0 {
            reasons.push("result_elsewhere");
        }
        if ours != rest {
            reasons.push("parallel_order");
        }
        Some(reasons)
    }

    /// Calls of the file that these lines do not answer.
    fn open_calls(&self, uuids: &[String]) -> HashSet<&str> {
        let answers = |uuid: &String| self.ids(uuid, "tool_result", "tool_use_id");
        let answered: HashSet<&str> = uuids.iter().flat_map(answers).collect();
        let calls = self
            .lines
            .keys()
            .flat_map(|uuid| self.ids(uuid, "tool_use", "id"));
        calls.filter(|id| !answered.contains(id)).collect()
    }

    /// The lines in order, but the lines of a reply together where its first stands, in any
    /// order, and results apart.
    fn unordered(&self, uuids: &[String]) -> (Vec<Vec<String>>, Vec<String>) {
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut said: Vec<Vec<String>> = Vec::new();
        let mut results = Vec::new();
        for uuid in uuids {
            if !self.ids(uuid, "tool_result", "tool_use_id").is_empty() {
                results.push(uuid.clone());
                continue;
            }
            let line = self.lines.get(uuid);
            let message = line
                .and_then(|line| line.get("message"))
                .and_then(|message| neutral::text(message, "id"));
            match message.and_then(|message| places.get(message)) {
                Some(&place) => said[place].push(uuid.clone()),
                None => {
                    places.extend(message.map(|message| (message, said.len())));
                    said.push(vec![uuid.clone()]);
                }
            }
        }
        said.iter_mut().for_each(|group| group.sort());
        results.sort();
        (said, results)
    }

    fn ids(&self, uuid: &str, kind: &str, field: &str) -> Vec<&str> {
        let line = self.lines.get(uuid);
        let content = line.and_then(|line| line.get("message")?.get("content")?.as_array());
        let blocks = content.into_iter().flatten();
        blocks
            .filter(|block| neutral::text(block, "type") == Some(kind))
            .filter_map(|block| neutral::text(block, field))
            .collect()
    }
}
