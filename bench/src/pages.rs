//! Page requests over a kept-alive connection, and their durations.

use crate::posts::read_head;
use crate::served::Served;
use anyhow::Result;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A kept-alive connection.
pub(crate) struct Pages {
    stream: BufReader<TcpStream>,
    token: String,
}

impl Pages {
    pub(crate) async fn connect(served: &Served) -> Result<Pages> {
        let stream = TcpStream::connect(("127.0.0.1", served.port)).await?;
        stream.set_nodelay(true)?;
        Ok(Pages { stream: BufReader::new(stream), token: served.token.clone() })
    }

    /// Requests a page, which must exist. Returns the duration and the size.
    pub(crate) async fn get(&mut self, path: &str) -> Result<(Duration, usize)> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\r\n",
            self.token
        );
        let begun = Instant::now();
        self.stream.write_all(request.as_bytes()).await?;
        let mut page = vec![0; read_head(&mut self.stream).await?];
        self.stream.read_exact(&mut page).await?;
        Ok((begun.elapsed(), page.len()))
    }
}
