//! `watch`: what all sessions are doing, as it changes.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use clap::Args;
use unspool_live::{LiveChange, LiveChangeKind, LiveSessions, LiveSubscription};
use unspool_model::time::Time;
use unspool_model::view::status::AttentionNeed;
use unspool_show::clean;
use unspool_show::format;
use unspool_show::layout;
use unspool_show::style::{ConversationStyle, StyledLine, TextStyle};
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::wire::live::{RemovedRow, SessionChangeRow};
use unspool_show::wire::session::SessionJson;
use unspool_store::project;

use crate::command_context::CommandContext;
use crate::commands::{ls, status};
use crate::failure::CommandFailure;
use crate::live;

/// Arguments of `watch`.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  unspool watch                  live table of all sessions; q quits
  unspool watch --json | jq -r 'select(.event) | [.id, .status] | @tsv'

With --json: all sessions as in `ls --json`, then one line per change, with `event`
(`session` or `removed`), `previous_status` and `grown`.")]
pub struct WatchArgs {}

/// Follows all sessions until somebody has seen enough.
pub fn run(world: &CommandContext, _: &WatchArgs) -> Result<(), CommandFailure> {
    let (joined, live) = live::join(world)?;
    let follow = ChangeSource { joined, live };
    if world.ui.json {
        return rows(world, follow);
    }
    #[cfg(unix)]
    if world.ui.is_terminal() && std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        return board(world, follow);
    }
    lines(world, follow)
}

/// Where changes come from, and the loop behind them if it is ours.
struct ChangeSource {
    joined: LiveSubscription,
    live: Option<LiveSessions>,
}

