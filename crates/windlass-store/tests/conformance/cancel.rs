//! A cancelled job: what was never claimed ends at once, what was is fenced first.

use std::time::Duration;

use windlass_core::{ChunkStatus, JobStatus};
use windlass_store::{Capabilities, Kept, Standing};
use windlass_testkit::eventually;

use crate::bench::{Bench, LIMIT, brief, by, cut, done, last_page, scan};

both!(
    a_job_that_never_began_ends_at_once,
    what_was_claimed_is_ended_at_a_new_epoch,
    what_was_handed_back_is_ended_too,
    enders_do_not_take_turns,
    a_loader_learns_of_it_by_its_page,
    enders_honour_connections_and_only,
    a_chunk_may_complete_before_it_is_ended,
    the_output_is_discarded_when_all_chunks_have_ended,
);

async fn the_output_is_discarded_when_all_chunks_have_ended(bench: Bench) {
    let job = bench.loaded(2).await;
    let held = bench.claim(job, 1).await.remove(0);
    let empty = bench.submit().await;
    bench.store.cancel(empty).await.unwrap();
    bench.store.cancel(job).await.unwrap();
    let here = ["app".to_owned()];
    let discardable = async |on: &[String]| bench.store.discardable(on, 10).await.unwrap();
    assert_eq!(discardable(&here).await, [], "somebody may still commit");
    let ending = bench.store.claim_cancelled(&by(), 10).await.unwrap().remove(0);
    assert_eq!(ending.lease.chunk, held.lease.chunk);
    assert_eq!(bench.store.end_cancelled(ending.lease, &done(1), &[]).await.unwrap(), Kept::Yes);
    assert_eq!(discardable(&here).await, [(job, "app".to_owned())]);
    assert_eq!(discardable(&["other".to_owned()]).await, []);
    bench.store.discarded(job).await.unwrap();
    assert_eq!(discardable(&here).await, []);
}

async fn a_job_that_never_began_ends_at_once(bench: Bench) {
    let queued = bench.submit().await;
    let loaded = bench.loaded(3).await;
    for job in [queued, loaded] {
        assert_eq!(bench.store.cancel(job).await.unwrap(), JobStatus::Cancelled);
        assert!(bench.job(job).await.finished_at.is_some());
        bench.check(job).await;
    }
    assert_eq!(bench.job(loaded).await.chunks.cancelled, 3);
    assert!(bench.store.claim_cancelled(&by(), 10).await.unwrap().is_empty());
}

async fn what_was_claimed_is_ended_at_a_new_epoch(bench: Bench) {
    let job = bench.loaded(3).await;
    let held = bench.claim(job, 1).await.remove(0);
    bench.store.cancel(job).await.unwrap();
    let cancelled = bench.job(job).await;
    assert_eq!((cancelled.chunks.processing, cancelled.chunks.cancelled), (1, 2));
    assert_eq!(cancelled.finished_at, None);
    bench.check(job).await;
    assert_eq!(bench.store.confirm(&[held.lease]).await.unwrap(), [Standing::HandBack]);

    let ending = bench.store.claim_cancelled(&by(), 10).await.unwrap().remove(0);
    assert_eq!(ending.lease.epoch, held.lease.epoch + 1);
    assert_eq!(bench.complete(&held).await, Kept::Lost, "its old holder is fenced");
    assert_eq!(bench.store.end_cancelled(held.lease, &done(1), &[]).await.unwrap(), Kept::Lost);
    for _ in 0..2 {
        let ended = bench.store.end_cancelled(ending.lease, &done(7), &[]).await.unwrap();
        assert_eq!(ended, Kept::Yes);
    }
    let ended = bench.job(job).await;
    assert!(ended.finished_at.is_some());
    assert_eq!((ended.chunks.cancelled, ended.items.processed), (3, 7));
    bench.check(job).await;
}

