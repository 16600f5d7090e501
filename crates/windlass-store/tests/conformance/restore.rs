//! Restored stores: identity, generations, and raised epochs.

use crate::fixture::{StoreFixture, by};

both!(a_generation_never_decreases, epochs_are_raised_and_never_lowered);

async fn a_generation_never_decreases(fixture: StoreFixture) {
    let (store, other) = (&fixture.store, fixture.other().await);
    assert_eq!(store.identity().await.unwrap(), other.identity().await.unwrap());
    assert_eq!(store.generation("app").await.unwrap(), 0);
    for (above, raised) in [(0, 1), (0, 2), (9, 10), (4, 11)] {
        assert_eq!(other.raise_generation("app", above).await.unwrap(), raised);
        assert_eq!(store.generation("app").await.unwrap(), raised);
    }
    assert_eq!(store.generation("elsewhere").await.unwrap(), 0);
}

/// As `--after-restore` does: the next lease has a higher epoch than the ledger.
async fn epochs_are_raised_and_never_lowered(fixture: StoreFixture) {
    let job = fixture.planned(3).await;
    let leased = fixture.lease(job, 1).await.remove(0);
    let raised = fixture.store.raise_epochs(job, &[(-1, 4), (0, 1), (1, 5), (7, 5)]).await.unwrap();
    assert_eq!(raised, 1);
    fixture.complete(&leased).await.unwrap();
    let epochs: Vec<_> = fixture.chunks(job).await.iter().map(|chunk| chunk.epoch).collect();
    assert_eq!(epochs, [1, 5, 0]);
    let leased = fixture.store.lease_chunks(&by(), 10).await.unwrap();
    let mut leased: Vec<_> = leased.iter().map(|c| (c.lease.chunk.number, c.lease.epoch)).collect();
    leased.sort();
    assert_eq!(leased, [(1, 6), (2, 1)]);
    fixture.check(job).await;
}
