//! DynamoDB: what of the suite applies to it, and what it does in its own way.
//!
//! Of the topics of the other databases these do not apply:
//! - `committing`, `marking`: statements of the user's, which DynamoDB does not run. A refresh is here.
//! - `cutting`, `splitting`: ranges of keys. Here are scans and look-ups, with every record once.
//! - `reading`: reads by ranges, and types that only SQL has. `describing`, `fitting`, `naming`: columns
//!   and indexes as SQL has them. All of it is here in DynamoDB's terms.
//! - `extracting`: how PostgreSQL copies out. `outboxes`: there is none.
//! - Of `writing`: constraints, defaults, foreign keys and lengths, which no table has here.

use crate::harness::{Db, effect, everything, job_type, key};
use crate::writing::item;
use serde_json::json;
use std::collections::HashSet;
use windlass_core::{
    Change, Claims, Counts, Cursor, Extent, FilterValue, Identity, Key, KeyRange, Part, Request,
    Value,
};
use windlass_data::{Commit, DataError, Effect, HeldState, Scope, Share, WriteItem, connect, fit};
use windlass_db::Class;

macro_rules! on_dynamodb {
    ($($topic:ident: $($test:ident),+;)+) => {$(
        mod $topic {
            $(#[tokio::test]
            async fn $test() {
                crate::$topic::$test(crate::harness::Db::dynamodb().await).await;
            })+
        }
    )+};
}

on_dynamodb! {
    fencing: an_older_epoch_gets_nothing, several_at_once, stalls_are_claims_lost_without_a_commit,
        a_commit_at_an_older_epoch_changes_nothing, a_commit_that_happened_is_not_repeated,
        preparing_twice_and_at_once, pruning_forgets_one_job;
    holding: a_round_trip, paging_by_key, holding_again_overwrites;
    writing: updates_are_written_and_versions_raised,
        a_concurrent_change_survives_and_the_item_is_held, what_a_conflict_comes_to,
        items_without_an_effect_are_processed, a_deleted_record_is_a_conflict;
    items: segments_and_chunks_hold_every_item_once, records_are_the_items_as_they_came,
        a_batch_ends_at_its_bytes, keys_are_looked_up_and_counted,
        inserts_are_committed_on_the_connection, an_update_is_refused_since_there_is_no_table;
}

const HANDLER: &str = "source.table = \"t\"\nstep.handler = \"h\"\nstep.version = \"version\"";
const REFRESH: &str = "source.table = \"t\"\nstep.refresh = true\nstep.version = \"version\"";

/// Records 1 to `rows`, in five kinds and three counties.
async fn table(db: &Db, rows: i64) {
    let insert = format!(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, kind INT, county TEXT, version INT);
         CREATE INDEX kinds ON t (kind, county); CREATE INDEX counties ON t (county);
         INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
         SELECT i, i % 5, 'c' || (i % 3), 1 FROM n"
    );
    db.run(&insert).await;
}

fn keys_of(extent: &Extent) -> &[Key] {
    match &extent.part {
        Part::Keys(keys) => keys,
        Part::Range(_) => panic!("DynamoDB has lists of keys"),
    }
}

fn number(key: &Key) -> i64 {
    match key.0.as_slice() {
        [Value::Int(number)] => *number,
        other => panic!("{other:?}"),
    }
}

/// Every key of a walk, page by page, each found once.
async fn walked(
    db: &Db,
    scope: &Scope,
    share: Option<Share>,
    within: Option<&FilterValue>,
    items: u32,
    chunks: u32,
) -> HashSet<i64> {
    let (mut seen, mut after) = (HashSet::new(), None::<Key>);
    loop {
        let cuts = match share {
            Some(share) => {
                db.data.scan(scope, share, after.as_ref(), items, chunks, None).await.unwrap()
            }
            None => {
                let range = KeyRange { after: after.clone(), upto: None };
                db.data.cut(scope, within, &range, items, chunks, None).await.unwrap()
            }
        };
        for (extent, count) in &cuts.chunks {
            assert_eq!(keys_of(extent).len() as i64, *count);
            assert!(*count <= i64::from(items));
            assert_eq!(extent.within.as_ref(), within);
            assert!(keys_of(extent).iter().all(|key| seen.insert(number(key))), "a key twice");
        }
        if cuts.done {
            return seen;
        }
        after = cuts.last;
        assert!(after.is_some(), "a page that is not the last says where it ended");
    }
}

