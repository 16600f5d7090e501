//! A way to a server that can be shut: who sends what is held waits there, as a process that the
//! machine has stopped at just that moment would.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::wait::eventually;

/// How long somebody may take to come to the gate; generous, for machines under load.
const PATIENCE: Duration = Duration::from_secs(100);

/// A gate in front of a server whose connections are not encrypted, shut until it is opened.
pub struct Gate {
    addr: SocketAddr,
    upstream: SocketAddr,
    open: watch::Sender<bool>,
    held: watch::Sender<usize>,
    accepting: JoinHandle<()>,
}

impl Gate {
    /// Holds whoever connects.
    pub async fn shut(upstream: SocketAddr) -> Gate {
        Gate::before(upstream, "").await
    }

    /// Holds who sends a message with this text, and lets everything else pass.
    pub async fn before(upstream: SocketAddr, text: &str) -> Gate {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let addr = listener.local_addr().expect("a listener knows its address");
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

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The same URL through the gate.
    pub fn url_via(&self, url: &str) -> String {
        url.replace(&self.upstream.to_string(), &self.addr.to_string())
    }

    /// Waits until somebody is held.
    pub async fn reached(&self) {
        eventually("somebody is held at the gate", PATIENCE, async || *self.held.borrow() > 0)
            .await;
    }

    /// Lets everybody pass from now on: what was held goes on its way, however late.
    pub fn open(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// However a session ends, both its sides learn it from their closed connection.
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
                        // Whoever sent it is dead, and the server is to know.
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
