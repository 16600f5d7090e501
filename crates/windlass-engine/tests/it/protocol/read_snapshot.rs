//! `map` and `export` on PostgreSQL read all chunks under one snapshot: by blocks of the table, or by keys where that
//! is not possible.

use crate::protocol::common::*;
use serde_json::json;
use windlass_connectors::EmittedCursor;
use windlass_core::{Job, JobId, JobStatus, Keys};
use windlass_engine::Engine;
use windlass_testkit::eventually;

const MAP: &str = "step.map = \"SELECT county, count(*) AS n, sum(amount) AS total FROM {source} WHERE {chunk} \
                   GROUP BY county\"\n\
                   reduce = \"SELECT sum(n) AS n, sum(total) AS total FROM parts\"";
/// Without a column that counts the rows.
const SUM: &str = "step.map = \"SELECT sum(amount) AS total FROM {source} WHERE {chunk}\"\n\
                   reduce = \"SELECT sum(total) AS total FROM parts\"";

/// Visits that fill many blocks.
async fn visits(rows: i64) -> EngineFixture {
    let fixture = EngineFixture::postgres().await;
    fixture.visits(rows).await;
    fixture.app.run("UPDATE visits SET amount = id * 3").await;
    rewrite(&fixture).await;
    fixture
}

/// Writes the table anew, in blocks without deleted rows.
async fn rewrite(fixture: &EngineFixture) {
    for sql in ["VACUUM FULL visits", "ANALYZE visits"] {
        fixture.app.run(sql).await;
    }
}

/// The rows and the total that a job reports.
async fn reported(engine: &Engine, job: JobId) -> (i64, i64) {
    let output = engine.output(job, &EmittedCursor::default(), 10).await.unwrap();
    let fields: serde_json::Value = serde_json::from_str(&output[0].fields).unwrap();
    let number = |name: &str| fields[name].as_str().unwrap_or("0").parse::<f64>().unwrap() as i64;
    (number("n"), number("total"))
}

/// Asserts that the job reports the rows and the sum of the table.
async fn reports_all(fixture: &EngineFixture, engine: &Engine, job: &Job) {
    let own = fixture.int("SELECT count(*) FROM visits").await;
    let total = fixture.int("SELECT sum(amount)::bigint FROM visits").await;
    assert_eq!(reported(engine, job.id).await, (own, total));
    assert_eq!((job.items.total, job.items.processed), (own, own));
}

async fn is_by_blocks(engine: &Engine, job: JobId) -> bool {
    let chunks = chunks(engine, job).await;
    let by_blocks = chunks.iter().filter(|chunk| chunk.key_set.blocks.is_some()).count();
    assert!(by_blocks == 0 || by_blocks == chunks.len());
    assert!(chunks.len() < 2 || chunks.iter().all(|chunk| chunk.key_set.snapshot == Some(1)));
    by_blocks > 0
}

#[tokio::test]
async fn a_table_is_read_by_blocks() {
    let fixture = visits(5000).await;
    for step in [MAP, SUM] {
        let engine = fixture.engine(&job(step, "chunk.items = 500")).await;
        let done = complete(&engine).await;
        assert!(is_by_blocks(&engine, done.id).await);
        assert!(done.chunks.total >= 8, "{done:?}");
        assert_eq!((done.items.total, done.items.processed), (5000, 5000));
        assert_eq!(reported(&engine, done.id).await.1, 5000 * 5001 / 2 * 3);
    }
    let held = "SELECT count(*) FROM windlass_read_snapshots WHERE lease_until IS NOT NULL";
    eventually("the snapshots have ended", PATIENCE, async || fixture.store.int(held).await == 0)
        .await;
    let open = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                AND state = 'idle in transaction'";
    assert_eq!(fixture.int(open).await, 0);
}

#[tokio::test]
async fn an_export_by_blocks_has_every_record_once() {
    let fixture = visits(5000).await;
    let step = format!(
        "step.export = {{ to = \"file:{}/{{job_id}}/\", format = \"jsonl\" }}",
        fixture.folder.path().display()
    );
    let engine = fixture.engine(&job(&step, "chunk.items = 500")).await;
    let done = complete(&engine).await;
    assert!(is_by_blocks(&engine, done.id).await);
    let mut ids = Vec::new();
    for file in std::fs::read_dir(fixture.folder.path().join(done.id.to_string())).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "jsonl") {
            for line in std::fs::read_to_string(path).unwrap().lines() {
                let record: serde_json::Value = serde_json::from_str(line).unwrap();
                ids.push(record["id"].as_i64().unwrap());
            }
        }
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=5000).collect::<Vec<_>>());
}

#[tokio::test]
async fn one_chunk_needs_no_snapshot() {
    let fixture = visits(5000).await;
    let engine = fixture.engine(&job(MAP, "")).await;
    let done = complete(&engine).await;
    let chunks = chunks(&engine, done.id).await;
    assert_eq!((chunks.len(), chunks[0].key_set.snapshot), (1, None));
    assert_eq!(fixture.store.int("SELECT count(*) FROM windlass_read_snapshots").await, 0);
    reports_all(&fixture, &engine, &done).await;
}

