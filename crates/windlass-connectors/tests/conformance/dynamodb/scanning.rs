//! Every record is found once, by scan segments and by index queries.

use super::{HANDLER, REFRESH, table, with_table};
use crate::harness::{Db, effect, everything, key};
use crate::writing::item;
use serde_json::json;
use std::collections::HashSet;
use windlass_connectors::{CutLimits, CutRange, Effect, ReadLimits, ScanSegment, Scope};
use windlass_core::{
    Change, Claims, Counts, FilterValue, Identity, Key, KeyRange, KeySet, Keys, Request, Value,
};

fn keys_of(key_set: &KeySet) -> &[Key] {
    match &key_set.keys {
        Keys::List(keys) => keys,
        Keys::Range(_) => panic!("DynamoDB has lists of keys"),
    }
}

fn number(key: &Key) -> i64 {
    match key.0.as_slice() {
        [Value::Int(number)] => *number,
        other => panic!("{other:?}"),
    }
}

/// All keys, page by page, each found once.
pub(super) async fn walked(
    db: &Db,
    scope: &Scope,
    share: Option<ScanSegment>,
    within: Option<&FilterValue>,
    items: u32,
    chunks: u32,
) -> HashSet<i64> {
    let (mut seen, mut after) = (HashSet::new(), None::<Key>);
    loop {
        let cuts = match share {
            Some(share) => db
                .data
                .scan(scope, share, after.as_ref(), CutLimits::new(items, chunks, None))
                .await
                .unwrap(),
            None => {
                let range = KeyRange { after: after.clone(), upto: None };
                db.data
                    .cut(scope, CutRange::new(within, &range), CutLimits::new(items, chunks, None))
                    .await
                    .unwrap()
            }
        };
        for (key_set, count) in &cuts.chunks {
            assert_eq!(keys_of(key_set).len() as i64, *count);
            assert!(*count <= i64::from(items));
            assert_eq!(key_set.within.as_ref(), within);
            assert!(keys_of(key_set).iter().all(|key| seen.insert(number(key))), "a key twice");
        }
        if cuts.done {
            return seen;
        }
        after = cuts.last;
        assert!(after.is_some(), "a page that is not the last says where it ended");
    }
}

#[tokio::test]
async fn scans_find_every_record_once() {
    let (db, scope) = with_table(200, HANDLER).await;
    assert_eq!(db.data.split(&scope, 4).await.unwrap(), vec![KeyRange::ALL; 4]);
    for (of, items, chunks) in [(1, 7, 3), (4, 10, 500), (3, 1000, 500)] {
        let mut seen = HashSet::new();
        for number in 0..of {
            let share = ScanSegment { number, of };
            let part = walked(&db, &scope, Some(share), None, items, chunks).await;
            assert!(seen.is_disjoint(&part), "segments share records");
            seen.extend(part);
        }
        assert_eq!(seen.len(), 200);
    }
    let limited = db
        .data
        .scan(&scope, ScanSegment { number: 0, of: 1 }, None, CutLimits::new(10, 500, Some(25)))
        .await
        .unwrap();
    let counts: Vec<i64> = limited.chunks.iter().map(|(_, count)| *count).collect();
    assert_eq!((counts, limited.done), (vec![10, 10, 5], true));
}

#[tokio::test]
async fn a_value_is_looked_up_by_its_index_page_by_page() {
    let db = Db::dynamodb().await;
    table(&db, 200).await;
    let toml = format!("{HANDLER}\nsource.filters = {{ kinds = \"kind\", counties = \"county\" }}");
    let filter = json!({ "jobType": "J", "filter": { "kinds": ["2", 3], "counties": ["c1"] } });
    let request: Request = serde_json::from_value(filter).unwrap();
    let scope = db.scope_for(&toml, request, Identity::default()).await;
    // The index has a sort key, from which the next page continues.
    let values = scope.filters.iter().find(|(name, ..)| name == "kinds").unwrap().2.clone();
    for (value, kind) in values.into_iter().zip([2, 3]) {
        let within = FilterValue { filter: "kinds".to_owned(), value };
        let found = walked(&db, &scope, None, Some(&within), 3, 1).await;
        let expected: HashSet<i64> = (1..=200).filter(|n| n % 5 == kind && n % 3 == 1).collect();
        assert_eq!(found, expected);
        let all = KeySet::new(Some(within), Keys::Range(KeyRange::ALL));
        assert_eq!(db.data.count(&scope, &all).await.unwrap(), expected.len() as i64);
    }
    let all = db.data.count(&scope, &everything()).await.unwrap();
    assert_eq!(all, (1..=200).filter(|n| [2, 3].contains(&(n % 5)) && n % 3 == 1).count() as i64);
}

