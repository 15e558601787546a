//! The stream of events: one task for each who listens.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, interval_at, timeout};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use crate::ServerState;
use crate::event_broadcast::{EventFrame, EventSubscription};

/// How often those who hear nothing are told that we are there.
const BEAT: Duration = Duration::from_secs(15);

/// Who takes nothing for so long is gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long browsers wait before they come back, in milliseconds.
const RETRY: &str = "retry: 1000\n\n";

/// What to listen to.
#[derive(Debug, Default, Deserialize)]
pub struct EventsQuery {
    /// Only this session.
    pub session: Option<String>,
    /// As the header, for those who cannot send one.
    pub after: Option<u64>,
}

/// Begins a stream.
pub fn stream(
    state: &Arc<ServerState>,
    headers: &HeaderMap,
    ask: EventsQuery,
    place: OwnedSemaphorePermit,
) -> Response {
    let named = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = named.and_then(|id| id.trim().parse().ok()).or(ask.after);
    let begun = state.hub.listen(after, ask.session.as_deref());
    let (sender, receiver) = mpsc::channel(16);
    let stop = state.stop.clone();
    tokio::spawn(async move {
        let _place = place;
        tell(begun, ask.session.as_deref(), &sender, stop, BEAT).await;
    });
    let frames = ReceiverStream::new(receiver).map(Ok::<Bytes, std::convert::Infallible>);
    let heads = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (StatusCode::OK, heads, Body::from_stream(frames)).into_response()
}

/// So many bytes are sent at once to somebody who has something to catch up with.
const AT_ONCE: usize = 64 << 10;

/// An event with those that wait behind it; `None` for somebody who is too far behind.
fn together(
    first: EventFrame,
    next: &mut Receiver<EventFrame>,
    at: u64,
    session: Option<&str>,
) -> Option<Bytes> {
    let wanted = |frame: &EventFrame| frame.id > at && frame.is_for(session);
    let first = if wanted(&first) {
        first.bytes
    } else {
        Bytes::new()
    };
    if next.is_empty() {
        return Some(first);
    }
    let mut all = Vec::from(first);
    while all.len() < AT_ONCE {
        match next.try_recv() {
            Ok(frame) if wanted(&frame) => all.extend_from_slice(&frame.bytes),
            Ok(_) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            Err(TryRecvError::Lagged(_)) => return None,
        }
    }
    Some(all.into())
}

/// Tells one listener everything, until it is gone, too slow, or we stop.
async fn tell(
    begun: EventSubscription,
    session: Option<&str>,
    sender: &mpsc::Sender<Bytes>,
    mut stop: tokio::sync::watch::Receiver<bool>,
    pause: Duration,
) {
    let EventSubscription {
        first,
        at,
        mut next,
    } = begun;
    let send =
        async |bytes: Bytes| matches!(timeout(PATIENCE, sender.send(bytes)).await, Ok(Ok(())));
    if !send(Bytes::from_static(RETRY.as_bytes())).await {
        return;
    }
    for bytes in first {
        if !send(bytes).await {
            return;
        }
    }
    let mut beat = interval_at(Instant::now() + pause, pause);
    loop {
        let sent = tokio::select! {
            frame = next.recv() => match frame {
                Ok(frame) => match together(frame, &mut next, at, session) {
                    Some(bytes) => bytes.is_empty() || send(bytes).await,
                    None => false,
                },
                // Too far behind: whoever comes back gets what was missed, or everything.
                Err(RecvError::Lagged(_) | RecvError::Closed) => false,
            },
            _ = beat.tick() => send(Bytes::from_static(b": still here\n\n")).await,
            () = sender.closed() => false,
            _ = stop.changed() => false,
        };
        if !sent {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_broadcast::EventBroadcast;

    #[test]
    fn who_hears_nothing_is_told_again_and_again_that_we_are_there() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let hub = EventBroadcast::new();
            let begun = hub.listen(None, None);
            let before = begun.first.len();
            let (sender, mut heard) = mpsc::channel(16);
            let (_keep, stop) = tokio::sync::watch::channel(false);
            let pause = Duration::from_millis(20);
            let began = Instant::now();
            let told = tokio::spawn(async move { tell(begun, None, &sender, stop, pause).await });
            // How long to wait before coming back, and what there is.
            for _ in 0..=before {
                heard.recv().await.unwrap();
            }
            for _ in 0..4 {
                // A line that begins with a colon is no event to anybody.
                assert_eq!(heard.recv().await.unwrap(), ": still here\n\n");
            }
            // Not all the time: a pause before each, however late we hear of it.
            assert!(began.elapsed() >= 4 * pause);
            // Who has left is not told any more.
            drop(heard);
            told.await.unwrap();
        });
    }
}
