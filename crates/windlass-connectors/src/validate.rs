//! Checks a job type against its table.

use crate::sql::quote;
use windlass_core::config::names;
use windlass_core::{Column, ColumnType, Guard, JobType, Problem, StepKind, Table};

/// Checks a job type against its table, and returns every problem with its solution. Takes the primary
/// key where the job type names no key.
pub fn validate(job_type: &mut JobType, table: &Table) -> Vec<Problem> {
    let is_query = job_type.source.table.is_none();
    let fixed = job_type.fixed_columns().into_iter().map(str::to_owned).collect();
    if job_type.source.key.is_empty() {
        job_type.source.key = table.primary_key.clone();
    }
    let mut validation = Validation { job_type, table, fixed, problems: Vec::new() };
    validation.check_columns();
    validation.check_match();
    if validation.problems.is_empty() && table.open {
        validation.check_open_table();
    } else if validation.problems.is_empty() {
        validation.check_key_types();
        // The schema does not describe the rows of a query. They are checked when a job is planned.
        if !is_query {
            validation.check_key();
            validation.check_filters();
            validation.check_step();
        }
    }
    validation.problems
}

struct Validation<'a> {
    job_type: &'a JobType,
    table: &'a Table,
    /// The columns that no step may set, as the definition spells them. The definition itself has
    /// checked these spellings.
    fixed: Vec<String>,
    problems: Vec<Problem>,
}

