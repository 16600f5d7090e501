//! A stand-in for Amazon Redshift: a server in front of a real PostgreSQL that parses every statement, refuses what
//! Redshift refuses, does not enforce unique keys, and carries COPY out by reading a manifest and Parquet files from
//! moto.
//!
//! It accepts only the simple protocol. Isolation is serializable, as in Redshift.

mod copy;
mod dialect;
mod session;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::{Database, Moto};

/// A server on a free port of 127.0.0.1. It stops when it is dropped.
pub struct RedshiftServer {
    addr: SocketAddr,
    upstream_url: String,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

/// What all sessions share.
struct State {
    upstream: SocketAddr,
    s3: SocketAddr,
    statements: Mutex<Vec<String>>,
    cut: Mutex<Option<Cut>>,
}

/// A connection that is closed at a statement, once.
struct Cut {
    /// Statements that pass before it.
    passing: usize,
    /// Whether the statement is carried out, but not answered.
    after: bool,
}

/// The address of the server of a URL such as `postgres://user@127.0.0.1:5432/name`.
fn upstream(url: &str) -> SocketAddr {
    let authority = url.split('/').nth(2).expect("the URL has no host");
    let addr = authority.rsplit('@').next().unwrap_or_default();
    addr.parse().expect("the URL has no address")
}

impl RedshiftServer {
    /// Serves a database of PostgreSQL as if it was Redshift's, with the files of this endpoint.
    pub async fn start(database: &Database, s3: &Moto) -> RedshiftServer {
        let url = database.url().to_owned();
        let name = url.split('?').next().and_then(|url| url.rsplit('/').next()).unwrap_or_default();
        // A backslash escapes the next character in Redshift.
        let settings = [
            "standard_conforming_strings = off",
            "escape_string_warning = off",
            "default_transaction_isolation = 'serializable'",
        ];
        for setting in settings {
            database.run(&format!("ALTER DATABASE \"{name}\" SET {setting}")).await;
        }
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("failed to bind a port");
        let addr = listener.local_addr().expect("failed to read the port");
        let state = Arc::new(State {
            upstream: upstream(&url),
            s3: s3.addr(),
            statements: Mutex::default(),
            cut: Mutex::default(),
        });
        let accepting = tokio::spawn(accept(listener, state.clone()));
        RedshiftServer { addr, upstream_url: url, state, accepting }
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The URL of the database through this server.
    pub fn url(&self) -> String {
        let rest = self.upstream_url.split_once("://").expect("the URL has no scheme").1;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let user = authority.rfind('@').map_or("", |at| &authority[..=at]);
        let path = path.split('?').next().unwrap_or_default();
        format!("redshift://{user}{}{path}?sslmode=disable", self.addr)
    }

    /// Runs statements as a client of Redshift. Panics with the error of the first one that is refused.
    pub async fn run(&self, sql: &str) {
        let ran = self.try_run(sql).await;
        ran.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// Runs statements as a client of Redshift.
    ///
    /// # Errors
    /// The message of the first one that is refused.
    pub async fn try_run(&self, sql: &str) -> Result<(), String> {
        let url = self.url().replacen("redshift:", "postgres:", 1);
        let (client, connection) =
            tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("failed to connect");
        let connection = tokio::spawn(connection);
        let ran = client.batch_execute(sql).await;
        connection.abort();
        ran.map_err(|error| match error.as_db_error() {
            Some(refused) => refused.message().to_owned(),
            None => error.to_string(),
        })
    }

    /// The messages that it got since the last call. A message may have several statements.
    pub fn statements(&self) -> Vec<String> {
        std::mem::take(&mut self.state.statements.lock().unwrap())
    }

    /// Closes the connection instead of carrying out the message after this many.
    pub fn cut_before(&self, passing: usize) {
        *self.state.cut.lock().unwrap() = Some(Cut { passing, after: false });
    }

    /// The same, but carries the message out and does not answer.
    pub fn cut_after(&self, passing: usize) {
        *self.state.cut.lock().unwrap() = Some(Cut { passing, after: true });
    }

    /// Whether the last armed cut has happened.
    pub fn was_cut(&self) -> bool {
        self.state.cut.lock().unwrap().is_none()
    }
}

impl Drop for RedshiftServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl State {
    /// Records a message. `Some` if its connection is to be cut: whether after it is carried out.
    fn see(&self, sql: &str) -> Option<bool> {
        self.statements.lock().unwrap().push(sql.to_owned());
        let mut cut = self.cut.lock().unwrap();
        match &mut *cut {
            Some(Cut { passing: 0, .. }) => cut.take().map(|cut| cut.after),
            Some(cut) => {
                cut.passing -= 1;
                None
            }
            None => None,
        }
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    while let Ok((client, _)) = listener.accept().await {
        let state = state.clone();
        tokio::spawn(async move {
            // When a session ends, both sides see their connection close.
            let _ = session::run(client, &state).await;
        });
    }
}
