//! Fan-in: what the user's databases do with parts.

use crate::{DataError, Ledger, Result, Scope};
use async_trait::async_trait;
use futures::stream::BoxStream;
use std::collections::{BTreeMap, HashSet};
use tokio::sync::mpsc::Sender;
use windlass_core::config::names;
use windlass_core::problem::{Code, Problem};
use windlass_core::{Column, ColumnType, KeySet, Load, Template, Value};
use windlass_drivers::{Class, Error};
#[cfg(feature = "export")]
use windlass_export::RecordBatch;

/// Rows with their columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// The columns, as the database that made them describes them.
    pub columns: Vec<Column>,
    /// The values, row by row.
    pub rows: Vec<Vec<Value>>,
}

/// Rows that arrive part by part.
pub type Parts<'a> = BoxStream<'a, Result<Vec<Vec<Value>>>>;

/// The request's params.
pub type Params = BTreeMap<String, serde_json::Value>;

/// Computes parts, brings them together, and puts the result into a table.
#[async_trait]
pub trait FanIn: Send + Sync {
    /// The columns that the job's `map` gives.
    async fn map_columns(&self, scope: &Scope) -> Result<Vec<Column>>;
    /// The rows that it gives for an key_set.
    async fn map(
        &self,
        scope: &Scope,
        columns: &[Column],
        key_set: &KeySet,
    ) -> Result<Vec<Vec<Value>>>;
    /// Reads the rows of an key_set in key order, on one snapshot, and sends them as batches of these
    /// columns. Whoever takes them no more ends it.
    #[cfg(feature = "export")]
    async fn extract(
        &self,
        scope: &Scope,
        key_set: &KeySet,
        columns: &[Column],
        to: Sender<RecordBatch>,
    ) -> Result<()>;
    /// Runs a SELECT over a temporary table `parts` with these columns and rows.
    async fn reduce(
        &self,
        columns: &[Column],
        parts: Parts<'_>,
        select: &Template,
        params: &Params,
    ) -> Result<Rows>;
    /// Replaces the rows of a table by these, in one transaction that begins with the
    /// compare-and-set on the ledger. A result with a row outside the bounds is refused, and no
    /// row outside them is deleted.
    async fn replace(
        &self,
        ledger: &Ledger,
        load: &Load,
        result: &Rows,
        params: &Params,
        bounds: &[Bound],
    ) -> Result<Ledger>;
}

/// What a filter or a claim of the job says of a column of the rows it loads.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The column, of the source and of the loaded table.
    pub column: String,
    /// The values that it may have.
    pub values: Vec<Value>,
    /// Whether a claim says so. Claims compare by bytes; a filter may have found what differs in
    /// case or in spaces at the end.
    pub is_claim: bool,
}

