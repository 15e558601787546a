//! `check`: faults, and which client versions can resume.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use unspool_model::fault::FaultList;
use unspool_model::session::{Session, TranscriptRole};
use unspool_model::view::check::{self, ResumeCheck};
use unspool_model::view::client_profile::{ClientGroups, ClientProfile};
use unspool_show::clean;
use unspool_show::wire::check::{FaultRow, VerdictRow, left_out};
use unspool_store::find::{self, FoundSessionFiles};
use unspool_store::parallel;
use unspool_store::read::SessionReader;
use unspool_store::session_with_agents;
use unspool_store::written_by;

use crate::command_context::CommandContext;
use crate::commands::info;
use crate::failure::CommandFailure;

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unspool check 2f72
  unspool check --all --json | jq -r 'select(.kind).kind' | sort | uniq -c

Exit code 0: clean; 1: faults found. Lines that only other client versions than --claude-version
would lose are reported, but do not change the exit code.")]
pub struct CheckArgs {
    /// Start of a session id, a title, a path, or `@` for the latest [default: @]
    pub session: Option<OsString>,

    /// Check all sessions and sub-agents on this machine
    #[arg(long, conflicts_with = "session")]
    pub all: bool,
}

/// What was found out about one file.
struct CheckedFile {
    id: String,
    path: String,
    faults: FaultList,
    clients: Vec<ResumeCheck>,
    unknown: BTreeMap<String, BTreeMap<String, u32>>,
    agent: bool,
}

impl CheckedFile {
    fn new(
        id: &str,
        path: &Path,
        session: &Session,
        (found, tree, asked): (&FoundSessionFiles, &ClientGroups, ClientProfile),
    ) -> CheckedFile {
        let mut clients = tree.clone();
        for profile in ClientProfile::that_matter(session) {
            clients.add(profile);
        }
        let elsewhere = session_with_agents::parents_beside(found, path, session);
        CheckedFile {
            id: id.to_owned(),
            path: path.display().to_string(),
            faults: check::faults_beside(session, &elsewhere, asked),
            clients: check::resumable_among(session, &clients),
            unknown: session.unknown.clone(),
            agent: session.role() == TranscriptRole::Agent,
        }
    }

    fn resumes(&self, profile: ClientProfile) -> bool {
        let wanted = if profile == ClientProfile::Strict {
            ClientProfile::NEWEST
        } else {
            profile
        };
        let client = self.clients.iter().find(|client| client.profile == wanted);
        // Sub-agents are not resumed; what can be wrong with them are faults.
        self.agent || client.is_none_or(|client| client.resumes && client.lost == 0)
    }

    fn is_clean(&self, profile: ClientProfile) -> bool {
        self.faults.is_empty() && self.resumes(profile)
    }
}

/// Checks sessions.
pub fn run(world: &CommandContext, args: &CheckArgs) -> Result<(), CommandFailure> {
    let checked = if args.all {
        all(world)?
    } else {
        vec![one(world, args)?]
    };
    let mut out = world.ui.out();
    for one in &checked {
        if world.ui.json {
            rows(world, &mut out, one)?;
        } else if !args.all || !one.is_clean(world.profile) {
            print(world, &mut out, one, !args.all)?;
        }
    }
    if args.all && !world.ui.json {
        summary(world, &mut out, &checked)?;
    }
    out.flush()?;
    let clean = checked.iter().all(|one| one.is_clean(world.profile));
    if clean {
        Ok(())
    } else {
        Err(CommandFailure::Found)
    }
}

fn one(world: &CommandContext, args: &CheckArgs) -> Result<CheckedFile, CommandFailure> {
    let chosen = world.view(args.session.as_deref())?;
    let path = chosen.target.path();
    let session = &chosen.family.main.session;
    // The files of a sub-agent's session stand around that.
    let around = path
        .ancestors()
        .skip(1)
        .find(|dir| dir.ends_with("subagents"));
    let around = around.and_then(Path::parent).unwrap_or(path);
    let found = world.found_around(around)?;
    let tree = clients(world, &find::find(&world.dirs));
    Ok(CheckedFile::new(
        chosen.id(),
        path,
        session,
        (&found, &tree, world.profile),
    ))
}

/// The clients that are asked about every session: those that a person has, who may go on in it
/// with any of them, and the one that was named.
fn clients(world: &CommandContext, found: &FoundSessionFiles) -> ClientGroups {
    let versions = written_by::versions(found);
    let wrote = versions
        .iter()
        .filter_map(|version| ClientProfile::for_version(version));
    let named = (world.profile != ClientProfile::Strict).then_some(world.profile);
    let all: BTreeSet<ClientProfile> = wrote.chain(named).collect();
    all.into_iter().collect()
}

