//! Leases run out, are extended, and fence whoever comes late.

use std::time::Duration;

use serde_json::json;
use windlass_core::{ChunkStatus, Cursor, PaginationState};
use windlass_store::{ClaimedChunk, Kept, Lease, LeaseRenewal, NewDeadLetter, Progress, Standing};
use windlass_testkit::eventually;

use crate::bench::{Bench, LIMIT, brief, by, cut, done, key, last_page, scan};

both!(
    a_lease_that_ran_out_is_claimed_again,
    an_old_epoch_ends_nothing,
    a_heartbeat_extends_a_lease_and_keeps_progress,
    heartbeats_never_extend_past_the_timeout,
    standings_come_in_order,
    a_rescue_takes_only_what_ran_out,
    a_segment_that_ran_out_is_loaded_again,
    a_released_chunk_is_released_once,
);

/// Waits until the chunk's lease has run out, and takes it away.
async fn expire(bench: &Bench) {
    let rescued = async || bench.store.rescue().await.unwrap() > 0;
    eventually("a lease runs out", LIMIT, rescued).await;
}

fn beat(lease: Lease) -> LeaseRenewal {
    LeaseRenewal { lease, progress: None }
}

fn letter() -> NewDeadLetter {
    NewDeadLetter {
        key: key(1).to_text(),
        record: json!({ "id": 1 }),
        error: "bad".to_owned(),
        context: json!(null),
        attempts: 1,
    }
}

/// A chunk that was lost, and the same chunk as its next holder has it.
async fn lost(bench: &Bench) -> (ClaimedChunk, ClaimedChunk) {
    let job = bench.loaded_as(brief("100ms", "60s"), 1).await;
    let old = bench.claim(job, 1).await.remove(0);
    expire(bench).await;
    let new = bench.claim(job, 1).await.remove(0);
    (old, new)
}

async fn a_lease_that_ran_out_is_claimed_again(bench: Bench) {
    let (old, new) = lost(&bench).await;
    let job = old.lease.chunk.job;
    assert!(new.lease.epoch > old.lease.epoch);
    assert!(new.lost && !old.lost);
    assert_eq!(new.attempts, 0, "a lost lease is no failure of the work");
    let row = bench.chunk(job, 0).await;
    assert_eq!((row.losses, row.attempts), (1, 0));
    // The flag speaks of the claim before this one only.
    let kept = bench.store.release(new.lease, &done(0), None, false, Duration::ZERO).await;
    assert_eq!(kept.unwrap(), Kept::Yes);
    assert!(!bench.claim(job, 1).await.remove(0).lost);
    bench.check(job).await;
}

async fn an_old_epoch_ends_nothing(bench: Bench) {
    let (old, new) = lost(&bench).await;
    let (store, progress) = (&bench.store, done(10));
    let before = bench.chunk(old.lease.chunk.job, 0).await;
    assert_eq!(store.complete(old.lease, &progress, &[]).await.unwrap(), Kept::Lost);
    assert_eq!(store.fail(old.lease, &progress, "late", true, &[]).await.unwrap(), Kept::Lost);
    let released = store.release(old.lease, &progress, Some("late"), true, Duration::ZERO);
    assert_eq!(released.await.unwrap(), Kept::Lost);
    assert_eq!(store.end_cancelled(old.lease, &progress, &[]).await.unwrap(), Kept::Lost);
    assert_eq!(store.add_letters(old.lease, &[letter()]).await.unwrap(), Kept::Lost);
    assert_eq!(store.confirm(&[old.lease]).await.unwrap(), [Standing::Lost]);
    let late = LeaseRenewal { lease: old.lease, progress: Some(progress.clone()) };
    assert_eq!(store.heartbeat(&[late], &[]).await.unwrap(), [Standing::Lost]);

    assert_eq!(bench.chunk(old.lease.chunk.job, 0).await, before);
    assert!(store.letters(&Default::default()).await.unwrap().is_empty());
    bench.check(old.lease.chunk.job).await;
    assert_eq!(store.complete(new.lease, &progress, &[]).await.unwrap(), Kept::Yes);
    assert_eq!(store.complete(old.lease, &progress, &[]).await.unwrap(), Kept::Lost);
    bench.check(old.lease.chunk.job).await;
}

