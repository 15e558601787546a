//! `show`: the conversation of a session.

use std::ffi::{OsStr, OsString};
use std::io::Write;

use clap::{Args, ValueEnum};
use unspool_model::log::TranscriptSource;
use unspool_model::session::TranscriptRole;
use unspool_model::view::transcript::{self, ItemBody, TranscriptItem};
use unspool_model::view::turn_selection::{self, ConversationPosition, TurnRange, TurnSelection};
use unspool_model::view::turns;
use unspool_show::style::{ConversationStyle, ToolDetail};
use unspool_show::text::ConversationWriter;
use unspool_show::wire::block::BlockRow;
use unspool_store::long_lines;
use unspool_store::resolve::SessionTarget;
use unspool_store::session_with_agents::SessionWithAgents;

use crate::command_context::{ChosenSession, CommandContext};
use crate::failure::CommandFailure;
use crate::secrets;

/// Arguments of `show`.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  unspool show                    the latest session of this directory
  unspool show 2f72 --turn 3      one turn
  unspool show 2f72 --turn -2..   the last two turns
  unspool show @ --tools full     with complete tool results
  unspool show @ --json | jq -r 'select(.type==\"text\").text'")]
pub struct ShowArgs {
    /// Start of a session id, a title, a path, or `@` for the latest [default: @]
    pub session: Option<OsString>,

    /// Only these turns, such as `3`, `5..`, `..4` or `-1` for the last (can be repeated)
    #[arg(long, value_name = "R", allow_hyphen_values = true)]
    pub turn: Vec<TurnRange>,

    /// Only the turn that contains this line of the file (as printed by `search`)
    #[arg(long, value_name = "N", conflicts_with = "turn")]
    pub line: Option<u32>,

    /// Show thinking
    #[arg(long)]
    pub thinking: bool,

    /// Include the conversations of sub-agents
    #[arg(long)]
    pub agents: bool,

    /// How much of tool calls to show
    #[arg(long, value_name = "HOW", default_value = "short")]
    pub tools: ShowToolsArg,

    /// Print the raw JSONL lines, with secrets masked (see --reveal)
    #[arg(long)]
    pub raw: bool,

    /// Without a pager, even on a terminal.
    #[arg(skip)]
    pub at_once: bool,
}

/// How much of tool calls to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ShowToolsArg {
    /// Hide tool calls
    None,
    /// One line per call, a few more for failures and changes
    #[default]
    Short,
    /// Complete inputs and results
    Full,
}

/// A session larger than this is read from its end where only its end is asked for.
const LARGE: u64 = 16 << 20;

/// Prints a conversation.
pub fn run(world: &CommandContext, args: &ShowArgs) -> Result<(), CommandFailure> {
    let target = world.target(args.session.as_deref())?;
    let chosen = match last_turns(args).filter(|_| is_large(&target) && !args.agents) {
        // Rows for machines name turns by their numbers, which only the whole file tells.
        Some(turns) if !world.ui.json => end_of(world, target, turns)?,
        _ => world.look(target)?,
    };
    print(world, args, &chosen)
}

/// Prints the latest session, whatever the directory.
pub fn latest(world: &CommandContext) -> Result<(), CommandFailure> {
    let args = ShowArgs {
        session: Some("@".into()),
        ..ShowArgs::default()
    };
    run(world, &args)
}

/// Prints the last turns of a session; never on a pager, because something follows.
pub fn end(world: &CommandContext, session: &OsStr, turns: u32) -> Result<(), CommandFailure> {
    let args = ShowArgs {
        session: Some(session.to_owned()),
        turn: vec![TurnRange {
            from: Some(-i64::from(turns)),
            to: None,
        }],
        at_once: true,
        ..ShowArgs::default()
    };
    run(world, &args)
}

