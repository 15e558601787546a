//! The same thing for many files, or for the pieces of one, on all cores.
//!
//! Results come in order. Files are handed out largest first, so that the last one to finish
//! is a small one; pieces as they come, with few of them in flight. Each thread keeps its
//! buffers (see [`crate::read`]).

use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
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
/// `next` and `job` run on several threads, `take` on this one. At most two things for each
/// thread are in flight, however long one of them takes. Whatever fails first ends all.
pub fn in_order<T: Send, R: Send, E: Send>(
    threads: usize,
    mut next: impl FnMut() -> Result<Option<T>, E> + Send,
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
    let Some(first) = next()? else {
        return Ok(());
    };
    let Some(second) = next()? else {
        return take(job(first));
    };
    let mut early = vec![second, first];
    let line = Line {
        state: Mutex::new(State {
            next: move || match early.pop() {
                Some(thing) => Ok(Some(thing)),
                None => next(),
            },
            given: 0,
            taken: 0,
            is_over: false,
        }),
        moved: Condvar::new(),
        most: 2 * threads,
    };
    let (done, results) = channel();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (line, job, done) = (&line, &job, done.clone());
            scope.spawn(move || line.work(job, &done));
        }
        drop(done);
        // Also if `take` fails or panics: nobody waits for it any more.
        let _over = Over(&line);
        line.collect(results, &mut take)
    })
}

/// Things on their way through the threads.
struct Line<N> {
    state: Mutex<State<N>>,
    /// Told when something was taken.
    moved: Condvar,
    /// How many may be on their way.
    most: usize,
}

struct State<N> {
    next: N,
    given: usize,
    taken: usize,
    is_over: bool,
}

/// What a thread has to tell: the number of a thing and what became of it, or why there is none.
enum Outcome<R, E> {
    Done(usize, R),
    Failed(E),
    Panicked(Box<dyn std::any::Any + Send>),
}

impl<N> Line<N> {
    fn state(&self) -> MutexGuard<'_, State<N>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work<T, R, E>(&self, job: &impl Fn(T) -> R, done: &Sender<Outcome<R, E>>)
    where
        N: FnMut() -> Result<Option<T>, E>,
    {
        loop {
            let outcome = match catch_unwind(AssertUnwindSafe(|| self.step(job))) {
                Ok(Ok(Some((number, result)))) => Outcome::Done(number, result),
                Ok(Ok(None)) => return,
                Ok(Err(error)) => Outcome::Failed(error),
                Err(panic) => Outcome::Panicked(panic),
            };
            let ends = !matches!(outcome, Outcome::Done(..));
            if done.send(outcome).is_err() || ends {
                return;
            }
        }
    }

    /// Waits for its turn, and does the next thing; none if there is no more.
    fn step<T, R, E>(&self, job: &impl Fn(T) -> R) -> Result<Option<(usize, R)>, E>
    where
        N: FnMut() -> Result<Option<T>, E>,
    {
        let state = self.state();
        let is_full =
            |state: &mut State<N>| !state.is_over && state.given >= state.taken + self.most;
        let state = self.moved.wait_while(state, is_full);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            return Ok(None);
        }
        let Some(thing) = (state.next)()? else {
            return Ok(None);
        };
        let number = state.given;
        state.given += 1;
        drop(state);
        Ok(Some((number, job(thing))))
    }

    fn collect<R, E>(
        &self,
        results: Receiver<Outcome<R, E>>,
        take: &mut impl FnMut(R) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut early = BTreeMap::new();
        let mut taken = 0;
        for outcome in results {
            match outcome {
                Outcome::Done(number, result) => drop(early.insert(number, result)),
                Outcome::Failed(error) => return Err(error),
                // A panic must reach the caller, or something would be missing without a word.
                Outcome::Panicked(panic) => resume_unwind(panic),
            }
            while let Some(result) = early.remove(&taken) {
                take(result)?;
                taken += 1;
                self.state().taken = taken;
                self.moved.notify_all();
            }
        }
        Ok(())
    }
}

/// Lets everybody go home when it is dropped.
struct Over<'a, N>(&'a Line<N>);

impl<N> Drop for Over<'_, N> {
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
