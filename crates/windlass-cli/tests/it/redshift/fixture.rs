//! Accounts in a source, and a warehouse that refuses what Redshift refuses.

use crate::common::{CliSandbox, Data, config};
use windlass_testkit::{Database, Gate, Moto, PostgresServer, RedshiftServer, Running};

pub(crate) struct WarehouseFixture {
    pub(crate) data: Data,
    pub(crate) sandbox: CliSandbox,
    pub(crate) warehouse: Database,
    pub(crate) redshift: RedshiftServer,
    rows: i64,
}

impl WarehouseFixture {
    pub(crate) async fn with(data: Data, rows: i64) -> WarehouseFixture {
        let data = data.with_accounts(rows).await;
        let warehouse = PostgresServer::shared().database().await;
        warehouse
            .run(
                "CREATE TABLE daily_report (day varchar(20), branch integer, n integer, total numeric(12,2));
                 CREATE TABLE accounts (day varchar(20), id bigint, branch integer, amount bigint);
                 CREATE TABLE noise (id bigint, noise varchar(1000));
                 INSERT INTO daily_report VALUES ('monday', -1, 1, 1), ('sunday', -1, 1, 1);
                 INSERT INTO accounts VALUES ('monday', -1, 1, 1), ('sunday', -1, 1, 1)",
            )
            .await;
        let redshift = RedshiftServer::start(&warehouse, Moto::shared()).await;
        let sandbox = CliSandbox::with(&configured(&data, &redshift.url()))
            .env("REDSHIFT_ROLE", "arn:aws:iam::123456789012:role/redshift-copy");
        let environment = Moto::shared().environment();
        let sandbox =
            environment.iter().fold(sandbox, |sandbox, (name, value)| sandbox.env(name, value));
        WarehouseFixture { data, sandbox, warehouse, redshift, rows }
    }

    /// Runs a job type for monday to its end.
    pub(crate) async fn run(&self, job_type: &str) -> String {
        let id = self.sandbox.submit(&format!("{job_type} --param day=monday")).await;
        self.sandbox.run(&format!("worker --job {id}")).await.ok();
        id
    }

    /// Starts a worker that is blocked when it sends this text to the warehouse. Returns when it is.
    pub(crate) async fn held_at(&self, id: &str, text: &str) -> (Gate, Running) {
        let gate = Gate::before(self.redshift.addr(), text).await;
        self.sandbox
            .write("gated.toml", &configured(&self.data, &gate.url_via(&self.redshift.url())));
        let held = self.sandbox.spawn(&format!("worker --job {id} --config gated.toml"));
        gate.reached().await;
        (gate, held)
    }

    /// Makes the leases of dead processes expire.
    pub(crate) async fn expire(&self) {
        let past = "UPDATE windlass_segments SET lease_until = 1 WHERE status = 'PROCESSING'";
        let store = rusqlite::Connection::open(self.sandbox.path("windlass.db")).unwrap();
        store.busy_timeout(crate::common::PATIENCE).unwrap();
        store.execute_batch(past).unwrap();
    }

    /// Asserts that the report of monday has each branch once with the source's own numbers, and that sunday is unchanged.
    pub(crate) async fn report_is_loaded(&self) {
        let report = "SELECT string_agg(concat_ws(' ', branch, n, total), ', ' ORDER BY branch) \
                      FROM daily_report WHERE day = 'monday'";
        let found: String = self.warehouse.one(report).await;
        let mut expected = Vec::new();
        for branch in 0..10 {
            let of = |what: &str| format!("SELECT {what} FROM accounts WHERE branch = {branch}");
            let n = self.data.number(&of("count(*)")).await;
            let total = self.data.number(&of("sum(amount)")).await;
            expected.push(format!("{branch} {n} {total}.00"));
        }
        assert_eq!(found, expected.join(", "));
        self.others_are_unchanged("daily_report").await;
    }

    /// Asserts that every account of monday is there once, and that sunday is unchanged.
    pub(crate) async fn accounts_are_loaded(&self) {
        let found = "SELECT concat(count(*), ' ', count(DISTINCT id), ' ', sum(amount), ' ', sum(branch)) \
                     FROM accounts WHERE day = 'monday'";
        let found: String = self.warehouse.one(found).await;
        let amount = self.data.number("SELECT sum(amount) FROM accounts").await;
        let branch = self.data.number("SELECT sum(branch) FROM accounts").await;
        assert_eq!(found, format!("{rows} {rows} {amount} {branch}", rows = self.rows));
        self.others_are_unchanged("accounts").await;
    }

    async fn others_are_unchanged(&self, table: &str) {
        let others =
            format!("SELECT concat(count(*), ' ', min(day)) FROM {table} WHERE day <> 'monday'");
        assert_eq!(self.warehouse.one::<String>(&others).await, "1 sunday");
    }

    /// The keys of a job's objects in S3.
    pub(crate) fn objects(&self, id: &str) -> Vec<String> {
        let listing = Moto::shared().ask("GET", &format!("/{}?prefix={id}/", Moto::BUCKET), "");
        let keys = listing.split("<Key>").skip(1);
        keys.map(|rest| rest.split("</Key>").next().unwrap().to_owned()).collect()
    }
}

pub(crate) fn configured(data: &Data, warehouse: &str) -> String {
    let jobs = format!("[connections.warehouse]\nurl = \"{warehouse}\"\n\n{JOBS}");
    config("sqlite:windlass.db", &data.url(), &jobs)
}

/// A report and an export.
const JOBS: &str = r#"
[jobs.DAILY_REPORT]
source = { connection = "app", table = "accounts" }
step.map = "SELECT branch, count(*) AS n, sum(amount) AS total FROM {source} WHERE {chunk} GROUP BY branch"
reduce = "SELECT branch, sum(n) AS n, sum(total) AS total FROM parts GROUP BY branch ORDER BY branch"
load = { connection = "warehouse", table = "daily_report", replace = ["day"], copy = { from = "s3://windlass/{job_id}/", iam_role = "${REDSHIFT_ROLE}" } }
chunk.items = 100
retry = { attempts = 5, backoff = "50ms" }

[jobs.ACCOUNTS]
source = { connection = "app", table = "accounts" }
step.export = { to = "s3://windlass/{job_id}/", format = "parquet", columns = ["id", "branch", "amount"] }
load = { connection = "warehouse", table = "accounts", replace = ["day"], copy = { iam_role = "${REDSHIFT_ROLE}" } }
chunk.items = 100
retry = { attempts = 5, backoff = "50ms" }
"#;
