//! `chat`: talk to the model; what is said becomes a session that Claude Code can resume.

mod desk;
mod explain;
mod input;
mod output;
mod rules;
mod servers;
mod talk;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};
use unspool_agent::api::client::{Client, Patience};
use unspool_agent::api::model::{self, Thinking};
use unspool_agent::api::retry::{Kind, Trouble};
use unspool_agent::api::told::told;
use unspool_agent::commands::Commands;
use unspool_agent::definitions::Definitions;
use unspool_agent::driver::{self, Command, Lore, Notice, Place, Remote, Setup};
use unspool_agent::hooks::Hooks;
use unspool_agent::machine::Why;
use unspool_agent::memory::{self, Memory, Roots};
use unspool_agent::permission::{Ground, Mode, Policy};
use unspool_agent::record::{Face, Record, new_id};
use unspool_agent::request::Frame;
use unspool_agent::sandbox::{self, Fence, Support};
use unspool_agent::settings::{self, Broken, Places, Settings};
use unspool_agent::tools::{self, Kept};
use unspool_agent::trust::{Standing, Trust};
use unspool_agent::words;
use unspool_ask::{Access, Api};
use unspool_model::time::Time;
use unspool_model::write::slug;
use unspool_store::project;
use unspool_store::resolve::{self, Target};

use crate::commands::browse::is_screen;
use crate::failure::Failure;
use crate::world::World;

use input::Input;
use output::{Form, Output};

/// Arguments of `chat`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  unspool chat                                     talk, here
  unspool chat -p \"what does this project do?\"      one answer, then done
  git diff | unspool chat -p \"review this\"          the prompt goes with what is piped in
  unspool chat -p --continue \"and the tests?\"       goes on with the latest session of this directory
  unspool chat -p --resume 2f72 \"go on\"             goes on with any session, also Claude Code's own
  unspool chat -p --output-format json \"…\"          for scripts: the answer with its costs

The session is an ordinary transcript: `unspool show`, `unspool ls` and `claude --resume` read it.
Access: ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN; ANTHROPIC_BASE_URL names a gateway.
Exit codes: 0 done, 1 no answer, 2 it could not begin, 130 and 143 when it was stopped.")]
pub struct ChatArgs {
    /// What to say; more may be piped in
    pub prompt: Option<String>,

    /// Answer once and end
    #[arg(short, long)]
    pub print: bool,

