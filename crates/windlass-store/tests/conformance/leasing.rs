//! Which process leases which chunk, and when.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use windlass_core::{ChunkStatus, JobId, JobStatus, Request};
use windlass_store::{
    Capabilities, HandBack, Lease, LeaseRenewal, LeaseStatus, LeasedChunk, Progress,
};

use crate::fixture::{StoreFixture, assert_lost, by, done, job_with};

async fn a_chunk_is_leased_at_a_new_epoch(fixture: StoreFixture) {
    let job = fixture.planned(2).await;
    let leased = fixture.lease(job, 10).await;
    assert_eq!(leased.iter().map(|c| c.lease.chunk.number).collect::<Vec<_>>(), [0, 1]);
    for chunk in &leased {
        assert_eq!((chunk.lease.epoch, chunk.attempts, chunk.lost), (1, 0, false));
    }
    assert!(fixture.lease(job, 10).await.is_empty());
    let row = fixture.chunk(job, 0).await;
    assert_eq!((row.status, row.epoch), (ChunkStatus::Processing, 1));
    assert_eq!(row.worker.as_deref(), Some("worker-1"));
    assert!(row.started_at.is_some());
    fixture.check(job).await;
}

async fn every_lease_has_a_new_nonce(fixture: StoreFixture) {
    let mut seen = HashSet::new();
    let job = fixture.submit().await;
    for _ in 0..3 {
        let plan = fixture.store.lease_segments(&by(), 1).await.unwrap().remove(0);
        assert!(seen.insert(plan.lease.nonce), "{plan:?}");
        let released = fixture.store.release_segment(plan.lease, HandBack::default());
        released.await.unwrap();
    }
    fixture.store.cancel(job).await.unwrap();
    let job = fixture.planned(20).await;
    let none = done(0);
    for _ in 0..3 {
        for chunk in fixture.lease(job, 20).await {
            assert!(seen.insert(chunk.lease.nonce), "{chunk:?}");
            let released = fixture.store.release(chunk.lease, &none, HandBack::default());
            released.await.unwrap();
        }
    }
    // A lease for cancelling draws a new nonce, too.
    fixture.lease(job, 20).await;
    fixture.store.cancel(job).await.unwrap();
    for chunk in fixture.store.lease_cancelled(&by(), 50).await.unwrap() {
        assert!(seen.insert(chunk.lease.nonce), "{chunk:?}");
    }
    assert_eq!(seen.len(), 3 + 3 * 20 + 20);
    assert!(!seen.contains(&0), "0 stands for no lease");
}

/// A restored store gives an epoch twice, but with another nonce.
async fn a_lease_with_another_nonce_is_lost(fixture: StoreFixture) {
    let job = fixture.planned(2).await;
    let leased = fixture.lease(job, 2).await;
    let stale = |n: usize| Lease { nonce: leased[n].lease.nonce ^ 1, ..leased[n].lease };
    let store = &fixture.store;
    let statuses = store.confirm(&[stale(0), leased[0].lease]).await.unwrap();
    assert_eq!(statuses, [LeaseStatus::Lost, LeaseStatus::Held]);
    let renewals = [stale(0), leased[0].lease].map(|lease| LeaseRenewal {
        lease,
        progress: None,
        in_slot: true,
    });
    assert_eq!(
        store.heartbeat(&renewals, &[]).await.unwrap(),
        [LeaseStatus::Lost, LeaseStatus::Held]
    );
    assert_lost(store.complete(stale(0), &done(1), &[]).await);
    assert_lost(store.fail(stale(0), &done(1), "late", true, &[]).await);
    let released = store.release(stale(0), &done(1), HandBack::default()).await;
    assert_lost(released);
    assert_lost(store.complete_together(&[(stale(0), done(1))]).await);
    assert_eq!(fixture.chunk(job, 0).await.status, ChunkStatus::Processing);
    store.complete_together(&[(leased[0].lease, done(1))]).await.unwrap();
    // It must not be told that it has completed the chunk: its part would be taken for the chunk's.
    assert_lost(store.complete(stale(0), &done(1), &[]).await);
    store.complete(leased[1].lease, &done(1), &[]).await.unwrap();
    store.complete(leased[1].lease, &done(1), &[]).await.unwrap();
    fixture.check(job).await;
}

