//! The user's database on PostgreSQL, SQLite or MariaDB, with the table of the tests.

use super::config;
use rusqlite::types::ValueRef;
use std::path::Path;
use tempfile::TempDir;
use tokio_postgres::{SimpleQueryMessage, SimpleQueryRow};
use windlass_testkit::{Database, MariaDatabase, MariaServer, PostgresServer};

/// A database for one test.
pub(crate) enum Data {
    Postgres(Database),
    Sqlite(TempDir),
    Mariadb(MariaDatabase),
}

impl Data {
    /// A database of the shared PostgreSQL server.
    pub(crate) async fn postgres() -> Data {
        Data::Postgres(PostgresServer::shared().database().await)
    }

    /// A SQLite file.
    pub(crate) fn sqlite() -> Data {
        Data::sqlite_in(TempDir::new().unwrap())
    }

    /// A SQLite file in this folder.
    pub(crate) fn sqlite_in(folder: TempDir) -> Data {
        let data = Data::Sqlite(folder);
        data.connection().pragma_update(None, "journal_mode", "wal").unwrap();
        data
    }

    /// A database of the shared MariaDB server.
    pub(crate) async fn mariadb() -> Data {
        Data::Mariadb(MariaServer::shared().database().await)
    }

    /// One of each kind that can also hold the store.
    pub(crate) async fn both() -> [Data; 2] {
        [Data::sqlite(), Data::postgres().await]
    }

    /// One of each kind.
    pub(crate) async fn each() -> [Data; 3] {
        [Data::sqlite(), Data::postgres().await, Data::mariadb().await]
    }

    /// Those of [`Data::both`], with this many accounts.
    pub(crate) async fn both_with_accounts(rows: i64) -> Vec<Data> {
        Data::all_with_accounts(Data::both().await, rows).await
    }

    /// Those of [`Data::each`], with this many accounts.
    pub(crate) async fn each_with_accounts(rows: i64) -> Vec<Data> {
        Data::all_with_accounts(Data::each().await, rows).await
    }

