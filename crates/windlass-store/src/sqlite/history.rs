//! The identity and generations of the store, and the epochs of a restored store.

use async_trait::async_trait;
use uuid::Uuid;
use windlass_core::{JobId, PaginationState};
use windlass_drivers::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, sql};
use crate::fields::Fields;
use crate::{HistoryStore, MERGED, Result};

#[async_trait]
impl HistoryStore for SqliteStore {
    async fn identity(&self) -> Result<Uuid> {
        self.read(|tx| tx.query_one(sql!(shared "store_identity"), [], |row| row.id("id"))).await
    }

    async fn generation(&self, connection: &str) -> Result<i64> {
        let params = [connection.to_owned()];
        let found =
            self.query_opt(sql!(shared "generation"), params, |row| row.int("generation")).await?;
        Ok(found.unwrap_or(0))
    }

    async fn raise_generation(&self, connection: &str, seen: i64) -> Result<i64> {
        let params = (connection.to_owned(), seen);
        let raise = move |tx: &Transaction<'_>| {
            tx.query_one(sql!("raise_generation"), params, |row| row.int("generation"))
        };
        self.write(raise).await
    }

    async fn raise_epochs(&self, job: JobId, epochs: &[(i64, i64)]) -> Result<u64> {
        let epochs = epochs.to_vec();
        let merge = serde_json::to_string(&PaginationState::Merge)?;
        let raise = move |tx: &Transaction<'_>| {
            let (job, mut raised) = (job.to_string(), 0);
            for (number, epoch) in &epochs {
                if *number == MERGED {
                    tx.execute(sql!(shared "raise_merge_epoch"), params![job, merge, epoch])?;
                }
                raised += tx.execute(sql!("raise_epoch"), params![job, number, epoch])?;
            }
            Ok(raised)
        };
        self.write(raise).await
    }
}
