//! A TCP proxy that can block: a client whose message is blocked waits, as a process does that the machine has
//! suspended at that moment.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::wait::eventually;

/// The longest time until a client reaches the gate. Generous, for machines under load.
const PATIENCE: Duration = Duration::from_secs(100);

/// A proxy in front of an unencrypted server. It blocks until it is opened.
pub struct Gate {
    addr: SocketAddr,
    upstream: SocketAddr,
    open: watch::Sender<bool>,
    held: watch::Sender<usize>,
    accepting: JoinHandle<()>,
}

impl Gate {
    /// Blocks every connection.
    pub async fn shut(upstream: SocketAddr) -> Gate {
        Gate::before(upstream, "").await
    }

    /// Blocks a connection at a message that contains this text, and forwards everything else.
    pub async fn before(upstream: SocketAddr, text: &str) -> Gate {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("failed to bind a port");
        let addr = listener.local_addr().expect("failed to read the port");
        let (open, held) = (watch::Sender::new(false), watch::Sender::new(0));
        let (opened, holding, text) = (open.subscribe(), held.clone(), Arc::from(text));
        let accepting = tokio::spawn(async move {
            let mut sessions = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let text = Arc::clone(&text);
                sessions.spawn(pass(client, upstream, text, opened.clone(), holding.clone()));
            }
        });
        Gate { addr, upstream, open, held, accepting }
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The same URL with the address of the gate.
    pub fn url_via(&self, url: &str) -> String {
        url.replace(&self.upstream.to_string(), &self.addr.to_string())
    }

    /// Waits until a client is blocked.
    pub async fn reached(&self) {
        eventually("a client is blocked at the gate", PATIENCE, async || *self.held.borrow() > 0)
            .await;
    }

    /// Forwards everything from now on, including what was blocked.
    pub fn open(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// When a session ends, both sides see their connection close.
async fn pass(
    client: TcpStream,
    upstream: SocketAddr,
    text: Arc<str>,
    mut open: watch::Receiver<bool>,
    held: watch::Sender<usize>,
) -> io::Result<()> {
    if text.is_empty() {
        held.send_modify(|held| *held += 1);
        if open.wait_for(|open| *open).await.is_err() {
            return Ok(());
        }
    }
    let server = TcpStream::connect(upstream).await?;
    server.set_nodelay(true)?;
    client.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let there = async {
        let mut message = Vec::with_capacity(1 << 16);
        while from_client.read_buf(&mut message).await? > 0 {
            if !*open.borrow() && has(&message, &text) {
                held.send_modify(|held| *held += 1);
                while !*open.borrow() {
                    tokio::select! {
                        _ = open.changed() => {}
                        // The client has died; close the connection to the server too.
                        more = from_client.read_buf(&mut message) => if more? == 0 { return Ok(()) },
                    }
                }
            }
            to_server.write_all(&message).await?;
            message.clear();
        }
        Ok(())
    };
    tokio::select! {
        ended = there => ended,
        ended = copy(&mut from_server, &mut to_client) => ended.map(drop),
    }
}

fn has(message: &[u8], text: &str) -> bool {
    message.windows(text.len()).any(|at| at == text.as_bytes())
}
