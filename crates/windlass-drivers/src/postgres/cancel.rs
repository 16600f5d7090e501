//! Cancels a running statement, and waits until the server has received the request.
//!
//! The client library closes the connection right after sending the request. PgBouncer up to 1.19.0 crashes if
//! the client has disconnected before the request is forwarded (its issue 801). So the server closes the
//! connection first, as with libpq.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{TryFutureExt as _, future::MapOk};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};
use tokio_postgres::{
    CancelToken,
    config::Host,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};

use super::settings::Settings;

/// The timeout of the request.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Cancels the statement that runs on a connection, as a best effort. Sends the request to all hosts of the URL,
/// since the host of the connection is unknown; the other hosts ignore the token.
pub(super) async fn cancel(token: &CancelToken, settings: &Settings) {
    let config = &settings.config;
    for host in 0..config.get_hosts().len().max(config.get_hostaddrs().len()) {
        match tokio::time::timeout(CANCEL_TIMEOUT, send_request(token, settings, host)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "failed to cancel a statement"),
            Err(_) => tracing::debug!("timed out cancelling a statement"),
        }
    }
}

/// Sends the request to one host of the URL.
async fn send_request(token: &CancelToken, settings: &Settings, host: usize) -> io::Result<()> {
    let config = &settings.config;
    let ports = config.get_ports();
    let port = ports.get(host).or(ports.first()).copied().unwrap_or(5432);
    let name = match config.get_hosts().get(host) {
        Some(Host::Unix(folder)) => {
            let socket = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).await?;
            return ask_through(socket, token, settings, "").await;
        }
        Some(Host::Tcp(name)) => name.clone(),
        None => String::new(),
    };
    let socket = match config.get_hostaddrs().get(host) {
        Some(address) => TcpStream::connect((*address, port)).await?,
        None => TcpStream::connect((name.as_str(), port)).await?,
    };
    ask_through(socket, token, settings, &name).await
}

async fn ask_through<S>(
    socket: S,
    token: &CancelToken,
    settings: &Settings,
    name: &str,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut tls = settings.tls.clone();
    let tls = MakeTlsConnect::<Lingering<S>>::make_tls_connect(&mut tls, name)
        .map_err(io::Error::other)?;
    token.cancel_query_raw(Lingering(socket), LingeringTls(tls)).await.map_err(io::Error::other)
}

/// A stream that shuts down by waiting until the other side closes it.
struct Lingering<S>(S);

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut byte = [0];
        loop {
            let mut buf = ReadBuf::new(&mut byte);
            ready!(Pin::new(&mut self.0).poll_read(cx, &mut buf))?;
            if buf.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: TlsStream + Unpin> TlsStream for Lingering<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.0.channel_binding()
    }
}

/// Makes such streams. TLS sends its closing message before the underlying stream is shut down.
struct LingeringTls<T>(T);

impl<S, T: TlsConnect<S>> TlsConnect<S> for LingeringTls<T> {
    type Stream = Lingering<T::Stream>;
    type Error = T::Error;
    type Future = MapOk<T::Future, fn(T::Stream) -> Lingering<T::Stream>>;

    fn connect(self, stream: S) -> Self::Future {
        self.0.connect(stream).map_ok(Lingering)
    }
}
