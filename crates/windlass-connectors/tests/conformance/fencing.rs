//! A ledger row belongs to the lease with the highest epoch, and counts lost leases without progress.

use crate::harness::{Db, NONCE, effect, key, on_every_backend};
use windlass_connectors::{ConnectorError, Effect, Fence, Ledger, Scope};
use windlass_core::{ChunkId, Cursor, KeySet};

on_every_backend!(
    an_older_epoch_is_refused,
    several_at_once,
    lost_leases_without_a_commit_count_as_stalls,
    a_commit_at_an_older_epoch_changes_nothing,
    an_applied_commit_is_not_repeated,
    fencing_again_reads_the_row_and_creates_none,
    an_equal_epoch_with_another_nonce_is_refused,
    a_commit_with_another_nonce_changes_nothing,
    the_history_has_stores_and_jobs,
    preparing_twice_and_at_once,
    pruning_deletes_one_job,
);

fn chunk(number: i64) -> ChunkId {
    ChunkId { job: uuid::Uuid::now_v7(), number }
}

/// One record, and a step that raises its version with each run.
async fn raised(db: &Db) -> Scope {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, version INT NOT NULL)").await;
    db.run("INSERT INTO t VALUES (1, 0)").await;
    db.scope("source.table = \"t\"\nstep.refresh = true\nstep.version = \"version\"").await
}

pub(crate) async fn an_older_epoch_is_refused(db: Db) {
    let chunk = chunk(3);
    let ledger = db.fence(chunk, 2, false).await.unwrap();
    assert_eq!(
        (ledger.epoch, ledger.commits, ledger.cursor, ledger.chunk),
        (2, 0, Cursor::Start, chunk)
    );
    assert_eq!(db.fence(chunk, 1, false).await, None);
    assert_eq!(db.fence(chunk, 2, false).await.unwrap().epoch, 2);
    assert_eq!(db.fence(chunk, 5, false).await.unwrap().epoch, 5);
    assert_eq!(db.fence(chunk, 2, false).await, None);
}

pub(crate) async fn several_at_once(db: Db) {
    let (one, two, three) = (chunk(1), chunk(2), chunk(3));
    db.fence(two, 9, false).await.unwrap();
    let fences = [three, two, one].map(|chunk| Fence { chunk, epoch: 4, nonce: 0, lost: false });
    let rows = db.data.fence(&fences).await.unwrap();
    let epochs: Vec<_> =
        rows.iter().map(|row| row.as_ref().map(|row| (row.chunk, row.epoch))).collect();
    assert_eq!(epochs, [Some((three, 4)), None, Some((one, 4))]);
    assert_eq!(db.data.fence(&[]).await.unwrap(), []);
}

pub(crate) async fn lost_leases_without_a_commit_count_as_stalls(db: Db) {
    let scope = raised(&db).await;
    let chunk = chunk(0);
    assert_eq!(db.fence(chunk, 1, false).await.unwrap().stalls, 0);
    assert_eq!(db.fence(chunk, 2, true).await.unwrap().stalls, 1);
    // Again at the same epoch: the same lease is not counted twice.
    assert_eq!(db.fence(chunk, 2, true).await.unwrap().stalls, 1);
    let ledger = db.fence(chunk, 3, true).await.unwrap();
    assert_eq!(ledger.stalls, 2);
    // A chunk that was handed back does not count as a stall.
    let ledger = db.fence(chunk, ledger.epoch + 1, false).await.unwrap();
    assert_eq!(ledger.stalls, 2);
    let done = db.data.commit(&scope, &ledger, effect(Effect::Nothing)).await.unwrap();
    assert_eq!(done.ledger.stalls, 2);
    // After fencing again at the same epoch, the progress still counts at the next one.
    assert_eq!(db.fence(chunk, 4, false).await.unwrap().commits, 1);
    assert_eq!(db.fence(chunk, 5, true).await.unwrap().stalls, 0);
    assert_eq!(db.fence(chunk, 6, true).await.unwrap().stalls, 1);
    // A first lease that was lost before fencing is a stall too.
    let other = ChunkId { number: 1, ..chunk };
    assert_eq!(db.fence(other, 2, true).await.unwrap().stalls, 1);
}

