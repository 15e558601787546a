//! A session made ready: settings, rules, hooks, instructions, servers and the transcript.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use unspool_agent::agent_definitions::AgentDefinitions;
use unspool_agent::api::client::{ApiRetryPolicy, MessagesClient};
use unspool_agent::api::model::{self, ThinkingMode};
use unspool_agent::driver::{SessionCustomizations, SessionDirs, SessionSetup};
use unspool_agent::folder_files;
use unspool_agent::hooks::SessionHooks;
use unspool_agent::memory::{self, MemoryFiles, MemoryRoots};
use unspool_agent::request::RequestOptions;
use unspool_agent::sandbox::{self, SandboxSupport, WriteSandbox};
use unspool_agent::settings::{self, SessionSettings};
use unspool_agent::slash_commands::SlashCommands;
use unspool_agent::system_prompt;
use unspool_agent::tools::{self, ToolState};
use unspool_agent::transcript_writer::TranscriptWriter;
use unspool_ask::{ANTHROPIC_API, ApiCredential};
use unspool_model::price::Prices;

use super::transcript::{TemporarySession, record, session_id, temporary_session};
use super::workspace::{broken, place, policy, settings};
use super::{ChatArgs, mcp_servers};
use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// A session that is ready to begin, and what is known about it.
pub struct PreparedChat {
    /// All it needs.
    pub setup: SessionSetup,
    /// Its id.
    pub session: String,
    /// The variable that gives access.
    pub variable: &'static str,
    /// What to tell the person before anything else.
    pub notes: Vec<String>,
    /// What is gone when the session is over.
    pub passing: Option<TemporarySession>,
}

/// Makes a session ready, new or old, as the arguments say.
pub fn open(world: &CommandContext, args: &ChatArgs) -> Result<PreparedChat, CommandFailure> {
    let mut notes = Vec::new();
    let place = place(world, args)?;
    let settings = settings(world, args, &place, &mut notes)?;
    let given = settings.env();
    let variable = |name: &str| {
        let set = std::env::var(name).ok();
        let written = || {
            given
                .iter()
                .find(|(key, ..)| key == name)
                .map(|(_, value, _)| value.clone())
        };
        set.or_else(written)
            .filter(|value| !value.trim().is_empty())
    };
    let (client, access) = client(&variable)?;
    let mut policy = policy(world, args, &place, &settings, &mut notes)?;
    let fence = fence(args, &place, &mut notes);
    policy.set_fenced(fence.is_some());
    let program = std::env::current_exe().ok();
    let nothing = SessionSettings::none(&place.project);
    let hooked = if args.bare { &nothing } else { &settings };
    let hooks = SessionHooks::load(hooked, &place.project, program.as_deref()).map_err(broken)?;
    notes.extend(hooks.notes.iter().cloned());
    let lore = match args.bare {
        true => bare(&settings),
        false => lore(&place, &settings, &mut notes),
    };
    let id = session_id(args)?;
    let passing = temporary_session(args, &place, &id)?;
    let record = record(world, args, &place, &id, passing.as_ref())?;
    let begins = if record.session().is_some() {
        "resume"
    } else {
        "startup"
    };
    let session = record.face().session.clone();
    let name = args.model.clone().or_else(|| record.model());
    let name = name
        .or_else(|| variable("ANTHROPIC_MODEL"))
        .or_else(|| settings.model());
    let prices = world.prices().into_owned();
    let model = model::named(name.as_deref().unwrap_or("default"), &prices);
    let tools = tools::ALL
        .iter()
        .filter(|tool| tool.is_offered() && policy.offers(tool.name()));
    let tools = tools.map(|tool| {
        json!({"name": tool.name(), "description": tool.description(), "input_schema": tool.schema()})
    });
    let frame = RequestOptions {
        thinking: args
            .max_thinking_tokens
            .map_or(ThinkingMode::Auto, |tokens| match tokens {
                0 => ThinkingMode::Off,
                tokens => ThinkingMode::Budget(tokens),
            }),
        effort: args.effort.clone(),
        most: variable("CLAUDE_CODE_MAX_OUTPUT_TOKENS").and_then(|text| text.parse().ok()),
        system: system(world, args, &place, &lore, record.branch(), &model),
        tools: tools.collect(),
        model,
    };
    check_budget(args, &frame.model, &prices)?;
    let env = settings.variables();
    let more = mcp_servers::start(args, &place, &settings, &env, &variable, &mut notes)?;
    let history = Some(place.config.join("history.jsonl"));
    let setup = SessionSetup {
        client,
        kept: kept(&record),
        record,
        frame,
        policy,
        hooks,
        env,
        fence,
        place,
        lore,
        more,
        turns: args.max_turns,
        budget: args.max_budget_usd,
        prices: Arc::new(prices),
        compacts: true,
        asks: args.permission_prompt_tool.as_deref() == Some("stdio"),
        history: history.filter(|_| args.history),
        source: Some(if args.print { "sdk" } else { "typed" }.to_owned()),
        begins,
        stays: args.is_alone(),
    };
    Ok(PreparedChat {
        setup,
        session,
        variable: access.variable(),
        notes,
        passing,
    })
}

