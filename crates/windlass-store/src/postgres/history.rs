//! The identity and generations of the store, and the epochs of a restored store.

use async_trait::async_trait;
use uuid::Uuid;
use windlass_core::{JobId, PaginationState};
use windlass_drivers::Row;

use super::{PostgresStore, Transaction, params, sql};
use crate::fields::Fields;
use crate::{HistoryStore, MERGED, Result, StoreError};

#[async_trait]
impl HistoryStore for PostgresStore {
    async fn identity(&self) -> Result<Uuid> {
        let found =
            self.read_first(sql!(shared "store_identity"), &[], |row: &Row| row.id("id")).await?;
        found.ok_or_else(|| StoreError::Unreadable("its identity is missing".to_owned()))
    }

    async fn generation(&self, connection: &str) -> Result<i64> {
        let read = |row: &Row| row.int("generation");
        let found = self.read_first(sql!(shared "generation"), params![connection], read).await?;
        Ok(found.unwrap_or(0))
    }

    async fn raise_generation(&self, connection: &str, seen: i64) -> Result<i64> {
        let (sql, params) = (sql!("raise_generation"), params![connection, seen]);
        let raised = self.read_first(sql, params, |row: &Row| row.int("generation")).await?;
        raised.ok_or_else(|| StoreError::Unreadable("its generation is missing".to_owned()))
    }

    async fn raise_epochs(&self, job: JobId, epochs: &[(i64, i64)]) -> Result<u64> {
        let run = || async {
            let tx = self.begin().await?;
            let raised = raise_epochs(&tx, job, epochs).await;
            tx.finish(raised).await
        };
        self.repeat(run).await
    }
}

async fn raise_epochs(tx: &Transaction, job: JobId, epochs: &[(i64, i64)]) -> Result<u64> {
    let merge = serde_json::to_string(&PaginationState::Merge)?;
    for (_, epoch) in epochs.iter().filter(|(number, _)| *number == MERGED) {
        let params = params![job, merge.clone(), *epoch];
        tx.execute(sql!(shared "raise_merge_epoch"), params).await?;
    }
    let (numbers, epochs): (Vec<i64>, Vec<i64>) = epochs.iter().copied().unzip();
    Ok(tx.execute(sql!("raise_epochs"), params![job, numbers, epochs]).await?)
}
