//! Records that came with the request are cut, read and counted like those of a table.

use crate::harness::{Db, Random, effect, everything, job_type, on_every_backend};
use serde_json::{Value as Json, json};
use windlass_connectors::{
    CutLimits, CutRange, Effect, InlineSource, ReadLimits, RecordReader as _, Scope, Source as _,
    WriteItem, validate,
};
use windlass_core::{Change, Identity, Insert, Key, KeyRange, KeySet, Keys, Request, Row, Value};

on_every_backend!(
    inserts_are_committed_on_the_connection,
    an_update_is_refused_since_there_is_no_table,
);

const POINTS: &str = "source.items = true\nsource.key = [\"file\", \"id\"]\nstep.handler = \"h\"\n";

fn source(items: Vec<Json>) -> (Scope, InlineSource) {
    let mut job_type = job_type(POINTS);
    assert_eq!(job_type.problems(), []);
    let table = InlineSource::table(&job_type.source, items.len());
    assert_eq!(validate(&mut job_type, &table), []);
    let request = Request { items: Some(items.clone()), ..Request::new("J") };
    let scope = Scope::new(job_type, table, &request, &Identity::default()).unwrap();
    let key = scope.key().to_vec();
    (scope, InlineSource::new(items, &key).unwrap())
}

/// Items in random order, with keys of numbers and of text.
fn points(count: i64) -> Vec<Json> {
    let mut random = Random(7);
    let mut items: Vec<Json> = (0..count)
        .map(|n| match n % 3 {
            0 => json!({"file": "a", "id": n}),
            1 => json!({"file": n, "id": n.to_string()}),
            _ => json!({"file": format!("b{}", n % 5), "id": n}),
        })
        .collect();
    for index in (1..items.len()).rev() {
        items.swap(index, random.below(index as u64 + 1) as usize);
    }
    items
}

#[tokio::test]
async fn every_item_is_in_one_chunk() {
    let (scope, items) = source(points(103));
    for segments in [1, 4, 200] {
        let ranges = items.split(&scope, segments).await.unwrap();
        assert!(ranges.len() <= segments as usize && !ranges.is_empty());
        let whole = KeyRange { after: None, upto: ranges.last().unwrap().upto.clone() };
        whole.check_tiling(&ranges).unwrap();
        let mut seen = Vec::new();
        for range in ranges {
            let mut at = range.clone();
            let mut chunks = Vec::new();
            // Pages of two chunks, so that a segment has several pages.
            loop {
                let cut = items
                    .cut(&scope, CutRange::new(None, &at), CutLimits::new(7, 2, None))
                    .await
                    .unwrap();
                at.after = cut.last.clone().or(at.after);
                chunks.extend(cut.chunks);
                if cut.done {
                    break;
                }
            }
            let parts = chunks.iter().map(|(key_set, _)| match &key_set.keys {
                Keys::Range(range) => range,
                Keys::List(_) => panic!("a list of keys"),
            });
            range.check_tiling(parts).unwrap();
            for (key_set, count) in chunks {
                let batch =
                    items.read(&scope, &key_set, ReadLimits::new(100, usize::MAX)).await.unwrap();
                assert!(batch.end && batch.items.len() as i64 == count && count <= 7);
                assert_eq!(items.count(&scope, &key_set).await.unwrap(), count);
                seen.extend(batch.items.into_iter().map(|item| item.key.to_text()));
            }
        }
        let read = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!((read, seen.len()), (103, 103), "{segments} segments");
    }
    let (scope, none) = empty_source();
    assert_eq!(none.split(&scope, 10).await.unwrap(), []);
}

fn empty_source() -> (Scope, InlineSource) {
    let (scope, _) = source(points(1));
    let key = scope.key().to_vec();
    (scope, InlineSource::new(Vec::new(), &key).unwrap())
}

#[tokio::test]
async fn records_equal_the_items() {
    let item = json!({"file": "a", "id": 1, "none": null, "yes": true, "part": 0.5, "big": u64::MAX,
        "list": [1, {"a": "b"}], "object": {"$bytes": "0aff"}, "text": "a\"b\nü"});
    let (scope, items) = source(vec![item.clone(), json!({"file": "a", "id": 2})]);
    let batch = items.read(&scope, &everything(), ReadLimits::new(10, usize::MAX)).await.unwrap();
    assert_eq!(batch.items[0].record.to_json(), item);
    assert_eq!(batch.items[0].key.to_id(), json!(["a", 1]));
    assert_eq!(batch.items[1].record.to_json(), json!({"file": "a", "id": 2}));
}

