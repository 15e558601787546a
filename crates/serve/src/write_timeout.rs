//! A connection that gives up on those who do not read.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Who takes nothing for so long, though there is something, is gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// A stream whose writes end after a while.
pub struct WriteTimeout<S> {
    inner: S,
    patience: Duration,
    limit: Pin<Box<Sleep>>,
    waits: bool,
}

impl<S> WriteTimeout<S> {
    /// A stream that waits for its reader, but not for ever.
    pub fn new(inner: S) -> WriteTimeout<S> {
        WriteTimeout::waiting(inner, PATIENCE)
    }

    fn waiting(inner: S, patience: Duration) -> WriteTimeout<S> {
        WriteTimeout {
            inner,
            patience,
            limit: Box::pin(sleep(patience)),
            waits: false,
        }
    }

    /// What a write gave; one that waits too long fails.
    fn wait<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = false;
            return written;
        }
        if !std::mem::replace(&mut self.waits, true) {
            let limit = Instant::now() + self.patience;
            self.limit.as_mut().reset(limit);
        }
        ready!(self.limit.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.wait(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, parts);
        self.wait(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.wait(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, TcpStream};

    #[test]
    fn who_does_not_read_is_given_up() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let _other = TcpStream::connect(address).await.unwrap();
            let (one, _) = listener.accept().await.unwrap();
            let mut patient = WriteTimeout::waiting(one, Duration::from_millis(50));
            let error = loop {
                let write = std::future::poll_fn(|context| {
                    Pin::new(&mut patient).poll_write(context, &[0; 1 << 16])
                });
                if let Err(error) = write.await {
                    break error;
                }
            };
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }
}
