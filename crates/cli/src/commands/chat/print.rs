//! `chat -p`: asks, prints, ends, and says what went wrong.

use std::sync::Arc;
use std::sync::mpsc::channel;

use jiff::Timestamp;
use unspool_agent::api::retry::{Kind, Trouble};
use unspool_agent::api::told::told;
use unspool_agent::driver::{self, Command, Notice, Remote};
use unspool_agent::machine::Why;
use unspool_model::time::Time;
use unspool_show::shell_command;

use super::ChatArgs;
use super::input::{Desk, Input};
use super::open::Opened;
use super::output::Output;
use super::rules::Rules;
use crate::failure::Failure;
use crate::world::World;

/// What to say instead of how to go on, where nothing is kept.
const PASSED: &str =
    "the session was not saved (`--no-session-persistence`): run the command again";

/// Asks, prints, ends.
pub(super) fn print(
    world: Arc<World>,
    args: &ChatArgs,
    opened: Opened,
    input: Input,
) -> Result<(), Failure> {
    let Opened {
        setup,
        session,
        variable,
        notes,
        passing,
    } = opened;
    notes.iter().for_each(|note| world.ui.note(note));
    let now = Time(Timestamp::now().as_millisecond());
    if let Some(cold) = setup.record.cold(now) {
        world.ui.note(&cold.to_string());
    }
    let model = setup.frame.model.clone();
    let mut output = Output::new(args, &setup, &session, variable);
    let desk = Desk::new(&setup, Rules::new(world, args.clone(), setup.place.clone()));
    output.begin()?;
    let (sender, ends) = channel();
    let handle = driver::start(setup, move |notice| {
        // If nobody reads any more, what was begun is still finished and written down.
        let _ = output.take(&notice);
        if matches!(notice, Notice::Ended { .. } | Notice::Unwritten { .. }) {
            let _ = sender.send(notice);
        }
    });
    let caught = catch(handle.remote());
    input.feed(handle.remote(), desk);
    let mut last = Ok(());
    while let Ok(notice) = ends.recv() {
        last = outcome(&notice, &session, &model, variable);
        if passing.is_some() {
            last = last.map_err(|failure| failure.hint(PASSED));
        }
    }
    handle.join();
    drop(passing);
    match caught.lock().ok().and_then(|caught| *caught) {
        Some(code) => Err(Failure::Code(code)),
        None => last,
    }
}

/// Whoever stops us wants the session to be whole. The code to exit with, if somebody did.
fn catch(remote: Remote) -> Arc<std::sync::Mutex<Option<u8>>> {
    let caught = Arc::new(std::sync::Mutex::new(None));
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let noted = Arc::clone(&caught);
        if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]) {
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    if let Ok(mut noted) = noted.lock() {
                        *noted = u8::try_from(128 + signal).ok();
                    }
                    remote.send(Command::Interrupt);
                    remote.send(Command::Close);
                }
            });
        }
    }
    caught
}

/// How a turn that ended is told to whoever started us.
fn outcome(notice: &Notice, session: &str, model: &str, variable: &str) -> Result<(), Failure> {
    let again = shell_command::chat(None, session);
    let again = format!("the session was saved: resume with `{again}`");
    match notice {
        Notice::Unwritten { why, hint } => Err(Failure::failed(why).hint(hint)),
        Notice::Ended { ending, .. } => match &ending.why {
            Why::Done | Why::Compacted => Ok(()),
            Why::Failed(trouble) => Err(explained(trouble, session, model, variable)),
            Why::Refused(_) => Err(Failure::nothing("the model declined to answer").hint(again)),
            Why::MaxTurns => Err(Failure::nothing(format!(
                "stopped after {} turns (`--max-turns`)",
                ending.turns
            ))
            .hint(again)),
            Why::Budget => {
                Err(Failure::nothing("stopped: budget exceeded (`--max-budget-usd`)").hint(again))
            }
            Why::Interrupted => Err(Failure::nothing("interrupted").hint(again)),
            Why::Hook(why) => {
                Err(Failure::nothing(format!("stopped by a hook: {why}")).hint(again))
            }
            Why::TooLong => {
                Err(Failure::nothing("the response exceeded the context window").hint(again))
            }
            Why::NotCompacted(why) => {
                Err(Failure::nothing(format!("compaction failed: {why}")).hint(again))
            }
        },
        _ => Ok(()),
    }
}

/// What went wrong with the API, and what to do about it.
fn explained(trouble: &Trouble, session: &str, model: &str, variable: &str) -> Failure {
    let again = format!("`{}`", shell_command::chat(None, session));
    let hint = match (&trouble.kind, trouble.status()) {
        (_, Some(401 | 403)) => {
            format!("set {variable} to a valid key, then resume with {again}")
        }
        (_, Some(404)) => format!("choose another model with `--model`, and resume with {again}"),
        (_, Some(402)) => format!("check the account's billing, then resume with {again}"),
        (_, Some(429)) => format!("wait, then resume with {again}"),
        (_, Some(400 | 413)) => format!(
            "compact it with {again} -p /compact, or run {again} and `/rewind`; `unspool check {session}` looks for faults"
        ),
        (_, Some(_)) => format!("retry later with {again}"),
        (Kind::Certificate, None) => {
            "check ANTHROPIC_BASE_URL and this system's CA certificates".to_owned()
        }
        (_, None) => format!("check the network and ANTHROPIC_BASE_URL, then resume with {again}"),
    };
    Failure::nothing(told(trouble, model, variable)).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_says_how_to_go_on() {
        for status in [401, 404, 429, 500, 529] {
            let trouble = Trouble::new(Kind::Status(status), "why");
            let Failure::Nothing(told) = explained(&trouble, "S", "m", "KEY") else {
                panic!("{status}");
            };
            assert!(told.message.contains("why"));
            assert!(
                told.hint.is_some_and(|hint| hint.contains("--resume S")),
                "{status}"
            );
        }
    }
}