#[tokio::test]
async fn claims_restrict_scans_reads_and_writes() {
    let db = Db::dynamodb().await;
    table(&db, 60).await;
    let toml = format!("{REFRESH}\nsource.claims = {{ county = \"county\" }}");
    let claims: Claims = serde_json::from_value(json!({ "county": ["c0", "c2"] })).unwrap();
    let identity = Identity { claims, ..Identity::default() };
    let scope = db.scope_for(&toml, Request::new("J"), identity).await;
    let found = walked(&db, &scope, Some(ScanSegment { number: 0, of: 1 }), None, 50, 9).await;
    assert_eq!(found, (1..=60).filter(|n| n % 3 != 1).collect());
    assert_eq!(db.data.count(&scope, &everything()).await.unwrap(), 40);
    // Keys that were listed before the record changed, and some that never matched.
    let listed = KeySet::keys(vec![key(3), key(4), key(5), key(77)]);
    let read = db.data.read(&scope, &listed, ReadLimits::new(10, usize::MAX)).await.unwrap();
    let read: Vec<i64> = read.items.iter().map(|item| number(&item.key)).collect();
    assert_eq!(read, [3, 5]);
    let ledger = db.fenced(1).await;
    let commit = effect(Effect::Statement(listed));
    let counts = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger.counts;
    assert_eq!(counts, Counts { read: 4, processed: 2, skipped: 2, ..Counts::default() });
    let raised = db.rows("SELECT id FROM t WHERE version = 2 ORDER BY id").await;
    assert_eq!(raised, [["3"], ["5"]]);
    assert_eq!(
        db.number("SELECT count(*) FROM t").await,
        60,
        "nothing was made of the missing key"
    );
}

#[tokio::test]
async fn keys_of_every_type() {
    let db = Db::dynamodb().await;
    db.run("CREATE TABLE t (a BLOB, b TEXT, version INT, PRIMARY KEY (a, b))").await;
    db.run("INSERT INTO t VALUES (x'ff', 'it''s', 1), (x'ff', 'other', 1), (x'00', 'it''s', 1)")
        .await;
    let scope = db.scope(HANDLER).await;
    assert_eq!(scope.key(), ["a", "b"]);
    let key = |text: &str| Key(vec![Value::Bytes(vec![255]), Value::from(text)]);
    let key_set = KeySet::keys(vec![key("other"), key("it's"), key("none"), key("it's")]);
    let batch = db.data.read(&scope, &key_set, ReadLimits::new(10, usize::MAX)).await.unwrap();
    let keys: Vec<Key> = batch.items.iter().map(|item| item.key.clone()).collect();
    assert_eq!((keys, batch.end), (vec![key("other"), key("it's")], true));
    let writes = batch.items.into_iter().map(|read| item(read, Change::default().set("v", 1)));
    let ledger = db.fenced(1).await;
    let commit = effect(Effect::Write(writes.collect()));
    assert_eq!(db.data.commit(&scope, &ledger, commit).await.unwrap().ledger.counts.processed, 2);
    // Ids are converted to the type of the key.
    db.run("CREATE TABLE n (id NUMERIC PRIMARY KEY); INSERT INTO n VALUES (1), (2.5)").await;
    let scope = db.scope("source.table = \"n\"\nstep.handler = \"h\"\nstep.version = \"v\"").await;
    let rows = ["2.50", "1", "2.5", "7", "1.0", "7"].map(|text| vec![Value::from(text)]);
    let once = db.data.distinct(&scope, &["id".to_owned()], rows.to_vec()).await.unwrap();
    let texts: Vec<String> = once.iter().map(|row| row[0].to_string()).collect();
    assert_eq!(texts, ["2.5", "1", "7"]);
    let listed = KeySet::keys(once.into_iter().map(Key).collect());
    assert_eq!(db.data.count(&scope, &listed).await.unwrap(), 2);
}

/// Conditions on attributes that an index lacks must not hide records.
#[tokio::test]
async fn conditions_that_an_index_lacks_are_checked_by_the_read() {
    let db = Db::dynamodb().await;
    let attribute = |name: &str| json!({ "AttributeName": name, "AttributeType": "N" });
    db.tables().call(
        "CreateTable",
        json!({
            "TableName": "t",
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{ "AttributeName": "id", "KeyType": "HASH" }],
            "AttributeDefinitions": [attribute("id"), attribute("kind")],
            "GlobalSecondaryIndexes": [{
                "IndexName": "kinds",
                "KeySchema": [{ "AttributeName": "kind", "KeyType": "HASH" }],
                "Projection": { "ProjectionType": "KEYS_ONLY" },
            }],
        }),
    );
    for id in 1..=9 {
        let item = json!({
            "id": { "N": id.to_string() }, "kind": { "N": "1" },
            "county": { "S": if id % 3 == 0 { "north" } else { "south" } },
        });
        db.tables().call("PutItem", json!({ "TableName": "t", "Item": item }));
    }
    let toml = format!(
        "{HANDLER}\nsource.filters = {{ kinds = \"kind\" }}\nsource.claims = {{ county = \"county\" }}"
    );
    let request = json!({ "jobType": "J", "filter": { "kinds": [1] } });
    let claims: Claims = serde_json::from_value(json!({ "county": ["north"] })).unwrap();
    let identity = Identity { claims, ..Identity::default() };
    let scope = db.scope_for(&toml, serde_json::from_value(request).unwrap(), identity).await;
    let within = FilterValue { filter: "kinds".to_owned(), value: Value::Int(1) };
    let found = walked(&db, &scope, None, Some(&within), 4, 1).await;
    assert_eq!(found, (1..=9).collect(), "nobody is left out");
    let part = Keys::List((1..=9).map(key).collect());
    let key_set = KeySet::new(Some(within), part);
    let read = db.data.read(&scope, &key_set, ReadLimits::new(100, usize::MAX)).await.unwrap();
    let read: Vec<i64> = read.items.iter().map(|item| number(&item.key)).collect();
    assert_eq!(read, [3, 6, 9], "and nobody else's record is read");
}
