//! One table with several record types: `source.match` selects those of the job.

use super::scanning::walked;
use super::{HANDLER, REFRESH, read, with_table, write};
use crate::harness::{Db, effect, everything, job_type, key};
use crate::writing::item;
use serde_json::json;
use windlass_connectors::{Effect, ScanSegment, validate};
use windlass_core::{Change, Counts, FilterValue, Identity, KeySet, Request, Value};

/// The records of `c1`, which are 1, 4, 7, …
const MATCH: &str = "source.match = { county = \"c1\" }";

#[tokio::test]
async fn scans_queries_and_counts_find_only_matching_records() {
    let (db, _) = with_table(60, HANDLER).await;
    let toml = format!("{HANDLER}\n{MATCH}\nsource.filters = {{ kinds = \"kind\" }}");
    let scope = db.scope(&toml).await;
    let expected = |n: &i64| n % 3 == 1;
    let found = walked(&db, &scope, Some(ScanSegment { number: 0, of: 1 }), None, 7, 2).await;
    assert_eq!(found, (1..=60).filter(expected).collect());
    assert_eq!(db.data.count(&scope, &everything()).await.unwrap(), 20);
    // `county` is the sort key of this index, on which DynamoDB accepts no filter.
    let request = json!({ "jobType": "J", "filter": { "kinds": [2] } });
    let request: Request = serde_json::from_value(request).unwrap();
    let scope = db.scope_for(&toml, request, Identity::default()).await;
    let within = FilterValue { filter: "kinds".to_owned(), value: Value::Int(2) };
    let found = walked(&db, &scope, None, Some(&within), 3, 1).await;
    assert_eq!(found, (1..=60).filter(expected).filter(|n| n % 5 == 2).collect());
    assert_eq!(db.data.count(&scope, &everything()).await.unwrap(), 4);
    // The index on `county` carries `kind` as an attribute.
    let toml = format!(
        "{HANDLER}\nsource.match = {{ kind = 2 }}\nsource.filters = {{ counties = \"county\" }}"
    );
    let request = json!({ "jobType": "J", "filter": { "counties": ["c1"] } });
    let request: Request = serde_json::from_value(request).unwrap();
    let scope = db.scope_for(&toml, request, Identity::default()).await;
    let within = FilterValue { filter: "counties".to_owned(), value: Value::from("c1") };
    let found = walked(&db, &scope, None, Some(&within), 3, 1).await;
    assert_eq!(found, (1..=60).filter(expected).filter(|n| n % 5 == 2).collect());
}

#[tokio::test]
async fn a_record_that_changed_its_type_is_not_refreshed() {
    let (db, _) = with_table(9, HANDLER).await;
    let scope = db.scope(&format!("{REFRESH}\n{MATCH}")).await;
    // Planned while 1, 4 and 7 matched; 2 never did.
    db.run("UPDATE t SET county = 'c2' WHERE id = 4").await;
    let ledger = db.fenced(1).await;
    let listed = KeySet::keys([1, 2, 4, 7].map(key).to_vec());
    let commit = effect(Effect::Statement(listed));
    let counts = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger.counts;
    assert_eq!(counts, Counts { read: 4, processed: 2, skipped: 2, ..Counts::default() });
    let raised = db.rows("SELECT id FROM t WHERE version = 2 ORDER BY id").await;
    assert_eq!(raised, [["1"], ["7"]]);
}

/// The other writer does not raise the version, so only the condition on the type protects its change.
#[tokio::test]
async fn a_record_that_changed_its_type_after_the_read_is_not_written() {
    let (db, _) = with_table(9, HANDLER).await;
    db.run("UPDATE t SET version = NULL WHERE id = 7").await;
    let scope = db.scope(&format!("{HANDLER}\n{MATCH}")).await;
    let items = read(&db, &scope, 1..=9).await;
    assert_eq!(items.len(), 3);
    db.run("UPDATE t SET county = 'c2' WHERE id IN (4, 7)").await;
    let items =
        items.into_iter().map(|read| item(read, Change::default().set("kind", 99))).collect();
    let ledger = db.fenced(1).await;
    let counts = db.data.commit(&scope, &ledger, write(items)).await.unwrap().ledger.counts;
    assert_eq!(counts, Counts { read: 3, processed: 1, conflicts: 2, ..Counts::default() });
    assert_eq!(db.rows("SELECT id FROM t WHERE kind = 99").await, [["1"]]);
    // Deferred items are read again, and these no longer match.
    assert_eq!(read(&db, &scope, 1..=9).await.len(), 1);
    let moved =
        item(read(&db, &scope, 1..=1).await.remove(0), Change::default().set("county", "c2"));
    let error = db.data.commit(&scope, &db.fenced(2).await, write(vec![moved])).await.unwrap_err();
    assert!(error.to_string().contains("update: sets `county`"), "{error}");
}

#[tokio::test]
async fn an_index_without_the_matched_attribute_is_refused() {
    let db = Db::dynamodb().await;
    let attribute = |name: &str, kind| json!({ "AttributeName": name, "AttributeType": kind });
    db.tables().call(
        "CreateTable",
        json!({
            "TableName": "t",
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{ "AttributeName": "id", "KeyType": "HASH" }],
            "AttributeDefinitions": [attribute("id", "N"), attribute("year", "S")],
            "GlobalSecondaryIndexes": [{
                "IndexName": "years",
                "KeySchema": [{ "AttributeName": "year", "KeyType": "HASH" }],
                "Projection": { "ProjectionType": "INCLUDE", "NonKeyAttributes": ["type"] },
            }],
        }),
    );
    let toml = |matched: &str| {
        format!(
            "{HANDLER}\nsource.filters = {{ years = \"year\" }}\nsource.match = {{ {matched} = \"A\" }}"
        )
    };
    for included in ["type", "year", "id"] {
        db.data.describe(&job_type(&toml(included)).source).await.unwrap();
    }
    let error = db.data.describe(&job_type(&toml("status")).source).await.unwrap_err().to_string();
    assert!(error.contains("source.match: `status` is not in the index `years`"), "{error}");
    // A template makes a text, and this key is a number.
    let mut number = job_type(&format!(
        "{HANDLER}\nsource.key = [\"id\"]\nqueue.key = {{ id = \"A#{{number}}\" }}"
    ));
    let table = db.data.describe(&number.source).await.unwrap();
    let problems: Vec<String> =
        validate(&mut number, &table).iter().map(ToString::to_string).collect();
    assert!(problems[0].contains("queue.key: `id` is of type N"), "{problems:?}");
}
