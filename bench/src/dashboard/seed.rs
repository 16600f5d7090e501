//! Fills a store with jobs, chunks and dead letters by SQL statements, because running them would take a day.

use anyhow::{Context, Result};
use rusqlite::Connection;
use std::collections::BTreeMap;
use windlass_testkit::Database;

/// A store on PostgreSQL or SQLite.
pub(crate) enum Store {
    Postgres(Database),
    Sqlite(String),
}

/// The jobs to open.
pub(crate) struct SeededJobs {
    /// A running job of 10,000 chunks.
    pub(super) large: String,
}

/// Running or queued jobs besides the two large ones.
const OPEN: u64 = 30;
/// Open dead letters.
const LETTERS: u64 = 10_000;

impl SeededJobs {
    /// Fills a store with copies of one job, all submitted within the last day.
    pub(super) async fn fill(store: &Store, id: &str, jobs: u64) -> Result<SeededJobs> {
        SeededJobs::finished(store, id, jobs).await?;
        let mut open = SeededJobs::ended(store, jobs);
        open.insert("id", store.id("200000000 + n"));
        open.insert("root", store.id("200000000 + n"));
        open.insert("status", "CASE WHEN n % 3 = 0 THEN 'PROCESSING' ELSE 'QUEUED' END".to_owned());
        open.insert("open_segments", "1".to_owned());
        open.insert("finished_at", "NULL".to_owned());
        store.copy("windlass_jobs", "id", id, &open, OPEN).await?;
        store.letters(&format!("00000000-0000-7000-8000-{:012}", 1)).await?;
        let large = SeededJobs::add(store, id, 10_000).await?;
        Ok(SeededJobs { large })
    }

    /// Adds copies of one job that have ended, submitted within the last day.
    pub(crate) async fn finished(store: &Store, id: &str, jobs: u64) -> Result<()> {
        store.copy("windlass_jobs", "id", id, &SeededJobs::ended(store, jobs), jobs).await?;
        store.settle().await
    }

    /// The columns of such a copy.
    fn ended(store: &Store, jobs: u64) -> BTreeMap<&'static str, String> {
        let apart = 86_000.0 / jobs as f64;
        let back = |times: &str| store.ago(&format!("({times}) * {apart}"));
        BTreeMap::from([
            ("id", store.id("n")),
            ("root", store.id("n")),
            ("submitter", "CASE WHEN n % 3 = 0 THEN 'ann' ELSE 'bob' END".to_owned()),
            ("status", "CASE WHEN n % 50 = 0 THEN 'FAILED' ELSE 'COMPLETED' END".to_owned()),
            ("open_segments", "0".to_owned()),
            ("chunks_total", "1".to_owned()),
            ("completed", "1".to_owned()),
            ("items_total", "1000".to_owned()),
            ("processed", "1000".to_owned()),
            ("created_at", back("n + 1")),
            ("started_at", back("n + 0.5")),
            ("finished_at", back("n")),
        ])
    }

    /// Adds a running job with `chunks` chunks. Returns its id.
    pub(super) async fn add(store: &Store, id: &str, chunks: u64) -> Result<String> {
        let number = (300_000_000 + chunks).to_string();
        let job = BTreeMap::from([
            ("id", store.id(&number)),
            ("root", store.id(&number)),
            ("status", "'PROCESSING'".to_owned()),
            ("open_segments", "0".to_owned()),
            ("open_chunks", (chunks / 2).to_string()),
            ("chunks_total", chunks.to_string()),
            ("items_total", (chunks * 1000).to_string()),
            ("started_at", store.ago("3600")),
        ]);
        store.copy("windlass_jobs", "id", id, &job, 1).await?;
        let id = format!("00000000-0000-7000-8000-{number:0>12}");
        store.chunks(&id, chunks).await?;
        store.settle().await?;
        Ok(id)
    }

    /// Changes a job as workers would: a hundred chunks complete and a hundred begin.
    pub(super) async fn change(store: &Store, id: &str, moment: u64) -> Result<()> {
        let now = store.ago("0");
        let from = 50_000 + moment * 100;
        let (done, begun) = (from + 100, from + 200);
        let set = |status: &str, from: u64, to: u64, more: &str| {
            format!(
                "UPDATE windlass_chunks SET status = '{status}', {more}
                 WHERE job_id = '{id}' AND number >= {from} AND number < {to};"
            )
        };
        let ended = format!("processed = 1000, finished_at = {now}");
        let ended = set("COMPLETED", from, done, &ended);
        let begun = set("PROCESSING", done, begun, &format!("started_at = {now}"));
        store.run(&(ended + &begun)).await
    }
}

