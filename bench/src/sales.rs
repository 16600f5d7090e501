//! The table for the fan-in benchmarks in PostgreSQL and MariaDB, and their job types.

use crate::setup::settle;
use std::path::Path;
use windlass_testkit::{Database, MariaDatabase};

/// The exported columns: integer, date, decimal, timestamp and two texts.
pub(crate) const COLUMNS: &str = "id, branch, day, amount, at, customer, note";

/// The totals in one statement.
pub(crate) const TOTALS: &str =
    "SELECT branch, count(*) AS n, sum(amount) AS total FROM sales GROUP BY branch ORDER BY branch";

/// Creates the table `sales` in PostgreSQL.
pub(crate) async fn in_postgres(database: &Database, rows: u64) {
    database
        .run(
            "CREATE TABLE sales (id bigint PRIMARY KEY, branch int NOT NULL, day date NOT NULL,
             amount numeric(12,2) NOT NULL, at timestamptz NOT NULL, customer text NOT NULL,
             note text)",
        )
        .await;
    database
        .run(&format!(
            "INSERT INTO sales SELECT i, i % 200, date '2025-01-01' + (i % 365)::int,
             ((i * 7919) % 1000000) / 100.0, timestamptz '2025-01-01' + i * interval '1 second',
             'customer ' || (i * 31) % 100000, CASE i % 4 WHEN 0 THEN 'paid by card, thank you' END
             FROM generate_series(1::bigint, {rows}) i"
        ))
        .await;
    settle(database).await;
}

/// Creates the same table in MariaDB.
pub(crate) async fn in_mariadb(database: &MariaDatabase, rows: u64) {
    database
        .run(
            "CREATE TABLE sales (id bigint PRIMARY KEY, branch int NOT NULL, day date NOT NULL,
             amount decimal(12,2) NOT NULL, at datetime(6) NOT NULL, customer varchar(40) NOT NULL,
             note varchar(80))",
        )
        .await;
    database
        .run(&format!(
            "INSERT INTO sales SELECT seq, seq % 200, date '2025-01-01' + interval (seq % 365) day,
             ((seq * 7919) % 1000000) / 100.0, timestamp '2025-01-01 00:00:00' + interval seq second,
             concat('customer ', (seq * 31) % 100000),
             CASE seq % 4 WHEN 0 THEN 'paid by card, thank you' END FROM seq_1_to_{rows}"
        ))
        .await;
    database.run("ANALYZE TABLE sales").await;
}

/// The job types: the same totals from parts, and the same columns in files.
pub(crate) fn jobs(out: &Path) -> String {
    let out = out.display();
    let columns: Vec<String> = COLUMNS.split(", ").map(|name| format!("{name:?}")).collect();
    let columns = columns.join(", ");
    format!(
        "[jobs.TOTALS]\nsource.connection = \"app\"\nsource.table = \"sales\"\n\
         step.map = \"SELECT branch, count(*) AS n, sum(amount) AS total FROM {{source}} WHERE {{chunk}} GROUP BY branch\"\n\
         reduce = \"SELECT branch, sum(n) AS n, sum(total) AS total FROM parts GROUP BY branch ORDER BY branch\"\n\
         report = {{ to = \"file:{out}/{{job_id}}/totals.parquet\" }}\n\
         [jobs.DUMP]\nsource.connection = \"app\"\nsource.table = \"sales\"\n\
         step.export = {{ to = \"file:{out}/{{job_id}}/\", format = \"parquet\", columns = [{columns}] }}\n"
    )
}
