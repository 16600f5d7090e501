//! Leases expire, are renewed, and refuse late calls.

use std::time::Duration;

use serde_json::json;
use windlass_core::{ChunkStatus, Cursor, PaginationState};
use windlass_store::{
    Capabilities, HandBack, Lease, LeaseRenewal, LeaseStatus, LeasedChunk, NewDeadLetter, Progress,
};
use windlass_testkit::eventually;

use crate::fixture::{
    LIMIT, StoreFixture, assert_lost, by, cut, done, key, last_page, scan, with_short_lease,
};

/// Waits until the lease of the chunk has expired, and rescues the chunk.
async fn expire(fixture: &StoreFixture) {
    let rescued = async || fixture.store.rescue().await.unwrap() > 0;
    eventually("a lease runs out", LIMIT, rescued).await;
}

fn renewal(lease: Lease) -> LeaseRenewal {
    LeaseRenewal { lease, progress: None, in_slot: true }
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

/// A chunk whose lease was lost, and its next lease.
async fn lost(fixture: &StoreFixture) -> (LeasedChunk, LeasedChunk) {
    let job = fixture.planned_as(with_short_lease("100ms", "60s"), 1).await;
    let old = fixture.lease(job, 1).await.remove(0);
    expire(fixture).await;
    let new = fixture.lease(job, 1).await.remove(0);
    (old, new)
}

async fn an_expired_lease_is_leased_again(fixture: StoreFixture) {
    let (old, new) = lost(&fixture).await;
    let job = old.lease.chunk.job;
    assert!(new.lease.epoch > old.lease.epoch);
    assert!(new.lost && !old.lost);
    assert_eq!(new.attempts, 0, "a lost lease is not a failed attempt");
    let row = fixture.chunk(job, 0).await;
    assert_eq!((row.losses, row.attempts), (1, 0));
    // The flag is about the previous lease only.
    fixture.store.release(new.lease, &done(0), HandBack::default()).await.unwrap();
    assert!(!fixture.lease(job, 1).await.remove(0).lost);
    fixture.check(job).await;
}

async fn an_old_epoch_changes_nothing(fixture: StoreFixture) {
    let (old, new) = lost(&fixture).await;
    let (store, progress) = (&fixture.store, done(10));
    let before = fixture.chunk(old.lease.chunk.job, 0).await;
    assert_lost(store.complete(old.lease, &progress, &[]).await);
    assert_lost(store.fail(old.lease, &progress, "late", true, &[]).await);
    let released =
        store.release(old.lease, &progress, HandBack::new(Some("late"), true, Duration::ZERO));
    assert_lost(released.await);
    assert_lost(store.end_cancelled(old.lease, &progress, &[]).await);
    assert_lost(store.add_dead_letters(old.lease, &[letter()]).await);
    assert_eq!(store.confirm(&[old.lease]).await.unwrap(), [LeaseStatus::Lost]);
    let late = LeaseRenewal { lease: old.lease, progress: Some(progress.clone()), in_slot: true };
    assert_eq!(store.heartbeat(&[late], &[]).await.unwrap(), [LeaseStatus::Lost]);

    assert_eq!(fixture.chunk(old.lease.chunk.job, 0).await, before);
    assert!(store.dead_letters(&Default::default()).await.unwrap().is_empty());
    fixture.check(old.lease.chunk.job).await;
    store.complete(new.lease, &progress, &[]).await.unwrap();
    assert_lost(store.complete(old.lease, &progress, &[]).await);
    fixture.check(old.lease.chunk.job).await;
}

async fn a_heartbeat_renews_a_lease_and_stores_progress(fixture: StoreFixture) {
    let job = fixture.planned_as(with_short_lease("10m", "20m"), 1).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    let progress = Progress { cursor: Cursor::Key(key(3)), counts: done(3).counts, marked: None };
    for _ in 0..3 {
        // The lease is over, and the chunk is not rescued yet.
        fixture.run(&format!("UPDATE windlass_chunks SET lease_until = {}", fixture.past())).await;
        let beat =
            LeaseRenewal { lease: chunk.lease, progress: Some(progress.clone()), in_slot: true };
        assert_eq!(fixture.store.heartbeat(&[beat], &[]).await.unwrap(), [LeaseStatus::Held]);
        assert_eq!(fixture.store.rescue().await.unwrap(), 0, "the heartbeat has renewed it");
    }
    let row = fixture.chunk(job, 0).await;
    assert_eq!((row.status, row.losses), (ChunkStatus::Processing, 0));
    assert_eq!((&row.cursor, row.counts), (&progress.cursor, progress.counts));
    let none = fixture.store.heartbeat(&[renewal(chunk.lease)], &[]).await.unwrap();
    assert_eq!(none, [LeaseStatus::Held]);
    assert_eq!(
        fixture.chunk(job, 0).await.cursor,
        progress.cursor,
        "kept when no progress is given"
    );
}

async fn marked_rows_are_kept_over_the_leases_of_a_chunk(fixture: StoreFixture) {
    let job = fixture.planned_as(with_short_lease("60s", "60s"), 3).await;
    let store = &fixture.store;
    let shown = async |chunk: usize| {
        let row = fixture.chunk(job, chunk).await;
        (row.rows_marked, row.rows_updated, row.message)
    };
    let leased = fixture.lease(job, 3).await;
    assert_eq!(shown(0).await, (None, None, None), "the step may have no mark");
    let marked = |progress: Progress, rows| Progress { marked: Some(rows), ..progress };

    // A heartbeat, a release and the end each store the number. Without one it stays.
    let progress = Some(marked(Progress::default(), 5));
    let beat = LeaseRenewal { lease: leased[0].lease, progress, in_slot: true };
    store.heartbeat(&[beat], &[]).await.unwrap();
    assert_eq!(shown(0).await, (Some(5), Some(0), None));
    let progress = marked(done(2), 6);
    store.release(leased[0].lease, &progress, HandBack::default()).await.unwrap();
    assert_eq!(shown(0).await, (Some(6), Some(2), None));
    let again = fixture.lease(job, 1).await.remove(0);
    store.complete(again.lease, &done(6), &[]).await.unwrap();
    assert_eq!(shown(0).await, (Some(6), Some(6), None));

    // Nothing was left to do.
    store.complete(leased[1].lease, &marked(done(0), 0), &[]).await.unwrap();
    let repeated = (Some(0), Some(0), Some("already processed".to_owned()));
    assert_eq!(shown(1).await, repeated);
    store.complete_together(&[(leased[2].lease, marked(done(0), 0))]).await.unwrap();
    assert_eq!(shown(2).await, repeated);
    fixture.check(job).await;
}

async fn heartbeats_never_renew_past_the_timeout(fixture: StoreFixture) {
    let job = fixture.planned_as(with_short_lease("10m", "20m"), 1).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    let beat = async || fixture.store.heartbeat(&[renewal(chunk.lease)], &[]).await.unwrap();
    assert_eq!(beat().await, [LeaseStatus::Held]);
    assert_eq!(fixture.store.rescue().await.unwrap(), 0);
    fixture.run(&format!("UPDATE windlass_chunks SET deadline = {}", fixture.past())).await;
    beat().await;
    assert_eq!(fixture.store.rescue().await.unwrap(), 1, "not renewed past the deadline");
    assert_eq!(beat().await, [LeaseStatus::Lost]);
    assert!(fixture.lease(job, 1).await.remove(0).lost);
}

async fn lease_statuses_are_in_order(fixture: StoreFixture) {
    let (running, paused) = (fixture.planned(3).await, fixture.planned(1).await);
    let held = fixture.lease(running, 3).await;
    let hand_back = fixture.lease(paused, 1).await.remove(0);
    fixture.store.pause(paused, None).await.unwrap();
    fixture.complete(&held[1]).await.unwrap();
    let future = Lease { epoch: 9, ..held[0].lease };
    let leases =
        [held[0].lease, held[1].lease, hand_back.lease, future, held[2].lease, held[0].lease];
    use LeaseStatus::{HandBack, Held, Lost};
    let expected = [Held, Lost, HandBack, Lost, Held, Held];
    assert_eq!(fixture.store.confirm(&leases).await.unwrap(), expected);
    let renewals: Vec<_> = leases.iter().take(5).map(|lease| renewal(*lease)).collect();
    assert_eq!(fixture.store.heartbeat(&renewals, &[]).await.unwrap(), expected[..5]);
    assert!(fixture.store.heartbeat(&[], &[]).await.unwrap().is_empty());
    assert!(fixture.store.confirm(&[]).await.unwrap().is_empty());
}

async fn a_rescue_returns_only_expired_leases(fixture: StoreFixture) {
    let long = fixture.planned_as(with_short_lease("10m", "20m"), 1).await;
    let short = fixture.planned_as(with_short_lease("100ms", "60s"), 1).await;
    let held = fixture.lease(long, 1).await.remove(0);
    fixture.store.heartbeat(&[renewal(held.lease)], &[]).await.unwrap();
    fixture.lease(short, 1).await;
    // Its chunk is pending again, whatever the status of the job.
    fixture.store.pause(short, None).await.unwrap();
    expire(&fixture).await;
    assert_eq!(fixture.chunk(long, 0).await.status, ChunkStatus::Processing);
    assert_eq!(fixture.chunk(short, 0).await.status, ChunkStatus::Pending);
    assert_eq!(fixture.store.rescue().await.unwrap(), 0);
    fixture.check(short).await;
}

async fn a_segment_with_an_expired_lease_is_planned_again(fixture: StoreFixture) {
    let job = fixture.submit().await;
    let old = fixture.segment_of(job).await;
    fixture.shorten_segment_leases().await;
    expire(&fixture).await;
    let new = fixture.store.lease_segments(&by(), 1).await.unwrap().remove(0);
    assert_eq!((new.lease.epoch, new.attempts), (old.lease.epoch + 1, 0));
    let late = last_page(old.lease, PaginationState::Plan, scan(10), cut(1));
    assert_lost(fixture.store.commit_page(late).await);

    fixture.shorten_segment_leases().await;
    fixture.store.heartbeat(&[], &[new.lease]).await.unwrap();
    assert_eq!(fixture.store.rescue().await.unwrap(), 0, "the heartbeat has renewed it");
    let page = last_page(new.lease, PaginationState::Plan, scan(10), cut(1));
    fixture.store.commit_page(page).await.unwrap();
    fixture.check(job).await;
}

async fn a_released_chunk_is_released_once(fixture: StoreFixture) {
    let job = fixture.planned(1).await;
    let (chunk, progress) = (fixture.lease(job, 1).await.remove(0), done(0));
    for _ in 0..2 {
        let released = fixture.store.release(
            chunk.lease,
            &progress,
            HandBack::new(Some("x"), true, Duration::ZERO),
        );
        released.await.unwrap();
    }
    assert_eq!(fixture.lease(job, 1).await.remove(0).attempts, 1);
}

/// The time until the last lease expires, in milliseconds.
async fn lease_length(fixture: &StoreFixture) -> i64 {
    let sql = match fixture.is_sqlite() {
        true => "SELECT max(lease_until) - CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        false => "SELECT (extract(epoch FROM max(lease_until) - clock_timestamp()) * 1000)::bigint",
    };
    fixture.number(&format!("{sql} FROM windlass_chunks")).await
}

async fn a_chunk_that_waits_for_a_slot_has_a_short_lease(fixture: StoreFixture) {
    let job = fixture.planned_as(with_short_lease("10m", "20m"), 1).await;
    let chunk = fixture.lease(job, 1).await.remove(0);
    assert!(lease_length(&fixture).await <= 10_000, "just leased");
    for (in_slot, lengths) in [(true, 10_001..=600_000), (false, i64::MIN..=10_000)] {
        let renewal = LeaseRenewal { in_slot, ..renewal(chunk.lease) };
        fixture.store.heartbeat(&[renewal], &[]).await.unwrap();
        let length = lease_length(&fixture).await;
        assert!(lengths.contains(&length), "{length} with in_slot = {in_slot}");
    }
}

async fn the_leases_of_a_worker_that_has_ended_expire_at_once(fixture: StoreFixture) {
    let job = fixture.planned_as(with_short_lease("10m", "20m"), 4).await;
    let dead = Capabilities { worker: "dead".to_owned(), ..by() };
    let store = &fixture.store;
    let lost = store.lease_chunks(&dead, 2).await.unwrap();
    let kept = fixture.lease(job, 2).await;
    let renewals: Vec<_> = kept.iter().map(|chunk| renewal(chunk.lease)).collect();
    store.heartbeat(&renewals, &[]).await.unwrap();
    let orphaned = store.orphaned_leases(&by()).await.unwrap();
    assert_eq!(orphaned.len(), 1, "{orphaned:?}");
    assert_eq!((orphaned[0].worker.as_str(), orphaned[0].chunks), ("dead", 2));
    let waits_for = fixture.job(job).await.waits_for.unwrap();
    assert!(waits_for.starts_with("leases of worker dead"), "{waits_for}");
    assert_eq!(store.expire_leases("dead").await.unwrap(), 2);
    assert_eq!(store.rescue().await.unwrap(), 2);
    let leases: Vec<_> = lost.iter().chain(&kept).map(|chunk| chunk.lease).collect();
    let statuses = store.confirm(&leases).await.unwrap();
    let (gone, valid) = (LeaseStatus::Lost, LeaseStatus::Held);
    assert_eq!(statuses, [gone, gone, valid, valid]);
    let again = fixture.lease(job, 4).await;
    assert!(again.len() == 2 && again.iter().all(|chunk| chunk.lost && chunk.lease.epoch == 2));

    let process = Some("host/1/2".to_owned());
    store.heartbeat_worker(&Capabilities { process, ..dead }, 1).await.unwrap();
    assert!(store.silent_workers("host/").await.unwrap().is_empty(), "it has just been seen");
    fixture.run(&format!("UPDATE windlass_workers SET seen_at = {}", fixture.past())).await;
    let silent = store.silent_workers("host/").await.unwrap();
    assert_eq!((silent[0].name.as_str(), silent[0].process.as_str()), ("dead", "host/1/2"));
    assert!(store.silent_workers("other/").await.unwrap().is_empty());
}

both!(
    an_expired_lease_is_leased_again,
    an_old_epoch_changes_nothing,
    a_heartbeat_renews_a_lease_and_stores_progress,
    marked_rows_are_kept_over_the_leases_of_a_chunk,
    heartbeats_never_renew_past_the_timeout,
    lease_statuses_are_in_order,
    a_rescue_returns_only_expired_leases,
    a_segment_with_an_expired_lease_is_planned_again,
    a_released_chunk_is_released_once,
    a_chunk_that_waits_for_a_slot_has_a_short_lease,
    the_leases_of_a_worker_that_has_ended_expire_at_once,
);
