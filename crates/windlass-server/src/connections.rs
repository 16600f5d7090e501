//! Connections: how many are open at once, and how long each may take.
//!
//! Descriptors are shared with the work: files, children and databases. So connections have a
//! limit well below the process's own. At the limit a new connection takes the place of the one
//! that has been without a request for longest, which half-open connections always are; only when
//! every connection has a request under way is a new one answered 503.

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::ConnectInfo;
use bytes::Bytes;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use nix::sys::resource::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, Sleep};
use tokio_util::sync::CancellationToken;
use windlass_core::config;

/// What is allowed of connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most that are open at once.
    pub(crate) most: usize,
    /// The most event streams at once, over all callers.
    pub(crate) streams: usize,
    header_timeout: Duration,
    idle_timeout: Duration,
    write_timeout: Duration,
}

/// Connections by default, where the process may open enough files.
const DEFAULT_CONNECTIONS: usize = 4096;
/// Descriptors that connections never take, whatever the configuration says.
const RESERVED_DESCRIPTORS: usize = 64;
/// The descriptors of a process where the system does not say.
const ASSUMED_DESCRIPTORS: usize = 256;
/// How often connections without a request are looked at.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// How long nothing is accepted after the system refused to.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);
/// How often an HTTP/2 client is asked whether it is there, and how long it may take to answer.
const PING_INTERVAL: Duration = Duration::from_secs(20);
/// The most requests at once on one HTTP/2 connection.
const MAX_HTTP2_REQUESTS: u32 = 64;
/// What a connection is told that has no place.
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
    content-type: application/problem+json\r\ncontent-length: 122\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\
    \"detail\":\"server.max_connections requests are under way\"}";

impl Limits {
    pub(crate) fn new(server: &config::Server) -> Limits {
        let descriptors = getrlimit(Resource::RLIMIT_NOFILE).ok();
        let descriptors = descriptors.and_then(|(soft, _)| usize::try_from(soft).ok());
        let descriptors = descriptors.unwrap_or(ASSUMED_DESCRIPTORS);
        let room = descriptors.saturating_sub(RESERVED_DESCRIPTORS).max(1);
        let most = match server.max_connections {
            Some(most) => most as usize,
            None => (descriptors / 2).min(DEFAULT_CONNECTIONS),
        };
        if most > room {
            tracing::warn!(
                descriptors,
                "server.max_connections is more than the process may open; {room} are allowed"
            );
        }
        let most = most.min(room);
        Limits {
            most,
            streams: (server.max_streams as usize).min((most / 2).max(1)),
            header_timeout: server.header_timeout,
            idle_timeout: server.idle_timeout,
            write_timeout: server.body_timeout,
        }
    }
}

/// Serves every connection until `stopping`; then those with a request under way may end it.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stopping: CancellationToken,
) {
    let open = Arc::new(Open::default());
    let mut connections = JoinSet::new();
    let mut sweep = tokio::time::interval(SWEEP_INTERVAL);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (stream, address) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_BACKOFF).await;
                    continue;
                }
            },
            _ = sweep.tick() => {
                open.close_idle(limits.idle_timeout);
                continue;
            }
            () = stopping.cancelled() => break,
        };
        while connections.try_join_next().is_some() {}
        // A connection that made room keeps its descriptor until its task has ended.
        while connections.len() > limits.most {
            connections.join_next().await;
        }
        let Some(place) = open.admit(limits.most) else {
            // Best effort: a client that does not read finds the connection closed.
            let _ = stream.try_write(BUSY.as_bytes());
            continue;
        };
        connections.spawn(converse(
            stream,
            address,
            router.clone(),
            place,
            limits,
            stopping.clone(),
        ));
    }
    drop(listener);
    // Those with a request under way end it; the others have nothing to wait for.
    while !connections.is_empty() {
        tokio::select! {
            _ = connections.join_next() => {}
            _ = sweep.tick() => open.close_idle(SWEEP_INTERVAL),
        }
    }
}