    async fn all_with_accounts(empty: impl IntoIterator<Item = Data>, rows: i64) -> Vec<Data> {
        let mut filled = Vec::new();
        for data in empty {
            filled.push(data.with_accounts(rows).await);
        }
        filled
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Data::Postgres(database) => database.url().to_owned(),
            Data::Mariadb(database) => database.url().to_owned(),
            Data::Sqlite(folder) => format!("sqlite:{}", folder.path().join("app.db").display()),
        }
    }

    /// The URL of the store: the same database, or a separate file.
    pub(crate) fn store_url(&self) -> String {
        match self {
            Data::Postgres(_) => self.url(),
            Data::Sqlite(_) | Data::Mariadb(_) => "sqlite:windlass.db".to_owned(),
        }
    }

    /// A configuration with the store and the records in this database.
    pub(crate) fn config(&self, jobs: &str) -> String {
        config(&self.store_url(), &self.url(), jobs)
    }

    /// Creates `accounts` with this many rows, and `pace`, which adds no delay at first.
    pub(crate) async fn with_accounts(self, rows: i64) -> Data {
        let numbers = self.numbers(rows);
        self.run(&format!(
            "CREATE TABLE accounts (
                 id bigint PRIMARY KEY NOT NULL, branch integer NOT NULL, amount bigint NOT NULL,
                 owner text, version bigint NOT NULL DEFAULT 1);
             CREATE INDEX accounts_branch ON accounts (branch, id);
             CREATE TABLE pace (seconds real NOT NULL);
             INSERT INTO pace VALUES (0);
             INSERT INTO accounts (id, branch, amount, owner)
             SELECT n, n % 10, n * 7 % 1000, 'owner ' || n FROM ({numbers}) AS numbers;"
        ))
        .await;
        self
    }

    /// A PostgreSQL database with this many accounts, where each commit of a `slow_raise` takes this long.
    pub(crate) async fn slow(rows: i64, seconds: f64) -> Data {
        let data = Data::postgres().await.with_accounts(rows).await;
        data.pace(seconds).await;
        data
    }

    /// A query that returns the numbers from 1 to `last` as `n`.
    pub(crate) fn numbers(&self, last: i64) -> String {
        match self {
            Data::Postgres(_) => format!("SELECT n FROM generate_series(1, {last}) AS n"),
            Data::Sqlite(_) | Data::Mariadb(_) => format!(
                "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {last}) \
                 SELECT n FROM s"
            ),
        }
    }

    /// Sets the duration of each commit of a `slow_raise`.
    pub(crate) async fn pace(&self, seconds: f64) {
        self.run(&format!("UPDATE pace SET seconds = {seconds}")).await;
    }

    /// Runs statements.
    pub(crate) async fn run(&self, sql: &str) {
        match self {
            Data::Postgres(database) => database.run(sql).await,
            Data::Mariadb(database) => database.run(sql).await,
            Data::Sqlite(_) => self.connection().execute_batch(sql).unwrap(),
        }
    }

    /// Runs a statement, or returns why that failed.
    pub(crate) async fn try_run(&self, sql: &str) -> Result<(), String> {
        match self {
            Data::Postgres(database) => {
                let client = database.try_client().await.map_err(text_of)?;
                client.batch_execute(sql).await.map_err(text_of)
            }
            Data::Mariadb(database) => database.try_run(sql).await.map_err(text_of),
            Data::Sqlite(_) => self.connection().execute_batch(sql).map_err(text_of),
        }
    }

    /// All values of a query as text.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        self.try_rows(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The same, or the error.
    pub(crate) async fn try_rows(&self, sql: &str) -> Result<Vec<Vec<String>>, String> {
        match self {
            Data::Postgres(database) => {
                let client = database.try_client().await.map_err(text_of)?;
                let messages = client.simple_query(sql).await.map_err(text_of)?;
                let rows = messages.iter().filter_map(|message| match message {
                    SimpleQueryMessage::Row(row) => Some(row),
                    _ => None,
                });
                let cells = |row: &SimpleQueryRow| {
                    let cell = |at| row.get(at).unwrap_or_default().to_owned();
                    (0..row.len()).map(cell).collect()
                };
                Ok(rows.map(cells).collect())
            }
            Data::Mariadb(database) => {
                let rows = database.try_rows(sql).await.map_err(text_of)?.into_iter();
                let cells = |row: Vec<Option<String>>| {
                    row.into_iter().map(Option::unwrap_or_default).collect()
                };
                Ok(rows.map(cells).collect())
            }
            Data::Sqlite(_) => {
                let connection = self.connection();
                let mut statement = connection.prepare(sql).map_err(text_of)?;
                let columns = statement.column_count();
                let cell = |row: &rusqlite::Row<'_>, at| match row.get_ref(at).unwrap() {
                    ValueRef::Integer(number) => number.to_string(),
                    ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                    other => panic!("{other:?} is neither a number nor text"),
                };
                let cells =
                    |row: &rusqlite::Row<'_>| Ok((0..columns).map(|at| cell(row, at)).collect());
                let rows = statement.query_map((), cells).map_err(text_of)?;
                rows.collect::<Result<_, _>>().map_err(text_of)
            }
        }
    }

    /// The number that a query returns.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        match self {
            Data::Postgres(database) => database.one(&format!("SELECT ({sql})::bigint")).await,
            Data::Mariadb(database) => database.one(sql).await,
            Data::Sqlite(_) => self.connection().query_row(sql, [], |row| row.get(0)).unwrap(),
        }
    }

    /// The text that a query on a SQLite file returns.
    pub(crate) fn text(&self, sql: &str) -> String {
        self.connection().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    /// Asserts that every account was raised exactly once, and that there are no other rows.
    #[track_caller]
    pub(crate) fn raised_once(&self, rows: i64) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let right = "SELECT count(*) FROM accounts WHERE amount = id * 7 % 1000 + 1";
            let twice = "SELECT count(*) FROM accounts WHERE amount > id * 7 % 1000 + 1";
            let (right, twice) = (self.number(right).await, self.number(twice).await);
            assert_eq!((right, twice), (rows, 0), "rows raised once and more often, {caller}");
        }
    }

    /// Asserts that no account was changed.
    pub(crate) async fn untouched(&self) {
        let touched = "SELECT count(*) FROM accounts \
                       WHERE amount <> id * 7 % 1000 OR version <> 1";
        assert_eq!(self.number(touched).await, 0, "rows were changed");
    }

    fn connection(&self) -> rusqlite::Connection {
        let Data::Sqlite(folder) = self else { panic!("not a SQLite file") };
        let connection = rusqlite::Connection::open(folder.path().join("app.db")).unwrap();
        connection.busy_timeout(super::PATIENCE).unwrap();
        connection
    }

    /// The folder of a SQLite file.
    pub(crate) fn folder(&self) -> &Path {
        let Data::Sqlite(folder) = self else { panic!("not a SQLite file") };
        folder.path()
    }
}

fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}
