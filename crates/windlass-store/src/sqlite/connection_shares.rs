//! Divides `max_connections_total` among processes.

use std::time::Duration;

use async_trait::async_trait;

use super::{SqliteStore, sql};
use crate::{ConnectionShare, ConnectionShareStore, Result, TakenConnections, rows};

#[async_trait]
impl ConnectionShareStore for SqliteStore {
    async fn take_connection_share(
        &self,
        share: &ConnectionShare,
        total: i64,
        ttl: Duration,
    ) -> Result<bool> {
        let (share, ttl) = (share.clone(), ttl.as_millis() as i64);
        self.write(move |tx| {
            let ConnectionShare { connection, process, connections } = share;
            tx.execute(sql!("remove_expired_connection_shares"), [&connection])?;
            let params = (connection, process, connections, total, ttl);
            Ok(tx.execute(sql!("take_connection_share"), params)? > 0)
        })
        .await
    }

    async fn release_connection_share(&self, connection: &str, process: &str) -> Result<()> {
        let params = (connection.to_owned(), process.to_owned());
        self.execute(sql!(shared "release_connection_share"), params).await.map(drop)
    }

    async fn taken_connections(&self, connection: &str) -> Result<TakenConnections> {
        let params = [connection.to_owned()];
        let taken = self.query_opt(sql!("taken_connections"), params, |row| rows::taken(row));
        Ok(taken.await?.unwrap_or_default())
    }
}