#[tokio::test]
async fn scans_hold_every_record_once() {
    let db = Db::dynamodb().await;
    table(&db, 200).await;
    let scope = db.scope(HANDLER).await;
    assert_eq!(db.data.split(&scope, 4).await.unwrap(), vec![KeyRange::ALL; 4]);
    for (of, items, chunks) in [(1, 7, 3), (4, 10, 500), (3, 1000, 500)] {
        let mut seen = HashSet::new();
        for number in 0..of {
            let share = Share { number, of };
            let part = walked(&db, &scope, Some(share), None, items, chunks).await;
            assert!(seen.is_disjoint(&part), "segments share records");
            seen.extend(part);
        }
        assert_eq!(seen.len(), 200);
    }
    let limited =
        db.data.scan(&scope, Share { number: 0, of: 1 }, None, 10, 500, Some(25)).await.unwrap();
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
    // The index has a sort key, which says where a page ended.
    let values = scope.filters.iter().find(|(name, ..)| name == "kinds").unwrap().2.clone();
    for (value, kind) in values.into_iter().zip([2, 3]) {
        let within = FilterValue { filter: "kinds".to_owned(), value };
        let found = walked(&db, &scope, None, Some(&within), 3, 1).await;
        let expected: HashSet<i64> = (1..=200).filter(|n| n % 5 == kind && n % 3 == 1).collect();
        assert_eq!(found, expected);
        let all = Extent { within: Some(within), part: Part::Range(KeyRange::ALL) };
        assert_eq!(db.data.count(&scope, &all).await.unwrap(), expected.len() as i64);
    }
    let all = db.data.count(&scope, &everything()).await.unwrap();
    assert_eq!(all, (1..=200).filter(|n| [2, 3].contains(&(n % 5)) && n % 3 == 1).count() as i64);
}

#[tokio::test]
async fn claims_bound_scans_reads_and_writes() {
    let db = Db::dynamodb().await;
    table(&db, 60).await;
    let toml = format!("{REFRESH}\nsource.claims = {{ county = \"county\" }}");
    let claims: Claims = serde_json::from_value(json!({ "county": ["c0", "c2"] })).unwrap();
    let identity = Identity { claims, ..Identity::default() };
    let scope = db.scope_for(&toml, Request::new("J"), identity).await;
    let found = walked(&db, &scope, Some(Share { number: 0, of: 1 }), None, 50, 9).await;
    assert_eq!(found, (1..=60).filter(|n| n % 3 != 1).collect());
    assert_eq!(db.data.count(&scope, &everything()).await.unwrap(), 40);
    // Keys that were listed before the record moved, and some that never were.
    let listed = Extent::keys(vec![key(3), key(4), key(5), key(77)]);
    let read = db.data.read(&scope, &listed, 10, usize::MAX).await.unwrap();
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
    let extent = Extent::keys(vec![key("other"), key("it's"), key("none"), key("it's")]);
    let batch = db.data.read(&scope, &extent, 10, usize::MAX).await.unwrap();
    let keys: Vec<Key> = batch.items.iter().map(|item| item.key.clone()).collect();
    assert_eq!((keys, batch.end), (vec![key("other"), key("it's")], true));
    let writes = batch.items.into_iter().map(|read| item(read, Change::default().set("v", 1)));
    let ledger = db.fenced(1).await;
    let commit = effect(Effect::Write(writes.collect()));
    assert_eq!(db.data.commit(&scope, &ledger, commit).await.unwrap().ledger.counts.processed, 2);
    // Ids are of the key's type, however they are written.
    db.run("CREATE TABLE n (id NUMERIC PRIMARY KEY); INSERT INTO n VALUES (1), (2.5)").await;
    let scope = db.scope("source.table = \"n\"\nstep.handler = \"h\"\nstep.version = \"v\"").await;
    let rows = ["2.50", "1", "2.5", "7", "1.0", "7"].map(|text| vec![Value::from(text)]);
    let once = db.data.distinct(&scope, &["id".to_owned()], rows.to_vec()).await.unwrap();
    let texts: Vec<String> = once.iter().map(|row| row[0].to_string()).collect();
    assert_eq!(texts, ["2.5", "1", "7"]);
    let listed = Extent::keys(once.into_iter().map(Key).collect());
    assert_eq!(db.data.count(&scope, &listed).await.unwrap(), 2);
}

