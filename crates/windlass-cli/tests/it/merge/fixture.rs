//! Totals that are loaded and reported, exported parts, and workers that reach their servers through a gate. A worker
//! that is blocked there is in the middle of its merge.

use crate::common::{BINARY, CliSandbox, Data, config, eventually};
use windlass_testkit::{Gate, MariaServer, Moto, PostgresServer, Running, Windlass};

/// The database, the folder of the commands, and the destination of output.
pub(crate) struct MergeFixture {
    pub(crate) data: Data,
    pub(crate) sandbox: CliSandbox,
    output: Output,
}

/// The destination of reports and parts.
enum Output {
    /// The folder `out` of the sandbox.
    Folder,
    /// A bucket of an endpoint for this test alone.
    Bucket(Moto),
}

/// Rows of the source, in ten chunks.
const ROWS: i64 = 1000;

impl MergeFixture {
    /// Output goes to a folder.
    pub(crate) async fn with(data: Data) -> MergeFixture {
        MergeFixture::new(data, Output::Folder).await
    }

    /// Output goes to a bucket.
    pub(crate) async fn in_a_bucket() -> MergeFixture {
        MergeFixture::new(Data::postgres().await, Output::Bucket(Moto::start())).await
    }

    /// Output goes to a folder, on each database that is a server.
    pub(crate) async fn on_servers() -> [MergeFixture; 2] {
        let (postgres, mariadb) = (Data::postgres().await, Data::mariadb().await);
        [MergeFixture::with(postgres).await, MergeFixture::with(mariadb).await]
    }

    async fn new(data: Data, output: Output) -> MergeFixture {
        let data = data.with_accounts(ROWS).await;
        let totals =
            "CREATE TABLE totals (day varchar(20), branch integer, n bigint, total bigint);
                      INSERT INTO totals VALUES ('monday', -1, 1, 1), ('sunday', -1, 1, 1);";
        data.run(totals).await;
        let root = match &output {
            Output::Folder => "file:out".to_owned(),
            Output::Bucket(_) => format!("s3://{}", Moto::BUCKET),
        };
        let sandbox =
            CliSandbox::with(&config(&data.store_url(), &data.url(), JOBS)).env("ROOT", &root);
        let environment = match &output {
            Output::Folder => Vec::new(),
            Output::Bucket(moto) => moto.environment(),
        };
        let sandbox =
            environment.iter().fold(sandbox, |sandbox, (name, value)| sandbox.env(name, value));
        MergeFixture { data, sandbox, output }
    }

    pub(crate) fn moto(&self) -> &Moto {
        let Output::Bucket(moto) = &self.output else { panic!("there is no bucket") };
        moto
    }

    /// Submits a job type for monday.
    pub(crate) async fn submit(&self, job_type: &str) -> String {
        self.sandbox.submit(&format!("{job_type} --param day=monday")).await
    }

    /// Works a job, which must complete.
    pub(crate) async fn work(&self, id: &str) {
        self.sandbox.run(&format!("worker --job {id}")).await.ok();
    }

    /// Starts a worker that is blocked when it sends this text to the database. Returns when it is.
    pub(crate) async fn held_at(&self, id: &str, text: &str) -> (Gate, Running) {
        let (store, app) = (self.data.store_url(), self.data.url());
        self.held_with(id, text, |gate| config(&store, &gate.url_via(&app), JOBS)).await
    }

    /// The same for what it sends to the store, which must be a server.
    pub(crate) async fn held_at_store(&self, id: &str, text: &str) -> (Gate, Running) {
        let (store, app) = (self.data.store_url(), self.data.url());
        self.held_with(id, text, |gate| config(&gate.url_via(&store), &app, JOBS)).await
    }

    async fn held_with(
        &self,
        id: &str,
        text: &str,
        config: impl FnOnce(&Gate) -> String,
    ) -> (Gate, Running) {
        let upstream = match &self.data {
            Data::Postgres(_) => PostgresServer::shared().addr(),
            Data::Mariadb(_) => MariaServer::shared().addr(),
            Data::Sqlite(_) => panic!("a SQLite file has no server"),
        };
        let gate = Gate::before(upstream, text).await;
        self.sandbox.write("gated.toml", &config(&gate));
        let held = self.sandbox.spawn(&format!("worker --job {id} --config gated.toml"));
        gate.reached().await;
        (gate, held)
    }

    /// The same for what it sends to the S3 endpoint.
    pub(crate) async fn held_at_request(&self, id: &str, text: &str) -> (Gate, Running) {
        let gate = Gate::before(self.moto().addr(), text).await;
        let windlass = Windlass::new(self.sandbox.path("")).binary(BINARY);
        let windlass = windlass.env("ROOT", format!("s3://{}", Moto::BUCKET));
        let environment = self.moto().environment().into_iter();
        let windlass = environment
            .fold(windlass, |windlass, (name, value)| windlass.env(name, gate.url_via(&value)));
        let held = windlass.spawn(["worker", "--job", id]);
        gate.reached().await;
        (gate, held)
    }

