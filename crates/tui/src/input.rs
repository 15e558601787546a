//! Keys, mouse and signals, each on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event};

use crate::message::Message;
use crate::shell::Happening;

/// How long a look for keys takes; a program that wants them waits no longer.
const LOOK: Duration = Duration::from_millis(100);

/// Whether another program has the terminal.
static AWAY: AtomicBool = AtomicBool::new(false);

/// Listens to the terminal.
pub struct Keys {
    quiet: Arc<AtomicBool>,
    rests: Arc<AtomicBool>,
}

impl Keys {
    /// Starts to listen.
    pub fn listen(to: Sender<Happening>) -> Keys {
        let keys = Keys {
            quiet: Arc::default(),
            rests: Arc::default(),
        };
        let (quiet, rests) = (Arc::clone(&keys.quiet), Arc::clone(&keys.rests));
        std::thread::spawn(move || {
            loop {
                if quiet.load(Ordering::SeqCst) {
                    rests.store(true, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
                rests.store(false, Ordering::SeqCst);
                let message = match event::poll(LOOK) {
                    Ok(false) => continue,
                    Ok(true) => event::read().ok().and_then(message),
                    // The terminal is gone.
                    Err(_) => {
                        let _ = to.send(Happening::End);
                        return;
                    }
                };
                if let Some(message) = message
                    && to.send(Happening::Message(message)).is_err()
                {
                    return;
                }
            }
        });
        keys
    }

    /// Leaves the terminal to another program while `job` runs.
    pub fn aside<T>(&self, job: impl FnOnce() -> T) -> T {
        self.quiet.store(true, Ordering::SeqCst);
        while !self.rests.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        AWAY.store(true, Ordering::SeqCst);
        let done = job();
        AWAY.store(false, Ordering::SeqCst);
        self.quiet.store(false, Ordering::SeqCst);
        done
    }
}

fn message(event: Event) -> Option<Message> {
    match event {
        Event::Key(key) => Some(Message::Key(key)),
        Event::Mouse(mouse) => Some(Message::Mouse(mouse)),
        Event::Paste(text) => Some(Message::Paste(text)),
        Event::Resize(columns, rows) => Some(Message::Resize(columns, rows)),
        Event::FocusGained | Event::FocusLost => None,
    }
}

/// Hears of signals that would leave the terminal as it is.
#[cfg(unix)]
pub fn signals(to: Sender<Happening>) -> std::io::Result<()> {
    use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
    use signal_hook::iterator::Signals;
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT])?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let away = AWAY.load(Ordering::SeqCst);
            let happening = match signal {
                // These are for the program that has the terminal; if it sleeps, so do we.
                SIGTSTP if away => {
                    sleep();
                    continue;
                }
                SIGINT | SIGQUIT | SIGCONT if away => continue,
                SIGTSTP => Happening::Sleep,
                SIGCONT => Happening::Awake,
                _ => Happening::End,
            };
            if to.send(happening).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// There are none to hear of.
#[cfg(not(unix))]
pub fn signals(_: Sender<Happening>) -> std::io::Result<()> {
    Ok(())
}

/// Stops the program until the shell calls it back.
pub fn sleep() {
    #[cfg(unix)]
    {
        let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP);
    }
}