async fn no_chunk_is_leased_twice(fixture: StoreFixture) {
    const CHUNKS: usize = 200;
    let job = fixture.planned(CHUNKS).await;
    let workers = (0..8).map(|n: u32| {
        let settings = fixture.settings.clone();
        tokio::spawn(async move {
            let store = windlass_store::connect_with(&settings).await.unwrap();
            let mut mine = Vec::new();
            loop {
                let leased = store.lease_chunks(&by(), 1 + n % 4).await.unwrap();
                if leased.is_empty() {
                    return mine;
                }
                mine.extend(leased.into_iter().map(|chunk| (chunk.lease.chunk, chunk.lease.epoch)));
            }
        })
    });
    let all: Vec<_> = join_all(workers).await.into_iter().flat_map(|mine| mine.unwrap()).collect();
    assert!(all.iter().all(|(_, epoch)| *epoch == 1));
    let distinct: HashSet<_> = all.iter().map(|(chunk, _)| chunk).collect();
    assert_eq!((all.len(), distinct.len()), (CHUNKS, CHUNKS));
    fixture.check(job).await;
}

async fn chunks_are_leased_by_priority_then_age(fixture: StoreFixture) {
    let mut jobs = Vec::new();
    for priority in [5, 9, 5, 0, 9] {
        let request = Request { priority: Some(priority), ..Request::new("REFRESH") };
        jobs.push(fixture.planned_as(job_with(json!({}), request), 2).await);
    }
    let order = [1, 1, 4, 4, 0, 0, 2, 2, 3, 3].map(|place| jobs[place]);
    // Three at a time, so that one lease spans several jobs.
    let mut leased = Vec::new();
    for _ in 0..4 {
        let next = fixture.store.lease_chunks(&by(), 3).await.unwrap();
        leased.extend(next.iter().map(|chunk| chunk.lease.chunk.job));
    }
    assert_eq!(leased, order);
}

async fn a_lease_above_a_priority_skips_other_jobs(fixture: StoreFixture) {
    let mut jobs = Vec::new();
    for priority in [4, 5, 6] {
        let request = Request { priority: Some(priority), ..Request::new("REFRESH") };
        jobs.push(fixture.planned_as(job_with(json!({}), request), 2).await);
    }
    let urgent = Capabilities { above_priority: Some(5), ..by() };
    let leased = fixture.store.lease_chunks(&urgent, 10).await.unwrap();
    assert_eq!(leased.len(), 2);
    assert!(leased.iter().all(|chunk| chunk.lease.chunk.job == jobs[2]));
}

/// Counts the leased chunks of each job.
fn by_job(jobs: &[JobId], leased: &[LeasedChunk]) -> Vec<usize> {
    let of = |job: &JobId| leased.iter().filter(|chunk| chunk.lease.chunk.job == *job).count();
    jobs.iter().map(of).collect()
}

/// A late job gets slots until it has as many as the job before it. Then both get the same.
async fn jobs_of_equal_priority_share_the_slots(fixture: StoreFixture) {
    let first = fixture.planned(40).await;
    let early = fixture.store.lease_chunks(&by(), 6).await.unwrap();
    assert_eq!(early.len(), 6, "alone it gets all slots");
    let jobs = [first, fixture.planned(40).await, fixture.planned(3).await];
    let lease =
        async |limit| by_job(&jobs, &fixture.store.lease_chunks(&by(), limit).await.unwrap());
    assert_eq!(lease(1).await, [0, 1, 0], "the oldest of those without a chunk in progress");
    assert_eq!(lease(1).await, [0, 0, 1]);
    // Five for each would be fair. The third has only two more, and the oldest gets the rest.
    assert_eq!(lease(8).await, [2, 4, 2]);
    assert_eq!(lease(4).await, [0, 4, 0]);
    assert_eq!(lease(100).await, [32, 31, 0], "nothing is left");
    for job in jobs {
        fixture.check(job).await;
    }
}

async fn all_chunks_of_a_priority_are_leased_before_a_lower_one(fixture: StoreFixture) {
    let mut jobs = Vec::new();
    for (priority, chunks) in [(5, 20), (5, 1), (4, 20)] {
        let request = Request { priority: Some(priority), ..Request::new("REFRESH") };
        jobs.push(fixture.planned_as(job_with(json!({}), request), chunks).await);
    }
    let leased = fixture.store.lease_chunks(&by(), 10).await.unwrap();
    assert_eq!(by_job(&jobs, &leased), [9, 1, 0]);
    let leased = fixture.store.lease_chunks(&by(), 15).await.unwrap();
    assert_eq!(by_job(&jobs, &leased), [11, 0, 4]);
}

async fn excepted_job_types_and_jobs_are_not_leased(fixture: StoreFixture) {
    let jobs = [fixture.planned(2).await, fixture.planned(2).await];
    let except = async |except: String| {
        let by = Capabilities { except: vec!["OTHER".to_owned(), except], ..by() };
        by_job(&jobs, &fixture.store.lease_chunks(&by, 10).await.unwrap())
    };
    assert_eq!(except("REFRESH".to_owned()).await, [0, 0]);
    assert_eq!(except(jobs[0].to_string()).await, [0, 2]);
    assert_eq!(except("REFRES".to_owned()).await, [2, 0]);
}