#[tokio::test]
async fn a_refresh_raises_versions_and_overwrites_nothing() {
    let db = Db::dynamodb().await;
    table(&db, 3).await;
    db.run("INSERT INTO t (id, kind, county) VALUES (4, 1, 'c0')").await;
    let scope = db.scope(REFRESH).await;
    let listed = Extent::keys((1..=5).map(key).collect());
    let preview = db.data.preview(&scope, &listed).await.unwrap();
    let after = preview[0].after.as_ref().unwrap().get("version").cloned();
    assert_eq!((preview.len(), after), (4, Some(Value::Int(2))));
    let ledger = db.fenced(1).await;
    let commit = effect(Effect::Statement(listed));
    let counts = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger.counts;
    assert_eq!(counts, Counts { read: 5, processed: 4, skipped: 1, ..Counts::default() });
    // One that had no version has its first now.
    let versions = db.rows("SELECT version FROM t ORDER BY id").await;
    assert_eq!(versions, [["2"], ["2"], ["2"], ["1"]]);
}

fn write(items: Vec<WriteItem>) -> Commit {
    let counts = Counts { read: items.len() as i64, ..Counts::default() };
    Commit { counts, ..effect(Effect::Write(items)) }
}

async fn read(
    db: &Db,
    scope: &Scope,
    ids: std::ops::RangeInclusive<i64>,
) -> Vec<windlass_data::Item> {
    let extent = Extent::keys(ids.map(key).collect());
    db.data.read(scope, &extent, 1000, usize::MAX).await.unwrap().items
}

#[tokio::test]
async fn a_record_without_a_version_is_a_conflict() {
    let db = Db::dynamodb().await;
    table(&db, 2).await;
    db.run("UPDATE t SET version = NULL WHERE id = 2").await;
    let scope = db.scope(HANDLER).await;
    let items = read(&db, &scope, 1..=2).await;
    let items =
        items.into_iter().map(|read| item(read, Change::default().set("kind", 9))).collect();
    let ledger = db.fenced(1).await;
    let counts = db.data.commit(&scope, &ledger, write(items)).await.unwrap().ledger.counts;
    assert_eq!(counts, Counts { read: 2, processed: 1, conflicts: 1, ..Counts::default() });
}

#[tokio::test]
async fn inserts_happen_once_and_not_for_conflicts() {
    let db = Db::dynamodb().await;
    table(&db, 3).await;
    db.run("CREATE TABLE log (visit BIGINT PRIMARY KEY, note TEXT)").await;
    let scope = db.scope(HANDLER).await;
    let items = read(&db, &scope, 1..=3).await;
    db.run("UPDATE t SET version = version + 1 WHERE id = 3").await;
    let change = |id: i64| {
        let row = [("visit", Value::Int(id)), ("note", "it's".into())];
        Change::default().set("kind", 0).insert("log", row)
    };
    let writes: Vec<WriteItem> =
        items.iter().cloned().zip(1..).map(|(read, id)| item(read, change(id))).collect();
    let ledger = db.fenced(1).await;
    let done = db.data.commit(&scope, &ledger, write(writes.clone())).await.unwrap().ledger;
    let counts = Counts { read: 3, processed: 2, conflicts: 1, ..Counts::default() };
    assert_eq!(done.counts, counts);
    // Once more, as after an answer that was lost: the ledger refuses it.
    let again = db.data.commit(&scope, &ledger, write(writes)).await.unwrap_err();
    assert!(matches!(again, DataError::LeaseLost), "{again}");
    assert_eq!(
        db.rows("SELECT visit, note FROM log ORDER BY visit").await,
        [["1", "it's"], ["2", "it's"]]
    );
    // A row with this key is there: refused, and nothing of the commit is kept.
    let items = read(&db, &scope, 1..=2).await;
    let mut writes: Vec<WriteItem> = items.into_iter().map(|read| item(read, change(9))).collect();
    writes[1].change = change(1);
    let error = db.data.commit(&scope, &done, write(writes)).await.unwrap_err();
    assert_eq!(error.class(), Some(Class::Data), "{error}");
    assert!(error.to_string().contains("`log`"), "{error}");
    assert_eq!(db.number("SELECT count(*) FROM log").await, 2);
    assert_eq!(db.fence(done.chunk, 1, false).await.unwrap(), done);
}

