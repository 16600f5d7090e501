//! One proxied connection in the MySQL protocol. Implements only what a proxy needs.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::faults::{Cut, FailedRead, Faults, Moment};
use super::statements::Statements;

/// Forwards packets both ways until one side closes or a cut is made. Then both sides close.
pub(super) async fn run(
    mut client: TcpStream,
    upstream: SocketAddr,
    faults: &Faults,
) -> io::Result<()> {
    let mut server = TcpStream::connect(upstream).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let asked = Mutex::new(Asked::default());
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    // Both tasks write to the client, but never at the same time: it waits for one answer at a time.
    let to_client = tokio::sync::Mutex::new(to_client);
    tokio::select! {
        ended = pass_queries(from_client, to_server, &to_client, faults, &asked) => ended,
        ended = pass_answers(from_server, &to_client, faults, &asked) => ended,
    }
}

/// The client's last request. It waits for each answer, so there is one request at a time.
#[derive(Default)]
struct Asked {
    /// The text of the statement whose id the next answer contains.
    preparing: Option<Arc<str>>,
    prepared: HashMap<u32, Arc<str>>,
    /// The cut whose commit was forwarded and whose answer the client must not get.
    pending: Option<Cut>,
    /// The number of packets after which the answer is cut.
    left: Option<usize>,
}

async fn pass_queries(
    mut client: impl AsyncRead + Unpin,
    mut server: impl AsyncWrite + Unpin,
    answers: &tokio::sync::Mutex<impl AsyncWrite + Unpin>,
    faults: &Faults,
    asked: &Mutex<Asked>,
) -> io::Result<()> {
    let mut statements = Statements::default();
    while let Some(packet) = read(&mut client).await? {
        faults.pause().await;
        let mut ran: Option<Arc<str>> = None;
        match (packet.number(), packet.body()) {
            (0, [QUERY, sql @ ..]) => ran = Some(String::from_utf8_lossy(sql).into()),
            (0, [PREPARE, sql @ ..]) => {
                let sql = String::from_utf8_lossy(sql).into();
                asked.lock().unwrap().preparing = Some(sql);
            }
            (0, [EXECUTE, a, b, c, d, ..]) => {
                let number = u32::from_le_bytes([*a, *b, *c, *d]);
                ran = asked.lock().unwrap().prepared.get(&number).cloned();
            }
            _ => {}
        }
        match ran.as_deref().and_then(|sql| faults.fails(sql)) {
            None => {}
            Some(FailedRead::Unasked) => {
                faults.count(1);
                return Ok(());
            }
            Some(FailedRead::CutShort(packets)) => {
                asked.lock().unwrap().left = Some(packets);
            }
            Some(FailedRead::Refused) => {
                answers.lock().await.write_all(&refusal()).await?;
                continue;
            }
        }
        let commits = ran.is_some_and(|sql| statements.run(sql));
        if commits {
            let fits = |cut: &Cut| cut.of.as_ref().is_none_or(|text| statements.ran(text));
            match faults.take_if(fits) {
                Some(cut) if cut.moment == Moment::BeforeCommit => {
                    faults.count(1);
                    return Ok(());
                }
                cut => asked.lock().unwrap().pending = cut,
            }
        }
        server.write_all(&packet.bytes).await?;
    }
    Ok(())
}

async fn pass_answers(
    mut server: impl AsyncRead + Unpin,
    client: &tokio::sync::Mutex<impl AsyncWrite + Unpin>,
    faults: &Faults,
    asked: &Mutex<Asked>,
) -> io::Result<()> {
    while let Some(packet) = read(&mut server).await? {
        {
            let mut asked = asked.lock().unwrap();
            if asked.left == Some(0) {
                faults.count(1);
                return Ok(());
            }
            asked.left = asked.left.map(|left| left - 1);
            if let Some(cut) = asked.pending.take() {
                if packet.body().first() == Some(&OK) {
                    faults.count(1);
                    return Ok(());
                }
                // The commit failed, so its outcome is not ambiguous. Cut the next one instead.
                faults.arm(cut);
            }
            if let (Some(sql), [OK, a, b, c, d, ..]) = (asked.preparing.take(), packet.body()) {
                asked.prepared.insert(u32::from_le_bytes([*a, *b, *c, *d]), sql);
            }
        }
        client.lock().await.write_all(&packet.bytes).await?;
    }
    Ok(())
}

/// The answer to a command with a transient error.
fn refusal() -> Vec<u8> {
    let body = b"\xff\xb5\x04#HY000Lock wait timeout exceeded; try restarting transaction";
    let mut bytes = vec![body.len() as u8, 0, 0, 1];
    bytes.extend_from_slice(body);
    bytes
}

/// The commands that contain or name a statement, and the first byte of a successful answer.
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const OK: u8 = 0x00;

/// A packet with its header.
struct Packet {
    bytes: Vec<u8>,
}

impl Packet {
    /// The sequence number in the exchange. A command has 0.
    fn number(&self) -> u8 {
        self.bytes[3]
    }

    fn body(&self) -> &[u8] {
        &self.bytes[4..]
    }
}

/// The next packet, or `None` at the end of the stream.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Packet>> {
    let mut bytes = vec![0];
    if stream.read(&mut bytes).await? == 0 {
        return Ok(None);
    }
    bytes.resize(4, 0);
    stream.read_exact(&mut bytes[1..]).await?;
    let length = usize::from(bytes[0]) | usize::from(bytes[1]) << 8 | usize::from(bytes[2]) << 16;
    bytes.resize(4 + length, 0);
    stream.read_exact(&mut bytes[4..]).await?;
    Ok(Some(Packet { bytes }))
}
