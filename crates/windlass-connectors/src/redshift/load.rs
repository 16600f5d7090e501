//! Loads Parquet parts from S3 in one transaction: staging table, COPY, delete of the replaced rows, insert, ledger row.

use super::{RedshiftConnection, catalog, failed, fill, finish, ledger, literal, number};
use crate::sql::{quote, quote_table};
use crate::write::{insert_column, missing_load_table};
use crate::{ConnectorError, CopyRequest, Ledger, LoadRequest, Merge, Reduction, Result, Rows};
use async_trait::async_trait;
use windlass_core::{Column, ColumnType, Cursor, Load, Value};
use windlass_drivers::RedshiftTransaction;

#[async_trait]
impl Merge for RedshiftConnection {
    async fn reduce(&self, _: Reduction<'_>) -> Result<Rows> {
        Err(super::only_loads())
    }

    async fn prepare_replace(&self, load: &Load, columns: &[Column]) -> Result<()> {
        let transaction = self.ledger_tx().await?;
        let prepared = async {
            let target = target_columns(&transaction, &load.table).await?;
            let mut names: Vec<&String> = columns.iter().map(|column| &column.name).collect();
            names.extend(load.replace.iter());
            names.dedup();
            let table = quote_table(&load.table);
            let mut values = Vec::new();
            for name in &names {
                let column = insert_column(&load.table, &target, name)?;
                values.push(format!("CAST(NULL AS {})", column.sql_type));
            }
            let listed: Vec<String> = names.iter().map(|name| quote(name)).collect();
            let (listed, values) = (listed.join(", "), values.join(", "));
            transaction.query(&format!("EXPLAIN DELETE FROM {table} WHERE 1 = 0")).await?;
            if !names.is_empty() {
                let insert = format!("EXPLAIN INSERT INTO {table} ({listed}) SELECT {values}");
                transaction.query(&insert).await?;
            }
            Ok(())
        };
        let prepared = prepared.await;
        let _ = transaction.rollback().await;
        prepared
    }

    async fn replace(&self, _: &Ledger, _: LoadRequest<'_>) -> Result<Ledger> {
        Err(super::only_loads())
    }

    async fn copy(&self, ledger: &Ledger, request: CopyRequest<'_>) -> Result<Ledger> {
        let transaction = self.ledger_tx().await?;
        let copied = copy(&transaction, ledger, &request).await;
        finish(transaction, copied).await
    }
}

/// All statements between BEGIN and COMMIT.
async fn copy(
    transaction: &RedshiftTransaction,
    own: &Ledger,
    request: &CopyRequest<'_>,
) -> Result<Ledger> {
    transaction.execute(ledger::LOCK).await?;
    let found = ledger::row_of(transaction, own.chunk).await?;
    let is_own =
        |row: &Ledger| (row.epoch, row.nonce, row.commits) == (own.epoch, own.nonce, own.commits);
    if !found.is_some_and(|row| is_own(&row)) {
        return Err(ConnectorError::LeaseLost);
    }
    // COPY may take long. Nothing waits for this transaction except other loads.
    transaction.execute("SET LOCAL statement_timeout TO 0").await?;
    let target = target_columns(transaction, &request.load.table).await?;
    let statements = Statements::new(own, request, &target)?;
    transaction.execute(&statements.stage).await?;
    if let Some(copy) = &statements.copy {
        transaction.execute(copy).await?;
    }
    let staged = transaction.query(&statements.count).await?;
    let staged = staged.first().map_or(Ok(0), |row| number(row, 0))?;
    if staged != request.rows {
        let message = format!(
            "COPY staged {staged} rows, but the manifest lists files with {}; nothing was loaded",
            request.rows
        );
        return Err(failed(message));
    }
    for delete in &statements.deletes {
        transaction.execute(delete).await?;
    }
    transaction.execute(&statements.insert).await?;
    let advanced = transaction.execute(&statements.advance).await?;
    if advanced != 1 {
        return Err(ConnectorError::LeaseLost);
    }
    // A temporary table lives as long as the session, which the pool reuses.
    transaction.execute(&statements.drop).await?;
    ledger::row_of(transaction, own.chunk).await?.ok_or(ConnectorError::LeaseLost)
}

async fn target_columns(transaction: &RedshiftTransaction, table: &str) -> Result<Vec<Column>> {
    let rows = transaction.query(&catalog::columns_sql(table)?).await?;
    match rows.is_empty() {
        true => Err(missing_load_table(table).into()),
        false => rows.iter().map(catalog::column).collect(),
    }
}

/// The statements of a load after its ledger row is checked.
struct Statements {
    stage: String,
    copy: Option<String>,
    count: String,
    deletes: Vec<String>,
    insert: String,
    advance: String,
    drop: String,
}

