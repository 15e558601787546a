//! `ls`: sessions, newest first; and what the program shows without a command.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::Path;

use clap::Args;
use unspool_model::agent_kind::AgentKind;
use unspool_model::file_usage::FileUsage;
use unspool_model::id::Id;
use unspool_model::price::Prices;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::tag;
use unspool_model::time::Time;
use unspool_model::view::session_row::{self, SessionRow as Row};
use unspool_model::view::session_usage::{SessionFiles, SessionUsage, usage_by_file, usage_since};
use unspool_model::view::status::{self, RunningWork, SessionState, SessionStatus, StatusSignals};
use unspool_model::view::usage::period;
use unspool_show::format;
use unspool_show::table::{TableColumn, TextTable};
use unspool_show::wire::session::{SessionFileInfo, SessionJson};
use unspool_store::find::{FoundSessionFiles, NonConversationFile, SessionFile, SubAgentFile};
use unspool_store::parallel;
use unspool_store::project;
use unspool_store::read::{LoadedSession, SessionReader};
use unspool_store::session_with_agents::{
    self, agents_by_session, helpers_by_session, read_helpers,
};
use unspool_store::side_files;

use crate::command_context::CommandContext;
use crate::commands::show;
use crate::failure::CommandFailure;
use crate::live;
use crate::secrets;
use crate::time_input;

/// Arguments of `ls`.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  unspool ls --project webshop --since 7d
  unspool ls --status waiting_for_input
  unspool ls --json | jq -r '[.id, .title] | @tsv'")]
pub struct LsArgs {
    /// Only sessions of this project (name, directory, or part of one)
    #[arg(long, value_name = "P")]
    pub project: Option<String>,

    /// Only sessions active since this time, such as `7d`, `24h`, `today` or `2026-01-03`
    #[arg(long, value_name = "T")]
    pub since: Option<String>,

    /// Only sessions in this state: working, waiting_for_approval, waiting_for_input, idle,
    /// compacting, error or ended
    #[arg(long, value_name = "S")]
    pub status: Option<String>,

    /// Only sessions with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,

    /// Also list sessions without a prompt or reply, sub-agents, and files that are not sessions
    #[arg(long)]
    pub all: bool,

    /// Also list sub-agents, one row each
    #[arg(long)]
    pub agents: bool,
}

/// Without a command: the list; on a machine without sessions, the demo.
pub fn plain(mut world: CommandContext) -> Result<(), CommandFailure> {
    if world.demo.is_none() && world.found()?.sessions.is_empty() {
        if world.named {
            return Err(world.no_sessions());
        }
        world
            .ui
            .note("No Claude Code sessions on this machine: showing the bundled demo.\n");
        world.use_demo()?;
        run(&world, &LsArgs::default())?;
        if world.ui.json {
            return Ok(());
        }
        world.ui.printed(|out| Ok(writeln!(out)?))?;
        return show::latest(&world);
    }
    run(&world, &LsArgs::default())
}

/// Lists sessions.
pub fn run(world: &CommandContext, args: &LsArgs) -> Result<(), CommandFailure> {
    let now = world.now();
    let mut wanted = SessionFilter::new(
        world,
        args.project.as_deref(),
        args.since.as_deref(),
        args.status.as_deref(),
    )?;
    wanted.tag = args.tag.as_deref().map(tag::cleaned);
    // Where the daemon answers, nobody may need them; read twice, they would be complained of twice.
    let prices = LazyCell::new(|| world.prices());
    // A daemon knows sessions, not each of their files.
    let known = (!args.agents && !args.all).then(|| live::rows(world));
    let (found, mut rows) = match known.flatten() {
        Some(rows) => (FoundSessionFiles::default(), rows),
        None => read(world, args, &prices, now)?,
    };
    let now_known: HashSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let waiting = background(world, &now_known, || &prices, now);
    rows.extend(waiting);
    rows.retain(|row| wanted.takes(row));
    rows.sort_by(|a, b| b.last.cmp(&a.last).then_with(|| a.id.cmp(&b.id)));
    if args.all {
        rows.extend(others(&found, &prices));
    }
    if rows.is_empty() {
        return Err(CommandFailure::nothing("no session matches")
            .hint("list all sessions with `unspool ls`"));
    }
    for row in &mut rows {
        mask(world, row);
    }
    let mut out = world.ui.out();
    if world.ui.json {
        for row in &rows {
            world.ui.row(&mut out, row)?;
        }
    } else {
        table(&rows, now).write(&mut out, &world.ui.style())?;
    }
    out.flush()?;
    if !world.ui.json {
        // The rows of sub-agents are parts of those of their sessions.
        let whole = rows.iter().filter(|row| row.parent.is_none());
        let unpriced = whole.map(|row| row.unpriced_messages).sum();
        format::unpriced(unpriced)
            .iter()
            .for_each(|note| world.ui.note(note));
    }
    Ok(())
}

