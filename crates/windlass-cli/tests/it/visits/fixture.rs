//! The example with its own database, and the operations that the tests need.

use crate::common::{CliSandbox, Data, eventually, parse};
use serde_json::Value as Json;
use windlass_testkit::Running;

/// The example's rows and job type, and a folder to run commands in.
pub(crate) struct VisitsFixture {
    pub(crate) data: Data,
    pub(crate) sandbox: CliSandbox,
}

/// The `chunk.items` of the example.
pub(crate) const ITEMS: i64 = 500;
/// The number of chunks of the example's data.
pub(crate) const CHUNKS: i64 = 30;
/// A position within the third commit of the first chunk. A commit has a hundred rows and the rest of its last pair,
/// which is less than 34.
pub(crate) const THIRD_COMMIT: i64 = 280;
/// A position within the first commit of the third chunk.
pub(crate) const THIRD_CHUNK: i64 = 1080;

impl VisitsFixture {
    pub(crate) async fn new() -> VisitsFixture {
        let data = Data::postgres().await;
        data.run(include_str!("../../../../../examples/visits/visits.sql")).await;
        data.run(include_str!("watch.sql")).await;
        // A stall of this machine must not lose a lease.
        let config = include_str!("../../../../../examples/visits/windlass.toml")
            .replace("chunk.lease = \"5s\"", "chunk.lease = \"1m\"");
        let sandbox = CliSandbox::with(&config).env("DATABASE_URL", &data.url());
        VisitsFixture { data, sandbox }
    }

    /// Submits the job as the README does, with one segment, so that only the last chunk is small.
    pub(crate) async fn submit(&self) -> String {
        self.sandbox.submit("UPDATE_VISITS --parallel-segments 1").await
    }

    /// Starts a worker for this job.
    pub(crate) fn worker(&self, id: &str) -> Running {
        self.sandbox.spawn(&format!("worker --job {id}"))
    }

    /// Asserts that the audit cannot judge a job, for this reason.
    pub(crate) async fn cannot_be_judged(&self, id: &str, reason: &str) {
        let audit = self.sandbox.run(&format!("audit {id} --json")).await;
        assert_eq!(audit.code, Some(1), "{audit:?}");
        let audit = parse(&audit);
        assert_eq!(audit["verdict"], "cannotBeJudged", "{audit:#}");
        assert!(audit["notJudged"].to_string().contains(reason), "{audit:#}");
    }

