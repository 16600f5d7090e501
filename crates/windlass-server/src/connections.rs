//! Accepts connections, and limits their number and their timeouts.
//!
//! File descriptors are shared with the jobs: files, child processes, databases. The limit on connections
//! is therefore well below that of the process. At the limit, a new connection replaces the one that has
//! been idle for longest; half-open connections are always idle. If every connection has an active
//! request, the new one gets 503.

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::ConnectInfo;
use bytes::Bytes;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use nix::sys::resource::{Resource, getrlimit};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, Sleep};
use tokio_util::sync::CancellationToken;
use windlass_core::config;

/// Limits on connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    max_connections: usize,
    /// The maximum number of open event streams of all callers.
    pub(crate) max_streams: usize,
    header_timeout: Duration,
    idle_timeout: Duration,
    write_timeout: Duration,
}

/// The default limit, if the process may open at least twice as many files.
const DEFAULT_MAX_CONNECTIONS: usize = 4096;
/// Descriptors that are never used for connections, whatever the configuration says.
const RESERVED_DESCRIPTORS: usize = 64;
/// The number of descriptors if the operating system does not report it.
const ASSUMED_DESCRIPTORS: usize = 256;
/// How often idle connections are checked.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after a failed accept.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);
/// The interval and the timeout of HTTP/2 pings.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// The maximum number of concurrent requests on one HTTP/2 connection.
const MAX_HTTP2_REQUESTS: u32 = 64;
/// The response to a connection above the limit.
const BUSY_RESPONSE: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
    content-type: application/problem+json\r\ncontent-length: 124\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\
    \"detail\":\"server.max_connections requests are in progress\"}";

impl ConnectionLimits {
    pub(crate) fn new(server: &config::Server) -> ConnectionLimits {
        let descriptors = getrlimit(Resource::RLIMIT_NOFILE).ok();
        let descriptors = descriptors.and_then(|(soft, _)| usize::try_from(soft).ok());
        let descriptors = descriptors.unwrap_or(ASSUMED_DESCRIPTORS);
        let available = descriptors.saturating_sub(RESERVED_DESCRIPTORS).max(1);
        let wanted = match server.max_connections {
            Some(max) => max as usize,
            None => (descriptors / 2).min(DEFAULT_MAX_CONNECTIONS),
        };
        if wanted > available {
            tracing::warn!(
                descriptors,
                "server.max_connections exceeds the file descriptor limit; using {available}"
            );
        }
        let max_connections = wanted.min(available);
        ConnectionLimits {
            max_connections,
            max_streams: (server.max_streams as usize).min((max_connections / 2).max(1)),
            header_timeout: server.header_timeout,
            idle_timeout: server.idle_timeout,
            write_timeout: server.body_timeout,
        }
    }
}

/// Serves connections until `stopping`; then requests in progress may finish.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    stopping: CancellationToken,
) {
    let table = Arc::new(ConnectionTable::default());
    let mut connections = JoinSet::new();
    let mut sweep = tokio::time::interval(SWEEP_INTERVAL);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (stream, address) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection; retrying");
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                    continue;
                }
            },
            _ = sweep.tick() => {
                table.close_idle(limits.idle_timeout);
                continue;
            }
            () = stopping.cancelled() => break,
        };
        while connections.try_join_next().is_some() {}
        // A replaced connection keeps its descriptor until its task has ended.
        while connections.len() > limits.max_connections {
            connections.join_next().await;
        }
        let Some(guard) = table.admit(limits.max_connections) else {
            // Best effort: a client that does not read only finds the connection closed.
            let _ = stream.try_write(BUSY_RESPONSE.as_bytes());
            continue;
        };
        connections.spawn(serve_connection(
            stream,
            address,
            router.clone(),
            guard,
            limits,
            stopping.clone(),
        ));
    }
    drop(listener);
    // Idle connections are closed; the others finish their requests.
    while !connections.is_empty() {
        tokio::select! {
            _ = connections.join_next() => {}
            _ = sweep.tick() => table.close_idle(SWEEP_INTERVAL),
        }
    }
}

