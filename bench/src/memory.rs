//! Peak memory of `windlass run` for ten million rows against one million.

use crate::report::Report;
use crate::setup::{Bench, RAISE, accounts, binary, folder};
use anyhow::{Result, ensure};
use std::process::{Command, Stdio};

pub(crate) async fn run(bench: &Bench, report: &mut Report) -> Result<()> {
    let mut peaks = Vec::new();
    for rows in [bench.rows(1_000_000), bench.rows(10_000_000)] {
        let database = bench.database().await;
        accounts(&database, rows).await;
        let folder = folder(&database, &database, RAISE)?;
        peaks.push(peak(folder.path())?);
        database.run("DROP TABLE accounts").await;
    }
    let (small, large) = (peaks[0], peaks[1]);
    let detail = format!("{small:.1} MB for the tenth, {large:.1} MB for all");
    report.at_most("memory: ten times the rows against one", large / small, 1.1, detail);
    report.at_most("memory: peak in MB", large, 100.0, String::new());
    Ok(())
}

/// The child's peak resident memory in MB, as the kernel counted it, read while it still exists:
/// until it is waited for it stays a zombie, so the last reading before that is what counts.
fn peak(folder: &std::path::Path) -> Result<f64> {
    let mut child = Command::new(binary()?)
        .args(["run", "RAISE", "--workers", "2"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0_f64;
    let ended = loop {
        if let Some(kilobytes) = high_water(&std::fs::read_to_string(&status).unwrap_or_default()) {
            peak = peak.max(kilobytes / 1024.0);
        }
        if let Some(ended) = child.try_wait()? {
            break ended;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    ensure!(ended.success(), "the run failed: {ended}");
    ensure!(peak > 0.0, "no reading");
    Ok(peak)
}

fn high_water(status: &str) -> Option<f64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
