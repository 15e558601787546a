//! Sockets: which ones, how many at once, and for how long.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::ServerSettings;
use crate::connections::{Connection, ConnectionLimits, Connections};
use crate::write_timeout::WriteTimeout;

/// The head of a request must arrive within this time; so long may a connection be idle.
const HEAD: Duration = Duration::from_secs(5);

/// How many connections may wait to be taken in. The system may allow fewer.
const BACKLOG: u32 = 1024;

/// How long to wait for the system to have room for a connection again.
const FULL: Duration = Duration::from_millis(50);

/// How many ports are tried behind one that is taken.
const TRIED: u16 = 20;

/// The address that a request came in at.
#[derive(Clone, Copy, Debug)]
pub struct LocalAddress(pub SocketAddr);

/// Who sent a request.
#[derive(Clone)]
pub struct ConnectedPeer {
    /// Where from.
    pub address: SocketAddr,
    /// Over which connection.
    pub connection: Arc<Connection>,
}

/// Binds all sockets; the port is the same for all.
pub fn bind(setting: &ServerSettings) -> io::Result<(Vec<TcpListener>, u16)> {
    if !setting.any_port && setting.port != 0 {
        return bind_port(setting, setting.port);
    }
    let near = (0..=TRIED).filter_map(|step| setting.port.checked_add(step));
    let near = near.filter(|_| setting.port != 0);
    // Whichever port the system gives on one address may be taken on the other one.
    let given = std::iter::repeat_n(0, usize::from(TRIED));
    let mut bound = Err(io::ErrorKind::AddrInUse.into());
    for port in near.chain(given) {
        bound = bind_port(setting, port);
        let taken = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
        if !bound.as_ref().is_err_and(taken) {
            break;
        }
    }
    bound
}

fn bind_port(setting: &ServerSettings, port: u16) -> io::Result<(Vec<TcpListener>, u16)> {
    let first = setting.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let first = open(first, port)?;
    let port = first.local_addr()?.port();
    let mut all = vec![first];
    if setting.address.is_none() {
        // `localhost` may mean either, so nobody else may have the port on the other one.
        // Machines without IPv6 have no second one.
        match open(IpAddr::V6(Ipv6Addr::LOCALHOST), port) {
            Ok(second) => all.push(second),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            Err(_) => {}
        }
    }
    Ok((all, port))
}

fn open(address: IpAddr, port: u16) -> io::Result<TcpListener> {
    let socket = match address {
        IpAddr::V4(_) => TcpSocket::new_v4()?,
        IpAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A port whose last connections are still closing can be used again. Elsewhere the same
    // setting lets two programs share one port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::new(address, port))?;
    socket.listen(BACKLOG)
}

/// Reads what TLS needs.
pub fn tls((certificate, key): &(PathBuf, PathBuf)) -> io::Result<TlsAcceptor> {
    let named = |path: &PathBuf, why: &dyn std::fmt::Display| {
        io::Error::other(format!("{}: {why}", path.display()))
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|why| named(certificate, &why))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|why| named(key, &why))?;
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|why| named(certificate, &why))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// How many connections this process can have.
pub fn limits() -> ConnectionLimits {
    #[cfg(unix)]
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    let files = None;
    ConnectionLimits::within(files.unwrap_or(u64::MAX))
}

/// Answers on a socket until the runtime ends.
pub async fn serve(
    listener: TcpListener,
    routes: Router,
    tls: Option<TlsAcceptor>,
    connections: Arc<Connections>,
) {
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) if is_of_one(&error) => continue,
            Err(_) => {
                // Too many files are open, usually: strangers give theirs back.
                connections.close_oldest();
                tokio::time::sleep(FULL).await;
                continue;
            }
        };
        let Some((connection, file)) = connections.enter(address.ip()).await else {
            return;
        };
        let peer = ConnectedPeer {
            address,
            connection: Arc::clone(&connection),
        };
        let talk = talk(stream, peer, routes.clone(), tls.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = talk => {}
                () = connection.closed() => {}
            }
            drop(connection);
            drop(file);
        });
    }
}

/// Whether only the connection that was to be taken in is broken.
fn is_of_one(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

async fn talk(stream: TcpStream, peer: ConnectedPeer, routes: Router, tls: Option<TlsAcceptor>) {
    let Ok(local) = stream.local_addr() else {
        return;
    };
    let _ = stream.set_nodelay(true);
    let routes = routes
        .layer(Extension(LocalAddress(local)))
        .layer(Extension(peer));
    let stream = WriteTimeout::new(stream);
    match tls {
        None => speak(stream, routes).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(HEAD, tls.accept(stream)).await {
                speak(stream, routes).await;
            }
        }
    }
}

async fn speak(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, routes: Router) {
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    // Whoever hangs up in the middle is gone; there is nobody to tell.
    let _ = connection.await;
}
