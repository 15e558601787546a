//! The dashboard and its API, on this machine only.
//!
//! [`start`] binds, and from then on answers on threads of its own. What is answered comes from
//! a [`DashboardApi`], which knows sessions; what changes, from a [`LiveSessions`] loop. Here stand only
//! HTTP and who may ask ([`guard`]).

mod connections;
mod credentials;
mod dashboard_api;
mod event_broadcast;
mod event_stream;
#[cfg(test)]
mod flood_tests;
mod listen;
#[cfg(test)]
mod load_tests;
mod openapi;
mod page_files;
mod peer_owner;
mod request_guard;
mod routes;
mod write_timeout;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use unspool_live::LiveSessions;

pub use dashboard_api::{
    ContextQuery, DashboardApi, DashboardError, DashboardResponse, ExportQuery, FindQuery,
    ItemsQuery, ResponseKind, SearchSessionsQuery, SessionsQuery, ThreadQuery, TimelineQuery,
    TrimQuery, TurnsQuery, UsageQuery,
};

use crate::credentials::ServerCredentials;
use crate::event_broadcast::EventBroadcast;
use crate::request_guard::RequestGuard;

/// Where to listen, and how.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The address; `None` for both loopback addresses.
    pub address: Option<IpAddr>,
    /// The port; 0 for any.
    pub port: u16,
    /// Whether a port that is taken may be exchanged for another one.
    pub any_port: bool,
    /// Names by which others reach this machine, where that is allowed.
    pub names: Vec<String>,
    /// Certificate and key for TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The version of the program.
    pub version: String,
}

/// A server that answers until it is dropped or stopped.
pub struct RunningServer {
    /// Where the dashboard is, with the token that opens it.
    pub link: String,
    /// The port it listens on.
    pub port: u16,
    keys: Arc<ServerCredentials>,
    origin: String,
    stop: watch::Sender<bool>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl RunningServer {
    /// A link that opens the dashboard once, soon: for command lines, which others may read.
    pub fn ticket(&self) -> io::Result<String> {
        Ok(format!("{}/#token={}", self.origin, self.keys.ticket()?))
    }

    /// Waits for Ctrl-C or a polite end from outside.
    pub fn wait(&self) -> io::Result<()> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(ended()),
            None => Ok(()),
        }
    }

    /// Ends it; answers that are under way are given up.
    pub fn stop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(LAST);
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(unix)]
async fn ended() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut polite = signal(SignalKind::terminate())?;
    let mut gone = signal(SignalKind::hangup())?;
    tokio::select! {
        typed = tokio::signal::ctrl_c() => typed,
        _ = polite.recv() => Ok(()),
        _ = gone.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn ended() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// What every request may need.
struct ServerState {
    answers: Arc<dyn DashboardApi>,
    hub: Arc<EventBroadcast>,
    guard: RequestGuard,
    keys: Arc<ServerCredentials>,
    version: String,
    began: Instant,
    heavy: tokio::sync::Semaphore,
    stop: watch::Receiver<bool>,
}

/// How long those who are being answered are waited for at the end.
const LAST: Duration = Duration::from_millis(300);

/// How many answers may be worked out at the same time that take all there is.
const HEAVY: usize = 2;

/// Threads that work out answers.
const WORKERS: usize = 64;

/// Binds and answers.
pub fn start(
    setting: &ServerSettings,
    answers: Arc<dyn DashboardApi>,
    live: LiveSessions,
) -> io::Result<RunningServer> {
    begin(setting, answers, EventBroadcast::start(&live)?)
}

fn begin(
    setting: &ServerSettings,
    answers: Arc<dyn DashboardApi>,
    hub: Arc<EventBroadcast>,
) -> io::Result<RunningServer> {
    let tls = setting.tls.as_ref().map(listen::tls).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(WORKERS)
        .thread_name("serve")
        .enable_all()
        .build()?;
    let inside = runtime.enter();
    let (sockets, port) = listen::bind(setting)?;
    drop(inside);
    let keys = Arc::new(ServerCredentials::new()?);
    let scheme = if tls.is_some() { "https" } else { "http" };
    let host = match setting.address {
        Some(address) if !address.is_unspecified() => address,
        Some(IpAddr::V6(_)) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        _ => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    let origin = format!("{scheme}://{}", SocketAddr::new(host, port));
    let (stop, stopped) = watch::channel(false);
    let state = Arc::new(ServerState {
        answers,
        hub,
        guard: RequestGuard::new(scheme, port, &setting.names),
        keys: Arc::clone(&keys),
        version: setting.version.clone(),
        began: Instant::now(),
        heavy: tokio::sync::Semaphore::new(HEAVY),
        stop: stopped,
    });
    let limits = listen::limits();
    let routes = routes::routes(state, limits.listeners());
    let connections = connections::Connections::new(limits);
    for socket in sockets {
        let (routes, tls) = (routes.clone(), tls.clone());
        runtime.spawn(listen::serve(socket, routes, tls, Arc::clone(&connections)));
    }
    Ok(RunningServer {
        link: format!("{origin}/#token={}", keys.token()),
        port,
        keys,
        origin,
        stop,
        runtime: Some(runtime),
    })
}
