//! A stub HTTP service that records its requests.

use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Responds to every request with the same body.
pub(crate) struct StubService {
    pub(crate) url: String,
    body: Arc<Mutex<String>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl StubService {
    pub(crate) async fn responding(body: &str) -> StubService {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (body, requests) = (Arc::new(Mutex::new(body.to_owned())), Arc::default());
        let stub = StubService { url, body, requests };
        let (body, requests) = (stub.body.clone(), stub.requests.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, body.clone(), requests.clone()));
            }
        });
        stub
    }

    /// Changes the body of the responses.
    pub(crate) fn respond_with(&self, body: &str) {
        *self.body.lock().unwrap() = body.to_owned();
    }

    /// The headers of all requests so far, in lower case.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, body: Arc<Mutex<String>>, seen: Arc<Mutex<Vec<String>>>) {
    let mut text = Vec::new();
    let head = loop {
        if stream.read_buf(&mut text).await.unwrap_or(0) == 0 {
            return;
        }
        if let Some(end) = text.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let lines = String::from_utf8_lossy(&text[..head]).to_lowercase();
    let length = lines.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
    while text.len() < head + length {
        if stream.read_buf(&mut text).await.unwrap_or(0) == 0 {
            return;
        }
    }
    seen.lock().unwrap().push(lines);
    let body = body.lock().unwrap().clone();
    let head =
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    let _ = stream.write_all((head + &body).as_bytes()).await;
}