impl ChangeSource {
    /// The next change; `Err` when there will be none.
    fn next(&self, wait: Duration) -> Result<Option<LiveChange>, ()> {
        match self.joined.news.recv_timeout(wait) {
            Ok(news) => Ok(Some(news)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(()),
        }
    }

    /// Joins again: the daemon was stopped, or we were too slow.
    fn again(&mut self, world: &CommandContext) -> Result<(), CommandFailure> {
        match self.live.as_ref().filter(|live| !live.is_over()) {
            Some(live) => self.joined = live.join(),
            None => (self.joined, self.live) = live::join(world)?,
        }
        Ok(())
    }
}

/// How long to wait for a change at most.
const LONG: Duration = Duration::from_secs(3600);

fn rows(world: &CommandContext, mut follow: ChangeSource) -> Result<(), CommandFailure> {
    let mut out = world.ui.out();
    let mut known: HashMap<String, Arc<SessionJson>> = HashMap::new();
    for row in std::mem::take(&mut follow.joined.rows) {
        world.ui.row(&mut out, &*row)?;
        known.insert(row.path.clone(), row);
    }
    out.flush()?;
    loop {
        match follow.next(LONG) {
            Ok(None) => {}
            Ok(Some(news)) => {
                tell(world, &mut out, &mut known, news)?;
                out.flush()?;
            }
            Err(()) => {
                follow.again(world)?;
                // Only what is another one than before.
                for row in std::mem::take(&mut follow.joined.rows) {
                    let old = known.get(&row.path);
                    if old.is_none_or(|old| *old != row) {
                        let before = old.map(|old| old.status.clone());
                        let before = before.filter(|before| *before != row.status);
                        let grown = old.is_none_or(|old| old.bytes != row.bytes);
                        change(world, &mut out, &row, before, grown)?;
                        known.insert(row.path.clone(), row);
                    }
                }
                out.flush()?;
            }
        }
    }
}

fn tell(
    world: &CommandContext,
    out: &mut dyn Write,
    known: &mut HashMap<String, Arc<SessionJson>>,
    news: LiveChange,
) -> Result<(), CommandFailure> {
    match news.what {
        LiveChangeKind::Session { row, before, grown } => {
            change(world, out, &row, before, grown)?;
            known.insert(row.path.clone(), row);
            Ok(())
        }
        LiveChangeKind::Removed { id } => {
            known.retain(|_, row| row.id != id);
            let event = "removed";
            world.ui.row(out, &RemovedRow { event, id })
        }
        LiveChangeKind::Scanned => Ok(()),
    }
}

fn change(
    world: &CommandContext,
    out: &mut dyn Write,
    row: &SessionJson,
    previous_status: Option<String>,
    grown: bool,
) -> Result<(), CommandFailure> {
    let row = SessionChangeRow {
        event: "session",
        session: row,
        previous_status,
        grown,
    };
    world.ui.row(out, &row)
}

/// One line for each change of a state: for logs and pipes.
fn lines(world: &CommandContext, mut follow: ChangeSource) -> Result<(), CommandFailure> {
    let mut states: HashMap<String, String> = HashMap::new();
    loop {
        let mut out = world.ui.out();
        for row in std::mem::take(&mut follow.joined.rows) {
            if row.need() != AttentionNeed::Rest && states.get(&row.path) != Some(&row.status) {
                writeln!(out, "{}", spoken(world, &row))?;
            }
            states.insert(row.path.clone(), row.status.clone());
        }
        out.flush()?;
        while let Ok(news) = follow.next(LONG) {
            let Some(LiveChangeKind::Session { row, .. }) = news.map(|news| news.what) else {
                continue;
            };
            let old = states.insert(row.path.clone(), row.status.clone());
            if old.as_ref() != Some(&row.status) {
                writeln!(out, "{}", spoken(world, &row))?;
                out.flush()?;
            }
        }
        drop(out);
        follow.again(world)?;
    }
}

fn spoken(world: &CommandContext, row: &SessionJson) -> String {
    let mut text = format!(
        "{}  {}  {}  {}",
        format::clock(world.now(), world.ui.zone()),
        ls::short(&row.id),
        ls::status_words(row),
        project::project_name(&row.project),
    );
    let about = status::what(row).filter(|_| row.need() == AttentionNeed::You);
    if let Some(about) = about.or_else(|| row.title.clone()) {
        text += "  ";
        text += &about;
    }
    clean::line(&text).into_owned()
}

/// The board: drawn again at each change, and each second for what time changes.
#[cfg(unix)]
fn board(world: &CommandContext, mut follow: ChangeSource) -> Result<(), CommandFailure> {
    use crate::watch_screen::WatchScreen;

    let bell = crate::config::UserConfig::read(&world.own.config)?
        .notify
        .bell;
    let screen = WatchScreen::enter()?;
    let mut known: HashMap<String, Arc<SessionJson>> = HashMap::new();
    let put = |known: &mut HashMap<_, _>, rows: Vec<Arc<SessionJson>>| {
        known.clear();
        known.extend(rows.into_iter().map(|row| (row.path.clone(), row)));
    };
    put(&mut known, std::mem::take(&mut follow.joined.rows));
    loop {
        let rows: Vec<&SessionJson> = known.values().map(|row| &**row).collect();
        screen.draw(&drawn(world, rows, follow.live.is_none()))?;
        let (mut ring, mut wait) = (false, Duration::from_secs(1));
        // All that is there goes into one frame; frames are not faster than anybody sees.
        loop {
            match follow.next(wait) {
                Ok(Some(news)) => ring |= apply(&mut known, news),
                Ok(None) => break,
                Err(()) => {
                    follow.again(world)?;
                    put(&mut known, std::mem::take(&mut follow.joined.rows));
                    break;
                }
            }
            wait = Duration::from_millis(30);
            if let Some(end) = keys(&screen)? {
                return end;
            }
        }
        if bell && ring {
            screen.ring()?;
        }
        if let Some(end) = keys(&screen)? {
            return end;
        }
    }
}

/// What a person pressed; how it ends if that was to leave.
#[cfg(unix)]
fn keys(
    screen: &crate::watch_screen::WatchScreen,
) -> Result<Option<Result<(), CommandFailure>>, CommandFailure> {
    use crate::watch_screen::CTRL_C;

    const CTRL_D: u8 = 4;
    const CTRL_Z: u8 = 26;
    const ESCAPE: u8 = 27;
    while let Ok(key) = screen.keys.try_recv() {
        match key {
            b'q' | CTRL_C | CTRL_D | ESCAPE => return Ok(Some(Ok(()))),
            CTRL_Z => screen.pause()?,
            _ => {}
        }
    }
    Ok(None)
}

/// Takes in a change; whether a session needs somebody that did not before.
#[cfg(unix)]
fn apply(known: &mut HashMap<String, Arc<SessionJson>>, news: LiveChange) -> bool {
    match news.what {
        LiveChangeKind::Session { row, .. } => {
            let needs = row.need() == AttentionNeed::You;
            let old = known.insert(row.path.clone(), row);
            needs && old.is_some_and(|old| old.need() != AttentionNeed::You)
        }
        LiveChangeKind::Removed { id } => {
            known.retain(|_, row| row.id != id);
            false
        }
        LiveChangeKind::Scanned => false,
    }
}

#[cfg(unix)]
fn drawn(world: &CommandContext, rows: Vec<&SessionJson>, daemon: bool) -> String {
    let style = world.ui.style();
    let height = terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0));
    let from = if daemon { "daemon" } else { "no daemon" };
    page(rows, world.now(), height, from, &style)
}

