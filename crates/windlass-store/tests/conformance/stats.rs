//! Counts of open work.

use windlass_core::JobStatus;
use windlass_store::Depth;

use crate::fixture::{LIMIT, StoreFixture, new_job, with_short_lease};

both!(depths_count_jobs_and_chunks, lost_leases_are_counted, open_jobs_are_listed_by_submitter);

fn depth(status: JobStatus, jobs: i64, pending: i64, processing: i64) -> Depth {
    Depth { job_type: "REFRESH".to_owned(), status, jobs, pending, processing }
}

async fn depths_count_jobs_and_chunks(fixture: StoreFixture) {
    let depths = async || fixture.store.stats().await.unwrap().depths;
    assert_eq!(depths().await, []);
    fixture.submit().await;
    let (job, other) = (fixture.planned(5).await, fixture.planned(2).await);
    let chunks = fixture.lease(job, 3).await;
    let queued = depth(JobStatus::Queued, 1, 0, 0);
    assert_eq!(depths().await, [depth(JobStatus::Processing, 2, 4, 3), queued.clone()]);
    fixture.complete(&chunks[0]).await.unwrap();
    fixture.store.pause(other, None).await.unwrap();
    let expected =
        [depth(JobStatus::Paused, 1, 2, 0), depth(JobStatus::Processing, 1, 2, 2), queued.clone()];
    assert_eq!(depths().await, expected);
    for job in [job, other] {
        fixture.store.cancel(job).await.unwrap();
    }
    assert_eq!(depths().await, [queued]);
}

async fn lost_leases_are_counted(fixture: StoreFixture) {
    let job = fixture.planned_as(with_short_lease("50ms", "1m"), 2).await;
    let losses = async || fixture.store.stats().await.unwrap().losses;
    fixture.lease(job, 2).await;
    assert_eq!(losses().await, []);
    let mut rescued = 0;
    windlass_testkit::eventually("both leases expire", LIMIT, async || {
        rescued += fixture.store.rescue().await.unwrap();
        rescued == 2
    })
    .await;
    let found = losses().await;
    assert_eq!((found.len(), found[0].job, found[0].losses), (1, job, 2));
    assert_eq!(found[0].job_type, "REFRESH");
}

async fn open_jobs_are_listed_by_submitter(fixture: StoreFixture) {
    let mut jobs = Vec::new();
    for name in ["schedule", "ada", "schedule", "schedule"] {
        let mut job = new_job();
        job.identity.name = name.to_owned();
        jobs.push(fixture.planned_as(job, 1).await);
    }
    fixture.store.pause(jobs[2], None).await.unwrap();
    fixture.store.cancel(jobs[3]).await.unwrap();
    let open = fixture.store.open_jobs("schedule", 10).await.unwrap();
    assert_eq!(open, [jobs[0], jobs[2]]);
    assert_eq!(fixture.store.open_jobs("schedule", 1).await.unwrap(), [jobs[0]]);
}