    /// How the answer is printed
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        default_value = "text",
        help_heading = "Input and output"
    )]
    pub output_format: Form,

    /// How prompts come in: text, or one JSON object per line
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        default_value = "text",
        help_heading = "Input and output"
    )]
    pub input_format: InputForm,

    /// With stream-json: print what the model says while it says it
    #[arg(long, help_heading = "Input and output")]
    pub include_partial_messages: bool,

    /// Who answers questions about permissions: `stdio` asks over the stream
    #[arg(long, value_name = "WHO", help_heading = "Input and output")]
    pub permission_prompt_tool: Option<String>,

    /// Go on with this session
    #[arg(long, short, value_name = "SESSION", help_heading = "Session")]
    pub resume: Option<OsString>,

    /// Go on with the latest session of this directory
    #[arg(
        long = "continue",
        short = 'c',
        conflicts_with = "resume",
        help_heading = "Session"
    )]
    pub go_on: bool,

    /// Go on in a copy, and leave the session as it is
    #[arg(long, help_heading = "Session")]
    pub fork_session: bool,

    /// The id of the new session: a uuid
    #[arg(long, value_name = "ID", help_heading = "Session")]
    pub session_id: Option<String>,

    /// With `-p`: leave no session behind
    #[arg(long, requires = "print", help_heading = "Session")]
    pub no_session_persistence: bool,

    /// Wait for the disk after each line
    #[arg(long, help_heading = "Session")]
    pub durable: bool,

    /// Keep what is typed in the client's history of prompts, too
    #[arg(long, help_heading = "Session")]
    pub history: bool,

    /// The model, or a family such as `opus` [default: that of the session, $ANTHROPIC_MODEL, the newest Sonnet]
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub model: Option<String>,

    /// How hard the model tries: low, medium, high, xhigh, max
    #[arg(long, value_name = "LEVEL", help_heading = "Model")]
    pub effort: Option<String>,

    /// Tokens for thinking, where a model takes a number
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub max_thinking_tokens: Option<u64>,

    /// More instructions to the model
    #[arg(long, value_name = "TEXT", help_heading = "Model")]
    pub append_system_prompt: Option<String>,

    /// Without instructions, hooks, commands, agents and servers but those that are named here
    #[arg(long, help_heading = "Session")]
    pub bare: bool,

    /// Ask the model no more than so often
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub max_turns: Option<u32>,

    /// Spend no more than so many dollars
    #[arg(long, value_name = "USD", help_heading = "Limits")]
    pub max_budget_usd: Option<f64>,

    /// Tools and calls that are allowed, such as `Read` or `Bash(git *)`
    #[arg(
        long = "allowedTools",
        alias = "allowed-tools",
        value_name = "RULES",
        help_heading = "Permissions"
    )]
    pub allowed_tools: Vec<String>,

    /// Tools and calls that are not
    #[arg(
        long = "disallowedTools",
        alias = "disallowed-tools",
        value_name = "RULES",
        help_heading = "Permissions"
    )]
    pub disallowed_tools: Vec<String>,

    /// default, acceptEdits, plan, dontAsk or bypassPermissions
    #[arg(long, value_name = "MODE", help_heading = "Permissions")]
    pub permission_mode: Option<String>,

    /// Servers that offer tools: a file, or JSON itself (can be repeated)
    #[arg(long, value_name = "FILE", help_heading = "Tools")]
    pub mcp_config: Vec<String>,

    /// Only the servers of `--mcp-config`
    #[arg(long, help_heading = "Tools")]
    pub strict_mcp_config: bool,

    /// More settings: a file, or JSON itself
    #[arg(long, value_name = "FILE", help_heading = "Permissions")]
    pub settings: Option<String>,

    /// Trust this folder: its settings may run hooks and allow things
    #[arg(long, help_heading = "Permissions")]
    pub trust: bool,

    /// Commands can write in this folder only
    #[arg(long, help_heading = "Permissions")]
    pub sandbox: bool,

    /// Say whether a command would be allowed, and by which rule
    #[arg(long, value_name = "CMD", help_heading = "Permissions")]
    pub explain_permission: Option<String>,

    /// One more folder to work in (can be repeated)
    #[arg(long, value_name = "DIR", help_heading = "Permissions")]
    pub add_dir: Vec<PathBuf>,
}

impl ChatArgs {
    /// Whether nobody sits there to talk.
    fn is_alone(&self) -> bool {
        self.print || !is_screen() || self.input_format != InputForm::Text
    }
}

/// How prompts come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum InputForm {
    /// As they are typed
    #[default]
    Text,
    /// One JSON object per line
    StreamJson,
}

/// Runs `chat`.
pub fn run(world: World, args: &ChatArgs) -> Result<(), Failure> {
    if let Some(command) = &args.explain_permission {
        return explain::run(&world, args, command);
    }
    if !args.is_alone() {
        return talk::run(world, args.clone());
    }
    if args.input_format == InputForm::StreamJson && args.output_format != Form::StreamJson {
        return Err(Failure::failed(
            "`--input-format stream-json` needs `--output-format stream-json`",
        ));
    }
    let input = Input::read(args)?;
    let opened = open(&world, args)?;
    print(&world, args, opened, input)
}

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

/// A session that nobody keeps: its files are removed when it is over.
pub struct Passing {
    folder: tempfile::TempDir,
    /// Copies of files that it changed.
    copies: PathBuf,
}