impl Validation<'_> {
    fn refuse(&mut self, field: &str, detail: String) {
        self.problems.push(self.job_type.problem(field, detail));
    }

    /// Every named column must exist. The other checks need that.
    fn check_columns(&mut self) {
        let source = &self.job_type.source;
        if source.key.is_empty() {
            let detail = format!(
                "is missing, and `{}` has no primary key; name columns that are unique, \
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
            // In an open table every record may have different columns.
            if self.table.column(column).is_none() && !self.table.open {
                let known = names(self.table.columns.iter().map(|column| &column.name));
                let table = &self.table.name;
                self.refuse(
                    &field,
                    format!("`{table}` has no column `{column}`; its columns are {known}"),
                );
            }
        }
    }

    /// SQL databases have a condition for what `source.match` says.
    fn check_match(&mut self) {
        let matches = &self.job_type.source.matches;
        if self.table.open || matches.is_empty() {
            return;
        }
        let equals = |(column, value): (&String, &serde_json::Value)| {
            let text = value.as_str().map(|text| format!("'{}'", text.replace('\'', "''")));
            format!("{} = {}", bare(column), text.unwrap_or_else(|| value.to_string()))
        };
        let condition = matches.iter().map(equals).collect::<Vec<_>>().join(" AND ");
        let detail = format!("is for DynamoDB; write it as SQL: source.where = \"{condition}\"");
        self.refuse("source.match", detail);
    }

    /// A template of `queue.key` makes a text, so the attribute must be one.
    fn check_message_key(&mut self) {
        let (job_type, table) = (self.job_type, self.table);
        for column in job_type.queue.key.keys().filter_map(|name| table.column(name)) {
            if column.kind != ColumnType::Text {
                let Column { name, sql_type, .. } = column;
                let detail = format!(
                    "`{name}` is of type {sql_type}, and a template makes a text (S); leave out queue.key to send \
                     the key as it is"
                );
                self.refuse("queue.key", detail);
            }
        }
    }

    /// DynamoDB supports its own key, indexes with one partition key, and steps without SQL.
    fn check_open_table(&mut self) {
        let (job_type, table) = (self.job_type, self.table);
        let source = &job_type.source;
        if source.key != table.primary_key {
            let key = table.primary_key.join(", ");
            self.refuse(
                "source.key",
                format!("the key of `{}` is ({key}); remove this setting", table.name),
            );
        }
        for (name, column) in &source.filters {
            if table.index_on(&[column]).is_none() {
                let detail = format!(
                    "no index of `{}` has `{column}` as its partition key; create a global secondary \
                     index with it",
                    table.name
                );
                self.refuse(&format!("source.filters.{name}"), detail);
            }
        }
        if source.condition.is_some() {
            let detail = "is SQL, which DynamoDB does not support; use source.match, a filter, or let the step skip records";
            self.refuse("source.where", detail.to_owned());
        }
        self.check_message_key();
        let step = &job_type.step;
        if matches!(step.kind, StepKind::Sql(_) | StepKind::Map(_)) {
            let detail = "DynamoDB does not support SQL; use step.refresh, step.export, step.handler, \
                          step.command or step.http";
            self.refuse(step.kind.field(), detail.to_owned());
        }
        if step.mark.is_some() {
            self.refuse("step.mark", "needs step.sql, which DynamoDB does not support".to_owned());
        }
        if matches!(step.kind, StepKind::Refresh) && step.version.is_none() {
            let detail = "is missing; DynamoDB ignores a write that changes nothing, so a refresh must \
                          raise a version";
            self.refuse("step.version", detail.to_owned());
        }
        if let Some(guard @ (Guard::Xmin | Guard::Columns)) = step.guard {
            let detail = format!(
                "`{}` is not supported by DynamoDB, whose updates compare a version; name a numeric \
                 attribute in step.version",
                guard.name()
            );
            self.refuse("step.guard", detail);
        }
        if job_type.reduce.is_some() && job_type.reduce_in.is_none() {
            let detail = "DynamoDB does not support SQL; name another connection in reduce_in";
            self.refuse("reduce", detail.to_owned());
        }
    }

    /// Refuses key types whose values change when they are written as text and read again.
    fn check_key_types(&mut self) {
        let key = &self.job_type.source.key;
        for column in key.iter().filter_map(|name| self.table.column(name)) {
            let Column { name, sql_type, .. } = column;
            if column.kind == ColumnType::Json {
                self.refuse(
                    "source.key",
                    format!(
                        "`{name}` is of type {sql_type}, which cannot be a key, since its numbers may \
                         lose digits; name another key"
                    ),
                );
            }
            // The notation of MySQL.
            if sql_type.starts_with("enum(") || sql_type.starts_with("set(") {
                self.refuse(
                    "source.key",
                    format!(
                        "`{name}` is an enum or a set, which the database sorts by number but \
                         compares as text, so key ranges would have gaps; name another key"
                    ),
                );
            }
        }
    }

    fn check_key(&mut self) {
        let key = &self.job_type.source.key;
        let columns: Vec<&str> = key.iter().map(String::as_str).collect();
        let listed = key.join(", ");
        let table = &self.table.name;
        if self.table.index_on(&columns).is_none() {
            self.refuse(
                "source.key",
                format!(
                    "no index of `{table}` begins with ({listed}), so every chunk would read the \
                     whole table; create one: `{}`",
                    create_index("UNIQUE INDEX", table, &columns)
                ),
            );
        }
        for name in key {
            if self.table.column(name).is_some_and(|column| column.nullable) {
                self.refuse(
                    "source.key",
                    format!(
                        "`{name}` may be null, and a record without a key would never be processed; \
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
                     two records may have the same key; define a job type for each of the tables, \
                     with the parent as source.query = \"SELECT * FROM ONLY {table}\""
                ),
            );
        } else if by_item && !self.table.is_unique(&columns) {
            self.refuse(
                "source.key",
                format!(
                    "no index guarantees that ({listed}) is unique, which writing back a record \
                     needs; create one: `{}`",
                    create_index("UNIQUE INDEX", table, &columns)
                ),
            );
        }
    }

    fn check_filters(&mut self) {
        let source = &self.job_type.source;
        for (name, column) in &source.filters {
            if self.table.index_on(&[column]).is_none() {
                let mut columns = vec![column.as_str()];
                columns.extend(source.key.iter().map(String::as_str).filter(|key| key != column));
                let table = &self.table.name;
                self.refuse(
                    &format!("source.filters.{name}"),
                    format!(
                        "no index of `{table}` begins with `{column}`; create one: `{}`",
                        create_index("INDEX", table, &columns)
                    ),
                );
            }
        }
    }

    fn check_step(&mut self) {
        let (step, table) = (&self.job_type.step, &self.table.name);
        if step.guard == Some(Guard::Xmin) && !self.table.has_xmin {
            let detail = format!(
                "the rows of `{table}` have no xmin: only tables of PostgreSQL have it, views and \
                 foreign tables do not; use step.guard = \"columns\" or name a step.version"
            );
            self.refuse("step.guard", detail);
        }
        let refreshed = matches!(step.kind, StepKind::Refresh) && step.version.is_none();
        if refreshed && self.table.rewritable.is_none() {
            let detail = format!(
                "is missing; the database does not write a row that stays the same, so a refresh \
                 must raise a version: `ALTER TABLE {} ADD COLUMN version BIGINT NOT NULL DEFAULT 0`",
                bare_table(table)
            );
            self.refuse("step.version", detail);
        }
        if let Some(column) = step.version.as_ref().and_then(|name| self.table.column(name))
            && column.kind != ColumnType::Int
        {
            let (name, kind) = (&column.name, &column.sql_type);
            let detail = format!("`{name}` must be an integer, but is of type {kind}");
            self.refuse("step.version", detail);
        }
        let Ok(Some(template)) = self.job_type.statement() else { return };
        let fixed = self.job_type.fixed_columns();
        for column in template.assigned_columns() {
            let is_fixed = fixed.iter().any(|fixed| fixed.eq_ignore_ascii_case(&column));
            if is_fixed && !self.fixed.contains(&column) {
                self.refuse(
                    "step.sql",
                    format!(
                        "sets `{column}`, which is a key, filter or claim column: the row would \
                         move into another chunk and be processed again; set another column"
                    ),
                );
            }
        }
    }
}

/// A name, quoted where it has to be.
fn bare(name: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.chars().all(plain) { name.to_owned() } else { quote(name) }
}

fn bare_table(table: &str) -> String {
    table.split('.').map(bare).collect::<Vec<_>>().join(".")
}

/// A statement that works on every SQL database.
fn create_index(kind: &str, table: &str, columns: &[&str]) -> String {
    let mut name = table.rsplit('.').next().unwrap_or(table).to_owned();
    for column in columns {
        name.push('_');
        name.push_str(column);
    }
    let columns: Vec<String> = columns.iter().map(|column| bare(column)).collect();
    format!("CREATE {kind} {} ON {} ({})", bare(&name), bare_table(table), columns.join(", "))
}