/// Sessions in the background of which no transcript is written yet.
fn background<'p>(
    world: &CommandContext,
    known: &HashSet<&str>,
    prices: impl Fn() -> &'p Prices,
    now: Time,
) -> Vec<SessionJson> {
    if world.demo.is_some() {
        return Vec::new();
    }
    let mut rows = Vec::new();
    let signals = world.signals();
    for dir in &world.dirs {
        for job in side_files::jobs(dir) {
            // Where its session is not told, the id of the job is the start of it.
            let is_known = match &job.session {
                Some(id) => known.contains(&**id),
                None => known.iter().any(|id| id.starts_with(&job.id)),
            };
            if is_known {
                continue;
            }
            let id = job.session.clone().unwrap_or_else(|| job.id.clone());
            let place = SessionFileInfo {
                id: id.clone(),
                path: dir.join("jobs").join(&job.id).display().to_string(),
                project: job.cwd.clone().unwrap_or_default(),
                bytes: 0,
                parent: None,
            };
            let session = Session::new(TranscriptRole::Main);
            let signals = signals.of(dir, &id);
            let files = SessionFiles::alone(&session);
            let row = session_row::row(&files, &HashMap::new(), prices(), &signals, now);
            rows.push(SessionJson {
                title: job.intent.clone(),
                goal: job.intent,
                cwd: job.cwd,
                first: job.created,
                last: job.updated,
                process: Some("bg".to_owned()),
                ..SessionJson::new(&session, row, place)
            });
        }
    }
    rows
}

/// Reads all files.
fn read(
    world: &CommandContext,
    args: &LsArgs,
    prices: &Prices,
    now: Time,
) -> Result<(FoundSessionFiles, Vec<SessionJson>), CommandFailure> {
    let found = world.found()?;
    if found.sessions.is_empty() && !args.all {
        return Err(world.no_sessions());
    }
    let kinds = ListedRowKinds {
        agents: args.agents || args.all,
        unused: args.all,
    };
    let mut rows = rows(world, &found, kinds, prices, now);
    if args.agents || args.all {
        rows.extend(orphans(world, &found, prices, now));
    }
    Ok((found, rows))
}

/// Which sessions are wanted.
pub struct SessionFilter {
    project: Option<String>,
    since: Option<Time>,
    state: Option<SessionState>,
    tag: Option<String>,
}

impl SessionFilter {
    /// As options have it.
    pub fn new(
        world: &CommandContext,
        project: Option<&str>,
        since: Option<&str>,
        status: Option<&str>,
    ) -> Result<SessionFilter, CommandFailure> {
        let since = since.map(|text| time_input::parse(text, world.now(), world.ui.zone()));
        Ok(SessionFilter {
            project: project.map(str::to_owned),
            since: since.transpose()?,
            state: status.map(state).transpose()?,
            tag: None,
        })
    }

    /// Whether this is one of them.
    pub fn takes(&self, row: &SessionJson) -> bool {
        let fits = |wanted: &String| project::project_matches(&row.project, wanted);
        let last = || row.last.as_deref().and_then(Time::parse);
        let recent = |since: Time| last().is_some_and(|last| last >= since);
        self.project.as_ref().is_none_or(fits)
            && self.since.is_none_or(recent)
            && self.state.is_none_or(|state| row.status == state.name())
            && self
                .tag
                .as_ref()
                .is_none_or(|tag| row.tag.as_ref() == Some(tag))
    }
}

/// Takes secrets out of what was said, and tokens out of names.
pub fn mask(world: &CommandContext, row: &mut SessionJson) {
    row.said().for_each(|text| world.mask_in(text));
    if !world.reveal {
        let names = secrets::name_masker().secrets();
        row.names().for_each(|name| {
            if let Cow::Owned(masked) = names.mask(name) {
                *name = masked;
            }
        });
    }
}

fn state(name: &str) -> Result<SessionState, CommandFailure> {
    SessionState::named(name).ok_or_else(|| {
        CommandFailure::failed(format!("`{name}` is not a status"))
            .hint("use working, waiting_for_approval, waiting_for_input, idle, compacting, error or ended")
    })
}