#[tokio::test]
async fn what_cannot_be_written_is_the_items_own() {
    let db = Db::dynamodb().await;
    table(&db, 1).await;
    db.run("CREATE TABLE log (visit BIGINT PRIMARY KEY)").await;
    let toml = format!("{HANDLER}\nsource.filters = {{ kinds = \"kind\" }}");
    let scope = db.scope(&toml).await;
    let read = read(&db, &scope, 1..=1).await.remove(0);
    for (change, expected) in [
        (Change::default().set("id", 9), "move into another chunk"),
        (Change::default().set("kind", 9), "move into another chunk"),
        (Change::default().set("version", 9), "Windlass's to raise"),
        (Change::default().set("v", f64::NAN), "no number NaN"),
        (
            Change::default().insert("log", [("w", Value::Int(1))]),
            "key `visit` of `log` is missing",
        ),
    ] {
        let ledger = db.fenced(1).await;
        let one = || item(read.clone(), change.clone());
        let error = db.data.commit(&scope, &ledger, write(vec![one()])).await.unwrap_err();
        assert_eq!(error.class(), Some(Class::Data), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(db.data.try_write(&scope, one()).await.is_err());
    }
    let change = Change::default().insert("missing", [("w", Value::Int(1))]);
    let ledger = db.fenced(1).await;
    let error = db.data.commit(&scope, &ledger, write(vec![item(read, change)])).await;
    assert_eq!(error.unwrap_err().class(), Some(Class::Definition));
    assert_eq!(db.number("SELECT version FROM t").await, 1);
}

#[tokio::test]
async fn a_commit_has_a_hundred_actions_and_no_more() {
    let db = Db::dynamodb().await;
    table(&db, 100).await;
    let scope = db.scope(HANDLER).await;
    assert_eq!(db.data.most_items(), 99);
    let items = read(&db, &scope, 1..=100).await;
    let writes = |count: usize| {
        let some = items.iter().take(count).cloned();
        some.map(|read| item(read, Change::default().set("kind", 7))).collect::<Vec<_>>()
    };
    let ledger = db.fenced(1).await;
    let before = db.tables().requests("TransactWriteItems");
    let error = db.data.commit(&scope, &ledger, write(writes(100))).await.unwrap_err();
    // An error of the data, so that the engine halves the batch; and nothing was asked for it.
    assert_eq!(error.class(), Some(Class::Data), "{error}");
    assert_eq!(db.tables().requests("TransactWriteItems"), before);
    let counts = db.data.commit(&scope, &ledger, write(writes(99))).await.unwrap().ledger.counts;
    assert_eq!(counts.processed, 99);
    assert_eq!(db.tables().requests("TransactWriteItems"), before + 1);
    assert_eq!(db.number("SELECT count(*) FROM t WHERE version = 2").await, 99);
}

#[tokio::test]
async fn emitted_rows_are_there_once_and_in_order() {
    let db = Db::dynamodb().await;
    table(&db, 30).await;
    let scope = db.scope(HANDLER).await;
    let ledger = db.fenced(1).await;
    let emit = |read: windlass_data::Item| {
        let row = |n: i64| [("n".to_owned(), Value::Int(n))].into_iter().collect();
        let change = Change { emit: vec![row(1), row(2)], ..Change::default() };
        let change = windlass_data::keep_emitted(change, ledger.chunk, &read.key);
        item(read, change)
    };
    let writes = read(&db, &scope, 1..=30).await.into_iter().map(emit).collect();
    db.data.commit(&scope, &ledger, write(writes)).await.unwrap();
    let (mut after, mut seen) = (windlass_data::FIRST, Vec::new());
    loop {
        let page = db.data.emitted(ledger.chunk.job, &after, 7).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.place.clone();
        seen.extend(page.into_iter().map(|row| row.place));
    }
    assert_eq!(seen.len(), 60);
    assert!(seen.is_sorted() && seen.iter().collect::<HashSet<_>>().len() == 60);
    assert_eq!(db.data.discard(ledger.chunk.job).await.unwrap(), 60);
    assert_eq!(db.data.prune(ledger.chunk.job).await.unwrap(), 1);
}

/// AWS gives these; moto never does.
#[tokio::test]
async fn busy_is_waited_out_and_is_no_conflict() {
    let db = Db::dynamodb().await;
    table(&db, 3).await;
    let scope = db.scope(HANDLER).await;
    let items = read(&db, &scope, 1..=3).await;
    let mut ledger = db.fenced(1).await;
    let reasons = |code: &str| {
        format!(
            "\"CancellationReasons\":[{{\"Code\":\"None\"}},{{\"Code\":\"{code}\"}},{{\"Code\":\"None\"}}]"
        )
    };
    for code in ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"] {
        let items = read(&db, &scope, 1..=3).await;
        let writes = items.into_iter().map(|read| item(read, Change::default().set("kind", 7)));
        db.tables().fail_with(
            "TransactWriteItems",
            3,
            "TransactionCanceledException",
            &reasons(code),
        );
        let before = ledger.counts;
        ledger = db.data.commit(&scope, &ledger, write(writes.collect())).await.unwrap().ledger;
        assert_eq!((ledger.counts.processed - before.processed, ledger.counts.conflicts), (3, 0));
    }
    db.tables().fail_before("TransactWriteItems", 2, "ThrottlingException");
    let nothing = Commit { cursor: Cursor::Start, ..effect(Effect::Nothing) };
    let sent = db.tables().requests("TransactWriteItems");
    let ledger = db.data.commit(&scope, &ledger, nothing).await.unwrap().ledger;
    assert_eq!(db.tables().requests("TransactWriteItems") - sent, 3);
    // The ledger's condition comes first, whatever else there is.
    let lost = "\"CancellationReasons\":[{\"Code\":\"ConditionalCheckFailed\"},{\"Code\":\"TransactionConflict\"}]";
    db.tables().fail_with("TransactWriteItems", 1, "TransactionCanceledException", lost);
    let stale = vec![item(items[0].clone(), Change::default().set("kind", 1))];
    let error = db.data.commit(&scope, &ledger, write(stale)).await.unwrap_err();
    assert!(matches!(error, DataError::LeaseLost), "{error}");
}