    /// Works the job, which must complete.
    pub(crate) async fn complete(&self, id: &str) {
        self.worker(id).wait().await.ok();
        assert_eq!(self.sandbox.status(id).await, "COMPLETED");
    }

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.data.number(sql).await
    }

    /// From now on, a commit that reaches one of these positions waits there.
    pub(crate) async fn close(&self, places: impl IntoIterator<Item = i64>) {
        let places: Vec<String> = places.into_iter().map(|position| position.to_string()).collect();
        let places = places.join(", ");
        let sql = "INSERT INTO gates SELECT visit_id FROM places WHERE place IN";
        self.data.run(&format!("{sql} ({places})")).await;
    }

    /// A job and its worker, which waits in the third commit of the first chunk. All other chunks are
    /// completed.
    pub(crate) async fn half_way(&self) -> (String, Running) {
        self.close([THIRD_COMMIT]).await;
        let id = self.submit().await;
        let worker = self.worker(&id);
        self.held_up(1).await;
        self.chunks_done(&id, CHUNKS - 1).await;
        (id, worker)
    }

    /// A fixture with a job that is [half way](VisitsFixture::half_way), and its worker.
    pub(crate) async fn at_half_way() -> (VisitsFixture, String, Running) {
        let fixture = VisitsFixture::new().await;
        let (id, worker) = fixture.half_way().await;
        (fixture, id, worker)
    }

    /// Lets all commits continue.
    pub(crate) async fn open(&self) {
        self.data.run("DELETE FROM gates").await;
    }

    /// Waits until `commits` commits wait at a gate.
    pub(crate) async fn held_up(&self, commits: i64) {
        let standing = "SELECT count(*) FROM gates g JOIN pg_locks l ON l.objid = g.visit_id \
                        JOIN pg_database d ON d.oid = l.database \
                        WHERE locktype = 'advisory' AND datname = current_database()";
        eventually("the commits wait at their gates", async || {
            self.number(standing).await == commits
        })
        .await;
    }

    /// Waits until the job has `chunks` completed chunks.
    pub(crate) async fn chunks_done(&self, id: &str, chunks: i64) {
        let done = |job: &Json| job["chunks"]["completed"] == chunks;
        self.sandbox.until(id, "the chunks are completed", done).await;
    }

    /// From now on, a statement that reaches one of these positions fails with this SQLSTATE.
    pub(crate) async fn break_at(&self, position: i64, code: &str) {
        let visit = format!("SELECT visit_id, '{code}' FROM places WHERE place = {position}");
        self.data.run(&format!("INSERT INTO broken {visit}")).await;
    }

    pub(crate) async fn mend(&self) {
        self.data.run("DELETE FROM broken").await;
    }

    /// The application changes the visit at this position, so that it is due again.
    pub(crate) async fn change(&self, position: i64) {
        let visit = format!("SELECT visit_id FROM places WHERE place = {position}");
        let sql = "UPDATE maps SET updated_date = NULL WHERE visit_id =";
        self.data.run(&format!("{sql} ({visit})")).await;
    }

    /// The number of visits that are due.
    pub(crate) async fn due(&self) -> i64 {
        let sql = "SELECT count(*) FROM maps \
                   WHERE conflict_id IS NOT NULL AND updated_date IS NULL";
        self.number(sql).await
    }

    /// The number of visits with a mark.
    pub(crate) async fn marked(&self) -> i64 {
        self.number("SELECT count(*) FROM maps WHERE update_flag IS NOT NULL").await
    }

    /// The number of committed changes to visits, including marks.
    pub(crate) async fn changes(&self) -> i64 {
        self.number("SELECT count(*) FROM changes").await
    }

    /// Asserts that every visit that was due is updated exactly once and correctly, by one commit with its whole pair,
    /// that no other visit is changed, and that no mark is left.
    pub(crate) async fn updated_once(&self) {
        let visits = self.number("SELECT count(*) FROM places").await;
        let updates = "SELECT count(*) FROM changes WHERE done";
        assert_eq!(self.number(updates).await, visits, "updates");
        assert_eq!(self.due().await, 0, "visits that are due");
        let others = "SELECT count(*) FROM changes c JOIN maps v USING (visit_id) \
                      WHERE v.conflict_id IS NULL";
        assert_eq!(self.number(others).await, 0, "changes of visits in no conflict");
        let torn = "SELECT count(*) FROM (SELECT FROM changes JOIN maps USING (visit_id) \
                    WHERE done GROUP BY visit_date, ssn HAVING count(DISTINCT commit) > 1) torn";
        assert_eq!(self.number(torn).await, 0, "pairs updated by several commits");
        assert_eq!(self.number(include_str!("wrong.sql")).await, 0, "visits with wrong values");
        assert_eq!(self.marked().await, 0, "marks that are left");
    }

    /// The condition for the keys of a chunk, from the listing.
    pub(crate) fn within(chunk: &Json) -> String {
        let range = &chunk["keySet"]["keys"]["range"];
        let bound = |operator: &str, key: &Json| match key.as_array().map(Vec::as_slice) {
            Some([Json::String(date), Json::String(ssn)]) => {
                format!("(visit_date, ssn) {operator} (date '{date}', '{ssn}')")
            }
            _ => "true".to_owned(),
        };
        format!("({} AND {})", bound(">", &range["after"]), bound("<=", &range["upto"]))
    }
}

/// The events of a JSON log with this message.
pub(crate) fn logged(log: &str, message: &str) -> Vec<Json> {
    let events = log.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok());
    events.filter(|event| event["message"] == message).collect()
}
