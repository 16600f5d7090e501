//! A database for one test, on each backend.

use rusqlite::types::ValueRef;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_postgres::SimpleQueryMessage;
use windlass_connectors::{
    Commit, Connection, DeferredItem, DeferredPage, DeferredState, Effect, Fence, Ledger, Scope,
    connect, validate,
};
use windlass_core::{ChunkId, Config, Counts, Cursor, Identity, JobType, KeySet, Request, Value};
use windlass_testkit::{Database, MariaDatabase, MariaServer, PostgresServer};

/// Declares a test for every function on every backend.
macro_rules! on_every_backend {
    ($($test:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::harness::Db::sqlite().await).await;
            })+
        }
        mod on_postgres {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::harness::Db::postgres().await).await;
            })+
        }
        mod on_mariadb {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::harness::Db::mariadb().await).await;
            })+
        }
    };
}
pub(crate) use on_every_backend;

/// The default nonce of a test's leases.
pub(crate) const NONCE: i64 = i64::MIN + 7;

/// A database for one test, with the ledger prepared.
pub(crate) struct Db {
    pub(crate) data: Arc<dyn Connection>,
    raw: Raw,
    _folder: Option<tempfile::TempDir>,
}

enum Raw {
    #[cfg(feature = "dynamodb")]
    Dynamodb(windlass_testkit::Dynamodb),
    Sqlite(PathBuf),
    Postgres(Database),
    Mariadb(MariaDatabase),
}

impl Db {
    pub(crate) async fn sqlite() -> Db {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.db");
        rusqlite::Connection::open(&path)
            .unwrap()
            .execute_batch("PRAGMA user_version = 1")
            .unwrap();
        let data = connect(&format!("sqlite:{}", path.display()), 4).await.unwrap();
        data.prepare().await.unwrap();
        Db { data, raw: Raw::Sqlite(path), _folder: Some(folder) }
    }

    pub(crate) async fn postgres() -> Db {
        Db::postgres_on(PostgresServer::shared().database().await).await
    }

    pub(crate) async fn postgres_on(database: Database) -> Db {
        let data = connect(database.url(), 4).await.unwrap();
        data.prepare().await.unwrap();
        Db { data, raw: Raw::Postgres(database), _folder: None }
    }

    pub(crate) async fn mariadb() -> Db {
        Db::mariadb_on(MariaServer::shared().database().await).await
    }

    pub(crate) async fn mariadb_on(database: MariaDatabase) -> Db {
        let data = connect(database.url(), 4).await.unwrap();
        data.prepare().await.unwrap();
        Db { data, raw: Raw::Mariadb(database), _folder: None }
    }

    #[cfg(feature = "dynamodb")]
    pub(crate) async fn dynamodb() -> Db {
        Db::dynamodb_on(windlass_testkit::Moto::shared().dynamodb()).await
    }

    /// DynamoDB as another program implements it, which runs requests in parallel.
    #[cfg(feature = "dynamodb")]
    pub(crate) async fn ministack() -> Db {
        Db::dynamodb_on(windlass_testkit::Ministack::shared().dynamodb()).await
    }

    #[cfg(feature = "dynamodb")]
    async fn dynamodb_on(tables: windlass_testkit::Dynamodb) -> Db {
        let data = connect(&tables.url(), 4).await.unwrap();
        data.prepare().await.unwrap();
        Db { data, raw: Raw::Dynamodb(tables), _folder: None }
    }