async fn a_process_leases_only_what_it_can_work_on(fixture: StoreFixture) {
    let handler = json!({ "step": { "handler": "enrich", "version": "v" } });
    let elsewhere = json!({ "source": { "connection": "other", "table": "t", "key": ["id"] } });
    let plain = fixture.submit().await;
    let handled =
        fixture.store.submit(job_with(handler, Request::new("REFRESH"))).await.unwrap().id();
    let apart =
        fixture.store.submit(job_with(elsewhere, Request::new("REFRESH"))).await.unwrap().id();
    let lease = async |by: Capabilities| {
        let leased = fixture.store.lease_segments(&by, 10).await.unwrap();
        // In any order: jobs of equal priority take turns.
        let jobs: HashSet<_> = leased.iter().map(|segment| segment.lease.job).collect();
        for segment in leased {
            fixture.store.release_segment(segment.lease, HandBack::default()).await.unwrap();
        }
        jobs
    };
    let handlers = vec!["other".to_owned(), "enrich".to_owned()];
    assert_eq!(lease(by()).await, [plain].into());
    assert_eq!(
        lease(Capabilities { handlers: handlers.clone(), ..by() }).await,
        [plain, handled].into()
    );
    let both = vec!["app".to_owned(), "other".to_owned()];
    assert_eq!(
        lease(Capabilities { connections: both.clone(), ..by() }).await,
        [plain, apart].into()
    );
    let only_job = Some(apart);
    assert_eq!(
        lease(Capabilities { connections: both, handlers, only_job, ..by() }).await,
        [apart].into()
    );
    assert!(lease(Capabilities { connections: vec![], ..by() }).await.is_empty());
    assert!(lease(Capabilities { only_job, ..by() }).await.is_empty());
}

async fn a_chunk_is_not_leased_before_its_wait_is_over(fixture: StoreFixture) {
    let job = fixture.planned(1).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    let progress = Progress { counts: done(3).counts, ..Progress::default() };
    let wait = Duration::from_secs(3600);
    let released =
        fixture.store.release(chunk.lease, &progress, HandBack::new(Some("busy"), true, wait));
    released.await.unwrap();
    assert!(fixture.lease(job, 1).await.is_empty());
    fixture.run(&format!("UPDATE windlass_chunks SET available_at = {}", fixture.past())).await;
    let again = fixture.lease(job, 1).await;
    assert_eq!((again[0].lease.epoch, again[0].attempts, again[0].lost), (2, 1, false));
    assert_eq!(again[0].error.as_deref(), Some("busy"));
    let row = fixture.chunk(job, 0).await;
    assert_eq!((row.counts, row.losses), (progress.counts, 0));
    fixture.check(job).await;
}

async fn chunks_of_paused_and_failed_jobs_are_not_leased(fixture: StoreFixture) {
    let job = fixture.planned(2).await;
    fixture.store.pause(job, Some("maintenance")).await.unwrap();
    assert!(fixture.lease(job, 1).await.is_empty());
    fixture.store.resume(job).await.unwrap();
    let chunk = fixture.lease(job, 1).await.remove(0);
    fixture.store.fail(chunk.lease, &done(0), "no such column", true, &[]).await.unwrap();
    assert_eq!(fixture.status(job).await, JobStatus::Failed);
    assert!(fixture.lease(job, 1).await.is_empty());
    fixture.check(job).await;
}

async fn segments_are_leased_by_priority_then_age(fixture: StoreFixture) {
    let mut jobs = Vec::new();
    for priority in [0, 9, 5] {
        let request = Request { priority: Some(priority), ..Request::new("REFRESH") };
        let job = job_with(json!({}), request);
        jobs.push(fixture.store.submit(job).await.unwrap().id());
    }
    let leased = fixture.store.lease_segments(&by(), 10).await.unwrap();
    let order: Vec<_> = leased.iter().map(|segment| segment.lease.job).collect();
    assert_eq!(order, [jobs[1], jobs[2], jobs[0]]);
    assert!(fixture.store.lease_segments(&by(), 10).await.unwrap().is_empty());
}

async fn jobs_of_equal_priority_take_turns_at_planning(fixture: StoreFixture) {
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(fixture.submit().await);
    }
    // One process, which hands each segment back when its turn is over.
    let mut turns = Vec::new();
    for _ in 0..9 {
        let leased = fixture.store.lease_segments(&by(), 1).await.unwrap().remove(0);
        turns.push(leased.lease.job);
        let wait = Duration::ZERO;
        fixture
            .store
            .release_segment(leased.lease, HandBack::new(None, false, wait))
            .await
            .unwrap();
        // The store's clock has a resolution of milliseconds.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(turns, [jobs.clone(), jobs.clone(), jobs].concat());
}