impl Drop for Passing {
    fn drop(&mut self) {
        // The folder goes by itself.
        let _ = std::fs::remove_dir_all(&self.copies);
    }
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
    let model = model::named(name.as_deref().unwrap_or("default"));
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
    let env = settings.variables();
    let more = servers::start(args, &place, lore.trusted, &env, &variable, &mut notes)?;
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
        Failure::failed("there is no access to a model: neither ANTHROPIC_API_KEY nor ANTHROPIC_AUTH_TOKEN is set")
            .hint("set one of them; ANTHROPIC_BASE_URL names another address than Anthropic's")
    })?;
    let base = variable("ANTHROPIC_BASE_URL").unwrap_or_else(|| Api::BASE.to_owned());
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
    let agents = Definitions::find(&place.config, &place.project, trusted);
    for (path, why) in &agents.faults {
        notes.push(format!("{}: {why}", path.display()));
    }
    let memory = memory::memory(&roots);
    for path in &memory.external {
        notes.push(format!(
            "{} is outside the project and is not imported",
            path.display()
        ));
    }
    Lore {
        commands: Commands::find(&place.config, &place.project),
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
        notes.push(format!("commands run without a sandbox: {why}"));
        return None;
    }
    Some(Fence::around(
        &place.project,
        &place.dirs,
        &std::env::temp_dir(),
    ))
}

fn broken(broken: Broken) -> Failure {
    let hint = broken.hint();
    Failure::failed(broken).hint(hint)
}

/// Where settings are.
fn places(args: &ChatArgs, place: &Place) -> Places {
    Places {
        user: place.config.clone(),
        managed: settings::MANAGED.into(),
        project: place.project.clone(),
        given: args.settings.clone(),
    }
}

/// What settings files say. One that cannot be read might forbid something: nothing begins.
fn settings(
    world: &World,
    args: &ChatArgs,
    place: &Place,
    notes: &mut Vec<String>,
) -> Result<Settings, Failure> {
    let mut settings = Settings::load(&places(args, place)).map_err(broken)?;
    notes.extend(settings.notes.iter().cloned());
    let trust = Trust::at(world.trusted());
    if args.trust {
        trust.store(&settings)?;
    }
    let standing = trust.check(&settings);
    if let Err(why) = &standing {
        notes.push(format!(
            "no folder is trusted now: {why}; remove that file to begin anew"
        ));
    }
    let trusted = matches!(standing, Ok(Standing::Trusted));
    settings.trust(trusted);
    let acting = settings.acting();
    if !trusted && standing.is_ok() && !acting.is_empty() && !args.is_alone() {
        talk::ask_for_trust(world, &settings, &acting, &trust)?;
        settings.trust(trust.check(&settings)? == Standing::Trusted);
    }
    if !settings.is_trusted() && !acting.is_empty() {
        let mut keys: Vec<&str> = acting.iter().map(|one| one.key.as_str()).collect();
        keys.dedup();
        notes.push(format!(
            "this folder is not trusted: what its settings would do is left out ({}); `--trust` accepts it",
            keys.join(", ")
        ));
    }
    Ok(settings)
}

fn policy(
    world: &World,
    args: &ChatArgs,
    place: &Place,
    settings: &Settings,
    notes: &mut Vec<String>,
) -> Result<Policy, Failure> {
    let mode = match &args.permission_mode {
        None => settings
            .default_mode()
            .map_or(Mode::Default, |(mode, _)| mode),
        Some(name) => {
            let (mode, note) = Mode::read(name).ok_or_else(|| {
                Failure::failed(format!("`{name}` is no permission mode"))
                    .hint("one of default, acceptEdits, plan, dontAsk, bypassPermissions")
            })?;
            notes.extend(note.map(str::to_owned));
            mode
        }
    };
    let ground = Ground {
        project: place.project.clone(),
        dirs: place.dirs.clone(),
        home: place.home.clone(),
        readable: Vec::new(),
        steering: vec![
            place.config.clone(),
            world.own.config.clone(),
            world.own.data.clone(),
        ],
    };
    let (allowed, denied) = (rules(&args.allowed_tools), rules(&args.disallowed_tools));
    let policy = Policy::load(settings, ground, mode, &allowed, &denied).map_err(broken)?;
    notes.extend(policy.notes.iter().cloned());
    Ok(policy)
}

