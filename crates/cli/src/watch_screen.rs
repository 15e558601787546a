//! The terminal as a screen that is drawn again and again, and given back as it was.
//!
//! Keys come one by one, and a signal to end comes as Ctrl-C. The screen is restored when this is
//! dropped, also by a panic, and around Ctrl-Z.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios};

/// Another screen than the one with the command line, without a cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// Back again.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// The key that ends.
pub const CTRL_C: u8 = 3;

/// The screen, while it is ours.
pub struct WatchScreen {
    before: Termios,
    /// Keys, as bytes.
    pub keys: Receiver<u8>,
}

impl WatchScreen {
    /// Takes the terminal; fails where there is none.
    pub fn enter() -> io::Result<WatchScreen> {
        let before = rustix::termios::tcgetattr(io::stdin())?;
        let (sender, keys) = channel();
        let screen = WatchScreen { before, keys };
        screen.take()?;
        let (mut signals, end) = (Signals::new([SIGTERM, SIGHUP, SIGINT])?, sender.clone());
        let thread = std::thread::Builder::new().name("signals".into());
        thread.spawn(move || {
            signals
                .forever()
                .try_for_each(|_| end.send(CTRL_C).map_err(drop))
        })?;
        let thread = std::thread::Builder::new().name("keys".into());
        thread.spawn(move || listen(&sender))?;
        Ok(screen)
    }

    fn take(&self) -> io::Result<()> {
        let mut raw = self.before.clone();
        // Signals too: the terminal must be given back before anything else happens.
        raw.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        rustix::termios::tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        put(ENTER)
    }

    fn give_back(&self) {
        let _ = put(LEAVE);
        let _ = rustix::termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }

    /// Stops this process as Ctrl-Z does, and takes the terminal again when it goes on.
    pub fn pause(&self) -> io::Result<()> {
        self.give_back();
        let own = rustix::process::getpid();
        rustix::process::kill_process(own, rustix::process::Signal::TSTP)?;
        self.take()
    }

    /// Rings the bell.
    pub fn ring(&self) -> io::Result<()> {
        put("\x07")
    }

    /// Draws all lines over what was there: nothing is wiped before, so nothing flickers.
    pub fn draw(&self, text: &str) -> io::Result<()> {
        let mut frame = String::with_capacity(text.len() + 256);
        frame.push_str("\x1b[?2026h\x1b[H");
        for (at, line) in text.lines().enumerate() {
            if at > 0 {
                frame.push_str("\r\n");
            }
            frame.push_str(line);
            frame.push_str("\x1b[K");
        }
        frame.push_str("\x1b[J\x1b[?2026l");
        put(&frame)
    }
}

impl Drop for WatchScreen {
    fn drop(&mut self) {
        self.give_back();
    }
}

fn put(text: &str) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "draws what was laid out")]
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn listen(keys: &Sender<u8>) {
    let mut byte = [0];
    while let Ok(1) = io::stdin().lock().read(&mut byte) {
        if keys.send(byte[0]).is_err() {
            return;
        }
    }
}
