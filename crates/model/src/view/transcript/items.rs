//! Items as they are collected.

use super::{ItemBody, TranscriptItem, TranscriptNote};
use crate::session::EntryRecord;

/// Items as they are collected; bookkeeping next to bookkeeping becomes one item.
#[derive(Default)]
pub(super) struct ItemCollector {
    pub(super) all: Vec<TranscriptItem>,
    /// Whether something became part of an item that was there, since somebody asked.
    pub(super) joined: bool,
    /// Lines of hooks that said nothing new.
    pub(super) repeats: Vec<u32>,
}

impl ItemCollector {
    pub(super) fn push(&mut self, record: &EntryRecord, body: ItemBody) {
        // An empty output is no news.
        let empty =
            matches!(&body, ItemBody::Command { command: None, output, .. } if output.is_empty());
        if empty {
            return;
        }
        if let (
            ItemBody::Command {
                command: None,
                output,
                is_error,
            },
            Some(TranscriptItem {
                body:
                    ItemBody::Command {
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
        self.all.push(TranscriptItem {
            line: record.line,
            at: record.at(),
            body,
        });
    }

    pub(super) fn note(
        &mut self,
        record: &EntryRecord,
        label: String,
        matters: bool,
        text: String,
    ) {
        let note = TranscriptNote {
            label,
            count: 1,
            matters,
            text,
        };
        let Some(TranscriptItem {
            body: ItemBody::Notes(notes),
            ..
        }) = self.all.last_mut()
        else {
            return self.push(record, ItemBody::Notes(vec![note]));
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

    pub(super) fn think(&mut self, record: &EntryRecord, text: String) {
        let chars = text.chars().count();
        if let Some(TranscriptItem {
            body:
                ItemBody::Thinking {
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
        self.push(record, ItemBody::Thinking { text, chars });
    }
}
