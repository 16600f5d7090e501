//! The example with its own database.

use crate::common::{CliSandbox, Data, eventually, text};
use serde_json::Value as Json;
use std::path::Path;
use windlass_testkit::{Output, Running, Windlass};

/// The example's programs and tables, and a folder to run commands in.
pub(crate) struct RelationshipsFixture {
    pub(crate) data: Data,
    pub(crate) sandbox: CliSandbox,
}

/// The files of the example.
pub(crate) const SOURCES: &str = "sources/cart.py sources/payment.py sources/settings.py";

impl RelationshipsFixture {
    /// On SQLite and on PostgreSQL, with the tables created.
    pub(crate) async fn both() -> Vec<RelationshipsFixture> {
        let mut worlds = Vec::new();
        for data in Data::both().await {
            worlds.push(RelationshipsFixture::on(data).await);
        }
        worlds
    }

    async fn on(data: Data) -> RelationshipsFixture {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/relationships");
        let read = |name: &str| std::fs::read_to_string(example.join(name)).unwrap();
        let sandbox = CliSandbox::with(&read("windlass.toml")).env("DATABASE_URL", &data.url());
        std::fs::create_dir(sandbox.path("sources")).unwrap();
        for name in ["analyse.py", "resolve.py", "schema.sql"].into_iter().chain(SOURCES.split(' '))
        {
            sandbox.write(name, &read(name));
        }
        let fixture = RelationshipsFixture { data, sandbox };
        fixture.analyse("").await.ok();
        fixture.sandbox.run("migrate").await.ok();
        fixture
    }

    /// Runs the application on these files.
    pub(crate) async fn analyse(&self, files: &str) -> Output {
        let python = Windlass::new(self.sandbox.path(".")).binary("python3");
        let python = python.env("DATABASE_URL", self.data.url());
        python.run(["analyse.py"].into_iter().chain(files.split_whitespace())).await
    }

    /// Inserts a request into the outbox.
    pub(crate) async fn put(&self, request: &Json) {
        let sql = match &self.data {
            Data::Postgres(_) => "SELECT windlass_enqueue('RESOLVE_RELATIONSHIPS', '{}')",
            _ => {
                "INSERT INTO windlass_outbox (job_type, request) \
                 VALUES ('RESOLVE_RELATIONSHIPS', '{}')"
            }
        };
        self.data.run(&sql.replace("{}", &request.to_string())).await;
    }

    /// A process that relays and works.
    pub(crate) fn worker(&self) -> Running {
        self.sandbox.spawn("worker")
    }

    /// The job of a file, from the application's table.
    pub(crate) async fn job_of(&self, file: &str) -> String {
        let sql = format!("SELECT job FROM files WHERE id = '{file}'");
        match &self.data {
            Data::Postgres(database) => database.one::<String>(&sql).await,
            _ => self.data.text(&sql),
        }
    }

    /// The waiting rows of the outbox.
    pub(crate) async fn waiting(&self) -> Vec<Json> {
        let outboxes = self.sandbox.json("outbox").await;
        assert_eq!(outboxes[0]["hasTable"], true, "{outboxes:#}");
        outboxes[0]["waiting"].as_array().unwrap().clone()
    }

    pub(crate) async fn jobs(&self) -> Vec<Json> {
        self.sandbox.json("jobs --limit 1000").await.as_array().unwrap().clone()
    }

    /// Analyses the example's files and works their jobs to the end.
    pub(crate) async fn resolve(&self) -> Running {
        self.analyse(SOURCES).await.ok();
        let worker = self.worker();
        for file in ["sources/cart.py", "sources/payment.py"] {
            self.ended(&self.job_of(file).await).await;
        }
        worker
    }

    /// Waits until a job exists and has ended.
    pub(crate) async fn ended(&self, id: &str) -> Json {
        let mut last = Json::Null;
        eventually("the job has ended", async || {
            let jobs = self.jobs().await;
            let found = jobs.into_iter().find(|job| job["id"] == id);
            last = found.unwrap_or_default();
            matches!(last["status"].as_str(), Some("COMPLETED" | "FAILED"))
        })
        .await;
        last
    }

    pub(crate) async fn letters(&self, more: &str) -> Vec<Json> {
        let letters = self.sandbox.json(&format!("dead list {more}")).await;
        let mut letters = letters.as_array().unwrap().clone();
        letters.sort_by_key(|letter| text(&letter["key"]));
        letters
    }

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.data.number(sql).await
    }
}