impl Statements {
    fn new(own: &Ledger, request: &CopyRequest<'_>, target: &[Column]) -> Result<Statements> {
        let CopyRequest { load, columns, params, .. } = request;
        // Each lease has its own name, so that a session never has two tables of one name.
        let stage = format!("windlass_stage_{}_{:016x}", own.epoch, own.nonce);
        let table = quote_table(&load.table);
        let of_target = |name: &str| insert_column(&load.table, target, name);
        let defined: Vec<String> =
            columns.iter().map(|c| format!("{} {}", quote(&c.name), c.sql_type)).collect();
        // A column that the result lacks has the value of the param.
        let mut names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let missing = load.replace.iter().filter(|name| !names.contains(&name.as_str()));
        let missing: Vec<&str> = missing.map(String::as_str).collect();
        names.extend(&missing);
        let param = |name: &str| params.get(name).cloned().map(Value::from_json);
        let value = |name: &str| {
            let expression = match missing.contains(&name) {
                true => value_literal(&param(name).unwrap_or(Value::Null))?,
                false => format!("{stage}.{}", quote(name)),
            };
            Ok::<_, ConnectorError>(cast(&expression, of_target(name)?))
        };
        let values = names.iter().map(|name| value(name)).collect::<Result<Vec<_>>>()?;
        let listed: Vec<String> = names.iter().map(|name| quote(name)).collect();
        let mut deletes = Vec::new();
        let of_params: Option<Vec<Value>> = load.replace.iter().map(|name| param(name)).collect();
        if let Some(of_params) = of_params.filter(|values| !values.is_empty()) {
            let mut matched = Vec::new();
            for (name, value) in load.replace.iter().zip(&of_params) {
                let value = cast(&value_literal(value)?, of_target(name)?);
                matched.push(equal(request, name, &value));
            }
            deletes.push(format!("DELETE FROM {table} WHERE {}", matched.join(" AND ")));
        }
        if load.replace.iter().any(|name| !missing.contains(&name.as_str())) {
            let mut matched = Vec::new();
            for name in &load.replace {
                matched.push(equal(request, name, &value(name)?));
            }
            let matched = matched.join(" AND ");
            deletes.push(format!("DELETE FROM {table} USING {stage} WHERE {matched}"));
        }
        let lease = ledger::lease(own.chunk, own.epoch, own.nonce)?;
        let rest = [
            ("commits", own.commits.to_string()),
            ("cursor", literal(&Cursor::End.to_text())?),
            ("rows", request.rows.to_string()),
        ];
        let advance = fill(include_str!("../../sql/redshift/advance.sql"), &lease);
        let copy = match request.manifest {
            Some(manifest) => Some(format!(
                "COPY {stage} FROM {} IAM_ROLE {} FORMAT AS PARQUET MANIFEST",
                literal(manifest)?,
                role(request.iam_role)?
            )),
            None => None,
        };
        Ok(Statements {
            stage: format!("CREATE TEMP TABLE {stage} ({})", defined.join(", ")),
            copy,
            count: format!("SELECT count(*) FROM {stage}"),
            deletes,
            insert: format!(
                "INSERT INTO {table} ({}) SELECT {} FROM {stage}",
                listed.join(", "),
                values.join(", ")
            ),
            advance: fill(&advance, &rest),
            drop: format!("DROP TABLE {stage}"),
        })
    }
}

/// `default` is a keyword, everything else an ARN.
fn role(iam_role: &str) -> Result<String> {
    if iam_role == "default" { Ok("default".to_owned()) } else { literal(iam_role) }
}

fn value_literal(value: &Value) -> Result<String> {
    value.to_text().map_or_else(|| Ok("NULL".to_owned()), |text| literal(&text))
}

/// A value in the type of a column. A cast to a length would cut a longer text; without it, the INSERT fails.
fn cast(expression: &str, column: &Column) -> String {
    let sql_type = match column.kind {
        ColumnType::Text => LONGEST_TEXT,
        _ => &column.sql_type,
    };
    format!("CAST({expression} AS {sql_type})")
}

/// The longest text of Redshift.
const LONGEST_TEXT: &str = "varchar(65535)";

/// Compares a column of the loaded table with a value, where two nulls are equal. A claim is also compared by the hash
/// of its bytes, since a database may be case-insensitive.
fn equal(request: &CopyRequest<'_>, name: &str, value: &str) -> String {
    // The name of a table without its schema is its alias.
    let table = request.load.table.rsplit('.').next().unwrap_or_default();
    let column = format!("{}.{}", quote(table), quote(name));
    let equal = format!("({column} = {value} OR ({column} IS NULL AND {value} IS NULL))");
    match request.bounds.iter().any(|bound| bound.is_claim && bound.column == name) {
        true => {
            let hash = |text: &str| format!("MD5(CAST({text} AS {LONGEST_TEXT}))");
            format!("{equal} AND {} = {}", hash(&column), hash(value))
        }
        false => equal,
    }
}
