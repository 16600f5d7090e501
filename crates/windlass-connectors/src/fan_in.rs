//! Fan-in: reading the rows of parts, reducing them and loading the result.

use crate::{ConnectorError, Ledger, Result, RowSet, Scope};
use async_trait::async_trait;
use futures::stream::BoxStream;
use std::collections::{BTreeMap, HashSet};
use tokio::sync::mpsc::Sender;
use windlass_core::config::names;
use windlass_core::problem::{Code, Problem};
use windlass_core::{Column, ColumnType, Counts, KeySet, Load, Template, Value};
use windlass_drivers::{Error, ErrorClass};
#[cfg(feature = "export")]
use windlass_export::RecordBatch;

/// Rows with their columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// The columns, as described by the database that produced the rows.
    pub columns: Vec<Column>,
    /// The values, row by row.
    pub rows: Vec<Vec<Value>>,
}

/// The result of a `map` statement on a key set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapped {
    /// The rows that the statement returned.
    pub rows: RowSet,
    /// The number of records of the key set when the statement ran.
    pub read: i64,
}

impl Mapped {
    /// Takes the number of records from a result that has it. `None` if the records have to be counted.
    pub(crate) fn counted(scope: &Scope, rows: &RowSet) -> Result<Option<i64>> {
        let template = scope.job_type.statement()?;
        let Some(column) = template.and_then(|template| template.row_count_column()) else {
            return Ok(None);
        };
        let count = |row: &Vec<Value>| match row.get(column) {
            Some(Value::Int(count)) => Some(*count),
            _ => None,
        };
        Ok(rows.iter().map(count).sum())
    }
}

/// A stream of rows, part by part.
pub type Parts<'a> = BoxStream<'a, Result<Vec<Vec<Value>>>>;

/// The request's params.
pub type Params = BTreeMap<String, serde_json::Value>;

/// Reads the rows that become the parts of a job.
#[async_trait]
pub trait FanIn: Send + Sync {
    /// The columns that the job's `map` statement returns.
    async fn map_columns(&self, scope: &Scope) -> Result<Vec<Column>>;
    /// Runs the job's `map` statement on a key set, and counts the records that it read on the same
    /// snapshot.
    async fn map(&self, scope: &Scope, columns: &[Column], key_set: &KeySet) -> Result<Mapped>;
    /// Reads the rows of a key set in key order, on one snapshot, and sends them as batches. Ends early
    /// when the receiver is dropped.
    #[cfg(feature = "export")]
    async fn extract(&self, scope: &Scope, extraction: Extraction<'_>) -> Result<()>;
}

/// Reduces the parts of a job, and loads the result into a table.
#[async_trait]
pub trait Merge: Send + Sync {
    /// Runs a SELECT over a temporary table `parts`.
    async fn reduce(&self, reduction: Reduction<'_>) -> Result<Rows>;
    /// The same, but sends the result in batches, for a result that may not fit into memory. Sends at least one
    /// batch, so that the receiver gets the columns. Ends early when the receiver is dropped.
    async fn reduce_into(&self, reduction: Reduction<'_>, batches: Sender<Rows>) -> Result<()> {
        let Rows { columns, rows } = self.reduce(reduction).await?;
        send_rows(&batches, &columns, rows).await;
        Ok(())
    }
    /// Prepares the statements that replace rows of the load's table by rows with these columns, without
    /// running them.
    async fn prepare_replace(&self, load: &Load, columns: &[Column]) -> Result<()> {
        let _ = (load, columns);
        Ok(())
    }
    /// Replaces rows of a table by these, in one transaction that begins with the compare-and-set on
    /// the ledger row. Refuses a result with a row outside the bounds, and deletes no row outside
    /// them.
    async fn replace(&self, ledger: &Ledger, request: LoadRequest<'_>) -> Result<Ledger>;
    /// Replaces rows of a table by those of Parquet files in S3, in one transaction that begins with the
    /// compare-and-set on the ledger row.
    async fn copy(&self, ledger: &Ledger, request: CopyRequest<'_>) -> Result<Ledger> {
        let _ = (ledger, request);
        let detail = "needs a connection to Redshift";
        Err(Problem::field(Code::Source, "load.copy", detail).into())
    }
}

/// Sends a result that is in memory in batches.
async fn send_rows(batches: &Sender<Rows>, columns: &[Column], rows: Vec<Vec<Value>>) {
    let batch = |rows| Rows { columns: columns.to_vec(), rows };
    if rows.is_empty() {
        let _ = batches.send(batch(rows)).await;
        return;
    }
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let next = rows.by_ref().take(MAX_BATCH_ROWS).collect();
        if batches.send(batch(next)).await.is_err() {
            return;
        }
    }
}

/// The rows to extract, and where to send them.
#[cfg(feature = "export")]
pub struct Extraction<'a> {
    /// The records.
    pub key_set: &'a KeySet,
    /// The columns of the batches.
    pub columns: &'a [Column],
    /// Receives the batches.
    pub batches: Sender<RecordBatch>,
}

/// The parts to reduce, and the SELECT over them.
pub struct Reduction<'a> {
    /// The columns of the parts.
    pub columns: &'a [Column],
    /// The rows of the parts.
    pub parts: Parts<'a>,
    /// The user's SELECT.
    pub select: &'a Template,
    /// The request's params.
    pub params: &'a Params,
}

