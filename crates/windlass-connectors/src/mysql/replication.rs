//! How far a replica is behind by its own account, for each server it copies.

use super::{MEASURING, MysqlData, release};
use crate::{Result, Standing};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_drivers::mysql::{Row, Value};
use windlass_drivers::{Class, Error};

/// MariaDB since 10.5, MySQL since 8.0.22, MariaDB and MySQL before: each refuses the others' words.
/// MariaDB is asked for all it copies, since the plain word leaves out what has a name.
const ASK: [&str; 4] = [
    "SHOW ALL REPLICAS STATUS",
    "SHOW REPLICA STATUS",
    "SHOW ALL SLAVES STATUS",
    "SHOW SLAVE STATUS",
];

/// A row of the answer, by the names of its columns.
type Fields = BTreeMap<String, Option<String>>;

pub(super) async fn standing(data: &MysqlData) -> Result<Standing> {
    let mut transaction = data.reading(MEASURING).await?;
    let mut answer = Ok(Vec::new());
    for sql in ASK {
        answer = transaction.query(sql, Vec::new()).await;
        if !matches!(&answer, Err(error) if error.class == Class::Definition) {
            break;
        }
    }
    let rows = release(transaction, answer.map_err(|error| with_advice(error).into())).await?;
    of(&rows.iter().map(fields).collect::<Vec<_>>())
}

/// Who may not ask is told what would let it. A login that was refused speaks for itself.
fn with_advice(error: Error) -> Error {
    match error.code.as_deref() {
        Some("1227") => Error { message: format!("{}; {GRANTS}", error.message), ..error },
        _ => error,
    }
}

const GRANTS: &str = "GRANT SLAVE MONITOR ON *.* lets it be asked, on MySQL and older MariaDB \
                      GRANT REPLICATION CLIENT ON *.*";

/// As far behind as behind the furthest of its sources. None of them: nobody's copy.
fn of(rows: &[Fields]) -> Result<Standing> {
    let mut most = None;
    for row in rows {
        let seconds = ["Seconds_Behind_Source", "Seconds_Behind_Master"];
        let seconds = seconds.iter().find_map(|name| row.get(*name).cloned().flatten());
        let Some(seconds) = seconds.and_then(|seconds| seconds.parse::<u64>().ok()) else {
            return Err(Error::new(Class::Other, broken(row)).into());
        };
        most = most.max(Some(Duration::from_secs(seconds)));
    }
    Ok(most.map_or(Standing::Primary, Standing::Behind))
}

/// Where the number is missing, one of the two threads does not run; the server may say why.
fn broken(row: &Fields) -> String {
    let errors = ["Last_IO_Error", "Last_SQL_Error", "Last_Error"];
    let why = errors.iter().find_map(|name| row.get(*name)?.as_deref().filter(|e| !e.is_empty()));
    format!("its replication does not run: {}", why.unwrap_or("the server does not say why"))
}

fn fields(row: &Row) -> Fields {
    let text = |place: usize| match row.as_ref(place)? {
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::Int(number) => Some(number.to_string()),
        Value::UInt(number) => Some(number.to_string()),
        _ => None,
    };
    let columns = row.columns_ref().iter().enumerate();
    columns.map(|(place, column)| (column.name_str().into_owned(), text(place))).collect()
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
    fn the_furthest_source_counts_under_either_name() {
        assert_eq!(of(&[]).unwrap(), Standing::Primary);
        let (old, new) = ("Seconds_Behind_Master", "Seconds_Behind_Source");
        let rows = [row(&[(old, Some("3"))]), row(&[(old, Some("12"))]), row(&[(old, Some("0"))])];
        assert_eq!(of(&rows).unwrap(), Standing::Behind(Duration::from_secs(12)));
        assert_eq!(of(&[row(&[(new, Some("0"))])]).unwrap(), Standing::Behind(Duration::ZERO));
    }

    #[test]
    fn a_replica_that_does_not_run_says_why() {
        let stopped = row(&[
            ("Seconds_Behind_Master", None),
            ("Last_IO_Error", Some("")),
            ("Last_SQL_Error", Some("Duplicate entry")),
        ]);
        let error = of(&[row(&[("Seconds_Behind_Master", Some("0"))]), stopped]).unwrap_err();
        assert!(error.to_string().contains("Duplicate entry"), "{error}");
        let silent = of(&[row(&[("Seconds_Behind_Master", None)])]).unwrap_err();
        assert!(silent.to_string().contains("does not run"), "{silent}");
    }
}
