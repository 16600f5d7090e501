//! One connection through the proxy in MySQL's protocol: as much of it as a proxy must know.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::faults::{Cut, Faults, Moment};
use super::statements::Statements;

/// Passes packets both ways until one side closes or a cut is made; both sides close then.
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
    tokio::select! {
        ended = pass_queries(from_client, to_server, faults, &asked) => ended,
        ended = pass_answers(from_server, to_client, faults, &asked) => ended,
    }
}

/// What the client asked last: it waits for each answer, so there is one question at a time.
#[derive(Default)]
struct Asked {
    /// The text whose number the next answer gives.
    preparing: Option<Arc<str>>,
    prepared: HashMap<u32, Arc<str>>,
    /// The cut whose commit was passed on and whose answer is to be kept from the client.
    pending: Option<Cut>,
}

async fn pass_queries(
    mut client: impl AsyncRead + Unpin,
    mut server: impl AsyncWrite + Unpin,
    faults: &Faults,
    asked: &Mutex<Asked>,
) -> io::Result<()> {
    let mut statements = Statements::default();
    while let Some(packet) = read(&mut client).await? {
        let commits = match (packet.number(), packet.body()) {
            (0, [QUERY, sql @ ..]) => statements.run(String::from_utf8_lossy(sql).into()),
            (0, [PREPARE, sql @ ..]) => {
                let sql = String::from_utf8_lossy(sql).into();
                asked.lock().unwrap().preparing = Some(sql);
                false
            }
            (0, [EXECUTE, a, b, c, d, ..]) => {
                let number = u32::from_le_bytes([*a, *b, *c, *d]);
                let sql = asked.lock().unwrap().prepared.get(&number).cloned();
                sql.is_some_and(|sql| statements.run(sql))
            }
            _ => false,
        };
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
    mut client: impl AsyncWrite + Unpin,
    faults: &Faults,
    asked: &Mutex<Asked>,
) -> io::Result<()> {
    while let Some(packet) = read(&mut server).await? {
        {
            let mut asked = asked.lock().unwrap();
            if let Some(cut) = asked.pending.take() {
                if packet.body().first() == Some(&OK) {
                    faults.count(1);
                    return Ok(());
                }
                // The commit failed, so there is nothing ambiguous about it: the next one is cut.
                faults.arm(cut);
            }
            if let (Some(sql), [OK, a, b, c, d, ..]) = (asked.preparing.take(), packet.body()) {
                asked.prepared.insert(u32::from_le_bytes([*a, *b, *c, *d]), sql);
            }
        }
        client.write_all(&packet.bytes).await?;
    }
    Ok(())
}

/// The commands that carry or name a statement, and what an answer without an error begins with.
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const OK: u8 = 0x00;

/// One packet, with its header, as it is passed on.
struct Packet {
    bytes: Vec<u8>,
}

impl Packet {
    /// Its number in the exchange; a command is the first.
    fn number(&self) -> u8 {
        self.bytes[3]
    }

    fn body(&self) -> &[u8] {
        &self.bytes[4..]
    }
}

/// The next packet, or `None` where the stream ends.
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
