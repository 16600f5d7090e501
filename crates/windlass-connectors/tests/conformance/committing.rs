//! A statement, its counts and the ledger row are committed in one transaction.

use crate::harness::{Db, effect, everything, key, on_every_backend};
use serde_json::json;
use windlass_connectors::{ConnectorError, Effect, Scope};
use windlass_core::{Counts, Cursor, Identity, KeySet, Request};
use windlass_drivers::ErrorClass;

on_every_backend!(
    affected_rows_count_as_processed_and_others_as_skipped,
    rows_of_another_table_do_not_count_as_items,
    an_unchanged_row_counts_as_processed,
    keys_without_a_record_are_skipped,
    refresh_raises_every_version,
    params_with_any_content_are_bound,
    a_joined_statement_is_restricted_by_its_alias,
    a_query_restricts_by_its_keys,
    a_bad_row_rolls_everything_back,
    a_wrong_statement_is_a_definition_error,
    several_commands_are_refused,
    a_preview_changes_nothing,
);

async fn table(db: &Db, rows: i64) {
    db.run("CREATE TABLE t (id BIGINT PRIMARY KEY, v INT, name TEXT, version INT NOT NULL)").await;
    let values: Vec<String> = (1..=rows).map(|n| format!("({n}, {n}, 'n{n}', 1)")).collect();
    db.run(&format!("INSERT INTO t VALUES {}", values.join(", "))).await;
}

fn toml(sql: &str) -> String {
    format!("source.table = \"t\"\nstep.sql = '''{sql}'''")
}

async fn affected_rows_count_as_processed_and_others_as_skipped(db: Db) {
    table(&db, 10).await;
    let scope = db.scope(&toml("UPDATE t SET v = 100 WHERE {chunk} AND v % 2 = 0")).await;
    let ledger = db.fenced(1).await;
    let mut commit = effect(Effect::Statement(KeySet::range(Some(key(2)), Some(key(8)))));
    commit.cursor = Cursor::Key(key(8));
    let ledger = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger;
    let counts = Counts { read: 6, processed: 3, skipped: 3, ..Counts::default() };
    assert_eq!(
        (ledger.counts, ledger.cursor.clone(), ledger.commits),
        (counts, Cursor::Key(key(8)), 1)
    );
    assert_eq!(db.number("SELECT count(*) FROM t WHERE v = 100").await, 3);
    // The next commit adds to the counts.
    let commit = effect(Effect::Statement(KeySet::range(Some(key(8)), None)));
    let ledger = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger;
    let counts = Counts { read: 8, processed: 4, skipped: 4, ..Counts::default() };
    assert_eq!((ledger.counts, &ledger.cursor), (counts, &Cursor::End));
    assert_eq!(db.fence(ledger.chunk, 1, false).await.unwrap(), ledger);
}

/// Commits the statement on these keys as the first of a chunk, and returns its counts.
async fn counts(db: &Db, scope: &Scope, key_set: KeySet) -> Counts {
    let ledger = db.fenced(1).await;
    let commit = effect(Effect::Statement(key_set));
    db.data.commit(scope, &ledger, commit).await.unwrap().ledger.counts
}

async fn rows_of_another_table_do_not_count_as_items(db: Db) {
    table(&db, 10).await;
    db.run("CREATE TABLE other (id BIGINT, v INT)").await;
    for _ in 0..3 {
        db.run("INSERT INTO other SELECT id, 0 FROM t").await;
    }
    let sql = "UPDATE other SET v = 1 WHERE id IN (SELECT id FROM t WHERE {chunk})";
    let (scope, ledger) = (db.scope(&toml(sql)).await, db.fenced(1).await);
    let commit = effect(Effect::Statement(everything()));
    let counts = db.data.commit(&scope, &ledger, commit).await.unwrap().ledger.counts;
    assert_eq!(counts, Counts { read: 10, processed: 10, ..Counts::default() });
    assert_eq!(db.number("SELECT sum(v) FROM other").await, 30);
}

async fn an_unchanged_row_counts_as_processed(db: Db) {
    table(&db, 4).await;
    for _ in 0..2 {
        let scope = db.scope(&toml("UPDATE t SET v = 7 WHERE {chunk} AND id > 1")).await;
        let counts = counts(&db, &scope, everything()).await;
        assert_eq!(counts, Counts { read: 4, processed: 3, skipped: 1, ..Counts::default() });
    }
}

async fn keys_without_a_record_are_skipped(db: Db) {
    table(&db, 3).await;
    let scope = db.scope(&toml("UPDATE t SET v = 100 WHERE {chunk}")).await;
    let counts = counts(&db, &scope, KeySet::keys(vec![key(1), key(77), key(3)])).await;
    assert_eq!(counts, Counts { read: 3, processed: 2, skipped: 1, ..Counts::default() });
}

