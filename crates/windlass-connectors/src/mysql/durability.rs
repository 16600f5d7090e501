//! Detects server settings by which a confirmed commit could be lost. No session can change them.

use super::row::int;
use super::{MEASURE_TIMEOUT, MysqlConnection, release};
use crate::{ConnectorError, Result};

pub(super) async fn risk(data: &MysqlConnection) -> Result<Option<String>> {
    let mut transaction = data.read_tx(MEASURE_TIMEOUT).await?;
    let sql = "SELECT @@innodb_flush_log_at_trx_commit + 0, @@log_bin + 0, @@sync_binlog + 0";
    let rows = transaction.query(sql, Vec::new()).await.map_err(ConnectorError::from);
    let rows = release(transaction, rows).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(risk_of(int(row, 0)?, int(row, 1)? != 0, int(row, 2)?))
}

/// MariaDB's 3 is as safe as 1. With a binary log, the server decides by that log after a crash which
/// transactions were committed, and rolls back one that was not written to it.
fn risk_of(flush: i64, has_binlog: bool, sync_binlog: i64) -> Option<String> {
    let mut wrong = Vec::new();
    if !matches!(flush, 1 | 3) {
        wrong.push(format!("innodb_flush_log_at_trx_commit = {flush}"));
    }
    if has_binlog && sync_binlog != 1 {
        wrong.push(format!("sync_binlog = {sync_binlog} with a binary log"));
    }
    (!wrong.is_empty()).then(|| {
        format!(
            "the server runs with {}: when its machine crashes, a confirmed commit can be lost, and \
             Windlass would not repeat it; set both to 1",
            wrong.join(" and ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_flushing_at_each_commit_is_safe() {
        assert_eq!(risk_of(1, false, 0), None);
        assert_eq!(risk_of(3, true, 1), None);
        assert!(risk_of(2, false, 1).unwrap().contains("innodb_flush_log_at_trx_commit = 2"));
        let binlog = risk_of(1, true, 0).unwrap();
        assert!(binlog.contains("sync_binlog = 0") && !binlog.contains("innodb"), "{binlog}");
    }
}
