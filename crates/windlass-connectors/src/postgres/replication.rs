//! Where the write-ahead log is: written on a primary, replayed on a standby. Anybody may ask.

use super::{MEASURING, PostgresData, milliseconds, row};
use crate::{Result, Standing};

/// How far the log is written. A standby that serves as a primary counts by what it has replayed.
pub(super) async fn position(data: &PostgresData) -> Result<Option<i64>> {
    let sql = "SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() \
               ELSE pg_current_wal_lsn() END - '0/0')::bigint";
    asked(data, sql).await
}

/// How far the log is replayed; nobody's copy where it is not in recovery.
pub(super) async fn standing(data: &PostgresData) -> Result<Standing> {
    let sql = "SELECT CASE WHEN pg_is_in_recovery() \
               THEN coalesce((pg_last_wal_replay_lsn() - '0/0')::bigint, 0) END";
    Ok(asked(data, sql).await?.map_or(Standing::Primary, Standing::Applied))
}

/// `synchronous_commit` is no risk: every transaction states its own.
pub(super) async fn durability_risk(data: &PostgresData) -> Result<Option<String>> {
    let unsafe_fsync = asked(data, "SELECT 1::bigint WHERE NOT current_setting('fsync')::boolean");
    let risk = "the server runs with fsync = off: a commit that it has confirmed is lost, and the \
                database may be damaged, when its machine stops; set fsync = on";
    Ok(unsafe_fsync.await?.map(|_| risk.to_owned()))
}

async fn asked(data: &PostgresData, sql: &str) -> Result<Option<i64>> {
    let settings = format!(
        "SET TRANSACTION READ ONLY; SET LOCAL statement_timeout = {}",
        milliseconds(MEASURING)
    );
    let rows = data.db.single(&settings, sql, &[]).await?;
    rows.first().map_or(Ok(None), |row| row::get(row, 0))
}
