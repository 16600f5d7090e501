//! Receives notifications on a connection outside the pool.

use std::{future::poll_fn, time::Duration};

use tokio::{sync::mpsc, task::JoinHandle};
use tokio_postgres::{AsyncMessage, Client, Connection, Socket, tls::TlsStream};
use uuid::Uuid;

use super::{Param, Postgres, settings::Settings};
use crate::{Error, ErrorClass};

/// Receives the notifications of one channel until its connection ends.
pub struct Listener {
    payloads: mpsc::Receiver<Result<String, Error>>,
    task: JoinHandle<()>,
    /// The connection closes when its client is dropped.
    client: Client,
}

impl Listener {
    pub(super) async fn connect(database: &Postgres, channel: &str) -> Result<Option<Self>, Error> {
        let limit = database.settings.connect_timeout + NOTIFY_TIMEOUT;
        let attempt = Self::attempt(database, channel);
        tokio::time::timeout(limit, attempt).await.unwrap_or_else(|_| {
            Err(Error::new(ErrorClass::Connection, "timed out waiting for LISTEN"))
        })
    }

    /// The payload of the next notification. An error means that the connection has ended and that
    /// notifications may have been missed: listen again, then read the state that they announce.
    ///
    /// Cancel safe: a dropped call loses no notification.
    pub async fn recv(&mut self) -> Result<String, Error> {
        self.payloads.recv().await.unwrap_or_else(|| Err(ended()))
    }

    async fn attempt(database: &Postgres, channel: &str) -> Result<Option<Self>, Error> {
        let Settings { config, tls, .. } = &*database.settings;
        let (client, connection) = config
            .connect(tls.clone())
            .await
            .map_err(|error| database.settings.connect_error(error.into()))?;
        let (sender, payloads) = mpsc::channel(BUFFER);
        let task = tokio::spawn(forward(connection, sender));
        let mut listener = Listener { payloads, task, client };
        if !listener.receives(database).await? {
            return Ok(None);
        }
        listener.listen(channel).await?;
        Ok(Some(listener))
    }

    /// Whether notifications arrive. Behind a pooler in transaction mode LISTEN succeeds, but notifications
    /// go to any client that uses the same server connection. So this is tried on a unique channel.
    async fn receives(&mut self, database: &Postgres) -> Result<bool, Error> {
        let channel = format!("windlass_{}", Uuid::now_v7().simple());
        self.listen(&channel).await?;
        let notify = "SELECT pg_notify($1, '')";
        database.single("", notify, &[Param::from(channel.as_str())]).await?;
        let Ok(received) = tokio::time::timeout(NOTIFY_TIMEOUT, self.recv()).await else {
            return Ok(false);
        };
        received?;
        self.client.batch_execute(&format!("UNLISTEN {}", quoted(&channel))).await?;
        Ok(true)
    }

    async fn listen(&self, channel: &str) -> Result<(), Error> {
        Ok(self.client.batch_execute(&format!("LISTEN {}", quoted(channel))).await?)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn quoted(channel: &str) -> String {
    format!("\"{}\"", channel.replace('"', "\"\""))
}

/// How long a notification may take, even on a server under load.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(5);

/// The most buffered notifications. Further ones wait at the server.
const BUFFER: usize = 256;

/// Drives the connection until it ends or the listener is dropped.
async fn forward<T>(
    mut connection: Connection<Socket, T>,
    sender: mpsc::Sender<Result<String, Error>>,
) where
    T: TlsStream + Unpin,
{
    loop {
        let received = match poll_fn(|cx| connection.poll_message(cx)).await {
            Some(Ok(AsyncMessage::Notification(notification))) => {
                Ok(notification.payload().to_owned())
            }
            Some(Ok(_)) => continue,
            Some(Err(error)) => Err(error.into()),
            None => Err(ended()),
        };
        let last = received.is_err();
        if sender.send(received).await.is_err() || last {
            return;
        }
    }
}

fn ended() -> Error {
    Error::new(ErrorClass::Connection, "the listening connection has ended")
}
