//! The program: arguments in, one command, an exit code out.
// They panic where standard output or standard error cannot be written: see `ui::say`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod app_dirs;
mod args;
mod background_indexing;
mod command_context;
mod commands;
mod compress;
mod config;
mod dashboard_answers;
mod demo;
mod edit_options;
mod failure;
mod home_folder;
mod live;
mod masked_output;
mod notify;
mod price_sources;
mod progress_bar;
mod secrets;
mod sending;
mod session_cache;
mod session_edit;
mod session_removal;
mod time_input;
mod ui;
#[cfg(unix)]
mod watch_screen;
mod zone_file;

use std::borrow::Cow;
use std::process::ExitCode;

use unspool_show::clean;

use crate::failure::CommandFailure;

fn main() -> ExitCode {
    // The program also stands between itself and the commands it runs.
    let helper = unspool_agent::process::guard::run_as_guard();
    #[cfg(unix)]
    let helper = helper.or_else(unspool_agent::sandbox::run_as_wrapper);
    if let Some(code) = helper {
        return code;
    }
    home_folder::ensure_absolute_temp_folder();
    std::panic::set_hook(Box::new(tell_panic));
    let arguments = args::read();
    let reveal = arguments.global.reveal;
    match commands::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let CommandFailure::Nothing(told) | CommandFailure::Failed(told) = &failure {
                // The message may quote a transcript or a file name.
                ui::say(&format!("Error: {}", said(&masked(&told.message, reveal))));
                if let Some(hint) = &told.hint {
                    ui::say(&format!("Hint: {}", said(&masked(hint, reveal))));
                }
            }
            ExitCode::from(failure.code())
        }
    }
}

/// The text, harmless for a terminal. Only we begin a line with `Error:` or `Hint:`: the further
/// lines of a text, such as those in the name of a file, stand below its first.
fn said(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, line) in clean::text(text).split('\n').enumerate() {
        match at {
            0 => {}
            _ if line.is_empty() || line.starts_with(' ') => out.push('\n'),
            _ => out.push_str("\n  "),
        }
        out.push_str(line);
    }
    out
}

/// The message of a panic may quote a transcript.
fn tell_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed");
    ui::say(&format!(
        "thread '{name}' {}",
        clean::text(&panic.to_string())
    ));
    let trace = std::backtrace::Backtrace::capture();
    if trace.status() == std::backtrace::BacktraceStatus::Captured {
        ui::say(&clean::text(&trace.to_string()));
    }
}

fn masked(text: &str, reveal: bool) -> Cow<'_, str> {
    if reveal {
        return Cow::Borrowed(text);
    }
    secrets::known().mask(text)
}
