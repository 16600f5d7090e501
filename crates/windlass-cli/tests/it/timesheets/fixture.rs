//! The example with its own database, and the operations that the tests need.

use crate::common::{CliSandbox, Data, eventually, text};
use crate::timesheets::service::Server;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fs;
use windlass_testkit::Windlass;

/// The example's rows and job types, and a folder to run commands in.
pub(crate) struct TimesheetsFixture {
    pub(crate) data: Data,
    pub(crate) sandbox: CliSandbox,
    /// May see every job and no row.
    pub(crate) operator: String,
    /// May see every row.
    pub(crate) chief: String,
}

/// The `chunk.items` of the example.
pub(crate) const ITEMS: i64 = 1000;
/// All counties of the example.
pub(crate) const COUNTIES: &str = "Devon,Essex,Kent,Norfolk,Surrey";

impl TimesheetsFixture {
    /// With this many employees, each with four timesheets per month.
    pub(crate) async fn new(employees: u32) -> TimesheetsFixture {
        let data = Data::postgres().await;
        // A stall of this machine must not lose a lease.
        let config = include_str!("../../../../../examples/timesheets/windlass.toml")
            .replace("chunk.lease = \"5s\"", "chunk.lease = \"1m\"");
        let sandbox = CliSandbox::with(&config)
            .env("DATABASE_URL", &data.url())
            .env("WINDLASS_SECRET", "0123456789abcdef0123456789abcdef");
        for (name, text) in [
            ("timesheets.sql", include_str!("../../../../../examples/timesheets/timesheets.sql")),
            ("example_report.py", include_str!("../../../../../examples/timesheets/report.py")),
            ("report.py", include_str!("gated.py")),
        ] {
            sandbox.write(name, text);
        }
        fs::create_dir(sandbox.path("gates")).unwrap();
        fs::create_dir(sandbox.path("standing")).unwrap();
        let employees = format!("employees={employees}");
        let url = data.url();
        let psql = Windlass::new(sandbox.path("")).binary("psql");
        psql.run([&url, "-v", &employees, "-v", "ON_ERROR_STOP=1", "-qf", "timesheets.sql"])
            .await
            .ok();
        sandbox.run("migrate").await.ok();
        data.run(include_str!("watch.sql")).await;
        let mut fixture =
            TimesheetsFixture { data, sandbox, operator: String::new(), chief: String::new() };
        fixture.operator = fixture.token("operations", "operator", "").await;
        fixture.chief = fixture.token("head-office", "clerk manager", COUNTIES).await;
        fixture
    }

    /// A token with these roles and counties, made as in the README.
    pub(crate) async fn token(&self, name: &str, roles: &str, counties: &str) -> String {
        let mut command = format!("token --subject {name}");
        for role in roles.split_whitespace() {
            command += &format!(" --role {role}");
        }
        if !counties.is_empty() {
            command += &format!(" --claim county={counties}");
        }
        self.sandbox.run(&command).await.ok().stdout.trim().to_owned()
    }

    /// A server with this concurrency.
    pub(crate) async fn serve(&self, workers: u32) -> Server {
        Server::start(&self.sandbox, workers).await
    }

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.data.number(sql).await
    }

    /// The first keys of the chunks of a month, for a submitter who may see every row.
    pub(crate) async fn first_keys(&self, month: &str) -> Vec<i64> {
        let of = format!("FROM timesheets WHERE month = '{month}'");
        let first = self.number(&format!("SELECT min(timesheet_id) {of}")).await;
        let rows = self.number(&format!("SELECT count(*) {of}")).await;
        // The keys of a month are contiguous.
        (0..rows).step_by(ITEMS as usize).map(|row| first + row).collect()
    }

    /// From now on, a batch of a report waits at this record.
    pub(crate) fn close(&self, kind: &str, key: i64) {
        self.sandbox.write(&format!("gates/{kind}-{key}"), "");
    }

    /// Lets the batches continue that wait at this record.
    pub(crate) fn open(&self, kind: &str, key: i64) {
        fs::remove_file(self.sandbox.path(&format!("gates/{kind}-{key}"))).unwrap();
    }

    /// Waits until `batches` batches wait at gates.
    pub(crate) async fn held_up(&self, batches: usize) {
        eventually("batches wait at their gates", async || {
            fs::read_dir(self.sandbox.path("standing")).unwrap().count() == batches
        })
        .await;
    }

    /// Waits until a batch waits at this record.
    pub(crate) async fn held_up_at(&self, kind: &str, key: i64) {
        let waits = self.sandbox.path(&format!("standing/{kind}-{key}"));
        eventually("a batch waits at this record", async || waits.exists()).await;
    }

    /// The jobs whose records were passed to the program, in the order of their first batches.
    pub(crate) fn given_jobs(&self) -> Vec<String> {
        let mut jobs = Vec::new();
        for line in fs::read_to_string(self.sandbox.path("given")).unwrap_or_default().lines() {
            let batch: Json = serde_json::from_str(line).unwrap();
            let job = text(&batch["job"]);
            if !jobs.contains(&job) {
                jobs.push(job);
            }
        }
        jobs
    }

    /// How often each record of a job was passed to the program.
    pub(crate) fn given(&self, id: &str) -> BTreeMap<i64, usize> {
        let mut given = BTreeMap::new();
        for line in fs::read_to_string(self.sandbox.path("given")).unwrap_or_default().lines() {
            let batch: Json = serde_json::from_str(line).unwrap();
            let keys = batch["keys"].as_array().unwrap().iter();
            for key in keys.filter(|_| batch["job"] == id) {
                *given.entry(key.as_i64().unwrap()).or_default() += 1;
            }
        }
        given
    }

    /// Makes the nightly schedule due and returns its job.
    pub(crate) async fn nightfall(&self, server: &Server) -> String {
        let before = server.jobs(&self.operator, "MONTHLY_SUMMARY").await.len();
        let back = "UPDATE windlass_schedules SET next_at = next_at - interval '2 days'";
        self.data.run(back).await;
        self.next_of(server, "MONTHLY_SUMMARY", before).await
    }

    /// Waits for the first job of a type after `before` jobs.
    pub(crate) async fn next_of(&self, server: &Server, job_type: &str, before: usize) -> String {
        let mut jobs = Vec::new();
        eventually(&format!("there is another {job_type}"), async || {
            jobs = server.jobs(&self.operator, job_type).await;
            jobs.len() > before
        })
        .await;
        assert_eq!(jobs.len(), before + 1, "{jobs:#?}");
        text(&jobs[before]["id"])
    }

    /// Makes the summaries of an employee fail.
    pub(crate) async fn break_employee(&self, employee: i64) {
        self.data.run(&format!("INSERT INTO broken VALUES ({employee})")).await;
    }

    pub(crate) async fn mend(&self) {
        self.data.run("DELETE FROM broken").await;
    }
}

/// A report of one month.
pub(crate) fn report(job_type: &str, month: &str) -> Json {
    json!({"jobType": job_type, "filter": {"months": [month]}, "params": {"month": month}})
}

/// A report of only these records, which counts as a report of the month.
pub(crate) fn report_of(job_type: &str, month: &str, keys: &[i64]) -> Json {
    json!({"jobType": job_type, "ids": keys, "params": {"month": month}})
}
