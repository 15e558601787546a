//! Items as they are collected.

use super::{Body, Item, Note};
use crate::session::Record;

/// Items as they are collected; bookkeeping next to bookkeeping becomes one item.
#[derive(Default)]
pub(super) struct Items {
    pub(super) all: Vec<Item>,
    /// Whether something became part of an item that was there, since somebody asked.
    pub(super) joined: bool,
    /// Lines of hooks that said nothing new.
    pub(super) repeats: Vec<u32>,
}

impl Items {
    pub(super) fn push(&mut self, record: &Record, body: Body) {
        // An empty output is no news.
        let empty =
            matches!(&body, Body::Command { command: None, output, .. } if output.is_empty());
        if empty {
            return;
        }
        if let (
            Body::Command {
                command: None,
                output,
                is_error,
            },
            Some(Item {
                body:
                    Body::Command {
                        command: Some(_),
                        output: slot,
                        is_error: flag,
                    },
                ..
            }),
        ) = (&body, self.all.last_mut())
            && slot.is_empty()
        {
            (*slot, *flag) = (output.clone(), *is_error);
            self.joined = true;
            return;
        }
        self.all.push(Item {
            line: record.line,
            at: record.at(),
            body,
        });
    }

    pub(super) fn note(&mut self, record: &Record, label: String, matters: bool, text: String) {
        let note = Note {
            label,
            count: 1,
            matters,
            text,
        };
        let Some(Item {
            body: Body::Notes(notes),
            ..
        }) = self.all.last_mut()
        else {
            return self.push(record, Body::Notes(vec![note]));
        };
        self.joined = true;
        match notes.iter_mut().find(|other| other.label == note.label) {
            Some(other) => {
                other.count += 1;
                if !other.text.is_empty() && !note.text.is_empty() {
                    other.text.push_str("\n\n");
                }
                other.text.push_str(&note.text);
            }
            None => notes.push(note),
        }
    }

    pub(super) fn think(&mut self, record: &Record, text: String) {
        let chars = text.chars().count();
        if let Some(Item {
            body:
                Body::Thinking {
                    text: before,
                    chars: sum,
                },
            ..
        }) = self.all.last_mut()
        {
            if !before.is_empty() && !text.is_empty() {
                before.push_str("\n\n");
            }
            before.push_str(&text);
            *sum += chars;
            self.joined = true;
            return;
        }
        self.push(record, Body::Thinking { text, chars });
    }
}
