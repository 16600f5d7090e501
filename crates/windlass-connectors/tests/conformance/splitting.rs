//! Ranges cover the source and have similar sizes, for keys of any type.

use crate::harness::{Db, Random, on_every_backend};
use windlass_connectors::Scope;
use windlass_core::{KeyRange, KeySet, Keys};

on_every_backend!(
    negative_integers,
    skewed_integers,
    two_columns,
    uuids,
    numerics,
    timestamps,
    bytes,
    odd_text,
    an_empty_table_has_no_ranges,
    a_small_table_has_few_ranges,
    a_query_is_one_range,
);

const ROWS: u64 = 3000;

async fn negative_integers(db: Db) {
    check(&db, "k BIGINT", "k", 0.5, |_, n| format!("({})", n as i64 * 7 - 9000)).await;
}

async fn skewed_integers(db: Db) {
    // Half of the rows are in a hundredth of the span. SQLite samples evenly spaced rowids, and the key here is not
    // the rowid.
    check(&db, "k BIGINT", "k", 0.5, |_, n| match n < ROWS / 2 {
        true => format!("({n})"),
        false => format!("({})", n * n),
    })
    .await;
}

async fn two_columns(db: Db) {
    check(&db, "day DATE, name TEXT", "day, name", 0.5, |_, n| {
        format!("('2025-{:02}-{:02}', 'n{}')", n % 12 + 1, n / 12 % 28 + 1, n)
    })
    .await;
}

async fn uuids(db: Db) {
    let kind = db.pick("k UUID", "k TEXT", "k UUID");
    check(&db, kind, "k", 0.5, |_, n| {
        let mut random = Random(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
        let high = u128::from(random.below(u64::MAX)) << 64;
        format!("('{}')", uuid::Uuid::from_u128(high | u128::from(n)))
    })
    .await;
}

async fn numerics(db: Db) {
    let kind = db.pick("k NUMERIC(12, 2)", "k NUMERIC", "k NUMERIC(12, 2)");
    check(&db, kind, "k", 0.5, |_, n| format!("({}.{:02})", n as i64 - 1500, n % 100)).await;
}

async fn timestamps(db: Db) {
    let kind = db.pick("k TIMESTAMPTZ", "k TEXT", "k TIMESTAMP(6)");
    check(&db, kind, "k", 0.5, |db, n| {
        let zone = db.pick("+00", "+00", "");
        format!("('2025-01-{:02} {:02}:{:02}:00.{:06}{zone}')", n % 28 + 1, n / 28 % 24, n % 60, n)
    })
    .await;
}

async fn bytes(db: Db) {
    let kind = db.pick("k BYTEA", "k BLOB", "k VARBINARY(20)");
    let postgres = db.is_postgres();
    check(&db, kind, "k", 0.5, move |_, n| {
        let hex = format!("{:08x}", (n as u32).wrapping_mul(2_654_435_761));
        if postgres { format!("('\\x{hex}')") } else { format!("(x'{hex}')") }
    })
    .await;
}

async fn odd_text(db: Db) {
    let kind = db.pick(
        "k TEXT COLLATE \"und-x-icu\"",
        "k TEXT COLLATE NOCASE",
        "k VARCHAR(50) COLLATE utf8mb4_swedish_ci",
    );
    let odd = ["a", "B", "ä", "ß", "''", "\"", "%", "\\", "{chunk}", ":x", "日本", "z "];
    check(&db, kind, "k", 0.5, move |_, n| {
        let odd = odd[n as usize % odd.len()];
        format!("('{odd}{}')", n / 12)
    })
    .await;
}

async fn an_empty_table_has_no_ranges(db: Db) {
    db.run("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT)").await;
    let scope = db.scope(SQL).await;
    assert_eq!(db.data.split(&scope, 10).await.unwrap(), []);
}

async fn a_small_table_has_few_ranges(db: Db) {
    db.run("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 1)")
        .await;
    let scope = db.scope(SQL).await;
    let ranges = db.data.split(&scope, 10).await.unwrap();
    assert!((1..=2).contains(&ranges.len()), "{ranges:?}");
    tiles(&db, &scope, &ranges).await;
}

async fn a_query_is_one_range(db: Db) {
    db.run("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1), (2, 1)")
        .await;
    let toml = "source.query = \"SELECT k, v FROM t -- all\"\nsource.key = [\"k\"]\n\
                step.sql = \"UPDATE t SET v = 2 WHERE {chunk}\"";
    let scope = db.scope(toml).await;
    let ranges = db.data.split(&scope, 10).await.unwrap();
    assert_eq!(ranges.len(), 1);
    tiles(&db, &scope, &ranges).await;
}

const SQL: &str = "source.table = \"t\"\nstep.sql = \"UPDATE t SET v = 2 WHERE {chunk}\"";

/// Fills a table in random order, splits it, and checks the ranges.
async fn check(
    db: &Db,
    columns: &str,
    key: &str,
    tolerance: f64,
    row: impl Fn(&Db, u64) -> String,
) {
    db.run(&format!("CREATE TABLE t ({columns}, PRIMARY KEY ({key}))")).await;
    let mut order: Vec<u64> = (0..ROWS).collect();
    let mut random = Random(42);
    for n in (1..order.len()).rev() {
        order.swap(n, random.below(n as u64 + 1) as usize);
    }
    for part in order.chunks(500) {
        let rows: Vec<String> = part.iter().map(|n| row(db, *n)).collect();
        db.run(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    }
    db.analyze("t").await;
    let scope = db.scope(SQL_ANY).await;
    assert_eq!(scope.key().join(", "), key);
    let ranges = db.data.split(&scope, 8).await.unwrap();
    assert_eq!(ranges.len(), 8);
    let sizes = tiles(db, &scope, &ranges).await;
    let even = ROWS as f64 / 8.0;
    for size in &sizes {
        assert!((*size as f64 - even).abs() <= even * tolerance, "{sizes:?}");
    }
    crate::cutting::covers(db, &scope, &ranges, ROWS as i64).await;
}

/// A statement for any table `t`. These tests never run it.
const SQL_ANY: &str = "source.table = \"t\"\nstep.sql = \"DELETE FROM t WHERE {chunk}\"";

async fn tiles(db: &Db, scope: &Scope, ranges: &[KeyRange]) -> Vec<i64> {
    let whole = KeyRange { after: None, upto: ranges.last().unwrap().upto.clone() };
    whole.check_tiling(ranges).unwrap();
    let mut sizes = Vec::new();
    for range in ranges {
        let key_set = KeySet::new(None, Keys::Range(range.clone()));
        sizes.push(db.data.count(scope, &key_set).await.unwrap());
    }
    assert_eq!(sizes.iter().sum::<i64>(), db.number("SELECT count(*) FROM t").await);
    sizes
}
