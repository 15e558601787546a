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
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::Setting;
use crate::patient::Patient;

/// The head of a request must arrive within this time; so long may a connection be idle.
const HEAD: Duration = Duration::from_secs(10);

/// Connections at the same time, all together. Others are closed at once, so that those who
/// are here are not in the way of the rest of the program.
const CONNECTIONS: usize = 600;

/// How many ports are tried behind one that is taken.
const TRIED: u16 = 20;

/// The address that a request came in at.
#[derive(Clone, Copy, Debug)]
pub struct Local(pub SocketAddr);

/// Binds all sockets; the port is the same for all.
pub fn bind(setting: &Setting) -> io::Result<(Vec<TcpListener>, u16)> {
    let first = setting.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let listener = bind_first(first, setting)?;
    let port = listener.local_addr()?.port();
    let mut all = vec![listener];
    if setting.address.is_none() {
        // `localhost` may mean either. Machines without IPv6 have no second one.
        all.extend(open(IpAddr::V6(Ipv6Addr::LOCALHOST), port));
    }
    let all = all.into_iter().map(|listener| {
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    });
    Ok((all.collect::<io::Result<_>>()?, port))
}

fn bind_first(address: IpAddr, setting: &Setting) -> io::Result<std::net::TcpListener> {
    let wanted = open(address, setting.port);
    let taken = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse && setting.any_port;
    match wanted {
        Err(error) if taken(&error) => {}
        other => return other,
    }
    let near = (1..=TRIED).filter_map(|step| setting.port.checked_add(step));
    let mut near = near.filter_map(|port| open(address, port).ok());
    match near.next() {
        Some(listener) => Ok(listener),
        None => open(address, 0),
    }
}

fn open(address: IpAddr, port: u16) -> io::Result<std::net::TcpListener> {
    std::net::TcpListener::bind(SocketAddr::new(address, port))
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

/// Room for all connections.
pub fn places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(CONNECTIONS))
}

/// Answers on a socket until the runtime ends.
pub async fn serve(
    listener: TcpListener,
    routes: Router,
    tls: Option<TlsAcceptor>,
    places: Arc<Semaphore>,
) {
    loop {
        let (stream, _) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(_) => {
                // Too many files are open, usually: that passes.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        let (routes, tls) = (routes.clone(), tls.clone());
        tokio::spawn(async move {
            let _place = place;
            connection(stream, routes, tls).await;
        });
    }
}

async fn connection(stream: TcpStream, routes: Router, tls: Option<TlsAcceptor>) {
    let Ok(local) = stream.local_addr() else {
        return;
    };
    let _ = stream.set_nodelay(true);
    let routes = routes.layer(Extension(Local(local)));
    let stream = Patient::new(stream);
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
