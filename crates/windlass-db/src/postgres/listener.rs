//! Notifications, on a connection outside the pool.

use std::future::poll_fn;

use tokio::{sync::mpsc, task::JoinHandle};
use tokio_postgres::{AsyncMessage, Client, Connection, Socket, tls::TlsStream};

use super::settings::Settings;
use crate::{Class, Error};

/// Hears what is notified on one channel, for as long as its connection lives.
pub struct Listener {
    payloads: mpsc::Receiver<Result<String, Error>>,
    task: JoinHandle<()>,
    /// The connection closes when its client is dropped.
    _client: Client,
}

impl Listener {
    pub(super) async fn connect(settings: &Settings, channel: &str) -> Result<Self, Error> {
        let attempt = Self::attempt(settings, channel);
        tokio::time::timeout(settings.connect_timeout, attempt).await.unwrap_or_else(|_| {
            Err(Error::new(Class::Connection, "the database did not answer in time to LISTEN"))
        })
    }

    /// The payload of the next notification. An error means that the connection has ended and that
    /// notifications may have been missed: listen anew, then look at what they would have told.
    ///
    /// A call that is dropped while it waits loses nothing.
    pub async fn recv(&mut self) -> Result<String, Error> {
        self.payloads.recv().await.unwrap_or_else(|| Err(ended()))
    }

    async fn attempt(settings: &Settings, channel: &str) -> Result<Self, Error> {
        let (client, connection) = settings.config.connect(settings.tls.clone()).await?;
        let (sender, payloads) = mpsc::channel(AHEAD);
        let task = tokio::spawn(forward(connection, sender));
        let listener = Listener { payloads, task, _client: client };
        let channel = channel.replace('"', "\"\"");
        listener._client.batch_execute(&format!("LISTEN \"{channel}\"")).await?;
        Ok(listener)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How many notifications may wait for a slow reader; further ones wait at the server.
const AHEAD: usize = 256;

/// Drives the connection until it ends or nobody listens.
async fn forward<T>(
    mut connection: Connection<Socket, T>,
    sender: mpsc::Sender<Result<String, Error>>,
) where
    T: TlsStream + Unpin,
{
    loop {
        let heard = match poll_fn(|cx| connection.poll_message(cx)).await {
            Some(Ok(AsyncMessage::Notification(heard))) => Ok(heard.payload().to_owned()),
            Some(Ok(_)) => continue,
            Some(Err(error)) => Err(error.into()),
            None => Err(ended()),
        };
        let last = heard.is_err();
        if sender.send(heard).await.is_err() || last {
            return;
        }
    }
}

fn ended() -> Error {
    Error::new(Class::Connection, "the connection that listened has ended")
}
