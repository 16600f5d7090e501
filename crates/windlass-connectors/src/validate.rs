//! Whether a table serves a job type.

use crate::sql::quote;
use windlass_core::config::names;
use windlass_core::{Column, ColumnType, JobType, Problem, StepKind, Table};

/// Fits a job type to its table: takes the primary key where no key is named, and says everything
/// that would not work and what would be right.
pub fn fit(job_type: &mut JobType, table: &Table) -> Vec<Problem> {
    let is_query = job_type.source.table.is_none();
    let named = job_type.fixed_columns().into_iter().map(str::to_owned).collect();
    if job_type.source.key.is_empty() {
        job_type.source.key = table.primary_key.clone();
    }
    let mut fitting = Fitting { job_type, table, named, problems: Vec::new() };
    fitting.columns_exist();
    if fitting.problems.is_empty() && table.open {
        fitting.open();
    } else if fitting.problems.is_empty() {
        fitting.key_types();
        // What a query gives is not in the schema: its rows are asked when a job is planned.
        if !is_query {
            fitting.key();
            fitting.filters();
            fitting.step();
        }
    }
    fitting.problems
}

struct Fitting<'a> {
    job_type: &'a JobType,
    table: &'a Table,
    /// The columns that no step may set as the definition names them: those it has checked itself.
    named: Vec<String>,
    problems: Vec<Problem>,
}

