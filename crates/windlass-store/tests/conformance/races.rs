//! Commands race with leases and completions. Whichever wins, the state stays consistent and jobs end.

use std::sync::Arc;
use std::time::Duration;

use windlass_core::{JobId, JobStatus, config};
use windlass_store::{
    HandBack, LeaseRenewal, LeasedChunk, Result, Store, StoreError, connect_with,
};
use windlass_testkit::eventually;

use crate::fixture::{LIMIT, StoreFixture, by, done, new_job, with_short_lease};

/// Accepts success and a lost lease: the race decides between them.
#[track_caller]
fn allow_lost(result: Result<()>) {
    assert!(matches!(result, Ok(()) | Err(StoreError::LeaseLost)), "{result:?}");
}

/// Leases and ends chunks until it is notified. It hands back every third chunk.
async fn work(settings: config::Store, stop: Arc<tokio::sync::Notify>) {
    let store = connect_with(&settings).await.unwrap();
    let working = async {
        for turn in 0.. {
            for chunk in store.lease_chunks(&by(), 3).await.unwrap() {
                let lease = chunk.lease;
                allow_lost(match turn % 3 {
                    0 => store.release(lease, &done(1), HandBack::default()).await,
                    _ => store.complete(lease, &done(10), &[]).await,
                });
            }
        }
    };
    tokio::select! {
        () = working => {}
        () = stop.notified() => {}
    }
}