impl Store {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Store::Postgres(_) => "PostgreSQL",
            Store::Sqlite(_) => "SQLite",
        }
    }

    pub(super) fn url(&self) -> &str {
        match self {
            Store::Postgres(database) => database.url(),
            Store::Sqlite(url) => url,
        }
    }

    fn sqlite(url: &str) -> Result<Connection> {
        let file = url.strip_prefix("sqlite:").context("a file")?;
        let connection = Connection::open(file)?;
        connection.busy_timeout(std::time::Duration::from_secs(30))?;
        Ok(connection)
    }

    async fn run(&self, sql: &str) -> Result<()> {
        match self {
            Store::Postgres(database) => database.run(sql).await,
            Store::Sqlite(url) => Store::sqlite(url)?.execute_batch(sql)?,
        }
        Ok(())
    }

    async fn settle(&self) -> Result<()> {
        match self {
            Store::Postgres(database) => crate::setup::settle(database).await,
            Store::Sqlite(_) => self.run("PRAGMA wal_checkpoint(TRUNCATE)").await?,
        }
        Ok(())
    }

    /// A time `seconds` ago, in SQL.
    fn ago(&self, seconds: &str) -> String {
        match self {
            Store::Postgres(_) => format!("clock_timestamp() - {seconds} * interval '1 second'"),
            Store::Sqlite(_) => {
                format!("CAST(unixepoch('subsec') * 1000 - {seconds} * 1000 AS INTEGER)")
            }
        }
    }

    /// The id with this number, in SQL.
    fn id(&self, number: &str) -> String {
        match self {
            Store::Postgres(_) => {
                format!("('00000000-0000-7000-8000-' || lpad(({number})::text, 12, '0'))::uuid")
            }
            Store::Sqlite(_) => format!("printf('00000000-0000-7000-8000-%012d', {number})"),
        }
    }

    /// The numbers below `count`, as `numbers (n)`.
    fn numbers(&self, count: u64) -> String {
        match self {
            Store::Postgres(_) => format!("generate_series(0, {count} - 1) AS numbers (n)"),
            Store::Sqlite(_) => format!(
                "(WITH RECURSIVE r (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r WHERE n < {count} - 1)
                  SELECT n FROM r) AS numbers"
            ),
        }
    }

    async fn columns(&self, table: &str) -> Result<Vec<String>> {
        match self {
            Store::Postgres(database) => {
                let sql = format!(
                    "SELECT column_name::text FROM information_schema.columns WHERE table_name = '{table}'"
                );
                let rows = database.client().await.query(&sql, &[]).await?;
                Ok(rows.iter().map(|row| row.get(0)).collect())
            }
            Store::Sqlite(url) => {
                let connection = Store::sqlite(url)?;
                let sql = format!("SELECT name FROM pragma_table_info('{table}')");
                let mut statement = connection.prepare(&sql)?;
                let names = statement.query_map([], |row| row.get(0))?;
                Ok(names.collect::<Result<_, _>>()?)
            }
        }
    }

    /// Copies a row `times` times, with other values in some columns. `n` is the number of the copy.
    async fn copy(
        &self,
        table: &str,
        key: &str,
        id: &str,
        other: &BTreeMap<&str, String>,
        times: u64,
    ) -> Result<()> {
        let columns = self.columns(table).await?;
        let value = |column: &String| other.get(column.as_str()).unwrap_or(column).clone();
        let values: Vec<String> = columns.iter().map(value).collect();
        let sql = format!(
            "INSERT INTO {table} ({}) SELECT {} FROM {table}, {} WHERE {key} = '{id}'",
            columns.join(", "),
            values.join(", "),
            self.numbers(times)
        );
        self.run(&sql).await
    }

    /// The chunks of a job: half completed, a few failed, a hundred processing, the rest pending.
    async fn chunks(&self, job: &str, chunks: u64) -> Result<()> {
        let half = chunks / 2;
        let numbers = self.numbers(chunks);
        let [from, to] = ["n * 1000", "n * 1000 + 1000"].map(|key| format!("CAST({key} AS text)"));
        let when = self.ago(&format!("3600.0 * ({half} - n) / {half}"));
        let now = self.ago("0");
        self.run(&format!(
            "INSERT INTO windlass_chunks (job_id, number, segment, status, epoch, key_set, items, processed,
                 dead, worker, available_at, lease_until, started_at, finished_at)
             SELECT '{job}', n, 0,
                 CASE WHEN n % 997 = 5 AND n < {half} THEN 'FAILED' WHEN n < {half} THEN 'COMPLETED'
                     WHEN n < {half} + 100 THEN 'PROCESSING' ELSE 'PENDING' END,
                 1, '{{\"part\":{{\"range\":{{\"after\":[' || {from} || '],\"upto\":[' || {to} || ']}}}}}}',
                 1000, CASE WHEN n < {half} THEN 999 ELSE 0 END, CASE WHEN n < {half} THEN 1 ELSE 0 END,
                 'worker:1', {now}, NULL,
                 CASE WHEN n < {half} + 100 THEN {now} END, CASE WHEN n < {half} THEN {when} END
             FROM {numbers}"
        ))
        .await
    }

    /// Dead letters of a job with a few error fingerprints, each with its own text.
    async fn letters(&self, job: &str) -> Result<()> {
        let (numbers, id, when) = (self.numbers(LETTERS), self.id("n"), self.ago("n"));
        let text = "CAST(n AS text)";
        self.run(&format!(
            "INSERT INTO windlass_dead_letters (id, job_id, job_type, chunk, key, record, error, pattern,
                 context, attempts, submitter, created_at, updated_at)
             SELECT {id}, '{job}', 'RAISE', 0, '[' || {text} || ']',
                 '{{\"id\":' || {text} || ',\"owner\":\"somebody\",\"amount\":1}}',
                 'row ' || {text} || ' is bad', 'row … is bad ' || substr('abcdefgh', 1 + n % 8, 1),
                 'null', 1, 'ann', {when}, {when}
             FROM {numbers}"
        ))
        .await
    }
}
