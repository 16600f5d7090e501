//! Peak memory of `windlass run` for ten million rows, compared with one million.

use crate::report::Report;
use crate::setup::{Bench, RAISE, accounts, folder};
use crate::watched::watched;
use anyhow::Result;

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut peaks = Vec::new();
    for rows in [bench.rows(1_000_000), bench.rows(10_000_000)] {
        let database = bench.database().await;
        accounts(&database, rows).await;
        let folder = folder(&database, &database, RAISE)?;
        peaks.push(watched(folder.path(), &["run", "RAISE", "--concurrency", "2"])?.peak);
        database.run("DROP TABLE accounts").await;
    }
    let (small, large) = (peaks[0], peaks[1]);
    let detail = format!("{small:.1} MB for the tenth, {large:.1} MB for all");
    report.at_most("memory: ten times the rows against one", large / small, 1.1, detail);
    report.at_most("memory: peak in MB", large, 100.0, String::new());
    Ok(())
}