/// What reading one session gives.
struct ListedSession {
    rows: Vec<SessionJson>,
    /// Titles that its lines give to other sessions.
    given: Vec<(Id, String)>,
    /// Hashes of its ids, if it has no title of its own.
    untitled: Option<Vec<u64>>,
}

/// Which rows there are beside those of sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListedRowKinds {
    /// Those of sub-agents.
    pub agents: bool,
    /// Those of files in which nobody typed and nobody answered.
    pub unused: bool,
}

/// The rows of all sessions that can be read.
pub fn rows(
    world: &CommandContext,
    found: &FoundSessionFiles,
    kinds: ListedRowKinds,
    prices: &Prices,
    now: Time,
) -> Vec<SessionJson> {
    let mut by_session = agents_by_session(found);
    let mut helpers = helpers_by_session(found);
    let mut jobs: Vec<ListedFiles<'_>> = Vec::new();
    for file in &found.sessions {
        let key = (&*file.config, &*file.folder, file.id.as_str());
        jobs.push(ListedFiles {
            file,
            agents: by_session.remove(&key).unwrap_or_default(),
            helpers: helpers.remove(&key).unwrap_or_default(),
        });
    }
    let weight = |files: &ListedFiles<'_>| {
        let agents = files.agents.iter().map(|agent| agent.bytes);
        let helpers = files.helpers.iter().map(|helper| helper.bytes);
        files.file.bytes + agents.chain(helpers).sum::<u64>()
    };
    let signals = world.signals();
    let today = period::around(now, world.ui.zone());
    let read = parallel::map(&jobs, parallel::threads(), weight, |files| {
        let signals = signals.of(&files.file.config, &files.file.id);
        list(files, kinds, prices, &signals, now, today.start)
    });
    let mut titles: HashMap<u64, String> = HashMap::new();
    let mut listed = Vec::new();
    for result in read {
        match result {
            Ok(Some(mut one)) => {
                titles.extend(
                    one.given
                        .drain(..)
                        .map(|(leaf, title)| (hash(&leaf), title)),
                );
                listed.push(one);
            }
            Ok(None) => {}
            Err(warning) => world.ui.warn(&warning),
        }
    }
    for one in &mut listed {
        let given = one.untitled.iter().flatten().find_map(|id| titles.get(id));
        if let (Some(title), Some(row)) = (given, one.rows.first_mut()) {
            row.title = Some(title.clone());
        }
    }
    listed.into_iter().flat_map(|one| one.rows).collect()
}

fn hash(id: &Id) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// A session's files.
struct ListedFiles<'a> {
    file: &'a SessionFile,
    agents: Vec<&'a SubAgentFile>,
    /// Those of the client's own helpers.
    helpers: Vec<&'a NonConversationFile>,
}

fn list(
    files: &ListedFiles<'_>,
    kinds: ListedRowKinds,
    prices: &Prices,
    signals: &StatusSignals,
    now: Time,
    midnight: Time,
) -> Result<Option<ListedSession>, String> {
    let reader = SessionReader {
        threads: 1,
        ..SessionReader::default()
    };
    let read =
        |path: &std::path::Path, role| reader.read(path, role).map_err(|error| error.to_string());
    let file = files.file;
    let session = read(&file.path, TranscriptRole::Main)?.session;
    if !session.is_used() && !kinds.unused {
        return Ok(None);
    }
    let mut agents = Vec::new();
    let helpers = read_helpers(&files.helpers, 1).into_iter();
    let mut helpers: Vec<FileUsage> = helpers.map(|helper| helper.spending).collect();
    for agent in &files.agents {
        // A sub-agent that cannot be read is no reason to lose its session.
        if let Ok(loaded) = read(&agent.path, TranscriptRole::Agent) {
            agents.push((*agent, loaded));
        }
    }
    let warm_ups = warm_ups(&session, &mut agents);
    helpers.extend(warm_ups.iter().map(|(_, one)| FileUsage::of(&one.session)));
    let sessions: Vec<&Session> = agents.iter().map(|(_, loaded)| &loaded.session).collect();
    let helpers: Vec<&FileUsage> = helpers.iter().collect();
    let used = SessionFiles {
        session: &session,
        agents: &sessions,
        helpers: &helpers,
    };
    let none = HashMap::new();
    let project = project::project(&session, &file.folder).to_owned();
    let place = SessionFileInfo {
        id: file.id.clone(),
        path: file.path.display().to_string(),
        project: project.clone(),
        bytes: file.bytes,
        parent: None,
    };
    let view = session_row::row(&used, &none, prices, signals, now);
    let today = usage_since(&used, prices, midnight);
    let mut rows = vec![SessionJson {
        not_a_session: (!session.is_used()).then(|| unused(&session)),
        ..SessionJson::new(&session, view, place).with_today(&today)
    }];
    if kinds.agents {
        let crew = RunningWork::of(&session, &sessions, signals, now);
        // What they repeat of the session or of each other counts there.
        let by_file = usage_by_file(&used, prices).into_iter().skip(1);
        rows.extend(agents.iter().zip(by_file).map(|((agent, loaded), own)| {
            let status = crew.status(&loaded.session, signals, now);
            let own = SessionUsage {
                own,
                ..SessionUsage::default()
            };
            agent_row(agent, &loaded.session, &project, prices, status, Some(own))
        }));
    }
    if kinds.unused {
        let warm_ups = warm_ups.iter();
        rows.extend(warm_ups.map(|(agent, _)| {
            other_row(
                &agent.path,
                agent.bytes,
                Some(AgentKind::WarmUp),
                AgentKind::WarmUp.why(),
                prices,
            )
        }));
    }
    let untitled = session
        .given_title()
        .is_none()
        .then(|| session.ids().map(hash).collect());
    let given = session
        .foreign_titles()
        .map(|(leaf, title)| (leaf.clone(), title.to_owned()))
        .collect();
    Ok(Some(ListedSession {
        rows,
        given,
        untitled,
    }))
}