pub(crate) async fn a_commit_at_an_older_epoch_changes_nothing(db: Db) {
    let scope = raised(&db).await;
    let stale = db.fenced(1).await;
    let current = db.fence(stale.chunk, 2, true).await.unwrap();
    let work = || effect(Effect::Statement(KeySet::keys(vec![key(1)])));
    let error = db.data.commit(&scope, &stale, work()).await.unwrap_err();
    assert!(matches!(error, ConnectorError::LeaseLost), "{error:?}");
    assert_eq!(db.number("SELECT version FROM t").await, 0);
    let seen = db.fence(stale.chunk, 2, true).await.unwrap();
    assert_eq!(seen, current);
    db.data.commit(&scope, &current, work()).await.unwrap();
    assert_eq!(db.number("SELECT version FROM t").await, 1);
}

pub(crate) async fn an_applied_commit_is_not_repeated(db: Db) {
    let scope = raised(&db).await;
    let ledger = db.fenced(1).await;
    // The cursor does not move, as for deferred items: only `commits` changes.
    let work = || windlass_connectors::Commit {
        cursor: Cursor::Start,
        ..effect(Effect::Statement(KeySet::keys(vec![key(1)])))
    };
    let done = db.data.commit(&scope, &ledger, work()).await.unwrap();
    let error = db.data.commit(&scope, &ledger, work()).await.unwrap_err();
    assert!(matches!(error, ConnectorError::LeaseLost), "{error:?}");
    assert_eq!(db.number("SELECT version FROM t").await, 1);
    // After fencing again at the same epoch, the ledger shows the commit.
    let seen = db.fence(ledger.chunk, 1, false).await.unwrap();
    assert_eq!(seen, done.ledger);
    assert_eq!(seen.commits, ledger.commits + 1);
}

/// A row that fencing again created would accept a commit of the same lease that is still in flight.
pub(crate) async fn fencing_again_reads_the_row_and_creates_none(db: Db) {
    let scope = raised(&db).await;
    let first = db.fenced(1).await;
    assert_eq!(db.data.fence_again(&first).await.unwrap(), Some(first.clone()));
    let done = db.data.commit(&scope, &first, effect(Effect::Nothing)).await.unwrap();
    assert_eq!(db.data.fence_again(&first).await.unwrap(), Some(done.ledger.clone()));
    let other = Ledger { nonce: NONCE + 1, ..first.clone() };
    assert_eq!(db.data.fence_again(&other).await.unwrap(), None);
    // Another lease has the row.
    db.fence(first.chunk, 2, true).await.unwrap();
    assert_eq!(db.data.fence_again(&done.ledger).await.unwrap(), None);
    // The row was pruned.
    db.data.prune(first.chunk.job).await.unwrap();
    assert_eq!(db.data.fence_again(&first).await.unwrap(), None);
    let statement = effect(Effect::Statement(KeySet::keys(vec![key(1)])));
    let error = db.data.commit(&scope, &first, statement).await.unwrap_err();
    assert!(matches!(error, ConnectorError::LeaseLost), "{error:?}");
    assert_eq!(db.number("SELECT version FROM t").await, 0);
}

/// A restored store issues the same epoch a second time. The lease that fenced first has the row.
pub(crate) async fn an_equal_epoch_with_another_nonce_is_refused(db: Db) {
    let scope = raised(&db).await;
    let first = db.fenced(3).await;
    assert_eq!((first.epoch, first.nonce), (3, NONCE));
    let fence = |epoch, nonce| Fence { chunk: first.chunk, epoch, nonce, lost: true };
    for other in [0, 1, -1, NONCE + 1, i64::MAX] {
        assert_eq!(db.fence_with(fence(3, other)).await, None, "{other}");
    }
    // The row did not change, and its own lease stays valid.
    assert_eq!(db.fence(first.chunk, 3, false).await, Some(first.clone()));
    let done = db.data.commit(&scope, &first, effect(Effect::Nothing)).await.unwrap();
    assert_eq!((done.ledger.nonce, done.ledger.commits), (NONCE, 1));
    // A higher epoch takes over with any nonce, and keeps the progress.
    let next = db.fence_with(fence(4, 1)).await.unwrap();
    assert_eq!((next.epoch, next.nonce, next.commits), (4, 1, 1));
    assert_eq!(db.fence(first.chunk, 4, false).await, None);
}

