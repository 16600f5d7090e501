//! Notifications, on a connection outside the pool.

use std::{future::poll_fn, time::Duration};

use tokio::{sync::mpsc, task::JoinHandle};
use tokio_postgres::{AsyncMessage, Client, Connection, Socket, tls::TlsStream};
use uuid::Uuid;

use super::{Param, Postgres, settings::Settings};
use crate::{Class, Error};

/// Hears what is notified on one channel, for as long as its connection lives.
pub struct Listener {
    payloads: mpsc::Receiver<Result<String, Error>>,
    task: JoinHandle<()>,
    /// The connection closes when its client is dropped.
    client: Client,
}

impl Listener {
    pub(super) async fn connect(database: &Postgres, channel: &str) -> Result<Option<Self>, Error> {
        let limit = database.settings.connect_timeout + HEARING;
        let attempt = Self::attempt(database, channel);
        tokio::time::timeout(limit, attempt).await.unwrap_or_else(|_| {
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

    async fn attempt(database: &Postgres, channel: &str) -> Result<Option<Self>, Error> {
        let Settings { config, tls, .. } = &*database.settings;
        let (client, connection) = config.connect(tls.clone()).await?;
        let (sender, payloads) = mpsc::channel(AHEAD);
        let task = tokio::spawn(forward(connection, sender));
        let mut listener = Listener { payloads, task, client };
        if !listener.hears(database).await? {
            return Ok(None);
        }
        listener.listen(channel).await?;
        Ok(Some(listener))
    }

    /// Whether notifications arrive. Behind a pooler in transaction mode LISTEN succeeds, and what
    /// is notified from then on reaches whoever has that connection of the server at the time. So
    /// this is tried on a channel that nobody else ever notifies.
    async fn hears(&mut self, database: &Postgres) -> Result<bool, Error> {
        let channel = format!("windlass_{}", Uuid::now_v7().simple());
        self.listen(&channel).await?;
        let notify = "SELECT pg_notify($1, '')";
        database.single("", notify, &[Param::from(channel.as_str())]).await?;
        let Ok(heard) = tokio::time::timeout(HEARING, self.recv()).await else {
            return Ok(false);
        };
        heard?;
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

/// How long a notification may take; generous, for a server under load.
const HEARING: Duration = Duration::from_secs(5);

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
