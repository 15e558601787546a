//! Prompts typed while the model worked, where only the queue knows them.
//!
//! Until 2.1.104 such a prompt may stand nowhere but in the line that put it into the
//! queue. What happened to it shows later: `dequeue` made it a prompt of its own, `remove`
//! gave it to the running turn, `popAll` took it back into the editor. From 2.1.105 on the
//! turn has a line for it, which counts instead.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::entry::Kind;
use crate::session::{Index, Session};

/// The lines that queued a prompt shown nowhere else, and whether the model got to see it.
pub(super) fn only_queued(session: &Session) -> HashMap<Index, bool> {
    let delivered = delivered(session);
    let mut queue: VecDeque<(Index, &str)> = VecDeque::new();
    let mut shown = HashMap::new();
    for (at, record) in session.records.iter().enumerate() {
        let Kind::Queue { operation, text } = &record.kind else {
            continue;
        };
        match &**operation {
            "enqueue" => {
                let text = text.as_deref().unwrap_or_default();
                queue.push_back((at as Index, text));
            }
            "dequeue" => drop(queue.pop_front()),
            "popAll" => queue.clear(),
            _ => {
                // Several may be taken at once, each with a line of its own.
                let Some((at, text)) = queue.pop_front() else {
                    continue;
                };
                if !delivered.contains(text.trim()) && is_human(text) {
                    shown.insert(at, true);
                }
            }
        }
    }
    let waiting = queue.into_iter().filter(|(_, text)| is_human(text));
    shown.extend(waiting.map(|(at, _)| (at, false)));
    shown
}

fn delivered(session: &Session) -> HashSet<&str> {
    let mut texts = HashSet::new();
    for record in &session.records {
        if let Kind::QueuedCommand { text, .. } = &record.kind {
            texts.insert(text.trim());
        }
    }
    texts
}

/// 2.1.45 also queues what its sub-agents and background tasks have to say.
fn is_human(text: &str) -> bool {
    let text = text.trim_start();
    !text.is_empty() && !text.starts_with("<task-notification") && !text.starts_with('{')
}
