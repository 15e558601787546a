//! What the caches promise, against real files.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod db;
mod facts;
mod keep;
mod spending;
mod tables;
mod text;

use std::collections::HashMap;
use std::path::PathBuf;

use unspool_index::Notice;
use unspool_index::facts::Facts;
use unspool_index::keep::Mark;

/// What is known of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    mark: Mark,
    blob: Vec<u8>,
}

/// All that is known, and what was said about it.
fn load(facts: &mut Facts) -> (HashMap<PathBuf, Kept>, Option<Notice>) {
    let mut all = HashMap::new();
    let notice = facts.each(|path, mark, bytes| {
        let blob = bytes.to_vec();
        all.insert(path, Kept { mark, blob });
    });
    (all, notice.unwrap())
}
