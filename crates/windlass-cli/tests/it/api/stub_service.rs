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
    let Some((lines, _)) = read_request(&mut stream).await else { return };
    seen.lock().unwrap().push(lines.to_lowercase());
    let body = body.lock().unwrap().clone();
    let head =
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    let _ = stream.write_all((head + &body).as_bytes()).await;
}

/// Reads the head and the body of a request; `None` if the connection is closed before its end.
pub(crate) async fn read_request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut text = Vec::new();
    let head = loop {
        if stream.read_buf(&mut text).await.unwrap_or(0) == 0 {
            return None;
        }
        if let Some(end) = text.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let lines = String::from_utf8_lossy(&text[..head]).into_owned();
    let length = lines.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then(|| value.parse().unwrap())
    });
    let end = head + length.unwrap_or(0);
    while text.len() < end {
        if stream.read_buf(&mut text).await.unwrap_or(0) == 0 {
            return None;
        }
    }
    Some((lines, String::from_utf8(text[head..].to_vec()).unwrap()))
}
