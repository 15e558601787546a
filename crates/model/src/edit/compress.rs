//! Older texts in fewer words: which ones, what a model is asked, and what is made of its answer.
//!
//! Nobody is asked here; see the program's runner. What was shortened carries a mark, a field
//! of ours that no client reads, so that doing it again to the same degree changes nothing.

mod answer;
mod compress_range;
mod compress_task;
mod request;

pub use answer::answer;
pub use compress_range::{CompressRange, CompressRangeError, parse_ranges};
pub use compress_task::{CompressTask, MINIMUM, tasks};
pub use request::{SUMMARY_WISH, conversation_excerpt, instruction, request, summary_request};

use super::{EditPlan, LossKind};
use crate::token_estimate;

/// Which field of ours says to how many percent a text was shortened.
pub(super) const MARK: [&str; 2] = ["unspool", "compressed"];

/// Why the answer to a task cannot be used, if it cannot.
pub fn refuse(task: &CompressTask, text: &str) -> Option<&'static str> {
    if text.trim().is_empty() {
        return Some("the response is empty");
    }
    let is_longer = text.chars().count() >= task.text.chars().count();
    is_longer.then_some("the response is not shorter than the text")
}

/// Stands for a text that nobody was asked for yet: as long as it should become.
pub fn guess(task: &CompressTask) -> String {
    task.text.chars().take(task.wanted()).collect()
}

/// Puts a shorter text in the place of the old one. All texts of the line become one, where
/// the first of them stood.
pub fn apply(plan: &mut EditPlan, task: &CompressTask, text: &str) {
    let Some((&first, others)) = task.blocks.split_first() else {
        return;
    };
    plan.say(task.record, first, text);
    for &block in others {
        plan.remove_block(task.record, block);
    }
    plan.mark(task.record, task.target);
    plan.counts.texts_shortened += 1;
    let saved = task.tokens.saturating_sub(token_estimate::of_text(text));
    plan.lose_tokens(LossKind::Shortened, 1, saved);
}
