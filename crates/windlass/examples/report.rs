//! A report: each chunk is summed up by the source database (`map`), and the partial sums are merged
//! exactly once (`reduce`) into a CSV file.
//!
//! `cargo run --example report`

use rusqlite::Connection;
use windlass::{Config, Engine, JobType, Report};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    Connection::open(path("shop.db"))?.execute_batch(
        "CREATE TABLE sales (id INTEGER PRIMARY KEY, branch TEXT, amount INTEGER);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
         INSERT INTO sales
         SELECT i, CASE i % 3 WHEN 0 THEN 'north' WHEN 1 THEN 'south' ELSE 'west' END, i % 10 FROM n;",
    )?;

    let totals = JobType::builder("BRANCH_TOTALS")
        .connection("shop")
        .table("sales")
        .map(
            "SELECT branch, count(*) AS n, sum(amount) AS total FROM {source} WHERE {chunk} \
             GROUP BY branch",
        )
        .chunk_items(1000)
        .reduce(
            "SELECT branch, sum(n) AS n, sum(total) AS total FROM parts GROUP BY branch \
             ORDER BY branch",
        )
        .report(Report::to(format!("file:{}/{{job_type}}.csv", folder.path().display())));
    let request = totals.request();
    let config = Config::new(format!("sqlite:{}", path("windlass.db")))
        .connection("shop", format!("sqlite:{}", path("shop.db")));
    let engine = Engine::builder(config).job(totals).connect().await?;

    let job = engine.run(request).await?;
    println!("{}: {} records in {} chunks", job.status, job.items.processed, job.chunks.total);
    print!("{}", std::fs::read_to_string(path("BRANCH_TOTALS.csv"))?);
    Ok(())
}
