//! Work on several threads, handed on in its order.
//!
//! Each piece is read and made by whoever is free, so that a long document uses all cores.
//! What a piece has to know of those before it is passed along in between, in their order.
//! Few pieces are on the desk at any time, so memory does not grow with their number.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How many pieces each thread may be ahead of what was taken.
const AHEAD: usize = 4;

/// What is done with pieces.
pub(super) trait OrderedWork: Sync {
    /// What was read of a piece.
    type Read: Send;
    /// What a piece has to know of those before it.
    type Known: Clone + Send;
    /// A piece that is done.
    type Made: Send;

    /// Reads a piece, in any order.
    fn read(&self, at: usize) -> Self::Read;
    /// Notes what those behind it have to know, in the order of the pieces: be quick.
    fn pass(&self, known: &mut Self::Known, read: &Self::Read);
    /// Makes something of it, in any order.
    fn make(&self, read: Self::Read, known: Self::Known) -> Self::Made;
}

/// Does all pieces and takes each when its turn has come, until that fails; what was known in
/// the end.
pub(super) fn in_order<W: OrderedWork>(
    work: &W,
    count: usize,
    known: W::Known,
    take: impl FnMut(W::Made) -> io::Result<()>,
) -> io::Result<W::Known> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    on(threads, work, count, known, take)
}

fn on<W: OrderedWork>(
    threads: usize,
    work: &W,
    count: usize,
    known: W::Known,
    mut take: impl FnMut(W::Made) -> io::Result<()>,
) -> io::Result<W::Known> {
    let desk = PieceQueue::<W> {
        count,
        ahead: threads * AHEAD,
        state: Mutex::new(PieceQueueState {
            given: 0,
            passed: 0,
            taken: 0,
            read: BTreeMap::new(),
            known,
            done: BTreeMap::new(),
            over: false,
        }),
        changed: Condvar::new(),
    };
    let taken = thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            scope.spawn(|| desk.work(work));
        }
        // Nobody works on once this has ended, whichever way.
        let _over = EndQueueOnDrop(&desk);
        std::iter::from_fn(|| desk.next()).try_for_each(&mut take)
    });
    taken.map(|()| desk.into_known())
}

struct PieceQueue<W: OrderedWork> {
    count: usize,
    ahead: usize,
    state: Mutex<PieceQueueState<W>>,
    changed: Condvar,
}

struct PieceQueueState<W: OrderedWork> {
    /// How many pieces were given to somebody.
    given: usize,
    /// How many have passed on what they know.
    passed: usize,
    /// How many were taken.
    taken: usize,
    /// Those that were read and wait for what those before them know.
    read: BTreeMap<usize, W::Read>,
    known: W::Known,
    /// Those that are done and were not taken.
    done: BTreeMap<usize, W::Made>,
    /// Nothing more is wanted, or somebody panicked.
    over: bool,
}

impl<W: OrderedWork> PieceQueue<W> {
    fn work(&self, work: &W) {
        let panicking = EndQueueOnDrop(self);
        while let Some(task) = self.give(work) {
            match task {
                PieceTask::Read(at) => {
                    let read = work.read(at);
                    self.lock().read.insert(at, read);
                }
                PieceTask::Make(at, read, known) => {
                    let made = work.make(read, known);
                    self.lock().done.insert(at, made);
                }
            }
            self.changed.notify_all();
        }
        std::mem::forget(panicking);
    }

    /// What to do next: what is soonest taken comes first.
    fn give(&self, work: &W) -> Option<PieceTask<W>> {
        let is_ready = |state: &PieceQueueState<W>| state.read.contains_key(&state.passed);
        let may_read = |state: &PieceQueueState<W>| {
            state.given < self.count && state.given < state.taken + self.ahead
        };
        let nothing = |state: &PieceQueueState<W>| {
            state.passed < self.count && !is_ready(state) && !may_read(state)
        };
        let mut state = self.wait_while(nothing)?;
        let at = state.passed;
        if let Some(read) = state.read.remove(&at) {
            let known = state.known.clone();
            work.pass(&mut state.known, &read);
            state.passed += 1;
            return Some(PieceTask::Make(at, read, known));
        }
        let at = state.given;
        (at < self.count).then(|| {
            state.given += 1;
            PieceTask::Read(at)
        })
    }