/// A budget can only be kept for a model whose price is known.
fn check_budget(args: &ChatArgs, model: &str, prices: &Prices) -> Result<(), CommandFailure> {
    if args.max_budget_usd.is_none() || prices.find(model).is_some() {
        return Ok(());
    }
    Err(CommandFailure::failed(format!(
        "`--max-budget-usd` cannot be enforced: {model} has no known price"
    ))
    .hint("add its price (see `unspool prices --help`), or omit `--max-budget-usd`"))
}

/// Nothing that people or the project wrote down.
fn bare(settings: &SessionSettings) -> SessionCustomizations {
    let nowhere = Path::new("/dev/null");
    SessionCustomizations {
        commands: SlashCommands::default(),
        agents: AgentDefinitions::default(),
        memory: MemoryFiles::default(),
        roots: MemoryRoots {
            managed: nowhere.to_owned(),
            config: nowhere.to_owned(),
            home: nowhere.to_owned(),
            cwd: nowhere.to_owned(),
            external: false,
        },
        trusted: settings.is_trusted(),
    }
}

fn client(
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(MessagesClient, ApiCredential), CommandFailure> {
    let access = ApiCredential::from_variables(variable).ok_or_else(|| {
        CommandFailure::failed(
            "no API credentials: neither ANTHROPIC_API_KEY nor ANTHROPIC_AUTH_TOKEN is set",
        )
        .hint("set one of them; set ANTHROPIC_BASE_URL to use another endpoint than Anthropic's")
    })?;
    let base = variable("ANTHROPIC_BASE_URL").unwrap_or_else(|| ANTHROPIC_API.to_owned());
    let retries = variable("CLAUDE_CODE_MAX_RETRIES").and_then(|text| text.parse().ok());
    let patience = ApiRetryPolicy {
        retries: retries.unwrap_or(ApiRetryPolicy::default().retries),
        ..ApiRetryPolicy::default()
    };
    let client = MessagesClient::new(&base, &access, patience)
        .map_err(|trouble| CommandFailure::failed(trouble.message))?;
    Ok((client, access))
}

/// What the model is told before the conversation.
fn system(
    world: &CommandContext,
    args: &ChatArgs,
    place: &SessionDirs,
    lore: &SessionCustomizations,
    branch: Option<&str>,
    model: &str,
) -> Vec<String> {
    let today = Timestamp::now()
        .to_zoned(world.ui.zone().clone())
        .date()
        .to_string();
    let mut around =
        system_prompt::environment_prompt(&place.project, &place.dirs, branch, &today, model);
    let agents = lore
        .agents
        .list
        .iter()
        .map(|one| (&one.name, &one.description));
    around += &system_prompt::list(
        "Sub-agents that can be started, beside general-purpose",
        agents,
    );
    let skills = lore.commands.list.iter().filter(|one| one.for_model);
    around += &system_prompt::list("Skills", skills.map(|one| (&one.name, &one.description)));
    let files = lore
        .memory
        .files
        .iter()
        .map(|file| (file.path.clone(), file.text.clone()));
    let mut system = vec![system_prompt::SYSTEM.to_owned(), around];
    system.extend(system_prompt::memory_prompt(&files.collect::<Vec<_>>()));
    system.extend(args.append_system_prompt.clone());
    system
}

fn lore(
    place: &SessionDirs,
    settings: &SessionSettings,
    notes: &mut Vec<String>,
) -> SessionCustomizations {
    let roots = MemoryRoots {
        managed: Path::new(settings::MANAGED).with_file_name("CLAUDE.md"),
        config: place.config.clone(),
        home: place.home.clone(),
        cwd: place.project.clone(),
        external: false,
    };
    let trusted = settings.is_trusted();
    let boundary = folder_files::boundary(&place.project, &place.home);
    let agents = AgentDefinitions::find(&place.config, &place.project, &boundary, trusted);
    let commands = SlashCommands::find(&place.config, &place.project, &boundary);
    let memory = memory::load_memory(&roots);
    let left_out = memory.left_out.iter().chain(&commands.left_out);
    for (path, why) in left_out.chain(&agents.faults) {
        let note = format!("{}: {why}", path.display());
        // A folder that is a link may hold several of these.
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    for path in &memory.external {
        notes.push(format!(
            "{} not imported: outside the project",
            path.display()
        ));
    }
    SessionCustomizations {
        commands,
        agents,
        memory,
        roots,
        trusted,
    }
}

/// What earlier turns read or wrote may be changed without reading it again.
fn kept(record: &TranscriptWriter) -> Arc<ToolState> {
    let kept = ToolState::default();
    if let Some(session) = record.session() {
        for call in &session.calls {
            let file = matches!(
                session.text(call.tool),
                "Read" | "Write" | "Edit" | "MultiEdit" | "NotebookEdit"
            );
            let worked = call.result.as_ref().is_some_and(|result| !result.is_error);
            if let Some(path) = session.subject(call).filter(|_| file && worked) {
                kept.saw_before(Path::new(path));
            }
        }
    }
    Arc::new(kept)
}

fn fence(args: &ChatArgs, place: &SessionDirs, notes: &mut Vec<String>) -> Option<WriteSandbox> {
    if !args.sandbox {
        return None;
    }
    if let SandboxSupport::No(why) = sandbox::support() {
        notes.push(format!(
            "sandbox unavailable, commands run without it: {why}"
        ));
        return None;
    }
    Some(WriteSandbox::around(
        &place.project,
        &place.dirs,
        &tempfile::env::temp_dir(),
    ))
}
