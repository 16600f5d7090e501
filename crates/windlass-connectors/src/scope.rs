//! The records that a job covers: the source, `source.where`, the request's filters and the submitter's
//! claims, resolved against the table.

use crate::fan_in::Bound;
use std::collections::BTreeMap;
use windlass_core::claims::is_unrestricted;
use windlass_core::{
    Column, ColumnType, FilterValue, Identity, JobType, Problem, Request, StepKind, Table, Value,
};

/// The restrictions of one job, the same for all its statements.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The job's definition, with its key columns resolved.
    pub job_type: JobType,
    /// The schema of the source.
    pub table: Table,
    /// The request's filters: name, column, values.
    pub filters: Vec<(String, String, Vec<Value>)>,
    /// The submitter's claims: column, values.
    pub claims: Vec<(String, Vec<Value>)>,
    /// The request's params.
    pub params: BTreeMap<String, serde_json::Value>,
    /// The snapshot that everything is read under. `None` if every transaction reads at its own instant.
    pub read_snapshot: Option<ReadSnapshot>,
}

/// One instant of a database, exported by a transaction that is open as long as the snapshot is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadSnapshot {
    /// Its name on its server.
    pub name: String,
    /// What identifies it. A server may use a name again after a restart.
    pub fingerprint: String,
}

impl Scope {
    /// Resolves a request against the job type and its table.
    pub fn new(
        job_type: JobType,
        table: Table,
        request: &Request,
        identity: &Identity,
    ) -> Result<Scope, Problem> {
        request.check(&job_type, identity, &table)?;
        let mut filters = Vec::new();
        for (name, values) in request.filters() {
            let column = &job_type.source.filters[name];
            let read = |value| match table.column(column) {
                // A column without a type, as in a query of SQLite, compares by the type of the value.
                None | Some(Column { kind: ColumnType::Other, .. }) => {
                    Value::from_json(serde_json::Value::clone(value))
                }
                Some(column) => column.read(value).unwrap_or(Value::Null),
            };
            filters.push((name.to_owned(), column.clone(), values.iter().map(read).collect()));
        }
        let claim = |(claim, column): (&String, &String)| {
            let values = identity.claims.get(claim).filter(|values| !is_unrestricted(values))?;
            // `Request::check` has parsed the value already, so this cannot fail.
            let read = |value: &Value| match table.column(column) {
                None | Some(Column { kind: ColumnType::Other, .. }) => value.clone(),
                Some(column) => column.read(&value.to_json()).unwrap_or(Value::Null),
            };
            Some((column.clone(), values.iter().map(read).collect()))
        };
        let claims = job_type.source.claims.iter().filter_map(claim).collect();
        let (params, read_snapshot) = (request.params.clone(), None);
        Ok(Scope { job_type, table, filters, claims, params, read_snapshot })
    }

    /// The whole source of a job type, without a request.
    pub fn of_all(job_type: JobType, table: Table) -> Scope {
        let (filters, claims, params, read_snapshot) = Default::default();
        Scope { job_type, table, filters, claims, params, read_snapshot }
    }

    /// The key columns.
    pub fn key(&self) -> &[String] {
        &self.job_type.source.key
    }

    /// The columns from which planning by a filter resumes: the key, and for an open table the columns of
    /// the filter's index.
    pub fn resume_columns(&self, filter: &str) -> Vec<String> {
        let mut columns = self.key().to_vec();
        let column = self.job_type.source.filters.get(filter).filter(|_| self.table.open);
        if let Some(index) = column.and_then(|column| self.table.index_on(&[column])) {
            let more = index.columns.iter().filter(|column| !self.key().contains(column));
            columns.extend(more.cloned());
        }
        columns
    }

    /// The bounds of the rows that the job loads and replaces.
    pub fn bounds(&self) -> Vec<Bound> {
        let filters = self.filters.iter().map(|(_, column, values)| Bound {
            column: column.clone(),
            values: values.clone(),
            is_claim: false,
        });
        let claims = self.claims.iter().map(|(column, values)| Bound {
            column: column.clone(),
            values: values.clone(),
            is_claim: true,
        });
        filters.chain(claims).collect()
    }

    /// The attributes that every record of the job type must have, with their values (`source.match`).
    pub fn matches(&self) -> impl Iterator<Item = (&str, Value)> {
        let matches = self.job_type.source.matches.iter();
        matches.map(|(column, value)| (column.as_str(), Value::from_json(value.clone())))
    }

    /// Every condition of the form `column IN (values)`: `source.match`, the filters and the claims. The filter
    /// of `within` is narrowed to its value. The flag marks claims, which compare by bytes.
    pub fn conditions(&self, within: Option<&FilterValue>) -> Vec<(&str, Vec<Value>, bool)> {
        let filters = self.filters.iter().map(|(name, column, values)| match within {
            Some(narrow) if narrow.filter == *name => {
                (column.as_str(), vec![narrow.value.clone()], false)
            }
            _ => (column.as_str(), values.clone(), false),
        });
        let claims = self.claims.iter();
        let claims = claims.map(|(column, values)| (column.as_str(), values.clone(), true));
        let matches = self.matches().map(|(column, value)| (column, vec![value], false));
        matches.chain(filters).chain(claims).collect()
    }

    /// Whether an index returns the keys in order, within one value of a filter if there is one. Otherwise
    /// the keys of a value are listed instead of cut into ranges.
    pub(crate) fn walks_by_key(&self, within: Option<&FilterValue>) -> bool {
        let mut columns: Vec<&str> = self.key().iter().map(String::as_str).collect();
        if let Some(narrow) = within {
            let Some(column) = self.job_type.source.filters.get(&narrow.filter) else {
                return false;
            };
            // A key that begins with the filter's column is in order within its values anyway.
            if columns.first() != Some(&column.as_str()) {
                columns.insert(0, column);
            }
        }
        self.table.index_on(&columns).is_some()
    }

    /// Whether the schema allows a record without a key.
    pub(crate) fn key_may_be_null(&self) -> bool {
        !self.table.open && !self.table.is_never_null(&self.key_columns())
    }

    /// Whether the schema allows several records with the same key. They always share a chunk, so a range
    /// that ends at the n-th key may have more than n records.
    pub(crate) fn key_may_repeat(&self) -> bool {
        !self.table.open && !self.table.is_unique(&self.key_columns())
    }

    /// Whether the step needs unique keys. Every step except `sql` processes single records.
    pub(crate) fn needs_unique_key(&self) -> bool {
        !matches!(self.job_type.step.kind, StepKind::Sql(_))
    }

    fn key_columns(&self) -> Vec<&str> {
        self.key().iter().map(String::as_str).collect()
    }
}