/// The board as text, at most `height` lines of it.
fn page(
    mut rows: Vec<&SessionJson>,
    now: Time,
    height: usize,
    from: &str,
    style: &ConversationStyle,
) -> String {
    let sum = status::sum(rows.iter().copied());
    let all = rows.len();
    let unpriced: u64 = rows.iter().map(|row| row.unpriced_messages).sum();
    let unpriced = match unpriced {
        0 => String::new(),
        some => format!(" · {} without a price", format::count(some, "message")),
    };
    let order = |row: &SessionJson| {
        let need = row.need();
        // Who has waited longest first; of what rests, the latest.
        let since = row.status_since.as_deref().and_then(Time::parse);
        let last = row
            .last
            .as_deref()
            .and_then(Time::parse)
            .map(|time| -time.0);
        match need {
            AttentionNeed::Rest => (need, last),
            _ => (need, since.map(|time| time.0)),
        }
    };
    rows.sort_by_cached_key(|row| (order(row), row.id.clone()));
    rows.truncate(height.saturating_sub(4).max(1));
    let head = format!(
        "{}   {all} sessions{unpriced} · {from} · q leaves",
        sum.line
    );
    let mut text = Vec::new();
    let paint = if sum.need_you > 0 {
        TextStyle::WARN
    } else {
        TextStyle::BOLD
    };
    let head = layout::cut(&StyledLine::of(paint, &head), style.width);
    let _ = head.write(&mut text, style.color);
    let _ = writeln!(text);
    let _ = table(&rows, now).write(&mut text, style);
    String::from_utf8_lossy(&text).into_owned()
}

fn table(rows: &[&SessionJson], now: Time) -> TextTable {
    let mut table = TextTable::new(vec![
        TableColumn::fixed("status"),
        TableColumn::number("for"),
        TableColumn::fixed("id").optional(),
        TableColumn::flexible("project", 8),
        TableColumn::flexible("what", 20),
        TableColumn::number("context").optional(),
        TableColumn::number("cost").optional(),
    ]);
    for row in rows {
        let need = row.need();
        let paint = match need {
            AttentionNeed::You => TextStyle::WARN,
            AttentionNeed::Turn => TextStyle::BOLD,
            AttentionNeed::Working => TextStyle::ADDED,
            AttentionNeed::Rest => TextStyle::DIM,
        };
        let since = row.status_since.as_deref().and_then(Time::parse);
        let last = row.last.as_deref().and_then(Time::parse);
        let since = if need == AttentionNeed::Rest {
            last
        } else {
            since
        };
        let waits = status::what(row)
            .filter(|_| need != AttentionNeed::Rest && need != AttentionNeed::Turn);
        let what = waits.or_else(|| row.title.clone()).unwrap_or_default();
        let context = row.context_tokens;
        let plain = |text: &str| StyledLine::of(TextStyle::PLAIN, text);
        let rest = |text: &str| {
            StyledLine::of(
                if need == AttentionNeed::Rest {
                    TextStyle::DIM
                } else {
                    TextStyle::PLAIN
                },
                text,
            )
        };
        table.rows.push(vec![
            StyledLine::of(paint, &ls::status_words(row)),
            plain(&since.map_or_else(String::new, |since| format::age(now.since(since)))),
            rest(ls::short(&row.id)),
            rest(project::project_name(&row.project)),
            rest(&what),
            rest(&context.map_or_else(String::new, |tokens| {
                format::fullness(tokens, row.context_limit)
            })),
            rest(&format::cost_at_least(row.cost_usd, row.cost_usd_known)),
        ]);
    }
    table
}
