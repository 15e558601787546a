//! The same thing for many files, on all cores.
//!
//! Results come in the order of the files; work is handed out largest first, so that the
//! last file to finish is a small one. Each thread keeps its buffers (see [`crate::read`]).

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many threads to use unless somebody knows better.
pub fn threads() -> usize {
    // Asking costs several reads below /proc, as much as reading a small session.
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZero::get))
}

/// What `job` makes of each item, in the order of the items.
///
/// `size` is how much work an item is, for instance its bytes.
pub fn map<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    size: impl Fn(&T) -> u64,
    job: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let workers = threads.min(items.len());
    if workers < 2 {
        return items.iter().map(job).collect();
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(size(&items[at])));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((at, job(&items[at])));
        }
        done
    };
    let mut all = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            match other.join() {
                Ok(done) => all.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        for threads in [0, 1, 2, 7] {
            let doubled = map(&items, threads, |item| item % 13, |item| item * 2);
            assert!(doubled.iter().zip(&items).all(|(two, one)| *two == one * 2));
            assert_eq!(doubled.len(), items.len());
        }
        assert!(map(&[] as &[u64], 4, |_| 0, |item| *item).is_empty());
    }
}