impl Bound {
    /// Refuses the values of a column if one is not within the bound. The message does not name
    /// the value, which may be of rows that the submitter must not see.
    fn check<'a>(&self, kind: ColumnType, found: impl Iterator<Item = &'a Value>) -> Result<()> {
        let allowed: HashSet<_> =
            self.values.iter().map(|value| self.normal(kind, value)).collect();
        let mut found = found.map(|value| self.normal(kind, value));
        if found.all(|value| value.is_some() && allowed.contains(&value)) {
            return Ok(());
        }
        let (column, what) = (&self.column, if self.is_claim { "claims" } else { "filter" });
        let detail = format!(
            "the result has a row whose `{column}` is not within the {what} of the job; nothing was \
             loaded"
        );
        Err(Problem::field(Code::Source, "load", detail).into())
    }

    /// A value as it is compared; `None` for NULL, which is within no bound.
    fn normal(&self, kind: ColumnType, value: &Value) -> Option<String> {
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

/// Rows of a batch that is sent: enough to be cheap, few enough to be small.
pub(crate) const BATCH: usize = 8192;
/// Bytes of a batch that is sent.
pub(crate) const BATCH_BYTES: usize = 4 << 20;

/// A value that fits no column is an error of the data.
#[cfg(feature = "export")]
pub(crate) fn misfit(error: windlass_export::Error) -> DataError {
    Error::new(Class::Data, error.to_string()).into()
}

/// What a load does: which rows it removes and what it inserts.
#[derive(Debug, PartialEq)]
pub(crate) struct Replacement {
    /// The columns that say which rows go.
    pub(crate) by: Vec<String>,
    /// The values of those columns in the rows that go, each once.
    pub(crate) gone: Vec<Vec<Value>>,
    /// Which of the columns are compared by bytes, since they hold a claim.
    pub(crate) exact: Vec<bool>,
    /// The columns that are inserted.
    pub(crate) columns: Vec<String>,
    /// The rows that are inserted.
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Replacement {
    /// A column of `replace` that the result lacks is the param of that name, in the rows that go
    /// and in those that come.
    pub(crate) fn of(
        load: &Load,
        result: &Rows,
        params: &Params,
        bounds: &[Bound],
    ) -> Result<Replacement> {
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
                     is {}",
                    names(columns.iter().chain(params.keys()))
                );
                Problem::field(Code::Source, "load.replace", detail)
            })?;
            columns.push(name.clone());
            rows.iter_mut().for_each(|row| row.push(value.clone()));
        }
        let place = |name: &String| columns.iter().position(|column| column == name);
        let places: Vec<usize> = load.replace.iter().filter_map(place).collect();
        let mut gone: Vec<Vec<Value>> = Vec::new();
        let mut seen = HashSet::new();
        let of_params = load.replace.iter().map(param).collect::<Option<Vec<_>>>();
        let of_rows = rows.iter().map(|row| places.iter().map(|n| row[*n].clone()).collect());
        for values in of_params.into_iter().chain(of_rows) {
            if !load.replace.is_empty() && seen.insert(windlass_core::Key(values.clone()).to_text())
            {
                gone.push(values);
            }
        }
        for bound in bounds {
            let by = load.replace.iter().position(|name| *name == bound.column);
            let (Some(by), Some(place)) = (by, place(&bound.column)) else {
                let detail = format!("lacks `{}`, which the job is restricted by", bound.column);
                return Err(Problem::field(Code::Source, "load.replace", detail).into());
            };
            let kind = result.columns.get(place).map_or(ColumnType::Other, |column| column.kind);
            let gone = gone.iter().map(|row| &row[by]);
            bound.check(kind, rows.iter().map(|row| &row[place]).chain(gone))?;
        }
        let is_claim =
            |name: &String| bounds.iter().any(|bound| bound.is_claim && bound.column == *name);
        let exact = load.replace.iter().map(is_claim).collect();
        Ok(Replacement { by: load.replace.clone(), gone, exact, columns, rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn load(replace: &[&str]) -> Load {
        let replace = replace.iter().map(|name| (*name).to_owned()).collect();
        Load { connection: "w".into(), table: "t".into(), replace }
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
    fn rows_go_by_what_the_result_has() {
        let made = Replacement::of(&load(&["branch"]), &rows(), &Params::new(), &[]).unwrap();
        assert_eq!(made.gone, [vec![Value::from("a")], vec![Value::from("b")]]);
        assert_eq!(made.rows.len(), 3);
    }

    #[test]
    fn a_param_stands_for_a_column_that_is_missing() {
        let params = serde_json::from_value(json!({"date": "2025-01-01"})).unwrap();
        let made = Replacement::of(&load(&["date"]), &rows(), &params, &[]).unwrap();
        assert_eq!(made.gone, [vec![Value::from("2025-01-01")]]);
        assert_eq!(made.columns, ["branch", "n", "date"]);
        assert!(made.rows.iter().all(|row| row[2] == Value::from("2025-01-01")));
        let nothing = Rows { rows: Vec::new(), ..rows() };
        assert_eq!(
            Replacement::of(&load(&["date"]), &nothing, &params, &[]).unwrap().gone.len(),
            1
        );
        let refused = Replacement::of(&load(&["day"]), &rows(), &params, &[]).unwrap_err();
        assert!(refused.to_string().contains("`day`"), "{refused}");
    }

    #[test]
    fn without_replace_nothing_goes() {
        let made = Replacement::of(&load(&[]), &rows(), &Params::new(), &[]).unwrap();
        assert_eq!((made.gone.len(), made.rows.len()), (0, 3));
    }

    fn within(column: &str, values: &[&str], is_claim: bool) -> Bound {
        let values = values.iter().map(|value| Value::from(*value)).collect();
        Bound { column: column.to_owned(), values, is_claim }
    }

    #[test]
    fn rows_outside_a_claim_or_filter_are_refused() {
        let made = |replace: &[&str], params: serde_json::Value, bounds: &[Bound]| {
            let params = serde_json::from_value(params).unwrap();
            Replacement::of(&load(replace), &rows(), &params, bounds)
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
        // A filter finds what its column holds equal.
        assert!(made(&["branch"], json!({}), &[within("branch", &["A", "b "], false)]).is_ok());
        // A param of the caller's choice is no way around her claim.
        let kent = [within("county", &["Kent"], true)];
        assert!(made(&["county"], json!({"county": "Kent"}), &kent).is_ok());
        assert!(made(&["county"], json!({"county": "Essex"}), &kent).is_err());
        let number = Bound { column: "n".into(), values: vec![Value::from("1.0")], is_claim: true };
        assert!(made(&["n"], json!({}), &[number]).is_err(), "there are 2 and 3 too");
    }
}