async fn refresh_raises_every_version(db: Db) {
    table(&db, 5).await;
    let scope = db
        .scope("source.table = \"t\"\nsource.where = \"v > 1\"\nstep.refresh = true\nstep.version = \"version\"")
        .await;
    let counts = counts(&db, &scope, everything()).await;
    assert_eq!(counts, Counts { read: 4, processed: 4, ..Counts::default() });
    assert_eq!(db.number("SELECT sum(version) FROM t").await, 9);
}

async fn params_with_any_content_are_bound(db: Db) {
    table(&db, 2).await;
    let sql =
        "UPDATE t SET name = :name, v = v + :more WHERE {chunk} AND name <> ':name' AND v < :most";
    let evil = "'; DROP TABLE t; -- \" \\ {chunk} :x";
    let params = [("name", json!(evil)), ("more", json!(5)), ("most", json!("100"))];
    let params = params.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let request = Request { params, ..Request::new("J") };
    let scope = db.scope_for(&toml(sql), request, Identity::default()).await;
    let ledger = db.fenced(1).await;
    db.data.commit(&scope, &ledger, effect(Effect::Statement(everything()))).await.unwrap();
    let rows = db.rows("SELECT name, v FROM t ORDER BY id").await;
    assert_eq!(rows, [[evil, "6"], [evil, "7"]]);
}

async fn a_joined_statement_is_restricted_by_its_alias(db: Db) {
    table(&db, 4).await;
    db.run("CREATE TABLE rates (id BIGINT PRIMARY KEY, rate INT)").await;
    db.run("INSERT INTO rates VALUES (1, 10), (2, 20), (3, 30), (4, 40)").await;
    let sql = "UPDATE t AS V SET v = rates.rate FROM rates WHERE rates.id = V.id AND {chunk:V}";
    let maria = "UPDATE t AS V JOIN rates ON rates.id = V.id SET V.v = rates.rate WHERE {chunk:V}";
    let scope = db.scope(&toml(db.pick(sql, sql, maria))).await;
    let ledger = db.fenced(1).await;
    let key_set = KeySet::range(Some(key(1)), Some(key(3)));
    db.data.commit(&scope, &ledger, effect(Effect::Statement(key_set))).await.unwrap();
    assert_eq!(db.rows("SELECT v FROM t ORDER BY id").await, [["1"], ["20"], ["30"], ["4"]]);
}

async fn a_query_restricts_by_its_keys(db: Db) {
    table(&db, 6).await;
    let sql = "UPDATE t SET name = 'seen' FROM (SELECT id AS number FROM t) AS q \
               WHERE q.number = t.id AND {chunk:q}";
    let maria = "UPDATE t JOIN (SELECT id AS number FROM t) AS q ON q.number = t.id \
                 SET t.name = 'seen' WHERE {chunk:q}";
    let toml = format!(
        "source.query = \"SELECT id AS number, v FROM t\"\nsource.key = [\"number\"]\n\
         source.where = \"v <> 3\"\nstep.sql = \"{}\"",
        db.pick(sql, sql, maria)
    );
    let scope = db.scope(&toml).await;
    let ledger = db.fenced(1).await;
    let key_set = KeySet::range(Some(key(1)), Some(key(4)));
    let counts = db
        .data
        .commit(&scope, &ledger, effect(Effect::Statement(key_set)))
        .await
        .unwrap()
        .ledger
        .counts;
    assert_eq!(counts, Counts { read: 2, processed: 2, ..Counts::default() });
    assert_eq!(db.rows("SELECT id FROM t WHERE name = 'seen' ORDER BY id").await, [["2"], ["4"]]);
}

async fn a_bad_row_rolls_everything_back(db: Db) {
    table(&db, 5).await;
    db.run("CREATE TABLE small (id BIGINT, v INT CHECK (v < 5))").await;
    let scope = db.scope(&toml("INSERT INTO small SELECT id, v FROM t WHERE {chunk}")).await;
    let ledger = db.fenced(1).await;
    let mut commit = effect(Effect::Statement(everything()));
    commit.defer.push(crate::deferred_items::deferred(9));
    let error = db.data.commit(&scope, &ledger, commit).await.unwrap_err();
    assert_eq!(error.class(), Some(ErrorClass::Data), "{error}");
    assert_eq!(db.number("SELECT count(*) FROM small").await, 0);
    assert_eq!(db.number("SELECT count(*) FROM windlass_deferred").await, 0);
    assert_eq!(db.fence(ledger.chunk, 1, false).await.unwrap(), ledger);
    // Each half is a separate commit, and the good half succeeds.
    let half = effect(Effect::Statement(KeySet::range(None, Some(key(4)))));
    let counts = db.data.commit(&scope, &ledger, half).await.unwrap().ledger.counts;
    assert_eq!(counts, Counts { read: 4, processed: 4, ..Counts::default() });
}

