//! A load generator: POSTs over connections that are kept alive, and nothing else.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The bodies to send.
#[derive(Clone)]
pub(crate) struct Posts {
    bodies: Arc<[String]>,
}

impl Posts {
    /// Each line of a file is a body.
    pub(crate) fn read(lines: &Path) -> Result<Posts> {
        let text = std::fs::read_to_string(lines)?;
        Ok(Posts { bodies: text.split_terminator('\n').map(str::to_owned).collect() })
    }

    /// How long it takes to send all of them over so many connections, and to read the answers.
    pub(crate) async fn time(&self, port: u16, connections: usize) -> Result<Duration> {
        let next = Arc::new(AtomicUsize::new(0));
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..connections {
            tasks.spawn(self.clone().send(port, next.clone()));
        }
        while let Some(sent) = tasks.join_next().await {
            sent??;
        }
        Ok(begun.elapsed())
    }

    /// Sends what is next, until nothing is left.
    async fn send(self, port: u16, next: Arc<AtomicUsize>) -> Result<()> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        let (mut request, mut answer) = (String::new(), Vec::new());
        while let Some(body) = self.bodies.get(next.fetch_add(1, Ordering::Relaxed)) {
            request.clear();
            request.push_str("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n");
            request.push_str("Content-Type: application/json\r\nContent-Length: ");
            request.push_str(&body.len().to_string());
            request.push_str("\r\n\r\n");
            request.push_str(body);
            stream.write_all(request.as_bytes()).await?;
            answer.resize(head(&mut stream).await?, 0);
            stream.read_exact(&mut answer).await?;
        }
        Ok(())
    }
}

/// Reads the head of an answer, which must be a good one; the length of the body.
async fn head(stream: &mut BufReader<TcpStream>) -> Result<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    ensure!(line.starts_with("HTTP/1.1 200 "), "the service answers {line:?}");
    let mut length = None;
    while line.trim_end() != "" {
        line.clear();
        stream.read_line(&mut line).await?;
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = Some(value.trim().parse()?);
        }
    }
    length.context("the answer has no length")
}
