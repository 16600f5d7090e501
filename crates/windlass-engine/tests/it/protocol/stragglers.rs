//! A chunk whose rest takes long is shared with free slots.

use crate::protocol::common::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use windlass_core::{Cursor, Job, JobStatus, Keys};
use windlass_engine::{Engine, ItemContext};

/// How many slow items are worked at the same time.
#[derive(Clone, Default)]
struct AtOnce {
    now: Arc<AtomicI64>,
    most: Arc<AtomicI64>,
}

impl AtOnce {
    /// A handler that takes a while for items above this id.
    fn handler(&self, fast: i64) -> impl Fn(Visit, ItemContext) -> Answer + use<> {
        let at_once = self.clone();
        move |visit, _| {
            let at_once = at_once.clone();
            Box::pin(async move {
                if visit.id > fast {
                    let now = at_once.now.fetch_add(1, Ordering::SeqCst) + 1;
                    at_once.most.fetch_max(now, Ordering::SeqCst);
                    // The item is slow by itself: this is what the test is about.
                    tokio::time::sleep(Duration::from_millis(40)).await;
                    at_once.now.fetch_sub(1, Ordering::SeqCst);
                }
                visit.done()
            })
        }
    }
}

/// One item per commit, so that a chunk works one item at a time.
const SLOW: &str = "chunk.items = 60\nchunk.commit = 1\nchunk.lease = \"1s\"";

/// Works with two processes of two slots each.
async fn work_with_two(engine: &Engine, fixture: &EngineFixture, rows: i64) -> Job {
    let job = submit(engine).await;
    let workers = [Working::start(engine, "one", 2), Working::start(engine, "two", 2)];
    let done = ended(engine, job).await;
    for worker in workers {
        worker.stop().await;
    }
    proven(engine, &done).await;
    fixture.each_once(rows).await;
    fixture.logged_once(rows).await;
    done
}

pub(crate) async fn the_rest_of_a_slow_chunk_is_shared_with_free_slots(fixture: EngineFixture) {
    const ROWS: i64 = 600;
    fixture.visits(ROWS).await;
    let at_once = AtOnce::default();
    let handler = at_once.handler(540);
    let engine =
        fixture.builder(&job(HANDLER, SLOW)).handler("work", handler).connect().await.unwrap();
    let done = work_with_two(&engine, &fixture, ROWS).await;
    let most = at_once.most.load(Ordering::SeqCst);
    assert!(most >= 2, "slow items were worked one after the other");
    let chunks = chunks(&engine, done.id).await;
    assert!(chunks.len() > 10, "no chunk was split");
    let cut = |cursor: &Cursor| matches!(cursor, Cursor::Key(_));
    assert!(chunks.iter().any(|chunk| cut(&chunk.cursor)), "{chunks:?}");
    assert_eq!(chunks.iter().map(|chunk| chunk.items).sum::<i64>(), ROWS);
}

#[tokio::test]
async fn a_chunk_is_not_split_without_free_slots() {
    let fixture = EngineFixture::sqlite().await;
    fixture.visits(60).await;
    let handler = AtOnce::default().handler(0);
    let engine =
        fixture.builder(&job(HANDLER, SLOW)).handler("work", handler).connect().await.unwrap();
    let job = submit(&engine).await;
    let worker = Working::start(&engine, "one", 1);
    let done = ended(&engine, job).await;
    worker.stop().await;
    proven(&engine, &done).await;
    assert_eq!(done.chunks.total, 1);
}

/// The store is restored to the time before the split, while the ledger has the rest's chunks.
#[tokio::test]
async fn a_restored_store_does_not_repeat_the_rest_of_a_split_chunk() {
    let fixture = EngineFixture::sqlite().await;
    fixture.visits(60).await;
    let (held, slow) = (HeldHandler::new(), AtOnce::default().handler(0));
    let first = held.clone();
    let handler = move |visit: Visit, context: ItemContext| -> Answer {
        let (first, is_first) = (first.clone(), visit.id == 1);
        let work = slow(visit, context);
        Box::pin(async move {
            if is_first {
                first.wait().await;
            }
            work.await
        })
    };
    let jobs = job(HANDLER, SLOW);
    let builder_of = |store: &str| builder(&toml(&fixture.app.url(), store, &jobs));
    let engine = builder_of(&fixture.store.url()).handler("work", handler).connect().await.unwrap();
    let id = submit(&engine).await;
    let worker = Working::start(&engine, "one", 4);
    // The backup is from before the first commit, so from before any split.
    held.begun.notified().await;
    let backup = fixture.folder.path().join("backup.db");
    fixture.back_up_store(&backup).await;
    held.answer.add_permits(1);
    let done = ended(&engine, id).await;
    worker.stop().await;
    assert!(done.chunks.total > 1, "no chunk was split");

    let store = format!("sqlite:{}", backup.display());
    let handler = AtOnce::default().handler(60);
    let restored = builder_of(&store).handler("work", handler).connect().await.unwrap();
    let known = chunks(&restored, id).await;
    assert!(known.iter().all(|chunk| matches!(&chunk.key_set.keys, Keys::Range(_))));
    assert_eq!(known.len(), 1, "the backup is from before the split");
    let paused = work(&restored, id).await;
    assert_eq!(paused.status, JobStatus::Paused);
    assert!(paused.error.as_deref().unwrap().contains("does not know chunk 1"), "{paused:?}");
    fixture.each_once(60).await;
    let found = restored.continue_after_restore().await.unwrap();
    assert_eq!(found.replanned.len(), 1);
    assert_eq!(work(&restored, id).await.status, JobStatus::Cancelled);
    fixture.each_once(60).await;
}

on_each!(the_rest_of_a_slow_chunk_is_shared_with_free_slots);
