//! The example with fewer rows and shorter waits, and the operations that the tests need.

use crate::common::CliSandbox;
use std::sync::atomic::{AtomicU32, Ordering};
use windlass_testkit::{Database, MariaDatabase, MariaServer, Moto, PostgresServer, Running};

/// The bank, the warehouse with the store, a destination for output, and a folder to run commands in.
pub(crate) struct NightlyFixture {
    pub(crate) bank: MariaDatabase,
    pub(crate) warehouse: Database,
    pub(crate) sandbox: CliSandbox,
    pub(crate) output: Destination,
    environment: Vec<(String, String)>,
}

/// The destination of output.
pub(crate) enum Destination {
    /// The folder `out` of the sandbox.
    Folder,
    /// A prefix in a bucket of the shared endpoint.
    Bucket(String),
}

/// Rows of the source, in forty chunks.
pub(crate) const ROWS: i64 = 20_000;
/// Rows per chunk.
const ITEMS: i64 = 500;
/// The date that tests run by hand.
pub(crate) const DATE: &str = "2026-01-31";

impl NightlyFixture {
    /// Output goes to a folder.
    pub(crate) async fn in_a_folder() -> NightlyFixture {
        NightlyFixture::new(Destination::Folder, ROWS, &[], |url| url).await
    }

    /// Output goes to a bucket of this endpoint.
    pub(crate) async fn in_a_bucket(moto: &Moto) -> NightlyFixture {
        NightlyFixture::in_a_bucket_with(moto, ROWS).await
    }

    /// The same with another number of transactions.
    pub(crate) async fn in_a_bucket_with(moto: &Moto, rows: i64) -> NightlyFixture {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let prefix = format!("night-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let output = Destination::Bucket(prefix);
        NightlyFixture::new(output, rows, &moto.environment(), |url| url).await
    }

    /// The bank is reached through another URL, which the test makes from its own.
    pub(crate) async fn via(url: impl FnOnce(String) -> String) -> NightlyFixture {
        NightlyFixture::new(Destination::Folder, ROWS, &[], url).await
    }

    async fn new(
        output: Destination,
        number_of_rows: i64,
        more: &[(String, String)],
        via: impl FnOnce(String) -> String,
    ) -> NightlyFixture {
        let bank = MariaServer::shared().database().await;
        let rows = include_str!("../../../../../examples/nightly/transactions.sql");
        bank.run(&format!("SET @rows = {number_of_rows};\n{rows}")).await;
        let warehouse = PostgresServer::shared().database().await;
        warehouse.run(include_str!("../../../../../examples/nightly/warehouse.sql")).await;
        let mut environment = vec![
            ("SOURCE_URL".to_owned(), via(bank.url().to_owned())),
            ("WAREHOUSE_URL".to_owned(), warehouse.url().to_owned()),
            ("OUTPUT".to_owned(), output.url()),
        ];
        environment.extend_from_slice(more);
        let sandbox = CliSandbox::with(&config());
        let sandbox =
            environment.iter().fold(sandbox, |sandbox, (name, value)| sandbox.env(name, value));
        NightlyFixture { bank, warehouse, sandbox, output, environment }
    }

    /// Submits a job type for the date.
    pub(crate) async fn submit(&self, job_type: &str) -> String {
        self.sandbox.submit(&format!("{job_type} --param date={DATE}")).await
    }

    /// Runs a job type for the date, which must complete.
    pub(crate) async fn complete(&self, job_type: &str) -> String {
        let id = self.submit(job_type).await;
        self.work(&id).await;
        id
    }

    /// Works a job, which must complete.
    pub(crate) async fn work(&self, id: &str) {
        self.sandbox.run(&format!("worker --job {id}")).await.ok();
    }

    /// The URL or folder of the output, for other programs.
    pub(crate) fn root(&self) -> String {
        match &self.output {
            Destination::Folder => self.sandbox.path("out").display().to_string(),
            Destination::Bucket(_) => self.output.url(),
        }
    }

    /// The environment variables of every command.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&str, &str)> {
        self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Replaces a text in windlass.toml.
    pub(crate) fn edit(&self, from: &str, to: &str) {
        let text = self.sandbox.read("windlass.toml");
        assert!(text.contains(from), "{from}");
        self.sandbox.write("windlass.toml", &text.replace(from, to));
    }

    /// Asserts that the totals in the warehouse equal the bank's own GROUP BY.
    pub(crate) async fn totals_are_the_banks_own(&self) {
        let own = self.own_totals().await;
        assert!(own.len() > 100, "{own:?}");
        assert_eq!(self.loaded().await, own);
    }

    /// Each branch with its count and sum, from one statement on the bank.
    pub(crate) async fn own_totals(&self) -> Vec<Vec<String>> {
        let sql = "SELECT branch, count(*), COALESCE(sum(amount), 0) FROM transactions \
                   GROUP BY branch";
        let mut rows: Vec<Vec<String>> = self.bank.rows(sql).await.into_iter().map(texts).collect();
        rows.sort();
        rows
    }

    /// The same from the warehouse, for the date.
    pub(crate) async fn loaded(&self) -> Vec<Vec<String>> {
        let sql = format!(
            "SELECT COALESCE(string_agg(concat_ws(E'\\t', branch, transactions, total), E'\\n'), '') \
             FROM daily_report WHERE date = '{DATE}'"
        );
        let text: String = self.warehouse.one(&sql).await;
        let mut rows: Vec<Vec<String>> =
            text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect();
        rows.sort();
        rows
    }

    /// Kills workers while they work on a job, `kills` times at random moments, and then completes
    /// it.
    pub(crate) async fn kill_at_work(&self, job_type: &str, id: &str, kills: usize) {
        // Slow, so that a worker is running for each kill.
        self.sandbox.run(&format!("throughput {job_type} --rate 200")).await.ok();
        let mut workers: Vec<Running> = (0..2).map(|_| self.sandbox.spawn("worker")).collect();
        let mut rng = 20_251_116_u64;
        for turn in 0..kills {
            let victim = turn % workers.len();
            let process = workers[victim].id();
            self.sandbox.until(id, "there is work left", |job| job["phase"] == "working").await;
            crate::common::eventually("the worker has leased chunks", async || {
                !self.sandbox.held_by(id, process).await.is_empty()
            })
            .await;
            rng =
                rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Any moment will do, so a pseudo-random one.
            tokio::time::sleep(std::time::Duration::from_millis((rng >> 33) % 200)).await;
            workers[victim].kill9();
            workers[victim] = self.sandbox.spawn("worker");
        }
        self.sandbox.run(&format!("throughput {job_type} --rate unlimited")).await.ok();
        self.sandbox.completed(id).await;
    }
}

impl Destination {
    fn url(&self) -> String {
        match self {
            Destination::Folder => "file:out".to_owned(),
            Destination::Bucket(prefix) => format!("s3://{}/{prefix}", Moto::BUCKET),
        }
    }
}

fn config() -> String {
    let mut text = include_str!("../../../../../examples/nightly/windlass.toml").to_owned();
    for (from, to) in [
        ("chunk.items = 10000", format!("chunk.items = {ITEMS}")),
        ("chunk.lease = \"10s\"", "chunk.lease = \"1s\"".to_owned()),
        ("backoff = \"1s\"", "backoff = \"50ms\"".to_owned()),
    ] {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, &to);
    }
    text
}

fn texts(row: Vec<Option<String>>) -> Vec<String> {
    row.into_iter().map(Option::unwrap_or_default).collect()
}
