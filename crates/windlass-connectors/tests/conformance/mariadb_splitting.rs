//! MySQL and MariaDB cannot sample a table. A large table is split by index dives, which do not read its rows.

use crate::harness::Db;
use windlass_connectors::{CutLimits, CutRange};
use windlass_core::{KeyRange, KeySet, Keys};
use windlass_testkit::MariaServer;

const ROWS: u64 = 40_000;
const SEGMENTS: u32 = 8;

/// The columns of a key, and their values for the number `n`.
const KEYS: [(&str, &str); 13] = [
    ("k BIGINT", "n * 3 - 50000"),
    ("k BIGINT UNSIGNED", "n * n * n"),
    ("k DECIMAL(30, 10)", "n * 1.0000000001 - 20000"),
    ("k DOUBLE", "n / 7"),
    ("k DATE, n INT", "DATE '2020-01-01' + INTERVAL n % 700 DAY, n"),
    ("k TIMESTAMP(6)", "TIMESTAMP '2025-01-01 00:00:00' + INTERVAL n * 37 SECOND"),
    ("k VARCHAR(40)", "CONCAT('customer-', LPAD(n * 7919 % 1000003, 7, '0'))"),
    ("k VARCHAR(40)", "CONCAT(IF(n % 2, 'K', 'k'), SUBSTRING(SHA2(n, 256), 1, 20))"),
    ("k VARCHAR(40) COLLATE utf8mb4_bin", "TO_BASE64(UNHEX(LEFT(SHA2(n, 256), 32)))"),
    ("k CHAR(36)", "INSERT(INSERT(LEFT(SHA2(n, 256), 32), 9, 0, '-'), 14, 0, '-')"),
    ("k BINARY(16)", "UNHEX(LEFT(SHA2(n, 256), 32))"),
    ("tenant INT, k VARCHAR(40)", "7, CONCAT('名前', n)"),
    ("tenant INT, k BINARY(16)", "n % 3, UNHEX(LEFT(SHA2(n, 256), 32))"),
];

#[tokio::test]
async fn a_large_table_is_split_by_any_key_without_reading_it() {
    let server = MariaServer::start();
    for (columns, values) in KEYS {
        check(&server, columns, values).await;
    }
}

#[tokio::test]
async fn a_large_table_is_split_by_uuids_without_reading_it() {
    let server = MariaServer::start();
    if server.is_mysql() {
        return; // MySQL has no such type.
    }
    // Of versions 4 and 7, which are ordered by different groups.
    let digits = |version: u32| {
        format!(
            "CONCAT(LEFT(SHA2(n, 256), 12), '{version}', SUBSTRING(SHA2(n, 256), 14, 3), 'a', RIGHT(SHA2(n, 256), 15))"
        )
    };
    for values in [digits(4), digits(7), format!("IF(n % 2, {}, {})", digits(4), digits(7))] {
        check(&server, "k UUID", &values).await;
    }
}

/// Fills a table and plans its first chunks. Together that may read a small share of the rows, and the ranges
/// have similar sizes.
async fn check(server: &MariaServer, columns: &str, values: &str) {
    let db = Db::mariadb_on(server.database().await).await;
    let names: Vec<&str> = columns.split(", ").filter_map(|c| c.split(' ').next()).collect();
    // The number in `DECIMAL(30, 10)` is no name.
    let names: Vec<&str> = names.into_iter().filter(|name| !name.ends_with(')')).collect();
    db.run(&format!("CREATE TABLE t ({columns}, PRIMARY KEY ({}))", names.join(", "))).await;
    db.run(&format!(
        "INSERT INTO t WITH RECURSIVE s (n) AS \
         (SELECT CAST(1 AS SIGNED) UNION ALL SELECT n + 1 FROM s WHERE n < {ROWS}) \
         SELECT {values} FROM s"
    ))
    .await;
    db.analyze("t").await;
    let scope = db.scope("source.table = \"t\"\nstep.sql = \"DELETE FROM t WHERE {chunk}\"").await;
    let before = rows_read(&db).await;
    let ranges = db.data.split(&scope, SEGMENTS).await.unwrap();
    let first = CutRange::new(None, &ranges[0]);
    let page = db.data.cut(&scope, first, CutLimits::new(100, 3, None)).await.unwrap();
    let read = rows_read(&db).await - before;
    assert!(!page.chunks.is_empty());
    let whole = KeyRange { after: None, upto: ranges.last().unwrap().upto.clone() };
    whole.check_tiling(&ranges).unwrap();
    let mut sizes = Vec::new();
    for range in &ranges {
        let key_set = KeySet::new(None, Keys::Range(range.clone()));
        sizes.push(db.data.count(&scope, &key_set).await.unwrap().unsigned_abs());
    }
    assert_eq!(sizes.iter().sum::<u64>(), ROWS, "{columns}");
    assert!(read < ROWS / 8, "{columns}: {read} rows read");
    let even = ROWS / u64::from(SEGMENTS);
    assert_eq!(sizes.len(), SEGMENTS as usize, "{columns}: {sizes:?}");
    assert!(sizes.iter().all(|size| (even / 2..=even * 2).contains(size)), "{columns}: {sizes:?}");
}

/// The rows that the server has read since its start, by all its connections. Nothing else uses the server.
async fn rows_read(db: &Db) -> u64 {
    let counters = db.rows("SHOW GLOBAL STATUS LIKE 'Handler_read%'").await;
    counters.iter().map(|counter| counter[1].parse::<u64>().unwrap()).sum()
}
