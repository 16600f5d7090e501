//! Clocks that are an hour off change nothing, because all times come from the database's clock.

use crate::common::{CliSandbox, Data, eventually, slow_raise, worked_by};
use std::path::PathBuf;

const ROWS: i64 = 4_000;

/// Commands with a clock that is off by this time. The monotonic clock is not changed, as with a wrong clock.
fn off(sandbox: CliSandbox, by: &str) -> CliSandbox {
    let library = library().expect("libfaketime; `cargo xtask test` installs it");
    sandbox
        .env("LD_PRELOAD", &library.display().to_string())
        .env("FAKETIME", by)
        .env("DONT_FAKE_MONOTONIC", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
}

fn library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let paths = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    paths.into_iter().find(|path| path.is_file())
}

#[tokio::test]
async fn clocks_an_hour_off_change_nothing() {
    let data = Data::slow(ROWS, 3.0).await;
    // Leases that would have expired by a clock that is an hour ahead.
    let jobs = slow_raise(20) + "chunk.lease = \"30s\"\n";
    let right = CliSandbox::on(&data, &jobs);
    let ahead = off(CliSandbox::on(&data, &jobs), "+3600");
    let behind = off(CliSandbox::on(&data, &jobs), "-3600");
    let id = ahead.submit("RAISE").await;
    // The id contains the wrong time of that process. All other times are the database's.
    let made = i64::from_str_radix(&id.replace('-', "")[..12], 16).unwrap();
    let created = "SELECT (extract(epoch FROM created_at) * 1000)::bigint FROM windlass_jobs";
    let difference = made - data.number(created).await;
    assert!((3_500_000..3_700_000).contains(&difference), "{difference}");
    let workers = [
        right.spawn("worker"),
        ahead.spawn("worker"),
        behind.spawn("worker"),
        right.spawn("worker"),
    ];
    eventually("each worker has completed a chunk", async || {
        let chunks = right.chunks(&id).await;
        let completed = |process| {
            let by = |chunk| worked_by(chunk, process);
            chunks.iter().any(|chunk| chunk["status"] == "COMPLETED" && by(chunk))
        };
        workers.iter().all(|worker| completed(worker.id()))
    })
    .await;
    let wrong = "SELECT count(*) FROM windlass_chunks WHERE status = 'PROCESSING' AND lease_until NOT BETWEEN \
                 clock_timestamp() - interval '1 minute' AND clock_timestamp() + interval '31 seconds'";
    assert_eq!(data.number(wrong).await, 0, "leases that are not by the database's clock");
    data.pace(0.0).await;
    let done = right.completed(&id).await;
    for chunk in right.chunks(&id).await {
        assert_eq!(chunk["epoch"], chunk["losses"].as_i64().unwrap() + 1, "{chunk:#}");
    }
    // A process with a wrong clock lists the same.
    assert_eq!(behind.job(&id).await, done);
    eventually("no worker counts as vanished", async || {
        let listed = ahead.json("workers").await;
        listed.as_array().unwrap().iter().all(|worker| worker["vanished"] == false)
    })
    .await;
    data.raised_once(ROWS).await;
    right.prove(&id).await;
}
