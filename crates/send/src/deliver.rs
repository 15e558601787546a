//! Requests, again and again until somebody has taken them, and spans that nobody takes.
//!
//! A request that is too large, or that holds something a receiver does not take, is sent in
//! halves: in the end the span is alone that is to blame, and the rest is delivered. Several
//! threads may deliver at once; when one of them finds that nothing will be taken any more,
//! all stop.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::otlp::OtlpRequest;
use crate::receiver::{DeliveryStop, ReceiverAnswer, TraceReceiver};
use crate::trace_id::{SpanId, TraceId};

/// How often to try, and how long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// For how long to try again in all, from the first failure on.
    pub long: Duration,
    /// How long to pause at first; twice as long each time.
    pub pause: Duration,
    /// The longest pause, unless the receiver asks for a longer one.
    pub longest: Duration,
}

impl Default for RetryLimits {
    fn default() -> RetryLimits {
        RetryLimits {
            long: Duration::from_secs(60),
            pause: Duration::from_millis(500),
            longest: Duration::from_secs(30),
        }
    }
}

/// Spans that were not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedSpans {
    /// Which ones; none if that is not known.
    pub spans: Vec<(TraceId, SpanId)>,
    /// How many there are.
    pub count: u64,
    /// What the receiver says.
    pub why: String,
}

/// So many spans in a row are refused before we ask whether it is the spans.
const BLAMED: usize = 5;

/// Somebody who brings requests to a receiver.
pub struct TraceDelivery<'a> {
    receiver: &'a dyn TraceReceiver,
    patience: RetryLimits,
    state: Mutex<DeliveryState>,
    stop: Condvar,
    bytes: AtomicU64,
    requests: AtomicU64,
}

#[derive(Default)]
struct DeliveryState {
    stopped: Option<DeliveryStop>,
    /// Nobody sends before this.
    pause: Option<Instant>,
    /// Something was taken, so that it is the spans when some are not.
    taken: bool,
    /// Single spans that were refused before anything was taken.
    blamed: usize,
}

impl<'a> TraceDelivery<'a> {
    /// Somebody with this patience.
    pub fn new(receiver: &'a dyn TraceReceiver, patience: RetryLimits) -> TraceDelivery<'a> {
        TraceDelivery {
            receiver,
            patience,
            state: Mutex::default(),
            stop: Condvar::new(),
            bytes: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        }
    }

    /// Bytes that went out in requests that were answered, and how many those were.
    pub fn counts(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.bytes), read(&self.requests))
    }

    /// Delivers a request. When it returns, the receiver has every span but those that it says
    /// it will never take.
    pub fn deliver(&self, batch: OtlpRequest) -> Result<Vec<RejectedSpans>, DeliveryStop> {
        let mut rejected = Vec::new();
        let mut left = vec![batch];
        while let Some(batch) = left.pop() {
            match self.insist(&batch.encode())? {
                DeliveryResult::Yes => self.lock().taken = true,
                DeliveryResult::Without(count, why) => {
                    self.lock().taken = true;
                    let all = count >= batch.spans().len() as u64;
                    let spans = if all { batch.spans() } else { &[] };
                    rejected.push(RejectedSpans {
                        spans: spans.to_vec(),
                        count,
                        why,
                    });
                }
                DeliveryResult::No(why) => match batch.split() {
                    Ok((first, second)) => left.extend([second, first]),
                    Err(alone) => {
                        self.blame(&why, left.is_empty())?;
                        rejected.push(RejectedSpans {
                            spans: alone.spans().to_vec(),
                            count: 1,
                            why,
                        });
                    }
                },
            }
        }
        Ok(rejected)
    }

    /// Stops everybody.
    pub fn halt(&self, stopped: DeliveryStop) {
        self.lock().stopped.get_or_insert(stopped);
        self.stop.notify_all();
    }

    /// Sends until there is an answer that will not change.
    fn insist(&self, body: &[u8]) -> Result<DeliveryResult, DeliveryStop> {
        let (mut since, mut pause) = (None, self.patience.pause);
        loop {
            self.rest()?;
            let (answer, bytes) = self.receiver.post(body);
            self.requests.fetch_add(1, Ordering::Relaxed);
            let (why, after) = match answer {
                ReceiverAnswer::Taken(lost) => {
                    self.bytes.fetch_add(bytes, Ordering::Relaxed);
                    return Ok(match lost {
                        None => DeliveryResult::Yes,
                        Some(lost) => DeliveryResult::Without(lost.spans, lost.why),
                    });
                }
                ReceiverAnswer::TooLarge(why) | ReceiverAnswer::Refused(why) => {
                    return Ok(DeliveryResult::No(why));
                }
                ReceiverAnswer::Stop(stopped) => {
                    self.halt(stopped.clone());
                    return Err(stopped);
                }
                ReceiverAnswer::Later { why, after } => (why, after),
            };
            let since = *since.get_or_insert_with(Instant::now);
            // Who asks for a pause is heard, unless it is longer than all our patience.
            let wait = after
                .unwrap_or_else(|| shaken(pause))
                .max(Duration::from_millis(1));
            if since.elapsed() + wait > self.patience.long {
                let stopped = given_up(&why, after);
                self.halt(stopped.clone());
                return Err(stopped);
            }
            pause = (pause * 2).min(self.patience.longest);
            self.wait(wait);
        }
    }

    /// Nobody sends for so long.
    fn wait(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut state = self.lock();
        state.pause = state.pause.max(Some(until));
    }

    /// Waits for the end of a pause; fails if everything stopped.
    fn rest(&self) -> Result<(), DeliveryStop> {
        let mut state = self.lock();
        loop {
            if let Some(stopped) = &state.stopped {
                return Err(stopped.clone());
            }
            let left = state
                .pause
                .and_then(|until| until.checked_duration_since(Instant::now()));
            let Some(left) = left.filter(|left| !left.is_zero()) else {
                return Ok(());
            };
            let waited = self.stop.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A receiver that takes nothing at all, not even a request without spans, is none. Some
    /// refuse a request without spans, so it is the last thing that is tried.
    fn blame(&self, why: &str, last: bool) -> Result<(), DeliveryStop> {
        let mut state = self.lock();
        state.blamed += 1;
        if state.taken || !last && state.blamed < BLAMED {
            return Ok(());
        }
        drop(state);
        if matches!(self.insist(&[])?, DeliveryResult::Yes) {
            self.lock().taken = true;
            return Ok(());
        }
        let stopped = DeliveryStop {
            why: format!("the receiver rejects everything: {why}"),
            hint: "check that the endpoint accepts OTLP traces over HTTP".to_owned(),
        };
        self.halt(stopped.clone());
        Err(stopped)
    }

    fn lock(&self) -> MutexGuard<'_, DeliveryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum DeliveryResult {
    Yes,
    Without(u64, String),
    No(String),
}

fn given_up(why: &str, after: Option<Duration>) -> DeliveryStop {
    let hint = match after {
        Some(after) => format!("retry in {} s; nothing is lost", after.as_secs()),
        None => "retry later; nothing is lost".to_owned(),
    };
    DeliveryStop {
        why: why.to_owned(),
        hint,
    }
}

/// A pause somewhere between half as long and as long, so that not all come back at once.
fn shaken(pause: Duration) -> Duration {
    let mut byte = [128];
    // Without chance, all come back at once, which is no harm worth failing for.
    let _ = getrandom::fill(&mut byte);
    pause / 2 + pause / 2 * u32::from(byte[0]) / 255
}

#[cfg(test)]
mod tests;
