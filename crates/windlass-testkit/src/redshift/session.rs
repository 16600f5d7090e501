//! One connection: statements of the client, checked and rewritten, and the answers of PostgreSQL.

use std::io;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::dialect::{self, Checked, Refusal};
use super::{State, copy};
use crate::proxy::wire::{self, Message};

/// The code of a startup packet that cancels a statement of another connection.
const CANCEL_REQUEST: u32 = 80_877_102;

pub(super) async fn run(mut client: TcpStream, state: &State) -> io::Result<()> {
    let mut server = TcpStream::connect(state.upstream).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    loop {
        let (packet, code) = wire::read_startup(&mut client).await?;
        if wire::ENCRYPTION_REQUESTS.contains(&code) {
            client.write_all(b"N").await?;
            continue;
        }
        server.write_all(&packet).await?;
        if code == CANCEL_REQUEST {
            return Ok(());
        }
        break;
    }
    log_in(&mut client, &mut server).await?;
    while let Some(message) = wire::read(&mut client).await? {
        match message.kind() {
            b'Q' => {
                let sql = message.text(0);
                let cut = state.see(&sql);
                if cut == Some(false) {
                    return Ok(());
                }
                let answer = carry_out(&mut server, state, &sql).await?;
                if cut == Some(true) {
                    return Ok(());
                }
                client.write_all(&answer).await?;
            }
            b'X' => return Ok(()),
            _ => {
                client.write_all(&error("FATAL", &only_simple())).await?;
                return Ok(());
            }
        }
    }
    Ok(())
}

fn only_simple() -> Refusal {
    Refusal::new("0A000", "this stand-in for Redshift accepts only the simple protocol")
}

/// Forwards the log-in until the server is ready.
async fn log_in(client: &mut TcpStream, server: &mut TcpStream) -> io::Result<()> {
    loop {
        let message = wire::read(server).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        client.write_all(&message.bytes).await?;
        let code = message.bytes.get(5..9).and_then(|code| code.try_into().ok());
        let asks = message.kind() == b'R'
            && code.is_some_and(|code| ![0, 12].contains(&u32::from_be_bytes(code)));
        if asks {
            let answer = wire::read(client).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
            server.write_all(&answer.bytes).await?;
        }
        if message.kind() == b'Z' {
            return Ok(());
        }
    }
}

/// Carries a message out and returns the whole answer.
async fn carry_out(server: &mut TcpStream, state: &State, sql: &str) -> io::Result<Vec<u8>> {
    let rewritten = match dialect::check(sql) {
        Ok(Checked::Statements(text)) => Ok(text),
        Ok(Checked::Copy(copy)) => {
            let columns = ask(server, &copy::columns_sql(&copy.table)).await?;
            match rows(&columns) {
                // The table does not exist, or the transaction has failed.
                None => return Ok(joined(&columns)),
                Some(columns) => copy::inserts(state.s3, copy, columns).await,
            }
        }
        Err(refusal) => Err(refusal),
    };
    // An error of PostgreSQL's own fails the transaction too.
    let text = rewritten.unwrap_or_else(|refusal| refusal.raised());
    Ok(joined(&ask(server, &text).await?))
}

/// Sends a query and returns the messages of its answer, up to the one that says that the server is ready.
async fn ask(server: &mut TcpStream, sql: &str) -> io::Result<Vec<Message>> {
    let length = u32::try_from(sql.len() + 5).map_err(io::Error::other)?;
    server.write_all(b"Q").await?;
    server.write_all(&length.to_be_bytes()).await?;
    server.write_all(sql.as_bytes()).await?;
    server.write_all(b"\0").await?;
    let mut messages = Vec::new();
    loop {
        let message = wire::read(server).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let is_last = message.kind() == b'Z';
        messages.push(message);
        if is_last {
            return Ok(messages);
        }
    }
}

/// The rows of an answer, or `None` if it is an error.
fn rows(messages: &[Message]) -> Option<Vec<Vec<String>>> {
    if messages.iter().any(|message| message.kind() == b'E') {
        return None;
    }
    let data = messages.iter().filter(|message| message.kind() == b'D');
    Some(data.map(|message| cells(&message.bytes[7..])).collect())
}

fn cells(mut body: &[u8]) -> Vec<String> {
    let mut cells = Vec::new();
    while let Some((length, rest)) = body.split_first_chunk::<4>() {
        let length = i32::from_be_bytes(*length).max(0) as usize;
        let (cell, rest) = rest.split_at(length.min(rest.len()));
        cells.push(String::from_utf8_lossy(cell).into_owned());
        body = rest;
    }
    cells
}

fn joined(messages: &[Message]) -> Vec<u8> {
    messages.iter().flat_map(|message| message.bytes.iter().copied()).collect()
}

/// An error message of the protocol.
fn error(severity: &str, refusal: &Refusal) -> Vec<u8> {
    let fields = format!("S{severity}\0C{}\0M{}\0\0", refusal.code, refusal.message);
    let length = u32::try_from(fields.len() + 4).unwrap_or(u32::MAX);
    [b"E".as_slice(), &length.to_be_bytes(), fields.as_bytes()].concat()
}
