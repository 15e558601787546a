//! Prompts typed while the model worked, which have no user line of their own.
//!
//! 2.1.105 and later keep them as `attachment/queued_command` in the chain. 2.1.11 to 2.1.104
//! only wrote that they were queued and later removed: the model got them glued to a tool
//! result. What was dequeued became an ordinary prompt; what was popped was taken back.

use std::collections::{HashSet, VecDeque};

use crate::entry::{LineDetail, QueueOperation};
use crate::session::{Index, Session};
use crate::user_input::{self, UserInput, UserLineFacts};

/// Nobody types more than this ahead; a file that says so must not make us slow.
const WAITING: usize = 1_000;

/// The texts, each with the line at which it was taken up.
pub fn typed_meanwhile(session: &Session) -> Vec<(Index, String)> {
    read(session, session.records.len()).0
}

/// Whether something that was queued before a line had not been taken up by then.
pub fn is_waiting(session: &Session, line: Index) -> bool {
    !read(session, line as usize).1.is_empty()
}

/// What was taken up before a line, and what waits there.
fn read(session: &Session, until: usize) -> (Vec<(Index, String)>, VecDeque<Option<&str>>) {
    let mut out: Vec<(Index, String)> = Vec::new();
    let mut attached: HashSet<&str> = HashSet::new();
    for record in &session.records {
        if let Some(LineDetail::Queued { text, .. }) = session.detail_of(record) {
            attached.insert(typed(text));
        }
    }
    let mut waiting: VecDeque<Option<&str>> = VecDeque::new();
    for (index, record) in session
        .records
        .iter()
        .enumerate()
        .take(until)
        .filter(|(_, record)| record.thread == 0)
    {
        match session.detail_of(record) {
            Some(LineDetail::Queued { human: true, text }) if is_typed(text) => {
                out.push((index as Index, typed(text).to_owned()));
            }
            Some(LineDetail::Queue { operation, text }) => match operation {
                QueueOperation::Enqueue => {
                    waiting.push_back(text.as_deref());
                    if waiting.len() > WAITING {
                        waiting.pop_front();
                    }
                }
                QueueOperation::Dequeue => drop(waiting.pop_front()),
                QueueOperation::PopAll => waiting.clear(),
                QueueOperation::Remove => {
                    // A text that was never queued takes nothing.
                    let place = match text.as_deref() {
                        Some(text) => waiting.iter().position(|queued| *queued == Some(text)),
                        None => Some(0),
                    };
                    let taken = place.and_then(|place| waiting.remove(place)).flatten();
                    let taken = taken.filter(|text| is_typed(text));
                    let taken = taken.map(typed).filter(|text| !attached.contains(text));
                    out.extend(taken.map(|text| (index as Index, text.to_owned())));
                }
                QueueOperation::Other => {}
            },
            _ => {}
        }
    }
    (out, waiting)
}

/// What was typed: the program puts reminders in front of it.
pub(crate) fn typed(text: &str) -> &str {
    user_input::stripped(text).trim_end()
}

/// Notifications and messages of agents are queued too; a person did not type them.
fn is_typed(text: &str) -> bool {
    let input = user_input::classify(text, UserLineFacts::default());
    matches!(
        input,
        UserInput::Prompt | UserInput::Command | UserInput::Shell
    ) && !typed(text).starts_with("{\"")
}
