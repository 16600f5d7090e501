//! The lag that a replica reports for each of its sources.

use super::{MEASURE_TIMEOUT, MysqlConnection, release};
use crate::{Replication, Result};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_drivers::mysql::{Row, Value};
use windlass_drivers::{Error, ErrorClass};

/// The statements of MariaDB 10.5 and later, of MySQL 8.0.22 and later, and of older MariaDB and MySQL.
/// Each server accepts only its own. With `ALL`, MariaDB includes the connections that have a name.
const STATUS_STATEMENTS: [&str; 4] = [
    "SHOW ALL REPLICAS STATUS",
    "SHOW REPLICA STATUS",
    "SHOW ALL SLAVES STATUS",
    "SHOW SLAVE STATUS",
];

/// The values of a status row by column name.
type Fields = BTreeMap<String, Option<String>>;

pub(super) async fn replication(data: &MysqlConnection) -> Result<Replication> {
    let mut transaction = data.read_tx(MEASURE_TIMEOUT).await?;
    let mut answer = Ok(Vec::new());
    for sql in STATUS_STATEMENTS {
        answer = transaction.query(sql, Vec::new()).await;
        if !matches!(&answer, Err(error) if error.class == ErrorClass::Definition) {
            break;
        }
    }
    let rows = release(transaction, answer.map_err(|error| with_advice(error).into())).await?;
    greatest_lag(&rows.iter().map(fields).collect::<Vec<_>>())
}

/// Adds the missing privilege to the message. A refused login needs no advice.
fn with_advice(error: Error) -> Error {
    match error.code.as_deref() {
        Some("1227") => Error { message: format!("{}; {GRANTS}", error.message), ..error },
        _ => error,
    }
}

const GRANTS: &str = "grant it with GRANT SLAVE MONITOR ON *.*, or on MySQL and older MariaDB with \
                      GRANT REPLICATION CLIENT ON *.*";

/// The greatest lag of its sources. A server without sources is a primary.
fn greatest_lag(rows: &[Fields]) -> Result<Replication> {
    let mut greatest = None;
    for row in rows {
        let seconds = ["Seconds_Behind_Source", "Seconds_Behind_Master"];
        let seconds = seconds.iter().find_map(|name| row.get(*name).cloned().flatten());
        let Some(seconds) = seconds.and_then(|seconds| seconds.parse::<u64>().ok()) else {
            return Err(Error::new(ErrorClass::Other, broken(row)).into());
        };
        greatest = greatest.max(Some(Duration::from_secs(seconds)));
    }
    Ok(greatest.map_or(Replication::Primary, Replication::Behind))
}

/// Without a number, one of the two replication threads is stopped. The server may report the error.
fn broken(row: &Fields) -> String {
    let errors = ["Last_IO_Error", "Last_SQL_Error", "Last_Error"];
    let why = errors.iter().find_map(|name| row.get(*name)?.as_deref().filter(|e| !e.is_empty()));
    format!("its replication is stopped: {}", why.unwrap_or("the server reports no error"))
}

fn fields(row: &Row) -> Fields {
    let text = |index: usize| match row.as_ref(index)? {
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::Int(number) => Some(number.to_string()),
        Value::UInt(number) => Some(number.to_string()),
        _ => None,
    };
    let columns = row.columns_ref().iter().enumerate();
    columns.map(|(index, column)| (column.name_str().into_owned(), text(index))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(fields: &[(&str, Option<&str>)]) -> Fields {
        let field =
            |(name, value): &(&str, Option<&str>)| ((*name).to_owned(), value.map(str::to_owned));
        fields.iter().map(field).collect()
    }

    #[test]
    fn the_greatest_lag_of_all_sources_counts() {
        assert_eq!(greatest_lag(&[]).unwrap(), Replication::Primary);
        let (old, new) = ("Seconds_Behind_Master", "Seconds_Behind_Source");
        let rows = [row(&[(old, Some("3"))]), row(&[(old, Some("12"))]), row(&[(old, Some("0"))])];
        assert_eq!(greatest_lag(&rows).unwrap(), Replication::Behind(Duration::from_secs(12)));
        assert_eq!(
            greatest_lag(&[row(&[(new, Some("0"))])]).unwrap(),
            Replication::Behind(Duration::ZERO)
        );
    }

    #[test]
    fn stopped_replication_is_an_error_with_its_cause() {
        let stopped = row(&[
            ("Seconds_Behind_Master", None),
            ("Last_IO_Error", Some("")),
            ("Last_SQL_Error", Some("Duplicate entry")),
        ]);
        let error =
            greatest_lag(&[row(&[("Seconds_Behind_Master", Some("0"))]), stopped]).unwrap_err();
        assert!(error.to_string().contains("Duplicate entry"), "{error}");
        let silent = greatest_lag(&[row(&[("Seconds_Behind_Master", None)])]).unwrap_err();
        assert!(silent.to_string().contains("is stopped"), "{silent}");
    }
}
