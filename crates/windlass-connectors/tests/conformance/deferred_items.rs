//! Deferred items survive a round trip, with the time until they are due by the database's clock.

use crate::harness::{Db, effect, key, on_every_backend};
use serde_json::json;
use std::time::Duration;
use windlass_connectors::{
    Commit, DeferredItem, DeferredPage, DeferredState, Effect, LedgerRow, WriteItem, keep_emitted,
};
use windlass_core::{Change, ChunkId, Columns, Counts, Cursor, Key, Record, Value};

on_every_backend!(
    a_round_trip,
    paging_by_key,
    deferring_again_overwrites,
    ledger_rows_are_paged_with_their_counts,
);

/// An item that is deferred for another try.
pub(crate) fn deferred(number: i64) -> DeferredItem {
    DeferredItem {
        key: key(number),
        state: DeferredState::Retry,
        attempts: 2,
        conflicts: 1,
        error: "it's \"broken\" \\ ${x}".to_owned(),
        context: json!({"status": 503, "nul": "\u{0}"}),
        record: json!({"id": number, "name": "日本"}),
        wait: Duration::ZERO,
    }
}

async fn scope(db: &Db) -> windlass_connectors::Scope {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, version INT)").await;
    db.scope("source.table = \"t\"\nstep.handler = \"h\"\nstep.version = \"version\"").await
}

fn commit_of(defer: Vec<DeferredItem>, resolve: Vec<Key>) -> Commit {
    Commit { defer, resolve, cursor: Cursor::Start, ..effect(Effect::Nothing) }
}

pub(crate) async fn a_round_trip(db: Db) {
    let scope = scope(&db).await;
    let ledger = db.fenced(1).await;
    let odd = DeferredItem {
        key: Key(vec![Value::from("a'\"\u{0}"), Value::Bytes(vec![1]), Value::from("2025-01-01")]),
        state: DeferredState::Dead,
        error: "with a \u{0} byte".to_owned(),
        ..deferred(0)
    };
    let later = DeferredItem { wait: Duration::from_secs(3600), ..deferred(2) };
    let mut commit = commit_of(vec![deferred(1), later, odd.clone()], vec![]);
    commit.counts = Counts { read: 3, dead: 1, ..Counts::default() };
    let ledger = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger;
    assert_eq!(ledger.counts, Counts { read: 3, dead: 1, ..Counts::default() });

    let retries = db.deferred(ledger.chunk, DeferredState::Retry).await;
    assert_eq!(retries[0], deferred(1));
    assert!(
        retries[1].wait > Duration::from_secs(3000) && retries[1].wait <= Duration::from_secs(3600)
    );
    let dead = db.deferred(ledger.chunk, DeferredState::Dead).await;
    assert_eq!((&dead[0].key, &dead[0].context), (&odd.key, &odd.context));
    assert!(db.deferred(ledger.chunk, DeferredState::Suspect).await.is_empty());

    let ledger = db
        .data
        .commit(&scope, &ledger, commit_of(vec![], vec![key(1), odd.key]))
        .await
        .unwrap()
        .ledger;
    assert_eq!(ledger.commits, 2);
    assert_eq!(db.deferred(ledger.chunk, DeferredState::Retry).await.len(), 1);
    assert!(db.deferred(ledger.chunk, DeferredState::Dead).await.is_empty());
    assert_eq!(db.data.prune(ledger.chunk.job).await.unwrap(), 2);
}

pub(crate) async fn paging_by_key(db: Db) {
    let scope = scope(&db).await;
    let ledger = db.fenced(1).await;
    let items = (0..25).map(deferred).collect();
    let ledger = db.data.commit(&scope, &ledger, commit_of(items, vec![])).await.unwrap().ledger;
    let (mut after, mut seen) = (None::<String>, Vec::new());
    loop {
        let page = db
            .data
            .deferred(ledger.chunk, DeferredPage::new(DeferredState::Retry, after.as_deref(), 10))
            .await
            .unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.key.to_text());
        seen.extend(page.into_iter().map(|item| item.key.to_text()));
    }
    let mut expected: Vec<String> = (0..25).map(|n| key(n).to_text()).collect();
    expected.sort();
    assert_eq!(seen, expected);
}

pub(crate) async fn deferring_again_overwrites(db: Db) {
    let scope = scope(&db).await;
    let ledger = db.fenced(1).await;
    let ledger =
        db.data.commit(&scope, &ledger, commit_of(vec![deferred(1)], vec![])).await.unwrap().ledger;
    let dead = DeferredItem { state: DeferredState::Dead, attempts: 3, ..deferred(1) };
    // Resolved and deferred in one commit: it stays deferred.
    let commit = commit_of(vec![dead.clone()], vec![key(1)]);
    let ledger = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger;
    assert!(db.deferred(ledger.chunk, DeferredState::Retry).await.is_empty());
    assert_eq!(db.deferred(ledger.chunk, DeferredState::Dead).await, [dead]);
}

pub(crate) async fn ledger_rows_are_paged_with_their_counts(db: Db) {
    let scope = scope(&db).await;
    let job = db.fenced(1).await.chunk.job;
    let mut expected = Vec::new();
    for number in 0..5 {
        let chunk = ChunkId { job, number };
        let ledger = db.fence(chunk, 2, false).await.unwrap();
        // The chunk number determines the number of emitted rows, dead and deferred items.
        let row = |n: i64| [("n".to_owned(), Value::Int(n))].into();
        let change = Change { emit: (0..number).map(row).collect(), ..Change::default() };
        let item = WriteItem {
            key: key(100),
            guard: Value::Null,
            change: keep_emitted(change, chunk, &key(100)).into(),
            record: Record::new(Columns::from([]), Vec::new()),
            attempts: 0,
            conflicts: 0,
        };
        let dead = |n| DeferredItem { state: DeferredState::Dead, ..deferred(n) };
        let items = (0..number).map(dead).chain((10..10 + 2 * number).map(deferred)).collect();
        let counts = Counts { read: 1 + 3 * number, dead: number, ..Counts::default() };
        let effect = Effect::Write(vec![item]);
        let commit = Commit { effect, counts, ..commit_of(items, vec![]) };
        let ledger = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger;
        expected.push(LedgerRow {
            ledger,
            deferred: 2 * number,
            dead: number,
            emitted: number,
            emitted_rows: number,
        });
    }
    // Rows of other jobs are not included.
    db.fenced(1).await;
    let mut found: Vec<LedgerRow> = Vec::new();
    loop {
        let after = found.last().map_or(-1, |row| row.ledger.chunk.number);
        let page = db.data.ledger_rows(job, after, 2).await.unwrap();
        assert!(page.len() <= 2);
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    assert_eq!(found, expected);
}