/// A result to load into a table.
#[derive(Clone, Copy)]
pub struct LoadRequest<'a> {
    /// The table and the columns by which rows are replaced.
    pub load: &'a Load,
    /// The result.
    pub result: &'a Rows,
    /// The request's params.
    pub params: &'a Params,
    /// The restrictions of the job.
    pub bounds: &'a [Bound],
}

impl LoadRequest<'_> {
    /// Refuses a result that must not be loaded: a row outside the bounds, or without a value for a column of
    /// `load.replace`.
    pub fn check(self) -> Result<()> {
        Replacement::new(self).map(drop)
    }
}

/// Parquet files in S3 to load into a table.
pub struct CopyRequest<'a> {
    /// The table and the columns by which rows are replaced.
    pub load: &'a Load,
    /// The URL of the manifest. `None` if there are no files.
    pub manifest: Option<&'a str>,
    /// The role with which Redshift reads the files.
    pub iam_role: &'a str,
    /// The columns of the files, in their order.
    pub columns: &'a [StagedColumn],
    /// The number of rows in all files.
    pub rows: i64,
    /// The request's params.
    pub params: &'a Params,
    /// The restrictions of the job. The rows were checked before they were written.
    pub bounds: &'a [Bound],
}

/// A column of the staging table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedColumn {
    /// Its name.
    pub name: String,
    /// Its type in Redshift.
    pub sql_type: String,
}

/// A filter or a claim of the job as a restriction of the rows that it loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The column, in the source and in the loaded table.
    pub column: String,
    /// The allowed values.
    pub values: Vec<Value>,
    /// Whether it is a claim. Claims compare by bytes. A filter may have matched values that differ in
    /// case or in trailing spaces.
    pub is_claim: bool,
}

impl Bound {
    /// Refuses the values of a column if one is not allowed. The message does not contain the value, which
    /// may come from rows that the submitter must not see.
    fn check<'a>(&self, kind: ColumnType, found: impl Iterator<Item = &'a Value>) -> Result<()> {
        let allowed: HashSet<_> =
            self.values.iter().map(|value| self.normalize(kind, value)).collect();
        let mut found = found.map(|value| self.normalize(kind, value));
        if found.all(|value| value.is_some() && allowed.contains(&value)) {
            return Ok(());
        }
        let (column, what) = (&self.column, if self.is_claim { "claims" } else { "filter" });
        let detail = format!(
            "the result has a row whose `{column}` is outside the {what} of the job; nothing was \
             loaded"
        );
        Err(Problem::field(Code::Source, "load", detail).into())
    }

    /// The form in which a value is compared. `None` for NULL, which is never allowed.
    fn normalize(&self, kind: ColumnType, value: &Value) -> Option<String> {
        let text = match value {
            Value::Bool(value) => i32::from(*value).to_string(),
            value => value.to_text()?,
        };
        let is_number = matches!(value, Value::Int(_) | Value::Float(_))
            || matches!(kind, ColumnType::Int | ColumnType::Float | ColumnType::Numeric);
        Some(match kind {
            _ if is_number => match text.trim_start_matches('+') {
                number if number.contains('.') && !number.contains(['e', 'E']) => {
                    number.trim_end_matches('0').trim_end_matches('.').to_owned()
                }
                number => number.to_owned(),
            },
            ColumnType::Timestamp => {
                let text = text.replacen('T', " ", 1);
                let zone = ["Z", "+00:00", "+00"].iter().find_map(|zone| text.strip_suffix(zone));
                zone.unwrap_or(&text).to_owned()
            }
            _ if self.is_claim => text,
            _ => text.trim_end().to_lowercase(),
        })
    }
}

