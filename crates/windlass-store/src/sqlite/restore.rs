//! The store's identity and generations, and the epochs of a restored store.

use uuid::Uuid;
use windlass_core::{JobId, PaginationState};
use windlass_db::rusqlite::params;

use super::transaction::Transaction;
use super::{SqliteStore, sql};
use crate::fields::Fields;
use crate::{MERGED, Result};

pub(super) async fn identity(store: &SqliteStore) -> Result<Uuid> {
    store.read(|tx| tx.query_one(sql!("store_identity"), [], |row| row.id("id"))).await
}

pub(super) async fn generation(store: &SqliteStore, connection: &str) -> Result<i64> {
    let params = [connection.to_owned()];
    let found =
        store.read(move |tx| tx.query_opt(sql!("generation"), params, |row| row.int("generation")));
    Ok(found.await?.unwrap_or(0))
}

pub(super) async fn raise_generation(
    store: &SqliteStore,
    connection: &str,
    above: i64,
) -> Result<i64> {
    let params = (connection.to_owned(), above);
    let raised = store.write(move |tx| {
        tx.query_one(sql!("raise_generation"), params, |row| row.int("generation"))
    });
    raised.await
}

pub(super) async fn raise_epochs(
    store: &SqliteStore,
    job: JobId,
    epochs: &[(i64, i64)],
) -> Result<u64> {
    let epochs = epochs.to_vec();
    let merge = serde_json::to_string(&PaginationState::Merge)?;
    let raise = move |tx: &Transaction<'_>| {
        let (job, mut raised) = (job.to_string(), 0);
        for (number, epoch) in &epochs {
            if *number == MERGED {
                tx.execute(sql!("raise_merge_epoch"), params![job, merge, epoch])?;
            }
            raised += tx.execute(sql!("raise_epoch"), params![job, number, epoch])?;
        }
        Ok(raised)
    };
    store.write(raise).await
}