/// Two workers, from before and after the restore, have the same epoch and see the same commits.
pub(crate) async fn a_commit_with_another_nonce_changes_nothing(db: Db) {
    let scope = raised(&db).await;
    let current = db.fenced(1).await;
    let stale = Ledger { nonce: 5, ..current.clone() };
    let statement = || effect(Effect::Statement(KeySet::keys(vec![key(1)])));
    for work in [statement(), effect(Effect::Nothing)] {
        let error = db.data.commit(&scope, &stale, work).await.unwrap_err();
        assert!(matches!(error, ConnectorError::LeaseLost), "{error:?}");
    }
    assert_eq!(db.number("SELECT version FROM t").await, 0);
    assert_eq!(db.fence(current.chunk, 1, false).await.unwrap(), current);
    db.data.commit(&scope, &current, statement()).await.unwrap();
    assert_eq!(db.number("SELECT version FROM t").await, 1);
}

/// The history detects a restored store, and tells from which epochs it can continue.
pub(crate) async fn the_history_has_stores_and_jobs(db: Db) {
    let (history, store) = (db.data.history(), uuid::Uuid::now_v7());
    assert_eq!(history.generation(store, "app").await.unwrap(), 0);
    for (raise, seen) in [(5, 5), (3, 5), (6, 6)] {
        history.raise_generation(store, "app", raise).await.unwrap();
        assert_eq!(history.generation(store, "app").await.unwrap(), seen);
    }
    assert_eq!(history.generation(store, "other").await.unwrap(), 0);
    assert_eq!(history.generation(uuid::Uuid::now_v7(), "app").await.unwrap(), 0);

    let (one, other) = (db.fenced(3).await, db.fenced(1).await);
    let load = ChunkId { number: -1, ..one.chunk };
    let load = db.fence(load, 2, false).await.unwrap();
    let later = db.fence(ChunkId { number: 12, ..one.chunk }, 7, false).await.unwrap();
    let rows = history.rows(one.chunk.job, -2, 10).await.unwrap();
    assert_eq!(rows, [load, one.clone(), later.clone()]);
    assert_eq!(history.rows(one.chunk.job, 0, 1).await.unwrap(), [later]);
    let mut expected = [(one.chunk.job, 3), (other.chunk.job, 1)];
    expected.sort();
    let mut jobs = history.jobs().await.unwrap();
    jobs.sort();
    assert_eq!(jobs, expected);
}

pub(crate) async fn preparing_twice_and_at_once(db: Db) {
    db.run(
        "DROP TABLE windlass_emitted; DROP TABLE windlass_deferred; DROP TABLE windlass_ledger; \
         DROP TABLE windlass_stores",
    )
    .await;
    let all = (0..8).map(|_| db.data.prepare());
    for outcome in futures::future::join_all(all).await {
        outcome.unwrap();
    }
    db.data.prepare().await.unwrap();
    assert!(db.data.ledger_ddl().contains("windlass_ledger"));
    db.fenced(1).await;
}

pub(crate) async fn pruning_deletes_one_job(db: Db) {
    let (gone, kept) = (db.fenced(1).await, db.fenced(7).await);
    assert_eq!(db.data.prune(gone.chunk.job).await.unwrap(), 1);
    assert_eq!(db.data.prune(gone.chunk.job).await.unwrap(), 0);
    assert_eq!(db.fence(kept.chunk, 3, false).await, None);
    assert!(db.fence(gone.chunk, 1, false).await.is_some());
}
