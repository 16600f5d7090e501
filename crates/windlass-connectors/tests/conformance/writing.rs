//! Items are written back under the guard: a concurrent change is never overwritten.

use crate::harness::{Db, effect, everything, key, on_every_backend};
use windlass_connectors::{
    DeferredPage, DeferredState, Effect, Item, ReadLimits, Scope, WriteItem,
};
use windlass_core::{Change, Counts, Value};
use windlass_drivers::ErrorClass;

on_every_backend!(
    updates_are_written_and_versions_raised,
    a_concurrent_change_survives_and_the_item_is_deferred,
    conflicts_are_handled_by_on_conflict,
    inserts_happen_once_and_not_for_conflicts,
    items_without_an_effect_are_processed,
    a_bad_value_rolls_everything_back,
    columns_that_cannot_be_set,
    a_deleted_record_is_a_conflict,
    conflicts_are_found_in_every_batch_of_dense_and_of_sparse_keys,
    a_value_that_is_too_long_is_refused,
);

/// An item to write back.
pub(crate) fn item(item: Item, change: Change) -> WriteItem {
    let Item { key, guard, record } = item;
    WriteItem { key, guard, change: change.into(), record, attempts: 0, conflicts: 0 }
}

/// An item that sets every allowed column to its current value.
pub(crate) fn rewrite(read: Item, scope: &Scope) -> WriteItem {
    let fixed = scope.job_type.fixed_columns();
    let version = scope.job_type.step.version.as_deref();
    let mut change = Change::default();
    for (column, value) in read.record.iter() {
        if !fixed.contains(&column) && Some(column) != version {
            change = change.set(column, value.clone());
        }
    }
    item(read, change)
}

async fn table(db: &Db, more: &str) -> (Scope, Vec<Item>) {
    db.run(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, v INT, name VARCHAR(10), kind INT, version INT NOT NULL)",
    )
    .await;
    db.run("CREATE INDEX kinds ON t (kind, id)").await;
    db.run("INSERT INTO t VALUES (1, 1, 'a', 0, 1), (2, 2, 'b', 0, 5), (3, 3, 'c', 0, 9)").await;
    let toml = format!(
        "source.table = \"t\"\nsource.filters = {{ kinds = \"kind\" }}\nstep.handler = \"h\"\n\
         step.version = \"version\"\n{more}"
    );
    let scope = db.scope(&toml).await;
    let batch = db.data.read(&scope, &everything(), ReadLimits::new(10, usize::MAX)).await.unwrap();
    (scope, batch.items)
}

pub(crate) fn write(items: Vec<WriteItem>) -> windlass_connectors::Commit {
    let counts = Counts { read: items.len() as i64, ..Counts::default() };
    windlass_connectors::Commit { counts, ..effect(Effect::Write(items)) }
}

const ALL: &str = "SELECT v, name, version FROM t ORDER BY id";

pub(crate) async fn updates_are_written_and_versions_raised(db: Db) {
    let (scope, items) = table(&db, "").await;
    let changes = [
        Change::default().set("v", 10).set("name", "x"),
        Change::default().set("v", 20),
        Change::default().set("v", Value::Null).set("name", "z"),
    ];
    let items = items.into_iter().zip(changes).map(|(read, change)| item(read, change)).collect();
    let ledger = db.fenced(1).await;
    let counts = db.data.commit(&scope, &ledger, write(items)).await.unwrap().ledger.counts;
    assert_eq!(counts, Counts { read: 3, processed: 3, ..Counts::default() });
    assert_eq!(db.rows(ALL).await, [["10", "x", "2"], ["20", "b", "6"], ["NULL", "z", "10"]]);
}

pub(crate) async fn a_concurrent_change_survives_and_the_item_is_deferred(db: Db) {
    let (scope, items) = table(&db, "").await;
    db.run("UPDATE t SET v = 222, version = version + 1 WHERE id = 2").await;
    let items = items.into_iter().map(|read| item(read, Change::default().set("v", 0))).collect();
    let ledger = db.fenced(1).await;
    let ledger = db.data.commit(&scope, &ledger, write(items)).await.unwrap().ledger;
    assert_eq!(ledger.counts, Counts { read: 3, processed: 2, conflicts: 1, ..Counts::default() });
    assert_eq!(db.fence(ledger.chunk, 1, false).await.unwrap(), ledger);
    assert_eq!(db.rows(ALL).await, [["0", "a", "2"], ["222", "b", "6"], ["0", "c", "10"]]);
    let held = db
        .data
        .deferred(ledger.chunk, DeferredPage::new(DeferredState::Retry, None, 10))
        .await
        .unwrap();
    assert_eq!(held.len(), 1);
    assert_eq!((&held[0].key, held[0].conflicts, held[0].attempts), (&key(2), 1, 0));

    // After reading again it succeeds, and it is no longer deferred.
    let again = windlass_core::KeySet::keys(vec![key(2)]);
    let read = db
        .data
        .read(&scope, &again, ReadLimits::new(10, usize::MAX))
        .await
        .unwrap()
        .items
        .remove(0);
    let mut commit = effect(Effect::Write(vec![item(read, Change::default().set("v", 0))]));
    commit.resolve = vec![key(2)];
    let ledger = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger;
    assert!(ledger.counts.add_up(), "{:?}", ledger.counts);
    assert_eq!(db.number("SELECT count(*) FROM windlass_deferred").await, 0);
    assert_eq!(db.one("SELECT v FROM t WHERE id = 2").await, "0");
}

