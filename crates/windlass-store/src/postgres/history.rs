//! The store's identity and generations, and the epochs of a restored store.

use async_trait::async_trait;
use uuid::Uuid;
use windlass_core::{JobId, PaginationState};
use windlass_drivers::Row;

use super::{PostgresStore, params, sql};
use crate::fields::Fields;
use crate::{MERGED, Result, StoreError, StoreHistory};

#[async_trait]
impl StoreHistory for PostgresStore {
    async fn identity(&self) -> Result<Uuid> {
        let found = self.read(sql!("store_identity"), &[], |row: &Row| row.id("id")).await?;
        found.into_iter().next().ok_or_else(|| StoreError::Unreadable("its identity".to_owned()))
    }

    async fn generation(&self, connection: &str) -> Result<i64> {
        let params = params![connection.to_owned()];
        let found =
            self.read(sql!("generation"), params, |row: &Row| row.int("generation")).await?;
        Ok(found.into_iter().next().unwrap_or(0))
    }

    async fn raise_generation(&self, connection: &str, above: i64) -> Result<i64> {
        let params = params![connection.to_owned(), above];
        let raised = self.single(sql!("raise_generation"), params).await?;
        let raised =
            raised.first().ok_or_else(|| StoreError::Unreadable("its generation".to_owned()));
        raised?.int("generation")
    }

    async fn raise_epochs(&self, job: JobId, epochs: &[(i64, i64)]) -> Result<u64> {
        let tx = self.begin().await?;
        let merge = serde_json::to_string(&PaginationState::Merge)?;
        for (_, epoch) in epochs.iter().filter(|(number, _)| *number == MERGED) {
            tx.execute(sql!("raise_merge_epoch"), params![job, merge.clone(), *epoch]).await?;
        }
        let (numbers, epochs): (Vec<i64>, Vec<i64>) = epochs.iter().copied().unzip();
        let raised = tx.execute(sql!("raise_epochs"), params![job, numbers, epochs]).await?;
        tx.commit().await?;
        Ok(raised)
    }
}
