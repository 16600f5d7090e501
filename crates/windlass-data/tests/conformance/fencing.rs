//! The ledger's row belongs to the highest epoch, and says what was lost without progress.

use crate::harness::{Db, effect, key, on_every_backend};
use windlass_core::{ChunkId, Cursor, Extent};
use windlass_data::{DataError, Effect, Fence, Scope};

on_every_backend!(
    an_older_epoch_gets_nothing,
    several_at_once,
    stalls_are_claims_lost_without_a_commit,
    a_commit_at_an_older_epoch_changes_nothing,
    a_commit_that_happened_is_not_repeated,
    preparing_twice_and_at_once,
    pruning_forgets_one_job,
);

fn chunk(number: i64) -> ChunkId {
    ChunkId { job: uuid::Uuid::now_v7(), number }
}

/// One record, and a step that raises its version each time it runs.
async fn raised(db: &Db) -> Scope {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, version INT NOT NULL)").await;
    db.run("INSERT INTO t VALUES (1, 0)").await;
    db.scope("source.table = \"t\"\nstep.refresh = true\nstep.version = \"version\"").await
}

pub(crate) async fn an_older_epoch_gets_nothing(db: Db) {
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
    let fences = [three, two, one].map(|chunk| Fence { chunk, epoch: 4, lost: false });
    let rows = db.data.fence(&fences).await.unwrap();
    let epochs: Vec<_> =
        rows.iter().map(|row| row.as_ref().map(|row| (row.chunk, row.epoch))).collect();
    assert_eq!(epochs, [Some((three, 4)), None, Some((one, 4))]);
    assert_eq!(db.data.fence(&[]).await.unwrap(), []);
}

pub(crate) async fn stalls_are_claims_lost_without_a_commit(db: Db) {
    let scope = raised(&db).await;
    let chunk = chunk(0);
    assert_eq!(db.fence(chunk, 1, false).await.unwrap().stalls, 0);
    assert_eq!(db.fence(chunk, 2, true).await.unwrap().stalls, 1);
    // Again at the same epoch: the same claim is not counted twice.
    assert_eq!(db.fence(chunk, 2, true).await.unwrap().stalls, 1);
    let ledger = db.fence(chunk, 3, true).await.unwrap();
    assert_eq!(ledger.stalls, 2);
    // A claim handed back is no stall.
    let ledger = db.fence(chunk, ledger.epoch + 1, false).await.unwrap();
    assert_eq!(ledger.stalls, 2);
    let done = db.data.commit(&scope, &ledger, effect(Effect::Nothing)).await.unwrap();
    assert_eq!(done.ledger.stalls, 2);
    // Looked at again at the same epoch, the progress still counts at the next one.
    assert_eq!(db.fence(chunk, 4, false).await.unwrap().commits, 1);
    assert_eq!(db.fence(chunk, 5, true).await.unwrap().stalls, 0);
    assert_eq!(db.fence(chunk, 6, true).await.unwrap().stalls, 1);
    // A first claim that died before it fenced is a stall as well.
    let other = ChunkId { number: 1, ..chunk };
    assert_eq!(db.fence(other, 2, true).await.unwrap().stalls, 1);
}

pub(crate) async fn a_commit_at_an_older_epoch_changes_nothing(db: Db) {
    let scope = raised(&db).await;
    let stale = db.fenced(1).await;
    let current = db.fence(stale.chunk, 2, true).await.unwrap();
    let work = || effect(Effect::Statement(Extent::keys(vec![key(1)])));
    let error = db.data.commit(&scope, &stale, work()).await.unwrap_err();
    assert!(matches!(error, DataError::LeaseLost), "{error:?}");
    assert_eq!(db.number("SELECT version FROM t").await, 0);
    let seen = db.fence(stale.chunk, 2, true).await.unwrap();
    assert_eq!(seen, current);
    db.data.commit(&scope, &current, work()).await.unwrap();
    assert_eq!(db.number("SELECT version FROM t").await, 1);
}

pub(crate) async fn a_commit_that_happened_is_not_repeated(db: Db) {
    let scope = raised(&db).await;
    let ledger = db.fenced(1).await;
    // The cursor stays where it was, as it does for held items: `commits` alone tells.
    let work = || windlass_data::Commit {
        cursor: Cursor::Start,
        ..effect(Effect::Statement(Extent::keys(vec![key(1)])))
    };
    let done = db.data.commit(&scope, &ledger, work()).await.unwrap();
    let error = db.data.commit(&scope, &ledger, work()).await.unwrap_err();
    assert!(matches!(error, DataError::LeaseLost), "{error:?}");
    assert_eq!(db.number("SELECT version FROM t").await, 1);
    // Fenced again at the same epoch, the ledger shows that it was done.
    let seen = db.fence(ledger.chunk, 1, false).await.unwrap();
    assert_eq!(seen, done.ledger);
    assert_eq!(seen.commits, ledger.commits + 1);
}

pub(crate) async fn preparing_twice_and_at_once(db: Db) {
    db.run("DROP TABLE windlass_emitted; DROP TABLE windlass_held; DROP TABLE windlass_ledger")
        .await;
    let all = (0..8).map(|_| db.data.prepare());
    for outcome in futures::future::join_all(all).await {
        outcome.unwrap();
    }
    db.data.prepare().await.unwrap();
    assert!(db.data.ledger_ddl().contains("windlass_ledger"));
    db.fenced(1).await;
}

pub(crate) async fn pruning_forgets_one_job(db: Db) {
    let (gone, kept) = (db.fenced(1).await, db.fenced(7).await);
    assert_eq!(db.data.prune(gone.chunk.job).await.unwrap(), 1);
    assert_eq!(db.data.prune(gone.chunk.job).await.unwrap(), 0);
    assert_eq!(db.fence(kept.chunk, 3, false).await, None);
    assert!(db.fence(gone.chunk, 1, false).await.is_some());
}
