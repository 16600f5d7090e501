//! The example with its own database.

use crate::common::{CliSandbox, Data, PATIENCE, eventually, text};
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
        let mut fixtures = Vec::new();
        for data in Data::both().await {
            fixtures.push(RelationshipsFixture::on(data, "sqlite:windlass.db").await);
        }
        fixtures
    }

    /// With the application's tables in this database, and the store at this URL.
    pub(crate) async fn on(data: Data, store: &str) -> RelationshipsFixture {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/relationships");
        let read = |name: &str| std::fs::read_to_string(example.join(name)).unwrap();
        let config = read("windlass.toml").replace("sqlite:windlass.db", store);
        let sandbox = CliSandbox::with(&config).env("DATABASE_URL", &data.url());
        std::fs::create_dir(sandbox.path("sources")).unwrap();
        let views = ["failed_pois.py", "failed_pois.sql", "failed_pois.postgres.sql"];
        let programs = ["analyse.py", "resolve.py", "schema.sql"].into_iter().chain(views);
        for name in programs.chain(SOURCES.split(' ')) {
            sandbox.write(name, &read(name));
        }
        let fixture = RelationshipsFixture { data, sandbox };
        fixture.analyse("").await.ok();
        fixture.sandbox.run("migrate").await.ok();
        fixture
    }

    /// Runs the application on these files.
    pub(crate) async fn analyse(&self, files: &str) -> Output {
        self.python(&format!("analyse.py {files}")).await
    }

    /// Runs a program of the example.
    pub(crate) async fn python(&self, command: &str) -> Output {
        let python = Windlass::new(self.sandbox.path(".")).binary("python3");
        let python = python.env("DATABASE_URL", self.data.url());
        python.run(command.split_whitespace()).await
    }

    /// Inserts a payload into the outbox, together with the row of its file. The error of the database, if it
    /// refuses the payload: then neither is committed.
    pub(crate) async fn put(&self, payload: &Json) -> Result<(), String> {
        let sql = match &self.data {
            Data::Postgres(_) => "SELECT windlass_enqueue('RESOLVE_RELATIONSHIPS', '{}')",
            _ => {
                "INSERT INTO windlass_outbox (job_type, request) \
                 VALUES ('RESOLVE_RELATIONSHIPS', '{}')"
            }
        };
        let file = payload["fileId"].as_str().unwrap_or("unknown");
        let file = format!("INSERT INTO files (id, points) VALUES ('{file}', 0)");
        let put = sql.replace("{}", &payload.to_string());
        match &self.data {
            Data::Postgres(database) => {
                let client = database.client().await;
                let done = client.batch_execute(&format!("BEGIN; {file}; {put}; COMMIT")).await;
                done.map_err(|error| error.as_db_error().unwrap().message().to_owned())
            }
            data => {
                let path = data.folder().join("app.db");
                let mut connection = rusqlite::Connection::open(path).unwrap();
                connection.busy_timeout(PATIENCE).unwrap();
                let transaction = connection.transaction().unwrap();
                let done = transaction.execute_batch(&format!("{file}; {put}"));
                done.and_then(|()| transaction.commit()).map_err(|error| error.to_string())
            }
        }
    }

    /// A process that relays and works.
    pub(crate) fn worker(&self) -> Running {
        self.sandbox.spawn("worker")
    }

    /// Analyses `many.py`, which has these functions, and works it until `committed` relationships are
    /// stored. Then kills the worker, whose program waits at the function `held`.
    pub(crate) async fn kill_worker(
        &self,
        functions: &str,
        held: &str,
        commit: i64,
        committed: i64,
    ) {
        self.sandbox.write("many.py", functions);
        let config = self.sandbox.read("windlass.toml").replace(
            "chunk.commit = 100",
            &format!(
                "chunk.commit = {commit}\nchunk.lease = \"1s\"\nthroughput = {{ concurrency = 1 }}"
            ),
        );
        self.sandbox.write("windlass.toml", &config);
        let wait =
            format!("    while point[\"name\"] == \"{held}\" and os.path.exists(\"hold\"): pass\n");
        let parse = "    tree = ast.parse";
        let resolve = self.sandbox.read("resolve.py").replace(parse, &(wait + parse));
        self.sandbox.write("resolve.py", &resolve);
        self.sandbox.write("hold", "");
        self.analyse("many.py").await.ok();
        let worker = self.worker();
        let resolved = "SELECT count(*) FROM relationships";
        let is_committed = async || self.number(resolved).await == committed;
        eventually("the batches before the function are committed", is_committed).await;
        worker.kill9();
        worker.wait().await;
        std::fs::remove_file(self.sandbox.path("hold")).unwrap();
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
