//! Divides `max_connections_total` among processes.

use std::time::Duration;

use async_trait::async_trait;
use windlass_core::config::Dialect;

use super::{PostgresStore, params, sql};
use crate::{ConnectionShare, ConnectionShareStore, Result, TakenConnections, rows};

#[async_trait]
impl ConnectionShareStore for PostgresStore {
    async fn take_connection_share(
        &self,
        share: &ConnectionShare,
        total: i64,
        ttl: Duration,
    ) -> Result<bool> {
        let ConnectionShare { connection, process, connections } = share;
        let of_connection = params![connection];
        let params = params![connection, process, *connections, total, ttl.as_millis() as i64];
        let run = || async {
            let tx = match self.dialect {
                // Two transactions that find the same connections free are not serializable.
                Dialect::Strict => self.begin().await?,
                _ => self.begin_with(sql!("lock_connection_shares"), of_connection).await?.0,
            };
            let taken = async {
                tx.execute(sql!("remove_expired_connection_shares"), of_connection).await?;
                Ok(tx.execute(sql!("take_connection_share"), params).await? > 0)
            };
            let taken = taken.await;
            tx.finish(taken).await
        };
        self.repeat(run).await
    }

    async fn release_connection_share(&self, connection: &str, process: &str) -> Result<()> {
        let params = params![connection, process];
        self.execute(sql!(shared "release_connection_share"), params).await.map(drop)
    }

    async fn taken_connections(&self, connection: &str) -> Result<TakenConnections> {
        let params = params![connection];
        let taken = self.read_first(sql!("taken_connections"), params, rows::taken).await;
        Ok(taken?.unwrap_or_default())
    }
}
