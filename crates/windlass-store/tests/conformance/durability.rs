//! A call returns only after its changes are on disk, whatever `synchronous_commit` is set to on the
//! server, the database and the role. The tests check the write-ahead log after each call.

use std::time::Duration;

use serde_json::json;
use windlass_core::{AlertKind, DeadLetterStatus, JobStatus, PaginationState, Request};
use windlass_store::{AlertFilter, DeadLetterFilter, HandBack, NewAlert, NewJob, NewPart};
use windlass_testkit::{Database, PostgresServer};

use crate::dead_letters::letter;
use crate::fixture::{StoreFixture, by, cut, done, job_with, last_page, new_job, scan, with_dead};

/// Reads the log of a server that has no other writer.
struct Log {
    database: Database,
}

/// The notification of a change commits in its own transaction, which need not be durable: a commit record of 40 bytes,
/// and at a page end the header of the next page, of at most 40. A changed row and its commit are longer than that.
const NOTIFICATION: i64 = 80;

impl Log {
    async fn end(&self) -> i64 {
        self.database.one("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").await
    }

    /// Makes a call that writes. All of it must be flushed when the call returns.
    async fn durable<T>(
        &self,
        what: &str,
        call: impl Future<Output = windlass_store::Result<T>>,
    ) -> T {
        let before = self.end().await;
        let answer = call.await.unwrap();
        let flushed = "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint";
        let flushed: i64 = self.database.one(flushed).await;
        let end = self.end().await;
        assert!(end > before, "{what}: wrote nothing, so this proves nothing");
        let unflushed = end - flushed;
        assert!(unflushed <= NOTIFICATION, "{what}: {unflushed} bytes are not flushed");
        answer
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_returns_after_its_changes_are_flushed() {
    let server = PostgresServer::start_lazy();
    let database = server.database().await;
    let (name, off) = (database.name(), "SET synchronous_commit = off");
    database.run(&format!("ALTER DATABASE {name} {off}; ALTER ROLE windlass {off}")).await;
    let fixture = StoreFixture::postgres_on(database.clone()).await;
    let (log, store) = (Log { database }, fixture.store.clone());
    log.durable("submit", store.submit(new_job())).await;

    // From planning to the end, with dead letters.
    let job = fixture.submit().await;
    let only = windlass_store::Capabilities { only_job: Some(job), ..by() };
    let plan = log.durable("lease a segment", store.lease_segments(&only, 1)).await.remove(0);
    let later =
        store.release_segment(plan.lease, HandBack::new(Some("busy"), false, Duration::ZERO));
    log.durable("release a segment", later).await;
    let plan = fixture.segment_of(job).await;
    let page = last_page(plan.lease, PaginationState::Plan, scan(10), cut(4));
    let _ = log.durable("load", store.commit_page(page)).await;
    let chunks = log.durable("lease", store.lease_chunks(&only, 4)).await;
    let letters = [letter(1, "bad"), letter(2, "worse")];
    let _ = log.durable("a dead letter", store.add_dead_letters(chunks[0].lease, &letters)).await;
    let (none, two_dead) = (done(0), with_dead(2));
    let release =
        store.release(chunks[1].lease, &none, HandBack::new(Some("busy"), true, Duration::ZERO));
    let _ = log.durable("release", release).await;
    let again = fixture.lease(job, 1).await.remove(0);
    fixture.complete(&chunks[2]).await.unwrap();
    fixture.complete(&chunks[3]).await.unwrap();
    fixture.complete(&again).await.unwrap();
    let last = store.complete(chunks[0].lease, &two_dead, &[]);
    let _ = log.durable("the last chunk", last).await;
    assert_eq!(fixture.status(job).await, JobStatus::Completed);

    // Dead letters and a redrive.
    let of = |number: i64| DeadLetterFilter {
        error: Some(["bad", "worse"][number as usize - 1].to_owned()),
        ..DeadLetterFilter::default()
    };
    log.durable("ignore a letter", store.mark_dead_letters(&of(1), DeadLetterStatus::Ignored))
        .await;
    let redrive = NewJob { root: job, ..new_job() };
    let redriven = log.durable("redrive", store.redrive(job, &of(2), redrive)).await;
    let (redrive, _) = redriven.unwrap();
    let chunk = crate::dead_letters::begin(&fixture, redrive).await;
    let settled = [chunk_key(2)];
    let _ = log.durable("settle", store.complete(chunk.lease, &done(1), &settled)).await;

    // Several completions in one transaction, which end the job.
    let job = fixture.planned(2).await;
    let together: Vec<_> =
        fixture.lease(job, 2).await.iter().map(|chunk| (chunk.lease, done(10))).collect();
    log.durable("complete together", store.complete_together(&together)).await;
    assert_eq!(fixture.status(job).await, JobStatus::Completed);

    // Parts and their merge.
    let part = NewPart {
        name: None,
        rows: 1,
        bytes: 1,
        sha256: "a".into(),
        content_hash: "b".into(),
        content: Some(vec![1]),
    };
    let map = json!({ "step": { "map": "SELECT 1 AS n FROM {source} WHERE {chunk}" },
                      "reduce": "SELECT sum(n) AS n FROM parts" });
    let job = fixture.planned_as(job_with(map, Request::new("REFRESH")), 1).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    store.complete_part(chunk.lease, &done(1), &part).await.unwrap();
    let merge = fixture.segment_of(job).await;
    let _ = log.durable("put a result", store.put_merged(merge.lease, &part)).await;
    let page = last_page(merge.lease, PaginationState::Merge, PaginationState::Merge, Vec::new());
    let _ = log.durable("the merge", store.commit_page(page)).await;
    assert_eq!(fixture.status(job).await, JobStatus::Completed);

    // A budget that pauses or fails a job while other chunks are open.
    let job = fixture.planned(3).await;
    let chunks = fixture.lease(job, 2).await;
    let _ =
        log.durable("fail a chunk", store.fail(chunks[0].lease, &done(0), "no", false, &[])).await;
    let _ =
        log.durable("fail the job", store.fail(chunks[1].lease, &done(0), "no", true, &[])).await;
    assert_eq!(fixture.status(job).await, JobStatus::Failed);
    log.durable("retry", store.retry(job)).await;
    for (on_exceeded, status) in [("pause", JobStatus::Paused), ("fail", JobStatus::Failed)] {
        let failures = json!({ "failures": { "budget": 1, "on_exceeded": on_exceeded } });
        let job = fixture.planned_as(job_with(failures, Request::new("REFRESH")), 3).await;
        let chunk = fixture.lease(job, 1).await.remove(0);
        let _ = log.durable(on_exceeded, store.complete(chunk.lease, &with_dead(2), &[])).await;
        assert_eq!(fixture.status(job).await, status);
    }
    let job = fixture.submit().await;
    let plan = fixture.segment_of(job).await;
    let _ = log.durable("fail a segment", store.fail_segment(plan.lease, "no table")).await;

    // Operator commands.
    let job = fixture.planned(2).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    log.durable("pause", store.pause(job, Some("why"))).await;
    log.durable("resume", store.resume(job)).await;
    log.durable("cancel", store.cancel(job)).await;
    let ending = log.durable("lease cancelled", store.lease_cancelled(&only_of(job), 1)).await;
    assert_eq!(ending[0].lease.chunk, chunk.lease.chunk);
    let _ = log.durable("end cancelled", store.end_cancelled(ending[0].lease, &done(0), &[])).await;
    log.durable("discard", store.mark_discarded(job)).await;
    log.durable("stop", store.stop("REFRESH", true)).await;
    log.durable("start", store.stop("REFRESH", false)).await;
    log.durable("throughput", store.set_throughput("REFRESH", Some(3), None)).await;
    log.durable("suspend", store.suspend("REFRESH", "unavailable", Duration::from_secs(60))).await;
    let now = store.now().await.unwrap();
    log.durable("a schedule", store.put_schedule("REFRESH", "spec", Some(now))).await;
    let next = now + chrono::Duration::hours(1);
    let schedules = store.schedules().await.unwrap();
    let from = schedules[0].next_at.unwrap();
    log.durable("fired", store.advance_schedule("REFRESH", from, Some(next), Some((from, job))))
        .await;
    log.durable("pause a schedule", store.pause_schedule("REFRESH", true, None)).await;
    let alert = NewAlert {
        kind: AlertKind::DeadLetters,
        subject: "REFRESH".to_owned(),
        job_type: "REFRESH".to_owned(),
        job: None,
        message: "many".to_owned(),
        details: json!({}),
        threshold: Some(1),
        sustained_for: Duration::ZERO,
        post: false,
    };
    log.durable("an alert", store.raise_alert(&alert)).await;
    assert_eq!(store.alerts(&AlertFilter::default()).await.unwrap().len(), 1);
    log.durable(
        "an alert is over",
        store.clear_alert(AlertKind::DeadLetters, "REFRESH", "handled"),
    )
    .await;
}

fn only_of(job: windlass_core::JobId) -> windlass_store::Capabilities {
    windlass_store::Capabilities { only_job: Some(job), ..by() }
}

fn chunk_key(number: i64) -> String {
    crate::fixture::key(number).to_text()
}