    /// The next piece that is done.
    fn next(&self) -> Option<W::Made> {
        let missing = |state: &PieceQueueState<W>| {
            state.taken < self.count && !state.done.contains_key(&state.taken)
        };
        let mut state = self.wait_while(missing)?;
        let at = state.taken;
        state.taken += 1;
        let made = state.done.remove(&at);
        drop(state);
        self.changed.notify_all();
        made
    }

    /// Waits; nothing if it is over by then.
    fn wait_while(
        &self,
        wait: impl Fn(&PieceQueueState<W>) -> bool,
    ) -> Option<MutexGuard<'_, PieceQueueState<W>>> {
        let waited = self
            .changed
            .wait_while(self.lock(), |state| !state.over && wait(state));
        let state = waited.unwrap_or_else(PoisonError::into_inner);
        (!state.over).then_some(state)
    }

    fn lock(&self) -> MutexGuard<'_, PieceQueueState<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn into_known(self) -> W::Known {
        let state = self.state.into_inner();
        state.unwrap_or_else(PoisonError::into_inner).known
    }
}

/// What a thread does next.
enum PieceTask<W: OrderedWork> {
    Read(usize),
    Make(usize, W::Read, W::Known),
}

/// Ends the work of all when it is dropped.
struct EndQueueOnDrop<'d, W: OrderedWork>(&'d PieceQueue<W>);

impl<W: OrderedWork> Drop for EndQueueOnDrop<'_, W> {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Numbers, and the sum of those before each.
    #[derive(Default)]
    struct RunningSums {
        /// Panics here.
        bad: Option<usize>,
        read: AtomicUsize,
        taken: AtomicUsize,
        most: AtomicUsize,
    }

    impl OrderedWork for RunningSums {
        type Read = usize;
        type Known = usize;
        type Made = (usize, usize);

        fn read(&self, at: usize) -> usize {
            let read = self.read.fetch_add(1, Ordering::SeqCst) + 1;
            let held = read - self.taken.load(Ordering::SeqCst);
            self.most.fetch_max(held, Ordering::SeqCst);
            if at.is_multiple_of(3) {
                thread::yield_now();
            }
            at
        }

        fn pass(&self, sum: &mut usize, at: &usize) {
            *sum += at;
        }

        fn make(&self, at: usize, sum: usize) -> (usize, usize) {
            assert_ne!(self.bad, Some(at), "as it should");
            (at, sum)
        }
    }

    #[test]
    fn pieces_come_in_order_and_know_what_was_before_them() {
        for threads in [1, 2, 7] {
            for count in [0, 1, 2, 500] {
                let (sums, mut all) = (RunningSums::default(), Vec::new());
                let sum = on(threads, &sums, count, 0, |one| {
                    sums.taken.fetch_add(1, Ordering::SeqCst);
                    all.push(one);
                    Ok(())
                });
                let expected = (0..count).map(|at| (at, (0..at).sum()));
                assert_eq!(all, expected.collect::<Vec<(usize, usize)>>());
                assert_eq!(sum.unwrap(), (0..count).sum::<usize>());
                // One more than is waited for may be on its way to be counted.
                assert!(sums.most.into_inner() <= threads * AHEAD + 1);
            }
        }
    }

    #[test]
    fn who_cannot_take_more_ends_it() {
        let sums = RunningSums::default();
        let mut left = 3;
        let taken = on(4, &sums, 10_000, 0, |_| {
            left -= 1;
            match left {
                0 => Err(io::ErrorKind::StorageFull.into()),
                _ => Ok(()),
            }
        });
        assert_eq!(taken.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(sums.read.into_inner() < 100);
    }

    #[test]
    #[should_panic(expected = "a scoped thread panicked")]
    fn a_panic_reaches_whoever_asked() {
        let sums = RunningSums {
            bad: Some(20),
            ..RunningSums::default()
        };
        let _ = on(3, &sums, 1_000, 0, |_| Ok(()));
    }
}
