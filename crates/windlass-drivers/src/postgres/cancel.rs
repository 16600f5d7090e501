//! Asking a server to give up a statement, and staying until it has heard.
//!
//! The client library hangs up as soon as it has asked. PgBouncer passes the request on, and up to
//! 1.19.0 it dies when the one who asked has left by then (its issue 801). So the other end is left
//! to hang up, as with libpq.

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

/// How long the request may take.
const LIMIT: Duration = Duration::from_secs(5);

/// Asks to cancel what runs on a connection; best effort, as it always is. Which one of several
/// hosts the connection leads to is not known: the others do not know the token.
pub(super) async fn cancel(token: &CancelToken, settings: &Settings) {
    let config = &settings.config;
    for place in 0..config.get_hosts().len().max(config.get_hostaddrs().len()) {
        match tokio::time::timeout(LIMIT, ask(token, settings, place)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a statement could not be cancelled"),
            Err(_) => tracing::debug!("a statement could not be cancelled in time"),
        }
    }
}

/// Asks the host at this place of the URL.
async fn ask(token: &CancelToken, settings: &Settings, place: usize) -> io::Result<()> {
    let config = &settings.config;
    let ports = config.get_ports();
    let port = ports.get(place).or(ports.first()).copied().unwrap_or(5432);
    let name = match config.get_hosts().get(place) {
        Some(Host::Unix(folder)) => {
            let socket = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).await?;
            return ask_through(socket, token, settings, "").await;
        }
        Some(Host::Tcp(name)) => name.clone(),
        None => String::new(),
    };
    let socket = match config.get_hostaddrs().get(place) {
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
    let tls =
        MakeTlsConnect::<Patient<S>>::make_tls_connect(&mut tls, name).map_err(io::Error::other)?;
    token.cancel_query_raw(Patient(socket), PatientTls(tls)).await.map_err(io::Error::other)
}

/// A stream that shuts down by waiting for the other end to do so.
struct Patient<S>(S);

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Patient<S> {
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

impl<S: TlsStream + Unpin> TlsStream for Patient<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.0.channel_binding()
    }
}

/// Makes patient streams: TLS says goodbye before the stream under it is asked to shut down.
struct PatientTls<T>(T);

impl<S, T: TlsConnect<S>> TlsConnect<S> for PatientTls<T> {
    type Stream = Patient<T::Stream>;
    type Error = T::Error;
    type Future = MapOk<T::Future, fn(T::Stream) -> Patient<T::Stream>>;

    fn connect(self, stream: S) -> Self::Future {
        self.0.connect(stream).map_ok(Patient)
    }
}
