//! A session made ready: settings, rules, hooks, instructions, servers and the transcript.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use unspool_agent::api::client::{Client, Patience};
use unspool_agent::api::model::{self, Thinking};
use unspool_agent::commands::Commands;
use unspool_agent::definitions::Definitions;
use unspool_agent::driver::{Lore, Place, Setup};
use unspool_agent::folder_files;
use unspool_agent::hooks::Hooks;
use unspool_agent::memory::{self, Memory, Roots};
use unspool_agent::record::Record;
use unspool_agent::request::Frame;
use unspool_agent::sandbox::{self, Fence, Support};
use unspool_agent::settings::{self, Settings};
use unspool_agent::tools::{self, Kept};
use unspool_agent::words;
use unspool_ask::{ANTHROPIC_API, Access};
use unspool_model::price::Prices;

use super::ground::{broken, place, policy, settings};
use super::transcript::{Passing, passing, record, session_id};
use super::{ChatArgs, servers};
use crate::failure::Failure;
use crate::world::World;

/// A session that is ready to begin, and what is known about it.
pub struct Opened {
    /// All it needs.
    pub setup: Setup,
    /// Its id.
    pub session: String,
    /// The variable that gives access.
    pub variable: &'static str,
    /// What to tell the person before anything else.
    pub notes: Vec<String>,
    /// What is gone when the session is over.
    pub passing: Option<Passing>,
}

/// Makes a session ready, new or old, as the arguments say.
pub fn open(world: &World, args: &ChatArgs) -> Result<Opened, Failure> {
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
    let nothing = Settings::none(&place.project);
    let hooked = if args.bare { &nothing } else { &settings };
    let hooks = Hooks::load(hooked, &place.project, program.as_deref()).map_err(broken)?;
    notes.extend(hooks.notes.iter().cloned());
    let lore = match args.bare {
        true => bare(&settings),
        false => lore(&place, &settings, &mut notes),
    };
    let id = session_id(args)?;
    let passing = passing(args, &place, &id)?;
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
    let frame = Frame {
        thinking: args
            .max_thinking_tokens
            .map_or(Thinking::Auto, |tokens| match tokens {
                0 => Thinking::Off,
                tokens => Thinking::Budget(tokens),
            }),
        effort: args.effort.clone(),
        most: variable("CLAUDE_CODE_MAX_OUTPUT_TOKENS").and_then(|text| text.parse().ok()),
        system: system(world, args, &place, &lore, record.branch(), &model),
        tools: tools.collect(),
        model,
    };
    check_budget(args, &frame.model, &prices)?;
    let env = settings.variables();
    let more = servers::start(args, &place, &settings, &env, &variable, &mut notes)?;
    let history = Some(place.config.join("history.jsonl"));
    let setup = Setup {
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
    Ok(Opened {
        setup,
        session,
        variable: access.variable(),
        notes,
        passing,
    })
}

/// A budget can only be kept for a model whose price is known.
fn check_budget(args: &ChatArgs, model: &str, prices: &Prices) -> Result<(), Failure> {
    if args.max_budget_usd.is_none() || prices.find(model).is_some() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "`--max-budget-usd` cannot be enforced: {model} has no known price"
    ))
    .hint("add its price (see `unspool prices --help`), or omit `--max-budget-usd`"))
}

/// Nothing that people or the project wrote down.
fn bare(settings: &Settings) -> Lore {
    let nowhere = Path::new("/dev/null");
    Lore {
        commands: Commands::default(),
        agents: Definitions::default(),
        memory: Memory::default(),
        roots: Roots {
            managed: nowhere.to_owned(),
            config: nowhere.to_owned(),
            home: nowhere.to_owned(),
            cwd: nowhere.to_owned(),
            external: false,
        },
        trusted: settings.is_trusted(),
    }
}

fn client(variable: &dyn Fn(&str) -> Option<String>) -> Result<(Client, Access), Failure> {
    let access = Access::from_variables(variable).ok_or_else(|| {
        Failure::failed(
            "no API credentials: neither ANTHROPIC_API_KEY nor ANTHROPIC_AUTH_TOKEN is set",
        )
        .hint("set one of them; set ANTHROPIC_BASE_URL to use another endpoint than Anthropic's")
    })?;
    let base = variable("ANTHROPIC_BASE_URL").unwrap_or_else(|| ANTHROPIC_API.to_owned());
    let retries = variable("CLAUDE_CODE_MAX_RETRIES").and_then(|text| text.parse().ok());
    let patience = Patience {
        retries: retries.unwrap_or(Patience::default().retries),
        ..Patience::default()
    };
    let client = Client::new(&base, &access, patience)
        .map_err(|trouble| Failure::failed(trouble.message))?;
    Ok((client, access))
}

/// What the model is told before the conversation.
fn system(
    world: &World,
    args: &ChatArgs,
    place: &Place,
    lore: &Lore,
    branch: Option<&str>,
    model: &str,
) -> Vec<String> {
    let today = Timestamp::now()
        .to_zoned(world.ui.zone().clone())
        .date()
        .to_string();
    let mut around = words::surroundings(&place.project, &place.dirs, branch, &today, model);
    let agents = lore
        .agents
        .list
        .iter()
        .map(|one| (&one.name, &one.description));
    around += &words::list(
        "Sub-agents that can be started, beside general-purpose",
        agents,
    );
    let skills = lore.commands.list.iter().filter(|one| one.for_model);
    around += &words::list("Skills", skills.map(|one| (&one.name, &one.description)));
    let files = lore
        .memory
        .files
        .iter()
        .map(|file| (file.path.clone(), file.text.clone()));
    let mut system = vec![words::SYSTEM.to_owned(), around];
    system.extend(words::memory(&files.collect::<Vec<_>>()));
    system.extend(args.append_system_prompt.clone());
    system
}

fn lore(place: &Place, settings: &Settings, notes: &mut Vec<String>) -> Lore {
    let roots = Roots {
        managed: Path::new(settings::MANAGED).with_file_name("CLAUDE.md"),
        config: place.config.clone(),
        home: place.home.clone(),
        cwd: place.project.clone(),
        external: false,
    };
    let trusted = settings.is_trusted();
    let boundary = folder_files::boundary(&place.project, &place.home);
    let agents = Definitions::find(&place.config, &place.project, &boundary, trusted);
    let commands = Commands::find(&place.config, &place.project, &boundary);
    let memory = memory::memory(&roots);
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
    Lore {
        commands,
        agents,
        memory,
        roots,
        trusted,
    }
}

/// What earlier turns read or wrote may be changed without reading it again.
fn kept(record: &Record) -> Arc<Kept> {
    let kept = Kept::default();
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

fn fence(args: &ChatArgs, place: &Place, notes: &mut Vec<String>) -> Option<Fence> {
    if !args.sandbox {
        return None;
    }
    if let Support::No(why) = sandbox::support() {
        notes.push(format!(
            "sandbox unavailable, commands run without it: {why}"
        ));
        return None;
    }
    Some(Fence::around(
        &place.project,
        &place.dirs,
        &tempfile::env::temp_dir(),
    ))
}
