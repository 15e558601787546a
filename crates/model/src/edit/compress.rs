//! Older texts in fewer words: which ones, what a model is asked, and what is made of its answer.
//!
//! Nobody is asked here; see the program's runner. What was shortened carries a mark, a field
//! of ours that no client reads, so that doing it again to the same degree changes nothing.

mod answer;
mod band;
mod request;
mod task;

pub use answer::answer;
pub use band::{BadBand, Band, bands};
pub use request::{SUMMARY_WISH, digest, request, summary_request, wish};
pub use task::{MINIMUM, Task, tasks};

use super::{Loss, Plan};
use crate::tokens;

/// Which field of ours says to how many percent a text was shortened.
pub(super) const MARK: [&str; 2] = ["unspool", "compressed"];

/// Why the answer to a task cannot be used, if it cannot.
pub fn refuse(task: &Task, text: &str) -> Option<&'static str> {
    if text.trim().is_empty() {
        return Some("the response is empty");
    }
    let is_longer = text.chars().count() >= task.text.chars().count();
    is_longer.then_some("the response is not shorter than the text")
}

/// Stands for a text that nobody was asked for yet: as long as it should become.
pub fn guess(task: &Task) -> String {
    task.text.chars().take(task.wanted()).collect()
}

/// Puts a shorter text in the place of the old one. All texts of the line become one, where
/// the first of them stood.
pub fn apply(plan: &mut Plan, task: &Task, text: &str) {
    let Some((&first, others)) = task.blocks.split_first() else {
        return;
    };
    plan.say(task.record, first, text);
    for &block in others {
        plan.remove_block(task.record, block);
    }
    plan.mark(task.record, task.target);
    plan.counts.texts_shortened += 1;
    let saved = task.tokens.saturating_sub(tokens::of_text(text));
    plan.lose_tokens(Loss::Shortened, 1, saved);
}