    /// Parts in a bucket, and a worker that is blocked when it writes their manifest.
    pub(crate) async fn held_at_manifest() -> (MergeFixture, String, Gate, Running) {
        let fixture = MergeFixture::in_a_bucket().await;
        let id = fixture.submit("PARTS").await;
        let put = format!("PUT /windlass/{id}/manifest.json");
        let (gate, worker) = fixture.held_at_request(&id, &put).await;
        (fixture, id, gate, worker)
    }

    /// Makes the leases of dead or frozen processes expire.
    pub(crate) fn expire(&self) -> impl Future<Output = ()> {
        self.store("UPDATE windlass_segments SET lease_until = {past} WHERE status = 'PROCESSING'")
    }

    /// Whether a merge is running. The store must be a file.
    pub(crate) fn is_merging(&self) -> bool {
        let store = rusqlite::Connection::open(self.sandbox.path("windlass.db")).unwrap();
        let sql = "SELECT count(*) FROM windlass_segments \
                   WHERE status = 'PROCESSING' AND state LIKE '%MERGE%'";
        // The file may be locked just now; the caller asks again.
        store.query_row(sql, (), |row| row.get::<_, i64>(0)).is_ok_and(|merging| merging > 0)
    }

    /// Waits until a process waits for the transaction of a frozen process, and ends that transaction. PostgreSQL does
    /// this after a minute by itself; MariaDB does not.
    pub(crate) async fn end_idle_transactions(&self) {
        let Data::Postgres(database) = &self.data else { return };
        let end = "SELECT count(pg_terminate_backend(holder.pid)) FROM pg_stat_activity AS waiting, \
                   pg_stat_activity AS holder WHERE holder.pid = ANY (pg_blocking_pids(waiting.pid)) \
                   AND holder.state = 'idle in transaction' \
                   AND holder.datname = current_database()";
        eventually("a transaction blocks another", async || database.one::<i64>(end).await > 0)
            .await;
    }

    /// Runs a statement on the store. `{past}` stands for an hour ago.
    async fn store(&self, sql: &str) {
        match &self.data {
            Data::Postgres(database) => {
                let past = "clock_timestamp() - interval '1 hour'";
                database.run(&sql.replace("{past}", past)).await;
            }
            Data::Sqlite(_) | Data::Mariadb(_) => {
                let store = rusqlite::Connection::open(self.sandbox.path("windlass.db")).unwrap();
                store.busy_timeout(crate::common::PATIENCE).unwrap();
                store.execute_batch(&sql.replace("{past}", "1")).unwrap();
            }
        }
    }

    /// Asserts that nothing of monday is loaded and that nothing else changed.
    pub(crate) async fn nothing_is_loaded(&self) {
        let old = "SELECT count(*) FROM totals WHERE branch = -1";
        assert_eq!(self.data.number(old).await, 2);
        assert_eq!(self.data.number("SELECT count(*) FROM totals").await, 2);
    }

    /// Asserts that the totals of monday are the database's own, each once, and that sunday is unchanged.
    pub(crate) async fn totals_are_right(&self) {
        let wrong = "SELECT count(*) FROM (SELECT branch, count(*) AS n, sum(amount) AS total \
                     FROM accounts GROUP BY branch) AS own LEFT JOIN totals AS t \
                     ON t.branch = own.branch AND t.day = 'monday' AND t.n = own.n \
                     AND t.total = own.total WHERE t.day IS NULL";
        assert_eq!(self.data.number(wrong).await, 0, "branches whose totals are wrong");
        let of = |day: &str| format!("SELECT count(*) FROM totals WHERE day = '{day}'");
        assert_eq!(self.data.number(&of("monday")).await, 10, "one row for each branch");
        assert_eq!(self.data.number(&of("sunday")).await, 1, "left alone");
    }

    /// Moves the loaded totals to another day, so that a second load would be visible.
    pub(crate) async fn move_totals(&self) {
        self.data.run("UPDATE totals SET day = 'tuesday' WHERE day = 'monday'").await;
    }

    /// Asserts that nothing was loaded since [`MergeFixture::move_totals`].
    pub(crate) async fn loaded_once(&self) {
        let again = "SELECT count(*) FROM totals WHERE day = 'monday'";
        assert_eq!(self.data.number(again).await, 0, "loaded twice");
    }

    /// Changes the amounts, and so the totals.
    pub(crate) async fn change_amounts(&self) {
        self.data.run("UPDATE accounts SET amount = amount + 1").await;
    }

    /// The paths of all output files.
    pub(crate) fn names(&self) -> Vec<String> {
        match &self.output {
            Output::Folder => files(&self.sandbox.path("out"), ""),
            Output::Bucket(moto) => {
                let listing = moto.ask("GET", &format!("/{}", Moto::BUCKET), "");
                assert!(listing.contains(" 200 "), "{listing}");
                let keys = listing.split("<Key>").skip(1);
                keys.map(|rest| rest.split("</Key>").next().unwrap().to_owned()).collect()
            }
        }
    }

