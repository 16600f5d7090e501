//! The table `lineitem`: made once, copied for every run, and checked afterwards.

use crate::setup::{Bench, settle};
use anyhow::Result;
use std::time::Duration;
use windlass_testkit::{Database, eventually};

/// The database that the runs use a copy of.
pub(super) struct Lineitem {
    original: Database,
    pub(super) rows: u64,
}

impl Lineitem {
    /// Makes the table: the columns of TPC-H, a version for optimistic locking, and points, which the backfill raises
    /// by one. Raising is not idempotent, so a row that is processed twice is wrong.
    pub(super) async fn create(bench: &Bench, rows: u64) -> Lineitem {
        let original = bench.database().await;
        original
            .run(
                "CREATE TABLE lineitem (
                     l_orderkey bigint, l_linenumber int, l_partkey bigint NOT NULL, l_suppkey bigint NOT NULL,
                     l_quantity numeric(15,2) NOT NULL, l_extendedprice numeric(15,2) NOT NULL,
                     l_discount numeric(15,2) NOT NULL, l_tax numeric(15,2) NOT NULL,
                     l_returnflag char(1) NOT NULL, l_linestatus char(1) NOT NULL, l_shipdate date NOT NULL,
                     l_commitdate date NOT NULL, l_receiptdate date NOT NULL, l_shipinstruct char(25) NOT NULL,
                     l_shipmode char(10) NOT NULL, l_comment varchar(44) NOT NULL, l_points bigint NOT NULL,
                     version bigint NOT NULL)",
            )
            .await;
        original
            .run(&format!(
                "INSERT INTO lineitem
                 SELECT i / 4, i % 4 + 1, i * 31 % 200000, i * 17 % 10000, i % 50 + 1, i * 7919 % 10000000 / 100.0,
                     i % 11 / 100.0, i % 9 / 100.0, substr('ANR', (i % 3)::int + 1, 1), substr('OF', (i % 2)::int + 1, 1),
                     d, d + 30, d + 12, 'DELIVER IN PERSON', 'TRUCK', 'carefully packed parcel ' || i % 100000,
                     {POINTS}, 1
                 FROM (SELECT i, date '1992-01-01' + (i % 2500)::int AS d, i / 4 AS l_orderkey, i % 4 + 1 AS l_linenumber
                       FROM generate_series(0::bigint, {rows} - 1) i) AS made"
            ))
            .await;
        original.run("ALTER TABLE lineitem ADD PRIMARY KEY (l_orderkey, l_linenumber)").await;
        settle(&original).await;
        Lineitem { original, rows }
    }

    /// A new database with the same content.
    pub(super) async fn copy(&self, bench: &Bench) -> Database {
        let copy = bench.database().await;
        let maintenance = bench.database().await;
        // A database can be copied only while no client uses it.
        self.unused(&maintenance, &self.original).await;
        maintenance.run(&format!("DROP DATABASE {}", copy.name())).await;
        maintenance
            .run(&format!(
                "CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy",
                copy.name(),
                self.original.name()
            ))
            .await;
        copy
    }

    /// Removes a copy, so that the disk need not hold all of them.
    pub(super) async fn drop(&self, copy: Database) {
        let maintenance = self.original.clone();
        maintenance.run(&format!("DROP DATABASE {} WITH (FORCE)", copy.name())).await;
        maintenance.run("CHECKPOINT").await;
    }

    async fn unused(&self, maintenance: &Database, database: &Database) {
        let sql =
            format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{}'", database.name());
        let unused = async || maintenance.one::<i64>(&sql).await == 0;
        eventually("no client uses the original", Duration::from_secs(30), unused).await;
    }
}

/// A row's points before the backfill.
const POINTS: &str = "(l_orderkey * 4 + l_linenumber) % 1000";

/// How many of the first `rows` rows were not raised, and how many more than once.
pub(super) async fn wrong(database: &Database, rows: u64) -> Result<(i64, i64)> {
    let sql = format!(
        "SELECT count(*) FILTER (WHERE l_points < {POINTS} + 1), count(*) FILTER (WHERE l_points > {POINTS} + 1)
         FROM lineitem WHERE l_orderkey < {}",
        rows / 4
    );
    let row = database.client().await.query_one(&sql, &[]).await?;
    Ok((row.get(0), row.get(1)))
}

/// The dead tuples of all tables, also of those of a queue. The server does not vacuum by itself.
pub(super) async fn dead_tuples(database: &Database) -> i64 {
    let others = "SELECT count(*) FROM pg_stat_activity
                  WHERE datname = current_database() AND pid <> pg_backend_pid()";
    // A connection reports its statistics at the latest when it closes.
    let ended = async || database.one::<i64>(others).await == 0;
    eventually("all clients have ended", Duration::from_secs(30), ended).await;
    database.one("SELECT sum(n_dead_tup)::bigint FROM pg_stat_user_tables").await
}
