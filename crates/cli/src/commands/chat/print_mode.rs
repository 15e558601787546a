//! `chat -p`: asks, prints, ends, and says what went wrong.

use std::sync::Arc;
use std::sync::mpsc::channel;

use jiff::Timestamp;
use unspool_agent::api::api_error_text::describe_api_error;
use unspool_agent::api::retry::{ApiError, ApiErrorKind};
use unspool_agent::driver::{self, SessionCommand, SessionCommandSender, SessionNotice};
use unspool_agent::state_machine::TurnEndReason;
use unspool_model::time::Time;
use unspool_show::shell_command;

use super::ChatArgs;
use super::chat_output::ChatOutput;
use super::permission_rules::SessionPermissionRules;
use super::prompt_input::{ChatControl, ChatInput};
use super::session_setup::PreparedChat;
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// What to say instead of how to go on, where nothing is kept.
const PASSED: &str =
    "the session was not saved (`--no-session-persistence`): run the command again";

/// Asks, prints, ends.
pub(super) fn print(
    world: Arc<CommandContext>,
    args: &ChatArgs,
    opened: PreparedChat,
    input: ChatInput,
) -> Result<(), CommandFailure> {
    let PreparedChat {
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
    let mut output = ChatOutput::new(args, &setup, &session, variable);
    let desk = ChatControl::new(
        &setup,
        SessionPermissionRules::new(world, args.clone(), setup.place.clone()),
    );
    output.begin()?;
    let (sender, ends) = channel();
    let handle = driver::start(setup, move |notice| {
        // If nobody reads any more, what was begun is still finished and written down.
        let _ = output.take(&notice);
        if matches!(
            notice,
            SessionNotice::Ended { .. } | SessionNotice::Unwritten { .. }
        ) {
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
        Some(code) => Err(CommandFailure::Code(code)),
        None => last,
    }
}

/// Whoever stops us wants the session to be whole. The code to exit with, if somebody did.
fn catch(remote: SessionCommandSender) -> Arc<std::sync::Mutex<Option<u8>>> {
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
                    remote.send(SessionCommand::Interrupt);
                    remote.send(SessionCommand::Close);
                }
            });
        }
    }
    caught
}

/// How a turn that ended is told to whoever started us.
fn outcome(
    notice: &SessionNotice,
    session: &str,
    model: &str,
    variable: &str,
) -> Result<(), CommandFailure> {
    let again = shell_command::chat(None, session);
    let again = format!("the session was saved: resume with `{again}`");
    match notice {
        SessionNotice::Unwritten { why, hint } => Err(CommandFailure::failed(why).hint(hint)),
        SessionNotice::Ended { ending, .. } => match &ending.why {
            TurnEndReason::Done | TurnEndReason::Compacted => Ok(()),
            TurnEndReason::Failed(trouble) => Err(explained(trouble, session, model, variable)),
            TurnEndReason::Refused(_) => {
                Err(CommandFailure::nothing("the model declined to answer").hint(again))
            }
            TurnEndReason::MaxTurns => Err(CommandFailure::nothing(format!(
                "stopped after {} turns (`--max-turns`)",
                ending.turns
            ))
            .hint(again)),
            TurnEndReason::Budget => Err(CommandFailure::nothing(
                "stopped: budget exceeded (`--max-budget-usd`)",
            )
            .hint(again)),
            TurnEndReason::Interrupted => Err(CommandFailure::nothing("interrupted").hint(again)),
            TurnEndReason::Hook(why) => {
                Err(CommandFailure::nothing(format!("stopped by a hook: {why}")).hint(again))
            }
            TurnEndReason::TooLong => {
                Err(CommandFailure::nothing("the response exceeded the context window").hint(again))
            }
            TurnEndReason::NotCompacted(why) => {
                Err(CommandFailure::nothing(format!("compaction failed: {why}")).hint(again))
            }
        },
        _ => Ok(()),
    }
}

/// What went wrong with the API, and what to do about it.
fn explained(trouble: &ApiError, session: &str, model: &str, variable: &str) -> CommandFailure {
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
        (ApiErrorKind::Certificate, None) => {
            "check ANTHROPIC_BASE_URL and this system's CA certificates".to_owned()
        }
        (_, None) => format!("check the network and ANTHROPIC_BASE_URL, then resume with {again}"),
    };
    CommandFailure::nothing(describe_api_error(trouble, model, variable)).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_says_how_to_go_on() {
        for status in [401, 404, 429, 500, 529] {
            let trouble = ApiError::new(ApiErrorKind::Status(status), "why");
            let CommandFailure::Nothing(told) = explained(&trouble, "S", "m", "KEY") else {
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