/// Takes out what turned out to be the client warming up.
fn warm_ups<'a>(
    session: &Session,
    agents: &mut Vec<(&'a SubAgentFile, LoadedSession)>,
) -> Vec<(&'a SubAgentFile, LoadedSession)> {
    let sessions = || std::iter::once(session).chain(agents.iter().map(|(_, one)| &one.session));
    let apart: HashSet<&Path> = agents
        .iter()
        .filter(|(file, one)| session_with_agents::is_warm_up(&file.path, &one.session, sessions()))
        .map(|(file, _)| &*file.path)
        .collect();
    agents
        .extract_if(.., |(file, _)| apart.contains(&*file.path))
        .collect()
}

/// Why a file is listed only with all others, and what stands in it.
fn unused(session: &Session) -> String {
    /// So many kinds of line are named.
    const NAMED: usize = 3;
    let labels: Vec<&str> = session.labels.iter().map(|(label, _)| label).collect();
    let more = if labels.len() > NAMED { ", …" } else { "" };
    let named = labels[..labels.len().min(NAMED)].join(", ");
    match labels.is_empty() {
        true => "unreadable".to_owned(),
        false => format!("no prompt and no reply: {named}{more}"),
    }
}

/// Sub-agents whose session is gone.
fn orphans(
    world: &CommandContext,
    found: &FoundSessionFiles,
    prices: &Prices,
    now: Time,
) -> Vec<SessionJson> {
    let known: HashSet<(&Path, &str, &str)> = found
        .sessions
        .iter()
        .map(|file| (&*file.config, &*file.folder, file.id.as_str()))
        .collect();
    let lost = found.agents.iter().filter(|agent| {
        let session = agent.session.as_deref().unwrap_or_default();
        !known.contains(&(&*agent.config, &*agent.folder, session))
    });
    let lost: Vec<&SubAgentFile> = lost.collect();
    let reader = SessionReader {
        threads: 1,
        ..SessionReader::default()
    };
    let read = parallel::map(
        &lost,
        parallel::threads(),
        |agent| agent.bytes,
        |agent| {
            let session = reader
                .read(&agent.path, TranscriptRole::Agent)
                .map_err(|error| error.to_string())?
                .session;
            if session_with_agents::is_warm_up(&agent.path, &session, []) {
                let kind = AgentKind::WarmUp;
                return Ok(other_row(
                    &agent.path,
                    agent.bytes,
                    Some(kind),
                    kind.why(),
                    prices,
                ));
            }
            Ok::<_, String>(agent_row(
                agent,
                &session,
                project::project(&session, &agent.folder),
                prices,
                status::status(&session, &StatusSignals::default(), now),
                None,
            ))
        },
    );
    let mut rows = Vec::new();
    for result in read {
        match result {
            Ok(row) => rows.push(row),
            Err(warning) => world.ui.warn(&warning),
        }
    }
    rows
}

