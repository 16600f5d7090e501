//! Cancelled jobs: chunks that were never leased end at once, the others are fenced first.

use std::time::Duration;

use windlass_core::{ChunkStatus, JobStatus};
use windlass_store::{Capabilities, HandBack, LeaseStatus};
use windlass_testkit::eventually;

use crate::fixture::{
    LIMIT, StoreFixture, assert_lost, by, cut, done, last_page, scan, with_short_lease,
};

async fn output_is_discardable_when_all_chunks_have_ended(fixture: StoreFixture) {
    let job = fixture.planned(2).await;
    let leased = fixture.lease(job, 1).await.remove(0);
    let empty = fixture.submit().await;
    fixture.store.cancel(empty).await.unwrap();
    fixture.store.cancel(job).await.unwrap();
    let here = ["app".to_owned()];
    let discardable = async |on: &[String]| fixture.store.discardable(on, 10).await.unwrap();
    assert_eq!(discardable(&here).await, [], "a worker may still commit");
    let ending = fixture.store.lease_cancelled(&by(), 10).await.unwrap().remove(0);
    assert_eq!(ending.lease.chunk, leased.lease.chunk);
    fixture.store.end_cancelled(ending.lease, &done(1), &[]).await.unwrap();
    assert_eq!(discardable(&here).await, [(job, "app".to_owned())]);
    assert_eq!(discardable(&["other".to_owned()]).await, []);
    fixture.store.mark_discarded(job).await.unwrap();
    assert_eq!(discardable(&here).await, []);
}

async fn a_job_without_leases_is_cancelled_at_once(fixture: StoreFixture) {
    let queued = fixture.submit().await;
    let loaded = fixture.planned(3).await;
    for job in [queued, loaded] {
        assert_eq!(fixture.store.cancel(job).await.unwrap(), JobStatus::Cancelled);
        assert!(fixture.job(job).await.finished_at.is_some());
        fixture.check(job).await;
    }
    assert_eq!(fixture.job(loaded).await.chunks.cancelled, 3);
    assert!(fixture.store.lease_cancelled(&by(), 10).await.unwrap().is_empty());
}

async fn a_leased_chunk_is_cancelled_at_a_new_epoch(fixture: StoreFixture) {
    let job = fixture.planned(3).await;
    let leased = fixture.lease(job, 1).await.remove(0);
    fixture.store.cancel(job).await.unwrap();
    let cancelled = fixture.job(job).await;
    assert_eq!((cancelled.chunks.processing, cancelled.chunks.cancelled), (1, 2));
    assert_eq!(cancelled.finished_at, None);
    fixture.check(job).await;
    assert_eq!(fixture.store.confirm(&[leased.lease]).await.unwrap(), [LeaseStatus::HandBack]);

    let ending = fixture.store.lease_cancelled(&by(), 10).await.unwrap().remove(0);
    assert_eq!(ending.lease.epoch, leased.lease.epoch + 1);
    assert_lost(fixture.complete(&leased).await);
    assert_lost(fixture.store.end_cancelled(leased.lease, &done(1), &[]).await);
    for _ in 0..2 {
        fixture.store.end_cancelled(ending.lease, &done(7), &[]).await.unwrap();
    }
    let ended = fixture.job(job).await;
    assert!(ended.finished_at.is_some());
    assert_eq!((ended.chunks.cancelled, ended.items.processed), (3, 7));
    fixture.check(job).await;
}

async fn a_chunk_that_was_handed_back_is_cancelled_too(fixture: StoreFixture) {
    let job = fixture.planned(1).await;
    let leased = fixture.lease(job, 1).await.remove(0);
    let wait = Duration::from_secs(3600);
    fixture.store.release(leased.lease, &done(2), HandBack::new(None, false, wait)).await.unwrap();
    fixture.store.cancel(job).await.unwrap();
    assert_eq!(fixture.chunk(job, 0).await.status, ChunkStatus::Pending);
    assert!(fixture.lease(job, 1).await.is_empty());
    let ending = fixture.store.lease_cancelled(&by(), 10).await.unwrap().remove(0);
    fixture.store.end_cancelled(ending.lease, &done(2), &[]).await.unwrap();
    fixture.check(job).await;
}

