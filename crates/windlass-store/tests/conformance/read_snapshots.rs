//! Read snapshots: who holds them, when they count as lost, and that nothing of a lost one stays.

use std::time::Duration;

use serde_json::json;
use windlass_core::{JobId, JobStatus, PaginationState, Request};
use windlass_store::{NewReadSnapshot, Page, StoreError};

use crate::fixture::{StoreFixture, by, cut, done, job_with, last_page, scan};

const LONG: Duration = Duration::from_secs(60);

fn snapshot(number: i64) -> NewReadSnapshot {
    NewReadSnapshot {
        number,
        server: "primary".to_owned(),
        name: "00000003-0000001B-1".to_owned(),
        fingerprint: "f".to_owned(),
        worker: "w".to_owned(),
        lease: LONG,
    }
}

impl StoreFixture {
    /// A job of three chunks that are read under a snapshot.
    async fn read_job(&self) -> JobId {
        let step = json!({"map": "SELECT count(*) AS n FROM {source} WHERE {chunk}"});
        let job = job_with(json!({ "step": step }), Request::new("REFRESH"));
        let job = self.store.submit(job).await.unwrap().id();
        self.plan_under(job, 1).await;
        job
    }

    async fn plan_under(&self, job: JobId, number: i64) {
        let plan = self.segment_of(job).await;
        assert_eq!(plan.state, PaginationState::Plan);
        let page = last_page(plan.lease, PaginationState::Plan, scan(30), cut(3));
        let page = Page { read_snapshot: Some(snapshot(number)), ..page };
        self.store.commit_page(page).await.unwrap();
    }
}

async fn a_snapshot_is_renewed_while_it_is_needed(fixture: StoreFixture) {
    let job = fixture.read_job().await;
    let store = &fixture.store;
    let row = store.read_snapshot(job).await.unwrap().unwrap();
    assert_eq!((row.number, row.server.as_str(), row.fingerprint.as_str()), (1, "primary", "f"));
    assert!(row.lease_until.is_some());
    assert!(store.renew_read_snapshot(job, 1, LONG).await.unwrap());
    assert!(!store.renew_read_snapshot(job, 2, LONG).await.unwrap());
    assert_eq!(store.lost_read_snapshots().await.unwrap(), []);
    assert!(!store.read_again(job, 1).await.unwrap(), "it is held");
    assert!(!store.fail_read(job, 1, "lost").await.unwrap(), "it is held");
    store.pause(job, None).await.unwrap();
    assert!(store.renew_read_snapshot(job, 1, LONG).await.unwrap());
    store.resume(job).await.unwrap();
    for chunk in fixture.lease(job, 3).await {
        store.complete(chunk.lease, &done(10), &[]).await.unwrap();
    }
    assert!(!store.renew_read_snapshot(job, 1, LONG).await.unwrap(), "the last chunk is read");
    store.expire_read_snapshot(job, 1).await.unwrap();
    assert_eq!(store.lost_read_snapshots().await.unwrap(), [], "no chunk is left to read");
    assert!(!store.read_again(job, 1).await.unwrap());
    store.release_read_snapshot(job, 1).await.unwrap();
    assert_eq!(store.read_snapshot(job).await.unwrap().unwrap().lease_until, None);
}

async fn nothing_of_a_lost_snapshot_stays(fixture: StoreFixture) {
    let job = fixture.read_job().await;
    let store = &fixture.store;
    let leased = fixture.lease(job, 2).await;
    store.complete(leased[0].lease, &done(10), &[]).await.unwrap();
    store.expire_leases("w").await.unwrap();
    let lost = store.lost_read_snapshots().await.unwrap().remove(0);
    assert_eq!((lost.job, lost.number, lost.worker.as_str()), (job, 1, "w"));
    assert_eq!((lost.chunks, lost.completed, lost.losses), (3, 1, 0));
    assert!(!store.renew_read_snapshot(job, 1, LONG).await.unwrap(), "it is lost for good");
    store.release_read_snapshot(job, 1).await.unwrap();
    assert_eq!(store.lost_read_snapshots().await.unwrap().len(), 1, "the job needs it");
    assert!(!store.read_again(job, 2).await.unwrap(), "another number");
    assert!(store.read_again(job, 1).await.unwrap());
    assert!(!store.read_again(job, 1).await.unwrap(), "once");
    let shown = fixture.job(job).await;
    assert_eq!((shown.chunks.total, shown.items.total, shown.items.processed), (0, 0, 0));
    let late = store.complete(leased[1].lease, &done(10), &[]).await;
    assert!(matches!(late, Err(StoreError::LeaseLost)), "{late:?}");
    fixture.plan_under(job, 2).await;
    // The chunk has the same number, but not the same lease.
    let late = store.complete(leased[1].lease, &done(10), &[]).await;
    assert!(matches!(late, Err(StoreError::LeaseLost)), "{late:?}");
    assert_eq!(store.read_snapshot(job).await.unwrap().unwrap().number, 2);
    for chunk in fixture.lease(job, 3).await {
        store.complete(chunk.lease, &done(10), &[]).await.unwrap();
    }
    fixture.check(job).await;
}

async fn a_failed_read_is_read_again_by_a_retry(fixture: StoreFixture) {
    let job = fixture.read_job().await;
    let store = &fixture.store;
    store.expire_read_snapshot(job, 1).await.unwrap();
    assert!(store.fail_read(job, 1, "lost").await.unwrap());
    assert_eq!(fixture.status(job).await, JobStatus::Failed);
    assert_eq!(fixture.job(job).await.error.as_deref(), Some("lost"));
    assert_eq!(store.lost_read_snapshots().await.unwrap(), []);
    store.retry(job).await.unwrap();
    assert_eq!(fixture.job(job).await.chunks.total, 0);
    assert!(store.lease_chunks(&by(), 10).await.unwrap().is_empty());
    fixture.plan_under(job, 2).await;
    assert_eq!(fixture.lease(job, 3).await.len(), 3);
    fixture.check(job).await;
}

both!(
    a_snapshot_is_renewed_while_it_is_needed,
    nothing_of_a_lost_snapshot_stays,
    a_failed_read_is_read_again_by_a_retry,
);