fn print(
    world: &CommandContext,
    args: &ShowArgs,
    chosen: &ChosenSession,
) -> Result<(), CommandFailure> {
    let session = &chosen.family.main.session;
    let turns = session.turns.iter().filter(|turn| turn.thread == 0).count() as u32;
    let first = u32::from(!turns::has_work_before(session));
    if !args.turn.is_empty()
        && !(first..=turns).any(|n| args.turn.iter().any(|range| range.contains(n, turns)))
    {
        return Err(
            CommandFailure::nothing(format!("no such turn: the session has {turns}"))
                .hint("list turns with `unspool turns`"),
        );
    }
    let mut pick = TurnSelection {
        turns: args.turn.clone(),
        agents: args.agents,
    };
    if let Some(line) = args.line {
        return at_line(world, args, chosen, &mut pick, line);
    }
    if args.raw {
        return raw(world, chosen, &pick);
    }
    if world.ui.json {
        return json(world, chosen, &pick, None);
    }
    text(world, args, chosen, &pick, None)
}

/// Shows where a line of the file stands in the conversation.
fn at_line(
    world: &CommandContext,
    args: &ShowArgs,
    chosen: &ChosenSession,
    pick: &mut TurnSelection,
    line: u32,
) -> Result<(), CommandFailure> {
    let session = &chosen.family.main.session;
    let spot = turn_selection::conversation_position(session, line).ok_or_else(|| {
        CommandFailure::nothing(format!("no line {line}: the file has {}", session.lines()))
    })?;
    if world.ui.json {
        return json(world, chosen, pick, Some(line));
    }
    match spot.turn {
        Some(turn) if !args.raw => {
            let turn = Some(i64::from(turn));
            pick.turns = vec![TurnRange {
                from: turn,
                to: turn,
            }];
            text(world, args, chosen, pick, Some((line, spot)))
        }
        // Before the first turn there is nothing but the line itself.
        _ => raw_line(world, chosen, line),
    }
}

/// A line of the file, byte for byte; for a person, with what controls a terminal escaped.
fn raw_line(
    world: &CommandContext,
    chosen: &ChosenSession,
    line: u32,
) -> Result<(), CommandFailure> {
    let main = &chosen.family.main;
    let record = main
        .session
        .records
        .iter()
        .find(|record| record.line == line);
    let bytes = record.and_then(|record| main.source.bytes(record.offset, record.len()));
    let Some(bytes) = bytes else {
        return Err(
            CommandFailure::failed(format!("line {line} cannot be read"))
                .hint("`unspool check` shows what is wrong with it"),
        );
    };
    world.ui.paged_data(|out| {
        out.write_all(&bytes)?;
        Ok(out.write_all(b"\n")?)
    })
}

/// How many turns from the end are asked for, if only those are.
fn last_turns(args: &ShowArgs) -> Option<usize> {
    let from = |range: &TurnRange| range.from.filter(|from| *from < 0);
    let all: Option<Vec<i64>> = args.turn.iter().map(from).collect();
    all?.into_iter()
        .min()
        .map(|from| from.unsigned_abs() as usize)
}

fn is_large(target: &SessionTarget) -> bool {
    match target {
        SessionTarget::Session(file) => file.bytes > LARGE,
        SessionTarget::Agent(file) => file.bytes > LARGE,
    }
}

/// Reads only the end of a large session.
fn end_of(
    world: &CommandContext,
    target: SessionTarget,
    turns: usize,
) -> Result<ChosenSession, CommandFailure> {
    let reader = world.reader();
    let main = reader.read_end(target.path(), TranscriptRole::Main, turns + 1, u64::MAX)?;
    let family = SessionWithAgents::alone(main);
    Ok(ChosenSession { target, family })
}