/// Batch after batch, with and without a conflict: how a batch is written may depend on those before it, and on how
/// far apart its keys are.
pub(crate) async fn conflicts_are_found_in_every_batch_of_dense_and_of_sparse_keys(db: Db) {
    let (scope, _) = table(&db, "").await;
    let (least, greatest) = (i64::MIN, i64::MAX);
    db.run(&format!("INSERT INTO t VALUES ({least}, 0, 'd', 0, 1), ({greatest}, 0, 'e', 0, 1)"))
        .await;
    let (dense, sparse) = (vec![key(1), key(2), key(3)], vec![key(least), key(2), key(greatest)]);
    for round in 0..20 {
        for keys in [&dense, &sparse] {
            let key_set = windlass_core::KeySet::keys(keys.clone());
            let limits = ReadLimits::new(10, usize::MAX);
            let read = db.data.read(&scope, &key_set, limits).await.unwrap().items;
            let conflicts = i64::from(round % 3 == 0);
            if conflicts > 0 {
                db.run("UPDATE t SET v = -1, version = version + 1 WHERE id = 2").await;
            }
            let change = || Change::default().set("v", round);
            let items = read.into_iter().map(|read| item(read, change())).collect();
            let ledger = db.fenced(1).await;
            let counts = db.data.commit(&scope, &ledger, write(items)).await.unwrap().ledger.counts;
            let expected = Counts { read: 3, processed: 3 - conflicts, conflicts, ..counts };
            assert_eq!(counts, expected, "round {round}, {keys:?}");
            let second = if conflicts > 0 { "-1".to_owned() } else { round.to_string() };
            assert_eq!(db.one("SELECT v FROM t WHERE id = 2").await, second);
            let written = format!("SELECT count(*) FROM t WHERE v = {round}");
            assert!(db.number(&written).await >= 3 - conflicts, "round {round}, {keys:?}");
        }
    }
}

pub(crate) async fn conflicts_are_handled_by_on_conflict(db: Db) {
    let (scope, items) = table(&db, "").await;
    db.run("UPDATE t SET version = version + 1").await;
    for (on_conflict, before, expected) in [
        ("retry", 0, Counts { read: 1, conflicts: 1, ..Counts::default() }),
        ("retry", 9, Counts { read: 1, conflicts: 1, dead: 1, ..Counts::default() }),
        ("skip", 0, Counts { read: 1, conflicts: 1, skipped: 1, ..Counts::default() }),
        ("dead-letter", 0, Counts { read: 1, conflicts: 1, dead: 1, ..Counts::default() }),
    ] {
        let mut scope = scope.clone();
        scope.job_type.step.on_conflict = serde_json::from_value(on_conflict.into()).unwrap();
        let mut stale = item(items[0].clone(), Change::default().set("v", 0));
        stale.conflicts = before;
        let ledger = db.fenced(1).await;
        let ledger = db.data.commit(&scope, &ledger, write(vec![stale])).await.unwrap().ledger;
        assert_eq!(ledger.counts, expected, "{on_conflict} {before}");
        let dead = db
            .data
            .deferred(ledger.chunk, DeferredPage::new(DeferredState::Dead, None, 10))
            .await
            .unwrap();
        assert_eq!(dead.len() as i64, expected.dead);
        assert!(dead.iter().all(|dead| dead.record["id"] == 1));
    }
}

pub(crate) async fn inserts_happen_once_and_not_for_conflicts(db: Db) {
    let (scope, items) = table(&db, "").await;
    db.run("CREATE TABLE parents (id BIGINT PRIMARY KEY, note TEXT)").await;
    db.run("CREATE TABLE children (parent BIGINT REFERENCES parents (id), at DATE, price NUMERIC(8,2), n INT DEFAULT 4)")
        .await;
    db.run("UPDATE t SET version = version + 1 WHERE id = 3").await;
    let change = |id: i64| {
        let child =
            [("parent", Value::Int(id)), ("at", "2025-01-31".into()), ("price", "1.50".into())];
        let change = Change::default().set("v", 0);
        let change = change.insert("parents", [("id", Value::Int(id)), ("note", "it's".into())]);
        change.insert("children", child.clone()).insert("children", child)
    };
    let items: Vec<WriteItem> =
        items.into_iter().zip(1..).map(|(read, id)| item(read, change(id))).collect();
    let ledger = db.fenced(1).await;
    let counts = db.data.commit(&scope, &ledger, write(items.clone())).await.unwrap().ledger.counts;
    assert_eq!(counts, Counts { read: 3, processed: 2, conflicts: 1, ..Counts::default() });
    // Repeated, as after a lost answer: the ledger refuses it.
    db.data.commit(&scope, &ledger, write(items)).await.unwrap_err();
    let parents = db.rows("SELECT id, note FROM parents ORDER BY id").await;
    assert_eq!(parents, [["1", "it's"], ["2", "it's"]]);
    let price = db.pick("1.50", "1.5", "1.50");
    let children = db.rows("SELECT parent, at, price, n FROM children ORDER BY parent").await;
    assert_eq!(
        children,
        [["1"; 1], ["1"], ["2"], ["2"]].map(|[id]| [id, "2025-01-31", price, "4"])
    );
}