async fn a_wrong_statement_is_a_definition_error(db: Db) {
    table(&db, 1).await;
    for sql in ["UPDATE t SET nothing = 1 WHERE {chunk}", "UPDATE t SETT v = 1 WHERE {chunk}"] {
        let scope = db.scope(&toml(sql)).await;
        let ledger = db.fenced(1).await;
        let commit = effect(Effect::Statement(everything()));
        let error = db.data.commit(&scope, &ledger, commit).await.unwrap_err();
        assert_eq!(error.class(), Some(ErrorClass::Definition), "{error}");
    }
}

async fn several_commands_are_refused(db: Db) {
    table(&db, 1).await;
    let scope = db.scope(&toml("UPDATE t SET v = 9 WHERE {chunk}; DELETE FROM t")).await;
    let ledger = db.fenced(1).await;
    let commit = effect(Effect::Statement(everything()));
    let error = db.data.commit(&scope, &ledger, commit).await.unwrap_err();
    assert_eq!(error.class(), Some(ErrorClass::Definition), "{error}");
    assert_eq!(db.number("SELECT sum(v) FROM t").await, 1);
}

async fn a_preview_changes_nothing(db: Db) {
    table(&db, 50).await;
    let text = "source.table = \"t\"\nsource.where = \"v > 10\"\n\
                step.sql = \"UPDATE t SET v = 0, version = version + 1 WHERE {chunk}\"";
    let scope = db.scope(text).await;
    let before = db.rows("SELECT * FROM t ORDER BY id").await;
    let previews = db.data.preview(&scope, &everything()).await.unwrap();
    assert_eq!(db.rows("SELECT * FROM t ORDER BY id").await, before);
    assert_eq!(previews.len(), 20);
    for preview in &previews {
        let after = preview.after.as_ref().unwrap();
        assert_ne!(preview.before.get("v"), Some(&0.into()));
        assert_eq!((after.get("v"), after.get("version")), (Some(&0.into()), Some(&2.into())));
    }
    let scope = db.scope(&toml("DELETE FROM t WHERE {chunk}")).await;
    let previews = db.data.preview(&scope, &everything()).await.unwrap();
    assert!(previews.iter().all(|preview| preview.after.is_none()));
    assert_eq!(db.number("SELECT count(*) FROM t").await, 50);
    let scope = db.scope(&toml("UPDATE t SET nothing = 1 WHERE {chunk}")).await;
    let error = db.data.preview(&scope, &everything()).await.unwrap_err();
    assert!(matches!(error, ConnectorError::Database(_)));
}

/// The answer to a COMMIT is lost: the error class tells that the outcome is unknown, and the ledger has it.
#[tokio::test]
async fn fencing_again_resolves_an_ambiguous_commit() {
    let db = Db::postgres().await;
    table(&db, 3).await;
    let server = windlass_testkit::PostgresServer::shared();
    let proxy = windlass_testkit::Proxy::start(server.addr()).await;
    let data = windlass_connectors::connect(&proxy.url_via(db.database().url()), 2).await.unwrap();
    let scope = db.scope(&toml("UPDATE t SET v = v + 1 WHERE {chunk}")).await;
    let ledger = db.fenced(1).await;
    for (happened, before, after) in [(false, 6, 6), (true, 6, 9)] {
        assert_eq!(db.number("SELECT sum(v) FROM t").await, before);
        match happened {
            true => proxy.cut_after_commit_of("windlass_ledger"),
            false => proxy.cut_before_commit_of("windlass_ledger"),
        }
        let commit = effect(Effect::Statement(everything()));
        let error = data.commit(&scope, &ledger, commit).await.unwrap_err();
        assert_eq!(error.class(), Some(ErrorClass::Connection), "{error}");
        let seen = db.fence(ledger.chunk, ledger.epoch, false).await.unwrap();
        assert_eq!(seen.commits - ledger.commits, i64::from(happened));
        assert_eq!(db.number("SELECT sum(v) FROM t").await, after);
    }
    let again = effect(Effect::Statement(everything()));
    let error = data.commit(&scope, &ledger, again).await.unwrap_err();
    assert!(matches!(error, ConnectorError::LeaseLost), "{error}");
}