impl Fitting<'_> {
    fn refuse(&mut self, field: &str, detail: String) {
        self.problems.push(self.job_type.problem(field, detail));
    }

    /// Every column that is named must be there; the rest is looked at only then.
    fn columns_exist(&mut self) {
        let source = &self.job_type.source;
        if source.key.is_empty() {
            let detail = format!(
                "is missing, and `{}` has no primary key to take; name columns that are unique, \
                 not null and indexed",
                self.table.name
            );
            self.refuse("source.key", detail);
        }
        let mut named: Vec<(String, &String)> = Vec::new();
        named.extend(source.key.iter().map(|column| ("source.key".to_owned(), column)));
        let filters = source.filters.iter();
        named.extend(filters.map(|(name, column)| (format!("source.filters.{name}"), column)));
        let claims = source.claims.iter();
        named.extend(claims.map(|(name, column)| (format!("source.claims.{name}"), column)));
        let step = &self.job_type.step;
        named.extend(step.version.iter().map(|column| ("step.version".to_owned(), column)));
        named.extend(step.mark.iter().map(|column| ("step.mark".to_owned(), column)));
        for (field, column) in named {
            // In an open table each record has columns of its own.
            if self.table.column(column).is_none() && !self.table.open {
                let known = names(self.table.columns.iter().map(|column| &column.name));
                let table = &self.table.name;
                self.refuse(
                    &field,
                    format!("`{table}` has no column `{column}`; there is {known}"),
                );
            }
        }
    }

    /// What DynamoDB serves: its own key, indexes by one attribute, and steps without SQL.
    fn open(&mut self) {
        let (job_type, table) = (self.job_type, self.table);
        let source = &job_type.source;
        if source.key != table.primary_key {
            let key = table.primary_key.join(", ");
            self.refuse(
                "source.key",
                format!("the key of `{}` is ({key}); leave it out", table.name),
            );
        }
        for (name, column) in &source.filters {
            if table.index_on(&[column]).is_none() {
                let detail = format!(
                    "no index of `{}` has `{column}` as its partition key; a global secondary index \
                     with it would do",
                    table.name
                );
                self.refuse(&format!("source.filters.{name}"), detail);
            }
        }
        if source.condition.is_some() {
            let detail =
                "is SQL, which DynamoDB has not; use a filter, or let the step skip records";
            self.refuse("source.where", detail.to_owned());
        }
        let step = &job_type.step;
        if matches!(step.kind, StepKind::Sql(_) | StepKind::Map(_)) {
            let detail = "DynamoDB runs no statements; step.refresh, step.export or a step that answers \
                          per item would be right";
            self.refuse(step.kind.field(), detail.to_owned());
        }
        if step.mark.is_some() {
            self.refuse("step.mark", "goes with step.sql, which DynamoDB has not".to_owned());
        }
        if matches!(step.kind, StepKind::Refresh) && step.version.is_none() {
            let detail = "is missing; DynamoDB takes a write that changes nothing for none, so that \
                          a refresh must raise a version";
            self.refuse("step.version", detail.to_owned());
        }
        if job_type.reduce.is_some() && job_type.reduce_in.is_none() {
            let detail = "DynamoDB runs no statements; name a connection that does in reduce_in";
            self.refuse("reduce", detail.to_owned());
        }
    }

    /// Whether a key of these types is the same after it was written down and read again.
    fn key_types(&mut self) {
        let key = &self.job_type.source.key;
        for column in key.iter().filter_map(|name| self.table.column(name)) {
            let Column { name, sql_type, .. } = column;
            if column.kind == ColumnType::Json {
                self.refuse(
                    "source.key",
                    format!(
                        "`{name}` is of type {sql_type}, and a document cannot bound a chunk: its \
                         numbers may have more digits than are kept; name another key"
                    ),
                );
            }
            // As MySQL writes the type.
            if sql_type.starts_with("enum(") || sql_type.starts_with("set(") {
                self.refuse(
                    "source.key",
                    format!(
                        "`{name}` is an enum or a set, which the database sorts by number and \
                         compares as text, so that ranges of it have gaps; name another key"
                    ),
                );
            }
        }
    }

    fn key(&mut self) {
        let key = &self.job_type.source.key;
        let columns: Vec<&str> = key.iter().map(String::as_str).collect();
        let listed = key.join(", ");
        let table = &self.table.name;
        if self.table.index_on(&columns).is_none() {
            self.refuse(
                "source.key",
                format!(
                    "no index of `{table}` begins with ({listed}), so every chunk would read the \
                     whole table; `{}` would do",
                    create_index("UNIQUE INDEX", table, &columns)
                ),
            );
        }
        for name in key {
            if self.table.column(name).is_some_and(|column| column.nullable) {
                self.refuse(
                    "source.key",
                    format!(
                        "`{name}` may be null, and a record without a key would never be reached; \
                         declare it NOT NULL"
                    ),
                );
            }
        }
        let by_item = !matches!(self.job_type.step.kind, StepKind::Sql(_));
        if by_item && !self.table.children.is_empty() {
            let children = names(&self.table.children);
            self.refuse(
                "source.table",
                format!(
                    "`{table}` is inherited by {children}, and no index is unique across them, so \
                     that two records may have one key; make a job type for each of the tables, the \
                     parent as source.query = \"SELECT * FROM ONLY {table}\""
                ),
            );
        } else if by_item && !self.table.is_unique(&columns) {
            self.refuse(
                "source.key",
                format!(
                    "nothing says that ({listed}) is unique, and a record that is written back \
                     must be one; `{}` would do",
                    create_index("UNIQUE INDEX", table, &columns)
                ),
            );
        }
    }

    fn filters(&mut self) {
        let source = &self.job_type.source;
        for (name, column) in &source.filters {
            if self.table.index_on(&[column]).is_none() {
                let mut columns = vec![column.as_str()];
                columns.extend(source.key.iter().map(String::as_str).filter(|key| key != column));
                let table = &self.table.name;
                self.refuse(
                    &format!("source.filters.{name}"),
                    format!(
                        "no index of `{table}` begins with `{column}`; `{}` would do",
                        create_index("INDEX", table, &columns)
                    ),
                );
            }
        }
    }

    fn step(&mut self) {
        let step = &self.job_type.step;
        if let Some(column) = step.version.as_ref().and_then(|name| self.table.column(name))
            && column.kind != ColumnType::Int
        {
            let (name, kind) = (&column.name, &column.sql_type);
            let detail = format!("`{name}` is of type {kind}; an integer would be right");
            self.refuse("step.version", detail);
        }
        let Ok(Some(template)) = self.job_type.statement() else { return };
        let fixed = self.job_type.fixed_columns();
        for column in template.assigned_columns() {
            let is_fixed = fixed.iter().any(|fixed| fixed.eq_ignore_ascii_case(&column));
            if is_fixed && !self.named.contains(&column) {
                self.refuse(
                    "step.sql",
                    format!(
                        "sets `{column}`, which is a key, filter or claim column: the row would \
                         move into another chunk and be worked again; set another column"
                    ),
                );
            }
        }
    }
}

/// A statement that people can run as it stands, on either database.
fn create_index(kind: &str, table: &str, columns: &[&str]) -> String {
    let plain = |text: &str| {
        let mut letters = text.chars();
        letters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let bare = |name: &str| if plain(name) { name.to_owned() } else { quote(name) };
    let mut name = table.rsplit('.').next().unwrap_or(table).to_owned();
    for column in columns {
        name.push('_');
        name.push_str(column);
    }
    let table: Vec<String> = table.split('.').map(bare).collect();
    let columns: Vec<String> = columns.iter().map(|column| bare(column)).collect();
    format!("CREATE {kind} {} ON {} ({})", bare(&name), table.join("."), columns.join(", "))
}