    #[cfg(feature = "dynamodb")]
    pub(crate) fn tables(&self) -> &windlass_testkit::Dynamodb {
        match &self.raw {
            Raw::Dynamodb(tables) => tables,
            _ => panic!("not DynamoDB"),
        }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self.raw, Raw::Sqlite(_))
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.raw, Raw::Postgres(_))
    }

    /// The text for the backend.
    pub(crate) fn pick<'a>(&self, postgres: &'a str, sqlite: &'a str, mariadb: &'a str) -> &'a str {
        match self.raw {
            Raw::Postgres(_) => postgres,
            Raw::Sqlite(_) => sqlite,
            Raw::Mariadb(_) => mariadb,
            // The simulator takes SQLite's statements.
            #[cfg(feature = "dynamodb")]
            Raw::Dynamodb(_) => sqlite,
        }
    }

    /// Updates the statistics of a table.
    pub(crate) async fn analyze(&self, table: &str) {
        self.run(&format!("{} {table}", self.pick("ANALYZE", "ANALYZE", "ANALYZE TABLE"))).await;
    }

    pub(crate) fn database(&self) -> &Database {
        match &self.raw {
            Raw::Postgres(database) => database,
            _ => panic!("not PostgreSQL"),
        }
    }

    pub(crate) fn maria(&self) -> &MariaDatabase {
        match &self.raw {
            Raw::Mariadb(database) => database,
            _ => panic!("not MariaDB"),
        }
    }

    /// A connection of an application to the file.
    pub(crate) fn client(&self) -> rusqlite::Connection {
        match &self.raw {
            Raw::Sqlite(path) => open(path),
            _ => panic!("not SQLite"),
        }
    }

    /// The error with which the outbox refuses a request.
    pub(crate) async fn refusal(&self, job_type: &str, request: &str) -> String {
        match &self.raw {
            Raw::Postgres(database) => {
                let client = database.client().await;
                let sql = "SELECT windlass_enqueue($1, $2::text::jsonb)";
                let error = client.query(sql, &[&job_type, &request]).await.unwrap_err();
                error.as_db_error().unwrap().message().to_owned()
            }
            Raw::Sqlite(_) => {
                let sql = "INSERT INTO windlass_outbox (job_type, request) VALUES (?1, ?2)";
                self.client().execute(sql, [job_type, request]).unwrap_err().to_string()
            }
            Raw::Mariadb(database) => {
                let request = request.replace('\'', "''");
                let sql = format!(
                    "INSERT INTO windlass_outbox (job_type, request) VALUES ('{job_type}', '{request}')"
                );
                database.try_run(&sql).await.unwrap_err().to_string()
            }
            #[cfg(feature = "dynamodb")]
            Raw::Dynamodb(_) => panic!("DynamoDB has no outbox"),
        }
    }

    /// The error of a statement that the database refuses.
    pub(crate) async fn error_of(&self, sql: &str) -> String {
        self.try_run(sql).await.unwrap_err()
    }

    /// Runs a statement that the database may refuse.
    pub(crate) async fn try_run(&self, sql: &str) -> Result<(), String> {
        match &self.raw {
            #[cfg(feature = "dynamodb")]
            Raw::Dynamodb(_) => panic!("DynamoDB has no SQL"),
            Raw::Postgres(database) => {
                let run = database.client().await.batch_execute(sql).await;
                run.map_err(|error| error.as_db_error().unwrap().message().to_owned())
            }
            Raw::Mariadb(database) => {
                database.try_run(sql).await.map_err(|error| error.to_string())
            }
            Raw::Sqlite(path) => open(path).execute_batch(sql).map_err(|error| error.to_string()),
        }
    }

    /// Runs statements like an application.
    pub(crate) async fn run(&self, sql: &str) {
        match &self.raw {
            #[cfg(feature = "dynamodb")]
            Raw::Dynamodb(tables) => tables.run(sql),
            Raw::Postgres(database) => database.run(sql).await,
            // TEXT cannot be a key in MariaDB.
            Raw::Mariadb(database) => {
                let sql = MariaServer::shared().spell(&sql.replace(" TEXT", " VARCHAR(200)"));
                database.run(&sql).await
            }
            Raw::Sqlite(path) => {
                open(path).execute_batch(sql).unwrap_or_else(|e| panic!("{sql}: {e}"))
            }
        }
    }

    /// Every value of a query as text.
    pub(crate) async fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let text = |value: Option<&str>| value.unwrap_or("NULL").to_owned();
        match &self.raw {
            Raw::Postgres(database) => {
                let messages = database.client().await.simple_query(sql).await.unwrap();
                let row = |message: &SimpleQueryMessage| match message {
                    SimpleQueryMessage::Row(row) => {
                        Some((0..row.len()).map(|n| text(row.get(n))).collect())
                    }
                    _ => None,
                };
                messages.iter().filter_map(row).collect()
            }
            #[cfg(feature = "dynamodb")]
            Raw::Dynamodb(tables) => {
                let row = |row: Vec<Option<String>>| {
                    row.iter().map(|value| text(value.as_deref())).collect()
                };
                tables.rows(sql).into_iter().map(row).collect()
            }
            Raw::Mariadb(database) => {
                let rows = database.rows(sql).await;
                let row = |row: Vec<Option<String>>| {
                    row.iter().map(|value| text(value.as_deref())).collect()
                };
                rows.into_iter().map(row).collect()
            }
            Raw::Sqlite(path) => {
                let connection = open(path);
                let mut statement = connection.prepare(sql).unwrap();
                let width = statement.column_count();
                let read = |row: &rusqlite::Row<'_>| {
                    let cell = |n| match row.get_ref_unwrap(n) {
                        ValueRef::Null => "NULL".to_owned(),
                        ValueRef::Integer(value) => value.to_string(),
                        ValueRef::Real(value) => value.to_string(),
                        ValueRef::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
                        ValueRef::Blob(bytes) => format!("{bytes:?}"),
                    };
                    Ok((0..width).map(cell).collect())
                };
                statement.query_map([], read).unwrap().map(Result::unwrap).collect()
            }
        }
    }

    /// The single value of a query as text.
    pub(crate) async fn one(&self, sql: &str) -> String {
        self.rows(sql).await[0][0].clone()
    }

    /// The single number of a query.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.one(sql).await.parse().unwrap()
    }

    /// A job type validated against its table.
    pub(crate) async fn job_type(&self, toml: &str) -> (JobType, windlass_core::Table) {
        let mut job_type = job_type(toml);
        let table = self.data.describe(&job_type.source).await.unwrap();
        let problems = validate(&mut job_type, &table);
        assert!(problems.is_empty(), "{problems:?}");
        (job_type, table)
    }

    /// The scope of a job for the whole source.
    pub(crate) async fn scope(&self, toml: &str) -> Scope {
        self.scope_for(toml, Request::new("J"), Identity::default()).await
    }

    /// The scope of a job.
    pub(crate) async fn scope_for(
        &self,
        toml: &str,
        request: Request,
        identity: Identity,
    ) -> Scope {
        let (job_type, table) = self.job_type(toml).await;
        Scope::new(job_type, table, &request, &identity).unwrap()
    }

    /// The first deferred items of a chunk in this state.
    pub(crate) async fn deferred(&self, chunk: ChunkId, state: DeferredState) -> Vec<DeferredItem> {
        self.data.deferred(chunk, DeferredPage::new(state, None, 10)).await.unwrap()
    }

    /// Whether PostgreSQL has `numeric(5, -2)`, as since version 15.
    pub(crate) async fn has_negative_scales(&self) -> bool {
        let since = "SELECT count(*) FROM pg_settings \
                     WHERE name = 'server_version_num' AND setting::int >= 150000";
        self.number(since).await == 1
    }

    /// Fences one chunk of a new job.
    pub(crate) async fn fenced(&self, epoch: i64) -> Ledger {
        let chunk = ChunkId { job: uuid::Uuid::now_v7(), number: 0 };
        self.fence(chunk, epoch, false).await.unwrap()
    }

    pub(crate) async fn fence(&self, chunk: ChunkId, epoch: i64, lost: bool) -> Option<Ledger> {
        self.fence_with(Fence { chunk, epoch, nonce: NONCE, lost }).await
    }

    pub(crate) async fn fence_with(&self, fence: Fence) -> Option<Ledger> {
        self.data.fence(&[fence]).await.unwrap().pop().unwrap()
    }
}

/// `[jobs.J]` with this content.
pub(crate) fn job_type(toml: &str) -> JobType {
    let text = format!("[jobs.J]\nsource.connection = \"a\"\n{toml}");
    Config::parse(&text, |_| None).unwrap().jobs["J"].clone()
}

/// A commit with only an effect.
pub(crate) fn effect(effect: Effect) -> Commit {
    Commit {
        cursor: Cursor::End,
        effect,
        counts: Counts::default(),
        defer: Vec::new(),
        resolve: Vec::new(),
    }
}

/// The key set of all records.
pub(crate) fn everything() -> KeySet {
    KeySet::range(None, None)
}

/// A key of one integer.
pub(crate) fn key(number: i64) -> windlass_core::Key {
    windlass_core::Key(vec![Value::Int(number)])
}

/// Pseudorandom numbers that are the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn open(path: &PathBuf) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    connection
}