/// Rules may be given one by one, or several with commas or spaces between them.
fn rules(given: &[String]) -> Vec<String> {
    let mut rules = Vec::new();
    for text in given {
        let (mut depth, mut rule) = (0_u32, String::new());
        for letter in text.chars() {
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && (letter == ',' || letter.is_whitespace()) {
                rules.push(std::mem::take(&mut rule));
            } else {
                rule.push(letter);
            }
        }
        rules.push(rule);
    }
    rules.retain(|rule| !rule.is_empty());
    rules
}

fn place(world: &World, args: &ChatArgs) -> Result<Place, Failure> {
    let here = world
        .here
        .as_deref()
        .ok_or_else(|| Failure::failed("there is no current directory"))?;
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let project = real(here);
    let mut dirs = Vec::new();
    for dir in &args.add_dir {
        if !dir.is_dir() {
            return Err(Failure::failed(format!(
                "there is no folder `{}`",
                dir.display()
            )));
        }
        dirs.push(real(dir));
    }
    let home = std::env::var_os("HOME").map_or_else(|| project.clone(), PathBuf::from);
    let config = world
        .dirs
        .first()
        .cloned()
        .unwrap_or_else(|| home.join(".claude"));
    Ok(Place {
        project,
        dirs,
        home,
        config,
    })
}

/// The id of a session that begins.
fn session_id(args: &ChatArgs) -> Result<String, Failure> {
    let Some(id) = &args.session_id else {
        return Ok(new_id());
    };
    let id = uuid::Uuid::parse_str(id).map_err(|_| {
        Failure::failed(format!("`{id}` is no uuid"))
            .hint("leave `--session-id` out to get a new one")
    })?;
    Ok(id.to_string())
}

/// Where a session is that nobody keeps.
fn passing(args: &ChatArgs, place: &Place, id: &str) -> Result<Option<Passing>, Failure> {
    if !args.no_session_persistence {
        return Ok(None);
    }
    Ok(Some(Passing {
        folder: tempfile::TempDir::with_prefix("unspool-chat-")?,
        copies: place.config.join("file-history").join(id),
    }))
}

/// The transcript: a new one, one to go on with, or a copy of one. One that nobody keeps goes on
/// in a copy.
fn record(
    world: &World,
    args: &ChatArgs,
    place: &Place,
    id: &str,
    passing: Option<&Passing>,
) -> Result<Record, Failure> {
    let folder = match passing {
        Some(passing) => passing.folder.path().to_owned(),
        None => place
            .config
            .join("projects")
            .join(project::slug(&place.project.display().to_string())),
    };
    let id = id.to_owned();
    let copies = args.fork_session || passing.is_some();
    let face = |session: String| Face {
        slug: Some(slug(words_of(&session))),
        session,
        version: format!(
            "unspool-{}.{}",
            env!("CARGO_PKG_VERSION_MAJOR"),
            env!("CARGO_PKG_VERSION_MINOR")
        ),
        entrypoint: if args.print { "sdk-cli" } else { "cli" }.to_owned(),
        agent: None,
    };
    let source = match (&args.resume, args.go_on) {
        (Some(session), _) => Some(resumed(world, session)?),
        (None, true) => Some(latest(world, &place.project)?),
        (None, false) => None,
    };
    let new = folder.join(format!("{id}.jsonl"));
    let occupied = || {
        Failure::failed(format!("there is a session {id} already"))
            .hint(format!("go on with it: `unspool chat --resume {id}`"))
    };
    match source {
        None if new.exists() => Err(occupied()),
        None => Ok(Record::new(&new, face(id), &place.project, args.durable)),
        Some(_) if copies && new.exists() => Err(occupied()),
        Some((path, _)) if copies => {
            let mut copy = Record::new(&new, face(id.clone()), &place.project, args.durable);
            copy.copy_from(&path)?;
            Ok(Record::resume(
                &new,
                face(id),
                &place.project,
                args.durable,
            )?)
        }
        Some((path, id)) => Ok(Record::resume(
            &path,
            face(id),
            &place.project,
            args.durable,
        )?),
    }
}