async fn converse(
    stream: TcpStream,
    address: SocketAddr,
    router: Router,
    place: Place,
    limits: Limits,
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
    let slot = place.slot.clone();
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let under_way = UnderWay::begin(slot.clone());
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(address));
        let answering = router.call(request);
        async move {
            let response = answering.await?;
            let until_sent = |body| Body::new(Answering { body, _under_way: under_way });
            Ok::<_, std::convert::Infallible>(response.map(until_sent))
        }
    });
    let io = TokioIo::new(Stalling { stream, limit: limits.write_timeout, stalled: None });
    let mut connection = pin!(builder.serve_connection(io, service));
    let mut ending = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%address, error, "connection closed");
                }
                return;
            }
            () = place.slot.closed.cancelled() => return,
            () = stopping.cancelled(), if !ending => {
                connection.as_mut().graceful_shutdown();
                ending = true;
            }
        }
    }
}

/// The open connections, by number.
#[derive(Default)]
struct Open(Mutex<(u64, BTreeMap<u64, Arc<Slot>>)>);

/// One connection.
struct Slot {
    state: Mutex<State>,
    closed: CancellationToken,
}

struct State {
    requests: usize,
    /// When it was opened, or when its last request was answered.
    idle_since: Instant,
}

impl Open {
    /// A place for a new connection: a free one, or that of the connection that has been without a
    /// request for longest.
    fn admit(self: &Arc<Self>, most: usize) -> Option<Place> {
        let mut open = lock(&self.0);
        if open.1.len() >= most {
            let idle = open.1.iter().filter_map(|(number, slot)| Some((slot.idle()?, *number)));
            let (_, number) = idle.min()?;
            if let Some(slot) = open.1.remove(&number) {
                slot.closed.cancel();
            }
        }
        open.0 += 1;
        let number = open.0;
        let state = Mutex::new(State { requests: 0, idle_since: Instant::now() });
        let slot = Arc::new(Slot { state, closed: CancellationToken::new() });
        open.1.insert(number, slot.clone());
        Some(Place { number, slot, open: self.clone() })
    }

    fn close_idle(&self, limit: Duration) {
        for slot in lock(&self.0).1.values() {
            if slot.idle().is_some_and(|since| since.elapsed() > limit) {
                slot.closed.cancel();
            }
        }
    }
}

impl Slot {
    /// Since when it has had no request.
    fn idle(&self) -> Option<Instant> {
        let state = lock(&self.state);
        (state.requests == 0).then_some(state.idle_since)
    }
}

/// A connection's place among the open ones, until it is closed.
struct Place {
    number: u64,
    slot: Arc<Slot>,
    open: Arc<Open>,
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.open.0).1.remove(&self.number);
    }
}

/// A request, until its answer is sent.
struct UnderWay(Arc<Slot>);

impl UnderWay {
    fn begin(slot: Arc<Slot>) -> UnderWay {
        lock(&slot.state).requests += 1;
        UnderWay(slot)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.requests = state.requests.saturating_sub(1);
        state.idle_since = Instant::now();
    }
}

/// The body of an answer, which keeps its request under way.
struct Answering {
    body: Body,
    _under_way: UnderWay,
}

impl HttpBody for Answering {
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

/// A connection that fails when the client takes nothing of an answer for too long.
struct Stalling {
    stream: TcpStream,
    limit: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Stalling {
    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<std::io::Result<T>>,
    ) -> Poll<std::io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(stalled.as_mut().poll(cx));
        self.stalled = None;
        Poll::Ready(Err(std::io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Stalling {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stalling {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.watch(cx, written)
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

/// Plain values, which a panic elsewhere cannot leave half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_that_is_idle_for_longest_makes_room_and_one_with_a_request_never_does() {
        let open = Arc::new(Open::default());
        let first = open.admit(2).unwrap();
        let second = open.admit(2).unwrap();
        let request = UnderWay::begin(first.slot.clone());
        let third = open.admit(2).unwrap();
        assert!(second.slot.closed.is_cancelled() && !first.slot.closed.is_cancelled());
        let other = UnderWay::begin(third.slot.clone());
        assert!(open.admit(2).is_none(), "both have a request under way");
        drop((request, other, first));
        assert!(open.admit(2).is_some() && !third.slot.closed.is_cancelled());
    }

    #[test]
    fn the_busy_answer_is_whole() {
        let (head, body) = BUSY.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        serde_json::from_str::<serde_json::Value>(body).unwrap();
    }
}
