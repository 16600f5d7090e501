//! A proxy in front of a database that cuts connections at chosen moments.

mod faults;
mod mysql;
mod session;
mod statements;
pub(crate) mod wire;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use faults::{Cut, Faults, Moment};

/// Forwards everything until it is told to cut. Each armed cut happens once.
pub struct Proxy {
    addr: SocketAddr,
    upstream: Upstream,
    faults: Arc<Faults>,
    sessions: Sessions,
    accepted: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

/// The protocol of the clients.
#[derive(Clone, Copy)]
enum Protocol {
    Postgres,
    Mysql,
}

type Sessions = Arc<Mutex<JoinSet<()>>>;

/// The server that new connections lead to.
type Upstream = Arc<Mutex<SocketAddr>>;

impl Proxy {
    /// Listens on a free port of 127.0.0.1 and forwards connections to the PostgreSQL server at `upstream`.
    pub async fn start(upstream: SocketAddr) -> Self {
        Self::of(Protocol::Postgres, upstream).await
    }

    /// The same for MySQL or MariaDB.
    pub async fn start_mysql(upstream: SocketAddr) -> Self {
        Self::of(Protocol::Mysql, upstream).await
    }

    async fn of(protocol: Protocol, upstream: SocketAddr) -> Self {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("failed to bind a port");
        let addr = listener.local_addr().expect("failed to read the port");
        let faults = Arc::new(Faults::default());
        let sessions = Sessions::default();
        let accepted = Arc::new(AtomicUsize::new(0));
        let upstream = Arc::new(Mutex::new(upstream));
        let passed_on = (faults.clone(), sessions.clone(), accepted.clone());
        let accepting = tokio::spawn(accept(listener, protocol, upstream.clone(), passed_on));
        Self { addr, upstream, faults, sessions, accepted, accepting }
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The same URL with the address of the proxy, without TLS because the proxy reads the messages.
    pub fn url_via(&self, url: &str) -> String {
        let (scheme, rest) = url.split_once("://").expect("the URL has no scheme");
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let user = authority.rfind('@').map_or("", |at| &authority[..=at]);
        let next = if path.contains('?') { '&' } else { '?' };
        format!("{scheme}://{user}{}{path}{next}sslmode=disable", self.addr)
    }

    /// Cuts the connection after the next commit, before the client gets the answer: an ambiguous commit.
    pub fn cut_after_commit(&self) {
        self.faults.arm(Cut { moment: Moment::AfterCommit, of: None });
    }

    /// The same for the next transaction that ran a statement containing `text`.
    pub fn cut_after_commit_of(&self, text: &str) {
        self.faults.arm(Cut { moment: Moment::AfterCommit, of: Some(text.to_owned()) });
    }

    /// Cuts the connection before the next commit reaches the server, which rolls the transaction back.
    pub fn cut_before_commit(&self) {
        self.faults.arm(Cut { moment: Moment::BeforeCommit, of: None });
    }

    /// The same for the next transaction that ran a statement containing `text`.
    pub fn cut_before_commit_of(&self, text: &str) {
        self.faults.arm(Cut { moment: Moment::BeforeCommit, of: Some(text.to_owned()) });
    }

    /// Closes all open connections. New ones are accepted.
    pub async fn cut_all(&self) {
        let mut sessions = {
            let mut sessions = self.sessions.lock().unwrap();
            forget_ended(&mut sessions);
            std::mem::take(&mut *sessions)
        };
        self.faults.count(sessions.len());
        sessions.shutdown().await;
    }

    /// From now on, new connections lead to this server. Open ones stay until they are cut.
    pub fn redirect(&self, upstream: SocketAddr) {
        *self.upstream.lock().unwrap() = upstream;
    }

    /// From now on, each message of a client arrives this much later. Zero ends it.
    pub fn delay(&self, delay: Duration) {
        self.faults.delay(delay);
    }

    /// From now on, `percent` of the statements that contain `text` fail, chosen by a seeded random sequence. They
    /// fail in turn in three ways: the server never gets the statement, the answer is cut in the middle, or the
    /// answer is a transient error. MySQL only.
    pub fn fail_reads(&self, text: &str, percent: u8) {
        self.faults.fail_reads(text, percent);
    }

    /// The number of such statements, and how many of them failed.
    pub fn reads(&self) -> (usize, usize) {
        self.faults.reads()
    }

    /// The number of connections that clients have opened, also while the server was down.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }

    /// The number of connections that were cut.
    pub fn cuts(&self) -> usize {
        self.faults.cuts()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The sessions end with their set; the accepting task holds the other reference to it.
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    protocol: Protocol,
    upstream: Upstream,
    (faults, sessions, accepted): (Arc<Faults>, Sessions, Arc<AtomicUsize>),
) {
    while let Ok((client, _)) = listener.accept().await {
        accepted.fetch_add(1, Ordering::Relaxed);
        let faults = faults.clone();
        let upstream = *upstream.lock().unwrap();
        let mut sessions = sessions.lock().unwrap();
        forget_ended(&mut sessions);
        sessions.spawn(async move {
            // When a session ends, both sides see their connection close.
            let _ = match protocol {
                Protocol::Postgres => session::run(client, upstream, &faults).await,
                Protocol::Mysql => mysql::run(client, upstream, &faults).await,
            };
        });
    }
}

fn forget_ended(sessions: &mut JoinSet<()>) {
    while sessions.try_join_next().is_some() {}
}