/// Runs workers beside another future, and stops them afterwards.
async fn beside_workers(fixture: &StoreFixture, count: usize, other: impl Future<Output = ()>) {
    let stop = Arc::new(tokio::sync::Notify::new());
    let spawn = |_| tokio::spawn(work(fixture.settings.clone(), stop.clone()));
    let workers: Vec<_> = (0..count).map(spawn).collect();
    other.await;
    for worker in workers {
        while !worker.is_finished() {
            stop.notify_waiters();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        worker.await.unwrap();
    }
}

async fn ends(store: &Arc<dyn Store>, job: JobId) {
    eventually("the job ends", LIMIT, async || {
        store.rescue().await.unwrap();
        store.job(job).await.unwrap().unwrap().finished_at.is_some()
    })
    .await;
}

async fn pauses_and_resumes_race_with_work(fixture: StoreFixture) {
    let job = fixture.planned_as(with_short_lease("1s", "60s"), 60).await;
    beside_workers(&fixture, 4, async {
        for turn in 0..20 {
            // Refused when the job has ended, which is fine.
            let _ = fixture.store.pause(job, Some("a race")).await;
            if turn % 2 == 0 {
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
            let _ = fixture.store.resume(job).await;
        }
        ends(&fixture.store, job).await;
    })
    .await;
    let ended = fixture.job(job).await;
    assert_eq!(ended.status, JobStatus::Completed);
    assert_eq!(ended.items.processed, 600);
    fixture.check(job).await;
}

async fn a_cancel_races_with_work(fixture: StoreFixture) {
    for micros in [0, 1_000, 5_000, 20_000] {
        let job = fixture.planned_as(with_short_lease("1s", "60s"), 40).await;
        beside_workers(&fixture, 4, async {
            tokio::time::sleep(Duration::from_micros(micros)).await;
            let cancelled = fixture.store.cancel(job).await.is_ok();
            eventually("the job ends", LIMIT, async || {
                for chunk in fixture.store.lease_cancelled(&by(), 10).await.unwrap() {
                    allow_lost(fixture.store.end_cancelled(chunk.lease, &done(1), &[]).await);
                }
                fixture.job(job).await.finished_at.is_some()
            })
            .await;
            let expected = if cancelled { JobStatus::Cancelled } else { JobStatus::Completed };
            assert_eq!(fixture.status(job).await, expected);
        })
        .await;
        fixture.check(job).await;
    }
}

async fn retries_race_with_failures(fixture: StoreFixture) {
    let job = fixture.planned_as(with_short_lease("1s", "60s"), 30).await;
    let failing = async {
        // One task fails chunks, sometimes with the whole job; another one retries at once.
        for turn in 0..15 {
            for chunk in fixture.lease(job, 1).await {
                let (at_once, progress) = (turn % 2 == 0, done(0));
                let failed = fixture.store.fail(chunk.lease, &progress, "bad", at_once, &[]);
                allow_lost(failed.await);
            }
            let _ = fixture.store.retry(job).await;
        }
        eventually("the job completes", LIMIT, async || {
            fixture.store.rescue().await.unwrap();
            let _ = fixture.store.retry(job).await;
            fixture.status(job).await == JobStatus::Completed
        })
        .await;
    };
    beside_workers(&fixture, 3, failing).await;
    assert_eq!(fixture.job(job).await.items.processed, 300);
    fixture.check(job).await;
}

/// All change many chunks, which they must lock in the same order.
async fn heartbeats_and_completions_do_not_deadlock(fixture: StoreFixture) {
    let (store, other) = (&fixture.store, fixture.other().await);
    let completed = |chunk: &LeasedChunk| (chunk.lease, done(10));
    let renewal =
        |chunk: &LeasedChunk| LeaseRenewal { lease: chunk.lease, progress: None, in_slot: true };
    for _ in 0..fixture.rounds(50) {
        let job = fixture.planned(201).await;
        let leased = fixture.lease(job, 200).await;
        let renewals: Vec<_> = leased.iter().rev().map(renewal).collect();
        let ends: Vec<_> = leased.iter().map(completed).collect();
        let (beats, ended) =
            tokio::join!(other.heartbeat(&renewals, &[]), store.complete_together(&ends));
        beats.unwrap();
        ended.unwrap();
        fixture.check(job).await;
    }
    for _ in 0..fixture.rounds(20) {
        let mut leased = Vec::new();
        for _ in 0..20 {
            let job = fixture.planned(1).await;
            leased.extend(fixture.lease(job, 1).await);
        }
        let renewals: Vec<_> = leased.iter().map(renewal).collect();
        let ends: Vec<_> = leased.iter().rev().map(completed).collect();
        let (beats, ended) =
            tokio::join!(other.heartbeat(&renewals, &[]), store.complete_jobs(&ends));
        beats.unwrap();
        ended.unwrap();
    }
}

async fn pages_race_with_a_cancel(fixture: StoreFixture) {
    use crate::fixture::{cut, page, scan};
    for micros in [0, 2_000, 8_000] {
        let job = fixture.store.submit(new_job()).await.unwrap().id();
        let plan = fixture.segment_of(job).await;
        let store = fixture.other().await;
        let (cancelled, cancel) = tokio::sync::oneshot::channel();
        let planning = tokio::spawn(async move {
            let (mut state, mut cancel) = (plan.state, Some(cancel));
            for turn in 1..50 {
                // The last page follows the cancel for certain.
                if turn == 49
                    && let Some(cancel) = cancel.take()
                {
                    cancel.await.unwrap();
                }
                let next = page(plan.lease, state, scan(turn), cut(2));
                state = next.to.clone();
                match store.commit_page(next).await {
                    Err(StoreError::LeaseLost) => return,
                    committed => committed.unwrap(),
                }
            }
            panic!("the cancel never refused a page");
        });
        tokio::time::sleep(Duration::from_micros(micros)).await;
        fixture.store.cancel(job).await.unwrap();
        // The planner may have been refused already.
        let _ = cancelled.send(());
        planning.await.unwrap();
        assert!(fixture.job(job).await.finished_at.is_some());
        fixture.check(job).await;
    }
}

async fn segments_are_planned_concurrently(fixture: StoreFixture) {
    use crate::fixture::{cut, last_page, new_segments, page, scan};
    let job = fixture.submit().await;
    let plan = fixture.segment_of(job).await;
    let split = last_page(plan.lease, plan.state, scan(0), vec![]);
    let split = windlass_store::Page { segments: new_segments(8), ..split };
    fixture.store.commit_page(split).await.unwrap();
    let loads = fixture.store.lease_segments(&by(), 8).await.unwrap().into_iter().map(|segment| {
        let store = fixture.store.clone();
        tokio::spawn(async move {
            let mut state = segment.state;
            for turn in 100..105 {
                let mut next = page(segment.lease, state, scan(turn), cut(3));
                next.last = turn == 104;
                state = next.to.clone();
                store.commit_page(next).await.unwrap();
            }
        })
    });
    for load in futures::future::join_all(loads).await {
        load.unwrap();
    }
    assert_eq!(fixture.chunks(job).await.len(), 8 * 5 * 3);
    fixture.check(job).await;
}

async fn a_pause_races_with_the_last_completion(fixture: StoreFixture) {
    for _ in 0..fixture.rounds(40) {
        let job = fixture.planned(1).await;
        let chunk = fixture.lease(job, 1).await.remove(0);
        let store = fixture.store.clone();
        let ending = tokio::spawn(async move { store.complete(chunk.lease, &done(10), &[]).await });
        let paused = fixture.store.pause(job, None).await.is_ok();
        ending.await.unwrap().unwrap();
        let expected = if paused { JobStatus::Paused } else { JobStatus::Completed };
        assert_eq!(fixture.status(job).await, expected);
        fixture.check(job).await;
    }
}

both!(
    pauses_and_resumes_race_with_work,
    a_cancel_races_with_work,
    retries_race_with_failures,
    pages_race_with_a_cancel,
    heartbeats_and_completions_do_not_deadlock,
    segments_are_planned_concurrently,
    a_pause_races_with_the_last_completion,
);