/// The most rows of a batch that `extract` sends.
pub(crate) const MAX_BATCH_ROWS: usize = 8192;
/// The most bytes of a batch that `extract` sends, by estimate.
pub(crate) const MAX_BATCH_BYTES: usize = 4 << 20;

/// Converts an error of a value that does not fit its column.
#[cfg(feature = "export")]
pub(crate) fn data_error(error: windlass_export::Error) -> ConnectorError {
    Error::new(ErrorClass::Data, error.to_string()).into()
}

/// The rows that a load deletes and inserts.
#[derive(Debug, PartialEq)]
pub(crate) struct Replacement {
    /// The columns by which rows are deleted.
    pub(crate) delete_by: Vec<String>,
    /// The values of those columns in the deleted rows, without duplicates.
    pub(crate) deleted: Vec<Vec<Value>>,
    /// Which of those columns are compared by bytes, since they are claims.
    pub(crate) exact: Vec<bool>,
    /// The inserted columns.
    pub(crate) columns: Vec<String>,
    /// The inserted rows.
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Replacement {
    /// The counts of the commit that loads the rows.
    pub(crate) fn counts(&self) -> Counts {
        let inserted = self.rows.len() as i64;
        Counts { read: inserted, processed: inserted, ..Counts::default() }
    }

    /// A replacement by one row without values, for statements that are not run.
    pub(crate) fn sample(load: &Load, columns: &[Column]) -> Replacement {
        let mut names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let more: Vec<&String> = load.replace.iter().filter(|name| !names.contains(name)).collect();
        names.extend(more.into_iter().cloned());
        let nulls = |count: usize| vec![vec![Value::Null; count]];
        Replacement {
            delete_by: load.replace.clone(),
            deleted: if load.replace.is_empty() { Vec::new() } else { nulls(load.replace.len()) },
            exact: vec![true; load.replace.len()],
            rows: nulls(names.len()),
            columns: names,
        }
    }

    /// Where the result lacks a column of `replace`, the param of that name is its value, in the deleted
    /// and in the inserted rows.
    pub(crate) fn new(request: LoadRequest<'_>) -> Result<Replacement> {
        let LoadRequest { load, result, params, bounds } = request;
        let mut columns: Vec<String> =
            result.columns.iter().map(|column| column.name.clone()).collect();
        let mut rows = result.rows.clone();
        let param = |name: &String| params.get(name).cloned().map(Value::from_json);
        for name in load
            .replace
            .iter()
            .filter(|name| !result.columns.iter().any(|column| column.name == **name))
        {
            let value = param(name).ok_or_else(|| {
                let detail = format!(
                    "names `{name}`, which is neither a column of the result nor a param; there \
                     are {}",
                    names(columns.iter().chain(params.keys()))
                );
                Problem::field(Code::Source, "load.replace", detail)
            })?;
            columns.push(name.clone());
            rows.iter_mut().for_each(|row| row.push(value.clone()));
        }
        let position = |name: &String| columns.iter().position(|column| column == name);
        let positions: Vec<usize> = load.replace.iter().filter_map(position).collect();
        let mut deleted: Vec<Vec<Value>> = Vec::new();
        let mut seen = HashSet::new();
        let of_params = load.replace.iter().map(param).collect::<Option<Vec<_>>>();
        let of_rows = rows.iter().map(|row| positions.iter().map(|n| row[*n].clone()).collect());
        for values in of_params.into_iter().chain(of_rows) {
            if !load.replace.is_empty() && seen.insert(windlass_core::Key(values.clone()).to_text())
            {
                deleted.push(values);
            }
        }
        for bound in bounds {
            let by = load.replace.iter().position(|name| *name == bound.column);
            let (Some(by), Some(position)) = (by, position(&bound.column)) else {
                let detail = format!("lacks `{}`, by which the job is restricted", bound.column);
                return Err(Problem::field(Code::Source, "load.replace", detail).into());
            };
            let kind = result.columns.get(position).map_or(ColumnType::Other, |column| column.kind);
            let deleted = deleted.iter().map(|row| &row[by]);
            bound.check(kind, rows.iter().map(|row| &row[position]).chain(deleted))?;
        }
        let is_claim =
            |name: &String| bounds.iter().any(|bound| bound.is_claim && bound.column == *name);
        let exact = load.replace.iter().map(is_claim).collect();
        Ok(Replacement { delete_by: load.replace.clone(), deleted, exact, columns, rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn replacement(
        load: &Load,
        result: &Rows,
        params: &Params,
        bounds: &[Bound],
    ) -> Result<Replacement> {
        Replacement::new(LoadRequest { load, result, params, bounds })
    }

    fn load(replace: &[&str]) -> Load {
        let replace = replace.iter().map(|name| (*name).to_owned()).collect();
        Load { connection: "w".into(), table: "t".into(), replace, copy: None }
    }

    fn rows() -> Rows {
        let column = |name: &str| Column {
            name: name.to_owned(),
            kind: ColumnType::Text,
            sql_type: "text".to_owned(),
            nullable: true,
        };
        let row = |branch: &str, n: i64| vec![Value::from(branch), Value::Int(n)];
        Rows {
            columns: vec![column("branch"), column("n")],
            rows: vec![row("a", 1), row("b", 2), row("a", 3)],
        }
    }

    #[test]
    fn deletes_by_the_values_of_the_result() {
        let made = replacement(&load(&["branch"]), &rows(), &Params::new(), &[]).unwrap();
        assert_eq!(made.deleted, [vec![Value::from("a")], vec![Value::from("b")]]);
        assert_eq!(made.rows.len(), 3);
    }

    #[test]
    fn a_param_replaces_a_missing_column() {
        let params = serde_json::from_value(json!({"date": "2025-01-01"})).unwrap();
        let made = replacement(&load(&["date"]), &rows(), &params, &[]).unwrap();
        assert_eq!(made.deleted, [vec![Value::from("2025-01-01")]]);
        assert_eq!(made.columns, ["branch", "n", "date"]);
        assert!(made.rows.iter().all(|row| row[2] == Value::from("2025-01-01")));
        let nothing = Rows { rows: Vec::new(), ..rows() };
        assert_eq!(replacement(&load(&["date"]), &nothing, &params, &[]).unwrap().deleted.len(), 1);
        let refused = replacement(&load(&["day"]), &rows(), &params, &[]).unwrap_err();
        assert!(refused.to_string().contains("`day`"), "{refused}");
    }

    #[test]
    fn without_replace_nothing_is_deleted() {
        let made = replacement(&load(&[]), &rows(), &Params::new(), &[]).unwrap();
        assert_eq!((made.deleted.len(), made.rows.len()), (0, 3));
    }

    fn within(column: &str, values: &[&str], is_claim: bool) -> Bound {
        let values = values.iter().map(|value| Value::from(*value)).collect();
        Bound { column: column.to_owned(), values, is_claim }
    }

    #[test]
    fn rows_outside_a_claim_or_filter_are_refused() {
        let made = |replace: &[&str], params: serde_json::Value, bounds: &[Bound]| {
            let params = serde_json::from_value(params).unwrap();
            replacement(&load(replace), &rows(), &params, bounds)
        };
        let both = [within("branch", &["a", "b", "c"], true)];
        assert_eq!(made(&["branch"], json!({}), &both).unwrap().exact, [true]);
        for refused in [
            within("branch", &["a"], true),
            within("branch", &["A", "B"], true),
            within("branch", &["a "], true),
            within("branch", &["a"], false),
            within("county", &["a"], true),
        ] {
            assert!(
                made(&["branch"], json!({}), std::slice::from_ref(&refused)).is_err(),
                "{refused:?}"
            );
        }
        // A filter matches what its column considers equal.
        assert!(made(&["branch"], json!({}), &[within("branch", &["A", "b "], false)]).is_ok());
        // A param of the caller cannot circumvent a claim.
        let kent = [within("county", &["Kent"], true)];
        assert!(made(&["county"], json!({"county": "Kent"}), &kent).is_ok());
        assert!(made(&["county"], json!({"county": "Essex"}), &kent).is_err());
        let number = Bound { column: "n".into(), values: vec![Value::from("1.0")], is_claim: true };
        assert!(made(&["n"], json!({}), &[number]).is_err(), "the result also has 2 and 3");
    }
}