pub(crate) async fn items_without_an_effect_are_processed(db: Db) {
    let (scope, items) = table(&db, "").await;
    let items = items.into_iter().map(|read| item(read, Change::default())).collect();
    let ledger = db.fenced(1).await;
    let counts = db.data.commit(&scope, &ledger, write(items)).await.unwrap().ledger.counts;
    assert_eq!(counts, Counts { read: 3, processed: 3, ..Counts::default() });
    assert_eq!(db.number("SELECT sum(version) FROM t").await, 15);
}

pub(crate) async fn a_bad_value_rolls_everything_back(db: Db) {
    let (scope, items) = table(&db, "").await;
    db.run("CREATE TABLE small (v INT CHECK (v < 5))").await;
    let before = db.rows(ALL).await;
    let change = |read: Item| {
        let v = if read.key == key(3) { 7 } else { 1 };
        item(read, Change::default().set("v", 0).insert("small", [("v", Value::Int(v))]))
    };
    let items: Vec<WriteItem> = items.into_iter().map(change).collect();
    let ledger = db.fenced(1).await;
    let error = db.data.commit(&scope, &ledger, write(items.clone())).await.unwrap_err();
    assert_eq!(error.class(), Some(ErrorClass::Data), "{error}");
    assert_eq!(db.rows(ALL).await, before);
    assert_eq!(db.number("SELECT count(*) FROM small").await, 0);
    assert_eq!(db.fence(ledger.chunk, 1, false).await.unwrap(), ledger);
    db.data.commit(&scope, &ledger, write(items[..2].to_vec())).await.unwrap();
    assert_eq!(db.number("SELECT count(*) FROM small").await, 2);
}

pub(crate) async fn columns_that_cannot_be_set(db: Db) {
    let (scope, items) = table(&db, "").await;
    db.run("CREATE TABLE other (v INT)").await;
    let before = db.rows(ALL).await;
    for (change, expected) in [
        (
            Change::default().set("nothing", 1),
            "`t` has no column `nothing`; its columns are `id`, `v`",
        ),
        (Change::default().set("id", 9), "move into another chunk"),
        (Change::default().set("kind", 9), "move into another chunk"),
        (Change::default().set("version", 9), "only Windlass may set"),
        (
            Change::default().insert("other", [("w", Value::Int(1))]),
            "`other` has no column `w`; its columns are `v`",
        ),
    ] {
        let ledger = db.fenced(1).await;
        let items = vec![item(items[0].clone(), change)];
        let error = db.data.commit(&scope, &ledger, write(items)).await.unwrap_err();
        assert_eq!(error.class(), Some(ErrorClass::Data), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(db.rows(ALL).await, before);
    let change = Change::default().insert("missing", [("w", Value::Int(1))]);
    let ledger = db.fenced(1).await;
    let error = db.data.commit(&scope, &ledger, write(vec![item(items[0].clone(), change)])).await;
    assert_eq!(error.unwrap_err().class(), Some(ErrorClass::Definition));
}

pub(crate) async fn a_deleted_record_is_a_conflict(db: Db) {
    let (scope, items) = table(&db, "").await;
    db.run("DELETE FROM t WHERE id = 1").await;
    let items = items.into_iter().map(|read| item(read, Change::default().set("v", 0))).collect();
    let ledger = db.fenced(1).await;
    let counts = db.data.commit(&scope, &ledger, write(items)).await.unwrap().ledger.counts;
    assert_eq!((counts.processed, counts.conflicts), (2, 1));
    assert_eq!(db.number("SELECT count(*) FROM t").await, 2);
}

pub(crate) async fn a_value_that_is_too_long_is_refused(db: Db) {
    let (scope, mut items) = table(&db, "").await;
    let change = Change::default().set("name", "longer than ten letters");
    let ledger = db.fenced(1).await;
    let outcome = db.data.commit(&scope, &ledger, write(vec![item(items.remove(0), change)])).await;
    if !db.is_sqlite() {
        assert_eq!(outcome.unwrap_err().class(), Some(ErrorClass::Data));
    } else {
        outcome.unwrap();
        assert_eq!(db.one("SELECT name FROM t WHERE id = 1").await, "longer than ten letters");
    }
}
