//! A table with one column per type, filled with generated values.

use super::values::Literal;
use crate::protocol::common::{EngineFixture, TestDatabase};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;

/// Rows of a table.
const ROWS: usize = 60;

/// One column: its type and the SQL of its values.
pub(super) struct TypeColumn {
    pub(super) sql_type: &'static str,
    values: Literal,
    /// The expression that shows a value exactly, with `{}` for the column.
    shown: &'static str,
    /// The SQL of a value of this type, from its text in a file.
    pub(super) restored: fn(&str, &str) -> String,
}

/// A column of this type.
pub(super) fn column(
    sql_type: &'static str,
    values: Literal,
    shown: &'static str,
    restored: fn(&str, &str) -> String,
) -> TypeColumn {
    TypeColumn { sql_type, values, shown, restored }
}

/// Creates an empty table with these columns.
pub(super) async fn create(fixture: &EngineFixture, name: &str, columns: &[TypeColumn]) {
    let defined: Vec<String> =
        columns.iter().enumerate().map(|(n, c)| format!("c{n} {}", c.sql_type)).collect();
    let sql = format!(
        "CREATE TABLE {name} (id bigint NOT NULL PRIMARY KEY, version bigint NOT NULL, {})",
        defined.join(", ")
    );
    run(fixture, &sql).await;
}

/// Inserts a row of these expressions.
pub(super) async fn insert(fixture: &EngineFixture, name: &str, rows: &[Vec<String>]) {
    for row in rows {
        run(fixture, &format!("INSERT INTO {name} VALUES ({})", row.join(", "))).await;
    }
}

/// Creates and fills the table `types`.
pub(super) async fn fill(fixture: &EngineFixture, columns: &[TypeColumn]) {
    create(fixture, "types", columns).await;
    let mut runner = TestRunner::default();
    let mut rows = Vec::new();
    for id in 0..ROWS {
        let mut row = vec![id.to_string(), "0".to_owned()];
        for column in columns {
            let value = column.values.new_tree(&mut runner).unwrap().current();
            // The first row has a null in each column.
            row.push(if id == 0 { "NULL".to_owned() } else { value });
        }
        rows.push(row);
    }
    insert(fixture, "types", &rows).await;
}

/// What is in the table: column by column, the values in the order of the key.
pub(super) async fn shown(
    fixture: &EngineFixture,
    table: &str,
    columns: &[TypeColumn],
) -> Vec<Vec<Option<String>>> {
    let mut shown = Vec::new();
    for (n, column) in columns.iter().enumerate() {
        let expression = column.shown.replace("{}", &format!("c{n}"));
        let sql = format!("SELECT {expression} FROM {table} ORDER BY id");
        shown.push(texts(&fixture.app, &sql).await);
    }
    shown
}

/// Compares the content of two tables column by column.
pub(super) fn assert_same(
    columns: &[TypeColumn],
    before: &[Vec<Option<String>>],
    after: &[Vec<Option<String>>],
) {
    for (n, column) in columns.iter().enumerate() {
        assert_eq!(before[n].len(), after[n].len(), "rows of `{}`", column.sql_type);
        for (id, (before, after)) in before[n].iter().zip(&after[n]).enumerate() {
            assert_eq!(before, after, "c{n}, type `{}`, row {id}", column.sql_type);
        }
    }
}

/// The texts that a query returns.
pub(super) async fn texts(database: &TestDatabase, sql: &str) -> Vec<Option<String>> {
    match database {
        TestDatabase::Postgres(database) => {
            let rows = database.client().await.query(sql, &[]).await;
            let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            rows.iter().map(|row| row.get(0)).collect()
        }
        TestDatabase::Mariadb(database) => {
            database.rows(sql).await.into_iter().map(|mut row| row.remove(0)).collect()
        }
        TestDatabase::Sqlite(file) => {
            let owned = sql.to_owned();
            let rows = file.read(move |db| {
                let mut statement = db.prepare(&owned)?;
                let rows = statement.query_map((), |row| row.get(0))?;
                Ok(rows.collect::<Result<Vec<_>, _>>()?)
            });
            rows.await.unwrap_or_else(|error| panic!("{sql}: {error}"))
        }
        #[cfg(feature = "dynamodb")]
        TestDatabase::Dynamodb(_) => panic!("DynamoDB has no column types"),
    }
}

/// The modes of MariaDB for literals in standard SQL.
const MODES: &str = "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES', \
                     time_zone = '+00:00'";

/// Runs a statement as it is.
pub(super) async fn run(fixture: &EngineFixture, sql: &str) {
    match &fixture.app {
        // The fixture would replace the type `text`.
        TestDatabase::Mariadb(database) => {
            let mut client = database.client().await;
            database.run_on(&mut client, MODES).await;
            database.run_on(&mut client, sql).await;
        }
        app => app.run(sql).await,
    }
}

/// Runs a statement that the database may refuse. Returns whether it ran.
pub(super) async fn try_run(fixture: &EngineFixture, sql: &str) -> bool {
    match &fixture.app {
        TestDatabase::Postgres(database) => {
            database.client().await.batch_execute(sql).await.is_ok()
        }
        TestDatabase::Mariadb(database) => {
            database.try_run(&format!("{MODES}; {sql}")).await.is_ok()
        }
        TestDatabase::Sqlite(file) => {
            let owned = sql.to_owned();
            file.write(move |tx| Ok(tx.execute_batch(&owned)?)).await.is_ok()
        }
        #[cfg(feature = "dynamodb")]
        TestDatabase::Dynamodb(_) => panic!("DynamoDB has no SQL"),
    }
}
