//! The databases of one test: one with the user's data, one with the store.

use std::path::Path;
use tempfile::TempDir;
use windlass_core::Config;
use windlass_core::config::Dialect;
use windlass_drivers::Sqlite;
use windlass_engine::{Builder, Engine};
use windlass_testkit::{Database, MariaDatabase, MariaServer, PostgresServer, Proxy};

/// The databases of one test, removed with it.
pub(crate) struct EngineFixture {
    pub(crate) app: TestDatabase,
    pub(crate) store: TestDatabase,
    pub(crate) dialect: Dialect,
    pub(crate) folder: TempDir,
}

/// One database.
#[derive(Clone)]
pub(crate) enum TestDatabase {
    Postgres(Database),
    Sqlite(Sqlite),
    Mariadb(MariaDatabase),
    #[cfg(feature = "dynamodb")]
    Dynamodb(windlass_testkit::Dynamodb),
}

impl EngineFixture {
    pub(crate) async fn postgres() -> EngineFixture {
        let server = PostgresServer::shared();
        let app = TestDatabase::Postgres(server.database().await);
        let store = TestDatabase::Postgres(server.database().await);
        let dialect = Dialect::Postgres;
        EngineFixture { app, store, dialect, folder: TempDir::new().unwrap() }
    }

    /// With the store in PostgreSQL, in the dialect `strict`.
    pub(crate) async fn strict() -> EngineFixture {
        EngineFixture { dialect: Dialect::Strict, ..EngineFixture::postgres().await }
    }

    pub(crate) async fn sqlite() -> EngineFixture {
        let folder = TempDir::new().unwrap();
        let open =
            |name: &str| TestDatabase::Sqlite(Sqlite::create(&folder.path().join(name)).unwrap());
        let (app, store, dialect) = (open("app.db"), open("store.db"), Dialect::Postgres);
        EngineFixture { app, store, dialect, folder }
    }

    /// With the store in a SQLite file.
    pub(crate) async fn mariadb() -> EngineFixture {
        let app = TestDatabase::Mariadb(MariaServer::shared().database().await);
        EngineFixture { app, ..EngineFixture::sqlite().await }
    }

    /// With the store in a SQLite file.
    #[cfg(feature = "dynamodb")]
    pub(crate) async fn dynamodb() -> EngineFixture {
        let app = TestDatabase::Dynamodb(windlass_testkit::Moto::shared().dynamodb());
        EngineFixture { app, ..EngineFixture::sqlite().await }
    }

    /// An empty fixture of the same kind.
    pub(crate) async fn another(&self) -> EngineFixture {
        match self.app {
            TestDatabase::Postgres(_) => {
                EngineFixture { dialect: self.dialect, ..EngineFixture::postgres().await }
            }
            TestDatabase::Sqlite(_) => EngineFixture::sqlite().await,
            TestDatabase::Mariadb(_) => EngineFixture::mariadb().await,
            #[cfg(feature = "dynamodb")]
            TestDatabase::Dynamodb(_) => EngineFixture::dynamodb().await,
        }
    }

    /// The spelling for the store's database.
    pub(crate) fn spell<'a>(&self, postgres: &'a str, sqlite: &'a str) -> &'a str {
        match self.store {
            TestDatabase::Postgres(_) => postgres,
            _ => sqlite,
        }
    }

    /// The spelling for the database of the user's data.
    pub(crate) fn spell_for_app<'a>(
        &self,
        postgres: &'a str,
        sqlite: &'a str,
        mariadb: &'a str,
    ) -> &'a str {
        match self.app {
            TestDatabase::Postgres(_) => postgres,
            TestDatabase::Sqlite(_) => sqlite,
            TestDatabase::Mariadb(_) => mariadb,
            // DynamoDB's tables are described in SQLite's SQL.
            #[cfg(feature = "dynamodb")]
            TestDatabase::Dynamodb(_) => sqlite,
        }
    }

    /// Creates `visits` with the ids from 1 to `rows`, and an empty `log`.
    pub(crate) async fn visits(&self, rows: i64) {
        self.app.run(VISITS).await;
        let insert = format!(
            "INSERT INTO visits (id) WITH RECURSIVE n(i) AS
             (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i FROM n"
        );
        self.app.run(&insert).await;
    }

    /// The text of a windlass.toml with these job types.
    pub(crate) fn toml(&self, jobs: &str) -> String {
        // DynamoDB does not support SQL, so the step increments a version instead. moto is slow, so short leases
        // must be longer.
        #[cfg(feature = "dynamodb")]
        let jobs = &match self.app {
            TestDatabase::Dynamodb(_) => {
                jobs.replace(super::ADD, RAISE).replace("\"300ms\"", "\"2s\"")
            }
            _ => jobs.to_owned(),
        };
        let toml = toml(&self.app.url(), &self.store.url(), jobs);
        match self.dialect {
            Dialect::Strict => toml.replacen("[store]\n", "[store]\ndialect = \"strict\"\n", 1),
            _ => toml,
        }
    }

    /// An engine to add handlers to.
    pub(crate) fn builder(&self, jobs: &str) -> Builder {
        builder(&self.toml(jobs))
    }

    /// An engine without handlers.
    pub(crate) async fn engine(&self, jobs: &str) -> Engine {
        self.builder(jobs).connect().await.unwrap()
    }

    /// An integer from the user's data.
    pub(crate) async fn int(&self, sql: &str) -> i64 {
        self.app.int(sql).await
    }

    /// Makes all leases in a table of the store expire.
    pub(crate) async fn expire(&self, table: &str) {
        let past = self.spell("clock_timestamp() - interval '1 hour'", "1");
        let sql = format!("UPDATE {table} SET lease_until = {past} WHERE status = 'PROCESSING'");
        self.store.run(&sql).await;
    }

    /// Copies a store in a SQLite file.
    pub(crate) async fn back_up_store(&self, to: &Path) {
        let TestDatabase::Sqlite(file) = &self.store else {
            panic!("the store is not a SQLite file")
        };
        let copied = windlass_drivers::rusqlite::Connection::open(file.path())
            .and_then(|db| db.execute("VACUUM INTO ?1", [to.display().to_string()]));
        copied.unwrap();
    }

    /// The latest expiry of a chunk's lease, in milliseconds of the store's clock.
    pub(crate) async fn latest_lease(&self) -> i64 {
        let lease = self.spell("extract(epoch FROM lease_until) * 1000", "lease_until");
        self.store.int(&format!("SELECT max({lease}) FROM windlass_chunks")).await
    }

    /// Every visit was changed exactly once.
    #[track_caller]
    pub(crate) fn each_once(&self, rows: i64) -> impl Future<Output = ()> {
        let (app, caller) = (self.app.clone(), std::panic::Location::caller());
        async move {
            let once = app.int("SELECT count(*) FROM visits WHERE amount = 1").await;
            let sum = app.int("SELECT sum(amount) FROM visits").await;
            assert_eq!((once, sum), (rows, rows), "rows changed once and changes, at {caller}");
        }
    }

    /// The log has one line per visit: no insert is lost or duplicated.
    #[track_caller]
    pub(crate) fn logged_once(&self, rows: i64) -> impl Future<Output = ()> {
        let (app, caller) = (self.app.clone(), std::panic::Location::caller());
        async move {
            let lines = app.int("SELECT count(*) FROM log").await;
            let visits = app.int("SELECT count(DISTINCT visit) FROM log").await;
            assert_eq!((lines, visits), (rows, rows), "lines and visits in the log, at {caller}");
        }
    }
}

