//! `serve`: the dashboard, on this machine.

use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::Args;
use unspool_live::LiveSessions;
use unspool_serve::{RunningServer, ServerSettings};

use crate::command_context::CommandContext;
use crate::dashboard_answers::DashboardBackend;
use crate::failure::CommandFailure;
use crate::live;
use crate::notify;

/// Arguments of `serve`.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  unspool serve --open                  open the dashboard in the browser
  unspool serve --port 0                use any free port
  unspool serve --listen 192.168.1.5 --allow-remote --tls-cert c.pem --tls-key k.pem

Prints one line: the link that opens the dashboard. Anyone with the link can read all sessions of
this machine. It is valid until the server stops, and only on this machine unless --allow-remote
is given. API clients send the token as `Authorization: Bearer TOKEN`.")]
pub struct ServeArgs {
    /// Port to listen on [default: 7717, else the next free one]
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,

    /// Open the dashboard in the browser
    #[arg(long)]
    pub open: bool,

    /// Address to listen on [default: loopback only]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<IpAddr>,

    /// Allow connections from other machines (with --listen)
    #[arg(long, requires = "listen")]
    pub allow_remote: bool,

    /// Host name to accept requests for (can be repeated)
    #[arg(long, value_name = "NAME", requires = "allow_remote")]
    pub host: Vec<String>,

    /// TLS certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// TLS private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
}

/// The usual port.
const PORT: u16 = 7717;

/// Serves the dashboard until somebody stops it.
pub fn run(world: CommandContext, args: &ServeArgs) -> Result<(), CommandFailure> {
    let setting = setting(args)?;
    let live = live::start(&world)?;
    let _notifier = notify::start(&world, &live)?;
    let remote = args.listen.filter(|address| !address.is_loopback());
    if let (Some(address), None) = (remote, &setting.tls) {
        world.ui.warn(&format!(
            "the connection to {address} is not encrypted: use --tls-cert and --tls-key"
        ));
    }
    let mut out = world.ui.out();
    let answers = Arc::new(DashboardBackend::new(world, live.clone()));
    let running = unspool_serve::start(&setting, answers, live);
    let running = running.map_err(|why| failed(args, &why))?;
    writeln!(out, "{}", running.link)?;
    out.flush()?;
    drop(out);
    if args.open {
        open(&running);
    }
    Ok(running.wait()?)
}

/// Serves the dashboard beside something else, at the usual place.
pub fn beside(world: CommandContext, live: LiveSessions) -> std::io::Result<RunningServer> {
    let setting = ServerSettings {
        address: None,
        port: PORT,
        any_port: true,
        names: Vec::new(),
        tls: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    unspool_serve::start(
        &setting,
        Arc::new(DashboardBackend::new(world, live.clone())),
        live,
    )
}

fn setting(args: &ServeArgs) -> Result<ServerSettings, CommandFailure> {
    let remote = args.listen.filter(|address| !address.is_loopback());
    if let Some(address) = remote.filter(|_| !args.allow_remote) {
        return Err(CommandFailure::failed(format!(
            "{address} is reachable from other machines, and sessions contain secrets"
        ))
        .hint("add `--allow-remote` to allow this"));
    }
    Ok(ServerSettings {
        address: args.listen,
        port: args.port.unwrap_or(PORT),
        any_port: args.port.is_none(),
        names: args.host.clone(),
        tls: args.tls_cert.clone().zip(args.tls_key.clone()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

fn failed(args: &ServeArgs, why: &std::io::Error) -> CommandFailure {
    let port = args.port.unwrap_or(PORT);
    match why.kind() {
        std::io::ErrorKind::AddrInUse => {
            CommandFailure::failed(format!("port {port} is already in use"))
                .hint("choose another with `--port`")
        }
        std::io::ErrorKind::PermissionDenied => {
            CommandFailure::failed(format!("no permission to use port {port}: {why}"))
                .hint("choose one above 1024 with `--port`")
        }
        _ => CommandFailure::failed(format!("cannot start the dashboard: {why}")),
    }
}

/// Opens the browser. Others may see what programs are started with, so the link is good once.
fn open(running: &RunningServer) {
    let Ok(link) = running.ticket() else {
        return;
    };
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    let mut command = Command::new(program);
    command
        .arg(link)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Ok(mut child) = command.spawn() {
        // It must not stay as a zombie.
        std::thread::spawn(move || child.wait());
    }
}