async fn a_heartbeat_extends_a_lease_and_keeps_progress(bench: Bench) {
    let job = bench.loaded_as(brief("1s", "60s"), 1).await;
    let chunk = bench.claim(job, 1).await.remove(0);
    let progress = Progress { cursor: Cursor::Key(key(3)), counts: done(3).counts };
    let begun = tokio::time::Instant::now();
    // For three times as long as the lease, and somebody looks for lost ones all the while.
    while begun.elapsed() < Duration::from_secs(3) {
        let beat = LeaseRenewal { lease: chunk.lease, progress: Some(progress.clone()) };
        assert_eq!(bench.store.heartbeat(&[beat], &[]).await.unwrap(), [Standing::Held]);
        bench.store.rescue().await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let row = bench.chunk(job, 0).await;
    assert_eq!((row.status, row.losses), (ChunkStatus::Processing, 0));
    assert_eq!((&row.cursor, row.counts), (&progress.cursor, progress.counts));
    let none = bench.store.heartbeat(&[beat(chunk.lease)], &[]).await.unwrap();
    assert_eq!(none, [Standing::Held]);
    assert_eq!(bench.chunk(job, 0).await.cursor, progress.cursor, "kept when none is given");
}

async fn heartbeats_never_extend_past_the_timeout(bench: Bench) {
    let job = bench.loaded_as(brief("200ms", "500ms"), 1).await;
    let chunk = bench.claim(job, 1).await.remove(0);
    let begun = tokio::time::Instant::now();
    eventually("its time is up", LIMIT, async || {
        let standing = bench.store.heartbeat(&[beat(chunk.lease)], &[]).await.unwrap();
        bench.store.rescue().await.unwrap();
        standing == [Standing::Lost]
    })
    .await;
    assert!(begun.elapsed() >= Duration::from_millis(450), "{:?}", begun.elapsed());
    assert!(bench.claim(job, 1).await.remove(0).lost);
}

async fn standings_come_in_order(bench: Bench) {
    let (running, paused) = (bench.loaded(3).await, bench.loaded(1).await);
    let held = bench.claim(running, 3).await;
    let hand_back = bench.claim(paused, 1).await.remove(0);
    bench.store.pause(paused, None).await.unwrap();
    assert_eq!(bench.complete(&held[1]).await, Kept::Yes);
    let future = Lease { epoch: 9, ..held[0].lease };
    let leases =
        [held[0].lease, held[1].lease, hand_back.lease, future, held[2].lease, held[0].lease];
    use Standing::{HandBack, Held, Lost};
    let expected = [Held, Lost, HandBack, Lost, Held, Held];
    assert_eq!(bench.store.confirm(&leases).await.unwrap(), expected);
    let beats: Vec<_> = leases.iter().take(5).map(|lease| beat(*lease)).collect();
    assert_eq!(bench.store.heartbeat(&beats, &[]).await.unwrap(), expected[..5]);
    assert!(bench.store.heartbeat(&[], &[]).await.unwrap().is_empty());
    assert!(bench.store.confirm(&[]).await.unwrap().is_empty());
}

async fn a_rescue_takes_only_what_ran_out(bench: Bench) {
    let long = bench.loaded(1).await;
    let short = bench.loaded_as(brief("100ms", "60s"), 1).await;
    bench.claim(long, 1).await;
    bench.claim(short, 1).await;
    // Its chunk is waiting again, whatever became of the job meanwhile.
    bench.store.pause(short, None).await.unwrap();
    expire(&bench).await;
    assert_eq!(bench.chunk(long, 0).await.status, ChunkStatus::Processing);
    assert_eq!(bench.chunk(short, 0).await.status, ChunkStatus::Pending);
    assert_eq!(bench.store.rescue().await.unwrap(), 0);
    bench.check(short).await;
}

async fn a_segment_that_ran_out_is_loaded_again(bench: Bench) {
    let job = bench.submit().await;
    let old = bench.segment_of(job).await;
    bench.shorten_segment_leases().await;
    expire(&bench).await;
    let new = bench.store.claim_segments(&by(), 1).await.unwrap().remove(0);
    assert_eq!((new.lease.epoch, new.attempts), (old.lease.epoch + 1, 0));
    let late = last_page(old.lease, PaginationState::Plan, scan(10), cut(1));
    assert_eq!(bench.store.load(late).await.unwrap(), Kept::Lost);

    bench.shorten_segment_leases().await;
    bench.store.heartbeat(&[], &[new.lease]).await.unwrap();
    assert_eq!(bench.store.rescue().await.unwrap(), 0, "the heartbeat has extended it");
    let page = last_page(new.lease, PaginationState::Plan, scan(10), cut(1));
    assert_eq!(bench.store.load(page).await.unwrap(), Kept::Yes);
    bench.check(job).await;
}

async fn a_released_chunk_is_released_once(bench: Bench) {
    let job = bench.loaded(1).await;
    let (chunk, progress) = (bench.claim(job, 1).await.remove(0), done(0));
    for _ in 0..2 {
        let released = bench.store.release(chunk.lease, &progress, Some("x"), true, Duration::ZERO);
        assert_eq!(released.await.unwrap(), Kept::Yes);
    }
    assert_eq!(bench.claim(job, 1).await.remove(0).attempts, 1);
}
