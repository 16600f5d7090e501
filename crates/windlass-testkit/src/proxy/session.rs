//! One proxied connection in the PostgreSQL protocol.

use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, BufWriter};
use tokio::net::TcpStream;

use super::faults::{Cut, Faults, Moment};
use super::statements::Statements;
use super::wire;

/// Forwards messages both ways until one side closes or a cut is made. Then both sides close.
pub(super) async fn run(
    mut client: TcpStream,
    upstream: SocketAddr,
    faults: &Faults,
) -> io::Result<()> {
    let mut server = TcpStream::connect(upstream).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    start_up(&mut client, &mut server).await?;

    // The cut whose commit was forwarded and whose answer the client must not get.
    let pending = Mutex::new(None);
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    tokio::select! {
        ended = pass_queries(from_client, to_server, faults, &pending) => ended,
        ended = pass_answers(from_server, to_client, faults, &pending) => ended,
    }
}

/// Forwards the startup packet. Refuses encryption, because the proxy could not read the messages.
async fn start_up(client: &mut TcpStream, server: &mut TcpStream) -> io::Result<()> {
    loop {
        let (packet, code) = wire::read_startup(client).await?;
        if !wire::ENCRYPTION_REQUESTS.contains(&code) {
            return server.write_all(&packet).await;
        }
        client.write_all(b"N").await?;
    }
}

async fn pass_queries(
    client: impl AsyncRead + Unpin,
    server: impl AsyncWrite + Unpin,
    faults: &Faults,
    pending: &Mutex<Option<Cut>>,
) -> io::Result<()> {
    let mut client = BufReader::new(client);
    let mut server = BufWriter::new(server);
    let mut statements = Statements::default();
    while let Some(message) = wire::read(&mut client).await? {
        faults.pause().await;
        if statements.see(&message) {
            let fits = |cut: &Cut| cut.of.as_ref().is_none_or(|text| statements.ran(text));
            match faults.take_if(fits) {
                Some(cut) if cut.moment == Moment::BeforeCommit => {
                    faults.count(1);
                    return Ok(());
                }
                Some(cut) => *pending.lock().unwrap() = Some(cut),
                None => {}
            }
        }
        server.write_all(&message.bytes).await?;
        if client.buffer().is_empty() {
            server.flush().await?;
        }
    }
    Ok(())
}

async fn pass_answers(
    server: impl AsyncRead + Unpin,
    client: impl AsyncWrite + Unpin,
    faults: &Faults,
    pending: &Mutex<Option<Cut>>,
) -> io::Result<()> {
    let mut server = BufReader::new(server);
    let mut client = BufWriter::new(client);
    while let Some(message) = wire::read(&mut server).await? {
        let tag = if message.kind() == b'C' { message.text(0) } else { String::new() };
        if tag == "COMMIT" && pending.lock().unwrap().take().is_some() {
            faults.count(1);
            return Ok(());
        }
        // The commit failed, so its outcome is not ambiguous. Cut the next one instead.
        if (tag == "ROLLBACK" || message.kind() == b'E')
            && let Some(cut) = pending.lock().unwrap().take()
        {
            faults.arm(cut);
        }
        client.write_all(&message.bytes).await?;
        if server.buffer().is_empty() {
            client.flush().await?;
        }
    }
    client.flush().await
}
