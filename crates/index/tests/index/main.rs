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

use unspool_index::CacheNotice;
use unspool_index::facts::FileFactCache;
use unspool_index::file_mark::ReadMark;

/// What is known of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    mark: ReadMark,
    blob: Vec<u8>,
}

/// All that is known, and what was said about it.
fn load(facts: &mut FileFactCache) -> (HashMap<PathBuf, Kept>, Option<CacheNotice>) {
    let mut all = HashMap::new();
    let notice = facts.each(|path, mark, bytes| {
        let blob = bytes.to_vec();
        all.insert(path, Kept { mark, blob });
    });
    (all, notice.unwrap())
}
