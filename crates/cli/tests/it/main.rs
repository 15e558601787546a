//! Tests of the program from outside, each on a machine of its own.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::disallowed_macros)]

mod bad_input;
mod browse;
mod chat;
mod clone;
mod cloner;
mod compress;
mod counting;
mod daemon;
mod demo;
mod dry;
mod editing;
mod every_file;
mod export;
mod faults;
mod finding;
mod first_turn;
mod headless;
mod help;
mod hook;
mod long_lines;
mod mistakes;
mod moving;
mod no_home;
mod one_number;
mod outputs;
mod own_files;
mod pipe;
mod planted;
mod prices;
mod project_grants;
mod ranked;
mod resume_command;
mod resumed;
mod rows;
mod search;
mod secret_names;
mod secrets;
mod sending;
mod serve;
mod servers;
mod session_kinds;
mod sql;
mod states;
mod surgery;
mod symlinks;
mod talk;
mod terminal;
mod terminal_controls;
mod traced;
mod trouble;
mod tty;
mod usage;
mod zones;

use unspool_testkit::home::Home;

/// A machine without sessions.
fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_unspool"))
}

/// The id of the session in [`home_with_session`].
const ID: &str = "5e551000-0000-4000-8000-000000000001";

/// A machine with one session, in which a bit of everything happened.
fn home_with_session() -> Home {
    let home = home();
    home.session(
        "/home/dev/x",
        ID,
        "
        you:    fix it
        think:  where is it
        claude: looking [Read a.rs] [Task look]
        result: Read a.rs fn main() {}
        result: Task look found
        claude: now [Edit a.rs]
        result: Edit a.rs broken!
        claude: done
        you:    thanks
        claude: welcome
        ",
    );
    home.agent("/home/dev/x", ID, "a0000001", "you: look\nclaude: found");
    home
}