async fn a_chunk_is_leased_for_cancelling_by_one_process_at_a_time(fixture: StoreFixture) {
    let job = fixture.planned_as(with_short_lease("100ms", "200ms"), 1).await;
    fixture.lease(job, 1).await;
    fixture.store.cancel(job).await.unwrap();
    let first = fixture.store.lease_cancelled(&by(), 1).await.unwrap().remove(0);
    assert!(fixture.store.lease_cancelled(&by(), 1).await.unwrap().is_empty());
    // After a hand-back or an expired lease, another process may cancel it.
    fixture.store.release(first.lease, &done(0), HandBack::default()).await.unwrap();
    let second = fixture.store.lease_cancelled(&by(), 1).await.unwrap().remove(0);
    assert_lost(fixture.store.end_cancelled(first.lease, &done(0), &[]).await);
    fixture.store.end_cancelled(second.lease, &done(0), &[]).await.unwrap();
    fixture.check(job).await;
}

async fn a_page_of_a_cancelled_job_is_refused(fixture: StoreFixture) {
    let job = fixture.submit().await;
    let plan = fixture.segment_of(job).await;
    assert_eq!(fixture.store.cancel(job).await.unwrap(), JobStatus::Cancelled);
    assert!(fixture.job(job).await.finished_at.is_some(), "a segment needs no fence");
    let page = last_page(plan.lease, plan.state, scan(10), cut(5));
    assert_lost(fixture.store.commit_page(page).await);
    assert_lost(fixture.store.fail_segment(plan.lease, "late").await);
    assert_eq!(fixture.status(job).await, JobStatus::Cancelled);
    fixture.check(job).await;
}

async fn leases_for_cancelling_respect_connections_and_only_job(fixture: StoreFixture) {
    let (one, other) = (fixture.planned(1).await, fixture.planned(1).await);
    for job in [one, other] {
        fixture.lease(job, 1).await;
        fixture.store.cancel(job).await.unwrap();
    }
    let elsewhere = Capabilities { connections: vec!["other".to_owned()], ..by() };
    assert!(fixture.store.lease_cancelled(&elsewhere, 9).await.unwrap().is_empty());
    let only = Capabilities { only_job: Some(other), ..by() };
    let leased = fixture.store.lease_cancelled(&only, 9).await.unwrap();
    assert_eq!(leased.iter().map(|c| c.lease.chunk.job).collect::<Vec<_>>(), [other]);
}

async fn a_chunk_of_a_cancelled_job_may_still_complete(fixture: StoreFixture) {
    let job = fixture.planned_as(with_short_lease("100ms", "60s"), 2).await;
    let leased = fixture.lease(job, 2).await;
    fixture.store.cancel(job).await.unwrap();
    fixture.complete(&leased[0]).await.unwrap();
    fixture.check(job).await;
    // The worker of the other chunk is gone. Its lease expires, and the chunk can still be cancelled.
    let rescued = async || fixture.store.rescue().await.unwrap() > 0;
    eventually("its lease runs out", LIMIT, rescued).await;
    let ending = fixture.store.lease_cancelled(&by(), 10).await.unwrap().remove(0);
    assert_eq!(ending.lease.chunk, leased[1].lease.chunk);
    fixture.store.end_cancelled(ending.lease, &done(0), &[]).await.unwrap();
    let ended = fixture.job(job).await;
    assert_eq!((ended.chunks.completed, ended.chunks.cancelled), (1, 1));
    assert_eq!(ended.status, JobStatus::Cancelled);
    fixture.check(job).await;
}

both!(
    a_job_without_leases_is_cancelled_at_once,
    a_leased_chunk_is_cancelled_at_a_new_epoch,
    a_chunk_that_was_handed_back_is_cancelled_too,
    a_chunk_is_leased_for_cancelling_by_one_process_at_a_time,
    a_page_of_a_cancelled_job_is_refused,
    leases_for_cancelling_respect_connections_and_only_job,
    a_chunk_of_a_cancelled_job_may_still_complete,
    output_is_discardable_when_all_chunks_have_ended,
);