async fn what_was_handed_back_is_ended_too(bench: Bench) {
    let job = bench.loaded(1).await;
    let held = bench.claim(job, 1).await.remove(0);
    let wait = Duration::from_secs(3600);
    let kept = bench.store.release(held.lease, &done(2), None, false, wait).await.unwrap();
    assert_eq!(kept, Kept::Yes);
    bench.store.cancel(job).await.unwrap();
    assert_eq!(bench.chunk(job, 0).await.status, ChunkStatus::Pending);
    assert!(bench.claim(job, 1).await.is_empty());
    let ending = bench.store.claim_cancelled(&by(), 10).await.unwrap().remove(0);
    assert_eq!(bench.store.end_cancelled(ending.lease, &done(2), &[]).await.unwrap(), Kept::Yes);
    bench.check(job).await;
}

async fn enders_do_not_take_turns(bench: Bench) {
    let job = bench.loaded_as(brief("100ms", "200ms"), 1).await;
    bench.claim(job, 1).await;
    bench.store.cancel(job).await.unwrap();
    let first = bench.store.claim_cancelled(&by(), 1).await.unwrap().remove(0);
    assert!(bench.store.claim_cancelled(&by(), 1).await.unwrap().is_empty());
    // Once handed back, or its lease lost, another may end it.
    let back = bench.store.release(first.lease, &done(0), None, false, Duration::ZERO).await;
    assert_eq!(back.unwrap(), Kept::Yes);
    let second = bench.store.claim_cancelled(&by(), 1).await.unwrap().remove(0);
    assert_eq!(bench.store.end_cancelled(first.lease, &done(0), &[]).await.unwrap(), Kept::Lost);
    assert_eq!(bench.store.end_cancelled(second.lease, &done(0), &[]).await.unwrap(), Kept::Yes);
    bench.check(job).await;
}

async fn a_loader_learns_of_it_by_its_page(bench: Bench) {
    let job = bench.submit().await;
    let plan = bench.segment_of(job).await;
    assert_eq!(bench.store.cancel(job).await.unwrap(), JobStatus::Cancelled);
    assert!(bench.job(job).await.finished_at.is_some(), "a segment needs no fence");
    let page = last_page(plan.lease, plan.state, scan(10), cut(5));
    assert_eq!(bench.store.load(page).await.unwrap(), Kept::Lost);
    assert_eq!(bench.store.fail_segment(plan.lease, "late").await.unwrap(), Kept::Lost);
    assert_eq!(bench.status(job).await, JobStatus::Cancelled);
    bench.check(job).await;
}

async fn enders_honour_connections_and_only(bench: Bench) {
    let (one, other) = (bench.loaded(1).await, bench.loaded(1).await);
    for job in [one, other] {
        bench.claim(job, 1).await;
        bench.store.cancel(job).await.unwrap();
    }
    let elsewhere = Capabilities { connections: vec!["other".to_owned()], ..by() };
    assert!(bench.store.claim_cancelled(&elsewhere, 9).await.unwrap().is_empty());
    let only = Capabilities { only: Some(other), ..by() };
    let claimed = bench.store.claim_cancelled(&only, 9).await.unwrap();
    assert_eq!(claimed.iter().map(|c| c.lease.chunk.job).collect::<Vec<_>>(), [other]);
}

async fn a_chunk_may_complete_before_it_is_ended(bench: Bench) {
    let job = bench.loaded_as(brief("100ms", "60s"), 2).await;
    let held = bench.claim(job, 2).await;
    bench.store.cancel(job).await.unwrap();
    assert_eq!(bench.complete(&held[0]).await, Kept::Yes);
    bench.check(job).await;
    // The other one's worker is gone; its lease runs out, and it is still there to be ended.
    let rescued = async || bench.store.rescue().await.unwrap() > 0;
    eventually("its lease runs out", LIMIT, rescued).await;
    let ending = bench.store.claim_cancelled(&by(), 10).await.unwrap().remove(0);
    assert_eq!(ending.lease.chunk, held[1].lease.chunk);
    assert_eq!(bench.store.end_cancelled(ending.lease, &done(0), &[]).await.unwrap(), Kept::Yes);
    let ended = bench.job(job).await;
    assert_eq!((ended.chunks.completed, ended.chunks.cancelled), (1, 1));
    assert_eq!(ended.status, JobStatus::Cancelled);
    bench.check(job).await;
}