async fn serve_connection(
    stream: TcpStream,
    address: SocketAddr,
    router: Router,
    guard: ConnectionGuard,
    limits: ConnectionLimits,
    stopping: CancellationToken,
) {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.header_timeout);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL)
        .max_concurrent_streams(MAX_HTTP2_REQUESTS);
    let router = TowerToHyperService::new(router);
    let connection_state = guard.connection.clone();
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let active = ActiveRequest::start(connection_state.clone());
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(address));
        let response = router.call(request);
        async move {
            let response = response.await?;
            let until_sent = |body| Body::new(TrackedBody { body, _active: active });
            Ok::<_, std::convert::Infallible>(response.map(until_sent))
        }
    });
    let stream = WriteTimeoutStream { stream, timeout: limits.write_timeout, stalled: None };
    let io = TokioIo::new(stream);
    let mut connection = pin!(builder.serve_connection(io, service));
    let mut shutting_down = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%address, error, "connection closed");
                }
                return;
            }
            () = guard.connection.closed.cancelled() => return,
            () = stopping.cancelled(), if !shutting_down => {
                connection.as_mut().graceful_shutdown();
                shutting_down = true;
            }
        }
    }
}

/// The open connections.
#[derive(Default)]
struct ConnectionTable(Mutex<OpenConnections>);

#[derive(Default)]
struct OpenConnections {
    last_number: u64,
    by_number: BTreeMap<u64, Arc<Connection>>,
}

/// One connection.
struct Connection {
    activity: Mutex<Activity>,
    closed: CancellationToken,
}

struct Activity {
    requests: usize,
    /// When the connection was opened, or when its last request completed.
    idle_since: Instant,
}

impl ConnectionTable {
    /// Registers a new connection. At the limit it replaces the connection that has been idle for
    /// longest; `None` if none is idle.
    fn admit(self: &Arc<Self>, limit: usize) -> Option<ConnectionGuard> {
        let mut open = self.0.lock();
        if open.by_number.len() >= limit {
            let idle = open.by_number.iter();
            let idle = idle.filter_map(|(number, one)| Some((one.idle_since()?, *number)));
            let (_, longest_idle) = idle.min()?;
            if let Some(replaced) = open.by_number.remove(&longest_idle) {
                replaced.closed.cancel();
            }
        }
        open.last_number += 1;
        let number = open.last_number;
        let activity = Mutex::new(Activity { requests: 0, idle_since: Instant::now() });
        let connection = Arc::new(Connection { activity, closed: CancellationToken::new() });
        open.by_number.insert(number, connection.clone());
        Some(ConnectionGuard { number, connection, table: self.clone() })
    }

    fn close_idle(&self, timeout: Duration) {
        for connection in self.0.lock().by_number.values() {
            if connection.idle_since().is_some_and(|since| since.elapsed() > timeout) {
                connection.closed.cancel();
            }
        }
    }
}

impl Connection {
    /// Since when it has had no request; `None` while it has one.
    fn idle_since(&self) -> Option<Instant> {
        let activity = self.activity.lock();
        (activity.requests == 0).then_some(activity.idle_since)
    }
}

/// Keeps a connection in the table until it is dropped.
struct ConnectionGuard {
    number: u64,
    connection: Arc<Connection>,
    table: Arc<ConnectionTable>,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.table.0.lock().by_number.remove(&self.number);
    }
}

/// Counts a request as active until its response has been sent.
struct ActiveRequest(Arc<Connection>);

impl ActiveRequest {
    fn start(connection: Arc<Connection>) -> ActiveRequest {
        connection.activity.lock().requests += 1;
        ActiveRequest(connection)
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut activity = self.0.activity.lock();
        activity.requests = activity.requests.saturating_sub(1);
        activity.idle_since = Instant::now();
    }
}

/// A response body that keeps its request active.
struct TrackedBody {
    body: Body,
    _active: ActiveRequest,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

/// A TCP stream whose writes fail when the client reads nothing for too long.
struct WriteTimeoutStream {
    stream: TcpStream,
    timeout: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeoutStream {
    fn check_timeout<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<std::io::Result<T>>,
    ) -> Poll<std::io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let timeout = self.timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(stalled.as_mut().poll(cx));
        self.stalled = None;
        Poll::Ready(Err(std::io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for WriteTimeoutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for WriteTimeoutStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check_timeout(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.check_timeout(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_limit_the_longest_idle_connection_is_replaced_and_an_active_one_never() {
        let table = Arc::new(ConnectionTable::default());
        let first = table.admit(2).unwrap();
        let second = table.admit(2).unwrap();
        let request = ActiveRequest::start(first.connection.clone());
        let third = table.admit(2).unwrap();
        assert!(second.connection.closed.is_cancelled());
        assert!(!first.connection.closed.is_cancelled());
        let other = ActiveRequest::start(third.connection.clone());
        assert!(table.admit(2).is_none(), "both connections have an active request");
        drop((request, other, first));
        assert!(table.admit(2).is_some() && !third.connection.closed.is_cancelled());
    }

    #[test]
    fn the_busy_response_is_well_formed() {
        let (head, body) = BUSY_RESPONSE.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        serde_json::from_str::<serde_json::Value>(body).unwrap();
    }
}
