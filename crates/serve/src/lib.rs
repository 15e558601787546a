//! The dashboard and its API, on this machine only.
//!
//! [`start`] binds, and from then on answers on threads of its own. What is answered comes from
//! an [`Answers`], which knows sessions; what changes, from a [`Live`] loop. Here stand only
//! HTTP and who may ask ([`guard`]).

mod answers;
mod connections;
mod events;
#[cfg(test)]
mod flood;
mod guard;
mod hub;
mod listen;
#[cfg(test)]
mod load;
mod openapi;
mod page;
mod patient;
mod peer_owner;
mod routes;
mod secret;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use unspool_live::Live;

pub use answers::{
    Answer, Answers, ContextAsk, ExportAsk, FindAsk, ItemsAsk, Kind, Refused, SearchAsk,
    SessionsAsk, Thread, TimelineAsk, TrimAsk, TurnsAsk, UsageAsk,
};

use crate::guard::Guard;
use crate::hub::Hub;
use crate::secret::Keys;

/// Where to listen, and how.
#[derive(Clone, Debug)]
pub struct Setting {
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
pub struct Running {
    /// Where the dashboard is, with the token that opens it.
    pub link: String,
    /// The port it listens on.
    pub port: u16,
    keys: Arc<Keys>,
    origin: String,
    stop: watch::Sender<bool>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Running {
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

impl Drop for Running {
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
struct State {
    answers: Arc<dyn Answers>,
    hub: Arc<Hub>,
    guard: Guard,
    keys: Arc<Keys>,
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
pub fn start(setting: &Setting, answers: Arc<dyn Answers>, live: Live) -> io::Result<Running> {
    begin(setting, answers, Hub::start(&live)?)
}

fn begin(setting: &Setting, answers: Arc<dyn Answers>, hub: Arc<Hub>) -> io::Result<Running> {
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
    let keys = Arc::new(Keys::new()?);
    let scheme = if tls.is_some() { "https" } else { "http" };
    let host = match setting.address {
        Some(address) if !address.is_unspecified() => address,
        Some(IpAddr::V6(_)) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        _ => IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    let origin = format!("{scheme}://{}", SocketAddr::new(host, port));
    let (stop, stopped) = watch::channel(false);
    let state = Arc::new(State {
        answers,
        hub,
        guard: Guard::new(scheme, port, &setting.names),
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
    Ok(Running {
        link: format!("{origin}/#token={}", keys.token()),
        port,
        keys,
        origin,
        stop,
        runtime: Some(runtime),
    })
}
