//! PostgreSQL finds the records of a chunk by the index of a key of several columns, wherever in the table they are. It
//! estimates the rows between two comparisons of rows as a quarter of the table, and would read all of it for each chunk.

use crate::harness::{Db, effect};
use std::time::Duration;
use windlass_connectors::Effect;
use windlass_core::{Key, KeySet, Value};
use windlass_testkit::eventually;

/// How long the server may take to count a scan.
const LIMIT: Duration = Duration::from_secs(60);

/// Rows of 400 bytes, so that reading the table costs more by its index than by its pages if many rows are expected.
const ROWS: &str = "CREATE TABLE lines (a int, b int, n int, filler text, PRIMARY KEY (a, b));
    INSERT INTO lines SELECT i / 4, i % 4, 0, repeat('x', 350) FROM generate_series(0, 19999) i";

/// How often the table was read as a whole, and how many entries of its index were read.
async fn scans(db: &Db) -> [i64; 2] {
    let scans = "SELECT seq_scan, idx_tup_read FROM pg_stat_user_tables JOIN pg_stat_user_indexes USING (relid)
                 WHERE pg_stat_user_tables.relname = 'lines'";
    let row = db.rows(scans).await.remove(0);
    [0, 1].map(|column: usize| row[column].parse().unwrap())
}

fn key(a: i64, b: i64) -> Key {
    Key(vec![Value::Int(a), Value::Int(b)])
}

/// Works these chunks, each of which has this number of rows, by a step. Fails if the table is read as a whole.
async fn found_by_index(db: &Db, step: &str, chunks: &[(KeySet, i64)]) {
    db.run("VACUUM ANALYZE lines").await;
    let source = "source.table = \"lines\"\n".to_owned();
    let scope = db.scope(&(source + step)).await;
    let [whole, entries] = scans(db).await;
    let mut rows = 0;
    for (epoch, (chunk, items)) in (1..).zip(chunks) {
        if scope.job_type.step.kind.makes_parts() {
            let columns = db.data.map_columns(&scope).await.unwrap();
            assert_eq!(db.data.map(&scope, &columns, chunk).await.unwrap().read, *items);
        } else {
            let ledger = db.fenced(epoch).await;
            let counts = db.data.commit(&scope, &ledger, effect(Effect::Statement(chunk.clone())));
            let before = ledger.counts.processed;
            assert_eq!(counts.await.unwrap().ledger.counts.processed - before, *items);
        }
        rows += items;
    }
    // The server counts a little later.
    eventually("the scans are counted", LIMIT, async || {
        let [now_whole, now_entries] = scans(db).await;
        now_whole > whole || now_entries >= entries + rows
    })
    .await;
    assert_eq!(scans(db).await[0], whole, "{step}: the table was read as a whole");
}

#[tokio::test]
async fn postgres_finds_chunks_of_a_key_of_several_columns_by_its_index() {
    let db = Db::postgres().await;
    db.run(ROWS).await;
    let chunk = |after: Key, upto: Key| KeySet::range(Some(after), Some(upto));
    let chunks = [
        (chunk(key(1000, 3), key(1025, 3)), 100),
        (chunk(key(2500, 1), key(2525, 3)), 102),
        (chunk(key(4000, 0), key(4000, 2)), 2),
    ];
    found_by_index(&db, "step.sql = 'UPDATE lines SET n = n + 1 WHERE {chunk}'", &chunks).await;
    let map = "step.map = 'SELECT count(*) AS n FROM {source} WHERE {chunk}'";
    found_by_index(&db, map, &chunks).await;
}

/// The first column has few values, as the number of a tenant, and the table is not in the order of its key.
#[tokio::test]
async fn postgres_finds_chunks_within_a_value_of_the_first_column_by_the_index() {
    let db = Db::postgres().await;
    db.run(ROWS).await;
    db.run("TRUNCATE lines").await;
    let rows = "INSERT INTO lines SELECT i % 4, i / 4, 0, repeat('x', 350) FROM generate_series(0, 19999) i";
    db.run(rows).await;
    let chunk = |after: Key, upto: Key| KeySet::range(Some(after), Some(upto));
    let chunks = [
        (chunk(key(1, 2000), key(1, 2100)), 100),
        (chunk(key(2, 3000), key(2, 3050)), 50),
        (chunk(key(0, 10), key(0, 60)), 50),
    ];
    found_by_index(&db, "step.sql = 'UPDATE lines SET n = n + 1 WHERE {chunk}'", &chunks).await;
    let map = "step.map = 'SELECT count(*) AS n FROM {source} WHERE {chunk}'";
    found_by_index(&db, map, &chunks).await;
}
