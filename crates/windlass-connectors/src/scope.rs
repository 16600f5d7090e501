//! What a job may reach: the source, its fixed condition, the request's filters and the
//! submitter's claims, resolved against the table.

use crate::fan_in::Bound;
use std::collections::BTreeMap;
use windlass_core::claims::is_unrestricted;
use windlass_core::{
    Column, ColumnType, FilterValue, Identity, JobType, Problem, Request, StepKind, Table, Value,
};

/// The bounds of one job, the same for every statement made for it.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The definition the job runs by, its key columns resolved.
    pub job_type: JobType,
    /// What the database says of the source.
    pub table: Table,
    /// The request's filters: name, column, values.
    pub filters: Vec<(String, String, Vec<Value>)>,
    /// The submitter's claims: column, values.
    pub claims: Vec<(String, Vec<Value>)>,
    /// The request's params.
    pub params: BTreeMap<String, serde_json::Value>,
}

impl Scope {
    /// Resolves a request against the job type and its table. The request must have passed
    /// [`Request::check`].
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
                // A column without a type, as in a query of SQLite, compares by the value's own.
                None | Some(Column { kind: ColumnType::Other, .. }) => {
                    Value::from_json(serde_json::Value::clone(value))
                }
                Some(column) => column.read(value).unwrap_or(Value::Null),
            };
            filters.push((name.to_owned(), column.clone(), values.iter().map(read).collect()));
        }
        let claim = |(claim, column): (&String, &String)| {
            let values = identity.claims.get(claim).filter(|values| !is_unrestricted(values))?;
            // What the request's check has read can be read again.
            let read = |value: &Value| match table.column(column) {
                None | Some(Column { kind: ColumnType::Other, .. }) => value.clone(),
                Some(column) => column.read(&value.to_json()).unwrap_or(Value::Null),
            };
            Some((column.clone(), values.iter().map(read).collect()))
        };
        let claims = job_type.source.claims.iter().filter_map(claim).collect();
        Ok(Scope { job_type, table, filters, claims, params: request.params.clone() })
    }

    /// Everything of a job type's source, before anybody asks for a part of it.
    pub fn of_all(job_type: JobType, table: Table) -> Scope {
        let (filters, claims, params) = Default::default();
        Scope { job_type, table, filters, claims, params }
    }

    /// The key columns.
    pub fn key(&self) -> &[String] {
        &self.job_type.source.key
    }

    /// What says how far a load by a filter is: the key, and where that is not enough to find the
    /// place again, the columns of the filter's index.
    pub fn place_columns(&self, filter: &str) -> Vec<String> {
        let mut columns = self.key().to_vec();
        let column = self.job_type.source.filters.get(filter).filter(|_| self.table.open);
        if let Some(index) = column.and_then(|column| self.table.index_on(&[column])) {
            let more = index.columns.iter().filter(|column| !self.key().contains(column));
            columns.extend(more.cloned());
        }
        columns
    }

    /// What the rows that the job loads must keep to, and what it may replace.
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

    /// Every condition of the form `column IN (values)`: the filters, with the one the segment
    /// was loaded by narrowed to its value, and the claims; and whether it is one of the claims,
    /// which compare by bytes.
    pub fn conditions(&self, within: Option<&FilterValue>) -> Vec<(&str, Vec<Value>, bool)> {
        let filters = self.filters.iter().map(|(name, column, values)| match within {
            Some(narrow) if narrow.filter == *name => {
                (column.as_str(), vec![narrow.value.clone()], false)
            }
            _ => (column.as_str(), values.clone(), false),
        });
        let claims = self.claims.iter();
        let claims = claims.map(|(column, values)| (column.as_str(), values.clone(), true));
        filters.chain(claims).collect()
    }

    /// Whether the database can walk the keys in order by an index, within one value of a filter
    /// when there is one. Otherwise keys within a value are listed, not ranged over.
    pub(crate) fn walks_by_key(&self, within: Option<&FilterValue>) -> bool {
        let mut columns: Vec<&str> = self.key().iter().map(String::as_str).collect();
        if let Some(narrow) = within {
            let Some(column) = self.job_type.source.filters.get(&narrow.filter) else {
                return false;
            };
            // A key that begins with the filter's column is in order within its values as it is.
            if columns.first() != Some(&column.as_str()) {
                columns.insert(0, column);
            }
        }
        self.table.index_on(&columns).is_some()
    }

    /// Whether a record may have no key, as far as the schema says.
    pub(crate) fn key_may_be_null(&self) -> bool {
        !self.table.open && !self.table.is_never_null(&self.key_columns())
    }

    /// Whether several records may have one key, as far as the schema says. They are always
    /// together, so a range that ends at the n-th key may have more than n records.
    pub(crate) fn key_may_repeat(&self) -> bool {
        !self.table.open && !self.table.is_unique(&self.key_columns())
    }

    /// Whether a key must be that of one record: every step but `sql` works on single records.
    pub(crate) fn needs_unique_key(&self) -> bool {
        !matches!(self.job_type.step.kind, StepKind::Sql(_))
    }

    fn key_columns(&self) -> Vec<&str> {
        self.key().iter().map(String::as_str).collect()
    }
}