#[tokio::test]
async fn a_batch_ends_at_its_byte_limit() {
    let wide = |id: i64| json!({"file": "a", "id": id, "text": "x".repeat(1000)});
    let (scope, items) = source((0..5).map(wide).collect());
    for (limit, bytes, read) in [(5, 2500, 3), (2, 2500, 2), (5, 0, 0), (5, 1, 1), (5, 9999, 5)] {
        let batch = items.read(&scope, &everything(), ReadLimits::new(limit, bytes)).await.unwrap();
        assert_eq!(
            (batch.items.len(), batch.end),
            (read, read == 5),
            "{limit} items, {bytes} bytes"
        );
    }
}

#[tokio::test]
async fn keys_are_looked_up_and_counted() {
    let (scope, items) = source(points(30));
    let keys = [json!(["a", 3]), json!(["a", 0]), json!(["a", 3]), json!(["none", 3])];
    let keys: Vec<Key> = keys.into_iter().map(Key::from_id).collect();
    let key_set = KeySet::keys(keys.clone());
    let batch = items.read(&scope, &key_set, ReadLimits::new(10, usize::MAX)).await.unwrap();
    let read: Vec<Json> = batch.items.iter().map(|item| item.key.to_id()).collect();
    assert_eq!(read, [json!(["a", 0]), json!(["a", 3])]);
    assert!(batch.end);
    assert_eq!(items.count(&scope, &key_set).await.unwrap(), 2);
    let mut rows: Vec<_> = keys.into_iter().map(|key| key.0).collect();
    let error = items.distinct(&scope, scope.key(), rows.clone()).await.unwrap_err().to_string();
    assert!(error.contains("no item of the request has the key none, 3"), "{error}");
    rows.pop();
    assert_eq!(items.distinct(&scope, scope.key(), rows).await.unwrap().len(), 2);
}

fn write(scope: &Scope, change: Change) -> (Key, WriteItem) {
    let key = Key(vec![Value::from("a"), Value::from(0)]);
    let columns: windlass_core::Columns = scope.key().iter().cloned().collect();
    let record = windlass_core::Record::new(columns, key.0.clone());
    let (guard, change, attempts, conflicts) = (Value::Null, change.into(), 0, 0);
    (key.clone(), WriteItem { key, guard, change, record, attempts, conflicts })
}

pub(crate) async fn inserts_are_committed_on_the_connection(db: Db) {
    db.run("CREATE TABLE found (point text NOT NULL)").await;
    let (scope, _) = source(points(3));
    let rows = vec![Row::from([("point".to_owned(), Value::from("x"))])];
    let insert = vec![Insert { table: "found".to_owned(), rows }];
    let (_, item) = write(&scope, Change { insert, ..Change::default() });
    let ledger = db.fenced(1).await;
    db.data.try_write(&scope, item.clone()).await.unwrap();
    assert_eq!(db.number("SELECT count(*) FROM found").await, 0, "try_write rolls back");
    let commit = effect(Effect::Write(vec![item]));
    let committed = db.data.commit(&scope, &ledger, commit.clone()).await.unwrap();
    assert_eq!(committed.ledger.counts.processed, 1);
    assert!(db.data.commit(&scope, &ledger, commit).await.is_err(), "the ledger row has changed");
    assert_eq!(db.number("SELECT count(*) FROM found").await, 1);
}

pub(crate) async fn an_update_is_refused_since_there_is_no_table(db: Db) {
    let (scope, _) = source(points(3));
    let update = Row::from([("name".to_owned(), Value::from("x"))]);
    let (_, item) = write(&scope, Change { update, ..Change::default() });
    let ledger = db.fenced(1).await;
    let error =
        db.data.commit(&scope, &ledger, effect(Effect::Write(vec![item]))).await.unwrap_err();
    let message = error.to_string();
    assert!(message.contains("no table to write them back to; use insert"), "{message}");
    assert_eq!(
        error.class(),
        Some(windlass_drivers::ErrorClass::Data),
        "halving the batch finds the item"
    );
}
