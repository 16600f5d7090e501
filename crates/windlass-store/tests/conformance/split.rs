//! Chunks that end at their cursor, and whose remaining records become new chunks.

use windlass_core::{ChunkStatus, Counts, Cursor, JobStatus, KeySet};
use windlass_store::{HandBack, NewChunk, Progress, Split};

use crate::fixture::{StoreFixture, assert_lost, done, key};

/// The first of the chunks that `planned` makes, split at key 4 and then at key 7.
fn split() -> (Progress, Split) {
    let new = |after: i64, upto: i64| NewChunk {
        key_set: KeySet::range(Some(key(after)), Some(key(upto))),
        items: upto - after,
    };
    let counts = Counts { read: 4, processed: 4, ..Counts::default() };
    let progress = Progress { cursor: Cursor::Key(key(4)), counts, marked: None };
    (progress, Split { kept: new(0, 4), rest: vec![new(4, 7), new(7, 10)] })
}

async fn the_rest_of_a_chunk_becomes_new_chunks(fixture: StoreFixture) {
    let job = fixture.planned(2).await;
    let leased = fixture.lease(job, 2).await;
    let (progress, split) = split();
    for _ in 0..2 {
        assert!(fixture.store.split(leased[0].lease, &progress, &split).await.unwrap());
        fixture.check(job).await;
    }
    let chunks = fixture.chunks(job).await;
    assert_eq!(chunks.len(), 4, "the repeated call changed nothing");
    assert_eq!(chunks[0].status, ChunkStatus::Completed);
    assert_eq!((&chunks[0].key_set, chunks[0].items), (&split.kept.key_set, 4));
    assert_eq!((&chunks[0].cursor, chunks[0].counts), (&progress.cursor, progress.counts));
    for (chunk, rest) in chunks[2..].iter().zip(&split.rest) {
        assert_eq!(chunk.status, ChunkStatus::Pending);
        assert_eq!((&chunk.key_set, chunk.items), (&rest.key_set, 3));
        assert_eq!(chunk.segment, chunks[0].segment);
    }
    fixture.complete(&leased[1]).await.unwrap();
    assert_eq!(fixture.status(job).await, JobStatus::Processing, "the rest is open");
    for chunk in fixture.lease(job, 2).await {
        assert_eq!(chunk.lease.epoch, 1);
        fixture.store.complete(chunk.lease, &done(3), &[]).await.unwrap();
        fixture.check(job).await;
    }
    let ended = fixture.job(job).await;
    assert_eq!((ended.status, ended.items.total), (JobStatus::Completed, 20));
}

async fn a_lost_lease_splits_nothing(fixture: StoreFixture) {
    let job = fixture.planned(1).await;
    let (progress, split) = split();
    let lost = fixture.lease(job, 1).await.remove(0);
    fixture.store.release(lost.lease, &done(0), HandBack::default()).await.unwrap();
    // Another lease works on the chunk.
    let held = fixture.lease(job, 1).await.remove(0);
    assert_lost(fixture.store.split(lost.lease, &progress, &split).await);
    fixture.check(job).await;
    assert_eq!(fixture.chunks(job).await.len(), 1);
    assert_eq!(fixture.chunk(job, 0).await.status, ChunkStatus::Processing);
    fixture.complete(&held).await.unwrap();
    let mut late = held.lease;
    late.nonce += 1;
    assert_lost(fixture.store.split(late, &progress, &split).await);
    late.epoch += 1;
    assert_lost(fixture.store.split(late, &progress, &split).await);
    fixture.check(job).await;
    assert_eq!(fixture.chunks(job).await.len(), 1);
}

async fn only_a_job_in_progress_gets_new_chunks(fixture: StoreFixture) {
    let (progress, split) = split();
    for is_cancelled in [false, true] {
        let job = fixture.planned(2).await;
        let leased = fixture.lease(job, 1).await;
        match is_cancelled {
            true => drop(fixture.store.cancel(job).await.unwrap()),
            false => drop(fixture.store.pause(job, None).await.unwrap()),
        }
        assert!(!fixture.store.split(leased[0].lease, &progress, &split).await.unwrap());
        fixture.check(job).await;
        let chunks = fixture.chunks(job).await;
        assert_eq!((chunks.len(), chunks[0].status), (2, ChunkStatus::Processing));
    }
}

both!(
    the_rest_of_a_chunk_becomes_new_chunks,
    a_lost_lease_splits_nothing,
    only_a_job_in_progress_gets_new_chunks,
);