fn text(
    world: &CommandContext,
    args: &ShowArgs,
    chosen: &ChosenSession,
    pick: &TurnSelection,
    sought: Option<(u32, ConversationPosition)>,
) -> Result<(), CommandFailure> {
    let mut style = world.ui.style();
    style.thinking = args.thinking;
    style.tools = match args.tools {
        ShowToolsArg::None => ToolDetail::None,
        ShowToolsArg::Short => ToolDetail::Short,
        ShowToolsArg::Full => ToolDetail::Full,
    };
    let agents = chosen.family.told();
    let main = &chosen.family.main;
    let loud = ConversationStyle {
        tools: ToolDetail::Full,
        thinking: true,
        ..style.clone()
    };
    let write = |out: &mut dyn Write| -> Result<(), CommandFailure> {
        let mut conversation = ConversationWriter::new(&style);
        let count = main
            .session
            .turns
            .iter()
            .filter(|turn| turn.thread == 0)
            .count();
        for mut items in transcript::parts(&main.session, &main.source, &agents, pick) {
            if main.is_partial() {
                items.iter_mut().for_each(|item| count_back(item, count));
            }
            let found = sought.and_then(|(line, spot)| Some((line, place(&items, spot)?)));
            let Some((line, at)) = found else {
                conversation.write(out, &items)?;
                continue;
            };
            conversation.write(out, &items[..at])?;
            conversation.marked(out, &items[at], &format!("line {line}"), &loud)?;
            conversation.write(out, &items[at + 1..])?;
        }
        Ok(conversation.end(out)?)
    };
    match args.at_once {
        true => world.ui.printed(write),
        false => world.ui.paged(write),
    }
}

/// Which item shows a line: the last one that begins at it or before it.
fn place(items: &[TranscriptItem], spot: ConversationPosition) -> Option<usize> {
    let shown =
        |item: &TranscriptItem| !matches!(item.body, ItemBody::Turn(_)) && item.line <= spot.line;
    let last = items
        .iter()
        .filter(|item| shown(item))
        .map(|item| item.line)
        .max()?;
    items
        .iter()
        .position(|item| shown(item) && item.line == last)
}

/// Where only the end was read, turns are numbered from there.
fn count_back(item: &mut TranscriptItem, count: usize) {
    if let ItemBody::Turn(head) = &mut item.body {
        head.n -= count as i64 + 1;
    }
}

fn json(
    world: &CommandContext,
    chosen: &ChosenSession,
    pick: &TurnSelection,
    line: Option<u32>,
) -> Result<(), CommandFailure> {
    let main = &chosen.family.main;
    let mut out = world.ui.out();
    for row in BlockRow::all(&main.session, &main.source, "main", pick) {
        if line.is_none_or(|line| row.line == line) {
            world.ui.row(&mut out, &row)?;
        }
    }
    if line.is_some() {
        return Ok(out.flush()?);
    }
    for agent in chosen.family.agents.iter().filter(|_| pick.agents) {
        let every = TurnSelection {
            turns: Vec::new(),
            agents: true,
        };
        for row in BlockRow::all(
            &agent.loaded.session,
            &agent.loaded.source,
            &agent.id,
            &every,
        ) {
            world.ui.row(&mut out, &row)?;
        }
    }
    Ok(out.flush()?)
}

/// The lines of the picked turns, byte for byte; for a person, with what controls a terminal escaped.
fn raw(
    world: &CommandContext,
    chosen: &ChosenSession,
    pick: &TurnSelection,
) -> Result<(), CommandFailure> {
    let main = &chosen.family.main;
    let session = &main.session;
    let numbers = turns::numbers(session);
    let count = session.turns.iter().filter(|turn| turn.thread == 0).count() as u32;
    if pick.turns.is_empty() && !world.ui.is_terminal() {
        return whole(world, chosen);
    }
    world.ui.paged_data(|out| {
        for (at, record) in session.records.iter().enumerate() {
            if !numbers[at].map_or(pick.takes_rest(), |turn| pick.takes(turn, count)) {
                continue;
            }
            let bytes = main
                .source
                .bytes(record.offset, record.len())
                .unwrap_or_default();
            out.write_all(&bytes)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })
}

/// The file, byte for byte but for its secrets.
fn whole(world: &CommandContext, chosen: &ChosenSession) -> Result<(), CommandFailure> {
    let path = chosen.target.path();
    let failed = |error| CommandFailure::failed(format!("{}: {error}", path.display()));
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let mut out = world.ui.unmasked_data();
    if world.reveal {
        std::io::copy(&mut file, &mut out)?;
        return Ok(out.flush()?);
    }
    long_lines::mask_lines(&file, secrets::masker(), &mut out)?;
    Ok(out.flush()?)
}