both!(
    a_chunk_is_leased_at_a_new_epoch,
    every_lease_has_a_new_nonce,
    a_lease_with_another_nonce_is_lost,
    no_chunk_is_leased_twice,
    chunks_are_leased_by_priority_then_age,
    a_lease_above_a_priority_skips_other_jobs,
    jobs_of_equal_priority_share_the_slots,
    all_chunks_of_a_priority_are_leased_before_a_lower_one,
    excepted_job_types_and_jobs_are_not_leased,
    a_process_leases_only_what_it_can_work_on,
    a_chunk_is_not_leased_before_its_wait_is_over,
    chunks_of_paused_and_failed_jobs_are_not_leased,
    segments_are_leased_by_priority_then_age,
    jobs_of_equal_priority_take_turns_at_planning,
);

/// Executes a statement that leases up to five chunks or segments, and returns how many jobs it has read, each as often as it
/// was read.
const JOBS_READ: &str = r#"
    CREATE FUNCTION jobs_read(statement text, arguments text) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE plan jsonb;
    BEGIN
        PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
        EXECUTE 'PREPARE lease AS ' || statement;
        EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE lease ' || arguments INTO plan;
        DEALLOCATE lease;
        RETURN (
            SELECT sum((scan ->> 'Actual Loops')::float8
                * ((scan ->> 'Actual Rows')::float8 + coalesce((scan ->> 'Rows Removed by Filter')::float8, 0)))
            FROM jsonb_path_query(plan, 'strict $.**?(@."Relation Name" == "windlass_jobs")') AS scan
            WHERE scan ->> 'Node Type' LIKE '%Scan'
        );
    END $$"#;

async fn jobs_read(fixture: &StoreFixture, statement: &str, arguments: &str) -> i64 {
    let read = format!("SELECT jobs_read($sql${statement}$sql$, $sql${arguments}$sql$)");
    fixture.number(&read).await
}

async fn jobs_read_for_chunks(fixture: &StoreFixture, fair: bool) -> i64 {
    let statement = include_str!("../../queries/postgres/lease_chunks.sql");
    let arguments = format!(
        "('{{app}}', '{{}}', NULL, 5, 'worker', NULL, '{{}}', '{{}}', '{{}}', {fair}, 1000)"
    );
    jobs_read(fixture, statement, &arguments).await
}

async fn jobs_read_for_segments(fixture: &StoreFixture) -> i64 {
    let statement = include_str!("../../queries/postgres/lease_segments.sql");
    jobs_read(fixture, statement, "('{app}', '{}', NULL, 5, 'worker', 1000)").await
}

const JOBS: i64 = 200;

#[tokio::test]
async fn postgres_reads_only_as_many_jobs_as_it_needs() {
    let fixture = StoreFixture::postgres().await;
    for _ in 0..JOBS {
        fixture.planned(1).await;
    }
    fixture.run(JOBS_READ).await;
    // Each of the five jobs that begin is read twice more. The first lease compares the shares of the oldest 64 jobs. The
    // second passes the five jobs whose chunk is leased then.
    for (fair, most) in [(true, 64 + 10), (false, 10 + 10)] {
        let read = jobs_read_for_chunks(&fixture, fair).await;
        assert!((5..=most).contains(&read), "{read} jobs are read");
    }
}

#[tokio::test]
async fn postgres_reads_no_job_to_lease_while_everything_is_stopped() {
    let fixture = StoreFixture::postgres().await;
    for _ in 0..JOBS {
        fixture.planned(1).await;
        fixture.submit().await;
    }
    fixture.run(JOBS_READ).await;
    fixture.store.stop("*", true).await.unwrap();
    for fair in [true, false] {
        assert_eq!(jobs_read_for_chunks(&fixture, fair).await, 0);
    }
    assert_eq!(jobs_read_for_segments(&fixture).await, 0);
}

/// Many jobs were submitted since the server counted the rows of its tables.
#[tokio::test]
async fn postgres_does_not_compare_all_jobs_with_each_other_to_lease() {
    let fixture = StoreFixture::postgres().await;
    fixture.planned(1).await;
    fixture.run("ANALYZE").await;
    for _ in 0..JOBS {
        fixture.planned(1).await;
        fixture.submit().await;
    }
    fixture.run(JOBS_READ).await;
    let each_a_few_times = 4 * 2 * JOBS;
    for fair in [true, false] {
        let read = jobs_read_for_chunks(&fixture, fair).await;
        assert!((5..=each_a_few_times).contains(&read), "{read} jobs are read");
    }
    let read = jobs_read_for_segments(&fixture).await;
    assert!((5..=each_a_few_times).contains(&read), "{read} jobs are read");
}