#[tokio::test]
async fn a_refused_item_is_an_error_of_the_data() {
    let db = Db::dynamodb().await;
    table(&db, 1).await;
    let scope = db.scope(HANDLER).await;
    let read = read(&db, &scope, 1..=1).await.remove(0);
    let ledger = db.fenced(1).await;
    let reasons = "\"CancellationReasons\":[{\"Code\":\"None\"},{\"Code\":\"ValidationError\",\"Message\":\"Item size has exceeded the maximum allowed size\"}]";
    db.tables().fail_with("TransactWriteItems", 1, "TransactionCanceledException", reasons);
    let commit = write(vec![item(read, Change::default().set("kind", 1))]);
    let error = db.data.commit(&scope, &ledger, commit).await.unwrap_err();
    assert_eq!(error.class(), Some(Class::Data), "{error}");
    assert!(error.to_string().contains("Item size"), "{error}");
}

/// The answer to a transaction is lost: the class says that nobody knows, and the ledger does.
#[tokio::test]
async fn an_ambiguous_commit_is_found_out_by_fencing_again() {
    let db = Db::dynamodb().await;
    table(&db, 3).await;
    let scope = db.scope(REFRESH).await;
    let ledger = db.fenced(1).await;
    let work = || effect(Effect::Statement(Extent::keys((1..=3).map(key).collect())));
    for (happened, after) in [(false, 3), (true, 6)] {
        match happened {
            true => db.tables().fail_after("TransactWriteItems", 1, "InternalServerError"),
            false => db.tables().fail_before("TransactWriteItems", 1, "InternalServerError"),
        }
        let sent = db.tables().requests("TransactWriteItems");
        let error = db.data.commit(&scope, &ledger, work()).await.unwrap_err();
        assert_eq!(error.class(), Some(Class::Connection), "{error}");
        assert_eq!(db.tables().requests("TransactWriteItems") - sent, 1, "it is sent once");
        let seen = db.fence(ledger.chunk, ledger.epoch, false).await.unwrap();
        assert_eq!(seen.commits - ledger.commits, i64::from(happened));
        assert_eq!(db.number("SELECT sum(version) FROM t").await, after);
    }
    let error = db.data.commit(&scope, &ledger, work()).await.unwrap_err();
    assert!(matches!(error, DataError::LeaseLost), "{error}");
    assert_eq!(db.number("SELECT sum(version) FROM t").await, 6);
}

