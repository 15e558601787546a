//! The terminal: where data goes, where remarks go, and how wide they may be.

use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::{Child, Command, Stdio};

use clap::ValueEnum;
use jiff::tz::TimeZone;
use serde::Serialize;
use unspool_show::clean;
use unspool_show::style::ConversationStyle;
use unspool_show::terminal_writer::{AllowedOutput, TerminalWriter};

use crate::failure::CommandFailure;
use crate::masked_output::{LazyMasker, MaskedOutput};
use crate::secrets;

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Standard output, buffered: exact for a program, harmless for a terminal.
pub type StandardOutput = BufWriter<TerminalWriter<StdoutLock<'static>>>;

/// Whether a person looks at standard output.
#[expect(clippy::disallowed_methods, reason = "only asks")]
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether nobody refused colours by NO_COLOR.
pub fn colors_are_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The one way to standard output, but for screens that are drawn: whoever writes there need
/// not know whether a terminal reads it.
fn output(on_terminal: AllowedOutput) -> StandardOutput {
    let passes = match is_terminal() {
        true => on_terminal,
        false => AllowedOutput::Bytes,
    };
    #[expect(clippy::disallowed_methods, reason = "all others come here")]
    let stdout = io::stdout().lock();
    BufWriter::with_capacity(64 * 1024, TerminalWriter::new(stdout, passes))
}

/// Standard output for data as it is: JSON, raw lines, files. On a terminal, what could control
/// it is escaped.
pub fn data() -> StandardOutput {
    output(AllowedOutput::Text)
}

/// Standard output for text in colours of ours, before anybody could say which are wanted.
pub fn styled() -> StandardOutput {
    output(AllowedOutput::ColoredText)
}

/// The same for standard error.
pub fn styled_stderr() -> TerminalWriter<io::StderrLock<'static>> {
    TerminalWriter::new(io::stderr().lock(), AllowedOutput::ColoredText)
}

/// How to speak to the person or program at the other end.
#[derive(Debug)]
pub struct TerminalUi {
    /// Rows for machines.
    pub json: bool,
    /// No remarks.
    pub quiet: bool,
    /// More remarks.
    verbose: bool,
    color: ColorChoice,
    zone: TimeZone,
    /// Takes tokens out of what is printed; `None` if they may be seen.
    masker: Option<LazyMasker>,
}

impl TerminalUi {
    /// A terminal as the flags and the environment have it.
    pub fn new(
        json: bool,
        quiet: bool,
        verbose: bool,
        color: ColorChoice,
        zone: TimeZone,
    ) -> TerminalUi {
        TerminalUi {
            json,
            quiet,
            verbose,
            color,
            zone,
            masker: Some(secrets::name_masker),
        }
    }

    /// One that prints tokens as they are.
    pub fn revealing(self, reveal: bool) -> TerminalUi {
        TerminalUi {
            masker: self.masker.filter(|_| !reveal),
            ..self
        }
    }

    /// Whether a person looks at standard output.
    pub fn is_terminal(&self) -> bool {
        is_terminal()
    }

    /// How text is laid out.
    pub fn style(&self) -> ConversationStyle {
        let color = match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => self.is_terminal() && colors_are_wanted(),
        };
        ConversationStyle {
            color,
            width: width(),
            zone: self.zone.clone(),
            ..ConversationStyle::default()
        }
    }

    /// The zone that times are shown in.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Standard output for text that was laid out for people, or for rows if those were asked for,
    /// without tokens.
    pub fn out(&self) -> MaskedOutput<StandardOutput> {
        MaskedOutput::new(output(self.passes()), self.masker)
    }

    /// Standard output for data as it is, without tokens: see [`data`].
    pub fn data(&self) -> MaskedOutput<StandardOutput> {
        MaskedOutput::new(data(), self.masker)
    }

    /// The same for gigabytes that were masked where they were read.
    pub fn unmasked_data(&self) -> StandardOutput {
        data()
    }

    /// What may reach a terminal as it is.
    fn passes(&self) -> AllowedOutput {
        match self.style().color && !self.json {
            true => AllowedOutput::ColoredText,
            false => AllowedOutput::Text,
        }
    }

    /// Clears the terminal, so that what follows stands at its top.
    pub fn clear(&self) -> io::Result<()> {
        if self.is_terminal() {
            #[expect(clippy::disallowed_methods, reason = "a sequence of ours")]
            let mut stdout = io::stdout().lock();
            // Home, and clear what is below.
            stdout.write_all(b"\x1b[H\x1b[2J")?;
        }
        Ok(())
    }

    /// A remark without tokens.
    fn masked<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.masker {
            Some(masker) => masker().secrets().mask(text),
            None => Cow::Borrowed(text),
        }
    }

    /// One row for machines.
    pub fn row(&self, out: &mut dyn Write, row: &impl Serialize) -> Result<(), CommandFailure> {
        serde_json::to_writer(&mut *out, row)?;
        Ok(out.write_all(b"\n")?)
    }

    /// A remark that is no data.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            say(&clean::text(&self.masked(text)));
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
            say(&format!("Warning: {}", clean::text(&self.masked(text))));
        }
    }

    /// Runs `write` on standard output.
    pub fn printed(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), CommandFailure>,
    ) -> Result<(), CommandFailure> {
        let mut out = self.out();
        write(&mut out)?;
        Ok(out.flush()?)
    }

    /// Runs `write` on a pager where a person looks, else on standard output.
    pub fn paged(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), CommandFailure>,
    ) -> Result<(), CommandFailure> {
        self.paged_as(self.passes(), write)
    }

    /// The same for data as it is: see [`data`].
    pub fn paged_data(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), CommandFailure>,
    ) -> Result<(), CommandFailure> {
        self.paged_as(AllowedOutput::Text, write)
    }

    fn paged_as(
        &self,
        passes: AllowedOutput,
        write: impl FnOnce(&mut dyn Write) -> Result<(), CommandFailure>,
    ) -> Result<(), CommandFailure> {
        let Some(mut pager) = self.is_terminal().then(pager).flatten() else {
            let mut out = MaskedOutput::new(output(passes), self.masker);
            write(&mut out)?;
            return Ok(out.flush()?);
        };
        let written = match pager.stdin.take() {
            Some(stdin) => {
                // Not every pager keeps control characters from the terminal.
                let out = BufWriter::new(TerminalWriter::new(stdin, passes));
                let mut out = MaskedOutput::new(out, self.masker);
                write(&mut out).and_then(|()| Ok(out.flush()?))
            }
            None => Ok(()),
        };
        // The person may leave the pager before the end.
        pager.wait()?;
        match written {
            Err(CommandFailure::Closed) | Ok(()) => Ok(()),
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
