//! The same thing for many files, or for the pieces of one, on all cores.
//!
//! Results come in order. Files are handed out largest first, so that the last one to finish
//! is a small one; pieces as they come, with few of them in flight. Each thread keeps its
//! buffers (see [`crate::read`]).

use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

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

/// Takes what `job` makes of each thing that `next` gives, in order.
///
/// `next` and `job` run on several threads, this one among them, `take` on this one alone. At
/// most two things for each thread are in flight, however long one of them takes. Whatever
/// fails first ends all.
pub fn in_order<T: Send, R: Send, E: Send>(
    threads: usize,
    next: impl FnMut() -> Result<Option<T>, E> + Send,
    job: impl Fn(T) -> R + Sync,
    take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    in_order_by_size(threads, next, |_| false, job, take)
}

/// The same for things of which some take much memory: behind one that `is_large`, nothing is
/// begun before it is taken.
pub fn in_order_by_size<T: Send, R: Send, E: Send>(
    threads: usize,
    mut next: impl FnMut() -> Result<Option<T>, E> + Send,
    is_large: impl Fn(&T) -> bool + Send,
    job: impl Fn(T) -> R + Sync,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    if threads < 2 {
        while let Some(thing) = next()? {
            take(job(thing))?;
        }
        return Ok(());
    }
    // Most have one piece, and need no other thread.
    let first = loop {
        match next()? {
            None => return Ok(()),
            Some(thing) if is_large(&thing) => take(job(thing))?,
            Some(thing) => break thing,
        }
    };
    let Some(second) = next()? else {
        return take(job(first));
    };
    let mut early = vec![second, first];
    let line = ParallelQueue {
        state: Mutex::new(ParallelQueueState {
            next: move || {
                let thing = match early.pop() {
                    Some(thing) => Some(thing),
                    None => next()?,
                };
                Ok(thing.map(|thing| (is_large(&thing), thing)))
            },
            given: 0,
            taken: 0,
            large: None,
            done: BTreeMap::new(),
            trouble: None,
            is_over: false,
            waiting: 0,
        }),
        moved: Condvar::new(),
        most: 2 * threads,
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| line.help(&job));
        }
        // Also if something fails or panics here: nobody waits for it any more.
        let _over = QueueCloseGuard(&line);
        line.lead(&job, &mut take)
    })
}

/// Things on their way through the threads.
struct ParallelQueue<N, R, E> {
    state: Mutex<ParallelQueueState<N, R, E>>,
    /// Told when somebody who waits may go on.
    moved: Condvar,
    /// How many may be on their way.
    most: usize,
}

struct ParallelQueueState<N, R, E> {
    next: N,
    /// How many were given out, and how many were taken in the end.
    given: usize,
    taken: usize,
    /// The number of the last one that is large.
    large: Option<usize>,
    /// What became of those in between, by number.
    done: BTreeMap<usize, R>,
    /// Why it cannot go on.
    trouble: Option<ParallelFailure<E>>,
    /// No more is given out.
    is_over: bool,
    /// How many threads wait: waking nobody costs as much as waking somebody.
    waiting: usize,
}

enum ParallelFailure<E> {
    Failed(E),
    Panicked(Box<dyn std::any::Any + Send>),
}

impl<T, R, E, N> ParallelQueue<N, R, E>
where
    N: FnMut() -> Result<Option<(bool, T)>, E>,
{
    /// Takes what is done, and helps while there is nothing to take.
    fn lead(
        &self,
        job: &impl Fn(T) -> R,
        take: &mut impl FnMut(R) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut state = self.state();
        loop {
            let now = state.taken;
            if let Some(result) = state.done.remove(&now) {
                drop(state);
                take(result)?;
                state = self.state();
                state.taken += 1;
            } else if let Some((number, thing)) = self.give(&mut state)? {
                drop(state);
                let result = job(thing);
                state = self.state();
                state.done.insert(number, result);
                continue;
            } else {
                match state.trouble.take() {
                    None if state.taken == state.given => return Ok(()),
                    None => state = self.wait(state),
                    Some(ParallelFailure::Failed(error)) => return Err(error),
                    // A panic must reach the caller, or something would be missing without a word.
                    Some(ParallelFailure::Panicked(panic)) => resume_unwind(panic),
                }
                continue;
            }
            if state.waiting > 0 {
                self.moved.notify_all();
            }
        }
    }

    /// Does one thing after the other.
    fn help(&self, job: &impl Fn(T) -> R) {
        let mut state = self.state();
        while !state.is_over {
            if state.is_full(self.most) {
                state = self.wait(state);
                continue;
            }
            let given = catch_unwind(AssertUnwindSafe(|| self.give(&mut state)));
            let done = match given {
                Ok(Ok(None)) => break,
                Ok(Ok(Some((number, thing)))) => {
                    drop(state);
                    let result = catch_unwind(AssertUnwindSafe(|| job(thing)));
                    state = self.state();
                    result.map(|result| drop(state.done.insert(number, result)))
                }
                Ok(Err(error)) => {
                    state.fail(ParallelFailure::Failed(error));
                    break;
                }
                Err(panic) => Err(panic),
            };
            if let Err(panic) = done {
                state.fail(ParallelFailure::Panicked(panic));
            }
            if state.waiting > 0 {
                self.moved.notify_all();
            }
        }
        if state.waiting > 0 {
            self.moved.notify_all();
        }
    }

    /// The next thing and its number, if there is one and room for it.
    fn give(&self, state: &mut ParallelQueueState<N, R, E>) -> Result<Option<(usize, T)>, E> {
        if state.is_over || state.is_full(self.most) {
            return Ok(None);
        }
        let Some((is_large, thing)) = (state.next)()? else {
            state.is_over = true;
            return Ok(None);
        };
        if is_large {
            state.large = Some(state.given);
        }
        state.given += 1;
        Ok(Some((state.given - 1, thing)))
    }
}

