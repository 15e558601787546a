//! A bar on stderr while something takes long; nothing where nobody looks.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use unspool_show::format;

use crate::ui::TerminalUi;

/// How far something is.
pub struct ProgressBar {
    what: &'static str,
    since: Instant,
    last: Option<Instant>,
    shown: bool,
}

/// What is over sooner needs no bar.
const QUIET: Duration = Duration::from_millis(500);

/// How often it is drawn.
const STEP: Duration = Duration::from_millis(80);

impl ProgressBar {
    /// A bar for a person at a terminal who did not ask for silence.
    pub fn new(ui: &TerminalUi, what: &'static str) -> ProgressBar {
        ProgressBar {
            what,
            since: Instant::now(),
            last: None,
            shown: !ui.quiet && io::stderr().is_terminal(),
        }
    }

    /// So many bytes of so many are done.
    pub fn show(&mut self, done: u64, all: u64) {
        let late = self.last.unwrap_or(self.since).elapsed();
        let due = if self.last.is_some() { STEP } else { QUIET };
        if !self.shown || late < due {
            return;
        }
        self.last = Some(Instant::now());
        let mut stderr = io::stderr().lock();
        // A bar that cannot be drawn is no loss.
        let _ = write!(stderr, "\r\x1b[K{}", line(self.what, done, all));
        let _ = stderr.flush();
    }

    /// Takes it away.
    pub fn clear(&mut self) {
        if self.last.take().is_some() {
            let mut stderr = io::stderr().lock();
            let _ = write!(stderr, "\r\x1b[K");
            let _ = stderr.flush();
        }
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        self.clear();
    }
}

const WIDTH: u64 = 20;

fn line(what: &str, done: u64, all: u64) -> String {
    let full = done.min(all) * WIDTH / all.max(1);
    format!(
        "{what} {}{} {} of {}",
        "━".repeat(full as usize),
        "╌".repeat((WIDTH - full) as usize),
        format::bytes(done.min(all)),
        format::bytes(all)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fills_up() {
        assert!(line("x", 0, 0).contains(&"╌".repeat(20)));
        let half = line("x", 5, 10);
        assert!(half.contains(&("━".repeat(10) + &"╌".repeat(10))), "{half}");
        assert!(line("x", 11, 10).contains(&"━".repeat(20)));
    }
}
