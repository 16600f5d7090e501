//! What a restored store is told by: its identity, its generations, and epochs that are raised.

use windlass_store::Kept;

use crate::bench::{Bench, by};

both!(a_generation_only_rises, epochs_are_raised_and_never_lowered);

async fn a_generation_only_rises(bench: Bench) {
    let (store, other) = (&bench.store, bench.other().await);
    assert_eq!(store.identity().await.unwrap(), other.identity().await.unwrap());
    assert_eq!(store.generation("app").await.unwrap(), 0);
    for (above, raised) in [(0, 1), (0, 2), (9, 10), (4, 11)] {
        assert_eq!(other.raise_generation("app", above).await.unwrap(), raised);
        assert_eq!(store.generation("app").await.unwrap(), raised);
    }
    assert_eq!(store.generation("elsewhere").await.unwrap(), 0);
}

/// As `--after-restore` does: the next claim is above what the ledger has.
async fn epochs_are_raised_and_never_lowered(bench: Bench) {
    let job = bench.loaded(3).await;
    let held = bench.claim(job, 1).await.remove(0);
    let raised = bench.store.raise_epochs(job, &[(-1, 4), (0, 1), (1, 5), (7, 5)]).await.unwrap();
    assert_eq!(raised, 1);
    assert_eq!(bench.complete(&held).await, Kept::Yes, "its epoch is the ledger's");
    let epochs: Vec<_> = bench.chunks(job).await.iter().map(|chunk| chunk.epoch).collect();
    assert_eq!(epochs, [1, 5, 0]);
    let claimed = bench.store.claim_chunks(&by(), 10).await.unwrap();
    let mut claimed: Vec<_> =
        claimed.iter().map(|c| (c.lease.chunk.number, c.lease.epoch)).collect();
    claimed.sort();
    assert_eq!(claimed, [(1, 6), (2, 1)]);
    bench.check(job).await;
}
