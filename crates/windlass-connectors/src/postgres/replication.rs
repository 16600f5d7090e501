//! Positions of the write-ahead log: written on a primary, replayed on a standby. Reading them needs no
//! privilege.

use super::{MEASURE_TIMEOUT, PostgresConnection, milliseconds, row};
use crate::{Replication, Result};

/// The last position written. On a standby that is configured as a primary, the last one replayed.
pub(super) async fn position(data: &PostgresConnection) -> Result<Option<i64>> {
    let sql = "SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() \
               ELSE pg_current_wal_lsn() END - '0/0')::bigint";
    query_integer(data, sql).await
}

/// The last position replayed. A server that is not in recovery is a primary.
pub(super) async fn replication(data: &PostgresConnection) -> Result<Replication> {
    let sql = "SELECT CASE WHEN pg_is_in_recovery() \
               THEN coalesce((pg_last_wal_replay_lsn() - '0/0')::bigint, 0) END";
    Ok(query_integer(data, sql).await?.map_or(Replication::Primary, Replication::Applied))
}

/// `synchronous_commit` is no risk, since every transaction sets its own.
pub(super) async fn durability_risk(data: &PostgresConnection) -> Result<Option<String>> {
    let unsafe_fsync =
        query_integer(data, "SELECT 1::bigint WHERE NOT current_setting('fsync')::boolean");
    let risk = "the server runs with fsync = off: when its machine crashes, confirmed commits are lost \
                and the database may be corrupted; set fsync = on";
    Ok(unsafe_fsync.await?.map(|_| risk.to_owned()))
}

async fn query_integer(data: &PostgresConnection, sql: &str) -> Result<Option<i64>> {
    let settings = format!(
        "SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = {}",
        milliseconds(MEASURE_TIMEOUT)
    );
    let rows = data.db.single(&settings, sql, &[]).await?;
    rows.first().map_or(Ok(None), |row| row::get(row, 0))
}
