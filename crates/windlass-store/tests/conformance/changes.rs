//! Whoever waits is woken by what concerns it, also from another process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_store::{Kept, Store};

use crate::bench::{Bench, LIMIT, new_job};

both!(
    a_submit_wakes_whoever_waits,
    a_change_between_two_waits_is_not_missed,
    the_end_of_a_job_wakes,
    without_a_change_the_wait_is_as_long_as_asked,
);

const SHORT: Duration = Duration::from_millis(300);

/// Waits until all that happened so far has been seen.
async fn quiet(store: &Arc<dyn Store>) {
    let started = Instant::now();
    loop {
        let begun = Instant::now();
        store.changed(SHORT).await;
        if begun.elapsed() >= SHORT {
            return;
        }
        assert!(started.elapsed() < LIMIT, "something is always new");
    }
}

/// Whether the store is told of a change well before it would look by itself.
async fn told(store: &Arc<dyn Store>) -> bool {
    let begun = Instant::now();
    store.changed(LIMIT).await;
    begun.elapsed() < LIMIT / 2
}

async fn a_submit_wakes_whoever_waits(bench: Bench) {
    let waiting = bench.other().await;
    quiet(&waiting).await;
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let store = waiting.clone();
            tokio::spawn(async move {
                quiet(&store).await;
                told(&store).await
            })
        })
        .collect();
    tokio::time::sleep(SHORT * 3).await;
    bench.submit().await;
    for waiter in waiters {
        assert!(waiter.await.unwrap());
    }
}

async fn a_change_between_two_waits_is_not_missed(bench: Bench) {
    let waiting = bench.other().await;
    quiet(&waiting).await;
    bench.store.submit(new_job()).await.unwrap();
    // The notification has come and gone when the next wait begins.
    tokio::time::sleep(SHORT).await;
    assert!(told(&waiting).await);
    quiet(&waiting).await;
}

async fn the_end_of_a_job_wakes(bench: Bench) {
    let job = bench.loaded(1).await;
    let chunk = bench.claim(job, 1).await.remove(0);
    let waiting = bench.other().await;
    quiet(&waiting).await;
    assert_eq!(bench.complete(&chunk).await, Kept::Yes);
    assert!(told(&waiting).await);
}

async fn without_a_change_the_wait_is_as_long_as_asked(bench: Bench) {
    let job = bench.loaded(3).await;
    let chunk = bench.claim(job, 1).await.remove(0);
    let waiting = bench.other().await;
    quiet(&waiting).await;
    // Neither a chunk's end nor a look is anything to wake for while the job goes on.
    assert_eq!(bench.complete(&chunk).await, Kept::Yes);
    bench.check(job).await;
    let begun = Instant::now();
    waiting.changed(SHORT).await;
    assert!(begun.elapsed() >= SHORT, "{:?}", begun.elapsed());
}