/// Where blocks make no sense, keys are planned and read under the snapshot.
#[tokio::test]
async fn other_sources_are_read_by_keys_under_the_snapshot() {
    let fixture = visits(3000).await;
    fixture
        .app
        .run(
            "CREATE VIEW seen AS SELECT * FROM visits; \
             CREATE TABLE parted (LIKE visits INCLUDING ALL) PARTITION BY RANGE (id); \
             CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1500); \
             CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (1500) TO (9999); \
             INSERT INTO parted SELECT * FROM visits; ANALYZE parted",
        )
        .await;
    let joined = "step.map = \"SELECT count(*) AS n, sum(v.amount) AS total FROM {source} v \
                  JOIN parted p ON p.id = v.id WHERE {chunk:v}\"\n\
                  reduce = \"SELECT sum(n) AS n, sum(total) AS total FROM parts\"";
    let table = "source.table = \"visits\"";
    for (step, from) in [
        (MAP, "source.query = \"SELECT * FROM seen\"\nsource.key = [\"id\"]"),
        (MAP, "source.table = \"parted\""),
        (MAP, "source.query = \"SELECT * FROM visits\"\nsource.key = [\"id\"]"),
        (joined, table),
    ] {
        let jobs = job(step, "chunk.items = 500").replace(table, from);
        let engine = fixture.engine(&jobs).await;
        let done = complete(&engine).await;
        assert!(!is_by_blocks(&engine, done.id).await, "{from}");
        assert!(done.chunks.total > 1, "{from}");
        reports_all(&fixture, &engine, &done).await;
    }
    // Few rows match: an index finds them.
    let engine = fixture.engine(&job(MAP, "chunk.items = 10\nsource.where = \"id <= 100\"")).await;
    let done = complete(&engine).await;
    assert!(!is_by_blocks(&engine, done.id).await);
    assert_eq!(reported(&engine, done.id).await, (100, 15_150));
    // A filter and keys that the request names.
    let jobs = job(MAP, "chunk.items = 100\nsource.filters = { counties = \"county\" }");
    let engine = fixture.engine(&jobs).await;
    fixture.app.run("UPDATE visits SET county = 'south' WHERE id <= 250").await;
    for (request, rows) in [
        (json!({"jobType": "JOB", "ids": (1..=250).collect::<Vec<_>>()}), 250),
        (json!({"jobType": "JOB", "filter": {"counties": ["south", "east"]}}), 250),
        (json!({"jobType": "JOB", "maxItemsPerSegment": 300, "parallelSegments": 1}), 300),
    ] {
        let id = engine.submit(asked(request), Engine::local_identity()).await.unwrap().id();
        let done = work(&engine, id).await;
        assert_eq!((done.status, &done.error), (JobStatus::Completed, &None));
        assert!(!is_by_blocks(&engine, id).await);
        assert_eq!(reported(&engine, id).await.0, rows);
    }
}

/// A row that makes the statement fail is found within its blocks, under the snapshot.
#[tokio::test]
async fn bad_rows_of_blocks_are_dead_letters() {
    let fixture = visits(5000).await;
    fixture.app.run("UPDATE visits SET amount = 0 WHERE id IN (77, 4001)").await;
    rewrite(&fixture).await;
    let step = "step.map = \"SELECT count(*) AS n, sum(3000000 / amount) AS total FROM {source} WHERE {chunk}\"\n\
                reduce = \"SELECT sum(n) AS n, sum(total) AS total FROM parts\"";
    let more = "chunk.items = 500\nfailures = { budget = 10 }";
    let engine = fixture.engine(&job(step, more)).await;
    let done = run(&engine).await;
    assert_eq!((done.status, &done.error), (JobStatus::Completed, &None));
    assert!(is_by_blocks(&engine, done.id).await);
    assert_eq!((done.items.total, done.items.processed, done.items.dead), (5000, 4998, 2));
    let found = letters(&engine, done.id).await;
    assert_eq!(keys(&found), [77, 4001]);
    let own = "SELECT sum(3000000 / amount)::bigint FROM visits WHERE amount <> 0";
    assert_eq!(reported(&engine, done.id).await, (4998, fixture.int(own).await));
}

/// The holder of the snapshot stops, so the snapshot is gone. What was read under it does not count.
#[tokio::test]
async fn a_job_is_read_again_under_a_new_snapshot() {
    for more in ["chunk.items = 500", "chunk.items = 20"] {
        let fixture = visits(2500).await;
        let engine = fixture.engine(&job(MAP, more)).await;
        let id = submit(&engine).await;
        plan_job(&engine, id).await;
        let before = chunks(&engine, id).await;
        // One chunk is completed with a part that must not be merged.
        let leased = engine.store().lease_chunks(&by_hand(id), 1).await.unwrap().remove(0);
        let part = windlass_store::NewPart {
            name: None,
            rows: 1,
            bytes: 0,
            sha256: String::new(),
            content_hash: String::new(),
            content: Some(b"wrong".to_vec()),
        };
        let progress =
            windlass_store::Progress { cursor: windlass_core::Cursor::End, ..Default::default() };
        engine.store().complete_part(leased.lease, &progress, &part).await.unwrap();
        fixture.app.run("UPDATE visits SET amount = amount + 1").await;
        let done = work(&engine, id).await;
        assert_eq!((done.status, &done.error), (JobStatus::Completed, &None), "{more}");
        let after = chunks(&engine, id).await;
        assert!(before.iter().all(|chunk| chunk.key_set.snapshot == Some(1)));
        assert!(after.iter().all(|chunk| chunk.key_set.snapshot == Some(2)), "{after:?}");
        assert!(after.iter().all(|chunk| matches!(chunk.key_set.keys, Keys::Range(_))));
        reports_all(&fixture, &engine, &done).await;
        proven(&engine, &done).await;
    }
}