/// A number that an id stands for.
fn words_of(id: &str) -> u64 {
    let digits: String = id
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(15)
        .collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}

fn resumed(world: &World, session: &OsStr) -> Result<(PathBuf, String), Failure> {
    match world.target(Some(session))? {
        Target::Session(file) => Ok((file.path, file.id)),
        Target::Agent(_) => {
            Err(Failure::failed("a sub-agent cannot be gone on with").hint("name its session"))
        }
    }
}

fn latest(world: &World, here: &Path) -> Result<(PathBuf, String), Failure> {
    let found = world.found()?;
    let file = resolve::of_here(&found, here).ok_or_else(|| {
        Failure::nothing("there is no session of this directory to go on with")
            .hint("leave `--continue` out to begin one, or name one with `--resume`")
    })?;
    Ok((file.path.clone(), file.id.clone()))
}

/// Asks, prints, ends.
fn print(world: &World, args: &ChatArgs, opened: Opened, input: Input) -> Result<(), Failure> {
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
    input.feed(handle.remote());
    let mut last = Ok(());
    while let Ok(notice) = ends.recv() {
        last = outcome(&notice, &session, &model, variable);
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
    let again = format!("the conversation is kept: go on with `unspool chat --resume {session}`");
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
            Why::Budget => Err(Failure::nothing(
                "stopped: the budget is spent (`--max-budget-usd`)",
            )
            .hint(again)),
            Why::Interrupted => Err(Failure::nothing("it was stopped").hint(again)),
            Why::Hook(why) => Err(Failure::nothing(format!("a hook ended it: {why}")).hint(again)),
            Why::TooLong => Err(Failure::nothing("the answer did not fit").hint(again)),
            Why::NotCompacted(why) => {
                Err(Failure::nothing(format!("no summary could be made: {why}")).hint(again))
            }
        },
        _ => Ok(()),
    }
}

/// What went wrong with the API, and what to do about it.
fn explained(trouble: &Trouble, session: &str, model: &str, variable: &str) -> Failure {
    let again = format!("`unspool chat --resume {session}`");
    let hint = match (&trouble.kind, trouble.status()) {
        (_, Some(401 | 403)) => {
            format!("set {variable} to a key that is valid, then go on with {again}")
        }
        (_, Some(404)) => format!("name another with `--model`, and go on with {again}"),
        (_, Some(402)) => format!("see to the account, then go on with {again}"),
        (_, Some(429)) => format!("wait, then go on with {again}"),
        (_, Some(400 | 413)) => format!(
            "go on from a summary: {again} -p /compact; or from an earlier point: {again}, then `/rewind`; `unspool check {session}` looks at the session"
        ),
        (_, Some(_)) => format!("try later, with {again}"),
        (Kind::Certificate, None) => {
            "see whether ANTHROPIC_BASE_URL is right and this system has its certificates"
                .to_owned()
        }
        (_, None) => format!(
            "see whether the network and ANTHROPIC_BASE_URL are right, then go on with {again}"
        ),
    };
    Failure::nothing(told(trouble, model, variable)).hint(hint)
}

/// How long to wait for something that is piped in beside the prompt.
const PIPED: Duration = Duration::from_secs(3);

/// The prompt as one value.
fn said(text: &str) -> Value {
    Value::String(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_parted_outside_of_brackets() {
        let given = ["Read,Bash(git log, -1) Edit".to_owned(), "Write".to_owned()];
        assert_eq!(
            rules(&given),
            ["Read", "Bash(git log, -1)", "Edit", "Write"]
        );
    }

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
