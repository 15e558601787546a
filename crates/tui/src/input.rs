//! Keys, mouse and signals, each on a thread of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event};

/// What is heard.
pub enum TerminalInput {
    /// Keys, mouse, a paste, another size.
    Event(Event),
    /// The program is to sleep.
    Sleep,
    /// It was called back.
    Awake,
    /// It is to end.
    End,
}

/// How long a look for keys takes; a program that wants them waits no longer.
const LOOK: Duration = Duration::from_millis(100);

/// Whether another program has the terminal.
static AWAY: AtomicBool = AtomicBool::new(false);

/// When another program gave the terminal back.
static BACK: Mutex<Option<Instant>> = Mutex::new(None);

/// A signal to the other program may be heard when that has just ended. Keys are no signals here,
/// so nobody's Ctrl-C is lost by that.
const LATE: Duration = Duration::from_secs(1);

/// Another program has ended that had the terminal.
pub fn other_program_ended() {
    *BACK.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
}

/// Whether another program has just ended.
fn is_late() -> bool {
    let back = *BACK.lock().unwrap_or_else(PoisonError::into_inner);
    back.is_some_and(|back| back.elapsed() < LATE)
}

/// Listens to the terminal, until it is dropped: from then on no key is taken from whoever
/// listens next.
pub struct KeyListener {
    quiet: Arc<AtomicBool>,
    rests: Arc<AtomicBool>,
    /// Whether somebody still wants keys; held while one is taken and told.
    wanted: Arc<Mutex<bool>>,
}

impl KeyListener {
    /// Starts to listen; ends when `tell` says no.
    pub fn listen(tell: impl Fn(TerminalInput) -> bool + Send + 'static) -> KeyListener {
        let keys = KeyListener {
            quiet: Arc::default(),
            rests: Arc::default(),
            wanted: Arc::new(Mutex::new(true)),
        };
        let (quiet, rests) = (Arc::clone(&keys.quiet), Arc::clone(&keys.rests));
        let wanted = Arc::clone(&keys.wanted);
        std::thread::spawn(move || {
            loop {
                if quiet.load(Ordering::SeqCst) {
                    rests.store(true, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
                rests.store(false, Ordering::SeqCst);
                let polled = event::poll(LOOK);
                let wanted = wanted.lock().unwrap_or_else(PoisonError::into_inner);
                if !*wanted {
                    return;
                }
                let event = match polled {
                    Ok(false) => continue,
                    Ok(true) => event::read().ok(),
                    // The terminal is gone.
                    Err(_) => {
                        tell(TerminalInput::End);
                        return;
                    }
                };
                if event.is_some_and(|event| !tell(TerminalInput::Event(event))) {
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

impl Drop for KeyListener {
    fn drop(&mut self) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}

/// Hears of signals that would leave the terminal as it is.
#[cfg(unix)]
pub fn signals(tell: impl Fn(TerminalInput) -> bool + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
    use signal_hook::iterator::Signals;
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT])?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let away = AWAY.load(Ordering::SeqCst);
            let heard = match signal {
                // These are for the program that has the terminal; if it sleeps, so do we.
                SIGTSTP if away => {
                    sleep();
                    continue;
                }
                SIGINT | SIGQUIT | SIGCONT if away => continue,
                SIGINT | SIGQUIT if is_late() => continue,
                SIGTSTP => TerminalInput::Sleep,
                SIGCONT => TerminalInput::Awake,
                _ => TerminalInput::End,
            };
            if !tell(heard) {
                return;
            }
        }
    });
    Ok(())
}

/// There are none to hear of.
#[cfg(not(unix))]
pub fn signals(_: impl Fn(TerminalInput) -> bool + Send + 'static) -> std::io::Result<()> {
    Ok(())
}

/// Stops the program until the shell calls it back.
pub fn sleep() {
    #[cfg(unix)]
    {
        let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP);
    }
}