/// The row of a sub-agent; what it used, if its session tells, else what stands in its file.
fn agent_row(
    agent: &SubAgentFile,
    session: &Session,
    project: &str,
    prices: &Prices,
    status: SessionStatus,
    used: Option<SessionUsage>,
) -> SessionJson {
    let place = SessionFileInfo {
        id: format!("agent-{}", agent.id),
        path: agent.path.display().to_string(),
        project: project.to_owned(),
        bytes: agent.bytes,
        parent: Some(agent.session.clone().unwrap_or_default()),
    };
    let none = StatusSignals::default();
    let files = SessionFiles::alone(session);
    let row = session_row::row(&files, &HashMap::new(), prices, &none, Time(0));
    let row = Row {
        status,
        used: used.unwrap_or(row.used),
        ..row
    };
    let kind = match session.agent_kind() {
        AgentKind::Teammate => AgentKind::Teammate,
        _ if agent.run.is_some() => AgentKind::Workflow,
        _ => AgentKind::SubAgent,
    };
    SessionJson {
        agent_kind: Some(kind.name().to_owned()),
        ..SessionJson::new(session, row, place)
    }
}

/// Files that are not conversations.
fn others(found: &FoundSessionFiles, prices: &Prices) -> impl Iterator<Item = SessionJson> {
    let others = found.others.iter();
    others.map(|other| other_row(&other.path, other.bytes, other.helper, other.why, prices))
}

/// A file that is not a conversation, and why.
fn other_row(
    path: &Path,
    bytes: u64,
    helper: Option<AgentKind>,
    why: &str,
    prices: &Prices,
) -> SessionJson {
    let stem = path.file_stem().unwrap_or_default();
    let folder = path.parent().and_then(|dir| dir.file_name());
    let place = SessionFileInfo {
        id: stem.to_string_lossy().into_owned(),
        path: path.display().to_string(),
        project: folder.unwrap_or_default().to_string_lossy().into_owned(),
        bytes,
        parent: None,
    };
    let session = Session::new(TranscriptRole::Main);
    let none = StatusSignals::default();
    let titles = HashMap::new();
    let files = SessionFiles::alone(&session);
    let empty = session_row::row(&files, &titles, prices, &none, Time(0));
    SessionJson {
        agent_kind: helper.map(|kind| kind.name().to_owned()),
        not_a_session: Some(why.to_owned()),
        cost_usd: None,
        cost_usd_known: None,
        used_by: None,
        ..SessionJson::new(&session, empty, place)
    }
}

fn table(rows: &[SessionJson], now: Time) -> TextTable {
    let mut table = TextTable::new(vec![
        TableColumn::fixed("id"),
        TableColumn::fixed("age"),
        TableColumn::flexible("project", 10),
        TableColumn::flexible("title", 16),
        TableColumn::number("turns"),
        TableColumn::number("calls"),
        TableColumn::number("context"),
        TableColumn::number("cost").optional(),
        TableColumn::fixed("status"),
    ]);
    for row in rows {
        let last = row.last.as_deref().and_then(Time::parse);
        let age = last.map_or_else(String::new, |last| format::age(now.since(last)));
        let title = row
            .not_a_session
            .as_ref()
            .or(row.title.as_ref())
            .cloned()
            .unwrap_or_default();
        let title = match &row.tag {
            Some(tag) => format!("#{tag} {title}"),
            None => title,
        };
        table.row([
            short(&row.id).to_owned(),
            age,
            project::project_name(&row.project).to_owned(),
            title,
            row.turns.to_string(),
            row.calls.to_string(),
            fullness(row),
            cost(row),
            status_words(row),
        ]);
    }
    table
}

fn cost(row: &SessionJson) -> String {
    match row.not_a_session {
        Some(_) => String::new(),
        None => format::cost_at_least(row.cost_usd, row.cost_usd_known),
    }
}

/// How full the context is: `84.1k 42%`.
fn fullness(row: &SessionJson) -> String {
    let tokens = row.context_tokens;
    tokens.map_or_else(String::new, |tokens| {
        format::fullness(tokens, row.context_limit)
    })
}

/// Enough of an id to name the session by.
pub fn short(id: &str) -> &str {
    id.get(..8)
        .filter(|_| !id.starts_with("agent-"))
        .unwrap_or(id)
}

/// What a session is doing, for people.
pub fn status_words(row: &SessionJson) -> String {
    let state = match &row.background {
        Some(job) => format!("{}, background {}", row.doing(), job.state),
        None => row.doing().to_owned(),
    };
    match row.agents_working {
        0 => state,
        1 => format!("{state}, 1 agent"),
        agents => format!("{state}, {agents} agents"),
    }
}
