//! A load generator that sends POSTs over kept-alive connections. It only writes request bytes and reads answer
//! bytes, so that it takes little CPU from the server that it measures.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The request bodies and their common head.
#[derive(Clone)]
pub(crate) struct Posts {
    head: Arc<str>,
    bodies: Arc<[String]>,
}

/// The result of a run.
pub(crate) struct Sent {
    /// From the first request to the last answer.
    pub(crate) took: Duration,
    /// The duration of each answer, sorted.
    pub(crate) each: Vec<Duration>,
}

impl Posts {
    /// One body per line of a file.
    pub(crate) fn read(lines: &Path) -> Result<Posts> {
        let text = std::fs::read_to_string(lines)?;
        let bodies = text.split_terminator('\n').map(str::to_owned).collect();
        Ok(Posts { head: head("/", None).into(), bodies })
    }

    /// The same body `times` times, sent with this token.
    pub(crate) fn of(path: &str, token: &str, body: &str, times: usize) -> Posts {
        let bodies = vec![body.to_owned(); times].into();
        Posts { head: head(path, Some(token)).into(), bodies }
    }

    /// Sends all bodies over `connections` connections and reads the answers.
    pub(crate) async fn send(&self, port: u16, connections: usize) -> Result<Sent> {
        let next = Arc::new(AtomicUsize::new(0));
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..connections {
            tasks.spawn(self.clone().send_next(port, next.clone()));
        }
        let mut each = Vec::new();
        while let Some(sent) = tasks.join_next().await {
            each.extend(sent??);
        }
        each.sort();
        Ok(Sent { took: begun.elapsed(), each })
    }

    /// Sends the next body until none is left.
    async fn send_next(self, port: u16, next: Arc<AtomicUsize>) -> Result<Vec<Duration>> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        let (mut request, mut answer) = (String::new(), Vec::new());
        let mut each = Vec::new();
        while let Some(body) = self.bodies.get(next.fetch_add(1, Ordering::Relaxed)) {
            request.clear();
            request.push_str(&self.head);
            request.push_str(&body.len().to_string());
            request.push_str("\r\n\r\n");
            request.push_str(body);
            let begun = Instant::now();
            stream.write_all(request.as_bytes()).await?;
            answer.resize(read_head(&mut stream).await?, 0);
            stream.read_exact(&mut answer).await?;
            each.push(begun.elapsed());
        }
        Ok(each)
    }
}

impl Sent {
    /// Requests per second.
    pub(crate) fn rate(&self) -> f64 {
        self.each.len() as f64 / self.took.as_secs_f64()
    }

    /// A percentile of the answer times, in milliseconds.
    pub(crate) fn millis(&self, share: f64) -> f64 {
        let last = self.each.len().saturating_sub(1);
        let place = (self.each.len() as f64 * share) as usize;
        self.each.get(place.min(last)).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    }
}

/// A request up to the length of its body.
fn head(path: &str, token: Option<&str>) -> String {
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n"));
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{}Content-Type: application/json\r\n\
         Content-Length: ",
        token.unwrap_or_default()
    )
}

/// Reads the head of an answer, which must be successful. Returns the length of the body.
pub(crate) async fn read_head(stream: &mut BufReader<TcpStream>) -> Result<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    ensure!(line.starts_with("HTTP/1.1 20"), "the service answers {line:?}");
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
