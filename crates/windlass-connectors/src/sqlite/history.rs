//! The history of the ledger.

use super::fence::has_tables;
use super::{SqliteConnection, failed, row};
use crate::{ConnectorError, Ledger, LedgerHistory, Result};
use async_trait::async_trait;
use rusqlite::{OptionalExtension as _, params};
use uuid::Uuid;
use windlass_core::{ChunkId, JobId};

#[async_trait]
impl LedgerHistory for SqliteConnection {
    async fn generation(&self, store: Uuid, connection: &str) -> Result<i64> {
        let connection = connection.to_owned();
        let sql = include_str!("../../sql/sqlite/generation.sql");
        self.read(move |db| {
            if !has_tables(db)? {
                return Ok(0);
            }
            let found = db.query_row(sql, params![store.to_string(), connection], |row| row.get(0));
            Ok(found.optional().map_err(failed)?.unwrap_or(0))
        })
        .await
    }

    async fn raise_generation(&self, store: Uuid, connection: &str, generation: i64) -> Result<()> {
        let connection = connection.to_owned();
        let sql = include_str!("../../sql/sqlite/raise_generation.sql");
        self.write(move |transaction| {
            let params = params![store.to_string(), connection, generation];
            transaction.execute(sql, params).map(drop).map_err(failed)
        })
        .await
    }

    async fn rows(&self, job: JobId, after: i64, limit: u32) -> Result<Vec<Ledger>> {
        let sql = include_str!("../../sql/sqlite/history_rows.sql");
        self.read(move |db| {
            if !has_tables(db)? {
                return Ok(Vec::new());
            }
            let mut statement = db.prepare(sql).map_err(failed)?;
            let mut rows =
                statement.query(params![job.to_string(), after, limit]).map_err(failed)?;
            let mut found = Vec::new();
            while let Some(row) = rows.next().map_err(failed)? {
                let chunk = ChunkId { job, number: row.get(10).map_err(failed)? };
                found.push(row::ledger(row, chunk)?);
            }
            Ok(found)
        })
        .await
    }

    async fn jobs(&self) -> Result<Vec<(JobId, u64)>> {
        let sql = include_str!("../../sql/sqlite/history_jobs.sql");
        self.read(move |db| {
            if !has_tables(db)? {
                return Ok(Vec::new());
            }
            let mut statement = db.prepare(sql).map_err(failed)?;
            let mut rows = statement.query([]).map_err(failed)?;
            let mut found = Vec::new();
            while let Some(row) = rows.next().map_err(failed)? {
                let (job, count): (String, i64) =
                    (row.get(0).map_err(failed)?, row.get(1).map_err(failed)?);
                let unreadable = || ConnectorError::Unreadable(format!("`{job}` is not a job"));
                found.push((job.parse().map_err(|_| unreadable())?, count.unsigned_abs()));
            }
            Ok(found)
        })
        .await
    }
}
