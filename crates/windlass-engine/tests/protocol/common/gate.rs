//! A way to a server that can be shut: whoever connects meanwhile is taken in, and waits.

use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A gate in front of PostgreSQL, shut until it is opened.
pub(crate) struct Gate {
    addr: SocketAddr,
    open: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Gate {
    pub(crate) async fn shut(upstream: SocketAddr) -> Gate {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let open = watch::Sender::new(false);
        let opened = open.subscribe();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, upstream, opened.clone()));
            }
        });
        Gate { addr, open, accepting }
    }

    /// The same URL through the gate.
    pub(crate) fn url_via(&self, url: &str, upstream: SocketAddr) -> String {
        url.replace(&upstream.to_string(), &self.addr.to_string())
    }

    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn pass(mut client: TcpStream, upstream: SocketAddr, mut opened: watch::Receiver<bool>) {
    if opened.wait_for(|open| *open).await.is_err() {
        return;
    }
    let mut server = TcpStream::connect(upstream).await.unwrap();
    // However it ends, both sides learn it from their closed connection.
    let _ = copy_bidirectional(&mut client, &mut server).await;
}