#[tokio::test]
async fn throttling_is_backed_off_everywhere() {
    let db = Db::dynamodb().await;
    table(&db, 30).await;
    let scope = db.scope(HANDLER).await;
    for operation in ["Scan", "BatchGetItem", "GetItem", "UpdateItem", "Query"] {
        db.tables().fail_before(operation, 3, "ProvisionedThroughputExceededException");
    }
    let found = walked(&db, &scope, Some(Share { number: 0, of: 1 }), None, 50, 9).await;
    assert_eq!(found.len(), 30);
    assert_eq!(read(&db, &scope, 1..=30).await.len(), 30);
    let ledger = db.fenced(1).await;
    assert!(db.data.held(ledger.chunk, HeldState::Retry, None, 10).await.unwrap().is_empty());
    // A table that stays busy is told as that: nothing failed, and nothing is known to be wrong.
    db.tables().fail_before("BatchGetItem", 1000, "ThrottlingException");
    let extent = Extent::keys(vec![key(1)]);
    let error = db.data.read(&scope, &extent, 10, usize::MAX).await.unwrap_err();
    assert_eq!(error.class(), Some(Class::Busy), "{error}");
}

#[tokio::test]
async fn what_is_described_and_what_is_refused() {
    let db = Db::dynamodb().await;
    table(&db, 5).await;
    assert_eq!(db.data.tables().await.unwrap(), ["t"]);
    let problems = async |toml: &str| {
        let mut job_type = job_type(toml);
        let table = db.data.describe(&job_type.source).await.unwrap();
        fit(&mut job_type, &table).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (toml, expected) in [
        ("step.sql = \"DELETE FROM t WHERE {chunk}\"", "runs no statements"),
        ("step.map = \"SELECT 1 FROM {source} WHERE {chunk}\"", "runs no statements"),
        ("step.refresh = true", "step.version"),
        (
            "step.refresh = true\nstep.version = \"version\"\nsource.where = \"kind = 1\"",
            "source.where",
        ),
        (
            "step.refresh = true\nstep.version = \"version\"\nsource.key = [\"kind\"]",
            "the key of `t` is (id)",
        ),
        (
            "step.refresh = true\nstep.version = \"version\"\nsource.filters = { names = \"name\" }",
            "a global secondary index with it would do",
        ),
        (
            "step.handler = \"h\"\nstep.version = \"v\"\nreduce = \"SELECT 1 n FROM parts\"\nreport = { to = \"file:x.csv\" }",
            "reduce_in",
        ),
    ] {
        let found = problems(&format!("source.table = \"t\"\n{toml}")).await;
        assert!(found.len() == 1 && found[0].contains(expected), "{toml}: {found:?}");
    }
    for toml in [
        HANDLER,
        REFRESH,
        "source.table = \"t\"\nstep.export = { to = \"file:x/\", format = \"csv\" }",
    ] {
        assert_eq!(problems(toml).await, Vec::<String>::new());
    }
    let query = job_type("source.query = \"SELECT 1\"\nsource.key = [\"a\"]\nstep.handler = \"h\"");
    let error = db.data.describe(&query.source).await.unwrap_err();
    assert!(error.to_string().contains("source.query"), "{error}");
    let missing = job_type("source.table = \"none\"\nstep.handler = \"h\"\nstep.version = \"v\"");
    let error = db.data.describe(&missing.source).await.unwrap_err();
    assert_eq!(error.class(), Some(Class::Definition), "{error}");
    assert!(error.to_string().contains("`none`"), "{error}");
}

#[tokio::test]
async fn without_rights_or_without_a_server() {
    let moto = windlass_testkit::Moto::start();
    let tables = moto.dynamodb();
    let data = connect(&tables.url(), 4).await.unwrap();
    for operation in ["CreateTable", "ListTables"] {
        tables.fail_before(operation, 1, "AccessDeniedException");
    }
    let error = data.prepare().await.unwrap_err();
    assert!(error.to_string().contains("windlass migrate --print"), "{error}");
    let error = data.tables().await.unwrap_err();
    assert_eq!(error.class(), Some(Class::Permission), "{error}");
    drop(moto);
    let error = data.tables().await.unwrap_err();
    assert_eq!(error.class(), Some(Class::Connection), "{error}");
}
