//! What a session is for, and what was said in it last.

use super::{Index, Session};
use crate::entry::{self, LineDetail, LineKind};
use crate::title;
use crate::user_input::{self, UserInput};

impl Session {
    /// The first prompt and the last reply, for lists.
    pub(super) fn describe(
        &mut self,
        index: Index,
        head: Option<String>,
        heading: Option<Box<str>>,
    ) {
        let record = &self.records[index as usize];
        if record.thread != 0 {
            return;
        }
        if let Some(LineDetail::Queued { human: true, text }) = self.detail_of(record) {
            let typed = user_input::stripped(text).trim_end();
            if !typed.is_empty() {
                self.recent_prompt = Some(entry::clip(typed, entry::HEAD));
            }
        }
        let record = &self.records[index as usize];
        let Some(head) = head else { return };
        match record.kind {
            LineKind::User => {
                self.recent_prompt = Some(head.clone());
                let weight = PromptWeight::of(record.input, &head);
                if self.goal.is_none() || weight > self.goal_weight {
                    self.goal = Some(head);
                    self.goal_heading = heading;
                    self.goal_weight = weight;
                }
            }
            LineKind::Assistant => {
                let message = record.message().map(|at| &self.messages[at as usize]);
                let real =
                    !record.is_api_error() && message.is_some_and(|message| !message.synthetic);
                match real {
                    true => self.recent_output = Some(head),
                    false => self.keep_failure_text(&head),
                }
            }
            _ => {}
        }
    }

    /// Keeps what the client said in place of a reply, so that it is known again as a title.
    pub(super) fn keep_failure_text(&mut self, text: &str) {
        /// A session has a few of them, each many times.
        const MOST: usize = 20;
        let known = self.failure_texts.iter().any(|known| **known == *text);
        if !known && self.failure_texts.len() < MOST && !text.trim().is_empty() {
            self.failure_texts.push(text.into());
        }
    }

    /// Whether a title says something about a session.
    pub(super) fn is_title(&self, text: &str) -> bool {
        let mut failures = self.failure_texts.iter();
        let is_failure = title::is_failure(text) || failures.any(|said| title::repeats(text, said));
        !text.trim().is_empty() && !is_failure
    }
}

/// How much what a person did says about what a session is for; of equals, the first counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PromptWeight {
    /// A command that only begins the session anew.
    #[default]
    Clear,
    /// Another command, a shell line, a note.
    Command,
    /// A prompt or a plan.
    Prompt,
}

impl PromptWeight {
    fn of(input: UserInput, text: &str) -> PromptWeight {
        let name = text.split_whitespace().next();
        match input {
            UserInput::Prompt | UserInput::Plan => PromptWeight::Prompt,
            UserInput::Command if matches!(name, Some("/clear" | "/reset" | "/new")) => {
                PromptWeight::Clear
            }
            _ => PromptWeight::Command,
        }
    }
}