impl<N, R, E> ParallelQueue<N, R, E> {
    fn state(&self) -> MutexGuard<'_, ParallelQueueState<N, R, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, ParallelQueueState<N, R, E>>,
    ) -> MutexGuard<'a, ParallelQueueState<N, R, E>> {
        state.waiting += 1;
        let state = self.moved.wait(state);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }
}

impl<N, R, E> ParallelQueueState<N, R, E> {
    /// Whether nothing more may be given out before something is taken.
    fn is_full(&self, most: usize) -> bool {
        let waits = |large: usize| self.taken <= large;
        self.given >= self.taken + most || self.large.is_some_and(waits)
    }

    fn fail(&mut self, trouble: ParallelFailure<E>) {
        self.is_over = true;
        self.trouble.get_or_insert(trouble);
    }
}

/// Lets everybody go home when it is dropped.
struct QueueCloseGuard<'a, N, R, E>(&'a ParallelQueue<N, R, E>);

impl<N, R, E> Drop for QueueCloseGuard<'_, N, R, E> {
    fn drop(&mut self) {
        self.0.state().is_over = true;
        self.0.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_taken_in_order_and_few_are_in_flight() {
        for threads in [0, 1, 2, 5] {
            for many in [0, 1, 2, 3, 500] {
                let (given, mut taken) = (AtomicUsize::new(0), Vec::new());
                let next = || {
                    let number = given.fetch_add(1, Ordering::Relaxed);
                    Ok::<_, ()>((number < many).then_some(number))
                };
                // The first takes long: the others do not run away.
                let job = |number: usize| {
                    if number == 0 {
                        std::thread::sleep(std::time::Duration::from_millis(20));
                    }
                    (number, given.load(Ordering::Relaxed))
                };
                in_order(threads, next, job, |(number, given)| {
                    assert!(given <= number + 2 * threads.max(1) + 1, "{given} {number}");
                    taken.push(number);
                    Ok(())
                })
                .unwrap();
                assert_eq!(taken, Vec::from_iter(0..many), "{threads}");
            }
        }
    }

    #[test]
    fn while_a_large_thing_is_on_its_way_nothing_else_is_begun() {
        for threads in [1, 2, 5] {
            let begun = AtomicUsize::new(0);
            let next = || {
                let number = begun.fetch_add(1, Ordering::Relaxed);
                Ok::<_, ()>((number < 200).then_some(number))
            };
            let is_large = |number: &usize| number % 7 == 3 || *number == 0 || *number == 8;
            let mut taken = 0;
            in_order_by_size(
                threads,
                next,
                is_large,
                |number| number,
                |number| {
                    assert_eq!(number, taken);
                    taken += 1;
                    if is_large(&number) {
                        assert_eq!(begun.load(Ordering::Relaxed), number + 1);
                    }
                    Ok(())
                },
            )
            .unwrap();
            assert_eq!(taken, 200);
        }
    }

    #[test]
    fn whatever_fails_ends_all() {
        for threads in [1, 3] {
            let count = |limit: usize| {
                let mut at = 0;
                move || {
                    at += 1;
                    if at == limit {
                        Err("next")
                    } else {
                        Ok(Some(at))
                    }
                }
            };
            let end = in_order(threads, count(20), |at| at, |_| Ok(()));
            assert_eq!(end, Err("next"));
            let end = in_order(
                threads,
                count(0),
                |at| at,
                |at| if at < 50 { Ok(()) } else { Err("take") },
            );
            assert_eq!(end, Err("take"));
            for in_job in [true, false] {
                let panics = catch_unwind(|| {
                    let job = |at: usize| assert!(!in_job || at < 9);
                    in_order(threads, count(0), job, |()| match in_job {
                        true => Ok(()),
                        false => panic!("take"),
                    })
                });
                assert!(panics.is_err());
            }
        }
    }

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