fn all(world: &CommandContext) -> Result<Vec<CheckedFile>, CommandFailure> {
    let found = world.found()?;
    let sessions = found.sessions.iter().map(|file| {
        (
            file.id.clone(),
            file.path.clone(),
            file.bytes,
            TranscriptRole::Main,
        )
    });
    let agents = found.agents.iter().map(|file| {
        (
            format!("agent-{}", file.id),
            file.path.clone(),
            file.bytes,
            TranscriptRole::Agent,
        )
    });
    let jobs: Vec<(String, PathBuf, u64, TranscriptRole)> = sessions.chain(agents).collect();
    if jobs.is_empty() {
        return Err(world.no_sessions());
    }
    let tree = clients(world, &found);
    let reader = SessionReader {
        threads: 1,
        ..world.reader()
    };
    let results = parallel::map(
        &jobs,
        parallel::threads(),
        |job| job.2,
        |(id, path, _, role)| {
            let session = reader
                .read(path, *role)
                .map_err(|error| error.to_string())?
                .session;
            Ok::<_, String>(
                session
                    .is_conversation()
                    .then(|| CheckedFile::new(id, path, &session, (&found, &tree, world.profile))),
            )
        },
    );
    let mut checked = Vec::new();
    for result in results {
        match result {
            Ok(one) => checked.extend(one),
            Err(warning) => world.ui.warn(&warning),
        }
    }
    Ok(checked)
}

fn rows(
    world: &CommandContext,
    out: &mut dyn Write,
    one: &CheckedFile,
) -> Result<(), CommandFailure> {
    for fault in &one.faults {
        world
            .ui
            .row(out, &FaultRow::new(&one.id, &one.path, fault))?;
    }
    let verdict = VerdictRow {
        session: one.id.clone(),
        path: one.path.clone(),
        faults: one.faults.found(),
        faults_left_out: left_out(&one.faults),
        resumable: one.resumes(world.profile),
        clients: one
            .clients
            .iter()
            .map(|client| (client.profile.name(), client.into()))
            .collect(),
        unknown: one.unknown.clone(),
    };
    world.ui.row(out, &verdict)
}

/// In a list of many, only so many faults of each session are named.
const MOST: usize = 5;

fn print(
    world: &CommandContext,
    out: &mut dyn Write,
    one: &CheckedFile,
    alone: bool,
) -> Result<(), CommandFailure> {
    writeln!(out, "{}", clean::line(&one.path))?;
    let most = if alone { usize::MAX } else { MOST };
    for fault in one.faults.iter().take(most) {
        writeln!(
            out,
            "  line {}: {} ({})",
            fault.line,
            clean::line(&fault.detail),
            fault.kind.name()
        )?;
    }
    let more = one.faults.found() - one.faults.len().min(most);
    if more > 0 && !alone {
        writeln!(out, "  … and {more} more faults")?;
    } else {
        info::more_faults(out, "  … and", &left_out(&one.faults))?;
    }
    for client in one.clients.iter().filter(|_| !one.agent) {
        let asked = client.profile == world.profile;
        if !alone && !asked {
            continue;
        }
        let answer = match (&client.why, client.resumes) {
            (None, _) => "resumes".to_owned(),
            (Some(why), true) => format!("resumes, but {why}"),
            (Some(why), false) => format!("does not resume: {why}"),
        };
        writeln!(out, "  Claude Code {:<8} {answer}", client.profile.name())?;
    }
    if alone {
        info::drift(out, &one.unknown)?;
        if one.faults.is_empty() {
            writeln!(out, "  no faults")?;
        }
    }
    Ok(())
}

fn summary(
    world: &CommandContext,
    out: &mut dyn Write,
    checked: &[CheckedFile],
) -> Result<(), CommandFailure> {
    let broken = checked
        .iter()
        .filter(|one| !one.is_clean(world.profile))
        .count();
    let mut unknown: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
    for (what, versions) in checked.iter().flat_map(|one| &one.unknown) {
        let sum = unknown.entry(what.clone()).or_default();
        for (version, count) in versions {
            *sum.entry(version.clone()).or_default() += count;
        }
    }
    writeln!(out, "{} checked, {} with faults", checked.len(), broken)?;
    let clients = checked.iter().filter(|one| !one.agent);
    let asked: BTreeSet<ClientProfile> = clients
        .flat_map(|one| one.clients.iter().map(|client| client.profile))
        .collect();
    if !asked.is_empty() {
        let asked: Vec<String> = asked.into_iter().map(ClientProfile::name).collect();
        writeln!(out, "Claude Code asked: {}", asked.join(", "))?;
    }
    info::drift(out, &unknown)
}
