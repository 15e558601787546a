//! Reads what the client gives on standard input, never too much and never for too long.

use std::io::{self, Read};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How much and how long.
#[derive(Clone, Copy, Debug)]
pub struct StdinLimits {
    /// So many bytes are kept; what comes behind them is passed over.
    pub most: usize,
    /// So long is waited in all.
    pub patience: Duration,
    /// So long is waited for the end when everything is there.
    pub grace: Duration,
}

impl Default for StdinLimits {
    fn default() -> StdinLimits {
        StdinLimits {
            most: 64 << 20,
            patience: Duration::from_secs(1),
            grace: Duration::from_millis(20),
        }
    }
}

/// How reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StdinEnd {
    /// With everything that there was.
    Whole,
    /// There was more than is kept.
    TooLarge,
    /// Nothing more came, but no end either.
    TooSlow,
}

/// Reads a JSON object from a stream.
///
/// The object is complete when its last brace closes: a client that forgets to close the stream
/// is not waited for. One that gives too much is still listened to, so that it does not write
/// into a closed pipe.
pub fn read(mut source: impl Read + Send + 'static, limits: &StdinLimits) -> (Vec<u8>, StdinEnd) {
    let (sender, receiver) = mpsc::sync_channel::<Vec<u8>>(8);
    // Ends with the process where the stream does not.
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = match source.read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            if sender.send(buffer[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut deadline = Instant::now() + limits.patience;
    let (mut bytes, mut braces, mut too_large) = (Vec::new(), BraceCounter::default(), false);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left) {
            Ok(piece) => {
                let room = limits.most - bytes.len();
                too_large |= piece.len() > room;
                let piece = &piece[..piece.len().min(room)];
                bytes.extend_from_slice(piece);
                if braces.feed(piece) {
                    deadline = deadline.min(Instant::now() + limits.grace);
                }
            }
            Err(_) if too_large => return (bytes, StdinEnd::TooLarge),
            Err(RecvTimeoutError::Disconnected) => return (bytes, StdinEnd::Whole),
            Err(RecvTimeoutError::Timeout) if braces.closed => return (bytes, StdinEnd::Whole),
            Err(RecvTimeoutError::Timeout) => return (bytes, StdinEnd::TooSlow),
        }
    }
}

/// Counts braces to see when an object is complete.
#[derive(Default)]
struct BraceCounter {
    depth: usize,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl BraceCounter {
    /// Whether the object is complete now.
    fn feed(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.closed |= self.depth == 0;
                }
                _ => {}
            }
        }
        self.closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    const LIMITS: StdinLimits = StdinLimits {
        most: 1000,
        patience: Duration::from_millis(200),
        grace: Duration::from_millis(5),
    };

    /// Gives these bytes and then nothing, without an end.
    struct Endless(Cursor<Vec<u8>>);

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => loop {
                    thread::park();
                },
                read => Ok(read),
            }
        }
    }

    #[test]
    fn a_stream_that_ends_is_read_to_its_end() {
        for text in ["", "{}", "no json", "{\"a\":"] {
            let read = read(Cursor::new(text.as_bytes().to_vec()), &LIMITS);
            assert_eq!(read, (text.as_bytes().to_vec(), StdinEnd::Whole));
        }
    }

    #[test]
    fn a_complete_object_is_enough_where_the_stream_does_not_end() {
        let text = br#"{"a":"}\"}","b":[{}]}"#.to_vec();
        let long = StdinLimits {
            patience: Duration::from_secs(60),
            ..LIMITS
        };
        let read = read(Endless(Cursor::new(text.clone())), &long);
        assert_eq!(read, (text, StdinEnd::Whole));
    }

    #[test]
    fn a_stream_that_says_nothing_more_is_left() {
        let read = read(Endless(Cursor::new(b"{\"a\":1".to_vec())), &LIMITS);
        assert_eq!(read, (b"{\"a\":1".to_vec(), StdinEnd::TooSlow));
    }

    #[test]
    fn of_too_much_the_beginning_is_kept_and_the_rest_is_taken_from_the_client() {
        let text = vec![b'x'; 10 << 20];
        let long = StdinLimits {
            patience: Duration::from_secs(60),
            ..LIMITS
        };
        let (bytes, end) = read(Cursor::new(text), &long);
        assert_eq!((bytes.len(), end), (1000, StdinEnd::TooLarge));
    }
}
