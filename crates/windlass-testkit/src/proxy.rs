//! A proxy in front of a database that cuts connections at the moments that hurt.

mod faults;
mod mysql;
mod session;
mod statements;
mod wire;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use faults::{Cut, Faults, Moment};

/// Passes everything on until it is told to cut. Each armed cut happens once.
pub struct Proxy {
    addr: SocketAddr,
    faults: Arc<Faults>,
    sessions: Sessions,
    accepted: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

/// What the clients speak.
#[derive(Clone, Copy)]
enum Protocol {
    Postgres,
    Mysql,
}

type Sessions = Arc<Mutex<JoinSet<()>>>;

impl Proxy {
    /// Listens on a free port of 127.0.0.1 and passes connections on to PostgreSQL at `upstream`.
    pub async fn start(upstream: SocketAddr) -> Self {
        Self::of(Protocol::Postgres, upstream).await
    }

    /// As `start`, in front of MySQL or MariaDB.
    pub async fn start_mysql(upstream: SocketAddr) -> Self {
        Self::of(Protocol::Mysql, upstream).await
    }

    async fn of(protocol: Protocol, upstream: SocketAddr) -> Self {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("some port is free");
        let addr = listener.local_addr().expect("a listener knows its address");
        let faults = Arc::new(Faults::default());
        let sessions = Sessions::default();
        let accepted = Arc::new(AtomicUsize::new(0));
        let passed_on = (faults.clone(), sessions.clone(), accepted.clone());
        let accepting = tokio::spawn(accept(listener, protocol, upstream, passed_on));
        Self { addr, faults, sessions, accepted, accepting }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The same URL through the proxy, without TLS because the proxy reads what passes.
    pub fn url_via(&self, url: &str) -> String {
        let (scheme, rest) = url.split_once("://").expect("a URL has a scheme");
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let user = authority.rfind('@').map_or("", |at| &authority[..=at]);
        let next = if path.contains('?') { '&' } else { '?' };
        format!("{scheme}://{user}{}{path}{next}sslmode=disable", self.addr)
    }

    /// The next commit happens, but its client never hears of it: the ambiguous commit.
    pub fn cut_after_commit(&self) {
        self.faults.arm(Cut { moment: Moment::AfterCommit, of: None });
    }

    /// As `cut_after_commit`, for the next transaction that ran a statement containing `text`.
    pub fn cut_after_commit_of(&self, text: &str) {
        self.faults.arm(Cut { moment: Moment::AfterCommit, of: Some(text.to_owned()) });
    }

    /// The next commit never reaches the server, and its transaction is rolled back.
    pub fn cut_before_commit(&self) {
        self.faults.arm(Cut { moment: Moment::BeforeCommit, of: None });
    }

    /// As `cut_before_commit`, for the next transaction that ran a statement containing `text`.
    pub fn cut_before_commit_of(&self, text: &str) {
        self.faults.arm(Cut { moment: Moment::BeforeCommit, of: Some(text.to_owned()) });
    }

    /// Drops all present connections; new ones are taken.
    pub async fn cut_all(&self) {
        let mut sessions = {
            let mut sessions = self.sessions.lock().unwrap();
            forget_ended(&mut sessions);
            std::mem::take(&mut *sessions)
        };
        self.faults.count(sessions.len());
        sessions.shutdown().await;
    }

    /// From now on, so many of a hundred statements that contain `text` fail, by chance and the same
    /// in every run: not asked at all, cut in the middle of the answer, or refused by an error that
    /// is worth another try. MySQL only.
    pub fn fail_reads(&self, text: &str, percent: u8) {
        self.faults.fail_reads(text, percent);
    }

    /// How many such statements there were, and how many of them failed.
    pub fn reads(&self) -> (usize, usize) {
        self.faults.reads()
    }

    /// How many connections were opened to the proxy so far, also while the server was down.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }

    /// How many connections were cut so far.
    pub fn cuts(&self) -> usize {
        self.faults.cuts()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The sessions end with their set, of which the accepting task holds the other handle.
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    protocol: Protocol,
    upstream: SocketAddr,
    (faults, sessions, accepted): (Arc<Faults>, Sessions, Arc<AtomicUsize>),
) {
    while let Ok((client, _)) = listener.accept().await {
        accepted.fetch_add(1, Ordering::Relaxed);
        let faults = faults.clone();
        let mut sessions = sessions.lock().unwrap();
        forget_ended(&mut sessions);
        sessions.spawn(async move {
            // However a session ends, both its sides learn it from their closed connection.
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
