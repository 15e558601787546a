//! The terminal: taken over, and given back however the program ends.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{execute, queue};

use crate::app::BrowserApp;
use crate::draw::draw;

/// Whether the terminal is ours.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether we draw on a screen of our own.
static SCREEN: AtomicBool = AtomicBool::new(false);

/// Terminals take no more than this at once, and nobody pastes it.
const CLIPBOARD: usize = 70_000;

/// The screen while it is ours.
pub struct BrowserTerminal {
    terminal: BufferedTerminal,
}

type BufferedTerminal = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

/// A terminal of which nothing is known, so that all of it is drawn.
fn blank() -> io::Result<BufferedTerminal> {
    let out = BufWriter::with_capacity(64 << 10, io::stdout());
    Terminal::new(CrosstermBackend::new(out))
}

impl BrowserTerminal {
    /// Takes the terminal over.
    pub fn new() -> io::Result<BrowserTerminal> {
        restore_terminal_on_panic();
        take_screen()?;
        match blank() {
            Ok(terminal) => Ok(BrowserTerminal { terminal }),
            Err(error) => {
                restore_terminal();
                Err(error)
            }
        }
    }

    /// Columns and rows.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    /// Draws the state; only cells that changed are written, and all of them at once.
    pub fn draw(&mut self, app: &BrowserApp) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| draw(app, frame))?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    /// Gives the terminal back for as long as `job` runs.
    pub fn aside<T>(&mut self, job: impl FnOnce() -> T) -> io::Result<T> {
        restore_terminal();
        let done = job();
        self.again()?;
        Ok(done)
    }

    /// Takes the terminal over again, whatever was done to it.
    pub fn again(&mut self) -> io::Result<()> {
        take_screen()?;
        // Clearing the one we have would ask the terminal where its cursor is, and the answer
        // would be taken for keys.
        self.terminal = blank()?;
        execute!(self.terminal.backend_mut(), Clear(ClearType::All))
    }

    /// Hands text to the clipboard of the terminal.
    pub fn copy(&mut self, text: &str) -> io::Result<bool> {
        let text = unspool_show::clean::text(text);
        if text.len() > CLIPBOARD {
            return Ok(false);
        }
        let text = base64::engine::general_purpose::STANDARD.encode(text.as_bytes());
        let out = self.terminal.backend_mut();
        write!(out, "\u{1b}]52;c;{text}\u{7}")?;
        out.flush()?;
        Ok(true)
    }
}

impl Drop for BrowserTerminal {
    fn drop(&mut self) {
        restore_terminal();
    }
}

fn take_screen() -> io::Result<()> {
    take()?;
    SCREEN.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture)
}

/// Takes the keys of the terminal, and leaves its screen as it is.
pub fn take() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnableBracketedPaste)
}

/// Gives the terminal back, once.
pub fn restore_terminal() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    // Nothing can be done if this fails: the terminal is gone.
    let _ = execute!(io::stdout(), EndSynchronizedUpdate, DisableBracketedPaste);
    if SCREEN.swap(false, Ordering::SeqCst) {
        let _ = execute!(io::stdout(), DisableMouseCapture, LeaveAlternateScreen);
    }
    let _ = execute!(io::stdout(), Show);
    let _ = disable_raw_mode();
}

/// A panic of the thread that draws is told on a terminal that is as it was. Other threads
/// tell the screen about theirs.
pub fn restore_terminal_on_panic() {
    let drawing = std::thread::current().id();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let ours = TAKEN.load(Ordering::SeqCst);
        if std::thread::current().id() == drawing {
            restore_terminal();
            before(info);
        } else if !ours {
            before(info);
        }
    }));
}