    /// Asserts that the output is all parts, and nothing else.
    #[track_caller]
    pub(crate) fn has_only_parts(&self) {
        let names = self.names();
        assert!(names.len() == 10 && names.iter().all(|name| name.contains("/part-")), "{names:?}");
    }

    /// The text of an output file.
    pub(crate) async fn text(&self, name: &str) -> String {
        match &self.output {
            Output::Folder => self.sandbox.read(&format!("out/{name}")),
            Output::Bucket(moto) => {
                let url = format!("s3://{}/{name}", Moto::BUCKET);
                let (folder, name) = windlass_export::Destination::split(&url).unwrap();
                let folder =
                    windlass_export::Destination::open_with(folder, moto.environment()).unwrap();
                let bytes = folder.get(name).await.unwrap();
                String::from_utf8(bytes.unwrap_or_else(|| panic!("no {url}")).to_vec()).unwrap()
            }
        }
    }

    /// Asserts that the report has each branch once, with the database's own sum.
    pub(crate) async fn report_is_right(&self) {
        let report = self.text(REPORT).await;
        let mut lines = report.lines();
        assert_eq!(lines.next(), Some("branch,n,total"));
        let rows: Vec<Vec<i64>> =
            lines.map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
        let branches: Vec<i64> = rows.iter().map(|row| row[0]).collect();
        assert_eq!(branches, (0..10).collect::<Vec<_>>());
        let total: i64 = rows.iter().map(|row| row[2]).sum();
        assert_eq!(total, self.data.number("SELECT sum(amount) FROM accounts").await);
    }

    /// Asserts that the page beside the report belongs to this job and has its first rows.
    pub(crate) async fn page_is_of(&self, id: &str) {
        let page = self.text(PAGE).await;
        for part in [id, "Completed", "10 rows", "<th class=\"number\">branch</th>", "</html>"] {
            assert!(page.contains(part), "`{part}` is not in: {page}");
        }
    }

    /// Asserts that the manifest lists exactly the existing parts, and that they have every row once.
    pub(crate) async fn parts_are_right(&self, id: &str) {
        let manifest = self.text(&format!("{id}/manifest.json")).await;
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        let listed = manifest["parts"].as_array().unwrap().iter();
        let mut listed: Vec<String> =
            listed.map(|part| format!("{id}/{}", part["name"].as_str().unwrap())).collect();
        let mut rows: Vec<i64> = Vec::new();
        for name in &listed {
            let text = self.text(name).await;
            rows.extend(text.lines().skip(1).map(|id| id.parse::<i64>().unwrap()));
        }
        rows.sort_unstable();
        assert_eq!(rows, (1..=ROWS).collect::<Vec<_>>());
        listed.push(format!("{id}/manifest.json"));
        let mut names = self.names();
        listed.sort();
        names.sort();
        assert_eq!(names, listed, "nothing else is there");
    }
}

/// The files in a folder, recursively.
fn files(folder: &std::path::Path, before: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let each = entries.flat_map(|entry| {
        let entry = entry.unwrap();
        let name = format!("{before}{}", entry.file_name().into_string().unwrap());
        match entry.file_type().unwrap().is_dir() {
            true => files(&entry.path(), &format!("{name}/")),
            false => vec![name],
        }
    });
    each.collect()
}

/// The path of the report.
pub(crate) const REPORT: &str = "totals.csv";
/// The path of its HTML page.
pub(crate) const PAGE: &str = "totals.csv.html";

/// Totals that are loaded and reported, a report only, and exported parts.
pub(crate) const JOBS: &str = r#"
[jobs.TOTALS]
source = { connection = "app", table = "accounts" }
step.map = "SELECT branch, count(*) AS n, sum(amount) AS total FROM {source} WHERE {chunk} GROUP BY branch"
reduce = "SELECT branch, sum(n) AS n, sum(total) AS total FROM parts GROUP BY branch ORDER BY branch"
load = { connection = "app", table = "totals", replace = ["day"] }
report = { to = "${ROOT}/totals.csv" }
chunk.items = 100
retry = { attempts = 3, backoff = "50ms" }

[jobs.REPORT]
params = { day = { type = "text", required = false } }
source = { connection = "app", table = "accounts" }
step.map = "SELECT branch, count(*) AS n, sum(amount) AS total FROM {source} WHERE {chunk} GROUP BY branch"
reduce = "SELECT branch, sum(n) AS n, sum(total) AS total FROM parts GROUP BY branch ORDER BY branch"
report = { to = "${ROOT}/totals.csv" }
chunk.items = 100
retry = { attempts = 3, backoff = "50ms" }

[jobs.PLAIN]
params = { day = { type = "text", required = false } }
source = { connection = "app", table = "accounts" }
step.map = "SELECT count(*) AS n FROM {source} WHERE {chunk}"
report = { to = "${ROOT}/totals.csv", page = false }

[jobs.PARTS]
params = { day = { type = "text", required = false } }
source = { connection = "app", table = "accounts" }
step.export = { to = "${ROOT}/{job_id}/", format = "csv", columns = ["id"] }
chunk.items = 100
retry = { attempts = 3, backoff = "50ms" }
"#;
