//! `chat`: talk to the model; what is said becomes a session that Claude Code can resume.

mod args;
mod chat_commands;
mod chat_output;
mod explain_permission;
mod mcp_servers;
mod permission_rules;
mod print_mode;
mod prompt_input;
mod session_setup;
mod terminal_chat;
mod transcript;
mod workspace;

use std::sync::Arc;

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;
pub use args::{ChatArgs, ChatInputFormat};
use chat_output::ChatOutputFormat;
use print_mode::print;
use prompt_input::ChatInput;
use session_setup::open;

/// Runs `chat`.
pub fn run(world: CommandContext, args: &ChatArgs) -> Result<(), CommandFailure> {
    if let Some(command) = &args.explain_permission {
        return explain_permission::run(&world, args, command);
    }
    if !args.is_alone() {
        return terminal_chat::run(world, args.clone());
    }
    if args.input_format == ChatInputFormat::StreamJson
        && args.output_format != ChatOutputFormat::StreamJson
    {
        return Err(CommandFailure::failed(
            "`--input-format stream-json` needs `--output-format stream-json`",
        ));
    }
    let input = ChatInput::read(args)?;
    let opened = open(&world, args)?;
    print(Arc::new(world), args, opened, input)
}
