//! The terminal: where data goes, where remarks go, and how wide they may be.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

use clap::ValueEnum;
use jiff::tz::TimeZone;
use serde::Serialize;
use unspool_show::clean;
use unspool_show::style::Style;

use crate::failure::Failure;

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// How to speak to the person or program at the other end.
#[derive(Debug)]
pub struct Ui {
    /// Rows for machines.
    pub json: bool,
    /// No remarks.
    pub quiet: bool,
    /// More remarks.
    verbose: bool,
    color: Color,
    zone: TimeZone,
}

impl Ui {
    /// A terminal as the flags and the environment have it.
    pub fn new(json: bool, quiet: bool, verbose: bool, color: Color, zone: TimeZone) -> Ui {
        Ui {
            json,
            quiet,
            verbose,
            color,
            zone,
        }
    }

    /// Whether a person looks at standard output.
    pub fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// How text is laid out.
    pub fn style(&self) -> Style {
        let color = match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                self.is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        };
        Style {
            color,
            width: width(),
            zone: self.zone.clone(),
            ..Style::default()
        }
    }

    /// The zone that times are shown in.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Standard output, buffered.
    pub fn out(&self) -> BufWriter<io::StdoutLock<'static>> {
        BufWriter::with_capacity(64 * 1024, io::stdout().lock())
    }

    /// One row for machines.
    pub fn row(&self, out: &mut dyn Write, row: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut *out, row)?;
        Ok(out.write_all(b"\n")?)
    }

    /// A remark that is no data.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            say(&clean::text(text));
        }
    }

    /// A remark for those who asked for more.
    pub fn detail(&self, text: &str) {
        if self.verbose {
            self.note(text);
        }
    }

    /// Something went wrong on the side.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            say(&format!("Warning: {}", clean::text(text)));
        }
    }

    /// Runs `write` on standard output.
    pub fn printed(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut out = self.out();
        write(&mut out)?;
        Ok(out.flush()?)
    }

    /// Runs `write` on a pager where a person looks, else on standard output.
    pub fn paged(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Some(mut pager) = self.is_terminal().then(pager).flatten() else {
            return self.printed(write);
        };
        let written = match pager.stdin.take() {
            Some(stdin) => {
                let mut out = BufWriter::new(stdin);
                write(&mut out).and_then(|()| Ok(out.flush()?))
            }
            None => Ok(()),
        };
        // The person may leave the pager before the end.
        pager.wait()?;
        match written {
            Err(Failure::Closed) | Ok(()) => Ok(()),
            other => other,
        }
    }
}

/// Says a line on standard error. Where that cannot be written, as on a full disk, nobody can be
/// told, and what is being done goes on.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

fn pager() -> Option<Child> {
    let command = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    let mut words = command.split_whitespace();
    let program = words.next().filter(|program| *program != "cat")?;
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    command.spawn().ok()
}

/// Columns of the terminal: as COLUMNS says, else as it is, else 80.
fn width() -> usize {
    let said = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    let real = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    said.or_else(real)
        .filter(|&width| width >= 20)
        .unwrap_or(80)
}
