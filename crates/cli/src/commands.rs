//! One file per command: find, compute, show. A rule about sessions does not belong here.

pub mod agents;
pub mod archive;
pub mod browse;
pub mod chat;
pub mod check;
pub mod clone;
pub mod context;
pub mod daemon;
pub mod delete;
pub mod export;
pub mod files;
pub mod hook;
pub mod index;
pub mod info;
pub mod log;
pub mod ls;
pub mod merge;
pub mod messages;
pub mod move_sessions;
pub mod prices;
pub mod redact;
pub mod rename;
pub mod repair;
pub mod restore;
pub mod scan;
pub mod schema;
pub mod search;
pub mod send;
pub mod serve;
pub mod show;
pub mod sql;
pub mod status;
pub mod tag;
pub mod tree;
pub mod turns;
pub mod undo;
pub mod usage;
pub mod watch;

use jiff::tz::TimeZone;
use unspool_model::view::client_profile::ClientProfile;
use unspool_store::dirs;

use crate::app_dirs::AppDirs;
use crate::args::{CliArgs, Command, GlobalArgs};
use crate::command_context::CommandContext;
use crate::demo::DemoSessions;
use crate::failure::CommandFailure;
use crate::home_folder::home_folder;
use crate::ui::TerminalUi;
use crate::zone_file;

/// Does what was asked.
pub fn run(arguments: CliArgs) -> Result<(), CommandFailure> {
    // Before anything that can fail: the client must not feel it.
    if let Some(Command::Hook(args)) = &arguments.command
        && args.action.is_none()
    {
        return hook::run_hook(&arguments.global, args);
    }
    let world = build_context(&arguments.global)?;
    match arguments.command {
        None => browse::run(world),
        Some(Command::Ls(args)) => ls::run(&world, &args),
        Some(Command::Show(args)) => show::run(&world, &args),
        Some(Command::Turns(args)) => turns::run(&world, &args),
        Some(Command::Info(args)) => info::run(&world, &args),
        Some(Command::Messages(args)) => messages::run(&world, &args),
        Some(Command::Tree(args)) => tree::run(&world, &args),
        Some(Command::Agents(args)) => agents::run(&world, &args),
        Some(Command::Files(args)) => files::run(&world, &args),
        Some(Command::Restore(args)) => restore::run(&world, &args),
        Some(Command::Context(args)) => context::run(&world, &args),
        Some(Command::Check(args)) => check::run(&world, &args),
        Some(Command::Export(args)) => export::run(world, &args),
        Some(Command::Clone(args)) => clone::run(&world, &args),
        Some(Command::Scan(args)) => scan::run(&world, &args),
        Some(Command::Repair(args)) => repair::run(&world, &args),
        Some(Command::Merge(args)) => merge::run(&world, &args),
        Some(Command::Redact(args)) => redact::run(&world, &args),
        Some(Command::Send(args)) => send::run(&world, &args),
        Some(Command::Search(args)) => search::run(&world, &args),
        Some(Command::Usage(args)) => usage::run(&world, &args),
        Some(Command::Prices(args)) => prices::run(&world, &args),
        Some(Command::Move(args)) => move_sessions::run(&world, &args),
        Some(Command::Sql(args)) => sql::run(&world, &args),
        Some(Command::Index(args)) => index::run(&world, &args),
        Some(Command::Chat(args)) => chat::run(world, &args),
        Some(Command::Hook(args)) => match &args.action {
            Some(action) => hook::run(&world, action),
            None => Ok(()),
        },
        Some(Command::Serve(args)) => serve::run(world, &args),
        Some(Command::Rename(args)) => rename::run(&world, &args),
        Some(Command::Tag(args)) => tag::run(&world, &args),
        Some(Command::Delete(args)) => delete::run(&world, &args),
        Some(Command::Archive(args)) => archive::run(&world, &args),
        Some(Command::Undo(args)) => undo::run(&world, &args),
        Some(Command::Log(args)) => log::run(&world, &args),
        Some(Command::Status(args)) => status::run(&world, &args),
        Some(Command::Watch(args)) => watch::run(&world, &args),
        Some(Command::Daemon(args)) => daemon::run(world, &args),
        Some(Command::Schema(args)) => schema::run(&world, &args),
    }
}

/// Our own folders.
pub fn find_app_dirs() -> Result<AppDirs, CommandFailure> {
    AppDirs::places(|name| std::env::var_os(name), home_folder().as_deref())
}

/// The only place that reads the environment for all commands.
pub fn build_context(global: &GlobalArgs) -> Result<CommandContext, CommandFailure> {
    let profile = match &global.claude_version {
        None => ClientProfile::NEWEST,
        Some(version) => ClientProfile::for_version(version).ok_or_else(|| {
            CommandFailure::failed(format!("`{version}` is not a version"))
                .hint("use a version such as `2.1.45`, or `strict`")
        })?,
    };
    let ui = TerminalUi::new(
        global.json,
        global.quiet,
        global.verbose,
        global.color,
        zone(global)?,
    )
    .revealing(global.reveal);
    let config = std::env::var_os("CLAUDE_CONFIG_DIR").filter(|value| !value.is_empty());
    let home = home_folder();
    let own = find_app_dirs()?;
    own.check()?;
    if own.is_nowhere() && !global.demo {
        ui.warn("no home directory, so no caches and no undo history are saved: set HOME or UNSPOOL_HOME");
    }
    let mut world = CommandContext {
        ui,
        own,
        dirs: dirs::config_dirs(&global.claude_dir, config.as_deref(), home.as_deref())?,
        home,
        named: !global.claude_dir.is_empty() || config.is_some(),
        here: std::env::current_dir().ok(),
        profile,
        reveal: global.reveal,
        demo: None,
    };
    if global.demo {
        world.use_demo()?;
    }
    Ok(world)
}

impl CommandContext {
    /// Puts the bundled recordings in the place of the sessions of this machine.
    pub fn use_demo(&mut self) -> Result<(), CommandFailure> {
        let demo = DemoSessions::unpack()?;
        self.dirs = vec![demo.path().to_owned()];
        self.named = true;
        self.here = None;
        self.demo = Some(demo);
        Ok(())
    }
}

fn zone(global: &GlobalArgs) -> Result<TimeZone, CommandFailure> {
    match &global.timezone {
        None => Ok(zone_file::system().unwrap_or_else(TimeZone::system)),
        Some(name) => zone_file::named(name)
            .map_or_else(|| TimeZone::get(name), Ok)
            .map_err(|_| {
                CommandFailure::failed(format!("`{name}` is not a time zone"))
                    .hint("use a name such as `Europe/Berlin` or `UTC`")
            }),
    }
}
