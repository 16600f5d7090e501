//! PostgreSQL finds the records of a chunk by the index of a key of several columns, wherever in the table they are. It
//! expects a quarter of the table between two comparisons of rows, and would read all of it for each chunk.

use crate::harness::{Db, effect};
use std::time::Duration;
use windlass_connectors::Effect;
use windlass_core::{Key, KeySet, Value};
use windlass_testkit::{PostgresServer, eventually};

/// How long the server may take to count what was read.
const LIMIT: Duration = Duration::from_secs(60);

/// What the server has read of the table.
struct Reads {
    /// How often it read the whole table.
    whole: i64,
    /// Entries of the index that it found.
    entries: i64,
    /// Blocks of the index that it read.
    blocks: i64,
}

/// A table of 40,000 rows of 400 bytes with the key `(a, b)`, in no order. The server has little memory to sort and to
/// collect rows, as for a much larger table.
async fn table(keys: &str) -> Db {
    let database = PostgresServer::shared().database().await;
    database.run(&format!("ALTER DATABASE {} SET work_mem = '64kB'", database.name())).await;
    let db = Db::postgres_on(database).await;
    db.run("CREATE TABLE lines (a int, b int, n int DEFAULT 0, filler text, PRIMARY KEY (a, b))")
        .await;
    db.run(&format!(
        "INSERT INTO lines (a, b, filler) SELECT {keys}, repeat('x', 350) FROM generate_series(0, 39999) i
         ORDER BY hashint4(i)"
    ))
    .await;
    db.run("VACUUM ANALYZE lines").await;
    db
}

async fn reads(db: &Db) -> Reads {
    let reads = "SELECT seq_scan, idx_tup_read, idx_blks_read + idx_blks_hit
                 FROM pg_stat_user_tables AS t JOIN pg_stat_user_indexes USING (relid)
                     JOIN pg_statio_user_indexes USING (indexrelid)
                 WHERE t.relname = 'lines'";
    let row = db.rows(reads).await.remove(0);
    let [whole, entries, blocks] = [0, 1, 2].map(|column: usize| row[column].parse().unwrap());
    Reads { whole, entries, blocks }
}

/// The records after a key and up to another one.
fn chunk(after: [i64; 2], upto: [i64; 2]) -> KeySet {
    let key = |parts: [i64; 2]| Some(Key(parts.map(Value::Int).to_vec()));
    KeySet::range(key(after), key(upto))
}

/// Reads and updates chunks, each of which has this number of records. Returns how many blocks of the index were read
/// only to read the chunks. Fails if the whole table is read.
async fn blocks_read(db: &Db, chunks: &[(KeySet, i64)]) -> i64 {
    let map = "step.map = 'SELECT count(n) AS n FROM {source} WHERE {chunk}'";
    let update = "step.sql = 'UPDATE lines SET n = n + 1 WHERE {chunk}'";
    let all: i64 = chunks.iter().map(|(_, records)| records).sum();
    let mut blocks = Vec::new();
    for step in [map, update] {
        let scope = db.scope(&format!("source.table = \"lines\"\n{step}")).await;
        let columns = match scope.job_type.step.kind.makes_parts() {
            true => db.data.map_columns(&scope).await.unwrap(),
            false => Vec::new(),
        };
        let before = reads(db).await;
        for (epoch, (chunk, records)) in (1..).zip(chunks) {
            let found = if step == map {
                db.data.map(&scope, &columns, chunk).await.unwrap().read
            } else {
                let ledger = db.fenced(epoch).await;
                let commit = effect(Effect::Statement(chunk.clone()));
                let committed = db.data.commit(&scope, &ledger, commit).await.unwrap();
                committed.ledger.counts.processed - ledger.counts.processed
            };
            assert_eq!(found, *records, "{step}: {chunk:?}");
        }
        // The server counts a little later.
        let mut after = reads(db).await;
        eventually("the reads are counted", LIMIT, async || {
            after = reads(db).await;
            after.whole > before.whole || after.entries >= before.entries + all
        })
        .await;
        assert_eq!(after.whole, before.whole, "{step}: the whole table was read");
        blocks.push(after.blocks - before.blocks);
    }
    blocks[0]
}

#[tokio::test]
async fn postgres_finds_chunks_of_a_key_of_several_columns_by_its_index() {
    let db = table("i / 4, i % 4").await;
    let chunks = [
        (chunk([2000, 3], [2025, 3]), 100),
        (chunk([5000, 1], [5025, 3]), 102),
        (chunk([8000, 0], [8000, 2]), 2),
    ];
    blocks_read(&db, &chunks).await;
}

/// The first column has few values, as the number of a tenant.
#[tokio::test]
async fn postgres_reads_the_index_only_from_the_first_to_the_last_record_of_a_chunk() {
    let db = table("i % 2, i / 2").await;
    let chunks = [
        (chunk([0, 100], [0, 200]), 100),
        (chunk([0, 10_000], [0, 10_100]), 100),
        (chunk([1, 1000], [1, 1050]), 50),
    ];
    // The 20,000 entries of a value of the first column fill more blocks than this.
    let blocks = blocks_read(&db, &chunks).await;
    assert!(blocks <= 50, "{blocks} blocks of the index were read");
}