impl TestDatabase {
    pub(crate) fn url(&self) -> String {
        match self {
            TestDatabase::Postgres(database) => database.url().to_owned(),
            TestDatabase::Sqlite(file) => format!("sqlite:{}", Path::display(file.path())),
            TestDatabase::Mariadb(database) => database.url().to_owned(),
            #[cfg(feature = "dynamodb")]
            TestDatabase::Dynamodb(tables) => tables.url(),
        }
    }

    /// A proxy in front of the server.
    pub(crate) async fn proxy(&self) -> Proxy {
        match self {
            TestDatabase::Postgres(_) => Proxy::start(PostgresServer::shared().addr()).await,
            TestDatabase::Mariadb(_) => Proxy::start_mysql(MariaServer::shared().addr()).await,
            _ => panic!("the proxy supports only servers"),
        }
    }

    /// Runs statements on a new connection.
    pub(crate) async fn run(&self, sql: &str) {
        match self {
            #[cfg(feature = "dynamodb")]
            TestDatabase::Dynamodb(tables) => tables.run(sql),
            TestDatabase::Postgres(database) => database.run(sql).await,
            // MariaDB requires a length for a text that is indexed or has a default.
            TestDatabase::Mariadb(database) => {
                let sql = MariaServer::shared().spell(&sql.replace(" text", " varchar(200)"));
                database.run(&sql).await
            }
            TestDatabase::Sqlite(file) => {
                let owned = sql.to_owned();
                let done = file.write(move |tx| Ok(tx.execute_batch(&owned)?)).await;
                done.unwrap_or_else(|error| panic!("{sql}: {error}"));
            }
        }
    }

    /// The integer that a query returns.
    pub(crate) async fn int(&self, sql: &str) -> i64 {
        match self {
            TestDatabase::Postgres(database) => {
                database.one(&format!("SELECT ({sql})::bigint")).await
            }
            TestDatabase::Mariadb(database) => database.one(sql).await,
            #[cfg(feature = "dynamodb")]
            TestDatabase::Dynamodb(tables) => {
                let rows = tables.rows(sql);
                let number = rows[0][0].as_deref().unwrap_or_else(|| panic!("{sql}: NULL"));
                number.parse().unwrap_or_else(|_| panic!("{sql}: {number}"))
            }
            TestDatabase::Sqlite(file) => {
                let owned = sql.to_owned();
                let found = file.read(move |db| Ok(db.query_row(&owned, (), |row| row.get(0))?));
                found.await.unwrap_or_else(|error| panic!("{sql}: {error}"))
            }
        }
    }
}

/// A windlass.toml for these databases.
pub(crate) fn toml(app: &str, store: &str, jobs: &str) -> String {
    format!("[store]\nurl = \"{store}\"\n[connections.app]\nurl = \"{app}\"\n{jobs}")
}

/// An engine builder for the text of a windlass.toml.
pub(crate) fn builder(toml: &str) -> Builder {
    let config = Config::parse(toml, |_| None).unwrap_or_else(|error| panic!("{error}: {toml}"));
    Engine::builder(config)
}

/// Replaces [`super::ADD`] on DynamoDB.
#[cfg(feature = "dynamodb")]
const RAISE: &str = "step.refresh = true\nstep.version = \"amount\"";

const VISITS: &str = "
    CREATE TABLE visits (
        id      bigint  NOT NULL PRIMARY KEY,
        amount  bigint  NOT NULL DEFAULT 0,
        version bigint  NOT NULL DEFAULT 0,
        note    text,
        county  text    NOT NULL DEFAULT 'north',
        year    bigint  NOT NULL DEFAULT 2024,
        busy    boolean
    );
    CREATE INDEX visits_year ON visits (year, id);
    CREATE INDEX visits_county ON visits (county);
    CREATE TABLE log (visit bigint NOT NULL, what text);";