/// More than half is read, and reading it took long: the job fails, and a retry reads all of it again.
#[tokio::test]
async fn a_job_that_is_half_read_fails_without_its_snapshot() {
    let fixture = visits(5000).await;
    let engine = fixture.engine(&job(MAP, "chunk.items = 500")).await;
    let id = submit(&engine).await;
    plan_job(&engine, id).await;
    let half = "UPDATE windlass_chunks SET status = 'COMPLETED' WHERE number % 2 = 0; \
                UPDATE windlass_jobs SET open_chunks = (SELECT count(*) FROM windlass_chunks \
                WHERE status = 'PENDING'); \
                UPDATE windlass_read_snapshots SET taken_at = taken_at - interval '1 hour'";
    fixture.store.run(half).await;
    let done = work(&engine, id).await;
    assert_eq!(done.status, JobStatus::Failed);
    let error = done.error.clone().unwrap();
    for part in
        ["the read snapshot of the job is lost", "windlass retry", "source.consistency = \"chunk\""]
    {
        assert!(error.contains(part), "{error}");
    }
    engine.retry(id).await.unwrap();
    let done = work(&engine, id).await;
    assert_eq!((done.status, &done.error), (JobStatus::Completed, &None));
    reports_all(&fixture, &engine, &done).await;
    proven(&engine, &done).await;
}

/// A failed chunk cannot be read under the snapshot of the others later.
#[tokio::test]
async fn a_retry_reads_everything_again() {
    let fixture = visits(5000).await;
    fixture.app.run("UPDATE visits SET amount = 0 WHERE id = 77").await;
    let step = "step.map = \"SELECT count(*) AS n, sum(id / amount) AS total FROM {source} WHERE {chunk}\"\n\
                step.on_bad_row = \"fail\"\nreduce = \"SELECT sum(n) AS n, sum(total) AS total FROM parts\"";
    let engine = fixture.engine(&job(step, "chunk.items = 500")).await;
    let failed = run(&engine).await;
    assert_eq!(failed.status, JobStatus::Failed);
    fixture.app.run("UPDATE visits SET amount = 1").await;
    engine.retry(failed.id).await.unwrap();
    let done = work(&engine, failed.id).await;
    assert_eq!((done.status, &done.error), (JobStatus::Completed, &None));
    let own = fixture.int("SELECT sum(id)::bigint FROM visits").await;
    assert_eq!(reported(&engine, done.id).await, (5000, own));
    proven(&engine, &done).await;
}

/// Rows that change after the job do not affect what the audit proves of a job that was read at one instant.
#[tokio::test]
async fn the_audit_proves_a_job_although_rows_change_later() {
    let fixture = visits(5000).await;
    for more in ["chunk.items = 500", "chunk.items = 20"] {
        let engine = fixture.engine(&job(MAP, more)).await;
        let done = complete(&engine).await;
        let rows = fixture.int("SELECT count(*) FROM visits").await;
        fixture
            .app
            .run("UPDATE visits SET amount = amount + 1; DELETE FROM visits WHERE id % 100 = 7")
            .await;
        fixture.app.run("INSERT INTO visits (id) SELECT -i FROM generate_series(1, 20) i ON CONFLICT DO NOTHING").await;
        let audit = engine.audit(done.id).await.unwrap();
        assert!(audit.is_proven(), "{audit:#?}");
        let drift = audit.drift.unwrap();
        let now = fixture.int("SELECT count(*) FROM visits").await;
        assert_eq!(rows + drift.appeared - drift.disappeared, now, "{drift:?}");
        // A missing chunk is found.
        fixture
            .store
            .run(&format!(
                "DELETE FROM windlass_chunks WHERE job_id = '{}' AND number = 1",
                done.id
            ))
            .await;
        assert!(!engine.audit(done.id).await.unwrap().is_proven());
    }
}

#[tokio::test]
async fn consistency_is_checked() {
    let fixture = visits(10).await;
    let engine = fixture.engine(&job(MAP, "source.consistency = \"chunk\"\nchunk.items = 2")).await;
    let done = complete(&engine).await;
    let chunks = chunks(&engine, done.id).await;
    assert!(chunks.len() > 1 && chunks.iter().all(|chunk| chunk.key_set.snapshot.is_none()));
}
