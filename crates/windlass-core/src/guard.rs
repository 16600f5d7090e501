//! The guard of updates: how the write of a record finds out that another writer changed it since it was read.

use crate::{JobType, Step, StepKind, Table};
use serde::{Deserialize, Serialize};

/// `step.guard`: what an update compares with the record that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// The version column, which every writer increments.
    Version,
    /// PostgreSQL's system column `xmin`, the transaction that wrote the row.
    Xmin,
    /// All columns.
    Columns,
}

impl Guard {
    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Guard::Version => "version",
            Guard::Xmin => "xmin",
            Guard::Columns => "columns",
        }
    }
}

impl JobType {
    /// Whether the answers of the step can update records of the source.
    pub fn writes_back(&self) -> bool {
        let answers = matches!(
            self.step.kind,
            StepKind::Handler(_) | StepKind::Command(_) | StepKind::Http(_)
        );
        answers && self.source.table.is_some() && !self.source.items
    }

    /// The guard of updates on this table. `None` when the step updates no records, or when the database
    /// compares versions only and the job type has none.
    pub fn guard(&self, table: &Table) -> Option<Guard> {
        match (self.step.guard, &self.step.version) {
            _ if !self.writes_back() => None,
            (None | Some(Guard::Version), Some(_)) => Some(Guard::Version),
            _ if table.open => None,
            (Some(guard), _) => Some(guard),
            (None, None) => Some(table.row_guard()),
        }
    }

    /// The guard of updates on this table and what it costs, as `windlass check` prints it. `None` when
    /// the step updates no records.
    pub fn describe_guard(&self, table: &Table) -> Option<String> {
        let columns = table.columns.len();
        let hashed = "the database hashes a row when it is read and again when it is updated";
        Some(match self.guard(table) {
            None if self.writes_back() => {
                "none: without step.version an `update` fails the job; inserts and emitted rows need \
                 no guard"
                    .to_owned()
            }
            None => return None,
            Some(Guard::Version) => {
                let version = self.step.version.as_deref().unwrap_or_default();
                let nullable = table.column(version).is_some_and(|column| column.nullable);
                let nulls = match (nullable, table.row_guard()) {
                    (false, _) => String::new(),
                    (true, guard) => format!(
                        "; a row whose `{version}` is NULL is compared by {} and gets 1",
                        if guard == Guard::Xmin { "xmin" } else { "all its columns" }
                    ),
                };
                format!(
                    "version: an update compares `{version}` and raises it by one; a writer that does \
                     not raise it is not noticed{nulls}"
                )
            }
            Some(Guard::Xmin) => {
                "xmin: an update compares the transaction that last wrote the row; every other write \
                 is noticed, at no cost"
                    .to_owned()
            }
            Some(Guard::Columns) => format!(
                "columns: an update compares all {columns} columns; every other change is noticed; \
                 {hashed}"
            ),
        })
    }
}

impl Step {
    /// The problem of `step.guard`.
    pub(crate) fn guard_problem(&self, job_type: &JobType) -> Option<(&'static str, String)> {
        let guard = self.guard?;
        let detail = match (guard, &self.version) {
            (Guard::Version, None) => {
                "needs step.version: name the integer column that every writer of the table \
                 increments, or remove step.guard"
                    .to_owned()
            }
            (Guard::Version, Some(_)) => return None,
            (_, Some(version)) => format!(
                "is `{}`, so the version column `{version}` would be neither compared nor raised; \
                 remove step.guard or step.version",
                guard.name()
            ),
            (_, None) if !job_type.writes_back() => format!(
                "does not apply to {}: no records are read and written back; remove it",
                if job_type.source.table.is_some() { self.kind.field() } else { "this source" }
            ),
            (_, None) => return None,
        };
        Some(("step.guard", detail))
    }
}

impl Table {
    /// The guard that needs no version column.
    pub fn row_guard(&self) -> Guard {
        if self.has_xmin { Guard::Xmin } else { Guard::Columns }
    }
}
